"""What every word mechanism offers: draws, its statement for a word, its statement for a document."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.selection import DistanceTable
from dptext.privacy.condition import Condition, Requirement, SameLayout
from dptext.privacy.guarantee import Guarantee, MetricDP, PureDP, for_group, product_upwards
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, of_release
from dptext.privacy.unit import Relation, Trust, Unit
from dptext.text.vocabulary import UNKNOWN
from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors
from dptext.words.training import assumptions_about, parameters_of_training

__all__ = ["BeyondWords", "Rows", "UnknownWords", "WordMechanism", "positive"]

Rows: TypeAlias = npt.NDArray[np.int64]
UnknownWords: TypeAlias = Literal["unk", "uniform"]
BeyondWords: TypeAlias = Literal["unk", "drop"]
UNKNOWN_FARTHEST = ", a pair with an unknown word as far as can be,"
"""Added to the name of a metric where unknown words are replaced by uniform ones first."""

_LAYOUT = (
    "the number of documents, their order, and the number of words in each",
    "the layout: punctuation, symbols, spaces and line breaks, and where they stand between the words",
    "where numbers, URLs, e-mail addresses and handles stood, and which of these each one was "
    "(each became a fixed placeholder)",
)


def positive(name: str, value: float) -> float:
    """The value as a float, when it is a finite number above 0.

    Raises:
        ParameterError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ParameterError(f"{name} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > 0):
        raise ParameterError(f"{name} must be a finite number above 0, got {number}")
    return number


class WordMechanism(ABC):
    """A randomised map from the words of a public vocabulary to its words. Frozen; it holds no random state.

    Args:
        vectors: public word vectors, or ones released under a statement (then the mechanism's statement is for people
            who are not in their training; see `dptext.words.training`).
        epsilon: for two words at distance d a loss of at most epsilon * d is proved, where a mechanism does not say
            otherwise.
        unknown: what a word outside the vocabulary counts as: ``"unk"`` (the element ``"<unk>"`` with its public
            vector) or ``"uniform"`` (a word drawn uniformly first, afresh for each occurrence).

    Raises:
        ParameterError: epsilon is not a finite number above 0; another policy.
    """

    name: ClassVar[str]
    max_words: int | None = None
    """Words of a document after this many are not looked at; None: no limit."""
    beyond: BeyondWords = "unk"
    """What becomes of them: ``"<unk>"`` each, or the document ends there. The number of words, which is exposed,
    decides where that is, so neighbours are cut at the same place."""

    def __init__(self, vectors: WordVectors, *, epsilon: float, unknown: UnknownWords = "unk") -> None:
        if not isinstance(vectors, WordVectors):
            raise ParameterError(
                f"vectors must be WordVectors, got {type(vectors).__name__}: use dptext.load_vectors(...)"
            )
        if unknown not in get_args(UnknownWords):
            raise ParameterError(f"unknown must be 'unk' or 'uniform', got {unknown!r}")
        if len(vectors) < 2:
            raise ParameterError(f"expected at least two words (one and {UNKNOWN!r}), got {len(vectors)}")
        self.vectors = vectors
        self.epsilon = positive("epsilon", epsilon)
        self.unknown = unknown

    def _freeze(self) -> None:
        """The last step of every constructor: from now on nothing can drift away from the statement."""
        object.__setattr__(self, "_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a mechanism is frozen, {name!r} cannot be set: build another one")
        object.__setattr__(self, name, value)

    def _metric(self, name: str) -> str:
        """The name of the metric, and the exception that the policy for unknown words makes."""
        return f"{name}{UNKNOWN_FARTHEST}" if self.unknown == "uniform" else name

    # -- to be said by each mechanism -------------------------------------------------------------------------

    @abstractmethod
    def word_guarantee(self) -> Guarantee:
        """The promise for one word: metric DP where a pair loses with its distance, else what is proved for all."""

    def _promise(self) -> Guarantee:
        """What the statement for one word says: `word_guarantee`, unless a published variant promises nothing."""
        return self.word_guarantee()

    @abstractmethod
    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        """One independent draw for each row."""

    @property
    def slack(self) -> float:
        """Nats that finite arithmetic may add to the loss of one word, proved."""
        return 0.0

    @property
    def labels(self) -> Rows | None:
        """(V,) a public number for each word where the promise is about it (its group, its place in a list)."""
        return None

    @property
    def claimed_epsilon(self) -> float | None:
        """The epsilon that the paper prints for a word, where it is another one than what is proved."""
        return None

    def requirements(self) -> tuple[Requirement, ...]:
        """What two words have to fulfil for the promise to hold between them."""
        return ()

    def exposes(self) -> tuple[str, ...]:
        """What the output shows of a word beside the promise, for the statement."""
        return ()

    def parameters(self) -> dict[str, Parameter]:
        """The public parameters, for the statement."""
        return {
            "epsilon": self.epsilon,
            "unknown": self.unknown,
            "vectors": self.vectors.source,
            "words": len(self.vectors),
            "dimension": self.vectors.dimension,
            "vectors_sha256": self.vectors.fingerprint,
            **parameters_of_training(self.vectors),
        }

    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes for granted beside what every release does, for the statement."""
        return assumptions_about(self.vectors)

    def distance_table(self) -> DistanceTable:
        """Public distances between the words, in the metric that epsilon counts (Euclidean, unless one says other)."""
        return ExactDistances(self.vectors.matrix)

    # -- offered by all ---------------------------------------------------------------------------------------

    def sample(self, words: Iterable[str], *, seed: int | None = None) -> list[str]:
        """One private word for each word, drawn independently.

        Args:
            words: words; case is folded, words outside the vocabulary are treated as the policy says.
            seed: None for cryptographic randomness; an integer for tests and papers only.

        >>> from dptext import TEM, load_vectors
        >>> vectors = load_vectors((["cat", "dog"], [[0.0, 1.0], [1.0, 0.0]]))
        >>> len(TEM(vectors, epsilon=5.0).sample(["a", "dog", "sat"]))
        3
        """
        if isinstance(words, str):
            raise ParameterError("words must be a list of strings, got one string: split it first, or use privatize")
        words = list(words)
        for place, word in enumerate(words):
            if not isinstance(word, str):
                raise ParameterError(f"words must be strings, entry {place} is {type(word).__name__}")
        row = self.vectors.vocabulary.row
        rows = np.fromiter((row(word) for word in words), dtype=np.int64, count=len(words))
        known = self.vectors.words
        return [known[drawn] for drawn in self.sample_rows(rows, RandomBits(seed))]

    def sample_rows(self, rows: Rows, bits: RandomBits) -> Rows:
        """`sample` on rows of the vocabulary: (n,) int64 to (n,) int64."""
        if self.unknown == "uniform":
            rows = rows.copy()
            unknown = np.flatnonzero(rows == self.vectors.vocabulary.unknown_row)
            bounds = np.full(unknown.size, len(self.vectors), dtype=np.uint64)
            rows[unknown] = bits.below(bounds).astype(np.int64)
        return self._draw(rows, bits)

    @property
    def statement(self) -> PrivacyStatement:
        """The promise for one word: unit word, substitution, local."""
        return self._statement(
            self._promise(),
            unit=Unit.WORD,
            condition=Condition(requirements=(SameLayout(), *self.requirements())),
            slack=self.slack,
        ).replace(exposed=self.exposes())

    def document_guarantee(self, longest: int) -> Guarantee:
        """The promise for replacing all words of a document of at most ``longest`` words."""
        word = self.word_guarantee()
        if isinstance(word, PureDP) and longest == 0:
            return PureDP(0.0)
        if not isinstance(word, MetricDP):
            return for_group(word, max(1, longest))
        return MetricDP(
            word.epsilon,
            f"summed {word.metric}",
            None if word.max_distance is None else product_upwards(longest, word.max_distance),
            word.space,
        )

    def document_statement(self, longest: int, *, seeded: bool = False) -> PrivacyStatement:
        """The promise for a document: unit document, substitution, local.

        Args:
            longest: the number of protected words in the longest document of the release (the output shows it).
            seeded: whether a seed was used.
        """
        adds_up = "distances" if isinstance(self._promise(), MetricDP) else "losses"
        return self.statement_of_release(
            longest,
            self.document_guarantee(longest),
            condition=Condition(
                requirements=(SameLayout(), *self.requirements()), note=f"{adds_up} add up over the places of the text"
            ),
            exposed=self._exposed(),
            seeded=seeded,
        )

    def statement_of_release(
        self, longest: int, guarantee: Guarantee, *, condition: Condition, exposed: tuple[str, ...], seeded: bool
    ) -> PrivacyStatement:
        """The statement of a release of documents that shows what ``exposed`` says, under a condition of its own."""
        return self._statement(
            guarantee, unit=Unit.DOCUMENT, condition=condition, slack=product_upwards(longest, self.slack)
        ).replace(
            exposed=exposed,
            seeded=seeded,
            parameters={**self.parameters(), **self._pure_epsilon(), "words_counted": longest},
        )

    def _pure_epsilon(self) -> dict[str, Parameter]:
        match self._promise():
            case MetricDP() as metric:
                return {"pure_epsilon_of_a_word": metric.pure_epsilon}
            case PureDP(epsilon):
                return {"pure_epsilon_of_a_word": epsilon}
            case _:
                return {}

    def _exposed(self) -> tuple[str, ...]:
        shown = (*_LAYOUT, *self.exposes())
        if self.max_words is None:
            return shown
        if self.beyond == "drop":
            return (*shown, f"that every document of more than {self.max_words} words was cut after these")
        return (*shown, f"that every word after the first {self.max_words} of a document became {UNKNOWN}")

    def _statement(self, guarantee: Guarantee, *, unit: Unit, condition: Condition, slack: float) -> PrivacyStatement:
        return of_release(
            guarantee=guarantee,
            unit=unit,
            relation=Relation.SUBSTITUTION,
            condition=condition,
            trust=Trust.LOCAL,
            mechanism=self.name,
            parameters=self.parameters(),
            assumptions=self.assumptions(),
            slack=slack,
            claimed_epsilon=self.claimed_epsilon,
        )
