"""A report on a release that lies in a file: its statement, its audit, attacks, use, fairness and samples."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks import AttackScore, attribute_inference
from dptext.attacks.base import Attacker
from dptext.audits.verdict import Verdict
from dptext.errors import DataError, ParameterError
from dptext.evaluation.utility import SMALLEST_GROUP, Predictions, fairness, predictions
from dptext.io.batches import display_name
from dptext.io.documents import find_files
from dptext.methods.base import Audit
from dptext.methods.checks import Check
from dptext.methods.files import Rows, chosen_rows, columns_of, count_rows, read_rows
from dptext.methods.findings import Examination
from dptext.methods.results import GroupGap, KeptColumn, Measurement, Sample, Stayed
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.release.mechanism import TextMechanism, mark, placeholder, unmarked
from dptext.release.privatize import privatize
from dptext.release.redaction import Terms, read_terms, redaction_of, united
from dptext.representations.files import VECTOR
from dptext.text.identifiers import columns_of as columns_in
from dptext.text.patterns import find
from dptext.text.tokens import Kind, fold, letters_between, split

_TELLING = 3  # letters or digits of a part that counts
_SENTENCES = (
    "The doctor said that my knee will be fine in three weeks.",
    "Please book a table for two at an Italian restaurant tomorrow.",
    "My sister lost her job at the bank and moved to London.",
    "I was angry about the long wait, but the nurse was kind.",
    "Write to anna@example.org or call 555 0100 before Friday.",
    "The film was too long and the music was terrible.",
)
"""Made up for this library: what a page shows before and after, in place of anybody's texts."""


NO_ENCODER = (
    "Linking private vectors to their texts, and reading words out of them, was not tried: that takes the encoder."
)


