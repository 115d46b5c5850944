"""``dptext report``: one page about a release: promise, audit, attacks, use, for whoever has to decide on it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.attacks import AttackScore
from dptext.attacks.learners import ATTACKERS
from dptext.cli.console import ConfigOption, JsonOption, QuietOption, VerboseOption, say
from dptext.errors import ParameterError, RefusedError
from dptext.own_files import check_target, replacing
from dptext.release.statements import data_and_statement
from dptext.report.corpus import Question, report_on
from dptext.report.page import Report
from dptext.report.parts import Measurement

__all__ = ["report"]


def report(
    private: Annotated[
        Path, typer.Argument(metavar="PRIVATE", help="Private texts, or a .parquet of vectors, statement beside it.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT.html", help="The page.")],
    original: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What it was made from, for the attacks that hold it. What is computed from it is not covered by the "
            "promise: the page is then for the owner of the data.",
        ),
    ] = None,
    text: Annotated[str, typer.Option(help="The column that holds the text, in both files.")] = "text",
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What models are trained to name: is the release still useful?")
    ] = None,
    attribute: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What an attacker wants to know of who wrote a row.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Groups that should be served alike (needs --label).")
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Whose row each is, where people have several.")
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(
            metavar="README.md", help="Also a Markdown card to share: without numbers computed from original texts."
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Of the page; default: the name of the private file.")] = "",
    rows: Annotated[int, typer.Option(metavar="N", help="Look at this many rows at most, chosen by lot.")] = 3000,
    attacker: Annotated[
        list[str] | None,
        typer.Option(help=f"Who infers the attribute: {', '.join(ATTACKERS)} (may be repeated); default: all."),
    ] = None,
    folds: Annotated[int, typer.Option(help="Into how many parts rows are cut for training and test.")] = 5,
    vectors: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="The public word vectors, if they are not where they were.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Outputs of each input, where the audit has to sample.")] = 200_000,
    seed: Annotated[
        int | None, typer.Option(help="The same rows, models and intervals again. It is printed on the page.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.html and the card.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    _verbose: VerboseOption = False,
    _config: ConfigOption = None,
) -> None:
    """Make one page about a release: what is protected, what an attacker gets, what it is still good for.

    Exit code 3: the promise is refuted (the page is written all the same, and says so).
    """
    options: dict[str, Any] = {
        "original": original,
        "text": text,
        "label": label,
        "attribute": attribute,
        "group": group,
        "person": person,
        "rows": rows,
        "folds": folds,
        "vectors": vectors,
        "samples": samples,
    }
    given = {**options, **({} if seed is None else {"seed": seed})}
    question = Question(private=private, attackers=_attackers(attacker), **given)
    _check_places(question, out, card, force=force)
    command = _command(question, options, out, card, title, attacker)
    made = report_on(question, title=title, command=command, say=lambda line: say(line, quiet=quiet))
    _write(out, made.html(), owner_only=original is not None or made.has_owner_numbers)
    if card is not None:
        _write(card, made.card())
    if as_json:
        typer.echo(json.dumps(_as_json(made, out, card), ensure_ascii=False))
    say(f"Wrote {out}" + (f" and {card}" if card is not None else "") + ": open it in a browser.", quiet=quiet)
    if made.has_owner_numbers:
        say(
            f"Note: {out} holds numbers computed from the original texts, which the promise does not cover: it is for "
            "the owner of the data.",
            quiet=quiet,
        )
    if made.refuted:
        raise RefusedError(f"refuted: the statement of {private.name} promises what does not hold; {out} says more")


def _attackers(names: Sequence[str] | None) -> Any:
    if not names:
        return ATTACKERS
    foreign = [each for each in names if each not in ATTACKERS]
    if foreign:
        raise ParameterError(f"attacker must be some of {', '.join(ATTACKERS)}, got {foreign[0]!r}")
    return tuple(dict.fromkeys(names))


def _check_places(question: Question, out: Path, card: Path | None, *, force: bool) -> None:
    """Refuse, before minutes of work, what could not be written or would destroy something.

    Raises:
        ParameterError, StorageError: another suffix; as `dptext.own_files.check_target`.
    """
    data, beside = data_and_statement(question.private)
    inputs = [each for each in (data, beside, question.original) if each is not None]
    for path, suffixes, what in ((out, (".html", ".htm"), "a page"), (card, (".md",), "a card")):
        if path is None:
            continue
        if path.suffix.lower() not in suffixes:
            raise ParameterError(f"{what} ends in {suffixes[0]}, got {path.name!r}")
        check_target(path, replace=force, apart_from={"an input": inputs})


def _command(
    question: Question,
    options: dict[str, Any],
    out: Path,
    card: Path | None,
    title: str,
    attacker: Sequence[str] | None,
) -> str:
    """What makes the page again: what differs from the usual, and the seed. Files by their names alone: a card is
    shared, and folders are named after people and projects.
    """
    usual = {each.name: each.default for each in fields(Question)}
    words = ["dptext", "report", question.private.name, "-o", out.name]
    for name, value in (*options.items(), ("card", card), ("title", title or None), ("seed", question.seed)):
        if value is not None and value != usual.get(name):
            is_path = isinstance(value, Path) or name == "vectors"
            words += [f"--{name}", Path(value).name if is_path else str(value)]
    for each in attacker or ():
        words += ["--attacker", each]
    return shlex.join(words)


def _write(path: Path, content: str, *, owner_only: bool = False) -> None:
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError:  # half a letter in a file name
        data = content.encode("utf-8", "backslashreplace")
    with replacing(path, owner_only=owner_only) as stream:
        stream.write(data)


def _as_json(made: Report, out: Path, card: Path | None) -> dict[str, Any]:
    return {
        "out": str(out),
        "card": None if card is None else str(card),
        "refuted": made.refuted,
        "checks": [{"check": each.name, "held": each.held, "seen": each.seen} for each in made.checks],
        "verdicts": [json.loads(each.to_json()) for each in made.verdicts],
        "attacks": [
            *(_attack(each, owner_only=True) for each in made.owner_attacks),
            *(_attack(each, owner_only=False) for each in made.attacks),
        ],
        "utility": [_measured(each) for each in made.utility],
        "fairness": [_measured(each) for each in made.fairness],
        "gaps": [asdict(each) for each in made.gaps],
        "stays": made.stays,
        "command": made.command,
        "notes": list(made.notes),
    }


def _attack(score: AttackScore, *, owner_only: bool) -> dict[str, Any]:
    return {**asdict(score), "succeeded": score.succeeded, "advantage": score.advantage, "owner_only": owner_only}


def _measured(found: Measurement) -> dict[str, Any]:
    return {**asdict(found), "is_useful": found.is_useful}
