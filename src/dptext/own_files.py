"""The files that dptext makes in a user's folder: the one place where they are opened, published and swept.

- **Named after the output.** A file in the making is hidden beside its target: ``.OUT.part``
  (``.OUT.2.part``, ... where several processes write one name). What ends in ``.part`` was never released.
- **Opened exclusively.** A name that is taken is never followed or truncated. A file that was there before (a run that
  goes on) is used only if it is a regular file of this user that has no other name; a link never is.
- **For its owner alone.** Mode 0600, folders 0700, until the rename that publishes them; others get their
  rights after it.
- **Swept.** Who makes a file holds a lock on it. What has no lock was left behind by a run that was killed, and goes
  when the same target is written again.

This guards against what others put into a shared folder beforehand. Who may rename our files while we write (no sticky
bit) can do more than that.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from dptext.errors import DataError, DptextError, ParameterError, StorageError

__all__ = [
    "HashedFile",
    "alone_at",
    "beside",
    "check_folder_around",
    "check_new_folder",
    "check_released",
    "check_target",
    "give_usual_rights",
    "is_same",
    "lock",
    "open_new",
    "open_own",
    "publish",
    "replacing",
    "scratch_folder",
    "sweep",
    "sync_folder",
    "whole_file",
    "whole_folder",
]

_LONGEST_NAME = 200
_WRITERS = 64  # processes that may write one target at a time
_PART, _REPLACED, _LOCK = "part", "replaced", "lock"
_SCRATCH = "dptext-work-"
_BINARY = getattr(os, "O_BINARY", 0)
_AS_IT_LIES = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY


# -- names ----------------------------------------------------------------------------------------------------


def beside(target: Path, suffix: str) -> Path:
    """A hidden name in the folder of a file."""
    name = os.fsencode(target.name)
    if len(name) > _LONGEST_NAME:  # most systems allow 255 bytes
        digest = hashlib.sha256(name).hexdigest()[:16]
        name = os.fsencode(name[: _LONGEST_NAME - 17].decode(errors="ignore") + f"-{digest}")
    return target.with_name(f".{os.fsdecode(name)}.{suffix}")


def check_released(path: Path) -> None:
    """Refuse what a run that was killed left, whole or not.

    Raises:
        DataError: the name, or that of the folder around it, is one of something in the making.
    """
    for name in (path.name, path.absolute().parent.name):
        if name.startswith(".") and name.endswith(f".{_PART}"):
            raise DataError(f"{name} was never released: a run that was stopped left it; run it again")


def _parts(target: Path) -> list[Path]:
    """The names under which a target may be in the making."""
    return [beside(target, _PART if number == 1 else f"{number}.{_PART}") for number in range(1, _WRITERS + 1)]


def check_target(
    target: Path,
    *,
    replace: bool,
    apart_from: Mapping[str, Iterable[str | os.PathLike[str]]],
    by: str = "add --force",
    makes_folder: bool = False,
) -> None:
    """Refuse a file name that cannot be written, or that would destroy something; before any work is done.

    Args:
        target: the file to be written.
        replace: whether a regular file that is there may be replaced.
        apart_from: files that it must not be, by what they are ("IN", "the ledger").
        by: how to replace a file, for errors.
        makes_folder: see `check_folder_around`.

    Raises:
        ParameterError: it is one of these files, a folder, a device, a pipe, a link, or there already.
        StorageError: its folder is missing or may not be written to.
    """
    for what, files in apart_from.items():
        if any(is_same(target, Path(each)) for each in files):
            raise ParameterError(f"{str(target)!r} is the same file as {what}: choose another name")
    try:
        there = target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        there = None
    except OSError as error:
        raise StorageError.of("write", target, error) from None
    if there is not None and stat.S_ISDIR(there.st_mode):
        raise ParameterError(f"{str(target)!r} is a folder: name a file in it")
    if there is not None and not stat.S_ISREG(there.st_mode):
        raise ParameterError(
            f"{str(target)!r} is {_kind(there)}, not a regular file: choose another name, or move it away"
        )
    if there is not None and not replace:
        raise ParameterError(f"{str(target)!r} is there already: choose another name, or {by}")
    check_folder_around(target, is_made=makes_folder)


def check_folder_around(target: Path, *, is_made: bool = False) -> None:
    """Refuse a name in a folder that cannot hold it; before any work is done.

    With ``is_made``, the folder around it will be made if it is missing.

    Raises:
        StorageError: the folder around it is missing, no folder, or may not be written to.
    """
    folder = target.absolute().parent
    while is_made and not os.path.lexists(folder):
        folder = folder.parent
    if not os.path.lexists(folder):
        raise StorageError(f"cannot write {str(target)!r}: the folder around it is not there; make it first")
    if not folder.is_dir():
        raise StorageError(f"cannot write {str(target)!r}: {str(folder)!r} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StorageError(f"cannot write {str(target)!r}: the folder around it may not be written to")


def check_new_folder(named: Path, *, replace: bool, is_ours: Callable[[Path], bool], holds: str) -> Path:
    """Where a folder of one release will lie; raised before the work.

    Args:
        named: as the caller named it.
        replace: whether a folder that is there may be replaced, if ``is_ours`` says that it holds such a release and
            nothing else.
        is_ours: asked of a folder that is there.
        holds: what it then holds, for messages.

    Raises:
        ParameterError: something is there already: with ``replace``, something else than ``is_ours`` says.
        StorageError: the folder around it is missing or read-only.
    """
    try:
        target = named.parent.resolve() / named.name if named.name not in ("", "..") else named.resolve()
        sweep(target)
        there = os.path.lexists(target)
        ours = there and target.is_dir() and is_ours(target)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError.of("open", named, error) from None
    if there and not replace:
        raise ParameterError(
            f"{str(named)!r} is there already: choose another name, or replace it (--force, replace=True)"
        )
    if target.is_symlink():
        raise ParameterError(f"{str(named)!r} is a link: name the folder itself, or another one")
    if there and not ours:
        raise ParameterError(
            f"{str(named)!r} holds something besides {holds}, and replacing it would delete that: choose another name"
        )
    check_folder_around(target)
    return target


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths are of one file, however they are spelled."""
    with suppress(OSError, ValueError):
        if one.absolute().parent.resolve() / one.name == other.absolute().parent.resolve() / other.name:
            return True
        return one.samefile(other)
    return False


