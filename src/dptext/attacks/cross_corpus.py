"""Words recovered from vectors that were trained elsewhere: no noise, only the hope that nobody knows the space.

The attack of Zouhri and Abecidan (2021, a study of Lyu, He and Li 2020): somebody's words are sent as vectors of a
model trained on his texts. The attacker has a model of his own; a private word is *approximately recovered* when it is
among the k = 5 words of his model whose vectors are nearest to it by cosine. They print 33 per cent where both models
learnt from halves of one corpus, 18 from the same source, 0.7 from another.

Two trainings have no axes in common unless they start from common ones: gensim before 4 drew a word's first vector from
a hash of the word, so equal words started at equal points; since 4 they do not, and the plain attack is at chance. That
is no protection: with a few known pairs a rotation lays one space on the other (orthogonal Procrustes, Schönemann
1966). Ten pairs do, where as many would leave most directions open: words of the two spaces that are each other's
nearest neighbours are taken for pairs, the rotation is learnt again from these, and so on (Artetxe, Labaka and Agirre
2017). This is the attack to fear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.given import as_rows, unit_rows
from dptext.attacks.ranking import rank_scores, similarities
from dptext.attacks.score import AttackScore
from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, share
from dptext.privacy.randomness import RandomBits

__all__ = ["Space", "cross_corpus_recovery"]

Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]

_ROUNDS = 10
_FREQUENT = 10_000  # words of each side that may make pairs: rare ones have vectors of little use
_BLOCK = 1024

Space: TypeAlias = tuple[Sequence[str], npt.ArrayLike]
"""Words, most frequent first, and a (V, d) matrix, row i of which belongs to word i."""


def cross_corpus_recovery(
    victim: Space,
    attacker: Space,
    *,
    k: int = 5,
    anchors: int = 0,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> AttackScore:
    """How many of a victim's words an attacker recovers from their vectors with a model of his own.

    A word that the attacker's model does not know counts as not recovered, as in the study.

    Args:
        victim: (words, matrix) of the model whose vectors were sent.
        attacker: (words, matrix) of the attacker's model, of the same dimension.
        k: how many words he may name.
        anchors: how many pairs (word, vector of the victim) he knows: the most frequent of the victim's words that
            he knows too, such as "the" and "of". From them, and from words that are then each other's nearest, he
            learns the rotation between the spaces; they are left out of the score. 0: he compares the spaces as they
            are.
        confidence: of the interval (words taken as independent, which those of one model are not quite).
        seed: of ties.

    Raises:
        ParameterError: another shape or dimension, NaN, a word that stands twice, k out of range, more anchors than
            shared words; the argument is named.

    >>> public = (["a", "cat", "dog"], [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> print(cross_corpus_recovery(public, public, k=1))
    cross-corpus recovery (as they are): share of words among the 1 nearest 1.000 [0.292, 1.000] against 0.333 (chance)
    """
    (words, points), (known, candidates) = _checked("victim", victim), _checked("attacker", attacker)
    if points.shape[1] != candidates.shape[1]:
        raise ParameterError(
            f"attacker must have vectors of the victim's dimension, {points.shape[1]}, got {candidates.shape[1]}"
        )
    k = whole("k", k, least=1, most=len(known) - 1)
    row_of = {word: row for row, word in enumerate(known)}
    shared = np.array([row for row, word in enumerate(words) if word in row_of], dtype=np.int64)
    anchors = whole("anchors", anchors, least=0, most=max(shared.size, 1) - 1)  # some shared word is to be recovered
    points, candidates = unit_rows(points), unit_rows(candidates)
    there = np.array([row_of[words[row]] for row in shared], dtype=np.int64)
    if anchors:
        points = points @ _alignment(points, candidates, shared[:anchors], there[:anchors])
    asked, true = shared[anchors:], there[anchors:]
    hits = 0
    if asked.size:
        pairs, _ = similarities(candidates, points[asked], similarity="cosine")
        hits = int((rank_scores(pairs, true, len(known), RandomBits(seed)) < k).sum())
    total = len(words) - anchors
    detail = f"{total:,} words of the victim, {asked.size:,} of them known to the attacker, {hits:,} of these recovered"
    return AttackScore(
        attack=f"cross-corpus recovery ({'aligned' if anchors else 'as they are'})",
        measure=f"share of words among the {k} nearest",
        score=share(hits, total, confidence=confidence),
        baseline=asked.size / total * k / len(known),
        baseline_name="chance",
        detail=f"{detail}; {anchors:,} known pairs" if anchors else detail,
    )


def _checked(name: str, space: Space) -> tuple[list[str], Floats]:
    if not isinstance(space, Sequence) or len(space) != 2:
        raise ParameterError(f"{name} must be a pair (words, matrix), got {type(space).__name__}")
    words, matrix = list(space[0]), as_rows(name, space[1])
    if len(words) != len(matrix):
        raise ParameterError(f"{name} must have one vector a word, got {len(words):,} words, {len(matrix):,} vectors")
    if len(set(words)) != len(words):
        raise ParameterError(f"{name} must have distinct words, one stands twice")
    return words, matrix


def _alignment(points: Floats, candidates: Floats, known: Ids, there: Ids) -> Floats:
    """The rotation that known pairs suggest, refined by the pairs that it makes.

    Args:
        points, candidates: rows of length 1, the most frequent words first.
        known, there: (anchors,) rows of both that belong together.
    """
    rotation = _rotation(points[known], candidates[there])
    before: tuple[Ids, Ids] | None = None
    for _ in range(_ROUNDS):
        pairs = _mutual(points[:_FREQUENT] @ rotation, candidates[:_FREQUENT])
        if before is not None and all(np.array_equal(one, other) for one, other in zip(pairs, before, strict=True)):
            break
        ours, theirs = (np.concatenate(each) for each in zip((known, there), pairs, strict=True))
        rotation, before = _rotation(points[ours], candidates[theirs]), pairs
    return rotation


def _mutual(points: Floats, candidates: Floats) -> tuple[Ids, Ids]:
    """Rows of both that are each other's nearest by cosine."""
    nearest = np.empty(len(points), dtype=np.int64)
    back, best = np.zeros(len(candidates), dtype=np.int64), np.full(len(candidates), -np.inf)
    for start in range(0, len(points), _BLOCK):
        cosines = points[start : start + _BLOCK] @ candidates.T
        nearest[start : start + _BLOCK] = cosines.argmax(axis=1)
        rows = cosines.argmax(axis=0)
        value = cosines[rows, np.arange(len(candidates))]
        back[value > best] = start + rows[value > best]
        best = np.maximum(best, value)
    ours = np.flatnonzero(back[nearest] == np.arange(len(points)))
    return ours, nearest[ours]


def _rotation(points: Floats, targets: Floats) -> Floats:
    """The orthogonal R that minimises ||points R - targets||: U V' of the singular vectors of points' targets."""
    left, _, right = np.linalg.svd(points.T @ targets)
    rotation: Floats = left @ right
    return rotation
