"""Fit a description of a million short documents with each kind of features, in one run.

Command: ``python benchmarks/features.py [--data ../shared/data] [--documents 1000000]``; see benchmarks/README.md. The
documents are pairs of sentences of restaurant reviews, all different; each user has ten of them. Each fit is a process
of its own that reads the file, fits the features on the pool and releases the description.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from papers.data_sets import yelp  # noqa: E402

DOCUMENTS, POOL, TEXTS_PER_USER = 1_000_000, 20_000, 10
FEATURES = ("words", "glove", "static", "static,words")
"""The first one was the default without a sentence model, and the last one is; with no extra it is ``static``."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit a description with each kind of features.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--features", nargs="+", default=FEATURES)
    parser.add_argument("--fit", nargs=3, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.fit:
        fit(*options.fit)
        return
    sentences = yelp(options.data)
    with TemporaryDirectory() as name:
        data, pool = Path(name) / "documents.jsonl", Path(name) / "pool.txt"
        pool.write_text("\n".join(sentences.texts[:POOL]), encoding="utf-8")
        write(data, sentences.texts[POOL:], sentences.labels[POOL:].tolist(), options.documents)
        print(f"load {os.getloadavg()[0]:.2f}; {options.documents:,} documents, a pool of {POOL:,} texts")
        print("| features | CPU seconds | documents/s | peak memory | time relative to the first row |")
        print("|---|---:|---:|---:|---:|")
        first = None
        for features in options.features:
            command = [sys.executable, str(HERE / "child.py"), sys.executable, __file__]
            done = subprocess.run(
                [*command, "--fit", features, str(data), str(pool)], stdout=subprocess.PIPE, text=True, check=True
            )
            result = json.loads(done.stdout)
            if result["exit"]:
                raise SystemExit(f"the description with {features} failed")
            seconds = result["cpu_seconds"]
            first = first or seconds
            print(
                f"| `{features}` | {seconds:.1f} | {options.documents / seconds:,.0f} | "
                f"{result['peak_bytes'] / 2**20:.0f} MiB | {seconds / first:.2f} |",
                flush=True,
            )


def write(path: Path, sentences: tuple[str, ...], labels: list[int], documents: int) -> None:
    """Write pairs of sentences: the second one is the k-th after the first one, k growing from round to round."""
    count = len(sentences)
    with path.open("w", encoding="utf-8") as stream:
        for number in range(documents):
            row, step = number % count, number // count + 1
            text = f"{sentences[row]} {sentences[(row + step) % count]}"
            record = {"text": text, "user": f"u{number // TEXTS_PER_USER}", "label": "ab"[labels[row]]}
            stream.write(json.dumps(record) + "\n")


def fit(features: str, data: str, pool: str) -> None:
    from dptext.io.documents import read_documents
    from dptext.synthesis.synthesizer import Synthesizer

    documents = read_documents(data, user="user", keep=["label"])
    synthesizer = Synthesizer(epsilon=1.0, labels=["a", "b"], features=features.split(","), cache=False)
    synthesizer.fit(documents, public=[Path(pool)])


if __name__ == "__main__":
    main()
