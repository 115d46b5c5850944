"""A text as the mean of trained vectors of its n-grams: the device's part of a split model, numpy alone.

N-grams are hashed into buckets: there is no vocabulary, so nothing is unknown.

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
        """Concatenate the buckets of all texts."""
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
        object.__setattr__(self, "most", check_int("most", self.most, minimum=1, maximum=5))
        object.__setattr__(self, "buckets", check_int("buckets", self.buckets, minimum=1, maximum=1 << 26))

    def words_of(self, text: str) -> list[str]:
        """What counts as a word of a text, in its order, folded."""
        return [word for piece in pieces(text) if (word := _WORDS[piece])]

    def of(self, texts: Iterable[str]) -> Buckets:
        """The buckets of each text, however long it is: a text without words has none."""
        return self.hash_words(map(self.words_of, texts))

    def hash_words(self, texts: Iterable[Sequence[str | None]]) -> Buckets:
        """The same for texts that are cut already."""
        return Buckets.of([self._row(words) for words in texts])

    def words_in(self, texts: Buckets) -> Rows:
        """Return (n,) word counts of the hashed texts."""
        longest = int(texts.lengths.max(initial=0))  # largest possible number of words
        words = np.arange(longest + 1)
        counts = sum(np.maximum(words - count, 0) for count in range(self.most))  # n-grams by number of words
        result: Rows = np.searchsorted(counts, texts.lengths)
        return result

    def masked(self, texts: Buckets, kept: npt.NDArray[np.bool_]) -> Buckets:
        """Hashed texts of which some words are masked: what `hash_words` gives with None in their places."""
        words = self.words_in(texts)
        if kept.shape != (int(words.sum()),):
            raise ParameterError(f"kept must say of each of {int(words.sum())} words whether it stays")
        firsts = np.repeat(texts.starts[:-1], words)  # of each word: where its text starts
        place = np.arange(kept.size) - np.repeat(np.cumsum(words) - words, words)  # and its place there
        after = np.repeat(words, words) - place  # words of its text from it on
        visible = np.zeros(texts.values.size, dtype=bool)
        run = kept
        for count in range(1, self.most + 1):
            starting = after >= count
            visible[(firsts + place)[starting]] = run[starting]
            firsts = firsts + np.maximum(place + after - count + 1, 0)  # the runs of one word more come after these
            run = run & np.concatenate([kept[count:], np.zeros(min(count, kept.size), dtype=bool)])
        starts = np.concatenate([[0], np.cumsum(visible)])[texts.starts]
        return Buckets(texts.values[visible], starts)

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
        trained_texts = check_int("trained_texts", trained_texts, minimum=0)
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
            f"the vectors of the n-grams were trained on {name} ({self.trained_texts} texts and their labels), "
            "declared public: their authors are not protected",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        known = {"trained_on": self.trained_on, "trained_texts": self.trained_texts}
        return partial(EmbeddingBag, self.matrix, self.ngrams, **known), ()  # type: ignore[arg-type]


UNKNOWN_ROW, END = 0, 1
_RESERVED = ("<unk>", "<end>")
_FEWEST_TEXTS = 2
_CUT = NGrams(most=1)


@dataclass(frozen=True, eq=False)
class WordTable:
    """Words by row."""

    words: tuple[str, ...]
    longest: int = 60

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "longest", check_int("longest", self.longest, minimum=1))
        if any(not isinstance(word, str) or not _can_stand(word) for word in self.words):
            raise ParameterError(
                f"the words of a table must be text without white space, and none of {' and '.join(_RESERVED)}, which "
                "have rows of their own"
            )
        distinct = {*self.words}
        if len(distinct) != len(self.words) or any(fold(word) != word for word in self.words):
            raise ParameterError("the words of a table must be distinct, and folded (lower case)")
        if not self.words:
            raise ParameterError("a table needs words, got none")

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, most: int, longest: int) -> WordTable:
        """The most frequent words of texts, of those that two texts or more have."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update({*_CUT.words_of(text)})
        common = [word for word, count in counts.items() if count >= _FEWEST_TEXTS and _can_stand(word)]
        common = sorted(common, key=lambda word: (-counts[word], word))[:most]
        if not common:
            raise ParameterError("no word stands in two of the texts: give more texts, or words=[...]")
        return cls(tuple(common), longest)

    @classmethod
    def from_words(cls, words: Sequence[str], *, longest: int) -> WordTable:
        """Words that are public, in the order given; those that come out alike when folded count once."""
        folded = dict.fromkeys(fold(word) for word in words)
        return cls(tuple(word for word in folded if _can_stand(word)), longest)

    @property
    def size(self) -> int:
        return len(self.words) + len(_RESERVED)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words, len(_RESERVED))}

    def rows(self, texts: Iterable[str]) -> Buckets:
        """The rows of the words of each text."""
        places, longest = self._places, self.longest
        cut = (_CUT.words_of(text)[:longest] for text in texts)
        rows = ([places.get(word, UNKNOWN_ROW) for word in words] for words in cut)
        return Buckets.of([np.array(row, dtype=np.int64) for row in rows])

    def text(self, rows: Iterable[int]) -> str:
        """Words with a space in between, up to the end."""
        words = []
        for row in rows:
            if row == END:
                break
            words.append(_RESERVED[0] if row == UNKNOWN_ROW else self.words[row - len(_RESERVED)])
        return " ".join(words)

    @cached_property
    def sha256(self) -> str:
        content = "\n".join([str(self.longest), *self.words])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return WordTable, (self.words, self.longest)


