"""Text encoders (mean of word vectors, a caller's function) and the provenance of trained ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, RefusedError
from dptext.io.documents import check_one_column, text_of
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Floats
from dptext.text.tokens import Kind, kind_of
from dptext.users.grouping import NO_WORD, TokenRows
from dptext.validation import check_float, check_int
from dptext.vectors.formats import KNOWN_VECTORS
from dptext.vectors.word_vectors import WordVectors

Vectors = npt.NDArray[np.float32]
Progress = Callable[[int], None]
"""Called with the number of texts done."""

RELEASED_BEFORE = (
    "the words and their vectors were released before with their own statement: for people in their training, its "
    "loss is added"
)
"""Assumption about vectors with a statement that is not composed with this one."""
_TEXTS_AT_ONCE = 1024
_WORDS_AT_ONCE = 256
"""A longer text is summed in parts of this many words, so that one long text does not slow down many short ones."""
_SAMPLE_SEED = 7
_MIN_WEIGHTING = 1e-30  # below, weights are 0 in float32


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The training data of an encoder that was trained against adversaries, and the attributes that it hides."""

    trained_on: str | None = None
    texts: int = 0
    public: bool = True
    hidden: str = ""

    def __post_init__(self) -> None:
        if self.trained_on is not None and not isinstance(self.trained_on, str):
            raise ParameterError("public_name must be text, or None")
        if not isinstance(self.public, bool):
            raise ParameterError("public must be true or false")

    def parameters(self) -> dict[str, Parameter]:
        return {
            "encoder_trained_on": self.trained_on,
            "encoder_trained_texts": self.texts,
            "encoder_trained_on_public": self.public,
            "encoder_hides": self.hidden,
        }

    def assumptions(self) -> tuple[str, ...]:
        name = "texts" if self.trained_on is None else f"'{self.trained_on}'"
        counted = f"{name} ({self.texts} texts, and their labels, if any)" if self.texts else name
        if self.texts == 0 and self.public:
            training = "the trained encoder is public: it was not computed from protected texts"
        elif self.public:
            training = f"the encoder was trained on {counted}, declared public: their authors are not protected"
        else:
            training = (
                f"the encoder was trained on {counted} without protection: the guarantee covers the release, for a "
                "fixed trained encoder, and not the training documents"
            )
        hidden = self.hidden or "an attribute"
        return (training, f"only the noise has a guarantee; training hides {hidden} further, without proof")

    def exposed(self) -> tuple[str, ...]:
        if self.public:
            return ()
        return (
            "THE TRAINING DOCUMENTS OF THE ENCODER ARE NOT PROTECTED: the encoder (its words, a learnt budget), its "
            "vectors and this statement may reveal their texts, labels and attributes",
        )


