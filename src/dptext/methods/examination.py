"""The examination of a release: results and grades, attacks on its rows, and reports with one row per original.

Derivation: docs/howto/report.md#reports-grades
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import product
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dptext.attacks import AttackScore, attribute_inference, linkage
from dptext.audits.verdict import Verdict
from dptext.errors import DataError, ParameterError
from dptext.evaluation.measures import Measured
from dptext.evaluation.utility import predictions
from dptext.intervals import Estimate
from dptext.io.batches import display_name
from dptext.methods.files import FOLDS, Audit, Check, ReleaseFiles, Rows, chosen_rows, columns_of, count_rows, read_rows
from dptext.privacy.guarantee import Trust
from dptext.privacy.randomness import RandomBits
from dptext.privacy.wording import paragraphs
from dptext.release.mechanism import TextMechanism, mark, placeholder
from dptext.release.redaction import read_terms, redaction_of
from dptext.release.release import is_present
from dptext.representations.device import VECTOR
from dptext.text.identifiers import columns_of as identifying_columns

_NEAR, _HALF, _NEARLY = 0.1, 0.5, 0.9  # advantages at which grades change
_TIMES = 20.0  # a guarantee of 3 nats allows about this multiple of the chance level
_SOURCES = {"private": "private rows", "raw": "original rows", "random": "texts of the bank at random"}


# -- results and their grades --------------------------------------------------------------------------------------


class Grade(IntEnum):
    """Distance of a number above its chance level, in ascending order."""

    GUESS = 0
    UNCLEAR = 1
    LITTLE = 2
    MORE = 3
    MOST = 4
    NEARLY_ALL = 5


def advantage(value: float, baseline: float) -> float:
    """Return the part of the distance from the baseline to 1 that a number covers; 0 for a baseline of 1."""
    return 0.0 if baseline == 1.0 else (value - baseline) / (1.0 - baseline)


def grade(score: Estimate, baseline: float) -> Grade:
    """Return the grade of a number compared with its baseline; the only place that decides it."""
    low, number, high = (advantage(value, baseline) for value in (score.low, score.value, score.high))
    if low <= 0:
        return Grade.GUESS if high <= _NEAR else Grade.UNCLEAR
    if high <= _NEAR and not 0 < _TIMES * baseline < score.low:
        return Grade.LITTLE
    return Grade.NEARLY_ALL if number >= _NEARLY else Grade.MOST if number >= _HALF else Grade.MORE


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One measurement of the utility of a release."""

    name: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    gain: Estimate | None = None
    detail: str = ""
    owner_only: bool = False
    is_rival: bool = False
    lead: Estimate | None = None  # of the model trained on the corpus, on the same texts

    @classmethod
    def of(cls, measured: Measured, **fields: Any) -> Measurement:
        values = {name: getattr(measured, name) for name in ("measure", "score", "baseline", "baseline_name", "gain")}
        return cls(**values, **fields)

    @property
    def grade(self) -> Grade:
        """The grade of the gain where it was measured, else of the score."""
        if self.gain is None:
            return grade(self.score, self.baseline)
        value, low, high = (self.baseline + gain for gain in (self.gain.value, self.gain.low, self.gain.high))
        return grade(replace(self.gain, value=value, low=low, high=high), self.baseline)

    @property
    def is_useful(self) -> bool:
        """Whether chance is excluded: the interval is above the baseline."""
        return self.grade >= Grade.LITTLE


# -- attacks on rows (``dptext attack``) ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """The result of an attack."""

    description: str  # of the adversary
    scores: Sequence[AttackScore] = ()
    meaning: Sequence[str]
    bounds: Mapping[str, float | None] = field(default_factory=dict)  # largest success that the guarantee allows


Attack: TypeAlias = Callable[[ReleaseFiles], AttackResult]


