"""Tables and the figure of the blogs, from their rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from papers.blogs_posts import TASKS
from papers.dpnr.blogs_cells import AS_SENT, DPNR, NARROW, NONE, OURS, PUBLISHED, SCALAR, true_epsilon_of
from papers.dpnr.blogs_figure import draw
from papers.dpnr.blogs_printed import ACCURACY, FAIRNESS, RATIOS, printed_accuracy
from papers.reports import write_between
from papers.sweeps import Row, read_sweep

from dptext.errors import DataError

START, END = "<!-- blogs: written by papers.dpnr.blogs -->", "<!-- end of the blogs -->"
_ATTRIBUTES = ("gender", "age")
_ATTACKERS = {"mlp": "MLP", "linear": "linear", "all posts": "all posts"}
_ORDER = (NONE, NARROW, DPNR, SCALAR, AS_SENT, *OURS)


class Rows:
    """The rows of one task; none where the file is missing."""

    def __init__(self, path: Path) -> None:
        sweep = read_sweep(path) if path.exists() else None
        self.rows = () if sweep is None else tuple(sorted(sweep.rows, key=_place))
        self.constants: dict[str, Any] = {} if sweep is None else dict(sweep.experiment["constants"])

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def any(self) -> Mapping[str, float]:
        """The numbers of some row: baselines are the same in all."""
        return self.rows[0].numbers

    def get(self, mechanism: str, epsilon: float | None = None, mu: float = 0.0) -> Row | None:
        target = {"mechanism": mechanism, "epsilon": epsilon, "mu": mu}
        return next((row for row in self.rows if dict(row.settings) == target), None)

    def true_epsilon(self, row: Row) -> float:
        return true_epsilon_of(row.settings["mechanism"], row.settings["epsilon"], int(self.constants["width"]))

    @property
    def attributes(self) -> list[str]:
        return [attribute for attribute in _ATTRIBUTES if f"{attribute} mlp" in self.any]

    def groups(self, attribute: str) -> list[str]:
        names = [name.removeprefix(f"{attribute} ") for name in self.any if name.startswith(f"{attribute} ")]
        return [name for name in names if f"{attribute} {name} blind" in self.any and name not in _ATTACKERS]

    def gaps(self, attribute: str) -> list[str]:
        """Of accuracies of groups: the later less the earlier."""
        start = f"{attribute} gap "
        return [entry for entry in self.any if entry.startswith(start) and not entry.endswith((" low", " high"))]


def write_report(out: Path, *, readme: Path | None) -> None:
    """``blogs.md`` and ``blogs.png`` beside the rows; what matters most also between the marks of a README.

    Raises:
        DataError: there are no rows.
    """
    result = {task: rows for task in TASKS if (rows := Rows(out / f"blogs {task}.jsonl"))}
    if not result:
        raise DataError(f"no rows of blogs in {str(out)!r}: run the experiment first")
    whole, brief = [], []
    for task, rows in result.items():
        head = _head(task, rows)
        if task in ACCURACY:  # the page has what is printed, the file beside the rows has all
            brief += [head, main_table(task, rows), _scalar_sentence(rows)]
        whole += [head, _accuracy_table(task, rows), _scalar_sentence(rows)]
        whole += [_attack_table(rows), _fairness_table(task, rows)]
    cells = sum(len(rows.rows) for rows in result.values())
    seconds = sum(row.seconds for rows in result.values() for row in rows.rows)
    took = f"{cells} cells took {seconds / 60:.0f} minutes of a core that was shared with others."
    (out / "blogs.md").write_text(_text([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, _text([*brief, took]))
    draw(result, out / "blogs.png")


def _head(task: str, rows: Rows) -> str:
    text, numbers = rows.constants, rows.any
    shares = [
        f"{name.removeprefix('age ').removeprefix('gender ')} {100 * value:.0f}%"
        for name, value in text.items()
        if name.startswith(("gender ", "age "))
    ]
    printed = ""
    if task in RATIOS:
        women, men = RATIOS[task]["gender"]
        young, old = RATIOS[task]["age"]
        printed = f" (printed: {women}, {men}, {young}, {old})"
    return (
        f"### Task: {task}\n\n{text['posts']:,} posts of {text['bloggers']:,} bloggers, {text['classes']} classes, "
        f"**majority {numbers['task accuracy blind']:.3f}**; {', '.join(shares)} of the posts{printed}."
    )


def main_table(task: str, rows: Rows) -> str:
    """Task, the paper's attacker and the gaps: a line a cell."""
    is_printed, attributes = task in ACCURACY, rows.attributes
    head = [*_HEAD, "task", *(["printed"] if is_printed else []), *(f"{entry}, attack" for entry in attributes)]
    head += [f"{'' if place else 'empirical privacy: '}{entry}" for place, entry in enumerate(attributes)]
    head += [_group_gap(rows, attribute) for attribute in attributes]
    lines = [head, ["---"] * len(head)]
    blind = [rows.any[f"{attribute} mlp blind"] for attribute in attributes]
    line = ["majority", "", "", "", f"{rows.any['task accuracy blind']:.3f}", *([""] if is_printed else [])]
    line += [*(f"{entry:.3f}" for entry in blind), *(f"{1 - entry:.3f}" for entry in blind)]
    lines.append([*line, *[""] * len(attributes)])
    for name, theirs in FAIRNESS.get(task, {}).items():
        gaps = [f"{theirs[attribute][1] / 100:+.3f}" for attribute in attributes]
        lines.append([_printed_label(name), *[""] * (len(head) - 1 - len(gaps)), *gaps])
    for row in rows.rows:
        line = [*_named(rows, row), _spelled(row, "task accuracy"), *([_theirs(task, row)] if is_printed else [])]
        line += [_told(row, f"{attribute} mlp") for attribute in attributes]
        line += [f"{1 - row.numbers[f'{attribute} mlp']:.3f}" for attribute in attributes]
        lines.append([*line, *(_gap(row, _widest(rows, attribute)) for attribute in attributes)])
    text = (
        " Attack: the paper's two layers of 512, a post at a time. Gaps: of the accuracy of the task. Bold: an attack "
        "above the majority, a gap that leaves 0 out."
        if attributes
        else ""
    )
    return f"Task: logistic regression.{text}\n\n{_joined(lines)}"


