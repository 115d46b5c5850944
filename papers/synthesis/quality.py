"""How close synthetic corpora are to real texts as distributions, next to real texts and random public ones.

Command: ``python -m papers.synthesis.quality [--data ../shared/data]``. It needs the extras ``encoders``, ``evaluation`` and ``sklearn``.
Each cell is one line of ``results/quality.jsonl``; an interrupted run continues where it stopped. Every corpus of 1,000
texts is compared with 1,000 held-out real texts, on vectors of all-MiniLM-L6-v2 (64 tokens). The seed draws both
samples, and the noise of the release.
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
from papers.data_sets import yelp
from papers.running import by_settings, number_of, options_of, say_by_name, write_between
from papers.synthesis import corpus
from papers.synthesis.baselines import DESCRIPTIONS, _problem, _sentences, label_names
from papers.synthesis.cells import DELTA

import dptext
from dptext.evaluation.corpus_quality import compare
from dptext.evaluation.sweep import Row, read_sweep, sweep
from dptext.features.features import UNIT
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.sampling import VARIETY, choose
from dptext.synthesis.synthesizer import SynthesisPlan

HERE = Path(__file__).resolve().parent
START, END = "<!-- quality: written by papers.synthesis.quality -->", "<!-- end of the quality -->"
Floats = npt.NDArray[np.float64]
EPSILON = 1.0
SIZE = 1000
_PRIVATE, _HELD_OUT, _POOL = 5000, 1500, 4000
DATA = ("AG News", "Yelp sentences")
CORPORA = {
    "real texts": "real texts (the best to expect)",
    "dptext": "dptext, epsilon 1",
    "label names": "label names, epsilon 0",
    "random pool": "random texts of the pool",
}


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set and pool: private texts with labels, a plan fitted on the pool, and real texts that are held out.

    Attributes:
        domain: (pool,) which texts of the pool are of the domain of the private ones.
        cosines: (pool, K) to the label descriptions; None without labels.
    """

    plan: SynthesisPlan
    labels: Any
    private: tuple[str, ...]
    documents: list[dptext.Document]
    pool: tuple[str, ...]
    domain: npt.NDArray[np.bool_]
    held_out: tuple[str, ...]
    cosines: Floats | None


