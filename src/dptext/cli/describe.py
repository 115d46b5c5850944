"""``dptext describe``: count topics, phrases and trends, in one noisy release."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from dptext.cli import options
from dptext.cli.console import print_json
from dptext.cli.labels import PrivateTexts
from dptext.cli.options import input_option, method_option, output_option, privacy_option, run_option
from dptext.cli.outputs import (
    announce,
    check_columns,
    hidden_warnings,
    refuse_pipes,
    say_large_delta,
    say_skipped,
    shell_argument,
    written_as_dict,
)
from dptext.cli.servers import PLAN_OPTION, SUMS_OPTION, combined
from dptext.cli.servers import save_plan as write_plan
from dptext.errors import ParameterError
from dptext.features.pool import Pool, local_files, public_sources
from dptext.privacy.wording import cautioned_of, render
from dptext.release.release import rejects_path
from dptext.summary.describe import SummaryPlan, describe_files
from dptext.summary.text_summary import TextSummary


@dataclass(frozen=True, kw_only=True)
class SummaryOptions:
    """What a summary counts, and its guarantee."""

    epsilon: float | None = privacy_option(None, "Privacy budget (epsilon) per user, for all parts together.")
    delta: float = options.DELTA
    public_users: int | None = options.PUBLIC_USERS
    ledger: Path | None = options.LEDGER
    topics: Path | None = input_option(
        None, "Public topics, one NAME: DESCRIPTION per line.", "FILE", show_default="61 general topics"
    )
    time: str | None = input_option(None, "Column of dates (2004-05-31, with or without a time).", "COLUMN")
    bins: str | None = input_option(
        None, "Public time bins: a range of years, months or days, such as 2004-01..2004-12.", "BINS"
    )
    public: tuple[str, ...] = input_option(
        (), "Public texts: examples are chosen among them, and unusual phrases come first (repeatable).", "POOL"
    )
    public_text: str = options.PUBLIC_TEXT
    licence: str | None = options.LICENCE_OPTION
    phrases: int = method_option(50, "Number of phrases to count; 0: none.", "N", min=0)

    def plan(self, unit: str) -> SummaryPlan:
        if self.epsilon is None:
            raise ParameterError(options.EPSILON_REQUIRED)
        names = {field.name for field in fields(SummaryPlan)} & vars(self).keys()
        pool = Pool(public_sources(self.public), text=self.public_text, licence=self.licence) if self.public else None
        return SummaryPlan(**{name: getattr(self, name) for name in names} | {"public": pool, "unit": unit})


def describe(
    *,
    private: PrivateTexts,
    out: Path | None = output_option(None, "Output folder of the summary.", "FOLDER", "--out", "-o"),
    summary: SummaryOptions,
    save_plan: Path | None = PLAN_OPTION,
    sums: tuple[Path, Path] | None = SUMS_OPTION,
    force: bool = options.FORCE,
    seed: int | None = options.SEED,
    yes: bool = run_option(False, "Do not ask for confirmation.", None, "--yes", "-y"),
    output: options.Output,
) -> None:
    """Count topics, phrases and trends in the texts of many people, with intervals.

    All files of IN make one release. FOLDER has a page that can be shared, the numbers as JSON, and the privacy
    statement.

    Example: dptext describe notes.csv --user author --epsilon 1 --time date --bins 2024-01..2024-12 -o summary
    """
    if save_plan is not None:
        changed = options.changed_flags(summary, "ledger") + ["--seed"] * (seed is not None)
        options.check_unused("with --save-plan", *changed, IN=private.sources, user=private.user, out=out, sums=sums)
        write_plan(summary.plan(private.unit), save_plan, output, force=force)
        return
    if out is None or bool(private.sources) == (sums is not None):
        raise ParameterError("--out FOLDER and IN are required (or --sums A B instead of IN)")
    if sums is not None:
        options.check_unused("with --sums", *options.changed_flags(summary), seed=seed is not None, user=private.user)
        result = combined(sums, SummaryPlan)
        result.save(out, replace=force)
        _say_written(result, out, output, skipped=0)
        return
    options.check_user(private.unit, private.user)
    plan = summary.plan(private.unit)
    rows = private.rows(plan.columns)
    if summary.ledger is not None:
        refuse_pipes([Path(source) for source in private.sources], "--ledger")
    public = local_files(public_sources(summary.public))
    check_columns(public, text=summary.public_text)
    private.check_columns(rows, plan.columns)
    weights = ", ".join(f"{name} {weight:.0%}" for name, weight in plan.weights.items())
    statement = plan.statement(seeded=seed is not None)
    guarantee = render("before_summary", statement=statement, user=private.user, weights=f"shares: {weights}")
    caution = cautioned_of([statement], source=shell_argument(private.sources[0]))
    announce(guarantee, caution, options.Run(resume=False, seed=seed, force=force, yes=yes), output)
    say_large_delta(summary.delta, summary.public_users, output)
    with hidden_warnings():
        result, skipped = describe_files(rows, out, plan, seed=seed, ledger=summary.ledger, force=force)
    _say_written(result, out, output, skipped=skipped)


def _say_written(result: TextSummary, out: Path, output: options.Output, *, skipped: int) -> None:
    output.say(f"Wrote the summary to {out}. It can be shared: {out / 'page.html'} shows it.")
    say_skipped(skipped, output, listed=f"; {rejects_path(out)} lists them")
    output.say(f"To explain it: dptext explain {out}")
    if output.as_json:
        print_json({**result.as_dict(), **written_as_dict(out, result.statement)})
