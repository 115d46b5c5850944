"""A release method for somebody's texts, as it would be here: how it is judged, and the public texts to show it on."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib import resources
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dptext.advice.data import Data, quoted
from dptext.advice.questions import PUBLIC, Answers
from dptext.errors import DptextError, MissingExtraError, ParameterError
from dptext.features.features import Spec, quick_features
from dptext.features.latent_words import PublicWords
from dptext.features.pool import Pool
from dptext.io.documents import read_documents
from dptext.privacy.guarantee import Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import statement_for_user
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, in_a_table
from dptext.release.mechanism import TextMechanism
from dptext.release.privatize import privatize
from dptext.sentences.bank import TextBank
from dptext.vectors.formats import GLOVE, load_vectors
from dptext.vectors.word_vectors import WordVectors

PREVIEWED = 5
_MOST = 4_000  # texts, so that a preview takes seconds
_BANKED = 2_000
_MADE_UP = 200  # words
_LIMIT = 50_000  # words, as of the commands
_INSTALLS = re.compile(r'pip install "[^"]*"')
_WIDTH = 76
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
    """2 rules a method out, 1 keeps it from being recommended, 0 is to be known."""
    reason: str


@dataclass(frozen=True, eq=False)
class PublicTexts:
    """Public texts, in a public order: the first few are shown, the others play a bank, a pool, or people."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    name: str
    files: tuple[str, ...] = ()
    column: str = "text"
    count: int = 0
    seed: int | None = None

    @classmethod
    def bundled(cls, seed: int | None) -> PublicTexts:
        """Utterances to a voice assistant (SNIPS, CC0), as ``dptext demo`` has them."""
        path = resources.files("dptext") / "cli" / "sample" / "snips-train.jsonl.gz"
        labels = {str(each.text): str(each.label) for each in read_documents(str(path), label="intent")}
        name = "utterances to a voice assistant (SNIPS)"
        return cls(*_some(list(labels), labels, seed), name, seed=seed)

    @classmethod
    def given(cls, file: Any, *, text: str, label: str | None = None, seed: int | None) -> PublicTexts:
        pool = Pool(file, text=text)
        if len(pool) <= 2 * PREVIEWED:
            raise ParameterError(
                f"public must be more than {2 * PREVIEWED} texts, to draw from and to show, got {len(pool)}: give more "
                "of them, or leave it out"
            )
        is_one = isinstance(file, str | os.PathLike)
        named = tuple(str(each) for each in ([file] if is_one else file)) if pool.files else ()
        labels = None
        if label is not None:
            if not pool.files:
                raise ParameterError("public_label names a column of files: give public texts with labels as files")
            rows = read_documents(pool.files, text=text, label=label)
            labels = {str(each.text).strip(): str(each.label) for each in rows if each.label is not None}
        chosen = _some([each for each in pool.texts if labels is None or each in labels], labels, seed)
        return cls(*chosen, "your public texts", named, text, len(pool), seed)

    @property
    def as_options(self) -> str:
        column = "" if self.column == "text" else f" {option('public-text', self.column)}"
        return " ".join(option("public", each) for each in self.files or (PUBLIC,)) + column

    @property
    def as_arguments(self) -> str:
        column = "" if self.column == "text" else f" {option('text', self.column)}"
        return " ".join(map(quoted, self.files or (PUBLIC,))) + column

    @property
    def shown(self) -> tuple[str, ...]:
        """Those that a preview changes."""
        return self.texts[:PREVIEWED]

    @cached_property
    def pool(self) -> Pool:
        """The others: a bank, or a pool."""
        return Pool(self.texts[PREVIEWED:], name=self.name)

    @cached_property
    def vectors(self) -> WordVectors:
        """The public word vectors that commands take unless they are given others."""
        return load_vectors(GLOVE, limit=_LIMIT)

    @cached_property
    def features(self) -> Spec:
        """Features for figures and previews: fast ones that need no extra."""
        return quick_features(PublicWords(self.texts))

    @cached_property
    def stand_in(self) -> WordVectors:
        """Vectors of some of their words, made up: what a mechanism promises does not depend on which it has."""
        counts = Counter(word for text in self.texts for word in text.split())
        words = sorted(counts, key=lambda word: (-counts[word], word))[:_MADE_UP]
        return load_vectors((words, RandomBits(0).normal(len(words), 4)))

    @cached_property
    def bank(self) -> TextBank:
        return TextBank(self.pool.texts[:_BANKED], encoder=self.features, cache=False)


