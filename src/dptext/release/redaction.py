"""Redaction before a mechanism: recognised parts of a text become placeholders (`Redacted`)."""

from __future__ import annotations

import hashlib
import logging
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

import regex

from dptext.display import Fields
from dptext.errors import DataError, ParameterError, StorageError, extra
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.neighbours import AfterRedaction
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import after_redaction
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.wording import render
from dptext.release.mechanism import Replacing, TextMechanism, check_mechanism, mark, placeholder, show_marks, unmarked
from dptext.release.release import Tally
from dptext.text.patterns import KINDS, VERSION, Span, check_kinds, find
from dptext.text.tokens import fold, letters_between
from dptext.validation import check_path

LISTED, UNREAD, OTHER = "listed", "unread", "other"
"""Kinds: a term of the owner's list; a text on which the analyzer failed; an entity that it did not announce."""
PRESIDIO = "presidio"
_MOST_WORDS, _WIDEST_GAP = 32, 3  # words of a term; characters between two of them
KIND_OF_ENTITY = {
    "PERSON": "name",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "CREDIT_CARD": "card",
    "IP_ADDRESS": "ip",
    "DATE_TIME": "date",
    "LOCATION": "place",
}  # other entities of Presidio: their name in lower case
_KNOWN_KINDS = frozenset((*KINDS, *KIND_OF_ENTITY.values()))
_PARAMETERS = ("redacted_by", "redacted_kinds", "redacted_entities", "redacted_list")
_logger = logging.getLogger(__name__)
# scripts without spaces between words: each letter is a word
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|[[\p{{L}}\p{{N}}\p{{M}}]--[{_UNSPACED}]]+", regex.V1)
_ATTACHED: Any = regex.compile(r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+", regex.V1)


# -- the owner's list -----------------------------------------------------------------------------------------


class Terms:
    """Terms that match as whole words, in any case and with a short gap between their words."""

    def __init__(self, terms: Iterable[str]) -> None:
        if isinstance(terms, str):
            raise ParameterError("words must be a list of terms, got a single string. Put it into a list")
        self._terms: set[tuple[str, ...]] = set()
        self._lengths: dict[str, set[int]] = {}  # numbers of words of the terms, by their first word
        for number, term in enumerate(terms, 1):
            words = tuple(fold(match[0]) for match in _WORD.finditer(term)) if isinstance(term, str) else ()
            if not 1 <= len(words) <= _MOST_WORDS:
                raise ParameterError(f"entry {number:,} of words must be a string of 1 to {_MOST_WORDS} words")
            self._terms.add(words)
            self._lengths.setdefault(words[0], set()).add(len(words))

    def __bool__(self) -> bool:
        return bool(self._terms)

    def find(self, text: str) -> Iterator[Span]:
        """Yield the longest term at each position, from the left, without overlap."""
        spans = [match.span() for match in _WORD.finditer(text)]
        words = [fold(text[start:end]) for start, end in spans]
        index = 0
        while index < len(words):
            for length in sorted(self._lengths.get(words[index], ()), reverse=True):
                stop = index + length
                gaps = (after[0] - before[1] for before, after in pairwise(spans[index:stop]))
                if tuple(words[index:stop]) in self._terms and max(gaps, default=0) <= _WIDEST_GAP:
                    yield Span(spans[index][0], spans[stop - 1][1], LISTED)
                    index = stop
                    break
            else:
                index += 1

    def digest(self) -> str:
        """Return the SHA-256 digest of the terms. It allows anybody to test guesses, so it is for their owner alone."""
        lines = "\n".join(sorted("\t".join(words) for words in self._terms))
        return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def read_terms(file: Any) -> list[str]:
    """Return the terms in a UTF-8 file with one term per line; empty lines are skipped."""
    path = check_path("the redaction list", file)
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n")]
    except UnicodeDecodeError:
        raise ParameterError(f"{path.name}: the redaction list must be UTF-8 text, one term per line") from None
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    if not any(lines):
        raise ParameterError(f"{path.name}: the redaction list contains no term")
    return [line for line in lines if line]


# -- recognition ----------------------------------------------------------------------------------------------


class Redaction:
    """Replaces recognised parts of a text; the result depends on the text alone. Arguments as in `Redacted`."""

    def __init__(
        self,
        *,
        kinds: Iterable[str] = KINDS,
        words: Iterable[str] = (),
        analyzer: Any = None,
        language: str = "en",
        entities: Iterable[str] | None = None,
    ) -> None:
        self.kinds, self.terms = check_kinds(kinds), Terms(words)
        if analyzer is None and entities is not None:
            raise ParameterError("entities require an analyzer: pass one, or omit entities")
        if isinstance(entities, str):
            raise ParameterError("entities must be a list of names, got a single string. Put it into a list")
        if isinstance(analyzer, str) and analyzer != PRESIDIO:
            raise ParameterError(f"analyzer must be {PRESIDIO!r} or an object with analyze(), got {analyzer!r}")
        self._given, self.language = analyzer, language
        self.entities = None if analyzer is None else self._try_analyzer(entities)
        if not self.kinds and not self.terms and analyzer is None:
            raise ParameterError(f"nothing is redacted: name kinds ({', '.join(KINDS)}), words or an analyzer")

    @cached_property
    def _analyzer(self) -> Any:
        if not isinstance(self._given, str):
            return self._given
        module = extra("presidio_analyzer", "presidio", "redaction by Presidio")
        try:
            return module.AnalyzerEngine()
        except (Exception, SystemExit) as error:  # noqa: BLE001  without a model it downloads one, or exits
            raise ParameterError(
                f"Presidio's default analyzer cannot be built ({type(error).__name__}): install a spaCy model (python "
                "-m spacy download en_core_web_lg), or pass an analyzer with a model of your own"
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_analyzer", None)  # each process builds its own
        return state

    def _try_analyzer(self, entities: Iterable[str] | None) -> tuple[str, ...]:
        """Return the entities to look for, after a test of the analyzer on a public text."""
        analyzer, language = self._analyzer, self.language
        if not callable(getattr(analyzer, "analyze", None)):
            raise ParameterError(f"analyzer must have analyze(text=, language=, entities=), got {_type_of(analyzer)}")
        try:
            known = getattr(analyzer, "get_supported_entities", lambda **_: ())(language=language)
            names = tuple(dict.fromkeys(map(str, known if entities is None else entities)))
            list(analyzer.analyze(text="A public text.", language=language, entities=list(names) or None))
        except Exception as error:  # noqa: BLE001  it may raise anything
            raise ParameterError(
                f"the analyzer fails on a public text in the language {language!r} ({type(error).__name__}): give it "
                "recognisers and a model for this language, and entities that it supports"
            ) from None
        return names

    def spans(self, text: str) -> list[Span]:
        """Return the parts to redact: overlapping spans are merged, with the kind of the longest."""
        spans = [*self.terms.find(text), *find(text, self.kinds)]
        if self._given is not None:
            try:
                spans += self._analyze(text)
            except (Exception, SystemExit) as error:  # noqa: BLE001  no private text may end a release
                _logger.warning("the analyzer failed on a text (%s): the whole text was redacted", type(error).__name__)
                return [Span(0, len(text), UNREAD)]
        # accents and joiners after a span belong to its last letter; otherwise they would attach to the placeholder
        return united(span._replace(end=_ATTACHED.match(text, span.end).end()) for span in spans)

    def _analyze(self, text: str) -> Iterator[Span]:
        entities = self.entities or ()
        for result in self._analyzer.analyze(text=text, language=self.language, entities=list(entities) or None):
            start, end, entity = max(0, int(result.start)), min(len(text), int(result.end)), str(result.entity_type)
            kind = _kind_of_entity(entity)
            if start < end:  # an entity name that was not announced may contain the text
                yield Span(start, end, kind if entity in entities or kind in _KNOWN_KINDS else OTHER)

    def applied(self, text: str, replacement: Callable[[str], str] = placeholder) -> str:
        """Return the text with ``replacement(kind)`` in place of each span."""
        parts, done = [], 0
        for start, end, kind in self.spans(text):
            parts += [unmarked(text[done:start]), replacement(kind)]
            done = end
        return "".join((*parts, unmarked(text[done:])))

    @property
    def recogniser(self) -> str:
        names = [f"patterns of dptext, version {VERSION}"] if self.kinds else []
        if self._given is not None:
            names.append(f"{_type_of(self._analyzer)}, language {self.language}")
        return "; ".join([*names, *(["a list of the owner"] if self.terms else [])])

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters of a statement; the terms of the list are not among them."""
        entities = None if self.entities is None else ", ".join(self.entities)
        values = (self.recogniser, ", ".join(self.kinds), entities, bool(self.terms))
        return dict(zip(_PARAMETERS, values, strict=True))


def _describe_redaction(parameters: Mapping[str, Parameter]) -> str:
    _, kinds, entities, has_list = (parameters[name] for name in _PARAMETERS)
    names = [*dict.fromkeys([*_split(kinds), *_split(entities)]), *(["the terms of the list"] if has_list else [])]
    return ", ".join(names) + ("" if entities is not None else "; patterns recognise no names")


def united(spans: Iterable[Span]) -> list[Span]:
    """Merge overlapping spans; a merged span has the kind of its longest one."""
    merged: list[Span] = []
    longest = 0
    for span in sorted(spans, key=lambda span: span.start):
        length = span.end - span.start
        if merged and span.start < merged[-1].end:
            before = merged.pop()
            kind = span.kind if length > longest else before.kind
            merged.append(Span(before.start, max(before.end, span.end), kind))
            longest = max(longest, length)
        else:
            merged.append(span)
            longest = length
    return merged


def _kind_of_entity(entity: str) -> str:
    letters = "".join(letter if "a" <= letter <= "z" else "_" for letter in entity.lower())[:40]
    return KIND_OF_ENTITY.get(entity, letters or "_")


def _type_of(analyzer: object) -> str:
    package = type(analyzer).__module__.partition(".")[0]
    try:
        return f"{type(analyzer).__name__} of {package.replace('_', '-')} {version(package)}"
    except (PackageNotFoundError, ValueError):
        return f"{type(analyzer).__name__} of {package}"


# -- the mechanism --------------------------------------------------------------------------------------------


class Redacted(TextMechanism):
    """A mechanism that sees a text only after recognised parts were replaced by placeholders (``<name>``).

    **Guarantee.** Let r be the redaction: a map of texts, whose result depends on the text alone. Then

        P(M(r(x)) = z) <= e^L(r(x), r(x')) P(M(r(x')) = z)

    with the loss L that M guarantees between two texts (`dptext.privacy.restating.after_redaction`). *Recognition has
    no guarantee*: parts that it misses go through M like every other word, and only the bound of M covers them.

    - Where M guarantees one epsilon for **any two texts** (a bank with ``unit="document"``), r(x) and r(x') are two
      texts, and the guarantee is the same.
    - Where the loss grows with a distance, or the guarantee is for texts of equal layout or length, for a word or a
      sentence, it is a guarantee **between the redacted texts**. It does not bound how well x and x' can be told apart
      by what is recognised in them. One letter can decide whether something is recognised, so texts at a small distance
      can become texts at a large one, or of another layout. The statement says so: its condition and its metric are
      about redacted texts (``AfterRedaction``).

    A placeholder shows that something of its kind was recognised at its position. A word mechanism leaves it unchanged
    in its output. A bank sees it as part of the sentence, and its output is whole texts of the bank.

    Assumptions: recognisers and list were fixed without regard to the texts of the release, and recognition in a text
    depends on nothing else. A list made from the same texts can reveal, by its placeholders, what they contain.

    Args:
        mechanism: replaces the texts afterwards, such as `dptext.TEM` or `dptext.BankRewriter`.
        kinds: kinds of patterns to look for, some of `dptext.text.patterns.KINDS`. Patterns find no names.
        words: terms to redact as whole words in any case (``--redact-list``): names of clients, code words. The
            statement says that there is a list, but neither its terms nor its length.
        analyzer: a Presidio ``AnalyzerEngine`` with your recognisers and models, or ``"presidio"`` for its default
            (English), used together with the patterns. A text on which it fails is redacted as a whole.
        language: language of the texts, for the analyzer.
        entities: entities for the analyzer (``"PERSON"``); None for all entities that it supports.

    Raises:
        ParameterError: the mechanism redacts already; a kind is unknown; nothing is to be redacted; the analyzer fails
            on a public text.
        MissingExtraError: Presidio is not installed.

    >>> from dptext import TEM, load_vectors, privatize
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = Redacted(TEM(vectors, epsilon=200.0, threshold=0.2), kinds=["phone"], words=["Ann Lee", "rex"])
    >>> privatize(["Ann Lee (212-555-0187): Rex, a dog"], mechanism).texts
    ['<listed> (<phone>): <listed>, <unk> dog']
    >>> print(mechanism.statement.neighbours)
    any two words that could stand at one place of the text, the unknown word among them, once it is redacted
    """

    name = "Redacted"

    def __init__(
        self,
        mechanism: TextMechanism,
        *,
        kinds: Iterable[str] = KINDS,
        words: Iterable[str] = (),
        analyzer: Any = None,
        language: str = "en",
        entities: Iterable[str] | None = None,
    ) -> None:
        check_mechanism(mechanism)
        if isinstance(mechanism, Redacted):
            raise ParameterError("the mechanism already redacts: pass all kinds and words to one Redacted")
        self.mechanism = mechanism
        self.redaction = Redaction(kinds=kinds, words=words, analyzer=analyzer, language=language, entities=entities)
        self._freeze()

    def _repr_fields(self) -> Fields:
        return (("redacted_by", self.redaction.recogniser), ("mechanism", self.mechanism))

    def redact(self, text: str) -> str:
        """Return the redacted text, with placeholders; it has no noise, and no guarantee covers it."""
        return self.redaction.applied(text)

    @property
    def statement(self) -> PrivacyStatement:
        return self._restated(self.mechanism.statement)

    def document_statement(self, longest: int, *, seeded: bool = False) -> PrivacyStatement:
        return self._restated(self.mechanism.document_statement(longest, seeded=seeded))

    def _restated(self, statement: PrivacyStatement) -> PrivacyStatement:
        return as_redacted(statement, self.redaction.parameters(), shows_placeholders=self.mechanism.keeps_marks)

    def parameters(self) -> dict[str, Parameter]:
        return {**self.mechanism.parameters(), **self.redaction.parameters()}

    def settings_of_owner(self) -> dict[str, Parameter]:
        secrets = {"redact-list": self.redaction.terms.digest()} if self.redaction.terms else {}
        return {**self.mechanism.settings_of_owner(), **secrets}

    @property
    def longest_document(self) -> int | None:
        return self.mechanism.longest_document

    def summary_before_release(self) -> str:
        return render(
            "before_redaction",
            lines=self.mechanism.summary_before_release().split("\n"),
            redaction=self.redaction,
            looked_for=textwrap.wrap(f"looks for: {_describe_redaction(self.redaction.parameters())}", 66),
            restated=self.document_statement(1).condition.has(AfterRedaction)
            or isinstance(self.statement.guarantee, MetricDP),
        )

    def replacing(self) -> Replacing:
        replace, keeps_marks = self.mechanism.replacing(), self.mechanism.keeps_marks
        replacement = mark if keeps_marks else placeholder

        def redacted(texts: Sequence[str], bits: RandomBits) -> tuple[list[str], Tally]:
            private, tally = replace([self.redaction.applied(text, replacement) for text in texts], bits)
            return list(map(show_marks, private)) if keeps_marks else private, tally

        return redacted

    def warning(self, tally: Tally) -> str | None:
        return self.mechanism.warning(tally)


def as_redacted(
    statement: PrivacyStatement, parameters: Mapping[str, Parameter], *, shows_placeholders: bool
) -> PrivacyStatement:
    """Return the statement of a mechanism that follows a redaction."""
    assumed = [
        "the recogniser was chosen without regard to the texts of the release, and its result for a text depends on "
        "this text only",
        f"recognition has no guarantee ({parameters['redacted_by']}; looks for: {_describe_redaction(parameters)}): "
        "parts that it missed went through the mechanism like everything else",
    ]
    if isinstance(statement.guarantee, MetricDP):
        assumed.append(
            "when guarantees for redacted texts are added up, the largest distance between the texts redacted by the "
            "releases counts"
        )
    visible = "positions and kinds of recognised parts: each became a fixed placeholder"
    return after_redaction(
        statement,
        mechanism=f"{Redacted.name} {statement.mechanism}",
        parameters={**statement.parameters, **{name: parameters[name] for name in _PARAMETERS}},
        assumptions=(*statement.assumptions, *assumed),
        exposed=(*statement.exposed, *((visible,) if shows_placeholders else ())),
    )


def _split(names: Parameter) -> list[str]:
    return [name for name in str(names or "").split(", ") if name]


def is_redacted(statement: PrivacyStatement) -> bool:
    """Return whether the statement is about texts that were redacted first."""
    return all(name in statement.parameters for name in _PARAMETERS)


def inner_mechanism(statement: PrivacyStatement) -> str:
    """Return the name of the mechanism that saw the texts, redacted or not."""
    return statement.mechanism.removeprefix(f"{Redacted.name} ") if is_redacted(statement) else statement.mechanism


def placeholders_of(statement: PrivacyStatement) -> frozenset[str]:
    """Return the runs of letters in the placeholders that a statement allows."""
    if not is_redacted(statement):
        return frozenset()
    entities = statement.parameters["redacted_entities"]
    kinds = [*_split(statement.parameters["redacted_kinds"]), LISTED, UNREAD, *map(_kind_of_entity, _split(entities))]
    kinds += [] if entities is None else [*_KNOWN_KINDS, OTHER]
    return frozenset(run for kind in kinds for run in letters_between(kind))


def redaction_of(statement: PrivacyStatement, *, words: Iterable[str] = ()) -> Redaction | None:
    """Return the redaction that a statement describes; None if nothing was redacted."""
    if not is_redacted(statement):
        return None
    parameters, words = statement.parameters, tuple(words)
    if parameters["redacted_entities"] is not None:
        raise DataError(
            "the texts were redacted by an analyzer, which a statement does not contain. Redact the originals yourself "
            "(Redacted(...).redact), and compare with those"
        )
    if bool(words) != parameters["redacted_list"]:
        problem = "without a list: omit the list"
        if not words:
            problem = "by a list, which a statement does not contain: pass it again (--redact-list)"
        raise DataError(f"the texts were redacted {problem}")
    kinds = [kind for kind in _split(parameters["redacted_kinds"]) if kind in KINDS]
    redaction = Redaction(kinds=kinds, words=words)
    if not redaction.parameters().items() <= parameters.items():
        raise DataError("the texts were redacted by other patterns: use the version of dptext that the statement names")
    return redaction
