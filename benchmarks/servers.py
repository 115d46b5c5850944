"""Sums by two servers: time of a contribution, time and memory of a server, and bytes on the wire, for seven labels.

Command: python benchmarks/servers.py [--messages N] [--single]. The limit of a server is the time to read its files.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import dptext
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.servers import ShareSum
from dptext.synthesis.synthesizer import SynthesisPlan

TEXTS = ["the team won the game", "stocks and oil prices fell", "a cup of tea", "the court and the law"]


def seven_labels() -> SynthesisPlan:
    pool = [f"{text} {number}" for number in range(50) for text in TEXTS]
    synthesizer = dptext.Synthesizer(epsilon=1.0, labels=list("abcdefg"), features="static", cache=False)
    return synthesizer.plan(pool)


def contribution(plan: SynthesisPlan, repeats: int = 200) -> list[bytes]:
    """Print the time of a user with 20 documents; return the two messages."""
    documents = [dptext.Document(f"{text} {number}", label="abcdefg"[number]) for number in range(5) for text in TEXTS]
    start = time.perf_counter()
    for _ in range(repeats):
        messages = plan.contribution(documents).shares()
    seconds = (time.perf_counter() - start) / repeats
    print(f"contribution: {1000 * seconds:.1f} ms, {len(messages[0]):,} and {len(messages[1]):,} bytes")
    return list(messages)


def server(plan: SynthesisPlan, message: bytes, count: int, *, single: bool) -> None:
    """Print the time in which a server adds up files with random shares, beside the time to read them."""
    bits, head, body = RandomBits(1), message[:40], len(message) - 40
    with tempfile.TemporaryDirectory() as folder:
        per_file = 1 if single else 10_000
        for start in range(0, count, per_file):
            shares = b"".join(head + bits.take(body) for _ in range(min(per_file, count - start)))
            Path(folder, f"{start}.shares").write_bytes(shares)
        paths = sorted(Path(folder).iterdir())
        start_time = time.perf_counter()
        for path in paths:
            path.read_bytes()
        reading = time.perf_counter() - start_time
        before, start_time = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        total = ShareSum(plan)
        for path in paths:
            total.add_file(path)
        total.publish()
        seconds = time.perf_counter() - start_time
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(
            f"server {total.server}: {len(total.ids):,} messages in {len(paths):,} files: {seconds:.1f} s "
            f"(reading alone {reading:.1f} s), {grown:.0f} MiB more memory"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--single", action="store_true", help="one message per file")
    arguments = parser.parse_args()
    plan = seven_labels()
    for message in contribution(plan):
        server(plan, message, arguments.messages, single=arguments.single)


if __name__ == "__main__":
    main()
