"""TEM and Madlib on the IMDb reviews (paper 2107.07928, section 5 and appendix C): see README.md.

Command: ``python -m papers.tem.experiment [--quick] [--data FOLDER]``. Every finished cell is a row of ``results.csv``;
an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import imdb_reviews
from papers.membership import likelihood_ratio_membership, loss_membership, random_halves, shadow_membership
from papers.reports import parse_options
from papers.tem.corpus import (
    EPOCHS,
    GLOVE,
    SEED,
    Corpus,
    Quarters,
    load_public,
    privatize,
    quarters,
    read_corpus,
    recovery_rate,
    seed_of,
    train,
)
from papers.tem.fasttext import FastTextClassifier
from papers.tem.report import write_report

from dptext import TEM, Madlib, WordVectors, calibrate, deniability
from dptext.attacks.membership import Membership
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

HERE = Path(__file__).resolve().parent
EPSILONS = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0)
ADAPTIVE = ("TEM", 4.0)
MIN_KEPT = 0.003  # smallest keep rate of Madlib that is matched
MECHANISMS = {"TEM": TEM, "Madlib": Madlib}
_QUICK = {"epsilons": (4.0, 10.0), "trials": 2, "reviews": 500, "shadows": 4}
_FULL = {"epsilons": EPSILONS, "trials": 5, "reviews": None, "shadows": 16}
_MEASURES = {"auc": "auc", "accuracy": "accuracy", "at_1_percent": "tpr_1", "at_01_percent": "tpr_01"}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One cell of the experiment.

    Attributes:
        trial: 0, 1, ...
        mechanism: "none", "TEM" or "Madlib".
        epsilon: 0 for none.
        arm: "epsilon" (the common grid) or "keep" (the epsilon with Madlib's keep rate).
        match: Madlib's epsilon, in the arm "keep".
        adaptive: whether another attacker trains models on text that was privatized in the same way.
    """

    trial: int
    mechanism: str
    epsilon: float
    arm: str = "epsilon"
    match: float | None = None
    adaptive: bool = False

    @property
    def key(self) -> tuple[int, str, str, str]:
        return self.trial, self.mechanism, f"{self.epsilon:g}", self.arm


