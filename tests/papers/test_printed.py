"""The five papers number by number: papers/README.md, and that READMEs say what their rows say."""

import csv
import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ("printed.cells", "printed.numbers", "printed.readme")

# what the papers print, counted in their texts: by paper and table
COUNTS = {
    "dpugc": {"Table 1": 7, "Table 2": 12, "Table 3": 9 * 7},
    "dptext": {"Table 1": 16},
    "tem": {},
    "ome": {"Table 1": 9 * 5, "Table 2": 9},
    "dpnr": {
        "Section 1.2": 4,
        "Figure 4": 18,
        "Figure 5": 15,
        "Figure 6": 32,
        "Figure 7": (1 + 2 * 12) + (1 + 2 * 9),
        "Figure 8": (1 + 3 * 12) + (1 + 3 * 9),
    },
}
# sections that say themselves that their numbers have no rows
WITHOUT_ROWS = {
    "synthesis": ("More candidates", "How the defaults were chosen"),
    "sentences": ("What was tried",),
}
# numbers of a README that are none of its results, and what they are
OTHERS = {
    "dpnr": {".141": "printed: what masks cost in figure 5"},
    "dpugc": {
        **dict.fromkeys((".176", "2.66", "1.29", "1.64", "6.16"), "printed, or of the authors' figure"),
        ".0183": "e^(-32 epsilon) at epsilon .125",
    },
    "leakage": {"3.8": "a version", "10.7": "millions of words"},
    "sentences": {".750": "by hand, as it says", "9.9": "ln 20,000"},
    "tem": {"10.8": "ln 50,000"},
}
REPORTS = {
    "dpnr.blogs_report": "results",
    "dpnr.report": "results",
    "dpnr.reviews": "results",
    "dptext.report": "results",
    "dptext.table1_report": "results",
    "dpugc.personal_report": "results",
    "dpugc.report": "results",
    "dpugc.training_report": "results",
    "leakage.leakage": "results.csv",
    "ome.printed_report": "results",
    "sentences.report": "results",
    "synthesis.baselines": "results",
    "synthesis.peers": "results",
    "synthesis.quality": "results",
    "synthesis.report": "results",
    "tem.composed": "results-composed",
    "tem.pure": "results-pure",
    "tem.report": "results/results.csv",
    "tem.threshold": "results-threshold",
}


@pytest.fixture(scope="module")
def parts(papers):
    return {folder: make() for folder, make in papers.readme.PAPERS.values()}


def test_every_printed_number_stands_there(papers, parts):
    table = papers.cells.Table
    result = {
        paper: {
            section.place.partition(",")[0]: len(section.cells) for section in sections if isinstance(section, table)
        }
        for paper, sections in parts.items()
    }
    assert result == COUNTS


def test_every_cell_has_ours_or_a_reason(papers, parts):
    for sections in parts.values():
        for section in sections:
            for cell in getattr(section, "cells", []):
                assert cell.is_run or cell.ours


def test_the_page_is_what_the_rows_say(papers):
    assert (ROOT / "papers" / "README.md").read_text("utf-8") == papers.readme.text(), "run python -m papers.printed"


def test_a_changed_row_changes_the_page(papers, tmp_path, monkeypatch):
    ome = import_module("papers.printed.ome")
    shutil.copytree(ome.RESULTS, tmp_path / "results", ignore=shutil.ignore_patterns("*.png", "accuracy.csv"))
    file = tmp_path / "results" / "printed-imdb.jsonl"
    file.write_text(re.sub(r'"accuracy": [0-9.]+', '"accuracy": 0.0', file.read_text("utf-8")), "utf-8")
    monkeypatch.setattr(ome, "RESULTS", tmp_path / "results")
    assert papers.readme.text() != (ROOT / "papers" / "README.md").read_text("utf-8")


def test_every_report_between_marks_is_compared():
    marked = (path for path in (ROOT / "papers").glob("*/*.py") if "\nSTART, END = " in path.read_text("utf-8"))
    assert {f"{path.parent.name}.{path.stem}" for path in marked} == REPORTS.keys()


@pytest.mark.parametrize("module", REPORTS)
def test_tables_in_a_readme_are_what_the_rows_say(papers, tmp_path, monkeypatch, module):
    report = import_module(f"papers.{module}")
    for name in ("draw", "_draw_chances", "_draw_true", "write_page"):  # they take longer, and are no text
        if hasattr(report, name):
            monkeypatch.setattr(report, name, lambda *_: None)
    folder, rows = ROOT / "papers" / module.partition(".")[0], Path(REPORTS[module])
    readme = tmp_path / "README.md"
    shutil.copy(folder / "README.md", readme)
    if len(rows.parts) == 1 and not rows.suffix:
        shutil.copytree(folder / rows, tmp_path / "rows", ignore=shutil.ignore_patterns("*.png", "*.svg", "work"))
        report.write_report(tmp_path / "rows", readme=readme)
    elif len(rows.parts) == 1:
        report.write_report(folder / rows, readme=readme)
    else:
        report.write_report(folder / rows, tmp_path, readme=readme)
    assert readme.read_text("utf-8") == (folder / "README.md").read_text("utf-8")


def _results(folder):
    for part in (folder, *folder.glob("results*")):
        for file in part.glob("*"):
            if file.suffix in (".md", ".csv") and file.name not in ("README.md", "accuracy.csv"):
                yield file.read_text("utf-8").replace(",", " , " if file.suffix == ".csv" else ",")
            if file.name == "gain.csv":
                with file.open(encoding="utf-8", newline="") as stream:
                    yield from (f"{row['mean_gain']} ± {row['half_interval']}" for row in csv.DictReader(stream))


def _means_of_sets():
    """papers/ome has means of its three sets in its README alone."""
    tables = import_module("papers.ome.tables")
    for sets in tables.by_setting(tables.read(ROOT / "papers" / "ome" / "results" / "accuracy.csv")).values():
        for values in (tables.over_sets(sets), *(list(entry.values()) for entry in sets.values())):
            mean, half = tables.interval(values)
            yield f"{mean:.3f} ± {half:.3f}"


@pytest.fixture
def known(papers, paper):
    readme = (ROOT / "papers" / paper / "README.md").read_text("utf-8")
    more = _means_of_sets() if paper == "ome" else ()
    return papers.numbers.Known([*papers.numbers.generated(readme), *_results(ROOT / "papers" / paper), *more])


@pytest.mark.parametrize("paper", ["dpnr", "dptext", "dpugc", "leakage", "ome", "sentences", "synthesis", "tem"])
def test_numbers_in_prose_are_those_of_the_rows(papers, paper, known):
    readme = (ROOT / "papers" / paper / "README.md").read_text("utf-8")
    unknown = list(papers.numbers.unknown_numbers(readme, known, WITHOUT_ROWS.get(paper, ())))
    assert [entry for entry in unknown if entry not in OTHERS.get(paper, {}) and entry != "95%"] == []


def test_a_wrong_number_is_found(papers):
    known = papers.numbers.Known(["| ours | 0.849 [0.830, 0.867] | 61.0 ± 1.6 |"])

    def unknown(text):
        return list(papers.numbers.unknown_numbers(f"# A\n\n{text}\n<!-- a -->.1<!-- end -->\n## B\n.2", known, ("B",)))

    assert unknown("It keeps .849 or 85%, .849 [.830, .867] and 61.0 ± 1.6 of 3,451 texts (`.3`).") == []
    assert unknown("It keeps .848, 84%, .849 [.830, .868], 61.0 ± 1.5.") == [
        ".849 [.830, .868]",
        "61.0 ± 1.5",
        ".848",
        "84%",
    ]
