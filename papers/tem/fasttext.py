"""A fastText-style text classifier: the mean of the words' vectors, then a linear softmax (Joulin et al. 2017).

The classifier of the TEM paper also trains the word vectors, so it can memorise its training texts; that is what a
membership attack looks for. It works on rows of token ids, by a few array operations per step, with torch's default
parameters of Adam.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import extra
from dptext.privacy.randomness import RandomBits

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

_BETA_1, _BETA_2, _TINY = 0.9, 0.999, 1e-8  # of Adam
_RESCALE = 64  # steps after which scaled moments are scaled back: .9^-64 is 848
_BLOCK = 1 << 14  # numbers that are updated together, so that they stay in the cache


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths: (total,) concatenated ids, and (n + 1,) start of each row and end of the last.

    >>> len(Ragged.of([[3, 1], [], [2]]))
    3
    """

    values: Ids
    starts: Ids

    @classmethod
    def of(cls, rows: Sequence[npt.ArrayLike]) -> Ragged:
        arrays = [np.asarray(row, dtype=np.int64) for row in rows]
        values = np.concatenate([np.empty(0, np.int64), *arrays])
        return cls(values, np.concatenate([[0], np.cumsum([row.size for row in arrays], dtype=np.int64)]))

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> Ids:
        lengths: Ids = np.diff(self.starts)
        return lengths

    def take(self, rows: Ids) -> Ragged:
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths)
        places = np.arange(lengths.sum()) + np.repeat(self.starts[:-1][rows] - (ends - lengths), lengths)
        return Ragged(self.values[places], np.concatenate([[0], ends]))


class FastTextClassifier:
    """Mean of trained word vectors, linear layer and softmax; cross-entropy, Adam.

    Args:
        vectors: (words, d) initial word vectors.
        epochs, batch_size, learning_rate: of Adam.
        seed: of the order of the rows.

    After `fit`: ``vectors_`` (words, d), ``weights_`` (d, classes) and ``bias_`` (classes,).
    """

    def __init__(
        self,
        vectors: npt.ArrayLike,
        *,
        epochs: int = 20,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        seed: int | None = None,
    ) -> None:
        self.vectors, self.seed = np.array(vectors, dtype=np.float32), seed
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate

    def fit(self, rows: Ragged, labels: npt.NDArray[np.int64]) -> FastTextClassifier:
        """Train on rows of ids with labels 0, 1, ..."""
        bits = RandomBits(self.seed)
        truth = np.eye(int(labels.max()) + 1, dtype=np.float32)[labels]
        bags, classes = _bags(rows, len(self.vectors)), truth.shape[1]
        embedding = _Adam(self.vectors.copy(), self.learning_rate)
        weights = _Adam(np.zeros((self.vectors.shape[1], classes), np.float32), self.learning_rate)
        bias = _Adam(np.zeros((1, classes), np.float32), self.learning_rate)
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

    def predict_proba(self, rows: Ragged) -> npt.NDArray[np.float64]:
        """Return (n, classes) probabilities."""
        shares: npt.NDArray[np.float64] = _softmax(self._logits(rows))
        return shares

    def score(self, rows: Ragged, labels: npt.NDArray[np.int64]) -> float:
        """Return the accuracy."""
        return float((np.argmax(self._logits(rows), axis=1) == labels).mean())

    def _logits(self, rows: Ragged) -> npt.NDArray[np.float64]:
        means = _bags(rows, len(self.vectors_)) @ self.vectors_
        logits: npt.NDArray[np.float64] = means.astype(np.float64) @ self.weights_ + self.bias_
        return logits


class _Adam:
    """Adam (Kingma and Ba 2015) on one table, dense: a row without a gradient still moves by its momentum.

    The moments are divided by beta^t, so that a step writes only rows with a gradient. They grow, so they are scaled
    back every `_RESCALE` steps.
    """

    def __init__(self, value: Floats, rate: float) -> None:
        self.value, self._rate = value, rate
        self._first, self._second = np.zeros_like(value), np.zeros_like(value)
        self._steps = 0
        self._buffer = np.empty((max(1, _BLOCK // value.shape[1]), value.shape[1]), np.float32)

    def step(self, gradient: Floats, rows: Ids | slice = slice(None)) -> None:
        """Take one step; ``gradient`` is that of these rows, and 0 for all others."""
        since = self._steps % _RESCALE
        if since == 0:
            self._first *= np.float32(_BETA_1**_RESCALE)
            self._second *= np.float32(_BETA_2**_RESCALE)
        self._steps += 1
        growth = [beta ** (since + 1) for beta in (_BETA_1, _BETA_2)]
        self._first[rows] += np.float32((1 - _BETA_1) / growth[0]) * gradient
        self._second[rows] += np.float32((1 - _BETA_2) / growth[1]) * gradient * gradient
        # rate * m_hat / (sqrt(v_hat) + tiny), with the factors of both moments outside of the quotient
        first_factor = growth[0] / (1 - _BETA_1**self._steps)
        root_factor = math.sqrt(growth[1] / (1 - _BETA_2**self._steps))
        factor, tiny = np.float32(self._rate * first_factor / root_factor), np.float32(_TINY / root_factor)
        for start in range(0, len(self.value), len(self._buffer)):
            part = slice(start, start + len(self._buffer))
            change = self._buffer[: len(self.value) - start]
            np.sqrt(self._second[part], out=change)
            change += tiny
            np.divide(self._first[part], change, out=change)
            change *= factor
            self.value[part] -= change


def _bags(rows: Ragged, words: int) -> Any:
    """Return a sparse (n, words) matrix of each word's share of each row; its product with vectors is their mean."""
    lengths = rows.lengths
    shares = np.repeat(np.float32(1) / np.maximum(lengths, 1).astype(np.float32), lengths)
    sparse = extra("scipy.sparse", "audit", "the classifier")
    bags = sparse.csr_matrix((shares, rows.values.astype(np.int32), rows.starts), shape=(len(rows), words))
    bags.sum_duplicates()
    return bags


def _batches(bags: Any, order: Ids, size: int) -> Iterator[tuple[Any, Ids, Ids]]:
    """Yield (bags over the words of the batch, these words, rows) for bags in this order."""
    sparse, place = extra("scipy.sparse", "audit", "the classifier"), np.zeros(bags.shape[1], np.int32)
    for start in range(0, order.size, size):
        chosen = order[start : start + size]
        starts = bags.indptr[start : start + chosen.size + 1]
        part = slice(starts[0], starts[-1])
        occurs = np.zeros(bags.shape[1], bool)
        occurs[bags.indices[part]] = True
        words = np.flatnonzero(occurs)
        place[words] = np.arange(words.size, dtype=np.int32)
        shape = (chosen.size, words.size)
        batch = (bags.data[part], place[bags.indices[part]], starts - starts[0])
        yield sparse.csr_matrix(batch, shape=shape), words, chosen


def _softmax(logits: Any) -> Any:
    logits = logits - logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits
