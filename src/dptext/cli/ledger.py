"""``dptext ledger``: the privacy budget that rows or users have spent over all releases."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import print_json, print_table, say
from dptext.cli.options import argument, privacy_option
from dptext.errors import ParameterError
from dptext.io.batches import standard_input
from dptext.io.documents import find_files
from dptext.ledger.ledger import ChargedRelease, Ledger, Summary
from dptext.ledger.store import Balance, Currency, Terms, in_digits, in_digits_at_least, price
from dptext.privacy import wording
from dptext.privacy.guarantee import guarantee_to_dict
from dptext.privacy.statement import new_release_id
from dptext.release.release import read_statement
from dptext.release.run import Charges, TextFiles

ledger = typer.Typer(
    name="ledger",
    help="Account for the privacy budget over several releases: create, read and correct a ledger.",
    no_args_is_help=True,
)

_FILE = argument(..., "The ledger.", "FILE")
_RELEASE_ID = argument(..., "Release id, or a unique beginning of it.", "RELEASE_ID")
_ID_LENGTH = 12


@ledger.command()
def create(
    *,
    file: Path = argument(..., "New ledger file.", "FILE"),
    epsilon: float | None = privacy_option(None, "Limit of epsilon per row or user (metric: per unit of distance)."),
    delta: float | None = privacy_option(None, "Limit of delta. Without it, no release may have a delta."),
    releases: int | None = privacy_option(None, "Limit of releases per row or user.", "N"),
    output: options.Output,
) -> None:
    """Create a ledger with at least one limit, which cannot be changed later.

    Example: dptext ledger create book.db --epsilon 10 --delta 1e-5
    """
    limits = Ledger.create(file, epsilon=epsilon, delta=delta, releases=releases).limits
    if output.as_json:
        print_json({"ledger": str(file), "limits": asdict(limits)})
    output.say(f"Created the ledger {file} (limits: {limits}). Keep it as private as the data.")


@ledger.command()
def show(*, file: Path = _FILE, output: options.Output) -> None:
    """List the releases and the remaining budget.

    Example: dptext ledger show book.db
    """
    book = Ledger(file)
    summary, releases = book.summary(), book.releases()
    output.print_result(lambda: _as_dict(summary, releases), lambda: _print(file, summary, releases))


@ledger.command()
def left(*, file: Path = _FILE, output: options.Output) -> None:
    """Show the remaining budget of one row or user, given on standard input.

    The input is a text, or a value of the ledger's column. One line feed at its end is dropped.

    Example: dptext ledger left book.db < value.txt
    """
    book = Ledger(file)
    stream = standard_input()
    if stream.isatty():
        say("Enter the text or value, then Ctrl-D:")
    try:
        value = stream.read().decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = error.start + 1
        raise ParameterError(f"standard input must be UTF-8, byte {byte} is not") from None
    balance = book.left(value)
    line = f"in {_count(balance.releases, 'release')}; {_describe(balance, book.terms())}"
    output.print_result(lambda: asdict(balance), lambda: typer.echo(line))


@ledger.command()
def charge(
    *,
    file: Path = _FILE,
    statement: Path = argument(..., "Statement of the release (.privacy.json).", "STATEMENT"),
    sources: tuple[str, ...] = options.SOURCES,
    text: str = options.TEXT,
    user: str | None = options.Charge.user,
    output: options.Output,
) -> None:
    """Charge a release that was made without the ledger, such as a claim of another tool, to all rows.

    Exit code 3: a row or user would be overspent.

    Example: dptext ledger charge book.db training.privacy.json notes.csv --user author
    """
    entry, charges = read_statement(statement), Charges(file, user)
    release_id = entry.release_id or new_release_id()
    charges.reserve(release_id, entry, TextFiles(find_files(sources), text=text).read(user))
    charges.settle(release_id)
    output.say(f"Charged {release_id}: {entry.guarantee}, to all rows.")


@ledger.command()
def settle(*, file: Path = _FILE, release_id: str = _RELEASE_ID, output: options.Output) -> None:
    """Confirm a pending release whose output exists (the run died after writing it).

    Example: dptext ledger settle book.db 3f2a
    """
    book = Ledger(file)
    release = _find_release(book, release_id)
    book.settle(release.release_id)
    if output.as_json:
        print_json({"settled": release.release_id, "units": release.units})
    output.say(f"Settled {release.release_id}: it counts as released, and can no longer be voided.")


@ledger.command()
def void(*, file: Path = _FILE, release_id: str = _RELEASE_ID, output: options.Output) -> None:
    """Refund a pending release whose output was never written (the run died).

    Exit code 3: the release is settled.

    Example: dptext ledger void book.db 3f2a
    """
    book = Ledger(file)
    release = _find_release(book, release_id)
    book.void(release.release_id)
    if output.as_json:
        print_json({"voided": release.release_id, "units": release.units})
    output.say(f"Voided {release.release_id}: the budget of {release.units:,} {release.terms.units} is refunded.")


def _find_release(book: Ledger, release_id: str) -> ChargedRelease:
    release_id = release_id.removesuffix("…")  # copied from the output of `show`
    matches = [release for release in book.releases() if release.release_id.startswith(release_id)]
    if len(matches) > 1:
        raise ParameterError(f"the ids of {len(matches)} releases begin with {release_id!r}: give the whole id")
    if not matches:
        raise book.unknown(release_id)
    return matches[0]


def _print(file: Path, summary: Summary, releases: list[ChargedRelease]) -> None:
    values = {"file": file, "summary": summary, "terms": summary.terms, "minute": _minute, "describe": _describe}
    typer.echo(wording.filled("cli/templates/ledger.txt", topic="summary", **values).rstrip())
    if summary.terms is not None:
        columns = ("release", "reserved (UTC)", "state", "mechanism", "cost per unit", "charged")
        print_table(columns, map(_cells, releases), left=4)
    if summary.pending:
        pending = _count(summary.pending, "release")
        typer.echo(wording.filled("cli/templates/ledger.txt", topic="pending", file=file, pending=pending))


def _cells(release: ChargedRelease) -> list[str]:
    name, (cost, delta) = release.release_id, price(release.guarantee, 1)
    short_id = name if len(name) <= _ID_LENGTH + 1 else f"{name[:_ID_LENGTH]}…"
    costs = in_digits(cost) + (f", delta {in_digits(delta)}" if delta else "")
    mechanism = (release.mechanism or "-")[:_ID_LENGTH]
    return [short_id, _minute(release.reserved_at), release.state, mechanism, costs, f"{release.units:,}"]


def _describe(balance: Balance, terms: Terms | None) -> str:
    """Return the spent and the remaining budget in words."""
    currency = Currency.RHO if terms is not None and terms.currency is Currency.RHO else Currency.EPSILON
    spent = f"spent {currency} {in_digits(balance.spent)}"
    if balance.delta:
        spent += f" (delta {in_digits(balance.delta)})"
    left = []
    if balance.left is not None:
        left.append(f"{currency} {in_digits_at_least(balance.left)}")
        if balance.delta_left is not None and (balance.delta or balance.delta_left):  # else no delta is allowed
            left[0] += f" (delta {in_digits_at_least(balance.delta_left)})"
    if balance.releases_left is not None:
        left.append(_count(balance.releases_left, "release"))
    return f"{spent}; left {' and '.join(left)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def _as_dict(summary: Summary, releases: list[ChargedRelease]) -> dict[str, Any]:
    names = ("release_id", "reserved_at", "state", "mechanism", "units", "documents")
    data = [{name: getattr(release, name) for name in names} for release in releases]
    for row, release in zip(data, releases, strict=True):
        items = guarantee_to_dict(release.guarantee).items()
        row["guarantee"] = {key: "infinity" if value == math.inf else value for key, value in items}
    return {**asdict(summary), "releases": data}