def _accuracy_table(task: str, rows: Rows) -> str:
    """The rows of figures 4 and 5, and ours."""
    is_printed = task in ACCURACY
    head = [*_HEAD, "accuracy", *(["printed"] if is_printed else []), "macro-F1"]
    lines = [head, ["---"] * len(head)]
    numbers = rows.any
    blind = ["majority; guessing", "", "", "", f"{numbers['task accuracy blind']:.3f}"]
    lines.append([*blind, *([""] if is_printed else []), f"{numbers['task macro-F1 blind']:.3f}"])
    for row in rows.rows:
        visible = [_theirs(task, row)] if is_printed else []
        lines.append([*_named(rows, row), _spelled(row, "task accuracy"), *visible, _spelled(row, "task macro-F1")])
    return f"**Task** (logistic regression on what arrives):\n\n{_joined(lines)}"


def _attack_table(rows: Rows) -> str:
    """Accuracy of attackers; empirical privacy is 1 less that."""
    names = [(attribute, attacker) for attribute in _ATTRIBUTES for attacker in _ATTACKERS]
    head = list(_HEAD)
    for attribute, entry in names:
        head.append(f"{attribute}, {_ATTACKERS[entry]}")
        if entry == "mlp":
            head.append("its empirical privacy")
    lines = [head, ["---"] * len(head)]
    line = ["majority", "", "", ""]
    for attribute, entry in names:
        blind = rows.any[f"{attribute} {entry} blind"]
        line += [f"{blind:.3f}", *([f"{1 - blind:.3f}"] if entry == "mlp" else [])]
    lines.append(line)
    for row in rows.rows:
        line = _named(rows, row)
        for attribute, entry in names:
            line.append(_told(row, f"{attribute} {entry}"))
            line += [f"{1 - row.numbers[f'{attribute} {entry}']:.3f}"] if entry == "mlp" else []
        lines.append(line)
    return (
        "**Attack**: accuracy of fresh attackers on what arrives, a post at a time, or on the mean of all posts of a "
        f"blogger; bold where it is above the majority beyond its interval.\n\n{_joined(lines)}"
    )


