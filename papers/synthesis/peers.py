"""The same private documents and pool in one run: a description, Private Evolution's votes by its authors' own code,
words by TEM under the same epsilon for a document, and no text at all.

Command: ``python -m papers.synthesis.peers --pe DPSDA [--data ../shared/data]``; DPSDA is a clone of
https://github.com/microsoft/DPSDA. Every cell is a line of ``results/peers.jsonl``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from papers.reports import number_of, parse_options, write_between
from papers.sweeps import Row, read_sweep, sweep
from papers.synthesis import corpus
from papers.synthesis.cells import DELTA, Bench, _rows, _split
from papers.synthesis.private_evolution import noisy_votes

import dptext

HERE = Path(__file__).resolve().parent
START, END = "<!-- peers: written by papers.synthesis.peers -->", "<!-- end of the peers -->"
CANDIDATES = 2000
WORDS = 32  # of a document, that TEM's budget covers
METHODS = {
    "described": "synthetic texts, by the description (`Synthesizer`)",
    "released": "no text: the description itself as a classifier",
    "votes": "votes of the same epsilon (`VoteSynthesizer`)",
    "pe": "votes counted by Private Evolution's own code (best setting: .62 / .81 at 1, .65 / .85 at 4)",
    "tem": "the private texts word by word (TEM; labels as they are)",
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A description beside its peers, on the same documents and pool.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--pe", type=Path, default=None, help="a clone of microsoft/DPSDA")
    parser.add_argument("--work", type=Path, default=None, help="folder of kept vectors; results/work unless named")
    parser.add_argument("--quick", action="store_true", help="one seed")
    options = parse_options(parser, arguments, HERE)
    options.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.data, options.work or options.out / "work")
    bench.work.mkdir(parents=True, exist_ok=True)

    def cell(settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        return _cell(bench, options.pe, settings, seed)

    sweep(
        cell,
        list(_settings(with_pe=options.pe is not None)),
        range(1, 2 if options.quick else 6),
        path=options.out / "peers.jsonl",
        name="synthesis peers",
    )
    write_report(options.out, readme=options.readme)


def write_report(out: Path, *, readme: Path | None) -> None:
    """The table of the rows in a folder, between the marks of a README."""
    write_between(readme, START, END, _table(read_sweep(out / "peers.jsonl").rows))


def _settings(*, with_pe: bool) -> Iterator[dict[str, Any]]:
    usual = {"data": "news", "pool": "news", "people": 5000, "rarest": None, "n": 4000, "variety": 0.5}
    for epsilon in (1.0, 4.0):
        for method in METHODS:
            if method != "pe" or with_pe:
                yield usual | {"method": method, "epsilon": epsilon, "features": "both"}


def _cell(bench: Bench, checkout: Path | None, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
    method = settings["method"]
    if method not in ("pe", "tem"):
        return bench.cell(settings | ({"features": "sentences"} if method == "votes" else {}), seed)
    split = _split(bench, settings["data"], settings["pool"], seed)
    chosen = split.first(settings["people"], settings["rarest"])
    texts, labels = _rows(split.texts, chosen), split.labels[chosen]
    if method == "tem":
        vectors = dptext.load_vectors("glove-6b-50d", limit=50_000)
        mechanism = dptext.TEM(vectors, epsilon=5.0, document_epsilon=settings["epsilon"], max_words=WORDS)
        output = dptext.privatize(texts, mechanism, seed=seed).texts
        quick = replace(bench, sentences=False)  # a sentence model has nothing to say of random words
        return quick._learned(settings, split, tuple(str(entry) for entry in output), labels)
    assert checkout is not None
    sentences = bench._sentences(settings["data"])
    candidates = _rows(split.pool, corpus.shuffled(len(split.pool), seed)[:CANDIDATES])
    np.random.seed(seed)  # noqa: TID251  # its noise is numpy's, from the global generator
    votes = noisy_votes(
        checkout,
        sentences.encode(texts),
        labels,
        sentences.encode(candidates),
        len(split.classes),
        epsilon=settings["epsilon"],
        delta=DELTA,
    )
    kept = min(settings["n"], CANDIDATES) // len(split.classes)  # those with the most votes, as its selection by rank
    rows = np.concatenate([np.argsort(-vote, kind="stable")[:kept] for vote in votes])
    return bench._learned(settings, split, _rows(candidates, rows), np.repeat(np.arange(len(votes)), kept))


def _table(rows: Sequence[Row]) -> str:
    lines = ["| AG News, a document is protected | epsilon | TF-IDF | MiniLM |", "|---|---:|---:|---:|"]
    for epsilon in (1.0, 4.0):
        for method, name in METHODS.items():
            runs = [row for row in rows if (row.settings["method"], row.settings["epsilon"]) == (method, epsilon)]
            if runs:
                sentences = "" if method in ("released", "tem") else number_of(runs, "sentences")
                lines.append(f"| {name} | {epsilon:g} | {number_of(runs, 'words')} | {sentences} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
