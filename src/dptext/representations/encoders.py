"""Text to vector, before any noise: what every encoder offers, what it was trained on, and a caller's function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.io.documents import Document, check_one_column, is_missing
from dptext.privacy.statement import Parameter
from dptext.showing import Facts, Showing

__all__ = [
    "CallableEncoder",
    "Progress",
    "Provenance",
    "TextEncoder",
    "Vectors",
    "check_trained_on_public",
    "checked_texts",
    "encode_each",
    "exposed_by",
]


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Of a training against adversaries."""

    trained_on: str | None = None
    texts: int = 0
    public: bool = True
    hidden: str = ""

    def __post_init__(self) -> None:
        if self.trained_on is not None and not isinstance(self.trained_on, str):
            raise ParameterError("public_name must be text, or None")
        whole("the number of texts", self.texts, least=0)
        if not isinstance(self.public, bool) or not isinstance(self.hidden, str):
            raise ParameterError("public must be true or false, hidden text")

    def parameters(self) -> dict[str, Parameter]:
        """What identifies the training."""
        return {
            "encoder_trained_on": self.trained_on,
            "encoder_trained_texts": self.texts,
            "encoder_trained_on_public": self.public,
            "encoder_hides": self.hidden,
        }

    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted about the training, and what it does not promise."""
        name = "texts" if self.trained_on is None else f"'{self.trained_on}'"
        counted = f"{name} ({self.texts} texts, and their labels, if any)" if self.texts else name
        promised = (
            f"the promise, if there is one, is that of the noise; that {self.hidden or 'an attribute'} is hidden "
            "beyond it was trained for, not proved"
        )
        if self.texts == 0 and self.public:
            return ("the trained encoder is public: it was not computed from protected texts", promised)
        if self.public:
            return (
                f"the encoder was trained on {counted}, which whoever trained it declared public: nothing is promised "
                "to those who are in there",
                promised,
            )
        return (
            f"the encoder was trained on {counted} without protection: the promise holds at the release only, for a "
            "trained encoder that stays the same, and not for the documents that it was trained on",
            promised,
        )

    def exposed(self) -> tuple[str, ...]:
        """What the training shows of texts that are not public."""
        if self.public:
            return ()
        return (
            "THE DOCUMENTS THAT THE ENCODER WAS TRAINED ON ARE NOT PROTECTED BY ITS TRAINING: whatever the encoder "
            "(with the words that it knows, and a budget that was learnt), vectors made with it, and what is said of "
            "it here show of their texts, labels and attributes",
        )

    def after(self, earlier: Provenance) -> Provenance:
        """Of a training that went on from another one."""
        names = [name for name in (earlier.trained_on, self.trained_on) if name is not None]
        return Provenance(
            trained_on=" and ".join(dict.fromkeys(names)) or None,
            texts=earlier.texts + self.texts,
            public=earlier.public and self.public,
            hidden=self.hidden,
        )


def exposed_by(encoder: Any) -> tuple[str, ...]:
    """What the training of an encoder shows of texts that are not public; nothing, of one that was not trained here."""
    exposed: tuple[str, ...] = getattr(encoder, "exposed", tuple)()
    return exposed


def check_trained_on_public(encoder: TextEncoder) -> None:
    """Raise `RefusedError` if an encoder was trained without protection on texts that are not public."""
    if exposed_by(encoder) or encoder.parameters().get("encoder_trained_on_public") is False:
        raise RefusedError(
            f"the encoder {encoder.name!r} was trained without protection on texts that were not declared public; its "
            "weights and words can reveal them, so this release would have no guarantee for their authors. Train the "
            "encoder on public texts (public=True), or use a public one"
        )


Vectors = npt.NDArray[np.float32]
Progress = Callable[[int], None]
"""Called with the number of texts that are done."""

_AT_ONCE = 1024


@runtime_checkable
class TextEncoder(Protocol):
    """What can stand at the start of a `DeviceEncoder`."""

    @property
    def name(self) -> str:
        """What statements call it."""

    @property
    def dimension(self) -> int:
        """D, the length of its vectors."""

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """(n, D) float32, one vector a text. *Not private.*"""

    def parameters(self) -> dict[str, Parameter]:
        """What identifies it, for the statement: with these two encoders are the same."""

    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted about it, for the statement."""


def encode_each(encoder: TextEncoder, texts: Sequence[str]) -> Vectors:
    """(n, D) vectors, each from its own text alone: one call per text, unless the encoder ``is_batch_invariant``."""
    if not texts or getattr(encoder, "is_batch_invariant", False):
        return encoder.encode(texts)
    return np.concatenate([encoder.encode([text]) for text in texts])


def checked_texts(texts: Iterable[Any]) -> list[str]:
    """The texts as a list of strings: those of documents, and the empty string for missing ones."""
    checked = []
    for place, entry in enumerate(check_one_column(texts), 1):
        text = entry.text if isinstance(entry, Document) else entry
        if not isinstance(text, str):
            if not is_missing(text):
                raise DataError(f"texts must be strings, entry {place} is {type(text).__name__}")
            text = ""
        checked.append(text)
    return checked


