"""Vectors that are in memory already: pairs of words and matrix, mappings, gensim's objects (without gensim)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.text.vocabulary import UNKNOWN
from dptext.vectors.selection import Floats, Rows, RowStream, select_words
from dptext.vectors.word_vectors import WordVectors

__all__ = ["KeyedVectors", "ModelWithVectors", "words_of_mapping", "words_of_pair"]

_BLOCK = 4096


class KeyedVectors(Protocol):
    """What gensim's class of that name offers: row i of ``vectors`` belongs to ``index_to_key[i]``."""

    @property
    def index_to_key(self) -> Sequence[str]:
        """The words, most frequent first."""

    @property
    def vectors(self) -> npt.ArrayLike:
        """(V, d)."""


class ModelWithVectors(Protocol):
    """What gensim's Word2Vec and FastText offer."""

    @property
    def wv(self) -> KeyedVectors:
        """The trained vectors."""


def words_of_pair(words: Sequence[str], matrix: npt.ArrayLike, *, limit: int | None, source: str) -> WordVectors:
    """The words among (V,) entries and the rows of a (V, d) matrix.

    Raises:
        DataError: unequal lengths, something else than strings and numbers, and as `select_words`; the row (counted
            from 0) is named.
    """
    array = _numbers(matrix)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"expected a matrix with two axes (words, dimensions), got shape {array.shape}")
    if isinstance(words, str) or not hasattr(words, "__len__"):
        raise ParameterError(f"expected a sequence of words, got {type(words).__name__}")
    if len(words) != len(array):
        raise DataError(f"expected one vector a word, got {len(words)} words and {len(array)} vectors")
    other = next((row for row, word in enumerate(words) if not isinstance(word, str)), None)
    if other is not None:
        raise DataError(f"expected strings as words, row {other} holds another type")
    unknown = next((_float32(array[row]) for row, word in enumerate(words) if word == UNKNOWN), None)
    return select_words(_rows(words, array), place="the matrix, row", source=source, limit=limit, unknown=unknown)


def words_of_mapping(mapping: Mapping[str, npt.ArrayLike], *, limit: int | None, source: str) -> WordVectors:
    """The words among the keys of a mapping from words to vectors, in its order."""
    rows = [_numbers(row) for row in mapping.values()]
    if not rows:
        raise DataError("expected a mapping from words to vectors, got an empty one")
    for number, row in enumerate(rows):
        if row.shape != rows[0].shape or row.ndim != 1:
            raise DataError(
                f"row {number}: expected one vector, as long as that of row 0, got shape {row.shape} "
                f"beside {rows[0].shape}"
            )
    return words_of_pair(list(mapping), np.stack(rows), limit=limit, source=source)


def _numbers(values: npt.ArrayLike) -> npt.NDArray[Any]:
    array = None
    with suppress(ValueError, TypeError, OverflowError):  # such an error may hold a value: none must be chained
        array = np.asarray(values)
    if array is None or (array.dtype.kind not in "fiu" and array.size):
        raise DataError("expected a matrix of numbers with rows of equal length, got something else")
    return array


def _float32(values: npt.NDArray[Any]) -> Floats:
    with np.errstate(over="ignore"):  # becomes infinity, which is refused with its row
        return values.astype(np.float32)


def _rows(words: Sequence[str], matrix: npt.NDArray[Any]) -> RowStream:
    for start in range(0, len(words), _BLOCK):
        stop = min(start + _BLOCK, len(words))
        yield Rows(range(start, stop), words[start:stop], _float32(matrix[start:stop]))
