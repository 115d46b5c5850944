"""Private texts as texts of a public bank, under a pure local epsilon: see README.md.

Command: ``python -m papers.sentences.experiment [--quick] [--data ../shared/data] [--parts sentences news ...]``

Every cell is a line of ``results/*.jsonl``, written when it is done: run it again to go on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from papers.reports import parse_options
from papers.sentences.cells import Bench
from papers.sentences.report import write_report
from papers.sentences.shown import write_shown
from papers.sweeps import sweep

HERE = Path(__file__).resolve().parent
PARTS = ("sentences", "news", "reviews")
_USUAL: dict[str, Any] = {
    "method": "bank",
    "epsilon": 8.0,
    "features": "sentences",
    "factor": 1.0,
    "thinned": False,
    "texts": 1,
    "directions": None,
}
_BANKS = {"sentences": ("20,000", "all", "wiki and news"), "news": ("wiki and news", "own"), "reviews": ("own",)}
_OF_WORDS = {"sentences": (8.0, 50.0, 100.0, 250.0), "news": (250.0,), "reviews": (250.0,)}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    has_model = not options.quick or find_spec("sentence_transformers") is not None
    bench = Bench(options.data, options.work or options.out / "work", 500 if options.quick else None, has_model)
    bench.work.mkdir(parents=True, exist_ok=True)
    if not options.report:
        for part in options.parts:
            sweep(
                bench.cell,
                list(settings_of(part, quick=options.quick)),
                range(1, 3 if options.quick else 6),
                path=options.out / f"{part}.jsonl",
                name=f"sentences {part}",
            )
        if options.shown:
            write_shown(bench, options.out / "shown.json")
    write_report(options.out, readme=options.readme)


def settings_of(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """All settings of a part, those that matter most first."""
    banks = _BANKS[part]
    features = "words" if quick and find_spec("sentence_transformers") is None else _USUAL["features"]
    if part == "reviews" and not quick:
        features = "both"
    usual = _USUAL | {"data": part, "bank": banks[0], "features": features}
    nothing = {"bank": "", "features": "", "epsilon": 0.0}
    yield usual
    yield usual | nothing | {"method": "real"}
    yield usual | {"method": "random", "epsilon": 0.0}
    if quick:
        yield usual | nothing | {"method": "words", "epsilon": 250.0}
        return
    epsilons = (4.0, 12.0, 16.0)
    for epsilon in epsilons:
        yield usual | {"epsilon": epsilon}
    for bank in banks[1:]:
        for epsilon in (8.0, *epsilons):
            yield usual | {"bank": bank, "epsilon": epsilon}
        yield usual | {"bank": bank, "method": "random", "epsilon": 0.0}
    if part != "sentences":
        yield usual | {"bank": "own", "method": "bank labels", "epsilon": 0.0}
    thinned = banks[:2] if part == "sentences" else banks
    for bank in thinned:
        for epsilon in (8.0, 4.0, 12.0):
            yield usual | {"bank": bank, "epsilon": epsilon, "thinned": True}
    for factor in (0.25, 0.5, 2.0, 4.0):
        yield usual | {"factor": factor}
    for other in ("sentences", "words", "both"):
        if other != features:
            for epsilon in (4.0, 8.0, 12.0) if part == "reviews" else (8.0,):
                yield usual | {"features": other, "epsilon": epsilon}
    if part != "sentences":
        yield usual | {"texts": 2}
    for directions in (384, 16) if features == "sentences" else (64, 16):
        yield usual | {"method": "PrivUnit", "directions": directions}
    yield usual | {"method": "TEM on vectors"}
    for method in ("words", "TEM", "Madlib"):
        for epsilon in _OF_WORDS[part]:
            yield usual | nothing | {"method": method, "epsilon": epsilon}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Texts of a public bank in place of private ones: what is left.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--quick", action="store_true", help="two seeds, few texts: does it run?")
    parser.add_argument("--report", action="store_true", help="tables and figure from the rows that are there")
    parser.add_argument("--work", type=Path, default=None, help="folder of kept vectors; results/work unless named")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--shown", action="store_true", help="also write the questions that are shown (shown.json)")
    return parse_options(parser, arguments, HERE)


if __name__ == "__main__":
    main()
