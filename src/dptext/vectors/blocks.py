"""The bytes of a vector file, unpacked, in blocks: plain, ``.gz`` and ``.zst``, in constant memory.

Files that are not vectors but often stand where vectors are looked for (pickles, fastText models, archives) are known
by their first bytes, and refused with what to do instead.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from dptext.errors import DataError, MissingExtraError, ParameterError, StorageError

__all__ = ["blocks_of", "format_suffix", "needs_files_extra"]

_BLOCK = 1 << 20
_ZST_INPUT = 1 << 14  # zstandard unpacks all of what it is given: a small bite bounds the memory
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


def needs_files_extra(what: str, package: str) -> MissingExtraError:
    """The error for a package of the extra ``files`` that is not installed."""
    return MissingExtraError(f'{what} needs the package {package!r}; install it with: pip install "dptext[files]"')


def blocks_of(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file; its suffix tells the compression.

    Raises:
        StorageError: the file cannot be read.
        DataError: the compressed data is broken or cut; the first bytes are those of another kind of file.
        MissingExtraError: a ``.zst`` file without the package zstandard.
    """
    packing = path.suffix.lower()
    unpacked = {".gz": _gunzipped, ".zst": _unzst}.get(packing, _plain)
    broken: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error)
    if packing == ".zst":
        broken += (_zstandard(path).ZstdError,)
    first = True
    try:
        with path.open("rb") as stream:
            for block in unpacked(stream, path):
                if first:
                    _refuse_foreign(block, path)
                    first = False
                yield block
    except broken:
        raise DataError(f"{path.name}: the compressed data is broken or ends early; copy the file again") from None
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError.of("read", path, error) from None


def _refuse_foreign(start: bytes, path: Path) -> None:
    for magic, what, instead in _FOREIGN:
        if start.startswith(magic):
            raise DataError(f"{path.name}: expected a file of vectors, got {what}; {instead}")


def _plain(stream: IO[bytes], _path: Path) -> Iterator[bytes]:
    while block := stream.read(_BLOCK):
        yield block


def _gunzipped(stream: IO[bytes], _path: Path) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=stream) as unpacked:
        while block := unpacked.read(_BLOCK):
            yield block


def _unzst(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    # The stream reader of the package takes the end of a cut file for the end of the data; this object knows.
    unpacker = None
    while data := stream.read(_ZST_INPUT):
        while data:
            unpacker = unpacker or _zstandard(path).ZstdDecompressor().decompressobj()
            if block := unpacker.decompress(data):
                yield block
            data = b""
            if unpacker.eof:  # another frame may follow
                data, unpacker = unpacker.unused_data, None
    if unpacker is not None:
        raise EOFError


def _zstandard(path: Path) -> Any:
    try:
        return import_module("zstandard")
    except ImportError:
        pass
    raise needs_files_extra(path.name, "zstandard")
