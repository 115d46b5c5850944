"""TEM and Madlib on the IMDb reviews (paper 2107.07928, section 5 and appendix C): see README.md.

Command: ``python -m papers.tem.experiment [--quick] [--data FOLDER]``, or ``--data FILE`` for figure 1 on own texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import imdb_reviews
from papers.membership import likelihood_ratio_membership, loss_membership, random_halves, shadow_membership
from papers.printed import print_own, tem_figures
from papers.reports import parse_options, run_command
from papers.sweeps import sweep
from papers.tem.corpus import (
    EPOCHS,
    GLOVE,
    SEED,
    Corpus,
    FastText,
    Quarters,
    load_public,
    own_reviews,
    privatize,
    quarters,
    read_corpus,
    recovery_rate,
    seed_of,
)
from papers.tem.report import Rows, write_report

from dptext import TEM, Madlib, WordVectors, calibrate, deniability
from dptext.attacks.membership import Membership
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

HERE = Path(__file__).resolve().parent
EPSILONS = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0)
ADAPTIVE = ("TEM", 4.0, "epsilon")
MIN_KEPT = 0.003  # smallest keep rate of Madlib that is matched
MECHANISMS = {"TEM": TEM, "Madlib": Madlib}
_QUICK = {"epsilons": (4.0, 10.0), "trials": 2, "reviews": 500, "shadows": 4}
_OWN = _QUICK | {"epsilons": (2.0, 4.0, 10.0), "trials": 3}
_FULL = {"epsilons": EPSILONS, "trials": 5, "reviews": None, "shadows": 16}
_MEASURES = {"auc": "auc", "accuracy": "accuracy", "at_1_percent": "tpr_1", "at_01_percent": "tpr_01"}

Floats = npt.NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(
        "TEM and Madlib: utility and membership attacks.",
        HERE,
        arguments,
        takes_file=True,
        vectors={"default": GLOVE, "help": "public vectors: a known name, or a path"},
        epsilons={"nargs": "+", "type": float, "help": "of both mechanisms, per unit of distance"},
        trials={"type": int, "help": "number of divisions of the reviews"},
        reviews={"type": int, "help": "size of a quarter; default: all"},
        shadows={"type": int, "help": "models of the likelihood-ratio attack; 0: none"},
    )
    if not options.report:
        defaults = _FULL if not options.quick else _OWN if options.own else _QUICK
        for name, default in defaults.items():
            if getattr(options, name) is None:
                setattr(options, name, default)
        vectors = load_public(options.vectors)
        rows = 4 * (options.reviews or 12_500)
        reviews = own_reviews(options, rows=rows) if options.own else imdb_reviews(options.data)
        corpus = read_corpus(reviews, vectors)
        bench = Bench(corpus, vectors, options.reviews, options.shadows, is_adaptive=not options.quick)
        constants = {"vectors_sha256": vectors.fingerprint, "words": len(vectors), "dimension": vectors.dimension}
        constants |= {"reviews": options.reviews, "shadows": options.shadows, "epochs": EPOCHS, "base_seed": SEED}
        constants |= {"majority": corpus.majority}
        settings, path = list(settings_of(options.epsilons)), options.out / "results.jsonl"
        if not options.own:
            settings += settings_of_equal_keep(corpus, vectors, options.epsilons)
        for trial in range(options.trials):  # each trial as a whole before the next one
            sweep(bench.cell, settings, range(trial + 1), path=path, name="tem", constants=constants)
    write_report(options.out, readme=options.readme)
    if options.own:
        print_own(options, tem_figures(Rows(options.out / "results.jsonl")))


_NAMES = ("mechanism", "epsilon", "arm", "beside")


def settings_of(epsilons: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Yield both mechanisms at the common epsilons."""
    yield dict(zip(_NAMES, ("none", 0.0, "epsilon", None), strict=True))
    for epsilon in epsilons:
        yield from (dict(zip(_NAMES, (name, epsilon, "epsilon", None), strict=True)) for name in ("Madlib", "TEM"))


