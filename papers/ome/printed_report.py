"""Tables 1 and 2 beside what the paper prints, its figure 3, and accuracy against true epsilon."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from papers.ome.mechanisms import BITS, OURS, PUBLISHED, true_epsilon
from papers.reports import write_between
from papers.sweeps import Row, read_sweep

from dptext.errors import DataError
from dptext.intervals import Estimate, mean_over_runs
from dptext.representations.published import oue_chances, p1, p2, q, sue_chances

START, END = "<!-- printed tables: written by the experiment -->", "<!-- end of the printed tables -->"
SETS = ("IMDb", "Amazon", "Yelp", "Intent", "MRPC")
DECAY = 1e-6
ORDER = ("none", "unflipped bits", "OME", "SUE", "OUE", *OURS)
NONE = "none"  # in a cell: there is no such thing
Setting = tuple[str, float | None, float | None]  # mechanism, epsilon as printed, lambda
ROW: Setting = ("OME", 1.0, 100.0)
"""What the controls are compared with."""

PRINTED: dict[Setting, tuple[float, ...]] = {
    ("none", None, None): (70.67, 67.50, 66.00, 94.17, 68.38),
    ("OME", 0.5, 100.0): (65.33, 68.00, 64.54, 91.28, 66.91),
    ("OME", 1.0, 100.0): (67.33, 69.50, 66.73, 91.35, 67.15),
    ("OME", 5.0, 100.0): (67.80, 71.00, 67.50, 91.57, 70.10),
    ("OME", 10.0, 100.0): (69.33, 72.50, 68.10, 91.87, 70.15),
    ("OME", 1.0, 1.0): (48.00, 45.50, 42.50, 13.00, 64.95),
    ("OME", 1.0, 10.0): (64.00, 65.46, 57.81, 85.43, 66.66),
    ("OME", 1.0, 50.0): (66.67, 69.21, 66.50, 90.57, 66.91),
    ("SUE", 1.0, None): (55.33, 45.50, 48.00),
    ("OUE", 1.0, None): (50.67, 54.00, 51.00),
}
"""Tables 1 and 2 of the paper, per cent, in the order of `SETS`."""


class Found:
    """The rows of all sets that were run."""

    def __init__(self, folder: Path) -> None:
        self._rows: dict[str, dict[Setting, list[Row]]] = {}
        self.seconds = 0.0
        for name in SETS:
            file = folder / f"printed-{name.lower()}.jsonl"
            if file.exists():
                rows = read_sweep(file).rows
                by_setting: dict[Setting, list[Row]] = defaultdict(list)
                for row in rows:
                    by_setting[_setting(row)].append(row)
                self._rows[name] = by_setting
                self.seconds += sum(row.seconds for row in rows)
        if not self._rows:
            raise DataError("no rows of the printed tables: run the experiment first")

    @property
    def sets(self) -> list[str]:
        return list(self._rows)

    def rows(self, name: str, setting: Setting) -> list[Row]:
        return self._rows.get(name, {}).get(setting, [])

    def settings(self, *mechanisms: str) -> list[Setting]:
        """Those of all sets: by mechanism, then by lambda, then by epsilon."""
        result = dict.fromkeys(setting for row in self._rows.values() for setting in row if setting[0] in mechanisms)
        return sorted(result, key=_place)

    def runs(self, name: str) -> int:
        """How many a setting of the set has when it is done."""
        return len(self.rows(name, ("none", None, None)))

    def estimate(self, name: str, setting: Setting, number: str = "accuracy") -> Estimate | None:
        """Per cent, mean over the runs."""
        values = [100 * row.numbers[number] for row in self.rows(name, setting)]
        if len(values) < 2:
            return Estimate(values[0], float("nan"), float("nan"), 1, "runs") if values else None
        return mean_over_runs(values)

    def true(self, name: str, setting: Setting) -> float:
        """The epsilon that holds, run or not; infinite without a mechanism."""
        rows = self.rows(name, setting) or self.rows(name, ("none", None, None))
        mechanism, epsilon, lambda_ = setting
        if epsilon is None or not rows:
            return float("inf")
        return true_epsilon(mechanism, epsilon, round(rows[0].numbers["dimension"]), lambda_=lambda_)


def write_report(out: Path, *, readme: Path | None) -> None:
    """``printed.md``, ``figure3.png`` and ``true_epsilon.png`` beside the rows; the tables also in a README.

    Raises:
        DataError: there are no rows.
    """
    result = Found(out)
    parts = (
        _printed_table(result),
        _agreement(result),
        _controls(result),
        _ours(result),
        _decay(out),
        _summary(result),
    )
    text = "\n\n".join(part for part in parts if part) + "\n"
    (out / "printed.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)
    _draw_chances(out / "figure3.png")
    _draw_true(result, out / "true_epsilon.png")


def _printed_table(found: Found) -> str:
    lines = _head("protocol", "claimed", "lambda", "true epsilon (GloVe / Intent / MRPC)", *found.sets)
    majority = [found.estimate(name, ("none", None, None), "majority") for name in found.sets]
    lines.append(_line("*majority class*", "0", NONE, "0", *(_spelled(entry) for entry in majority)))
    settings = dict.fromkeys([*found.settings("none", *PUBLISHED), *PRINTED])
    for setting in sorted(settings, key=_place):
        cells = [_neighbour_index(found, name, setting) for name in found.sets]
        mechanism, epsilon, lambda_ = setting
        named = "not private" if mechanism == "none" else mechanism
        lines.append(_line(named, _short(epsilon), _short(lambda_), _trues(found, setting), *cells))
    return (
        "**Tables 1 and 2 again.** Accuracy, per cent, mean of the runs and half of its 95% interval; in brackets what "
        "the paper prints, **bold** where that lies within our interval, and the number of runs where it is not that "
        "of the last line.\n\n" + "\n".join(lines)
    )


def printed_of(name: str, setting: Setting) -> float | None:
    """What the paper prints for a set, per cent; None: nothing."""
    printed, place = PRINTED.get(setting, ()), SETS.index(name)
    return printed[place] if place < len(printed) else None


def _neighbour_index(found: Found, name: str, setting: Setting) -> str:
    estimate, printed = found.estimate(name, setting), printed_of(name, setting)
    if estimate is None:
        return "not printed" if printed is None else f"not run (printed {printed:.2f})"
    if printed is None:
        return f"{_spelled(estimate)} (not printed)"
    mark = "**" if _within(estimate, printed) else ""
    runs = "" if estimate.count == found.runs(name) else f"; {_runs(estimate.count)}"
    return f"{_spelled(estimate)} ({mark}{printed:.2f}{mark}{runs})"


def _within(estimate: Estimate, printed: float) -> bool:
    return estimate.low <= printed <= estimate.high  # of one run, which has no interval, never


def _agreement(found: Found) -> str:
    """Of each set, how many printed numbers lie in our intervals, above them and below them."""
    text, inside, printed = [], 0, 0
    for name in found.sets:
        cells = [(found.estimate(name, setting), printed_of(name, setting)) for setting in PRINTED]
        pairs = [(ours, theirs) for ours, theirs in cells if ours is not None and ours.count > 1 and theirs is not None]
        count = sum(theirs is not None for _, theirs in cells)
        within = sum(_within(ours, theirs) for ours, theirs in pairs)
        above = sum(theirs > ours.high for ours, theirs in pairs)
        lacking = f", {count - len(pairs)} without an interval of ours" if len(pairs) < count else ""
        text.append(f"{name} {within} of {count} ({above} above, {len(pairs) - within - above} below{lacking})")
        inside, printed = inside + within, printed + count
    return f"**Printed numbers within our 95% intervals: {inside} of {printed}.** {'; '.join(text)}."


def _controls(found: Found) -> str:
    """The authors' two conjectures."""
    lines = _head("what is learned from", "what is classified", *found.sets)
    rows: list[tuple[str, str, Setting, str]] = [
        ("real numbers", "real numbers", ("none", None, None), "accuracy"),
        ("bits, not flipped", "bits, not flipped", ("unflipped bits", None, None), "accuracy"),
        ("bits flipped by OME, lambda 100", "bits, not flipped", ROW, "accuracy without noise at use"),
        ("bits flipped by OME, lambda 100", "bits flipped by OME", ROW, "accuracy"),
    ]
    for learned, classified, setting, number in rows:
        cells = [_counted(found, name, found.estimate(name, setting, number)) for name in found.sets]
        lines.append(_line(learned, classified, *cells))
    return "**The control.** The same perceptron on bits that nobody flipped.\n\n" + "\n".join(lines)


