"""What replaces texts, each by itself, with a proof for a document (`TextMechanism`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

from dptext.errors import ParameterError, RefusedError
from dptext.privacy.condition import Condition
from dptext.privacy.guarantee import Guarantee, MetricDP, Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, of_release
from dptext.privacy.wording import facts_of
from dptext.release.release import Tally
from dptext.showing import Facts, Showing

__all__ = ["Replacing", "TextMechanism", "refuse_beside"]


class Replacing(Protocol):
    """What replaces texts in one process, with all that it remembers between calls; it is never pickled or shared."""

    def __call__(self, texts: Sequence[str], bits: RandomBits) -> tuple[list[str], Tally]:
        """One private text for each text, and what was counted in them."""
        ...


class TextMechanism(Showing, ABC):
    """What replaces texts: each *part* of a text (a word, a sentence, the text as a whole) by a public one, at random.

    Frozen, and it holds no random state; it can be pickled. The private form of a text depends on this text and on
    fresh random bits alone, so that a promise for one document is one for each document of a release.
    """

    name: ClassVar[str]
    keeps_marks: ClassVar[bool] = False
    """Whether the text between its parts stays, so that marks (`dptext.release.placeholders`) become placeholders."""

    def _freeze(self) -> None:
        """The last step of every constructor: from now on nothing can drift away from the statement."""
        object.__setattr__(self, "_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a mechanism is frozen, {name!r} cannot be set: build another one")
        object.__setattr__(self, name, value)

    # -- the promise ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def statement(self) -> PrivacyStatement:
        """The promise for one part. Mechanisms that may differ in their output differ in it: it names the noise."""

    @abstractmethod
    def parameters(self) -> dict[str, Parameter]:
        """The public parameters, for the statement, and for a job that goes on with the same mechanism only."""

    def settings_of_owner(self) -> dict[str, Parameter]:
        """What decides about the output beside `parameters` and is for the owner of the texts alone: a job that goes on
        compares it, no statement has it."""
        return {}

    @abstractmethod
    def document_statement(self, longest: int, *, seeded: bool = False) -> PrivacyStatement:
        """The promise for a document: unit document, substitution, local.

        Args:
            longest: the number of protected parts in the longest document of the release (`Tally.longest`).
            seeded: whether a seed was used.
        """

    @property
    def longest_document(self) -> int | None:
        """How many parts of a document are replaced at most, however long it is; None: any number."""
        return None

    def statement_before(self, *, seeded: bool = False) -> PrivacyStatement:
        """The promise that holds for every document, before one is read: what a ledger charges.

        Of a metric promise the loss per unit of distance counts, which is the same for documents of any length.

        Raises:
            RefusedError: longer documents lose more, and nothing says how long they are at most.
        """
        one, two = (self.document_statement(parts, seeded=seeded) for parts in (1, 2))
        is_same = isinstance(one.guarantee, MetricDP) or one.guarantee == two.guarantee
        if is_same or one.condition.for_some_only is not None:  # of the latter a ledger says why it takes no such
            return one
        if self.longest_document is None:
            raise RefusedError(
                "the ledger refuses: it charges before a text is read, and a document costs the more the longer it is; "
                "say how much of one is replaced at most (max_words, max_sentences); nothing was released"
            )
        return self.document_statement(self.longest_document, seeded=seeded)

    def _statement_of(
        self, guarantee: Guarantee, *, unit: Unit, condition: Condition, **terms: Any
    ) -> PrivacyStatement:
        """The statement of this mechanism, which replaces each text by itself: under substitution, local."""
        return of_release(
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
    def promise_before_start(self) -> str:
        """Unit, relation and epsilon in a few lines, for the person who is about to release something."""

    # -- the work ---------------------------------------------------------------------------------------------

    @abstractmethod
    def replacing(self) -> Replacing:
        """What replaces texts in this process, made anew by each call."""

    def warning(self, tally: Tally) -> str | None:  # noqa: ARG002  a kind that counts has something to say
        """What the owner of the texts should know where the mechanism does not fit them; it enters no statement."""
        return None

    # -- what a private text shows ----------------------------------------------------------------------------

    @abstractmethod
    def parts_in(self, private_text: str) -> int:
        """How many protected parts the text behind a private one had at most, from the private text alone."""

    def most_parts(self, private_texts: Iterable[str]) -> int:
        """`parts_in` of the text that has most, where the texts of a release are all that is left of it.

        Raises:
            RefusedError: they could show fewer parts than there were; what to do instead is said.
        """
        return max(map(self.parts_in, private_texts), default=0)

    def _in_full(self) -> Facts:
        return facts_of(self.statement)


def refuse_beside(given: object, **options: object) -> None:
    """Refuse options beside an object that was built with its own."""
    foreign = " and ".join(name for name, value in options.items() if value is not None)
    if foreign:
        raise ParameterError(
            f"the {type(given).__name__} that was given has its own {foreign}: leave {foreign} out, or give a name in "
            "place of the object"
        )
