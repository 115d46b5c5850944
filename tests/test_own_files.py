"""Files of ours in a user's folder: no link is followed, nobody else reads them, what a killed run left is swept."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from secrecy import assert_error

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io import atomic
from dptext.io.atomic import (
    atomic_file,
    atomic_folder,
    check_released,
    check_target,
    hashed_file,
    open_new,
    open_own,
    scratch_folder,
    sibling,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, permissions and signals of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def victim(tmp_path):
    """A file elsewhere that nothing may touch."""
    place = tmp_path / "elsewhere" / "victim"
    place.parent.mkdir()
    place.write_bytes(b"years of work")
    place.chmod(0o644)
    yield place
    assert place.read_bytes() == b"years of work"
    assert mode(place) == 0o644
    assert os.listdir(place.parent) == ["victim"]


@pytest.fixture
def out(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work" / "out.txt"


@pytest.fixture
def usual_mask():
    before = os.umask(0o022)
    yield
    os.umask(before)


# -- opening --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "link that leads nowhere", "hard link", "pipe", "folder"])
def test_what_was_planted_is_neither_followed_nor_opened(out, victim, kind):
    planted = sibling(out, "rows")
    {
        "link": lambda: planted.symlink_to(victim),
        "link that leads nowhere": lambda: planted.symlink_to(victim.with_name("new")),
        "hard link": lambda: planted.hardlink_to(victim),
        "pipe": lambda: os.mkfifo(planted),
        "folder": planted.mkdir,
    }[kind]()
    message = assert_error(StorageError, lambda: open_own(planted), "not a file that dptext made; move it away")
    assert len(message.splitlines()) == 1
    with pytest.raises(FileExistsError):
        open_new(planted)
    assert os.path.lexists(planted)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to give a file away")
def test_a_file_of_another_user_is_refused(out):
    planted = sibling(out, "rows")
    planted.touch(mode=0o666)
    os.chown(planted, 12345, -1)
    assert_error(StorageError, lambda: open_own(planted), "a file of another user")


def test_a_file_of_ours_loses_the_rights_of_others(out):
    out.touch(mode=0o666)
    out.chmod(0o666)
    with open_own(out) as stream:
        assert mode(out) == 0o600
        stream.write(b"x")
    with open_own(out) as stream:
        assert stream.read() == b"x"


@pytest.mark.parametrize("name", ["part", "2.part"])
@pytest.mark.parametrize("without", [None, "O_TMPFILE"])
def test_a_planted_link_does_not_stop_a_file_from_being_written(out, victim, monkeypatch, usual_mask, name, without):
    if without is not None and hasattr(os, without):
        monkeypatch.delattr(os, without)
    planted = sibling(out, name)
    planted.symlink_to(victim)
    written(out)
    assert out.read_bytes() == b"x"
    assert mode(out) == 0o644
    assert {path.name for path in out.parent.iterdir()} <= {"out.txt", planted.name}


def written(path, **how):
    with hashed_file(path, **how) as stream:
        stream.write(b"x")


@pytest.mark.parametrize("kind", ["link", "link that leads nowhere", "device", "pipe", "folder"])
def test_only_a_regular_file_is_replaced(out, victim, kind):
    {
        "link": lambda: out.symlink_to(victim),
        "link that leads nowhere": lambda: out.symlink_to(victim.with_name("new")),
        "device": lambda: out.symlink_to(os.devnull),
        "pipe": lambda: os.mkfifo(out),
        "folder": out.mkdir,
    }[kind]()
    before = out.lstat()
    assert_error(StorageError, lambda: written(out), "not a regular file")
    assert os.path.samestat(before, out.lstat())
    assert os.listdir(out.parent) == [out.name]


# -- rights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
@pytest.mark.parametrize("without", [None, "O_TMPFILE"])
def test_others_get_their_rights_after_the_rename_and_not_before(out, monkeypatch, mask, without):
    if without is not None and hasattr(os, without):
        monkeypatch.delattr(os, without)
    seen = set()
    replace = Path.replace

    def watched(path, target):
        seen.add(mode(path))
        replace(path, target)
        seen.add(mode(target))

    monkeypatch.setattr(Path, "replace", watched)
    before = os.umask(mask)
    try:
        with hashed_file(out) as stream:
            stream.write(b"x")
            (part,) = out.parent.iterdir()
            seen.add(mode(part))
        assert seen == {0o600}
        assert mode(out) == 0o666 & ~mask
        with atomic_folder(out.parent / "folder") as part:
            assert mode(part) == 0o700
            (part / "file").write_bytes(b"x")
        assert mode(out.parent / "folder") == 0o777 & ~mask
        assert mode(out.parent / "folder" / "file") == 0o666 & ~mask
    finally:
        os.umask(before)
    assert sorted(os.listdir(out.parent)) == ["folder", "out.txt"]


def test_a_file_for_its_owner_stays_that(out, usual_mask):
    written(out, owner_only=True)
    assert mode(out) == 0o600


# -- what a killed run left -----------------------------------------------------------------------------------

KILLED = """
import os, pathlib, signal, sys
from dptext.io import atomic

