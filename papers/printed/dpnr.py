"""Paper 004: a study of DPNR, with the tables of DPNR that it repeats (figures 4 to 6)."""

from __future__ import annotations

import math
from pathlib import Path

from papers.dpnr.blogs_cells import DPNR, NONE
from papers.dpnr.blogs_printed import ACCURACY, AG, BLOG, FAIRNESS, RATIOS, TP_US
from papers.dpnr.blogs_report import Rows as BlogRows
from papers.dpnr.printed import CLEAN, ROWS, TRAININGS, printed
from papers.dpnr.results import Rows
from papers.dpnr.servers import DROPOUT_AT, true_epsilon
from papers.dpnr.sets import AG_NEWS, AS_LARGE, IMDB, YELP
from papers.printed import leakage
from papers.printed.cells import NO_CLAIM, Cell, Line, Note, Table
from papers.sweeps import Row

from dptext.intervals import Estimate, mean_over_runs

RESULTS = Path(__file__).resolve().parents[1] / "dpnr" / "results"
_TASKS = {TP_US: "not run: no file of TrustPilot", AG: "not run", BLOG: "not run"}
"""The columns of figures 4 and 5, and what is said where there are no rows."""
_PEOPLE = {TP_US: "people", AG: "texts", BLOG: "bloggers"}
"""Whose texts the intervals are over."""
_RATIOS = {"gender": ("female", "male"), "age": ("13-17", "33-48")}
_GROUPS = (("gender", "female", "male less female"), ("age", "13-17", "33-48 less 13-17"))
_SHOWN = 1.0
"""The claimed epsilon of ours in figure 6, where the paper does not say its own."""


def sections() -> list[Table | Note]:
    return [
        Note("Figure 1, a drawing", "Nothing to run."),
        *leakage.sections(),
        Note("Figures 2 and 3, drawings", "Nothing to run."),
        _figures_4_and_5("Figure 4, accuracy over epsilon, per cent", "epsilon"),
        _figures_4_and_5("Figure 5, accuracy over mu, per cent", "mu"),
        _figure_6(),
        _of_study(7, 32),
        _of_study(8, 64),
    ]


def _of_task(task: str) -> BlogRows:
    return BlogRows(RESULTS / f"{'blogs' if task == BLOG else 'reviews'} {task}.jsonl")


def _figures_4_and_5(place: str, kind: str) -> Table:
    result = {task: _of_task(task) for task in _TASKS}
    width = int(result[BLOG].constants["width"])
    lines = []
    for name in ACCURACY[BLOG]:
        if name != "no noise" and not name.startswith(kind):
            continue
        epsilon, claimed, mu = NO_CLAIM, None, 0.0
        if name != "no noise":
            value = float(name.partition(" ")[2])
            claimed, mu = (value, 0.0) if kind == "epsilon" else (_SHOWN, value)
            epsilon = f"{claimed:g}, {true_epsilon('DPNR', claimed, width):g}"
        cells = []
        for task, rows in result.items():
            row = rows.get(DPNR if claimed else NONE, claimed, mu)
            ours = _TASKS[task] if row is None else _of_blogs(task, rows, row, "task accuracy")
            cells.append(Cell(f"{ACCURACY[task][name]:.2f}", ours))
        lines.append(Line(name, epsilon, cells))
    blind = [f"{100 * rows.any['task accuracy blind']:.1f}" if rows else "" for rows in result.values()]
    return Table(
        place,
        ["TP-US", "AG", "BLOG"],
        lines,
        [("majority class", blind)],
        "TP-US may not be passed on. GloVe means in place of BERT; AG's official test rows, blogs' topics by a topic "
        f"model, one run of {result[BLOG].constants['folds']} folds, intervals over who wrote "
        "([papers/dpnr](dpnr/README.md#task-topic)).",
    )


def _of_blogs(task: str, rows: BlogRows, row: Row, name: str) -> Estimate:
    value, low, high = (100 * row.numbers[f"{name}{end}"] for end in ("", " low", " high"))
    return Estimate(value, low, high, int(rows.constants.get("bloggers", 0)), _PEOPLE[task])


