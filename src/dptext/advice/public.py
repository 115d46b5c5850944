"""The public texts of which previews and figures are made: bundled utterances, or the caller's own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
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
_MOST = 4_000  # texts, so that a preview takes seconds
_BANKED = 2_000
_MADE_UP = 200  # words
_LIMIT = 50_000  # words, as of the commands


@dataclass(frozen=True, eq=False)
class PublicTexts:
    """Public texts, in a public order: the first few are shown, the others play a bank, a pool, or people."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    name: str
    files: tuple[str, ...] = ()
    column: str = "text"
    count: int = 0
    seed: int | None = None

    @classmethod
    def bundled(cls, seed: int | None) -> PublicTexts:
        """Utterances to a voice assistant (SNIPS, CC0), as ``dptext demo`` has them."""
        path = resources.files("dptext") / "cli" / "sample" / "snips-train.jsonl.gz"
        labels = {str(each.text): str(each.label) for each in read_documents(str(path), label="intent")}
        name = "utterances to a voice assistant (SNIPS)"
        return cls(*_some(list(labels), labels, seed), name, seed=seed)

    @classmethod
    def given(cls, file: Any, *, text: str, label: str | None = None, seed: int | None) -> PublicTexts:
        """The caller's own."""
        pool = Pool(file, text=text)
        if len(pool) <= 2 * PREVIEWED:
            raise ParameterError(
                f"public must be more than {2 * PREVIEWED} texts, to draw from and to show, got {len(pool)}: give more "
                "of them, or leave it out"
            )
        is_one = isinstance(file, str | os.PathLike)
        named = tuple(str(each) for each in ([file] if is_one else file)) if pool.files else ()
        labels = None
        if label is not None:
            if not pool.files:
                raise ParameterError("public_label names a column of files: give public texts with labels as files")
            rows = read_documents(pool.files, text=text, label=label)
            labels = {str(each.text).strip(): str(each.label) for each in rows if each.label is not None}
        chosen = _some([each for each in pool.texts if labels is None or each in labels], labels, seed)
        return cls(*chosen, "your public texts", named, text, len(pool), seed)

    @property
    def shown(self) -> tuple[str, ...]:
        """Those that a preview changes."""
        return self.texts[:PREVIEWED]

    @cached_property
    def pool(self) -> Pool:
        """The others: a bank, or a pool."""
        return Pool(self.texts[PREVIEWED:], name=self.name)

    @cached_property
    def vectors(self) -> WordVectors:
        """The public word vectors that commands take unless they are given others."""
        return load_vectors(GLOVE, limit=_LIMIT)

    @cached_property
    def features(self) -> Spec:
        """Features for figures and previews: fast ones that need no extra."""
        return quick_features(PublicWords(self.texts))

    @cached_property
    def stand_in(self) -> WordVectors:
        """Vectors of some of their words, made up: what a mechanism promises does not depend on which it has."""
        counts = Counter(word for text in self.texts for word in text.split())
        words = sorted(counts, key=lambda word: (-counts[word], word))[:_MADE_UP]
        return load_vectors((words, RandomBits(0).normal(len(words), 4)))

    @cached_property
    def bank(self) -> TextBank:
        """A small bank of them."""
        return TextBank(self.pool.texts[:_BANKED], encoder=self.features, cache=False)


def _some(
    texts: Sequence[str], labels: dict[str, str] | None, seed: int | None
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Some of the texts in an order by chance, and their labels."""
    order = np.argsort(RandomBits(0 if seed is None else seed).integers(len(texts)), kind="stable")
    chosen = tuple(texts[place] for place in order[:_MOST].tolist())
    return chosen, None if labels is None else tuple(labels[each] for each in chosen)
