"""Epsilons of shuffled messages by dptext and by the authors' implementation, with the same probability of a clone.

Command: python benchmarks/shuffling.py CLONE/computeamplification.py, with a clone of apple/ml-shuffling-amplification
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dptext.privacy.shuffling import shuffled_epsilon

DELTA = 1e-6
STEP, ITERATIONS = 1, 25  # of the peer: every number of clones, and an accuracy of epsilon0 / 2^25
CASES = ((1, 1_000), (3, 1_000), (3, 10_000), (4, 10_000), (4, 100_000), (6, 10_000), (6, 100_000), (8, 100_000))
LARGE = ((8, 1_000_000), (1, 100_000), (1, 1_000_000))


def load(path: Path) -> Any:
    """Return the module in a file."""
    spec = importlib.util.spec_from_file_location("computeamplification", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # code that the user named
    return module


def timed(function: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    return function(), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", type=Path, help="the file computeamplification.py")
    peer = load(parser.parse_args().peer)
    print("| local epsilon | users | dptext | seconds | peer, upper bound | seconds | peer, lower bound |")
    print("|---:" * 7 + "|")
    for epsilon0, users in CASES + LARGE:
        epsilon, seconds = timed(lambda: shuffled_epsilon(epsilon0, users, DELTA))  # noqa: B023  called at once
        step = STEP if (epsilon0, users) in CASES else 100
        upper, peer_time = timed(
            lambda: peer.numericalanalysis(users, epsilon0, DELTA, ITERATIONS, step, True)  # noqa: B023
        )
        lower = peer.numericalanalysis(users, epsilon0, DELTA, ITERATIONS, step, False)
        print(
            f"| {epsilon0} | {users:,} | {epsilon:.4f} | {seconds:.1f} | {upper:.4f} | {peer_time:.1f} | {lower:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
