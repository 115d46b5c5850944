"""Shares of categories that are named after a release: coverage of their intervals, and where the method fails.

Command: ``python -m papers.synthesis.questions [--data FOLDER] [--only NAME]``; extra ``audit`` for the report. Each
row summarises 200 releases without labels. The seed of a release draws the shares of its private texts, divides the
texts into private and public ones, and draws the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import ag_news, imdb_reviews, snips
from papers.reports import Rows, interval, parse_options, run_command, table, write_between
from papers.sweeps import sweep
from papers.synthesis.corpus import _posts, newswire, restaurants

import dptext
from dptext.features.features import UNIT
from dptext.intervals import share
from dptext.noise.gaussian_sums import CELL, clipped_matrices
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.moments import COUNT_WEIGHT
from dptext.synthesis.questions import FALSE_ALARMS, MOST_DRIFT, read_shares
from dptext.synthesis.synthesizer import SynthesisPlan

HERE = Path(__file__).resolve().parent
START, END = "<!-- questions: written by papers.synthesis.questions -->", "<!-- end of the questions -->"
EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-6
RELEASES = 200
SAME = "public texts of the same source"
CASES: dict[str, tuple[str, ...]] = {
    "SNIPS": (
        SAME,
        "the last kind has no public texts",
        "public: the third kind, and all others as one category",
        "public: the test file",
    ),
    "SNIPS, features words": (SAME,),
    "SNIPS, features words, fitted on the public texts": ("public: the texts of the pool",),
    "AG News": (
        SAME,
        "the last kind has no public texts",
        "public: the second kind, and all others as one category",
        "public: the test file, which has titles",
    ),
    "IMDb and AG News": (SAME, "public: Yelp and MRPC", "public: IMDb and MRPC"),
    "Blogs, age group": ("public: one post per author", "public: all posts of the authors"),
}
_PRIVATE = {"AG News": 4000, "IMDb and AG News": 4000, "Blogs, age group": 1200}
_SIZES = (50, 200, 500)
_SIZE, _SIZE_OF_WORDS = 500, 200
_REVIEWS, _WORDS = 5000, 60
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
Generator = np.random.Generator  # noqa: TID251  splits of data are no secret


def main(arguments: Sequence[str] | None = None) -> None:
    only = {"choices": sorted(CASES), "help": "a single data set"}
    options = parse_options("Shares of categories named after a release.", HERE, arguments, only=only)
    for name in () if options.report else [options.only] if options.only else CASES:
        settings = [
            {"data": name, "case": case, "public": size, "epsilon": epsilon}
            for case in CASES[name]
            for size in ((_SIZE_OF_WORDS,) if "words" in name else _SIZES if case == SAME else (_SIZE,))
            for epsilon in EPSILONS
        ]
        releases = 5 if options.quick else RELEASES
        sweep(
            partial(measure, data=options.data, releases=releases),
            settings[:1] if options.quick else settings,
            (1,),
            path=options.out / f"questions-{_slug(name)}.jsonl",
            name="shares of categories",
            constants={"releases": releases},
        )
    write_report(options.out, readme=options.readme)


# -- data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Source:
    """Labelled texts: vectors, clipped matrices of their people, and the classes; ``owners`` are rows of ``cells``."""

    plan: SynthesisPlan
    vectors: Floats  # of the texts
    owners: Labels  # of the texts
    cells: npt.NDArray[np.int64]  # of the people
    labels: Labels  # of the people
    other: Mapping[str, tuple[Floats, Labels | None]]  # public texts of other sources
    divided: npt.NDArray[np.bool_] | None = None  # people who are always public


def _texts(data: Path, name: str) -> tuple[list[str], Labels, Labels, tuple[str, ...]]:
    """Return texts, labels and authors of the texts, and a pool of another domain for the features."""
    if name == "Blogs, age group":
        posts, ages = _posts(data, "age")
        texts = [" ".join(text.split()[:_WORDS]) for text in posts.texts]
        return texts, np.unique(ages, return_inverse=True)[1], posts.people, newswire(data)
    train, _ = ag_news(data)
    if name.startswith("SNIPS"):
        requests = snips(data).train
        texts, labels, pool = list(requests.texts), requests.labels, restaurants(data)
        if "words" in name:  # half of the requests are private, a quarter public, a quarter are another pool
            quarters = np.arange(len(texts)) % 4
            pool = tuple(texts[place] for place in np.flatnonzero(quarters == (2 if "fitted" in name else 3)))
            texts, labels = (
                [text for text, place in zip(texts, quarters, strict=True) if place < 3],
                labels[quarters < 3],
            )
    elif name == "AG News":
        texts, labels, pool = list(train.texts), train.labels, newswire(data)
    else:
        reviews = [review.text for review in imdb_reviews(data)]
        places = np.random.default_rng(0).permutation(len(reviews))[:_REVIEWS]  # noqa: TID251  no secret
        texts = [*(reviews[place] for place in places), *train.texts]
        labels, pool = (np.arange(len(texts)) >= _REVIEWS).astype(np.intp), restaurants(data)
    return texts, labels, np.arange(len(texts)), pool


@cache
def source_of(data: Path, name: str) -> Source:
    texts, labels, authors, pool = _texts(data, name)
    unit = "user" if name.startswith("Blogs") else "document"
    features = "words" if "words" in name else "static"
    plan = dptext.Synthesizer(epsilon=1.0, delta=DELTA, unit=unit, features=features, cache=False).plan(list(pool))
    order = np.argsort(authors, kind="stable")
    owners, first, places = np.unique(authors[order], return_index=True, return_inverse=True)
    vectors = plan.features.units([texts[row] for row in order.tolist()]) * np.float64(UNIT)
    rows = np.insert(vectors * math.sqrt(1 - COUNT_WEIGHT**2), 0, COUNT_WEIGHT, axis=1)
    sums = np.add.reduceat(rows, first, axis=0)
    cells = clipped_matrices(sums, np.arange(len(owners)), np.ones(len(owners)))
    other: dict[str, tuple[Floats, Labels | None]] = {}
    if name in ("AG News", "SNIPS"):
        test = ag_news(data)[1] if name == "AG News" else snips(data).test
        other["test"] = plan.features.units(test.texts) * np.float64(UNIT), test.labels
    if name == "IMDb and AG News":
        other["Yelp"] = plan.features.units(restaurants(data)) * np.float64(UNIT), None
        other["MRPC"] = plan.features.units(newswire(data)) * np.float64(UNIT), None
    divided = np.arange(len(owners)) % 3 == 2 if "words" in name else None
    return Source(plan, vectors, places, cells, labels[order][first], other, divided)


def _divide(source: Source, name: str, generator: Generator) -> tuple[list[Labels], list[Labels]]:
    """Return the private and the public people of each class; shares are drawn, and cut to the texts that exist."""
    classes = int(source.labels.max()) + 1
    private, public = [], []
    for code, fraction in enumerate(generator.dirichlet(np.ones(classes))):
        rows = generator.permutation(np.flatnonzero(source.labels == code))
        if source.divided is not None:
            rows = rows[np.argsort(source.divided[rows], kind="stable")]
        half = len(rows) // 2 if source.divided is None else int((~source.divided[rows]).sum())
        private.append(rows[: min(half, max(1, round(fraction * _PRIVATE.get(name, 2000))))])
        public.append(rows[half:])
    return private, public


def _public_vectors(
    source: Source, case: str, public: Sequence[Labels], size: int, generator: Generator
) -> list[Floats]:
    """Return the vectors of the public texts of each category."""
    if case.startswith("public: one post"):
        shuffled = generator.permutation(len(source.owners))
        first = shuffled[np.unique(source.owners[shuffled], return_index=True)[1]]  # a random text of each person
        return [source.vectors[first[people]] for people in public]
    if case.startswith("public: all posts"):
        return [source.vectors[np.isin(source.owners, people)] for people in public]
    if case.startswith("public: the test file"):
        vectors, labels = source.other["test"]
        return [vectors[generator.permutation(np.flatnonzero(labels == code))[:size]] for code in range(len(public))]
    by_class = [source.vectors[people[:size]] for people in public]  # one text per person
    if "MRPC" in case:
        names = ("Yelp", "MRPC") if "Yelp" in case else ("IMDb", "MRPC")
        others = [source.other[name][0] if name in source.other else by_class[0] for name in names]
        return [vectors[generator.permutation(len(vectors))[:size]] for vectors in others]
    if case.startswith("the last kind"):
        return by_class[:-1]
    if "all others" in case:
        place = _category_of(case)
        rest = np.concatenate([vectors for code, vectors in enumerate(by_class) if code != place])
        return [by_class[place], rest[generator.permutation(len(rest))[:size]]]
    return by_class


def _category_of(case: str) -> int:
    return 2 if "third" in case else 1


# -- cells -----------------------------------------------------------------------------------------------------------


def measure(settings: Mapping[str, Any], seed: int, *, data: Path, releases: int) -> dict[str, float]:
    """Return counts and means over releases."""
    name, case = settings["data"], settings["case"]
    source = source_of(data, name)
    unit = "user" if name.startswith("Blogs") else "document"
    maker = dptext.Synthesizer(epsilon=settings["epsilon"], delta=DELTA, unit=unit, features="static", cache=False)
    plan = SynthesisPlan(terms=maker.terms, features=source.plan.features, pool=source.plan.pool)
    runs = []
    for turn in range(releases):
        generator = np.random.default_rng([seed, turn])  # noqa: TID251  splits of data are no secret
        private, public = _divide(source, name, generator)
        total = source.cells[np.concatenate(private)].sum(axis=0, keepdims=True)
        release = maker.released(plan, total, RandomBits(turn))
        vectors = _public_vectors(source, case, public, settings["public"], generator)
        counts = np.array([len(people) for people in private])
        if "all others" in case:
            counts = np.array([counts[_category_of(case)], counts.sum() - counts[_category_of(case)]])
        truth = counts / counts.sum()
        runs.append(_compare(release.matrix[0], release.sigma, total[0] * CELL, vectors, truth, plan, turn))
    result = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    result |= {"releases": releases, "covered": sum(run["covered"] for run in runs)}
    for rule in ("accepted", "other source accepted"):
        result[rule] = sum(run[rule] for run in runs)
        result[f"covered, {rule}"] = sum(run["covered"] for run in runs if run[rule])
    return result


def _compare(
    released: Floats, sigma: float, total: Floats, vectors: Sequence[Floats], truth: Floats, plan: Any, turn: int
) -> dict[str, float]:
    """Return the errors of one release; ``truth`` may have further classes, which no category covers."""
    categories = {str(code): values for code, values in enumerate(vectors)}
    read: Callable[..., Any] = partial(read_shares, vectors=categories, covariance=plan.features.covariance)
    result, exact = read(released, sigma), read(total, sigma)
    values, low, high = np.array([[s.value, s.low, s.high] for s in result.shares.values()]).T
    truth = truth[: len(values)]
    covered = (low <= truth) & (truth <= high)
    return {
        "accepted": float(result.p_value >= FALSE_ALARMS),
        "other source accepted": float(result.p_value >= FALSE_ALARMS or result.drift <= MOST_DRIFT),
        "covered": float(covered[turn % len(values)]),  # of one category, so that trials are independent
        "covered, all": float(covered.mean()),
        "error": float(np.abs(values - truth).mean()),
        "error by noise": float(np.abs(values - [s.value for s in exact.shares.values()]).mean()),
        "error, not corrected": float(np.abs(_regression(vectors, released) - truth).mean()),
        "error, shares of the public texts": float(np.abs(1 / len(values) - truth).mean()),
        "width": float((high - low).mean()),
    }


def _regression(vectors: Sequence[Floats], released: Floats) -> Floats:
    """Return the mean prediction of a linear regression of the categories, which is not corrected."""
    texts = np.insert(np.concatenate(vectors), 0, 1.0, axis=1)
    targets = np.repeat(np.eye(len(vectors)), [len(values) for values in vectors], axis=0)
    weights = np.linalg.lstsq(texts, targets, rcond=None)[0]
    mean = released[1:] / math.sqrt(1 - COUNT_WEIGHT**2) / (max(released[0], 1.0) / COUNT_WEIGHT)
    return np.asarray(np.clip(np.insert(mean, 0, 1.0) @ weights, 0.0, 1.0))


# -- report ----------------------------------------------------------------------------------------------------------


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the tables of all rows into the README."""
    sections = []
    for title, is_same in (("Public texts of the same source.", True), ("Other public texts, and people.", False)):
        head = ["data; public texts", "per category", "epsilon", "refused", "coverage"]
        if not is_same:
            head += ["refused with other_source", "coverage with it"]
        head += ["error", "by noise alone", "not corrected", "shares of the public texts", "width of the interval"]
        lines = [line for name in CASES for line in _lines(out, name, is_same=is_same)]
        sections.append(f"**{title}**\n\n{table(head, lines)}")
    write_between(readme, START, END, "\n\n".join(sections))


def _lines(out: Path, name: str, *, is_same: bool) -> Iterator[list[str]]:
    for row in Rows(out / f"questions-{_slug(name)}.jsonl").rows:
        numbers, case = row.numbers, str(row.settings["case"])
        if (case == SAME) != is_same:
            continue
        cells = []
        for rule in ("accepted",) if is_same else ("accepted", "other source accepted"):
            accepted = int(numbers[rule])
            coverage = interval(share(int(numbers[f"covered, {rule}"]), accepted)) if accepted else ""
            cells += [f"{1 - accepted / numbers['releases']:.3f}", coverage]
        yield [
            name if case == SAME else f"{name}; {case.removeprefix('public: ')}",
            "" if name.startswith("Blogs") else str(row.settings["public"]),
            f"{row.settings['epsilon']:g}",
            *cells,
            *(f"{numbers[key]:.3f}" for key in ("error", "error by noise", "error, not corrected")),
            *(f"{numbers[key]:.3f}" for key in ("error, shares of the public texts", "width")),
        ]


def _slug(name: str) -> str:
    return name.lower().replace(",", "").replace(" ", "-")


if __name__ == "__main__":
    run_command(main)
