"""Every number that the five papers print, with our result: ``python -m papers.printed`` writes papers/README.md.

The experiments print the same tables for the user's own texts, without printed numbers.

A `Cell` is a number of a printed table or a point of a printed figure, with our result or the reason why there is none.
`Table` keeps the order of the paper, so that missing results are visible.
"""

from __future__ import annotations

import argparse
import csv
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from papers.dpnr import blogs_report
from papers.dpnr import printed as dpnr
from papers.dpnr import report as study_report
from papers.dpnr.servers import DROPOUT_AT, true_epsilon
from papers.dptext import methods
from papers.dptext import report as dptext_report
from papers.dpugc.results import Rows as ModelRows
from papers.dpugc.training_report import EPSILON as DPUGC_EPSILON
from papers.dpugc.training_report import PRINTED as DPUGC_DELTAS
from papers.ome import printed_report as ome
from papers.reports import join_sections
from papers.sweeps import Row
from papers.tem import report as tem

from dptext.intervals import Estimate, mean_over_runs

HERE = Path(__file__).resolve().parent
DPUGC, DPTEXT, OME, DPNR = (HERE / name / "results" for name in ("dpugc", "dptext", "ome", "dpnr"))
LEAKAGE = HERE / "leakage" / "results.csv"
NO_CLAIM = "none claimed, infinite"


@dataclass(frozen=True)
class Cell:
    """One printed number ("" if the text of the paper has none) and our estimate, or why there is none."""

    printed: str
    result: Estimate | str
    digits: int = 1

    @property
    def is_run(self) -> bool:
        return not isinstance(self.result, str)

    def __str__(self) -> str:
        result = self.result
        if isinstance(result, str):
            return f"{self.printed} / {result}" if self.printed else result
        value, low, high = (f"{number:.{self.digits}f}" for number in (result.value, result.low, result.high))
        text = f"{self.printed} / **{value}**" if self.printed else value
        if result.low == result.high:  # counted or computed, not estimated
            return text
        if math.isnan(result.high) or result.count == 1:
            return f"{text} (1 {result.of.removesuffix('s')})"
        return f"{text} [{low}, {high}]" + (f" ({result.count:,} {result.of})" if result.count else "")


@dataclass(frozen=True)
class Line:
    """A row of a printed table: its name, the claimed and true epsilon ("" without a mechanism), and the cells."""

    name: str
    epsilon: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    """A printed table, or a figure whose points are numbers in the text of the paper.

    ``place`` is "Table 1" and its topic. ``baselines`` are results without any text (the majority class, guessing, the
    mean) by column. ``note`` names replacements and the source of our numbers.
    """

    place: str
    columns: Sequence[str]
    lines: Sequence[Line]
    baselines: Sequence[tuple[str, Sequence[str]]] = ()
    note: str = ""

    @property
    def cells(self) -> list[Cell]:
        return [cell for line in self.lines for cell in line.cells if cell.printed]

    def __str__(self) -> str:
        has_epsilon = any(line.epsilon for line in self.lines)
        head = ["", *(["claimed, true epsilon"] if has_epsilon else []), *self.columns]
        rows = [head, ["---"] * len(head)]
        rows += [[line.name, *([line.epsilon] if has_epsilon else []), *map(str, line.cells)] for line in self.lines]
        rows += [[f"*{name}*", *([""] if has_epsilon else []), *values] for name, values in self.baselines]
        head = [f"**{self.place}.**", *filter(None, [self.note])]
        if self.cells:
            count = sum(cell.is_run for cell in self.cells)
            head.append(f"{count} of {len(self.cells)} printed numbers have a result of ours.")
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return f"{' '.join(head)}\n\n{table}"


@dataclass(frozen=True)
class Note:
    """A figure or table without a number in the text of the paper, and our counterpart."""

    place: str
    note: str

    def __str__(self) -> str:
        return f"**{self.place}.** {self.note}"


Sections = list[Table | Note]


def _over_runs(values: Sequence[float]) -> Estimate:
    """Return the mean over runs; a single run has no interval."""
    return mean_over_runs(values) if len(values) > 1 else Estimate(values[0], math.nan, math.nan, 1, "runs")


# -- dpUGC -------------------------------------------------------------------------------------------------------------

