"""Word recovery: which word stood where a private one stands?

Where the output distribution is known and frequencies are public, the best attacker is known too
(`dptext.privacy.vulnerability`): he names the input with the largest pi(w) P(x | w). No other attacker of one word at a
time does better, so his success is a limit on all of them. Where only points are given (noisy vectors), the attacker
names the nearest words.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.channel import Channel, ChannelRows
from dptext.attacks.given import as_ids, as_rows
from dptext.attacks.ranking import rank_scores, share_of_rows, similarities
from dptext.attacks.score import AttackScore
from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, Estimate
from dptext.privacy.randomness import RandomBits
from dptext.privacy.vulnerability import best_guesses

__all__ = ["bayes_recovery", "expected_recovery", "nearest_recovery"]

Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]

MEASURE = "share of words recovered"
_SUMS_TO_ONE = 1e-12  # then they stay as they are, to the last bit


def expected_recovery(channel: Channel, prior: npt.ArrayLike, *, log: bool = False) -> AttackScore:
    """The best attacker's success on words that occur as often as the prior says: exactly, without a draw.

    It is an average over words; some are recovered far more often. And it is no promise: one who knows more of the text
    than how frequent words are (its context) does better.

    Args:
        channel: (inputs, outputs) P(output | input), what the mechanism really draws from; or a function from
            (k,) input ids to (k, outputs).
        prior: (inputs,) public frequencies, scaled to sum 1.
        log: whether the channel holds natural logarithms.

    Raises:
        ParameterError: rows that are no distributions, frequencies that are none; the argument is named.

    >>> print(expected_recovery([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]))
    word recovery (Bayes-optimal): share of words recovered 0.850 [0.850, 0.850] against 0.500 (most frequent word)
    """
    frequencies = _prior(prior)
    found = best_guesses(ChannelRows(channel, inputs=frequencies.size, log=log).blocks(), frequencies)
    # a sum of n numbers below 1 is off by less than this; nothing else is uncertain
    rounding = found.joint.size * float(np.finfo(np.float64).eps)
    rate = min(found.rate, 1.0)
    return AttackScore(
        attack="word recovery (Bayes-optimal)",
        measure=MEASURE,
        score=Estimate(rate, max(rate - rounding, 0.0), min(rate + rounding, 1.0), frequencies.size, "inputs"),
        baseline=found.blind,
        baseline_name="most frequent word",
        detail="exact, over words as frequent as assumed",
    )


def bayes_recovery(
    channel: Channel,
    prior: npt.ArrayLike,
    true: npt.ArrayLike,
    observed: npt.ArrayLike,
    *,
    log: bool = False,
    people: Iterable[Hashable] | None = None,
    confidence: float = CONFIDENCE,
) -> AttackScore:
    """The best attacker's answers to outputs that were really drawn, held against the truth.

    Args:
        channel, prior, log: as in `expected_recovery`.
        true: (n,) ids of the inputs.
        observed: (n,) ids of the outputs, place by place.
        people: (n,) whose word each is: words of one text or author are alike, and an interval over words would be
            too narrow. None: every word stands alone.
        confidence: of the interval. On output that says nothing the attacker names the most frequent word, as the
            baseline does: no false alarm.

    Raises:
        ParameterError: as `expected_recovery`; ids out of range, other numbers of them.

    >>> score = bayes_recovery([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5], [0, 0, 1, 1], [0, 1, 1, 1])
    >>> score.score.value, score.baseline
    (0.75, 0.5)
    """
    frequencies = _prior(prior)
    given = as_ids("true", true, frequencies.size)
    found = best_guesses(ChannelRows(channel, inputs=frequencies.size, log=log).blocks(), frequencies)
    out = as_ids("observed", observed, found.named.size, given.size)
    return AttackScore(
        attack="word recovery (Bayes-optimal)",
        measure=MEASURE,
        score=share_of_rows(found.named[out] == given, people, confidence),
        **_blind(given, frequencies, 1),
        detail=f"{given.size:,} words; {found.rate:.3f} expected where words are as frequent as assumed",
    )


def nearest_recovery(
    points: npt.ArrayLike,
    candidates: npt.ArrayLike,
    true: npt.ArrayLike,
    *,
    k: int = 1,
    prior: npt.ArrayLike | None = None,
    people: Iterable[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> AttackScore:
    """Name the k words whose public vectors are nearest (Euclidean) to each private point.

    Against a mechanism that answers with words, a word's own vector is the point: the attacker who takes every output
    at its word.

    Args:
        points: (n, d) private vectors.
        candidates: (V, d) public vectors of the words.
        true: (n,) the word that each point was made from.
        k: how many he may name.
        prior: (V,) public frequencies, for the baseline; None: all alike.
        people, confidence: as in `bayes_recovery`.
        seed: of ties. On output that says nothing, `AttackScore.succeeded` is a
            false alarm with a probability of at most about (1 - confidence) / 2.

    Raises:
        ParameterError: NaN, no row, other lengths, k out of range; the argument is named.

    >>> words = [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]
    >>> nearest_recovery([[0.1, 0.2], [8.0, 7.0]], words, [0, 2]).score.value
    1.0
    """
    pairs, (rows, words) = similarities(
        as_rows("candidates", candidates), points, similarity="euclidean", names=("candidates", "points")
    )
    k = whole("k", k, least=1, most=words - 1)
    given = as_ids("true", true, words, rows)
    frequencies = np.full(words, 1 / words) if prior is None else _prior(prior, words)
    found = rank_scores(pairs, given, words, RandomBits(seed)) < k
    return AttackScore(
        attack="word recovery (nearest vector)",
        measure=MEASURE if k == 1 else f"share of words among the {k} nearest",
        score=share_of_rows(found, people, confidence),
        **_blind(given, frequencies, k),
        detail=f"{given.size:,} words, {words:,} to choose from",
    )


def _blind(given: Ids, frequencies: Floats, k: int) -> dict[str, Any]:
    """What naming the k most frequent words would have reached, and naming any k at least.

    In a sample the words assumed to be frequent may not occur at all: a single hit by chance is no success beside 0.
    """
    likeliest = np.argsort(-frequencies, kind="stable")[:k]
    reached, chance = float(np.isin(given, likeliest).mean()), k / frequencies.size
    name = "most frequent word" if k == 1 else "most frequent words"
    if reached > chance and frequencies.max() > frequencies.min():
        return {"baseline": reached, "baseline_name": name}
    return {"baseline": chance, "baseline_name": "chance"}


def _prior(prior: npt.ArrayLike, size: int | None = None) -> Floats:
    given: Floats = np.asarray(prior, dtype=np.float64)
    if given.ndim != 1 or given.size < 2 or (size is not None and given.size != size):
        raise ParameterError(
            f"prior must be one frequency for each of {size or 'at least 2'} inputs, got {given.shape}"
        )
    if not np.isfinite(given).all() or (given < 0).any() or not 0 < given.sum() < np.inf:
        raise ParameterError("prior must be finite numbers of at least 0, and not all of them 0")
    scaled: Floats = given / given.sum()
    return scaled if abs(given.sum() - 1) > _SUMS_TO_ONE else given
