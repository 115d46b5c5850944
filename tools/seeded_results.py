"""Print a digest of what every mechanism gives under a seed, to compare two versions of the source.

Usage: ``PYTHONPATH=OLD/src python tools/seeded_results.py > old.json``, the same for the new tree, then ``diff``. Only
public names are used, so that the command runs on both. Statements are compared without their release ids.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dptext
from dptext import Document

SEED = 7
TOPICS = {
    "drinks": ["tea", "cup", "coffee", "milk", "water", "glass", "drink", "hot", "cold", "sweet"],
    "rules": ["law", "tax", "court", "judge", "rule", "state", "vote", "paper", "right", "office"],
    "travel": ["road", "train", "ship", "plane", "city", "river", "bridge", "map", "north", "south"],
}
WORDS = [word for words in TOPICS.values() for word in words]
RANDOMIZERS = {
    "PrivUnit": {}, "PrivUnitG": {}, "Laplace": {}, "L2Laplace": {}, "Gaussian": {"delta": 1e-6}, "OneBit": {},
    "WeightedBits": {}, "Piecewise": {}, "Hybrid": {}, "SymmetricUnary": {}, "OptimizedUnary": {},
}  # fmt: skip
MECHANISMS = {
    "TEM": {}, "SubsetSelection": {}, "Madlib": {}, "Mahalanobis": {"lambda_": 0.4}, "SanText": {},
    "SanTextPlus": {"p": 0.2}, "CusText": {"size": 2}, "Vickrey": {"t": 0.3},
    "TruncatedGumbel": {"epsilon": 18.0, "unsafe_as_published": True},
}  # fmt: skip


def vectors() -> dptext.WordVectors:
    return dptext.load_vectors((WORDS, np.random.default_rng(1).normal(size=(len(WORDS), 6))))


def texts(count: int) -> list[str]:
    choose = np.random.default_rng(2)
    lists = list(TOPICS.values())
    return [" ".join(choose.choice(lists[n % 3], 6)) + (". Zyx 12!" if n % 5 == 0 else "") for n in range(count)]


def documents(count: int) -> list[Document]:
    names = list(TOPICS)
    return [Document(text, user=f"user {n % 97}", label=names[n % 3]) for n, text in enumerate(texts(count))]


def results() -> Iterator[tuple[str, Callable[[], Any]]]:
    known = vectors()
    for name, options in MECHANISMS.items():
        mechanism = lambda name=name, options=options: getattr(dptext, name)(known, **{"epsilon": 6.0, **options})  # noqa: E731
        yield f"words {name}", lambda make=mechanism: _release(dptext.privatize(texts(40), make(), seed=SEED))
    for name, options in RANDOMIZERS.items():
        yield f"vectors {name}", lambda name=name, options=options: _vectors(name, options)
    for unit in ("document", "sentence"):
        yield f"bank {unit}", lambda unit=unit: _bank(unit)
    for method in ("Cooccurrence", "SkipGram"):
        yield f"embeddings {method}", lambda method=method: _embeddings(method)
    yield "synthesis", _synthesis
    yield "hiding", _hiding
    for suffix in ("csv", "jsonl", "parquet", "txt"):
        yield f"file {suffix}", lambda suffix=suffix: _file(suffix)


def _vectors(name: str, options: dict[str, Any]) -> list[Any]:
    randomizer = getattr(dptext, name)(epsilon=4.0, **options)
    encoder = dptext.PrivateEncoder(dptext.MeanOfWords(vectors()), randomizer, dimension=4, seed=SEED).fit(texts(60))
    return [encoder.transform(texts(20)), _statement(encoder.statement_)]


def _bank(unit: str) -> list[Any]:
    bank = dptext.TextBank(texts(50), encoder=dptext.MeanOfWords(vectors()), cache=False, name="made-up texts")
    return _release(dptext.privatize(texts(20), dptext.BankRewriter(bank, epsilon=6.0, unit=unit), seed=SEED))


def _embeddings(method: str) -> list[Any]:
    options: dict[str, Any] = {"seed": SEED, "epsilon": 6.0, "delta": 1e-6}
    if method == "SkipGram":
        options |= {"public_users": 97, "steps": 4, "sampling_rate": 0.5}
    model = getattr(dptext, method)(vectors(), **options).fit(documents(600))
    return [model.vectors_.matrix, _statement(model.statement_)]


def _synthesis() -> list[Any]:
    maker = dptext.Synthesizer(
        epsilon=3.0, labels=list(TOPICS), features=dptext.MeanOfWords(vectors()), cache=False, seed=SEED
    )
    release = maker.fit(documents(900), public=texts(300)[150:])
    sample = release.sample(texts(300)[150:], 30, cache=False, seed=SEED)
    return [release.matrix, _statement(release.statement), sample.texts, sample.labels]


def _hiding() -> list[Any]:
    rows = documents(200)
    inputs = np.random.default_rng(3).normal(size=(len(rows), 5)).astype(np.float32)
    labels = [row.label for row in rows]
    model = dptext.HidingEncoder(None, epsilon=8.0, dimension=2, epochs=2, seed=SEED)
    model.fit(inputs, task=labels, attributes={"parity": [n % 2 for n in range(len(rows))]})
    return [np.round(model.transform(inputs[:10], seed=SEED), 3)]


def _file(suffix: str) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / f"in.{suffix}", Path(folder) / f"out.{suffix}"
        rows = [{"text": text, "stars": n % 5, "flag": None if n % 7 else "x,y"} for n, text in enumerate(texts(50))]
        keep = ["stars", "flag"]
        if suffix == "jsonl":
            source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        elif suffix == "csv":
            lines = [f'{row["text"]},{row["stars"]},"{row["flag"] or ""}"' for row in rows]
            source.write_text("\n".join(["text,stars,flag", *lines, ""]))
        elif suffix == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(rows), source)
        else:
            source.write_text("\n".join(texts(50)) + "\n")
            keep = []
        release = dptext.privatize_file(
            dptext.TextFiles(source, keep=keep), out, dptext.TEM(vectors(), epsilon=6.0), seed=SEED
        )
        return [out.read_bytes(), _statement(release.statement)]


def _release(release: dptext.Release) -> list[Any]:
    return [release.texts, _statement(release.statement)]


def _statement(statement: dptext.PrivacyStatement) -> dict[str, Any]:
    """The numbers of a statement; sentences, ids and digests of files are left out."""
    parts: dict[str, Any] = json.loads(statement.to_json())
    numbers = {name: value for name, value in parts["parameters"].items() if isinstance(value, int | float)}
    return {"guarantee": parts["guarantee"], "unit": parts["unit"], "relation": parts["relation"], "numbers": numbers}


def _digest(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()[:16]
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def main() -> None:
    result: dict[str, list[str]] = {}
    for name, make in results():
        try:
            result[name] = [_digest(value) for value in make()]
        except Exception as error:  # noqa: BLE001  one broken mechanism must not hide the others
            traceback.print_exc(limit=3)
            result[name] = [f"{type(error).__name__}: {error}"]
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
