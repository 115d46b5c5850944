"""A file or folder appears completely or not at all; others never read it before; nothing foreign is touched."""

import errno
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.artifacts import digest_of_parts, file_digest, folder_digest
from dptext.io.atomic import (
    atomic_folder,
    check_new_folder,
    check_released,
    check_target,
    file_lock,
    hashed_file,
    open_new,
    open_own,
    scratch_folder,
    sibling,
)
from secrecy import assert_error

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, permissions and signals of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(path, content=b"new", **options):
    with hashed_file(path, **options) as stream:
        stream.write(content)


def write_folder(path, **options):
    with atomic_folder(path, **options) as part:
        (part / "config.json").write_bytes(b"new")


@pytest.fixture
def victim(tmp_path):
    """A file elsewhere that nothing may touch."""
    place = tmp_path / "elsewhere" / "victim"
    place.parent.mkdir()
    place.write_bytes(b"years of work")
    place.chmod(0o644)
    yield place
    assert (place.read_bytes(), mode(place), os.listdir(place.parent)) == (b"years of work", 0o644, ["victim"])


@pytest.fixture
def out(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work" / "out.txt"


@pytest.fixture
def mask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def plant(place, kind, victim):
    {
        "link": lambda: place.symlink_to(victim),
        "link to nothing": lambda: place.symlink_to(victim.with_name("new")),
        "hard link": lambda: place.hardlink_to(victim),
        "device": lambda: place.symlink_to(os.devnull),
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
    }[kind]()


# -- completely or not at all ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.txt", "a" * 251 + ".txt", "\udcff.txt"])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_file_is_replaced_when_the_block_ends(tmp_path, name, old):
    path = tmp_path / name
    if old is not None:
        path.write_bytes(old)
    with hashed_file(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert (path.read_bytes() if path.exists() else None) == old
        assert stream.digest() == hashlib.sha256(b"new").hexdigest()
    assert path.read_bytes() == b"new" and file_digest(path) == stream.digest()
    with hashed_file(path) as first, hashed_file(path) as second:  # two writers do not meet
        first.write(b"first")
        second.write(b"second")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"first", [name])


def test_a_failure_leaves_the_old_file_and_nothing_else(out, monkeypatch):
    out.write_bytes(b"old")
    folder = out.with_name("folder")

    def fail(context, error):
        with context as part:
            if isinstance(part, Path):
                (part / "half").touch()
            else:
                part.write(b"half")
            raise error

    for error in (KeyboardInterrupt, DataError("no"), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))):
        for context in (hashed_file(out), atomic_folder(folder)):
            with pytest.raises((KeyboardInterrupt, DataError, StorageError)):
                fail(context, error)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:  # found before the old file is replaced
        patch.setattr(os, "fsync", full)
        assert_error(StorageError, lambda: write(out), "cannot write", "out.txt", os.strerror(errno.ENOSPC))
        assert_error(StorageError, lambda: write_folder(folder), os.strerror(errno.ENOSPC))
    for path, problem in ((out.parent / "no" / "a", "No such file"), (out / "a", "Not a directory")):
        assert_error(StorageError, lambda path=path: write(path), "cannot write", problem)
    assert_error(StorageError, lambda: write(out.with_name("a" * 300)), "too long")
    assert_error(StorageError, lambda: write_folder(out.parent / "no" / "a"), "cannot write")
    assert (os.listdir(out.parent), out.read_bytes()) == (["out.txt"], b"old")


def test_a_folder_is_replaced_only_on_request(out):
    write_folder(out)
    assert_error(StorageError, lambda: write_folder(out), "cannot write")
    (out / "old").touch()
    write_folder(out, replace=True)
    assert (os.listdir(out), os.listdir(out.parent)) == (["config.json"], ["out.txt"])


KILL = """
import os, pathlib, signal, sys
from dptext.io import atomic

out, step = pathlib.Path(sys.argv[1]), sys.argv[2]
kill = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
if step == "publishing":
    atomic.publish = kill
if step == "mode":
    atomic.set_default_mode = kill
if step in ("writing", "publishing", "mode"):
    with atomic.hashed_file(out) as stream:
        stream.write(b"new")
        stream.flush()
        if step == "writing":
            kill()
else:
    rename = pathlib.Path.rename
    if step == "renaming":
        pathlib.Path.rename = lambda path, to: kill() if path.name.endswith(".part") else rename(path, to)
    if step == "removing":
        atomic._restore = lambda *_: out.joinpath("config.json").read_bytes() == b"new" and kill()
    with atomic.atomic_folder(out, replace=True) as part:
        (part / "config.json").write_bytes(b"new")
        if step == "folder":
            kill()
"""


