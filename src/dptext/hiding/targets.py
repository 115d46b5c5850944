"""What a training keeps or hides, as class numbers: labels checked, missing ones masked, classes weighted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.files.column import is_missing

__all__ = ["MISSING", "TASK", "Target", "checked_targets"]

TASK = "task"
MISSING = -1
_MOST_CLASSES = 1000

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Target:
    """One label a row.

    Attributes:
        name: what errors and statements call it.
        classes: sorted; what the codes stand for.
        codes: (n,) 0 to classes - 1, `MISSING` where there is no label.
        weights: (classes,) float32 weight of a row of the class in losses; their mean over the labelled rows is 1.
    """

    name: str
    classes: tuple[Any, ...]
    codes: Codes
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
    """The task and the attributes, coded.

    Missing labels are None, NaN and the empty string.

    Args:
        rows: how many there are.
        task: a label a row.
        attributes: name to a label a row.
        class_weight: ``"balanced"``: each class counts the same in a loss, however rare; None: each row does.

    Raises:
        ParameterError: no attributes, names that are none, another number of labels.
        DataError: a target without labels, of one class, of more than 1,000 classes, of labels of several types; an
            attribute that says the same as the task.

    >>> task, (age,) = checked_targets(3, ["a", "b", "a"], {"age": [1, None, 2]}, None)
    >>> task.codes.tolist(), age.codes.tolist(), age.classes
    ([0, 1, 0], [0, -1, 1], (1, 2))
    """
    if not isinstance(attributes, Mapping) or not attributes:
        raise ParameterError('attributes must map names to labels, such as {"gender": [...]}: there is nothing to hide')
    if any(not isinstance(name, str) or not name for name in attributes):
        raise ParameterError("the names of attributes must be text, and not empty")
    kept = _coded(TASK, "the task", rows, task, class_weight)
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


def _same_partition(one: Codes, other: Codes) -> bool:
    """Whether the classes of the two are the same sets of rows, where both have a label."""
    both = (one >= 0) & (other >= 0)
    if not both.any():
        return False
    pairs = {*zip(one[both].tolist(), other[both].tolist(), strict=True)}
    return len(pairs) > 1 and len({each for each, _ in pairs}) == len(pairs) == len({each for _, each in pairs})
