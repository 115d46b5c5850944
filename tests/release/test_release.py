"""Releases of files: nothing is lost or duplicated, noise never changes, and the ledger charges first."""

import contextlib
import dataclasses
import datetime
import decimal
import errno
import json
import os
import stat
import subprocess
import sys
import zlib
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io import batches, documents
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import Ledger
from dptext.release import job as job_module
from dptext.release import run as run_module
from dptext.release.job import Job
from dptext.release.privatize import privatize_file
from dptext.release.release import Tally, rejects_path, statement_path
from dptext.release.run import Piece, RunSettings, TextFiles, release_file
from secrecy import MARKER, assert_error
from statements import statement_of_texts
from stopping import HOLD, killed


def statement(**changes):
    return statement_of_texts(mechanism="reversed", **{"parameters": {"step": -1}, **changes})


class Reversing:
    """A `Run` that reverses texts and keeps its inputs for the tests."""

    runs: ClassVar[list] = []

    def __init__(self, key, release_id):
        self.secret, self.release_id, self.rows, self.finished = key.secret(), release_id, [], 0
        Reversing.runs.append(self)

    def work(self, blocks, *, row):
        for place, block in blocks:
            self.rows.append((place, row, len(block.texts)))
            private = [None if text is None else text[::-1] for text in block.texts]
            data = "".join(json.dumps(text) + "\n" for text in private).encode()
            letters = sum(len(entry or "") for entry in private)
            yield Piece(place, data, len(private), block.rejects, Tally(words=letters, longest=row))
            row += len(private)

    def finish(self, blocks, ends, out):
        self.finished += 1
        assert blocks.stat().st_size == ends[-1]
        out.write(b"made of " + blocks.read_bytes())

    def statement_before(self):
        return self.statement(Tally())

    def statement(self, tally):
        return statement(parameters={"step": -1, "letters": tally.words}, release_id=self.release_id)


@pytest.fixture(scope="module")
def mechanism(glove):
    return dptext.TEM(dptext.load_vectors(glove, limit=300), epsilon=4.0)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Reversing, "runs", [])
    monkeypatch.setattr(batches, "BATCH_ROWS", 4)
    write("in.jsonl", [{"text": f"{MARKER} {n}", "id": n} for n in range(10)])
    Ledger.create("l.db", releases=1)
    return tmp_path


def write(name, rows):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def read(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def release(out="out.txt", source="in.jsonl", **options):
    """Release with options of `release_file`, `TextFiles` and `RunSettings`."""
    of_files, of_run = (
        {field.name: options.pop(field.name) for field in dataclasses.fields(kind) if field.name in options}
        for kind in (TextFiles, RunSettings)
    )
    files = TextFiles(source, **of_files)
    return release_file(files, Path(out), Reversing, RunSettings(**of_run), **{"options": {"step": -1}, **options})


def stop_after(count):
    def progress(_reader, rows):
        if rows >= count:
            raise KeyboardInterrupt

    return progress


def states():
    return [release.state for release in Ledger("l.db").releases()]


def hidden():
    return sorted(path.name for path in Path().iterdir() if path.name.startswith("."))


# -- one run --------------------------------------------------------------------------------------------------


def test_the_file_is_its_pieces_with_their_statement(work):
    released = release(keep=["id"])
    (run,) = Reversing.runs
    assert run.rows == [(0, 1, 4), (1, 5, 4), (2, 9, 2)] and run.finished == 0
    assert [row[::-1] for row in read("out.txt")] == [f"{MARKER} {n}" for n in range(10)]
    assert (released.documents, released.skipped, released.resumed) == (10, 0, 0)
    assert released.statement.parameters["letters"] == released.tally.words == 100
    assert released.statement.exposed == ("the column 'id', unchanged",)
    assert released.statement.data_sha256 == file_digest("out.txt")
    assert statement_path(Path("out.txt")).read_text() == released.statement.to_json() + "\n"
    assembled = release("made.txt", is_assembled=True)
    assert Path("made.txt").read_text().startswith("made of ")
    assert assembled.statement.data_sha256 == file_digest("made.txt") and hidden() == []


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".csv.gz", ".parquet", ".txt"])
def test_every_format_becomes_every_other_and_nulls_stay(work, mechanism, suffix):
    write("in.jsonl", [{"text": f"the doctor said {n}, fine.", "n": n} for n in range(25)])
    keep = [] if suffix == ".txt" else ["n"]
    privatize_file(TextFiles("in.jsonl", keep=keep), f"mid{suffix}", mechanism, seed=1)
    released = privatize_file(TextFiles(f"mid{suffix}", keep=keep), "out.jsonl", mechanism, seed=2)
    assert [int(row.get("n", n)) for n, row in enumerate(read("out.jsonl"))] == list(range(25))
    assert released.statement.data_sha256 == file_digest("out.jsonl")
    write("in.jsonl", [{"text": None}, {"text": "the"}, {"text": ""}])
    released = privatize_file("in.jsonl", "out.jsonl", mechanism, force=True)
    first, second, third = (row["text"] for row in read("out.jsonl"))
    assert (first, type(second), third, released.tally.missing) == (None, str, "", 1)
    assert "which rows had no text (null)" in released.statement.exposed
    assert "which rows had no text (null)" not in dptext.privatize(["", "the"], mechanism).statement.exposed


