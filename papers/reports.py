"""Shared by all experiments: options, rows of results, Markdown tables, figures."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import lzma
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.fairness import Fairness
from papers.sweeps import Row, read_sweep

from dptext.errors import DataError, DptextError, extra
from dptext.intervals import Estimate, mean_over_runs
from dptext.io.artifacts import file_digest

_DATA = Path("../shared/data")
_BROKEN = (EOFError, UnicodeError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError)


def parse_options(
    description: str,
    folder: Path,
    arguments: Sequence[str] | None,
    *,
    part: str = "",
    parts: Sequence[str] = (),
    takes_file: bool = False,
    **more: Mapping[str, Any],
) -> argparse.Namespace:
    """Parse the options of all experiments, and ``more`` (keywords of `add_argument`) by name; create ``out``.

    ``folder`` has README.md and the results; ``part`` is added to the name of ``out``, ``parts`` are the choices of
    ``--parts``. ``takes_file``: ``--data`` may be a file of the user's own texts (`papers.data_sets.own_texts`). The
    result also has ``own``, the name of these texts or "", and ``readme``: None for these, ``--quick`` or ``--out``.
    """
    parser = argparse.ArgumentParser(description=description)
    kinds = "folder of the data sets" + (", or a file of your own texts (csv, jsonl, parquet, xlsx)" * takes_file)
    parser.add_argument("--data", type=Path, default=_DATA, help=kinds)
    parser.add_argument("--quick", action="store_true", help="a small version that checks whether everything runs")
    parser.add_argument("--report", action="store_true", help="only tables and figures, from the existing rows")
    parser.add_argument("--out", type=Path, help="folder of the results")
    if parts:
        parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    for name, keywords in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **keywords)
    if takes_file:
        columns = parser.add_argument_group("columns of your own texts")
        columns.add_argument("--text", default="text", help="the text (default: text)")
        columns.add_argument("--label", help="the class or number to predict (default: label)")
        columns.add_argument("--user", help="the author; without it, every text has its own")
        columns.add_argument(
            "--attribute", action="append", default=[], help="a private attribute to attack; repeatable"
        )
    options = parser.parse_args(arguments)
    if options.data != _DATA and not options.report and not options.data.exists():
        raise DataError(f"--data {str(options.data)!r} does not exist: name a {kinds}")
    options.own = options.data.name.partition(".")[0] if takes_file and options.data.is_file() else ""
    options.readme = folder / "README.md" if not (options.out or options.quick or options.own) else None
    name = "-".join(filter(None, ("quick" if options.quick else "results", part)))
    if options.own and options.out is None:
        # each file, with each choice of columns, has a folder
        columns_of_file = (file_digest(options.data), options.text, options.label, options.user, options.attribute)
        digest = hashlib.sha256(repr(columns_of_file).encode()).hexdigest()
        name = f"own/{options.own}-{digest[:8]}-{name}"
    options.out = options.out or folder / name
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def run_command(main: Callable[[], None]) -> None:
    """Run the main function of a module; print a wrong file, column or option as one line, and exit with code 2."""
    try:
        main()
    except (DptextError, OSError, *_BROKEN) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def torch_device() -> str:
    if importlib.util.find_spec("torch") is None:
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


# -- numbers of a row ------------------------------------------------------------------------------------------


def estimate_numbers(name: str, estimate: Estimate, blind: float | None = None) -> dict[str, float]:
    """Return an estimate, its interval and the score of a blind guess as numbers of a row."""
    result = {name: estimate.value, f"{name} low": estimate.low, f"{name} high": estimate.high}
    return result if blind is None else result | {f"{name} blind": blind}


def group_numbers(attribute: str, fairness: Fairness) -> dict[str, float]:
    """Return the accuracy of the task in each group and the gap of each pair, the later group minus the earlier."""
    numbers: dict[str, float] = {}
    for group in fairness.groups:
        numbers |= estimate_numbers(f"{attribute} {group.group}", group.score, group.baseline)
    gaps = {(entry.better, entry.worse): entry.gap for entry in fairness.gaps}
    for first, second in combinations([group.group for group in fairness.groups], 2):
        gap = gaps.get((second, first))
        if gap is None:
            other = gaps[first, second]
            gap = Estimate(0.0 - other.value, 0.0 - other.high, 0.0 - other.low, other.count, other.of)
        numbers |= estimate_numbers(f"{attribute} gap {second} less {first}", gap)
    return numbers


# -- rows ------------------------------------------------------------------------------------------------------


class Rows:
    """The rows and constants of one file; empty if the file is missing. ``cells`` and ``seconds`` count all rows."""

    def __init__(self, path: Path) -> None:
        self.rows: tuple[Row, ...] = ()
        self.constants: dict[str, Any] = {}
        if path.exists():
            sweep = read_sweep(path)
            self.rows, self.constants = sweep.rows, dict(sweep.experiment["constants"])
        self.cells, self.seconds = len(self.rows), sum(row.seconds for row in self.rows)

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def any(self) -> Mapping[str, float]:
        """The numbers of the first row; baselines are the same in all rows."""
        return self.rows[0].numbers

    @property
    def group_shares(self) -> list[str]:
        """The shares of the groups of gender and age, which are among the constants."""
        return [
            f"{name.partition(' ')[2]} {100 * value:.0f}%"
            for name, value in self.constants.items()
            if name.startswith(("gender ", "age "))
        ]

    def select(self, **settings: Any) -> list[Row]:
        """Return the rows with these settings, by seed."""
        rows = (row for row in self.rows if row.settings.items() >= settings.items())
        return sorted(rows, key=lambda row: row.seed)

    def values(self, name: str, **settings: Any) -> list[Any]:
        """Return the values of a setting, in the order of rows."""
        return list(dict.fromkeys(row.settings[name] for row in self.rows if row.settings.items() >= settings.items()))

    def runs(self, number: str, **settings: Any) -> list[float]:
        return [row.numbers[number] for row in self.select(**settings)]

    def table(self, numbers: Iterable[str], **settings: Any) -> npt.NDArray[np.float64]:
        names = list(numbers)
        return np.array([[row.numbers[name] for name in names] for row in self.select(**settings)])

    def mean(self, number: str, **settings: Any) -> float | None:
        values = self.runs(number, **settings)
        return float(np.mean(values)) if values else None

    def over_runs(self, number: str, **settings: Any) -> Estimate | None:
        """Return the mean over seeds with its interval; None for fewer than two."""
        values = self.runs(number, **settings)
        return mean_over_runs(values) if len(values) > 1 else None

    def estimate(self, number: str, **settings: Any) -> Estimate | None:
        """Return a number that is stored with its interval."""
        return next((stored(row.numbers, number) for row in self.select(**settings)), None)


def require_rows(rows: Any, out: Path) -> None:
    if not rows:
        raise DataError(f"no rows in {str(out)!r}: run the experiment first")


def stored(numbers: Mapping[str, float], name: str) -> Estimate:
    """Return a number of a row with its stored interval."""
    low, high = (numbers.get(f"{name} {bound}", numbers.get(bound, float("nan"))) for bound in ("low", "high"))
    return Estimate(numbers[name], low, high, 0, "")


def group_by_settings(rows: Iterable[Row]) -> Iterator[tuple[Mapping[str, Any], list[Row]]]:
    """Yield each setting with the rows of all its seeds."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(repr(sorted(row.settings.items(), key=str)), []).append(row)
    for runs in groups.values():
        yield runs[0].settings, runs