class RowExamination(Examination):
    """A release that has a row for each row of what it was made from."""

    _elsewhere: Sequence[str] = ()
    """Columns that stand in the original file alone."""

    @abstractmethod
    def audit(self) -> Audit:
        """Check the file, and test its guarantee."""

    @abstractmethod
    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        """What somebody gets who holds the originals."""

    def look(self) -> tuple[list[Check], Verdict]:
        config = self.asked
        rows = raw = None
        if config.original is not None or config.columns:
            rows, raw = self._read()  # wrong columns show before minutes of work
        self.say(f"Auditing {self.statement.mechanism} ...")
        audit = self.audit()
        if rows is not None:
            if raw is not None:
                self.attack_texts(rows, raw, is_its_data=audit.checks[0].held is not False)
            self._infer(rows, raw)
            self._measure_use(rows, raw)
        self.identifying = [
            KeptColumn(name=column.name, reasons=column.reasons)
            for column in columns_in([path for path, _ in find_files([self.data])])
            if column.identifies and column.name not in (config.text, VECTOR)
        ]
        return audit.checks, audit.verdict

    # -- what is looked at --------------------------------------------------------------------------------

    def _read(self) -> tuple[Rows, Rows | None]:
        """The chosen rows of both files, all columns in the first, and where each column comes from."""
        config = self.asked
        count = count_rows(self.data, text=config.text)
        if count < 2 * config.folds:
            raise DataError(
                f"{display_name(self.data)}: expected at least {2 * config.folds} rows to look at, got {count}"
            )
        if config.original is not None and count != (held := count_rows(config.original, text=config.text)):
            raise DataError(
                f"{display_name(self.data)} must have as many rows as {display_name(config.original)}, {held:,}, got "
                f"{count:,}: a private file is compared row by row with the one it was made from"
            )
        chosen = chosen_rows(count, config.rows, RandomBits(config.seed))
        if len(chosen) < count:
            self.notes.append(
                f"Of {count:,} rows, {len(chosen):,} were looked at, chosen at random. Among fewer originals a row is "
                "easier to find than among all; the checks of the file read all of it."
            )
        ours = columns_of(self.data, text=config.text, wanted=config.columns)
        self._elsewhere = [column for column in config.columns if column not in ours]
        # whose rows they are decides how models are tested: where the release does not say so, no number may be shared
        self.at_home = config.columns if config.user in self._elsewhere else self._elsewhere
        if self._elsewhere and config.original is None:
            raise DataError(f"{display_name(self.data)}: expected a column {self._elsewhere[0]!r}, the file has none")
        rows = read_rows(self.data, chosen, text=config.text, columns=ours)
        if config.original is None:
            return rows, None
        known = columns_of(config.original, text=config.text, wanted=self._elsewhere)
        missing = [entry for entry in self._elsewhere if entry not in known]
        if missing:
            raise DataError(
                f"{display_name(self.data)} and {display_name(config.original)}: expected a column {missing[0]!r} in "
                "all rows of one of them"
            )
        raw = read_rows(config.original, chosen, text=config.text, columns=self._elsewhere)
        rows.columns.update(raw.columns)
        return rows, raw

    def _is_private(self, *names: str | None) -> bool:
        """Whether one of these columns stands in the original file alone."""
        return any(name in self._elsewhere for name in names)

    def _frequent(self, rows: Rows, name: str, least: int) -> list[int]:
        """Places of the rows whose value is not too rare to learn from."""
        values = rows.column(name) or []
        kept = _frequent(values, rows.column(self.asked.user), least)
        if len({value for value, stays in zip(values, kept, strict=True) if stays}) < 2:
            raise ParameterError(
                f"the column {name!r} must hold at least two kinds of values that {least} people or more have, got "
                f"{len(set(values)):,} kinds in {len(values):,} rows: join rare ones, or look at more rows"
            )
        if not kept.all():
            self.notes.append(
                f"Column {name!r}: {int((~kept).sum()):,} rows were left out: fewer than {least} people have their "
                "value."
            )
        return [place for place, stays in enumerate(kept) if stays]

    def models(
        self, private: Any, raw: Any, labels: npt.NDArray[np.str_], *, comparable: bool, **how: Any
    ) -> list[Predictions]:
        """Models that show what the release is good for, the one that speaks for it first.

        They learn from private rows and are tested on private ones; where there are original rows, also on these.
        """
        forms = [predictions(private, labels, **how)]
        if raw is not None and comparable:
            forms.append(predictions(private, labels, test_rows=raw, **how))
        if raw is not None:
            forms.append(predictions(raw, labels, trained_on="raw", **how))
        return forms

    # -- what is asked ------------------------------------------------------------------------------------

    def _infer(self, rows: Rows, raw: Rows | None) -> None:
        config = self.asked
        if config.attribute is None:
            return
        places = self._frequent(rows, config.attribute, config.folds)
        some = rows.at(places)
        self.say(f"Training attackers on {len(places):,} private rows ...")
        fields: dict[str, Any] = {"attackers": config.attackers, "folds": config.folds, "seed": config.seed}
        fields["people"] = some.column(config.user)
        values = some.column(config.attribute) or []
        scores = infer(some.features, values, config.attribute, **fields)
        (self.owner_attacks if self._is_private(config.attribute, config.user) else self.attacks).extend(scores)
        if raw is not None:
            self.controls += infer(raw.at(places).features, values, config.attribute, **fields)

    def _measure_use(self, rows: Rows, raw: Rows | None) -> None:
        config = self.asked
        if config.label is None:
            return
        places = self._frequent(rows, config.label, 2 * config.folds)
        some = rows.at(places)
        people, labels = some.column(config.user), some.column(config.label) or []
        self.say(f"Training models on {len(places):,} rows ...")
        forms = self.models(
            some.features,
            None if raw is None else raw.at(places).features,
            np.asarray(labels),
            comparable=raw is not None and _widths(raw) == _widths(rows),
            people=None if people is None else np.asarray(people),
            folds=config.folds,
            seed=config.seed,
        )
        private = self._is_private(config.label, config.user)
        task = f"naming {config.label!r}, {len(set(labels))} classes"
        self.utility = [*(_as_measurement(entry, task, owner_only=private) for entry in forms), *self.utility]
        if config.group is None:
            return
        names, hidden = self._names_of_groups(some.column(config.group) or [])
        shared = next((entry for entry in forms if not _is_owners(entry)), forms[0])
        originals = [entry for entry in forms if entry.trained_on == "raw"]
        for form in dict.fromkeys((forms[0], shared, *originals)):
            measured, gap = _served(form, names, people, owner_only=private or hidden or _is_owners(form))
            self.fairness += measured
            self.gaps.append(gap)
        left = len(names) - int(_frequent(names, people, SMALLEST_GROUP).sum())
        if left:
            self.notes.append(
                f"{left:,} rows were left out of the groups: fewer than {SMALLEST_GROUP} people in theirs."
            )

    def _names_of_groups(self, values: list[str]) -> tuple[list[str], bool]:
        """What groups are called: by their value where the release shows it, else by a number."""
        if not self._is_private(self.asked.group):
            return values, False
        self.notes.append(
            f"The release does not hold the column {self.asked.group!r}, so this page does not show its values: "
            "groups are numbered, the most frequent one first."
        )
        order = sorted(Counter(values).items(), key=lambda each: (-each[1], each[0]))
        names = {value: f"group {number}" for number, (value, _) in enumerate(order, 1)}
        return [names[value] for value in values], True

    @cached_property
    def _listed(self) -> list[str]:
        return [] if self.asked.redact_list is None else read_terms(self.asked.redact_list)

    def _compare(
        self, rows: Rows, raw: Rows, mechanism: TextMechanism, placeholders: Mapping[Kind, str] | None = None
    ) -> Rows | None:
        """The originals as the mechanism saw them; None, with a note, where that cannot be made again."""
        self.unchanged = _unchanged(raw.texts, rows.texts, placeholders=placeholders)
        self.unchanged_pieces = unchanged_pieces(raw.texts, rows.texts, words=self._listed)
        try:
            seen = as_seen(raw, self.statement, keeps_marks=mechanism.keeps_marks, words=self._listed)
        except DataError as problem:
            self.notes.append(f"Rows were not linked: {problem}.")
            return None
        self.say(f"Linking {seen.size:,} private rows to their originals ...")
        return replace(seen, people=rows.column(self.asked.user))


