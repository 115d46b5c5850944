"""Word mechanisms at one pure budget for a document: what is left for a classifier and an attacker; see README.md.

Command: ``python -m papers.tem.pure [--quick] [--data ../shared/data]``

Every cell is a line of ``results-pure/pure.jsonl``, written when it is done: run it again to go on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import LabelledTexts, yelp
from papers.reports import parse_options, torch_device, write_between
from papers.sweeps import Row, read_sweep, sweep
from papers.synthesis.corpus import shuffled
from papers.synthesis.kept import KeptSentences

from dptext import TEM, CusText, Madlib, SentenceEncoder, SubsetSelection, WordVectors, load_vectors
from dptext.errors import extra
from dptext.intervals import mean_over_runs
from dptext.words.mechanism import WordMechanism

HERE = Path(__file__).resolve().parent
START, END = "<!-- pure budgets: written by the experiment -->", "<!-- end of pure budgets -->"
BUDGETS = (50.0, 100.0, 250.0, 500.0)
COVERED = (32, 12)
"""Words that a budget covers."""
WORDS = 12
"""Of a sentence."""
MOST_OF_A_WORD = 35.0
"""Nats; words stay long before, and the channel takes little more."""
OF_TEM = (1.0, 2.0, 4.0, 8.0)
"""Epsilons a unit of distance; the threshold follows from the budget."""

_SENTENCES, _LEARNT = 300, 6000
_VOCABULARY = 50_000
_AT_ONCE = 64  # words whose distributions are looked at
_IMPOSSIBLE = -1e6  # stands for ln 0

Labels = npt.NDArray[np.intp]
Vectors = npt.NDArray[np.float32]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Word mechanisms at one pure budget for a document.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--quick", action="store_true", help="two seeds, few sentences: does it run?")
    parser.add_argument("--report", action="store_true", help="the table from the rows that are there")
    parser.add_argument(
        "--work", type=Path, default=None, help="folder of kept vectors; results-pure/work unless named"
    )
    options = parse_options(parser, arguments, HERE, part="pure")
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        has_model = not options.quick or find_spec("sentence_transformers") is not None
        bench = Bench(options.data, options.work or options.out / "work", 40 if options.quick else None, has_model)
        sweep(
            bench.cell,
            list(settings_of(quick=options.quick)),
            range(1, 3 if options.quick else 6),
            path=options.out / "pure.jsonl",
            name="words at a pure budget",
        )
    write_report(options.out, readme=options.readme)


def settings_of(*, quick: bool) -> Iterator[dict[str, Any]]:
    """All settings, those that matter most first."""
    usual: dict[str, Any] = {
        "method": "real",
        "budget": 0.0,
        "covered": 0,
        "similarity": "",
        "factor": 0.0,
        "rate": 0.0,
    }
    cosine = {"method": "SubsetSelection", "similarity": "cosine", "factor": 1.0}
    yield usual
    for covered in COVERED[1:] if quick else COVERED:
        for budget in (250.0,) if quick else BUDGETS:
            of = usual | {"budget": budget, "covered": covered}
            yield of | cosine
            for rate in OF_TEM[1:2] if quick else OF_TEM:
                yield of | {"method": "TEM", "rate": rate}
            yield of | {"method": "Madlib"}
            if quick:
                continue
            yield of | cosine | {"factor": 0.0}
            yield of | cosine | {"factor": 1 / 3}
            yield of | cosine | {"factor": 3.0}
            yield of | cosine | {"similarity": "euclidean"}
            yield of | {"method": "CusText"}


# -- a cell ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """Where data and kept vectors are, and how much is used.

    Attributes:
        data: the folder of the data sets.
        work: the folder of what is kept between runs; git ignores it.
        most: at most so many private sentences, and 20 times as many to learn from; None: all.
        model: whether there is a sentence model; else means of word vectors stand for it.
    """

    data: Path
    work: Path
    most: int | None = None
    model: bool = True

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """The numbers of one setting and seed."""
        split = _split(self.data, seed)
        words = split.words[: self.most]
        labels = split.labels[: self.most]
        if settings["method"] == "real":
            draws, result = words, {"stays": 1.0, "relinked": 1.0, "k": 0.0}
        else:
            mechanism = mechanism_of(settings)
            draws = np.array(mechanism.sample(words.ravel().tolist(), seed=seed)).reshape(words.shape)
            result = {
                "stays": float((draws == words).mean()),
                "relinked": relinked(mechanism, words, draws),
                "k": float(mechanism.size) if isinstance(mechanism, SubsetSelection) else 0.0,
            }
        own, other = self._vectors(words), self._vectors(draws)
        result["cosine"] = float((_normal(own) * _normal(other)).sum(axis=1).mean())
        result["sentiment"] = float((_polarity(self, seed).predict(other) == labels).mean())
        return result

    def _vectors(self, words: npt.NDArray[Any]) -> Vectors:
        texts = [" ".join(row) for row in words.tolist()]
        return self.encoded(texts, kept=False)

    def encoded(self, texts: Sequence[str], *, kept: bool) -> Vectors:
        """(n, d) vectors of texts; those that several cells need are kept."""
        if not self.model:
            return np.stack([np.mean([_word_vectors()[word] for word in text.split()], axis=0) for text in texts])
        if kept:
            return KeptSentences(self.work, tokens=128).encode(texts)
        return _encoded(tuple(texts))


def mechanism_of(settings: Mapping[str, Any]) -> WordMechanism:
    """One that costs at most the budget for any two documents of so many words.

    CusText's holds for words of one group alone, and each word's group is shown.
    """
    vectors, budget, covered = _word_vectors(), settings["budget"], settings["covered"]
    match settings["method"]:
        case "TEM":
            return TEM(vectors, epsilon=settings["rate"], document_epsilon=budget, max_words=covered)
        case "Madlib":
            return Madlib(vectors, epsilon=budget / covered / vectors.diameter_bound)
        case "CusText":
            return CusText(vectors, epsilon=budget / covered)
    epsilon = min(budget / covered, MOST_OF_A_WORD)
    options: dict[str, Any] = {"epsilon": epsilon, "similarity": settings["similarity"]}
    factor = settings["factor"]
    if factor == 0.0:
        return SubsetSelection(vectors, size=1, **options)
    best = SubsetSelection(vectors, **options)
    if factor == 1.0:
        return best
    return SubsetSelection(vectors, size=min(max(1, round(factor * best.size)), len(vectors) // 2), **options)


def relinked(mechanism: WordMechanism, private: npt.NDArray[Any], drawn: npt.NDArray[Any]) -> float:
    """How often the best attacker, who knows all private sentences and the mechanism, names whose output they see.

    They name the sentence under which the words of the output are likeliest. Where a mechanism shows no distribution
    (Madlib), the nearest one: an attacker who may not be the best.
    """
    sources, source = np.unique(private, return_inverse=True)
    outputs, output = np.unique(drawn, return_inverse=True)
    source, output = source.reshape(private.shape), output.reshape(drawn.shape)
    row = mechanism.vectors.vocabulary.row
    columns = [row(word) for word in outputs.tolist()]
    logs = np.empty((sources.size, outputs.size))
    distributions = getattr(mechanism, "distributions", None)
    for start in range(0, sources.size, _AT_ONCE):
        some = sources[start : start + _AT_ONCE].tolist()
        if distributions is None:
            points = mechanism.vectors.matrix[[row(word) for word in some]].astype(np.float64)
            distance = points[:, None] - mechanism.vectors.matrix[columns]
            logs[start : start + len(some)] = -np.sqrt((distance**2).sum(axis=2))
        else:
            shares = distributions(some)[:, columns]
            logs[start : start + len(some)] = np.log(shares, where=shares > 0, out=np.full(shares.shape, _IMPOSSIBLE))
    score = np.zeros((len(private), len(drawn)))
    for place in range(private.shape[1]):
        score += logs[np.ix_(source[:, place], output[:, place])]
    best = score >= score.max(axis=0) - 1e-9
    return float((best.diagonal() / best.sum(axis=0)).mean())


# -- what cells share ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Split:
    """One division of the sentences of restaurant reviews.

    Attributes:
        words: (300, 12) the words of private sentences; all else is left out, so that only words tell them apart.
        labels: (300,) whether each is positive.
        learnt: 6,000 other sentences, as they were written.
    """

    words: npt.NDArray[Any]
    labels: Labels
    learnt: LabelledTexts


@cache
def _split(data: Path, seed: int) -> Split:
    result = yelp(data)
    order = shuffled(len(result.texts), seed).tolist()
    words = {row: [word for word in result.texts[row].split() if word.isalpha()] for row in order}
    seen: dict[tuple[str, ...], int] = {}
    for row in order:
        if len(words[row]) == WORDS:
            seen.setdefault(tuple(words[row]), row)
    private = list(seen.values())[:_SENTENCES]
    chosen = set(private)
    others = [row for row in order if row not in chosen][:_LEARNT]
    return Split(
        np.array([words[row] for row in private]),
        result.labels[private],
        LabelledTexts(tuple(result.texts[row] for row in others), result.labels[others]),
    )


@cache
def _word_vectors() -> WordVectors:
    return load_vectors("glove-6b-50d", limit=_VOCABULARY)


@cache
def _encoder() -> SentenceEncoder:
    return SentenceEncoder(device=torch_device(), threads=1)


@lru_cache(maxsize=16)  # the sentences themselves are asked for in every cell
def _encoded(texts: tuple[str, ...]) -> Vectors:
    result: Vectors = _encoder().encode(texts).astype(np.float32)
    return result


@cache
def _polarity(bench: Bench, seed: int) -> Any:
    """What tells a positive sentence from a negative one by its vector, learnt from other sentences."""
    learnt = _split(bench.data, seed).learnt
    maximum = None if bench.most is None else 20 * bench.most
    models = extra("sklearn.linear_model", "sklearn", "logistic regression")
    model = models.LogisticRegression(C=10.0, max_iter=1000)
    return model.fit(bench.encoded(learnt.texts[:maximum], kept=True), learnt.labels[:maximum])


def _normal(vectors: Vectors) -> Vectors:
    result: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return result


# -- the table -------------------------------------------------------------------------------------------------


def write_report(out: Path, *, readme: Path | None) -> None:
    """``table.md`` in a folder, and the same in the README."""
    rows = read_sweep(out / "pure.jsonl").rows
    text = "\n\n".join(_table(rows, covered) for covered in COVERED if any(_covers(row, covered) for row in rows))
    (out / "table.md").write_text(text + "\n", encoding="utf-8")
    write_between(readme, START, END, text)


def _covers(row: Row, covered: int) -> bool:
    return row.settings["covered"] in (0, covered)


def _table(rows: Sequence[Row], covered: int) -> str:
    groups: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        if _covers(row, covered):
            groups.setdefault((_name(row.settings), row.settings["budget"]), []).append(row)
    lines = [
        f"**A budget for up to {covered} words** (sentences of {WORDS}).",
        "",
        "| budget | words by | k | words that stay | cosine | sentiment | relinked |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    budgets = sorted({budget for _, budget in groups})
    for budget in budgets:
        names = [name for name, entry in groups if entry == budget]
        of_tem = [name for name in names if name.startswith("TEM")]
        # the best of TEM's, chosen by what is shown here: in its favour
        best = max(of_tem, key=lambda name, budget=budget: _mean(groups[name, budget], "cosine"), default="")
        for name in names:
            if name in of_tem and name != best:
                continue
            runs = groups[name, budget]
            visible = [_number(runs, entry) for entry in ("stays", "cosine", "sentiment", "relinked")]
            k = _mean(runs, "k")
            lines.append(
                f"| {f'{budget:g}' if budget else ''} | {name} | {f'{k:,.0f}' if k else ''} | {' | '.join(visible)} |"
            )
    return "\n".join(lines)


def _name(settings: Mapping[str, Any]) -> str:
    method, factor = settings["method"], settings["factor"]
    if method == "real":
        return "the sentences themselves"
    if method == "TEM":
        return f"TEM, epsilon {settings['rate']:g}"
    if method == "CusText":
        return "CusText (pure inside a group; groups are shown)"
    if method == "Madlib":
        return method
    if factor == 0.0:
        return "randomised response (k = 1)"
    of = f"`SubsetSelection`, {settings['similarity']}"
    return of if factor == 1.0 else f"{of}, {'a third of' if factor < 1 else 'three times'} the best k"


def _mean(runs: Sequence[Row], name: str) -> float:
    return float(np.mean([row.numbers[name] for row in runs]))


def _number(runs: Sequence[Row], name: str) -> str:
    if len(runs) < 2:
        return f"{_mean(runs, name):.3f}"
    result = mean_over_runs([row.numbers[name] for row in runs])
    return f"{result.value:.3f} ± {(result.high - result.low) / 2:.3f}"


if __name__ == "__main__":
    main()
