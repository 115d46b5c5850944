"""Word replacement: each word becomes a word of similar meaning, at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext.attacks import (
    AttackScore,
    bayes_recovery,
    expected_recovery,
    linkage,
    linkage_of_scores,
    nearest_recovery,
    sequence_likelihoods,
)
from dptext.audits.mechanisms import audit
from dptext.calibration.deniability import deniability, zipf_weights
from dptext.calibration.outcomes import distributions_of
from dptext.errors import DataError, ParameterError
from dptext.io.documents import read_documents
from dptext.methods.attacks import STRONGER, Attack, AttackInputs, AttackResult, infer_attribute, linkage_meaning
from dptext.methods.base import (
    NO_PREVIEW,
    PROTECTING,
    AdviceInput,
    Assessment,
    Audit,
    Method,
    PlaygroundSettings,
    ReleaseFiles,
)
from dptext.methods.checks import Check, check_digest, check_guarantee, restate
from dptext.methods.files import Rows
from dptext.methods.previewers import WordPreviewer
from dptext.methods.row_examination import NO_ENCODER, RowExamination, sample_pairs
from dptext.privacy.guarantee import Trust
from dptext.privacy.statement import PrivacyStatement
from dptext.release.redaction import placeholders_of, public_form
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import is_word_mechanism, mechanism_from_statement
from dptext.words.replacing import (
    PLACEHOLDERS,
    Aligner,
    count_foreign_words,
    layout_of_private,
    layout_of_release,
    words_that_can_come_out,
)
from dptext.words.tem import TEM

_ROWS = 100  # words
_PUBLIC_WORDS, _DRAWS = 200, 200  # for how often a word stays
_ALL_CHANNELS = 100_000  # words: the best attacker looks at all pairs, minutes at this size


class WordExamination(RowExamination):
    """Texts whose words a mechanism replaced."""

    def run(self) -> None:
        self._mechanism = mechanism_from_statement(self.statement, vectors=self.config.vectors)
        super().run()
        self.samples = sample_pairs(public_form(self._mechanism, self.statement))
        self.stays = deniability(self._mechanism, rows=_PUBLIC_WORDS, draws=_DRAWS, seed=0).mean("keep")

    def audit(self) -> Audit:
        self.attacks += expect_recovery(self._mechanism)
        return check_words(self.config.files(self.data, self.statement), self._mechanism)

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        if raw.vectors is not None or rows.vectors is not None:
            self.notes.append(NO_ENCODER)
            return
        before = self._compare(rows, raw, self._mechanism, PLACEHOLDERS)
        if before is None:
            return
        self.owner_attacks += link(before, rows, seed=self.config.seed)
        if not is_its_data:
            self.notes.append("Word recovery was not tried: the file does not match its statement.")
            return
        self.say("Recovering words ...")
        scores, note = recover(before, rows, self._mechanism, self.data, seed=self.config.seed)
        self.owner_attacks += scores
        self.notes += [note] if note else []


class Words(Method):
    """``dptext privatize``."""

    name = "words"
    command = "privatize"
    trust = Trust.LOCAL
    never = "No epsilon both protects by its bound and leaves a readable text."
    purposes: ClassVar = {None: 1, "read": 1, "classify": 1, "vectors": 0, "devices": 1, "statistics": 1}
    holds = "words drawn by a mechanism"
    examination = WordExamination
    audited = "words"
    inputs = frozenset({"vectors", "words"})
    playground = PlaygroundSettings(
        "words", "Words become other words", ("TEM", "SubsetSelection", "Madlib"), (0.5, 20.0, 4.0), WordPreviewer
    )
    mismatch: ClassVar = {"vectors": "Randomly replaced words have no neighbours to learn from."}

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        commands = (case.command("privatize", ".words.jsonl", f"--epsilon {PROTECTING:g}", trust=Trust.LOCAL),)
        if case.vectors is None:
            unknown = "Its guarantee, and how many words stay, depend on the word vectors."
            return Assessment(statement=None, good_for=unknown, commands=commands)
        mechanism = TEM(case.vectors, epsilon=PROTECTING)
        good_for = "Hides the exact word among words of similar meaning."
        if figures:
            result = deniability(mechanism, rows=_ROWS, seed=0)
            good_for += (
                f" {result.mean('keep'):.0%} of the words stay (public frequencies); half of them could become "
                f"{int(result.quantile('support', 0.5)):,} others. At epsilon 5, nine of ten stay."
            )
        preview = case.preview(mechanism) if figures else NO_PREVIEW
        return Assessment(statement=mechanism.statement, good_for=good_for, commands=commands, preview=preview)

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return is_word_mechanism(statement)

    def check(self, files: ReleaseFiles) -> Audit:
        return check_words(files, mechanism_from_statement(files.statement, vectors=files.vectors))

    def attacks(self) -> Mapping[str, Attack]:
        return {"linkage": link_words, "recovery": recover_words, "attribute": infer_attribute}


def check_words(files: ReleaseFiles, mechanism: WordMechanism) -> Audit:
    """Check that every word can come from the mechanism, and audit the mechanism."""
    statement = files.statement
    checks = check_digest(statement, files.data)
    if checks[0].passed is not None:
        known = words_that_can_come_out(mechanism.vectors.vocabulary) | placeholders_of(statement)
        documents = foreign = 0
        for document in read_documents(files.parts, text=files.text):
            documents += 1
            foreign += count_foreign_words(document.text or "", known)
        seen = f"{documents:,} documents, {foreign:,} words that the mechanism cannot have written"
        checks.append(Check("every word is one that the mechanism writes", foreign == 0, seen))
    longest = statement.parameters.get("words_counted")
    repeated = restate(statement, mechanism, longest if isinstance(longest, int) else 0)
    checks.append(check_guarantee(statement, repeated, apart_from=("vectors",)))  # they may have moved
    verdict = audit(mechanism, words=files.words or None, labels=mechanism.labels, **files.sampling)
    return Audit(statement, checks, verdict)


def channel_of(mechanism: WordMechanism) -> Callable[[npt.NDArray[np.int64]], Any] | None:
    """Return the output distributions of vocabulary rows as a function; None if they have no formula."""
    distributions = distributions_of(mechanism)
    if distributions is None:
        return None
    words = mechanism.vectors.words
    return lambda rows: distributions([words[row] for row in rows.tolist()])


def aligned(
    before: Rows, after: Rows, mechanism: WordMechanism, private: Path, *, by_row: bool = False
) -> tuple[list[int], list[int], list[Any]]:
    """Return the original words, the private words and their owners, words as rows of the vocabulary."""
    aligner = Aligner(mechanism)
    true: list[int] = []
    observed: list[int] = []
    owners: list[Any] = []
    for row, (original, out) in enumerate(zip(before.texts, after.texts, strict=True)):
        result = None if (original is None) != (out is None) else aligner.pairs(original or "", out or "")
        if result is None:
            number = after.chosen[row] + 1
            raise DataError(
                f"{private.name}, row {number}: the private text does not have the layout of the original one, so it "
                f"was not made from it by {mechanism.name}: name the file it was made from, in its order"
            )
        true += result[0]
        observed += result[1]
        owners += [row if before.people is None or by_row else before.people[row]] * len(result[0])
    if not true:
        raise DataError(f"{private.name}: expected at least one private word, got none")
    return true, observed, owners


def link_by_layout(before: Rows, after: Rows, options: dict[str, Any]) -> list[AttackScore]:
    """Link rows by their layout, which no word mechanism hides."""
    codes: dict[str, int] = {}
    first, second = (
        np.array([codes.setdefault(visible(text or ""), len(codes)) for text in side.texts])
        for side, visible in ((before, layout_of_release), (after, layout_of_private))
    )
    return linkage_of_scores(
        lambda start, stop: (second[start:stop, None] == first).astype(np.int8),
        shape=(second.size, first.size),
        attack="linkage (layout alone)",
        **options,
    )


def link_by_likelihood(
    before: Rows, after: Rows, mechanism: WordMechanism, private: Path, options: dict[str, Any]
) -> list[AttackScore] | None:
    """Link rows by likelihood under the mechanism; None if its distributions have no formula."""
    channel = channel_of(mechanism)
    if channel is None:
        return None
    true, observed, owners = aligned(before, after, mechanism, private, by_row=True)
    rows = np.arange(before.size)
    original, out = (
        np.split(np.asarray(entry, dtype=np.int64), np.searchsorted(owners, rows[1:])) for entry in (true, observed)
    )
    pairs, shape = sequence_likelihoods(original, out, channel, inputs=len(mechanism.vectors))
    return linkage_of_scores(pairs, shape=shape, attack="linkage (likelihood)", **options)


def link(before: Rows, after: Rows, *, seed: int) -> list[AttackScore]:
    """Link rows to their originals by layout, and by shared words."""
    fields: dict[str, Any] = {"people": before.people, "seed": seed}
    by_words = linkage(before.texts, after.texts, **fields)
    return [
        *link_by_layout(before, after, fields),
        *(replace(word, attack="linkage (shared words)") for word in by_words),
    ]


def expect_recovery(mechanism: WordMechanism) -> list[AttackScore]:
    """Return the exact success of the best possible attack on words with public frequencies, without any text."""
    channel = channel_of(mechanism)
    size = len(mechanism.vectors)
    if channel is None or size > _ALL_CHANNELS:
        return []
    result = expected_recovery(channel, zipf_weights(size))
    return [replace(result, measure=f"{result.measure}, expected of everyday words")]


def recover(
    before: Rows,
    after: Rows,
    mechanism: WordMechanism,
    private: Path,
    *,
    seed: int,
    largest: int | None = _ALL_CHANNELS,
) -> tuple[list[AttackScore], str]:
    """Recover words by the best possible attack and by a simple one; return the scores, and why one was left out."""
    true, observed, owners = aligned(before, after, mechanism, private)
    if len(set(owners)) < 2:
        return [], "Word recovery was not tried: it needs words of at least two rows (or people)."
    prior = zipf_weights(len(mechanism.vectors))
    points = np.asarray(mechanism.vectors.matrix)
    scores = [nearest_recovery(points[observed], points, true, prior=prior, people=owners, seed=seed)]
    channel = channel_of(mechanism)
    if channel is None:
        return scores, (
            f"The distributions of {mechanism.name} have no formula: the best possible recovery was not tried."
        )
    if largest is not None and len(prior) > largest:
        return scores, "The best possible recovery of words was not tried: the vocabulary is too large."
    return [bayes_recovery(channel, prior, true, observed, people=owners), *scores], ""


def link_words(inputs: AttackInputs) -> AttackResult:
    """Link private rows to their originals by layout, by shared words and, if informed, by likelihood."""
    before, after = inputs.read_pairs()
    options = inputs.linkage_options(before)
    layout = link_by_layout(before, after, options)
    scores = [*layout, *linkage(before.texts, after.texts, **options)]
    if inputs.informed:
        mechanism = _mechanism(inputs)
        likelihoods = link_by_likelihood(before, after, mechanism, inputs.release, options)
        if likelihoods is None:
            raise ParameterError(f"the output distribution of {mechanism.name} has no formula: leave out --informed")
        scores += likelihoods
    meaning = linkage_meaning(scores)
    best = max(score.score.value for score in scores if "first guess" in score.measure)
    if layout[0].succeeded and layout[0].score.value > best / 2:
        meaning.append("The layout alone links many rows, at any epsilon. To prevent it, release texts of one length.")
    return AttackResult(
        description=(
            f"The adversary ranks all {before.size:,} originals for each private row: by layout (number of words, "
            "punctuation and line breaks, which the statement lists as exposed), by shared words"
            + (", and by likelihood under the mechanism." if inputs.informed else ".")
        ),
        scores=scores,
        meaning=[*meaning, STRONGER],
    )


def recover_words(inputs: AttackInputs) -> AttackResult:
    """Guess the original of every private word."""
    before, after = inputs.read_pairs()
    mechanism = _mechanism(inputs)
    scores, _ = recover(before, after, mechanism, inputs.release, seed=inputs.seed, largest=None)
    if not scores:
        raise DataError(f"{inputs.release.name}: words of at least two rows or users are needed")
    is_optimal = len(scores) > 1
    best = max(scores, key=lambda score: score.score.value)
    if best.succeeded:
        meaning = [
            f"Of 100 words, the best attack recovers {100 * best.score.value:,.0f}, a blind guess "
            f"{100 * best.baseline:,.0f}. Rare words without near neighbours are recovered more often."
        ]
    else:
        meaning = ["No attack beats guessing the most frequent word every time."]
    return AttackResult(
        description="The adversary guesses the original of every private word, without its context: "
        + (
            "once with the mechanism and public word frequencies (1 / rank), the best possible way, and once by "
            "taking the private word as the original."
            if is_optimal
            else "by taking the private word as the original. The output distribution of "
            f"{mechanism.name} has no formula, so the best possible attack was not run."
        ),
        scores=scores,
        meaning=[*meaning, STRONGER],
    )


def _mechanism(inputs: AttackInputs) -> WordMechanism:
    if inputs.statement is None:
        raise ParameterError(f"{inputs.release.name} has no privacy statement, which names the mechanism")
    return mechanism_from_statement(inputs.statement, vectors=inputs.vectors)
