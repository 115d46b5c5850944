"""`report`: examine a release, and put it on a page (HTML) and a card (Markdown)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dptext.attacks.base import AttackScore
from dptext.audits.verdict import Verdict
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, extras
from dptext.features.pool import public_sources
from dptext.io.batches import display_name
from dptext.io.documents import PathLike
from dptext.methods.corpus import Corpus
from dptext.methods.examination import Grade, Measurement, grade
from dptext.methods.files import Check
from dptext.methods.registry import method_of_folder, open_release
from dptext.privacy import wording
from dptext.privacy.statement import HasStatement, PrivacyStatement
from dptext.release.release import Release, data_and_statement
from dptext.reports import summary
from dptext.text.identifiers import Column
from dptext.vectors.formats import GLOVE, GLOVE_PACKAGE

_FILES = ("original", "held_out", "distribution", "bank")


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(HasStatement, ReprMixin):
    """The contents of one page.

    Attributes:
        title: title of the page.
        statement: the privacy statement.
        checks: checks of the file against the statement.
        verdicts: audits of the guarantee.
        attacks: success of attacks on the release.
        owner_attacks: success of attacks measured with the original texts, which the guarantee does not cover.
        controls: the same attacks on original texts: an attack that fails there as well is not informative.
        limits: bounds that the noise of a description sets on membership attacks, by measure.
        utility: utility of the release.
        stays: share of words that stay unchanged, at public frequencies; None: no word mechanism.
        corpus: size of a synthetic corpus; None: no corpus.
        notes: sentences for the reader.
        identifying: kept columns that look like identifiers.
    """

    title: str
    statement: PrivacyStatement
    checks: Sequence[Check] = ()
    verdicts: Sequence[Verdict] = ()
    attacks: Sequence[AttackScore] = ()
    owner_attacks: Sequence[AttackScore] = ()
    controls: Sequence[AttackScore] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    utility: Sequence[Measurement] = ()
    stays: float | None = None
    corpus: Corpus | None = None
    notes: Sequence[str] = ()
    identifying: Sequence[Column] = ()

    @property
    def refuted(self) -> bool:
        """Whether a check failed or an audit refuted the guarantee."""
        return any(verdict.refuted for verdict in self.verdicts) or any(check.passed is False for check in self.checks)

    @property
    def noise_agrees(self) -> bool:
        """Whether the noise was compared with the original texts and agrees with the statement."""
        return any(check.owner_only and check.passed for check in self.checks)

    @property
    def has_owner_numbers(self) -> bool:
        """Whether any number was computed from original texts."""
        return bool(
            self.owner_attacks
            or self.controls
            or any(check.owner_only for check in self.checks)
            or any(entry.owner_only for entry in self.utility)
        )

    def shared(self) -> Report:
        """Return a report to share: everything that was computed without original texts."""
        return replace(
            self,
            checks=[
                replace(check, detail="measured with the original texts", owner_only=False)
                if check.owner_only
                else check
                for check in self.checks
                if not check.owner_only or check.passed is False
            ],
            owner_attacks=(),
            controls=(),
            utility=[entry for entry in self.utility if not entry.owner_only],
            notes=(),
        )

    def html(self) -> str:
        """Return the page in HTML."""
        attacks = [
            (_row(score, score.attack, *summary.judge(self, score), owner_only=is_owners), score in main)
            for scores, is_owners in ((self.owner_attacks, True), (self.attacks, False))
            for main in [summary.main_scores(scores)]
            for score in scores
        ]
        return wording.filled(
            "reports/templates/page.html",
            report=self,
            attacks=[row for row, is_main in attacks if is_main],
            more_attacks=[row for row, is_main in attacks if not is_main],
            controls=[
                _row(score, score.attack, grade(score.score, score.baseline), "control", owner_only=True)
                for score in summary.main_scores(self.controls)
            ],
            bank=wording.is_bank_statement(self.statement),
            utility=[_row(entry, entry.name, entry.grade, "model", entry.owner_only) for entry in self.utility],
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
            attacks=[(attack.attack, attack) for attack in shared.attacks],
            utility=[(entry.name, entry) for entry in shared.utility],
            **_shared_values(shared, summary.recommendation(shared, to_recipient=True)),
        )

    def _repr_fields(self) -> Fields:
        yield "title", self.title
        yield "refuted", self.refuted
        yield "verdicts", len(self.verdicts)
        yield "attacks", len(self.attacks) + len(self.owner_attacks)
        yield "guarantee", str(self.statement.guarantee)

    def _sign(self, verdict: Verdict) -> bool | None:
        if self.refuted:
            return False
        return True if verdict.refutable and (self.noise_agrees or not summary.is_uncompared(verdict)) else None


def report(private: PathLike | Release, *, title: str = "", **options: Any) -> Report:
    """Examine a release, and put its guarantee, audit, attacks and utility on one page.

    Args:
        private: private texts, a .parquet of vectors, or a synthetic corpus, with its statement next to it; the
            statement or the card next to it; or the release of `dptext.privatize_file`.
        title: title of the page; empty: the name of the private file.
        options: files, columns and sizes by the names of ``dptext report`` (``original``, ``held_out``, ``bank``,
            ``public``, ``distribution``, ``text``, ``user``, ``label``, ``attribute``, ``rows``, ``seed``, ...).

    Returns:
        A `Report`: ``html()`` is the page, ``card()`` a short one in Markdown without the numbers that only the owner
        of the texts should see, ``refuted`` whether the guarantee does not hold.

    Raises:
        DataError: the rows differ from the original ones; a column or the statement is missing.
        ParameterError: an option that does not fit the release, a column with one class.
        StorageError: a file cannot be read.
        MissingExtraError: scikit-learn or scipy is not installed.
    """
    if isinstance(private, Release):
        if "out" not in private.outputs:
            raise ParameterError("this release is in memory: make a file with dptext.privatize_file, and give its path")
        private = private.out
    path = Path(private)
    named = {name: Path(value) for name, value in options.items() if name in _FILES and value}
    if len({entry.resolve() for entry in (path, *named.values())}) <= len(named):
        raise ParameterError("private, original, held_out, distribution and bank must be different files")
    options |= named | {"public": public_sources(options.get("public") or ())}
    data = data_and_statement(path)[0]
    of_folder = method_of_folder(data) if data.is_dir() else None
    if of_folder is not None and (of_folder.examination is None or "distribution" in of_folder.inputs):
        raise ParameterError(
            f"{data.name} is a folder of dptext: name a private file, or run `dptext audit {data.name}`"
        )
    method, files = open_release(path, **options)
    if method.examination is None:
        raise ParameterError(f"{data.name} contains {method.holds}: there is no report about this method")
    required = [("scipy.stats", "report"), ("sklearn", "report")]
    if (files.vectors or files.statement.parameters.get("vectors")) == GLOVE:
        required.append((GLOVE_PACKAGE, "glove"))
    extras(required, "this report")  # checked before minutes of work
    examination = method.examination(files)
    examination.run()
    names = {field.name for field in fields(Report)} - {"title"}
    values: dict[str, Any] = {name: value for name, value in vars(examination).items() if name in names}
    return Report(title=title or f"Report on {display_name(data)}", **values)


def _shared_values(report: Report, recommended: summary.Recommendation) -> dict[str, Any]:
    answers = summary.answers(report)
    is_good = next(entry.good for entry in answers["guarantee"] if entry.topic == "held")
    topic = recommended.attack or "membership"
    levels = {
        "guarantee": None if recommended.level is summary.Level.WEAK else is_good,
        "attack": next((entry for entry in answers["attacks"] if entry.topic == topic), None),
        "utility": answers["utility"],
    }
    return {
        "answers": answers,
        "recommended": recommended,
        "levels": levels,
        "protected": wording.protected(report.statement),
        "not_protected": wording.not_protected(report.statement),
    }


def _row(
    result: AttackScore | Measurement, name: str, grade: Grade, of: summary.Of, owner_only: bool
) -> dict[str, Any]:
    visible = _percent if result.measure == "accuracy" or result.measure.startswith("share ") else _three_digits
    is_rival = isinstance(result, Measurement) and result.is_rival
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
        "good": None if is_rival or is_ceiling else summary.sign(grade, of),
        "owner_only": owner_only,
    }


_KINDS = ("membership", "linkage", "word recovery", "attribute inference")


def _three_digits(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no minus before a zero


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%" if value >= 0.001 or value == 0 else f"{100 * value:.2g}%"
