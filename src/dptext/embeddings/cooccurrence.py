"""Word vectors from one noisy release of co-occurrences; everything after it is post-processing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, get_args

import numpy as np
import numpy.typing as npt

from dptext.display import ReprMixin
from dptext.embeddings.plan import (
    ContextFeatures,
    Levels,
    ReleasePlan,
    UserMatrixSum,
    UserText,
    check_source,
    features_of_vectors,
    hidden_by_noise,
)
from dptext.embeddings.refinement import improved, public_base
from dptext.embeddings.sharing import Shareable
from dptext.errors import DataError, ParameterError
from dptext.io.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import ELEMENTARY, MOST_USERS, noisy_matrix
from dptext.privacy.budgets import PersonalBudgets, warn_of_delta
from dptext.privacy.gaussian import l2_sensitivity
from dptext.privacy.guarantee import ApproxDP, Relation
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.wording import warn_unprotected
from dptext.text.tokens import Vocabulary
from dptext.users.grouping import UserUnit, UserWords, documents_of, users_of
from dptext.users.private_vocabulary import PrivateVocabulary
from dptext.validation import check_choice, check_int, require_epsilon
from dptext.vectors.formats import Source
from dptext.vectors.word_vectors import WordVectors

Floats = npt.NDArray[np.float64]

MOST_WORDS = 1_000_000
"""Default maximum number of words used per user; later ones are ignored."""
WINDOW = 10
"""Words on either side that count as context."""

_SKIPPED = 100  # most frequent words of public vectors, which are known well enough
_FREQUENT = 4000  # a word beyond this rank counts less, because few users have it
# A word without a public vector counts more. On IMDb reviews (2,500 made-up users, 500 words without their vectors) at
# epsilon 8, weights 1 / 2 / 4 gave .30 / .44 / .51 on MEN's pairs with such a word, and other words lost nothing; at
# epsilon 32, .56 / .63 / .66, where the others' gain of .009 became .005.
_NEW = 4.0
# with at most this many words per user and the longest window, sums of contexts stay below 2^63
_MOST = {"window": 1000, "most_words": 10_000_000}


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(ReleasePlan):
    """Plan of a release of co-occurrences, and its steps: `total`, `noisy_matrix`, `vectors`."""

    unit: UserUnit
    public: WordVectors
    features: ContextFeatures
    weights: Floats
    budgets: PersonalBudgets
    window: int
    most_words: int

    mechanism: ClassVar[str] = "co-occurrences"
    share: ClassVar[str] = "epsilon"

    def total(self, users: Iterable[UserWords]) -> npt.NDArray[np.int64]:
        """Return (V, k) the sum of the users' matrices."""
        total = UserMatrixSum(self.features, self.weights, self.window)
        if total.add(UserText(person.chunks(), self.clipping_norm(person.levels)) for person in users) == 0:
            raise DataError("there are no documents: expected at least one")
        return total.cells

    def total_of(self, documents: DocumentReader | Iterable[Document]) -> npt.NDArray[np.int64]:
        """Return the `total` of the authors of these documents, in any order."""
        options: dict[str, Any] = {"level": self.levels.attribute, "most_words": self.most_words}
        with users_of(documents, self.words, unit=self.unit, **options) as users:
            return self.total(users)

    def clipping_norm(self, levels: Iterable[Any]) -> float:
        """Return C for a user who declared these levels; the strictest counts."""
        named = [None if level is None else str(level) for level in levels]
        return min(self.budgets.clipping_norm(level) for level in named or [None])

    def vectors(self, matrix: Floats, sigma: float, statement: PrivacyStatement | None = None) -> WordVectors:
        """Compute word vectors from a matrix with noise of sigma on every number (post-processing)."""
        base = public_base(self.public.matrix, self.public.vocabulary.unknown_row)
        points = improved(matrix, sigma, base, self.weights > 0)
        source = f"{self.public.source} and co-occurrences"
        return WordVectors(self.words.words, points.astype(np.float32), source=source, statement=statement)

    def doubts(self, vectors: WordVectors) -> tuple[str, ...]:
        """Warn, in sentences, if noise hides the signal."""
        text: npt.NDArray[np.bool_] = np.any(vectors.matrix != 0, axis=1)
        base = public_base(self.public.matrix, self.public.vocabulary.unknown_row).astype(np.float32)
        text[: len(base)] = (vectors.matrix[: len(base)] != base).any(axis=1)
        return hidden_by_noise(text[self.weights > 0])

    def guarantee(self, level: str, *, relation: Relation = Relation.ADD_REMOVE) -> ApproxDP:
        """Return the guarantee of the release alone for a user of a level."""
        return self.budgets.guarantee(level, relation=relation)

    def _costs(self, level: str) -> dict[str, Parameter]:
        budgets = self.budgets
        return {
            "epsilon": budgets.levels[level],
            "delta": budgets.delta,
            "sigma": budgets.sigma,
            "sensitivity": l2_sensitivity(budgets.clipping_norm(level), Relation.ADD_REMOVE),
        } | self._substituted(level)

    def _shape(self) -> dict[str, Parameter]:
        return {
            "features": self.features.dimension,
            "features_sha256": self.features.fingerprint,
            "window": self.window,
            "most_words": self.most_words,
        }

    def _proof_assumptions(self) -> tuple[str, ...]:
        return (
            "an adversary may know that the corpus has at least one document",
            f"at most {MOST_USERS:,} {self.unit}s take part",
            ELEMENTARY,
        )


