"""Word vectors from users by one noisy release: the blogs, and up to a million synthetic users.

See benchmarks/README.md. Command:
``python benchmarks/embeddings.py [--data ../shared/data] [--users 1e5 3e5 1e6]``

The same run measures reading alone (`benchmarks/by_user.py`: tokens, look-up, grouping by user).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from by_user import ARCHIVE, EACH, LENGTH, LIMIT, SOURCE, measure, synthetic_documents, watch_memory, write_blogs

from dptext import Cooccurrence, load_vectors
from dptext.io.documents import read_documents


def main() -> None:
    parser = argparse.ArgumentParser(description="Word vectors from users.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--users", type=float, nargs="*", default=[1e5, 3e5, 1e6])
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.run:
        step, *rest = options.run
        print(json.dumps(measure(*rest) if step == "reading" else learn(*rest[:2])))
        return
    columns = ("documents", "seconds", "CPU s", "reading alone, CPU s", "times reading", "peak memory")
    print(f"| {' | '.join(columns)} |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        path, words = Path(folder) / "blogs.jsonl", Path(folder) / "words"
        words.write_text("\n".join(load_vectors(SOURCE, limit=LIMIT).words), encoding="utf-8")
        if (options.data / ARCHIVE).exists():
            write_blogs(options.data / ARCHIVE, path)
            report("blogs, 10.9 million words of 2,532 people", "read", str(path), str(words))
        for users in options.users:
            name = f"{users:,.0f} synthetic users, {EACH} documents of {LENGTH} words each"
            report(name, "make", str(round(users)), str(words))


def report(name: str, *run: str) -> None:
    reading, whole = (child(step, *run) for step in ("reading", "learning"))
    print(
        f"| {name} | {whole['seconds']:.1f} | {whole['cpu']:.1f} | {reading['cpu']:.1f} | "
        f"{whole['cpu'] / reading['cpu']:.1f} | {whole['peak'] / 2**20:,.0f} MiB |",
        flush=True,
    )


def child(*run: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--run", *run], stdout=subprocess.PIPE, text=True, check=True)
    data: dict[str, float] = json.loads(done.stdout)
    return data


def learn(kind: str, source: str) -> dict[str, float]:
    """From documents to word vectors with their statement; the public vectors are there before."""
    vectors = load_vectors(SOURCE, limit=LIMIT)
    documents = (
        read_documents(source, user="user") if kind == "read" else synthetic_documents(int(source), vectors.vocabulary)
    )
    peak, done = [0], threading.Event()
    watch = threading.Thread(target=watch_memory, args=(peak, done))
    watch.start()
    before, start = sum(os.times()[:4]), time.perf_counter()
    Cooccurrence(vectors, epsilon=8.0, delta=1e-7, public_users=10**6).fit(documents)
    seconds, cpu = time.perf_counter() - start, sum(os.times()[:4]) - before
    done.set()
    watch.join()
    return {"seconds": seconds, "cpu": cpu, "peak": peak[0]}


if __name__ == "__main__":
    main()
