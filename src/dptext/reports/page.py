"""One self-contained HTML page and a Markdown card: promise, audit, attacks, use and fairness of one release.

The page loads nothing from anywhere: its figures are inside it, it runs no script, and it prints well. What it says of
the promise comes from `dptext.privacy.wording`; the rest stands in ``templates``.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dptext.attacks.attack_score import AttackScore
from dptext.audits.verdict import Outcome, Verdict
from dptext.errors import ParameterError
from dptext.estimates import Estimate
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import (
    done_by_bank,
    explanation_html,
    facts_of,
    filled,
    not_protected,
    of_bank,
    of_words,
    percent_at_most,
    protected,
    strength_in_brief,
)
from dptext.reports.file_audit import Check
from dptext.showing import Facts, Showing
from dptext.text.tokens import Kind, split
from dptext.words.replacing import PLACEHOLDERS

__all__ = [
    "Answer",
    "Corpus",
    "GroupGap",
    "LabelOfCorpus",
    "Measurement",
    "Picture",
    "Relinking",
    "Report",
    "Sample",
    "Spread",
    "answers",
    "main_scores",
]

Picture = tuple[str, bytes]
"""A caption and a PNG picture."""
_EXACT = 1e-9  # an interval this narrow holds rounding only


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What the release is still good for, or how good it is for one group.

    Attributes:
        what: the task or the group.
        measure: what the number is; higher is better unless ``lower_is_better``.
        score: the number with its interval.
        baseline: what is reached without the texts.
        baseline_name: how ("majority class", "mean").
        lower_is_better: whether the number counts errors.
        gain: how much better than the baseline on the same rows, where that was measured; above 0 is better.
        detail: how it was measured, in one sentence.
        owner_only: whether original rows had a part in it: the promise does not cover the number.
        is_rival: whether it is a trivial way to the same end, which stands beside what was released.
    """

    what: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    lower_is_better: bool = False
    gain: Estimate | None = None
    detail: str = ""
    owner_only: bool = False
    is_rival: bool = False

    @property
    def is_useful(self) -> bool:
        """Whether it is beyond the baseline with the whole interval: of the gain, where that is known."""
        if self.gain is not None:
            return self.gain.low > 0
        return self.score.high < self.baseline if self.lower_is_better else self.score.low > self.baseline


@dataclass(frozen=True, kw_only=True)
class GroupGap:
    """How far the groups lie apart that one model serves.

    Attributes:
        words: the largest gap, in a sentence.
        is_shown: whether it is more than chance explains.
        of_release: whether the model is one that anybody who has the release could train.
        owner_only: whether original rows, or columns, had a part in it.
    """

    words: str
    is_shown: bool
    of_release: bool = True
    owner_only: bool = False


