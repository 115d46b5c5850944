"""Attack success, the measure by which mechanisms are compared in docs/understand/epsilon.md.

The attacker knows the mechanism, the vocabulary and the word frequencies, sees the output x and names the most likely
input. The success is G of `dptext.privacy.guarantee`, with pi the public frequencies (1 / rank by default). No attacker
of single words does better. It is an average over words, so it is no guarantee for each of them.

**From draws.** Words are drawn in proportion to pi (one at random in each of n equal steps of the frequencies), with an
output each. An attacker who learns guesses on one half and is tested on the other cannot beat G in expectation; the
largest cells of the joint histogram of all draws sum to at least G in expectation, since a maximum is convex. Each is
within sqrt(ln(2 / error) / 2n) of its expectation (Hoeffding; McDiarmid: one draw moves the second by 1 / n). G is
between them with probability 1 - error. Draws say little for many outputs: n should be many times the vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.calibration.deniability import Floats, Rows, batch_for, check_weights, distributions_of
from dptext.privacy.guarantee import best_guesses
from dptext.privacy.randomness import RandomBits
from dptext.words.mechanism import WordMechanism

_ERROR = 0.05


@dataclass(frozen=True)
class Guess:
    """Success of the best attacker: exact, or the middle of bounds that hold with probability at least 95%.

    ``blind`` is the success without the output, ``draws`` their number; None if the result is exact.
    """

    rate: float
    low: float
    high: float
    blind: float
    draws: int | None


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
    _, results, counts = _joint(inputs, outputs, prior.size)
    largest = np.zeros(prior.size)
    np.maximum.at(largest, results, counts)
    high = min(float(largest.sum() / inputs.size) + math.sqrt(math.log(2 / _ERROR) / (4 * half)), 1.0)
    return Guess((low + high) / 2, low, high, blind, 2 * half)


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