def _ours(found: Found) -> str:
    lines = _head("mechanism", "true epsilon", *found.sets)
    for setting in found.settings(*OURS):
        estimates = [found.estimate(name, setting) for name in found.sets]
        lines.append(_line(setting[0], _short(setting[1]), *(_spelled(estimate) for estimate in estimates)))
    return (
        "**Mechanisms with a proof**, on principal axes of other texts, whose labels are not used (four for each unit "
        "of epsilon with PrivUnit, one with the others), and a linear model that knows the noise.\n\n"
        + "\n".join(lines)
    )


def _decay(folder: Path) -> str:
    """The other readings of the paper's decay less ours, run by run; nothing where there are no rows."""
    file = folder / "decay.jsonl"
    if not file.exists():
        return ""
    rows = read_sweep(file).rows
    names = [name for name in SETS if any(row.settings["set"] == name for row in rows)]
    lines = _head("decay of 1e-6 less decay of the weights, points", *names)
    for reading, named in (("of the learning rate", "of the learning rate, as in Keras"), ("none", "none")):
        cells = []
        for name in names:
            of = {(row.settings["decay"], row.seed): row for row in rows if row.settings["set"] == name}
            pairs = [(row, of["of the weights", seed]) for (entry, seed), row in of.items() if entry == reading]
            less = [100 * (one.numbers["accuracy"] - other.numbers["accuracy"]) for one, other in pairs]
            cells.append(_signed(mean_over_runs(less)) if len(less) > 1 else "not run")
        lines.append(_line(named, *cells))
    steps = {name: max(row.numbers["steps"] for row in rows if row.settings["set"] == name) for name in names}
    lost = ", ".join(f"{100 * (1 - 1 / (1 + DECAY * count)):.2g} per cent ({name})" for name, count in steps.items())
    return (
        "**Decay.** OME at epsilon 1, lambda 100, on the same bits, batches and dropout. By the last step Keras's "
        f"decay has taken from the learning rate {lost}.\n\n" + "\n".join(lines)
    )


