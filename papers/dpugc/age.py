"""Predict the age of bloggers from the vectors of their words, instead of the paper's extraversion of 250 people.

The bloggers whose age is predicted are left out when vectors are trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger
from papers.dpugc.models import Corpus, Model, Source, corpus_of
from papers.dpugc.results import Indices, bootstrap_numbers

from dptext import WordVectors
from dptext.errors import extra
from dptext.evaluation.measures import fold_of_rows
from dptext.privacy.randomness import RandomBits
from dptext.threads import one_blas_thread

WORDS, WORDS_AND_CHARACTERS = "public words", "public words and characters"
"""Features without learned vectors; the vectors of a model are added to the second."""
LEARNERS = ("SVR", "linear", "ridge")
FOLDS, SEED = 10, 2019

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Age:
    """Age of held-out people from vectors of all others; ``runs`` are the seeds of random models."""

    models: Source
    corpus: Corpus
    people: Sequence[Blogger]
    runs: Sequence[int]
    resamples: int = 1000

    def cell(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """Return the RMSE in years over 10 folds (mean over runs), of the mean age and of public features alone.

        Settings: ``learner`` and ``model``: `WORDS`, `WORDS_AND_CHARACTERS`, or a model that is added to the latter.
        """
        learner, name = settings["learner"], settings["model"]
        if name in self._public:
            errors = self._errors(self._public[name], learner)[None]
        else:
            model = Model(name, settings["epsilon"])
            runs = self.runs if model.is_random else [1]
            errors = np.stack([self._errors(self._features_with(model, run), learner) for run in runs])
        public = self._errors(self._public[WORDS_AND_CHARACTERS], learner)
        blind = (self._ages - self._ages.mean()) ** 2  # the best constant, better than that of any fold

        def rmse(people: Indices, runs: Indices) -> float:
            return float(np.sqrt(errors[np.ix_(runs, people)].mean(axis=1)).mean())

        def change(people: Indices, runs: Indices) -> float:
            return rmse(people, runs) - _root(public, people)

        count, options = len(self.people), {"resamples": self.resamples}
        return (
            bootstrap_numbers("mean age", lambda people, _: _root(blind, people), count, 1, **options)
            | bootstrap_numbers("RMSE", rmse, count, len(errors), **options)
            | bootstrap_numbers("change", change, count, len(errors), **options)
        )

    def _errors(self, features: Floats, learner: str) -> Floats:
        """Return the squared error of each person, by a model trained on others."""
        ages, model = self._ages, model_of(learner)
        bits = RandomBits(int(RandomBits(SEED).integers(1)[0] >> np.uint64(33)))
        ranks = np.empty(ages.size, dtype=np.int64)  # folds of similar ages
        ranks[np.lexsort((bits.integers(ages.size), ages))] = np.arange(ages.size)
        fold = fold_of_rows(ranks // FOLDS, FOLDS, bits)
        errors = np.empty(ages.size)
        for place in range(FOLDS):
            train, test = fold != place, fold == place
            mean, spread = features[train].mean(axis=0), features[train].std(axis=0)
            inputs = (features - mean) / np.where(spread == 0, 1.0, spread)
            middle, scale = ages[train].mean(), ages[train].std()
            with one_blas_thread():
                fitted = model.fit(inputs[train], (ages[train] - middle) / scale)
                errors[test] = (fitted.predict(inputs[test]) * scale + middle - ages[test]) ** 2
        return errors

    def _features_with(self, model: Model, run: int) -> Floats:
        vectors = self.models.of(model, self.corpus, run)
        return np.hstack(
            [self._public[WORDS_AND_CHARACTERS], mean_vectors(vectors.words, vectors.matrix, self._counts)]
        )

    @cached_property
    def _ages(self) -> Floats:
        return np.array([person.age for person in self.people], dtype=np.float64)

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        texts = (corpus_of("one", [person]).sentences for person in self.people)
        return [Counter(word for words in sentences for word in words) for sentences in texts]

    @cached_property
    def _public(self) -> dict[str, Floats]:
        public = self.models.public
        words = mean_vectors(public.words, public.matrix, self._counts)
        characters = mean_vectors(*character_vectors(public), [_characters(counts) for counts in self._counts])
        return {WORDS: words, WORDS_AND_CHARACTERS: np.hstack([words, characters])}


def mean_vectors(names: Sequence[str], matrix: npt.ArrayLike, counts: Sequence[Counter[str]]) -> Floats:
    """Return (texts, d) mean vectors of known words; 0 for a text without any."""
    rows = {name: row for row, name in enumerate(names)}
    points = np.asarray(matrix, dtype=np.float64)
    result = np.zeros((len(counts), points.shape[1]))
    for place, text in enumerate(counts):
        known = [(rows[name], count) for name, count in text.items() if name in rows]
        if known:
            which, weights = np.array(known).T
            result[place] = weights @ points[which] / weights.sum()
    return result


def character_vectors(public: WordVectors) -> tuple[list[str], Floats]:
    """Return characters and the mean vector of the public words that contain them."""
    holders: dict[str, list[int]] = {}
    for row, word in enumerate(public.words):
        if row != public.vocabulary.unknown_row:
            for character in sorted(set(word)):
                holders.setdefault(character, []).append(row)
    return list(holders), np.stack([public.matrix[rows].mean(axis=0, dtype=np.float64) for rows in holders.values()])


def model_of(learner: str) -> Any:
    """Return the paper's learners, or ridge regression, which tolerates correlated features.

    Features and ages are standardised, so the SVR's tube of .2 is a fifth of a standard deviation.
    """
    if learner == "SVR":
        return extra("sklearn.svm", "sklearn", "an SVR").SVR(C=1.0, epsilon=0.2)
    linear = extra("sklearn.linear_model", "sklearn", "a linear model")
    if learner == "linear":
        return linear.LinearRegression()
    return linear.RidgeCV(alphas=10.0 ** np.arange(-1, 5))  # chosen on the training people


def _characters(counts: Counter[str]) -> Counter[str]:
    counter: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            counter[character] += count
    return counter


def _root(squares: Floats, people: Indices) -> float:
    return float(np.sqrt(squares[people].mean()))