_TRUE = 8.0
"""The true epsilon of our private columns, for a user (add/remove, delta 1e-6)."""
_MEASURES = ("MAP-Word", "MAP-Char")
_SIZES = {
    "myPersonality, private": ("153,727", "22,043,394", "416,862,367"),
    "myPersonality, public": ("250", "9,917", "144,616"),
    "Text8": ("-", "-", "17,005,207"),
}
_NEIGHBOURS = {
    "(a) DP-Embedding": {"three": ("0", "3.814"), "eight": ("0.5", "0.1347"), "they": ("0", "0.4237")},
    "(b) Non-DP Embedding": {"three": ("0", "0.1288"), "eight": ("0.33", "0.3561"), "they": ("0", "0.2341")},
}
_BASELINES = {"SVR": "2.6563", "linear": "1.2903"}
_ERRORS = {
    20: ("1.7881", "3.5942", "1.2616", "1.2642"),
    200: ("2.4983", "2.0198", "1.2589", "1.2717"),
    500: ("2.7795", "3.6231", "1.2514", "1.2909"),
    1_000: ("3.2146", "2.0206", "1.2611", "1.262"),
    5_000: ("6.1596", "2.7472", "1.2577", "1.2642"),
    10_000: ("1.6396", "3.9155", "1.2768", "1.2574"),
    50_000: ("2.9438", "2.5769", "1.2574", "1.2556"),
    90_000: ("2.4033", "2.5175", "1.2585", "1.258"),
    100_000: ("2.6043", "2.0215", "1.2548", "1.262"),
}
"""RMSE of table 3 by the number of steps: DP-SVR, NoneDP-SVR, DP-LR, NoneDP-LR."""
_REGRESSIONS = ("Baseline-SVR", "DP-SVR", "NoneDP-SVR", "Baseline-LR", "DP-LR", "NoneDP-LR")


def dpugc_sections() -> Sections:
    text8 = ModelRows(DPUGC / "steps_text8.jsonl")
    part = f"its first {text8.constants['users']:,} thousand words, no more were available"
    reasons = {"Text8": part}
    sizes = [
        Line(name, "", [Cell("", "-") if size == "-" else Cell(size, reasons.get(name, "withdrawn")) for size in sizes])
        for name, sizes in _SIZES.items()
    ]
    return [
        Note(
            "Figure 1, a prank that shows passwords",
            "A picture; nothing is measured. Ours: [planted probes](dpugc/README.md#what-it-shows).",
        ),
        Note("Figure 2, a drawing", "Nothing to run."),
        Table(
            "Table 1, sizes of the data",
            ["users", "documents", "words"],
            sizes,
            note="Ours are 2,532 bloggers, WikiText-2 and IMDb reviews ([papers/dpugc](dpugc/README.md#what-is-done)).",
        ),
        Note(
            "Figure 3, MAP-Word and MAP-Char over steps",
            "Curves without numbers in the text; ours: [part two](dpugc/README.md#what-it-shows-part-two), with "
            "lists of random words and of the most frequent words.",
        ),
        _dpugc_neighbours(
            text8,
            ModelRows(DPUGC / "frequent_text8.jsonl"),
            "(0.125, 0.7926) for a pair",
            "Ours on a part of text8, against a gold model of the same texts, for a whole user instead of a pair. Some "
            "of the paper's scores of single queries exceed 1 (3.814). The words: "
            "[the nearest words](dpugc/README.md#what-it-shows).",
        ),
        _dpugc_regression(),
        Note(
            "Algorithm 1-b, a budget for each person",
            "The paper does not measure it. Ours, levels compared with one epsilon for all, users who state no level, "
            "and the algorithm as printed: [part three](dpugc/README.md#what-it-shows-part-three).",
        ),
    ]


def dpugc_tables(name: str, steps: ModelRows, frequent: ModelRows, spent: ModelRows, result: ModelRows) -> Sections:
    """Return the tables for the user's own texts, table 3 only with rows."""
    counts = [Cell("", f"{steps.constants[name]:,}") for name in ("users", "documents", "tokens")]
    left_out = result.constants.get("held out", 0)
    sizes = f"Without the {left_out} authors of table 3, whose texts train no vectors." if left_out else ""
    note = "Against a gold model of the same texts: word2vec without clipping and noise."
    sections: Sections = [
        Table("Table 1, sizes of the data", ["users", "documents", "words"], [Line(name, "", counts)], note=sizes),
        _dpugc_neighbours(steps, frequent, f"{_TRUE:g}", note),
    ]
    if not result:
        return [*sections, Note("Table 3, RMSE", "Left out: it needs a label that is a number, and 80 authors.")]
    lines = []
    for mark in filter(None, result.values("steps")):
        true = f"{_TRUE:g}, {spent.mean('spent', model='private', epsilon=_TRUE, steps=mark):.3g} for a user"
        lines.append(Line(f"{mark:,} steps", true, _errors(result, mark)))
    baseline = "always the mean", _always_the_mean(result)
    return [*sections, Table("Table 3, RMSE of the label", _REGRESSIONS, lines, [baseline])]


