"""Paper 002, "TEM: High Utility Metric Differential Privacy on Text"."""

from __future__ import annotations

from papers.printed.cells import Note, Table


def sections() -> list[Table | Note]:
    return [
        Note(
            "Figure 1 (a), accuracy over epsilon",
            "Its points, its epsilons and the numbers in the sentence about it are lost in the text of the paper. "
            "Ours: [at equal epsilon](tem/README.md#what-it-shows), TEM and Madlib at 1 to 10, true as claimed, five "
            "trials, beside the majority class and no protection; in 300 dimensions "
            "[there](tem/README.md#in-300-dimensions).",
        ),
        Note(
            "Figure 1 (b), membership attack over epsilon",
            "No numbers in the text. Ours: [membership](tem/README.md#what-it-shows), the paper's attack and stronger "
            "ones, five trials, beside chance.",
        ),
    ]
