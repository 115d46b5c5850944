"""Synthetic corpora and the release as a classifier, compared with simple baselines.

Command: ``python -m papers.synthesis.baselines [--data FOLDER]``. Every method uses the same public pool, private
documents and features (all-MiniLM-L6-v2 and words), spends the same (epsilon, delta) and also protects the labels.

Every method scores texts by class. The scores classify the test texts directly (``release``), and
`dptext.synthesis.density.choose` uses them to select 1,500 pool texts with labels, on which a TF-IDF classifier is
trained (``corpus``). Both accuracies are measured on real texts that no method has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import snips
from papers.reports import Rows, group_by_settings, mean_of, number_of, parse_options, run_command, table, write_between
from papers.sweeps import Row, sweep
from papers.synthesis import corpus
from papers.synthesis.corpus import CachedSentences, Split, select, shuffled, unit_rows
from papers.synthesis.experiment import DELTA, tfidf_accuracy

import dptext
from dptext.errors import extra
from dptext.features.features import UNIT
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.density import VARIETY, choose
from dptext.synthesis.synthesizer import SynthesisPlan

HERE = Path(__file__).resolve().parent
START, END = "<!-- baselines: written by papers.synthesis.baselines -->", "<!-- end of the baselines -->"
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
Generator = np.random.Generator  # noqa: TID251  noise of an experiment, not of a release

DESCRIPTIONS = {
    "AG News": {
        "world": "world news: politics, governments, elections, war and countries",
        "sports": "sports: games, teams, players, matches and championships",
        "business": "business: companies, markets, stocks, prices and the economy",
        "science and technology": "science and technology: software, computers, the internet, space and research",
    },
    "IMDb": {"negative": "a bad, boring and disappointing film", "positive": "a great, wonderful and moving film"},
    "SNIPS": {
        "AddToPlaylist": "add a song to my playlist",
        "BookRestaurant": "book a table at a restaurant",
        "GetWeather": "what will the weather be like",
        "PlayMusic": "play some music",
        "RateBook": "give this book a rating of five stars",
        "SearchCreativeWork": "find a book, a show, a game or a song by its name",
        "SearchScreeningEvent": "when is the movie on at the cinema",
    },
    "Blogs, age group": {
        "13-17": "a teenager writes about school, homework, friends, parents and being bored",
        "23-27": "a person in their twenties writes about a job, college, dating, friends and going out",
        "33-48": "a parent writes about work, children, husband or wife, the house and politics",
    },
    "Blogs, gender": {
        "female": "a woman writes about her feelings, her family, her friends and love",
        "male": "a man writes about computers, games, sports, music and politics",
    },
}
"""Label descriptions, the same for all methods that use them; written before any result was seen."""
POOLS = {
    "AG News": ("news", "restaurants"),
    "IMDb": ("reviews", "restaurants", "wikipedia"),
    "SNIPS": ("requests", "restaurants"),
    "Blogs, age group": ("posts",),
    "Blogs, gender": ("posts",),
}
"""The first pool of each data set is of its own domain. AG News: newswire, Wikipedia and restaurants mixed."""
_PEOPLE: dict[str, tuple[int, ...]] = dict.fromkeys(("AG News", "IMDb"), (50, 100, 300, 1000, 5000))
_PEOPLE |= {"SNIPS": (50, 100, 300, 1000, 3000, 5000)} | dict.fromkeys(
    ("Blogs, age group", "Blogs, gender"), (50, 100, 300, 1000)
)
BASELINES = ("label names", "gradient descent", "class means", "histogram", "random labels")
METHODS = ("dptext", "dptext, no descriptions", *BASELINES, "private texts")
EPSILON = 1.0
_POOL, _PRIVATE, _TEST, _SIZE, _TOKENS = 4000, 5000, 1500, 1500, 64
_STEPS, _STEP_SIZES = 25, (4.0, 16.0, 64.0)
_DIRECTIONS, _CLUSTERS = 100, (10, 30, 100)
_COUNT_WEIGHT = 0.2
_COSINE_SCALE = 20.0  # `choose` expects log-odds: cosines are scaled to their range


def main(arguments: Sequence[str] | None = None) -> None:
    only = {"choices": sorted(POOLS), "help": "a single data set"}
    options = parse_options("Synthetic corpora compared with simple baselines.", HERE, arguments, only=only)
    for name in () if options.report else [options.only] if options.only else POOLS:
        people = (300,) if options.quick else _PEOPLE[name]
        sweep(
            partial(measure, data=options.data),
            [{"data": name, "pool": pool, "people": count} for pool in POOLS[name] for count in people],
            range(1, 2 if options.quick else 6),
            path=options.out / f"baselines-{name.lower().replace(',', '').replace(' ', '-')}.jsonl",
            name="synthesis baselines",
        )
    write_report(options.out, readme=options.readme)


# -- the baselines: each returns (texts, classes) scores of the rows of ``texts`` ------------------------------------


def noisy_gradient_descent(
    vectors: Floats, labels: Labels, classes: int, sigma: float, step: float, generator: Generator
) -> Floats:
    """Return (classes, k + 1) weights of logistic regression by full-batch gradient descent with noise on every step.

    **Guarantee.** A document's gradient is clipped to length 1. T steps with noise sigma sqrt(T) are one Gaussian
    mechanism of sensitivity 1 and noise sigma. The number of documents in the step size is a public number here.
    """
    rows = np.hstack([vectors, np.ones((len(vectors), 1))]) / np.sqrt(2.0)
    weights, average = np.zeros((classes, rows.shape[1])), np.zeros((classes, rows.shape[1]))
    targets = np.eye(classes)[labels]
    for turn in range(_STEPS):
        errors = _softmax(rows @ weights.T) - targets
        lengths = np.linalg.norm(errors, axis=1) * np.linalg.norm(rows, axis=1)
        gradient = (errors / np.maximum(lengths, 1.0)[:, None]).T @ rows
        gradient += sigma * np.sqrt(_STEPS) * generator.normal(size=gradient.shape)
        weights = weights - step * gradient / len(rows)
        average += weights / (_STEPS - _STEPS // 2) * (turn >= _STEPS // 2)
    return average


def class_means(
    vectors: Floats, labels: Labels, classes: int, sigma: float, covariance: Floats, generator: Generator
) -> tuple[Floats, Floats]:
    """Return weights and offsets of a ridge discriminant between noisy class means in public principal directions.

    **Guarantee.** A document adds one row [b, sqrt(1 - b^2) v] of length at most 1; every number gets noise sigma.
    """
    values, basis = np.linalg.eigh(covariance)
    values, basis = values[-_DIRECTIONS:], basis[:, -_DIRECTIONS:]
    rows = np.hstack([np.full((len(vectors), 1), _COUNT_WEIGHT), np.sqrt(1 - _COUNT_WEIGHT**2) * vectors @ basis])
    sums = np.eye(classes)[labels].T @ rows
    sums += sigma * generator.normal(size=sums.shape)
    counts = np.maximum(sums[:, 0] / _COUNT_WEIGHT, 2 * sigma / _COUNT_WEIGHT)
    means = sums[:, 1:] / (np.sqrt(1 - _COUNT_WEIGHT**2) * counts[:, None])
    weights = (means - means.mean(axis=0)) / (values + values.mean())
    offsets = -0.5 * (weights * (means + means.mean(axis=0))).sum(axis=1)
    return weights @ basis.T, offsets


def histogram(
    clusters: Labels, private: Labels, labels: Labels, classes: int, sigma: float, generator: Generator
) -> Floats:
    """Score texts by the noisy counts of the private labels in their cluster of the public pool.

    ``clusters`` are those of the scored texts, ``private`` those of the private documents.

    **Guarantee.** A document adds 1 to one number; every number gets noise sigma.
    """
    counts = np.zeros((int(max(clusters.max(), private.max())) + 1, classes))
    np.add.at(counts, (private, labels), 1.0)
    counts = np.maximum(counts + sigma * generator.normal(size=counts.shape), sigma / 10)
    return np.log(counts / counts.sum(axis=1, keepdims=True))[clusters]


def _softmax(scores: Floats) -> Floats:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


# -- cells ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set and pool, encoded once.

    ``pool, test, private``: vectors of at most length 1, one row per text.
    """

    plan: SynthesisPlan  # of the `Synthesizer`: features fitted on the pool
    split: Split  # the texts
    pool: Floats
    test: Floats
    private: Floats
    cosines: Floats  # to the label descriptions, for pool and test texts one below the other