def _can_stand(word: str) -> bool:
    return word.split() == [word] and word not in _RESERVED and not any("\ud800" <= entry <= "\udfff" for entry in word)


def padded(rows: Buckets) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
    """(n, longest) rows with `END` after each text's own, and (n,) lengths."""
    lengths = rows.lengths
    filled = np.full((len(rows), max(int(lengths.max(initial=0)), 1)), END, dtype=np.int64)
    inside = np.arange(filled.shape[1]) < lengths[:, None]
    filled[inside] = rows.values
    return filled, lengths


POOLINGS = ("last", "mean")
_GATES = {"input_bias": "g", "state": "ug", "state_bias": "g"}
_ENCODER = _GATES | {"embedding": "ve", "input": "eg", "out": "ud", "out_bias": "d"}
_DECODER = _GATES | {
    "embedding": "ve",
    "input": "ig",
    "begin": "du",
    "begin_bias": "u",
    "project": "ue",
    "project_bias": "e",
    "words_bias": "v",
}
"""The axes of each array: v words, e numbers of a word's vector, u of the state, g = 3u gates in the order r, u, n (of
the candidate), d of a text's vector, i = e + d."""
_TEXTS_AT_ONCE = 64
_WITHIN = 1e6  # of a vector that is decoded: beyond, gates are shut anyway

Array = npt.NDArray[np.float32]


