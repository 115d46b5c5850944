"""Write a file or folder completely or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dptext.errors import DataError, DptextError, ParameterError, StorageError

_LONGEST_NAME = 200
_WRITERS = 64  # processes that may write one target at a time
_PART, _REPLACED, _LOCK, _SCRATCH = "part", "replaced", "lock", "dptext-work-"
_BINARY = getattr(os, "O_BINARY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY


# -- names and checks before any work -------------------------------------------------------------------------


def sibling(target: Path, suffix: str) -> Path:
    """Return a hidden name in the folder of a file."""
    name = os.fsencode(target.name)
    if len(name) > _LONGEST_NAME:  # most systems allow 255 bytes
        digest = hashlib.sha256(name).hexdigest()[:16]
        name = os.fsencode(name[: _LONGEST_NAME - 17].decode(errors="ignore") + f"-{digest}")
    return target.with_name(f".{os.fsdecode(name)}.{suffix}")


def check_released(path: Path) -> None:
    """Raise `DataError` if a file, or the folder around it, is a temporary one."""
    for name in (path.name, path.absolute().parent.name):
        if name.startswith(".") and name.endswith(f".{_PART}"):
            raise DataError(
                f"{name} is an unfinished output of an interrupted run. Run the command again to complete it."
            )


def check_target(
    target: Path,
    *,
    replace: bool,
    apart_from: Mapping[str, Iterable[str | os.PathLike[str]]],
    by: str = "add --force",
    makes_folder: bool = False,
) -> None:
    """Raise if a file cannot be written, or if it exists, is not regular or is one of ``apart_from`` (by its name)."""
    for role, files in apart_from.items():
        if any(is_same(target, Path(file)) for file in files):
            raise ParameterError(f"{str(target)!r} is the same file as {role}: choose another name")
    kind = _kind_at(target)
    if kind == "a folder":
        raise ParameterError(f"{str(target)!r} is a folder: name a file in it")
    if kind not in (None, "a file"):
        raise ParameterError(f"{str(target)!r} is {kind}, not a regular file: choose another name, or move it away")
    if kind is not None and not replace:
        raise ParameterError(f"{str(target)!r} is there already: choose another name, or {by}")
    check_folder_around(target, is_made=makes_folder)


def check_folder_around(target: Path, *, is_made: bool = False) -> None:
    """Raise `StorageError` if the parent folder cannot hold the target; ``is_made``: it is created if missing."""
    folder = target.absolute().parent
    while is_made and not os.path.lexists(folder):
        folder = folder.parent
    if not os.path.lexists(folder):
        raise StorageError(f"cannot write {str(target)!r}: its folder does not exist; create it first")
    if not folder.is_dir():
        raise StorageError(f"cannot write {str(target)!r}: {str(folder)!r} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StorageError(f"cannot write {str(target)!r}: its folder is read-only")


def check_new_folder(named: Path, *, replace: bool, is_ours: Callable[[Path], bool], holds: str) -> Path:
    """Return the resolved path of a new folder; only one that ``is_ours`` accepts may be replaced."""
    try:
        target = named.parent.resolve() / named.name if named.name not in ("", "..") else named.resolve()
        _restore_replaced(target)
        exists = os.path.lexists(target)
        is_own = exists and target.is_dir() and is_ours(target)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError.of("open", named, error) from None
    if exists and not replace:
        raise ParameterError(
            f"{str(named)!r} is there already: choose another name, or replace it (--force, replace=True)"
        )
    if target.is_symlink():
        raise ParameterError(f"{str(named)!r} is a link: name the folder itself, or another one")
    if exists and not is_own:
        raise ParameterError(
            f"{str(named)!r} holds something besides {holds}, and replacing it would delete that: choose another name"
        )
    check_folder_around(target)
    return target


def is_same(one: Path, other: Path) -> bool:
    """Return whether two paths name the same file."""
    with suppress(OSError, ValueError):
        if one.absolute().parent.resolve() / one.name == other.absolute().parent.resolve() / other.name:
            return True
        return one.samefile(other)
    return False


_KINDS = {stat.S_IFREG: "a file", stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}


def _kind(status: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(status.st_mode), "a device")


def _kind_at(target: Path) -> str | None:
    """The kind of file with this name, if there is one."""
    try:
        return _kind(target.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError.of("write", target, error) from None


# -- opening and locking --------------------------------------------------------------------------------------


def open_new(path: Path) -> IO[bytes]:
    """Create a file that only its owner can read, open for reading and writing; `FileExistsError` if it exists."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _BINARY, 0o600), "r+b")


def open_own(path: Path, *, owner_only: bool = True) -> IO[bytes]:
    """Open a regular file of this user, never a link; by default take the rights of others and refuse a second name."""
    stream = _open_checked(path, owner_only)
    if owner_only:
        _make_private(stream)
    return stream


