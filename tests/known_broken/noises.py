"""Noise on numbers and vectors: sampled audits with the score of an attacker who knows the mechanism."""

import numpy as np

import dptext
from known_broken.case import SAMPLES, Case, PureDP, judge_pair

DIMENSION = 64


# -- one number ------------------------------------------------------------------------------------------------


def laplace(bits, *shape):
    """The naive inverse-CDF sampler in float64."""
    uniform = bits.uniform(*shape) - 0.5
    return -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))


def naive_laplace(x, count, bits):
    return x + laplace(bits, count)


def off_the_grid(outputs):
    """1 + noise, where small, is a multiple of 2^-53; 0 + noise has finer digits (Mironov 2012)."""
    scaled = outputs * 2.0**53
    return (scaled != np.rint(scaled)).astype(float)


# -- vectors of 64 numbers between 0 and 1 ------------------------------------------------------------------------

LOW = np.arange(DIMENSION) % 2.0
HIGH = 1.0 - LOW


def dptext_paper(x, count, bits, epsilon=1.0):
    """-(1/epsilon) sgn(r) ln(1 - 2|r|) with r in [0, 1] instead of [-1/2, 1/2]: one-sided or undefined."""
    r = bits.uniform(count, DIMENSION)
    with np.errstate(invalid="ignore", divide="ignore"):
        return x - np.sign(r) * np.log(1 - 2 * np.abs(r)) / epsilon


def below_the_other(outputs):
    """Noise is never negative, so a coordinate below 1 excludes the input that has 1 there (and so for both)."""
    with np.errstate(invalid="ignore"):
        return ((outputs < 1) & (LOW == 0)).sum(axis=1) - ((outputs < 1) & (HIGH == 0)).sum(axis=1).astype(float)


def _case(name, broken, pair, draw, score, why, epsilon=1.0, samples=SAMPLES):
    def run(seed, error):
        return judge_pair(pair, draw, score, PureDP(epsilon), seed, error, samples)

    return Case(name, broken, run, why)


CASES = [
    _case("Laplace, naive float64", True, (0.0, 1.0), naive_laplace, off_the_grid, "its low digits tell the input"),
    _case("DPText's sampler", True, (LOW, HIGH), dptext_paper, below_the_other, "one-sided noise"),
]


def _line():
    return dptext.load_vectors((["ape", "bee", "cow"], [[0.0], [1.0], [3.0]]))


def _madlib(noise_share):
    def run(seed, error):
        """The black box of `dptext.audit`: words in, words out."""
        honest = dptext.Madlib(_line(), epsilon=1.0).statement
        mechanism = dptext.Madlib(_line(), epsilon=1.0 / noise_share)
        return dptext.audit(mechanism, honest, samples=SAMPLES, error=error, seed=seed, words=["ape", "bee"])

    return run


CASES += [
    Case("Madlib", False, _madlib(1.0), "the library's, as a black box"),
    Case("Madlib, 1.5 times too little noise", True, _madlib(1 / 1.5), "claims 1, spends 1.5"),
]


EPSILON = 0.5


def _long_cloud():
    """Far along one axis, near along the others; "ape" and "bee" lie apart on the long one, "cat" across."""
    generator = np.random.default_rng(4)
    points = generator.normal(size=(60, 4)) * [8.0, 1.0, 1.0, 1.0]
    points[:3] = [[0.0, 0, 0, 0], [6.0, 0, 0, 0], [0.0, 3.0, 0, 0]]
    words = ["ape", "bee", "cat", *(f"word{'abcdefghij'[n % 10]}{n}x" for n in range(57))]
    return dptext.load_vectors((words, points))


class _MatrixForRoot(dptext.Mahalanobis):
    """Multiplies the direction by A in place of its root."""

    def _noise(self, bits, count):
        root = self._ellipsoid.root
        return (
            bits.exponential(count, 4).sum(axis=1, keepdims=True)
            / self.epsilon
            * _directions(bits, count)
            @ (root @ root.T)
        )


def _directions(bits, count):
    normal = bits.normal(count, 4)
    return normal / np.sqrt((normal**2).sum(axis=1, keepdims=True))


def _mahalanobis(build, words):
    """Audit the noise that `build` adds against the library's claim."""

    def run(seed, error):
        vectors = _long_cloud()
        honest = dptext.Mahalanobis(vectors, epsilon=EPSILON, lambda_=1.0).statement
        return dptext.audit(build(vectors), honest, samples=SAMPLES, error=error, seed=seed, words=words)

    return run


def _elliptical(vectors):
    return dptext.Mahalanobis(vectors, epsilon=EPSILON, lambda_=1.0)


def _spherical(vectors):
    return dptext.Madlib(vectors, epsilon=EPSILON)


def _matrix_for_root(vectors):
    return _MatrixForRoot(vectors, epsilon=EPSILON, lambda_=1.0)


class _SeesTheWord(dptext.Vickrey):
    """Weighs the two neighbours by their distances from the *true* word."""

    def _choose(self, near, noisy, rows, bits):
        points = self.vectors.matrix
        one, other = (np.sqrt(((points[near[:, k]] - points[rows]) ** 2).sum(axis=1)) for k in (0, 1))
        return np.where(bits.uniform(len(rows)) * (one + other) > other, near[:, 1], near[:, 0])


def _vickrey(build, **options):
    def run(seed, error):
        honest = dptext.Vickrey(_line(), epsilon=1.0).statement
        mechanism = build(_line(), epsilon=1.0, **options)
        return dptext.audit(mechanism, honest, samples=SAMPLES, error=error, seed=seed, words=["ape", "bee"])

    return run


CASES += [
    Case("Mahalanobis", False, _mahalanobis(_elliptical, ["ape", "bee"]), "the library's, as a black box"),
    Case("Mahalanobis, across", False, _mahalanobis(_elliptical, ["ape", "cat"]), "the library's, on a short axis"),
    Case("Mahalanobis, spherical noise", True, _mahalanobis(_spherical, ["ape", "bee"]), "too little on the long axis"),
    Case(
        "Mahalanobis, matrix for root", True, _mahalanobis(_matrix_for_root, ["ape", "cat"]), "too little, short axis"
    ),
    Case("Vickrey", False, _vickrey(dptext.Vickrey), "the library's: the choice is post-processing"),
    Case("Vickrey, the choice sees the word", True, _vickrey(_SeesTheWord), "odds from the true word's distances"),
    Case(
        "Vickrey, as published",
        True,
        _vickrey(dptext.Vickrey, unsafe_as_published=True),
        "the true word is no candidate",
    ),
]
