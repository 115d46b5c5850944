"""The five papers number by number: papers/README.md, and that READMEs say what their rows say."""

import csv
import re
import shutil
from bisect import bisect_left
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ("printed",)

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
    "synthesis": ("More candidates", "How written texts are chosen", "How the defaults were chosen"),
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
    "ome": {
        **dict.fromkeys(("-0.2 ± 1.9", "-0.1 ± 1.6", "+0.2 ± 1.6"), "of results/decay.jsonl"),
        "1.00125": "1 + 10^-6 times 1,250 steps",
    },
    "sentences": {".750": "by hand, as it says", "9.9": "ln 20,000"},
    "tem": {"10.8": "ln 50,000"},
}
REPORTS = {
    "collector.experiment": "results",
    "dpnr.blogs_report": "results",
    "dpnr.report": "results",
    "dpnr.reviews": "results",
    "dptext.report": "results",
    "dptext.table1": "results",
    "dpugc.personal_report": "results",
    "dpugc.report": "results",
    "dpugc.training_report": "results",
    "leakage.leakage": "results.csv",
    "ome.printed_report": "results",
    "referee.experiment": "results",
    "referee.tab": "results-tab",
    "referee.tools": "results",
    "sentences.report": "results",
    "summary.experiment": "results",
    "summary.phrases": "results",
    "synthesis.baselines": "results",
    "synthesis.generated": "results",
    "synthesis.peers": "results",
    "synthesis.quality": "results",
    "synthesis.questions": "results",
    "synthesis.report": "results",
    "tem.composed": "results-composed",
    "tem.pure": "results-pure",
    "tem.report": "results",
    "tem.threshold": "results-threshold",
}


def test_every_printed_number_is_there_with_our_result_or_a_reason(papers):
    parts = {folder: make() for folder, make in papers.printed.PAPERS.values()}
    tables = {
        paper: {section.place.partition(",")[0]: section.cells for section in sections if hasattr(section, "cells")}
        for paper, sections in parts.items()
    }
    assert {paper: {place: len(cells) for place, cells in entry.items()} for paper, entry in tables.items()} == COUNTS
    assert all(cell.is_run or cell.result for entry in tables.values() for cells in entry.values() for cell in cells)


def test_the_page_is_what_the_rows_say(papers, tmp_path, monkeypatch):
    page = (ROOT / "papers" / "README.md").read_text("utf-8")
    assert page == papers.printed.text(), "run python -m papers.printed"
    shutil.copytree(papers.printed.OME, tmp_path / "results", ignore=shutil.ignore_patterns("*.png", "accuracy.csv"))
    file = tmp_path / "results" / "printed-imdb.jsonl"
    file.write_text(re.sub(r'"accuracy": [0-9.]+', '"accuracy": 0.0', file.read_text("utf-8")), "utf-8")
    monkeypatch.setattr(papers.printed, "OME", tmp_path / "results")
    assert papers.printed.text() != page


def test_every_report_between_marks_is_compared():
    marked = (path for path in (ROOT / "papers").glob("*/*.py") if "\nSTART, END = " in path.read_text("utf-8"))
    assert {f"{path.parent.name}.{path.stem}" for path in marked} == REPORTS.keys()


@pytest.mark.parametrize("module", REPORTS)
def test_tables_in_a_readme_are_what_the_rows_say(papers, tmp_path, monkeypatch, module):
    report = import_module(f"papers.{module}")
    for name in ("draw", "draw_chances"):  # they take longer, and are no text
        if hasattr(report, name):
            monkeypatch.setattr(report, name, lambda *_: None)
    folder, rows = ROOT / "papers" / module.partition(".")[0], REPORTS[module]
    readme = tmp_path / "README.md"
    shutil.copy(folder / "README.md", readme)
    if (folder / rows).is_dir():
        shutil.copytree(folder / rows, tmp_path / rows, ignore=shutil.ignore_patterns("*.png", "*.svg", "work"))
    else:
        shutil.copy(folder / rows, tmp_path)
    report.write_report(tmp_path / rows, readme=readme)
    assert readme.read_text("utf-8") == (folder / "README.md").read_text("utf-8")


# -- numbers in prose: each with decimals or a per cent sign is in a generated table or among the results --------------

_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))"
_SINGLE = re.compile(rf"(?<![\w.,/@:-]){_NUMBER}%?(?![\w/])")
_INTERVAL = re.compile(rf"({_NUMBER}) \[({_NUMBER}), ({_NUMBER})\]")
_BRACKETS = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\]")
_PLUS_MINUS = re.compile(rf"({_NUMBER}) ± ({_NUMBER})")
_BLOCK = re.compile(r"<!-- (?!end)[^>]*-->(.*?)<!-- end[^>]*-->", re.DOTALL)
_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|https?://\S+", re.DOTALL)


def value_of(text):
    return float(text.strip("+%").replace(",", ""))


