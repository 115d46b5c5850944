"""An interrupted sweep resumes, and rows of two experiments never mix."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from papers.sweeps import grid, read_sweep, sweep

from dptext.errors import ParameterError, RefusedError

SETTINGS = grid(epsilon=[1.0, 2.0])
KILLED = """
import os, signal, sys
from papers.sweeps import grid, sweep

def measure(settings, seed):
    if seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"score": 1.0}

sweep(measure, grid(epsilon=[1.0, 2.0]), range(4), path=__import__("pathlib").Path(sys.argv[1]), name="test")
"""


def noisy(settings, seed):
    return {"score": settings["epsilon"] + np.random.default_rng(seed).normal(), "twice": 2.0 * seed}


def failing(settings, seed):
    if settings["epsilon"] == 2.0 and seed == 1:
        raise KeyError("a word of a private text")
    return {"score": settings["epsilon"]}


def run(path, function=noisy, **options):
    return sweep(function, **({"settings": SETTINGS, "seeds": range(4), "path": path, "name": "test"} | options))


def numbers(result):
    return [(dict(row.settings), row.seed, dict(row.numbers)) for row in result.rows]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


def test_every_cell_is_measured_exactly_once(path, capsys):
    result = run(path)
    assert numbers(result) == [(setting, seed, noisy(setting, seed)) for setting in SETTINGS for seed in range(4)]
    assert len(capsys.readouterr().err.splitlines()) == 8
    before = path.read_bytes()
    assert numbers(run(path)) == numbers(result)
    assert (capsys.readouterr().err, path.read_bytes()) == ("", before)
    more = run(path, settings=grid(epsilon=[2.0, 3.0]), seeds=[3, 5])
    assert len(path.read_text().splitlines()) == 1 + 8 + 3
    assert numbers(more) == [({"epsilon": e}, seed, noisy({"epsilon": e}, seed)) for e in (2.0, 3.0) for seed in (3, 5)]
    assert len(read_sweep(path).rows) == 11


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_killed_sweep_keeps_finished_rows_and_an_incomplete_line_is_cut_off(path, tmp_path):
    (tmp_path / "killed.py").write_text(KILLED)
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    script = [sys.executable, str(tmp_path / "killed.py"), str(path)]
    assert subprocess.run(script, env=environment, capture_output=True, timeout=600).returncode == -9
    assert len(read_sweep(path).rows) == 2
    path.unlink()
    run(path)
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]) + b'{"settings": "torn')
    assert numbers(run(path)) == numbers(run(tmp_path / "fresh.jsonl"))
    assert len(path.read_text().splitlines()) == 9


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"name": "other"}, "experiment"),
        ({"constants": {"data": "b"}}, "constants"),
        ({"function": failing}, "function, code"),
    ],
)
def test_the_file_of_another_experiment_is_refused(path, changed, named):
    first = {"constants": {"data": "a"}}
    run(path, **first)
    before = path.read_bytes()
    with pytest.raises(RefusedError, match=named):
        run(path, **(first | changed))
    assert path.read_bytes() == before


def test_partials_methods_and_versions_are_compared(path, monkeypatch):
    class Bench:
        def cell(self, settings, seed):
            return {"score": 1.0}

    run(path, partial(Bench().cell))
    assert numbers(run(path, Bench().cell)) == numbers(run(path, partial(Bench().cell)))
    with pytest.raises(RefusedError, match="code differ"):
        run(path, noisy)
    monkeypatch.setattr("papers.sweeps.version", lambda package: "999")
    with pytest.raises(RefusedError, match="software differ"):
        run(path, Bench().cell)


def test_an_error_ends_the_sweep_and_keeps_the_rows(path):
    with pytest.raises(KeyError):
        run(path, failing)
    assert "private text" not in path.read_text()
    assert len(path.read_text().splitlines()) == 6


@pytest.mark.parametrize("result", [{"a": float("nan")}, {"a": 10**400}, {"a": "x"}, {"a": True}, {}, None])
def test_a_cell_must_return_numbers(path, result):
    with pytest.raises(ParameterError, match=r"^(measure must return|number 'a' must be a finite number)"):
        run(path, lambda settings, seed: result)
