"""The temporary file of grouped documents: same groups and order as a dictionary, encrypted, bounded, nothing left."""

import os
import stat
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.errors import StorageError
from dptext.users import grouping
from dptext.users.grouping import _Partition

ROWS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 2), st.binary(max_size=9)), max_size=60)


def grouped(rows, limit=float("inf"), size=lambda _: 1):
    """[(documents, all numbers), ...] by user, written to disk and read back; two passes agree."""
    partition = _Partition(seed=1)
    for row in rows:
        partition.add(*row)
    partition.flush()
    passes = [[(user.documents, list(user.numbers)) for user in partition.users(limit, size)] for _ in range(2)]
    partition.close()
    assert passes[0] == passes[1]
    return passes[0]


@pytest.mark.parametrize("is_small", [False, True])
@given(rows=ROWS, limit=st.integers(1, 20))
@settings(max_examples=80, deadline=None)
def test_groups_are_those_of_a_dictionary_up_to_a_limit(is_small, rows, limit):
    groups = {}
    for user, code, document in rows:
        groups.setdefault(user, []).append((code, document))
    numbers = [list(dict.fromkeys(code for code, _ in documents)) for documents in groups.values()]
    with pytest.MonkeyPatch.context() as patch:
        if is_small:  # several runs, and several passes over a bucket
            for name, size in {"BUFFER_BYTES": 80, "LARGE_BUCKET": 20}.items():
                patch.setattr(grouping, name, size)
        key = repr
        whole = [(documents, number) for documents, number in zip(groups.values(), numbers, strict=True)]
        assert sorted(grouped(rows), key=key) == sorted(whole, key=key)
        first = [(documents[:limit], number) for documents, number in whole]
        assert sorted(grouped(rows, limit), key=key) == sorted(first, key=key)
        kept = []
        for documents, number in whole:
            before = np.cumsum([0, *(len(document) for _, document in documents)])
            kept.append(([row for row, size in zip(documents, before, strict=False) if size < limit], number))
        assert sorted(grouped(rows, limit, len), key=key) == sorted(kept, key=key)


def test_several_passes_over_a_bucket_keep_the_order_of_users(monkeypatch):
    rows = [(str(place % 500), 0, b"%d" % place) for place in range(2000)]
    expected = grouped(rows)
    monkeypatch.setattr(grouping, "LARGE_BUCKET", 64)
    assert grouped(rows) == expected
    assert len(expected) == 500


@pytest.mark.skipif(sys.platform == "win32", reason="there the file has a name and is deleted with its last handle")
def test_the_file_has_no_name_and_only_its_owner_could_read_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    partition = _Partition(None)
    partition.add("a", 0, b"x")
    partition.flush()
    status = os.fstat(partition._file.fileno())
    assert (os.listdir(tmp_path), status.st_nlink, stat.S_IMODE(status.st_mode)) == ([], 0, 0o600)
    assert status.st_size > 0
    partition.close()


def test_the_content_is_encrypted_under_a_key_of_its_own_and_no_counter_is_used_twice():
    """Bytes that two runs, or two files, of the same content share: those of random bytes."""
    contents = []
    for _ in range(2):
        partition = _Partition(seed=1)
        for _ in range(2):
            partition.add("a", 0, bytes(8000))
            partition.flush()
        partition._file.seek(0)
        contents.append(np.frombuffer(partition._file.read(), dtype=np.uint8))
        partition.close()
    one, other = contents
    assert one.size == other.size > 16000
    half = one.size // 2
    for pair in ((one, np.zeros_like(one)), (one, other), (one[:half], one[half:])):
        # expected: 1 of 256 among at least 8,000; three times as many have a chance below 1e-20
        assert (pair[0] == pair[1]).mean() < 3 / 256


def test_folders_disks_and_files_that_fail_are_storage_errors(tmp_path, monkeypatch):
    partition = _Partition(None)
    partition.add("a", 0, b"x" * 100)
    partition.flush()
    partition._file.truncate(50)
    with pytest.raises(StorageError, match="truncated"):
        list(partition.users(1, len))
    partition._file.close()
    partition._file = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115
    partition.add("a", 0, b"x")
    with pytest.raises(StorageError, match="No space left"):
        partition.flush()
    partition.close()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(StorageError, match="cannot write a temporary file in"):
        _Partition(None)
