"""A text becomes a private vector: where it may lie, and what somebody reads in it who knows the densities."""

from __future__ import annotations

import math

import numpy as np

from dptext.playground.densities import log_densities
from dptext.playground.in_words import SAME, attacker, promised, told_apart
from dptext.playground.overlaps import Between, likeliest, overlap_of_draws, right_in_draws
from dptext.playground.samples import Samples
from dptext.playground.shown import Attacker, Neighbours, Piece, Point, Shown
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian
from dptext.representations.bounds import Bound, Domain, Floats, fit_bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.dimension import best_dimension
from dptext.representations.encoders import MeanOfWords
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import randomizer_of
from dptext.vectors.word_vectors import WordVectors

_DIMENSION = 16  # where no best one is known
_OUTCOMES = 6
_DRAWS_EACH = 20  # of each text that the attacker knows
_DRAWS_OF_TWO = 2000
_POINTS = 150


class Vectors:
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
        """See `dptext.playground.ways.Playground.show`."""
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
            np.asarray(device.channel.sample(np.repeat(each[None], _DRAWS_OF_TWO, axis=0), bits), dtype=np.float64)
            for each in pair
        )
        drawn = np.asarray(device.encode([text] * draws), dtype=np.float64)
        nearest = np.argmax(drawn @ public.T, axis=1)
        guess = likeliest(log_densities(device.channel, drawn[:1], known), bits)[0]
        return Shown(
            way="vectors",
            epsilon=epsilon,
            **promised(device.statement),
            pieces=(Piece(text, None),),
            draws=tuple(self._samples.public[row] for row in nearest.tolist()),
            attacker=self._attacker(device, known, bits, self._known[1][guess]),
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
            found = best_dimension(self._public, self._randomizer(choice, 2.0**power))
            self._dimensions[choice, power] = _DIMENSION if found is None else found.dimension
        return self._dimensions[choice, power]

    def _bounded(self, device: DeviceEncoder, vectors: Floats) -> Floats:
        """Vectors as the channel sees them, before the noise."""
        return device.channel.domain.bound(device.bound.apply(vectors))

    def _attacker(self, device: DeviceEncoder, known: Floats, bits: RandomBits, guess: str) -> Attacker:
        private = device.channel.sample(np.repeat(known, _DRAWS_EACH, axis=0), bits)
        right = right_in_draws(log_densities(device.channel, np.asarray(private, dtype=np.float64), known))
        return attacker(
            f"that the text is one of {len(known)} (this one and texts of the sample, all equally likely)",
            right,
            1 / len(known),
            guess=guess,
        )

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
            apart = float(np.linalg.norm(pair[0] - pair[1]))
            found = Between.exactly(1.0 - gaussian_delta(sigma, epsilon=0.0, sensitivity=apart))
        else:
            found = overlap_of_draws(log_densities(device.channel, np.concatenate(outputs), pair))
        counts = [
            np.bincount(np.argmax(each @ public.T, axis=1), minlength=len(public)) / len(each) for each in outputs
        ]
        top = np.argsort(-np.maximum(*counts), kind="stable")[:_OUTCOMES]
        named = [(self._samples.public[row], float(counts[0][row]), float(counts[1][row])) for row in top.tolist()]
        left_one, left_other = (max(0.0, 1.0 - float(each[top].sum())) for each in counts)
        says = f"{told_apart(found)} The chances are those of the public text that lies nearest to an output."
        return Neighbours(*texts, found.middle, (*named, ("nearest to another text", left_one, left_other)), says)


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
