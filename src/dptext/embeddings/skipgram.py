"""Word vectors by skip-gram, trained by differentially private gradient descent."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.display import ProgressOption, ReprMixin, progress_bar
from dptext.embeddings.participation import CELLS, EVERYONE, IEEE, Participation, Recipe, Unit
from dptext.embeddings.plan import Levels, ReleasePlan, check_source, hidden_by_noise
from dptext.embeddings.refinement import SHARE, learned, learned_bands, public_base
from dptext.embeddings.sharing import Shareable
from dptext.errors import DataError, ParameterError
from dptext.io.atomic import check_target
from dptext.privacy.budgets import ASSUMED_USERS, warn_of_delta
from dptext.privacy.guarantee import ApproxDP, Guarantee, NoGuarantee, Relation, as_approx
from dptext.privacy.neighbours import Condition
from dptext.privacy.randomness import NoiseKey, RandomBits, seed_bytes
from dptext.privacy.statement import Parameter
from dptext.privacy.wording import warn_unprotected
from dptext.text.tokens import UNKNOWN, Vocabulary
from dptext.users.grouping import UserStore, UserUnit, documents_of, stored_users, users_of
from dptext.users.private_vocabulary import PrivateVocabulary
from dptext.validation import check_choice, check_int, require_epsilon
from dptext.vectors.formats import Source
from dptext.vectors.word_vectors import WordVectors

if TYPE_CHECKING:
    from dptext.embeddings.training import Checkpoint, Training


Mode: TypeAlias = Literal["private", "clipped"]
Singles = npt.NDArray[np.float32]

_MOST_DIMENSIONS, _MOST_TRAINED, _MOST_USERS = 1000, 10**7, 2**63 - 1
_DIMENSION = 100
_FROM_PUBLIC, _FROM_NOTHING = 400.0, 1000.0  # default distance of the tables
_SCALE = 3.0  # norm of public vectors in the training: lets the scores w.c become large enough
_WITHOUT_NOISE = "trained without noise, for comparison: gradients are clipped only"


@dataclass(frozen=True, eq=False, kw_only=True)
class SkipGramPlan(ReleasePlan):
    """Public plan of a skip-gram training."""

    rows: npt.NDArray[np.int64]
    trained: Vocabulary
    recipe: Recipe
    participation: Participation
    mode: Mode
    users: int
    dimension: int

    mechanism: ClassVar[str] = "skip-gram"
    share: ClassVar[str] = "sampling_rate"

    @property
    def denominator(self) -> float:
        """Divisor of the sum of a step: the expected number of units, from public numbers."""
        return max(1.0, self.users * max(self.participation.rates.values()))

    @property
    def both(self) -> bool:
        """True if word vectors are trained too; public ones stay fixed, and only context vectors are trained."""
        return self.public is None

    @property
    def offsets(self) -> Singles:
        """(2 R,) of `dptext.embeddings.participation.Recipe.offsets`; 0 for a start at random, as in word2vec."""
        count = len(self.rows)
        contexts = np.zeros(count, dtype=np.float32) if self.both else self.recipe.offsets(count)
        return np.concatenate([np.zeros(count, dtype=np.float32), contexts])

    @property
    def fingerprint(self) -> bytes:
        """Digest of the whole plan and the version of the code."""
        spent = self.participation
        text = {
            "recipe": asdict(self.recipe) | {"noise": None},  # the streams of a seed depend on every key here
            "participation": [spent.noise_multiplier, spent.steps, spent.delta],
            "rates": dict(spent.rates),
            "default": spent.default,
            # another attribute would change the users' sampling rates when a training is resumed
            "level": self.levels.attribute,
            "mode": self.mode,
            "users": self.users,
            "dimension": self.dimension,
            "words": hashlib.sha256("\n".join(self.words.words).encode("utf-8", "surrogatepass")).hexdigest(),
            "trained": hashlib.sha256(self.rows.astype("<i8").tobytes()).hexdigest(),
            "public": None if self.public is None else self.public.fingerprint,
            "software": version("dptext"),
        }
        return hashlib.sha256(json.dumps(text, sort_keys=True).encode()).digest()

    def start(self) -> Singles:
        """Return (2 R, d) initial word vectors above context vectors: public ones, or fixed pseudo-random ones."""
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
        """Return (V, d) the released vectors from trained tables (post-processing)."""
        if self.public is None:
            result = np.zeros((len(self.words), self.dimension), dtype=np.float32)
            result[self.rows] = tables[: len(self.rows)]
            return np.nan_to_num(result, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        contexts = np.nan_to_num(tables[len(self.rows) :].astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        matrix = np.zeros((len(self.words), self.dimension))
        matrix[: len(self.public)] = public_base(self.public.matrix, self.public.vocabulary.unknown_row)
        matrix[self.rows] += SHARE * learned(contexts, self.noise_of_tables)
        return matrix.astype(np.float32)

    def doubts(self, tables: Singles) -> tuple[str, ...]:
        if self.public is None or self.mode != "private":
            return ()
        trained = np.nan_to_num(tables[len(self.rows) :].astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        return hidden_by_noise(learned_bands(trained, self.noise_of_tables))

    def training(self, store: UserStore, tables: Singles, key: NoiseKey) -> Training:
        """Return the training on these users, which changes ``tables`` in place."""
        from dptext.embeddings.noise import CellNoise  # needs numba
        from dptext.embeddings.training import Tables, Training

        participation = self.participation
        return Training(
            store=store,
            recipe=self.recipe,
            participation=participation,
            unknown=self.trained.unknown_row,
            offsets=self.offsets,
            tables=Tables(
                tables,
                self.recipe.rates(participation.steps) / (self.denominator * CELLS),  # for sums in units of C / CELLS
                CellNoise(participation.noise_multiplier * CELLS) if self.mode == "private" else None,
                both=self.both,
            ),
            key=key,
            parameters=self.fingerprint,
            content=store.digest() if key.seeded else b"",
        )

    def train(
        self,
        store: UserStore,
        key: NoiseKey,
        *,
        start: Checkpoint | None = None,
        path: Path | None = None,
        every: int = 1,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Singles:
        """Run the remaining steps on these users, with checkpoints in a file, and return the noisy tables."""
        from dptext.embeddings.training import Checkpoint, write_checkpoint

        tables, done = (self.start(), 0) if start is None else (start.tables, start.steps)
        training, steps = self.training(store, tables, key), self.participation.steps
        progress(done)
        for step in range(done, steps):
            training.step(step)
            if path is not None and (step + 1) % every == 0 and step + 1 < steps:
                write_checkpoint(path, Checkpoint(tables, step + 1), self.fingerprint)
            progress(step + 1)
        if path is not None:
            path.unlink(missing_ok=True)
        return tables

    @property
    def noise_of_tables(self) -> float:
        """Standard deviation of the summed noise on each number of the tables."""
        rates = self.recipe.rates(self.participation.steps) / self.denominator
        return self.participation.noise_multiplier * math.sqrt(float((rates**2).sum()))

    def guarantee(self, level: str, *, relation: Relation = Relation.ADD_REMOVE) -> ApproxDP:
        """Return the guarantee of the training alone for a user of a level."""
        return self.participation.guarantee(level, relation=relation)

    def _guarantee(self, level: str) -> Guarantee:
        return super()._guarantee(level) if self.mode == "private" else NoGuarantee(_WITHOUT_NOISE)

    def _condition(self, level: str) -> Condition:
        condition = super()._condition(level)
        return condition if self.unit != "pair" else Condition(about="pairs", requirements=condition.requirements)

    def _costs(self, level: str) -> dict[str, Parameter]:
        participation = self.participation
        parameters: dict[str, Parameter] = {}
        if self.mode == "private":
            parameters = {
                "epsilon": self.guarantee(level).epsilon,
                "delta": participation.delta,
                "noise_multiplier": participation.noise_multiplier,
                **self._substituted(level),
            }
        parameters |= {"mode": self.mode, "sampling_rate": participation.rates[level], "steps": participation.steps}
        return parameters | {"sensitivity": float(self.recipe.clip)}

    def _shape(self) -> dict[str, Parameter]:
        recipe = self.recipe
        return {
            "trained_words": len(self.rows),
            "trained_tables": "both" if self.both else "contexts",
            "dimension": self.dimension,
            "pairs": recipe.pairs,
            "window": recipe.window,
            "negatives": recipe.negatives,
            "subsample": recipe.subsample,
            "distance": recipe.distance,
            "denominator": self.denominator,
            "public_users": self.users,
            "most_words": recipe.most_words,
        }

    def _assumptions(self) -> tuple[str, ...]:
        return super()._assumptions() if self.mode == "private" else ()

    def _proof_assumptions(self) -> tuple[str, ...]:
        rounded = "sampling probabilities of single pairs are rounded to double precision"
        return (
            f"it stays secret which {self.unit}s took part in which step",
            "an adversary may know that the corpus has at least one document",
            IEEE,
            *([rounded] if self.unit == "pair" else []),
        )


class SkipGram(Shareable, ReprMixin):
    """Word vectors from users' texts: skip-gram with negative sampling, trained by DP-SGD.

    In every step each user takes part independently at random. Pairs of words are drawn from the texts of a sampled
    user; the gradient of these pairs is clipped to norm C over both tables and added to the sum
    (`dptext.embeddings.training.add_clipped`). Gaussian noise is added to *all* rows, and the tables descend along the
    sum, divided by a public number.

    **Guarantee** (unit user; add/remove; central): (epsilon, delta)-DP of the tables after all steps together. The
    stated epsilon is computed for the noise that was used, and is at most the requested one. *Proof*:
    `dptext.embeddings.training`; the accounting is that of Poisson sampling (`dptext.privacy.gaussian`). Assumptions:
    vocabulary, public vectors, levels and all arguments are public or were released under statements that are included;
    each person has exactly one user id; the users of each step stay secret; arithmetic is IEEE 754.

    The list of words, their frequencies (for negative sampling and subsampling) and the number of users are public
    numbers and never computed from the texts.

    **From public vectors**, only context vectors are trained next to fixed word vectors, which halves noise and work.
    The learned part, less the noise, is added to the public vectors after the same preparation as in `Cooccurrence`
    (`dptext.embeddings.refinement.public_base`): compare with those. **From a random start**, both tables are trained
    as in word2vec, and the word vectors are released.

    Args:
        vectors: public word vectors for `dptext.load_vectors`, most frequent word first: training starts from them. Or
            a `Vocabulary`: training then starts at random and needs far more users.
        dimension: with vectors: None to start from them, or a number to start at random with their words only. Without
            vectors: the dimension (None: 100).
        epsilon: budget of the whole training; required for mode "private". Or a
            `dptext.embeddings.participation.Participation` with sampling rates of several public levels, which then
            also sets delta, steps and sampling_rate.
        delta: the delta of every user.
        unit: "user"; or "document", a much weaker guarantee: none for a person with several documents; or "pair",
            weaker still: one pair of neighbouring words, of which a sentence has hundreds.
        mode: "private"; or "clipped": no noise and no guarantee, for comparison.
        level: name of the public attribute of documents that holds a user's level. The declared level with the lowest
            sampling rate counts.
        vocabulary: words that `dptext.private_vocabulary` learned from the same users. They follow the words of
            ``vectors``, and their guarantee is included.
        trained_words: number of most frequent words to train; the others keep their public vectors, or are left out
            without any. (Learned words come in addition.) Every trained word adds noise.
        steps: number of steps; a user takes part in ``steps * sampling_rate`` of them on average.
        sampling_rate: probability that a unit takes part in a step. 1.0 gives most signal for the noise, and most work.
            Use a small rate for unit "pair".
        public_users: public upper bound on the number of users (documents, pairs), close to their number, used to check
            delta and to divide sums. Do not count the private data. None: `dptext.privacy.budgets.ASSUMED_USERS`.
        pairs: number of pairs per user and step, drawn with replacement.
        window: number of context words on either side.
        negatives: number of negative words per pair.
        subsample: frequency above which occurrences of a word are dropped at random; 0: never.
        clip: clipping norm C of a unit, over both tables.
        distance: distance that the tables may move in all steps together
            (`dptext.embeddings.participation.Recipe`). None: 400 from public vectors, 1000 from a random start.
        most_words: maximum number of words used per user; later ones are ignored.
        seed: for tests and papers; it voids the guarantee for anyone who knows it. None: cryptographic randomness.

    Attributes:
        vectors_: `WordVectors` with the statement.
        doubts_: warnings, in sentences, if noise hides the signal; they follow from the trained tables.
        statement_: the statement for everybody (the highest sampling rate).
        statements_: the statements by level.
        participation_: noise, steps, sampling rates.

    Raises:
        ParameterError: an argument is out of range; a vocabulary without words; an unknown level.
        RefusedError: vectors whose statement cannot be added; a checkpoint of another training.
        MissingExtraError: numba or dp-accounting is not installed.
        DataError, StorageError: as `read_documents` and `dptext.users.grouping.users_of`.

    >>> import dptext
    >>> vectors = dptext.load_vectors((["tea", "cup", "tax", "law"], [[1, 0], [2, 1], [-1, 2], [-2, 1]]))
    >>> documents = [dptext.Document("A cup of tea", user=str(user)) for user in range(20)]
    >>> model = dptext.SkipGram(vectors, epsilon=8.0, delta=1e-6, steps=20, sampling_rate=0.5, public_users=20)
    >>> model = model.fit(documents)
    >>> model.vectors_.words
    ('tea', 'cup', 'tax', 'law', '<unk>')
    >>> print(model.statement_.guarantee, model.statement_.unit, model.statement_.relation)
    (7.99..., 1e-06)-differential privacy user add/remove
    """

    def __init__(
        self,
        vectors: Source | Vocabulary = "glove-6b-50d",
        *,
        dimension: int | None = None,
        epsilon: float | Participation | None = None,
        delta: float = 1e-6,
        unit: Unit = "user",
        mode: Mode = "private",
        level: str | None = None,
        vocabulary: PrivateVocabulary | None = None,
        trained_words: int = 5000,
        steps: int = 1000,
        sampling_rate: float = 0.05,
        public_users: int | None = None,
        pairs: int = 500,
        window: int = 5,
        negatives: int = 5,
        subsample: float = 1e-4,
        clip: float = 1.0,
        distance: float | None = None,
        most_words: int = 1_000_000,
        seed: int | None = None,
    ) -> None:
        self.vectors, self.dimension, self.epsilon, self.delta = vectors, dimension, epsilon, delta
        self.unit, self.mode, self.level, self.vocabulary = unit, mode, level, vocabulary
        self.trained_words, self.steps, self.sampling_rate = trained_words, steps, sampling_rate
        self.public_users, self.pairs, self.window, self.negatives = public_users, pairs, window, negatives
        self.subsample, self.clip, self.distance = subsample, clip, distance
        self.most_words, self.seed = most_words, seed

    def fit(
        self,
        documents: Any,
        y: object = None,  # noqa: ARG002
        *,
        text: str = "text",
        user: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 100,
        resume: bool = False,
        progress: ProgressOption = None,
        release_id: str | None = None,
    ) -> Self:
        """Learn from documents with users, in any order; this is one release of the users' texts.

        Args:
            documents: a table, as in `dptext.privatize`; the result of `dptext.read_documents` (with ``user=``); or
                `Document` objects.
            text, user: columns of the table.
            checkpoint: file with the state of the training, private, written after every ``checkpoint_every`` steps and
                deleted at the end (`dptext.embeddings.training`).
            resume: continue from the checkpoint if it exists. Publish one result only: a second run from the same
                checkpoint is another release of the remaining steps.
            progress: a bar, as in `dptext.display`; or a function called with the number of finished steps.
            release_id: id of a reservation in a ledger (`dptext.ledger.ledger.Ledger.reserve`); None: a new one.

        Raises:
            RefusedError: the checkpoint belongs to a training with other parameters.
            ParameterError: a checkpoint exists, and ``resume`` is not set; see the class.
        """
        from dptext.embeddings.training import read_checkpoint  # needs numba

        every = check_int("checkpoint_every", checkpoint_every, minimum=1, maximum=10**6)
        if resume and checkpoint is None:
            raise ParameterError("resume needs the file to continue from: checkpoint=...")
        plan = self.plan()
        unit: UserUnit = "user" if plan.unit == "user" else "document"
        documents = documents_of(documents, unit, text=text, user=user, columns=[self.level])
        participation = plan.participation
        statements = plan.statements(seeded=self.seed is not None, release_id=release_id)
        statement = statements[plan.levels.most]
        path = None if checkpoint is None else Path(checkpoint)
        start = None
        if path is not None:
            check_target(path, replace=resume, apart_from={}, by="continue with resume=True")
            start = read_checkpoint(path, (2 * len(plan.rows), plan.dimension), plan.fingerprint)
        if plan.mode == "private":
            total = as_approx(statement.guarantee).delta  # including earlier releases
            warn_of_delta(total, public_users=self.public_users)
            warn_unprotected(statement)

        with (
            users_of(
                documents,
                plan.trained,
                unit=unit,
                level=plan.levels.attribute,
                most_words=plan.recipe.most_words,
                seed=self.seed,
            ) as users,
            stored_users(users, participation.code) as store,
            progress_bar(progress, "steps", participation.steps) as done,
        ):
            if not len(store):
                raise DataError("there are no documents: expected at least one")
            tables = plan.train(store, NoiseKey(self.seed), start=start, path=path, every=every, progress=done)
        source = "skip-gram" if plan.public is None else f"{plan.public.source} and skip-gram"
        self.vectors_ = WordVectors(plan.words.words, plan.finish(tables), source=source, statement=statement)
        self.doubts_ = plan.doubts(tables)
        self.statement_, self.statements_, self.participation_ = statement, statements, participation
        return self

    def plan(self) -> SkipGramPlan:
        """Validate the arguments and return the public plan, before a text is read."""
        dimension, distance = self.dimension, self.distance
        if distance is None:
            is_random = dimension is not None or isinstance(self.vectors, Vocabulary)
            distance = _FROM_NOTHING if is_random else _FROM_PUBLIC
        names = ("unit", "pairs", "window", "negatives", "subsample", "clip", "most_words")
        recipe = Recipe(distance=distance, **{name: getattr(self, name) for name in names})
        check_choice("mode", self.mode, get_args(Mode))
        trained_words = check_int("trained_words", self.trained_words, minimum=1, maximum=_MOST_TRAINED)
        if dimension is not None:
            dimension = check_int("dimension", dimension, minimum=1, maximum=_MOST_DIMENSIONS)
        users = ASSUMED_USERS
        if self.public_users is not None:
            users = check_int("public_users", self.public_users, minimum=1, maximum=_MOST_USERS)
        source, known = check_source(self.vectors, self.vocabulary)
        loaded = source if isinstance(source, WordVectors) else None
        public = loaded if dimension is None else None
        words, rows = _words(known, trained_words, self.vocabulary, all_stay=public is not None)
        if len(rows) < 3:
            raise ParameterError(f"a vocabulary must contain two words besides {UNKNOWN!r}: pass other vectors")
        participation = self._participation()
        return SkipGramPlan(
            unit=recipe.unit,
            words=words,
            rows=rows,
            trained=Vocabulary(words.words[row] for row in rows.tolist()),
            public=public,
            vocabulary=self.vocabulary,
            recipe=recipe,
            participation=participation,
            mode=self.mode,
            users=users,
            dimension=public.dimension if public is not None else dimension or _DIMENSION,
            levels=Levels(participation.rates, participation.default, self.level),
            listed=loaded if public is None else None,
        )

    def _participation(self) -> Participation:
        epsilon, is_private = self.epsilon, self.mode == "private"
        if isinstance(epsilon, Participation):
            if self.unit == "pair" and len(epsilon.rates) > 1:
                raise ParameterError("a pair of words has no level: pass one epsilon for all")
            if (epsilon.noise_multiplier > 0) != is_private:
                raise ParameterError("mode='private' needs noise, and other modes must have none")
            return epsilon
        rate, steps, delta = self.sampling_rate, self.steps, self.delta
        if not is_private:
            return Participation(noise_multiplier=0.0, steps=steps, delta=delta, rates={EVERYONE: rate})
        budget = require_epsilon(epsilon, "SkipGram")
        return Participation.calibrated(epsilon=budget, delta=delta, sampling_rate=rate, steps=steps)


def _words(
    known: Vocabulary, trained: int, vocabulary: PrivateVocabulary | None, *, all_stay: bool
) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    if not all_stay:
        first = [word for word in known.words if word != UNKNOWN][:trained]
        known = Vocabulary([*first, UNKNOWN])
    words = known if vocabulary is None else vocabulary.after(known)
    ranks = np.arange(len(known))
    ranks = np.flatnonzero(ranks != known.unknown_row)[:trained]
    return words, np.sort(np.concatenate([ranks, [known.unknown_row], np.arange(len(known), len(words))]))
