"""Training inputs: labels, batches of texts or vectors, users and held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.io.documents import is_missing
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.bounds import Floats, check_vectors
from dptext.representations.encoders import TextEncoder, check_texts

_FEATURES = 256
_RIDGE = 1e-2
_MOST_ROWS = 8192  # that readers are fitted on
_TOGETHER = 512


def parted(
    rows: int, users: Sequence[Any] | None, task: Target, others: Sequence[Target], fraction: float, start: int
) -> tuple[Rows, Rows]:
    """(kept, held out) rows: people are held out as a whole, and without users the same share of each class."""
    held_out = np.zeros(rows, dtype=bool)
    if fraction:
        order = shuffled(np.arange(rows), stream_of(start, b"held out"))
        codes = task.codes if users is None else _numbers(users)
        for code in np.unique(codes) if users is None else ():
            of_class = order[codes[order] == code]
            held_out[of_class[: min(round(fraction * len(of_class)), len(of_class) - 1)]] = True
        if users is not None:
            _, first = np.unique(codes[order], return_index=True)
            by_chance = codes[order][np.sort(first)]
            held_out = np.isin(codes, by_chance[: round(fraction * len(by_chance))])
    kept = np.flatnonzero(~held_out)
    for target in (task, *others):
        left = target.codes[kept]
        if len(np.unique(left[left >= 0])) < 2:
            raise DataError(
                f"{target.name!r} has one class only in the rows that are left to train on, without those held out: "
                "give more rows (or people), or validation_fraction=0"
            )
    return kept, np.flatnonzero(held_out)


def _numbers(users: Sequence[Any]) -> Rows:
    places: dict[Any, int] = {}
    return np.array([places.setdefault(user, len(places)) for user in users], dtype=np.int64)


class Reader:
    """Fresh readers after each epoch."""

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
        self._shown = shuffled(kept, stream_of(start, b"looked at"))[:_MOST_ROWS]

    def look(self, arrived: Callable[[Any], Floats]) -> TradeOff | None:
        if not self._held.size:
            return None
        read, held_out = ((self._vectors(arrived, rows), rows) for rows in (self._shown, self._held))
        return measured(read, held_out, *self._targets, self._alpha)

    def _vectors(self, arrived: Callable[[Any], Floats], rows: Rows) -> Floats:
        batches = list(self._source.batches(rows, _TOGETHER))
        result = np.concatenate([arrived(self._source.take(batch)) for batch in batches])
        place = np.empty(int(rows.max()) + 1, dtype=np.int64)
        place[np.concatenate(batches)] = np.arange(rows.size)
        return result[place[rows]]


@dataclass(frozen=True)
class TradeOff:
    """How much a fresh reader gets out of held-out vectors."""

    task: float
    attributes: Mapping[str, float] = field(default_factory=dict)
    score: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))


def measured(
    read: tuple[Floats, npt.NDArray[np.intp]],
    held_out: tuple[Floats, npt.NDArray[np.intp]],
    task: Target,
    attributes: Sequence[Target],
    alpha: float,
) -> TradeOff:
    """Fresh readers fitted on some noisy vectors, ``read``, and judged on others, ``held``: (n, d) and their rows."""
    fit, fit_rows = read[0][:_MOST_ROWS], read[1][:_MOST_ROWS]
    scale = float(np.sqrt(np.mean(fit**2))) or 1.0
    projection = _projection(fit.shape[1])
    known, requested = _features(fit / scale, projection), _features(held_out[0] / scale, projection)
    numbers = {
        target.name: advantage(known, target.codes[fit_rows], requested, target.codes[held_out[1]], len(target.classes))
        for target in attributes
    }
    useful = advantage(known, task.codes[fit_rows], requested, task.codes[held_out[1]], len(task.classes))
    known_ones = [max(number, 0.0) for number in numbers.values() if not math.isnan(number)]
    leaked = float(np.mean(known_ones)) if known_ones else math.nan
    return TradeOff(useful, numbers, useful - alpha * leaked if alpha else useful)


def advantage(known: Floats, labels: Rows, queries: Floats, truth: Rows, classes: int) -> float:
    """Of a least-squares reader that counts each class the same; rows without a label (-1) are left out."""
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
    weighted = np.linalg.solve(gram, (inputs.T * weights) @ target)
    result = present[(queries[judged] @ weighted)[:, present].argmax(axis=1)]
    shares = [float(np.mean(result[truth == entry] == entry)) for entry in present]
    return (float(np.mean(shares)) - 1 / len(present)) / (1 - 1 / len(present))


def _projection(width: int) -> Floats:
    return RandomBits.keyed(seed_bytes(b"fresh readers", width)).normal(width + 1, _FEATURES)


def _features(vectors: Floats, projection: Floats) -> Floats:
    bent = np.maximum(vectors @ projection[:-1] / np.sqrt(vectors.shape[1]) + projection[-1], 0.0)
    return np.column_stack([vectors, bent, np.ones(len(vectors))])


MISSING = -1
_MOST_CLASSES = 1000

Rows = npt.NDArray[np.int64]


class Source(Protocol):
    """The inputs of a network."""

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        """The rows of each batch, from rows in a random order."""

    def take(self, rows: Rows) -> Any:
        """The batch of these rows."""


def stream_of(start: int, purpose: bytes) -> RandomBits:
    """The stream of a purpose, for a run."""
    return RandomBits.keyed(seed_bytes(b"hiding: " + purpose, start))


def shuffled(rows: Rows, bits: RandomBits) -> Rows:
    """The rows in a random order."""
    order: Rows = rows[np.argsort(bits.integers(len(rows)), kind="stable")]
    return order


# -- labels -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Target:
    """One label a row."""

    name: str
    classes: tuple[Any, ...]
    codes: Rows
    weights: npt.NDArray[np.float32]

    @property
    def priors(self) -> npt.NDArray[np.float32]:
        """(classes,) weighted shares of the classes: what a reader says who knows nothing."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes)) * self.weights
        shares: npt.NDArray[np.float32] = (counts / counts.sum()).astype(np.float32)
        return shares


