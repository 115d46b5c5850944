"""What is recognised in a text is taken out before a mechanism sees it, and the promise says so (`Redacted`)."""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import regex

from dptext.checks import path
from dptext.errors import DataError, ParameterError, StorageError, extra
from dptext.privacy.condition import AfterRedaction
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import after_redaction
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.wording import before_redaction
from dptext.release.mechanism import Replacing, TextMechanism
from dptext.release.release import Tally
from dptext.showing import Facts
from dptext.text.placeholders import mark, placeholder, shown, unmarked
from dptext.text.recognition import KINDS, VERSION, Found, checked_kinds, matches
from dptext.text.tokens import fold, letters_between

__all__ = [
    "LISTED",
    "Analyzer",
    "Redacted",
    "Redaction",
    "Terms",
    "as_redacted",
    "behind",
    "is_listed",
    "is_redacted",
    "placeholders_of",
    "public_form",
    "read_terms",
    "redaction_of",
]

LISTED = "listed"
"""The kind of what stands on the list of the owner."""
UNREAD = "unread"
"""The kind of a whole text on which an analyzer fails."""
OTHER = "other"
"""The kind of what an analyzer finds and did not announce."""
PRESIDIO = "presidio"
ON_THE_LIST = "what stands on the list"
_MOST_TERMS, _LONGEST_TERM, _WIDEST_GAP = 5_000_000, 32, 3
_KIND_OF = {
    "PERSON": "name",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip",
    "DATE_TIME": "date",
    "LOCATION": "place",
}
"""What the entities of Presidio are called here."""
_KNOWN_KINDS = frozenset((*KINDS, *_KIND_OF.values()))
_logger = logging.getLogger(__name__)
# scripts that put no space between words: each letter is looked up by itself
_RUN = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*"
    r"|[[\p{L}\p{N}\p{M}]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]+",
    regex.V1,
)


