"""Public topics and time bins, and the topic of a text: the one whose description is nearest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.features.features import UNIT, PublicFeatures, Spec, fit_features
from dptext.io.artifacts import read_stored
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import zipf_rows
from dptext.synthesis.moments import MOST_CLASSES, Labels
from dptext.validation import check_path, check_text
from dptext.vectors.formats import STATIC, load_vectors_once

OTHER = "(other)"
"""Topic of texts without a known word, and time of texts outside all bins."""
MOST_BINS = 400
_STEPS = 2.0**20
_ARTIFICIAL, _WORDS, _SEED = 1000, 30, 0  # public texts of random words


@dataclass(frozen=True, eq=False)
class Topics:
    """Public taxonomy: T - 1 topics with descriptions, and `OTHER`, in a public feature space."""

    labels: Labels
    features: PublicFeatures

    @classmethod
    def of(cls, topics: Any = None, *, features: Spec = "static") -> Topics:
        """Return a taxonomy from a mapping of names to descriptions, a list of names, a file, or None (61 topics)."""
        if topics is None:
            topics = Path(__file__).with_name("topics.txt")
        if isinstance(topics, str | os.PathLike):
            topics = read_topics(check_path("topics", topics))
        if not isinstance(topics, Mapping):
            names = Labels.of(topics, column="topic").names
            topics = dict(zip(names, names, strict=True))
        if not 2 <= len(topics) <= MOST_CLASSES or OTHER in topics:
            raise ParameterError(f"topics must have 2 to {MOST_CLASSES:,} names without {OTHER!r}, got {len(topics):,}")
        labels = Labels.of(dict(topics), column="topic")
        result = cls(labels, fit_features(features, _artificial_texts(), cache=False))
        blank, *vectors = map(tuple, result.features.units(["", *result.described]).tolist())
        earlier = {blank}
        for place, vector in enumerate(vectors, 1):
            if vector in earlier:
                raise ParameterError(
                    f"the features know no word of topic {place} of {len(labels)}, or cannot tell it from an earlier "
                    "one: describe it in other words, or pass other features"
                )
            earlier.add(vector)
        return result

    @property
    def described(self) -> list[str]:
        """Names and descriptions of the topics, as the features see them."""
        pairs = zip(self.labels.names, self.labels.described or (), strict=True)
        return [f"{name}: {text}" for name, text in pairs]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.labels.names, OTHER)

    @cached_property
    def _directions(self) -> npt.NDArray[np.float64]:
        vectors = self.features.vectors(self.described).astype(np.float64)
        vectors -= vectors.mean(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # in whole numbers, so that a sum of products does not depend on its order, and a topic not on other texts
        return np.rint(vectors / np.where(lengths > 0, lengths, 1.0) * _STEPS)

    def codes(self, units: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return the topic of each text, from its (n, k) vectors in units; it depends on this text only."""
        scores = units @ self._directions.T - np.rint(self.features.mean @ self._directions.T / UNIT)
        result: npt.NDArray[np.int64] = scores.argmax(axis=1).astype(np.int64)
        result[(units == self.features.units([""])).all(axis=1)] = len(self.labels)
        return result

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters that a privacy statement names."""
        digest = hashlib.sha256("\n".join(self.described).encode()).hexdigest()
        return {"topics": len(self.names), "topics_sha256": digest, **self.features.parameters()}


def _artificial_texts() -> list[str]:
    """Return texts of random words with the frequencies of everyday English (Zipf), for the centre of the features."""
    words = load_vectors_once(STATIC).words
    rows = zipf_rows(len(words), _ARTIFICIAL * _WORDS, seed=_SEED).reshape(_ARTIFICIAL, _WORDS)
    return [" ".join(words[row] for row in text) for text in rows.tolist()]


def read_topics(path: Path) -> dict[str, str]:
    """Read a taxonomy: a name, a colon or a tab, and a description on each line."""
    try:
        lines = read_stored(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is not UTF-8: convert it") from None
    topics: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, _, text = (part.strip() for part in line.partition("\t" if "\t" in line else ":"))
        if line.strip() and (not name or not text or name in topics):
            raise DataError(f"{path.name}, line {number}: expected NAME: DESCRIPTION, with a name that occurs once")
        topics |= {name: text} if name else {}
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
        ends = bins.split(".." if ".." in bins else ",") if isinstance(bins, str) else list(map(str, bins))
        names = np.array([], dtype=np.str_)
        with suppress(ValueError, TypeError, OverflowError, MemoryError):
            times = np.array(ends, dtype="datetime64")
            names = (np.arange(times[0], times[-1] + 1) if ".." in bins else times).astype(np.str_)
        is_sorted = 2 <= len(names) <= MOST_BINS and bool((names[1:] > names[:-1]).all())
        if not is_sorted or len(names[0]) > len("2004-05-31") or not {*names[[0, -1]], *ends} <= {*names}:
            raise ParameterError(
                f"bins must be 2 to {MOST_BINS} years, months or days in ascending order: a range such as "
                "2004-01..2004-12, or a list such as 2003,2004. They are public and never read from the texts"
            )
        return cls(check_text("time", column), tuple(names.tolist()))

    def code(self, values: tuple[str | None, ...]) -> int:
        """Return the bin of a time, given as the beginning of an ISO date; the last code for all other values."""
        return self._codes.get((values[0] or "")[: len(self.names[0])], len(self.names))

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.names)}