def check_targets(
    rows: int,
    task: Sequence[Any] | npt.NDArray[Any],
    attributes: Mapping[str, Sequence[Any] | npt.NDArray[Any]],
    class_weight: str | None,
) -> tuple[Target, tuple[Target, ...]]:
    """The task and the attributes, coded."""
    if not isinstance(attributes, Mapping) or not attributes:
        raise ParameterError('attributes must map names to labels, such as {"gender": [...]}: there is nothing to hide')
    if any(not isinstance(name, str) or not name for name in attributes):
        raise ParameterError("the names of attributes must be text, and not empty")
    kept = _coded("task", "the task", rows, task, class_weight)
    hidden = []
    for name, labels in attributes.items():
        target = _coded(name, f"the attribute {name!r}", rows, labels, class_weight)
        if _same_partition(kept.codes, target.codes):
            raise DataError(
                f"the attribute {name!r} says the same as the task (each class of one is a class of the other): it "
                "cannot be hidden while the task is kept; leave one of them out"
            )
        hidden.append(target)
    return kept, tuple(hidden)


def _coded(name: str, called: str, rows: int, labels: Any, class_weight: str | None) -> Target:
    try:
        values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    except TypeError:
        values = None
    if values is None or isinstance(labels, str | bytes):
        raise ParameterError(f"{called} needs one label a row, got {type(labels).__name__}")
    if len(values) != rows:
        raise ParameterError(f"{called} has {len(values)} labels for {rows} rows: give one a row (None where missing)")
    present = [label for label in values if not _missing(label)]
    if not present:
        raise DataError(f"all labels of {called} are missing: nothing can be learnt about it")
    try:
        classes = sorted(set(present))
    except TypeError:
        raise DataError(f"the labels of {called} must be of one type that has an order: text, or numbers") from None
    if len(classes) < 2:
        raise DataError(f"{called} has one class only: two or more are needed")
    if len(classes) > _MOST_CLASSES:
        raise DataError(f"{called} has {len(classes)} classes, at most {_MOST_CLASSES} are possible: put them in bins")
    place = {label: code for code, label in enumerate(classes)}
    codes = np.array([MISSING if _missing(label) else place[label] for label in values], dtype=np.int64)
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    weights = len(present) / (len(classes) * counts) if class_weight == "balanced" else np.ones(len(classes))
    return Target(name, tuple(classes), codes, weights.astype(np.float32))


