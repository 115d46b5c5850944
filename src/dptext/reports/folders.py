"""What a folder is that somebody names to a command: one of those that dptext writes, or a folder of private files."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from dptext.errors import StorageError
from dptext.io.artifacts import announced_format
from dptext.release.release import statement_path


class FolderKind(StrEnum):
    """Kinds of folders; the value of those that announce themselves is what they call their format."""

    VECTORS = "dptext-vectors"
    DESCRIPTION = "dptext-text-distribution"
    BANK = "dptext-text-bank"
    DEVICE = "dptext-device-encoder"
    ONE_FILE = "parts of one private file, its statement beside the folder"
    FILES = "private files, each with its statement"
    OTHER = "something else"


def folder_kind(folder: Path) -> FolderKind:
    """What a folder is; nothing but the configuration and the names in it is looked at."""
    with suppress(StorageError, OSError):
        if folder.name and statement_path(folder).exists():
            return FolderKind.ONE_FILE
        announced = announced_format(folder)
        for kind in (FolderKind.VECTORS, FolderKind.DESCRIPTION, FolderKind.BANK, FolderKind.DEVICE):
            if announced == kind:
                return kind
        if private_files(folder):
            return FolderKind.FILES
    return FolderKind.OTHER


def private_files(folder: Path) -> list[Path]:
    """What lies in a folder with a statement beside it, by name; nothing of folders in it."""
    try:
        return sorted(each for each in folder.iterdir() if statement_path(each).is_file())
    except OSError as error:
        raise StorageError.of("read", folder, error) from None


def other_than_audited(folder: Path, kind: FolderKind) -> str:
    """Why there is nothing to audit in a folder of this kind, and what to run instead."""
    if kind is FolderKind.BANK:
        return (
            f"{_shown(folder)} is a bank of public texts: nothing is promised to who wrote them. Audit what was made "
            f"with it: dptext audit PRIVATE --bank {_shown(folder)}"
        )
    return _other(folder)


def other_than_reported(folder: Path, kind: FolderKind) -> str | None:
    """Why there is no report about a folder of this kind, and what to run instead; None: there is one."""
    name = _shown(folder)
    match kind:
        case FolderKind.ONE_FILE:
            return None
        case FolderKind.DESCRIPTION:
            return (
                f"{name} is a description: a report is about a corpus that was made from it (dptext audit {name} "
                "checks the description itself)"
            )
        case FolderKind.VECTORS:
            return (
                f"{name} holds vectors of words, and a report is about texts or vectors of texts, row by row. Its card "
                f"is its README.md; dptext audit {name} checks the promise, and dptext attack membership {name} says "
                "what an attacker gets"
            )
        case FolderKind.BANK:
            return (
                f"{name} is a bank of public texts: a report is about what was made with it (dptext report PRIVATE "
                f"--bank {name} -o page.html)"
            )
        case FolderKind.DEVICE:
            return (
                f"{name} is an encoder for devices: a report is about the vectors that it made (dptext report "
                f"OUT.parquet -o page.html); dptext audit {name} checks its promise"
            )
        case FolderKind.FILES:
            files = private_files(folder)
            return (
                f"{name} holds {len(files):,} private file{'s' * (len(files) > 1)}, and a report is about one: dptext "
                f"report {folder / files[0].name} -o page.html"
            )
    return _other(folder)


def _other(folder: Path) -> str:
    return (
        f"{_shown(folder)} is no folder that dptext wrote, and no file in it has a statement (….privacy.json) beside "
        "it: name a private file, or a folder of vectors, a description or an encoder"
    )


def _shown(folder: Path) -> str:
    return folder.name or str(folder)
