"""Randomizers of vectors: every one of the library, and its twin with 1.5 times too little noise."""

import dptext
from dptext.representations.privunit import PrivUnit, PrivUnitG
from zoo.case import SAMPLES, Case

DIMENSION, EPSILON = 16, 4.0


def _sound(build):
    def run(seed, error):
        return dptext.audit(build(EPSILON), dimension=DIMENSION, samples=SAMPLES, error=error, seed=seed)

    return run


def _twin(build):
    def run(seed, error):
        promised = build(EPSILON).statement(DIMENSION)
        return dptext.audit(build(1.5 * EPSILON).channel(DIMENSION), promised, samples=SAMPLES, error=error, seed=seed)

    return run


BUILDS = {
    "PrivUnit": lambda epsilon: PrivUnit(epsilon=epsilon),
    "PrivUnitG": lambda epsilon: PrivUnitG(epsilon=epsilon),
}

CASES = [
    case
    for name, build in BUILDS.items()
    for case in (
        Case(f"{name}, d=16", False, _sound(build), "the library's, as a black box"),
        Case(f"{name}, 1.5 times too little noise", True, _twin(build), "claims 4, spends 6"),
    )
]
