"""Classifiers of noisy vectors that account for the noise (extra ``sklearn``).

Derivation: docs/mechanisms/private-vectors.md#representations-linear
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.privacy.statement import PrivacyStatement
from dptext.release.scikit_learn import BaseEstimator, ClassifierMixin, check_is_fitted, check_X_y, coded, validated
from dptext.representations.bounds import Floats, check_vectors
from dptext.representations.layers import DeviceModel
from dptext.representations.randomizer import Channel, Randomizer
from dptext.representations.registry import RANDOMIZERS, is_randomizer, randomizer_from_parameters
from dptext.validation import is_missing

Labels = npt.NDArray[np.intp]

_BLOCKS = 16
_TINY = 1e-300
_STRENGTHS = np.concatenate([[0.0], np.geomspace(1e-7, 1e5, 97)])  # 0 only with a prior
_SHIFT = 0.1  # expected variance of a score's shift from the public texts to these, in units of the score's own
_LARGEST = float(np.finfo(np.float32).max)
"""Larger than any output of a randomizer, while its fourth power is still finite."""


class Covariance(NamedTuple):
    """An estimate of a covariance matrix, and the mean squared error of an entry."""

    matrix: Floats
    entry_error: float


def covariance(
    vectors: Floats, mean: Floats, *, debias: Callable[[Floats], Floats] | None = None, target: Floats | None = None
) -> Covariance:
    """Estimate the covariance of the vectors before the noise from (n, k) noisy ones, shrunk towards a target."""
    blocks = min(_BLOCKS, len(vectors))
    moments = [rows.T @ rows / len(rows) for rows in (vectors[start::blocks] for start in range(blocks))]
    # subtract the mean after debiasing, which holds for second moments about 0
    outer = np.outer(mean, mean)
    estimates = np.stack([(moment if debias is None else debias(moment)) - outer for moment in moments])
    estimate = estimates.mean(axis=0)
    if target is None:  # the multiple of the identity with the same trace
        target = np.eye(len(estimate)) * (max(float(np.trace(estimate)), 0.0) / len(estimate))
    if blocks == 1:
        return Covariance(target, 0.0)
    variance = float(((estimates - estimate) ** 2).sum()) / (blocks * (blocks - 1))
    intensity = min(1.0, variance / max(float(((estimate - target) ** 2).sum()), _TINY))  # eq. 14
    entry_error = (1 - intensity) * variance / estimate.size  # bias of the shrinkage included
    return Covariance(positive((1 - intensity) * estimate + intensity * target), entry_error)


def shrunk_mean(vectors: Floats, centre: Floats) -> Floats:
    """Return the mean, shrunk towards a public one according to its noise (James and Stein 1961, positive part)."""
    mean = vectors.mean(axis=0)
    noise = float(vectors.var(axis=0).sum()) / len(vectors)
    distance = float(((mean - centre) ** 2).sum())
    return np.asarray(centre + max(0.0, 1 - noise / max(distance, _TINY)) * (mean - centre))


def positive(matrix: Floats) -> Floats:
    """Return the nearest positive semi-definite matrix in the Frobenius norm: negative eigenvalues become 0."""
    values, basis = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((basis * np.maximum(values, 0.0)) @ basis.T)


class LinearPrior(NamedTuple):
    """Weights, mean and covariance of public labelled vectors."""

    weights: Floats
    mean: Floats
    covariance: Floats


class LinearFit(NamedTuple):
    """(weights, intercepts) for clean vectors and for noisy ones; the prior for a later fit; the prior's strength."""

    clean: tuple[Floats, Floats]
    noisy: tuple[Floats, Floats]
    prior: LinearPrior
    strength: float


