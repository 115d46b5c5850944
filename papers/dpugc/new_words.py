"""Words that public vectors lack: what does the release know of a word that it has to learn from people alone?

500 words lose their public vectors and are treated as words of a private vocabulary. What is released for them is
compared with people's ratings, and with the vectors that were taken away.
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
from papers.dpugc.intervals import crossed
from papers.dpugc.models import Model, Models, processed
from papers.dpugc.semantic import correlation, cosines_of, ranks, rated

from dptext import WordVectors
from dptext.intervals import Estimate
from dptext.privacy.randomness import RandomBits

__all__ = ["BENCHMARKS", "NewWords", "taken_away"]

BENCHMARKS = ("MEN", "WordSim-353")
COUNT, FIRST, LAST = 500, 500, 8000  # how many words, of which ranks of the public list
NEAREST = 100

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NewWords:
    """What cells of this part share.

    Attributes:
        models: vectors.
        corpus: all bloggers.
        folder: of the benchmarks' files.
        draws: seeds; each takes other words away.
        runs: seeds of the runs of what is random.
        resamples: of the intervals.
    """

    models: Models
    corpus: Corpus
    folder: Path
    draws: Sequence[int]
    runs: Sequence[int]
    resamples: int = 1000

    def cell(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """Over all draws and runs: correlations on the pairs that hold a new word, and the ranks of the true words.

        The rank of a word: how many of all words have public vectors as near to what was learned as its own.
        """
        model = Model(settings["model"], settings["epsilon"])
        runs = self.runs if model.is_random else [1]
        cosines: dict[str, list[list[Floats]]] = {name: [] for name in BENCHMARKS}
        own: list[list[Floats]] = []
        for run in runs:
            output = list(self._vectors(model, run))
            for name in BENCHMARKS:
                cosines[name].append([cosines_of(entry, self._pairs(draw, name)) for draw, entry in output])
            own.append([self._ranks(entry, self.words[draw]) for draw, entry in output])
        result: dict[str, float] = {}
        for name in BENCHMARKS:
            result |= self._correlation(name, cosines[name])
        ranks_of_words = np.array([np.concatenate(entry) for entry in own])
        numbers = {
            "median rank": lambda words, which: float(np.median(ranks_of_words[np.ix_(which, words)], axis=1).mean()),
            "nearest": lambda words, which: float((ranks_of_words[np.ix_(which, words)] <= NEAREST).mean()),
        }
        for name, statistic in numbers.items():
            words = ranks_of_words.shape[1]
            result |= _spread(name, crossed(statistic, words, len(runs), of="words", resamples=self.resamples))
        return result

    @cached_property
    def words(self) -> dict[int, tuple[str, ...]]:
        """Those taken away, by draw."""
        return {draw: taken_away(self.models.public, draw) for draw in self.draws}

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
        """Those of which a word is new, and both have vectors."""
        new, public = set(self.words[draw]), self.models.public
        return [
            entry for entry in rated(self.folder, name) if new & {*entry[:2]} and all(w in public for w in entry[:2])
        ]

    def _correlation(self, name: str, cosines: list[list[Floats]]) -> dict[str, float]:
        """Spearman's, the mean over draws and runs. A word whose vector has no direction stands at the average."""
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

        result = crossed(statistic, len(ratings), len(table), of="pairs", resamples=self.resamples)
        return _spread(name, result) | {f"{name} pairs": float(len(ratings))}

    def _ranks(self, vectors: WordVectors, words: Sequence[str]) -> Floats:
        """(words,) the rank of each among all, by the cosine of public vectors with what was learned.

        Where nothing was learned it is that of a guess.
        """
        public = self._public
        known = np.arange(len(public)) != public.vocabulary.unknown_row
        there = public.matrix.astype(np.float64)[known]
        learned = np.stack([vectors[word] for word in words]).astype(np.float64)
        cosines = learned @ there.T  # the public ones have length 1, and that of the learned ones changes no rank
        own = (learned * np.stack([public[word] for word in words])).sum(axis=1)
        result = (cosines > own[:, None]).sum(axis=1) + 1.0
        result[~learned.any(axis=1)] = (len(there) + 1) / 2
        return result


def taken_away(public: WordVectors, seed: int) -> tuple[str, ...]:
    """500 words of ranks 500 to 8,000, drawn by a seed; an eighth of those ranks where the list is short."""
    last = min(LAST, len(public) - 1)
    count = min(COUNT, (last - FIRST) // 8)
    chosen = FIRST + np.sort(np.argsort(RandomBits(seed).integers(last - FIRST))[:count])
    return tuple(public.words[row] for row in chosen.tolist() if row != public.vocabulary.unknown_row)


def _spread(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name} low": found.low, f"{name} high": found.high}
