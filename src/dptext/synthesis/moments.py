"""Public labels, and the only private statistic: the sum of clipped user moments (counts and feature means per class).

Derivation: docs/mechanisms/synthesis.md#synthesis-moments
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.features.features import UNIT, PublicFeatures
from dptext.io.documents import canonical_label
from dptext.noise.gaussian_sums import clipped_matrices, sums_by_key
from dptext.privacy.statement import PrivacyStatement
from dptext.users.grouping import UserTexts
from dptext.users.private_vocabulary import PrivateLabels
from dptext.validation import check_int, check_names, display_value, format_names, is_encodable
from dptext.validation import check_text as as_text

MOST_CLASSES = 10_000
"""Maximum number of classes; each class needs memory and candidates, but adds no noise."""
OUTSIDE = -1
"""Class of a document whose label is missing or unknown."""


@dataclass(frozen=True)
class Labels:
    """Public set of classes: all combinations of one value per column."""

    columns: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    learned: tuple[tuple[str, PrivacyStatement], ...] = field(default=(), compare=False, repr=False)
    descriptions: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_names("the columns of labels", self.columns))
        values = tuple(_check_labels(*pair) for pair in zip(self.columns, self.values, strict=True))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "descriptions", tuple(map(tuple, self.descriptions)) or ((),) * len(values))
        for column, labels, texts in zip(self.columns, values, self.descriptions, strict=True):
            is_text = all(isinstance(text, str) and text.strip() and is_encodable(text) for text in texts)
            if not is_text or len(texts) not in (0, len(labels)):
                raise ParameterError(
                    f"the descriptions of the labels of {column!r} must contain one non-empty UTF-8 text per label"
                )
        if len(self) > MOST_CLASSES:
            raise ParameterError(
                f"labels must have at most {MOST_CLASSES:,} classes, got {len(self):,} combinations: use fewer labels "
                "or columns"
            )

    @classmethod
    def of(cls, labels: object, *, column: str = "label") -> Labels:
        """Convert an argument ``labels`` to `Labels`."""
        if labels is None:
            return cls()
        if isinstance(labels, Labels):
            return labels
        if isinstance(labels, PrivateLabels):
            return cls((labels.column,), (_names_of(labels),), (("labels", labels.statement),))
        if not isinstance(labels, Mapping):
            return cls((as_text("column", column),), (labels,))  # type: ignore[arg-type]  # becomes a tuple
        if not labels:
            raise ParameterError("labels must name at least one column: omit labels if there are none")
        if all(isinstance(text, str) for text in labels.values()):  # one column with label descriptions
            return cls.of({as_text("column", column): labels})
        learned = tuple(
            (f"labels of {name}", entry.statement) for name, entry in labels.items() if isinstance(entry, PrivateLabels)
        )
        texts = tuple(tuple(entry.values()) if isinstance(entry, Mapping) else () for entry in labels.values())
        return cls(tuple(labels), tuple(map(_names_of, labels.values())), learned, texts)

    def to_dict(self) -> dict[str, Any]:
        """Return the columns, values and descriptions, and the statements of learned labels, for JSON."""
        return {
            "columns": list(self.columns),
            "values": [list(value) for value in self.values],
            "learned": {name: entry.to_json() for name, entry in self.learned},
            "descriptions": [list(texts) for texts in self.descriptions],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Labels:
        """Return the labels of `to_dict`; raise KeyError, TypeError, ValueError or a `DptextError` for other data."""
        learned = tuple((name, PrivacyStatement.from_json(entry)) for name, entry in data["learned"].items())
        return cls(tuple(data["columns"]), data["values"], learned, data["descriptions"])

    def __len__(self) -> int:
        return math.prod(map(len, self.values))

    @cached_property
    def sha256(self) -> str | None:
        """SHA-256 digest of the columns and values in order; None without labels."""
        if not self.columns:
            return None
        return hashlib.sha256(json.dumps([self.columns, self.values]).encode()).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each class: its values joined by slashes, or an empty name without labels."""
        result = tuple(" / ".join(values) for values in product(*self.values))
        if len(set(result)) == len(result):
            return result
        return tuple(" / ".join(map(repr, values)) for values in product(*self.values))

    @cached_property
    def described(self) -> tuple[str, ...] | None:
        """Public description of each class, joined over its values; None without descriptions."""
        columns = [texts or ("",) * len(labels) for texts, labels in zip(self.descriptions, self.values, strict=True)]
        return tuple(" ".join(filter(None, texts)) for texts in product(*columns)) if any(self.descriptions) else None

    def code(self, values: Sequence[object]) -> int:
        """Return the class of one value per column, in any spelling; `OUTSIDE` for unknown ones. It never raises."""
        return self._codes.get(tuple(map(canonical_label, values)), OUTSIDE)

    def check_examples(self, examples: Any) -> dict[str, list[str]]:
        """Return public examples by class name, given as such a mapping, or as a list if there are no labels."""
        if not isinstance(examples, Mapping):
            examples = {} if examples is None else {"": examples}
        by_name = {canonical_label(name) or "": texts for name, texts in examples.items()}
        if len(by_name) < len(examples):
            raise ParameterError("examples must name each label once")
        for name, texts in by_name.items():
            if name not in self.names:
                by_label = f"lists of texts by label name ({format_names(self.names)})"
                got = display_value(name) if name else "no label"
                raise ParameterError(f"examples must be {by_label if self.columns else 'a list of texts'}, got {got}")
            is_list = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
            if not is_list or not all(isinstance(text, str) and text.strip() and is_encodable(text) for text in texts):
                raise ParameterError(f"the examples of {name!r} must be a list of non-empty UTF-8 texts")
        return {name: list(texts) for name, texts in by_name.items()}

    def values_of(self, code: int) -> dict[str, str]:
        """Return the value of each column for a class."""
        code = check_int("the class", code, minimum=0, maximum=len(self) - 1)
        result = []
        for values in reversed(self.values):
            code, place = divmod(code, len(values))
            result.append(values[place])
        return dict(zip(self.columns, reversed(result), strict=True))

    @cached_property
    def _codes(self) -> dict[tuple[str | None, ...], int]:
        return {values: code for code, values in enumerate(product(*self.values))}