def _kind(found: os.stat_result) -> str:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(found.st_mode), "a device")


# -- opening --------------------------------------------------------------------------------------------------


def open_new(path: Path) -> IO[bytes]:
    """Make a file that only its owner reads, and open it for reading and writing.

    Raises:
        FileExistsError: the name is taken, be it by a link that leads nowhere.
    """
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _BINARY, 0o600), "r+b")


def open_own(path: Path, *, owner_only: bool = True) -> IO[bytes]:
    """Open a file of ours for reading and writing; it is made if it is missing.

    With ``owner_only``, the rights of others are taken away.

    Raises:
        StorageError: the name leads to something else: a link, a device; if it is for its owner only, a file of another
            user, or one with two names.
        OSError: the system refuses.
    """
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _BINARY, 0o600 if owner_only else 0o666)
        return os.fdopen(descriptor, "r+b")
    _check_own(path, path.lstat(), owner_only)  # before it is opened: that alone can do something to a device
    descriptor = os.open(path, os.O_RDWR | _AS_IT_LIES)
    try:
        _check_own(path, os.fstat(descriptor), owner_only)
        if owner_only and hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
        return os.fdopen(descriptor, "r+b")
    except BaseException:
        os.close(descriptor)
        raise


def _check_own(path: Path, found: os.stat_result, owner_only: bool) -> None:
    if not stat.S_ISREG(found.st_mode):
        what = _kind(found)
    elif owner_only and found.st_nlink > 1:
        what = "a file that has another name too"
    elif owner_only and not _is_ours(path, found):
        what = "a file of another user"
    else:
        return
    raise StorageError(f"cannot write {str(path)!r}: it is {what}, not a file that dptext made; move it away")


def _is_ours(path: Path, found: os.stat_result) -> bool:
    # some network folders give all files to one user, whoever makes them
    return _is_of_this_user(found) or found.st_uid == _new_file_beside(path).st_uid


def _new_file_beside(target: Path) -> os.stat_result:
    """Owner and rights that a new file in this folder gets: the system, its mask and access lists decide."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # not every file system has files without a name
            descriptor = os.open(target.absolute().parent, os.O_TMPFILE | os.O_RDWR, 0o666)
            try:
                return os.fstat(descriptor)
            finally:
                os.close(descriptor)
    for probe in _parts(target):
        with suppress(FileExistsError):
            descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
            try:
                found = os.fstat(descriptor)
            finally:
                os.close(descriptor)
            _take_away(probe, found)
            return found
    raise _crowded(target)


# -- locks, and what has none ---------------------------------------------------------------------------------


def lock(descriptor: int) -> bool | None:
    """Lock an open file or folder for as long as it is open; the lock falls with the process.

    Returns:
        Whether it is locked now; None where the system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def alone_at(target: Path) -> Iterator[None]:
    """Keep other processes from making the same output meanwhile, where it is more than one file or folder.

    A hidden file, ``.OUT.lock``, is locked until the block ends and then removed. One that a killed run left is taken.

    Raises:
        StorageError: another process is at work there; the folder is missing, read-only or full.
    """
    path = beside(target, _LOCK)
    stream = None
    try:
        while stream is None:
            stream = open_own(path)
            is_free = lock(stream.fileno()) is not False
            if not is_free or not _still_there(path, stream.fileno()):  # whoever had it has removed it meanwhile
                stream.close()
                stream = None
            if not is_free:
                raise StorageError(f"another process is writing {str(target)!r}: wait for it, or stop it")
    except OSError as error:
        if isinstance(error, DptextError):
            raise
        raise StorageError.of("write", target, error) from None
    with stream:
        made = os.fstat(stream.fileno())
        try:
            yield
        finally:
            if os.name == "nt":  # which does not remove what is open
                stream.close()
            _take_away(path, made)


