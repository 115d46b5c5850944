"""Public tables on every node: written once by the driver, fetched once by a node, mapped by all of its workers.

Spark itself carries the file (``SparkContext.addFile``), so nothing has to lie on a path that all nodes share. Tasks
name it; they do not hold it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from dptext.spark.tables import opened_tables, write_tables

__all__ = ["from_node", "to_nodes"]


def to_nodes(spark: Any, thing: object) -> str:
    """Give every node a public object, and return the name that tasks know it by. A second time costs nothing.

    Args:
        spark: the session.
        thing: what can be pickled and holds neither a secret nor random state.

    Raises:
        ParameterError: it cannot be pickled.
        StorageError: the driver's disk is full.
    """
    from pyspark import SparkFiles

    place = Path(SparkFiles.getRootDirectory())
    written = write_tables(thing, place.parent)
    if not (place / written.name).exists():
        spark.sparkContext.addFile(str(written))
    return written.name


@lru_cache(maxsize=2)
def from_node(name: str) -> Any:
    """What `to_nodes` gave, in a task: opened once in a process, which Spark uses for many tasks."""
    from pyspark import SparkFiles

    return opened_tables(Path(SparkFiles.get(name)))
