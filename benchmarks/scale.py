"""A million short documents on two local cores: Spark and the processes of one machine: see benchmarks/README.md.

Command: ``python benchmarks/scale.py [--documents 1e5 1e6] [--users 1e5 1e6] [--only NAME ...]``; it needs Java.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from zipf import texts

import dptext

SOURCE, LIMIT, EPSILON, LENGTH, FILES, CORES = "glove-6b-50d", 50_000, 5.0, 12, 16, 2
TICKS = os.sysconf("SC_CLK_TCK")
FIELDS = re.compile(r"^(Pss|Private_Clean|Private_Dirty): *([0-9]+) kB", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare Spark with one machine.")
    parser.add_argument("--documents", type=float, nargs="*", default=[1e5, 1e6])
    parser.add_argument("--users", type=float, nargs="*", default=[1e5, 1e6])
    parser.add_argument("--only", nargs="*", default=[*WORDS, *USERS])
    parser.add_argument("--folder", type=Path, help="keeps inputs for another run")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.run:
        name, source, work = options.run
        print(json.dumps(measure({**WORDS, **USERS}[name], Path(source), Path(work))))
        return
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f} before the run")
    print(
        "| what | rows | seconds | start-up s | CPU s | CPU ms a row | worker, private MiB | worker, all MiB | load |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        work = options.folder or Path(folder)
        work.mkdir(exist_ok=True)
        for names, sizes, make in ((WORDS, options.documents, write_texts), (USERS, options.users, write_users)):
            for rows in map(round, sizes):
                target = [name for name in names if name in options.only]
                if target and not (source := work / f"{make.__name__}-{rows}").exists():
                    make(source, rows)
                for name in target:
                    report(name, rows, source, work)


def report(name: str, rows: int, source: Path, work: Path) -> None:
    command = [sys.executable, "-W", "ignore", __file__, "--run", name, str(source), str(work)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    used = json.loads(done.stdout.splitlines()[-1])
    print(
        f"| {name} | {rows:,} | {used['seconds']:.1f} | {used['startup']:.1f} | {used['cpu']:.1f} | "
        f"{1000 * used['cpu'] / rows:.3f} | {used['private'] / 1024:,.0f} | {used['pss'] / 1024:,.0f} | "
        f"{os.getloadavg()[0]:.1f} |",
        flush=True,
    )


def measure(
    run: Callable[[Path, Path], tuple[float, Callable[[], object]]], source: Path, work: Path
) -> dict[str, float]:
    """Time, CPU of all processes, and memory of the largest worker, while the work is done; start-up apart."""
    watch = Watch()
    start = time.perf_counter()
    act = run(source, work)
    started = time.perf_counter()
    before = cpu_of(family())
    watch.start()
    act()
    seconds = time.perf_counter() - started
    watch.stop()
    cpu = watch.cpu() - before
    return {"seconds": seconds, "startup": started - start, "cpu": cpu, "private": watch.private, "pss": watch.pss}


class Watch(threading.Thread):
    """Sample the memory of child processes every half second (Linux)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.private = self.pss = 0
        self._ended = threading.Event()
        self._cpu: dict[int, float] = {}

    def run(self) -> None:
        while not self._ended.wait(0.5):
            self._look()

    def _look(self) -> None:
        for entry in family():
            try:
                self._cpu[entry] = cpu_of([entry])
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
                if entry == os.getpid() or b"java" in command.split(b"\0")[0]:
                    continue
                result = dict(FIELDS.findall(Path(f"/proc/{entry}/smaps_rollup").read_text()))
            except OSError:
                continue  # it has just ended
            private = int(result.get("Private_Clean", 0)) + int(result.get("Private_Dirty", 0))
            self.private, self.pss = max(self.private, private), max(self.pss, int(result.get("Pss", 0)))

    def stop(self) -> None:
        self._ended.set()
        self.join()
        self._look()

    def cpu(self) -> float:
        return sum(self._cpu.values())