def _figure_6() -> Table:
    lines = []
    for task, named in ((TP_US, "TP-US"), (BLOG, "BLOG")):
        rows = _of_task(task)
        shares = [
            Estimate(*[100 * rows.constants[f"{attribute} {group}"]] * 3, 0, "") if rows else _TASKS[task]
            for attribute, groups in _RATIOS.items()
            for group in groups
        ]
        printed = [f"{entry}" for pair in RATIOS[task].values() for entry in pair]
        cells = [Cell(entry, share, 0) for entry, share in zip(printed, shares, strict=True)]
        lines.append(Line(f"{named}, ratio", "", cells))
        for name, epsilon in (("no noise", NO_CLAIM), ("adversarial", NO_CLAIM), ("DPNR", "not said; ours {}, {:g}")):
            row = {"no noise": rows.get(NONE), "DPNR": rows.get(DPNR, _SHOWN)}.get(name)
            true = true_epsilon("DPNR", _SHOWN, int(rows.constants["width"])) if row else math.nan
            cells = []
            for attribute, first, gap in _GROUPS:
                theirs = FAIRNESS[task][name][attribute]
                for spelled, number in ((f"{theirs[0]:.2f}", first), (f"{theirs[1]:+.2f}", f"gap {gap}")):
                    why = "not run" if name == "adversarial" else _TASKS[task]
                    cells.append(
                        Cell(spelled, why if row is None else _of_blogs(task, rows, row, f"{attribute} {number}"))
                    )
            text = epsilon.format(f"{_SHOWN:g}", true) if row else epsilon.partition(";")[0]
            lines.append(Line(f"{named}, {name}", text, cells))
    return Table(
        "Figure 6, fairness: accuracy of a group and the gap to the other, per cent",
        ["women", "men less women", "young", "old less young"],
        lines,
        said="As figure 4. Adversarial training on the blogs: [papers/dptext](dptext/README.md).",
    )


def _of_study(figure: int, dimension: int) -> Table:
    """Figures 7 and 8: the study's own model, which is ours."""
    trainings = TRAININGS if dimension == 64 else TRAININGS[:2]
    news, _ = _rows((AS_LARGE, AG_NEWS))
    polarity, polarity_name = _rows((YELP, IMDB))
    sets = {"AG News": news, "Yelp": polarity}
    named = {"AG News": "AG News", "Yelp": "Yelp" if polarity_name == YELP else "Yelp (ours: IMDb)"}
    columns = [f"{named[data]}, {training}" for data in sets for training in trainings]
    lines = []
    for name in ("no noise", *ROWS):
        kind, _, value = name.partition(" ")
        claimed = float(value) if kind == "epsilon" else DROPOUT_AT
        epsilon = NO_CLAIM if name == "no noise" else f"{claimed:g}, {true_epsilon('DPNR', claimed, dimension):g}"
        cells = []
        for data, rows in sets.items():
            for training in trainings:
                theirs = printed(data, dimension, training, name)
                if name == "no noise":
                    theirs = CLEAN[data, dimension] if training == "plain" else None
                cells.append(_cell(rows, theirs, name, dimension, training, claimed))
        lines.append(Line(name, epsilon, cells))
    majority = [f"{rows.constants['majority']:.3f}" for rows in sets.values() for _ in trainings]
    return Table(
        f"Figure {figure}, d = {dimension}",
        columns,
        lines,
        [("majority class", majority)],
        f"Ours on {news.constants['trained']:,} texts of AG News and, for Yelp, on {polarity_name} "
        "([papers/dpnr](dpnr/README.md)); masks as the study's numbers suggest. Yelp's rows above mu .1 are lost in "
        "the text.",
    )


def _rows(names: tuple[str, ...]) -> tuple[Rows, str]:
    """The study's rows of the first of these sets that was run, nearest to how the study seems to have done it."""
    for name in names:
        if rows := Rows(RESULTS / f"printed {name}.jsonl"):
            return rows, name
        if rows := Rows(RESULTS / f"study {name}.jsonl"):
            return rows.use_token_masks() if rows.has_token_masks else rows, name
    raise FileNotFoundError(f"no rows of {' or '.join(names)}: run papers.dpnr.experiment first")


def _cell(rows: Rows, theirs: float | None, name: str, dimension: int, training: str, claimed: float) -> Cell:
    if theirs is None:
        return Cell("", "not in the text" if name.startswith("mu") else "")
    own = {"epsilon": claimed} if training == "robust" else {}
    number = "clean" if name == "no noise" else name
    runs = rows.runs(number, mechanism="DPNR", dimension=dimension, training=training, **own)
    if not runs:
        return Cell(f"{theirs:.2f}", "not run")
    single = Estimate(runs[0], float("nan"), float("nan"), 1, "runs")
    return Cell(f"{theirs:.2f}", mean_over_runs(runs) if len(runs) > 1 else single, 3)
