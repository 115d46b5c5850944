"""Time and memory of `dptext.describe`, from a file to the release, beside scikit-learn's count of the same phrases.

Command: ``python benchmarks/summary.py [--documents 100000 1000000]``; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import zipf

from dptext import load_vectors

LENGTH, TEXTS_A_USER, MONTHS = 30, 10, 12


def main() -> None:
    parser = argparse.ArgumentParser(description="Summaries of many texts.")
    parser.add_argument("--documents", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.run:
        {"describe": describe, "peer": count_with_peer}[options.run[0]](Path(options.run[1]))
        return
    words = load_vectors("minilm-words-128d").words
    print(f"load {os.getloadavg()[0]:.2f}; documents of {LENGTH} words, {TEXTS_A_USER} a user")
    print("| documents | what | CPU seconds | seconds | peak |\n|---:|---|---:|---:|---:|")
    for documents in options.documents:
        with TemporaryDirectory() as folder:
            data = Path(folder) / "documents.jsonl"
            with data.open("w", encoding="utf-8") as stream:
                for number, text in enumerate(zipf.texts(words, documents, LENGTH)):
                    date = f"2004-{1 + number % MONTHS:02}-15"
                    row = {"text": text, "user": f"u{number // TEXTS_A_USER}", "date": date}
                    stream.write(json.dumps(row) + "\n")
            report(documents, "`describe`: 61 topics, 50 phrases", run("describe", data))
            if documents == min(options.documents):
                report(documents, "scikit-learn: CountVectorizer, 1 to 3 words", run("peer", data))


def run(kind: str, data: Path) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).with_name("child.py")), sys.executable, __file__, "--run", kind]
    done = subprocess.run([*command, str(data)], stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    if result["exit"]:
        raise SystemExit(f"{kind} failed")
    return result


def report(documents: int, label: str, result: dict[str, float]) -> None:
    peak = f"{result['peak_bytes'] / 2**20:.0f} MiB"
    print(f"| {documents:,} | {label} | {result['cpu_seconds']:.1f} | {result['seconds']:.1f} | {peak} |", flush=True)


def describe(data: Path) -> None:
    import dptext

    documents = dptext.read_documents(data, user="user", keep=["date"])
    dptext.describe(documents, epsilon=1.0)


def count_with_peer(data: Path) -> None:
    from sklearn.feature_extraction.text import CountVectorizer

    users: dict[str, list[str]] = {}
    with data.open(encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            users.setdefault(row["user"], []).append(row["text"])
    CountVectorizer(ngram_range=(1, 3), binary=True).fit_transform(map("\n".join, users.values())).sum(axis=0)


if __name__ == "__main__":
    main()
