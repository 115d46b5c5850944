"""Density ratios estimated from a noisy release: how likely a text is in each class, and how near to the users' texts.

Everything here is post-processing: it uses the released matrix and public numbers alone, so it spends no budget.

**Moments.** For each class y the release holds a row M_y = [b n_y, sqrt(1 - b^2) s_y] plus N(0, sigma^2) noise on every
number: n_y counts the documents of the class and s_y is the sum of their vectors. The mean mu and the covariance S of
the public pool are known exactly. The counts are shrunk towards their average N / K, whose prior deviation is a
quarter of it:

    n^_y = N/K + r (M_y0 / b - N/K),   r = (N/4K)^2 / ((N/4K)^2 + (sigma/b)^2),                            (counts)
    p_y = n^_y / N^,   m_y = M_y1 / (sqrt(1 - b^2) n^_y),   e_y = sigma^2 / ((1 - b^2) n^_y^2).            (moments)

e_y is the variance of the noise in each number of m_y. With few users the noise on a count exceeds the count
(deviation 21 at epsilon 1), and shares taken at face value would suppress whole classes.

**Denoised gaps.** The gap g between two means is known with an error of variance q per number. In the eigenbasis of S
(eigenvalues s, with average 1 after scaling to s'), the prior w ~ N(0, t s'^a) for weights w with g = S w gives

    g ~ N(0, t s^2 s'^a + q),                                                                            (evidence)
    g^ = r g,   r = t s^2 s'^a / (t s^2 s'^a + q).                                                      (posterior)

r says how well each number is known, from 0 to 1. The strength t and the exponent a maximize the likelihood over all
classes together. The result is t = 0, "no signal", unless the likelihood gains more than 8 nats: noise alone almost
never gains as much.

**Domain.** Let d = S^-1 g^ for the gap m - mu between the users (mean m over classes) and the pool. The
classes are compared with the pool's moments around the users' mean,

    S_p = S + (S d) (S d)^T,                                                                                (moved)

so they hardly use the direction in which the pool differs from the users.

**Classes.** The gap of class y is g_y = m_y - m, and the variance of its error, with N^ the sum of the counts, is

    q_y = e_y (1 - 2 p_y) + sum of p_z^2 e_z over z + s (1 - p_y) / n^_y;                                  (errors)

the last term is the variance of a mean of n texts. A label may have a public description with the vector u_y, and
h_y = u_y - (sum of p_z u_z over z). If texts were classified by h_y v alone, then h_y would be the weights w_y, and by
g = S w the gap would be S h_y. The pool says little of directions that its texts do not use, so S is shrunk towards a
multiple of the identity: with its average eigenvalue s-bar and tau = 2, the expected gap is c k_y, where

    k_y = a (S + tau s-bar I) h_y,     a such that the sums over y of k_y^2 and of h_y^2 are equal.      (expected)

In a pool of the same domain S prevails, because its texts vary much along h_y; in another domain the identity does.
The trust c has the prior N(0.15, 0.07^2) and is updated by the release with the known noise,

    c = (0.15 / 0.07^2 + sum of k g / q) / (1 / 0.07^2 + sum of k^2 / q),                                   (trust)

so with few users the classes are close to the descriptions, and many users correct or overrule them. The rest is
denoised by (posterior): the estimated gap is g^_y = c k_y + r (g_y - c k_y).

**Blocks.** Features may be blocks side by side, such as a sentence model and the words of the pool. One leads. The part
of a description in another block is scaled by how far the two blocks agree about the pool: the correlation, at least 0,
of the scores by the descriptions in this block (h_B, the rest 0) and in the leading one (h_A),

    (sum of h_A S h_B over y) / sqrt((sum of h_A S h_A) (sum of h_B S h_B)).                            (agreement)

Word features that were fitted on a pool of another domain do not know the words of a description, and agree little.

**Weights.** The covariance of the users' texts within a class is unknown. The pool's covariance stands in, shrunk
towards a multiple of the identity, with rho = 5 and s-bar the average eigenvalue of S_p:

    w_y = f (S_p + rho s-bar I)^-1 g^_y,                                                                  (weights)

f such that the sums over y of w_y g^_y and of w_y S_p w_y are equal. (Classes with one covariance have linear
log-ratios, whose shift w g equals their variance w S w.)

**Scores.** For a text with the vector v,

    nearness(v) = d (v - mu) - d S d,                                                                    (nearness)
    score_y(v) = w_y (v - mu - S d) - w_y g^_y / 2 + ln p_y + nearness(v).                                 (scores)

The nearness is the log-ratio between the density of the users' texts and that of the pool, shifted so that its average
over the users' texts is 0. It is 0 everywhere if the pool is of the same domain.

The forms of (expected), (agreement) and (weights) and tau were chosen on SNIPS and WikiText-2 articles; rho and the
priors before them, on Yelp sentences as well; the 8 nats after a look at AG News. Measurements:
`papers/synthesis/README.md`.

Sources: Fisher's discriminants; empirical Bayes as in MacKay 1992, "Bayesian interpolation"; shrinkage of a covariance
towards the identity as in Ledoit and Wolf 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.checks import number
from dptext.errors import ParameterError
from dptext.threads import one_blas_thread

__all__ = ["LogRatio"]

Floats = npt.NDArray[np.float64]

_EXPONENTS = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
_STRENGTHS = np.geomspace(1e-6, 1e4, 21)
_FINER = np.geomspace(10**-0.4, 10**0.4, 9)
_LEAST_GAIN = 8.0  # nats of likelihood below which a gap counts as noise
_TRUST, _TRUST_DEVIATION = 0.15, 0.07  # prior of c in (trust)
_FLOOR = 2.0  # tau in (expected)
_RIDGE = 5.0  # rho in (weights)
_COUNT_DEVIATION = 0.25  # prior deviation of a class's count, relative to the average count
_LEAST_SHARE = 1e-3  # of the average count
_ROWS_AT_ONCE = 1 << 15
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class LogRatio:
    """Log-ratios of densities that are linear in a text's vector. See the module for the equations.

    Attributes:
        weights: (K, k) w_y.
        offsets: (K,) such that a score without the nearness is ``weights @ v + offsets``.
        domain: (k,) d; all 0 if the pool cannot be told apart from the users' texts.
        domain_offset: such that the nearness is ``domain @ v + domain_offset``.
        shares: (K,) p_y, above 0, with sum 1.
        strength: t of the classes, in units of the evidence's own scale; 0 if the release shows nothing of the classes
            beyond their descriptions.
        exponent: a of the classes.
        trust: c, the weight of the label descriptions; 0 without descriptions.
    """

    weights: Floats
    offsets: Floats
    domain: Floats
    domain_offset: float
    shares: Floats
    strength: float
    exponent: float
    trust: float = 0.0

    @classmethod
    def fit(
        cls,
        matrix: npt.ArrayLike,
        sigma: float,
        b: float,
        features_mean: npt.ArrayLike,
        features_covariance: npt.ArrayLike,
        descriptions: npt.ArrayLike | None = None,
        blocks: Sequence[int] = (),
        leading: int = 0,
    ) -> LogRatio:
        """Estimate the log-ratios from a released matrix and the moments of the pool.

        Args:
            matrix: (K, 1 + k) M, the noisy sums.
            sigma: standard deviation of the noise on each number.
            b: what each text adds to the first number of its row, between 0 and 1.
            features_mean: (k,) mu.
            features_covariance: (k, k) S.
            descriptions: (K, k) u_y, vectors of the public label descriptions. None: labels have no descriptions.
            blocks: how many of the k features each block has, in their order; empty: one block.
            leading: the number of the block with which the others are compared in (agreement).

        Raises:
            ParameterError: a number is out of range or not finite, or the shapes do not match.

        >>> import numpy as np
        >>> released = np.array([[50.0, 80.0, 0.0], [50.0, -80.0, 0.0]])  # b = .5: 100 texts of each class
        >>> ratio = LogRatio.fit(released, 1.0, 0.5, np.zeros(2), np.eye(2))
        >>> ratio.scores(np.array([[0.9, 0.0], [-0.9, 0.1]])).argmax(axis=1).tolist(), ratio.shares.tolist()
        ([0, 1], [0.5, 0.5])
        """
        released, mean = _array("matrix", matrix, 2), _array("mean", features_mean, 1)
        covariance = _array("covariance", features_covariance, 2)
        sigma, b = number("sigma", sigma, least=0), number("b", b, above=0, below=1)
        classes, size = len(released), len(mean)
        if classes == 0 or released.shape != (classes, 1 + size) or covariance.shape != (size, size):
            raise ParameterError(
                f"the matrix must have one row per class and 1 + {size} columns, and the covariance must be "
                f"{size} x {size}, because the features have {size} dimensions; got {released.shape} and "
                f"{covariance.shape}"
            )
        public = None if descriptions is None else _array("descriptions", descriptions, 2)
        if public is not None and public.shape != (classes, size):
            raise ParameterError(
                f"descriptions must be one vector of {size} numbers for each of the {classes} classes, got "
                f"{public.shape}"
            )
        if blocks and (sum(blocks) != size or min(blocks) < 1 or not 0 <= leading < len(blocks)):
            raise ParameterError(f"blocks must be sizes above 0 with the sum {size}, and leading one of them")
        counts, means, errors = _moments(released, sigma, b)
        shares = counts / counts.sum()
        overall = shares @ means

        common = float((shares**2 * errors).sum())
        values, basis = _eigen(covariance)
        spread = (common + values / counts.sum())[None]
        gap = ((overall - mean) @ basis)[None]
        domain = (_posterior(gap, spread, values)[0] * gap / np.maximum(values, _TINY) @ basis.T)[0]
        moved = covariance @ domain

        weights, shifts = np.zeros((classes, size)), np.zeros(classes)
        strength, exponent, trust = 0.0, 0.0, 0.0
        if classes > 1:
            values, basis = _eigen(covariance + np.outer(moved, moved))  # (moved)
            noise = np.maximum(errors * (1 - 2 * shares) + common, 0.0)
            spread = noise[:, None] + ((1 - shares) / counts)[:, None] * values  # (errors)
            gaps = (means - overall) @ basis
            expected = np.zeros_like(gaps)
            if public is not None:
                directions = public - shares @ public
                directions = directions * _agreement(directions, covariance, blocks, leading)
                directions = _expected(directions, covariance) @ basis
                trust = _trust(directions, gaps, spread)
                expected = trust * directions
            known, strength, exponent = _posterior(gaps - expected, spread, values)
            weights, shifts = _discriminants(expected + known * (gaps - expected), values)
            weights = weights @ basis.T

        return cls(
            weights=_frozen(weights),
            offsets=_frozen(np.log(shares) - 0.5 * shifts - weights @ (mean + moved)),  # (scores)
            domain=_frozen(domain),
            domain_offset=-float(domain @ mean) - float(domain @ moved),  # (nearness)
            shares=_frozen(shares),
            strength=strength,
            exponent=exponent,
            trust=trust,
        )

    def scores(self, vectors: npt.ArrayLike) -> Floats:
        """(n, K) float64, equation (scores), of (n, k) vectors."""
        nearness, found = self._linear(vectors)
        found += nearness[:, None]
        return found

    def nearness(self, vectors: npt.ArrayLike) -> Floats:
        """(n,) float64, equation (nearness), of (n, k) vectors."""
        return self._linear(vectors)[0]

    def _linear(self, vectors: npt.ArrayLike) -> tuple[Floats, Floats]:
        """The nearness, and the scores without it."""
        given = np.asarray(vectors)
        if given.ndim != 2 or given.shape[1] != len(self.domain):
            raise ParameterError(f"expected vectors of {len(self.domain)} numbers each, got the shape {given.shape}")
        both = np.vstack([self.domain[None], self.weights]).T
        found = np.empty((len(given), both.shape[1]))
        for start in range(0, len(given), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            found[rows] = given[rows].astype(np.float64) @ both
        return found[:, 0] + self.domain_offset, found[:, 1:] + self.offsets


def _moments(released: Floats, sigma: float, b: float) -> tuple[Floats, Floats, Floats]:
    """Return the counts (counts), the means (moments) and the variance of the noise in each number of a mean."""
    noisy, error = released[:, 0] / b, (sigma / b) ** 2
    # Where the total is within its noise, two deviations of that noise stand in for it.
    average = max(float(noisy.sum()), 2 * np.sqrt(len(noisy) * error), 1e-9) / len(noisy)
    prior = (_COUNT_DEVIATION * average) ** 2
    counts = average + prior / (prior + error) * (noisy - average)
    # The mean of a class that may be empty must have a large error, so its count is at least twice its noise.
    counts = np.maximum(counts, max(_LEAST_SHARE * average, min(2 * np.sqrt(error), average / 4)))
    means = released[:, 1:] / (np.sqrt(1 - b * b) * counts[:, None])
    return counts, means, sigma**2 / ((1 - b * b) * counts**2)


def _trust(directions: Floats, gaps: Floats, spread: Floats) -> float:
    """Return c of (trust)."""
    spread = spread + _TINY + 1e-12 * float(np.square(directions).mean())
    prior = _TRUST_DEVIATION**-2
    precision = prior + float((directions**2 / spread).sum())
    return (prior * _TRUST + float((directions * gaps / spread).sum())) / precision


def _agreement(directions: Floats, covariance: Floats, blocks: Sequence[int], leading: int) -> Floats:
    """Return (k,) the factor of (agreement) of each feature, which is 1 in the leading block."""
    factors = np.ones(len(covariance))
    if len(blocks) < 2:
        return factors
    of_block = np.repeat(np.arange(len(blocks)), blocks)
    parts = directions * (of_block == np.arange(len(blocks))[:, None])[:, None]  # (blocks, K, k)
    products = np.einsum("ayk,byk->ab", parts @ covariance, parts)
    for block in set(range(len(blocks))) - {leading}:
        scale = np.sqrt(products[leading, leading] * products[block, block])
        factors[of_block == block] = max(float(products[leading, block]), 0.0) / (scale + _TINY)
    return factors


def _expected(directions: Floats, covariance: Floats) -> Floats:
    """Return k of (expected) from h."""
    average = float(np.trace(covariance)) / len(covariance) + _TINY
    gaps = directions @ covariance / average + _FLOOR * directions
    return np.asarray(gaps * (np.linalg.norm(directions) / (np.linalg.norm(gaps) + _TINY)))


def _discriminants(gaps: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return w of (weights) and w g^ of each class, in the eigenbasis."""
    weights = gaps / (values + _RIDGE * float(values.mean()) + _TINY)
    shifts = (gaps * weights).sum(axis=1)
    variance = float((weights**2 * values).sum())
    factor = float(shifts.sum()) / variance if variance > 0 else 0.0
    return factor * weights, factor * shifts


