"""How long a step of the playground's slider takes, compared with its matrix product.

Command: ``python benchmarks/playground.py [--quick]``
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from dptext.playground.server import PREVIEWERS, Playground
from dptext.threads import available_cores, one_blas_thread

RESULTS = Path(__file__).resolve().parent / "results" / "playground.json"
TEXT = (
    "book a table at a nice italian restaurant for 3 people tomorrow evening because my mother turns fifty and she "
    "likes pasta with mushrooms and good red wine from the south"
)
STEPS, QUICK_STEPS = 30, 5
_PRODUCTS = {
    "words": ((50, 51, 20_000), "distances of the attacker's 50 words to the vocabulary"),
    "sentences": ((102, 50, 2_000), "similarities of 102 texts to the bank"),
    "synthetic": ((2_000, 51, 51), "the pool's features times a matrix"),
    "vectors": ((4_003, 16, 2_000), "4,003 private vectors times the public texts"),
}


@dataclass(frozen=True)
class Row:
    """A line of the table. Times are in milliseconds."""

    method: str
    choice: str
    first: float
    median: float
    slowest: float
    cpu: float
    product: float

    @property
    def times(self) -> float:
        return self.cpu / self.product


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of the playground.")
    parser.add_argument("--quick", action="store_true", help="few steps; writes no file")
    quick = parser.parse_args().quick
    start = os.getloadavg()[0]
    begun = [_fresh() for _ in range(1 if quick else 3)]
    rows = _rows(QUICK_STEPS if quick else STEPS)
    print(
        f"{available_cores()} cores ({platform.machine()}), load {start:.2f} before the run; Python "
        f"{platform.python_version()}, numpy {version('numpy')}, dptext {version('dptext')}.\n"
    )
    print(f"A new process imports, loads and shows words for the first time in {min(begun):.2f} s.\n")
    print("| method | mechanism | first ms | step, median ms | slowest ms | CPU ms | its product, ms | that is |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row.method} | {row.choice} | {row.first:.0f} | {row.median:.0f} | {row.slowest:.0f} | {row.cpu:.0f} | "
            f"{row.product:.2f} | {row.times:.0f} x |"
        )
    if not quick:
        result = {
            "load": start,
            "cores": available_cores(),
            "first_view_seconds": begun,
            "rows": [asdict(r) for r in rows],
        }
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


def _fresh() -> float:
    """Seconds of a process of its own, less what an empty one takes."""
    code = f"from dptext.playground.server import Playground; Playground().show('words', {TEXT!r}, 4.0)"
    taken = []
    for entry in ("pass", code):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", entry], check=True)
        taken.append(time.perf_counter() - begin)
    return taken[1] - taken[0]


def _product(rows: int, inner: int, columns: int) -> float:
    """Milliseconds of a float32 product on one core, the best of 50."""
    generator = np.random.default_rng(3)
    left, right = (generator.standard_normal(shape, dtype=np.float32) for shape in ((rows, inner), (inner, columns)))
    taken = []
    with one_blas_thread():
        for _ in range(50):
            begin = time.perf_counter()
            np.matmul(left, right)
            taken.append(time.perf_counter() - begin)
    return 1000 * min(taken)


def _rows(steps: int) -> list[Row]:
    playground = Playground()
    result = []
    for method, item in PREVIEWERS.items():
        product = _product(*_PRODUCTS[method][0])
        minimum, maximum, _ = item.epsilons
        for choice in item.choices:
            begin = time.perf_counter()
            playground.show(method, TEXT, minimum, choice)
            first = time.perf_counter() - begin
            walls, cpus = [], []
            for epsilon in np.geomspace(minimum, maximum, steps).tolist():
                wall, cpu = time.perf_counter(), time.process_time()
                playground.show(method, TEXT, min(epsilon, maximum), choice)
                walls.append(time.perf_counter() - wall)
                cpus.append(time.process_time() - cpu)
            times = first, statistics.median(walls), max(walls), statistics.median(cpus)
            result.append(Row(method, choice, *(1000 * entry for entry in times), product))
    return result


if __name__ == "__main__":
    main()
