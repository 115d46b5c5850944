"""Rows as a model sees them: texts as bags of words or as word ids, vectors as they are.

A feature does its work in two steps. ``of`` looks at each row alone, once for all folds (cut into words, hash).
``fitted`` learns what is learnt from rows (how rare a word is, how far a coordinate spreads), from the rows that train
and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.files.formats import extra
from dptext.text.tokens import Kind, fold, kind_of, pieces
from dptext.text.vocabulary import Vocabulary
from dptext.words.rewriter import checked_texts

__all__ = ["BagOfWords", "Features", "VectorFeatures", "WordIds", "words_of"]


class Features(Protocol):
    """What a feature offers.

    Attributes:
        name: for the reader of a score.
    """

    name: str

    def of(self, rows: Any) -> Any:
        """Rows -> something of as many rows that an array of indices selects from."""

    def fitted(self, train: Any) -> Callable[[Any], Any]:
        """What turns a selection into what the model gets, learnt from the selection that trains."""


class BagOfWords:
    """How often each word stands in a text; frequent in the text and rare elsewhere weighs most (tf-idf).

    Args:
        vocabulary: public words, all others do not count; None: every word counts, hashed into a bucket.
        buckets: for hashing; words that share one are not told apart.
        tf_idf: weigh by rarity in the rows that train (1 + ln tf, smooth idf, unit length); otherwise counts.
    """

    def __init__(self, vocabulary: Sequence[str] | None = None, *, buckets: int = 1 << 16, tf_idf: bool = True) -> None:
        buckets = whole("buckets", buckets, least=2)
        if vocabulary is not None and not len(vocabulary):
            raise ParameterError("vocabulary must hold at least one word, got none")
        self._rows = (
            None if vocabulary is None else {word: row for row, word in enumerate(dict.fromkeys(map(fold, vocabulary)))}
        )
        self._buckets, self._tf_idf = buckets, tf_idf
        size = f"{buckets:,} buckets" if self._rows is None else f"{len(self._rows):,} public words"
        self.name = f"bag of words ({size}{', tf-idf' if tf_idf else ''})"

    def of(self, rows: Iterable[str | None]) -> Any:
        """(rows, words) sparse counts."""
        text = extra("sklearn.feature_extraction.text", "sklearn", "a bag of words")
        texts = ["" if each is None else each for each in checked_texts(rows)]
        if self._rows is None:
            counter = text.HashingVectorizer(
                analyzer=words_of, n_features=self._buckets, norm=None, alternate_sign=False
            )
        else:
            counter = text.CountVectorizer(analyzer=words_of, vocabulary=self._rows)
        return counter.transform(texts)

    def fitted(self, train: Any) -> Callable[[Any], Any]:
        """Weights of words, from the counts of the rows that train."""
        if not self._tf_idf:
            return lambda counts: counts
        text = extra("sklearn.feature_extraction.text", "sklearn", "a bag of words")
        transform: Callable[[Any], Any] = text.TfidfTransformer(sublinear_tf=True).fit(train).transform
        return transform


class WordIds:
    """A text as the rows of its words in a public vocabulary, for models that read words in order (fastText).

    Args:
        words: a vocabulary with ``"<unk>"``, such as ``vectors.words``; unknown words have the row of this one.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._vocabulary = Vocabulary(words)
        self.name = f"word ids ({len(words):,} public words)"

    def of(self, rows: Iterable[str | None]) -> npt.NDArray[np.object_]:
        """(rows,) objects: arrays of int64."""
        texts = list(checked_texts(rows))
        ids = np.empty(len(texts), dtype=object)
        for row, text in enumerate(texts):
            ids[row] = np.array([self._vocabulary.row(word) for word in words_of(text or "")], dtype=np.int64)
        return ids

    def fitted(self, train: Any) -> Callable[[Any], Any]:  # noqa: ARG002
        """Nothing is learnt: a list of arrays."""
        return list


class VectorFeatures:
    """Vectors, each coordinate scaled to mean 0 and spread 1 over the rows that train."""

    name = "vectors"

    def of(self, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """(rows, d) finite numbers.

        Raises:
            ParameterError: something else.
        """
        try:
            vectors: npt.NDArray[np.float64] = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("rows must be texts, or vectors of equal length: got something else") from None
        if vectors.ndim != 2 or not vectors.size:
            raise ParameterError(f"rows must be texts, or one vector a row, got shape {vectors.shape}")
        if not np.isfinite(vectors).all():
            row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
            raise ParameterError(f"rows must be finite vectors, row {row} holds NaN or infinity")
        return vectors

    def fitted(self, train: npt.NDArray[np.float64]) -> Callable[[Any], Any]:
        """The scaling of the rows that train."""
        middle = train.mean(axis=0)
        spread = train.std(axis=0)
        spread[spread == 0] = 1.0
        return lambda vectors: (vectors - middle) / spread


def words_of(text: str) -> list[str]:
    """The words of a text, folded: no numbers, addresses, punctuation.

    >>> words_of("Don't mail 7 DOCTORS!")
    ['do', "n't", 'mail', 'doctors']
    """
    return [fold(piece) for piece in pieces(text) if kind_of(piece) is Kind.WORD]
