"""Tests of jobs: finished parts are complete after any crash, the secret is private, each text has one noise."""

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
from secrecy import MARKER, assert_error

OPTIONS = {"epsilon": 5.0, "text": "text", "keep": ["stars"], "output": {"kind": ".txt", "compression": ""}}
DATA = [b"first\n", b"second part\n", b"", b"fourth\nof two rows\n"]
posix = pytest.mark.skipif(os.name == "nt", reason="permissions and signals of POSIX")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.txt"


def job(out, *, options=OPTIONS, seed=7, release_id="release", **extra):
    return Job(out, options, key=NoiseKey(seed), release_id=release_id, **extra)


def digest(data):
    return hashlib.sha256(data).digest()


def add(work, *places):
    for place in places:
        data = DATA[place]
        rejects = [Reject("in.jsonl", place + 1, "why")] if place % 2 else []
        work.add(data, digest=digest(data), rows=data.count(b"\n"), facts={"words": place}, rejects=rejects)


def hidden(out):
    return {path.name.removeprefix(f".{out.name}.") for path in out.parent.iterdir() if path.name.startswith(".")}


def interrupted(out, *places, **extra):
    """A job that did these parts and was stopped."""
    with job(out, **extra) as work:
        add(work, *places)
        return work.key.secret()


def finish(work, out):
    """Complete a job: its missing parts, then its end."""
    for place, data in enumerate(DATA):
        if not work.is_done(place, digest(data)):
            add(work, place)
    if work.is_assembled:
        with work.assembled() as (blocks, stream):
            stream.write(b"made of\n" + blocks.read_bytes())
    work.remember("statement")
    work.publish()
    assert sibling(out, "job").exists()  # until the ledger knows that it is out
    work.discard()
    whole = b"".join(DATA)
    assert out.read_bytes() == (b"made of\n" + whole if work.is_assembled else whole)
    assert os.listdir(out.parent) == [out.name]


# -- without interruption -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_assembled", [False, True])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_job_writes_its_parts_and_leaves_nothing_else(out, is_assembled, old):
    if old is not None:
        out.write_bytes(old)
    with job(out, is_assembled=is_assembled) as work:
        assert (work.parts, work.rows, work.size, work.statement, work.is_published) == ([], 0, 0, None, False)
        assert Job.is_open(out)
        add(work, 0, 1)
        assert (work.rows, work.size) == (2, len(DATA[0] + DATA[1]))
        assert work.parts[1] == Part(digest(DATA[1]), 2, work.size, digest(DATA[1]), {"words": 1})
        assert out.exists() == (old is not None)
        finish(work, out)
    assert not Job.is_open(out)


def test_the_output_is_replaced_by_one_rename(out, monkeypatch):
    out.write_bytes(b"old")
    seen = []
    replace = Path.replace

    def watched(path, target):
        seen.append((path.read_bytes(), out.read_bytes()))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", watched)
    with job(out) as work:
        finish(work, out)
    assert seen == [(b"".join(DATA), b"old")]


def test_a_job_without_parts_writes_an_empty_file(out):
    with job(out) as work:
        work.remember("statement")
        work.publish()
        work.discard()
    assert out.read_bytes() == b""
    assert os.listdir(out.parent) == [out.name]


def test_rejects_come_back_in_order(out):
    rejects = [Reject("b.txt", 5, "one"), Reject("a.txt", 1, "two é"), Reject("b.txt", 2, "three")]
    with job(out) as work:
        work.add(b"x", digest=b"d", rows=1, facts={}, rejects=rejects[:2])
        work.add(b"x", digest=b"d", rows=1, facts={}, rejects=rejects[2:])
    with job(out, resume=True) as work:
        assert list(work.rejects()) == rejects


@posix
def test_a_reject_may_come_from_a_file_whose_name_is_not_utf8(out):
    rejects = [Reject(os.fsdecode(b"a\xff.txt"), 1, "why")]
    with job(out) as work:
        work.add(b"x", digest=b"d", rows=1, facts={}, rejects=rejects)
        assert [reject.row for reject in work.rejects()] == [1]