@dataclass(frozen=True, eq=False)
class Trial:
    """The quarters of a trial and the outputs of the attacker's models, trained on unprotected reviews.

    Attributes:
        corpus, vectors: of all trials.
        parts: the quarters.
        shadow: (TE2 + TE1, 2) outputs of the shadow model, trained on TE2.
        halves: (shadows, TR1 + TR2) training rows of each model of the likelihood-ratio attack.
        outputs: (shadows, TR1 + TR2, 2) outputs of these models.
    """

    corpus: Corpus
    vectors: WordVectors
    parts: Quarters
    shadow: Floats
    halves: npt.NDArray[np.bool_]
    outputs: Floats

    @classmethod
    def of(cls, number: int, corpus: Corpus, vectors: WordVectors, reviews: int | None, shadows: int) -> Trial:
        parts = quarters(corpus, reviews=reviews, seed=seed_of("quarters", number))
        pool = np.concatenate([parts.tr1, parts.tr2])
        halves = np.empty((0, pool.size), dtype=bool)
        if shadows:
            halves = random_halves(pool.size, shadows, seed=seed_of("halves", number))

        def outputs(rows: Any, tested: Any, seed: int) -> Floats:
            model = train(corpus.ids.take(rows), corpus.positive[rows], vectors, seed)
            return model.predict_proba(corpus.ids.take(tested))

        shadow = outputs(parts.te2, np.concatenate([parts.te2, parts.te1]), seed_of("shadow", number))
        models = [outputs(pool[half], pool, seed_of("half", number, place)) for place, half in enumerate(halves)]
        stacked = np.stack(models) if models else np.empty((0, pool.size, 2))
        return cls(corpus, vectors, parts, shadow, halves, stacked)

    @property
    def pool(self) -> npt.NDArray[np.int64]:
        return np.concatenate([self.parts.tr1, self.parts.tr2])

    def attacked(self, target: FastTextClassifier) -> tuple[Floats, Any, npt.NDArray[np.bool_]]:
        """Return the target's outputs, the labels and the membership of TR1 and TR2."""
        outputs = target.predict_proba(self.corpus.ids.take(self.pool))
        return outputs, self.corpus.positive[self.pool], np.arange(self.pool.size) < self.parts.tr1.size


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(
        "TEM and Madlib on the IMDb reviews.",
        HERE,
        arguments,
        vectors={"default": GLOVE, "help": "a known name, or a path"},
        epsilons={"type": float, "nargs": "+"},
        trials={"type": int, "help": "5; quick: 2"},
        reviews={"type": int, "help": "size of a quarter; all: 12,500"},
        shadows={"type": int, "help": "models of the likelihood-ratio attack; even, or 0"},
    )
    for name, value in (_QUICK if options.quick else _FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if not options.report:
        vectors = load_public(options.vectors)
        run(options, read_corpus(imdb_reviews(options.data), vectors), vectors)
    write_report(options.out, readme=options.readme)


def run(options: argparse.Namespace, corpus: Corpus, vectors: WordVectors) -> None:
    """Measure all cells that the file lacks, one trial after the other."""
    file = options.out / "results.csv"
    shared = {"vectors_sha256": vectors.fingerprint, "words": len(vectors), "dimension": vectors.dimension}
    shared |= {"reviews": options.reviews, "shadows": options.shadows, "epochs": EPOCHS, "base_seed": SEED}
    done = _finished(file, shared)
    cells = [cell for cell in cells_of(options, corpus, vectors) if cell.key not in done]
    for number in sorted({cell.trial for cell in cells}):
        trial = Trial.of(number, corpus, vectors, options.reviews, options.shadows)
        for cell in (cell for cell in cells if cell.trial == number):
            row = shared | measure(cell, trial)
            _append(file, row)
            print(f"{cell.mechanism} {cell.epsilon:g} trial {number}: accuracy {row['accuracy']:.3f}", flush=True)


def cells_of(options: argparse.Namespace, corpus: Corpus, vectors: WordVectors) -> Iterator[Cell]:
    """Yield all cells; a run that is cut short has whole trials."""
    matched = dict(matched_epsilons(corpus, vectors, options.epsilons))
    for trial in range(options.trials):
        yield Cell(trial, "none", 0.0)
        for epsilon in options.epsilons:
            yield Cell(trial, "Madlib", epsilon)
            yield Cell(trial, "TEM", epsilon, adaptive=not options.quick and ("TEM", epsilon) == ADAPTIVE)
        for madlib, epsilon in matched.items():
            yield Cell(trial, "TEM", epsilon, "keep", match=madlib)


def matched_epsilons(corpus: Corpus, vectors: WordVectors, epsilons: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield (Madlib's epsilon, TEM's epsilon with the same keep rate), by the frequencies of these public reviews."""
    weights = corpus.frequencies(len(vectors))
    for epsilon in epsilons:
        kept = deniability(Madlib(vectors, epsilon=epsilon), weights=weights, seed=1).mean("keep")
        if kept < MIN_KEPT:
            continue
        try:
            yield epsilon, calibrate(vectors, "tem", keep_rate=kept, weights=weights, seed=1).epsilon
        except ParameterError:
            continue  # TEM cannot reach this keep rate, because some words share a point


def measure(cell: Cell, trial: Trial) -> dict[str, Any]:
    """Return one row of the results: privatize TR1, train on it, test on TE1, attack."""
    seed, corpus, vectors, parts = seed_of(*cell.key), trial.corpus, trial.vectors, trial.parts
    clock = time.process_time()
    bits = RandomBits(seed)
    mechanism = None if cell.mechanism == "none" else MECHANISMS[cell.mechanism](vectors, epsilon=cell.epsilon)
    text, labels = corpus.ids.take(parts.tr1), corpus.positive[parts.tr1]
    noisy = privatize(mechanism, text, bits)
    row: dict[str, Any] = {
        "trial": cell.trial,
        "mechanism": cell.mechanism,
        "epsilon": f"{cell.epsilon:g}",
        "arm": cell.arm,
        "beside": "" if cell.match is None else f"{cell.match:g}",
        "seed": seed,
        "keep": float((noisy.values == text.values).mean()),
        "recovered": recovery_rate(text.values, noisy.values, len(vectors)),
    }
    row["seconds_privatise"], clock = time.process_time() - clock, time.process_time()
    target = train(noisy, labels, vectors, seed)
    row["accuracy_tr1_private"] = target.score(noisy, labels)
    row["accuracy_tr1"] = target.score(text, labels)
    row["accuracy"] = target.score(corpus.ids.take(parts.te1), corpus.positive[parts.te1])
    row["seconds_train"], clock = time.process_time() - clock, time.process_time()
    attacks = _attacks(target, trial, seed)
    if cell.adaptive and len(trial.halves):
        models = []
        for place, half in enumerate(trial.halves):
            rows = trial.pool[half]
            private = privatize(mechanism, corpus.ids.take(rows), bits)
            model = train(private, corpus.positive[rows], vectors, seed_of("adaptive", place, *cell.key))
            models.append(model.predict_proba(corpus.ids.take(trial.pool)))
        attacks["adaptive"] = likelihood_ratio_membership(np.stack(models), trial.halves, *trial.attacked(target))
    for name, result in attacks.items():
        row |= {f"{name}_{short}": getattr(result, long).score.value for long, short in _MEASURES.items()}
    row["seconds_attack"] = time.process_time() - clock
    return row


def _attacks(target: FastTextClassifier, trial: Trial, seed: int) -> dict[str, Membership]:
    """Return the attacks of an attacker with the original reviews and models trained on unprotected ones."""
    outputs, labels, members = trial.attacked(target)
    in_te2 = np.arange(len(trial.shadow)) < trial.parts.te2.size
    shadow_labels = trial.corpus.positive[np.concatenate([trial.parts.te2, trial.parts.te1])]
    shadow = (trial.shadow, in_te2, outputs, members)
    result = {
        "shadow": shadow_membership(*shadow, seed=seed),
        "labelled_shadow": shadow_membership(*shadow, shadow_labels=shadow_labels, labels=labels, seed=seed),
        "loss": loss_membership(outputs, labels, members),
    }
    if len(trial.halves):
        models = (trial.outputs, trial.halves, outputs, labels, members)
        result["online"] = likelihood_ratio_membership(*models)
        result["offline"] = likelihood_ratio_membership(*models, online=False)
    return result


def _finished(file: Path, shared: dict[str, Any]) -> set[tuple[int, str, str, str]]:
    if not file.exists():
        return set()
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    if any(row[name] != _text(value) for row in rows for name, value in shared.items()):
        raise ParameterError(f"{str(file)!r} holds a run with other settings: give another folder with --out")
    return {(int(row["trial"]), row["mechanism"], row["epsilon"], row["arm"]) for row in rows}


def _append(file: Path, row: dict[str, Any]) -> None:
    adaptive = [f"adaptive_{entry}" for entry in _MEASURES.values()]  # last: few cells have them
    names = [name for name in row if name not in adaptive] + adaptive
    is_new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow({name: _text(row.get(name, "")) for name in names})


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    main()
