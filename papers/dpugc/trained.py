"""Skip-gram trained from a random start, as in the paper, and its vectors after given numbers of steps.

The run's ``work`` folder keeps them and is never shared: models without noise come from real texts.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from papers.dpugc.corpus import Corpus
from papers.dpugc.mechanism import DELTA
from papers.dpugc.unclipped import UnclippedPlan

from dptext import Document, SkipGram, WordVectors
from dptext.embeddings.noise import CellNoise
from dptext.embeddings.participation import CELLS, EVERYONE, Participation
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.embeddings.training import Tables, Training
from dptext.privacy.randomness import NoiseKey
from dptext.users.grouping import UserStore, stored_users, users_of

PRINTED_SIGMA = 5.0  # of the paper's run, which its code names
LOT = 128  # pairs, the same, if no frequent words are thinned out


@dataclass(frozen=True)
class Kind:
    """A way of training.

    Attributes:
        unit: whose gradient is bounded: "user", or the paper's "pair".
        mode: of `dptext.SkipGram`; or "plain", without clipping.
        sigma: a noise multiplier that is fixed instead of an epsilon.
        times: divisor of the noise, which simulates as many times as many similar people.
    """

    unit: str
    mode: str
    sigma: float | None = None
    times: int = 1


KINDS = {
    "plain": Kind("user", "plain"),
    "clipped": Kind("user", "clipped"),
    "private": Kind("user", "private"),
    "simulated: 10 times the people": Kind("user", "private", times=10),
    "simulated: 100 times the people": Kind("user", "private", times=100),
    "clipped pairs": Kind("pair", "clipped"),
    "private pairs": Kind("pair", "private"),
    "pairs as printed": Kind("pair", "private", sigma=PRINTED_SIGMA),
}
LARGER_DISTANCES = {"user": 60_000.0, "pair": 160_000.0}
"""Distances at which clipped vectors learn meanings, chosen on WikiText-2; for pairs it is word2vec's own rate."""
_SIMULATED = tuple(f"simulated: {times} times the people" for times in (10, 100))
_LARGER_STEPS = {
    f"{name}, farther": KINDS[name] for name in ("clipped", "private", *_SIMULATED, "clipped pairs", "private pairs")
}
KINDS |= _LARGER_STEPS
USERS = tuple(name for name, kind in KINDS.items() if kind.unit == "user")
PAIRS = tuple(name for name, kind in KINDS.items() if kind.unit == "pair")


@dataclass(frozen=True)
class Schedule:
    """Length and size of a training.

    Attributes:
        words: size of the vocabulary, the first words of a public list.
        marks: numbers of steps after which vectors are kept; the last one ends the training.
        rate: sampling rate of users.
        pairs: per user and step.
        distance: sum of learning rates.
        pair_marks, pair_distance: the same for pairs, `LOT` per step.
    """

    words: int = 5000
    dimension: int = 50
    marks: tuple[int, ...] = (0, 5, 20, 50, 100, 200, 400)
    rate: float = 0.05
    pairs: int = 100
    distance: float = 1000.0
    pair_marks: tuple[int, ...] = (0, 20, 200, 500, 1000, 5000, 10_000, 50_000, 90_000, 100_000)
    pair_distance: float = 10_000.0

    def marks_of(self, kind: str) -> tuple[int, ...]:
        return self.marks if KINDS[kind].unit == "user" else self.pair_marks


