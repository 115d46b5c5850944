"""``dptext explain``: a statement in words, and whether the data beside it is the data it speaks of."""

from __future__ import annotations

import json
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dptext.cli import options
from dptext.cli.console import print_json
from dptext.errors import DataError, StorageError
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import strength_in_brief
from dptext.release.release import data_agrees, data_and_statement, read_statement, statement_path
from dptext.reports.folders import FolderKind, folder_kind, other_than_audited, private_files
from dptext.representations.device import check_device
from dptext.synthesis.distribution import read_description
from dptext.vectors.folder import announces_vectors, check_folder

__all__ = ["explain"]


@options.collected
def explain(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A statement (….privacy.json), or the data it is for: a file, a folder of such files, of vectors, a "
            "description, an encoder for devices.",
        ),
    ],
    output: options.Output,
) -> None:
    """Explain a privacy statement, and verify that it speaks of the data beside it."""
    if file.is_dir():
        folder = file if file.name else file.resolve()
        kind = folder_kind(folder)
        if kind is FolderKind.FILES:
            _explain_files(folder, output)
            return
        if kind is FolderKind.BANK:
            _explain_bank(folder, output)
            return
        if kind is FolderKind.OTHER or (kind is FolderKind.VECTORS and not (folder / _IN_A_FOLDER).exists()):
            raise DataError(_nothing_to_explain(folder, kind))
        file = folder if kind is FolderKind.ONE_FILE else folder / _IN_A_FOLDER
    data, beside = data_and_statement(file)
    statement = read_statement(beside)
    agrees = data_agrees(statement, data)
    if agrees is None and _is_of_checked_folder(beside):
        data, agrees = beside.parent.resolve(), True
    if output.as_json:
        print_json({"statement": json.loads(statement.to_json()), "data_agrees": agrees})
    elif not output.quiet:
        typer.echo(statement.explain())
        typer.echo(f"\nTHE DATA\n{_filled(_verdict(statement, data, agrees))}")
    if agrees is False:
        raise DataError(
            f"{data.name} is not the data that {beside.name} speaks of (its SHA-256 differs): "
            "it was changed, or the statement belongs to another file"
        )


_IN_A_FOLDER = "privacy.json"


def _is_of_checked_folder(statement: Path) -> bool:
    """Return whether a statement belongs to a folder that dptext wrote; raise if a file of the folder was changed."""
    kind = folder_kind(statement.parent)
    if kind is FolderKind.VECTORS:
        is_whole = False
        with suppress(StorageError):
            is_whole = announces_vectors(statement.parent)
        return is_whole and statement.name in check_folder(statement.parent)
    check = {FolderKind.DESCRIPTION: read_description, FolderKind.DEVICE: check_device}.get(kind)
    if check is None or statement.name != _IN_A_FOLDER:
        return False
    check(statement.parent)
    return True


def _explain_files(folder: Path, output: options.Output) -> None:
    """The private files of a folder, a line each: what is promised, and whether the data is the one."""
    found = []
    for data in private_files(folder):
        statement = read_statement(statement_path(data))
        found.append((data, statement, data_agrees(statement, data)))
    if output.as_json:
        print_json({
            data.name: {"statement": json.loads(each.to_json()), "data_agrees": agrees} for data, each, agrees in found
        })  # fmt: skip
    elif not output.quiet:
        for data, each, agrees in found:
            typer.echo(data.name)
            typer.echo(_filled(f"{each.guarantee}, for a {each.unit}"))
            typer.echo(_filled(strength_in_brief(each, attacks_follow=False)[0]))
            typer.echo(f"{_filled(_verdict(each, data, agrees))}\n")
        typer.echo(f"All of it: dptext explain {folder / found[0][0].name}")
    wrong = [data.name for data, _, agrees in found if agrees is False]
    if wrong:
        raise DataError(
            f"{', '.join(wrong)}: not the data that the statement beside it speaks of (its SHA-256 differs): it was "
            "changed, or the statement belongs to another file"
        )


def _explain_bank(folder: Path, output: options.Output) -> None:
    """What a bank is: no release of anybody's data."""
    from dptext.sentences.bank import TextBank

    bank = TextBank.load(folder)
    if output.as_json:
        print_json({"bank": bank.name, "texts": len(bank), "sha256": bank.fingerprint, "data_agrees": True})
    elif not output.quiet:
        typer.echo(
            f"{folder.name} is a bank of {len(bank):,} public texts ({bank.name!r}): nothing is promised to who wrote\n"
            "them. Private texts become texts of it: dptext privatize IN -o OUT --mechanism bank\n"
            f"--bank {folder.name}\n\nTHE DATA\n  {folder.name}: verified, its files are those that its config.json "
            "announces."
        )


def _nothing_to_explain(folder: Path, kind: FolderKind) -> str:
    if kind is FolderKind.VECTORS:
        return (
            f"{folder.name} holds vectors without a statement: public ones, or saved by dptext.save_vectors; nothing "
            "was promised to who wrote what they were made from"
        )
    return other_than_audited(folder, kind)


def _filled(text: str) -> str:
    return textwrap.fill(text, 79, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _verdict(statement: PrivacyStatement, data: Path, agrees: bool | None) -> str:
    if agrees is None:
        why = f"{data.name} is not beside it"
        if statement.data_sha256 is None:
            why = "the statement names no data, and no whole folder of dptext is around it"
        return f"Not verified: {why}."
    if data.is_dir():
        what = {
            FolderKind.DESCRIPTION: "matrix, features, card and statement",
            FolderKind.DEVICE: "encoder and statement",
            FolderKind.VECTORS: "words, vectors and statements",
        }.get(folder_kind(data))
        if what is not None:
            return f"{data.name}: verified, {what} are those that its config.json announces."
    if not agrees:
        return f"{data.name}: NOT the data of this statement."
    return (
        f"{data.name}: verified, its SHA-256 is the one in the statement. Whether the promise itself is true is tested "
        "by dptext audit."
    )
