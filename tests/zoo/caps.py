"""PrivUnit: exact from the masses of caps, which scipy computes for the audit."""

import math

import numpy as np
from scipy import special

from dptext.audits import judge_exact
from dptext.representations.privunit import PrivUnit
from zoo.case import Case, PureDP, claim

DIMENSION, EPSILON = 64, 4.0
CLAIM = claim(PureDP(EPSILON))


def _honest():
    return PrivUnit(epsilon=EPSILON).channel(DIMENSION)


class _OddsOfAFairCoin:
    """Chooses the cap as randomised response chooses the truth: the cap's mass is forgotten."""

    chance = math.exp(EPSILON) / (1 + math.exp(EPSILON))
    height = _honest().height


class _RimOfFewerDimensions:
    """Calibrated for 60 dimensions and used in 64, where the same cap is lighter."""

    chance = PrivUnit(epsilon=EPSILON).channel(60).chance
    height = PrivUnit(epsilon=EPSILON).channel(60).height


def _exact(channel):
    """The regions that the caps of x and -x make, for the two inputs x and -x."""

    def run(_seed, _error):
        mass = 0.5 * special.betainc((DIMENSION - 1) / 2, 0.5, 1 - channel.height**2)
        inside, opposite = channel.chance, (1 - channel.chance) * mass / (1 - mass)
        rest = 1 - inside - opposite
        logs = np.log([[inside, opposite, rest], [opposite, inside, rest]])
        return judge_exact(CLAIM, logs, EPSILON, names=["x", "-x"], coverage="caps around x and -x")

    return run


CASES = [
    Case("PrivUnit", False, _exact(_honest()), "the library's, on the chance that it draws with"),
    Case("PrivUnit, the cap's mass forgotten", True, _exact(_OddsOfAFairCoin), "chance e^eps / (1 + e^eps)"),
    Case("PrivUnit, rim of 60 dimensions", True, _exact(_RimOfFewerDimensions), "the cap is lighter in 64"),
]
