"""How near the default dimension comes to the best one, on three tasks: DATA holds ag_news, snips and yelp_sentences.

.venv/bin/python -m benchmarks.dimensions DATA            # eight minutes on one core
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from papers.data_sets import snips, yelp

import dptext
from dptext.representations.bounds import fit_bound
from dptext.representations.device import encoder_of
from dptext.representations.encoders import MeanOfWords
from dptext.representations.registry import best_dimension

EPSILONS = (2.0, 3.0, 4.0, 8.0, 12.0)
TRIED = (2, 4, 8, 16, 32, 64)
ENCODERS = ("glove-6b-50d", "minilm-words-128d")
RUNS = 6
PUBLIC, LEARNED, TESTED = 2_000, 3_000, 2_500
MOST = 10_000  # texts of a task

Task = tuple[Sequence[str], Any]


def main(folder: str) -> None:
    """Print two tables; docs/mechanisms/private-vectors.md and `ON_NEWS` have their figures."""
    tasks = read_tasks(Path(folder))
    print("| encoder | task | epsilon | chosen | accuracy | best of the others | noisy | best of the others | public |")
    for name in ENCODERS:
        for task, (texts, labels) in tasks.items():
            vectors = encoder_of(name).encode(texts)
            for epsilon in EPSILONS:
                print(f"| {name} | {task} | {epsilon:g} | {compared(vectors, labels, epsilon)} |", flush=True)
    print("AG News, GloVe: projection fitted on public texts, on made-up texts, or random")
    encoder = encoder_of(ENCODERS[0])
    assert isinstance(encoder, MeanOfWords)
    texts, labels = tasks["AG News"]
    vectors, made_up = encoder.encode(texts), encoder.public_sample()
    for epsilon in EPSILONS:
        scores = []
        for fitted_on, projection in ((None, "pca"), (made_up, "pca"), (made_up, "random")):
            chosen = best_dimension(vectors.shape[1], dptext.PrivUnit(epsilon=epsilon), projection=projection)
            size = chosen
            scores.append(accuracies(vectors, labels, epsilon, size, fitted_on=fitted_on, projection=projection)[0])
        print(f"{epsilon:g}: ({', '.join(f'{score:.3f}' for score in scores)})", flush=True)


def compared(vectors: Any, labels: Any, epsilon: float) -> str:
    chosen = best_dimension(vectors.shape[1], dptext.PrivUnit(epsilon=epsilon))
    scores = {
        size: accuracies(vectors, labels, epsilon, size)
        for size in sorted({chosen, *(min(tried, vectors.shape[1]) for tried in TRIED)})
    }
    cells = [str(chosen)]
    for measure in (0, 1):
        best = max(scores, key=lambda size: scores[size][measure])
        cells += [f"{scores[chosen][measure]:.3f}", f"{scores[best][measure]:.3f} ({best})"]
    return " | ".join([*cells, f"{scores[chosen][2]:.3f}"])


def accuracies(
    vectors: Any, labels: Any, epsilon: float, size: int, *, fitted_on: Any = None, projection: str = "pca"
) -> tuple[float, float, float]:
    """Return the mean accuracy of a model learned from private vectors, tested on vectors without noise and on noisy
    ones, and the accuracy of a model learned from the public texts with their labels."""
    noise, scores = dptext.PrivUnit(epsilon=epsilon), []
    for run in range(RUNS):
        order = np.random.default_rng(run).permutation(len(vectors))
        public, rest = order[:PUBLIC], order[PUBLIC : PUBLIC + LEARNED + TESTED]
        bound = fit_bound(vectors[public] if fitted_on is None else fitted_on, dimension=size, projection=projection)
        bounded, right = bound.apply(vectors[rest]), labels[rest]
        arrived = noise.randomize(bounded, seed=run)
        server = dptext.NoisyClassifier(channel=noise).fit(arrived[:LEARNED], right[:LEARNED])
        alone = dptext.NoisyClassifier().fit(vectors[public], labels[public])
        scores.append(
            (
                np.mean(server.device_model().predict(bounded[LEARNED:]) == right[LEARNED:]),
                server.score(arrived[LEARNED:], right[LEARNED:]),
                alone.score(vectors[rest][LEARNED:], right[LEARNED:]),
            )
        )
    clean, noisy, public_alone = np.mean(scores, axis=0)
    return float(clean), float(noisy), float(public_alone)


def read_tasks(folder: Path) -> dict[str, Task]:
    with (folder / "ag_news" / "test.csv").open(newline="", encoding="utf-8") as file:
        news = list(csv.reader(file))
    intents, reviews = snips(folder).train, yelp(folder)
    tasks: dict[str, Task] = {
        "AG News": ([f"{row[1]} {row[2]}" for row in news], np.array([int(row[0]) for row in news])),
        "Yelp sentences": (reviews.texts, reviews.labels),
        "SNIPS": (intents.texts, intents.labels),
    }
    for name, (texts, labels) in tasks.items():
        some = np.random.default_rng(5).permutation(len(texts))[:MOST]
        tasks[name] = ([texts[row] for row in some], labels[some])
    return tasks


if __name__ == "__main__":
    main(sys.argv[1])
