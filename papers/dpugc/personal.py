"""A budget for each person (paper 000, dpUGC, part three: its algorithm 1-b). See README.md.

Command: ``python -m papers.dpugc.personal [--data ../shared/data] [--quick] [--report]``. An interrupted run resumes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger, bloggers
from papers.dpugc.as_printed import DPUGC
from papers.dpugc.corpus import Corpus, corpus_of, held_out
from papers.dpugc.intervals import crossed_bootstrap, numbers_of
from papers.dpugc.levels import BY, DEVICE, LEVEL, LEVELS, PROFILE, TEXTS, VECTOR, ColdStart, add_levels
from papers.dpugc.mechanism import DELTA, behaviour, fixed_vocabulary, plan_of, released, total_of
from papers.dpugc.models import Model, Models, processed
from papers.dpugc.neighbours import PAPER_QUERIES, map_score
from papers.dpugc.new_words import FIRST, LAST, NewWords
from papers.dpugc.personal_report import write_report
from papers.dpugc.published import CLIP
from papers.dpugc.steps import GOLD, GOLD_SEED, TOP
from papers.dpugc.trained import PRINTED_SIGMA, Schedule, Trainings
from papers.dpugc.trained import behaviour as behaviour_of_training
from papers.reports import parse_options
from papers.sweeps import grid, sweep

from dptext import Document, SkipGram, WordVectors, load_vectors
from dptext.embeddings.participation import personal_participation
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.evaluation.utility import words_of
from dptext.privacy.randomness import NoiseKey
from dptext.users.grouping import UserStore, stored_users, users_of

HERE = Path(__file__).resolve().parent
VECTORS, WORDS_LIMIT = "glove-6b-50d", 20_000
PARTS = ("cold_start", "release", "printed", "training")
LEAST, LARGEST = min(LEVELS.values()), max(LEVELS.values())
STEPS, PAIRS = 20, 500  # of a training from public vectors, as in part two: who is in it most is in every step

COMMON = "what they have in common"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class System:
    """A rule for the epsilons of users.

    Attributes:
        epsilons: of all_people, or by level; None: no noise.
        by: assignment of levels (`papers.dpugc.levels`); None: all users are treated equally.
        only: the level of the users who take part; None: all.
        silent: half of the users state no level, which is "guessed" (predicted from their texts on the server) or the
            "strictest"; None: all state theirs.
        public: nothing is learned; each new word gets the mean of the other public words of the same ranks.
    """

    epsilons: float | Mapping[str, float] | None
    by: str | None = None
    only: str | None = None
    silent: str | None = None
    public: bool = False

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
    """Vectors of these systems for `NewWords`, by one release or by training; a context manager that stores the texts.

    ``levels`` returns the level that the release assumes for each user of a system.
    """

    def __init__(
        self, models: Models, corpus: Corpus, levels: Callable[[str], Mapping[str, str]], *, trained: bool
    ) -> None:
        self.public, self._models, self._corpus, self._levels = models.public, models, corpus, levels
        self._trained = trained
        self._open = ExitStack()
        self._stores: dict[Any, UserStore] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def lacking(self, words: Sequence[str], model: Model, corpus: Corpus, run: int, *, of: str) -> WordVectors:
        """Return vectors if these words have no public ones, as `Models.lacking`."""
        del corpus  # there is one
        if SYSTEMS[model.kind].public:
            return self._common(words)
        kind = "trained" if self._trained else "released"
        name = f"{kind}-{model.kind}-{run}-{of}".replace(" ", "_").replace(",", "")
        dependencies = self._text_dependencies(model.kind), words, self.public.fingerprint, behaviour(), self._trained
        if self._trained:
            dependencies = (*dependencies, behaviour_of_training(), STEPS, PAIRS)
        stored = self._models.stored(name, dependencies, lambda: self._compute(words, model, run, of))
        return WordVectors(stored["words"].tolist(), stored["matrix"], source=name)

    def _common(self, words: Sequence[str]) -> WordVectors:
        public = processed(self.public)
        gone = np.isin(np.array(public.words), np.array(words))
        ranks = np.arange(len(public))
        others = ~gone & (ranks >= FIRST) & (ranks < LAST)
        matrix = public.matrix.copy()
        matrix[gone] = matrix[others].mean(axis=0)
        return WordVectors(public.words, matrix, source=COMMON)

    def _compute(self, words: Sequence[str], model: Model, run: int, of: str) -> dict[str, Any]:
        output = self._train(words, model.kind, run) if self._trained else self._released(words, model.kind, run, of)
        return {"words": np.array(output.words), "matrix": output.matrix}

    def _released(self, words: Sequence[str], kind: str, run: int, of: str) -> WordVectors:
        system = SYSTEMS[kind]
        vocabulary = fixed_vocabulary(words)
        level = LEVEL if isinstance(system.epsilons, Mapping) else None
        plan = plan_of(self._models.without(words), system.epsilons, vocabulary=vocabulary, level=level)
        text = kind if system.by is not None else "all alike"
        dependencies = self._text_dependencies(kind), plan.words.words, plan.features.fingerprint, behaviour()
        name = f"personal-total-{text}-{of}".replace(" ", "_").replace(",", "")
        total = self._models.stored(name, dependencies, lambda: {"cells": total_of(plan, self._documents(kind))})[
            "cells"
        ]
        sigma = 0.0 if system.max_epsilon is None else plan.budgets.sigma
        return released(plan, total, sigma=sigma, run=run)

    def _train(self, words: Sequence[str], kind: str, run: int) -> WordVectors:
        plan = self.training_plan(words, kind)
        training = plan.training(self._store(plan, kind), plan.start(), NoiseKey(run))
        for step in range(STEPS):
            training.step(step)
        return WordVectors(plan.words.words, plan.finish(training.tables.matrix))

    def training_plan(self, words: Sequence[str], kind: str) -> SkipGramPlan:
        """Return the plan; except for the number of users, which is public here, it is independent of the texts."""
        epsilons = SYSTEMS[kind].epsilons
        fields: dict[str, Any] = {
            "public_users": len({document.user for document in self._documents(kind)}),
            "pairs": PAIRS,
        }
        if isinstance(epsilons, Mapping):
            fields["epsilon"] = personal_participation(epsilons, delta=DELTA, steps=STEPS, sampling_rate=1.0)
            fields["level"] = LEVEL
        else:
            fields |= {"epsilon": epsilons, "delta": DELTA, "steps": STEPS, "sampling_rate": 1.0}
            fields |= {"mode": "clipped"} if epsilons is None else {}
        return SkipGram(self._models.without(words), vocabulary=fixed_vocabulary(words), **fields).plan()

    def _store(self, plan: SkipGramPlan, kind: str) -> UserStore:
        key = plan.trained.words, self._text_dependencies(kind), tuple(plan.participation.rates)
        if key not in self._stores:
            users = self._open.enter_context(
                users_of(self._documents(kind), plan.trained, level=plan.levels.attribute, seed=1)
            )
            self._stores[key] = self._open.enter_context(stored_users(users, plan.participation.code))
        return self._stores[key]

    def _text_dependencies(self, kind: str) -> tuple[Any, ...]:
        """Return values that determine the texts of a system."""
        system = SYSTEMS[kind]
        levels = None if system.by is None else tuple(sorted(self._levels(kind).items()))
        return self._corpus.digest, system.only, levels

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

    releases: Releases
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
        result |= self._estimate("fit", fits) | self._estimate("fit beyond", fits - common)
        target = np.array([self.levels[settings["by"]][person.user] for person in self._users_of_new_words])
        for level in LEVELS:
            result |= self._estimate(f"fit of {level}", fits[:, target == level])
        system = SYSTEMS[settings["model"]]
        return result | {f"epsilon of {level}": min(system.epsilon_of(level), 1e9) for level in LEVELS}

    def _fits(self, settings: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Return (runs, users) fits, and those of the mean of the learned vectors, weighted by use."""
        model = Model(settings["model"], settings["epsilon"])
        runs = self.runs if model.is_random else [1]
        public = processed(self.releases.public)
        result = []
        for run in runs:
            by_draw = []
            for draw, words in self.new_words.words.items():
                vectors = self.releases.lacking(words, model, self.new_words.corpus, run, of=str(draw))
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

    def _estimate(self, name: str, values: Floats) -> dict[str, float]:
        if not values.size:  # of a few people none may want this
            return {name: 0.0, f"{name} low": -1.0, f"{name} high": 1.0}
        result = crossed_bootstrap(
            lambda people, runs: float(values[np.ix_(runs, people)].mean()),
            values.shape[1],
            len(values),
            of="people",
            resamples=self.resamples,
        )
        return numbers_of(name, result)


