"""`report`: examine a release, and put it on a page (HTML) and a card (Markdown)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dptext.attacks.base import AttackScore
from dptext.audits.verdict import Verdict
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, extras
from dptext.io.batches import display_name
from dptext.io.documents import PathLike
from dptext.methods import results
from dptext.methods.checks import Check
from dptext.methods.examination import ReportConfig
from dptext.methods.files import refuse_folder
from dptext.methods.registry import method_of, refuse_inputs
from dptext.privacy import wording
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import Release, data_and_statement, read_statement
from dptext.reports import summary
from dptext.text.identifiers import Column
from dptext.vectors.formats import GLOVE, GLOVE_PACKAGE


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(ReprMixin):
    """The contents of one page.

    Attributes:
        title: of the page.
        statement: the privacy statement.
        checks: checks of the file against the statement.
        verdicts: audits of the guarantee.
        attacks: success of attacks on the release.
        owner_attacks: success of attacks measured with the original texts, which the guarantee does not cover.
        controls: the same attacks on original texts: an attack that fails there as well is not informative.
        limits: bounds that the noise of a description sets on membership attacks, by measure.
        relinking: success of linking a text to one of several people.
        utility: utility of the release.
        fairness: utility for each group.
        gaps: largest gap between groups, for one model or several.
        samples: public or synthetic texts, before and after.
        stays: share of words that stay unchanged, at public frequencies; None: no word mechanism.
        corpus: contents of a synthetic corpus; None: no corpus.
        command: the command that makes the page again, for the owner.
        notes: sentences for the reader.
        identifying: kept columns that look like identifiers.
        unchanged: (unchanged, compared) original texts, for their owner; None: not compared.
        kept_pieces: names, addresses and numbers of the originals that remain, for their owner.
    """

    title: str
    statement: PrivacyStatement
    checks: Sequence[Check] = ()
    verdicts: Sequence[Verdict] = ()
    attacks: Sequence[AttackScore] = ()
    owner_attacks: Sequence[AttackScore] = ()
    controls: Sequence[AttackScore] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    relinking: Sequence[results.Relinking] = ()
    utility: Sequence[results.Measurement] = ()
    fairness: Sequence[results.Measurement] = ()
    gaps: Sequence[results.GroupGap] = ()
    samples: Sequence[tuple[str, str]] = ()
    stays: float | None = None
    corpus: results.Corpus | None = None
    command: str = ""
    notes: Sequence[str] = ()
    identifying: Sequence[Column] = ()
    unchanged: tuple[int, int] | None = None
    kept_pieces: Sequence[results.KeptPieces] = ()

    @property
    def refuted(self) -> bool:
        """Return whether a check failed or an audit refuted the guarantee."""
        return any(verdict.refuted for verdict in self.verdicts) or any(check.passed is False for check in self.checks)

    @property
    def noise_agrees(self) -> bool:
        """Return whether the noise was compared with the original texts and agrees with the statement."""
        return any(check.owner_only and check.passed for check in self.checks)

    @property
    def has_owner_numbers(self) -> bool:
        """Return whether any number was computed from original texts."""
        shared = self.shared()
        lists = ("checks", "owner_attacks", "controls", "utility", "fairness", "kept_pieces")
        is_longer = any(list(getattr(self, name)) != list(getattr(shared, name)) for name in lists)
        return is_longer or self.unchanged is not None or self.corpus != shared.corpus

    def shared(self) -> Report:
        """Return the part that may be shared: everything that was computed without original texts."""
        corpus = self.corpus
        if corpus is not None:
            corpus = replace(
                corpus,
                labels=[replace(label, real=None) for label in corpus.labels],
                spread=[replace(entry, real="") for entry in corpus.spread if not entry.owner_only],
            )
        return replace(
            self,
            checks=[
                replace(check, detail="measured with the original texts") if check.owner_only else check
                for check in self.checks
                if check.is_shared
            ],
            owner_attacks=(),
            controls=(),
            utility=[entry for entry in self.utility if not entry.owner_only],
            fairness=[entry for entry in self.fairness if not entry.owner_only],
            gaps=[gap for gap in self.gaps if not gap.owner_only],
            corpus=corpus,
            command="",
            notes=(),
            unchanged=None,
            kept_pieces=(),
        )

    def html(self) -> str:
        """Return the page."""
        attacks = [
            (_row(score, score.attack, *summary.judge(self, score), owner_only=is_owners), score in main)
            for scores, is_owners in ((self.owner_attacks, True), (self.attacks, False))
            for main in [results.main_scores(scores)]
            for score in scores
        ]
        return wording.filled(
            "reports/templates/page.html",
            report=self,
            samples=self.samples,
            attacks=[row for row, is_main in attacks if is_main],
            more_attacks=[row for row, is_main in attacks if not is_main],
            controls=[
                _row(score, score.attack, results.grade(score.score, score.baseline), "control", owner_only=True)
                for score in results.main_scores(self.controls)
            ],
            bank=wording.is_bank_statement(self.statement),
            utility=[_row(entry, entry.name, entry.grade, "model", entry.owner_only) for entry in self.utility],
            fairness=[_row(entry, entry.name, entry.grade, "model", entry.owner_only) for entry in self.fairness],
            explanation=wording.explanation_html(self.statement),
            verdict_sign=self._sign,
            **_shared_values(self, summary.recommendation(self)),
        )

    def card(self) -> str:
        """Return a short page in Markdown to share, without the numbers that only the owner should see."""
        shared = self.shared()
        return wording.filled(
            "reports/templates/card.md",
            report=shared,
            has_owner_numbers=self.has_owner_numbers,
            statement=self.statement,
            samples=shared.samples,
            attacks=[(attack.attack, attack) for attack in shared.attacks],
            utility=[(entry.name, entry) for entry in shared.utility],
            fairness=[(entry.name, entry) for entry in shared.fairness],
            **_shared_values(shared, summary.recommendation(shared, to_recipient=True)),
        )

    def _repr_fields(self) -> Fields:
        yield "title", self.title
        yield "refuted", self.refuted
        yield "verdicts", len(self.verdicts)
        yield "attacks", len(self.attacks) + len(self.owner_attacks)
        yield "guarantee", str(self.statement.guarantee)

    def _html_fields(self) -> Fields:
        return wording.facts_of(self.statement)

    def _sign(self, verdict: Verdict) -> bool | None:
        if self.refuted:
            return False
        return True if verdict.refutable and (self.noise_agrees or not summary.is_uncompared(verdict)) else None


def report(
    private: PathLike | ReportConfig | Release,
    *,
    title: str = "",
    command: str = "",
    say: Callable[[str], None] = lambda _line: None,
    **options: Any,
) -> Report:
    """Examine a release, and put its guarantee, audit, attacks, utility and fairness on one page.

    Args:
        private: private texts, a .parquet of vectors, or a synthetic corpus, with its statement next to it; or the
            release of `dptext.privatize_file`.
        title: of the page; empty: the name of the private file.
        command: the command that makes the page again.
        say: called with a line for each step.
        options: fields of `ReportConfig` (``original``, ``label``, ``attribute``, ``group``, ``user``, ``seed`` ...).

    Returns:
        A `Report`: ``html()`` is the page, ``card()`` a short one in Markdown without the numbers that only the owner
        of the texts should see, ``refuted`` whether the guarantee does not hold.

    Raises:
        DataError: a file is not what it should be: other rows than the original, a missing column, no statement.
        ParameterError: an option that does not fit the release, a column with one class, groups that are too small.
        StorageError: a file cannot be read.
        MissingExtraError: scikit-learn or scipy is not installed.
    """
    if isinstance(private, Release):
        if "out" not in private.outputs:
            raise ParameterError("this release is in memory: make a file with dptext.privatize_file, and give its path")
        private = private.out
    if not isinstance(private, ReportConfig):
        files = ("original", "distribution", "held_out", "bank")
        paths = {name: Path(value) for name, value in options.items() if name in files and value}
        private, options = ReportConfig(private=Path(private), **options | paths), {}
    config = replace(private, **options)
    if config.private.is_dir():
        refuse_folder(config.private if config.private.name else config.private.resolve())
    data, statement_file = data_and_statement(config.private)
    statement = read_statement(statement_file)
    required = [("scipy.stats", "report"), ("sklearn", "report")]
    if (config.vectors or statement.parameters.get("vectors")) == GLOVE:
        required.append((GLOVE_PACKAGE, "glove"))
    extras(required, "this report")  # all of them, before minutes of work
    method = method_of(statement)
    if method.examination is None:
        raise ParameterError(f"{data.name} contains {method.holds}: there is no report about this method")
    refuse_inputs(method, data, vars(config))
    examination = method.examination(config, data, statement, say)
    examination.run()
    names = {field.name for field in fields(Report)} - {"title", "command"}
    values: dict[str, Any] = {name: value for name, value in vars(examination).items() if name in names}
    return Report(title=title or f"Report on {display_name(data)}", command=command, **values)


def _shared_values(report: Report, recommended: summary.Recommendation) -> dict[str, Any]:
    """Return the values that page and card share."""
    answers = summary.answers(report)
    is_good = next(entry.good for entry in answers["guarantee"] if entry.topic == "held")
    topic = recommended.attack or "membership"
    levels = {
        "guarantee": None if recommended.level is summary.Level.WEAK else is_good,
        "attack": next((entry for entry in answers["attacks"] if entry.topic == topic), None),
        "utility": [entry for entry in answers["utility"] if entry.topic != "groups"],
    }
    return {
        "answers": answers,
        "recommended": recommended,
        "levels": levels,
        "protected": wording.protected(report.statement),
        "not_protected": wording.not_protected(report.statement),
        "percent": _percent,
        "percent_at_most": wording.percent_at_most,
    }


def _row(
    result: AttackScore | results.Measurement, name: str, grade: results.Grade, of: results.Of, owner_only: bool
) -> dict[str, Any]:
    """Return a row of a result table."""
    visible = _percent if result.measure == "accuracy" or result.measure.startswith("share ") else _three_digits
    is_rival = isinstance(result, results.Measurement) and result.is_rival
    is_ceiling = of in ("attacker", "allowed") and summary.is_ceiling(result)
    score, interval = result.score, "exact"
    if not summary.is_exact(result):
        interval = f"{visible(score.low)} to {visible(score.high)}"
    numbers = [round(100 * number, 1) for number in (score.low, score.value, score.high, result.baseline)]
    return {
        "kind": next((kind for kind in _KINDS if name.startswith(kind)), ""),
        "name": name,
        "measure": result.measure,
        "number": visible(score.value),
        "interval": interval,
        "percentages": numbers if 0 <= min(numbers) <= max(numbers) <= 100 else None,
        "baseline": visible(result.baseline),
        "baseline_name": result.baseline_name,
        "grade": grade,
        "of": of,
        "is_ceiling": is_ceiling,
        "detail": result.detail,
        "good": None if is_rival or is_ceiling else results.sign(grade, of),
        "owner_only": owner_only,
    }


_KINDS = ("membership", "linkage", "word recovery", "attribute inference")


def _three_digits(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no minus before a zero


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%" if value >= 0.001 or value == 0 else f"{100 * value:.2g}%"
