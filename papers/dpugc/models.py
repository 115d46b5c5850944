"""Word vectors by name: public, word2vec without privacy, and the private release, each computed once.

The run's ``work`` folder keeps them and is never shared: totals and word2vec vectors come from real people.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from papers.dpugc.corpus import Corpus
from papers.dpugc.mechanism import Cells, behaviour, fixed_vocabulary, plan_of, released, total_of

from dptext import WordVectors, load_vectors
from dptext.embeddings.cooccurrence import Plan
from dptext.embeddings.refinement import public_base
from dptext.errors import MissingExtraError
from dptext.text.tokens import UNKNOWN

DIMENSION, WINDOW, NEGATIVE, EPOCHS, MIN_COUNT = 50, 5, 5, 5, 5
GOLD_SEED = 1
INSTALL = "pip install 'gensim>=4.3'"
LARGER = {f"simulated: {times} times the people": times for times in (2, 4, 8, 16)}
"""Simulations by the factor that divides the noise."""


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
    """Vectors by model and corpus, kept in the files of a folder."""

    def __init__(self, public: WordVectors, folder: Path) -> None:
        self.public = public
        self._folder = folder
        self._public = {
            "public": public,
            "public, centred": WordVectors(public.words, public.matrix - public.matrix.mean(axis=0), source="centred"),
            "public, processed": processed(public),
        }

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:
        """Return the vectors of one run."""
        if model.kind in self._public:
            return self._public[model.kind]
        name = f"{model.kind}-{model.epsilon}-{run}-{corpus.name}".replace(" ", "_").replace(":", "")
        dependencies = corpus.digest, self.public.fingerprint, "" if "word2vec" in model.kind else behaviour()
        stored = self.stored(name, dependencies, lambda: _arrays(self._compute(model, corpus, run)))
        return WordVectors(stored["words"].tolist(), stored["matrix"], source=name)

    def lacking(self, words: Sequence[str], model: Model, corpus: Corpus, run: int, *, of: str) -> WordVectors:
        """Return the release if ``words`` (named ``of``) have no public vectors and form a private vocabulary."""
        plan = plan_of(self.without(words), model.epsilon, vocabulary=fixed_vocabulary(words))
        return self._released(plan, model, corpus, run, of=f" new {of}")

    def without(self, words: Sequence[str]) -> WordVectors:
        """Return the public vectors of all other words."""
        gone = set(words)
        kept = [row for row, word in enumerate(self.public.words) if word not in gone]
        return load_vectors(([self.public.words[row] for row in kept], self.public.matrix[kept]))

    def _released(self, plan: Plan, model: Model, corpus: Corpus, run: int, *, of: str = "") -> WordVectors:
        """Return vectors with full, reduced or no noise, or of no users; the plan has the noise of the epsilon."""
        total = self._total(plan, corpus, of)
        if model.kind == "only noise":
            total = np.zeros_like(total)
        sigma = 0.0 if model.epsilon is None else plan.budgets.sigma / LARGER.get(model.kind, 1)
        return released(plan, total, sigma=sigma, run=run)

    def _total(self, plan: Plan, corpus: Corpus, of: str) -> Cells:
        dependencies = corpus.digest, plan.words.words, plan.features.fingerprint, behaviour()
        name = f"total-{corpus.name}{of}".replace(" ", "_")
        return self.stored(name, dependencies, lambda: {"cells": total_of(plan, corpus.documents)})["cells"]

    def stored(self, name: str, dependencies: tuple[Any, ...], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return arrays from a file named after their dependencies; compute them if it is missing."""
        file = self._folder / f"{name}-{hashlib.sha256(repr(dependencies).encode()).hexdigest()[:12]}.npz"
        if not file.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(".part.npz")
            np.savez(unfinished, **make())
            unfinished.replace(file)
        with np.load(file) as stored:
            return dict(stored)

    def _compute(self, model: Model, corpus: Corpus, run: int) -> WordVectors:
        if model.kind == "word2vec":
            return word2vec(corpus.sentences, self.public, seed=GOLD_SEED)
        if model.kind == "another word2vec":
            return word2vec(corpus.sentences, self.public, seed=GOLD_SEED + 1)
        return self._released(plan_of(self.public, model.epsilon), model, corpus, run)


def processed(public: WordVectors) -> WordVectors:
    """Return public vectors with the post-processing of the release."""
    base = public_base(public.matrix, public.vocabulary.unknown_row)
    return WordVectors(public.words, base.astype(np.float32), source="processed")


def _arrays(vectors: WordVectors) -> dict[str, Any]:
    return {"words": np.array(vectors.words), "matrix": vectors.matrix}


def word2vec(sentences: list[list[str]], public: WordVectors, *, seed: int) -> WordVectors:
    """Train skip-gram with negative sampling (Mikolov et al. 2013) without privacy; one worker, to be reproducible."""
    if not has_word2vec():
        raise MissingExtraError(f"the word2vec models need the package gensim; install it with: {INSTALL}")
    from gensim.models import Word2Vec

    model = Word2Vec(
        sentences,
        sg=1,
        vector_size=DIMENSION,
        window=WINDOW,
        negative=NEGATIVE,
        epochs=EPOCHS,
        min_count=MIN_COUNT,
        workers=1,
        seed=seed,
    )
    rows = [row for row, word in enumerate(model.wv.index_to_key) if word in public and word != UNKNOWN]
    words = [model.wv.index_to_key[row] for row in rows]
    return load_vectors((words, model.wv.vectors[rows]))


def has_word2vec() -> bool:
    return importlib.util.find_spec("gensim") is not None
