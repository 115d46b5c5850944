"""Skip-gram trained from a random start, as in the paper, and its vectors after given numbers of steps."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.dpugc.models import DELTA, Corpus, Model

from dptext import SkipGram, WordVectors
from dptext.embeddings.noise import CellNoise, compiled
from dptext.embeddings.participation import CELLS, EVERYONE, Participation
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.embeddings.training import Scratch, Tables, Training, unit_gradient
from dptext.privacy.randomness import NoiseKey
from dptext.users.grouping import UserStore, stored_users, users_of

PRINTED_SIGMA = 5.0  # of the paper's run, in its code
LOT = 128  # pairs per step in expectation, if no frequent words are thinned out
GOLD = "plain"
"""The gold model: word2vec's own training, after its last step, with seed 1."""

Rows = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Kind:
    """A kind of training."""

    unit: str  # the privacy unit: "user", or the paper's "pair"
    mode: str  # of `dptext.SkipGram`; or "plain", without clipping
    sigma: float | None = None  # a noise multiplier that is fixed instead of an epsilon
    times: int = 1  # divisor of the noise, which simulates as many times as many similar people
    is_far: bool = False  # whether the learning rates are larger


KINDS = {
    GOLD: Kind("user", "plain"),
    "clipped": Kind("user", "clipped"),
    "private": Kind("user", "private"),
    "simulated: 10 times the people": Kind("user", "private", times=10),
    "simulated: 100 times the people": Kind("user", "private", times=100),
    "clipped pairs": Kind("pair", "clipped"),
    "private pairs": Kind("pair", "private"),
    "pairs as printed": Kind("pair", "private", sigma=PRINTED_SIGMA),
}
KINDS |= {f"{name}, farther": replace(kind, is_far=True) for name, kind in KINDS.items() if name in (*KINDS,)[1:-1]}
LARGER_DISTANCES = {"user": 60_000.0, "pair": 160_000.0}
"""Distances at which clipped vectors learn meanings, chosen on WikiText-2; for pairs it is word2vec's own rate."""
USERS = tuple(name for name, kind in KINDS.items() if kind.unit == "user")
PAIRS = tuple(name for name, kind in KINDS.items() if kind.unit == "pair")


@dataclass(frozen=True)
class Schedule:
    """Length and size of a training.

    ``marks``: numbers of steps after which vectors are kept; the last one ends the training. ``pair_marks,
    pair_distance``: the same for pairs, `LOT` per step.
    """

    words: int = 5000  # size of the vocabulary, the first words of a public list
    dimension: int = 50
    marks: tuple[int, ...] = (0, 5, 20, 50, 100, 200, 400)
    rate: float = 0.05  # sampling rate of users
    pairs: int = 100  # per user and step
    distance: float = 1000.0  # sum of learning rates
    pair_marks: tuple[int, ...] = (0, 20, 200, 500, 1000, 5000, 10_000, 50_000, 90_000, 100_000)
    pair_distance: float = 10_000.0

    def marks_of(self, kind: str) -> tuple[int, ...]:
        return self.marks if KINDS[kind].unit == "user" else self.pair_marks


