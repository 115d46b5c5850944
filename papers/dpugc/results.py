"""The rows of one file by model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from papers.dpugc.intervals import over_units
from papers.dpugc.models import LARGER, Model
from papers.dpugc.neighbours import PAPER_QUERIES

from dptext.intervals import Estimate
from papers import reports

ORDER = (
    *("public", "public words", "public words and characters", "public, centred", "public, processed", "only noise"),
    *("private", *LARGER, "no noise", "word2vec", "another word2vec"),
)


class Rows(reports.Rows):
    """The rows of one file."""

    def models(self, order: Iterable[str] = ORDER) -> list[Model]:
        """Return the models that have rows, in the order of tables."""
        places = {name: place for place, name in enumerate(order)}
        models = {Model(row.settings["model"], row.settings["epsilon"]) for row in self.rows}  # type: ignore[arg-type]
        return sorted(models, key=lambda model: (places.get(model.kind, len(places)), model.epsilon or 0.0))

    def precision(self, measure: str, **settings: Any) -> Estimate | None:
        """Return MAP-Word or MAP-Char with its interval over queries and runs."""
        values = self.table([f"{measure} {query}" for query in PAPER_QUERIES], **settings)
        return over_units(values, of="queries") if values.size else None
