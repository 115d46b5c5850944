"""Word vectors learned from users' texts (paper 000, dpUGC): utility and leakage. See README.md.

Command: ``python -m papers.dpugc.experiment [--data ../shared/data] [--quick] [--report]``. An interrupted run resumes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers.blogs import Blogger, bloggers
from papers.dpugc.age import LEARNERS, WORDS, WORDS_AND_CHARACTERS, Age
from papers.dpugc.corpus import corpus_of, held_out
from papers.dpugc.mechanism import behaviour
from papers.dpugc.models import INSTALL, LARGER, Model, Models, has_word2vec
from papers.dpugc.neighbours import neighbour_table
from papers.dpugc.new_words import NewWords
from papers.dpugc.probes import AS_NEW, AS_PUBLIC, Probes
from papers.dpugc.report import write_report
from papers.dpugc.semantic import GOLD, LISTS, Semantic
from papers.reports import parse_options
from papers.sweeps import sweep

from dptext import load_vectors

HERE = Path(__file__).resolve().parent
VECTORS, WORDS_LIMIT = "glove-6b-50d", 20_000
TABLE_2_QUERIES = ("three", "eight", "they")  # table 2 of the paper
PARTS = ("semantic", "new_words", "probes", "age")
PUBLIC, CENTRED, PROCESSED = Model("public"), Model("public, centred"), Model("public, processed")
NO_NOISE, GOLD_AGAIN = Model("no noise"), Model("another word2vec")


@dataclass(frozen=True)
class Plan:
    every: int = 1  # bloggers: one in so many
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
    new_epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    draws: tuple[int, ...] = (1, 2, 3)  # of new words
    runs: tuple[int, ...] = (1, 2, 3, 4, 5)
    probe_epsilons: tuple[float, ...] = (1.0, 8.0, 32.0)
    people: tuple[int, ...] = (0, 1, 10, 100, 1000)
    age_epsilons: tuple[float, ...] = (1.0, 8.0, 32.0)
    held_out: int = 500
    resamples: int = 2000


QUICK = Plan(
    every=10,
    epsilons=(8.0,),
    new_epsilons=(8.0,),
    draws=(1,),
    runs=(1, 2),
    probe_epsilons=(8.0,),
    people=(0, 1, 100),
    age_epsilons=(8.0,),
    held_out=100,
    resamples=200,
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if not options.report:
        people = list(bloggers(options.data))
        run = Run(QUICK if options.quick else Plan(), people, options.data, options.out)
        for part in options.parts:
            getattr(run, part)()
    write_report(options.out, readme=options.readme)
    print(f"{options.out / 'tables.md'}, {options.out / 'figure.png'}")


class Run:
    """The parts of the experiment."""

    def __init__(self, plan: Plan, people: list[Blogger], data: Path, out: Path) -> None:
        self.plan, self.data, self.out = plan, data, out
        self.people = people[:: plan.every]
        self.models = Models(load_vectors(VECTORS, limit=WORDS_LIMIT), out / "work")
        self.all_people = corpus_of("all", self.people)
        self.constants = {
            "vectors": self.models.public.fingerprint,
            "bloggers": len(self.people),
            "documents": len(self.all_people.documents),
            "texts": self.all_people.digest,
            "mechanism": behaviour(),
        }
        if not has_word2vec():
            print(f"without word2vec: its models, and all that is compared with them, need gensim; {INSTALL}")
        out.mkdir(parents=True, exist_ok=True)

    def semantic(self) -> None:
        """Measure similarity, its difference to the public vectors, and neighbours."""
        part = Semantic(self.models, self.all_people, self.data / "wordsim", self.plan.runs, self.plan.resamples)
        best = max(e for e in self.plan.epsilons if e <= 8)
        random = [Model("only noise", best), *(Model("private", epsilon) for epsilon in self.plan.epsilons)]
        random += [Model(kind, best) for kind in LARGER]
        public = [PUBLIC, CENTRED, PROCESSED]
        fixed = self._available([*public, NO_NOISE, GOLD])
        self._sweep("similarity", part.similarity, fixed, random)
        settings = [
            model.settings | {"beside": public_model.kind, "benchmark": name}
            for public_model in (PROCESSED, PUBLIC)
            for model in (*fixed, *random)
            if model not in (PUBLIC, public_model)
            for name in LISTS
        ]
        self._cells("difference", part.difference, settings, [1], resamples=self.plan.resamples)
        if has_word2vec():
            random = [entry for entry in random if entry.kind not in LARGER]
            self._sweep("neighbours", part.neighbours, [*public, NO_NOISE, GOLD_AGAIN], random)
            visible = [GOLD, PUBLIC, NO_NOISE, Model("private", best), Model("private", min(self.plan.epsilons))]
            vectors = {str(entry): self.models.of(entry, self.all_people) for entry in dict.fromkeys(visible)}
            (self.out / "neighbours.md").write_text(neighbour_table(vectors, TABLE_2_QUERIES) + "\n", encoding="utf-8")

    def new_words(self) -> None:
        """Measure words that lose their public vectors."""
        part = NewWords(
            self.models,
            self.all_people,
            self.data / "wordsim",
            draws=self.plan.draws,
            runs=self.plan.runs,
            resamples=self.plan.resamples,
        )
        models = [PROCESSED, *(Model("private", epsilon) for epsilon in self.plan.new_epsilons), NO_NOISE]
        constants = {"resamples": self.plan.resamples, "runs": len(self.plan.runs), "draws": len(self.plan.draws)}
        self._cells("new_words", part.cell, [model.settings for model in models], [1], **constants)

    def age(self) -> None:
        """Predict the age of held-out people."""
        tested, others = held_out(self.people, self.plan.held_out)
        corpus = corpus_of(f"without {len(tested)}", others)
        part = Age(self.models, corpus, tested, self.plan.runs, self.plan.resamples)
        only_noise = Model("only noise", max(e for e in self.plan.age_epsilons if e <= 8))
        random = [only_noise, *(Model("private", epsilon) for epsilon in self.plan.age_epsilons)]
        models = [Model(WORDS), Model(WORDS_AND_CHARACTERS), PROCESSED, *random, *self._available([NO_NOISE, GOLD])]
        settings = [model.settings | {"learner": learner} for learner in LEARNERS for model in models]
        constants = {"resamples": self.plan.resamples, "held out": len(tested), "runs": len(self.plan.runs)}
        self._cells("age", part.cell, settings, [1], **constants)

    def probes(self) -> None:
        """Measure planted pairs."""
        part = Probes(self.models, self.all_people)
        random = [Model("private", epsilon) for epsilon in self.plan.probe_epsilons]
        for people in self.plan.people:  # a corpus after the other
            for secrets in (AS_PUBLIC, AS_NEW):
                self._sweep("probes", part.cell, [NO_NOISE], random, people=people, secrets=secrets)
        for people in self.plan.people:
            self._sweep("probes", part.cell, self._available([GOLD]), [], people=people, secrets=AS_PUBLIC)

    def _available(self, models: Sequence[Model]) -> list[Model]:
        return [model for model in models if "word2vec" not in model.kind or has_word2vec()]

    def _sweep(self, name: str, run: Any, fixed: Sequence[Model], random: Sequence[Model], **settings: Any) -> None:
        """Measure models without randomness once and random ones for each run."""
        for models, runs in ((fixed, (1,)), (random, self.plan.runs)):
            if models:
                self._cells(name, run, [model.settings | settings for model in models], runs)

    def _cells(
        self,
        name: str,
        run: Callable[..., dict[str, float]],
        settings: Sequence[dict[str, Any]],
        seeds: Sequence[int],
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


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Word vectors learned from people: what for, and at whose cost.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the blogs and wordsim/")
    parser.add_argument("--quick", action="store_true", help="one blogger in ten, two runs: does it run?")
    parser.add_argument("--report", action="store_true", help="tables and figure from the rows that are there")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    return parse_options(parser, arguments, HERE)


if __name__ == "__main__":
    main()
