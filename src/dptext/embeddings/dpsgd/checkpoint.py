"""Checkpoints of a training: the tables with the noise of all steps so far, and the settings."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, RefusedError, StorageError
from dptext.io.atomic import hashed_file
from dptext.io.batches import display_name

__all__ = ["Checkpoint", "read_checkpoint", "write_checkpoint"]

_HEAD = {"format": "dptext-training", "version": 1, "secrecy": "private: a working file, not a release"}
_LONGEST_HEAD = 1 << 12
_ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What is in the file: (R, d) tables with all noise, and how many steps are done."""

    tables: npt.NDArray[np.float32]
    steps: int


def write_checkpoint(path: Path, checkpoint: Checkpoint, parameters: bytes) -> None:
    """Write it whole or not at all, in place of an older one; ``parameters``: a digest of all that is public."""
    tables = np.ascontiguousarray(checkpoint.tables, dtype="<f4")
    head = _HEAD | {
        "parameters": parameters.hex(),
        "steps": checkpoint.steps,
        "shape": list(tables.shape),
        "sha256": _digest(checkpoint.steps, tables),
    }
    with hashed_file(path, owner_only=True) as stream:
        stream.write(json.dumps(head).encode() + b"\n")
        for start in range(0, len(tables), _ROWS_AT_ONCE):
            stream.write(tables[start : start + _ROWS_AT_ONCE].tobytes())


def read_checkpoint(path: Path, shape: tuple[int, int], parameters: bytes) -> Checkpoint | None:
    """What is in the file, if it was written with tables of this shape and these parameters; None if there is none."""
    name = display_name(path)
    try:
        with path.open("rb") as stream:
            head = _head(stream)
            if head is None:
                raise DataError(f"{name} is no checkpoint of a training: name another file")
            if head.get("parameters") != parameters.hex():
                raise RefusedError(
                    f"the training in {name} was begun with other parameters, words or vectors, and its promise speaks "
                    "of those: give the same ones, or another file"
                )
            tables = np.fromfile(stream, dtype="<f4")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise error if isinstance(error, StorageError) else StorageError.of("read", path, error) from None
    whole = head.get("shape") == list(shape) and type(head.get("steps")) is int
    if not whole or _digest(head["steps"], tables) != head.get("sha256"):
        raise DataError(f"the checkpoint {name} is damaged: delete it, and begin anew")
    return Checkpoint(tables.reshape(shape).astype(np.float32, copy=False), head["steps"])


def _digest(steps: int, tables: npt.NDArray[np.float32]) -> str:
    """Of the number of steps too: with a smaller one, steps would be taken again."""
    digest = hashlib.sha256(b"%d steps " % steps)
    digest.update(tables.data)
    return digest.hexdigest()


def _head(stream: IO[bytes]) -> dict[str, Any] | None:
    try:
        head = json.loads(stream.readline(_LONGEST_HEAD))
    except (ValueError, RecursionError):
        return None
    return head if isinstance(head, dict) and head.items() >= _HEAD.items() else None