def mean_of(runs: Sequence[Row], name: str) -> float:
    return float(np.mean([row.numbers[name] for row in runs]))


def estimate_of(runs: Sequence[Row], name: str) -> Estimate | None:
    """Return the mean over seeds with its interval; None for a single seed."""
    return mean_over_runs([row.numbers[name] for row in runs]) if len(runs) > 1 else None


# -- numbers and tables ----------------------------------------------------------------------------------------


def plain(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def interval(estimate: Estimate | None, digits: int = 3, *, sign: bool = False) -> str:
    """Return ``0.123 [0.100, 0.150]``; "" for None."""
    if estimate is None:
        return ""
    value, low, high = (
        f"{number:{'+' if sign else ''},.{digits}f}" for number in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} [{low}, {high}]"


def number_of(runs: Sequence[Row], name: str) -> str:
    """Return ``mean ± half of the interval``."""
    estimate = estimate_of(runs, name)
    if estimate is None:
        return f"{mean_of(runs, name):.3f}"
    return f"{estimate.value:.3f} ± {(estimate.high - estimate.low) / 2:.3f}"


def seeds_of(runs: Sequence[Row]) -> str:
    """Return the number of seeds in brackets if there are fewer than five."""
    return "" if len(runs) >= 5 else " (one seed)" if len(runs) == 1 else f" ({len(runs)} seeds)"


def stored_interval(numbers: Mapping[str, float], name: str) -> str:
    return interval(stored(numbers, name))


def above(numbers: Mapping[str, float], name: str, chance: float | None = None) -> str:
    """Return a stored number with its interval, in bold if the interval is above chance."""
    chance = numbers[f"{name} blind"] if chance is None else chance
    text = stored_interval(numbers, name)
    return f"**{text}**" if numbers[f"{name} low"] > chance else text


def signed(numbers: Mapping[str, float], name: str) -> str:
    """Return a stored difference with its interval, in bold if the interval excludes 0."""
    estimate = stored(numbers, name)
    text = interval(estimate, sign=True)
    return f"**{text}**" if estimate.low > 0 or estimate.high < 0 else text


def table(head: Sequence[str], lines: Iterable[Sequence[object]], *, text_columns: int = 1) -> str:
    rows = [list(head), *(list(map(str, line)) for line in lines)]
    marks = "|" + "---|" * text_columns + "---:|" * (len(head) - text_columns)
    head_line, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head_line, marks, *body])


