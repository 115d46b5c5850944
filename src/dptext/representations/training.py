"""Plain, robust and adaptive training: which noise a server draws in an epoch, and on whose vectors.

A server holds vectors of two kinds. *Public* ones it has as a device has them before the noise, so it may draw the
noise on them as often as it likes. *Private* ones arrived with their noise, drawn once; the vectors below it the server
never had. Whoever did have them and drew noise anew in each epoch would make a release in each epoch, and would have to
promise the sum of all. So nothing here takes a raw private vector: on what arrived, noise is added **on top** only,
which is post-processing and costs nothing.

============  ==================================================  =================================================
training      public vectors                                      vectors that arrived
============  ==================================================  =================================================
plain         as the channel makes them, without its noise        as they are
robust        through the users' channel, anew in each epoch      as they are: their noise is the users' already
adaptive      in epoch n through the channel at epsilon_n, anew   normal noise on top, as much as a channel at
                                                                  epsilon_n has more than the users'; none where it
                                                                  has less
============  ==================================================  =================================================

Plain is the "non-robust" training of Zouhri and Abecidan 2021, robust the one of Lyu, He and Li 2020 (algorithm 1), and
adaptive that of the former (algorithm 3), meant for servers that do not know at which epsilon their users send. All
three were proposed for public vectors.

How epsilon changes over the epochs of adaptive training is a *schedule*: a name out of `SCHEDULES`, a list with an
epsilon for each epoch, or a function of the epoch's number (1, 2, ...). The names say what becomes of the *noise*,
because epsilon goes the other way: the study that proposed adaptive training writes that its noise decreases, but its
sequence 10 / n makes it grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dptext.checks import choice, number, whole
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.domains import Floats
from dptext.representations.randomizer import Channel, Randomizer

__all__ = ["SCHEDULES", "TRAININGS", "Schedule", "TrainingNoise", "epsilons_of", "geometric"]

Schedule = str | Sequence[float] | Callable[[int], float]

SCHEDULES: dict[str, Callable[[int], tuple[float, ...]]] = {
    "noise-rises-1/n": lambda epochs: tuple(1.0 / n for n in range(1, epochs + 1)),
    "noise-rises-10/n": lambda epochs: tuple(10.0 / n for n in range(1, epochs + 1)),
    "noise-falls-10/n": lambda epochs: tuple(10.0 / n for n in range(epochs, 0, -1)),
}
"""By name: from the number of epochs to an epsilon for each. The first two are the study's; the last is the second one
backwards."""


def geometric(first: float, last: float, epochs: int) -> tuple[float, ...]:
    """From ``first`` to ``last`` by a constant factor: noise rises where ``last`` is the smaller one.

    Raises:
        ParameterError: an epsilon that is not above 0, or no epoch.

    >>> geometric(8.0, 2.0, 3)
    (8.0, 4.0, 2.0)
    """
    ends = (number("first", first, above=0), number("last", last, above=0))
    return tuple(np.geomspace(*ends, whole("epochs", epochs, least=1)).tolist())


def epsilons_of(schedule: Any, epochs: int) -> tuple[float, ...]:
    """The epsilon of each epoch.

    Raises:
        ParameterError: no such schedule; a list that is too short; an epsilon that is not above 0: its epoch is named.

    >>> epsilons_of("noise-rises-10/n", 4)
    (10.0, 5.0, 3.3333333333333335, 2.5)
    >>> epsilons_of(lambda epoch: 2.0 * epoch, 3)
    (2.0, 4.0, 6.0)
    """
    if isinstance(schedule, str):
        return SCHEDULES[choice("schedule", schedule, SCHEDULES)](epochs)
    if callable(schedule):
        given = [schedule(epoch) for epoch in range(1, epochs + 1)]
    elif isinstance(schedule, Sequence | np.ndarray):
        if len(schedule) < epochs:
            raise ParameterError(f"schedule must have an epsilon for each of {epochs} epochs, got {len(schedule)}")
        given = list(schedule[:epochs])
    else:
        raise ParameterError(
            "schedule must be a name, a list of epsilons or a function of the epoch's number, got "
            f"{type(schedule).__name__}"
        )
    return tuple(number(f"the schedule's epsilon of epoch {n}", epsilon, above=0) for n, epsilon in enumerate(given, 1))


TRAININGS = ("plain", "robust", "adaptive")


class TrainingNoise:
    """The noise of one training run, epoch by epoch.

    Args:
        channel: the users' noise; None: not known.
        randomizer: what the channel was calibrated from, for adaptive training, which calibrates it to other epsilons.
        epochs: how many there are at most.
        seed: None: fresh noise each time. No privacy rests on it: what is public needs none, and what arrived has it.

    Attributes:
        epsilons: of each epoch in adaptive training; else empty.

    Raises:
        ParameterError: no such training; adaptive without a randomizer; a schedule that gives what is no epsilon.
    """

    def __init__(
        self,
        training: str,
        channel: Channel | None,
        randomizer: Randomizer | None,
        *,
        schedule: Any,
        epochs: int,
        seed: int | None,
    ) -> None:
        self.training = choice("training", training, TRAININGS)
        self.channel = channel
        self.epsilons: tuple[float, ...] = ()
        self._channels: tuple[Channel, ...] = ()
        if training == "adaptive":
            if channel is None or randomizer is None:
                raise ParameterError(
                    "adaptive training draws noise at other epsilons than the users': give the randomizer, or the "
                    "statement that came with the vectors, as channel"
                )
            self.epsilons = epsilons_of(schedule, epochs)
            self._channels = tuple(
                replace(randomizer, epsilon=each).channel(channel.dimension) for each in self.epsilons
            )
            if any(each.width != channel.width for each in self._channels):
                raise ParameterError(f"{randomizer.name} puts out vectors of other widths at the schedule's epsilons")
        bits = RandomBits() if seed is None else RandomBits.keyed(seed_bytes(b"noise of a training", seed))
        self._streams = bits.spawn(epochs + 1)

    def on_public(self, epoch: int, vectors: Floats) -> Floats:
        """(n, d) **public** vectors of the channel's domain as the network sees them in an epoch (1, 2, ...).

        Epoch 0: as those are that are held out: with the users' noise, unless nothing is known of it.
        """
        if self.training == "plain":
            return vectors if self.channel is None else self.channel.noiseless(vectors)
        channel = self._channels[epoch - 1] if epoch and self._channels else self.channel
        if channel is None:
            raise ParameterError(
                "robust training draws the users' noise on public vectors: give the channel, or training='plain'"
            )
        return channel.sample(vectors, self._streams[epoch]).astype(np.float64)

    def on_arrived(self, epoch: int, vectors: Floats) -> Floats:
        """(n, k) vectors that **arrived noisy** as the network sees them in an epoch: noise on top, or none.

        Raises:
            ParameterError: adaptive, and the channel's outputs are no vectors that more noise could be added to.
        """
        deviation = self._lacking(epoch)
        if not deviation:
            return vectors
        return vectors + deviation * self._streams[epoch].normal(*vectors.shape)

    def _lacking(self, epoch: int) -> float:
        """Standard deviation, on a coordinate, of what the users' noise lacks to that of the epoch."""
        if not epoch or not self._channels:
            return 0.0
        assert self.channel is not None
        has, wanted = self.channel.expected_squared_error, self._channels[epoch - 1].expected_squared_error
        if not (math.isfinite(has) and math.isfinite(wanted)):
            raise ParameterError(
                f"what {self.channel.name} puts out estimates no vector, so there is no telling how much noise is to "
                "come on top of it: train on public vectors (fit_public), or with training='robust'"
            )
        return math.sqrt(max(wanted - has, 0.0) / self.channel.width)

    def pooled(self, seen: Callable[[int, Floats], Floats], vectors: Floats) -> float:
        """The root mean square of a coordinate over all epochs: in adaptive training no single one is typical."""
        sample = vectors[:: max(1, len(vectors) // 512)]
        epochs = range(1, len(self.epsilons) + 1) if self.epsilons else range(1)
        return math.sqrt(float(np.mean([np.mean(seen(epoch, sample) ** 2) for epoch in epochs]))) or 1.0
