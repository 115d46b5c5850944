"""The deltas of the paper's table 3, and the true privacy loss of the same training.

The table gives the budget of the private vectors as (0.125, delta), with a delta for each number of steps. The
authors' code (https://github.com/sonvx/dpText, `codes/word2vec/tf_dp_word_embedding.py`) calls the moments accountant
of Abadi et al. 2016 with N = the size of the *vocabulary* instead of the number of training examples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from dptext.errors import extra
from dptext.privacy.gaussian import gaussian_epsilon

PRINTED = {
    20: 0.0184,
    200: 0.0189,
    500: 0.0197,
    1_000: 0.0211,
    5_000: 0.0372,
    10_000: 0.0755,
    50_000: 0.5929,
    90_000: 0.7681,
    100_000: 0.7926,
}
"""Deltas of table 3 by the number of steps."""
EPSILON, SIGMA, LOT, VOCABULARY, MAX_ORDER = 0.125, 5.0, 128, 50_000, 32
TEXT8_PAIRS = 2 * 17_005_207  # two pairs a word (table 1; `num_skips` of the code)
MYPER_WORDS, MYPER_USERS = 416_862_367, 153_727  # table 1, the private part
USER_PAIRS = round(2 * MYPER_WORDS / MYPER_USERS)
CLIP = 0.01  # C of the code, whose noise has a standard deviation of sigma C^2: so sigma C clipping norms
DELTA = 1e-6
LOSSES = {
    "a pair of 50,000": (1, VOCABULARY),
    "a pair of text8": (1, TEXT8_PAIRS),
    "a user of myPersonality": (USER_PAIRS, 2 * MYPER_WORDS),
}
"""Privacy units: their number of pairs, and the number of all pairs."""


def moments_delta(steps: int, *, rate: float, sigma: float, epsilon: float, orders: int) -> tuple[float, int]:
    """Return (delta, its order) of the moments accountant, for whole orders from 1 to ``orders``.

    For zero loss it still returns  min over lambda of e^(-lambda epsilon) = e^(-orders epsilon).
    """
    result = []
    for order in range(1, orders + 1):
        moment = steps * _log_moment(order, rate, sigma)  # Abadi et al. 2016, theorem 2.1: they add up
        result.append((math.exp(min(0.0, moment - order * epsilon)), order))  # theorem 2.2
    return min(result)


def measure_costs(settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
    """Return the accountant's delta and the exact loss for ``steps`` and ``of``, one of `LOSSES`.

    The deltas are upper bounds, exact up to the grid.
    """
    steps = settings["steps"]
    user_pairs, all_pairs = LOSSES[settings["of"]]
    loss = _loss(user_pairs, all_pairs, steps)
    moments, order = moments_delta(steps, rate=LOT / all_pairs, sigma=SIGMA, epsilon=EPSILON, orders=MAX_ORDER)
    return {
        "moments delta": moments,
        "moments order": float(order),
        "delta": float(loss.get_delta_for_epsilon(EPSILON)),
        "epsilon": float(loss.get_epsilon_for_delta(DELTA)),
    }


def epsilon_of_a_step_as_coded() -> float:
    """Return the epsilon of one step for a pair in it, with the noise sigma C^2 of the code instead of sigma C.

    This is a lower bound, attained if a changed pair moves the sum by C. (The code clips the mean of a lot instead of
    its pairs, separately for three tables, so one pair can reverse it, by twice C each.)
    """
    return gaussian_epsilon(sigma=SIGMA * CLIP, delta=DELTA, sensitivity=1.0)


def _log_moment(order: int, rate: float, sigma: float) -> float:
    """Return ln E[(mixture / N(0, sigma^2))^(order + 1)] under N(0, sigma^2), the larger of the two moments of a step.

    The sum of binomial terms of Mironov, Talwar and Zhang 2019, section 3.3.
    """
    power = order + 1
    terms = [
        math.log(math.comb(power, k))
        + (power - k) * math.log1p(-rate)
        + (k * math.log(rate) if k else 0.0)
        + (k * k - k) / (2 * sigma**2)
        for k in range(power + 1)
    ]
    maximum = max(terms)
    return maximum + math.log(sum(math.exp(term - maximum) for term in terms))


@cache
def _loss(user_pairs: int, all_pairs: int, steps: int) -> Any:
    """Return the loss of all steps for a user whose pairs are sampled independently.

    With k pairs in a lot the sum moves by k: a mixture of Gaussians (Ganesh 2024, "Tight group-level DP guarantees for
    DP-SGD with sampling via mixture of Gaussians mechanisms").
    """
    accounting = extra("dp_accounting.pld.privacy_loss_distribution", "accounting", "accounting of samples")
    rate = LOT / all_pairs
    chances = [_binomial(user_pairs, count, rate) for count in range(min(user_pairs, 6))]
    chances.append(max(0.0, 1 - math.fsum(chances)))  # 6 pairs or more, of which there are none to speak of
    one = accounting.from_mixture_gaussian_mechanism(
        standard_deviation=SIGMA,
        sensitivities=[float(count) for count in range(len(chances))],
        sampling_probs=chances,
        value_discretization_interval=1e-5,
    )
    return one.self_compose(steps) if steps > 1 else one


def _binomial(tries: int, count: int, chance: float) -> float:
    return math.comb(tries, count) * chance**count * (1 - chance) ** (tries - count)
