"""The attacks that a report tries on a release: rows linked, words recovered, an attribute inferred."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dptext.attacks import (
    AttackScore,
    attribute_inference,
    bayes_recovery,
    expected_recovery,
    linkage,
    nearest_recovery,
)
from dptext.attacks.learners import Attacker
from dptext.calibration.deniability import zipf_weights
from dptext.report.linking import by_layout
from dptext.report.sides import Side, aligned, channel_of
from dptext.words.mechanism import WordMechanism

__all__ = ["expect_recovery", "infer", "link", "recover"]

_ALL_CHANNELS = 100_000  # words: the best attacker looks at all pairs, minutes at this size


def link(before: Side, after: Side, *, seed: int) -> list[AttackScore]:
    """Rows linked to their originals by the layout alone, and by the words that both share."""
    how: dict[str, Any] = {"people": before.people, "seed": seed}
    by_words = linkage(before.texts, after.texts, **how)
    return [*by_layout(before, after, how), *(replace(each, attack="linkage (shared words)") for each in by_words)]


def expect_recovery(mechanism: WordMechanism) -> list[AttackScore]:
    """The best possible attacker on words as frequent as in general: exact, and no text has a part in it."""
    channel = channel_of(mechanism)
    size = len(mechanism.vectors)
    if channel is None or size > _ALL_CHANNELS:
        return []
    return [expected_recovery(channel, zipf_weights(size))]


def recover(
    before: Side, after: Side, mechanism: WordMechanism, private: Path, *, seed: int
) -> tuple[list[AttackScore], str]:
    """Words recovered by the best possible attacker and by a simple one; and why one was left out, if so.

    Raises:
        DataError: a private row cannot have been made from the original row.
    """
    true, observed, whose = aligned(before, after, mechanism, private)
    if len(set(whose)) < 2:
        return [], "Word recovery was not tried: it needs words of at least two rows (or people)."
    prior = zipf_weights(len(mechanism.vectors))
    points = np.asarray(mechanism.vectors.matrix)
    scores = [nearest_recovery(points[observed], points, true, prior=prior, people=whose, seed=seed)]
    channel = channel_of(mechanism)
    if channel is None:
        return scores, (
            f"What {mechanism.name} draws from has no formula: the best attacker, who would learn it from draws, was "
            "not tried."
        )
    if len(prior) > _ALL_CHANNELS:
        return scores, "The best possible recovery of words was not tried: the vocabulary is too large for a page."
    return [bayes_recovery(channel, prior, true, observed, people=whose), *scores], ""


def infer(
    features: Any,
    values: Sequence[str],
    column: str,
    *,
    people: Sequence[Hashable] | None,
    attackers: Sequence[Attacker],
    folds: int,
    seed: int,
) -> list[AttackScore]:
    """An attribute named by attackers who trained on other people's private rows.

    Raises:
        ParameterError: one kind of value only, or fewer people than folds.
    """
    scores = attribute_inference(features, values, people=people, attackers=attackers, folds=folds, seed=seed)
    return [
        replace(each, attack=each.attack.replace("attribute inference", f"attribute inference of {column!r}"))
        for each in scores
    ]
