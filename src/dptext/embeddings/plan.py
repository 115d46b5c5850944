"""The plan of a release of co-occurrences, decided before a private text is read."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from dptext.embeddings.levels import Levels
from dptext.embeddings.participation import public_frequencies
from dptext.embeddings.refinement import public_base, strengths
from dptext.errors import DataError, ParameterError
from dptext.io.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import CELL, MOST_USERS, Floats, Integers, clipped_matrices
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.guarantee import ApproxDP, Guarantee, Relation, Trust, Unit, as_approx, rounded_up
from dptext.privacy.neighbours import Condition
from dptext.privacy.randomness import RandomBits, seed_bytes
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
"""Of a feature."""
LARGEST = 64.0
"""No feature is larger: white ones seldom exceed 10."""

_FREQUENT = 1e-4  # a of equation (weights)
_FLAT, _ROUNDING = 1e-9, 1e-13  # of the largest variance, of the square of the largest mean: below is rounding only


@dataclass(frozen=True, eq=False)
class ContextFeatures:
    """Frozen features."""

    matrix: npt.NDArray[np.int32]
    fingerprint: str

    @classmethod
    def of(cls, rows: Floats, unknown_row: int) -> ContextFeatures:
        """Features from (V, k) numbers; the unknown word, and what is no number, say nothing."""
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
    """Centred, whitened, weighted public vectors: (P, d) of the first P words; the words after them say nothing."""
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


def random_features(vocabulary: Vocabulary, dimension: int) -> ContextFeatures:
    """A direction drawn at random for every word, weighted: the same for the same word in every run, and so public."""
    weights = _FREQUENT / (_FREQUENT + public_frequencies(len(vocabulary)))  # (weights)
    rows = np.empty((len(vocabulary), dimension))
    for row, word in enumerate(vocabulary.words):
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        seed = int.from_bytes(digest[:8], "big")
        rows[row] = RandomBits.keyed(seed_bytes(b"dptext context features", seed)).normal(dimension)
    return ContextFeatures.of(rows * weights[:, None] / np.sqrt(dimension), vocabulary.unknown_row)


Chunk = tuple[npt.NDArray[np.int32], Integers]
"""(words,) rows of the vocabulary, -1 for other words; (documents,) how many of them each document has."""
Summed = tuple[Integers, Integers, Integers]
"""(m,) keys owner * V + word, ascending; (m, k) sums of contexts in units of `UNIT`; (m,) counts."""

_PIECE = 1 << 16  # words of one document worked on at once: a longer one is cut there
_BATCH = 1 << 12  # words of several users at once: a word is some 2 KB of matrices on the way


@dataclass(frozen=True)
class UserText:
    """What one user wrote, as chunks of whole documents, and the clipping norm C of their matrix."""

    chunks: Iterable[Chunk]
    norm: float = 1.0


@dataclass(eq=False)
class UserMatrixSum:
    """The sum of all users' matrices."""

    features: ContextFeatures
    weights: Floats
    window: int
    cells: Integers = field(init=False)
    _by_dimension: npt.NDArray[np.int32] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.cells = np.zeros((self.features.words, self.features.dimension), dtype=np.int64)
        self._by_dimension = np.ascontiguousarray(self.features.matrix.T)

    def add(self, users: Iterable[UserText]) -> int:
        """Add the matrices of users, each of whom must bring all their texts at once; how many there were."""
        batch: list[tuple[Chunk, float]] = []
        size = count = 0
        for user in users:
            count += 1
            chunks = iter(user.chunks)
            first = next(chunks, None)
            if first is None:
                continue
            second = next(chunks, None)
            if second is not None or len(first[0]) >= _PIECE:
                self._add_matrices(*self._sum_one(first, second, chunks), np.array([user.norm]))
                continue
            if size + len(first[0]) > _BATCH:
                self._add_batch(batch)
                batch, size = [], 0
            batch.append((first, user.norm))
            size += len(first[0]) + len(first[1])
        self._add_batch(batch)
        return count

    def _add_batch(self, batch: list[tuple[Chunk, float]]) -> None:
        if not batch:
            return
        rows = np.concatenate([chunk[0] for chunk, _ in batch])
        lengths = np.concatenate([chunk[1] for chunk, _ in batch])
        owner = np.repeat(np.arange(len(batch)), [len(chunk[0]) for chunk, _ in batch])
        keys, sums, counts = self._summed(rows, lengths, owner)
        self._add_matrices(keys, sums, counts, np.array([norm for _, norm in batch]))

    def _sum_one(self, first: Chunk, second: Chunk | None, rest: Iterator[Chunk]) -> Summed:
        result: Summed | None = None
        for chunk in (first, *(() if second is None else (second,)), *rest):
            for rows, lengths in _pieces(chunk):
                part = self._summed(rows, lengths, np.zeros(len(rows), dtype=np.int64))
                result = part if result is None else _merged((result, part))
        assert result is not None
        return result

    def _summed(self, rows: npt.NDArray[np.int32], lengths: Integers, owner: Integers) -> Summed:
        """The s_w of (rows), a feature at a time: one that fits into the cache, with everything sorted by key once."""
        known = np.flatnonzero(rows >= 0)
        keys, counts, order, first = _grouped(owner[known] * self.features.words + rows[known])
        words = known[order]
        start, end = (entry[words] for entry in _reach(lengths, self.window))
        sums = np.empty((len(keys), self.features.dimension), dtype=np.int64)
        running = np.zeros(len(rows) + 1, dtype=np.int64)
        for column, feature in enumerate(self._by_dimension):
            values = feature[rows]
            np.cumsum(values, dtype=np.int64, out=running[1:])
            contexts = running[end]
            contexts -= running[start]
            contexts -= values[words]
            sums[:, column] = np.add.reduceat(contexts, first) if len(first) else 0
        return keys, sums, counts

    def _add_matrices(self, keys: Integers, sums: Integers, counts: Integers, norms: Floats) -> None:
        if len(keys) == 0:
            return
        owner, words = np.divmod(keys, self.features.words)
        rows = sums * (UNIT * self.weights[words] / counts)[:, None]  # (rows)
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        cells = clipped_matrices(rows, starts, norms[owner[starts]])
        words, _, order, first = _grouped(words)
        self.cells[words] += np.add.reduceat(cells[order], first, axis=0)