class FrozenEncoder(ABC):
    """An encoder of texts that cannot be changed once its ``dimension`` is set."""

    name: str
    dimension: int

    _texts_at_once = _AT_ONCE

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """(n, D) float32, one vector a text. *Not private.*"""
        given = checked_texts(texts)
        vectors = np.empty((len(given), self.dimension), dtype=np.float32)
        for block in in_parts(given, self._texts_at_once, progress):
            vectors[block] = self._vectors(given[block])
        return vectors

    @abstractmethod
    def _vectors(self, texts: list[str]) -> Vectors:
        """(n, D) of at most so many texts."""

    def __setattr__(self, name: str, value: Any) -> None:
        if "dimension" in vars(self):
            raise AttributeError(f"an encoder is frozen, {name!r} cannot be set: make another one")
        super().__setattr__(name, value)


class CallableEncoder(FrozenEncoder, Showing):
    """A caller's function as an encoder.

    Args:
        function: a list of strings to an (n, D) array of numbers. It must be public and fixed and answer every text:
            the statement says that this is assumed. In a release it gets one text per call.
        dimension: D; None: as wide as what it answers for the empty text.
        name: for statements.
        texts_at_once: how many texts it gets in one call, at most.

    NaN counts as 0, and infinite numbers as large ones: a vector that is not finite is no error.

    Raises:
        ParameterError: not callable; a method of an encoder; an answer of another shape; the function raised (the
            message names the kind of error alone, because its own message may hold a text).

    >>> import numpy as np
    >>> encoder = CallableEncoder(lambda texts: np.array([[len(text), 1.0] for text in texts]), name="lengths")
    >>> encoder.dimension, encoder.encode(["four", None]).tolist()
    (2, [[4.0, 1.0], [0.0, 1.0]])
    """

    def __init__(
        self,
        function: Callable[[list[str]], npt.ArrayLike],
        *,
        dimension: int | None = None,
        name: str = "the caller's function",
        texts_at_once: int = _AT_ONCE,
    ) -> None:
        if not callable(function):
            raise ParameterError(f"expected a function from a list of texts to an array, got {type(function).__name__}")
        method = function
        while isinstance(method, partial):
            method = method.func
        if isinstance(getattr(method, "__self__", None), TextEncoder):
            raise ParameterError(
                "the function is a method of an encoder, which knows what it was trained on: give the encoder itself"
            )
        self.function = function
        self.name = name
        self._texts_at_once = whole("texts_at_once", texts_at_once, least=1)
        self.dimension = (
            int(self._answer([""], None).shape[1]) if dimension is None else whole("dimension", dimension, least=1)
        )

    def _vectors(self, texts: list[str]) -> Vectors:
        return self._answer(texts, self.dimension)

    def _answer(self, texts: Sequence[str], dimension: int | None) -> Vectors:
        failure = ""
        try:
            answer = np.asarray(self.function(list(texts)), dtype=np.float64)
        except Exception as error:  # noqa: BLE001  whatever a caller's function raises, its message may hold a text
            failure = type(error).__name__
        if failure:
            raise ParameterError(f"the encoder's function failed on a batch of {len(texts)} texts: {failure}")
        expected = (len(texts), answer.shape[-1] if dimension is None and answer.ndim else dimension)
        if answer.shape != expected or 0 in answer.shape:
            raise ParameterError(
                f"the encoder's function must answer {len(texts)} texts with an array of {len(texts)} rows"
                f"{'' if dimension is None else f' and {dimension} columns'}, got the shape {answer.shape}"
            )
        return finite(answer)

    def parameters(self) -> dict[str, Parameter]:
        """Its name and width: nothing else is known of it."""
        return {"encoder": self.name, "encoder_dimension": self.dimension}

    def assumptions(self) -> tuple[str, ...]:
        """What nobody but the caller can see to."""
        return (
            "the caller's encoder is a public, fixed function of one text, which answers every text: it was not "
            "computed from the texts that it encodes",
        )

    def _in_brief(self) -> Facts:
        yield "name", self.name
        yield "dimension", self.dimension


def finite(values: npt.ArrayLike) -> Vectors:
    """As float32 without NaN (0) and infinities (the largest number of the type), and without a warning."""
    most = float(np.finfo(np.float32).max)
    with np.errstate(all="ignore"):  # a caller may have told numpy to raise where a small number becomes 0
        return np.clip(np.nan_to_num(np.asarray(values, dtype=np.float64)), -most, most).astype(np.float32)


def in_parts(texts: Sequence[str], size: int, progress: Progress | None) -> Iterable[slice]:
    """Slices of at most ``size`` texts; the callback hears of each when it is done."""
    for start in range(0, len(texts), size):
        stop = min(start + size, len(texts))
        yield slice(start, stop)
        if progress is not None:
            progress(stop)
