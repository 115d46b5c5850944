"""Randomizers of vectors as black boxes that `dptext.audit` chooses the pair and the score for."""

import numpy as np

import dptext
from dptext.representations.additive import Gaussian, L2Laplace, NormalisedLaplace
from dptext.representations.bits import SymmetricUnary
from dptext.representations.cube import Piecewise
from dptext.representations.privunit import PrivUnit, PrivUnitG
from known_broken.case import SAMPLES, Case

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
        "FEDERATE's noise, sensitivity 1", True, _twin(BUILDS["FEDERATE's noise"], 2.0), "opposite vectors are 2 apart"
    )
)


# -- noise that is wrong in many dimensions, where a score shows little ------------------------------------------------

MANY = 64


class Altered:
    """A channel of which ``alter`` changes the outputs: ((n, d) vectors, (n, d) noise) -> (n, d) noise."""

    def __init__(self, channel, alter):
        self._channel, self._alter = channel, alter
        self.domain, self.dimension = str(channel.domain), channel.dimension

    def sample(self, vectors, bits):
        noise = self._channel.sample(vectors, bits) - vectors
        return (vectors + self._alter(vectors, noise)).astype(np.float32)


def correlated(_vectors, noise):
    """Every second row repeats .9 of the noise of the row before it; the scale stays."""
    noise[1::2] = 0.9 * noise[: noise.shape[0] // 2 * 2 : 2] + np.sqrt(1 - 0.9**2) * noise[1::2]
    return noise


def bare_at_the_rim(vectors, noise):
    """No noise where one coordinate exceeds .9."""
    return np.where((np.abs(vectors) > 0.9).any(axis=1, keepdims=True), 0.0, noise)


def altered(randomizer, alter, samples=20_000):
    def run(seed, error):
        mechanism = Altered(randomizer.channel(MANY), alter)
        return dptext.audit(mechanism, randomizer.statement(MANY), samples=samples, error=error, seed=seed)

    return run


L2_LAPLACE, GAUSSIAN = L2Laplace(epsilon=3.0), Gaussian(epsilon=3.0, delta=1e-6)
CASES += [
    Case("L2-Laplace, d=64", False, altered(L2_LAPLACE, lambda _vectors, noise: noise), "the library's"),
    Case("Gaussian, d=64", False, altered(GAUSSIAN, lambda _vectors, noise: noise), "the library's"),
    Case("L2-Laplace, d=64, no noise", True, altered(L2_LAPLACE, lambda _vectors, noise: 0 * noise), "no noise"),
    Case("L2-Laplace, d=64, half of the noise", True, altered(L2_LAPLACE, lambda _, noise: noise / 2), "epsilon 6"),
    Case("L2-Laplace, d=64, 0.7 of the noise", True, altered(L2_LAPLACE, lambda _, noise: 0.7 * noise), "spends 4.3"),
    Case("Gaussian, d=64, half of the noise", True, altered(GAUSSIAN, lambda _, noise: noise / 2), "the claim stays"),
    Case("L2-Laplace, d=64, neighbouring rows correlated", True, altered(L2_LAPLACE, correlated), "shared noise"),
    Case("L2-Laplace, d=64, no noise at the rim", True, altered(L2_LAPLACE, bare_at_the_rim), "some get no noise"),
    Case(
        "L2-Laplace, d=64, a scale that is too small for its epsilon",
        True,
        lambda seed, error: dptext.audit(
            L2Laplace(epsilon=6.0).channel(MANY),
            L2Laplace(epsilon=6.0).statement(MANY).replace(guarantee=dptext.PureDP(3.0)),
            samples=20_000,
            error=error,
            seed=seed,
        ),
        "the statement names noise of epsilon 6",
    ),
]
