"""Agreement of word vectors with human ratings of word pairs: of whole models, and of words without public vectors.

The score is Spearman's rank correlation of ratings with cosines, 0 for uninformative vectors. A pair with a missing
word has no cosine and is left out, which favours a small vocabulary: only the frequent, easy words are tested. Scores
are comparable at equal coverage only.

For new words, 500 words lose their public vectors and become words of a private vocabulary, which the release has to
learn from users alone. The released vectors are compared with human ratings and with the removed vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from papers.dpugc.models import Corpus, Model, Source, processed
from papers.dpugc.results import Indices, bootstrap_numbers

from dptext import WordVectors
from dptext.errors import DataError, StorageError, extra
from dptext.privacy.randomness import RandomBits

RatedPair = tuple[str, str, float]
Floats = npt.NDArray[np.float64]

BENCHMARKS = {
    "WordSim-353": "EN-WS-353-ALL.txt",
    "SimLex-999": "EN-SIMLEX-999.txt",
    "MEN": "EN-MEN-TR-3k.txt",
    "MTurk-771": "EN-MTurk-771.txt",
    "RG-65": "EN-RG-65.txt",
}
"""Finkelstein et al. 2002, Hill et al. 2015, Bruni et al. 2014, Halawi et al. 2012, Rubenstein and Goodenough 1965;
files as in the collection of Faruqui and Dyer 2014."""
NEW_BENCHMARKS = ("MEN", "WordSim-353")  # for new words
COUNT, FIRST, LAST = 500, 500, 8000  # number of new words, and their ranks in the public list
NEAREST = 100


@cache
def rated_pairs(folder: Path, benchmark: str) -> tuple[RatedPair, ...]:
    """Read a benchmark of `BENCHMARKS`: two words and a number per line."""
    path = folder / BENCHMARKS[benchmark]
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    pairs = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            try:
                first, second, rating = line.split()
                pairs.append((first, second, float(rating)))
            except ValueError:
                raise DataError(f"{path.name}: line {number}: expected two words and a number") from None
    return tuple(pairs)


def cosines_of(vectors: WordVectors, pairs: Sequence[RatedPair]) -> Floats:
    """Return (pairs,) cosines; NaN where a word has no vector or no direction. Words are case-folded."""
    unknown = vectors.vocabulary.unknown_row
    rows = np.array([[vectors.vocabulary.row(word) for word in pair[:2]] for pair in pairs], dtype=np.int64)
    points = vectors.matrix[rows.reshape(-1, 2)].astype(np.float64)
    lengths = np.linalg.norm(points, axis=2).prod(axis=1)
    known = (rows.reshape(-1, 2) != unknown).all(axis=1) & (lengths > 0)
    return np.where(known, (points[:, 0] * points[:, 1]).sum(axis=1) / np.where(known, lengths, 1.0), np.nan)


def centred_ranks(values: Floats) -> Floats:
    result: Floats = extra("scipy.stats", "audit", "a rank correlation").rankdata(values)
    return result - result.mean()


def correlation(one: Floats, other: Floats) -> float:
    """Return the correlation of centred numbers; 0 if all values of a side are equal."""
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size else 0.0


def run_scores(ratings: Floats, cosines: Floats, pairs: Indices, runs: Indices) -> float:
    """Return the mean over runs of Spearman's correlation on some pairs, for (runs, pairs) cosines."""
    ranks = centred_ranks(ratings[pairs])
    scores = {run: correlation(ranks, centred_ranks(cosines[run, pairs])) for run in set(runs.tolist())}
    return float(np.mean([scores[run] for run in runs.tolist()]))


@dataclass(frozen=True, eq=False)
class Similarity:
    """Similarity of models; ``folder`` has the benchmarks, ``runs`` are seeds of random models."""

    models: Source
    corpus: Corpus
    folder: Path
    runs: Sequence[int]
    resamples: int = 1000

    def scores(self, settings: Mapping[str, Any], run: int) -> dict[str, float]:
        """Return Spearman's correlation with each benchmark, and the number of covered pairs."""
        vectors = self.models.of(Model(settings["model"], settings["epsilon"]), self.corpus, run)
        result: dict[str, float] = {}
        for name in BENCHMARKS:
            pairs = rated_pairs(self.folder, name)
            ratings, cosines = np.array([rating for _, _, rating in pairs]), cosines_of(vectors, pairs)
            covered = np.isfinite(cosines)
            score = correlation(centred_ranks(ratings[covered]), centred_ranks(cosines[covered]))
            result |= {name: score, f"{name} pairs": float(covered.sum())}
        return result

    def difference(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """Return the score of a model and its difference to another model: means over runs, each with the same run.

        Settings: ``model``, ``epsilon``; ``beside`` (the other model) and perhaps ``beside epsilon``; ``benchmark``.
        """
        pairs = rated_pairs(self.folder, settings["benchmark"])
        models = (
            Model(settings["model"], settings["epsilon"]),
            Model(settings["beside"], settings.get("beside epsilon")),
        )
        runs = len(self.runs) if any(model.is_random for model in models) else 1
        cosines, others = (self._cosines(model, runs, pairs) for model in models)
        covered = np.isfinite(cosines).all(axis=0) & np.isfinite(others).all(axis=0)
        ratings = np.array([rating for _, _, rating in pairs])[covered]
        cosines, others = cosines[:, covered], others[:, covered]

        def difference(rows: Indices, which: Indices) -> float:
            return run_scores(ratings, cosines, rows, which) - run_scores(ratings, others, rows, which)

        result = {"score": run_scores(ratings, cosines, np.arange(len(ratings)), np.arange(runs))}
        result |= bootstrap_numbers("difference", difference, len(ratings), runs, resamples=self.resamples)
        return result | {"pairs": float(len(ratings))}

    def _cosines(self, model: Model, count: int, pairs: Sequence[RatedPair]) -> Floats:
        """Return (runs, pairs) cosines; a model without randomness is repeated."""
        runs = self.runs[:count] if model.is_random else [1]
        result = np.stack([cosines_of(self.models.of(model, self.corpus, run), pairs) for run in runs])
        return np.broadcast_to(result, (count, result.shape[1]))


# -- words without public vectors --------------------------------------------------------------------------------------


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
        for name in NEW_BENCHMARKS:
            result |= self._correlation(name, vectors)
        table = [[self._ranks(entry, self.words[draw]) for draw, entry in by_draw.items()] for by_draw in vectors]
        ranks = np.array([np.concatenate(parts) for parts in table])

        def median(words: Indices, which: Indices) -> float:
            return float(np.median(ranks[np.ix_(which, words)], axis=1).mean())

        def nearest(words: Indices, which: Indices) -> float:
            return float((ranks[np.ix_(which, words)] <= NEAREST).mean())

        for name, statistic in (("median rank", median), ("nearest", nearest)):
            result |= bootstrap_numbers(name, statistic, ranks.shape[1], len(runs), resamples=self.resamples)
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
        parts = [[np.nan_to_num(cosines_of(run[draw], part)) for draw, part in pairs.items()] for run in vectors]
        table = np.array([np.concatenate(by_draw) for by_draw in parts])
        ratings = np.array([rating for part in pairs.values() for *_, rating in part])
        draw_of = np.repeat(np.arange(len(pairs)), [len(part) for part in pairs.values()])

        def statistic(rows: Indices, which: Indices) -> float:
            by_draw = [rows[draw_of[rows] == draw] for draw in range(len(pairs))]
            return float(np.mean([run_scores(ratings, table, part, which) for part in by_draw]))

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