def attack_result(
    topic: str, scores: Sequence[AttackScore] = (), *, bounds: Mapping[str, float | None] | None = None, **values: Any
) -> AttackResult:
    """Return a result with the sentences of a topic, about these values."""
    description, *meaning = paragraphs("methods/templates/attacks.txt", topic=topic, scores=scores, **values)
    return AttackResult(description=description, scores=scores, meaning=meaning, bounds=bounds or {})


def read_pairs(files: ReleaseFiles, *, keeps_marks: bool = True) -> tuple[Rows, Rows]:
    """Return the original rows, redacted as the release was, and the private rows."""
    assert files.original is not None
    before = read_rows(files.original, text=files.text, user=files.user, texts_only=True)
    after = read_rows(files.data, text=files.text, texts_only=True)
    _check_size(files, after.size, before.size)
    if before.size < 2:
        raise DataError(f"{files.original.name}: at least two rows are needed, got {before.size}")
    before = as_received(before, files, keeps_marks=keeps_marks)
    return before, after


def _check_size(files: ReleaseFiles, private: int, originals: int) -> None:
    if files.statement_or_none is not None and files.statement_or_none.trust is Trust.SHUFFLER:
        raise DataError(f"{display_name(files.data)} is shuffled: its rows cannot be compared with their originals")
    if private != originals and files.original is not None:
        raise DataError(
            f"{display_name(files.data)} must have as many rows as {display_name(files.original)} ({originals:,}), got "
            f"{private:,}: name the file it was made from, without the rows that were skipped"
        )


def as_received(before: Rows, files: ReleaseFiles, *, keeps_marks: bool) -> Rows:
    """Return the original rows as the mechanism received them: redacted, if the statement says so."""
    words = [] if files.redact_list is None else read_terms(files.redact_list)
    if words and (files.statement_or_none is None or not files.statement_or_none.parameters.get("redacted_list")):
        raise ParameterError(f"the statement of {files.data.name} has no redaction list: omit --redact-list")
    redaction = None if files.statement_or_none is None else redaction_of(files.statement_or_none, words=words)
    if redaction is None:
        return before
    replace_by = mark if keeps_marks else placeholder
    texts = [None if text is None else redaction.applied(text, replace_by) for text in before.texts]
    return replace(before, texts=texts)


def linkage_options(files: ReleaseFiles, before: Rows) -> dict[str, Any]:
    return {"people": before.people, "seed": files.seed}


def linkage_result(topic: str, scores: Sequence[AttackScore], before: Rows, **values: Any) -> AttackResult:
    firsts = [score for score in scores if "first guess" in score.measure]
    best = max(firsts, key=lambda score: score.score.value)
    return attack_result(topic, scores, originals=before.size, best=best, **values)


def link_by_words(before: Rows, after: Rows, options: dict[str, Any]) -> list[AttackScore]:
    scores = linkage(before.texts, after.texts, **options)
    return [replace(score, attack="linkage (shared words)") for score in scores]


def link_rows(files: ReleaseFiles) -> AttackResult:
    """Link the rows of a file without a statement to their originals by shared words."""
    before, after = read_pairs(files)
    return linkage_result("rows", link_by_words(before, after, linkage_options(files, before)), before)


def infer_attribute(files: ReleaseFiles) -> AttackResult:
    """Infer an attribute of the authors from texts or vectors, by models trained on other people's private rows."""
    label = files.label or ""
    rows = read_rows(files.data, text=files.text, columns=(label,), user=files.user)
    labels, kind = rows.columns[label], "texts" if rows.vectors is None else "vectors"
    scores = attribute_inference(rows.features, labels, people=rows.people, folds=FOLDS, seed=files.seed)
    accuracies = [score for score in scores if score.measure == "accuracy"]
    best = max(accuracies, key=lambda score: (score.succeeded, score.score.value))
    other = max((score for score in scores if score.succeeded), key=lambda score: score.advantage, default=None)
    return attack_result("attribute", scores, label=label, kind=kind, folds=FOLDS, best=best, other=other)


