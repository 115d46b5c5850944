"""Tests of files through a mechanism: nothing is lost or duplicated, and the noise never changes."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dptext
from dptext.errors import ParameterError, StorageError
from dptext.io import batches
from dptext.io.artifacts import file_digest
from dptext.release.privatize import privatize_file
from dptext.release.release import statement_path
from stopping import HOLD, killed

MARKER = "qsecretq"


@pytest.fixture(scope="module")
def mechanism(glove):
    return dptext.TEM(dptext.load_vectors(glove, limit=300), epsilon=4.0)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 10)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(count, start=0):
    return [{"text": f"the doctor of {MARKER}{n % 7} said {n}, fine.", "n": n} for n in range(start, start + count)]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Stop(BaseException):
    """What a power cut is to a program, as far as a test in the same process can say."""


def stop_after(count):
    def progress(_reader, rows):
        if rows >= count:
            raise Stop

    return progress


# -- one run --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".csv.gz", ".parquet", ".txt"])
def test_every_format_becomes_every_other(work, mechanism, suffix, small_blocks):
    write(work / "in.jsonl", rows(25))
    keep = [] if suffix == ".txt" else ["n"]
    privatize_file("in.jsonl", f"mid{suffix}", mechanism, keep=keep, seed=1)
    privatize_file(f"mid{suffix}", "out.jsonl", mechanism, keep=keep, seed=2)
    if keep:
        assert [int(row["n"]) for row in read(work / "out.jsonl")] == list(range(25))
    assert len(read(work / "out.jsonl")) == 25
    assert release_of("out.jsonl").data_sha256 == file_digest("out.jsonl")


def release_of(out):
    from pathlib import Path

    return dptext.PrivacyStatement.from_json(statement_path(Path(out)).read_text())


def test_columns_of_parquet_keep_their_types(work, mechanism, small_blocks):
    import datetime
    import decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "when": pa.array([datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)] * 30, pa.timestamp("us", "UTC")),
            "price": pa.array([decimal.Decimal("1.50"), None] * 15, pa.decimal128(9, 2)),
            "small": pa.array([1, 2] * 15, pa.int8()),
            "kind": pa.array(["a", "b"] * 15).dictionary_encode(),
            "nested": pa.array([{"x": [1, 2]}, None] * 15),
            "text": ["the doctor", None] * 15,
            "dropped": [MARKER] * 30,
        },
        metadata={"note": MARKER},
    )
    pq.write_table(table, "in.parquet", row_group_size=7)
    keep = ["when", "price", "small", "kind", "nested"]
    release = privatize_file("in.parquet", "out.parquet", mechanism, keep=keep)
    result = pq.read_table("out.parquet")
    assert result.schema.names == ["text", *keep]
    assert result.select(keep).equals(table.select(keep).replace_schema_metadata(None))
    assert result["text"].null_count == 15
    assert MARKER.encode() not in (work / "out.parquet").read_bytes()
    assert "which rows had no text (null)" in release.statement.exposed
    assert release.tally.missing == 15


@pytest.mark.slow
def test_a_seed_gives_one_output_whatever_the_number_of_processes(work, mechanism, small_blocks):
    write(work / "in.jsonl", rows(35))
    outputs = set()
    for processes in (1, 2, 3):
        name = f"out{processes}.jsonl"
        privatize_file("in.jsonl", name, mechanism, seed=5, processes=processes)
        outputs.add((work / name).read_bytes())
    (private,) = outputs
    texts = [row["text"] for row in rows(35)]
    repeated = dptext.privatize(texts, mechanism, seed=5).texts
    assert [json.loads(line)["text"] for line in private.decode().splitlines()] == repeated


@pytest.mark.parametrize("processes", [0, -1, True, 1.5])
def test_processes_must_be_a_number_of_them(work, mechanism, processes):
    write(work / "in.jsonl", rows(1))
    with pytest.raises(ParameterError, match="processes must be an integer of at least 1"):
        privatize_file("in.jsonl", "out.jsonl", mechanism, processes=processes)


# -- bad rows -------------------------------------------------------------------------------------------------


def test_a_null_stays_null_and_is_listed(work, mechanism):
    (work / "in.jsonl").write_text('{"text": null}\n{"text": "the"}\n{"text": ""}\n')
    release = privatize_file("in.jsonl", "out.jsonl", mechanism)
    private = [row["text"] for row in read(work / "out.jsonl")]
    assert private[0] is None
    assert isinstance(private[1], str)
    assert private[2] == ""
    assert "which rows had no text (null)" in release.statement.exposed
    with_none = dptext.privatize([None, "the"], mechanism)
    assert with_none.texts[0] is None
    assert "which rows had no text (null)" in with_none.statement.exposed
    assert "which rows had no text (null)" not in dptext.privatize(["", "the"], mechanism).statement.exposed


# -- interrupted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".jsonl.gz"])
def test_a_resumed_run_equals_one_that_was_not_interrupted_in_every_format(work, mechanism, small_blocks, suffix):
    write(work / "in.jsonl", rows(95))
    out = f"out{suffix}"
    privatize_file("in.jsonl", f"whole{suffix}", mechanism, keep=["n"], seed=7)
    for count in (10, 41, 90):
        with pytest.raises(Stop):
            privatize_file(
                "in.jsonl", out, mechanism, keep=["n"], seed=7, resume=count > 10, progress=stop_after(count)
            )
    assert privatize_file("in.jsonl", out, mechanism, keep=["n"], seed=7, resume=True).resumed == 90
    assert (work / out).read_bytes() == (work / f"whole{suffix}").read_bytes()


KILLED = f"""{HOLD}
import sys, dptext
from dptext.io import batches
from dptext.release.privatize import privatize_file
if __name__ == "__main__":
    batches.BATCH_ROWS = 200
    mechanism = dptext.TEM(dptext.load_vectors("small.txt"), epsilon=4.0)
    privatize_file("in.jsonl", sys.argv[1], mechanism, keep=["n"], seed=7, resume=True, processes=int(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 there")
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_kill_9_at_any_moment_loses_nothing(work, glove, processes, suffix):
    """The long form, 20 kills of a run over 100,000 documents, is benchmarks/resume.py."""
    small = dptext.load_vectors(glove, limit=300)
    dptext.save_vectors(small, "small.txt")
    write(work / "in.jsonl", rows(6_000))
    (work / "run.py").write_text(KILLED)
    out, whole = f"out{suffix}", f"whole{suffix}"
    spool = work / f".{out}.rows"
    whole_size = 450_000 if suffix == ".jsonl" else 90_000
    for share in (0.0, 0.3, 0.6):

        def is_there(minimum=share * whole_size):
            return spool.exists() and spool.stat().st_size > minimum

        killed("run.py", out, processes, when=is_there, after=24)
        assert not (work / out).exists()
    for name in (out, whole):
        subprocess.run([sys.executable, "run.py", name, str(processes)], check=True)
    assert (work / out).read_bytes() == (work / whole).read_bytes()
    assert not [name for name in names(work) if name.startswith(".")]


# -- storage --------------------------------------------------------------------------------------------------


def test_a_full_disk_keeps_what_is_done(work, mechanism, small_blocks, monkeypatch):
    import errno

    from dptext.release import job

    write(work / "in.jsonl", rows(40))
    calls = []

    def full(_descriptor):
        calls.append(1)
        if len(calls) > 5:  # the first line of the log, then two for each part
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(job.os, "fsync", full)
        with pytest.raises(StorageError, match=r"cannot write .out\.jsonl.: No space left on device") as caught:
            privatize_file("in.jsonl", "out.jsonl", mechanism, seed=3)
        assert "20 rows are done and kept" in caught.value.__notes__[0]
    privatize_file("in.jsonl", "out.jsonl", mechanism, seed=3, resume=True)
    privatize_file("in.jsonl", "whole.jsonl", mechanism, seed=3)
    assert (work / "out.jsonl").read_bytes() == (work / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".csv.gz", ".parquet"])
def test_the_file_does_not_show_how_long_the_private_words_were(work, suffix, monkeypatch):
    """Blocks end after a number of private characters; a gzip member or row group that ends there would reveal it."""
    import zlib

    import pyarrow.parquet as pq

    monkeypatch.setattr(batches, "BATCH_CHARACTERS", 300)
    fixed = dptext.TEM(dptext.load_vectors((["the"], [[0.0]])), epsilon=1.0)
    shapes = set()
    for word in ("cat", "y" * 250):
        write(work / "in.jsonl", [{"text": word}] * 40)
        privatize_file("in.jsonl", f"out{suffix}", fixed, force=True)
        data = (work / f"out{suffix}").read_bytes()
        if suffix == ".parquet":
            file = pq.read_metadata(f"out{suffix}")
            shapes.add(tuple(file.row_group(n).num_rows for n in range(file.num_row_groups)))
        elif suffix.endswith(".gz"):
            member = zlib.decompressobj(wbits=31)
            member.decompress(data)
            shapes.add((member.eof, len(member.unused_data)))
        else:
            shapes.add(data.count(b"\x28\xb5\x2f\xfd"))
    assert len(shapes) == 1


def test_categories_that_no_row_has_do_not_come_along(work, mechanism):
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), ["a", "b", MARKER])
    inner = pa.array([{"x": 1}] * 3, pa.struct([pa.field("x", pa.int64(), metadata={"note": MARKER})]))
    pq.write_table(pa.table({"text": ["the"] * 3, "kind": kinds, "inner": inner}), "in.parquet")
    privatize_file("in.parquet", "out.parquet", mechanism, keep=["kind", "inner"])
    assert MARKER.encode() not in (work / "out.parquet").read_bytes()
    pydict = pq.read_table("out.parquet").to_pydict()
    assert pydict["kind"] == ["a", "b", "a"]
    assert pydict["inner"] == [{"x": 1}] * 3


