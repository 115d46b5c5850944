"""Utility of a corpus that was synthesized from one noisy release: see README.md.

Command: ``python -m papers.synthesis.experiment [--quick] [--data FOLDER] [--parts news reviews ...]``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from papers.reports import parse_options
from papers.sweeps import sweep
from papers.synthesis.cells import Bench
from papers.synthesis.report import write_report

HERE = Path(__file__).resolve().parent
PARTS = ("news", "reviews", "blogs, age", "blogs, gender", "blogs, topic")
_VARIETIES = (0.0, 0.25, 0.75, 1.0)
_PEOPLE = {"news": (500, 1000, 2000, 10_000), "reviews": (500, 1000, 2000)}
_POOLS = {"news": ("no news", "restaurants"), "reviews": ("no reviews of films",)}
_USUAL: dict[str, Any] = {"pool": "", "epsilon": 1.0, "people": 0, "rarest": None, "n": 3000, "variety": 0.5}


def main(arguments: Sequence[str] | None = None) -> None:
    description = "Synthetic corpora from one noisy release: their utility."
    options = parse_options(description, HERE, arguments, parts=PARTS)
    if not options.report:
        has_model = not options.quick or find_spec("sentence_transformers") is not None
        bench = Bench(options.data, 1000 if options.quick else 1_000_000, has_model)
        for part in options.parts:
            if not options.quick or part != "blogs, topic":  # the topic model takes a minute
                path = options.out / f"{part.replace(', ', '-')}.jsonl"
                settings, seeds = list(settings_of(part, quick=options.quick)), range(1, 3 if options.quick else 6)
                sweep(bench.cell, settings, seeds, path=path, name=f"synthesis {part}")
    write_report(options.out, readme=options.readme)


def settings_of(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield all settings of a part."""
    if part.startswith("blogs"):
        yield from _blogs(part, quick=quick)
        return
    features = "words" if quick and find_spec("sentence_transformers") is None else "both"
    usual = _USUAL | {"data": part, "pool": part, "people": 5000, "features": features, "method": "described"}
    usual["n"] = {"news": 4000, "reviews": 3000}[part]
    if quick:
        usual |= {"people": 1000, "n": 600}
    for method in ("described", "real", "random labels"):
        yield usual | {"method": method}
    if quick:
        yield usual | {"epsilon": 8.0}
        return
    yield from (usual | {"epsilon": epsilon} for epsilon in (4.0, 0.25, 8.0, 0.5, 2.0))
    yield from (usual | {"method": method} for method in ("released", "names of labels", "nobody"))
    yield from (usual | {"variety": variety} for variety in _VARIETIES)
    yield from (usual | {"features": other} for other in ("words", "sentences"))
    yield from (usual | {"people": people} for people in _PEOPLE[part])
    yield usual | {"people": 3500, "rarest": 100}
    yield from (usual | {"method": "votes", "features": "sentences", "epsilon": epsilon} for epsilon in (1.0, 4.0))
    yield from (usual | {"pool": pool} for pool in _POOLS[part])


def _blogs(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    n = {(False, False): 3000, (True, False): 500, (False, True): 250, (True, True): 100}[quick, part == PARTS[-1]]
    usual = _USUAL | {"data": part, "features": "words", "method": "described", "n": n}
    for method in ("described", "real", "random labels"):
        yield usual | {"method": method}
    if quick:
        return
    epsilons = (4.0, 0.5, 8.0, 2.0, 0.25) if part == "blogs, age" else (4.0, 8.0)
    yield from (usual | {"epsilon": epsilon} for epsilon in epsilons)
    yield from (usual | {"method": method} for method in ("released", "nobody"))
    if part == "blogs, age":
        yield from (usual | {"variety": variety} for variety in _VARIETIES)


if __name__ == "__main__":
    main()