def test_a_closed_job_takes_no_part(out):
    work = job(out)
    work.close()
    work.close()
    with pytest.raises(ValueError, match="closed"):
        add(work, 0)


# -- interrupted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_assembled", [False, True])
@pytest.mark.parametrize("done", range(5))
def test_an_interrupted_job_goes_on_where_it_was(out, is_assembled, done):
    secret = interrupted(out, *range(done), seed=None, is_assembled=is_assembled)
    assert not out.exists()
    with job(out, seed=None, release_id="another", resume=True, is_assembled=is_assembled) as work:
        assert (work.release_id, work.key.secret(), work.key.seeded) == ("release", secret, False)
        assert [part.digest for part in work.parts] == [digest(data) for data in DATA[:done]]
        assert [dict(part.facts) for part in work.parts] == [{"words": n} for n in range(done)]
        assert (work.size, work.rows) == (len(b"".join(DATA[:done])), b"".join(DATA[:done]).count(b"\n"))
        assert [reject.row for reject in work.rejects()] == [n + 1 for n in range(done) if n % 2]
        finish(work, out)


@pytest.mark.parametrize("garbage", [b"x", b"half of the third part" * 1000])
def test_bytes_behind_the_last_part_that_counts_are_cut_off(out, garbage):
    interrupted(out, 0, 1)
    with sibling(out, "rows").open("ab") as stream:
        stream.write(garbage)
    with job(out, resume=True) as work:
        assert sibling(out, "rows").read_bytes() == DATA[0] + DATA[1]
        finish(work, out)


def test_parts_that_were_deleted_are_named(out):
    interrupted(out, 0, 1)
    sibling(out, "rows").unlink()
    assert_error(DataError, lambda: job(out, resume=True), "was changed since the job wrote it")
    assert Job.is_open(out)


