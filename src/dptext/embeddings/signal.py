"""What of a noisy matrix is signal: empirical Bayes over words of similar frequency. Post-processing: it costs nothing.

All numbers here come from the noisy matrix Y, the public sigma of its noise, and public vectors; so nothing that is
done with them can weaken the promise of Y (post-processing), and no constant has to be tuned on the private corpus.

The rows of Y are taken to be

    y_w = n_w (t_w B + b + e_w) + sigma z_w,   z_w standard normal,                                           (model)

n_w the strength of the word (more users, more signal), t_w the public vector, (B, b) one linear map for all words, and
e_w what this corpus knows of the word and the public vector does not: the part that is worth having. B and b are
fitted. Strengths are fitted too: one for all words of similar public frequency (a band), and around it one a word, as
far as it shows above the noise. (Otherwise a word that is merely more frequent here than elsewhere would pass for one
of another meaning.) For the same reason the direction of b, which all contexts share, is left out of what follows.
In a band the covariance S of n_w e_w is that of the residuals without what the noise adds, and the best guess is

    E[n_w e_w | y_w] = r_w S (S + sigma^2 I)^-1,   r_w = y_w - n_w t_w B.                                 (posterior)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["News", "bands", "filtered", "news"]

Floats = npt.NDArray[np.float64]

_FIRST_BAND, _ROUNDS = 200, 3
_RIDGE = 2e-4  # of the mean diagonal: keeps the fit defined where vectors span less than their dimension
_WEAKEST = 1e-3
_LEAST_SHARE = 0.25  # no word counts as weaker than this share of its band
_CLEARLY = 1.15  # five of Tracy and Widom's standard deviations for the smallest band and 50 features


@dataclass(frozen=True, eq=False)
class News:
    """What `news` found.

    Attributes:
        guess: (V, k) E[e_w | y_w], without the direction of b; 0 where nothing was measured or the noise hides it.
        slope: (d, k) B, without that direction.
        common: (k,) the direction of b, of length 1; or 0.
        covariance: (k, k) of e_w, in the last band.
    """

    guess: Floats
    slope: Floats
    common: Floats
    covariance: Floats


def bands(words: int) -> list[slice]:
    """Places in a list of words by frequency, in bands that double: 0 to 200, 200 to 400, 400 to 800, ...

    >>> [(each.start, each.stop) for each in bands(1000)]
    [(0, 200), (200, 400), (400, 1000)]
    """
    edges = [0]
    size = _FIRST_BAND
    while size * 1.5 <= words:  # the last band is not left with a few words
        edges.append(size)
        size *= 2
    return [slice(low, high) for low, high in zip(edges, [*edges[1:], words], strict=True)]


def filtered(rows: Floats, noise: float) -> tuple[Floats, Floats]:
    """(n, k) the best guess of the signal of rows that hold noise of this standard deviation; (k, k) its covariance.

    Equation (posterior), r_w the rows. Noise alone has sample variances up to

        noise^2 (1 + sqrt(k / n))^2                                                   (Marchenko and Pastur 1967)

    in some direction, give or take (Tracy and Widom 1994): what is not clearly above counts as noise.
    """
    count, width = rows.shape
    if count == 0:
        return rows, np.zeros((width, width))
    variances, directions = np.linalg.eigh(rows.T @ rows / count)
    edge = noise**2 * (1 + math.sqrt(width / count)) ** 2 * _CLEARLY
    signal = np.where(variances > edge, variances - noise**2, 0.0)
    gain = np.divide(signal, variances, out=np.zeros_like(signal), where=signal > 0)
    guess: Floats = ((rows @ directions) * gain) @ directions.T
    covariance: Floats = (directions * signal) @ directions.T
    return guess, covariance


def news(noisy: Floats, sigma: float, public: Floats, measured: npt.NDArray[np.bool_]) -> News:
    """Fit equation (model) and guess e_w.

    Args:
        noisy: (V, k) Y.
        sigma: of its noise.
        public: (V, d) t_w.
        measured: (V,) the words that have a public vector and a weight above 0; the others are left out of the fit.
    """
    of_band = [np.flatnonzero(measured[band]) + band.start for band in bands(len(noisy))]
    strength = np.ones(len(noisy))
    for _ in range(_ROUNDS):
        slope, intercept = _fit(noisy, sigma, public, measured, strength)
        predicted = public @ slope + intercept
        for words in of_band:
            strength[words] = _Along(noisy[words], predicted[words]).strength
    for words in of_band:
        strength[words] = _Along(noisy[words], predicted[words]).by_word(sigma)
    common = _direction(intercept)
    slope = slope - np.outer(slope @ common, common)
    guess = np.zeros_like(noisy)
    covariance = np.zeros((noisy.shape[1],) * 2)
    for words in of_band:
        n = strength[words][:, None]
        rows = noisy[words] - n * (public[words] @ slope)
        rows -= np.outer(rows @ common, common)
        signal, of_signal = filtered(rows, sigma)  # of n_w e_w, where all rows have the same noise
        guess[words] = signal / n  # (posterior)
        covariance = of_signal / float(np.mean(n**2)) if len(n) else covariance
    return News(guess, slope, common, covariance)


@dataclass(frozen=True, eq=False)
class _Along:
    """How far rows go along what was predicted of them: the strengths of equation (model)."""

    rows: Floats
    predicted: Floats

    @property
    def strength(self) -> float:
        """One for all: the least-squares factor."""
        size = float(np.vdot(self.predicted, self.predicted))
        return max(float(np.vdot(self.rows, self.predicted)) / size, _WEAKEST) if size > 0 else _WEAKEST

    def by_word(self, sigma: float) -> Floats:
        """(n,) one a word: towards that of all, as far as the noise explains its distance from it."""
        sizes = np.einsum("ij,ij->i", self.predicted, self.predicted)
        if not sizes.any():
            return np.full(len(sizes), _WEAKEST)
        mean = self.strength
        along = np.einsum("ij,ij->i", self.rows, self.predicted)
        own = np.divide(along, sizes, out=np.full_like(along, mean), where=sizes > 0)
        noise = np.divide(sigma**2, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        spread = max(float(np.average((own - mean) ** 2 - noise, weights=sizes)), 0.0)
        trusted = np.divide(spread, spread + noise, out=np.zeros_like(noise), where=spread + noise > 0)
        strengths: Floats = np.maximum(mean + (own - mean) * trusted, _LEAST_SHARE * mean)
        return strengths


def _direction(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector


def _fit(
    noisy: Floats, sigma: float, public: Floats, measured: npt.NDArray[np.bool_], strength: Floats
) -> tuple[Floats, Floats]:
    """B and b by least squares; a word counts as far as it is more than noise."""
    design = np.column_stack([public, np.ones(len(public))])[measured]
    n = strength[measured]
    weights = n**2 / (n**2 + noisy.shape[1] * sigma**2)
    normal = design.T @ (design * weights[:, None])
    normal += _RIDGE * max(float(weights.sum()), 1.0) * np.eye(len(normal))
    fitted = np.linalg.solve(normal, design.T @ (noisy[measured] * (weights / n)[:, None]))
    return fitted[:-1], fitted[-1]
