"""What a release of co-occurrences is made of before a text is read, and how it is made: plan, total, release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from dptext.embeddings.context_features import ContextFeatures, features_of_vectors, random_features
from dptext.embeddings.level_promise import checked_policy
from dptext.embeddings.policy import BudgetPolicy
from dptext.embeddings.promise import statement_of
from dptext.embeddings.refinement import factorised, improved, public_base
from dptext.embeddings.release import noisy_matrix
from dptext.embeddings.user_matrices import UserMatrixSum, UserText
from dptext.errors import DataError, ParameterError
from dptext.privacy.budgets import DEFAULT_FLOOR, PersonalBudgets
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.text.vocabulary import UNKNOWN, Vocabulary
from dptext.users.by_user import Person, UserUnit
from dptext.users.private_vocabulary import PrivateVocabulary
from dptext.vectors.formats import Source, load_vectors
from dptext.vectors.word_vectors import WordVectors

__all__ = ["MOST_WORDS", "WINDOW", "Plan", "Release"]

Floats = npt.NDArray[np.float64]

MOST_WORDS = 1_000_000
"""Of a user, this many words are looked at, unless another number is given."""
WINDOW = 10
"""Words on either side that count as context."""

_SKIPPED = 100  # of public vectors, the most frequent words: nothing is left to learn about them
_FREQUENT = 4000  # beyond this rank a word counts less: few of its users are there, and each pays for it
# A word without a public vector counts more. On IMDb reviews (2,500 made-up users, 500 words without their vectors) at
# epsilon 8, weights 1 / 2 / 4 gave .30 / .44 / .51 on MEN's pairs with such a word, and other words lost nothing; at
# epsilon 32, .56 / .63 / .66, where the others' gain of .009 became .005.
_NEW = 4.0
_RANDOM_FEATURES = 100
_LONGEST_WINDOW, _LARGEST_DIMENSION = 1000, 1000
MOST_WORDS_EVER = 10_000_000
"""With so many words of one user, and the longest window, sums of contexts stay below 2^63."""


@dataclass(frozen=True, eq=False)
class Release:
    """What may leave the curator.

    Attributes:
        matrix: (V, k) float64, the noisy sum that the promise is about.
        vectors: made of it, with the statement.
        statement: for everybody; ``statements``: by level.
    """

    matrix: Floats
    vectors: WordVectors
    statement: PrivacyStatement
    statements: Mapping[str, PrivacyStatement]


@dataclass(frozen=True, eq=False)
class Plan:
    """Public: vocabulary, features, weights, budgets. See `dptext.embeddings.cooccurrence.Cooccurrence`.

    Attributes:
        words: the vocabulary.
        public: the public vectors of its first words; None where there are none.
        features: of contexts.
        weights: (V,) of words.
        budgets: levels, norms and noise.
        unit: "user" or "document".
        policy: how users come by their levels, where not all are declared.
    """

    words: Vocabulary
    public: WordVectors | None
    features: ContextFeatures
    weights: Floats
    budgets: PersonalBudgets
    unit: UserUnit
    vocabulary: PrivateVocabulary | None
    window: int
    dimension: int
    most_words: int
    policy: BudgetPolicy | None = None

    @classmethod
    def of(
        cls,
        vectors: Source | Vocabulary,
        *,
        epsilon: float | Mapping[str, float],
        delta: float,
        unit: str = "user",
        default_level: str | None = None,
        vocabulary: PrivateVocabulary | None = None,
        window: int = WINDOW,
        dimension: int = 50,
        most_words: int = MOST_WORDS,
        level: str | BudgetPolicy | None = None,
    ) -> Plan:
        """Check all arguments, load the vectors, fix the features.

        Raises:
            ParameterError: an argument out of range; a vocabulary without words.
            DataError, StorageError, MissingExtraError: see `dptext.load_vectors`.
        """
        if unit not in get_args(UserUnit):
            raise ParameterError(f"unit must be 'user' or 'document', got {unit!r}")
        _check_whole("window", window, _LONGEST_WINDOW)
        _check_whole("dimension", dimension, _LARGEST_DIMENSION)
        _check_whole("most_words", most_words, MOST_WORDS_EVER)
        floor = DEFAULT_FLOOR
        if isinstance(level, BudgetPolicy):
            floor = level.floor
            if default_level is None and isinstance(epsilon, Mapping) and level.default in epsilon:
                default_level = level.default
        budgets = PersonalBudgets(epsilon, delta=delta, default=default_level, floor=floor)
        policy = checked_policy(level, budgets.levels, budgets.default, unit)
        if vocabulary is not None and not isinstance(vocabulary, PrivateVocabulary):
            raise ParameterError(
                f"vocabulary must be what dptext.private_vocabulary returns, got {type(vocabulary).__name__}; public "
                "words are given as vectors="
            )
        public = None if isinstance(vectors, Vocabulary) else load_vectors(vectors)
        known = vectors if isinstance(vectors, Vocabulary) else public.vocabulary if public is not None else None
        assert known is not None
        words = known if vocabulary is None else vocabulary.after(known)
        if len(words) < 2:
            raise ParameterError(f"a vocabulary must hold a word besides {UNKNOWN!r}, got none: give other vectors")
        if public is not None:
            features, dimension = features_of_vectors(public.matrix, words), public.dimension
        else:
            features = random_features(words, _RANDOM_FEATURES)
        return cls(
            words=words,
            public=public,
            features=features,
            weights=_weights(words, public=None if public is None else len(public)),
            budgets=budgets,
            unit="user" if unit == "user" else "document",
            vocabulary=vocabulary,
            window=window,
            dimension=dimension,
            most_words=most_words,
            policy=policy,
        )

    def total(self, users: Iterable[Person]) -> npt.NDArray[np.int64]:
        """(V, k) the sum of the users' matrices. **Private: it must not leave the curator.**

        Raises:
            DataError: not one user.
            ParameterError: a user's level is none of the budgets'.
        """
        total = UserMatrixSum(self.features, self.weights, self.window)
        seen = False

        def bounded() -> Iterator[UserText]:
            nonlocal seen
            for person in users:
                seen = True
                yield UserText(person.chunks(), self.norm(person.levels))

        total.add(bounded())
        if not seen:
            raise DataError("there are no documents: expected at least one")
        return total.cells

    def norm(self, levels: Iterable[Any]) -> float:
        """C of a user who declared these levels: the strictest counts."""
        named = [None if level is None else str(level) for level in levels]
        return min(self.budgets.clipping_norm(level) for level in named or [None])

    def release(self, total: npt.NDArray[np.int64], bits: RandomBits, *, release_id: str | None = None) -> Release:
        """Add the noise, once, and make vectors and statements. Each call is a release that costs its whole budget."""
        matrix = noisy_matrix(total, self.budgets.sigma, bits)
        matrix.flags.writeable = False
        release_id = release_id or new_release_id()  # one for all levels: they are one release
        statements = {
            level: statement_of(self, level, seeded=bits.seeded, release_id=release_id) for level in self.budgets.levels
        }
        largest = max(self.budgets.levels, key=self.budgets.levels.__getitem__)
        return Release(
            matrix, self.vectors(matrix, self.budgets.sigma, statements[largest]), statements[largest], statements
        )

    def vectors(self, matrix: Floats, sigma: float, statement: PrivacyStatement | None = None) -> WordVectors:
        """Post-processing: word vectors of a matrix with noise sigma on each number."""
        measured = self.weights > 0
        if self.public is None:
            points, source = factorised(matrix, sigma, measured, self.dimension), "co-occurrences"
        else:
            base = public_base(self.public.matrix, self.public.vocabulary.unknown_row)
            points = improved(matrix, sigma, base, measured)
            source = f"{self.public.source} and co-occurrences"
        return WordVectors(self.words.words, points.astype(np.float32), source=source, statement=statement)


def _weights(words: Vocabulary, *, public: int | None) -> Floats:
    """omega of equation (rows): of words by rank, of which the first so many have public vectors.

    A word of a private vocabulary is there because many users wrote it, so its place in the list says nothing; and all
    that will ever be known of it comes from this release, where public vectors are merely improved.
    """
    ranks = np.arange(1, len(words) + 1)
    weights: Floats = np.minimum(1.0, _FREQUENT / ranks)
    if public is not None:
        weights[: min(_SKIPPED, len(words) // 20)] = 0.0
        weights[public:] = _NEW
    weights[words.unknown_row] = 0.0
    return weights


def _check_whole(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise ParameterError(f"{name} must be an integer between 1 and {most:,}, got {value!r}")