def _dpugc_neighbours(rows: ModelRows, frequent: ModelRows, claim: str, note: str) -> Table:
    """Return table 2: the score of three queries after the last step."""
    lines = []
    for part, (model, epsilon, claimed) in {
        "(a) DP-Embedding": ("private", _TRUE, f"{claim}, {_TRUE:g} for a user"),
        "(b) Non-DP Embedding": ("clipped", None, NO_CLAIM),
    }.items():
        last = max(rows.values("steps", model=model, epsilon=epsilon))
        runs = rows.select(model=model, epsilon=epsilon, steps=last)
        for query, numbers in _NEIGHBOURS[part].items():
            cells = [
                Cell(number, _over_runs([row.numbers[f"{measure} {query}"] for row in runs]), 3)
                for number, measure in zip(numbers, _MEASURES, strict=True)
            ]
            lines.append(Line(f"{part}, {query}", claimed, cells))
    blind = {
        "random words": [rows.mean(f"{measure} random") for measure in _MEASURES],
        "the most frequent words": [score and score.value for score in map(frequent.precision, _MEASURES)],
    }
    baselines = [(f"{name}, all 11 queries", [f"{value:.3f}" for value in values]) for name, values in blind.items()]
    return Table("Table 2, MAP of three queries", _MEASURES, lines, baselines, note)


def _dpugc_regression() -> Table:
    """Return table 3, with the delta that it prints for each number of steps."""
    result, delta = ModelRows(DPUGC / "training_age.jsonl"), ModelRows(DPUGC / "delta.jsonl")
    lines = []
    for steps in _ERRORS:
        (costs,) = delta.select(of="a pair of 50,000", steps=steps)
        exact = costs.numbers["moments delta"]
        cost = Cell(f"{DPUGC_DELTAS[steps]:.4f}", Estimate(exact, exact, exact, 0, ""), 4)
        claimed = f"({DPUGC_EPSILON:g}, {DPUGC_DELTAS[steps]:.4f}) for a pair, {_TRUE:g} for a user"
        lines.append(Line(f"{steps:,} steps", claimed, [*_errors(result, steps), cost]))
    return Table(
        "Table 3, RMSE",
        [*_REGRESSIONS, "delta at epsilon .125"],
        lines,
        [("always the mean", [*_always_the_mean(result), ""])],
        "Printed: extraversion of 250 people, where always the mean has .919. Ours: age of 500 bloggers, in years, so "
        "only the order can be compared; intervals over people and two runs. The delta is computed as the authors' "
        "code does; it is about one pair and takes the vocabulary for the number of pairs.",
    )


def _errors(result: ModelRows, steps: int) -> list[Cell]:
    """Return a row of table 3, without the delta."""
    cells = []
    printed = iter(_ERRORS.get(steps, [""] * 4))
    for learner, number in _BASELINES.items():
        baseline = result.estimate("RMSE", learner=learner, model="public words and characters")
        cells.append(Cell(number, baseline or "not run", 2))
        for model, epsilon in (("private", _TRUE), ("clipped", None)):
            estimate = result.estimate("RMSE", learner=learner, model=model, epsilon=epsilon, steps=steps)
            cells.append(Cell(next(printed), estimate or "not run: ours end at 400 steps", 2))
    return cells


def _always_the_mean(result: ModelRows) -> list[str]:
    mean = result.estimate("mean age", learner="SVR", model="public words and characters")
    return ["" if mean is None else f"{mean.value:.2f} [{mean.low:.2f}, {mean.high:.2f}]"] * len(_REGRESSIONS)


# -- DPText ------------------------------------------------------------------------------------------------------------