def change(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("place", [0, len(DATA[0]), -1])
def test_parts_that_were_edited_are_noticed(out, place):
    interrupted(out, 0, 1, 2, 3)
    change(sibling(out, "rows"), place)
    message = assert_error(DataError, lambda: job(out, resume=True))
    assert message == (f"{str(sibling(out, 'rows'))!r} was changed since the job wrote it: add --force to start over")
    with job(out, restart=True) as work:
        finish(work, out)


@posix
@pytest.mark.parametrize("name", ["rows", "made", "job"])
@pytest.mark.parametrize("leads", ["to a file", "nowhere"])
def test_no_link_that_was_planted_is_followed(out, tmp_path, name, leads):
    victim = tmp_path / "elsewhere" / "victim"
    victim.parent.mkdir()
    if leads == "to a file":
        victim.write_bytes(b"years of work")
    sibling(out, name).symlink_to(victim)
    with contextlib.suppress(StorageError), job(out, is_assembled=True) as work:
        add(work, *range(len(DATA)))
        with work.assembled() as (blocks, stream):
            stream.write(b"made of\n" + blocks.read_bytes())
        work.remember("statement")
        work.publish()
    assert os.listdir(victim.parent) == (["victim"] if leads == "to a file" else [])
    assert leads == "nowhere" or victim.read_bytes() == b"years of work"


@posix
@pytest.mark.parametrize("is_assembled", [False, True])
def test_nobody_else_reads_what_is_not_published(out, monkeypatch, is_assembled):
    modes = set()
    before = os.umask(0o022)
    replace = Path.replace

    def watched(path, target):
        modes.add(stat.S_IMODE(path.stat().st_mode))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", watched)
    try:
        with job(out, is_assembled=is_assembled) as work:
            finish(work, out)
    finally:
        os.umask(before)
    assert modes == {0o600}
    assert stat.S_IMODE(out.stat().st_mode) == 0o644


@posix
def test_a_job_that_was_killed_before_others_got_their_rights_gives_them(out, monkeypatch):
    before = os.umask(0o022)
    try:
        with job(out) as work, monkeypatch.context() as patch:
            add(work, *range(len(DATA)))
            work.remember("statement")
            patch.setattr(atomic, "set_default_mode", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                work.publish()
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
        with job(out, resume=True) as work:
            assert work.is_published
            work.publish()
            work.discard()
        assert stat.S_IMODE(out.stat().st_mode) == 0o644
    finally:
        os.umask(before)
    assert os.listdir(out.parent) == [out.name]


@pytest.mark.parametrize("extra", [{}, {"resume": True}, {"restart": True}])
def test_a_job_that_was_stopped_before_it_began_begins(out, extra):
    sibling(out, "job").touch(mode=0o600)
    with job(out, **extra) as work:
        assert not work.parts
        finish(work, out)


def test_a_job_without_parts_is_no_job_to_go_on_with(out):
    interrupted(out, seed=8, options={})
    with job(out) as work:
        finish(work, out)


def test_parts_of_a_job_that_is_gone_are_thrown_away(out):
    sibling(out, "rows").write_bytes(b"of another time" * 100)
    with job(out) as work:
        finish(work, out)


def test_to_resume_what_is_not_there_is_to_begin(out):
    with job(out, resume=True) as work:
        finish(work, out)


def test_a_job_is_interrupted_again_and_again(out):
    interrupted(out, 0)
    for place in (1, 2):
        with job(out, resume=True) as work:
            add(work, place)
    with job(out, resume=True) as work:
        assert len(work.parts) == 3
        finish(work, out)


LOOP = """
import hashlib, pathlib, sys
from dptext.privacy.randomness import NoiseKey
from dptext.io.batches import Reject
from dptext.release.job import Job

with Job(pathlib.Path(sys.argv[1]), {}, key=NoiseKey(), release_id="r", resume=True) as job:
    for place in range(len(job.parts), 100_000):
        data = f"part {place}\\n".encode() * (1 + place * 37 % 200)
        digest = hashlib.sha256(data).digest()
        rejects = [Reject("in", place + 1, "why")]
        job.add(data, digest=digest, rows=1, facts={"place": place}, rejects=rejects)
        print(place, flush=True)
"""


@posix
def test_parts_that_count_are_whole_whenever_the_process_is_killed(out):
    counted = 0
    secrets = set()
    for parts in (3, 8, 1, 5):
        command = [sys.executable, "-c", LOOP, os.fspath(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(parts):
                counted = int(process.stdout.readline()) + 1
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        with Job(out, {}, key=NoiseKey(), release_id="another", resume=True) as work:
            secrets.add(work.key.secret())
            assert work.release_id == "r"
            assert len(work.parts) >= counted
            assert [reject.row for reject in work.rejects()] == list(range(1, len(work.parts) + 1))
            content = sibling(out, "rows").read_bytes()
            assert len(content) == work.size
            start = 0
            for place, part in enumerate(work.parts):
                assert hashlib.sha256(content[start : part.size]).digest() == part.digest
                assert part.facts == {"place": place}
                assert part.rows == place + 1
                start = part.size
    assert len(secrets) == 1
    assert counted >= 17


# -- interrupted at its end -----------------------------------------------------------------------------------


def stopped_at(out, stage, is_assembled):
    """A job that was stopped at some point of its end."""
    with job(out, is_assembled=is_assembled) as work:
        add(work, *range(len(DATA)))
        if stage == "before it was assembled":
            return
        if is_assembled:
            with work.assembled() as (blocks, stream):
                stream.write(b"made of\n" + blocks.read_bytes())
        if stage == "before the statement":
            return
        work.remember("statement")
        if stage == "before the rename":
            return
        work.publish()
        if stage == "while it was tidied up":
            sibling(out, "rows").unlink(missing_ok=True)


@pytest.mark.parametrize("is_assembled", [False, True])
@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize(
    "stage",
    [
        "before it was assembled",
        "before the statement",
        "before the rename",
        "after the rename",
        "while it was tidied up",
    ],
)
def test_a_job_that_was_stopped_at_its_end_ends(out, stage, is_assembled, old):
    if old is not None:
        out.write_bytes(old)
    stopped_at(out, stage, is_assembled)
    is_renamed = stage in ("after the rename", "while it was tidied up")
    is_remembered = is_renamed or stage == "before the rename"
    with job(out, resume=True, is_assembled=is_assembled) as work:
        assert len(work.parts) == len(DATA)
        assert [reject.row for reject in work.rejects()] == [2, 4]
        assert work.is_published == is_renamed
        assert work.statement == ("statement" if is_remembered else None)
        assert out.exists() == (is_renamed or old is not None)
        if is_remembered:
            work.publish()
            work.discard()
        else:
            finish(work, out)
    assert out.read_bytes() == (b"made of\n" if is_assembled else b"") + b"".join(DATA)
    assert os.listdir(out.parent) == [out.name]


@pytest.mark.parametrize("is_assembled", [False, True])
def test_a_job_whose_output_is_nowhere_is_not_published(out, is_assembled):
    with job(out, is_assembled=is_assembled) as work:
        finish_but_publish(work)
    (sibling(out, "made") if is_assembled else sibling(out, "rows")).unlink()
    try:
        with job(out, resume=True, is_assembled=is_assembled) as work:
            assert not work.is_published
    except DataError as error:
        assert "--force" in str(error)


def finish_but_publish(work):
    add(work, *range(len(DATA)))
    if work.is_assembled:
        with work.assembled() as (_, stream):
            stream.write(b"made")
    work.remember("statement")


def test_a_file_that_was_half_made_is_not_there(out):
    with job(out, is_assembled=True) as work:
        add(work, 0)
        with pytest.raises(RuntimeError), work.assembled() as (_, stream):
            stream.write(b"half")
            raise RuntimeError
        assert hidden(out) == {"job", "rows"}
    with job(out, resume=True, is_assembled=True) as work:
        finish(work, out)


@pytest.mark.parametrize("error", [RefusedError("no"), DataError("no"), ValueError("no"), TypeError("no")])
def test_an_error_while_the_output_is_made_is_that_error(out, error):
    # not "the job is damaged": it is not
    with job(out, is_assembled=True) as work:
        add(work, 0)
        with pytest.raises(type(error), match=r"^no$"), work.assembled():
            raise error
    with job(out, resume=True, is_assembled=True) as work:
        finish(work, out)


# -- what else may have happened ------------------------------------------------------------------------------


def test_an_interrupted_job_is_never_overlooked(out):
    interrupted(out, 0)
    assert assert_error(ParameterError, lambda: job(out)) == (
        f"a run of {str(out)!r} was interrupted: add --resume to continue it, or --force to start over "
        "(a ledger then counts both)"
    )
    assert sibling(out, "rows").read_bytes() == DATA[0]


@pytest.mark.parametrize("is_assembled", [False, True])
def test_to_restart_is_to_forget_all(out, is_assembled):
    secret = interrupted(out, 0, 1, seed=None, is_assembled=is_assembled)
    with job(out, seed=None, options={}, release_id="new", restart=True, is_assembled=is_assembled) as work:
        assert work.release_id == "new"
        assert work.key.secret() != secret
        assert (work.parts, list(work.rejects()), work.statement) == ([], [], None)
        assert sibling(out, "rows").read_bytes() == b""
        finish(work, out)


def test_to_restart_a_published_job_is_to_forget_it(out):
    stopped_at(out, "after the rename", False)
    with job(out, restart=True) as work:
        assert not work.is_published
        assert out.exists()
        finish(work, out)


@pytest.mark.parametrize("at", range(3))
def test_a_discard_that_is_cut_off_is_finished_by_the_next_run(out, monkeypatch, at):
    work = job(out)
    work.close()
    for name in Job.files(out):
        name.touch(mode=0o600)
    unlink = Path.unlink
    removed = []

    def cut_off(path, **options):
        if len(removed) == at:
            raise KeyboardInterrupt
        removed.append(path)
        unlink(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", cut_off)
        with pytest.raises(KeyboardInterrupt):
            work.discard()
    assert Job.is_open(out)


@pytest.mark.parametrize("is_assembled", [False, True])
def test_to_discard_is_to_leave_nothing(out, is_assembled):
    out.write_bytes(b"old")
    with job(out, is_assembled=is_assembled) as work:
        finish_but_publish(work)
        work.discard()
        assert os.listdir(out.parent) == [out.name]
    assert out.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("options", "seed", "changed"),
    [
        ({**OPTIONS, "epsilon": 5.5}, 7, "epsilon"),
        ({**OPTIONS, "keep": []}, 7, "keep"),
        ({**OPTIONS, "keep": [], "epsilon": 1}, 7, "epsilon, keep"),
        ({**OPTIONS, "new": 1}, 7, "new"),
        ({name: value for name, value in OPTIONS.items() if name != "text"}, 7, "text"),
        ({**OPTIONS, "output": {"kind": ".txt", "compression": ".gz"}}, 7, "output"),
        (OPTIONS, 8, "seed"),
        (OPTIONS, None, "seed"),
        ({**OPTIONS, "text": MARKER}, 8, "text, seed"),
    ],
)
def test_another_job_is_refused_and_what_differs_is_named(out, options, seed, changed):
    interrupted(out, 0)
    message = assert_error(ParameterError, lambda: job(out, options=options, seed=seed, resume=True))
    assert message == (
        f"the interrupted run of {str(out)!r} had other options ({changed} changed): repeat them, or add --force "
        "to start over"
    )
    with job(out, resume=True) as work:
        finish(work, out)


def test_a_seed_that_was_not_there_is_another_job(out):
    interrupted(out, 0, seed=None)
    assert_error(ParameterError, lambda: job(out, seed=7, resume=True), "(seed changed)")


def test_options_are_compared_as_they_are_remembered(out):
    interrupted(out, 0, options={"keep": ("a", "b"), "x": {"1": None}, "none": None})
    with job(out, options={"x": {"1": None}, "keep": ["a", "b"]}, resume=True) as work:
        assert len(work.parts) == 1


def test_other_content_is_refused(out):
    interrupted(out, 0, 1)
    with job(out, resume=True) as work:
        assert work.is_done(0, digest(DATA[0]))
        message = assert_error(RefusedError, lambda: work.is_done(1, digest(MARKER.encode())))
        assert message == (
            f"the input has changed since the run of {str(out)!r} was interrupted, in a part that is done: add --force "
            "to start over"
        )
        assert not work.is_done(2, digest(b"anything"))


def test_an_output_that_has_appeared_meanwhile_is_not_overwritten(out):
    interrupted(out, 0)
    out.write_bytes(b"of somebody else")
    assert assert_error(ParameterError, lambda: job(out, resume=True)) == (
        f"{str(out)!r} has appeared since the interruption: move it away, then --resume"
    )
    assert out.read_bytes() == b"of somebody else"
    out.unlink()
    with job(out, resume=True) as work:
        finish(work, out)


def test_an_output_that_was_to_be_replaced_is_replaced_still(out):
    out.write_bytes(b"old")
    interrupted(out, 0)
    with job(out, resume=True) as work:
        finish(work, out)


# -- damaged --------------------------------------------------------------------------------------------------


def test_a_job_that_is_damaged_anywhere_is_one_of_our_errors(out):
    interrupted(out, 0, 1, 2, 3)
    book, rows = sibling(out, "job"), sibling(out, "rows").read_bytes()
    good = book.read_bytes()
    for place in range(0, len(good), 41):
        book.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        sibling(out, "rows").write_bytes(rows)
        try:
            with job(out, resume=True) as work:
                list(work.rejects())
        except DptextError as error:
            assert len(str(error).splitlines()) == 1
    for size in range(0, len(good), 97):
        book.write_bytes(good[:size])
        sibling(out, "rows").write_bytes(rows)
        try:
            job(out, resume=True).close()
        except DptextError as error:
            assert len(str(error).splitlines()) == 1


def change_line(out, place, **values):
    lines = sibling(out, "job").read_text().splitlines()
    lines[place] = json.dumps({**json.loads(lines[place]), **values})
    sibling(out, "job").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("place", "values"),
    [
        (0, {"version": 99}),
        (0, {"secret": "00"}),
        (0, {"secret": None}),
        (0, {"options": [1]}),
        (1, {"facts": None}),
        (1, {"facts": {"rows": 1e999}}),
        (1, {"size": None}),
        (1, {"size": -1}),
        (1, {"digest": "no hexadecimal"}),
        (1, {"rejects": [{}]}),
        (None, MARKER * 100),
        (None, "[" * 100_000),
        (None, "[1]"),
    ],
)
def test_a_damaged_job_is_named_and_can_be_started_over(out, place, values):
    interrupted(out, 0, 1)
    if place is None:
        sibling(out, "job").write_text(values + "\n")
    else:
        change_line(out, place, **values)
    message = assert_error(DataError, lambda: job(out, resume=True))
    assert "add --force to start over" in message
    assert MARKER not in message
    with job(out, restart=True) as work:
        finish(work, out)


def test_a_line_that_is_not_whole_does_not_count(out):
    interrupted(out, 0, 1)
    log = sibling(out, "job")
    log.write_bytes(log.read_bytes()[:-1])
    with job(out, resume=True) as work:
        assert len(work.parts) == 1
        finish(work, out)


# -- two processes --------------------------------------------------------------------------------------------

HOLD = """
import pathlib, sys
from dptext.privacy.randomness import NoiseKey
from dptext.release.job import Job

with Job(pathlib.Path(sys.argv[1]), {}, key=NoiseKey(), release_id="r") as job:
    job.add(b"x", digest=b"d", rows=1, facts={}, rejects=[])
    print("here", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("extra", [{"resume": True}, {"restart": True}, {}])
def test_a_second_process_at_the_same_job_is_refused(out, extra):
    command = [sys.executable, "-c", HOLD, os.fspath(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "here\n"
        message = assert_error(StorageError, lambda: job(out, options={}, **extra))
        assert message == f"another process is writing {str(out)!r}: wait for it, or stop it"
        assert sibling(out, "rows").read_bytes() == b"x"
        process.stdin.close()
        assert process.wait(600) == 0
    with job(out, options={}, seed=None, resume=True) as work:
        assert len(work.parts) == 1


def test_a_second_job_in_the_same_process_is_refused(out):
    with job(out) as work:
        add(work, 0)
        for settings in ({"resume": True}, {"restart": True}):
            assert_error(StorageError, lambda extra=settings: job(out, **extra), "another process is writing")
        add(work, 1)
        finish(work, out)


def test_who_begins_at_the_same_moment_neither_wins_nor_destroys(out, monkeypatch):
    # another process makes the file between our look and our own making of it
    with job(out) as work:
        monkeypatch.setattr(Job, "is_open", staticmethod(lambda _: False))
        message = assert_error(StorageError, lambda: job(out))
        assert message == f"another process is writing {str(out)!r}: wait for it, or stop it"
        add(work, 0)
        assert {"job", "rows"} <= hidden(out)
        finish(work, out)


@posix
def test_the_log_is_its_owners_alone(out):
    before = os.umask(0)
    try:
        with job(out, seed=None) as work:
            add(work, 0)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in out.parent.iterdir()}
            assert work.key.secret().hex() in sibling(out, "job").read_text()
            finish(work, out)
    finally:
        os.umask(before)
    assert modes == {".out.txt.job": 0o600, ".out.txt.rows": 0o600}


# -- the secret -----------------------------------------------------------------------------------------------


def test_the_secret_of_a_job_that_was_thrown_away_is_not_in_the_new_one(out):
    secret = interrupted(out, 0, seed=None)
    with job(out, seed=None, restart=True):
        pass
    assert all(secret.hex().encode() not in path.read_bytes() for path in out.parent.iterdir())


# -- disks that fail ------------------------------------------------------------------------------------------


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


NO_SPACE = "cannot write {!r}: No space left on device"


def test_a_disk_that_is_full_leaves_a_job_that_goes_on(out, monkeypatch):
    with job(out) as work:
        add(work, 0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            assert assert_error(StorageError, lambda: add(work, 1)) == NO_SPACE.format(str(out))
        assert len(work.parts) == 1
    with job(out, resume=True) as work:
        assert len(work.parts) == 1
        finish(work, out)


class FullStream:
    """A file on a disk that is full."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, data):
        self._stream.write(data[: len(data) // 2])
        full()

    def __getattr__(self, name):
        return getattr(self._stream, name)


def test_a_disk_that_is_full_after_half_a_part_leaves_a_job_that_goes_on(out):
    with job(out) as work:
        add(work, 0)
        work._spool = FullStream(work._spool)
        assert assert_error(StorageError, lambda: add(work, 1)) == NO_SPACE.format(str(out))
    with job(out, resume=True) as work:
        assert len(work.parts) == 1
        finish(work, out)


def test_a_part_that_failed_may_be_tried_again(out, monkeypatch):
    with job(out) as work:
        add(work, 0)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            assert_error(StorageError, lambda: add(work, 1))
        finish(work, out)


@pytest.mark.parametrize("is_assembled", [False, True])
def test_a_disk_that_is_full_at_the_end_leaves_a_job_that_goes_on(out, monkeypatch, is_assembled):
    with job(out, is_assembled=is_assembled) as work:
        add(work, *range(len(DATA)))
        if is_assembled:
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", full)

                def make():
                    with work.assembled() as (_, stream):
                        stream.write(b"made")

                assert_error(StorageError, make, "cannot write", "No space left on device")
            with work.assembled() as (_, stream):
                stream.write(b"made")
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", full)
            assert_error(StorageError, work.publish, "cannot write", "No space left on device")
    with job(out, resume=True, is_assembled=is_assembled) as work:
        finish(work, out)


def test_a_missing_folder_is_a_storage_error(tmp_path):
    out = tmp_path / "no" / "out.txt"
    assert assert_error(StorageError, lambda: job(out)) == f"cannot write {str(out)!r}: No such file or directory"
    (tmp_path / "file").write_text("x")
    out = tmp_path / "file" / "out.txt"
    assert assert_error(StorageError, lambda: job(out)) == f"cannot write {str(out)!r}: Not a directory"


@posix
def test_a_read_only_folder_is_a_storage_error(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o500)
    out = folder / "out.txt"
    try:
        if os.access(folder, os.W_OK):  # this user may write everywhere

            def refuse(*_):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))

            monkeypatch.setattr(os, "open", refuse)
            assert_error(StorageError, lambda: job(out), "cannot write", "Read-only file system")
        else:
            assert_error(StorageError, lambda: job(out), "cannot write", "Permission denied")
        monkeypatch.undo()
    finally:
        folder.chmod(0o700)
    assert os.listdir(folder) == []


def test_a_folder_in_place_of_the_output_is_a_storage_error_and_stays(out):
    with job(out) as work:
        finish_but_publish(work)
        out.mkdir()
        assert_error(StorageError, work.publish, "has appeared during the run")
    assert out.is_dir()
    assert Job.is_open(out)


# -- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a b.txt", "ü😀.txt", "what?mode=ro#x%20.txt", "a" * 251 + ".txt"])
@posix
def test_an_output_may_have_any_name(tmp_path, name):
    out = tmp_path / name
    interrupted(out, 0)
    with job(out, resume=True) as work:
        finish(work, out)


def test_jobs_of_names_that_begin_alike_are_two(tmp_path):
    one, other = tmp_path / ("a" * 210 + "1.txt"), tmp_path / ("a" * 210 + "2.txt")
    interrupted(one, 0)
    with job(other) as work:
        assert work.parts == []


def test_an_output_may_be_named_from_where_we_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = Path("out.txt")
    interrupted(out, 0)
    with job(out, resume=True) as work:
        finish(work, out)
