"""A text as the mean of trained vectors of its n-grams: the device's part of a split model, numpy alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import Progress, Vectors, checked_texts, finite, in_parts
from dptext.representations.ngrams import Buckets, NGrams

__all__ = ["EmbeddingBag"]

_TEXTS_AT_ONCE = 1024
_ROWS_AT_ONCE = 1 << 14


class EmbeddingBag:
    """The mean of the vectors of a text's n-grams (Joulin, Grave, Bojanowski and Mikolov 2017). Frozen.

    A text without any word has the vector of zeros, which a bound turns into its public stand-in.

    Args:
        matrix: (buckets, d) a vector for each bucket, trained on **public** texts, or on texts whose people were
            promised something by a statement of its own.
        ngrams: how texts are cut; its buckets are the rows of the matrix.
        trained_on: what it was trained on, in the words of whoever did; for the statement.
        trained_texts: how many texts these were.

    Raises:
        ParameterError: a matrix of another shape, or with NaN or infinities.

    >>> bag = EmbeddingBag(np.eye(4), NGrams(most=1, buckets=4))
    >>> bag.encode(["the cat", "", None]).sum(axis=1).tolist()
    [1.0, 0.0, 0.0]
    """

    name = "bag of n-grams"

    def __init__(
        self,
        matrix: npt.ArrayLike,
        ngrams: NGrams | None = None,
        *,
        trained_on: str | None = None,
        trained_texts: int = 0,
    ) -> None:
        rows = np.array(matrix, dtype=np.float32)
        self.ngrams = NGrams() if ngrams is None else ngrams
        if not isinstance(self.ngrams, NGrams):
            raise ParameterError(f"ngrams must be NGrams(...), got {type(ngrams).__name__}")
        if rows.ndim != 2 or rows.shape[0] != self.ngrams.buckets or not rows.shape[1] or not np.isfinite(rows).all():
            raise ParameterError(
                f"the matrix must be finite numbers of shape ({self.ngrams.buckets}, d), got the shape {rows.shape}"
            )
        if trained_on is not None and not isinstance(trained_on, str):
            raise ParameterError("trained_on must be text, or None")
        if isinstance(trained_texts, bool) or not isinstance(trained_texts, int) or trained_texts < 0:
            raise ParameterError("trained_texts must be the number of texts, 0 if there were none")
        rows.flags.writeable = False
        self.matrix = rows
        self.trained_on, self.trained_texts = trained_on, trained_texts
        self.dimension = int(rows.shape[1])

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """(n, d) float32, one vector a text. *Not private.*"""
        given = checked_texts(texts)
        means = np.empty((len(given), self.dimension), dtype=np.float32)
        for block in in_parts(given, _TEXTS_AT_ONCE, progress):
            means[block] = self.means(self.ngrams.of(given[block]))
        return means

    def means(self, buckets: Buckets) -> Vectors:
        """(n, d) float32 of texts that are hashed already. *Not private.*"""
        lengths = buckets.lengths
        means = np.zeros((len(buckets), self.dimension), dtype=np.float64)
        # a text's sum is added up in pieces of its own, so that no other text changes a bit of it
        for text in np.flatnonzero(lengths):
            first, last = buckets.starts[text], buckets.starts[text + 1]
            for start in range(first, last, _ROWS_AT_ONCE):
                rows = self.matrix[buckets.values[start : min(start + _ROWS_AT_ONCE, last)]]
                means[text] += rows.sum(axis=0, dtype=np.float64)
        means /= np.maximum(lengths, 1)[:, None]
        return finite(means)

    @cached_property
    def sha256(self) -> str:
        """Digest of the vectors."""
        return hashlib.sha256(np.ascontiguousarray(self.matrix, dtype="<f4").tobytes()).hexdigest()

    def parameters(self) -> dict[str, Parameter]:
        """How texts are cut, which vectors, and what they were trained on."""
        return {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_ngrams": self.ngrams.most,
            "encoder_buckets": self.ngrams.buckets,
            "encoder_matrix_sha256": self.sha256,
            "encoder_trained_on": self.trained_on,
            "encoder_trained_texts": self.trained_texts,
        }

    def assumptions(self) -> tuple[str, ...]:
        """That what it was trained on is public."""
        if self.trained_texts == 0:
            return ("the vectors of the n-grams are public: they were not computed from protected texts",)
        name = "public texts" if self.trained_on is None else f"'{self.trained_on}'"
        return (
            f"the vectors of the n-grams were trained on {name} ({self.trained_texts} texts and their labels), which "
            "whoever trained them declared public: nothing is promised to those who are in there",
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if "dimension" in vars(self):
            raise AttributeError(f"an encoder is frozen, {name!r} cannot be set: make another one")
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.matrix, self.ngrams, self.trained_on, self.trained_texts)


def _rebuilt(matrix: Vectors, ngrams: NGrams, trained_on: str | None, trained_texts: int) -> EmbeddingBag:
    return EmbeddingBag(matrix, ngrams, trained_on=trained_on, trained_texts=trained_texts)
