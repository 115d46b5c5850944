"""Texts as texts of a public bank: sentences a second, what of it the product takes, and memory of a large bank.

Command: ``python benchmarks/bank.py [--quick] [--model sentences]``; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import limit
import numpy as np
import zipf

import dptext
from dptext.features.features import PublicFeatures, fit_features
from dptext.sentences.bank import TextBank

SOURCE, VOCABULARY = "glove-6b-50d", 20_000
DIMENSION = 384
LENGTH, SENTENCES_A_DOCUMENT = 12, 4
TEXTS, LARGE, QUERIES = 100_000, 1_000_000, 4096
WORDS_TEXTS, MODEL_TEXTS, MODEL_QUERIES = 20_000, 1000, 256
QUICK_TEXTS, QUICK_LARGE = 20_000, 50_000
EPSILONS = (4.0, 8.0, 12.0)
MEANS = "means of word vectors, bounded"


def main() -> None:
    parser = argparse.ArgumentParser(description="Sentences through a bank.")
    parser.add_argument("--quick", action="store_true", help="a fifth of the bank, a twentieth of the large one")
    parser.add_argument("--model", help="an encoder to measure from end to end as well, such as 'sentences'")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.child:
        label, folder = options.child
        CHILDREN[label](Path(folder))
        return
    texts, large = (QUICK_TEXTS, QUICK_LARGE) if options.quick else (TEXTS, LARGE)
    print(f"load {os.getloadavg()[0]:.2f}; CPU seconds of all threads\n")
    speed(texts, options.model)
    memory(large)


# -- speed ------------------------------------------------------------------------------------------------------------


def speed(size: int, model: str | None) -> None:
    words = known_words()
    bank = TextBank(public_texts(words, size), encoder=mean_features(words), cache=False)
    private = list(zipf.texts(words, QUERIES, LENGTH, seed=9))
    documents = [
        ". ".join(private[index : index + SENTENCES_A_DOCUMENT]) for index in range(0, QUERIES, SENTENCES_A_DOCUMENT)
    ]
    _ = bank.profile, bank.fingerprint
    encode = cpu_seconds(lambda: bank.features.vectors(private))
    _, product = limit.matmul_costs(QUERIES, DIMENSION, len(bank), repeats=3)
    print(f"a bank of {len(bank):,} x {DIMENSION}, {QUERIES:,} sentences of {LENGTH} words")
    print("| what | epsilon | k | CPU seconds | sentences a CPU second | the product takes |")
    print("|---|---:|---:|---:|---:|---:|")

    def report(label: str, epsilon: float | str, k: int | str, seconds: float, count: int | None = None) -> None:
        share = f"{product / seconds:.0%}" if count is None and label != MEANS else ""
        count = count or QUERIES
        print(f"| {label} | {epsilon} | {k} | {seconds:.2f} | {count / seconds:,.0f} | {share} |", flush=True)

    report("float32 product", "", "", product)
    report(MEANS, "", "", encode)
    for epsilon in EPSILONS:
        rewriter = dptext.BankRewriter(bank, epsilon=epsilon)
        k = rewriter.size
        whole = cpu_seconds(lambda rewriter=rewriter: dptext.privatize(documents, rewriter))
        report("`privatize`, less the encoder", f"{epsilon:g}", k, whole - encode)
    for encoder, size, count in (("words", WORDS_TEXTS, QUERIES), (model, MODEL_TEXTS, MODEL_QUERIES)):
        if encoder is None:
            continue
        other = TextBank(bank.texts[:size], encoder=encoder, cache=False)
        rewriter = dptext.BankRewriter(other, epsilon=8.0)
        _ = rewriter.statement
        taken = documents[: count // SENTENCES_A_DOCUMENT]
        seconds = cpu_seconds(lambda taken=taken, rewriter=rewriter: dptext.privatize(taken, rewriter), repeats=1)
        report(f"`privatize` with the encoder, {encoder}, {len(other):,} texts", "8", rewriter.size, seconds, count)
    print()


def cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The best of a few: of all threads of this process."""
    result = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        result.append(time.process_time() - start)
    return min(result)


