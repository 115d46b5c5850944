"""A killed sweep goes on where it was, rows of two experiments never mix, and summaries are what they say."""

import copy
import json
import os
import subprocess
import sys
import threading
from collections import Counter, OrderedDict
from functools import cached_property, partial, wraps
from pathlib import Path

import numpy as np
import pytest
from papers.fingerprints import fingerprint_of
from papers.sweeps import grid, read_sweep, sweep
from scipy import stats

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from papers.sweeping import dying, killed_once, noisy, stumbling, threads

SETTINGS = grid(epsilon=[1.0, 2.0])


def run(path, function=noisy, **options):
    return sweep(function, **({"settings": SETTINGS, "seeds": range(4), "path": path, "name": "test"} | options))


def numbers(found):
    return [(dict(row.settings), row.seed, dict(row.numbers)) for row in found.rows]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.jsonl"


def test_every_cell_is_measured_once_and_never_again(path):
    seen = []
    result = run(path, progress=seen.append)
    assert numbers(result) == [(setting, seed, noisy(setting, seed)) for setting in SETTINGS for seed in range(4)]
    assert [entry.done for entry in seen] == list(range(9))
    assert seen[0].seconds_left is None
    assert seen[-1].seconds_left == 0
    before = path.read_bytes()
    seen.clear()
    assert numbers(run(path, progress=seen.append)) == numbers(result)
    assert [entry.done for entry in seen] == [8]
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
def test_killed_in_the_middle_it_goes_on_to_the_same_table(path, tmp_path, processes, monkeypatch):
    here = Path(__file__).parent
    environment = {
        "SWEEP_MARKER": str(tmp_path / "marker"),
        "PYTHONPATH": os.pathsep.join([str(here.parent), *sys.path]),
        "PATH": os.environ["PATH"],
    }
    script = [sys.executable, "-m", "papers.sweeping", str(path), str(processes)]
    killed = subprocess.run(script, env=environment, capture_output=True, timeout=1200)
    assert killed.returncode == -9
    there = len(path.read_bytes().splitlines())
    assert 1 <= there < 9
    with path.open("ab") as stream:  # what a kill in the middle of a write leaves
        stream.write(b'{"of": "torn')
    monkeypatch.setenv("SWEEP_MARKER", environment["SWEEP_MARKER"])
    monkeypatch.setenv("SWEEP_PROCESS", "0")
    seen = []
    result = run(path, killed_once, name="killed", progress=seen.append)
    assert seen[0].done == there - 1
    assert numbers(result) == numbers(run(tmp_path / "fresh.jsonl"))
    assert len(path.read_text().splitlines()) == 9


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"name": "other"}, "experiment"),
        ({"constants": {"data": "b"}}, "constants.data"),
        ({"function": stumbling}, "function, code"),
        ({"packages": ["scipy"]}, "software.scipy"),
    ],
)
def test_another_experiment_is_refused(path, changed, named):
    first = {"constants": {"data": "a"}}
    run(path, **first)
    before = path.read_bytes()
    with pytest.raises(RefusedError, match=named):
        run(path, **(first | changed))
    assert path.read_bytes() == before
    if "function" not in changed:
        run(path, **(first | changed), restart=True)
        assert len(path.read_text().splitlines()) == 9


class _Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, settings, seed):
        return {"score": self.factor * seed}

    def method(self, settings, seed):
        return {"score": self.factor * seed}


class _Deep:
    """The factor lies two objects down, in an array."""

    def __init__(self, factor):
        self.inner = _Scaled(np.array([factor]))

    def method(self, settings, seed):
        return {"score": float(self.inner.factor[0] * seed)}


def _times(factor, settings, seed):
    return {"score": factor * seed}


def _closure(factor):
    return lambda settings, seed: {"score": factor * seed}


def _default(factor):
    def run(settings, seed, factor=factor):
        return {"score": factor * seed}

    return run


def _keyword_default(factor):
    def run(settings, seed, *, factor=factor):
        return {"score": factor * seed}

    return run


def _closure_over(make):
    def closed(factor):
        held = make(factor)
        return lambda settings, seed: held(settings, seed)

    return closed


def _array(factor):
    factors = np.array([factor])

    def run(settings, seed, *, factors=factors):
        return {"score": float(factors[0] * seed)}

    return run


