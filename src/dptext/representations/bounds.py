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
from dptext.privacy.guarantee import Relation
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.validation import check_choice, check_float, check_int

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
        values = np.nan_to_num(np.array(vectors, dtype=np.float64), copy=False, nan=0.0)
        if self is Domain.CUBE:
            return np.clip(values, -1.0, 1.0, out=values)
        if self is Domain.ONE_HOT:
            marked = np.zeros_like(values)
            marked[np.arange(len(values)), values.argmax(axis=1)] = 1.0
            return marked
        with np.errstate(all="ignore"):  # a caller may have told numpy to raise where a small number becomes 0
            return _onto_sphere(values) if self is Domain.SPHERE else _into_ball(values)

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


def check_vectors(vectors: npt.ArrayLike, dimension: int | None = None) -> Floats:
    """Return the vectors as (n, d) float64 without checking their values; numbers beyond doubles become infinite."""
    array = _as_doubles(vectors)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ParameterError(f"vectors must have the shape (n, d), got {array.shape}: one vector is [vector]")
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


PROJECTIONS = ("pca", "random", "supervised")

_SEED = 7
_SHRINKAGE = 0.5
_REST = 0.5
"""Norm of the rest of a vector relative to its discriminant part, as a root mean square."""


def random_directions(inputs: int, dimension: int) -> Floats:
    """(given, dimension) orthonormal columns, uniform among all such, from a fixed public seed."""
    normal = RandomBits(seed=_SEED).normal(inputs, dimension)  # public: there is nothing to hide
    columns, triangle = np.linalg.qr(normal)
    return columns * np.where(np.diag(triangle) < 0, -1.0, 1.0)


def principal_directions(centred: Floats, dimension: int) -> Floats:
    """(D, dimension) orthonormal columns along which (n, D) centred public vectors vary most, the most first."""
    _, columns = np.linalg.eigh(centred.T @ centred / len(centred))
    return _signed(columns[:, ::-1][:, :dimension])


def discriminant_directions(centred: Floats, labels: Sequence[Any] | npt.NDArray[Any], dimension: int) -> Floats:
    """Return (D, dimension) columns: linear discriminants of public labels, then principal directions of the rest."""
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
        result, codes = np.unique(np.asarray(labels), return_inverse=True)
    except (TypeError, ValueError):
        raise ParameterError("public labels must be a list of numbers or strings, one a text") from None
    if codes.shape != (count,):
        raise ParameterError(f"expected one public label a text, {count} of them, got the shape {np.shape(labels)}")
    if len(result) < 2:
        raise ParameterError("a supervised projection needs public texts of two labels at least, all have the same")
    return codes.astype(np.int64), len(result)


def _signed(columns: Floats) -> Floats:
    largest = columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])]
    return columns * np.where(largest < 0, -1.0, 1.0)


BOUNDS = {
    "normalise": Domain.SPHERE,
    "lift": Domain.SPHERE,
    "clip": Domain.BALL,
    "cube": Domain.CUBE,
    "one-hot": Domain.ONE_HOT,
}
"""The last step, and the domain that it ends in."""

NATURAL = {Domain.SPHERE: "normalise", Domain.BALL: "clip", Domain.CUBE: "cube", Domain.ONE_HOT: "one-hot"}
"""Default of the last step into each domain."""

TRAINED_INTO = {Domain.SPHERE: "normalise", Domain.BALL: "clip", Domain.CUBE: "cube"}
"""The domains that a gradient is known into, and the last step into each."""

