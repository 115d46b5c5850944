"""The release under test: one total per corpus, then noise for each epsilon and run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from dptext import Document, WordVectors
from dptext.embeddings.cooccurrence import Cooccurrence, Plan
from dptext.noise.gaussian_sums import noisy_matrix
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.users.grouping import users_of
from dptext.users.private_vocabulary import PrivateVocabulary

DELTA = 1e-6

Cells = npt.NDArray[np.int64]


def plan_of(
    public: WordVectors,
    epsilon: float | Mapping[str, float] | None = None,
    *,
    vocabulary: PrivateVocabulary | None = None,
    level: str | None = None,
) -> Plan:
    """Return the public plan; with several epsilons, ``level`` names the attribute with a user's level.

    The default epsilon, 8, is for properties that do not depend on it.
    """
    return Cooccurrence(public, epsilon=epsilon or 8.0, delta=DELTA, vocabulary=vocabulary, level=level).plan()


def total_of(plan: Plan, documents: Iterable[Document]) -> Cells:
    """Return the private sum of the users' matrices, which is the same for every epsilon."""
    level = plan.levels.attribute
    with users_of(documents, plan.words, unit=plan.unit, level=level, most_words=plan.most_words) as users:
        return plan.total(users)


def released(plan: Plan, total: Cells, *, sigma: float, run: int) -> WordVectors:
    """Return the vectors of a total; equal runs have equal noise, scaled by sigma. With sigma 0 they are private."""
    return plan.vectors(noisy_matrix(total, sigma, RandomBits(run)), sigma)


def fixed_vocabulary(words: Iterable[str]) -> PrivateVocabulary:
    """Return words fixed beforehand, in place of the result of `dptext.private_vocabulary`.

    Their statement has epsilon 0, because nothing was computed from the texts.
    """
    statement = PrivacyStatement(
        guarantee=ApproxDP(0.0, 0.0),
        unit=Unit.USER,
        relation=Relation.ADD_REMOVE,
        condition="two corpora, one of which holds all documents of one more user",
        trust=Trust.CENTRAL,
        mechanism="given words",
        assumptions=("the words are given by the experiment, and public",),
    )
    return PrivateVocabulary(tuple(words), statement)
