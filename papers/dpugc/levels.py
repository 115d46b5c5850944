"""Made-up privacy levels of users, and their prediction for users who state none.

The shares of the three levels are those of Jorgensen, Yu and Cormode 2015 ("Conservative or liberal? Personalized
differential privacy"). Two made-up assignments decide who has which level: **by age** (older people are more concerned,
which texts reveal), and **by chance** (which nothing reveals).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger, documents_of
from papers.dpugc.models import VECTORS
from papers.dpugc.results import bootstrap_numbers

from dptext import CallableEncoder, Document, PrivateEncoder
from dptext.attacks.base import are_texts
from dptext.errors import extra
from dptext.noise.discrete import RandomizedResponse
from dptext.representations.device import encoder_of

LEVELS = {"conservative": 1.0, "moderate": 4.0, "liberal": 16.0}
SHARES = {"conservative": 0.54, "moderate": 0.37, "liberal": 0.09}
LEVEL = "level"
BY = ("age", "chance")
CONCERNS = {"liberal": 0.09, "moderate": 0.46, "conservative": 1.0}
"""The largest concern of each level, for concerns that are uniform between 0 and 1."""
PROFILE, TEXTS, DEVICE, VECTOR = "public profile", "texts", "device", "vector"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Assignment:
    """The concern (0 to 1) and the level of each user."""

    concerns: Mapping[str, float]
    levels: Mapping[str, str]


def assign_levels(people: Sequence[Blogger], by: str) -> Assignment:
    """Assign levels; the concern of a user is the share of people who are younger, or come first at random."""
    if by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)}")

    def place(person: Blogger) -> tuple[int, bytes]:
        return (person.age if by == "age" else 0), hashlib.sha256(f"wish {person.user}".encode()).digest()

    order = sorted(people, key=place)
    concerns = {person.user: (rank + 0.5) / len(order) for rank, person in enumerate(order)}
    return Assignment(concerns, {user: level_of(concern) for user, concern in concerns.items()})


def add_levels(documents: Sequence[Document], levels: Mapping[str, str]) -> list[Document]:
    """Return the documents with the level of their user."""
    return [replace(document, attributes={LEVEL: levels[str(document.user)]}) for document in documents]


def level_of(concern: float) -> str:
    """Return the level with the largest epsilon that suffices for a concern."""
    by_epsilon = sorted(LEVELS, key=LEVELS.__getitem__, reverse=True)
    return next((name for name in by_epsilon if concern <= CONCERNS[name]), by_epsilon[-1])


def concerns_by(regressor: Any, features: Any) -> Floats:
    """Return (n,) predicted concerns; infinite where the regressor gives no number."""
    concerns = np.asarray(regressor.predict(features), dtype=np.float64)
    return np.where(np.isfinite(concerns), concerns, np.inf)


def fit_concerns(features: Any, concerns: Sequence[float]) -> Any:
    """Return ridge regression fitted on volunteers: on numbers, or on hashed words, so that it holds no word."""
    sklearn = {
        name: extra(f"sklearn.{name}", "sklearn", "predicting concerns")
        for name in ("feature_extraction.text", "linear_model", "pipeline", "preprocessing")
    }
    if are_texts(features):
        first = sklearn["feature_extraction.text"].HashingVectorizer(n_features=2**16)
    else:
        first = sklearn["preprocessing"].StandardScaler()
    ridge = sklearn["linear_model"].RidgeCV(alphas=np.logspace(-2, 4, 7))
    return sklearn["pipeline"].make_pipeline(first, ridge).fit(features, np.asarray(concerns))


@dataclass(frozen=True, eq=False)
class ColdStart:
    """Prediction of levels; the predictor is fitted on volunteers, who take no part in a release."""

    volunteers: Sequence[Blogger]
    people: Sequence[Blogger]
    all_people: Sequence[Blogger]
    resamples: int = 1000

    def cell(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """Return the error of predicted concerns and of the volunteers' mean, and the shares of correct levels.

        Settings: ``by``, ``margin`` and ``source``: `PROFILE`, `TEXTS`, `DEVICE` (texts; the level is randomised with
        ``epsilon``) or `VECTOR` (texts as a vector, sent with ``epsilon``). *Too much*: a larger epsilon than wanted;
        *too little*: a smaller one. For a randomised level its probabilities count, not a draw.
        """
        by, source = settings["by"], settings["source"]
        sent = settings["epsilon"] if source == VECTOR else None
        wishes, model = self.assignment(by), self.model(by, source, sent)
        users = [person.user for person in self.people]
        guessed = concerns_by(model, self._features(source, self.people, sent))
        known = np.array([wishes.concerns[user] for user in users])
        mean = float(np.mean([wishes.concerns[person.user] for person in self.volunteers]))
        names = list(LEVELS)
        chances = np.eye(len(names))[[names.index(level_of(entry + settings["margin"])) for entry in guessed.tolist()]]
        if source == DEVICE:
            chances = chances @ RandomizedResponse(len(names), settings["epsilon"]).probabilities
        target = np.array([LEVELS[wishes.levels[user]] for user in users])
        value = np.array([LEVELS[name] for name in names])
        over = {
            "right": (chances * (value == target[:, None])).sum(axis=1),
            "too much": (chances * (value > target[:, None])).sum(axis=1),
            "too little": (chances * (value < target[:, None])).sum(axis=1),
            "right, the strictest for all": (target == min(value)).astype(np.float64),
        }
        squares = {"RMSE": (guessed - known) ** 2, "RMSE of the mean": (mean - known) ** 2}
        result: dict[str, float] = {}
        for name, values in over.items():
            result |= self._estimate(name, lambda rows, values=values: float(values[rows].mean()))
        for name, values in squares.items():
            result |= self._estimate(name, lambda rows, values=values: float(np.sqrt(values[rows].mean())))
        first, second = squares.values()
        ratio = self._estimate("of the mean", lambda rows: float(np.sqrt(first[rows].mean() / second[rows].mean())))
        return result | ratio

    def guessed_levels(self, by: str) -> dict[str, str]:
        """Return the levels that the server predicts from texts."""
        concerns = concerns_by(self.model(by, TEXTS), self._features(TEXTS, self.people))
        return {person.user: level_of(concern) for person, concern in zip(self.people, concerns.tolist(), strict=True)}

    @cache  # noqa: B019 (as long as the experiment lasts)
    def model(self, by: str, source: str, sent: float | None = None) -> Any:
        """Return the predictor, fitted on volunteers whose vectors have the same noise."""
        concerns = self.assignment(by).concerns
        lines = [concerns[person.user] for person in self.volunteers]
        return fit_concerns(self._features(source, self.volunteers, sent), lines)

    @cache  # noqa: B019
    def assignment(self, by: str) -> Assignment:
        return assign_levels(self.all_people, by)

    def _estimate(self, name: str, statistic: Callable[[Any], float]) -> dict[str, float]:
        count = len(self.people)
        return bootstrap_numbers(name, lambda rows, _: statistic(rows), count, 1, resamples=self.resamples)

    def _features(self, source: str, people: Sequence[Blogger], sent: float | None = None) -> Any:
        if source == PROFILE:
            values = sorted({value for one in self.volunteers for value in (one.gender, one.industry, one.sign)})
            profiles = [(person.gender, person.industry, person.sign) for person in people]
            return np.array([[float(value in profile) for value in values] for profile in profiles])
        if source == VECTOR:
            return np.array([self._sent(sent)[person.user] for person in people])
        return [" ".join(str(document.text) for document in documents_of([person])) for person in people]

    @cache  # noqa: B019
    def _sent(self, epsilon: float | None) -> dict[str, Floats]:
        """Return the vector that each device sends, with projection and bound fitted on the volunteers."""
        means = self._means
        width = len(next(iter(means.values())))
        known = CallableEncoder(lambda users: np.array([means[user] for user in users]), dimension=width)
        encoder = PrivateEncoder(known, epsilon=epsilon, seed=1).fit([person.user for person in self.volunteers])
        return dict(zip(means, encoder.transform(list(means)), strict=True))

    @cached_property
    def _means(self) -> dict[str, Floats]:
        """The mean word vector of each user."""
        texts = self._features(TEXTS, self.all_people)
        return {
            person.user: row for person, row in zip(self.all_people, encoder_of(VECTORS).encode(texts), strict=True)
        }