def settings_of_equal_keep(corpus: Corpus, vectors: WordVectors, epsilons: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Yield TEM at the epsilons with Madlib's keep rates ("beside")."""
    for madlib, epsilon in matched_epsilons(corpus, vectors, epsilons):
        yield dict(zip(_NAMES, ("TEM", epsilon, "keep", madlib), strict=True))


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


@dataclass(frozen=True, eq=False)
class Trial:
    """The quarters of a trial and the outputs of the attacker's models, trained on unprotected reviews."""

    parts: Quarters
    pool: npt.NDArray[np.int64]  # TR1 + TR2
    shadow: Floats  # (TE2 + TE1, 2) outputs of the shadow model, trained on TE2
    halves: npt.NDArray[np.bool_]  # (shadows, pool) training rows of each model of the likelihood-ratio attack
    outputs: Floats  # (shadows, pool, 2) outputs of these models


@dataclass(frozen=True, eq=False)
class Bench:
    """All reviews; a quarter has ``reviews`` of them, and ``shadows`` models attack by their likelihood ratio."""

    corpus: Corpus
    vectors: WordVectors
    reviews: int | None
    shadows: int
    is_adaptive: bool

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """Privatize TR1 of a trial, train on it, test on TE1, and attack."""
        trial, corpus, name, epsilon = self.trial(seed), self.corpus, settings["mechanism"], settings["epsilon"]
        parts, key = trial.parts, (seed, name, f"{epsilon:g}", settings["arm"])
        bits = RandomBits(seed_of(*key))
        mechanism = None if name == "none" else MECHANISMS[name](self.vectors, epsilon=epsilon)
        text, labels = corpus.ids.take(parts.tr1), corpus.labels[parts.tr1]
        noisy = privatize(mechanism, text, bits)
        target = FastText(noisy, labels, self.vectors, seed_of(*key), classes=corpus.classes)
        numbers = {
            "keep": float((noisy.values == text.values).mean()),
            "recovered": recovery_rate(text.values, noisy.values, len(self.vectors)),
            "accuracy_tr1_private": target.score(noisy, labels),
            "accuracy_tr1": target.score(text, labels),
            "accuracy": target.score(corpus.ids.take(parts.te1), corpus.labels[parts.te1]),
            "epsilon of a word": 0.0 if mechanism is None else mechanism.statement.epsilon,
        }
        attacked = target.predict_proba(corpus.ids.take(trial.pool))
        attacks = self._attacks(attacked, trial, seed_of(*key))
        if self.is_adaptive and self.shadows and (name, epsilon, settings["arm"]) == ADAPTIVE:
            models = []  # of an attacker who privatizes the training texts in the same way
            for place, half in enumerate(trial.halves):
                rows = trial.pool[half]
                private = privatize(mechanism, corpus.ids.take(rows), bits)
                seed_of_model = seed_of("adaptive", place, *key)
                model = FastText(private, corpus.labels[rows], self.vectors, seed_of_model, classes=corpus.classes)
                models.append(model.predict_proba(corpus.ids.take(trial.pool)))
            target_rows = attacked, *self._labels(trial)
            attacks["adaptive"] = likelihood_ratio_membership(np.stack(models), trial.halves, *target_rows)
        for attack, result in attacks.items():
            numbers |= {f"{attack}_{short}": getattr(result, long).score.value for long, short in _MEASURES.items()}
        return numbers

    @cache  # noqa: B019  lives as long as the run
    def trial(self, number: int) -> Trial:
        corpus = self.corpus
        parts = quarters(corpus, reviews=self.reviews, seed=seed_of("quarters", number))
        pool = np.concatenate([parts.tr1, parts.tr2])
        halves = np.empty((0, pool.size), dtype=bool)
        if self.shadows:
            halves = random_halves(pool.size, self.shadows, seed=seed_of("halves", number))

        def outputs(rows: Any, tested: Any, seed: int) -> Floats:
            ids, labels = corpus.ids.take(rows), corpus.labels[rows]
            model = FastText(ids, labels, self.vectors, seed, classes=corpus.classes)
            return model.predict_proba(corpus.ids.take(tested))

        shadow = outputs(parts.te2, np.concatenate([parts.te2, parts.te1]), seed_of("shadow", number))
        models = [outputs(pool[half], pool, seed_of("half", number, place)) for place, half in enumerate(halves)]
        return Trial(parts, pool, shadow, halves, np.array(models))

    def _labels(self, trial: Trial) -> tuple[Any, npt.NDArray[np.bool_]]:
        return self.corpus.labels[trial.pool], np.arange(trial.pool.size) < trial.parts.tr1.size

    def _attacks(self, outputs: Floats, trial: Trial, seed: int) -> dict[str, Membership]:
        """Return the attacks of an attacker with the original reviews and models trained on unprotected ones."""
        labels, members = self._labels(trial)
        in_te2 = np.arange(len(trial.shadow)) < trial.parts.te2.size
        shadow_labels = self.corpus.labels[np.concatenate([trial.parts.te2, trial.parts.te1])]
        shadow = (trial.shadow, in_te2, outputs, members)
        result = {
            "shadow": shadow_membership(*shadow, seed=seed),
            "labelled_shadow": shadow_membership(*shadow, shadow_labels=shadow_labels, labels=labels, seed=seed),
            "loss": loss_membership(outputs, labels, members),
        }
        if self.shadows:
            models = (trial.outputs, trial.halves, outputs, labels, members)
            result["online"] = likelihood_ratio_membership(*models)
            result["offline"] = likelihood_ratio_membership(*models, online=False)
        return result


if __name__ == "__main__":
    run_command(main)
