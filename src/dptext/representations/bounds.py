"""Domains of randomizers, and public centring, projection and bounding of vectors into them.

Derivation: docs/mechanisms/private-vectors.md#representations-bounds
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.validation import check_choice, check_float, check_int

Floats = npt.NDArray[np.float64]

_SHRINK = 1 - 2.0**-30  # more than the rounding error of a norm of up to 2^20 coordinates


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
        """Map any (n, d) values to (n, d) float64 vectors of this domain."""
        values = np.nan_to_num(np.array(vectors, dtype=np.float64), copy=False, nan=0.0)
        if self is Domain.CUBE:
            return np.clip(values, -1.0, 1.0, out=values)
        if self is Domain.ONE_HOT:
            marked = np.zeros_like(values)
            marked[np.arange(len(values)), values.argmax(axis=1)] = 1.0
            return marked
        with np.errstate(all="ignore"):  # the caller's numpy settings may raise on underflow
            return _onto_sphere(values) if self is Domain.SPHERE else _into_ball(values)

    def sensitivity(self, dimension: int) -> tuple[float, float]:
        """Return the largest L1 and L2 distances between two vectors of the domain."""
        root = math.sqrt(dimension)
        return {
            Domain.SPHERE: (2 * root, 2.0),
            Domain.BALL: (2 * root, 2.0),
            Domain.CUBE: (2.0 * dimension, 2 * root),
            Domain.ONE_HOT: (2.0, math.sqrt(2.0)),
        }[self]


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
    # all are shrunk slightly, so that rounding moves none outside
    vectors *= (_SHRINK / np.maximum(lengths, 1 / largest))[:, None]
    return vectors


def row_products(rows: Floats, matrix: Floats) -> Floats:
    """Return (n, d) ``rows @ matrix``, row by row: BLAS would round a row differently among other rows."""
    return (rows[:, None] @ matrix)[:, 0]


def check_vectors(vectors: npt.ArrayLike, dimension: int | None = None) -> Floats:
    """Return the vectors as (n, d) float64 without checking their values; numbers beyond doubles become infinite."""
    array = _as_doubles(vectors)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ParameterError(f"vectors must have shape (n, d), got {array.shape}. Pass a single vector as [vector]")
    if dimension is not None and array.shape[1] != dimension:
        raise ParameterError(f"expected vectors of {dimension} numbers, got {array.shape[1]}")
    return array


def _as_doubles(vectors: npt.ArrayLike) -> Floats:
    # None is numpy's NaN; text is refused as a type, or "7" would pass where "seven" raises
    try:
        values = np.asarray(vectors)
        if values.dtype.kind in "biuf":
            with np.errstate(all="ignore"):  # wider floats overflow quietly
                return values.astype(np.float64, copy=False)
        if values.dtype.kind == "O":
            doubles: Floats = np.frompyfunc(_as_double, 1, 1)(values).astype(np.float64)
            return doubles
    except (TypeError, ValueError):
        pass
    raise ParameterError("vectors must be a numeric array of shape (n, d)")


def _as_double(number: Any) -> float:
    if number is None:
        return math.nan
    if isinstance(number, str | bytes):
        raise TypeError
    try:
        return float(number)
    except OverflowError:  # integers have no infinity
        return math.inf if number > 0 else -math.inf


# -- projections ---------------------------------------------------------------------------------------------------

PROJECTIONS = ("pca", "random", "supervised")

_SEED = 7
_SHRINKAGE = 0.5
_REST = 0.5
"""Norm of the remainder of a vector relative to its discriminant part, as a root mean square."""


def random_directions(inputs: int, dimension: int) -> Floats:
    """Return (inputs, dimension) uniformly distributed orthonormal columns from a fixed public seed."""
    normal = RandomBits(seed=_SEED).normal(inputs, dimension)
    columns, triangle = np.linalg.qr(normal)
    return columns * np.where(np.diag(triangle) < 0, -1.0, 1.0)


def principal_directions(centred: Floats, dimension: int) -> Floats:
    """Return (D, dimension) orthonormal principal directions of (n, D) centred public vectors, largest first."""
    _, columns = np.linalg.eigh(centred.T @ centred / len(centred))
    return _signed(columns[:, ::-1][:, :dimension])


def discriminant_directions(centred: Floats, labels: Sequence[Any] | npt.NDArray[Any], dimension: int) -> Floats:
    """Return (D, dimension) columns: linear discriminants of public labels, then other principal directions."""
    codes, classes = _codes(labels, len(centred))
    means = np.stack([centred[codes == code].mean(axis=0) for code in range(classes)])
    within = centred - means[codes]
    width = centred.shape[1]
    scatter = within.T @ within / len(centred)
    spread = float(np.einsum("ij,ij->", centred, centred)) / len(centred) / width
    root = np.linalg.cholesky((1 - _SHRINKAGE) * scatter + _SHRINKAGE * spread * np.eye(width))
    shares = np.bincount(codes, minlength=classes) / len(codes)
    between = np.linalg.solve(root, means.T * np.sqrt(shares))
    main = np.linalg.svd(between, full_matrices=False)[0][:, : min(classes - 1, width, dimension)]
    discriminants = _signed(np.linalg.solve(root.T, main))
    kept = dimension - discriminants.shape[1]
    if kept == 0:
        return discriminants
    basis = np.linalg.qr(discriminants)[0]
    left = centred - (centred @ basis) @ basis.T
    # orthogonal to the basis even where nothing is left
    _, columns = np.linalg.eigh(left.T @ left / len(left) - spread * width * basis @ basis.T)
    rest = _signed(columns[:, ::-1][:, :kept])
    length, task = (float(np.sqrt(((centred @ part) ** 2).sum(axis=1).mean())) for part in (rest, discriminants))
    return np.hstack([discriminants, rest * (_REST * task / length if length > 1e-12 * task else 1.0)])


def _codes(labels: Sequence[Any] | npt.NDArray[Any], count: int) -> tuple[npt.NDArray[np.int64], int]:
    try:
        classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    except (TypeError, ValueError):
        raise ParameterError("public labels must be a list of numbers or strings, one per text") from None
    if codes.shape != (count,):
        raise ParameterError(f"public labels must have {count} entries, one per text, got shape {np.shape(labels)}")
    if len(classes) < 2:
        raise ParameterError("a supervised projection needs at least two different public labels")
    return codes.astype(np.int64), len(classes)


def _signed(columns: Floats) -> Floats:
    largest = columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])]
    return columns * np.where(largest < 0, -1.0, 1.0)


# -- bounds --------------------------------------------------------------------------------------------------------

BOUNDS = {"normalise": Domain.SPHERE, "clip": Domain.BALL, "cube": Domain.CUBE, "one-hot": Domain.ONE_HOT}
"""The domain of each kind of bound."""
NATURAL: dict[Domain, str] = {domain: kind for kind, domain in BOUNDS.items()}
TRAINED_INTO: dict[Domain, str] = {domain: kind for domain, kind in NATURAL.items() if domain is not Domain.ONE_HOT}
"""The kinds of bound that have a gradient."""

_SCALED = ("clip", "cube")
_QUANTILE = 0.9
_HUGE = 1e38
_SMALLEST, _LARGEST = 1e-30, 1e30


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """Map of an encoder's vectors into a domain: subtract ``mean``, project, divide by ``radius``, and bound."""

    mean: Floats
    directions: Floats | None = None
    kind: str = "normalise"
    radius: float | None = None
    projection: str | None = None
    public_name: str | None = None
    public_texts: int = 0

    def __post_init__(self) -> None:
        mean = _frozen(self.mean)
        if mean.ndim != 1 or mean.size == 0 or not np.isfinite(mean).all():
            raise ParameterError(f"mean must be a one-dimensional array of finite numbers, got shape {mean.shape}")
        object.__setattr__(self, "mean", mean)
        if self.directions is not None:
            directions = _frozen(self.directions)
            fits = directions.ndim == 2 and len(directions) == mean.size and 0 < directions.shape[1] <= mean.size
            if not fits or not np.isfinite(directions).all():
                raise ParameterError(
                    f"directions must be finite with shape at most ({mean.size}, {mean.size}), got {directions.shape}"
                )
            object.__setattr__(self, "directions", directions)
        check_choice("kind", self.kind, BOUNDS)
        if self.kind in _SCALED:
            radius = check_float(f"the radius of {self.kind!r}", self.radius, minimum=_SMALLEST, maximum=_LARGEST)
            object.__setattr__(self, "radius", radius)
        elif self.radius is not None:
            raise ParameterError(f"radius is for 'clip' and 'cube': omit it for {self.kind!r}")
        check_choice("projection", self.projection, (*PROJECTIONS, None))
        if self.public_name is not None and not isinstance(self.public_name, str):
            raise ParameterError("public_name must be text, or None")
        check_int("public_texts", self.public_texts, minimum=0)

    @property
    def domain(self) -> Domain:
        return BOUNDS[self.kind]

    @property
    def encoder_dimension(self) -> int:
        """D, the width of the encoder's vectors."""
        return int(self.mean.size)

    @property
    def dimension(self) -> int:
        """d, the width of the bounded vectors."""
        return int(self.mean.size if self.directions is None else self.directions.shape[1])

    def apply(self, vectors: npt.ArrayLike) -> Floats:
        """Map (n, D) vectors of an encoder to (n, d) vectors of `domain`."""
        values = np.nan_to_num(check_vectors(vectors, self.encoder_dimension), nan=0.0, posinf=_HUGE, neginf=-_HUGE)
        moved = np.clip(values, -_HUGE, _HUGE, out=values)  # no sum of products overflows, if directions are not huge
        with np.errstate(all="ignore"):
            moved -= self.mean
            if self.directions is not None:
                moved = row_products(moved, self.directions)
            if self.radius is not None:
                moved /= self.radius
        return self.domain.bound(moved)

    def __reduce__(self) -> tuple[Any, ...]:
        # freeze again: unpickled arrays are writable
        return partial(Bound, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    @property
    def sha256(self) -> str:
        """SHA-256 digest of all parameters."""
        digest = hashlib.sha256(f"{self.kind} {self.radius!r} {self.mean.size}".encode())
        digest.update(self.mean.astype("<f8").tobytes())
        if self.directions is not None:
            digest.update(np.ascontiguousarray(self.directions, dtype="<f8").tobytes())
        return digest.hexdigest()

    def parameters(self) -> dict[str, Parameter]:
        return {
            "projection": self.projection,
            "centred": bool(self.mean.any()),
            "bound": self.kind,
            "bound_radius": self.radius,
            "bound_sha256": self.sha256,
            "public_data": self.public_name,
            "public_texts": self.public_texts,
        }

    def assumptions(self) -> tuple[str, ...]:
        if self.public_texts == 0:
            return ("centre, projection and radius are public: they were not computed from protected texts",)
        name = "public texts" if self.public_name is None else f"'{self.public_name}'"
        labels = " and their labels" if self.projection == "supervised" else ""
        return (
            f"centre, projection and radius were fitted on {name} ({self.public_texts} texts{labels}), declared "
            "public: their authors are not protected",
        )


def bound_into(domain: Domain, dimension: int) -> Bound:
    """Return the bound for vectors that were trained for a domain, without fitting."""
    kind = TRAINED_INTO[domain]
    return Bound(mean=np.zeros(dimension), kind=kind, radius=1.0 if kind in _SCALED else None)


def fit_bound(
    vectors: npt.ArrayLike,
    *,
    bound: str = "normalise",
    dimension: int | None = None,
    projection: str | None = "pca",
    labels: Sequence[Any] | npt.NDArray[Any] | None = None,
    centre: bool = True,
    public_name: str | None = None,
) -> Bound:
    """Fit a bound on (n, D) vectors of *public* texts; ``labels`` are for ``projection="supervised"``."""
    public = np.clip(np.nan_to_num(check_vectors(vectors), nan=0.0), -_HUGE, _HUGE)
    count, width = public.shape
    check_choice("bound", bound, BOUNDS)
    check_choice("projection", projection, (*PROJECTIONS, None))
    if count == 0:
        raise ParameterError("a bound is fitted on public texts: pass at least one")
    kept = check_int("dimension", width if dimension is None else dimension, minimum=1, maximum=width)
    if projection is None and kept != width:
        raise ParameterError(f"dimension={kept} needs a projection, because the encoder has {width}")
    if (labels is not None) != (projection == "supervised"):
        raise ParameterError("public labels are for projection='supervised', which requires them")
    mean = public.mean(axis=0) if centre else np.zeros(width)
    moved = public - mean
    varied = public - public.mean(axis=0)
    if projection in ("pca", "supervised") and float(np.abs(varied).max()) <= 1e-9 * float(np.abs(public).max()):
        raise ParameterError("the public texts all have the same vector: pass different ones, or projection='random'")
    directions: Floats | None = None
    if projection == "random":
        directions = random_directions(width, kept)
    elif projection == "pca":
        directions = principal_directions(moved, kept)
    elif labels is not None:
        directions = discriminant_directions(moved, labels, kept)
    radius: float | None = None
    if bound in _SCALED:
        radius = _radius(moved if directions is None else moved @ directions, bound)
    fitted = centre or projection in ("pca", "supervised") or bound in _SCALED
    return Bound(
        mean=mean,
        directions=directions,
        kind=bound,
        radius=radius,
        projection=projection,
        public_name=public_name if fitted else None,
        public_texts=count if fitted else 0,
    )


def _radius(moved: Floats, bound: str) -> float:
    sizes = np.abs(moved) if bound == "cube" else np.sqrt(np.einsum("ij,ij->i", moved, moved))
    radius = float(np.quantile(sizes, _QUANTILE))
    if not _SMALLEST <= radius <= _LARGEST:
        raise ParameterError("the public texts do not determine a radius: their vectors are equal or too large")
    return radius


def _frozen(values: npt.ArrayLike) -> Floats:
    array = np.array(values, dtype=np.float64, order="C")
    array.setflags(write=False)
    return array
