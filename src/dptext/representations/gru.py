"""A recurrent encoder of texts, and the decoder that writes a text from a vector: trained elsewhere, run with numpy.

Derivation: docs/mechanisms/hiding.md#representations-gru
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Floats, checked_vectors
from dptext.representations.embedding_bag import Buckets, NGrams
from dptext.representations.encoders import FrozenEncoder, Provenance, Vectors, finite
from dptext.text.tokens import fold

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
        object.__setattr__(self, "longest", whole("longest", self.longest, least=1))
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
    def of_texts(cls, texts: Iterable[str], *, most: int, longest: int) -> WordTable:
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
    def of_words(cls, words: Sequence[str], *, longest: int) -> WordTable:
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
        return Buckets.of([np.array(each, dtype=np.int64) for each in rows])

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
        told = "\n".join([str(self.longest), *self.words])
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return WordTable, (self.words, self.longest)


def _can_stand(word: str) -> bool:
    return word.split() == [word] and word not in _RESERVED and not any("\ud800" <= each <= "\udfff" for each in word)


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
        with np.errstate(all="ignore"):  # no text raises, whatever a caller told numpy to raise at
            return self._computed(texts)

    def _computed(self, texts: list[str]) -> Vectors:
        # always as many rows, so that the shape of a product, and so its rounding, depends on no other text
        rows, lengths = padded(self.table.rows([*texts, *[""] * (_TEXTS_AT_ONCE - len(texts))]))
        arrays = self._doubles
        state = np.zeros((_TEXTS_AT_ONCE, arrays["state"].shape[0]))
        total = np.zeros_like(state)
        for place in range(rows.shape[1] if lengths.any() else 0):
            there = (place < lengths)[:, None]
            moved = _step(self._inputs[rows[:, place]], state, arrays["state"], arrays["state_bias"])
            state = np.where(there, moved, state)
            total += np.where(there, moved, 0.0)
        pooled = state if self.pooling == "last" else total / np.maximum(lengths, 1)[:, None]
        return finite((pooled @ arrays["out"] + arrays["out_bias"])[: len(texts)])

    @cached_property
    def _doubles(self) -> dict[str, Floats]:
        return {name: each.astype(np.float64) for name, each in self.arrays.items()}

    @cached_property
    def _inputs(self) -> Floats:
        """(V, 3u): what each word adds to the gates, whatever the state."""
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
        given = np.clip(np.nan_to_num(checked_vectors(vectors, self.dimension)), -_WITHIN, _WITHIN)
        arrays = {name: each.astype(np.float64) for name, each in self.arrays.items()}
        width = arrays["embedding"].shape[1]
        inputs = arrays["embedding"] @ arrays["input"][:width]
        texts: list[str] = []
        for start in range(0, len(given), _TEXTS_AT_ONCE):
            z = given[start : start + _TEXTS_AT_ONCE]
            steady = z @ arrays["input"][width:] + arrays["input_bias"]
            state = np.tanh(z @ arrays["begin"] + arrays["begin_bias"])
            words = np.full(len(z), END)
            rows = np.empty((len(z), self.table.longest), dtype=np.int64)
            for place in range(self.table.longest):
                state = _step(inputs[words] + steady, state, arrays["state"], arrays["state_bias"])
                queries = state @ arrays["project"] + arrays["project_bias"]
                words = (queries @ arrays["embedding"].T + arrays["words_bias"]).argmax(axis=1)
                rows[:, place] = words
            texts += [self.table.text(each) for each in rows.tolist()]
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
    for name, each in arrays.items():
        array = frozen[name] = np.array(each, dtype=np.float32)
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
