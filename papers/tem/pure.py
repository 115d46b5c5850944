"""Word mechanisms at one pure epsilon per document: utility and relinking; see README.md.

Command: ``python -m papers.tem.pure [--quick] [--data FOLDER]``. Rows: ``results-pure/pure.jsonl``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import LabelledTexts, yelp
from papers.reports import mean_of, number_of, parse_options, run_command, table, write_tables
from papers.sweeps import Row, read_sweep, sweep
from papers.synthesis.corpus import CachedSentences, shuffled, unit_rows

from dptext import TEM, CusText, Madlib, SubsetSelection, WordVectors, load_vectors
from dptext.errors import extra
from dptext.words.mechanism import WordMechanism

HERE = Path(__file__).resolve().parent
START, END = "<!-- pure budgets: written by the experiment -->", "<!-- end of pure budgets -->"
BUDGETS = (50.0, 100.0, 250.0, 500.0)
COVERED = (32, 12)
"""Numbers of words that a budget covers."""
WORDS = 12
"""Words of a sentence."""
MAX_WORD_EPSILON = 35.0
"""Words stay long before, and the channel takes little more."""
TEM_EPSILONS = (1.0, 2.0, 4.0, 8.0)
"""Per unit of distance; the threshold follows from the budget."""

_SENTENCES, _LEARNED = 300, 6000
_BATCH = 64  # words whose distributions are computed together
_IMPOSSIBLE = -1e6  # replaces ln 0

Vectors = npt.NDArray[np.float32]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options("Word mechanisms at one pure budget for a document.", HERE, arguments, part="pure")
    if not options.report:
        has_model = not options.quick or find_spec("sentence_transformers") is not None
        bench = Bench(options.data, 40 if options.quick else None, has_model)
        settings = list(settings_of(quick=options.quick))
        seeds = range(1, 3 if options.quick else 6)
        sweep(bench.cell, settings, seeds, path=options.out / "pure.jsonl", name="words at a pure budget")
    write_report(options.out, readme=options.readme)


def settings_of(*, quick: bool) -> Iterator[dict[str, Any]]:
    usual = {"method": "real", "budget": 0.0, "covered": 0, "similarity": "", "factor": 0.0, "rate": 0.0}
    cosine = {"method": "SubsetSelection", "similarity": "cosine", "factor": 1.0}
    yield usual
    for covered in COVERED[1:] if quick else COVERED:
        for budget in (250.0,) if quick else BUDGETS:
            setting = usual | {"budget": budget, "covered": covered}
            yield setting | cosine
            for rate in TEM_EPSILONS[1:2] if quick else TEM_EPSILONS:
                yield setting | {"method": "TEM", "rate": rate}
            yield setting | {"method": "Madlib"}
            if not quick:
                yield from (setting | cosine | {"factor": factor} for factor in (0.0, 1 / 3, 3.0))
                yield setting | cosine | {"similarity": "euclidean"}
                yield setting | {"method": "CusText"}


# -- a cell ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """The folder of the data sets, and the size of the experiment.

    ``limit``: maximum number of private sentences; there are 20 times as many training sentences. None: all.
    """

    data: Path  # the folder
    limit: int | None = None
    model: bool = True  # whether there is a sentence model; otherwise means of word vectors replace it

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        split = _split(self.data, seed)
        words, labels = split.words[: self.limit], split.labels[: self.limit]
        if settings["method"] == "real":
            output, result = words, {"stays": 1.0, "relinked": 1.0, "k": 0.0}
        else:
            mechanism = mechanism_of(settings)
            output = np.array(mechanism.sample(words.ravel().tolist(), seed=seed)).reshape(words.shape)
            result = {
                "stays": float((output == words).mean()),
                "relinked": relinked(mechanism, words, output),
                "k": float(mechanism.size) if isinstance(mechanism, SubsetSelection) else 0.0,
            }
        before, after = (self.encode([" ".join(row) for row in part.tolist()]) for part in (words, output))
        result["cosine"] = float((unit_rows(before) * unit_rows(after)).sum(axis=1).mean())
        result["sentiment"] = float((_polarity(self, seed).predict(after) == labels).mean())
        return result

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (n, d) vectors of texts."""
        if not self.model:
            return np.stack([np.mean([_word_vectors()[word] for word in text.split()], axis=0) for text in texts])
        return _sentences().encode(texts)


