"""Words recovered from vectors that were trained elsewhere: no noise, only the hope that nobody knows the space.

The attack of Zouhri and Abecidan (2021, a study of Lyu, He and Li 2020): somebody's words are sent as vectors of a
model trained on his texts. The attacker has a model of his own; a private word is *approximately recovered* when it is
among the k = 5 words of his model whose vectors are nearest to it by cosine. They print 33 per cent where both models
learnt from halves of one corpus, 18 from the same source, 0.7 from another.

Two trainings have no axes in common unless they start from common ones: gensim before 4 drew a word's first vector from
a hash of the word, so equal words started at equal points; since 4 they do not, and the plain attack is at chance. That
is no protection: with a few known pairs a rotation lays one space on the other (orthogonal Procrustes, Schönemann
1966), and this is the attack to fear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.given import as_rows
from dptext.attacks.ranking import rank_scores, similarities, unit_rows
from dptext.attacks.score import AttackScore
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, share
from dptext.privacy.randomness import RandomBits

__all__ = ["Space", "cross_corpus_recovery"]

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
            he knows too, such as "the" and "of". From them he learns the rotation between the spaces; they are left
            out of the score. 0: he compares the spaces as they are.
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
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < len(known):
        raise ParameterError(f"k must be an integer from 1 to {len(known) - 1:,}, got {k!r}")
    row_of = {word: row for row, word in enumerate(known)}
    shared = np.array([row for row, word in enumerate(words) if word in row_of], dtype=np.int64)
    if isinstance(anchors, bool) or not isinstance(anchors, int) or not 0 <= anchors < max(shared.size, 1):
        raise ParameterError(
            f"anchors must be an integer from 0 to below {shared.size:,} shared words, got {anchors!r}"
        )
    points, candidates = unit_rows(points), unit_rows(candidates)
    there = np.array([row_of[words[row]] for row in shared], dtype=np.int64)
    if anchors:
        points = points @ _rotation(points[shared[:anchors]], candidates[there[:anchors]])
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


def _checked(name: str, space: Space) -> tuple[list[str], npt.NDArray[np.float64]]:
    if not isinstance(space, Sequence) or len(space) != 2:
        raise ParameterError(f"{name} must be a pair (words, matrix), got {type(space).__name__}")
    words, matrix = list(space[0]), as_rows(name, space[1])
    if len(words) != len(matrix):
        raise ParameterError(f"{name} must have one vector a word, got {len(words):,} words, {len(matrix):,} vectors")
    if len(set(words)) != len(words):
        raise ParameterError(f"{name} must have distinct words, one stands twice")
    return words, matrix


def _rotation(points: npt.NDArray[np.float64], targets: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The orthogonal R that minimises ||points R - targets||: U V' of the singular vectors of points' targets."""
    left, _, right = np.linalg.svd(points.T @ targets)
    rotation: npt.NDArray[np.float64] = left @ right
    return rotation
