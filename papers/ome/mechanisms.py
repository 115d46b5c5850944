"""The protocols of the paper and the mechanisms with a proof, by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.representations.additive import L2Laplace
from dptext.representations.bits import OneBit, WeightedBits
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import OME, OUE, SUE
from dptext.representations.randomizer import Channel

PUBLISHED = ("SUE", "OUE", "OME")
OURS = {"PrivUnit": 4, "L2Laplace": 1, "WeightedBits": 1, "OneBit": 1}
"""With how many public directions for each unit of epsilon: about what their errors ask for."""
BITS, INTEGER_BITS = 10, 4

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sent:
    """What the server gets, numbers or bits; ``channel``: what it knows of the noise, None where it knows nothing."""

    noisy: npt.NDArray[Any]
    clean: npt.NDArray[Any]
    channel: Channel | None
    dimension: int


@cache
def channel_of(name: str, epsilon: float, dimension: int, *, lambda_: float | None = None) -> Any:
    """The channel for vectors of a dimension, at the epsilon as printed or as proved."""
    if name == "OME":
        ome = OME(
            epsilon=epsilon, lambda_=lambda_ or 100.0, bits=BITS, integer_bits=INTEGER_BITS, unsafe_as_published=True
        )
        return ome.channel(dimension)
    if name in PUBLISHED:
        build: Any = {"SUE": SUE, "OUE": OUE}[name]
        return build(epsilon=epsilon, bits=BITS, integer_bits=INTEGER_BITS, unsafe_as_published=True).channel(dimension)
    ours: Any = {"PrivUnit": PrivUnit, "L2Laplace": L2Laplace, "WeightedBits": WeightedBits, "OneBit": OneBit}[name]
    return ours(epsilon=epsilon).channel(dimension)


def true_epsilon(name: str, epsilon: float, dimension: int, *, lambda_: float | None = None) -> float:
    """What is proved: ours is what was asked for, but for rounding."""
    return float(channel_of(name, epsilon, dimension, lambda_=lambda_).guarantee.epsilon)
