"""Measure every setting with every seed, one row per cell in a file; an interrupted sweep resumes.

    rows = sweep(measure, grid(epsilon=[1.0, 2.0, 4.0]), seeds=range(5), path="tem.jsonl", name="tem").rows

``measure(settings, seed)`` returns a dict of numbers. Finished cells are not measured again; the same call with more
settings or seeds adds rows. Everything else that determines the numbers (data, vectors, number of epochs) belongs in
``constants``. A file with other constants, other code of ``measure`` or other versions of the software is refused.
Code that ``measure`` calls is not compared.

Every cell uses one thread for BLAS and OpenMP, so that results do not depend on the number of cores. The first error
ends the sweep; finished rows stay in the file.

The file has one JSON object per line. The first line describes the experiment; each row repeats its digest, so that
rows of two experiments cannot mix. An incomplete last line is cut off.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import math
import os
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io.atomic import lock
from dptext.validation import check_float

Settings: TypeAlias = Mapping[str, str | int | float | bool | None]
Measure: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, float]]

_FORMAT = 1
_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Row:
    """The numbers of one setting and seed, and their running time in seconds."""

    settings: Settings
    seed: int
    numbers: Mapping[str, float]
    seconds: float

    @property
    def key(self) -> str:
        return _key(self.settings, self.seed)


@dataclass(frozen=True)
class Sweep:
    """Rows, and the header of their file: name, constants, function and versions of the software."""

    rows: tuple[Row, ...]
    experiment: Mapping[str, Any]


def grid(**settings: Sequence[Any]) -> list[dict[str, Any]]:
    """Return every combination of named values.

    >>> grid(mechanism=["tem", "madlib"], epsilon=[1.0, 5.0])[1:3]
    [{'mechanism': 'tem', 'epsilon': 5.0}, {'mechanism': 'madlib', 'epsilon': 1.0}]
    """
    return [dict(zip(settings, values, strict=True)) for values in product(*settings.values())]


def sweep(
    measure: Measure,
    settings: Iterable[Mapping[str, Any]],
    seeds: Iterable[int],
    *,
    path: Path,
    name: str,
    constants: Mapping[str, Any] | None = None,
) -> Sweep:
    """Measure every setting with every seed that the file lacks, and return all these rows in their order.

    Args:
        measure: (settings, seed) -> finite numbers by name.
        settings: distinct, with the same names; values are text, finite numbers, truth values or None.
        seeds: distinct integers.
        path: of the file (``.jsonl``).
        name: of the experiment.
        constants: everything else that determines the numbers.
    """
    seeds = list(seeds)
    if any(isinstance(seed, bool) or not isinstance(seed, int | np.integer) for seed in seeds):
        raise ParameterError("seeds must be integers")
    cells = [(_plain("settings", setting), int(seed)) for setting in settings for seed in seeds]
    if len({_key(*cell) for cell in cells}) < len(cells) or len({frozenset(setting) for setting, _ in cells}) != 1:
        raise ParameterError("settings and seeds must be distinct, not empty, and all settings have the same names")
    with _SweepFile(path, _describe(measure, name, constants or {})) as file:
        for place, cell in enumerate(cells, 1):
            if _key(*cell) not in file.rows:
                row = _measure(measure, *cell)
                file.add(row)
                values = ", ".join(f"{key} {value}" for key, value in row.settings.items() if value is not None)
                print(f"{place} of {len(cells)}: {values}, seed {row.seed}, {row.seconds:.0f} s", flush=True)
        return Sweep(tuple(file.rows[_key(*cell)] for cell in cells), file.experiment)


class Parts:
    """Parts of an experiment: a method each, whose cells are measured into files of one folder."""

    experiment: ClassVar[str]
    out: Path
    constants: Mapping[str, Any] = MappingProxyType({})

    def measure_parts(self, parts: Iterable[str]) -> None:
        """Measure the parts with these names."""
        for part in parts:
            getattr(self, part)()

    def cells(
        self,
        name: str,
        measure: Measure,
        settings: Sequence[dict[str, Any]],
        seeds: Iterable[int] = (1,),
        **constants: Any,
    ) -> None:
        """Measure the settings of ``OUT/name.jsonl`` with every seed."""
        constants = {**self.constants, **constants}
        path = self.out / f"{name}.jsonl"
        sweep(measure, settings, seeds, path=path, name=f"{self.experiment} {name}", constants=constants)


def read_sweep(path: Path) -> Sweep:
    """Return all rows of a file; raise `DataError` if it is damaged or no file of a sweep."""
    try:
        lines = _complete_lines(path.read_bytes(), path)
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    if not lines:
        raise _not_a_sweep(path)
    return Sweep(tuple(_parse(lines, path).values()), _header(lines[0], path))


def _measure(measure: Measure, settings: Settings, seed: int) -> Row:
    start = time.perf_counter()
    with threadpool_limits(limits=1):
        numbers = measure(dict(settings), seed)
    if not isinstance(numbers, Mapping) or not numbers:
        raise ParameterError(f"measure must return a dict of numbers, got {type(numbers).__name__}")
    checked = {key: check_float(f"number {key!r}", value) for key, value in numbers.items()}
    return Row(settings, seed, checked, round(time.perf_counter() - start, 3))


def _plain(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings or constants as JSON values; raise `ParameterError` for any other value."""
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in settings.items()}
    for key, value in plain.items():
        is_plain = value is None or isinstance(value, str | bool | int | float)
        if not is_plain or (isinstance(value, float) and not math.isfinite(value)):
            raise ParameterError(f"{name}: {key!r} must be text, a finite number, True, False or None, got {value!r}")
    return plain