@dataclass(frozen=True)
class Sample:
    """A *public or synthetic* text before and after."""

    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class LabelOfCorpus:
    """One label of a synthetic corpus. All of it is public but ``real``.

    Attributes:
        name: the label.
        count: texts of the corpus that have it.
        share: of the corpus.
        released: its share as the description has it.
        real: its share of the original rows; None: not at hand.
        samples: a few texts of the corpus.
    """

    name: str
    count: int
    share: float
    released: float
    real: float | None = None
    samples: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Spread:
    """One number of how various texts are.

    Attributes:
        what: the number.
        corpus, pool: of the synthetic corpus, and of the public pool; empty: there is none.
        real: of original texts, for their owner alone; empty: there is none.
        detail: how it was measured.
        owner_only: whether original texts had a part in all of it.
    """

    what: str
    corpus: str = ""
    pool: str = ""
    real: str = ""
    detail: str = ""
    owner_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What a synthetic corpus holds.

    Attributes:
        texts: how many.
        pool: how many public texts they were chosen from; None: a generator wrote them.
        labels: the most frequent labels; empty where there are none.
        more_labels: how many further labels there are.
        spread: how various the texts are.
        owner_picture: whether original texts stand in the picture of all texts.
    """

    texts: int
    pool: int | None
    labels: Sequence[LabelOfCorpus] = ()
    more_labels: int = 0
    spread: Sequence[Spread] = ()
    owner_picture: bool = False

    @property
    def has_owner_numbers(self) -> bool:
        """Whether original texts had a part in any number."""
        return (
            self.owner_picture
            or any(each.real is not None for each in self.labels)
            or any(each.real or each.owner_only for each in self.spread)
        )


@dataclass(frozen=True, kw_only=True)
class Relinking:
    """How often the best attacker names the right one of so many people, whose texts they know and hold for equally
    likely before. All of it is public.

    Attributes:
        people: how many.
        parts: how many texts of a bank came out for a text.
        exact: among so many public texts, on average over the noise; None: it was not computed.
        most: by this mechanism, among any.
        pure: under any mechanism of this epsilon.
    """

    people: int
    parts: int
    exact: float | None
    most: float
    pure: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(Showing):
    """Everything that one page says. Frozen; `html` and `card` only put it into words.

    Attributes:
        title: of the page.
        statement: what was promised.
        checks: what was checked of the file.
        verdicts: audits of the promise.
        attacks: what an adversary got from what was released.
        owner_attacks: what one got, measured with the original texts: the promise does not cover these numbers.
        controls: the same attackers on original texts, where they should succeed: an attack that fails there too says
            nothing.
        relinking: how often a text is given back to its author, of several numbers of people.
        utility: what the release is still good for.
        fairness: how good it is for each group.
        gaps: how far groups lie apart, for one model or several.
        samples: public or synthetic texts, before and after.
        stays: the share of words that stay as they are, at public frequencies; None where no words came out.
        corpus: what a synthetic corpus holds; None: the release is none.
        pictures: of the sections "audit", "attacks", "utility" and "spread".
        figures: further pictures.
        command: what makes the page again; a card shows it without folders and without the name of the original.
        notes: sentences for the reader.
    """

    title: str
    statement: PrivacyStatement
    checks: Sequence[Check] = ()
    verdicts: Sequence[Verdict] = ()
    attacks: Sequence[AttackScore] = ()
    owner_attacks: Sequence[AttackScore] = ()
    controls: Sequence[AttackScore] = ()
    relinking: Sequence[Relinking] = ()
    utility: Sequence[Measurement] = ()
    fairness: Sequence[Measurement] = ()
    gaps: Sequence[GroupGap] = ()
    samples: Sequence[Sample] = ()
    stays: float | None = None
    corpus: Corpus | None = None
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    figures: Sequence[Picture] = ()
    command: str = ""
    notes: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        for caption, picture in (*self.figures, *self.pictures.values()):
            if not picture.startswith(b"\x89PNG"):
                raise ParameterError(f"a figure must be a PNG picture, {caption!r} is something else")

    @property
    def refuted(self) -> bool:
        """Whether a check failed, or an audit showed the promise to be false."""
        return any(each.refuted for each in self.verdicts) or any(each.held is False for each in self.checks)

    @property
    def has_owner_numbers(self) -> bool:
        """Whether original texts had a part in any number."""
        measured = (*self.utility, *self.fairness)
        of_corpus = self.corpus is not None and self.corpus.has_owner_numbers
        return bool(self.owner_attacks or self.controls or of_corpus or any(each.owner_only for each in measured))

    def html(self) -> str:
        """The page."""
        marked = [*((each, True) for each in self.owner_attacks), *((each, False) for each in self.attacks)]
        main = {id(each) for each in (*main_scores(self.owner_attacks), *main_scores(self.attacks))}
        return filled(
            "reports/templates/page.html",
            report=self,
            answers=answers(self),
            protected=protected(self.statement),
            not_protected=not_protected(self.statement),
            samples=[(each.before, list(self._shown(each))) for each in self.samples],
            attacks=[_attack_row(each, owner) for each, owner in marked if id(each) in main],
            more_attacks=[_attack_row(each, owner) for each, owner in marked if id(each) not in main],
            controls=[_control_row(each) for each in main_scores(self.controls)],
            bank=of_bank(self.statement),
            utility=[_measured_row(each, _BLIND if self.corpus else _NO_TEXTS) for each in self.utility],
            fairness=[_measured_row(each) for each in self.fairness],
            explanation=explanation_html(self.statement),
            headline=_headline,
            percent=_percent,
            percent_at_most=percent_at_most,
            base64=lambda picture: base64.b64encode(picture).decode(),
        )

    def _shown(self, sample: Sample) -> Iterator[tuple[str, bool]]:
        """The tokens of the text after, and whether each is a new word: of a text of a bank all are, and none is said
        to be."""
        return iter([(sample.after, False)]) if of_bank(self.statement) else _new_words(sample)

    def card(self) -> str:
        """The same in Markdown, short, for the folder that is shared: without what only its owner should see."""
        command = _to_share(self.command)
        return filled(
            "reports/templates/card.md",
            report=self,
            statement=self.statement,
            protected=protected(self.statement),
            not_protected=not_protected(self.statement),
            attacks=[(each.attack, each) for each in self.attacks],
            utility=[(each.what, each) for each in self.utility if not each.owner_only],
            fairness=[(each.what, each) for each in self.fairness if not each.owner_only],
            command=command,
            fence="`" * (2 + max(map(len, re.findall("`+", command)), default=1)),  # longer than any in a name
            headline=_headline,
            percent=_percent,
            percent_at_most=percent_at_most,
        )

    def _in_brief(self) -> Facts:
        yield "title", self.title
        yield "refuted", self.refuted
        yield "verdicts", len(self.verdicts)
        yield "attacks", len(self.attacks) + len(self.owner_attacks)
        yield "guarantee", str(self.statement.guarantee)

    def _in_full(self) -> Facts:
        return facts_of(self.statement)


def main_scores(scores: Sequence[AttackScore]) -> list[AttackScore]:
    """The first number of each attack, which says how often the attacker was right; the others say it in other ways."""
    first: dict[str, AttackScore] = {}
    for each in scores:
        first.setdefault(each.attack, each)
    return list(first.values())


def _to_share(command: str) -> str:
    """A command line without what it says of its owner: folders, and which files hold original texts.

    No number on a card was computed from the original, so the command makes them all without it. One that cannot be
    read is left out.
    """
    try:
        words = iter(shlex.split(command))
    except ValueError:
        return ""
    kept = []
    for word in words:
        option, equals, value = word.partition("=")
        if option in ("--original", "--held-out"):
            if not equals:
                next(words, None)
            continue
        named = word if not (equals and option.startswith("-")) else value
        name = re.split(r"[/\\]", named.rstrip("/\\"))[-1]
        kept.append(name if named is word else f"{option}={name}")
    return shlex.join(kept)


def _headline(verdict: Verdict) -> str:
    """A verdict in a line."""
    match verdict.outcome:
        case Outcome.REFUTED:
            return f"REFUTED: {verdict.loss:.3g} nats were shown where {verdict.allowed:.3g} are promised."
        case Outcome.EXACT:
            return (
                f"kept, computed exactly: the pair that comes closest gives away {verdict.loss:.3g} nats where "
                f"{verdict.allowed:.3g} are promised."
            )
        case _ if not verdict.refutable:
            return (
                f"not tested: these samples can show {verdict.strongest:.3g} nats, {verdict.allowed:.3g} are promised."
            )
        case _:
            return f"not refuted: {verdict.loss:.3g} nats were shown where {verdict.allowed:.3g} are promised."


# -- rows of tables ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A result beside its baseline, as the page shows it."""

    kind: str
    name: str
    measure: str
    number: str
    interval: str
    baseline: str
    baseline_name: str
    words: str
    detail: str
    good: bool | None
    owner_only: bool


