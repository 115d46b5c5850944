"""Word vectors learned from people by skip-gram, under differentially private gradient descent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dptext.checks import whole
from dptext.embeddings.dpsgd.participation import Participation
from dptext.embeddings.dpsgd.ranks import ALONE, Ranks
from dptext.embeddings.dpsgd.recipe import NoiseForm, Recipe, Unit
from dptext.embeddings.level_promise import attribute_of
from dptext.embeddings.policy import BudgetPolicy
from dptext.embeddings.sharing import Word2VecFormat, save_release
from dptext.embeddings.skipgram_plan import Mode, SkipGramPlan
from dptext.embeddings.skipgram_promise import statement_of
from dptext.errors import DataError, ParameterError
from dptext.files.documents import Document, DocumentReader
from dptext.privacy.guarantee import NoGuarantee, as_approx
from dptext.privacy.public_users import warn_of_delta
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import new_release_id
from dptext.text.vocabulary import Vocabulary
from dptext.users.by_user import UserUnit, users_of
from dptext.users.private_vocabulary import PrivateVocabulary
from dptext.users.store import stored_users
from dptext.vectors.formats import Source
from dptext.vectors.word_vectors import WordVectors

__all__ = ["Progress", "SkipGram"]

_FROM_PUBLIC, _FROM_NOTHING = 400.0, 1000.0  # how far tables go


@dataclass(frozen=True)
class Progress:
    """How far a training is.

    Attributes:
        step: steps done.
        steps: of all.
    """

    step: int
    steps: int
    _participation: Participation

    @property
    def epsilon(self) -> float:
        """Spent so far by those who take part most often, at the delta of the training: computed when asked for, in
        some tenths of a second; infinite without noise."""
        if self.step == 0:
            return 0.0
        participation = self._participation
        if participation.noise_multiplier == 0:
            return float("inf")
        return participation.account(participation.most, steps=self.step).epsilon(delta=participation.delta)


class SkipGram:
    """Word vectors from the texts of users: skip-gram with negative sampling, trained by DP-SGD.

    In each step every user takes part by a coin of his own. Of a user who does, some pairs of words are drawn from his
    texts; the gradient of all of them together is cut to length C over both tables; the gradients are added up;
    Gaussian noise comes to *all* rows; and the tables move against the sum, divided by a public number.

    **Guarantee** (unit user; add/remove; central): (epsilon, delta)-DP of the tables after every step, all steps
    together. The epsilon stated is computed for the noise that was used, and not above the one asked for. *Proof*:
    `dptext.embeddings.dpsgd.training`; the accounting is that of Poisson samples
    (`dptext.privacy.sampled_gaussian`). Assumptions: vocabulary, public vectors, levels and all arguments are public or
    were released under statements that are composed in; a person writes under one name; who took part in which step
    stays secret; arithmetic is that of IEEE 754.

    Which words are in the list, how often they are used (for negative words, and for leaving out frequent ones), how
    many users there are: all of that is taken from public numbers and never from the texts.

    **From public vectors** only context vectors are trained, beside word vectors that stay as they are: half of the
    noise, and of the work. What they learned, less what is noise, is added to the public vectors, after the same
    preparation as in `Cooccurrence` (`dptext.embeddings.refinement.public_base`): compare with those. **From a random
    start** both tables are trained as in word2vec, and the word vectors are what is released.

    Args:
        vectors: public word vectors, as `dptext.load_vectors` takes them, most frequent word first: training starts
            from them. Or a `Vocabulary` where there are none: then it starts at random, and takes far more users.
        dimension: with vectors: None, to start from them; or a number, to start at random in so many dimensions with
            their words alone. Without: of the vectors (None: 100).
        epsilon: of the whole training; or a `dptext.embeddings.dpsgd.participation.Participation`, which says how often
            users of several public levels take part; delta, steps and sampling_rate are then its own.
        delta: of everybody.
        unit: "user"; "document", a much weaker promise: nothing about a person with several documents; or "pair",
            weaker still: a single pair of words that stand near each other, one of hundreds that a sentence has.
        mode: "private"; or, for comparison and without a promise: "clipped" (no noise), "plain" (no bound either:
            the gradient of each user is followed at once, at the learning rate of word2vec).
        level: the name of the public attribute of documents that holds a user's level. Of somebody who declared
            several, the one that takes part least often counts; of somebody who declared none, the default of
            ``epsilon``. Or a `dptext.BudgetPolicy`, by which levels are predicted as well; then ``epsilon`` is
            ``policy.participation(...)``.
        vocabulary: words that `dptext.private_vocabulary` learned from the same users: they come after those of
            ``vectors``, and their promise is composed in.
        trained_words: how many of the most frequent words of the list learn; the others keep their public vectors, or
            are left out where there are none. (Learned words come on top.) Each one more costs noise.
        steps: how many; each user takes part in ``steps * sampling_rate`` of them on average.
        sampling_rate: the chance of a unit to take part in a step. With 1.0 everybody takes part in all of them: most
            signal for the noise, and most work. For unit "pair" give a small one: there are many pairs.
        public_users: a public number that the users (documents, pairs) do not exceed, and about as many as there are:
            for the check of delta, and for the number by which sums are divided. Never a count of the data. None:
            `dptext.privacy.public_users.ASSUMED_USERS`.
        pairs: of a user in a step, drawn with repetition.
        window: words on either side.
        negatives: negative words beside each pair.
        subsample: the frequency above which a word is left out now and then; 0: never.
        clip: C; or one norm for each table (words, contexts), for which C is the root of the sum of their squares.
        distance: how far the tables may go in all steps together, see `dptext.embeddings.dpsgd.recipe.Recipe`. None:
            400 from public vectors, 1000 from a random start.
        noise: "dense" (noise on all rows in each step), "lazy" (when a row is due, to the same effect: see
            `dptext.embeddings.dpsgd.training`), or None: what is less work, by public numbers.
        most_words: of a user that are looked at: the first ones.
        processes: how many cut texts into words.
        seed: for tests and papers: it voids the promise for whoever knows it. None: cryptographic randomness.

    Attributes:
        vectors_: `WordVectors` with the statement.
        statement_: what is promised to everybody (those who take part most often).
        statements_: by level.
        participation_: noise, steps, sampling rates.

    Raises:
        ParameterError: an argument out of range; a vocabulary without words; a level that is none.
        RefusedError: vectors that carry a statement which cannot be added; a checkpoint of another training.
        MissingExtraError: numba or dp-accounting is not installed.
        DataError, StorageError: as `read_documents` and `dptext.users.by_user.users_of`.

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
        epsilon: float | Participation = 8.0,
        delta: float = 1e-6,
        unit: Unit = "user",
        mode: Mode = "private",
        level: str | BudgetPolicy | None = None,
        vocabulary: PrivateVocabulary | None = None,
        trained_words: int = 5000,
        steps: int = 1000,
        sampling_rate: float = 0.05,
        public_users: int | None = None,
        pairs: int = 500,
        window: int = 5,
        negatives: int = 5,
        subsample: float = 1e-4,
        clip: float | tuple[float, float] = 1.0,
        distance: float | None = None,
        noise: NoiseForm | None = None,
        most_words: int = 1_000_000,
        processes: int = 1,
        seed: int | None = None,
    ) -> None:
        self.vectors, self.dimension, self.epsilon, self.delta = vectors, dimension, epsilon, delta
        self.unit, self.mode, self.level, self.vocabulary = unit, mode, level, vocabulary
        self.trained_words, self.steps, self.sampling_rate = trained_words, steps, sampling_rate
        self.public_users, self.pairs, self.window, self.negatives = public_users, pairs, window, negatives
        self.subsample, self.clip, self.distance, self.noise = subsample, clip, distance, noise
        self.most_words, self.processes, self.seed = most_words, processes, seed

    def fit(
        self,
        documents: DocumentReader | Iterable[Document],
        y: object = None,  # noqa: ARG002
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 100,
        resume: bool = False,
        progress: Callable[[Progress], None] | None = None,
        ranks: Ranks = ALONE,
        release_id: str | None = None,
    ) -> Self:
        """Learn from documents with users, in any order: a release of these users' texts.

        Args:
            documents: of `dptext.files.documents.read_documents` (with ``user=``), or `Document` objects.
            y: not used.
            checkpoint: a file that says where the training has come to, private, deleted at the end
                (`dptext.embeddings.dpsgd.checkpoint`).
            checkpoint_every: so many steps.
            resume: go on from the checkpoint, if it is there. Show what comes of it once: another run from the same
                checkpoint is another release of the steps that were left.
            progress: called after each step.
            ranks: several processes, on one machine or on many, that train one model together, each with some of the
                users: `dptext.embeddings.dpsgd.ranks.TorchRanks`. All of them call ``fit``, with equal arguments,
                and get the
                same model; the first one has the checkpoint. The noise is dense.
            release_id: the name under which a ledger was asked before (`dptext.ledger.ledger.Ledger.reserve`), for the
                statements. None: a new one.

        Raises:
            RefusedError: the checkpoint belongs to a training with other parameters.
            ParameterError: a checkpoint is there, and ``resume`` was not said; see the class.
        """
        every = whole("checkpoint_every", checkpoint_every, least=1, most=10**6)
        if resume and checkpoint is None:
            raise ParameterError("resume goes on from a checkpoint: say which, checkpoint=...")
        plan = self.plan()
        if ranks.count > 1:
            plan = plan.shared()
        ranks.agree(plan.fingerprint + repr(self.seed).encode())
        participation = plan.participation
        release_id = release_id or new_release_id()  # one for all levels: they are one release
        statements = {
            level: statement_of(plan, level, seeded=self.seed is not None, ranks=ranks.count, release_id=release_id)
            for level in participation.rates
        }
        from dptext.embeddings.skipgram_run import Run  # needs numba

        run = Run(plan, None if checkpoint is None else Path(checkpoint), every, resume, ranks)
        if plan.mode == "private":
            total = as_approx(statements[participation.most].guarantee).delta  # words and vectors from before included
            warn_of_delta(total, public_users=self.public_users, stacklevel=2)

        def show(step: int) -> None:
            if progress is not None:
                progress(Progress(step, participation.steps, participation))

        unit: UserUnit = "user" if self.unit == "user" else "document"
        with (
            users_of(
                ranks.own(documents, unit),
                plan.trained,
                unit=unit,
                level=attribute_of(self.level),
                most_words=plan.recipe.most_words,
                processes=self.processes,
                seed=self.seed,
            ) as users,
            stored_users(users, participation.code) as store,
        ):
            if not ranks.any(len(store) > 0):
                raise DataError("there are no documents: expected at least one")
            tables = run.on(store, NoiseKey(self.seed), show)
        statement = statements[participation.most]
        source = "skip-gram" if plan.public is None else f"{plan.public.source} and skip-gram"
        self.vectors_ = WordVectors(plan.words.words, plan.finish(tables), source=source, statement=statement)
        self.statement_, self.statements_, self.participation_ = statement, statements, participation
        return self

    def save(
        self, folder: str | os.PathLike[str], *, word2vec: Word2VecFormat | None = "binary", replace: bool = False
    ) -> None:
        """Write what may be shared into a folder: vectors, statements and a card, whole or not at all.

        `dptext.load_vectors` gives the vectors back with their statement; see `dptext.embeddings.sharing.save_release`
        for what is in it, and for the arguments.

        Raises:
            ParameterError: nothing was learned yet, or it was learned without a promise; something is there already.
            StorageError: it cannot be written.
        """
        if not hasattr(self, "vectors_"):
            raise ParameterError("there is nothing to save yet: call fit first")
        if isinstance(self.statement_.guarantee, NoGuarantee):
            raise ParameterError(
                "these vectors were trained without a promise, and are not to be shared; dptext.save_vectors keeps them"
            )
        save_release(folder, self.vectors_, self.statements_, word2vec=word2vec, replace=replace)

    def plan(self) -> SkipGramPlan:
        """All that is decided before a text is read: public, and checked.

        Raises:
            ParameterError, MissingExtraError, DataError, StorageError: see the class.
        """
        distance = self.distance
        if distance is None:
            distance = _FROM_PUBLIC if _has_vectors(self.vectors, self.dimension) else _FROM_NOTHING
        recipe = Recipe(
            unit=self.unit,
            pairs=self.pairs,
            window=self.window,
            negatives=self.negatives,
            subsample=self.subsample,
            clip=self.clip,
            distance=distance,
            most_words=self.most_words,
            noise=self.noise,
        )
        return SkipGramPlan.of(
            self.vectors,
            recipe,
            epsilon=self.epsilon,
            delta=self.delta,
            steps=self.steps,
            sampling_rate=self.sampling_rate,
            mode=self.mode,
            dimension=self.dimension,
            vocabulary=self.vocabulary,
            trained_words=self.trained_words,
            public_users=self.public_users,
            level=self.level,
        )


def _has_vectors(vectors: Source | Vocabulary, dimension: int | None) -> bool:
    return dimension is None and not isinstance(vectors, Vocabulary)
