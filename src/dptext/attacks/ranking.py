"""Candidates ranked for every row, block by block, so that the scores of all pairs never stand in memory together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.learners import words_to_numbers
from dptext.attacks.rows import Rows, are_texts, as_rows, as_texts, lengths_of, optional, unit_rows
from dptext.checks import choice
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

__all__ = [
    "Pairs",
    "Similarity",
    "rank_scores",
    "side_by_side",
    "similarities",
]

Ids: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Pairs: TypeAlias = Callable[[int, int], npt.NDArray[Any]]
"""(start, stop) -> (stop - start, originals): scores of some private rows; higher means likelier."""

_ENTRIES = 1 << 21  # scores in memory at a time, for each thread
_LEAST_ROWS = 8
_EPS = float(np.finfo(np.float64).eps)
_LEAST = 1e-290  # products below have lost digits, or are 0


def rank_scores(pairs: Pairs, true: Ids, originals: int, bits: RandomBits) -> Ids:
    """(m,) how many candidates stand before the true one (0: it is named first); ties in random order."""
    before, equal = np.empty_like(true), np.empty_like(true)
    step = max(_LEAST_ROWS, _ENTRIES // originals)

    def look(start: int) -> None:
        stop = min(start + step, true.size)
        block = np.asarray(pairs(start, stop))
        if block.shape != (stop - start, originals):
            raise ParameterError(f"scores must have shape {(stop - start, originals)} here, got {block.shape}")
        own = block[np.arange(stop - start), true[start:stop], None]
        ahead, alike = block > own, block == own
        # a NaN is neither above nor below nor equal: where there is one, these do not add up
        if not (ahead | alike | (block < own)).all():
            raise ParameterError("scores must be numbers or minus infinity, got NaN")
        if isinstance(pairs, Similarity):
            pairs.settle(start, true[start:stop], block, ahead, alike)
        before[start:stop], equal[start:stop] = ahead.sum(axis=1), alike.sum(axis=1)

    for_each_block(look, range(0, true.size, step))
    return before + bits.below(equal.astype(np.uint64)).astype(np.int64)


def similarities(
    original: Rows,
    private: Rows,
    *,
    similarity: str = "cosine",
    names: tuple[str, str] = ("original", "private"),
) -> tuple[Similarity, tuple[int, int]]:
    """Scores of all pairs as a function of blocks, and (private rows, originals); see `dptext.attacks.linkage`."""
    choice("similarity", similarity, ("cosine", "dot", "euclidean"))
    left, right = side_by_side(original, private, names=names)
    sparse = hasattr(left, "tocsr") or hasattr(right, "tocsr")
    if sparse:
        if similarity == "euclidean":
            raise ParameterError("similarity must be 'cosine' or 'dot' for sparse rows, got 'euclidean'")
        left, right = (optional("scipy.sparse").csr_matrix(each) for each in (left, right))
    return (_Sparse if sparse else _Dense)(left, right, similarity), (right.shape[0], left.shape[0])


def side_by_side(original: Rows, private: Rows, *, names: tuple[str, str] = ("original", "private")) -> tuple[Any, Any]:
    """Two matrices of the same columns: numbers as they are, words weighted by tf-idf over both sides."""
    if are_texts(original) != are_texts(private):
        raise ParameterError(
            f"{names[1]} must be of the kind of {names[0]}: texts or bags of words, or rows of numbers"
        )
    if are_texts(original):
        left, right = as_texts(names[0], original), as_texts(names[1], private)
        both = words_to_numbers(pairs=False).fit_transform(left + right)
        return both[: len(left)], both[len(left) :]
    first, second = as_rows(names[0], original), as_rows(names[1], private)
    if first.shape[1] != second.shape[1]:
        raise ParameterError(
            f"{names[1]} must have as many numbers in a row as {names[0]}, {first.shape[1]:,}, got {second.shape[1]:,}"
        )
    return first, second


class Similarity(ABC):
    """Scores of private rows (right) and candidates (left): (start, stop) -> (stop - start, candidates) float64."""

    def __init__(self, left: Any, right: Any, similarity: str) -> None:
        self._by_distance = similarity != "dot"
        self._unit = similarity == "cosine"
        self._left, self._right = (unit_rows(left), unit_rows(right)) if self._unit else (left, right)

    @abstractmethod
    def __call__(self, start: int, stop: int) -> Floats:
        """Scores as a product of matrices gives them."""

    @abstractmethod
    def rounding(self, start: int, stop: int) -> tuple[Floats, Floats]:
        """(how far each of these scores may be off by rounding, the product of both lengths), both of their shape."""

    @property
    @abstractmethod
    def _kinds(self) -> Ids:
        """(candidates,) equal numbers for equal rows."""

    @abstractmethod
    def _leads(self, rows: Ids, ahead: Ids, behind: Ids) -> tuple[Floats, Floats]:
        """(k,) by how much the first candidate's score lies above the second's, and how far this may be off."""

    def settle(
        self,
        start: int,
        true: Ids,
        scores: Floats,
        ahead: npt.NDArray[np.bool_],
        alike: npt.NDArray[np.bool_],
    ) -> None:
        """Compare the true candidate with those within rounding of it by differences of rows; changes the last two."""
        places = np.arange(true.size)
        rounding, lengths = self.rounding(start, start + true.size)
        own = places, true
        close = np.abs(scores - scores[own][:, None]) <= rounding + rounding[own][:, None]
        # rows that share no column have a product of exactly 0, unless it was too small to be another number
        disjoint = (scores == 0) & (lengths > _LEAST)
        close &= ~(disjoint & disjoint[own][:, None])
        close[own] = False
        rows, columns = np.nonzero(close)
        if not rows.size:
            return
        same = self._kinds[columns] == self._kinds[true[rows]]
        ahead[rows, columns], alike[rows, columns] = False, same
        rows, columns = rows[~same], columns[~same]
        step = max(1, _ENTRIES // self._left.shape[1])
        for first in range(0, rows.size, step):
            at = rows[first : first + step], columns[first : first + step]
            lead, doubt = self._leads(start + at[0], at[1], true[at[0]])
            ahead[at], alike[at] = lead > doubt, np.abs(lead) <= doubt


class _Dense(Similarity):
    """Rows of numbers, of any scale."""

    def __init__(self, left: Floats, right: Floats, similarity: str) -> None:
        super().__init__(left, right, similarity)
        first, second = self._left, self._right
        if similarity == "euclidean":
            centre = np.median(first, axis=0)  # distances stay, squares are smaller, and no huge row moves it
            first, second = first - centre, second - centre
        # candidates on one scale, and each private row on its own, which leaves its order as it is: on one scale for
        # both, a single huge row would push all others below the least float
        scale = max(float(np.abs(first).max()), np.finfo(np.float64).tiny)
        second = second / scale
        own = np.maximum(np.abs(second).max(axis=1, keepdims=True), 1.0)
        self._first, self._second = np.ascontiguousarray(first / scale), np.ascontiguousarray(second / own)
        # -|a - b|^2 / 2 but for a term that every candidate of a row shares
        self._weight = 1.0 / own if similarity == "euclidean" else np.zeros_like(own)
        self._squares = (self._first**2).sum(axis=1)
        self._lengths = np.sqrt((self._second**2).sum(axis=1, keepdims=True)), np.sqrt(self._squares)

    def __call__(self, start: int, stop: int) -> Floats:
        product: Floats = self._second[start:stop] @ self._first.T
        product -= self._weight[start:stop] / 2 * self._squares
        return product

    def rounding(self, start: int, stop: int) -> tuple[Floats, Floats]:
        lengths = self._lengths[0][start:stop] * self._lengths[1]
        # n products and their sum are off by at most n eps |a| |b| (Higham 2002, section 3.1); the centre adds to both
        share = 2 * (self._first.shape[1] + 4) * _EPS
        return share * (lengths + self._weight[start:stop] * self._squares) + _LEAST, lengths

    @cached_property
    def _kinds(self) -> Ids:
        rows = np.ascontiguousarray(self._left + 0.0)  # minus zero is zero
        whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        return np.unique(whole, return_inverse=True)[1].astype(np.int64)

    def _leads(self, rows: Ids, ahead: Ids, behind: Ids) -> tuple[Floats, Floats]:
        # halves: the difference of two huge numbers is no infinity
        private, one, other = self._right[rows] / 2, self._left[ahead] / 2, self._left[behind] / 2
        apart = one - other
        # |b - a'|^2 - |b - a|^2 = (a - a') . ((b - a) + (b - a'))
        seen = (private - one) + (private - other) if self._by_distance else private
        if self._unit:  # a row without direction is at right angles to all
            without = ~(private.any(axis=1) & one.any(axis=1) & other.any(axis=1))
            seen[without] = private[without]
        apart, seen = _scaled(apart), _scaled(seen)
        lead: Floats = (apart * seen).sum(axis=1)
        if not self._unit:
            return lead, np.zeros(lead.size)
        # rows of length 1 are known to rounding only: of equal directions none is nearer
        largest = np.abs(one - other).max(axis=1)
        return lead, 4 * _EPS * np.sqrt((seen**2).sum(axis=1)) / np.where(largest > 0, largest, 1.0)


class _Sparse(Similarity):
    """Rows of counts or weights, most of them 0."""

    def __init__(self, left: Any, right: Any, similarity: str) -> None:
        super().__init__(left, right, similarity)
        self._across = self._left.T.tocsr()
        self._lengths = lengths_of(self._right)[:, None], lengths_of(self._left)
        self._most = int(np.diff(self._right.indptr).max())

    def __call__(self, start: int, stop: int) -> Floats:
        found: Floats = (self._right[start:stop] @ self._across).toarray()
        return found

    def rounding(self, start: int, stop: int) -> tuple[Floats, Floats]:
        lengths = self._lengths[0][start:stop] * self._lengths[1]
        return 2 * (self._most + 4) * _EPS * lengths + _LEAST, lengths

    @cached_property
    def _kinds(self) -> Ids:
        rows = self._left.sorted_indices()
        kinds: dict[tuple[bytes, bytes], int] = {}
        rows.eliminate_zeros()
        bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        keys = ((rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in bounds)
        return np.array([kinds.setdefault(key, len(kinds)) for key in keys], dtype=np.int64)

    def _leads(self, rows: Ids, ahead: Ids, behind: Ids) -> tuple[Floats, Floats]:
        private, one, other = self._right[rows], self._left[ahead], self._left[behind]
        apart = one - other
        seen = private
        if self._by_distance:
            whole = lengths_of(private) * lengths_of(one) * lengths_of(other) > 0
            seen = private + (private - one - other).multiply(whole[:, None]).tocsr()
        lead = np.asarray(apart.multiply(seen).sum(axis=1)).ravel()
        return lead, 4 * _EPS * lengths_of(seen) if self._unit else np.zeros(lead.size)


def _scaled(rows: Floats) -> Floats:
    """Each row divided by its largest number, so that products neither vanish nor overflow."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled: Floats = rows / np.where(largest > 0, largest, 1.0)
    return scaled
