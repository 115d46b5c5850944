"""``dptext report``: a page about a release."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.attacks import AttackScore
from dptext.cli import options
from dptext.cli.console import print_json
from dptext.cli.options import input_option, output_option, run_option
from dptext.errors import ParameterError, RefusedError
from dptext.io.atomic import check_target, hashed_file
from dptext.methods.findings import ReportConfig
from dptext.methods.registry import text_column
from dptext.methods.results import Measurement, grade
from dptext.release.release import data_and_statement, read_statement
from dptext.reports.page import Report
from dptext.reports.report import report as make_report
from dptext.reports.summary import recommendation


@dataclass(frozen=True, kw_only=True)
class ReportOptions(options.SyntheticInputs):
    """What a page is to report, by the names that `ReportConfig` has for it."""

    private: Annotated[
        Path,
        typer.Argument(metavar="PRIVATE", help="A release with its statement beside it: texts, vectors or a corpus."),
    ]
    original: Annotated[
        Path | None,
        input_option(
            metavar="FILE",
            help="The original texts, for attacks that know them. The page is then for their owner only.",
        ),
    ] = None
    held_out: Annotated[
        Path | None,
        input_option(
            metavar="FILE", help="Synthetic corpus: rows like --original, of people who are not in it, to test on."
        ),
    ] = None
    text: options.TextOfRelease = None
    label: Annotated[
        str | None, input_option(metavar="COLUMN", help="Label that models are trained to predict (utility).")
    ] = None
    attribute: Annotated[
        str | None, input_option(metavar="COLUMN", help="Attribute of the authors that attacks try to infer.")
    ] = None
    group: Annotated[
        str | None, input_option(metavar="COLUMN", help="Groups to compare the utility for (needs --label).")
    ] = None
    user: Annotated[
        str | None, input_option(metavar="COLUMN", help="Column that names the author, if authors have several rows.")
    ] = None
    vectors: options.VectorsOfRelease = None
    bank: options.BankOfRelease = None
    redact_list: options.RedactedList = None
    rows: Annotated[int, run_option(metavar="N", help="Maximum number of rows to attack, sampled at random.")] = 3000


@options.collected
def report(
    *,
    asked: ReportOptions,
    out: Annotated[Path, output_option("--out", "-o", metavar="OUT.html", help="The page.")],
    card: Annotated[
        Path | None, output_option(metavar="CARD.md", help="Also a Markdown card, without numbers from --original.")
    ] = None,
    force: options.Force = False,
    output: options.Output,
) -> None:
    """Write a page about a release: guarantee, attack success and utility.

    Exit code 3: the guarantee is refuted. The page is written all the same, and says so.

    Example: dptext report private.csv -o page.html --original notes.csv --label topic
    """
    data, beside = data_and_statement(asked.private)
    text = asked.text or (text_column(data, read_statement(beside)) if beside.exists() else "text")
    values = {each.name: getattr(asked, each.name) for each in fields(asked)}
    values |= {"text": text, "public": [Path(name) for name in asked.public], "seed": options.ANALYSIS_SEED}
    question = ReportConfig(**values)
    inputs = (data, beside, question.original, question.held_out, question.redact_list, *question.public)
    for path, suffixes, kind in ((out, (".html", ".htm"), "page"), (card, (".md",), "card")):
        if path is not None and path.suffix.lower() not in suffixes:
            raise ParameterError(f"a {kind} ends in {suffixes[0]}, got {path.name!r}")
        if path is not None:
            check_target(path, replace=force, apart_from={"an input": [each for each in inputs if each is not None]})
    made = make_report(question, command=_command(asked, out, card), say=output.say)
    _write(out, made.html(), owner_only=question.original is not None or made.has_owner_numbers)
    if card is not None:
        _write(card, made.card())
    if output.as_json:
        print_json(_as_json(made, out, card))
    output.say(f"Wrote {out}" + (f" and {card}" if card is not None else "") + ": open it in a browser.")
    if made.has_owner_numbers:
        output.say(
            f"Note: {out} holds numbers computed from the original texts, which the guarantee does not cover. It is "
            "for the owner of the data only."
        )
    if made.refuted:
        raise RefusedError(f"refuted: the guarantee of {question.private.name} does not hold; see {out}")


def _command(asked: ReportOptions, out: Path, card: Path | None) -> str:
    """Return the command that makes the page again, without folders."""
    words = ["dptext", "report", asked.private.name, "-o", out.name]
    values = {each.name: getattr(asked, each.name) for each in fields(asked) if each.name != "private"}
    usual = {each.name: each.default for each in fields(asked)}
    for name, value in (values | {"card": card}).items():
        if value is not None and value != usual.get(name):
            is_path = isinstance(value, Path) or name in ("vectors", "public")
            for part in value if isinstance(value, tuple) else (value,):
                words += [options.flag(name), Path(part).name if is_path else str(part)]
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