def join_sections(sections: Iterable[str]) -> str:
    return "\n\n".join(filter(None, sections)) + "\n"


def duration(files: Iterable[Rows]) -> str:
    files = list(files)
    cells, seconds = sum(rows.cells for rows in files), sum(rows.seconds for rows in files)
    time = f"{seconds / 3600:.1f} hours" if seconds >= 3600 * 3 else f"{seconds / 60:.0f} minutes"
    return f"{cells:,} cells took {time} of a core that was shared with other work."


def write_tables(path: Path, sections: Iterable[str], *, readme: Path | None, start: str, end: str) -> None:
    """Write sections to a file, and between two marks of a README."""
    text = join_sections(sections)
    path.write_text(text, encoding="utf-8")
    write_between(readme, start, end, text)


def write_between(readme: Path | None, start: str, end: str, text: str) -> None:
    """Replace the text between two marks of a README, if it has them."""
    if readme is None or not readme.exists():
        return
    before, mark, rest = readme.read_text(encoding="utf-8").partition(start)
    if mark:
        readme.write_text(f"{before}{start}\n\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


# -- figures ---------------------------------------------------------------------------------------------------


def new_figure(width: float, height: float, lines: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """Return a figure without a window and its (lines, columns) panels."""
    figure = extra("matplotlib.figure", "report", "a figure").Figure(figsize=(width, height), layout="constrained")
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)
    return figure, figure.subplots(lines, columns, squeeze=False)


def save_figure(figure: Any, path: Path, *, svg: bool = False, dpi: int = 130) -> None:
    """Write a PNG and, on request, an SVG that is the same for equal rows."""
    figure.savefig(path, dpi=dpi)
    if svg:
        with extra("matplotlib", "report", "a figure").rc_context({"svg.hashsalt": "dptext"}):
            figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def error_bars(axes: Any, points: Iterable[tuple[float, Estimate]], **style: Any) -> None:
    """Draw estimates with their intervals."""
    places, estimates = zip(*points, strict=True)
    errors = [[entry.value - entry.low for entry in estimates], [entry.high - entry.value for entry in estimates]]
    axes.errorbar(places, [entry.value for entry in estimates], yerr=errors, **style)