def _attack_row(score: AttackScore, owner_only: bool) -> _Row:
    words = "the attacker learns something" if score.succeeded else "no better than somebody who sees nothing"
    good: bool | None = not score.succeeded
    if _kind(score) == "membership" and score.score.high - score.score.low < _EXACT:
        words, good = "nobody does better: so much does the promise allow", None
    return _row(score, score.attack, score.measure, words, good=good, owner_only=owner_only)


def _control_row(score: AttackScore) -> _Row:
    words = "the attack works" if score.succeeded else "the attack fails here too: above it says nothing"
    return _row(score, score.attack, score.measure, words, good=None, owner_only=True)


_NO_TEXTS, _BLIND = "without the texts", "a blind guess"


def _measured_row(found: Measurement, against: str = _NO_TEXTS) -> _Row:
    measure = found.measure + (" (lower is better)" if found.lower_is_better else "")
    words = f"{'better' if found.is_useful else 'no better'} than {against}"
    good = None if found.is_rival else found.is_useful
    return _row(found, found.what, measure, words, good=good, owner_only=found.owner_only)


def _row(
    found: AttackScore | Measurement, name: str, measure: str, words: str, *, good: bool | None, owner_only: bool
) -> _Row:
    shown = _percent if found.measure == "accuracy" or found.measure.startswith("share ") else _three_digits
    score: Estimate = found.score
    exact = score.high - score.low < _EXACT
    return _Row(
        kind=next((kind for kind in _KINDS if name.startswith(kind)), ""),
        name=name,
        measure=measure,
        number=shown(score.value),
        interval="exact" if exact else f"{shown(score.low)} to {shown(score.high)}",
        baseline=shown(found.baseline),
        baseline_name=found.baseline_name,
        words=words,
        detail=found.detail,
        good=good,
        owner_only=owner_only,
    )


_KINDS = ("membership", "linkage", "word recovery", "attribute inference")


