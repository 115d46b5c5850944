"""Public objects on every node: a file for each (`dptext.processes`), which the processes of a node share."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from dptext.processes import load_shared, save_shared

__all__ = ["from_node", "to_nodes"]


def to_nodes(spark: Any, thing: object) -> str:
    """Give every node a public object, and return the name that tasks know it by."""
    from pyspark import SparkFiles

    place = Path(SparkFiles.getRootDirectory())
    written = save_shared(thing, place.parent)
    if not (place / written.name).exists():
        spark.sparkContext.addFile(str(written))
    return written.name


@lru_cache(maxsize=2)
def from_node(name: str) -> Any:
    """What `to_nodes` gave, in a task: opened once in a process, which Spark uses for many tasks."""
    from pyspark import SparkFiles

    return load_shared(Path(SparkFiles.get(name)))
