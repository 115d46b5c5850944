"""``dptext audit``: check releases against their statements, and try to refute the guarantees."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.audits.losses import samples_needed
from dptext.cli import options
from dptext.cli.console import print_json
from dptext.cli.options import method_option
from dptext.errors import DataError, DptextError, RefusedError
from dptext.methods.base import Audit, Method
from dptext.methods.files import STATEMENT
from dptext.methods.registry import audit_release, releases_in
from dptext.privacy.wording import audited
from dptext.release.release import data_and_statement

_WIDTH = 79


@dataclass(frozen=True, kw_only=True)
class AuditOptions(options.SyntheticInputs):
    """Inputs of an audit besides the release and its statement."""

    text: options.TextOfRelease = None
    vectors: options.VectorsOfRelease = None
    bank: options.BankOfRelease = None
    words: Annotated[
        tuple[str, ...],
        method_option(
            "--word", metavar="WORD", help="Word replacement: audit pairs of these words (repeatable); default: random."
        ),
    ] = ()
    samples: options.Samples = 200_000


@options.collected
def audit(*, file: options.ReleaseArgument, public_inputs: AuditOptions, output: options.Output) -> None:
    """Check a release against its statement, and try to refute the guarantee.

    Exit code 3: something is refuted.

    Example: dptext audit private.csv
    """
    inputs = {**vars(public_inputs), "public": [Path(path) for path in public_inputs.public]}
    inputs["seed"] = options.ANALYSIS_SEED
    files = releases_in(file)
    if files:
        _audit_files(files, inputs, output)
        return
    result = _audit(file, inputs, output)
    output.answer(result.as_dict, lambda: _print(result))
    if result.refuted:
        raise RefusedError(f"refuted: the guarantee of {result.statement_name} does not hold")


@dataclass(frozen=True)
class _AuditedRelease:
    method: Method
    audit: Audit
    statement_name: str

    @property
    def refuted(self) -> bool:
        return self.audit.refuted

    def as_dict(self) -> dict[str, Any]:
        checks = [{"check": check.name, "held": check.held, "seen": check.seen} for check in self.audit.checks]
        return {"refuted": self.refuted, "checks": checks, "verdict": json.loads(self.audit.verdict.to_json())}


def _audit(
    path: Path, inputs: dict[str, Any], output: options.Output, *, only_fitting: bool = False
) -> _AuditedRelease:
    output.say(f"Auditing {path.name} ...")
    method, result = audit_release(path, only_fitting=only_fitting, **inputs)
    is_folder = path.name == STATEMENT or (path / STATEMENT).exists()
    return _AuditedRelease(method, result, STATEMENT if is_folder else data_and_statement(path)[1].name)


def _audit_files(files: list[Path], inputs: dict[str, Any], output: options.Output) -> None:
    """Audit all private files of a folder; report the files that cannot be audited, with the reason."""
    results: dict[str, _AuditedRelease] = {}
    failures: dict[str, str] = {}
    prints = not (output.as_json or output.quiet)
    for file in files:
        if prints:
            typer.echo(f"{file.name}\n{'=' * len(file.name)}")
        try:
            results[file.name] = _audit(file, inputs, output, only_fitting=True)
        except DptextError as error:
            failures[file.name] = str(error)
        if prints and file.name in failures:
            typer.echo(textwrap.fill(f"not audited: {failures[file.name]}", _WIDTH))
        elif prints:
            _print(results[file.name])
    if output.as_json:
        data = {name: result.as_dict() for name, result in results.items()}
        print_json(data | {name: {"refuted": None, "why": reason} for name, reason in failures.items()})
    refuted = [result.statement_name for result in results.values() if result.refuted]
    if refuted:
        raise RefusedError(f"refuted: the guarantee of {', '.join(refuted)} does not hold")
    if failures:
        name, reason = next(iter(failures.items()))
        raise DataError(f"{len(failures)} of {len(files)} files could not be audited; {name}: {reason}")


def _print(result: _AuditedRelease) -> None:
    statement, verdict, audited_for = result.audit.statement, result.audit.verdict, result.method.audited
    typer.echo("THE FOLDER" if result.statement_name == STATEMENT else "THE FILE")
    for check in result.audit.checks:
        mark = {True: "yes", False: "NO", None: "-"}[check.held]
        line = f"{mark:<4}{check.name} ({check.seen})"
        typer.echo(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent=" " * 8))
    text_unit = "sentence" if "pure_epsilon_of_a_sentence" in statement.parameters else "document"
    unit = {"vectors": "vector", "words": "word", "texts": text_unit}.get(audited_for, str(statement.unit))
    explanation = verdict.explain(of_another=result.refuted and not verdict.refuted)
    typer.echo(f"\nTHE GUARANTEE FOR A {unit.upper()}\n{explanation}\n\nMEANING")
    is_small = audited_for == "vectors" and not verdict.refutable and verdict.allowed < 30
    needed = samples_needed(verdict.allowed, error=verdict.error, delta=verdict.delta) if is_small else 0
    for line in audited(verdict, statement, refuted=result.refuted, of=audited_for, needed=needed):
        typer.echo(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="  "))
