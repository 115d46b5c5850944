"""Tables and the figure of the experiment, from its rows."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from papers.reports import error_bars, interval, new_figure, plain, require_rows, save_figure, table, write_tables

from dptext.intervals import Estimate, mean_over_runs

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
ATTACKS = {
    "shadow_auc": "shadow model (the paper's)",
    "labelled_shadow_auc": "shadow model with labels",
    "loss_auc": "loss",
    "online_auc": "likelihood ratio",
}
STYLES: dict[str, dict[str, Any]] = {
    "TEM": {"color": "black", "linestyle": "-", "marker": "o"},
    "Madlib": {"color": "0.45", "linestyle": "--", "marker": "s"},
}

Setting = tuple[str, str, str]  # mechanism, epsilon, arm


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``table.md`` and ``figure.png`` next to ``results.csv``, and the tables into a README."""
    results = out / "results.csv"
    require_rows(results.exists(), out)
    with results.open(encoding="utf-8", newline="") as stream:
        rows = Results(list(csv.DictReader(stream)))
    sections = [rows.equal_epsilon(), rows.equal_keep_rate(), *rows.attacks(), rows.summary()]
    write_tables(out / "table.md", sections, readme=readme, start=START, end=END)
    draw(rows, out / "figure.png")


class Results:
    """Rows by setting and trial, and means over trials."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self.rows = rows
        self.by_setting: dict[Setting, dict[int, dict[str, str]]] = defaultdict(dict)
        for row in rows:
            self.by_setting[row["mechanism"], row["epsilon"], row["arm"]][int(row["trial"])] = row

    def settings(self, mechanism: str, arm: str) -> list[Setting]:
        """Return settings by ascending epsilon."""
        return sorted((key for key in self.by_setting if (key[0], key[2]) == (mechanism, arm)), key=_epsilon)

    def mean(self, setting: Setting, column: str) -> Estimate | None:
        return _mean(row.get(column) for row in self.by_setting[setting].values())

    def difference(self, one: Setting, other: Setting, column: str) -> Estimate | None:
        """Return the difference in common trials, which varies less than either, because they share reviews."""
        ones, others = self.by_setting[one], self.by_setting[other]
        return _mean(str(float(ones[t][column]) - float(others[t][column])) for t in ones.keys() & others.keys())

    def equal_epsilon(self) -> str:
        lines = []
        for tem in self.settings("TEM", "epsilon"):
            madlib = ("Madlib", tem[1], "epsilon")
            if madlib in self.by_setting:
                lines.append([tem[1], *self._utility(tem), *self._utility(madlib), self._gap(tem, madlib)])
        raw = [_per_cent(self.mean(setting, "accuracy")) for setting in self.settings("none", "epsilon")]
        lines += [["unprotected", "", "", accuracy, "", "", "", ""] for accuracy in raw]
        lines.append(["majority", "", "", "50.0", "", "", "50.0", ""])
        head = ["epsilon", "TEM: stays", "guessed", "accuracy", "Madlib: stays", "guessed", "accuracy", "TEM - Madlib"]
        return f"**At equal epsilon.** Accuracy on raw TE1, per cent.\n\n{table(head, lines, text_columns=0)}"

    def equal_keep_rate(self) -> str:
        lines = []
        for tem in self.settings("TEM", "keep"):
            madlib = ("Madlib", next(iter(self.by_setting[tem].values()))["beside"], "epsilon")
            if madlib in self.by_setting:
                utility = [tem[1], *self._utility(tem), madlib[1], *self._utility(madlib)]
                lines.append([*utility, self._gap(tem, madlib)])
        columns = ["stays", "guessed", "accuracy"]
        head = ["TEM at", *columns, "Madlib at", *columns, "TEM - Madlib"]
        return f"**At equal keep rates.**\n\n{table(head, lines, text_columns=0)}"

    def attacks(self) -> list[str]:
        """Return the mean success of each attack over trials, and that of the adaptive attacker."""
        lines, adaptive = [], []
        for mechanism in ("none", "TEM", "Madlib"):
            for setting in self.settings(mechanism, "epsilon"):
                cells = [_per_cent(self.mean(setting, "shadow_accuracy"))]
                cells += [_spell(self.mean(setting, column)) for column in ATTACKS]
                cells += [_per_cent(self.mean(setting, column), 2) for column in ("online_tpr_1", "online_tpr_01")]
                lines.append([mechanism, setting[1] if mechanism != "none" else "", *cells])
                auc, rate = self.mean(setting, "adaptive_auc"), self.mean(setting, "adaptive_tpr_1")
                if auc is not None:
                    adaptive.append(
                        f"{mechanism} at epsilon {setting[1]}, with attack models that were trained on text privatized "
                        f"in the same way: AUC {_spell(auc)}, members identified at 1%: {_per_cent(rate, 2)} per cent."
                    )
        head = ["mechanism", "epsilon", "shadow: accuracy", *ATTACKS.values(), "at 1%", "at .1%"]
        text = (
            "**Membership.** AUC (chance: .5) over TR1 and TR2; the last two columns: members identified by the "
            "likelihood ratio at 1% and .1% false positives, per cent."
        )
        return [text, table(head, lines), *adaptive]

    def summary(self) -> str:
        first, trials = self.rows[0], len({row["trial"] for row in self.rows})
        kinds = ("seconds_privatise", "seconds_train", "seconds_attack")
        spent = sum(float(row[kind]) for row in self.rows for kind in kinds)
        return (
            f"{trials} trials, {first['reviews'] or 'all'} reviews per quarter, {int(first['words']):,} words x "
            f"{first['dimension']}, {first['shadows']} shadows; {len(self.rows)} cells in {spent / 60:.0f} minutes of "
            "one core, without the attacker's models of a trial. Brackets: 95% over trials."
        )

    def _utility(self, setting: Setting) -> list[str]:
        rates = [self.mean(setting, column) for column in ("keep", "recovered")]
        shares = [plain(None if rate is None else 100 * rate.value, 1) for rate in rates]
        return [*shares, _per_cent(self.mean(setting, "accuracy"))]

    def _gap(self, one: Setting, other: Setting) -> str:
        return _per_cent(self.difference(one, other, "accuracy"), sign=True)


def _epsilon(setting: Setting) -> float:
    return float(setting[1])


def _mean(values: Iterable[str | None]) -> Estimate | None:
    """Return the mean over trials, without an interval for a single one; None without a value."""
    numbers = [float(value) for value in values if value]
    if len(numbers) < 2:
        return Estimate(numbers[0], numbers[0], numbers[0], 1, "runs") if numbers else None
    return mean_over_runs(numbers)


def _per_cent(mean: Estimate | None, digits: int = 1, *, sign: bool = False) -> str:
    if mean is None:
        return ""
    values = (100 * value for value in (mean.value, mean.low, mean.high))
    return _spell(Estimate(*values, mean.count, mean.of), digits, sign=sign)


def _spell(mean: Estimate | None, digits: int = 3, *, sign: bool = False) -> str:
    text = interval(mean, digits, sign=sign)
    return text if mean is None or mean.count > 1 else text.partition(" ")[0]


def draw(results: Results, path: Path) -> None:
    """Draw accuracy over epsilon and over the keep rate, and attacks over epsilon."""
    figure, panels = new_figure(13.0, 4.8, 1, 3)
    left, middle, right = panels[0]
    for mechanism, style in STYLES.items():
        settings = results.settings(mechanism, "epsilon")
        epsilons = [_epsilon(setting) for setting in settings]
        _curve(left, results, settings, epsilons, "accuracy", mechanism, style)
        _curve(right, results, settings, epsilons, "shadow_auc", f"{mechanism}, shadow model", style)
        hollow = style | {"markerfacecolor": "white", "linewidth": 1.0}
        _curve(right, results, settings, epsilons, "online_auc", f"{mechanism}, likelihood ratio", hollow)
        every = sorted(settings + (results.settings(mechanism, "keep") if mechanism == "TEM" else []), key=_epsilon)
        means = [results.mean(setting, "keep") for setting in every]
        kept = [float("nan") if mean is None else mean.value for mean in means]
        _curve(middle, results, every, kept, "accuracy", mechanism, style)
    for raw in results.settings("none", "epsilon"):
        for axes, column, name in (
            (left, "accuracy", "unprotected"),
            (middle, "accuracy", "unprotected"),
            (right, "shadow_auc", "unprotected, shadow model"),
            (right, "online_auc", "unprotected, likelihood ratio"),
        ):
            if (level := results.mean(raw, column)) is not None:
                axes.axhline(level.value, color="0.3", linestyle=":" if column != "online_auc" else "-.", label=name)
    ticks = sorted({_epsilon(setting) for setting in results.settings("TEM", "epsilon")})
    for axes, title, label, xlabel in (
        (left, "Equal epsilon", "accuracy on raw reviews (95% over trials)", "epsilon"),
        (middle, "Equal keep rates", "", "share of the words of a text that stay"),
        (right, "Membership attacks", "AUC", "epsilon"),
    ):
        axes.axhline(0.5, color="0.75", label="majority" if axes is not right else "chance", zorder=0)
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        if axes is not middle:
            axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
        axes.set_title(title)
        axes.set_ylabel(label)
        axes.set_xlabel(xlabel)
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
        axes.set_ylim(bottom=0.45)
    save_figure(figure, path, dpi=150)


def _curve(
    axes: Any,
    results: Results,
    settings: Sequence[Setting],
    places: Sequence[float],
    column: str,
    label: str,
    style: dict[str, Any],
) -> None:
    means = [(place, results.mean(setting, column)) for place, setting in zip(places, settings, strict=True)]
    if points := [(place, mean) for place, mean in means if mean is not None]:
        error_bars(axes, points, label=label, capsize=2.5, markersize=4.5, **style)