def dptext_sections() -> Sections:
    rows = dptext_report.Rows(DPTEXT / "table 1, topic, GloVe.jsonl")
    industries = sum(name.startswith("industry ") for name in rows.constants)
    note = (
        f"TrustPilot may not be redistributed. Ours: the topic of {rows.constants['posts']:,} blog posts "
        f"({rows.constants['folds']} folds, GloVe; intervals over {rows.constants['bloggers']} bloggers); the "
        f"author's industry, in {industries} groups, replaces the location; fresh attackers "
        "([papers/dptext](dptext/README.md#table-1-topic-glove))."
    )
    attributes = {"age": "age", "location": "industry", "gender": "gender"}
    return [dptext_table(rows, "sentiment", attributes, note)]


def dptext_table(rows: dptext_report.Rows, task: str, attributes: Mapping[str, str], note: str) -> Table:
    """Return table 1 and a mechanism with a proof; ``attributes`` are the paper's and their counterparts here."""
    lines = []
    for name, method, epsilon in (
        ("ORIGINAL", methods.ORIGINAL, None),
        ("DIFPRIV", methods.DIFPRIV, methods.CAP),
        ("ADV-ALL", methods.ADV_ALL, None),
        ("DPTEXT", methods.LEARNT_PRINTED, methods.CAP),
        ("ours, PrivUnit", methods.OURS, methods.MAIN),
    ):
        if (row := rows.get(method, epsilon)) is None:
            continue
        numbers = ["task accuracy", *(rows.best_attack(row, attribute) for attribute in attributes.values())]
        printed = [f"{value:.4f}" for value in dptext_report.PRINTED.get(name, ())] or [""] * len(numbers)
        cells = []
        for number, text in zip(numbers, printed, strict=False):
            values = [row.numbers[f"{number}{end}"] for end in ("", " low", " high")]
            cells.append(Cell(text, Estimate(*values, int(rows.constants["folds"]), "folds"), 3))
        true = "infinite" if rows.guarantee(row).startswith("none") else rows.guarantee(row)
        lines.append(Line(name, NO_CLAIM if epsilon is None else f"{epsilon:g}, {true}", cells))
    attacker = rows.attackers[0]
    blind = ["task accuracy blind", *(f"{entry} {attacker} macro-F1 blind" for entry in attributes.values())]
    baseline = "majority; guessing", [f"{rows.any[name]:.3f}" for name in blind]
    return Table(f"Table 1, {task} (accuracy) and attributes (F1)", [task, *attributes], lines, [baseline], note)


# -- TEM ---------------------------------------------------------------------------------------------------------------


def tem_sections() -> Sections:
    return [
        Note(
            "Figure 1 (a), accuracy over epsilon",
            "Its points, its epsilons and the numbers in the sentence about it are lost in the text of the paper. "
            "Ours: [at equal epsilon](tem/README.md#what-it-shows), TEM and Madlib at 1 to 10, true as claimed, five "
            "trials, with the majority class and no protection; in 300 dimensions "
            "[there](tem/README.md#in-300-dimensions).",
        ),
        Note(
            "Figure 1 (b), membership attack over epsilon",
            "No numbers in the text. Ours: [membership](tem/README.md#what-it-shows), the paper's attack and stronger "
            "ones, five trials, with the chance level.",
        ),
    ]


def tem_figures(rows: tem.Rows) -> Sections:
    """Return both figures as tables, for the user's own texts."""
    note = "Claimed: per unit of distance. True: for any two words, TEM / Madlib; n times as much for n words."
    attacks = {", the paper's attack": "shadow_auc", ", likelihood ratio": "online_auc"}
    tables: Sections = []
    for place, numbers, baseline, level in (
        ("Figure 1 (a), accuracy over epsilon", {"": "accuracy"}, "majority class", rows.majority),
        ("Figure 1 (b), membership attack over epsilon, AUC", attacks, "chance", 0.5),
    ):
        columns = {f"{kind}{name}": (kind, number) for name, number in numbers.items() for kind in ("TEM", "Madlib")}
        lines = []
        for epsilon in (0.0, *(setting["epsilon"] for setting in rows.settings("TEM"))):
            cells, bounds = [], {}
            for kind, number in columns.values():
                setting = {"mechanism": kind if epsilon else "none", "epsilon": epsilon, "arm": "epsilon"}
                cells.append(Cell("", rows.over_trials(setting, number) or "not run", 3))
                bounds[kind] = f"{rows.mean('epsilon of a word', **setting):.1f}"
            name, true = f"epsilon {epsilon:g}", f"{epsilon:g}, {' / '.join(bounds.values())}"
            lines.append(Line(name, true, cells) if epsilon else Line("no protection", NO_CLAIM, cells))
        tables.append(Table(place, list(columns), lines, [(baseline, [f"{level:.3f}"] * len(columns))], note))
    return tables