def _open_checked(path: Path, owner_only: bool) -> IO[bytes]:
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _BINARY, 0o600 if owner_only else 0o666)
        return os.fdopen(descriptor, "r+b")
    _check_own(path, path.lstat(), owner_only)  # before it is opened: opening alone can affect a device
    descriptor = os.open(path, os.O_RDWR | _NO_FOLLOW)
    try:
        _check_own(path, os.fstat(descriptor), owner_only)
        return os.fdopen(descriptor, "r+b")
    except BaseException:
        os.close(descriptor)
        raise


def _make_private(stream: IO[bytes]) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(stream.fileno(), 0o600)


def _check_own(path: Path, status: os.stat_result, owner_only: bool) -> None:
    user, problem = getattr(os, "geteuid", lambda: status.st_uid)(), ""
    if not stat.S_ISREG(status.st_mode):
        problem = _kind(status)
    elif owner_only and status.st_nlink > 1:
        problem = "a file with a second name"
    # some network folders give every file to one user
    elif owner_only and user != status.st_uid != _default_stat(path).st_uid:
        problem = "a file of another user"
    if problem:
        raise StorageError(f"cannot write {str(path)!r}: it is {problem}, not a file that dptext made; move it away")


def _default_stat(target: Path) -> os.stat_result:
    """Owner and mode of a new file in this folder, as the system, its mask and access lists decide."""
    with suppress(OSError, AttributeError):  # without a name, where the file system has such files
        descriptor = os.open(target.absolute().parent, os.O_TMPFILE | os.O_RDWR, 0o666)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)
    probe = sibling(target, f"{threading.get_native_id()}.probe")
    descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
        probe.unlink()


def lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; False: another process has it, None: the system has no such locks."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def open_locked(path: Path) -> IO[bytes] | None:
    """Open and lock a hidden file of this user, new or left by a killed process; None while another process has it."""
    while True:
        with suppress(FileNotFoundError):  # renamed or removed meanwhile: try again
            stream = _open_checked(path, owner_only=True)
            if lock(stream.fileno()) is False:
                stream.close()
                return None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(stream.fileno()), path.lstat()):
                    _make_private(stream)
                    return stream
            stream.close()
        path.parent.stat()  # if the folder is missing, that is the error


@contextmanager
def file_lock(target: Path) -> Iterator[None]:
    """Lock ``.OUT.lock`` while an output is made; `StorageError` if another process is making it."""
    path = sibling(target, _LOCK)
    try:
        stream = open_locked(path)
    except OSError as error:
        raise _storage_error(target, error) from None
    if stream is None:
        raise StorageError(f"another process is writing {str(target)!r}: wait for it, or stop it")
    with stream:
        status = os.fstat(stream.fileno())
        try:
            yield
        finally:
            _close_on_windows(stream)
            _unlink_own(path, status)


def _unlink_own(path: Path, status: os.stat_result) -> None:
    """Remove a file unless the name belongs to another one by now."""
    with suppress(OSError):
        if os.path.samestat(path.lstat(), status):
            path.unlink()


def _close_on_windows(stream: IO[bytes]) -> None:
    if os.name == "nt":  # which neither renames nor removes an open file
        stream.close()


def _storage_error(target: Path, error: OSError) -> OSError:
    return error if isinstance(error, DptextError) else StorageError.of("write", target, error)


# -- files ----------------------------------------------------------------------------------------------------


