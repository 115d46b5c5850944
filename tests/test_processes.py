"""Work in several processes and threads: in order, with errors as they are, on arrays that are shared."""

import os
import tempfile

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.processes import load_shared, map_in_order, save_shared
from secrecy import assert_error


def doubled(value):
    return 2 * value


def process_of(_):
    return os.getpid()


def refused(value):
    if value == 3:
        raise DataError("row 3")
    return value


def dying(value):
    if value == 3:
        os._exit(9)
    return value


class Summing:
    """Work on an array that is in memory once."""

    def __init__(self, array):
        self.array = array

    def __call__(self, value):
        return os.getpid(), self.array.flags.owndata, float(self.array[value])


def run(work, count, processes=2):
    return list(map_in_order(work, ((str(value), value) for value in range(count)), processes=processes))


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order_and_errors_leave_nothing_behind(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run(doubled, 20, processes) == [(str(value), 2 * value) for value in range(20)]
    assert run(doubled, 0, processes) == []
    with pytest.raises(DataError, match="row 3"):
        run(refused, 10, processes)
    assert list(tmp_path.iterdir()) == []


def test_other_processes_do_the_work_on_mapped_arrays_a_few_pieces_ahead():
    taken = []

    def pieces():
        for value in range(100):
            taken.append(value)
            yield value, value

    done = map_in_order(process_of, pieces(), processes=2)
    assert next(done)[1] != os.getpid() and len(taken) < 10
    done.close()
    results = [result for _, result in run(Summing(np.arange(10_000.0)), 20)]
    assert [number for _, _, number in results] == list(range(20))
    assert {(process == os.getpid(), owned) for process, owned, _ in results} == {(False, False)}


def test_work_that_cannot_be_done_elsewhere_is_an_error_in_one_line(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert_error(ParameterError, lambda: run(lambda value: value, 1), "by functions that can be imported")
    with pytest.raises(StorageError, match="a worker process died"):
        run(dying, 10)
    assert list(tmp_path.iterdir()) == []

    def pieces():
        for path in tmp_path.glob("*/*.tables"):
            path.unlink()  # before the first process starts
        yield None, 1

    capfd.readouterr()
    with pytest.raises(StorageError, match="a worker process died"):
        list(map_in_order(doubled, pieces(), processes=2))
    assert capfd.readouterr().err == ""
    for processes in [0, -1, True, 1.5, "2"]:
        assert_error(ParameterError, lambda p=processes: run(doubled, 1, p), "processes must be")


# -- shared objects -----------------------------------------------------------------------------------------------


def test_a_shared_object_is_written_once_and_its_arrays_are_read_only_views(small, tmp_path):
    path = save_shared(small, tmp_path)
    assert save_shared(small, tmp_path) == path and len(list(tmp_path.iterdir())) == 1
    vectors = load_shared(path)
    assert not vectors.matrix.flags.owndata and not vectors.matrix.flags.writeable
    assert vectors.fingerprint == small.fingerprint
    words = list(small.words[:40])
    texts = [f"{one} {other}" for one in words for other in words]
    dptext.TextBank(texts, encoder=dptext.MeanOfWords(small), cache=False).save(tmp_path / "bank")
    bank = dptext.TextBank.load(tmp_path / "bank")
    path = save_shared(dptext.BankRewriter(bank, epsilon=4.0), tmp_path)
    repeated = load_shared(path).bank
    assert path.stat().st_size < bank.vectors.nbytes + 8 * len(bank) + sum(map(len, texts)) + 60_000
    for array in [repeated.vectors]:
        assert not array.flags.owndata and not array.flags.writeable
    assert repeated.fingerprint == bank.fingerprint and repeated.texts[7] == texts[7]


def test_an_object_that_cannot_be_sent_and_a_cut_file_are_refused(small, tmp_path):
    def inner(x, y):
        return np.abs(x[:, None] - y[None]).sum(axis=2)

    mechanism = dptext.TEM(small, epsilon=1.0, metric=inner)
    assert_error(ParameterError, lambda: save_shared(mechanism, tmp_path), "can be imported")
    path = save_shared(small, tmp_path)
    for content, message in ((path.read_bytes()[:-1], "EOFError"), (b"", "cannot read")):
        path.write_bytes(content)
        assert_error(StorageError, lambda: load_shared(path), message)
