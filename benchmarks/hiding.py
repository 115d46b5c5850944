"""How long a hiding encoder takes to train, in how much memory, and which game hides best: see benchmarks/README.md.

Command: ``python benchmarks/hiding.py [--documents 30000] [--epochs 10] [--seeds 3] [--only time|games]``.

Documents are of words drawn as texts have them, 60 to each; times do not hang on what the words say. The games are
played on made-up vectors, where it is known what there is to hide.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.neural_network import MLPClassifier
from zipf import texts

import dptext

WORDS, LENGTH = 20_000, 60
ROWS, TRAINED = 9_000, 6_000


def main() -> None:
    parser = argparse.ArgumentParser(description="Hiding encoders.")
    parser.add_argument("--documents", type=int, default=30_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3, help="of the games")
    parser.add_argument("--only", choices=["time", "games"])
    options = parser.parse_args()
    if options.only != "games":
        times(options.documents, options.epochs)
    if options.only != "time":
        games(options.seeds)


# -- time and memory ----------------------------------------------------------------------------------------------


def times(documents: int, epochs: int) -> None:
    rows = list(texts([f"w{rank}" for rank in range(WORDS)], documents, LENGTH))
    draw = np.random.default_rng(1)
    labels = {
        "task": draw.integers(0, 5, documents),
        "attributes": {"gender": draw.integers(0, 2, documents), "age": draw.integers(0, 3, documents)},
    }
    noise = dptext.PrivUnit(epsilon=8.0)
    print(f"{documents:,} documents of {LENGTH} words, {epochs} epochs, one thread\n")
    print("| what | CPU seconds | wall seconds | peak memory, GiB |\n|---|---:|---:|---:|")
    hiding = dptext.HidingEncoder("glove-6b-50d", noise, epochs=epochs, seed=1)
    measured("hiding, layers on means of word vectors", lambda: hiding.fit(rows, **labels))
    measured("release of all documents", lambda: hiding.transform(rows))
    print()


def measured(name: str, work: Any) -> Any:
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"| {name} | {cpu:.0f} | {wall:.0f} | {peak:.2f} |", flush=True)
    return result


# -- which game ---------------------------------------------------------------------------------------------------


def games(seeds: int) -> None:
    x, task, attributes = made_up()
    print("Balanced accuracy of fresh attackers (the better of logistic regression and a perceptron) on new rows,")
    print(f"the mean over {seeds} seeds. A guess: task .25, linear and exclusive or .50, correlated .33.\n")
    print("| noise | game | haste | steps | task | linear + exclusive or | correlated |")
    print("|---|---|---:|---:|---:|---:|---:|")
    raw = [attacked(x, attribute) for attribute in (task, *attributes.values())]
    print(f"| none | the vectors as they are | | | {' | '.join(f'{entry:.3f}' for entry in raw)} |")
    for name, noise in (("none", None), ("PrivUnit, epsilon 8", dptext.PrivUnit(epsilon=8.0))):
        for game, haste, steps, alpha in (
            ("none (alpha 0)", 1.0, 1, 0.0),
            ("alternating", 1.0, 3, 1.0),
            ("alternating", 5.0, 1, 1.0),
            ("alternating", 5.0, 3, 1.0),
        ):
            played = {"adversary_haste": haste, "adversary_steps": steps} if alpha else {}
            result = []
            for seed in range(1, seeds + 1):
                hiding = dptext.HidingEncoder(None, noise, dimension=16, alpha=alpha, seed=seed, **played)
                hiding.fit(
                    x[:TRAINED],
                    task=task[:TRAINED],
                    attributes={name: entry[:TRAINED] for name, entry in attributes.items()},
                )
                vectors = hiding.transform(x, seed=seed)
                result.append([attacked(vectors, attribute) for attribute in (task, *attributes.values())])
            numbers = " | ".join(f"{entry:.3f}" for entry in np.mean(result, axis=0))
            print(f"| {name} | {game} | {haste:g} | {steps} | {numbers} |", flush=True)


def made_up() -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    draw = np.random.default_rng(0)
    task, one = draw.integers(0, 4, ROWS), draw.integers(0, 2, ROWS)
    other = np.where(draw.random(ROWS) < 0.5, task % 3, draw.integers(0, 3, ROWS))
    x = draw.normal(size=(ROWS, 48))
    x[:, :4] += 1.6 * np.eye(4)[task]
    x[:, 4] += 1.5 * (2 * one - 1)
    x[:, 0] += 0.7 * (2 * one - 1)  # in a direction that tells the task, too
    sign = draw.choice([-1, 1], ROWS)
    x[:, 6] += 1.5 * sign
    x[:, 7] += 1.5 * sign * (2 * one - 1)
    x[:, 8:11] += 1.3 * np.eye(3)[other]
    return x @ draw.normal(size=(48, 48)) / 7, task, {"one": one, "other": other}


def attacked(vectors: np.ndarray, labels: np.ndarray) -> float:
    """By attackers trained on the rows of the training, judged on the others."""
    result = []
    for attacker in (
        LogisticRegression(max_iter=300, class_weight="balanced"),
        MLPClassifier((64,), max_iter=20, random_state=0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attacker.fit(vectors[:TRAINED], labels[:TRAINED])
        result.append(balanced_accuracy_score(labels[TRAINED:], attacker.predict(vectors[TRAINED:])))
    return max(result)


if __name__ == "__main__":
    main()
