"""Speed of TEM under each metric, relative to the Euclidean one of the same run: see benchmarks/README.md.

Command: ``python benchmarks/metrics.py [--repeats 5]``
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
import zipf

import words
from dptext import TEM, WordVectors, load_vectors

VOCABULARIES = (20_000, 100_000)
SEARCHED_BY_FUNCTION = 20_000  # the largest vocabulary on which a function is measured
# Each metric with an epsilon at which about as many words stay as with 5 under the Euclidean distance.
EPSILONS = {"euclidean": 5.0, "angular": 25.0, "halved_manhattan": 1.8}


def halved_manhattan(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """A caller's function, as a caller would write it."""
    return np.abs(matrix - rows[:, None]).sum(axis=2) / 2


@dataclass
class Row:
    """The best of the repeats."""

    metric: str
    cold: float = np.inf
    warm: float = np.inf
    kept: float = 0.0
    slack: float = 0.0


def measure(row: Row, metric: object, vectors: WordVectors, sample: list[str]) -> None:
    epsilon = EPSILONS[metric.__name__ if callable(metric) else str(metric)]
    start = time.perf_counter()
    mechanism = TEM(vectors, epsilon=epsilon, metric=metric)  # type: ignore[arg-type]
    private = mechanism.sample(sample)
    middle = time.perf_counter()
    mechanism.sample(sample)
    row.cold = min(row.cold, middle - start)
    row.warm = min(row.warm, time.perf_counter() - middle)
    row.kept = sum(one == other for one, other in zip(sample, private, strict=True)) / len(sample)
    row.slack = mechanism.slack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("| metric | vocabulary | cold, words/s | euclidean is | warm, words/s | words kept | slack |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for size in VOCABULARIES:
        vectors = load_vectors(words.SOURCE, limit=size)
        draws = zipf.draw_words(vectors, words.WORDS)
        rows = [Row("euclidean"), Row("angular")]
        # each metric in turn, so that a busy moment of the machine falls on none of them alone
        for _ in range(repeats):
            for row in rows:
                measure(row, row.metric, vectors, draws)
        if size <= SEARCHED_BY_FUNCTION:
            rows.append(Row("a function"))
            measure(rows[-1], halved_manhattan, vectors, draws)
        for row in rows:
            print(
                f"| {row.metric} | {size:,} | {len(draws) / row.cold:,.0f} | {row.cold / rows[0].cold:.1f} x "
                f"| {len(draws) / row.warm:,.0f} | {row.kept:.0%} | {row.slack:.1g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
