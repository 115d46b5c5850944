"""Advice to be looked at: a page for a terminal, and one for a notebook."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dptext.advice.pasted import TO_FILL_IN
from dptext.advice.way import Fit, Way
from dptext.privacy.wording import filled

if TYPE_CHECKING:
    from dptext.advice.advice import Advice
    from dptext.advice.data import Data


WIDTH = 80
_LONGEST_NAME = 40
OWNER = (
    "For you alone: this counts private rows. Do not hand it on, and take no number "
    "of it into a command: numbers of people and of texts there are public ones."
)
_PUBLIC_NUMBERS = (
    "To paste. Numbers such as -n are public ones: round ones here, and never a count of the private rows."
)
_TO_FILL_IN = (
    f"{_PUBLIC_NUMBERS} What stands in capitals is yours to fill in: public texts, their licence, public labels; "
    "chosen without a look at the private rows."
)


def as_text(advice: Advice, width: int = WIDTH) -> str:
    """The page, in so many columns."""
    parts = [
        _wrapped(OWNER, width),
        "\n".join(_seen(advice.data, width)),
        "\n".join(_identifying(advice.data, width)),
        _table(advice, width),
        "\n\n".join(_commands(advice, width)),
        "\n".join(_previews(advice, width)),
        _wrapped(advice.recommendation, width),
    ]
    return "\n\n".join(each for each in parts if each)


def as_html(advice: Advice) -> str:
    """The same for a notebook."""
    return filled(
        "advice/templates/advice.html",
        advice=advice,
        owner=OWNER,
        seen=_facts(advice.data),
        identifying=[(column_name(advice.data, each.name), each.reasons) for each in advice.columns if each.reasons],
        fit=Fit,
    )


def column_name(data: Data, name: str) -> str:
    """How a column is called: a file without a line of names has a row in their place."""
    if len(name) <= _LONGEST_NAME and name.isprintable():
        return name
    return f"column {[each.name for each in data.columns].index(name) + 1}"


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width - 1, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


# -- what was seen -------------------------------------------------------------------------------------------------


def _facts(data: Data) -> list[tuple[str, str]]:
    roles, guessed = data.roles, data.roles.guessed

    def named(role: str, name: str) -> str:
        return column_name(data, name) + (" (a guess)" if role in guessed else "")

    rows = f"{data.rows:,}" + ("" if data.is_all else " (the first ones: more were not counted)")
    rows += f", {data.unread:,} that cannot be read" if data.unread else ""
    rows += f", {data.empty:,} without a text" if data.empty else ""
    found = [
        ("rows", rows),
        ("text", f"{named('text', roles.text)}: {data.words[0]:,} words, the longest {data.words[1]:,}"),
    ]
    if roles.user is None:
        found.append(("person", "no column says who wrote a text (--user COLUMN)"))
    else:
        found.append(
            (
                "person",
                f"{named('user', roles.user)}: {data.people:,} people, {_texts_of(data.most_texts or 0)}",
            )
        )
    if roles.labels:
        which = ", ".join(column_name(data, each) for each in roles.labels) + (
            " (a guess)" if "labels" in guessed else ""
        )
        found.append(("labels", f"{which}: {data.classes:,} classes, the rarest with {data.rarest or 0:,} rows"))
    else:
        found.append(("labels", "no column of few values (--label COLUMN)"))
    return found


def _texts_of(most: int) -> str:
    return "one text each" if most == 1 else f"up to {most:,} texts each"


def _seen(data: Data, width: int) -> Iterator[str]:
    for name, fact in _facts(data):
        yield textwrap.fill(fact, width - 1, initial_indent=f"  {name:<8}", subsequent_indent=" " * 10)


def _identifying(data: Data, width: int) -> Iterator[str]:
    found = [each for each in data.columns if each.reasons and each.name != data.roles.text]
    if not found:
        return
    yield _wrapped("Columns that may say who a row is from (what is kept with --keep leaves as it is):", width)
    for each in found:
        head = f"  {column_name(data, each.name):<8} "
        yield textwrap.fill("; ".join(each.reasons), width - 1, initial_indent=head, subsequent_indent=" " * 11)


# -- the table -----------------------------------------------------------------------------------------------------


def _table(advice: Advice, width: int) -> str:
    table = Table(expand=True, pad_edge=False, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("way", width=12)
    table.add_column("", no_wrap=True, width=9)
    table.add_column("what it would be here", ratio=1)
    for way in advice.ways:
        name = Text(f"{way.name}\n{str(way.fit).upper()}")
        for aspect, said in _aspects(way):
            table.add_row(name, Text(aspect), Text(said))
            name = Text("")
        table.add_row("", "", "")
    return _rendered(table, width)


def _aspects(way: Way) -> list[tuple[str, str]]:
    said = [("promise", way.promise), ("here", " ".join(way.reasons))]
    if way.fit is not Fit.NOT_HERE:
        said[1:1] = [("good for", way.good_for), ("attacker", way.attacker)]
    return [(name, each) for name, each in said if each]


def _rendered(table: Table, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n")).strip("\n")


# -- commands and previews -----------------------------------------------------------------------------------------


def _commands(advice: Advice, width: int) -> Iterator[str]:
    shown = [each for each in advice.ways if each.fit is not Fit.NOT_HERE]
    if not shown:
        return
    has_capitals = any(each in line for way in shown for line in way.pasted for each in TO_FILL_IN)
    yield _wrapped(_TO_FILL_IN if has_capitals else _PUBLIC_NUMBERS, width)
    for way in shown:
        lines = [f"{way.name}:"]
        lines += [f"  {line}" for command in way.pasted for line in command.split("\n")]
        yield "\n".join(lines)


def _previews(advice: Advice, width: int) -> Iterator[str]:
    shown = [each for each in advice.ways if each.fit is not Fit.NOT_HERE]
    yield _wrapped(f"What comes out, made of public texts alone ({advice.public}):", width)
    for way in shown:
        yield ""
        yield f"{way.name}"
        if way.preview.missing is not None:
            yield _wrapped(way.preview.missing, width, "  ")
        for before, after in way.preview.pairs:
            said = f"{before} -> {after}" if before else after
            yield textwrap.fill(said, width - 1, initial_indent="  ", subsequent_indent="      ")