def measure(settings: Mapping[str, Any], seed: int, *, data: Path) -> dict[str, float]:
    """Return both accuracies of every method for one data set, pool and number of documents."""
    name, pool = settings["data"], settings["pool"]
    problem = problem_of(data, name, pool)
    split, classes = problem.split, len(problem.split.classes)
    rows = shuffled(len(split.texts), seed)[: settings["people"]]
    sigma, generator = problem.plan.terms.budget.sigma, np.random.default_rng(seed)  # noqa: TID251  see Generator
    texts = np.vstack([problem.pool, problem.test])
    private, labels = problem.private[rows], split.labels[rows]
    scores: dict[str, Floats] = {}
    nearness: dict[str, Floats] = {}
    for method, described in (("dptext", DESCRIPTIONS[name]), ("dptext, no descriptions", list(split.classes))):
        maker = dptext.Synthesizer(epsilon=EPSILON, delta=DELTA, labels=described, unit="document")
        plan = SynthesisPlan(terms=maker.terms, features=problem.plan.features, pool=problem.plan.pool)
        ratio = maker.released(plan, plan.total_of(split.documents(rows)), RandomBits(seed)).ratio
        weighed = ratio.weigh(texts)
        scores[method], nearness[method] = weighed.scores, weighed.nearness
    scores["label names"] = _COSINE_SCALE * problem.cosines  # no private data, epsilon 0
    # The best step size and number of clusters are chosen on the test texts, in favour of the baselines.
    weights = [noisy_gradient_descent(private, labels, classes, sigma, step, generator) for step in _STEP_SIZES]
    scores["gradient descent"] = _best([texts @ entry[:, :-1].T + entry[:, -1] for entry in weights], split)
    slopes, offsets = class_means(private, labels, classes, sigma, problem.plan.features.covariance, generator)
    scores["class means"] = texts @ slopes.T + offsets
    clusters = [_clusters(data, name, pool, count) for count in _CLUSTERS]
    counted = [
        histogram(every, private_clusters[rows], labels, classes, sigma, generator)
        for every, private_clusters in clusters
    ]
    scores["histogram"] = _best(counted, split)
    scores["random labels"] = generator.normal(size=(len(texts), classes))
    results = {}
    for method, table_of_scores in scores.items():
        results[f"release, {method}"] = _accuracy(table_of_scores, split)
        results[f"corpus, {method}"] = _corpus_accuracy(table_of_scores, nearness.get(method), split, seed)
    real = tfidf_accuracy(select(split.texts, rows), labels, split.test, split.test_labels)
    return results | {"corpus, private texts": real}


