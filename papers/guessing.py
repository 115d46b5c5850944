"""Mechanisms side by side at equal *measured* indistinguishability, not at equal epsilon.

Two mechanisms with the same epsilon keep the same promise and hide words very differently: the promise is an upper
bound, and one of them may stay far below it. What is compared here is what an attacker gets. They know the mechanism,
the vocabulary and how frequent words are; they see the output x and name the input they hold most likely. Their rate of
success is G of `dptext.privacy.guarantee`, with pi the public frequencies (1 / rank where none are given). No
attacker of one word does better, G means the same whatever the metric, and it has a floor that nothing can hide: the
guess without any output. It is an average over words, so it is no guarantee for each of them: the promise is.

**From draws.** Words are drawn in proportion to pi (one at random in each of n equal steps of the frequencies), and an
output of each. An attacker who learns their guesses on one half and is tried on the other cannot beat G in
expectation; the largest cells of the joint histogram of all draws sum to at least G in expectation, since a maximum is
convex. Each is within sqrt(ln(2 / error) / 2n) of its expectation (Hoeffding; McDiarmid: one draw moves the second by
1 / n). Between them lies G, with probability 1 - error; the middle is named as its estimate. Draws say little where
outputs are many: n should be many times the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.calibration.calibration import EXACT_TOLERANCE, SAMPLED_TOLERANCE, Family
from dptext.calibration.deniability import (
    Floats,
    Rows,
    batch_for,
    check_weights,
    deniability,
    distances_from,
    distributions_of,
)
from dptext.calibration.reidentification import DIGITS, UnreachableError, crossing, fresh_seed, log_odds
from dptext.errors import ParameterError
from dptext.privacy.guarantee import best_guesses, rounded_down
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_int
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import WordMechanism

GUESS_TARGETS = (0.25, 0.5, 0.75)
_ERROR = 0.05


@dataclass(frozen=True)
class Guess:
    """How often the best attacker names the input.

    Attributes:
        rate: G, exactly or the middle of ``low`` and ``high``.
        low, high: G lies between them with probability at least 95%.
        blind: what they get without the output.
        draws: how many draws it took; None: exact.
    """

    rate: float
    low: float
    high: float
    blind: float
    draws: int | None


@dataclass(frozen=True)
class Compared:
    """A mechanism at the epsilon at which the best attacker has a given success.

    Attributes:
        mechanism: its name.
        epsilon: four digits, rounded towards more privacy.
        guess: what the attacker gets there.
        keep: how often a word of running text stays.
        distance: mean distance between word and output, in the metric that epsilon counts.
        keep_error, distance_error: half the width of 95% intervals (normal approximation); 0 where exact.
    """

    mechanism: str
    epsilon: float
    guess: Guess
    keep: float
    distance: float
    keep_error: float = 0.0
    distance_error: float = 0.0


def guess_rate(
    mechanism: WordMechanism, *, weights: npt.ArrayLike | None = None, draws: int = 200_000, seed: int | None = None
) -> Guess:
    """The success of the best attacker who guesses a word from its output.

    Exact for mechanisms with ``distributions``; the work grows with the square of the vocabulary, so use a small one
    (``limit=1000``). From draws for the others.

    Args:
        mechanism: a word mechanism.
        weights: (V,) public frequencies; None: 1 / rank.
        draws: draws in all.
        seed: of the draws.

    >>> from dptext import TEM, load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> guess = guess_rate(TEM(vectors, epsilon=2.0))
    >>> round(guess.rate, 3), round(guess.blind, 3)
    (0.796, 0.48)
    """
    prior = check_weights(weights, len(mechanism.vectors))
    distributions = distributions_of(mechanism)
    blind = float(prior.max())
    if distributions is not None:
        rate = best_guesses(_blocks(mechanism, distributions), prior).rate
        return Guess(rate, rate, rate, blind, None)
    draws = check_int("draws", draws, minimum=100)
    half = draws // 2
    bits = RandomBits(seed)
    inputs = np.concatenate([_in_proportion(prior, half, bits) for _ in range(2)])
    outputs = mechanism.sample_rows(inputs, bits)
    named = _guesses(inputs[:half], outputs[:half], prior.size)
    hits = float((named[outputs[half:]] == inputs[half:]).mean())
    cells = _largest_cells(inputs, outputs, prior.size)
    low = hits - math.sqrt(math.log(2 / _ERROR) / (2 * half))
    high = cells + math.sqrt(math.log(2 / _ERROR) / (4 * half))
    low, high = max(low, blind), min(high, 1.0)
    return Guess((low + high) / 2, low, high, blind, 2 * half)


def compare(
    vectors: WordVectors,
    mechanisms: Mapping[str, Callable[..., WordMechanism]] | Sequence[str] = ("tem", "madlib"),
    *,
    targets: Sequence[float] = GUESS_TARGETS,
    weights: npt.ArrayLike | None = None,
    draws: int = 200_000,
    seed: int | None = None,
) -> list[Compared]:
    """Mechanisms at the epsilons at which the best attacker has the same success, and what they are good for there.

    Args:
        vectors: public word vectors of a few thousand words at most; the mechanisms are built on these.
        mechanisms: names, or builders (vectors, epsilon=...).
        targets: rates of success, each above the blind guess.
        weights, draws, seed: see `guess_rate`.

    Raises:
        ParameterError: a target that is not above the blind guess and below 1, or out of a mechanism's reach.
    """
    prior = check_weights(weights, len(vectors))
    for target in targets:
        if not prior.max() < target < 1:
            raise ParameterError(
                f"a rate of success must lie between the blind guess, {prior.max():.3g}, and 1, got {target:g}"
            )
    builders = list(mechanisms.values()) if isinstance(mechanisms, Mapping) else list(mechanisms)
    seed = fresh_seed() if seed is None else seed
    return [
        _at(Family(vectors, builder), target, prior, draws=draws, seed=seed)
        for target in targets
        for builder in builders
    ]


def _at(family: Family, target: float, prior: Floats, *, draws: int, seed: int) -> Compared:
    start = family.start()
    exact = distributions_of(family(start)) is not None

    def excess(epsilon: float) -> float:
        return log_odds(guess_rate(family(epsilon), weights=prior, draws=draws, seed=seed).rate) - log_odds(target)

    try:
        tolerance = EXACT_TOLERANCE if exact else SAMPLED_TOLERANCE
        epsilon = rounded_down(crossing(excess, start=start, tolerance=tolerance), DIGITS)
    except UnreachableError as end:
        there = guess_rate(family(end.epsilon), weights=prior, draws=draws, seed=seed).rate
        raise ParameterError(
            f"no epsilon of {family.name} lets the best attacker guess {target:g}: at {end.epsilon:.3g} they guess "
            f"{there:.3g}"
        ) from None
    mechanism = family(epsilon)
    guess = guess_rate(mechanism, weights=prior, draws=draws, seed=seed)
    if exact:
        result = deniability(mechanism, weights=prior, rows=prior.size)
        return Compared(family.name, epsilon, guess, result.mean("keep"), result.mean("distance"))
    (keep, keep_error), (distance, distance_error) = _sampled_utility(mechanism, prior, draws, seed)
    return Compared(family.name, epsilon, guess, keep, distance, keep_error, distance_error)


def _sampled_utility(mechanism: WordMechanism, prior: Floats, draws: int, seed: int) -> list[tuple[float, float]]:
    """(mean, error) of staying and of the distance moved, from words drawn as they occur."""
    bits = RandomBits(seed)
    inputs = _in_proportion(prior, draws, bits)
    outputs = mechanism.sample_rows(inputs, bits)
    order = np.argsort(inputs, kind="stable")
    rows, starts = np.unique(inputs[order], return_index=True)
    moved, table = np.empty(draws), mechanism.distance_table()
    for row, places in zip(rows, np.split(order, starts[1:]), strict=True):
        moved[places] = distances_from(table, np.array([row]))[0, outputs[places]]
    stays = (inputs == outputs).astype(np.float64)
    return [(float(stay.mean()), 1.96 * float(stay.std()) / math.sqrt(draws)) for stay in (stays, moved)]


def _blocks(mechanism: WordMechanism, distributions: Callable[[list[str]], Floats]) -> Iterator[Floats]:
    words = mechanism.vectors.words
    at_a_time = batch_for(len(words))
    for start in range(0, len(words), at_a_time):
        yield distributions(list(words[start : start + at_a_time]))


def _in_proportion(prior: Floats, draws: int, bits: RandomBits) -> Rows:
    edges = np.cumsum(prior)
    steps = (np.arange(draws) + bits.uniform(draws)) / draws * edges[-1]
    inputs: Rows = np.searchsorted(edges, np.minimum(steps, edges[-1]), side="left")
    return inputs


def _joint(inputs: Rows, outputs: Rows, size: int) -> tuple[Rows, Rows, Any]:
    """(input, output, count) of the pairs that occurred, so that a small vocabulary squared need not fit."""
    pairs, counts = np.unique(inputs * size + outputs, return_counts=True)
    return pairs // size, pairs % size, counts


def _guesses(inputs: Rows, outputs: Rows, size: int) -> Rows:
    """(V,) the input that most often gave each output; an output never seen stands for itself."""
    values, out, counts = _joint(inputs, outputs, size)
    order = np.argsort(counts, kind="stable")  # the largest last, so that it stays
    named = np.arange(size)
    named[out[order]] = values[order]
    return named


def _largest_cells(inputs: Rows, outputs: Rows, size: int) -> float:
    _, out, counts = _joint(inputs, outputs, size)
    largest = np.zeros(size)
    np.maximum.at(largest, out, counts)
    return float(largest.sum() / inputs.size)
