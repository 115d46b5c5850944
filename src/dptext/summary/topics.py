"""Public topics and time bins, and the topic of a text: the one whose description is nearest."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, StorageError
from dptext.features.features import UNIT, PublicFeatures, Spec, fit_features
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.synthesis.moments import Labels
from dptext.validation import check_path, check_text
from dptext.vectors.formats import STATIC, load_vectors_once

OTHER = "(other)"
"""Topic of texts without a known word, and time of texts outside all bins."""
MOST_BINS = 400
_ARTIFICIAL, _WORDS, _SEED = 1000, 30, 0  # public texts of random words
_RANGE = re.compile(r"(\d{4}(?:-\d\d(?:-\d\d)?)?)\.\.(\d{4}(?:-\d\d(?:-\d\d)?)?)")


@dataclass(frozen=True, eq=False)
class Topics:
    """Public taxonomy: T - 1 topics with descriptions, and `OTHER`, in a public feature space."""

    labels: Labels
    features: PublicFeatures

    @classmethod
    def of(cls, topics: Any = None, *, features: Spec = "static") -> Topics:
        """Return a taxonomy from a mapping of names to descriptions, a list of names, a file, or None (61 topics)."""
        if topics is None:
            topics = _described((files("dptext.summary") / "topics.txt").read_text(encoding="utf-8"), "topics.txt")
        elif isinstance(topics, str | os.PathLike):
            topics = read_topics(check_path("topics", topics))
        elif not isinstance(topics, Mapping):
            topics = {str(name): str(name) for name in topics}
        labels = Labels.of(dict(topics), column="topic")
        if len(labels) < 2 or OTHER in labels.names:
            raise ParameterError(f"topics must have at least two names, none of them {OTHER!r}")
        return cls(labels, fit_features(features, _artificial_texts(), cache=False))

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.labels.names, OTHER)

    @cached_property
    def _directions(self) -> npt.NDArray[np.float64]:
        texts = [f"{name}: {text}" for name, text in zip(self.labels.names, self.labels.described or (), strict=True)]
        vectors = self.features.vectors(texts).astype(np.float64)
        vectors -= vectors.mean(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))

    @cached_property
    def _blank(self) -> npt.NDArray[np.int32]:
        return self.features.units([""])

    def codes(self, units: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return the topic of each text, from its (n, k) vectors in units; it depends on this text only."""
        scores = units @ self._directions.T - self.features.mean @ self._directions.T / UNIT
        result: npt.NDArray[np.int64] = scores.argmax(axis=1).astype(np.int64)
        result[(units == self._blank).all(axis=1)] = len(self.labels)
        return result

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters that a privacy statement names."""
        return {"topics": len(self.names), "topics_sha256": self.labels.sha256, **self.features.parameters()}


def _artificial_texts() -> list[str]:
    """Return texts of random words with the frequencies of everyday English (Zipf), for the centre of the features."""
    words, bits = load_vectors_once(STATIC).words, RandomBits(_SEED)
    shares = np.cumsum(1 / np.arange(1.0, len(words) + 1))
    rows = np.searchsorted(shares / shares[-1], bits.uniform(_ARTIFICIAL * _WORDS) * (1 - 1e-9))
    return [" ".join(words[row] for row in text) for text in rows.reshape(_ARTIFICIAL, _WORDS).tolist()]


def read_topics(path: Path) -> dict[str, str]:
    """Read a taxonomy: a name, a colon or a tab, and a description on each line."""
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is not UTF-8: convert it") from None
    return _described(content, path.name)


def _described(content: str, source: str) -> dict[str, str]:
    topics: dict[str, str] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        name, _, text = line.partition("\t" if "\t" in line else ":")
        if not name.strip() or not text.strip() or name.strip() in topics:
            raise DataError(f"{source}, line {number}: expected NAME: DESCRIPTION, with a name that occurs once")
        topics[name.strip()] = text.strip()
    return topics


@dataclass(frozen=True)
class TimeBins:
    """Public time bins: beginnings of ISO dates, such as 2004-05 for a month, in ascending order."""

    column: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, column: str | None, bins: str | Sequence[str] | None) -> TimeBins | None:
        """Return the bins of a range (``"2004-01..2004-12"``) or a list; None if no time column is named."""
        if column is None and bins is None:
            return None
        if column is None or bins is None:
            raise ParameterError("time= (the column) and bins= (public, such as 2004-01..2004-12) belong together")
        column = check_text("time", column)
        found = _RANGE.fullmatch(bins) if isinstance(bins, str) else None
        if isinstance(bins, str):
            names = _between(*found.groups()) if found else tuple(part.strip() for part in bins.split(","))
        else:
            names = tuple(map(str, bins))
        if not 2 <= len(names) <= MOST_BINS or list(names) != sorted(set(names)):
            raise ParameterError(
                f"bins must be 2 to {MOST_BINS} ascending ISO dates, months or years: a range such as "
                "2004-01..2004-12, or a list such as 2003,2004. They are public and never read from the texts"
            )
        if len({len(name) for name in names}) > 1 or not all(_RANGE.fullmatch(f"{name}..{name}") for name in names):
            raise ParameterError("bins must all be years (2004), months (2004-01) or days (2004-01-31)")
        return cls(column, names)

    def code(self, values: tuple[str | None, ...]) -> int:
        """Return the bin of a time, given as the beginning of an ISO date; the last code for all other values."""
        return self._codes.get((values[0] or "")[: len(self.names[0])], len(self.names))

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.names)}


def _between(first: str, last: str) -> tuple[str, ...]:
    """Return all years, months or days of a range; nothing if its ends do not belong together."""
    try:
        start, end = (date.fromisoformat((part + "-01-01")[:10]) for part in (first, last))
    except ValueError:
        return ()
    if len(first) != len(last) or (end - start).days > 366 * MOST_BINS:
        return ()
    days = (start + timedelta(number) for number in range((end - start).days + 1))
    return tuple(dict.fromkeys(day.isoformat()[: len(first)] for day in days))
