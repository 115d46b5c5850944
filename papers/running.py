"""What all experiments share when they are run: where results go, what is said meanwhile, tables in a README."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from papers.sweeps import Row

from dptext.intervals import Estimate, mean_over_runs

__all__ = [
    "Rows",
    "by_settings",
    "estimate_of",
    "mean_of",
    "number_of",
    "options_of",
    "seeds_of",
    "torch_device",
    "write_between",
]

Rows = Sequence[Row]


def options_of(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, here: Path, *, part: str = ""
) -> argparse.Namespace:
    """Parsed, with ``out`` (``results`` or ``quick`` beside the experiment, or what was asked for) and ``readme``.

    Args:
        parser: it has ``--quick``.
        arguments: None: those of the command line.
        here: the folder of the experiment; its README is None for the quick form, and where results go elsewhere.
        part: of several experiments in one folder: it is added to the name of ``out``.
    """
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args(arguments)
    options.readme = here / "README.md" if options.out is None and not options.quick else None
    options.out = options.out or here / "-".join(filter(None, ("quick" if options.quick else "results", part)))
    return options


def torch_device() -> str:
    """ "cuda" where torch sees a GPU, else "cpu": for sentence encoders and wide networks, which gain by it."""
    if importlib.util.find_spec("torch") is None:
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def write_between(readme: Path | None, start: str, end: str, text: str) -> None:
    """Put a text between two marks of a README, in place of what is there; nothing where there are no marks."""
    if readme is None or not readme.exists():
        return
    before, mark, rest = readme.read_text(encoding="utf-8").partition(start)
    if mark:
        readme.write_text(f"{before}{start}\n\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


# -- numbers in tables -----------------------------------------------------------------------------------------


def by_settings(rows: Rows) -> Iterator[tuple[Mapping[str, Any], list[Row]]]:
    """Each setting, with the rows of all its seeds."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(repr(sorted(row.settings.items(), key=str)), []).append(row)
    for runs in groups.values():
        yield runs[0].settings, runs


def seeds_of(runs: Rows) -> str:
    """How many seeds there were, where they are fewer than five."""
    return "" if len(runs) >= 5 else " (one seed)" if len(runs) == 1 else f" ({len(runs)} seeds)"


def mean_of(runs: Rows, name: str) -> float:
    return float(np.mean([row.numbers[name] for row in runs]))


def estimate_of(runs: Rows, name: str) -> Estimate | None:
    """With its interval; None for a single seed."""
    return mean_over_runs([row.numbers[name] for row in runs]) if len(runs) > 1 else None


def number_of(runs: Rows, name: str) -> str:
    """A mean with half its interval."""
    result = estimate_of(runs, name)
    if result is None:
        return f"{mean_of(runs, name):.3f}"
    return f"{result.value:.3f} ± {(result.high - result.low) / 2:.3f}"
