"""``dptext ledger``: what was already released of which rows, over all releases."""

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
from dptext.cli.options import input_option, privacy_option
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
_SHOWN_OF_ID = 12


@ledger.command()
@options.collected
def create(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New ledger file.")],
    epsilon: Annotated[
        float | None,
        privacy_option(help="Limit of epsilon per row or user over all releases (metric: per unit of distance)."),
    ] = None,
    delta: Annotated[
        float | None, privacy_option(help="Limit of delta. Without it, no release may have a delta.")
    ] = None,
    releases: Annotated[int | None, privacy_option(metavar="N", help="Limit of releases per row or user.")] = None,
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
@options.collected
def show(file: FileArgument, output: options.Output) -> None:
    """List the releases and the remaining budget.

    Example: dptext ledger show book.db
    """
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
        input_option(help="Text, or value in the ledger's column.", show_default="read from standard input"),
    ] = None,
    output: options.Output,
) -> None:
    """Show the remaining budget of one row or user.

    A value on the command line is visible to other users of the machine and stays in the shell's history. A value on
    standard input does not (one line feed at its end is dropped).

    Example: dptext ledger left book.db < value.txt
    """
    opened = Ledger(file)
    if value is None:
        value = _read_value()
    balance, terms = opened.left(value), opened.terms()
    line = f"in {_count(balance.releases, 'release')}; {_spent(balance, terms)}; {_left(balance, terms)}"
    output.answer(lambda: asdict(balance), lambda: typer.echo(line))


@ledger.command()
@options.collected
def settle(file: FileArgument, release_id: ReleaseArgument, output: options.Output) -> None:
    """Confirm a pending release whose output exists (the run died after writing it).

    Example: dptext ledger settle book.db 3f2a
    """
    opened = Ledger(file)
    release = _matching(opened, release_id)
    opened.settle(release.release_id)
    if output.as_json:
        print_json({"settled": release.release_id, "units": release.units})
    output.say(f"Settled {release.release_id}: it counts as released, and cannot be voided any more.")


@ledger.command()
@options.collected
def void(file: FileArgument, release_id: ReleaseArgument, output: options.Output) -> None:
    """Refund a pending release whose output was never written (the run died).

    Exit code 3: it is released.

    Example: dptext ledger void book.db 3f2a
    """
    opened = Ledger(file)
    release = _matching(opened, release_id)
    opened.void(release.release_id)
    if output.as_json:
        print_json({"voided": release.release_id, "units": release.units})
    output.say(f"Voided {release.release_id}: {release.units:,} {release.terms.units} have their budget back.")


def _matching(opened: Ledger, release_id: str) -> ChargedRelease:
    release_id = release_id.removesuffix("…")  # copied from what `show` prints
    matches = [release for release in opened.releases() if release.release_id.startswith(release_id)]
    exact = [release for release in matches if release.release_id == release_id]
    if len(matches) > 1 and not exact:
        raise ParameterError(f"{len(matches)} releases begin with {release_id!r}: give more of the id")
    if not matches:
        raise opened.unknown(release_id)
    return (exact or matches)[0]


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