def _directions(vectors: Any) -> Floats:
    """Return rows scaled to length 1; zero rows stay."""
    exact = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    directions: Floats = exact / np.where(lengths > 0, lengths, 1.0)
    return directions


@dataclass(frozen=True, eq=False)
class AsPrinted:
    """Algorithm 1-b as printed, on users with budgets; ``open`` closes the stored texts."""

    trainings: Trainings
    levels: Mapping[str, Mapping[str, str]]
    open: ExitStack
    stores: dict[str, UserStore] = field(default_factory=dict)

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
        gold = self.trainings.vectors(GOLD, None, self.trainings.schedule.marks_of(GOLD)[-1], GOLD_SEED)
        result: dict[str, float] = {}
        for measure in ("MAP-Word", "MAP-Char"):
            score = map_score(model.vectors_, gold, measure=measure, top=TOP, seed=1)
            result |= {measure: score.score.value, f"{measure} random": score.baseline}
            result |= {f"{measure} {query}": score.by_query[query] for query in PAPER_QUERIES}
        return result

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
        return model.fit_stored(self._stored(model, settings["by"]))

    def _stored(self, model: DPUGC, by: str) -> UserStore:
        if by not in self.stores:
            documents = add_levels(self.trainings.corpus.documents, self.levels[by])
            users = self.open.enter_context(users_of(documents, model.words(), level=LEVEL, seed=1))
            self.stores[by] = self.open.enter_context(stored_users(users, model.code))
        return self.stores[by]


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
    options = _options(arguments)
    if not options.report:
        run = Run(QUICK if options.quick else Plan(), list(bloggers(options.data)), options.data, options.out)
        for part in options.parts:
            getattr(run, part)()
    write_report(options.out, readme=options.readme)
    print(options.out / "personal.md")


