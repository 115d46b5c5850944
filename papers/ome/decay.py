"""What "decay 10^-6" of the paper may be, and what it does: the row OME, epsilon 1, lambda 100, under each reading.

python -m papers.ome.decay --data FOLDER                # the three sentiment sets; minutes
python -m papers.ome.decay --data FOLDER --sets Intent

The paper gives "SGD optimizer with learning rate 0.01, decay 10^-6, momentum 0.9". In Keras, ``SGD(decay=1e-6)``
divides the learning rate of step t by 1 + 1e-6 t; in PyTorch, ``weight_decay=1e-6`` adds 1e-6 w to the gradient of a
weight w.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from papers.data_sets import data_folder
from papers.ome.perceptron import BitPerceptron
from papers.ome.printed import HERE, HIDDEN, RUNS, SENTIMENT, SETS, Experiment
from papers.ome.printed_report import DECAY, ROW
from papers.sweeps import sweep

from dptext.representations.networks import TrainingOptions

READINGS = {"of the weights": (DECAY, 0.0), "of the learning rate": (0.0, DECAY), "none": (0.0, 0.0)}
"""Decay of the weights, and of the learning rate."""


def measure(settings: Mapping[str, Any], seed: int, *, experiment: Experiment, epochs: int = 50) -> dict[str, float]:
    """One run: the bits of the printed row, the same for each reading."""
    mechanism, epsilon, lambda_ = ROW
    values = experiment.given(settings["set"])
    row = {"set": settings["set"], "mechanism": mechanism, "epsilon": epsilon, "lambda": lambda_}
    bits = experiment._sent(row, values, seed).noisy
    train, test = values.parts(seed)
    weights, rate = READINGS[settings["decay"]]
    options = TrainingOptions(
        hidden=HIDDEN[settings["set"]], epochs=epochs, validation_fraction=0.0, weight_decay=weights
    )
    server = BitPerceptron(options, seed, rate_decay=rate).fit(bits[train], values.labels[train])
    steps = epochs * int(np.ceil(len(train) / options.batch_size))
    return {"accuracy": server.score(bits[test], values.labels[test]), "steps": float(steps)}


def main() -> None:
    """Rows into ``results/decay.jsonl``; ``python -m papers.ome.printed --report`` has them in the README."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", help="folder of sentiment_labelled/, snips/, mrpc/ (default: ../shared/data)")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where rows go")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "dptext-papers", help="for vectors")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SENTIMENT)
    parser.add_argument("--runs", type=int, help="fewer runs than 20 (sentiment) or 5")
    options = parser.parse_args()
    experiment = Experiment(data_folder(options.data), options.cache)
    for name in options.sets:
        sweep(
            partial(measure, experiment=experiment),
            [{"set": name, "decay": reading} for reading in READINGS],
            range(min(RUNS[name], options.runs or RUNS[name])),
            path=options.out / "decay.jsonl",
            name="ome decay",
            constants={"epochs": 50},
        )


if __name__ == "__main__":
    main()