def _unchanged(
    originals: Sequence[str | None], private: Sequence[str | None], *, placeholders: Mapping[Kind, str] | None = None
) -> tuple[int, int]:
    known = placeholders or {}
    pairs = [
        (before, after)
        for before, after in zip(originals, private, strict=True)
        if before is not None and after is not None and any(kind is Kind.WORD for _, kind in split(before))
    ]
    return sum(_as_it_comes_out(before, known) == _as_it_comes_out(after, known) for before, after in pairs), len(pairs)


def _as_it_comes_out(text: str, placeholders: Mapping[Kind, str]) -> str:
    """A text as it would stand in a release whose words all stayed, without spaces."""
    return "".join(placeholders.get(kind, fold(piece)) for piece, kind in split(text) if kind is not Kind.SPACE)


def samples_of(mechanism: TextMechanism | None) -> list[Sample]:
    if mechanism is None:
        return []
    after = privatize(_SENTENCES, mechanism).texts
    return [Sample(before, out or "") for before, out in zip(_SENTENCES, after, strict=True)]


def _widths(rows: Rows) -> int | None:
    """How many numbers a row has; None for texts."""
    return None if rows.vectors is None else int(rows.vectors.shape[1])


# -- use and fairness ---------------------------------------------------------------------------------------------

Mask = npt.NDArray[np.bool_]
_WORDS = {"private": "private rows", "raw": "original rows", "random": "texts of the bank at random"}


def _is_owners(form: Predictions) -> bool:
    """Whether original rows had a part in it."""
    return "raw" in (form.trained_on, form.tested_on)


def _name(form: Predictions) -> str:
    return f"trained on {_WORDS[form.trained_on]}, tested on {_WORDS[form.tested_on]}"


def _frequent(values: Sequence[Hashable], people: Sequence[Hashable] | None, least: int) -> Mask:
    """(rows,) whether at least so many people (rows, where nobody is named) have the value of this row."""
    owners = range(len(values)) if people is None else people
    holders: dict[Hashable, set[Hashable]] = {}
    for value, person in zip(values, owners, strict=True):
        holders.setdefault(value, set()).add(person)
    return np.array([len(holders[value]) >= least for value in values], dtype=bool)