# -- OME ---------------------------------------------------------------------------------------------------------------


def ome_sections() -> Sections:
    return [
        Note("Figures 1 and 2, drawings", "Nothing to run."),
        *ome_tables(
            ome.Results(OME),
            ome.SETS,
            ome.SETS[:3],
            "True epsilon of sentiment / Intent / MRPC. MiniLM replaces BERT on Intent and MRPC "
            "([papers/ome](ome/README.md#the-papers-own-tables)). Lambda 100 is the row of epsilon 1 again.",
        ),
        Note(
            "Figure 3, probabilities of a bit over epsilon and lambda",
            "Curves without numbers in the text; ours, from the printed formulas: "
            "[figure3.png](ome/results/figure3.png).",
        ),
    ]


def ome_tables(results: ome.Results, sets: Sequence[str], compared: Sequence[str], note: str = "") -> Sections:
    """Return tables 1 and 2, the second with the sets on which the paper compares protocols."""

    def line(label: str, setting: ome.Setting, columns: Sequence[str] = sets) -> Line:
        cells = []
        for name in columns:
            printed = ome.printed_number(name, setting)
            result = results.estimate(name, setting) or "not run"
            cells.append(Cell("" if printed is None else f"{printed:.2f}", result))
        # SUE and OUE, and OME in their table, are about the sentiment sets only
        true = ome.true_epsilons(results, setting).split(" / ")[: 1 if columns is compared else None]
        return Line(label, NO_CLAIM if setting == ome.CLEAN else f"{setting[1]:g}, {' / '.join(true)}", cells)

    def majority(columns: Sequence[str]) -> tuple[str, list[str]]:
        estimates = [results.estimate(name, ome.CLEAN, "majority") for name in columns]
        return "majority class", ["" if estimate is None else f"{estimate.value:.1f}" for estimate in estimates]

    table1 = [line("NPNN", ome.CLEAN)]
    table1 += [line(f"epsilon {epsilon:g}", ("OME", epsilon, 100.0)) for epsilon in (0.5, 1.0, 5.0, 10.0)]
    table1 += [line(f"lambda {factor:g}", ("OME", 1.0, factor)) for factor in (1.0, 10.0, 50.0, 100.0)]
    protocols = (("SUE", None), ("OUE", None), ("OME", 100.0))
    table2 = [line(name, (name, 1.0, factor), compared) for name, factor in protocols]
    return [
        Table("Table 1, accuracy in per cent", sets, table1, [majority(sets)], note),
        Table("Table 2, accuracy in per cent", compared, table2, [majority(compared)]),
    ]


# -- DPNR in its study, with the tables of DPNR that the study repeats (figures 4 to 6) and its attack (section 1.2) ---

_RECOVERED = {
    "overlapping halves": ("situation 1, English", "33%"),
    "other people": ("situation 2", "18%"),
    "another source": ("situation 3", "0.7%"),
}
_TASKS = {dpnr.TP_US: "not run: no file of TrustPilot", dpnr.AG: "not run", dpnr.BLOG: "not run"}
"""The columns of figures 4 and 5, and the text of cells without rows."""
_AUTHORS = {dpnr.TP_US: "people", dpnr.AG: "texts", dpnr.BLOG: "bloggers"}
_RATIOS = (("gender", "female"), ("gender", "male"), ("age", "13-17"), ("age", "33-48"))
_GROUPS = (("gender", "female", "male less female"), ("age", "13-17", "33-48 less 13-17"))
_STUDY_FIGURES = ((7, 32), (8, 64))
_CLAIMED = 1.0
"""The claimed epsilon of ours in figure 6, where the paper does not print one."""


