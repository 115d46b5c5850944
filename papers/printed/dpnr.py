"""Paper 004: a study of DPNR, with the tables of DPNR that it repeats (figures 4 to 6)."""

from __future__ import annotations

from pathlib import Path

from papers.dpnr.blogs_cells import DPNR, NONE
from papers.dpnr.blogs_printed import ACCURACY, FAIRNESS, RATIOS
from papers.dpnr.blogs_report import Rows as BlogRows
from papers.dpnr.printed import CLEAN, ROWS, TRAININGS, printed
from papers.dpnr.results import Rows
from papers.dpnr.servers import DROPOUT_AT, true_epsilon
from papers.dpnr.sets import AG_NEWS, AS_LARGE, IMDB, YELP
from papers.printed import leakage
from papers.printed.cells import NO_CLAIM, Cell, Line, Note, Table

from dptext.estimates import Estimate, mean_over_runs
from dptext.evaluation.sweep_file import Row

__all__ = ["sections"]

RESULTS = Path(__file__).resolve().parents[1] / "dpnr" / "results"
_TRUSTPILOT = "not run: no file"
_BERT = "not run: BERT"
_ELSEWHERE = {
    "no noise": ("85.53", "78.75"),
    "epsilon 0.05": ("85.65", "80.87"),
    "epsilon 0.1": ("85.52", "80.78"),
    "epsilon 0.5": ("85.52", "79.71"),
    "epsilon 1": ("85.36", "79.36"),
    "epsilon 5": ("85.87", "79.59"),
    "mu 0.1": ("85.53", "80.71"),
    "mu 0.3": ("84.85", "79.18"),
    "mu 0.5": ("83.51", "77.42"),
    "mu 0.8": ("80.70", "69.57"),
}
"""Figures 4 and 5: TP-US and AG, in per cent."""
_OF_TRUSTPILOT = {
    "ratio": ("37", "63", "64", "36"),
    "no noise": ("83.69", "+1.57", "84.63", "+0.02"),
    "adversarial": ("84.95", "+0.19", "85.38", "-0.46"),
    "DPNR": ("85.90", "+0.49", "86.08", "+0.31"),
}
"""Figure 6, TP-US: women, men less that, under 35, over that less that."""
_GROUPS = (("gender", "female", "male less female"), ("age", "13-17", "33-48 less 13-17"))
_SHOWN = 1.0
"""The claimed epsilon of ours in figure 6, where the paper does not say its own."""


def sections() -> list[Table | Note]:
    blogs = BlogRows(RESULTS / "blogs topic.jsonl")
    return [
        Note("Figure 1, a drawing", "Nothing to run."),
        *leakage.sections(),
        Note("Figures 2 and 3, drawings", "Nothing to run."),
        _figures_4_and_5("Figure 4, accuracy over epsilon, per cent", blogs, "epsilon"),
        _figures_4_and_5("Figure 5, accuracy over mu, per cent", blogs, "mu"),
        _figure_6(blogs),
        _of_study(7, 32),
        _of_study(8, 64),
    ]


def _figures_4_and_5(place: str, blogs: BlogRows, kind: str) -> Table:
    lines = []
    for name, (trustpilot, news) in _ELSEWHERE.items():
        if name != "no noise" and not name.startswith(kind):
            continue
        value = float(name.partition(" ")[2]) if name != "no noise" else None
        if value is None:
            row, epsilon = blogs.get(NONE), NO_CLAIM
        else:
            claimed, mu = (value, 0.0) if kind == "epsilon" else (_SHOWN, value)
            row = blogs.get(DPNR, claimed, mu)
            epsilon = f"{claimed:g}, {true_epsilon('DPNR', claimed, int(blogs.constants['width'])):g}"
        theirs = f"{ACCURACY[name]:.2f}"
        ours = "not run" if row is None else _of_blogs(blogs, row, "task accuracy")
        lines.append(Line(name, epsilon, [Cell(trustpilot, _TRUSTPILOT), Cell(news, _BERT), Cell(theirs, ours)]))
    return Table(
        place,
        ["TP-US", "AG", "BLOG"],
        lines,
        ("majority class", ["", "", f"{100 * blogs.any['task accuracy blind']:.1f}"]),
        "TP-US may not be passed on. BLOG by GloVe means in place of BERT, topics by a topic model, one run of "
        f"{blogs.constants['folds']} folds, intervals over bloggers ([papers/dpnr](dpnr/README.md#task-topic)).",
    )


def _of_blogs(blogs: BlogRows, row: Row, name: str) -> Estimate:
    value, low, high = (100 * row.numbers[f"{name}{end}"] for end in ("", " low", " high"))
    return Estimate(value, low, high, int(blogs.constants["bloggers"]), "bloggers")


def _figure_6(blogs: BlogRows) -> Table:
    rows = {"no noise": blogs.get(NONE), "adversarial": None, "DPNR": blogs.get(DPNR, _SHOWN)}
    true = true_epsilon("DPNR", _SHOWN, int(blogs.constants["width"]))
    epsilons = {"DPNR": f"not said; ours {_SHOWN:g}, {true:g}"}
    lines = [Line("TP-US, ratio", "", [Cell(each, _TRUSTPILOT) for each in _OF_TRUSTPILOT["ratio"]])]
    for name in rows:
        cells = [Cell(each, _TRUSTPILOT) for each in _OF_TRUSTPILOT[name]]
        lines.append(Line(f"TP-US, {name}", epsilons.get(name, NO_CLAIM), cells))
    shares = [blogs.constants[each] for each in ("gender female", "gender male", "age 13-17", "age 33-48")]
    ratios = [f"{each}" for pair in RATIOS.values() for each in pair]
    count = int(blogs.constants["bloggers"])
    own = [Estimate(100 * each, 100 * each, 100 * each, count, "bloggers") for each in shares]
    lines.append(Line("BLOG, ratio", "", [Cell(each, ours, 0) for each, ours in zip(ratios, own, strict=True)]))
    for name, row in rows.items():
        cells = []
        for attribute, first, gap in _GROUPS:
            theirs = FAIRNESS[name][attribute]
            for spelled, number in ((f"{theirs[0]:.2f}", first), (f"{theirs[1]:+.2f}", f"gap {gap}")):
                ours = "not run here" if row is None else _of_blogs(blogs, row, f"{attribute} {number}")
                cells.append(Cell(spelled, ours))
        lines.append(Line(f"BLOG, {name}", epsilons.get(name, NO_CLAIM), cells))
    return Table(
        "Figure 6, fairness: accuracy of a group and the gap to the other, per cent",
        ["women", "men less women", "young", "old less young"],
        lines,
        said="Ours: BLOG as in figure 4. Adversarial training on the blogs is [papers/dptext](dptext/README.md).",
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
        ("majority class", majority),
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
            return rows.with_token_masks() if rows.has_token_masks else rows, name
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
