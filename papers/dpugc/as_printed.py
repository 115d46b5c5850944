"""Algorithm 1-b of dpUGC as printed, with its true privacy loss: for comparisons, never for a release.

Algorithm 1-b of Vu, Tran and Jiang 2019 ("dpUGC") trains word vectors by skip-gram with negative sampling. Each user
has a budget. In each round t a lot of L samples (pairs of words) is drawn from the users with remaining budget. Each
gradient is clipped to C, and the sum with noise N(0, sigma^2 C^2 I) is divided by L. Then, for all users in the lot,

    (epsilon, delta)_u <- (epsilon, delta)_u + (epsilon_t, delta_t) / L,                          (line 14)
    and users whose budget is spent leave.                                                        (line 15)

**The error.** The noise is shared, not divided: every user in the lot loses all of epsilon_t. A user with s samples in
a lot moves the sum by s C, and is charged for one. The users who leave, and the number K of remaining samples, from
which lots are drawn at L / K, depend on the texts: users who are not in a lot change the sampling rate of the others.

**The true loss.** Let sigma_1 be the noise in clipping norms. Fix all random bits of the training with a user and
without them. Then the lots are fixed, the sum of a step has at most length L C in either case, and the two differ by
at most 2 L C, for any previous outputs. T such steps are adaptively chosen Gaussian mechanisms of joint sensitivity
2 L C sqrt(T). The divergence is convex over the random bits, so

    epsilon = that of N(0, sigma_1^2) at sensitivity 2 L sqrt(T), at the same delta.               (bound)

A single user with L samples whose gradients all have length C and one direction attains L C sqrt(T_u) in the T_u
steps until their budget is spent.                                                                (witness)

**Interpretation of unclear points**: a lot has exactly L samples without repetition ("L samples are drawn"); epsilon_t
is the epsilon of one noisy step without amplification by sampling; delta_t is the delta of the budget, and is not
charged (as printed it would be spent after L steps); the negative words and the vocabulary come from a public list.

`dptext.SkipGram(level=)` and `dptext.Cooccurrence(level=)` have a proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dptext.embeddings.participation import CELLS, IEEE, check_clip, public_frequencies
from dptext.embeddings.plan import check_source
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.io.documents import Document, DocumentReader
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.gaussian import gaussian_epsilon
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Finding, PrivacyStatement, new_release_id, release_statement
from dptext.text.tokens import UNKNOWN, Vocabulary
from dptext.users.grouping import DOCUMENT_END, ONE_NAME, UserStore, stored_users, users_of
from dptext.validation import check_float
from dptext.vectors.formats import Source
from dptext.vectors.word_vectors import WordVectors

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]

_ROUNDS = 64  # draws until a lot is full, where most places of a text begin no pair
_MIN_NOISE = 1 / 16  # below it the noise on cells is not exact (`dptext.embeddings.noise.CellNoise`)
_NONE = -1  # in place of a negative word


@dataclass(repr=False, eq=False)
class DPUGC:
    """Algorithm 1-b of dpUGC as printed: a budget for each user, who leaves when it is spent."""

    flaw: ClassVar[str] = (
        "the noise of a step is shared, and each user in it is charged 1 / L of what it tells, for one sample of "
        "theirs however many there are; who leaves follows from the texts as well"
    )
    vectors: Source | Vocabulary
    _: KW_ONLY
    epsilon: float | Mapping[str, float]
    delta: float = 1e-5
    level: str | None = None
    noise_multiplier: float = 5.0
    lot: int = 128
    steps: int = 1000
    clip: float = 1.0
    learning_rate: float = 1.0
    dimension: int = 50
    trained_words: int = 5000
    window: int = 5
    negatives: int = 5
    seed: int | None = None
    unsafe_as_published: bool = False

    def __post_init__(self) -> None:
        if self.unsafe_as_published is not True:
            raise RefusedError(
                f"algorithm 1-b does not keep the budgets that its paper prints: {self.flaw}. Use SkipGram or "
                "Cooccurrence with level=; or, to compare with the paper, unsafe_as_published=True: the statement then "
                "carries the true epsilon"
            )
        check_float("noise_multiplier", self.noise_multiplier, minimum=_MIN_NOISE)
        check_clip(self.clip)
        self.budgets = PersonalBudgets(self.epsilon, delta=self.delta)
        if len(self.budgets.levels) > 1 and self.level is None:
            raise ParameterError("level must name the attribute that holds a user's level: there are several")

    @property
    def charge(self) -> float:
        """Charge of a user for one step: epsilon_t / L of line 14."""
        return gaussian_epsilon(self.noise_multiplier, delta=self.delta, sensitivity=1.0) / self.lot

    def max_steps(self, level: str) -> int:
        """Return T_u, the number of steps until the budget of a level is spent."""
        return min(self.steps, math.floor(self.budgets.levels[level] / self.charge) + 1)

    def finding(self, level: str) -> Finding:
        """Return the printed and the true guarantee for users of a level."""

        def loses(clipping_norms: float) -> float:
            return gaussian_epsilon(self.noise_multiplier, delta=self.delta, sensitivity=clipping_norms)

        return Finding(
            claimed=self.budgets.levels[level],
            bound=loses(2 * self.lot * math.sqrt(self.steps)),  # (bound)
            attained=loses(self.lot * math.sqrt(self.max_steps(level))),  # (witness)
            reason=self.flaw,
            holds_for="any two corpora, one of which has one more user",
            witness=(
                f"a user alone, with {self.lot:,} samples whose gradients have length C and one direction, and a "
                "corpus without a pair of words"
            ),
        )

    def statements(self, *, release_id: str | None = None) -> dict[str, PrivacyStatement]:
        """Return a statement for each level: the true epsilon, and the printed one as ``claimed_epsilon``."""
        name = release_id or new_release_id()
        result = {}
        for level, claimed in self.budgets.levels.items():
            finding = self.finding(level)
            result[level] = release_statement(
                guarantee=ApproxDP(finding.bound, self.delta),
                unit=Unit.USER,
                relation=Relation.ADD_REMOVE,
                condition=Condition(),
                trust=Trust.CENTRAL,
                mechanism="dpUGC, algorithm 1-b as printed",
                parameters={
                    "level": level if len(self.budgets.levels) > 1 else None,
                    "delta": self.delta,
                    "noise_multiplier": self.noise_multiplier,
                    "lot": self.lot,
                    "steps": self.steps,
                    "sensitivity": self.clip,
                    **finding.parameters(),
                },
                assumptions=(
                    "all parameters are public; none was computed from the protected texts",
                    *ONE_NAME,
                    "the users of each step stay secret",
                    "an adversary may know that the corpus has at least one document",
                    IEEE,
                ),
                exposed=("the list of words with a vector: it is public and was chosen without regard to the texts",),
                seeded=self.seed is not None,
                release_id=name,
            ).replace(claimed_epsilon=claimed)
        return result

    def fit(self, documents: DocumentReader | Iterable[Document], y: object = None) -> Self:  # noqa: ARG002
        users = users_of(documents, self.words(), level=self.level, seed=self.seed)
        with users as result, stored_users(result, self.code) as store:
            return self.fit_stored(store)

    def fit_stored(self, store: UserStore) -> Self:
        """Train on users whose texts are stored as rows of `words`, with `code` of their levels."""
        if len(store) == 0:
            raise DataError("there are no documents: expected at least one")
        words, levels = self.words(), self.budgets.levels
        tables = self._trained(store, words, RandomBits(self.seed))
        self.finding_ = {level: self.finding(level) for level in levels}
        self.statements_ = self.statements()
        self.statement_ = self.statements_[max(levels, key=levels.__getitem__)]
        matrix = np.nan_to_num(tables[: len(words)], nan=0.0, posinf=0.0, neginf=0.0)
        self.vectors_ = WordVectors(words.words, matrix, source="dpUGC as printed", statement=self.statement_)
        return self

    def words(self) -> Vocabulary:
        """Return the words with a vector: the first ones of the public list."""
        _, known = check_source(self.vectors, None)
        words = Vocabulary([*[word for word in known.words if word != UNKNOWN][: self.trained_words], UNKNOWN])
        if len(words) < 3:
            raise ParameterError(f"a vocabulary must hold two words besides {UNKNOWN!r}: give other vectors")
        return words

    def code(self, declared: tuple[Any, ...]) -> int:
        """Return the index of a user's level; of several, the strictest."""
        levels = self.budgets.levels
        named = [self.budgets.level(None if entry is None else str(entry)) for entry in declared or (None,)]
        return list(levels).index(min(named, key=levels.__getitem__))

    def _trained(self, store: UserStore, words: Vocabulary, bits: RandomBits) -> Singles:
        """Return the tables after T rounds of algorithm 1-b."""
        from dptext.embeddings.noise import CellNoise
        from dptext.embeddings.training import Scratch, Tables, add_clipped  # need numba

        count, cells = len(words), CELLS / self.clip
        matrix = np.zeros((2 * count, self.dimension), dtype=np.float32)
        matrix[:count] = (bits.uniform(count, self.dimension) - 0.5) / self.dimension  # line 1
        rates = np.full(self.steps, self.learning_rate * self.clip / (self.lot * CELLS))  # eta / L, in units of the sum
        tables = Tables(matrix, rates, CellNoise(self.noise_multiplier * CELLS))
        offsets = np.zeros(2 * count, dtype=np.float32)
        scratch = Scratch.of(2 * count, 2 + self.negatives, self.dimension)
        lots = _Lots(store, count, words.unknown_row, self, bits)
        epsilons = np.array(list(self.budgets.levels.values()))[store.levels]
        taken_part = np.zeros(len(store), dtype=np.int64)
        squares = np.zeros(len(store))
        for step in range(self.steps):
            pairs, owners = lots.draw()  # lines 3 to 5
            ends = np.arange(1, len(pairs) + 1)
            # lines 6 and 7
            add_clipped(tables.matrix, offsets, pairs, ends, cells, True, scratch, tables.sums)
            tables.descend(step, bits)  # lines 8 to 11
            users, samples = np.unique(owners, return_counts=True)
            taken_part[users] += 1
            squares[users] += samples.astype(np.float64) ** 2
            out = users[taken_part[users] * self.charge > epsilons[users]]  # lines 13 to 16
            lots.leave(out)
        spent = taken_part * self.charge > epsilons
        self.accounts_ = {
            level: tuple(
                PublishedAccount(
                    noise_multiplier=self.noise_multiplier,
                    lot=self.lot,
                    taken_part=int(taken_part[user]),
                    samples=math.sqrt(float(squares[user]) / int(taken_part[user])),
                    delta=self.delta,
                )
                for user in np.flatnonzero((store.levels == code) & (taken_part > 0)).tolist()
            )
            for code, level in enumerate(self.budgets.levels)
        }
        self.left_ = {
            level: int((spent & (store.levels == code)).sum()) for code, level in enumerate(self.budgets.levels)
        }
        return tables.matrix


