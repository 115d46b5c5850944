"""Tables and the figure of the blogs, from their rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from papers.blogs import INDUSTRY, TASKS
from papers.dpnr.printed import ACCURACY, FAIRNESS, RATIOS, printed_accuracy
from papers.dpnr.servers import true_epsilon
from papers.reports import (
    above,
    duration,
    error_bars,
    join_sections,
    new_figure,
    require_rows,
    save_figure,
    signed,
    stored,
    stored_interval,
    table,
    write_between,
)
from papers.sweeps import Row

from papers import reports

START, END = "<!-- blogs: written by papers.dpnr.blogs -->", "<!-- end of the blogs -->"
NONE, NARROW = "no noise", "no noise, 16 axes"
DPNR, SCALAR, AS_SENT = "DPNR", "DPNR, one scalar", "DPNR, one scalar, as sent"
PUBLISHED = (DPNR, SCALAR, AS_SENT)
PROVED = ("PrivUnit", "L2Laplace", "Gaussian")
AXES = 16
_ATTRIBUTES = ("gender", "age")
_ATTACKERS = {"mlp": "MLP", "linear": "linear", "all posts": "all posts"}
_ORDER = (NONE, NARROW, *PUBLISHED, *PROVED)
_HEAD = ("", "words masked", "claimed epsilon", "true epsilon of a post")


def width_of(mechanism: str, width: int) -> int:
    return width if mechanism in (NONE, *PUBLISHED) else min(AXES, width)


def noise_of(mechanism: str) -> str:
    return SCALAR if mechanism == AS_SENT else mechanism


class Rows(reports.Rows):
    """The rows of one task, in the order of tables."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rows = tuple(sorted(self.rows, key=_place))

    def get(self, mechanism: str, epsilon: float | None = None, mu: float = 0.0) -> Row | None:
        return next(iter(self.select(mechanism=mechanism, epsilon=epsilon, mu=mu)), None)

    def true_epsilon(self, row: Row) -> float:
        """Return the proved epsilon for any two posts; masked words do not reduce it."""
        mechanism, epsilon = str(row.settings["mechanism"]), row.settings["epsilon"]
        if epsilon is None:
            return math.inf
        return true_epsilon(noise_of(mechanism), float(epsilon), width_of(mechanism, int(self.constants["width"])))

    def without_masks(self, mechanism: str) -> list[Row]:
        return [row for row in self.rows if row.settings["mechanism"] == mechanism and not row.settings["mu"]]

    @property
    def attributes(self) -> list[str]:
        return [name.removesuffix(" mlp") for name in self.any if name.endswith(" mlp")]

    def groups(self, attribute: str) -> list[str]:
        names = [name.removeprefix(f"{attribute} ") for name in self.any if name.startswith(f"{attribute} ")]
        return [name for name in names if f"{attribute} {name} blind" in self.any and name not in _ATTACKERS]

    def gaps(self, attribute: str) -> list[str]:
        """Return the differences of accuracy between groups, the later minus the earlier."""
        start = f"{attribute} gap "
        return [name for name in self.any if name.startswith(start) and not name.endswith((" low", " high"))]

    def widest_gap(self, attribute: str) -> str:
        groups = self.groups(attribute)
        return f"{attribute} gap {groups[-1]} less {groups[0]}"


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``blogs.md`` and ``blogs.png`` next to the rows, and the main tables into a README."""
    result = {task: rows for task in TASKS if (rows := Rows(out / f"blogs {task}.jsonl"))}
    require_rows(result, out)
    whole, brief = [], []
    for task, rows in result.items():
        head = _head(task, rows)
        if task in ACCURACY:  # the README has the tasks with printed numbers, blogs.md has all
            brief += [head, main_table(task, rows), _scalar_sentence(rows)]
        whole += [head, _accuracy_table(task, rows), _scalar_sentence(rows)]
        whole += [attack_table(rows), fairness_table(task, rows)]
    took = duration(result.values())
    (out / "blogs.md").write_text(join_sections([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, join_sections([*brief, took]))
    draw(result, out / "blogs.png")


def _head(task: str, rows: Rows) -> str:
    constants = rows.constants
    printed = ""
    if task in RATIOS:
        printed = f" (printed: {', '.join(str(share) for pair in RATIOS[task].values() for share in pair)})"
    return (
        f"### Task: {task}\n\n{constants['posts']:,} posts of {constants['bloggers']:,} bloggers, "
        f"{constants['classes']} classes, **majority {rows.any['task accuracy blind']:.3f}**; "
        f"{', '.join(rows.group_shares)} of the posts{printed}."
    )


def main_table(task: str, rows: Rows) -> str:
    is_printed, attributes = task in ACCURACY, rows.attributes
    head = [*_HEAD, "task", *(["printed"] if is_printed else []), *(f"{entry}, attack" for entry in attributes)]
    head += [f"{'' if place else 'empirical privacy: '}{entry}" for place, entry in enumerate(attributes)]
    head += [_label(rows.widest_gap(attribute)) for attribute in attributes]
    chance = [rows.any[f"{attribute} mlp blind"] for attribute in attributes]
    line = ["majority", "", "", "", f"{rows.any['task accuracy blind']:.3f}", *([""] if is_printed else [])]
    line += [*(f"{value:.3f}" for value in chance), *(f"{1 - value:.3f}" for value in chance)]
    lines = [[*line, *[""] * len(attributes)]]
    for name, printed in FAIRNESS.get(task, {}).items():
        gaps = [f"{printed[attribute][1] / 100:+.3f}" for attribute in attributes]
        lines.append([_printed_label(name), *[""] * (len(head) - 1 - len(gaps)), *gaps])
    for row in rows.rows:
        line = [*_mechanism(rows, row), stored_interval(row.numbers, "task accuracy")]
        line += [_printed(task, row)] if is_printed else []
        line += [above(row.numbers, f"{attribute} mlp") for attribute in attributes]
        line += [f"{1 - row.numbers[f'{attribute} mlp']:.3f}" for attribute in attributes]
        lines.append([*line, *(signed(row.numbers, rows.widest_gap(attribute)) for attribute in attributes)])
    text = (
        " Attack: the paper's two layers of 512, on single posts. Gaps: in the accuracy of the task. Bold: an attack "
        "above the majority, a gap whose interval excludes 0."
        if attributes
        else ""
    )
    return f"Task: logistic regression.{text}\n\n{table(head, lines)}"


def _accuracy_table(task: str, rows: Rows) -> str:
    is_printed = task in ACCURACY
    numbers = rows.any
    line = ["majority; chance", "", "", "", f"{numbers['task accuracy blind']:.3f}", *([""] if is_printed else [])]
    lines = [[*line, f"{numbers['task macro-F1 blind']:.3f}"]]
    for row in rows.rows:
        line = [*_mechanism(rows, row), stored_interval(row.numbers, "task accuracy")]
        line += [_printed(task, row)] if is_printed else []
        lines.append([*line, stored_interval(row.numbers, "task macro-F1")])
    head = [*_HEAD, "accuracy", *(["printed"] if is_printed else []), "macro-F1"]
    return f"**Task** (logistic regression on received vectors):\n\n{table(head, lines)}"


def attack_table(rows: Rows) -> str:
    names = [(attribute, attacker) for attribute in rows.attributes for attacker in _ATTACKERS]
    head = list(_HEAD)
    line = ["majority", "", "", ""]
    for attribute, attacker in names:
        is_paper = attacker == "mlp"
        chance = rows.any[f"{attribute} {attacker} blind"]
        head += [f"{attribute}, {_ATTACKERS[attacker]}", *(["its empirical privacy"] if is_paper else [])]
        line += [f"{chance:.3f}", *([f"{1 - chance:.3f}"] if is_paper else [])]
    lines = [line]
    for row in rows.rows:
        line = _mechanism(rows, row)
        for attribute, attacker in names:
            name = f"{attribute} {attacker}"
            line += [above(row.numbers, name), *([f"{1 - row.numbers[name]:.3f}"] if attacker == "mlp" else [])]
        lines.append(line)
    return (
        "**Attack**: accuracy of fresh attackers on received vectors, for single posts or for the mean of all posts of "
        f"a blogger; bold if its interval is above the majority.\n\n{table(head, lines)}"
    )


def fairness_table(task: str, rows: Rows) -> str:
    parts = [(attribute, rows.groups(attribute), rows.gaps(attribute)) for attribute in rows.attributes]
    head = list(_HEAD)
    line = ["majority within the group", "", "", ""]
    for attribute, groups, gaps in parts:
        head += groups + [_label(gap) for gap in gaps]
        line += [f"{rows.any[f'{attribute} {group} blind']:.3f}" for group in groups] + [""] * len(gaps)
    lines = [line]
    if task == TASKS[0]:  # two groups of each, as printed
        for name, printed in FAIRNESS[task].items():
            line = [_printed_label(name), "", "", ""]
            for first, gap in printed.values():
                line += [f"{first / 100:.3f}", f"{(first + gap) / 100:.3f}", f"{gap / 100:+.3f}"]
            lines.append(line)
    for row in rows.rows:
        line = _mechanism(rows, row)
        for attribute, groups, gaps in parts:
            line += [f"{row.numbers[f'{attribute} {group}']:.3f}" for group in groups]
            line += [signed(row.numbers, gap) for gap in gaps]
        lines.append(line)
    return (
        "**Fairness**: accuracy of the task in each group, and its gaps (95%, simultaneous for one attribute); bold if "
        f"the interval excludes 0.\n\n{table(head, lines)}"
    )


def _scalar_sentence(rows: Rows) -> str:
    """Return the evidence that the server can undo one scalar of noise."""
    clean = rows.get(NONE)
    undone = rows.select(mechanism=SCALAR, mu=0.0)
    if clean is None or not undone:
        return ""
    change = max(row.numbers["largest change"] for row in undone)
    linear, network = (
        max(abs(row.numbers[name] - clean.numbers[name]) for row in undone for name in names)
        for names in (("task accuracy", "gender linear", "age linear"), ("gender mlp", "age mlp"))
    )
    unit = 10.0 ** math.floor(math.log10(change)) if change > 0 else 1.0
    return (
        "**One scalar, undone**: only rounding errors of 32-bit numbers remain of the noise, at all epsilons less than "
        f"{math.ceil(change / unit) * unit:g} in any coordinate of any post. Accuracies of the task and of the linear "
        f"attacker are within {linear:.4f} of those without noise; those of the network, whose training amplifies the "
        f"last digit, within {network:.4f}."
    )


def _mechanism(rows: Rows, row: Row) -> list[str]:
    mechanism, epsilon, mu = (row.settings[name] for name in ("mechanism", "epsilon", "mu"))
    delta = " (delta 1e-5)" if mechanism == "Gaussian" else ""
    true = rows.true_epsilon(row)
    return [
        str(mechanism),
        f"{100 * mu:g}%" if mu else "",
        "" if epsilon is None else f"{epsilon:g}",
        f"{true:g}{delta}" if math.isfinite(true) else "infinite",
    ]


def _printed(task: str, row: Row) -> str:
    printed = printed_accuracy(row.settings["epsilon"], row.settings["mu"], task)
    return "-" if printed is None or row.settings["mechanism"] not in (NONE, *PUBLISHED) else f"{printed:.3f}"


def _printed_label(name: str) -> str:
    """Return the label of a row of figure 6; the adversarial method, of another paper, was not run."""
    return f"printed: {name}{', not run' if name == 'adversarial' else ''}"


def _label(gap: str) -> str:
    return gap.partition(" gap ")[2].replace(" less ", " minus ")


def _place(row: Row) -> tuple[int, float, float]:
    return _ORDER.index(row.settings["mechanism"]), row.settings["mu"], row.settings["epsilon"] or 0.0


# -- the figure ------------------------------------------------------------------------------------------------

_STYLES: dict[str, dict[str, Any]] = {
    DPNR: {"color": "0.55", "linestyle": "--", "marker": "v", "markersize": 6},
    PROVED[0]: {"color": "black", "linestyle": "-", "marker": "o", "markersize": 5},
    PROVED[1]: {"color": "black", "linestyle": "-", "marker": "s", "markersize": 5, "markerfacecolor": "white"},
    PROVED[2]: {"color": "black", "linestyle": ":", "marker": "D", "markersize": 4.5, "markerfacecolor": "0.8"},
}
_OFFSETS = {DPNR: (7, -8), PROVED[0]: (7, -1), PROVED[1]: (5, -11), PROVED[2]: (-6, 4)}  # of the text at a point
_MEASURES = {INDUSTRY: "macro-F1"}  # more than half are students: accuracy shows little
_NEAR = 0.03  # points this near to the majority get no text
_SCALARS = (
    (SCALAR, False, "x", "one scalar, undone (true epsilon infinite)"),
    (SCALAR, True, "+", "one scalar, undone, words masked (infinite)"),
    (AS_SENT, False, "1", "one scalar, not undone (infinite)"),
)


def draw(tasks: Mapping[str, Rows], path: Path) -> None:
    figure, panels = new_figure(14.0, 4.4 * len(tasks) + 0.8, len(tasks), 1 + len(_ATTRIBUTES))
    for line, (task, rows) in zip(panels, tasks.items(), strict=True):
        measure = _MEASURES.get(task, "accuracy")
        _draw_epsilons(line[0], rows, measure)
        line[0].set_title(task, fontsize=10)
        for axes, attribute in zip(line[1:], _ATTRIBUTES, strict=True):
            _draw_attribute(axes, rows, attribute, measure)
            axes.set_title(f"{task}: {attribute}", fontsize=10)
        for axes in line:
            axes.grid(visible=True, color="0.94", linewidth=0.6)
    legend = {"title": "At a point: its true epsilon, or the share of masked words", "title_fontsize": 9}
    legend |= {"loc": "outside lower center", "ncols": 4, "frameon": False, "fontsize": 9}
    figure.legend(*panels[0][1].get_legend_handles_labels(), **legend)
    save_figure(figure, path, dpi=110)


def _draw_epsilons(axes: Any, rows: Rows, measure: str) -> None:
    name = f"task {measure}"
    _draw_majority(axes, None, rows.any[f"{name} blind"], measure)
    for mechanism, style in _STYLES.items():
        if points := rows.without_masks(mechanism):
            known = [(rows.true_epsilon(row), stored(row.numbers, name)) for row in points]
            error_bars(axes, known, linewidth=1.0, capsize=2, **style)
    if (clean := rows.get(NONE)) is not None:
        value, text = clean.numbers[name], "no noise, and one scalar (infinite)"
        axes.axhline(value, color="0.6", linestyle=(0, (1, 1)), linewidth=1.2, zorder=0)
        axes.text(0.02, value, text, transform=axes.get_yaxis_transform(), fontsize=7, va="bottom")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("true epsilon of a post (log scale)", fontsize=9)
    axes.set_ylabel(f"{measure} of the task (95% over bloggers)", fontsize=9)


def _draw_attribute(axes: Any, rows: Rows, attribute: str, measure: str) -> None:
    blind = rows.any[f"{attribute} mlp blind"], rows.any[f"task {measure} blind"]
    _draw_majority(axes, *blind, measure)

    def draw_points(points: list[Row], **style: Any) -> list[tuple[Row, tuple[float, float]]]:
        places = []
        for row in points:
            attack = max(row.numbers[f"{attribute} {attacker}"] for attacker in ("mlp", "linear"))
            places.append((attack, row.numbers[f"task {measure}"]))
        if places:
            axes.plot(*zip(*places, strict=True), **style)
        return list(zip(points, places, strict=True))

    def annotate(text: str, place: tuple[float, float], offset: tuple[int, int], color: str) -> None:
        side = "left" if offset[0] > 0 else "right"
        axes.annotate(text, place, offset, textcoords="offset points", fontsize=7.5, color=color, ha=side)

    for mechanism, style in _STYLES.items():
        label = mechanism if mechanism == DPNR else f"{mechanism}, 16 axes"
        for row, place in draw_points(rows.without_masks(mechanism), label=label, linewidth=1.0, **style):
            if place[1] > blind[1] + _NEAR or place[0] > blind[0] + _NEAR:
                annotate(f"{rows.true_epsilon(row):g}", place, _OFFSETS[mechanism], style["color"])
    star = {"linestyle": "", "marker": "*", "markersize": 17, "markerfacecolor": "white", "color": "black"}
    draw_points(rows.without_masks(NONE), label="no noise", **star)
    for mechanism, is_masked, marker, label in _SCALARS:
        points = [row for row in rows.select(mechanism=mechanism) if bool(row.settings["mu"]) is is_masked]
        style = {"linestyle": "", "color": "0.35", "marker": marker, "markersize": 8}
        for row, place in draw_points(points, label=label, **style):
            if is_masked:
                annotate(f"{100 * float(row.settings['mu'] or 0):g}%", place, (-6, -10), "0.35")
    axes.set_xlabel(f"accuracy of the better attacker on {attribute}", fontsize=9)
    axes.set_ylabel(f"{measure} of the task", fontsize=9)


def _draw_majority(axes: Any, attribute: float | None, task: float, measure: str) -> None:
    text: dict[str, Any] = {"fontsize": 7, "color": "0.4", "ha": "right"}
    name = "majority" if measure == "accuracy" else "guessing"
    axes.axhline(task, color="0.8", linewidth=1.2, zorder=0)
    axes.text(0.99, task, name, transform=axes.get_yaxis_transform(), va="bottom", **text)
    if attribute is not None:
        axes.axvline(attribute, color="0.8", linewidth=1.2, zorder=0)
        axes.text(attribute, 0.98, "majority", transform=axes.get_xaxis_transform(), va="top", rotation=90, **text)
