"""``dptext explain``: a privacy statement in words, and whether it belongs to the data beside it."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from dptext.cli import options
from dptext.cli.console import print_json
from dptext.errors import DataError
from dptext.methods.files import STATEMENT, FolderKind, folder_kind, other_than_audited, private_files
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import strength_in_brief
from dptext.release.release import data_agrees, data_and_statement, read_statement, statement_path
from dptext.representations.device import check_device
from dptext.synthesis.distribution import read_description
from dptext.vectors.formats import FOLDER, statements_in

_CHANGED = "(its SHA-256 differs): it was changed, or the statement belongs to another file"


@options.collected
def explain(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A statement (….privacy.json); the file or folder that it describes; or a folder of such files.",
        ),
    ],
    output: options.Output,
) -> None:
    """Explain a privacy statement, and verify that it belongs to the data file.

    Example: dptext explain private.csv
    """
    if file.is_dir():
        folder = file if file.name else file.resolve()
        kind = folder_kind(folder)
        if kind is FolderKind.FILES:
            _explain_files(folder, output)
            return
        if kind is FolderKind.BANK:
            _explain_bank(folder, output)
            return
        if kind is FolderKind.VECTORS and not (folder / STATEMENT).exists():
            raise DataError(
                f"{folder.name} holds word vectors without a privacy statement: public ones, or saved by "
                "dptext.save_vectors. They have no guarantee"
            )
        if kind is FolderKind.OTHER:
            raise DataError(other_than_audited(folder, kind))
        file = folder if kind is FolderKind.ONE_FILE else folder / STATEMENT
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
        raise DataError(f"{data.name} is not the data of {beside.name} {_CHANGED}")


def _is_of_checked_folder(statement: Path) -> bool:
    """Return whether a statement belongs to a folder that dptext wrote; raise if a file of the folder was changed."""
    kind = folder_kind(statement.parent)
    if kind is FolderKind.VECTORS:
        return FOLDER.announces(statement.parent) and statement.name in statements_in(statement.parent)
    check = {FolderKind.DESCRIPTION: read_description, FolderKind.DEVICE: check_device}.get(kind)
    if check is None or statement.name != STATEMENT:
        return False
    check(statement.parent)
    return True


def _explain_files(folder: Path, output: options.Output) -> None:
    """Print the guarantee of every private file of a folder, and whether the file is the one of its statement."""
    rows = []
    for data in private_files(folder):
        statement = read_statement(statement_path(data))
        rows.append((data, statement, data_agrees(statement, data)))
    if output.as_json:
        print_json({
            data.name: {"statement": json.loads(statement.to_json()), "data_agrees": agrees}
            for data, statement, agrees in rows
        })  # fmt: skip
    elif not output.quiet:
        for data, statement, agrees in rows:
            typer.echo(data.name)
            typer.echo(_filled(f"{statement.guarantee}, for a {statement.unit}"))
            typer.echo(_filled(strength_in_brief(statement, attacks_follow=False)[0]))
            typer.echo(f"{_filled(_verdict(statement, data, agrees))}\n")
        typer.echo(f"In full: dptext explain {folder / rows[0][0].name}")
    wrong = [data.name for data, _, agrees in rows if agrees is False]
    if wrong:
        raise DataError(f"{', '.join(wrong)}: not the data of the statement {_CHANGED}")


def _explain_bank(folder: Path, output: options.Output) -> None:
    from dptext.sentences.bank import TextBank

    bank = TextBank.load(folder)
    if output.as_json:
        print_json({"bank": bank.name, "texts": len(bank), "sha256": bank.fingerprint, "data_agrees": True})
    elif not output.quiet:
        typer.echo(
            f"{folder.name} is a bank of {len(bank):,} public texts ({bank.name!r}). Their authors are not protected.\n"
            f"Use it: dptext privatize IN -o OUT --mechanism bank --bank {folder.name}\n\nTHE DATA\n"
            f"  {folder.name}: verified, its files match its config.json."
        )


def _filled(text: str) -> str:
    return textwrap.fill(text, 79, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _verdict(statement: PrivacyStatement, data: Path, agrees: bool | None) -> str:
    if agrees is None and statement.data_sha256 is None:
        return "Not verified: the statement names no data, and no whole folder of dptext is around it."
    if agrees is None:
        return f"Not verified: {data.name} is not beside it."
    if not agrees:
        return f"{data.name}: NOT the data of this statement."
    if data.is_dir() and folder_kind(data) in (FolderKind.DESCRIPTION, FolderKind.DEVICE, FolderKind.VECTORS):
        return f"{data.name}: verified, all files of the folder match its config.json."
    return (
        f"{data.name}: verified, its SHA-256 is the one in the statement. To test the guarantee itself, run "
        "`dptext audit`."
    )
