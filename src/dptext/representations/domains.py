"""Where a randomizer takes its vectors from, and how far two of them can be apart there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.guarantee import Relation

__all__ = ["Domain", "Floats", "Sensitivity"]

Floats = npt.NDArray[np.float64]

_SHRINK = 1 - 2.0**-30  # more than what rounding in a norm of up to 2^20 coordinates can be off by


@dataclass(frozen=True)
class Sensitivity:
    """How far a change that the relation allows can move a vector, in the norms that noise is scaled to."""

    relation: Relation
    l1: float
    l2: float
    largest: float


class Domain(StrEnum):
    """A set of vectors of a dimension d, of radius 1."""

    SPHERE = "unit sphere"
    """Euclidean length 1."""
    BALL = "unit ball"
    """Euclidean length at most 1."""
    CUBE = "unit cube"
    """Every coordinate between -1 and 1."""
    ONE_HOT = "one-hot"
    """One coordinate is 1, the others are 0."""

    def bound(self, vectors: npt.ArrayLike) -> Floats:
        """(n, d) float64 vectors of this domain, of any (n, d) values."""
        given = np.nan_to_num(np.array(vectors, dtype=np.float64), copy=False, nan=0.0)
        if self is Domain.CUBE:
            return np.clip(given, -1.0, 1.0, out=given)
        if self is Domain.ONE_HOT:
            marked = np.zeros_like(given)
            marked[np.arange(len(given)), given.argmax(axis=1)] = 1.0
            return marked
        with np.errstate(all="ignore"):  # a caller may have told numpy to raise where a small number becomes 0
            return _onto_sphere(given) if self is Domain.SPHERE else _into_ball(given)

    def sensitivity(self, dimension: int, relation: Relation = Relation.SUBSTITUTION) -> Sensitivity:
        """How far two vectors of the domain can be apart, or (add/remove) one from nothing at all."""
        root = math.sqrt(dimension)
        l1, l2, largest = {
            Domain.SPHERE: (root, 1.0, 1.0),
            Domain.BALL: (root, 1.0, 1.0),
            Domain.CUBE: (float(dimension), root, 1.0),
            Domain.ONE_HOT: (1.0, 1.0, 1.0),
        }[self]
        if relation is Relation.ADD_REMOVE:
            return Sensitivity(relation, l1, l2, largest)
        if self is Domain.ONE_HOT:
            return Sensitivity(relation, 2.0, math.sqrt(2.0), 1.0)
        return Sensitivity(relation, 2 * l1, 2 * l2, 2 * largest)


def _onto_sphere(vectors: Floats) -> Floats:
    vectors /= np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), 5e-324)  # no square overflows
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors[lengths == 0.0, 0] = 1.0
    vectors /= np.where(lengths == 0.0, 1.0, lengths)[:, None]
    return vectors


def _into_ball(vectors: Floats) -> Floats:
    largest = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), 1.0)
    vectors /= largest[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    # all are shrunk a little, so that rounding leaves none outside
    vectors *= (_SHRINK / np.maximum(lengths, 1 / largest))[:, None]
    return vectors


def row_products(rows: Floats, matrix: Floats) -> Floats:
    """(n, d) ``rows @ matrix``, row by row: how BLAS rounds a row then does not depend on how many others there are."""
    products: Floats = (rows[:, None] @ matrix)[:, 0]
    return products


def checked_vectors(vectors: npt.ArrayLike, dimension: int | None = None) -> Floats:
    """The vectors as (n, d) float64; their values are not looked at: beyond doubles, a number is infinite."""
    array = _as_doubles(vectors)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ParameterError(f"vectors must have the shape (n, d), got {array.shape}: one vector is [vector]")
    if dimension is not None and array.shape[1] != dimension:
        raise ParameterError(f"expected vectors of {dimension} numbers, got {array.shape[1]}")
    return array


def _as_doubles(vectors: npt.ArrayLike) -> Floats:
    # None is numpy's NaN; text is refused as a type, or "7" would pass where "seven" raises
    try:
        given = np.asarray(vectors)
        if given.dtype.kind in "biuf":
            with np.errstate(all="ignore"):  # wider floats overflow quietly
                return given.astype(np.float64, copy=False)
        if given.dtype.kind == "O":
            doubles: Floats = np.frompyfunc(_as_double, 1, 1)(given).astype(np.float64)
            return doubles
    except (TypeError, ValueError):
        pass
    raise ParameterError("vectors must be an array of numbers of shape (n, d), got something else")


def _as_double(number: Any) -> float:
    if number is None:
        return math.nan
    if isinstance(number, str | bytes):
        raise TypeError
    try:
        return float(number)
    except OverflowError:  # integers have no infinity of their own
        return math.inf if number > 0 else -math.inf
