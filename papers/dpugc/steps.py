"""Vectors by the number of training steps: neighbours of the gold model, and the age of people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from papers.dpugc.age import WORDS, WORDS_AND_CHARACTERS, Age
from papers.dpugc.corpus import Corpus
from papers.dpugc.models import Model
from papers.dpugc.neighbours import PAPER_QUERIES, character_precision, map_score, neighbours, word_precision
from papers.dpugc.trained import Trainings

from dptext import WordVectors
from dptext.text.tokens import UNKNOWN

GOLD, GOLD_SEED = "plain", 1
"""The gold model: word2vec's own training after its last step; another seed shows how far two gold models agree."""
TOP = 100


@dataclass(frozen=True, eq=False)
class Steps:
    """Neighbours and privacy cost by the number of steps."""

    trainings: Trainings

    def neighbours(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """Return MAP-Word and MAP-Char against the gold model, with the precision of each query."""
        vectors = self.trainings.vectors(settings["model"], settings["epsilon"], settings["steps"], seed)
        gold = self.trainings.vectors(GOLD, None, self.trainings.schedule.marks_of(GOLD)[-1], GOLD_SEED)
        result: dict[str, float] = {}
        for measure in ("MAP-Word", "MAP-Char"):
            score = map_score(vectors, gold, measure=measure, top=TOP, seed=1)
            result |= {measure: score.score.value, f"{measure} random": score.baseline}
            result |= {f"{measure} {query}": score.by_query[query] for query in PAPER_QUERIES}
        relevant = map_score(vectors, gold, per="relevant", top=TOP, seed=1)
        return result | {"MAP-Word per 100": relevant.score.value}

    def frequent(self, _settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """Return the scores of the most frequent words as neighbours of every query, a baseline."""
        gold = self.trainings.vectors(GOLD, None, self.trainings.schedule.marks_of(GOLD)[-1], GOLD_SEED)
        result: dict[str, float] = {}
        for near in neighbours(gold, PAPER_QUERIES, top=TOP):
            words = [word for word in self.trainings.public.words if word not in (near.query, UNKNOWN)][:TOP]
            result[f"MAP-Word {near.query}"] = word_precision(words, near.words)
            result[f"MAP-Char {near.query}"] = character_precision(words, near.words)
        return result

    def spent(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        return self.trainings.spent(settings["model"], settings["epsilon"], settings["steps"])


class Stepwise:
    """Vectors after a number of steps, by the name of a model, for `Age`; ``public`` are the other features."""

    def __init__(self, trainings: Trainings, public: WordVectors) -> None:
        self._trainings, self.public = trainings, public
        self._named: dict[str, tuple[str, int]] = {}

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:  # noqa: ARG002 (it has one corpus)
        kind, steps = self._named[model.kind]
        return self._trainings.vectors(kind, model.epsilon, steps, run)

    def measuring(self, age: Age) -> Callable[[Mapping[str, Any], int], dict[str, float]]:
        """Return a cell of `Age` with the number of steps as a setting."""

        def cell(settings: Mapping[str, Any], seed: int) -> dict[str, float]:
            name = settings["model"]
            if name not in (WORDS, WORDS_AND_CHARACTERS):
                name = f"{settings['model']} after {settings['steps']} steps"
                self._named[name] = settings["model"], settings["steps"]
            return age.cell(dict(settings) | {"model": name}, seed)

        return cell
