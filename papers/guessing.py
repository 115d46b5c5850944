"""Mechanisms compared at equal *measured* indistinguishability instead of equal epsilon.

Two mechanisms with the same epsilon have the same guarantee and may hide words very differently: the guarantee is an
upper bound, and one of them may stay far below it. Here the attack success is compared. The attacker knows the
mechanism, the vocabulary and the word frequencies, sees the output x and names the most likely input. The success is G
of `dptext.privacy.guarantee`, with pi the public frequencies (1 / rank by default). No attacker of single words does
better, G has the same meaning in every metric, and its floor is the guess without any output. It is an average over
words, so it is no guarantee for each of them.

**From draws.** Words are drawn in proportion to pi (one at random in each of n equal steps of the frequencies), with an
output each. An attacker who learns guesses on one half and is tested on the other cannot beat G in expectation; the
largest cells of the joint histogram of all draws sum to at least G in expectation, since a maximum is convex. Each is
within sqrt(ln(2 / error) / 2n) of its expectation (Hoeffding; McDiarmid: one draw moves the second by 1 / n). G is
between them with probability 1 - error. Draws say little for many outputs: n should be many times the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import WordMechanism

_ERROR = 0.05


@dataclass(frozen=True)
class Guess:
    """Success of the best attacker.

    Attributes:
        rate: G, exactly or the middle of ``low`` and ``high``.
        low, high: bounds of G with probability at least 95%.
        blind: success without the output.
        draws: number of draws; None if the result is exact.
    """

    rate: float
    low: float
    high: float
    blind: float
    draws: int | None


@dataclass(frozen=True)
class Compared:
    """A mechanism at the epsilon with a given attack success.

    Attributes:
        mechanism: its name.
        epsilon: four digits, rounded towards more privacy.
        guess: the attack success there.
        keep: how often a word of running text stays.
        distance: mean distance between word and output, in the metric of epsilon.
    """

    mechanism: str
    epsilon: float
    guess: Guess
    keep: float
    distance: float


def guess_rate(
    mechanism: WordMechanism, *, weights: npt.ArrayLike | None = None, draws: int = 200_000, seed: int | None = None
) -> Guess:
    """Return the success of the best attacker who guesses a word from its output.

    It is exact for mechanisms with ``distributions`` (the work grows with the square of the vocabulary, so use
    ``limit=1000``), and comes from draws for others. ``weights`` are (V,) public frequencies; None: 1 / rank.

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
        words, size = mechanism.vectors.words, batch_for(len(prior))
        blocks = (distributions(list(words[start : start + size])) for start in range(0, len(words), size))
        rate = best_guesses(blocks, prior).rate
        return Guess(rate, rate, rate, blind, None)
    half = draws // 2
    bits = RandomBits(seed)
    inputs = np.concatenate([_sample(prior, half, bits) for _ in range(2)])
    outputs = mechanism.sample_rows(inputs, bits)
    guesses = _guesses(inputs[:half], outputs[:half], prior.size)
    hits = float((guesses[outputs[half:]] == inputs[half:]).mean())
    low = max(hits - math.sqrt(math.log(2 / _ERROR) / (2 * half)), blind)
    high = min(_largest_cells(inputs, outputs, prior.size) + math.sqrt(math.log(2 / _ERROR) / (4 * half)), 1.0)
    return Guess((low + high) / 2, low, high, blind, 2 * half)