def dpnr_sections() -> Sections:
    tasks = {task: _task_rows(task) for task in _TASKS}
    note = (
        "TP-US may not be redistributed. GloVe means replace BERT; AG's official test rows, blogs' topics by a topic "
        f"model, one run of {tasks[dpnr.BLOG].constants['folds']} folds, intervals over authors "
        "([papers/dpnr](dpnr/README.md#task-topic))."
    )
    news, _ = _study_rows((dpnr.AS_LARGE, dpnr.AG_NEWS))
    polarity, polarity_name = _study_rows((dpnr.YELP, dpnr.IMDB))
    label = "Yelp" if polarity_name == dpnr.YELP else "Yelp (ours: IMDb)"
    sets = {"AG News": ("AG News", news), label: ("Yelp", polarity)}
    study = (
        f"Ours on {news.constants['trained']:,} texts of AG News and, for Yelp, on {polarity_name} "
        "([papers/dpnr](dpnr/README.md)); masks as the study's numbers suggest. Yelp's rows above mu .1 are lost in "
        "the text."
    )
    return [
        Note("Figure 1, a drawing", "Nothing to run."),
        _recovered_words(),
        Note("Figures 2 and 3, drawings", "Nothing to run."),
        *_figures_4_and_5(tasks, note),
        _figure_6(),
        *(_study_figure(*figure, sets, study) for figure in _STUDY_FIGURES),
    ]


def dpnr_tables(name: str, rows: blogs_report.Rows, study: study_report.Rows) -> list[object]:
    """Return figures 4 to 8 for the user's own texts; figure 6 and the attacks need attributes."""
    attacks = [blogs_report.attack_table(rows), blogs_report.fairness_table(name, rows)] if rows.attributes else []
    missing = Note("Figure 6 and attacks", "Left out: name private columns with --attribute.")
    figures = [_study_figure(*figure, {name: (dpnr.AG_NEWS, study)}) for figure in _STUDY_FIGURES]
    return [*_figures_4_and_5({name: rows}), *(attacks or [missing]), *figures]


def _recovered_words() -> Table:
    with LEAKAGE.open(encoding="utf-8", newline="") as stream:
        rows = [
            row for row in csv.DictReader(stream) if row["first_vectors"] == "by word" and row["known_pairs"] == "0"
        ]
    by_situation = {row["situation"]: row for row in rows}
    lines = []
    for situation, (name, number) in _RECOVERED.items():
        row = by_situation[situation]
        values = [100 * float(row[entry]) for entry in ("recovered", "low", "high")]
        result = Estimate(*values, int(row["victim_words"]), "words")
        lines.append(Line(name, "", [Cell(number, result), Cell("", f"{100 * float(row['chance']):.3f}")]))
    french = "not run: its French sentences are not available"
    lines.insert(1, Line("situation 1, French", "", [Cell("41%", french), Cell("", "")]))
    return Table(
        "Section 1.2, words recovered by their five nearest, per cent",
        ["recovered", "chance"],
        lines,
        note="Word2vec claims nothing. Blogs and WikiText-2 replace sentences for learners, questions and tweets; one "
        "training each, intervals over words ([papers/leakage](leakage/README.md)).",
    )


def _task_rows(task: str) -> blogs_report.Rows:
    return blogs_report.Rows(DPNR / f"{'blogs' if task == dpnr.BLOG else 'reviews'} {task}.jsonl")


def _figures_4_and_5(tasks: Mapping[str, blogs_report.Rows], note: str = "") -> list[Table]:
    """Return both figures; a task without rows has its reason in `_TASKS`."""
    columns = [{dpnr.TP_US: "TP-US", dpnr.AG: "AG", dpnr.BLOG: "BLOG"}.get(task, task) for task in tasks]
    blind = [f"{100 * rows.any['task accuracy blind']:.1f}" if rows else "" for rows in tasks.values()]
    tables = []
    for place, kind in (("Figure 4, accuracy over epsilon", "epsilon"), ("Figure 5, accuracy over mu", "mu")):
        lines = []
        for name in dpnr.ACCURACY[dpnr.BLOG]:
            epsilon, claimed, mu = NO_CLAIM, None, 0.0
            if name != "no noise":
                if not name.startswith(kind):
                    continue
                value = float(name.partition(" ")[2])
                claimed, mu = (value, 0.0) if kind == "epsilon" else (_CLAIMED, value)
                width = next(int(rows.constants["width"]) for rows in tasks.values() if rows)
                epsilon = f"{claimed:g}, {true_epsilon('DPNR', claimed, width):g}"
            cells = []
            for task, rows in tasks.items():
                row = rows.get(blogs_report.DPNR if claimed else blogs_report.NONE, claimed, mu)
                result = _TASKS.get(task, "not run") if row is None else _per_cent(task, rows, row, "task accuracy")
                cells.append(Cell(f"{dpnr.ACCURACY.get(task, dpnr.ACCURACY[dpnr.BLOG])[name]:.2f}", result))
            lines.append(Line(name, epsilon, cells))
        tables.append(Table(f"{place}, per cent", columns, lines, [("majority class", blind)], note))
    return tables


