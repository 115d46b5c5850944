"""Linkage: which original does a private row belong to, and which of the known people wrote it?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.attack_score import AttackScore, share_of_rows
from dptext.attacks.learners import Learner
from dptext.attacks.ranking import Pairs, rank_scores, side_by_side, similarities
from dptext.attacks.rows import Rows, as_codes, as_ids, as_people, optional, random_state, unit_rows
from dptext.checks import choice, whole
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, mean_of_people
from dptext.privacy.randomness import RandomBits

__all__ = ["author_reidentification", "linkage", "linkage_of_scores"]

Ids: TypeAlias = npt.NDArray[np.int64]


def linkage(
    original: Rows,
    private: Rows,
    *,
    truth: npt.ArrayLike | None = None,
    similarity: str = "cosine",
    top: Sequence[int] = (1, 10),
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
    top: Sequence[int] = (1, 10),
    people: Iterable[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    attack: str = "linkage",
) -> list[AttackScore]:
    """Link private rows to originals by any score, such as a log-likelihood (`dptext.attacks.sequence_likelihoods`).

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


def author_reidentification(
    known: Rows,
    known_authors: Iterable[Hashable],
    private: Rows,
    private_authors: Iterable[Hashable],
    *,
    attacker: Literal["centroid", "linear"] = "linear",
    top: Sequence[int] = (1, 5),
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> list[AttackScore]:
    """Name the authors of private rows from other rows of theirs.

    Args:
        known: (n, d) numbers, n texts or n bags of words that the attacker holds; made private in the same way or
            not, as a real attacker would have them.
        known_authors: (n,) whose each is, at least two people.
        private: (m, d), m texts or m bags, none of them among the known ones.
        private_authors: (m,) the truth; each of them has a known row.
        attacker: ``"linear"`` (logistic regression) or ``"centroid"`` (the author whose mean direction is nearest by
            cosine).
        top: how many people the attacker may name.
        confidence: of the intervals, over the people of the private rows. On output that says nothing,
            `AttackScore.succeeded` is a false alarm with a probability of about (1 - confidence) / 2.
        seed: of ties and training.

    Returns:
        How often the author is among the first k, for each k below their number, against somebody who always names
        those with the most known rows.

    Raises:
        ParameterError: fewer than two authors, a private row of somebody unknown, NaN; the argument is named.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> known, authors = ["cats and cats", "a cat", "tax law", "the tax"], ["ann", "ann", "bob", "bob"]
    >>> print(author_reidentification(known, authors, ["my cats", "tax it"], ["ann", "bob"], seed=1)[0])
    author re-identification (linear): share named at first guess 1.000 [0.158, 1.000] against 0.500 (authors ...
    """
    choice("attacker", attacker, ("centroid", "linear"))
    left, right = side_by_side(known, private, names=("known", "private"))
    names = list(known_authors)
    codes, people = as_codes("known_authors", names, left.shape[0])
    if people < 2:
        raise ParameterError(f"known_authors must be at least two people, got {people}: there is nobody to mix up")
    true = _codes_of(private_authors, dict(zip(names, codes.tolist(), strict=True)), right.shape[0])
    bits = RandomBits(seed)
    pairs = _centroids(left, codes, people, right) if attacker == "centroid" else _linear(left, codes, right, bits)
    ranks = rank_scores(pairs, true, people, bits)
    counts = np.bincount(codes, minlength=people)
    return [
        AttackScore(
            attack=f"author re-identification ({attacker})",
            measure="share named at first guess" if k == 1 else f"share named within {k} guesses",
            score=mean_of_people(ranks < k, true, confidence=confidence),
            baseline=_blind(counts, true, k),
            baseline_name="authors with the most known rows",
            detail=f"{people:,} authors, {left.shape[0]:,} known and {right.shape[0]:,} private rows",
        )
        for k in sorted({k for k in top if 1 <= k < people} | {1})
    ]


def _codes_of(authors: Iterable[Hashable], codes: dict[Hashable, int], rows: int) -> Ids:
    names = authors.tolist() if isinstance(authors, np.ndarray) else list(authors)
    if len(names) != rows:
        raise ParameterError(f"private_authors must be one for each of {rows:,} rows, got {len(names):,}")
    unknown = next((row for row, name in enumerate(names) if not isinstance(name, Hashable) or name not in codes), None)
    if unknown is not None:
        raise ParameterError(
            f"private_authors: row {unknown} is of somebody without a known row; the attack is on a closed world: "
            "leave such rows out"
        )
    found = np.array([codes[name] for name in names], dtype=np.int64)
    if len(np.unique(found)) < 2:
        raise ParameterError("private_authors must be at least two people: an interval over people needs them")
    return found


def _centroids(left: Any, codes: Ids, people: int, right: Any) -> Pairs:
    sparse = optional("scipy.sparse")
    members = sparse.csr_matrix((np.ones(codes.size), (codes, np.arange(codes.size))), shape=(people, codes.size))
    return similarities(members @ unit_rows(left), right)[0]


def _linear(left: Any, codes: Ids, right: Any, bits: RandomBits) -> Pairs:
    found = Learner("linear", random_state(bits)).fit(left, codes).confidences(right)
    return lambda start, stop: found[start:stop]


def _blind(counts: Ids, true: Ids, k: int) -> float:
    """How often the author is among the k with the most known rows, ties broken at random."""
    ahead = (counts[None, :] > counts[:, None]).sum(axis=1)
    equal = (counts[None, :] == counts[:, None]).sum(axis=1)
    return float(np.clip((k - ahead[true]) / equal[true], 0.0, 1.0).mean())
