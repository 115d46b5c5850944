"""The rows that attacks take, checked: numbers, texts and bags of words, labels, people.

Every error names the argument and the row, never what stands in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra

__all__ = [
    "Rows",
    "are_texts",
    "as_codes",
    "as_ids",
    "as_people",
    "as_rows",
    "as_texts",
    "lengths_of",
    "optional",
    "random_state",
    "unit_rows",
]

Ids: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = Any
"""(n, d) numbers, dense or scipy-sparse; or n texts; or n bags (sequences of words)."""


def optional(module: str) -> Any:
    """A module of scikit-learn or scipy, imported where an attack needs it."""
    return extra(module, "audit", "an attack")


def are_texts(values: Rows) -> bool:
    """Whether these are texts or bags of words rather than numbers."""
    if hasattr(values, "tocsr") or isinstance(values, np.ndarray):
        return getattr(values, "dtype", None) is not None and values.dtype.kind in "OUS"
    first = next((each for each in values if each is not None), None) if isinstance(values, Iterable) else None
    if isinstance(first, str):
        return True
    return isinstance(first, Sequence) and all(isinstance(word, str) for word in first)


def as_texts(name: str, texts: Iterable[Any]) -> list[list[str]]:
    """Bags of words: a text is cut into its runs of letters and digits in lower case; None is an empty bag."""
    if isinstance(texts, str):
        raise ParameterError(f"{name} must be a list of texts, got one string: put it into a list")
    bags: list[list[str]] = []
    for place, text in enumerate(texts):
        if text is None:
            bags.append([])
        elif isinstance(text, str):
            bags.append(re.findall(r"\w+", text.lower()))
        elif isinstance(text, Sequence) and all(isinstance(word, str) for word in text):
            bags.append(list(text))
        else:
            raise ParameterError(f"{name} must be texts or sequences of words, entry {place} is none")
    if not any(bags):
        raise ParameterError(f"{name} must hold at least one word, got none in {len(bags):,} texts")
    return bags


def as_rows(name: str, values: Any) -> Any:
    """(n, d) finite float64, or the same as a sparse matrix of compressed rows."""
    if hasattr(values, "tocsr"):
        sparse = values.tocsr().astype(np.float64)
        if sparse.shape[0] == 0 or not np.isfinite(sparse.data).all():
            raise ParameterError(f"{name} must hold at least one row of finite numbers, got none, NaN or infinity")
        return sparse
    try:
        rows = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        raise ParameterError(f"{name} must be rows of numbers of equal length, got something else") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise ParameterError(f"{name} must be a matrix (rows, numbers) with at least one of each, got {rows.shape}")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ParameterError(f"{name} must be finite, row {int(np.argmin(finite))} holds NaN or infinity")
    return rows


def unit_rows(rows: Any) -> Any:
    """Rows of length 1; a row of zeros is at right angles to everything."""
    if hasattr(rows, "tocsr"):
        largest = np.asarray(abs(rows).max(axis=1).todense(), dtype=np.float64)
        scaled = rows.multiply(1.0 / np.where(largest > 0, largest, 1.0)).tocsr()
        lengths = lengths_of(scaled)[:, None]
        return scaled.multiply(1.0 / np.where(lengths > 0, lengths, 1.0)).tocsr()
    largest = np.abs(rows).max(axis=1, keepdims=True)  # first, so that squares neither vanish nor overflow
    scaled = rows / np.where(largest > 0, largest, 1.0)
    lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    return scaled / np.where(lengths > 0, lengths, 1.0)


def lengths_of(rows: Any) -> npt.NDArray[np.float64]:
    """(n,) lengths of sparse rows."""
    return np.asarray(np.sqrt(rows.multiply(rows).sum(axis=1)), dtype=np.float64).ravel()


def as_codes(name: str, values: Iterable[Any], rows: int) -> tuple[Ids, int]:
    """((rows,) codes 0 .. k - 1 in the order of first appearance, k): labels or names of any kind."""
    codes: dict[Hashable, int] = {}
    found = []
    for row, value in enumerate(values.tolist() if isinstance(values, np.ndarray) else values):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise ParameterError(f"{name} must say one for every row, row {row} has none: leave such rows out")
        if not isinstance(value, Hashable):
            raise ParameterError(f"{name} must be plain values, row {row} is of type {type(value).__name__}")
        found.append(codes.setdefault(value, len(codes)))
    if len(found) != rows:
        raise ParameterError(f"{name} must be one for each of {rows:,} rows, got {len(found):,}")
    return np.array(found, dtype=np.int64), len(codes)


def as_people(people: Iterable[Hashable] | None, rows: int) -> Ids:
    """(rows,) whose row each is; everybody has one where nothing is said."""
    return np.arange(rows) if people is None else as_codes("people", people, rows)[0]


def as_ids(name: str, ids: npt.ArrayLike, below: int, rows: int | None = None) -> Ids:
    """(n,) int64 from 0 to below - 1."""
    found = np.asarray(ids)
    if found.ndim != 1 or not found.size or found.dtype.kind not in "iu":
        raise ParameterError(f"{name} must be a row of at least one integer, got shape {found.shape}, {found.dtype}")
    if rows is not None and found.size != rows:
        raise ParameterError(f"{name} must hold one for each of {rows:,} rows, got {found.size:,}")
    inside = (found >= 0) & (found < below)
    if not inside.all():
        raise ParameterError(f"{name} must lie between 0 and {below - 1:,}, entry {int(np.argmin(inside))} does not")
    return found.astype(np.int64)


def random_state(bits: Any) -> int:
    """A seed for a model of scikit-learn, from our own bits."""
    return int(bits.below(np.array([2**31], dtype=np.uint64))[0])