def _corpus_accuracy(scores: Floats, nearness: Floats | None, split: Split, seed: int) -> float:
    """Return the accuracy of a classifier trained on pool texts that are selected by their scores."""
    size, classes = len(split.pool), len(split.classes)
    chosen, codes = choose(
        scores[:size],
        np.zeros(size) if nearness is None else nearness[:size],
        min(_SIZE, size // 2),
        shares=np.full(classes, 1 / classes),
        variety=VARIETY,
        bits=RandomBits(seed),
    )
    return tfidf_accuracy(select(split.pool, chosen), codes, split.test, split.test_labels)


@cache
def problem_of(data: Path, name: str, pool: str) -> Problem:
    split, described = split_of(data, name, pool), DESCRIPTIONS[name]
    sentences = _sentences()
    sentences.encode([*split.pool, *split.test, *split.texts])
    maker = dptext.Synthesizer(
        epsilon=EPSILON, delta=DELTA, labels=described, features=[sentences, "words"], unit="document", cache=False
    )
    plan = maker.plan(list(split.pool))
    vectors = [plan.features.units(texts) * UNIT for texts in (split.pool, split.test, split.texts)]
    cosines = centred_cosines(sentences, [*split.pool, *split.test], described)
    return Problem(plan, split, *vectors, cosines)


def centred_cosines(sentences: CachedSentences, texts: Sequence[str], described: Mapping[str, str]) -> Floats:
    """Return (texts, labels) cosines to the label descriptions, minus their mean over texts."""
    names = unit_rows(sentences.encode(list(described.values()))).astype(np.float64)
    cosines: Floats = unit_rows(sentences.encode(texts)).astype(np.float64) @ names.T
    return cosines - cosines.mean(axis=0)


def split_of(data: Path, name: str, pool: str) -> Split:
    """Return the private documents, the pool and the test texts of a data set, the same for every seed."""
    if name == "SNIPS":
        parts = snips(data)
        order = shuffled(len(parts.train.texts), 0)
        private, others = parts.train.take(order[:_PRIVATE]), parts.train.take(order[_PRIVATE : _PRIVATE + _POOL])
        texts = others.texts if pool == "requests" else corpus.restaurants(data)
        test = parts.test
        split = Split(private.texts, private.labels, order[:_PRIVATE], texts, None, test.texts, test.labels, ())
    elif name == "AG News":
        split = corpus.news(data, 0, pool)
    elif name.startswith("Blogs"):
        split = corpus.blogs(data, 0, "age" if name == "Blogs, age group" else "gender", joined=True)
    else:
        split = corpus.imdb(data, 0)
        if pool != "reviews":
            split = replace(split, pool={"restaurants": corpus.restaurants, "wikipedia": corpus.wikipedia}[pool](data))
    return Split(
        split.texts[:_PRIVATE],
        split.labels[:_PRIVATE],
        split.people[:_PRIVATE],
        select(split.pool, shuffled(len(split.pool), 1)[:_POOL]),
        None,
        split.test[:_TEST],
        split.test_labels[:_TEST],
        tuple(DESCRIPTIONS[name]),
    )


@cache
def _sentences() -> CachedSentences:
    return CachedSentences(_TOKENS)


@cache
def _clusters(data: Path, name: str, pool: str, count: int) -> tuple[Labels, Labels]:
    problem = problem_of(data, name, pool)
    model = extra("sklearn.cluster", "sklearn", "clusters").MiniBatchKMeans(count, n_init=3, random_state=0)
    model.fit(problem.pool)
    return model.predict(np.vstack([problem.pool, problem.test])), model.predict(problem.private)


def _best(scores: Sequence[Floats], split: Split) -> Floats:
    return max(scores, key=lambda entry: _accuracy(entry, split))


def _accuracy(scores: Floats, split: Split) -> float:
    return float((scores[len(split.pool) :].argmax(axis=1) == split.test_labels).mean())


# -- the report ----------------------------------------------------------------------------------------------------


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the tables of all rows in a folder into the README."""
    rows = [row for path in sorted(out.glob("baselines-*.jsonl")) for row in Rows(path).rows]
    write_between(readme, START, END, "\n\n".join(_sections(rows)))


def _sections(rows: Sequence[Row]) -> Iterator[str]:
    for kind, title in (
        ("release", "The scores as a classifier"),
        ("corpus", "A TF-IDF classifier trained on the corpus"),
    ):
        methods = [method for method in METHODS if kind == "corpus" or method != "private texts"]
        lines: list[list[str]] = []
        behind: list[str] = []
        for settings, runs in group_by_settings(rows):
            means = {method: mean_of(runs, f"{kind}, {method}") for method in methods}
            name = f"{settings['data']}, {settings['pool']}"
            numbers = [number_of(runs, f"{kind}, {method}") for method in methods]
            lines.append([name, f"{settings['people']:,}", *numbers])
            best = max(BASELINES, key=means.__getitem__)
            if means["dptext"] < means[best] - 0.01:
                behind.append(f"{name}, {settings['people']:,} ({best}, by {means[best] - means['dptext']:.3f})")
        cells = f": {'; '.join(behind)}" if behind else ""
        yield f"**{title}** (accuracy)."
        yield table(["data, pool", "people", *methods], lines)
        yield f"dptext is more than .01 below the best baseline in {len(behind)} of {len(lines)} cells{cells}."


if __name__ == "__main__":
    run_command(main)
