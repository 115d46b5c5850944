"""One user's texts at a time, out of documents in any order: the input of what sums up people by whole texts.

As `dptext.users.grouping.users_of`, which gives the words of users as rows of a vocabulary: the documents are read
once and grouped on disk (`dptext.users.sorting`), there encrypted; users come in a random order, and memory grows
neither with the number of users nor with what one of them wrote.

A document lies there as one number for its class and four bytes of its text in every further one, so that the sort of
rows sorts texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from struct import Struct
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.checks import choice, names, whole
from dptext.errors import ParameterError
from dptext.files.column import spelled_label
from dptext.files.documents import Document, DocumentReader
from dptext.users.grouping import OUTSIDE, Digester, LabelColumns, Part, UserUnit, parts_of
from dptext.users.sorting import Lengths, Prolific, Rows, SortedRuns

__all__ = ["MOST_CODES", "Author", "Authors", "Chunk", "texts_of"]

Chunk: TypeAlias = tuple[Sequence[str], npt.NDArray[np.int32]]
"""(documents,) texts; (documents,) the class of each."""
Code: TypeAlias = Callable[[tuple[str | None, ...]], int]

MOST_CODES = 1 << 28
"""Classes are numbers below this."""
_VALUES_REMEMBERED = 1 << 16
_HEADER = Struct("<i")
_LONGEST_REMEMBERED = 64


@contextmanager
def texts_of(
    documents: DocumentReader | Iterable[Document],
    *,
    columns: Sequence[str] = (),
    code: Code | None = None,
    unit: UserUnit = "user",
    most_documents: int | None = None,
    again: bool = False,
    folder: str | Path | None = None,
    seed: int | None = None,
) -> Iterator[Authors]:
    """Group texts by user, in one pass over the documents.

    Args:
        documents: of `dptext.files.documents.read_documents` with ``user=``, and the ``columns`` among ``keep=`` or as
            ``label=``; or any `Document` objects. They may come in any order. A text that is None counts as empty.
        columns: what the class of a document follows from: columns that are kept (of `Document.attributes`). One
            column alone is taken from the label where there is none of that name. A value that is missing is None, and
            all others are spelled by `dptext.files.column.spelled_label`.
        code: the number of a class, from the values of the columns: at least `OUTSIDE`, below `MOST_CODES`. It is the
            number that is kept: so labels may be as many as the documents. It must not raise. Needed with ``columns``;
            without them all documents are of class 0.
        unit: as in `dptext.users.grouping.users_of`; with ``"document"`` nothing is sorted and nothing is written to
            disk, the documents come in the order of the input, and once.
        most_documents: of each user, this many documents: the first ones, in the order of the input.
        again: single documents too are kept on disk, and come as often as one likes.
        folder, seed: as in `dptext.users.grouping.users_of`.

    Raises:
        DataError: a row without a user (it is named, nobody else is), a text that is no string. With
            ``unit="document"``: from the iterator.
        ParameterError: the reader was not asked for the user or a column; an argument out of range.
        StorageError: the temporary file cannot be written.

    >>> documents = [Document("A cat", user="Ann", label=1), Document("Bo", user="Bo"), Document("", user="Ann")]
    >>> code = {("1",): 0}
    >>> with texts_of(documents, columns=["cats"], code=lambda values: code.get(values, OUTSIDE)) as users:
    ...     sorted([texts, classes.tolist()] for author in users for texts, classes in author.chunks())
    [[['A cat', ''], [0, -1]], [['Bo'], [-1]]]
    """
    choice("unit", unit, get_args(UserUnit))
    if most_documents is not None:
        most_documents = whole("most_documents", most_documents, least=1)
    wanted = LabelColumns(names("columns", columns))
    if code is None and wanted.names:
        raise ParameterError("columns need a code, a function from their values to the number of a class, got none")
    codes = _Codes(code)
    digests = Digester(seed)
    parts = parts_of(documents, unit, wanted)
    if unit == "document" and not again:
        with closing(parts):
            yield Authors(_Single(parts, codes))
        return
    with closing(SortedRuns(folder)) as runs:
        for part in parts:
            lengths, rows = _packed(part.texts, codes.of(part))
            runs.add(digests.of(part), np.zeros(len(part.texts), dtype=np.int32), lengths, rows)
        runs.close_input()
        yield Authors(_Grouped(runs, most_documents))


class Author:
    """The texts of one user. Good until the `texts_of` that it came from ends."""

    __slots__ = ("_chunks",)

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = chunks

    def chunks(self) -> Iterator[Chunk]:
        """Their documents in the order of the input, in chunks of bounded size, none of them empty; each time from the
        start."""
        return iter(self._chunks)


class Authors:
    """Users one by one, in random order (see `texts_of`); another iteration gives the same users in the same order.

    With ``unit="document"``: every document by itself, and in one iteration unless ``again`` was said.

    Raises:
        ParameterError: of another iteration where there is one only.
    """

    def __init__(self, authors: Iterable[Author]) -> None:
        self._authors = authors

    def __iter__(self) -> Iterator[Author]:
        return iter(self._authors)


class _Single:
    """Documents that stand for themselves, as they are read."""

    def __init__(self, parts: Iterator[Part], codes: _Codes) -> None:
        self._parts, self._codes = parts, codes
        self._begun = False

    def __iter__(self) -> Iterator[Author]:
        if self._begun:
            raise ParameterError("with unit='document' documents come once: say again=True for further passes")
        self._begun = True
        for part in self._parts:
            classes = self._codes.of(part)
            for place, text in enumerate(part.texts):
                yield Author((([text or ""], classes[place : place + 1]),))


class _Grouped:
    """Documents that come back from the disk."""

    def __init__(self, runs: SortedRuns, most: int | None) -> None:
        self._runs, self._most = runs, most

    def __iter__(self) -> Iterator[Author]:
        for batch in self._runs.batches():
            if isinstance(batch, Prolific):
                yield Author(_OfProlific(batch, self._most))
                continue
            texts, classes = _unpacked(batch.rows, batch.lengths)
            start = 0
            for count in batch.documents.tolist():
                end = start + (count if self._most is None else min(count, self._most))
                yield Author(((texts[start:end], classes[start:end]),))
                start += count


class _OfProlific:
    """One user with many texts, read chunk by chunk."""

    def __init__(self, pieces: Prolific, most: int | None) -> None:
        self._pieces, self._most = pieces, most

    def __iter__(self) -> Iterator[Chunk]:
        left = math.inf if self._most is None else self._most
        for rows, lengths in self._pieces:
            if lengths.size > left:
                lengths = lengths[: int(left)]
                rows = rows[: int(lengths.sum())]
            yield _unpacked(rows, lengths)
            left -= lengths.size
            if left <= 0:
                return


# -- classes --------------------------------------------------------------------------------------------------


class _Codes:
    """The classes of documents."""

    def __init__(self, code: Code | None) -> None:
        self._code = code
        self._remembered: dict[tuple[str | None, ...], int] = {}

    def of(self, part: Part) -> npt.NDArray[np.int32]:
        count = len(part.texts)
        if not part.values:
            return np.full(count, 0 if self._code is None else self._new(()), dtype=np.int32)
        return np.fromiter(map(self._of_values, zip(*part.values, strict=True)), dtype=np.int32, count=count)

    def _of_values(self, values: tuple[Any, ...]) -> int:
        if not all(type(value) is str for value in values):  # 1, 1.0 and True would be one key
            values = tuple(map(spelled_label, values))
        code = self._remembered.get(values)
        if code is None:
            code = self._new(tuple(map(spelled_label, values)))
            if len(self._remembered) >= _VALUES_REMEMBERED:
                self._remembered.clear()
            if sum(len(value or "") for value in values) <= _LONGEST_REMEMBERED:
                self._remembered[values] = code
        return code

    def _new(self, values: tuple[str | None, ...]) -> int:
        assert self._code is not None
        return whole("the code of a class", self._code(values), least=OUTSIDE, most=MOST_CODES - 1)


# -- texts as numbers -----------------------------------------------------------------------------------------


def _packed(texts: Sequence[str | None], classes: npt.NDArray[np.int32]) -> tuple[Lengths, Rows]:
    """(documents,) how many numbers each has; (numbers,) of all: class and bytes filled in, then the text."""
    content: list[bytes] = []
    sizes: list[int] = []
    for text, of_class in zip(texts, classes.tolist(), strict=True):
        encoded = b"" if text is None else text.encode("utf-8", "surrogatepass")
        filled = -len(encoded) % 4
        content += (_HEADER.pack((of_class - OUTSIDE) << 2 | filled), encoded, b"\0\0\0"[:filled])
        sizes.append(len(encoded))
    lengths = (np.array(sizes, dtype=np.int64) + 3) // 4 + 1
    return lengths, np.frombuffer(b"".join(content), dtype="<i4").astype(np.int32, copy=False)


def _unpacked(rows: Rows, lengths: Lengths) -> Chunk:
    content = rows.astype("<i4", copy=False).tobytes()
    ends = np.cumsum(lengths)
    headers = rows[ends - lengths]
    starts = 4 * (ends - lengths) + 4
    stops = 4 * ends - (headers & 3)
    texts = [
        content[start:stop].decode("utf-8", "surrogatepass")
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]
    return texts, (headers >> 2) + np.int32(OUTSIDE)
