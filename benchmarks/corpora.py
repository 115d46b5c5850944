"""Corpora: kill -9 and go on, memory and time over millions of documents: see benchmarks/README.md.

Command: ``python benchmarks/corpora.py [--kills 20] [--millions 2.5 5 10] [--processes 1]``
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import zipf

from dptext import load_vectors
from dptext.io.artifacts import file_digest

SOURCE = "glove-6b-50d"
LIMIT = 50_000
KILLED_DOCUMENTS = 100_000
LENGTH = 10
_CHILD = Path(__file__).resolve().parent / "child.py"


def main() -> None:
    parser = argparse.ArgumentParser(description="Interrupted runs, and memory over millions of documents.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--millions", type=float, nargs="*", default=[2.5, 5, 10])
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    if options.kills:
        print(kill_and_resume(options.kills), flush=True)
    for line in over_sizes(options.millions, options.processes):
        print(line, flush=True)


def command(source: Path, out: Path, *more: str) -> list[str]:
    start = [sys.executable, "-m", "dptext", "privatize", str(source), "-o", str(out), "--keep", "row", "--quiet"]
    return [*start, "--epsilon", "5", "--vectors", SOURCE, "--limit", str(LIMIT), *more]


def kill_and_resume(kills: int) -> str:
    """One run over 100,000 documents, killed again and again at random moments, against one that was left alone."""
    generator = np.random.default_rng(4)
    vectors = load_vectors(SOURCE, limit=LIMIT)
    with TemporaryDirectory() as name:
        source, out, whole = (Path(name) / entry for entry in ("texts.jsonl", "private.jsonl", "whole.jsonl"))
        write_rows(source, vectors.words[:-1], KILLED_DOCUMENTS)
        start = time.perf_counter()
        subprocess.run(command(source, whole, "--seed", "1"), check=True)
        left_alone = time.perf_counter() - start
        killed = runs = 0
        while killed < kills:
            if out.exists():  # done before the last kill: begin again
                for path in Path(name).glob("private.jsonl*"):
                    path.unlink()
            process = subprocess.Popen(command(source, out, "--seed", "1", "--resume"))
            runs += 1
            try:
                process.wait(timeout=float(generator.uniform(0.0, left_alone)))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
            check_moment(out)
        if not out.exists():
            subprocess.run(command(source, out, "--seed", "1", "--resume"), check=True)
        rows = [json.loads(line)["row"] for line in out.open(encoding="utf-8")]
        same = file_digest(out) == file_digest(whole)
        left = [path.name for path in Path(name).iterdir() if path.name.startswith(".")]
    ok = same and rows == list(range(KILLED_DOCUMENTS)) and not left
    return (
        f"{killed} kills at random moments of {runs} runs over {KILLED_DOCUMENTS:,} documents: every row once, in "
        f"order, equal to an uninterrupted run, nothing left behind: {'yes' if ok else 'NO'}"
    )


def check_moment(out: Path) -> None:
    """After a kill there is the whole output with its statement, or a job to go on with, or nothing."""
    if out.exists():
        assert out.with_name(f"{out.name}.privacy.json").exists()
        assert sum(1 for _ in out.open("rb")) == KILLED_DOCUMENTS


def over_sizes(millions: list[float], processes: int) -> Iterator[str]:
    """Parquet to parquet, in a process of its own."""
    vectors = load_vectors(SOURCE, limit=LIMIT)
    yield "| documents of 10 words, parquet to parquet | processes | seconds | documents/s | peak memory |"
    yield "|---|---:|---:|---:|---:|"
    for size in millions:
        documents = round(size * 1e6)
        with TemporaryDirectory() as name:
            source, out = Path(name) / "texts.parquet", Path(name) / "private.parquet"
            write_parquet(source, vectors.words[:-1], documents)
            run = command(source, out, "--processes", str(processes))
            done = subprocess.run([sys.executable, str(_CHILD), *run], stdout=subprocess.PIPE, text=True, check=True)
            used = json.loads(done.stdout)
            check_parquet(out, documents)
        yield (
            f"| {documents:,} | {processes} | {used['seconds']:.0f} | {documents / used['seconds']:,.0f} | "
            f"{used['peak_bytes'] / 2**30:.2f} GiB |"
        )


def write_rows(path: Path, words: tuple[str, ...], documents: int) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for row, text in enumerate(zipf.texts(words, documents, LENGTH)):
            stream.write(json.dumps({"text": text, "row": row}) + "\n")


def write_parquet(path: Path, words: tuple[str, ...], documents: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("text", pa.string()), ("row", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        done = 0
        while done < documents:
            count = min(200_000, documents - done)
            texts = list(zipf.texts(words, count, LENGTH, seed=done))
            writer.write_table(pa.table({"text": texts, "row": range(done, done + count)}, schema=schema))
            done += count


def check_parquet(path: Path, documents: int) -> None:
    import pyarrow.parquet as pq

    rows = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=["row"]):
            numpy = batch.column(0).to_numpy()
            assert (numpy == np.arange(rows, rows + numpy.size)).all()
            rows += numpy.size
    assert rows == documents


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "error")
    main()
