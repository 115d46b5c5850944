"""Distances for audits of metric claims, computed from the public vectors with formulas of their own.

Nothing is shared with the mechanisms: a claim names its metric, and what the name means stands here once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError

__all__ = ["Distance", "distance_named"]

Points: TypeAlias = npt.NDArray[np.float64]
Distance: TypeAlias = Callable[[Points, Points], npt.ArrayLike]
"""((n, d), (m, d)) float64 points -> (n, m) distances."""

_CALLERS = "caller's "
_ELLIPTICAL = re.compile(r"regularized mahalanobis \(lambda (\S+)\)")


def distance_named(
    metric: str, given: Distance | None, vocabulary: npt.NDArray[np.floating[Any]] | None = None
) -> Distance:
    """The distance of which a claim speaks: by its name, or the one given where it is a function of the caller.

    Args:
        metric: its name.
        given: the function, for a metric of the caller's.
        vocabulary: (V, d) all public points, which shape the regularized mahalanobis distance.

    Raises:
        ParameterError: a metric of which only the caller knows what it means, and no ``distance``; a ``distance``
            for a metric whose meaning is known.
    """
    name = metric.split(",")[0]
    known = _KNOWN.get(name)
    elliptical = _ELLIPTICAL.fullmatch(name)
    if elliptical is not None and vocabulary is not None:
        known = _mahalanobis(vocabulary, float(elliptical[1]))
    if known is not None and given is not None:
        raise ParameterError(f"the claim is in {name} distance, which is computed here: leave distance= out")
    if known is not None:
        return known
    if given is None:
        what = "is a function of its caller" if name.startswith(_CALLERS) else "is not known here"
        raise ParameterError(
            f"expected a claim in {', '.join(_KNOWN)} or regularized mahalanobis distance, got {name!r}, which {what}: "
            "give the function as distance="
        )
    return given


def _euclidean(rows: Points, matrix: Points) -> Points:
    return np.stack([np.sqrt(((matrix - row) ** 2).sum(axis=1)) for row in rows])


def _angular(rows: Points, matrix: Points) -> Points:
    """Radians; a row of zeros lies on the first axis. An arc cosine would be wrong by 1e-8 near 0."""
    ends = _directions(matrix)
    found = [
        np.arctan2(np.sqrt(((ends - start) ** 2).sum(axis=1)), np.sqrt(((ends + start) ** 2).sum(axis=1)))
        for start in _directions(rows)
    ]
    return 2.0 * np.stack(found)


def _directions(points: Points) -> Points:
    points = points.copy()
    points[~points.any(axis=1), 0] = 1.0
    directions: Points = points / np.sqrt((points**2).sum(axis=1, keepdims=True))
    return directions


def _manhattan(rows: Points, matrix: Points) -> Points:
    return np.stack([np.abs(matrix - row).sum(axis=1) for row in rows])


def _chebyshev(rows: Points, matrix: Points) -> Points:
    return np.stack([np.abs(matrix - row).max(axis=1) for row in rows])


def _poincare(rows: Points, matrix: Points) -> Points:
    """In the form with arsinh: arcosh(1 + 2 q) = 2 arsinh(sqrt(q)) without its cancellation."""
    ends = 1.0 - (matrix**2).sum(axis=1)
    found = [
        2.0 * np.arcsinh(np.sqrt(((matrix - row) ** 2).sum(axis=1) / ((1.0 - (row**2).sum()) * ends))) for row in rows
    ]
    return np.stack(found)


def _mahalanobis(vocabulary: npt.NDArray[np.floating[Any]], lambda_: float) -> Distance:
    """By solving with lambda S + (1 - lambda) I, S the covariance of all words over its mean variance."""
    points = vocabulary.astype(np.float64)
    covariance = np.atleast_2d(np.cov(points, rowvar=False, bias=True))
    variance = np.diag(covariance).mean()
    identity = np.eye(points.shape[1])
    shape = lambda_ * (covariance / variance if variance > 0 else identity) + (1 - lambda_) * identity
    return partial(_elliptical, shape)


def _elliptical(shape: Points, rows: Points, matrix: Points) -> Points:
    found = []
    for row in rows:
        steps = (matrix - row).T
        found.append(np.sqrt((steps * np.linalg.solve(shape, steps)).sum(axis=0)))
    return np.stack(found)


_KNOWN: dict[str, Distance] = {
    "euclidean": _euclidean,
    "angular": _angular,
    "manhattan": _manhattan,
    "chebyshev": _chebyshev,
    "poincare": _poincare,
}