def _summary(found: Found) -> str:
    runs = ", ".join(f"{name} {found.runs(name)}" for name in found.sets)
    return f"Runs: {runs}. All cells together took {found.seconds / 3600:.1f} hours of one core."


# -- figures -----------------------------------------------------------------------------------------------------------


def _draw_chances(path: Path) -> None:
    """Figure 3: the chances over epsilon (lambda 100) and over lambda (epsilon 1), r = 50, l = 10."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    dimension = 50
    epsilons = np.linspace(0.5, 10, 40)
    lambdas = np.geomspace(1, 100, 60)
    ome = (("OME p1 (even bits)", "-"), ("OME p2 (odd bits)", "--"), ("OME q", ":"))
    values = (np.full(40, p1(100.0)), np.full(40, p2(100.0)), q(epsilons, 100.0, dimension * BITS))
    for (label, line), entry in zip(ome, values, strict=True):
        left.plot(epsilons, entry, line, color="black", label=label)
    for chances, name, grey in ((sue_chances, "SUE", "0.45"), (oue_chances, "OUE", "0.7")):
        p, zero = chances(epsilons, 2 * dimension)
        left.plot(epsilons, p, "-", color=grey, label=f"{name} p")
        left.plot(epsilons, zero, ":", color=grey, label=f"{name} q")
    for (label, line), entry in zip(ome, (p1(lambdas), p2(lambdas), q(1.0, lambdas, dimension * BITS)), strict=True):
        right.plot(lambdas, entry, line, color="black", label=label)
    left.set_xlabel("epsilon as printed (lambda = 100)")
    right.set_xlabel("lambda (epsilon = 1)")
    right.set_xscale("log")
    left.set_ylabel("chance that the bit is sent as 1")
    for axes in (left, right):
        axes.grid(color="0.92")
    left.legend(fontsize=7.5, loc="upper right", bbox_to_anchor=(1.0, 0.96))  # above the curves at one half
    figure.savefig(path, dpi=150)


_STYLES: dict[str, dict[str, Any]] = {
    "PrivUnit": {"color": "black", "linestyle": "-", "marker": "o"},
    "L2Laplace": {"color": "0.45", "linestyle": "-", "marker": "s"},
    "WeightedBits": {"color": "0.45", "linestyle": "--", "marker": "^"},
    "OneBit": {"color": "0.7", "linestyle": "--", "marker": "v"},
    "OME": {"color": "black", "linestyle": "none", "marker": "x"},
    "SUE": {"color": "black", "linestyle": "none", "marker": "+"},
    "OUE": {"color": "black", "linestyle": "none", "marker": "1"},
}


def _draw_true(found: Found, path: Path) -> None:
    """One panel a set: every mechanism on one axis, the epsilon that is true."""
    sets = [name for name in found.sets if any(found.rows(name, setting) for setting in found.settings(*OURS))]
    count = len(sets)
    figure = Figure(figsize=(3.1 * count + 0.6, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, count, squeeze=False)[0]
    for axes, name in zip(panels, sets, strict=True):
        for mechanism in (*OURS, *PUBLISHED):
            points = []
            for setting in found.settings(mechanism):
                estimate = found.estimate(name, setting)
                if estimate is not None:
                    points.append((found.true(name, setting), estimate.value, _reach(estimate)))
            if points:
                x, y, error = zip(*sorted(points), strict=True)
                published = " (as printed)" if mechanism in PUBLISHED else ""
                axes.errorbar(x, y, error, capsize=2, linewidth=1.2, label=mechanism + published, **_STYLES[mechanism])
        for setting, number, label in (
            (("none", None, None), "accuracy", "no noise"),
            (("none", None, None), "majority", "majority"),
        ):
            level = found.estimate(name, setting, number)
            if level is not None:
                axes.axhline(level.value, color="0.75", linewidth=1, zorder=0)
                axes.text(0.02, level.value, label, transform=axes.get_yaxis_transform(), fontsize=7, va="bottom")
        axes.set_xscale("log")
        axes.set_title(name, fontsize=10)
        axes.grid(axis="x", color="0.92")
    panels[0].set_ylabel("accuracy, per cent")
    panels[count // 2].set_xlabel("true epsilon of each text (local, any two texts)")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, fontsize=8, frameon=False
    )
    figure.savefig(path, dpi=150)


# -- spelling ----------------------------------------------------------------------------------------------------------


def _setting(row: Row) -> Setting:
    settings: Any = row.settings
    return settings["mechanism"], settings["epsilon"], settings["lambda"]


def _place(setting: Setting) -> tuple[int, float, float]:
    """Where a setting stands in a table."""
    return ORDER.index(setting[0]), -(setting[2] or 0), setting[1] or 0


def _trues(found: Found, setting: Setting) -> str:
    """The true epsilon, where it differs between sets by the length of their vectors."""
    sets = [name for name in found.sets if found.rows(name, setting) or printed_of(name, setting) is not None]
    values = [found.true(name, setting) for name in sets]
    return " / ".join(dict.fromkeys(_number(value) for value in values))


def _number(epsilon: float) -> str:
    if epsilon == float("inf"):
        return "infinite"
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:.4g}"


def _reach(estimate: Estimate) -> float:
    return 0.0 if np.isnan(estimate.high) else estimate.high - estimate.value


def _counted(found: Found, name: str, estimate: Estimate | None) -> str:
    """Spelled, with the number of runs where it is not that of the set."""
    if estimate is None or estimate.count == found.runs(name):
        return _spelled(estimate)
    return f"{_spelled(estimate)} ({_runs(estimate.count)})"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _spelled(estimate: Estimate | None) -> str:
    if estimate is None:
        return "not run"
    return f"{estimate.value:.1f}" + ("" if np.isnan(estimate.high) else f" ± {_reach(estimate):.1f}")


def _signed(estimate: Estimate) -> str:
    return f"{estimate.value:+.1f} ± {_reach(estimate):.1f}"


def _short(number: float | None) -> str:
    return NONE if number is None else f"{number:g}"


def _head(*names: str) -> list[str]:
    return [_line(*names), "|" + "---|" * len(names)]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
