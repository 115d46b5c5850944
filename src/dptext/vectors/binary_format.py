"""Vectors as word2vec writes them in binary: a line "rows dimension", then a word, a space and float32 numbers, and
sometimes a line feed, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dptext.errors import DataError
from dptext.own_files import HashedFile
from dptext.vectors.blocks import blocks_of
from dptext.vectors.header import check_row_count, check_words, is_header, parse_header
from dptext.vectors.selection import Floats, Rows, RowStream
from dptext.vectors.word_vectors import WordVectors

__all__ = ["binary_rows", "write_binary"]

_LONGEST_HEADER = 64
_LONGEST_WORD = 1 << 16
_TEXT = frozenset(b"0123456789+-.eE \r\n")
_ROWS_AT_ONCE = 1024


def binary_rows(path: Path) -> RowStream:
    """The rows of a file in word2vec's binary format, numbered from 1.

    A word that is not UTF-8 (word2vec cuts long words inside a character) becomes None.

    Raises:
        DataError: no header, a word without an end, fewer or more rows than the header promises.
    """
    blocks = blocks_of(path)
    promised, dimension, data = _split_header(blocks, path.name)
    found = 0
    while found < promised:
        heads, matrix, used = _whole_rows(data, dimension, promised - found)
        if heads:
            if not found:
                _refuse_text(matrix[0], path.name)
            yield Rows(range(found + 1, found + len(heads) + 1), [_decoded(head) for head in heads], matrix)
            found += len(heads)
            data = data[used:]
            continue
        if len(data) > _LONGEST_WORD and b" " not in data[:_LONGEST_WORD]:
            raise DataError(
                f"{path.name}, row {found + 1}: expected a word, a space and {dimension} float32 numbers, got no "
                "space; is the header right?"
            )
        more = next(blocks, b"")
        if not more:
            check_row_count(promised, found, path.name, at_end=True)
        data += more
    if not promised:
        raise DataError(f"{path.name} holds no vectors: its header says so")
    while data:
        check_row_count(promised, found + bool(data.strip()), path.name, at_end=False)
        data = next(blocks, b"")


def write_binary(vectors: WordVectors, stream: HashedFile) -> None:
    """Write word2vec's binary format."""
    words = check_words(vectors.words)
    stream.write(b"%d %d\n" % (len(vectors), vectors.dimension))
    for start in range(0, len(words), _ROWS_AT_ONCE):
        rows = vectors.matrix[start : start + _ROWS_AT_ONCE].astype("<f4")
        pairs = zip(words[start : start + _ROWS_AT_ONCE], rows, strict=True)
        stream.write(b"".join(b"%s %s\n" % (word, row.tobytes()) for word, row in pairs))


def _split_header(blocks: Iterator[bytes], name: str) -> tuple[int, int, bytes]:
    data = b""
    while b"\n" not in data and len(data) < _LONGEST_HEADER and (more := next(blocks, b"")):
        data += more
    line, end, rest = data.partition(b"\n")
    line = line.rstrip()
    if not data:
        raise DataError(f'{name} holds no vectors: expected a line "rows dimension" and the rows')
    if not end or not is_header(line):
        raise DataError(
            f'{name}: expected word2vec\'s binary format, which begins with a line "rows dimension", got none; if it '
            "is text, let its name end in .txt or .vec"
        )
    return (*parse_header(line, name), rest)


def _whole_rows(data: bytes, dimension: int, most: int) -> tuple[list[bytes], Floats, int]:
    """Heads and matrix of the whole rows that the data begins with, and the bytes they take."""
    size = 4 * dimension
    heads: list[bytes] = []
    numbers: list[bytes] = []
    start = 0
    while len(heads) < most:
        space = data.find(b" ", start, start + _LONGEST_WORD)
        end = space + 1 + size
        if space < 0 or end > len(data):
            break
        heads.append(data[start:space])
        numbers.append(data[space + 1 : end])
        start = end
    matrix = np.frombuffer(b"".join(numbers), dtype="<f4").reshape(len(numbers), dimension)
    return heads, matrix.astype(np.float32, copy=False), start


def _decoded(head: bytes) -> str | None:
    try:
        return head.lstrip(b"\n").decode()  # the line feed of the row before
    except UnicodeDecodeError:
        return None


def _refuse_text(first: Floats, name: str) -> None:
    """Digits read as float32 are finite and small: nothing else would tell."""
    if _TEXT.issuperset(first.astype("<f4").tobytes()):
        raise DataError(f"{name}: expected word2vec's binary format, got text; let its name end in .txt or .vec")
