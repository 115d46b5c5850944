"""A fastText-style classifier of texts: the mean of the words' vectors, then a linear softmax (Joulin et al. 2017).

The words' vectors are trained with the rest, so the model is larger than it looks: it can remember the texts it was
trained on, which is what a membership attack looks for. It is the classifier of paper 2107.07928.

It is trained on token ids, never on text, by a kernel of a few array operations a step: nothing is compiled and
torch is not needed. With ``vectors`` given and torch's default parameters of Adam it takes the steps that torch would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_float, check_int

Ids: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float32]

_BETA_1, _BETA_2, _TINY = 0.9, 0.999, 1e-8  # of Adam, as torch has them
_RESCALE = 64  # steps after which scaled moments are brought back to their size: .9^-64 is 848
_BLOCK = 1 << 14  # numbers updated at a time: they stay in the cache from the first operation to the last


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths, end to end.

    Attributes:
        values: (total,) all ids.
        starts: (n + 1,) where each row starts, and where the last one ends.

    >>> len(Ragged.of([[3, 1], [], [2]]))
    3
    """

    values: Ids
    starts: Ids

    @classmethod
    def of(cls, rows: Ragged | Sequence[npt.ArrayLike]) -> Ragged:
        """The rows of a list of lists or arrays.

        Raises:
            ParameterError: a row is not a list of integers; its place is named.
        """
        if isinstance(rows, Ragged):
            return rows
        arrays = [np.asarray(row) for row in rows]
        for place, row in enumerate(arrays, 1):
            if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
                raise ParameterError(f"ids must be lists of integers, row {place} is something else")
        lengths = [row.size for row in arrays]
        values = np.concatenate([np.empty(0, np.int64), *(row.astype(np.int64) for row in arrays)])
        return cls(values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64))

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> Ids:
        """(n,) how long each row is."""
        lengths: Ids = np.diff(self.starts)
        return lengths

    def take(self, rows: Ids) -> Ragged:
        """Some of the rows, in the order asked for."""
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths)
        # place of each value in its row, moved to where the row starts here
        places = np.arange(lengths.sum()) + np.repeat(self.starts[:-1][rows] - (ends - lengths), lengths)
        return Ragged(self.values[places], np.concatenate([[0], ends]))


class FastTextClassifier:
    """Mean of trained word vectors -> linear -> softmax; cross-entropy, Adam.

    Args:
        words: how many words there are: ids are 0 .. words - 1. May be left out when ``vectors`` are given.
        dimension: of the vectors (ignored when ``vectors`` are given).
        vectors: (words, d) what the vectors start from; None: uniform in (-1 / d, 1 / d], as in fastText.
        epochs, batch_size, learning_rate: of Adam, with torch's other parameters (.9, .999, 1e-8).
        seed: of the order of the rows and of the first vectors; None for fresh randomness. The same seed gives the
            same model.

    After `fit`: ``classes_`` (sorted), ``vectors_`` (words, d), ``weights_`` (d, classes), ``bias_`` (classes,).

    >>> ids, labels = [[0, 1], [2, 3], [0], [3]] * 8, ["good", "bad", "good", "bad"] * 8
    >>> model = FastTextClassifier(4, dimension=8, learning_rate=0.1, seed=1).fit(ids, labels)
    >>> model.predict([[1, 0], [2], []]).tolist()[:2]
    ['good', 'bad']
    """

    def __init__(
        self,
        words: int | None = None,
        *,
        dimension: int = 50,
        vectors: npt.ArrayLike | None = None,
        epochs: int = 20,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        seed: int | None = None,
    ) -> None:
        self.words, self.dimension, self.vectors = words, dimension, vectors
        self.epochs, self.batch_size, self.learning_rate, self.seed = epochs, batch_size, learning_rate, seed

    def fit(self, ids: Ragged | Sequence[npt.ArrayLike], labels: npt.ArrayLike) -> FastTextClassifier:
        """Train from the beginning.

        Args:
            ids: n rows of ids; a row may be empty.
            labels: (n,) classes, at least two different ones.

        Raises:
            ParameterError: an id outside the vocabulary, another number of labels, one class only, or a parameter out
                of range.
        """
        self._check()
        bits = RandomBits(self.seed)
        vectors = self._first_vectors(bits)
        rows = Ragged.of(ids)
        self.classes_, targets = np.unique(np.asarray(labels), return_inverse=True)
        if np.shape(labels) != (len(rows),):
            raise ParameterError(f"labels must be one for each of {len(rows):,} rows, got shape {np.shape(labels)}")
        if self.classes_.size < 2:
            raise ParameterError(f"labels must be of at least two classes, got {self.classes_.size}")
        bags = _bags(rows, len(vectors))
        truth = np.eye(self.classes_.size, dtype=np.float32)[targets]
        embedding = _Adam(vectors, self.learning_rate)
        weights = _Adam(np.zeros((vectors.shape[1], self.classes_.size), np.float32), self.learning_rate)
        bias = _Adam(np.zeros((1, self.classes_.size), np.float32), self.learning_rate)
        for _ in range(self.epochs):
            order = np.argsort(bits.integers(len(rows)), kind="stable")
            for bag, words, chosen in _batches(bags[order], order, self.batch_size):
                means = bag @ embedding.value[words]
                error = _softmax(means @ weights.value + bias.value) - truth[chosen]
                error /= np.float32(chosen.size)
                gradient_of_means = error @ weights.value.T
                weights.step(means.T @ error)
                bias.step(error.sum(axis=0, keepdims=True))
                embedding.step(bag.T @ gradient_of_means, words)
        self.vectors_, self.weights_, self.bias_ = embedding.value, weights.value, bias.value[0]
        return self

    def logits(self, ids: Ragged | Sequence[npt.ArrayLike]) -> npt.NDArray[np.float64]:
        """(n, classes) float64: what the softmax is taken of."""
        if not hasattr(self, "vectors_"):
            raise ParameterError("this classifier is not trained yet: call fit first")
        means = _bags(Ragged.of(ids), len(self.vectors_)) @ self.vectors_
        logits: npt.NDArray[np.float64] = means.astype(np.float64) @ self.weights_ + self.bias_
        return logits

    def predict_proba(self, ids: Ragged | Sequence[npt.ArrayLike]) -> npt.NDArray[np.float64]:
        """(n, classes) float64 probabilities, columns as in ``classes_``."""
        shares: npt.NDArray[np.float64] = _softmax(self.logits(ids))
        return shares

    def predict(self, ids: Ragged | Sequence[npt.ArrayLike]) -> npt.NDArray[Any]:
        """(n,) the likeliest class of each row."""
        places = np.argmax(self.logits(ids), axis=1)
        likeliest: npt.NDArray[Any] = self.classes_[places]
        return likeliest

    def score(self, ids: Ragged | Sequence[npt.ArrayLike], labels: npt.ArrayLike) -> float:
        """The share of rows whose class is found."""
        return float((self.predict(ids) == np.asarray(labels)).mean())

    def _check(self) -> None:
        for name in ("dimension", "epochs", "batch_size"):
            check_int(name, getattr(self, name), minimum=1)
        check_float("learning_rate", self.learning_rate, above=0)

    def _first_vectors(self, bits: RandomBits) -> Floats:
        if self.vectors is None:
            if self.words is None or self.words < 1:
                raise ParameterError("give the number of words, or the vectors to start from")
            uniform = bits.uniform(self.words, self.dimension)
            return ((2 * uniform - 1) / self.dimension).astype(np.float32)
        vectors = np.array(self.vectors, dtype=np.float32)
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            raise ParameterError(f"vectors must be a (words, d) table of finite numbers, got shape {vectors.shape}")
        if self.words not in (None, len(vectors)):
            raise ParameterError(f"vectors must be of {self.words} words, got {len(vectors)}")
        return vectors


