"""Training steps (sample, draw pairs, clip, sum, add noise, descend) and their checkpoints.

Derivation: docs/mechanisms/skip-gram.md#embeddings-dpsgd-training
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.gradients import PairDrawing, Scratch, add_clipped
from dptext.embeddings.dpsgd.noise import CellNoise, Sums, move
from dptext.embeddings.dpsgd.participation import Participation, Recipe, sampled_slots, sampled_users
from dptext.errors import DataError, RefusedError, StorageError
from dptext.io.atomic import hashed_file
from dptext.io.batches import display_name
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.users.grouping import UserStore

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
    digest = hashlib.sha256(b"%d steps " % steps)  # a smaller number would repeat steps, and their noise
    digest.update(tables.data)
    return digest.hexdigest()


def _head(stream: IO[bytes]) -> dict[str, Any] | None:
    try:
        head = json.loads(stream.readline(_LONGEST_HEAD))
    except (ValueError, RecursionError):
        return None
    return head if isinstance(head, dict) and head.items() >= _HEAD.items() else None


Rows = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Pairs = tuple[Rows, npt.NDArray[np.int64]]
"""(pairs, columns) rows of tables; (units,) where the pairs of each end."""

_TOGETHER = 1 << 14  # pairs that are drawn at once
_COINS, _KEYS, _NOISE = 0, 1, 3  # each use of randomness in a step has a stream of its own
_USES = 5  # streams per step


class Tables:
    """The tables of a training."""

    def __init__(self, matrix: Singles, rates: Floats, noise: CellNoise | None, *, both: bool = True) -> None:
        self.matrix, self.both, self._rates, self._noise = matrix, both, rates, noise
        count, dimension = matrix.shape
        self._all = np.arange(0 if both else count // 2, count, dtype=np.int32)
        self.sums = Sums.of(count, len(self._all), dimension)

    def descend(self, step: int, bits: RandomBits) -> None:
        """Take the step with its noise, and empty the sum."""
        rate = float(self._rates[step])
        if self._noise is None:
            move(self.matrix, self.sums.touched, self.sums, rate)
        else:
            self._noise.descend(self.matrix, self._all, self.sums, rate, bits)
        self.sums.clear()


@dataclass(eq=False)
class Training:
    """One training on stored users."""

    store: UserStore
    recipe: Recipe
    participation: Participation
    tables: Tables
    unknown: int
    offsets: Singles
    key: NoiseKey
    parameters: bytes
    content: bytes = b""

    def __post_init__(self) -> None:
        recipe, (rows, dimension) = self.recipe, self.tables.matrix.shape
        words = rows // 2
        self._drawing = PairDrawing.of(
            recipe.kept(words),
            recipe.contexts(words)[1],
            unknown=self.unknown,
            window=recipe.window,
            negatives=recipe.negatives,
        )
        self._single_pairs = recipe.unit == "pair"
        self._scratch = Scratch.of(rows, recipe.pairs * self._drawing.columns, dimension)
        self._limits = recipe.clipping.limits
        self._thresholds = self.participation.thresholds

    def step(self, step: int) -> None:
        sampled = self._sampled(step)
        keys = np.empty(len(sampled), dtype=np.uint64)
        self._bits(step, _KEYS).fill(keys)
        for pairs, ends in self._drawn(sampled, keys):
            self._add(step, pairs, ends)
        self.tables.descend(step, self._bits(step, _NOISE))

    def _bits(self, step: int, use: int) -> RandomBits:
        return self.key.stream(self.parameters, _USES * step + use, self.content)

    def _sampled(self, step: int) -> npt.NDArray[np.int64]:
        bits = self._bits(step, _COINS)
        if not self._single_pairs:
            return sampled_users(bits, self.store.levels, self._thresholds)
        [rate] = self.participation.rates.values()
        return sampled_slots(bits, len(self.store.rows) * 2 * self.recipe.window, rate)

    def _drawn(self, sampled: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> Iterator[Pairs]:
        together = max(1, _TOGETHER // self.recipe.pairs)
        for start in range(0, len(sampled), together):
            some, their_keys = sampled[start : start + together], keys[start : start + together]
            if self._single_pairs:
                pairs = self._drawing.of_slots(self.store.rows, some, their_keys)
                yield pairs, np.arange(1, len(pairs) + 1)
            else:
                starts, stops = self.store.offsets[some], self.store.offsets[some + 1]
                yield self._drawing.of_users(self.store.rows, starts, stops, their_keys, self.recipe.pairs)

    def _add(self, step: int, pairs: Rows, ends: npt.NDArray[np.int64]) -> None:  # noqa: ARG002
        matrix, sums, both = self.tables.matrix, self.tables.sums, self.tables.both
        add_clipped(matrix, self.offsets, pairs, ends, self._limits, both, self._scratch, sums)
