"""What fresh readers make of the vectors of held-out rows: how an epoch is judged.

The adversaries of the training are no measure of what it hides: the encoder was made to fool these very ones. So after
each epoch new readers are fitted, in closed form: least squares on the noisy vectors and on 256 rectified random
projections of them, which read what is linear and much of what is not, and are the same whenever they are asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dptext.hiding.targets import Codes, Target
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.domains import Floats

__all__ = ["TradeOff", "advantage", "measured"]

_FEATURES = 256
_RIDGE = 1e-2
_MOST_ROWS = 8192


@dataclass(frozen=True)
class TradeOff:
    """How much a fresh reader gets out of held-out vectors. 0: no more than a guess, 1: all of it.

    Each number is (b - 1/k) / (1 - 1/k), with b the mean over the k classes that are held out of the share of their
    rows that are read right, by a reader who knows which classes these are. NaN: less than two classes are held out, so
    nothing can be said, and a 0 would look as if all were hidden.

    Attributes:
        task: of the task.
        attributes: name to number; may be a little below 0 by chance.
        score: task - alpha times the mean over the attributes of what is above 0: the larger, the better. NaN where the
            task is not known, or none of the attributes.
    """

    task: float
    attributes: Mapping[str, float] = field(default_factory=dict)
    score: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))


def measured(
    read: tuple[Floats, npt.NDArray[np.intp]],
    held: tuple[Floats, npt.NDArray[np.intp]],
    task: Target,
    attributes: Sequence[Target],
    alpha: float,
) -> TradeOff:
    """Fresh readers fitted on some vectors, judged on others.

    Args:
        read: (n, d) noisy vectors to fit on, and the rows they belong to.
        held: those to judge on.
        task, attributes: labels of all rows.
        alpha: weight of the attributes.
    """
    fit, fit_rows = read[0][:_MOST_ROWS], read[1][:_MOST_ROWS]
    scale = float(np.sqrt(np.mean(fit**2))) or 1.0
    projection = _projection(fit.shape[1])
    known, asked = _features(fit / scale, projection), _features(held[0] / scale, projection)
    numbers = {
        target.name: advantage(known, target.codes[fit_rows], asked, target.codes[held[1]], len(target.classes))
        for target in attributes
    }
    useful = advantage(known, task.codes[fit_rows], asked, task.codes[held[1]], len(task.classes))
    known_ones = [max(each, 0.0) for each in numbers.values() if not math.isnan(each)]
    leaked = float(np.mean(known_ones)) if known_ones else math.nan
    return TradeOff(useful, numbers, useful - alpha * leaked if alpha else useful)


def advantage(known: Floats, labels: Codes, asked: Floats, truth: Codes, classes: int) -> float:
    """Of a least-squares reader that counts each class the same; rows without a label (-1) are left out.

    NaN where nothing can be said: no labels to learn from, or fewer than two classes to tell apart.
    """
    kept, judged = labels >= 0, truth >= 0
    labels, truth = labels[kept], truth[judged]
    present = np.unique(truth)
    if not labels.size or len(present) < 2:
        return math.nan
    counts = np.bincount(labels, minlength=classes)
    weights = 1 / np.maximum(counts, 1)[labels]
    wanted = np.eye(classes)[labels] - 1 / classes
    inputs = known[kept]
    gram = (inputs.T * weights) @ inputs
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    weighted = np.linalg.solve(gram, (inputs.T * weights) @ wanted)
    found = present[(asked[judged] @ weighted)[:, present].argmax(axis=1)]
    shares = [float(np.mean(found[truth == each] == each)) for each in present]
    return (float(np.mean(shares)) - 1 / len(present)) / (1 - 1 / len(present))


def _projection(width: int) -> Floats:
    """The same every time, for everybody: nothing hangs on it but that readers can be compared."""
    return RandomBits.keyed(seed_bytes(b"fresh readers", width)).normal(width + 1, _FEATURES)


def _features(vectors: Floats, projection: Floats) -> Floats:
    bent = np.maximum(vectors @ projection[:-1] / np.sqrt(vectors.shape[1]) + projection[-1], 0.0)
    return np.column_stack([vectors, bent, np.ones(len(vectors))])
