"""The report page: for each task and kind of vectors all methods on one screen, with nothing but HTML.

Each number stands on a bar: what is above the majority, up to 1. A dark bar is an attack that succeeds, beyond its
interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from papers.dptext import methods
from papers.dptext.methods import NAMES
from papers.dptext.rows import ATTRIBUTES
from papers.sweeps import Row

if TYPE_CHECKING:
    from papers.dptext.rows import Rows

_VERDICTS = {"yes": "<b class=yes>yes</b>", "by accuracy only": "by accuracy only", "no": "no"}
_STYLE = """
body{font:13px/1.25 system-ui,sans-serif;margin:12px 20px;color:#1b1b1b}
h2{font-size:17px;margin:0 0 2px}section{min-height:94vh}p{margin:2px 0 6px;max-width:110em;color:#444}
table{border-collapse:collapse;width:100%}
th{text-align:left;font-weight:600;border-bottom:2px solid #999;padding:3px 8px}
td{border-bottom:1px solid #e4e4e4;padding:3px 8px;white-space:nowrap}
tr.ours td{background:#eef6ee}tr.blind td{color:#666;font-style:italic}
.bar{display:inline-block;width:56px;height:9px;background:#eee;margin-right:6px;vertical-align:-1px}
.bar i{display:block;height:9px;background:#b9c7d6}.bar i.told{background:#b4533c}.bar i.task{background:#4b7f52}
small{color:#777}b.none{color:#b4533c}b.yes{color:#2d6a35}
"""


def write_page(found: Sequence[Rows], path: Path) -> None:
    """One file that needs nothing beside it."""
    sections = "".join(_section(rows) for rows in found)
    path.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Representations that hide attributes</title>"
        f"<style>{_STYLE}</style><body>{sections}</body></html>\n",
        encoding="utf-8",
    )


def _section(rows: Rows) -> str:
    counts = rows.constants
    gaps = [rows.gap(attribute) for attribute in ATTRIBUTES]
    head = [
        "method",
        "true epsilon",
        "task",
        "macro-F1",
        *(f"{entry}: best attacker" for entry in ATTRIBUTES),
        "author named",
    ]
    head += [gap.replace(" gap", " gap:") for gap in gaps]
    head += ["asked for", "statement, for one post of somebody whom nothing was trained on"]
    numbers = rows.any
    blind = [*(f"{numbers[f'task {entry} blind']:.3f}" for entry in ("accuracy", "macro-F1"))]
    blind += [*(f"{numbers[f'{entry} best blind']:.3f}" for entry in ATTRIBUTES)]
    blind += [f"{numbers['authors blind']:.3f}", "", "", "", ""]
    lines = [f"<tr class=blind><td>blind guess<td>{''.join(f'<td>{entry}' for entry in blind)}</tr>"]
    lines += [_line(rows, row, gaps) for row in rows.table]
    return (
        f"<section><h2>{escape(rows.task)}, on {escape(rows.encoder)} vectors</h2><p>{counts['posts']:,} posts of "
        f"{counts['bloggers']:,} bloggers in {counts['folds']} folds; fresh attackers ({escape(counts['attackers'])}), "
        "a post at a time; 95% intervals over bloggers. Bars begin at the blind guess. Asked for: task within 3 points "
        "of ADV-ALL and attackers nearer to the blind guess on both attributes, at a finite true epsilon.</p>"
        f"<table><tr>{''.join(f'<th>{escape(entry)}' for entry in head)}</tr>{''.join(lines)}</table></section>"
    )


def _line(rows: Rows, row: Row, gaps: Sequence[str]) -> str:
    name = row.settings["method"]
    ours = name in methods.ALL_OF_OURS
    promise = rows.promise(row)
    cells = [
        f"<b>{escape(name)}</b>",
        f"<b class=none>{escape(promise)}</b>" if promise.startswith("none") else f"<b>{escape(promise)}</b>",
        _bar(row, "task accuracy", "task"),
        f"{row.numbers['task macro-F1']:.3f}",
        *(_bar(row, f"{attribute} best", "") for attribute in ATTRIBUTES),
        f"{row.numbers['authors']:.3f}",
        *(_gap(row, gap) for gap in gaps),
        "" if promise.startswith("none") else _VERDICTS[rows.verdict(row)],
        f"<small>{escape(_statement(promise, NAMES[name].about))}</small>",
    ]
    kind = " class=ours" if ours else ""
    return f"<tr{kind}>{''.join(f'<td>{cell}' for cell in cells)}</tr>"


def _bar(row: Row, name: str, kind: str) -> str:
    value, blind = row.numbers[name], row.numbers[f"{name} blind"]
    is_told = not kind and row.numbers[f"{name} low"] > blind
    width = 100 * max(0.0, value - blind) / (1 - blind)
    interval = f"[{row.numbers[f'{name} low']:.2f}, {row.numbers[f'{name} high']:.2f}]"
    style = kind or ("told" if is_told else "")
    bar = f"<span class=bar><i class='{style}' style='width:{width:.0f}%'></i></span>"
    return f"{bar}{value:.3f} <small>{interval}</small>"


def _gap(row: Row, name: str) -> str:
    is_shown = row.numbers[f"{name} low"] > 0 or row.numbers[f"{name} high"] < 0
    value = f"{row.numbers[name]:+.3f}"
    return f"<b>{value}</b>" if is_shown else value


def _statement(promise: str, about: str) -> str:
    if promise.startswith("none"):
        return f"{about}: nothing is promised"
    return f"{about}: any two posts; local"
