"""Public plan of a release (features, statements, expected quality), and the sum of the users' matrices."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from dptext.embeddings.participation import public_frequencies
from dptext.embeddings.refinement import public_base, strengths
from dptext.errors import DataError, ParameterError
from dptext.io.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import CELL, MOST_USERS, Floats, Integers, clipped_matrices
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.guarantee import ApproxDP, Guarantee, Relation, Trust, Unit, as_approx, rounded_up
from dptext.privacy.neighbours import Condition, OfLevel
from dptext.privacy.restating import check_prior, counted_in, substituted
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.text.tokens import UNKNOWN, Vocabulary
from dptext.users.grouping import ONE_NAME, UserUnit, users_of
from dptext.users.private_vocabulary import LearnedVocabulary, PrivateVocabulary
from dptext.validation import check_float, check_int
from dptext.vectors.formats import Source, load_vectors
from dptext.vectors.word_vectors import WordVectors

if TYPE_CHECKING:
    from dptext.embeddings.cooccurrence import Plan

UNIT = 2.0**-22
"""Resolution of a feature."""
LARGEST = 64.0
"""Bound on a feature; whitened features seldom exceed 10."""

_FREQUENT = 1e-4  # a of equation (weights)
_FLAT, _ROUNDING = 1e-9, 1e-13  # relative to the largest variance and squared mean: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class ContextFeatures:
    """Public integer features of words, in units of `UNIT`."""

    matrix: npt.NDArray[np.int32]
    fingerprint: str

    @classmethod
    def of(cls, rows: Floats, unknown_row: int) -> ContextFeatures:
        """Build features from (V, k) numbers; NaN and the features of the unknown word become 0."""
        matrix = np.zeros((len(rows) + 1, rows.shape[1]), dtype=np.int32)
        finite = np.where(np.isfinite(rows), rows, 0.0)
        matrix[:-1] = np.rint(np.clip(finite, -LARGEST, LARGEST) / UNIT)
        matrix[unknown_row] = 0
        matrix.flags.writeable = False
        return cls(matrix, hashlib.sha256(np.ascontiguousarray(matrix, dtype="<i4").tobytes()).hexdigest())

    @property
    def words(self) -> int:
        return len(self.matrix) - 1

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[1])


def features_of_vectors(matrix: npt.NDArray[np.float32], vocabulary: Vocabulary) -> ContextFeatures:
    """Return centred, whitened, weighted public vectors of the first P words, and 0 for the words after them."""
    known = len(matrix)
    frequencies = public_frequencies(len(vocabulary))[:known]
    weights = _FREQUENT / (_FREQUENT + frequencies)  # (weights)
    share = frequencies * weights
    if vocabulary.unknown_row < known:
        share[vocabulary.unknown_row] = 0.0
    share /= share.sum()
    points = matrix.astype(np.float64)
    mean = share @ points
    points -= mean
    variances, directions = np.linalg.eigh((share[:, None] * points).T @ points)
    kept = variances > _FLAT * max(float(variances.max()), 0.0) + _ROUNDING * float(np.abs(mean).max()) ** 2
    white = (points @ directions[:, kept]) / np.sqrt(variances[kept])
    rows = np.zeros((len(vocabulary), max(1, int(kept.sum()))))
    rows[:known, : white.shape[1]] = white * weights[:, None]
    return ContextFeatures.of(rows, vocabulary.unknown_row)


Chunk = tuple[npt.NDArray[np.int32], Integers]
"""(words,) rows of the vocabulary, -1 for other words; (documents,) number of words per document."""
_BATCH = 1 << 12  # words of several users in a batch: a word takes some 2 KB of intermediate matrices


@dataclass(frozen=True)
class UserText:
    """Texts of one user as chunks of whole documents, and the clipping norm C of the user's matrix."""

    chunks: Iterable[Chunk]
    norm: float = 1.0


