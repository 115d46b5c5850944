"""Plain, robust and adaptive training: which noise a server draws in an epoch, and on whose vectors.

Derivation: docs/mechanisms/private-vectors.md#representations-training
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
    """From ``first`` to ``last`` by a constant factor: noise rises where ``last`` is the smaller one."""
    ends = (number("first", first, above=0), number("last", last, above=0))
    return tuple(np.geomspace(*ends, whole("epochs", epochs, least=1)).tolist())


def epsilons_of(schedule: Any, epochs: int) -> tuple[float, ...]:
    """The epsilon of each epoch."""
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
    """The noise of one training run, epoch by epoch."""

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
        """(n, d) **public** vectors of the channel's domain as the network sees them in an epoch (1, 2, ...)."""
        if self.training == "plain":
            return vectors if self.channel is None else self.channel.noiseless(vectors)
        channel = self._channels[epoch - 1] if epoch and self._channels else self.channel
        if channel is None:
            raise ParameterError(
                "robust training draws the users' noise on public vectors: give the channel, or training='plain'"
            )
        return channel.sample(vectors, self._streams[epoch]).astype(np.float64)

    def on_arrived(self, epoch: int, vectors: Floats) -> Floats:
        """(n, k) vectors that **arrived noisy** as the network sees them in an epoch: noise on top, or none."""
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
