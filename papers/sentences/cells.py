"""One cell: private texts replaced by one method, and the utility for readers and classifiers, and relinking."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.sentences.corpus import MAX_WORDS, Split, questions, split_of
from papers.synthesis.corpus import shuffled
from papers.synthesis.encoders import CachedSentences, unit_rows

from dptext import TEM, BankRewriter, Madlib, PrivUnit, SubsetSelection, TextBank, load_vectors
from dptext.errors import extra
from dptext.privacy.randomness import RandomBits
from dptext.release.mechanism import Rewriter

WORDS = ("TEM", "words", "Madlib")
"""Word mechanisms; "words" is subset selection on words."""
QUESTION_EPSILONS = (4.0, 8.0, 12.0)
_TOKENS = {"sentences": 128, "news": 128, "reviews": 64}
_TEM_EPSILON = 4.0  # per unit of distance; 4 to 16 are equally good, 1 and 2 worse
_STRENGTHS = {"words": (0.3, 1.0, 3.0, 10.0), "sentences": (0.03, 0.1, 0.3, 1.0, 3.0)}
_FOLDS = 3
_DRAWS = 10  # per sentence, for less noise in the measurement; an attacker sees one
_MAX_DISTANCE = 1.2  # threshold of TEM on sentence vectors: of .4, .6, .8, 1 and this one the best for the cosine

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Bench:
    """The folder of the data sets, and the size of the experiment.

    Attributes:
        data: the folder.
        limit: maximum number of private texts, and of texts of a bank; None: all.
        model: whether there is a sentence model.
    """

    data: Path
    limit: int | None = None
    model: bool = True

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """Return the numbers of one setting and seed."""
        split = split_of(self.data, settings["data"], seed)
        measure = self._measure_sentences if settings["data"] == "sentences" else self._measure_documents
        numbers = measure(settings, split, seed) | {"k": 0.0, "candidates": 0.0}
        if settings["method"] == "bank":
            rewriter = self._rewriter(settings, seed)
            numbers |= {"k": float(rewriter.size), "candidates": float(len(rewriter.bank))}
        return numbers

    def _measure_sentences(self, settings: Mapping[str, Any], split: Split, seed: int) -> dict[str, float]:
        private, name = split.private.texts[: self.limit], settings["data"]
        draws = 1 if settings["method"] in (*WORDS, "real") else _DRAWS
        output = self._make(settings, seed, private * draws, max_words=MAX_WORDS)
        true = np.tile(np.arange(len(private)), draws)
        polarity = _polarity(self.data, seed)
        encode = (lambda texts: self._encode(texts, name)) if self.model else _polarity(self.data, 0).vectors
        cosines = unit_rows(encode(private)) @ unit_rows(encode(output)).T  # (private, made)
        guesses = [cosines.argmax(axis=0), _overlap(private, output).argmax(axis=0)]
        result = {
            "cosine": float(cosines[true, np.arange(len(output))].mean()),
            "sentiment": float((polarity.predict(output) == split.private.labels[true]).mean()),
            "relinked": max(float((guess == true).mean()) for guess in guesses),
            "relinked at most": 0.0,
            "distinct": len(set(output)) / len(output),
        }
        if settings["method"] == "bank":
            result["relinked at most"] = self._rewriter(settings, seed).relinking(len(private), private)
        return result

    def _measure_documents(self, settings: Mapping[str, Any], split: Split, seed: int) -> dict[str, float]:
        private, labels = split.private.texts[: self.limit], split.private.labels[: self.limit]
        if settings["method"] == "bank labels":
            bank = split.banks[settings["bank"]]
            output, labels = bank.texts, bank.labels
        else:
            repeated = [text for text in private for _ in range(settings["texts"])]
            output = self._make(settings, seed, repeated, max_words=split.max_words)
            labels = np.repeat(labels, settings["texts"])
        test, test_labels = split.other.texts[: self.limit], split.other.labels[: self.limit]
        result = {
            "words": tfidf_accuracy(output, labels, test, test_labels),
            "distinct": len(set(output)) / len(output),
            "words, labelled anew": 0.0,
            "sentences": 0.0,
        }
        if self.model:
            encoded, tested = (self._encode(texts, settings["data"]) for texts in (output, test))
            model = _fit(encoded, labels, _groups(output), _STRENGTHS["sentences"])
            result["sentences"] = float((model.predict(tested) == test_labels).mean())
            if settings["method"] in ("bank", "random"):
                texts = self._bank(settings, seed).texts
                anew = model.predict(self._encode(texts, settings["data"]))
                result["words, labelled anew"] = tfidf_accuracy(texts, anew, test, test_labels, strengths=(1.0,))
        return result

    def _make(
        self, settings: Mapping[str, Any], seed: int, private: Sequence[str], *, max_words: int
    ) -> tuple[str, ...]:
        """Return one text for each private text."""
        method, epsilon = settings["method"], settings["epsilon"]
        if method == "real":
            return tuple(private)
        if method == "bank":
            return tuple(self._rewriter(settings, seed).sample(private, seed=seed))
        if method in WORDS:
            mechanism = word_mechanism(method, epsilon, max_words)
            kept = [" ".join(text.split()[:max_words]) for text in private]
            return tuple(text or "" for text in Rewriter(mechanism, seed=seed).rewrite(kept))
        bank, uniform = self._bank(settings, seed), RandomBits(seed).uniform(len(private))
        if method == "random":
            return tuple(bank.texts[row] for row in (uniform * len(bank.texts)).astype(int))
        vectors = bank.features.vectors(private)
        if method == "PrivUnit":
            axes = _principal_axes(bank, settings["directions"])
            noisy = PrivUnit(epsilon=epsilon).randomize(vectors @ axes, seed=seed)
            rows = (noisy @ unit_rows(bank.vectors @ axes).T).argmax(axis=1)
        else:  # TEM's exponential mechanism on sentence vectors, with pure epsilon
            rows = np.empty(len(private), dtype=np.intp)
            for place, vector in enumerate(vectors):
                distances = np.sqrt(np.maximum(2 - 2 * (bank.vectors @ vector), 0).astype(np.float64))
                weights = np.exp(-epsilon / _MAX_DISTANCE / 2 * np.minimum(distances, _MAX_DISTANCE)).cumsum()
                rows[place] = np.searchsorted(weights, uniform[place] * weights[-1], side="right")
        return tuple(bank.texts[row] for row in rows.tolist())

    def _rewriter(self, settings: Mapping[str, Any], seed: int) -> BankRewriter:
        bank, factor = self._bank(settings, seed), settings["factor"]
        options: dict[str, Any] = {"epsilon": settings["epsilon"] / settings["texts"], "unit": "document"}
        rewriter = BankRewriter(bank, **options)
        if factor == 1.0:
            return rewriter
        return BankRewriter(bank, size=min(max(round(rewriter.size * factor), 1), len(bank) // 2), **options)

    def _bank(self, settings: Mapping[str, Any], seed: int) -> TextBank:
        bank_seed = seed if settings["bank"] != "wiki and news" else 0
        bank = _whole_bank(self, settings["data"], settings["bank"], settings["features"], bank_seed)
        return _thinned(bank, settings["epsilon"]) if settings["thinned"] else bank

    def encoders(self, data: str, features: str) -> list[Any]:
        names = {"both": ["sentences", "words"], "sentences": ["sentences"], "words": ["words"]}[features]
        return [_sentence_model(_TOKENS[data]) if name == "sentences" else name for name in names]

    def _encode(self, texts: Sequence[str], data: str) -> Vectors:
        return _sentence_model(_TOKENS[data]).encode(texts)

    def write_questions(self, path: Path) -> None:
        """Write 50 questions of SNIPS with their outputs, and whether each output has the same intent."""
        chosen, others = questions(self.data, 50)
        encoders = self.encoders("news", "sentences")
        bank = TextBank(others.texts, encoder=encoders, name="SNIPS", licence="CC0", cache=False)
        intents = {" ".join(text.split()): label for text, label in zip(others.texts, others.labels, strict=True)}
        rows: list[dict[str, object]] = [{"question": text.strip()} for text in chosen.texts]
        for epsilon in QUESTION_EPSILONS:
            output = BankRewriter(bank, epsilon=epsilon).sample(chosen.texts, seed=1)
            for row, text, intent in zip(rows, output, chosen.labels, strict=True):
                row[f"epsilon {epsilon:g}"] = text
                row[f"same intent, epsilon {epsilon:g}"] = bool(intents[text] == intent)
        path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def word_mechanism(name: str, epsilon: float, words: int) -> TEM | SubsetSelection | Madlib:
    """Return a mechanism with this pure epsilon for any two documents of this many words."""
    vectors = _word_vectors()
    if name == "TEM":
        return TEM(vectors, epsilon=_TEM_EPSILON, document_epsilon=epsilon, max_words=words)
    if name == "Madlib":
        return Madlib(vectors, epsilon=epsilon / words / vectors.diameter_bound)
    return SubsetSelection(vectors, epsilon=epsilon / words, max_words=words)


# -- classifiers -------------------------------------------------------------------------------------------------


def tfidf_accuracy(
    texts: Sequence[str],
    labels: Labels,
    test: Sequence[str],
    test_labels: Labels,
    strengths: tuple[float, ...] = _STRENGTHS["words"],
) -> float:
    """Return the accuracy of logistic regression on TF-IDF of words and pairs of words."""
    encoder = _tfidf(ngram_range=(1, 2), min_df=2)
    model = _fit(encoder.fit_transform(texts), labels, _groups(texts), strengths)
    return float((model.predict(encoder.transform(test)) == test_labels).mean())


def _tfidf(**options: Any) -> Any:
    module = extra("sklearn.feature_extraction.text", "sklearn", "TF-IDF")
    return module.TfidfVectorizer(sublinear_tf=True, **options)


def _fit(vectors: Any, labels: Labels, groups: Labels, strengths: tuple[float, ...]) -> Any:
    """Fit logistic regression with the best of some strengths in cross-validation on the training texts.

    Equal texts are in one fold: noisy labels could be memorised otherwise.
    """
    linear, selection, dummy = (
        extra(f"sklearn.{name}", "sklearn", "logistic regression")
        for name in ("linear_model", "model_selection", "dummy")
    )
    if len(np.unique(labels)) < 2:
        return dummy.DummyClassifier().fit(vectors, labels)
    right = np.zeros(len(strengths))
    folds = selection.GroupKFold(_FOLDS, shuffle=True, random_state=0)
    for train, check in folds.split(vectors, labels, groups) if len(strengths) > 1 else ():
        if len(np.unique(labels[train])) < 2:
            continue
        for place, strength in enumerate(strengths):
            model = linear.LogisticRegression(C=strength, max_iter=300, tol=1e-3).fit(vectors[train], labels[train])
            right[place] += (model.predict(vectors[check]) == labels[check]).sum()
    return linear.LogisticRegression(C=strengths[int(right.argmax())], max_iter=1000).fit(vectors, labels)


def _groups(texts: Sequence[str]) -> Labels:
    known: dict[str, int] = {}
    return np.array([known.setdefault(text, len(known)) for text in texts])


class _Polarity:
    """A classifier of positive and negative sentences."""

    def __init__(self, split: Split) -> None:
        self._encoder = _tfidf(ngram_range=(1, 2), min_df=2).fit(split.other.texts)
        linear = extra("sklearn.linear_model", "sklearn", "logistic regression")
        model = linear.LogisticRegression(C=3.0, max_iter=300)
        self._model = model.fit(self._encoder.transform(split.other.texts), split.other.labels)

    def predict(self, texts: Sequence[str]) -> Labels:
        predictions: Labels = self._model.predict(self._encoder.transform(texts))
        return predictions

    def vectors(self, texts: Sequence[str]) -> Vectors:
        result: Vectors = self._encoder.transform(texts).toarray()
        return result


def _overlap(private: Sequence[str], output: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the (private, output) similarity by common rare words."""
    encoder = _tfidf()
    known = encoder.fit_transform(private)
    result: npt.NDArray[np.float64] = (known @ encoder.transform(output).T).toarray()
    return result


# -- shared by cells ---------------------------------------------------------------------------------------------


@cache
def _word_vectors() -> Any:
    return load_vectors("glove-6b-50d", limit=50_000)


@cache
def _sentence_model(tokens: int) -> CachedSentences:
    return CachedSentences(tokens)


@cache
def _polarity(data: Path, seed: int) -> _Polarity:
    return _Polarity(split_of(data, "sentences", seed))


@cache
def _whole_bank(bench: Bench, data: str, name: str, features: str, seed: int) -> TextBank:
    texts = split_of(bench.data, data, seed).banks[name].texts
    if bench.limit is not None:
        texts = tuple(texts[row] for row in shuffled(len(texts), 0)[: bench.limit].tolist())
    return TextBank(texts, encoder=bench.encoders(data, features), name=f"{data}, {name}", cache=False)


@cache
def _thinned(bank: TextBank, epsilon: float) -> TextBank:
    return bank.thinned(epsilon)


def _principal_axes(bank: TextBank, count: int) -> npt.NDArray[np.float64]:
    """Return the (d, count) principal axes of a bank's vectors."""
    vectors = bank.vectors.astype(np.float64)
    _, result = np.linalg.eigh(vectors.T @ vectors)
    return result[:, ::-1][:, :count]
