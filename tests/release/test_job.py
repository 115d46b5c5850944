"""Jobs: finished parts are complete after any crash, the secret is its owner's alone, and each part has one noise."""

import contextlib
import errno
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dptext.errors import DataError, DptextError, ParameterError, RefusedError, StorageError
from dptext.io import atomic
from dptext.io.atomic import sibling
from dptext.io.batches import Reject
from dptext.privacy.randomness import NoiseKey
from dptext.release.job import Job, Part
from dptext.release.release import Tally
from secrecy import MARKER, assert_error
from statements import statement_of_texts

OPTIONS = {"epsilon": 5.0, "text": "text", "keep": ["stars"], "output": {"kind": ".txt", "compression": ""}}
STATEMENT = statement_of_texts(mechanism="joined")
DATA = [b"first\n", b"second part\n", b"", b"fourth\nof two rows\n"]
BOTH = pytest.mark.parametrize("is_assembled", [False, True])
pytestmark = pytest.mark.skipif(os.name == "nt", reason="permissions and signals of POSIX")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.txt"


def job(out, *, options=OPTIONS, seed=7, release_id="release", **extra):
    return Job(out, options, key=NoiseKey(seed), release_id=release_id, **extra)


def digest(data):
    return hashlib.sha256(data).digest()


def add(work, *places):
    for place in places:
        rejects = [Reject("in.jsonl", place + 1, "why")] if place % 2 else []
        data = DATA[place]
        work.add(data, digest=digest(data), rows=data.count(b"\n"), tally=Tally(words=place), rejects=rejects)


def interrupted(out, *places, **extra):
    """Do these parts of a job and stop; return its secret."""
    with job(out, **extra) as work:
        add(work, *places)
        return work.key.secret()


def assemble(work):
    with work.assembled() as (blocks, stream):
        stream.write(b"made of\n" + blocks.read_bytes())


def finish(work, out):
    """Complete a job: its missing parts, then its end."""
    for place, data in enumerate(DATA):
        if not work.is_done(place, digest(data)):
            add(work, place)
    if work.is_assembled:
        assemble(work)
    work.remember(STATEMENT)
    work.publish()
    assert sibling(out, "job").exists(), "the job stays until the ledger has settled the release"
    work.discard()
    check_published(out, work.is_assembled)


def check_published(out, is_assembled):
    assert out.read_bytes() == (b"made of\n" if is_assembled else b"") + b"".join(DATA)
    assert os.listdir(out.parent) == [out.name]


def modes(folder):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.fixture
def mask():
    before = os.umask(0o022)
    yield
    os.umask(before)


# -- without interruption -------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_job_publishes_its_parts_by_one_rename_and_leaves_nothing_else(out, mask, monkeypatch, is_assembled, old):
    if old is not None:
        out.write_bytes(old)
    renames, replace = [], Path.replace

    def replace_and_check(path, target):
        renames.append((stat.S_IMODE(path.stat().st_mode), out.read_bytes() if out.exists() else None))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replace_and_check)
    with job(out, seed=None, is_assembled=is_assembled) as work:
        assert (work.parts, work.rows, work.size, work.statement, work.is_published) == ([], 0, 0, None, False)
        add(work, 0, 1)
        assert (work.rows, work.size, Job.is_open(out)) == (2, len(DATA[0] + DATA[1]), True)
        assert work.parts[1] == Part(digest(DATA[1]), 2, work.size, digest(DATA[1]), Tally(words=1))
        hidden = {name: mode for name, mode in modes(out.parent).items() if name != out.name}
        assert hidden == {".out.txt.job": 0o600, ".out.txt.rows": 0o600}, "the log holds the secret"
        assert work.key.secret().hex() in sibling(out, "job").read_text()
        finish(work, out)
    assert renames == [(0o600, old)]
    assert modes(out.parent) == {"out.txt": 0o644}
    with pytest.raises(ValueError, match="closed"):
        add(work, 0)


def test_a_job_without_parts_publishes_an_empty_file(out):
    with job(out) as work:
        work.remember(STATEMENT)
        work.publish()
        work.discard()
    assert (out.read_bytes(), os.listdir(out.parent)) == (b"", [out.name])


def test_rejects_come_back_in_order_even_from_names_that_are_not_utf8(out):
    rejects = [Reject("b.txt", 5, "one"), Reject("a.txt", 1, "two é"), Reject("b.txt", 2, "three")]
    with job(out) as work:
        work.add(b"x", digest=b"d", rows=1, tally=Tally(), rejects=rejects[:2])
        work.add(
            b"x", digest=b"d", rows=1, tally=Tally(), rejects=[*rejects[2:], Reject(os.fsdecode(b"\xff"), 9, "four")]
        )
    with job(out, resume=True) as work:
        assert [*work.rejects()] == [*rejects, Reject("\\xff", 9, "four")]


