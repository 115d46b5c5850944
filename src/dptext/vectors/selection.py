"""Which rows of a source are kept: words, each once, most frequent first, and the unknown word.

Numbers, addresses and punctuation leave (they have a treatment of their own, `dptext.text.tokens`), words that differ
in case or Unicode form become one (the first, most frequent), and ``"<unk>"`` is added with the mean as its vector
unless the source has it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError
from dptext.text.tokens import fold, is_single_word
from dptext.text.vocabulary import UNKNOWN
from dptext.vectors.word_vectors import WordVectors

__all__ = ["Floats", "RowStream", "Rows", "select_words"]

_logger = logging.getLogger(__name__)
Floats: TypeAlias = npt.NDArray[np.float32]


class Rows(NamedTuple):
    """Some rows of a source, in its order.

    Attributes:
        numbers: where each stands, for messages.
        words: what each belongs to; None where the bytes are not UTF-8, which no word of a text can be.
        matrix: (n, d) float32.
    """

    numbers: Sequence[int]
    words: Sequence[str | None]
    matrix: Floats


RowStream: TypeAlias = Generator[Rows, None, None]


def select_words(
    stream: RowStream, *, place: str, source: str, limit: int | None = None, unknown: Floats | None = None
) -> WordVectors:
    """The words among the rows of a stream; no more of it is read than the limit asks for.

    Args:
        stream: the rows, read block by block.
        place: what a row is called in messages, before its number.
        source: the name for statements.
        limit: at most this many words, the unknown word included. Reading stops at the first word too many and not
            before, so that the number of words found, given as the limit, finds the same words again.
        unknown: (d,) vector of ``"<unk>"``, for sources that know it beforehand.

    Raises:
        DataError: NaN or infinity, a word that stands twice in the same form (rows are named); no words at all.
    """
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
                    continue  # though it stood twice, nothing would hang on which counts
                elif len(kept) == room:
                    full, end = True, row
                    break
                else:
                    kept[name] = None
                    chosen.append(row)
                first = seen.setdefault(word, numbers[row])
                if first != numbers[row]:
                    raise DataError(
                        f"{place}s {first} and {numbers[row]} hold the same word: remove the one whose vector is wrong"
                    )
            _check_finite(matrix[:end], numbers, place)
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
    table = _with_unknown(parts, len(kept), unknown)
    return WordVectors([*kept, UNKNOWN], table, source=source, copy=False)


def _with_unknown(parts: list[Floats], count: int, unknown: Floats | None) -> Floats:
    table = np.empty((count + 1, parts[0].shape[1]), dtype=np.float32)
    start = 0
    parts.reverse()
    while parts:  # each part is let go when it is copied: one table in memory, not two
        part = parts.pop()
        table[start : start + len(part)] = part
        start += len(part)
    table[-1] = table[:-1].mean(axis=0, dtype=np.float64) if unknown is None else unknown
    return table


def _check_finite(matrix: Floats, numbers: Sequence[int], place: str) -> None:
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        raise DataError(
            f"{place} {numbers[int(np.argmin(finite))]}: the vector holds NaN or infinity; remove or repair the row"
        )
