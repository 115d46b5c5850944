"""A text as the mean of its words' vectors: the encoder that needs numpy alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dptext.checks import number
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.domains import Floats
from dptext.representations.encoders import Progress, Vectors, checked_texts, in_parts
from dptext.showing import Showing
from dptext.text.tokens import Kind, kind_of, pieces
from dptext.vectors.formats import KNOWN_VECTORS
from dptext.vectors.word_vectors import WordVectors

__all__ = ["RELEASED_BEFORE", "MeanOfWords"]

RELEASED_BEFORE = (
    "the words and their vectors were released before, under a statement of their own: whoever has text in their "
    "training loses what it says on top"
)
"""What is assumed of vectors with a statement, by who does not count it in."""
_TEXTS_AT_ONCE = 1024
_ROWS_AT_ONCE = 1 << 14
_REMEMBERED = 1 << 18
_LONGEST_REMEMBERED = 64
_NO_WORD = -1
_SAMPLE_SEED = 7
_LEAST_WEIGHTING = 1e-30  # below, weights are 0 in float32

Rows = npt.NDArray[np.int64]


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
        weights = self._weights()
        rows = _Rows(self.vectors)
        unknown = [self.vectors.vocabulary.unknown_row]
        for block in in_parts(given, _TEXTS_AT_ONCE, progress):
            found = [[row for piece in pieces(text) if (row := rows[piece]) >= 0] or unknown for text in given[block]]
            means[block] = self._means(found, weights)
        return means

    def _means(self, found: list[list[int]], weights: Vectors | None) -> Vectors:
        """(n, D) weighted means over the rows of each text."""
        means = np.empty((len(found), self.dimension), dtype=np.float32)
        for texts in _whole_texts(found):
            lengths = list(map(len, found[texts]))
            flat = np.fromiter((row for rows in found[texts] for row in rows), dtype=np.int64, count=sum(lengths))
            if flat.size <= _ROWS_AT_ONCE:
                sums, totals = self._sums(flat, [0, *accumulate(lengths[:-1])], weights)
            else:  # one long text, in parts, so that it takes no more memory
                parts = [flat[start : start + _ROWS_AT_ONCE] for start in range(0, flat.size, _ROWS_AT_ONCE)]
                added = [self._sums(part, [0], weights) for part in parts]
                sums, totals = (np.sum(each, axis=0) for each in zip(*added, strict=True))
            means[texts] = sums / totals[:, None]
        return means

    def _sums(self, rows: Rows, starts: list[int], weights: Vectors | None) -> tuple[Floats, Floats]:
        """Weighted sums, and the weights' sums, of the stretches of rows that begin at the starts."""
        values = self.vectors.matrix[rows]
        counts = np.ones(rows.size, dtype=np.float32) if weights is None else weights[rows]
        values *= counts[:, None]
        # in doubles: in their own type, the sum of two vectors that are no error may be infinite
        sums: Floats = np.add.reduceat(values, starts, axis=0, dtype=np.float64)
        totals: Floats = np.add.reduceat(counts, starts, dtype=np.float64)
        return sums, totals

    def _weights(self) -> Vectors | None:
        """(V,) a / (a + p(r))."""
        if self.weighting is None:
            return None
        return (self.weighting / (self.weighting + self._shares())).astype(np.float32)

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
        return self._means(drawn.reshape(texts, words).tolist(), self._weights())

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


def _whole_texts(found: list[list[int]]) -> Iterator[slice]:
    """Texts in a row with few enough rows together; a longer one stands alone."""
    first = rows = 0
    for place, each in enumerate(found):
        if place > first and rows + len(each) > _ROWS_AT_ONCE:
            yield slice(first, place)
            first, rows = place, 0
        rows += len(each)
    if found:
        yield slice(first, len(found))


class _Rows(dict[str, int]):
    """The row of every piece of text met, -1 for what is no word or an unknown one."""

    def __init__(self, vectors: WordVectors) -> None:
        super().__init__()
        self._vocabulary = vectors.vocabulary

    def __missing__(self, piece: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        row = self._vocabulary.row(piece) if kind_of(piece) is Kind.WORD else _NO_WORD
        if row == self._vocabulary.unknown_row:
            row = _NO_WORD
        if len(piece) <= _LONGEST_REMEMBERED:
            self[piece] = row
        return row
