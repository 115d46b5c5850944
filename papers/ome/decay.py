"""The two readings of "decay 10^-6" in the paper, and their effect on the row OME, epsilon 1, lambda 100.

Command: ``python -m papers.ome.decay [--data FOLDER] [--sets Intent]``. Then ``python -m papers.ome.printed --report``
writes the table into the README.

The paper has "SGD optimizer with learning rate 0.01, decay 10^-6, momentum 0.9". In Keras, ``SGD(decay=1e-6)`` divides
the learning rate of step t by 1 + 1e-6 t; in PyTorch, ``weight_decay=1e-6`` adds 1e-6 w to the gradient of a weight w.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from papers.ome.perceptron import BitPerceptron
from papers.ome.printed import HERE, HIDDEN, RUNS, SENTIMENT, SETS, Experiment
from papers.ome.printed_report import CONTROL_ROW, DECAY
from papers.reports import parse_options
from papers.sweeps import sweep

from dptext.representations.networks import TrainingOptions

READINGS = {"of the weights": (DECAY, 0.0), "of the learning rate": (0.0, DECAY), "none": (0.0, 0.0)}
"""Decay of the weights, and of the learning rate."""


def measure(settings: Mapping[str, Any], seed: int, *, experiment: Experiment, epochs: int = 50) -> dict[str, float]:
    """Return the accuracy of one run; all readings have the same bits."""
    name = settings["set"]
    mechanism, epsilon, lambda_ = CONTROL_ROW
    row = {"set": name, "mechanism": mechanism, "epsilon": epsilon, "lambda": lambda_}
    bits, encoded = experiment.send(row, seed).noisy, experiment.encoded(name)
    train, test = encoded.split(seed)
    weights, rate = READINGS[settings["decay"]]
    options = TrainingOptions(hidden=HIDDEN[name], epochs=epochs, validation_fraction=0.0, weight_decay=weights)
    server = BitPerceptron(options, seed, rate_decay=rate).fit(bits[train], encoded.labels[train])
    steps = epochs * int(np.ceil(len(train) / options.batch_size))
    return {"accuracy": server.score(bits[test], encoded.labels[test]), "steps": float(steps)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write rows into ``decay.jsonl``."""
    sets = {"nargs": "+", "choices": SETS, "default": SENTIMENT}
    options = parse_options("Two readings of the paper's decay.", HERE, arguments, sets=sets)
    experiment = Experiment(options.data)
    for name in options.sets:
        sweep(
            partial(measure, experiment=experiment),
            [{"set": name, "decay": reading} for reading in READINGS],
            range(2 if options.quick else RUNS[name]),
            path=options.out / "decay.jsonl",
            name="ome decay",
            constants={"epochs": 50},
        )


if __name__ == "__main__":
    main()
