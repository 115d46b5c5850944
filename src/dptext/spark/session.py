"""The engine itself: whether it is there, and what its errors mean, in one line."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dptext.errors
from dptext.errors import DataError, DptextError, MissingExtraError, ParameterError, StorageError, extra
from dptext.io.atomic import scratch_folder

_logger = logging.getLogger("dptext")
_ATTEMPTS = 4  # at a task, as on a cluster; Spark itself makes one on a single machine


def session() -> Any:
    sql = extra("pyspark.sql", "spark", "Spark")
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    _check_java()
    # workers of this machine run in this environment, not in what python3 names; a cluster has its own setting
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with plain_errors():
        builder = sql.SparkSession.builder.appName("dptext").config("spark.ui.showConsoleProgress", "false")
        for name, value in _settings().items():
            builder = builder.config(name, value)
        return builder.getOrCreate()


def _settings() -> dict[str, str]:
    """What a session that is begun here needs beside what is configured."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._active_spark_context is not None:
        return {}
    if SparkContext._gateway is None:
        silent = {} if _logger.isEnabledFor(logging.DEBUG) else {"stderr": subprocess.DEVNULL}
        SparkContext._ensure_initialized(gateway=launch_gateway(popen_kwargs=silent))
    configured = SparkConf()  # with what files and spark-submit say
    alone = re.fullmatch(r"local(?:\[(\*|[0-9]+)\])?", configured.get("spark.master", "") or "")
    if alone is None:
        return {}
    settings = {"spark.master": f"local[{alone[1] or 1},{_ATTEMPTS}]"}
    if not configured.contains("spark.local.dir") and "SPARK_LOCAL_DIRS" not in os.environ:
        stack = ExitStack()
        settings["spark.local.dir"] = str(stack.enter_context(scratch_folder()))
        atexit.register(stack.close)
    return settings


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if not found:
        raise MissingExtraError(
            "Spark needs Java 17 or newer, and there is none: install it (Debian: apt install openjdk-17-jre-headless; "
            "conda: conda install openjdk=17) or let JAVA_HOME name it"
        )


def check_frame(frame: Any) -> Any:
    """The session of a DataFrame, when it is one that this module can work on."""
    sql = extra("pyspark.sql", "spark", "Spark")
    if not isinstance(frame, sql.DataFrame):
        raise ParameterError(f"df must be a DataFrame of pyspark, got {type(frame).__name__}")
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise ParameterError(
            "df is of Spark Connect, which cannot give files to its workers: run where the driver is (spark-submit, or "
            "a notebook on the cluster)"
        )
    return frame.sparkSession


@contextmanager
def plain_errors() -> Iterator[None]:
    try:
        with _no_stacks():
            yield
    except DptextError:
        raise
    except Exception as error:
        module = type(error).__module__
        if isinstance(error, ConnectionError) or (module.startswith("py4j") and "Network" in type(error).__name__):
            made: DptextError = StorageError(_JAVA_ENDED)
        elif module.startswith(("pyspark", "py4j")):
            made = _in_words(str(error), _classes(error))
        else:
            raise
        for note in getattr(error, "__notes__", ()):
            made.add_note(note)
        raise made from None


