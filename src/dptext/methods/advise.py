"""Compare the release methods for a table: `advise`, and the `Advice` that it returns."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from dptext.errors import ParameterError
from dptext.io.atomic import is_same
from dptext.methods.base import BUNDLED, AdviceInput, Caveat, Method, PublicTexts
from dptext.methods.data import PLACEHOLDERS, Data, Holder, Purpose, Recipient, Requirements, files_of, look
from dptext.methods.registry import METHODS
from dptext.privacy.guarantee import Trust, Unit
from dptext.privacy.restating import statement_for_user
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, filled, paragraphs, table_cells
from dptext.text.tokens import TextUnit

WIDTH = 80
_LONGEST_NAME = 40
_INSTALL = 'pip install "dptext[glove]"'
_INDENT = 13
OWNER = "For you alone: this page counts private rows. Do not pass it on or copy its counts into a command."


class Fit(StrEnum):
    """How well a method suits a table and its owner's requirements."""

    RECOMMENDED = "recommended"
    POSSIBLE = "possible"
    UNSUITABLE = "unsuitable"


@dataclass(frozen=True, kw_only=True)
class ComparedMethod:
    """One method in the comparison, with its guarantee and attack success in words."""

    name: str
    command: str
    fit: Fit
    reasons: tuple[str, ...]  # reasons against it, the most serious first
    statement: PrivacyStatement | None  # None: unknown without the extra that is missing
    good_for: str
    accuracy: tuple[float, float] | None  # of a classifier, on public texts; None: unknown
    commands: tuple[str, ...]
    person: PrivacyStatement | None  # for the user with the most texts here, under a guarantee per text
    texts: int | None  # of that user; None: unknown
    guarantee: str
    attack: str
    rank: int  # how well it serves the purpose, 0 to 3

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        statement = self.statement
        names = ("name", "command", "fit", "reasons", "good_for", "accuracy", "commands", "guarantee", "attack")
        return {name: getattr(self, name) for name in (*names, "texts")} | {
            "statement": None if statement is None else json.loads(statement.to_json()),
            "epsilon": None if statement is None else statement.epsilon,
            "epsilon_per_person": None if self.person is None else self.person.epsilon,
        }


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The result of `advise`. It counts private rows, so it is for their owner alone."""

    data: Data
    requirements: Requirements
    methods: tuple[ComparedMethod, ...]  # all of them, the best one first
    recommendation: str  # two sentences
    public: str  # name of the public texts
    public_words: Mapping[TextUnit, int]  # median number of words of the caller's public texts and their parts
    baselines: tuple[float, float] | None = None  # accuracy of the most frequent label and of the nearest label name

    @property
    def nearest_unit(self) -> TextUnit:
        """The unit of the public texts whose length is nearest to the private texts; documents if it hardly matters."""
        ratios = {unit: abs(math.log(words / self.data.words[0])) for unit, words in self.public_words.items()}
        return min(reversed(ratios), key=lambda unit: round(ratios[unit], 1))

    @property
    def recommended(self) -> ComparedMethod | None:
        """The recommended method; None if there is none."""
        return self.methods[0] if self.methods[0].fit is Fit.RECOMMENDED else None

    def method(self, name: str) -> ComparedMethod:
        """Return a method by its name or its command; raise `KeyError` for another one."""
        for method in self.methods:
            if name in (method.name, method.command):
                return method
        raise KeyError(f"no method {name!r}: the methods are {', '.join(method.name for method in self.methods)}")

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for the owner of the rows."""
        return {
            "for_the_owner_only": True,
            "requirements": vars(self.requirements),
            "data": asdict(self.data),
            "methods": [method.as_dict() for method in self.methods],
            "recommended": None if self.recommended is None else self.recommended.name,
            "recommendation": self.recommendation,
            "public": self.public,
            "public_words": self.public_words,
            "baselines": self.baselines,
        }

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        name = "nothing" if self.recommended is None else self.recommended.name
        return f"<Advice: {name} recommended, {len(self.methods)} methods; for the owner of the rows>"


