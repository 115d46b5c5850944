"""Which way suits somebody's texts: `advise`, and the `Advice` that comes back."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dptext.advice.data import Data, files_of, look
from dptext.advice.methods import METHODS
from dptext.advice.questions import TO_FILL_IN, Answers, Holder, Purpose, Recipient
from dptext.advice.way import Case, Fit, PublicTexts, Way
from dptext.errors import ParameterError
from dptext.io.atomic import is_same
from dptext.privacy.wording import Strength, filled
from dptext.text.identifiers import Column

WIDTH = 80
_LONGEST_NAME = 40
OWNER = (
    "For you alone: this counts private rows. Do not hand it on, and take no number "
    "of it into a command: numbers of people and of texts there are public ones."
)
_PUBLIC_NUMBERS = (
    "To paste. Numbers such as -n are public ones: round ones here, and never a count of the private rows."
)
_TO_FILL_IN = (
    f"{_PUBLIC_NUMBERS} What stands in capitals is yours to fill in: public texts, their licence, public labels; "
    "chosen without a look at the private rows."
)


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
        return as_text(self)

    def __repr__(self) -> str:
        found = self.recommended
        return (
            f"<Advice: {'nothing' if found is None else found.name} recommended, {len(self.ways)} ways; for the owner>"
        )

    def _repr_html_(self) -> str:
        return as_html(self)


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
    ways = _with_the_best([method(case).way() for method in METHODS])
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
    reason = f"{reason[0].lower()}{reason[1:]}"
    return f"Nothing here both protects and serves this purpose. Nearest is {_with_article(nearest)}: {reason}"


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


def _listed(items: Sequence[str]) -> str:
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


# -- pages for a terminal and for a notebook ---------------------------------------------------------------------------


def as_text(advice: Advice, width: int = WIDTH) -> str:
    """The page, in so many columns."""
    parts = [
        _wrapped(OWNER, width),
        "\n".join(_seen(advice.data, width)),
        "\n".join(_identifying(advice.data, width)),
        _table(advice, width),
        "\n\n".join(_commands(advice, width)),
        "\n".join(_previews(advice, width)),
        _wrapped(advice.recommendation, width),
    ]
    return "\n\n".join(each for each in parts if each)


def as_html(advice: Advice) -> str:
    return filled(
        "advice/templates/advice.html",
        advice=advice,
        owner=OWNER,
        seen=_facts(advice.data),
        identifying=[(column_name(advice.data, each.name), each.reasons) for each in advice.columns if each.reasons],
        fit=Fit,
    )


def column_name(data: Data, name: str) -> str:
    """How a column is called: a file without a line of names has a row in their place."""
    if len(name) <= _LONGEST_NAME and name.isprintable():
        return name
    return f"column {[each.name for each in data.columns].index(name) + 1}"


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width - 1, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


# -- what was seen -------------------------------------------------------------------------------------------------


def _facts(data: Data) -> list[tuple[str, str]]:
    roles, guessed = data.roles, data.roles.guessed

    def named(role: str, name: str) -> str:
        return column_name(data, name) + (" (a guess)" if role in guessed else "")

    rows = f"{data.rows:,}" + ("" if data.is_all else " (the first ones: more were not counted)")
    rows += f", {data.unread:,} that cannot be read" if data.unread else ""
    rows += f", {data.empty:,} without a text" if data.empty else ""
    found = [
        ("rows", rows),
        ("text", f"{named('text', roles.text)}: {data.words[0]:,} words, the longest {data.words[1]:,}"),
    ]
    person, labels = "no column says who wrote a text (--user COLUMN)", "no column of few values (--label COLUMN)"
    if roles.user is not None:
        each = "one text each" if data.most_texts == 1 else f"up to {data.most_texts or 0:,} texts each"
        person = f"{named('user', roles.user)}: {data.people:,} people, {each}"
    if roles.labels:
        which = ", ".join(column_name(data, each) for each in roles.labels)
        which += " (a guess)" if "labels" in guessed else ""
        labels = f"{which}: {data.classes:,} classes, the rarest with {data.rarest or 0:,} rows"
    return [*found, ("person", person), ("labels", labels)]


def _seen(data: Data, width: int) -> Iterator[str]:
    for name, fact in _facts(data):
        yield textwrap.fill(fact, width - 1, initial_indent=f"  {name:<8}", subsequent_indent=" " * 10)


def _identifying(data: Data, width: int) -> Iterator[str]:
    found = [each for each in data.columns if each.reasons and each.name != data.roles.text]
    if not found:
        return
    yield _wrapped("Columns that may say who a row is from (what is kept with --keep leaves as it is):", width)
    for each in found:
        head = f"  {column_name(data, each.name):<8} "
        yield textwrap.fill("; ".join(each.reasons), width - 1, initial_indent=head, subsequent_indent=" " * 11)


# -- the table -----------------------------------------------------------------------------------------------------


def _table(advice: Advice, width: int) -> str:
    table = Table(expand=True, pad_edge=False, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("way", width=12)
    table.add_column("", no_wrap=True, width=9)
    table.add_column("what it would be here", ratio=1)
    for way in advice.ways:
        name = Text(f"{way.name}\n{str(way.fit).upper()}")
        for aspect, said in _aspects(way):
            table.add_row(name, Text(aspect), Text(said))
            name = Text("")
        table.add_row("", "", "")
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n")).strip("\n")


def _aspects(way: Way) -> list[tuple[str, str]]:
    said = [("promise", way.promise), ("here", " ".join(way.reasons))]
    if way.fit is not Fit.NOT_HERE:
        said[1:1] = [("good for", way.good_for), ("attacker", way.attacker)]
    return [(name, each) for name, each in said if each]


# -- commands and previews -----------------------------------------------------------------------------------------


def _commands(advice: Advice, width: int) -> Iterator[str]:
    shown = [each for each in advice.ways if each.fit is not Fit.NOT_HERE]
    if not shown:
        return
    has_capitals = any(each in line for way in shown for line in way.pasted for each in TO_FILL_IN)
    yield _wrapped(_TO_FILL_IN if has_capitals else _PUBLIC_NUMBERS, width)
    for way in shown:
        lines = [f"{way.name}:"]
        lines += [f"  {line}" for command in way.pasted for line in command.split("\n")]
        yield "\n".join(lines)


def _previews(advice: Advice, width: int) -> Iterator[str]:
    shown = [each for each in advice.ways if each.fit is not Fit.NOT_HERE]
    yield _wrapped(f"What comes out, made of public texts alone ({advice.public}):", width)
    for way in shown:
        yield ""
        yield f"{way.name}"
        if way.preview.missing is not None:
            yield _wrapped(way.preview.missing, width, "  ")
        for before, after in way.preview.pairs:
            said = f"{before} -> {after}" if before else after
            yield textwrap.fill(said, width - 1, initial_indent="  ", subsequent_indent="      ")
