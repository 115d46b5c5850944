"""Every example runs, where its package is installed, and says what it should."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = {  # script: the package it is about, a line that it prints
    "hugging_face.py": ("datasets", "the column 'stars', as it was"),
    "scikit_learn.py": ("sklearn", "10 per unit of summed euclidean distance"),
}


def test_no_example_is_left_out():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_example_runs(script, tmp_path):
    package, line = SCRIPTS[script]
    pytest.importorskip(package)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert line in done.stdout
