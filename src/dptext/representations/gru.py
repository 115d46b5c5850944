"""A recurrent encoder of texts, and the decoder that writes a text from a vector: trained elsewhere, run with numpy.

One layer of gated recurrent units (Cho et al. 2014, in the form that torch has): of a word's vector e and the state s,

    r = sigmoid(W_r e + b_r + U_r s + c_r),   u = sigmoid(W_u e + b_u + U_u s + c_u)                     (gates)
    n = tanh(W_n e + b_n + r (U_n s + c_n))                                                              (candidate)
    s' = (1 - u) n + u s                                                                                 (state)

A text's vector is a linear map of its last state, or of the mean of its states; a text without words has the state 0.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.files.tensors import read_tensors, tensor_bytes
from dptext.own_files import replacing
from dptext.privacy.statement import Parameter
from dptext.representations.domains import Floats, checked_vectors
from dptext.representations.encoders import Progress, Vectors, checked_texts, finite, in_parts
from dptext.representations.known_words import END, WordTable, padded
from dptext.representations.provenance import Provenance

__all__ = ["POOLINGS", "GruDecoder", "GruEncoder"]

POOLINGS = ("last", "mean")
_DECODER = "dptext GRU decoder 1"
_TEXTS_AT_ONCE = 64
_WITHIN = 1e6  # of a vector that is decoded: beyond, gates are shut anyway

Array = npt.NDArray[np.float32]


class GruEncoder:
    """Text to vector by a trained recurrent network. Frozen.

    Args:
        table: the words.
        arrays: ``embedding`` (V, e), ``input`` (e, 3u), ``input_bias`` (3u,), ``state`` (u, 3u), ``state_bias`` (3u,)
            with the gates in the order r, u, n, ``out`` (u, d), ``out_bias`` (d,).
        pooling: ``"last"`` or ``"mean"``.
        provenance: what it was trained on, and what for.

    Raises:
        ParameterError: arrays that do not fit together, or are not finite.
    """

    name = "GRU"

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
        self.arrays = _checked(arrays, table.size, _encoder_shapes)
        self.dimension = int(self.arrays["out_bias"].size)

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """(n, d) float32, one vector a text. *Not private.*"""
        given = checked_texts(texts)
        vectors = np.empty((len(given), self.dimension), dtype=np.float32)
        for block in in_parts(given, _TEXTS_AT_ONCE, progress):
            with np.errstate(all="ignore"):  # no text raises, whatever a caller told numpy to raise at
                vectors[block] = self._vectors(given[block])
        return vectors

    def _vectors(self, texts: list[str]) -> Vectors:
        # always as many rows, so that the shape of no product, and so no rounding, hangs on other texts
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
        """Digest of words and arrays."""
        return _digest(self.table, self.arrays, self.pooling)

    def parameters(self) -> dict[str, Parameter]:
        """Its words, its arrays, and what it was trained on."""
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
        """Those of the training."""
        return self.provenance.assumptions()

    def exposed(self) -> tuple[str, ...]:
        """What the training shows of texts that are not public."""
        return self.provenance.exposed()

    def __setattr__(self, name: str, value: Any) -> None:
        if "dimension" in vars(self):
            raise AttributeError(f"an encoder is frozen, {name!r} cannot be set: make another one")
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.table, dict(self.arrays), self.pooling, self.provenance)


class GruDecoder:
    """Vector to text, word by word: the likeliest next word each time. Frozen.

    What it writes from a vector that was released is post-processing: the promise of the vector is that of the text.

    Args:
        table: the words.
        arrays: ``embedding`` (V, e), ``input`` (e + d, 3u), ``input_bias``, ``state`` (u, 3u), ``state_bias``,
            ``begin`` (d, u), ``begin_bias`` (u,), ``project`` (u, e), ``project_bias`` (e,), ``words_bias`` (V,).

    Raises:
        ParameterError: arrays that do not fit together, or are not finite.
    """

    def __init__(self, table: WordTable, arrays: Mapping[str, npt.ArrayLike]) -> None:
        self.table = table
        self.arrays = _checked(arrays, table.size, _decoder_shapes)
        self.dimension = int(self.arrays["begin"].shape[0])

    def decode(self, vectors: npt.ArrayLike) -> list[str]:
        """(n, d) vectors to n texts: words in lower case with spaces in between, ``<unk>`` for a word it does not know.

        Raises:
            ParameterError: another shape.
        """
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as one file, whole or not at all, for `load` where vectors arrive.

        Raises:
            StorageError: it cannot be written.
        """
        told = {"format": _DECODER, "longest": str(self.table.longest)}
        arrays: dict[str, npt.NDArray[Any]] = dict(self.arrays)
        arrays["words"] = np.frombuffer("\n".join(self.table.words).encode(), dtype=np.uint8)
        with replacing(path) as file:
            file.write(tensor_bytes(arrays, told))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GruDecoder:
        """What `save` wrote.

        Raises:
            StorageError: it cannot be read.
            DataError: it is damaged, or something else.
        """
        name = Path(path).name
        arrays, told = read_tensors(path, source=name)
        try:
            if told["format"] == _DECODER:
                words = arrays.pop("words").tobytes().decode().split("\n")
                return cls(WordTable(tuple(words), int(told["longest"])), arrays)
        except (KeyError, ValueError):  # a ParameterError is one, too
            pass
        raise DataError(f"{name}: expected what GruDecoder.save writes, got something else; get it again")

    def __reduce__(self) -> tuple[Any, ...]:
        return GruDecoder, (self.table, dict(self.arrays))


