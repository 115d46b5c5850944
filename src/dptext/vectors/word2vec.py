"""Vectors as word2vec writes them, read and written in constant memory: plain, ``.gz``, ``.zst`` and ``.xz``."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from dptext.errors import DataError, ParameterError
from dptext.io.atomic import HashedFile
from dptext.io.batches import OpenedFile
from dptext.vectors.word_vectors import Floats, RowStream, SourceRows, WordVectors

_BLOCK = 1 << 20
_LARGEST_DIMENSION = 1_000_000
_HEADER = re.compile(rb"[0-9]+ [0-9]+")
_DIGITS = 15
_PACKED = (".gz", ".zst", ".xz")
_PICKLES = (".kv", ".model", ".pkl", ".pickle", ".joblib")
_INSTEAD_OF_PICKLE = (
    "a pickle can run code when it is read: load it with the library that wrote it and pass the object "
    "(gensim's KeyedVectors), or save it in word2vec format"
)
_FOREIGN = (
    (b"\xba\x16\x4f\x2f", "a fastText model", "give the .vec file that fastText saves beside it"),
    (b"\x1f\x8b", "gzip", "let its name end in .gz"),
    (b"\x28\xb5\x2f\xfd", "Zstandard", "let its name end in .zst"),
    (b"PK\x03\x04", "a zip archive", "unpack it and give the file of vectors in it"),
    (b"\x93NUMPY", "a numpy array without words", "give a pair (words, matrix)"),
    (b"PAR1\x15", "parquet", "read it and give a pair (words, matrix)"),
    *((b"\x80" + bytes([protocol]), "a pickle", _INSTEAD_OF_PICKLE) for protocol in range(2, 6)),
)


def format_suffix(path: Path) -> str:
    """The suffix that announces the format, in lower case, without that of the compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _PICKLES:
        raise ParameterError(f"{path.name}: expected a file of vectors, got a pickle; {_INSTEAD_OF_PICKLE}")
    return suffix


def blocks_of(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file; its suffix tells the compression."""
    packing = path.suffix.lower()
    with io.BufferedReader(OpenedFile(path, packing if packing in _PACKED else "")) as file:
        block = _next_block(file)
        for magic, content, instead in _FOREIGN:
            if block.startswith(magic):
                raise DataError(f"{path.name}: expected a file of vectors, got {content}; {instead}")
        while block:
            yield block
            block = _next_block(file)


def _next_block(file: IO[bytes]) -> bytes:
    with suppress(EOFError):
        return file.read(_BLOCK)
    raise DataError(f"{file.name}: the compressed data is broken or ends early; copy the file again")


def _parsed_header(line: bytes, name: str) -> tuple[int, int]:
    """(rows, dimension). The rows are a promise only: nothing is allocated for them."""
    rows, dimension = (int(number) if len(number) <= _DIGITS else None for number in line.split(b" "))
    if rows is None or dimension is None or not 1 <= dimension <= _LARGEST_DIMENSION:
        raise DataError(
            f"{name}, line 1: expected the number of rows and a dimension of 1 to {_LARGEST_DIMENSION:,}, got numbers "
            "beyond that; is this a file of vectors?"
        )
    return rows, dimension


def _check_row_count(promised: int | None, found: int, name: str, *, at_end: bool) -> None:
    """Compare the rows found so far, or in the whole file, with the header's."""
    if promised is not None and at_end and found < promised:
        raise DataError(
            f"{name}: expected {promised:,} rows, as the header says, the file ends after row {found:,}; it was cut: "
            "copy it again"
        )
    if promised is not None and found > promised:
        raise DataError(
            f"{name}: expected {promised:,} rows, as the header says, the file holds more; correct the header or "
            "get the file again"
        )


def check_words(words: Sequence[str]) -> list[bytes]:
    """The words in UTF-8, where each can stand before a space."""
    for row, word in enumerate(words):
        if not word or "\0" in word or any(map(str.isspace, word)):
            raise DataError(
                f"row {row}: the word is empty or holds white space or NUL, which word2vec's formats cannot; save to "
                "a folder"
            )
    return encoded_words(words)


def encoded_words(words: Sequence[str]) -> list[bytes]:
    """The words in UTF-8."""
    for row, word in enumerate(words):
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise DataError(f"row {row}: the word holds half a surrogate pair, which is no text; leave it out")
    return [word.encode() for word in words]


_LONGEST_LINE = 1 << 25
_BOM = b"\xef\xbb\xbf"
_LINES_AT_ONCE = 256


def text_rows(path: Path) -> RowStream:
    """The rows of a text file, numbered by their lines."""
    promised = dimension = None
    found = before = 0
    for lines in _line_blocks(path):
        numbers = [number for number, line in enumerate(lines, before + 1) if line]
        if numbers[:1] == [1] and _HEADER.fullmatch(lines[0]):
            promised, dimension = _parsed_header(lines[0], path.name)
            del numbers[0]
        filled = [lines[number - before - 1] for number in numbers]
        before += len(lines)
        if not filled:
            continue
        if dimension is None:
            dimension = _leading_dimension(filled[0], f"{path.name}, line {numbers[0]}")
        words, matrix = _parsed(filled, numbers, dimension, path.name)
        found += len(filled)
        _check_row_count(promised, found, path.name, at_end=False)
        yield SourceRows(numbers, words, matrix)
    _check_row_count(promised, found, path.name, at_end=True)
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
    parts = [line.partition(b" ") for line in lines]
    matrix = _matrix([rest for _, _, rest in parts], dimension)
    heads = [head for head, _, _ in parts]
    if matrix is None:
        heads, matrix = _parsed_singly(lines, numbers, dimension, name)
    words: list[str] = []
    with suppress(UnicodeDecodeError):  # such an error holds the word: none must be chained
        words = [head.decode() for head in heads]
    if not words:
        wrong = next(number for number, head in zip(numbers, heads, strict=True) if _decoded(head) is None)
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
    if count > _LARGEST_DIMENSION:
        raise DataError(f"{place}: vectors must have at most {_LARGEST_DIMENSION:,} dimensions, got {count:,}")
    return count


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


_LONGEST_HEADER = 64
_LONGEST_WORD = 1 << 16
_TEXT = frozenset(b"0123456789+-.eE \r\n")
_ROWS_AT_ONCE = 1024


def binary_rows(path: Path) -> RowStream:
    """The rows of a file in word2vec's binary format, numbered from 1."""
    blocks = blocks_of(path)
    promised, dimension, data = _split_header(blocks, path.name)
    found = 0
    while found < promised:
        heads, matrix, used = _whole_rows(data, dimension, promised - found)
        if heads:
            if not found and _TEXT.issuperset(matrix[0].astype("<f4").tobytes()):
                raise DataError(  # digits read as float32 are finite and small: nothing else would tell
                    f"{path.name}: expected word2vec's binary format, got text; let its name end in .txt or .vec"
                )
            yield SourceRows(range(found + 1, found + len(heads) + 1), [_decoded(head) for head in heads], matrix)
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
            _check_row_count(promised, found, path.name, at_end=True)
        data += more
    if not promised:
        raise DataError(f"{path.name} holds no vectors: its header says so")
    while data:
        _check_row_count(promised, found + bool(data.strip()), path.name, at_end=False)
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
    if not end or not _HEADER.fullmatch(line):
        raise DataError(
            f'{name}: expected word2vec\'s binary format, which begins with a line "rows dimension", got none; if it '
            "is text, let its name end in .txt or .vec"
        )
    return (*_parsed_header(line, name), rest)


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
