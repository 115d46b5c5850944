"""Noisy bits and vectors, beside pure-ldp and OpenDP, in one run: see benchmarks/README.md.

Command: ``python benchmarks/bits.py [--quick] [--peer-seconds 10] [--peer-python PYTHON]``
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dptext.noise.discrete import SCALE, flip_threshold, packed_coins
from dptext.privacy.randomness import RandomBits
from dptext.representations.bits import OneBit, OptimizedUnary, SymmetricUnary, WeightedBits
from dptext.representations.cube import Hybrid, Piecewise
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import BitChannel, Randomizer
from dptext.threads import available_cores

VECTORS, QUICK_VECTORS = 131_072, 16_384
DIMENSION = 64
BITS = 512
EPSILON = 1.0
PEERS = {"pure-ldp": "1.2.0", "opendp": "0.16.0"}
RESULTS = Path(__file__).resolve().parent / "results" / "bits.json"
_ENVIRONMENT = Path(__file__).resolve().parent.parent / ".venv-bench-bits"
_RUNNER = Path(__file__).resolve().parent / "peers" / "noisy_bits.py"
_STARTUP_SECONDS = 120


@dataclass(frozen=True)
class Row:
    """A line of the table: how many units (bits, numbers, vectors) in how many seconds."""

    label: str
    unit: str
    done: int
    seconds: float
    ours_over_this: float | None = None

    @property
    def pace(self) -> float:
        return self.done / self.seconds


def main() -> None:
    options = _options()
    count, repeats = (QUICK_VECTORS, 1) if options.quick else (VECTORS, 5)
    load_before = os.getloadavg()[0]
    generator = np.random.default_rng(6)
    items = generator.integers(0, DIMENSION, count)
    packed = generator.integers(0, 256, (count, BITS // 8), dtype=np.uint8)
    python = options.peer_python or _peer_python()
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "items.npy", items)
        np.save(folder / "rows.npy", packed)
        peers = _Peers(folder, python, options.peer_seconds)
        rows = [*flipped(packed, repeats, peers), *unary(items, repeats, peers)]
    rows += alone(generator.uniform(-1, 1, (count, DIMENSION)), repeats)
    machine = {
        "cores": available_cores(),
        "architecture": platform.machine(),
        "load_before": round(load_before, 2),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "dptext": version("dptext"),
        "peers": peers.versions,
    }
    print(report(rows, machine, repeats))
    if not options.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        numbers = [{**asdict(row), "pace": row.pace} for row in rows]
        RESULTS.write_text(json.dumps({"machine": machine, "repeats": repeats, "rows": numbers}, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Noisy bits and vectors, beside pure-ldp and OpenDP.")
    parser.add_argument("--quick", action="store_true", help="few vectors, no repeats, no results/")
    parser.add_argument("--peer-seconds", type=float, default=10.0, help="when to stop each run of a peer")
    parser.add_argument("--peer-python", help="a Python that has both peers; otherwise this one, or one made for them")
    return parser.parse_args()


# -- the work ------------------------------------------------------------------------------------------------------


def flipped(packed: np.ndarray, repeats: int, peers: _Peers) -> list[Row]:
    """The same packed bits flipped with the same chance by both."""
    bits, threshold = RandomBits(), flip_threshold(EPSILON)
    thresholds = np.full(BITS, threshold, dtype=np.uint32)
    seconds = _best(lambda: packed ^ packed_coins(bits, len(packed), thresholds), repeats)
    reference = Row(f"dptext: flip {BITS} bits a vector, chances of 32 bits", "bits", packed.size * 8, seconds)
    rows, chance = [reference], threshold / SCALE
    for task, size, label in (
        ("flips", BITS, f"opendp: the same, a call for {BITS} bits"),
        ("flips-joined", 4096 * BITS, f"opendp: the same, a call for {4096 * BITS:,} bits"),
    ):
        rows += peers.row(task, chance, label, "bits", size, reference)
    return rows


def unary(items: np.ndarray, repeats: int, peers: _Peers) -> list[Row]:
    """One of 64 things; reference starts from one-hot vectors of float64, as every randomizer does."""
    bits, rows = RandomBits(), []
    one_hot = np.zeros((len(items), DIMENSION))
    one_hot[np.arange(len(items)), items] = 1.0
    for randomizer, task in ((SymmetricUnary(epsilon=EPSILON), "sue"), (OptimizedUnary(epsilon=EPSILON), "oue")):
        channel = randomizer.channel(DIMENSION)
        assert isinstance(channel, BitChannel)
        seconds = _best(lambda: channel.send(one_hot, bits), repeats)  # noqa: B023
        reference = Row(f"dptext: {randomizer.name}, {DIMENSION} things", "bits", one_hot.size, seconds)
        text = f"pure-ldp: {task.upper()}, {DIMENSION} things"
        rows += [reference, *peers.row(task, EPSILON, text, "bits", DIMENSION, reference)]
    return rows


def alone(vectors: np.ndarray, repeats: int) -> list[Row]:
    """What the peers do not offer: numbers, and vectors, in 64 dimensions."""
    rows, bits = [], RandomBits()
    per_number: list[tuple[Randomizer, str]] = [
        (WeightedBits(epsilon=4.0 * DIMENSION, bits=10), "10 bits a number"),
        (OneBit(epsilon=1.0 * DIMENSION), "one bit a number"),
        (Piecewise(epsilon=8.0), "1 of 64 numbers"),
        (Hybrid(epsilon=64.0), "27 of 64 numbers"),
    ]
    for randomizer, label in per_number:
        channel = randomizer.channel(DIMENSION)
        seconds = _best(lambda: channel.sample(vectors, bits), repeats)  # noqa: B023
        if not isinstance(channel, BitChannel):
            rows.append(Row(f"dptext: {randomizer.name}, {label}", "vectors", len(vectors), seconds))
            continue
        rows.append(Row(f"dptext: {randomizer.name}, {label}", "numbers", vectors.size, seconds))
        rows.append(Row("the same", "bits", len(vectors) * channel.bits, seconds))
    channel = PrivUnit(epsilon=8.0).channel(DIMENSION)
    seconds = _best(lambda: channel.sample(vectors, bits), repeats)
    rows.append(Row(f"dptext: PrivUnit, epsilon 8, d = {DIMENSION}", "vectors", len(vectors), seconds))
    return rows


def _best(work: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


# -- the peers -------------------------------------------------------------------------------------------------------


class _Peers:
    """Both peers on our items and bits, each task in a process of its own."""

    def __init__(self, folder: Path, python: str | None, limit: float) -> None:
        self._folder, self._python, self._limit = folder, python, limit
        self.versions: dict[str, str] = {}

    def row(self, task: str, parameter: float, label: str, unit: str, size: int, reference: Row) -> list[Row]:
        """Its pace beside reference; nothing, after one line, where it does not run."""
        if self._python is None:
            return []
        command = [self._python, "-I", str(_RUNNER), str(self._folder), task, repr(parameter), str(self._limit)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=self._limit + _STARTUP_SECONDS
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            _say(f"no peer for {label}: it ended with {type(error).__name__}")
            return []
        answer = json.loads(done.stdout.splitlines()[-1])
        self.versions = answer["versions"]
        pace = answer["vectors"] * size / answer["seconds"]
        return [Row(label, unit, answer["vectors"] * size, answer["seconds"], reference.pace / pace)]


def _peer_python() -> str | None:
    """A Python with both peers: this one, or that of an environment made once."""
    if find_spec("pure_ldp") and find_spec("opendp"):
        return sys.executable
    python = _ENVIRONMENT / "bin" / "python"
    ask = f"from importlib.metadata import version; print(*(version(name) for name in {list(PEERS)!r}))"
    if python.exists():
        answer = subprocess.run([str(python), "-I", "-c", ask], capture_output=True, text=True, check=False)
        if answer.stdout.split() == list(PEERS.values()):
            return str(python)
    _say(f"making {_ENVIRONMENT.name} for {' and '.join(PEERS)} (once) ...")
    target = [f"{name}=={release}" for name, release in PEERS.items()]
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *target]
    for step in ([sys.executable, "-m", "venv", "--clear", str(_ENVIRONMENT)], pip):
        if subprocess.run(step, capture_output=True, check=False).returncode != 0:
            _say(f"no peers: {'pip install' if step is pip else 'python -m venv'} failed; the table omits them")
            return None
    return str(python)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# -- the report ------------------------------------------------------------------------------------------------------


def report(rows: list[Row], machine: dict[str, object], repeats: int) -> str:
    """Return the table of the README in Markdown."""
    best = "one run" if repeats == 1 else f"the best of {repeats} runs"
    return "\n".join(
        [
            f"{machine['cores']} cores ({machine['architecture']}), load {machine['load_before']} before the run; "
            f"Python {machine['python']}, numpy {machine['numpy']}, dptext {machine['dptext']}: {best}. "
            f"Peers: {machine['peers'] or 'none'}.",
            "",
            "| what | done | seconds | a second | dptext is |",
            "|---|---:|---:|---:|---:|",
            *(
                f"| {row.label} | {row.done:,} {row.unit} | {row.seconds:.2f} | {row.pace:,.0f} "
                f"| {'' if row.ours_over_this is None else f'{row.ours_over_this:,.0f} x'} |"
                for row in rows
            ),
        ]
    )


if __name__ == "__main__":
    main()
