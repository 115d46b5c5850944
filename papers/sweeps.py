"""Measure every setting with every seed, one row per cell in a file; an interrupted sweep resumes.

Finished cells are not measured again; the same call with more settings or seeds adds rows. A file with other constants,
other code of the measured function or other versions of the software is refused; code that the function calls is not
compared. Every cell uses one thread for BLAS and OpenMP, so that results do not depend on the number of cores.

The file has one JSON object per line: the first describes the experiment, the others are rows. An incomplete last line
is cut off.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.validation import check_float

Settings: TypeAlias = Mapping[str, str | int | float | bool | None]
Measure: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, float]]

_FORMAT = 1


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

    Settings are distinct, with the same names; their values are text, finite numbers, truth values or None. ``measure``
    returns finite numbers. ``constants`` are everything else that determines them.
    """
    seeds = [int(seed) for seed in seeds]
    cells = [(_plain("settings", setting), seed) for setting in settings for seed in seeds]
    if len({_key(*cell) for cell in cells}) < len(cells) or len({frozenset(setting) for setting, _ in cells}) != 1:
        raise ParameterError("settings and seeds must be distinct, not empty, and all settings have the same names")
    header = _describe(measure, name, constants or {})
    with path.open("a+b") as stream:
        stream.seek(0)
        lines = _complete_lines(stream.read(), path)
        if lines:
            stored = _header(lines[0], path)
            if different := [entry for entry, value in header.items() if stored.get(entry) != value]:
                raise RefusedError(
                    f"{str(path)!r} has rows of another experiment ({', '.join(different)} differ): choose another "
                    "file, or delete it"
                )
        stream.truncate(sum(map(len, lines)))
        rows = {row.key: row for row in _rows(lines, path)}

        def append(entry: Mapping[str, Any]) -> None:
            stream.write(json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

        if not lines:
            append({"sweep": _FORMAT, **header})
        for place, cell in enumerate(cells, 1):
            if _key(*cell) not in rows:
                start = time.perf_counter()
                with threadpool_limits(limits=1):
                    numbers = measure(dict(cell[0]), cell[1])
                if not isinstance(numbers, Mapping) or not numbers:
                    raise ParameterError(f"measure must return a dict of numbers, got {type(numbers).__name__}")
                checked = {key: check_float(f"number {key!r}", value) for key, value in numbers.items()}
                row = rows[_key(*cell)] = Row(*cell, checked, round(time.perf_counter() - start, 3))
                append(asdict(row))
                values = ", ".join(f"{key} {value}" for key, value in row.settings.items() if value is not None)
                print(f"{place} of {len(cells)}: {values}, seed {row.seed}, {row.seconds:.0f} s", file=sys.stderr)
    return Sweep(tuple(rows[_key(*cell)] for cell in cells), header)


class Parts:
    """Parts of an experiment: a method each, whose cells are measured into files of one folder."""

    experiment: ClassVar[str]
    out: Path
    constants: Mapping[str, Any] = MappingProxyType({})

    def cells(
        self,
        name: str,
        measure: Measure,
        settings: Sequence[dict[str, Any]],
        seeds: Iterable[int] = (1,),
        **constants: Any,
    ) -> None:
        constants = {**self.constants, **constants}
        path = self.out / f"{name}.jsonl"
        sweep(measure, settings, seeds, path=path, name=f"{self.experiment} {name}", constants=constants)


def read_sweep(path: Path) -> Sweep:
    """Return all rows of a file; raise `DataError` if it is damaged or no file of a sweep."""
    lines = _complete_lines(path.read_bytes(), path)
    return Sweep(tuple(_rows(lines, path)), _header(lines[0] if lines else b"", path))


def _plain(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings or constants as JSON values; raise `ParameterError` for any other value."""
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in settings.items()}
    for key, value in plain.items():
        if not isinstance(value, str | bool | int | float | None):
            raise ParameterError(f"{name}: {key!r} must be text, a number, True, False or None, got {value!r}")
    return plain


def _key(settings: Settings, seed: int) -> str:
    return json.dumps([dict(sorted(settings.items())), seed], allow_nan=False)


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


def _complete_lines(data: bytes, path: Path) -> list[bytes]:
    """Return the complete lines; raise `DataError` before anything is cut off from a file that is no sweep."""
    lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
    if data and not data.startswith(b'{"sweep": '[: len(data)]):
        raise DataError(f"{path.name} is not the file of a sweep: choose another file")
    return lines


def _header(line: bytes, path: Path) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(line)
        if header["sweep"] == _FORMAT and isinstance(header["constants"], dict):
            return header
    except (ValueError, KeyError):
        pass
    raise DataError(f"{path.name}: line 1 is not the header of a sweep of this version of dptext")


def _rows(lines: Sequence[bytes], path: Path) -> Iterable[Row]:
    for number, line in enumerate(lines[1:], 2):
        try:
            entry = json.loads(line)
            yield Row(entry["settings"], entry["seed"], entry["numbers"], entry["seconds"])
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path.name}: line {number} is damaged: delete it to measure its cell again") from None
