"""Tables and the figure of the blogs, from their rows."""

from __future__ import annotations

import math
from pathlib import Path

from papers.blogs_posts import TASKS
from papers.dpnr.blogs_cells import AS_SENT, DPNR, NARROW, NONE, OURS, PUBLISHED, SCALAR, true_epsilon_of
from papers.dpnr.blogs_figure import draw
from papers.dpnr.blogs_printed import ACCURACY, FAIRNESS, RATIOS, printed_accuracy
from papers.reports import above, duration, interval, join_sections, require_rows, signed, stored, table, write_between
from papers.sweeps import Row

from papers import reports

START, END = "<!-- blogs: written by papers.dpnr.blogs -->", "<!-- end of the blogs -->"
_ATTRIBUTES = ("gender", "age")
_ATTACKERS = {"mlp": "MLP", "linear": "linear", "all posts": "all posts"}
_ORDER = (NONE, NARROW, DPNR, SCALAR, AS_SENT, *OURS)
_HEAD = ("", "words masked", "claimed epsilon", "true epsilon of a post")


class Rows(reports.Rows):
    """The rows of one task, in the order of tables."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rows = tuple(sorted(self.rows, key=_place))

    def get(self, mechanism: str, epsilon: float | None = None, mu: float = 0.0) -> Row | None:
        return next(iter(self.select(mechanism=mechanism, epsilon=epsilon, mu=mu)), None)

    def true_epsilon(self, row: Row) -> float:
        return true_epsilon_of(row.settings["mechanism"], row.settings["epsilon"], int(self.constants["width"]))

    @property
    def attributes(self) -> list[str]:
        return [attribute for attribute in _ATTRIBUTES if f"{attribute} mlp" in self.any]

    def groups(self, attribute: str) -> list[str]:
        names = [name.removeprefix(f"{attribute} ") for name in self.any if name.startswith(f"{attribute} ")]
        return [name for name in names if f"{attribute} {name} blind" in self.any and name not in _ATTACKERS]

    def gaps(self, attribute: str) -> list[str]:
        """Return the differences of accuracy between groups, the later minus the earlier."""
        start = f"{attribute} gap "
        return [name for name in self.any if name.startswith(start) and not name.endswith((" low", " high"))]

    def widest_gap(self, attribute: str) -> str:
        """Return the difference between the last and the first group."""
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
        whole += [_attack_table(rows), _fairness_table(task, rows)]
    took = duration(sum(len(rows.rows) for rows in result.values()), sum(rows.seconds for rows in result.values()))
    (out / "blogs.md").write_text(join_sections([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, join_sections([*brief, took]))
    draw(result, out / "blogs.png")


def _head(task: str, rows: Rows) -> str:
    constants = rows.constants
    shares = [
        f"{name.removeprefix('age ').removeprefix('gender ')} {100 * value:.0f}%"
        for name, value in constants.items()
        if name.startswith(("gender ", "age "))
    ]
    printed = ""
    if task in RATIOS:
        printed = f" (printed: {', '.join(str(share) for pair in RATIOS[task].values() for share in pair)})"
    return (
        f"### Task: {task}\n\n{constants['posts']:,} posts of {constants['bloggers']:,} bloggers, "
        f"{constants['classes']} classes, **majority {rows.any['task accuracy blind']:.3f}**; {', '.join(shares)} of "
        f"the posts{printed}."
    )


def main_table(task: str, rows: Rows) -> str:
    """Return task, the paper's attacker and the gaps."""
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
        line = [*_mechanism(rows, row), _spell(row, "task accuracy"), *([_printed(task, row)] if is_printed else [])]
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
        printed = [_printed(task, row)] if is_printed else []
        lines.append([*_mechanism(rows, row), _spell(row, "task accuracy"), *printed, _spell(row, "task macro-F1")])
    head = [*_HEAD, "accuracy", *(["printed"] if is_printed else []), "macro-F1"]
    return f"**Task** (logistic regression on received vectors):\n\n{table(head, lines)}"


def _attack_table(rows: Rows) -> str:
    names = [(attribute, attacker) for attribute in _ATTRIBUTES for attacker in _ATTACKERS]
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


def _fairness_table(task: str, rows: Rows) -> str:
    parts = [(attribute, rows.groups(attribute), rows.gaps(attribute)) for attribute in _ATTRIBUTES]
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


def _spell(row: Row, name: str) -> str:
    return interval(stored(row.numbers, name))