@contextmanager
def _no_stacks() -> Iterator[None]:
    """Without what pyspark prints of an error as it is made (10 KB of JSON for a column that is not there)."""
    loggers = [logging.getLogger(name) for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger")]
    before = [each.disabled for each in loggers]
    for each in loggers:
        each.disabled = not _logger.isEnabledFor(logging.DEBUG)
    try:
        yield
    finally:
        for each, was in zip(loggers, before, strict=True):
            each.disabled = was


def _classes(error: Exception) -> tuple[str, ...]:
    """The names of the classes of an error of Java and of its causes: they say what happened, and quote nothing."""
    found: list[str] = []
    with suppress(Exception):  # Java may be gone
        cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        while cause is not None and len(found) < 20:
            found.append(str(cause.getClass().getName()).rpartition(".")[2])
            cause = cause.getCause()
    return tuple(found)


_OURS = re.compile(r"dptext\.errors\.(\w+): (.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_JAVA_ENDED = (
    "Spark's Java process ended in the middle of the work: most likely memory ran out; give it more "
    "(spark.driver.memory) or do fewer tasks at once, and start again"
)
_SEES_NO_FILE = (
    "a worker does not see a file of the input that the driver saw: put it where every node finds it under the same "
    "name (hdfs://, s3a://, a mount), or the input changed while it was read"
)
_TAKEN_FOR_ONE = (
    "two columns have names that Spark takes for one (upper and lower case): rename one, or set "
    "spark.sql.caseSensitive to true"
)
_BROKEN_ROW = (
    "a row of the input cannot be read as its format says: repair it (dptext privatize without --engine names it)"
)
_NOT_ALLOWED = (
    "Spark may not read the input, or not write to the place of the output: name places that you, and every node, may "
    "use"
)
_REMEDIES: tuple[tuple[str, type[DptextError], str], ...] = (
    (
        "JAVA_GATEWAY_EXITED",
        MissingExtraError,
        "Java did not start: Spark needs Java 17 or newer (java -version tells), named by PATH or JAVA_HOME",
    ),
    (
        "No module named 'dptext'",
        MissingExtraError,
        'the workers have no dptext: install it on every node (pip install "dptext[spark]") or ship the environment '
        "(spark.archives), and let PYSPARK_PYTHON name its python",
    ),
    (
        "No module named",
        MissingExtraError,
        "the python of the workers lacks a package that the driver has: let PYSPARK_PYTHON name the same environment "
        "on every node (workers need dptext)",
    ),
    (
        "PYTHON_VERSION_MISMATCH",
        ParameterError,
        "driver and workers have different versions of Python: let PYSPARK_PYTHON name the same on every node",
    ),
    (
        "PATH_NOT_FOUND",
        StorageError,
        "there is no such input where Spark looks: name a path that the cluster sees (hdfs://, s3a://, a mount that "
        "every node has)",
    ),
    ("FileNotFoundException", StorageError, _SEES_NO_FILE),
    ("FILE_NOT_EXIST", StorageError, _SEES_NO_FILE),
    ("MALFORMED_RECORD", DataError, _BROKEN_ROW),
    ("MALFORMED_CSV_RECORD", DataError, _BROKEN_ROW),
    (
        "CANNOT_READ_FILE_FOOTER",
        DataError,
        "a file of the input is no parquet, or was cut: name files of one format (--format says which)",
    ),
    (
        "CSV header does not conform",
        DataError,
        "the files of the input have different headers: Spark takes columns by their place, so give all of them one "
        "header, or release them one by one",
    ),
    ("FAILED_READ_FILE", DataError, _BROKEN_ROW),
    ("AMBIGUOUS_REFERENCE", ParameterError, _TAKEN_FOR_ONE),
    ("COLUMN_ALREADY_EXISTS", ParameterError, _TAKEN_FOR_ONE),
    (
        "Python worker exited unexpectedly",
        StorageError,
        "a Python worker died (attempts at its task: {attempts}): most likely memory ran out; fewer tasks at once on a "
        "node, more spark.executor.memoryOverhead or, on one machine, more attempts (spark.master local[*,4])",
    ),
    (
        "OutOfMemoryError",
        StorageError,
        "Java ran out of memory: give it more (spark.driver.memory, spark.executor.memory), or more partitions",
    ),
    ("No space left on device", StorageError, "a disk is full: free spark.local.dir or the place of the output"),
    ("Mkdirs failed to create", StorageError, _NOT_ALLOWED),
    ("Permission denied", StorageError, _NOT_ALLOWED),
    ("AccessControlException", StorageError, _NOT_ALLOWED),
    (
        "ParentNotDirectoryException",
        StorageError,
        "a folder in the path of the input or output is a file: name another",
    ),
    (
        "No FileSystem for scheme",
        ParameterError,
        "Spark knows no file system for the scheme of a path: expected file://, hdfs:// or one whose package is "
        "installed with Spark (spark.jars.packages)",
    ),
    (
        "FileSystem not found",
        MissingExtraError,
        "Spark has no package for the file system of a path: add it (spark.jars.packages, hadoop-aws for s3a://)",
    ),
    ("UnknownHostException", StorageError, "a path names a host that is not known: check its spelling and the network"),
    ("ConnectException", StorageError, "the host that a path names does not answer: check its name, port and service"),
    ("cancelled", StorageError, "Spark's job was cancelled: nothing was written; start again"),
    ("stopped SparkContext", StorageError, "the Spark session has ended: make a new one, and its DataFrames again"),
    ("SparkContext was shut down", StorageError, "the Spark session ended in the middle of the work: start again"),
)


def _in_words(said: str, classes: Sequence[str]) -> DptextError:
    ours = _OURS.search(said)
    if ours is not None:
        kind = getattr(dptext.errors, ours[1], DataError)
        made: DptextError = kind(ours[2].strip())
        return made
    for sign, kind, remedy in _REMEDIES:
        if sign in said or sign in classes:
            return kind(remedy.format(attempts=_attempts(said)))
    condition = re.match(r"\[([A-Z_.0-9]+)\]", said)
    named = condition[1] if condition else classes[-1] if classes else ""
    name = f" ({named})" if named else ""
    return StorageError(f"Spark could not do it{name}: its own log says more (it may quote rows; --verbose shows it)")


def _attempts(said: str) -> str:
    found = re.search(r"failed ([0-9]+) times, most recent failure", said)
    return found[1] if found else "several"
