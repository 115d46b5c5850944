"""Sentence replacement: each private text becomes a text of a public bank, more often a similar one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dptext.attacks import AttackScore, linkage_of_scores
from dptext.audits.mechanisms import audit
from dptext.calibration.reidentification import bank_epsilon
from dptext.errors import DataError, ParameterError
from dptext.intervals import share
from dptext.methods import base
from dptext.methods import preview as numbers
from dptext.methods.data import PUBLIC, quote
from dptext.methods.examination import (
    AttackResult,
    RowExamination,
    infer_attribute,
    link_by_words,
    linkage_options,
    linkage_result,
    read_pairs,
)
from dptext.methods.files import Audit, Check, ReleaseFiles, Rows, audit_file, check_document_guarantee, describes
from dptext.methods.preview import DRAWS, REPLACEMENTS, Piece, Previewer, Samples, TextPreview
from dptext.privacy.guarantee import Trust, best_guesses, rate_at_most
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import is_bank_statement, percent_at_most
from dptext.release.redaction import inner_mechanism
from dptext.representations.encoders import MeanOfWords
from dptext.sentences.bank import TextBank
from dptext.sentences.origins import Likelihoods, Parting
from dptext.sentences.rewriter import BankRewriter
from dptext.vectors.word_vectors import WordVectors

_FALSE_ALARM = 1e-6


class BankExamination(RowExamination):
    """Texts replaced by one or several texts of a public bank."""

    _tested = ("raw", "private")

    def run(self) -> None:
        self._rewriter = rewriter_from_statement(self.statement, self.files.bank)
        self._draw_checks: list[Check] = []
        super().run()
        self.checks += self._draw_checks

    def audit(self) -> Audit:
        return check_bank(self.files, self._rewriter)

    def attack_texts(self, rows: Rows, raw: Rows, *, is_its_data: bool) -> None:
        if not is_its_data:
            self.notes.append("Rows were not linked: the file does not match its statement.")
            return
        before = self.originals(rows, raw, self._rewriter)
        if before is None:
            return
        scores, likely = link_bank(before, rows, self._rewriter, self.files)
        self.owner_attacks += scores
        if not compare_draws(self._rewriter, likely)[2]:
            name = "the stated share of outputs is among the texts most similar to their originals"
            seen = "it is not: these are not the originals, or the statement is false"
            self._draw_checks = [Check(name, False, seen)]

    def random_rows(self, count: int) -> list[str]:
        texts = self._rewriter.bank.texts
        rows = RandomBits(self.files.seed).below(np.full(count, len(texts), dtype=np.uint64))
        return [texts[row] for row in rows.tolist()]


class BankPreviewer(Previewer):
    """Preview of texts replaced by texts of a public bank, computed exactly."""

    key, title = "sentences", "A text becomes a public text"
    epsilons = (0.5, 20.0, 8.0)

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        super().__init__(vectors, samples)
        self._bank = TextBank(samples.public, encoder=MeanOfWords(vectors), cache=False, name=samples.name)
        self._rows = {text: row for row, text in enumerate(self._bank.texts)}

    def show(self, text: str, epsilon: float) -> TextPreview:
        rewriter = BankRewriter(self._bank, epsilon=epsilon, unit="document")
        second, candidates = self._samples.neighbour(text), self._samples.candidates(text)
        one, other, *others = rewriter.distributions([text, second, *candidates[1:]])
        guesses = best_guesses([np.array([one, *others])], np.full(len(candidates), 1 / len(candidates)))
        same = self._rows.get(" ".join(text.split()))
        similarity = self._bank.similarities(self._bank.features.vectors([text]), np.arange(len(self._bank))[None])[0]
        likely = [row for row in np.lexsort((-similarity, -one)).tolist() if row != same][:REPLACEMENTS]
        replacements = tuple((self._bank.texts[row], float(one[row])) for row in likely)
        return self.preview(
            epsilon,
            rewriter.document_statement(1),
            pieces=[Piece(text, 0.0 if same is None else float(one[same]), replacements)],
            draws=rewriter.sample([text] * DRAWS),
            success=guesses.rate,
            chance=guesses.blind,
            candidates=len(candidates),
            texts=(text, second),
            overlap=numbers.overlap(one, other),
        )


def check_bank(files: ReleaseFiles, rewriter: BankRewriter) -> Audit:
    """Check that every text consists of texts of the bank, as many as the statement says, and audit the rewriter."""
    counted = files.counted("sentences_counted")

    def contents() -> Iterator[Check]:
        parting = Parting(rewriter.bank.texts)
        always = rewriter.longest_document if rewriter.unit == "document" else None
        count = 0
        foreign: list[int] = []
        others: list[int] = []
        for count, document in enumerate(files.documents(), 1):
            parts = None if document.text is None else parting.counts(document.text)
            if parts is None:
                continue
            if not parts:
                foreign.append(count)
            elif always not in parts if always is not None else min(parts) > counted:
                others.append(count)
        seen = f"{count:,} texts, {len(foreign):,} of them are not"
        yield Check("every text is made of texts of the bank", not foreign, seen + _first_row(foreign))
        number = f"{always:,}" if always is not None else f"at most {counted:,}"
        seen = f"{len(others):,} with another number{_first_row(others)}"
        yield Check(f"every text is made of {number} of them, as the statement says", not others, seen)

    names = ("bank", "bank_licence")  # which may differ for the same fingerprint
    follows = check_document_guarantee(files.statement, rewriter, counted, apart_from=names)
    return audit_file(files, contents, follows, audit(rewriter, **files.sampling))


def _first_row(rows: Sequence[int]) -> str:
    return f", the first in row {rows[0]:,}" if rows else ""


def rewriter_from_statement(statement: PrivacyStatement, bank: Path | TextBank | None) -> BankRewriter:
    parameters = statement.parameters
    if not (is_bank_statement(statement) and inner_mechanism(statement) == BankRewriter.name):
        raise DataError("the statement does not describe texts of a bank")
    if bank is None:
        raise DataError(f"the texts come from the bank {str(parameters.get('bank'))!r}: pass its folder with --bank")
    if not isinstance(bank, TextBank):
        bank = TextBank.load(bank)
    if bank.fingerprint != parameters["bank_sha256"]:
        raise ParameterError(
            f"this bank ({len(bank):,} texts) is not the bank of the statement (SHA-256 digest "
            f"{parameters['bank_sha256']}): pass that one as --bank"
        )
    names = ("epsilon", "max_sentences", "size")
    with describes("a rewriter"):
        options: dict[str, Any] = {name: parameters.get(name) for name in names}
        return BankRewriter(bank, unit=parameters.get("unit_of_epsilon"), **options)  # type: ignore[arg-type]


def link_sentences(files: ReleaseFiles) -> AttackResult:
    """Link private rows to their originals by shared words and by likelihood, the best possible attack."""
    rewriter = rewriter_from_statement(files.statement, files.bank)
    before, after = read_pairs(files, keeps_marks=rewriter.keeps_marks)
    scores, likely = link_bank(before, after, rewriter, files)
    share_in_set, expected, agrees = compare_draws(rewriter, likely)
    values = {"share": share_in_set, "expected": expected, "agrees": agrees, "size": rewriter.size}
    return linkage_result("bank", scores, before, **values)


def link_bank(
    before: Rows, after: Rows, rewriter: BankRewriter, files: ReleaseFiles
) -> tuple[list[AttackScore], Likelihoods]:
    likely = Likelihoods(rewriter, before.texts, after.texts)
    parts = likely.own()[0]
    if (parts < 0).any():
        row = after.chosen[int(np.argmin(parts))] + 1
        raise DataError(
            f"{files.data.name}, row {row}: the private text does not have as many texts of the bank as the original "
            "has parts: name the file it was made from, in the same order"
        )
    options, people, longest = linkage_options(files, before), likely.shape[1], int(parts.max())
    best, *others = linkage_of_scores(likely, shape=likely.shape, attack="linkage (likelihood)", **options)
    maximum = percent_at_most(rewriter.relinking(people, parts=max(1, longest)))
    pure = percent_at_most(rate_at_most(rewriter.document_statement(longest).epsilon, people))
    limits = f"at most {maximum} among any {people:,} texts, {pure} under any mechanism of this epsilon"
    return [*link_by_words(before, after, options), replace(best, detail=f"{best.detail}; {limits}"), *others], likely


def compare_draws(rewriter: BankRewriter, likely: Likelihoods) -> tuple[float, float, bool]:
    """Return the share of outputs in the set of their original, the expected share, and whether the two agree."""
    parts, minimum, maximum = likely.own()
    total = int(parts[parts > 0].sum())
    expected = rewriter.size * rewriter.selection.probabilities[0]
    low, high = (share(int(entry.sum()), total, confidence=1 - _FALSE_ALARM) for entry in (minimum, maximum))
    return share(int(minimum.sum()), total).value, expected, low.low <= expected <= high.high


class Bank(base.Method):
    """``dptext privatize --mechanism bank``."""

    name = "texts of a bank"
    command = "privatize --mechanism bank"
    suffix = ".bank.jsonl"
    trust = Trust.LOCAL
    purposes: ClassVar = {None: 2, "read": 2, "classify": 2, "vectors": 0, "devices": 1, "statistics": 2}
    holds = "texts of a bank"
    examination = BankExamination
    audited = "texts"
    inputs = frozenset({"bank"})
    attacks: ClassVar = {"linkage": link_sentences, "attribute": infer_attribute}
    playground = BankPreviewer
    mismatch: ClassVar = {
        "vectors": "The output is public texts: their words come from the bank's authors, not from your users."
    }

    def assess(self, case: base.AdviceInput, *, figures: bool) -> base.Assessment:
        bank = case.public.bank
        rewriter = BankRewriter(bank, epsilon=base.PROTECTING, unit="document")
        similarity = bank_epsilon(bank, base.PROTECTING, unit="document").similarity if figures else None
        files = [*map(quote, case.public.files or (PUBLIC,)), *base.option_unless("text", case.public.column, "text")]
        options = ("--bank bank --unit document", f"--epsilon {base.PROTECTING:g}", *case.keep_options())
        remark = {
            "local": "Each owner runs it on their own texts, with the same public bank.",
            "central": "If one party may hold all texts, a synthetic corpus gives each person a stronger guarantee.",
        }.get(case.requirements.trust or "")
        return base.Assessment(
            statement=rewriter.statement,
            good_for=base.describe("bank", similarity=similarity, texts=len(bank)),
            accuracy=case.public.accuracy(rewriter, case.data.rows) if figures else None,
            caveats=(*case.label_caveats(), *([base.Caveat(0, remark)] if remark else [])),
            commands=(
                base.wrap_command(
                    "dptext bank", " ".join(files), "-o bank", base.option("licence", case.public.licence)
                ),
                case.command(self, *options),
            ),
        )

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return inner_mechanism(statement) == BankRewriter.name

    def check(self, files: ReleaseFiles) -> Audit:
        return check_bank(files, rewriter_from_statement(files.statement, files.bank))
