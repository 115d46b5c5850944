"""The part of the encoder that is trained on vectors: layers on standardised inputs (torch)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.representations.layers import HidingLayers, layers_of

__all__ = ["LayersBody"]

Rows = npt.NDArray[np.int64]

_SMALLEST = 1e-30


class LayersBody:
    """Layers from (n, D) vectors to d dimensions; see `dptext.hiding.training.Source`.

    Args:
        torch: the module.
        vectors: (n, D) of all rows.
        rows: those to train on, whose mean and spread the inputs are standardised by.
        hidden: units of a hidden layer, or None.
        dimension: d.
    """

    def __init__(
        self, torch: Any, vectors: npt.NDArray[np.float32], rows: Rows, hidden: int | None, dimension: int
    ) -> None:
        if hidden is not None and (isinstance(hidden, bool) or not isinstance(hidden, int | np.integer) or hidden < 1):
            raise ParameterError("hidden must be the number of units of a hidden layer, at least 1, or None")
        seen = vectors[rows].astype(np.float64)
        self._centre = seen.mean(axis=0)
        spread = seen.std(axis=0)
        # what hardly varies is not blown up, and nothing beyond what float32 holds
        self._scale = np.maximum(spread, max(1e-3 * (spread.max() or 1.0), _SMALLEST))
        self._inputs = torch.from_numpy(((vectors - self._centre) / self._scale).astype(np.float32))
        width = vectors.shape[1]
        modules: list[Any] = []
        if hidden is not None:
            modules += [torch.nn.Linear(width, int(hidden)), torch.nn.ReLU()]
            width = int(hidden)
        self.module = torch.nn.Sequential(*modules, torch.nn.Linear(width, dimension))
        self._torch = torch

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        """The rows of each batch, in their order."""
        for start in range(0, len(order), size):
            yield order[start : start + size]

    def take(self, rows: Rows) -> Any:
        """Their inputs."""
        return self._inputs[self._torch.from_numpy(rows)]

    def layers(self) -> HidingLayers:
        """What was learnt, for vectors as they are."""
        return layers_of(self.module, self._centre, self._scale)