class Trainings:
    """Vectors of trainings on one corpus; ``opened`` closes the stored texts.

    ``public`` gives the vocabulary, not its vectors. The number of users is public here: the denominators contain it.
    """

    def __init__(self, public: WordVectors, corpus: Corpus, schedule: Schedule, opened: ExitStack) -> None:
        self.public, self.corpus, self.schedule, self._opened = public, corpus, schedule, opened

    def vectors(self, kind: str, epsilon: float | None, steps: int, seed: int) -> WordVectors:
        """Return the vectors after a number of steps, one of the marks."""
        matrix = self._trained(kind, epsilon, seed)[steps]
        return WordVectors(self.plan(GOLD, None).words.words, matrix, source=f"{kind}, {steps} steps")

    @property
    def gold(self) -> WordVectors:
        return self.vectors(GOLD, None, self.schedule.marks_of(GOLD)[-1], 1)

    @cache  # noqa: B019 (a handful of plans, for as long as the experiment lasts)
    def plan(self, kind: str, epsilon: float | None) -> SkipGramPlan:
        """Return the plan; except for the number of users and words it is independent of the texts."""
        settings, schedule = KINDS[kind], self.schedule
        mode = "private" if settings.mode == "private" else "clipped"
        common: dict[str, Any] = {"dimension": schedule.dimension, "trained_words": schedule.words, "mode": mode}
        if settings.unit == "user":
            rate = schedule.rate
            common |= {"pairs": schedule.pairs, "public_users": self.corpus.users, "distance": schedule.distance}
        else:
            slots = 2 * sum(map(len, self.corpus.sentences)) * 5  # within a window of 5; about half hold a pair
            rate = min(1.0, 2 * LOT / slots)
            common |= {"unit": "pair", "public_users": slots // 2, "distance": schedule.pair_distance}
        if settings.is_far:
            common["distance"] = LARGER_DISTANCES[settings.unit]
            if settings.unit == "pair":  # four of five pairs are thinned out otherwise, and lots are small
                common["subsample"] = 0.0
        steps = schedule.marks_of(kind)[-1]
        budget: dict[str, Any] = {"steps": steps, "sampling_rate": rate, "delta": DELTA}
        if settings.sigma is not None:
            rates = {EVERYONE: rate}
            budget = {"epsilon": Participation(noise_multiplier=settings.sigma, steps=steps, delta=DELTA, rates=rates)}
        elif epsilon is not None:
            budget["epsilon"] = epsilon
        plan = SkipGram(self.public, **common, **budget).plan()
        return UnclippedPlan.of(plan) if settings.mode == "plain" else plan

    def spent(self, settings: dict[str, Any], _seed: int) -> dict[str, float]:
        """Return the epsilon of a number of steps; for a simulation, that of the larger population."""
        participation, steps = self.plan(settings["model"], settings["epsilon"]).participation, settings["steps"]
        account = participation.account(steps=max(1, steps))
        return {
            "spent": account.epsilon(delta=DELTA) if steps else 0.0,
            "noise multiplier": participation.noise_multiplier,
            "rate": participation.rates[EVERYONE],
        }

    @cache  # noqa: B019
    def _trained(self, kind: str, epsilon: float | None, seed: int) -> dict[int, Singles]:
        plan = self.plan(kind, epsilon)
        training = _reduce_noise(plan.training(self._store, plan.start(), NoiseKey(seed)), plan, KINDS[kind])
        marks = self.schedule.marks_of(kind)
        result = {}
        for step in range(marks[-1] + 1):
            if step in marks:
                result[step] = plan.finish(training.tables.matrix)
            if step < marks[-1]:
                training.step(step)
        return result

    @cached_property
    def _store(self) -> UserStore:
        users = self._opened.enter_context(users_of(self.corpus.documents, self.plan(GOLD, None).trained, seed=1))
        return self._opened.enter_context(stored_users(users))


class StepwiseSource:
    """Vectors after a number of steps, as the source of `papers.dpugc.age.Age`; ``public`` gives the other features."""

    def __init__(self, trainings: Trainings, public: WordVectors) -> None:
        self._trainings, self.public = trainings, public

    def of(self, model: Model, corpus: Corpus, run: int = 1) -> WordVectors:  # noqa: ARG002 (it has one corpus)
        kind, _, steps = model.kind.rpartition(" after ")
        return self._trainings.vectors(kind, model.epsilon, int(steps), run)


def _reduce_noise(training: Training, plan: SkipGramPlan, kind: Kind) -> Training:
    """Divide the noise, to simulate more people."""
    if kind.times == 1:
        return training
    participation = plan.participation
    rates = plan.recipe.rates(participation.steps) / (plan.denominator * CELLS)
    noise = CellNoise(participation.noise_multiplier * CELLS / kind.times)
    return replace(training, tables=Tables(training.tables.matrix, rates, noise, both=plan.both))


# -- the gold model: without noise and clipping, as word2vec trains it -------------------------------------------------


class UnclippedPlan(SkipGramPlan):
    """The plan of a training with mode="clipped", without its clipping."""

    @classmethod
    def of(cls, plan: SkipGramPlan) -> UnclippedPlan:
        return cls(**{field.name: getattr(plan, field.name) for field in fields(plan)} | {"mode": "plain"})

    def training(self, store: UserStore, tables: Singles, key: NoiseKey) -> Training:
        training = super().training(store, tables, key)
        return _UnclippedTraining(**{field.name: getattr(training, field.name) for field in fields(training)})


class _UnclippedTraining(Training):
    def _add(self, step: int, pairs: Rows, ends: npt.NDArray[np.int64]) -> None:
        rate = 0.025 * (1 - step / self.participation.steps)  # word2vec's learning rate, for a pair
        follow_unclipped(self.tables.matrix, self.offsets, pairs, ends, rate, self.tables.both, self._scratch)


@compiled
def follow_unclipped(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    ends: npt.NDArray[np.int64],
    rate: float,
    both: bool,
    scratch: Scratch,
) -> None:
    """Subtract rate * gradient of one unit after the other, without a bound, as word2vec does."""
    slots, touched, gradient = scratch
    first = 0
    for number in range(len(ends)):
        count = unit_gradient(tables, offsets, pairs, first, ends[number], both, scratch)
        first = ends[number]
        for slot in range(count):
            row = touched[slot]
            slots[row] = -1
            into, part = tables[row], gradient[slot]
            for axis in range(len(part)):
                into[axis] -= np.float32(part[axis] * rate)
