"""Inspect a release: ``dptext audit`` tests its guarantee, ``dptext report`` writes a page about it."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.attacks import AttackScore
from dptext.attacks.base import ATTACKERS
from dptext.audits.losses import samples_needed
from dptext.checks import choice
from dptext.cli import options
from dptext.cli.attackers import Attackers
from dptext.cli.console import print_json
from dptext.cli.options import RedactedList
from dptext.errors import DataError, DptextError, ParameterError, RefusedError
from dptext.io.atomic import check_target, hashed_file
from dptext.methods.base import Audit
from dptext.methods.files import FolderKind, folder_kind, other_than_audited, private_files
from dptext.methods.findings import ReportConfig
from dptext.methods.registry import METHODS, method_of, open_release
from dptext.methods.results import Measurement, grade
from dptext.privacy.wording import audited
from dptext.release.release import data_and_statement, read_statement
from dptext.reports.answers import recommendation
from dptext.reports.page import Report
from dptext.reports.report import report as make_report


@options.collected
def audit(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A private or synthetic file, statement beside it, or a folder: of such files, of vectors of words, a "
            "description, an encoder for devices.",
        ),
    ],
    text: options.Text = "text",
    vectors: options.MovedVectors = None,
    words: Annotated[
        tuple[str, ...],
        typer.Option("--word", help="Audit pairs of these words (repeat it); default: chosen at random."),
    ] = (),
    bank: options.BankBehind = None,
    synthetic: options.SyntheticInputs,
    samples: options.Samples = 200_000,
    error: Annotated[
        float, typer.Option(help="How often a sampled audit may refute a true promise.", min=1e-12, max=0.5)
    ] = 1e-6,
    seed: options.AnalysisSeed = None,
    output: options.Output,
) -> None:
    """Check a private or synthetic file against its statement, and try to refute the promise itself.

    Exit code 3: something is refuted.
    """
    inputs: dict[str, Any] = {
        "text": text, "vectors": vectors, "words": words, "bank": bank, "samples": samples,
        "error": error, "seed": seed,
        "public": [Path(path) for path in synthetic.public], "public_text": synthetic.public_text,
        "distribution": synthetic.distribution,
    }  # fmt: skip
    folder = file.parent if file.name == _IN_A_FOLDER else file
    folder = folder if folder.name else folder.resolve()
    kind = folder_kind(folder) if folder.is_dir() else FolderKind.ONE_FILE
    if kind is FolderKind.FILES:
        return _of_files(private_files(folder), inputs, output)
    if kind in (FolderKind.BANK, FolderKind.OTHER):
        raise ParameterError(other_than_audited(folder, kind))
    return _report(_audited(folder, inputs, output), output)


@dataclass(frozen=True)
class _Audited:
    audit: Audit
    beside: str
    of: str

    @property
    def refuted(self) -> bool:
        return self.audit.refuted

    def as_json(self) -> dict[str, Any]:
        checks = [{"check": check.name, "held": check.held, "seen": check.seen} for check in self.audit.checks]
        return {"refuted": self.refuted, "checks": checks, "verdict": json.loads(self.audit.verdict.to_json())}


def _audited(path: Path, inputs: dict[str, Any], output: options.Output) -> _Audited:
    method, files = open_release(path, **inputs)
    output.say(f"Auditing {files.statement.mechanism} ...")
    audit = method.check(files)
    beside = _IN_A_FOLDER if path.is_dir() and (path / _IN_A_FOLDER).exists() else data_and_statement(path)[1].name
    return _Audited(audit, beside, method.audited)


_IN_A_FOLDER = "privacy.json"
_WIDTH = 79


def _report(found: _Audited, output: options.Output) -> None:
    output.answer(found.as_json, lambda: _print(found))
    if found.refuted:
        raise RefusedError(f"refuted: {found.beside} promises what does not hold")


def _of_files(files: list[Path], inputs: dict[str, Any], output: options.Output) -> None:
    """All private files of a folder, one after the other; one that cannot be audited is named with the reason."""
    found: dict[str, _Audited] = {}
    failed: dict[str, str] = {}
    for file in files:
        try:
            takes = method_of(read_statement(data_and_statement(file)[1])).inputs
            known = frozenset[str]().union(*(method.inputs for method in METHODS))
            fitting = {name: value for name, value in inputs.items() if name in takes or name not in known}
            found[file.name] = each = _audited(file, fitting, output)
        except DptextError as problem:
            failed[file.name] = str(problem)
        if not (output.as_json or output.quiet):
            typer.echo(f"{file.name}\n{'=' * len(file.name)}")
            if file.name in failed:
                typer.echo(textwrap.fill(f"not audited: {failed[file.name]}", _WIDTH))
            else:
                _print(each)
            typer.echo()
    if output.as_json:
        print_json({
            **{name: each.as_json() for name, each in found.items()},
            **{name: {"refuted": None, "why": why} for name, why in failed.items()},
        })  # fmt: skip
    refuted = [each.beside for each in found.values() if each.refuted]
    if refuted:
        raise RefusedError(f"refuted: {', '.join(refuted)} promise{'s' * (len(refuted) == 1)} what does not hold")
    if failed:
        name, why = next(iter(failed.items()))
        raise DataError(f"{len(failed)} of {len(files)} files could not be audited; {name}: {why}")


def _print(found: _Audited) -> None:
    statement, verdict, of = found.audit.statement, found.audit.verdict, found.of
    typer.echo("THE FOLDER" if found.beside == _IN_A_FOLDER else "THE FILE")
    for check in found.audit.checks:
        mark = {True: "yes", False: "NO", None: "-"}[check.held]
        line = f"{mark:<4}{check.name} ({check.seen})"
        typer.echo(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent=" " * 8))
    part = "sentence" if "pure_epsilon_of_a_sentence" in statement.parameters else "document"
    whom = str(statement.unit)
    what = {"people": whom, "learned": whom, "vectors": "vector", "words": "word", "texts": part}[of]
    typer.echo(
        f"\nTHE PROMISE FOR A {what.upper()}\n{verdict.explain(of_another=found.refuted and not verdict.refuted)}"
    )
    typer.echo("\nWHAT THIS MEANS")
    few = of == "vectors" and not verdict.refutable and verdict.allowed < 30
    needed = samples_needed(verdict.allowed, error=verdict.error, delta=verdict.delta) if few else 0
    for line in audited(verdict, statement, refuted=found.refuted, of=of, needed=needed):
        typer.echo(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="  "))


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What a page is to say of a release, by the names that `ReportConfig` has for it.

    Attributes:
        original (FILE): What it was made from, for the attacks that hold it. What is computed from it is not covered by
            the promise: the page is then for the owner of the data.
        label (COLUMN): What models are trained to name: is the release still useful? Not needed of a synthetic corpus,
            which knows its labels.
        attribute (COLUMN): What an attacker wants to know of who wrote a row.
        group (COLUMN): Groups that should be served alike (needs --label).
        user (COLUMN): Whose row each is, where people have several.
        distribution (FOLDER): Of a synthetic corpus: its description (default: PRIVATE.distribution).
        held_out (FILE): Of a synthetic corpus: a file with the columns of --original, of people who had no part: models
            are tested on it, and the release is attacked.
    """

    private: Annotated[
        Path,
        typer.Argument(
            metavar="PRIVATE", help="Private texts, a .parquet of vectors or a synthetic corpus, statement beside it."
        ),
    ]
    original: Path | None = None
    text: options.Text = "text"
    label: str | None = None
    attribute: str | None = None
    group: str | None = None
    user: str | None = None
    public: options.PoolBehind = ()
    public_text: options.PublicText = "text"
    distribution: Path | None = None
    held_out: Path | None = None
    rows: Annotated[int, typer.Option(metavar="N", help="Look at this many rows at most, chosen at random.")] = 3000
    folds: options.Folds = 5
    vectors: options.MovedVectors = None
    bank: options.BankBehind = None
    redact_list: RedactedList = None
    samples: options.Samples = 200_000
    seed: options.AnalysisSeed = None

    def question(self, attackers: Sequence[str]) -> ReportConfig:
        names: Any = tuple(dict.fromkeys(choice("attacker", each, ATTACKERS) for each in attackers)) or ATTACKERS
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given["public"] = [Path(each) for each in self.public]
        if self.seed is None:
            del given["seed"]
        return ReportConfig(attackers=names, **given)


@options.collected
def report(
    *,
    of: QuestionOptions,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT.html", help="The page.")],
    attacker: Attackers = (),
    card: Path | None = None,
    title: Annotated[str, typer.Option(help="Of the page; default: the name of the private file.")] = "",
    force: options.Force = False,
    output: options.Output,
) -> None:
    """Make one page about a release: what is protected, what an attacker gets, what it is still good for.

    Exit code 3: the promise is refuted (the page is written all the same, and says so).

    Args:
        card (README.md): Also a Markdown card to share: without numbers computed from original texts.
    """
    question = of.question(attacker)
    _check_places(question, out, card, force=force)
    command = _command(of, out, attacker, {"card": card, "title": title or None, "seed": question.seed})
    made = make_report(question, title=title, command=command, say=output.say)
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


def _check_places(question: ReportConfig, out: Path, card: Path | None, *, force: bool) -> None:
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
            words += [options.flag(name), Path(each).name if is_path else str(each)]
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
