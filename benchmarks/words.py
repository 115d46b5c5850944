"""Speed and memory of the word mechanisms and of a peer in one run: see benchmarks/README.md.

Command: ``python benchmarks/words.py [--quick] [--peer-seconds 10]``
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
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import limit
import numpy as np
import peer
import zipf

from dptext import (
    TEM,
    CusText,
    Madlib,
    Mahalanobis,
    SanText,
    SanTextPlus,
    SubsetSelection,
    Vickrey,
    WordVectors,
    load_vectors,
)
from dptext.threads import available_cores
from dptext.words.mechanism import WordMechanism

SOURCE = "glove-6b-50d"
WORDS = 20_000
BESIDE_PEER = 100_000  # vocabulary
ALONE = (20_000, 50_000)  # vocabularies
TEM_EPSILON, MADLIB_EPSILON = 5.0, 10.0  # the latter for all mechanisms with noise on vectors
SELECTIONS = {
    SubsetSelection: 8.0,
    SanText: 5.0,
    SanTextPlus: 5.0,
    CusText: 5.0,
}  # epsilon means another thing in each
DOCUMENTS, QUICK_DOCUMENTS = 1_000_000, 50_000
DOCUMENT_LENGTH, DOCUMENT_VOCABULARY = 10, 50_000

RESULTS = Path(__file__).resolve().parent / "results" / "words.json"
_CHILD = Path(__file__).resolve().parent / "child.py"


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    label: str
    vocabulary: int
    words: int
    seconds: float
    ours_over_this: float | None = None
    """Words per second of dptext (TEM: cold, else Madlib) divided by this row, if they are comparable."""

    @property
    def words_per_second(self) -> float:
        return self.words / self.seconds


@dataclass(frozen=True)
class EndToEnd:
    """A file through the command line, start-up and loading of vectors included."""

    documents: int
    words: int
    seconds: float
    peak_bytes: int


def main() -> None:
    options = _options()
    repeats = 1 if options.quick else 3
    load_before = os.getloadavg()[0]
    rows, peer_versions = beside_peer(repeats, options.peer_seconds)
    if not options.quick:
        rows += [row for size in ALONE for row in alone(size, repeats)]
    whole = end_to_end(QUICK_DOCUMENTS if options.quick else DOCUMENTS)
    machine = _machine(load_before, peer_versions)
    print(report(rows, whole, machine, repeats))
    if not options.quick:
        _write_results(rows, whole, machine, repeats)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speed and memory of the word mechanisms and of a peer.")
    parser.add_argument("--quick", action="store_true", help="no repeats, one vocabulary, few documents, no results/")
    parser.add_argument("--peer-seconds", type=float, default=10.0, help="when to stop each run of the peer")
    return parser.parse_args()


# -- words to words -------------------------------------------------------------------------------------------


def beside_peer(repeats: int, peer_seconds: float) -> tuple[list[Row], dict[str, str]]:
    """All mechanisms; the peer on the same vectors, words and epsilon; the product that Madlib cannot avoid."""
    vectors = load_vectors(SOURCE, limit=BESIDE_PEER)
    words = zipf.draw_words(vectors, WORDS)
    tem, madlib = tem_rows(vectors, words, repeats), [madlib_row(vectors, words, repeats)]
    bound = product_row(vectors, madlib[0], repeats)
    versions: dict[str, str] = {}
    with peer.peer_with(vectors, words) as other:
        if other is not None:
            for rows, name, epsilon, label in (
                (tem, "tem", TEM_EPSILON, f"TEM, epsilon {TEM_EPSILON:g}"),
                (madlib, "madlib", MADLIB_EPSILON, f"Madlib, epsilon {MADLIB_EPSILON:g}, exact search"),
                (madlib, "madlib-approximate", MADLIB_EPSILON, "the same, approximate search (its default)"),
            ):
                pace = other.pace(name, epsilon=epsilon, seconds=peer_seconds)
                if pace is None:
                    continue
                ratio = rows[0].words_per_second / pace.words_per_second
                rows.append(Row(f"{peer.NAME}: {label}", len(vectors), pace.words, pace.seconds, ratio))
                versions = pace.versions
    selections, noisy = selection_rows(vectors, words, repeats), noisy_rows(vectors, words, repeats, madlib[0])
    return [*tem, *selections, *madlib, bound, *noisy], versions


def alone(size: int, repeats: int) -> list[Row]:
    """TEM and Madlib on another vocabulary."""
    vectors = load_vectors(SOURCE, limit=size)
    words = zipf.draw_words(vectors, WORDS)
    madlib = madlib_row(vectors, words, repeats)
    return [*tem_rows(vectors, words, repeats), madlib, *noisy_rows(vectors, words, repeats, madlib)]


def tem_rows(vectors: WordVectors, words: list[str], repeats: int) -> list[Row]:
    """Cold: a fresh mechanism. Warm: the same words again, with the block sums of the first time."""
    return _cold_and_warm("TEM", partial(TEM, vectors, epsilon=TEM_EPSILON), TEM_EPSILON, words, repeats)


def selection_rows(vectors: WordVectors, words: list[str], repeats: int) -> list[Row]:
    """The others that select from the vocabulary; groups and lists are built cold, and are there when it is warm."""
    rows = []
    for build, epsilon in SELECTIONS.items():
        rows += _cold_and_warm(build.name, partial(build, vectors, epsilon=epsilon), epsilon, words, repeats)
    return rows


def _cold_and_warm(
    label: str, build: Callable[[], WordMechanism], epsilon: float, words: list[str], repeats: int
) -> list[Row]:
    cold, warm = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        mechanism = build()
        mechanism.sample(words)
        cold.append(time.perf_counter() - start)
        warm.append(_seconds(partial(mechanism.sample, words)))
    return [
        Row(f"dptext: {label}, epsilon {epsilon:g}, {name}", len(mechanism.vectors), len(words), min(seconds))
        for name, seconds in (("cold", cold), ("warm", warm))
    ]


def madlib_row(vectors: WordVectors, words: list[str], repeats: int) -> Row:
    """A fresh mechanism; there is nothing that a second draw could use again."""
    seconds = min(_seconds(lambda: Madlib(vectors, epsilon=MADLIB_EPSILON).sample(words)) for _ in range(repeats))
    return Row(f"dptext: Madlib, epsilon {MADLIB_EPSILON:g}, exact search", len(vectors), len(words), seconds)


def noisy_rows(vectors: WordVectors, words: list[str], repeats: int, madlib: Row) -> list[Row]:
    """Time Madlib and the mechanisms that search alike; each is built anew, with its public matrix."""
    rows = []
    for mechanism in (Mahalanobis, Vickrey):
        build = partial(mechanism, vectors, epsilon=MADLIB_EPSILON)
        seconds = min(_seconds(lambda: build().sample(words)) for _ in range(repeats))  # noqa: B023
        text = f"dptext: {mechanism.name}, epsilon {MADLIB_EPSILON:g}, exact search (compared with Madlib)"
        rows.append(Row(text, len(vectors), len(words), seconds, seconds / madlib.seconds))
    return rows


def product_row(vectors: WordVectors, madlib: Row, repeats: int) -> Row:
    """The matrix product of Madlib's size; the search folds the norm of a vector into it as one more dimension."""
    seconds = limit.matmul_seconds(madlib.words, vectors.dimension + 1, len(vectors), repeats=repeats)
    return Row("numpy: float32 product of Madlib's size", len(vectors), madlib.words, seconds, seconds / madlib.seconds)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# -- a file through the command line --------------------------------------------------------------------------


