"""Utility of a corpus that was synthesized from one noisy release: see README.md.

Command: ``python -m papers.synthesis.experiment [--quick] [--data FOLDER] [--parts news reviews ...]``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.reports import parse_options, run_command
from papers.sweeps import sweep
from papers.synthesis import corpus
from papers.synthesis.corpus import NAMES, CachedSentences, Labels, Split, select, shuffled, unit_rows
from papers.synthesis.report import write_report
from papers.synthesis.votes import VoteSynthesizer

from dptext import Synthesizer, TextDistribution
from dptext.errors import extra
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.synthesizer import SynthesisPlan

DELTA = 1e-6
_TOKENS = {"news": 128, "reviews": 64}
_SAMPLE = 1000  # texts for measures of variety

Corpus = tuple[tuple[str, ...], Labels]


@dataclass(frozen=True)
class Bench:
    """The folder of the data sets, the maximum number of test texts, and whether there is a sentence model."""

    data: Path
    tested: int = 1_000_000
    sentences: bool = True

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        split = split_of(self, settings["data"], settings["pool"], seed)
        rows = split.first(settings["people"], settings["rarest"]) if settings["people"] else None
        method = settings["method"]
        if method == "released":  # the released distribution itself is the classifier
            scores = self._distribution(settings, split, rows, seed).weigh(split.test).scores
            accuracy = float((scores.argmax(axis=1) == split.test_labels).mean())
            return {"words": accuracy, "sentences": accuracy, "spread": 0.0, "distinct words": 0.0, "right": 0.0}
        if method == "real":
            texts, labels = split.texts, split.labels
            if rows is not None:
                texts, labels = select(texts, rows), labels[rows]
            return self.evaluate(settings, split, texts, labels)
        return self.evaluate(settings, split, *self._make(settings, split, rows, seed))

    def _make(self, settings: Mapping[str, Any], split: Split, rows: Labels | None, seed: int) -> Corpus:
        method, n, classes = settings["method"], settings["n"], split.classes
        if method == "random labels":
            texts = select(split.pool, shuffled(len(split.pool), seed)[:n])
            return texts, shuffled(n, seed + 1000) % len(classes)
        if method == "names of labels":
            return self._nearest_to_names(settings["data"], split, n)
        if method == "votes":
            synthesizer = VoteSynthesizer(
                epsilon=settings["epsilon"],
                delta=DELTA,
                labels=list(classes),
                features=self._encoders(settings["data"], settings["features"]),
                unit=_unit(settings["data"]),
                candidates=min(2000, len(split.pool)),
                seed=seed,
            )
            texts, labels = synthesizer.make(split.documents(rows), split.pool, n)
        else:
            options = {"variety": settings["variety"], "shares": "released", "cache": False, "seed": seed}
            output = self._distribution(settings, split, rows, seed).sample(list(split.pool), n, **options).outputs
            texts, labels = output["texts"], output["columns"]["label"]
        return tuple(texts), np.array([classes.index(label) for label in labels])

    def _nearest_to_names(self, data: str, split: Split, n: int) -> Corpus:
        """Return the public texts nearest to the name of each label."""
        sentences, classes = _sentences(_TOKENS[data]), len(split.classes)
        cosines = unit_rows(sentences.encode(split.pool)) @ unit_rows(sentences.encode(NAMES[data])).T
        nearest = cosines.argmax(axis=1)
        chosen = []
        for index in range(classes):
            rows = np.flatnonzero(nearest == index)
            chosen.append(rows[np.argsort(-cosines[rows, index])][: n // classes])
        rows = np.concatenate(chosen)
        return select(split.pool, rows), nearest[rows]

    def _distribution(
        self, settings: Mapping[str, Any], split: Split, rows: Labels | None, seed: int
    ) -> TextDistribution:
        data, pool, features = settings["data"], settings["pool"], settings["features"]
        plan = _plan(self, data, pool, features, _pool_seed(data, seed))
        total = _total(self, data, pool, features, seed, None if rows is None else tuple(rows.tolist()))
        if settings["method"] == "nobody":
            total = np.zeros_like(total)
        maker = Synthesizer(epsilon=settings["epsilon"], delta=DELTA, labels=list(split.classes), unit=_unit(data))
        return maker.released(replace(plan, terms=maker.terms), total, RandomBits(seed))

    def evaluate(
        self, settings: Mapping[str, Any], split: Split, texts: tuple[str, ...], labels: Labels
    ) -> dict[str, float]:
        """Return the accuracy on real texts of classifiers trained on texts, and the variety of the texts."""
        test, test_labels = split.test[: self.tested], split.test_labels[: self.tested]
        result = {"words": tfidf_accuracy(texts, labels, test, test_labels), "sentences": 0.0, "spread": 0.0}
        sample = shuffled(len(texts), 0)[:_SAMPLE]
        if self.sentences and settings["data"] in _TOKENS:
            sentences = _sentences(_TOKENS[settings["data"]])
            vectors = sentences.encode(texts)
            result["sentences"] = _accuracy(vectors, labels, sentences.encode(test), test_labels, strength=10.0)
            cosines = unit_rows(vectors[sample]) @ unit_rows(vectors[sample]).T
            np.fill_diagonal(cosines, -1.0)
            result["spread"] = float(1 - cosines.max(axis=1).mean())
        result["distinct words"] = float(len({word for text in select(texts, sample) for word in text.lower().split()}))
        true = {} if split.truth is None else dict(zip(split.pool, split.truth.tolist(), strict=True))
        right = [true[text] == label for text, label in zip(texts, labels.tolist(), strict=True) if text in true]
        return result | {"right": float(np.mean(right)) if right else 0.0}

    def _encoders(self, data: str, features: str) -> list[Any]:
        names = {"both": ["sentences", "words"], "sentences": ["sentences"], "words": ["words"]}[features]
        return [_sentences(_TOKENS[data]) if name == "sentences" else name for name in names]


@cache
def _sentences(tokens: int) -> CachedSentences:
    return CachedSentences(tokens)


@cache
def split_of(bench: Bench, data: str, pool: str, seed: int) -> Split:
    if data == "news":
        return corpus.news(bench.data, seed, pool)
    if data == "reviews":
        return corpus.imdb(bench.data, seed, pool)
    return corpus.blogs(bench.data, seed, data.removeprefix("blogs, "))


def _pool_seed(data: str, seed: int) -> int:
    """Return 0 for the news, whose pool is the same for every seed."""
    return 0 if data == "news" else seed


@cache
def _plan(bench: Bench, data: str, pool: str, features: str, seed: int) -> SynthesisPlan:
    split = split_of(bench, data, pool, seed)
    options: dict[str, Any] = {"labels": list(split.classes), "unit": _unit(data), "cache": False}
    maker = Synthesizer(epsilon=1.0, delta=DELTA, features=bench._encoders(data, features), **options)
    return maker.plan(list(split.pool))


@cache
def _total(
    bench: Bench, data: str, pool: str, features: str, seed: int, rows: tuple[int, ...] | None
) -> npt.NDArray[np.int64]:
    """Return the exact private sum, which is the same for every epsilon."""
    documents = split_of(bench, data, pool, seed).documents(None if rows is None else np.array(rows))
    return _plan(bench, data, pool, features, _pool_seed(data, seed)).total_of(documents)


def _unit(data: str) -> str:
    return "user" if data.startswith("blogs") else "document"


def tfidf_accuracy(texts: tuple[str, ...], labels: Labels, test: tuple[str, ...], test_labels: Labels) -> float:
    """Return the accuracy of logistic regression on TF-IDF of words and pairs of words."""
    text = extra("sklearn.feature_extraction.text", "sklearn", "TF-IDF")
    encoder = text.TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    return _accuracy(encoder.fit_transform(texts), labels, encoder.transform(test), test_labels)


def _accuracy(vectors: Any, labels: Labels, test: Any, test_labels: Labels, *, strength: float = 1.0) -> float:
    if len(np.unique(labels)) < 2:
        return float((test_labels == labels[0]).mean())
    models = extra("sklearn.linear_model", "sklearn", "logistic regression")
    model = models.LogisticRegression(C=strength, max_iter=1000, tol=1e-6).fit(vectors, labels)
    return float((model.predict(test) == test_labels).mean())


HERE = Path(__file__).resolve().parent
PARTS = ("news", "reviews", "blogs, age", "blogs, gender", "blogs, topic")
_VARIETIES = (0.0, 0.25, 0.75, 1.0)
_PEOPLE = {"news": (500, 1000, 2000, 10_000), "reviews": (500, 1000, 2000)}
_POOLS = {"news": ("no news", "restaurants"), "reviews": ("no reviews of films",)}
_USUAL: dict[str, Any] = {"pool": "", "epsilon": 1.0, "people": 0, "rarest": None, "n": 3000, "variety": 0.5}


def main(arguments: Sequence[str] | None = None) -> None:
    description = "Synthetic corpora from one noisy release: their utility."
    options = parse_options(description, HERE, arguments, parts=PARTS)
    if not options.report:
        has_model = not options.quick or find_spec("sentence_transformers") is not None
        bench = Bench(options.data, 1000 if options.quick else 1_000_000, has_model)
        for part in options.parts:
            if not options.quick or part != "blogs, topic":  # the topic model takes a minute
                path = options.out / f"{part.replace(', ', '-')}.jsonl"
                settings, seeds = list(settings_of(part, quick=options.quick)), range(1, 3 if options.quick else 6)
                sweep(bench.cell, settings, seeds, path=path, name=f"synthesis {part}")
    write_report(options.out, readme=options.readme)


def settings_of(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    if part.startswith("blogs"):
        yield from _blogs(part, quick=quick)
        return
    features = "words" if quick and find_spec("sentence_transformers") is None else "both"
    usual = _USUAL | {"data": part, "pool": part, "people": 5000, "features": features, "method": "described"}
    usual["n"] = {"news": 4000, "reviews": 3000}[part]
    if quick:
        usual |= {"people": 1000, "n": 600}
    for method in ("described", "real", "random labels"):
        yield usual | {"method": method}
    if quick:
        yield usual | {"epsilon": 8.0}
        return
    yield from (usual | {"epsilon": epsilon} for epsilon in (4.0, 0.25, 8.0, 0.5, 2.0))
    yield from (usual | {"method": method} for method in ("released", "names of labels", "nobody"))
    yield from (usual | {"variety": variety} for variety in _VARIETIES)
    yield from (usual | {"features": other} for other in ("words", "sentences"))
    yield from (usual | {"people": people} for people in _PEOPLE[part])
    yield usual | {"people": 3500, "rarest": 100}
    yield from (usual | {"method": "votes", "features": "sentences", "epsilon": epsilon} for epsilon in (1.0, 4.0))
    yield from (usual | {"pool": pool} for pool in _POOLS[part])


def _blogs(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    n = {(False, False): 3000, (True, False): 500, (False, True): 250, (True, True): 100}[quick, part == PARTS[-1]]
    usual = _USUAL | {"data": part, "features": "words", "method": "described", "n": n}
    for method in ("described", "real", "random labels"):
        yield usual | {"method": method}
    if quick:
        return
    epsilons = (4.0, 0.5, 8.0, 2.0, 0.25) if part == "blogs, age" else (4.0, 8.0)
    yield from (usual | {"epsilon": epsilon} for epsilon in epsilons)
    yield from (usual | {"method": method} for method in ("released", "nobody"))
    if part == "blogs, age":
        yield from (usual | {"variety": variety} for variety in _VARIETIES)


if __name__ == "__main__":
    run_command(main)