def _as_measurement(form: Predictions, task: str, *, owner_only: bool) -> Measurement:
    result = form.score("accuracy")
    return Measurement.of(
        result,
        what=_name(form),
        owner_only=owner_only or _is_owners(form),
        is_rival=form.trained_on == "random",
        detail=f"{task}: {result.rows:,} rows, {result.folds} folds, {result.model}, {result.features}",
    )


def _served(
    form: Predictions, groups: Sequence[str], people: Sequence[str] | None, *, owner_only: bool
) -> tuple[list[Measurement], GroupGap]:
    """How good a form is for each group, and the largest gap in words."""
    names = [groups[row] for row in form.rows]
    owners = None if people is None else [people[row] for row in form.rows]
    large = _frequent(names, owners, SMALLEST_GROUP)
    if len(set(np.asarray(names)[large])) < 2:
        raise ParameterError(
            f"group: expected at least two groups of {SMALLEST_GROUP} people or more among the rows that were looked "
            "at, got fewer: name another column, or look at more rows"
        )
    result = fairness(
        form.true[large],
        form.predicted[large],
        np.asarray(names)[large],
        people=None if owners is None else np.asarray(owners)[large],
    )
    name = _name(form)
    measured = [
        Measurement(
            what=group.group,
            measure="accuracy",
            score=group.score,
            baseline=group.baseline,
            baseline_name=group.baseline_name,
            owner_only=owner_only,
            detail=f"{group.people:,} {'rows' if people is None else 'people'}, {name}",
        )
        for group in result.groups
    ]
    gap = result.largest
    text = "more than chance explains" if gap.is_shown else "which chance may explain"
    words = (
        f"{name[0].upper()}{name[1:]}: the largest gap is {100 * gap.gap.value:.1f} points ({gap.better!r} "
        f"above {gap.worse!r}; 95% interval {100 * gap.gap.low:.1f} to {100 * gap.gap.high:.1f}), {text}."
    )
    return measured, GroupGap(
        words=words,
        gap=gap.gap,
        release_statement=form.trained_on == "private",
        owner_only=owner_only,
    )


def as_seen(before: Rows, statement: PrivacyStatement, *, keeps_marks: bool, words: Sequence[str] = ()) -> Rows:
    """The original rows as the mechanism saw them: redacted, if the statement says so."""
    redaction = redaction_of(statement, words=words if statement.parameters.get("redacted_list") else ())
    if redaction is None:
        return before
    replace_by = mark if keeps_marks else placeholder
    return replace(
        before, texts=[None if text is None else redaction.applied(text, replace_by) for text in before.texts]
    )


def infer(
    features: Any,
    values: Sequence[str],
    column: str,
    *,
    people: Sequence[Hashable] | None,
    attackers: Sequence[Attacker],
    folds: int,
    seed: int,
) -> list[AttackScore]:
    """An attribute named by attackers who trained on other people's private rows."""
    scores = attribute_inference(features, values, people=people, attackers=attackers, folds=folds, seed=seed)
    return [
        replace(score, attack=score.attack.replace("attribute inference", f"attribute inference of {column!r}"))
        for score in scores
    ]


def unchanged_pieces(
    originals: Sequence[str | None], private: Sequence[str | None], *, words: Iterable[str] = ()
) -> list[Stayed]:
    """What of the recognised pieces of originals stands in their private texts, by kind, the most frequent first."""
    terms = Terms(words)
    counts: dict[str, list[int]] = {}
    for before, after in zip(originals, private, strict=True):
        if not before:
            continue
        spans = united([*terms.find(before), *find(before)])
        if not spans:
            continue
        runs = list(_runs(after or ""))
        there, joined = set(runs), f" {' '.join(runs)} "
        for start, end, kind in spans:
            piece = list(_runs(before[start:end]))
            count = counts.setdefault(kind, [0, 0, 0])
            count[0] += 1
            if piece and f" {' '.join(piece)} " in joined:
                count[1] += 1
            elif any(len(run) >= _TELLING and run in there for run in piece):
                count[2] += 1
    output = [Stayed(kind, *count) for kind, count in counts.items()]
    return sorted(output, key=lambda each: (-each.pieces, each.kind))


def _runs(text: str) -> Iterator[str]:
    return (fold(run) for run in letters_between(unmarked(text)))
