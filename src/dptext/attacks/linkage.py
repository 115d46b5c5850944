"""Linkage: which original does a private row belong to?

The attacker holds candidates (originals, or what he knows of people) and ranks them for every private row. Where
output probabilities are known he ranks by likelihood, which is optimal when every candidate is equally likely before;
elsewhere by similarity. A blind attacker has the true one among his first k of n in k / n of the cases, and a mean
reciprocal rank of H(n) / n, with H(n) = 1 + 1/2 + ... + 1/n.

Scores of all pairs never stand in memory together: blocks of private rows go through one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.given import Rows, are_texts, as_ids, as_people, as_rows, as_texts, random_state
from dptext.attacks.learners import words_to_numbers
from dptext.attacks.score import AttackScore
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, Estimate, over_people, share
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

__all__ = [
    "Pairs",
    "linkage",
    "linkage_of_scores",
    "mean_of_rows",
    "rank_scores",
    "side_by_side",
    "similarities",
    "unit_rows",
]

Ids: TypeAlias = npt.NDArray[np.int64]
Pairs: TypeAlias = Callable[[int, int], npt.NDArray[Any]]
"""(start, stop) -> (stop - start, originals): scores of some private rows; higher means likelier."""

TOP = (1, 10)
SIMILARITIES = ("cosine", "dot", "euclidean")
_ENTRIES = 1 << 22  # scores in memory at a time, for each thread
_LEAST_ROWS = 8


def linkage(
    original: Rows,
    private: Rows,
    *,
    truth: npt.ArrayLike | None = None,
    similarity: str = "cosine",
    top: Sequence[int] = TOP,
    people: Iterable[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> list[AttackScore]:
    """Link private rows to originals by their similarity.

    Args:
        original: (n, d) numbers, dense or sparse; or n texts, or n bags of words (weighted by tf-idf, which both sides
            show).
        private: (m, d) of the same kind.
        truth: (m,) the row of the original that each private row was made from; None: row i from row i.
        similarity: ``"cosine"``, ``"dot"`` or ``"euclidean"`` (the nearer, the likelier).
        top: how many candidates the attacker may name.
        people: (m,) whose private row each is, for the intervals; None: everybody has one.
        confidence: of the intervals. On output that says nothing, `AttackScore.succeeded` is a false alarm with a
            probability of at most about (1 - confidence) / 2 for each score.
        seed: of ties, which are broken at random as an attacker must, and of the bootstrap.

    Returns:
        How often the true one is among the first k, for each k below n, and the mean reciprocal rank.

    Raises:
        ParameterError: NaN, no row, rows of other lengths, another similarity; the argument is named.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> found = linkage(["a cat sat", "taxes are due", "no dogs"], ["the cat sat", "taxes were due", "dogs"], seed=1)
    >>> print(found[0])
    linkage (cosine): share linked at first guess 1.000 [0.292, 1.000] against 0.333 (chance)
    """
    pairs, shape = similarities(original, private, similarity=similarity)
    return linkage_of_scores(
        pairs,
        shape=shape,
        truth=truth,
        top=top,
        people=people,
        confidence=confidence,
        seed=seed,
        attack=f"linkage ({similarity})",
    )


def linkage_of_scores(
    scores: npt.ArrayLike | Pairs,
    *,
    shape: tuple[int, int] | None = None,
    truth: npt.ArrayLike | None = None,
    top: Sequence[int] = TOP,
    people: Iterable[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    attack: str = "linkage",
) -> list[AttackScore]:
    """Link private rows to originals by any score, for instance a log-likelihood (`dptext.attacks.likelihood`).

    Args:
        scores: (m private, n originals), higher means likelier, minus infinity where impossible; or a function
            (start, stop) -> the scores of these private rows.
        shape: (m, n), where the scores are a function.
        truth, top, people, confidence, seed: as in `linkage`.
        attack: what to call it.

    Raises:
        ParameterError: NaN among the scores, another shape; a true original that is none.
    """
    pairs, (rows, originals) = _as_pairs(scores, shape)
    if originals < 2:
        raise ParameterError(f"original must hold at least two candidates, got {originals}: nothing to choose from")
    if not top or any(isinstance(k, bool) or not isinstance(k, int) or k < 1 for k in top):
        raise ParameterError(f"top must be integers of at least 1, got {tuple(top)!r}")
    if truth is None and rows > originals:
        raise ParameterError(f"truth must be given: there are {rows:,} private rows and {originals:,} originals")
    true = np.arange(rows) if truth is None else as_ids("truth", truth, originals, rows)
    whose = as_people(people, rows)
    bits = RandomBits(seed)
    ranks = rank_scores(pairs, true, originals, bits)
    scored = [
        AttackScore(
            attack=attack,
            measure="share linked at first guess" if k == 1 else f"share linked within {k} guesses",
            score=_share(ranks < k, whose, people is None, confidence, bits),
            baseline=k / originals,
            baseline_name="chance",
            detail=f"{rows:,} private rows, {originals:,} originals to choose from",
        )
        for k in sorted({k for k in top if k < originals} | {1})
    ]
    reciprocal = 1.0 / (ranks + 1)
    scored.append(
        AttackScore(
            attack=attack,
            measure="mean reciprocal rank",
            score=mean_of_rows(reciprocal, whose, confidence, bits),
            baseline=float((1.0 / np.arange(1, originals + 1)).sum() / originals),
            baseline_name="chance",
            detail=f"the true one stands at place {int(np.median(ranks)) + 1:,} of {originals:,} in the median",
        )
    )
    return scored


def similarities(original: Rows, private: Rows, *, similarity: str = "cosine") -> tuple[Pairs, tuple[int, int]]:
    """Scores of all pairs as a function of blocks, and (private rows, originals); see `linkage`."""
    if similarity not in SIMILARITIES:
        raise ParameterError(f"similarity must be one of {', '.join(SIMILARITIES)}, got {similarity!r}")
    left, right = side_by_side(original, private)
    shape = (right.shape[0], left.shape[0])
    if hasattr(left, "tocsr") or hasattr(right, "tocsr"):
        return _sparse(left, right, similarity), shape
    return _dense(left, right, similarity), shape


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


# -- scores of pairs -------------------------------------------------------------------------------------------


def _as_pairs(scores: npt.ArrayLike | Pairs, shape: tuple[int, int] | None) -> tuple[Pairs, tuple[int, int]]:
    if callable(scores):
        if shape is None or min(shape) < 1:
            raise ParameterError(f"shape must be (private rows, originals) where scores are a function, got {shape}")
        return scores, shape
    table = np.asarray(scores)
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiu":
        raise ParameterError(f"scores must be a matrix (private, originals) of numbers, got shape {table.shape}")
    return lambda start, stop: table[start:stop], (table.shape[0], table.shape[1])


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
        centre = left.mean(axis=0)  # distances stay, and float32 keeps more of them
        left, right = left - centre, right - centre
    largest = max(np.abs(left).max(), np.abs(right).max(), np.finfo(np.float64).tiny)
    first, second = (np.ascontiguousarray(each / largest, dtype=np.float32) for each in (left, right))
    # -|a - b|^2 / 2 but for a term that every candidate of a row shares
    offset = -(first**2).sum(axis=1) / 2 if similarity == "euclidean" else np.zeros(len(first), dtype=np.float32)
    return lambda start, stop: second[start:stop] @ first.T + offset


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


# -- intervals -------------------------------------------------------------------------------------------------


def _share(hits: npt.NDArray[np.bool_], whose: Ids, alone: bool, confidence: float, bits: RandomBits) -> Estimate:
    if alone:
        return share(int(hits.sum()), hits.size, confidence=confidence)
    return mean_of_rows(hits.astype(np.float64), whose, confidence, bits)


def mean_of_rows(values: npt.NDArray[np.float64], whose: Ids, confidence: float, bits: RandomBits) -> Estimate:
    """The mean of a number of each row, with an interval over people."""

    def mean(at: Ids) -> float:
        return float(values[at].mean())

    return over_people(mean, whose, confidence=confidence, seed=random_state(bits))
