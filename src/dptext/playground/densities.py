"""How likely a private vector is for each of some vectors: the densities of randomizers, from their own constants."""

from __future__ import annotations

import math

import numpy as np

from dptext.representations.bounds import Floats
from dptext.representations.randomizer import Channel


def log_densities(channel: Channel, outputs: Floats, vectors: Floats) -> Floats:
    said = channel.parameters()
    if "cap_mass" in said:
        height, mass, chance = (float(said[name] or 0.0) for name in ("cap_height", "cap_mass", "cap_chance"))
        units = outputs / np.linalg.norm(outputs, axis=1, keepdims=True)
        inside, outside = math.log(chance / mass), math.log1p(-chance) - math.log1p(-mass)
        found: Floats = np.where(units @ vectors.T >= height, inside, outside)
        return found
    if "scale" in said:
        return log_l2_laplace(outputs, vectors, float(said["scale"] or 0.0))
    return -_squared(outputs, vectors) / (2 * float(said["sigma"] or 0.0) ** 2)


def log_l2_laplace(outputs: Floats, vectors: Floats, scale: float) -> Floats:
    """The same of noise of density proportional to exp(-||z|| / scale)."""
    found: Floats = -np.sqrt(_squared(outputs, vectors)) / scale
    return found


def _squared(outputs: Floats, vectors: Floats) -> Floats:
    """(n, m) squared distances."""
    squares = np.square(outputs).sum(axis=1)[:, None] + np.square(vectors).sum(axis=1) - 2 * outputs @ vectors.T
    found: Floats = np.maximum(squares, 0.0)
    return found
