"""Synthetic corpora and the release as a classifier, compared with what a colleague would write in an afternoon.

Command: ``python -m papers.synthesis.baselines [--data ../shared/data]``. Every method sees the same public pool,
private documents and features (all-MiniLM-L6-v2 and words), spends the same (epsilon, delta) and protects the labels
too. Each cell is one line of ``results/baselines-*.jsonl``; an interrupted run continues where it stopped.

Every method scores texts by class. The scores classify the test texts directly (``release``), and
`dptext.synthesis.density.choose` uses them to select 1,500 pool texts with labels, on which a TF-IDF classifier is
trained (``corpus``). Both accuracies are measured on real texts that no method has seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import snips
from papers.reports import number_of, parse_options, write_between
from papers.sweeps import Row, read_sweep, sweep
from papers.synthesis import corpus
from papers.synthesis.cells import DELTA, _words
from papers.synthesis.kept import KeptSentences

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
PEOPLE = (50, 100, 300, 1000, 5000)
_PEOPLE_OF = {"SNIPS": (50, 100, 300, 1000, 3000, 5000)} | dict.fromkeys(
    ("Blogs, age group", "Blogs, gender"), (50, 100, 300, 1000)
)
EPSILON = 1.0
_POOL, _PRIVATE, _TEST, _MADE, _TOKENS = 4000, 5000, 1500, 1500, 64
_STEPS, _STEP_SIZES = 25, (4.0, 16.0, 64.0)
_DIRECTIONS, _CLUSTERS = 100, (10, 30, 100)
_COUNT_WEIGHT = 0.2
_COSINE_SCALE = 20.0  # scores are log-odds to `choose`: cosines are scaled to their range


@dataclass(frozen=True, eq=False)
class Problem:
    """One data set and pool, encoded once.

    Attributes:
        plan: of the `Synthesizer`: features fitted on the pool.
        pool, test, private: vectors of at most length 1, one row per text.
        names: vectors of the descriptions and cosines to them, for pool and test texts one below the other.
    """

    plan: SynthesisPlan
    split: corpus.Split
    pool: Floats
    test: Floats
    private: Floats
    cosines: Floats


# -- the baselines: each returns (texts, classes) scores of the rows of ``texts`` ------------------------------------


def label_names(cosines: Floats) -> Floats:
    """Score texts by the cosine of their vector to that of each label description: no private data, epsilon 0."""
    return _COSINE_SCALE * cosines


def noisy_gradient_descent(
    vectors: Floats, labels: Labels, classes: int, sigma: float, step: float, bits: Generator
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
        gradient += sigma * np.sqrt(_STEPS) * bits.normal(size=gradient.shape)
        weights = weights - step * gradient / len(rows)
        average += weights / (_STEPS - _STEPS // 2) * (turn >= _STEPS // 2)
    return average


def class_means(
    vectors: Floats,
    labels: Labels,
    classes: int,
    sigma: float,
    covariance: Floats,
    bits: Generator,
) -> tuple[Floats, Floats]:
    """Return weights and offsets of a ridge discriminant between noisy class means in public principal directions.

    **Guarantee.** A document adds one row [b, sqrt(1 - b^2) v] of length at most 1; every number gets noise sigma.
    """
    values, basis = np.linalg.eigh(covariance)
    values, basis = values[-_DIRECTIONS:], basis[:, -_DIRECTIONS:]
    rows = np.hstack([np.full((len(vectors), 1), _COUNT_WEIGHT), np.sqrt(1 - _COUNT_WEIGHT**2) * vectors @ basis])
    sums = np.eye(classes)[labels].T @ rows
    sums += sigma * bits.normal(size=sums.shape)
    counts = np.maximum(sums[:, 0] / _COUNT_WEIGHT, 2 * sigma / _COUNT_WEIGHT)
    means = sums[:, 1:] / (np.sqrt(1 - _COUNT_WEIGHT**2) * counts[:, None])
    weights = (means - means.mean(axis=0)) / (values + values.mean())
    offsets = -0.5 * (weights * (means + means.mean(axis=0))).sum(axis=1)
    return weights @ basis.T, offsets


def histogram(clusters: Labels, private: Labels, labels: Labels, classes: int, sigma: float, bits: Generator) -> Floats:
    """Score texts by the noisy counts of the private labels in their cluster of the public pool.

    Args:
        clusters: (texts,) the cluster of each scored text.
        private: (documents,) the cluster of each private document.

    **Guarantee.** A document adds 1 to one number; every number gets noise sigma.
    """
    counts = np.zeros((int(max(clusters.max(), private.max())) + 1, classes))
    np.add.at(counts, (private, labels), 1.0)
    counts = np.maximum(counts + sigma * bits.normal(size=counts.shape), sigma / 10)
    return np.log(counts / counts.sum(axis=1, keepdims=True))[clusters]


# -- cells ---------------------------------------------------------------------------------------------------------


BASELINES = ("label names", "gradient descent", "class means", "histogram", "random labels")
METHODS = ("dptext", "dptext, no descriptions", *BASELINES, "private texts")


def _cell(data: Path, work: Path, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
    problem = _problem(data, work, settings["data"], settings["pool"])
    split, people, classes = problem.split, settings["people"], len(problem.split.classes)
    rows = corpus.shuffled(len(split.texts), seed)[:people]
    sigma, bits = problem.plan.terms.budget.sigma, np.random.default_rng(seed)  # noqa: TID251  see Generator
    texts = np.vstack([problem.pool, problem.test])
    private, labels = problem.private[rows], split.labels[rows]
    results: dict[str, float] = {}

    def measure(name: str, scores: Floats, nearness: Floats | None = None) -> None:
        chosen, codes = choose(
            scores[: len(split.pool)],
            np.zeros(len(split.pool)) if nearness is None else nearness[: len(split.pool)],
            min(_MADE, len(split.pool) // 2),
            shares=np.full(classes, 1 / classes),
            variety=VARIETY,
            bits=RandomBits(seed),
        )
        results[f"release, {name}"] = _accuracy(scores[len(split.pool) :], split.test_labels)
        output = tuple(split.pool[row] for row in chosen.tolist())
        results[f"corpus, {name}"] = _words(output, codes, split.test, split.test_labels)

    for name, described in (
        ("dptext", DESCRIPTIONS[settings["data"]]),
        ("dptext, no descriptions", list(split.classes)),
    ):
        maker = dptext.Synthesizer(epsilon=EPSILON, delta=DELTA, labels=described, unit="document")
        plan = SynthesisPlan(terms=maker.terms, features=problem.plan.features, pool=problem.plan.pool)
        release = maker.released(plan, plan.total_of(split.documents(rows)), RandomBits(seed))
        measure(name, release.ratio.scores(texts), release.ratio.nearness(texts))
    measure("label names", label_names(problem.cosines))

    # The best step size and number of clusters are taken by the test texts: a favour to the baselines.
    steps = [noisy_gradient_descent(private, labels, classes, sigma, step, bits) for step in _STEP_SIZES]
    measure("gradient descent", _best([texts @ step[:, :-1].T + step[:, -1] for step in steps], split))
    covariance = problem.plan.features.covariance
    weights, offsets = class_means(private, labels, classes, sigma, covariance, bits)
    measure("class means", texts @ weights.T + offsets)
    clusterings = [_clusters(data, work, settings["data"], settings["pool"], count) for count in _CLUSTERS]
    counted = [histogram(all_texts, own[rows], labels, classes, sigma, bits) for all_texts, own in clusterings]
    measure("histogram", _best(counted, split))
    measure("random labels", bits.normal(size=(len(texts), classes)))
    real = tuple(split.texts[row] for row in rows.tolist())
    results["corpus, private texts"] = _words(real, labels, split.test, split.test_labels)
    return results


@cache
def _problem(data: Path, work: Path, name: str, pool: str) -> Problem:
    split = _split(data, name, pool)
    sentences = _sentences(work)
    sentences.keep([*split.pool, *split.test, *split.texts])
    described = DESCRIPTIONS[name]
    maker = dptext.Synthesizer(
        epsilon=EPSILON,
        delta=DELTA,
        labels=described,
        features=[sentences, "words"],
        unit="document",
        cache=work / "pools",
    )
    plan = maker.plan(list(split.pool))
    vectors = [plan.features.units(texts) * UNIT for texts in (split.pool, split.test, split.texts)]
    names = _unit_rows(sentences.encode(list(described.values())))
    cosines = _unit_rows(sentences.encode([*split.pool, *split.test])) @ names.T
    return Problem(plan, split, *vectors, cosines - cosines.mean(axis=0))


def _split(data: Path, name: str, pool: str) -> corpus.Split:
    """The private documents, the first texts of the pool and the test texts of a data set: the same for every seed."""
    if name == "SNIPS":
        parts = snips(data)
        order = corpus.shuffled(len(parts.train.texts), 0)
        private, others = order[:_PRIVATE], order[_PRIVATE : _PRIVATE + _POOL]
        texts = {"requests": [parts.train.texts[row] for row in others], "restaurants": corpus.restaurants(data)}
        split = corpus.Split(
            tuple(parts.train.texts[row] for row in private), parts.train.labels[private], private, tuple(texts[pool]),
            None, parts.test.texts, parts.test.labels, tuple(DESCRIPTIONS[name]),
        )  # fmt: skip
    elif name == "AG News":
        split = corpus.news(data, 0, pool)
    elif name.startswith("Blogs"):
        split = corpus.blogs(data, 0, "age" if name == "Blogs, age group" else "gender", joined=True)
    else:
        split = corpus.imdb(data, 0)
        others = {"reviews": split.pool, "restaurants": corpus.restaurants(data), "wikipedia": corpus.wikipedia(data)}
        split = _with_pool(split, others[pool])
    rows = corpus.shuffled(len(split.pool), 1)[:_POOL]
    split = _with_pool(split, tuple(split.pool[row] for row in rows.tolist()))
    return corpus.Split(
        split.texts[:_PRIVATE], split.labels[:_PRIVATE], split.people[:_PRIVATE], split.pool, None, split.test[:_TEST],
        split.test_labels[:_TEST], tuple(DESCRIPTIONS[name]),
    )  # fmt: skip


def _with_pool(split: corpus.Split, pool: Sequence[str]) -> corpus.Split:
    return corpus.Split(
        split.texts, split.labels, split.people, tuple(pool), None, split.test, split.test_labels, split.classes
    )


@cache
def _sentences(work: Path) -> KeptSentences:
    return KeptSentences(work, tokens=_TOKENS)


@cache
def _clusters(data: Path, work: Path, name: str, pool: str, count: int) -> tuple[Labels, Labels]:
    """The cluster of each pool and test text, and of each private document."""
    problem = _problem(data, work, name, pool)
    model = extra("sklearn.cluster", "sklearn", "clusters").MiniBatchKMeans(count, n_init=3, random_state=0)
    model.fit(problem.pool)
    return model.predict(np.vstack([problem.pool, problem.test])), model.predict(problem.private)


def _best(scores: Sequence[Floats], split: corpus.Split) -> Floats:
    return max(scores, key=lambda table: _accuracy(table[len(split.pool) :], split.test_labels))


def _accuracy(scores: Floats, truth: Labels) -> float:
    return float((scores.argmax(axis=1) == truth).mean())


def _softmax(scores: Floats) -> Floats:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _unit_rows(vectors: npt.NDArray[Any]) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), dtype=np.float64)


# -- the command ---------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Synthetic corpora compared with simple baselines.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--only", choices=sorted(POOLS), default=None, help="one data set alone")
    parser.add_argument("--report", action="store_true", help="write the tables from the rows that are there")
    parser.add_argument("--quick", action="store_true", help="one seed and 300 people")
    options = parse_options(parser, arguments, HERE)
    work = options.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    names = list(POOLS) if options.only is None else [options.only]
    for name in [] if options.report else names:
        sweep(
            lambda settings, seed: _cell(options.data, work, settings, seed),
            list(_settings(name, quick=options.quick)),
            range(1, 2 if options.quick else 6),
            path=options.out / f"baselines-{name.lower().replace(',', '').replace(' ', '-')}.jsonl",
            name="synthesis baselines",
        )
    write_report(options.out, readme=options.readme)


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the tables of all rows in a folder into the README."""
    rows = [row for path in sorted(out.glob("baselines-*.jsonl")) for row in read_sweep(path).rows]
    write_between(readme, START, END, "\n".join(_tables(rows)).rstrip())


