"""A report on a release that lies in a file: its statement, its audit, attacks, use, fairness and samples.

**What the numbers are computed from.** A page made of the private file alone holds functions of what was released:
anybody who has the file can make it again, and the promise covers it. A page made with the original texts holds numbers
computed from these (how many rows were linked, how good a model of original rows is); *the promise does not cover
them*. They are marked, and `Report.card` leaves them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks import AttackScore
from dptext.attacks.learners import ATTACKERS, Attacker
from dptext.audits.verdict import Verdict
from dptext.calibration.deniability import deniability
from dptext.errors import DataError, ParameterError, extra
from dptext.evaluation.fairness import SMALLEST_GROUP, fairness
from dptext.evaluation.utility import Predictions, predictions
from dptext.files.documents import PathLike
from dptext.files.streams import shown
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import data_and_statement, read_statement
from dptext.reports.figures import promise_figure, scores_figure
from dptext.reports.file_attacks import expect_recovery, infer, link, recover
from dptext.reports.file_audit import Check, audit_vector_file, audit_word_file, is_of_vectors
from dptext.reports.inputs import Rows, chosen_rows, columns_of, count_rows, read_rows
from dptext.reports.page import GroupGap, Measurement, Picture, Report, Sample, main_scores
from dptext.words.mechanism import WordMechanism
from dptext.words.privatize import privatize
from dptext.words.registry import mechanism_from_statement

__all__ = ["Question", "report"]

_PUBLIC_WORDS, _DRAWS = 200, 200  # for how often a word stays
_SEEDS = 2**31
_SENTENCES = (
    "The doctor said that my knee will be fine in three weeks.",
    "Please book a table for two at an Italian restaurant tomorrow.",
    "My sister lost her job at the bank and moved to London.",
    "I was angry about the long wait, but the nurse was kind.",
    "Write to anna@example.org or call 555 0100 before Friday.",
    "The film was too long and the music was terrible.",
)
"""Made up for this library: what a page shows before and after, in place of anybody's texts."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a report is to be made of.

    Attributes:
        private: texts, or a .parquet of vectors, with the statement beside it.
        original: what it was made from, row by row; None: not at hand, or not to be looked at.
        text: the column of the text, in both files.
        label: a column to train models on: what is the release still good for?
        attribute: a column that an attacker wants to know.
        group: a column that says to which group a row's person belongs.
        person: a column that says whose row each is.
        rows: look at this many rows at most, chosen at random.
        vectors: name or path of the public word vectors, if they are not where they were.
        samples, error: of an audit that has to sample.
        attackers: who infers the attribute.
        folds: of training and test.
        seed: of the rows, the models and the intervals: the same page again. It has no part in the noise of the
            release; None draws one, which the report says.
    """

    private: Path
    original: Path | None = None
    text: str = "text"
    label: str | None = None
    attribute: str | None = None
    group: str | None = None
    person: str | None = None
    rows: int = 3000
    vectors: str | None = None
    samples: int = 200_000
    error: float = 1e-6
    attackers: Sequence[Attacker] = ATTACKERS
    folds: int = 5
    seed: int = field(default_factory=lambda: int(RandomBits().integers(1)[0]) % _SEEDS)

    def __post_init__(self) -> None:
        if self.rows < 2 * self.folds:
            raise ParameterError(f"rows must be at least {2 * self.folds}, got {self.rows}")
        if self.group is not None and self.label is None:
            raise ParameterError(
                "group needs a label: how well a group is served shows in how well its labels are named"
            )
        if self.original is not None and self.original.resolve() == self.private.resolve():
            raise ParameterError("original must be another file than the private one: name what it was made from")

    @property
    def columns(self) -> list[str]:
        """All columns that were asked for, each once."""
        named = (self.label, self.attribute, self.group, self.person)
        return list(dict.fromkeys(each for each in named if each is not None))


def report(
    private: PathLike | Question,
    *,
    title: str = "",
    command: str = "",
    say: Callable[[str], None] = lambda _line: None,
    **asked: Any,
) -> Report:
    """Look at a release, and put what was found on one page: its promise, audits, attacks, use and fairness.

    Args:
        private: private texts, or a .parquet of vectors, with the statement beside it.
        title: of the page; empty: the name of the private file.
        command: what makes the page again.
        say: called with a line for each step.
        asked: what to look at, and in which rows: the attributes of `Question` (``original``, ``label``,
            ``attribute``, ``group``, ``person``, ``seed`` ...).

    Returns:
        A `Report`: ``html()`` is the page, ``card()`` a short one in Markdown without the numbers that only the owner
        of the texts should see, ``refuted`` whether the promise does not hold.

    Raises:
        DataError: a file cannot be what it is said to be: other rows than the original, a column that is missing, no
            statement of this library.
        ParameterError: what was asked for cannot be (one class, groups that are too small); the option is named.
        StorageError: a file cannot be read.
        MissingExtraError: matplotlib, scikit-learn or scipy is not installed.
    """
    for module, name in (("matplotlib.figure", "report"), ("scipy.stats", "audit"), ("sklearn", "audit")):
        extra(module, name, "a report")  # before minutes of work
    if isinstance(private, Question):
        private = replace(private, **asked)
    else:
        if asked.get("original") is not None:
            asked["original"] = Path(asked["original"])
        private = Question(private=Path(private), **asked)
    return _Making(private, say).report(title, command)


class _Making:
    """A report while it is made."""

    def __init__(self, question: Question, say: Callable[[str], None]) -> None:
        self._asked, self._say = question, say
        self._data, beside = data_and_statement(question.private)
        self._statement: PrivacyStatement = read_statement(beside)
        self._mechanism: WordMechanism | None = None
        if not is_of_vectors(self._statement):
            self._mechanism = mechanism_from_statement(self._statement, vectors=question.vectors)
        self._notes: list[str] = []
        self._attacks: list[AttackScore] = []
        self._owner_attacks: list[AttackScore] = []
        self._utility: list[Measurement] = []
        self._fairness: list[Measurement] = []
        self._gaps: list[GroupGap] = []

    def report(self, title: str, command: str) -> Report:
        asked = self._asked
        rows = raw = None
        if asked.original is not None or asked.columns:
            rows, raw = self._read()  # wrong columns show before minutes of work
        self._say(f"Auditing {self._statement.mechanism} ...")
        checks, verdict = self._audit()
        if self._mechanism is not None and asked.original is None:
            self._attacks += expect_recovery(self._mechanism)
        is_its_data = checks[0].held is not False
        if rows is not None:
            if raw is not None and raw.vectors is None and rows.vectors is None:
                self._attack_texts(rows, raw, is_its_data=is_its_data)
            elif raw is not None:
                self._notes.append(
                    "Linking private vectors to their texts, and reading words out of them, was not tried: that takes "
                    "the encoder."
                )
            self._infer(rows)
            self._measure_use(rows, raw)
        pictures = {
            "audit": _picture_of_promise(verdict),
            "attacks": _picture_of_attacks([*self._owner_attacks, *self._attacks]),
            "utility": _picture_of_use(self._utility),
        }
        return Report(
            title=title or f"What is known about {shown(self._data)}",
            statement=self._statement,
            checks=checks,
            verdicts=[verdict],
            attacks=self._attacks,
            owner_attacks=self._owner_attacks,
            utility=self._utility,
            fairness=self._fairness,
            gaps=self._gaps,
            samples=self._samples(),
            stays=self._stays(),
            pictures={name: each for name, each in pictures.items() if each is not None},
            command=command,
            notes=self._notes,
        )

    # -- what is looked at --------------------------------------------------------------------------------

    def _read(self) -> tuple[Rows, Rows | None]:
        """The chosen rows of both files, all columns in the first, and where each column comes from."""
        asked = self._asked
        count = count_rows(self._data, text=asked.text)
        if count < 2 * asked.folds:
            raise DataError(f"{shown(self._data)}: expected at least {2 * asked.folds} rows to look at, got {count}")
        if asked.original is not None and count != (held := count_rows(asked.original, text=asked.text)):
            raise DataError(
                f"{shown(self._data)} must have as many rows as {shown(asked.original)}, {held:,}, got {count:,}: a "
                "private file is compared row by row with the one it was made from"
            )
        chosen = chosen_rows(count, asked.rows, RandomBits(asked.seed))
        if len(chosen) < count:
            self._notes.append(
                f"Of {count:,} rows, {len(chosen):,} were looked at, chosen at random. Among fewer originals a row is "
                "easier to find than among all; the checks of the file read all of it."
            )
        ours = columns_of(self._data, text=asked.text, wanted=asked.columns)
        self._elsewhere = [each for each in asked.columns if each not in ours]
        if self._elsewhere and asked.original is None:
            raise DataError(f"{shown(self._data)}: expected a column {self._elsewhere[0]!r}, the file has none")
        rows = read_rows(self._data, chosen, text=asked.text, columns=ours)
        if asked.original is None:
            return rows, None
        known = columns_of(asked.original, text=asked.text, wanted=self._elsewhere)
        missing = [each for each in self._elsewhere if each not in known]
        if missing:
            raise DataError(
                f"{shown(self._data)} and {shown(asked.original)}: expected a column {missing[0]!r} in all rows of one "
                "of them"
            )
        raw = read_rows(asked.original, chosen, text=asked.text, columns=self._elsewhere)
        rows.columns.update(raw.columns)
        return rows, raw

    def _column(self, rows: Rows, name: str | None) -> list[str] | None:
        return None if name is None else [str(each) for each in rows.columns[name]]

    def _is_private(self, *names: str | None) -> bool:
        """Whether one of these columns stands in the original file alone."""
        return any(name in self._elsewhere for name in names)

    def _frequent(self, rows: Rows, name: str, least: int) -> list[int]:
        """Places of the rows whose value is not too rare to learn from."""
        values = self._column(rows, name) or []
        kept = _frequent(values, self._column(rows, self._asked.person), least)
        if len({value for value, stays in zip(values, kept, strict=True) if stays}) < 2:
            raise ParameterError(
                f"the column {name!r} must hold at least two kinds of values that {least} people or more have, got "
                f"{len(set(values)):,} kinds in {len(values):,} rows: join rare ones, or look at more rows"
            )
        if not kept.all():
            self._notes.append(
                f"Column {name!r}: {int((~kept).sum()):,} rows were left out: fewer than {least} people have their "
                "value."
            )
        return [place for place, stays in enumerate(kept) if stays]

    # -- what is asked ------------------------------------------------------------------------------------

    def _audit(self) -> tuple[list[Check], Verdict]:
        how: dict[str, Any] = {"samples": self._asked.samples, "error": self._asked.error, "seed": self._asked.seed}
        if self._mechanism is None:
            return audit_vector_file(self._statement, self._data, **how)
        return audit_word_file(self._statement, self._data, self._mechanism, text=self._asked.text, **how)

    def _attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        asked = self._asked
        before, after = replace(raw, people=self._column(rows, asked.person)), rows
        self._say(f"Linking {before.size:,} private rows to their originals ...")
        self._owner_attacks += link(before, after, seed=asked.seed)
        if self._mechanism is None or not is_its_data:
            self._notes.append("Word recovery was not tried: the file is not the one that its statement speaks of.")
            return
        self._say("Recovering words ...")
        scores, note = recover(before, after, self._mechanism, self._data, seed=asked.seed)
        self._owner_attacks += scores
        self._notes += [note] if note else []

    def _infer(self, rows: Rows) -> None:
        asked = self._asked
        if asked.attribute is None:
            return
        places = self._frequent(rows, asked.attribute, asked.folds)
        people = self._column(rows, asked.person)
        self._say(f"Training attackers on {len(places):,} private rows ...")
        scores = infer(
            _at(rows.features, places),
            _at(self._column(rows, asked.attribute), places),
            asked.attribute,
            people=_at(people, places),
            attackers=asked.attackers,
            folds=asked.folds,
            seed=asked.seed,
        )
        private = self._is_private(asked.attribute, asked.person)
        (self._owner_attacks if private else self._attacks).extend(scores)

    def _measure_use(self, rows: Rows, raw: Rows | None) -> None:
        asked = self._asked
        if asked.label is None:
            return
        places = self._frequent(rows, asked.label, 2 * asked.folds)
        people = _at(self._column(rows, asked.person), places)
        labels = _at(self._column(rows, asked.label), places)
        self._say(f"Training models on {len(places):,} rows ...")
        comparable = raw is not None and _widths(raw) == _widths(rows)
        forms = _useful(
            _at(rows.features, places),
            None if raw is None else _at(raw.features, places),
            labels,
            people=people,
            folds=asked.folds,
            seed=asked.seed,
            comparable=comparable,
        )
        private = self._is_private(asked.label, asked.person)
        task = f"naming {asked.label!r}, {len(set(labels))} classes"
        self._utility = [_as_measurement(each, task, owner_only=private) for each in forms]
        if asked.group is None:
            return
        names, hidden = self._names_of_groups(_at(self._column(rows, asked.group), places))
        for form in (forms[0], *forms[-1:]) if len(forms) > 1 else forms:
            measured, gap = _served(form, names, people, owner_only=private or hidden)
            self._fairness += measured
            self._gaps.append(gap)
        left = len(names) - int(_frequent(names, people, SMALLEST_GROUP).sum())
        if left:
            self._notes.append(
                f"{left:,} rows were left out of the groups: fewer than {SMALLEST_GROUP} people in theirs."
            )

    def _names_of_groups(self, values: list[str]) -> tuple[list[str], bool]:
        """What groups are called: by their value where the release shows it, else by a number."""
        if not self._is_private(self._asked.group):
            return values, False
        self._notes.append(
            f"The release does not hold the column {self._asked.group!r}, so this page does not show its values: "
            "groups are numbered, the most frequent one first."
        )
        order = sorted(Counter(values).items(), key=lambda each: (-each[1], each[0]))
        names = {value: f"group {number}" for number, (value, _) in enumerate(order, 1)}
        return [names[value] for value in values], True

    def _samples(self) -> list[Sample]:
        if self._mechanism is None:
            return []
        after = privatize(_SENTENCES, self._mechanism).texts
        return [Sample(before, out or "") for before, out in zip(_SENTENCES, after, strict=True)]

    def _stays(self) -> float | None:
        if self._mechanism is None:
            return None
        return deniability(self._mechanism, rows=_PUBLIC_WORDS, draws=_DRAWS, seed=0).mean("keep")


def _widths(rows: Rows) -> int | None:
    """How many numbers a row has; None for texts."""
    return None if rows.vectors is None else int(rows.vectors.shape[1])


def _at(values: Any, places: list[int]) -> Any:
    """Some of the rows, of any kind."""
    if values is None or hasattr(values, "shape"):
        return values if values is None else values[places]
    return [values[place] for place in places]


# -- use and fairness ---------------------------------------------------------------------------------------------

Mask = npt.NDArray[np.bool_]
_WORDS = {"private": "private rows", "raw": "original rows"}


@dataclass(frozen=True, eq=False)
class _Form:
    """Models of one kind: what they are trained and tested on, and their answers."""

    trained_on: str
    tested_on: str
    answers: Predictions

    @property
    def owner_only(self) -> bool:
        """Whether original rows had a part in it."""
        return "raw" in (self.trained_on, self.tested_on)

    @property
    def name(self) -> str:
        """For the reader."""
        return f"trained on {_WORDS[self.trained_on]}, tested on {_WORDS[self.tested_on]}"


def _frequent(values: Sequence[Hashable], people: Sequence[Hashable] | None, least: int) -> Mask:
    """(rows,) whether at least so many people (rows, where nobody is named) have the value of this row."""
    whose = range(len(values)) if people is None else people
    holders: dict[Hashable, set[Hashable]] = {}
    for value, person in zip(values, whose, strict=True):
        holders.setdefault(value, set()).add(person)
    return np.array([len(holders[value]) >= least for value in values], dtype=bool)


def _useful(
    private: Any,
    raw: Any,
    labels: Sequence[str],
    *,
    people: Sequence[Hashable] | None,
    folds: int,
    seed: int,
    comparable: bool = True,
) -> list[_Form]:
    """Train on private rows and test on private ones; where there are original rows, also on these.

    Args:
        private: texts or vectors.
        raw: the same rows as they were; None: not at hand.
        labels: (rows,) what a model has to name.
        people: (rows,) whose row each is.
        folds, seed: of `predictions`.
        comparable: whether a model of private rows can read original ones (not where vectors came from texts).

    Raises:
        ParameterError: one kind of label only, fewer rows or people than folds.
    """
    whose = None if people is None else np.asarray([str(each) for each in people])
    how: dict[str, Any] = {"people": whose, "folds": folds, "seed": seed}
    wanted = np.asarray(labels)
    forms = [_Form("private", "private", predictions(private, wanted, **how))]
    if raw is not None and comparable:
        forms.append(_Form("private", "raw", predictions(private, wanted, test_rows=raw, **how)))
    if raw is not None:
        forms.append(_Form("raw", "raw", predictions(raw, wanted, trained_on="raw", **how)))
    return forms


def _as_measurement(form: _Form, task: str, *, owner_only: bool) -> Measurement:
    """The accuracy of a form, for a page."""
    found = form.answers.score("accuracy")
    return Measurement(
        what=form.name,
        measure="accuracy",
        score=found.score,
        baseline=found.baseline,
        baseline_name=found.baseline_name,
        gain=found.gain,
        owner_only=owner_only or form.owner_only,
        detail=f"{task}: {found.rows:,} rows, {found.folds} folds, {found.model}, {found.features}",
    )


def _served(
    form: _Form, groups: Sequence[str], people: Sequence[Hashable] | None, *, owner_only: bool
) -> tuple[list[Measurement], GroupGap]:
    """How good a form is for each group, and the largest gap in words.

    Args:
        form: its models.
        groups: (rows,) the name of each row's group, of which rows are left out that are in too small ones.
        people: (rows,) whose row each is.
        owner_only: whether the columns stand in the original file alone.

    Raises:
        ParameterError: fewer than two groups that are large enough, or somebody in two groups.
    """
    names = [groups[row] for row in form.answers.rows]
    whose = None if people is None else [str(people[row]) for row in form.answers.rows]
    large = _frequent(names, whose, SMALLEST_GROUP)
    if len(set(np.asarray(names)[large])) < 2:
        raise ParameterError(
            f"group: expected at least two groups of {SMALLEST_GROUP} people or more among the rows that were looked "
            "at, got fewer: name another column, or look at more rows"
        )
    found = fairness(
        form.answers.true[large],
        form.answers.predicted[large],
        np.asarray(names)[large],
        people=None if whose is None else np.asarray(whose)[large],
    )
    measured = [
        Measurement(
            what=each.group,
            measure="accuracy",
            score=each.score,
            baseline=each.baseline,
            baseline_name=each.baseline_name,
            owner_only=owner_only or form.owner_only,
            detail=f"{each.people:,} {'rows' if people is None else 'people'}, {form.name}",
        )
        for each in found.groups
    ]
    gap = found.largest
    shown = "more than chance explains" if gap.is_shown else "which chance may explain"
    words = (
        f"{form.name[0].upper()}{form.name[1:]}: the largest gap is {100 * gap.gap.value:.1f} points ({gap.better!r} "
        f"above {gap.worse!r}; 95% interval {100 * gap.gap.low:.1f} to {100 * gap.gap.high:.1f}), {shown}."
    )
    return measured, GroupGap(
        words=words,
        is_shown=gap.is_shown,
        of_release=form.trained_on == "private",
        owner_only=owner_only or form.owner_only,
    )


# -- pictures -----------------------------------------------------------------------------------------------------

_SHARES = (-0.02, 1.02)


def _picture_of_promise(verdict: Verdict) -> Picture | None:
    """What was promised beside what the audit showed."""
    if verdict.allowed >= 1e6:
        return None
    return (
        "For the pair of words (or vectors) that comes closest: the most it may give away, and what the audit showed",
        promise_figure([(f"worst pair found, {verdict.method.partition(',')[0]}", verdict)]),
    )


def _picture_of_attacks(scores: Sequence[AttackScore]) -> Picture | None:
    """The main number of each attack beside its baseline: all are shares of right answers."""
    drawn = [(each.attack.replace(" (", "\n("), each.score, each.baseline) for each in main_scores(scores)]
    if len(drawn) < 2:  # one number needs no picture
        return None
    return (
        "How often each attacker was right (dot), beside somebody who sees nothing (grey bar)",
        scores_figure(drawn, measure="share of right answers", limits=_SHARES),
    )


def _picture_of_use(found: Sequence[Measurement]) -> Picture | None:
    """The accuracy of each model beside the best blind guess."""
    drawn = [(each.what.replace(", ", ",\n"), each.score, each.baseline) for each in found]
    if len(drawn) < 2:
        return None
    return (
        "How often each model was right (dot), beside the best blind guess (grey bar)",
        scores_figure(drawn, measure="accuracy", limits=_SHARES),
    )
