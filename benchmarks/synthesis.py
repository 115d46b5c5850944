"""Features of a synthetic corpus: how fast texts are encoded beside scikit-learn, and what a whole description takes.

Command: ``python benchmarks/synthesis.py [--documents 1000000] [--pool 20000] [--quick]``; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import zipf
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from dptext import load_vectors
from dptext.features.features import fit_features
from dptext.features.latent_words import DIMENSION, MOST_WORDS

SOURCE, VOCABULARY = "glove-6b-50d", 50_000
LENGTH, POOL_LENGTH, TEXTS_A_USER = 12, 20, 5
DOCUMENTS, POOL = 1_000_000, 20_000
QUICK = 20_000
AT_ONCE = 10_000
LABELS = ("one", "two", "three", "four")


def main() -> None:
    parser = argparse.ArgumentParser(description="Features, and the description of a corpus.")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--pool", type=int, default=POOL)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} documents, no peer")
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.fit:
        fit(*map(Path, options.fit))
        return
    documents = QUICK if options.quick else options.documents
    vectors = load_vectors(SOURCE, limit=VOCABULARY)
    words = vectors.words[:-1]
    pool = list(zipf.texts(words, options.pool, POOL_LENGTH, seed=5))
    print(f"load {os.getloadavg()[0]:.2f}; {documents:,} documents of {LENGTH} words, a pool of {options.pool:,} texts")
    print("| what | CPU seconds | texts/s | scikit-learn takes |")
    print("|---|---:|---:|---:|")
    seconds_here, bounded = timed_features(pool, words, documents)
    seconds_peer = None if options.quick else timed_peer(pool, words, documents)
    report("`words`: TF-IDF and SVD", seconds_here, documents, seconds_peer)
    report("the same, centred, bounded, in whole units", bounded, documents, seconds_peer)
    if seconds_peer is not None:
        report("scikit-learn: TfidfVectorizer and TruncatedSVD", seconds_peer, documents, None)
    with TemporaryDirectory() as name:
        data, public = Path(name) / "documents.jsonl", Path(name) / "pool.txt"
        public.write_text("\n".join(pool), encoding="utf-8")
        with data.open("w", encoding="utf-8") as stream:
            for number, text in enumerate(zipf.texts(words, documents, LENGTH)):
                row = {"text": text, "user": f"u{number // TEXTS_A_USER}", "label": LABELS[number % len(LABELS)]}
                stream.write(json.dumps(row) + "\n")
        command = [sys.executable, str(Path(__file__).with_name("child.py")), sys.executable, __file__, "--fit"]
        done = subprocess.run([*command, str(data), str(public)], stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout)
    if result["exit"]:
        raise SystemExit("the description failed")
    report("`Synthesizer.fit`, from file to release, the pool's features too", result["cpu_seconds"], documents, None)
    print(f"\nthat process: {result['seconds']:.0f} s on the clock, peak {result['peak_bytes'] / 2**20:.0f} MiB")


def fit(data: Path, public: Path) -> None:
    from dptext.io.documents import read_documents
    from dptext.synthesis.synthesizer import Synthesizer

    documents = read_documents(data, user="user", keep=["label"])
    Synthesizer(epsilon=1.0, labels=list(LABELS), features="words", cache=False).fit(documents, public=[public])


def report(label: str, seconds: float, documents: int, seconds_peer: float | None) -> None:
    ratio = "" if seconds_peer is None else f"{seconds_peer / seconds:.1f} x"
    print(f"| {label} | {seconds:.1f} | {documents / seconds:,.0f} | {ratio} |", flush=True)


def timed_features(pool: list[str], words: tuple[str, ...], documents: int) -> tuple[float, float]:
    """Seconds for the encoder alone, and for the features."""
    features = fit_features("words", pool, cache=False)
    (block,) = features.blocks
    return timed(block.encoder.encode, words, documents), timed(features.units, words, documents)


def timed_peer(pool: list[str], words: tuple[str, ...], documents: int) -> float:
    """Seconds for the same vectors by scikit-learn's own classes."""
    tfidf = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=MOST_WORDS)
    decomposition = TruncatedSVD(DIMENSION, n_iter=4, random_state=7)
    decomposition.fit(tfidf.fit_transform(pool).astype(np.float32))
    return timed(lambda texts: decomposition.transform(tfidf.transform(texts).astype(np.float32)), words, documents)


def timed(encode: Callable[[list[str]], object], words: tuple[str, ...], documents: int) -> float:
    """Seconds of CPU for texts in blocks; making the texts does not count."""
    texts = zipf.texts(words, documents, LENGTH, seed=9)
    seconds = 0.0
    for block in blocks(texts):
        start = time.process_time()
        encode(block)
        seconds += time.process_time() - start
    return seconds


def blocks(texts: Iterator[str]) -> Iterator[list[str]]:
    while block := list(islice(texts, AT_ONCE)):
        yield block


if __name__ == "__main__":
    main()
