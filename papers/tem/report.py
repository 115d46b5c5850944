"""Tables and the figure of the experiment, from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.reports import error_bars, interval, new_figure, plain, require_rows, save_figure, table, write_tables

from dptext.intervals import Estimate, mean_over_runs
from papers import reports

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

Setting = Mapping[str, Any]  # mechanism, epsilon, arm ("epsilon" or "keep"), beside (Madlib's epsilon of "keep")


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``table.md`` and ``figure.png`` next to the rows, and the tables into a README."""
    rows = Rows(out / "results.jsonl")
    require_rows(rows, out)
    sections = [_equal_epsilon(rows), _equal_keep_rate(rows), *_attacks(rows), _summary(rows)]
    write_tables(out / "table.md", sections, readme=readme, start=START, end=END)
    draw(rows, out / "figure.png")


class Rows(reports.Rows):
    @property
    def majority(self) -> float:
        """The share of the largest class; half of the IMDb reviews."""
        return float(self.constants.get("majority", 0.5))

    def settings(self, mechanism: str, arm: str = "epsilon") -> list[Setting]:
        """Return settings by ascending epsilon."""
        settings = {row.settings["epsilon"]: row.settings for row in self.select(mechanism=mechanism, arm=arm)}
        return [settings[epsilon] for epsilon in sorted(settings, key=float)]  # type: ignore[arg-type]

    def madlib(self, epsilon: float) -> Setting | None:
        return next((entry for entry in self.settings("Madlib") if entry["epsilon"] == epsilon), None)

    def over_trials(self, setting: Setting, number: str) -> Estimate | None:
        return _mean(row.numbers[number] for row in self.select(**setting) if number in row.numbers)

    def difference(self, one: Setting, other: Setting) -> str:
        """Return the difference of accuracies in common trials, which varies less than either: they share reviews."""
        ones, others = ({row.seed: row.numbers["accuracy"] for row in self.select(**entry)} for entry in (one, other))
        return _per_cent(_mean(ones[trial] - others[trial] for trial in ones.keys() & others.keys()), sign=True)

    def utility(self, setting: Setting) -> list[str]:
        rates = [self.over_trials(setting, number) for number in ("keep", "recovered")]
        shares = [plain(None if rate is None else 100 * rate.value, 1) for rate in rates]
        return [*shares, _per_cent(self.over_trials(setting, "accuracy"))]


def _equal_epsilon(rows: Rows) -> str:
    lines = []
    for tem in rows.settings("TEM"):
        if madlib := rows.madlib(tem["epsilon"]):
            gap = rows.difference(tem, madlib)
            lines.append([f"{tem['epsilon']:g}", *rows.utility(tem), *rows.utility(madlib), gap])
    raw = [_per_cent(rows.over_trials(setting, "accuracy")) for setting in rows.settings("none")]
    lines += [["unprotected", "", "", accuracy, "", "", "", ""] for accuracy in raw]
    majority = f"{100 * rows.majority:.1f}"
    lines.append(["majority", "", "", majority, "", "", majority, ""])
    head = ["epsilon", "TEM: stays", "guessed", "accuracy", "Madlib: stays", "guessed", "accuracy", "TEM - Madlib"]
    return f"**At equal epsilon.** Accuracy on raw TE1, per cent.\n\n{table(head, lines, text_columns=0)}"


def _equal_keep_rate(rows: Rows) -> str:
    lines = []
    for tem in rows.settings("TEM", "keep"):
        if madlib := rows.madlib(tem["beside"]):
            utility = [f"{tem['epsilon']:g}", *rows.utility(tem), f"{madlib['epsilon']:g}", *rows.utility(madlib)]
            lines.append([*utility, rows.difference(tem, madlib)])
    columns = ["stays", "guessed", "accuracy"]
    head = ["TEM at", *columns, "Madlib at", *columns, "TEM - Madlib"]
    return f"**At equal keep rates.**\n\n{table(head, lines, text_columns=0)}"


