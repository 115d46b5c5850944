"""Training inputs: labels, users, held-out rows, and the readers that evaluate them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.io.documents import is_missing
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.bounds import Floats, check_vectors
from dptext.representations.encoders import TextEncoder, check_texts
from dptext.representations.networks import hold_out

MISSING = -1
_MOST_CLASSES = 1000
_FEATURES = 256
_RIDGE = 1e-2
_READER_ROWS = 8192
_BATCH = 512

Labels = Sequence[Any] | npt.NDArray[Any]
Rows = npt.NDArray[np.int64]


class Source(Protocol):
    """The inputs of a network."""

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        """Yield the rows of each batch, from rows in a random order."""

    def take(self, rows: Rows) -> Any:
        """The batch of these rows."""


def stream_of(start: int, purpose: bytes) -> RandomBits:
    """The random stream of a run for a purpose."""
    return RandomBits.keyed(seed_bytes(b"hiding: " + purpose, start))


def shuffled(rows: Rows, bits: RandomBits) -> Rows:
    """The rows in a random order."""
    order: Rows = rows[np.argsort(bits.integers(len(rows)), kind="stable")]
    return order


# -- labels -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Target:
    """A label per row: its code, or `MISSING`."""

    name: str
    classes: tuple[Any, ...]
    codes: Rows
    weights: npt.NDArray[np.float32]

    @property
    def priors(self) -> npt.NDArray[np.float32]:
        """(classes,) weighted shares of the classes."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes)) * self.weights
        shares: npt.NDArray[np.float32] = (counts / counts.sum()).astype(np.float32)
        return shares


def check_targets(
    rows: int, task: Labels, attributes: Mapping[str, Labels], class_weight: str | None
) -> tuple[Target, tuple[Target, ...]]:
    """Return the task and the attributes as codes."""
    if not isinstance(attributes, Mapping) or not attributes or not all(attributes):
        raise ParameterError('attributes must map names to labels, such as {"gender": [...]}: there is nothing to hide')
    kept = _target("task", "the task", rows, task, class_weight)
    hidden = tuple(
        _target(name, f"the attribute {name!r}", rows, labels, class_weight) for name, labels in attributes.items()
    )
    for target in hidden:
        if _same_partition(kept.codes, target.codes):
            raise DataError(
                f"the attribute {target.name!r} determines the task, and the task the attribute: it cannot be hidden "
                "while the task is kept. Leave one of them out"
            )
    return kept, hidden


def _target(name: str, role: str, rows: int, labels: Any, class_weight: str | None) -> Target:
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise ParameterError(f"{role} needs one label per row, got {type(labels).__name__}")
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if len(values) != rows:
        raise ParameterError(f"{role} has {len(values)} labels for {rows} rows: pass one per row (None if missing)")
    values = [None if is_missing(label) or (isinstance(label, str) and not label) else label for label in values]
    present = [label for label in values if label is not None]
    if not present:
        raise DataError(f"all labels of {role} are missing: nothing can be learnt about it")
    try:
        classes = sorted(set(present))
    except TypeError:
        raise DataError(f"the labels of {role} must be of one type that has an order: text, or numbers") from None
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise DataError(f"{role} must have from 2 to {_MOST_CLASSES} classes, got {len(classes)}")
    code_of: dict[Any, int] = {label: code for code, label in enumerate(classes)} | {None: MISSING}
    codes = np.array([code_of[label] for label in values], dtype=np.int64)
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    weights = len(present) / (len(classes) * counts) if class_weight == "balanced" else np.ones(len(classes))
    return Target(name, tuple(classes), codes, weights.astype(np.float32))


def _same_partition(one: Rows, other: Rows) -> bool:
    both = (one >= 0) & (other >= 0)
    pairs = {*zip(one[both].tolist(), other[both].tolist(), strict=True)}
    return len(pairs) > 1 and len({entry for entry, _ in pairs}) == len(pairs) == len({entry for _, entry in pairs})


# -- texts, vectors and users --------------------------------------------------------------------------------------


def as_vectors(values: Any) -> Floats | None:
    """Return (n, D) vectors, or None if the values are texts."""
    if hasattr(values, "__array__") and getattr(values, "ndim", 0) == 2 and not hasattr(values, "columns"):
        return check_vectors(np.asarray(values))
    if isinstance(values, list | tuple) and values and isinstance(values[0], list | tuple | np.ndarray):
        return check_vectors(values)
    return None


def training_vectors(values: Any, encoder: TextEncoder | None) -> npt.NDArray[np.float32]:
    """(n, D) float32 of texts or vectors."""
    vectors: npt.NDArray[Any] | None = as_vectors(values)
    if vectors is None:
        if encoder is None:
            raise ParameterError("without an encoder, fit takes vectors of shape (n, D): pass them, or an encoder")
        vectors = encoder.encode(check_texts(values))
    elif encoder is not None and encoder.dimension != vectors.shape[1]:
        raise ParameterError(
            f"the vectors have {vectors.shape[1]} numbers, those of the encoder {encoder.dimension}: pass vectors of "
            "this encoder, or encoder=None"
        )
    with np.errstate(over="ignore"):
        single = vectors.astype(np.float32)
    for row in np.flatnonzero(~np.isfinite(single).all(axis=1))[:1]:
        raise DataError(f"row {row + 1}: vectors to train on must be finite numbers; leave it out or repair it")
    return single