# -- memory -----------------------------------------------------------------------------------------------------------


def memory(size: int) -> None:
    print(f"a bank of {size:,} x {DIMENSION}, each line a process of its own")
    print("| what | CPU seconds | seconds | peak MiB | without the bank |")
    print("|---|---:|---:|---:|---:|")
    with TemporaryDirectory() as name:
        folder = Path(name) / "bank"
        public = Path(name) / "public.txt"
        with public.open("w", encoding="utf-8") as stream:
            stream.writelines(f"{text}\n" for text in public_texts(known_words(), size))
        private = zipf.texts(known_words(), QUERIES // 4, LENGTH, seed=9)
        (Path(name) / "private.txt").write_text("\n".join(private), encoding="utf-8")
        for child in CHILDREN:
            command = [sys.executable, str(Path(__file__).with_name("child.py")), sys.executable, __file__]
            done = subprocess.run(
                [*command, "--child", child, str(folder)], stdout=subprocess.PIPE, text=True, check=True
            )
            used = json.loads(done.stdout)
            if used["exit"]:
                raise SystemExit(f"{child}: failed")
            file_bytes = sum(path.stat().st_size for path in folder.iterdir()) if folder.exists() else 0
            print(
                f"| {child} | {used['cpu_seconds']:.1f} | {used['seconds']:.1f} | {used['peak_bytes'] / 2**20:,.0f} | "
                f"{(used['peak_bytes'] - file_bytes) / 2**20:,.0f} |",
                flush=True,
            )


def nothing(folder: Path) -> None:
    """Return the memory of the interpreter and its modules."""
    rewrite(TextBank(SMALL, encoder=mean_features_of(SMALL), cache=False), folder, 8.0)


def build(folder: Path) -> None:
    """Also what the interpreter, the encoder and its words take."""
    TextBank(folder.with_name("public.txt"), encoder=mean_features(known_words()), cache=False).save(folder)


def load(folder: Path) -> None:
    TextBank.load(folder)


def draw(folder: Path) -> None:
    rewrite(TextBank.load(folder), folder, 8.0)


def draw_much(folder: Path) -> None:
    rewrite(TextBank.load(folder), folder, 2.0)


def rewrite(bank: TextBank, folder: Path, epsilon: float) -> None:
    private = folder.with_name("private.txt").read_text(encoding="utf-8").splitlines()
    dptext.privatize(private, dptext.BankRewriter(bank, epsilon=epsilon))


CHILDREN = {
    "nothing": nothing,
    "build and save": build,
    "load": load,
    "load, 1,024 sentences at epsilon 8": draw,
    "load, 1,024 sentences at epsilon 2": draw_much,
}


# -- inputs --------------------------------------------------------------------------------------------


def known_words() -> tuple[str, ...]:
    return dptext.load_vectors(SOURCE, limit=VOCABULARY).words[:-1]


def public_texts(words: tuple[str, ...], count: int) -> list[str]:
    return list(zipf.texts(words, count, LENGTH, seed=5))


SMALL = ["the tea", "of tea", "and tax", "to the law"]


def mean_features_of(texts: list[str]) -> PublicFeatures:
    """The same of a few words: of no weight."""
    words = sorted({word for text in texts for word in text.split()})
    points = np.random.default_rng(1).standard_normal((len(words), DIMENSION), dtype=np.float32)
    return fit_features(dptext.MeanOfWords(dptext.load_vectors((words, points))), texts, cache=False)


def mean_features(words: tuple[str, ...]) -> PublicFeatures:
    """Means of word vectors: as many numbers as a sentence model gives, in no time."""
    vectors = dptext.load_vectors(SOURCE, limit=VOCABULARY)
    generator = np.random.default_rng(1)
    shape = (vectors.matrix.shape[1], DIMENSION)
    wide = vectors.matrix @ generator.standard_normal(shape, dtype=np.float32)
    wide += generator.standard_normal(wide.shape, dtype=np.float32)
    encoder = dptext.MeanOfWords(dptext.WordVectors(vectors.words, wide))
    return fit_features(encoder, public_texts(words, 5000), cache=False)


if __name__ == "__main__":
    main()
