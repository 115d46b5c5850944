"""What a training gets, checked: texts or vectors, labels to keep and to hide, users; and the order of its rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.files.column import is_missing
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.domains import Floats, checked_vectors
from dptext.representations.encoders import TextEncoder, checked_texts

__all__ = [
    "MISSING",
    "Rows",
    "Source",
    "Target",
    "as_vectors",
    "checked_targets",
    "checked_users",
    "content_of",
    "shuffled",
    "stream_of",
    "texts_to_train_on",
    "vectors_to_train_on",
]

MISSING = -1
_MOST_CLASSES = 1000

Rows = npt.NDArray[np.int64]


class Source(Protocol):
    """The inputs of a network."""

    def batches(self, order: Rows, size: int) -> Iterator[Rows]:
        """The rows of each batch, from rows in a random order."""
        ...

    def take(self, rows: Rows) -> Any:
        """The batch of these rows."""
        ...


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


def checked_targets(
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
        given = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    except TypeError:
        given = None
    if given is None or isinstance(labels, str | bytes):
        raise ParameterError(f"{called} needs one label a row, got {type(labels).__name__}")
    if len(given) != rows:
        raise ParameterError(f"{called} has {len(given)} labels for {rows} rows: give one a row (None where missing)")
    present = [label for label in given if not _missing(label)]
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
    codes = np.array([MISSING if _missing(label) else place[label] for label in given], dtype=np.int64)
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    weights = len(present) / (len(classes) * counts) if class_weight == "balanced" else np.ones(len(classes))
    return Target(name, tuple(classes), codes, weights.astype(np.float32))


def _missing(label: Any) -> bool:
    return is_missing(label) or (isinstance(label, str) and label == "")


def _same_partition(one: Rows, other: Rows) -> bool:
    """Whether the classes of the two are the same sets of rows, where both have a label."""
    both = (one >= 0) & (other >= 0)
    if not both.any():
        return False
    pairs = {*zip(one[both].tolist(), other[both].tolist(), strict=True)}
    return len(pairs) > 1 and len({each for each, _ in pairs}) == len(pairs) == len({each for _, each in pairs})


# -- texts, vectors and users --------------------------------------------------------------------------------------


def as_vectors(given: Any) -> Floats | None:
    """An (n, D) array, where that is what was given; else None: texts."""
    if hasattr(given, "__array__") and getattr(given, "ndim", 0) == 2 and not hasattr(given, "columns"):
        return checked_vectors(np.asarray(given))
    if isinstance(given, list | tuple) and given and isinstance(given[0], list | tuple | np.ndarray):
        return checked_vectors(given)
    return None


def vectors_to_train_on(given: Any, encoder: TextEncoder | None) -> npt.NDArray[np.float32]:
    """(n, D) float32 of texts, or of vectors."""
    vectors: npt.NDArray[Any] | None = as_vectors(given)
    if vectors is None:
        if encoder is None:
            raise ParameterError("without an encoder, fit takes vectors of shape (n, D): give them, or an encoder")
        vectors = encoder.encode(checked_texts(given))
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
    return checked_texts(given)


def checked_users(users: Any, rows: int) -> list[Any] | None:
    """Whose each row is, if that is said."""
    if users is None:
        return None
    if isinstance(users, str | bytes | Mapping | AbstractSet) or not isinstance(users, Iterable):
        raise ParameterError(f"user must be one entry a row (whose text it is), got {type(users).__name__}")
    given = users.tolist() if hasattr(users, "tolist") else list(users)
    if len(given) != rows:
        raise ParameterError(f"user has {len(given)} entries for {rows} rows: give one a row")
    for row, user in enumerate(given, 1):
        if is_missing(user) or not isinstance(user, Hashable):
            raise DataError(f"row {row}: its user is missing, or a list: give text or a number that says whose it is")
    return given


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