_SCALED = ("lift", "clip", "cube")
_HUGE = 1e38
_SMALLEST, _LARGEST = 1e-30, 1e30


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """What happens to an encoder's vectors before the noise."""

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
            raise ParameterError(f"the mean must be a row of finite numbers, got the shape {mean.shape}")
        object.__setattr__(self, "mean", mean)
        if self.directions is not None:
            directions = _frozen(self.directions)
            fits = directions.ndim == 2 and len(directions) == mean.size and 0 < directions.shape[1] <= mean.size
            if not fits or not np.isfinite(directions).all():
                raise ParameterError(
                    f"directions must be finite numbers of a shape from ({mean.size}, 1) to ({mean.size}, "
                    f"{mean.size}), got {directions.shape}"
                )
            object.__setattr__(self, "directions", directions)
        check_choice("kind", self.kind, BOUNDS)
        object.__setattr__(self, "radius", self._check_radius())
        check_choice("projection", self.projection, (*PROJECTIONS, None))
        if self.public_name is not None and not isinstance(self.public_name, str):
            raise ParameterError("public_name must be text, or None")
        check_int("public_texts", self.public_texts, minimum=0)

    def _check_radius(self) -> float | None:
        if self.kind not in _SCALED:
            if self.radius is not None:
                raise ParameterError(f"{self.kind!r} has no radius: leave it out, or take 'lift', 'clip' or 'cube'")
            return None
        return check_float(f"the radius of {self.kind!r}", self.radius, minimum=_SMALLEST, maximum=_LARGEST)

    @property
    def domain(self) -> Domain:
        """Where the vectors end up."""
        return BOUNDS[self.kind]

    @property
    def encoder_dimension(self) -> int:
        """D, of the vectors that come in."""
        return int(self.mean.size)

    @property
    def dimension(self) -> int:
        """The length of the vectors that go on to the randomizer: d, and one more after a lift."""
        kept = self.encoder_dimension if self.directions is None else self.directions.shape[1]
        return kept + (self.kind == "lift")

    def sensitivity(self, relation: Relation = Relation.SUBSTITUTION) -> Sensitivity:
        """How far the bounded vectors of any two texts can be apart (or one from nothing, under add/remove)."""
        return self.domain.sensitivity(self.dimension, relation)

    def apply(self, vectors: npt.ArrayLike) -> Floats:
        """(n, D) vectors of an encoder to (n, `dimension`) vectors of `domain`."""
        values = np.nan_to_num(check_vectors(vectors, self.encoder_dimension), nan=0.0, posinf=_HUGE, neginf=-_HUGE)
        moved = np.clip(values, -_HUGE, _HUGE, out=values)  # no sum of products overflows, if directions are not huge
        with np.errstate(all="ignore"):
            moved -= self.mean
            if self.directions is not None:
                moved = row_products(moved, self.directions)
            if self.radius is not None:
                moved /= self.radius
        if self.kind != "lift":
            return self.domain.bound(moved)
        inside = Domain.BALL.bound(moved)
        with np.errstate(all="ignore"):
            above = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", inside, inside), 0.0))
        return self.domain.bound(np.column_stack([inside, above]))

    def __reduce__(self) -> tuple[Any, ...]:
        # frozen again, which an unpickled array alone is not
        return partial(Bound, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    @property
    def sha256(self) -> str:
        """Digest of all parameters: equal bounds have equal digests."""
        digest = hashlib.sha256(f"{self.kind} {self.radius!r} {self.mean.size}".encode())
        digest.update(self.mean.astype("<f8").tobytes())
        if self.directions is not None:
            digest.update(np.ascontiguousarray(self.directions, dtype="<f8").tobytes())
        return digest.hexdigest()

    def parameters(self) -> dict[str, Parameter]:
        """Return the last step, its radius, the public texts, and a digest of the numbers."""
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
        """Return the assumption that the texts of the fit are public."""
        if self.public_texts == 0:
            return ("centre, projection and radius are public: they were not computed from protected texts",)
        name = "public texts" if self.public_name is None else f"'{self.public_name}'"
        labels = " and their labels" if self.projection == "supervised" else ""
        return (
            f"centre, projection and radius were fitted on {name} ({self.public_texts} texts{labels}), declared "
            "public: their authors are not protected",
        )


def bound_into(domain: Domain, dimension: int) -> Bound:
    """The bound of vectors that were trained for a domain: nothing is fitted."""
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
    radius: float | None = None,
    quantile: float = 0.9,
    public_name: str | None = None,
) -> Bound:
    """The bound that fits (n, D) vectors of *public* texts."""
    public = np.clip(np.nan_to_num(check_vectors(vectors), nan=0.0), -_HUGE, _HUGE)
    count, width = public.shape
    kept = _checked(count, width, bound=bound, dimension=dimension, projection=projection)
    check_float("quantile", quantile, above=0, maximum=1)
    if (labels is not None) != (projection == "supervised"):
        raise ParameterError(
            "public labels and projection='supervised' belong together: the other projections take no labels"
        )
    mean = public.mean(axis=0) if centre else np.zeros(width)
    moved = public - mean
    varied = public - public.mean(axis=0)
    if projection in ("pca", "supervised") and float(np.abs(varied).max()) <= 1e-9 * float(np.abs(public).max()):
        raise ParameterError("the public texts all have the same vector: give different ones, or projection='random'")
    directions: Floats | None = None
    if projection == "random":
        directions = random_directions(width, kept)
    elif projection == "pca":
        directions = principal_directions(moved, kept)
    elif labels is not None:
        directions = discriminant_directions(moved, labels, kept)
    if bound in _SCALED and radius is None:
        radius = _quantile(moved if directions is None else moved @ directions, bound, quantile)
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


def _checked(count: int, width: int, *, bound: str, dimension: int | None, projection: str | None) -> int:
    check_choice("bound", bound, BOUNDS)
    check_choice("projection", projection, (*PROJECTIONS, None))
    if count == 0:
        raise ParameterError("a bound is fitted on at least one public text, got none")
    kept = width if dimension is None else dimension
    check_int("dimension (None: all of the encoder's)", kept, minimum=1, maximum=width)
    if projection is None and kept != width:
        raise ParameterError(f"fewer dimensions than the {width} of the encoder need a projection, got None")
    return int(kept)


def _quantile(moved: Floats, bound: str, quantile: float) -> float:
    sizes = np.abs(moved) if bound == "cube" else np.sqrt(np.einsum("ij,ij->i", moved, moved))
    result = float(np.quantile(sizes, quantile))
    if not _SMALLEST <= result <= _LARGEST or not math.isfinite(result):
        raise ParameterError("the public texts tell no radius (their vectors are all alike, or huge): give one")
    return result


def _frozen(values: npt.ArrayLike) -> Floats:
    array = np.array(values, dtype=np.float64, order="C")
    array.setflags(write=False)
    return array
