"""Where the deltas of the paper's table 3 come from, and what the same training would cost whom.

The table gives the budget of its private vectors as (0.125, delta), with a delta for each number of steps. The
authors' code (https://github.com/sonvx/dpText, `codes/word2vec/tf_dp_word_embedding.py`) asks the moments accountant
of Abadi et al. 2016 with N = the size of the *vocabulary*, where the number of training examples belongs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from dptext.errors import extra
from dptext.privacy.gaussian import gaussian_epsilon

__all__ = ["EPSILON", "LOSSES", "PRINTED", "costs", "moments_delta"]

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
"""The delta of table 3 after so many steps."""
EPSILON, SIGMA, LOT, VOCABULARY, MOST_ORDER = 0.125, 5.0, 128, 50_000, 32
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
"""Whose loss it is: pairs of his, pairs of all."""


def moments_delta(steps: int, *, rate: float, sigma: float, epsilon: float, orders: int) -> tuple[float, int]:
    """(delta, the order that gave it) of the moments accountant, for whole orders from 1 to ``orders``.

    Without any loss at all it still says  min over lambda of e^(-lambda epsilon) = e^(-orders epsilon).
    """
    result = []
    for order in range(1, orders + 1):
        moment = steps * _log_moment(order, rate, sigma)  # Abadi et al. 2016, theorem 2.1: they add up
        result.append((math.exp(min(0.0, moment - order * epsilon)), order))  # theorem 2.2
    return min(result)


def costs(settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
    """What so many steps cost: the accountant of the paper, and the distribution of the loss itself.

    Settings: ``steps``; ``of``, one of `LOSSES`. The deltas are upper bounds, exact but for the grid.
    """
    steps = settings["steps"]
    own, everybodys = LOSSES[settings["of"]]
    loss = _loss(own, everybodys, steps)
    moments, order = moments_delta(steps, rate=LOT / everybodys, sigma=SIGMA, epsilon=EPSILON, orders=MOST_ORDER)
    return {
        "moments delta": moments,
        "moments order": float(order),
        "delta": float(loss.get_delta_for_epsilon(EPSILON)),
        "epsilon": float(loss.get_epsilon_for_delta(DELTA)),
    }


def epsilon_of_a_step_as_coded() -> float:
    """What one step tells of a pair that is in it with the noise of the code: sigma C^2 where sigma C was meant.

    At best: if the sum of a lot moved by C when a pair changes. (The code clips the mean of a lot instead of its pairs,
    three times over for three tables, so that one pair may turn it round: by twice C for each.)
    """
    return gaussian_epsilon(sigma=SIGMA * CLIP, delta=DELTA, sensitivity=1.0)


def _log_moment(order: int, rate: float, sigma: float) -> float:
    """ln E[(mixture / N(0, sigma^2))^(order + 1)] under N(0, sigma^2): the larger of the two moments of a step.

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
def _loss(own: int, everybodys: int, steps: int) -> Any:
    """The loss of all steps, for somebody of whose pairs each is in a lot by a coin of its own.

    With k pairs in a lot the sum moves by k: a mixture of Gaussians (Ganesh 2024, "Tight group-level DP guarantees for
    DP-SGD with sampling via mixture of Gaussians mechanisms").
    """
    accounting = extra("dp_accounting.pld.privacy_loss_distribution", "accounting", "accounting of samples")
    rate = LOT / everybodys
    chances = [_binomial(own, count, rate) for count in range(min(own, 6))]
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
