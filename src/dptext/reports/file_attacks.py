"""Attacks on a release in a file: rows linked, words recovered, an attribute inferred.

An informed attacker knows the mechanism, which the statement beside the file gives back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks import (
    AttackScore,
    attribute_inference,
    bayes_recovery,
    expected_recovery,
    linkage,
    linkage_of_scores,
    nearest_recovery,
    sequence_likelihoods,
)
from dptext.attacks.base import Attacker, as_people
from dptext.calibration.deniability import zipf_weights
from dptext.calibration.outcomes import distributions_of
from dptext.errors import DataError, ParameterError
from dptext.estimates import Estimate, mean_of_people, share
from dptext.privacy.guarantee import rate_at_most
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import of_bank, percent_at_most
from dptext.release.mechanism import TextMechanism, mark, placeholder, unmarked
from dptext.release.redaction import Terms, behind, is_redacted, redaction_of, united
from dptext.release.release import data_and_statement, read_statement
from dptext.reports.inputs import Rows
from dptext.reports.results import Stayed
from dptext.sentences.bank import TextBank
from dptext.sentences.origins import Likelihoods
from dptext.sentences.rewriter import BankRewriter
from dptext.text.patterns import find
from dptext.text.tokens import fold, letters_between
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import mechanism_from_statement
from dptext.words.replacing import Aligner, layout_of_private, layout_of_release

_FALSE_ALARM = 1e-6
_TELLING = 3  # letters or digits of a part that counts
_ALL_CHANNELS = 100_000  # words: the best attacker looks at all pairs, minutes at this size


# -- the mechanism behind a release, from the public parameters in its statement --------------------------------------


def is_of_bank(statement: PrivacyStatement) -> bool:
    return behind(statement) == BankRewriter.name


def rewriter_from_statement(statement: PrivacyStatement, bank: Path | TextBank | None) -> BankRewriter:
    said = statement.parameters
    if not (is_of_bank(statement) and of_bank(statement)):
        raise DataError("the statement is not of texts of a bank that can be looked at")
    if bank is None:
        raise DataError(
            f"the statement is of texts of the bank {str(said.get('bank'))!r}, of which it holds the fingerprint: say "
            "in which folder the bank is (--bank)"
        )
    if not isinstance(bank, TextBank):
        bank = TextBank.load(bank)
    if bank.fingerprint != said["bank_sha256"]:
        count = said.get("bank_texts")
        texts = f"{count:,} texts, " if isinstance(count, int) else ""
        raise ParameterError(
            f"this bank ({len(bank):,} texts) is not the bank of the statement ({texts}SHA-256 digest "
            f"{said['bank_sha256']}): pass that one as --bank"
        )
    try:
        options: dict[str, Any] = {name: said[name] for name in ("epsilon", "max_sentences", "size")}
        return BankRewriter(bank, unit=said["unit_of_epsilon"], **options)  # type: ignore[arg-type]
    except KeyError:
        raise DataError("the statement lacks parameters of a rewriter: it is not one that dptext wrote") from None
    except ParameterError as problem:
        raise DataError(f"the statement speaks of a rewriter that cannot be: {problem}") from None


def _statement_beside(private: Path) -> PrivacyStatement | None:
    beside = data_and_statement(private)[1]
    return read_statement(beside) if beside.exists() else None


def rebuilt_bank(private: Path, bank: Path | None) -> BankRewriter | None:
    """The rewriter of which the statement beside a private file speaks; None: it has no statement, or is of words."""
    statement = _statement_beside(private)
    if statement is not None and is_of_bank(statement):
        return rewriter_from_statement(statement, bank)
    if bank is not None:
        raise ParameterError(f"{private.name} has no statement of texts of a bank beside it: leave the bank out")
    return None


def rebuilt(private: Path, vectors: str | None) -> WordMechanism:
    """The word mechanism of which the statement beside a private file speaks."""
    statement = read_statement(data_and_statement(private)[1])
    if is_of_bank(statement):
        raise ParameterError(
            f"{private.name} is made of texts of a bank, and no word in it is a private one: attack it with dptext "
            "attack linkage"
        )
    return mechanism_from_statement(statement, vectors=vectors)


def as_seen(
    before: Rows,
    statement: PrivacyStatement,
    mechanism: TextMechanism | type[TextMechanism],
    *,
    words: Sequence[str] = (),
) -> Rows:
    """Originals as the mechanism saw them: once they are redacted, where that is what the statement says."""
    redaction = redaction_of(statement, words=words if statement.parameters.get("redacted_list") else ())
    if redaction is None:
        return before
    stands = mark if mechanism.keeps_marks else placeholder
    texts = [None if text is None else redaction.applied(text, stands) for text in before.texts]
    return replace(before, texts=texts)


def as_seen_by(before: Rows, private: Path, *, words: Sequence[str] = ()) -> Rows:
    """`as_seen`, by the statement beside a private file, if there is one."""
    statement = _statement_beside(private)
    if words and (statement is None or not statement.parameters.get("redacted_list")):
        raise ParameterError(f"{private.name} was not redacted by a list, as far as is known: leave --redact-list out")
    if statement is None or not is_redacted(statement):
        return before
    return as_seen(before, statement, BankRewriter if is_of_bank(statement) else WordMechanism, words=words)


# -- attacks ----------------------------------------------------------------------------------------------------------


def channel_of(mechanism: WordMechanism) -> Callable[[npt.NDArray[np.int64]], Any] | None:
    """Rows of the vocabulary -> the distributions they are replaced from; None where these have no formula."""
    distributions = distributions_of(mechanism)
    if distributions is None:
        return None
    words = mechanism.vectors.words
    return lambda rows: distributions([words[row] for row in rows.tolist()])


def aligned(
    before: Rows, after: Rows, mechanism: WordMechanism, private: Path, *, by_row: bool = False
) -> tuple[list[int], list[int], list[Any]]:
    """(original words, private words, whose each is) of all rows, words as rows of the vocabulary."""
    aligner = Aligner(mechanism)
    true: list[int] = []
    observed: list[int] = []
    whose: list[Any] = []
    for row, (original, out) in enumerate(zip(before.texts, after.texts, strict=True)):
        found = None if (original is None) != (out is None) else aligner.pairs(original or "", out or "")
        if found is None:
            number = after.chosen[row] + 1
            raise DataError(
                f"{private.name}, row {number}: the private text does not have the layout of the original one, so it "
                f"was not made from it by {mechanism.name}: name the file it was made from, in its order"
            )
        true += found[0]
        observed += found[1]
        whose += [row if before.people is None or by_row else before.people[row]] * len(found[0])
    if not true:
        raise DataError(f"{private.name}: expected at least one private word, got none")
    return true, observed, whose


def by_layout(before: Rows, after: Rows, how: dict[str, Any]) -> list[AttackScore]:
    """The attacker who looks at the layout only, which no word mechanism hides."""
    codes: dict[str, int] = {}
    first, second = (
        np.array([codes.setdefault(shown(each or ""), len(codes)) for each in side.texts])
        for side, shown in ((before, layout_of_release), (after, layout_of_private))
    )
    return linkage_of_scores(
        lambda start, stop: (second[start:stop, None] == first).astype(np.int8),
        shape=(second.size, first.size),
        attack="linkage (layout alone)",
        **how,
    )


def by_likelihood(
    before: Rows, after: Rows, mechanism: WordMechanism, private: Path, how: dict[str, Any]
) -> list[AttackScore] | None:
    """The attacker who knows the mechanism and compares likelihoods; None where what it draws from has no formula."""
    channel = channel_of(mechanism)
    if channel is None:
        return None
    true, observed, whose = aligned(before, after, mechanism, private, by_row=True)
    rows = np.arange(before.size)
    original, out = (
        np.split(np.asarray(each, dtype=np.int64), np.searchsorted(whose, rows[1:])) for each in (true, observed)
    )
    pairs, shape = sequence_likelihoods(original, out, channel, inputs=len(mechanism.vectors))
    return linkage_of_scores(pairs, shape=shape, attack="linkage (likelihood)", **how)


def link(before: Rows, after: Rows, *, seed: int) -> list[AttackScore]:
    """Rows linked to their originals by the layout alone, and by the words that both share."""
    how: dict[str, Any] = {"people": before.people, "seed": seed}
    by_words = linkage(before.texts, after.texts, **how)
    return [*by_layout(before, after, how), *(replace(each, attack="linkage (shared words)") for each in by_words)]


def link_bank(
    before: Rows, after: Rows, rewriter: BankRewriter, private: Path, how: dict[str, Any]
) -> tuple[list[AttackScore], Likelihoods]:
    likely = Likelihoods(rewriter, before.texts, after.texts)
    parts = likely.own()[0]
    if (parts < 0).any():
        row = after.chosen[int(np.argmin(parts))] + 1
        raise DataError(
            f"{private.name}, row {row}: the private text is not made of as many texts of the bank as the original has "
            "parts, so it was not made from it: name the file it was made from, in its order"
        )
    scores: list[AttackScore] = []
    if rewriter.unit == "sentence":
        scores += linkage_of_scores(
            lambda start, stop: (likely(start, stop) > -np.inf).astype(np.int8),
            shape=likely.shape,
            attack="linkage (number of sentences alone)",
            **how,
        )
    by_words = linkage(before.texts, after.texts, **how)
    scores += [replace(each, attack="linkage (shared words)") for each in by_words]
    best = linkage_of_scores(likely, shape=likely.shape, attack="linkage (likelihood)", **how)
    expected, limits = _expected(before, rewriter, likely, int(parts.max()))
    best[0] = replace(best[0], detail=f"{best[0].detail}; {limits}")
    return [*scores, *best, expected], likely


def _expected(before: Rows, rewriter: BankRewriter, likely: Likelihoods, longest: int) -> tuple[AttackScore, str]:
    people = likely.shape[1]
    if rewriter.unit == "document" and rewriter.longest_document == 1:
        exact = rewriter.relinking(people, before.texts)
        score, found = Estimate(exact, exact, exact, people, "rows"), "exactly, by the sets of all originals"
    else:
        whose = before.people or range(likely.shape[0])
        score = mean_of_people(likely.posteriors(), as_people(whose, likely.shape[0]))
        found = "how sure of the likeliest original they are"
    most = percent_at_most(rewriter.relinking(people, parts=max(1, longest)))
    pure = percent_at_most(rate_at_most(rewriter.document_statement(longest).epsilon, people))
    expected = AttackScore(
        attack="linkage (likelihood)",
        measure="share linked, expected",
        score=score,
        baseline=1 / people,
        baseline_name="chance",
        detail=f"on average over the noise: {found}",
    )
    return expected, f"at most {most} among any {people:,} texts, {pure} under any mechanism of this epsilon"


def drawn_as_said(rewriter: BankRewriter, likely: Likelihoods) -> tuple[Estimate, float, bool]:
    """How often what came out lies in the set of its original, how often it should, and whether the two agree."""
    parts, least, most = likely.own()
    total = int(parts[parts > 0].sum())
    wanted = rewriter.size * rewriter.selection.probabilities[0]
    low, high = (share(int(each.sum()), total, confidence=1 - _FALSE_ALARM) for each in (least, most))
    seen = share(int(least.sum()), total)
    return seen, wanted, low.low <= wanted <= high.high


def expect_recovery(mechanism: WordMechanism) -> list[AttackScore]:
    """The best possible attacker on words as frequent as in general: exact, and no text has a part in it."""
    channel = channel_of(mechanism)
    size = len(mechanism.vectors)
    if channel is None or size > _ALL_CHANNELS:
        return []
    found = expected_recovery(channel, zipf_weights(size))
    return [replace(found, measure=f"{found.measure}, expected of everyday words")]


def recover(
    before: Rows, after: Rows, mechanism: WordMechanism, private: Path, *, seed: int
) -> tuple[list[AttackScore], str]:
    """Words recovered by the best possible attacker and by a simple one; and why one was left out, if so."""
    true, observed, whose = aligned(before, after, mechanism, private)
    if len(set(whose)) < 2:
        return [], "Word recovery was not tried: it needs words of at least two rows (or people)."
    prior = zipf_weights(len(mechanism.vectors))
    points = np.asarray(mechanism.vectors.matrix)
    scores = [nearest_recovery(points[observed], points, true, prior=prior, people=whose, seed=seed)]
    channel = channel_of(mechanism)
    if channel is None:
        return scores, (
            f"What {mechanism.name} draws from has no formula: the best attacker, who would learn it from draws, was "
            "not tried."
        )
    if len(prior) > _ALL_CHANNELS:
        return scores, "The best possible recovery of words was not tried: the vocabulary is too large for a page."
    return [bayes_recovery(channel, prior, true, observed, people=whose), *scores], ""


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
        replace(each, attack=each.attack.replace("attribute inference", f"attribute inference of {column!r}"))
        for each in scores
    ]


# -- what stayed ------------------------------------------------------------------------------------------------------


def stayed(
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
    made = [Stayed(kind, *count) for kind, count in counts.items()]
    return sorted(made, key=lambda each: (-each.pieces, each.kind))


def _runs(text: str) -> Iterator[str]:
    return (fold(run) for run in letters_between(unmarked(text)))