def compare(
    vectors: WordVectors,
    mechanisms: Sequence[str | Callable[..., WordMechanism]] = ("tem", "madlib"),
    *,
    targets: Sequence[float] = (0.25, 0.5, 0.75),
    weights: npt.ArrayLike | None = None,
    draws: int = 200_000,
    seed: int | None = None,
) -> list[Compared]:
    """Return mechanisms at the epsilons with equal attack success, and their utility there.

    Args:
        vectors: public word vectors of a few thousand words at most.
        mechanisms: names, or builders (vectors, epsilon=...).
        targets: attack success, above that of the blind guess.
        weights, draws, seed: see `guess_rate`.
    """
    prior = check_weights(weights, len(vectors))
    if any(not prior.max() < target < 1 for target in targets):
        raise ParameterError(f"targets must be between the blind guess, {prior.max():.3g}, and 1, got {targets}")
    options: dict[str, Any] = {"draws": draws, "seed": fresh_seed() if seed is None else seed}
    families = [Family(vectors, mechanism) for mechanism in mechanisms]
    return [_at_success(family, target, prior, **options) for target in targets for family in families]


def _at_success(family: Family, target: float, prior: Floats, *, draws: int, seed: int) -> Compared:
    start = family.start()
    is_exact = distributions_of(family(start)) is not None

    def guess_at(epsilon: float) -> Guess:
        return guess_rate(family(epsilon), weights=prior, draws=draws, seed=seed)

    try:
        tolerance = EXACT_TOLERANCE if is_exact else SAMPLED_TOLERANCE
        excess = lambda epsilon: log_odds(guess_at(epsilon).rate) - log_odds(target)  # noqa: E731
        epsilon = rounded_down(crossing(excess, start=start, tolerance=tolerance), DIGITS)
    except UnreachableError as error:
        raise ParameterError(
            f"no epsilon of {family.name} gives the success {target:g}: at {error.epsilon:.3g} it is "
            f"{guess_at(error.epsilon).rate:.3g}"
        ) from None
    mechanism, guess = family(epsilon), guess_at(epsilon)
    if is_exact:
        result = deniability(mechanism, weights=prior, rows=prior.size)
        return Compared(family.name, epsilon, guess, result.mean("keep"), result.mean("distance"))
    return Compared(family.name, epsilon, guess, *_sampled_utility(mechanism, prior, draws, seed))


def _sampled_utility(mechanism: WordMechanism, prior: Floats, draws: int, seed: int) -> tuple[float, float]:
    """Return the keep rate and the mean distance of words that are drawn by frequency."""
    bits = RandomBits(seed)
    inputs = _sample(prior, draws, bits)
    outputs = mechanism.sample_rows(inputs, bits)
    order = np.argsort(inputs, kind="stable")
    rows, starts = np.unique(inputs[order], return_index=True)
    distances, table = np.empty(draws), mechanism.distance_table()
    for row, places in zip(rows, np.split(order, starts[1:]), strict=True):
        distances[places] = distances_from(table, np.array([row]))[0, outputs[places]]
    return float((inputs == outputs).mean()), float(distances.mean())


def _sample(prior: Floats, draws: int, bits: RandomBits) -> Rows:
    """Draw words in proportion to their frequency."""
    edges = np.cumsum(prior)
    steps = (np.arange(draws) + bits.uniform(draws)) / draws * edges[-1]
    inputs: Rows = np.searchsorted(edges, np.minimum(steps, edges[-1]), side="left")
    return inputs


def _joint(inputs: Rows, outputs: Rows, size: int) -> tuple[Rows, Rows, Any]:
    """Return (inputs, outputs, counts) of the pairs that occurred."""
    pairs, counts = np.unique(inputs * size + outputs, return_counts=True)
    return pairs // size, pairs % size, counts


def _guesses(inputs: Rows, outputs: Rows, size: int) -> Rows:
    """Return the (V,) most frequent input of each output; the output itself if it did not occur."""
    sources, results, counts = _joint(inputs, outputs, size)
    order = np.argsort(counts, kind="stable")  # the largest is last and stays
    guesses = np.arange(size)
    guesses[results[order]] = sources[order]
    return guesses


def _largest_cells(inputs: Rows, outputs: Rows, size: int) -> float:
    _, results, counts = _joint(inputs, outputs, size)
    largest = np.zeros(size)
    np.maximum.at(largest, results, counts)
    return float(largest.sum() / inputs.size)
