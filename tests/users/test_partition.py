"""The hash partition: same groups and order as a dictionary, encrypted on disk, bounded, nothing left behind."""

import os
import stat
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.errors import StorageError
from dptext.users import partition as module
from dptext.users.partition import Slab, UserPartition

ROWS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0, 0, 1, 2]), st.binary(max_size=9)), max_size=60)


def digest(user):
    """Users 2 k and 2 k + 1 agree in the first half; users below 6 share the first bucket."""
    return [(user // 2) * (1 if user < 6 else 0x9E3779B97F4A7C15) % 2**64, user]


def slab(rows):
    users, codes, content = zip(*rows, strict=True)
    return Slab(
        np.array([digest(user) for user in users], dtype=np.uint64),
        np.array(codes, dtype=np.int32),
        np.array([len(document) for document in content]),
        b"".join(content),
    )


def grouped(rows, at_once=7, **options):
    """[[(code, document), ...], ...] by user, written to disk and read back; two passes agree."""
    partition = UserPartition(**options)
    for start in range(0, len(rows), at_once):
        partition.add(slab(rows[start : start + at_once]))
    passes = [[user for group in partition.groups() for user in users_in(*group)] for _ in range(2)]
    partition.close()
    assert passes[0] == passes[1]
    return passes[0]


def users_in(slab, bounds):
    ends = np.cumsum(slab.lengths)
    documents = [
        (int(code), slab.content[end - length : end])
        for code, end, length in zip(slab.codes, ends, slab.lengths, strict=True)
    ]
    return [documents[start:stop] for start, stop in pairwise(bounds)]


def group_in_memory(rows):
    groups = {}
    for user, code, document in rows:
        groups.setdefault(user, []).append((code, document))
    return [groups[user] for user in sorted(groups, key=digest)]


def shrink(patch):
    """Sizes so small that a few documents need several runs and a second partition."""
    for name, size in {"BUFFER_BYTES": 20, "BUFFER_DOCUMENTS": 5, "LARGE_BUCKET": 60}.items():
        patch.setattr(module, name, size)


@pytest.mark.parametrize("is_small", [False, True])
@given(rows=ROWS)
@settings(max_examples=80, deadline=None)
def test_groups_and_their_order_are_those_of_a_dictionary(is_small, rows):
    with pytest.MonkeyPatch.context() as patch:
        if is_small:
            shrink(patch)
        assert grouped(rows) == group_in_memory(rows)


@given(rows=ROWS, limit=st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_a_limit_keeps_the_first_documents_and_every_level(rows, limit):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        assert grouped(rows, limit=limit) == [documents[:limit] for documents in group_in_memory(rows)]
        for kept, documents in zip(grouped(rows, limit=limit, by_bytes=True), group_in_memory(rows), strict=True):
            sizes = np.cumsum([0, *(len(document) for _, document in documents)])
            codes = [code for code, _ in documents]
            assert kept == [
                document
                for row, document in enumerate(documents)
                if sizes[row] < limit or codes[row] not in codes[:row]
            ]


def test_one_large_user_is_reduced_while_it_is_read(monkeypatch):
    """Memory: never more than twice the size at which a bucket counts as large is merged."""
    shrink(monkeypatch)
    sizes = []
    merged = UserPartition._merged
    monkeypatch.setattr(
        UserPartition,
        "_merged",
        lambda self, slabs: sizes.append(sum(s.lengths.size for s in slabs)) or merged(self, slabs),
    )
    rows = [(1, 0, b"%d" % place) for place in range(2000)]
    assert grouped(rows, limit=3) == [[(0, b"0"), (0, b"1"), (0, b"2")]]
    assert len(sizes) > 100
    assert max(sizes) < 30


@pytest.mark.skipif(sys.platform == "win32", reason="there the file has a name and is deleted with its last handle")
def test_the_file_has_no_name_and_only_its_owner_could_read_it(tmp_path):
    partition = UserPartition(tmp_path)
    partition.add(slab([(1, 0, b"x")]))
    partition.flush()
    status = os.fstat(partition._file.fileno())
    assert (os.listdir(tmp_path), status.st_nlink, stat.S_IMODE(status.st_mode)) == ([], 0, 0o600)
    assert status.st_size > 0
    partition.close()


def test_the_content_is_encrypted_under_a_key_of_its_own_and_no_counter_is_used_twice(tmp_path):
    """Bytes that two runs, or two files, of the same content share: those of random bytes."""
    contents = []
    for _ in range(2):
        partition = UserPartition(tmp_path)
        for _ in range(2):
            partition.add(slab([(1, 0, bytes(8000))]))
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


def test_folders_disks_and_files_that_fail_are_storage_errors(tmp_path):
    with pytest.raises(StorageError, match="cannot write a temporary file in"):
        UserPartition(tmp_path / "missing")
    partition = UserPartition(tmp_path)
    partition.add(slab([(1, 0, b"x" * 100)]))
    partition.flush()
    partition._file.truncate(50)
    with pytest.raises(StorageError, match="truncated"):
        list(partition.groups())
    partition._file.close()
    partition._file = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115
    partition.add(slab([(1, 0, b"x")]))
    with pytest.raises(StorageError, match="No space left"):
        partition.flush()
    partition.close()
