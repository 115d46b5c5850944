"""The sets of the nearest rows, beside numpy's product and faiss's exact search, in one run: see benchmarks/README.md.

Command: ``python benchmarks/nearest.py [--rounds 5] [--quick]``. The first run makes ``.venv-bench-faiss/``; where that
fails, one line says so and the table goes on without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from limit import best_shape, matmul_costs

from dptext.threads import available_cores
from dptext.vectors.nearest_sets import NearestSets

ROWS, MANY_ROWS, DIMENSION = 100_000, 1_000_000, 384
QUERIES = 4096
COUNTS = {1: QUERIES, 34: QUERIES, 1800: QUERIES, 26_900: 512}
"""Rows of a set and queries: about the best of subset selection at epsilon 8 (34), 4 (1,800) and 1 (N / (1 + e))."""
PEER_COUNTS = (1, 34, 1800)
MANY_QUERIES, PROFILED = 1000, 256
FAISS = "1.12.0"
HERE = Path(__file__).resolve().parent
Spent = tuple[float, float]
"""Wall and CPU seconds."""
_ENVIRONMENT = HERE.parent / ".venv-bench-faiss"


@dataclass
class Line:
    """Rounds of one thing: queries a second, and as a share of the product's in the same round."""

    label: str
    paces: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    cpu_shares: list[float] = field(default_factory=list)

    def add(self, queries: int, spent: Spent, product: Spent) -> None:
        """``product``: of `QUERIES` queries."""
        self.paces.append(queries / spent[0])
        self.shares.append(product[0] / QUERIES * queries / spent[0])
        self.cpu_shares.append(product[1] / QUERIES * queries / spent[1])

    def __str__(self) -> str:
        if not self.paces:
            return f"| {self.label} | - | - | - |"
        shares, cpu_shares = np.median(self.shares), np.median(self.cpu_shares)
        return f"| {self.label} | {max(self.paces):,.0f} | {shares:.2f} | {cpu_shares:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round, no million rows")
    parser.add_argument("--look-up", nargs=2, metavar=("FOLDER", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look_up:
        look_up(Path(options.look_up[0]), int(options.look_up[1]))
        return
    print(f"{available_cores()} cores, load {os.getloadavg()[0]:.1f}; numpy {np.__version__}\n")
    compare(1 if options.quick else options.rounds)
    if not options.quick:
        large_bank()


def compare(rounds: int) -> None:
    """Each in turn, so that a busy moment of the machine falls on none of them alone."""
    bank, queries = vectors(ROWS, seed=1), vectors(QUERIES, seed=2)
    sets = NearestSets(bank)
    product = Line("numpy: the float32 product alone")
    lines = {count: Line(f"dptext: sets of {count:,}") for count in COUNTS}
    peers = {count: Line(f"faiss {FAISS}, IndexFlatIP: the first {count:,}") for count in PEER_COUNTS}
    with TemporaryDirectory() as name:
        np.save(Path(name) / "bank.npy", bank)
        np.save(Path(name) / "queries.npy", queries)
        python, shape = peer_python(), best_shape(QUERIES, DIMENSION, ROWS)
        for _ in range(rounds):
            unit = matmul_costs(QUERIES, DIMENSION, ROWS, repeats=1, shapes=(shape,))
            product.add(QUERIES, unit, unit)
            for count, many in COUNTS.items():
                wall, cpu = time.perf_counter(), time.process_time()
                sets.find(queries[:many], count)
                lines[count].add(many, (time.perf_counter() - wall, time.process_time() - cpu), unit)
                spent = peer_spent(python, Path(name), count) if count in PEER_COUNTS else None
                if spent is not None:
                    peers[count].add(QUERIES, spent, unit)
    print("| what | queries/s, best | of the product | of it by CPU |\n|---|---:|---:|---:|")
    for line in (product, *lines.values(), *peers.values()):
        print(line)


def large_bank() -> None:
    """A million rows in a memory map, in processes of their own."""
    print("\n| 1,000,000 rows in a memory map | queries | seconds | peak less the file, MiB |\n|---|---:|---:|---:|")
    with TemporaryDirectory() as name:
        path = Path(name) / "bank.npy"
        bank = np.lib.format.open_memmap(path, "w+", np.float32, (MANY_ROWS, DIMENSION))
        for start in range(0, MANY_ROWS, 10_000):
            bank[start : start + 10_000] = vectors(10_000, seed=start)
        bank.flush()
        size = bank.nbytes
        del bank
        for count in (34, 18_000, 0):
            # child.py: this process holds pages of the file, and a child starts with the peak of who forked it
            command = [sys.executable, str(HERE / "child.py"), sys.executable, __file__, "--look-up", name, str(count)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peak = json.loads(done.stdout.splitlines()[-1])["peak_bytes"]
            seconds = json.loads((Path(name) / "seconds.json").read_text())
            label, many = (f"sets of {count:,}", MANY_QUERIES) if count else ("profile", PROFILED)
            print(f"| {label} | {many:,} | {seconds:.1f} | {(peak - size) / 2**20:,.0f} |", flush=True)
        print(f"\nThe file has {size / 2**20:,.0f} MiB.")


def look_up(folder: Path, count: int) -> None:
    sets = NearestSets(np.load(folder / "bank.npy", mmap_mode="r"))
    queries = vectors(MANY_QUERIES if count else PROFILED, seed=3)
    start = time.perf_counter()
    if count:
        sets.find(queries, count)
    else:
        sets.profile(queries)
    (folder / "seconds.json").write_text(json.dumps(time.perf_counter() - start))


def vectors(rows: int, *, seed: int) -> np.ndarray:
    """Directions in a cone, similar to encoded sentences, in whole units of 2^-15."""
    draws = np.random.default_rng(seed).standard_normal((rows, DIMENSION), dtype=np.float32)
    draws[:, 0] += np.sqrt(DIMENSION) / 2
    draws /= np.sqrt(np.einsum("ij,ij->i", draws, draws))[:, None]
    return np.trunc(draws * (2**15 - 1)) / np.float32(2**15)


def peer_python() -> str | None:
    """That of an environment with the peer, made once; None, after one line, where it cannot be had."""
    python = _ENVIRONMENT / "bin" / "python"
    text = f"faiss-cpu=={FAISS}"
    if (
        python.exists()
        and subprocess.run([python, "-c", "import faiss"], check=False, capture_output=True).returncode == 0
    ):
        return str(python)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", text]
    for step in ([sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT)], pip):
        if subprocess.run(step, capture_output=True, check=False).returncode != 0:
            print(f"no peer: {text} could not be installed; the table omits it", file=sys.stderr)
            return None
    return str(python)


def peer_spent(python: str | None, folder: Path, count: int) -> Spent | None:
    if python is None:
        return None
    command = [python, "-I", str(HERE / "peers" / "faiss_flat.py"), str(folder), str(count), str(available_cores())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], answer["cpu_seconds"]


if __name__ == "__main__":
    main()