def test_kept_columns_of_parquet_keep_their_values_and_nothing_else_comes_along(work, mechanism):
    kinds = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 15, pa.int32()), ["a", "b", MARKER])
    inner = pa.struct([pa.field("x", pa.list_(pa.int64()), metadata={"note": MARKER})])
    table = pa.table(
        {
            "when": pa.array([datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)] * 30, pa.timestamp("us", "UTC")),
            "price": pa.array([decimal.Decimal("1.50"), None] * 15, pa.decimal128(9, 2)),
            "kind": kinds,
            "nested": pa.array([{"x": [1, 2]}, None] * 15, inner),
            "text": ["the doctor", None] * 15,
            "dropped": [MARKER] * 30,
        },
        metadata={"note": MARKER},
    )
    pq.write_table(table, "in.parquet", row_group_size=7)
    keep = ["when", "price", "kind", "nested"]
    privatize_file(TextFiles("in.parquet", keep=keep), "out.parquet", mechanism)
    result = pq.read_table("out.parquet")
    assert result.schema.names == ["text", *keep]
    assert result.select(keep).to_pylist() == table.select(keep).to_pylist()
    assert MARKER.encode() not in Path("out.parquet").read_bytes()


@pytest.mark.slow
def test_a_seed_gives_one_output_for_any_number_of_processes(work, mechanism):
    texts = [row["text"] for row in read("in.jsonl")]
    for processes in (1, 2, 3):
        privatize_file("in.jsonl", f"{processes}.jsonl", mechanism, seed=5, processes=processes)
        assert [row["text"] for row in read(f"{processes}.jsonl")] == dptext.privatize(texts, mechanism, seed=5).texts


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".parquet"])
def test_the_file_does_not_show_the_length_of_the_private_words(work, suffix, monkeypatch):
    """Blocks end after a number of private characters; a gzip member or row group that ends there would reveal it."""
    monkeypatch.setattr(batches, "BATCH_CHARACTERS", 300)
    fixed = dptext.TEM(dptext.load_vectors((["the"], [[0.0]])), epsilon=1.0)
    shapes = set()
    for word in ("cat", "y" * 250):
        write("in.jsonl", [{"text": word}] * 40)
        privatize_file("in.jsonl", f"out{suffix}", fixed, force=True)
        if suffix == ".parquet":
            file = pq.read_metadata(f"out{suffix}")
            shapes.add(tuple(file.row_group(n).num_rows for n in range(file.num_row_groups)))
        else:
            member = zlib.decompressobj(wbits=31)
            member.decompress(Path(f"out{suffix}").read_bytes())
            shapes.add((member.eof, len(member.unused_data)))
    assert len(shapes) == 1


