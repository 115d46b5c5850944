"""A budget for each person (dpUGC, part three: its algorithm 1-b). See README.md.

Command: ``python -m papers.dpugc.personal [--data FOLDER] [--quick] [--report]``
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger, bloggers
from papers.dpugc.as_printed import DPUGC
from papers.dpugc.levels import BY, DEVICE, LEVEL, LEVELS, PROFILE, TEXTS, VECTOR, ColdStart, add_levels
from papers.dpugc.models import (
    DELTA,
    VECTORS,
    WORDS_LIMIT,
    Cells,
    Corpus,
    Model,
    Models,
    corpus_of,
    fixed_vocabulary,
    held_out,
    plan_of,
    processed,
    released,
    total_of,
)
from papers.dpugc.personal_report import write_report
from papers.dpugc.results import map_numbers, mean_numbers
from papers.dpugc.similarity import FIRST, LAST, NewWords
from papers.dpugc.trained import PRINTED_SIGMA, Schedule, Trainings
from papers.dpugc.training_report import CLIP
from papers.reports import parse_options, run_command
from papers.sweeps import Parts, grid

from dptext import Document, SkipGram, WordVectors, load_vectors
from dptext.embeddings.cooccurrence import Plan as ReleasePlan
from dptext.embeddings.participation import personal_participation
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.evaluation.utility import words_of
from dptext.privacy.randomness import NoiseKey
from dptext.users.grouping import stored_users, users_of

HERE = Path(__file__).resolve().parent
PARTS = ("cold_start", "release", "printed", "training")
LEAST, LARGEST = min(LEVELS.values()), max(LEVELS.values())
STEPS, PAIRS = 20, 500  # of a training from public vectors, as in part two: who is in it most is in every step

COMMON = "what they have in common"

Floats = npt.NDArray[np.float64]
Words = tuple[str, ...]


@dataclass(frozen=True)
class System:
    """A rule for the epsilons of users.

    ``silent``: half of the users state no level, which is "guessed" (predicted from their texts on the server) or
    the "strictest"; None: all state theirs.
    """

    epsilons: float | Mapping[str, float] | None  # of all_people, or by level; None: no noise
    by: str | None = None  # assignment of levels (`papers.dpugc.levels`); None: all users are treated equally
    only: str | None = None  # the level of the users who take part; None: all
    silent: str | None = None
    public: bool = False  # nothing is learned; each new word gets the mean of the other public words of the same ranks

    @property
    def max_epsilon(self) -> float | None:
        """The largest epsilon, which determines the noise."""
        return max(self.epsilons.values()) if isinstance(self.epsilons, Mapping) else self.epsilons

    def epsilon_of(self, level: str) -> float:
        """Return the true epsilon of users who state a level; infinite without noise, 0 if they are left out."""
        if self.public or self.only not in (None, level):
            return 0.0
        if isinstance(self.epsilons, Mapping):
            return self.epsilons[level]
        return float("inf") if self.epsilons is None else self.epsilons


SYSTEMS = {
    "the least for all": System(LEAST),
    "the largest for all": System(LARGEST),
    "four times the largest for all": System(4 * LARGEST),
    "no noise": System(None),
    COMMON: System(None, public=True),
    **{f"levels, by {by}": System(LEVELS, by) for by in BY},
    **{f"the liberal alone, by {by}": System(LARGEST, by, only="liberal") for by in BY},
    "levels, half strictest, by age": System(LEVELS, "age", silent="strictest"),
    "levels, half guessed, by age": System(LEVELS, "age", silent="guessed"),
}
""""the least for all" has the same minimum guarantee as levels, "the largest for all" the same noise."""


class Releases:
    """Vectors of these systems for `NewWords`, by one release or by training.

    ``levels`` returns the level that the release assumes for each user of a system.
    """

    def __init__(
        self, models: Models, corpus: Corpus, levels: Callable[[str], Mapping[str, str]], *, trained: bool
    ) -> None:
        self.public, self._models, self._corpus, self._levels = models.public, models, corpus, levels
        self._trained = trained

    @lru_cache(maxsize=40)  # noqa: B019 (as long as the experiment lasts)
    def lacking(self, words: Words, model: Model, corpus: Corpus, run: int) -> WordVectors:  # noqa: ARG002 (there is one)
        """Return vectors if these words have no public ones, as `Models.lacking`."""
        if SYSTEMS[model.kind].public:
            return self._common(words)
        return self._train(words, model.kind, run) if self._trained else self._released(words, model.kind, run)

    def _common(self, words: Words) -> WordVectors:
        public = processed(self.public)
        gone = np.isin(np.array(public.words), np.array(words))
        ranks = np.arange(len(public))
        others = ~gone & (ranks >= FIRST) & (ranks < LAST)
        matrix = public.matrix.copy()
        matrix[gone] = matrix[others].mean(axis=0)
        return WordVectors(public.words, matrix, source=COMMON)

    def _released(self, words: Words, kind: str, run: int) -> WordVectors:
        system, plan = SYSTEMS[kind], self._release_plan(words, kind)
        total = self._total(words, kind if system.by is not None else "no noise")  # equal for all epsilons
        return released(plan, total, sigma=0.0 if system.max_epsilon is None else plan.budgets.sigma, run=run)

    def _release_plan(self, words: Words, kind: str) -> ReleasePlan:
        epsilons = SYSTEMS[kind].epsilons
        level = LEVEL if isinstance(epsilons, Mapping) else None
        return plan_of(self._models.without(words), epsilons, vocabulary=fixed_vocabulary(words), level=level)

    @lru_cache(maxsize=4)  # noqa: B019
    def _total(self, words: Words, kind: str) -> Cells:
        return total_of(self._release_plan(words, kind), self._documents(kind))

    def _train(self, words: Words, kind: str, run: int) -> WordVectors:
        plan = self.training_plan(words, kind)
        with (
            users_of(self._documents(kind), plan.trained, level=plan.levels.attribute, seed=1) as users,
            stored_users(users, plan.participation.code) as store,
        ):
            training = plan.training(store, plan.start(), NoiseKey(run))
            for step in range(STEPS):
                training.step(step)
            return WordVectors(plan.words.words, plan.finish(training.tables.matrix))

    def training_plan(self, words: Words, kind: str) -> SkipGramPlan:
        """Return the plan; except for the number of users, which is public here, it is independent of the texts."""
        epsilons = SYSTEMS[kind].epsilons
        users = len({document.user for document in self._documents(kind)})
        fields: dict[str, Any] = {"public_users": users, "pairs": PAIRS}
        if isinstance(epsilons, Mapping):
            fields["epsilon"] = personal_participation(epsilons, delta=DELTA, steps=STEPS, sampling_rate=1.0)
            fields["level"] = LEVEL
        else:
            fields |= {"epsilon": epsilons, "delta": DELTA, "steps": STEPS, "sampling_rate": 1.0}
            fields |= {"mode": "clipped"} if epsilons is None else {}
        return SkipGram(self._models.without(words), vocabulary=fixed_vocabulary(words), **fields).plan()

    def _documents(self, kind: str) -> list[Document]:
        system = SYSTEMS[kind]
        if system.by is None:
            return self._corpus.documents
        levels = self._levels(kind)
        result = add_levels(self._corpus.documents, levels)
        return [entry for entry in result if system.only in (None, levels[str(entry.user)])]


@dataclass(frozen=True, eq=False)
class Personal:
    """Utility of a system for all users and for the users of a level."""

    new_words: NewWords
    people: Sequence[Blogger]
    levels: Mapping[str, Mapping[str, str]]
    runs: Sequence[int]
    resamples: int = 1000

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """Return the numbers of `NewWords`, and the *fit* for all users and for each level.

        The fit of a user is the mean cosine of learned and true vectors of the new words, weighted by use (0 where
        nothing was learned), averaged over draws. *Fit beyond* subtracts the fit of the mean of the learned vectors,
        which cannot distinguish words. Intervals are over users and runs.
        """
        result = self.new_words.cell({"model": settings["model"], "epsilon": settings["epsilon"]}, seed)
        fits, common = self._fits(settings)
        result |= self._mean("fit", fits) | self._mean("fit beyond", fits - common)
        target = np.array([self.levels[settings["by"]][person.user] for person in self._users_of_new_words])
        for level in LEVELS:
            result |= self._mean(f"fit of {level}", fits[:, target == level])
        system = SYSTEMS[settings["model"]]
        return result | {f"epsilon of {level}": min(system.epsilon_of(level), 1e9) for level in LEVELS}

    def _fits(self, settings: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Return (runs, users) fits, and those of the mean of the learned vectors, weighted by use."""
        model = Model(settings["model"], settings["epsilon"])
        runs = self.runs if model.is_random else [1]
        public = self.new_words.public
        result = []
        for run in runs:
            by_draw = []
            for draw, words in self.new_words.words.items():
                vectors = self.new_words.vectors(model, draw, run)
                learned = _directions(np.stack([vectors[word] for word in words]))
                true = _directions(np.stack([public[word] for word in words]))
                uses = self._uses[draw]
                mean = _directions((uses.mean(axis=0) @ learned)[None])
                by_draw.append([uses @ (entry * true).sum(axis=1) for entry in (learned, mean)])
            result.append(np.mean(by_draw, axis=0))
        fits, common = np.moveaxis(np.array(result), 1, 0)
        return fits, common

    @cached_property
    def _users_of_new_words(self) -> list[Blogger]:
        """Users with a new word of each draw."""
        has_all = [
            all(any(word in counts for word in words) for words in self.new_words.words.values())
            for counts in self._counts
        ]
        return [person for person, known in zip(self.people, has_all, strict=True) if known]

    @cached_property
    def _uses(self) -> dict[int, Floats]:
        """(users, words) relative use of new words, by draw."""
        owners = {person.user for person in self._users_of_new_words}
        counted = [c for person, c in zip(self.people, self._counts, strict=True) if person.user in owners]
        result = {}
        for draw, words in self.new_words.words.items():
            table = np.array([[counts[word] for word in words] for counts in counted], dtype=np.float64)
            result[draw] = table / table.sum(axis=1, keepdims=True)
        return result

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        target = {word for words in self.new_words.words.values() for word in words}
        result: dict[str, Counter[str]] = {person.user: Counter() for person in self.people}
        for document in self.new_words.corpus.documents:
            result[str(document.user)].update(word for word in words_of(document.text or "") if word in target)
        return [result[person.user] for person in self.people]

    def _mean(self, name: str, values: Floats) -> dict[str, float]:
        if not values.size:  # of a few people none may want this
            return {name: 0.0, f"{name} low": -1.0, f"{name} high": 1.0}
        return mean_numbers(name, values, resamples=self.resamples)


