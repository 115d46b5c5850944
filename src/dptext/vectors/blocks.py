"""The bytes of a vector file, unpacked, in blocks: plain, ``.gz`` and ``.zst``, in constant memory.

Files that are not vectors but often stand where vectors are looked for (pickles, fastText models, archives) are known
by their first bytes, and refused with what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from dptext.errors import DataError, ParameterError
from dptext.files.formats import OpenedFile

__all__ = ["blocks_of", "format_suffix"]

_BLOCK = 1 << 20
_PACKED = (".gz", ".zst")
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
    """The suffix that announces the format, in lower case, without that of the compression.

    Raises:
        ParameterError: the suffix of a pickle.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _PICKLES:
        raise ParameterError(f"{path.name}: expected a file of vectors, got a pickle; {_INSTEAD_OF_PICKLE}")
    return suffix


def blocks_of(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file; its suffix tells the compression.

    Raises:
        StorageError: the file cannot be read.
        DataError: the compressed data is broken or cut; the first bytes are those of another kind of file.
        MissingExtraError: a ``.zst`` file without the package zstandard.
    """
    packing = path.suffix.lower()
    file = OpenedFile(path, packing if packing in _PACKED else "")
    start = b""
    with closing(file):
        while block := _next_block(file):
            if not start:
                start = block[:8]
                _refuse_foreign(start, path)
            yield block


def _next_block(file: OpenedFile) -> bytes:
    with suppress(EOFError):
        return file.read(_BLOCK)
    raise DataError(f"{file.name}: the compressed data is broken or ends early; copy the file again")


def _refuse_foreign(start: bytes, path: Path) -> None:
    for magic, what, instead in _FOREIGN:
        if start.startswith(magic):
            raise DataError(f"{path.name}: expected a file of vectors, got {what}; {instead}")
