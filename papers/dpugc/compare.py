"""Skip-gram under DP-SGD and one noisy release, from the same public vectors, at equal epsilon per user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from papers.dpugc.corpus import Corpus
from papers.dpugc.intervals import crossed_bootstrap
from papers.dpugc.mechanism import DELTA
from papers.dpugc.models import Model, Models
from papers.dpugc.semantic import correlation, cosines_of, ranks, rated
from papers.dpugc.trained import behaviour

from dptext import SkipGram, WordVectors
from dptext.embeddings.participation import EVERYONE, Participation
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.privacy.randomness import NoiseKey
from dptext.users.grouping import UserStore, stored_users, users_of

SKIP_GRAM, SKIP_GRAM_CLIPPED = "skip-gram", "skip-gram, no noise"
TIMES = 10
SKIP_GRAM_LARGER = f"skip-gram, simulated: {TIMES} times the people"

Floats = npt.NDArray[np.float64]


class Compared(Models):
    """The models of part one, and skip-gram from the same public vectors; a context manager that stores the texts.

    The number of users of the corpus is public here. All users take part in each step, which gives the best ratio of
    signal to noise for few users. ``pairs`` is the number per user and step.
    """

    def __init__(self, public: WordVectors, folder: Path, corpus: Corpus, *, pairs: int, steps: int = 20) -> None:
        super().__init__(public, folder)
        self._corpus, self._pairs, self._steps = corpus, pairs, steps
        self._open = ExitStack()
        self._store: UserStore | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:
        if not model.kind.startswith(SKIP_GRAM):
            return super().of(model, corpus, run)
        name = f"{model.kind}-{model.epsilon}-{run}-{corpus.name}".replace(" ", "_").replace(":", "")
        dependencies = corpus.digest, self.public.fingerprint, self._pairs, self._steps, behaviour()
        stored = self.stored(name, dependencies, lambda: {"matrix": self._trained(model, run)})
        return WordVectors(self.public.words, stored["matrix"], source=name)

    @cache  # noqa: B019 (a handful of plans, for as long as the experiment lasts)
    def skip_gram_plan(self, model: Model) -> SkipGramPlan:
        """Return the plan; except for the number of users it is independent of the texts."""
        plan = SkipGram(
            self.public,
            epsilon=model.epsilon or 1.0,
            mode="clipped" if model.kind == SKIP_GRAM_CLIPPED else "private",
            delta=DELTA,
            steps=self._steps,
            sampling_rate=1.0,
            public_users=len({document.user for document in self._corpus.documents}),
            pairs=self._pairs,
        ).plan()
        if model.kind != SKIP_GRAM_LARGER:
            return plan
        less = Participation(
            noise_multiplier=plan.participation.noise_multiplier / TIMES,
            steps=self._steps,
            delta=DELTA,
            rates={EVERYONE: 1.0},
        )
        return replace(plan, participation=less)

    def _trained(self, model: Model, run: int) -> npt.NDArray[np.float32]:
        plan = self.skip_gram_plan(model)
        if self._store is None:
            users = self._open.enter_context(users_of(self._corpus.documents, plan.trained, seed=1))
            self._store = self._open.enter_context(stored_users(users))
        training = plan.training(self._store, plan.start(), NoiseKey(run))
        for step in range(self._steps):
            training.step(step)
        return plan.finish(training.tables.matrix)


@dataclass(frozen=True, eq=False)
class Compare:
    """Word similarity of two models on the same corpus; ``runs`` are the seeds of random models."""

    models: Compared
    corpus: Corpus
    folder: Path
    runs: Sequence[int]
    resamples: int = 1000

    def cell(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """Return Spearman's correlation of a model on a benchmark, and its difference to another model.

        Settings: ``model``, ``epsilon``; ``beside`` (the other model) and ``beside epsilon``; ``benchmark``. Means over
        runs, each compared with the same run of the other model; the interval is over pairs and runs
        (`papers.dpugc.intervals`).
        """
        pairs = rated(self.folder, settings["benchmark"])
        model, other = (
            Model(settings[name], settings[epsilon])
            for name, epsilon in (("model", "epsilon"), ("beside", "beside epsilon"))
        )
        count = len(self.runs) if model.is_random or other.is_random else 1
        cosines, others = (self._cosines(entry, count, pairs) for entry in (model, other))
        covered = np.isfinite(cosines).all(axis=0) & np.isfinite(others).all(axis=0)
        ratings = np.array([rating for _, _, rating in pairs])[covered]
        cosines, others = cosines[:, covered], others[:, covered]

        def score(of: Floats, rows: npt.NDArray[np.int64], runs: npt.NDArray[np.int64]) -> float:
            people = ranks(ratings[rows])
            entry = {run: correlation(people, ranks(of[run, rows])) for run in set(runs.tolist())}
            return float(np.mean([entry[run] for run in runs.tolist()]))

        def more(rows: npt.NDArray[np.int64], runs: npt.NDArray[np.int64]) -> float:
            return score(cosines, rows, runs) - score(others, rows, runs)

        result = crossed_bootstrap(more, int(covered.sum()), count, of="pairs", resamples=self.resamples)
        every = np.arange(covered.sum()), np.arange(count)
        return {
            "score": score(cosines, *every),
            "difference": result.value,
            "difference low": result.low,
            "difference high": result.high,
            "pairs": float(result.count),
        }

    def _cosines(self, model: Model, count: int, pairs: Any) -> Floats:
        """Return (runs, pairs); a model without randomness is repeated."""
        runs = self.runs[:count] if model.is_random else [1]
        result = np.stack([cosines_of(self.models.of(model, self.corpus, run), pairs) for run in runs])
        return np.broadcast_to(result, (count, result.shape[1]))
