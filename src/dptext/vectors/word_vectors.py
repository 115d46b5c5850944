"""Frozen word vectors: public words, each with a vector; and the statement under which they were released."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from functools import cached_property, partial
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, ParameterError
from dptext.privacy.statement import HasStatement, PrivacyStatement
from dptext.privacy.wording import facts_of
from dptext.text.tokens import UNKNOWN, Vocabulary, fold, is_single_word
from dptext.validation import check_int


def check_shape(matrix: npt.NDArray[Any], words: int) -> None:
    """Check that there is one row for each word, or raise a `DataError`."""
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise DataError(f"expected a matrix with two axes (words, dimensions), got shape {matrix.shape}")
    if len(matrix) != words:
        raise DataError(f"expected one vector per word, got {words} words and {len(matrix)} vectors")


class WordVectors(HasStatement, ReprMixin):
    """Words and their vectors, the rows of a matrix. Frozen.

    Args:
        words: V distinct words, most frequent first, ``"<unk>"`` among them.
        matrix: (V, d) finite numbers; stored as read-only float32.
        source: name of their source, for statements.
        statement: the privacy statement of their training; None: the vectors are public.
        copy: False uses the matrix itself if its type allows; nothing may change it afterwards.

    The words and the matrix are taken to be *public*, or released under their own statement: a mechanism's guarantee
    does not cover the people whose texts they were trained on (`dptext.words.mechanism`).

    Raises:
        ParameterError: ``statement`` is not a `PrivacyStatement`.
        DataError: unequal lengths, NaN or infinite entries, a duplicate word, no ``"<unk>"``; the message names the
            row.

    >>> vectors = WordVectors(["<unk>", "cat", "dog"], [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    >>> vectors.dimension, vectors["dog"]
    (2, array([1., 1.], dtype=float32))
    """

    def __init__(
        self,
        words: Sequence[str],
        matrix: npt.ArrayLike,
        *,
        source: str = "unnamed",
        statement: PrivacyStatement | None = None,
        copy: bool = True,
    ) -> None:
        self._matrix = _check_matrix(matrix, len(words), copy=copy)
        self._vocabulary = Vocabulary(words)
        self._source = source
        self._statement = _check_statement(statement)

    @property
    def words(self) -> tuple[str, ...]:
        """The words, most frequent first."""
        return self._vocabulary.words

    @property
    def matrix(self) -> npt.NDArray[np.float32]:
        """(V, d) float32, read-only."""
        return self._matrix

    @property
    def vocabulary(self) -> Vocabulary:
        """The words with their look-up."""
        return self._vocabulary

    @property
    def source(self) -> str:
        """The source of the vectors."""
        return self._source

    @property
    def statement(self) -> PrivacyStatement | None:
        """The privacy statement of the training of the vectors; None: they are public."""
        return self._statement

    def attach_statement(self, statement: PrivacyStatement) -> Self:
        """Return the same vectors, released under a statement; ParameterError if they have another one."""
        if self._statement not in (None, statement):
            raise ParameterError("these vectors already have another statement, which a second one would hide")
        output = object.__new__(type(self))
        output.__dict__.update(self.__dict__)
        output._statement = _check_statement(statement)
        return output

    @property
    def dimension(self) -> int:
        """D, the length of a vector."""
        return int(self._matrix.shape[1])

    def __len__(self) -> int:
        return len(self._vocabulary)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and word in self._vocabulary

    def __getitem__(self, word: str) -> npt.NDArray[np.float32]:
        """Return the (d,) vector of a word."""
        if word not in self._vocabulary:
            raise KeyError(f"the word is not among the {len(self)} words: use {UNKNOWN!r}, which represents all others")
        return np.asarray(self._matrix[self._vocabulary.row(word)])

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self  # frozen: a copied owner (in a search over parameters) can share them

    def __reduce__(self) -> tuple[Any, ...]:
        # a matrix from a pickle has no other owner; for a mapped file, a copy would use memory in each process
        build = partial(WordVectors, source=self._source, statement=self._statement, copy=False)
        return (build, (self.words, np.asarray(self._matrix)))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 digest of the words and the matrix."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self._matrix, dtype="<f4").tobytes())
        return digest.hexdigest()

    @cached_property
    def diameter_bound(self) -> float:
        """Public bound on the Euclidean distance of any two words: twice the radius around the mean."""
        matrix = self._matrix.astype(np.float64)
        radius = float(np.sqrt(((matrix - matrix.mean(axis=0)) ** 2).sum(axis=1)).max(initial=0.0))
        return math.nextafter(2.0 * radius * (1 + 1e-12), math.inf)

    def most_similar(self, word_or_vector: str | npt.ArrayLike, n: int = 10) -> list[tuple[str, float]]:
        """Return the words most similar to a word or a vector by the cosine of the angle, most similar first.

        Nothing here is private: vectors are public, or post-processing of a release.

        Args:
            word_or_vector: a word, which is not among its own neighbours, or d numbers.
            n: maximum number of words.

        Returns:
            Words and cosines; the cosine with a zero vector is 0.

        Raises:
            ParameterError: the word is not in the vocabulary (the message does not repeat it); the vector does not
                have d finite numbers; n is below 1.

        >>> vectors = WordVectors(["<unk>", "cat", "dog", "tax"], [[0, 0], [1, 0], [1, 1], [-1, 0]])
        >>> vectors.most_similar("cat", 2)
        [('dog', 0.7071067811865475), ('tax', -1.0)]
        """
        n = check_int("n", n, minimum=1)
        query, row = self._query(word_or_vector)
        matrix = self._matrix.astype(np.float64)
        query /= np.abs(query).max() or 1.0  # no square overflows
        lengths = np.sqrt((matrix**2).sum(axis=1)) * math.sqrt(float(query @ query))
        similarity = np.divide(matrix @ query, lengths, out=np.zeros(len(self)), where=lengths > 0)
        order = np.argsort(-similarity, kind="stable")
        result = order[(order != row) & (order != self._vocabulary.unknown_row)][:n]
        return [(self.words[entry], float(similarity[entry])) for entry in result.tolist()]

    def _query(self, word_or_vector: str | npt.ArrayLike) -> tuple[npt.NDArray[np.float64], int]:
        if isinstance(word_or_vector, str):
            row = self._vocabulary.row(word_or_vector)
            if row == self._vocabulary.unknown_row:
                raise ParameterError(
                    f"the word is not among these {len(self):,} words: choose another word, load vectors with more "
                    "words or of another language, or pass a vector"
                )
            return self._matrix[row].astype(np.float64), row
        query = np.empty(0)
        with suppress(ValueError, TypeError, OverflowError):
            query = np.array(word_or_vector, dtype=np.float64)
        if query.shape != (self.dimension,) or not np.isfinite(query).all():
            raise ParameterError(f"expected a word, or a vector of {self.dimension} finite numbers")
        return query, -1

    def _repr_fields(self) -> Fields:
        yield "words", len(self)
        yield "dimension", self.dimension
        yield "source", self._source

    def _html_fields(self) -> Fields:
        return () if self._statement is None else facts_of(self._statement)


def _check_statement(statement: PrivacyStatement | None) -> PrivacyStatement | None:
    if statement is not None and not isinstance(statement, PrivacyStatement):
        raise ParameterError(f"statement must be a PrivacyStatement or None, got {type(statement).__name__}")
    return statement


def _check_matrix(matrix: npt.ArrayLike, rows: int, *, copy: bool) -> npt.NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # becomes infinity, which is refused with its row
            array = (np.array if copy else np.asarray)(matrix, dtype=np.float32, order="C")
    except (ValueError, TypeError, OverflowError):
        raise DataError("expected a matrix of numbers with rows of equal length") from None
    check_shape(array, rows)
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise DataError(f"row {int(np.argmin(finite))} of the matrix contains NaN or infinity: remove or repair it")
    array.setflags(write=False)
    return array


_logger = logging.getLogger(__name__)
Floats: TypeAlias = npt.NDArray[np.float32]


class SourceRows(NamedTuple):
    """Consecutive rows of a source: their numbers (for messages), words, and (n, d) vectors."""

    numbers: Sequence[int]
    words: Sequence[str | None]
    matrix: Floats


RowStream: TypeAlias = Generator[SourceRows, None, None]


def select_words(
    stream: RowStream, *, place: str, source: str, limit: int | None = None, unknown: Floats | None = None
) -> WordVectors:
    """Return the words among the rows of a stream, which is read no further than the limit requires."""
    room = None if limit is None else limit - 1
    kept: dict[str, None] = {}
    parts: list[Floats] = []
    seen: dict[str, int] = {}
    entries = variants = undecodable = 0
    full = False
    with closing(stream):
        for numbers, words, matrix in stream:
            chosen: list[int] = []
            end = len(words)
            for row, word in enumerate(words):
                if word is None:
                    undecodable += 1
                    continue
                name = fold(word)
                if word == UNKNOWN:
                    unknown = matrix[row].copy() if unknown is None else unknown
                elif name in kept:
                    variants += 1
                elif not is_single_word(name):
                    continue  # a duplicate of it would not matter
                elif len(kept) == room:
                    full, end = True, row
                    break
                else:
                    kept[name] = None
                    chosen.append(row)
                first = seen.setdefault(word, numbers[row])
                if first != numbers[row]:
                    raise DataError(f"{place}s {first} and {numbers[row]} contain the same word: remove the wrong one")
            if bad := np.flatnonzero(~np.isfinite(matrix[:end]).all(axis=1)).tolist():
                raise DataError(f"{place} {numbers[bad[0]]}: the vector contains NaN or infinity; remove or repair it")
            parts.append(matrix[chosen])
            entries += end
            if full:
                break
    if not kept:
        raise DataError(f"{source}: no words among the vectors: every entry is a number, an address or punctuation")
    _logger.info(
        "%d of the first %d entries are words, %d are other forms of these, %d are not UTF-8 (%s)",
        *(len(kept), entries, variants, undecodable, source),
    )
    table = np.empty((len(kept) + 1, parts[0].shape[1]), dtype=np.float32)
    start = 0
    parts.reverse()
    while parts:  # each part is freed once it is copied: one table in memory, not two
        part = parts.pop()
        table[start : start + len(part)] = part
        start += len(part)
    table[-1] = table[:-1].mean(axis=0, dtype=np.float64) if unknown is None else unknown
    return WordVectors([*kept, UNKNOWN], table, source=source, copy=False)
