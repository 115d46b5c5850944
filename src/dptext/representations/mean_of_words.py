"""A text as the mean of its words' vectors: the encoder that needs numpy alone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.checks import number
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Floats
from dptext.representations.encoders import Progress, Vectors, checked_texts, in_parts
from dptext.showing import Showing
from dptext.text.tokens import Kind, kind_of
from dptext.users.grouping import NO_WORD, TokenRows
from dptext.vectors.formats import KNOWN_VECTORS
from dptext.vectors.word_vectors import WordVectors

__all__ = ["RELEASED_BEFORE", "MeanOfWords", "weighted_sums"]

RELEASED_BEFORE = (
    "the words and their vectors were released before, under a statement of their own: whoever has text in their "
    "training loses what it says on top"
)
"""What is assumed of vectors with a statement, by who does not count it in."""
_TEXTS_AT_ONCE = 1024
_WORDS_AT_ONCE = 256
"""A longer text is summed in parts of this many words, so that one long text does not slow down many short ones."""
_SAMPLE_SEED = 7
_LEAST_WEIGHTING = 1e-30  # below, weights are 0 in float32

Rows = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]


class MeanOfWords(Showing):
    """The mean of the vectors of a text's words.

    Words that the vocabulary does not hold, numbers, addresses and punctuation are skipped; a text of which nothing is
    left has the vector of ``"<unk>"``.

    Args:
        vectors: public, or released under a statement of their own (then the statement says what that means).
        weighting: None counts all words alike. A number a > 0 gives the word of rank r the weight a / (a + p(r)) with
            p(r) = 1 / (r H_V), Zipf's law: ranks are public, so that frequent words can count less without a look at
            any text (Arora, Liang and Ma 2017, who take p from a corpus).

    Raises:
        ParameterError: no `WordVectors`; a weighting that is no number of at least 1e-30.

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
        self.weighting = None if weighting is None else number("weighting", weighting, least=_LEAST_WEIGHTING)
        self.dimension = vectors.dimension

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """(n, D) float32, one vector a text. *Not private.*"""
        given = checked_texts(texts)
        means = np.empty((len(given), self.dimension), dtype=np.float32)
        for block in in_parts(given, _TEXTS_AT_ONCE, progress):
            means[block] = self._means(*self._rows(given[block]))
        return means

    def _means(self, rows: Rows, lengths: Integers) -> Vectors:
        """(n, D) weighted means of the words of each text."""
        rows = np.insert(rows, (np.cumsum(lengths) - lengths)[lengths == 0], self.vectors.vocabulary.unknown_row)
        lengths = np.maximum(lengths, 1)
        parts = -(-lengths // _WORDS_AT_ONCE)
        first = np.cumsum(parts) - parts
        sizes = np.full(int(parts.sum()), _WORDS_AT_ONCE)
        sizes[first + parts - 1] = lengths - (parts - 1) * _WORDS_AT_ONCE
        weights = self._weights[rows]
        # in doubles: in their own type, the sum of two vectors that are no error may be infinite
        sums = np.add.reduceat(weighted_sums(self.vectors.matrix, rows, weights, sizes, np.float64), first, axis=0)
        totals = np.add.reduceat(weights, np.cumsum(lengths) - lengths, dtype=np.float64)
        means: Vectors = (sums / totals[:, None]).astype(np.float32)
        return means

    @cached_property
    def _rows(self) -> TokenRows:
        vocabulary = self.vectors.vocabulary

        def row_of(token: str) -> int:
            row = vocabulary.row(token) if kind_of(token) is Kind.WORD else vocabulary.unknown_row
            return NO_WORD if row == vocabulary.unknown_row else row

        return TokenRows(row_of)

    @cached_property
    def _weights(self) -> Vectors:
        """(V,) a / (a + p(r)), or 1."""
        if self.weighting is None:
            return np.ones(len(self.vectors), dtype=np.float32)
        return (self.weighting / (self.weighting + self._shares())).astype(np.float32)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.vectors, self.weighting)  # without the words that it met: they are private

    def _shares(self) -> Floats:
        """(V,) p(r) = 1 / (r H_V), the share of the r-th word of a text by Zipf's law."""
        shares: Floats = 1 / np.arange(1.0, len(self.vectors) + 1)
        shares /= shares.sum()
        return shares

    def public_sample(self, texts: int = 4096, words: int = 12) -> Vectors:
        """(texts, D) vectors of made-up texts: words drawn by Zipf's law, always the same ones.

        What a centre and a projection are fitted on where no public texts are at hand.
        """
        bits = RandomBits(seed=_SAMPLE_SEED)  # public: it chooses texts that nobody wrote
        drawn = np.searchsorted(np.cumsum(self._shares()), bits.uniform(texts * words) * (1 - 1e-9))
        return self._means(drawn.astype(np.int32), np.full(texts, words))

    def parameters(self) -> dict[str, Parameter]:
        """Which words and vectors, by their fingerprint, and how they are weighed."""
        training = self.vectors.statement
        licence = KNOWN_VECTORS.get(self.vectors.source)
        source: dict[str, Parameter] = {} if licence is None else {"encoder_vectors_licence": licence}
        if training is not None:
            source = {"vectors_release": training.release_id}
        return {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_vectors": self.vectors.source,
            "encoder_words": len(self.vectors),
            "encoder_vectors_sha256": self.vectors.fingerprint,
            "encoder_weighting": self.weighting,
            **source,
        }

    def assumptions(self) -> tuple[str, ...]:
        """Where words and vectors come from."""
        if self.vectors.statement is None:
            return ("the words, their order and their vectors are public: none was computed from protected texts",)
        return (RELEASED_BEFORE,)


def _rebuild(vectors: WordVectors, weighting: float | None) -> MeanOfWords:
    return MeanOfWords(vectors, weighting=weighting)


def weighted_sums(matrix: Vectors, rows: Any, weights: Vectors, lengths: Integers, dtype: Any) -> npt.NDArray[Any]:
    """(texts, D) sums of weight times row. Each text adds its words in their order, whatever other texts there are."""
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
