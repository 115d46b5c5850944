"""Tables of the experiment, from its rows."""

from __future__ import annotations

import math
from pathlib import Path

from papers.blogs import TASKS
from papers.dptext import methods
from papers.dptext.methods import ENCODERS, METHODS, NAMES
from papers.reports import above, duration, join_sections, require_rows, signed, stored_interval, table, write_between
from papers.sweeps import Row

from papers import reports

START, END = "<!-- tables: written by papers.dptext.experiment -->", "<!-- end of the tables -->"
ATTRIBUTES = ("gender", "age")
TOLERANCE = 0.03  # of the task's accuracy
PRINTED_SET = "TrustPilot, English, 10,000 reviews per country; about 75% have five stars"
PRINTED = {
    "ORIGINAL": (0.7493, 0.3449, 0.1539, 0.5301),
    "DIFPRIV": (0.7397, 0.3177, 0.1411, 0.5118),
    "ADV-ALL": (0.7165, 0.3076, 0.1080, 0.4716),
    "DPTEXT": (0.7318, 0.1994, 0.0581, 0.3911),
}
"""Table 1 of the paper (TrustPilot, 10 folds): accuracy of the sentiment; F1 of age, location and gender."""
_ORDER = [method.name for method in METHODS]


class Rows(reports.Rows):
    """The rows of one file in the order of tables; ``repeated`` are those of further runs, with other folds."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.task, self.encoder = path.stem.rsplit(", ", 1)
        rows = sorted(self.rows, key=_place)
        first = min((row.seed for row in rows), default=0)
        self.rows = tuple(row for row in rows if row.seed == first)
        self.repeated = tuple(row for row in rows if row.seed != first)

    @property
    def table(self) -> list[Row]:
        """The rows whose adversaries have the weight 1."""
        return [row for row in self.rows if row.settings["alpha"] in (None, 1.0)]

    def get(self, method: str, epsilon: float | None) -> Row | None:
        return next((row for row in self.select(method=method, epsilon=epsilon) if row in self.table), None)

    @property
    def reference(self) -> Row:
        row = self.get(methods.ADV_ALL, None)
        assert row is not None
        return row

    @property
    def attackers(self) -> list[str]:
        return str(self.constants["attackers"]).split(", ")

    def best_attack(self, row: Row, attribute: str) -> str:
        """Return the name of the largest macro-F1 of the attackers."""
        return max((f"{attribute} {entry} macro-F1" for entry in self.attackers), key=row.numbers.__getitem__)

    def gap(self, attribute: str) -> str:
        """Return the name of the gap between the first and the last group."""
        start = f"{attribute} gap "
        names = [entry for entry in self.any if entry.startswith(start) and not entry.endswith((" low", " high"))]
        groups = [name.removeprefix(start).split(" less ") for name in names]
        return f"{start}{max(group[0] for group in groups)} less {min(group[1] for group in groups)}"

    def guarantee(self, row: Row) -> str:
        """Return the true epsilon, or "none" with the claimed one."""
        method, epsilon = NAMES[str(row.settings["method"])], row.settings["epsilon"]
        if epsilon is None:
            return "none"
        true = method.true_epsilon(float(epsilon), int(self.constants["width"]))
        if math.isinf(true):
            return f"none ({epsilon:g} claimed)"
        return f"{true:g}, delta {methods.DELTA:g}" if method.noise == "Gaussian" else f"{true:g}"

    def verdict(self, row: Row) -> str:
        """Return whether the task is within `TOLERANCE` of ADV-ALL and both attacks succeed less often, at 95% each.

        "yes", "by accuracy only" (macro-F1 falls by more), or "no".
        """
        numbers = row.numbers
        attacks = (numbers[f"{attribute} less ADV-ALL high"] for attribute in ATTRIBUTES)
        if numbers["task less ADV-ALL low"] < -TOLERANCE or any(attack >= 0 for attack in attacks):
            return "no"
        fall = self.reference.numbers["task macro-F1"] - numbers["task macro-F1"]
        return "yes" if fall <= TOLERANCE else "by accuracy only"


def _place(row: Row) -> tuple[int, float, float]:
    settings = row.settings
    return _ORDER.index(str(settings["method"])), float(settings["epsilon"] or 0.0), float(settings["alpha"] or 0.0)


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` next to the rows, and the main tables into a README."""
    files = [rows for task in TASKS for encoder in ENCODERS if (rows := Rows(out / f"{task}, {encoder}.jsonl"))]
    require_rows(files, out)
    brief, whole = [_printed_table(files)], [_printed_table(files)]
    for rows in files:
        sections = [_head(rows), _goal(rows), _main_table(rows)]
        brief += [*sections, _weights_table(rows)]
        whole += [*sections, _attackers_table(rows), _weights_table(rows)]
    took = duration(files)
    (out / "tables.md").write_text(join_sections([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, join_sections([*brief, took]))


def _printed_table(files: list[Rows]) -> str:
    """Return table 1 and its rows on the blogs: accuracy of the task, macro-F1 of the best attacker."""
    head = ["", "epsilon", "TrustPilot, printed: sentiment", "age F1", "gender F1"]
    blind = ["guessing", "", "", "", ""]
    for rows in files:
        numbers, attacker = rows.any, rows.attackers[0]
        head += [f"{rows.task}, {rows.encoder}: accuracy", "age F1", "gender F1"]
        blind.append(f"{numbers['task accuracy blind']:.3f}")
        blind += [f"{numbers[f'{entry} {attacker} macro-F1 blind']:.3f}" for entry in ("age", "gender")]
    lines = [blind]
    for name, method, epsilon in (
        ("ORIGINAL", methods.ORIGINAL, None),
        ("DIFPRIV", methods.DIFPRIV, methods.CAP),
        ("ADV-ALL", methods.ADV_ALL, None),
        ("DPTEXT", methods.PRINTED, methods.CAP),
        (f"ours, true epsilon {methods.MAIN:g}", methods.OURS, methods.MAIN),
    ):
        printed = PRINTED.get(name)
        line = [name, "", *(["", "", ""] if printed is None else [f"{printed[place]:.3f}" for place in (0, 1, 3)])]
        for rows in files:
            row = rows.get(method, epsilon)
            if row is None:
                line += ["", "", ""]
                continue
            line[1] = rows.guarantee(row)
            names = ("task accuracy", rows.best_attack(row, "age"), rows.best_attack(row, "gender"))
            line += [f"{row.numbers[number]:.3f}" for number in names]
        lines.append(line)
    return (
        f"**Table 1**, printed ({PRINTED_SET}; the attackers are those that it trained against) and on blogs (fresh "
        f"attackers, the best of {', '.join(files[0].attackers)}).\n\n{table(head, lines)}"
    )


def _head(rows: Rows) -> str:
    constants = rows.constants
    return (
        f"### Task: {rows.task}; stored vectors: {rows.encoder}\n\n{constants['posts']:,} posts of "
        f"{constants['bloggers']:,} bloggers, {constants['classes']} classes, {constants['folds']} folds; "
        f"**majority {rows.any['task accuracy blind']:.3f}**; {', '.join(rows.group_shares)} of the posts."
    )


def _goal(rows: Rows) -> str:
    verdicts = [(row, rows.verdict(row)) for row in rows.table if not rows.guarantee(row).startswith("none")]
    lines = []
    for verdict, addition in (("yes", ""), ("by accuracy only", "; by accuracy only, because macro-F1 falls by more")):
        reaching = [row.settings for row, entry in verdicts if entry == verdict]
        names = ", ".join(f"{settings['method']} at {settings['epsilon']:g}" for settings in reaching)
        lines += [f"{names}{addition}"] if names else []
    count = f"of {len(verdicts)} rows with a guarantee"
    reached = f"reached by {'. Reached by '.join(lines)} ({count})." if lines else f"not reached by any {count}."
    numbers = rows.reference.numbers
    if numbers["task accuracy low"] <= numbers["task accuracy blind"]:
        reached += " ADV-ALL itself is not above the majority here, so the goal for the task is low."
    return (
        "**Goal** (task within 3 points of ADV-ALL, attackers nearer to the majority on both attributes, 95% each): "
        f"{reached}"
    )


def _main_table(rows: Rows) -> str:
    numbers = rows.any
    head = ["", "true epsilon of a post", "task", "minus ADV-ALL", "macro-F1"]
    line = ["majority", "", f"{numbers['task accuracy blind']:.3f}", "", f"{numbers['task macro-F1 blind']:.3f}"]
    for attribute in ATTRIBUTES:
        head += [f"{attribute}, best attacker", "minus ADV-ALL"]
        line += [f"{numbers[f'{attribute} best blind']:.3f}", ""]
    gaps = [rows.gap(attribute) for attribute in ATTRIBUTES]
    head += ["author named", *(gap.replace(" gap", ":").replace(" less ", " minus ") for gap in gaps)]
    lines = [[*line, f"{numbers['authors blind']:.3f}", "", ""]]
    for row in rows.table:
        numbers = row.numbers
        line = [str(row.settings["method"]), rows.guarantee(row), stored_interval(numbers, "task accuracy")]
        line += [signed(numbers, "task less ADV-ALL"), f"{numbers['task macro-F1']:.3f}"]
        for attribute in ATTRIBUTES:
            line += [above(numbers, f"{attribute} best"), signed(numbers, f"{attribute} less ADV-ALL")]
        lines.append([*line, above(numbers, "authors"), *(signed(numbers, gap) for gap in gaps)])
    return (
        "Task: logistic regression; attack: the best of the fresh attackers, on single posts; author: nearest mean of "
        "their other posts, first fold; gaps: in the accuracy of the task. Bold: an attack above the majority (a blind "
        f"guess), a difference whose interval excludes 0.\n\n{table(head, lines, text_columns=2)}"
    )


def _attackers_table(rows: Rows) -> str:
    names = [f"{attribute} {attacker}" for attribute in ATTRIBUTES for attacker in rows.attackers]
    head = ["", "true epsilon", "task, macro-F1", *(name.replace(" ", ", ", 1) for name in names)]
    blind = [[rows.any[f"{name} {measure} blind"] for measure in ("accuracy", "macro-F1")] for name in names]
    line = ["guessing", "", f"{rows.any['task macro-F1 blind']:.3f}"]
    lines = [[*line, *("; ".join(f"{value:.3f}" for value in values) for values in blind)]]
    for row in rows.table:
        line = [str(row.settings["method"]), rows.guarantee(row), stored_interval(row.numbers, "task macro-F1")]
        line += [f"{above(row.numbers, f'{name} accuracy')}; {row.numbers[f'{name} macro-F1']:.3f}" for name in names]
        lines.append(line)
    return f"**Attackers**: accuracy; macro-F1.\n\n{table(head, lines, text_columns=2)}"


def _weights_table(rows: Rows) -> str:
    """Return the effect of the adversaries' weight, if others than 1 were tried."""
    if len(rows.table) == len(rows.rows):
        return ""
    lines = []
    for name, epsilon in ((methods.ADV_ALL, None), (methods.OURS, methods.MAIN)):
        for row in rows.rows:
            if (row.settings["method"], row.settings["epsilon"]) == (name, epsilon):
                line = [name, f"{row.settings['alpha']:g}", rows.guarantee(row)]
                line.append(stored_interval(row.numbers, "task accuracy"))
                lines.append([*line, *(above(row.numbers, f"{attribute} best") for attribute in ATTRIBUTES)])
    head = ["", "alpha", "true epsilon", "task", *(f"{attribute}, best attacker" for attribute in ATTRIBUTES)]
    return f"**Weight of the adversaries**.\n\n{table(head, lines)}"
