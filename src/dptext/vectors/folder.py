"""Vectors as a folder: ``vectors.safetensors`` (one (V, d) float32 tensor, "vectors"), ``words.txt`` (a word a line,
in the order of the rows) and ``config.json`` (format, version, source, sizes, fingerprint)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from dptext.errors import DataError, StorageError
from dptext.io.artifacts import CONFIG, open_stored, read_statement_of, read_stored
from dptext.io.atomic import atomic_folder, check_released
from dptext.privacy.statement import PrivacyStatement
from dptext.text.tokens import UNKNOWN
from dptext.vectors.word2vec import encoded_words
from dptext.vectors.word_vectors import RowStream, SourceRows, WordVectors, select_words

__all__ = ["announces_vectors", "check_folder", "load_folder", "save_folder", "write_folder"]

_FORMAT = "dptext-vectors"
_VERSION = 1
_WORDS, _TENSORS, _PRIVACY = "words.txt", "vectors.safetensors", "privacy.json"
_TENSOR = "vectors"
_ROWS_AT_ONCE = 4096


def save_folder(vectors: WordVectors, folder: Path) -> None:
    """Write a folder completely or not at all; `DataError` for a word with a line feed."""
    with atomic_folder(folder) as part:
        write_folder(vectors, part, name=folder)


def write_folder(
    vectors: WordVectors, part: Path, *, name: Path, further: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Write the files into an empty folder that is there."""
    for row, word in enumerate(vectors.words):
        if "\n" in word:
            raise DataError(f"row {row}: the word holds a line feed, which {_WORDS} cannot; leave it out")
    config = {
        "format": _FORMAT,
        "version": _VERSION,
        "source": vectors.source,
        "words": len(vectors),
        "dimension": vectors.dimension,
        "sha256": vectors.fingerprint,
    }
    if vectors.statement is not None:
        privacy = (vectors.statement.to_json() + "\n").encode()
        config["privacy_sha256"] = hashlib.sha256(privacy).hexdigest()
        (part / _PRIVACY).write_bytes(privacy)
    (part / _WORDS).write_bytes(b"".join(word + b"\n" for word in encoded_words(vectors.words)))
    (part / CONFIG).write_bytes((json.dumps({**config, **further}, indent=2) + "\n").encode())
    try:
        save_file({_TENSOR: vectors.matrix}, part / _TENSORS)
        (part / _TENSORS).chmod((part / _WORDS).stat().st_mode)  # it is to be shared like the others
    except SafetensorError:
        raise StorageError(f"cannot write {str(name)!r}: is there room on the disk?") from None


def check_folder(folder: Path) -> frozenset[str]:
    """Check words, vectors and statements against the configuration, and return the files of the statements."""
    main = load_folder(folder, limit=2, source=folder.name)
    found = set() if main.statement is None else {_PRIVACY}
    further = _config(folder, folder.name).get("statements", {})
    entries = list(further.values()) if isinstance(further, dict) else [None]
    for each in entries:
        file, digest = (each.get(name) for name in ("file", "sha256")) if isinstance(each, dict) else (None, None)
        if not isinstance(file, str) or Path(file).name != file:
            raise DataError(f"{folder.name}: expected files of statements in {CONFIG}, got no such; copy it again")
        if hashlib.sha256(read_stored(folder / file)).hexdigest() != digest:
            raise DataError(
                f"{folder.name}: {file} is not the statement that {CONFIG} announces; it was changed: get the folder "
                "again"
            )
        found.add(file)
    return frozenset(found)


def announces_vectors(folder: Path) -> bool:
    """True if the configuration of a folder is valid; nothing else is checked."""
    with suppress(DataError):
        return bool(_config(folder, folder.name))
    return False


def load_folder(folder: Path, *, limit: int | None, source: str) -> WordVectors:
    """Load the vectors of a folder; the fingerprint is checked over all rows, with a limit too."""
    config = _config(folder, source)
    statement = _statement(folder, config, source)
    words = _words(folder, source)
    if len(words) != config["words"]:
        raise DataError(
            f"{source}: expected as many lines in {_WORDS} as {CONFIG} says ({config['words']:,}), got "
            f"{len(words):,}; copy the folder again"
        )
    open_stored(folder / _TENSORS).close()  # of a pipe the library would wait for a writer
    try:
        with safe_open(folder / _TENSORS, framework="np") as tensors:
            tensor = _tensor(tensors, config, source)
            _check_fingerprint(words, tensor, config["sha256"], source)
            row = words.index(UNKNOWN) if UNKNOWN in words else None
            unknown = None if row is None else tensor[row : row + 1][0]
            stream = _rows(words, tensor)
            vectors = select_words(stream, place=f"{source}, row", source=source, limit=limit, unknown=unknown)
            if row is not None and len(vectors) == len(words):
                vectors = _with_unknown_at(row, vectors)
            return vectors if statement is None else vectors.with_statement(statement)
    except OSError as error:
        raise StorageError.of("read", folder / _TENSORS, error) from None
    except SafetensorError:
        pass  # raised below: this error may hold what stands in the file
    raise DataError(f"{source}: {_TENSORS} is broken or cut; copy the folder again")


