"""A report as a Markdown card for the folder that is shared: nothing in it was computed from original texts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dptext.attacks.score import AttackScore
from dptext.privacy.guarantee import ApproxDP, MetricDP, NoGuarantee, at_most
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import not_protected, odds, protected
from dptext.report.parts import Measurement
from dptext.report.tables import headline

if TYPE_CHECKING:
    from dptext.report.page import Report

__all__ = ["card_of", "in_short"]


def card_of(report: Report) -> str:
    """The Markdown."""
    lines = [
        f"# {_cell(report.title)}",
        "",
        *(f"- **{name}** {_cell(words)}" for name, words in in_short(report.statement)),
        "",
    ]
    for heading, found in (
        ("Protected", protected(report.statement)),
        ("Not protected", not_protected(report.statement)),
    ):
        lines += [f"## {heading}", "", *(f"- {_cell(each)}" for each in found), ""]
    tested = [
        f"- {'NO: ' if each.held is False else ''}{_cell(each.name)} ({_cell(each.seen)})" for each in report.checks
    ]
    tested += [f"- {headline(each)}" for each in report.verdicts]
    if tested:
        lines += ["## Audit", "", *tested, ""]
    lines += _table("What an attacker gets", [(each.attack, each) for each in report.attacks])
    for heading, measured in (("What it is still good for", report.utility), ("For each group", report.fairness)):
        lines += _table(heading, [(each.what, each) for each in measured if not each.owner_only])
    lines += [f"- {_cell(each.words)}" for each in report.gaps if not each.owner_only]
    if report.has_owner_numbers:
        lines += [
            "",
            "More was measured with the original texts; those numbers are the owner's and not on this card.",
            "",
        ]
    elif command := _to_share(report.command):
        fence = "`" * (2 + max(map(len, re.findall("`+", command)), default=1))  # longer than any in a name
        lines += ["## Made by", "", fence, command, fence, ""]
    return "\n".join(lines)


def _to_share(command: str) -> str:
    """A command line without what it says of its owner: folders, and which file the original is.

    No number on a card was computed from the original, so the command makes them all without it. One that cannot be
    read is left out.
    """
    try:
        words = iter(shlex.split(command))
    except ValueError:
        return ""
    kept = []
    for word in words:
        option, equals, value = word.partition("=")
        if option == "--original":
            if not equals:
                next(words, None)
            continue
        named = word if not (equals and option.startswith("-")) else value
        name = re.split(r"[/\\]", named.rstrip("/\\"))[-1]
        kept.append(name if named is word else f"{option}={name}")
    return shlex.join(kept)


def _table(heading: str, rows: Sequence[tuple[str, AttackScore | Measurement]]) -> list[str]:
    if not rows:
        return []
    lines = [f"## {heading}", "", "| | measure | result (95% interval) | without it |", "|---|---|---|---|"]
    lines += [
        f"| {_cell(name)} | {each.measure} | {each.score} | {each.baseline:.3f} ({each.baseline_name}) |"
        for name, each in rows
    ]
    return [*lines, ""]


def _cell(text: str) -> str:
    """Names of groups, columns and files are anybody's: they must not end the cell, the line, or become markup."""
    return "".join(f"\\{each}" if each in "\\|`*_<>[]" else " " if each in "\r\n" else each for each in text)


def in_short(statement: PrivacyStatement) -> list[tuple[str, str]]:
    """Who, against what, how strongly: a line each."""
    guarantee = statement.guarantee
    worst = (
        "nothing is promised"
        if isinstance(guarantee, NoGuarantee)
        else f"an output is at most {odds(statement.epsilon)} times likelier for one of two neighbours than for another"
    )
    if isinstance(guarantee, MetricDP):
        worst += f"; {at_most(guarantee.epsilon, 4)} nats for each unit of distance between near ones"
    if isinstance(guarantee, ApproxDP) and guarantee.delta > 0:
        worst += f", but for a probability of {at_most(guarantee.delta, 3)}"
    lines = [
        ("Promised for:", f"one {statement.unit}; neighbours are {statement.neighbours}."),
        ("Strength:", f"{worst} (epsilon {at_most(statement.epsilon, 4)})."),
        (
            "Trust:",
            "nobody who holds the output has to be trusted."
            if statement.trust == "local"
            else "a curator saw everything and has to be trusted.",
        ),
    ]
    if statement.seeded:
        lines.append(("Warning:", "a seed was used: the promise does not hold towards whoever knows it."))
    return lines
