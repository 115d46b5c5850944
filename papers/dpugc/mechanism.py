"""The release under test: one total per corpus, then noise for each epsilon and run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from dptext import Document, WordVectors, load_vectors
from dptext.embeddings.cooccurrence import Cooccurrence, Plan
from dptext.noise.gaussian_sums import noisy_matrix
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.users.grouping import users_of
from dptext.users.private_vocabulary import PrivateVocabulary

DELTA = 1e-6
_ANY_EPSILON = 8.0  # an epsilon for what does not depend on it

Cells = npt.NDArray[np.int64]


def plan_of(
    public: WordVectors,
    epsilon: float | Mapping[str, float] | None = None,
    *,
    vocabulary: PrivateVocabulary | None = None,
    level: str | None = None,
) -> Plan:
    """Return the public plan; with several epsilons, ``level`` names the attribute with a user's level."""
    return Cooccurrence(public, epsilon=epsilon or _ANY_EPSILON, delta=DELTA, vocabulary=vocabulary, level=level).plan()


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


@cache
def behaviour() -> str:
    """Return a digest of the mechanism's output on made-up texts, to detect rows of another version."""
    public = load_vectors("glove-6b-50d", limit=2_000)
    texts = [" ".join(public.words[(7 * n + place**2) % 1_990] for place in range(40)) for n in range(180)]
    documents = [Document(text, user=str(n % 60)) for n, text in enumerate(texts)]
    plan = plan_of(public)
    total = total_of(plan, documents)
    output = released(plan, total, sigma=1e-3, run=1), released(plan, total, sigma=plan.budgets.sigma, run=2)
    parts = [
        total.tobytes(),
        *(np.round(entry.matrix, 3).tobytes() for entry in output),
    ]  # other machines round otherwise
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
