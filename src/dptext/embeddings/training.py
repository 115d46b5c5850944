"""Training steps (sample, draw pairs, clip, sum, add noise, descend) and their checkpoints.

Derivation: docs/mechanisms/skip-gram.md#embeddings-dpsgd-training
Derivation: docs/mechanisms/skip-gram.md#embeddings-dpsgd-pairs
Derivation: docs/mechanisms/skip-gram.md#embeddings-dpsgd-clipping
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.embeddings.noise import CellNoise, Cells, add_cells, compiled
from dptext.embeddings.participation import CELLS, Participation, Recipe, sampled_slots, sampled_users
from dptext.errors import DataError, RefusedError
from dptext.io.artifacts import read_tensors, tensor_bytes
from dptext.io.atomic import hashed_file
from dptext.io.batches import display_name
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.users.grouping import UserStore

NONE = -1
"""Marks a missing negative word, where the context word or the unknown one was drawn."""
TRIES = 16
"""Maximum number of attempts to draw a pair."""

Rows = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Chances = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BITS30, _BITS27, _BITS31, _BITS32 = (np.uint64(count) for count in (30, 27, 31, 32))
_LOW = np.uint64(2**32 - 1)
_LOWEST_BIT = np.uint64(1)
_SURE = 2**32 - 1


class PairDrawing(NamedTuple):
    """Public numbers for drawing pairs."""

    keep: Chances
    thresholds: Chances
    alias: Rows
    distances: Rows
    unknown: int
    window: int
    negatives: int

    @classmethod
    def of(cls, kept: Floats, negative: Floats, *, unknown: int, window: int, negatives: int) -> PairDrawing:
        """Build them from (V,) keep probabilities and (V,) weights of negative words."""
        steps = np.arange(1, window + 1)
        distances = np.repeat(steps, steps[::-1]).astype(np.int32)
        return cls(
            np.rint(kept * _SURE).astype(np.uint32), *_alias_table(negative), distances, unknown, window, negatives
        )

    @property
    def columns(self) -> int:
        return 2 + self.negatives

    def draw_users(self, rows: Rows, starts: Offsets, stops: Offsets, keys: Keys, limit: int) -> tuple[Rows, Offsets]:
        pairs = np.empty((len(keys) * limit, self.columns), dtype=np.int32)
        ends = np.empty(len(keys), dtype=np.int64)
        return pairs[: _draw_of_users(self, rows, starts, stops, keys, limit, pairs, ends)], ends

    def draw_slots(self, rows: Rows, slots: Offsets, keys: Keys) -> Rows:
        """Return (pairs, 2 + negatives) single pairs."""
        pairs = np.empty((len(slots), self.columns), dtype=np.int32)
        return pairs[: _draw_of_slots(self, rows, slots, keys, pairs)]


def _alias_table(weights: Floats) -> tuple[Chances, Rows]:
    """Return Walker's alias table of the weights: thresholds (times 2^32) and aliases."""
    left = weights * (len(weights) / weights.sum())
    thresholds, alias = np.full(len(weights), _SURE, dtype=np.uint32), np.arange(len(weights), dtype=np.int32)
    small, large = (np.flatnonzero(which) for which in (left < 1.0, left >= 1.0))  # stacks as arrays
    poorer, richer = len(small), len(large)
    small = np.concatenate([small, np.empty(len(left) - poorer, dtype=np.int64)])
    while poorer and richer:
        poorer -= 1
        poor, rich = small[poorer], large[richer - 1]
        thresholds[poor], alias[poor] = min(int(left[poor] * 2.0**32), _SURE), rich
        left[rich] -= 1.0 - left[poor]
        if left[rich] < 1.0:
            small[poorer] = rich
            poorer, richer = poorer + 1, richer - 1
    return thresholds, alias


@compiled
def _mixed(state: np.uint64) -> np.uint64:
    state = (state ^ (state >> _BITS30)) * _MIX1
    state = (state ^ (state >> _BITS27)) * _MIX2
    return state ^ (state >> _BITS31)


