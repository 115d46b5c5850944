"""Files by name: what a suffix announces, bytes through a decompressor, and files that appear whole or not at all."""

import errno
import gc
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_files import LINES, SUFFIXES, put, raw, read, table
from secrecy import MARKER, assert_error

from dptext.errors import DataError, MissingExtraError, ParameterError, StorageError, extra
from dptext.io import atomic
from dptext.io.artifacts import digest_of_parts, file_digest, folder_digest
from dptext.io.atomic import HashedFile, hashed_file, sibling
from dptext.io.batches import STANDARD, OpenedFile, compress
from dptext.io.documents import DocumentWriter, read_documents
from dptext.io.formats import FileFormat, file_format

EXPECTED = (
    "expected a file name that ends in .txt, .jsonl, .csv, .tsv (each may have .gz or .zst added) or .parquet, "
    ".xlsx, got {!r}"
)

# -- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "compression"),
    [
        ("a.txt", ".txt", ""),
        ("a.TXT", ".txt", ""),
        ("a.b.txt", ".txt", ""),
        ("a.jsonl", ".jsonl", ""),
        ("a.ndjson", ".jsonl", ""),
        ("a.NdJson.GZ", ".jsonl", ".gz"),
        ("a.csv.gz", ".csv", ".gz"),
        ("a.csv.zst", ".csv", ".zst"),
        ("a.tsv", ".tsv", ""),
        ("a.Tsv.Zst", ".tsv", ".zst"),
        ("a.parquet", ".parquet", ""),
        ("a.csv.parquet", ".parquet", ""),
        ("-.jsonl", ".jsonl", ""),
        (".hidden.csv", ".csv", ""),
        ("a.gz.txt", ".txt", ""),
    ],
)
def test_a_name_announces_a_format(name, kind, compression):
    assert file_format(Path(name)) == FileFormat(kind, compression)
    assert file_format(Path("folder.csv") / name) == FileFormat(kind, compression)


@pytest.mark.parametrize(
    "name",
    [
        *("a", "a.xml", "a.gz", "a.txt.zip", "a.csv.gz.gz", "a.csv.gz.zst", ".txt", "a.json", "a.", "a.zst"),
        *("a.parquet.gz", "a.parquet.zst", "a.txt.bz2", "txt", "a.txt ", "-"),
    ],
)
def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path, name):
    (tmp_path / name).write_text("one\n")
    expected = EXPECTED.format(name)
    assert assert_error(ParameterError, lambda: file_format(Path(name))) == expected
    assert assert_error(ParameterError, lambda: read_documents(tmp_path / name)) == expected
    assert assert_error(ParameterError, lambda: DocumentWriter(Path(name))) == expected


def test_a_hidden_name_stands_beside_the_file_and_fits_the_system(tmp_path):
    assert sibling(tmp_path / "a.txt", "job") == tmp_path / ".a.txt.job"
    for name in ("a" * 251 + ".txt", "é" * 125 + ".txt", "😀" * 62 + ".txt"):
        assert len(sibling(tmp_path / name, "0123456789ab.part").name.encode()) <= 255


def test_hidden_names_of_different_files_differ():
    # one job must never be taken for the job of another file
    assert sibling(Path("a" * 201 + "1.txt"), "job") != sibling(Path("a" * 201 + "2.txt"), "job")


@pytest.mark.skipif(sys.platform != "linux", reason="such names exist on Linux only")
def test_a_name_that_is_not_utf8_is_a_name(tmp_path):
    path = tmp_path / os.fsdecode(b"a\xff.txt")
    path.write_bytes(b"old")
    start(path)
    assert path.read_bytes() == b"x"


