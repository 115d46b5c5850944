"""Many files by one name: a folder, or a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from dptext.errors import DataError, ParameterError, StorageError
from dptext.files.formats import file_format
from dptext.files.streams import STANDARD

__all__ = ["find_files"]

_OURS = (".privacy.json", ".rejects.jsonl", ".answers.jsonl")


def find_files(sources: Iterable[str | os.PathLike[str]], *, any_format: bool = False) -> list[tuple[Path, Path]]:
    """The files that names, folders and patterns stand for, sorted within each.

    A folder stands for the files in it and below whose suffix a reader knows; hidden files, and what dptext writes
    beside its outputs, do not count.

    Args:
        sources: files, folders, patterns (``*``, ``?``, ``**``), or ``"-"``.
        any_format: take files of any suffix that a pattern names (something else says their format).

    Returns:
        Pairs of a path and its name relative to its folder (or the folder that all matches of its pattern share).

    Raises:
        StorageError: a folder that cannot be read.
        DataError: nothing matches.
        ParameterError: one file twice.
    """
    found: list[tuple[Path, Path]] = []
    for source in sources:
        path = Path(source)
        if path == STANDARD:
            found.append((path, path))
        elif path.is_dir():
            found += [(each, each.relative_to(path)) for each in _below(path)]
        elif glob.has_magic(str(source)) and not path.exists():
            found += _matching(str(source), any_format)
        else:
            found.append((path, Path(path.name)))
    paths = [path for path, _ in found]
    if len({path.resolve() for path in paths}) < len(paths):
        raise ParameterError("a file is named twice among the inputs: its rows would be released twice")
    return found


def _below(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise StorageError.of("read", folder, error) from None

    files = [
        Path(at, name)
        for at, _, names in os.walk(folder, onerror=refuse)
        for name in names
        if _is_input(Path(at, name))
    ]
    files = [each for each in files if not any(part.startswith(".") for part in each.relative_to(folder).parts)]
    if not files:
        raise DataError(f"the folder {str(folder)!r} holds no file of a known format: name a file")
    return sorted(files)


def _matching(pattern: str, any_format: bool) -> list[tuple[Path, Path]]:
    files = [Path(each) for each in glob.glob(pattern, recursive=True)]  # noqa: PTH207  Path.glob takes no absolute pattern
    files = sorted(each for each in files if each.is_file() and (any_format or _is_input(each)))
    if not files:
        raise DataError(f"no file of a known format matches {pattern!r}: name a file or a folder")
    fixed = Path(os.path.commonpath([each.absolute().parent for each in files]))
    return [(each, each.absolute().relative_to(fixed)) for each in files]


def _is_input(path: Path) -> bool:
    if path.name.endswith(_OURS) or not path.is_file():
        return False
    try:
        file_format(path)
    except ParameterError:
        return False
    return True
