"""A text as the mean of trained vectors of its n-grams: the device's part of a split model, numpy alone.

N-grams are hashed into buckets: there is no vocabulary, so nothing is unknown.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import FrozenEncoder, Vectors, finite
from dptext.text.tokens import Kind, fold, kind_of, pieces

_REMEMBERED = 1 << 18
_LONGEST_REMEMBERED = 64
_NO_WORDS = (Kind.SPACE, Kind.PUNCTUATION)

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Buckets:
    """The buckets of several texts, end to end."""

    values: Rows
    starts: Rows

    @classmethod
    def of(cls, texts: Sequence[Rows]) -> Buckets:
        """Those of each text, put end to end."""
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        return cls(np.concatenate([np.empty(0, np.int64), *texts]), np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> Rows:
        """(n,) how many each text has."""
        lengths: Rows = np.diff(self.starts)
        return lengths

    def take(self, texts: npt.NDArray[np.intp]) -> Buckets:
        lengths = self.lengths[texts]
        ends = np.cumsum(lengths)
        # place of each value in its text, moved to where the text starts here
        places = np.arange(lengths.sum()) + np.repeat(self.starts[:-1][texts] - (ends - lengths), lengths)
        return Buckets(self.values[places], np.concatenate([[0], ends]))


@dataclass(frozen=True, kw_only=True)
class NGrams:
    """How a text is cut and hashed."""

    most: int = 2
    buckets: int = 1 << 18

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", whole("most", self.most, least=1, most=5))
        object.__setattr__(self, "buckets", whole("buckets", self.buckets, least=1, most=1 << 26))

    def words_of(self, text: str) -> list[str]:
        """What counts as a word of a text, in its order, folded."""
        return [word for piece in pieces(text) if (word := _WORDS[piece])]

    def of(self, texts: Iterable[str]) -> Buckets:
        """The buckets of each text, however long it is: a text without words has none."""
        return self.of_words(map(self.words_of, texts))

    def of_words(self, texts: Iterable[Sequence[str | None]]) -> Buckets:
        """The same for texts that are cut already."""
        return Buckets.of([self._row(words) for words in texts])

    def words_in(self, texts: Buckets) -> Rows:
        """(n,) how many words each hashed text has."""
        longest = int(texts.lengths.max(initial=0))  # of so many words at most
        words = np.arange(longest + 1)
        counts = sum(np.maximum(words - count, 0) for count in range(self.most))  # n-grams of a text of so many words
        found: Rows = np.searchsorted(counts, texts.lengths)
        return found

    def masked(self, texts: Buckets, kept: npt.NDArray[np.bool_]) -> Buckets:
        """Hashed texts of which some words are masked: what `of_words` gives with None in their places."""
        words = self.words_in(texts)
        if kept.shape != (int(words.sum()),):
            raise ParameterError(f"kept must say of each of {int(words.sum())} words whether it stays")
        firsts = np.repeat(texts.starts[:-1], words)  # of each word: where its text starts
        place = np.arange(kept.size) - np.repeat(np.cumsum(words) - words, words)  # and its place there
        after = np.repeat(words, words) - place  # words of its text from it on
        shown = np.zeros(texts.values.size, dtype=bool)
        run = kept
        for count in range(1, self.most + 1):
            starting = after >= count
            shown[(firsts + place)[starting]] = run[starting]
            firsts = firsts + np.maximum(place + after - count + 1, 0)  # the runs of one word more come after these
            run = run & np.concatenate([kept[count:], np.zeros(min(count, kept.size), dtype=bool)])
        starts = np.concatenate([[0], np.cumsum(shown)])[texts.starts]
        return Buckets(texts.values[shown], starts)

    def _row(self, words: Sequence[str | None]) -> Rows:
        buckets = self.buckets
        encoded = [None if word is None else word.encode("utf-8", "surrogatepass") for word in words]
        hashes = [zlib.crc32(word) % buckets for word in encoded if word is not None]
        for count in range(2, self.most + 1):
            runs = zip(*(encoded[start:] for start in range(count)), strict=False)
            hashes += [zlib.crc32(b" ".join(run)) % buckets for run in runs if None not in run]
        return np.array(hashes, dtype=np.int64)


class _Words(dict[str, str]):
    """The folded form of every piece of text met; the empty one for what does not count."""

    def __missing__(self, piece: str) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        word = "" if kind_of(piece) in _NO_WORDS else fold(piece)
        if len(piece) <= _LONGEST_REMEMBERED:
            self[piece] = word
        return word


_WORDS = _Words()


_ROWS_AT_ONCE = 1 << 14


class EmbeddingBag(FrozenEncoder):
    """The mean of the vectors of a text's n-grams (Joulin, Grave, Bojanowski and Mikolov 2017)."""

    name = "bag of n-grams"
    is_batch_invariant = True

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
        trained_texts = whole("trained_texts", trained_texts, least=0)
        rows.flags.writeable = False
        self.matrix = rows
        self.trained_on, self.trained_texts = trained_on, trained_texts
        self.dimension = int(rows.shape[1])

    def _vectors(self, texts: list[str]) -> Vectors:
        return self.means(self.ngrams.of(texts))

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
        return hashlib.sha256(np.ascontiguousarray(self.matrix, dtype="<f4").tobytes()).hexdigest()

    def parameters(self) -> dict[str, Parameter]:
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
        if self.trained_texts == 0:
            return ("the vectors of the n-grams are public: they were not computed from protected texts",)
        name = "public texts" if self.trained_on is None else f"'{self.trained_on}'"
        return (
            f"the vectors of the n-grams were trained on {name} ({self.trained_texts} texts and their labels), which "
            "whoever trained them declared public: nothing is promised to those who are in there",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        known = {"trained_on": self.trained_on, "trained_texts": self.trained_texts}
        return partial(EmbeddingBag, self.matrix, self.ngrams, **known), ()  # type: ignore[arg-type]
