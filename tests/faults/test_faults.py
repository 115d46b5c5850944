"""A slice of the tool `python -m faults`; all of it is `make faults`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from faults.injection import compiler
from faults.twins import TWINS

TESTS = Path(__file__).parents[1]


def faults(*arguments, **environment):
    command = [sys.executable, "-m", "faults", *arguments]
    return subprocess.run(
        command, cwd=TESTS, env=os.environ | environment, capture_output=True, text=True, timeout=900, check=False
    )


def of_them_wrong(done):
    return int(re.search(r"^\d+ points, (\d+) of them wrong", done.stdout, re.MULTILINE)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked")
@pytest.mark.parametrize("command", ["privatize", "bank", "encode", "embed", "synthesize"])
def test_a_run_that_is_stopped_anywhere_leaves_nothing_wrong(command):
    done = faults("--only", command, "--sample", "4", "--jobs", "1")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.skipif(compiler() is None, reason="without a compiler, few of the operations are seen")
@pytest.mark.parametrize("twin", TWINS)
def test_broken_runs_are_found(twin):
    assert of_them_wrong(faults("--twin", twin, "--jobs", "1")) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked")
def test_without_a_compiler_what_python_announces_is_tried(tmp_path):
    done = faults("--only", "privatize jsonl", "--sample", "4", "--jobs", "1", PATH=str(tmp_path))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "no C compiler" in done.stdout