# -- interrupted ----------------------------------------------------------------------------------------------


@BOTH
def test_an_interrupted_job_resumes_with_its_secret_its_parts_and_its_rejects(out, is_assembled):
    secret = interrupted(out, 0, seed=None, is_assembled=is_assembled)
    for done in range(1, 5):
        assert not out.exists()
        with sibling(out, "rows").open("ab") as stream:
            stream.write(b"half a part")  # bytes after the last part that counts are cut off
        with job(out, seed=None, release_id="another", resume=True, is_assembled=is_assembled) as work:
            assert (work.release_id, work.key.secret(), work.key.seeded) == ("release", secret, False)
            assert [part.digest for part in work.parts] == [digest(data) for data in DATA[:done]]
            assert [part.tally.words for part in work.parts] == [*range(done)]
            assert sibling(out, "rows").read_bytes() == b"".join(DATA[:done])
            assert [reject.row for reject in work.rejects()] == [n + 1 for n in range(done) if n % 2]
            if done < 4:
                add(work, done)
            else:
                finish(work, out)


STAGES = ["all parts", "assembled", "statement", "published", "half discarded"]


@BOTH
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_job_that_stopped_at_its_end_is_completed(out, stage, is_assembled, old):
    if old is not None:
        out.write_bytes(old)
    step = STAGES.index(stage)
    with job(out, is_assembled=is_assembled) as work:
        add(work, *range(len(DATA)))
        if step >= 1 and is_assembled:
            assemble(work)
        if step >= 2:
            work.remember(STATEMENT)
        if step >= 3:
            work.publish()
        if step == 4:
            sibling(out, "rows").unlink(missing_ok=True)
    with job(out, resume=True, is_assembled=is_assembled) as work:
        assert (work.is_published, work.statement) == (step >= 3, STATEMENT if step >= 2 else None)
        assert out.exists() == (step >= 3 or old is not None)
        if step >= 2:
            work.publish()
            work.discard()
        else:
            finish(work, out)
    check_published(out, is_assembled)


