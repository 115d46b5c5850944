"""A word mechanism as a scikit-learn transformer of texts (extra ``sklearn``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from dptext.release.scikit_learn import TextPrivatizer
from dptext.vectors.formats import GLOVE, USUAL_LIMIT, Source, load_vectors_once
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import word_mechanism


class WordPrivatizer(TextPrivatizer):
    """Replace every word of every text through a word mechanism, as a step of a scikit-learn pipeline.

    ``fit`` loads the vectors and builds the mechanism without reading the texts; ``transform`` draws fresh noise each
    time.

    **Guarantee** (unit document, substitution among documents of equal layout, local): for one call of ``transform``;
    see ``statement_``. *Every call is a separate release and spends its own budget*, and pipelines call often: ``fit``
    transforms the training texts, ``predict`` the new texts, and a k-fold cross-validation privatizes each text k times
    per candidate. To spend the budget once, privatize first (`dptext.privatize`) and search on the private texts.

    Args:
        mechanism: a name in `dptext.words.registry` (``"tem"``, ``"madlib"``), a subclass of `WordMechanism`, or a
            mechanism, which has its own epsilon, vectors and options.
        epsilon: nats per unit of distance, or per word for some mechanisms (`dptext.SubsetSelection`). Required.
        vectors: what `dptext.load_vectors` reads; public. None: ``"glove-6b-50d"``.
        limit: maximum number of words, the most frequent ones; None: all.
        mechanism_params: further keyword arguments of the mechanism (``{"threshold": 3.0}``).
        seed: None for cryptographic randomness. An integer, for tests and papers only, makes equal calls give equal
            texts (other texts or parameters still get other noise), and the statement says so.

    Attributes:
        mechanism_: the mechanism.
        statement_: the statement for a document of the *last* call of ``transform``; set by the first call.

    Raises:
        MissingExtraError: scikit-learn is not installed (when the name is imported).
        ParameterError: from ``fit``: an unknown mechanism, no epsilon, or a number that is out of range.

    >>> vectors = (["my", "cat", "dog"], [[0, 9], [0, 0], [1, 0]])
    >>> params = {"threshold": 0.2}
    >>> privatizer = WordPrivatizer(epsilon=200.0, vectors=vectors, limit=None, mechanism_params=params, seed=1)
    >>> privatizer.fit_transform(["My cat!", None, "dog 7"]).tolist()
    ['my cat!', '', 'dog <number>']
    """

    mechanism_: WordMechanism

    def __init__(
        self,
        mechanism: str | type[WordMechanism] | WordMechanism = "tem",
        *,
        epsilon: float | None = None,
        vectors: Source | None = None,
        limit: int | None = USUAL_LIMIT,
        mechanism_params: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.vectors = vectors
        self.limit = limit
        self.mechanism_params = mechanism_params
        self.seed = seed

    def fit(self, texts: object = None, y: object = None) -> Self:  # noqa: ARG002  scikit-learn passes both
        """Build the mechanism without reading the texts."""
        source = GLOVE if self.vectors is None and not isinstance(self.mechanism, WordMechanism) else self.vectors
        vectors = None if source is None else load_vectors_once(source, limit=self.limit)
        params = dict(self.mechanism_params or {})
        self.mechanism_ = word_mechanism(self.mechanism, epsilon=self.epsilon, vectors=vectors, **params)
        return self
