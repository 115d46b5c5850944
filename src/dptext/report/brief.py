"""A page in a few sentences, for somebody who knows nothing of differential privacy: questions and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dptext.attacks.score import AttackScore
from dptext.audits.verdict import Outcome
from dptext.privacy.wording import of_words, strength_in_brief
from dptext.report.parts import GroupGap, main_scores

if TYPE_CHECKING:
    from dptext.report.page import Report

__all__ = ["GLOSSARY", "Answer", "answers"]

GLOSSARY = (
    (
        "epsilon, nats",
        "How much an output may give away, at worst, about what it was made from. 0 is nothing. Each further 0.7 "
        "doubles the odds in favour of the right guess. Nats are the unit of epsilon.",
    ),
    (
        "original rows, private rows",
        "The texts before and after. Only private rows are in the released file.",
    ),
    (
        "without it, baseline",
        "What somebody reaches who never looks at the released texts, for instance by always naming the most frequent "
        "answer. A number says something only where it differs from this one.",
    ),
    (
        "95% interval",
        "Where the true number plausibly lies: it comes from a limited number of rows or people.",
    ),
    (
        "accuracy, macro-F1, mean reciprocal rank",
        "The share of right answers; the same with every class counting alike; 1 where the right candidate is named "
        "first, 1/2 where it is second, and so on. All lie between 0 and 1.",
    ),
    (
        "audit",
        "An attempt to prove the promise wrong. It can refute a promise; only the mathematical proof can establish it.",
    ),
)


@dataclass(frozen=True)
class Answer:
    """One question, what is known about it, and whether that is good news (None: neither)."""

    question: str
    words: str
    good: bool | None = None


def answers(report: Report) -> list[Answer]:
    """What a reader should know, most important first."""
    found = [
        _what_was_done(report),
        Answer("How strong is the promise?", *strength_in_brief(report.statement)),
        _held(report),
    ]
    found += _attackers([*report.owner_attacks, *report.attacks])
    found += _use(report)
    if report.gaps:
        found.append(_groups(report.gaps))
    return found


def _groups(gaps: Sequence[GroupGap]) -> Answer:
    """About models of the release; what the original rows do to groups stands beside it."""
    ours, theirs = ([each for each in gaps if each.of_release is wanted] for wanted in (True, False))
    shown, before = (any(each.is_shown for each in some) for some in (ours, theirs))
    words = (
        "No: a model of private rows serves some groups worse than others, more than chance explains."
        if shown
        else "No difference between groups was shown for a model of private rows."
    )
    if theirs:
        words += f" For one of original rows {'a difference was shown' if before else 'none was shown either'}."
    return Answer("Is it equally good for everybody?", words.replace("shown either", "shown"), good=not shown)


def _what_was_done(report: Report) -> Answer:
    statement = report.statement
    if of_words(statement):
        words = "Each word of each text was drawn anew at random; words of similar meaning are likelier than others."
        if report.stays is not None:
            words += (
                f" In everyday English about {_of_hundred(report.stays)} of 100 words stay as they are; which ones "
                "is not shown."
            )
    elif (width := statement.parameters.get("width")) is not None:
        words = f"Each text became a list of {width} numbers with random noise. The texts are not in the file."
    else:
        words = f"The data went through the mechanism {statement.mechanism}."
    return Answer("What was done to the texts?", words)


def _held(report: Report) -> Answer:
    question = "Is the promise true?"
    if report.refuted:
        return Answer(question, "NO: it was refuted. Do not rely on this release.", good=False)
    if not report.verdicts:
        return Answer(question, "It was not put to the test here: it rests on its proof.")
    if all(each.outcome is Outcome.EXACT for each in report.verdicts):
        return Answer(
            question,
            "It was put to the test and held: computed exactly, for all pairs of words that were looked at.",
            good=True,
        )
    if any(each.refutable for each in report.verdicts):
        return Answer(
            question, "It was put to the test and could not be refuted. That is evidence, no proof.", good=True
        )
    return Answer(question, "The test could not have refuted it: it rests on its proof.")


def _attackers(scores: Sequence[AttackScore]) -> list[Answer]:
    best: dict[str, AttackScore] = {}
    for each in main_scores(scores):
        kind = _kind(each)
        if kind not in best or each.score.value > best[kind].score.value:
            best[kind] = each
    found = []
    for kind, each in best.items():
        question, can = _asked(kind)
        share, blind = _of_hundred(each.score.value), _of_hundred(each.baseline)
        words = can.format(share) + (
            f"; without looking at the release, for {blind}."
            if each.succeeded
            else f", no better than without looking at the release ({blind})."
        )
        # where nine of ten have the same answer a share of right ones hides who is told apart: any number counts
        others = [other for other in scores if _kind(other) == kind and other.succeeded]
        if others and not each.succeeded:
            other = max(others, key=lambda score: score.advantage)
            words += (
                f" But he learns something: {other.measure} {other.score.value:.2f}, where somebody who sees nothing "
                f"has {other.baseline:.2f} ({other.attack})."
            )
        found.append(Answer(question, words, good=not others))
    return found


def _kind(score: AttackScore) -> str:
    """What is attacked, without who attacks; a column may have brackets in its name."""
    return score.attack.rpartition(" (")[0] or score.attack


def _asked(kind: str) -> tuple[str, str]:
    if kind == "linkage":
        return (
            "Can a private text be traced back?",
            "Whoever holds the original texts finds the right one for {} of 100 private texts",
        )
    if kind == "word recovery":
        return "Can the words be read again?", "An attacker names the original word rightly for {} of 100 words"
    what = kind.removeprefix("attribute inference").removeprefix(" of ") or "the attribute"
    return (
        f"Does it give {what} away?",
        f"An attacker who knows it of other people names {what.replace('{', '').replace('}', '')} rightly for "
        "{} of 100 rows",
    )


def _use(report: Report) -> list[Answer]:
    if not report.utility:
        return []
    ours = report.utility[0]
    if ours.measure != "accuracy":
        return [Answer("Is it still useful?", "Yes." if ours.is_useful else "Not shown.", good=ours.is_useful)]
    words = f"A model that learns from private rows is right for {_of_hundred(ours.score.value)} of 100"
    other = [each for each in report.utility if each.what.startswith("trained on original")]
    if other:
        words += f"; one that learns from the originals, for {_of_hundred(other[0].score.value)}"
    words += f"; a blind guess, for {_of_hundred(ours.baseline)}."
    return [Answer("Is it still useful?", words, good=ours.is_useful)]


def _of_hundred(value: float) -> str:
    """A share as a reader pictures it."""
    count = 100 * value
    if 0 < count < 1:
        return "fewer than 1"
    if 99 < count < 100:
        return "more than 99"
    return f"{count:.0f}"