def test_a_bad_row_stops_the_run_or_is_skipped_and_listed_for_the_owner(work, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_REJECTS", 8)
    monkeypatch.setattr(documents, "_REJECTS_KEPT", 10)
    Path("in.jsonl").write_text("\n{\n" * 50 + json.dumps({"text": "a"}) + "\n")
    assert_error(DataError, release, "row 1")
    assert not Path("out.txt").exists() and hidden() == []
    with contextlib.closing(documents.read_documents("in.jsonl", on_error="skip")) as reader:
        assert all(len(block.rejects) <= 8 for block in reader.batches())
    assert (reader.count, reader.skipped, len(reader.rejects)) == (1, 100, 10)
    before = os.umask(0o022)
    released = release(on_error="skip")
    os.umask(before)
    listed = rejects_path(Path("out.txt"))
    assert (released.documents, released.skipped) == (1, 100)
    assert [row["row"] for row in read(listed)] == list(range(1, 101))
    assert [stat.S_IMODE(path.stat().st_mode) for path in (listed, Path("out.txt"))] == [0o600, 0o644]
    assert "that rows which could not be read or had no author are missing" in released.statement.exposed


def test_a_weak_guarantee_is_shown_in_the_representation():
    vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    for epsilon in (1.0, 200.0):
        released = dptext.privatize(["cat"], dptext.TEM(vectors, epsilon=epsilon, threshold=0.1))
        assert ("protects=False" in repr(released)) == (epsilon == 200.0)


# -- interrupted ----------------------------------------------------------------------------------------------


def test_a_resumed_run_has_the_same_secret_and_id_and_does_the_next_rows(work):
    with pytest.raises(KeyboardInterrupt) as caught:
        release(progress=stop_after(8))
    assert "8 rows are done and kept" in caught.value.__notes__[0]
    assert_error(ParameterError, lambda: release(options={"step": 1}, resume=True), "step changed")
    released = release(resume=True)
    first, second = Reversing.runs
    assert (first.secret, first.release_id) == (second.secret, second.release_id)
    assert second.rows == [(2, 9, 2)]
    assert (released.documents, released.resumed, released.tally.longest) == (10, 8, 9)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl.gz", ".parquet"])
def test_a_resumed_run_equals_an_uninterrupted_one_in_every_format(work, mechanism, suffix, monkeypatch):
    write("in.jsonl", [{"text": f"the doctor said {n}", "n": n} for n in range(39)])
    files = TextFiles("in.jsonl", keep=["n"])
    privatize_file(files, f"whole{suffix}", mechanism, seed=7)
    for count in (4, 17, 33):
        with pytest.raises(KeyboardInterrupt):
            privatize_file(files, f"out{suffix}", mechanism, seed=7, resume=count > 4, progress=stop_after(count))
    calls, fsync = [], os.fsync

    def full(descriptor):
        calls.append(1)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left on device") as caught:
        patch.setattr(job_module.os, "fsync", full)
        privatize_file(files, f"out{suffix}", mechanism, seed=7, resume=True)
    assert "rows are done and kept" in caught.value.__notes__[0]
    assert privatize_file(files, f"out{suffix}", mechanism, seed=7, resume=True).resumed >= 36
    assert Path(f"out{suffix}").read_bytes() == Path(f"whole{suffix}").read_bytes()


KILLED = f"""{HOLD}
import sys, dptext
from dptext.io import batches
from dptext.release.privatize import privatize_file
if __name__ == "__main__":
    batches.BATCH_ROWS = 200
    mechanism = dptext.TEM(dptext.load_vectors("small.txt"), epsilon=4.0)
    files = dptext.TextFiles("in.jsonl", keep=["n"])
    privatize_file(files, sys.argv[1], mechanism, seed=7, resume=True, processes=int(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 there")
@pytest.mark.parametrize(("suffix", "processes"), [(".jsonl", 1), (".jsonl", 2), (".parquet", 2)])
def test_kill_9_at_any_moment_loses_nothing(work, glove, processes, suffix):
    """The long form, 20 kills of a run over 100,000 documents, is benchmarks/resume.py."""
    dptext.save_vectors(dptext.load_vectors(glove, limit=300), "small.txt")
    write("in.jsonl", [{"text": f"the doctor of {n % 7} said {n}, fine.", "n": n} for n in range(6_000)])
    Path("run.py").write_text(KILLED)
    out, whole = f"out{suffix}", f"whole{suffix}"
    spool, size = work / f".{out}.rows", 450_000 if suffix == ".jsonl" else 90_000
    for share in (0.0, 0.3, 0.6):

        def is_there(minimum=share * size):
            return spool.exists() and spool.stat().st_size > minimum

        killed("run.py", out, processes, when=is_there, after=24)
        assert not (work / out).exists()
    for name in (out, whole):
        subprocess.run([sys.executable, "run.py", name, str(processes)], check=True)
    assert (work / out).read_bytes() == (work / whole).read_bytes() and hidden() == []


# -- the ledger ---------------------------------------------------------------------------------------------------


def no_more(*_arguments, **_options):
    raise StorageError("cannot write 'out.txt': No space left on device")


def test_the_ledger_charges_before_any_row_and_settles_after_the_output(work, monkeypatch):
    settle, seen = Ledger.settle, []

    def settle_and_check(ledger, release_id):
        seen.append((states(), file_digest("out.txt"), statement_path(Path("out.txt")).exists()))
        settle(ledger, release_id)

    monkeypatch.setattr(Ledger, "settle", settle_and_check)
    released = release(ledger="l.db", user="id")
    assert seen == [(["pending"], released.statement.data_sha256, True)]
    assert states() == ["released"]
    message = "10 of 10 values of 'id'"
    assert_error(RefusedError, lambda: release("again.txt", ledger="l.db", user="id"), message)
    assert Reversing.runs[-1].rows == [] and not Path("again.txt").exists()


def test_an_input_that_changes_after_it_was_charged_is_not_released(work, monkeypatch):
    rows = [{"id": place, "text": "long " * 20_000} for place in range(12)]  # more than any buffer
    write("in.jsonl", rows)
    reserve = Ledger.reserve

    def reserve_and_change(*arguments, **options):
        result = reserve(*arguments, **options)
        write("in.jsonl", [*rows[:11], {"id": 0, "text": MARKER}])
        return result

    monkeypatch.setattr(Ledger, "reserve", reserve_and_change)
    assert_error(RefusedError, lambda: release(ledger="l.db", user="id"), "the input changed while it was being read")
    assert not Path("out.txt").exists() and states() == ["pending"]


@pytest.mark.parametrize(("missing", "charged"), [(None, 1), ("", 2)])
def test_a_missing_text_is_charged_where_it_counts_as_one(work, missing, charged):
    write("in.jsonl", [{"text": "a"}, {"text": None}, {"text": None}])
    release(ledger="l.db", missing=missing)
    assert Ledger("l.db").releases()[0].units == charged


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_fails_before_its_first_row_stays_charged_and_continues_with_its_release(work, monkeypatch, resume):
    with monkeypatch.context() as full, pytest.raises(StorageError, match="No space left on device") as caught:
        full.setattr(Job, "add", no_more)
        release(ledger="l.db")
    (pending,) = Ledger("l.db").releases()
    assert caught.value.__notes__[0].endswith(f"dptext ledger void l.db {pending.release_id}")
    released = release(ledger="l.db", resume=resume)
    assert (states(), released.statement.release_id, hidden()) == (["released"], pending.release_id, [])


def test_if_the_ledger_fails_too_the_first_error_is_raised_and_the_job_is_kept(work, monkeypatch):
    def fail(job, *_arguments, **_options):
        monkeypatch.setattr(Ledger, "state", lambda *_: (_ for _ in ()).throw(StorageError("cannot use the ledger")))
        no_more()

    with monkeypatch.context() as full, pytest.raises(StorageError, match="No space left on device") as caught:
        full.setattr(Job, "add", fail)
        release(ledger="l.db")
    assert "cannot use the ledger" in caught.value.__notes__[0]
    assert hidden() == [".out.txt.job", ".out.txt.rows"]


STAGES = {"the reservation": 0, "some rows": 8, "all rows": 10**9, "the output": 10**9, "the ledger": 10**9}


def kill_at(stage, monkeypatch):
    """Leave the files of a run that was killed at a stage."""
    targets = {"all rows": (Job, "publish"), "the output": (Ledger, "settle"), "the ledger": (Job, "discard")}
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "_note_on_job", lambda *_: None)
        if stage in targets:
            patch.setattr(*targets[stage], no_more)
        add = Job.add

        def stop(job, *arguments, **more):
            if job.rows >= STAGES[stage]:
                no_more()
            add(job, *arguments, **more)

        patch.setattr(Job, "add", stop)
        with pytest.raises(StorageError):
            release(ledger="l.db")


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_is_killed_and_resumed_is_charged_once(work, monkeypatch, stage):
    kill_at(stage, monkeypatch)
    assert states() == ["released" if stage == "the ledger" else "pending"]
    (begun,) = Ledger("l.db").releases()
    released = release(ledger="l.db", resume=True)
    assert released.statement.release_id == begun.release_id
    assert (states(), hidden(), released.documents) == (["released"], [], 10)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("repeated", ["l.db", None])
def test_a_run_that_starts_over_leaves_the_earlier_release_charged(work, monkeypatch, caplog, stage, repeated):
    Path("l.db").unlink()
    Ledger.create("l.db", releases=2)
    kill_at(stage, monkeypatch)
    (earlier,) = states()
    release(ledger=repeated, force=True)
    assert states() == [earlier, *["released"] * (repeated is not None)]
    assert ("dptext ledger void" in caplog.text) == (repeated is not None and earlier == "pending")
    assert hidden() == []


def test_a_voided_release_is_charged_again_before_it_appears(work, monkeypatch):
    def void(_reader, rows):
        if rows == 8:
            Ledger("l.db").void(Ledger("l.db").releases()[0].release_id)

    message = "was voided in the ledger during this run"
    assert_error(RefusedError, lambda: release(ledger="l.db", progress=void), message)
    assert not Path("out.txt").exists() and not statement_path(Path("out.txt")).exists()
    Ledger("l.db").reserve("other", statement(), [f"{MARKER} 3"], by="text").settle()
    assert_error(RefusedError, lambda: release(ledger="l.db", resume=True), "would be overspent")
    assert not Path("out.txt").exists()


def test_a_published_release_is_settled_or_charged_again_by_the_next_run(work, monkeypatch):
    with monkeypatch.context() as full, pytest.raises(StorageError) as caught:
        full.setattr(Ledger, "settle", no_more)
        release(ledger="l.db")
    (pending,) = Ledger("l.db").releases()
    notice, then = caught.value.__notes__
    assert f"dptext ledger settle l.db {pending.release_id}" in notice
    assert then == "out.txt is published: run the same command with --resume to finish"
    Ledger("l.db").void(pending.release_id)
    release(ledger="l.db", resume=True)
    assert (states(), hidden()) == (["released"], [])