def sweep(*targets: Path) -> None:
    """Remove what killed runs left of these targets; what another process is making stays."""
    for target in targets:
        replaced = beside(target, _REPLACED)
        if replaced.is_dir():
            if not os.path.lexists(target):  # the run was killed between two renames
                with suppress(OSError), _left_behind(replaced) as is_left:
                    if is_left:
                        replaced.rename(target)
            _remove_left(replaced)
        for each in (*_parts(target), beside(target, _LOCK)):
            _remove_left(each)


def _remove_left(path: Path) -> None:
    """Remove a file or folder of ours that nobody is making any more."""
    with suppress(OSError), _left_behind(path) as is_left:
        if is_left and path.is_dir():
            shutil.rmtree(path)
        elif is_left:
            path.unlink()


@contextmanager
def _left_behind(path: Path) -> Iterator[bool]:
    """Whether a file or folder of ours is without its maker; locked meanwhile."""
    with ExitStack() as stack:
        is_left = False
        with suppress(OSError):
            found = path.lstat()
            if (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)) and _is_of_this_user(found):
                if os.name == "nt":
                    is_left = True  # what is open cannot be removed there
                else:
                    # a network folder locks only what is open for writing
                    mode = os.O_RDWR if stat.S_ISREG(found.st_mode) else os.O_RDONLY
                    descriptor = os.open(path, mode | _AS_IT_LIES)
                    stack.callback(os.close, descriptor)
                    is_left = lock(descriptor) is True and os.path.samestat(os.fstat(descriptor), path.lstat())
        yield is_left


