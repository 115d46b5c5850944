"""A folder that holds one released thing: ``config.json`` announces its format and the digest of every other file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dptext.checks import path
from dptext.errors import DataError
from dptext.files.streams import file_digest, read_stored
from dptext.own_files import HashedFile, check_new_folder, check_released, whole_folder
from dptext.privacy.statement import PrivacyStatement, each_once

__all__ = ["CONFIG", "AnnouncedFolder", "announced_format", "read_statement_of", "refuse_unknown"]

CONFIG = "config.json"

Content = bytes | Callable[[HashedFile], None]
"""Of a file: its bytes, or what writes them, where there are too many to hold."""


@dataclass(frozen=True, kw_only=True)
class AnnouncedFolder:
    """A kind of folder.

    Attributes:
        format: what the configuration calls it.
        version: of the format.
        writer: what writes it, for messages.
        holds: what is in it, for messages.
        keys: what the configuration holds beside format, version, software and digests.
        files: that are always there; the first ones hold the arrays and may be large.
        further: that may be there.
        large: how many of the files may be large: they are digested, and read by whoever wants them.
    """

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
    ) -> None:
        """Write the folder whole or not at all.

        Raises:
            StorageError: it cannot be written.
        """
        with whole_folder(target, replace=replace) as part:
            digests = {name: _written(part / name, content) for name, content in files.items()}
            announced = {
                "format": self.format,
                "version": self.version,
                "software": software,
                **config,
                "sha256": digests,
            }
            _written(part / CONFIG, (json.dumps(announced, indent=2, allow_nan=False) + "\n").encode())

    def place(self, folder: str | os.PathLike[str], *, replace: bool = False) -> Path:
        """Where a folder of this kind will lie; raised before the work.

        Args:
            folder: as the caller named it.
            replace: whether one of this kind that is there may be replaced.

        Raises:
            ParameterError: something is there already: with ``replace``, something of another kind.
            StorageError: the folder around it is missing or read-only.
        """
        named = path("the folder", folder)
        return check_new_folder(named, replace=replace, is_ours=self.is_here, holds=self.holds)

    def is_here(self, place: Path) -> bool:
        """Whether a folder says that it is one of these, and holds nothing besides.

        Raises:
            OSError: it cannot be read.
        """
        inside = list(place.iterdir())
        names = {each.name for each in inside}
        whole = {CONFIG, *self.files} <= names <= {CONFIG, *self.files, *self.further}
        return whole and all(map(Path.is_file, inside)) and self.announces(place)

    def announces(self, place: Path) -> bool:
        """Whether the configuration of a folder says that it is one of these; nothing else is looked at.

        Raises:
            StorageError: it cannot be read.
        """
        return announced_format(place) == self.format

    def read(self, place: Path, source: str) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The configuration, and the content of all files but the large ones, each as the configuration announces it.

        Raises:
            DataError: a file is missing, or is none of them.
            StorageError: the folder cannot be read.
        """
        check_released(place / CONFIG)
        missing = [name for name in (CONFIG, *self.files) if not (place / name).exists()]
        if not place.is_dir():
            raise DataError(f"{source}: expected a folder that {self.writer} wrote, there is no such folder")
        if CONFIG in missing:  # another folder: which other files it lacks says nothing
            missing = [CONFIG]
        if missing:
            raise DataError(f"{source}: expected a folder that {self.writer} wrote, {' and '.join(missing)} is missing")
        config = _parsed(place)
        if config.get("format") != self.format:
            raise DataError(
                f"{source}: expected {CONFIG} of the format {self.format!r}, got something else; copy it again"
            )
        if config.get("version") != self.version or isinstance(config["version"], bool):
            raise DataError(f"{source}: expected version {self.version} of the format, got another; upgrade dptext")
        digests = config.get("sha256")
        if not isinstance(digests, dict):
            digests = {}
        refuse_unknown(source, config, ("format", "version", "software", *self.keys, "sha256"))
        refuse_unknown(source, digests, (*self.files, *self.further), "sha256.")
        large, others = self.files[: self.large], self.files[self.large :]
        there = [name for name in self.further if name in digests or (place / name).exists()]
        contents = {name: read_stored(place / name) for name in (*others, *there)}
        found = {name: file_digest(place / name) for name in large}
        found |= {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        for name, digest in found.items():
            if digest != digests.get(name):
                raise DataError(
                    f"{source}: {name} is not the file that {CONFIG} announces: it was cut, changed or mixed up; get "
                    "the folder again"
                )
        return config, contents


def announced_format(place: Path) -> str | None:
    """What the configuration of a folder calls its format; None: it has none, or it is no configuration.

    Raises:
        StorageError: it cannot be read.
    """
    found = _parsed(place).get("format") if (place / CONFIG).is_file() else None
    return found if isinstance(found, str) else None


def _parsed(place: Path) -> dict[str, Any]:
    config: Any = None
    with suppress(ValueError, RecursionError):
        config = json.loads(read_stored(place / CONFIG), object_pairs_hook=each_once)
    return config if isinstance(config, dict) else {}


def _written(place: Path, content: Content) -> str:
    """The digest of what is written to a new file."""
    with place.open("xb") as stream:
        file = HashedFile(stream)
        if callable(content):
            content(file)
        else:
            file.write(content)
        return file.digest()


def refuse_unknown(
    source: str, given: Iterable[str], known: Sequence[str] | Mapping[str, Any], where: str = ""
) -> None:
    """Refuse names that nothing reads: whoever reads the file would believe them.

    Raises:
        DataError: there is one.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise DataError(
            f"{source}: {CONFIG} holds {f'{where}{unknown[0]}'[:60]!r}, which this version does not know: the folder "
            "was changed, or a newer version of dptext wrote it; upgrade dptext, or get the folder again"
        )


def read_statement_of(content: bytes, source: str, name: str) -> PrivacyStatement:
    """The statement in a file of a folder.

    Raises:
        DataError: it is none.
    """
    with suppress(UnicodeDecodeError):
        return PrivacyStatement.from_json(content.decode())
    raise DataError(f"{source}: expected UTF-8 in {name}; get the folder again")
