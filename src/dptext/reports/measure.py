"""A report on a release that lies in a file: its statement, its audit, attacks, use, fairness and samples."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.audits.verdict import Verdict
from dptext.calibration.deniability import deniability
from dptext.errors import DataError, ParameterError, extras
from dptext.estimates import mean_of_people
from dptext.evaluation.fairness import SMALLEST_GROUP, fairness
from dptext.evaluation.utility import Predictions, predictions
from dptext.io.batches import display_name
from dptext.io.documents import PathLike, find_files
from dptext.privacy.guarantee import rate_at_most
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.progress import watched
from dptext.release.mechanism import TextMechanism
from dptext.release.privatize import privatize
from dptext.release.redaction import public_form, read_terms
from dptext.release.release import Release, data_and_statement, read_statement
from dptext.reports.file_attacks import (
    as_seen,
    drawn_as_said,
    expect_recovery,
    infer,
    is_of_bank,
    link,
    link_bank,
    recover,
    rewriter_from_statement,
    stayed,
)
from dptext.reports.file_audit import audit_bank_file, audit_vector_file, audit_word_file, is_of_vectors
from dptext.reports.inputs import Rows, chosen_rows, columns_of, count_rows, folder_kind, other_than_reported, read_rows
from dptext.reports.making import Making, Question
from dptext.reports.page import Report
from dptext.reports.results import Check, GroupGap, KeptColumn, Measurement, Relinking, Sample
from dptext.reports.synthetic import OfSynthetic
from dptext.representations.files import VECTOR
from dptext.sentences.origins import Likelihoods, alike
from dptext.sentences.rewriter import BankRewriter
from dptext.synthesis.distribution import is_described
from dptext.text.identifiers import columns_of as columns_in
from dptext.text.tokens import Kind, fold, split
from dptext.vectors.formats import GLOVE, GLOVE_PACKAGE
from dptext.words.registry import mechanism_from_statement
from dptext.words.replacing import PLACEHOLDERS

_PEOPLE = (10, 100, 1_000, 10_000)
_MOST_SIMILARITIES = 1 << 31  # to find the sets of public texts
_PUBLIC_WORDS, _DRAWS = 200, 200  # for how often a word stays
_SENTENCES = (
    "The doctor said that my knee will be fine in three weeks.",
    "Please book a table for two at an Italian restaurant tomorrow.",
    "My sister lost her job at the bank and moved to London.",
    "I was angry about the long wait, but the nurse was kind.",
    "Write to anna@example.org or call 555 0100 before Friday.",
    "The film was too long and the music was terrible.",
)
"""Made up for this library: what a page shows before and after, in place of anybody's texts."""


_NO_ENCODER = (
    "Linking private vectors to their texts, and reading words out of them, was not tried: that takes the encoder."
)