def _containers(factor):
    options = {"of": [{"factor": (factor, None)}]}
    return lambda settings, seed: {"score": options["of"][0]["factor"][0] * seed}


def _listed(factor, settings, seed):
    return {"score": factor[0] * seed}


def _wrapped(factor):
    @wraps(_times)
    def run(settings, seed):
        return _times(factor, settings, seed)

    return run


HOLDING = {
    "a callable object": _Scaled,
    "a method": lambda factor: _Scaled(factor).method,
    "a method, deep down": lambda factor: _Deep(factor).method,
    "a partial": lambda factor: partial(_times, factor),
    "a partial of a list": lambda factor: partial(_listed, [factor]),
    "a partial of a method": lambda factor: partial(_Scaled(factor).method),
    "a partial by name": lambda factor: partial(_keyword_default(1.0), factor=factor),
    "a closure": _closure,
    "a default": _default,
    "a keyword default": _keyword_default,
    "a closure over a default": _closure_over(_default),
    "a closure over a closure": _closure_over(_closure),
    "a closure over a partial": _closure_over(lambda factor: partial(_times, factor)),
    "an array": _array,
    "containers": _containers,
    "a wrapper": _wrapped,
}


@pytest.mark.parametrize("make", HOLDING.values(), ids=HOLDING.keys())
def test_what_a_function_holds_decides_about_its_numbers(path, make):
    """The rows of another factor are not taken for its own; the same one goes on."""
    for _ in range(2):
        assert sweep(make(2.0), [{"x": 1}], [3], path=path, name="held").rows[0].numbers == {"score": 6.0}
    with pytest.raises(RefusedError, match=r"holds\."):
        sweep(make(5.0), [{"x": 1}], [3], path=path, name="held")


def test_two_lambdas_of_one_line_are_two_functions(path):
    first, second = (lambda settings, seed: {"score": 1.0}), (lambda settings, seed: {"score": 2.0})
    sweep(first, [{"x": 1}], [3], path=path, name="held")
    with pytest.raises(RefusedError, match="code differ"):
        sweep(second, [{"x": 1}], [3], path=path, name="held")


def test_code_without_a_source_is_compared_as_well(path):
    def made(number):
        names = {}
        exec(f"def run(settings, seed): return {{'score': {number}}}", names)
        return names["run"]

    for _ in range(2):
        sweep(made(1.0), [{"x": 1}], [3], path=path, name="held")
    with pytest.raises(RefusedError, match="code differ"):
        sweep(made(2.0), [{"x": 1}], [3], path=path, name="held")


class _Opened:
    """It holds what has no content, and what changes from call to call."""

    def __init__(self, scale):
        self.scale, self._lock = scale, threading.Lock()

    @cached_property
    def kept(self):
        return object()

    def cell(self, settings, seed):
        assert self.kept
        return {"score": float(self.scale * seed)}


def test_what_cannot_be_compared_is_refused_until_it_is_named(path):
    fields = {"settings": [{"x": 1}], "seeds": [3], "path": path, "name": "held"}
    with pytest.raises(
        ParameterError, match=r"holds 'self._lock', of which a value of type lock cannot be compared .* not_compared="
    ):
        sweep(_Opened(2.0).cell, **fields)
    assert not path.exists()
    for _ in range(2):
        result = sweep(_Opened(2.0).cell, not_compared=["self._lock"], **fields)
    assert result.experiment["not_compared"] == ["self._lock"]
    with pytest.raises(RefusedError, match=r"holds\.self\.scale differ"):
        sweep(_Opened(3.0).cell, not_compared=["self._lock"], **fields)
    with pytest.raises(RefusedError, match="not_compared"):
        sweep(_Opened(2.0).cell, not_compared=["self"], **fields)
    with pytest.raises(ParameterError, match=r"run holds no 'lock'; it holds self\.scale, self\._lock"):
        sweep(_Opened(2.0).cell, not_compared=["lock"], **fields)