@dataclass(frozen=True)
class PublishedAccount:
    """Epsilon that algorithm 1-b of the paper charges a user for a training, and the true one."""

    noise_multiplier: float
    lot: int
    taken_part: int
    samples: float
    delta: float

    @property
    def claimed(self) -> float:
        """The sum of epsilon_t / L over steps, with epsilon_t of one step at delta."""
        return self.taken_part * self._epsilon(steps=1, samples=1) / self.lot

    @property
    def true(self) -> float:
        """Epsilon if it is known who takes part in which step, as the account assumes (no amplification)."""
        return self._epsilon(steps=self.taken_part, samples=self.samples)

    def _epsilon(self, *, steps: int, samples: float) -> float:
        sensitivity = samples * math.sqrt(steps)  # of all steps together, whose noise is one normal vector
        return gaussian_epsilon(sigma=self.noise_multiplier, delta=self.delta, sensitivity=sensitivity)


class _Lots:
    """Samples of users with remaining budget: a text position and a word near it."""

    def __init__(self, store: UserStore, words: int, unknown: int, settings: DPUGC, bits: RandomBits) -> None:
        self._rows, self._offsets = np.asarray(store.rows), store.offsets
        self._words, self._unknown, self._settings, self._bits = words, unknown, settings, bits
        steps = np.arange(1, settings.window + 1)
        self._distances = np.repeat(steps, steps[::-1])  # near words more often, as in word2vec
        self._negative = np.cumsum(public_frequencies(words) ** 0.75)
        self._active = np.ones(len(store), dtype=np.bool_)
        self._count()

    def leave(self, users: Ids) -> None:
        if users.size:
            self._active[users] = False
            self._count()

    def draw(self) -> tuple[npt.NDArray[np.int32], Ids]:
        """Return at most L samples as rows of both tables, and their users."""
        empty = np.empty((0, 2 + self._settings.negatives), dtype=np.int32), np.empty(0, dtype=np.int64)
        places = int(self._ends[-1]) if self._ends.size else 0
        if places == 0:
            return empty
        result = np.empty((0, 3), dtype=np.int64)
        for _ in range(_ROUNDS):
            result = np.concatenate([result, self._sample_pairs(places)])
            _, first = np.unique(result[:, :2], axis=0, return_index=True)
            result = result[np.sort(first)][: self._settings.lot]  # each once, in the order in which they came
            if len(result) == self._settings.lot:
                break
        if not len(result):
            return empty
        position, owners = result[:, :2], result[:, 2]
        pairs = np.empty((len(position), 2 + self._settings.negatives), dtype=np.int32)
        pairs[:, 0], pairs[:, 1] = self._rows[position[:, 0]], self._words + self._rows[position[:, 1]]
        draws = self._bits.uniform(len(position), self._settings.negatives) * self._negative[-1]
        negative = np.minimum(np.searchsorted(self._negative, draws), self._words - 1)
        none = (negative == self._unknown) | (negative == self._rows[position[:, 1]][:, None])
        pairs[:, 2:] = np.where(none, _NONE, self._words + negative)
        return pairs, owners

    def _sample_pairs(self, places: int) -> Ids:
        """Return (n, 3) random positions, a nearby position in the same document, and the user."""
        many = 2 * self._settings.lot
        draws = self._bits.below(np.full(many, places, dtype=np.uint64)).astype(np.int64)
        nth = np.searchsorted(self._ends, draws, side="right")
        user = self._users[nth]
        begins = np.concatenate([[0], self._ends[:-1]])
        place = self._offsets[user] + draws - begins[nth]
        which = self._bits.below(np.full(many, len(self._distances), dtype=np.uint64)).astype(np.int64)
        distance = self._distances[which]
        side = 2 * self._bits.below(np.full(many, 2, dtype=np.uint64)).astype(np.int64) - 1
        other = place + side * distance
        good = (self._rows[place] >= 0) & (other >= self._offsets[user]) & (other < self._offsets[user + 1])
        for step in range(1, self._settings.window + 1):
            between = np.clip(place + side * np.minimum(step, distance), 0, len(self._rows) - 1)
            good &= self._rows[between] != DOCUMENT_END
        good &= self._rows[np.clip(other, 0, len(self._rows) - 1)] >= 0
        good &= self._rows[place] != self._unknown
        result: Ids = np.stack([place, other, user], axis=1)[good]
        return result

    def _count(self) -> None:
        self._users = np.flatnonzero(self._active)
        lengths = self._offsets[self._users + 1] - self._offsets[self._users]
        self._ends = np.cumsum(lengths)
