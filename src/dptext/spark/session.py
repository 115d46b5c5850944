"""The Spark session, interruptible jobs, and errors of Spark in one sentence that quotes no row."""

from __future__ import annotations

import atexit
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

import dptext.errors
from dptext.errors import DataError, DptextError, MissingExtraError, ParameterError, StorageError, extra
from dptext.io.atomic import scratch_folder
from dptext.privacy.randomness import RandomBits

Result = TypeVar("Result")
_logger = logging.getLogger("dptext")
_TASK_ATTEMPTS = 4  # as on a cluster; Spark makes one on a single machine
_LONGEST_WAIT = 30.0  # seconds for cancelled tasks to end


def session() -> Any:
    """Return the active session, or start one."""
    sql = extra("pyspark.sql", "spark", "Spark")
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    # workers of this machine run in this environment, not in that of python3; a cluster has its own setting
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with plain_errors():
        builder = sql.SparkSession.builder.appName("dptext").config("spark.ui.showConsoleProgress", "false")
        for name, value in _settings().items():
            builder = builder.config(name, value)
        return builder.getOrCreate()


def _settings() -> dict[str, str]:
    """Return missing settings of a local session: several attempts per task, and a temporary folder."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._active_spark_context is not None:
        return {}
    if SparkContext._gateway is None:
        silent = {} if _logger.isEnabledFor(logging.DEBUG) else {"stderr": subprocess.DEVNULL}
        SparkContext._ensure_initialized(gateway=launch_gateway(popen_kwargs=silent))
    configured = SparkConf()  # includes the settings of files and of spark-submit
    local = re.fullmatch(r"local(?:\[(\*|[0-9]+)\])?", configured.get("spark.master", "") or "")
    if local is None:
        return {}
    settings = {"spark.master": f"local[{local[1] or 1},{_TASK_ATTEMPTS}]"}
    if not configured.contains("spark.local.dir") and "SPARK_LOCAL_DIRS" not in os.environ:
        stack = ExitStack()
        settings["spark.local.dir"] = str(stack.enter_context(scratch_folder()))
        atexit.register(stack.close)
    return settings


def check_frame(frame: Any) -> None:
    """Raise a ParameterError unless this is a DataFrame of pyspark."""
    sql = extra("pyspark.sql", "spark", "Spark")
    if not isinstance(frame, sql.DataFrame):
        raise ParameterError(f"df must be a DataFrame of pyspark, got {type(frame).__name__}")
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise ParameterError("df is of Spark Connect, which sends no files to workers: run on the driver")


# -- jobs -----------------------------------------------------------------------------------------------------


def run_job(spark: Any, work: Callable[[], Result]) -> Result:
    """Run work with Spark jobs in a thread that an interrupt cannot split; after an error, its tasks have ended."""
    from pyspark import InheritableThread

    context, tag = spark.sparkContext, f"dptext-{RandomBits().take(12).hex()}"
    future: Future[Result] = Future()

    def run() -> None:
        try:
            context.addJobTag(tag)  # for this thread alone; job groups belong to the caller
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  raised where the result is read
            future.set_exception(error)

    InheritableThread(target=run, daemon=True).start()
    try:
        return future.result()
    except BaseException as error:
        while not future.done():  # interrupted: another job may start after the first is cancelled
            with suppress(Exception):  # Java may be gone
                context.cancelJobsWithTag(tag)
            wait([future], timeout=0.3)
        inner = future.exception()
        if inner is not error:
            _add_notes(error, inner)
        with suppress(Exception):
            _wait_for_tasks(context, tag)
        raise


def _wait_for_tasks(context: Any, tag: str) -> None:
    """Wait until the tasks of cancelled jobs have stopped writing."""
    tracker, public = context._jsc.sc().statusTracker(), context.statusTracker()
    until = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < until:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag)]
        stages = [public.getStageInfo(stage) for job in jobs if job.isDefined() for stage in job.get().stageIds()]
        if not any(stage is not None and stage.numActiveTasks for stage in stages):
            return
        time.sleep(0.05)


# -- errors ---------------------------------------------------------------------------------------------------


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of pyspark and Java, which may quote rows, into errors of dptext."""
    # pyspark logs 10 KB of JSON for a column that is missing
    loggers = [logging.getLogger(name) for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = not _logger.isEnabledFor(logging.DEBUG)
    try:
        yield
    except DptextError:
        raise
    except Exception as error:
        if not isinstance(error, ConnectionError) and not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        plain = _translate_error(str(error), _class_names(error))
        _add_notes(plain, error)
        raise plain from None
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _add_notes(error: BaseException, source: BaseException | None) -> None:
    for note in getattr(source, "__notes__", ()):
        error.add_note(note)


def _class_names(error: Exception) -> list[str]:
    """Return the Java classes of an error and of its causes, which quote no data."""
    names = [kind.__name__ for kind in type(error).__mro__[:-3]]
    with suppress(Exception):  # Java may be gone
        cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        while cause is not None and len(names) < 20:
            names.append(str(cause.getClass().getName()).rpartition(".")[2])
            cause = cause.getCause()
    return names


_OURS = re.compile(r"dptext\.errors\.(\w+): (.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_REMEDIES: dict[str, tuple[type[DptextError], str]] = {
    "JAVA_GATEWAY_EXITED": (
        MissingExtraError,
        "Java did not start: install Java 17 or newer (apt install openjdk-17-jre-headless), or set JAVA_HOME",
    ),
    "ConnectionError|Py4JNetworkError|Python worker exited unexpectedly|OutOfMemoryError": (
        StorageError,
        "a process of Spark ended, probably because memory ran out: raise spark.driver.memory, spark.executor.memory "
        "or spark.executor.memoryOverhead, use more partitions, or allow more attempts (master local[*,4])",
    ),
    "No module named|PYTHON_VERSION_MISMATCH": (
        MissingExtraError,
        'the workers have another Python, or lack a package: install "dptext[spark]" on every node or ship the '
        "environment (spark.archives), and set PYSPARK_PYTHON to its python",
    ),
    "PATH_NOT_FOUND|FileNotFoundException|FILE_NOT_EXIST": (
        StorageError,
        "a driver or worker does not find a file of the input: use a path that every node of the cluster sees "
        "(hdfs://, s3a://, a mount), and do not change the input during the run",
    ),
    "CSV header does not conform|MALFORMED_RECORD|MALFORMED_CSV_RECORD|FAILED_READ_FILE": (
        DataError,
        "a file of the input is malformed, or its header differs from the first one: give all files one "
        "header (dptext privatize without --engine names the row)",
    ),
    "Permission denied|AccessControlException|ParentNotDirectoryException": (
        StorageError,
        "Spark may not read the input or write the output: use folders to which you and every node have access",
    ),
}


def _translate_error(message: str, classes: list[str]) -> DptextError:
    match = _OURS.search(message)
    if match is not None:
        return getattr(dptext.errors, match[1], DataError)(match[2].strip())
    for signs, (kind, remedy) in _REMEDIES.items():
        if any(sign in message or sign in classes for sign in signs.split("|")):
            return kind(remedy)
    condition = re.match(r"\[([A-Z_.0-9]+)\]", message)
    name = condition[1] if condition else classes[-1]
    return StorageError(f"Spark failed ({name}): see its own log, which may quote rows (--verbose shows it)")
