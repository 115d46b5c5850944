"""One way to make something of people's texts that can be handed on, as it would be here, and how it is judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from dptext.advice.answers import Answers, Purpose
from dptext.advice.data import Data
from dptext.advice.public import PublicTexts
from dptext.errors import DptextError, MissingExtraError
from dptext.privacy.guarantee import Trust, Unit
from dptext.privacy.restating import statement_for_user
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, in_a_table
from dptext.release.mechanism import TextMechanism
from dptext.release.privatize import privatize

_INSTALLS = re.compile(r'pip install "[^"]*"')
PROTECTING = 3.0
"""The largest epsilon whose bound protects by itself (`Strength`)."""
assert Strength.of(PROTECTING) is Strength.PROTECTS


class Fit(StrEnum):
    """Whether a way suits what is known."""

    RECOMMENDED = "recommended"
    POSSIBLE = "possible"
    NOT_HERE = "not here"


class Objection(NamedTuple):
    weight: int
    reason: str


_KEPT = Objection(0, "Labels are kept, and leave as they are: nothing is promised about them.")
_NO_LABEL = Objection(1, "No column of few values is known: name the labels with --label.")
_NO_USER = Objection(0, "No column says who wrote a text: single texts are protected; name it: --user.")


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that advice follows from."""

    data: Data
    answers: Answers
    public: PublicTexts


