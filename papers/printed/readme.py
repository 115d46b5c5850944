"""What papers/README.md says: each paper, each printed table and figure, ours beside it."""

from __future__ import annotations

from papers.printed import dpnr, dptext, dpugc, ome, tem
from papers.printed.cells import Note, Table, text_of

PAPERS = {
    "dpUGC (Vu, Tran and Jiang 2019)": ("dpugc", dpugc.sections),
    "DPText (Beigi et al. 2019)": ("dptext", dptext.sections),
    "TEM (Carvalho, Vasiloudis and Feyisetan 2021)": ("tem", tem.sections),
    "OME (Lyu et al. 2020)": ("ome", ome.sections),
    "DPNR (Lyu, He and Li 2020), in the study of Zouhri and Abecidan 2021": ("dpnr", dpnr.sections),
}
_HEAD = """# The five papers, number by number

Every number that the five papers print in a table, or in a figure whose points the text holds, with ours beside it or
the reason why there is none. A cell: printed / **ours** [95% interval] (how much it comes from). *Claimed, true
epsilon*: what the paper says, and what holds for any two texts or people ([docs/papers](../docs/papers/index.md) says
why). The last line of a table is what one has who looks at no text.

`python -m papers.printed` writes this page from the rows in `papers/*/results`; a test compares. papers/synthesis and
papers/sentences repeat no paper."""


def text() -> str:
    """The whole page."""
    parts = {heading: make() for heading, (_, make) in PAPERS.items()}
    lines = [
        "| paper | printed numbers | with one of ours beside | figures without numbers in the text |",
        "|---|---:|---:|---:|",
    ]
    for heading, sections in parts.items():
        cells = [cell for section in sections if isinstance(section, Table) for cell in section.cells]
        notes = sum(isinstance(section, Note) and section.place.startswith("Figure") for section in sections)
        lines.append(f"| {heading} | {len(cells)} | {sum(cell.is_run for cell in cells)} | {notes} |")
    bodies = [
        text_of(heading, f"What is the same, replaced and not run: [{folder}]({folder}/README.md).", parts[heading])
        for heading, (folder, _) in PAPERS.items()
    ]
    return "\n\n".join([_HEAD, "\n".join(lines), *bodies]) + "\n"