def check_users(users: Any, rows: int) -> list[Any] | None:
    """Return the user of each row, or None."""
    if users is None:
        return None
    if isinstance(users, str | bytes | Mapping | AbstractSet) or not isinstance(users, Iterable):
        raise ParameterError(f"user must be a list with the user of each row, got {type(users).__name__}")
    values = users.tolist() if hasattr(users, "tolist") else list(users)
    if len(values) != rows:
        raise ParameterError(f"user has {len(values)} entries for {rows} rows: pass one per row")
    for row, user in enumerate(values, 1):
        if is_missing(user) or not isinstance(user, Hashable):
            raise DataError(f"row {row}: its user is missing, or a list: pass text or a number")
    return values


def content_of(
    inputs: npt.NDArray[np.float32] | Sequence[str], targets: Sequence[Target] = (), users: Sequence[Any] | None = None
) -> Iterator[bytes]:
    """Yield the data that a run depends on, for a digest."""
    if isinstance(inputs, np.ndarray):
        yield np.ascontiguousarray(inputs).tobytes()
    else:
        for text in inputs:
            yield text.encode("utf-8", "surrogatepass") + b"\xff"
    for target in targets:
        yield f"{target.name}\0{target.classes!r}".encode("utf-8", "surrogatepass")
        yield target.codes.tobytes()
    yield repr(None if users is None else list(users)).encode("utf-8", "surrogatepass")


# -- held-out rows -------------------------------------------------------------------------------------------------


def split_rows(
    rows: int, users: Sequence[Any] | None, task: Target, others: Sequence[Target], fraction: float, start: int
) -> tuple[Rows, Rows]:
    """(kept, held out) rows: whole users are held out, or without users the same share of each class."""
    held_out = np.zeros(rows, dtype=bool)
    if fraction:
        order = shuffled(np.arange(rows), stream_of(start, b"held out"))
        if users is None:
            held_out = hold_out(order, task.codes, fraction)
        else:
            ids: dict[Any, int] = {}
            codes = np.array([ids.setdefault(user, len(ids)) for user in users], dtype=np.int64)
            _, first = np.unique(codes[order], return_index=True)
            by_chance = codes[order][np.sort(first)]
            held_out = np.isin(codes, by_chance[: round(fraction * len(by_chance))])
    kept = np.flatnonzero(~held_out)
    for target in (task, *others):
        codes = target.codes[kept]
        if len(np.unique(codes[codes >= 0])) < 2:
            raise DataError(
                f"the training rows have a single class of {target.name!r}: pass more rows (or users), or "
                "validation_fraction=0"
            )
    return kept, np.flatnonzero(held_out)


@dataclass(frozen=True)
class TradeOff:
    """Advantage of new readers on held-out vectors, and the score by which an epoch is chosen."""

    task: float
    attributes: dict[str, float]
    score: float


class Reader:
    """New readers after each epoch: fitted on rows that are kept, evaluated on rows that are held out."""

    def __init__(
        self,
        source: Source,
        task: Target,
        attributes: Sequence[Target],
        alpha: float,
        parts: tuple[Rows, Rows],
        start: int,
    ) -> None:
        self._source, self._targets, self._alpha = source, (task, attributes), alpha
        kept, self._held = parts
        self._fitted_on = shuffled(kept, stream_of(start, b"looked at"))[:_READER_ROWS]

    def look(self, arrived: Callable[[Any], Floats]) -> TradeOff | None:
        """Evaluate the vectors that ``arrived`` returns for a batch."""
        if not self._held.size:
            return None
        fitted_on, held_out = ((self._vectors(arrived, rows), rows) for rows in (self._fitted_on, self._held))
        return trade_off(fitted_on, held_out, *self._targets, self._alpha)

    def _vectors(self, arrived: Callable[[Any], Floats], rows: Rows) -> Floats:
        batches = list(self._source.batches(rows, _BATCH))
        vectors = np.concatenate([arrived(self._source.take(batch)) for batch in batches])
        place = np.empty(int(rows.max()) + 1, dtype=np.int64)
        place[np.concatenate(batches)] = np.arange(rows.size)
        return vectors[place[rows]]


def trade_off(
    fitted_on: tuple[Floats, Rows],
    held_out: tuple[Floats, Rows],
    task: Target,
    attributes: Sequence[Target],
    alpha: float,
) -> TradeOff:
    """Fit readers on (n, d) vectors and their rows, and evaluate them on others."""
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
        for target in (task, *attributes)
    )
    finite = [max(number, 0.0) for number in numbers if not math.isnan(number)]
    leaked = float(np.mean(finite)) if finite else math.nan
    by_name = {target.name: number for target, number in zip(attributes, numbers, strict=True)}
    return TradeOff(useful, by_name, useful - alpha * leaked if alpha else useful)


def advantage(known: Floats, labels: Rows, queries: Floats, truth: Rows, classes: int) -> float:
    """Advantage of a least-squares reader that weights classes equally; rows without a label do not count."""
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
