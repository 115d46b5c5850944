"""Fail, kill and interrupt runs at every operation on their files: `python -m faults [--only TEXT] [--sample N]`.

Exit code 1 where something is left wrong.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import typer.main

from faults.injection import Injection, compiled, compiler
from faults.running import adopt_orphans
from faults.scenario import Point, Scenario, Trial, imports_of

_FOLDER = "DPTEXT_FAULTS_FOLDER"


def main() -> int:
    """Print all faults; return 0 if there are none."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--only", default="", help="the scenarios whose name holds this")
    parser.add_argument("--at", default="", metavar="HOW:N", help="one point alone, as in FAIL:17; or FAIL:TEXT")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="about N points of each scenario")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="of a sample: skip N points")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    parser.add_argument("--broken", action="store_true", help="break the runs in each known way, to be found")
    arguments = parser.parse_args()
    if _FOLDER not in os.environ:
        return _again_with_library()
    folder = Path(os.environ[_FOLDER])
    from faults.scenarios import SCENARIOS, write_vectors

    write_vectors(folder / "vectors.txt")
    if arguments.broken:
        return _run_broken(folder, arguments)
    scenarios = [scenario for scenario in SCENARIOS if arguments.only in scenario.name]
    start = time.perf_counter()
    wrong = count = 0
    points: Counter[str] = Counter()
    for run in _in_processes(folder, scenarios, arguments):
        count += 1
        points[run["scenario"]] += 1
        if run["problems"]:
            wrong += 1
            place = f"{run['scenario']} | {run['fault']}:{run['number']} {run['operation']}"
            print(f"{place} | {'; '.join(run['problems'])}", flush=True)
    for name, number in points.items():
        print(f"{name}: {number} points")
    print(f"{count} points, {wrong} of them wrong, {time.perf_counter() - start:.0f} s")
    return 1 if wrong or not count else 0


def _run_broken(folder: Path, arguments: argparse.Namespace) -> int:
    """Return 0 if faults are found in each known-broken run; run them one after the other in separate processes."""
    from faults.broken import BROKEN
    from faults.scenarios import SCENARIOS

    _warm(
        folder, [scenario for scenario in SCENARIOS if scenario.name in {broken.scenario for broken in BROKEN.values()}]
    )
    missed = 0
    for name, broken in BROKEN.items():
        scenarios = [scenario for scenario in SCENARIOS if scenario.name == broken.scenario]
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 2
            with suppress(BaseException):
                broken.apply()
                arguments.at = broken.point
                result = list(_in_processes(folder, scenarios, arguments, warm=False))
                wrong = sum(bool(entry["problems"]) for entry in result)
                print(f"{name}: {len(result)} points, {wrong} of them wrong", flush=True)
                code = 0 if wrong else 1
            os._exit(code)
        missed += os.waitpid(child, 0)[1] != 0
    return 1 if missed else 0


def _again_with_library() -> int:
    """This program again, with the library between it and the system, in a folder that goes at the end."""
    memory = Path("/dev/shm")
    around = str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="dptext-faults-", dir=around) as folder:
        if compiler() is None:
            print("there is no C compiler for Linux, which this tool needs")
            return 0
        few = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        environment = os.environ | few | {_FOLDER: folder, "LD_PRELOAD": str(compiled(Path(folder)))}
        return os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-m", "faults", *sys.argv[1:]], environment)


def _place(folder: Path, job: int) -> Path:
    place = folder / f"job{job}"
    place.mkdir(exist_ok=True)
    return place


def _in_processes(
    folder: Path, scenarios: Sequence[Scenario], arguments: argparse.Namespace, *, warm: bool = True
) -> Iterator[Any]:
    """Return the result of each point, from processes that share the points."""
    if warm:
        _warm(folder, scenarios)
    read, write = os.pipe()
    children = []
    for job in range(arguments.jobs):
        child = os.fork()
        if child == 0:
            os.close(read)
            code = 1
            try:
                with os.fdopen(write, "w") as out:
                    _work(folder, scenarios, job, arguments, out)
                code = 0
            except BaseException:  # noqa: BLE001  shown, of any kind
                traceback.print_exc()
            os._exit(code)
        children.append(child)
    os.close(write)
    with os.fdopen(read) as lines:
        yield from map(json.loads, lines)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        raise RuntimeError("a process of this tool ended early")


def _warm(folder: Path, scenarios: Sequence[Scenario]) -> None:
    """Import here what the runs import, once for all of them."""
    import_module("dptext.cli")
    injection = Injection()
    for scenario in scenarios:
        for module in imports_of(scenario, _place(folder, 0), injection):
            if module not in sys.modules:
                with suppress(ImportError):
                    import_module(module)
    # the commands are taken together from their signatures: half of the time of a short run
    command = typer.main.get_command(import_module("dptext.cli.app").program())
    typer.main.get_command = lambda _app: command
    root = command.make_context("dptext", [], resilient_parsing=True)
    for scenario in scenarios:  # and what their options take is worked out when they are first read
        name, *options = scenario.arguments
        with suppress(Exception):
            command.commands[name].make_context(name, options, parent=root)
    gc.collect()
    gc.freeze()  # untouched memory pages are not copied for each run


def _work(folder: Path, scenarios: Sequence[Scenario], job: int, arguments: argparse.Namespace, out: IO[str]) -> None:
    """Print every n-th point and its faults as lines of JSON."""
    injection = Injection()
    adopt_orphans()
    for scenario in scenarios:
        trial = Trial(scenario, _place(folder, job), injection)
        for point in _chosen(list(trial.points()), arguments)[job :: arguments.jobs]:
            print(json.dumps(asdict(point) | {"problems": trial.problems(point)}), file=out, flush=True)


def _chosen(points: list[Point], arguments: argparse.Namespace) -> list[Point]:
    if arguments.at:
        settings, _, label = arguments.at.partition(":")
        return [
            point
            for point in points
            if point.fault == settings and (label in point.operation or label == str(point.number))
        ]
    step = max(1, len(points) // arguments.sample) if arguments.sample else 1
    return points[(step // 2 + arguments.start) % step :: step]


if __name__ == "__main__":
    sys.exit(main())
