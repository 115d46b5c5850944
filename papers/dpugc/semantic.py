"""Word similarity against human ratings, and neighbours against the gold model.

One row per model and run for each; one row per model and benchmark for the difference to the public vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.dpugc.corpus import Corpus
from papers.dpugc.intervals import crossed_bootstrap
from papers.dpugc.models import Model, Models
from papers.dpugc.neighbours import PAPER_QUERIES, map_score
from papers.word_similarity import BENCHMARKS, RatedPair, read_pairs, similarity

from dptext import WordVectors
from dptext.errors import extra

LISTS = {**BENCHMARKS, "MTurk-771": "EN-MTurk-771.txt", "RG-65": "EN-RG-65.txt"}
"""Benchmarks and their files (MTurk-771: Halawi et al. 2012; RG-65: Rubenstein and Goodenough 1965)."""
GOLD = Model("word2vec")
TOP = 100

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Semantic:
    """Similarity and neighbours of models; ``folder`` has the benchmarks, ``runs`` are seeds of random models."""

    models: Models
    corpus: Corpus
    folder: Path
    runs: Sequence[int]
    resamples: int = 1000

    def similarity(self, settings: Mapping[str, Any], run: int) -> dict[str, float]:
        """Return Spearman's correlation with each benchmark, and the number of covered pairs."""
        vectors = self._vectors(settings, run)
        result: dict[str, float] = {}
        for name in LISTS:
            score = similarity(vectors, self._pairs(name), benchmark=name, resamples=1, seed=1)
            result |= {name: score.score.value, f"{name} pairs": float(score.covered)}
        return result

    def difference(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """Return the gain over public vectors on the pairs that both cover: mean over runs."""
        pairs = self._pairs(settings["benchmark"])
        model = Model(settings["model"], settings["epsilon"])
        runs = self.runs if model.is_random else [1]
        cosines = np.stack([cosines_of(self.models.of(model, self.corpus, run), pairs) for run in runs])
        public = cosines_of(self.models.of(Model(settings["beside"]), self.corpus), pairs)
        covered = np.isfinite(public) & np.isfinite(cosines).all(axis=0)
        ratings = np.array([rating for _, _, rating in pairs])[covered]
        cosines, public = cosines[:, covered], public[covered]

        def statistic(rows: npt.NDArray[np.int64], which: npt.NDArray[np.int64]) -> float:
            people = ranks(ratings[rows])
            entry = {run: correlation(people, ranks(cosines[run, rows])) for run in set(which.tolist())}
            return float(np.mean([entry[run] for run in which.tolist()])) - correlation(people, ranks(public[rows]))

        result = crossed_bootstrap(statistic, int(covered.sum()), len(runs), of="pairs", resamples=self.resamples)
        return {"difference": result.value, "low": result.low, "high": result.high, "pairs": float(result.count)}

    def neighbours(self, settings: Mapping[str, Any], run: int) -> dict[str, float]:
        """Return MAP-Word and MAP-Char against the gold model, with the precision of each query."""
        vectors, gold = self._vectors(settings, run), self.models.of(GOLD, self.corpus)
        result: dict[str, float] = {}
        for measure in ("MAP-Word", "MAP-Char"):
            score = map_score(vectors, gold, measure=measure, top=TOP, seed=1)
            result |= {measure: score.score.value, f"{measure} random": score.baseline}
            result |= {f"{measure} {query}": score.by_query[query] for query in PAPER_QUERIES}
        relevant = map_score(vectors, gold, per="relevant", top=TOP, seed=1)
        return result | {"MAP-Word per 100": relevant.score.value}

    def _vectors(self, settings: Mapping[str, Any], run: int) -> WordVectors:
        return self.models.of(Model(settings["model"], settings["epsilon"]), self.corpus, run)

    def _pairs(self, name: str) -> Sequence[RatedPair]:
        return rated(self.folder, name)


@cache
def rated(folder: Path, name: str) -> tuple[RatedPair, ...]:
    return tuple(read_pairs(folder, LISTS[name]))


def cosines_of(vectors: WordVectors, pairs: Sequence[RatedPair]) -> Floats:
    """Return (pairs,) cosines; NaN where a word has no vector or no direction."""
    unknown = vectors.vocabulary.unknown_row
    rows = np.array([[vectors.vocabulary.row(word) for word in pair[:2]] for pair in pairs], dtype=np.int64)
    rows = rows.reshape(-1, 2)
    points = vectors.matrix[rows].astype(np.float64)
    lengths = np.linalg.norm(points, axis=2).prod(axis=1)
    known = (rows != unknown).all(axis=1) & (lengths > 0)
    return np.where(known, (points[:, 0] * points[:, 1]).sum(axis=1) / np.where(known, lengths, 1.0), np.nan)


def ranks(values: Floats) -> Floats:
    """Return centred ranks."""
    result: Floats = extra("scipy.stats", "audit", "a rank correlation").rankdata(values)
    return result - result.mean()


def correlation(one: Floats, other: Floats) -> float:
    """Return the correlation of centred numbers."""
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size else 0.0  # all alike: nothing is known