def _with_unknown_at(row: int, vectors: WordVectors) -> WordVectors:
    """Move the unknown word to its row: the fingerprint in statements depends on the order of the words."""
    last = len(vectors) - 1
    if row == last:
        return vectors
    order = [*range(row), last, *range(row, last)]
    words = [vectors.words[each] for each in order]
    return WordVectors(words, vectors.matrix[order], source=vectors.source, copy=False)


def _config(folder: Path, source: str) -> dict[str, Any]:
    check_released(folder / CONFIG)
    missing = [name for name in (CONFIG, _WORDS, _TENSORS) if not (folder / name).exists()]
    if missing:
        raise DataError(
            f"{source}: expected a folder that dptext.save_vectors wrote, {' and '.join(missing)} is missing; give the "
            "path of a file, or a pair (words, matrix)"
        )
    config: Any = None
    with suppress(ValueError, RecursionError):
        config = json.loads(read_stored(folder / CONFIG))
    if not isinstance(config, dict) or config.get("format") != _FORMAT:
        raise DataError(f"{source}: expected {CONFIG} of the format {_FORMAT!r}, got something else; copy it again")
    if config.get("version") != _VERSION or isinstance(config["version"], bool):
        raise DataError(f"{source}: expected version {_VERSION} of the format, got another; upgrade dptext")
    if not all(type(config.get(name)) is int and config[name] > 0 for name in ("words", "dimension")) or not isinstance(
        config.get("sha256"), str
    ):
        raise DataError(f"{source}: expected words, dimension and sha256 in {CONFIG}, got no such; copy it again")
    return config


def _statement(folder: Path, config: dict[str, Any], source: str) -> PrivacyStatement | None:
    announced, there = config.get("privacy_sha256"), (folder / _PRIVACY).exists()
    if announced is None and not there:
        return None
    content = read_stored(folder / _PRIVACY) if there else b""
    if hashlib.sha256(content).hexdigest() != announced:
        raise DataError(
            f"{source}: {_PRIVACY} is not the statement that {CONFIG} announces; it was lost, added or changed: get "
            "the folder again"
        )
    return read_statement_of(content, source, _PRIVACY)


def _words(folder: Path, source: str) -> list[str]:
    words = None
    with suppress(UnicodeDecodeError):
        words = read_stored(folder / _WORDS).decode()
    if words is None:
        raise DataError(f"{source}: expected UTF-8 in {_WORDS}; copy the folder again")
    return words.removesuffix("\n").split("\n")


def _tensor(tensors: Any, config: dict[str, Any], source: str) -> Any:
    """The tensor, unread: slices of it are read from the file."""
    shape = (config["words"], config["dimension"])
    if list(tensors.keys()) != [_TENSOR]:
        raise DataError(f"{source}: expected one tensor {_TENSOR!r} in {_TENSORS}, got others; save the vectors again")
    tensor = tensors.get_slice(_TENSOR)
    if tensor.get_dtype() != "F32":
        raise DataError(f"{source}: expected float32 in {_TENSORS}, got another type; save the vectors again")
    if tuple(tensor.get_shape()) != shape:
        raise DataError(
            f"{source}: expected the shape {shape} in {_TENSORS}, as {CONFIG} says, got "
            f"{tuple(tensor.get_shape())}; copy the folder again"
        )
    return tensor


def _check_fingerprint(words: list[str], tensor: Any, expected: str, source: str) -> None:
    digest = hashlib.sha256("\n".join(words).encode())
    for rows in _rows(words, tensor):
        digest.update(rows.matrix.astype("<f4").tobytes())
    if digest.hexdigest() != expected:
        raise DataError(
            f"{source}: the words and vectors are not those of the fingerprint in {CONFIG}; they were changed or "
            "damaged: get the folder again"
        )


def _rows(words: list[str], tensor: Any) -> RowStream:
    for start in range(0, len(words), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(words))  # a slice beyond the end is an error here
        yield SourceRows(range(start + 1, stop + 1), words[start:stop], tensor[start:stop])
