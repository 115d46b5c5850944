"""What a release of word vectors builds on, and what was promised when that was made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import takewhile

from dptext.errors import RefusedError
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    compose,
    substitution_from_add_remove,
)
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.unit import Relation, Unit
from dptext.text.vocabulary import Vocabulary
from dptext.users.private_vocabulary import PrivateVocabulary
from dptext.vectors.word_vectors import WordVectors

__all__ = ["ONE_NAME", "Earlier"]

ONE_NAME = (
    "a person writes under one name; whoever has several counts as several users",
    "no two people write under one name; those who do count as one user together",
)
"""What a promise to users takes for granted about their names."""
"""Of statements about word vectors, in words."""
_BEFORE = "released before under a promise counted in above"
_OWN = "released under a promise of their own, counted in above"


@dataclass(frozen=True, eq=False)
class Earlier:
    """Words and vectors that were there before a release, public or released themselves.

    Attributes:
        words: all words of the release.
        public: the vectors that the first of them had; None: there were none.
        vocabulary: the last of them, learned from the same people; None: all are public.
        predictor: what was promised when the predictor of levels was trained; None: on public labels, or there is none.
        listed: vectors of which the words alone were taken: what was promised of those vectors is about their words
            too.
    """

    words: Vocabulary
    public: WordVectors | None
    vocabulary: PrivateVocabulary | None
    predictor: PrivacyStatement | None = None
    listed: WordVectors | None = None

    @property
    def statements(self) -> dict[str, PrivacyStatement]:
        """Of what was not public."""
        released = (("vocabulary", self.vocabulary), ("vectors", self._vectors))
        found = {name: each.statement for name, each in released if each is not None}
        found["predictor"] = self.predictor
        return {name: each for name, each in found.items() if each is not None}

    def check(self, unit: Unit) -> None:
        """Whether what was promised before adds up with an (epsilon, delta) release: asked before a text is read.

        Raises:
            RefusedError: a statement is about another unit or relation, promises nothing, or has no sum with
                (epsilon, delta).
        """
        for name, before in self.statements.items():
            _check_can_be_added(name, before, unit)
        self.under_substitution(ApproxDP(0.0, 0.0))

    def counted_into(self, release: PrivacyStatement) -> PrivacyStatement:
        """The statement of the release and of all that it builds on, taken together.

        Raises:
            RefusedError: as `check`.
        """
        self.check(release.unit)
        statement = release
        for before in self.statements.values():
            statement = statement.compose(before).replace(parameters=release.parameters, release_id=release.release_id)
        return statement

    def under_substitution(self, release: ApproxDP) -> ApproxDP:
        """What is promised to somebody whose texts are replaced by others: exact for the release, the general
        conversion for the rest.

        Args:
            release: of the release alone, under substitution.

        Raises:
            RefusedError: no proof, as `check`.
        """
        total: Guarantee = release
        for before in self.statements.values():
            total = compose(total, substitution_from_add_remove(before.whole_guarantee))
        assert isinstance(total, ApproxDP)
        return total

    @property
    def new_words(self) -> int | None:
        """How many words of the release no public list held: they come last."""
        if self.vocabulary is None:
            return None
        if self.public is not None:
            return len(self.words) - len(self.public)
        learned = set(self.vocabulary.words)
        return sum(1 for _ in takewhile(learned.__contains__, reversed(self.words.words)))

    @property
    def promises(self) -> dict[str, Parameter]:
        """For the parameters of a statement."""
        return {f"promise_of_{name}": str(before.guarantee) for name, before in self.statements.items()}

    @property
    def sources(self) -> dict[str, Parameter]:
        """For the parameters of a statement."""
        return {
            "public_vectors": None if self.public is None else self.public.source,
            "public_vectors_sha256": None if self.public is None else self.public.fingerprint,
        }

    @property
    def assumptions(self) -> list[str]:
        """What a statement takes for granted about all public numbers, and about the vectors."""
        said = ["all parameters are public; none was computed from the protected texts"]
        if self.statements:
            said = [
                "all parameters are public, or computed from what was released before under a promise counted in above"
            ]
        if self.public is not None and self.public.statement is None:
            said.append("the public vectors were not made from the protected texts")
        return said

    @property
    def exposed(self) -> str:
        """What a release shows by having a vector for each of these words."""
        return "the list of words that have a vector: " + self._origin

    @property
    def _vectors(self) -> WordVectors | None:
        return self.listed if self.public is None else self.public

    @property
    def _origin(self) -> str:
        first = "public words"
        if "vectors" in self.statements:
            first = "those of vectors that were released under a promise of their own, counted in above"
        if self.vocabulary is not None:
            return (
                f"{first}, and words of these users that were released under a promise of their own, counted in above"
            )
        return "it is public, chosen without regard to the texts" if first == "public words" else first


def _check_can_be_added(name: str, before: PrivacyStatement, unit: Unit) -> None:
    if (before.unit, before.relation) != (unit, Relation.ADD_REMOVE):
        raise RefusedError(
            f"the {name} were released under a statement about a {before.unit} ({before.relation}), this release is "
            f"about a {unit} ({Relation.ADD_REMOVE}): the two have no proved sum; use public {name}, or ones "
            "released for the same unit and relation"
        )
    if math.isinf(before.epsilon) and not isinstance(
        before.guarantee, ZCDP | MetricDP
    ):  # these have reasons of their own
        raise RefusedError(
            f"the {name} carry a statement that promises nothing, and nothing that is added to it does: use public "
            f"{name}, or ones that were released with a finite epsilon"
        )
