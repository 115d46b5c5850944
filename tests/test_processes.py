"""Work through several processes: in order, with errors as they are, and a death that is said."""

import os
import tempfile

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError, StorageError
from dptext.processes import map_in_order


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
    """Of an array that is in memory once."""

    def __init__(self, array):
        self.array = array

    def __call__(self, value):
        return os.getpid(), self.array.flags.owndata, float(self.array[value])


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_beside_what_stayed_in_the_order_of_the_pieces(processes):
    pieces = [(str(value), value) for value in range(20)]
    assert list(map_in_order(doubled, pieces, processes=processes)) == [(str(value), 2 * value) for value in range(20)]
    assert list(map_in_order(doubled, [], processes=processes)) == []


def test_several_processes_work_and_few_pieces_are_ahead():
    taken = []

    def pieces():
        for value in range(100):
            taken.append(value)
            yield value, value

    done = map_in_order(process_of, pieces(), processes=2)
    assert next(done)[1] != os.getpid()
    assert len(taken) < 10
    done.close()


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_the_work_is_raised_and_nothing_stays(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(DataError, match="row 3"):
        list(map_in_order(refused, ((None, value) for value in range(10)), processes=processes))
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_the_work_are_mapped_and_not_copied():
    done = [
        result for _, result in map_in_order(Summing(np.arange(10_000.0)), ((None, n) for n in range(20)), processes=2)
    ]
    assert [number for _, _, number in done] == list(range(20))
    assert {(process == os.getpid(), owned) for process, owned, _ in done} == {(False, False)}


def test_work_that_no_other_process_can_import_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ParameterError, match="functions in it must be importable there"):
        list(map_in_order(lambda value: value, [(None, 1)], processes=2))
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_dies_is_said():
    with pytest.raises(StorageError, match="a worker process died"):
        list(map_in_order(dying, ((None, value) for value in range(10)), processes=2))


def test_work_that_cannot_be_read_is_said_in_one_line(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def pieces():
        for path in tmp_path.glob("*/*.tables"):
            path.unlink()  # before the first process starts
        yield None, 1

    with pytest.raises(StorageError, match="a worker process died"):
        list(map_in_order(doubled, pieces(), processes=2))
    assert capfd.readouterr().err == ""


def test_the_number_of_processes_is_checked():
    for processes in [0, -1, True, 1.5, "2"]:
        with pytest.raises(ParameterError, match="processes must be"):
            list(map_in_order(doubled, [], processes=processes))
