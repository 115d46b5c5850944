"""Tables 1 and 2 and figure 3 of the paper again: its protocols, its classifier, its data; true epsilons beside.

python -m papers.ome.printed                            # from the repository's root; what is done is not done again
python -m papers.ome.printed --sets IMDb Amazon Yelp    # those of them that take minutes, not hours
python -m papers.ome.printed --report                   # tables and figures from the rows that are there
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import data_folder, mrpc, sentiment_labelled, snips
from papers.ome.mechanisms import OURS, PUBLISHED, Sent, channel_of
from papers.ome.perceptron import BitPerceptron
from papers.ome.printed_report import write_report
from papers.ome.projections import Projection, principal
from papers.ome.settings import split
from papers.ome.vectors import encode
from papers.sweeps import sweep

from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.networks import TrainingOptions

HERE = Path(__file__).resolve().parent
SENTIMENT = ("IMDb", "Amazon", "Yelp")
SETS = (*SENTIMENT, "Intent", "MRPC")
RUNS = dict.fromkeys(SENTIMENT, 20) | {"Intent": 5, "MRPC": 5}
HIDDEN = dict.fromkeys(SENTIMENT, 128) | {"Intent": 768, "MRPC": 768}

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
Settings = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Given:
    """A set as vectors; ``public``: vectors of other people's texts, for a centre and axes."""

    vectors: Floats
    labels: Labels
    train_rows: int | None
    public: Floats

    def parts(self, run: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """(training, test) rows: the set's own, or 8:2."""
        if self.train_rows is None:
            return split(len(self.labels), run)
        rows = np.arange(len(self.labels))
        return rows[: self.train_rows], rows[self.train_rows :]


class Experiment:
    """All sets, each encoded once.

    Args:
        data: folder of the sets.
        cache: for encoded vectors.
        epochs: of the perceptron.
    """

    def __init__(self, data: Path, cache: Path, *, epochs: int = 50) -> None:
        self._data, self._cache, self._epochs = data, cache, epochs

    @cache  # noqa: B019  lives as long as the run
    def given(self, name: str) -> Given:
        """A set by name."""
        if name in SENTIMENT:
            return self._sentiment(name)
        return self._intent() if name == "Intent" else self._paraphrase()

    def cell(self, settings: Settings, seed: int) -> dict[str, float]:
        """One run: accuracy on what arrives, and on what has not been flipped."""
        values = self.given(settings["set"])
        train, test = values.parts(seed)
        sent = self._sent(settings, values, seed)
        server = self._server(settings, sent, seed)
        server.fit(sent.noisy[train], values.labels[train])
        majority = np.bincount(values.labels[train]).argmax()
        return {
            "accuracy": float(server.score(sent.noisy[test], values.labels[test])),
            "accuracy without noise at use": float(server.score(sent.clean[test], values.labels[test])),
            "majority": float((values.labels[test] == majority).mean()),
            "dimension": float(sent.dimension),
            "width": float(sent.noisy.shape[1]),
        }

    def _sent(self, settings: Settings, given: Given, seed: int) -> Sent:
        """What the server gets, and what it would get without noise."""
        mechanism, epsilon = settings["mechanism"], settings["epsilon"]
        bits = RandomBits(int.from_bytes(hashlib.sha256(repr((sorted(settings.items()), seed)).encode()).digest()[:6]))
        if mechanism in OURS:
            dimension = min(given.vectors.shape[1], max(1, round(OURS[mechanism] * epsilon)))
            mapped = _axes(self, settings["set"], dimension)(given.vectors)
            channel = channel_of(mechanism, epsilon, dimension)
            if channel.domain is Domain.CUBE:  # from length 1 to coordinates of about a third
                mapped = mapped * np.sqrt(dimension) / 3
            return Sent(channel.sample(mapped, bits).astype(np.float64), mapped, channel, dimension)
        dimension = given.vectors.shape[1]
        if mechanism == "none":
            return Sent(given.vectors, given.vectors, None, dimension)
        channel = channel_of(
            "OME" if mechanism == "unflipped bits" else mechanism, epsilon or 1.0, dimension, lambda_=settings["lambda"]
        )
        clean = channel.code_of(given.vectors).astype(np.uint8)
        if mechanism == "unflipped bits":
            return Sent(clean, clean, None, dimension)
        return Sent(channel.sample(given.vectors, bits).astype(np.uint8), clean, None, dimension)

    def _server(self, settings: Settings, sent: Sent, seed: int) -> NoisyClassifier | BitPerceptron:
        """The paper's perceptron (all epochs, no early stopping) for its protocols, ours for ours."""
        if sent.channel is not None:
            return NoisyClassifier(channel=sent.channel)
        options = TrainingOptions(hidden=HIDDEN[settings["set"]], epochs=self._epochs, validation_fraction=0.0)
        if sent.noisy.dtype == np.uint8:
            return BitPerceptron(options, seed)
        return NoisyClassifier("mlp", **asdict(options), seed=seed)

    # -- the sets ----------------------------------------------------------------------------------------------

    def _sentiment(self, name: str) -> Given:
        sets = sentiment_labelled(self._data)
        texts = [text for entry in sets.values() for text in entry.texts]
        parts = np.split(
            encode("glove", texts, self._cache), np.cumsum([len(entry.texts) for entry in sets.values()])[:-1]
        )
        known = dict(zip(sets, parts, strict=True))
        public = np.concatenate([entry for other, entry in known.items() if other != name])
        return Given(z_scores(known[name]), sets[name].labels, None, z_scores(public))

    def _minilm(self, texts: tuple[str, ...], of: str) -> Floats:
        return encode("minilm", texts, self._cache, of)

    def _public_sentences(self) -> Floats:
        return self._minilm(
            tuple(t for entry in sentiment_labelled(self._data).values() for t in entry.texts), "sentiment"
        )

    def _intent(self) -> Given:
        parts = snips(self._data)
        vectors = self._minilm(parts.train.texts + parts.test.texts, "intent")
        labels = np.concatenate([parts.train.labels, parts.test.labels])
        return Given(z_scores(vectors), labels, len(parts.train.labels), z_scores(self._public_sentences()))

    def _paraphrase(self) -> Given:
        parts = mrpc(self._data)
        assert parts.others is not None
        first = self._minilm(parts.train.texts + parts.test.texts, "paraphrase-first")
        second = self._minilm(parts.others[0].texts + parts.others[1].texts, "paraphrase-second")
        public = self._public_sentences()
        labels = np.concatenate([parts.train.labels, parts.test.labels])
        return Given(of_pairs(first, second), labels, len(parts.train.labels), of_pairs(public[:-1], public[1:]))


@cache
def _axes(experiment: Experiment, name: str, dimension: int) -> Projection:
    return principal(experiment.given(name).public, dimension)


def z_scores(vectors: Floats) -> Floats:
    """Each vector less its own mean, over its own standard deviation, as the paper does; zeros stay zeros."""
    spread = vectors.std(axis=1, keepdims=True)
    return (vectors - vectors.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)


def of_pairs(first: Floats, second: Floats) -> Floats:
    """(u, v, |u - v|, u v), encoded on one device: the unit is the pair. Each part has its z-scores."""
    return np.concatenate([z_scores(ab) for ab in (first, second, np.abs(first - second), first * second)], axis=1)


def settings_of(name: str, *, quick: bool) -> Iterator[Settings]:
    """What is measured on a set, what matters most first: the whole of it takes hours on the large sets."""

    def one(mechanism: str, epsilon: float | None = None, lambda_: float | None = None) -> Settings:
        return {"set": name, "mechanism": mechanism, "epsilon": epsilon, "lambda": lambda_}

    yield one("none")
    for mechanism in OURS:
        for epsilon in (16.0,) if quick else (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0):
            yield one(mechanism, epsilon)
    yield from (one("OME", 1.0, 100.0), one("unflipped bits"))
    if name in SENTIMENT:
        yield from (one(mechanism, 1.0) for mechanism in PUBLISHED if mechanism != "OME")
    if not quick:
        yield from (one("OME", 1.0, lambda_) for lambda_ in (1.0, 10.0, 50.0))
        yield from (one("OME", epsilon, 100.0) for epsilon in (0.5, 5.0, 10.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", help="folder of sentiment_labelled/, snips/, mrpc/ (default: ../shared/data)")
    parser.add_argument("--out", type=Path, help="where rows, tables and figures go")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "dptext-papers", help="for vectors")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--runs", type=int, help="fewer runs than 20 (sentiment) or 5")
    parser.add_argument("--quick", action="store_true", help="one set, two runs, few epochs: does it run?")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    out = options.out or (HERE / "quick" if options.quick else HERE / "results")
    out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        epochs = 5 if options.quick else 50
        experiment = Experiment(data_folder(options.data), options.cache, epochs=epochs)
        for name in ("IMDb",) if options.quick else options.sets:
            runs = 2 if options.quick else min(RUNS[name], options.runs or RUNS[name])
            for done in range(runs):  # every setting once before any is run again
                sweep(
                    experiment.cell,
                    list(settings_of(name, quick=options.quick)),
                    range(done + 1),
                    path=out / f"printed-{name.lower()}.jsonl",
                    name="ome printed",
                    constants={"epochs": epochs},
                )
    write_report(out, readme=None if options.quick or options.out else HERE / "README.md")


if __name__ == "__main__":
    main()