def _step(inputs: Floats, state: Floats, weights: Floats, bias: Floats) -> Floats:
    """The next state of each row, from what its word adds to the gates."""
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


def _encoder_shapes(sizes: Mapping[str, tuple[int, ...]], words: int) -> dict[str, tuple[int, ...]]:
    width, units, dimension = sizes["embedding"][-1], sizes["state"][0], sizes["out"][-1]
    return {
        "embedding": (words, width),
        "input": (width, 3 * units),
        "input_bias": (3 * units,),
        "state": (units, 3 * units),
        "state_bias": (3 * units,),
        "out": (units, dimension),
        "out_bias": (dimension,),
    }


def _decoder_shapes(sizes: Mapping[str, tuple[int, ...]], words: int) -> dict[str, tuple[int, ...]]:
    width, units, dimension = sizes["embedding"][-1], sizes["state"][0], sizes["begin"][0]
    return {
        "embedding": (words, width),
        "input": (width + dimension, 3 * units),
        "input_bias": (3 * units,),
        "state": (units, 3 * units),
        "state_bias": (3 * units,),
        "begin": (dimension, units),
        "begin_bias": (units,),
        "project": (units, width),
        "project_bias": (width,),
        "words_bias": (words,),
    }


def _checked(arrays: Mapping[str, npt.ArrayLike], words: int, shapes: Any) -> Mapping[str, Array]:
    frozen: dict[str, Array] = {}
    for name, each in arrays.items():
        frozen[name] = np.array(each, dtype=np.float32)
        frozen[name].flags.writeable = False
    sizes = {name: each.shape for name, each in frozen.items()}
    try:
        fits = sizes == shapes(sizes, words) and all(each.size for each in frozen.values())
    except (KeyError, IndexError):
        fits = False
    if not fits or not all(np.isfinite(each).all() for each in frozen.values()):
        raise ParameterError("the arrays of a recurrent network must be finite and fit together, and its words")
    return MappingProxyType(frozen)


def _digest(table: WordTable, arrays: Mapping[str, Array], pooling: str) -> str:
    digest = hashlib.sha256(f"{table.sha256} {pooling}".encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name], dtype="<f4").tobytes())
    return digest.hexdigest()


def _rebuilt(table: WordTable, arrays: dict[str, Array], pooling: str, provenance: Provenance) -> GruEncoder:
    return GruEncoder(table, arrays, pooling=pooling, provenance=provenance)
