"""``dptext audit``: check a release against its statement, and test the guarantee."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.audits.losses import samples_needed
from dptext.cli import options
from dptext.cli.console import print_json
from dptext.cli.options import method_option
from dptext.errors import DataError, DptextError, ParameterError, RefusedError
from dptext.io.documents import find_files, first_rows
from dptext.methods.base import Audit
from dptext.methods.files import STATEMENT, FolderKind, folder_kind, other_than_audited, private_files
from dptext.methods.registry import foreign_inputs, method_of, open_release
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import audited
from dptext.release.release import data_and_statement, kept_as_it_was, read_statement
from dptext.representations.files import VECTOR

_WIDTH = 79


@dataclass(frozen=True, kw_only=True)
class AuditOptions(options.SyntheticInputs):
    """What an audit needs to know besides the file and its statement."""

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

    @property
    def sampling(self) -> dict[str, Any]:
        return {"samples": self.samples, "seed": options.ANALYSIS_SEED}

    def inputs(self) -> dict[str, Any]:
        """Return the fields of `ReleaseFiles`."""
        return {
            **({} if self.text is None else {"text": self.text}),
            "vectors": self.vectors,
            "words": self.words,
            "bank": self.bank,
            "public": [Path(path) for path in self.public],
            "public_text": self.public_text,
            "distribution": self.distribution,
            **self.sampling,
        }


@options.collected
def audit(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A private or synthetic file with its statement beside it, a folder of such files, or another folder "
            "that dptext wrote.",
        ),
    ],
    asked: AuditOptions,
    output: options.Output,
) -> None:
    """Check a release against its statement, and try to refute the guarantee.

    Exit code 3: something is refuted.

    Example: dptext audit private.csv
    """
    folder = file.parent if file.name == STATEMENT else file
    folder = folder if folder.name else folder.resolve()
    kind = folder_kind(folder) if folder.is_dir() else FolderKind.ONE_FILE
    if kind is FolderKind.FILES:
        return _audit_files(private_files(folder), asked, output)
    if kind in (FolderKind.BANK, FolderKind.OTHER):
        raise ParameterError(other_than_audited(folder, kind))
    result = _audited(folder, asked.inputs(), output)
    output.answer(result.as_json, lambda: _print(result))
    if result.refuted:
        raise RefusedError(f"refuted: the guarantee of {result.beside} does not hold")
    return None


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


def text_column(data: Path, statement: PrivacyStatement) -> str:
    """Return the column that a release wrote its texts to: the first one that is neither kept nor a vector."""
    is_of_documents = data.is_file() or (data.is_dir() and folder_kind(data) is FolderKind.ONE_FILE)
    columns = next(first_rows([path for path, _ in find_files([data])]), {}) if is_of_documents else {}
    texts = (name for name in columns if name != VECTOR and kept_as_it_was(name) not in statement.exposed)
    return next(texts, "text")


def _audited(path: Path, inputs: dict[str, Any], output: options.Output) -> _Audited:
    method, files = open_release(path, **inputs)
    if "text" not in inputs:
        files = replace(files, text=text_column(files.data, files.statement))
    output.say(f"Auditing {files.statement.mechanism} ...")
    in_folder = path.is_dir() and (path / STATEMENT).exists()
    return _Audited(method.check(files), STATEMENT if in_folder else data_and_statement(path)[1].name, method.audited)


def _audit_files(files: list[Path], asked: AuditOptions, output: options.Output) -> None:
    """Audit all private files of a folder; name those that cannot be audited, with the reason."""
    results: dict[str, _Audited] = {}
    failed: dict[str, str] = {}
    for file in files:
        try:
            foreign = foreign_inputs(method_of(read_statement(data_and_statement(file)[1])), asked.inputs())
            fitting = {name: value for name, value in asked.inputs().items() if name not in foreign}
            results[file.name] = _audited(file, fitting, output)
        except DptextError as problem:
            failed[file.name] = str(problem)
        if not (output.as_json or output.quiet):
            typer.echo(f"{file.name}\n{'=' * len(file.name)}")
            if file.name in failed:
                typer.echo(textwrap.fill(f"not audited: {failed[file.name]}", _WIDTH))
            else:
                _print(results[file.name])
            typer.echo()
    if output.as_json:
        print_json({
            **{name: result.as_json() for name, result in results.items()},
            **{name: {"refuted": None, "why": why} for name, why in failed.items()},
        })  # fmt: skip
    refuted = [result.beside for result in results.values() if result.refuted]
    if refuted:
        raise RefusedError(f"refuted: the guarantee of {', '.join(refuted)} does not hold")
    if failed:
        name, why = next(iter(failed.items()))
        raise DataError(f"{len(failed)} of {len(files)} files could not be audited; {name}: {why}")


def _print(result: _Audited) -> None:
    statement, verdict, of = result.audit.statement, result.audit.verdict, result.of
    typer.echo("THE FOLDER" if result.beside == STATEMENT else "THE FILE")
    for check in result.audit.checks:
        mark = {True: "yes", False: "NO", None: "-"}[check.held]
        line = f"{mark:<4}{check.name} ({check.seen})"
        typer.echo(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent=" " * 8))
    part = "sentence" if "pure_epsilon_of_a_sentence" in statement.parameters else "document"
    whom = str(statement.unit)
    what = {"people": whom, "learned": whom, "vectors": "vector", "words": "word", "texts": part}[of]
    typer.echo(
        f"\nTHE GUARANTEE FOR A {what.upper()}\n{verdict.explain(of_another=result.refuted and not verdict.refuted)}"
    )
    typer.echo("\nWHAT THIS MEANS")
    few = of == "vectors" and not verdict.refutable and verdict.allowed < 30
    needed = samples_needed(verdict.allowed, error=verdict.error, delta=verdict.delta) if few else 0
    for line in audited(verdict, statement, refuted=result.refuted, of=of, needed=needed):
        typer.echo(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="  "))