def report(
    private: PathLike | Question | Release,
    *,
    title: str = "",
    command: str = "",
    say: Callable[[str], None] = lambda _line: None,
    progress: bool | None = None,
    **asked: Any,
) -> Report:
    """Look at a release, and put what was found on one page: its promise, audits, attacks, utility and fairness.

    Args:
        private: private texts, a .parquet of vectors, or a synthetic corpus, with the statement beside it; or the
            release of `dptext.privatize_file`.
        title: of the page; empty: the name of the private file.
        command: what makes the page again.
        say: called with a line for each step.
        progress: a bar with the step, as `dptext.progress` says.
        asked: what to look at, and in which rows: the attributes of `Question` (``original``, ``label``,
            ``attribute``, ``group``, ``user``, ``seed`` ...).

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
    if isinstance(private, Release) and "out" in private.made:
        private = private.out
    if isinstance(private, Release):
        raise ParameterError(
            "a report looks at a file with its statement beside it, and this release is in memory: make one with "
            "dptext.privatize_file, and give its path"
        )
    if isinstance(private, Question):
        private = replace(private, **asked)
    else:
        for name in ("original", "distribution", "held_out", "bank"):
            if asked.get(name) is not None:
                asked[name] = Path(asked[name])
        private = Question(private=Path(private), **asked)
    if private.private.is_dir():
        folder = private.private if private.private.name else private.private.resolve()
        why_not = other_than_reported(folder, folder_kind(folder))
        if why_not is not None:
            raise ParameterError(why_not)
    data, beside = data_and_statement(private.private)
    statement = read_statement(beside)
    needed = [("matplotlib.figure", "report"), ("scipy.stats", "report"), ("sklearn", "report")]
    if (private.vectors or statement.parameters.get("vectors")) == GLOVE:
        needed.append((GLOVE_PACKAGE, "glove"))
    extras(needed, "this report")  # before minutes of work, and all of them at once
    if private.bank is not None and not is_of_bank(statement):
        raise ParameterError(f"{display_name(data)} is not made of texts of a bank: leave bank out")
    if not is_described(statement) and (private.public or private.distribution or private.held_out):
        raise ParameterError(
            f"{display_name(data)} is no synthetic corpus: leave public, distribution and held_out out"
        )
    with watched(progress, "looking at the release", said=lambda line: (0, None, line)) as step:

        def both(line: str) -> None:
            say(line)
            step(line)

        return _kind(statement)(private, data, statement, both).report(title, command)


def _kind(statement: PrivacyStatement) -> type[Making]:
    if is_described(statement):
        return OfSynthetic
    if is_of_vectors(statement):
        return _OfVectors
    return _OfBank if is_of_bank(statement) else _OfWords


class _RowByRow(Making):
    """A release that has a row for each row of what it was made from."""

    _elsewhere: Sequence[str] = ()
    """Columns that stand in the original file alone."""

    @abstractmethod
    def audit(self, **how: Any) -> tuple[list[Check], Verdict]:
        """Check the file, and audit the promise."""

    @abstractmethod
    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        """What somebody gets who holds the originals."""

    def look(self) -> tuple[list[Check], Verdict]:
        asked = self.asked
        rows = raw = None
        if asked.original is not None or asked.columns:
            rows, raw = self._read()  # wrong columns show before minutes of work
        self.say(f"Auditing {self.statement.mechanism} ...")
        checks, verdict = self.audit(samples=asked.samples, error=asked.error, seed=asked.seed)
        if rows is not None:
            if raw is not None:
                self.attack_texts(rows, raw, is_its_data=checks[0].held is not False)
            self._infer(rows, raw)
            self._measure_use(rows, raw)
        self.identifying = [
            KeptColumn(name=each.name, reasons=each.reasons)
            for each in columns_in([path for path, _ in find_files([self.data])])
            if each.identifies and each.name not in (asked.text, VECTOR)
        ]
        return checks, verdict

    # -- what is looked at --------------------------------------------------------------------------------

    def _read(self) -> tuple[Rows, Rows | None]:
        """The chosen rows of both files, all columns in the first, and where each column comes from."""
        asked = self.asked
        count = count_rows(self.data, text=asked.text)
        if count < 2 * asked.folds:
            raise DataError(
                f"{display_name(self.data)}: expected at least {2 * asked.folds} rows to look at, got {count}"
            )
        if asked.original is not None and count != (held := count_rows(asked.original, text=asked.text)):
            raise DataError(
                f"{display_name(self.data)} must have as many rows as {display_name(asked.original)}, {held:,}, got "
                f"{count:,}: a private file is compared row by row with the one it was made from"
            )
        chosen = chosen_rows(count, asked.rows, RandomBits(asked.seed))
        if len(chosen) < count:
            self.notes.append(
                f"Of {count:,} rows, {len(chosen):,} were looked at, chosen at random. Among fewer originals a row is "
                "easier to find than among all; the checks of the file read all of it."
            )
        ours = columns_of(self.data, text=asked.text, wanted=asked.columns)
        self._elsewhere = [each for each in asked.columns if each not in ours]
        # whose rows they are decides how models are tested: where the release does not say so, no number may be shared
        self.at_home = asked.columns if asked.user in self._elsewhere else self._elsewhere
        if self._elsewhere and asked.original is None:
            raise DataError(f"{display_name(self.data)}: expected a column {self._elsewhere[0]!r}, the file has none")
        rows = read_rows(self.data, chosen, text=asked.text, columns=ours)
        if asked.original is None:
            return rows, None
        known = columns_of(asked.original, text=asked.text, wanted=self._elsewhere)
        missing = [each for each in self._elsewhere if each not in known]
        if missing:
            raise DataError(
                f"{display_name(self.data)} and {display_name(asked.original)}: expected a column {missing[0]!r} in "
                "all rows of one of them"
            )
        raw = read_rows(asked.original, chosen, text=asked.text, columns=self._elsewhere)
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
        asked = self.asked
        if asked.attribute is None:
            return
        places = self._frequent(rows, asked.attribute, asked.folds)
        some = rows.at(places)
        self.say(f"Training attackers on {len(places):,} private rows ...")
        how: dict[str, Any] = {"attackers": asked.attackers, "folds": asked.folds, "seed": asked.seed}
        how["people"] = some.column(asked.user)
        values = some.column(asked.attribute) or []
        scores = infer(some.features, values, asked.attribute, **how)
        (self.owner_attacks if self._is_private(asked.attribute, asked.user) else self.attacks).extend(scores)
        if raw is not None:
            self.controls += infer(raw.at(places).features, values, asked.attribute, **how)

    def _measure_use(self, rows: Rows, raw: Rows | None) -> None:
        asked = self.asked
        if asked.label is None:
            return
        places = self._frequent(rows, asked.label, 2 * asked.folds)
        some = rows.at(places)
        people, labels = some.column(asked.user), some.column(asked.label) or []
        self.say(f"Training models on {len(places):,} rows ...")
        forms = self.models(
            some.features,
            None if raw is None else raw.at(places).features,
            np.asarray(labels),
            comparable=raw is not None and _widths(raw) == _widths(rows),
            people=None if people is None else np.asarray(people),
            folds=asked.folds,
            seed=asked.seed,
        )
        private = self._is_private(asked.label, asked.user)
        task = f"naming {asked.label!r}, {len(set(labels))} classes"
        self.utility = [*(_as_measurement(each, task, owner_only=private) for each in forms), *self.utility]
        if asked.group is None:
            return
        names, hidden = self._names_of_groups(some.column(asked.group) or [])
        shared = next((each for each in forms if not _is_owners(each)), forms[0])
        originals = [each for each in forms if each.trained_on == "raw"]
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
        self.stayed = stayed(raw.texts, rows.texts, words=self._listed)
        try:
            seen = as_seen(raw, self.statement, mechanism, words=self._listed)
        except DataError as problem:
            self.notes.append(f"Rows were not linked: {problem}.")
            return None
        self.say(f"Linking {seen.size:,} private rows to their originals ...")
        return replace(seen, people=rows.column(self.asked.user))


class _OfWords(_RowByRow):
    """Private texts, of a word mechanism."""

    def look(self) -> tuple[list[Check], Verdict]:
        self._mechanism = mechanism_from_statement(self.statement, vectors=self.asked.vectors)
        found = super().look()
        self.samples = _drawn_afresh(public_form(self._mechanism, self.statement))
        self.stays = deniability(self._mechanism, rows=_PUBLIC_WORDS, draws=_DRAWS, seed=0).mean("keep")
        return found

    def audit(self, **how: Any) -> tuple[list[Check], Verdict]:
        found = audit_word_file(self.statement, self.data, self._mechanism, text=self.asked.text, **how)
        self.attacks += expect_recovery(self._mechanism)
        return found

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        if raw.vectors is not None or rows.vectors is not None:
            self.notes.append(_NO_ENCODER)
            return
        before = self._compare(rows, raw, self._mechanism, PLACEHOLDERS)
        if before is None:
            return
        self.owner_attacks += link(before, rows, seed=self.asked.seed)
        if not is_its_data:
            self.notes.append("Word recovery was not tried: the file is not the one that its statement speaks of.")
            return
        self.say("Recovering words ...")
        scores, note = recover(before, rows, self._mechanism, self.data, seed=self.asked.seed)
        self.owner_attacks += scores
        self.notes += [note] if note else []


class _OfBank(_RowByRow):
    """Private texts, each a text of a public bank or several."""

    def look(self) -> tuple[list[Check], Verdict]:
        """As its base; and, where the originals are at hand, whether the draws were those of the statement."""
        if self.asked.vectors is not None:
            raise ParameterError(
                f"{display_name(self.data)} is made of texts of a bank, without word vectors: leave vectors out"
            )
        self._rewriter = rewriter_from_statement(self.statement, self.asked.bank)
        self._drawn: list[Check] = []
        checks, verdict = super().look()
        self.relinking = self._relinking()
        self.samples = _drawn_afresh(public_form(self._rewriter, self.statement))
        return [*checks, *self._drawn], verdict

    def audit(self, **how: Any) -> tuple[list[Check], Verdict]:
        return audit_bank_file(self.statement, self.data, self._rewriter, text=self.asked.text, **how)

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        if not is_its_data:
            self.notes.append("Rows were not linked: the file is not the one that its statement speaks of.")
            return
        before = self._compare(rows, raw, self._rewriter)
        if before is None:
            return
        how = {"people": before.people, "seed": self.asked.seed}
        scores, likely = link_bank(before, rows, self._rewriter, self.data, how)
        self.owner_attacks += scores
        self._drawn = _drawn(self._rewriter, likely)
        self.utility += _alike(self._rewriter, raw.texts, rows.texts)

    def _relinking(self) -> list[Relinking]:
        """By the mechanism, for a document of as many sentences as the longest has."""
        rewriter, said = self._rewriter, self.statement.parameters.get("sentences_counted")
        longest = said if isinstance(said, int) and said > 0 else 1
        parts = longest if rewriter.unit == "sentence" else rewriter.longest_document or 1
        return [
            Relinking(
                people=people,
                parts=parts,
                exact=_among_public(rewriter, people) if parts == 1 else None,
                most=rewriter.relinking(people, parts=parts),
                pure=rate_at_most(self.statement.epsilon, people),
            )
            for people in _PEOPLE
        ]

    def models(
        self, private: Any, raw: Any, labels: npt.NDArray[np.str_], *, comparable: bool, **how: Any
    ) -> list[Predictions]:
        """As its base, those that say most first; and models of random texts of the bank."""
        forms = super().models(private, raw, labels, comparable=comparable, **how)
        forms.sort(key=lambda each: (each.trained_on != "private", each.tested_on == "private"))
        texts = self._rewriter.bank.texts
        drawn = RandomBits(self.asked.seed).below(np.full(len(labels), len(texts), dtype=np.uint64))
        random = [texts[row] for row in drawn.tolist()]
        tested: dict[str, Any] = {"private": private} if raw is None else {"raw": raw, "private": private}
        return forms + [
            predictions(random, labels, test_rows=rows, trained_on="random", tested_on=name, **how)
            for name, rows in tested.items()
        ]


class _OfVectors(_RowByRow):
    """Private vectors, of a randomizer."""

    def audit(self, **how: Any) -> tuple[list[Check], Verdict]:
        return audit_vector_file(self.statement, self.data, **how)

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:  # noqa: ARG002  it takes the encoder
        self.notes.append(_NO_ENCODER)


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


def _drawn_afresh(mechanism: TextMechanism | None) -> list[Sample]:
    if mechanism is None:
        return []
    after = privatize(_SENTENCES, mechanism).texts
    return [Sample(before, out or "") for before, out in zip(_SENTENCES, after, strict=True)]


# -- texts of a bank ----------------------------------------------------------------------------------------------


def _among_public(rewriter: BankRewriter, people: int) -> float | None:
    bank = rewriter.bank
    if people > len(bank) or people * len(bank) > _MOST_SIMILARITIES:
        return None
    rows = np.arange(people, dtype=np.int64) * len(bank) // people
    return rewriter.relinking(people, [bank.texts[row] for row in rows.tolist()], parts=1)


def _drawn(rewriter: BankRewriter, likely: Likelihoods) -> list[Check]:
    """A check that fails, where what came out is not near the originals as often as the statement says."""
    _, _, agree = drawn_as_said(rewriter, likely)
    if agree:
        return []
    seen = "it does not: these are not its originals, or the statement is not true"
    return [Check("what came out lies in the sets of the originals as often as the statement says", False, seen)]


def _alike(rewriter: BankRewriter, originals: Sequence[str | None], private: Sequence[str | None]) -> list[Measurement]:
    """How similar what came out is to what it was made from, in the features of the bank."""
    found = alike(rewriter, originals, private)
    if len(np.unique(found.whose)) < 2:
        return []
    share = mean_of_people((1 + found.drawn) / 2, found.whose)  # a similarity lies between -1 and 1
    drawn = replace(share, value=2 * share.value - 1, low=2 * share.low - 1, high=2 * share.high - 1)
    expected = rewriter.bank.profile.expected(rewriter.size, rewriter.selection.epsilon)
    return [
        Measurement(
            what="what came out, beside its original",
            measure="similarity in the public features",
            score=drawn,
            baseline=float(found.random.mean()),
            baseline_name="texts of the bank at random",
            owner_only=True,
            detail=(
                f"the most similar text of the bank: {found.nearest.mean():.3f}; expected of public texts: "
                f"{expected:.3f}"
            ),
        )
    ]


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
    whose = range(len(values)) if people is None else people
    holders: dict[Hashable, set[Hashable]] = {}
    for value, person in zip(values, whose, strict=True):
        holders.setdefault(value, set()).add(person)
    return np.array([len(holders[value]) >= least for value in values], dtype=bool)


def _as_measurement(form: Predictions, task: str, *, owner_only: bool) -> Measurement:
    found = form.score("accuracy")
    return Measurement.of(
        found,
        what=_name(form),
        owner_only=owner_only or _is_owners(form),
        is_rival=form.trained_on == "random",
        detail=f"{task}: {found.rows:,} rows, {found.folds} folds, {found.model}, {found.features}",
    )


def _served(
    form: Predictions, groups: Sequence[str], people: Sequence[str] | None, *, owner_only: bool
) -> tuple[list[Measurement], GroupGap]:
    """How good a form is for each group, and the largest gap in words."""
    names = [groups[row] for row in form.rows]
    whose = None if people is None else [people[row] for row in form.rows]
    large = _frequent(names, whose, SMALLEST_GROUP)
    if len(set(np.asarray(names)[large])) < 2:
        raise ParameterError(
            f"group: expected at least two groups of {SMALLEST_GROUP} people or more among the rows that were looked "
            "at, got fewer: name another column, or look at more rows"
        )
    found = fairness(
        form.true[large],
        form.predicted[large],
        np.asarray(names)[large],
        people=None if whose is None else np.asarray(whose)[large],
    )
    name = _name(form)
    measured = [
        Measurement(
            what=each.group,
            measure="accuracy",
            score=each.score,
            baseline=each.baseline,
            baseline_name=each.baseline_name,
            owner_only=owner_only,
            detail=f"{each.people:,} {'rows' if people is None else 'people'}, {name}",
        )
        for each in found.groups
    ]
    gap = found.largest
    shown = "more than chance explains" if gap.is_shown else "which chance may explain"
    words = (
        f"{name[0].upper()}{name[1:]}: the largest gap is {100 * gap.gap.value:.1f} points ({gap.better!r} "
        f"above {gap.worse!r}; 95% interval {100 * gap.gap.low:.1f} to {100 * gap.gap.high:.1f}), {shown}."
    )
    return measured, GroupGap(
        words=words,
        gap=gap.gap,
        of_release=form.trained_on == "private",
        owner_only=owner_only,
    )
