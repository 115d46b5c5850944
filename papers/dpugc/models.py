"""Word vectors by name: public, word2vec without privacy, and the private release. Each is made once and kept.

What is kept lies in the run's ``work`` folder, which is never shared: word2vec's vectors are those of real people.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from papers.dpugc import stand_in
from papers.dpugc.corpus import Corpus

from dptext import Document, MissingExtraError, WordVectors, load_vectors
from dptext.text.vocabulary import UNKNOWN

__all__ = ["DELTA", "DIMENSION", "Model", "Models", "has_word2vec", "word2vec"]

DELTA = 1e-6
DIMENSION, WINDOW, NEGATIVE, EPOCHS, LEAST = 50, 5, 5, 5, 5
GOLD_SEED = 1
INSTALL = "pip install 'gensim>=4.3'"

# -- the one place where the mechanism is plugged in ------------------------------------------------------------


def private(documents: Iterable[Document], public: WordVectors, *, epsilon: float | None, seed: int) -> WordVectors:
    """The release under test; ``epsilon=None``: the same pipeline without its noise."""
    return stand_in.release(list(documents), public, epsilon=epsilon, delta=DELTA, seed=seed)


CODE = Path(stand_in.__file__).resolve()  # a file or folder: vectors made by other code are made again

# --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """Which vectors.

    Attributes:
        kind: "public"; "public, centred" (without their mean); "word2vec"; "another word2vec" (another seed);
            "private"; "no noise" (the private pipeline without its noise); "only noise" (the private pipeline fed one
            person without a word: what post-processing alone does).
        epsilon: of "private" and "only noise"; None otherwise.
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


class Models:
    """Vectors of models and corpora, from their files where they have been made before.

    Args:
        public: public vectors; their words are the vocabulary.
        folder: for the files.
    """

    def __init__(self, public: WordVectors, folder: Path) -> None:
        self.public = public
        self._folder = folder

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:
        """The vectors of one run.

        Raises:
            MissingExtraError: word2vec without gensim.
        """
        if model.kind == "public":
            return self.public
        if model.kind == "public, centred":
            return WordVectors(
                self.public.words, self.public.matrix - self.public.matrix.mean(axis=0), source="centred"
            )
        name = f"{model.kind}-{model.epsilon}-{run}-{corpus.name}".replace(" ", "_")
        held = corpus.digest, self.public.fingerprint, "" if "word2vec" in model.kind else code_digest()
        file = self._folder / f"{name}-{hashlib.sha256(repr(held).encode()).hexdigest()[:12]}.npz"
        if file.exists():
            with np.load(file) as stored:
                return WordVectors(stored["words"].tolist(), stored["matrix"], source=name)
        made = self._made(model, corpus, run)
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part.npz")
        np.savez(unfinished, words=np.array(made.words), matrix=made.matrix)
        unfinished.replace(file)
        return made

    def _made(self, model: Model, corpus: Corpus, run: int) -> WordVectors:
        if model.kind == "word2vec":
            return word2vec(corpus.sentences, self.public, seed=GOLD_SEED)
        if model.kind == "another word2vec":
            return word2vec(corpus.sentences, self.public, seed=GOLD_SEED + 1)
        nobody = [Document("", user="nobody")]
        texts = nobody if model.kind == "only noise" else corpus.documents
        return private(texts, self.public, epsilon=model.epsilon, seed=run)


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


def code_digest() -> str:
    """Of the code of the mechanism."""
    files = sorted(CODE.rglob("*.py")) if CODE.is_dir() else [CODE]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
