"""Private texts replaced by texts of a public bank, under pure local epsilon: see README.md.

Command: ``python -m papers.sentences.experiment [--quick] [--data FOLDER] [--parts sentences news ...] [--shown]``
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import LabelledTexts, snips, yelp
from papers.reports import parse_options, run_command
from papers.sentences.report import write_report
from papers.sweeps import sweep
from papers.synthesis import corpus as documents
from papers.synthesis.corpus import CachedSentences, newswire, shuffled, unit_rows, wikipedia

from dptext import TEM, BankRewriter, Madlib, PrivUnit, SubsetSelection, TextBank, load_vectors
from dptext.errors import extra
from dptext.privacy.randomness import RandomBits
from dptext.release.mechanism import Rewriter

MIN_WORDS, MAX_WORDS = 10, 14
"""Length of a private sentence."""
_SENTENCES, _LEARNED, _BANK, _DOCUMENTS = 300, 20_000, 20_000, 5000
NO_LABELS = np.array([], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Split:
    """One split of a data set.

    ``banks``: public texts by name, without texts of the first two, with labels if they have any.
    """

    private: LabelledTexts  # 300 sentences of 10 to 14 words, or 5,000 documents
    other: LabelledTexts  # 20,000 other sentences, to train a classifier of sentiment; or test documents
    banks: dict[str, LabelledTexts]
    max_words: int  # number of words of a document that word mechanisms protect; later words are dropped


def split_of(data: Path, name: str, seed: int) -> Split:
    return {"sentences": _sentences, "news": _news, "reviews": _reviews}[name](data, seed)


@cache
def _yelp(data: Path) -> LabelledTexts:
    return yelp(data)


@cache
def _sentences(data: Path, seed: int) -> Split:
    result = _yelp(data)
    order = shuffled(len(result.texts), seed).tolist()
    private = [row for row in order if MIN_WORDS <= len(result.texts[row].split()) <= MAX_WORDS][:_SENTENCES]
    chosen = set(private)
    others = [row for row in order if row not in chosen]
    bank = result.take(others[_LEARNED:])
    banks = {
        "20,000": LabelledTexts(bank.texts[:_BANK], NO_LABELS),
        "all": bank,
        "wiki and news": LabelledTexts((*newswire(data), *wikipedia(data)), NO_LABELS),
    }
    return Split(result.take(private), result.take(others[:_LEARNED]), banks, MAX_WORDS)


@cache
def _news(data: Path, seed: int) -> Split:
    """AG News; the banks are newswire, Wikipedia and restaurants, or the other rows."""
    split = documents.news(data, seed)
    rows = LabelledTexts(split.texts, split.labels)
    banks = {
        "wiki and news": LabelledTexts(split.pool, NO_LABELS),
        "own": rows.take(range(_DOCUMENTS, len(split.texts))),
    }
    return Split(rows.take(range(_DOCUMENTS)), LabelledTexts(split.test, split.test_labels), banks, 48)


@cache
def _reviews(data: Path, seed: int) -> Split:
    """IMDb; the bank is 6,000 other reviews, or sentences of newswire, Wikipedia and restaurants."""
    split = documents.imdb(data, seed)
    assert split.truth is not None
    other = documents.imdb(data, seed, "no reviews of films")
    banks = {"own": LabelledTexts(split.pool, split.truth), "wiki and news": LabelledTexts(other.pool, NO_LABELS)}
    private, test = LabelledTexts(split.texts, split.labels), LabelledTexts(split.test, split.test_labels)
    return Split(private, test, banks, 256)


def questions(data: Path, count: int) -> tuple[LabelledTexts, LabelledTexts]:
    """Return questions of the test part of SNIPS (public domain, CC0), and the others as a bank."""
    result = snips(data)
    chosen = result.test.take(shuffled(len(result.test.texts), 0)[:count])
    known = set(chosen.texts)
    return chosen, result.train.take(row for row, text in enumerate(result.train.texts) if text not in known)


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
    """The folder of the data sets, and the size of the experiment."""

    data: Path  # the folder
    limit: int | None = None  # maximum number of private texts, and of texts of a bank; None: all
    model: bool = True  # whether there is a sentence model

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
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


HERE = Path(__file__).resolve().parent
PARTS = ("sentences", "news", "reviews")
_USUAL: dict[str, Any] = {
    "method": "bank",
    "epsilon": 8.0,
    "features": "sentences",
    "factor": 1.0,
    "thinned": False,
    "texts": 1,
    "directions": None,
}
_BANKS = {"sentences": ("20,000", "all", "wiki and news"), "news": ("wiki and news", "own"), "reviews": ("own",)}
_WORD_EPSILONS = {"sentences": (8.0, 50.0, 100.0, 250.0), "news": (250.0,), "reviews": (250.0,)}


def main(arguments: Sequence[str] | None = None) -> None:
    questions = {"action": "store_true", "help": "also write questions and their outputs (shown.json)"}
    options = parse_options(
        "Texts of a public bank instead of private ones.", HERE, arguments, parts=PARTS, shown=questions
    )
    if not options.report:
        has_model = not options.quick or find_spec("sentence_transformers") is not None
        bench = Bench(options.data, 500 if options.quick else None, has_model)
        for part in options.parts:
            settings, seeds = list(settings_of(part, quick=options.quick)), range(1, 3 if options.quick else 6)
            sweep(bench.cell, settings, seeds, path=options.out / f"{part}.jsonl", name=f"sentences {part}")
        if options.shown:
            bench.write_questions(options.out / "shown.json")
    write_report(options.out, readme=options.readme)


def settings_of(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    is_documents, banks = part != "sentences", _BANKS[part]
    features = "words" if quick and find_spec("sentence_transformers") is None else _USUAL["features"]
    if part == "reviews" and not quick:
        features = "both"
    usual = _USUAL | {"data": part, "bank": banks[0], "features": features}
    no_bank = {"bank": "", "features": "", "epsilon": 0.0}
    yield usual
    yield usual | no_bank | {"method": "real"}
    yield usual | {"method": "random", "epsilon": 0.0}
    if quick:
        yield usual | no_bank | {"method": "words", "epsilon": 250.0}
        return
    epsilons = (4.0, 12.0, 16.0)
    yield from (usual | {"epsilon": epsilon} for epsilon in epsilons)
    for bank in banks[1:]:
        yield from (usual | {"bank": bank, "epsilon": epsilon} for epsilon in (8.0, *epsilons))
        yield usual | {"bank": bank, "method": "random", "epsilon": 0.0}
    if is_documents:
        yield usual | {"bank": "own", "method": "bank labels", "epsilon": 0.0}
    for bank in banks if is_documents else banks[:2]:
        yield from (usual | {"bank": bank, "epsilon": epsilon, "thinned": True} for epsilon in (8.0, 4.0, 12.0))
    yield from (usual | {"factor": factor} for factor in (0.25, 0.5, 2.0, 4.0))
    for other in ("sentences", "words", "both"):
        if other != features:
            for epsilon in (4.0, 8.0, 12.0) if part == "reviews" else (8.0,):
                yield usual | {"features": other, "epsilon": epsilon}
    if is_documents:
        yield usual | {"texts": 2}
    for directions in (384, 16) if features == "sentences" else (64, 16):
        yield usual | {"method": "PrivUnit", "directions": directions}
    yield usual | {"method": "TEM on vectors"}
    for method in ("words", "TEM", "Madlib"):
        yield from (usual | no_bank | {"method": method, "epsilon": epsilon} for epsilon in _WORD_EPSILONS[part])


if __name__ == "__main__":
    run_command(main)
