"""Words without public vectors, which the release has to learn from users alone.

500 words lose their public vectors and become words of a private vocabulary. The released vectors are compared with
human ratings and with the removed vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from papers.dpugc.models import Corpus, Model, processed
from papers.dpugc.results import Indices, bootstrap_numbers
from papers.dpugc.similarity import rated_pairs, run_scores
from papers.word_similarity import RatedPair, cosines_of

from dptext import WordVectors
from dptext.privacy.randomness import RandomBits

BENCHMARKS = ("MEN", "WordSim-353")
COUNT, FIRST, LAST = 500, 500, 8000  # number of words, and their ranks in the public list
NEAREST = 100

Floats = npt.NDArray[np.float64]


class LackingSource(Protocol):
    """An object that returns vectors which were learned without the public vectors of some words."""

    public: WordVectors

    def lacking(self, words: Sequence[str], model: Model, corpus: Corpus, run: int) -> WordVectors:
        """Return the vectors of one run."""


@dataclass(frozen=True, eq=False)
class NewWords:
    """Vectors of new words; ``draws`` are seeds of the removed words, ``runs`` seeds of random models."""

    models: LackingSource
    corpus: Corpus
    folder: Path
    draws: Sequence[int]
    runs: Sequence[int]
    resamples: int = 1000

    def cell(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """Return correlations on the pairs with a new word, and ranks of the true words, over all draws and runs.

        The rank of a word is the number of words whose public vectors are at least as near to its learned vector as its
        own.
        """
        model = Model(settings["model"], settings["epsilon"])
        runs = self.runs if model.is_random else [1]
        vectors = [{draw: self.vectors(model, draw, run) for draw in self.draws} for run in runs]
        result: dict[str, float] = {}
        for name in BENCHMARKS:
            result |= self._correlation(name, vectors)
        table = [[self._ranks(entry, self.words[draw]) for draw, entry in by_draw.items()] for by_draw in vectors]
        ranks = np.array([np.concatenate(parts) for parts in table])
        options = {"resamples": self.resamples}

        def median(words: Indices, which: Indices) -> float:
            return float(np.median(ranks[np.ix_(which, words)], axis=1).mean())

        def nearest(words: Indices, which: Indices) -> float:
            return float((ranks[np.ix_(which, words)] <= NEAREST).mean())

        for name, statistic in (("median rank", median), ("nearest", nearest)):
            result |= bootstrap_numbers(name, statistic, ranks.shape[1], len(runs), **options)
        return result

    @cached_property
    def words(self) -> dict[int, tuple[str, ...]]:
        """Removed words by draw."""
        return {draw: draw_new_words(self.models.public, draw) for draw in self.draws}

    def vectors(self, model: Model, draw: int, run: int) -> WordVectors:
        """Return the vectors of one draw and run; "public, processed" is the upper limit: the removed vectors."""
        if model.kind == "public, processed":
            return self.public
        return self.models.lacking(self.words[draw], model, self.corpus, run)

    @cached_property
    def public(self) -> WordVectors:
        return processed(self.models.public)

    def _pairs(self, draw: int, name: str) -> list[RatedPair]:
        """Return the pairs with a new word and two known words."""
        new, public = set(self.words[draw]), self.models.public
        pairs = rated_pairs(self.folder, name)
        return [pair for pair in pairs if new & {*pair[:2]} and all(word in public for word in pair[:2])]

    def _correlation(self, name: str, vectors: Sequence[Mapping[int, WordVectors]]) -> dict[str, float]:
        """Return Spearman's correlation, the mean over draws and runs; a vector without a direction has cosine 0."""
        pairs = {draw: self._pairs(draw, name) for draw in self.draws}
        table = np.array(
            [
                np.concatenate([np.nan_to_num(cosines_of(by_draw[draw], part)) for draw, part in pairs.items()])
                for by_draw in vectors
            ]
        )
        ratings = np.array([rating for part in pairs.values() for *_, rating in part])
        draw_of = np.repeat(np.arange(len(pairs)), [len(part) for part in pairs.values()])

        def statistic(rows: Indices, which: Indices) -> float:
            parts = [rows[draw_of[rows] == draw] for draw in range(len(pairs))]
            return float(np.mean([run_scores(ratings, table, part, which) for part in parts]))

        numbers = bootstrap_numbers(name, statistic, len(ratings), len(table), resamples=self.resamples)
        return numbers | {f"{name} pairs": float(len(ratings))}

    def _ranks(self, vectors: WordVectors, words: Sequence[str]) -> Floats:
        """Return (words,) ranks by the cosine of learned and public vectors; chance level where nothing was learned."""
        public = self.public
        known = np.arange(len(public)) != public.vocabulary.unknown_row
        points = public.matrix.astype(np.float64)[known]
        learned = np.stack([vectors[word] for word in words]).astype(np.float64)
        cosines = learned @ points.T  # public vectors have length 1, and the length of learned ones changes no rank
        true_cosines = (learned * np.stack([public[word] for word in words])).sum(axis=1)
        result = (cosines > true_cosines[:, None]).sum(axis=1) + 1.0
        result[~learned.any(axis=1)] = (len(points) + 1) / 2
        return result


def draw_new_words(public: WordVectors, seed: int) -> tuple[str, ...]:
    """Return 500 words of ranks 500 to 8,000, drawn by a seed; an eighth of those ranks for a short list."""
    last = min(LAST, len(public) - 1)
    count = min(COUNT, (last - FIRST) // 8)
    chosen = FIRST + np.sort(np.argsort(RandomBits(seed).integers(last - FIRST))[:count])
    return tuple(public.words[row] for row in chosen.tolist() if row != public.vocabulary.unknown_row)