def advise(
    source: Any,
    *,
    text: str | None = None,
    user: str | None = None,
    label: str | Sequence[str] | None = None,
    purpose: Purpose | None = None,
    recipient: Recipient | None = None,
    trust: Holder | None = None,
    public: Any = None,
    public_text: str = "text",
    public_label: str | None = None,
) -> Advice:
    """Compare the release methods for a table: guarantee, utility, attack success and the command to run.

    The guarantees come from the real mechanisms, without reading a private text. The figures come from
    public texts and public numbers. Only column names and some counts are taken from the rows. **The advice is
    private: it is for the owner of the rows.** It contains no value of a row. Nothing is written.

    Args:
        source: a path, or a list of `pathlib.Path` objects (files, folders, patterns); a table (pandas, polars,
            pyarrow, ``datasets.Dataset``); a list of mappings from columns to values.
        text, user, label: the columns with the text, its author, and labels; None: guessed.
        purpose: "read" (people read the texts), "classify" (train a classifier), "vectors" (share word vectors),
            "devices" (devices send vectors of texts), "statistics" (what many people write about, or something else).
        recipient: "public", "partner" or "colleagues".
        trust: "central": one party may hold all texts; "local": each owner or device protects its own texts.
        public: public texts for predictions, in any form that `dptext.Pool` accepts; None: bundled utterances.
        public_text: the text column of public files and tables.
        public_label: their column of labels, to predict the accuracy of a classifier.

    Raises:
        ParameterError: an unknown answer or column; no text column; a pipe; ``public`` contains a file of the rows;
            ``public_label`` without ``public``, or with one label only.
        DataError: no rows; a broken file.
        StorageError: a file cannot be read.

    >>> advice = advise("notes.jsonl", purpose="read", recipient="public", trust="local")  # doctest: +SKIP
    >>> print(advice.recommendation)  # doctest: +SKIP
    """
    requirements = Requirements(purpose=purpose, recipient=recipient, trust=trust)
    if public is None and public_label is not None:
        raise ParameterError("public_label requires public texts: name them too (--public FILE, public=)")
    if public is None:
        texts = PublicTexts.bundled(labelled=purpose == "classify")
    else:
        texts = PublicTexts.of(public, text=public_text, label=public_label)
    private = files_of(source) if texts.paths else []
    if any(is_same(one, other) for one in private for other in texts.paths):
        raise ParameterError("public contains a file of the private rows: name a file of other people's texts")
    labels = (label,) if isinstance(label, str) else label
    data = look(source, text=text, user=user, labels=labels, compare=texts.compare)
    return compare(AdviceInput(data, requirements, texts))


def compare(case: AdviceInput) -> Advice:
    """Assess every method for a table."""
    unanswered = case.requirements.unanswered
    methods = [_judge(method, case) for method in METHODS]
    clear = [method for method in methods if method.rank and method.fit is Fit.RECOMMENDED and len(unanswered) < 3]
    best = max(clear, key=lambda method: method.rank, default=None)
    methods = [
        replace(method, fit=Fit.POSSIBLE) if method.fit is Fit.RECOMMENDED and method is not best else method
        for method in methods
    ]
    methods.sort(key=lambda method: (list(Fit).index(method.fit), -method.rank))
    sentences = paragraphs("methods/templates/recommended.txt", best=methods[0], unanswered=unanswered)
    return Advice(
        data=case.data,
        requirements=case.requirements,
        methods=tuple(methods),
        recommendation=" ".join(sentences),
        public=case.public.name,
        public_words=case.public.words,
        baselines=case.public.baselines,
    )


