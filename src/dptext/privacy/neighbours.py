"""Structured conditions on neighbouring inputs, which can be tightened but never widened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, get_args

from dptext.errors import ParameterError, RefusedError
from dptext.privacy.guarantee import Relation, Unit
from dptext.validation import check_choice, check_int

ONE_GROUP = "one group of the public partition"
_MOST = 10**12  # largest number of words, or of texts per person


@dataclass(frozen=True)
class Requirement:
    """Requirement on a pair of neighbours."""

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, str):
                text = f"{name} of the condition {self.kind!r}, if it is not text,"
                object.__setattr__(self, name, check_int(text, value, minimum=1, maximum=_MOST))

    def implies(self, other: Requirement) -> bool:
        """Return whether every pair that fulfils this requirement fulfils the other one."""
        return self == other


@dataclass(frozen=True)
class SameLayout(Requirement):
    """Both texts have the same tokens apart from their words, and words at the same positions."""

    kind = "same layout"


@dataclass(frozen=True)
class SameSentenceCount(Requirement):
    """Both texts have the same number of sentences."""

    kind = "same number of sentences"


@dataclass(frozen=True)
class OneGroup(Requirement):
    """The two words at each position are in one group of a public partition, which is described in words."""

    partition: str
    kind = "one group"


@dataclass(frozen=True)
class WordsChanged(Requirement):
    """The texts differ in at most this many words, at the same positions."""

    words: int
    kind = "words changed"

    def implies(self, other: Requirement) -> bool:
        if isinstance(other, WordsChanged):
            return other.words >= self.words
        return isinstance(other, SameLayout)


@dataclass(frozen=True)
class TextsOfOne(Requirement):
    """A person has at most this many texts in the release (under substitution, both people have equal numbers)."""

    maximum: int
    kind = "texts of one person"

    def implies(self, other: Requirement) -> bool:
        return isinstance(other, TextsOfOne) and other.maximum >= self.maximum


@dataclass(frozen=True)
class OfLevel(Requirement):
    """The user has this privacy level; users of other levels are not covered."""

    level: str
    kind = "level"


@dataclass(frozen=True)
class EncoderStays(Requirement):
    """The trained encoder is the same for both inputs."""

    kind = "encoder stays"


@dataclass(frozen=True)
class AfterRedaction(Requirement):
    """Requirement on both texts after redaction."""

    required: str
    """Kind of the inner requirement; ``"unit"`` if the neighbours differ in a unit of the redacted text."""
    of: str = ""
    """Argument of the inner requirement: a partition, a number of words, a text."""
    kind = "after redaction"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("required of the condition 'after redaction'", self.required, ("unit", *_REDACTABLE))
        self.inner  # noqa: B018  validates the name

    @classmethod
    def after_redaction_of(cls, requirement: Requirement) -> AfterRedaction:
        """Return a requirement on the redacted texts."""
        if isinstance(requirement, AfterRedaction):
            return requirement
        return cls(requirement.kind, "".join(str(value) for value in vars(requirement).values()))

    @property
    def inner(self) -> Requirement | None:
        """The inner requirement; None for the unit."""
        if self.required == "unit":
            return None
        build = _REDACTABLE[self.required]
        if not fields(build):
            return build()
        number = build is WordsChanged and self.of.isascii() and self.of.isdigit()
        return build(int(self.of) if number else self.of)  # type: ignore[call-arg]  # all have one field

    def implies(self, other: Requirement) -> bool:
        if not isinstance(other, AfterRedaction):
            return False
        first, second = self.inner, other.inner
        return self == other or (first is not None and second is not None and first.implies(second))


@dataclass(frozen=True)
class Stated(Requirement):
    """A condition in free text, written by the author of the statement."""

    words: str
    kind = "stated"


_REDACTABLE: dict[str, type[Requirement]] = {
    entry.kind: entry for entry in (SameLayout, SameSentenceCount, OneGroup, WordsChanged, Stated)
}
_KINDS = {kind.kind: kind for kind in Requirement.__subclasses__()}  # statements list them in this order
_ORDER = {kind: place for place, kind in enumerate(_KINDS)}
_Kind = TypeVar("_Kind", bound=Requirement)
About = Literal["vectors", "collections", "pairs"]
# each text has a vector and each person a collection of texts, but not conversely; pairs are the smallest unit
_WITHIN: dict[str | None, tuple[str | None, ...]] = {
    "vectors": (None, "pairs"),
    "collections": (None, "pairs"),
    None: ("pairs",),
    "pairs": (),
}
_PAIRS_OF_WORDS = (
    "two collections of pairs, each a word and one that stands near it (two words that stand near each other are two "
    "pairs, one from each side), one of which holds one more pair: far less than a word of a text, which is in many "
    "pairs, and nothing that protects a person"
)
_SUBSTITUTED = {
    Unit.WORD: "any two words that could stand at one place of the text, the unknown word among them",
    Unit.SENTENCE: "any two sentences that could stand at one place of the text",
    Unit.EXAMPLE: "any two examples",
    Unit.DOCUMENT: "any two texts",
    Unit.USER: "any two people",
}
_ABOUT: dict[tuple[Unit, str | None], str] = {
    (Unit.DOCUMENT, "vectors"): "any two vectors",
    (Unit.USER, "collections"): "any two collections of texts of a user, the empty one included",
}
_ONE_MORE = {
    Unit.USER: "two corpora, one of which holds all documents of one more user",
    Unit.DOCUMENT: "two corpora, one of which holds one more document",
}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Requirements on the pairs of neighbours that a guarantee covers."""

    requirements: tuple[Requirement, ...] = ()
    about: About | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        requirements = self.requirements
        if not isinstance(requirements, tuple | list) or not all(
            type(entry) in _KINDS.values() for entry in requirements
        ):
            raise ParameterError("the requirements of a condition must be a sequence of known requirements")
        if self.about is not None:
            check_choice("about of a condition", self.about, get_args(About), also=" or none of these")
        if self.note is not None and not isinstance(self.note, str):
            raise ParameterError("the note of a condition must be text, or none")
        distinct = list(dict.fromkeys(requirements))  # without duplicates; implied ones are dropped below
        kept = [entry for entry in distinct if not any(rest is not entry and rest.implies(entry) for rest in distinct)]
        ordered = sorted(kept, key=lambda requirement: (_ORDER[requirement.kind], str(requirement)))
        object.__setattr__(self, "requirements", tuple(ordered))

    @classmethod
    def read(cls, value: Any) -> Condition:
        """Return a condition unchanged, and a text as a free-text condition."""
        if isinstance(value, Condition):
            return value
        if isinstance(value, str) and value:
            return cls(requirements=(Stated(value),))
        raise ParameterError("condition must be a Condition, or its text")

    def narrows(self, other: Condition, unit: Unit) -> bool:
        """Return whether every pair of neighbours under this condition is one under the other."""
        if self.about != other.about and self.about not in _WITHIN[other.about]:
            return False
        if self._differs_once_redacted != other._differs_once_redacted:
            return False
        required = (other.for_unit(unit) if self.has(WordsChanged) else other).requirements
        return all(any(first.implies(entry) for first in self.requirements) for entry in required)

    def for_unit(self, unit: Unit) -> Condition:
        """Add the requirement of the unit: neighbours of the unit word differ in one word by default."""
        return self if unit is not Unit.WORD or self.has(WordsChanged) else self.and_(WordsChanged(1))

    def meet(self, other: Condition, unit: Unit) -> Condition:
        """Return the condition for pairs that are neighbours of a unit under both conditions."""
        if self._differs_once_redacted != other._differs_once_redacted:
            raise RefusedError(
                f"one guarantee is for a {unit} of the original text, the other for a {unit} of the redacted "
                "text: neighbours under one are not neighbours under the other, so the two have no proved sum. Add the "
                "statements for whole documents instead"
            )
        one, two = self, other
        if one.has(WordsChanged) or two.has(WordsChanged):
            one, two = one.for_unit(unit), two.for_unit(unit)
        about = one.about if one.about == two.about else None
        about = "pairs" if "pairs" in (one.about, two.about) else about  # the more specific term
        note = "; ".join(dict.fromkeys(entry for entry in (one.note, two.note) if entry)) or None
        return Condition(requirements=(*one.requirements, *two.requirements), about=about, note=note)

    def and_(self, *requirements: Requirement) -> Condition:
        """Return this condition with more requirements, tighter or unchanged."""
        return Condition(requirements=(*self.requirements, *requirements), about=self.about, note=self.note)

    def has(self, *kinds: type[Requirement]) -> bool:
        """Return whether a requirement has one of these kinds, before or after redaction."""
        return any(isinstance(requirement, kinds) for requirement in (*self.requirements, *self.redacted.requirements))

    @property
    def redacted(self) -> Condition:
        """Return the requirements on the redacted texts as a condition."""
        inner = (requirement.inner for requirement in self._select(AfterRedaction))
        return Condition(requirements=tuple(entry for entry in inner if entry is not None))

    @property
    def _differs_once_redacted(self) -> bool:
        """Return whether neighbours differ in a unit of the redacted text."""
        return AfterRedaction("unit") in self.requirements

    def _select(self, kind: type[_Kind]) -> list[_Kind]:
        """Return the requirements of a kind on the original texts."""
        return [requirement for requirement in self.requirements if isinstance(requirement, kind)]

    @property
    def most_texts(self) -> int | None:
        """Return the largest number of texts per person, or None."""
        return min((requirement.maximum for requirement in self._select(TextsOfOne)), default=None)

    @property
    def for_some_only(self) -> str | None:
        """Return the reason why the guarantee covers only some units, or None."""
        reasons = {
            OneGroup: f"for words of {ONE_GROUP} only",
            OfLevel: "for users of one level only",
            WordsChanged: "for texts that differ in some words only",
        }
        return next((reason for kind, reason in reasons.items() if self.has(kind)), None)

    def describe(self, unit: Unit, relation: Relation) -> str:
        """Describe the neighbours of a unit under a relation."""
        expected = [requirement.words for requirement in self._select(Stated)]
        expected += [f"{requirement.words}, once redacted" for requirement in self.redacted._select(Stated)]
        if len(expected) == len(self.requirements) > 0:
            text = expected[0] if len(expected) == 1 else f"both hold: {'; and '.join(expected)}"
        else:
            changed = self._substituted if relation is Relation.SUBSTITUTION else self._one_more
            text = "; and: ".join([changed(unit), *expected])
        return f"{text} ({self.note})" if self.note else text

    def _substituted(self, unit: Unit) -> str:
        changed = self._changed()
        of_texts = [] if unit is Unit.WORD else self._text_lines()
        text = _SUBSTITUTED[Unit.DOCUMENT if changed and unit is Unit.WORD else unit]
        if (unit, self.about) in _ABOUT:
            text = _ABOUT[unit, self.about]
        elif unit is Unit.WORD and not changed and self.has(OneGroup):
            text = f"any two words of {self._group() or self.redacted._group()}"
        if self._select(AfterRedaction) and unit in (Unit.WORD, Unit.SENTENCE) and not changed:
            text += ", once it is redacted"
        text += self._level_text()
        for requirement in self._select(TextsOfOne):
            text += f" with equally many texts, at most {requirement.maximum:,}"
        if of_texts:
            joined = " and ".join(of_texts)
            text += f", each paired with one that has {joined}" if unit is Unit.USER else f" with {joined}"
        if changed:
            owners = ", whose texts, each paired with one of the other's," if unit is Unit.USER else " that"
            text += f"{owners} differ in {changed} and agree in all else, the number of words too"
        return text + self._world_text()

    def _changed(self) -> str:
        counts = [requirement.words for requirement in self._select(WordsChanged)]
        text = "" if not counts else "one word" if counts == [1] else f"{counts[0]} words, each in its place,"
        if self._select(AfterRedaction) and (changed := self.redacted._changed()):
            text += f"{' and in ' if text else ''}{changed} once they are redacted"
        return text

    def _text_lines(self) -> list[str]:
        lines = ["the same number of words and the same layout"] if self._select(SameLayout) else []
        lines += ["the same number of sentences"] if self._select(SameSentenceCount) else []
        lines += [f"words of {self._group()} at each place"] if self._group() else []
        if self._select(AfterRedaction) and (repeated := self.redacted._text_lines()):
            lines.append(f"{' and '.join(repeated)} once they are redacted")
        return lines

    def _group(self) -> str:
        groups = [requirement.partition for requirement in self._select(OneGroup)]
        return f"{ONE_GROUP} ({'; and of '.join(groups)})" if groups else ""

    def _one_more(self, unit: Unit) -> str:
        value = _ONE_MORE.get(unit, f"two collections, one of which holds one more {unit}")
        value = (_PAIRS_OF_WORDS if self.about == "pairs" else value) + self._level_text()
        if texts := self._select(TextsOfOne):
            value += f", at most {texts[0].maximum:,} of them"
        of_texts = self._text_lines()
        value += f", and what is there in both differs in {self._changed()} at most" if self._changed() else ""
        return value + (f"; of texts with {' and '.join(of_texts)}" if of_texts else "") + self._world_text()

    def _level_text(self) -> str:
        return "".join(f" of the level {requirement.level!r}" for requirement in self._select(OfLevel))

    def _world_text(self) -> str:
        return ", the trained encoder staying the same" if self.has(EncoderStays) else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, where ``maximum`` is called ``most``."""
        requirements = [
            {"kind": entry.kind} | {"most" if name == "maximum" else name: value for name, value in vars(entry).items()}
            for entry in self.requirements
        ]
        return {"about": self.about, "note": self.note, "requirements": requirements}

    @classmethod
    def from_dict(cls, data: Any) -> Condition:
        """Return the condition of a dictionary from `to_dict`."""
        if not isinstance(data, Mapping) or data.keys() != {"about", "note", "requirements"}:
            raise ParameterError("condition must be an object with about, note and requirements")
        if not isinstance(data["requirements"], list):
            raise ParameterError("requirements of a condition must be a list")
        requirements = []
        for entry in data["requirements"]:
            items = entry.items() if isinstance(entry, Mapping) else ()
            fields = {"maximum" if name == "most" else name: value for name, value in items}
            kind = fields.pop("kind", None)
            if not isinstance(kind, str) or kind not in _KINDS:
                raise ParameterError(f"a requirement of a condition must be one of {', '.join(_KINDS)}")
            try:
                requirements.append(_KINDS[kind](**fields))
            except TypeError:
                raise ParameterError(f"the fields of the condition {kind!r} are missing or unknown") from None
        return cls(requirements=tuple(requirements), about=data["about"], note=data["note"])


ANY_TWO = Condition()
"""No requirements beyond the unit and the relation."""
