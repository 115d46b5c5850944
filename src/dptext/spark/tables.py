"""Public objects on every node: a file for each (`dptext.object_files`), which the processes of a node share."""

from __future__ import annotations

import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dptext.noise.selection import BoundsIndex
from dptext.object_files import opened_object, write_object

__all__ = ["from_node", "to_nodes", "write_tables"]


def write_tables(thing: object, folder: Path) -> Path:
    """`dptext.object_files.write_object`, for other machines."""
    return write_object(thing, folder, pickler=_Pickler)


class _Pickler(pickle.Pickler):
    """An index in a file of its own (which other machines do not see) goes along."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, BoundsIndex):
            return BoundsIndex.of_array, (thing.path, np.asarray(thing.array))
        return NotImplemented


def to_nodes(spark: Any, thing: object) -> str:
    """Give every node a public object, and return the name that tasks know it by."""
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

    return opened_object(Path(SparkFiles.get(name)))
