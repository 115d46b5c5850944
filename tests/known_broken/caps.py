"""PrivUnit: exact from the masses of caps, which scipy computes for the audit."""

import math

import numpy as np
from scipy import special

from dptext.representations.privunit import PrivUnit
from known_broken.case import Case, judge_table

DIMENSION, EPSILON = 64, 4.0


def honest():
    """Of the library."""
    return PrivUnit(epsilon=EPSILON).channel(DIMENSION)


class _OddsOfAFairCoin:
    """Chooses the cap as randomised response chooses the truth: the cap's mass is forgotten."""

    chance = math.exp(EPSILON) / (1 + math.exp(EPSILON))
    height = honest().height


class _RimOfFewerDimensions:
    """Calibrated for 60 dimensions and used in 64, where the same cap is lighter."""

    chance = PrivUnit(epsilon=EPSILON).channel(60).chance
    height = PrivUnit(epsilon=EPSILON).channel(60).height


def sender(channel):
    """In which region the outputs for x and for -x lie."""

    def draw(inputs, bits):
        draws = channel.sample((1 - 2 * inputs[:, None]) * np.eye(1, DIMENSION), bits).astype(np.float64)
        heights = draws[:, 0] / np.linalg.norm(draws, axis=1)
        return np.where(heights >= channel.height, 0, np.where(heights <= -channel.height, 1, 2))

    return draw


def judged(channel, sampler=None, run=(None, 1e-6)):
    """The regions that the caps of x and -x make, for the two inputs x and -x."""
    mass = 0.5 * special.betainc((DIMENSION - 1) / 2, 0.5, 1 - channel.height**2)
    inside, opposite = channel.chance, (1 - channel.chance) * mass / (1 - mass)
    rest = 1 - inside - opposite
    return judge_table([[inside, opposite, rest], [opposite, inside, rest]], EPSILON, sampler, run=run)


def _exact(channel, sampler=None):
    return lambda *run: judged(channel, sampler, run)


CASES = [
    Case("PrivUnit", False, _exact(honest(), sender(honest())), "the library's, on the chance that it draws with"),
    Case("PrivUnit, the cap's mass forgotten", True, _exact(_OddsOfAFairCoin), "chance e^eps / (1 + e^eps)"),
    Case("PrivUnit, rim of 60 dimensions", True, _exact(_RimOfFewerDimensions), "the cap is lighter in 64"),
]
