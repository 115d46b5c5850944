"""``dptext explain``, ``dptext audit`` and ``dptext report``: the statement, the guarantee and a page of a release."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from dptext.audits.losses import samples_needed
from dptext.cli import options
from dptext.cli.console import filled, print_json
from dptext.cli.options import argument, input_option, method_option, output_option, parse_settings, run_option
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.features.pool import local_files
from dptext.io.artifacts import read_stored
from dptext.io.atomic import check_target, hashed_file
from dptext.methods.base import Method
from dptext.methods.files import Audit
from dptext.methods.registry import open_release, verify_release
from dptext.privacy.claims import SETTINGS, read_claim
from dptext.privacy.statement import PrivacyStatement, each_once
from dptext.privacy.wording import paragraphs
from dptext.release.release import STATEMENT, data_and_statement
from dptext.reports.page import Report
from dptext.reports.page import report as make_report
from dptext.reports.summary import recommendation
from dptext.validation import check_choice

# -- explain -------------------------------------------------------------------------------------------------------


def explain(
    *,
    file: Path | None = argument(None, "A release, its statement (.privacy.json), or its card next to it.", "FILE"),
    claim: str | None = input_option(
        None, f"Recompute settings of {', '.join(SETTINGS)}: NAME=VALUE,... or FILE.json.", "TOOL:SETTINGS"
    ),
    form: Literal["text", "dataset-card", "registry", "statement"] = output_option(
        "text", "Text, a Hugging Face card, a deployment registry entry, or the JSON statement.", None, "--format"
    ),
    output: options.Output,
) -> None:
    """Explain a privacy statement, and verify that it belongs to the data.

    Example: dptext explain private.csv
    """
    if (file is None) == (claim is None):
        raise ParameterError("explain needs a FILE or a --claim, and not both")
    release = None if file is None else verify_release(file)
    statement = release.statement if release is not None else _read_claim(claim or "")
    if output.as_json:
        print_json({"statement": json.loads(statement.to_json()), "data_agrees": release and release.agrees})
    elif form != "text":
        typer.echo(statement.to_json() if form == "statement" else statement.explain(form))
    elif not output.quiet:
        typer.echo(statement.explain())
        if release is not None:
            [comparison] = paragraphs("cli/templates/explain.txt", release=release, name=release.data.name)
            typer.echo(f"\nTHE DATA\n{filled(comparison)}")
    if release is not None and release.agrees is False:
        raise DataError(f"{release.data.name} does not match its statement: the SHA-256 digest differs")


def _read_claim(claim: str) -> PrivacyStatement:
    tool, _, text = claim.partition(":")
    known = SETTINGS[check_choice("the tool of --claim", tool, SETTINGS)]
    if not text.endswith(".json"):
        return read_claim(tool, parse_settings(text.split(","), f"a claim of {tool}", known, "--claim"))
    try:
        settings = dict(json.loads(read_stored(text), object_pairs_hook=each_once))
    except (TypeError, ValueError, RecursionError):
        raise DataError(f"{Path(text).name} must be a JSON object of settings") from None
    return read_claim(tool, settings)


# -- audit ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AuditInputs(options.PublicInputs):
    """Public inputs and size of an audit."""

    words: tuple[str, ...] = method_option((), "Word replacement: audit these words (repeatable).", "WORD", "--word")
    samples: int = run_option(200_000, "Outputs per input where an audit has to sample.", "N", min=100)


def audit(*, file: Path = options.RELEASE, public_inputs: AuditInputs, output: options.Output) -> None:
    """Check a release against its statement, and try to refute the guarantee.

    Exit code 3: a check failed, or the guarantee is refuted.

    Example: dptext audit private.csv
    """
    statement = data_and_statement(file)[1].name
    method, release = open_release(file, **public_inputs.inputs())
    output.say(f"Auditing {release.statement.mechanism} ...")
    result = method.check(release)
    is_folder = statement == STATEMENT

    def as_dict() -> dict[str, Any]:
        checks, verdict = [asdict(check) for check in result.checks], json.loads(result.verdict.to_json())
        return {"refuted": result.refuted, "checks": checks, "verdict": verdict}

    output.print_result(as_dict, lambda: typer.echo("\n".join(_audit_lines(method, result, is_folder=is_folder))))
    if result.refuted:
        raise RefusedError(f"refuted: the guarantee of {statement} does not hold")


def _audit_lines(method: Method, audit: Audit, *, is_folder: bool) -> list[str]:
    statement, verdict, refuted = audit.statement, audit.verdict, audit.refuted
    lines = ["THE FOLDER" if is_folder else "THE FILE"]
    for check in audit.checks:
        mark = {True: "yes", False: "NO", None: "-"}[check.passed]
        lines.append(filled(f"{mark:<4}{check.name} ({check.detail})", hang=" " * 6))
    kind = method.audited
    text_unit = "sentence" if "pure_epsilon_of_a_sentence" in statement.parameters else "document"
    unit = {"vectors": "vector", "words": "word", "texts": text_unit}.get(kind, str(statement.unit))
    explanation = verdict.explain(other_file=refuted and not verdict.refuted)
    is_small = kind == "vectors" and not verdict.refutable and verdict.allowed < 30
    needed = samples_needed(verdict.allowed, error=verdict.error, delta=verdict.delta) if is_small else 0
    values = {"verdict": verdict, "statement": statement, "refuted": refuted, "of": kind, "needed": needed}
    meaning = paragraphs("privacy/templates/audited.txt", **values)
    return [*lines, f"\nTHE GUARANTEE FOR A {unit.upper()}", explanation, "\nMEANING", *map(filled, meaning)]


# -- report --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReportOptions(options.PublicInputs):
    """Settings of a report, as `dptext.report` names them."""

    private: Path = argument(..., "A release with its statement next to it: texts, vectors or a corpus.", "PRIVATE")
    original: Path | None = input_option(
        None, "Original texts, for attacks. Only their owner may see the page.", "FILE"
    )
    held_out: Path | None = input_option(None, "Corpus: rows like --original, of other people.", "FILE")
    label: str | None = input_option(None, "Label that models are trained to predict (utility).", "COLUMN")
    attribute: str | None = input_option(None, "Attribute of the authors that attacks try to infer.", "COLUMN")
    user: str | None = input_option(None, "Column that names the author, if authors have several rows.", "COLUMN")
    redact_list: Path | None = options.REDACTION_LIST
    rows: int = run_option(3000, "Maximum number of rows to attack, sampled at random.", "N")


def report(
    *,
    settings: ReportOptions,
    out: Path = output_option(..., "The page.", "OUT.html", "--out", "-o"),
    card: Path | None = output_option(None, "Also write a Markdown card, without numbers from --original.", "CARD.md"),
    force: bool = options.FORCE,
    output: options.Output,
) -> None:
    """Write a page about a release: guarantee, attack success and utility.

    Exit code 3: the guarantee is refuted. The page is written anyway, and says so.

    Example: dptext report private.csv -o page.html --original notes.csv --label topic
    """
    data, statement = data_and_statement(settings.private)
    named = settings.inputs()
    files = local_files(named["public"])
    inputs = [data, statement, settings.original, settings.held_out, settings.redact_list, *files]
    others = {"an input": [file for file in inputs if file is not None]}
    check_target(out, replace=force, apart_from=others)
    if card is not None:
        check_target(card, replace=force, apart_from=others | {"OUT.html": [out]})
    output.say(f"Examining {data.name} ...")
    page = make_report(**named)
    write_page(out, page.html(), owner_only=settings.original is not None or page.has_owner_numbers)
    if card is not None:
        write_page(card, page.card())
    if output.as_json:
        print_json(_as_dict(page) | {"out": str(out), "card": None if card is None else str(card)})
    output.say(f"Wrote {out}" + (f" and {card}" if card is not None else "") + ": open it in a browser.")
    if page.has_owner_numbers:
        output.say(
            f"Note: {out} contains numbers computed from the original texts, which the guarantee does not cover. It is "
            "for the owner of the data only."
        )
    if page.refuted:
        raise RefusedError(f"refuted: the guarantee of {settings.private.name} does not hold; see {out}")


def write_page(path: Path, content: str, *, owner_only: bool = False) -> None:
    """Write a page or a card; with ``owner_only``, nobody else can read the file."""
    with hashed_file(path, owner_only=owner_only) as stream:
        stream.write(content.encode("utf-8", "backslashreplace"))  # a file name may contain half a letter


_LISTS = ("checks", "attacks", "owner_attacks", "controls", "utility", "identifying")


def _as_dict(page: Report) -> dict[str, Any]:
    recommended, derived = recommendation(page), ("succeeded", "advantage", "is_useful")

    def as_dict(item: Any) -> dict[str, Any]:
        return asdict(item) | {name: getattr(item, name) for name in derived if hasattr(item, name)}

    return {
        "recommended": {"decision": recommended.decision.name.lower(), "words": recommended.words},
        "verdicts": [json.loads(verdict.to_json()) for verdict in page.verdicts],
        **{name: [as_dict(item) for item in getattr(page, name)] for name in _LISTS},
        "corpus": None if page.corpus is None else asdict(page.corpus),
        **{name: getattr(page, name) for name in ("refuted", "stays", "notes")},
    }
