"""The inputs and results of ``dptext attack``, and the attacks that need nothing but rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from dptext.attacks import AttackScore, attribute_inference, linkage
from dptext.errors import DataError, ParameterError
from dptext.methods.examination import redacted_rows
from dptext.methods.files import Rows, read_rows
from dptext.privacy.statement import PrivacyStatement
from dptext.release.redaction import read_terms

_FOLDS = 5
STRONGER = "A stronger adversary may do better. The bound in the statement holds against all of them."


@dataclass(frozen=True, kw_only=True)
class AttackInputs:
    """A release, and what the adversary has.

    Attributes:
        release: the private file or the released folder.
        statement: its statement; None: it has none.
        original: the original texts; for a released distribution, texts of people who are in it.
        held_out: texts of people who are not in it.
        pairs: names and their secrets.
        text, user, label: columns.
        vectors, bank: the public inputs of the method.
        redact_list: the terms that were redacted before the release.
        informed: the adversary also knows the mechanism.
        seed: of random choices of the adversary.
        say: called with a line for each step.
    """

    release: Path
    statement: PrivacyStatement | None = None
    original: Path | None = None
    held_out: Path | None = None
    pairs: Path | None = None
    text: str = "text"
    user: str | None = None
    label: str = ""
    vectors: str | None = None
    bank: Path | None = None
    redact_list: Path | None = None
    informed: bool = False
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
            raise ParameterError(
                f"the statement of {self.release.name} names no redaction list: leave --redact-list out"
            )
        if self.statement is not None:
            before = redacted_rows(before, self.statement, keeps_marks=keeps_marks, words=terms)
        self.say(f"Comparing {after.size:,} private rows with their originals ...")
        return before, after

    def linkage_options(self, before: Rows) -> dict[str, Any]:
        return {"top": (1, 10), "people": before.people, "seed": self.seed}

    def refuse_informed(self) -> None:
        if self.informed:
            raise ParameterError("--informed needs a file of replaced words with its statement: leave it out")


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """The result of an attack.

    Attributes:
        description: what the adversary knew and did.
        scores: attack success, with the chance level.
        meaning: sentences about the scores.
        bounds: largest success that the guarantee allows, by name.
    """

    description: str
    scores: Sequence[AttackScore] = ()
    meaning: Sequence[str]
    bounds: Mapping[str, float | None] = field(default_factory=dict)


Attack: TypeAlias = Callable[[AttackInputs], AttackResult]


def link_rows(inputs: AttackInputs) -> AttackResult:
    """Link the rows of a file without a statement to their originals by shared words."""
    inputs.refuse_informed()
    before, after = inputs.read_pairs()
    scores = linkage(before.texts, after.texts, **inputs.linkage_options(before))
    return AttackResult(
        description=f"The adversary ranks all {before.size:,} originals for each private row by the words they share.",
        scores=scores,
        meaning=[*linkage_meaning(scores), STRONGER],
    )


def linkage_meaning(scores: Sequence[AttackScore]) -> list[str]:
    best = max((score for score in scores if "first guess" in score.measure), key=lambda score: score.score.value)
    if best.succeeded:
        return [
            f"The best attack, {best.attack}, links {1000 * best.score.value:,.0f} of 1,000 private rows to their "
            f"originals at first guess. By chance it would be {1000 * best.baseline:,.1f}."
        ]
    if any(score.succeeded for score in scores):
        return ["At first guess no attack beats chance, but the right original ranks higher than by chance."]
    return ["No attack beats chance."]


def infer_attribute(inputs: AttackInputs) -> AttackResult:
    """Infer an attribute of the authors from texts or vectors, by models trained on other people's private rows."""
    rows = read_rows(inputs.release, text=inputs.text, columns=(inputs.label,), user=inputs.user)
    labels, kind = rows.columns[inputs.label], "texts" if rows.vectors is None else "vectors"
    inputs.say(f"Training attackers on {len(labels):,} private {kind} ...")
    scores = attribute_inference(rows.features, labels, people=rows.people, folds=_FOLDS, seed=inputs.seed)
    return AttackResult(
        description=(
            f"The adversary knows {inputs.label!r} of some people, trains models on their private {kind}, and predicts "
            f"it for the others ({_FOLDS}-fold cross-validation)."
        ),
        scores=scores,
        meaning=[*_attribute_meaning(scores), STRONGER],
    )


def _attribute_meaning(scores: Sequence[AttackScore]) -> list[str]:
    accuracies = [score for score in scores if score.measure == "accuracy"]
    best = max(accuracies, key=lambda score: (score.succeeded, score.score.value))
    if best.succeeded:
        right, guess = best.score.value, best.baseline
        return [
            f"The best attack is right for {100 * right:,.0f} of 100 rows, the most frequent value for "
            f"{100 * guess:,.0f}. (1 - accuracy, which papers call empirical privacy, is {1 - right:.2f}; "
            f"{1 - guess:.2f} without an attack.)",
            "The guarantee limits what one word or text reveals, not what the texts of many people have in common.",
        ]
    failed = f"No attack is right more often than the most frequent value ({best.baseline:.0%} of rows)"
    other = max((score for score in scores if score.succeeded), key=lambda score: score.advantage, default=None)
    if other is None:
        return [f"{failed}."]
    return [f"{failed}, but {other.measure} is {other.score.value:.2f} ({other.baseline:.2f} by chance)."]


ROW_ATTACKS: Mapping[str, Attack] = {"linkage": link_rows, "attribute": infer_attribute}
"""Attacks on a file without a statement."""