def _directions(vectors: Any) -> Floats:
    """Return rows scaled to length 1; zero rows stay."""
    exact = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    directions: Floats = exact / np.where(lengths > 0, lengths, 1.0)
    return directions


@dataclass(frozen=True, eq=False)
class AsPrinted:
    """Algorithm 1-b as printed, on users with budgets."""

    trainings: Trainings
    levels: Mapping[str, Mapping[str, str]]

    def account(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """Return the charged and the true privacy loss for each level.

        ``claimed`` and ``true``: median and maximum over users, if it is known who was in which lot. ``left``: share of
        users whose budget was spent. ``bound``: maximal loss for any two corpora. The lots are independent of the
        vectors, which have one dimension here.
        """
        model = self._trained(settings, seed, dimension=1)
        users = {str(document.user) for document in self.trainings.corpus.documents}
        people = Counter(self.levels[settings["by"]][user] for user in users)
        result: dict[str, float] = {"bound": model.statement_.epsilon}
        for level, accounts in model.accounts_.items():
            for name in ("claimed", "true"):
                values = [getattr(entry, name) for entry in accounts] or [0.0]
                result |= {f"{name} {level}": float(np.median(values)), f"{name} {level} most": float(max(values))}
            result[f"left {level}"] = model.left_[level] / max(1, people[level])
            result[f"witness {level}"] = model.finding_[level].attained
        return result

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """Return MAP-Word and MAP-Char against the gold model."""
        model = self._trained(settings, seed, dimension=self.trainings.schedule.dimension)
        return map_numbers(model.vectors_, self.trainings.gold)

    def _trained(self, settings: Mapping[str, Any], seed: int, *, dimension: int) -> DPUGC:
        model = DPUGC(
            self.trainings.public,
            epsilon=LEVELS,
            level=LEVEL,
            delta=DELTA,
            noise_multiplier=settings["sigma"],
            steps=settings["steps"],
            clip=settings["clip"],
            dimension=dimension,
            trained_words=self.trainings.schedule.words,
            seed=seed,
            unsafe_as_published=True,
        )
        documents = add_levels(self.trainings.corpus.documents, self.levels[settings["by"]])
        with users_of(documents, model.words(), level=LEVEL, seed=1) as users, stored_users(users, model.code) as store:
            return model.fit_stored(store)


@dataclass(frozen=True)
class Plan:
    every: int = 1  # bloggers: one in so many
    held_out: int = 500
    draws: tuple[int, ...] = (1, 2, 3)  # of new words, for the one release
    runs: tuple[int, ...] = (1, 2, 3, 4, 5)
    trained: tuple[str, ...] = (
        *("no noise", COMMON, "the least for all", "the largest for all", "four times the largest for all"),
        *(f"levels, by {by}" for by in BY),
    )
    training_draws: tuple[int, ...] = (1,)
    training_runs: tuple[int, ...] = (1, 2)
    margins: tuple[float, ...] = (0.0, 0.1, 0.2)
    device: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)  # that sends a level
    vector: tuple[float, ...] = (1.0, 4.0, 16.0)
    schedule: Schedule = field(default_factory=lambda: Schedule(rate=0.2, pairs=200))  # of the gold model
    printed_steps: tuple[int, ...] = (20, 1000, 5000)
    sigmas: tuple[float, ...] = (PRINTED_SIGMA, 1 / 16)  # the paper's, and next to none: whether anything is learned
    printed_runs: tuple[int, ...] = (1, 2)
    resamples: int = 2000


