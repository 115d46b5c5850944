"""Tests of the steps of a release, with a mechanism that reverses texts."""

import contextlib
import dataclasses
import json
import os
import stat
import tracemalloc
from pathlib import Path
from typing import ClassVar

import pytest

import dptext
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io import batches, documents
from dptext.io.artifacts import file_digest
from dptext.ledger.ledger import Ledger
from dptext.privacy.guarantee import Relation, Trust, Unit
from dptext.release import run as run_module
from dptext.release.job import Job
from dptext.release.release import Tally, rejects_path, statement_path
from dptext.release.run import Piece, RunSettings, TextFiles, is_released, release_file
from secrecy import MARKER


def promise(**changes):
    statement = dptext.PrivacyStatement(
        guarantee=dptext.PureDP(1.0),
        unit=Unit.DOCUMENT,
        relation=Relation.SUBSTITUTION,
        condition="any two texts",
        trust=Trust.LOCAL,
        mechanism="turned around",
        parameters={"step": -1},
    )
    return dataclasses.replace(statement, **changes)


class Turned:
    """A `Run` that keeps its inputs for the tests."""

    made: ClassVar[list] = []

    def __init__(self, key, release_id):
        self.secret, self.release_id, self.rows, self.finished = key.secret(), release_id, [], 0
        Turned.made.append(self)

    def work(self, blocks, *, row):
        for place, block in blocks:
            self.rows.append((place, row, len(block.texts)))
            turned = [None if text is None else text[::-1] for text in block.texts]
            data = "".join(json.dumps(text) + "\n" for text in turned).encode()
            letters = sum(len(entry or "") for entry in turned)
            yield Piece(place, data, len(turned), block.rejects, Tally(words=letters, longest=row))
            row += len(turned)

    def finish(self, blocks, ends, out):
        self.finished += 1
        assert blocks.stat().st_size == ends[-1]
        out.write(b"made of " + blocks.read_bytes())

    def statement_before(self):
        return self.statement(Tally())

    def statement(self, tally):
        return promise(parameters={"step": -1, "letters": tally.words}, release_id=self.release_id)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Turned, "made", [])
    monkeypatch.setattr(batches, "BATCH_ROWS", 4)
    write("in.jsonl", [{"text": f"{MARKER} {n}", "id": n} for n in range(10)])
    return tmp_path


def write(name, rows):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def release(out="out.txt", source="in.jsonl", **options):
    """Release with options of `release_file`, `TextFiles` and `RunSettings`."""
    of_files, of_run = (
        {field.name: options.pop(field.name) for field in dataclasses.fields(kind) if field.name in options}
        for kind in (TextFiles, RunSettings)
    )
    files = TextFiles(paths=source, **of_files)
    return release_file(files, Path(out), Turned, RunSettings(**of_run), **{"options": {"step": -1}, **options})


def test_the_pieces_one_after_the_other_are_the_file(work):
    released = release(keep=["id"])
    (run,) = Turned.made
    assert run.rows == [(0, 1, 4), (1, 5, 4), (2, 9, 2)]
    assert [json.loads(line)[::-1] for line in Path("out.txt").read_text().splitlines()] == [
        f"{MARKER} {n}" for n in range(10)
    ]
    assert (released.documents, released.skipped, released.resumed) == (10, 0, 0)
    assert released.statement.parameters["letters"] == released.tally.words == 100
    assert released.statement.exposed == ("the column 'id', unchanged",)
    assert released.statement.data_sha256 == file_digest("out.txt")
    assert statement_path(Path("out.txt")).read_text() == released.statement.to_json() + "\n"
    assert run.finished == 0
    assert not [path for path in work.iterdir() if path.name.startswith(".")]


def test_a_file_may_be_made_of_the_pieces(work):
    released = release(is_assembled=True)
    assert Path("out.txt").read_text().startswith("made of ")
    assert released.statement.data_sha256 == file_digest("out.txt")
    assert Turned.made[0].finished == 1


def test_a_run_that_goes_on_has_the_same_secret_and_name_and_its_next_rows(work):
    def stop(_reader, rows):
        if rows == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        release(progress=stop)
    assert "8 rows are done and kept" in caught.value.__notes__[0]
    with pytest.raises(ParameterError, match="step changed"):
        release(options={"step": 1}, resume=True)
    released = release(resume=True)
    first, second = Turned.made
    assert (first.secret, first.release_id) == (second.secret, second.release_id)
    assert second.rows == [(2, 9, 2)]
    assert (released.documents, released.resumed, released.tally.longest) == (10, 8, 9)


def test_what_is_wrong_with_a_row_stops_the_run_before_anything_is_there(work):
    write("in.jsonl", [{"text": 7}])
    with pytest.raises(DataError, match="row 1"):
        release()
    assert sorted(path.name for path in work.iterdir()) == ["in.jsonl"]
    write("in.jsonl", [{"text": 7}, {"text": "a"}])
    released = release(on_error="skip")
    assert (released.documents, released.skipped) == (1, 1)
    assert rejects_path(Path("out.txt")).exists()
    assert "that rows which could not be read are missing" in released.statement.exposed