def kill(out, step):
    command = [sys.executable, "-c", KILL, os.fspath(out), step]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def others_can_read(folder):
    """Files below a folder that other users could read."""
    return [path for path in folder.rglob("*") if path.is_file() and mode(path) & 0o077 and mode(path.parent) & 0o077]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["writing", "publishing", "mode"])
def test_a_killed_writer_leaves_the_old_or_the_new_file_and_nothing_readable_by_others(out, mask, step):
    out.write_bytes(b"old")
    out.chmod(0o600)
    kill(out, step)
    assert out.read_bytes() == (b"new" if step == "mode" else b"old")
    assert others_can_read(out.parent) == []
    for left in set(os.listdir(out.parent)) - {"out.txt"}:
        assert left.startswith(".out.txt.") and left.endswith(".part")
        assert_error(DataError, lambda left=left: check_released(out.with_name(left)), "unfinished output")
        out.with_name(left).unlink()
    write(out, b"next")
    assert (os.listdir(out.parent), out.read_bytes(), mode(out)) == (["out.txt"], b"next", 0o644)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["folder", "renaming", "removing"])
def test_a_killed_writer_leaves_the_old_or_the_new_folder(out, mask, step):
    out.mkdir(mode=0o700)
    (out / "config.json").write_bytes(b"old")
    kill(out, step)
    for left in out.parent.glob(".out.txt.*.part"):
        assert mode(left) == 0o700
        shutil.rmtree(left)
    others = others_can_read(out.parent)
    assert others == ([out / "config.json"] if step == "removing" else [])
    place = out.with_name(".out.txt.replaced") if step == "renaming" else out  # killed between the two renames
    assert (place / "config.json").read_bytes() == (b"new" if step == "removing" else b"old")
    check_new_folder(out, replace=True, is_ours=lambda _: True, holds="anything")
    write_folder(out, replace=True)
    assert (os.listdir(out.parent), (out / "config.json").read_bytes(), mode(out)) == (["out.txt"], b"new", 0o755)


def test_a_lock_keeps_others_out_and_is_removed(out):
    sibling(out, "lock").touch()  # left by a killed process
    with file_lock(out):
        assert mode(sibling(out, "lock")) == 0o600
        with pytest.raises(StorageError, match="another process is writing"), file_lock(out):
            pass
    assert os.listdir(out.parent) == []


def test_a_scratch_folder_is_private_and_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    with scratch_folder() as folder:
        (folder / "file").touch()
        assert (folder.parent, mode(folder)) == (tmp_path, 0o700)
    assert os.listdir(tmp_path) == []
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path / "no"))
    with pytest.raises(StorageError), scratch_folder():
        pass


@pytest.mark.parametrize("bits", [0o000, 0o022, 0o077])
def test_others_get_their_rights_only_after_the_rename(out, monkeypatch, bits):
    seen, replace = set(), Path.replace

    def replace_and_check(path, target):
        seen.add(mode(path))
        replace(path, target)
        seen.add(mode(target))

    monkeypatch.setattr(Path, "replace", replace_and_check)
    before = os.umask(bits)
    try:
        write(out)
        write(out.with_name("secret"), owner_only=True)
        write_folder(out.with_name("folder"))
    finally:
        os.umask(before)
    modes = [mode(out.with_name(name)) for name in ("out.txt", "secret", "folder")]
    assert (seen, modes) == ({0o600}, [0o666 & ~bits, 0o600, 0o777 & ~bits])
    assert sorted(os.listdir(out.parent)) == ["folder", "out.txt", "secret"]


# -- planted files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "link to nothing", "hard link", "pipe", "folder"])
def test_a_planted_file_is_neither_followed_nor_opened(out, victim, mask, kind):
    plant(sibling(out, "rows"), kind, victim)
    assert_error(StorageError, lambda: open_own(sibling(out, "rows")), "dptext did not create this file. Move it away")
    with pytest.raises(FileExistsError):
        open_new(sibling(out, "rows"))