def _cell(data: Path, work: Path, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
    problem = _news(data, work) if settings["data"] == "AG News" else _restaurants(data, work)
    pool = problem.pool
    held_out = corpus.shuffled(len(problem.held_out), seed)[:SIZE]
    if settings["corpus"] == "real texts":
        rows, source = corpus.shuffled(len(problem.private), seed)[:SIZE], problem.private
    else:
        rows, source = _chosen(settings["corpus"], problem, seed), pool
    texts, real = (
        [each[row] for row in some.tolist()] for each, some in ((source, rows), (problem.held_out, held_out))
    )
    sentences = _sentences(work)
    found = compare(texts, sentences.encode(texts), sentences.encode(real), seed=seed, with_mauve=True)
    return {**found, "of the domain": 1.0 if source is not pool else float(problem.domain[rows].mean())}


def _chosen(method: str, problem: Problem, seed: int) -> npt.NDArray[np.intp]:
    """Return the rows of the pool that a method chooses."""
    if method == "random pool":
        return corpus.shuffled(len(problem.pool), seed)[:SIZE]
    if method == "label names":
        assert problem.cosines is not None
        scores = label_names(problem.cosines)
        nearness, shares = np.zeros(len(scores)), np.full(scores.shape[1], 1 / scores.shape[1])
    else:
        maker = dptext.Synthesizer(epsilon=EPSILON, delta=DELTA, labels=problem.labels, unit="document")
        plan = SynthesisPlan(terms=maker.terms, features=problem.plan.features, pool=problem.plan.pool)
        ratio = maker.released(plan, plan.total_of(problem.documents), RandomBits(seed)).ratio
        units = _units(problem)
        scores, nearness, shares = ratio.scores(units), ratio.nearness(units), ratio.shares
    return choose(scores, nearness, SIZE, shares=shares, variety=VARIETY, bits=RandomBits(seed))[0]


@cache
def _units(problem: Problem) -> Floats:
    return problem.plan.features.units(list(problem.pool)) * UNIT


@cache
def _news(data: Path, work: Path) -> Problem:
    """AG News; the pool is newswire, sentences of Wikipedia and of restaurant reviews."""
    found, name = _problem(data, work, "AG News", "news"), "AG News"
    split, newswire = found.split, set(corpus.newswire(data))
    return Problem(
        found.plan, DESCRIPTIONS[name], split.texts, split.documents(np.arange(len(split.texts))), split.pool,
        np.array([text in newswire for text in split.pool]), split.test, found.cosines[: len(split.pool)],
    )  # fmt: skip


@cache
def _restaurants(data: Path, work: Path) -> Problem:
    """Sentences of restaurant reviews without labels; a third of the pool are others, the rest is of other domains."""
    private = tuple(dict.fromkeys(text for text in yelp(data, ("test",)).texts if len(text.split()) >= 5))
    rows = corpus.shuffled(len(private), 1)
    own = corpus.restaurants(data)
    parts = [own, corpus.newswire(data), corpus.wikipedia(data)]
    counts = (_POOL - 2 * (_POOL // 3), _POOL // 3, _POOL // 3)
    chosen = [
        [each[row] for row in corpus.shuffled(len(each), 2)[:count].tolist()]
        for each, count in zip(parts, counts, strict=True)
    ]
    seen = set(own)
    mixed = list(dict.fromkeys(text for part in chosen for text in part))
    held_out, texts = (
        tuple(text for text in (private[row] for row in some.tolist()) if text not in seen)
        for some in (rows[:_HELD_OUT], rows[_HELD_OUT : _HELD_OUT + _PRIVATE])
    )
    sentences = _sentences(work)
    sentences.keep([*mixed, *held_out, *texts])
    maker = dptext.Synthesizer(
        epsilon=EPSILON, delta=DELTA, features=[sentences, "words"], unit="document", cache=work / "pools"
    )
    documents = [dptext.Document(text) for text in texts]
    domain = np.array([text in seen for text in mixed])
    return Problem(maker.plan(mixed), None, texts, documents, tuple(mixed), domain, held_out, None)


def _settings() -> Iterator[dict[str, Any]]:
    for data in DATA:
        yield from ({"data": data, "corpus": name} for name in CORPORA if (data, name) != (DATA[1], "label names"))


# -- the command ---------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Synthetic corpora compared with real texts as distributions.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--report", action="store_true", help="write the table from the rows that are there")
    parser.add_argument("--quick", action="store_true", help="one seed")
    options = options_of(parser, arguments, HERE)
    work = options.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    if not options.report:
        sweep(
            lambda settings, seed: _cell(options.data, work, settings, seed),
            list(_settings()),
            range(1, 2 if options.quick else 6),
            path=options.out / "quality.jsonl",
            name="synthesis quality",
            not_compared=("options", "work"),
            progress=say_by_name,
            stop_at_error=True,
        )
    write_report(options.out, readme=options.readme)


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the table of all rows in a folder into the README."""
    path = out / "quality.jsonl"
    rows = read_sweep(path).rows if path.exists() else ()
    write_between(readme, START, END, "\n".join(_table(rows)))


def _table(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    names = list(rows[0].numbers)
    yield f"| data | corpus | {' | '.join(names)} |\n|---|---|{'---:|' * len(names)}"
    for settings, runs in by_settings(rows):
        numbers = " | ".join(number_of(runs, name) for name in names)
        yield f"| {settings['data']} | {CORPORA[settings['corpus']]} | {numbers} |"


if __name__ == "__main__":
    main()
