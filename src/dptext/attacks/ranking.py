"""Candidates ranked for every row, block by block, so that the scores of all pairs never stand in memory together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.given import Rows, are_texts, as_people, as_rows, as_texts, random_state
from dptext.attacks.learners import words_to_numbers
from dptext.errors import ParameterError
from dptext.estimates import Estimate, share, share_over_people
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

__all__ = [
    "SIMILARITIES",
    "Pairs",
    "mean_of_rows",
    "rank_scores",
    "share_of_rows",
    "side_by_side",
    "similarities",
    "unit_rows",
]

Ids: TypeAlias = npt.NDArray[np.int64]
Pairs: TypeAlias = Callable[[int, int], npt.NDArray[Any]]
"""(start, stop) -> (stop - start, originals): scores of some private rows; higher means likelier."""

SIMILARITIES = ("cosine", "dot", "euclidean")
_ENTRIES = 1 << 22  # scores in memory at a time, for each thread
_LEAST_ROWS = 8


def rank_scores(pairs: Pairs, true: Ids, originals: int, bits: RandomBits) -> Ids:
    """(m,) how many candidates stand before the true one (0: it is named first); ties in random order.

    Raises:
        ParameterError: NaN among the scores, or blocks of another shape.
    """
    before, equal = np.empty_like(true), np.empty_like(true)
    step = max(_LEAST_ROWS, _ENTRIES // originals)

    def look(start: int) -> None:
        stop = min(start + step, true.size)
        block = np.asarray(pairs(start, stop))
        if block.shape != (stop - start, originals):
            raise ParameterError(f"scores must have shape {(stop - start, originals)} here, got {block.shape}")
        own = block[np.arange(stop - start), true[start:stop], None]
        before[start:stop] = (block > own).sum(axis=1)
        equal[start:stop] = (block == own).sum(axis=1)
        # a NaN is neither above nor below nor equal: where there is one, these do not add up
        if ((block < own).sum(axis=1) + before[start:stop] + equal[start:stop] != originals).any():
            raise ParameterError("scores must be numbers or minus infinity, got NaN")

    for_each_block(look, range(0, true.size, step))
    return before + bits.below(equal.astype(np.uint64)).astype(np.int64)


def similarities(
    original: Rows,
    private: Rows,
    *,
    similarity: str = "cosine",
    names: tuple[str, str] = ("original", "private"),
) -> tuple[Pairs, tuple[int, int]]:
    """Scores of all pairs as a function of blocks, and (private rows, originals); see `dptext.attacks.linkage`."""
    if similarity not in SIMILARITIES:
        raise ParameterError(f"similarity must be one of {', '.join(SIMILARITIES)}, got {similarity!r}")
    left, right = side_by_side(original, private, names=names)
    shape = (right.shape[0], left.shape[0])
    if hasattr(left, "tocsr") or hasattr(right, "tocsr"):
        return _sparse(left, right, similarity), shape
    return _dense(left, right, similarity), shape


def side_by_side(original: Rows, private: Rows, *, names: tuple[str, str] = ("original", "private")) -> tuple[Any, Any]:
    """Two matrices of the same columns: numbers as they are, words weighted by tf-idf over both sides.

    Raises:
        ParameterError: one side is words and the other numbers, or their rows differ in length.
    """
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


def _dense(left: Any, right: Any, similarity: str) -> Pairs:
    if similarity == "cosine":
        left, right = unit_rows(left), unit_rows(right)
    elif similarity == "euclidean":
        centre = np.median(left, axis=0)  # distances stay, float32 keeps more of them, and no huge row moves it
        left, right = left - centre, right - centre
    # candidates on one scale, and each private row on its own, which leaves its order as it is: on one scale for both,
    # a single huge row would push all others below the least float, and ties look like privacy
    scale = max(float(np.abs(left).max()), np.finfo(np.float64).tiny)
    left, right = left / scale, right / scale
    own = np.maximum(np.abs(right).max(axis=1, keepdims=True), 1.0)
    precision: Any = np.float32 if _is_even(left) else np.float64
    first, second = (np.ascontiguousarray(each, dtype=precision) for each in (left, right / own))
    # -|a - b|^2 / 2 but for a term that every candidate of a row shares
    offset = -(first**2).sum(axis=1) / 2 if similarity == "euclidean" else np.zeros(len(first), dtype=precision)
    weight = (1.0 / own).astype(precision)
    return lambda start, stop: second[start:stop] @ first.T + weight[start:stop] * offset


def _is_even(rows: Any) -> bool:
    """Whether squares of all rows, the largest of which is 1, are far above the least float32."""
    lengths = np.abs(rows).max(axis=1)
    return bool(lengths[lengths > 0].min(initial=1.0) > 1e-12)


def _sparse(left: Any, right: Any, similarity: str) -> Pairs:
    if similarity == "euclidean":
        raise ParameterError("similarity must be 'cosine' or 'dot' for sparse rows, got 'euclidean'")
    if similarity == "cosine":
        left, right = unit_rows(left), unit_rows(right)
    across = left.T.tocsr() if hasattr(left, "tocsr") else left.T

    def pairs(start: int, stop: int) -> npt.NDArray[Any]:
        product = right[start:stop] @ across
        found: npt.NDArray[Any] = product.toarray() if hasattr(product, "toarray") else np.asarray(product)
        return found

    return pairs


def unit_rows(rows: Any) -> Any:
    """Rows of length 1; a row of zeros is at right angles to everything."""
    if hasattr(rows, "tocsr"):
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return rows.multiply(1.0 / np.where(lengths > 0, lengths, 1.0)[:, None]).tocsr()
    largest = np.abs(rows).max(axis=1, keepdims=True)  # first, so that squares neither vanish nor overflow
    scaled = rows / np.where(largest > 0, largest, 1.0)
    lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    return scaled / np.where(lengths > 0, lengths, 1.0)


def mean_of_rows(values: npt.NDArray[np.float64], whose: Ids, confidence: float, bits: RandomBits) -> Estimate:
    """The mean of a number from 0 to 1 of each row, with an interval over people."""

    def mean(at: Ids) -> float:
        return float(values[at].mean())

    return share_over_people(mean, whose, confidence=confidence, seed=random_state(bits))


def share_of_rows(
    hits: npt.NDArray[np.bool_], people: Iterable[Hashable] | None, confidence: float, bits: RandomBits
) -> Estimate:
    """A share of rows, with an interval over people where it is known whose they are."""
    if people is None:
        return share(int(hits.sum()), hits.size, confidence=confidence)
    return mean_of_rows(hits.astype(np.float64), as_people(people, hits.size), confidence, bits)
