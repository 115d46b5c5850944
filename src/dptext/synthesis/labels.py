"""The classes that a description tells apart: a public set of labels, of one column or of several."""

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

from dptext.checks import is_encodable, names, shown, whole
from dptext.checks import text as as_text
from dptext.errors import ParameterError
from dptext.io.documents import canonical_label
from dptext.privacy.statement import PrivacyStatement
from dptext.users.private_vocabulary import PrivateLabels

__all__ = ["MOST_CLASSES", "OUTSIDE", "Labels"]

MOST_CLASSES = 10_000
"""A class costs no noise, but memory and candidates."""
OUTSIDE = -1
"""The class of a document whose label is none of these, or missing."""


@dataclass(frozen=True)
class Labels:
    """A public set of classes: every combination of one value a column."""

    columns: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    learned: tuple[tuple[str, PrivacyStatement], ...] = field(default=(), compare=False, repr=False)
    descriptions: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names("the columns of labels", self.columns))
        values = tuple(self.values)
        if len(values) != len(self.columns):
            raise ParameterError(
                f"values must be one list of labels for each column, got {len(values)} for {len(self.columns)} columns"
            )
        found = tuple(_spelled(column, given) for column, given in zip(self.columns, values, strict=True))
        object.__setattr__(self, "values", found)
        descriptions = tuple(map(tuple, self.descriptions)) or ((),) * len(found)
        object.__setattr__(self, "descriptions", descriptions)
        if [len(texts) or len(labels) for texts, labels in zip(descriptions, found, strict=False)] != [
            *map(len, found)
        ]:
            raise ParameterError("descriptions must be one text for each label of a column, or none for the column")
        for column, texts in zip(self.columns, descriptions, strict=True):
            _check_descriptions(column, texts)
        count = math.prod(map(len, found))
        if count > MOST_CLASSES:
            raise ParameterError(
                f"labels make at most {MOST_CLASSES:,} classes, got {count:,} combinations of {len(found)} columns: "
                "name fewer labels, or fewer columns"
            )

    @classmethod
    def of(cls, given: object, *, column: str = "label") -> Labels:
        """The classes that a caller means."""
        if given is None:
            return cls()
        if isinstance(given, Labels):
            return given
        if isinstance(given, PrivateLabels):
            return cls((given.column,), (_names_of(given),), (("labels", given.statement),))
        if isinstance(given, Mapping):
            if not given:
                raise ParameterError("labels must name at least one column, got none: leave labels out for no labels")
            if all(isinstance(text, str) for text in given.values()):  # one column, each label with its description
                return cls.of({as_text("column", column): given})
            found = {name: each.statement for name, each in given.items() if isinstance(each, PrivateLabels)}
            learned = tuple((f"labels of {name}", each) for name, each in found.items())
            texts = tuple(tuple(each.values()) if isinstance(each, Mapping) else () for each in given.values())
            return cls(tuple(given), tuple(map(_names_of, given.values())), learned, texts)
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise ParameterError(
                "labels must be a list of labels, or a mapping from columns to lists of labels, got "
                f"{'one text' if isinstance(given, str | bytes) else shown(given)}"
            )
        return cls((as_text("column", column),), (given,))  # type: ignore[arg-type]  # made a tuple at birth

    def __len__(self) -> int:
        return math.prod(map(len, self.values))

    @cached_property
    def sha256(self) -> str | None:
        """Digest of columns and values in their order; None where there are no labels."""
        if not self.columns:
            return None
        return hashlib.sha256(json.dumps([self.columns, self.values]).encode()).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """For each class, its values one after the other; an empty name where there are no labels."""
        found = tuple(" / ".join(values) for values in product(*self.values))
        if len(set(found)) == len(found):
            return found
        return tuple(" / ".join(map(repr, values)) for values in product(*self.values))

    @cached_property
    def described(self) -> tuple[str, ...] | None:
        """The public description of each class, those of its values one after the other; None without descriptions."""
        columns = [texts or ("",) * len(labels) for texts, labels in zip(self.descriptions, self.values, strict=True)]
        return tuple(" ".join(filter(None, texts)) for texts in product(*columns)) if any(self.descriptions) else None

    def code(self, values: Sequence[object]) -> int:
        """The class of one value a column, in any spelling; `OUTSIDE` for every other combination. Raises nothing."""
        return self._codes.get(tuple(map(canonical_label, values)), OUTSIDE)

    def values_of(self, code: int) -> dict[str, str]:
        """The value of each column in a class."""
        code = whole("the class", code, least=0, most=len(self) - 1)
        found = []
        for values in reversed(self.values):
            code, place = divmod(code, len(values))
            found.append(values[place])
        return dict(zip(self.columns, reversed(found), strict=True))

    @cached_property
    def _codes(self) -> dict[tuple[str | None, ...], int]:
        return {values: code for code, values in enumerate(product(*self.values))}


def _check_descriptions(column: str, texts: tuple[str, ...]) -> None:
    for place, text in enumerate(texts, 1):
        if not isinstance(text, str) or not text.strip() or not is_encodable(text):
            raise ParameterError(
                f"the description of label {place} of {column!r} must be a non-empty text that UTF-8 can hold"
            )


def _names_of(given: object) -> Any:
    if not isinstance(given, PrivateLabels):
        return given
    if not given.names:
        raise ParameterError(
            "dptext.private_labels found no label that enough people have: describe the texts without labels, or name "
            "labels that are public"
        )
    return given.names


def _spelled(column: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        what = "one text" if isinstance(given, str | bytes) else shown(given)
        raise ParameterError(f"the labels of {column!r} must be a list, got {what}")
    found = [canonical_label(each) for each in islice(given, MOST_CLASSES + 1)]
    spelled = [each for each in found if each is not None]
    if len(spelled) < len(found) or not found:
        what = "an empty list" if not found else f"one that is none of these, at place {found.index(None) + 1}"
        raise ParameterError(f"the labels of {column!r} must be texts, numbers or truth values, got {what}")
    if not all(map(is_encodable, spelled)):
        raise ParameterError(
            f"the labels of {column!r} must be texts that UTF-8 can hold, got one with half a surrogate pair"
        )
    if isinstance(given, AbstractSet):
        spelled.sort()  # the order of a set is another one in every process
    seen: set[str] = set()
    for place, each in enumerate(spelled, 1):
        if each in seen:
            raise ParameterError(
                f"the labels of {column!r} must differ, got the one at place {place} before: 1, 1.0 and '1' are one "
                "label"
            )
        seen.add(each)
    return tuple(spelled)
