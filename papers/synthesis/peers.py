"""The released distribution, votes by Private Evolution's authors' own code, words by TEM, and no text: one comparison.

Private Evolution (microsoft/DPSDA, MIT licence) is no package: clone https://github.com/microsoft/DPSDA and name the
folder with ``--pe``; it needs omegaconf and pandas. Its package imports image models, so the modules that count votes
are loaded directly.

Command: ``python -m papers.synthesis.peers --pe DPSDA [--data FOLDER]``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.reports import Rows, number_of, parse_options, run_command, table, write_between
from papers.sweeps import sweep
from papers.synthesis.corpus import CachedSentences, select, shuffled
from papers.synthesis.experiment import DELTA, Bench, split_of

import dptext
from dptext.errors import StorageError

HERE = Path(__file__).resolve().parent
START, END = "<!-- peers: written by papers.synthesis.peers -->", "<!-- end of the peers -->"
CANDIDATES = 2000
WORDS = 32  # words of a document that TEM's budget covers
METHODS = {
    "described": "synthetic texts (`Synthesizer`)",
    "released": "no text: the released distribution as a classifier",
    "votes": "votes of the same epsilon (`VoteSynthesizer`)",
    "pe": "votes counted by Private Evolution's own code (best setting: .62 / .81 at 1, .65 / .85 at 4)",
    "tem": "the private texts word by word (TEM; labels unchanged)",
}
_PACKAGES = ("pe", "pe.data", "pe.embedding", "pe.histogram", "pe.histogram.nearest_neighbor_backend", "pe.dp")

Labels = npt.NDArray[np.intp]


def main(arguments: Sequence[str] | None = None) -> None:
    pe = {"type": Path, "help": "a clone of microsoft/DPSDA"}
    options = parse_options("Synthesizer and its peers on the same documents and pool.", HERE, arguments, pe=pe)
    if not options.report:
        sweep(
            partial(measure, bench=Bench(options.data), checkout=options.pe),
            list(_settings(with_pe=options.pe is not None)),
            range(1, 2 if options.quick else 6),
            path=options.out / "peers.jsonl",
            name="synthesis peers",
        )
    write_report(options.out, readme=options.readme)


def _settings(*, with_pe: bool) -> Iterator[dict[str, Any]]:
    usual = {"data": "news", "pool": "news", "people": 5000, "rarest": None, "n": 4000, "variety": 0.5}
    for epsilon in (1.0, 4.0):
        for method in METHODS:
            if method != "pe" or with_pe:
                yield usual | {"method": method, "epsilon": epsilon, "features": "both"}


def measure(settings: Mapping[str, Any], seed: int, *, bench: Bench, checkout: Path | None) -> dict[str, float]:
    method = settings["method"]
    if method not in ("pe", "tem"):
        return bench.cell(settings | ({"features": "sentences"} if method == "votes" else {}), seed)
    split = split_of(bench, settings["data"], settings["pool"], seed)
    rows = split.first(settings["people"], settings["rarest"])
    texts, labels = select(split.texts, rows), split.labels[rows]
    if method == "tem":
        vectors = dptext.load_vectors("glove-6b-50d", limit=50_000)
        mechanism = dptext.TEM(vectors, epsilon=5.0, document_epsilon=settings["epsilon"], max_words=WORDS)
        output = dptext.privatize(texts, mechanism, seed=seed).texts
        words_only = replace(bench, sentences=False)  # a sentence model is useless for random words
        return words_only.evaluate(settings, split, tuple(str(text) for text in output), labels)
    assert checkout is not None
    candidates = select(split.pool, shuffled(len(split.pool), seed)[:CANDIDATES])
    np.random.seed(seed)  # noqa: TID251  # its noise is numpy's, from the global generator
    votes = noisy_votes(checkout, texts, labels, candidates, len(split.classes), epsilon=settings["epsilon"])
    kept = min(settings["n"], CANDIDATES) // len(split.classes)  # those with the most votes, as its selection by rank
    chosen = np.concatenate([np.argsort(-vote, kind="stable")[:kept] for vote in votes])
    return bench.evaluate(settings, split, select(candidates, chosen), np.repeat(np.arange(len(votes)), kept))


def noisy_votes(
    checkout: Path, texts: Sequence[str], labels: Labels, candidates: Sequence[str], classes: int, *, epsilon: float
) -> npt.NDArray[np.float64]:
    """Return (K, n) noisy numbers of private texts of each class with each nearest candidate (by cosine): one round."""
    if not (checkout / "pe" / "dp" / "gaussian.py").exists():
        raise StorageError(
            f"expected a clone of https://github.com/microsoft/DPSDA at {str(checkout)!r}: it has no pe/dp/gaussian.py"
        )
    _prepare_packages(checkout)
    gaussian = import_module("pe.dp.gaussian").Gaussian()
    gaussian.set_epsilon_and_delta(num_iterations=1, epsilon=epsilon, delta=DELTA, noise_multiplier=None)
    histogram = import_module("pe.histogram.nearest_neighbors").NearestNeighbors(
        embedding=_StoredVectors(), mode="cos_sim", lookahead_degree=0, backend="sklearn"
    )
    data = import_module("pe.data.data").Data
    column = import_module("pe.constant.data").DP_HISTOGRAM_COLUMN_NAME
    sentences = CachedSentences(128)
    private, public = sentences.encode(texts), sentences.encode(candidates)
    votes = []
    for index in range(classes):
        _, counted = histogram.compute_histogram(data(_frame(private[labels == index])), data(_frame(public)))
        votes.append(gaussian.add_noise(counted).data_frame[column])
    return np.array(votes, dtype=np.float64)


class _StoredVectors:
    """Replaces an embedding: the vectors are stored already."""

    column_name = "vector"

    def compute_embedding(self, data: Any) -> Any:
        return data


def _frame(vectors: npt.NDArray[np.float32]) -> Any:
    import pandas as pd

    return pd.DataFrame({"vector": list(vectors)})


def _prepare_packages(checkout: Path) -> None:
    """Register the packages of the checkout without their own imports."""
    for name in _PACKAGES:
        if name not in sys.modules:
            module = sys.modules[name] = ModuleType(name)
            module.__path__ = [str(checkout.joinpath(*name.split(".")))]
    for package, module, name in (
        ("pe.data", "pe.data.data", "Data"),
        ("pe.dp", "pe.dp.dp", "DP"),
        ("pe.histogram", "pe.histogram.histogram", "Histogram"),
        ("pe.embedding", "pe.embedding.embedding", "Embedding"),
    ):
        setattr(sys.modules[package], name, getattr(import_module(module), name))


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write the table of the rows in a folder into a README."""
    rows, lines = Rows(out / "peers.jsonl"), []
    for epsilon in (1.0, 4.0):
        for method, name in METHODS.items():
            if runs := rows.select(method=method, epsilon=epsilon):
                sentences = "" if method in ("released", "tem") else number_of(runs, "sentences")
                lines.append([name, f"{epsilon:g}", number_of(runs, "words"), sentences])
    head = ["AG News, a document is protected", "epsilon", "TF-IDF", "MiniLM"]
    write_between(readme, START, END, table(head, lines))


if __name__ == "__main__":
    run_command(main)