def _missing(label: Any) -> bool:
    return is_missing(label) or (isinstance(label, str) and label == "")


def _same_partition(one: Rows, other: Rows) -> bool:
    both = (one >= 0) & (other >= 0)
    if not both.any():
        return False
    pairs = {*zip(one[both].tolist(), other[both].tolist(), strict=True)}
    return len(pairs) > 1 and len({entry for entry, _ in pairs}) == len(pairs) == len({entry for _, entry in pairs})


# -- texts, vectors and users --------------------------------------------------------------------------------------


def as_vectors(given: Any) -> Floats | None:
    """An (n, D) array, where that is what was given; else None: texts."""
    if hasattr(given, "__array__") and getattr(given, "ndim", 0) == 2 and not hasattr(given, "columns"):
        return check_vectors(np.asarray(given))
    if isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple | np.ndarray):
        return check_vectors(given)
    return None


def vectors_to_train_on(given: Any, encoder: TextEncoder | None) -> npt.NDArray[np.float32]:
    """(n, D) float32 of texts, or of vectors."""
    vectors: npt.NDArray[Any] | None = as_vectors(given)
    if vectors is None:
        if encoder is None:
            raise ParameterError("without an encoder, fit takes vectors of shape (n, D): give them, or an encoder")
        vectors = encoder.encode(check_texts(given))
    elif encoder is not None and encoder.dimension != vectors.shape[1]:
        raise ParameterError(
            f"the vectors have {vectors.shape[1]} numbers, the encoder gives {encoder.dimension}: give vectors of this "
            "encoder, or encoder=None"
        )
    with np.errstate(over="ignore"):
        single = vectors.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(single).all(axis=1))
    if bad.size:
        raise DataError(f"row {bad[0] + 1}: vectors to train on must be finite numbers; leave it out or repair it")
    return single


def texts_to_train_on(given: Any) -> list[str]:
    """The texts, where texts it must be."""
    if as_vectors(given) is not None:
        raise ParameterError("a recurrent encoder is trained on texts, got vectors")
    return check_texts(given)


def check_users(users: Any, rows: int) -> list[Any] | None:
    """Whose each row is, if that is said."""
    if users is None:
        return None
    if isinstance(users, str | bytes | Mapping | AbstractSet) or not isinstance(users, Iterable):
        raise ParameterError(f"user must be one entry a row (whose text it is), got {type(users).__name__}")
    values = users.tolist() if hasattr(users, "tolist") else list(users)
    if len(values) != rows:
        raise ParameterError(f"user has {len(values)} entries for {rows} rows: give one a row")
    for row, user in enumerate(values, 1):
        if is_missing(user) or not isinstance(user, Hashable):
            raise DataError(f"row {row}: its user is missing, or a list: give text or a number that says whose it is")
    return values


def content_of(
    inputs: npt.NDArray[np.float32] | Sequence[str], targets: Sequence[Target] = (), users: Sequence[Any] | None = None
) -> Iterator[bytes]:
    """All of the data that a run depends on, for a digest."""
    if isinstance(inputs, np.ndarray):
        yield np.ascontiguousarray(inputs).tobytes()
    else:
        for text in inputs:
            yield text.encode("utf-8", "surrogatepass") + b"\xff"
    for target in targets:
        yield f"{target.name}\0{target.classes!r}".encode("utf-8", "surrogatepass")
        yield target.codes.tobytes()
    yield repr(None if users is None else list(users)).encode("utf-8", "surrogatepass")