def _three_digits(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no minus before a zero


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%" if value >= 0.001 or value == 0 else f"{100 * value:.2g}%"


def _new_words(sample: Sample) -> Iterator[tuple[str, bool]]:
    """The tokens of the text after, and whether each is a new word."""
    known = {token.text.lower() for token in split(sample.before)}
    known |= {each.strip("<>") for each in PLACEHOLDERS.values()}
    for token in split(sample.after):
        yield token.text, token.kind is Kind.WORD and token.text not in known


# -- questions and answers ---------------------------------------------------------------------------------------


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
            "It was put to the test and held: computed exactly, for "
            + (
                f"every {report.statement.unit}."
                if report.corpus is not None
                else f"all pairs of {'texts' if of_bank(report.statement) else 'words'} that were looked at."
            ),
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
    if "membership" in best:
        found.append(_membership([each for each in main_scores(scores) if _kind(each) == "membership"]))
        del best["membership"]
    for kind, each in best.items():
        question, can = _asked(kind)
        share, blind = _of_hundred(each.score.value), _of_hundred(each.baseline)
        words = can.format(share) + (
            f"; without looking at the release, for {blind}."
            if each.succeeded
            else f", no better than without looking at the release ({blind})."
        )
        # where nine of ten have the same answer, a share of right ones hides that the tenth is known: any number counts
        others = [other for other in scores if _kind(other) == kind and other.succeeded]
        if others and not each.succeeded:
            other = max(others, key=lambda score: score.advantage)
            words += (
                f" But the attacker learns something: {other.measure} {other.score.value:.2f}, where somebody who sees "
                f"nothing has {other.baseline:.2f} ({other.attack})."
            )
        found.append(Answer(question, words, good=not others))
    return found


def _membership(scores: Sequence[AttackScore]) -> Answer:
    """What the noise allows at most is no news beside the promise: what was measured may be."""
    exact = [each for each in scores if each.score.high - each.score.low < _EXACT]
    measured = [each for each in scores if each not in exact]
    words = (
        "Shown somebody who was described and somebody who was not, who is which can be said rightly for "
        f"{_of_hundred(exact[0].score.value)} of 100 such pairs at most, on average, by an attacker who knows "
        "everybody else; somebody who knows nothing is right for 50."
        if exact
        else ""
    )
    for each in measured:
        words += f" An attacker who guesses the others was right for {_of_hundred(each.score.value)}"
        words += "." if each.succeeded else ", which chance explains."
    learnt = any(each.succeeded for each in measured)
    good = None if not measured else not learnt or all(each.score.low <= exact[0].score.value for each in measured)
    return Answer("Does it show who is in it?", words.strip(), good=good)


def _kind(score: AttackScore) -> str:
    """What is attacked, without who attacks; a column may have brackets in its name."""
    return score.attack.rpartition(" (")[0] or score.attack


def _asked(kind: str) -> tuple[str, str]:
    if kind == "linkage":
        return (
            "Can a private text be traced back?",
            "An attacker who holds the original texts finds the right one for {} of 100 private texts",
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
    if report.corpus is not None:
        return [_use_of_corpus(report.utility)]
    if ours.measure != "accuracy":
        return [Answer("Is it still useful?", "Yes." if ours.is_useful else "Not shown.", good=ours.is_useful)]
    words = f"A model that learns from private rows is right for {_of_hundred(ours.score.value)} of 100"
    other = [each for each in report.utility if each.what.startswith("trained on original")]
    if other:
        words += f"; one that learns from the originals, for {_of_hundred(other[0].score.value)}"
    rivals = [each for each in report.utility if each.is_rival]
    if rivals:
        words += f"; one that learns from {rivals[0].what.removeprefix('trained on ').partition(',')[0]}, for "
        words += _of_hundred(rivals[0].score.value)
    words += f"; a blind guess, for {_of_hundred(ours.baseline)}."
    return [Answer("Is it still useful?", words, good=ours.is_useful)]


def _use_of_corpus(found: Sequence[Measurement]) -> Answer:
    """A model of the corpus, beside one of real texts and the best trivial way to the same end."""
    ours, *others = found
    words = f"A model that learns from the corpus is right for {_of_hundred(ours.score.value)} of 100 real texts"
    real = [each for each in others if not each.is_rival]
    if real:
        words += f"; one that learns from real texts, for {_of_hundred(real[0].score.value)}"
    rivals = [each for each in others if each.is_rival]
    if rivals:
        best = max(rivals, key=lambda each: each.score.value)
        words += f"; the best of the trivial ways, for {_of_hundred(best.score.value)} ({best.what})"
    return Answer(
        "Is it still useful?", f"{words}; a blind guess, for {_of_hundred(ours.baseline)}.", good=ours.is_useful
    )


def _of_hundred(value: float) -> str:
    """A share as a reader pictures it."""
    count = 100 * value
    if 0 < count < 1:
        return "fewer than 1"
    if 99 < count < 100:
        return "more than 99"
    return f"{count:.0f}"
