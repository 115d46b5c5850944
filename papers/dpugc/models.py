"""Word vectors by name: public, word2vec without privacy, and the private release. Each is made once and kept.

What is kept lies in the run's ``work`` folder, which is never shared: totals and word2vec's vectors are those of real
people.
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
from papers.dpugc.mechanism import Cells, behaviour, given_words, plan_of, released, total_of

from dptext import WordVectors, load_vectors
from dptext.embeddings.cooccurrence import Plan
from dptext.embeddings.refinement import public_base
from dptext.errors import MissingExtraError
from dptext.text.tokens import UNKNOWN

__all__ = ["DIMENSION", "LARGER", "Model", "Models", "Source", "has_word2vec", "processed", "word2vec"]

DIMENSION, WINDOW, NEGATIVE, EPOCHS, LEAST = 50, 5, 5, 5, 5
GOLD_SEED = 1
INSTALL = "pip install 'gensim>=4.3'"
LARGER = {f"simulated: {times} times the people": times for times in (2, 4, 8, 16)}
"""How many times less noise a model has than its epsilon asks for."""


@dataclass(frozen=True)
class Model:
    """Which vectors.

    Attributes:
        kind: "public"; "public, centred" (without their mean); "public, processed" (what the release's post-processing
            makes of public vectors alone); "word2vec"; "another word2vec" (another seed); "private"; "no noise" (the
            private pipeline without its noise); "only noise" (the noise of the release on a total of nobody); one of
            `LARGER`: **a simulation**, the private pipeline with the noise divided by so much, as if so many times as
            many people like these had taken part: their sum grows with them, the noise does not.
        epsilon: of what has noise; None otherwise.
    """

    kind: str
    epsilon: float | None = None

    @property
    def is_random(self) -> bool:
        """Whether another run gives other vectors."""
        return self.epsilon is not None

    @property
    def settings(self) -> dict[str, str | float | None]:
        return {"model": self.kind, "epsilon": self.epsilon}

    def __str__(self) -> str:
        return self.kind if self.epsilon is None else f"{self.kind}, epsilon {self.epsilon:g}"


class Source(Protocol):
    """Whatever has vectors by name."""

    public: WordVectors

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:
        """The vectors of one run."""


class Models:
    """Vectors of models and corpora, from their files where they have been made before.

    Args:
        public: public vectors; their words are the vocabulary.
        folder: for the files.
    """

    def __init__(self, public: WordVectors, folder: Path) -> None:
        self.public = public
        self._folder = folder
        self._public = {
            "public": public,
            "public, centred": WordVectors(public.words, public.matrix - public.matrix.mean(axis=0), source="centred"),
            "public, processed": processed(public),
        }

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:
        """The vectors of one run.

        Raises:
            MissingExtraError: word2vec without gensim.
        """
        if model.kind in self._public:
            return self._public[model.kind]
        name = f"{model.kind}-{model.epsilon}-{run}-{corpus.name}".replace(" ", "_").replace(":", "")
        held = corpus.digest, self.public.fingerprint, "" if "word2vec" in model.kind else behaviour()
        stored = self.stored(name, held, lambda: _arrays(self._made(model, corpus, run)))
        return WordVectors(stored["words"].tolist(), stored["matrix"], source=name)

    def lacking(self, words: Sequence[str], model: Model, corpus: Corpus, run: int, *, of: str) -> WordVectors:
        """Vectors of the release where these words have no public ones, and are given as a private vocabulary.

        Args:
            words: of the public list.
            model, corpus, run: what is made; the model is one of the release.
            of: a name for the words.
        """
        plan = plan_of(self.without(words), model.epsilon, vocabulary=given_words(words))
        return self._released(plan, model, corpus, run, of=f" new {of}")

    def without(self, words: Sequence[str]) -> WordVectors:
        """The public vectors of all other words."""
        gone = set(words)
        kept = [row for row, word in enumerate(self.public.words) if word not in gone]
        return load_vectors(([self.public.words[row] for row in kept], self.public.matrix[kept]))

    def _released(self, plan: Plan, model: Model, corpus: Corpus, run: int, *, of: str = "") -> WordVectors:
        """Private, with less noise or none, or of nobody; the plan has the noise that the epsilon asks for."""
        total = self._total(plan, corpus, of)
        if model.kind == "only noise":
            total = np.zeros_like(total)
        sigma = 0.0 if model.epsilon is None else plan.budgets.sigma / LARGER.get(model.kind, 1)
        return released(plan, total, sigma=sigma, run=run)

    def _total(self, plan: Plan, corpus: Corpus, of: str) -> Cells:
        held = corpus.digest, plan.words.words, plan.features.fingerprint, behaviour()
        name = f"total-{corpus.name}{of}".replace(" ", "_")
        return self.stored(name, held, lambda: {"cells": total_of(plan, corpus.documents)})["cells"]

    def stored(self, name: str, held: tuple[Any, ...], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Arrays from a file that is called after what they depend on, made where there is none."""
        file = self._folder / f"{name}-{hashlib.sha256(repr(held).encode()).hexdigest()[:12]}.npz"
        if not file.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(".part.npz")
            np.savez(unfinished, **make())
            unfinished.replace(file)
        with np.load(file) as stored:
            return dict(stored)

    def _made(self, model: Model, corpus: Corpus, run: int) -> WordVectors:
        if model.kind == "word2vec":
            return word2vec(corpus.sentences, self.public, seed=GOLD_SEED)
        if model.kind == "another word2vec":
            return word2vec(corpus.sentences, self.public, seed=GOLD_SEED + 1)
        return self._released(plan_of(self.public, model.epsilon), model, corpus, run)


def processed(public: WordVectors) -> WordVectors:
    """What the release's post-processing makes of public vectors, without any private text."""
    base = public_base(public.matrix, public.vocabulary.unknown_row)
    return WordVectors(public.words, base.astype(np.float32), source="processed")


def _arrays(vectors: WordVectors) -> dict[str, Any]:
    return {"words": np.array(vectors.words), "matrix": vectors.matrix}


def word2vec(sentences: list[list[str]], public: WordVectors, *, seed: int) -> WordVectors:
    """Skip-gram with negative sampling (Mikolov et al. 2013), without privacy; its words that are public ones.

    One worker: more of them race, and no training could be repeated.

    Raises:
        MissingExtraError: no gensim.
    """
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
        min_count=LEAST,
        workers=1,
        seed=seed,
    )
    rows = [row for row, word in enumerate(model.wv.index_to_key) if word in public and word != UNKNOWN]
    words = [model.wv.index_to_key[row] for row in rows]
    return load_vectors((words, model.wv.vectors[rows]))


def has_word2vec() -> bool:
    return importlib.util.find_spec("gensim") is not None
