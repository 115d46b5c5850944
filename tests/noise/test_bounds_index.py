"""The index of all block bounds: the same draws with and without it, and never one that is not whole."""

import logging
import pickle
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from dptext.errors import StorageError
from dptext.noise.selection import BoundsIndex, IndexPlace, TruncatedExponential
from dptext.privacy.randomness import RandomBits
from dptext.vectors.search import ExactDistances


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(5).normal(size=(1_500, 8)).astype(np.float32)


def build(points, folder, *, coarse=True, of="points", rate=2.0):
    fine = ExactDistances(points)
    table = ExactDistances(points, dtype=np.float32) if coarse else None
    place = None if folder is None else IndexPlace(folder, of)
    return TruncatedExponential(fine, rate=rate, threshold=6.0, coarse=table, index=place)


def files(folder):
    return sorted(folder.iterdir())


@pytest.mark.parametrize("coarse", [True, False])
def test_the_same_draws_with_and_without_an_index(points, tmp_path, coarse):
    rows = np.arange(3_000) % 1_500
    without = build(points, None, coarse=coarse).sample(rows, RandomBits(1))
    with_index = build(points, tmp_path, coarse=coarse)
    np.testing.assert_array_equal(with_index.sample(rows, RandomBits(1)), without)
    np.testing.assert_array_equal(build(points, tmp_path, coarse=coarse).sample(rows, RandomBits(1)), without)
    assert len(files(tmp_path)) == 1


def test_it_is_built_once_and_only_its_owner_reads_it(points, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="dptext")
    build(points, tmp_path / "deep" / "index")
    build(points, tmp_path / "deep" / "index")
    assert sum("building the index" in record.getMessage() for record in caplog.records) == 1
    (file,) = files(tmp_path / "deep" / "index")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_other_parameters_have_an_index_of_their_own(points, tmp_path):
    build(points, tmp_path)
    build(points, tmp_path, rate=1.0)
    build(points, tmp_path, of="other points")
    assert len(files(tmp_path)) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:40],
        lambda data: b"",
        lambda data: data + b"\0",
        lambda data: bytes(len(data)),
        lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
        lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
        lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:],
    ],
)
def test_one_that_is_not_whole_is_built_again(points, tmp_path, damage):
    build(points, tmp_path)
    (file,) = files(tmp_path)
    good = file.read_bytes()
    file.write_bytes(damage(good))
    rows = np.arange(1_500)
    drawn = build(points, tmp_path).sample(rows, RandomBits(1))
    assert file.read_bytes() == good
    np.testing.assert_array_equal(drawn, build(points, None).sample(rows, RandomBits(1)))


def test_bounds_that_are_none_are_noticed_when_drawing(points, tmp_path):
    """The broken twin: an index made by somebody who lies about the sums."""
    honest = build(points, None)
    size, blocks = 1_500, honest._blocks

    def lie(start, stop):
        return honest._bounds_of(np.arange(start, stop)) / 2

    liar = build(points, tmp_path)
    liar._index = BoundsIndex(IndexPlace(tmp_path, "lies"), (size, blocks), lie)
    with pytest.raises(StorageError, match="bounds that are none: delete it"):
        liar.sample(np.arange(1_500), RandomBits(1))


def test_two_builders_at_once_are_fine(points, tmp_path):
    drawn = {}

    def work(name):
        drawn[name] = build(points, tmp_path).sample(np.arange(1_500), RandomBits(1))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(files(tmp_path)) == 1
    assert all((drawn[0] == each).all() for each in drawn.values())


def test_a_pickled_one_takes_the_file_along_by_name(points, tmp_path):
    selection = build(points, tmp_path)
    data = pickle.dumps(selection)
    assert len(data) < len(pickle.dumps(build(points, None))) + 1_000
    again = pickle.loads(data)
    rows = np.arange(1_500)
    np.testing.assert_array_equal(again.sample(rows, RandomBits(1)), selection.sample(rows, RandomBits(1)))
    files(tmp_path)[0].unlink()
    with pytest.raises(StorageError, match="cannot read"):
        pickle.loads(data)


def test_a_folder_that_cannot_be_made_is_one_error(points, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        build(points, tmp_path / "file" / "index")


def test_a_killed_builder_leaves_nothing_that_counts(points, tmp_path):
    code = (
        "import os, numpy as np; from pathlib import Path; import sys\n"
        "from dptext.noise.selection import BoundsIndex, IndexPlace\n"
        "def die(start, stop): os._exit(9)\n"
        "BoundsIndex(IndexPlace(Path(sys.argv[1]), 'x'), (10, 1), die)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == 9
    index = BoundsIndex(IndexPlace(tmp_path, "x"), (10, 1), lambda start, stop: np.ones((stop - start, 1), np.float32))
    assert index.rows(np.array([3])).tolist() == [[1.0]]