@runtime_checkable
class TextEncoder(Protocol):
    """Text to vector. ``parameters`` identify the encoder in statements: equal parameters mean equal encoders."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """Return (n, D) float32, one vector per text. *Not private.*"""

    def parameters(self) -> dict[str, Parameter]: ...

    def assumptions(self) -> tuple[str, ...]: ...


def encoder_exposure(encoder: Any) -> tuple[str, ...]:
    """Return the data of non-public texts that a trained encoder may reveal, for the statement."""
    return getattr(encoder, "exposed", tuple)()


def check_trained_on_public(encoder: TextEncoder) -> None:
    """Raise `RefusedError` if an encoder was trained without protection on texts that are not public."""
    if encoder_exposure(encoder) or encoder.parameters().get("encoder_trained_on_public") is False:
        raise RefusedError(
            f"the encoder {encoder.name!r} was trained without protection on texts that were not declared public; its "
            "weights and words can reveal them, so this release would have no guarantee for their authors. Train the "
            "encoder on public texts (public=True), or use a public one"
        )


def encode_each(encoder: TextEncoder, texts: Sequence[str]) -> Vectors:
    """Encode (n, D) vectors, each from its own text alone: one call per text, unless ``is_batch_invariant``."""
    if not texts or getattr(encoder, "is_batch_invariant", False):
        return encoder.encode(texts)
    return np.concatenate([encoder.encode([text]) for text in texts])


def check_texts(texts: Iterable[Any]) -> list[str]:
    """Return the texts as strings; a missing text becomes an empty string."""
    return [text_of(entry, place) or "" for place, entry in enumerate(check_one_column(texts), 1)]


def finite(values: npt.ArrayLike) -> Vectors:
    """Convert to float32 without NaN (0), infinities (the largest number of the type) or warnings."""
    maximum = float(np.finfo(np.float32).max)
    with np.errstate(all="ignore"):  # the caller's numpy settings may raise on underflow
        return np.clip(np.nan_to_num(np.asarray(values, dtype=np.float64)), -maximum, maximum).astype(np.float32)


def in_parts(texts: Sequence[str], size: int, progress: Progress | None) -> Iterable[slice]:
    """Yield slices of at most ``size`` texts; ``progress`` is called after each."""
    for start in range(0, len(texts), size):
        stop = min(start + size, len(texts))
        yield slice(start, stop)
        if progress is not None:
            progress(stop)


class FrozenEncoder(ABC):
    """An encoder of texts that cannot be changed once its ``dimension`` is set."""

    name: str
    dimension: int

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """Return (n, D) float32, one vector per text. *Not private.*"""
        values = check_texts(texts)
        vectors = np.empty((len(values), self.dimension), dtype=np.float32)
        for block in in_parts(values, _TEXTS_AT_ONCE, progress):
            vectors[block] = self._vectors(values[block])
        return vectors

    @abstractmethod
    def _vectors(self, texts: list[str]) -> Vectors:
        """Return (n, D) vectors of one block of texts."""

    def __setattr__(self, name: str, value: Any) -> None:
        if "dimension" in vars(self):
            raise AttributeError(f"an encoder is immutable, {name!r} cannot be set: create a new one")
        super().__setattr__(name, value)


class CallableEncoder(FrozenEncoder, ReprMixin):
    """A caller's function as an encoder.

    Args:
        function: maps a list of strings to an (n, D) array. It must be public and fixed and accept every text, as the
            statement assumes. In a release it receives one text per call.
        dimension: D; None: the width of its vector for the empty text.
        name: name in statements.

    NaN becomes 0, and infinite numbers become large ones: a vector that is not finite is not an error.

    Raises:
        ParameterError: the function is not callable, is a method of an encoder, returns another shape, or raises (the
            message names only the type of the error, because its own message may contain a text).

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
    ) -> None:
        if not callable(function):
            raise ParameterError(f"expected a function from a list of texts to an array, got {type(function).__name__}")
        method = function
        while isinstance(method, partial):
            method = method.func
        owner = getattr(method, "__self__", None)
        if isinstance(getattr(owner, "text_encoder_", owner), TextEncoder):
            raise ParameterError(
                "the function is a method of an encoder: pass the encoder itself, which records its training texts"
            )
        self.function, self.name = function, name
        expected = None if dimension is None else check_int("dimension", dimension, minimum=1)
        self.dimension = self._answer([""], None).shape[1] if expected is None else expected

    def _vectors(self, texts: list[str]) -> Vectors:
        return self._answer(texts, self.dimension)

    def _answer(self, texts: list[str], dimension: int | None) -> Vectors:
        failure = ""
        try:
            answer = np.asarray(self.function(list(texts)), dtype=np.float64)
        except Exception as error:  # noqa: BLE001  a message of the caller's function may contain a text
            failure = type(error).__name__
        if failure:
            raise ParameterError(f"the encoder's function failed on a batch of {len(texts)} texts: {failure}")
        width = answer.shape[1] if dimension is None and answer.ndim == 2 else dimension
        if answer.shape != (len(texts), width) or not answer.size:
            raise ParameterError(
                f"the encoder's function must return an array of shape ({len(texts)}, {width or 'D'}) for "
                f"{len(texts)} texts, got shape {answer.shape}"
            )
        return finite(answer)

    def parameters(self) -> dict[str, Parameter]:
        return {"encoder": self.name, "encoder_dimension": self.dimension}

    def assumptions(self) -> tuple[str, ...]:
        return (
            "the caller's encoder is a public, fixed function of one text, which answers every text: it was not "
            "computed from the texts that it encodes",
        )

    def _repr_fields(self) -> Fields:
        yield "name", self.name
        yield "dimension", self.dimension


