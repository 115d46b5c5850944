"""What a training of skip-gram vectors is made of before a text is read: all of it public, and checked."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.checks import choice, whole
from dptext.embeddings.dpsgd.participation import Participation
from dptext.embeddings.dpsgd.recipe import NoiseForm, Recipe
from dptext.embeddings.earlier import Earlier
from dptext.embeddings.level_promise import attribute_of, checked_policy, level_parameters
from dptext.embeddings.policy import BudgetPolicy
from dptext.embeddings.refinement import SHARE, learned, public_base
from dptext.errors import ParameterError
from dptext.privacy.public_users import ASSUMED_USERS
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.text.vocabulary import UNKNOWN, Vocabulary
from dptext.users.private_vocabulary import PrivateVocabulary
from dptext.vectors.formats import Source, load_vectors
from dptext.vectors.word_vectors import WordVectors

__all__ = ["Mode", "SkipGramPlan"]

Mode: TypeAlias = Literal["private", "clipped", "plain"]
Singles = npt.NDArray[np.float32]

_MOST_DIMENSIONS, _MOST_TRAINED, _MOST_USERS = 1000, 10**7, 2**63 - 1
_DIMENSION = 100
_LEAST_LAZY = 2.0**-12  # of noise in all, where tables go as far as they do by default: a thousand single roundings
_USUAL = 1000.0
_SCALE = 3.0  # the length of public vectors in the training: scores w.c then reach as far as they have to


@dataclass(frozen=True, eq=False)
class SkipGramPlan:
    """Public. See `dptext.embeddings.skipgram.SkipGram`.

    Attributes:
        words: of the release.
        rows: (R,) which of them are trained; ``trained``: these, as a vocabulary.
        public: vectors to start from; None: a start at random.
        vocabulary: words that were learned from the same users.
        recipe: how a step goes.
        participation: noise, steps, and who takes part how often.
        mode: with noise, without noise, without bounds.
        users: the public number of units, for the denominator.
        dimension: of the vectors.
        policy: how users come by their levels, where not all are declared.
        level: the attribute that says how often somebody takes part.
        listed: vectors of which the words alone are taken.
    """

    words: Vocabulary
    rows: npt.NDArray[np.int64]
    trained: Vocabulary
    public: WordVectors | None
    vocabulary: PrivateVocabulary | None
    recipe: Recipe
    participation: Participation
    mode: Mode
    users: int
    dimension: int
    policy: BudgetPolicy | None = None
    level: str | None = None
    listed: WordVectors | None = None

    @classmethod
    def of(
        cls,
        vectors: Source | Vocabulary,
        recipe: Recipe,
        *,
        epsilon: float | Participation,
        delta: float,
        steps: int,
        sampling_rate: float,
        mode: Mode = "private",
        dimension: int | None = None,
        vocabulary: PrivateVocabulary | None = None,
        trained_words: int = _MOST_TRAINED,
        public_users: int | None = None,
        level: str | BudgetPolicy | None = None,
    ) -> SkipGramPlan:
        """Check all arguments, load the vectors, find the noise.

        Raises:
            ParameterError: an argument out of range; a vocabulary without words.
            MissingExtraError: dp-accounting is not installed.
            DataError, StorageError: see `dptext.load_vectors`.
        """
        choice("mode", mode, get_args(Mode))
        trained_words = whole("trained_words", trained_words, least=1, most=_MOST_TRAINED)
        if dimension is not None:
            dimension = whole("dimension", dimension, least=1, most=_MOST_DIMENSIONS)
        if vocabulary is not None and not isinstance(vocabulary, PrivateVocabulary):
            raise ParameterError(
                f"vocabulary must be what dptext.private_vocabulary returns, got {type(vocabulary).__name__}; public "
                "words are given as vectors="
            )
        found = vectors if isinstance(vectors, Vocabulary) else load_vectors(vectors)
        public = found if isinstance(found, WordVectors) and dimension is None else None
        words, rows = _words(found, trained_words, vocabulary, all_stay=public is not None)
        if len(rows) < 3:
            raise ParameterError(f"a vocabulary must hold two words besides {UNKNOWN!r}: give other vectors")
        users = ASSUMED_USERS
        if public_users is not None:
            users = whole("public_users", public_users, least=1, most=_MOST_USERS)
        participation = _participation(epsilon, delta, mode, recipe, steps, sampling_rate)
        plan = cls(
            words=words,
            rows=rows,
            trained=Vocabulary(words.words[row] for row in rows.tolist()),
            public=public,
            vocabulary=vocabulary,
            recipe=recipe,
            participation=participation,
            mode=mode,
            users=users,
            dimension=public.dimension if public is not None else dimension or _DIMENSION,
            policy=checked_policy(level, participation.rates, participation.default, recipe.unit),
            level=attribute_of(level),
            listed=found if isinstance(found, WordVectors) and public is None else None,
        )
        _ = plan.form  # may refuse
        return plan

    def shared(self) -> SkipGramPlan:
        """The same for several ranks.

        Raises:
            ParameterError: what is asked for is for one process alone.
        """
        if self.mode == "plain":
            raise ParameterError("mode='plain' follows one user after the other: train it in one process")
        if self.recipe.noise == "lazy":
            raise ParameterError(
                "several ranks train with dense noise: leave out noise='lazy', or train in one process"
            )
        return replace(self, recipe=replace(self.recipe, noise="dense"))

    @property
    def earlier(self) -> Earlier:
        """What the release builds on."""
        predictor = None if self.policy is None else self.policy.training
        return Earlier(self.words, self.public, self.vocabulary, predictor, self.listed)

    @property
    def denominator(self) -> float:
        """By what the sum of a step is divided: the units that are expected in it, by public numbers."""
        return max(1.0, self.users * self.participation.rates[self.participation.most])

    @property
    def both(self) -> bool:
        """Whether word vectors are trained too; public ones stay as they are, and context vectors learn beside them."""
        return self.public is None

    @property
    def offsets(self) -> Singles:
        """(2 R,) of `dptext.embeddings.dpsgd.recipe.Recipe.offsets`; 0 for a start at random, as in word2vec."""
        count = len(self.rows)
        contexts = np.zeros(count, dtype=np.float32) if self.both else self.recipe.offsets(count)
        return np.concatenate([np.zeros(count, dtype=np.float32), contexts])

    @property
    def form(self) -> NoiseForm:
        """Dense or lazy noise.

        Lazy noise comes to numbers of single precision. Where it is so little that their rounding shows beside it, it
        would hide nothing, and the exact noise of the dense form is taken.

        Raises:
            ParameterError: it is so little, and lazy noise was asked for.
        """
        form = self.recipe.form(len(self.rows), self.denominator)
        least = _LEAST_LAZY * max(1.0, self.recipe.distance / _USUAL)
        if form == "dense" or self.mode != "private" or self.noise_of_tables >= least:
            return form
        if self.recipe.noise == "lazy":
            raise ParameterError(
                "lazy noise comes to numbers of single precision, and here it is so little that their rounding shows "
                "beside it: leave out noise='lazy'"
            )
        return "dense"

    @property
    def fingerprint(self) -> bytes:
        """Digest of all of it, and of the version of the code."""
        said = {
            "recipe": asdict(self.recipe),
            "participation": [self.participation.noise_multiplier, self.participation.steps, self.participation.delta],
            "rates": dict(self.participation.rates),
            "default": self.participation.default,
            "level": self.level,  # under another one, people would go on at rates that are not those they began with
            "mode": self.mode,
            "users": self.users,
            "dimension": self.dimension,
            "words": hashlib.sha256("\n".join(self.words.words).encode("utf-8", "surrogatepass")).hexdigest(),
            "trained": hashlib.sha256(self.rows.astype("<i8").tobytes()).hexdigest(),
            "public": None if self.public is None else self.public.fingerprint,
            "software": version("dptext"),
        } | level_parameters(self.policy)
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).digest()

    def start(self) -> Singles:
        """(2 R, d) word vectors above context vectors: public ones, or random ones that are the same in every run.

        Context vectors begin at 0, as in word2vec, and so does a word that has no public vector beside some that have.
        """
        tables = np.zeros((2 * len(self.rows), self.dimension), dtype=np.float32)
        if self.public is not None:
            known = self.rows < len(self.public)
            base = public_base(self.public.matrix, self.public.vocabulary.unknown_row)
            tables[: len(self.rows)][known] = _SCALE * base[self.rows[known]]
        else:
            bits = RandomBits.keyed(seed_bytes(b"dptext skip-gram start", 0))
            for row in range(len(self.rows)):
                tables[row] = (bits.uniform(self.dimension) - 0.5) / self.dimension
        return tables

    def finish(self, tables: Singles) -> Singles:
        """(V, d) the vectors of the release, from trained tables. Post-processing."""
        trained = np.nan_to_num(tables, nan=0.0, posinf=0.0, neginf=0.0)
        matrix = np.zeros((len(self.words), self.dimension))
        if self.public is None:
            matrix[self.rows] = trained[: len(self.rows)]
        else:
            matrix[: len(self.public)] = public_base(self.public.matrix, self.public.vocabulary.unknown_row)
            matrix[self.rows] += SHARE * learned(trained[len(self.rows) :].astype(np.float64), self.noise_of_tables)
        return matrix.astype(np.float32)

    @property
    def noise_of_tables(self) -> float:
        """Standard deviation of the noise on each number of the tables, if it only added up."""
        rates = self.recipe.rates(self.participation.steps) / self.denominator
        return self.participation.noise_multiplier * math.sqrt(float((rates**2).sum()))


def _words(
    found: WordVectors | Vocabulary, trained: int, vocabulary: PrivateVocabulary | None, *, all_stay: bool
) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    """The words of the release, and which of them are trained: the first ones of the public list, all words that were
    learned, and the unknown word, in the order of the list."""
    known = found if isinstance(found, Vocabulary) else found.vocabulary
    if not all_stay:
        first = [word for word in known.words if word != UNKNOWN][:trained]
        known = Vocabulary([*first, UNKNOWN])
    words = known if vocabulary is None else vocabulary.after(known)
    ranks = np.arange(len(known))
    ranks = np.flatnonzero(ranks != known.unknown_row)[:trained]
    return words, np.sort(np.concatenate([ranks, [known.unknown_row], np.arange(len(known), len(words))]))


def _participation(
    epsilon: float | Participation, delta: float, mode: Mode, recipe: Recipe, steps: int, sampling_rate: float
) -> Participation:
    if isinstance(epsilon, Participation):
        if recipe.unit == "pair" and len(epsilon.rates) > 1:
            raise ParameterError("a pair of words has no level: give one epsilon for all")
        if (epsilon.noise_multiplier > 0) != (mode == "private"):
            raise ParameterError("noise and mode do not fit: only mode='private' has noise, and it needs some")
        return epsilon
    if mode == "private":
        return Participation.calibrated(epsilon=epsilon, delta=delta, sampling_rate=sampling_rate, steps=steps)
    return Participation.without_noise(delta=delta, sampling_rate=sampling_rate, steps=steps)
