"""Private texts replaced by texts of a public bank, under pure local epsilon: see README.md.

Command: ``python -m papers.sentences.experiment [--quick] [--data FOLDER] [--parts sentences news ...] [--shown]``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from papers.reports import parse_options
from papers.sentences.cells import Bench
from papers.sentences.report import write_report
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
_WORD_EPSILONS = {"sentences": (8.0, 50.0, 100.0, 250.0), "news": (250.0,), "reviews": (250.0,)}


def main(arguments: Sequence[str] | None = None) -> None:
    questions = {"action": "store_true", "help": "also write questions and their outputs (shown.json)"}
    options = parse_options(
        "Texts of a public bank instead of private ones.", HERE, arguments, parts=PARTS, shown=questions
    )
    if not options.report:
        has_model = not options.quick or find_spec("sentence_transformers") is not None
        bench = Bench(options.data, 500 if options.quick else None, has_model)
        for part in options.parts:
            settings, seeds = list(settings_of(part, quick=options.quick)), range(1, 3 if options.quick else 6)
            sweep(bench.cell, settings, seeds, path=options.out / f"{part}.jsonl", name=f"sentences {part}")
        if options.shown:
            bench.write_questions(options.out / "shown.json")
    write_report(options.out, readme=options.readme)


def settings_of(part: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield all settings of a part."""
    is_documents, banks = part != "sentences", _BANKS[part]
    features = "words" if quick and find_spec("sentence_transformers") is None else _USUAL["features"]
    if part == "reviews" and not quick:
        features = "both"
    usual = _USUAL | {"data": part, "bank": banks[0], "features": features}
    no_bank = {"bank": "", "features": "", "epsilon": 0.0}
    yield usual
    yield usual | no_bank | {"method": "real"}
    yield usual | {"method": "random", "epsilon": 0.0}
    if quick:
        yield usual | no_bank | {"method": "words", "epsilon": 250.0}
        return
    epsilons = (4.0, 12.0, 16.0)
    yield from (usual | {"epsilon": epsilon} for epsilon in epsilons)
    for bank in banks[1:]:
        yield from (usual | {"bank": bank, "epsilon": epsilon} for epsilon in (8.0, *epsilons))
        yield usual | {"bank": bank, "method": "random", "epsilon": 0.0}
    if is_documents:
        yield usual | {"bank": "own", "method": "bank labels", "epsilon": 0.0}
    for bank in banks if is_documents else banks[:2]:
        yield from (usual | {"bank": bank, "epsilon": epsilon, "thinned": True} for epsilon in (8.0, 4.0, 12.0))
    yield from (usual | {"factor": factor} for factor in (0.25, 0.5, 2.0, 4.0))
    for other in ("sentences", "words", "both"):
        if other != features:
            for epsilon in (4.0, 8.0, 12.0) if part == "reviews" else (8.0,):
                yield usual | {"features": other, "epsilon": epsilon}
    if is_documents:
        yield usual | {"texts": 2}
    for directions in (384, 16) if features == "sentences" else (64, 16):
        yield usual | {"method": "PrivUnit", "directions": directions}
    yield usual | {"method": "TEM on vectors"}
    for method in ("words", "TEM", "Madlib"):
        yield from (usual | no_bank | {"method": method, "epsilon": epsilon} for epsilon in _WORD_EPSILONS[part])


if __name__ == "__main__":
    main()
