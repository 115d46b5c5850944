"""One matrix per user, clipped to a norm, and their sum."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dptext.noise.gaussian_sums import Floats, Integers, clipped_matrices
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.text.tokens import Vocabulary

UNIT = 2.0**-22
"""Of a feature."""
LARGEST = 64.0
"""No feature is larger: white ones seldom exceed 10."""

_MANDELBROT = 2.7
_FREQUENT = 1e-4  # a of equation (weights)
_FLAT, _ROUNDING = 1e-9, 1e-13  # of the largest variance, of the square of the largest mean: below is rounding only


@dataclass(frozen=True, eq=False)
class ContextFeatures:
    """Frozen features."""

    matrix: npt.NDArray[np.int32]
    fingerprint: str

    @classmethod
    def of(cls, rows: Floats, unknown_row: int) -> ContextFeatures:
        """Features from (V, k) numbers; the unknown word, and what is no number, say nothing."""
        matrix = np.zeros((len(rows) + 1, rows.shape[1]), dtype=np.int32)
        finite = np.where(np.isfinite(rows), rows, 0.0)
        matrix[:-1] = np.rint(np.clip(finite, -LARGEST, LARGEST) / UNIT)
        matrix[unknown_row] = 0
        matrix.flags.writeable = False
        return cls(matrix, hashlib.sha256(np.ascontiguousarray(matrix, dtype="<i4").tobytes()).hexdigest())

    @property
    def words(self) -> int:
        return len(self.matrix) - 1

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[1])


def public_frequencies(words: int) -> Floats:
    """(words,) p_r of equation (weights): what a word's place in a public list says about how often it is used."""
    frequencies = 1.0 / (np.arange(1, words + 1) + _MANDELBROT)
    normalised: Floats = frequencies / frequencies.sum()
    return normalised


def features_of_vectors(matrix: npt.NDArray[np.float32], vocabulary: Vocabulary) -> ContextFeatures:
    """Centred, whitened, weighted public vectors: (P, d) of the first P words; the words after them say nothing."""
    known = len(matrix)
    frequencies = public_frequencies(len(vocabulary))[:known]
    weights = _FREQUENT / (_FREQUENT + frequencies)  # (weights)
    share = frequencies * weights
    if vocabulary.unknown_row < known:
        share[vocabulary.unknown_row] = 0.0
    share /= share.sum()
    points = matrix.astype(np.float64)
    mean = share @ points
    points -= mean
    variances, directions = np.linalg.eigh((share[:, None] * points).T @ points)
    kept = variances > _FLAT * max(float(variances.max()), 0.0) + _ROUNDING * float(np.abs(mean).max()) ** 2
    white = (points @ directions[:, kept]) / np.sqrt(variances[kept])
    rows = np.zeros((len(vocabulary), max(1, int(kept.sum()))))
    rows[:known, : white.shape[1]] = white * weights[:, None]
    return ContextFeatures.of(rows, vocabulary.unknown_row)


def random_features(vocabulary: Vocabulary, dimension: int) -> ContextFeatures:
    """A direction drawn at random for every word, weighted: the same for the same word in every run, and so public."""
    weights = _FREQUENT / (_FREQUENT + public_frequencies(len(vocabulary)))  # (weights)
    rows = np.empty((len(vocabulary), dimension))
    for row, word in enumerate(vocabulary.words):
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        seed = int.from_bytes(digest[:8], "big")
        rows[row] = RandomBits.keyed(seed_bytes(b"dptext context features", seed)).normal(dimension)
    return ContextFeatures.of(rows * weights[:, None] / np.sqrt(dimension), vocabulary.unknown_row)


Chunk = tuple[npt.NDArray[np.int32], Integers]
"""(words,) rows of the vocabulary, -1 for other words; (documents,) how many of them each document has."""
Summed = tuple[Integers, Integers, Integers]
"""(m,) keys owner * V + word, ascending; (m, k) sums of contexts in units of `UNIT`; (m,) counts."""

_PIECE = 1 << 16  # words of one document worked on at once: a longer one is cut there
_BATCH = 1 << 12  # words of several users at once: a word is some 2 KB of matrices on the way


@dataclass(frozen=True)
class UserText:
    """What one user wrote, as chunks of whole documents, and the clipping norm C of their matrix."""

    chunks: Iterable[Chunk]
    norm: float = 1.0


@dataclass(eq=False)
class UserMatrixSum:
    """The sum of all users' matrices."""

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
            if second is not None or len(first[0]) >= _PIECE:
                self._add_matrices(*self._of_one(first, second, chunks), np.array([user.norm]))
                continue
            if size + len(first[0]) > _BATCH:
                self._add_batch(batch)
                batch, size = [], 0
            batch.append((first, user.norm))
            size += len(first[0]) + len(first[1])
        self._add_batch(batch)
        return count

    def _add_batch(self, batch: list[tuple[Chunk, float]]) -> None:
        if not batch:
            return
        rows = np.concatenate([chunk[0] for chunk, _ in batch])
        lengths = np.concatenate([chunk[1] for chunk, _ in batch])
        owner = np.repeat(np.arange(len(batch)), [len(chunk[0]) for chunk, _ in batch])
        keys, sums, counts = self._summed(rows, lengths, owner)
        self._add_matrices(keys, sums, counts, np.array([norm for _, norm in batch]))

    def _of_one(self, first: Chunk, second: Chunk | None, rest: Iterator[Chunk]) -> Summed:
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
        if len(keys) == 0:
            return
        owner, words = np.divmod(keys, self.features.words)
        rows = sums * (UNIT * self.weights[words] / counts)[:, None]  # (rows)
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        cells = clipped_matrices(rows, starts, norms[owner[starts]])
        words, _, order, first = _grouped(words)
        self.cells[words] += np.add.reduceat(cells[order], first, axis=0)


def _pieces(chunk: Chunk) -> Iterator[Chunk]:
    rows, lengths = chunk
    start, size = 0, 0
    piece: list[int] = []
    for length in lengths.tolist():
        for segment in [*[_PIECE] * (length // _PIECE), length % _PIECE]:
            if size + segment > _PIECE:
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
    keys, sums, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
    if len(keys) == 0:
        return keys, sums, counts
    keys, _, order, first = _grouped(keys)
    return keys, np.add.reduceat(sums[order], first, axis=0), np.add.reduceat(counts[order], first)
