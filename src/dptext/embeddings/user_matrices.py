"""One matrix a user, clipped to a norm by `clipped_matrices`; their sum, the only thing that is computed from private
texts; and the noise on it.

For a user u and a word w of the vocabulary, let n be how often u wrote w and s_w the sum over these occurrences of the
features of the words at most ``window`` places before or after, in the same document. The user's matrix has the rows

    x_w = omega_w s_w / n,                                                                                    (rows)

omega_w a public weight of the word: what stands around the word in their texts, on average. (More weight for what they
say often adds more of their own topic than of the word's meaning.) The whole matrix is then scaled to the clipping
norm C, all words of the user together,

    y = C x / ||x||,                                                                                         (scaled)

and every number rounded *towards zero* to a multiple of 2^-24. Sums of features are sums of integers, and everything
else is done number by number, or on integers: so a user's matrix is a function of their own text, to the last bit, no
matter who is worked on together with them.

**Sensitivity.** For every user (one word repeated, every word once, no word, a million words) the Euclidean length of
their rounded matrix is at most C. *Proof.* It is checked, in integers: with y = 2^-24 m, m integers below 2^25 in size,
the sum of m^2 is at most C^2 2^48 (no overflow: see `clipped_matrices`), else the matrix is cut until it is. Nothing
of it depends on anybody else: features, weights, window and C are public. The sum over users is one of integers, so it
is exact in any order: with and without a user it differs by their matrix, to the last bit, and by at most C under
add/remove, C + C' under substitution. (A sum of floating-point numbers has no such bound: the roundings of all later
additions change with one user.) |

**Noise** comes once, on every number of every row, and all |V| rows get it, used or not: which words have a row is
public, and tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dptext.embeddings.context_features import UNIT, ContextFeatures
from dptext.noise.rounded import rounded_gaussian
from dptext.privacy.randomness import RandomBits

__all__ = ["CELL", "MOST_USERS", "UserMatrixSum", "UserText", "clipped_matrices", "noisy_matrix"]

CELL = 2.0**-24
"""The grid of a user's numbers."""
MOST_USERS = 2**28
"""So many users may take part: below, no sum exceeds what a double holds exactly."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Chunk = tuple[npt.NDArray[np.int32], Integers]
"""(words,) rows of the vocabulary, -1 for other words; (documents,) how many of them each document has."""
Summed = tuple[Integers, Integers, Integers]
"""(m,) keys owner * V + word, ascending; (m, k) sums of contexts in units of `UNIT`; (m,) counts."""

_TOGETHER = 1 << 16  # words worked on at once, so that memory stays small
_STEPS = 12  # the grid of the outcome is 2^-12 of the noise, or finer
_ROWS_AT_ONCE = 1024
_SQUARE_UNITS = 2.0**34  # of a squared length: 4e8 squares of at most 1 add up to less than 2^63


@dataclass(frozen=True)
class UserText:
    """What one user wrote, as chunks of whole documents, and the clipping norm C of their matrix."""

    chunks: Iterable[Chunk]
    norm: float = 1.0


@dataclass(eq=False)
class UserMatrixSum:
    """The sum of all users' matrices. **Private: it must not leave the curator.**

    Args:
        features: of contexts.
        weights: (V,) omega of equation (rows), finite, at least 0, public.
        window: words on either side.

    Attributes:
        cells: (V, k) int64, the sum in units of `CELL`.
    """

    features: ContextFeatures
    weights: Floats
    window: int
    cells: Integers = field(init=False)
    _by_dimension: npt.NDArray[np.int32] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.cells = np.zeros((self.features.words, self.features.dimension), dtype=np.int64)
        self._by_dimension = np.ascontiguousarray(self.features.matrix.T)

    def add(self, users: Iterable[UserText]) -> int:
        """Add the matrices of users, each of whom must bring all their texts at once; how many there were."""
        batch: list[tuple[Chunk, float]] = []
        size = count = 0
        for user in users:
            count += 1
            chunks = iter(user.chunks)
            first = next(chunks, None)
            if first is None:
                continue
            second = next(chunks, None)
            if second is not None or len(first[0]) >= _TOGETHER:
                self._add_matrices(*self._of_one(first, second, chunks), np.array([user.norm]))
                continue
            if size + len(first[0]) > _TOGETHER:
                self._add_batch(batch)
                batch, size = [], 0
            batch.append((first, user.norm))
            size += len(first[0]) + len(first[1])
        self._add_batch(batch)
        return count

    def _add_batch(self, batch: list[tuple[Chunk, float]]) -> None:
        """Users who wrote little, several at once."""
        if not batch:
            return
        rows = np.concatenate([chunk[0] for chunk, _ in batch])
        lengths = np.concatenate([chunk[1] for chunk, _ in batch])
        owner = np.repeat(np.arange(len(batch)), [len(chunk[0]) for chunk, _ in batch])
        keys, sums, counts = self._summed(rows, lengths, owner)
        self._add_matrices(keys, sums, counts, np.array([norm for _, norm in batch]))

    def _of_one(self, first: Chunk, second: Chunk | None, rest: Iterator[Chunk]) -> Summed:
        """One user who wrote much: chunk by chunk, in memory for one matrix."""
        found: Summed | None = None
        for chunk in (first, *(() if second is None else (second,)), *rest):
            for rows, lengths in _pieces(chunk):
                part = self._summed(rows, lengths, np.zeros(len(rows), dtype=np.int64))
                found = part if found is None else _merged((found, part))
        assert found is not None
        return found

    def _summed(self, rows: npt.NDArray[np.int32], lengths: Integers, owner: Integers) -> Summed:
        """The s_w of (rows), a feature at a time: one that fits into the cache, with everything sorted by key once."""
        known = np.flatnonzero(rows >= 0)
        keys, counts, order, first = _grouped(owner[known] * self.features.words + rows[known])
        words = known[order]
        start, end = (each[words] for each in _reach(lengths, self.window))
        sums = np.empty((len(keys), self.features.dimension), dtype=np.int64)
        running = np.zeros(len(rows) + 1, dtype=np.int64)
        for column, feature in enumerate(self._by_dimension):
            values = feature[rows]
            np.cumsum(values, dtype=np.int64, out=running[1:])
            contexts = running[end]
            contexts -= running[start]
            contexts -= values[words]
            sums[:, column] = np.add.reduceat(contexts, first) if len(first) else 0
        return keys, sums, counts

    def _add_matrices(self, keys: Integers, sums: Integers, counts: Integers, norms: Floats) -> None:
        """Rows of whole users, by ascending owner: weigh, bound, add."""
        if len(keys) == 0:
            return
        owner, words = np.divmod(keys, self.features.words)
        rows = sums * (UNIT * self.weights[words] / counts)[:, None]  # (rows)
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        cells = clipped_matrices(rows, starts, norms[owner[starts]])
        words, _, order, first = _grouped(words)
        self.cells[words] += np.add.reduceat(cells[order], first, axis=0)


def noisy_matrix(cells: npt.NDArray[np.int64], sigma: float, bits: RandomBits) -> npt.NDArray[np.float64]:
    """(V, k) float64: cells in units of `CELL`, plus N(0, sigma^2) on each, rounded to a public grid.

    **Guarantee.** That of the real-valued Gaussian mechanism of this sigma on a sum whose sensitivity is the norm C
    of a user's matrix (above), exactly: cells are integers that doubles hold (for at most
    `MOST_USERS` users), and the outcome has the law of the rounded real number (`dptext.noise.rounded`), so finite
    arithmetic adds nothing to epsilon. Assumption: `dptext.noise.rounded.ELEMENTARY`.

    The ``bits`` are of this release alone. A sigma of 0 gives the sum itself, **which is private**.
    """
    exact = cells.astype(np.float64)
    if sigma == 0.0:
        return exact * CELL
    scaled = sigma / CELL
    step = 2.0 ** (math.floor(math.log2(scaled)) - _STEPS)
    for start in range(0, len(exact), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        exact[block] = rounded_gaussian(bits, exact[block], sigma=scaled, step=step)
    exact *= step * CELL
    return exact


def _pieces(chunk: Chunk) -> Iterator[Chunk]:
    """A chunk in pieces of at most `_TOGETHER` words.

    A longer document is cut, and loses the contexts at the cut: always at the same places, counted from its own start.
    Where a chunk begins has to do with other users, and must not show in the matrix of this one.
    """
    rows, lengths = chunk
    start, size = 0, 0
    piece: list[int] = []
    for length in lengths.tolist():
        for segment in [*[_TOGETHER] * (length // _TOGETHER), length % _TOGETHER]:
            if size + segment > _TOGETHER:
                yield rows[start : start + size], np.array(piece, dtype=np.int64)
                start, size, piece = start + size, 0, []
            piece.append(segment)
            size += segment
    yield rows[start : start + size], np.array(piece, dtype=np.int64)


def _reach(lengths: Integers, window: int) -> tuple[Integers, Integers]:
    """(n,) where the words begin that stand at most ``window`` places from each in its document; past their end."""
    ends = np.cumsum(lengths)
    place = np.arange(int(lengths.sum()))
    return (
        np.maximum(place - window, np.repeat(ends - lengths, lengths)),
        np.minimum(place + window + 1, np.repeat(ends, lengths)),
    )


def _grouped(keys: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Distinct keys, ascending; how often each stands there; the order that sorts them; where each begins in it."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))  # keys are at least 0
    return keys[first], np.diff(first, append=len(keys)), order, first


def _merged(parts: tuple[Summed, Summed]) -> Summed:
    """Rows of equal key added up."""
    keys, sums, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
    if len(keys) == 0:
        return keys, sums, counts
    keys, _, order, first = _grouped(keys)
    return keys, np.add.reduceat(sums[order], first, axis=0), np.add.reduceat(counts[order], first)


def clipped_matrices(rows: Floats, starts: Integers, norms: Floats) -> Integers:
    """(m, k) int64 in units of `CELL`: the rows of each user scaled to their clipping norm C, rounded towards zero, and
    checked, from (m, k) finite numbers.

    Args:
        starts: (u,) the first row of each user.
        norms: (u,) C, above 0 and at most 1.
    """
    # Halving and doubling are exact, and so is a maximum: every matrix is first brought to numbers of at most 1.
    largest = np.maximum.reduceat(np.abs(rows).max(axis=1), starts)
    exponents = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    sizes = np.diff(np.r_[starts, len(rows)])
    rows = np.clip(np.nan_to_num(np.ldexp(rows, -np.repeat(exponents, sizes)[:, None])), -1.0, 1.0)
    # The squared length in whole units, each square rounded up: an integer sum, so no order of adding matters.
    squares = np.ceil(rows * rows * _SQUARE_UNITS).astype(np.int64).sum(axis=1)
    length = np.sqrt(np.add.reduceat(squares, starts) / _SQUARE_UNITS)
    # 1 - 2^-30 covers the rounding of these few operations
    scale = np.divide(norms / CELL * (1 - 2.0**-30), length, out=np.zeros_like(length), where=length > 0)
    scaled = rows * np.repeat(scale, sizes)[:, None]  # (scaled)
    cells: Integers = np.trunc(scaled).astype(np.int64)
    allowed = np.array([_allowed(norm) for norm in norms.tolist()], dtype=np.int64)
    while True:
        # In coarse units first: where these add up to no more than 2^40, the whole sum stays below 2^62.
        coarse = np.add.reduceat(((np.abs(cells) >> 10) ** 2).sum(axis=1), starts)
        exact = np.add.reduceat((cells * cells).sum(axis=1), starts)
        over = (coarse > 2**40) | (exact > allowed)
        if not over.any():
            return cells
        factor = np.repeat(np.where(over, 1 - 2.0**-20, 1.0), sizes)[:, None]
        cells = np.trunc(cells * factor).astype(np.int64)


@lru_cache(maxsize=1024)  # a norm is that of a level
def _allowed(norm: float) -> int:
    """The greatest integer that is at most C^2 2^48: seldom a double, so not computed with any."""
    return math.floor(Fraction(norm) ** 2 * 2**48)
