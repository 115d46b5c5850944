"""Randomizers of vectors as black boxes that `dptext.audit` chooses the pair and the score for."""

import dptext
from dptext.representations.cube import Piecewise
from dptext.representations.federate import NormalisedLaplace
from dptext.representations.privunit import PrivUnit, PrivUnitG
from dptext.representations.unary import SymmetricUnary
from zoo.case import SAMPLES, Case

DIMENSION, EPSILON = 16, 4.0


def _sound(build):
    def run(seed, error):
        return dptext.audit(build(EPSILON), dimension=DIMENSION, samples=SAMPLES, error=error, seed=seed)

    return run


def _twin(build, share=1.5):
    def run(seed, error):
        promised = build(EPSILON).statement(DIMENSION)
        return dptext.audit(
            build(share * EPSILON).channel(DIMENSION), promised, samples=SAMPLES, error=error, seed=seed
        )

    return run


BUILDS = {
    "PrivUnit": lambda epsilon: PrivUnit(epsilon=epsilon),
    "PrivUnitG": lambda epsilon: PrivUnitG(epsilon=epsilon),
    "FEDERATE's noise": lambda epsilon: NormalisedLaplace(epsilon=epsilon),
    "Piecewise": lambda epsilon: Piecewise(epsilon=epsilon),
    "SymmetricUnary": lambda epsilon: SymmetricUnary(epsilon=epsilon),
}

CASES = [
    case
    for name, build in BUILDS.items()
    for case in (
        Case(f"{name}, d=16", False, _sound(build), "the library's, as a black box"),
        Case(f"{name}, 1.5 times too little noise", True, _twin(build), "claims 4, spends 6"),
    )
]
CASES.append(
    Case(
        "FEDERATE's noise, sensitivity 1",
        True,
        _twin(BUILDS["FEDERATE's noise"], 2.0),
        "opposite vectors of L1 norm 1 are 2 apart",
    )
)