@pytest.mark.parametrize(
    "value",
    [
        threading.Lock(),
        (entry for entry in ()),
        sys.stdout,
        np.random.default_rng(1),
        [{"deep": (threading.Lock(),)}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_without_content_are_never_passed_over(value):
    with pytest.raises(ParameterError, match="cannot be compared"):
        fingerprint_of(partial(_times, value))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        (["a", "b"], ["ab"]),
        ([[1], 2], [1, [2]]),
        ((1,), [1]),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1, 3}),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2), np.zeros(2, dtype=np.float32)),
        (np.array(["a", None], dtype=object), np.array(["b", None], dtype=object)),
        (Path("a"), Path("b")),
        (len, sum),
        (int, float),
        (partial(_times, 1), partial(_times, 2)),
        (_Scaled(1), _Scaled(2)),
        (_Scaled(1), _Opened.cell),
        (Counter("a"), Counter("b")),
        (OrderedDict(a=1), {"a": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_different_values_have_different_digests(one, other):
    digests = [fingerprint_of(partial(_times, entry)).holds for entry in (one, other, copy.deepcopy(one))]
    assert digests[0] != digests[1]
    assert digests[0] == digests[2]


def test_values_that_hold_themselves_come_to_an_end():
    held = [1]
    held.append(held)
    assert fingerprint_of(partial(_times, held)) == fingerprint_of(partial(_times, held))


def test_another_version_of_the_software_is_refused(path, monkeypatch):
    run(path)
    monkeypatch.setattr("papers.sweep_file.version", lambda package: "999")
    with pytest.raises(RefusedError, match=r"software\.dptext"):
        run(path)


def test_rows_joined_by_hand_are_found_out(path, tmp_path):
    run(path)
    run(tmp_path / "other.jsonl", constants={"data": "other"}, seeds=[9])
    row = (tmp_path / "other.jsonl").read_text().splitlines()[1]
    with path.open("a") as stream:
        stream.write(row + "\n")
    for use in (run, read_sweep):
        with pytest.raises(DataError, match="line 10 is a row of another experiment"):
            use(path)


@pytest.mark.parametrize("content", [b"dear diary", b"dear diary\n", b"{}\n", b'{"sweep": 1, "digest": "0"}\n'])
def test_a_file_that_is_no_sweep_is_left_alone(path, content):
    path.write_bytes(content)
    for options in ({}, {"restart": True}):
        with pytest.raises(DataError, match="not the head of a sweep"):
            run(path, **options)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "damaged",
    [
        lambda line: line[:-20],
        lambda line: "[" * 5000,
        lambda line: json.dumps({**json.loads(line), "seconds": 10**400}),
    ],
    ids=["cut", "deep", "number"],
)
def test_a_damaged_line_is_named(path, damaged):
    run(path)
    lines = path.read_text().splitlines()
    lines[4] = damaged(lines[4])
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="line 5 is damaged"):
        run(path)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failed_cell_is_named_without_its_message_and_tried_again(path, processes, monkeypatch):
    with pytest.raises(DataError, match=r"1 of 8 cells failed: epsilon=2.0, seed=1 \(KeyError\)") as raised:
        run(path, stumbling, processes=processes)
    assert "somebody" not in str(raised.value) + path.read_text()
    assert raised.value.__context__ is None
    assert len(read_sweep(path).rows) == 7
    with pytest.raises(DataError, match="1 of 8"):
        run(path, stumbling)
    with pytest.raises(KeyError, match="somebody"):
        run(path, stumbling, stop_at_error=True, processes=processes)


def test_a_worker_that_dies_leaves_the_rows(path):
    with pytest.raises(StorageError, match="worker process died"):
        run(path, dying, processes=2)
    assert len(path.read_text().splitlines()) == 1


def test_one_process_writes_at_a_time(path):
    pytest.importorskip("fcntl")

    def again(settings, seed):
        run(path, again)

    with pytest.raises(StorageError, match="another process"):
        run(path, again, stop_at_error=True)


def test_interrupted_it_says_how_far_it_came(path):
    def interrupted(settings, seed):
        if seed == 3:
            raise KeyboardInterrupt
        return {"score": 1.0}

    with pytest.raises(KeyboardInterrupt) as raised:
        run(path, interrupted)
    assert raised.value.__notes__ == ["3 of 8 cells are done: the same call goes on from there"]


