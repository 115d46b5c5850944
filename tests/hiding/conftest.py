"""Vectors and texts with a task and attributes, one of which no linear reader finds; small trainings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dptext
from dptext.representations.encoders import CallableEncoder

LENGTHS = CallableEncoder(
    lambda texts: [[len(text), text.count("a"), text.count(" ")] for text in texts], name="lengths"
)
WORDS = ["sea", "a long ship", "a wheat field and a plough", "plough", "she", "his own sea", "a", "her ship sails"] * 8
LABELS = {"task": [0, 0, 1, 1, 0, 0, 1, 0] * 8, "attributes": {"group": ["f", "m"] * 32}}


def hiding(encoder=None, randomizer=None, **options):
    """An encoder with quick options."""
    usual = {"dimension": 6, "epochs": 6, "batch_size": 128, "learning_rate": 3e-3, "seed": 1, "public": True}
    return dptext.HidingEncoder(encoder, randomizer, **usual | options)


def small(**options):
    """An encoder that is trained on a few words."""
    usual = {"encoder": LENGTHS, "randomizer": dptext.PrivUnit(epsilon=6.0), "dimension": 2, "epochs": 2}
    return hiding(**usual | options).fit(WORDS, **LABELS)


@dataclass(frozen=True)
class Made:
    """Rows with the task to keep and the attributes to hide."""

    rows: Any
    task: Any
    attributes: dict[str, Any]

    @property
    def labels(self) -> dict[str, Any]:
        """As `HidingEncoder.fit` takes them."""
        return {"task": self.task, "attributes": self.attributes}

    def first(self, rows: int) -> "Made":
        """The first rows."""
        attributes = {name: labels[:rows] for name, labels in self.attributes.items()}
        return Made(self.rows[:rows], self.task[:rows], attributes)


@pytest.fixture(scope="session")
def made_vectors():
    """A task of three classes, a binary attribute (half of it an exclusive or), and one of three classes."""
    x, task, one, other = vectors()
    return Made(x, task, {"one": one, "other": other})


def vectors(rows=5000, seed=0):
    """(n, 24) vectors, a task of three classes, a binary attribute (half of it an exclusive or), one of three."""
    draw = np.random.default_rng(seed)
    task, one, other = draw.integers(0, 3, rows), draw.integers(0, 2, rows), draw.integers(0, 3, rows)
    x = draw.normal(size=(rows, 24))
    x[:, :3] += 2.5 * np.eye(3)[task]
    x[:, 3] += 1.5 * (2 * one - 1)
    sign = draw.choice([-1, 1], rows)
    x[:, 4] += 1.5 * sign
    x[:, 5] += 1.5 * sign * (2 * one - 1)
    x[:, 6:9] += 1.5 * np.eye(3)[other]
    return x @ np.random.default_rng(99).normal(size=(24, 24)) / 5, task, one, other
