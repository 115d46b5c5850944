"""The first line of word2vec's formats, "rows dimension", and whether the file keeps what it promises."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dptext.errors import DataError

__all__ = ["LARGEST_DIMENSION", "check_row_count", "check_words", "is_header", "parse_header"]

LARGEST_DIMENSION = 1_000_000
_HEADER = re.compile(rb"[0-9]+ [0-9]+")
_DIGITS = 15


def is_header(line: bytes) -> bool:
    """Whether a first line (without its end) is two whole numbers."""
    return _HEADER.fullmatch(line) is not None


def parse_header(line: bytes, name: str) -> tuple[int, int]:
    """(rows, dimension). The rows are a promise only: nothing is allocated for them.

    Raises:
        DataError: numbers that no file of vectors has.
    """
    rows, dimension = (int(number) if len(number) <= _DIGITS else None for number in line.split(b" "))
    if rows is None or dimension is None or not 1 <= dimension <= LARGEST_DIMENSION:
        raise DataError(
            f"{name}, line 1: expected the number of rows and a dimension of 1 to {LARGEST_DIMENSION:,}, got numbers "
            "beyond that; is this a file of vectors?"
        )
    return rows, dimension


def check_row_count(promised: int | None, found: int, name: str, *, at_end: bool) -> None:
    """Compare the rows found so far, or in the whole file, with the header's.

    Raises:
        DataError: fewer or more than promised.
    """
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
    """The words in UTF-8, where each can stand before a space.

    Raises:
        DataError: an empty word, white space or NUL in a word, half a surrogate pair; the row (from 0) is named.
    """
    for row, word in enumerate(words):
        if not word or "\0" in word or any(map(str.isspace, word)):
            raise DataError(
                f"row {row}: the word is empty or holds white space or NUL, which word2vec's formats cannot; save to "
                "a folder"
            )
    return encoded_words(words)


def encoded_words(words: Sequence[str]) -> list[bytes]:
    """The words in UTF-8.

    Raises:
        DataError: half a surrogate pair, which is no text; the row (from 0) is named.
    """
    for row, word in enumerate(words):
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise DataError(f"row {row}: the word holds half a surrogate pair, which is no text; leave it out")
    return [word.encode() for word in words]
