"""Word vectors trained on users step by step (paper 000, dpUGC, part two). See README.md.

Command: ``python -m papers.dpugc.training [--data ../shared/data] [--quick] [--report]``. An interrupted run resumes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from papers.blogs import Blogger, bloggers, documents_of
from papers.dpugc.age import WORDS, WORDS_AND_CHARACTERS, Age
from papers.dpugc.compare import SKIP_GRAM, SKIP_GRAM_CLIPPED, SKIP_GRAM_LARGER, Compare, Compared
from papers.dpugc.corpus import Corpus, corpus_of, held_out
from papers.dpugc.models import Model
from papers.dpugc.published import LOSSES, PRINTED, measure_costs
from papers.dpugc.steps import GOLD, GOLD_SEED, Steps, Stepwise
from papers.dpugc.trained import KINDS, Schedule, Trainings, behaviour
from papers.dpugc.training_report import write_report
from papers.made_up_users import imdb_users, text8_users, wikitext_users
from papers.reports import parse_options
from papers.sweeps import grid, sweep

from dptext import Document, load_vectors

HERE = Path(__file__).resolve().parent
VECTORS, WORDS_LIMIT = "glove-6b-50d", 20_000
PARTS = ("delta", "steps", "age", "compare")
TESTED = ("WordSim-353", "SimLex-999", "MEN", "MTurk-771")
LEARNERS = ("SVR", "linear")  # the paper's two
PROCESSED = "public, processed"
Trained = tuple[str, float | None, int]  # kind, epsilon, runs


@dataclass(frozen=True)
class Plan:
    every: int = 1  # users: one in so many
    schedules: Mapping[str, Schedule] = field(
        default_factory=lambda: {
            "WikiText-2": Schedule(),
            "text8": Schedule(),
            "blogs": Schedule(rate=0.2, pairs=200),
        }
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
    options = _options(arguments)
    if not options.report:
        corpora = options.corpora if options.text8 is None else [*options.corpora, "text8"]
        run = Run(QUICK if options.quick else Plan(), options.data, options.out, corpora, options.text8)
        for part in options.parts:
            getattr(run, part)()
    write_report(options.out, readme=options.readme)
    print(f"{options.out / 'training.md'}, {options.out / 'training.png'}")


class Run:
    """The parts of the experiment."""

    def __init__(self, plan: Plan, data: Path, out: Path, corpora: Sequence[str], text8: Path | None = None) -> None:
        self.plan, self.data, self.out, self.corpora, self.text8 = plan, data, out, corpora, text8
        self.public = load_vectors(VECTORS, limit=WORDS_LIMIT)
        self._people: list[Blogger] = []
        out.mkdir(parents=True, exist_ok=True)

    def delta(self) -> None:
        """Compute the paper's delta column."""
        self._cells("delta", measure_costs, grid(of=list(LOSSES), steps=list(PRINTED)), [1])

    def steps(self) -> None:
        """Measure neighbours over the steps of a training, and their privacy cost."""
        for name in self._of(self.plan.schedules):
            with self._trainings(name) as (trainings, constants):
                part = Steps(trainings)
                self._cells(f"frequent_{name}", part.frequent, [{"words": "the most frequent"}], [1], **constants)
                for kind, epsilon, runs in self.plan.trained:
                    marks = trainings.schedule.marks_of(kind)
                    settings = grid(model=[kind], epsilon=[epsilon], steps=marks)
                    seeds = [seed for seed in range(1, runs + 1) if (kind, seed) != (GOLD, GOLD_SEED)]
                    self._cells(f"steps_{name}", part.neighbours, settings, seeds, **constants)
                    if KINDS[kind].mode == "private":
                        self._cells(f"spent_{name}", part.spent, settings, [1], **constants)

    def age(self) -> None:
        """Measure the layout of the paper's table 3, for the age of held-out bloggers."""
        if "blogs" not in self._of(self.plan.schedules):
            return
        tested, _ = held_out(self._bloggers, self.plan.held_out)
        with self._trainings("blogs") as (trainings, constants):
            runs = max(runs for _, _, runs in self.plan.aged)
            stepwise = Stepwise(trainings, self.public)
            age = Age(stepwise, trainings.corpus, tested, range(1, runs + 1), self.plan.resamples)
            settings: list[dict[str, Any]] = [
                {"model": kind, "epsilon": epsilon, "steps": steps}
                for kind, epsilon, _ in self.plan.aged
                for steps in trainings.schedule.marks[1:]
            ]
            public = [{"model": kind, "epsilon": None, "steps": None} for kind in (WORDS, WORDS_AND_CHARACTERS)]
            cells = [setting | {"learner": learner} for learner in LEARNERS for setting in (*public, *settings)]
            constants |= {"held out": len(tested), "runs": runs, "resamples": self.plan.resamples}
            self._cells("training_age", stepwise.measuring(age), cells, [1], **constants)

    def compare(self) -> None:
        """Compare skip-gram and the one noisy release at equal epsilon."""
        plan = self.plan
        for name in self._of(plan.pairs):
            corpus = Corpus(name, list(self._documents(name)))
            with Compared(self.public, self.out / "work", corpus, pairs=plan.pairs[name]) as models:
                part = Compare(models, corpus, self.data / "wordsim", plan.runs, plan.resamples)
                best = max(epsilon for epsilon in plan.epsilons if epsilon <= 8)
                private = [Model(kind, epsilon) for epsilon in plan.epsilons for kind in ("private", SKIP_GRAM)]
                others = [Model("no noise"), Model(SKIP_GRAM_CLIPPED), Model(SKIP_GRAM_LARGER, best)]
                others.append(Model("simulated: 8 times the people", best))
                compared = [(entry, Model(PROCESSED)) for entry in (*private, *others)]
                compared += [(Model(SKIP_GRAM, epsilon), Model("private", epsilon)) for epsilon in plan.epsilons]
                compared.append((Model(SKIP_GRAM_CLIPPED), Model("no noise")))
                settings = [
                    model.settings | {"beside": other.kind, "beside epsilon": other.epsilon, "benchmark": benchmark}
                    for model, other in compared
                    for benchmark in TESTED
                ]
                constants = self._constants(corpus) | {"pairs": plan.pairs[name], "runs": len(plan.runs)}
                self._cells(f"compare_{name}", part.cell, settings, [1], **constants, resamples=plan.resamples)

    @contextmanager
    def _trainings(self, name: str) -> Iterator[tuple[Trainings, dict[str, Any]]]:
        """Open trainings from a random start; on blogs, without the held-out bloggers."""
        if name == "blogs":
            corpus = corpus_of("blogs", held_out(self._bloggers, self.plan.held_out)[1])
        else:
            corpus = Corpus(name, list(self._documents(name)))
        schedule = self.plan.schedules[name]
        public = load_vectors(VECTORS, limit=schedule.words)
        constants = self._constants(corpus) | {key: str(value) for key, value in asdict(schedule).items()}
        with Trainings(public, corpus, schedule, self.out / "work") as trainings:
            yield trainings, constants

    def _constants(self, corpus: Corpus) -> dict[str, Any]:
        return {
            "public": self.public.fingerprint,
            "texts": corpus.digest,
            "users": len({document.user for document in corpus.documents}),
            "mechanism": behaviour(),
        }

    def _documents(self, name: str) -> Iterator[Document]:
        if name == "blogs":
            return documents_of(self._bloggers)
        where = self.text8 or self.data if name == "text8" else self.data
        result = {"WikiText-2": wikitext_users, "text8": text8_users, "IMDb": imdb_users}[name](where)
        return (entry for place, entry in enumerate(result) if place % self.plan.every == 0)

    @property
    def _bloggers(self) -> list[Blogger]:
        self._people = self._people or list(bloggers(self.data))[:: self.plan.every]
        return self._people

    def _of(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self.corpora]

    def _cells(
        self,
        name: str,
        run: Callable[..., dict[str, float]],
        settings: Sequence[dict[str, Any]],
        seeds: Iterable[int],
        **constants: Any,
    ) -> None:
        sweep(
            run,
            settings,
            seeds,
            path=self.out / f"{name}.jsonl",
            name=f"dpugc {name}",
            constants=constants,
        )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Word vectors trained on people, step by step.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the texts and wordsim/")
    parser.add_argument("--quick", action="store_true", help="one user in ten, few steps: does it run?")
    parser.add_argument("--report", action="store_true", help="tables and figure from the rows that are there")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    corpora = ("blogs", "WikiText-2", "IMDb", "text8")
    parser.add_argument("--corpora", nargs="*", choices=corpora, default=corpora[:3], help="which texts")
    parser.add_argument("--text8", type=Path, help="this file too: text8, text8.zip, or its beginning")
    return parse_options(parser, arguments, HERE)


if __name__ == "__main__":
    main()