def end_to_end(documents: int) -> EndToEnd:
    """`dptext privatize` on a file of many short documents, in a process of its own."""
    with TemporaryDirectory() as name:
        source, out = Path(name) / "texts.jsonl", Path(name) / "private.jsonl"
        vectors = load_vectors(SOURCE, limit=DOCUMENT_VOCABULARY)
        zipf.write_documents(source, vectors, documents=documents, length=DOCUMENT_LENGTH)
        privatize = [
            *(sys.executable, "-m", "dptext", "privatize", str(source), "-o", str(out), "--text", "text", "--quiet"),
            *("--epsilon", f"{TEM_EPSILON:g}", "--vectors", SOURCE, "--limit", str(DOCUMENT_VOCABULARY)),
        ]
        done = subprocess.run([sys.executable, str(_CHILD), *privatize], stdout=subprocess.PIPE, text=True, check=True)
        used = json.loads(done.stdout)
        if used["exit"] != 0 or _lines(out) != documents:
            raise SystemExit(f"dptext privatize ended with {used['exit']} or wrote too few documents")
    return EndToEnd(documents, documents * DOCUMENT_LENGTH, used["seconds"], used["peak_bytes"])


def _lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(1 for _ in stream)


# -- the report -----------------------------------------------------------------------------------------------


def report(rows: list[Row], whole: EndToEnd, machine: dict[str, object], repeats: int) -> str:
    """Two tables in Markdown, as they stand in the README."""
    best = "one run" if repeats == 1 else f"the best of {repeats} runs"
    return "\n".join(
        [
            f"{machine['cores']} cores ({machine['architecture']}), load {machine['load_before']} before the run; "
            f"Python {machine['python']}, numpy {machine['numpy']}, dptext {machine['dptext']}. "
            f"dptext and the product: {best}.",
            "",
            "| what | vocabulary | words done | seconds | words/s | dptext is |",
            "|---|---:|---:|---:|---:|---:|",
            *(_line(row) for row in rows),
            "",
            "| file through the command line | seconds | documents/s | words/s | peak memory |",
            "|---|---:|---:|---:|---:|",
            f"| {whole.documents:,} documents of {DOCUMENT_LENGTH} words, {DOCUMENT_VOCABULARY:,} words, TEM epsilon "
            f"{TEM_EPSILON:g} | {whole.seconds:.1f} | {whole.documents / whole.seconds:,.0f} | "
            f"{whole.words / whole.seconds:,.0f} | {whole.peak_bytes / 2**30:.2f} GiB |",
        ]
    )


def _line(row: Row) -> str:
    pace = f"{row.words_per_second:,.0f}" if row.words_per_second >= 100 else f"{row.words_per_second:.1f}"
    return f"| {row.label} | {row.vocabulary:,} | {row.words:,} | {row.seconds:.2f} | {pace} | {_ratio(row)} |"


def _ratio(row: Row) -> str:
    if row.ours_over_this is None:
        return ""
    return f"{row.ours_over_this:,.0f} x" if row.ours_over_this >= 1 else f"{row.ours_over_this:.0%} of it"


def _machine(load_before: float, peer_versions: dict[str, str]) -> dict[str, object]:
    return {
        "cores": available_cores(),
        "architecture": platform.machine(),
        "load_before": round(load_before, 2),
        "python": platform.python_version(),
        "dptext": version("dptext"),
        "numpy": np.__version__,
        "peer": peer_versions,
    }


def _write_results(rows: list[Row], whole: EndToEnd, machine: dict[str, object], repeats: int) -> None:
    numbers = [{**asdict(row), "words_per_second": row.words_per_second} for row in rows]
    content = {"machine": machine, "repeats": repeats, "rows": numbers, "end_to_end": asdict(whole)}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
