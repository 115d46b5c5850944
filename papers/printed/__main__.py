"""All printed tables of the five papers with our results: ``python -m papers.printed`` writes papers/README.md."""

from __future__ import annotations

from pathlib import Path

from papers.printed import dpnr, dptext, dpugc, ome
from papers.printed.tables import Note, Table

TEM = (
    Note(
        "Figure 1 (a), accuracy over epsilon",
        "Its points, its epsilons and the numbers in the sentence about it are lost in the text of the paper. "
        "Ours: [at equal epsilon](tem/README.md#what-it-shows), TEM and Madlib at 1 to 10, true as claimed, five "
        "trials, with the majority class and no protection; in 300 dimensions "
        "[there](tem/README.md#in-300-dimensions).",
    ),
    Note(
        "Figure 1 (b), membership attack over epsilon",
        "No numbers in the text. Ours: [membership](tem/README.md#what-it-shows), the paper's attack and stronger "
        "ones, five trials, with the chance level.",
    ),
)
PAPERS = {
    "dpUGC (Vu, Tran and Jiang 2019)": ("dpugc", dpugc.sections),
    "DPText (Beigi et al. 2019)": ("dptext", dptext.sections),
    "TEM (Carvalho, Vasiloudis and Feyisetan 2021)": ("tem", lambda: TEM),
    "OME (Lyu et al. 2020)": ("ome", ome.sections),
    "DPNR (Lyu, He and Li 2020), in the study of Zouhri and Abecidan 2021": ("dpnr", dpnr.sections),
}
_HEAD = """# The five papers, number by number

Every number that the five papers print in a table, or in a figure whose points are in the text, with our result or the
reason why there is none. A cell: printed / **ours** [95% interval] (sample size). *Claimed, true epsilon*: the paper's
claim, and the proved value for any two texts or people ([docs/papers](../docs/papers/index.md) gives the reasons). The
last lines of a table are baselines that use no text.

`python -m papers.printed` writes this page from the rows in `papers/*/results`; a test compares. papers/synthesis and
papers/sentences repeat no paper."""


def text() -> str:
    """Return the whole page."""
    parts = {heading: sections() for heading, (_, sections) in PAPERS.items()}
    lines = [
        "| paper | printed numbers | with a result of ours | figures without numbers in the text |",
        "|---|---:|---:|---:|",
    ]
    bodies = []
    for heading, sections in parts.items():
        folder, _ = PAPERS[heading]
        cells = [cell for section in sections if isinstance(section, Table) for cell in section.cells]
        notes = sum(isinstance(section, Note) and section.place.startswith("Figure") for section in sections)
        lines.append(f"| {heading} | {len(cells)} | {sum(cell.is_run for cell in cells)} | {notes} |")
        link = f"Same, replaced and not run: [{folder}]({folder}/README.md)."
        bodies.append("\n\n".join([f"## {heading}", link, *map(str, sections)]))
    return "\n\n".join([_HEAD, "\n".join(lines), *bodies]) + "\n"


if __name__ == "__main__":
    Path(__file__).resolve().parents[1].joinpath("README.md").write_text(text(), encoding="utf-8")