def test_a_job_that_was_killed_before_others_got_their_rights_gives_them(out, mask, monkeypatch):
    with job(out) as work, monkeypatch.context() as patch:
        add(work, *range(len(DATA)))
        work.remember(STATEMENT)
        patch.setattr(atomic, "set_default_mode", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            work.publish()
    assert modes(out.parent)["out.txt"] == 0o600
    with job(out, resume=True) as work:
        work.publish()
        work.discard()
    assert modes(out.parent) == {"out.txt": 0o644}


@pytest.mark.parametrize("extra", [{}, {"resume": True}, {"restart": True}])
def test_a_job_without_parts_begins_anew(out, extra):
    sibling(out, "job").touch(mode=0o600)
    sibling(out, "rows").write_bytes(b"of another time" * 100)
    with job(out, **extra) as work:
        finish(work, out)
    out.unlink()
    if not extra:
        interrupted(out, seed=8, options={})
        with job(out) as work:
            finish(work, out)


LOOP = """
import hashlib, pathlib, sys
from dptext.privacy.randomness import NoiseKey
from dptext.io.batches import Reject
from dptext.release.job import Job
from dptext.release.release import Tally

with Job(pathlib.Path(sys.argv[1]), {}, key=NoiseKey(), release_id="r", resume=True) as job:
    for place in range(len(job.parts), 100_000):
        data = f"part {place}\\n".encode() * (1 + place * 37 % 200)
        digest = hashlib.sha256(data).digest()
        job.add(data, digest=digest, rows=1, tally=Tally(words=place), rejects=[Reject("in", place + 1, "why")])
        print(place, flush=True)
        if len(sys.argv) > 2:
            sys.stdin.read()
"""


def test_parts_that_count_are_whole_whenever_the_process_is_killed(out):
    counted, secrets = 0, set()
    for parts in (3, 8, 1, 5):
        command = [sys.executable, "-c", LOOP, os.fspath(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(parts):
                counted = int(process.stdout.readline()) + 1
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        with Job(out, {}, key=NoiseKey(), release_id="another", resume=True) as work:
            secrets.add(work.key.secret())
            assert work.release_id == "r" and len(work.parts) >= counted
            assert [reject.row for reject in work.rejects()] == list(range(1, len(work.parts) + 1))
            content, start = sibling(out, "rows").read_bytes(), 0
            assert len(content) == work.size
            for place, part in enumerate(work.parts):
                assert digest(content[start : part.size]) == part.digest
                assert (part.tally.words, part.rows) == (place, place + 1)
                start = part.size
    assert len(secrets) == 1 and counted >= 17


@pytest.mark.parametrize("error", [RefusedError("no"), ValueError("no")])
def test_an_error_while_the_output_is_assembled_leaves_no_half_file(out, error):
    with job(out, is_assembled=True) as work:
        add(work, 0)
        with pytest.raises(type(error), match=r"^no$"), work.assembled() as (_, stream):
            stream.write(b"half")
            raise error
        assert not sibling(out, "made").exists()
    with job(out, resume=True, is_assembled=True) as work:
        finish(work, out)


# -- another job, another input, another output ---------------------------------------------------------------------


@BOTH
def test_only_restart_forgets_an_interrupted_job_and_its_secret(out, is_assembled):
    secret = interrupted(out, 0, 1, seed=None, is_assembled=is_assembled)
    assert_error(ParameterError, lambda: job(out), "was interrupted: add --resume to continue it, or --force")
    assert sibling(out, "rows").read_bytes() == DATA[0] + DATA[1]
    with job(out, seed=None, options={}, release_id="new", restart=True, is_assembled=is_assembled) as work:
        assert work.release_id == "new" and work.key.secret() != secret
        assert (work.parts, list(work.rejects()), work.statement) == ([], [], None)
        assert all(secret.hex().encode() not in path.read_bytes() for path in out.parent.iterdir())
        finish(work, out)


def test_discard_leaves_the_old_output_and_nothing_else(out, monkeypatch):
    out.write_bytes(b"old")
    with job(out) as work:
        add(work, 0)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            work.discard()
        assert Job.is_open(out), "a discard that is cut off is finished by the next run"
        work.discard()
    assert (os.listdir(out.parent), out.read_bytes()) == ([out.name], b"old")


@pytest.mark.parametrize(
    ("options", "seed", "changed"),
    [
        ({**OPTIONS, "keep": [], "epsilon": 1}, 7, "epsilon, keep"),
        ({**OPTIONS, "new": 1}, 7, "new"),
        ({name: value for name, value in OPTIONS.items() if name != "text"}, 7, "text"),
        ({**OPTIONS, "output": {"kind": ".txt", "compression": ".gz"}}, 7, "output"),
        (OPTIONS, None, "seed"),
        ({**OPTIONS, "text": MARKER}, 8, "text, seed"),
    ],
)
def test_a_job_with_other_options_is_refused_and_the_options_are_named(out, options, seed, changed):
    interrupted(out, 0)
    assert_error(ParameterError, lambda: job(out, options=options, seed=seed, resume=True), f"({changed} changed)")
    with job(out, options=json.loads(json.dumps(OPTIONS)), resume=True) as work:
        finish(work, out)


def test_an_input_or_an_output_that_changed_is_refused(out):
    interrupted(out, 0, 1)
    with job(out, resume=True) as work:
        assert work.is_done(0, digest(DATA[0])) and not work.is_done(2, b"anything")
        assert_error(RefusedError, lambda: work.is_done(1, digest(MARKER.encode())), "the input has changed")
    out.write_bytes(b"of somebody else")
    assert_error(ParameterError, lambda: job(out, resume=True), "appeared after the interruption: move it away")
    assert out.read_bytes() == b"of somebody else"
    out.unlink()
    with job(out, resume=True) as work:
        add(work, 2, 3)
        work.remember(STATEMENT)
        out.mkdir()
        assert_error(StorageError, work.publish, "appeared during the run")
    assert out.is_dir() and Job.is_open(out)


@pytest.mark.parametrize("name", ["rows", "made", "job"])
@pytest.mark.parametrize("leads", ["to a file", "nowhere"])
def test_no_planted_link_is_followed(out, tmp_path, name, leads):
    victim = tmp_path / "elsewhere" / "victim"
    victim.parent.mkdir()
    if leads == "to a file":
        victim.write_bytes(b"years of work")
    sibling(out, name).symlink_to(victim)
    with contextlib.suppress(StorageError), job(out, is_assembled=True) as work:
        add(work, *range(len(DATA)))
        assemble(work)
        work.remember(STATEMENT)
        work.publish()
    assert os.listdir(victim.parent) == (["victim"] if leads == "to a file" else [])
    assert leads == "nowhere" or victim.read_bytes() == b"years of work"


# -- damaged --------------------------------------------------------------------------------------------------


def change(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [0, len(DATA[0]), -1, "deleted"])
def test_parts_that_were_edited_or_deleted_are_noticed(out, damage):
    interrupted(out, 0, 1, 2, 3)
    rows = sibling(out, "rows")
    if damage == "deleted":
        rows.unlink()
    else:
        change(rows, damage)
    assert_error(DataError, lambda: job(out, resume=True), "was changed since the job wrote it: add --force")
    with job(out, restart=True) as work:
        finish(work, out)


def test_an_output_that_is_nowhere_is_not_taken_for_published(out):
    with job(out, is_assembled=True) as work:
        add(work, *range(len(DATA)))
        assemble(work)
        work.remember(STATEMENT.replace(data_sha256="0" * 64))
    sibling(out, "made").unlink()
    assert_error(DataError, lambda: job(out, resume=True, is_assembled=True), "--force")


def test_damage_anywhere_in_the_log_is_one_line_and_a_cut_line_does_not_count(out):
    interrupted(out, 0, 1, 2, 3)
    log, rows = sibling(out, "job"), sibling(out, "rows").read_bytes()
    good = log.read_bytes()
    flipped = (good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :] for place in range(0, len(good), 41))
    for content in (*flipped, *(good[:size] for size in range(0, len(good), 97))):
        log.write_bytes(content)
        sibling(out, "rows").write_bytes(rows)
        try:
            with job(out, resume=True) as work:
                list(work.rejects())
        except DptextError as error:
            assert len(str(error).splitlines()) == 1
    log.write_bytes(good[:-1])
    sibling(out, "rows").write_bytes(rows)
    with job(out, resume=True) as work:
        assert len(work.parts) == 3
        finish(work, out)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 99},
        {"secret": "00"},
        {"options": [1]},
        {"tally": {"words": 1e999}},
        {"size": -1},
        {"rejects": [{}]},
        MARKER * 100,
        "[" * 100_000,
    ],
)
def test_a_damaged_log_is_named_without_its_content_and_can_be_started_over(out, change):
    interrupted(out, 0, 1)
    log = sibling(out, "job")
    head, *lines = log.read_text().splitlines()
    if isinstance(change, str):
        log.write_text(change + "\n")
    elif change.keys() & json.loads(head).keys():
        log.write_text("\n".join([json.dumps({**json.loads(head), **change}), *lines]) + "\n")
    else:
        log.write_text("\n".join([head, json.dumps({**json.loads(lines[0]), **change}), *lines[1:]]) + "\n")
    assert MARKER not in assert_error(DataError, lambda: job(out, resume=True), "add --force to start over")
    with job(out, restart=True) as work:
        finish(work, out)