def fit_linear(
    vectors: Floats, labels: Labels, classes: int, *, channel: Channel | None = None, prior: LinearPrior | None = None
) -> LinearFit:
    """Fit weights on (n, k) noisy vectors and their labels (0 to classes - 1); or on *public* ones, for a prior."""
    count, width = vectors.shape
    shares = np.bincount(labels, minlength=classes) / count
    centred = np.eye(classes)[labels] - shares
    observed = vectors.T @ centred / count  # b^
    mean = vectors.mean(axis=0)
    likely_mean = shrunk_mean(vectors, np.zeros(width) if prior is None else prior.mean)
    noisy = covariance(vectors, mean)
    clean = noisy if channel is None else _clean_covariance(vectors, likely_mean, channel, prior)
    values, basis = np.linalg.eigh(clean.matrix)
    values = np.maximum(values, 0.0)
    if not values.any():  # nothing but noise, or all vectors are equal: no axis varies more than another
        clean = Covariance(np.eye(width) / width, clean.entry_error)
        values = np.full(width, 1 / width)
    start = np.zeros((width, classes)) if prior is None else prior.weights
    gap = basis.T @ observed - values[:, None] * (basis.T @ start)  # b^ - S^ w0
    axis_variance = np.einsum("ji,jk,ki->i", basis, noisy.matrix, basis)
    noise = np.maximum(axis_variance, 0.0)[:, None] * (shares * (1 - shares)) / count
    noise = noise + clean.entry_error * (start**2).sum(axis=0) + _TINY
    signal = (values**2 + width * clean.entry_error)[:, None]
    strength = _strength(gap, signal, noise, is_zero_possible=prior is not None)
    weights = start + basis @ (strength * values[:, None] / (strength * signal + noise) * gap)  # eq. (posterior)
    noisy_weights = weights if channel is None else _solve(noisy.matrix, clean.matrix @ weights)

    def intercepts(weights: Floats) -> Floats:
        """Return class frequencies less the scores of the mean vector, which is shrunk towards the public one."""
        scores: Floats = mean @ weights
        if prior is not None:
            public = prior.mean @ weights
            spread = _SHIFT * np.einsum("jc,jk,kc->c", weights, clean.matrix, weights)
            error = np.einsum("jc,jk,kc->c", weights, noisy.matrix / count, weights)
            scores = public + spread / (spread + error + _TINY) * (scores - public)
        return np.asarray(shares - scores)

    return LinearFit(
        clean=(weights, intercepts(weights)),
        noisy=(noisy_weights, intercepts(noisy_weights)),
        prior=LinearPrior(weights, likely_mean, clean.matrix),
        strength=strength,
    )


def _clean_covariance(vectors: Floats, mean: Floats, channel: Channel, prior: LinearPrior | None) -> Covariance:
    """Return the clean vectors' covariance; the public one or the identity if the channel does not determine it."""
    target = None if prior is None else prior.covariance
    try:
        return covariance(vectors, mean, debias=channel.debiased_second_moment, target=target)
    except ParameterError:
        width = vectors.shape[1]
        return Covariance(np.eye(width) / width if target is None else target, 0.0)


def _strength(gap: Floats, signal: Floats, noise: Floats, *, is_zero_possible: bool) -> float:
    """Return the r of greatest likelihood."""
    scale = float((gap**2).sum()) / max(float(signal.sum()) * gap.shape[1], _TINY)
    grid = scale * _STRENGTHS[0 if is_zero_possible else 1 :]
    variances = (strength * signal + noise for strength in grid)
    likelihoods = [-0.5 * float((np.log(variance) + gap**2 / variance).sum()) for variance in variances]
    return float(grid[int(np.argmax(likelihoods))])


def _solve(covariance: Floats, moments: Floats) -> Floats:
    values, basis = np.linalg.eigh(covariance)
    floor = max(1e-10 * float(values.max(initial=0.0)), 1e-150)  # its inverse is finite
    inverse = np.where(values > floor, 1 / np.maximum(values, floor), 0.0)
    return basis @ (inverse[:, None] * (basis.T @ moments))


class NoisyClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Classifier trained on private vectors and their labels; it predicts for noisy vectors or for clean ones.

    A linear model that includes the noise in closed form. One fit gives two models: ``predict`` and ``score`` are for
    *noisy* vectors like those of the training, `device_model` is for *clean* ones, so that a device can classify
    without sending anything. They differ, because noise that is missing at use would otherwise be mistaken for
    variation of the text.

    **Guarantee**: post-processing of private vectors: the guarantee of their statement, after any number of fits.
    *Labels are assumed public*: the statement of a vector does not cover its label.

    Args:
        channel: the public noise: a `Channel`, a `Randomizer`, or the `PrivacyStatement` of the vectors;
            None: unknown, and the vectors are used unchanged.
        public: (vectors, labels) of *public* examples, (m, d) before the noise, or None. Weights are shrunk towards
            theirs. To use public examples alone, call `fit_public`.
        seed: seed of the noise that `fit_public` adds to public vectors. Privacy does not depend on it.

    Attributes:
        classes_: the labels, sorted.
        n_features_in_: k, the width of the vectors.
        channel_: the channel of the noise, or None.

    Raises:
        MissingExtraError: scikit-learn is not installed (when the name is imported).
        ParameterError: from ``fit``: an argument is out of range; public and private labels have different classes.

    >>> from dptext.representations.privunit import PrivUnit
    >>> clean = np.tile([[1.0, 0.2, 0.0], [-1.0, 0.2, 0.0]], (200, 1))
    >>> labels = np.tile(["good", "bad"], 200)
    >>> arrived = PrivUnit(epsilon=3.0).randomize(clean, seed=1)
    >>> server = NoisyClassifier(channel=PrivUnit(epsilon=3.0)).fit(arrived, labels)
    >>> server.device_model().predict([[0.9, 0.1, 0.3], [-2.0, 0.0, 0.1]]).tolist()
    ['good', 'bad']
    """

    def __init__(
        self,
        *,
        channel: Channel | Randomizer | PrivacyStatement | None = None,
        public: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        seed: int | None = None,
    ) -> None:
        self.channel, self.public, self.seed = channel, public, seed

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:  # noqa: N803  the names that scikit-learn asks for
        """Fit on (n, k) noisy vectors, unchanged, and their (n,) labels.

        Do not pass vectors without noise: see `fit_public`.

        Raises:
            DataError: labels of one class only; a number that is too large for a private vector.
            ParameterError: an argument is out of range; the channel returns vectors of another width.
        """
        if self.public is not None and not (isinstance(self.public, tuple | list) and len(self.public) == 2):
            raise ParameterError("public must be a pair (vectors, labels)")
        _check_labels(y)
        values, targets = self._validated(X, y)
        self.classes_, codes = coded(targets)
        self.channel_ = channel = _channel_of(
            self.channel, values.shape[1] if self.public is None else check_vectors(self.public[0]).shape[1]
        )
        if channel is not None and channel.width != values.shape[1]:
            raise ParameterError(
                f"the channel turns vectors of {channel.dimension} numbers into {channel.width}, got "
                f"{values.shape[1]}: pass the statement of these vectors"
            )
        if self.public is None:
            return self._fit(values, codes, None)
        dimension = values.shape[1] if channel is None else channel.dimension
        known, labels = check_X_y(check_vectors(self.public[0], dimension), self.public[1], dtype=np.float64)
        if not np.array_equal(np.unique(labels), self.classes_):
            raise ParameterError("public labels must have the same classes as the private ones")
        if channel is not None:
            known = channel.noiseless(known)
        return self._fit(values, codes, (known, np.searchsorted(self.classes_, labels)))

    def fit_public(self, vectors: npt.ArrayLike, labels: npt.ArrayLike) -> Self:
        """Fit on vectors without noise. This call *declares them public*: the people behind them are not protected.

        Later vectors are predicted with the noise of the channel.

        Args:
            vectors: (m, d), without noise; they are mapped into the channel's domain.
            labels: (m,) of two classes or more.

        Raises:
            DataError: labels of one class only.
            ParameterError: an argument is out of range; ``public`` was also passed to the constructor.
        """
        if self.public is not None:
            raise ParameterError("public vectors were passed twice: to the constructor and to fit_public")
        _check_labels(labels)
        clean, targets = check_X_y(check_vectors(vectors), labels, dtype=np.float64)
        self.classes_, codes = coded(targets)
        self.channel_ = channel = _channel_of(self.channel, clean.shape[1])
        self.n_features_in_ = clean.shape[1] if channel is None else channel.width
        if channel is None:
            return self._fit(clean, codes, None)
        if channel.dimension != clean.shape[1]:
            raise ParameterError(f"the channel accepts vectors of {channel.dimension} numbers, got {clean.shape[1]}")
        bits = RandomBits()
        if self.seed is not None:
            [bits] = RandomBits.keyed(seed_bytes(b"noise of a training", self.seed)).spawn(1)
        noisy = channel.sample(clean, bits).astype(np.float64)
        return self._fit(noisy, codes, (channel.noiseless(clean), codes))

    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return scores of *noisy* vectors: (n, classes), or (n,) for two classes, above 0 for the second."""
        check_is_fitted(self)
        scores = self._noisy.scores(self._validated(X, reset=False))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class of each of (n, k) *noisy* vectors."""
        scores = self.decision_function(X)
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        return np.asarray(self.classes_[codes])

    def device_model(self) -> DeviceModel:
        """Return the frozen model for *clean* vectors (before the noise); it needs numpy only, and saves as JSON.

        Raises:
            NotFittedError: ``fit`` was not called.
            ParameterError: the channel transforms vectors before it adds noise.
        """
        check_is_fitted(self)
        if self.channel_ is not None and not self.channel_.keeps_vectors:
            raise ParameterError(
                f"{self.channel_.name} transforms vectors before adding noise, so no model for clean vectors can be "
                "exported"
            )
        return self._clean

    def _validated(self, *arrays: npt.ArrayLike, reset: bool = True) -> Any:
        checked = validated(self, *arrays, reset=reset)
        vectors = checked[0] if isinstance(checked, tuple) else checked
        for row in np.flatnonzero(np.abs(vectors).max(axis=1) > _LARGEST)[:1]:
            raise DataError(f"row {row + 1}: private vectors have no numbers beyond {_LARGEST:.3g}. Drop the row")
        return checked

    def _fit(self, vectors: Floats, codes: Labels, public: tuple[Floats, Labels] | None) -> Self:
        classes = len(self.classes_)
        prior = None if public is None else fit_linear(*public, classes).prior
        linear = fit_linear(vectors, codes, classes, channel=self.channel_, prior=prior)
        layers: Any = linear
        names, domain = tuple(self.classes_.tolist()), None if self.channel_ is None else self.channel_.domain
        self._noisy, self._clean = DeviceModel(names, (layers.noisy,)), DeviceModel(names, (layers.clean,), domain)
        return self


def _channel_of(source: object, dimension: int) -> Channel | None:
    if source is None or isinstance(source, Channel):
        return source
    if isinstance(source, PrivacyStatement):
        input_dimension = source.parameters.get("dimension")
        if not is_randomizer(source.mechanism) or not isinstance(input_dimension, int):
            raise ParameterError(
                f"a statement of {source.mechanism!r} describes no noise on vectors: pass one of "
                f"{', '.join(RANDOMIZERS)}, or the randomizer itself"
            )
        return randomizer_from_parameters(source.mechanism, source.parameters).channel(input_dimension)
    if isinstance(source, Randomizer):
        return source.channel(dimension)
    raise ParameterError(
        f"channel must be a Channel, a Randomizer, a PrivacyStatement or None, got {type(source).__name__}"
    )


def _check_labels(labels: Any) -> None:
    """Raise `DataError` if a row has no label; scikit-learn would name no row."""
    for row, label in enumerate([] if labels is None else np.asarray(labels, dtype=object).ravel(), 1):
        if is_missing(label):
            raise DataError(f"row {row} has no label: drop the row")
