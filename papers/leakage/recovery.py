"""Words of vectors without noise, recovered by an adversary who trained another model (Zouhri and Abecidan 2021).

Models that do not start at common vectors put this at chance, but ten known pairs give a rotation (orthogonal
Procrustes, Schoenemann 1966), which mutual nearest neighbours refine (Artetxe, Labaka and Agirre 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import AttackScore, Floats, Ids, as_rows, unit_rows
from dptext.attacks.linkage import rank_scores, similarities
from dptext.intervals import share
from dptext.privacy.randomness import RandomBits

_ROUNDS = 10
_FREQUENT = 10_000  # words of each side that may make pairs: rare ones have vectors of little use
_BLOCK = 1024
Space: TypeAlias = tuple[Sequence[str], npt.ArrayLike]
"""Words, most frequent first, and a (V, d) matrix, row i of which belongs to word i."""


def cross_corpus_recovery(
    victim: Space, attacker: Space, *, k: int = 5, anchors: int = 0, seed: int | None = None
) -> AttackScore:
    """Return the share of a victim's words that an attacker recovers from their vectors with another model.

    A word that the attacker's model does not know counts as not recovered, as in the study.

    The attacker may name ``k`` words, and knows ``anchors`` pairs (word, vector of the victim): the most frequent words
    that both models have. From them, and from words that are then each other's nearest, the rotation
    between the spaces is learnt; they are left out of the score. ``seed`` is that of ties. The interval takes words as
    independent, an approximation.

    >>> public = (["a", "cat", "dog"], [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> print(cross_corpus_recovery(public, public, k=1))
    cross-corpus recovery (as they are): share of words among the 1 nearest 1.000 [0.292, 1.000] against 0.333 (chance)
    """
    words, known = list(victim[0]), list(attacker[0])
    points, candidates = as_rows("victim", victim[1]), as_rows("attacker", attacker[1])
    row_of = {word: row for row, word in enumerate(known)}
    shared = np.array([row for row, word in enumerate(words) if word in row_of], dtype=np.int64)
    points, candidates = unit_rows(points), unit_rows(candidates)
    anchor_rows = np.array([row_of[words[row]] for row in shared], dtype=np.int64)
    if anchors:
        points = points @ _alignment(points, candidates, shared[:anchors], anchor_rows[:anchors])
    requested, true = shared[anchors:], anchor_rows[anchors:]
    hits = 0
    if requested.size:
        pairs, _ = similarities(candidates, points[requested], similarity="cosine")
        hits = int((rank_scores(pairs, true, len(known), RandomBits(seed)) < k).sum())
    total = len(words) - anchors
    detail = (
        f"{total:,} words of the victim, {requested.size:,} of them known to the attacker, {hits:,} of these recovered"
    )
    return AttackScore(
        attack=f"cross-corpus recovery ({'aligned' if anchors else 'as they are'})",
        measure=f"share of words among the {k} nearest",
        score=share(hits, total),
        baseline=requested.size / total * k / len(known),
        baseline_name="chance",
        detail=f"{detail}; {anchors:,} known pairs" if anchors else detail,
    )


def _alignment(points: Floats, candidates: Floats, known: Ids, anchor_rows: Ids) -> Floats:
    """The rotation that known pairs of rows (of length 1) suggest, refined by the pairs that it makes."""
    rotation = _rotation(points[known], candidates[anchor_rows])
    before: tuple[Ids, Ids] | None = None
    for _ in range(_ROUNDS):
        pairs = _mutual(points[:_FREQUENT] @ rotation, candidates[:_FREQUENT])
        if before is not None and all(np.array_equal(one, other) for one, other in zip(pairs, before, strict=True)):
            break
        mutual, targets = (np.concatenate(entry) for entry in zip((known, anchor_rows), pairs, strict=True))
        rotation, before = _rotation(points[mutual], candidates[targets]), pairs
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
    mutual = np.flatnonzero(back[nearest] == np.arange(len(points)))
    return mutual, nearest[mutual]


def _rotation(points: Floats, targets: Floats) -> Floats:
    """The orthogonal R that minimises ||points R - targets||: U V' of the singular vectors of points' targets."""
    left, _, right = np.linalg.svd(points.T @ targets)
    rotation: Floats = left @ right
    return rotation