def _names_of(labels: object) -> Any:
    if not isinstance(labels, PrivateLabels):
        return labels
    if not labels.names:
        raise ParameterError(
            "dptext.private_labels found no label that enough people have: describe the texts without labels, or use "
            "public labels"
        )
    return labels.names


def _check_labels(column: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        kind = "one text" if isinstance(values, str | bytes) else display_value(values)
        raise ParameterError(f"the labels of {column!r} must be a list, got {kind}")
    labels = [canonical_label(value) for value in islice(values, MOST_CLASSES + 1)]
    known = [label for label in labels if label is not None and is_encodable(label)]
    if not known or len(known) < len(labels):
        raise ParameterError(
            f"the labels of {column!r} must be texts that UTF-8 can encode, numbers or truth values, at least one"
        )
    if len(set(known)) < len(known):
        place = next(place for place, label in enumerate(known, 1) if label in known[: place - 1])
        raise ParameterError(
            f"the labels of {column!r} must differ, entry {place} occurs before (1, 1.0 and '1' are one label)"
        )
    return tuple(sorted(known) if isinstance(values, AbstractSet) else known)


COUNT_WEIGHT = 0.2
"""beta of (document): the noise on a document count is sigma / beta; features keep 98% of a document's norm."""
TEXTS_AT_ONCE = 1024

Integers = npt.NDArray[np.int64]


@dataclass(eq=False)
class MomentSum:
    """Sum of the matrices of all users."""

    space: PublicFeatures
    classes: int
    cells: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.cells = np.zeros((self.classes, 1 + self.space.dimension), dtype=np.int64)

    def add(self, people: Iterable[UserTexts]) -> int:
        """Add the matrices of users, each with all their documents; return the number of users."""
        texts: list[str] = []
        keys: list[Integers] = []
        count = waiting = 0
        for person in people:
            count += 1
            for chunk, codes in person.chunks():
                inside = np.flatnonzero(codes >= 0)  # documents of a known class
                texts += [chunk[place] for place in inside.tolist()]
                keys.append(codes[inside].astype(np.int64) + waiting * self.classes)
            waiting += 1
            if len(texts) >= TEXTS_AT_ONCE:
                self._add(texts, np.concatenate(keys))
                texts, keys, waiting = [], [], 0
        if texts:
            self._add(texts, np.concatenate(keys))
        return count

    def _add(self, texts: Sequence[str], keys: Integers) -> None:
        """Clip and add the rows of complete users; a key is person * K + class."""
        keys, counts, sums = sums_by_key(keys, self.space.units(texts).astype(np.int64))
        person, label = np.divmod(keys, self.classes)
        features = sums * (UNIT * math.sqrt(1 - COUNT_WEIGHT**2))
        rows = np.concatenate([COUNT_WEIGHT * counts[:, None], features], axis=1)  # (document)
        starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]])
        cells = clipped_matrices(rows, starts, np.ones(len(starts)))  # (person)
        present, _, sums = sums_by_key(label, cells)
        self.cells[present] += sums