class Cooccurrence(Shareable, ReprMixin):
    """Word vectors from users' texts, by one noisy release of word co-occurrences.

    Every user's texts become one matrix, from these texts and public numbers alone, which is clipped to a norm by
    `dptext.noise.gaussian_sums.clipped_matrices`. The matrices are summed, and Gaussian noise is added once to all rows
    (`dptext.noise.gaussian_sums.noisy_matrix`). The rest is post-processing (`dptext.embeddings.refinement`).

    **Guarantee** (unit user; add/remove; central): (epsilon, delta)-DP. *Proof.* Adding or removing a user changes the
    sum by at most C = 1 in Euclidean norm (checked in integers, for every user), sigma is that of the analytic Gaussian
    mechanism for sensitivity 1 (Balle and Wang 2018, Theorem 8), and the noise is exact. With levels of epsilon, a user
    of level l has C_l and (epsilon_l, delta): `dptext.privacy.budgets.PersonalBudgets`. Under substitution the epsilon
    is larger (18.66 instead of 8 at delta 1e-6), and the statement has the number. Assumptions: vocabulary, public
    vectors, levels and all arguments are public or were released under statements that are included; each person has
    exactly one user id; the corpus is not empty, and that is public; at most 2^28 users.

    Args:
        vectors: public word vectors for `dptext.load_vectors`, most frequent word first.
        epsilon: one number for all users, or public levels such as ``{"strict": 1.0, "open": 8.0}``. Required.
        delta: the delta of every user.
        unit: "user"; or "document", a much weaker guarantee: none for a person with several documents.
        level: name of the public attribute of documents that holds a user's level. The strictest of several declared
            levels counts.
        default_level: level of users who declared none; None: the strictest.
        vocabulary: words that `dptext.private_vocabulary` learned from the same users. They follow the words of
            ``vectors``, and their guarantee is included.
        window: number of context words on either side.
        most_words: maximum number of words used per user; later ones are ignored.
        public_users: public upper bound on the number of users, used to check the total delta
            (`dptext.privacy.budgets.DeltaWarning`).
        seed: for tests and papers; it voids the guarantee for anyone who knows it. None: cryptographic randomness.

    Attributes:
        vectors_: `WordVectors` with the statement.
        statement_: the statement for everybody (the largest epsilon).
        statements_: the statements by level.
        budgets_: levels, clipping norms and noise.
        doubts_: warnings, in sentences, if noise hides the signal; they follow from the release.
        release_: (V, k) float64, the noisy matrix. The guarantee covers it, so it may be shared too.

    Raises:
        ParameterError: an argument is out of range; a vocabulary without words; an unknown level.
        RefusedError: vectors whose statement cannot be added (another unit or relation).
        DataError, StorageError: as `read_documents` and `dptext.users.grouping.users_of`.

    >>> import dptext
    >>> vectors = dptext.load_vectors((["tea", "cup", "tax", "law"], [[1, 0], [2, 1], [-1, 2], [-2, 1]]))
    >>> documents = [dptext.Document("A cup of tea", user=str(user)) for user in range(20)]
    >>> model = dptext.Cooccurrence(vectors, epsilon=8.0, delta=1e-6).fit(documents)
    >>> model.vectors_.words
    ('tea', 'cup', 'tax', 'law', '<unk>')
    >>> print(model.statement_.guarantee, model.statement_.unit, model.statement_.relation)
    (8, 1e-06)-differential privacy user add/remove
    """

    def __init__(
        self,
        vectors: Source = "glove-6b-50d",
        *,
        epsilon: float | Mapping[str, float] | None = None,
        delta: float = 1e-6,
        unit: str = "user",
        level: str | None = None,
        default_level: str | None = None,
        vocabulary: PrivateVocabulary | None = None,
        window: int = WINDOW,
        most_words: int = MOST_WORDS,
        public_users: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.vectors, self.epsilon, self.delta = vectors, epsilon, delta
        self.unit, self.level, self.default_level = unit, level, default_level
        self.vocabulary, self.window = vocabulary, window
        self.most_words, self.public_users = most_words, public_users
        self.seed = seed

    def fit(
        self,
        documents: Any,
        y: object = None,  # noqa: ARG002
        *,
        text: str = "text",
        user: str | None = None,
        release_id: str | None = None,
    ) -> Self:
        """Learn from documents with users, in any order; this is one release of the users' texts.

        Args:
            documents: a table, as in `dptext.privatize`; the result of `dptext.read_documents` (with ``user=``); or
                `Document` objects.
            text, user: columns of the table.
            release_id: id of a reservation in a ledger (`dptext.ledger.ledger.Ledger.reserve`); None: a new one.
        """
        plan, bits = self.plan(), RandomBits(self.seed)
        documents = documents_of(documents, plan.unit, text=text, user=user, columns=[self.level])
        warn_of_delta(plan.total_delta, public_users=self.public_users)
        return self.released(plan, plan.total_of(documents), bits, release_id=release_id)

    def released(
        self, plan: Plan, total: npt.NDArray[np.int64], bits: RandomBits, *, release_id: str | None = None
    ) -> Self:
        """Make the release from a sum computed elsewhere (`dptext.spark.frames.fit`), and set the attributes of `fit`.

        Every call draws new noise and spends the whole budget again. ``total`` is the result of `Plan.total`, (V, k),
        and **private**.
        """
        sigma = plan.budgets.sigma
        matrix = noisy_matrix(total, sigma, bits)
        matrix.flags.writeable = False
        self.statements_ = plan.statements(seeded=bits.seeded, release_id=release_id)
        self.statement_ = self.statements_[plan.levels.most]
        warn_unprotected(self.statement_)
        self.release_, self.budgets_ = matrix, plan.budgets
        self.vectors_ = plan.vectors(matrix, sigma, self.statement_)
        self.doubts_ = plan.doubts(self.vectors_)
        return self

    def plan(self) -> Plan:
        """Validate the arguments and return the public plan, before a text is read."""
        unit = check_choice("unit", self.unit, get_args(UserUnit))
        window, most_words = (
            check_int(name, getattr(self, name), minimum=1, maximum=maximum) for name, maximum in _MOST.items()
        )
        values: Any = self.epsilon
        epsilon: float | Mapping[str, float] = require_epsilon(values, "Cooccurrence")
        budgets = PersonalBudgets(epsilon, delta=self.delta, default=self.default_level)
        public, known = check_source(self.vectors, self.vocabulary)
        if not isinstance(public, WordVectors):
            raise ParameterError("vectors must be public word vectors, got words alone")
        words = known if self.vocabulary is None else self.vocabulary.after(known)
        return Plan(
            unit="user" if unit == "user" else "document",
            words=words,
            public=public,
            vocabulary=self.vocabulary,
            levels=Levels(dict(budgets.levels), budgets.default, self.level),
            features=features_of_vectors(public.matrix, words),
            weights=_weights(words, public=len(public)),
            budgets=budgets,
            window=window,
            most_words=most_words,
        )


def _weights(words: Vocabulary, *, public: int) -> Floats:
    """Return omega of equation (rows) by rank; the first ``public`` words have public vectors."""
    ranks = np.arange(1, len(words) + 1)
    weights: Floats = np.minimum(1.0, _FREQUENT / ranks)
    weights[: min(_SKIPPED, len(words) // 20)] = 0.0
    weights[public:] = _NEW
    weights[words.unknown_row] = 0.0
    return weights
