"""A classifier of texts that is cut in two: the device's part ends in noise, the server's part begins with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.release.scikit_learn import ClassifierMixin, TextEstimator, check_is_fitted, coded
from dptext.representations.bounds import TRAINED_INTO, bound_into
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import check_texts
from dptext.representations.layers import DeviceModel
from dptext.representations.networks import MIN_MAX, Epoch, Schedule, TrainingNoise, TrainingOptions, train_split
from dptext.representations.published import MinMaxLaplace
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import randomizer_of
from dptext.representations.trained_encoders import Buckets, EmbeddingBag, NGrams
from dptext.validation import check_float, check_int


class SplitClassifier(ClassifierMixin, TextEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Text classifier whose middle vector goes through noise, in two parts.

    The *device* has a bag of trained n-gram vectors, a bound and the randomizer: ``release_``, which sends a private
    vector. The *server* has the head that classifies it: ``head_``. Both are trained together on **public** texts and
    labels, with the noise between them. The bag alone is an encoder: ``PrivateEncoder(split.release_.encoder, ...)``.

    **``fit`` declares its texts and labels public**: it sees them without noise and *does not protect them*. Robust and
    adaptive training draw noise on them in every epoch, which for private texts would be a release in every epoch.

    **Guarantee** (unit document, substitution, local): one call of ``release_.encode``, and so one call of
    ``predict``, has the randomizer's guarantee for any two texts, as ``release_.statement`` says; the head is
    post-processing. Every call is a separate release.

    Args:
        randomizer: the noise with its budget, one that puts out vectors as long as it takes; or its name, with
            ``epsilon``.
        epsilon: of a randomizer given by name; required, without default.
        dimension: d, of the sent vector. Fewer dimensions are better at small budgets; often the number of classes
            minus one is enough.
        training: ``"plain"``, ``"robust"`` or ``"adaptive"``, as in `NoisyClassifier`.
        schedule: of adaptive training, as in `NoisyClassifier`.
        ngrams: maximum number of words in an n-gram.
        buckets: into which n-grams are hashed; the device stores one vector per bucket.
        word_dropout: probability to mask each word of a public text, anew in each epoch: for devices that mask words
            before they encode (`dptext.representations.published.mask_words`). It is part of training only:
            ``release_`` masks nothing, and its epsilon is the same with and without.
        hidden, dropout, learning_rate, learning_rate_decay, momentum, weight_decay, batch_size, epochs: see
            `dptext.representations.networks.TrainingOptions`; defaults as in Zouhri and Abecidan 2021, section 5.
        public_name: name of the public texts, for the statement.
        progress: called with an `dptext.representations.networks.Epoch` after each epoch.
        seed: of the training. Sent vectors always have fresh noise.

    Attributes:
        release_: the frozen `DeviceEncoder`, to be saved for devices.
        head_: the frozen `DeviceModel` for vectors that arrive.
        classes_: the labels, sorted.
        epochs_: every `Epoch`.
        epsilons_: the epsilon of each epoch of adaptive training; else empty.

    Raises:
        MissingExtraError: scikit-learn is not installed (when the name is imported), or torch (from ``fit``).

    >>> public = ["a good film", "what a bad film", "good and funny", "bad, bad acting"] * 20
    >>> split = SplitClassifier(epsilon=40.0, dimension=2, buckets=1024, seed=1)
    >>> split = split.fit(public, ["+", "-", "+", "-"] * 20)
    >>> arrived = split.release_.encode(["a good one", "a bad one"])  # on the device
    >>> split.predict_private(arrived).tolist()  # on the server
    ['+', '-']
    """

    classes_: npt.NDArray[Any]
    release_: DeviceEncoder
    head_: DeviceModel

    def __init__(
        self,
        randomizer: str | Randomizer = "PrivUnit",
        *,
        epsilon: float | None = None,
        dimension: int = 8,
        training: str = "robust",
        schedule: Schedule = "noise-rises-10/n",
        ngrams: int = 2,
        buckets: int = 1 << 18,
        word_dropout: float = 0.0,
        hidden: int | Sequence[int] = (),
        dropout: float = 0.0,
        learning_rate: float = 2.0,
        learning_rate_decay: float = 0.9,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        epochs: int = 5,
        public_name: str | None = None,
        progress: Callable[[Epoch], object] | None = None,
        seed: int | None = None,
    ) -> None:
        self.randomizer, self.epsilon, self.dimension = randomizer, epsilon, dimension
        self.training, self.schedule = training, schedule
        self.ngrams, self.buckets, self.word_dropout = ngrams, buckets, word_dropout
        self.hidden, self.dropout = hidden, dropout
        self.learning_rate, self.learning_rate_decay = learning_rate, learning_rate_decay
        self.momentum, self.weight_decay = momentum, weight_decay
        self.batch_size, self.epochs = batch_size, epochs
        self.public_name, self.progress, self.seed = public_name, progress, seed

    def fit(self, public_texts: Iterable[str | None], labels: npt.ArrayLike) -> Self:
        """Train both parts on texts and labels that this call *declares public*.

        Args:
            public_texts: strings; a missing one counts as the empty text.
            labels: one per text, of two classes or more.

        Raises:
            ParameterError: an argument out of range; another number of labels; a randomizer that changes the width.
            DataError: labels of one class only; an entry that is no string.
        """
        texts = check_texts(public_texts)
        targets = np.asarray(labels)
        if targets.shape != (len(texts),):
            raise ParameterError(f"labels must be {len(texts)}, one per text, got the shape {targets.shape}")
        return self.fit_hashed(NGrams(max_words=self.ngrams, buckets=self.buckets).of(texts), targets)

    def fit_hashed(self, public_texts: Buckets, labels: npt.ArrayLike) -> Self:
        """`fit` for texts that were hashed by ``NGrams(max_words=ngrams, buckets=buckets)``."""
        names = [field.name for field in fields(TrainingOptions) if hasattr(self, field.name)]  # no early stopping
        options = TrainingOptions(**{name: getattr(self, name) for name in names})
        ngrams = NGrams(max_words=self.ngrams, buckets=self.buckets)
        dimension = check_int("dimension", self.dimension, minimum=1)
        word_dropout = check_float("word_dropout", self.word_dropout, minimum=0, below=1)
        randomizer = randomizer_of(self.randomizer, epsilon=self.epsilon)
        self.classes_, codes = coded(labels)
        channel = randomizer.channel(dimension)
        is_min_max = isinstance(channel, MinMaxLaplace)
        if channel.domain not in TRAINED_INTO or not (channel.keeps_vectors or is_min_max):
            raise ParameterError(
                f"{channel.name} does not add noise to a vector, so no split model can be trained through it: choose "
                "PrivUnit, L2Laplace or Gaussian, or train on vectors of a fixed encoder (NoisyClassifier)"
            )
        noise = TrainingNoise(
            self.training, channel, randomizer, schedule=self.schedule, epochs=options.epochs, seed=self.seed
        )
        bits = RandomBits()
        if self.seed is not None:
            bits = RandomBits.keyed(seed_bytes(b"words masked in a training", self.seed))

        def masked(texts: Buckets) -> Buckets:
            return ngrams.masked(texts, bits.uniform(int(ngrams.words_in(texts).sum())) >= word_dropout)

        matrix, result = train_split(
            public_texts,
            codes,
            len(self.classes_),
            options,
            buckets=ngrams.buckets,
            dimension=dimension,
            bound=MIN_MAX if is_min_max else channel.domain,
            noise=noise,
            masked=masked if word_dropout else None,
            progress=self.progress,
            seed=self.seed,
        )
        bag = EmbeddingBag(matrix, ngrams, trained_on=self.public_name, trained_texts=len(public_texts))
        self.release_ = DeviceEncoder(bag, bound_into(channel.domain, dimension), randomizer)
        self.head_ = DeviceModel(tuple(self.classes_.tolist()), result.layers)
        self.epochs_, self.epsilons_ = result.epochs, noise.epsilons
        return self

    def predict(self, texts: Iterable[str | None]) -> npt.NDArray[Any]:
        """The class of each text, by device and server together: *a release of each*, with fresh noise."""
        check_is_fitted(self, "release_")
        return self.predict_private(self.release_.encode(texts))

    def predict_private(self, vectors: npt.ArrayLike) -> npt.NDArray[Any]:
        """The class of each of (n, d) vectors that arrived from ``release_.encode``: the server's part alone."""
        check_is_fitted(self, "release_")
        predicted: npt.NDArray[Any] = self.classes_[self.head_.scores(vectors).argmax(axis=1)]
        return predicted
