"""Word similarity of models against human ratings, and the difference between two models on the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.dpugc.models import Corpus, Model, Source
from papers.dpugc.results import Indices, crossed_bootstrap
from papers.word_similarity import BENCHMARKS, RatedPair, centred_ranks, correlation, cosines_of, read_pairs, similarity

Floats = npt.NDArray[np.float64]


@cache
def rated_pairs(folder: Path, name: str) -> tuple[RatedPair, ...]:
    return tuple(read_pairs(folder, name))


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
            score = similarity(vectors, rated_pairs(self.folder, name), resamples=1, seed=1)
            result |= {name: score.value, f"{name} pairs": float(score.count)}
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

        result = crossed_bootstrap(difference, len(ratings), runs, of="pairs", resamples=self.resamples)
        return {
            "score": run_scores(ratings, cosines, np.arange(len(ratings)), np.arange(runs)),
            "difference": result.value,
            "difference low": result.low,
            "difference high": result.high,
            "pairs": float(result.count),
        }

    def _cosines(self, model: Model, count: int, pairs: Sequence[RatedPair]) -> Floats:
        """Return (runs, pairs) cosines; a model without randomness is repeated."""
        runs = self.runs[:count] if model.is_random else [1]
        result = np.stack([cosines_of(self.models.of(model, self.corpus, run), pairs) for run in runs])
        return np.broadcast_to(result, (count, result.shape[1]))
