"""Runs where the peers are installed: unary encoding by pure-ldp, flipped bit vectors by OpenDP, one vector at a time.

Start it with ``python -I``. Arguments: a folder with items.npy (int64) and rows.npy (uint8, packed bits); a task; its
parameter; a time limit in seconds. The last line of output is JSON: vectors done, seconds, the versions that ran.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np


def unary(folder: Path, epsilon: float, optimized: bool) -> tuple[Callable[[Any], Any], Iterator[Any]]:
    # its RAPPOR, which is not measured here, imports packages that pure-ldp does not ask for when it is installed
    sys.modules["pure_ldp.frequency_oracles.rappor"] = MagicMock()
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    items = np.load(folder / "items.npy")
    # pure-ldp counts items from 1
    client = UEClient(epsilon, int(items.max()) + 1, use_oue=optimized, index_mapper=lambda item: item)
    return client.privatise, iter(items.tolist())


def flips(folder: Path, chance: float, joined: bool) -> tuple[Callable[[Any], Any], Iterator[Any]]:
    """OpenDP replaces a bit with chance f by a fair coin, so it is flipped with chance f / 2."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rows = np.load(folder / "rows.npy")
    if joined:
        rows = rows.reshape(-1, 4096 * rows.shape[1])
    measure = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=8 * rows.shape[1]), dp.discrete_distance(), f=2 * chance
    )
    return measure, (row.tobytes() for row in rows)


def vectors_until(limit: float, answer: Callable[[Any], Any], vectors: Iterator[Any]) -> tuple[int, float]:
    done, start = 0, time.perf_counter()
    for vector in vectors:
        answer(vector)
        done += 1
        if time.perf_counter() - start >= limit:
            break
    return done, time.perf_counter() - start


def main() -> None:
    folder, task, parameter, limit = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    if task in ("sue", "oue"):
        done, seconds = vectors_until(limit, *unary(folder, parameter, task == "oue"))
    else:
        done, seconds = vectors_until(limit, *flips(folder, parameter, task == "flips-joined"))
    versions = {name: version(name) for name in ("pure-ldp", "opendp", "numpy")}
    print(json.dumps({"vectors": done, "seconds": seconds, "versions": versions}))


if __name__ == "__main__":
    main()
