"""Skip-gram under DP-SGD beside gensim (not private) and Opacus (pairs), in one run: see benchmarks/README.md.

Command: ``python benchmarks/skipgram.py [--words 20000] [--rounds 3] [--memory]``. The first run makes
``.venv-bench-gensim/`` and ``.venv-bench-opacus/``; where that fails, one line says so and the table goes on without.
``--memory``: that alone, each line in a process of its own (Linux).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dptext.embeddings.noise import CellNoise
from dptext.embeddings.participation import CELLS, Participation, Recipe, Unit, sampled_slots, sampled_users
from dptext.embeddings.training import Tables, Training
from dptext.privacy.randomness import NoiseKey
from dptext.users.grouping import DOCUMENT_END, UserStore

DIMENSION, NEGATIVES, WINDOW = 100, 5, 5
USERS, PAIRS, SINGLE_PAIRS, HOOKED = 1024, 500, 1024, 64
NOISE, STEPS, RATE = 1.3, 1000, 0.05
LENGTH = 2000  # words of a user
KINDS: dict[str, tuple[Unit, bool]] = {  # unit, whether both tables are trained
    "users": ("user", True),
    "users, contexts alone": ("user", False),
    "pairs": ("pair", True),
    "pairs, contexts alone": ("pair", False),
}
TIMED = ("users", "pairs")
HERE = Path(__file__).resolve().parent
GENSIM, OPACUS = HERE.parent / ".venv-bench-gensim", HERE.parent / ".venv-bench-opacus"


def main() -> None:
    parser = argparse.ArgumentParser(description="Skip-gram under DP-SGD.")
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--dimension", type=int, default=DIMENSION, help="of the tables whose memory is measured")
    parser.add_argument("--held", help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    words, rounds = options.words, options.rounds
    if options.held:
        print(beyond(words, options.dimension, options.held))
        return
    if options.memory:
        report_memory(words, options.dimension)
        return
    store = texts(words)
    own_times: dict[str, list[float]] = {name: [] for name in TIMED}
    peers: dict[str, list[float]] = {"gensim": [], "ghost": [], "hooks": []}
    pairs = {}
    trainings = {name: training(words, store, name) for name in TIMED}
    for _ in range(rounds):  # each in turn, so that all see the same machine
        for name, output in trainings.items():
            count = 3 if "users" in name else 40
            seconds, pairs[name] = measured(output, count)
            own_times[name].append(seconds)
        result = gensim(words)
        if result:
            peers["gensim"].append(result["seconds"] / result["pairs"])
        result = opacus(words)
        if result:
            peers["ghost"].append(result["ghost"] / 1000)
            peers["hooks"].append(result["hooks"] / 1000 * SINGLE_PAIRS / HOOKED)
    report(words, own_times, peers, pairs)


# -- ours ---------------------------------------------------------------------------------------------------------


def texts(words: int) -> UserStore:
    """Users who write as Zipf has it, twenty times as many as take part in a step."""
    generator = np.random.default_rng(1)
    weights = 1 / (np.arange(words) + 3.7)
    users = round(USERS / RATE)
    rows = generator.choice(words, (users, LENGTH), p=weights / weights.sum()).astype(np.int32)
    rows[:, 199::200] = DOCUMENT_END
    return UserStore(rows.reshape(-1), np.arange(users + 1, dtype=np.int64) * LENGTH, np.zeros(users, dtype=np.uint16))


def training(words: int, store: UserStore, kind: str, dimension: int = DIMENSION) -> Training:
    unit, both = KINDS[kind]
    recipe = Recipe(
        unit=unit,
        pairs=PAIRS,
        window=WINDOW,
        negatives=NEGATIVES,
        subsample=0.0,
        clip=1.0,
        distance=100.0,
        most_words=10**6,
    )
    # two thirds of the slots within a window hold a pair that stays, by its distance
    rate = RATE if unit == "user" else SINGLE_PAIRS / (len(store.rows) * 2 * WINDOW * 0.59)
    tables = np.empty((2 * words, dimension), dtype=np.float32)
    first = tables[:words]
    np.random.default_rng(2).random(out=first, dtype=np.float32)
    first -= 0.5
    first /= dimension
    tables[words:] = 0  # written, because unwritten pages take no memory
    output = Training(
        store=store,
        recipe=recipe,
        participation=Participation(noise_multiplier=NOISE, steps=STEPS, delta=1e-6, rates={"everyone": rate}),
        unknown=words - 1,
        offsets=np.zeros(2 * words, dtype=np.float32),
        tables=Tables(tables, recipe.rates(STEPS) / (USERS * CELLS), CellNoise(NOISE * CELLS), both=both),
        key=NoiseKey(1),
        parameters=b"benchmark",
    )
    output.next_step = 0  # type: ignore[attr-defined]
    steps(output, 3)
    return output


def steps(training: Any, count: int) -> None:
    for _ in range(count):
        training.step(training.next_step)
        training.next_step += 1


def sample_units(training: Any) -> Any:
    bits = training._bits(training.next_step, 0)
    if training.recipe.unit == "pair":
        [rate] = training.participation.rates.values()
        return sampled_slots(bits, len(training.store.rows) * 2 * WINDOW, rate)
    return sampled_users(bits, training.store.levels, training.participation.thresholds)


def measured(training: Any, count: int) -> tuple[float, float]:
    """CPU seconds a step, and pairs a step."""
    result = 0
    for _ in range(10):  # how many pairs a step has, on average; every slot or user has a key of its own
        sampled = sample_units(training)
        keys = np.random.default_rng(result).integers(0, 2**64, len(sampled), dtype=np.uint64)
        result += sum(len(pairs) for pairs, _ in training._drawn(sampled, keys))
    before = time.process_time()
    steps(training, count)
    return (time.process_time() - before) / count, result / 10


def beyond(words: int, dimension: int, kind: str) -> float:
    """The most resident memory of a training beyond texts and the two tables, in sizes of these tables."""
    texts_held = texts(words)
    training(200, texts(200), kind)  # the compiled loops are loaded
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak counts from now on
    before = resident("VmRSS")
    output = training(words, texts_held, kind, dimension)
    steps(output, 3)
    return (resident("VmHWM") - before) / output.tables.matrix.nbytes - 1


def resident(which: str) -> int:
    match = re.search(rf"^{which}:\s*([0-9]+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    assert match is not None
    return int(match[1]) * 1024


def report_memory(words: int, dimension: int) -> None:
    print("| memory beyond texts and tables, of these | " + " | ".join(KINDS) + " |")
    print("|---|" + "---:|" * len(KINDS))
    result = []
    for kind in KINDS:
        command = [sys.executable, __file__, "--words", str(words), "--dimension", str(dimension), "--held", kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        result.append(f"{float(done.stdout):.0%}")
    print(f"| {words:,} x {dimension} | " + " | ".join(result) + " |")


# -- peers --------------------------------------------------------------------------------------------------------


def gensim(words: int) -> dict[str, Any] | None:
    python = GENSIM / "bin" / "python"
    if not python.exists() and not install([sys.executable, "-m", "venv", str(GENSIM)], [python, "gensim==4.4.0"]):
        return None
    arguments = [words, DIMENSION, NEGATIVES, WINDOW, 2_000_000]
    return answer([str(python), str(HERE / "peers" / "gensim_skipgram.py"), *map(str, arguments)])


def opacus(words: int) -> dict[str, Any] | None:
    """It runs on the torch that is there: only Opacus itself is put into its folder."""
    if not OPACUS.exists():
        packages = [sys.executable, "--no-deps", "--target", str(OPACUS), "opacus==1.6.0", "opt-einsum==3.4.0"]
        if not install(None, packages):
            return None
    arguments = [words, DIMENSION, NEGATIVES, SINGLE_PAIRS, HOOKED]
    return answer([sys.executable, str(HERE / "peers" / "opacus_skipgram.py"), str(OPACUS), *map(str, arguments)])


def install(first: list[str] | None, packages: list[Any]) -> bool:
    python, *rest = map(str, packages)
    steps = [*([first] if first else []), [python, "-m", "pip", "--disable-pip-version-check", "install", "-q", *rest]]
    for step in steps:
        if subprocess.run(step, capture_output=True, check=False).returncode != 0:
            print(f"no peer: {rest[-1]} could not be installed", file=sys.stderr, flush=True)
            return False
    return True


def answer(command: list[str]) -> dict[str, Any] | None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"no peer: {Path(command[1]).stem} ended with an error", file=sys.stderr, flush=True)
        return None
    data: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return data


def report(words: int, own_times: Any, peers: Any, pairs: Any) -> None:
    best = {name: min(times) for name, times in (own_times | peers).items() if times}
    print(f"{words:,} words, {DIMENSION} dimensions, {NEGATIVES} negative words; CPU time, best of rounds\n")
    print("| unit | pairs a step | ms a step | pairs a CPU-second |")
    print("|---|---:|---:|---:|")
    for name in own_times:
        print(f"| {name} | {pairs[name]:,.0f} | {1000 * best[name]:.2f} | {pairs[name] / best[name]:,.0f} |")
    if "gensim" in best:
        ratio = pairs["users"] / best["users"] * best["gensim"]
        pace = f"{1 / best['gensim']:,.0f} pairs a CPU-second"
        print(f"\ngensim, not private, one worker: {pace}; ours: {ratio:.2f} of it")
    for name, label in (("ghost", "ghost clipping"), ("hooks", f"hooks (extrapolated from {HOOKED} pairs)")):
        if name in best:
            entry = best["pairs"] / pairs["pairs"] * SINGLE_PAIRS
            print(
                f"Opacus, {label}: {1000 * best[name]:,.1f} ms for {SINGLE_PAIRS:,} pairs; ours {1000 * entry:.2f}: "
                f"{best[name] / entry:,.0f} times as fast"
            )


if __name__ == "__main__":
    main()
