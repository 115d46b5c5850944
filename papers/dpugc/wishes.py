"""Who wants how much protection, and how well that is guessed of people who say nothing.

The paper gives each user a budget of their own, and takes it from a model of an earlier paper where they named none
("cold start"): how much somebody cares for privacy goes with their personality. Neither that model nor its people can
be had. Here the shares of the three levels are those of Jorgensen, Yu and Cormode 2015 ("Conservative or liberal?
Personalized differential privacy", after Acquisti and Grossklags 2005), and who has which level is made up, in two
ways: **by age** (the older, the more they care: something that texts tell of), and **by chance** (nothing tells it).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger, documents_of
from papers.dpugc.concerns import fit_concerns
from papers.dpugc.intervals import crossed

from dptext import BudgetPolicy, CallableEncoder, Document, PrivateEncoder
from dptext.representations.device import encoder_of

__all__ = ["BY", "LEVEL", "LEVELS", "SHARES", "VECTOR", "ColdStart", "Wishes", "policy_of", "wishes_of", "with_levels"]

LEVELS = {"conservative": 1.0, "moderate": 4.0, "liberal": 16.0}
"""Their epsilons."""
SHARES = {"conservative": 0.54, "moderate": 0.37, "liberal": 0.09}
LEVEL = "level"
"""The attribute of documents that holds it."""
BY = ("age", "chance")
CONCERNS = {"liberal": 0.09, "moderate": 0.46, "conservative": 1.0}
"""The greatest concern that a level is enough for, where concerns are spread evenly from 0 to 1."""
VECTORS = "glove-6b-50d"
PROFILE, TEXTS, DEVICE, VECTOR = "public profile", "texts", "device", "vector"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Wishes:
    """Of all people, by their number: how much they care, 0 to 1, and the level that follows."""

    concerns: Mapping[str, float]
    levels: Mapping[str, str]


def wishes_of(people: Sequence[Blogger], by: str) -> Wishes:
    """The concern of somebody is the share of people who care less: who are younger, or drawn before."""
    if by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)}")

    def place(person: Blogger) -> tuple[int, bytes]:
        return (person.age if by == "age" else 0), hashlib.sha256(f"wish {person.user}".encode()).digest()

    order = sorted(people, key=place)
    concerns = {person.user: (rank + 0.5) / len(order) for rank, person in enumerate(order)}
    policy = BudgetPolicy(LEVELS, attribute=LEVEL, concerns=CONCERNS)
    return Wishes(concerns, {user: policy.level(concern) for user, concern in concerns.items()})


def with_levels(documents: Sequence[Document], levels: Mapping[str, str]) -> list[Document]:
    """The same documents with the level of their user."""
    return [replace(document, attributes={LEVEL: levels[str(document.user)]}) for document in documents]


def policy_of(predictor: Any, *, margin: float = 0.0, device: float | None = None, texts: bool = False) -> BudgetPolicy:
    """Levels that a predictor says, for a release."""
    source: Any = DEVICE if device is not None else TEXTS if texts else "public"
    fields: dict[str, Any] = {"predicted_from": source, "training": "public", "epsilon": device, "margin": margin}
    return BudgetPolicy(LEVELS, attribute=LEVEL, concerns=CONCERNS, predictor=predictor, **fields)


@dataclass(frozen=True, eq=False)
class ColdStart:
    """What cells of this part share.

    Attributes:
        volunteers: whose concerns the predictor is fitted on; they have no part in any release.
        people: whose levels are guessed, and known.
        everybody: both, for the wishes.
        resamples: of the intervals.
    """

    volunteers: Sequence[Blogger]
    people: Sequence[Blogger]
    everybody: Sequence[Blogger]
    resamples: int = 1000

    def cell(self, settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
        """How far predicted concerns are off, beside the mean of the volunteers, and whose level comes out right.

        Settings: ``by``, ``source`` (`PROFILE`, `TEXTS`, or `DEVICE`: texts, and the level is drawn with ``epsilon``;
        or `VECTOR`: the texts as a vector, sent with ``epsilon``), ``margin``. *Too much*: an epsilon above the one
        that they want; *too little*: below. Of a level that is drawn the chances are taken, not a draw. Always the
        strictest level: right for the conservative, never too much.
        """
        by, source = settings["by"], settings["source"]
        sent = settings["epsilon"] if source == VECTOR else None
        wishes, model = self.wishes(by), self.model(by, source, sent)
        policy = policy_of(model, margin=settings["margin"], device=settings["epsilon"] if source == DEVICE else None)
        users = [person.user for person in self.people]
        guessed = model.predict(self._features(source, self.people, sent))
        known = np.array([wishes.concerns[user] for user in users])
        mean = float(np.mean([wishes.concerns[person.user] for person in self.volunteers]))
        names = list(LEVELS)
        chances = np.eye(len(names))[[names.index(policy.level(entry)) for entry in guessed.tolist()]]
        if policy.response is not None:
            chances = chances @ policy.response.probabilities
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
        result |= self._estimate(
            "of the mean",
            lambda rows: float(np.sqrt(squares["RMSE"][rows].mean() / squares["RMSE of the mean"][rows].mean())),
        )
        return result

    def guessed_levels(self, by: str) -> dict[str, str]:
        """Of all people, read off their texts on the server."""
        policy = policy_of(self.model(by, TEXTS), texts=True)
        predictions = policy.predict(self._features(TEXTS, self.people))
        return {person.user: level for person, level in zip(self.people, predictions, strict=True)}

    @cache  # noqa: B019 (as long as the experiment lasts)
    def model(self, by: str, source: str, sent: float | None = None) -> Any:
        """The predictor, fitted on volunteers, whose vectors have the same noise."""
        concerns = self.wishes(by).concerns
        lines = [concerns[person.user] for person in self.volunteers]
        return fit_concerns(self._features(source, self.volunteers, sent), lines)

    @cache  # noqa: B019
    def wishes(self, by: str) -> Wishes:
        """Of everybody."""
        return wishes_of(self.everybody, by)

    def _estimate(self, name: str, statistic: Any) -> dict[str, float]:
        result = crossed(lambda rows, _: statistic(rows), len(self.people), 1, of="people", resamples=self.resamples)
        return {name: result.value, f"{name} low": result.low, f"{name} high": result.high}

    def _features(self, source: str, people: Sequence[Blogger], sent: float | None = None) -> Any:
        if source == PROFILE:
            return self._profiles(people)
        if source == VECTOR:
            return np.array([self._sent(sent)[person.user] for person in people])
        return [" ".join(str(document.text) for document in documents_of([person])) for person in people]

    @cache  # noqa: B019
    def _sent(self, epsilon: float | None) -> dict[str, Floats]:
        """Of everybody, the vector that their device sends, projected and bounded as the volunteers' texts ask for."""
        means = self._means
        width = len(next(iter(means.values())))
        known = CallableEncoder(lambda users: np.array([means[user] for user in users]), dimension=width)
        encoder = PrivateEncoder(known, epsilon=epsilon, seed=1).fit([person.user for person in self.volunteers])
        return dict(zip(means, encoder.transform(list(means)), strict=True))

    @cached_property
    def _means(self) -> dict[str, Floats]:
        """Of everybody, the mean of the vectors of their words."""
        texts = self._features(TEXTS, self.everybody)
        return {person.user: row for person, row in zip(self.everybody, encoder_of(VECTORS).encode(texts), strict=True)}

    def _profiles(self, people: Sequence[Blogger]) -> Floats:
        """(people, d) gender, industry and sign, each value that a volunteer has as a number 0 or 1."""
        return np.array(
            [
                [float(value in (person.gender, person.industry, person.sign)) for value in self._values]
                for person in people
            ]
        )

    @cached_property
    def _values(self) -> list[str]:
        return sorted(
            {value for volunteer in self.volunteers for value in (volunteer.gender, volunteer.industry, volunteer.sign)}
        )
