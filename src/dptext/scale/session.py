"""The engine itself: whether it is there, and what its errors mean, in one line."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dptext.errors
from dptext.errors import DataError, DptextError, MissingExtraError, ParameterError, StorageError
from dptext.text.files import extra

__all__ = ["check_frame", "session", "told_in_one_line"]


def session() -> Any:
    """The running Spark session, or a new one as Spark's own configuration says (``spark-submit``, ``SPARK_CONF_DIR``).

    Raises:
        MissingExtraError: pyspark or Java is not installed.
    """
    sql = extra("pyspark.sql", "spark", "Spark")
    if sql.SparkSession.getActiveSession() is None:
        _check_java()
        # workers of this machine run in this environment, not in whatever python3 is; a cluster has its own setting
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with told_in_one_line():
        return sql.SparkSession.builder.appName("dptext").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if not found:
        raise MissingExtraError(
            "Spark needs Java 17 or newer, and there is none: install it (Debian: apt install openjdk-17-jre-headless; "
            "conda: conda install openjdk=17) or let JAVA_HOME name it"
        )


def check_frame(frame: Any) -> Any:
    """The session of a DataFrame, when it is one that this module can work on.

    Raises:
        MissingExtraError: pyspark is not installed.
        ParameterError: something else, or a DataFrame of Spark Connect.
    """
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
def told_in_one_line() -> Iterator[None]:
    """Errors of the engine as errors of this library: what was wrong and what to do, without a stack of two languages.

    What a message of the engine says besides may quote rows, and is left out; it stands in the engine's own log.
    """
    try:
        yield
    except DptextError:
        raise
    except Exception as error:
        module = type(error).__module__
        if not module.startswith(("pyspark", "py4j")):
            raise
        raise _in_words(str(error)) from None


_OURS = re.compile(r"dptext\.errors\.(\w+): (.+)")
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
        "on every node (workers need dptext[files])",
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
    (
        "FileNotFoundException",
        StorageError,
        "a worker does not see a file of the input that the driver saw: put it where every node finds it under the "
        "same name (hdfs://, s3a://, a mount), or the input changed while it was read",
    ),
    (
        "FILE_NOT_EXIST",
        StorageError,
        "a worker does not see a file of the input that the driver saw: put it where every node finds it under the "
        "same name (hdfs://, s3a://, a mount), or the input changed while it was read",
    ),
    (
        "PATH_ALREADY_EXISTS",
        ParameterError,
        "the output is there already: choose another name, or overwrite it with force",
    ),
    (
        "MALFORMED_RECORD",
        DataError,
        "a row of the input cannot be read as its format says: repair it (dptext privatize without --engine names it)",
    ),
    (
        "MALFORMED_CSV_RECORD",
        DataError,
        "a row of the input cannot be read as its format says: repair it (dptext privatize without --engine names it)",
    ),
    (
        "Python worker exited unexpectedly",
        StorageError,
        "a Python worker died, again and again: most likely memory ran out; fewer tasks at once on a node, or more "
        "spark.executor.memoryOverhead",
    ),
    (
        "No space left on device",
        StorageError,
        "a disk is full: free spark.local.dir or the place of the output",
    ),
)


def _in_words(said: str) -> DptextError:
    ours = _OURS.search(said)
    if ours is not None:
        kind = getattr(dptext.errors, ours[1], DataError)
        made: DptextError = kind(ours[2].strip())
        return made
    for sign, kind, remedy in _REMEDIES:
        if sign in said:
            return kind(remedy)
    condition = re.match(r"\[([A-Z_.0-9]+)\]", said)
    name = f" ({condition[1]})" if condition else ""
    return StorageError(f"Spark could not do it{name}: its own log says more")
