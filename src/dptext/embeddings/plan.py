"""The plan of a release of co-occurrences, decided before a private text is read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from dptext.checks import number, whole
from dptext.embeddings.levels import Levels
from dptext.embeddings.refinement import public_base, strengths
from dptext.embeddings.user_matrices import UserMatrixSum, UserText
from dptext.errors import DataError, ParameterError
from dptext.io.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import CELL, MOST_USERS
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.condition import Condition
from dptext.privacy.guarantee import ApproxDP, Guarantee, Relation, Trust, Unit, as_approx, rounded_up
from dptext.privacy.restating import check_prior, counted_in, substituted
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, of_release
from dptext.text.tokens import UNKNOWN, Vocabulary
from dptext.users.grouping import ONE_NAME, UserUnit, users_of
from dptext.users.private_vocabulary import LearnedVocabulary, PrivateVocabulary
from dptext.vectors.formats import Source, load_vectors
from dptext.vectors.word_vectors import WordVectors

if TYPE_CHECKING:
    from dptext.embeddings.cooccurrence import Plan

_UNITS = {"user": Unit.USER, "document": Unit.DOCUMENT, "pair": Unit.EXAMPLE}


def checked_source(
    vectors: Source | Vocabulary, vocabulary: PrivateVocabulary | None
) -> tuple[WordVectors | Vocabulary, Vocabulary]:
    """What a release starts from: public vectors, loaded, or public words; and these words as a vocabulary."""
    if isinstance(vectors, LearnedVocabulary | PrivateVocabulary):
        raise ParameterError(
            "vectors must be public: these words were learned under a promise of their own, which would get lost; "
            "give what dptext.private_vocabulary returned as vocabulary=, and as vectors= what was known before "
            f"(Vocabulary([{UNKNOWN!r}]) if nothing)"
        )
    if vocabulary is not None and not isinstance(vocabulary, PrivateVocabulary):
        raise ParameterError(
            f"vocabulary must be what dptext.private_vocabulary returns, got {type(vocabulary).__name__}; public "
            "words are given as vectors="
        )
    if isinstance(vectors, Vocabulary):
        return vectors, vectors
    loaded = load_vectors(vectors)
    return loaded, loaded.vocabulary


def hidden_by_noise(said: npt.NDArray[np.bool_], *, public: bool) -> tuple[str, ...]:
    """What becomes of words of which nothing came through the noise, in sentences."""
    share = float(said.mean()) if said.size else 0.0
    if not said.any():
        left = "they are the public vectors again, prepared as always" if public else "they say nothing"
        return (
            "noise hides all that these texts could add to the vectors: there are too few people for this epsilon, and "
            f"{left}",
        )
    if share < 0.5:
        left = "keep their public vectors" if public else "have no vector"
        return (f"noise hides what these texts could add for {1 - share:.0%} of the words, which {left}",)
    return ()


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasePlan(ABC):
    """All that a release is decided on before a text is read: public, and checked."""

    unit: str
    words: Vocabulary
    public: WordVectors | None
    vocabulary: PrivateVocabulary | None
    levels: Levels
    listed: WordVectors | None = None

    mechanism: ClassVar[str]
    share: ClassVar[str]
    """What a level's share is called in a statement: an epsilon, or a sampling rate."""

    @abstractmethod
    def guarantee(self, level: str, *, relation: Relation = Relation.ADD_REMOVE) -> ApproxDP:
        """What the release alone promises to a user of a level."""

    @abstractmethod
    def _costs(self, level: str) -> dict[str, Parameter]:
        """Parameters of a statement: budget and noise."""

    @abstractmethod
    def _shape(self) -> dict[str, Parameter]:
        """Parameters of a statement: all else that was decided."""

    @abstractmethod
    def _taken_for_granted(self) -> tuple[str, ...]:
        """Assumptions of the mechanism."""

    def statement(self, level: str, *, seeded: bool, release_id: str | None = None) -> PrivacyStatement:
        """The statement for users of a level, with what was promised before counted in."""
        self.check()
        statement = of_release(
            guarantee=self._promised(level),
            unit=_UNITS[self.unit],
            relation=Relation.ADD_REMOVE,
            condition=self._condition(level),
            trust=Trust.CENTRAL,
            mechanism=self.mechanism,
            parameters=self._parameters(level),
            assumptions=self._assumptions(),
            exposed=("the list of words that have a vector: " + self._origin,),
            seeded=seeded,
            release_id=release_id or new_release_id(),
        )
        return counted_in(statement, self.prior)

    def statements(self, *, seeded: bool, release_id: str | None = None) -> dict[str, PrivacyStatement]:
        """By level; they are one release, and have one name."""
        release_id = release_id or new_release_id()
        return {level: self.statement(level, seeded=seeded, release_id=release_id) for level in self.levels.shares}

    def under_substitution(self, level: str) -> ApproxDP:
        release = self.guarantee(level, relation=Relation.SUBSTITUTION)
        return substituted(self.levels.with_level(release), self.prior)

    @property
    def total_delta(self) -> float:
        """The delta of this release and of all that was released before it."""
        return as_approx(self.statement(self.levels.most, seeded=False).guarantee).delta

    def check(self) -> None:
        """Whether what was promised before adds up with this release: asked before a text is read."""
        check_prior(self.prior, _UNITS[self.unit])

    @property
    def prior(self) -> dict[str, PrivacyStatement]:
        """Statements of what was released before and is not public: vocabulary, vectors, predictor of levels."""
        vectors = self.listed if self.public is None else self.public
        found = {
            "vocabulary": None if self.vocabulary is None else self.vocabulary.statement,
            "vectors": None if vectors is None else vectors.statement,
            "predictor": None if self.levels.policy is None else self.levels.policy.training,
        }
        return {name: each for name, each in found.items() if each is not None}

    @property
    def new_words(self) -> int | None:
        """How many words of the release no public list held: they come last."""
        if self.vocabulary is None:
            return None
        if self.public is not None:
            return len(self.words) - len(self.public)
        learned = set(self.vocabulary.words)
        return sum(1 for _ in takewhile(learned.__contains__, reversed(self.words.words)))

    def _promised(self, level: str) -> Guarantee:
        return self.levels.with_level(self.guarantee(level))

    def _condition(self, level: str) -> Condition:
        return self.levels.condition(level)

    def _parameters(self, level: str) -> dict[str, Parameter]:
        said = self._costs(level)
        said |= {f"promise_of_{name}": str(before.guarantee) for name, before in self.prior.items()}
        if len(self.levels.shares) > 1:
            said |= {f"{self.share}_of_{name}": share for name, share in self.levels.shares.items()}
            said |= {"level": level, "default_level": self.levels.default}
        said |= self.levels.parameters
        said |= {"words": len(self.words), "new_words": self.new_words}
        said |= self._shape()
        return said | {
            "public_vectors": None if self.public is None else self.public.source,
            "public_vectors_sha256": None if self.public is None else self.public.fingerprint,
        }

    def _substituted(self, level: str) -> dict[str, Parameter]:
        promise = self.under_substitution(level)
        return {
            "epsilon_under_substitution": rounded_up(promise.epsilon, 4),
            "delta_under_substitution": rounded_up(promise.delta, 4),
        }

    def _assumptions(self) -> tuple[str, ...]:
        said = ["all parameters are public; none was computed from the protected texts"]
        if self.prior:
            said = [
                "all parameters are public, or computed from what was released before under a promise counted in above"
            ]
        if self.public is not None and self.public.statement is None:
            said.append("the public vectors were not made from the protected texts")
        if self.unit == "user":
            said += ONE_NAME
        return (*said, *self.levels.assumptions, *self._taken_for_granted())

    @property
    def _origin(self) -> str:
        released = "vectors" in self.prior
        first = "public words"
        if released:
            first = "those of vectors that were released under a promise of their own, counted in above"
        if self.vocabulary is not None:
            return (
                f"{first}, and words of these users that were released under a promise of their own, counted in above"
            )
        return first if released else "it is public, chosen without regard to the texts"


EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
HALF = 0.5
_SEED = 7  # which public people are in which half: the same in every run
_MOST = 10**9  # people; beyond it, nobody is asked


@dataclass(frozen=True, kw_only=True)
class ExpectedVectors:
    """What a budget buys."""

    epsilon: float
    sigma: float
    passed: float
    least: int | None
    half: int | None

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


def expected_vectors(
    plan: Plan,
    public: DocumentReader | Iterable[Document],
    *,
    people: int,
    epsilon: float | None = None,
    unit: str = "document",
) -> list[ExpectedVectors]:
    """What a release is worth for one epsilon or several, from public texts.

    **Nothing private is read.** It is a prediction for people who write as much as the public ones do, of things that
    public vectors know as much about.

    Args:
        plan: of the release (`dptext.Cooccurrence.plan`); its budget is not looked at.
        public: texts that play the people's.
        people: a *public* number of people who take part: never a count of the private texts.
        epsilon: None: `EPSILONS`.
        unit: "document": each public text is a person; "user": each author.

    Raises:
        ParameterError: a number out of range.
        DataError: fewer than two public people, or authors are not named.
    """
    people = whole("people", people, least=1, most=MOST_USERS)
    given = EPSILONS if epsilon is None else (number("epsilon", epsilon, above=0),)
    one, other = _halves(plan, public, unit)
    width = plan.features.dimension
    base = np.zeros((len(plan.words), 1))
    if plan.public is not None:
        base = np.zeros((len(plan.words), plan.public.dimension))
        base[: len(plan.public)] = public_base(plan.public.matrix, plan.public.vocabulary.unknown_row)
    found = strengths(one, other, base, plan.weights > 0)
    expected = []
    for each in given:
        sigma = PersonalBudgets(each, delta=plan.budgets.delta, floor=0.0).sigma
        least = found.least(sigma, width)
        half: float = math.inf
        if math.isfinite(least):
            low, high = least, float(_MOST)
            if found.passed(high, sigma, width) >= HALF:
                while high / low > 1.01:
                    middle = math.sqrt(low * high)
                    low, high = (low, middle) if found.passed(middle, sigma, width) >= HALF else (middle, high)
                half = high
        expected.append(
            ExpectedVectors(
                epsilon=float(each),
                sigma=sigma,
                passed=found.passed(people, sigma, width),
                least=_rounded(least),
                half=_rounded(half),
            )
        )
    return expected


def _halves(
    plan: Plan, public: DocumentReader | Iterable[Document], unit: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    sums = [UserMatrixSum(plan.features, plan.weights, plan.window) for _ in range(2)]
    kind: UserUnit = "user" if unit == "user" else "document"
    with users_of(public, plan.words, unit=kind, most_words=plan.most_words, seed=_SEED) as users:
        counts = [
            half.add(UserText(person.chunks()) for person in islice(users, start, None, 2))
            for start, half in enumerate(sums)
        ]
    if min(counts) == 0:
        raise DataError(f"expected public texts of two people at least, got {sum(counts)}")
    return sums[0].cells * np.float64(CELL / counts[0]), sums[1].cells * np.float64(CELL / counts[1])


def _rounded(people: float) -> int | None:
    if not math.isfinite(people) or people > _MOST:
        return None
    step: int = 10 ** max(0, math.floor(math.log10(max(people, 1.0))) - 1)
    return max(1, math.ceil(people / step) * step)