def _some(
    texts: Sequence[str], labels: dict[str, str] | None, seed: int | None
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Some of the texts in an order by chance, and their labels."""
    order = np.argsort(RandomBits(0 if seed is None else seed).integers(len(texts)), kind="stable")
    chosen = tuple(texts[place] for place in order[:_MOST].tolist())
    return chosen, None if labels is None else tuple(labels[each] for each in chosen)


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

    def as_dict(self) -> dict[str, Any]:
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


class Method(ABC):
    """A method of release: what is known of it, and what it would be for one case."""

    name: ClassVar[str]
    command: ClassVar[str]
    trust: ClassVar[Trust]
    serves: ClassVar[Mapping[str | None, int]]
    """How well it serves each purpose; 0: not at all, and `mismatch` says why."""
    mismatch: ClassVar[Mapping[str, str]]
    never: ClassVar[str | None] = None
    """Why it is never recommended."""

    def __init__(self, case: Case) -> None:
        self.data, self.answers, self.public = case.data, case.answers, case.public
        self.classifies = self.answers.purpose == "classify"

    @abstractmethod
    def makeup(self) -> Makeup:
        """What it says of itself before it is judged."""

    def bare(self) -> Makeup:
        """The same without what an extra brings."""
        return self.makeup()

    @abstractmethod
    def pasted(self) -> tuple[str, ...]:
        """Its commands."""

    @abstractmethod
    def preview(self) -> Preview:
        """What comes out, of public texts."""

    @property
    def text_option(self) -> list[str]:
        """Which column is the text, where it is not the usual one."""
        return [] if self.data.roles.text == "text" else [option("text", self.data.roles.text)]

    @property
    def kept_labels(self) -> list[str]:
        """The labels that a classifier needs, without those that seem to say who somebody is."""
        columns = {each.name: each for each in self.data.columns}
        labels = self.data.roles.labels if self.classifies else ()
        return [option("keep", each) for each in labels if not columns[each].reasons]

    def line(self, suffix: str, *more: str) -> str:
        """The command that makes something of the private files."""
        user = [] if self.data.roles.user is None else [option("user", self.data.roles.user)]
        if not user and self.trust is Trust.CENTRAL:
            user = ["--unit document"]
        program = self.command.partition(" ")[0]
        return folded(
            f"dptext {program} {self.data.inputs}", f"-o {self.data.out(suffix)}", *self.text_option, *user, *more
        )

    def privatized(self, mechanism: TextMechanism) -> Preview:
        """What a mechanism makes of some public texts."""
        shown = self.public.shown
        made = privatize(list(shown), mechanism, seed=self.public.seed)
        return Preview(tuple((before, after or "") for before, after in zip(shown, made.texts, strict=True)))

    def way(self) -> Way:
        answers, texts = self.answers, self.data.most_texts
        try:
            made, missing = self.makeup(), None
        except MissingExtraError as error:
            made, missing = self.bare(), _installs(error)
        statement, person = made.statement, None
        is_local = statement is not None and statement.unit is Unit.DOCUMENT and statement.trust is Trust.LOCAL
        if statement is not None and is_local and texts is not None and texts > 1:
            person = statement_for_user(statement, texts)
        objections = [*made.objections]
        if answers.trust == "local" and self.trust is not Trust.LOCAL:
            objections.append(Objection(2, "Somebody would have to hold all texts, and nobody may."))
        if answers.purpose is not None and not self.serves[answers.purpose]:
            objections.append(Objection(2, self.mismatch[answers.purpose]))
        if statement is not None:
            objections += _of_strength(statement, person, answers)
        if self.never is not None:
            objections.append(Objection(1, self.never))
        if missing is not None:
            objections.append(Objection(0, f"What it takes first: {missing}."))
        if not answers.any:  # nothing was said that could rule anything out
            objections = [each._replace(weight=min(each.weight, 1)) for each in objections]
        weight = max((each.weight for each in objections), default=0)
        promise, attacker = "Not known without word vectors.", ""
        if statement is not None:
            promise, attacker = in_a_table(statement, person=person, texts=texts or 1)
        return Way(
            name=self.name,
            command=self.command,
            statement=statement,
            person=person,
            texts=texts,
            promise=promise,
            good_for=made.good_for,
            attacker=attacker,
            fit=Fit.NOT_HERE if weight == 2 else Fit.POSSIBLE,
            reasons=tuple(each.reason for each in sorted(objections, key=lambda each: -each.weight)),
            pasted=self.pasted() if missing is None else (missing, *self.pasted()),
            preview=self._preview_or_why_not(),
            rank=self.serves[answers.purpose],
            is_clear=answers.any and weight == 0,
        )

    def _preview_or_why_not(self) -> Preview:
        try:
            return self.preview()
        except MissingExtraError as error:
            return Preview(missing=f"it takes {_installs(error)}")
        except DptextError as error:  # too few public texts: no preview, but advice
            return Preview(missing=str(error))


def _installs(error: MissingExtraError) -> str:
    line = _INSTALLS.search(str(error))
    return str(error) if line is None else line.group()


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


def rounded_people(count: int) -> int:
    """A round number of people that there are at least: two digits, and zeros."""
    power = int(10 ** max(len(str(count)) - 2, 0))
    return max(count, 1) // power * power


def option(name: str, value: str) -> str:
    """``--name value``, also where the value begins with a dash."""
    return f"--{name}={quoted(value)}" if value.startswith("-") else f"--{name} {quoted(value)}"


def folded(*words: str) -> str:
    """A command of these parts, over several lines where it is long; no part is broken."""
    lines, line = [], ""
    for each in words:
        if line and len(line) + 1 + len(each) > _WIDTH - 2:
            lines.append(f"{line} \\")
            line = f"    {each}"
        else:
            line = f"{line} {each}" if line else each
    return "\n".join([*lines, line])
