"""An interrupted sweep resumes, and rows of two experiments never mix."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from papers.sweeps import grid, read_sweep, sweep

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from papers.sweeping import dying, failing, killed_once, noisy, threads

SETTINGS = grid(epsilon=[1.0, 2.0])


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
    assert len(capsys.readouterr().out.splitlines()) == 8
    before = path.read_bytes()
    assert numbers(run(path)) == numbers(result)
    assert capsys.readouterr().out == ""
    assert path.read_bytes() == before
    more = run(path, settings=grid(epsilon=[2.0, 3.0]), seeds=[3, 5])
    assert len(path.read_text().splitlines()) == 1 + 8 + 3
    assert numbers(more) == [({"epsilon": e}, seed, noisy({"epsilon": e}, seed)) for e in (2.0, 3.0) for seed in (3, 5)]
    assert len(read_sweep(path).rows) == 11


@pytest.mark.slow
def test_processes_change_nothing_and_have_one_thread_each(path, tmp_path):
    assert numbers(run(tmp_path / "two.jsonl", processes=2)) == numbers(run(path))
    for processes in (1, 2):
        result = run(tmp_path / f"threads{processes}.jsonl", threads, seeds=[1], processes=processes)
        assert [row.numbers["threads"] for row in result.rows] == [1, 1]


@pytest.mark.skipif(not hasattr(os, "kill") or sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_sweep_resumes_to_the_same_rows(path, tmp_path, processes, monkeypatch):
    here = Path(__file__).parent
    environment = {
        "SWEEP_MARKER": str(tmp_path / "marker"),
        "PYTHONPATH": os.pathsep.join([str(here.parent), *sys.path]),
        "PATH": os.environ["PATH"],
    }
    script = [sys.executable, "-m", "papers.sweeping", str(path), str(processes)]
    killed = subprocess.run(script, env=environment, capture_output=True, timeout=1200)
    assert killed.returncode == -9
    assert 1 <= len(path.read_bytes().splitlines()) < 9
    with path.open("ab") as stream:  # an incomplete line, as a kill during a write leaves it
        stream.write(b'{"of": "torn')
    monkeypatch.setenv("SWEEP_MARKER", environment["SWEEP_MARKER"])
    monkeypatch.setenv("SWEEP_PROCESS", "0")
    result = run(path, killed_once, name="killed")
    assert numbers(result) == numbers(run(tmp_path / "fresh.jsonl"))
    assert len(path.read_text().splitlines()) == 9


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"name": "other"}, "experiment"),
        ({"constants": {"data": "b"}}, "constants.data"),
        ({"function": failing}, "function, code"),
        ({"packages": ["scipy"]}, "software.scipy"),
    ],
)
def test_the_file_of_another_experiment_is_refused(path, changed, named):
    first = {"constants": {"data": "a"}}
    run(path, **first)
    before = path.read_bytes()
    with pytest.raises(RefusedError, match=named):
        run(path, **(first | changed))
    assert path.read_bytes() == before


def test_partials_and_methods_are_compared_by_their_code(path):
    class Bench:
        def cell(self, settings, seed):
            return {"score": 1.0}

    run(path, partial(Bench().cell))
    assert numbers(run(path, Bench().cell)) == numbers(run(path, partial(Bench().cell)))
    with pytest.raises(RefusedError, match="code differ"):
        run(path, noisy)


def test_another_version_of_the_software_is_refused(path, monkeypatch):
    run(path)
    monkeypatch.setattr("papers.sweeps.version", lambda package: "999")
    with pytest.raises(RefusedError, match=r"software\.dptext"):
        run(path)


def test_a_row_of_another_experiment_is_detected(path, tmp_path):
    run(path)
    run(tmp_path / "other.jsonl", constants={"data": "other"}, seeds=[9])
    row = (tmp_path / "other.jsonl").read_text().splitlines()[1]
    with path.open("a") as stream:
        stream.write(row + "\n")
    for use in (run, read_sweep):
        with pytest.raises(DataError, match="line 10 is a row of another experiment"):
            use(path)


@pytest.mark.parametrize("content", [b"dear diary", b"dear diary\n", b"{}\n", b'{"sweep": 1, "digest": "0"}\n'])
def test_any_other_file_stays_unchanged(path, content):
    path.write_bytes(content)
    with pytest.raises(DataError, match="not the header of a sweep"):
        run(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[:-20],
        lambda line: "[" * 5000,
        lambda line: json.dumps({**json.loads(line), "seconds": 10**400}),
    ],
    ids=["cut", "deep", "number"],
)
def test_a_damaged_line_is_named(path, damage):
    run(path)
    lines = path.read_text().splitlines()
    lines[4] = damage(lines[4])
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="line 5 is damaged"):
        run(path)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_ends_the_sweep_and_keeps_the_rows(path, processes):
    with pytest.raises(KeyError):
        run(path, failing, processes=processes)
    assert "private text" not in path.read_text()
    assert 1 <= len(path.read_text().splitlines()) < 9


def test_a_worker_that_dies_keeps_the_rows(path):
    with pytest.raises(StorageError, match="worker process died"):
        run(path, dying, processes=2)
    assert len(path.read_text().splitlines()) == 1


def test_one_process_writes_at_a_time(path):
    pytest.importorskip("fcntl")

    def again(settings, seed):
        run(path, again)

    with pytest.raises(StorageError, match="another process"):
        run(path, again)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": []}, "settings and seeds must be distinct, not empty"),
        ({"seeds": []}, "settings and seeds must be distinct, not empty"),
        ({"seeds": [1, 1]}, "distinct"),
        ({"seeds": [1.5]}, "seeds must be integers"),
        ({"settings": [{"a": 1}, {"b": 1}]}, "same names"),
        ({"settings": [{"a": float("nan")}]}, "'a' must be text, a finite number"),
        ({"constants": {"data": object()}}, "constants: 'data'"),
        ({"packages": ["no-such-package"]}, "packages"),
    ],
)
def test_bad_arguments_are_named(path, options, message):
    with pytest.raises(ParameterError, match=message):
        run(path, **options)
    assert not path.exists()


@pytest.mark.parametrize("result", [{"a": float("nan")}, {"a": 10**400}, {"a": "x"}, {"a": True}, {}, None])
def test_a_cell_must_return_numbers(path, result):
    with pytest.raises(ParameterError, match=r"^(measure must return|number 'a' must be a finite number)"):
        run(path, lambda settings, seed: result)


def test_numpy_numbers_are_stored_as_plain_ones(path):
    result = run(path, lambda settings, seed: {"a": np.float32(0.5)}, settings=[{"k": np.int64(3)}], seeds=np.arange(2))
    assert numbers(result) == [({"k": 3}, seed, {"a": 0.5}) for seed in range(2)]


def test_missing_files_are_named(path):
    with pytest.raises(StorageError, match="cannot open"):
        run(path.parent / "missing" / "rows.jsonl")
    with pytest.raises(StorageError, match="cannot read"):
        read_sweep(path.parent / "missing.jsonl")


def test_the_header_describes_the_rows(path):
    run(path, constants={"data": "imdb"})
    head = json.loads(path.read_text().splitlines()[0])
    assert (head["experiment"], head["constants"], head["function"]) == ("test", {"data": "imdb"}, "noisy")
    assert read_sweep(path).experiment["constants"] == {"data": "imdb"}
