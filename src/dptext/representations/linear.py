"""Linear classification from noisy vectors: ridge regression on the labels, its strength read off the known noise.

Derivation: docs/mechanisms/private-vectors.md#representations-linear
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.representations.domains import Floats
from dptext.representations.randomizer import Channel

__all__ = [
    "Covariance",
    "LinearFit",
    "LinearPrior",
    "covariance",
    "fit_linear",
    "isotropic",
    "linear_prior",
    "positive",
    "shrunk_mean",
]

_BLOCKS = 16
_TINY = 1e-300


@dataclass(frozen=True)
class Covariance:
    """An estimate of a covariance matrix."""

    matrix: Floats
    entry_error: float
    intensity: float


def covariance(
    vectors: Floats,
    mean: Floats,
    *,
    debias: Callable[[Floats], Floats] | None = None,
    target: Floats | None = None,
) -> Covariance:
    """The covariance of what the (n, k) vectors stand for, shrunk."""
    blocks = min(_BLOCKS, len(vectors))
    moments = [rows.T @ rows / len(rows) for rows in (vectors[start::blocks] for start in range(blocks))]
    # the mean is taken off after the debiasing, which holds for second moments about 0
    outer = np.outer(mean, mean)
    estimates = np.stack([(moment if debias is None else debias(moment)) - outer for moment in moments])
    estimate = estimates.mean(axis=0)
    if target is None:
        target = isotropic(estimate)
    if blocks == 1:
        return Covariance(target, 0.0, 1.0)
    variance = float(((estimates - estimate) ** 2).sum()) / (blocks * (blocks - 1))
    intensity = min(1.0, variance / max(float(((estimate - target) ** 2).sum()), _TINY))  # eq. 14
    left = (1 - intensity) * variance / estimate.size  # what shrinking by a leaves, bias included
    return Covariance(positive((1 - intensity) * estimate + intensity * target), left, intensity)


def shrunk_mean(vectors: Floats, centre: Floats) -> Floats:
    """The mean, drawn towards a public one as far as its noise asks (James and Stein 1961, positive part)."""
    mean = vectors.mean(axis=0)
    noise = float(vectors.var(axis=0).sum()) / len(vectors)
    distance = float(((mean - centre) ** 2).sum())
    shrunk: Floats = centre + max(0.0, 1 - noise / max(distance, _TINY)) * (mean - centre)
    return shrunk


def isotropic(matrix: Floats) -> Floats:
    """The multiple of the identity with the matrix's trace; that of 0 where the trace is negative."""
    size = len(matrix)
    return np.eye(size) * (max(float(np.trace(matrix)), 0.0) / size)


def positive(matrix: Floats) -> Floats:
    """The nearest positive semi-definite matrix in the Frobenius norm: negative eigenvalues become 0."""
    values, basis = np.linalg.eigh((matrix + matrix.T) / 2)
    nearest: Floats = (basis * np.maximum(values, 0.0)) @ basis.T
    return nearest


_STRENGTHS = np.concatenate([[0.0], np.geomspace(1e-7, 1e5, 97)])  # nothing at all is for those who have a prior
_TINY = 1e-300
_SHIFT = 0.1  # variance expected of a score's shift from the public texts to these, in units of the score's own


@dataclass(frozen=True)
class LinearPrior:
    """What public labelled vectors say before any private one arrives."""

    weights: Floats
    mean: Floats
    covariance: Floats


@dataclass(frozen=True)
class LinearFit:
    """Weights and intercepts for the vectors that a model will meet."""

    clean: tuple[Floats, Floats]
    noisy: tuple[Floats, Floats]
    prior: LinearPrior
    strength: float
    intensity: float


def linear_prior(vectors: Floats, labels: npt.NDArray[np.intp], classes: int) -> LinearPrior:
    """The prior from (n, d) *public* clean vectors and their labels (0 to classes - 1)."""
    return fit_linear(vectors, labels, classes).prior


