"""Training inputs: labels, users and held-out rows; new classifiers that evaluate a trained encoder."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.bounds import Floats, check_vectors
from dptext.representations.encoders import TextEncoder, check_texts
from dptext.validation import is_missing

MISSING = -1
_MOST_CLASSES = 1000
_FEATURES = 256
_RIDGE = 1e-2

Labels = Sequence[Any] | npt.NDArray[Any]
Rows = npt.NDArray[np.int64]


def stream_of(start: int, purpose: bytes) -> RandomBits:
    """Return the random stream of a training for a purpose."""
    return RandomBits.keyed(seed_bytes(b"hiding: " + purpose, start))


def shuffled(rows: Rows, bits: RandomBits) -> Rows:
    """Return the rows in a random order."""
    return rows[np.argsort(bits.integers(len(rows)), kind="stable")]


# -- labels -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Target:
    """A label per row: its code, or `MISSING`; and weights that balance the classes."""

    name: str
    classes: tuple[Any, ...]
    codes: Rows
    weights: npt.NDArray[np.float32]


def check_targets(rows: int, task: Labels, attributes: Mapping[str, Labels]) -> tuple[Target, ...]:
    if not isinstance(attributes, Mapping) or not attributes:
        raise ParameterError('attributes must map names to labels, such as {"gender": [...]}')
    targets = [_target("task", "the task", rows, task)]
    targets += [_target(name, f"the attribute {name!r}", rows, labels) for name, labels in attributes.items()]
    return tuple(targets)


def _target(name: str, role: str, rows: int, labels: Any) -> Target:
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if len(values) != rows:
        raise ParameterError(f"{role} has {len(values)} labels for {rows} rows: pass one per row (None if missing)")
    values = [None if is_missing(label) or (isinstance(label, str) and not label) else label for label in values]
    present = [label for label in values if label is not None]
    classes = sorted(set(present))
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise DataError(f"{role} must have from 2 to {_MOST_CLASSES} classes, got {len(classes)}")
    code_of: dict[Any, int] = {label: code for code, label in enumerate(classes)} | {None: MISSING}
    codes = np.array([code_of[label] for label in values], dtype=np.int64)
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    return Target(name, tuple(classes), codes, (len(present) / (len(classes) * counts)).astype(np.float32))


# -- texts, vectors and users --------------------------------------------------------------------------------------


def as_vectors(values: Any) -> Floats | None:
    """Return (n, D) vectors, or None if the values are texts."""
    if hasattr(values, "__array__") and getattr(values, "ndim", 0) == 2 and not hasattr(values, "columns"):
        return check_vectors(np.asarray(values))
    if isinstance(values, list | tuple) and values and isinstance(values[0], list | tuple | np.ndarray):
        return check_vectors(values)
    return None


def training_vectors(values: Any, encoder: TextEncoder | None) -> npt.NDArray[np.float32]:
    """Return (n, D) float32 vectors from texts or vectors."""
    vectors: npt.NDArray[Any] | None = as_vectors(values)
    if vectors is None:
        if encoder is None:
            raise ParameterError("without an encoder, fit takes vectors of shape (n, D): pass them, or an encoder")
        vectors = encoder.encode(check_texts(values))
    elif encoder is not None and encoder.dimension != vectors.shape[1]:
        raise ParameterError(
            f"the vectors have {vectors.shape[1]} columns, the encoder returns {encoder.dimension}: pass vectors "
            "of this encoder, or encoder=None"
        )
    with np.errstate(over="ignore"):
        single = vectors.astype(np.float32)
    for row in np.flatnonzero(~np.isfinite(single).all(axis=1))[:1]:
        raise DataError(f"row {row + 1}: the vector must be finite. Drop or repair the row")
    return single


def check_users(users: Iterable[Any] | None, rows: int) -> list[Any] | None:
    if users is None:
        return None
    values: list[Any] = users.tolist() if hasattr(users, "tolist") else list(users)
    if len(values) != rows:
        raise ParameterError(f"user has {len(values)} entries for {rows} rows: pass one per row")
    for row, user in enumerate(values, 1):
        if is_missing(user) or not isinstance(user, Hashable):
            raise DataError(f"row {row}: the user must be text or a number")
    return values


def split_rows(rows: int, users: Sequence[Any] | None, task: Target, fraction: float, start: int) -> tuple[Rows, Rows]:
    """Return (kept, held out) rows: whole users are held out, or without users the same fraction of each class."""
    held_out = np.zeros(rows, dtype=bool)
    if fraction:
        order = shuffled(np.arange(rows), stream_of(start, b"held out"))
        if users is None:
            for label in np.unique(task.codes):
                in_order = order[task.codes[order] == label]
                held_out[in_order[: min(round(fraction * len(in_order)), len(in_order) - 1)]] = True
        else:
            ids: dict[Any, int] = {}
            codes = np.array([ids.setdefault(user, len(ids)) for user in users], dtype=np.int64)
            _, first = np.unique(codes[order], return_index=True)
            by_chance = codes[order][np.sort(first)]
            held_out = np.isin(codes, by_chance[: round(fraction * len(by_chance))])
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


# -- new classifiers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TradeOff:
    """Advantage of new classifiers on held-out vectors, and the score by which an epoch is chosen."""

    task: float
    attributes: dict[str, float]
    score: float


def trade_off(
    fitted_on: tuple[Floats, Rows], held_out: tuple[Floats, Rows], targets: Sequence[Target], alpha: float
) -> TradeOff:
    """Fit classifiers of the task and the attributes on (n, d) vectors and their rows, and evaluate them on others."""
    (vectors, rows), (held_vectors, held_rows) = fitted_on, held_out
    scale = float(np.sqrt(np.mean(vectors**2))) or 1.0
    width = vectors.shape[1]
    projection = RandomBits.keyed(seed_bytes(b"fresh readers", width)).normal(width + 1, _FEATURES)

    def features(vectors: Floats) -> Floats:
        bent = np.maximum(vectors @ projection[:-1] / np.sqrt(width) + projection[-1], 0.0)
        return np.column_stack([vectors, bent, np.ones(len(vectors))])

    known, queries = features(vectors / scale), features(held_vectors / scale)
    useful, *numbers = (
        advantage(known, target.codes[rows], queries, target.codes[held_rows], len(target.classes))
        for target in targets
    )
    finite = [max(number, 0.0) for number in numbers if not math.isnan(number)]
    leaked = float(np.mean(finite)) if finite else math.nan
    by_name = {target.name: number for target, number in zip(targets[1:], numbers, strict=True)}
    return TradeOff(useful, by_name, useful - alpha * leaked if alpha else useful)


def advantage(known: Floats, labels: Rows, queries: Floats, truth: Rows, classes: int) -> float:
    """Return the advantage of least squares that weights classes equally; rows without a label are ignored."""
    kept, judged = labels >= 0, truth >= 0
    labels, truth = labels[kept], truth[judged]
    present = np.unique(truth)
    if not labels.size or len(present) < 2:
        return math.nan
    counts = np.bincount(labels, minlength=classes)
    weights = 1 / np.maximum(counts, 1)[labels]
    target = np.eye(classes)[labels] - 1 / classes
    inputs = known[kept]
    gram = (inputs.T * weights) @ inputs
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    coefficients = np.linalg.solve(gram, (inputs.T * weights) @ target)
    answers = present[(queries[judged] @ coefficients)[:, present].argmax(axis=1)]
    shares = [float(np.mean(answers[truth == code] == code)) for code in present]
    return (float(np.mean(shares)) - 1 / len(present)) / (1 - 1 / len(present))