class Run:
    """The parts of the experiment."""

    def __init__(self, plan: Plan, people: Sequence[Blogger], data: Path, out: Path) -> None:
        self.plan, self.data, self.out = plan, data, out
        all_people = people[:: plan.every]
        self.volunteers, self.people = held_out(all_people, plan.held_out)
        self.cold = ColdStart(self.volunteers, self.people, all_people, plan.resamples)
        self.models = Models(load_vectors(VECTORS, limit=WORDS_LIMIT), out / "work")
        self.corpus = corpus_of("people with levels", self.people)
        self.constants = {
            "vectors": self.models.public.fingerprint,
            "people": len(self.people),
            "volunteers": len(self.volunteers),
            "texts": self.corpus.digest,
            "levels": ", ".join(f"{name} {epsilon:g}" for name, epsilon in LEVELS.items()),
            "resamples": plan.resamples,
        }
        out.mkdir(parents=True, exist_ok=True)

    def cold_start(self) -> None:
        """Predict levels."""
        settings: list[dict[str, Any]] = []
        for by in BY:
            for source in (PROFILE, TEXTS):
                settings += [{"by": by, "source": source, "margin": m, "epsilon": None} for m in self.plan.margins]
            settings += [{"by": by, "source": DEVICE, "margin": 0.0, "epsilon": e} for e in self.plan.device]
            settings += [{"by": by, "source": VECTOR, "margin": 0.0, "epsilon": e} for e in self.plan.vector]
        self._cells("cold_start", self.cold.cell, settings)

    def release(self) -> None:
        """Measure one noisy release."""
        settings = _settings(SYSTEMS)
        for part in self._parts(self.plan.draws, self.plan.runs, trained=False):
            constants = {"mechanism": behaviour(), "draws": len(self.plan.draws), "runs": len(self.plan.runs)}
            self._cells("personal", part.cell, settings, **constants)

    def training(self) -> None:
        """Measure training."""
        settings = _settings(self.plan.trained)
        for part in self._parts(self.plan.training_draws, self.plan.training_runs, trained=True):
            constants = {"mechanism": behaviour_of_training(), "draws": len(self.plan.training_draws)}
            constants |= {"runs": len(self.plan.training_runs), "steps": STEPS, "pairs": PAIRS}
            self._cells("personal_training", part.cell, settings, **constants)

    def printed(self) -> None:
        """Measure the paper's own algorithm."""
        public = load_vectors(VECTORS, limit=self.plan.schedule.words)
        corpus = corpus_of("blogs", self.people)
        steps, constants = list(self.plan.printed_steps), {"lot": 128, "delta": DELTA}
        with Trainings(public, corpus, self.plan.schedule, self.out / "work") as trainings, ExitStack() as opened:
            part = AsPrinted(trainings, {by: self.cold.assignment(by).levels for by in BY}, opened)
            settings = grid(by=["age"], sigma=[PRINTED_SIGMA], steps=steps, clip=[CLIP])
            self._cells("personal_account", part.account, settings, self.plan.printed_runs, **constants)
            settings = grid(by=["age"], sigma=list(self.plan.sigmas), steps=steps, clip=[CLIP])
            constants |= {"mechanism": behaviour_of_training()}
            self._cells("personal_printed", part.cell, settings, self.plan.printed_runs, **constants)

    def _parts(self, draws: Sequence[int], runs: Sequence[int], *, trained: bool) -> Iterator[Personal]:
        target = {by: self.cold.assignment(by).levels for by in BY}
        with Releases(self.models, self.corpus, self._stated_levels, trained=trained) as releases:
            new_words: Any = NewWords(
                releases,  # type: ignore[arg-type]  # it has what NewWords asks for
                self.corpus,
                self.data / "wordsim",
                draws=draws,
                runs=runs,
                resamples=self.plan.resamples,
            )
            yield Personal(releases, new_words, self.people, target, runs, self.plan.resamples)

    @cache  # noqa: B019 (as long as the experiment lasts)
    def _stated_levels(self, kind: str) -> dict[str, str]:
        """Return the level that the release assumes for each user."""
        system = SYSTEMS[kind]
        assert system.by is not None
        levels = self.cold.assignment(system.by).levels
        stated = {person.user: levels[person.user] for person in self.people}
        silent = sorted(stated)[::2] if system.silent else []  # numbers of people, in the order of letters
        if system.silent == "guessed":
            guessed = self.cold.guessed_levels(system.by)
            return stated | {user: guessed[user] for user in silent}
        return stated | dict.fromkeys(silent, min(LEVELS, key=LEVELS.__getitem__))

    def _cells(
        self,
        name: str,
        run: Callable[..., dict[str, float]],
        settings: Sequence[dict[str, Any]],
        seeds: Sequence[int] = (1,),
        **constants: Any,
    ) -> None:
        sweep(
            run,
            settings,
            seeds,
            path=self.out / f"{name}.jsonl",
            name=f"dpugc {name}",
            constants=self.constants | constants,
        )


def _settings(kinds: Iterable[str]) -> list[dict[str, Any]]:
    """Return each system with each assignment of levels."""
    return [
        {"model": kind, "by": by, "epsilon": SYSTEMS[kind].max_epsilon}
        for by in BY
        for kind in kinds
        if SYSTEMS[kind].by in (None, by)
    ]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Word vectors learned from people, each with a budget of their own.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the blogs and wordsim/")
    parser.add_argument("--quick", action="store_true", help="one blogger in ten, two runs: does it run?")
    parser.add_argument("--report", action="store_true", help="tables from the rows that are there")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    return parse_options(parser, arguments, HERE)


if __name__ == "__main__":
    main()
