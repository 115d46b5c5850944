"""Word vectors learned from people, safe to share: one noisy release, and everything after it for nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.embeddings.level_promise import attribute_of
from dptext.embeddings.plan import MOST_WORDS, WINDOW, Plan
from dptext.embeddings.policy import BudgetPolicy
from dptext.embeddings.promise import check_before, total_delta
from dptext.embeddings.sharing import Word2VecFormat, save_release
from dptext.errors import ParameterError
from dptext.files.documents import Document, DocumentReader
from dptext.privacy.public_users import warn_of_delta
from dptext.privacy.randomness import RandomBits
from dptext.text.vocabulary import UNKNOWN, Vocabulary
from dptext.users.by_user import users_of
from dptext.users.private_vocabulary import LearnedVocabulary, PrivateVocabulary
from dptext.vectors.formats import Source

__all__ = ["Cooccurrence"]


class Cooccurrence:
    """Word vectors from the texts of users, by one noisy release of what words stand beside what words.

    Every user's texts become one matrix of bounded length, from his own texts and public numbers alone
    (`dptext.embeddings.user_matrices`); the matrices are added up, and so is Gaussian noise, once, on all rows
    (`dptext.embeddings.release`). Everything after that is post-processing (`dptext.embeddings.refinement`).

    **Guarantee** (unit user; add/remove; central): (epsilon, delta)-DP. *Proof.* The sum moves by at most C = 1 in
    Euclidean length when a user comes or goes (checked in integers, for every user whatever), sigma is that of the
    analytic Gaussian mechanism for sensitivity 1 (Balle and Wang 2018, Theorem 8), and the noise is exact. With levels
    of epsilon a user of level l has C_l instead, and (epsilon_l, delta): `dptext.privacy.budgets.PersonalBudgets`.
    Under substitution the same release costs more, 18.65 instead of 8 at delta 1e-6; the statement has the number.
    Assumptions: vocabulary, public vectors, levels and all arguments are public or were released under statements that
    are composed in; a person writes under one name, which nobody else has; the corpus is not empty, and that is
    public; at most 2^28 users.

    Args:
        vectors: public word vectors, as `dptext.load_vectors` takes them, most frequent word first; or a `Vocabulary`
            where there are none: then contexts are a public random projection and the vectors come from the release
            alone, which takes far more users.
        epsilon: one number for everybody, or public levels such as ``{"strict": 1.0, "open": 8.0}``.
        delta: of everybody.
        unit: "user"; or "document", a much weaker promise: nothing about a person with several documents.
        level: the name of the public attribute of documents that holds a user's level. Of somebody who declared
            several, the strictest counts; of somebody who declared none, ``default_level``. Or a
            `dptext.BudgetPolicy`, by which levels are predicted as well; then ``epsilon`` is ``policy.levels``.
        default_level: None: the strictest.
        vocabulary: words that `dptext.private_vocabulary` learned from the same users: they come after those of
            ``vectors``, and their promise is composed in.
        window: words on either side that count as context.
        dimension: of the vectors, where there are no public ones.
        most_words: of a user that are looked at: the first ones.
        public_users: a public number that the number of users does not exceed, for the check of delta (of all that is
            composed in): `dptext.privacy.public_users.DeltaWarning`.
        processes: how many cut texts into words; the release does not depend on it.
        seed: for tests and papers: it voids the promise for whoever knows it. None: cryptographic randomness.

    Attributes:
        vectors_: `WordVectors` with the statement.
        statement_: what is promised to everybody (the largest epsilon).
        statements_: by level.
        budgets_: the levels, their norms and the noise.
        release_: (V, k) float64, the noisy matrix. It may be shared as well: it is what the promise is about.

    Raises:
        ParameterError: an argument out of range; a vocabulary without words; a level that is none.
        RefusedError: vectors that carry a statement which cannot be added (another unit or relation).
        DataError, StorageError: as `read_documents` and `dptext.users.by_user.users_of`.

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
        vectors: Source | Vocabulary = "glove-6b-50d",
        *,
        epsilon: float | Mapping[str, float] = 8.0,
        delta: float = 1e-6,
        unit: str = "user",
        level: str | BudgetPolicy | None = None,
        default_level: str | None = None,
        vocabulary: PrivateVocabulary | None = None,
        window: int = WINDOW,
        dimension: int = 50,
        most_words: int = MOST_WORDS,
        public_users: int | None = None,
        processes: int = 1,
        seed: int | None = None,
    ) -> None:
        self.vectors, self.epsilon, self.delta = vectors, epsilon, delta
        self.unit, self.level, self.default_level = unit, level, default_level
        self.vocabulary, self.window, self.dimension = vocabulary, window, dimension
        self.most_words, self.public_users = most_words, public_users
        self.processes, self.seed = processes, seed

    def fit(
        self,
        documents: DocumentReader | Iterable[Document],
        y: object = None,  # noqa: ARG002
        *,
        release_id: str | None = None,
    ) -> Self:
        """Learn from documents with users, in any order: a release of these users' texts.

        Args:
            documents: of `dptext.files.documents.read_documents` (with ``user=``), or `Document` objects.
            y: not used.
            release_id: the name under which a ledger was asked before (`dptext.ledger.ledger.Ledger.reserve`), for the
                statements. None: a new one.
        """
        plan, bits = self.plan(), RandomBits(self.seed)
        warn_of_delta(total_delta(plan), public_users=self.public_users, stacklevel=2)
        with users_of(
            documents,
            plan.words,
            unit=plan.unit,
            level=attribute_of(self.level),
            most_words=self.most_words,
            processes=self.processes,
        ) as users:
            total = plan.total(users)
        return self.released(plan, total, bits, release_id=release_id)

    def released(
        self, plan: Plan, total: npt.NDArray[np.int64], bits: RandomBits, *, release_id: str | None = None
    ) -> Self:
        """Make the release of a sum that was made elsewhere (`dptext.spark.frames.fit`), and keep it as `fit` does.

        Args:
            plan: of `plan`.
            total: (V, k) the sum of the users' matrices, of `Plan.total`; **private**.
            bits: of this release alone.
            release_id: as in `fit`.
        """
        release = plan.release(total, bits, release_id=release_id)
        self.release_, self.vectors_, self.budgets_ = release.matrix, release.vectors, plan.budgets
        self.statement_, self.statements_ = release.statement, release.statements
        return self

    def save(
        self, folder: str | os.PathLike[str], *, word2vec: Word2VecFormat | None = "binary", replace: bool = False
    ) -> None:
        """Write what may be shared into a folder: vectors, statements and a card, whole or not at all.

        `dptext.load_vectors` gives the vectors back with their statement; see `dptext.embeddings.sharing.save_release`
        for what is in it.

        Args:
            folder: where.
            word2vec: a copy for gensim: "binary" (``vectors.bin``), "text" (``vectors.txt``), or None.
            replace: overwrite a folder that was written by this method; never another one.

        Raises:
            ParameterError: nothing was learned yet; something is there already.
            StorageError: it cannot be written.
        """
        if not hasattr(self, "vectors_"):
            raise ParameterError("there is nothing to save yet: call fit first")
        save_release(folder, self.vectors_, self.statements_, word2vec=word2vec, replace=replace)

    def plan(self) -> Plan:
        """All that is decided before a text is read: public, and checked.

        Raises:
            ParameterError, RefusedError: see the class.
        """
        if isinstance(self.vectors, LearnedVocabulary | PrivateVocabulary):
            raise ParameterError(
                "vectors must be public: these words were learned under a promise of their own, which would get lost; "
                "give what dptext.private_vocabulary returned as vocabulary=, and as vectors= what was known before "
                f"(Vocabulary([{UNKNOWN!r}]) if nothing)"
            )
        plan = Plan.of(
            self.vectors,
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            default_level=self.default_level,
            vocabulary=self.vocabulary,
            window=_whole(self.window),
            dimension=_whole(self.dimension),
            most_words=_whole(self.most_words),
            level=self.level,
        )
        check_before(plan)
        return plan


def _whole(value: Any) -> Any:
    """numpy's whole numbers as Python's, which statements hold."""
    return int(value) if isinstance(value, np.integer) else value