def fit_linear(
    vectors: Floats,
    labels: npt.NDArray[np.intp],
    classes: int,
    *,
    channel: Channel | None = None,
    prior: LinearPrior | None = None,
) -> LinearFit:
    """Weights from (n, k) vectors that arrived and their labels (0 to classes - 1)."""
    count, width = vectors.shape
    shares = np.bincount(labels, minlength=classes) / count
    centred = np.eye(classes)[labels] - shares
    observed = vectors.T @ centred / count  # b^
    mean = vectors.mean(axis=0)
    likely_mean = shrunk_mean(vectors, np.zeros(width) if prior is None else prior.mean)
    arriving = covariance(vectors, mean)
    clean = arriving if channel is None else _clean_covariance(vectors, likely_mean, channel, prior)
    values, basis = np.linalg.eigh(clean.matrix)
    values = np.maximum(values, 0.0)
    if not values.any():  # all is noise, or all is alike: nothing says that one axis varies more than another
        clean = Covariance(np.eye(width) / width, clean.entry_error, 1.0)
        values = np.full(width, 1 / width)
    start = np.zeros((width, classes)) if prior is None else prior.weights
    gap = basis.T @ observed - values[:, None] * (basis.T @ start)  # b^ - S^ w0
    label_variance = shares * (1 - shares)
    axis_variance = np.einsum("ji,jk,ki->i", basis, arriving.matrix, basis)
    noise = np.maximum(axis_variance, 0.0)[:, None] * label_variance / count
    noise = noise + clean.entry_error * (start**2).sum(axis=0) + _TINY
    signal = (values**2 + width * clean.entry_error)[:, None]
    strength = _strength(gap, signal, noise, nothing=prior is not None)
    weights = start + basis @ (strength * values[:, None] / (strength * signal + noise) * gap)  # eq. (posterior)
    noisy_weights = weights if channel is None else _solve(arriving.matrix, clean.matrix @ weights)
    return LinearFit(
        clean=(weights, shares - _mean_scores(weights, mean, clean.matrix, arriving.matrix / count, prior)),
        noisy=(noisy_weights, shares - _mean_scores(noisy_weights, mean, clean.matrix, arriving.matrix / count, prior)),
        prior=LinearPrior(weights, likely_mean, clean.matrix),
        strength=strength,
        intensity=clean.intensity,
    )


def _clean_covariance(vectors: Floats, mean: Floats, channel: Channel, prior: LinearPrior | None) -> Covariance:
    """The clean vectors' covariance; where the channel does not tell it, the public one or the identity."""
    target = None if prior is None else prior.covariance
    try:
        return covariance(vectors, mean, debias=channel.debiased_second_moment, target=target)
    except ParameterError:
        width = vectors.shape[1]
        return Covariance(np.eye(width) / width if target is None else target, 0.0, 1.0)


def _mean_scores(weights: Floats, mean: Floats, covariance: Floats, noise: Floats, prior: LinearPrior | None) -> Floats:
    """(classes,) scores of the mean vector: those of the noisy mean, drawn towards those of the public one."""
    if prior is None:
        return mean @ weights
    public = prior.mean @ weights
    spread = _SHIFT * np.einsum("jc,jk,kc->c", weights, covariance, weights)
    error = np.einsum("jc,jk,kc->c", weights, noise, weights)
    scores: Floats = public + spread / (spread + error + _TINY) * (mean @ weights - public)
    return scores


def _strength(gap: Floats, signal: Floats, noise: Floats, *, nothing: bool) -> float:
    """The r of greatest likelihood, eq."""
    scale = float((gap**2).sum()) / max(float(signal.sum()) * gap.shape[1], _TINY)
    grid = scale * _STRENGTHS[0 if nothing else 1 :]
    likelihoods = []
    for strength in grid:
        variance = strength * signal + noise
        likelihoods.append(-0.5 * float((np.log(variance) + gap**2 / variance).sum()))
    return float(grid[int(np.argmax(likelihoods))])


def _solve(covariance: Floats, moments: Floats) -> Floats:
    """covariance^-1 moments, with axes along which nothing varies left at 0."""
    values, basis = np.linalg.eigh(covariance)
    floor = max(1e-10 * float(values.max(initial=0.0)), 1e-150)  # whose inverse is a number still
    inverse = np.where(values > floor, 1 / np.maximum(values, floor), 0.0)
    weights: Floats = basis @ (inverse[:, None] * (basis.T @ moments))
    return weights
