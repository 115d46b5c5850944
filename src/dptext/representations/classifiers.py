"""Classifiers of noisy vectors that know the noise (extra ``sklearn``).

Derivation: docs/mechanisms/private-vectors.md#representations-linear
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.privacy.statement import PrivacyStatement
from dptext.release.scikit_learn import BaseEstimator, ClassifierMixin, check_is_fitted, check_X_y, coded, validated
from dptext.representations.bounds import Floats, check_vectors
from dptext.representations.layers import DeviceModel
from dptext.representations.networks import (
    TRAININGS,
    Epoch,
    Labels,
    Schedule,
    TrainingNoise,
    TrainingOptions,
    train_mlp,
)
from dptext.representations.randomizer import Channel, Randomizer
from dptext.representations.registry import RANDOMIZERS, is_randomizer, randomizer_from_parameters
from dptext.validation import check_choice

_BLOCKS = 16
_TINY = 1e-300


@dataclass(frozen=True)
class Covariance:
    """An estimate of a covariance matrix."""

    matrix: Floats
    entry_error: float
    intensity: float


def covariance(
    vectors: Floats, mean: Floats, *, debias: Callable[[Floats], Floats] | None = None, target: Floats | None = None
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
    """Return (classes,) scores of the mean vector: of the noisy mean, shrunk towards the public one."""
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
    values, basis = np.linalg.eigh(covariance)
    floor = max(1e-10 * float(values.max(initial=0.0)), 1e-150)  # its inverse is finite
    inverse = np.where(values > floor, 1 / np.maximum(values, floor), 0.0)
    weights: Floats = basis @ (inverse[:, None] * (basis.T @ moments))
    return weights


_MODELS = ("linear", "mlp")
_LARGEST = float(np.finfo(np.float32).max)
"""No randomizer puts out more, and fourth powers of it are still finite."""


class NoisyClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn from the private vectors that arrived, and their labels; predict for noisy vectors or for clean ones.

    One fit gives two models. ``predict`` and ``score`` are for *noisy* vectors like the training vectors.
    `device_model` is for *clean* ones: sent back to the device, it classifies there and nothing
    leaves. They differ, because noise that is there at training and missing at use would otherwise be mistaken for
    variation of the text (``dptext.representations.classifiers`` has the equations).

    **Guarantee**: post-processing of private vectors: what the statement that came with them says, and nothing more is
    spent, however often one fits. *Labels are taken as public*: the statement of a vector says nothing of its label.

    A server that has public labelled texts and no private vector yet learns from those alone: `fit_public`.

    Args:
        model: ``"linear"`` (numpy; it knows the noise in closed form) or ``"mlp"`` (a perceptron; extra ``train``).
        channel: the public noise: a `Channel`, a `Randomizer`, or the `PrivacyStatement` that came with the vectors;
            None: not known, and the vectors are taken as they are.
        public: (vectors, labels) of *public* examples, (m, d) before the noise, or None. The linear
            model shrinks towards theirs; the perceptron also trains on them.
        training: of the perceptron, ``"plain"``, ``"robust"`` or ``"adaptive"``: the noise that it draws on public
            vectors in each epoch, and adds on top of those that arrived; `dptext.representations.networks` has the
            table. Robust (the noise of the channel, drawn anew) is right where users send at the channel's epsilon,
            adaptive (at the schedule's) is for servers that do not know at which.
        schedule: of adaptive training: a name, a list with an epsilon for each epoch, or a function of the epoch's
            number; see `dptext.representations.networks`. The names say whether *noise* rises or falls.
        hidden, dropout, learning_rate, learning_rate_decay, momentum, weight_decay, batch_size, epochs: of the
            perceptron, see `dptext.representations.networks.TrainingOptions`.
        validation_fraction, patience, extra_noise: of its training, see there.
        progress: called with an `dptext.representations.networks.Epoch` after each epoch.
        seed: of the perceptron's initial weights, batches, dropout and training noise. Privacy does not depend on it.

    Attributes:
        classes_: the labels, sorted.
        n_features_in_: k, the width of the vectors.
        channel_: the channel of the noise, or None.
        strength_, intensity_: of the linear model, see `dptext.representations.classifiers.LinearFit`.
        epochs_, best_epoch_: of the perceptron: what ``progress`` saw, and the epoch whose weights were kept.
        epsilons_: of the perceptron's adaptive training: of each epoch; else empty.

    Raises:
        MissingExtraError: scikit-learn is not installed (when the name is imported), or torch (from ``fit``).
        ParameterError: from ``fit``: an argument out of range, public labels that the private ones do not have.

    >>> from dptext.representations.privunit import PrivUnit
    >>> clean = np.tile([[1.0, 0.2, 0.0], [-1.0, 0.2, 0.0]], (200, 1))
    >>> labels = np.tile(["good", "bad"], 200)
    >>> arrived = PrivUnit(epsilon=3.0).randomize(clean, seed=1)
    >>> server = NoisyClassifier(channel=PrivUnit(epsilon=3.0)).fit(arrived, labels)
    >>> server.device_model().predict([[0.9, 0.1, 0.3], [-2.0, 0.0, 0.1]]).tolist()
    ['good', 'bad']
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int
    channel_: Channel | None

    def __init__(
        self,
        model: str = "linear",
        *,
        channel: Channel | Randomizer | PrivacyStatement | None = None,
        public: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        training: str = "robust",
        schedule: Schedule = "noise-rises-10/n",
        hidden: int | Sequence[int] = 128,
        dropout: float = 0.5,
        learning_rate: float = 0.01,
        learning_rate_decay: float = 1.0,
        momentum: float = 0.9,
        weight_decay: float = 1e-6,
        batch_size: int = 32,
        epochs: int = 50,
        validation_fraction: float = 0.1,
        patience: int = 10,
        extra_noise: float = 0.0,
        progress: Callable[[Epoch], object] | None = None,
        seed: int | None = None,
    ) -> None:
        self.model = model
        self.channel = channel
        self.public = public
        self.training = training
        self.schedule = schedule
        self.hidden = hidden
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.extra_noise = extra_noise
        self.progress = progress
        self.seed = seed

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:  # noqa: N803  the names that scikit-learn asks for
        """Learn from (n, k) noisy vectors that arrived, and (n,) labels of two classes or more.

        They are taken as they arrived, in every epoch; adaptive training adds noise on top. No noise is ever drawn anew
        below theirs: a server does not have the vectors as they were, and who has them must not pass them here.

        Raises:
            DataError: labels of one class only; a number that no private vector has.
            ParameterError: an argument out of range; the channel does not put out vectors of this width.
        """
        options = self._options()
        values, targets = _validated(self, X, y)
        self.classes_, codes = coded(targets)
        pair = isinstance(self.public, tuple | list) and len(self.public) == 2
        dimension = check_vectors(self.public[0]).shape[1] if pair else values.shape[1]  # type: ignore[index]
        self.channel_, randomizer = _noise(self.channel, dimension, values.shape[1])
        public = self._check_public()
        if self.model == "linear":
            if public is not None and self.channel_ is not None:
                public = (self.channel_.noiseless(public[0]), public[1])
            self._fit_linear(values, codes, public)
            return self
        noise = self._training_noise(randomizer)

        def fresh(number: int) -> tuple[Floats, Labels]:
            assert public is not None
            return noise.on_public(number, public[0]), public[1]

        self._fit_mlp(values, codes, options, noise, noise.on_arrived, None if public is None else fresh)
        return self

    def fit_public(self, vectors: npt.ArrayLike, labels: npt.ArrayLike) -> Self:
        """Learn from **public** vectors alone, as devices have them before the noise. This call *declares them public*.

        Later vectors are predicted with the noise of the training. *The people behind these vectors are not
        protected*: robust and adaptive training draw noise on them in each epoch, which for private
        vectors would be a release in each epoch.

        Args:
            vectors: (m, d), without noise; they are brought into the channel's domain.
            labels: (m,) of two classes or more.

        Raises:
            DataError: labels of one class only.
            ParameterError: an argument out of range; ``public`` was given to the constructor as well.
        """
        options = self._options()
        if self.public is not None:
            raise ParameterError("public vectors were given twice: to the constructor and to fit_public")
        clean, targets = check_X_y(check_vectors(vectors), labels, dtype=np.float64)
        self.classes_, codes = coded(targets)
        self.channel_, randomizer = _noise(self.channel, clean.shape[1], None)
        self.n_features_in_ = clean.shape[1] if self.channel_ is None else self.channel_.width
        noise = self._training_noise(randomizer)
        if self.model == "mlp":
            self._fit_mlp(clean, codes, options, noise, noise.on_public, None)
        elif self.channel_ is None:
            self._fit_linear(clean, codes, None)
        else:
            self._fit_linear(noise.on_public(0, clean), codes, (self.channel_.noiseless(clean), codes))
        return self

    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:  # noqa: N803
        """Scores of *noisy* vectors: (n, classes), or (n,) of two classes, above 0 for the second."""
        check_is_fitted(self)
        scores = self._noisy.scores(_validated(self, X, reset=False))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:  # noqa: N803
        """The class of each of (n, k) *noisy* vectors."""
        scores = self.decision_function(X)
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        predicted: npt.NDArray[Any] = self.classes_[codes]
        return predicted

    def device_model(self) -> DeviceModel:
        """The model for *clean* vectors (as they are before the noise): frozen, numpy only, saved as JSON.

        Raises:
            NotFittedError: ``fit`` was not called.
            ParameterError: the channel turns vectors into something else before its noise.
        """
        check_is_fitted(self)
        channel = self.channel_
        if channel and (channel.width != channel.dimension or type(channel).noiseless is not Channel.noiseless):
            raise ParameterError(
                f"{channel.name} makes something else of vectors before it adds its noise: a model for clean "
                "vectors would have to do so too, and knows no more than linear layers"
            )
        return self._clean

    def _options(self) -> TrainingOptions:
        check_choice("model", self.model, _MODELS)
        if check_choice("training", self.training, TRAININGS) != "robust" and self.model == "linear":
            raise ParameterError(
                f"training={self.training!r} is for model='mlp': the linear model knows the noise in closed form; "
                "without a channel it takes vectors as they are"
            )
        return TrainingOptions(**{field.name: getattr(self, field.name) for field in fields(TrainingOptions)})

    def _training_noise(self, randomizer: Randomizer | None) -> TrainingNoise:
        return TrainingNoise(
            self.training, self.channel_, randomizer, schedule=self.schedule, epochs=self.epochs, seed=self.seed
        )

    def _fit_linear(self, inputs: Floats, codes: Labels, public: tuple[Floats, Labels] | None) -> None:
        classes = len(self.classes_)
        prior = None if public is None else linear_prior(*public, classes)
        linear = fit_linear(inputs, codes, classes, channel=self.channel_, prior=prior)
        self.strength_, self.intensity_ = linear.strength, linear.intensity
        self._store((linear.noisy,), (linear.clean,))

    def _fit_mlp(
        self,
        inputs: Floats,
        codes: Labels,
        options: TrainingOptions,
        noise: TrainingNoise,
        seen: Callable[[int, Floats], Floats],
        fresh: Callable[[int], tuple[Floats, Labels]] | None,
    ) -> None:
        result = train_mlp(
            inputs,
            codes,
            len(self.classes_),
            options,
            seen=seen,
            fresh=fresh,
            scale=noise.pooled(seen, inputs) if noise.epsilons else None,
            progress=self.progress,
            seed=self.seed,
        )
        self.epochs_, self.best_epoch_, self.epsilons_ = result.epochs, result.best, noise.epsilons
        self._store(result.layers, result.layers)

    def _store(self, noisy: tuple[Any, ...], clean: tuple[Any, ...]) -> None:
        names = tuple(self.classes_.tolist())
        self._noisy = DeviceModel(names, noisy)
        self._clean = DeviceModel(names, clean, None if self.channel_ is None else self.channel_.domain)

    def _check_public(self) -> tuple[Floats, Labels] | None:
        if self.public is None:
            return None
        if not isinstance(self.public, tuple | list) or len(self.public) != 2:
            raise ParameterError("public must be a pair (vectors, labels), got something else")
        dimension = self.n_features_in_ if self.channel_ is None else self.channel_.dimension
        vectors, labels = check_X_y(check_vectors(self.public[0], dimension), self.public[1], dtype=np.float64)
        if not np.array_equal(np.unique(labels), self.classes_):
            raise ParameterError("public labels must be of the same classes as the private ones: they are not")
        return vectors, np.searchsorted(self.classes_, labels)


def _validated(estimator: NoisyClassifier, *arrays: npt.ArrayLike, reset: bool = True) -> Any:
    checked = validated(estimator, *arrays, reset=reset)
    vectors = checked[0] if isinstance(checked, tuple) else checked
    for row in np.flatnonzero(np.abs(vectors).max(axis=1) > _LARGEST)[:1]:
        raise DataError(f"row {row + 1}: a number beyond {_LARGEST:.3g} is no private vector's; leave the row out")
    return checked


def _noise(inputs: object, dimension: int, width: int | None) -> tuple[Channel | None, Randomizer | None]:
    randomizer: Randomizer | None = None
    channel: Channel | None = None
    if isinstance(inputs, PrivacyStatement):
        randomizer, expected = _rebuild_randomizer(inputs)
        channel = randomizer.channel(expected)
    elif isinstance(inputs, Randomizer):
        randomizer, channel = inputs, inputs.channel(dimension)
    elif inputs is None or isinstance(inputs, Channel):
        channel = inputs
    else:
        raise ParameterError(
            f"channel must be a Channel, a Randomizer, a PrivacyStatement or None, got {type(inputs).__name__}"
        )
    if channel is not None and width not in (None, channel.width):
        raise ParameterError(
            f"the channel turns vectors of {channel.dimension} numbers into {channel.width}, and {width} arrived: give "
            "the statement that came with them"
        )
    if channel is not None and width is None and channel.dimension != dimension:
        raise ParameterError(f"the channel takes vectors of {channel.dimension} numbers, got {dimension}")
    return channel, randomizer


def _rebuild_randomizer(statement: PrivacyStatement) -> tuple[Randomizer, int]:
    """The randomizer that a statement describes, rebuilt from its parameters, and the dimension of its vectors."""
    parameters = statement.parameters
    known = is_randomizer(statement.mechanism)
    if not known or not isinstance(dimension := parameters.get("dimension"), int):
        raise ParameterError(
            f"a statement of {statement.mechanism!r} does not say which noise vectors carry; expected one of "
            f"{', '.join(RANDOMIZERS)}, or pass the randomizer itself"
        )
    return randomizer_from_parameters(statement.mechanism, parameters), dimension
