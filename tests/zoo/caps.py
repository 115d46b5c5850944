"""PrivUnit: exact from the masses of caps, which scipy computes for the audit, and sampled along the vector."""

import math

import numpy as np
from scipy import special

from dptext.audits import judge_exact, judge_sample, sampled_loss
from dptext.representations.privunit import PrivUnit, PrivUnitG
from zoo.case import SAMPLES, Case, PureDP, claim

DIMENSION, EPSILON = 64, 4.0
AXIS = np.eye(DIMENSION)[:1]
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


def _sampled(sample):
    def run(seed, error):
        bound = sampled_loss(
            *(lambda count, bits, x=x: sample(np.repeat(x, count, axis=0), bits)[:, :1] for x in (AXIS, -AXIS)),
            samples=SAMPLES,
            error=error,
            score=lambda outputs: outputs[:, 0].astype(np.float64),
            seed=seed,
        )
        return judge_sample(
            CLAIM, bound, allowed=EPSILON, error=error, witness=f"x against -x, {bound.event}", coverage="x and -x"
        )

    return run


def _looser(randomizer):
    return randomizer(epsilon=1.5 * EPSILON).channel(DIMENSION).sample


CASES = [
    Case("PrivUnit", False, _exact(_honest()), "the library's, on the chance that it draws with"),
    Case("PrivUnit, the cap's mass forgotten", True, _exact(_OddsOfAFairCoin), "chance e^eps / (1 + e^eps)"),
    Case("PrivUnit, rim of 60 dimensions", True, _exact(_RimOfFewerDimensions), "the cap is lighter in 64"),
    Case("PrivUnit, sampled", False, _sampled(_honest().sample), "the library's, as it draws"),
    Case("PrivUnit, 1.5 times the budget", True, _sampled(_looser(PrivUnit)), "claims 4, spends 6"),
    Case("PrivUnitG, sampled", False, _sampled(PrivUnitG(epsilon=EPSILON).channel(DIMENSION).sample), "the library's"),
    Case("PrivUnitG, 1.5 times the budget", True, _sampled(_looser(PrivUnitG)), "claims 4, spends 6"),
]
