"""TEM on word vectors that were trained on private reviews: its use, and both promises added; see README.md.

Command: ``python -m papers.tem.composed [--quick] [--data ../shared/data]``

Every cell is a line of ``results-composed/composed.jsonl``, written when it is done: run it again to go on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.mechanism import DELTA, plan_of, released, total_of
from papers.imdb import Review, reviews
from papers.reports import Rows, by_settings, mean_of, number_of, write_between
from papers.sweeps import Sweep, read_sweep
from papers.tem.cells import Settings, recovered, trained
from papers.tem.corpus import Corpus, quarters, read_corpus
from papers.tem.fasttext import Ragged
from papers.tem.trials import run_trials

from dptext import Cooccurrence, Document, WordVectors, calibrate, statement_with_training
from dptext.privacy.randomness import RandomBits
from dptext.words.mechanism import WordMechanism

START, END = "<!-- composed: written by the experiment -->", "<!-- end of composed -->"
TRAINING = (2.0, 8.0, 32.0)
"""Epsilons of the vectors, for adding or removing who wrote a review."""
KEPT = (0.15, 0.5)
"""Shares of words that stay: vectors of other lengths give epsilon another unit, so mechanisms are compared there."""
LENGTH = 200
"""Words of the text that the bounds speak of; half of the reviews are shorter."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="TEM on vectors that were trained on private reviews.")
    parser.add_argument("--quick", action="store_true", help="two trials, 600 reviews a quarter: does it run?")
    name = "TEM on vectors with a promise of their own"
    options = run_trials(parser, "composed", ComposedReleases, settings_of, name=name, arguments=arguments)
    write_report(options.out, readme=options.readme)


def settings_of(*, quick: bool) -> Iterator[dict[str, Any]]:
    """All settings. An epsilon of None with "learnt" is the release without its noise: it promises nothing."""
    usual: dict[str, Any] = {"vectors": "public", "training": None, "kept": KEPT[0]}
    for kept in KEPT[:1] if quick else KEPT:
        yield usual | {"kept": kept}
        yield usual | {"vectors": "nobody's", "training": TRAINING[1], "kept": kept}
        for epsilon in TRAINING[1:2] if quick else TRAINING:
            yield usual | {"vectors": "learnt", "training": epsilon, "kept": kept}
        yield usual | {"vectors": "learnt", "training": None, "kept": kept}


@dataclass(frozen=True)
class ComposedReleases:
    """Vectors learnt from all training reviews, each of a made-up person; then a quarter of these reviews, privatised.

    Attributes:
        data: the folder of the archive.
        public: vectors that the learnt ones start from.
        most: reviews a quarter.
    """

    data: Path
    public: WordVectors
    most: int

    @cached_property
    def reviews(self) -> tuple[Review, ...]:
        return tuple(reviews(self.data))

    @cached_property
    def corpus(self) -> Corpus:
        """All vectors here have the same words, in the same order."""
        return read_corpus(self.reviews, self.public)

    @cached_property
    def _total(self) -> Any:
        """What the training reviews add up to, each of a person of its own. Private; the release adds noise to it."""
        people = [Document(entry.text, user=str(place)) for place, entry in enumerate(self.reviews) if entry.train]
        return total_of(plan_of(self.public), people)

    def vectors(self, kind: str, epsilon: float | None, seed: int) -> WordVectors:
        """The vectors of a trial; those with a promise carry it."""
        if kind == "public":
            return self.public
        if epsilon is None:
            return released(plan_of(self.public), self._total, sigma=0.0, run=1)
        model = Cooccurrence(self.public, epsilon=epsilon, delta=DELTA)
        total = self._total if kind == "learnt" else np.zeros_like(self._total)
        bits = RandomBits(Settings(self.most, 0).seed_of("vectors", seed))
        return model.released(model.plan(), total, bits).vectors_

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """The numbers of one setting and trial."""
        shared, corpus = Settings(self.most, 0), self.corpus
        vectors = self.vectors(settings["vectors"], settings["training"], seed)
        weights = corpus.frequencies(len(vectors))
        mechanism = calibrate(vectors, "tem", keep_rate=settings["kept"], weights=weights, seed=1).mechanism
        parts = quarters(corpus, reviews=self.most, seed=shared.seed_of("quarters", seed))
        text, labels = corpus.ids.take(parts.tr1), corpus.positive[parts.tr1]
        own = shared.seed_of("composed", seed, *settings.values())
        noisy = Ragged(mechanism.sample_rows(text.values, RandomBits(own)), text.starts)
        # the server that learns from private text starts from public vectors, in every row
        target = trained(noisy, labels, self.public, shared, own)
        return {
            "stays": float((noisy.values == text.values).mean()),
            "guessed": recovered(text.values, noisy.values, len(vectors)),
            "accuracy": target.score(corpus.ids.take(parts.te1), corpus.positive[parts.te1]),
        } | promises(mechanism, vectors)


def promises(mechanism: WordMechanism, vectors: WordVectors) -> dict[str, float]:
    """What a person loses at most who wrote one text of `LENGTH` words; 0 where nothing was asked of the vectors.

    ``of the text``: somebody in the release alone. ``of the vectors``: somebody in the training alone, add/remove.
    ``of both``, with its delta: somebody in both, under substitution.
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


# -- the table -------------------------------------------------------------------------------------------------


def write_report(out: Path, *, readme: Path | None) -> None:
    """``table.md`` in a folder, and the same in the README."""
    text = _table(read_sweep(out / "composed.jsonl"))
    (out / "table.md").write_text(text + "\n", encoding="utf-8")
    write_between(readme, START, END, text)


def _table(found: Sweep) -> str:
    rows, reviews_of = found.rows, found.experiment["constants"]["reviews"]
    lines = [
        "**TEM on learnt vectors**, where equally many words stay. Bounds are of a person with one text of "
        f"{LENGTH} words.",
        "",
        "| vectors | epsilon of TEM | stays | guessed | accuracy | text alone | training alone (add/remove) "
        "| both (substitution) |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for settings, runs in by_settings(rows):
        cells = [number_of(runs, entry) for entry in ("stays", "guessed", "accuracy")]
        lines.append(
            f"| {_name(settings)} | {mean_of(runs, 'epsilon'):.2f} | {' | '.join(cells)} | {_bounds(settings, runs)} |"
        )
    trials = max((len(runs) for _, runs in by_settings(rows)), default=0)
    return "\n".join([*lines, "", f"{trials} trials, {reviews_of:,} reviews a quarter; majority .500."])


def _name(settings: Mapping[str, Any]) -> str:
    kind, epsilon = settings["vectors"], settings["training"]
    if kind == "public":
        return "public"
    if kind == "nobody's":
        return f"a release of nobody, epsilon {epsilon:g}"
    return "learnt, no noise" if epsilon is None else f"learnt, epsilon {epsilon:g}"


def _bounds(settings: Mapping[str, Any], runs: Rows) -> str:
    alone = f"{mean_of(runs, 'of the text'):,.0f}"
    if settings["vectors"] == "public":
        return f"{alone} | nobody is in it | as the text alone"
    if settings["training"] is None:
        return f"{alone} | no promise | no promise"
    learnt = f"({mean_of(runs, 'of the vectors'):g}, {DELTA:g})"
    return f"{alone} | {learnt} | ({mean_of(runs, 'of both'):,.0f}, {mean_of(runs, 'delta of both'):.1g})"


if __name__ == "__main__":
    main()