class UserMatrixSum:
    """The sum of all users' matrices."""

    def __init__(self, features: ContextFeatures, weights: Floats, window: int) -> None:
        self.features, self.weights, self.window = features, weights, window
        self.cells: Integers = np.zeros((features.words, features.dimension), dtype=np.int64)
        self._by_dimension = np.ascontiguousarray(features.matrix.T)

    def add(self, users: Iterable[UserText]) -> int:
        """Add the matrices of users, each with all their texts, and return the number of users."""
        batch: list[tuple[Chunk, float]] = []
        size = count = 0
        for user in users:
            count += 1
            chunks = list(user.chunks)
            if not chunks:
                continue
            rows, lengths = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
            if size + len(rows) > _BATCH:
                self._add_batch(batch)
                batch, size = [], 0
            batch.append(((rows, lengths), user.norm))
            size += len(rows) + len(lengths)
        self._add_batch(batch)
        return count

    def _add_batch(self, batch: list[tuple[Chunk, float]]) -> None:
        if not batch:
            return
        rows = np.concatenate([chunk[0] for chunk, _ in batch])
        lengths = np.concatenate([chunk[1] for chunk, _ in batch])
        owner = np.repeat(np.arange(len(batch)), [len(chunk[0]) for chunk, _ in batch])
        keys, sums, counts = self._summed(rows, lengths, owner)
        if len(keys) == 0:
            return
        owner, words = np.divmod(keys, self.features.words)
        matrices = sums * (UNIT * self.weights[words] / counts)[:, None]  # (rows)
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        norms = np.array([norm for _, norm in batch])
        cells = clipped_matrices(matrices, starts, norms[owner[starts]])
        words, _, order, first = _grouped(words)
        self.cells[words] += np.add.reduceat(cells[order], first, axis=0)

    def _summed(
        self, rows: npt.NDArray[np.int32], lengths: Integers, owner: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """Return keys owner * V + word, ascending; s_w of equation (rows) in units of `UNIT`; and counts."""
        known = np.flatnonzero(rows >= 0)
        keys, counts, order, first = _grouped(owner[known] * self.features.words + rows[known])
        words = known[order]
        # the window around each word, within its document
        ends, place = np.cumsum(lengths), np.arange(len(rows))
        start = np.maximum(place - self.window, np.repeat(ends - lengths, lengths))[words]
        end = np.minimum(place + self.window + 1, np.repeat(ends, lengths))[words]
        sums = np.empty((len(keys), self.features.dimension), dtype=np.int64)
        running = np.zeros(len(rows) + 1, dtype=np.int64)
        for column, feature in enumerate(self._by_dimension):  # one feature at a time fits into the cache
            values = feature[rows]
            np.cumsum(values, dtype=np.int64, out=running[1:])
            contexts = running[end]
            contexts -= running[start]
            contexts -= values[words]
            sums[:, column] = np.add.reduceat(contexts, first) if len(first) else 0
        return keys, sums, counts


def _grouped(keys: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Return distinct keys, ascending; their counts; the sorting order; the start of each key in it."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))  # keys are at least 0
    return keys[first], np.diff(first, append=len(keys)), order, first


_UNITS = {"user": Unit.USER, "document": Unit.DOCUMENT, "pair": Unit.EXAMPLE}


def check_source(
    vectors: Source | Vocabulary, vocabulary: PrivateVocabulary | None
) -> tuple[WordVectors | Vocabulary, Vocabulary]:
    """Return the public vectors (loaded) or public words of a release, and these words as a vocabulary."""
    if isinstance(vectors, LearnedVocabulary | PrivateVocabulary):
        raise ParameterError(
            "vectors must be public, and these words have a separate guarantee: pass the result of "
            "dptext.private_vocabulary as vocabulary=, and public words as vectors= "
            f"(Vocabulary([{UNKNOWN!r}]) if there are none)"
        )
    if vocabulary is not None and not isinstance(vocabulary, PrivateVocabulary):
        raise ParameterError(
            f"vocabulary must be a result of dptext.private_vocabulary, got {type(vocabulary).__name__}; pass public "
            "words as vectors="
        )
    if isinstance(vectors, Vocabulary):
        return vectors, vectors
    loaded = load_vectors(vectors)
    return loaded, loaded.vocabulary


def hidden_by_noise(signal: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    """Warn, in sentences, about words whose signal the noise hides."""
    share = float(signal.mean()) if signal.size else 0.0
    if not signal.any():
        return (
            "noise hides the whole contribution of these texts (too few people for this epsilon): the vectors equal "
            "the prepared public vectors",
        )
    if share < 0.5:
        return (
            f"noise hides the contribution of these texts for {1 - share:.0%} of the words, which keep their public "
            "vectors",
        )
    return ()


@dataclass(frozen=True)
class Levels:
    """Public levels of users in one release: epsilon or sampling rate per level, default, and name of the attribute."""

    shares: Mapping[str, float]
    default: str
    attribute: str | None = None

    @property
    def most(self) -> str:
        """The level with the largest budget or rate; its guarantee holds for every user."""
        return max(self.shares, key=self.shares.__getitem__)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleasePlan(ABC):
    """Everything decided before a text is read: public and validated."""

    unit: str
    words: Vocabulary
    public: WordVectors | None
    vocabulary: PrivateVocabulary | None
    levels: Levels
    listed: WordVectors | None = None

    mechanism: ClassVar[str]
    share: ClassVar[str]
    """Name of a level's parameter in a statement: an epsilon, or a sampling rate."""

    def __post_init__(self) -> None:
        check_prior(self.prior, _UNITS[self.unit])

    @abstractmethod
    def guarantee(self, level: str, *, relation: Relation = Relation.ADD_REMOVE) -> ApproxDP:
        """Return the guarantee of the release alone for a user of a level."""

    @abstractmethod
    def _costs(self, level: str) -> dict[str, Parameter]:
        """Return the budget and the noise, for a statement."""

    @abstractmethod
    def _shape(self) -> dict[str, Parameter]:
        """Return all other parameters, for a statement."""

    @abstractmethod
    def _proof_assumptions(self) -> tuple[str, ...]:
        """Return the assumptions of the mechanism's proof."""

    def statement(self, level: str, *, seeded: bool, release_id: str | None = None) -> PrivacyStatement:
        """Return the statement for users of a level, including earlier releases."""
        statement = release_statement(
            guarantee=self._guarantee(level),
            unit=_UNITS[self.unit],
            relation=Relation.ADD_REMOVE,
            condition=self._condition(level),
            trust=Trust.CENTRAL,
            mechanism=self.mechanism,
            parameters=self._parameters(level),
            assumptions=self._assumptions(),
            exposed=(f"the list of words that have a vector: {self._origin}",),
            seeded=seeded,
            release_id=release_id or new_release_id(),
        )
        return counted_in(statement, self.prior)

    def statements(self, *, seeded: bool, release_id: str | None = None) -> dict[str, PrivacyStatement]:
        """Return the statements by level, under one release id."""
        release_id = release_id or new_release_id()
        return {level: self.statement(level, seeded=seeded, release_id=release_id) for level in self.levels.shares}

    def substitution_guarantee(self, level: str) -> ApproxDP:
        return substituted(self.guarantee(level, relation=Relation.SUBSTITUTION), self.prior)

    @property
    def total_delta(self) -> float:
        """Delta of this release and of the earlier ones it builds on."""
        return as_approx(self.statement(self.levels.most, seeded=False).guarantee).delta

    @property
    def prior(self) -> dict[str, PrivacyStatement]:
        """Statements of earlier, non-public releases: vocabulary and vectors."""
        vectors = self.listed if self.public is None else self.public
        result = {
            "vocabulary": None if self.vocabulary is None else self.vocabulary.statement,
            "vectors": None if vectors is None else vectors.statement,
        }
        return {name: entry for name, entry in result.items() if entry is not None}

    @property
    def new_words(self) -> int | None:
        """Number of words from no public list; they come last."""
        if self.vocabulary is None:
            return None
        if self.public is not None:
            return len(self.words) - len(self.public)
        learned = set(self.vocabulary.words)
        return sum(1 for _ in takewhile(learned.__contains__, reversed(self.words.words)))

    def _guarantee(self, level: str) -> Guarantee:
        return self.guarantee(level)

    def _condition(self, level: str) -> Condition:
        is_smaller = self.levels.shares[level] < max(self.levels.shares.values())
        return Condition(requirements=(OfLevel(level),) if is_smaller else ())

    def _parameters(self, level: str) -> dict[str, Parameter]:
        parameters = self._costs(level)
        parameters |= {f"promise_of_{name}": str(before.guarantee) for name, before in self.prior.items()}
        if len(self.levels.shares) > 1:
            parameters |= {f"{self.share}_of_{name}": share for name, share in self.levels.shares.items()}
            parameters |= {"level": level, "default_level": self.levels.default}
        return {
            **parameters,
            "words": len(self.words),
            "new_words": self.new_words,
            **self._shape(),
            "public_vectors": None if self.public is None else self.public.source,
            "public_vectors_sha256": None if self.public is None else self.public.fingerprint,
        }

    def _substituted(self, level: str) -> dict[str, Parameter]:
        guarantee = self.substitution_guarantee(level)
        return {
            "epsilon_under_substitution": rounded_up(guarantee.epsilon, 4),
            "delta_under_substitution": rounded_up(guarantee.delta, 4),
        }

    def _assumptions(self) -> tuple[str, ...]:
        lines = ["all parameters are public; none was computed from the protected texts"]
        if self.prior:
            lines = ["all parameters are public, or computed from earlier releases whose guarantees are included above"]
        if self.public is not None and self.public.statement is None:
            lines.append("the public vectors were not made from the protected texts")
        if self.unit == "user":
            lines += ONE_NAME
        if len(self.levels.shares) > 1:
            lines.append("each user's level was declared without regard to the texts, and may be public")
        return (*lines, *self._proof_assumptions())

    @property
    def _origin(self) -> str:
        first = "public words"
        if "vectors" in self.prior:
            first = "words of vectors that were released under a separate guarantee, included above"
        if self.vocabulary is not None:
            return f"{first}, and words of these users that were released under a separate guarantee, included above"
        return first if "vectors" in self.prior else "it is public, chosen without regard to the texts"


EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
HALF = 0.5
_SEED = 7  # assigns public people to halves: the same in every run
_MOST = 10**9  # largest number of people considered


@dataclass(frozen=True, kw_only=True)
class ExpectedVectors:
    """Expected quality of a release at one epsilon: ``passed`` is the fraction of the signal that passes the noise."""

    epsilon: float
    sigma: float
    passed: float
    min_people: int | None
    half: int | None


def expected_vectors(
    plan: Plan,
    public: DocumentReader | Iterable[Document],
    *,
    people: int,
    epsilon: float | None = None,
    unit: str = "document",
) -> list[ExpectedVectors]:
    """Predict the quality of a release for one epsilon or several, from public texts only."""
    people = check_int("people", people, minimum=1, maximum=MOST_USERS)
    values = EPSILONS if epsilon is None else (check_float("epsilon", epsilon, above=0),)
    one, other = _halves(plan, public, unit)
    width = plan.features.dimension
    base = np.zeros((len(plan.words), plan.public.dimension))
    base[: len(plan.public)] = public_base(plan.public.matrix, plan.public.vocabulary.unknown_row)
    result = strengths(one, other, base, plan.weights > 0)
    expected = []
    for entry in values:
        sigma = PersonalBudgets(entry, delta=plan.budgets.delta, floor=0.0).sigma
        minimum = result.minimum_people(sigma, width)
        half: float = math.inf
        if math.isfinite(minimum):
            low, high = minimum, float(_MOST)
            if result.passed(high, sigma, width) >= HALF:
                while high / low > 1.01:
                    middle = math.sqrt(low * high)
                    low, high = (low, middle) if result.passed(middle, sigma, width) >= HALF else (middle, high)
                half = high
        expected.append(
            ExpectedVectors(
                epsilon=float(entry),
                sigma=sigma,
                passed=result.passed(people, sigma, width),
                min_people=_rounded(minimum),
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
        raise DataError(f"at least two users are needed in the public texts, got {sum(counts)}")
    return sums[0].cells * np.float64(CELL / counts[0]), sums[1].cells * np.float64(CELL / counts[1])


def _rounded(people: float) -> int | None:
    if not math.isfinite(people) or people > _MOST:
        return None
    step: int = 10 ** max(0, math.floor(math.log10(max(people, 1.0))) - 1)
    return max(1, math.ceil(people / step) * step)
