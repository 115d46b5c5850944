"""Documents grouped by user: the blogs, and up to a million synthetic users: see benchmarks/README.md.

Command: ``python benchmarks/by_user.py [--data ../shared/data] [--users 1e5 3e5 1e6]``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dptext import Document, load_vectors
from dptext.io.documents import read_documents
from dptext.text.tokens import Vocabulary
from dptext.users.grouping import users_of

ARCHIVE = "blog_authorship/blogs_subset.tar.xz"
SOURCE, LIMIT = "glove-6b-50d", 20_000
POST = re.compile(r"<post>(.*?)</post>", re.DOTALL)
PROPORTIONAL = re.compile(r"^Pss: *([0-9]+) kB", re.MULTILINE)
LARGEST = re.compile(r"^VmHWM:\s*([0-9]+) kB", re.MULTILINE)
LENGTH, EACH = 10, 3


def main() -> None:
    parser = argparse.ArgumentParser(description="Documents grouped by user.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--users", type=float, nargs="*", default=[1e5, 3e5, 1e6])
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.run:
        print(json.dumps(measure(*options.run)))
        return
    print("| documents | users | words | seconds | CPU s | users/s | words/s | peak memory |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blogs.jsonl"
        words = Path(folder) / "words"  # so that nothing but the measured work is in the measured process
        words.write_text("\n".join(load_vectors(SOURCE, limit=LIMIT).words), encoding="utf-8")
        if (options.data / ARCHIVE).exists():
            write_blogs(options.data / ARCHIVE, path)
            report("blogs, in random order, JSONL", "read", str(path), str(words))
        for users in options.users:
            report(f"synthetic, {EACH} of {LENGTH} words each", "make", str(round(users)), str(words))


def report(name: str, *run: str) -> None:
    command = [sys.executable, __file__, "--run", *run]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    used = json.loads(done.stdout)
    users, words, seconds = used["users"], used["words"], used["seconds"]
    print(
        f"| {name} | {users:,} | {words:,} | {seconds:.1f} | {used['cpu']:.1f} | {users / seconds:,.0f} | "
        f"{words / seconds:,.0f} | {used['peak'] / 2**20:,.0f} MiB |",
        flush=True,
    )


def measure(kind: str, source: str, words_file: str) -> dict[str, float]:
    """Read all documents of all users once."""
    vocabulary = Vocabulary(Path(words_file).read_text(encoding="utf-8").split("\n"))
    documents = read_documents(source, user="user") if kind == "read" else synthetic_documents(int(source), vocabulary)
    peak = [0]
    done = threading.Event()
    watch = threading.Thread(target=watch_memory, args=(peak, done))
    watch.start()
    users = words = 0
    before = sum(os.times()[:4])
    start = time.perf_counter()
    with users_of(documents, vocabulary) as people:
        grouped = time.perf_counter() - start
        for person in people:
            users += 1
            for rows, _ in person.chunks():
                words += rows.size
    seconds = time.perf_counter() - start
    cpu = sum(os.times()[:4]) - before  # of this process and of those that it waited for
    done.set()
    watch.join()
    return {"users": users, "words": words, "seconds": seconds, "grouped": grouped, "cpu": cpu, "peak": peak[0]}


def watch_memory(peak: list[int], done: threading.Event) -> None:
    """Record the peak memory of this process and its children; shared memory counts once (Linux)."""
    main_process = multiprocessing.current_process().pid
    while not done.wait(0.1) and Path("/proc").exists():
        everybody = [main_process, *(child.pid for child in multiprocessing.active_children())]
        try:
            tables = [Path(f"/proc/{entry}/smaps_rollup").read_text() for entry in everybody]
        except OSError:
            continue  # one has just ended
        peak[0] = max(peak[0], 1024 * sum(int(size) for table in tables for size in PROPORTIONAL.findall(table)))


def write_blogs(archive: Path, path: Path) -> None:
    """The posts in random order, each with the number of its file's author."""
    posts: list[tuple[int, str]] = []
    with tarfile.open(archive) as files:
        for author, member in enumerate(file for file in files if file.name.endswith(".xml")):
            stream = files.extractfile(member)
            assert stream is not None
            data = stream.read()
            try:
                content = data.decode("utf-8")
            except UnicodeDecodeError:
                content = data.decode("latin-1")
            posts += [(author, post.strip()) for post in POST.findall(content)]
    with path.open("w", encoding="utf-8") as out:
        for place in np.random.default_rng(1).permutation(len(posts)).tolist():
            author, post = posts[place]
            out.write(json.dumps({"user": author, "text": post}) + "\n")


def synthetic_documents(users: int, vocabulary: Vocabulary) -> Iterator[Document]:
    """Documents of users in random order."""
    generator = np.random.default_rng(2)
    words = np.array(vocabulary.words, dtype=object)
    for _ in range(EACH):
        order = generator.permutation(users)
        for start in range(0, users, 10_000):
            some = order[start : start + 10_000].tolist()
            texts = words[generator.integers(0, LIMIT - 1, (len(some), LENGTH))].tolist()
            for user, text in zip(some, texts, strict=True):
                yield Document(" ".join(text), user=str(user))


if __name__ == "__main__":
    main()
