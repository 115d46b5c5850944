"""``dptext explain``: a statement read aloud, and whether the data beside it is the data it speaks of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dptext.cli.console import ConfigOption, JsonOption, QuietOption, VerboseOption
from dptext.errors import DataError, StorageError
from dptext.privacy.statement import PrivacyStatement
from dptext.text.files import file_digest
from dptext.text.release import statement_path

__all__ = ["data_agrees", "data_and_statement", "explain", "read_statement"]

_SUFFIX = ".privacy.json"


def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A statement (….privacy.json), or the data it is for.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    _verbose: VerboseOption = False,
    _config: ConfigOption = None,
) -> None:
    """Read a privacy statement aloud, and verify that it speaks of the data beside it."""
    data, beside = data_and_statement(file)
    statement = read_statement(beside)
    agrees = data_agrees(statement, data)
    if as_json:
        typer.echo(json.dumps({"statement": json.loads(statement.to_json()), "data_agrees": agrees}))
    elif not quiet:
        typer.echo(statement.explain())
        typer.echo(f"\nTHE DATA\n  {_verdict(statement, data, agrees)}")
    if agrees is False:
        raise DataError(
            f"{data.name} is not the data that {beside.name} speaks of (its SHA-256 differs): "
            "it was changed, or the statement belongs to another file"
        )


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
    try:
        return PrivacyStatement.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: expected UTF-8 text: a privacy statement is JSON") from None
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None


def data_agrees(statement: PrivacyStatement, data: Path) -> bool | None:
    """Whether the digests agree; None where there is nothing to compare."""
    if statement.data_sha256 is None or not data.exists() or data.name.endswith(".json"):
        return None
    return file_digest(data) == statement.data_sha256


def _verdict(statement: PrivacyStatement, data: Path, agrees: bool | None) -> str:
    if agrees is None:
        why = "the statement names no data" if statement.data_sha256 is None else f"{data.name} is not beside it"
        return f"Not verified: {why}."
    return f"{data.name}: {'verified, its SHA-256 is the one above' if agrees else 'NOT the data of this statement'}."
