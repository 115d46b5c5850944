"""Data and the statement beside it: which file is which, and whether one speaks of the other."""

from __future__ import annotations

from pathlib import Path

from dptext.errors import DataError
from dptext.files.formats import file_digest, folder_digest, read_stored
from dptext.own_files import check_released
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import statement_path

__all__ = ["data_agrees", "data_and_statement", "read_statement"]

_SUFFIX = ".privacy.json"


def data_and_statement(file: Path) -> tuple[Path, Path]:
    """The data and its statement, whichever of the two was named."""
    if file.name.endswith(_SUFFIX):
        return file.with_name(file.name.removesuffix(_SUFFIX)), file
    beside = statement_path(file)
    if not beside.exists() and file.suffix == ".json":
        return file, file  # a statement under another name
    return file, beside


def read_statement(path: Path) -> PrivacyStatement:
    """The statement in a file.

    Raises:
        StorageError, DataError: it cannot be read, or is none.
    """
    check_released(path)
    try:
        return PrivacyStatement.from_json(read_stored(path).decode())
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: expected UTF-8 text: a privacy statement is JSON") from None
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None


def data_agrees(statement: PrivacyStatement, data: Path) -> bool | None:
    """Whether the digests agree; None where there is nothing to compare.

    Raises:
        StorageError: the data cannot be read, or is a pipe or a device, which can be read once at most.
    """
    if statement.data_sha256 is None or not data.exists() or data.name.endswith(".json"):
        return None
    return (folder_digest(data) if data.is_dir() else file_digest(data)) == statement.data_sha256