@pytest.mark.statistical
def test_summaries_cover_and_pairs_cancel_what_a_seed_decides(path):
    result = run(path, seeds=range(100))
    first, second = result.summary("score")
    assert (first.settings, first.estimate.count, first.estimate.of) == ({"epsilon": 1.0}, 100, "runs")
    assert abs(first.estimate.value - 1.0) < 0.5
    paired = result.difference("score", {"epsilon": 2.0}, {"epsilon": 1.0})
    assert paired.value == pytest.approx(1.0)
    assert paired.high - paired.low < 1e-6 < first.estimate.high - first.estimate.low
    covered = sum(
        entry.estimate.low <= 1.0 <= entry.estimate.high
        for start in range(0, 100, 4)
        for entry in result.__class__(rows=result.rows[start : start + 4], experiment={}).summary("score")
    )
    assert stats.binomtest(covered, 25, 0.95).pvalue > 1e-6
    assert second.estimate.value == pytest.approx(first.estimate.value + 1)
    head, line, one, _ = result.table("score").splitlines()
    assert head == "| epsilon | score | seconds |"
    assert line == "| --- | --- | --- |"
    assert one.startswith("| 1.0 | ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"settings": []}, "settings must hold at least one"),
        ({"seeds": []}, "seeds must hold at least one"),
        ({"seeds": [1, 1]}, "distinct"),
        ({"seeds": [1.5]}, "seeds must be integers"),
        ({"settings": [{"a": 1}, {"b": 1}]}, "same names"),
        ({"settings": [{"a": float("nan")}]}, "'a' must be text, a finite number"),
        ({"settings": [{"a": [1]}]}, "got list"),
        ({"settings": [{1: 1}]}, "names must be text"),
        ({"settings": ["a"]}, "settings must map"),
        ({"constants": {"data": object()}}, "constants: 'data'"),
        ({"processes": 0}, "processes"),
        ({"processes": 2, "function": lambda settings, seed: {}}, "run must be a function of a module"),
        ({"packages": ["no-such-package"]}, "packages"),
    ],
)
def test_arguments_are_named(path, options, says):
    with pytest.raises(ParameterError, match=says):
        run(path, **options)
    assert not path.exists()


@pytest.mark.parametrize(
    "result",
    [{"a": float("nan")}, {"a": float("inf")}, {"a": 10**400}, {"a": "x"}, {"a": True}, {}, None, 0.5, {1: 2.0}],
)
def test_what_is_no_number_is_a_failed_cell(path, result):
    def strange(settings, seed):
        return result

    with pytest.raises(DataError, match=r"8 of 8 cells failed.*ParameterError.* and 3 more"):
        run(path, strange)
    with pytest.raises(ParameterError, match=r"^(run must return|what run returns as 'a' must be a finite number)"):
        run(path, strange, stop_at_error=True)


def test_numpy_numbers_and_changing_names(path, tmp_path):
    result = run(path, lambda settings, seed: {"a": np.float32(0.5)}, settings=[{"k": np.int64(3)}], seeds=np.arange(2))
    assert numbers(result) == [({"k": 3}, seed, {"a": 0.5}) for seed in range(2)]
    with pytest.raises(DataError, match="the same names"):
        run(tmp_path / "names.jsonl", lambda settings, seed: {f"a{seed}": 1.0})


def test_tables_name_what_they_lack(path):
    result = run(path, seeds=[1])
    with pytest.raises(ParameterError, match="seeds must be at least two"):
        result.summary("score")
    with pytest.raises(ParameterError, match="'score', 'twice', got 'nothing'"):
        result.summary("nothing")
    with pytest.raises(ParameterError, match="first must single out one setting, it fits 2"):
        result.difference("score", {}, {"epsilon": 1.0})
    with pytest.raises(ParameterError, match="second must single out one setting, it fits 0"):
        result.difference("score", {"epsilon": 1.0}, {"epsilon": 7.0})
    with pytest.raises(ParameterError, match="two seeds in common"):
        result.difference("score", {"epsilon": 1.0}, {"epsilon": 2.0})
    with pytest.raises(StorageError, match="cannot open"):
        run(path.parent / "missing" / "rows.jsonl")
    with pytest.raises(StorageError, match="cannot read"):
        read_sweep(path.parent / "missing.jsonl")
    with pytest.raises(ParameterError, match="epsilon must be a list"):
        grid(epsilon=1.0)


def test_the_head_says_what_the_rows_are(path):
    run(path, constants={"data": "imdb"})
    head = json.loads(path.read_text().splitlines()[0])
    assert (head["experiment"], head["constants"], head["function"]) == ("test", {"data": "imdb"}, "noisy")
    assert read_sweep(path).experiment["constants"] == {"data": "imdb"}