@pytest.mark.parametrize("kind", ["link", "link to nothing", "device", "pipe", "folder"])
def test_only_a_regular_file_is_replaced(out, victim, kind):
    plant(out, kind, victim)
    before = out.lstat()
    assert_error(StorageError, lambda: write(out), "not a regular file")
    assert os.path.samestat(before, out.lstat()) and os.listdir(out.parent) == [out.name]


def test_own_files_lose_the_rights_of_others_and_files_of_other_users_are_refused(out):
    out.touch()
    out.chmod(0o666)
    with open_own(out):
        assert mode(out) == 0o600
    if os.geteuid() == 0:  # who else may give a file away?
        os.chown(out, 12345, -1)
        assert_error(StorageError, lambda: open_own(out), "dptext did not create this file")


def test_a_planted_link_is_not_taken_for_a_replaced_folder(out, tmp_path):
    planted = sibling(out, "replaced")
    planted.symlink_to(tmp_path)
    assert check_new_folder(out, replace=False, is_ours=lambda _: True, holds="a bank") == out
    write_folder(out)
    assert planted.is_symlink() and (out / "config.json").read_bytes() == b"new"


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
    refused(out.parent / "folder", ParameterError, "is a folder: choose a file name in it")
    refused(victim, ParameterError, "already exists", "--force", replace=False)
    refused(out.parent / "no" / "out.txt", StorageError, "its folder does not exist. Create it first")
    refused(victim / "out.txt", StorageError, "is not a folder")
    for name in ("link.txt", "other.txt"):
        refused(out.parent / name, ParameterError, "is the same file as IN", IN=[victim])
    refused(out, ParameterError, "is the same file as ledger", ledger=[out.parent / "folder" / ".." / "out.txt"])
    check_target(out, replace=False, apart_from={"IN": [victim]})
    (out.parent / "other.txt").unlink()


def test_only_a_folder_of_the_same_kind_is_replaced(out):
    def check(path, *, replace, is_own=True):
        return check_new_folder(path, replace=replace, is_ours=lambda _: is_own, holds="vectors")

    assert check(out.parent / ".." / "work" / "new", replace=False) == out.with_name("new").resolve()
    write_folder(out)
    assert check(out, replace=True) == out.resolve()
    out.with_name("link").symlink_to(out)
    for kind, path, options, message in (
        (ParameterError, out, {"replace": False}, "already exists"),
        (ParameterError, out, {"replace": True, "is_own": False}, "data other than vectors"),
        (ParameterError, out.with_name("link"), {"replace": True}, "is a link"),
        (StorageError, out.parent / "no" / "new", {"replace": True}, "its folder does not exist"),
    ):
        assert_error(kind, lambda path=path, options=options: check(path, **options), message)


def test_hidden_names_fit_the_system_and_differ(tmp_path):
    assert sibling(tmp_path / "a.txt", "job") == tmp_path / ".a.txt.job"
    for name in ("a" * 251 + ".txt", "é" * 125 + ".txt", "😀" * 62 + ".txt"):
        assert len(sibling(tmp_path / name, "0123456789ab.part").name.encode()) <= 255
    # one job must never be taken for the job of another file
    assert sibling(Path("a" * 201 + "1.txt"), "job") != sibling(Path("a" * 201 + "2.txt"), "job")


def test_the_digest_of_a_folder_is_that_of_its_parts(tmp_path):
    (tmp_path / "part-0").write_bytes(b"one")
    (tmp_path / "part-1").write_bytes(b"two")
    once = folder_digest(tmp_path)
    for mark in ("_SUCCESS", ".part-0.crc"):
        (tmp_path / mark).write_bytes(b"mark")
    assert folder_digest(tmp_path) == once
    assert digest_of_parts({name: file_digest(tmp_path / name) for name in ("part-1", "part-0")}) == once
    (tmp_path / "part-1").rename(tmp_path / "part-2")
    assert folder_digest(tmp_path) != once
    os.mkfifo(tmp_path / "pipe")
    for path, message in ((tmp_path / "no", "No such file"), (tmp_path, tmp_path.name), (tmp_path / "pipe", "a pipe")):
        assert_error(StorageError, lambda path=path: file_digest(path), message)
