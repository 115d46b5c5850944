"""Linkage: which original does a private row belong to?

The attacker holds candidates (originals, or what he knows of people) and ranks them for every private row. Where
output probabilities are known he ranks by likelihood, which is optimal when every candidate is equally likely before;
elsewhere by similarity. A blind attacker has the true one among his first k of n in k / n of the cases, and a mean
reciprocal rank of H(n) / n, with H(n) = 1 + 1/2 + ... + 1/n.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dptext.attacks.given import Rows, as_ids, as_people
from dptext.attacks.ranking import Pairs, rank_scores, share_of_rows, similarities
from dptext.attacks.score import AttackScore
from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, mean_of_people
from dptext.privacy.randomness import RandomBits

__all__ = ["linkage", "linkage_of_scores"]

TOP = (1, 10)


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
        seed: of ties, which are broken at random as an attacker must.

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
    top = [whole("each of top", k, least=1) for k in top]
    if not top:
        raise ParameterError("top must hold at least one integer, got none")
    if truth is None and rows > originals:
        raise ParameterError(f"truth must be given: there are {rows:,} private rows and {originals:,} originals")
    true = np.arange(rows) if truth is None else as_ids("truth", truth, originals, rows)
    people = None if people is None else list(people)
    bits = RandomBits(seed)
    ranks = rank_scores(pairs, true, originals, bits)
    scored = [
        AttackScore(
            attack=attack,
            measure="share linked at first guess" if k == 1 else f"share linked within {k} guesses",
            score=share_of_rows(ranks < k, people, confidence),
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
            score=mean_of_people(reciprocal, as_people(people, rows), confidence=confidence),
            baseline=float((1.0 / np.arange(1, originals + 1)).sum() / originals),
            baseline_name="chance",
            detail=f"the true one stands at place {int(np.median(ranks)) + 1:,} of {originals:,} in the median",
        )
    )
    return scored


def _as_pairs(scores: npt.ArrayLike | Pairs, shape: tuple[int, int] | None) -> tuple[Pairs, tuple[int, int]]:
    if callable(scores):
        if shape is None or min(shape) < 1:
            raise ParameterError(f"shape must be (private rows, originals) where scores are a function, got {shape}")
        return scores, shape
    table = np.asarray(scores)
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiu":
        raise ParameterError(f"scores must be a matrix (private, originals) of numbers, got shape {table.shape}")
    return lambda start, stop: table[start:stop], (table.shape[0], table.shape[1])
