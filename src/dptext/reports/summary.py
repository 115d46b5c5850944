"""Levels, grades and numbers of the answers and the recommendation; the sentences are in templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

from dptext.attacks.base import AttackScore
from dptext.audits.verdict import Outcome, Verdict
from dptext.methods.examination import Grade, Measurement, grade
from dptext.privacy.wording import (
    Strength,
    Test,
    held_in_brief,
    is_bank_statement,
    is_bounded,
    is_word_statement,
    paragraphs,
    strength_in_brief,
)
from dptext.release.release import kept_as_it_was

if TYPE_CHECKING:
    from dptext.reports.page import Report

_A_COLUMN = kept_as_it_was("").partition("'")[0]
_EXACT = 1e-9  # an interval this narrow is rounding only


Of = Literal["attacker", "allowed", "model", "control"]
"""An attack, an attack within the bound of the guarantee, a useful model, an attack on original texts."""


def sign(grade: Grade, of: Of) -> bool | None:
    """Return whether a grade is good news; None: neither. The only place that decides it."""
    if of == "control" or grade in (Grade.UNCLEAR, Grade.LITTLE):
        return None
    if of == "model":
        return grade is not Grade.GUESS
    return True if grade is Grade.GUESS else None if of == "allowed" else False


def main_scores(scores: Sequence[AttackScore]) -> list[AttackScore]:
    """Return the first score of each attack, its success rate; the others are further measures of it."""
    first: dict[str, AttackScore] = {}
    for score in scores:
        first.setdefault(score.attack, score)
    return list(first.values())


@dataclass(frozen=True)
class Answer:
    """One question with its answer, and whether that is good news (None: neither)."""

    topic: str
    question: str
    words: str
    good: bool | None = None
    owner_only: bool = False


def answers(report: Report) -> dict[str, list[Answer]]:
    """Return the answers of the sections "guarantee", "attacks" and "utility"."""
    return {"guarantee": _guarantee(report), "attacks": _attacks(report), "utility": _utility(report)}


def _answer(section: str, topic: str, good: bool | None, *, owner_only: bool = False, **values: Any) -> Answer:
    values |= {"topic": topic, "out_of_100": out_of_100}
    question, *words = paragraphs(f"reports/templates/{section}.txt", **values)
    return Answer(topic, question, " ".join(words), good, owner_only)


def kind_of(score: AttackScore) -> str:
    """Return the target of an attack, without the adversary; the name of a column may contain brackets."""
    return score.attack.rpartition(" (")[0] or score.attack


def is_exact(score: AttackScore | Measurement) -> bool:
    """Return whether a number was computed, so that its interval is rounding only."""
    return score.score.high - score.score.low < _EXACT


def is_uncompared(verdict: Verdict) -> bool:
    """Return whether an exact audit compared no draws with the stated noise."""
    return verdict.outcome is Outcome.EXACT and verdict.draws is None


def out_of_100(value: float) -> str:
    """Return a share as a number out of 100; rounding never makes it 0 or 100."""
    count = 100 * value
    return "fewer than 1" if 0 < count < 1 else "more than 99" if 99 < count < 100 else f"{count:.0f}"


def judge(report: Report, score: AttackScore) -> tuple[Grade, Of]:
    """Return the grade of an attack, and whether the guarantee allows it."""
    limit = report.limits.get(score.measure)
    allowed = limit is not None and kind_of(score) == "membership" and score.score.low <= limit
    protects = Strength.for_statement(report.statement) is Strength.PROTECTS
    return _grade(score), "allowed" if allowed and protects else "attacker"


def _grade(score: AttackScore) -> Grade:
    return grade(score.score, score.baseline)


def is_ceiling(score: AttackScore | Measurement) -> bool:
    """Return whether a number is a limit on all adversaries (from the guarantee), not a measured attack."""
    return isinstance(score, AttackScore) and kind_of(score) == "membership" and is_exact(score)


# -- sections ----------------------------------------------------------------------------------------------------


def _guarantee(report: Report) -> list[Answer]:
    statement, result = report.statement, []
    if report.identifying:
        result.append(_answer("guarantee", "identifying", False, columns=report.identifying))
    values: dict[str, Any] = {"statement": statement, "corpus": report.corpus, "stays": report.stays}
    values |= {
        "of_words": is_word_statement(statement),
        "bank": paragraphs("privacy/templates/done_by_bank.txt", statement=statement)[0]
        if is_bank_statement(statement)
        else "",
    }
    strength, strong = strength_in_brief(statement)
    test: Test = "untestable"
    if report.refuted:
        test = "refuted"
    elif not report.verdicts:
        test = "untested"
    elif any(map(is_uncompared, report.verdicts)):
        test = "compared" if report.noise_agrees else "stated"
    elif all(verdict.outcome is Outcome.EXACT for verdict in report.verdicts):
        test = "exact"
    elif any(verdict.refutable for verdict in report.verdicts):
        test = "evidence"
    pairs = f"the audited pairs of {'texts' if is_bank_statement(statement) else 'words'}"
    kept, good = held_in_brief(statement, test, looked_at=pairs)
    return [
        *result,
        _answer("guarantee", "done", None, **values),
        _answer("guarantee", "strength", strong, words=strength),
        _answer("guarantee", "held", good, words=kept, owner_only=test == "compared"),
    ]


def _attacks(report: Report) -> list[Answer]:
    scores, result = [*report.owner_attacks, *report.attacks], []
    owners = {kind_of(score) for score in report.owner_attacks}
    for kind in dict.fromkeys(map(kind_of, scores)):
        own_scores = [score for score in scores if kind_of(score) == kind]
        result.append(_attack(report, kind, own_scores, owner_only=kind in owners))
    return result


def _attack(report: Report, kind: str, scores: Sequence[AttackScore], *, owner_only: bool) -> Answer:
    """Return the success of the best adversary and, if another number has a higher grade, that number too."""
    ceiling = next((score.score.value for score in scores if is_ceiling(score) and not report.refuted), None)
    measured = [score for score in scores if not is_ceiling(score)]
    best = max(main_scores(measured), key=lambda score: (_grade(score), score.score.value), default=None)
    worst = max(measured, key=lambda score: (_grade(score), score.advantage), default=None)
    values: dict[str, Any] = {"ceiling": ceiling, "best": best, "other": None}
    if best is not None and worst is not None:
        values |= {"judged": judge(report, best), "other_judged": judge(report, worst)}
        values["other"] = worst if _grade(worst) > _grade(best) else None
    signs = {sign(*judge(report, score)) for score in measured}
    good = False if False in signs else True if signs == {True} else None
    return _answer("attacks", kind, good, owner_only=owner_only, **values)


def _utility(report: Report) -> list[Answer]:
    if not report.utility:
        return []
    main, *others = report.utility
    owner = any(entry.owner_only for entry in report.utility)
    rivals = sorted((entry for entry in others if entry.is_rival), key=lambda rival: -rival.score.value)
    original = [entry for entry in others if entry.name.startswith("trained on original")]
    values: dict[str, Any] = {"ours": main, "rivals": rivals, "original": original, "corpus": report.corpus}
    result = [_answer("utility", "use", sign(main.grade, "model"), owner_only=owner, **values)]
    for pool in rivals:
        if pool.lead is not None:
            helps = round(100 * pool.lead.low, 1) > 0  # as printed, in points with one digit
            values |= {"pool": pool, "helps": helps}
            result.append(_answer("utility", "selection", True if helps else None, owner_only=True, **values))
    return result


# -- recommendation ----------------------------------------------------------------------------------------------


class Decision(IntEnum):
    """Advice about a release; a higher one is more careful."""

    HAND_ON = 0
    TO_SOME = 1
    NOT = 2


class Level(IntEnum):
    """Strength of a guarantee: the rows of the recommendation table."""

    PROTECTS = 0
    WEAK = 1
    """It says little on its own, or does not hold for all units."""
    TOO_LARGE = 2
    NONE = 3
    """There is no bound, the guarantee was refuted, or a seed voids it."""


class Success(IntEnum):
    """Success of the best attack: the columns of the recommendation table."""

    NOT_TESTED = 0
    CHANCE = 1
    LITTLE = 2
    """A little above chance, too few rows to exclude more, or within what the guarantee allows."""
    CLEAR = 3
    NEARLY_ALL = 4


DECISIONS = {
    Level.PROTECTS: (Decision.HAND_ON, Decision.HAND_ON, Decision.HAND_ON, Decision.TO_SOME, Decision.TO_SOME),
    Level.WEAK: (Decision.TO_SOME, Decision.TO_SOME, Decision.TO_SOME, Decision.TO_SOME, Decision.NOT),
    Level.TOO_LARGE: (Decision.NOT, Decision.TO_SOME, Decision.TO_SOME, Decision.NOT, Decision.NOT),
    Level.NONE: (Decision.NOT,) * len(Success),
}
"""Decision by level and success; the sentence of every cell is in recommendation_table.txt."""


@dataclass(frozen=True)
class Recommendation:
    """Advice about a release, with the level and the attack success that decide it."""

    decision: Decision
    level: Level
    success: Success
    sentences: tuple[str, ...]
    attack: str = ""  # topic of the answer about the attack that decides; empty: none was tried
    tested: bool = True  # whether the stated noise was verified

    @property
    def words(self) -> str:
        return " ".join(self.sentences)

    @property
    def good(self) -> bool | None:
        if self.decision is Decision.HAND_ON:
            return True if self.tested else None
        return False if self.decision is Decision.NOT else None


def recommendation(report: Report, *, to_recipient: bool = False) -> Recommendation:
    """Return the advice that follows from the guarantee, the kept columns and the success of attacks."""
    statement, level = report.statement, _level(report)
    attribute, attack = (_worst(report, of_attributes=entry) for entry in (True, False))
    if _success(report, attribute) >= max(Success.CLEAR, _success(report, attack) + 1):
        attack = attribute
    success, kind = _success(report, attack), "" if attack is None else kind_of(attack)
    decision = cell = DECISIONS[level][success]
    if to_recipient and level >= Level.TOO_LARGE:
        decision = Decision.NOT
    if report.identifying:
        decision = max(decision, Decision.TO_SOME) if to_recipient else Decision.NOT
    untested = any(map(is_uncompared, report.verdicts)) and not report.noise_agrees
    parameters = statement.parameters
    values: dict[str, Any] = {
        "report": report,
        "statement": statement,
        "only": statement.condition.for_some_only,
        "kind": kind,
        "untested": untested,
        "name_the_original": (is_word_statement(statement) or is_bank_statement(statement))
        and not report.has_owner_numbers,
    }
    table = dict(line.split(": ", 1) for line in paragraphs("reports/templates/recommendation_table.txt", **values))
    values |= {
        "cell": table[f"{level.name} {success.name}"],
        "protects": level < Level.NONE and Strength.for_statement(statement) is Strength.PROTECTS,
        "cell_stands": not report.identifying or cell is Decision.NOT,
        "decision": decision.name,
        "level": level.name,
        "success": success.name,
        "to_recipient": to_recipient,
        "source": next((name for name in ("pool", "bank") if f"{name}_sha256" in parameters), None),
        "columns_kept": any(entry.startswith(_A_COLUMN) for entry in statement.exposed),
        "attribute": kind_of(attribute).removeprefix("attribute inference of ")
        if attribute and _success(report, attribute) >= Success.CLEAR
        else "",
        "useless": bool(report.utility) and sign(report.utility[0].grade, "model") is False,
        "of_words": is_word_statement(statement),
    }
    sentences = tuple(paragraphs("reports/templates/recommendation.txt", **values))
    return Recommendation(decision, level, success, sentences, kind, tested=not untested)


def _level(report: Report) -> Level:
    statement = report.statement
    if report.refuted or statement.seeded or not is_bounded(statement):
        return Level.NONE
    strength = Strength.for_statement(statement)
    if strength is Strength.TOO_LARGE:
        return Level.TOO_LARGE
    is_weak = strength is Strength.WEAK or statement.condition.for_some_only is not None
    return Level.WEAK if is_weak else Level.PROTECTS


def _worst(report: Report, *, of_attributes: bool) -> AttackScore | None:
    """Return the most successful attack: on attributes, or on texts and people."""
    tried = [
        score
        for score in (*report.owner_attacks, *report.attacks)
        if kind_of(score).startswith("attribute inference") is of_attributes and not is_ceiling(score)
    ]
    return max(tried, key=lambda score: (_grade(score), score.advantage), default=None)


def _success(report: Report, score: AttackScore | None) -> Success:
    if score is None:
        return Success.NOT_TESTED
    match sign(*judge(report, score)):
        case True:
            return Success.CHANCE
        case None:
            return Success.LITTLE
    return Success.NEARLY_ALL if _grade(score) is Grade.NEARLY_ALL else Success.CLEAR
