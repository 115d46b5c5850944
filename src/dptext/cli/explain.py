"""``dptext explain``: a statement in words, and whether the data beside it is the data it speaks of."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dptext.cli import options
from dptext.cli.console import print_json
from dptext.errors import DataError, StorageError
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import data_agrees, data_and_statement, read_statement
from dptext.synthesis.distribution import announces_description, read_description
from dptext.vectors.folder import announces_vectors, check_folder

__all__ = ["explain"]


@options.collected
def explain(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A statement (….privacy.json), or the data it is for: a file, a folder of vectors, or a description.",
        ),
    ],
    output: options.Output,
) -> None:
    """Explain a privacy statement, and verify that it speaks of the data beside it."""
    if file.is_dir():
        file = file / _IN_A_FOLDER
    data, beside = data_and_statement(file)
    statement = read_statement(beside)
    agrees = data_agrees(statement, data)
    if agrees is None and (_is_of_vectors(beside) or _is_description(beside)):
        data, agrees = beside.parent.resolve(), True
    if output.as_json:
        print_json({"statement": json.loads(statement.to_json()), "data_agrees": agrees})
    elif not output.quiet:
        typer.echo(statement.explain())
        typer.echo(f"\nTHE DATA\n  {_verdict(statement, data, agrees)}")
    if agrees is False:
        raise DataError(
            f"{data.name} is not the data that {beside.name} speaks of (its SHA-256 differs): "
            "it was changed, or the statement belongs to another file"
        )


_IN_A_FOLDER = "privacy.json"


def _is_of_vectors(statement: Path) -> bool:
    """Whether it is one of a folder of vectors, which are checked; not where another file there cannot be read."""
    is_announced = False
    with suppress(StorageError):
        is_announced = announces_vectors(statement.parent)
    return is_announced and statement.name in check_folder(statement.parent)


def _is_description(statement: Path) -> bool:
    """Whether it is the one of a description of texts, which is checked."""
    is_announced = False
    with suppress(StorageError):
        is_announced = announces_description(statement.parent)
    if is_announced and statement.name == _IN_A_FOLDER:
        read_description(statement.parent)
        return True
    return False


def _verdict(statement: PrivacyStatement, data: Path, agrees: bool | None) -> str:
    if agrees is None:
        why = "the statement names no data" if statement.data_sha256 is None else f"{data.name} is not beside it"
        return f"Not verified: {why}."
    if data.is_dir():
        what = (
            "matrix, features, card and statement" if announces_description(data) else "words, vectors and statements"
        )
        return f"{data.name}: verified, {what} are those that its config.json announces."
    return f"{data.name}: {'verified, its SHA-256 is the one above' if agrees else 'NOT the data of this statement'}."