def test_a_ledger_is_asked_before_any_row_is_worked_on(work):
    Ledger.create("l.db", releases=1)
    release(ledger="l.db", user="id")
    assert Ledger("l.db").releases()[0].state == "released"
    with pytest.raises(RefusedError, match="10 of 10 values of 'id'"):
        release("again.txt", ledger="l.db", user="id")
    assert Turned.made[-1].rows == []
    assert not Path("again.txt").exists()


@pytest.mark.parametrize(("missing", "charged"), [(None, 1), ("", 2)])
def test_a_missing_text_is_charged_where_it_counts_as_one(work, missing, charged):
    Ledger.create("l.db", releases=1)
    write("in.jsonl", [{"text": "a"}, {"text": None}, {"text": None}])
    release(ledger="l.db", missing=missing)
    assert Ledger("l.db").releases()[0].units == charged


def test_a_release_is_known_again_by_its_parameters_columns_and_bytes(work):
    out = Path("out.txt")
    assert not is_released(out, promise(), [])
    release(keep=["id"])
    assert is_released(out, promise(), ["id"])
    for of, keep in (
        (promise(mechanism="other"), ["id"]),
        (promise(parameters={"step": 1}), ["id"]),
        (promise(), []),
    ):
        with pytest.raises(ParameterError, match="from another run"):
            is_released(out, of, keep)
    out.write_text("changed")
    with pytest.raises(ParameterError, match="from another run"):
        is_released(out, promise(), ["id"])


# -- the ledger, and what stops a run ---------------------------------------------------------------------------


def states(name="l.db"):
    return [release.state for release in Ledger(name).releases()]


def hidden(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def no_more(*_arguments, **_options):
    raise StorageError("cannot write 'out.txt': No space left on device")


def test_the_ledger_settles_once_the_output_stands(work, monkeypatch):
    Ledger.create("l.db", releases=1)
    settle, seen = Ledger.settle, []

    def watched(ledger, release_id):
        seen.append((states(), file_digest("out.txt"), statement_path(Path("out.txt")).exists()))
        settle(ledger, release_id)

    monkeypatch.setattr(Ledger, "settle", watched)
    released = release(ledger="l.db")
    assert seen == [(["pending"], released.statement.data_sha256, True)]
    assert states() == ["released"]


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_fails_before_its_first_row_stays_charged_and_continues_with_its_release(work, monkeypatch, resume):
    Ledger.create("l.db", releases=1)
    with monkeypatch.context() as full:
        full.setattr(Job, "add", no_more)
        with pytest.raises(StorageError, match="No space left on device") as caught:
            release(ledger="l.db")
    (pending,) = Ledger("l.db").releases()
    (note,) = caught.value.__notes__
    assert note.endswith(f"dptext ledger void l.db {pending.release_id}")
    released = release(ledger="l.db", resume=resume)
    assert (states(), released.statement.release_id) == (["released"], pending.release_id)
    assert hidden(work) == []


def test_if_the_ledger_fails_too_the_first_error_is_raised_and_the_job_is_kept(work, monkeypatch):
    Ledger.create("l.db", releases=1)

    def fail(job, *_arguments, **_options):
        monkeypatch.setattr(Ledger, "state", lambda *_: (_ for _ in ()).throw(StorageError("cannot use the ledger")))
        no_more()

    with monkeypatch.context() as full:
        full.setattr(Job, "add", fail)
        with pytest.raises(StorageError, match="No space left on device") as caught:
            release(ledger="l.db")
    assert "cannot use the ledger" in caught.value.__notes__[0]
    assert hidden(work) == [".out.txt.job", ".out.txt.rows"]


def killed_at(stage, monkeypatch):
    """Return the files of a run that was killed at a stage, without cleaning up."""
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "_note_on_job", lambda *_: None)
        if stage == "all rows":
            patch.setattr(Job, "publish", no_more)
        elif stage == "the output":
            patch.setattr(Ledger, "settle", no_more)
        elif stage == "the ledger":
            patch.setattr(Job, "discard", no_more)
        rows = {"the reservation": 0, "some rows": 8}.get(stage, 10**9)

        def stop(job, *arguments, **more):
            if job.rows >= rows:
                no_more()
            add(job, *arguments, **more)

        add = Job.add
        patch.setattr(Job, "add", stop)
        with pytest.raises(StorageError):
            release(ledger="l.db")