def rounding(text):
    return 0.5 * 10.0 ** -len(text.strip("%").partition(".")[2]) + 1e-9


class Known:
    """Numbers of texts, as they are, as shares and in per cent; estimates with intervals as a whole, of either sign."""

    def __init__(self, texts):
        singles, several = set(), set()
        for text in texts:
            bare = text.replace("**", "").replace("\\*", "")
            singles |= {abs(value_of(match.group())) for match in _SINGLE.finditer(bare)}
            for pattern in (_INTERVAL, _BRACKETS, _PLUS_MINUS):
                several |= {tuple(map(value_of, result)) for result in pattern.findall(bare)}
        several |= {(-value, *(-entry for entry in reversed(rest))) for value, *rest in several}
        self.several = sorted({tuple(scale * one for one in entry) for entry in several for scale in (1, 100, 0.01)})
        self.singles = sorted({scale * single for single in singles for scale in (1, 100, 0.01)})

    def has(self, numbers):
        if len(numbers) == 1:
            value, error = abs(value_of(numbers[0])), rounding(numbers[0])
            place = bisect_left(self.singles, value - error)
            return place < len(self.singles) and self.singles[place] <= value + error
        if len(numbers) == 3 and self.has(numbers[:1]) and self.has(numbers[1:]):
            return True  # a table may have an interval in a column of its own
        first, error = value_of(numbers[0]), rounding(numbers[0])
        low, high = (bisect_left(self.several, (bound,)) for bound in (first - error, first + error))
        return any(
            len(entry) == len(numbers)
            and all(abs(value_of(one) - other) <= rounding(one) for one, other in zip(numbers, entry, strict=True))
            for entry in self.several[low:high]
        )


def unknown_numbers(readme, known, skipped=()):
    """Numbers of the prose that are not known; ``skipped`` are headings of parts that have no rows."""
    for part in re.split(r"^#+ ", _CODE.sub("", _BLOCK.sub("", readme)), flags=re.MULTILINE):
        heading, _, text = part.partition("\n")
        if heading in skipped:
            continue
        bare = text.replace("**", "")
        for pattern in (_INTERVAL, _PLUS_MINUS):
            yield from (match.group() for match in pattern.finditer(bare) if not known.has(match.groups()))
            bare = pattern.sub("", bare)
        singles = (match.group() for match in _SINGLE.finditer(bare))
        yield from (one for one in singles if ("." in one or "%" in one) and not known.has((one,)))


def result_texts(folder):
    for part in (folder, *folder.glob("results*")):
        for file in part.glob("*"):
            if file.suffix in (".md", ".csv") and file.name not in ("README.md", "accuracy.csv"):
                yield file.read_text("utf-8").replace(",", " , " if file.suffix == ".csv" else ",")
            if file.name == "gain.csv":
                with file.open(encoding="utf-8", newline="") as stream:
                    yield from (f"{row['mean_gain']} ± {row['half_interval']}" for row in csv.DictReader(stream))


def means_of_sets():
    """The README of papers/ome alone has means of the three sets."""
    tables = import_module("papers.ome.accuracy")
    rows = tables.read_rows(ROOT / "papers" / "ome" / "results" / "accuracy.csv")
    for sets in tables.group_rows(rows).values():
        for values in (tables.over_sets(sets), *(list(entry.values()) for entry in sets.values())):
            mean, half = tables.interval(values)
            yield f"{mean:.3f} ± {half:.3f}"


@pytest.mark.parametrize(
    "paper",
    ["collector", "dpnr", "dptext", "dpugc", "leakage", "ome", "referee", "sentences", "summary", "synthesis", "tem"],
)
def test_numbers_in_prose_are_those_of_the_rows(papers, paper):
    readme = (ROOT / "papers" / paper / "README.md").read_text("utf-8")
    tables = (match[1] for match in _BLOCK.finditer(readme))
    known = Known([*tables, *result_texts(ROOT / "papers" / paper), *(means_of_sets() if paper == "ome" else ())])
    unknown = unknown_numbers(readme, known, WITHOUT_ROWS.get(paper, ()))
    assert [entry for entry in unknown if entry not in OTHERS.get(paper, {}) and entry != "95%"] == []


def test_a_wrong_number_is_found():
    known = Known(["| ours | 0.849 [0.830, 0.867] | 61.0 ± 1.6 |"])

    def unknown(text):
        return list(unknown_numbers(f"# A\n\n{text}\n<!-- a -->.1<!-- end -->\n## B\n.2", known, ("B",)))

    assert unknown("It keeps .849 or 85%, .849 [.830, .867] and 61.0 ± 1.6 of 3,451 texts (`.3`).") == []
    wrong = [".849 [.830, .868]", "61.0 ± 1.5", ".848", "84%"]
    assert unknown("It keeps .848, 84%, .849 [.830, .868], 61.0 ± 1.5.") == wrong
