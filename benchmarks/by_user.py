"""Documents grouped by user: the blogs, and up to a million synthetic users: see benchmarks/README.md.

Command: ``python benchmarks/grouping.py [--data ../shared/data] [--processes 1 2] [--users 1e5 3e5 1e6]``; with
``--sorts`` our external sort beside SQLite's and pyarrow's instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sorts import FROM_FILE, SORTS

from dptext import Document, load_vectors
from dptext.files.documents import read_documents
from dptext.text.tokens import Vocabulary
from dptext.users import grouping
from dptext.users.grouping import Users, users_of

ARCHIVE = "blog_authorship/blogs_subset.tar.xz"
SOURCE, LIMIT = "glove-6b-50d", 20_000
POST = re.compile(r"<post>(.*?)</post>", re.DOTALL)
PROPORTIONAL = re.compile(r"^Pss: *([0-9]+) kB", re.MULTILINE)
LARGEST = re.compile(r"^VmHWM:\s*([0-9]+) kB", re.MULTILINE)
LENGTH, EACH = 10, 3
# documents, users, words a document; the first from a file too
SORTED = ((2_000_000, 200_000, 10), (300_000, 20_000, 150))
BLOCK = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description="Documents grouped by user.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--users", type=float, nargs="*", default=[1e5, 3e5, 1e6])
    parser.add_argument("--sorts", nargs="*", choices=[*SORTS], help="compare these sorts; none named: all")
    parser.add_argument("--repeats", type=int, default=3, help="of a sort; the median counts")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)  # in a process of its own
    parser.add_argument("--sort", nargs=5, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.run or options.sort:
        print(json.dumps(measure(*options.run) if options.run else measure_sort(*options.sort)))
        return
    if options.sorts is not None:
        compare_sorts([name for name in SORTS if name in (options.sorts or SORTS)], options.repeats)
        return
    print(
        "| documents | processes | users | words | seconds | CPU s | users/s | words/s | peak memory, all processes |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blogs.jsonl"
        words = Path(folder) / "words"  # so that nothing but the measured work is in the measured process
        words.write_text("\n".join(load_vectors(SOURCE, limit=LIMIT).words), encoding="utf-8")
        if (options.data / ARCHIVE).exists():
            write_blogs(options.data / ARCHIVE, path)
            for processes in options.processes:
                report("blogs, in random order, JSONL", "read", str(path), str(processes), str(words))
        for users in options.users:
            report(f"synthetic, {EACH} of {LENGTH} words each", "make", str(round(users)), "1", str(words))


def report(name: str, *run: str) -> None:
    command = [sys.executable, __file__, "--run", *run]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    used = json.loads(done.stdout)
    users, words, seconds = used["users"], used["words"], used["seconds"]
    print(
        f"| {name} | {run[2]} | {users:,} | {words:,} | {seconds:.1f} | {used['cpu']:.1f} | {users / seconds:,.0f} | "
        f"{words / seconds:,.0f} | {used['peak'] / 2**20:,.0f} MiB |",
        flush=True,
    )


def measure(kind: str, what: str, processes: str, words_file: str) -> dict[str, float]:
    """One walk over all users, from the documents to the last word."""
    vocabulary = Vocabulary(Path(words_file).read_text(encoding="utf-8").split("\n"))
    documents = read_documents(what, user="user") if kind == "read" else made(int(what), vocabulary)
    peak = [0]
    done = threading.Event()
    watch = threading.Thread(target=watched, args=(peak, done))
    watch.start()
    users = words = 0
    before = sum(os.times()[:4])
    start = time.perf_counter()
    with users_of(documents, vocabulary, processes=int(processes)) as people:
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


def watched(peak: list[int], done: threading.Event) -> None:
    """The memory of this process and its children, looked at again and again; what they share counts once (Linux)."""
    own = multiprocessing.current_process().pid
    while not done.wait(0.1) and Path("/proc").exists():
        everybody = [own, *(child.pid for child in multiprocessing.active_children())]
        try:
            tables = [Path(f"/proc/{each}/smaps_rollup").read_text() for each in everybody]
        except OSError:
            continue  # one has just ended
        peak[0] = max(peak[0], 1024 * sum(int(size) for table in tables for size in PROPORTIONAL.findall(table)))


def compare_sorts(names: list[str], repeats: int) -> None:
    """Each in a process of its own, all of them in turn: the sort alone, and all that `users_of` does from a file."""
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words"
        words.write_text("\n".join(load_vectors(SOURCE, limit=LIMIT).words), encoding="utf-8")
        file = Path(folder) / "documents.jsonl"
        write_documents(file, words, *SORTED[0])
        known = [name for name in names if name in FROM_FILE]
        for what, some, shape in (("-", names, SORTED[0]), (str(file), known, SORTED[0]), ("-", names, SORTED[1])):
            documents, users, length = shape
            title = f"{documents:,} documents of {length} words, {users:,} users"
            print(f"\n{title}, {'the sort alone' if what == '-' else 'from a JSONL file'}\n")
            print("| sort | seconds | of ours | CPU s | of ours | peak memory | of ours | order |")
            print("|---|---:|---:|---:|---:|---:|---:|---|")
            arguments = [str(documents), str(users), str(length), what if what == "-" else f"{what}:{words}"]
            found = [{name: run_sort(name, *arguments) for name in some} for _ in range(repeats)]
            middle = {
                name: {key: statistics.median(each[name][key] for each in found) for key in ("seconds", "cpu", "peak")}
                for name in some
            }
            ours = middle.get("ours", middle[some[0]])
            for name, used in middle.items():
                slower, busier, larger = (used[key] / ours[key] for key in ("seconds", "cpu", "peak"))
                orders = {each[name]["digest"] == each.get("ours", each[name])["digest"] for each in found}
                same = "" if name == "no sort" else "as ours" if orders == {True} else "another"
                print(
                    f"| {name} | {used['seconds']:.2f} | {slower:.2f} | {used['cpu']:.2f} | {busier:.2f} | "
                    f"{used['peak'] / 2**20:,.0f} MiB | {larger:.2f} | {same} |",
                    flush=True,
                )
        print(f"\nload {os.getloadavg()[0]:.1f} at the end")


def run_sort(name: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--sort", name, *arguments]
    found: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return found


def measure_sort(name: str, documents: str, users: str, length: str, file: str) -> dict[str, Any]:
    """One walk over all users; the digest is of their texts in the order in which they come."""
    digest = hashlib.blake2b()
    vocabulary = None
    if file != "-":
        path, words = file.split(":")
        vocabulary = Vocabulary(Path(words).read_text(encoding="utf-8").split("\n"))
    with tempfile.TemporaryDirectory() as folder:
        before, start = sum(os.times()[:4]), time.perf_counter()
        if vocabulary is None:
            runs = SORTS[name](folder)
            for block in drawn(int(documents), int(users), int(length)):
                runs.add(*block)
            runs.close_input()
            walk(Users(runs, [None], None), digest)
            runs.close()
        else:
            grouping.SortedRuns = SORTS[name]  # type: ignore[misc]
            with users_of(read_documents(path, user="user"), vocabulary, seed=1, folder=folder) as people:
                walk(people, digest)
        seconds, cpu = time.perf_counter() - start, sum(os.times()[:4]) - before
    # getrusage would begin with the peak of the parent, which has held the vectors
    (peak,) = LARGEST.findall(Path("/proc/self/status").read_text())
    return {"seconds": seconds, "cpu": cpu, "peak": 1024 * int(peak), "digest": digest.hexdigest()}


def walk(people: Users, digest: Any) -> None:
    for person in people:
        for rows, lengths in person.chunks():
            digest.update(lengths)
            digest.update(rows)


def drawn(documents: int, users: int, length: int) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Blocks of documents in random order, as `SortedRuns.add` takes them; of 0 to ``2 length`` words each."""
    generator = np.random.default_rng(4)
    digests = generator.integers(0, 2**64, (users, 2), dtype=np.uint64)
    for start in range(0, documents, BLOCK):
        count = min(BLOCK, documents - start)
        lengths = generator.integers(0, 2 * length + 1, count)
        rows = generator.integers(-1, LIMIT, int(lengths.sum()), dtype=np.int32)
        yield digests[generator.integers(0, users, count)], np.zeros(count, dtype=np.int32), lengths, rows


def write_documents(path: Path, words: Path, documents: int, users: int, length: int) -> None:
    known = np.array(words.read_text(encoding="utf-8").split("\n"), dtype=object)
    with path.open("w", encoding="utf-8") as out:
        generator = np.random.default_rng(5)
        for _ in range(0, documents, BLOCK):
            owners = generator.integers(0, users, BLOCK).tolist()
            for user, text in zip(
                owners, known[generator.integers(0, LIMIT - 1, (BLOCK, length))].tolist(), strict=True
            ):
                out.write(json.dumps({"user": str(user), "text": " ".join(text)}) + "\n")


def write_blogs(archive: Path, path: Path) -> None:
    """The posts in random order, each with the number of its file's author."""
    posts: list[tuple[int, str]] = []
    with tarfile.open(archive) as files:
        for author, member in enumerate(each for each in files if each.name.endswith(".xml")):
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


def made(users: int, vocabulary: Vocabulary) -> Iterator[Document]:
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
