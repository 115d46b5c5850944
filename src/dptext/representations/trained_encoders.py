"""Trained encoders in numpy alone: a bag of n-gram vectors, and a recurrent network with its decoder.

N-grams are hashed into buckets: there is no vocabulary, so no word is unknown.

Derivation: docs/mechanisms/hiding.md#representations-gru
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Floats, check_vectors
from dptext.representations.encoders import FrozenEncoder, Provenance, Vectors, finite
from dptext.text.tokens import Kind, fold, kind_of, pieces
from dptext.validation import check_int

Array = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

# -- n-grams -------------------------------------------------------------------------------------------------------

_CACHED_WORDS = 1 << 18
_LONGEST_CACHED = 64
_ROWS_AT_ONCE = 1 << 14


class _FoldedWords(dict[str, str]):
    """The folded form of every token met; the empty one for space and punctuation."""

    def __missing__(self, token: str) -> str:
        if len(self) >= _CACHED_WORDS:
            self.clear()
        word = "" if kind_of(token) in (Kind.SPACE, Kind.PUNCTUATION) else fold(token)
        if len(token) <= _LONGEST_CACHED:
            self[token] = word
        return word


_FOLDED = _FoldedWords()


def words_of(text: str) -> list[str]:
    """The folded words of a text, in order."""
    return [word for token in pieces(text) if (word := _FOLDED[token])]


@dataclass(frozen=True, eq=False)
class Buckets:
    """The buckets (or rows of words) of several texts, end to end."""

    values: Rows
    starts: Rows

    @classmethod
    def of(cls, texts: Sequence[Rows]) -> Buckets:
        """Concatenate the buckets of all texts."""
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        return cls(np.concatenate([np.empty(0, np.int64), *texts]), np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> Rows:
        """(n,) number of buckets of each text."""
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
    """Hashed n-grams of up to ``max_words`` words."""

    max_words: int = 2
    buckets: int = 1 << 18

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_words", check_int("max_words", self.max_words, minimum=1, maximum=5))
        object.__setattr__(self, "buckets", check_int("buckets", self.buckets, minimum=1, maximum=1 << 26))

    def of(self, texts: Iterable[str]) -> Buckets:
        """The buckets of each text; a text without words has none."""
        return self.hash_words(map(words_of, texts))

    def hash_words(self, texts: Iterable[Sequence[str | None]]) -> Buckets:
        """The buckets of tokenised texts; None is a masked word, and no n-gram contains it."""
        return Buckets.of([self._row(words) for words in texts])

    def _row(self, words: Sequence[str | None]) -> Rows:
        encoded = [None if word is None else word.encode("utf-8", "surrogatepass") for word in words]
        hashes: list[int] = []
        for count in range(1, self.max_words + 1):
            runs = zip(*(encoded[start:] for start in range(count)), strict=False)
            hashes += [zlib.crc32(b" ".join(run)) % self.buckets for run in runs if None not in run]
        return np.array(hashes, dtype=np.int64)

    def words_in(self, texts: Buckets) -> Rows:
        """(n,) word counts of hashed texts."""
        words = np.arange(int(texts.lengths.max(initial=0)) + 1)
        buckets = sum(np.maximum(words - count, 0) for count in range(self.max_words))  # by number of words
        counts: Rows = np.searchsorted(buckets, texts.lengths)
        return counts

    def masked(self, texts: Buckets, kept: npt.NDArray[np.bool_]) -> Buckets:
        """Hashed texts with masked words, as `hash_words` with None in their places; ``kept`` has all words."""
        words = self.words_in(texts)
        firsts = np.repeat(texts.starts[:-1], words)  # of each word: the start of its text
        place = np.arange(kept.size) - np.repeat(np.cumsum(words) - words, words)  # and its place there
        after = np.repeat(words, words) - place  # words of its text from it on
        visible = np.zeros(texts.values.size, dtype=bool)
        run = kept
        for count in range(1, self.max_words + 1):
            starting = after >= count
            visible[(firsts + place)[starting]] = run[starting]
            firsts = firsts + np.maximum(place + after - count + 1, 0)  # longer n-grams come after these
            run = run & np.concatenate([kept[count:], np.zeros(min(count, kept.size), dtype=bool)])
        return Buckets(texts.values[visible], np.concatenate([[0], np.cumsum(visible)])[texts.starts])


class EmbeddingBag(FrozenEncoder):
    """The mean of the vectors of a text's n-grams (Joulin, Grave, Bojanowski and Mikolov 2017)."""

    name = "bag of n-grams"
    is_batch_invariant = True

    def __init__(
        self, matrix: npt.ArrayLike, ngrams: NGrams, *, trained_on: str | None = None, trained_texts: int = 0
    ) -> None:
        rows = np.array(matrix, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[0] != ngrams.buckets or not rows.shape[1] or not np.isfinite(rows).all():
            raise ParameterError(f"matrix must be finite, of shape ({ngrams.buckets}, d), got the shape {rows.shape}")
        rows.flags.writeable = False
        self.matrix, self.ngrams = rows, ngrams
        self.trained_on, self.trained_texts = trained_on, trained_texts
        self.dimension = int(rows.shape[1])

    def _vectors(self, texts: list[str]) -> Vectors:
        return self.means(self.ngrams.of(texts))

    def means(self, buckets: Buckets) -> Vectors:
        """(n, d) float32 of hashed texts. *Not private.*"""
        lengths = buckets.lengths
        means = np.zeros((len(buckets), self.dimension), dtype=np.float64)
        for text in np.flatnonzero(lengths):  # one by one: no other text changes a bit of the sum
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
            "encoder_ngrams": self.ngrams.max_words,
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
            f"the vectors of the n-grams were trained on {name} ({self.trained_texts} texts and their labels), "
            "declared public: their authors are not protected",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        known = {"trained_on": self.trained_on, "trained_texts": self.trained_texts}
        return partial(EmbeddingBag, self.matrix, self.ngrams, **known), ()  # type: ignore[arg-type]


# -- recurrent networks --------------------------------------------------------------------------------------------

UNKNOWN_ROW, END = 0, 1
_RESERVED = ("<unk>", "<end>")
_TEXTS_AT_ONCE = 64
_LARGEST_DECODED = 1e6  # beyond, gates are shut anyway


@dataclass(frozen=True)
class WordTable:
    """A vocabulary of folded words, and the number of words of a text that are read."""

    words: tuple[str, ...]
    longest: int = 60

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, max_words: int, longest: int) -> WordTable:
        """The most frequent words, of those that occur in two texts or more."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update({*words_of(text)})
        common = [word for word, count in counts.items() if count >= 2 and _is_storable(word)]
        if not common:
            raise ParameterError("no word occurs in two of the texts: pass more texts")
        return cls(tuple(sorted(common, key=lambda word: (-counts[word], word))[:max_words]), longest)

    @property
    def size(self) -> int:
        return len(self.words) + len(_RESERVED)

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words, len(_RESERVED))}

    def rows(self, texts: Iterable[str]) -> Buckets:
        """The rows of the words of each text."""
        words = (words_of(text)[: self.longest] for text in texts)
        rows = ([self._row_of.get(word, UNKNOWN_ROW) for word in text] for text in words)
        return Buckets.of([np.array(row, dtype=np.int64) for row in rows])

    def text(self, rows: Sequence[int]) -> str:
        """The words of rows up to the end, separated by spaces."""
        end = rows.index(END) if END in rows else len(rows)
        return " ".join((*_RESERVED, *self.words)[row] for row in rows[:end])

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256("\n".join([str(self.longest), *self.words]).encode()).hexdigest()


def _is_storable(word: str) -> bool:
    return (
        word.split() == [word] and word not in _RESERVED and not any("\ud800" <= letter <= "\udfff" for letter in word)
    )


def padded(rows: Buckets) -> tuple[Rows, Rows]:
    """(n, longest) rows, filled up with `END`, and (n,) lengths."""
    lengths = rows.lengths
    filled = np.full((len(rows), max(int(lengths.max(initial=0)), 1)), END, dtype=np.int64)
    filled[np.arange(filled.shape[1]) < lengths[:, None]] = rows.values
    return filled, lengths


class GruEncoder(FrozenEncoder):
    """Text to vector by a trained recurrent network: the mean of all states, and a linear layer.

    The gates of ``input``, ``state`` and their biases are in the order r, u, n (of the candidate).
    """

    name = "GRU"
    is_batch_invariant = True
    _texts_at_once = _TEXTS_AT_ONCE

    def __init__(
        self, table: WordTable, arrays: Mapping[str, npt.ArrayLike], provenance: Provenance | None = None
    ) -> None:
        self.table, self.provenance = table, Provenance() if provenance is None else provenance
        self.arrays = _freeze(arrays)
        self.dimension = int(self.arrays["out_bias"].size)

    def _vectors(self, texts: list[str]) -> Vectors:
        # always as many rows: the shape of a product, and so its rounding, depends on no other text
        rows, lengths = padded(self.table.rows([*texts, *[""] * (_TEXTS_AT_ONCE - len(texts))]))
        arrays = self._doubles
        with np.errstate(all="ignore"):  # no text raises, regardless of the caller's numpy settings
            state = np.zeros((_TEXTS_AT_ONCE, arrays["state"].shape[0]))
            total = np.zeros_like(state)
            for place in range(rows.shape[1] if lengths.any() else 0):
                present = (place < lengths)[:, None]
                moved = _step(self._inputs[rows[:, place]], state, arrays["state"], arrays["state_bias"])
                state = np.where(present, moved, state)
                total += np.where(present, moved, 0.0)
            pooled = total / np.maximum(lengths, 1)[:, None]
            return finite((pooled @ arrays["out"] + arrays["out_bias"])[: len(texts)])

    @cached_property
    def _doubles(self) -> dict[str, Floats]:
        return {name: array.astype(np.float64) for name, array in self.arrays.items()}

    @cached_property
    def _inputs(self) -> Floats:
        """(V, 3u) contributions of each word to the gates."""
        return self._doubles["embedding"] @ self._doubles["input"] + self._doubles["input_bias"]

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256(f"{self.table.sha256} mean".encode())
        for name in sorted(self.arrays):
            digest.update(f"{name} {self.arrays[name].shape}".encode())
            digest.update(np.ascontiguousarray(self.arrays[name], dtype="<f4").tobytes())
        return digest.hexdigest()

    def parameters(self) -> dict[str, Parameter]:
        return {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_words": len(self.table.words),
            "encoder_longest": self.table.longest,
            "encoder_pooling": "mean",
            "encoder_sha256": self.sha256,
            **self.provenance.parameters(),
        }

    def assumptions(self) -> tuple[str, ...]:
        return self.provenance.assumptions()

    def exposed(self) -> tuple[str, ...]:
        return self.provenance.exposed()

    def __reduce__(self) -> tuple[Any, ...]:
        return GruEncoder, (self.table, dict(self.arrays), self.provenance)


class GruDecoder:
    """Vector to text, word by word: the likeliest next word each time."""

    def __init__(self, table: WordTable, arrays: Mapping[str, npt.ArrayLike]) -> None:
        self.table = table
        self.arrays = _freeze(arrays)
        self.dimension = int(self.arrays["begin"].shape[0])

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        values = np.nan_to_num(check_vectors(vectors, self.dimension))
        values = np.clip(values, -_LARGEST_DECODED, _LARGEST_DECODED)
        arrays = {name: array.astype(np.float64) for name, array in self.arrays.items()}
        width = arrays["embedding"].shape[1]
        inputs = arrays["embedding"] @ arrays["input"][:width]
        texts: list[str] = []
        for start in range(0, len(values), _TEXTS_AT_ONCE):
            z = values[start : start + _TEXTS_AT_ONCE]
            steady = z @ arrays["input"][width:] + arrays["input_bias"]
            state = np.tanh(z @ arrays["begin"] + arrays["begin_bias"])
            words = np.full(len(z), END)
            rows = np.empty((len(z), self.table.longest), dtype=np.int64)
            for place in range(self.table.longest):
                state = _step(inputs[words] + steady, state, arrays["state"], arrays["state_bias"])
                queries = state @ arrays["project"] + arrays["project_bias"]
                words = (queries @ arrays["embedding"].T + arrays["words_bias"]).argmax(axis=1)
                rows[:, place] = words
            texts += [self.table.text(row) for row in rows.tolist()]
        return texts

    def __reduce__(self) -> tuple[Any, ...]:
        return GruDecoder, (self.table, dict(self.arrays))


def _step(inputs: Floats, state: Floats, weights: Floats, bias: Floats) -> Floats:
    width = state.shape[1]
    of_state = state @ weights + bias
    gates = 0.5 * (1.0 + np.tanh(0.5 * (inputs[:, : 2 * width] + of_state[:, : 2 * width])))  # eq. (gates)
    candidate = np.tanh(inputs[:, 2 * width :] + gates[:, :width] * of_state[:, 2 * width :])  # eq. (candidate)
    kept = gates[:, width:]
    moved: Floats = (1 - kept) * candidate + kept * state  # eq. (state)
    return moved


def _freeze(arrays: Mapping[str, npt.ArrayLike]) -> Mapping[str, Array]:
    """Read-only copies."""
    frozen = {name: np.array(values, dtype=np.float32) for name, values in arrays.items()}
    for array in frozen.values():
        array.flags.writeable = False
    return MappingProxyType(frozen)
