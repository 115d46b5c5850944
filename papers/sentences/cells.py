"""One cell: private texts replaced in one way, and what is left of them for their reader, a classifier, an attacker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import LabelledTexts
from papers.sentences import corpus
from papers.sentences.corpus import Documents, Sentences
from papers.synthesis.corpus import shuffled
from papers.synthesis.kept import KeptSentences

from dptext import TEM, BankRewriter, Madlib, PrivUnit, SubsetSelection, TextBank, load_vectors
from dptext.errors import extra
from dptext.privacy.randomness import RandomBits
from dptext.release.mechanism import Rewriter

WORDS = ("TEM", "words", "Madlib")
"""Word mechanisms; "words" is subset selection on words."""
_TOKENS = {"sentences": 128, "news": 128, "reviews": 64}
_VOCABULARY = 50_000
_RATE = 4.0  # of TEM, a unit of distance: the threshold follows from the budget; 4 to 16 do equally well, 1 and 2 worse
_STRENGTHS = {"words": (0.3, 1.0, 3.0, 10.0), "sentences": (0.03, 0.1, 0.3, 1.0, 3.0)}
_FOLDS = 3
_DRAWS = 10  # of each sentence, for less noise in what is measured; an attacker sees one
_FARTHEST = 1.2  # threshold of TEM on sentence vectors: of .4, .6, .8, 1 and this the best for cosine

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Bench:
    """Where data and kept vectors are, and how much is used.

    Attributes:
        data: the folder of the data sets.
        work: the folder of what is kept between runs; git ignores it.
        most: at most so many private texts, and texts of a bank; None: all.
        model: whether there is a sentence model.
    """

    data: Path
    work: Path
    most: int | None = None
    model: bool = True

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """The numbers of one setting and seed."""
        return (self._sentence_cell if settings["data"] == "sentences" else self._document_cell)(settings, seed)

    # -- sentences: what a reader gets, and an attacker ---------------------------------------------------------

    def _sentence_cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        split = _sentences(self.data, seed)
        private = split.private.texts[: self.most]
        result: dict[str, float] = {"relinked at most": 0.0, "k": 0.0, "candidates": 0.0}
        draws = 1 if settings["method"] in (*WORDS, "real") else _DRAWS
        output = self._made(settings, seed, private * draws, longest=corpus.MOST_WORDS)
        who = np.tile(np.arange(len(private)), draws)
        own, other = self._compared(private, settings["data"]), self._compared(output, settings["data"])
        closeness = _normal(own) @ _normal(other).T  # (private, made)
        result["cosine"] = float(closeness[who, np.arange(len(output))].mean())
        result["sentiment"] = float((_polarity(self, seed).of(output) == split.private.labels[who]).mean())
        guesses = [closeness.argmax(axis=0), _overlap(private, output).argmax(axis=0)]
        result["relinked"] = max(float((guess == who).mean()) for guess in guesses)
        result["distinct"] = len(set(output)) / len(output)
        if settings["method"] == "bank":
            rewriter = self._rewriter(settings, seed)
            result["relinked at most"] = rewriter.relinking(len(private), private)
            result["k"], result["candidates"] = float(rewriter.size), float(len(rewriter.bank))
        return result

    # -- documents: what a classifier gets ----------------------------------------------------------------------

    def _document_cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        split = _documents(self.data, settings["data"], seed)
        private = LabelledTexts(split.private.texts[: self.most], split.private.labels[: self.most])
        result: dict[str, float] = {"k": 0.0, "candidates": 0.0}
        labels = private.labels
        if settings["method"] == "bank labels":
            bank = split.banks[settings["bank"]]
            output, labels = bank.texts, bank.labels
        else:
            setting = settings["texts"]
            repeated = [text for text in private.texts for _ in range(setting)]
            output = self._made(settings, seed, repeated, longest=split.max_words)
            labels = np.repeat(labels, setting)
        test, truth = split.test.texts[: self.most], split.test.labels[: self.most]
        result["words"] = learnt_words(output, labels, test, truth)
        result["distinct"] = len(set(output)) / len(output)
        result["words, labelled anew"] = 0.0
        result["sentences"] = 0.0
        if self.model:
            encoded, tested = self._encoded(output, settings["data"]), self._encoded(test, settings["data"])
            model = _fitted(encoded, labels, _groups(output), _STRENGTHS["sentences"])
            result["sentences"] = float((model.predict(tested) == truth).mean())
            if settings["method"] in ("bank", "random"):
                texts = self._bank(settings, seed).texts
                anew = model.predict(self._encoded(texts, settings["data"]))
                result["words, labelled anew"] = learnt_words(texts, anew, test, truth, strengths=(1.0,))
        if settings["method"] == "bank":
            rewriter = self._rewriter(settings, seed)
            result["k"], result["candidates"] = float(rewriter.size), float(len(rewriter.bank))
        return result

    # -- the ways that are compared -------------------------------------------------------------------------------

    def _made(self, settings: Mapping[str, Any], seed: int, private: Sequence[str], *, longest: int) -> tuple[str, ...]:
        """A text for each private one."""
        method, epsilon = settings["method"], settings["epsilon"]
        if method == "real":
            return tuple(private)
        if method == "random":
            texts = self._bank(settings, seed).texts
            return tuple(texts[row] for row in (RandomBits(seed).uniform(len(private)) * len(texts)).astype(int))
        if method == "bank":
            return tuple(self._rewriter(settings, seed).sample(private, seed=seed))
        if method in WORDS:
            mechanism = word_mechanism(method, epsilon, longest)
            kept = [" ".join(text.split()[:longest]) for text in private]
            return tuple(text or "" for text in Rewriter(mechanism, seed=seed).rewrite(kept))
        bank = self._bank(settings, seed)
        vectors = bank.features.vectors(private)
        if method == "PrivUnit":
            directions = _directions(bank, settings["directions"])
            noisy = PrivUnit(epsilon=epsilon).randomize(vectors @ directions, seed=seed)
            rows = (noisy @ (_normal(bank.vectors @ directions)).T).argmax(axis=1)
        else:  # TEM on sentences: its exponential mechanism, epsilon times threshold is the pure epsilon
            rate = epsilon / _FARTHEST
            uniform = RandomBits(seed).uniform(len(private))
            rows = np.empty(len(private), dtype=np.intp)
            for place, vector in enumerate(vectors):
                far = np.sqrt(np.maximum(2 - 2 * (bank.vectors @ vector), 0).astype(np.float64))
                shares = np.exp(-rate / 2 * np.minimum(far, _FARTHEST)).cumsum()
                rows[place] = np.searchsorted(shares, uniform[place] * shares[-1], side="right")
        return tuple(bank.texts[row] for row in rows.tolist())

    def _rewriter(self, settings: Mapping[str, Any], seed: int) -> BankRewriter:
        bank = self._bank(settings, seed)
        epsilon = settings["epsilon"] / settings["texts"]
        rewriter = BankRewriter(bank, epsilon=epsilon, unit="document")
        if settings["factor"] == 1.0:
            return rewriter
        size = min(max(round(rewriter.size * settings["factor"]), 1), len(bank) // 2)
        return BankRewriter(bank, epsilon=epsilon, unit="document", size=size)

    def _bank(self, settings: Mapping[str, Any], seed: int) -> TextBank:
        own = seed if settings["bank"] != "wiki and news" else 0
        return _bank(
            self,
            settings["data"],
            settings["bank"],
            settings["features"],
            own,
            settings["thinned"],
            settings["epsilon"],
        )

    def spec(self, data: str, features: str) -> list[Any]:
        parts = {"both": ["sentences", "words"], "sentences": ["sentences"], "words": ["words"]}[features]
        return [_kept(self.work, _TOKENS[data]) if part == "sentences" else part for part in parts]

    def _encoded(self, texts: Sequence[str], data: str) -> Vectors:
        return _kept(self.work, _TOKENS[data]).encode(texts)

    def _compared(self, texts: Sequence[str], data: str) -> Vectors:
        """Vectors of texts that are compared; without a model, those of words of the learnt sentences."""
        if self.model:
            return self._encoded(texts, data)
        return _polarity(self, 0).vectors(texts)


def word_mechanism(name: str, epsilon: float, words: int) -> TEM | SubsetSelection | Madlib:
    """One with a pure budget for a document of so many words: epsilon in all, whatever the words are."""
    vectors = _words()
    if name == "TEM":
        return TEM(vectors, epsilon=_RATE, document_epsilon=epsilon, max_words=words)
    if name == "Madlib":
        return Madlib(vectors, epsilon=epsilon / words / vectors.diameter_bound)
    return SubsetSelection(vectors, epsilon=epsilon / words, max_words=words)


# -- what is learnt --------------------------------------------------------------------------------------------


def learnt_words(
    texts: Sequence[str],
    labels: Labels,
    test: Sequence[str],
    truth: Labels,
    strengths: tuple[float, ...] = _STRENGTHS["words"],
) -> float:
    """Accuracy of TF-IDF over words and pairs of words with logistic regression."""
    encoder = extra("sklearn.feature_extraction.text", "sklearn", "TF-IDF").TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, 2), min_df=2
    )
    model = _fitted(encoder.fit_transform(texts), labels, _groups(texts), strengths)
    return float((model.predict(encoder.transform(test)) == truth).mean())


def _fitted(vectors: Any, labels: Labels, groups: Labels, strengths: tuple[float, ...]) -> Any:
    """Logistic regression. How strong it is, is chosen on what it learns from, by folds that no text is in two of: of
    texts with wrong labels among them, much less can be learnt by heart."""
    models = extra("sklearn.linear_model", "sklearn", "logistic regression")
    choosing = extra("sklearn.model_selection", "sklearn", "logistic regression")
    if len(np.unique(labels)) < 2:
        return extra("sklearn.dummy", "sklearn", "logistic regression").DummyClassifier().fit(vectors, labels)
    right = np.zeros(len(strengths))
    folds = choosing.GroupKFold(_FOLDS, shuffle=True, random_state=0)
    for fit, check in folds.split(vectors, labels, groups) if len(strengths) > 1 else ():
        if len(np.unique(labels[fit])) < 2:
            continue
        for place, strength in enumerate(strengths):
            model = models.LogisticRegression(C=strength, max_iter=300, tol=1e-3).fit(vectors[fit], labels[fit])
            right[place] += (model.predict(vectors[check]) == labels[check]).sum()
    return models.LogisticRegression(C=strengths[int(right.argmax())], max_iter=1000).fit(vectors, labels)


def _groups(texts: Sequence[str]) -> Labels:
    known: dict[str, int] = {}
    return np.array([known.setdefault(text, len(known)) for text in texts])


@dataclass(frozen=True, eq=False)
class _Polarity:
    """What tells a positive sentence from a negative one, learnt from other sentences."""

    learnt: LabelledTexts

    @cached_property
    def _encoder(self) -> Any:
        vectorizer = extra("sklearn.feature_extraction.text", "sklearn", "TF-IDF").TfidfVectorizer(
            sublinear_tf=True, ngram_range=(1, 2), min_df=2
        )
        return vectorizer.fit(self.learnt.texts)

    @cached_property
    def _model(self) -> Any:
        models = extra("sklearn.linear_model", "sklearn", "logistic regression")
        vectors = self._encoder.transform(self.learnt.texts)
        return models.LogisticRegression(C=3.0, max_iter=300).fit(vectors, self.learnt.labels)

    def of(self, texts: Sequence[str]) -> Labels:
        predictions: Labels = self._model.predict(self._encoder.transform(texts))
        return predictions

    def vectors(self, texts: Sequence[str]) -> Vectors:
        result: Vectors = self._encoder.transform(texts).toarray()
        return result


def _overlap(private: Sequence[str], made: Sequence[str]) -> npt.NDArray[np.float64]:
    """(private, made) likeness by rare words in common."""
    encoder = extra("sklearn.feature_extraction.text", "sklearn", "TF-IDF").TfidfVectorizer(sublinear_tf=True)
    known = encoder.fit_transform(private)
    result: npt.NDArray[np.float64] = (known @ encoder.transform(made).T).toarray()
    return result


# -- what several cells share ------------------------------------------------------------------------------------


@cache
def _words() -> Any:
    return load_vectors("glove-6b-50d", limit=_VOCABULARY)


@cache
def _kept(work: Path, tokens: int) -> KeptSentences:
    return KeptSentences(work, tokens=tokens)


@cache
def _sentences(data: Path, seed: int) -> Sentences:
    return corpus.sentences(data, seed)


@cache
def _documents(data: Path, name: str, seed: int) -> Documents:
    return {"news": corpus.news, "reviews": corpus.reviews}[name](data, seed)


@cache
def _polarity(bench: Bench, seed: int) -> _Polarity:
    return _Polarity(_sentences(bench.data, seed).learnt)


@cache
def _bank(bench: Bench, data: str, name: str, features: str, seed: int, thinned: bool, epsilon: float) -> TextBank:
    if thinned:
        return _bank(bench, data, name, features, seed, False, 0.0).thinned(epsilon)
    if epsilon:
        return _bank(bench, data, name, features, seed, False, 0.0)
    if data == "sentences":
        texts = _sentences(bench.data, seed).banks[name]
    else:
        texts = _documents(bench.data, data, seed).banks[name].texts
    if bench.most is not None:
        texts = tuple(texts[row] for row in shuffled(len(texts), 0)[: bench.most].tolist())
    return TextBank(texts, encoder=bench.spec(data, features), name=f"{data}, {name}", cache=False)


def _directions(bank: TextBank, count: int) -> npt.NDArray[np.float64]:
    """(d, count) the principal directions of a bank's vectors."""
    vectors = bank.vectors.astype(np.float64)
    _, result = np.linalg.eigh(vectors.T @ vectors)
    return result[:, ::-1][:, :count]


def _normal(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
