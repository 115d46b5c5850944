"""The study of DPNR, with the tables of DPNR that it repeats (figures 4 to 6) and its own attack (section 1.2)."""

from __future__ import annotations

import csv
from pathlib import Path

from papers.dpnr.blogs_report import DPNR, NONE
from papers.dpnr.blogs_report import Rows as BlogRows
from papers.dpnr.printed import (
    ACCURACY,
    AG,
    AG_NEWS,
    AS_LARGE,
    BLOG,
    CLEAN,
    FAIRNESS,
    IMDB,
    RATIOS,
    ROWS,
    TP_US,
    TRAININGS,
    YELP,
    printed,
)
from papers.dpnr.results import Rows
from papers.dpnr.servers import DROPOUT_AT, true_epsilon
from papers.printed.tables import NO_CLAIM, Cell, Line, Note, Table, over_runs
from papers.sweeps import Row

from dptext.intervals import Estimate

RESULTS = Path(__file__).resolve().parents[1] / "dpnr" / "results"
LEAKAGE = Path(__file__).resolve().parents[1] / "leakage" / "results.csv"
_RECOVERED = {
    "overlapping halves": ("situation 1, English", "33%"),
    "other people": ("situation 2", "18%"),
    "another source": ("situation 3", "0.7%"),
}
_TASKS = {TP_US: "not run: no file of TrustPilot", AG: "not run", BLOG: "not run"}
"""The columns of figures 4 and 5, and the text of cells without rows."""
_AUTHORS = {TP_US: "people", AG: "texts", BLOG: "bloggers"}
_RATIOS = (("gender", "female"), ("gender", "male"), ("age", "13-17"), ("age", "33-48"))
_GROUPS = (("gender", "female", "male less female"), ("age", "13-17", "33-48 less 13-17"))
_CLAIMED = 1.0
"""The claimed epsilon of ours in figure 6, where the paper does not print one."""


def sections() -> list[Table | Note]:
    return [
        Note("Figure 1, a drawing", "Nothing to run."),
        _recovered_words(),
        Note("Figures 2 and 3, drawings", "Nothing to run."),
        _figures_4_and_5("Figure 4, accuracy over epsilon, per cent", "epsilon"),
        _figures_4_and_5("Figure 5, accuracy over mu, per cent", "mu"),
        _figure_6(),
        _study_figure(7, 32),
        _study_figure(8, 64),
    ]


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
        if situation == "overlapping halves":
            french = "not run: its French sentences are not available"
            lines.append(Line("situation 1, French", "", [Cell("41%", french), Cell("", "")]))
    return Table(
        "Section 1.2, words recovered by their five nearest, per cent",
        ["recovered", "chance"],
        lines,
        note="Word2vec claims nothing. Blogs and WikiText-2 replace sentences for learners, questions and tweets; one "
        "training each, intervals over words ([papers/leakage](leakage/README.md)).",
    )


def _rows_of(task: str) -> BlogRows:
    return BlogRows(RESULTS / f"{'blogs' if task == BLOG else 'reviews'} {task}.jsonl")


def _figures_4_and_5(place: str, kind: str) -> Table:
    tasks = {task: _rows_of(task) for task in _TASKS}
    width = int(tasks[BLOG].constants["width"])
    lines = []
    for name in ACCURACY[BLOG]:
        epsilon, claimed, mu = NO_CLAIM, None, 0.0
        if name != "no noise":
            if not name.startswith(kind):
                continue
            value = float(name.partition(" ")[2])
            claimed, mu = (value, 0.0) if kind == "epsilon" else (_CLAIMED, value)
            epsilon = f"{claimed:g}, {true_epsilon('DPNR', claimed, width):g}"
        cells = []
        for task, rows in tasks.items():
            row = rows.get(DPNR if claimed else NONE, claimed, mu)
            result = _TASKS[task] if row is None else _per_cent(task, rows, row, "task accuracy")
            cells.append(Cell(f"{ACCURACY[task][name]:.2f}", result))
        lines.append(Line(name, epsilon, cells))
    blind = [f"{100 * rows.any['task accuracy blind']:.1f}" if rows else "" for rows in tasks.values()]
    return Table(
        place,
        ["TP-US", "AG", "BLOG"],
        lines,
        [("majority class", blind)],
        "TP-US may not be redistributed. GloVe means replace BERT; AG's official test rows, blogs' topics by a topic "
        f"model, one run of {tasks[BLOG].constants['folds']} folds, intervals over authors "
        "([papers/dpnr](dpnr/README.md#task-topic)).",
    )


