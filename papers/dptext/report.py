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


def _place(row: Row) -> tuple[int, float, float]:
    settings = row.settings
    return _ORDER.index(str(settings["method"])), float(settings["epsilon"] or 0.0), float(settings["alpha"] or 0.0)


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` next to the rows, and the main tables into a README."""
    files = [rows for task in TASKS for encoder in ENCODERS if (rows := Rows(out / f"{task}, {encoder}.jsonl"))]
    require_rows(files, out)
    brief, whole = list[str](), list[str]()
    for rows in files:
        sections = [_head(rows), _main_table(rows)]
        brief += [*sections, _weights_table(rows)]
        whole += [*sections, _attackers_table(rows), _weights_table(rows)]
    took = duration(files)
    (out / "tables.md").write_text(join_sections([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, join_sections([*brief, took]))


def _head(rows: Rows) -> str:
    constants = rows.constants
    return (
        f"### Task: {rows.task}; stored vectors: {rows.encoder}\n\n{constants['posts']:,} posts of "
        f"{constants['bloggers']:,} bloggers, {constants['classes']} classes, {constants['folds']} folds; "
        f"**majority {rows.any['task accuracy blind']:.3f}**; {', '.join(rows.group_shares)} of the posts."
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
