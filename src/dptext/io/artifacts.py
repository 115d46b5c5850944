"""Saved folders: ``config.json`` has the format and the SHA-256 of every other file; arrays are safetensors files."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import filterfalse
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from dptext.errors import DataError, ParameterError, StorageError, storage_errors
from dptext.io.atomic import HashedFile, atomic_folder, check_new_folder, check_released
from dptext.io.batches import open_stored
from dptext.privacy.statement import PrivacyStatement, each_once
from dptext.validation import check_path

CONFIG = "config.json"

Array: TypeAlias = npt.NDArray[Any]
Content = bytes | Callable[[HashedFile], None]
"""Bytes of a file, or a function that writes them."""

_KINDS = "iuf"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # end of Rust's messages about disk errors


@dataclass(frozen=True, kw_only=True)
class SavedFolder:
    """Kind of saved folder; ``further`` are patterns of optional files."""

    format: str
    version: int
    writer: str
    holds: str
    keys: tuple[str, ...]
    files: tuple[str, ...]
    further: tuple[str, ...] = ()
    large: int = 1

    def write(
        self,
        target: Path,
        config: Mapping[str, Any],
        files: Mapping[str, Content],
        *,
        software: str | None,
        replace: bool = False,
        extra_files: Mapping[str, Content] = MappingProxyType({}),
    ) -> None:
        """Write the folder completely or not at all; ``extra_files`` have no digest and may be changed later."""
        with atomic_folder(target, replace=replace) as part:
            digests = {name: _write(part / name, content) for name, content in files.items()}
            announced = {
                "format": self.format,
                "version": self.version,
                "software": software,
                **config,
                "sha256": digests,
            }
            config_file = (json.dumps(announced, indent=2, allow_nan=False) + "\n").encode()
            for name, content in {**extra_files, CONFIG: config_file}.items():
                _write(part / name, content)

    def place(self, folder: str | os.PathLike[str], *, replace: bool = False) -> Path:
        """Return the path of a folder to be written; see `check_new_folder`."""
        named = check_path("the folder", folder)
        return check_new_folder(named, replace=replace, is_ours=self.is_here, holds=self.holds)

    def is_here(self, place: Path) -> bool:
        """Return True if a folder is of this kind and contains no other files."""
        inside = list(place.iterdir())
        names = {file.name for file in inside}
        complete = names >= {CONFIG, *self.files} and not any(map(self._is_unknown, names - {CONFIG}))
        return complete and all(map(Path.is_file, inside)) and self.announces(place)

    def _is_unknown(self, name: str) -> bool:
        return name not in self.files and not any(fnmatchcase(name, pattern) for pattern in self.further)

    def announces(self, place: Path) -> bool:
        """Return True if the configuration of a folder states this format; check nothing else."""
        return announced_format(place) == self.format

    def read(self, place: Path, source: str) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the configuration and the contents of all small files, after checking every digest."""
        check_released(place / CONFIG)
        missing = [name for name in (CONFIG, *self.files) if not (place / name).exists()]
        if not place.is_dir():
            raise DataError(f"{source} does not exist: expected a folder written by {self.writer}")
        if CONFIG in missing:  # not such a folder: its other missing files are irrelevant
            missing = [CONFIG]
        if missing:
            are = "is" if len(missing) == 1 else "are"
            raise DataError(
                f"{source}: {' and '.join(missing)} {are} missing. Expected a folder written by {self.writer}"
            )
        config = _read_config(place)
        if config.get("format") != self.format:
            raise DataError(f"{source}: {CONFIG} is not of the format {self.format!r}. Copy the folder again")
        if config.get("version") != self.version or isinstance(config["version"], bool):
            raise DataError(
                f"{source}: the folder has another version of the format than {self.version}. Upgrade dptext"
            )
        digests = config.get("sha256")
        if not isinstance(digests, dict):
            digests = {}
        refuse_unknown(source, config, ("format", "version", "software", *self.keys, "sha256"))
        further = set(filterfalse(self._is_unknown, {*digests, *(file.name for file in place.iterdir())}))
        refuse_unknown(source, digests, (*self.files, *further), "sha256.")
        large, small = self.files[: self.large], self.files[self.large :]
        present = sorted(name for name in {*small, *further} - {*large} if (place / name).exists())
        contents = {name: read_stored(place / name) for name in present}
        actual = {name: file_digest(place / name) for name in large}
        actual |= {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        for name in {**digests, **actual}:
            if actual.get(name) != digests.get(name):
                raise DataError(f"{source}: {name} does not match its digest in {CONFIG}. Get the folder again")
        return config, contents


def announced_format(place: Path) -> str | None:
    """Return the format in the configuration of a folder, if any."""
    name = _read_config(place).get("format") if (place / CONFIG).is_file() else None
    return name if isinstance(name, str) else None


def _read_config(place: Path) -> dict[str, Any]:
    config: Any = None
    with suppress(ValueError, RecursionError):
        config = json.loads(read_stored(place / CONFIG), object_pairs_hook=each_once)
    return config if isinstance(config, dict) else {}


def _write(place: Path, content: Content) -> str:
    with place.open("xb") as stream:
        file = HashedFile(stream)
        if callable(content):
            content(file)
        else:
            file.write(content)
        return file.digest()


def refuse_unknown(
    source: str, names: Iterable[str], known: Sequence[str] | Mapping[str, Any], where: str = ""
) -> None:
    """Raise `DataError` for a field that this version does not know."""
    unknown = sorted(set(names) - set(known))
    if unknown:
        name = f"{where}{unknown[0]}"[:60]
        raise DataError(f"{source}: {CONFIG} has an unknown field {name!r}. Upgrade dptext, or get the folder again")


def read_statement_of(content: bytes, source: str, name: str) -> PrivacyStatement:
    """Parse the privacy statement in a file of a folder; raise `DataError` if it is invalid."""
    with suppress(UnicodeDecodeError):
        return PrivacyStatement.from_json(content.decode())
    raise DataError(f"{source}: {name} is not UTF-8. Get the folder again")


def tensor_bytes(tensors: Mapping[str, npt.ArrayLike], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return a safetensors file of named numeric arrays; raise `ParameterError` for other types."""
    arrays = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS or array.dtype.itemsize > 8 or name == "__metadata__":
            raise ParameterError(
                f"the array {name!r} cannot be stored: expected integers or floating-point numbers of at most 64 bits "
                f"under a name other than '__metadata__', got {array.dtype}"
            )
    return save(arrays, dict(metadata) if metadata else None)


def read_tensors(path: str | os.PathLike[str], *, source: str) -> tuple[dict[str, Array], dict[str, str]]:
    """Load the read-only arrays and the metadata of a safetensors file; ``source`` is its name in errors."""
    open_stored(path).close()  # safetensors would wait for the writer of a pipe
    try:
        with safe_open(path, framework="np", backend="pread") as file:
            arrays: dict[str, Array] = file.get_tensors()
            metadata: dict[str, str] = file.metadata() or {}
        if all(array.dtype.kind in _KINDS for array in arrays.values()):
            for array in arrays.values():
                array.setflags(write=False)
            return arrays, metadata
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    except (SafetensorError, AttributeError, TypeError, ValueError) as error:  # numpy may lack the type or shape
        failed = _OS_ERROR.search(str(error))  # the rest of the message may quote the file
    else:
        failed = None
    if failed is not None:
        number = int(failed[1])
        raise StorageError.of("read", path, OSError(number, os.strerror(number)))
    raise DataError(f"{source} is not a complete safetensors file. Get it again")


def digest_of_parts(digests: Mapping[str, str]) -> str:
    """Return the digest of a folder of parts (as Spark writes it), from the digests of its files by name."""
    lines = "".join(f"{name}\0{digests[name]}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def folder_digest(folder: Path) -> str:
    """Return `digest_of_parts` of the files of a folder whose names do not begin with a dot or ``_``."""
    parts = [file for file in folder.iterdir() if file.is_file() and not file.name.startswith(("_", "."))]
    return digest_of_parts({file.name: file_digest(file) for file in parts})


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the hexadecimal SHA-256 digest of a file; raise `StorageError` if it cannot be read."""
    with storage_errors("read", path), open_stored(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_stored(path: str | os.PathLike[str]) -> bytes:
    """Read all bytes of a regular file; see `open_stored`."""
    with storage_errors("read", path), open_stored(path) as stream:
        return stream.read()