class Trainings:
    """Vectors of trainings on one corpus, kept in the files of a folder; a context manager that stores the texts.

    ``public`` gives the vocabulary, not its vectors. The number of users is public here: the denominators contain it.
    """

    def __init__(self, public: WordVectors, corpus: Corpus, schedule: Schedule, folder: Path) -> None:
        self.public, self.corpus, self.schedule, self._folder = public, corpus, schedule, folder
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def vectors(self, kind: str, epsilon: float | None, steps: int, seed: int) -> WordVectors:
        """Return the vectors after a number of steps, one of the marks."""
        name = f"steps-{self.corpus.name}-{kind}-{epsilon}-{seed}".replace(" ", "_").replace(":", "")
        dependencies = self.corpus.digest, self.public.fingerprint, repr(self.schedule), repr(KINDS[kind]), behaviour()
        file = self._folder / f"{name}-{hashlib.sha256(repr(dependencies).encode()).hexdigest()[:12]}.npz"
        if not file.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(".part.npz")
            np.savez(unfinished, **self._trained(kind, epsilon, seed))
            unfinished.replace(file)
        with np.load(file) as stored:
            return WordVectors(self.plan("plain", None).words.words, stored[str(steps)], source=name)

    @cache  # noqa: B019 (a handful of plans, for as long as the experiment lasts)
    def plan(self, kind: str, epsilon: float | None) -> SkipGramPlan:
        """Return the plan; except for the number of users and words it is independent of the texts."""
        settings, schedule = KINDS[kind], self.schedule
        mode = "private" if settings.mode == "private" else "clipped"
        common: dict[str, Any] = {"dimension": schedule.dimension, "trained_words": schedule.words, "mode": mode}
        if settings.unit == "user":
            rate = schedule.rate
            for_unit = {"pairs": schedule.pairs, "public_users": self._users, "distance": schedule.distance}
        else:
            slots = 2 * self._words * 5  # within a window of 5; about half hold a pair
            rate = min(1.0, 2 * LOT / slots)
            for_unit = {"unit": "pair", "public_users": slots // 2, "distance": schedule.pair_distance}
        if kind in _LARGER_STEPS:
            for_unit["distance"] = LARGER_DISTANCES[settings.unit]
            if settings.unit == "pair":  # four of five pairs are thinned out otherwise, and lots are small
                for_unit["subsample"] = 0.0
        steps = schedule.marks_of(kind)[-1]
        budget: dict[str, Any] = {"steps": steps, "sampling_rate": rate, "delta": DELTA}
        if settings.sigma is not None:
            rates = {EVERYONE: rate}
            budget = {"epsilon": Participation(noise_multiplier=settings.sigma, steps=steps, delta=DELTA, rates=rates)}
        elif epsilon is not None:
            budget["epsilon"] = epsilon
        plan = SkipGram(self.public, **common, **for_unit, **budget).plan()
        return UnclippedPlan.of(plan) if settings.mode == "plain" else plan

    def spent(self, kind: str, epsilon: float | None, steps: int) -> dict[str, float]:
        """Return the epsilon of a number of steps; for a simulation, that of the larger population."""
        participation = self.plan(kind, epsilon).participation
        account = participation.account(steps=max(1, steps))
        return {
            "spent": account.epsilon(delta=DELTA) if steps else 0.0,
            "noise multiplier": participation.noise_multiplier,
            "rate": participation.rates[EVERYONE],
        }

    def _trained(self, kind: str, epsilon: float | None, seed: int) -> dict[str, npt.NDArray[np.float32]]:
        plan = self.plan(kind, epsilon)
        training = _reduce_noise(plan.training(self._store, plan.start(), NoiseKey(seed)), plan, KINDS[kind])
        marks = self.schedule.marks_of(kind)
        result = {}
        for step in range(marks[-1] + 1):
            if step in marks:
                result[str(step)] = plan.finish(training.tables.matrix)
            if step < marks[-1]:
                training.step(step)
        return result

    @cached_property
    def _users(self) -> int:
        return len({document.user for document in self.corpus.documents})

    @cached_property
    def _words(self) -> int:
        return sum(map(len, self.corpus.sentences))

    @cached_property
    def _store(self) -> UserStore:
        words = self.plan("plain", None).trained
        return self._open.enter_context(
            stored_users(self._open.enter_context(users_of(self.corpus.documents, words, seed=1)))
        )


def _reduce_noise(training: Training, plan: SkipGramPlan, kind: Kind) -> Training:
    """Divide the noise, to simulate more people."""
    if kind.times == 1:
        return training
    participation = plan.participation
    rates = plan.recipe.rates(participation.steps) / (plan.denominator * CELLS)
    noise = CellNoise(participation.noise_multiplier * CELLS / kind.times)
    tables = Tables(training.tables.matrix, rates, noise, both=plan.both)
    return replace(training, tables=tables)


@cache
def behaviour() -> str:
    """Return a digest of trainings on made-up texts, to detect rows of another version."""
    words = [f"{first}{second}" for first in "bdfgklmn" for second in ("a", "ab", "e", "ed", "i", "il", "o", "om")]
    public = WordVectors([*words, "<unk>"], np.eye(len(words) + 1, dtype=np.float32))
    texts = (" ".join(words[(7 * user + place**2) % len(words)] for place in range(30)) for user in range(40))
    documents = [Document(text, user=str(user)) for user, text in enumerate(texts)]
    result = hashlib.sha256()
    small = Schedule(
        words=len(words),
        dimension=8,
        marks=(4,),
        rate=0.5,
        pairs=100,
        distance=1000.0,
        pair_marks=(30,),
        pair_distance=10_000.0,
    )
    with Trainings(public, Corpus("small", documents), small, Path()) as trainings:
        for kind, settings in KINDS.items():
            if kind in _LARGER_STEPS:  # no other mechanism
                continue
            epsilon = 8.0 if settings.mode == "private" and settings.sigma is None else None
            output = trainings._trained(kind, epsilon, 1)
            for matrix in output.values():
                result.update(np.round(matrix, 2).tobytes())  # other machines round otherwise
    return result.hexdigest()[:16]
