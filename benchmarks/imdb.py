"""The 50,000 IMDb reviews through the command line, and how much of the time splitting and joining take.

Command: ``python benchmarks/imdb.py [--data ../shared/data] [--processes 1]``
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from dptext import TEM, load_vectors
from dptext.release.mechanism import Rewriter
from dptext.text.tokens import pieces

ARCHIVE = "imdb_acl/aclImdb_labelled_50k.tar.xz"
SAMPLE = 4_000
_CHILD = Path(__file__).resolve().parent / "child.py"


def main() -> None:
    parser = argparse.ArgumentParser(description="The IMDb reviews through the command line.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        source, out = Path(name) / "imdb.parquet", Path(name) / "private.parquet"
        rows = list(reviews(options.data / ARCHIVE))
        pq.write_table(pa.Table.from_pylist(rows), source)
        run = [sys.executable, "-m", "dptext", "privatize", str(source), "-o", str(out), "--keep", "positive", "-q"]
        run += ["--epsilon", "5", "--limit", "50000", "--processes", str(options.processes)]
        done = subprocess.run([sys.executable, str(_CHILD), *run], stdout=subprocess.PIPE, text=True, check=True)
        used = json.loads(done.stdout)
        assert used["exit"] == 0
        assert pq.read_metadata(out).num_rows == len(rows)
    words, share = share_of_text([row["text"] for row in islice(rows, SAMPLE)])
    total = round(words * len(rows) / SAMPLE)
    print("| what | processes | seconds | words/s | peak memory | splitting and joining |")
    print("|---|---:|---:|---:|---:|---:|")
    print(
        f"| {len(rows):,} reviews, about {total / 1e6:.1f} million words | {options.processes} | {used['seconds']:.0f} "
        f"| {total / used['seconds']:,.0f} | {used['peak_bytes'] / 2**30:.2f} GiB | {share:.0%} |"
    )


def reviews(archive: Path) -> Iterator[dict[str, object]]:
    """Rows of text and label."""
    with tarfile.open(archive) as file:
        for member in file:
            content = file.extractfile(member)
            if content is not None and member.name.endswith(".txt"):
                yield {"text": content.read().decode("utf-8"), "positive": "/pos/" in member.name}


def share_of_text(texts: list[str]) -> tuple[int, float]:
    """Words in these texts, and the share of splitting and joining in rewriting them once the words are known."""
    rewriter = Rewriter(TEM(load_vectors("glove-6b-50d", limit=50_000), epsilon=5.0), seed=1)
    list(rewriter.rewrite(texts))
    words = rewriter.tally.words
    start = time.perf_counter()
    list(rewriter.rewrite(texts))
    whole = time.perf_counter() - start
    start = time.perf_counter()
    for text in texts:
        "".join(pieces(text))
    return words, (time.perf_counter() - start) / whole


if __name__ == "__main__":
    main()
