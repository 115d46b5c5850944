"""Public texts on which `advise` and the demo show what a method does."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np

from dptext.errors import ParameterError
from dptext.features.features import Spec, quick_features
from dptext.features.latent_words import PublicWords
from dptext.features.pool import Pool
from dptext.io.documents import read_documents
from dptext.privacy.randomness import RandomBits
from dptext.sentences.bank import TextBank
from dptext.vectors.formats import GLOVE, load_vectors
from dptext.vectors.word_vectors import WordVectors

PREVIEWED = 5
_MAX_TEXTS = 4_000  # a preview takes seconds
_BANK_TEXTS = 2_000
_STAND_IN_WORDS = 200
_VOCABULARY = 50_000  # the default of the commands


@dataclass(frozen=True, eq=False)
class PublicTexts:
    """Public texts in a random order: the first ones are previewed, the others serve as a bank, a pool or people.

    Attributes:
        texts, labels: the texts, and their public labels if known.
        name: of the source, for people.
        files, column: where they come from; no files: bundled with dptext, or in memory.
        count: how many there are in the files.
        seed: of the order and of the previews.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    name: str
    files: tuple[str, ...] = ()
    column: str = "text"
    count: int = 0
    seed: int | None = None

    @classmethod
    def bundled(cls, seed: int | None) -> PublicTexts:
        """Return utterances to a voice assistant (SNIPS, CC0), as in ``dptext demo``."""
        path = resources.files("dptext") / "cli" / "sample" / "snips-train.jsonl.gz"
        labels = {str(row.text): str(row.label) for row in read_documents(str(path), label="intent")}
        name = "utterances to a voice assistant (SNIPS)"
        return cls(*_sample(list(labels), labels, seed), name, seed=seed)

    @classmethod
    def of(cls, files: Any, *, text: str, label: str | None = None, seed: int | None) -> PublicTexts:
        """Texts of the caller: files, or anything that `Pool` takes."""
        pool = Pool(files, text=text)
        if len(pool) <= 2 * PREVIEWED:
            raise ParameterError(
                f"public must hold more than {2 * PREVIEWED} texts, got {len(pool)}: add some, or leave public out"
            )
        paths = [files] if isinstance(files, str | os.PathLike) else files
        names = tuple(str(path) for path in paths) if pool.files else ()
        labels = None
        if label is not None:
            if not pool.files:
                raise ParameterError("public_label names a column of files: give public texts with labels as files")
            rows = read_documents(pool.files, text=text, label=label)
            labels = {str(row.text).strip(): str(row.label) for row in rows if row.label is not None}
        chosen = _sample([item for item in pool.texts if labels is None or item in labels], labels, seed)
        return cls(*chosen, "your public texts", names, text, len(pool), seed)

    @property
    def previewed(self) -> tuple[str, ...]:
        """The texts that a preview replaces."""
        return self.texts[:PREVIEWED]

    @cached_property
    def pool(self) -> Pool:
        """The other texts."""
        return Pool(self.texts[PREVIEWED:], name=self.name)

    @cached_property
    def vectors(self) -> WordVectors:
        """The public word vectors that commands use by default."""
        return load_vectors(GLOVE, limit=_VOCABULARY)

    @cached_property
    def features(self) -> Spec:
        """Fast features that need no extra."""
        return quick_features(PublicWords(self.texts))

    @cached_property
    def stand_in(self) -> WordVectors:
        """Random vectors for some of the words: the guarantee of a mechanism does not depend on the vectors."""
        counts = Counter(word for text in self.texts for word in text.split())
        words = sorted(counts, key=lambda word: (-counts[word], word))[:_STAND_IN_WORDS]
        return load_vectors((words, RandomBits(0).normal(len(words), 4)))

    @cached_property
    def bank(self) -> TextBank:
        return TextBank(self.pool.texts[:_BANK_TEXTS], encoder=self.features, cache=False)


def _sample(
    texts: Sequence[str], labels: Mapping[str, str] | None, seed: int | None
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Texts in random order, and their labels."""
    order = np.argsort(RandomBits(0 if seed is None else seed).integers(len(texts)), kind="stable")
    chosen = tuple(texts[index] for index in order[:_MAX_TEXTS].tolist())
    return chosen, None if labels is None else tuple(labels[text] for text in chosen)
