"""The commands that are tried."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dptext.ledger.ledger import Ledger
from faults.scenario import MARKER, Scenario

_WORDS = ["the", "man", "of", "city", "war", "music", "water", "year", "said", "that", "he", "was"]
_ROWS = 10
_LEDGER = "budget.ledger"


def write_vectors(path: Path) -> None:
    """Public vectors of a few words."""
    points = np.random.default_rng(7).normal(size=(len(_WORDS), 6))
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in point)}\n" for word, point in zip(_WORDS, points, strict=True)]
    path.write_text("".join(lines))


def _rows() -> list[dict[str, object]]:
    texts = [f"{' '.join(_WORDS[(n + place) % len(_WORDS)] for place in range(6))} {MARKER}" for n in range(_ROWS)]
    return [{"text": text, "id": n, "author": f"{MARKER}{n % 4}"} for n, text in enumerate(texts)]


def _jsonl(work: Path) -> None:
    lines = [json.dumps(row) + "\n" for row in _rows()]
    (work / "in.jsonl").write_text("".join(lines))


def _bad_jsonl(work: Path) -> None:
    lines = [json.dumps(row) + "\n" for row in _rows()]
    lines[3:3] = ["{\n", "[]\n"]
    (work / "in.jsonl").write_text("".join(lines) + "{\n")


def _parquet(work: Path) -> None:
    pq.write_table(pa.Table.from_pylist(_rows()), work / "in.parquet")


def _prepare_with_ledger(prepare: Callable[[Path], None]) -> Callable[[Path], None]:
    def both(work: Path) -> None:
        prepare(work)
        Ledger.create(work / _LEDGER, epsilon=1e4, delta=1e-3)

    return both


_VECTORS = "../../../vectors.txt"
_PRIVATIZE = ("--quiet", "--vectors", _VECTORS, "--epsilon", "4", "--keep", "id!")
_ENCODE = ("--quiet", "--encoder", _VECTORS, "--epsilon", "4")
_EMBED = ("--quiet", "--vectors", _VECTORS, "--epsilon", "8", "--user", "author", "--public-users", "1000")
_SKIP_GRAM = ("--method", "skip-gram", "--steps", "3", "--sampling-rate", "1")
_SYNTHESIZE = (
    *("--quiet", "--features", _VECTORS, "--epsilon", "4", "--user", "author", "--public-users", "1000"),
    *("--label", "topic", "--labels", "a,b", "--public", "pool.txt", "-n", "5"),
)
_CHARGED = ("--ledger", _LEDGER)


def _privatize(source: str, out: str, *more: str) -> tuple[str, ...]:
    return ("privatize", source, "-o", out, *_PRIVATIZE, *more)


def _encode(source: str, out: str, *more: str) -> tuple[str, ...]:
    return ("encode", source, "-o", out, *_ENCODE, *more)


def _embed(*more: str) -> tuple[str, ...]:
    return ("embed", "in.jsonl", "-o", "shared", *_EMBED, *more)


def _pool(work: Path) -> None:
    """Rows with a class, and public texts."""
    lines = [json.dumps({**row, "topic": "ab"[place % 2]}) + "\n" for place, row in enumerate(_rows())]
    (work / "in.jsonl").write_text("".join(lines))
    pairs = [f"{one} {other}\n" for one in _WORDS[:5] for other in _WORDS[5:9]]
    (work / "pool.txt").write_text("".join(pairs))


def _synthesize(*more: str) -> tuple[str, ...]:
    return ("synthesize", "in.jsonl", "-o", "made.parquet", *_SYNTHESIZE, *more)


_BANK = ("bank", "pool.txt", "-o", "bank", "--encoder", _VECTORS, "--quiet")
_DESCRIPTION = "made.parquet.distribution"

SCENARIOS = [
    Scenario("privatize jsonl", _privatize("in.jsonl", "out.jsonl"), "out.jsonl", _jsonl),
    Scenario(
        "privatize jsonl, ledger",
        _privatize("in.jsonl", "out.jsonl", *_CHARGED),
        "out.jsonl",
        _prepare_with_ledger(_jsonl),
        ledger=_LEDGER,
    ),
    Scenario(
        "privatize jsonl, ledger, resumed",
        _privatize("in.jsonl", "out.jsonl", *_CHARGED),
        "out.jsonl",
        _prepare_with_ledger(_jsonl),
        ledger=_LEDGER,
        stopped=True,
    ),
    Scenario(
        "privatize jsonl in place of another, ledger",
        _privatize("in.jsonl", "out.jsonl", "--force", *_CHARGED),
        "out.jsonl",
        _prepare_with_ledger(_jsonl),
        before=(_privatize("in.jsonl", "out.jsonl", *_CHARGED),),
        ledger=_LEDGER,
    ),
    Scenario(
        "privatize bad rows, ledger",
        _privatize("in.jsonl", "out.jsonl.gz", "--on-error", "skip", *_CHARGED, "--user", "author"),
        "out.jsonl.gz",
        _prepare_with_ledger(_bad_jsonl),
        ledger=_LEDGER,
    ),
    Scenario(
        "privatize parquet, two processes, ledger",
        _privatize("in.parquet", "out.parquet", "--processes", "2", *_CHARGED),
        "out.parquet",
        _prepare_with_ledger(_parquet),
        ledger=_LEDGER,
    ),
    Scenario("bank in place of another", (*_BANK, "--force"), "bank", _pool, before=(_BANK,), resumes=False),
    Scenario(
        "encode, ledger, device saved",
        _encode("in.parquet", "out.parquet", "--save", "device", *_CHARGED),
        "out.parquet",
        _prepare_with_ledger(_parquet),
        ledger=_LEDGER,
    ),
    Scenario("embed, ledger", _embed(*_CHARGED), "shared", _prepare_with_ledger(_jsonl), ledger=_LEDGER, resumes=False),
    Scenario("embed in place of another", _embed("--force"), "shared", _jsonl, before=(_embed(),), resumes=False),
    Scenario(
        "embed skip-gram, ledger",
        _embed(*_SKIP_GRAM, *_CHARGED),
        "shared",
        _prepare_with_ledger(_jsonl),
        ledger=_LEDGER,
        resumes=False,
    ),
    Scenario("synthesize", _synthesize(), "made.parquet", _pool, first=_DESCRIPTION),
    Scenario(
        "synthesize, ledger",
        _synthesize(*_CHARGED),
        "made.parquet",
        _prepare_with_ledger(_pool),
        ledger=_LEDGER,
        first=_DESCRIPTION,
    ),
    Scenario(
        "synthesize, ledger, resumed",
        _synthesize(*_CHARGED),
        "made.parquet",
        _prepare_with_ledger(_pool),
        ledger=_LEDGER,
        stopped=True,
        first=_DESCRIPTION,
    ),
    Scenario(
        "synthesize in place of another, ledger",
        _synthesize("--force", *_CHARGED),
        "made.parquet",
        _prepare_with_ledger(_pool),
        before=(_synthesize(*_CHARGED),),
        ledger=_LEDGER,
        first=_DESCRIPTION,
    ),
]
