"""A sample of the tool `python -m faults`, which `make faults` runs completely."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from faults.broken import BROKEN
from faults.injection import compiler
from faults.scenarios import SCENARIOS

TESTS = Path(__file__).parents[1]


def faults(*arguments, **environment):
    command = [sys.executable, "-m", "faults", *arguments]
    return subprocess.run(
        command, cwd=TESTS, env=os.environ | environment, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler for Linux")
def test_a_run_that_is_stopped_anywhere_leaves_nothing_wrong():
    """One or two points of each scenario; `make faults` has all of them."""
    done = faults("--sample", "1", "--jobs", "1")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert set(re.findall(r"^(.*): \d+ points", done.stdout, re.MULTILINE)) == {scenario.name for scenario in SCENARIOS}


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler for Linux")
def test_broken_runs_are_found():
    done = faults("--broken", "--jobs", "1")
    wrong = dict(re.findall(r"^(.*): \d+ points, (\d+) of them wrong", done.stdout, re.MULTILINE))
    assert list(wrong) == list(BROKEN), done.stdout[-4000:] + done.stderr[-2000:]
    assert all(map(int, wrong.values())), wrong
