"""The votes of Private Evolution, counted and made noisy by its authors' own code (microsoft/DPSDA, MIT licence).

It is no package of a registry: clone https://github.com/microsoft/DPSDA and name the folder (``--pe``); it needs
omegaconf and pandas. Its package imports image models at once, which nothing here uses, so the files that count votes
are loaded by themselves.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import MissingExtraError, StorageError

_PACKAGES = ("pe", "pe.data", "pe.embedding", "pe.histogram", "pe.histogram.nearest_neighbor_backend", "pe.dp")


def noisy_votes(
    checkout: Path,
    private: npt.NDArray[np.float32],
    private_labels: npt.NDArray[np.intp],
    candidates: npt.NDArray[np.float32],
    classes: int,
    *,
    epsilon: float,
    delta: float,
) -> npt.NDArray[np.float64]:
    """(K, n) the noisy number of private texts of each class whose nearest candidate (by cosine) each is: one round.

    Its noise is numpy's, in double precision, from numpy's global generator: seed that for repeatable runs.

    Raises:
        StorageError: no such checkout.
    """
    package = _loaded(checkout)
    gaussian = package("pe.dp.gaussian").Gaussian()
    gaussian.set_epsilon_and_delta(num_iterations=1, epsilon=epsilon, delta=delta, noise_multiplier=None)
    votes = package("pe.histogram.nearest_neighbors").NearestNeighbors(
        embedding=_Given(), mode="cos_sim", lookahead_degree=0, backend="sklearn"
    )
    data = package("pe.data.data").Data
    noisy = package("pe.constant.data").DP_HISTOGRAM_COLUMN_NAME
    result = np.empty((classes, len(candidates)))
    for index in range(classes):
        own = data(_frame(private[private_labels == index]))
        _, counted = votes.compute_histogram(own, data(_frame(candidates)))
        result[index] = gaussian.add_noise(counted).data_frame[noisy]
    return result


class _Given:
    """In place of an embedding: vectors that are there."""

    column_name = "vector"

    def compute_embedding(self, data: Any) -> Any:
        return data


def _frame(vectors: npt.NDArray[np.float32]) -> Any:
    import pandas as pd

    return pd.DataFrame({"vector": list(vectors)})


def _loaded(checkout: Path) -> Any:
    """What imports a module of the checkout, without what its packages import at once."""
    for module in ("omegaconf", "pandas"):
        if find_spec(module) is None:
            raise MissingExtraError(f"Private Evolution's code needs {module}: pip install omegaconf pandas")
    if not (checkout / "pe" / "dp" / "gaussian.py").exists():
        raise StorageError(
            f"expected a clone of https://github.com/microsoft/DPSDA at {str(checkout)!r}: it has no pe/dp/gaussian.py"
        )
    for name in _PACKAGES:
        if name not in sys.modules:
            module = sys.modules[name] = ModuleType(name)
            module.__path__ = [str(checkout.joinpath(*name.split(".")))]
    sys.modules["pe.data"].Data = import_module("pe.data.data").Data  # type: ignore[attr-defined]
    sys.modules["pe.dp"].DP = import_module("pe.dp.dp").DP  # type: ignore[attr-defined]
    sys.modules["pe.histogram"].Histogram = import_module("pe.histogram.histogram").Histogram  # type: ignore[attr-defined]
    sys.modules["pe.embedding"].Embedding = import_module("pe.embedding.embedding").Embedding  # type: ignore[attr-defined]
    return import_module
