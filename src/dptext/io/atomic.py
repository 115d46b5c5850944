"""Write a file or folder completely or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from dptext.errors import DataError, ParameterError, StorageError, storage_errors

_LONGEST_NAME = 200
_PART = ".part"
_BINARY = getattr(os, "O_BINARY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY


# -- names and checks before any work -------------------------------------------------------------------------


def sibling(target: Path, suffix: str) -> Path:
    """Return the path of a hidden file next to a file."""
    name = os.fsencode(target.name)
    if len(name) > _LONGEST_NAME:  # most systems allow 255 bytes
        digest = hashlib.sha256(name).hexdigest()[:16]
        name = os.fsencode(name[: _LONGEST_NAME - 17].decode(errors="ignore") + f"-{digest}")
    return target.with_name(f".{os.fsdecode(name)}.{suffix}")


def check_released(path: Path) -> None:
    """Raise `DataError` if a file or its folder is a temporary output."""
    for name in (path.name, path.absolute().parent.name):
        if name.startswith(".") and name.endswith(_PART):
            raise DataError(f"{name} is an unfinished output: run the command again to complete it")


def check_target(
    target: Path, *, replace: bool, apart_from: Mapping[str, Iterable[str | os.PathLike[str]]], by: str = "add --force"
) -> None:
    """Raise if a file cannot be written, exists, is not regular, or is one of ``apart_from`` (files by role)."""
    for role, files in apart_from.items():
        if any(is_same(target, Path(file)) for file in files):
            raise ParameterError(f"{str(target)!r} is the same file as {role}: choose another name")
    kind = _kind_at(target)
    if kind == "a folder":
        raise ParameterError(f"{str(target)!r} is a folder: choose a file name in it")
    if kind not in (None, "a file"):
        raise ParameterError(f"{str(target)!r} is {kind}, not a regular file: choose another name, or move it away")
    if kind is not None and not replace:
        raise ParameterError(f"{str(target)!r} already exists: choose another name, or {by}")
    check_folder_around(target)


def check_folder_around(target: Path) -> None:
    """Raise `StorageError` if the parent folder is missing, read-only or not a folder."""
    folder = target.absolute().parent
    problem = None
    if not os.path.lexists(folder):
        problem = "its folder does not exist. Create it first"
    elif not folder.is_dir():
        problem = f"{str(folder)!r} is not a folder"
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = "its folder is read-only"
    if problem is not None:
        raise StorageError(f"cannot write {str(target)!r}: {problem}")


def check_new_folder(named: Path, *, replace: bool, is_ours: Callable[[Path], bool], holds: str) -> Path:
    """Return the resolved path of a new folder; an existing one may be replaced only if ``is_ours`` accepts it."""
    with storage_errors("write", named):
        target = named.parent.resolve() / named.name if named.name not in ("", "..") else named.resolve()
        _restore(target)
        exists = os.path.lexists(target)
        is_own = exists and target.is_dir() and is_ours(target)
    problem = None
    if exists and not replace:
        problem = "already exists: choose another name, or replace it (--force, replace=True)"
    elif target.is_symlink():
        problem = "is a link: use the path of its target, or another one"
    elif exists and not is_own:
        problem = f"contains data other than {holds}, which replacing it would delete: choose another name"
    if problem is not None:
        raise ParameterError(f"{str(named)!r} {problem}")
    check_folder_around(target)
    return target


def is_same(one: Path, other: Path) -> bool:
    """Return True if two paths name the same file."""
    with suppress(OSError, ValueError):
        if one.absolute().parent.resolve() / one.name == other.absolute().parent.resolve() / other.name:
            return True
        return one.samefile(other)
    return False


_KINDS = {stat.S_IFREG: "a file", stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}


def _kind_at(target: Path) -> str | None:
    with storage_errors("write", target), suppress(FileNotFoundError, NotADirectoryError):
        return _KINDS.get(stat.S_IFMT(target.lstat().st_mode), "a device")
    return None


# -- opening and locking --------------------------------------------------------------------------------------


def open_new(path: Path) -> IO[bytes]:
    """Create a file (mode 0600) for reading and writing; raise `FileExistsError` if it exists."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _BINARY, 0o600), "r+b")


def open_own(path: Path) -> IO[bytes]:
    """Open or create a file (mode 0600); raise if it is a link, has several names or belongs to another user."""
    with suppress(FileExistsError):
        return open_new(path)
    if stat.S_ISREG(path.lstat().st_mode):  # checked before opening, which can affect a device
        stream = os.fdopen(os.open(path, os.O_RDWR | _NO_FOLLOW), "r+b")
        status = os.fstat(stream.fileno())
        is_own = getattr(os, "geteuid", lambda: 1)() or status.st_uid == 0  # fchmod fails for files of other users
        with suppress(PermissionError):
            if status.st_nlink == 1 and is_own:
                if hasattr(os, "fchmod"):
                    os.fchmod(stream.fileno(), 0o600)
                return stream
        stream.close()
    raise StorageError(f"cannot write {str(path)!r}: dptext did not create this file. Move it away")


def lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; return False if another process has the lock, None if unsupported."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def open_locked(path: Path) -> IO[bytes] | None:
    """Open (`open_own`) and lock a new or stale hidden file; return None if another process has the lock."""
    while True:
        with suppress(FileNotFoundError):  # try again if it was renamed or removed meanwhile
            stream = open_own(path)
            if lock(stream.fileno()) is False:
                stream.close()
                return None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(stream.fileno()), path.lstat()):
                    return stream
            stream.close()
        path.parent.stat()  # raises if the folder is missing


@contextmanager
def file_lock(target: Path) -> Iterator[None]:
    """Lock ``.OUT.lock`` while an output is written; raise `StorageError` if another process has the lock."""
    path = sibling(target, "lock")
    with storage_errors("write", target):
        stream = open_locked(path)
    if stream is None:
        raise StorageError(f"another process is writing {str(target)!r}: wait for it, or stop it")
    with stream:
        try:
            yield
        finally:
            with suppress(OSError):  # Windows cannot remove open files
                path.unlink()


# -- files ----------------------------------------------------------------------------------------------------


class HashedFile:
    """Writable binary file that computes the SHA-256 of its bytes; `close` does not close the underlying file."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._count = 0

    def write(self, data: bytes | memoryview) -> int:
        self._digest.update(data)
        self._count += len(data)
        return self._stream.write(data)

    def tell(self) -> int:
        return self._count

    def close(self) -> None:
        """Leave the file open."""

    def flush(self) -> None:
        self._stream.flush()

    def digest(self) -> str:
        return self._digest.hexdigest()


@contextmanager
def hashed_file(path: str | os.PathLike[str], *, owner_only: bool = False) -> Iterator[HashedFile]:
    """Write a file completely or not at all; with ``owner_only`` its mode stays 0600."""
    target = Path(path)
    kind = _kind_at(target)
    if kind not in (None, "a file"):
        raise StorageError(f"cannot write {str(target)!r}: it is {kind}, not a regular file. Move it away")
    with storage_errors("write", target):
        descriptor, name = tempfile.mkstemp(**_temporary_name(target))
        part = Path(name)
        try:
            with os.fdopen(descriptor, "r+b") as stream:
                yield HashedFile(stream)
                stream.flush()
                os.fsync(descriptor)
            publish(part, target, owner_only=owner_only)
        finally:
            part.unlink(missing_ok=True)


def _temporary_name(target: Path) -> dict[str, Any]:
    return {"prefix": sibling(target, "").name, "suffix": _PART, "dir": target.absolute().parent}


def publish(part: Path, target: Path, *, owner_only: bool = False) -> None:
    """Rename a finished file (mode 0600) to its target, then set the mode of a new file there."""
    part.replace(target)
    if not owner_only:
        set_default_mode(target)
    sync_folder(target)


def set_default_mode(path: Path) -> None:
    """Give a file or folder the mode that the system (umask, access lists) gives a new one in the same place."""
    with tempfile.TemporaryDirectory(**_temporary_name(path), ignore_cleanup_errors=True) as folder:
        new = Path(folder, "new")
        new.touch()
        mode = stat.S_IMODE(new.stat().st_mode)
    path.chmod(mode | (mode & 0o444) >> 2 if path.is_dir() else mode)  # readers of the files may enter the folder


def sync_folder(path: Path) -> None:
    """Flush the folder of a file to the disk, if the system supports it."""
    with suppress(OSError):
        folder = os.open(path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# -- folders --------------------------------------------------------------------------------------------------


@contextmanager
def atomic_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """Write a folder completely or not at all; a replaced folder is restored after a failure or a kill."""
    with storage_errors("write", target):
        _restore(target)
        part = Path(tempfile.mkdtemp(**_temporary_name(target)))
        try:
            yield part
            for file in part.iterdir():
                with file.open("rb+") as stream:
                    os.fsync(stream.fileno())
            sync_folder(part / "files")
            if replace and target.is_dir():
                target.rename(sibling(target, "replaced"))
            part.rename(target)
            set_default_mode(target)
            sync_folder(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            _restore(target)


def _restore(target: Path) -> None:
    """Restore a replaced folder if there is no new one, or else delete it."""
    replaced = sibling(target, "replaced")
    if not replaced.is_dir() or replaced.is_symlink():  # dptext does not create links
        return
    if os.path.lexists(target):
        shutil.rmtree(replaced, ignore_errors=True)
    else:
        replaced.rename(target)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a temporary folder (mode 0700), and remove it at the end."""
    with storage_errors("create a folder in", tempfile.gettempdir()):
        folder = tempfile.TemporaryDirectory(prefix="dptext-work-", ignore_cleanup_errors=True)
    with folder as name:
        yield Path(name)