def _per_cent(task: str, rows: blogs_report.Rows, row: Row, name: str) -> Estimate:
    value, low, high = (100 * row.numbers[f"{name}{end}"] for end in ("", " low", " high"))
    return Estimate(value, low, high, int(rows.constants.get("bloggers", 0)), _AUTHORS.get(task, "people"))


def _figure_6() -> Table:
    lines = []
    for task, label in ((dpnr.TP_US, "TP-US"), (dpnr.BLOG, "BLOG")):
        rows = _task_rows(task)
        shares = [
            Estimate(*[100 * rows.constants[f"{attribute} {group}"]] * 3, 0, "") if rows else _TASKS[task]
            for attribute, group in _RATIOS
        ]
        ratios = [str(value) for pair in dpnr.RATIOS[task].values() for value in pair]
        cells = [Cell(ratio, share, 0) for ratio, share in zip(ratios, shares, strict=True)]
        lines.append(Line(f"{label}, ratio", "", cells))
        for name, groups in dpnr.FAIRNESS[task].items():
            row = {"no noise": rows.get(blogs_report.NONE), "DPNR": rows.get(blogs_report.DPNR, _CLAIMED)}.get(name)
            reason = "not run" if name == "adversarial" else _TASKS[task]
            cells = []
            for attribute, first, gap in _GROUPS:
                texts = f"{groups[attribute][0]:.2f}", f"{groups[attribute][1]:+.2f}"
                for text, number in zip(texts, (first, f"gap {gap}"), strict=True):
                    result = reason if row is None else _per_cent(task, rows, row, f"{attribute} {number}")
                    cells.append(Cell(text, result))
            epsilon = NO_CLAIM if name != "DPNR" else "not printed"
            if name == "DPNR" and row is not None:
                true = true_epsilon("DPNR", _CLAIMED, int(rows.constants["width"]))
                epsilon += f"; ours {_CLAIMED:g}, {true:g}"
            lines.append(Line(f"{label}, {name}", epsilon, cells))
    return Table(
        "Figure 6, fairness: accuracy of a group and the gap to the other, per cent",
        ["women", "men minus women", "young", "old minus young"],
        lines,
        note="As figure 4. Adversarial training on the blogs: [papers/dptext](dptext/README.md).",
    )


def _study_figure(
    figure: int, dimension: int, sets: Mapping[str, tuple[str, study_report.Rows]], note: str = ""
) -> Table:
    """Return figure 7 or 8: the study's own model, which is ours; ``sets``: printed name and rows by column."""
    trainings = dpnr.TRAININGS if dimension == 64 else dpnr.TRAININGS[:2]
    lines = []
    for name in ("no noise", *dpnr.ROWS):
        kind, _, value = name.partition(" ")
        claimed = float(value) if kind == "epsilon" else DROPOUT_AT
        epsilon = NO_CLAIM if name == "no noise" else f"{claimed:g}, {true_epsilon('DPNR', claimed, dimension):g}"
        cells = []
        for data, rows in sets.values():
            for training in trainings:
                number = dpnr.printed(data, dimension, training, name)
                if name == "no noise":
                    number = dpnr.CLEAN[data, dimension] if training == "plain" else None
                cells.append(_study_cell(rows, number, name, dimension, training, claimed))
        lines.append(Line(name, epsilon, cells))
    majorities = [f"{rows.constants['majority']:.3f}" for _, rows in sets.values() for _ in trainings]
    return Table(
        f"Figure {figure}, d = {dimension}",
        [f"{label}, {training}" for label in sets for training in trainings],
        lines,
        [("majority class", majorities)],
        note,
    )


def _study_rows(names: tuple[str, ...]) -> tuple[study_report.Rows, str]:
    """Return the rows of the first set that was run, nearest to the study's procedure."""
    for name in names:
        if rows := study_report.Rows(DPNR / f"printed {name}.jsonl"):
            return rows, name
        if rows := study_report.Rows(DPNR / f"study {name}.jsonl"):
            return rows.use_token_masks() if rows.has_token_masks else rows, name
    raise FileNotFoundError(f"no rows of {' or '.join(names)}: run papers.dpnr.experiment first")


