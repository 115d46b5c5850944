"""Tables and the figure of the experiment, from its rows."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from papers.reports import write_between

from dptext.errors import DataError, extra
from dptext.intervals import Estimate, mean_over_runs

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
ATTACKS = {
    "shadow_auc": "shadow model (the paper's)",
    "labelled_shadow_auc": "shadow model with labels",
    "loss_auc": "loss",
    "online_auc": "likelihood ratio",
}

Row = dict[str, str]
Setting = tuple[str, str, str]  # mechanism, epsilon, arm


def write_report(results: Path, out: Path, *, readme: Path | None) -> None:
    """``table.md`` and ``figure.png`` beside the results; the tables also between the marks of a README.

    Raises:
        DataError: there are no results.
    """
    if not results.exists():
        raise DataError(f"no rows at {str(results)!r}: run the experiment first")
    with results.open(encoding="utf-8", newline="") as stream:
        result = Results(list(csv.DictReader(stream)))
    text = "\n\n".join([result.equal_epsilon(), result.equal_keep(), result.attacks(), result.summary()]) + "\n"
    (out / "table.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)
    draw(result, out / "figure.png")


class Results:
    """Rows by setting, and means over trials."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.by_setting: dict[Setting, dict[int, Row]] = defaultdict(dict)
        for row in rows:
            self.by_setting[row["mechanism"], row["epsilon"], row["arm"]][int(row["trial"])] = row

    def settings(self, mechanism: str, arm: str) -> list[Setting]:
        """By ascending epsilon."""
        results = [entry for entry in self.by_setting if entry[0] == mechanism and entry[2] == arm]
        return sorted(results, key=lambda each: float(each[1]))

    def mean(self, setting: Setting, column: str) -> Estimate | None:
        return mean_of(row.get(column) for row in self.by_setting[setting].values())

    def difference(self, one: Setting, other: Setting, column: str) -> Estimate | None:
        """Of the trials that have both: they share reviews, so their difference varies less than either."""
        ones, others = self.by_setting[one], self.by_setting[other]
        return mean_of(str(float(ones[t][column]) - float(others[t][column])) for t in ones.keys() & others.keys())

    def beside(self, setting: Setting) -> Setting:
        """Madlib's setting that a setting of equal keep rate stands beside."""
        return "Madlib", next(iter(self.by_setting[setting].values()))["beside"], "epsilon"

    # -- tables --------------------------------------------------------------------------------------------

    def equal_epsilon(self) -> str:
        lines = [
            "**At equal epsilon.** Accuracy on raw TE1, per cent.",
            "",
            "| epsilon | TEM: stays | guessed | accuracy | Madlib: stays | guessed | accuracy | TEM - Madlib |",
            "|---:|---:|---:|---:|---:|---:|---:|---:|",
        ]
        for tem in self.settings("TEM", "epsilon"):
            madlib = ("Madlib", tem[1], "epsilon")
            if madlib in self.by_setting:
                lines.append(f"| {tem[1]} | {self._side(tem)} | {self._side(madlib)} | {self._gap(tem, madlib)} |")
        raw = self.settings("none", "epsilon")
        lines += [f"| unprotected | | | {percent(self.mean(raw[0], 'accuracy'))} | | | | |"] if raw else []
        return "\n".join([*lines, "| majority | | | 50.0 | | | 50.0 | |"])

    def equal_keep(self) -> str:
        lines = [
            "**Where equally many words stay.**",
            "",
            "| TEM at | stays | guessed | accuracy | Madlib at | stays | guessed | accuracy | TEM - Madlib |",
            "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        ]
        for tem in self.settings("TEM", "keep"):
            madlib = self.beside(tem)
            if madlib in self.by_setting:
                sides = f"{tem[1]} | {self._side(tem)} | {madlib[1]} | {self._side(madlib)}"
                lines.append(f"| {sides} | {self._gap(tem, madlib)} |")
        return "\n".join(lines)

    def attacks(self) -> str:
        """Mean over trials; the interval is that of the trials' means."""
        lines = [
            "**Membership.** AUC (chance: .5) over TR1 and TR2; the last two columns: members found by the "
            "likelihood ratio at 1% and .1% false positives, per cent.",
            "",
            f"| mechanism | epsilon | shadow: accuracy | {' | '.join(ATTACKS.values())} | at 1% | at .1% |",
            f"|---|---:|---:|{'---:|' * len(ATTACKS)}---:|---:|",
        ]
        adaptive = []
        for mechanism in ("none", "TEM", "Madlib"):
            for setting in self.settings(mechanism, "epsilon"):
                cells = [percent(self.mean(setting, "shadow_accuracy"))]
                cells += [plain(self.mean(setting, column)) for column in ATTACKS if self._has(setting, column)]
                cells += ["" for column in ATTACKS if not self._has(setting, column)]
                for column in ("online_tpr_1", "online_tpr_01"):
                    cells.append(percent(self.mean(setting, column), 2) if self._has(setting, column) else "")
                lines.append(f"| {mechanism} | {setting[1] if mechanism != 'none' else ''} | {' | '.join(cells)} |")
                result = self.mean(setting, "adaptive_auc")
                if result is not None:
                    adaptive.append(
                        f"{mechanism} at epsilon {setting[1]}, attacked by somebody whose models were trained on text "
                        f"privatised in the same way: AUC {plain(result)}, members found at 1%: "
                        f"{percent(self.mean(setting, 'adaptive_tpr_1'), 2)} per cent."
                    )
        return "\n".join([*lines, *([""] if adaptive else []), *adaptive])

    def summary(self) -> str:
        first = self.rows[0]
        trials = len({row["trial"] for row in self.rows})
        kinds = ("seconds_privatise", "seconds_train", "seconds_attack")
        spent = sum(float(row[kind]) for row in self.rows for kind in kinds)
        return (
            f"{trials} trials, {first['reviews'] or 'all'} reviews a quarter, {int(first['words']):,} words x "
            f"{first['dimension']}, {first['shadows']} shadows; {len(self.rows)} cells in {spent / 60:.0f} minutes of "
            "one core, the attacker's models of a trial aside. Brackets: 95% over trials."
        )

    def _has(self, setting: Setting, column: str) -> bool:
        return self.mean(setting, column) is not None

    def _side(self, setting: Setting) -> str:
        rates = [percent(mean_only(self.mean(setting, column))) for column in ("keep", "recovered")]
        return " | ".join([*rates, percent(self.mean(setting, "accuracy"))])

    def _gap(self, one: Setting, other: Setting) -> str:
        return percent(self.difference(one, other, "accuracy"), sign=True)


def mean_of(values: Iterable[str | None]) -> Estimate | None:
    """The mean over trials, without an interval where there is one only; None where there is no value."""
    numbers = [float(value) for value in values if value]
    if len(numbers) < 2:
        return Estimate(numbers[0], numbers[0], numbers[0], 1, "runs") if numbers else None
    return mean_over_runs(numbers)


def mean_only(found: Estimate | None) -> Estimate | None:
    return None if found is None else Estimate(found.value, found.value, found.value, 1, found.of)


def percent(found: Estimate | None, digits: int = 1, *, sign: bool = False) -> str:
    scaled = None if found is None else Estimate(*(100 * entry for entry in _three(found)), found.count, found.of)
    return plain(scaled, digits, sign=sign)


def plain(found: Estimate | None, digits: int = 3, *, sign: bool = False) -> str:
    if found is None:
        return ""
    value, low, high = (f"{entry:{'+' if sign else ''}.{digits}f}" for entry in _three(found))
    return value if found.count < 2 else f"{value} [{low}, {high}]"


def _three(found: Estimate) -> tuple[float, float, float]:
    return found.value, found.low, found.high


# -- the figure ------------------------------------------------------------------------------------------------

STYLES: dict[tuple[str, str], dict[str, Any]] = {
    ("TEM", "epsilon"): {"color": "black", "linestyle": "-", "marker": "o"},
    ("Madlib", "epsilon"): {"color": "0.45", "linestyle": "--", "marker": "s"},
}


def draw(found: Results, path: Path) -> None:
    """Accuracy over epsilon and over the share of words that stay; attacks over epsilon. Readable in grey.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = extra("matplotlib.figure", "report", "a figure").Figure(figsize=(13.0, 4.8), layout="constrained")
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)  # no window
    left, middle, right = figure.subplots(1, 3)
    for (mechanism, arm), style in STYLES.items():
        settings = found.settings(mechanism, arm)
        epsilons = [float(setting[1]) for setting in settings]
        _curve(left, found, settings, epsilons, "accuracy", mechanism, style)
        _curve(right, found, settings, epsilons, "shadow_auc", f"{mechanism}, shadow model", style)
        hollow = style | {"markerfacecolor": "white", "linewidth": 1.0}
        _curve(right, found, settings, epsilons, "online_auc", f"{mechanism}, likelihood ratio", hollow)
        everything = settings + (found.settings(mechanism, "keep") if mechanism == "TEM" else [])
        everything.sort(key=lambda each: float(each[1]))
        kept = [_value(found.mean(entry, "keep")) for entry in everything]
        _curve(middle, found, everything, kept, "accuracy", mechanism, style)
    raw = found.settings("none", "epsilon")
    if raw:
        for axes, column, name in (
            (left, "accuracy", "unprotected"),
            (middle, "accuracy", "unprotected"),
            (right, "shadow_auc", "unprotected, shadow model"),
            (right, "online_auc", "unprotected, likelihood ratio"),
        ):
            level = found.mean(raw[0], column)
            if level is not None:
                axes.axhline(level.value, color="0.3", linestyle=":" if column != "online_auc" else "-.", label=name)
    for axes in (left, middle, right):
        axes.axhline(0.5, color="0.75", label="majority" if axes is not right else "chance", zorder=0)
        axes.grid(visible=True, color="0.93", linewidth=0.6)
    for axes in (left, right):
        axes.set_xscale("log")
        ticks = sorted({float(setting[1]) for setting in found.settings("TEM", "epsilon")})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("epsilon")
    left.set_title("Equal epsilon")
    left.set_ylabel("accuracy on raw reviews (95% over trials)")
    middle.set_title("Equally many words stay")
    middle.set_xlabel("share of the words of a text that stay")
    right.set_title("Membership attacks")
    right.set_ylabel("AUC")
    for axes in (left, middle, right):
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
        axes.set_ylim(bottom=0.45)
    figure.savefig(path, dpi=150)


def _curve(
    axes: Any, found: Results, settings: Sequence[Setting], x: Sequence[float], column: str, label: str, style: Any
) -> None:
    points = [
        (position, item) for position, setting in zip(x, settings, strict=True) if (item := found.mean(setting, column))
    ]
    if points:
        values = [entry.value for _, entry in points]
        reach = [
            [entry.value - entry.low for _, entry in points],
            [entry.high - entry.value for _, entry in points],
        ]
        axes.errorbar(
            [position for position, _ in points], values, yerr=reach, label=label, capsize=2.5, markersize=4.5, **style
        )


def _value(found: Estimate | None) -> float:
    return float("nan") if found is None else found.value
