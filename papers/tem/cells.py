"""One cell of the experiment: privatise TR1, train on it, test on TE1, attack.

A trial draws quarters of the reviews, trains the shadow models and keeps their outputs in a file; its cells read it.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.tem.corpus import Corpus, Quarters, quarters
from papers.tem.fasttext import FastTextClassifier, Ragged

from dptext import TEM, Madlib, WordVectors
from dptext.attacks.membership import (
    Membership,
    likelihood_ratio_membership,
    loss_membership,
    random_halves,
    shadow_membership,
)
from dptext.privacy.randomness import RandomBits
from dptext.words.mechanism import WordMechanism

NONE = "none"
MECHANISMS = {"TEM": TEM, "Madlib": Madlib}
MEASURES = {"auc": "auc", "accuracy": "accuracy", "at_1_percent": "tpr_1", "at_01_percent": "tpr_01"}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """What is done once.

    Attributes:
        trial: 0, 1, ...
        mechanism: "none", "TEM" or "Madlib".
        epsilon: 0 for none.
        arm: "epsilon" (the common grid) or "keep" (the epsilon at which as many words stay as under Madlib).
        beside: Madlib's epsilon, in the arm "keep".
        adaptive: whether the attacker also trains his models on text that he privatised in the same way.
    """

    trial: int
    mechanism: str
    epsilon: float
    arm: str
    beside: float | None = None
    adaptive: bool = False

    @property
    def key(self) -> tuple[int, str, str, str]:
        return self.trial, self.mechanism, f"{self.epsilon:g}", self.arm


@dataclass(frozen=True)
class Settings:
    """What all cells of a run share.

    Attributes:
        reviews: how many a quarter; None: all.
        shadows: models of the likelihood-ratio attack; 0: without it.
        epochs: of every classifier.
        seed: all others are made from it.
    """

    reviews: int | None
    shadows: int
    epochs: int = 20
    seed: int = 2107_07928

    def seed_of(self, *names: object) -> int:
        """A seed of its own for everything that is random."""
        name = "/".join(map(str, (self.seed, *names)))
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "little")


@dataclass(frozen=True, eq=False)
class Trial:
    """The quarters and what the attacker's models say.

    Attributes:
        parts: the quarters.
        shadow: (TE2 + TE1, 2) outputs of the shadow model, trained on TE2.
        halves: (shadows, TR1 + TR2) what each model of the likelihood-ratio attack was trained on.
        outputs: (shadows, TR1 + TR2, 2) what these say.
    """

    parts: Quarters
    shadow: Floats
    halves: npt.NDArray[np.bool_]
    outputs: Floats


def trained(ids: Ragged, labels: Any, vectors: WordVectors, settings: Settings, seed: int) -> FastTextClassifier:
    return FastTextClassifier(vectors=vectors.matrix, epochs=settings.epochs, seed=seed).fit(ids, labels)


def prepared_trial(number: int, corpus: Corpus, vectors: WordVectors, settings: Settings, folder: Path) -> Trial:
    """The trial from its file, or made and written there."""
    parts = quarters(corpus, reviews=settings.reviews, seed=settings.seed_of("quarters", number))
    pool = np.concatenate([parts.tr1, parts.tr2])
    halves = np.empty((0, pool.size), dtype=bool)
    if settings.shadows:
        halves = random_halves(pool.size, settings.shadows, seed=settings.seed_of("halves", number))
    shared = settings.reviews, settings.shadows, settings.epochs, vectors.fingerprint
    file = folder / f"trial{number}-{settings.seed_of('file', *shared):x}.npz"  # other settings, another file
    if file.exists():
        with np.load(file) as stored:
            return Trial(parts, stored["shadow"], halves, stored["outputs"])

    def outputs(trained_on: Any, asked: Any, seed: int) -> Floats:
        model = trained(corpus.ids.take(trained_on), corpus.positive[trained_on], vectors, settings, seed)
        return model.predict_proba(corpus.ids.take(asked))

    shadow = outputs(parts.te2, np.concatenate([parts.te2, parts.te1]), settings.seed_of("shadow", number))
    of_halves = [
        outputs(pool[half], pool, settings.seed_of("half", number, place)) for place, half in enumerate(halves)
    ]
    result = np.stack(of_halves) if of_halves else np.empty((0, pool.size, 2))
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".part.npz")
    np.savez(unfinished, shadow=shadow, outputs=result)
    unfinished.replace(file)
    return Trial(parts, shadow, halves, result)


def run_cell(cell: Cell, trial: Trial, corpus: Corpus, vectors: WordVectors, settings: Settings) -> dict[str, Any]:
    """One row of the results."""
    seed = settings.seed_of(*cell.key)
    clock = time.process_time()
    parts = trial.parts
    text, labels = corpus.ids.take(parts.tr1), corpus.positive[parts.tr1]
    private = Private(cell, vectors, seed)
    noisy = private(text)
    row: dict[str, Any] = {
        "trial": cell.trial,
        "mechanism": cell.mechanism,
        "epsilon": f"{cell.epsilon:g}",
        "arm": cell.arm,
        "beside": "" if cell.beside is None else f"{cell.beside:g}",
        "seed": seed,
        "keep": float((noisy.values == text.values).mean()),
        "recovered": recovered(text.values, noisy.values, len(vectors)),
    }
    row["seconds_privatise"], clock = time.process_time() - clock, time.process_time()
    target = trained(noisy, labels, vectors, settings, seed)
    row["accuracy_tr1_private"] = target.score(noisy, labels)
    row["accuracy_tr1"] = target.score(text, labels)
    row["accuracy"] = target.score(corpus.ids.take(parts.te1), corpus.positive[parts.te1])
    row["seconds_train"], clock = time.process_time() - clock, time.process_time()
    for name, result in attacks(target, trial, corpus, seed).items():
        row |= measures(name, result)
    if cell.adaptive and settings.shadows:
        row |= measures("adaptive", adaptive_attack(target, private, trial, corpus, vectors, settings, cell))
    row["seconds_attack"] = time.process_time() - clock
    return row


class Private:
    """Reviews through the mechanism of a cell, afresh at each call."""

    def __init__(self, cell: Cell, vectors: WordVectors, seed: int) -> None:
        self._bits = RandomBits(seed)
        self._mechanism: WordMechanism | None = None
        if cell.mechanism != NONE:
            self._mechanism = MECHANISMS[cell.mechanism](vectors, epsilon=cell.epsilon)

    def __call__(self, ids: Ragged) -> Ragged:
        if self._mechanism is None:
            return ids
        return Ragged(self._mechanism.sample_rows(ids.values, self._bits), ids.starts)


def recovered(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64], words: int) -> float:
    """How often somebody names the words of one half who learnt on the other which input is likeliest for each output.

    In expectation below what the best attacker of one word gets, to which it tends in long texts.
    """
    half = before.size // 2
    pairs, counts = np.unique(after[:half] * words + before[:half], return_counts=True)
    order = np.argsort(counts, kind="stable")  # the likeliest input last, so that it stays
    named = np.arange(words)
    named[pairs[order] // words] = pairs[order] % words
    return float((named[after[half:]] == before[half:]).mean())


def attacks(target: FastTextClassifier, trial: Trial, corpus: Corpus, seed: int) -> dict[str, Membership]:
    """What an attacker gets who holds the reviews as they were, and trains his models on unprotected ones."""
    parts = trial.parts
    outputs, labels, members = asked(target, trial, corpus)
    in_te2 = np.arange(len(trial.shadow)) < parts.te2.size
    te = np.concatenate([parts.te2, parts.te1])
    result = {
        "shadow": shadow_membership(trial.shadow, in_te2, outputs, members, seed=seed),
        "labelled_shadow": shadow_membership(
            trial.shadow, in_te2, outputs, members, shadow_labels=corpus.positive[te], labels=labels, seed=seed
        ),
        "loss": loss_membership(outputs, labels, members),
    }
    if len(trial.halves):
        shadows = trial.outputs, trial.halves
        result["online"] = likelihood_ratio_membership(*shadows, outputs, labels, members)
        result["offline"] = likelihood_ratio_membership(*shadows, outputs, labels, members, online=False)
    return result


def adaptive_attack(
    target: FastTextClassifier,
    private: Private,
    trial: Trial,
    corpus: Corpus,
    vectors: WordVectors,
    settings: Settings,
    cell: Cell,
) -> Membership:
    """The online likelihood-ratio attack by somebody who knows the mechanism: his models see private text, too."""
    pool = np.concatenate([trial.parts.tr1, trial.parts.tr2])
    result = []
    for place, half in enumerate(trial.halves):
        seed = settings.seed_of("adaptive", place, *cell.key)
        model = trained(private(corpus.ids.take(pool[half])), corpus.positive[pool[half]], vectors, settings, seed)
        result.append(model.predict_proba(corpus.ids.take(pool)))
    return likelihood_ratio_membership(np.stack(result), trial.halves, *asked(target, trial, corpus))


def asked(target: FastTextClassifier, trial: Trial, corpus: Corpus) -> tuple[Floats, Any, npt.NDArray[np.bool_]]:
    """(outputs, labels, members) for TR1 and TR2."""
    pool = np.concatenate([trial.parts.tr1, trial.parts.tr2])
    return (
        target.predict_proba(corpus.ids.take(pool)),
        corpus.positive[pool],
        np.arange(pool.size) < trial.parts.tr1.size,
    )


def measures(name: str, found: Membership) -> dict[str, float]:
    return {f"{name}_{short}": getattr(found, long).score.value for long, short in MEASURES.items()}
