"""`TextSummary`: released counts of topics, phrases and times, with intervals, a page, and files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, ParameterError
from dptext.intervals import Estimate, Floats, significant
from dptext.io.artifacts import SavedFolder, read_statement_of, read_tensors, tensor_bytes
from dptext.privacy import wording
from dptext.privacy.statement import HasStatement, PrivacyStatement
from dptext.summary.estimates import NoisyTable, positive
from dptext.summary.topics import OTHER, TimeBins
from dptext.synthesis.moments import Labels
from dptext.validation import check_path

_TENSORS, _PRIVACY, _CARD, _PAGE, _JSON = "sums.safetensors", "privacy.json", "README.md", "page.html", "summary.json"
FOLDER = SavedFolder(
    format="dptext-text-summary",
    version=1,
    writer="dptext describe or TextSummary.save",
    holds="a summary of texts",
    keys=("topics", "descriptions", "bins", "scales", "phrases", "other_phrases", "examples"),
    files=(_TENSORS, _PRIVACY, _CARD, _PAGE, _JSON),
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """Slope per time bin, or difference between two releases, of the share of a topic.

    ``significant``: it differs from 0, for all topics together at the 5% level.
    """

    estimate: Estimate
    p_value: float
    significant: bool


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TextSummary(HasStatement, ReprMixin):
    """Released counts of topics, phrases and trends; see `dptext.describe`.

    **Guarantee.** See `statement`. All methods only post-process released numbers. Intervals have a confidence of 95%
    for all numbers of a section together; they cover the noise, for the people in the data, and no further sampling.

    Attributes:
        labels: names and descriptions of the topics.
        bins: time bins; None: no trends.
        sums: noisy sums by part ("people", "topics", "bins", "cells", "counts", "examples").
        scales: weight of one user in the sum of each part.
        phrases: phrases with a count, the most interesting first.
        other_phrases: further phrases that many people write; they were not counted.
        examples: public texts nearest to each topic.
        statement: privacy statement.
    """

    labels: Labels
    bins: TimeBins | None
    sums: Mapping[str, Floats]
    scales: Mapping[str, float]
    phrases: tuple[str, ...]
    other_phrases: tuple[str, ...] = ()
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    statement: PrivacyStatement

    mechanism: ClassVar[str] = "text summary"

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics, the last one for all other texts."""
        return (*self.labels.names, OTHER)

    def part(self, name: str) -> Floats:
        """Return the noisy sums of a part, in numbers of users."""
        return self.sums[name] / self.scales[name]

    def deviation(self, name: str) -> float:
        """Return the standard deviation of the noise of a part, in numbers of users; infinite without the part."""
        sigma: Any = self.statement.parameters["sigma"]
        return float(sigma) / self.scales[name] if name in self.scales else math.inf

    @cached_property
    def table(self) -> NoisyTable:
        """Topics by times, with the noise of each part."""
        shape = len(self.topics), 1 if self.bins is None else len(self.bins.names) + 1
        names = ("cells", "topics", "bins", "people")
        cells, topics, bins, people = (self.part(n) if n in self.sums else np.zeros((1, 1)) for n in names)
        return NoisyTable(
            cells=cells + np.zeros(shape),
            topics=topics[0] + np.zeros(shape[0]),
            bins=bins[0] + np.zeros(shape[1]),
            total=float(people[0, 0]),
            variances={name: self.deviation(name) ** 2 for name in names},
        )

    @property
    def people(self) -> Estimate:
        """Number of people (or of documents, if these are protected)."""
        return positive(float(self.table.values.sum()), self.table.total_variance(), 1)

    def shares(self, time: str | None = None) -> dict[str, Estimate]:
        """Return the share of each topic in the texts of an average person, at all times or in one time bin."""
        if time is None:
            return dict(zip(self.topics, self.table.shares(), strict=True))
        if time not in self.shares_by_time:
            raise ParameterError(f"the release has no time bin {time!r}")
        return self.shares_by_time[time]

    def times(self) -> dict[str, Estimate]:
        """Return the share of each time bin in the texts of an average person, the last one for all other times."""
        if self.bins is None:
            return {}
        return dict(zip((*self.bins.names, OTHER), self.table.transposed().shares(), strict=True))

    @cached_property
    def shares_by_time(self) -> dict[str, dict[str, Estimate]]:
        """Share of each topic in each time bin."""
        names = () if self.bins is None else self.bins.names
        rows = (self.table.shares(place) for place in range(len(names)))
        return {name: dict(zip(self.topics, row, strict=True)) for name, row in zip(names, rows, strict=True)}

    def counts(self) -> dict[str, Estimate]:
        """Return the number of people who write each of `phrases`."""
        if not self.phrases:
            return {}
        variance = self.table.total_variance() + self.deviation("counts") ** 2
        values = (self.table.values.sum() + self.part("counts")[0]) / 2  # (counts)
        pairs = zip(self.phrases, values.tolist(), strict=True)
        return {name: positive(value, variance / 4, len(self.phrases)) for name, value in pairs}

    def trends(self) -> dict[str, Change]:
        """Return the slope of the share of each topic over the time bins."""
        if self.bins is None:
            raise ParameterError("the release has no times: pass time= and bins= to describe")
        return self._tested(self.table.trends())

    def changes_since(self, earlier: TextSummary) -> dict[str, Change]:
        """Return the change of each share since an earlier release with the same topics."""
        one, other = (
            (entry.labels, entry.statement.unit, entry.statement.parameters.get("features_sha256"))
            for entry in (self, earlier)
        )
        if one != other:
            raise ParameterError("the two releases must have the same topics, features and privacy unit")
        return self._tested(self.table.changes(earlier.table))

    def _tested(self, results: Sequence[tuple[Estimate, float]]) -> dict[str, Change]:
        rejected = significant([p_value for _, p_value in results])
        return {
            name: Change(estimate=estimate, p_value=p_value, significant=is_significant)
            for name, (estimate, p_value), is_significant in zip(self.topics, results, rejected, strict=True)
        }

    def as_dict(self) -> dict[str, Any]:
        """Return all estimates, for JSON."""
        result: dict[str, Any] = {"people": asdict(self.people), "shares": _as_dicts(self.shares())}
        result |= {"phrases": _as_dicts(self.counts()), "other_phrases": list(self.other_phrases)}
        if self.bins is not None:
            result["times"] = _as_dicts(self.times())
            result["shares_by_time"] = {name: _as_dicts(shares) for name, shares in self.shares_by_time.items()}
            result["trends"] = {name: asdict(trend) for name, trend in self.trends().items()}
        return result | {"examples": {name: list(texts) for name, texts in self.examples.items()}}

    def html(self) -> str:
        """Return the page, which can be shared."""
        statement = self.statement
        return wording.filled(
            "summary/templates/page.html",
            summary=self,
            statement=statement,
            protected=wording.protected(statement),
            not_protected=wording.not_protected(statement),
            explanation=wording.explanation_html(statement),
        )

    def card(self) -> str:
        """Return the Markdown card of the folder."""
        return wording.filled("summary/templates/card.md", summary=self, statement=self.statement)

    def save(self, folder: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Save page, card, estimates, noisy sums and statement in a folder, completely or not at all.

        Raises:
            ParameterError: the path already exists (``replace=True`` overwrites a summary).
            StorageError: the folder cannot be written.
        """
        target, arrays = FOLDER.place(folder, replace=replace), tensor_bytes(self.sums)
        statement = self.statement.replace(data_sha256=hashlib.sha256(arrays).hexdigest())
        config = {
            "topics": list(self.labels.names),
            "descriptions": list(self.labels.described or ()),
            "bins": None if self.bins is None else [self.bins.column, list(self.bins.names)],
            "scales": dict(self.scales),
            "phrases": list(self.phrases),
            "other_phrases": list(self.other_phrases),
            "examples": {name: list(texts) for name, texts in self.examples.items()},
        }
        views = dataclasses.replace(self, statement=statement).files()
        files = {_TENSORS: arrays, _PRIVACY: f"{statement.to_json()}\n".encode(), **views}
        FOLDER.write(target, config, files, software=statement.software, replace=replace)

    def files(self) -> dict[str, bytes]:
        """Return the files that follow from the sums: the page, the card and the estimates."""
        numbers = json.dumps(self.as_dict(), indent=1, ensure_ascii=False)
        contents = {_CARD: self.card(), _PAGE: self.html(), _JSON: numbers}
        return {name: f"{content}\n".encode("utf-8", "replace") for name, content in contents.items()}

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> TextSummary:
        """Load a summary from a folder of `save`.

        Raises:
            DataError: the folder was changed, or is not a summary.
            StorageError: the folder cannot be read.
        """
        place = check_path("the folder", folder)
        source = place.name or str(place)
        config, contents = FOLDER.read(place, source)
        tensors, _ = read_tensors(place / _TENSORS, source=f"{source}: {_TENSORS}")
        try:
            bins = config["bins"]
            summary = cls(
                labels=Labels.of(dict(zip(config["topics"], config["descriptions"], strict=True)), column="topic"),
                bins=None if bins is None else TimeBins.of(*bins),
                sums=tensors,
                scales=config["scales"],
                phrases=tuple(config["phrases"]),
                other_phrases=tuple(config["other_phrases"]),
                examples={name: tuple(texts) for name, texts in config["examples"].items()},
                statement=read_statement_of(contents[_PRIVACY], source, _PRIVACY),
            )
            if tensors.keys() != summary.scales.keys() or not all(scale > 0 for scale in summary.scales.values()):
                raise ValueError
            summary.as_dict()  # raises if the parts do not belong together
        except (ParameterError, TypeError, KeyError, ValueError, AttributeError, ArithmeticError, IndexError):
            raise DataError(f"{source}: its files do not belong together. Get the folder again") from None
        return summary

    def _repr_fields(self) -> Fields:
        yield "topics", len(self.topics)
        yield "bins", None if self.bins is None else len(self.bins.names)
        yield "phrases", len(self.phrases)
        yield "guarantee", str(self.statement.guarantee)


def _as_dicts(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float]]:
    return {name: {"value": e.value, "low": e.low, "high": e.high} for name, e in estimates.items()}
