"""``dptext judge``: look for private texts in the output of any tool."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from dptext.cli import options
from dptext.cli.console import filled
from dptext.cli.options import input_option, method_option, output_option
from dptext.cli.releases import write_page
from dptext.errors import RefusedError
from dptext.io.atomic import check_target
from dptext.reports.judgement import judge as judge_output


@dataclass(frozen=True, kw_only=True)
class JudgedFiles:
    """The files that are compared."""

    private: Path = input_option(..., "Texts that the tool saw.", "FILE")
    held_out: Path | None = input_option(None, "Texts of the same kind that it did not see.", "FILE")
    output: Path = input_option(..., "Texts that the tool made: synthetic or anonymised.", "FILE")
    text: str = options.TEXT
    user: str | None = input_option(None, "Column that names the author: people, not texts, are counted.", "COLUMN")
    canaries: Path | None = input_option(
        None, "Canaries, with a column inserted (1 or 0, by a fair coin each): a lower bound on epsilon.", "FILE"
    )


def judge(
    *,
    files: JudgedFiles,
    by_row: bool = method_option(False, "The output has one row for each private row: also link the rows."),
    out: Path | None = output_option(None, "Also write a page.", "OUT.html", "--out", "-o"),
    force: bool = options.FORCE,
    output: options.Output,
) -> None:
    """Look for private texts in the output of any tool, beyond what held-out texts show by chance.

    No privacy statement is needed. Private and held-out texts must be a random split of one collection. Exit code 3:
    disclosure was found.

    Example: dptext judge --private seen.csv --held-out unseen.csv --output synthetic.csv -o page.html
    """
    inputs: dict[str, Any] = dict(vars(files))
    if out is not None:
        paths = [file for name, file in inputs.items() if name not in ("text", "user") and file is not None]
        check_target(out, replace=force, apart_from={"an input": paths})
    output.say(f"Comparing {files.output.name} with {files.private.name} ...")
    result = judge_output(**inputs, by_row=by_row, seed=options.ANALYSIS_SEED)
    lines = [f"{filled(sentence)}\n" for sentence in result.sentences()]
    for score in (*result.scores, *result.row_scores):
        mark = "found" if score.attack in result.findings else "-"
        lines += [f"{mark:<6}{score.attack}", f"      {score.measure}: {score.score} (chance: {score.baseline:.3f})"]
    output.print_result(lambda: asdict(result), lambda: typer.echo("\n".join(lines)))
    if out is not None:
        write_page(out, result.html(), owner_only=True)
        output.say(f"Wrote {out}. It is for the owner of the private texts only.")
    if result.findings:
        raise RefusedError(f"disclosure beyond chance was found: {', '.join(result.findings)}")