out = pathlib.Path(sys.argv[1])
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "file":
    with atomic.hashed_file(out) as stream:
        stream.write(b"half")
        stream.flush()
        kill()
elif sys.argv[2] == "folder":
    with atomic.atomic_folder(out) as part:
        (part / "config.json").write_text("{}")
        kill()
elif sys.argv[2] == "folder that replaces":
    rename = pathlib.Path.rename
    pathlib.Path.rename = lambda path, target: (kill() if path.name.endswith(".part") else rename(path, target))
    with atomic.atomic_folder(out, replace=True) as part:
        (part / "new").write_text("new")
elif sys.argv[2] == "folder that has replaced":
    atomic.shutil.rmtree = lambda path, **_: kill()
    with atomic.atomic_folder(out, replace=True) as part:
        (part / "new").write_text("new")
elif sys.argv[2] == "before the rights":
    atomic._give_rights = lambda *_: kill()
    with atomic.hashed_file(out) as stream:
        stream.write(b"x")
else:
    with atomic.scratch_folder() as folder:
        (folder / "work").write_bytes(b"x")
        print(folder, flush=True)
        kill()
"""


def killed(out, how):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, os.fspath(out), how], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.strip()


def test_what_a_killed_run_left_goes_with_the_next_one(out):
    killed(out, "file")
    (left,) = out.parent.iterdir()
    assert (left.name, mode(left)) == (".out.txt.part", 0o600)
    written(out)
    assert os.listdir(out.parent) == ["out.txt"]


def test_a_folder_that_a_killed_run_left_goes_and_is_no_release(out):
    killed(out, "folder")
    (left,) = out.parent.iterdir()
    assert (left.name, mode(left)) == (".out.txt.part", 0o700)
    assert_error(DataError, lambda: check_released(left / "config.json"), "was never released")
    with atomic_folder(out) as part:
        assert os.listdir(part) == []
    assert os.listdir(out.parent) == ["out.txt"]


def test_a_folder_that_was_to_be_replaced_comes_back(out):
    out.mkdir()
    (out / "old").write_text("old")
    killed(out, "folder that replaces")
    assert not out.exists()
    assert os.listdir(out.parent) == ["out.txt"]
    assert os.listdir(out) == ["old"]


def test_a_folder_that_was_replaced_goes(out):
    out.mkdir()
    (out / "old").write_text("old")
    killed(out, "folder that has replaced")
    assert os.listdir(out.parent) == ["out.txt"]
    assert os.listdir(out) == ["new"]


def test_a_run_that_is_killed_between_rename_and_rights_leaves_a_file_for_its_owner(out, usual_mask):
    killed(out, "before the rights")
    assert mode(out) == 0o600
    written(out)
    assert mode(out) == 0o644


def test_what_another_process_is_writing_stays(out):
    with hashed_file(out) as first:
        first.write(b"first")
        with hashed_file(out) as second:
            second.write(b"second")
            assert sorted(path.name for path in out.parent.iterdir()) == [".out.txt.2.part", ".out.txt.part"]
        assert out.read_bytes() == b"second"
    assert out.read_bytes() == b"first"


def test_a_sweeper_that_is_faster_than_the_lock_does_no_harm(out, monkeypatch):
    made = open_new

    def swept(path):
        stream = made(path)
        monkeypatch.setattr(atomic, "open_new", made)
        sweep(out)  # before it is locked
        assert not path.exists()
        return stream

    monkeypatch.setattr(atomic, "open_new", swept)
    written(out)
    assert out.read_bytes() == b"x"
    assert os.listdir(out.parent) == ["out.txt"]


def test_where_there_are_no_locks_nothing_is_swept(out, monkeypatch):
    killed(out, "file")
    monkeypatch.setattr(atomic, "lock", lambda _: None)
    for _ in range(2):
        written(out)
    assert sorted(os.listdir(out.parent)) == [".out.txt.part", "out.txt"]


def test_a_file_that_only_looks_like_a_replaced_folder_stays(out):
    (out.parent / ".out.txt.replaced").write_text("mine")
    written(out)
    assert sorted(os.listdir(out.parent)) == [".out.txt.replaced", "out.txt"]


CROWD = """
import pathlib, sys
from dptext.io import atomic
for _ in range(20):
    with atomic.hashed_file(pathlib.Path(sys.argv[1])) as stream:
        stream.write(sys.argv[2].encode() * 1000)
