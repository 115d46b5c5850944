"""What of a noisy matrix is signal: empirical Bayes over words of similar frequency. Post-processing: it costs nothing.

All numbers here come from the noisy matrix Y, the public sigma of its noise, and public vectors; so nothing that is
done with them can weaken the promise of Y (post-processing), and no constant has to be tuned on the private corpus.

Words are taken in bands of similar public frequency. In a band the rows of Y are

    y_w = n (t_w B + b + e_w) + sigma z_w,   z_w standard normal,                                            (model)

n the strength of the band (more users, more signal), t_w the public vector, (B, b) one linear map for all words, and
e_w what this corpus knows of the word and the public vector does not: the part that is worth having. B, b and n are
fitted; the covariance S of e_w is that of the residuals without what the noise adds, and the best guess of e_w is

    E[e_w | y_w] = r_w S (S + (sigma / n)^2 I)^-1,   r_w = y_w / n - t_w B - b.                            (posterior)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["News", "bands", "filtered", "news"]

Floats = npt.NDArray[np.float64]

_FIRST_BAND, _ROUNDS = 200, 3
_RIDGE = 2e-4  # of the mean diagonal: keeps the fit defined where vectors span less than their dimension
_WEAKEST = 1e-3
_CLEARLY = 1.15  # five of Tracy and Widom's standard deviations for the smallest band and 50 features


@dataclass(frozen=True, eq=False)
class News:
    """What `news` found.

    Attributes:
        guess: (V, k) E[e_w | y_w]; 0 where nothing was measured.
        slope, intercept: (d, k) B and (k,) b.
        strength: (V,) n of the band of each word.
        covariance: of e_w, by band: (bands, k, k).
        band_of: (V,) which band a word is in.
    """

    guess: Floats
    slope: Floats
    intercept: Floats
    strength: Floats
    covariance: Floats
    band_of: npt.NDArray[np.int64]


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

    Equation (posterior) with r_w the rows themselves. Noise alone has sample variances up to

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
    words, width = noisy.shape
    strength = np.ones(words)
    band_of = np.empty(words, dtype=np.int64)
    of_band = list(_measured_bands(words, measured, band_of))
    slope, intercept = np.zeros((public.shape[1], width)), np.zeros(width)
    for _ in range(_ROUNDS):
        slope, intercept = _fit(noisy, sigma, public, measured, strength)
        predicted = public @ slope + intercept
        for band, places in of_band:
            size = float(np.vdot(predicted[places], predicted[places]))
            along = float(np.vdot(noisy[places], predicted[places]))
            strength[band] = max(along / size, _WEAKEST) if size > 0 else _WEAKEST
    guess = np.zeros_like(noisy)
    covariance = np.zeros((len(bands(words)), width, width))
    for number, (band, places) in enumerate(of_band):
        if len(places):
            n = float(strength[band.start])
            residual = noisy[places] / n - predicted[places]
            guess[places], covariance[number] = filtered(residual, sigma / n)
    return News(guess, slope, intercept, strength, covariance, band_of)


def _measured_bands(
    words: int, measured: npt.NDArray[np.bool_], band_of: npt.NDArray[np.int64]
) -> Iterator[tuple[slice, npt.NDArray[np.int64]]]:
    for number, band in enumerate(bands(words)):
        band_of[band] = number
        yield band, np.flatnonzero(measured[band]) + band.start


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