def mechanism_of(settings: Mapping[str, Any]) -> WordMechanism:
    """Return a mechanism whose epsilon for any two documents of the covered length is at most the budget.

    The guarantee of CusText holds within groups of words only, and the group of each word is visible.
    """
    vectors, budget, covered = _word_vectors(), settings["budget"], settings["covered"]
    match settings["method"]:
        case "TEM":
            return TEM(vectors, epsilon=settings["rate"], document_epsilon=budget, max_words=covered)
        case "Madlib":
            return Madlib(vectors, epsilon=budget / covered / vectors.diameter_bound)
        case "CusText":
            return CusText(vectors, epsilon=budget / covered)
    epsilon = min(budget / covered, MAX_WORD_EPSILON)
    options: dict[str, Any] = {"epsilon": epsilon, "similarity": settings["similarity"]}
    factor = settings["factor"]
    if factor == 0.0:
        return SubsetSelection(vectors, size=1, **options)
    best = SubsetSelection(vectors, **options)
    if factor == 1.0:
        return best
    return SubsetSelection(vectors, size=min(max(1, round(factor * best.size)), len(vectors) // 2), **options)


def relinked(mechanism: WordMechanism, private: npt.NDArray[Any], output: npt.NDArray[Any]) -> float:
    """Return how often the best attacker, who knows all private sentences and the mechanism, names the right one.

    The guess is the sentence that makes the words of the output most likely. For a mechanism without a known
    distribution (Madlib) it is the nearest one, which may not be the best guess.
    """
    inputs, input_codes = np.unique(private, return_inverse=True)
    outputs, output_codes = np.unique(output, return_inverse=True)
    input_codes, output_codes = input_codes.reshape(private.shape), output_codes.reshape(output.shape)
    row = mechanism.vectors.vocabulary.row
    columns = [row(word) for word in outputs.tolist()]
    logs = np.empty((inputs.size, outputs.size))
    distributions = getattr(mechanism, "distributions", None)
    for start in range(0, inputs.size, _BATCH):
        words = inputs[start : start + _BATCH].tolist()
        if distributions is None:
            points = mechanism.vectors.matrix[[row(word) for word in words]].astype(np.float64)
            difference = points[:, None] - mechanism.vectors.matrix[columns]
            logs[start : start + len(words)] = -np.sqrt((difference**2).sum(axis=2))
        else:
            shares = distributions(words)[:, columns]
            logs[start : start + len(words)] = np.log(shares, where=shares > 0, out=np.full(shares.shape, _IMPOSSIBLE))
    score = np.zeros((len(private), len(output)))
    for place in range(private.shape[1]):
        score += logs[np.ix_(input_codes[:, place], output_codes[:, place])]
    best = score >= score.max(axis=0) - 1e-9
    return float((best.diagonal() / best.sum(axis=0)).mean())


@dataclass(frozen=True, eq=False)
class Split:
    words: npt.NDArray[Any]  # (300, 12) words of private sentences; only words distinguish them
    labels: npt.NDArray[np.intp]  # (300,) whether each is positive
    learned: LabelledTexts  # 6,000 other sentences


@cache
def _split(data: Path, seed: int) -> Split:
    sentences = yelp(data)
    order = shuffled(len(sentences.texts), seed).tolist()
    words = {row: [word for word in sentences.texts[row].split() if word.isalpha()] for row in order}
    distinct: dict[tuple[str, ...], int] = {}
    for row in order:
        if len(words[row]) == WORDS:
            distinct.setdefault(tuple(words[row]), row)
    private = list(distinct.values())[:_SENTENCES]
    chosen = set(private)
    others = [row for row in order if row not in chosen][:_LEARNED]
    return Split(np.array([words[row] for row in private]), sentences.labels[private], sentences.take(others))


@cache
def _word_vectors() -> WordVectors:
    return load_vectors("glove-6b-50d", limit=50_000)


@cache
def _sentences() -> CachedSentences:
    return CachedSentences(128)


@cache
def _polarity(bench: Bench, seed: int) -> Any:
    """Return a classifier of positive and negative sentences by their vectors, trained on other sentences."""
    learned = _split(bench.data, seed).learned
    limit = None if bench.limit is None else 20 * bench.limit
    model = extra("sklearn.linear_model", "sklearn", "logistic regression").LogisticRegression(C=10.0, max_iter=1000)
    return model.fit(bench.encode(learned.texts[:limit]), learned.labels[:limit])


# -- the table -------------------------------------------------------------------------------------------------


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``table.md`` into a folder, and the same into the README."""
    rows = read_sweep(out / "pure.jsonl").rows
    parts = {covered: [row for row in rows if row.settings["covered"] in (0, covered)] for covered in COVERED}
    sections = [_table(part, covered) for covered, part in parts.items() if part]
    write_tables(out / "table.md", sections, readme=readme, start=START, end=END)


def _table(rows: Sequence[Row], covered: int) -> str:
    groups: dict[tuple[str, Any], list[Row]] = {}
    for row in rows:
        groups.setdefault((_name(row.settings), row.settings["budget"]), []).append(row)
    lines = []
    for budget in sorted({budget for _, budget in groups}):
        names = [name for name, entry in groups if entry == budget]
        tem = {name: mean_of(groups[name, budget], "cosine") for name in names if name.startswith("TEM")}
        best = max(tem, key=tem.__getitem__, default="")  # by the displayed numbers: in favour of TEM
        for name in names:
            if name in tem and name != best:
                continue
            runs = groups[name, budget]
            k = mean_of(runs, "k")
            numbers = [number_of(runs, entry) for entry in ("stays", "cosine", "sentiment", "relinked")]
            lines.append([f"{budget:g}" if budget else "", name, f"{k:,.0f}" if k else "", *numbers])
    head = ["budget", "words by", "k", "words that stay", "cosine", "sentiment", "relinked"]
    return f"**A budget for up to {covered} words** (sentences of {WORDS}).\n\n{table(head, lines, text_columns=2)}"


def _name(settings: Mapping[str, Any]) -> str:
    method, factor = settings["method"], settings["factor"]
    names = {"real": "the sentences themselves", "CusText": "CusText (pure inside a group; groups are visible)"}
    if method == "TEM":
        return f"TEM, epsilon {settings['rate']:g}"
    if method != "SubsetSelection":
        return names.get(method, method)
    if factor == 0.0:
        return "randomised response (k = 1)"
    name = f"`SubsetSelection`, {settings['similarity']}"
    return name if factor == 1.0 else f"{name}, {'a third of' if factor < 1 else 'three times'} the best k"


if __name__ == "__main__":
    run_command(main)
