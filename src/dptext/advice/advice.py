"""Which way suits somebody's texts: `advise`, and the `Advice` that comes back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dptext.advice import page
from dptext.advice.answers import Answers, Holder, Purpose, Recipient
from dptext.advice.bank import bank
from dptext.advice.corpus import corpus
from dptext.advice.data import Data, files_of, look
from dptext.advice.private_vectors import private_vectors
from dptext.advice.public import PublicTexts
from dptext.advice.shared_vectors import shared_vectors
from dptext.advice.way import Case, Fit, Way
from dptext.advice.words import words
from dptext.errors import ParameterError
from dptext.io.atomic import is_same
from dptext.privacy.wording import Strength
from dptext.text.identifiers import Column

_WAYS = (corpus, shared_vectors, bank, private_vectors, words)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What `advise` found."""

    data: Data
    answers: Answers
    ways: tuple[Way, ...]
    recommendation: str
    public: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the rows, with the reasons why one may say who a row is from."""
        return self.data.columns

    @property
    def recommended(self) -> Way | None:
        """The way that suits best, if one does."""
        return next((each for each in self.ways if each.fit is Fit.RECOMMENDED), None)

    def way(self, name: str) -> Way:
        """One of the ways, by its name or its command."""
        for each in self.ways:
            if name in (each.name, each.command):
                return each
        raise KeyError(f"the ways are {', '.join(each.name for each in self.ways)}")

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for its owner."""
        return {
            "for_the_owner_only": True,
            "answers": {name: getattr(self.answers, name) for name in ("purpose", "recipient", "trust")},
            "data": self.data.as_dict(),
            "ways": [each.as_dict() for each in self.ways],
            "recommended": None if self.recommended is None else self.recommended.name,
            "recommendation": self.recommendation,
            "public": self.public,
        }

    def __str__(self) -> str:
        return page.as_text(self)

    def __repr__(self) -> str:
        found = self.recommended
        return (
            f"<Advice: {'nothing' if found is None else found.name} recommended, {len(self.ways)} ways; for the owner>"
        )

    def _repr_html_(self) -> str:
        return page.as_html(self)


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
    suffix: str | None = None,
    seed: int | None = None,
) -> Advice:
    """What each way would promise for these texts, be good for and give away; which suits; and the command for it.

    Promises are those of the real mechanisms, built without a look at a private text. Figures come from public texts,
    from public numbers, or from the pages under ``papers``, which are named. Of the rows only columns and counts are
    looked at, for their owner: **the advice is private, and nothing is written.** No value of a row is in it, but names
    of columns are.

    Args:
        source: a path, or a list of `pathlib.Path` objects (files, folders, patterns); a table (pandas, polars,
            pyarrow, ``datasets.Dataset``); a list of mappings, of texts, or of `dptext.Document` objects.
        text, user, label: the columns with the text, the person who wrote it, and labels; None: guessed.
        purpose: "read" (texts that people read), "classify" (train a classifier), "vectors" (share word vectors),
            "devices" (send vectors of texts from devices), "statistics" (what many people write, or something else).
        recipient: "public", "partner" or "colleagues".
        trust: "central": somebody is trusted with all texts; "local": nobody is, each owner or device protects itself.
        public: public texts for previews and figures, as `dptext.Pool` takes them; None: bundled utterances.
        public_text: their column, in files and tables.
        public_label: column of public labels, in files: the accuracy of a synthetic corpus is then predicted.
        suffix: the format of files whose names do not tell.
        seed: of the previews, to see the same again.

    Raises:
        ParameterError: an answer or a column that there is not; no column of texts; a pipe; a file of
            the rows as ``public``.
        DataError: no rows; a broken file.
        StorageError: a file cannot be read.

    >>> found = advise("notes.jsonl", purpose="read", recipient="public", trust="local")  # doctest: +SKIP
    >>> print(found.recommendation)  # doctest: +SKIP
    """
    answers = Answers(purpose=purpose, recipient=recipient, trust=trust)
    labels = (label,) if isinstance(label, str) else label
    data = look(source, text=text, user=user, labels=labels, suffix=suffix)
    own = files_of(source, suffix=suffix) if public is not None and data.files else []
    if any(is_same(one, other) for one in own for other in files_of(public)):
        raise ParameterError(
            "public holds a file of the rows themselves: texts of other people are shown and drawn from"
        )
    texts = (
        PublicTexts.bundled(seed)
        if public is None
        else PublicTexts.given(public, text=public_text, label=public_label, seed=seed)
    )
    return advised(Case(data=data, answers=answers, public=texts))


def advised(case: Case) -> Advice:
    """The advice that follows from what is known: no row is looked at."""
    answers = case.answers
    ways = _with_the_best([way(case) for way in _WAYS])
    return Advice(
        data=case.data,
        answers=answers,
        ways=ways,
        recommendation=_recommendation(ways, answers),
        public=case.public.name,
    )


def _with_the_best(ways: Sequence[Way]) -> tuple[Way, ...]:
    """The best of those that nothing stands against is recommended; then come the possible ones, then the others."""
    able = [each for each in ways if each.is_clear and each.rank]
    best = max(able, key=lambda each: each.rank, default=None)
    judged = [replace(each, fit=Fit.RECOMMENDED) if each is best else each for each in ways]
    return tuple(sorted(judged, key=lambda each: (list(Fit).index(each.fit), -each.rank)))


def _recommendation(ways: Sequence[Way], answers: Answers) -> str:
    """Two sentences."""
    best = next((each for each in ways if each.fit is Fit.RECOMMENDED), None)
    open_questions = [f"--{name}" for name in ("purpose", "recipient", "trust") if getattr(answers, name) is None]
    if best is not None:
        first = f"Make {_with_article(best)} (dptext {best.command})"
        second = _why(best)
        if open_questions:
            second += f" This may change with {_listed(open_questions)}."
        return f"{first}. {second}" if not open_questions else f"{first}, which suits best of what is known. {second}"
    if not answers.any:
        return (
            "Nothing is ruled out yet: say what it is for, who gets it and who may hold all texts "
            "(--purpose, --recipient, --trust). To start with, read the first row, which protects most for its epsilon."
        )
    nearest = max(ways, key=lambda each: each.rank)
    reason = nearest.reasons[0] if nearest.reasons else "It does not serve this purpose."
    return (
        f"Nothing here both protects and serves this purpose. Nearest is {_with_article(nearest)}: {_lowered(reason)}"
    )


def _why(way: Way) -> str:
    said = way.person or way.statement
    assert said is not None  # words alone can have none, and are never recommended
    strength = Strength.of(said.epsilon)
    if strength is Strength.PROTECTS:
        whom = "each person, with all their texts," if said.unit == "user" else "each text"
        return f"It protects {whom} at epsilon {said.epsilon:g}, and serves this purpose best of the ways that do."
    promised = f"each text epsilon {way.statement.epsilon:g}" if way.statement is not None else ""
    if way.person is not None:
        promised += f"{', and ' if promised else ''}somebody with the most texts here epsilon {way.person.epsilon:g}"
    return f"It promises {promised}, and serves this purpose best of what is left. {strength.value}"


def _with_article(way: Way) -> str:
    return f"a {way.name}" if way.name.startswith("synthetic") else way.name


def _listed(items: Iterable[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
