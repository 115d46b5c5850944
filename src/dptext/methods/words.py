"""Word replacement: each word becomes a word of similar meaning, at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext.attacks import AttackScore, bayes_recovery, expected_recovery, linkage_of_scores, nearest_recovery
from dptext.audits.mechanisms import audit
from dptext.calibration.deniability import Floats, deniability, distributions_of
from dptext.errors import DataError
from dptext.methods import preview as numbers
from dptext.methods.base import PROTECTING, AdviceInput, Assessment, Method, describe
from dptext.methods.examination import (
    AttackResult,
    RowExamination,
    attack_result,
    infer_attribute,
    link_by_words,
    linkage_options,
    linkage_result,
    read_pairs,
)
from dptext.methods.files import Audit, Check, ReleaseFiles, Rows, audit_file, check_document_guarantee
from dptext.methods.preview import DRAWS, REPLACEMENTS, Piece, Previewer, TextPreview
from dptext.privacy.guarantee import Trust, best_guesses
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.release.redaction import placeholders_of
from dptext.representations.encoders import zipf_weights
from dptext.text.tokens import Kind, Token, split
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
_PUBLIC_WORDS, _DRAWS = 200, 200  # to measure how often a word stays
_ALL_CHANNELS = 100_000  # words: the best attack takes all pairs, minutes at this size
_CANDIDATE_WORDS = 50  # words among which the adversary chooses in a preview, at least


class WordExamination(RowExamination):
    """Texts whose words a mechanism replaced."""

    def run(self) -> None:
        self._mechanism = mechanism_from_statement(self.statement, vectors=self.files.vectors)
        super().run()
        self.stays = deniability(self._mechanism, rows=_PUBLIC_WORDS, draws=_DRAWS, seed=0).mean("keep")

    def audit(self) -> Audit:
        channel, size = channel_of(self._mechanism), len(self._mechanism.vectors)
        if channel is not None and size <= _ALL_CHANNELS:  # exact, for public frequencies of words, without any text
            result = expected_recovery(channel, zipf_weights(size))
            self.attacks.append(replace(result, measure=f"{result.measure}, expected of everyday words"))
        return check_words(self.files, self._mechanism)

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        before = self.originals(rows, raw, self._mechanism)
        if before is None:
            return
        self.owner_attacks += link(before, rows, linkage_options(self.files, before))
        if not is_its_data:
            self.notes.append("Word recovery was not tried: the file does not match its statement.")
            return
        scores, note = recover(before, rows, self._mechanism, self.files)
        self.owner_attacks += scores
        self.notes += [note] if note else []


class WordPreviewer(Previewer):
    """The truncated exponential mechanism (TEM), from its exact distributions."""

    key, title = "words", "Words become other words"
    epsilons = (0.5, 20.0, 4.0)

    def show(self, text: str, epsilon: float) -> TextPreview:
        words, vocabulary = self._vectors.words, self._vectors.vocabulary
        mechanism = TEM(self._vectors, epsilon=epsilon)
        tokens = split(text)
        token_rows = [vocabulary.row(token.text) if token.kind is Kind.WORD else None for token in tokens]
        present = [row for row in token_rows if row is not None]
        candidates = list(dict.fromkeys([*present, *range(min(_CANDIDATE_WORDS, len(words)))]))
        candidates = candidates[: max(_CANDIDATE_WORDS, len(set(present)))]
        place, other = self._neighbour(token_rows) if present else (None, None)
        rows = sorted({*present, *candidates} | (set() if other is None else {other}))
        distributions = dict(zip(rows, mechanism.distributions([words[row] for row in rows]), strict=True))
        parts = [token.text for token in tokens]
        overlap = 1.0
        if place is not None and other is not None:
            parts[place] = words[other]
            overlap = numbers.overlap(distributions[token_rows[place]], distributions[other])
        table = np.array([distributions[row] for row in candidates])
        return self.preview(
            epsilon,
            mechanism.document_statement(len(present)) if present else None,
            pieces=(self._piece(token, row, distributions) for token, row in zip(tokens, token_rows, strict=True)),
            draws=mechanism.replacing()([text] * DRAWS, RandomBits())[0],
            success=best_guesses([table], np.full(len(candidates), 1 / len(candidates))).rate,
            chance=1 / len(candidates),
            candidates=len(candidates),
            texts=(text, "".join(parts)),
            overlap=overlap,
        )

    def _piece(self, token: Token, row: int | None, distributions: dict[int, Floats]) -> Piece:
        """Return how likely a word stays, and its most likely replacements; other tokens become placeholders."""
        if row is None:
            placeholder = PLACEHOLDERS.get(token.kind)
            return Piece(token.text, None, () if placeholder is None else ((placeholder, 1.0),))
        distribution = distributions[row]
        is_unknown = row == self._vectors.vocabulary.unknown_row  # then the word of this row is a replacement
        others = [other for other in numbers.largest(distribution, REPLACEMENTS + 1) if is_unknown or other != row]
        words = [(self._vectors.words[other], float(distribution[other])) for other in others[:REPLACEMENTS]]
        stays = 0.0 if is_unknown else float(distribution[row])
        return Piece(token.text, stays, tuple(pair for pair in words if pair[1] > 0))

    def _neighbour(self, rows: list[int | None]) -> tuple[int, int]:
        """Return the position of the rarest known word, and the row of the word most similar to it."""
        matrix, unknown = self._vectors.matrix, self._vectors.vocabulary.unknown_row
        ranks = [-1 if row is None else 0 if row == unknown else 1 + row for row in rows]
        place = int(np.argmax(ranks))
        distances = np.linalg.norm(matrix - matrix[rows[place]], axis=1)
        distances[[rows[place], unknown]] = np.inf
        return place, int(np.argmin(distances))


def check_words(files: ReleaseFiles, mechanism: WordMechanism) -> Audit:
    """Check that every word can come from the mechanism, and audit the mechanism."""
    known = words_that_can_come_out(mechanism.vectors.vocabulary) | placeholders_of(files.statement)

    def contents() -> Iterator[Check]:
        foreign = [count_foreign_words(document.text or "", known) for document in files.documents()]
        seen = f"{len(foreign):,} documents, {sum(foreign):,} words that the mechanism cannot have written"
        yield Check("every word is one that the mechanism writes", not any(foreign), seen)

    counted = files.counted("words_counted")
    follows = check_document_guarantee(files.statement, mechanism, counted, apart_from=("vectors",))  # may move
    verdict = audit(mechanism, words=files.words or None, labels=mechanism.labels, **files.sampling)
    return audit_file(files, contents, follows, verdict)


def channel_of(mechanism: WordMechanism) -> Callable[[npt.NDArray[np.int64]], Any] | None:
    """Return the output distributions of vocabulary rows as a function; None if they have no formula."""
    distributions = distributions_of(mechanism)
    if distributions is None:
        return None
    words = mechanism.vectors.words
    return lambda rows: distributions([words[row] for row in rows.tolist()])


def link(before: Rows, after: Rows, options: dict[str, Any]) -> list[AttackScore]:
    """Link rows to their originals by layout, which no word mechanism hides, and by shared words."""
    codes: dict[str, int] = {}
    first, second = (
        np.array([codes.setdefault(visible(text or ""), len(codes)) for text in side.texts])
        for side, visible in ((before, layout_of_release), (after, layout_of_private))
    )
    by_layout = linkage_of_scores(
        lambda start, stop: (second[start:stop, None] == first).astype(np.int8),
        shape=(second.size, first.size),
        attack="linkage (layout alone)",
        **options,
    )
    return [*by_layout, *link_by_words(before, after, options)]


def recover(
    before: Rows, after: Rows, mechanism: WordMechanism, files: ReleaseFiles, *, largest: int | None = _ALL_CHANNELS
) -> tuple[list[AttackScore], str]:
    """Recover words by the best possible attack and by a simple one; return the scores, and why one is missing."""
    aligner = Aligner(mechanism)
    true: list[int] = []
    observed: list[int] = []
    owners: list[Any] = []
    for row, (original, output) in enumerate(zip(before.texts, after.texts, strict=True)):
        pairs = None if (original is None) != (output is None) else aligner.pairs(original or "", output or "")
        if pairs is None:
            raise DataError(
                f"{files.data.name}, row {after.chosen[row] + 1}: the private text does not have the layout of the "
                f"original one, so {mechanism.name} did not make it: name the file it was made from, in the same order"
            )
        true += pairs[0]
        observed += pairs[1]
        owners += [row if before.people is None else before.people[row]] * len(pairs[0])
    if len(set(owners)) < 2:
        return [], "Word recovery was not tried: words of at least two rows (or people) are needed."
    prior = zipf_weights(len(mechanism.vectors))
    points = np.asarray(mechanism.vectors.matrix)
    scores = [nearest_recovery(points[observed], points, true, prior=prior, people=owners, seed=files.seed)]
    channel = channel_of(mechanism)
    if channel is None:
        return scores, (
            f"The distributions of {mechanism.name} have no formula: the best possible recovery was not tried."
        )
    if largest is not None and len(prior) > largest:
        return scores, "The best possible recovery of words was not tried: the vocabulary is too large."
    return [bayes_recovery(channel, prior, true, observed, people=owners), *scores], ""


def link_words(files: ReleaseFiles) -> AttackResult:
    """Link private rows to their originals by layout and by shared words."""
    before, after = read_pairs(files)
    scores = link(before, after, linkage_options(files, before))
    best = max(score.score.value for score in scores if "first guess" in score.measure)
    return linkage_result("words", scores, before, by_layout=scores[0].succeeded and scores[0].score.value > best / 2)


def recover_words(files: ReleaseFiles) -> AttackResult:
    """Guess the original of every private word."""
    before, after = read_pairs(files)
    mechanism = mechanism_from_statement(files.statement, vectors=files.vectors)
    scores, _ = recover(before, after, mechanism, files, largest=None)
    if not scores:
        raise DataError(f"{files.data.name}: words of at least two rows or users are needed")
    best = max(scores, key=lambda score: score.score.value)
    return attack_result("recovery", scores, best=best, is_optimal=len(scores) > 1, mechanism=mechanism.name)


class Words(Method):
    """``dptext privatize``."""

    name = "words"
    command = "privatize"
    suffix = ".words.jsonl"
    trust = Trust.LOCAL
    never = "No epsilon both protects by its bound and leaves a readable text."
    purposes: ClassVar = {None: 1, "read": 1, "classify": 1, "vectors": 0, "devices": 1, "statistics": 1}
    holds = "words drawn by a mechanism"
    needs_vectors = True
    examination = WordExamination
    audited = "words"
    inputs = frozenset({"vectors", "words"})
    attacks: ClassVar = {"linkage": link_words, "recovery": recover_words, "attribute": infer_attribute}
    playground = WordPreviewer
    mismatch: ClassVar = {"vectors": "Randomly replaced words have no neighbours to learn from."}

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        commands = (case.command(self, f"--epsilon {PROTECTING:g}"),)
        if case.vectors is None:
            unknown = "Its guarantee, and how many words stay, depend on the word vectors."
            return Assessment(statement=None, good_for=unknown, commands=commands)
        mechanism = TEM(case.vectors, epsilon=PROTECTING)
        effect = deniability(mechanism, rows=_ROWS, seed=0) if figures else None
        good_for = describe("words", effect=effect)
        accuracy = case.public.accuracy(mechanism, case.data.rows) if figures else None
        return Assessment(statement=mechanism.statement, good_for=good_for, accuracy=accuracy, commands=commands)

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return is_word_mechanism(statement)

    def check(self, files: ReleaseFiles) -> Audit:
        return check_words(files, mechanism_from_statement(files.statement, vectors=files.vectors))
