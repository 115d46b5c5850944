"""Vectors as text: a word and its numbers a line (GloVe), after a line "rows dimension" (word2vec, fastText .vec)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from dptext.errors import DataError
from dptext.own_files import HashedFile
from dptext.vectors.blocks import blocks_of
from dptext.vectors.header import check_row_count, check_words, is_header, parse_header
from dptext.vectors.selection import Floats, Rows, RowStream
from dptext.vectors.word_vectors import WordVectors

__all__ = ["text_rows", "write_text"]

_LONGEST_LINE = 1 << 25
_BOM = b"\xef\xbb\xbf"
_LINES_AT_ONCE = 256


def text_rows(path: Path) -> RowStream:
    """The rows of a text file, numbered by their lines.

    Raises:
        DataError: a line that is not a word and as many numbers as the others (the line is named); fewer or more
            rows than the header promises.
    """
    promised = dimension = None
    found = before = 0
    for lines in _line_blocks(path):
        numbers = [number for number, line in enumerate(lines, before + 1) if line]
        if numbers[:1] == [1] and is_header(lines[0]):
            promised, dimension = parse_header(lines[0], path.name)
            del numbers[0]
        filled = [lines[number - before - 1] for number in numbers]
        before += len(lines)
        if not filled:
            continue
        if dimension is None:
            dimension = _leading_dimension(filled[0], f"{path.name}, line {numbers[0]}")
        words, matrix = _parsed(filled, numbers, dimension, path.name)
        found += len(filled)
        check_row_count(promised, found, path.name, at_end=False)
        yield Rows(numbers, words, matrix)
    check_row_count(promised, found, path.name, at_end=True)
    if not found:
        raise DataError(f"{path.name} holds no vectors: expected a word and its numbers on each line")


def write_text(vectors: WordVectors, stream: HashedFile) -> None:
    """Write word2vec's text format; nine digits give back every float32."""
    words = check_words(vectors.words)
    stream.write(b"%d %d\n" % (len(vectors), vectors.dimension))
    row_of = (b" ".join([b"%s", *[b"%.9g"] * vectors.dimension]) + b"\n").__mod__
    for start in range(0, len(words), _LINES_AT_ONCE):
        stop = start + _LINES_AT_ONCE
        rows = zip(words[start:stop], vectors.matrix[start:stop].tolist(), strict=True)
        stream.write(b"".join(row_of((word, *numbers)) for word, numbers in rows))


def _line_blocks(path: Path) -> Iterator[list[bytes]]:
    """The lines without their ends, many at once; only a line feed ends one."""
    rest = b""
    first = True
    for block in blocks_of(path):
        if first and b"\x00" in block:
            raise DataError(
                f"{path.name}: expected text, got binary data; if it is word2vec's binary format, let its name end "
                "in .bin"
            )
        data = (rest + block).removeprefix(_BOM) if first else rest + block
        *lines, rest = data.split(b"\n")
        first = False
        if len(rest) > _LONGEST_LINE:
            raise DataError(
                f"{path.name}: expected a word and its numbers on each line, got a line of more than "
                f"{_LONGEST_LINE >> 20} MiB; is this a file of vectors?"
            )
        yield [line.rstrip() for line in lines]
    yield [rest.rstrip()]


def _parsed(lines: list[bytes], numbers: Sequence[int], dimension: int, name: str) -> tuple[Sequence[str], Floats]:
    """Words and matrix of some lines: all at once when every line is as expected, one by one to name those that are
    not, or to find words that hold a space."""
    parts = [line.partition(b" ") for line in lines]
    matrix = _matrix([rest for _, _, rest in parts], dimension)
    heads = [head for head, _, _ in parts]
    if matrix is None:
        heads, matrix = _parsed_singly(lines, numbers, dimension, name)
    words: list[str] = []
    with suppress(UnicodeDecodeError):  # such an error holds the word: none must be chained
        words = [head.decode() for head in heads]
    if not words:
        wrong = next(number for number, head in zip(numbers, heads, strict=True) if not _is_utf8(head))
        raise DataError(
            f"{name}, line {wrong}: expected UTF-8; convert the file (iconv -c leaves out what is not), or, if it is "
            "word2vec's binary format, let its name end in .bin"
        )
    return words, matrix


def _parsed_singly(lines: list[bytes], numbers: Sequence[int], dimension: int, name: str) -> tuple[list[bytes], Floats]:
    heads = []
    rows = []
    for number, line in zip(numbers, lines, strict=True):
        fields = line.split(b" ")
        first = 1
        while len(fields) - first > dimension and fields[first] and not _is_number(fields[first]):
            first += 1  # a word may hold spaces
        if len(fields) - first != dimension:
            raise DataError(
                f"{name}, line {number}: expected a word and {dimension} numbers, each after one space, got "
                f"{len(fields) - first}; was the file cut?"
            )
        row = _matrix([b" ".join(fields[first:])], dimension)
        if row is None:
            raise DataError(f"{name}, line {number}: expected a word and {dimension} numbers; repair the line")
        heads.append(b" ".join(fields[:first]))
        rows.append(row)
    return heads, np.concatenate(rows)


def _matrix(rows: list[bytes], dimension: int) -> Floats | None:
    """The numbers of some rows, None when one of them is not ``dimension`` numbers, each after one space."""
    if not all(rows):
        return None
    matrix = None
    data = io.BytesIO(b"\n".join(rows))
    with suppress(ValueError):  # such an error holds what stands in the file: none must be chained
        matrix = np.loadtxt(data, dtype=np.float32, delimiter=" ", comments=None, ndmin=2, encoding="latin-1")
    return matrix if matrix is not None and matrix.shape == (len(rows), dimension) else None


def _leading_dimension(line: bytes, place: str) -> int:
    """How many numbers end the first row: its word may look like a number itself, but stands first."""
    count = 0
    for field in reversed(line.split(b" ")[1:]):
        if not _is_number(field):
            break
        count += 1
    if count == 0:
        raise DataError(f"{place}: expected a word and its numbers, each after one space, got none")
    return count


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