@compiled
def _below(bits: np.uint64, count: int) -> int:
    return int(((bits >> _BITS32) * np.uint64(count)) >> _BITS32)


@compiled
def _negatives(drawing: PairDrawing, state: np.uint64, context: int, row: Rows) -> np.uint64:
    thresholds, alias, unknown = drawing.thresholds, drawing.alias, drawing.unknown
    words = len(thresholds)
    for place in range(2, len(row)):
        state += _GOLDEN
        bits = _mixed(state)
        draws = _below(bits, words)
        if (bits & _LOW) >= np.uint64(thresholds[draws]):
            draws = int(alias[draws])
        row[place] = NONE if draws in (context, unknown) else words + draws
    return state


@compiled
def _draw_of_users(
    drawing: PairDrawing,
    rows: Rows,
    starts: Offsets,
    stops: Offsets,
    keys: Keys,
    limit: int,
    pairs: Rows,
    ends: Offsets,
) -> int:
    result = 0
    keep, distances = drawing.keep, drawing.distances
    words = len(keep)
    for user in range(len(keys)):
        state, start, stop = keys[user], starts[user], stops[user]
        for _ in range(limit if stop > start else 0):
            for _ in range(TRIES):
                state += _GOLDEN
                bits = _mixed(state)
                place = start + _below(bits, stop - start)
                word = rows[place]
                if word < 0:
                    continue
                if (bits & _LOW) > np.uint64(keep[word]):
                    continue
                state += _GOLDEN
                bits = _mixed(state)
                other = _neighbour_index(
                    rows,
                    place,
                    distances[_below(bits, len(distances))],
                    (bits & _LOWEST_BIT) == _LOWEST_BIT,
                    start,
                    stop,
                )
                if other < 0:
                    continue
                state += _GOLDEN
                if (_mixed(state) & _LOW) > np.uint64(keep[other]):
                    continue
                row = pairs[result]
                row[0], row[1] = word, words + other
                state = _negatives(drawing, state, other, row)
                result += 1
                break
        ends[user] = result
    return result


@compiled
def _neighbour_index(rows: Rows, place: int, distance: int, after: bool, start: int, stop: int) -> int:
    position = place
    for _ in range(distance):
        position = position + 1 if after else position - 1
        if position < start or position >= stop or rows[position] == -2:
            return -1
    return int(rows[position])


@compiled
def _draw_of_slots(drawing: PairDrawing, rows: Rows, slots: Offsets, keys: Keys, pairs: Rows) -> int:
    result = 0
    keep, window = drawing.keep, drawing.window
    words = len(keep)
    for number in range(len(slots)):
        place, slot = divmod(slots[number], 2 * window)
        word = rows[place]
        if word < 0:
            continue
        distance = 1 + slot // 2
        other = _neighbour_index(rows, place, distance, slot % 2 == 1, 0, len(rows))
        if other < 0:
            continue
        state = keys[number] + _GOLDEN
        bits = _mixed(state)
        if (bits & _LOW) > np.uint64(keep[word]) or _below(bits, window) >= window - distance + 1:
            continue
        state += _GOLDEN
        if (_mixed(state) & _LOW) > np.uint64(keep[other]):
            continue
        row = pairs[result]
        row[0], row[1] = word, words + other
        state = _negatives(drawing, state, other, row)
        result += 1
    return result


_SHORTER = 1 - 2.0**-20
_CLIPPED = float(CELLS)
_ONE = np.float32(1.0)


class Scratch(NamedTuple):
    """Buffers for the gradient of one unit."""

    slots: Rows
    touched: Rows
    gradient: Singles

    @classmethod
    def of(cls, rows: int, limit: int, dimension: int) -> Scratch:
        """Allocate them for units that touch at most ``limit`` of ``rows`` rows."""
        limit = min(rows, limit)
        slots, touched = np.full(rows, -1, dtype=np.int32), np.empty(limit, dtype=np.int32)
        return cls(slots, touched, np.empty((limit + 1, dimension), dtype=np.float32))


