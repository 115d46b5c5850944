"""Section 1.2 of the study of paper 004: words recovered from word2vec."""

from __future__ import annotations

import csv
from pathlib import Path

from papers.printed.cells import Cell, Line, Note, Table

from dptext.intervals import Estimate

RESULTS = Path(__file__).resolve().parents[1] / "leakage" / "results.csv"
_PRINTED = {
    "overlapping halves": ("situation 1, English", "33%"),
    "other people": ("situation 2", "18%"),
    "another source": ("situation 3", "0.7%"),
}


def sections() -> list[Table | Note]:
    with RESULTS.open(encoding="utf-8", newline="") as stream:
        rows = [
            row for row in csv.DictReader(stream) if row["first_vectors"] == "by word" and row["known_pairs"] == "0"
        ]
    by_name = {row["situation"]: row for row in rows}
    lines = []
    for situation, (name, printed) in _PRINTED.items():
        row = by_name[situation]
        numbers = [100 * float(row[entry]) for entry in ("recovered", "low", "high")]
        ours = Estimate(*numbers, int(row["victim_words"]), "words")
        lines.append(Line(name, "", [Cell(printed, ours), Cell("", f"{100 * float(row['chance']):.3f}")]))
        if situation == "overlapping halves":
            french = "not run: its French sentences cannot be had"
            lines.append(Line("situation 1, French", "", [Cell("41%", french), Cell("", "")]))
    return [
        Table(
            "Section 1.2, words recovered by their five nearest, per cent",
            ["recovered", "chance"],
            lines,
            said="Word2vec claims nothing. Blogs and WikiText-2 in place of sentences for learners, questions and "
            "tweets; one training each, intervals over words ([papers/leakage](leakage/README.md)).",
        )
    ]
