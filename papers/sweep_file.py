"""The rows of a sweep on disk: one line of JSON each, appended whole, so that a killed sweep goes on where it was.

The first line says which experiment it is: its name, what is held constant, the function (its name, a digest of its
code without comments, digests of the values that it holds), the versions of the software. Every row repeats the digest
of that line, so rows of another experiment are never taken for its own, not even where files were joined by hand. A row
counts once its line is whole and forced to the disk; a torn last line is cut off.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from papers.fingerprints import fingerprint_of

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io.atomic import lock, sync_folder

__all__ = ["Row", "Setting", "SweepFile", "cell_name", "checked_settings", "experiment_of", "read_rows"]

Setting: TypeAlias = str | int | float | bool | None

_FORMAT = 1
_HEAD = b'{"sweep": '


@dataclass(frozen=True)
class Row:
    """One cell of a sweep that was tried.

    Attributes:
        numbers: what came out; empty where it failed.
        seconds: how long it took.
        error: the class of the error where it failed (never its message, which may hold data).
    """

    settings: Mapping[str, Setting]
    seed: int
    numbers: Mapping[str, float]
    seconds: float
    error: str | None = None

    @property
    def cell(self) -> str:
        """What tells this row from the others of its sweep."""
        return cell_name(self.settings, self.seed)


def cell_name(settings: Mapping[str, Setting], seed: int) -> str:
    """Settings and seed, spelled in one way."""
    return json.dumps([dict(sorted(settings.items())), seed], sort_keys=True)


def checked_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Setting]:
    """Settings that can be written down and compared.

    Raises:
        ParameterError: a name that is no text, a value that is no text, finite number, truth value or None.
    """
    if not isinstance(settings, Mapping):
        raise ParameterError(f"{name} must map names to values, got {type(settings).__name__}")
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in settings.items()}
    for key, value in plain.items():
        if not isinstance(key, str):
            raise ParameterError(f"{name}: names must be text, got {type(key).__name__}")
        is_plain = value is None or isinstance(value, str | bool | int | float)
        if not is_plain or (isinstance(value, float) and not math.isfinite(value)):
            raise ParameterError(
                f"{name}: {key!r} must be text, a finite number, True, False or None, got {type(value).__name__}"
            )
    return plain


def experiment_of(
    run: Callable[..., Any],
    name: str,
    constants: Mapping[str, Any],
    packages: Sequence[str],
    not_compared: Sequence[str] = (),
) -> dict[str, Any]:
    """What decides about the rows besides settings and seed.

    Raises:
        ParameterError: a package that is not installed, a constant that is no plain value, or a value that the function
            holds and that cannot be compared.
    """
    result = fingerprint_of(run, not_compared)
    versions = {}
    for package in ("dptext", *packages):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            if package != "dptext":  # which may run from its source
                raise ParameterError(f"packages: {package!r} is not installed") from None
    return {
        "experiment": name,
        "constants": checked_settings("constants", constants),
        "function": result.name,
        "code": result.code,
        **({"holds": result.holds} if result.holds else {}),
        **({"not_compared": sorted(not_compared)} if not_compared else {}),
        "software": versions,
    }


class SweepFile:
    """The rows of one experiment (`experiment_of`), open for more: a context manager.

    With ``restart``, the file of another experiment is begun anew; its rows are lost. ``rows`` are those that are
    there, in the order of the file.

    Raises:
        RefusedError: the file is of another experiment; what differs is named.
        DataError: a damaged line; its number is named.
        StorageError: the file cannot be written, or another process writes it.
    """

    def __init__(self, path: Path, experiment: Mapping[str, Any], *, restart: bool = False) -> None:
        self.path = path
        self._digest = _digest(experiment)
        self.rows: list[Row] = []
        try:
            self._stream = path.open("a+b")
            self._stream.seek(0)
        except OSError as error:
            raise StorageError.of("open", path, error) from None
        try:
            if lock(self._stream.fileno()) is False:  # None on systems without such locks, which do without
                raise StorageError(f"another process is writing {str(path)!r}: wait for it, or stop it")
            lines = _whole_lines(self._stream.read(), path)
            if lines and (difference := _difference(_header(lines[0], path), experiment)):
                if not restart:
                    raise RefusedError(
                        f"{str(path)!r} holds rows of another experiment ({', '.join(difference)} differ): choose "
                        "another file, or restart=True to throw its rows away"
                    )
                lines = []
            self.rows = _parsed(lines, path)
            self._stream.seek(sum(len(line) for line in lines))
            self._stream.truncate()
            if not lines:
                self._append({"sweep": _FORMAT, "digest": self._digest, **experiment})
                sync_folder(path)
        except BaseException:
            self._stream.close()
            raise

    def add(self, row: Row) -> None:
        """Append a row; it counts when this returns."""
        entry = {"of": self._digest, "settings": dict(row.settings), "seed": row.seed, "seconds": row.seconds}
        self._append(entry | ({"numbers": dict(row.numbers)} if row.error is None else {"error": row.error}))
        self.rows.append(row)

    def _append(self, entry: Mapping[str, Any]) -> None:
        try:
            self._stream.write(json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise StorageError.of("write", self.path, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


def read_rows(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """The experiment of a file, and its rows; nothing is changed.

    Raises:
        StorageError: the file cannot be read.
        DataError: it is no file of a sweep, or a line is damaged.
    """
    try:
        lines = _whole_lines(path.read_bytes(), path)
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    if not lines:
        raise DataError(f"{path.name}: expected the file of a sweep, it is empty")
    return _header(lines[0], path), _parsed(lines, path)


def _parsed(lines: Sequence[bytes], path: Path) -> list[Row]:
    rows = []
    digest = _header(lines[0], path)["digest"] if lines else ""
    for number, line in enumerate(lines[1:], 2):
        try:
            entry = json.loads(line)
            numbers = {name: float(value) for name, value in entry.get("numbers", {}).items()}
            row = Row(dict(entry["settings"]), int(entry["seed"]), numbers, float(entry["seconds"]), entry.get("error"))
            is_ours = entry["of"] == digest
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise DataError(f"{path.name}: line {number} is damaged: delete it, and its cell is done again") from None
        if not is_ours:
            raise DataError(f"{path.name}: line {number} is a row of another experiment: delete it")
        rows.append(row)
    return rows


def _header(line: bytes, path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        digest = entry.pop("digest")
        is_ours = entry.pop("sweep") == _FORMAT and _digest(entry) == digest
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        is_ours = False
    if not is_ours:
        raise _foreign(path)
    return {**entry, "digest": digest}


def _difference(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of what differs."""
    if there["digest"] == _digest(now):
        return []
    keies = []
    for key in dict.fromkeys((*now, *there.keys() - {"digest"})):
        one, other = there.get(key), now.get(key)
        if isinstance(one or {}, dict) and isinstance(other or {}, dict) and (one or other):
            one, other = one or {}, other or {}
            keies += [f"{key}.{name}" for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]
        elif one != other:
            keies.append(key)
    return keies


def _digest(experiment: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(experiment, sort_keys=True).encode()).hexdigest()


def _whole_lines(data: bytes, path: Path) -> list[bytes]:
    """The lines that end; bytes after the last line feed were torn."""
    lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
    if not lines and not data.startswith(_HEAD[: len(data)]):  # somebody's own file is not to be cut
        raise _foreign(path)
    return lines


def _foreign(path: Path) -> DataError:
    return DataError(f"{path.name}: line 1 is not the head of a sweep of this version of dptext: choose another file")
