"""``dptext audit``: try to refute the promise that stands beside a private file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.audits.sampled import samples_needed
from dptext.audits.verdict import Verdict
from dptext.cli import options
from dptext.cli.console import print_json
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import audited
from dptext.release.release import data_and_statement, read_statement
from dptext.reports.file_audit import (
    Check,
    audit_bank_file,
    audit_description,
    audit_synthetic_file,
    audit_vector_file,
    audit_word_file,
    description_folder,
    is_of_vectors,
)
from dptext.reports.mechanisms import is_of_bank, rewriter_from_statement
from dptext.synthesis.distribution import announces_description, is_described, read_description
from dptext.words.registry import mechanism_from_statement

__all__ = ["audit"]


@options.collected
def audit(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A private or synthetic file, statement beside it, or a description.")
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
    how: dict[str, Any] = {"samples": samples, "error": error, "seed": seed}
    folder = file.parent if file.name == _IN_A_FOLDER else file
    if folder.is_dir() and announces_description(folder):
        output.say("Auditing the description ...")
        statement, checks, verdict = audit_description(folder)
        return _report(checks, verdict, statement, folder / _IN_A_FOLDER, output)
    data, beside = data_and_statement(file)
    statement = read_statement(beside)
    if not is_described(statement) and (synthetic.public or synthetic.distribution):
        raise ParameterError("the file is no synthetic corpus: leave --public and --distribution out")
    if is_of_bank(statement):
        _refuse_words(words, vectors, "texts of a bank")
        output.say(f"Auditing {statement.mechanism} ...")
        rewriter = rewriter_from_statement(statement, bank)
        checks, verdict = audit_bank_file(statement, data, rewriter, text=text, **how)
        return _report(checks, verdict, statement, beside, output)
    if bank is not None:
        raise ParameterError("the file holds no texts of a bank: leave --bank out")
    if not is_described(statement) and not is_of_vectors(statement):
        mechanism = mechanism_from_statement(statement, vectors=vectors)
        output.say(f"Auditing {statement.mechanism} on {mechanism.vectors.source} ...")
        checks, verdict = audit_word_file(statement, data, mechanism, text=text, words=words or None, **how)
        return _report(checks, verdict, statement, beside, output)
    _refuse_words(words, vectors, "private vectors" if is_of_vectors(statement) else "public or generated texts")
    output.say(f"Auditing {statement.mechanism} ...")
    if is_of_vectors(statement):
        checks, verdict = audit_vector_file(statement, data, **how)
    else:
        at = description_folder(data, synthetic.distribution)
        described = None if at is None else read_description(at)
        checks, verdict = audit_synthetic_file(statement, data, text=text, pool=synthetic.pool(), described=described)
    return _report(checks, verdict, statement, beside, output)


_IN_A_FOLDER = "privacy.json"


def _refuse_words(words: Sequence[str], vectors: str | None, holds: str) -> None:
    if words or vectors is not None:
        raise ParameterError(f"the file holds {holds}, no private words: leave --word and --vectors out")


def _report(
    checks: list[Check], verdict: Verdict, statement: PrivacyStatement, beside: Path, output: options.Output
) -> None:
    refuted = verdict.refuted or any(check.held is False for check in checks)
    if output.as_json:
        found = [{"check": check.name, "held": check.held, "seen": check.seen} for check in checks]
        print_json({"refuted": refuted, "checks": found, "verdict": json.loads(verdict.to_json())})
    elif not output.quiet:
        _print(checks, verdict, statement, refuted=refuted)
    if refuted:
        raise RefusedError(f"refuted: {beside.name} promises what does not hold")


def _print(checks: list[Check], verdict: Verdict, statement: PrivacyStatement, *, refuted: bool) -> None:
    typer.echo("THE FILE")
    for check in checks:
        mark = {True: "yes", False: "NO", None: "-"}[check.held]
        line = f"{mark:<4}{check.name} ({check.seen})"
        typer.echo(textwrap.fill(line, 96, initial_indent="  ", subsequent_indent=" " * 8))
    of = "people" if is_described(statement) else "vectors" if is_of_vectors(statement) else "words"
    of = "texts" if is_of_bank(statement) else of
    part = "sentence" if "pure_epsilon_of_a_sentence" in statement.parameters else "document"
    what = {"people": str(statement.unit), "vectors": "vector", "words": "word", "texts": part}[of]
    typer.echo(f"\nTHE PROMISE FOR A {what.upper()}\n{verdict.explain(of_another=refuted and not verdict.refuted)}")
    typer.echo("\nWHAT THIS MEANS")
    few = of == "vectors" and not verdict.refutable and verdict.allowed < 30
    needed = samples_needed(verdict.allowed, error=verdict.error, delta=verdict.delta) if few else 0
    for line in audited(verdict, statement, refuted=refuted, of=of, needed=needed):
        typer.echo(textwrap.fill(line, 96, initial_indent="  ", subsequent_indent="  "))