STAGES = ["the reservation", "some rows", "all rows", "the output", "the ledger"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_goes_on_after_a_kill_is_counted_once(work, monkeypatch, stage):
    Ledger.create("l.db", releases=1)
    killed_at(stage, monkeypatch)
    assert states() == ["released" if stage == "the ledger" else "pending"]
    (begun,) = Ledger("l.db").releases()
    released = release(ledger="l.db", resume=True)
    assert released.statement.release_id == begun.release_id
    assert (states(), hidden(work), released.documents) == (["released"], [], 10)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("repeated", ["l.db", None])
def test_a_run_that_starts_over_leaves_the_earlier_release_charged(work, monkeypatch, caplog, stage, repeated):
    Ledger.create("l.db", releases=2)
    killed_at(stage, monkeypatch)
    (earlier,) = states()
    release(ledger=repeated, force=True)
    assert states() == [earlier, *["released"] * (repeated is not None)]
    assert ("dptext ledger void" in caplog.text) == (repeated is not None and earlier == "pending")
    assert hidden(work) == []


def test_what_was_voided_is_charged_again_before_it_appears(work, monkeypatch):
    Ledger.create("l.db", releases=1)
    killed_at("all rows", monkeypatch)
    (begun,) = Ledger("l.db").releases()
    Ledger("l.db").void(begun.release_id)
    Ledger("l.db").reserve("other", promise(), [f"{MARKER} 3"], by="text").settle()
    with pytest.raises(RefusedError, match="would be overspent"):
        release(ledger="l.db", resume=True)
    assert not Path("out.txt").exists()


def test_a_release_that_is_voided_while_it_is_made_is_not_published(work, monkeypatch):
    Ledger.create("l.db", releases=1)

    def void(_reader, rows):
        if rows == 8:
            Ledger("l.db").void(Ledger("l.db").releases()[0].release_id)

    with pytest.raises(RefusedError, match="was voided in the ledger during this run"):
        release(ledger="l.db", progress=void)
    assert not Path("out.txt").exists()
    assert not statement_path(Path("out.txt")).exists()
    release(ledger="l.db", resume=True)
    assert states() == ["released"]


def test_a_published_release_that_was_voided_is_charged_again_when_its_run_resumes(work, monkeypatch):
    Ledger.create("l.db", releases=1)
    killed_at("the output", monkeypatch)
    Ledger("l.db").void(Ledger("l.db").releases()[0].release_id)
    release(ledger="l.db", resume=True)
    assert (states(), hidden(work)) == (["released"], [])


def test_an_output_that_the_ledger_cannot_be_told_of_is_named_and_settled_by_the_next_run(work, monkeypatch):
    Ledger.create("l.db", releases=1)
    with monkeypatch.context() as full:
        full.setattr(Ledger, "settle", no_more)
        with pytest.raises(StorageError) as caught:
            release(ledger="l.db")
    (pending,) = Ledger("l.db").releases()
    notice, then = caught.value.__notes__
    assert f"dptext ledger settle l.db {pending.release_id}" in notice
    assert then == "out.txt is published: run the same command with --resume to finish"
    release(ledger="l.db", resume=True)
    assert (states(), hidden(work)) == (["released"], [])


# -- rows that cannot be read, in great number -------------------------------------------------------------------


@pytest.mark.slow
def test_like_rejects_in_a_row_are_one_entry_whatever_their_number(work):
    good = json.dumps({"text": "a"}) + "\n"
    Path("in.jsonl").write_text("\n" * 25_000 + good + "\n" * 25_000 + good + "{\n" * 9)
    release(on_error="skip")  # imports and caches of the first run
    tracemalloc.start()
    try:
        released = release("again.txt", on_error="skip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    listed = [json.loads(line) for line in rejects_path(Path("again.txt")).read_text().splitlines()]
    assert [(entry["first"], entry["last"]) for entry in listed] == [(1, 25_000), (25_002, 50_001), (50_003, 50_011)]
    assert (released.documents, released.skipped) == (2, 50_009)
    assert peak < 3 << 20, "50,009 entries take more than 5 MB"


def test_rejects_of_different_kinds_leave_in_blocks_of_their_own(work, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_REJECTS", 8)
    monkeypatch.setattr(documents, "_REJECTS_KEPT", 10)
    Path("in.jsonl").write_text("\n{\n" * 50 + json.dumps({"text": "a"}) + "\n")
    with contextlib.closing(documents.read_documents("in.jsonl", on_error="skip")) as reader:
        for block in reader.batches():
            assert len(block.rejects) <= 8
    assert (reader.count, reader.skipped, len(reader.rejects)) == (1, 100, 10)
    released = release(on_error="skip")
    listed = [json.loads(line)["row"] for line in rejects_path(Path("out.txt")).read_text().splitlines()]
    assert (released.documents, released.skipped, listed) == (1, 100, list(range(1, 101)))


# -- what only the owner reads, and what killed runs leave ----------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_the_list_of_rejects_is_for_the_owner_alone(work):
    write("in.jsonl", [{"text": 7}, {"text": "a"}])
    before = os.umask(0o022)
    try:
        release(on_error="skip")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in work.iterdir() if path.name.startswith("out")}
    assert modes == {"out.txt": 0o644, "out.txt.privacy.json": 0o644, "out.txt.rejects.jsonl": 0o600}


def test_a_release_that_does_not_protect_says_so_where_it_shows_itself():
    vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    visible = [
        repr(dptext.privatize(["cat"], dptext.TEM(vectors, epsilon=entry, threshold=0.1))) for entry in (1.0, 200.0)
    ]
    assert ["protects=False" in entry for entry in visible] == [False, True]