@compiled
def unit_gradient(
    tables: Singles, offsets: Singles, pairs: Rows, first: int, last: int, both: bool, scratch: Scratch
) -> int:
    """Compute the gradient (gradient) of a unit's pairs by row, and return the number of rows."""
    slots, touched, gradient = scratch
    dimension = tables.shape[1]
    contexts = pairs.shape[1] - 1
    result = 0
    errors = np.empty(contexts, dtype=np.float32)
    word_strengths = gradient[len(gradient) - 1]
    for number in range(first, last):
        pair = pairs[number]
        word = tables[pair[0]]
        for place in range(contexts):
            product = np.float32(0.0)
            row = pair[place + 1]
            if row >= 0:
                context = tables[row]
                for axis in range(dimension):
                    product += word[axis] * context[axis]
                product += offsets[row]
            errors[place] = product
        for place in range(contexts):
            errors[place] = _ONE / (_ONE + np.float32(math.exp(-errors[place])))
        errors[0] -= _ONE
        word_strengths[:] = np.float32(0.0)
        for place in range(contexts):
            row = pair[place + 1]
            if row < 0:
                continue
            error = errors[place]
            if both:
                context = tables[row]
                for axis in range(dimension):
                    word_strengths[axis] += error * context[axis]
            slot = slots[row]
            if slot < 0:
                slots[row], touched[result] = result, row
                into = gradient[result]
                result += 1
                for axis in range(dimension):
                    into[axis] = error * word[axis]
            else:
                into = gradient[slot]
                for axis in range(dimension):
                    into[axis] += error * word[axis]
        if not both:
            continue
        row = pair[0]
        slot = slots[row]
        if slot < 0:
            slots[row], touched[result] = result, row
            gradient[result] = word_strengths
            result += 1
        else:
            into = gradient[slot]
            for axis in range(dimension):
                into[axis] += word_strengths[axis]
    return result


@compiled
def _clip_factor(gradient: Singles, count: int, touched: Rows, half: int, cells: float) -> float:
    """Return the factor that clips a gradient and converts it to cells (cells); 0 if the norm is 0 or not finite."""
    of_words = of_contexts = 0.0
    for number in range(count):
        row = gradient[number]
        part = 0.0
        for axis in range(len(row)):
            part += np.float64(row[axis]) * np.float64(row[axis])
        if touched[number] < half:
            of_words += part
        else:
            of_contexts += part
    length = math.sqrt(of_words + of_contexts)
    if not 0.0 < length < math.inf:
        return 0.0
    return min(cells, _CLIPPED / length) * _SHORTER


@compiled
def add_clipped(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    ends: npt.NDArray[np.int64],
    cells: float,
    both: bool,
    scratch: Scratch,
    sums: Cells,
) -> None:
    """Add the clipped gradient of each unit to the sums; ``cells`` is the number of cells of a vector of norm 1."""
    slots, touched, gradient = scratch
    half = len(tables) // 2
    factors = np.empty(len(touched), dtype=np.float64)
    first = 0
    for number in range(len(ends)):
        count = unit_gradient(tables, offsets, pairs, first, ends[number], both, scratch)
        first = ends[number]
        factors[:count] = _clip_factor(gradient, count, touched, half, cells)
        for slot in range(count):
            slots[touched[slot]] = -1
        add_cells(sums, touched[:count], gradient, factors[:count])


_HEAD = {"format": "dptext-training", "version": "1", "secrecy": "private: a working file, not a release"}


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """(R, d) noisy tables and the number of steps done."""

    tables: npt.NDArray[np.float32]
    steps: int

    @property
    def sha256(self) -> str:
        digest = hashlib.sha256(b"%d steps " % self.steps)  # a smaller number would repeat steps and their noise
        digest.update(np.ascontiguousarray(self.tables).data)
        return digest.hexdigest()


def write_checkpoint(path: Path, checkpoint: Checkpoint, parameters: bytes) -> None:
    """Replace the file atomically; ``parameters`` is a digest of the public plan."""
    head = {"parameters": parameters.hex(), "steps": str(checkpoint.steps), "sha256": checkpoint.sha256}
    with hashed_file(path, owner_only=True) as stream:
        stream.write(tensor_bytes({"tables": checkpoint.tables}, _HEAD | head))


