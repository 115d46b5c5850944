"""Public maps from a sentence's vector to a direction in a few dimensions, and the one-bit channel for one of them.

Everything here is fitted on public texts (for IMDb: Amazon and Yelp with their labels, and so on).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import linear_prior
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import Channel

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Projection:
    """x -> (x - centre) @ axes, on the unit sphere."""

    centre: Floats
    axes: Floats

    def __call__(self, vectors: Floats) -> Floats:
        return Domain.SPHERE.bound((vectors - self.centre) @ self.axes)


def raw(public: Floats) -> Projection:
    """No centre, no projection."""
    return Projection(np.zeros(public.shape[1]), np.eye(public.shape[1]))


def centred(public: Floats) -> Projection:
    """Without the public mean."""
    return Projection(public.mean(axis=0), np.eye(public.shape[1]))


def principal(public: Floats, dimension: int) -> Projection:
    """The first principal axes of the public vectors."""
    centre = public.mean(axis=0)
    return Projection(centre, np.linalg.svd(public - centre, full_matrices=False)[2][:dimension].T)


def supervised(public: Floats, labels: Labels, dimension: int) -> Projection:
    """First the score of a linear classifier of the public labels, then the principal axes of what is left.

    The score has variance 1 over the public vectors, and so have the other axes together: half of the direction's
    energy is in what is known to matter.
    """
    centre = public.mean(axis=0)
    vectors = public - centre
    weights = linear_prior(vectors, labels, 2).weights
    score_axis = weights[:, 1] - weights[:, 0]
    score_axis = score_axis / (vectors @ score_axis).std()
    score = vectors @ score_axis
    shadow = vectors.T @ score / (score @ score)  # what of x the score predicts
    left = vectors - np.outer(score, shadow)
    _, spread, axes = np.linalg.svd(left, full_matrices=False)
    others = axes[: dimension - 1].T
    others = others - np.outer(score_axis, shadow @ others)  # the same axes, of x as it comes
    scale = math.sqrt(len(public)) / max(float(np.linalg.norm(spread[: dimension - 1])), 1e-12)
    return Projection(centre, np.column_stack([score_axis, others * scale]))


class Sign(Channel):
    """Randomised response on the sign of one number: z = +-1 / (2 p - 1), p = e^epsilon / (1 + e^epsilon). Unbiased.

    Pure epsilon. No epsilon-LDP output agrees with a given classifier's decision more often than p.
    """

    name = "Sign"
    domain = Domain.SPHERE
    dimension = width = 1

    def __init__(self, epsilon: float) -> None:
        self.guarantee = PureDP(epsilon)
        self.chance = 1 / (1 + math.exp(-epsilon))
        self.expected_squared_error = 1 / math.tanh(epsilon / 2) ** 2 - 1

    def _sample(self, vectors: Floats, bits: RandomBits) -> npt.NDArray[np.float32]:
        signs = np.where(vectors < 0, -1.0, 1.0) * np.where(bits.uniform(*vectors.shape) <= self.chance, 1.0, -1.0)
        return (signs / (2 * self.chance - 1)).astype(np.float32)

    def debiased_second_moment(self, moment: Floats) -> Floats:
        return np.ones_like(moment)  # the square of a sign


def channel_for(epsilon: float, dimension: int) -> Channel:
    """PrivUnit2, or in one dimension, where it is that, randomised response."""
    return Sign(epsilon) if dimension == 1 else PrivUnit(epsilon=epsilon).channel(dimension)
