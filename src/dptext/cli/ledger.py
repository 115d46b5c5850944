"""``dptext ledger``: the privacy budget that rows or users have spent over all releases."""

from __future__ import annotations

import math
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
from dptext.cli.options import privacy_option
from dptext.errors import ParameterError
from dptext.io.batches import standard_input
from dptext.ledger.ledger import ChargedRelease, Ledger, Summary
from dptext.ledger.store import TEXT, Balance, Currency, Terms, in_digits, in_digits_at_least, price
from dptext.privacy.guarantee import guarantee_to_dict

ledger = typer.Typer(
    name="ledger",
    help="Account for the privacy budget over several releases: create, read and correct a ledger.",
    no_args_is_help=True,
)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger.")]
ReleaseArgument = Annotated[
    str, typer.Argument(metavar="RELEASE_ID", help="The release: its id, or a unique beginning of it.")
]
_ID_LENGTH = 12


@ledger.command()
def create(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New ledger file.")],
    epsilon: Annotated[
        float | None,
        privacy_option("Limit of epsilon per row or user over all releases (metric: per unit of distance)."),
    ] = None,
    delta: Annotated[float | None, privacy_option("Limit of delta. Without it, no release may have a delta.")] = None,
    releases: Annotated[int | None, privacy_option("Limit of releases per row or user.", "N")] = None,
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
def show(file: FileArgument, output: options.Output) -> None:
    """List the releases and the remaining budget.

    Example: dptext ledger show book.db
    """
    book = Ledger(file)
    summary, releases = book.summary(), book.releases()
    output.print_result(lambda: _as_dict(summary, releases), lambda: _print(file, summary, releases))


@ledger.command()
def left(*, file: FileArgument, output: options.Output) -> None:
    """Show the remaining budget of one row or user, given on standard input.

    The input is a text, or a value of the ledger's column. One line feed at its end is dropped.

    Example: dptext ledger left book.db < value.txt
    """
    book = Ledger(file)
    stream = standard_input()
    if stream.isatty():
        say("The text or value, then Ctrl-D:")
    try:
        value = stream.read().decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = error.start + 1
        raise ParameterError(f"standard input must be UTF-8, byte {byte} is not") from None
    balance, terms = book.left(value), book.terms()
    line = f"in {_count(balance.releases, 'release')}; {_spent(balance, terms)}; {_left(balance, terms)}"
    output.print_result(lambda: asdict(balance), lambda: typer.echo(line))


@ledger.command()
def settle(file: FileArgument, release_id: ReleaseArgument, output: options.Output) -> None:
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
def void(file: FileArgument, release_id: ReleaseArgument, output: options.Output) -> None:
    """Refund a pending release whose output was never written (the run died).

    Exit code 3: it is released.

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
    exact = [release for release in matches if release.release_id == release_id]
    if len(matches) > 1 and not exact:
        raise ParameterError(f"{len(matches)} releases begin with {release_id!r}: give more of the id")
    if not matches:
        raise book.unknown(release_id)
    return (exact or matches)[0]


# -- output --------------------------------------------------------------------------------------------------------


def _print(file: Path, summary: Summary, releases: list[ChargedRelease]) -> None:
    console = stdout()
    overview = Table.grid(padding=(0, 2))
    overview.add_column(no_wrap=True)
    overview.add_column(overflow="fold")
    for name, text in _overview(summary):
        overview.add_row(f"  {name}", escape(text))
    console.print(f"[bold]{escape(str(file))}[/bold]", soft_wrap=True)
    console.print(overview)
    if summary.terms is None:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("release", "reserved (UTC)", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("mechanism", overflow="fold", max_width=12)
    table.add_column("cost per unit", justify="right", overflow="fold")
    table.add_column("charged", justify="right", no_wrap=True)
    for release in releases:
        short_id = release.release_id
        if len(short_id) > _ID_LENGTH + 1:
            short_id = f"{short_id[:_ID_LENGTH]}…"
        cost, delta = price(release.guarantee, 1)
        costs = in_digits(cost) + (f", delta {in_digits(delta)}" if delta else "")
        time, mechanism = _minute(release.at), escape(release.mechanism or "-")
        table.add_row(escape(short_id), time, release.state, mechanism, costs, f"{release.units:,}")
    console.print(table)
    if summary.pending:
        name = escape(str(file))
        console.print(
            f"{_count(summary.pending, 'release')} pending: still running, or died. If its output exists:\n"
            f"  dptext ledger settle {name} RELEASE_ID\nif it was never written:\n"
            f"  dptext ledger void {name} RELEASE_ID",
            soft_wrap=True,
        )


def _overview(summary: Summary) -> list[tuple[str, str]]:
    terms = summary.terms
    lines = [("created", f"{_minute(summary.created)} UTC"), ("limits", f"{summary.limits}, per unit")]
    if terms is None:
        return [*lines, ("releases", "none yet; the first one fixes the unit and the currency")]
    lines.append(("currency", terms.cost))
    if terms.space is not None:
        lines.append(("space", terms.space))
    key = "its text" if terms.by == TEXT else f"the column {terms.by!r}"
    lines.append(("unit", f"a {terms.unit}, identified by {key} (relation: {terms.relation})"))
    lines.append(("charged", f"{summary.units:,} {terms.units}; {summary.exhausted:,} of them have no budget left"))
    for name, balance in (("median", summary.median), ("most", summary.most)):
        if balance is not None:
            lines.append((name, f"{_spent(balance, terms)}; {_left(balance, terms)}"))
    return lines


def _spent(balance: Balance, terms: Terms | None) -> str:
    return f"spent {_amount(in_digits, balance.spent, balance.delta or None, terms)}"


def _left(balance: Balance, terms: Terms | None) -> str:
    parts = []
    if balance.left is not None:
        delta = balance.delta_left if balance.delta or balance.delta_left else None  # None: no delta is allowed
        parts.append(_amount(in_digits_at_least, balance.left, delta, terms))
    if balance.releases_left is not None:
        parts.append(_count(balance.releases_left, "release"))
    return f"left {' and '.join(parts)}"


def _amount(digits: Callable[[float], str], cost: float, delta: float | None, terms: Terms | None) -> str:
    name = Currency.RHO if terms is not None and terms.currency is Currency.RHO else Currency.EPSILON
    return f"{name} {digits(cost)}" + ("" if delta is None else f" (delta {digits(delta)})")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def _as_dict(summary: Summary, releases: list[ChargedRelease]) -> dict[str, Any]:
    data = []
    for release in releases:
        guarantee = guarantee_to_dict(release.guarantee)
        is_infinite = {key: isinstance(value, float) and math.isinf(value) for key, value in guarantee.items()}
        names = ("release_id", "at", "state", "mechanism", "units", "documents")
        data.append({
            **{name: getattr(release, name) for name in names},
            "guarantee": {key: "infinity" if is_infinite[key] else value for key, value in guarantee.items()},
        })  # fmt: skip
    return {**asdict(summary), "releases": data}