def _eigen(covariance: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, at least a rounding above 0, and the eigenbasis."""
    with one_blas_thread():  # at a few hundred features BLAS's own threads wait for each other, many times as long
        values, basis = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.maximum(values, 1e-9 * max(float(values.max(initial=0.0)), 0.0)), basis


def _posterior(gaps: Floats, spread: Floats, values: Floats) -> tuple[Floats, float, float]:
    """Return (rows, k) r of (posterior) from (rows, k) g and q in the eigenbasis, with t and a."""
    average = float(values.mean()) if values.size else 0.0
    size = float((gaps**2).sum())
    if average <= 0 or size <= 0:
        return np.zeros_like(gaps), 0.0, 0.0
    relative = values / average
    spread = spread + 1e-12 * average
    squares = gaps**2

    def likelihood(strength: float, exponent: float) -> float:  # (evidence)
        variance = strength * (values**2 * relative**exponent) + spread
        return -0.5 * float((np.log(variance) + squares / variance).sum())

    tried = [
        (strength * size / (len(gaps) * float((values**2 * relative**exponent).sum())), exponent)
        for exponent in _EXPONENTS
        for strength in _STRENGTHS.tolist()
    ]
    strength, exponent = max(tried, key=lambda pair: likelihood(*pair))
    strength = max((strength * _FINER).tolist(), key=lambda finer: likelihood(finer, exponent))
    if likelihood(strength, exponent) <= likelihood(0.0, 0.0) + _LEAST_GAIN:
        return np.zeros_like(gaps), 0.0, 0.0
    prior = strength * relative**exponent
    return prior * values**2 / (prior * values**2 + spread + _TINY), strength, exponent


def _array(name: str, values: Any, dimensions: int) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != dimensions or not np.isfinite(found).all():
        raise ParameterError(f"the {name} must be finite numbers in {dimensions} dimensions, got {found.shape}")
    return found


def _frozen(values: Floats) -> Floats:
    found = np.array(values, dtype=np.float64)
    found.setflags(write=False)
    return found
