"""A corpus through a word mechanism: private texts, and the statement that speaks of all of them.

Words go through the mechanism; a number, URL, e-mail address or handle becomes one fixed placeholder; punctuation and
space stay. Where two tokens touched (``do`` + ``n't``, Han characters), a space is put between their replacements.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.text.documents import Document
from dptext.text.tokens import Kind, kind_of, letters_between, pieces
from dptext.text.vocabulary import Vocabulary
from dptext.words.mechanism import WordMechanism

__all__ = ["PLACEHOLDERS", "PrivateTexts", "Rewriter", "count_foreign_words", "privatize", "words_that_can_come_out"]

PLACEHOLDERS = {Kind.NUMBER: "<number>", Kind.URL: "<url>", Kind.EMAIL: "<email>", Kind.HANDLE: "<handle>"}

_logger = logging.getLogger(__name__)
_KEPT = -1  # code of a token that stays as it is
_CODES = {kind: -2 - place for place, kind in enumerate(PLACEHOLDERS)}
_CHUNK = 400_000  # tokens at a time
_REMEMBERED = 1 << 19  # tokens whose code is remembered, while the rewriter lives
_LONGEST_REMEMBERED = 64


@dataclass(frozen=True)
class PrivateTexts:
    """What `privatize` returns.

    Attributes:
        texts: one private text for each text, in order.
        statement: what was promised for a document.
    """

    texts: list[str]
    statement: PrivacyStatement


def privatize(texts: Iterable[str | Document], mechanism: WordMechanism, *, seed: int | None = None) -> PrivateTexts:
    """Replace every word of every text through a mechanism.

    Args:
        texts: strings, or `Document`.
        mechanism: a word mechanism.
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).

    **Guarantee** (unit document, substitution among documents of equal layout, local): as the returned statement
    says; the losses of the words add up, and the statement is for the longest document.

    Raises:
        DataError: an entry is not a string; its place is named.

    >>> from dptext import TEM, load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> result = privatize(["My cat, aged 7!"], TEM(vectors, epsilon=200.0, threshold=0.2))
    >>> result.texts
    ['<unk> cat, <unk> <number>!']
    """
    rewriter = Rewriter(mechanism, seed=seed)
    rewritten = list(rewriter.rewrite(texts))
    return PrivateTexts(rewritten, rewriter.statement())


class Rewriter:
    """The stream form of `privatize`: constant memory, texts out in the order of texts in.

    Args:
        mechanism: a word mechanism.
        seed: as in `privatize`.
    """

    def __init__(self, mechanism: WordMechanism, *, seed: int | None = None) -> None:
        if not isinstance(mechanism, WordMechanism):
            raise ParameterError(f"mechanism must be a word mechanism such as TEM, got {type(mechanism).__name__}")
        self.mechanism = mechanism
        self.longest = 0
        """The number of words in the longest document so far."""
        self._bits = RandomBits(seed)
        self._codes = _Codes(mechanism)
        self._words = np.array(mechanism.vectors.words, dtype=object)
        self._release_id = new_release_id()

    def statement(self) -> PrivacyStatement:
        """The statement for everything rewritten so far."""
        statement = self.mechanism.document_statement(self.longest, seeded=self._bits.seeded)
        return statement.replace(release_id=self._release_id)

    def rewrite(self, texts: Iterable[str | Document]) -> Iterator[str]:
        """Yield one private text for each text.

        Raises:
            DataError: an entry is neither a string nor a `Document`; its place is named.
        """
        if isinstance(texts, str):
            raise ParameterError("texts must be a list of strings, got one string: put it into a list")
        tokens: list[str] = []
        ends: list[int] = []
        for place, entry in enumerate(texts, 1):
            text = entry.text if isinstance(entry, Document) else entry
            if not isinstance(text, str):
                raise DataError(f"texts must be strings, entry {place} is {type(text).__name__}")
            tokens += pieces(text)
            ends.append(len(tokens))
            if len(tokens) >= _CHUNK:
                yield from self._rewrite(tokens, ends)
                tokens, ends = [], []
        yield from self._rewrite(tokens, ends)

    def _rewrite(self, tokens: list[str], ends: list[int]) -> Iterator[str]:
        codes = np.fromiter(map(self._codes.__getitem__, tokens), dtype=np.int64, count=len(tokens))
        starts = np.array([0, *ends], dtype=np.int64)
        self._replace_words(tokens, codes, starts)
        _logger.info("%d documents, %d tokens rewritten", len(ends), len(tokens))
        for kind, placeholder in PLACEHOLDERS.items():
            for place in np.flatnonzero(codes == _CODES[kind]):
                tokens[place] = placeholder
        for place in _touching(codes, starts):
            tokens[place] = " " + tokens[place]
        for start, end in pairwise(starts.tolist()):
            yield "".join(tokens[start:end])

    def _replace_words(self, tokens: list[str], codes: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> None:
        is_word = codes >= 0
        before = np.concatenate([[0], np.cumsum(is_word)])  # words before each token
        self.longest = max(self.longest, int(np.diff(before[starts]).max(initial=0)))
        places = np.flatnonzero(is_word)
        limit = self.mechanism.max_words
        if limit is not None:
            self.longest = min(self.longest, limit)
            first = np.repeat(before[starts[:-1]], np.diff(before[starts]))  # of the document, for each word
            beyond = np.arange(places.size) - first >= limit
            unknown = self.mechanism.vectors.words[self.mechanism.vectors.vocabulary.unknown_row]
            for place in places[beyond]:
                tokens[place] = unknown
            places = places[~beyond]
        drawn = self.mechanism.sample_rows(codes[places], self._bits)
        for place, word in zip(places.tolist(), self._words[drawn].tolist(), strict=True):
            tokens[place] = word


def words_that_can_come_out(vocabulary: Vocabulary) -> frozenset[str]:
    """What can stand between kept characters in a private text: words and placeholders, cut where those cut."""
    outputs = (*vocabulary.words, *PLACEHOLDERS.values())
    return frozenset(part for output in outputs for part in letters_between(output))


def count_foreign_words(text: str, known: frozenset[str]) -> int:
    """How many runs of letters of a private text the rewriter cannot have written.

    Args:
        text: a private text.
        known: `words_that_can_come_out` of the mechanism's vocabulary.
    """
    return sum(part not in known for part in letters_between(text))


class _Codes(dict[str, int]):
    """The code of every token met: the row of a word, a negative code for what is not a word."""

    def __init__(self, mechanism: WordMechanism) -> None:
        super().__init__()
        self._row = mechanism.vectors.vocabulary.row

    def __missing__(self, piece: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        kind = kind_of(piece)
        code = self._row(piece) if kind is Kind.WORD else _CODES.get(kind, _KEPT)
        if len(piece) <= _LONGEST_REMEMBERED:
            self[piece] = code
        return code


def _touching(codes: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Places of tokens that were replaced and follow a replaced token of their document without a space."""
    replaced = codes != _KEPT
    touching = replaced[1:] & replaced[:-1]
    inner = starts[(starts > 0) & (starts < codes.size)]
    touching[inner - 1] = False
    return np.flatnonzero(touching) + 1
