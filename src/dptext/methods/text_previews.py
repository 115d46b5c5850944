"""What a bank, a synthetic corpus and private vectors make of a whole text, and what an attacker reads in it."""

from __future__ import annotations

import math
from collections.abc import Sized
from statistics import NormalDist

import numpy as np

from dptext.features.features import UNIT
from dptext.methods.preview import (
    SAME,
    Between,
    Neighbours,
    Piece,
    Point,
    Samples,
    Shown,
    attacker,
    likeliest,
    log_densities,
    outcomes,
    overlap,
    overlap_of_draws,
    promised,
    right_in_draws,
    told_apart,
)
from dptext.noise.gaussian_sums import CELL, Integers
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import best_guesses
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian
from dptext.representations.bounds import Bound, Domain, Floats, fit_bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import MeanOfWords
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import best_dimension, randomizer_of
from dptext.sentences.bank import TextBank
from dptext.sentences.rewriter import BankRewriter
from dptext.synthesis.density import choose
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.users.grouping import UserTexts
from dptext.vectors.word_vectors import WordVectors

_LIKELIEST = 5
_OUTCOMES = 6
_EDGES = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Of the intervals in which the most telling number is shown, in standard deviations of the noise."""
_DIMENSION = 16  # where no best one is known
_DRAWS_EACH = 20  # of each text that the attacker knows
_DRAWS_OF_TWO = 2000
_POINTS = 150


def _one_of(known: Sized) -> str:
    """What an attacker knows who holds some texts."""
    return f"that the text is one of {len(known)} (this one and texts of the sample, all equally likely)"


def _overlap_of_gaussians(sigma: float, apart: float) -> Between:
    """Of Gaussian noise around two points: delta at epsilon 0 is the total variation."""
    return Between.exactly(1.0 - gaussian_delta(sigma, epsilon=0.0, sensitivity=apart))


class BankPreviewer:
    """What a bank of public texts makes of a text."""

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        self._samples = samples
        self._bank = TextBank(samples.public, encoder=MeanOfWords(vectors), cache=False, name=samples.name)
        self._bank.profile  # noqa: B018  # looked at for every epsilon
        self._rows = {text: row for row, text in enumerate(self._bank.texts)}

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> Shown:  # noqa: ARG002
        rewriter = BankRewriter(self._bank, epsilon=epsilon, unit="document")
        second = self._samples.another(text) if neighbour is None else neighbour
        known = self._samples.among(text)
        one, other, *others = rewriter.distributions([text, second, *known[1:]])
        table = np.array([one, *others])
        right = best_guesses([table], np.full(len(known), 1 / len(known)))
        sample = rewriter.sample([text] * draws)
        guess = likeliest(table[:, [self._rows[sample[0]]]].T, RandomBits())[0]
        return Shown(
            way="sentences",
            epsilon=epsilon,
            **promised(rewriter.document_statement(1)),
            pieces=(self._piece(text, one),),
            draws=tuple(sample),
            attacker=attacker(
                _one_of(known),
                Between.exactly(right.rate),
                right.blind,
                guess=known[guess],
            ),
            neighbours=self._neighbours(text, second, one, other),
        )

    def _piece(self, text: str, shares: Floats) -> Piece:
        own = self._rows.get(" ".join(text.split()))
        likeliest = [row for row in self._likeliest(text, shares, _LIKELIEST + 1) if row != own][:_LIKELIEST]
        becomes = tuple((self._bank.texts[row], float(shares[row])) for row in likeliest)
        return Piece(text, 0.0 if own is None else float(shares[own]), becomes)

    def _likeliest(self, text: str, shares: Floats, count: int) -> list[int]:
        """Rows of the likeliest texts of the bank; of equally likely ones those that are most similar."""
        similarity = self._bank.similarities(self._bank.features.vectors([text]), np.arange(len(self._bank))[None])[0]
        return [int(row) for row in np.lexsort((-similarity, -shares))[:count]]

    def _neighbours(self, first: str, second: str, one: Floats, other: Floats) -> Neighbours:
        half = _OUTCOMES // 2
        likely = [*self._likeliest(first, one, half), *self._likeliest(second, other, half)]
        rows = list(dict.fromkeys(likely))
        named = outcomes([self._bank.texts[row] for row in rows], one[rows], other[rows], rest="any other text")
        result = overlap(one, other)
        return Neighbours(first, second, result.middle, named, SAME if result.low == 1 else told_apart(result))


class CorpusPreviewer:
    """A corpus of made-up people, and one person more."""

    def __init__(self, vectors: WordVectors, samples: Samples, delta: float) -> None:
        self._samples, self._encoder, self._delta = samples, MeanOfWords(vectors), delta
        self._plan = self._synthesizer(1.0).plan(samples.public)
        self._others = self._plan.total(self._person(text) for text in samples.people)
        self._pool = self._plan.features.units(self._plan.pool.texts) * UNIT
        self._mine: tuple[str, Integers] | None = None

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> Shown:  # noqa: ARG002
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
        result = _overlap_of_gaussians(sigma, apart)
        says = (
            f"{told_apart(result)} The chances are those of the number that tells them apart best, in standard "
            "deviations of the noise."
        )
        return Neighbours(first, second, result.middle, _chances(apart / sigma), says)


def _length(cells: Integers) -> float:
    """How far a matrix moves the sum."""
    return math.sqrt(float(np.square(cells.astype(np.float64)).sum())) * CELL


def _chances(shift: float) -> tuple[tuple[str, float, float], ...]:
    """Where the noisy sum lies along the line from the second neighbour to the first, whose middle is 0."""
    one, other = NormalDist(shift / 2), NormalDist(-shift / 2)
    result: list[tuple[str, float, float]] = []
    before = 0.0, 0.0
    for edge in _EDGES:
        now = one.cdf(edge), other.cdf(edge)
        name = f"below {edge:g}" if not result else f"from {edge - 1:g} to {edge:g}"
        result.append((name, now[0] - before[0], now[1] - before[1]))
        before = now
    return (*result, (f"above {_EDGES[-1]:g}", 1 - before[0], 1 - before[1]))


class VectorPreviewer:
    """What a randomizer makes of the vector of a text."""

    def __init__(self, vectors: WordVectors, samples: Samples, epsilons: tuple[float, float], delta: float) -> None:
        self._samples, self._encoder, self._delta = samples, MeanOfWords(vectors), delta
        self._public = self._encoder.encode(samples.public)
        self._bounds: dict[int, Bound] = {}
        self._dimensions: dict[tuple[str, int], int] = {}
        for power in range(math.floor(math.log2(epsilons[0])), math.floor(math.log2(epsilons[1])) + 1):
            self._dimension("PrivUnit", power)
        self._known: tuple[str, list[str], Floats] | None = None

    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> Shown:
        device = self._device(choice, epsilon)
        bits = RandomBits()
        second = self._samples.another(text) if neighbour is None else neighbour
        if self._known is None or self._known[0] != text:
            among = self._samples.among(text)
            self._known = text, among, np.asarray(self._encoder.encode(among), dtype=np.float64)
        known = self._bounded(device, self._known[2])
        pair = self._bounded(device, np.asarray(self._encoder.encode([text, second]), dtype=np.float64))
        public = device.bound.apply(self._public)
        one, other = (
            np.asarray(device.channel.sample(np.repeat(entry[None], _DRAWS_OF_TWO, axis=0), bits), dtype=np.float64)
            for entry in pair
        )
        sample = np.asarray(device.encode([text] * draws), dtype=np.float64)
        nearest = np.argmax(sample @ public.T, axis=1)
        guess = likeliest(log_densities(device.channel, sample[:1], known), bits)[0]
        private = device.channel.sample(np.repeat(known, _DRAWS_EACH, axis=0), bits)
        right = right_in_draws(log_densities(device.channel, np.asarray(private, dtype=np.float64), known))
        return Shown(
            way="vectors",
            epsilon=epsilon,
            **promised(device.statement),
            pieces=(Piece(text, None),),
            draws=tuple(self._samples.public[row] for row in nearest.tolist()),
            attacker=attacker(_one_of(known), right, 1 / len(known), guess=self._known[1][guess]),
            neighbours=self._neighbours(device, (text, second), pair, (one, other), public),
            points=_points(pair, (one[:_POINTS], other[:_POINTS])),
        )

    def _device(self, choice: str, epsilon: float) -> DeviceEncoder:
        randomizer = self._randomizer(choice, epsilon)
        dimension = self._dimension(choice, math.floor(math.log2(epsilon)))
        if dimension not in self._bounds:
            self._bounds[dimension] = fit_bound(self._public, dimension=dimension, public_name=self._samples.name)
        return DeviceEncoder(self._encoder, self._bounds[dimension], randomizer)

    def _randomizer(self, choice: str, epsilon: float) -> Randomizer:
        if choice == "Gaussian":
            return Gaussian(epsilon=epsilon, delta=self._delta, domain=Domain.SPHERE)
        return randomizer_of(choice, epsilon=epsilon)

    def _dimension(self, choice: str, power: int) -> int:
        """The best dimension at 2 to this power, which is the next one below epsilon: it takes long to find."""
        if (choice, power) not in self._dimensions:
            result = best_dimension(self._public, self._randomizer(choice, 2.0**power))
            self._dimensions[choice, power] = _DIMENSION if result is None else result.dimension
        return self._dimensions[choice, power]

    def _bounded(self, device: DeviceEncoder, vectors: Floats) -> Floats:
        """Vectors as the channel sees them, before the noise."""
        return device.channel.domain.bound(device.bound.apply(vectors))

    def _neighbours(
        self,
        device: DeviceEncoder,
        texts: tuple[str, str],
        pair: Floats,
        outputs: tuple[Floats, Floats],
        public: Floats,
    ) -> Neighbours:
        if np.array_equal(pair[0], pair[1]):
            return Neighbours(*texts, 1.0, (), SAME)
        if device.channel.name == "Gaussian":
            sigma = float(device.channel.parameters()["sigma"] or 0.0)
            distance = float(np.linalg.norm(pair[0] - pair[1]))
            result = _overlap_of_gaussians(sigma, distance)
        else:
            result = overlap_of_draws(log_densities(device.channel, np.concatenate(outputs), pair))
        counts = [
            np.bincount(np.argmax(output @ public.T, axis=1), minlength=len(public)) / len(output) for output in outputs
        ]
        top = np.argsort(-np.maximum(*counts), kind="stable")[:_OUTCOMES]
        names = [self._samples.public[row] for row in top.tolist()]
        named = outcomes(names, *(count[top] for count in counts), rest="nearest to another text")
        says = f"{told_apart(result)} The chances are those of the public text that lies nearest to an output."
        return Neighbours(*texts, result.middle, named, says)


def _points(pair: Floats, outputs: tuple[Floats, Floats]) -> tuple[Point, ...]:
    """Outputs in the plane in which both vectors lie, the line between them across."""
    across = _unit(pair[1] - pair[0])
    up = pair[0] + pair[1]
    up = _unit(up - (up @ across) * across)
    return tuple(
        Point(float(x), float(y), of)
        for of, private in enumerate(outputs)
        for x, y in zip((private @ across).tolist(), (private @ up).tolist(), strict=True)
    )


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 1e-12 else np.eye(vector.size)[0]