def _pieces(chunk: Chunk) -> Iterator[Chunk]:
    rows, lengths = chunk
    start, size = 0, 0
    piece: list[int] = []
    for length in lengths.tolist():
        for segment in [*[_PIECE] * (length // _PIECE), length % _PIECE]:
            if size + segment > _PIECE:
                yield rows[start : start + size], np.array(piece, dtype=np.int64)
                start, size, piece = start + size, 0, []
            piece.append(segment)
            size += segment
    yield rows[start : start + size], np.array(piece, dtype=np.int64)


def _reach(lengths: Integers, window: int) -> tuple[Integers, Integers]:
    """(n,) where the words begin that stand at most ``window`` places from each in its document; past their end."""
    ends = np.cumsum(lengths)
    place = np.arange(int(lengths.sum()))
    return (
        np.maximum(place - window, np.repeat(ends - lengths, lengths)),
        np.minimum(place + window + 1, np.repeat(ends, lengths)),
    )


def _grouped(keys: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """Distinct keys, ascending; how often each stands there; the order that sorts them; where each begins in it."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))  # keys are at least 0
    return keys[first], np.diff(first, append=len(keys)), order, first


def _merged(parts: tuple[Summed, Summed]) -> Summed:
    keys, sums, counts = (np.concatenate(entry) for entry in zip(*parts, strict=True))
    if len(keys) == 0:
        return keys, sums, counts
    keys, _, order, first = _grouped(keys)
    return keys, np.add.reduceat(sums[order], first, axis=0), np.add.reduceat(counts[order], first)


_UNITS = {"user": Unit.USER, "document": Unit.DOCUMENT, "pair": Unit.EXAMPLE}


def check_source(
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


def hidden_by_noise(signal: npt.NDArray[np.bool_], *, public: bool) -> tuple[str, ...]:
    """What becomes of words of which nothing came through the noise, in sentences."""
    share = float(signal.mean()) if signal.size else 0.0
    if not signal.any():
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
    def _proof_assumptions(self) -> tuple[str, ...]:
        """Assumptions of the mechanism."""

    def statement(self, level: str, *, seeded: bool, release_id: str | None = None) -> PrivacyStatement:
        """The statement for users of a level, with what was promised before counted in."""
        self.check()
        statement = release_statement(
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

    def substitution_guarantee(self, level: str) -> ApproxDP:
        release = self.guarantee(level, relation=Relation.SUBSTITUTION)
        return substituted(self.levels.add_level(release), self.prior)

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
        result = {
            "vocabulary": None if self.vocabulary is None else self.vocabulary.statement,
            "vectors": None if vectors is None else vectors.statement,
            "predictor": None if self.levels.policy is None else self.levels.policy.training,
        }
        return {name: entry for name, entry in result.items() if entry is not None}

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
        return self.levels.add_level(self.guarantee(level))

    def _condition(self, level: str) -> Condition:
        return self.levels.condition(level)

    def _parameters(self, level: str) -> dict[str, Parameter]:
        text = self._costs(level)
        text |= {f"promise_of_{name}": str(before.guarantee) for name, before in self.prior.items()}
        if len(self.levels.shares) > 1:
            text |= {f"{self.share}_of_{name}": share for name, share in self.levels.shares.items()}
            text |= {"level": level, "default_level": self.levels.default}
        text |= self.levels.parameters
        text |= {"words": len(self.words), "new_words": self.new_words}
        text |= self._shape()
        return text | {
            "public_vectors": None if self.public is None else self.public.source,
            "public_vectors_sha256": None if self.public is None else self.public.fingerprint,
        }

    def _substituted(self, level: str) -> dict[str, Parameter]:
        promise = self.substitution_guarantee(level)
        return {
            "epsilon_under_substitution": rounded_up(promise.epsilon, 4),
            "delta_under_substitution": rounded_up(promise.delta, 4),
        }

    def _assumptions(self) -> tuple[str, ...]:
        lines = ["all parameters are public; none was computed from the protected texts"]
        if self.prior:
            lines = [
                "all parameters are public, or computed from what was released before under a promise counted in above"
            ]
        if self.public is not None and self.public.statement is None:
            lines.append("the public vectors were not made from the protected texts")
        if self.unit == "user":
            lines += ONE_NAME
        return (*lines, *self.levels.assumptions, *self._proof_assumptions())

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
    """What a release is worth for one epsilon or several, from public texts."""
    people = check_int("people", people, minimum=1, maximum=MOST_USERS)
    values = EPSILONS if epsilon is None else (check_float("epsilon", epsilon, above=0),)
    one, other = _halves(plan, public, unit)
    width = plan.features.dimension
    base = np.zeros((len(plan.words), 1))
    if plan.public is not None:
        base = np.zeros((len(plan.words), plan.public.dimension))
        base[: len(plan.public)] = public_base(plan.public.matrix, plan.public.vocabulary.unknown_row)
    result = strengths(one, other, base, plan.weights > 0)
    expected = []
    for entry in values:
        sigma = PersonalBudgets(entry, delta=plan.budgets.delta, floor=0.0).sigma
        minimum = result.least(sigma, width)
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
                least=_rounded(minimum),
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