def _take_away(path: Path, made: os.stat_result) -> None:
    """Remove what was made under a name; once it is renamed, the name may be that of another process's."""
    with suppress(OSError):
        if os.path.samestat(path.lstat(), made):
            if stat.S_ISDIR(made.st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _is_of_this_user(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _still_there(path: Path, descriptor: int) -> bool:
    """Lock what was just made; False if a sweeper was faster."""
    if lock(descriptor) is False:
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


# -- files ----------------------------------------------------------------------------------------------------


class HashedFile:
    """Bytes to a file, and their SHA-256. The file below belongs to who opened it: `close` leaves it open."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._count = 0

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._digest.update(data)
        self._count += len(data)
        return self._stream.write(data)

    def tell(self) -> int:
        """How many bytes there are."""
        return self._count

    def close(self) -> None:
        """Nothing: the file stays open."""

    def flush(self) -> None:
        """Hand buffered bytes to the operating system."""
        self._stream.flush()

    def digest(self) -> str:
        """SHA-256 of the bytes so far, in hexadecimal."""
        return self._digest.hexdigest()


@contextmanager
def replacing(path: str | os.PathLike[str], *, owner_only: bool = False) -> Iterator[HashedFile]:
    """`whole_file`, and its digest."""
    with whole_file(path, owner_only=owner_only) as stream:
        yield HashedFile(stream)


@contextmanager
def whole_file(path: str | os.PathLike[str], *, owner_only: bool = False) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all: under a temporary name beside it, renamed when the block ends without an error.

    With ``owner_only``, nobody but its owner may read it (mode 0600), now and later.

    Raises:
        StorageError: the folder is missing, read-only or full; something is there that is no regular file.
    """
    target = Path(path)
    try:
        _check_replaceable(target)
        sweep(target)
        part, stream = _new_part(target)
        with stream:
            made = os.fstat(stream.fileno())
            try:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                if os.name == "nt":  # which does not rename what is open
                    stream.close()
                publish(part, target, owner_only=owner_only)
            finally:
                if os.name == "nt":
                    stream.close()
                _take_away(part, made)  # while it is locked
    except OSError as error:
        if isinstance(error, DptextError):
            raise
        raise StorageError.of("write", target, error) from None


def publish(part: Path, target: Path, *, owner_only: bool = False) -> None:
    """Rename a finished file (mode 0600) to its target, and give others the rights that a new file has there.

    In this order: a run that is killed in between leaves a file that its owner can read.
    """
    part.replace(target)
    if not owner_only:
        give_usual_rights(target)
    sync_folder(target)


def give_usual_rights(path: Path) -> None:
    """Give others the rights to a file that they have to a new one in its folder."""
    _give_rights(path, _new_file_beside(path).st_mode & 0o777)


def _check_replaceable(target: Path) -> None:
    """A rename would put a file in the place of what is there, of any kind."""
    found = None
    with suppress(FileNotFoundError, NotADirectoryError):
        found = target.lstat()
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise StorageError(f"cannot write {str(target)!r}: it is {_kind(found)}, not a regular file; move it away")


def _new_part(target: Path) -> tuple[Path, IO[bytes]]:
    for part in _parts(target):
        with suppress(FileExistsError):
            stream = open_new(part)
            if _still_there(part, stream.fileno()):
                return part, stream
            stream.close()
    raise _crowded(target)


def _crowded(target: Path) -> StorageError:
    return StorageError(
        f"cannot write {str(target)!r}: all its temporary names are taken ({beside(target, _PART).name!r} and the "
        "like); wait for other processes, or delete what they left"
    )


def _give_rights(path: Path, mode: int) -> None:
    """Set the rights of a file or folder of ours; no link is followed."""
    descriptor = os.open(path, os.O_RDONLY | _AS_IT_LIES) if hasattr(os, "fchmod") else None
    if descriptor is None:
        return
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """The rename itself onto the disk, where the system allows it."""
    with suppress(OSError):
        folder = os.open(path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# -- folders --------------------------------------------------------------------------------------------------


@contextmanager
def whole_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """Write a folder whole or not at all: a temporary one beside it, renamed when the block ends without an error.

    Args:
        target: where it will lie.
        replace: take the place of a folder that is there; it comes back if something fails, or if the run is killed
            and the next one begins.

    Raises:
        StorageError: the folder around it is missing, read-only or full, or something is there by now.
    """
    try:
        sweep(target)
        with ExitStack() as stack:
            part = _new_folder(target, stack)
            stack.callback(_take_away, part, part.lstat())  # while it is locked
            yield part
            for file in part.iterdir():
                with file.open("rb+") as stream:
                    os.fsync(stream.fileno())
                sync_folder(file)
            _publish_folder(part, target, replace, stack)
    except OSError as error:
        if isinstance(error, DptextError):
            raise
        raise StorageError.of("write", target, error) from None


def _publish_folder(part: Path, target: Path, replace: bool, stack: ExitStack) -> None:
    rights = _new_file_beside(target).st_mode & 0o666
    replaced = beside(target, _REPLACED)
    is_aside = False
    try:
        if replace and target.is_dir():
            _hold_folder(target, stack)
            target.rename(replaced)
            is_aside = True
        part.rename(target)
    except BaseException:
        if is_aside and part.exists():
            with suppress(OSError):
                replaced.rename(target)  # as it was
        elif is_aside:  # interrupted when all was done
            shutil.rmtree(replaced, ignore_errors=True)
        raise
    _give_rights(target, rights | (rights & 0o444) >> 2)  # who may read its files may enter it
    sync_folder(target)
    if is_aside:
        shutil.rmtree(replaced, ignore_errors=True)


def _new_folder(target: Path, stack: ExitStack) -> Path:
    for part in _parts(target):
        with suppress(FileExistsError):
            part.mkdir(mode=0o700)
            if _hold_folder(part, stack):
                return part
    raise _crowded(target)


def _hold_folder(folder: Path, stack: ExitStack) -> bool:
    """Lock a folder until the stack is left; False if it is somebody else's."""
    if os.name == "nt":  # which opens no folders
        return True
    try:
        descriptor = os.open(folder, os.O_RDONLY | _AS_IT_LIES)
    except FileNotFoundError:
        return False
    stack.callback(os.close, descriptor)
    return _still_there(folder, descriptor)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder in the system's temporary one (mode 0700), for processes that share work; removed at the end.

    What killed runs of this user left there goes first.

    Raises:
        StorageError: it cannot be made.
    """
    parent = Path(tempfile.gettempdir())
    folder: Path | None = None
    try:
        for each in parent.glob(f"{_SCRATCH}*"):
            _remove_left(each)
        with ExitStack() as stack:
            while folder is None or not _hold_folder(folder, stack):
                folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=parent))
            yield folder
    except OSError as error:
        if folder is not None or isinstance(error, DptextError):
            raise
        raise StorageError.of("make a folder in", parent, error) from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
