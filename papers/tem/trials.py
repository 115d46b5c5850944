"""What `threshold` and `composed` share: their options, and a sweep over trials on quarters of the reviews."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from papers.reports import parse_options
from papers.sweeps import sweep

from dptext import WordVectors, load_vectors

HERE = Path(__file__).resolve().parent
_REVIEWS, _OF_QUICK = 3_000, 600  # a quarter
_GLOVE, _WORDS = "glove-6b-50d", 20_000


def run_trials(
    parser: argparse.ArgumentParser,
    part: str,
    bench_of: Callable[[Path, WordVectors, int], Any],
    settings_of: Callable[..., Iterator[dict[str, Any]]],
    *,
    name: str,
    arguments: Sequence[str] | None,
) -> argparse.Namespace:
    """The options, after every cell that they ask for has its line in ``results-<part>/<part>.jsonl``.

    Args:
        parser: it has ``--quick``.
        part: what the folder and the file are named after.
        bench_of: from the folder of the archive, public vectors and reviews a quarter; ``cell`` measures a setting.
        settings_of: all settings, with ``quick``.
        name: of the experiment.
        arguments: None: those of the command line.
    """
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the archive")
    parser.add_argument("--report", action="store_true", help="what is written from the rows that are there")
    parser.add_argument("--vectors", default=_GLOVE, help="public vectors: a known name, or a path")
    options = parse_options(parser, arguments, HERE, part=part)
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        vectors = load_vectors(options.vectors, limit=_WORDS if options.vectors == _GLOVE else None)
        maximum = _OF_QUICK if options.quick else _REVIEWS
        sweep(
            bench_of(options.data, vectors, maximum).cell,
            list(settings_of(quick=options.quick)),
            range(1, 3 if options.quick else 6),
            path=options.out / f"{part}.jsonl",
            name=name,
            constants={"vectors": vectors.fingerprint, "reviews": maximum},
        )
    return options
