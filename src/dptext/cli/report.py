"""``dptext report``: one page about a release: promise, audit, attacks, use, for those who have to decide on it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.attacks import AttackScore
from dptext.checks import choice
from dptext.cli import options
from dptext.cli.attackers import ATTACKERS, Attackers
from dptext.cli.console import print_json
from dptext.cli.redaction import RedactedList
from dptext.errors import ParameterError, RefusedError
from dptext.io.atomic import check_target, hashed_file
from dptext.release.release import data_and_statement
from dptext.reports import measure
from dptext.reports.answers import recommendation
from dptext.reports.grades import grade
from dptext.reports.measure import Question
from dptext.reports.page import Measurement, Report

__all__ = ["report"]


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What a page is to say of a release, by the names that `Question` has for it."""

    private: Annotated[
        Path,
        typer.Argument(
            metavar="PRIVATE", help="Private texts, a .parquet of vectors or a synthetic corpus, statement beside it."
        ),
    ]
    original: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What it was made from, for the attacks that hold it. What is computed from it is not covered by the "
            "promise: the page is then for the owner of the data.",
        ),
    ] = None
    text: options.Text = "text"
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="What models are trained to name: is the release still useful? Not needed of a synthetic corpus, "
            "which knows its labels.",
        ),
    ] = None
    attribute: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What an attacker wants to know of who wrote a row.")
    ] = None
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Groups that should be served alike (needs --label).")
    ] = None
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Whose row each is, where people have several.")
    ] = None
    public: options.PoolBehind = ()
    public_text: options.PublicText = "text"
    distribution: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Of a synthetic corpus: its description (default: PRIVATE.distribution)."),
    ] = None
    held_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Of a synthetic corpus: a file with the columns of --original, of people who had no part: models are "
            "tested on it, and the release is attacked.",
        ),
    ] = None
    rows: Annotated[int, typer.Option(metavar="N", help="Look at this many rows at most, chosen at random.")] = 3000
    folds: options.Folds = 5
    vectors: options.MovedVectors = None
    bank: options.BankBehind = None
    redact_list: RedactedList = None
    samples: options.Samples = 200_000
    seed: options.AnalysisSeed = None

    def question(self, attackers: Sequence[str]) -> Question:
        """The library's."""
        names: Any = tuple(dict.fromkeys(choice("attacker", each, ATTACKERS) for each in attackers)) or ATTACKERS
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given["public"] = [Path(each) for each in self.public]
        if self.seed is None:
            del given["seed"]
        return Question(attackers=names, **given)


@options.collected
def report(
    *,
    of: QuestionOptions,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT.html", help="The page.")],
    attacker: Attackers = (),
    card: Annotated[
        Path | None,
        typer.Option(
            metavar="README.md", help="Also a Markdown card to share: without numbers computed from original texts."
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Of the page; default: the name of the private file.")] = "",
    force: options.Force = False,
    output: options.Output,
) -> None:
    """Make one page about a release: what is protected, what an attacker gets, what it is still good for.

    Exit code 3: the promise is refuted (the page is written all the same, and says so).
    """
    question = of.question(attacker)
    _check_places(question, out, card, force=force)
    command = _command(of, out, attacker, {"card": card, "title": title or None, "seed": question.seed})
    made = measure.report(question, title=title, command=command, say=output.say)
    _write(out, made.html(), owner_only=question.original is not None or made.has_owner_numbers)
    if card is not None:
        _write(card, made.card())
    if output.as_json:
        print_json(_as_json(made, out, card))
    output.say(f"Wrote {out}" + (f" and {card}" if card is not None else "") + ": open it in a browser.")
    if made.has_owner_numbers:
        output.say(
            f"Note: {out} holds numbers computed from the original texts, which the promise does not cover: it is for "
            "the owner of the data."
        )
    if made.refuted:
        raise RefusedError(
            f"refuted: the statement of {question.private.name} promises what does not hold; {out} says more"
        )


def _check_places(question: Question, out: Path, card: Path | None, *, force: bool) -> None:
    """Refuse, before minutes of work, what could not be written or would destroy something."""
    data, beside = data_and_statement(question.private)
    named = (data, beside, question.original, question.held_out, question.redact_list, *question.public)
    inputs = [each for each in named if each is not None]
    for path, suffixes, what in ((out, (".html", ".htm"), "a page"), (card, (".md",), "a card")):
        if path is None:
            continue
        if path.suffix.lower() not in suffixes:
            raise ParameterError(f"{what} ends in {suffixes[0]}, got {path.name!r}")
        check_target(path, replace=force, apart_from={"an input": inputs})


def _command(of: QuestionOptions, out: Path, attacker: Sequence[str], more: dict[str, Any]) -> str:
    """What makes the page again: what differs from the usual, and the seed."""
    usual = {each.name: each.default for each in fields(of)}
    words = ["dptext", "report", of.private.name, "-o", out.name]
    asked = {name: value for name, value in asdict(of).items() if name not in ("private", "seed")} | more
    for name, value in asked.items():
        if value is None or value == usual.get(name):
            continue
        is_path = isinstance(value, Path) or name in ("vectors", "public")
        for each in value if isinstance(value, tuple) else (value,):
            words += [f"--{name.replace('_', '-')}", Path(each).name if is_path else str(each)]
    for each in attacker:
        words += ["--attacker", each]
    return shlex.join(words)


def _write(path: Path, content: str, *, owner_only: bool = False) -> None:
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError:  # half a letter in a file name
        data = content.encode("utf-8", "backslashreplace")
    with hashed_file(path, owner_only=owner_only) as stream:
        stream.write(data)


def _as_json(made: Report, out: Path, card: Path | None) -> dict[str, Any]:
    recommended = recommendation(made)
    return {
        "out": str(out),
        "card": None if card is None else str(card),
        "refuted": made.refuted,
        "identifying": [asdict(each) for each in made.identifying],
        "recommended": {"decision": recommended.decision.name.lower(), "words": recommended.words},
        "checks": [{"check": each.name, "held": each.held, "seen": each.seen} for each in made.checks],
        "verdicts": [json.loads(each.to_json()) for each in made.verdicts],
        "attacks": [
            *(_attack(each, owner_only=True) for each in made.owner_attacks),
            *(_attack(each, owner_only=False) for each in made.attacks),
        ],
        "controls": [_attack(each, owner_only=True) for each in made.controls],
        "relinking": [asdict(each) for each in made.relinking],
        "utility": [_measured(each) for each in made.utility],
        "fairness": [_measured(each) for each in made.fairness],
        "gaps": [asdict(each) for each in made.gaps],
        "corpus": None if made.corpus is None else asdict(made.corpus),
        "stays": made.stays,
        "unchanged": made.unchanged,
        "command": made.command,
        "notes": list(made.notes),
    }


def _attack(score: AttackScore, *, owner_only: bool) -> dict[str, Any]:
    found = {"succeeded": score.succeeded, "advantage": score.advantage, "owner_only": owner_only}
    return {**asdict(score), **found, "grade": grade(score.score, score.baseline).name.lower()}


def _measured(found: Measurement) -> dict[str, Any]:
    return {**asdict(found), "is_useful": found.is_useful, "grade": found.grade.name.lower()}