def _fairness_table(task: str, rows: Rows) -> str:
    """Accuracy of the task in groups, and the gaps."""
    parts = [(attribute, rows.groups(attribute), rows.gaps(attribute)) for attribute in _ATTRIBUTES]
    head = list(_HEAD)
    for attribute, groups, gaps in parts:
        head += groups + [entry.removeprefix(f"{attribute} gap ") for entry in gaps]
    lines = [head, ["---"] * len(head)]
    line = ["majority within the group", "", "", ""]
    for attribute, groups, gaps in parts:
        line += [f"{rows.any[f'{attribute} {group} blind']:.3f}" for group in groups] + [""] * len(gaps)
    lines.append(line)
    if task == TASKS[0]:  # two groups of each, as printed
        for name, theirs in FAIRNESS[task].items():
            line = [_printed_label(name), "", "", ""]
            for first, gap in theirs.values():
                line += [f"{first / 100:.3f}", f"{(first + gap) / 100:.3f}", f"{gap / 100:+.3f}"]
            lines.append(line)
    for row in rows.rows:
        line = _named(rows, row)
        for attribute, groups, gaps in parts:
            line += [f"{row.numbers[f'{attribute} {group}']:.3f}" for group in groups]
            line += [_gap(row, gap) for gap in gaps]
        lines.append(line)
    return (
        "**Fairness**: accuracy of the task in each group, and its gaps (95%, those of one attribute together); bold "
        f"where 0 lies outside.\n\n{_joined(lines)}"
    )


def _scalar_sentence(rows: Rows) -> str:
    """That the scalar is undone."""
    clean = rows.get(NONE)
    undone = [row for row in rows.rows if row.settings["mechanism"] == SCALAR and not row.settings["mu"]]
    if clean is None or not undone:
        return ""
    change = max(row.numbers["largest change"] for row in undone)
    gap = [
        max(abs(row.numbers[name] - clean.numbers[name]) for row in undone for name in names)
        for names in (("task accuracy", "gender linear", "age linear"), ("gender mlp", "age mlp"))
    ]
    return (
        "**One scalar, undone**: nothing of the noise is left but what 32 bits round off, at all epsilons less than "
        f"{_up(change):g} in any coordinate of any post. Accuracies of the task and of the linear attacker are within "
        f"{gap[0]:.4f} of those without noise; those of the network, whose training amplifies the last digit, within "
        f"{gap[1]:.4f}."
    )


def _up(value: float) -> float:
    """Rounded up to one digit."""
    unit = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return math.ceil(value / unit) * unit


_HEAD = ("", "words masked", "claimed epsilon", "true epsilon of a post")


def _named(rows: Rows, row: Row) -> list[str]:
    mechanism, epsilon, mu = (row.settings[name] for name in ("mechanism", "epsilon", "mu"))
    claimed = "" if epsilon is None else f"{epsilon:g}"
    delta = " (delta 1e-5)" if mechanism == "Gaussian" else ""
    true = rows.true_epsilon(row)
    return [
        mechanism,
        f"{100 * mu:g}%" if mu else "",
        claimed,
        f"{true:g}{delta}" if math.isfinite(true) else "infinite",
    ]


def _theirs(task: str, row: Row) -> str:
    """The number that the paper prints for what this row does."""
    result = printed_accuracy(row.settings["epsilon"], row.settings["mu"], task)
    return "-" if result is None or row.settings["mechanism"] not in (NONE, *PUBLISHED) else f"{result:.3f}"


def _printed_label(name: str) -> str:
    """Of a row of figure 6; the adversarial method is another paper's, and was not run."""
    return f"printed: {name}{', not run' if name == 'adversarial' else ''}"


def _told(row: Row, name: str) -> str:
    """Bold where an attacker knows more than the majority, beyond his interval."""
    is_told = row.numbers[f"{name} low"] > row.numbers[f"{name} blind"]
    return f"**{_spelled(row, name)}**" if is_told else _spelled(row, name)


def _gap(row: Row, name: str) -> str:
    """Bold where it is more than chance."""
    low, high = row.numbers[f"{name} low"], row.numbers[f"{name} high"]
    text = f"{row.numbers[name]:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"**{text}**" if low > 0 or high < 0 else text


def _widest(rows: Rows, attribute: str) -> str:
    """The gap of the first group and the last."""
    groups = rows.groups(attribute)
    return f"{attribute} gap {groups[-1]} less {groups[0]}"


def _group_gap(rows: Rows, attribute: str) -> str:
    return _widest(rows, attribute).removeprefix(f"{attribute} gap ")


def _text(sections: list[str]) -> str:
    return "\n\n".join(section for section in sections if section) + "\n"


def _place(row: Row) -> tuple[int, float, float]:
    return _ORDER.index(row.settings["mechanism"]), row.settings["mu"], row.settings["epsilon"] or 0.0


def _spelled(row: Row, name: str) -> str:
    numbers = row.numbers
    return f"{numbers[name]:.3f} [{numbers[f'{name} low']:.3f}, {numbers[f'{name} high']:.3f}]"


def _joined(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
