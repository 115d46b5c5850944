"""What a corpus that was made from one noisy release is good for: see README.md.

Command: ``python -m papers.synthesis.experiment [--quick] [--data ../shared/data] [--parts news reviews ...]``

Every cell is a line of ``results/*.jsonl``, written when it is done: run it again to go on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from papers.reports import parse_options
from papers.sweeps import sweep
from papers.synthesis.cells import Bench
from papers.synthesis.report import write_report

HERE = Path(__file__).resolve().parent
VARIETIES = (0.0, 0.25, 0.75, 1.0)
PEOPLE = {"news": (500, 1000, 2000, 10_000), "reviews": (500, 1000, 2000)}
PARTS = ("news", "reviews", "blogs, age", "blogs, gender", "blogs, topic")
_MADE, _DESCRIBED = {"news": 4000, "reviews": 3000}, 5000
_POSTS = {(False, False): 3000, (True, False): 500, (False, True): 250, (True, True): 100}
"""By whether it is quick, and whether posts are labelled by topic: few of them are sure of one."""
_USUAL: dict[str, Any] = {"pool": "", "epsilon": 1.0, "people": 0, "rarest": None, "n": 3000, "variety": 0.5}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        has_model = not options.quick or find_spec("sentence_transformers") is not None
        work = options.work or options.out / "work"
        bench = Bench(options.data, work, 1000 if options.quick else 1_000_000, has_model)
        bench.work.mkdir(parents=True, exist_ok=True)
        seeds = range(1, 3 if options.quick else 6)
        for part in options.parts:
            sweep(
                bench.cell,
                list(settings_of(part, quick=options.quick)),
                seeds,
                path=options.out / f"{part.replace(', ', '-')}.jsonl",
                name=f"synthesis {part}",
            )
    write_report(options.out, readme=options.readme)


def settings_of(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """All settings of a part, those that matter most first."""
    if part.startswith("blogs"):
        yield from _blogs(part, quick=quick)
        return
    both = "words" if quick and find_spec("sentence_transformers") is None else "both"
    usual = (
        _USUAL
        | {"data": part, "pool": part, "people": _DESCRIBED, "features": both, "method": "described"}
        | {"n": _MADE[part]}
    )
    small = {"people": 1000, "n": 600} if quick else {}
    yield usual | small
    yield usual | small | {"method": "real"}
    yield usual | small | {"method": "random labels"}
    if quick:
        yield usual | small | {"epsilon": 8.0}
        return
    for epsilon in (4.0, 0.25, 8.0, 0.5, 2.0):
        yield usual | {"epsilon": epsilon}
    yield usual | {"method": "released"}
    yield usual | {"method": "names of labels"}
    yield usual | {"method": "nobody"}
    for variety in VARIETIES:
        yield usual | {"variety": variety}
    for features in ("words", "sentences"):
        yield usual | {"features": features}
    for people in PEOPLE[part]:
        yield usual | {"people": people}
    yield usual | {"people": 3500, "rarest": 100}
    for epsilon in (1.0, 4.0):
        yield usual | {"method": "votes", "features": "sentences", "epsilon": epsilon}
    for pool in {"news": ("no news", "restaurants"), "reviews": ("no reviews of films",)}[part]:
        yield usual | {"pool": pool}


def _blogs(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    usual = _USUAL | {
        "data": part,
        "features": "words",
        "method": "described",
        "n": _POSTS[quick, part == "blogs, topic"],
    }
    yield usual
    yield usual | {"method": "real"}
    yield usual | {"method": "random labels"}
    if quick:
        return
    for epsilon in (4.0, 0.5, 8.0, 2.0, 0.25) if part == "blogs, age" else (4.0, 8.0):
        yield usual | {"epsilon": epsilon}
    yield usual | {"method": "released"}
    yield usual | {"method": "nobody"}
    if part == "blogs, age":
        for variety in VARIETIES:
            yield usual | {"variety": variety}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Synthetic corpora from one noisy release: what they are good for.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--quick", action="store_true", help="two seeds, few texts, no labels by topic: does it run?")
    parser.add_argument("--report", action="store_true", help="tables and figures from the rows that are there")
    parser.add_argument("--work", type=Path, default=None, help="folder of kept vectors; results/work unless named")
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="all; quick: all but the last")
    options = parse_options(parser, arguments, HERE)
    options.parts = options.parts or (PARTS[:-1] if options.quick else PARTS)
    return options


if __name__ == "__main__":
    main()
