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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import typer.main

from faults.injection import Injection, compiled
from faults.running import adopt_orphans
from faults.scenario import Point, Scenario, Trial, imports_of

_FOLDER = "DPTEXT_FAULTS_FOLDER"


def main() -> int:
    """Print what is wrong; 0 when nothing is."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--only", default="", help="the scenarios whose name holds this")
    parser.add_argument("--at", default="", metavar="HOW:N", help="one point alone, as in FAIL:17; or FAIL:TEXT")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="about N points of each scenario")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="of a sample: so many points later")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    parser.add_argument("--twin", default="", metavar="NAME", help="break the runs in a known way, to be found")
    parser.add_argument("--twins", action="store_true", help="break them in each known way, and say which was found")
    parser.add_argument("--list", action="store_true", help="print the operations of an undisturbed run")
    arguments = parser.parse_args()
    if _FOLDER not in os.environ:
        return _again_with_library()
    folder = Path(os.environ[_FOLDER])
    from faults.scenarios import SCENARIOS, write_vectors
    from faults.twins import TWINS

    write_vectors(folder / "vectors.txt")
    if arguments.twins:
        return _all_twins(folder, arguments)
    scenarios = [each for each in SCENARIOS if arguments.only in each.name]
    if arguments.twin:
        twin = TWINS[arguments.twin]
        scenarios, arguments.at = [each for each in SCENARIOS if each.name == twin.scenario], twin.at
        twin.apply()
    if arguments.list:
        adopt_orphans()
        trial = Trial(scenarios[0], _place(folder, 0), Injection())
        for each in trial.operations:
            print(each.number, each.kind, each.what)
        return 0
    start = time.perf_counter()
    wrong = count = 0
    scenes: dict[str, list[float]] = {}
    for found in _in_processes(folder, scenarios, arguments):
        count += 1
        scene = scenes.setdefault(found["scenario"], [0, 0, 0.0])
        for place, value in enumerate((1, bool(found["problems"]), found["seconds"])):
            scene[place] += value
        if found["problems"]:
            wrong += 1
            print(
                f"{found['scenario']} | {found['how']}:{found['at']} {found['what']} | {'; '.join(found['problems'])}"
            )
            sys.stdout.flush()
    for name, (points, faulty, seconds) in scenes.items():
        print(f"{name}: {points} points, {faulty} of them wrong, {seconds:.1f} s")
    print(f"{count} points, {wrong} of them wrong, {time.perf_counter() - start:.0f} s")
    return 1 if wrong or not count else 0


def _all_twins(folder: Path, arguments: argparse.Namespace) -> int:
    """How many points each twin has wrong, one after the other in processes of their own; 0 when each has some."""
    from faults.scenarios import SCENARIOS
    from faults.twins import TWINS

    _warm(folder, [each for each in SCENARIOS if each.name in {twin.scenario for twin in TWINS.values()}])
    missed = 0
    for name, twin in TWINS.items():
        scenarios = [each for each in SCENARIOS if each.name == twin.scenario]
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 2
            with suppress(BaseException):
                twin.apply()
                arguments.at = twin.at
                found = list(_in_processes(folder, scenarios, arguments, warm=False))
                wrong = sum(bool(each["problems"]) for each in found)
                print(f"{name}: {len(found)} points, {wrong} of them wrong", flush=True)
                code = 0 if wrong else 1
            os._exit(code)
        missed += os.waitpid(child, 0)[1] != 0
    return 1 if missed else 0


def _again_with_library() -> int:
    """This program again, with the library between it and the system, in a folder that goes at the end."""
    memory = Path("/dev/shm")
    around = str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="dptext-faults-", dir=around) as folder:
        library = compiled(Path(folder))
        if library is None:
            print("no C compiler for Linux: only what Python itself announces is tried")
        few = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        environment = os.environ | few | {_FOLDER: folder} | ({} if library is None else {"LD_PRELOAD": str(library)})
        return os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-m", "faults", *sys.argv[1:]], environment)


def _place(folder: Path, job: int) -> Path:
    place = folder / f"job{job}"
    place.mkdir(exist_ok=True)
    return place


def _in_processes(
    folder: Path, scenarios: Sequence[Scenario], arguments: argparse.Namespace, *, warm: bool = True
) -> Iterator[Any]:
    """What each point gives, from processes that share the points."""
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
    for each in scenarios:
        for module in imports_of(each, _place(folder, 0), injection):
            if module not in sys.modules:
                with suppress(ImportError):
                    import_module(module)
    # the commands are taken together from their signatures: half of the time of a short run
    command = typer.main.get_command(import_module("dptext.cli.app").program())
    typer.main.get_command = lambda _app: command
    root = command.make_context("dptext", [], resilient_parsing=True)
    for each in scenarios:  # and what their options take is worked out when they are first read
        name, *options = each.arguments
        with suppress(Exception):
            command.commands[name].make_context(name, options, parent=root)
    gc.collect()
    gc.freeze()  # pages that nobody touches are not copied for each run


def _work(folder: Path, scenarios: Sequence[Scenario], job: int, arguments: argparse.Namespace, out: IO[str]) -> None:
    """Every so many-th point, and what is wrong with it, as lines of JSON."""
    injection = Injection()
    adopt_orphans()
    for scenario in scenarios:
        trial = Trial(scenario, _place(folder, job), injection)
        for point in _chosen(list(trial.points()), arguments)[job :: arguments.jobs]:
            start = time.perf_counter()
            problems = trial.problems(point)
            found = asdict(point) | {"problems": problems, "seconds": time.perf_counter() - start}
            out.write(json.dumps(found) + "\n")
            out.flush()


def _chosen(points: list[Point], arguments: argparse.Namespace) -> list[Point]:
    if arguments.at:
        how, _, what = arguments.at.partition(":")
        return [each for each in points if each.how == how and (what in each.what or what == str(each.at))]
    step = max(1, len(points) // arguments.sample) if arguments.sample else 1
    return points[(step // 2 + arguments.start) % step :: step]


if __name__ == "__main__":
    sys.exit(main())
