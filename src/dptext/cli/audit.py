"""``dptext audit``: check a release against its statement, and test the guarantee."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dptext.audits.sampled import samples_needed
from dptext.audits.verdict import Verdict
from dptext.cli import options
from dptext.cli.console import print_json
from dptext.cli.explain import IN_A_FOLDER
from dptext.cli.options import method_option
from dptext.errors import DataError, DptextError, ParameterError, RefusedError
from dptext.io.documents import find_files, first_rows
from dptext.methods.bank import is_of_bank, rewriter_from_statement
from dptext.methods.checks import Check
from dptext.methods.files import FolderKind, folder_kind, other_than_audited, private_files
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import audited
from dptext.release.release import data_and_statement, kept_as_it_was, read_statement
from dptext.reports import file_audit
from dptext.synthesis.distribution import is_described, read_description
from dptext.words.registry import mechanism_from_statement

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

    def fitting(self, statement: PrivacyStatement) -> AuditOptions:
        """Return the options without those for other kinds of files, for one file of a folder."""
        of_bank = is_of_bank(statement)
        if of_bank or is_described(statement) or file_audit.is_of_vectors(statement):
            return replace(self, vectors=None, words=(), bank=self.bank if of_bank else None)
        return replace(self, bank=None)


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
    folder = file.parent if file.name == IN_A_FOLDER else file
    folder = folder if folder.name else folder.resolve()
    kind = folder_kind(folder) if folder.is_dir() else FolderKind.ONE_FILE
    if kind is FolderKind.FILES:
        return _audit_files(private_files(folder), asked, output)
    if kind in (FolderKind.BANK, FolderKind.OTHER):
        raise ParameterError(other_than_audited(folder, kind))
    if kind is FolderKind.ONE_FILE:
        result = _audit_file(file, asked, output)
    else:
        name, check, of = {
            FolderKind.DESCRIPTION: ("distribution", file_audit.audit_description, "people"),
            FolderKind.VECTORS: ("word vectors", file_audit.audit_embeddings, "learned"),
        }.get(kind, ("encoder", partial(file_audit.audit_device, **asked.sampling), "vectors"))
        output.say(f"Auditing the {name} ...")
        result = _Audited(*check(folder), folder / IN_A_FOLDER, of)
    output.answer(result.as_json, lambda: _print(result))
    if result.refuted:
        raise RefusedError(f"refuted: the guarantee of {result.beside.name} does not hold")
    return None


@dataclass(frozen=True)
class _Audited:
    statement: PrivacyStatement
    checks: list[Check]
    verdict: Verdict
    beside: Path
    of: str

    @property
    def refuted(self) -> bool:
        return self.verdict.refuted or any(check.held is False for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        checks = [{"check": check.name, "held": check.held, "seen": check.seen} for check in self.checks]
        return {"refuted": self.refuted, "checks": checks, "verdict": json.loads(self.verdict.to_json())}


def text_column(data: Path, statement: PrivacyStatement) -> str:
    """Return the column that a release wrote its texts to: the first one that is not a kept column."""
    parts = [path for path, _ in find_files([data])] if data.exists() else []
    columns = next(first_rows(parts), {})
    return next((name for name in columns if kept_as_it_was(name) not in statement.exposed), "text")


def _audit_file(file: Path, asked: AuditOptions, output: options.Output) -> _Audited:
    data, beside = data_and_statement(file)
    statement = read_statement(beside)
    if not is_described(statement) and (asked.public or asked.distribution):
        raise ParameterError("the file is no synthetic corpus: leave --public and --distribution out")
    if not is_of_bank(statement) and asked.bank is not None:
        raise ParameterError("the file holds no texts of a bank: leave --bank out")
    of_vectors = file_audit.is_of_vectors(statement)
    if (asked.words or asked.vectors) and (is_of_bank(statement) or is_described(statement) or of_vectors):
        raise ParameterError("--word and --vectors are for word replacement, and the file was made otherwise")
    text = asked.text or ("" if of_vectors else text_column(data, statement))
    sampling = asked.sampling
    output.say(f"Auditing {statement.mechanism} ...")
    result: tuple[list[Check], Verdict]
    if of_vectors:
        result, of = file_audit.audit_vector_file(statement, data, **sampling), "vectors"
    elif is_of_bank(statement):
        rewriter = rewriter_from_statement(statement, asked.bank)
        result, of = file_audit.audit_bank_file(statement, data, rewriter, text=text, **sampling), "texts"
    elif is_described(statement):
        folder = file_audit.description_folder(data, asked.distribution)
        described = None if folder is None else read_description(folder)
        pool = asked.pool()
        result = file_audit.audit_synthetic_file(statement, data, text=text, pool=pool, described=described)
        of = "people"
    else:
        mechanism = mechanism_from_statement(statement, vectors=asked.vectors)
        words = asked.words or None
        result = file_audit.audit_word_file(statement, data, mechanism, text=text, words=words, **sampling)
        of = "words"
    return _Audited(statement, *result, beside, of)


def _audit_files(files: list[Path], asked: AuditOptions, output: options.Output) -> None:
    """Audit all private files of a folder; name those that cannot be audited, with the reason."""
    results: dict[str, _Audited] = {}
    failed: dict[str, str] = {}
    for file in files:
        try:
            statement = read_statement(data_and_statement(file)[1])
            results[file.name] = _audit_file(file, asked.fitting(statement), output)
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
    refuted = [result.beside.name for result in results.values() if result.refuted]
    if refuted:
        raise RefusedError(f"refuted: the guarantee of {', '.join(refuted)} does not hold")
    if failed:
        name, why = next(iter(failed.items()))
        raise DataError(f"{len(failed)} of {len(files)} files could not be audited; {name}: {why}")


def _print(result: _Audited) -> None:
    statement, verdict, of = result.statement, result.verdict, result.of
    typer.echo("THE FOLDER" if result.beside.name == IN_A_FOLDER else "THE FILE")
    for check in result.checks:
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