def _study_cell(
    rows: study_report.Rows, number: float | None, name: str, dimension: int, training: str, claimed: float
) -> Cell:
    if number is None:
        return Cell("", "not in the text" if name.startswith("mu") else "")
    server = study_report.server_settings("DPNR", dimension, training, claimed)
    runs = rows.runs("clean" if name == "no noise" else name, **server)
    return Cell(f"{number:.2f}", _over_runs(runs) if runs else "not run", 3)


# -- the user's own texts ----------------------------------------------------------------------------------------------


def print_own(options: argparse.Namespace, sections: Iterable[object]) -> None:
    """Write tables of the user's own texts to ``own.md``, without the printed numbers, and print them."""
    head = f"For you alone: these numbers are computed from the texts of {options.data.name!r}, without noise."
    parts = [head]
    for section in sections:
        if isinstance(section, Table):
            lines = [replace(line, cells=[replace(cell, printed="") for cell in line.cells]) for line in section.lines]
            section = replace(section, lines=lines)
        parts += str(section).split("\n\n")
    (options.out / "own.md").write_text(join_sections(parts), encoding="utf-8")
    print("\n\n".join(_align(part) if part.startswith("|") else textwrap.fill(part, 100) for part in parts))


def _align(text: str) -> str:
    """Return a Markdown table with columns of equal width."""
    rows = [line[2:-2].split(" | ") for place, line in enumerate(text.splitlines()) if place != 1]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows)


# -- the page ----------------------------------------------------------------------------------------------------------

PAPERS: dict[str, tuple[str, Callable[[], Sections]]] = {
    "dpUGC (Vu, Tran and Jiang 2019)": ("dpugc", dpugc_sections),
    "DPText (Beigi et al. 2019)": ("dptext", dptext_sections),
    "TEM (Carvalho, Vasiloudis and Feyisetan 2021)": ("tem", tem_sections),
    "OME (Lyu et al. 2020)": ("ome", ome_sections),
    "DPNR (Lyu, He and Li 2020), in the study of Zouhri and Abecidan 2021": ("dpnr", dpnr_sections),
}
_HEAD = """# The five papers, number by number

Every number that the five papers print in a table, or in a figure whose points are in the text, with our result or the
reason why there is none. A cell: printed / **ours** [95% interval] (sample size). *Claimed, true epsilon*: the paper's
claim, and the proved value for any two texts or people ([docs/papers](../docs/papers/index.md) gives the reasons). The
last lines of a table are baselines that use no text.

`python -m papers.printed` writes this page from the rows in `papers/*/results`; a test compares. papers/synthesis,
papers/sentences, papers/summary, papers/referee and papers/collector repeat no paper.

## Your own texts

`python -m papers.NAME.experiment --quick --data my.csv --text text --label label` (NAME: dpugc, dptext, tem, ome, dpnr)
prints the tables of a paper for a csv, jsonl, parquet or xlsx file, in under two minutes; without `--quick` it takes
hours. `--user` names the column of the author, `--attribute` private columns to attack; parts that need a missing
column are left out. A table has the claimed and the true epsilon, and every baseline that uses no text. **Its numbers
are measured on your texts without noise: they are for you alone.** `--quick` draws 1,000 to 2,000 rows with a fixed
seed, and rows of classes with fewer than 6 authors are left out. Rows are stored in `papers/NAME/own`, which git
ignores."""


def text() -> str:
    lines = [
        "| paper | printed numbers | with a result of ours | figures without numbers in the text |",
        "|---|---:|---:|---:|",
    ]
    bodies = []
    for heading, (folder, make_sections) in PAPERS.items():
        sections = make_sections()
        cells = [cell for section in sections if isinstance(section, Table) for cell in section.cells]
        notes = sum(isinstance(section, Note) and section.place.startswith("Figure") for section in sections)
        lines.append(f"| {heading} | {len(cells)} | {sum(cell.is_run for cell in cells)} | {notes} |")
        link = f"Same, replaced and not run: [{folder}]({folder}/README.md)."
        bodies.append("\n\n".join([f"## {heading}", link, *map(str, sections)]))
    return "\n\n".join([_HEAD, "\n".join(lines), *bodies]) + "\n"


if __name__ == "__main__":
    (HERE / "README.md").write_text(text(), encoding="utf-8")