# -- streams ----------------------------------------------------------------------------------------------------


def test_a_stream_gets_the_rows_of_the_file_and_its_statement_a_file_of_its_own(work, mechanism):
    Path("in.txt").write_text("the man\nof the city\n")
    stream = io.BytesIO()
    sent = privatize_file("in.txt", stream, mechanism, seed=1, to=".txt", statement_file="said.json")
    written = privatize_file("in.txt", "out.txt", mechanism, seed=1)
    assert stream.getvalue() == Path("out.txt").read_bytes()
    assert (sent.documents, sent.skipped, sent.tally) == (2, 0, written.tally)
    assert Path("said.json").read_text() == sent.statement.to_json() + "\n"
    assert sent.statement.data_sha256 == written.statement.data_sha256
    with pytest.raises(AttributeError, match="written to a stream"):
        _ = sent.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"to": ".txt"}, "are required for a stream"),
        ({"to": ".parquet", "statement_file": "said.json"}, "cannot be written to a pipe"),
        ({"to": ".txt", "statement_file": "said.json", "resume": True}, "need the path of a file"),
        ({"to": ".txt", "statement_file": "said.json", "ledger": "l.db"}, "need the path of a file"),
    ],
)
def test_what_a_stream_cannot_is_refused(work, mechanism, more, message):
    Path("in.txt").write_text("the man\n")
    stream = io.BytesIO()
    with pytest.raises(ParameterError, match=message):
        privatize_file("in.txt", stream, mechanism, **more)
    assert stream.getvalue() == b""
    with pytest.raises(ParameterError, match="are for a stream"):
        privatize_file("in.txt", "out.txt", mechanism, to=".txt")