def _attacks(rows: Rows) -> list[str]:
    """Return the mean success of each attack over trials, and that of the adaptive attacker."""
    lines, adaptive = [], []
    for mechanism in ("none", "TEM", "Madlib"):
        for setting in rows.settings(mechanism):
            epsilon = f"{setting['epsilon']:g}"
            cells = [_per_cent(rows.over_trials(setting, "shadow_accuracy"))]
            cells += [_spell(rows.over_trials(setting, number)) for number in ATTACKS]
            cells += [_per_cent(rows.over_trials(setting, number), 2) for number in ("online_tpr_1", "online_tpr_01")]
            lines.append([mechanism, epsilon if mechanism != "none" else "", *cells])
            auc, rate = (rows.over_trials(setting, f"adaptive_{number}") for number in ("auc", "tpr_1"))
            if auc is not None:
                adaptive.append(
                    f"{mechanism} at epsilon {epsilon}, with attack models that were trained on text privatized "
                    f"in the same way: AUC {_spell(auc)}, members identified at 1%: {_per_cent(rate, 2)} per cent."
                )
    head = ["mechanism", "epsilon", "shadow: accuracy", *ATTACKS.values(), "at 1%", "at .1%"]
    text = (
        "**Membership.** AUC (chance: .5) over TR1 and TR2; the last two columns: members identified by the "
        "likelihood ratio at 1% and .1% false positives, per cent."
    )
    return [text, table(head, lines), *adaptive]


def _summary(rows: Rows) -> str:
    constants, trials = rows.constants, len({row.seed for row in rows.rows})
    return (
        f"{trials} trials, {constants['reviews'] or 'all'} reviews per quarter, {constants['words']:,} words x "
        f"{constants['dimension']}, {constants['shadows']} shadows; {rows.cells} cells in {rows.seconds / 60:.0f} "
        "minutes of one core, without the attacker's models of a trial. Brackets: 95% over trials."
    )


def _mean(values: Iterable[float]) -> Estimate | None:
    """Return the mean over trials, without an interval for a single one; None without a value."""
    numbers = list(values)
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


def draw(rows: Rows, path: Path) -> None:
    figure, panels = new_figure(13.0, 4.8, 1, 3)
    left, middle, right = panels[0]

    def curve(axes: Any, settings: Sequence[Setting], places: Sequence[float], number: str, **style: Any) -> None:
        means = [(place, rows.over_trials(setting, number)) for place, setting in zip(places, settings, strict=True)]
        if points := [(place, mean) for place, mean in means if mean is not None]:
            error_bars(axes, points, capsize=2.5, markersize=4.5, **style)

    for mechanism, style in STYLES.items():
        settings = rows.settings(mechanism)
        epsilons = [setting["epsilon"] for setting in settings]
        curve(left, settings, epsilons, "accuracy", label=mechanism, **style)
        curve(right, settings, epsilons, "shadow_auc", label=f"{mechanism}, shadow model", **style)
        hollow = style | {"markerfacecolor": "white", "linewidth": 1.0, "label": f"{mechanism}, likelihood ratio"}
        curve(right, settings, epsilons, "online_auc", **hollow)
        if mechanism == "TEM":
            settings = sorted(settings + rows.settings("TEM", "keep"), key=lambda setting: setting["epsilon"])
        means = [rows.over_trials(setting, "keep") for setting in settings]
        kept = [float("nan") if mean is None else mean.value for mean in means]
        curve(middle, settings, kept, "accuracy", label=mechanism, **style)
    for raw in rows.settings("none"):
        for axes, number, name in (
            (left, "accuracy", "unprotected"),
            (middle, "accuracy", "unprotected"),
            (right, "shadow_auc", "unprotected, shadow model"),
            (right, "online_auc", "unprotected, likelihood ratio"),
        ):
            if (level := rows.over_trials(raw, number)) is not None:
                axes.axhline(level.value, color="0.3", linestyle=":" if number != "online_auc" else "-.", label=name)
    ticks = [setting["epsilon"] for setting in rows.settings("TEM")]
    for axes, title, label, xlabel in (
        (left, "Equal epsilon", "accuracy on raw reviews (95% over trials)", "epsilon"),
        (middle, "Equal keep rates", "", "share of the words of a text that stay"),
        (right, "Membership attacks", "AUC", "epsilon"),
    ):
        level, name = (0.5, "chance") if axes is right else (rows.majority, "majority")
        axes.axhline(level, color="0.75", label=name, zorder=0)
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        if axes is not middle:
            axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
        axes.set(title=title, ylabel=label, xlabel=xlabel)
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
        axes.set_ylim(bottom=min(0.45, level - 0.05))
    save_figure(figure, path, dpi=150)
