"""Which texts of a bank stand best for others: from public texts, before a private one is seen.

Derivation: docs/mechanisms/sentences.md#sentences-thinning
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

__all__ = ["floors", "usual_size"]

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_STEPS, _QUERIES = 40, 256
_RATE, _SLOWER = 4.0, 20.0  # of the steps, and after how many they are shorter
_FARTHEST = 0.5  # that a logarithm of a floor moves in a step
_BINS = 8192  # of similarities, in which the end of S(x) is sought: nothing but the choice of texts rests on it
_SCORES = 1 << 23
_SEED = 2026  # public: equal banks are thinned alike
_VARIETY = 2  # times as many texts as carry the weight: it costs hardly any similarity


def floors(vectors: npt.NDArray[np.float32], epsilon: float) -> Floats:
    """(N,) the floors of the texts of a bank under which a draw is most similar to a public text."""
    count, ratio = len(vectors), math.exp(epsilon)
    inside = max(1.0, count / (1 + ratio))
    floor = np.full(count, 1 / (inside * ratio + count - inside))
    total = np.zeros(count)
    bits = RandomBits(seed=_SEED)
    for step in range(_STEPS):
        queries = bits.below(np.full(min(_QUERIES, count), count, dtype=np.uint64)).astype(np.int64)
        gain = _gradient(vectors, queries, floor, ratio) * _RATE / math.sqrt(1 + step / _SLOWER)
        floor *= np.exp(np.clip(gain, -_FARTHEST, _FARTHEST))
        mass = float(floor.sum())
        floor *= min(max(mass, 1.05 / ratio), 0.999) / mass  # S(x) holds something, and not everything
        if step >= _STEPS // 2:
            total += floor
    return total / (_STEPS - _STEPS // 2)


def usual_size(floor: Floats) -> int:
    """How many texts to keep: twice as many as carry the weight (the exponential of the entropy of their floors)."""
    share = floor / floor.sum()
    return min(len(floor), math.ceil(_VARIETY * math.exp(-float((share * np.log(share)).sum()))))


def _gradient(vectors: npt.NDArray[np.float32], queries: Rows, floor: Floats, ratio: float) -> Floats:
    """Equation (gradient)."""
    mass = (1 - float(floor.sum())) / (ratio - 1)  # (mass)
    at_once = max(1, _SCORES // len(vectors))
    parts = [queries[start : start + at_once] for start in range(0, len(queries), at_once)]
    found: list[Floats] = [np.empty(0)] * len(parts)

    def add(place: int) -> None:
        part = parts[place]
        scores = vectors[part] @ vectors.T
        scores[np.arange(len(part)), part] = -1.0
        sums = np.zeros(len(vectors))
        for each in scores:
            above = each - _end(each, floor, mass)
            sums += np.where(above > 0, ratio * above, above)
        found[place] = sums

    for_each_block(add, range(len(parts)))
    total: Floats = np.sum(found, axis=0)  # in one order: equal on any number of threads
    return total / len(queries)


def _end(similarity: npt.NDArray[np.float32], floor: Floats, mass: float) -> float:
    """The similarity at which the most similar texts hold so much of the floors."""
    places = np.clip((similarity + 1) * (_BINS / 2), 0, _BINS).astype(np.int64)
    held = np.cumsum(np.bincount(places, weights=floor, minlength=_BINS + 1)[::-1])
    return (_BINS - int(np.searchsorted(held, mass))) * 2 / _BINS - 1
