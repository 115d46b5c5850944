"""TEM on word vectors that were trained on private reviews: utility, and both guarantees together; see README.md.

Command: ``python -m papers.tem.composed [--quick] [--data FOLDER]``. Rows: ``results-composed/composed.jsonl``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from papers.data_sets import Review, imdb_reviews
from papers.dpugc.models import DELTA, plan_of, released, total_of
from papers.reports import Rows, group_by_settings, mean_of, number_of, run_command, table, write_tables
from papers.sweeps import Row
from papers.tem.corpus import Corpus, measure_trial, read_corpus, run_trials, seed_of

from dptext import Cooccurrence, Document, WordVectors, calibrate, statement_with_training
from dptext.privacy.randomness import RandomBits
from dptext.words.mechanism import WordMechanism

HERE = Path(__file__).resolve().parent
START, END = "<!-- composed: written by the experiment -->", "<!-- end of composed -->"
TRAINING = (2.0, 8.0, 32.0)
"""Epsilons of the vectors, for adding or removing the author of a review."""
KEPT = (0.15, 0.5)
"""Keep rates at which mechanisms are compared: vectors of other lengths change the unit of epsilon."""
LENGTH = 200
"""Words of the text in the bounds; half of the reviews are shorter."""


def main(arguments: Sequence[str] | None = None) -> None:
    description = "TEM on vectors that were trained on private reviews."
    options = run_trials(
        description,
        HERE,
        arguments,
        part="composed",
        bench=lambda *bench: ComposedReleases(*bench).cell,
        settings_of=settings_of,
    )
    write_report(options.out, readme=options.readme)


def settings_of(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield all settings. "learnt" with an epsilon of None is the release without noise: it has no guarantee."""
    vectors: list[tuple[str, float | None]] = [("public", None), ("nobody's", TRAINING[1])]
    vectors += [("learnt", epsilon) for epsilon in (TRAINING[1:2] if quick else TRAINING)]
    for kept in KEPT[:1] if quick else KEPT:
        for kind, epsilon in (*vectors, ("learnt", None)):
            yield {"vectors": kind, "training": epsilon, "kept": kept}


@dataclass(frozen=True)
class ComposedReleases:
    """Vectors learned from all training reviews, each by a made-up user; then a quarter of them, privatized."""

    data: Path
    public: WordVectors
    reviews: int

    @cached_property
    def _reviews(self) -> tuple[Review, ...]:
        return tuple(imdb_reviews(self.data))

    @cached_property
    def _corpus(self) -> Corpus:
        """The corpus for all vectors, which have the same words in the same order."""
        return read_corpus(self._reviews, self.public)

    @cached_property
    def _total(self) -> Any:
        """The private sum of the training reviews, to which the release adds noise."""
        reviews = [Document(entry.text, user=str(place)) for place, entry in enumerate(self._reviews) if entry.train]
        return total_of(plan_of(self.public), reviews)

    def _vectors(self, kind: str, epsilon: float | None, seed: int) -> WordVectors:
        if kind == "public":
            return self.public
        if epsilon is None:
            return released(plan_of(self.public), self._total, sigma=0.0, run=1)
        model = Cooccurrence(self.public, epsilon=epsilon, delta=DELTA)
        total = self._total if kind == "learnt" else np.zeros_like(self._total)
        return model.released(model.plan(), total, RandomBits(seed_of("vectors", seed))).vectors_

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        vectors = self._vectors(settings["vectors"], settings["training"], seed)
        weights = self._corpus.frequencies(len(vectors))
        mechanism = calibrate(vectors, "tem", keep_rate=settings["kept"], weights=weights, seed=1).mechanism
        # the server that learns from private text starts from public vectors, in every row
        names = ("composed", *settings.values())
        numbers, *_ = measure_trial(self._corpus, mechanism, self.public, reviews=self.reviews, trial=seed, names=names)
        return numbers | bounds(mechanism, vectors)


def bounds(mechanism: WordMechanism, vectors: WordVectors) -> dict[str, float]:
    """Return the maximal privacy loss of an author of one text of `LENGTH` words; 0 if the vectors are public.

    ``of the text``: in the release alone. ``of the vectors``: in the training alone, add/remove. ``of both``, with its
    delta: in both, under substitution.
    """
    statement = mechanism.document_statement(LENGTH)
    result = {"epsilon": mechanism.epsilon, "of the text": statement.whole_guarantee.epsilon}
    if vectors.statement is None:
        return result | {"of the vectors": 0.0, "of both": 0.0, "delta of both": 0.0}
    both = statement_with_training(statement, vectors)
    return result | {
        "of the vectors": vectors.statement.epsilon,
        "of both": both.epsilon,
        "delta of both": both.guarantee.delta,
    }


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``table.md`` into a folder, and the same into the README."""
    rows = Rows(out / "composed.jsonl")
    head = ["vectors", "epsilon of TEM", "stays", "guessed", "accuracy", "text alone", "training alone (add/remove)"]
    lines, trials = [], 0
    for settings, runs in group_by_settings(rows.rows):
        cells = [number_of(runs, name) for name in ("stays", "guessed", "accuracy")]
        lines.append([_name(settings), f"{mean_of(runs, 'epsilon'):.2f}", *cells, *_bounds(settings, runs)])
        trials = max(trials, len(runs))
    sections = [
        f"**TEM on learned vectors**, at equal keep rates. Bounds are for a person with one text of {LENGTH} words.",
        table([*head, "both (substitution)"], lines),
        f"{trials} trials, {rows.constants['reviews']:,} reviews per quarter; majority .500.",
    ]
    write_tables(out / "table.md", sections, readme=readme, start=START, end=END)


def _name(settings: Mapping[str, Any]) -> str:
    kind, epsilon = settings["vectors"], settings["training"]
    if kind == "public":
        return "public"
    if kind == "nobody's":
        return f"a release of no users, epsilon {epsilon:g}"
    return "learned, no noise" if epsilon is None else f"learned, epsilon {epsilon:g}"


def _bounds(settings: Mapping[str, Any], runs: Sequence[Row]) -> list[str]:
    text = f"{mean_of(runs, 'of the text'):,.0f}"
    if settings["vectors"] == "public":
        return [text, "no private texts", "as the text alone"]
    if settings["training"] is None:
        return [text, "no guarantee", "no guarantee"]
    both = f"({mean_of(runs, 'of both'):,.0f}, {mean_of(runs, 'delta of both'):.1g})"
    return [text, f"({mean_of(runs, 'of the vectors'):g}, {DELTA:g})", both]


if __name__ == "__main__":
    run_command(main)
