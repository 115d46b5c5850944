"""What a noisy release says of any text: how much likelier it is in a class than among all people's texts, and how near
it is to them at all. Post-processing: computed from the release and public numbers alone, at no further cost.

**What is known.** Of a class y the release has a row M_y = [b n_y, sqrt(1 - b^2) s_y] + N(0, sigma^2) on every number:
n_y counts the class's texts, s_y is the sum of their vectors. Of the public pool, the mean mu and the covariance S are
known exactly. So there are unbiased estimates with errors of known size,

    n^_y = M_y0 / b,   m_y = M_y1 / (sqrt(1 - b^2) n^_y),   e_y = sigma^2 / ((1 - b^2) n^_y^2),              (moments)

e_y the variance that the noise has in each number of m_y, and shares p_y in proportion to the counts that are positive.
A count below twice the deviation of its noise is taken as that: the mean of a class that may be empty has a large e_y.

**Discriminants.** Densities of one covariance S around the means have log-ratios that are linear in the vector v, with
weights S^-1 (m_y - m), m the mean over all classes. The inverse amplifies noise, so the weights are estimated as in
`dptext.representations.linear`, by their posterior mean. In the eigenbasis of S (eigenvalues s, 1 on average after
scaling them to s'), with g the difference of means and q the variance of its error,

    g = s w + error,   q_y = e_y (1 - 2 p_y) + sum of p_z^2 e_z over z + s (1 - p_y) / n^_y,                 (errors)
    w ~ N(0, t s'^a),   g ~ N(0, t s^2 s'^a + q),                                                         (evidence)
    w^ = t s'^a s / (t s^2 s'^a + q) g                                                                   (posterior)

The last term of (errors) is what a mean of n texts varies by. Strength t (0 may be the answer) and exponent a (the
larger it is, the more is expected of directions in which the pool varies much) are those of greatest likelihood, of all
classes together. So where the noise drowns the data, weights are 0 and every text is as likely in every class: nothing
is tuned and no private text is spent on it.

**The pool is of another domain**, more or less. With d the posterior weights for g = m - mu (all people against the
pool), the posterior mean of the difference is S d. Discriminants are made with the pool's moments about people's mean,

    S_p = S + (S d) (S d)^T                                                                                (moved)

in place of S: so they rely little on the direction in which the pool differs from people anyhow.

**Scores and nearness.** Of a vector v,

    nearness(v) = d (v - mu) - d S d                                                                      (nearness)
    score_y(v) = w_y (v - mu - S d) - w_y S_p w_y / 2 + ln p_y + nearness(v)                                (scores)

Both use the posterior means of m and m_y, which are mu + S d and mu + S d + S_p w_y: to put the noisy ones there would
count noise twice, since the weights go along with it. The nearness is a log-ratio of density of people's texts and the
pool's, less what it is for people's texts on average. Texts whose nearness is 0 on average are as near as people's own;
where the pool is of the same domain, that is all of it.

What was measured: `papers/synthesis/README.md`.

Sources: Fisher's discriminants; empirical Bayes as in MacKay 1992, "Bayesian interpolation".
"""

