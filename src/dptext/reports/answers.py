"""What a page says in words, most important first, and what to do with the release at last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from dptext.attacks.base import AttackScore
from dptext.audits.verdict import Outcome, Verdict
from dptext.methods.results import Grade, Said, Stayed, grade, main_scores, said
from dptext.privacy.guarantee import Unit
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import (
    Strength,
    Test,
    done_by_bank,
    held_in_brief,
    of_bank,
    of_words,
    strength_in_brief,
)
from dptext.release.release import kept_as_it_was

if TYPE_CHECKING:
    from dptext.methods.results import GroupGap, Measurement
    from dptext.reports.page import Report


_A_COLUMN = kept_as_it_was("").partition("'")[0]
_EXACT = 1e-9  # an interval this narrow holds rounding only


@dataclass(frozen=True)
class Answer:
    """One question, what is known about it, and whether that is good news (None: neither)."""

    question: str
    words: str
    good: bool | None = None
    owner_only: bool = False


def answers(report: Report) -> list[Answer]:
    """What a reader should know, most important first; what to do stands in `recommendation`."""
    found = [
        *_identifying(report),
        _what_was_done(report),
        Answer("How strong is the promise?", *strength_in_brief(report.statement)),
        _held(report),
    ]
    if report.unchanged is not None:
        found.append(_unchanged(report.statement, *report.unchanged))
    if report.stayed:
        found.append(_stayed(report.statement, report.stayed))
    found += _attackers(report)
    found += _use(report)
    if report.gaps:
        found.append(_groups(report.gaps))
    return found


def kind_of(score: AttackScore) -> str:
    """What is attacked, without who attacks; a column may have brackets in its name."""
    return score.attack.rpartition(" (")[0] or score.attack


def is_exact(score: AttackScore | Measurement) -> bool:
    """Whether it was computed, and holds rounding only."""
    return score.score.high - score.score.low < _EXACT


def is_uncompared(verdict: Verdict) -> bool:
    """Return whether an exact audit compared no draws with the stated noise."""
    return verdict.outcome is Outcome.EXACT and verdict.draws is None


def _grade(score: AttackScore) -> Grade:
    return grade(score.score, score.baseline)


# -- the release -------------------------------------------------------------------------------------------------


def _identifying(report: Report) -> list[Answer]:
    if not report.identifying:
        return []
    reasons = "; ".join(f"{each.name!r}: {', '.join(each.reasons)}" for each in report.identifying)
    return [
        Answer(
            "Do kept columns say whose the rows are?",
            f"They may. No promise covers a kept column, and it looks like an identifier: {reasons}.",
            good=False,
        )
    ]


def _what_was_done(report: Report) -> Answer:
    statement, corpus = report.statement, report.corpus
    if corpus is not None:
        words = (
            f"All texts together became one table of noisy sums. By that table alone, {corpus.texts:,} texts were "
            + (
                "written by a language model."
                if corpus.pool is None
                else f"chosen from a public pool of {corpus.pool:,}."
            )
            + " No text of the people who were described is in the corpus, unless the same stands in public."
        )
    elif of_bank(statement):
        words = done_by_bank(statement)
    elif of_words(statement):
        words = "Each word of each text was drawn anew at random; words of similar meaning are likelier than others."
        if report.stays is not None:
            words += (
                f" In everyday English {_about_of_hundred(report.stays)} of 100 words stay as they are; which ones "
                "is not shown."
            )
    elif (width := statement.parameters.get("width")) is not None:
        words = f"Each text became a list of {width} numbers with random noise. The texts are not in the file."
    else:
        words = f"The data went through the mechanism {statement.mechanism}."
    return Answer("What was done to the texts?", words)


def _held(report: Report) -> Answer:
    how: Test = "untestable"
    if report.refuted:
        how = "refuted"
    elif not report.verdicts:
        how = "untested"
    elif any(map(is_uncompared, report.verdicts)):
        how = "compared" if report.noise_agrees else "stated"
    elif all(each.outcome is Outcome.EXACT for each in report.verdicts):
        how = "exact"
    elif any(each.refutable for each in report.verdicts):
        how = "evidence"
    pairs = f"the audited pairs of {'texts' if of_bank(report.statement) else 'words'}"
    words, good = held_in_brief(report.statement, how, looked_at=pairs)
    return Answer("Does the promise hold, and does it protect?", words, good, owner_only=how == "compared")


def _unchanged(statement: PrivacyStatement, unchanged: int, rows: int) -> Answer:
    some = f"{unchanged:,} of the {rows:,} that were looked at" if unchanged else f"None of the {rows:,} looked at"
    words = f"{some} came out word for word as they were, but for capital letters"
    words += "." if of_bank(statement) else ", numbers and addresses."
    if unchanged:
        words, good = _left_open(statement, words, "The promise leaves open for each text whether it did.")
    else:
        good = True
    return Answer("How many texts came out unchanged?", words, good, owner_only=True)


def _left_open(statement: PrivacyStatement, words: str, protects: str) -> tuple[str, bool | None]:
    """What is bad news, unless it may have come out by chance."""
    if of_bank(statement):
        return f"{words} They stand in the public bank as well.", None
    if Strength.of_promise(statement) is Strength.PROTECTS:
        return f"{words} {protects}", None
    return words, False


def _stayed(statement: PrivacyStatement, stayed: Sequence[Stayed]) -> Answer:
    counts = [f"{each.whole:,} of {each.pieces:,} ({each.kind})" for each in stayed]
    parts = sum(each.part for each in stayed)
    words = (
        f"Of what patterns recognise in the originals, or what stands on the list, this stands in the private texts as "
        f"it was: {', '.join(counts)}" + (f"; of {parts:,} more a part does" if parts else "") + ". Patterns miss much."
    )
    good: bool | None = True
    if any(each.whole or each.part for each in stayed):
        words, good = _left_open(statement, words, "The promise leaves open of each whether it was there.")
    return Answer("Which names, addresses and numbers stayed?", words, good, owner_only=True)


# -- who attacks it ----------------------------------------------------------------------------------------------


def _attackers(report: Report) -> list[Answer]:
    scores = [*report.owner_attacks, *report.attacks]
    kinds = dict.fromkeys(kind_of(each) for each in scores)
    owners = {kind_of(each) for each in report.owner_attacks}
    found = []
    for kind in kinds:
        ours = [each for each in scores if kind_of(each) == kind]
        words, good = _membership(report, ours) if kind == "membership" else _attack(kind, ours)
        question = "Does it show who is in it?" if kind == "membership" else _asked(kind)[0]
        found.append(Answer(question, words, good, owner_only=kind in owners))
    return found


def _attack(kind: str, scores: Sequence[AttackScore]) -> tuple[str, bool | None]:
    """How often the best attacker is right; and, where another number has a higher grade, that one too."""
    best = max(main_scores(scores), key=lambda each: (_grade(each), each.score.value))
    worst = max(scores, key=lambda each: (_grade(each), each.advantage))
    words = _of_attack(kind, best)
    if _grade(worst) > _grade(best):
        hidden = _grade(worst).is_shown and not _grade(best).is_shown
        which = "But by another number," if hidden else "By another number,"
        words += (
            f" {which} {said(_grade(worst), 'attacker').words} ({worst.attack}: {worst.measure} "
            f"{worst.score.value:.2f}, where somebody who sees nothing has {worst.baseline:.2f})."
        )
    return words, said(_grade(worst), "attacker").good


def _of_attack(kind: str, score: AttackScore) -> str:
    """How often an attacker is right, in words that say no more and no less than the grade."""
    _, can, verb, what = _asked(kind)
    share, blind, most = (_of_hundred(each) for each in (score.score.value, score.baseline, score.score.high))
    right, guess = f"{verb} for {share} of 100 {what}", "a guess without the release"
    match _grade(score):
        case Grade.GUESS:
            return f"{can} {right}, no more than {guess} ({blind})."
        case Grade.UNCLEAR:
            return (
                f"{can} {right}, which chance explains ({guess}: {blind}); but the rows are too few to exclude {most}."
            )
        case Grade.LITTLE:
            return f"{can} {right}, a little more than {guess} ({blind})."
        case Grade.NEARLY_ALL:
            return f"{can} nearly always {verb}: for {share} of 100 {what}; {guess}, for {blind}."
        case _:
            return f"{can} {right}; {guess}, for {blind}."


def _asked(kind: str) -> tuple[str, str, str, str]:
    """The question, and "An attacker", "finds the right one", "private texts" of the answer."""
    if kind == "linkage":
        who = "An attacker who holds the original texts"
        return "Can a private text be traced back?", who, "finds the right one", "private texts"
    if kind == "word recovery":
        return "Can the words be read again?", "An attacker", "names the original word rightly", "words"
    what = kind.removeprefix("attribute inference").removeprefix(" of ") or "the attribute"
    who = "An attacker who knows it of other people"
    return f"Does it give {what} away?", who, f"names {what} rightly", "rows"


def _membership(report: Report, scores: Sequence[AttackScore]) -> tuple[str, bool | None]:
    """What the noise allows at most is no news beside the promise: what was measured may be."""
    exact = [each for each in main_scores(scores) if is_exact(each) and not report.refuted]
    measured = [each for each in main_scores(scores) if not is_exact(each)]
    words = (
        "With the stated noise, an attacker who knows everybody else tells a described person from another one in at "
        f"most {_of_hundred(exact[0].score.value)} of 100 pairs, on average. Guessing is right in 50."
        if exact
        else ""
    )
    for each in measured:
        words += (
            f" An attacker who guesses the others was right for {_of_hundred(each.score.value)}: "
            f"{judged(report, each).words}."
        )
    every = [each for each in scores if not is_exact(each)]
    if not every:
        return words.strip(), None
    worst = max(every, key=_grade)
    if _grade(worst) > max(map(_grade, measured)):
        words += f" By another number ({worst.measure}): {judged(report, worst).words}."
    goods = [judged(report, each).good for each in every]
    return words.strip(), False if False in goods else None if None in goods else True


def judged(report: Report, score: AttackScore) -> Said:
    return said(_grade(score), "allowed" if _is_allowed(report, score) else "attacker")


def _is_allowed(report: Report, score: AttackScore) -> bool:
    limit = report.limits.get(score.measure)
    return (
        kind_of(score) == "membership"
        and limit is not None
        and score.score.low <= limit
        and Strength.of_promise(report.statement) is Strength.PROTECTS
    )


# -- what it is good for -----------------------------------------------------------------------------------------


def _use(report: Report) -> list[Answer]:
    if not report.utility:
        return []
    ours, *others = report.utility
    of_ours = said(ours.grade, "model", against="a blind guess")
    owner = any(each.owner_only for each in report.utility)
    if ours.measure != "accuracy":
        words = f"What was measured is {of_ours.words}."
        return [Answer("Is it still useful?", words, of_ours.good, owner_only=owner)]
    rivals, real = ([each for each in others if each.is_rival is rival] for rival in (True, False))
    share = f"{'' if ours.grade is Grade.NEARLY_ALL else 'right '}for {_of_hundred(ours.score.value)} of 100"
    if report.corpus is not None:
        parts = [f"A model that learns from the corpus is {of_ours.words}: {share} real texts"]
        if real:
            parts.append(f"one that learns from real texts, for {_of_hundred(real[0].score.value)}")
        if rivals:
            best = max(rivals, key=lambda each: each.score.value)
            parts.append(f"the best of the trivial ways, for {_of_hundred(best.score.value)} ({best.what})")
    else:
        parts = [f"A model that learns from private rows is {of_ours.words}: {share}"]
        original = [each for each in others if each.what.startswith("trained on original")]
        if original:
            parts.append(f"one that learns from the originals, for {_of_hundred(original[0].score.value)}")
        if rivals:
            source = rivals[0].what.removeprefix("trained on ").partition(",")[0]
            parts.append(f"one that learns from {source}, for {_of_hundred(rivals[0].score.value)}")
    parts.append(f"a blind guess, for {_of_hundred(ours.baseline)}.")
    return [Answer("Is it still useful?", "; ".join(parts), of_ours.good, owner_only=owner)]


def _groups(gaps: Sequence[GroupGap]) -> Answer:
    """About models of the release; what the original rows do to groups stands beside it."""
    ours, theirs = ([each for each in gaps if each.of_release is wanted] for wanted in (True, False))
    worst = max((each.grade for each in ours), default=Grade.GUESS)
    good: bool | None = None
    match worst:
        case Grade.GUESS:
            words, good = "No difference between groups was shown for a model of private rows.", True
        case Grade.UNCLEAR:
            words = (
                "No difference between groups was shown for a model of private rows, but the rows are too few for that."
            )
        case Grade.LITTLE:
            words = "Nearly: a model of private rows serves some groups a little worse than others."
        case _:
            words = "No: a model of private rows serves some groups worse than others, more than chance explains."
            good = False
    if theirs:
        shown = any(each.is_shown for each in theirs)
        words += f" For one of original rows {'a difference' if shown else 'none'} was shown."
    owner = any(each.owner_only for each in gaps)
    return Answer("Is it equally good for everybody?", words, good, owner_only=owner)


def _about_of_hundred(value: float) -> str:
    said = _of_hundred(value)
    return f"about {said}" if said.isdigit() else said


def _of_hundred(value: float) -> str:
    """A share as a reader pictures it."""
    count = 100 * value
    if 0 < count < 1:
        return "fewer than 1"
    if 99 < count < 100:
        return "more than 99"
    return f"{count:.0f}"


# -- what to do with it ------------------------------------------------------------------------------------------


class Decision(IntEnum):
    """What to do with a release; a higher one is the more careful."""

    HAND_ON = 0
    TO_SOME = 1
    NOT = 2


@dataclass(frozen=True)
class Recommendation:
    """What to do with a release, and why, in two or three sentences."""

    decision: Decision
    sentences: tuple[str, ...]
    tested: bool = True

    @property
    def words(self) -> str:
        return " ".join(self.sentences)

    @property
    def good(self) -> bool | None:
        if self.decision is Decision.HAND_ON:
            return True if self.tested else None
        return False if self.decision is Decision.NOT else None


def recommendation(report: Report, *, to_recipient: bool = False) -> Recommendation:
    """What to do with a release: from its statement, its kept columns, and the grades of attacks and use."""
    statement = report.statement
    if report.refuted:
        again = (
            "Ask whoever handed it to you for another."
            if to_recipient
            else "A new release from the original adds to the privacy loss if this one was already shared."
        )
        words = f"Do not {'rely on' if to_recipient else 'hand on'} this release: its statement promises what is false."
        return Recommendation(Decision.NOT, (words, again))
    if statement.seeded:
        words = (
            "Treat this release like the texts it was made from: whoever knows or guesses its seed can undo the noise."
        )
        return Recommendation(Decision.NOT, (words,) if to_recipient else (words, "Make it again without --seed."))
    decision, sentences = (_for_recipient if to_recipient else _for_owner)(report)
    if report.identifying:
        decision = max(decision, Decision.TO_SOME) if to_recipient else Decision.NOT
        names = ", ".join(repr(each.name) for each in report.identifying)
        column, it, they = (
            ("the columns", "them", "they") if len(report.identifying) > 1 else ("the column", "it", "it")
        )
        column = f"{column} {names}"
        first = (
            f"Do not match {column} with other data: {they} may say whose the rows are."
            if to_recipient
            else f"Do not hand it on with {column}: make it again without keeping {it}."
        )
        sentences = [first, *sentences]
    return Recommendation(decision, tuple(sentences), tested=not _noise_is_open(report))


def _worst(scores: Sequence[AttackScore], *, of_attributes: bool) -> AttackScore | None:
    """The attack that gets most, on texts and people or on attributes; a limit on all attackers repeats the promise."""
    tried = [
        each
        for each in scores
        if kind_of(each).startswith("attribute inference") is of_attributes
        and not (kind_of(each) == "membership" and is_exact(each))
    ]
    return max(tried, key=lambda each: (_grade(each), each.advantage), default=None)


def _is_loud(report: Report, score: AttackScore | None) -> bool:
    return score is not None and judged(report, score).good is False


def _attribute(report: Report, scores: Sequence[AttackScore]) -> str:
    """The attribute that attackers name best, if that is bad news."""
    worst = _worst(scores, of_attributes=True)
    if worst is None or not _is_loud(report, worst):
        return ""
    return kind_of(worst).removeprefix("attribute inference of ")


def _for_owner(report: Report) -> tuple[Decision, list[str]]:
    scores = [*report.owner_attacks, *report.attacks]
    worst, strength = _worst(scores, of_attributes=False), Strength.of_promise(report.statement)
    unit = report.statement.unit
    gets = "" if worst is None else _gets(kind_of(worst))
    some = bool(report.unchanged and report.unchanged[0])
    decision = Decision.NOT
    if strength is Strength.TOO_LARGE and (_is_loud(report, worst) or some or worst is None):
        why = f"and {gets}" if _is_loud(report, worst) else "and some texts came out unchanged" if some else ""
        why = why or f"and no attack was tried that says how much it hides{_name_the_original(report)}"
        words = (
            f"Do not hand this on to anybody who may not see the originals: the promise is too weak to protect, {why}."
        )
    elif strength is Strength.TOO_LARGE:
        decision = Decision.TO_SOME
        words = (
            "Hand this on to people only whom you would trust with the originals: the promise is too weak to protect, "
            "and that the attacks which were tried got little is no proof."
        )
    elif _is_loud(report, worst):
        decision = Decision.TO_SOME
        bound = "by itself the promise says little" if strength is Strength.WEAK else f"it protects each {unit}"
        words = f"Hand this on to people only who agree not to look for anybody in it: {bound}, but {gets}."
    elif strength is Strength.WEAK:
        decision = Decision.TO_SOME
        tried = "and the attacks that were tried got little"
        tried = tried if worst else f"and no attack was tried{_name_the_original(report)}"
        words = (
            "Hand this on to people who agree not to look for anybody in it, not to the public: by itself the promise "
            f"says little, {tried}."
        )
    elif (only := report.statement.condition.for_some_only) is not None:
        decision = Decision.TO_SOME
        words = (
            f"Hand this on to people only who agree not to look for anybody in it: the promise protects a {unit} by "
            f"itself, but {only}."
        )
    else:
        decision = Decision.HAND_ON
        words = f"You may publish this: the guarantee protects each {unit} on its own. {_conditions(report)}"
    sentences = [words]
    if what := _attribute(report, scores):
        sentences.append(f"It gives {what} away: whoever receives it must be allowed to know that.")
        if decision is Decision.HAND_ON:
            decision = Decision.TO_SOME
            sentences = [
                f"Hand this on to people only who may know {what} of those who wrote it, which it gives away; all else "
                f"of each {unit} the promise protects by itself."
            ]
    if strength is Strength.PROTECTS:
        sentences += _not_covered(report.statement)
    elif decision is not Decision.HAND_ON:
        sentences.append(_better(report))
    if report.utility and said(report.utility[0].grade, "model").good is False:
        sentences.append("For what was measured it is of no use: less noise, more texts or another way is needed.")
    return decision, sentences


def _noise_is_open(report: Report) -> bool:
    """Return whether nothing shows that the stated noise was drawn."""
    return any(map(is_uncompared, report.verdicts)) and not report.noise_agrees


def _conditions(report: Report) -> str:
    """Return the conditions under which a guarantee that protects a unit is enough to publish a release."""
    statement = report.statement
    source = next((name for name in ("pool", "bank") if f"{name}_sha256" in statement.parameters), None)
    conditions = [f"there is no other release about the same {statement.unit}s, because guarantees add up"]
    if statement.unit is Unit.USER:
        conditions.append("each person has exactly one user id")
    if _noise_is_open(report):
        conditions.append(f"the software drew the stated noise ({statement.software or 'no version is stated'})")
    if source is not None:
        licence = statement.parameters.get(f"{source}_licence")
        terms = "none is stated" if licence is None else f"stated: {licence}"
        conditions.append(f"the licence of the public {source} allows it ({terms})")
    return f"This holds if {'; '.join(conditions)}."


def _not_covered(statement: PrivacyStatement) -> list[str]:
    several = "" if statement.unit is Unit.USER else f"who wrote several {statement.unit}s is protected less"
    kept = any(each.startswith(_A_COLUMN) for each in statement.exposed)
    columns = "the kept columns are not protected" if kept else ""
    found = ", and ".join(filter(None, (several, columns)))
    return [f"{found[0].upper()}{found[1:]}."] if found else []


def _name_the_original(report: Report) -> str:
    """Where that would help: vectors are not linked to texts, which takes the encoder."""
    of_texts = of_words(report.statement) or of_bank(report.statement)
    return " (name the original: --original)" if of_texts and not report.has_owner_numbers else ""


def _gets(kind: str) -> str:
    return {
        "linkage": "texts can be traced back to their originals",
        "word recovery": "words can be read again",
        "membership": "it shows who is in it",
    }.get(kind, "an attacker learns more than a guess")


def _better(report: Report) -> str:
    statement = report.statement
    if report.corpus is not None:
        return "A smaller --epsilon would do better: dptext synthesize --plan says what it costs."
    if of_bank(statement):
        return (
            "A smaller --epsilon would do better (dptext calibrate --bank finds it), or dptext synthesize, which "
            "protects people with all their texts."
        )
    if of_words(statement):
        return (
            "dptext synthesize (other texts, each person protected) or dptext privatize --mechanism bank (a public "
            "text for each) would do better; dptext advise compares them."
        )
    return (
        "A smaller --epsilon would do better, or dptext synthesize, where texts would do; dptext advise compares them."
    )


def _for_recipient(report: Report) -> tuple[Decision, list[str]]:
    """From what may be shared alone."""
    strength, unit = Strength.of_promise(report.statement), report.statement.unit
    only = report.statement.condition.for_some_only
    if strength is Strength.TOO_LARGE:
        decision = Decision.NOT
        words = (
            "Treat this release like the texts it was made from: pass it on to nobody, and do not look for anybody "
            "in it. The promise is too weak to protect them by itself."
        )
    elif strength is Strength.WEAK or only is not None:
        decision = Decision.TO_SOME
        why = (
            "the guarantee says little" if strength is Strength.WEAK else f"the guarantee protects a {unit}, but {only}"
        )
        words = f"Use this release for its agreed purpose, do not pass it on, and do not look for anybody in it: {why}."
    else:
        decision = Decision.HAND_ON
        words = (
            f"You may use this release and pass it on, with its statement: the guarantee protects each {unit} on its "
            f"own. {_conditions(report)}"
        )
    sentences = [words, *(_not_covered(report.statement) if strength is Strength.PROTECTS else [])]
    if what := _attribute(report, report.attacks):
        sentences.append(f"It gives {what} away: treat what you learn about it in confidence.")
    return decision, sentences
