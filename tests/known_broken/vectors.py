"""Noise on vectors: the library's own channels, sampled unchanged, and with less noise than the claim needs.

The pair is the farthest of the unit ball: a vector and its negative, along the diagonal, where L1 is largest.
"""

import math
from functools import partial

import numpy as np
from scipy import special

from dptext.noise.gaussian_sums import rounded_gaussian, rounded_laplace
from dptext.representations.additive import Gaussian, L2Laplace, Laplace
from known_broken.case import SAMPLES, ApproxDP, Case, PureDP, claim, judge_pair, judge_table

EPSILON = 2.0
DELTA = 0.01
FEW = 3
DIMENSION = 16


def _pair(dimension):
    """At the rim of the ball, opposite each other."""
    return np.full(dimension, dimension**-0.5), np.full(dimension, -(dimension**-0.5))


def _draw(randomizer, x, count, bits):
    """The library's channel, on copies of one vector."""
    channel = randomizer.channel(x.size)
    parts = [channel.sample(np.tile(x, (min(20_000, count - start), 1)), bits) for start in range(0, count, 20_000)]
    return np.concatenate(parts)


def _l1_ratio(randomizer, outputs):
    one, other = _pair(outputs.shape[1])
    scale = randomizer.channel(outputs.shape[1]).parameters()["scale"]
    return (np.abs(outputs - other) - np.abs(outputs - one)).sum(axis=1) / scale


def _l2_ratio(outputs):
    """The log-likelihood ratio, but for the scale."""
    one, other = _pair(outputs.shape[1])
    return np.sqrt(((outputs - other) ** 2).sum(axis=1)) - np.sqrt(((outputs - one) ** 2).sum(axis=1))


def _along(outputs):
    return outputs.astype(np.float64) @ _pair(outputs.shape[1])[0]


def _case(name, why, randomizer, score, guarantee, *, broken=False, dimension=FEW, samples=SAMPLES):
    """`randomizer` draws, `guarantee` is claimed."""

    def run(seed, error):
        return judge_pair(_pair(dimension), partial(_draw, randomizer), score, guarantee, seed, error, samples)

    return Case(name, broken, run, why)


def _claimed(noise, score_of, kind):
    """The library's, and its noise with twice and with 1.5 times the epsilon behind the same claim."""
    pure, two, three = PureDP(EPSILON), noise(2 * EPSILON), noise(1.5 * EPSILON)
    return [
        _case(kind, "the library's", noise(EPSILON), score_of(noise(EPSILON)), pure),
        _case(f"{kind}, radius for diameter", "two vectors are 2 C apart", two, score_of(two), pure, broken=True),
        _case(f"{kind}, 1.5 times too little noise", "spends 3", three, score_of(three), pure, broken=True),
    ]


def _rounded_alone(x, count, bits):
    """The grid of the noise is moved by the input, so the digits below the grid are the input's."""
    scale = 2 * math.sqrt(x.size) / EPSILON
    step = scale / 2**12
    return x + step * rounded_laplace(bits, np.zeros((count, x.size)), scale=scale, step=step)


def _nearest_grid(outputs):
    step = 2 * math.sqrt(outputs.shape[1]) / EPSILON / 2**12
    off = [np.abs((outputs - x) / step - np.rint((outputs - x) / step)).sum(axis=1) for x in _pair(outputs.shape[1])]
    return off[1] - off[0]


def _alone(seed, error):
    return judge_pair(_pair(FEW), _rounded_alone, _nearest_grid, PureDP(EPSILON), seed, error, SAMPLES // 4)


# -- the normal ------------------------------------------------------------------------------------------------------


def _short_gaussian(share):
    """The library's noise, shortened, behind the library's claim."""
    sigma = share * Gaussian(epsilon=EPSILON, delta=DELTA).channel(DIMENSION).parameters()["sigma"]

    def draw(x, count, bits):
        return rounded_gaussian(bits, np.tile(x, (count, 1)), sigma=sigma, step=sigma / 2**12)

    return lambda seed, error: judge_pair(_pair(DIMENSION), draw, _along, ApproxDP(EPSILON, DELTA), seed, error)


# -- on a line, exactly ------------------------------------------------------------------------------

LARGE = 20.0
SMALL = 1e-5


def _line(sigma):
    """The probabilities of all grid points, of the step that the library takes, for inputs 1 and -1."""

    def run(seed, error):
        step = sigma / 2**12
        whole = math.ceil((1 + 12 * sigma) / step)
        borders = (np.arange(-whole, whole + 1) - 0.5) * step
        rows = []
        for x in (1.0, -1.0):
            below = special.ndtr((borders - x) / sigma)
            above = special.ndtr((x - borders) / sigma)
            # each from the side where it keeps its digits
            inner = np.where(borders[1:] < x, np.diff(below), -np.diff(above))
            rows.append(np.concatenate([[below[0]], inner, [above[-1]]]))

        def draw(inputs, bits):
            points = rounded_gaussian(bits, 1.0 - 2.0 * inputs[:, None], sigma=sigma, step=step)[:, 0]
            return np.clip(points + whole + 1, 0, 2 * whole + 1).astype(np.int64)

        return judge_table(np.array(rows), LARGE, draw, run=(seed, error), claimed=claim(ApproxDP(LARGE, SMALL)))

    return run


def _library_sigma():
    return float(Gaussian(epsilon=LARGE, delta=SMALL).channel(1).parameters()["sigma"])


L2, GAUSSIAN = Laplace(epsilon=EPSILON * math.sqrt(FEW)), Gaussian(epsilon=EPSILON, delta=DELTA)
CLASSICAL_SIGMA = 2 * math.sqrt(2 * math.log(1.25 / SMALL)) / LARGE
CASES = [
    *_claimed(lambda epsilon: Laplace(epsilon=epsilon), lambda noise: partial(_l1_ratio, noise), "Laplace, vectors"),
    _case("Laplace, L2 diameter in place of L1", "sqrt(3)", L2, partial(_l1_ratio, L2), PureDP(EPSILON), broken=True),
    Case("Laplace, noise rounded alone", True, _alone, "the low digits reveal the input"),
    *_claimed(lambda epsilon: L2Laplace(epsilon=epsilon), lambda _noise: _l2_ratio, "L2-Laplace"),
    _case("Gaussian", "the library's", GAUSSIAN, _along, ApproxDP(EPSILON, DELTA), dimension=DIMENSION),
    Case("Gaussian, radius for diameter", True, _short_gaussian(1 / 2), "scaled to C: any two vectors are 2 C apart"),
    Case("Gaussian, 1.5 times too little noise", True, _short_gaussian(2 / 3), "the claim stays"),
    Case("Gaussian, on a line", False, _line(_library_sigma()), "analytic calibration, rounded to the grid"),
    Case("Gaussian, classical formula at epsilon 20", True, _line(CLASSICAL_SIGMA), "proved below epsilon 1 only"),
]
