"""Break the source in places that matter for privacy or data, and run the tests that should notice.

`python tools/mutations.py [--tests FOLDER] [--workers 2] [--out FILE]`: every line of the output is the number of a
mutation, its file, and "caught" or "missed". A mutation is applied to a copy of `src`; the checkout is not touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_SECONDS = 900  # a mutation that hangs is caught
_LEFT_OUT = "not (slow or spark or browser or papers)"


class Mutation(NamedTuple):
    """A change of one place: file below src/dptext, the text as it is, and what replaces it; folders of tests."""

    file: str
    old: str
    new: str
    tests: str


MUTATIONS = [
    Mutation(**entry) for entry in tomllib.loads((ROOT / "tools/mutations.toml").read_text("utf-8"))["mutation"]
]


def apply(mutation: Mutation, source: Path) -> None:
    """Apply a mutation to a copy of the package; raise ValueError unless its text occurs exactly once."""
    file = source / "dptext" / mutation.file
    text = file.read_text("utf-8")
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.file}: {text.count(mutation.old)} places, expected 1: {mutation.old!r}")
    file.write_text(text.replace(mutation.old, mutation.new), "utf-8")


def run(number: int, mutation: Mutation, tests: Path) -> str:
    """Return a line of the table: the first test that failed, or "missed"."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        apply(mutation, source)
        folders = [str(tests / name) for name in mutation.tests.split() if (tests / name).exists()]
        options = ["-q", "-x", "-p", "no:cacheprovider", "-m", _LEFT_OUT, "--no-header"]
        environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{tests}", "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-m", "pytest", *options, *folders]
        try:
            done = subprocess.run(  # noqa: S603  the list above
                command,
                cwd=tests.parent,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{number}\t{mutation.file}\tcaught\ttimeout"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    result = {0: "missed", 1: "caught"}.get(done.returncode, f"error {done.returncode}")
    return f"{number}\t{mutation.file}\t{result}\t{failed[0].split(' - ')[0] if failed else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, default=ROOT / "tests", help="folder of the tests to run")
    parser.add_argument("--workers", type=int, default=1, help="mutations at the same time")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutations")
    parser.add_argument("--check", action="store_true", help="only check that every place exists once")
    arguments = parser.parse_args()
    numbers = arguments.only or range(1, len(MUTATIONS) + 1)
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "dptext" / MUTATIONS[number - 1].file
            file.parent.mkdir(parents=True)
            shutil.copy(ROOT / "src" / "dptext" / MUTATIONS[number - 1].file, file)
            apply(MUTATIONS[number - 1], Path(folder))
    if arguments.check:
        return
    with ThreadPoolExecutor(arguments.workers) as pool:
        for line in pool.map(lambda number: run(number, MUTATIONS[number - 1], arguments.tests.resolve()), numbers):
            print(line, flush=True)


if __name__ == "__main__":
    main()
