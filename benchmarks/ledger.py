"""How fast a ledger reserves rows, and how much memory that takes; prints the table of benchmarks/README.md.

    .venv/bin/python benchmarks/ledger.py [ROWS]

Each row of the table is a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_CHILD = "--reserve"


def texts(first: int, count: int) -> Iterator[str]:
    """Different texts of 60 to 70 letters, none of them ever held together with another."""
    return (f"a text of the length that short reviews have, more or less {n}" for n in range(first, first + count))


def reserve(path: str, release_id: str, first: int, count: int) -> None:
    """Reserve in this process and print its costs as JSON."""
    import resource

    from dptext.errors import RefusedError
    from dptext.ledger.ledger import TEXT, Ledger
    from dptext.privacy.guarantee import PureDP, Relation, Unit

    start = time.perf_counter()
    try:
        Ledger(path).reserve(
            release_id,
            PureDP(4.0),
            texts(first, count),
            by=TEXT,
            unit=Unit.DOCUMENT,
            relation=Relation.SUBSTITUTION,
        )
        outcome = "reserved"
    except RefusedError:
        outcome = "refused"
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"outcome": outcome, "seconds": seconds, "peak": peak, "bytes": Path(path).stat().st_size}))


def main(rows: int) -> None:
    from dptext.ledger.ledger import Ledger

    print("| what | rows | seconds | rows/s | peak memory | ledger |\n|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=".") as folder:  # /tmp may be memory
        path = Path(folder) / "bench.ledger"
        ledger = Ledger.create(path, epsilon=10)
        for label, first, count in (
            ("a first release", 0, rows),
            ("the same rows again", 0, rows),
            ("a third time: refused", 0, rows),
            ("a tenth as many, all new", 10 * rows, rows // 10),
        ):
            command = [
                sys.executable,
                __file__,
                _CHILD,
                str(path),
                label.replace(" ", "-").replace(":", "").replace(",", ""),
                first,
                count,
            ]
            done = subprocess.run([str(entry) for entry in command], capture_output=True, text=True, check=True)
            got = json.loads(done.stdout)
            print(
                f"| {label} | {count:,} | {got['seconds']:.1f} | {count / got['seconds']:,.0f} "
                f"| {got['peak'] / 2**20:.0f} MiB | {got['bytes'] / 2**20:,.0f} MiB |",
                flush=True,
            )
        for label, call in (
            ("settle", lambda: ledger.settle("a-first-release")),
            ("summary", ledger.summary),
            ("void the second", lambda: ledger.void("the-same-rows-again")),
        ):
            start = time.perf_counter()
            call()
            print(f"| {label} |  | {time.perf_counter() - start:.2f} |  |  |  |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [_CHILD]:
        reserve(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