def _key(settings: Settings, seed: int) -> str:
    return json.dumps([dict(sorted(settings.items())), seed])


# -- the file --------------------------------------------------------------------------------------------------


def _describe(measure: Measure, name: str, constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of an experiment: name, constants, function, digest of its code, versions."""
    function: Any = measure
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__func__", function)
    source = ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(function))))  # without comments and layout
    software = {}
    for package in ("dptext", "numpy", "scikit-learn", "torch"):
        try:
            software[package] = version(package)
        except PackageNotFoundError:  # dptext may run from its source
            continue
    return {
        "experiment": name,
        "constants": _plain("constants", constants),
        "function": function.__qualname__,
        "code": hashlib.sha256(source.encode()).hexdigest(),
        "software": software,
    }


class _SweepFile:
    """The rows of one experiment, open for more; a context manager.

    Raises `RefusedError` for the file of another experiment, `DataError` for a damaged line, and `StorageError` if the
    file cannot be written or another process writes it.
    """

    def __init__(self, path: Path, experiment: Mapping[str, Any]) -> None:
        self.path, self.experiment = path, experiment
        self._digest = _digest(experiment)
        try:
            self._stream = path.open("a+b")
        except OSError as error:
            raise StorageError.of("open", path, error) from None
        try:
            if lock(self._stream.fileno()) is False:  # None on systems without such locks
                raise StorageError(f"another process is writing {str(path)!r}: wait for it, or stop it")
            self._stream.seek(0)
            lines = _complete_lines(self._stream.read(), path)
            if lines and (different := _differences(_header(lines[0], path), experiment)):
                raise RefusedError(
                    f"{str(path)!r} has rows of another experiment ({', '.join(different)} differ): "
                    "choose another file, or delete it"
                )
            self.rows = _parse(lines, path)
            self._stream.truncate(sum(len(line) for line in lines))
            if not lines:
                self._append({"sweep": _FORMAT, "digest": self._digest, **experiment})
        except BaseException:
            self._stream.close()
            raise

    def add(self, row: Row) -> None:
        """Append a row and force it to the disk."""
        fields = {"settings": dict(row.settings), "seed": row.seed, "seconds": row.seconds}
        self._append({"of": self._digest, **fields, "numbers": dict(row.numbers)})
        self.rows[row.key] = row

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


def _parse(lines: Sequence[bytes], path: Path) -> dict[str, Row]:
    rows = {}
    digest = _header(lines[0], path)["digest"] if lines else ""
    for number, line in enumerate(lines[1:], 2):
        try:
            entry = json.loads(line)
            numbers = {name: float(value) for name, value in entry["numbers"].items()}
            row = Row(dict(entry["settings"]), int(entry["seed"]), numbers, float(entry["seconds"]))
            is_foreign = entry["of"] != digest
        except _DAMAGED:
            raise DataError(f"{path.name}: line {number} is damaged: delete it to measure its cell again") from None
        if is_foreign:
            raise DataError(f"{path.name}: line {number} is a row of another experiment: delete it")
        rows[row.key] = row
    return rows


def _header(line: bytes, path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        digest = entry.pop("digest")
        if entry.pop("sweep") == _FORMAT and _digest(entry) == digest:
            return {**entry, "digest": digest}
    except _DAMAGED:
        pass
    raise _not_a_sweep(path)


def _differences(stored: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Return the names of the entries of two headers that differ."""
    names = []
    for key, value in current.items():
        other = stored.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            names += [
                f"{key}.{name}" for name in sorted(value.keys() | other.keys()) if value.get(name) != other.get(name)
            ]
        elif value != other:
            names.append(key)
    return names


def _digest(experiment: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(experiment, sort_keys=True).encode()).hexdigest()


def _complete_lines(data: bytes, path: Path) -> list[bytes]:
    lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
    if not lines and not data.startswith(b'{"sweep": '[: len(data)]):  # any other file stays unchanged
        raise _not_a_sweep(path)
    return lines


def _not_a_sweep(path: Path) -> DataError:
    return DataError(f"{path.name}: line 1 is not the header of a sweep of this version of dptext: choose another file")