QUICK = Plan(
    every=10,
    held_out=100,
    draws=(1,),
    runs=(1, 2),
    trained=("levels, by age",),
    training_runs=(1,),
    margins=(0.0,),
    device=(1.0,),
    vector=(4.0,),
    schedule=Schedule(words=2000, dimension=16, marks=(0, 20), rate=0.2, pairs=50),
    printed_steps=(200,),
    sigmas=(PRINTED_SIGMA,),
    printed_runs=(1,),
    resamples=100,
)


def main(arguments: Sequence[str] | None = None) -> None:
    description = "Word vectors learned from people, each with a budget of their own."
    options = parse_options(description, HERE, arguments, parts=PARTS)
    if not options.report:
        run = Run(QUICK if options.quick else Plan(), list(bloggers(options.data)), options.data, options.out)
        for part in options.parts:
            getattr(run, part)()
    write_report(options.out, readme=options.readme)


class Run(Parts):
    """The parts of the experiment."""

    experiment = "dpugc"

    def __init__(self, plan: Plan, people: Sequence[Blogger], data: Path, out: Path) -> None:
        self.plan, self.data, self.out = plan, data, out
        all_people = people[:: plan.every]
        self.volunteers, self.people = held_out(all_people, plan.held_out)
        self.cold = ColdStart(self.volunteers, self.people, all_people, plan.resamples)
        self.models = Models(load_vectors(VECTORS, limit=WORDS_LIMIT))
        self.corpus = corpus_of("people with levels", self.people)
        self.constants = {
            "vectors": self.models.public.fingerprint,
            "people": len(self.people),
            "volunteers": len(self.volunteers),
            "texts": self.corpus.digest,
            "levels": ", ".join(f"{name} {epsilon:g}" for name, epsilon in LEVELS.items()),
            "resamples": plan.resamples,
        }

    def cold_start(self) -> None:
        settings: list[dict[str, Any]] = []
        for by in BY:
            for source in (PROFILE, TEXTS):
                settings += [{"by": by, "source": source, "margin": m, "epsilon": None} for m in self.plan.margins]
            settings += [{"by": by, "source": DEVICE, "margin": 0.0, "epsilon": e} for e in self.plan.device]
            settings += [{"by": by, "source": VECTOR, "margin": 0.0, "epsilon": e} for e in self.plan.vector]
        self.cells("cold_start", self.cold.cell, settings)

    def release(self) -> None:
        part = self._part(self.plan.draws, self.plan.runs, trained=False)
        constants = {"draws": len(self.plan.draws), "runs": len(self.plan.runs)}
        self.cells("personal", part.cell, _settings(SYSTEMS), **constants)

    def training(self) -> None:
        draws, runs = self.plan.training_draws, self.plan.training_runs
        part = self._part(draws, runs, trained=True)
        constants = {"draws": len(draws), "runs": len(runs), "steps": STEPS, "pairs": PAIRS}
        self.cells("personal_training", part.cell, _settings(self.plan.trained), **constants)

    def printed(self) -> None:
        public = load_vectors(VECTORS, limit=self.plan.schedule.words)
        corpus, plan = corpus_of("blogs", self.people), self.plan
        with ExitStack() as opened:
            part = AsPrinted(Trainings(public, corpus, plan.schedule, opened), self._levels)
            for name, measure, sigmas in (
                ("personal_account", part.account, [PRINTED_SIGMA]),
                ("personal_printed", part.cell, plan.sigmas),
            ):
                settings = grid(by=["age"], sigma=sigmas, steps=plan.printed_steps, clip=[CLIP])
                self.cells(name, measure, settings, plan.printed_runs, lot=128, delta=DELTA)

    def _part(self, draws: Sequence[int], runs: Sequence[int], *, trained: bool) -> Personal:
        releases: Any = Releases(self.models, self.corpus, self._stated_levels, trained=trained)
        new_words = NewWords(releases, self.corpus, self.data / "wordsim", draws, runs, self.plan.resamples)
        return Personal(new_words, self.people, self._levels, runs, self.plan.resamples)

    @property
    def _levels(self) -> dict[str, Mapping[str, str]]:
        return {by: self.cold.assignment(by).levels for by in BY}

    @cache  # noqa: B019 (as long as the experiment lasts)
    def _stated_levels(self, kind: str) -> dict[str, str]:
        """Return the level that the release assumes for each user."""
        system = SYSTEMS[kind]
        assert system.by is not None
        levels = self.cold.assignment(system.by).levels
        levels_of = {person.user: levels[person.user] for person in self.people}
        silent = sorted(levels_of)[::2] if system.silent else []  # numbers of people, in the order of letters
        if system.silent == "guessed":
            guessed = self.cold.guessed_levels(system.by)
            return levels_of | {user: guessed[user] for user in silent}
        return levels_of | dict.fromkeys(silent, min(LEVELS, key=LEVELS.__getitem__))


def _settings(kinds: Iterable[str]) -> list[dict[str, Any]]:
    """Return each system with each assignment of levels."""
    return [
        {"model": kind, "by": by, "epsilon": SYSTEMS[kind].max_epsilon}
        for by in BY
        for kind in kinds
        if SYSTEMS[kind].by in (None, by)
    ]


if __name__ == "__main__":
    run_command(main)
