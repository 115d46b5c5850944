"""Functions that sweeps run in other processes."""

import os
import signal
import sys
from pathlib import Path

import numpy as np


def noisy(settings, seed):
    generator = np.random.default_rng(seed)
    return {"score": settings["epsilon"] + generator.normal(), "twice": 2.0 * seed}


def threads(settings, seed):
    from threadpoolctl import threadpool_info

    np.ones((4, 4)) @ np.ones((4, 4))
    return {"threads": max(entry["num_threads"] for entry in threadpool_info())}


def failing(settings, seed):
    if settings["epsilon"] == 2.0 and seed == 1:
        raise KeyError("a word of a private text")
    return {"score": settings["epsilon"]}


def dying(settings, seed):
    os.kill(os.getpid(), signal.SIGKILL)


def killed_once(settings, seed):
    """Kill the process of the sweep in the middle of its first run."""
    marker = Path(os.environ["SWEEP_MARKER"])
    if seed == 2 and not marker.exists():
        marker.touch()
        os.kill(int(os.environ["SWEEP_PROCESS"]), signal.SIGKILL)
        signal.pause()
    return noisy(settings, seed)


def main(path, processes):
    from papers.sweeps import grid, sweep

    os.environ["SWEEP_PROCESS"] = str(os.getpid())
    settings = grid(epsilon=[1.0, 2.0])
    sweep(killed_once, settings, range(4), path=Path(path), name="killed", processes=int(processes))


if __name__ == "__main__":
    main(*sys.argv[1:])