class MeanOfWords(FrozenEncoder, ReprMixin):
    """The mean of the word vectors of a text.

    Words outside the vocabulary, numbers, addresses and punctuation are skipped; a text without any other words has the
    vector of ``"<unk>"``.

    Args:
        vectors: public vectors, or vectors with their own statement (the encoder's statement then says so).
        weighting: None weights all words equally. A number a > 0 gives the word of rank r the weight a / (a + p(r))
            with p(r) = 1 / (r H_V), Zipf's law: ranks are public, so frequent words count less without reading any
            text (Arora, Liang and Ma 2017, who estimate p from a corpus).

    Raises:
        ParameterError: ``vectors`` is not `WordVectors`; the weighting is not a number of at least 1e-30.

    >>> vectors = WordVectors(["cat", "dog", "<unk>"], [[2.0, 0.0], [0.0, 2.0], [5.0, 5.0]])
    >>> MeanOfWords(vectors).encode(["Cat, dog & gnu!", "7", None]).tolist()
    [[1.0, 1.0], [5.0, 5.0], [5.0, 5.0]]
    """

    name = "mean of word vectors"
    is_batch_invariant = True

    def __init__(self, vectors: WordVectors, *, weighting: float | None = None) -> None:
        if not isinstance(vectors, WordVectors):
            raise ParameterError(f"expected WordVectors, got {type(vectors).__name__}: use dptext.load_vectors(...)")
        self.vectors = vectors
        self.weighting = None if weighting is None else check_float("weighting", weighting, minimum=_MIN_WEIGHTING)
        self.dimension = vectors.dimension

    def _vectors(self, texts: list[str]) -> Vectors:
        return self._means(*vars(self).get("rows", self._token_rows())(texts))

    def remembering(self) -> MeanOfWords:
        """Return a copy that is faster for many texts, because it holds words of them in memory."""
        result = MeanOfWords(self.vectors, weighting=self.weighting)
        vars(result)["rows"] = self._token_rows()
        return result

    def _token_rows(self) -> TokenRows:
        vocabulary = self.vectors.vocabulary

        def row_of(token: str) -> int:
            row = vocabulary.row(token) if kind_of(token) is Kind.WORD else vocabulary.unknown_row
            return NO_WORD if row == vocabulary.unknown_row else row

        return TokenRows(row_of)

    def _means(self, rows: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]) -> Vectors:
        """Return (n, D) weighted means of the words of each text."""
        rows = np.insert(rows, (np.cumsum(lengths) - lengths)[lengths == 0], self.vectors.vocabulary.unknown_row)
        lengths = np.maximum(lengths, 1)
        parts = -(-lengths // _WORDS_AT_ONCE)
        first = np.cumsum(parts) - parts
        sizes = np.full(int(parts.sum()), _WORDS_AT_ONCE)
        sizes[first + parts - 1] = lengths - (parts - 1) * _WORDS_AT_ONCE
        weights = self._weights[rows]
        # in float64: the float32 sum of two valid vectors may be infinite
        sums = np.add.reduceat(weighted_sums(self.vectors.matrix, rows, weights, sizes, np.float64), first, axis=0)
        totals = np.add.reduceat(weights, np.cumsum(lengths) - lengths, dtype=np.float64)
        return np.asarray(sums / totals[:, None], dtype=np.float32)

    @cached_property
    def _weights(self) -> Vectors:
        if self.weighting is None:
            return np.ones(len(self.vectors), dtype=np.float32)
        return (self.weighting / (self.weighting + zipf_weights(len(self.vectors)))).astype(np.float32)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(MeanOfWords, self.vectors, weighting=self.weighting), ()

    def public_sample(self, texts: int = 4096, words: int = 12) -> Vectors:
        """Return (texts, D) vectors of fixed artificial texts (Zipf's law), to fit centre and projection on."""
        draws = zipf_rows(len(self.vectors), texts * words, seed=_SAMPLE_SEED)
        return self._means(draws.astype(np.int32), np.full(texts, words))

    def parameters(self) -> dict[str, Parameter]:
        parameters: dict[str, Parameter] = {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_vectors": self.vectors.source,
            "encoder_words": len(self.vectors),
            "encoder_vectors_sha256": self.vectors.fingerprint,
            "encoder_weighting": self.weighting,
        }
        if self.vectors.statement is not None:
            parameters["vectors_release"] = self.vectors.statement.release_id
        elif self.vectors.source in KNOWN_VECTORS:
            parameters["encoder_vectors_licence"] = KNOWN_VECTORS[self.vectors.source]
        return parameters

    def assumptions(self) -> tuple[str, ...]:
        if self.vectors.statement is None:
            return ("the words, their order and their vectors are public: none was computed from protected texts",)
        return (RELEASED_BEFORE,)


def zipf_weights(words: int) -> Floats:
    """Return (words,) p(r) = 1 / (r H), the frequency of the r-th word by Zipf's law; their sum is 1."""
    shares: Floats = 1 / np.arange(1.0, words + 1)
    shares /= shares.sum()
    return shares


def zipf_rows(words: int, count: int, *, seed: int) -> npt.NDArray[np.intp]:
    """Return random rows of words for artificial texts by Zipf's law; they are public."""
    uniform = RandomBits(seed=seed).uniform(count) * (1 - 1e-9)
    return np.searchsorted(np.cumsum(zipf_weights(words)), uniform)


def weighted_sums(
    matrix: Vectors, rows: Any, weights: Vectors, lengths: npt.NDArray[np.int64], dtype: Any
) -> npt.NDArray[Any]:
    """Return (texts, D) sums of weight times row. Each text adds its words in order, independently of other texts."""
    order = np.argsort(-lengths, kind="stable")  # texts with many words first
    starts = (np.cumsum(lengths) - lengths)[order]
    with_more = len(lengths) - np.searchsorted(np.sort(lengths), np.arange(int(lengths.max(initial=0))), side="right")
    sums = np.zeros((len(lengths), matrix.shape[1]), dtype=dtype)
    room = np.empty(sums.shape, dtype=np.float32)
    for place, active in enumerate(with_more.tolist()):  # the first word of all texts, the second, ...
        entries = starts[:active] + place
        part = np.take(matrix, rows[entries], axis=0, out=room[:active], mode="clip")
        part *= weights[entries, None]
        sums[:active] += part
    result = np.empty_like(sums)
    result[order] = sums
    return result