"""


def test_many_processes_may_write_one_file(out):
    crowd = [subprocess.Popen([sys.executable, "-c", CROWD, os.fspath(out), str(n)]) for n in range(6)]
    assert [each.wait(300) for each in crowd] == [0] * 6
    assert out.read_bytes() in [b"%d" % n * 1000 for n in range(6)]
    assert os.listdir(out.parent) == ["out.txt"]


def test_names_that_are_all_taken_are_an_error_that_says_so(out):
    for number in range(1, atomic._WRITERS + 1):
        sibling(out, "part" if number == 1 else f"{number}.part").symlink_to("nowhere")
    assert_error(StorageError, lambda: written(out), "all its temporary names are taken")
    assert_error(StorageError, lambda: whole(out), "all its temporary names are taken")


def whole(path):
    with atomic_folder(path):
        pass


def test_the_folder_that_processes_share_is_swept_by_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    left = Path(killed(tmp_path, "scratch"))
    assert (left.parent, mode(left)) == (tmp_path, 0o700)
    with scratch_folder() as first:
        assert not left.exists()
        with scratch_folder() as second:
            assert sorted(tmp_path.iterdir()) == sorted([first, second])
    assert os.listdir(tmp_path) == []


# -- before the work ------------------------------------------------------------------------------------------


def test_a_target_that_would_destroy_something_is_refused(out, victim):
    def refused(target, kind, *parts, replace=True, **apart_from):
        assert_error(kind, lambda: check_target(target, replace=replace, apart_from=apart_from), *parts)

    (out.parent / "folder").mkdir()
    (out.parent / "link.txt").symlink_to(victim)
    (out.parent / "other.txt").hardlink_to(victim)
    os.mkfifo(out.parent / "pipe.txt")
    refused(Path(os.devnull), ParameterError, "is a device, not a regular file")
    refused(out.parent / "pipe.txt", ParameterError, "is a pipe, not a regular file")
    refused(out.parent / "link.txt", ParameterError, "is a link, not a regular file")
    refused(out.parent / "folder", ParameterError, "is a folder: name a file in it")
    refused(victim, ParameterError, "is there already", "--force", replace=False)
    refused(out.parent / "no" / "out.txt", StorageError, "the folder around it is not there; make it first")
    refused(victim / "out.txt", StorageError, "is no folder")
    for name in ("link.txt", "other.txt"):
        refused(out.parent / name, ParameterError, "is the same file as IN", IN=[victim])
    refused(out, ParameterError, "is the same file as ledger", ledger=[out.parent / "folder" / ".." / "out.txt"])
    check_target(out, replace=False, apart_from={"IN": [victim]})
    check_target(out.parent / "no" / "out.txt", replace=False, apart_from={}, makes_folder=True)
    (out.parent / "other.txt").unlink()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_file_that_fails_leaves_nothing(out, error):
    with pytest.raises((KeyboardInterrupt, StorageError)), atomic_file(out):
        raise error
    assert os.listdir(out.parent) == []
