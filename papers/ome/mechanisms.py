"""The protocols of the paper and the mechanisms with a proof, by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy.typing as npt

from dptext.representations.additive import L2Laplace
from dptext.representations.bits import OneBit, WeightedBits
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import OME, OUE, SUE
from dptext.representations.randomizer import Channel

PUBLISHED = ("SUE", "OUE", "OME")
PROVED = {"PrivUnit": 4, "L2Laplace": 1, "WeightedBits": 1, "OneBit": 1}
"""Mechanisms with a proof, and their number of public directions per unit of epsilon."""
BITS, INTEGER_BITS = 10, 4
_BUILDERS: dict[str, Any] = {"SUE": SUE, "OUE": OUE, "OME": OME, "PrivUnit": PrivUnit, "L2Laplace": L2Laplace}
_BUILDERS |= {"WeightedBits": WeightedBits, "OneBit": OneBit}


@dataclass(frozen=True, eq=False)
class Sent:
    """Vectors or bits that the server receives, and the same without noise.

    ``channel`` is the noise that the server knows; None if it is unknown.
    """

    noisy: npt.NDArray[Any]
    clean: npt.NDArray[Any]
    channel: Channel | None
    dimension: int


@cache
def channel_of(name: str, epsilon: float, dimension: int, *, lambda_: float | None = None) -> Any:
    """Return the channel for vectors of a dimension, at the printed or the proved epsilon."""
    options: dict[str, Any] = {}
    if name in PUBLISHED:
        options = {"bits": BITS, "integer_bits": INTEGER_BITS, "unsafe_as_published": True}
    if name == "OME":
        options["lambda_"] = lambda_ or 100.0
    return _BUILDERS[name](epsilon=epsilon, **options).channel(dimension)


def true_epsilon(name: str, epsilon: float, dimension: int, *, lambda_: float | None = None) -> float:
    """Return the proved epsilon."""
    return float(channel_of(name, epsilon, dimension, lambda_=lambda_).guarantee.epsilon)
