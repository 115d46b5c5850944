"""Word vectors learned from users' texts (dpUGC, part one): utility and leakage. See README.md.

Command: ``python -m papers.dpugc.experiment [--data FOLDER] [--quick] [--report]``, or ``--data FILE --user COLUMN``
for the paper's tables on own texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers.blogs import Blogger, bloggers
from papers.dpugc.age import LEARNERS, WORDS, WORDS_AND_CHARACTERS, Age
from papers.dpugc.models import INSTALL, LARGER, VECTORS, WORDS_LIMIT, Model, Models, corpus_of, has_word2vec, held_out
from papers.dpugc.probes import AS_NEW, AS_PUBLIC, Probes
from papers.dpugc.report import write_report
from papers.dpugc.results import map_numbers, map_per_list, neighbour_table
from papers.dpugc.similarity import BENCHMARKS, NewWords, Similarity
from papers.dpugc.training import run_own
from papers.reports import parse_options, run_command, table
from papers.sweeps import Parts

from dptext import load_vectors

HERE = Path(__file__).resolve().parent
TABLE_2_QUERIES = ("three", "eight", "they")  # table 2 of the paper
PARTS = ("semantic", "new_words", "probes", "age")
PUBLIC, CENTRED, PROCESSED = Model("public"), Model("public, centred"), Model("public, processed")
NO_NOISE, GOLD, GOLD_AGAIN = Model("no noise"), Model("word2vec"), Model("another word2vec")


@dataclass(frozen=True)
class Plan:
    every: int = 1  # every n-th blogger takes part
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
    new_epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    draws: tuple[int, ...] = (1, 2, 3)  # of new words
    runs: tuple[int, ...] = (1, 2, 3, 4, 5)
    few_epsilons: tuple[float, ...] = (1.0, 8.0, 32.0)  # of probes and age
    people: tuple[int, ...] = (0, 1, 10, 100, 1000)
    held_out: int = 500
    resamples: int = 2000


QUICK = Plan(
    every=10,
    epsilons=(8.0,),
    new_epsilons=(8.0,),
    draws=(1,),
    runs=(1, 2),
    few_epsilons=(8.0,),
    people=(0, 1, 100),
    held_out=100,
    resamples=200,
)


def main(arguments: Sequence[str] | None = None) -> None:
    description = "Word vectors learned from people: utility and leakage."
    options = parse_options(description, HERE, arguments, parts=PARTS, takes_file=True)
    if options.own:
        run_own(options)
        return
    if not options.report:
        run = Run(QUICK if options.quick else Plan(), list(bloggers(options.data)), options.data, options.out)
        for part in options.parts:
            getattr(run, part)()
    write_report(options.out, readme=options.readme)


class Run(Parts):
    """The parts of the experiment."""

    experiment = "dpugc"

    def __init__(self, plan: Plan, people: list[Blogger], data: Path, out: Path) -> None:
        self.plan, self.data, self.out = plan, data, out
        self.people = people[:: plan.every]
        self.models = Models(load_vectors(VECTORS, limit=WORDS_LIMIT))
        self.all_people = corpus_of("all", self.people)
        self.constants = {
            "vectors": self.models.public.fingerprint,
            "bloggers": len(self.people),
            "documents": len(self.all_people.documents),
            "texts": self.all_people.digest,
        }
        if not has_word2vec():
            print(f"The word2vec models, and comparisons with them, need gensim; {INSTALL}")

    def semantic(self) -> None:
        """Measure similarity, its difference to the public vectors, and neighbours."""
        part = Similarity(self.models, self.all_people, self.data / "wordsim", self.plan.runs, self.plan.resamples)
        best = max(epsilon for epsilon in self.plan.epsilons if epsilon <= 8)
        random = [Model("only noise", best), *(Model("private", epsilon) for epsilon in self.plan.epsilons)]
        larger = [Model(kind, best) for kind in LARGER]
        public = [PUBLIC, CENTRED, PROCESSED]
        fixed = self._available([*public, NO_NOISE, GOLD])
        self._sweep("similarity", part.scores, fixed, [*random, *larger])
        settings = [
            model.settings | {"beside": public_model.kind, "benchmark": name}
            for public_model in (PROCESSED, PUBLIC)
            for model in (*fixed, *random, *larger)
            if model not in (PUBLIC, public_model)
            for name in BENCHMARKS
        ]
        self.cells("difference", part.difference, settings, [1], resamples=self.plan.resamples)
        if has_word2vec():
            self._sweep("neighbours", self._neighbours, [*public, NO_NOISE, GOLD_AGAIN], random)
            visible = [GOLD, PUBLIC, NO_NOISE, Model("private", best), Model("private", min(self.plan.epsilons))]
            vectors = {str(model): self.models.of(model, self.all_people) for model in visible}
            lines = neighbour_table(vectors, TABLE_2_QUERIES)
            text = table(["query", *vectors], lines, text_columns=1 + len(vectors))
            (self.out / "neighbours.md").write_text(text + "\n", encoding="utf-8")

    def _neighbours(self, settings: dict[str, Any], run: int) -> dict[str, float]:
        """Return MAP-Word and MAP-Char against the gold model."""
        vectors = self.models.of(Model(settings["model"], settings["epsilon"]), self.all_people, run)
        gold = self.models.of(GOLD, self.all_people)
        return map_numbers(vectors, gold) | map_per_list(vectors, gold)

    def new_words(self) -> None:
        plan, folder = self.plan, self.data / "wordsim"
        part = NewWords(self.models, self.all_people, folder, plan.draws, plan.runs, plan.resamples)
        models = [PROCESSED, *(Model("private", epsilon) for epsilon in plan.new_epsilons), NO_NOISE]
        constants = {"resamples": plan.resamples, "runs": len(plan.runs), "draws": len(plan.draws)}
        self.cells("new_words", part.cell, [model.settings for model in models], [1], **constants)

    def age(self) -> None:
        tested, others = held_out(self.people, self.plan.held_out)
        corpus = corpus_of(f"without {len(tested)}", others)
        part = Age(self.models, corpus, tested, self.plan.runs, self.plan.resamples)
        only_noise = Model("only noise", max(epsilon for epsilon in self.plan.few_epsilons if epsilon <= 8))
        random = [only_noise, *(Model("private", epsilon) for epsilon in self.plan.few_epsilons)]
        models = [Model(WORDS), Model(WORDS_AND_CHARACTERS), PROCESSED, *random, *self._available([NO_NOISE, GOLD])]
        settings = [model.settings | {"learner": learner} for learner in LEARNERS for model in models]
        constants = {"resamples": self.plan.resamples, "held out": len(tested), "runs": len(self.plan.runs)}
        self.cells("age", part.cell, settings, [1], **constants)

    def probes(self) -> None:
        """Measure planted pairs."""
        part = Probes(self.models, self.all_people)
        random = [Model("private", epsilon) for epsilon in self.plan.few_epsilons]
        for people in self.plan.people:
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
                self.cells(name, run, [model.settings | settings for model in models], runs)


if __name__ == "__main__":
    run_command(main)
