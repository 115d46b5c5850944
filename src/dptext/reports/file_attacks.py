"""Attacks on a release in a file: rows linked, words recovered, an attribute inferred.

An informed attacker knows the mechanism, which the statement beside the file gives back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks import (
    AttackScore,
    attribute_inference,
    bayes_recovery,
    expected_recovery,
    linkage,
    linkage_of_scores,
    nearest_recovery,
    sequence_likelihoods,
)
from dptext.attacks.learners import Attacker
from dptext.calibration.deniability import zipf_weights
from dptext.calibration.outcomes import distributions_of
from dptext.errors import DataError
from dptext.release.release import data_and_statement, read_statement
from dptext.reports.inputs import Rows
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import mechanism_from_statement
from dptext.words.replacing import Aligner, layout_of_private, layout_of_release

__all__ = [
    "aligned",
    "by_layout",
    "by_likelihood",
    "channel_of",
    "expect_recovery",
    "infer",
    "link",
    "rebuilt",
    "recover",
]

_ALL_CHANNELS = 100_000  # words: the best attacker looks at all pairs, minutes at this size


def rebuilt(private: Path, vectors: str | None) -> WordMechanism:
    """The mechanism of which the statement beside a private file speaks."""
    return mechanism_from_statement(read_statement(data_and_statement(private)[1]), vectors=vectors)


def channel_of(mechanism: WordMechanism) -> Callable[[npt.NDArray[np.int64]], Any] | None:
    """Rows of the vocabulary -> the distributions they are replaced from; None where these have no formula."""
    distributions = distributions_of(mechanism)
    if distributions is None:
        return None
    words = mechanism.vectors.words
    return lambda rows: distributions([words[row] for row in rows.tolist()])


def aligned(
    before: Rows, after: Rows, mechanism: WordMechanism, private: Path, *, by_row: bool = False
) -> tuple[list[int], list[int], list[Any]]:
    """(original words, private words, whose each is) of all rows, words as rows of the vocabulary.

    Args:
        before, after: both sides.
        mechanism: what was between them.
        private: the name of the private file, for errors.
        by_row: whether a word belongs to its row, and not to the person who wrote it.

    Raises:
        DataError: a private row cannot have been made from the original row.
    """
    aligner = Aligner(mechanism)
    true: list[int] = []
    observed: list[int] = []
    whose: list[Any] = []
    for row, (original, out) in enumerate(zip(before.texts, after.texts, strict=True)):
        found = None if (original is None) != (out is None) else aligner.pairs(original or "", out or "")
        if found is None:
            number = after.chosen[row] + 1
            raise DataError(
                f"{private.name}, row {number}: the private text does not have the layout of the original one, so it "
                f"was not made from it by {mechanism.name}: name the file it was made from, in its order"
            )
        true += found[0]
        observed += found[1]
        whose += [row if before.people is None or by_row else before.people[row]] * len(found[0])
    if not true:
        raise DataError(f"{private.name}: expected at least one private word, got none")
    return true, observed, whose


def by_layout(before: Rows, after: Rows, how: dict[str, Any]) -> list[AttackScore]:
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
    before: Rows, after: Rows, mechanism: WordMechanism, private: Path, how: dict[str, Any]
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


def link(before: Rows, after: Rows, *, seed: int) -> list[AttackScore]:
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
    before: Rows, after: Rows, mechanism: WordMechanism, private: Path, *, seed: int
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
