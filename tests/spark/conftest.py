"""A Spark session on two local cores, where pyspark and Java are installed."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

import dptext

# pyspark's own, about the version of pandas, and sockets that it leaves to the garbage collector
IGNORED = ("FutureWarning", "DeprecationWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for warning in IGNORED:
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{warning}"))


def _has_java():
    home = os.environ.get("JAVA_HOME")
    return bool(shutil.which("java") or (home and os.path.exists(os.path.join(home, "bin", "java"))))


@pytest.fixture(scope="session")
def mechanism():
    return dptext.TEM(dptext.load_vectors("glove-6b-50d", limit=300), epsilon=3.0)


@pytest.fixture(scope="session")
def event_log(tmp_path_factory):
    """Return the folder of Spark's event log."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(event_log, tmp_path_factory):
    """Two cores; a task that dies is tried again."""
    sql = pytest.importorskip("pyspark.sql")
    if not _has_java():
        pytest.skip("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # small jobs: compiling costs more than it saves
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": event_log.as_uri(),
        "spark.local.dir": str(tmp_path_factory.mktemp("local")),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    builder = sql.SparkSession.builder.master("local[2,4]").appName("dptext tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    interrupt = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    signal.signal(signal.SIGINT, interrupt)  # Spark takes Ctrl-C for itself, and other tests wait for it in vain
    yield session
    session.stop()


@pytest.fixture
def die_once(tmp_path):
    """Return a function that yields the batches of a task, and kills its worker once when a batch is out."""

    def wrap(task, name="died"):
        marker = str(tmp_path / name)

        def dying(batches):
            for batch in task(batches):
                yield batch
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)

        return dying

    return wrap