_ATTACHED: Any = regex.compile(r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+", regex.V1)


class Analyzer(Protocol):
    """What finds entities in a text, as Presidio's ``AnalyzerEngine`` does. Its answer depends on the text alone."""

    def analyze(self, *, text: str, language: str, entities: list[str] | None) -> Iterable[Any]:
        """Results with ``start``, ``end`` and ``entity_type``."""
        ...


# -- terms of a list ------------------------------------------------------------------------------------------


class Terms:
    """Terms that are found wherever they stand as whole words: case folded, with any short gap between their words.

    Args:
        terms: names, code words, anything. A text takes time that does not depend on how many there are.

    Raises:
        ParameterError: one string; an entry that is no string, or has no letter or digit, or more than 32 words.

    >>> terms = Terms(["Ann Lee", "ACME"])
    >>> list(terms.found("ann-lee of Acme, not acmes"))
    [Found(start=0, end=7, kind='listed'), Found(start=11, end=15, kind='listed')]
    """

    def __init__(self, terms: Iterable[str]) -> None:
        if isinstance(terms, str):
            raise ParameterError("words must be a list of terms, got one string: put it into a list")
        known: set[tuple[str, ...]] = set()
        for place, term in enumerate(terms, 1):
            if not isinstance(term, str):
                raise ParameterError(f"words must be strings, entry {place:,} is {type(term).__name__}")
            words = tuple(fold(found[0]) for found in _RUN.finditer(term))
            if not 1 <= len(words) <= _LONGEST_TERM:
                raise ParameterError(
                    f"entry {place:,} of words has {len(words):,} words: expected 1 to {_LONGEST_TERM} of them, of "
                    "letters and digits"
                )
            if place > _MOST_TERMS:
                raise ParameterError(f"expected at most {_MOST_TERMS:,} words to redact, got more")
            known.add(words)
        self._known = frozenset(known)
        lengths: dict[str, set[int]] = {}
        for words in self._known:
            lengths.setdefault(words[0], set()).add(len(words))
        self._lengths = {first: tuple(sorted(each, reverse=True)) for first, each in lengths.items()}

    def __bool__(self) -> bool:
        return bool(self._known)

    def found(self, text: str) -> Iterator[Found]:
        """The longest term at each place, from the left, without overlap."""
        spans = [found.span() for found in _RUN.finditer(text)]
        words = [fold(text[start:end]) for start, end in spans]
        place = 0
        while place < len(words):
            length = self._length_at(place, words, spans)
            if length:
                yield Found(spans[place][0], spans[place + length - 1][1], LISTED)
            place += length or 1

    def _length_at(self, place: int, words: list[str], spans: list[tuple[int, int]]) -> int:
        for length in self._lengths.get(words[place], ()):
            if tuple(words[place : place + length]) in self._known:
                near = range(place, place + length - 1)
                if all(spans[each + 1][0] - spans[each][1] <= _WIDEST_GAP for each in near):
                    return length
        return 0

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the terms. Whoever has it can test guesses: it is for their owner alone."""
        spelled = "\n".join(sorted("\t".join(words) for words in self._known))
        return hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()


def read_terms(file: Any) -> list[str]:
    """The terms in a file of UTF-8 text, one a line; empty lines are left out.

    Raises:
        ParameterError: there is none, it is not UTF-8, or a line has no letter or digit; the line is named, its content
            never is.
        StorageError: it cannot be read.
    """
    named = path("the list of what to redact", file)
    try:
        lines = Path(named).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise ParameterError(f"{named.name}: expected UTF-8 text with one term a line") from None
    except OSError as error:
        raise StorageError.of("read", named, error) from None
    terms = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if not 1 <= sum(1 for _ in _RUN.finditer(line)) <= _LONGEST_TERM:
            raise ParameterError(
                f"{named.name}, line {number:,}: expected a term of 1 to {_LONGEST_TERM} words of letters and digits"
            )
        terms.append(line.strip())
    if not terms:
        raise ParameterError(f"{named.name}: expected one term a line, got none")
    return terms


# -- the map of texts -------------------------------------------------------------------------------------------


class Redaction:
    """What is taken out of a text: a map that makes of a text what depends on this text alone.

    Args:
        kinds, words, analyzer, language, entities: as in `Redacted`.
    """

    def __init__(
        self,
        *,
        kinds: Iterable[str] = KINDS,
        words: Iterable[str] | Terms = (),
        analyzer: Analyzer | str | None = None,
        language: str = "en",
        entities: Iterable[str] | None = None,
    ) -> None:
        self.kinds = checked_kinds(kinds)
        self.terms = words if isinstance(words, Terms) else Terms(words)
        if analyzer is None and entities is not None:
            raise ParameterError("entities are those of an analyzer: give one, or leave them out")
        if isinstance(analyzer, str) and analyzer != PRESIDIO:
            raise ParameterError(f"analyzer must be {PRESIDIO!r}, or an object that analyzes texts as Presidio's does")
        self._given = analyzer
        self.language = language
        self.entities: tuple[str, ...] | None = None
        self._made: Any = None
        if analyzer is not None:
            self.entities = self._checked(entities)
        if not self.kinds and not self.terms and analyzer is None:
            raise ParameterError(f"nothing is to be redacted: name kinds ({', '.join(KINDS)}), words or an analyzer")

    @property
    def _analyzer(self) -> Any:
        if self._made is None:
            self._made = _default_analyzer() if isinstance(self._given, str) else self._given
        return self._made

    def _checked(self, entities: Iterable[str] | None) -> tuple[str, ...]:
        """What the analyzer looks for; it is asked once, so that one that cannot answer is refused before a text."""
        if isinstance(entities, str):
            raise ParameterError("entities must be a list of names, got one string: put it into a list")
        analyzer, language = self._analyzer, self.language
        if not callable(getattr(analyzer, "analyze", None)):
            raise ParameterError(f"analyzer must have analyze(text=, language=, entities=), got {_type_of(analyzer)}")
        try:
            known = getattr(analyzer, "get_supported_entities", lambda **_: ())(language=language)
            found = tuple(dict.fromkeys(map(str, known if entities is None else entities)))
            list(analyzer.analyze(text="A public text.", language=language, entities=list(found) or None))
        except Exception as error:  # noqa: BLE001  it is anybody's
            raise ParameterError(
                f"the analyzer fails on a public text in the language {language!r} ({type(error).__name__}): it needs "
                "recognisers and a model for this language, and entities that it knows"
            ) from None
        return found

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_made"] = None  # of the default, each process makes its own
        if self._given is not None and not isinstance(self._given, str):
            try:
                pickle.dumps(self._given)
            except Exception:  # noqa: BLE001
                raise ParameterError(
                    f"the analyzer ({_type_of(self._given)}) cannot be sent to another process: use one process"
                ) from None
        return state

    def pieces(self, text: str) -> list[Found]:
        """What is taken out: pieces that overlap are one, of the kind of the longest."""
        candidates = [*self.terms.found(text), *matches(text, self.kinds)]
        if self._given is not None:
            try:
                candidates += self._analyzed(text)
            except (Exception, SystemExit) as error:  # noqa: BLE001  nothing private decides whether a release ends in an error
                _logger.warning("the analyzer failed on a text (%s): all of it was redacted", type(error).__name__)
                return [Found(0, len(text), UNREAD)]
        return united(_with_what_attaches(text, each) for each in candidates)

    def _analyzed(self, text: str) -> list[Found]:
        asked = None if not self.entities else list(self.entities)
        found = []
        for each in self._analyzer.analyze(text=text, language=self.language, entities=asked):
            start, end = max(0, int(each.start)), min(len(text), int(each.end))
            if start < end:
                found.append(Found(start, end, self._kind_of(str(each.entity_type))))
        return found

    def _kind_of(self, entity: str) -> str:
        """Of one that was not announced: a public name, or one for all others. It may be made of the text."""
        kind = kind_of_entity(entity)
        return kind if entity in (self.entities or ()) or kind in _KNOWN_KINDS else OTHER

    def applied(self, text: str, stands: Callable[[str], str] = placeholder) -> str:
        """The text, with what ``stands`` for a kind in place of each piece."""
        parts, done = [], 0
        for start, end, kind in self.pieces(text):
            parts += [unmarked(text[done:start]), stands(kind)]
            done = end
        return "".join((*parts, unmarked(text[done:])))

    @property
    def recogniser(self) -> str:
        """By what things are recognised."""
        by = [f"patterns of dptext, version {VERSION}"] if self.kinds else []
        if self._given is not None:
            by.append(f"{_type_of(self._analyzer)}, language {self.language}")
        if self.terms:
            by.append("a list of the owner")
        return "; ".join(by)

    @property
    def looked_for(self) -> str:
        """The kinds, in words."""
        named = [_BY_FORM.get(each, each) if self._given is None else each for each in self.kinds]
        if self.entities:
            named += [each for each in self.entities if each not in named]
        return ", ".join((*named, *([ON_THE_LIST] if self.terms else [])))


_BY_FORM = {"name": 'name (after a title or "my name is" alone: list others with --redact-list)'}
"""What a kind is where patterns alone look for it: whoever reads "name" would expect every name to be found."""


def _with_what_attaches(text: str, found: Found) -> Found:
    """The piece with the accents, joiners and modifiers after it: they are of its last letter, and would else be of
    the last letter of its mark, which would be none any more."""
    return found._replace(end=_ATTACHED.match(text, found.end).end())


def united(candidates: Iterable[Found]) -> list[Found]:
    """Pieces that overlap as one piece, of the kind of the longest of them; in order."""
    groups: list[list[Found]] = []
    end = 0
    for each in sorted(candidates, key=lambda found: found.start):
        if groups and each.start < end:
            groups[-1].append(each)
        else:
            groups.append([each])
        end = max(end, each.end)
    return [
        Found(group[0].start, max(each.end for each in group), max(group, key=lambda one: one.end - one.start).kind)
        for group in groups
    ]


def kind_of_entity(entity: str) -> str:
    """What an entity of Presidio is called in a placeholder.

    >>> kind_of_entity("PERSON"), kind_of_entity("US_DRIVER_LICENSE"), kind_of_entity("Type 2")
    ('name', 'us_driver_license', 'type__')
    """
    if entity in _KIND_OF:
        return _KIND_OF[entity]
    return "".join(each if "a" <= each <= "z" else "_" for each in entity.lower())[:40] or "_"


def _default_analyzer() -> Any:
    module = extra("presidio_analyzer", "presidio", "redaction by Presidio")
    try:
        return module.AnalyzerEngine()
    except (Exception, SystemExit) as error:  # noqa: BLE001  without a model it downloads one, or exits
        raise ParameterError(
            f"Presidio's default analyzer cannot be made ({type(error).__name__}): it needs a model of spaCy (python "
            "-m spacy download en_core_web_lg), or give Redacted an analyzer with a model of your own"
        ) from None


def _type_of(analyzer: object) -> str:
    package = type(analyzer).__module__.partition(".")[0]
    try:
        return f"{type(analyzer).__name__} of {package.replace('_', '-')} {version(package)}"
    except (PackageNotFoundError, ValueError):
        return f"{type(analyzer).__name__} of {package}"


# -- the mechanism ----------------------------------------------------------------------------------------------


class Redacted(TextMechanism):
    """A mechanism that sees a text only after what is recognised in it was replaced by placeholders (``<name>``).

    **Guarantee.** Let r be the redaction: a map of texts, which makes of a text what depends on this text alone. Then

        P(M(r(x)) = z) <= e^L(r(x), r(x')) P(M(r(x')) = z)

    with the loss L that M promises between two texts (`dptext.privacy.restating.after_redaction`). *Recognition
    promises nothing*: what it does not find goes through M like every other word, and the bound of M is all there is.

    - Where M promises one epsilon for **any two texts** (a bank with ``unit="document"``), r(x) and r(x') are two, and
      the promise is the same.
    - Where the loss grows with a distance, or the promise is for texts of equal layout or length, for a word or a
      sentence, it is one **between the texts as they are once redacted**. It does not bound what tells x from x'. One
      letter can decide whether something is recognised, so that texts at a small distance can become texts at a large
      one, or of another layout; a recogniser that looks at context may find other things anywhere in the text. The
      statement says so: its condition and its metric are about redacted texts (``AfterRedaction``).

    A placeholder shows that something of its kind was recognised at its place. Words are put in its stead by nobody: it
    stands as it is in texts of a word mechanism. A bank sees it as part of the sentence, and whole texts of the bank
    come out.

    Assumptions: recognisers and list were fixed without regard to the texts of the release, and what is recognised in a
    text depends on nothing else. A list made of the very texts can show, by what is a placeholder, what stands in them.

    Args:
        mechanism: what replaces the texts afterwards, such as `dptext.TEM` or `dptext.BankRewriter`.
        kinds: what patterns look for (`dptext.text.recognition`); none: only words, or the analyzer.
        words: terms to redact, whole words, whatever their case (``--redact-list``): names of clients, code words. The
            statement says that there is a list; neither what stands on it nor how long it is.
        analyzer: an ``AnalyzerEngine`` of Presidio with recognisers and models of the caller's, or ``"presidio"`` for
            its default (English, where installed); used beside the patterns. A text on which it fails is redacted as a
            whole.
        language: of the texts, for the analyzer.
        entities: what the analyzer looks for, by its names (``"PERSON"``); None: all that it knows.

    Raises:
        ParameterError: a mechanism that redacts already; another kind; nothing to redact; an analyzer that fails on a
            public text.
        MissingExtraError: Presidio is not installed.

    >>> from dptext import TEM, load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = Redacted(TEM(vectors, epsilon=200.0, threshold=0.2), kinds=["name", "phone"], words=["rex"])
    >>> mechanism.sample(["Dr. Ann Lee (212-555-0187): Rex, a dog"])
    ['<unk>. <name> (<phone>): <listed>, <unk> dog']
    >>> print(mechanism.statement.neighbours)
    any two words that could stand at one place of the text, the unknown word among them, once it is redacted
    """

    name = "Redacted"

    def __init__(
        self,
        mechanism: TextMechanism,
        *,
        kinds: Iterable[str] = KINDS,
        words: Iterable[str] | Terms = (),
        analyzer: Analyzer | str | None = None,
        language: str = "en",
        entities: Iterable[str] | None = None,
    ) -> None:
        if not isinstance(mechanism, TextMechanism):
            raise ParameterError(
                "mechanism must be one that replaces texts (a word mechanism such as TEM, or a BankRewriter), got "
                f"{type(mechanism).__name__}"
            )
        if isinstance(mechanism, Redacted):
            raise ParameterError(
                "the mechanism redacts already: give all kinds and words to one Redacted around what is inside of it"
            )
        self.mechanism = mechanism
        self.redaction = Redaction(kinds=kinds, words=words, analyzer=analyzer, language=language, entities=entities)
        self._freeze()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "mechanism" not in self.__dict__:
            raise AttributeError(name)
        raise AttributeError(
            f"a redacted mechanism has no {name!r}; what is behind the redaction is its attribute 'mechanism'"
        )

    def _in_brief(self) -> Facts:
        return (("redacted_by", self.redaction.recogniser), ("mechanism", self.mechanism))

    def redact(self, text: str) -> str:
        """The text as it is once redacted, with placeholders; no noise is in it, and no promise covers it."""
        return self.redaction.applied(text)

    def seen_by_mechanism(self, text: str) -> str:
        """The text as the mechanism sees it: with marks, where it keeps them (`dptext.text.placeholders`)."""
        return self.redaction.applied(text, mark if self.mechanism.keeps_marks else placeholder)

    def sample(self, texts: Iterable[str], *, seed: int | None = None) -> list[str]:
        """One private text for each text; without a statement (`dptext.privatize` gives one).

        Args:
            texts: strings.
            seed: None for cryptographic randomness; an integer for tests and papers only.
        """
        if isinstance(texts, str):
            raise ParameterError("texts must be a list of strings, got one string: put it into a list")
        given = list(texts)
        for place, text in enumerate(given, 1):
            if not isinstance(text, str):
                raise ParameterError(f"texts must be strings, entry {place} is {type(text).__name__}")
        return self.replacing()(given, RandomBits(seed))[0]

    # -- the promise ------------------------------------------------------------------------------------------

    @property
    def statement(self) -> PrivacyStatement:
        """See `TextMechanism`: for one part of a redacted text."""
        return self._restated(self.mechanism.statement)

    def document_statement(self, longest: int, *, seeded: bool = False) -> PrivacyStatement:
        """See `TextMechanism`."""
        return self._restated(self.mechanism.document_statement(longest, seeded=seeded))

    def _restated(self, statement: PrivacyStatement) -> PrivacyStatement:
        return as_redacted(statement, self._own_parameters(), shows_placeholders=self.mechanism.keeps_marks)

    def _own_parameters(self) -> dict[str, Parameter]:
        return {
            "redacted_by": self.redaction.recogniser,
            "redacted_kinds": ", ".join(self.redaction.kinds),
            "redacted_entities": None if self.redaction.entities is None else ", ".join(self.redaction.entities),
            "redacted_list": bool(self.redaction.terms),
        }

    def parameters(self) -> dict[str, Parameter]:
        """See `TextMechanism`."""
        return {**self.mechanism.parameters(), **self._own_parameters()}

    def settings_of_owner(self) -> dict[str, Parameter]:
        """See `TextMechanism`: which list it is."""
        own = {"redact-list": self.redaction.terms.digest} if self.redaction.terms else {}
        return {**self.mechanism.settings_of_owner(), **own}

    @property
    def longest_document(self) -> int | None:
        """See `TextMechanism`."""
        return self.mechanism.longest_document

    def promise_before_start(self) -> str:
        """See `TextMechanism`."""
        return before_redaction(
            self.mechanism.promise_before_start(),
            self.redaction,
            restated=self.document_statement(1).condition.has(AfterRedaction)
            or isinstance(self.statement.guarantee, MetricDP),
        )

    # -- the work ---------------------------------------------------------------------------------------------

    def replacing(self) -> Replacing:
        """See `TextMechanism`."""
        return _Replacing(self)

    def warning(self, tally: Tally) -> str | None:
        """See `TextMechanism`."""
        return self.mechanism.warning(tally)

    def parts_in(self, private_text: str) -> int:
        """See `TextMechanism`: of the redacted text. A placeholder counts as a part, where there is none."""
        return self.mechanism.parts_in(private_text)

    def most_parts(self, private_texts: Iterable[str]) -> int:
        """See `TextMechanism`."""
        return self.mechanism.most_parts(private_texts)


class _Replacing:
    """See `dptext.release.mechanism.Replacing`."""

    def __init__(self, redacted: Redacted) -> None:
        self._redacted, self._inner = redacted, redacted.mechanism.replacing()

    def __call__(self, texts: Sequence[str], bits: RandomBits) -> tuple[list[str], Tally]:
        private, tally = self._inner([self._redacted.seen_by_mechanism(text) for text in texts], bits)
        return list(map(shown, private)) if self._redacted.mechanism.keeps_marks else private, tally


# -- from a statement ---------------------------------------------------------------------------------------------


def as_redacted(
    statement: PrivacyStatement, parameters: Mapping[str, Parameter], *, shows_placeholders: bool
) -> PrivacyStatement:
    """What a mechanism promises behind a redaction (`Redacted`).

    Args:
        statement: of the mechanism.
        parameters: what the redaction is, as among the parameters of its statement.
        shows_placeholders: whether placeholders come out.
    """
    by = parameters["redacted_by"]
    named = [parameters["redacted_kinds"], parameters["redacted_entities"]]
    kinds = list(dict.fromkeys(each for some in named if some for each in str(some).split(", ")))
    looked_for = ", ".join((*kinds, *([ON_THE_LIST] if parameters["redacted_list"] else [])))
    assumed = [
        "what recognises things in a text was fixed without regard to the texts of the release, and depends on nothing "
        "but the text that it looks at",
        f"recognition promises nothing ({by}; looked for: {looked_for}): what it did not recognise went through the "
        "mechanism like everything else",
    ]
    if isinstance(statement.guarantee, MetricDP):
        assumed.append(
            "where promises for redacted texts are added up, the distance that counts is the largest of those between "
            "the texts as each release redacted them"
        )
    visible = "that something was recognised, where, and of which kind: a fixed placeholder stands for each"
    return after_redaction(
        statement,
        mechanism=f"{Redacted.name} {statement.mechanism}",
        parameters={**statement.parameters, **{name: parameters[name] for name in _PARAMETERS}},
        assumptions=(*statement.assumptions, *assumed),
        exposed=(*statement.exposed, *((visible,) if shows_placeholders else ())),
    )


_PARAMETERS = ("redacted_by", "redacted_kinds", "redacted_entities", "redacted_list")


def is_redacted(statement: PrivacyStatement) -> bool:
    """Whether the statement speaks of texts that were redacted first."""
    return all(name in statement.parameters for name in _PARAMETERS)


def is_listed(statement: PrivacyStatement) -> bool:
    """Whether they were redacted by a list of the owner."""
    return is_redacted(statement) and bool(statement.parameters["redacted_list"])


def behind(statement: PrivacyStatement) -> str:
    """The name of the mechanism that saw the texts, redacted or not."""
    return statement.mechanism.removeprefix(f"{Redacted.name} ") if is_redacted(statement) else statement.mechanism


def placeholders_of(statement: PrivacyStatement) -> frozenset[str]:
    """The runs of letters that stand in placeholders of the redaction of a statement."""
    if not is_redacted(statement):
        return frozenset()
    said = statement.parameters
    kinds = [*str(said["redacted_kinds"] or "").split(", "), LISTED, UNREAD]
    if said["redacted_entities"] is not None:
        kinds += [*_KNOWN_KINDS, OTHER]
    kinds += [kind_of_entity(each) for each in str(said["redacted_entities"] or "").split(", ") if each]
    return frozenset(run for kind in kinds for run in letters_between(kind))


def public_form(mechanism: TextMechanism, statement: PrivacyStatement) -> TextMechanism | None:
    """The mechanism with as much of the redaction of a statement as everybody may see: without the list.

    None: an analyzer redacted, or other patterns, so that texts of today would show something else.
    """
    if not is_redacted(statement):
        return mechanism
    said = statement.parameters
    kinds = [each for each in str(said["redacted_kinds"] or "").split(", ") if each]
    by = Redaction(kinds=KINDS).recogniser
    if said["redacted_entities"] is not None or (kinds and by not in str(said["redacted_by"])):
        return None
    return Redacted(mechanism, kinds=kinds) if kinds else mechanism


def redaction_of(statement: PrivacyStatement, *, words: Iterable[str] = ()) -> Redaction | None:
    """The redaction of which a statement speaks; None: nothing was redacted.

    Args:
        statement: of a release of texts.
        words: the list that was used, which no statement holds.

    Raises:
        DataError: it was another version's, or an analyzer's, which no statement holds; or there was a list, and it
            is not given; or there was none, and one is.
    """
    if not is_redacted(statement):
        return None
    said, terms = statement.parameters, Terms(words)
    if said["redacted_entities"] is not None:
        raise DataError(
            "the texts were redacted by an analyzer, which no statement holds: what the mechanism saw cannot be made "
            "again from the originals; redact them yourself (Redacted(...).redact), and compare with those"
        )
    if said["redacted_list"] and not terms:
        raise DataError("the texts were redacted by a list, which no statement holds: give it again (--redact-list)")
    if terms and not said["redacted_list"]:
        raise DataError("the texts were redacted without a list: leave it out")
    found = Redaction(kinds=[each for each in str(said["redacted_kinds"]).split(", ") if each in KINDS], words=terms)
    if found.recogniser != said["redacted_by"] or ", ".join(found.kinds) != said["redacted_kinds"]:
        raise DataError("the texts were redacted by other patterns: use the version that the statement names")
    return found
