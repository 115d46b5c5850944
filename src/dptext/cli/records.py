"""Read what is recorded of releases: ``dptext explain`` for statements, ``dptext ledger`` for ledgers."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from dptext.cli import options
from dptext.cli.console import print_json, say, stdout
from dptext.errors import DataError, ParameterError
from dptext.io.batches import standard_input
from dptext.ledger.ledger import ChargedRelease, Ledger, Summary
from dptext.ledger.store import TEXT, Balance, Currency, Terms, in_digits, in_digits_at_least, price
from dptext.methods.files import FolderKind, folder_kind, other_than_audited, private_files
from dptext.privacy.guarantee import guarantee_to_dict
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import strength_in_brief
from dptext.release.release import data_agrees, data_and_statement, read_statement, statement_path
from dptext.representations.device import check_device
from dptext.synthesis.distribution import read_description
from dptext.vectors.formats import FOLDER, statements_in


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
        return FOLDER.announces(statement.parent) and statement.name in statements_in(statement.parent)
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


ledger = typer.Typer(
    name="ledger",
    help="What was already released of which rows, across runs: make a ledger, read it, mend it.",
    no_args_is_help=True,
)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.")]
ReleaseArgument = Annotated[
    str, typer.Argument(metavar="RELEASE_ID", help="The release, or the beginning of its name that is unique.")
]
_SHOWN_OF_ID = 12


@ledger.command()
@options.collected
def create(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the ledger goes: a new file.")],
    epsilon: Annotated[
        float | None, typer.Option(help="What a row may lose over all releases (metric: per unit of distance).")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="The same for delta; without it, no release may have one.")
    ] = None,
    releases: Annotated[int | None, typer.Option(help="In how many releases a row may be.")] = None,
    output: options.Output,
) -> None:
    """Make a ledger. At least one limit is needed; it cannot be changed later."""
    limits = Ledger.create(file, epsilon=epsilon, delta=delta, releases=releases).limits
    if output.as_json:
        print_json({"ledger": str(file), "limits": asdict(limits)})
    output.say(f"Made the ledger {file} (limits: {limits}). Keep it as private as the data.")


@ledger.command()
@options.collected
def show(file: FileArgument, output: options.Output) -> None:
    """List the releases, and what is left."""
    opened = Ledger(file)
    summary, releases = opened.summary(), opened.releases()
    output.answer(lambda: _as_data(summary, releases), lambda: _print(file, summary, releases))


@ledger.command()
@options.collected
def left(
    *,
    file: FileArgument,
    value: Annotated[
        str | None,
        typer.Option(help="The text, or the value in the ledger's column. Default: read from standard input."),
    ] = None,
    output: options.Output,
) -> None:
    """Say what one row or user has left.

    A value on the command line can be seen by others on the machine and stays in the shell's history: standard input
    does not (one line feed at its end is dropped).
    """
    opened = Ledger(file)
    if value is None:
        value = _read_value()
    balance, terms = opened.left(value), opened.terms()
    said = f"in {_count(balance.releases, 'release')}; {_spent(balance, terms)}; {_left(balance, terms)}"
    output.answer(lambda: asdict(balance), lambda: typer.echo(said))


@ledger.command()
@options.collected
def settle(file: FileArgument, release_id: ReleaseArgument, output: options.Output) -> None:
    """Say that a pending release is out (a run that died after its output had appeared)."""
    opened = Ledger(file)
    release = _found(opened, release_id)
    opened.settle(release.release_id)
    if output.as_json:
        print_json({"settled": release.release_id, "units": release.units})
    output.say(f"Settled {release.release_id}: it is out, and cannot be voided any more.")


@ledger.command()
@options.collected
def void(file: FileArgument, release_id: ReleaseArgument, output: options.Output) -> None:
    """Take back a pending release of which nothing came out (a run that died).

    Exit code 3: it is released.
    """
    opened = Ledger(file)
    release = _found(opened, release_id)
    opened.void(release.release_id)
    if output.as_json:
        print_json({"voided": release.release_id, "units": release.units})
    output.say(f"Voided {release.release_id}: {release.units:,} {release.terms.units} have their budget back.")


def _found(opened: Ledger, release_id: str) -> ChargedRelease:
    release_id = release_id.removesuffix("…")  # copied from what `show` prints
    found = [each for each in opened.releases() if each.release_id.startswith(release_id)]
    exact = [each for each in found if each.release_id == release_id]
    if len(found) > 1 and not exact:
        raise ParameterError(f"{len(found)} releases begin with {release_id!r}: give more of its name")
    if not found:
        raise opened.unknown(release_id)
    return (exact or found)[0]


def _read_value() -> str:
    stream = standard_input()
    if stream.isatty():
        say("The text or value, then Ctrl-D:")
    try:
        return stream.read().decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        wrong = error.start + 1
    raise ParameterError(f"expected UTF-8 on standard input, byte {wrong} is not")


def _print(file: Path, summary: Summary, releases: list[ChargedRelease]) -> None:
    console = stdout()
    terms = summary.terms
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for name, said in _facts(summary):
        facts.add_row(f"  {name}", escape(said))
    console.print(f"[bold]{escape(str(file))}[/bold]", soft_wrap=True)
    console.print(facts)
    if terms is None:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("release", "reserved (UTC)", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("mechanism", overflow="fold", max_width=12)
    table.add_column("costs each", justify="right", overflow="fold")
    table.add_column("charged", justify="right", no_wrap=True)
    for each in releases:
        name, time = escape(_short(each.release_id)), each.at[:16].replace("T", " ")
        table.add_row(name, time, each.state, escape(each.mechanism or "-"), _costs(each), f"{each.units:,}")
    console.print(table)
    if summary.pending:
        pending, name = f"{_count(summary.pending, 'release')} pending: still running, or died.", escape(str(file))
        nothing = f"If nothing of it came out:\n  dptext ledger void {name} RELEASE_ID"
        is_there = f"and if its output is there:\n  dptext ledger settle {name} RELEASE_ID"
        console.print(f"{pending} {nothing}\n{is_there}", soft_wrap=True)


def _facts(summary: Summary) -> list[tuple[str, str]]:
    terms = summary.terms
    facts = [("made", summary.created[:16].replace("T", " ") + " UTC"), ("limits", f"{summary.limits}, for each unit")]
    if terms is None:
        return [*facts, ("releases", "none yet; the first one fixes what is counted, and by what")]
    facts.append(("counts", terms.cost))
    if terms.space is not None:
        facts.append(("space", terms.space))
    by = "its text" if terms.by == TEXT else f"the column {terms.by!r}"
    facts.append(("a unit is", f"known by {by}; the promises are for the unit {terms.unit}, under {terms.relation}"))
    facts.append(("charged", f"{summary.units:,} {terms.units}; {summary.exhausted:,} of them have nothing left"))
    for name, balance in (("median", summary.median), ("most", summary.most)):
        if balance is not None:
            facts.append((name, f"{_spent(balance, terms)}; {_left(balance, terms)}"))
    return facts


def _spent(balance: Balance, terms: Terms | None) -> str:
    return f"spent {_amount(in_digits, balance.spent, balance.delta or None, terms)}"


def _left(balance: Balance, terms: Terms | None) -> str:
    parts = []
    if balance.left is not None:
        delta = balance.delta_left if balance.delta or balance.delta_left else None  # else no delta was ever allowed
        parts.append(_amount(in_digits_at_least, balance.left, delta, terms))
    if balance.releases_left is not None:
        parts.append(_count(balance.releases_left, "release"))
    return f"left {' and '.join(parts)}"


def _amount(spelled: Callable[[float], str], cost: float, delta: float | None, terms: Terms | None) -> str:
    name = Currency.RHO if terms is not None and terms.currency is Currency.RHO else Currency.EPSILON
    return f"{name} {spelled(cost)}" + ("" if delta is None else f" (delta {spelled(delta)})")


def _costs(release: ChargedRelease) -> str:
    cost, delta = price(release.guarantee, 1)
    return in_digits(cost) + (f", delta {in_digits(delta)}" if delta else "")


def _short(release_id: str) -> str:
    return release_id if len(release_id) <= _SHOWN_OF_ID + 1 else f"{release_id[:_SHOWN_OF_ID]}…"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _as_data(summary: Summary, releases: list[ChargedRelease]) -> dict[str, Any]:
    return {
        **asdict(summary),
        "releases": [
            {
                **{name: getattr(release, name) for name in ("release_id", "at", "state", "mechanism")},
                "guarantee": {
                    key: "infinity" if isinstance(value, float) and math.isinf(value) else value
                    for key, value in guarantee_to_dict(release.guarantee).items()
                },
                "units": release.units,
                "documents": release.documents,
            }
            for release in releases
        ],
    }
