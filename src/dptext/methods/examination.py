"""The examination of a release for a report: its settings, its base, and the parts for one private row per original."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks import AttackScore, attribute_inference
from dptext.attacks.base import ATTACKERS, Attacker
from dptext.audits.verdict import Verdict
from dptext.errors import DataError, ParameterError
from dptext.evaluation.utility import SMALLEST_GROUP, Predictions, fairness, predictions
from dptext.io.batches import display_name
from dptext.io.documents import find_files
from dptext.methods.checks import Audit, Check, ReleaseFiles
from dptext.methods.files import Rows, chosen_rows, columns_of, count_rows, read_rows
from dptext.methods.results import GroupGap, KeptPieces, Measurement
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.release.mechanism import TextMechanism, mark, placeholder, unmarked
from dptext.release.privatize import privatize
from dptext.release.redaction import Terms, read_terms, redaction_of, united
from dptext.representations.device import VECTOR
from dptext.text.identifiers import columns_of as identifying_columns
from dptext.text.patterns import find
from dptext.text.tokens import Kind, fold, letters_between, split

Mask = npt.NDArray[np.bool_]
NO_ENCODER = "Private vectors were not linked to their texts: that requires the encoder."
_SEEDS = 2**31
_MIN_LETTERS = 3  # of a part of a piece that counts as kept
_SENTENCES = (
    "The doctor said that my knee will be fine in three weeks.",
    "Please book a table for two at an Italian restaurant tomorrow.",
    "My sister lost her job at the bank and moved to London.",
    "I was angry about the long wait, but the nurse was kind.",
    "Write to anna@example.org or call 555 0100 before Friday.",
    "The film was too long and the music was terrible.",
)  # made up for this library, to show a text before and after
_SOURCES = {"private": "private rows", "raw": "original rows", "random": "texts of the bank at random"}


@dataclass(frozen=True, kw_only=True)
class ReportConfig:
    """Settings of a report: the files, columns and sizes that `dptext.report` takes."""

    private: Path
    original: Path | None = None
    text: str = "text"
    label: str | None = None
    attribute: str | None = None
    group: str | None = None
    user: str | None = None
    public: Sequence[Path] = ()
    public_text: str = "text"
    distribution: Path | None = None
    held_out: Path | None = None
    rows: int = 3000
    vectors: str | None = None
    bank: Path | None = None
    redact_list: Path | None = None
    samples: int = 200_000
    error: float = 1e-6
    attackers: Sequence[Attacker] = ATTACKERS
    folds: int = 5
    seed: int = field(default_factory=lambda: int(RandomBits().integers(1)[0]) % _SEEDS)

    def __post_init__(self) -> None:
        if self.rows < 2 * self.folds:
            raise ParameterError(f"rows must be at least {2 * self.folds}, got {self.rows}")
        if self.group is not None and self.label is None:
            raise ParameterError("group needs a label: groups are compared by how well their labels are predicted")
        if self.held_out is not None and self.original is None:
            raise ParameterError("held_out needs original: members of the release are compared with other people")
        paths = [path.resolve() for path in (self.private, self.original, self.held_out) if path is not None]
        if len(set(paths)) < len(paths):
            raise ParameterError("private, original and held_out must be different files")

    def files(self, data: Path, statement: PrivacyStatement) -> ReleaseFiles:
        """The release under examination, with the public inputs that were named."""
        names = {field.name for field in fields(ReleaseFiles)}
        inputs = {name: value for name, value in vars(self).items() if name in names}
        return ReleaseFiles(data=data, statement=statement, **inputs)

    @property
    def columns(self) -> list[str]:
        names = (self.label, self.attribute, self.group, self.user)
        return list(dict.fromkeys(name for name in names if name is not None))


class Examination(ABC):
    """The examination of one release. Its public attributes are the fields of `dptext.reports.page.Report`."""

    def __init__(
        self, config: ReportConfig, data: Path, statement: PrivacyStatement, say: Callable[[str], None]
    ) -> None:
        self.config, self.data, self.statement, self.say = config, data, statement, say
        self.files = config.files(data, statement)
        self.checks: list[Check] = []
        self.verdicts: list[Verdict] = []
        self.notes: list[str] = []
        self.attacks: list[AttackScore] = []
        self.owner_attacks: list[AttackScore] = []
        self.controls: list[AttackScore] = []
        self.utility: list[Measurement] = []
        self.fairness: list[Measurement] = []
        self.gaps: list[GroupGap] = []
        self.limits: dict[str, float] = {}

    @abstractmethod
    def run(self) -> None:
        """Examine the release."""

    def add_audit(self, audit: Audit) -> None:
        self.checks, self.verdicts = [*audit.checks], [audit.verdict]


class RowExamination(Examination):
    """A release with one row for each row of its original file."""

    _original_columns: Sequence[str] = ()
    """Columns that only the original file has."""

    @abstractmethod
    def audit(self) -> Audit:
        """Check the file, and test its guarantee."""

    @abstractmethod
    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        """Attack the private rows with the original ones."""

    def run(self) -> None:
        config = self.config
        rows = raw = None
        if config.original is not None or config.columns:
            rows, raw = self._read()  # before the audit, so that a wrong column is reported at the start
        self.say(f"Auditing {self.statement.mechanism} ...")
        audit = self.audit()
        self.add_audit(audit)
        if rows is not None:
            if raw is not None:
                self.attack_texts(rows, raw, is_its_data=audit.checks[0].passed is not False)
            self._infer_attribute(rows, raw)
            self._measure_utility(rows, raw)
        columns = identifying_columns([path for path, _ in find_files([self.data])])
        identifying = (column for column in columns if column.identifies)
        self.identifying = [column for column in identifying if column.name not in (config.text, VECTOR)]

    # -- rows -------------------------------------------------------------------------------------------------

    def _read(self) -> tuple[Rows, Rows | None]:
        """Return the chosen rows of both files, with all columns in the first."""
        config, name = self.config, display_name(self.data)
        count = count_rows(self.data, text=config.text)
        if count < 2 * config.folds:
            raise DataError(f"{name} must have at least {2 * config.folds} rows, got {count}")
        if config.original is not None:
            originals = count_rows(config.original, text=config.text)
            if count != originals:
                raise DataError(
                    f"{name} must have as many rows as {display_name(config.original)}, {originals:,}, got {count:,}: "
                    "name the file it was made from"
                )
        chosen = chosen_rows(count, config.rows, RandomBits(config.seed))
        if len(chosen) < count:
            self.notes.append(
                f"{len(chosen):,} of {count:,} rows were examined, chosen at random. Among fewer originals, a row is "
                "easier to find. The checks of the file read all rows."
            )
        columns = columns_of(self.data)
        missing = self._original_columns = [column for column in config.columns if column not in columns]
        if missing and config.original is None:
            raise DataError(f"{name}: there is no column {missing[0]!r}")
        private_columns = [column for column in config.columns if column in columns]
        rows = read_rows(self.data, chosen, text=config.text, columns=private_columns)
        if config.original is None:
            return rows, None
        for column in missing and sorted(set(missing) - set(columns_of(config.original))):
            raise DataError(f"{name} and {display_name(config.original)}: neither has a column {column!r}")
        raw = read_rows(config.original, chosen, text=config.text, columns=missing)
        rows.columns.update(raw.columns)
        return rows, raw

    def _is_private(self, *names: str | None) -> bool:
        """Return whether only the original file has one of these columns."""
        return any(name in self._original_columns for name in names)

    def _select_frequent(self, rows: Rows, name: str, minimum: int) -> list[int]:
        """Return the places of the rows whose value is frequent enough to learn from."""
        values = rows.column(name) or []
        kept = _is_frequent(values, rows.column(self.config.user), minimum)
        if len(set(np.asarray(values)[kept])) < 2:
            raise ParameterError(
                f"the column {name!r} must have at least two values that {minimum} people or more share: merge rare "
                "values, or examine more rows"
            )
        if not kept.all():
            self.notes.append(
                f"Column {name!r}: {int((~kept).sum()):,} rows were left out: fewer than {minimum} people have their "
                "value."
            )
        return [int(place) for place in np.flatnonzero(kept)]

    # -- results ----------------------------------------------------------------------------------------------

    def _infer_attribute(self, rows: Rows, raw: Rows | None) -> None:
        config, attribute = self.config, self.config.attribute
        if attribute is None:
            return
        places = self._select_frequent(rows, attribute, config.folds)
        selected = rows.at(places)
        self.say(f"Training attackers on {len(places):,} private rows ...")
        targets = [(self.owner_attacks if self._is_private(attribute, config.user) else self.attacks, selected)]
        targets += [] if raw is None else [(self.controls, raw.at(places))]
        for results, source in targets:
            scores = attribute_inference(
                source.features,
                selected.column(attribute) or [],
                people=selected.column(config.user),
                attackers=config.attackers,
                folds=config.folds,
                seed=config.seed,
            )
            name = f"inference of {attribute!r}"
            results += [replace(score, attack=score.attack.replace("inference", name, 1)) for score in scores]

    def models(
        self, private: Any, raw: Any, labels: npt.NDArray[np.str_], *, comparable: bool, **options: Any
    ) -> list[Predictions]:
        """Return the predictions of models trained on private and original rows, the main one first."""
        result = [predictions(private, labels, **options)]
        if raw is not None and comparable:
            result.append(predictions(private, labels, test_rows=raw, **options))
        if raw is not None:
            result.append(predictions(raw, labels, trained_on="raw", **options))
        return result

    def _measure_utility(self, rows: Rows, raw: Rows | None) -> None:
        config = self.config
        if config.label is None:
            return
        places = self._select_frequent(rows, config.label, 2 * config.folds)
        selected = rows.at(places)
        people, labels = selected.column(config.user), selected.column(config.label) or []
        self.say(f"Training models on {len(places):,} rows ...")
        widths = {None if side.vectors is None else side.vectors.shape[1] for side in (rows, raw) if side is not None}
        models = self.models(
            selected.features,
            None if raw is None else raw.at(places).features,
            np.asarray(labels),
            comparable=len(widths) == 1,
            people=None if people is None else np.asarray(people),
            folds=config.folds,
            seed=config.seed,
        )
        private = self._is_private(config.label, config.user)
        task = f"predicting {config.label!r}, {len(set(labels))} classes"
        self.utility = [*(_measurement(model, task, owner_only=private) for model in models), *self.utility]
        if config.group is not None:
            self._compare_groups(models, selected.column(config.group) or [], people, owner_only=private)

    def _compare_groups(
        self, models: Sequence[Predictions], values: list[str], people: Sequence[str] | None, *, owner_only: bool
    ) -> None:
        hidden = self._is_private(self.config.group)
        if hidden:  # the release does not contain the values, and neither may the page
            self.notes.append(f"The release has no column {self.config.group!r}: groups are numbered by frequency.")
            counts = Counter(values)
            order = sorted(counts, key=lambda value: (-counts[value], value))
            values = [f"group {order.index(value) + 1}" for value in values]
        shared = next((model for model in models if not _uses_originals(model)), models[0])
        originals = [model for model in models if model.trained_on == "raw"]
        for model in dict.fromkeys((models[0], shared, *originals)):
            self._measure_groups(model, values, people, owner_only=owner_only or hidden or _uses_originals(model))
        rare = int((~_is_frequent(values, people, SMALLEST_GROUP)).sum())
        if rare:
            self.notes.append(f"{rare:,} rows were left out: their groups have fewer than {SMALLEST_GROUP} people.")

    def _measure_groups(
        self, model: Predictions, groups: Sequence[str], people: Sequence[str] | None, *, owner_only: bool
    ) -> None:
        """Add the accuracy for each group, and the largest gap."""
        values = np.asarray(groups)[model.rows]
        owners = None if people is None else np.asarray(people)[model.rows]
        large = _is_frequent(values.tolist(), None if owners is None else owners.tolist(), SMALLEST_GROUP)
        if len(set(values[large])) < 2:
            raise ParameterError(
                f"group must have at least two groups of {SMALLEST_GROUP} people or more: name another column, or "
                "examine more rows"
            )
        result = fairness(
            model.true[large], model.predicted[large], values[large], people=None if owners is None else owners[large]
        )
        name, gap = _description(model), result.largest
        self.fairness += [
            Measurement(
                name=group.group,
                measure="accuracy",
                score=group.score,
                baseline=group.baseline,
                baseline_name=group.baseline_name,
                owner_only=owner_only,
                detail=f"{group.people:,} {'rows' if people is None else 'people'}, {name}",
            )
            for group in result.groups
        ]
        sentence = (
            f"{name[0].upper()}{name[1:]}: the largest gap is {100 * gap.gap.value:.1f} points ({gap.better!r} above "
            f"{gap.worse!r}; 95% interval {100 * gap.gap.low:.1f} to {100 * gap.gap.high:.1f}), "
            f"{'more than chance explains' if gap.is_shown else 'which chance may explain'}."
        )
        is_for_release = model.trained_on == "private"
        self.gaps.append(GroupGap(sentence=sentence, gap=gap.gap, is_for_release=is_for_release, owner_only=owner_only))

    def _compare(
        self, rows: Rows, raw: Rows, mechanism: TextMechanism, placeholders: Mapping[Kind, str] | None = None
    ) -> Rows | None:
        """Count unchanged texts; return the originals as the mechanism received them, None if that is impossible."""
        terms = [] if self.config.redact_list is None else read_terms(self.config.redact_list)
        self.unchanged = count_unchanged(raw.texts, rows.texts, placeholders=placeholders)
        self.kept_pieces = count_kept_pieces(raw.texts, rows.texts, words=terms)
        try:
            originals = redacted_rows(raw, self.statement, keeps_marks=mechanism.keeps_marks, words=terms)
        except DataError as problem:
            self.notes.append(f"Rows were not linked: {problem}.")
            return None
        self.say(f"Linking {originals.size:,} private rows to their originals ...")
        return replace(originals, people=rows.column(self.config.user))


def count_unchanged(
    originals: Sequence[str | None], private: Sequence[str | None], *, placeholders: Mapping[Kind, str] | None = None
) -> tuple[int, int]:
    """Return how many texts came out unchanged (apart from capitals and placeholders), and how many have words."""
    known = placeholders or {}

    def normalise(text: str) -> str:
        return "".join(known.get(kind, fold(piece)) for piece, kind in split(text) if kind is not Kind.SPACE)

    pairs = [
        (before, after)
        for before, after in zip(originals, private, strict=True)
        if before is not None and after is not None and any(kind is Kind.WORD for _, kind in split(before))
    ]
    return sum(normalise(before) == normalise(after) for before, after in pairs), len(pairs)


def count_kept_pieces(
    originals: Sequence[str | None], private: Sequence[str | None], *, words: Iterable[str] = ()
) -> list[KeptPieces]:
    """Count the names, addresses and numbers of the originals that remain in the private texts, by kind."""

    def letters_of(text: str) -> list[str]:
        return [fold(run) for run in letters_between(unmarked(text))]

    terms = Terms(words)
    counts: dict[str, list[int]] = {}
    for before, after in zip(originals, private, strict=True):
        spans = united([*terms.find(before), *find(before)]) if before else []
        if not before or not spans:
            continue
        runs = letters_of(after or "")
        distinct, joined = set(runs), f" {' '.join(runs)} "
        for start, end, kind in spans:
            piece = letters_of(before[start:end])
            count = counts.setdefault(kind, [0, 0, 0])
            count[0] += 1
            if piece and f" {' '.join(piece)} " in joined:
                count[1] += 1
            elif any(len(run) >= _MIN_LETTERS and run in distinct for run in piece):
                count[2] += 1
    result = [KeptPieces(kind, *count) for kind, count in counts.items()]
    return sorted(result, key=lambda entry: (-entry.pieces, entry.kind))


def redacted_rows(before: Rows, statement: PrivacyStatement, *, keeps_marks: bool, words: Sequence[str] = ()) -> Rows:
    """Return the original rows as the mechanism received them: redacted, if the statement says so."""
    redaction = redaction_of(statement, words=words if statement.parameters.get("redacted_list") else ())
    if redaction is None:
        return before
    replace_by = mark if keeps_marks else placeholder
    texts = [None if text is None else redaction.applied(text, replace_by) for text in before.texts]
    return replace(before, texts=texts)


def sample_pairs(mechanism: TextMechanism | None) -> list[tuple[str, str]]:
    """Return made-up sentences before and after a mechanism."""
    texts = () if mechanism is None else privatize(_SENTENCES, mechanism).texts
    return [(before, after or "") for before, after in zip(_SENTENCES, texts, strict=False)]


def _uses_originals(model: Predictions) -> bool:
    return "raw" in (model.trained_on, model.tested_on)


def _description(model: Predictions) -> str:
    return f"trained on {_SOURCES[model.trained_on]}, tested on {_SOURCES[model.tested_on]}"


def _is_frequent(values: Sequence[Hashable], people: Sequence[Hashable] | None, minimum: int) -> Mask:
    """Return for each row whether enough people (rows, if there is no user) share its value."""
    owners = range(len(values)) if people is None else people
    holders: dict[Hashable, set[Hashable]] = {}
    for value, person in zip(values, owners, strict=True):
        holders.setdefault(value, set()).add(person)
    return np.array([len(holders[value]) >= minimum for value in values], dtype=bool)


def _measurement(model: Predictions, task: str, *, owner_only: bool) -> Measurement:
    result = model.score("accuracy")
    return Measurement.of(
        result,
        name=_description(model),
        owner_only=owner_only or _uses_originals(model),
        is_rival=model.trained_on == "random",
        detail=f"{task}: {result.rows:,} rows, {result.folds} folds, {result.model}, {result.features}",
    )
