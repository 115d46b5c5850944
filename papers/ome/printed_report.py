"""Tables 1 and 2 with the printed numbers, the paper's figure 3, and accuracy against true epsilon."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.reports import Rows, new_figure, require_rows, save_figure, table, write_tables
from papers.sweeps import Row

from dptext.intervals import Estimate, mean_over_runs
from dptext.representations.additive import L2Laplace
from dptext.representations.bits import OneBit, WeightedBits
from dptext.representations.privunit import PrivUnit
from dptext.representations.published_protocols import OME, OUE, SUE, oue_chances, p1, p2, q, sue_chances
from dptext.representations.randomizer import Channel

PUBLISHED = ("SUE", "OUE", "OME")
PROVED = {"PrivUnit": 4, "L2Laplace": 1, "WeightedBits": 1, "OneBit": 1}
"""Mechanisms with a proof, and their number of public directions per unit of epsilon."""
BITS, INTEGER_BITS = 10, 4
_BUILDERS: dict[str, Any] = {"SUE": SUE, "OUE": OUE, "OME": OME, "PrivUnit": PrivUnit, "L2Laplace": L2Laplace}
_BUILDERS |= {"WeightedBits": WeightedBits, "OneBit": OneBit}


@dataclass(frozen=True, eq=False)
class Sent:
    """Vectors or bits that the server receives, and the same without noise.

    ``channel`` is the noise that the server knows; None if it is unknown.
    """

    noisy: npt.NDArray[Any]
    clean: npt.NDArray[Any]
    channel: Channel | None
    dimension: int


@cache
def channel_of(name: str, epsilon: float, dimension: int, *, lambda_: float | None = None) -> Any:
    """Return the channel for vectors of a dimension, at the printed or the proved epsilon."""
    options: dict[str, Any] = {}
    if name in PUBLISHED:
        options = {"bits": BITS, "integer_bits": INTEGER_BITS, "unsafe_as_published": True}
    if name == "OME":
        options["lambda_"] = lambda_ or 100.0
    return _BUILDERS[name](epsilon=epsilon, **options).channel(dimension)


def true_epsilon(name: str, epsilon: float, dimension: int, *, lambda_: float | None = None) -> float:
    """Return the proved epsilon."""
    return float(channel_of(name, epsilon, dimension, lambda_=lambda_).guarantee.epsilon)


START, END = "<!-- printed tables: written by the experiment -->", "<!-- end of the printed tables -->"
SETS = ("IMDb", "Amazon", "Yelp", "Intent", "MRPC")
ORDER = ("none", "unflipped bits", "OME", "SUE", "OUE", *PROVED)
Setting = tuple[str, float | None, float | None]  # mechanism, printed epsilon, lambda
CLEAN: Setting = ("none", None, None)
CONTROL_ROW: Setting = ("OME", 1.0, 100.0)

PRINTED: dict[Setting, tuple[float, ...]] = {
    CLEAN: (70.67, 67.50, 66.00, 94.17, 68.38),
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


class Results:
    """The rows of all sets that were run, by set and setting."""

    def __init__(self, folder: Path, sets: Sequence[str] = SETS) -> None:
        self._rows: dict[str, dict[Setting, list[Row]]] = {}
        self.seconds = 0.0
        for name in sets:
            if file := Rows(folder / f"printed-{name.lower()}.jsonl"):
                self._rows[name] = defaultdict(list)
                for row in file.rows:
                    settings: Any = row.settings
                    self._rows[name][settings["mechanism"], settings["epsilon"], settings["lambda"]].append(row)
                self.seconds += file.seconds

    @property
    def sets(self) -> list[str]:
        return list(self._rows)

    def rows(self, name: str, setting: Setting) -> list[Row]:
        return self._rows.get(name, {}).get(setting, [])

    def settings(self, *mechanisms: str) -> list[Setting]:
        """Return the settings of all sets, by mechanism, lambda and epsilon."""
        settings = {setting for rows in self._rows.values() for setting in rows if setting[0] in mechanisms}
        return sorted(settings, key=_place)

    def runs(self, name: str) -> int:
        return len(self.rows(name, CLEAN))

    def estimate(self, name: str, setting: Setting, number: str = "accuracy") -> Estimate | None:
        """Return the mean over the runs in per cent."""
        values = [100 * row.numbers[number] for row in self.rows(name, setting)]
        if len(values) < 2:
            return Estimate(values[0], math.nan, math.nan, 1, "runs") if values else None
        return mean_over_runs(values)

    def true_epsilon(self, name: str, setting: Setting) -> float:
        """Return the proved epsilon, also of a setting that was not run; infinite without a mechanism."""
        rows = self.rows(name, setting) or self.rows(name, CLEAN)
        mechanism, epsilon, lambda_ = setting
        if epsilon is None or not rows:
            return math.inf
        return true_epsilon(mechanism, epsilon, round(rows[0].numbers["dimension"]), lambda_=lambda_)

    def spell(self, name: str, estimate: Estimate | None) -> str:
        """Return an estimate, with the number of runs if it is not that of the set."""
        if estimate is None or estimate.count == self.runs(name):
            return _spell(estimate)
        return f"{_spell(estimate)} ({_runs(estimate.count)})"


def write_report(out: Path, *, readme: Path | None, sets: Sequence[str] = SETS) -> None:
    """Write ``printed.md``, ``figure3.png`` and ``true_epsilon.png`` next to the rows, and the tables into a README."""
    results = Results(out, sets)
    require_rows(results.sets, out)
    runs = ", ".join(f"{name} {results.runs(name)}" for name in results.sets)
    summary = f"Runs: {runs}. All cells together took {results.seconds / 3600:.1f} hours of one core."
    sections = [_printed_table(results), _agreement(results), _controls(results), proved_table(results)]
    write_tables(out / "printed.md", [*sections, summary], readme=readme, start=START, end=END)
    draw_chances(out / "figure3.png")
    draw(results, out / "true_epsilon.png")


def _printed_table(results: Results) -> str:
    majority = [_spell(results.estimate(name, CLEAN, "majority")) for name in results.sets]
    lines = [["*majority class*", "0", "none", "0", *majority]]
    for setting in sorted({*results.settings("none", *PUBLISHED), *PRINTED}, key=_place):
        cells = [_printed_cell(results, name, setting) for name in results.sets]
        mechanism = "not private" if setting == CLEAN else setting[0]
        lines.append([mechanism, _short(setting[1]), _short(setting[2]), true_epsilons(results, setting), *cells])
    head = ["protocol", "claimed", "lambda", "true epsilon (GloVe / Intent / MRPC)", *results.sets]
    return (
        "**Tables 1 and 2 again.** Accuracy, per cent, mean of the runs and half of its 95% interval; in brackets the "
        "printed number, **bold** if it is within our interval, and the number of runs if it differs from the last "
        f"line.\n\n{table(head, lines, text_columns=4)}"
    )


def printed_number(name: str, setting: Setting) -> float | None:
    """Return the printed number of a set, per cent."""
    return dict(zip(SETS, PRINTED.get(setting, ()), strict=False)).get(name)


def _printed_cell(results: Results, name: str, setting: Setting) -> str:
    estimate, printed = results.estimate(name, setting), printed_number(name, setting)
    if estimate is None:
        return "not printed" if printed is None else f"not run (printed {printed:.2f})"
    if printed is None:
        return f"{_spell(estimate)} (not printed)"
    mark = "**" if _is_within(estimate, printed) else ""
    runs = "" if estimate.count == results.runs(name) else f"; {_runs(estimate.count)}"
    return f"{_spell(estimate)} ({mark}{printed:.2f}{mark}{runs})"


def _is_within(estimate: Estimate, printed: float) -> bool:
    return estimate.low <= printed <= estimate.high  # never for a single run, which has no interval


def _agreement(results: Results) -> str:
    """Return the numbers of printed values inside, above and below our intervals."""
    texts, total_within, total = [], 0, 0
    for name in results.sets:
        values = {setting: printed_number(name, setting) for setting in PRINTED}
        printed = {setting: value for setting, value in values.items() if value is not None}
        estimates = [(results.estimate(name, setting), value) for setting, value in printed.items()]
        pairs = [(estimate, value) for estimate, value in estimates if estimate is not None and estimate.count > 1]
        within = sum(_is_within(estimate, value) for estimate, value in pairs)
        above = sum(value > estimate.high for estimate, value in pairs)
        missing = len(printed) - len(pairs)
        text = f", {missing} without an interval of ours" if missing else ""
        texts.append(f"{name} {within} of {len(printed)} ({above} above, {len(pairs) - within - above} below{text})")
        total_within, total = total_within + within, total + len(printed)
    return f"**Printed numbers within our 95% intervals: {total_within} of {total}.** {'; '.join(texts)}."


def _controls(results: Results) -> str:
    flipped = "bits flipped by OME, lambda 100"
    lines = []
    for trained, classified, setting, number in (
        ("real numbers", "real numbers", CLEAN, "accuracy"),
        ("bits, not flipped", "bits, not flipped", ("unflipped bits", None, None), "accuracy"),
        (flipped, "bits, not flipped", CONTROL_ROW, "accuracy without noise at use"),
        (flipped, "bits flipped by OME", CONTROL_ROW, "accuracy"),
    ):
        cells = [results.spell(name, results.estimate(name, setting, number)) for name in results.sets]
        lines.append([trained, classified, *cells])
    head = ["training vectors", "test vectors", *results.sets]
    return f"**The control.** The same perceptron on unflipped bits.\n\n{table(head, lines, text_columns=2)}"


def proved_table(results: Results) -> str:
    lines = [
        [setting[0], _short(setting[1]), *(_spell(results.estimate(name, setting)) for name in results.sets)]
        for setting in results.settings(*PROVED)
    ]
    return (
        "**Mechanisms with a proof**, on principal axes of other texts, whose labels are not used (four per unit of "
        "epsilon with PrivUnit, one with the others), and a linear model that knows the noise.\n\n"
        + table(["mechanism", "true epsilon", *results.sets], lines)
    )


def _place(setting: Setting) -> tuple[int, float, float]:
    """Return the place of a setting in a table."""
    return ORDER.index(setting[0]), -(setting[2] or 0), setting[1] or 0


def true_epsilons(results: Results, setting: Setting) -> str:
    """Return the distinct true epsilons of the sets, which depend on the length of their vectors."""
    sets = [name for name in results.sets if results.rows(name, setting) or printed_number(name, setting) is not None]
    return " / ".join(dict.fromkeys(_epsilon(results.true_epsilon(name, setting)) for name in sets))


def _epsilon(epsilon: float) -> str:
    if epsilon == math.inf:
        return "infinite"
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:.4g}"


def _half(estimate: Estimate) -> float:
    return 0.0 if math.isnan(estimate.high) else estimate.high - estimate.value


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _spell(estimate: Estimate | None, *, sign: bool = False) -> str:
    if estimate is None:
        return "not run"
    half = "" if math.isnan(estimate.high) else f" ± {_half(estimate):.1f}"
    return f"{estimate.value:{'+' if sign else ''}.1f}{half}"


def _short(number: float | None) -> str:
    return "none" if number is None else f"{number:g}"


# -- figures -----------------------------------------------------------------------------------------------------------

_STYLES: dict[str, dict[str, Any]] = {
    "PrivUnit": {"color": "black", "linestyle": "-", "marker": "o"},
    "L2Laplace": {"color": "0.45", "linestyle": "-", "marker": "s"},
    "WeightedBits": {"color": "0.45", "linestyle": "--", "marker": "^"},
    "OneBit": {"color": "0.7", "linestyle": "--", "marker": "v"},
    "OME": {"color": "black", "linestyle": "none", "marker": "x"},
    "SUE": {"color": "black", "linestyle": "none", "marker": "+"},
    "OUE": {"color": "black", "linestyle": "none", "marker": "1"},
}


def draw_chances(path: Path) -> None:
    """Draw figure 3: the probabilities over epsilon (lambda 100) and over lambda (epsilon 1), r = 50, l = 10."""
    figure, panels = new_figure(9, 3.6, 1, 2)
    left, right = panels[0]
    dimension, epsilons, lambdas = 50, np.linspace(0.5, 10, 40), np.geomspace(1, 100, 60)
    labels = (("OME p1 (even bits)", "-"), ("OME p2 (odd bits)", "--"), ("OME q", ":"))
    over_epsilon = (np.full(40, p1(100.0)), np.full(40, p2(100.0)), q(epsilons, 100.0, dimension * BITS))
    over_lambda = (p1(lambdas), p2(lambdas), q(1.0, lambdas, dimension * BITS))
    for (label, line), one, other in zip(labels, over_epsilon, over_lambda, strict=True):
        left.plot(epsilons, one, line, color="black", label=label)
        right.plot(lambdas, other, line, color="black")
    for chances, name, grey in ((sue_chances, "SUE", "0.45"), (oue_chances, "OUE", "0.7")):
        for values, line, label in zip(chances(epsilons, 2 * dimension), "-:", "pq", strict=True):
            left.plot(epsilons, values, line, color=grey, label=f"{name} {label}")
    left.set_xlabel("epsilon as printed (lambda = 100)")
    right.set_xlabel("lambda (epsilon = 1)")
    right.set_xscale("log")
    left.set_ylabel("probability that the bit is sent as 1")
    for axes in (left, right):
        axes.grid(color="0.92")
        axes.set_ylim(-0.05, 1.05)
    left.legend(fontsize=7.5, loc="upper right", bbox_to_anchor=(1.0, 0.96))
    save_figure(figure, path, dpi=150)


def draw(results: Results, path: Path) -> None:
    sets = [name for name in results.sets if any(results.rows(name, setting) for setting in results.settings(*PROVED))]
    figure, panels = new_figure(3.1 * len(sets) + 0.6, 3.9, 1, len(sets))
    for axes, name in zip(panels[0], sets, strict=True):
        for mechanism in (*PROVED, *PUBLISHED):
            points = [
                (results.true_epsilon(name, setting), estimate.value, _half(estimate))
                for setting in results.settings(mechanism)
                if (estimate := results.estimate(name, setting)) is not None
            ]
            if points:
                label = f"{mechanism} (as printed)" if mechanism in PUBLISHED else mechanism
                style = {"capsize": 2, "linewidth": 1.2, "label": label} | _STYLES[mechanism]
                axes.errorbar(*zip(*sorted(points), strict=True), **style)
        for number, label in (("accuracy", "no noise"), ("majority", "majority")):
            if (level := results.estimate(name, CLEAN, number)) is not None:
                axes.axhline(level.value, color="0.75", linewidth=1, zorder=0)
                axes.text(0.02, level.value, label, transform=axes.get_yaxis_transform(), fontsize=7, va="bottom")
        axes.set_xscale("log")
        axes.set_title(name, fontsize=10)
        axes.grid(axis="x", color="0.92")
    panels[0][0].set_ylabel("accuracy, per cent")
    panels[0][len(sets) // 2].set_xlabel("true epsilon of each text (local, any two texts)")
    legend = panels[0][0].get_legend_handles_labels()
    figure.legend(*legend, loc="outside lower center", ncols=7, fontsize=8, frameon=False)
    save_figure(figure, path, dpi=150)
