"""Words without public vectors, which the release has to learn from users alone.

500 words lose their public vectors and become words of a private vocabulary. The released vectors are compared with
human ratings and with the removed vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.dpugc.corpus import Corpus
from papers.dpugc.intervals import crossed_bootstrap, numbers_of
from papers.dpugc.models import Model, Models, processed
from papers.dpugc.semantic import correlation, cosines_of, ranks, rated

from dptext import WordVectors
from dptext.privacy.randomness import RandomBits

BENCHMARKS = ("MEN", "WordSim-353")
COUNT, FIRST, LAST = 500, 500, 8000  # how many words, of which ranks of the public list
NEAREST = 100

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NewWords:
    """Vectors of new words; ``draws`` are seeds of the removed words, ``runs`` seeds of random models."""

    models: Models
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
        cosines: dict[str, list[list[Floats]]] = {name: [] for name in BENCHMARKS}
        ranks_by_run: list[list[Floats]] = []
        for run in runs:
            output = list(self._vectors(model, run))
            for name in BENCHMARKS:
                cosines[name].append([cosines_of(entry, self._pairs(draw, name)) for draw, entry in output])
            ranks_by_run.append([self._ranks(entry, self.words[draw]) for draw, entry in output])
        result: dict[str, float] = {}
        for name in BENCHMARKS:
            result |= self._correlation(name, cosines[name])
        ranks_of_words = np.array([np.concatenate(entry) for entry in ranks_by_run])
        numbers = {
            "median rank": lambda words, which: float(np.median(ranks_of_words[np.ix_(which, words)], axis=1).mean()),
            "nearest": lambda words, which: float((ranks_of_words[np.ix_(which, words)] <= NEAREST).mean()),
        }
        for name, statistic in numbers.items():
            words = ranks_of_words.shape[1]
            result |= numbers_of(
                name, crossed_bootstrap(statistic, words, len(runs), of="words", resamples=self.resamples)
            )
        return result

    @cached_property
    def words(self) -> dict[int, tuple[str, ...]]:
        """Removed words by draw."""
        return {draw: draw_new_words(self.models.public, draw) for draw in self.draws}

    def _vectors(self, model: Model, run: int) -> Iterator[tuple[int, WordVectors]]:
        for draw in self.draws:
            if model.kind == "public, processed":  # the ceiling: with the vectors that were taken away
                yield draw, self._public
                continue
            yield draw, self.models.lacking(self.words[draw], model, self.corpus, run, of=str(draw))

    @cached_property
    def _public(self) -> WordVectors:
        return processed(self.models.public)

    def _pairs(self, draw: int, name: str) -> list[tuple[str, str, float]]:
        """Return the pairs with a new word and two known words."""
        new, public = set(self.words[draw]), self.models.public
        return [
            entry for entry in rated(self.folder, name) if new & {*entry[:2]} and all(w in public for w in entry[:2])
        ]

    def _correlation(self, name: str, cosines: list[list[Floats]]) -> dict[str, float]:
        """Return Spearman's correlation, the mean over draws and runs; a vector without a direction has cosine 0."""
        sizes = [len(cosine) for cosine in cosines[0]]
        table = np.array([np.concatenate([np.nan_to_num(draw) for draw in run]) for run in cosines])
        ratings = np.array([rating for draw in self.draws for *_, rating in self._pairs(draw, name)])
        draw_of = np.repeat(np.arange(len(sizes)), sizes)

        def statistic(pairs: Rows, which: Rows) -> float:
            parts = [pairs[draw_of[pairs] == draw] for draw in range(len(sizes))]
            one = [ranks(ratings[part]) for part in parts]
            entry = {
                run: np.mean([correlation(a, ranks(table[run, part])) for a, part in zip(one, parts, strict=True)])
                for run in set(which.tolist())
            }
            return float(np.mean([entry[run] for run in which.tolist()]))

        result = crossed_bootstrap(statistic, len(ratings), len(table), of="pairs", resamples=self.resamples)
        return numbers_of(name, result) | {f"{name} pairs": float(len(ratings))}

    def _ranks(self, vectors: WordVectors, words: Sequence[str]) -> Floats:
        """Return (words,) ranks by the cosine of learned and public vectors; chance level where nothing was learned."""
        public = self._public
        known = np.arange(len(public)) != public.vocabulary.unknown_row
        points = public.matrix.astype(np.float64)[known]
        learned = np.stack([vectors[word] for word in words]).astype(np.float64)
        cosines = learned @ points.T  # the public ones have length 1, and that of the learned ones changes no rank
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
