"""One cell: a corpus made in one way, what a classifier trained on it reaches on real texts, and how varied it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.synthesis import corpus
from papers.synthesis.corpus import NAMES, Split
from papers.synthesis.kept import KeptSentences
from papers.synthesis.votes import VoteSynthesizer

from dptext import Synthesizer, TextDistribution
from dptext.errors import extra
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.synthesizer import SynthesisPlan

DELTA = 1e-6
Labels = npt.NDArray[np.intp]
_TOKENS = {"news": 128, "reviews": 64}
_COMPARED = 1000  # texts that spread is measured on


@dataclass(frozen=True)
class Bench:
    """Where data and kept vectors are, and how much is used.

    Attributes:
        data: the folder of the data sets.
        work: the folder of what is kept between runs; git ignores it.
        tested: at most so many test texts.
        sentences: whether there is a sentence model to learn with.
    """

    data: Path
    work: Path
    tested: int = 1_000_000
    sentences: bool = True

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """The numbers of one setting and seed."""
        split = _split(self, settings["data"], settings["pool"], seed)
        chosen = split.first(settings["people"], settings["rarest"]) if settings["people"] else None
        method, n = settings["method"], settings["n"]
        if method == "real":
            return self._learned(settings, split, split.texts, split.labels, chosen)
        if method == "released":
            return self._without_text(settings, split, chosen, seed)
        texts, labels = self._made(settings, split, chosen, n, seed)
        return self._learned(settings, split, texts, labels)

    def _made(
        self, settings: Mapping[str, Any], split: Split, chosen: Labels | None, n: int, seed: int
    ) -> tuple[tuple[str, ...], Labels]:
        """Texts and labels made in one of the ways that are compared."""
        method, classes = settings["method"], len(split.classes)
        if method == "random labels":
            rows = corpus.shuffled(len(split.pool), seed)[:n]
            return _rows(split.pool, rows), corpus.shuffled(n, seed + 1000) % classes
        if method == "names of labels":
            sentences = self._sentences(settings["data"])
            names = sentences.encode(NAMES[settings["data"]])
            closeness = _normal(sentences.encode(split.pool)) @ _normal(names).T
            best, taken = closeness.argmax(axis=1), []
            for index in range(classes):
                own = np.flatnonzero(best == index)
                taken.append(own[np.argsort(-closeness[own, index])][: n // classes])
            rows = np.concatenate(taken)
            return _rows(split.pool, rows), best[rows]
        if method == "votes":
            voting = VoteSynthesizer(
                epsilon=settings["epsilon"],
                delta=DELTA,
                labels=list(split.classes),
                features=self._spec(settings),
                unit=_unit(settings),
                candidates=min(2000, len(split.pool)),
                cache=self.work / "pools",
                seed=seed,
            )
            output = voting.fit(split.documents(chosen), public=list(split.pool), n=n).outputs
            return tuple(output["texts"]), np.array(
                [split.classes.index(entry) for entry in output["columns"]["label"]]
            )
        distribution = self._described(settings, split, chosen, seed)
        output = distribution.sample(
            list(split.pool), n, variety=settings["variety"], shares="released", cache=self.work / "pools", seed=seed
        ).outputs
        return tuple(output["texts"]), np.array([split.classes.index(entry) for entry in output["columns"]["label"]])

    def _described(
        self, settings: Mapping[str, Any], split: Split, chosen: Labels | None, seed: int
    ) -> TextDistribution:
        plan = _plan(self, settings["data"], settings["pool"], settings["features"], _own(settings["data"], seed))
        rows = tuple(chosen.tolist()) if chosen is not None else None
        total = _total(self, settings["data"], settings["pool"], settings["features"], seed, rows)
        if settings["method"] == "nobody":
            total = np.zeros_like(total)
        maker = Synthesizer(epsilon=settings["epsilon"], delta=DELTA, labels=list(split.classes), unit=_unit(settings))
        return maker.released(replace(plan, terms=maker.terms), total, RandomBits(seed))

    def _without_text(
        self, settings: Mapping[str, Any], split: Split, chosen: Labels | None, seed: int
    ) -> dict[str, float]:
        """The released description itself as a classifier."""
        distribution = self._described(settings, split, chosen, seed)
        scores = distribution.weigh(split.test).scores
        result = float((scores.argmax(axis=1) == split.test_labels).mean())
        return {"words": result, "sentences": result, "spread": 0.0, "distinct words": 0.0, "right": 0.0}

    def _learned(
        self,
        settings: Mapping[str, Any],
        split: Split,
        texts: tuple[str, ...],
        labels: Labels,
        chosen: Labels | None = None,
    ) -> dict[str, float]:
        """What classifiers that learn from texts reach on real ones, and how varied the texts are."""
        if chosen is not None:
            texts, labels = _rows(texts, chosen), labels[chosen]
        test, truth = split.test[: self.tested], split.test_labels[: self.tested]
        result = {"words": _words(texts, labels, test, truth)}
        some = corpus.shuffled(len(texts), 0)[:_COMPARED]
        if self.sentences and settings["data"] in _TOKENS:
            sentences = self._sentences(settings["data"])
            vectors = sentences.encode(texts)
            result["sentences"] = _linear(vectors, labels, sentences.encode(test), truth, strength=10.0)
            close = _normal(vectors[some]) @ _normal(vectors[some]).T
            np.fill_diagonal(close, -1.0)
            result["spread"] = float(1 - close.max(axis=1).mean())
        else:
            result |= {"sentences": 0.0, "spread": 0.0}
        result["distinct words"] = float(len({word for row in some.tolist() for word in texts[row].lower().split()}))
        right = {} if split.truth is None else dict(zip(split.pool, split.truth.tolist(), strict=True))
        known = [right[text] == label for text, label in zip(texts, labels.tolist(), strict=True) if text in right]
        result["right"] = float(np.mean(known)) if known else 0.0
        return result

    def _sentences(self, data: str) -> KeptSentences:
        return _sentences(self.work, _TOKENS[data])

    def _spec(self, settings: Mapping[str, Any]) -> list[Any]:
        parts = {"both": ["sentences", "words"], "sentences": ["sentences"], "words": ["words"]}[settings["features"]]
        return [self._sentences(settings["data"]) if part == "sentences" else part for part in parts]


# -- what several cells share ----------------------------------------------------------------------------------


@cache
def _sentences(work: Path, tokens: int) -> KeptSentences:
    return KeptSentences(work, tokens=tokens)


@cache
def _split(bench: Bench, data: str, pool: str, seed: int) -> Split:
    if data == "news":
        return corpus.news(bench.data, seed, pool)
    if data == "reviews":
        return corpus.imdb(bench.data, seed, pool)
    return corpus.blogs(bench.data, seed, data.removeprefix("blogs, "))


def _own(data: str, seed: int) -> int:
    """The pool of the news is the same for every seed."""
    return 0 if data == "news" else seed


@cache
def _plan(bench: Bench, data: str, pool: str, features: str, seed: int) -> SynthesisPlan:
    split = _split(bench, data, pool, seed)
    maker = Synthesizer(
        epsilon=1.0,
        delta=DELTA,
        labels=list(split.classes),
        features=bench._spec({"data": data, "features": features}),
        unit=_unit({"data": data}),
        cache=bench.work / "pools",
    )
    return maker.plan(list(split.pool))


@cache
def _total(
    bench: Bench, data: str, pool: str, features: str, seed: int, rows: tuple[int, ...] | None
) -> npt.NDArray[np.int64]:
    """The exact sum: private, and kept for the noise of every epsilon."""
    split = _split(bench, data, pool, seed)
    plan = _plan(bench, data, pool, features, _own(data, seed))
    documents = split.documents(None if rows is None else np.array(rows))
    return plan.total_of(documents)


def _unit(settings: Mapping[str, Any]) -> str:
    return "user" if settings["data"].startswith("blogs") else "document"


def _rows(texts: tuple[str, ...], rows: Labels) -> tuple[str, ...]:
    return tuple(texts[row] for row in rows.tolist())


def _normal(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _words(texts: tuple[str, ...], labels: Labels, test: tuple[str, ...], truth: Labels) -> float:
    """TF-IDF over words and pairs of words, logistic regression."""
    text = extra("sklearn.feature_extraction.text", "sklearn", "TF-IDF")
    encoder = text.TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    return _linear(encoder.fit_transform(texts), labels, encoder.transform(test), truth)


def _linear(vectors: Any, labels: Labels, test: Any, truth: Labels, *, strength: float = 1.0) -> float:
    if len(np.unique(labels)) < 2:
        return float((truth == labels[0]).mean())
    models = extra("sklearn.linear_model", "sklearn", "logistic regression")
    model = models.LogisticRegression(C=strength, max_iter=1000, tol=1e-6).fit(vectors, labels)
    return float((model.predict(test) == truth).mean())