ROW_ATTACKS: Mapping[str, Attack] = {"linkage": link_rows, "attribute": infer_attribute}
"""Attacks on a file without a statement."""


# -- reports -------------------------------------------------------------------------------------------------------


class Examination(ABC):
    """The examination of one release. Its public attributes are the fields of `dptext.reports.page.Report`."""

    def __init__(self, files: ReleaseFiles) -> None:
        self.files, self.statement = files, files.statement
        self.checks: list[Check] = []
        self.verdicts: list[Verdict] = []
        self.notes: list[str] = []
        self.attacks: list[AttackScore] = []
        self.owner_attacks: list[AttackScore] = []
        self.controls: list[AttackScore] = []
        self.utility: list[Measurement] = []
        self.limits: dict[str, float] = {}

    @abstractmethod
    def run(self) -> None:
        """Examine the release."""

    def add_audit(self, audit: Audit) -> None:
        self.checks, self.verdicts = [*audit.checks], [audit.verdict]
        if not is_present(self.files.data):
            self.notes.append("The data is not here: only its statement was examined.")


class RowExamination(Examination):
    """A release with one row for each row of its original file."""

    _original_columns: Sequence[str] = ()
    """Columns that only the original file has."""
    _tested: ClassVar[Sequence[str]] = ("private", "raw")
    """Forms of the rows on which models are tested, the main one first."""

    @abstractmethod
    def audit(self) -> Audit:
        """Check the file, and test its guarantee."""

    @abstractmethod
    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        """Attack the private rows with the original ones."""

    def run(self) -> None:
        files = self.files
        columns = [name for name in (files.label, files.attribute, files.user) if name is not None]
        rows = raw = None
        if files.original is not None or columns:
            rows, raw = self._read(list(dict.fromkeys(columns)))  # first, so that a wrong column is reported early
        audit = self.audit()
        self.add_audit(audit)
        if rows is not None:
            if raw is not None:
                self.attack_texts(rows, raw, is_its_data=audit.checks[0].passed is not False)
            self._infer_attribute(rows, raw)
            self._measure_utility(rows, raw)
        parts = files.parts if is_present(files.data) else []
        identifying = (column for column in identifying_columns(parts) if column.identifies)
        self.identifying = [column for column in identifying if column.name not in (files.text, VECTOR)]

    def _read(self, columns: list[str]) -> tuple[Rows, Rows | None]:
        """Return the chosen rows of both files, with all columns in the first."""
        files, name = self.files, display_name(self.files.data)
        count = count_rows(files.data, text=files.text)
        if count < 2 * FOLDS:
            raise DataError(f"{name} must have at least {2 * FOLDS} rows, got {count}")
        if files.original is not None:
            _check_size(files, count, count_rows(files.original, text=files.text))
        chosen = chosen_rows(count, files.rows, RandomBits(files.seed))
        if len(chosen) < count:
            self.notes.append(
                f"{len(chosen):,} of {count:,} rows were examined, chosen at random. Among fewer originals, a row is "
                "easier to find. The checks of the file use all rows."
            )
        known = columns_of(files.data)
        missing = self._original_columns = [column for column in columns if column not in known]
        if missing and files.original is None:
            raise DataError(f"{name}: there is no column {missing[0]!r}")
        rows = read_rows(files.data, chosen, text=files.text, columns=[entry for entry in columns if entry in known])
        if files.original is None:
            return rows, None
        for column in missing and sorted(set(missing) - set(columns_of(files.original))):
            raise DataError(f"{name} and {display_name(files.original)}: neither has a column {column!r}")
        raw = read_rows(files.original, chosen, text=files.text, columns=missing, texts_only=True)
        rows.columns.update(raw.columns)
        return rows, raw

    def _is_private(self, *names: str | None) -> bool:
        """Return whether only the original file has one of these columns."""
        return any(name in self._original_columns for name in names)

    def _select_frequent(self, rows: Rows, name: str, minimum: int) -> list[int]:
        """Return the indices of the rows whose value is frequent enough to learn from."""
        values = rows.column(name) or []
        people: Sequence[Hashable] = rows.column(self.files.user) or range(len(values))
        holders: dict[str, set[Hashable]] = {}
        for value, person in zip(values, people, strict=True):
            holders.setdefault(value, set()).add(person)
        places = [place for place, value in enumerate(values) if len(holders[value]) >= minimum]
        if len({values[place] for place in places}) < 2:
            raise ParameterError(
                f"the column {name!r} must have at least two values that {minimum} people or more share: merge rare "
                "values, or examine more rows"
            )
        if len(places) < len(values):
            self.notes.append(
                f"Column {name!r}: {len(values) - len(places):,} rows were left out: fewer than {minimum} people have "
                "their value."
            )
        return places

    def _infer_attribute(self, rows: Rows, raw: Rows | None) -> None:
        files, attribute = self.files, self.files.attribute
        if attribute is None:
            return
        places = self._select_frequent(rows, attribute, FOLDS)
        selected = rows.at(places)
        targets = [(self.owner_attacks if self._is_private(attribute, files.user) else self.attacks, selected)]
        targets += [] if raw is None else [(self.controls, raw.at(places))]
        for results, source in targets:
            scores = attribute_inference(
                source.features,
                selected.column(attribute) or [],
                people=selected.column(files.user),
                attackers=files.attackers,
                folds=FOLDS,
                seed=files.seed,
            )
            name = f"inference of {attribute!r}"
            results += [replace(score, attack=score.attack.replace("inference", name, 1)) for score in scores]

    def random_rows(self, count: int) -> list[str]:  # noqa: ARG002
        """Return random public rows, as a baseline for utility; none for most mechanisms."""
        return []

    def _measure_utility(self, rows: Rows, raw: Rows | None) -> None:
        files, label = self.files, self.files.label
        if label is None:
            return
        places = self._select_frequent(rows, label, 2 * FOLDS)
        selected = rows.at(places)
        people, labels = selected.column(files.user), selected.column(label) or []
        forms = {"private": selected.features}
        forms |= {} if raw is None else {"raw": raw.at(places).features}
        random = self.random_rows(len(places))
        forms |= {"random": random} if random else {}
        tested = [name for name in self._tested if name in forms]
        for trained_on, tested_on in product(forms, tested):
            is_comparable = trained_on == tested_on or (trained_on != "raw" and rows.vectors is None)
            if not is_comparable:
                continue
            model = predictions(
                forms[trained_on],
                np.asarray(labels),
                test_rows=None if trained_on == tested_on else forms[tested_on],
                trained_on=trained_on,
                tested_on=tested_on,
                people=None if people is None else np.asarray(people),
                folds=FOLDS,
                seed=files.seed,
            )
            result = model.score("accuracy")
            measurement = Measurement.of(
                result,
                name=f"trained on {_SOURCES[trained_on]}, tested on {_SOURCES[tested_on]}",
                owner_only=self._is_private(label, files.user) or "raw" in (trained_on, tested_on),
                is_rival=trained_on == "random",
                detail=f"predicting {label!r}, {len(set(labels))} classes: {result.rows:,} rows, {result.folds} folds, "
                f"logistic regression, {result.features}",
            )
            self.utility.append(measurement)

    def originals(self, rows: Rows, raw: Rows, mechanism: TextMechanism) -> Rows | None:
        """Return the originals as the mechanism received them, with their authors; None if that is impossible."""
        try:
            originals = as_received(raw, self.files, keeps_marks=mechanism.keeps_marks)
        except DataError as problem:
            self.notes.append(f"Rows were not linked: {problem}.")
            return None
        return replace(originals, people=rows.column(self.files.user))
