"""How near the dimension that is chosen comes to the best one, on AG News: DATA holds test.csv (class, title, text).

.venv/bin/python benchmarks/dimensions.py DATA/ag_news            # two minutes
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

import dptext
from dptext.representations.bounds import fit_bound
from dptext.representations.device_encoder import encoder_of
from dptext.representations.dimension import best_dimension
from dptext.representations.mean_of_words import MeanOfWords

EPSILONS = (2.0, 4.0, 8.0, 12.0)
TRIED = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 50)
RUNS = 4


def main(folder: str) -> None:
    """Print a table; docs/mechanisms/private-vectors.md has its rows for public texts."""
    with (Path(folder) / "test.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    encoder = encoder_of("glove-6b-50d")
    assert isinstance(encoder, MeanOfWords)
    vectors, labels = encoder.encode([f"{row[1]} {row[2]}" for row in rows]), np.array([int(row[0]) for row in rows])
    order = np.random.default_rng(0).permutation(len(rows))
    public, train, test = order[:2000], order[2000:5000], order[5000:]
    fitted_on = {
        "public texts": (vectors[public], "pca"),
        "made-up texts": (encoder.public_sample(), "pca"),
        "nothing (random)": (encoder.public_sample(), "random"),
    }
    print("| epsilon | fitted on | chosen | accuracy | best | accuracy | accuracy at 50 |")
    for epsilon in EPSILONS:
        noise = dptext.PrivUnit(epsilon=epsilon)
        for name, (points, projection) in fitted_on.items():
            chosen = best_dimension(points, noise, projection=projection)
            found = {}
            for size in sorted({*TRIED, chosen.dimension}):
                bound = fit_bound(points, dimension=size, projection=projection)
                scores = []
                for run in range(RUNS):
                    arrived = noise.randomize(bound.apply(vectors), seed=run)
                    server = dptext.NoisyClassifier(channel=noise).fit(arrived[train], labels[train])
                    scores.append(server.score(arrived[test], labels[test]))
                found[size] = float(np.mean(scores))
            best = max(found, key=found.__getitem__)
            print(
                f"| {epsilon:g} | {name} | {chosen.dimension} | {found[chosen.dimension]:.1%} "
                f"| {best} | {found[best]:.1%} | {found[50]:.1%} |  recovered {chosen.recovered:.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1])