def _judge(method: Method, case: AdviceInput) -> ComparedMethod:
    """Assess a method; it is a candidate for the recommendation if no caveat prevents that."""
    caveats, purpose = [], case.requirements.purpose
    if case.requirements.trust == "local" and method.trust is not Trust.LOCAL:
        caveats.append(Caveat(2, "One trusted party would have to hold all texts, which your answer excludes."))
    if purpose is not None and not method.purposes[purpose]:
        caveats.append(Caveat(2, method.mismatch[purpose]))
    assessment = method.assess(case, figures=not caveats)
    statement, texts, person = assessment.statement, case.data.most_texts, None
    guarantee, attack, commands = "Unknown without word vectors.", "", assessment.commands
    caveats += assessment.caveats
    if statement is not None:
        is_local_per_text = statement.unit is Unit.DOCUMENT and statement.trust is Trust.LOCAL
        if is_local_per_text and texts is not None and texts > 1:
            person = statement_for_user(statement, texts)
        caveats += _strength_caveats(statement, person, case.requirements)
        guarantee, attack = table_cells(statement, person=person, texts=texts or 1)
    if method.never is not None:
        caveats.append(Caveat(1, method.never))
    if method.needs_vectors and case.vectors is None:
        commands = (_INSTALL, *commands)
        caveats.append(Caveat(0, f"Install first: {_INSTALL}."))
    weight = max((caveat.weight for caveat in caveats), default=0)
    if len(case.requirements.unanswered) == 3:  # no answer that could exclude a method
        weight = min(weight, 1)
    return ComparedMethod(
        name=method.name,
        command=method.command,
        fit=(Fit.RECOMMENDED, Fit.POSSIBLE, Fit.UNSUITABLE)[weight],
        reasons=tuple(caveat.reason for caveat in sorted(caveats, key=lambda caveat: -caveat.weight)),
        statement=statement,
        good_for=assessment.good_for,
        accuracy=assessment.accuracy,
        commands=(*commands, *case.commands_after(method)),
        person=person,
        texts=texts,
        guarantee=guarantee,
        attack=attack,
        rank=method.purposes[purpose],
    )


def _strength_caveats(
    statement: PrivacyStatement, person: PrivacyStatement | None, requirements: Requirements
) -> Iterator[Caveat]:
    """Yield caveats about the size of the bound, per person where the number of texts is known."""
    strength = Strength.of((person or statement).epsilon)
    if strength is Strength.PROTECTS:
        return
    is_public = requirements.recipient == "public"
    weight = int(is_public) + (strength is Strength.TOO_LARGE)
    suffix = ", and a public release cannot be withdrawn" if is_public else ""
    if person is not None and Strength.of(statement.epsilon) is Strength.PROTECTS:
        reason = (
            "It protects one text, but not the user with the most texts here: take fewer texts per user, or divide "
            "epsilon by a public bound on their number"
        )
    else:
        reason = f"Its bound is {'weak' if strength is Strength.WEAK else 'too large to protect'}"
    yield Caveat(weight, f"{reason}{suffix}.")


# -- the page --------------------------------------------------------------------------------------------------------


def as_text(advice: Advice, width: int = WIDTH) -> str:
    """Return the advice as a page of text, the recommendation and its command first."""
    data, first = advice.data, advice.methods[0]
    identifying = [column for column in data.columns if column.reasons and column.name != data.roles.text]
    labels = ", ".join(column_name(data, name) for name in data.roles.labels)
    values = {"advice": advice, "data": data, "labels": labels, "visible": lambda name: column_name(data, name)}
    facts = [entry.partition(": ") for entry in paragraphs("methods/templates/facts.txt", **values)]
    page = filled(
        "methods/templates/advice.txt",
        advice=advice,
        owner=OWNER,
        facts=[(name, fact) for name, _, fact in facts],
        identifying=[(column_name(data, column.name), column.reasons) for column in identifying],
        first=first,
        is_bundled=advice.public == BUNDLED,
        unconfirmed=" or ".join(
            column_name(data, entry.name) for entry in data.roles.candidates if not data.roles.user
        ),
        has_placeholders=any(placeholder in " ".join(first.commands) for placeholder in PLACEHOLDERS),
    )
    return "\n".join(_wrap(line, width) for line in page.rstrip().split("\n"))


def _wrap(line: str, width: int) -> str:
    if line.startswith(("dptext ", "pip ", "    ")):  # a command
        return line
    name, tab, text = line.rpartition("\t")
    indent = _INDENT if name.strip() else 6 if tab else len(line) - len(line.lstrip())
    first = name.ljust(_INDENT if name.strip() else 0)
    return textwrap.fill(first + text, width - 1, subsequent_indent=" " * indent, break_on_hyphens=False)


def column_name(data: Data, name: str) -> str:
    """Return the name to display for a column: its number if the name could be a private value (no header)."""
    if len(name) <= _LONGEST_NAME and name.isprintable():
        return name
    return f"column {[column.name for column in data.columns].index(name) + 1}"