def _settings(name: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    for pool in POOLS[name]:
        for people in (300,) if quick else _PEOPLE_OF.get(name, PEOPLE):
            yield {"data": name, "pool": pool, "people": people}


def _tables(rows: Sequence[Row]) -> Iterator[str]:
    for kind, title in (
        ("release", "The scores as a classifier"),
        ("corpus", "A TF-IDF classifier trained on the corpus"),
    ):
        methods = [method for method in METHODS if kind == "corpus" or method != "private texts"]
        yield f"**{title}** (accuracy).\n"
        yield f"| data, pool | people | {' | '.join(methods)} |\n|---|---:|{'---:|' * len(methods)}"
        behind: list[str] = []
        cells = 0
        for settings in {tuple(row.settings.items()): row.settings for row in rows}.values():
            own = [row for row in rows if row.settings == settings]
            means = {method: np.mean([row.numbers[f"{kind}, {method}"] for row in own]) for method in methods}
            numbers = [number_of(own, f"{kind}, {method}") for method in methods]
            yield f"| {settings['data']}, {settings['pool']} | {settings['people']:,} | {' | '.join(numbers)} |"
            best = max(BASELINES, key=means.__getitem__)
            cells += 1
            if means["dptext"] < means[best] - 0.01:
                gap = means[best] - means["dptext"]
                behind.append(f"{settings['data']}, {settings['pool']}, {settings['people']:,} ({best}, by {gap:.3f})")
        listed = f": {'; '.join(behind)}" if behind else ""
        yield f"\ndptext is more than .01 below the best baseline in {len(behind)} of {cells} cells{listed}.\n"


if __name__ == "__main__":
    main()
