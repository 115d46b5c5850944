"""Mechanisms that replace texts one by one (`TextMechanism`), applied to blocks of texts; placeholders."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Protocol

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError, RefusedError
from dptext.io.batches import Batch, text_batches
from dptext.io.documents import Document, text_of
from dptext.privacy.guarantee import Guarantee, MetricDP, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.privacy.wording import facts_of
from dptext.processes import map_in_order
from dptext.release.release import Tally, without_text

_EDGE, _DIGITS = "\x1f", "\x1c\x1d\x1e"
_CODE_OF = dict(zip("abcdefghijklmnopqrstuvwxyz_", map("".join, product(_DIGITS, repeat=3)), strict=True))
_LETTER_OF = {code: letter for letter, code in _CODE_OF.items()}
_MARK = re.compile(rf"{_EDGE}((?:[{_DIGITS}]{{3}}){{1,40}}){_EDGE}")
_SPACES = dict.fromkeys(map(ord, _EDGE + _DIGITS), " ")


def placeholder(kind: str) -> str:
    """Return the placeholder of a kind, such as ``<name>``."""
    if not isinstance(kind, str) or not re.fullmatch("[a-z_]{1,40}", kind):
        raise ParameterError("a kind must consist of 1 to 40 letters a to z or underscores")
    return f"<{kind}>"


def mark(kind: str) -> str:
    return f"{_EDGE}{''.join(_CODE_OF[letter] for letter in placeholder(kind)[1:-1])}{_EDGE}"


def show_marks(text: str) -> str:
    """Return the text with placeholders instead of marks."""

    def placeholder_of(match: re.Match[str]) -> str:
        code = match[1]
        return placeholder("".join(_LETTER_OF[code[start : start + 3]] for start in range(0, len(code), 3)))

    return _MARK.sub(placeholder_of, text) if _EDGE in text else text


def unmarked(text: str) -> str:
    """Return the text with the characters of marks replaced by spaces."""
    return text.translate(_SPACES)


class Replacing(Protocol):
    """A function that replaces texts in one process. It keeps caches between calls, and is never pickled or shared."""

    def __call__(self, texts: Sequence[str], bits: RandomBits) -> tuple[list[str], Tally]:
        """Return one private text per text, and counts over the texts."""


class TextMechanism(ReprMixin, ABC):
    """A mechanism that replaces each *part* of a text (a word, a sentence, the whole text) by a public one, at random.

    It is frozen, has no random state and can be pickled. The private form of a text depends on this text and on
    fresh random bits alone, so that a guarantee for one document holds for each document of a release.
    """

    name: ClassVar[str]
    keeps_marks: ClassVar[bool] = False
    """True if the text between the parts is kept, so that marks (`mark`) survive and become placeholders."""

    def _freeze(self) -> None:
        """Forbid further changes, so that mechanism and statement agree; the last step of every constructor."""
        object.__setattr__(self, "_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a mechanism is immutable, {name!r} cannot be set: create a new one")
        object.__setattr__(self, name, value)

    # -- the guarantee ----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def statement(self) -> PrivacyStatement:
        """The statement for one part. It names the noise, so it differs between mechanisms with different outputs."""

    @abstractmethod
    def parameters(self) -> dict[str, Parameter]:
        """Return the public parameters: statements list them, and a job resumes only if they are the same."""

    def settings_of_owner(self) -> dict[str, Parameter]:
        """Return further settings, which a resumed job compares; only the owner of the texts may know them."""
        return {}

    @abstractmethod
    def document_statement(self, longest: int, *, seeded: bool = False) -> PrivacyStatement:
        """Return the statement for a document of at most ``longest`` protected parts: substitution, local."""

    @property
    def longest_document(self) -> int | None:
        """The maximum number of parts that are replaced in a document; None if there is no maximum."""
        return None

    def statement_before(self, *, seeded: bool = False) -> PrivacyStatement:
        """Return a statement for every document, which the ledger charges; `RefusedError` if none has a bound."""
        # a metric guarantee is charged by its loss per unit of distance, which does not depend on the length
        one, two = (self.document_statement(parts, seeded=seeded) for parts in (1, 2))
        is_same = isinstance(one.guarantee, MetricDP) or one.guarantee == two.guarantee
        if is_same or one.condition.for_some_only is not None:  # the ledger explains why it refuses the latter
            return one
        if self.longest_document is None:
            raise RefusedError(
                "the ledger charges before a text is read, and the loss of a document grows with its length: limit the "
                "replaced parts (max_words, max_sentences). Nothing was released"
            )
        return self.document_statement(self.longest_document, seeded=seeded)

    def _statement_of(
        self, guarantee: Guarantee, *, unit: Unit, condition: Condition, **terms: Any
    ) -> PrivacyStatement:
        """Return a statement of this mechanism, which replaces each text on its own (substitution, local)."""
        return release_statement(
            guarantee=guarantee,
            unit=unit,
            relation=Relation.SUBSTITUTION,
            condition=condition,
            trust=Trust.LOCAL,
            mechanism=self.name,
            parameters=self.parameters(),
            **terms,
        )

    @abstractmethod
    def summary_before_release(self) -> str:
        """Return unit, relation and epsilon in a few lines, to print before a release."""

    # -- replacing --------------------------------------------------------------------------------------------

    @abstractmethod
    def replacing(self) -> Replacing:
        """Return a new function that replaces texts in this process."""

    def warning(self, tally: Tally) -> str | None:  # noqa: ARG002  for mechanisms that count
        """Return a warning if the mechanism does not suit the texts, for their owner; no statement contains it."""
        return None

    def _html_fields(self) -> Fields:
        return facts_of(self.statement)


def refuse_beside(mechanism: object, **options: object) -> None:
    """Raise `ParameterError` if options are given next to an object that already contains its own."""
    foreign = " and ".join(name for name, value in options.items() if value is not None)
    if foreign:
        raise ParameterError(f"{type(mechanism).__name__} has a fixed {foreign}: omit {foreign}, or pass a name")


def check_mechanism(mechanism: object) -> None:
    """Raise `ParameterError` if ``mechanism`` does not replace texts."""
    if not isinstance(mechanism, TextMechanism):
        raise ParameterError(f"mechanism must be a TextMechanism such as dptext.TEM, got {type(mechanism).__name__}")


class Rewriter:
    """Replaces texts through a mechanism: in constant memory, in the order of the input, with keyed noise."""

    def __init__(
        self,
        mechanism: TextMechanism,
        *,
        seed: int | None = None,
        key: NoiseKey | None = None,
        release_id: str | None = None,
    ) -> None:
        check_mechanism(mechanism)
        self.mechanism = mechanism
        self.tally = Tally()
        self.key = NoiseKey(seed) if key is None else key
        self.release_id = release_id or new_release_id()
        self._parameters = mechanism.statement.settings_digest(mechanism.settings_of_owner())
        self._place = 0

    @cached_property
    def _replacing(self) -> Replacing:
        return self.mechanism.replacing()

    def statement(self) -> PrivacyStatement:
        statement = self.mechanism.document_statement(self.tally.longest, seeded=self.key.seeded)
        exposed = (*statement.exposed, *without_text(self.tally.missing > 0))
        return statement.replace(release_id=self.release_id, exposed=exposed)

    def statement_before(self) -> PrivacyStatement:
        return self.mechanism.statement_before(seeded=self.key.seeded).replace(release_id=self.release_id)

    def warning(self) -> str | None:
        """Return the warning of the mechanism about all texts so far; no statement contains it."""
        return self.mechanism.warning(self.tally)

    def rewrite(self, texts: Iterable[str | Document | None]) -> Iterator[str | None]:
        if isinstance(texts, str):
            raise ParameterError("texts must be a list of strings, got a single string. Put it into a list")
        for block in text_batches(text_of(entry, place) for place, entry in enumerate(texts, 1)):
            private, tally = self.rewrite_block(self._place, block)
            self._place += 1
            self.tally += tally
            yield from private

    def rewrite_block(self, place: int, block: Batch) -> tuple[list[str | None], Tally]:
        """Return the private texts and the counts of one block. They are the same in every process and every run."""
        bits = self.key.stream(self._parameters, place, block.digest())
        present = [text for text in block.texts if text is not None]
        replaced, tally = self._replacing(present, bits)
        remaining = iter(replaced)
        private = [None if text is None else next(remaining) for text in block.texts]
        return private, tally + Tally(missing=len(private) - len(present))


def rewrite_blocks(
    rewriter: Rewriter, blocks: Iterable[tuple[int, Batch]], *, processes: int = 1
) -> Iterator[tuple[int, Batch, tuple[list[str | None], Tally]]]:
    """Yield each numbered block with the result of `Rewriter.rewrite_block`, in order."""
    key = rewriter.key
    pieces = (((place, block), (key.secret(), key.seeded, place, Batch(block.texts, {}))) for place, block in blocks)
    for (place, block), done in map_in_order(_Work(rewriter.mechanism), pieces, processes=processes):
        yield place, block, done


class _Work:
    """`Rewriter.rewrite_block` in another process. The object contains no secret, because it is sent in a file."""

    def __init__(self, mechanism: TextMechanism) -> None:
        self._mechanism = mechanism
        self._rewriter: Rewriter | None = None

    def __call__(self, sent: tuple[bytes, bool, int, Batch]) -> tuple[list[str | None], Tally]:
        secret, seeded, place, block = sent
        if self._rewriter is None:
            self._rewriter = Rewriter(self._mechanism, key=NoiseKey.restored(secret, seeded=seeded))
        return self._rewriter.rewrite_block(place, block)