def _per_cent(task: str, rows: BlogRows, row: Row, name: str) -> Estimate:
    value, low, high = (100 * row.numbers[f"{name}{end}"] for end in ("", " low", " high"))
    return Estimate(value, low, high, int(rows.constants.get("bloggers", 0)), _AUTHORS[task])


def _figure_6() -> Table:
    lines = []
    for task, label in ((TP_US, "TP-US"), (BLOG, "BLOG")):
        rows = _rows_of(task)
        shares = [
            Estimate(*[100 * rows.constants[f"{attribute} {group}"]] * 3, 0, "") if rows else _TASKS[task]
            for attribute, group in _RATIOS
        ]
        ratios = [str(value) for pair in RATIOS[task].values() for value in pair]
        cells = [Cell(ratio, share, 0) for ratio, share in zip(ratios, shares, strict=True)]
        lines.append(Line(f"{label}, ratio", "", cells))
        for name, groups in FAIRNESS[task].items():
            row = {"no noise": rows.get(NONE), "DPNR": rows.get(DPNR, _CLAIMED)}.get(name)
            why = "not run" if name == "adversarial" else _TASKS[task]
            cells = []
            for attribute, first, gap in _GROUPS:
                texts = f"{groups[attribute][0]:.2f}", f"{groups[attribute][1]:+.2f}"
                for text, number in zip(texts, (first, f"gap {gap}"), strict=True):
                    cells.append(
                        Cell(text, why if row is None else _per_cent(task, rows, row, f"{attribute} {number}"))
                    )
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


def _study_figure(figure: int, dimension: int) -> Table:
    """Figures 7 and 8: the study's own model, which is ours."""
    trainings = TRAININGS if dimension == 64 else TRAININGS[:2]
    news, _ = _study_rows((AS_LARGE, AG_NEWS))
    polarity, polarity_name = _study_rows((YELP, IMDB))
    sets = {"AG News": news, "Yelp": polarity}
    labels = {"AG News": "AG News", "Yelp": "Yelp" if polarity_name == YELP else "Yelp (ours: IMDb)"}
    lines = []
    for name in ("no noise", *ROWS):
        kind, _, value = name.partition(" ")
        claimed = float(value) if kind == "epsilon" else DROPOUT_AT
        epsilon = NO_CLAIM if name == "no noise" else f"{claimed:g}, {true_epsilon('DPNR', claimed, dimension):g}"
        cells = []
        for data, rows in sets.items():
            for training in trainings:
                number = printed(data, dimension, training, name)
                if name == "no noise":
                    number = CLEAN[data, dimension] if training == "plain" else None
                cells.append(_study_cell(rows, number, name, dimension, training, claimed))
        lines.append(Line(name, epsilon, cells))
    return Table(
        f"Figure {figure}, d = {dimension}",
        [f"{labels[data]}, {training}" for data in sets for training in trainings],
        lines,
        [("majority class", [f"{rows.constants['majority']:.3f}" for rows in sets.values() for _ in trainings])],
        f"Ours on {news.constants['trained']:,} texts of AG News and, for Yelp, on {polarity_name} "
        "([papers/dpnr](dpnr/README.md)); masks as the study's numbers suggest. Yelp's rows above mu .1 are lost in "
        "the text.",
    )


def _study_rows(names: tuple[str, ...]) -> tuple[Rows, str]:
    """Return the rows of the first set that was run, nearest to the study's procedure."""
    for name in names:
        if rows := Rows(RESULTS / f"printed {name}.jsonl"):
            return rows, name
        if rows := Rows(RESULTS / f"study {name}.jsonl"):
            return rows.use_token_masks() if rows.has_token_masks else rows, name
    raise FileNotFoundError(f"no rows of {' or '.join(names)}: run papers.dpnr.experiment first")


def _study_cell(rows: Rows, number: float | None, name: str, dimension: int, training: str, claimed: float) -> Cell:
    if number is None:
        return Cell("", "not in the text" if name.startswith("mu") else "")
    server = {"epsilon": claimed} if training == "robust" else {}
    column = "clean" if name == "no noise" else name
    runs = rows.runs(column, mechanism="DPNR", dimension=dimension, training=training, **server)
    return Cell(f"{number:.2f}", over_runs(runs) if runs else "not run", 3)