from __future__ import annotations

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
_STRENGTHS = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 21)])
_FINER = np.geomspace(10**-0.4, 10**0.4, 9)
_LEAST_SHARE = 1e-3  # of a class, in scores: its count is noisy
_ROWS_AT_ONCE = 1 << 15
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class LogRatio:
    """Log-ratios of density that are linear in a vector, frozen. See the module.

    Attributes:
        weights: (K, k) w_y.
        offsets: (K,) so that a score less the nearness is ``weights @ v + offsets``.
        domain: (k,) d; all 0 where the pool is as good as people's own texts, or the noise drowns the difference.
        domain_offset: so that the nearness is ``domain @ v + domain_offset``.
        shares: (K,) p_y, at least 0, with sum 1.
        strength: t, in units of the evidence's own scale; 0 where the release says nothing of the classes.
        exponent: a.
    """

    weights: Floats
    offsets: Floats
    domain: Floats
    domain_offset: float
    shares: Floats
    strength: float
    exponent: float

    @classmethod
    def fit(
        cls,
        matrix: npt.ArrayLike,
        sigma: float,
        b: float,
        features_mean: npt.ArrayLike,
        features_covariance: npt.ArrayLike,
    ) -> LogRatio:
        """From what was released, and the pool's moments.

        Args:
            matrix: (K, 1 + k) M, the noisy sums.
            sigma: standard deviation of the noise on each number.
            b: what each text adds to the first number of its row, between 0 and 1.
            features_mean: (k,) mu.
            features_covariance: (k, k) S.

        Raises:
            ParameterError: numbers out of range, not finite, or of other shapes.

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
                f"expected a matrix of one row a class and 1 + {size} columns and a covariance of {size} x {size}, as "
                f"the features have dimensions, got {released.shape} and {covariance.shape}"
            )
        counts, shares, means, errors = _moments(released, sigma, b)
        overall = shares @ means

        common = float((shares**2 * errors).sum())
        values, basis = _eigen(covariance)
        spread = (common + values / max(float(counts.sum()), 1.0))[None]
        domain = (_posterior(((overall - mean) @ basis)[None], spread, values)[0] @ basis.T)[0]
        moved = covariance @ domain

        weights, strength, exponent = np.zeros((classes, size)), 0.0, 0.0
        if classes > 1:
            covariance = covariance + np.outer(moved, moved)  # (moved)
            values, basis = _eigen(covariance)
            noise = np.maximum(errors * (1 - 2 * shares) + common, 0.0)
            sampling = (1 - shares) / np.maximum(counts, 1.0)
            spread = noise[:, None] + sampling[:, None] * values  # (errors)
            found, strength, exponent = _posterior((means - overall) @ basis, spread, values)
            weights = found @ basis.T

        heights = weights @ (mean + moved) + 0.5 * np.einsum("yk,yk->y", weights @ covariance, weights)
        offsets = np.log(np.maximum(shares, _LEAST_SHARE)) - heights  # (scores)
        return cls(
            weights=_frozen(weights),
            offsets=_frozen(offsets),
            domain=_frozen(domain),
            domain_offset=-float(domain @ mean) - float(domain @ moved),  # (nearness)
            shares=_frozen(shares),
            strength=strength,
            exponent=exponent,
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


def _moments(released: Floats, sigma: float, b: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Equation (moments): counts, shares, means, and the variance of the noise in each number of a mean."""
    counts = released[:, 0] / b
    positive = np.maximum(counts, 0.0)
    total = float(positive.sum())
    shares = positive / total if total > 0 else np.full(len(counts), 1 / len(counts))
    floors = np.maximum(counts, max(2 * sigma / b, 1e-9))
    means = released[:, 1:] / (np.sqrt(1 - b * b) * floors[:, None])
    return counts, shares, means, sigma**2 / ((1 - b * b) * floors**2)


def _eigen(covariance: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, at least a rounding above 0, and the eigenbasis."""
    with one_blas_thread():  # at a few hundred features BLAS's own threads wait for each other, many times as long
        values, basis = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.maximum(values, 1e-9 * max(float(values.max(initial=0.0)), 0.0)), basis


def _posterior(gaps: Floats, spread: Floats, values: Floats) -> tuple[Floats, float, float]:
    """(rows, k) w^ of (posterior) from (rows, k) g and q in the eigenbasis, with t and a.

    Of equal likelihoods the least t: 0, nothing, before anything.
    """
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
    strength, exponent = max(tried, key=lambda each: likelihood(*each))
    strength = max((strength * _FINER).tolist(), key=lambda each: likelihood(each, exponent)) if strength else 0.0
    prior = strength * relative**exponent
    return prior * values / (prior * values**2 + spread + _TINY) * gaps, strength, exponent


def _array(name: str, values: Any, dimensions: int) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != dimensions or not np.isfinite(found).all():
        raise ParameterError(f"the {name} must be finite numbers in {dimensions} dimensions, got {found.shape}")
    return found


def _frozen(values: Floats) -> Floats:
    found = np.array(values, dtype=np.float64)
    found.setflags(write=False)
    return found