class GruEncoder(FrozenEncoder):
    """Text to vector by a trained recurrent network."""

    name = "GRU"
    is_batch_invariant = True
    _texts_at_once = _TEXTS_AT_ONCE

    def __init__(
        self,
        table: WordTable,
        arrays: Mapping[str, npt.ArrayLike],
        *,
        pooling: str = "mean",
        provenance: Provenance | None = None,
    ) -> None:
        if not isinstance(table, WordTable) or pooling not in POOLINGS:
            raise ParameterError(f"expected a WordTable, and pooling as one of {', '.join(map(repr, POOLINGS))}")
        self.table, self.pooling = table, pooling
        self.provenance = Provenance() if provenance is None else provenance
        self.arrays = _checked(arrays, table, _ENCODER)
        self.dimension = int(self.arrays["out_bias"].size)

    def _vectors(self, texts: list[str]) -> Vectors:
        with np.errstate(all="ignore"):  # no text raises, regardless of the caller's numpy settings
            return self._computed(texts)

    def _computed(self, texts: list[str]) -> Vectors:
        # always as many rows, so that the shape of a product, and so its rounding, depends on no other text
        rows, lengths = padded(self.table.rows([*texts, *[""] * (_TEXTS_AT_ONCE - len(texts))]))
        arrays = self._doubles
        state = np.zeros((_TEXTS_AT_ONCE, arrays["state"].shape[0]))
        total = np.zeros_like(state)
        for place in range(rows.shape[1] if lengths.any() else 0):
            present = (place < lengths)[:, None]
            moved = _step(self._inputs[rows[:, place]], state, arrays["state"], arrays["state_bias"])
            state = np.where(present, moved, state)
            total += np.where(present, moved, 0.0)
        pooled = state if self.pooling == "last" else total / np.maximum(lengths, 1)[:, None]
        return finite((pooled @ arrays["out"] + arrays["out_bias"])[: len(texts)])

    @cached_property
    def _doubles(self) -> dict[str, Floats]:
        return {name: entry.astype(np.float64) for name, entry in self.arrays.items()}

    @cached_property
    def _inputs(self) -> Floats:
        """(V, 3u) contributions of each word to the gates."""
        return self._doubles["embedding"] @ self._doubles["input"] + self._doubles["input_bias"]

    @cached_property
    def sha256(self) -> str:
        return _digest(self.table, self.arrays, self.pooling)

    def parameters(self) -> dict[str, Parameter]:
        return {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_words": len(self.table.words),
            "encoder_longest": self.table.longest,
            "encoder_pooling": self.pooling,
            "encoder_sha256": self.sha256,
            **self.provenance.parameters(),
        }

    def assumptions(self) -> tuple[str, ...]:
        return self.provenance.assumptions()

    def exposed(self) -> tuple[str, ...]:
        return self.provenance.exposed()

    def __reduce__(self) -> tuple[Any, ...]:
        known = {"pooling": self.pooling, "provenance": self.provenance}
        return partial(GruEncoder, self.table, dict(self.arrays), **known), ()  # type: ignore[arg-type]


class GruDecoder:
    """Vector to text, word by word: the likeliest next word each time."""

    def __init__(self, table: WordTable, arrays: Mapping[str, npt.ArrayLike]) -> None:
        self.table = table
        self.arrays = _checked(arrays, table, _DECODER)
        self.dimension = int(self.arrays["begin"].shape[0])

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        values = np.clip(np.nan_to_num(check_vectors(vectors, self.dimension)), -_WITHIN, _WITHIN)
        arrays = {name: entry.astype(np.float64) for name, entry in self.arrays.items()}
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
    gates = _sigmoid(inputs[:, : 2 * width] + of_state[:, : 2 * width])  # eq. (gates)
    candidate = np.tanh(inputs[:, 2 * width :] + gates[:, :width] * of_state[:, 2 * width :])  # eq. (candidate)
    kept = gates[:, width:]
    moved: Floats = (1 - kept) * candidate + kept * state  # eq. (state)
    return moved


def _sigmoid(values: Floats) -> Floats:
    half: Floats = 0.5 * (1.0 + np.tanh(0.5 * values))  # no exponential overflows
    return half


def _checked(arrays: Mapping[str, npt.ArrayLike], table: WordTable, axes: Mapping[str, str]) -> Mapping[str, Array]:
    """Copies that cannot be changed, if each array has its axes, and an axis the same length wherever it stands."""
    frozen: dict[str, Array] = {}
    lengths = {"v": table.size}
    fits = arrays.keys() == axes.keys()
    for name, entry in arrays.items():
        array = frozen[name] = np.array(entry, dtype=np.float32)
        array.flags.writeable = False
        fits = fits and len(axes[name]) == array.ndim and bool(array.size) and bool(np.isfinite(array).all())
        for axis, size in zip(axes[name], array.shape, strict=True) if fits else ():
            fits = fits and lengths.setdefault(axis, size) == size
    fits = fits and lengths["g"] == 3 * lengths["u"] and lengths.get("i", 0) in (0, lengths["e"] + lengths["d"])
    if not fits:
        raise ParameterError("the arrays of a recurrent network must be finite and fit together, and its words")
    return MappingProxyType(frozen)


def _digest(table: WordTable, arrays: Mapping[str, Array], pooling: str) -> str:
    digest = hashlib.sha256(f"{table.sha256} {pooling}".encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name], dtype="<f4").tobytes())
    return digest.hexdigest()
