"""Grouping on disk: whatever the order and the sizes, every user comes whole, and nothing stays behind."""

import os
import stat
import sys

import numpy as np
import pytest
from dptext.users.sorting import Batch, SortedRuns
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.errors import StorageError
from dptext.users import sorting


@pytest.fixture
def small(monkeypatch):
    """Sizes so small that a few documents need many runs, parts and batches."""
    make_small(monkeypatch)


def make_small(monkeypatch):
    for name, size in {"RUN_WORDS": 20, "RUN_DOCUMENTS": 5, "BATCH_WORDS": 12, "PART_RECORDS": 3}.items():
        monkeypatch.setattr(sorting, name, size)


def digest(user):
    """Spread over all fences; users 2 k and 2 k + 1 agree in the first half."""
    return np.array([(user // 2) * 0x9E3779B97F4A7C15 % 2**64, user], dtype=np.uint64)


def grouped(documents):
    """{user: (documents, levels)} after the way through the disk, and the order of the users."""
    runs = SortedRuns()
    for user, level, rows in documents:
        rows = np.array(rows, dtype=np.int32)
        runs.add(digest(user)[None], np.array([level], dtype=np.int32), np.array([rows.size]), rows)
    runs.close_input()
    once, again = ([person for batch in runs.batches() for person in people(batch)] for _ in range(2))
    runs.close()
    assert once == again
    return once


def people(batch):
    if isinstance(batch, Batch):
        rows, lengths = (
            np.split(batch.rows, np.cumsum(batch.words)),
            np.split(batch.lengths, np.cumsum(batch.documents)),
        )
        assert rows[-1].size == lengths[-1].size == 0
        return [cut(*each) for each in zip(rows[:-1], lengths[:-1], batch.levels, strict=True)]
    found = [cut(rows, lengths, batch.levels) for rows, lengths in batch]
    return [([text for documents, _ in found for text in documents], batch.levels)]


def cut(rows, lengths, levels):
    assert rows.dtype == np.int32
    assert lengths.dtype == np.int64
    assert lengths.sum() == rows.size
    return [each.tolist() for each in np.split(rows, np.cumsum(lengths))[:-1]], levels


def expected(documents):
    """The same with a dictionary, users by digest."""
    together = {}
    for user, level, rows in documents:
        texts, levels = together.setdefault(user, ([], {}))
        texts.append(rows)
        levels[level] = None
    order = sorted(together, key=lambda user: digest(user).tolist())
    return [(together[user][0], tuple(together[user][1])) for user in order]


DOCUMENTS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from([0, 0, 0, 1, 2]), st.lists(st.integers(-1, 9), max_size=9)),
    max_size=60,
)


@given(documents=DOCUMENTS)
@settings(max_examples=150, deadline=None)
def test_every_user_comes_whole_once_and_in_the_order_of_the_digests(documents):
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        assert grouped(documents) == expected(documents)


@given(documents=DOCUMENTS)
@settings(max_examples=50, deadline=None)
def test_in_one_run_it_is_the_same(documents):
    assert grouped(documents) == expected(documents)


def test_one_user_with_most_of_the_words_comes_in_pieces(small):
    documents = [(7, 0, list(range(place % 8))) for place in range(300)]
    documents[100:100] = [(1, 0, [1]), (2, 0, [])]
    assert grouped(documents) == expected(documents)
    runs = SortedRuns()
    for user, _, rows in documents:
        runs.add(digest(user)[None], np.zeros(1, dtype=np.int32), np.array([len(rows)]), np.array(rows, dtype=np.int32))
    runs.close_input()
    (prolific,) = [batch for batch in runs.batches() if not isinstance(batch, Batch)]
    sizes = [rows.size for rows, _ in prolific]
    assert len(sizes) > 20
    assert max(sizes) <= 20 + 7  # a run ends with the document that fills it
    runs.close()


def test_nobody_is_nobody():
    assert grouped([]) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there the file has a name, and goes with its last handle")
def test_the_file_has_no_name_and_only_its_owner_could_read_it(tmp_path):
    runs = SortedRuns(tmp_path)
    runs.add(digest(1)[None], np.zeros(1, dtype=np.int32), np.array([2]), np.array([1, 2], dtype=np.int32))
    runs.close_input()
    assert os.listdir(tmp_path) == []
    status = os.fstat(runs._file.fileno())
    assert status.st_size > 0
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_nlink == 0
    runs.close()


def test_what_lies_on_the_disk_is_encrypted_each_time_under_another_key(tmp_path):
    """A thousand bytes of one value, and what two files of the same content share: that of random bytes."""
    contents = []
    for _ in range(2):
        runs = SortedRuns(tmp_path)
        for _ in range(2):
            rows = np.zeros(1000, dtype=np.int32)
            runs.add(digest(1)[None], np.zeros(1, dtype=np.int32), np.array([rows.size]), rows)
            runs.close_input()
        runs._file.seek(0)
        contents.append(np.frombuffer(runs._file.read(), dtype=np.uint8))
        runs.close()
    one, other = contents
    assert len(one) == len(other) > 8000
    half = len(one) // 2
    for pair in ((one, np.zeros_like(one)), (one, other), (one[:half], one[half:])):
        # expected 1 in 256 of at least 4,000; more than three times as many: a chance below 1e-12
        assert (pair[0] == pair[1]).mean() < 3 / 256


def test_a_folder_that_is_not_there_and_a_full_disk_are_said(tmp_path):
    with pytest.raises(StorageError, match="cannot write a temporary file in"):
        SortedRuns(tmp_path / "missing")
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    runs = SortedRuns(tmp_path)
    runs._file.close()
    runs._file = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115
    runs.add(digest(1)[None], np.zeros(1, dtype=np.int32), np.array([2]), np.array([1, 2], dtype=np.int32))
    with pytest.raises(StorageError, match="No space left"):
        runs.close_input()
    runs.close()
