"""Author re-identification: whose is a private text, among people of whom other texts are known?

A closed world: every private row is of somebody the attacker knows. That is more than he has in life, and the right
side to err on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.given import Rows, as_codes, learning, random_state, unit_rows
from dptext.attacks.learners import Learner
from dptext.attacks.ranking import Pairs, rank_scores, side_by_side, similarities
from dptext.attacks.score import AttackScore
from dptext.checks import choice
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, mean_of_people
from dptext.privacy.randomness import RandomBits

__all__ = ["author_reidentification"]

Ids: TypeAlias = npt.NDArray[np.int64]
AuthorAttacker: TypeAlias = Literal["centroid", "linear"]
TOP = (1, 5)


def author_reidentification(
    known: Rows,
    known_authors: Iterable[Hashable],
    private: Rows,
    private_authors: Iterable[Hashable],
    *,
    attacker: AuthorAttacker = "linear",
    top: Sequence[int] = TOP,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> list[AttackScore]:
    """Name the authors of private rows from other rows of theirs.

    Args:
        known: (n, d) numbers, n texts or n bags of words that the attacker holds; made private in the same way, or
            not: what he would have.
        known_authors: (n,) whose each is, at least two people.
        private: (m, d), m texts or m bags, none of them among the known ones.
        private_authors: (m,) the truth; each of them has a known row.
        attacker: ``"linear"`` (logistic regression) or ``"centroid"`` (the author whose mean direction is nearest by
            cosine).
        top: how many people the attacker may name.
        confidence: of the intervals, over the people of the private rows. On output that
            says nothing, `AttackScore.succeeded` is a false alarm with a probability of about (1 - confidence) / 2.
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
    sparse = learning("scipy.sparse")
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