class Preview(NamedTuple):
    """What comes out, of public texts."""

    pairs: tuple[tuple[str, str], ...] = ()
    missing: str | None = None


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way, as it would be here."""

    name: str
    command: str
    statement: PrivacyStatement | None
    person: PrivacyStatement | None
    texts: int | None
    promise: str
    good_for: str
    attacker: str
    fit: Fit
    reasons: tuple[str, ...]
    pasted: tuple[str, ...]
    preview: Preview
    rank: int
    is_clear: bool

    @property
    def epsilon(self) -> float | None:
        """What a person loses at most, as far as it is known; None: not known."""
        said = self.person or self.statement
        return None if said is None else said.epsilon

    def as_dict(self) -> dict[str, Any]:
        """By name."""
        said, person = self.statement, self.person
        return {
            "name": self.name,
            "command": self.command,
            "fit": str(self.fit),
            "reasons": list(self.reasons),
            "promise": self.promise,
            "unit": None if said is None else str(said.unit),
            "epsilon": None if said is None else said.epsilon,
            "delta": None if said is None else getattr(said.guarantee, "delta", 0.0),
            "guarantee": None if said is None else str(said.guarantee),
            "trust": None if said is None else str(said.trust),
            "epsilon_of_a_person": None if person is None else person.epsilon,
            "texts_of_a_person": self.texts,
            "good_for": self.good_for,
            "attacker": self.attacker,
            "paste": list(self.pasted),
            "preview": [{"from": source or None, "to": made} for source, made in self.preview.pairs],
            "preview_missing": self.preview.missing,
        }


class Makeup(NamedTuple):
    """What a way says of itself before it is judged."""

    statement: PrivacyStatement | None
    good_for: str
    objections: tuple[Objection, ...] = ()


def built(
    case: Case,
    *,
    name: str,
    command: str,
    trust: Trust,
    serves: Mapping[Purpose | None, int],
    mismatch: Mapping[Purpose, str],
    makeup: Callable[[Case], Makeup],
    pasted: Callable[[Case], tuple[str, ...]],
    preview: Callable[[Case], Preview],
    bare: Callable[[Case], Makeup] | None = None,
    never: str | None = None,
) -> Way:
    """A way, judged."""
    answers = case.answers
    try:
        found, missing = makeup(case), None
    except MissingExtraError as error:
        if bare is None:
            raise
        found, missing = bare(case), _takes(str(error))
    said, person, texts = found.statement, None, case.data.most_texts
    if (
        said is not None
        and said.unit is Unit.DOCUMENT
        and said.trust is Trust.LOCAL
        and texts is not None
        and texts > 1
    ):
        person = statement_for_user(said, texts)
    objections = [*found.objections]
    if not answers.allows(trust):
        objections.append(Objection(2, "Somebody would have to hold all texts, and nobody may."))
    if answers.purpose is not None and not serves[answers.purpose]:
        objections.append(Objection(2, mismatch[answers.purpose]))
    if said is not None:
        objections += _of_strength(said, person, answers)
    if never is not None:
        objections.append(Objection(1, never))
    if missing is not None:
        objections.append(Objection(0, f"What it takes first: {missing}."))
    if not answers.any:  # nothing was said that could rule anything out
        objections = [each._replace(weight=min(each.weight, 1)) for each in objections]
    weight = max((each.weight for each in objections), default=0)
    commands = pasted(case)
    if missing is not None:
        commands = (missing, *commands)
    promise, attacker = (
        ("Not known without word vectors.", "") if said is None else in_a_table(said, person=person, texts=texts or 1)
    )
    return Way(
        name=name,
        command=command,
        statement=said,
        person=person,
        texts=texts,
        promise=promise,
        good_for=found.good_for,
        attacker=attacker,
        fit=Fit.NOT_HERE if weight == 2 else Fit.POSSIBLE,
        reasons=tuple(each.reason for each in sorted(objections, key=lambda each: -each.weight)),
        pasted=commands,
        preview=_previewed(preview, case),
        rank=serves[answers.purpose],
        is_clear=answers.any and weight == 0,
    )


def _of_strength(statement: PrivacyStatement, person: PrivacyStatement | None, answers: Answers) -> Iterable[Objection]:
    """What the size of the bound stands against: that for a person, where it is known."""
    strength = Strength.of((person or statement).epsilon)
    is_public = answers.recipient == "public"
    for_all = ", and what is public cannot be called back" if is_public else ""
    if person is not None and strength is not Strength.PROTECTS and Strength.of(statement.epsilon) is Strength.PROTECTS:
        weight = {Strength.WEAK: int(is_public), Strength.TOO_LARGE: 1 + is_public}[strength]
        yield Objection(
            weight,
            "It protects one text, and not somebody with the most texts here: take fewer texts of each person, or "
            f"divide epsilon by a public bound on their number{for_all}.",
        )
    elif strength is Strength.TOO_LARGE:
        yield Objection(1 + is_public, f"Its bound is too large to protect{for_all}.")
    elif strength is Strength.WEAK:
        yield Objection(int(is_public), f"Its bound is weak{for_all}.")


def _previewed(preview: Callable[[Case], Preview], case: Case) -> Preview:
    try:
        return preview(case)
    except DptextError as error:  # too few public texts, or a package that is not there: no preview, but advice
        return Preview(missing=f"it takes {_takes(str(error))}" if isinstance(error, MissingExtraError) else str(error))


def _takes(message: str) -> str:
    """The line that installs what is missing."""
    line = _INSTALLS.search(message)
    return message if line is None else line.group()


def of_labels(case: Case, *, kept: bool) -> Iterator[Objection]:
    """What stands against a way that is to teach a classifier, ``kept``: by labels that leave as they are."""
    if case.answers.purpose == "classify" and case.data.classes is None:
        yield _NO_LABEL
    elif case.answers.purpose == "classify" and kept:
        yield _KEPT


def of_users(case: Case) -> Iterator[Objection]:
    """What stands against a way that would protect people, if it were known who they are."""
    if case.data.unit == "document":
        yield _NO_USER


def privatized(case: Case, mechanism: TextMechanism) -> Preview:
    """What a mechanism makes of some public texts."""
    shown = case.public.shown
    made = privatize(list(shown), mechanism, seed=case.public.seed)
    return Preview(tuple((before, after or "") for before, after in zip(shown, made.texts, strict=True)))


def without_parameters(statement: PrivacyStatement) -> PrivacyStatement:
    """A statement of which unit and guarantee alone are known."""
    return statement.replace(parameters={})


def rounded_people(count: int) -> int:
    """A round number of people that there are at least: two digits, and zeros."""
    power = int(10 ** max(len(str(count)) - 2, 0))
    return max(count, 1) // power * power