class _Adam:
    """Adam (Kingma and Ba 2015) on one table, dense: a row without a gradient still moves by its momentum.

    The moments are kept divided by beta^t, so that a step writes only where there is a gradient. That makes them
    grow, so now and then they are brought back.
    """

    def __init__(self, value: Floats, rate: float) -> None:
        self.value, self._rate = value, rate
        self._first, self._second = np.zeros_like(value), np.zeros_like(value)
        self._steps = 0
        self._room = np.empty((max(1, _BLOCK // value.shape[1]), value.shape[1]), np.float32)

    def step(self, gradient: Floats, rows: Ids | slice = slice(None)) -> None:
        """One step; ``gradient`` holds these rows, that of all others is 0."""
        since = self._steps % _RESCALE
        if since == 0:
            self._first *= np.float32(_BETA_1**_RESCALE)
            self._second *= np.float32(_BETA_2**_RESCALE)
        self._steps += 1
        since += 1
        grown = [beta**since for beta in (_BETA_1, _BETA_2)]
        self._first[rows] += np.float32((1 - _BETA_1) / grown[0]) * gradient
        self._second[rows] += np.float32((1 - _BETA_2) / grown[1]) * gradient * gradient
        # rate * m_hat / (sqrt(v_hat) + tiny), with the factors of both moments drawn out of the quotient
        of_first = grown[0] / (1 - _BETA_1**self._steps)
        of_root = math.sqrt(grown[1] / (1 - _BETA_2**self._steps))
        factor, tiny = np.float32(self._rate * of_first / of_root), np.float32(_TINY / of_root)
        for start in range(0, len(self.value), len(self._room)):
            part = slice(start, start + len(self._room))
            move = self._room[: len(self.value) - start]
            np.sqrt(self._second[part], out=move)
            move += tiny
            np.divide(self._first[part], move, out=move)
            move *= factor
            self.value[part] -= move


def _bags(rows: Ragged, words: int) -> Any:
    """(n, words) sparse: the share that each word has of each row, so that a product with vectors is their mean."""
    if rows.values.size and not (rows.values.min() >= 0 and rows.values.max() < words):
        raise ParameterError(f"ids must lie between 0 and {words - 1:,}, some do not")
    lengths = rows.lengths
    shares = np.repeat(np.float32(1) / np.maximum(lengths, 1).astype(np.float32), lengths)
    bags = _sparse().csr_matrix((shares, rows.values.astype(np.int32), rows.starts), shape=(len(rows), words))
    bags.sum_duplicates()
    return bags


def _batches(bags: Any, order: Ids, size: int) -> Iterator[tuple[Any, Ids, Ids]]:
    """(bags over the words that occur in the batch, those words, rows) of each batch; ``bags`` lie in this order."""
    sparse, place = _sparse(), np.zeros(bags.shape[1], np.int32)
    for start in range(0, order.size, size):
        chosen = order[start : start + size]
        starts = bags.indptr[start : start + chosen.size + 1]
        part = slice(starts[0], starts[-1])
        occurs = np.zeros(bags.shape[1], bool)
        occurs[bags.indices[part]] = True
        words = np.flatnonzero(occurs)
        place[words] = np.arange(words.size, dtype=np.int32)
        columns = place[bags.indices[part]]
        shape = (chosen.size, words.size)
        yield sparse.csr_matrix((bags.data[part], columns, starts - starts[0]), shape=shape), words, chosen


def _softmax(logits: Any) -> Any:
    logits = logits - logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _sparse() -> Any:
    return extra("scipy.sparse", "audit", "the classifier")
