"""Tables 1 and 2 and figure 3 of the paper: its protocols, classifier and data, with true epsilons.

Command: ``python -m papers.ome.experiment [--data FOLDER] [--sets IMDb Amazon Yelp] [--quick] [--report]``, or
``--data FILE`` for both tables on own texts. The three sets of sentences take minutes, the others hours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import Posts
from papers.data_sets import mrpc, own_texts, sentiment_labelled, snips
from papers.ome.accuracy import encode_sets
from papers.ome.perceptron import Perceptron
from papers.ome.printed_report import PROVED, PUBLISHED, SETS, Results, Sent, channel_of, proved_table, write_report
from papers.ome.settings import Projection, encode, principal, split_rows
from papers.printed import ome_tables, print_own
from papers.reports import parse_options, run_command
from papers.sweeps import sweep

from dptext import load_vectors
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.encoders import MeanOfWords

HERE = Path(__file__).resolve().parent
SENTIMENT = ("IMDb", "Amazon", "Yelp")
RUNS = dict.fromkeys(SENTIMENT, 20) | {"Intent": 5, "MRPC": 5}
HIDDEN = dict.fromkeys(SENTIMENT, 128) | {"Intent": 768, "MRPC": 768}

Floats = npt.NDArray[np.float64]
Settings = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Encoded:
    """A set as vectors; ``public`` are vectors of other people's texts, for a centre and axes."""

    vectors: Floats
    labels: npt.NDArray[np.intp]
    train_rows: int | None
    public: Floats

    def split(self, run: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return (training, test) rows: the set's own, or 8:2."""
        if self.train_rows is None:
            return split_rows(len(self.labels), run)
        rows = np.arange(len(self.labels))
        return rows[: self.train_rows], rows[self.train_rows :]


class Experiment:
    """All sets of a folder, or the user's own, each encoded once; ``epochs`` are those of the perceptron."""

    def __init__(self, data: Path, *, epochs: int = 50, posts: Posts | None = None) -> None:
        self._data, self._epochs, self._posts = data, epochs, posts

    def cell(self, settings: Settings, seed: int) -> dict[str, float]:
        """Return the accuracy on received vectors, and without noise at use."""
        encoded = self.encoded(settings["set"])
        train, test = encoded.split(seed)
        sent = self.send(settings, seed)
        server = self._server(settings["set"], sent, seed)
        server.fit(sent.noisy[train], encoded.labels[train])
        majority = np.bincount(encoded.labels[train]).argmax()
        return {
            "accuracy": float(server.score(sent.noisy[test], encoded.labels[test])),
            "accuracy without noise at use": float(server.score(sent.clean[test], encoded.labels[test])),
            "majority": float((encoded.labels[test] == majority).mean()),
            "dimension": float(sent.dimension),
            "width": float(sent.noisy.shape[1]),
        }

    def send(self, settings: Settings, seed: int) -> Sent:
        mechanism, epsilon, vectors = settings["mechanism"], settings["epsilon"], self.encoded(settings["set"]).vectors
        bits = RandomBits(int.from_bytes(hashlib.sha256(repr((sorted(settings.items()), seed)).encode()).digest()[:6]))
        if mechanism in PROVED:
            dimension = min(vectors.shape[1], max(1, round(PROVED[mechanism] * epsilon)))
            mapped = self._axes(settings["set"], dimension)(vectors)
            channel = channel_of(mechanism, epsilon, dimension)
            if channel.domain is Domain.CUBE:  # from length 1 to coordinates of about a third
                mapped = mapped * np.sqrt(dimension) / 3
            return Sent(channel.sample(mapped, bits).astype(np.float64), mapped, channel, dimension)
        dimension = vectors.shape[1]
        if mechanism == "none":
            return Sent(vectors, vectors, None, dimension)
        protocol = "OME" if mechanism == "unflipped bits" else mechanism
        channel = channel_of(protocol, epsilon or 1.0, dimension, lambda_=settings["lambda"])
        clean = channel.code_of(vectors).astype(np.uint8)
        if mechanism == "unflipped bits":
            return Sent(clean, clean, None, dimension)
        return Sent(channel.sample(vectors, bits).astype(np.uint8), clean, None, dimension)

    def _server(self, name: str, sent: Sent, seed: int) -> NoisyClassifier | Perceptron:
        """Return the paper's perceptron (all epochs, no early stopping) for its protocols, a linear model for ours."""
        if sent.channel is not None:
            return NoisyClassifier(channel=sent.channel)
        return Perceptron(HIDDEN.get(name, 128), self._epochs, seed)

    @cache  # noqa: B019  lives as long as the run
    def _axes(self, name: str, dimension: int) -> Projection:
        return principal(self.encoded(name).public, dimension)

    @cache  # noqa: B019
    def encoded(self, name: str) -> Encoded:
        """Return a set by name."""
        if self._posts is not None:
            vectors = encode("glove", self._posts.texts)
            public = MeanOfWords(load_vectors("glove-6b-50d")).public_sample().astype(np.float64)
            labels = np.unique(self._posts.labels, return_inverse=True)[1].astype(np.intp)
            return Encoded(z_scores(vectors), labels, None, z_scores(public))
        if name in SENTIMENT:
            sets = sentiment_labelled(self._data)
            vectors = encode_sets("glove", sets)
            public = np.concatenate([entry for other, entry in vectors.items() if other != name])
            return Encoded(z_scores(vectors[name]), sets[name].labels, None, z_scores(public))
        sentences = tuple(text for entry in sentiment_labelled(self._data).values() for text in entry.texts)
        public = encode("minilm", sentences)
        parts = snips(self._data) if name == "Intent" else mrpc(self._data)
        labels = np.concatenate([parts.train.labels, parts.test.labels])
        first = encode("minilm", parts.train.texts + parts.test.texts)
        if parts.others is None:
            return Encoded(z_scores(first), labels, len(parts.train.labels), z_scores(public))
        second = encode("minilm", parts.others[0].texts + parts.others[1].texts)
        vectors = pair_vectors(first, second)
        return Encoded(vectors, labels, len(parts.train.labels), pair_vectors(public[:-1], public[1:]))


def z_scores(vectors: Floats) -> Floats:
    """Subtract each vector's own mean and divide by its standard deviation, as the paper does; zeros stay zeros."""
    spread = vectors.std(axis=1, keepdims=True)
    return (vectors - vectors.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)


def pair_vectors(first: Floats, second: Floats) -> Floats:
    """Return (u, v, |u - v|, u v), each with its z-scores; one device encodes both, so the unit is the pair."""
    parts = (first, second, np.abs(first - second), first * second)
    return np.concatenate([z_scores(part) for part in parts], axis=1)


def settings_of(name: str, *, quick: bool) -> Iterator[Settings]:
    """Yield the settings of a set; the user's own texts have all rows of both tables."""
    is_own = name not in SETS

    def settings(mechanism: str, epsilon: float | None = None, lambda_: float | None = None) -> Settings:
        return {"set": name, "mechanism": mechanism, "epsilon": epsilon, "lambda": lambda_}

    yield settings("none")
    for mechanism in PROVED:
        for epsilon in (16.0,) if quick else (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0):
            yield settings(mechanism, epsilon)
    yield from (settings("OME", 1.0, 100.0), settings("unflipped bits"))
    if name in SENTIMENT or is_own:
        yield from (settings(mechanism, 1.0) for mechanism in PUBLISHED if mechanism != "OME")
    if not quick or is_own:
        yield from (settings("OME", 1.0, lambda_) for lambda_ in (1.0, 10.0, 50.0))
        yield from (settings("OME", epsilon, 100.0) for epsilon in (0.5, 5.0, 10.0))


def main(arguments: Sequence[str] | None = None) -> None:
    description = "Tables 1 and 2 and figure 3 of the paper."
    sets_option = {"nargs": "+", "choices": SETS, "default": SETS}
    options = parse_options(description, HERE, arguments, takes_file=True, sets=sets_option)
    sets = [options.own] if options.own else ["IMDb"] if options.quick else options.sets
    if not options.report:
        epochs = 5 if options.quick and not options.own else 50
        posts = own_texts(options, rows=1_000 if options.quick else 20_000) if options.own else None
        experiment = Experiment(options.data, epochs=epochs, posts=posts)
        for name in sets:
            for run in range(
                (3 if options.own else 2) if options.quick else RUNS.get(name, 5)
            ):  # every setting once before any is run again
                sweep(
                    experiment.cell,
                    list(settings_of(name, quick=options.quick)),
                    range(run + 1),
                    path=options.out / f"printed-{name.lower()}.jsonl",
                    name="ome printed",
                    constants={"epochs": epochs},
                )
    write_report(options.out, readme=options.readme, sets=sets if options.own else SETS)
    if options.own:
        results = Results(options.out, sets)
        print_own(options, [*ome_tables(results, sets, sets), proved_table(results)])


if __name__ == "__main__":
    run_command(main)
