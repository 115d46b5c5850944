"""Texts, and word vectors by name: public, word2vec without privacy, and the private release, each computed once."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger, documents_of

from dptext import Document, WordVectors, load_vectors
from dptext.embeddings.cooccurrence import Cooccurrence, Plan
from dptext.embeddings.refinement import public_base
from dptext.errors import DataError, MissingExtraError
from dptext.evaluation.utility import words_of
from dptext.noise.gaussian_sums import noisy_matrix
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.text.tokens import UNKNOWN
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


VECTORS, WORDS_LIMIT = "glove-6b-50d", 20_000
INSTALL = "pip install 'gensim>=4.3'"
LARGER = {f"simulated: {times} times the people": times for times in (2, 4, 8, 16)}
"""Simulations by the factor that divides the noise."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents with a name; ``base`` is a corpus whose documents come first."""

    name: str
    added: Sequence[Document] = field(repr=False)
    base: Corpus | None = field(default=None, repr=False)

    @property
    def documents(self) -> list[Document]:
        return [*(self.base.documents if self.base else ()), *self.added]

    @cached_property
    def users(self) -> int:
        return len({document.user for document in self.documents})

    @cached_property
    def sentences(self) -> list[list[str]]:
        """The words of each document that has any; equal words are one object."""
        once: dict[str, str] = {}
        added = ([once.setdefault(word, word) for word in words_of(entry.text or "")] for entry in self.added)
        return [*(self.base.sentences if self.base else ()), *(words for words in added if words)]

    @cached_property
    def digest(self) -> str:
        """Digest of all texts and their users."""
        result = hashlib.sha256(self.base.digest.encode() if self.base else b"")
        for document in self.added:
            result.update(f"{document.user}\0{document.text}\0".encode("utf-8", "surrogatepass"))
        return result.hexdigest()[:16]


def corpus_of(name: str, people: Iterable[Blogger]) -> Corpus:
    return Corpus(name, list(documents_of(list(people))))


def held_out(people: Sequence[Blogger], count: int) -> tuple[list[Blogger], list[Blogger]]:
    """Return (held out, others); held out are the ``count`` people with the smallest SHA-256 of their number."""
    if len(people) <= count:
        raise DataError(f"expected more than {count} bloggers, got {len(people)}")
    by_digest = sorted(people, key=lambda person: hashlib.sha256(person.user.encode()).digest())
    return by_digest[:count], by_digest[count:]


@dataclass(frozen=True)
class Model:
    """The name of vectors, and the epsilon of models with noise.

    Kinds: "public"; "public, centred" (without their mean); "public, processed" (post-processing of the release applied
    to public vectors); "word2vec"; "another word2vec" (another seed); "private"; "no noise" (the private pipeline
    without noise); "only noise" (a release of no users); and `LARGER`, which simulate as many times as many similar
    people: the sum grows with their number, the noise does not.
    """

    kind: str
    epsilon: float | None = None

    @property
    def is_random(self) -> bool:
        return self.epsilon is not None

    @property
    def settings(self) -> dict[str, str | float | None]:
        return {"model": self.kind, "epsilon": self.epsilon}

    def __str__(self) -> str:
        return self.kind if self.epsilon is None else f"{self.kind}, epsilon {self.epsilon:g}"


class Source(Protocol):
    """An object that returns vectors by name."""

    public: WordVectors

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:
        """Return the vectors of one run."""


class Models:
    """Vectors by model and corpus."""

    def __init__(self, public: WordVectors) -> None:
        self.public = public
        self._public = {
            "public": public,
            "public, centred": WordVectors(public.words, public.matrix - public.matrix.mean(axis=0), source="centred"),
            "public, processed": processed(public),
        }
        self._totals: dict[tuple[Sequence[str], Corpus], Cells] = {}

    @lru_cache(maxsize=80)  # noqa: B019  lives as long as the run
    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:
        if model.kind in self._public:
            return self._public[model.kind]
        if model.kind in ("word2vec", "another word2vec"):
            return word2vec(corpus.sentences, self.public, seed=1 if model.kind == "word2vec" else 2)
        return self._release(plan_of(self.public, model.epsilon), model, corpus, run)

    def lacking(self, words: Sequence[str], model: Model, corpus: Corpus, run: int) -> WordVectors:
        """Return the release if these words have no public vectors and form a private vocabulary."""
        plan = plan_of(self.without(tuple(words)), model.epsilon, vocabulary=fixed_vocabulary(words))
        return self._release(plan, model, corpus, run)

    @lru_cache(maxsize=4)  # noqa: B019
    def without(self, words: tuple[str, ...]) -> WordVectors:
        """Return the public vectors of all other words."""
        removed = set(words)
        kept = [row for row, word in enumerate(self.public.words) if word not in removed]
        return load_vectors(([self.public.words[row] for row in kept], self.public.matrix[kept]))

    def _release(self, plan: Plan, model: Model, corpus: Corpus, run: int) -> WordVectors:
        """Return vectors with full, reduced or no noise, or of no users; the plan has the noise of the epsilon."""
        key = plan.words.words, corpus
        if key not in self._totals:  # a total is the same for all epsilons
            self._totals = {key: total_of(plan, corpus.documents)} | dict(list(self._totals.items())[:3])
        total = self._totals[key]
        if model.kind == "only noise":
            total = np.zeros_like(total)
        sigma = 0.0 if model.epsilon is None else plan.budgets.sigma / LARGER.get(model.kind, 1)
        return released(plan, total, sigma=sigma, run=run)


def processed(public: WordVectors) -> WordVectors:
    """Return public vectors with the post-processing of the release."""
    base = public_base(public.matrix, public.vocabulary.unknown_row)
    return WordVectors(public.words, base.astype(np.float32), source="processed")


def word2vec(sentences: list[list[str]], public: WordVectors, *, seed: int) -> WordVectors:
    """Train skip-gram with negative sampling (Mikolov et al. 2013) without privacy; one worker, to be reproducible."""
    if not has_word2vec():
        raise MissingExtraError(f"the word2vec models need the package gensim; install it with: {INSTALL}")
    from gensim.models import Word2Vec

    options = {"vector_size": 50, "window": 5, "negative": 5, "epochs": 5, "min_count": 5, "workers": 1, "sg": 1}
    vectors = Word2Vec(sentences, seed=seed, **options).wv
    rows = [row for row, word in enumerate(vectors.index_to_key) if word in public and word != UNKNOWN]
    return load_vectors(([vectors.index_to_key[row] for row in rows], vectors.vectors[rows]))


def has_word2vec() -> bool:
    return importlib.util.find_spec("gensim") is not None