def read_checkpoint(path: Path, shape: tuple[int, int], parameters: bytes) -> Checkpoint | None:
    """Return the checkpoint if shape and parameters match; None if there is no file."""
    if not path.exists():
        return None
    name = display_name(path)
    tensors, head = read_tensors(path, source=f"the checkpoint {name}")
    if not head.items() >= _HEAD.items():
        raise DataError(f"{name} is not a checkpoint of a training: name another file")
    if head.get("parameters") != parameters.hex():
        raise RefusedError(
            f"{name} belongs to a training with other parameters, words or vectors: use the same ones, or name another "
            "file"
        )
    checkpoint = Checkpoint(tensors["tables"].copy(), int(head["steps"]))
    if checkpoint.tables.shape != shape or checkpoint.sha256 != head.get("sha256"):
        raise DataError(f"the checkpoint {name} is damaged: delete it and start again")
    return checkpoint


Pairs = tuple[Rows, npt.NDArray[np.int64]]
"""(pairs, columns) rows of tables; (units,) end of each unit's pairs."""

_TOGETHER = 1 << 14  # pairs drawn in a block
_COINS, _KEYS, _NOISE = 0, 1, 3  # each use of randomness in a step has a separate stream
_USES = 5  # streams per step


class Tables:
    """The tables of a training."""

    def __init__(self, matrix: Singles, rates: Floats, noise: CellNoise | None, *, both: bool = True) -> None:
        self.matrix, self.both, self._rates, self._noise = matrix, both, rates, noise
        count, dimension = matrix.shape
        self._trained = np.arange(0 if both else count // 2, count, dtype=np.int32)
        self.sums: Cells = np.zeros((count, dimension), dtype=np.int32)

    def descend(self, step: int, bits: RandomBits) -> None:
        """Take the step with its noise, and clear the sum."""
        rate = float(self._rates[step])
        if self._noise is None:
            self.matrix -= (self.sums * rate).astype(np.float32)
        else:
            self._noise.descend(self.matrix, self._trained, self.sums, rate, bits)
        self.sums[:] = 0


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
        self._cells = CELLS / recipe.clip
        self._thresholds = self.participation.thresholds

    def step(self, step: int) -> None:
        """Sample units, add their clipped gradients, and take the step with its noise."""
        bits = self._bits(step, _COINS)
        if self._single_pairs:
            [rate] = self.participation.rates.values()
            sampled = sampled_slots(bits, len(self.store.rows) * 2 * self.recipe.window, rate)
        else:
            sampled = sampled_users(bits, self.store.levels, self._thresholds)
        keys = np.empty(len(sampled), dtype=np.uint64)
        self._bits(step, _KEYS).fill(keys)
        for pairs, ends in self._drawn(sampled, keys):
            self._add(step, pairs, ends)
        self.tables.descend(step, self._bits(step, _NOISE))

    def _bits(self, step: int, use: int) -> RandomBits:
        return self.key.stream(self.parameters, _USES * step + use, self.content)

    def _drawn(self, sampled: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> Iterator[Pairs]:
        together = max(1, _TOGETHER // self.recipe.pairs)
        for start in range(0, len(sampled), together):
            some, their_keys = sampled[start : start + together], keys[start : start + together]
            if self._single_pairs:
                pairs = self._drawing.draw_slots(self.store.rows, some, their_keys)
                yield pairs, np.arange(1, len(pairs) + 1)
            else:
                starts, stops = self.store.offsets[some], self.store.offsets[some + 1]
                yield self._drawing.draw_users(self.store.rows, starts, stops, their_keys, self.recipe.pairs)

    def _add(self, step: int, pairs: Rows, ends: npt.NDArray[np.int64]) -> None:  # noqa: ARG002
        matrix, sums, both = self.tables.matrix, self.tables.sums, self.tables.both
        add_clipped(matrix, self.offsets, pairs, ends, self._cells, both, self._scratch, sums)