def family() -> list[int]:
    """This process and all below it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(path.name))
    result = [os.getpid()]
    for entry in result:
        result += children.get(entry, [])
    return result


def cpu_of(processes: list[int]) -> float:
    total = 0.0
    for process in processes:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


# -- programs ------------------------------------------------------------------------------------------------


def mechanism() -> dptext.TEM:
    return dptext.TEM(dptext.load_vectors(SOURCE, limit=LIMIT), epsilon=EPSILON)


def plain(source: Path, work: Path) -> Callable[[], object]:
    from dptext.release.privatize import privatize_file

    output = mechanism()
    files = sorted(source.glob("*.parquet"))
    out = work / "plain.parquet"
    return lambda: privatize_file(dptext.TextFiles(files, keep=["n"]), out, output, processes=CORES, force=True)


def spark_session() -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "OFF").config("spark.sql.shuffle.partitions", "4")
    session = builder.config("spark.driver.memory", "2g").getOrCreate()
    session.range(CORES).repartition(CORES).mapInArrow(warm, "id long").collect()  # workers are there
    return session


def warm(batches: Any) -> Any:
    import dptext.spark.tasks  # noqa: F401

    yield from batches


def on_spark(mode: str) -> Callable[[Path, Path], Callable[[], object]]:
    def run(source: Path, work: Path) -> Callable[[], object]:
        import dptext.spark.frames

        output, spark = mechanism(), spark_session()
        frame = spark.read.parquet(str(source))
        out = str(work / f"{mode}.parquet")
        if mode == "scan":
            return lambda: dptext.spark.frames.privatize(frame, output, keep=["n"], scan=True).write(out, force=True)
        return lambda: dptext.spark.frames.privatize(frame, output, keep=["n"]).write(out, force=True)

    return run


def plain_users(source: Path, work: Path) -> Callable[[], object]:  # noqa: ARG001  the shape of a run
    from dptext.io.documents import read_documents

    model = dptext.Cooccurrence(dptext.load_vectors(SOURCE, limit=20_000), epsilon=8.0)
    return lambda: model.fit(read_documents(sorted(source.glob("*.parquet")), user="user"))


def spark_users(source: Path, work: Path) -> Callable[[], object]:  # noqa: ARG001
    import dptext.spark.frames

    model, spark = dptext.Cooccurrence(dptext.load_vectors(SOURCE, limit=20_000), epsilon=8.0), spark_session()
    frame = spark.read.parquet(str(source))
    return lambda: dptext.spark.frames.fit(model, frame)


def description_plan() -> tuple[dptext.Synthesizer, Any]:
    """Without labels, 300 directions of the words of 20,000 public texts."""
    known = dptext.load_vectors(SOURCE, limit=LIMIT).words[:-1]
    synthesizer = dptext.Synthesizer(epsilon=1.0, features="words", cache=False)
    return synthesizer, synthesizer.plan(
        [text for _, text in zip(range(20_000), texts(known, 20_000, LENGTH), strict=False)]
    )


def plain_description(source: Path, work: Path) -> Callable[[], object]:  # noqa: ARG001
    synthesizer, plan = description_plan()
    files = sorted(source.glob("*.parquet"))
    return lambda: synthesizer.fit(dptext.read_documents(files, user="user"), public=plan)


def spark_description(source: Path, work: Path) -> Callable[[], object]:  # noqa: ARG001
    import dptext.spark.frames

    (synthesizer, plan), spark = description_plan(), spark_session()
    frame = spark.read.parquet(str(source))
    return lambda: dptext.spark.frames.fit_distribution(frame, synthesizer, public=plan)


WORDS = {
    "processes": plain,
    "Spark, scan": on_spark("scan"),
    "Spark, no id": on_spark("label"),
}
USERS = {
    "users, processes": plain_users,
    "users, Spark": spark_users,
    "description, one process": plain_description,
    "description, Spark": spark_description,
}


# -- data ------------------------------------------------------------------------------------------


def write_texts(folder: Path, rows: int) -> None:
    """Documents of `LENGTH` words with a number each, in `FILES` files."""
    write(folder, rows, lambda first, some: {"n": range(first, first + len(some))})


def write_users(folder: Path, rows: int) -> None:
    """The same, three a user, in random order."""
    order = np.random.default_rng(3).permutation(rows) // 3
    write(folder, rows, lambda first, some: {"user": order[first : first + len(some)]})


def write(folder: Path, rows: int, columns: Callable[[int, list[str]], dict[str, Any]]) -> None:
    folder.mkdir()
    known = dptext.load_vectors(SOURCE, limit=LIMIT).words[:-1]
    output = texts(known, rows, LENGTH)
    entry, first = -(-rows // FILES), 0
    for number in range(FILES):
        some = [text for _, text in zip(range(min(entry, rows - first)), output, strict=False)]
        pyarrow.parquet.write_table(pa.table({"text": some, **columns(first, some)}), folder / f"{number:02}.parquet")
        first += len(some)


if __name__ == "__main__":
    main()