@pytest.mark.slow
def test_a_missing_package_is_answered_with_its_install_line(tmp_path, monkeypatch):
    line = 'pip install "dptext[files]"'
    assert_error(MissingExtraError, lambda: extra("no_such_module.part", "files", "this"), "this", line)
    path = raw(tmp_path / "a.txt.zst", "one\n")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert_error(MissingExtraError, lambda: read_documents(path), "zstandard", line)
    assert_error(MissingExtraError, lambda: DocumentWriter(path), "zstandard", line)
    path = table(tmp_path / "a.parquet", {"text": ["one"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert_error(MissingExtraError, lambda: read_documents(path), "pyarrow", line)
    assert_error(MissingExtraError, lambda: DocumentWriter(path), "pyarrow", line)
    gc.collect()  # an opened file that was left behind would warn here


# -- bytes in -------------------------------------------------------------------------------------------------


def test_members_of_a_gzip_file_follow_each_other(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntw") + gzip.compress(b"") + gzip.compress(b"o\nthree"))
    assert read(path) == ["one", "two", "three"]


def test_frames_of_a_zst_file_follow_each_other(tmp_path):
    path = tmp_path / "a.txt.zst"
    sizeless = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    path.write_bytes(zstandard.compress(b"one\ntw") + zstandard.compress(b"") + sizeless.compress(b"o\nthree"))
    assert read(path) == ["one", "two", "three"]


def test_a_zst_file_may_hold_frames_to_be_skipped(tmp_path):
    path = tmp_path / "a.txt.zst"
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    path.write_bytes(skippable + zstandard.compress(b"one\n") + skippable + zstandard.compress(b"two\n") + skippable)
    assert read(path) == ["one", "two"]


def test_a_zst_file_with_a_long_window_is_read(tmp_path):
    path = tmp_path / "a.txt.zst"
    parameters = zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(compressor.compress(b"one\n") + compressor.flush())
    assert read(path) == ["one"]


def test_a_zst_file_is_decompressed_a_piece_at_a_time(tmp_path):
    path = raw(tmp_path / "a.txt.zst", b"the same words again and again\n" * 2_000_000)
    file = OpenedFile(path, ".zst")
    tracemalloc.start()
    try:
        for _ in range(10):
            file.readline(1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        file.close()
    assert peak < 20 << 20, "62 MB lie in 6 kB"


@pytest.mark.parametrize("suffix", LINES)
def test_an_opened_file_knows_its_size_and_how_far_it_was_read(tmp_path, suffix):
    path = raw(tmp_path / f"a{suffix}", "one\ntwo\n")
    file = OpenedFile(path, "" if path.suffix in (".txt", ".jsonl", ".csv", ".tsv") else path.suffix)
    assert (file.name, file.size, file.position) == (path.name, path.stat().st_size, 0)
    assert [file.readline(100), file.readline(2), file.readline(100), file.readline(9)] == [
        b"one\n",
        b"tw",
        b"o\n",
        b"",
    ]
    assert file.position == file.size
    file.close()
    file.close()
    assert file.position == file.size


def test_standard_input_has_a_name_and_no_size(monkeypatch, tmp_path):
    path = raw(tmp_path / "a", "one\n")
    with path.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        file = OpenedFile(STANDARD)
        assert (file.name, file.size, file.readline(9), file.position) == ("standard input", 0, b"one\n", 0)


@pytest.mark.parametrize("suffix", LINES)
@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that can be opened and not read")
def test_a_disk_that_fails_while_reading_is_a_storage_error(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.symlink_to("/proc/self/mem")
    message = assert_error(StorageError, lambda: list(read_documents(path)))
    assert message == f"cannot read 'a{suffix}': {os.strerror(errno.EIO)}"


# -- bytes out ------------------------------------------------------------------------------------------------


def test_compressed_bytes_of_equal_bytes_are_equal_and_hold_neither_name_nor_time():
    def compressed(data, compression):
        out = io.BytesIO()
        compress(io.BytesIO(data), HashedFile(out), compression)
        return out.getvalue()

    data = compressed(b"one" * 1_000_000, ".gz")
    assert gzip.decompress(data) == b"one" * 1_000_000
    assert data == compressed(b"one" * 1_000_000, ".gz")
    assert data[3] == 0, "no name"
    assert data[4:8] == bytes(4), "no time"
    assert zstandard.ZstdDecompressor().decompress(compressed(b"one", ".zst"), 3) == b"one"


def start(path):
    with hashed_file(path) as stream:
        stream.write(b"x")


def test_a_file_appears_whole_when_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    with hashed_file(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with hashed_file(os.fspath(path)) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows does not replace a file that is open")
def test_who_reads_the_old_file_meanwhile_reads_all_of_it(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with path.open("rb") as reading:
        start(path)
        assert reading.read() == b"old"
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, DataError, StorageError])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_block_that_fails_leaves_nothing_behind_and_keeps_the_old_file(tmp_path, error, old):
    path = tmp_path / "a.txt"
    if old is not None:
        path.write_bytes(old)
    before = os.listdir(tmp_path)
    with pytest.raises(error), hashed_file(path) as stream:
        stream.write(b"half")
        stream.flush()
        raise error
    assert os.listdir(tmp_path) == before
    assert old is None or path.read_bytes() == old


def test_nobody_else_may_read_a_file_that_is_not_whole_under_its_name(tmp_path):
    with hashed_file(tmp_path / "a.txt"):
        (part,) = os.listdir(tmp_path)
        assert part.startswith(".a.txt.")
        assert part.endswith(".part")


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a.txt"
    with hashed_file(path) as first, hashed_file(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_missing_folder_is_a_storage_error(tmp_path):
    assert_error(StorageError, lambda: start(tmp_path / "no" / "a.txt"), "cannot write", "a.txt", "No such file")


def test_a_file_in_place_of_the_folder_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("x")
    assert_error(StorageError, lambda: start(tmp_path / "file" / "a.txt"), "a.txt", "Not a directory")


def test_a_folder_in_place_of_the_file_is_a_storage_error_and_stays(tmp_path):
    (tmp_path / "a.txt").mkdir()
    assert_error(StorageError, lambda: start(tmp_path / "a.txt"), "a.txt")
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_name_that_is_too_long_is_a_storage_error(tmp_path):
    assert_error(StorageError, lambda: start(tmp_path / f"{'a' * 300}.txt"), "too long")


def test_a_name_as_long_as_the_system_allows_is_written(tmp_path):
    path = tmp_path / f"{'a' * 251}.txt"
    path.write_bytes(b"the system allows it")
    start(path)
    assert path.read_bytes() == b"x"


def test_a_full_disk_is_a_storage_error_and_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def fsync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    assert_error(StorageError, lambda: start(path), "a.txt", os.strerror(errno.ENOSPC))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_disk_that_is_full_while_writing_is_a_storage_error(tmp_path, monkeypatch):
    full = lambda target: (tmp_path / "x.part", open("/dev/full", "wb"))  # noqa: E731, SIM115
    monkeypatch.setattr(atomic, "_new_part", full)

    def act():
        with hashed_file(tmp_path / "a.txt") as stream:
            stream.write(b"x")
            stream.flush()

    assert_error(StorageError, act, "cannot write", "a.txt", os.strerror(errno.ENOSPC))


def test_a_read_only_folder_is_a_storage_error(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write everywhere")
        assert_error(StorageError, lambda: start(folder / "a.txt"), "Permission denied")
    finally:
        folder.chmod(0o700)
    assert os.listdir(folder) == []


ABANDON = """
import pathlib, sys
from dptext.io.atomic import hashed_file
from dptext.io.documents import DocumentWriter

for suffix in (".txt.gz", ".jsonl.zst", ".csv.gz"):
    path = pathlib.Path(sys.argv[1]) / f"a{suffix}"
    try:
        with hashed_file(path) as stream:
            writer = DocumentWriter(path)
            stream.write(writer.encode(["half"], {}, row=1, first=True))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    del writer, stream
"""


def test_an_abandoned_compressed_file_does_not_complain_afterwards(tmp_path):
    # what development mode prints, Python 3.13 prints always
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", ABANDON, os.fspath(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path) == []


# -- digests --------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(st.lists(st.binary(max_size=50), max_size=5))
def test_the_digest_of_a_stream_is_that_of_its_file(chunks):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        with hashed_file(path) as stream:
            for chunk in chunks:
                assert stream.write(chunk) == len(chunk)
            digest = stream.digest()
        assert (
            digest == file_digest(path) == file_digest(os.fspath(path)) == hashlib.sha256(b"".join(chunks)).hexdigest()
        )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_digest_of_what_a_writer_finished_is_that_of_the_file(tmp_path, suffix):
    path, blocks = tmp_path / f"a{suffix}", tmp_path / "blocks"
    writer = DocumentWriter(path)
    blocks.write_bytes(writer.encode(["x"], {}, row=1, first=True))
    with hashed_file(path) as stream:
        if writer.is_assembled:
            writer.finish(blocks, [blocks.stat().st_size], stream)
        else:
            stream.write(blocks.read_bytes())
        digest = stream.digest()
    assert digest == file_digest(path)
    assert read(path) == ["x"]


def test_the_digest_of_what_cannot_be_read_is_a_storage_error(tmp_path):
    assert_error(StorageError, lambda: file_digest(tmp_path / "no.txt"), "no.txt", "No such file")
    assert_error(StorageError, lambda: file_digest(tmp_path), tmp_path.name)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_equal_documents_give_equal_bytes(tmp_path, suffix):
    (tmp_path / "elsewhere").mkdir()
    first = put(tmp_path / f"first{suffix}", ["one", "two"])
    second = put(tmp_path / "elsewhere" / f"second{suffix}", ["one", "two"])
    os.utime(first, (0, 0))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != put(first, ["one", "too"]).read_bytes()


def test_a_hashed_file_shows_nothing_of_what_it_holds(tmp_path):
    with hashed_file(tmp_path / "a.txt") as stream:
        stream.write(MARKER.encode())
        assert isinstance(stream, HashedFile)
        assert MARKER not in repr(stream)


def test_a_file_for_its_owner_only_is_that_from_the_first_byte_on(tmp_path):
    def mode(path):
        return path.stat().st_mode & 0o777

    path = tmp_path / "secret"
    for _ in range(2):
        with hashed_file(path, owner_only=True) as stream:
            stream.write(b"text")
            assert [mode(each) for each in tmp_path.iterdir() if each != path] == [0o600]
        assert (mode(path), path.read_bytes()) == (0o600, b"text")
    with hashed_file(path) as stream:
        stream.write(b"other")
    assert mode(path) != 0o600


def test_the_digest_of_a_folder_is_that_of_its_parts_and_of_nothing_else(tmp_path):
    (tmp_path / "part-0").write_bytes(b"one")
    (tmp_path / "part-1").write_bytes(b"two")
    once = folder_digest(tmp_path)
    for mark in ("_SUCCESS", ".part-0.crc"):
        (tmp_path / mark).write_bytes(b"mark")
    assert folder_digest(tmp_path) == once
    digests = {name: file_digest(tmp_path / name) for name in ("part-1", "part-0")}
    assert digest_of_parts(digests) == once
    (tmp_path / "part-1").rename(tmp_path / "part-2")
    assert folder_digest(tmp_path) != once
