"""The inputs and results of ``dptext attack``, and the attacks that need nothing but rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from dptext.attacks import AttackScore, attribute_inference, linkage
from dptext.errors import DataError, ParameterError
from dptext.methods.examination import redacted_rows
from dptext.methods.files import Rows, read_rows
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import paragraphs
from dptext.release.redaction import read_terms

_FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class AttackInputs:
    """A release (a file or a folder), and the files and columns that the adversary has."""

    release: Path
    statement: PrivacyStatement | None = None
    original: Path | None = None  # for a released distribution, texts of people who are in it
    held_out: Path | None = None  # texts of people who are not in it
    pairs: Path | None = None  # names and their secrets
    text: str = "text"
    user: str | None = None
    label: str = ""
    vectors: str | None = None
    bank: Path | None = None
    redact_list: Path | None = None  # terms that were redacted before the release
    seed: int = 0
    say: Callable[[str], None] = lambda _line: None

    def read_pairs(self, *, keeps_marks: bool = True) -> tuple[Rows, Rows]:
        """Return the original rows, redacted as the release was, and the private rows."""
        assert self.original is not None
        before = read_rows(self.original, text=self.text, user=self.user, vector=None)
        after = read_rows(self.release, text=self.text, vector=None)
        if before.size != after.size:
            raise DataError(
                f"{self.release.name} must have as many rows as {self.original.name}, {before.size:,}, got "
                f"{after.size:,}: name the file that it was made from"
            )
        if before.size < 2:
            raise DataError(f"{self.original.name}: at least two rows are needed, got {before.size}")
        terms = [] if self.redact_list is None else read_terms(self.redact_list)
        if terms and (self.statement is None or not self.statement.parameters.get("redacted_list")):
            raise ParameterError(f"the statement of {self.release.name} has no redaction list: omit --redact-list")
        if self.statement is not None:
            before = redacted_rows(before, self.statement, keeps_marks=keeps_marks, words=terms)
        self.say(f"Comparing {after.size:,} private rows with their originals ...")
        return before, after

    def linkage_options(self, before: Rows) -> dict[str, Any]:
        return {"people": before.people, "seed": self.seed}


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """The result of an attack."""

    description: str  # of the adversary
    scores: Sequence[AttackScore] = ()
    meaning: Sequence[str]
    bounds: Mapping[str, float | None] = field(default_factory=dict)  # largest success that the guarantee allows


Attack: TypeAlias = Callable[[AttackInputs], AttackResult]


def attack_result(
    topic: str, scores: Sequence[AttackScore] = (), *, bounds: Mapping[str, float | None] | None = None, **values: Any
) -> AttackResult:
    """Return a result with the sentences of a topic, about these values."""
    description, *meaning = paragraphs("methods/templates/attacks.txt", topic=topic, scores=scores, **values)
    return AttackResult(description=description, scores=scores, meaning=meaning, bounds=bounds or {})


def linkage_result(topic: str, scores: Sequence[AttackScore], before: Rows, **values: Any) -> AttackResult:
    firsts = [score for score in scores if "first guess" in score.measure]
    best = max(firsts, key=lambda score: score.score.value)
    return attack_result(topic, scores, originals=before.size, best=best, **values)


def link_by_words(before: Rows, after: Rows, options: dict[str, Any]) -> list[AttackScore]:
    scores = linkage(before.texts, after.texts, **options)
    return [replace(score, attack="linkage (shared words)") for score in scores]


def link_rows(inputs: AttackInputs) -> AttackResult:
    """Link the rows of a file without a statement to their originals by shared words."""
    before, after = inputs.read_pairs()
    return linkage_result("rows", link_by_words(before, after, inputs.linkage_options(before)), before)


def infer_attribute(inputs: AttackInputs) -> AttackResult:
    """Infer an attribute of the authors from texts or vectors, by models trained on other people's private rows."""
    rows = read_rows(inputs.release, text=inputs.text, columns=(inputs.label,), user=inputs.user)
    labels, kind = rows.columns[inputs.label], "texts" if rows.vectors is None else "vectors"
    inputs.say(f"Training attackers on {len(labels):,} private {kind} ...")
    scores = attribute_inference(rows.features, labels, people=rows.people, folds=_FOLDS, seed=inputs.seed)
    accuracies = [score for score in scores if score.measure == "accuracy"]
    best = max(accuracies, key=lambda score: (score.succeeded, score.score.value))
    other = max((score for score in scores if score.succeeded), key=lambda score: score.advantage, default=None)
    return attack_result("attribute", scores, label=inputs.label, kind=kind, folds=_FOLDS, best=best, other=other)


ROW_ATTACKS: Mapping[str, Attack] = {"linkage": link_rows, "attribute": infer_attribute}
"""Attacks on a file without a statement."""
