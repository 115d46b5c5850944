"""Attackers who link the rows of a release: one sees the layout alone, one knows the mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dptext.attacks import AttackScore, linkage_of_scores, sequence_likelihoods
from dptext.report.sides import Side, aligned, channel_of
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import layout_of_private, layout_of_release

__all__ = ["by_layout", "by_likelihood"]


def by_layout(before: Side, after: Side, how: dict[str, Any]) -> list[AttackScore]:
    """The attacker who looks at the layout only, which no word mechanism hides.

    Args:
        before, after: both sides.
        how: options of `dptext.attacks.linkage_of_scores`.
    """
    codes: dict[str, int] = {}
    first, second = (
        np.array([codes.setdefault(shown(each or ""), len(codes)) for each in side.texts])
        for side, shown in ((before, layout_of_release), (after, layout_of_private))
    )
    return linkage_of_scores(
        lambda start, stop: (second[start:stop, None] == first).astype(np.int8),
        shape=(second.size, first.size),
        attack="linkage (layout alone)",
        **how,
    )


def by_likelihood(
    before: Side, after: Side, mechanism: WordMechanism, private: Path, how: dict[str, Any]
) -> list[AttackScore] | None:
    """The attacker who knows the mechanism and compares likelihoods; None where what it draws from has no formula.

    Args:
        before, after: both sides.
        mechanism: what was between them.
        private: the name of the private file, for errors.
        how: options of `dptext.attacks.linkage_of_scores`.

    Raises:
        DataError: a private row cannot have been made from the original row.
    """
    channel = channel_of(mechanism)
    if channel is None:
        return None
    true, observed, whose = aligned(before, after, mechanism, private, by_row=True)
    rows = np.arange(before.size)
    original, out = (
        np.split(np.asarray(each, dtype=np.int64), np.searchsorted(whose, rows[1:])) for each in (true, observed)
    )
    pairs, shape = sequence_likelihoods(original, out, channel, inputs=len(mechanism.vectors))
    return linkage_of_scores(pairs, shape=shape, attack="linkage (likelihood)", **how)
