"""One user's words at a time, out of documents in whatever order: the input of what is private at the level of users.

The documents are read once, cut into tokens (numbers, addresses, punctuation and space are no words), mapped to the
rows of a vocabulary and grouped on disk (`dptext.users.sorted_runs`). Memory grows neither with the number of users nor
with what one of them wrote: a user with many words comes in several chunks.

Names of users are replaced at once by digests under a key that is drawn afresh and forgotten. The users come out in the
order of these digests: a random order, on which neither the order of the input nor a name has any influence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np

from dptext.checks import choice, whole
from dptext.errors import ParameterError
from dptext.files.documents import Document, DocumentReader
from dptext.processes import in_order
from dptext.text.vocabulary import Vocabulary
from dptext.users.authored import Digester, Level, LevelCodes, UserUnit, parts_of
from dptext.users.sorted_runs import Lengths, Prolific, Rows, SortedRuns
from dptext.users.word_rows import OUTSIDE, RowsOfTexts

__all__ = ["OUTSIDE", "Level", "Person", "UserUnit", "Users", "grouped_users", "users_of"]


class Person:
    """What one user wrote. Good until the `users_of` that it came from ends.

    Attributes:
        levels: his distinct levels, in the order in which they came; one, unless his rows disagree. Where levels are
            budgets, the strictest has to count: no row may loosen what another one asks for.
    """

    __slots__ = ("_most", "_pieces", "levels")

    def __init__(self, pieces: Iterable[tuple[Rows, Lengths]], levels: tuple[Level, ...], most: int | None) -> None:
        self._pieces, self.levels, self._most = pieces, levels, most

    def chunks(self) -> Iterator[tuple[Rows, Lengths]]:
        """His documents in the order of the input, in chunks of bounded size; each time from the start.

        Returns:
            Pairs (rows, lengths): (words,) int32, the rows of the words of all documents of the chunk one after the
            other, `OUTSIDE` for a word that the vocabulary does not hold; (documents,) int64, how many words each
            document has. No document goes on in the next chunk. Someone who wrote no word has a chunk all the same.
        """
        left = math.inf if self._most is None else self._most
        for rows, lengths in self._pieces:
            if rows.size >= left:
                yield _first_words(rows, lengths, int(left))
                return
            left -= rows.size
            yield rows, lengths


class Users:
    """Users one by one, in random order (see `users_of`); another iteration gives the same users in the same order."""

    def __init__(self, runs: SortedRuns, levels: Sequence[Level], most_words: int | None) -> None:
        self._runs, self._levels, self._most = runs, levels, most_words

    def __iter__(self) -> Iterator[Person]:
        for batch in self._runs.batches():
            if isinstance(batch, Prolific):
                yield Person(batch, self._named(batch.levels), self._most)
                continue
            row = document = 0
            users = zip(batch.words.tolist(), batch.documents.tolist(), batch.levels, strict=True)
            for words, documents, codes in users:
                piece = (batch.rows[row : row + words], batch.lengths[document : document + documents])
                row, document = row + words, document + documents
                yield Person((piece,), self._named(codes), self._most)

    def _named(self, codes: tuple[int, ...]) -> tuple[Level, ...]:
        return tuple(self._levels[code] for code in codes)


@contextmanager
def users_of(
    documents: DocumentReader | Iterable[Document],
    vocabulary: Vocabulary,
    *,
    unit: UserUnit = "user",
    level: str | None = None,
    most_words: int | None = None,
    processes: int = 1,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> Iterator[Users]:
    """Group documents by user, in one pass over them.

    Args:
        documents: of `dptext.files.documents.read_documents` with ``user=`` (which is faster), or any `Document`
            objects; they may come in any order. A text that is None counts as one without words.
        vocabulary: public words, or words released under a statement.
        unit: ``"user"``: who is one person is told by `Document.user`: 7, 7.0, "7" and " 7" are the same one
            (`dptext.files.keys.spelled_key`). ``"document"``: every document stands for itself.
        level: a public column (of ``keep``, or of `Document.attributes`) that is carried along, for personal budgets.
        most_words: of each user, this many words are looked at: the first ones in the order of his documents. Words
            outside the vocabulary count. It bounds what one person can do to the time and memory of all that follows.
        processes: how many cut texts into words; the result does not depend on it.
        seed: makes the order of the users repeatable, for tests and papers only; None: a fresh random order.
        folder: where the nameless temporary file lies; None: where the system has its temporary files.

    Raises:
        DataError: a row without a user (it is named, nobody else is), a text that is no string; more than 1,000
            different levels.
        ParameterError: the reader was not asked for the user or the level; an argument out of range.
        StorageError: the temporary file cannot be written; a process died.

    >>> words = Vocabulary(["cat", "sat", "<unk>"])
    >>> documents = [Document("A cat!", user="Ann"), Document("Cats sat.", user="Bo"), Document("Sat 2 s", user="Ann")]
    >>> with users_of(documents, words) as users:
    ...     sorted([rows.tolist(), lengths.tolist()] for person in users for rows, lengths in person.chunks())
    [[[-1, 0, 1, -1], [2, 2]], [[-1, 1], [2]]]
    """
    if not isinstance(vocabulary, Vocabulary):
        raise ParameterError(f"vocabulary must be a Vocabulary, got {type(vocabulary).__name__}")
    with grouped_users(
        documents,
        RowsOfTexts(vocabulary),
        lambda found: found,
        unit=unit,
        level=level,
        most_words=most_words,
        processes=processes,
        seed=seed,
        folder=folder,
    ) as users:
        yield users


@contextmanager
def grouped_users(
    documents: DocumentReader | Iterable[Document],
    work: Callable[[Sequence[str | None]], Any],
    settle: Callable[[Any], tuple[Rows, Lengths]],
    *,
    unit: UserUnit = "user",
    level: str | None = None,
    most_words: int | None = None,
    processes: int = 1,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> Iterator[Users]:
    """`users_of` for any numbering of words.

    Args:
        work: from texts to what ``settle`` understands; in each of the processes, so it is pickled.
        settle: from there to (words,) rows and (documents,) lengths; in this process, in the order of the documents.
    """
    choice("unit", unit, get_args(UserUnit))
    if most_words is not None:
        most_words = whole("most_words", most_words, least=1)
    whole("processes", processes, least=1)
    names = Digester(seed)
    levels = LevelCodes()
    with closing(SortedRuns(folder)) as runs:
        parts = (
            ((names.of(part), levels.of(part.levels, len(part.texts))), part.texts)
            for part in parts_of(documents, unit, level)
        )
        with closing(in_order(work, parts, processes=processes)) as done:
            for (digests, codes), found in done:
                rows, lengths = settle(found)
                runs.add(digests, codes, lengths, rows)
        runs.close_input()
        yield Users(runs, levels.values, most_words)


def _first_words(rows: Rows, lengths: Lengths, count: int) -> tuple[Rows, Lengths]:
    ends = np.cumsum(lengths)
    last = int(np.searchsorted(ends, count))  # the document in which that word stands
    kept = lengths[: last + 1].copy()
    kept[last] -= int(ends[last]) - count
    return rows[:count], kept
