"""A synthetic corpus from a noisy description of many people's texts, with this text among them and without."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from dptext.features.features import UNIT
from dptext.noise.gaussian_sums import CELL, Integers
from dptext.playground.in_words import SAME, attacker, promised, told_apart
from dptext.playground.overlaps import Between
from dptext.playground.samples import Samples
from dptext.playground.shown import Neighbours, Piece, Shown
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import MeanOfWords
from dptext.synthesis.density import choose
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.users.grouping import UserTexts
from dptext.vectors.word_vectors import WordVectors

_EDGES = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Of the intervals in which the most telling number is shown, in standard deviations of the noise."""


class Synthetic:
    """A corpus of made-up people, and one person more."""

    def __init__(self, vectors: WordVectors, samples: Samples, delta: float) -> None:
        self._samples, self._encoder, self._delta = samples, MeanOfWords(vectors), delta
        self._plan = self._synthesizer(1.0).plan(samples.public)
        self._others = self._plan.total(self._person(text) for text in samples.people)
        self._pool = self._plan.features.units(self._plan.pool.texts) * UNIT
        self._mine: tuple[str, Integers] | None = None

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> Shown:  # noqa: ARG002
        """See `dptext.playground.ways.Playground.show`."""
        synthesizer = self._synthesizer(epsilon)
        plan = SynthesisPlan(terms=synthesizer.terms, features=self._plan.features, pool=self._plan.pool)
        if self._mine is None or self._mine[0] != text:
            self._mine = (text, self._plan.total([self._person(text)]))
        mine = self._mine[1]
        theirs = np.zeros_like(mine) if neighbour is None else self._plan.total([self._person(neighbour)])
        bits = RandomBits()
        description = synthesizer.released(plan, self._others + mine, bits)
        ratio = description.ratio
        chosen, _ = choose(
            ratio.scores(self._pool), ratio.nearness(self._pool), draws, shares=ratio.shares, bits=bits.spawn(1)[0]
        )
        sigma = plan.terms.budget.sigma
        return Shown(
            way="synthetic",
            epsilon=epsilon,
            **promised(plan.promise),
            pieces=(Piece(text, None),),
            draws=tuple(plan.pool.texts[row] for row in chosen.tolist()),
            attacker=attacker(
                f"all other {len(self._samples.people):,} people's texts, and that this text is one more with a chance "
                "of one half",
                Between.exactly((1 + gaussian_delta(sigma, epsilon=0.0, sensitivity=_length(mine))) / 2),
                0.5,
                does="says whether it is among them, and is right",
            ),
            neighbours=self._neighbours(text, neighbour, _length(mine - theirs), sigma),
        )

    def _synthesizer(self, epsilon: float) -> Synthesizer:
        return Synthesizer(epsilon=epsilon, delta=self._delta, features=self._encoder, cache=False)

    def _person(self, text: str) -> UserTexts:
        return UserTexts((([text], np.zeros(1, dtype=np.int32)),))

    def _neighbours(self, text: str, neighbour: str | None, apart: float, sigma: float) -> Neighbours:
        people = f"{len(self._samples.people):,} people"
        first = f"{people} and this text: {text}"
        second = f"{people} without it" if neighbour is None else f"{people} and this text in its place: {neighbour}"
        if apart == 0.0:
            return Neighbours(first, second, 1.0, (), SAME)
        return Neighbours(
            first,
            second,
            1.0 - gaussian_delta(sigma, epsilon=0.0, sensitivity=apart),  # delta at epsilon 0 is the total variation
            _chances(apart / sigma),
            told_apart(Between.exactly(1.0 - gaussian_delta(sigma, epsilon=0.0, sensitivity=apart)))
            + " The chances are those of the number that tells them apart best, in standard deviations of the noise.",
        )


def _length(cells: Integers) -> float:
    """How far a matrix moves the sum."""
    return math.sqrt(float(np.square(cells.astype(np.float64)).sum())) * CELL


def _chances(shift: float) -> tuple[tuple[str, float, float], ...]:
    """Where the noisy sum lies along the line from the second neighbour to the first, whose middle is 0."""
    one, other = NormalDist(shift / 2), NormalDist(-shift / 2)
    found: list[tuple[str, float, float]] = []
    before = 0.0, 0.0
    for edge in _EDGES:
        now = one.cdf(edge), other.cdf(edge)
        name = f"below {edge:g}" if not found else f"from {edge - 1:g} to {edge:g}"
        found.append((name, now[0] - before[0], now[1] - before[1]))
        before = now
    return (*found, (f"above {_EDGES[-1]:g}", 1 - before[0], 1 - before[1]))