class HashedFile:
    """A writable binary file that computes the SHA-256 of its bytes; `close` leaves the file below open."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._count = 0

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        self._count += len(data)
        return self._stream.write(data)

    def tell(self) -> int:
        return self._count

    def close(self) -> None:
        """Do nothing: the file stays open."""

    def flush(self) -> None:
        self._stream.flush()

    def digest(self) -> str:
        return self._digest.hexdigest()


@contextmanager
def hashed_file(path: str | os.PathLike[str], *, owner_only: bool = False) -> Iterator[HashedFile]:
    """`atomic_file` with the digest of its bytes."""
    with atomic_file(path, owner_only=owner_only) as stream:
        yield HashedFile(stream)


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, owner_only: bool = False) -> Iterator[IO[bytes]]:
    """Write a file completely or not at all; with ``owner_only`` its mode stays 0600."""
    target = Path(path)
    try:
        kind = _kind_at(target)
        if kind not in (None, "a file"):
            raise StorageError(f"cannot write {str(target)!r}: it is {kind}, not a regular file; move it away")
        part, stream = _open_part(target)
        with stream:
            status = os.fstat(stream.fileno())
            try:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                _close_on_windows(stream)
                publish(part, target, owner_only=owner_only)
            finally:
                _close_on_windows(stream)
                _unlink_own(part, status)
    except OSError as error:
        raise _storage_error(target, error) from None


def _open_part(target: Path) -> tuple[Path, IO[bytes]]:
    for number in range(1, _WRITERS + 1):
        part = sibling(target, _PART if number == 1 else f"{number}.{_PART}")
        with suppress(StorageError):  # a link, a pipe or a folder: try the next name
            stream = open_locked(part)
            if stream is not None:
                stream.truncate(0)
                return part, stream
    raise StorageError(
        f"cannot write {str(target)!r}: {_WRITERS} temporary files exist already; delete "
        f"{sibling(target, '*part').name}"
    )


def publish(part: Path, target: Path, *, owner_only: bool = False) -> None:
    """Rename a finished file (mode 0600) to its target first, then give it the mode of a new file there."""
    with _noted(part, target):
        part.replace(target)
        if not owner_only:
            set_default_mode(target)
        sync_folder(target)


@contextmanager
def _noted(part: Path, target: Path) -> Iterator[None]:
    """Note in an error after the rename that the output is in place."""
    try:
        yield
    except BaseException as error:
        if not os.path.lexists(part):
            error.add_note(f"{target} is in place, whole")
        raise


def set_default_mode(path: Path) -> None:
    """Give a file the mode of a new file in its folder."""
    _set_mode(path, _default_stat(path).st_mode & 0o777)


def _set_mode(path: Path, mode: int) -> None:
    if hasattr(os, "fchmod"):
        descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Force the folder of a file to the disk, where the system allows it."""
    with suppress(OSError):
        folder = os.open(path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# -- folders --------------------------------------------------------------------------------------------------


@contextmanager
def atomic_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """Write a folder completely or not at all; a replaced one comes back after a failure or a kill."""
    replaced = sibling(target, _REPLACED)
    try:
        with _locked_folder(target) as part:
            _restore(target, replaced)
            try:
                yield part
                for file in part.iterdir():
                    with file.open("rb+") as stream:
                        os.fsync(stream.fileno())
                    sync_folder(file)
                mode = _default_stat(target).st_mode & 0o666
                if replace and target.is_dir():
                    target.rename(replaced)
                with _noted(part, target):
                    part.rename(target)
                    _set_mode(target, mode | (mode & 0o444) >> 2)  # who may read its files may enter it
                    sync_folder(target)
            finally:
                shutil.rmtree(part, ignore_errors=True)
                _restore(target, replaced)
    except OSError as error:
        raise _storage_error(target, error) from None


@contextmanager
def _locked_folder(target: Path) -> Iterator[Path]:
    """Create and lock the temporary folder of a target, or take over and empty one that a killed process left."""
    part = sibling(target, _PART)
    descriptor = _lock_folder(target, part)
    try:
        for left in part.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        yield part
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock_folder(target: Path, part: Path) -> int | None:
    while True:
        with suppress(FileExistsError):
            part.mkdir(mode=0o700)
        if os.name == "nt":  # which opens no folders
            return None
        with suppress(FileNotFoundError):  # renamed before it was locked: try again
            status = part.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise StorageError(f"cannot write {str(target)!r}: {part.name!r} is in the way; move it away")
            part.chmod(0o700)
            descriptor = os.open(part, os.O_RDONLY | _NO_FOLLOW)
            if lock(descriptor) is False:
                os.close(descriptor)
                raise StorageError(f"another process is writing {str(target)!r}: wait for it, or stop it")
            if part.exists() and os.path.samestat(os.fstat(descriptor), part.lstat()):
                return descriptor
            os.close(descriptor)


def _restore(target: Path, replaced: Path) -> None:
    """Bring a replaced folder back if there is no new one, else delete it."""
    if replaced.is_dir() and not os.path.lexists(target):
        replaced.rename(target)
    elif replaced.is_dir() and not replaced.is_symlink():
        shutil.rmtree(replaced, ignore_errors=True)


def _restore_replaced(target: Path) -> None:
    """Bring back a folder that a killed process was about to replace."""
    if sibling(target, _REPLACED).is_dir():
        with suppress(OSError), _locked_folder(target) as part:
            part.rmdir()
            _restore(target, sibling(target, _REPLACED))


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a folder (mode 0700) in the system's temporary one, and remove it at the end, or with the next call."""
    descriptor = None
    try:
        for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
            _remove_unlocked(left)
        is_locked = False
        while not is_locked:  # another call may remove the folder before it is locked
            folder = Path(tempfile.mkdtemp(prefix=_SCRATCH))
            if os.name == "nt":  # which opens no folders
                break
            with suppress(FileNotFoundError):
                descriptor = os.open(folder, os.O_RDONLY | _NO_FOLLOW)
                is_locked = lock(descriptor) is not False and folder.exists()
    except OSError as error:
        raise StorageError.of("create a folder in", tempfile.gettempdir(), error) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _remove_unlocked(folder: Path) -> None:
    """Remove a folder of this user that a killed process left."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | _NO_FOLLOW)
        try:
            if os.fstat(descriptor).st_uid == os.geteuid() and lock(descriptor):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
