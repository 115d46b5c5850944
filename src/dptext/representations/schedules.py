"""How epsilon changes over the epochs of adaptive training, on which a server draws noise for *public* vectors.

A schedule is a name out of `SCHEDULES`, a list with an epsilon for each epoch, or a function of the epoch's number
(1, 2, ...). The names say what becomes of the *noise*, because epsilon goes the other way: the study that proposed
adaptive training writes that its noise decreases, but its sequence 10 / n makes it grow (Zouhri and Abecidan 2021,
algorithm 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dptext.errors import ParameterError

__all__ = ["SCHEDULES", "Schedule", "epsilons_of", "geometric"]

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
    ends = (_checked(first, "first"), _checked(last, "last"))
    if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 1:
        raise ParameterError(f"epochs must be an integer of at least 1, got {epochs!r}")
    return tuple(np.geomspace(*ends, int(epochs)).tolist())


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
        if schedule not in SCHEDULES:
            raise ParameterError(f"schedule must be one of {', '.join(map(repr, SCHEDULES))}, got {schedule!r}")
        return SCHEDULES[schedule](epochs)
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
    return tuple(_checked(epsilon, f"the schedule's epsilon of epoch {n}") for n, epsilon in enumerate(given, 1))


def _checked(epsilon: Any, name: str) -> float:
    number = isinstance(epsilon, int | float | np.integer | np.floating) and not isinstance(epsilon, bool)
    if not number or not 0 < epsilon < math.inf:
        raise ParameterError(f"{name} must be a number above 0, got {epsilon!r}")
    return float(epsilon)
