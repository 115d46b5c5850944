"""Word vectors trained on users step by step (dpUGC, part two). See README.md.

Command: ``python -m papers.dpugc.training [--data FOLDER] [--text8 FILE] [--quick] [--report]``
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from papers.blogs import Blogger, bloggers, documents_of
from papers.data_sets import imdb_users, own_texts, text8_users, wikitext_users
from papers.dpugc.age import WORDS, WORDS_AND_CHARACTERS, Age
from papers.dpugc.models import DELTA, VECTORS, WORDS_LIMIT, Corpus, Model, Models, corpus_of, held_out
from papers.dpugc.results import Rows, frequent_words_numbers, map_numbers, map_per_list
from papers.dpugc.similarity import Similarity
from papers.dpugc.trained import GOLD, KINDS, Schedule, StepwiseSource, Trainings
from papers.dpugc.training_report import (
    LOSSES,
    PRINTED,
    SKIP_GRAM,
    SKIP_GRAM_CLIPPED,
    SKIP_GRAM_LARGER,
    TIMES,
    measure_costs,
    write_report,
)
from papers.printed import dpugc_tables, print_own
from papers.reports import parse_options, run_command
from papers.sweeps import Parts, grid

from dptext import Document, SkipGram, WordVectors, load_vectors
from dptext.embeddings.participation import EVERYONE, Participation
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.privacy.randomness import NoiseKey
from dptext.text.tokens import UNKNOWN
from dptext.users.grouping import UserStore, stored_users, users_of

HERE = Path(__file__).resolve().parent
PARTS = ("delta", "steps", "age", "compare")
CORPORA = ("blogs", "WikiText-2", "IMDb")
TESTED = ("WordSim-353", "SimLex-999", "MEN", "MTurk-771")
LEARNERS = ("SVR", "linear")  # the paper's two
STEPS = 20  # of skip-gram from public vectors
_FEWEST_OF_TABLE_3 = 80  # authors of own texts, a quarter of whom are held out
Trained = tuple[str, float | None, int]  # kind, epsilon, runs


@dataclass(frozen=True)
class Plan:
    every: int = 1  # every n-th user takes part
    schedules: Mapping[str, Schedule] = field(
        default_factory=lambda: {"WikiText-2": Schedule(), "text8": Schedule(), "blogs": Schedule(rate=0.2, pairs=200)}
    )
    trained: tuple[Trained, ...] = (
        ("plain", None, 2),
        ("clipped", None, 1),
        ("private", 8.0, 2),
        ("pairs as printed", None, 1),
        ("clipped pairs", None, 1),
        ("private", 1.0, 1),
        ("clipped, farther", None, 1),
        ("private, farther", 8.0, 1),
        ("simulated: 100 times the people, farther", 8.0, 1),
        ("simulated: 10 times the people, farther", 8.0, 1),
        ("private pairs", 8.0, 1),
        ("clipped pairs, farther", None, 1),
        ("private pairs, farther", 8.0, 1),
    )
    aged: tuple[Trained, ...] = (("private", 8.0, 2), ("clipped", None, 1), ("plain", None, 1), ("private", 1.0, 1))
    held_out: int = 500
    pairs: Mapping[str, int] = field(  # of a user, for skip-gram from public vectors
        default_factory=lambda: {"blogs": 500, "WikiText-2": 100, "IMDb": 50, "text8": 500}
    )
    epsilons: tuple[float, ...] = (8.0, 32.0)
    runs: tuple[int, ...] = (1, 2, 3)
    resamples: int = 1000


_SMALL = Schedule(words=2000, dimension=16, marks=(0, 5, 20), rate=0.2, pairs=50, pair_marks=(0, 200))
QUICK = Plan(
    every=10,
    schedules={"WikiText-2": _SMALL, "blogs": _SMALL},
    trained=(("plain", None, 2), ("clipped", None, 1), ("private", 8.0, 1), ("private pairs", 8.0, 1)),
    aged=(("private", 8.0, 1), ("clipped", None, 1)),
    held_out=50,
    pairs={"WikiText-2": 20},
    epsilons=(8.0,),
    runs=(1, 2),
    resamples=100,
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(
        "Word vectors trained on people, step by step.",
        HERE,
        arguments,
        parts=PARTS,
        corpora={"nargs": "*", "choices": CORPORA, "default": CORPORA},
        text8={"type": Path, "help": "this file too: text8, text8.zip, or its beginning"},
    )
    if not options.report:
        corpora = options.corpora if options.text8 is None else [*options.corpora, "text8"]
        run = Run(QUICK if options.quick else Plan(), options.data, options.out, corpora, options.text8)
        for part in options.parts:
            getattr(run, part)()
    write_report(options.out, readme=options.readme)


def run_own(options: argparse.Namespace) -> None:
    """Train on the user's own texts, and print the tables of the paper; table 3 needs a label that is a number."""
    if not options.report:
        plan = QUICK if options.quick else Plan()
        people = own_people(options, rows=2_000 if options.quick else 100_000)
        has_number = all(math.isfinite(person.age) for person in people)
        left_out = min(plan.held_out, len(people) // 4) if has_number and len(people) >= _FEWEST_OF_TABLE_3 else 0
        plan = replace(plan, every=1, held_out=left_out, trained=(("clipped", None, 2), ("private", 8.0, 2)))
        run = Run(plan, options.data, options.out, ["blogs"], people=people)
        run.steps()
        if left_out:
            run.age()
    names = ("steps_blogs", "frequent_blogs", "spent_blogs", "training_age")
    print_own(options, dpugc_tables(options.own, *(Rows(options.out / f"{name}.jsonl") for name in names)))


def own_people(options: argparse.Namespace, *, rows: int) -> list[Blogger]:
    """Return the authors of the user's own texts, with the mean of their labels as age; NaN if it is no number."""
    posts = own_texts(options, rows=rows, classes=False)
    try:
        numbers = posts.labels.astype(np.float64)
    except ValueError:
        numbers = np.full(len(posts.texts), math.nan)
    ends = np.cumsum(np.bincount(posts.people))[:-1]
    return [
        Blogger(str(person), "", float(numbers[texts].mean()), "", "", tuple(posts.texts[row] for row in texts))
        for person, texts in enumerate(np.split(np.argsort(posts.people, kind="stable"), ends))
    ]


class SkipGramModels(Models):
    """The models of part one, and skip-gram from the same public vectors, on one corpus; ``opened`` closes its texts.

    The number of users of the corpus is public here. All users take part in each step, which gives the best ratio of
    signal to noise for few users. ``pairs`` is the number per user and step.
    """

    def __init__(self, public: WordVectors, corpus: Corpus, opened: ExitStack, *, pairs: int) -> None:
        super().__init__(public)
        self._corpus, self._opened, self._pairs = corpus, opened, pairs

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:
        if not model.kind.startswith(SKIP_GRAM):
            return super().of(model, corpus, run)
        return self._train(model, run)

    @cache  # noqa: B019 (a handful of trainings, for as long as the experiment lasts)
    def _train(self, model: Model, run: int) -> WordVectors:
        plan = self.skip_gram_plan(model)
        training = plan.training(self._store, plan.start(), NoiseKey(run))
        for step in range(STEPS):
            training.step(step)
        return WordVectors(self.public.words, plan.finish(training.tables.matrix), source=model.kind)

    @cache  # noqa: B019
    def skip_gram_plan(self, model: Model) -> SkipGramPlan:
        """Return the plan; except for the number of users it is independent of the texts."""
        plan = SkipGram(
            self.public,
            epsilon=model.epsilon or 1.0,
            mode="clipped" if model.kind == SKIP_GRAM_CLIPPED else "private",
            delta=DELTA,
            steps=STEPS,
            sampling_rate=1.0,
            public_users=self._corpus.users,
            pairs=self._pairs,
        ).plan()
        if model.kind != SKIP_GRAM_LARGER:
            return plan
        sigma, rates = plan.participation.noise_multiplier / TIMES, {EVERYONE: 1.0}
        less = Participation(noise_multiplier=sigma, steps=STEPS, delta=DELTA, rates=rates)
        return replace(plan, participation=less)

    @cached_property
    def _store(self) -> UserStore:
        trained = self.skip_gram_plan(Model(SKIP_GRAM_CLIPPED)).trained
        users = self._opened.enter_context(users_of(self._corpus.documents, trained, seed=1))
        return self._opened.enter_context(stored_users(users))


def _measure_neighbours(settings: Mapping[str, Any], seed: int, *, trainings: Trainings) -> dict[str, float]:
    """Return MAP-Word and MAP-Char against the gold model."""
    vectors = trainings.vectors(settings["model"], settings["epsilon"], settings["steps"], seed)
    return map_numbers(vectors, trainings.gold) | map_per_list(vectors, trainings.gold)


def _measure_frequent(_settings: object, _seed: int, *, trainings: Trainings) -> dict[str, float]:
    words = [word for word in trainings.public.words if word != UNKNOWN]
    return frequent_words_numbers(words, trainings.gold)


class Run(Parts):
    """The parts of the experiment."""

    experiment = "dpugc"

    def __init__(
        self,
        plan: Plan,
        data: Path,
        out: Path,
        corpora: Sequence[str],
        text8: Path | None = None,
        people: Sequence[Blogger] | None = None,
    ) -> None:
        self.plan, self.data, self.out, self.corpora, self.text8 = plan, data, out, corpora, text8
        self._people = people
        self.public = load_vectors(VECTORS, limit=WORDS_LIMIT)

    def delta(self) -> None:
        self.cells("delta", measure_costs, grid(of=list(LOSSES), steps=list(PRINTED)), [1])

    def steps(self) -> None:
        """Measure neighbours over the steps of a training, and their privacy loss."""
        for name in self._chosen(self.plan.schedules):
            with self._trainings(name) as (trainings, constants):
                settings: list[dict[str, Any]] = [{"words": "the most frequent"}]
                cell: Any = partial(_measure_frequent, trainings=trainings)
                self.cells(f"frequent_{name}", cell, settings, [1], **constants)
                cell = partial(_measure_neighbours, trainings=trainings)
                for kind, epsilon, runs in self.plan.trained:
                    settings = grid(model=[kind], epsilon=[epsilon], steps=trainings.schedule.marks_of(kind))
                    seeds = [seed for seed in range(1, runs + 1) if (kind, seed) != (GOLD, 1)]
                    self.cells(f"steps_{name}", cell, settings, seeds, **constants)
                    if KINDS[kind].mode == "private":
                        self.cells(f"spent_{name}", trainings.spent, settings, [1], **constants)

    def age(self) -> None:
        if "blogs" not in self._chosen(self.plan.schedules):
            return
        tested, _ = held_out(self._bloggers, self.plan.held_out)
        with self._trainings("blogs") as (trainings, constants):
            runs = max(runs for _, _, runs in self.plan.aged)
            source = StepwiseSource(trainings, self.public)
            age = Age(source, trainings.corpus, tested, range(1, runs + 1), self.plan.resamples)

            def cell(settings: Mapping[str, Any], seed: int) -> dict[str, float]:
                steps = settings["steps"]
                name = settings["model"] if steps is None else f"{settings['model']} after {steps}"
                return age.cell({**settings, "model": name}, seed)

            settings: list[dict[str, Any]] = [
                {"model": kind, "epsilon": None, "steps": None} for kind in (WORDS, WORDS_AND_CHARACTERS)
            ]
            settings += [
                {"model": kind, "epsilon": epsilon, "steps": steps}
                for kind, epsilon, _ in self.plan.aged
                for steps in trainings.schedule.marks[1:]
            ]
            cells = [setting | {"learner": learner} for learner in LEARNERS for setting in settings]
            constants |= {"held out": len(tested), "runs": runs, "resamples": self.plan.resamples}
            self.cells("training_age", cell, cells, [1], **constants)

    def compare(self) -> None:
        """Compare skip-gram and the one noisy release at equal epsilon."""
        plan, processed = self.plan, Model("public, processed")
        best = max(epsilon for epsilon in plan.epsilons if epsilon <= 8)
        private = [Model(kind, epsilon) for epsilon in plan.epsilons for kind in ("private", SKIP_GRAM)]
        others = [Model("no noise"), Model(SKIP_GRAM_CLIPPED), Model(SKIP_GRAM_LARGER, best)]
        others.append(Model("simulated: 8 times the people", best))
        compared = [(model, processed) for model in (*private, *others)]
        compared += [(Model(SKIP_GRAM, epsilon), Model("private", epsilon)) for epsilon in plan.epsilons]
        compared.append((Model(SKIP_GRAM_CLIPPED), Model("no noise")))
        settings = [
            model.settings | {"beside": other.kind, "beside epsilon": other.epsilon, "benchmark": benchmark}
            for model, other in compared
            for benchmark in TESTED
        ]
        for name in self._chosen(plan.pairs):
            corpus = Corpus(name, list(self._documents(name)))
            with ExitStack() as opened:
                models = SkipGramModels(self.public, corpus, opened, pairs=plan.pairs[name])
                part = Similarity(models, corpus, self.data / "wordsim", plan.runs, plan.resamples)
                constants = {"pairs": plan.pairs[name], "runs": len(plan.runs), "resamples": plan.resamples}
                constants |= self._constants(corpus)
                self.cells(f"compare_{name}", part.difference, settings, [1], **constants)

    @contextmanager
    def _trainings(self, name: str) -> Iterator[tuple[Trainings, dict[str, Any]]]:
        """Open trainings from a random start; on blogs, without the held-out bloggers."""
        if name == "blogs":
            corpus = corpus_of("blogs", held_out(self._bloggers, self.plan.held_out)[1])
        else:
            corpus = Corpus(name, list(self._documents(name)))
        schedule = self.plan.schedules[name]
        constants = self._constants(corpus) | {key: str(value) for key, value in asdict(schedule).items()}
        with ExitStack() as opened:
            yield Trainings(load_vectors(VECTORS, limit=schedule.words), corpus, schedule, opened), constants

    def _constants(self, corpus: Corpus) -> dict[str, Any]:
        counts = {"documents": len(corpus.documents), "tokens": sum(map(len, corpus.sentences))}
        return {"public": self.public.fingerprint, "texts": corpus.digest, "users": corpus.users} | counts

    def _documents(self, name: str) -> Iterator[Document]:
        if name == "blogs":
            return documents_of(self._bloggers)
        folder = self.text8 or self.data if name == "text8" else self.data
        documents = {"WikiText-2": wikitext_users, "text8": text8_users, "IMDb": imdb_users}[name](folder)
        return (document for place, document in enumerate(documents) if place % self.plan.every == 0)

    @cached_property
    def _bloggers(self) -> list[Blogger]:
        return list(self._people or bloggers(self.data))[:: self.plan.every]

    def _chosen(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self.corpora]


if __name__ == "__main__":
    run_command(main)