# -- two processes, disks that fail, names -------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [{"resume": True}, {"restart": True}, {}])
def test_a_second_job_for_the_same_output_is_refused(out, extra):
    command = [sys.executable, "-c", LOOP, os.fspath(out), "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "0\n"
        assert_error(StorageError, lambda: job(out, options={}, **extra), "another process is writing", "wait for it")
        process.kill()
    with job(out, options={}, seed=None, resume=True) as work:
        assert len(work.parts) == 1
        assert_error(StorageError, lambda: job(out, options={}, **extra), "another process is writing")
        add(work, 1)


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@BOTH
def test_a_full_disk_leaves_a_job_that_continues(out, monkeypatch, is_assembled):
    class FullStream:
        def __init__(self, stream):
            self._stream = stream

        def write(self, data):
            self._stream.write(data[: len(data) // 2])
            full()

        def __getattr__(self, name):
            return getattr(self._stream, name)

    with job(out, is_assembled=is_assembled) as work:
        add(work, 0)
        for name, stream in (("fsync", None), ("write", FullStream(work._spool))):
            with monkeypatch.context() as patch:
                patch.setattr(*((os, "fsync", full) if name == "fsync" else (work, "_spool", stream)))
                assert_error(StorageError, lambda: add(work, 1), "cannot write", "out.txt", "No space left on device")
            assert len(work.parts) == 1
        add(work, 1, 2, 3)
        if is_assembled:
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", full)
                assert_error(StorageError, lambda: assemble(work), "No space left on device")
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", full)
            assert_error(StorageError, work.publish, "No space left on device")
    with job(out, resume=True, is_assembled=is_assembled) as work:
        finish(work, out)


def test_a_folder_that_cannot_be_written_is_a_storage_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    for name, problem in (("no", "No such file or directory"), ("file", "Not a directory")):
        assert_error(StorageError, lambda name=name: job(tmp_path / name / "out.txt"), "cannot write", problem)

    def refuse(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    assert_error(StorageError, lambda: job(tmp_path / "out.txt"), "cannot write", "Read-only file system")


@pytest.mark.parametrize("name", ["a b.txt", "ü😀.txt", "what?mode=ro#x%20.txt", "a" * 210 + "1.txt"])
def test_an_output_may_have_any_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    interrupted(Path("a" * 210 + "2.txt"), 0)  # a long name that begins alike is another job
    interrupted(tmp_path / name, 0)
    with job(Path(name), resume=True) as work:
        assert len(work.parts) == 1
        add(work, 1)
