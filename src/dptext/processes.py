"""Work on all cores: pieces through several processes, and blocks of array work on threads, one BLAS thread each.

The number of either changes the time and nothing else: pieces come out in the order of their input. numpy releases the
interpreter lock inside its loops, so threads suffice for it; many small matrix products run faster side by side than
one after the other on BLAS's own threads.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from dptext.checks import whole
from dptext.errors import StorageError
from dptext.own_files import scratch_folder

__all__ = [
    "available_cores",
    "for_each_block",
    "in_order",
    "leave_with_the_parent",
    "one_blas_thread",
    "start_worker",
    "use_cores",
]

Kept = TypeVar("Kept")
Sent = TypeVar("Sent")
Result = TypeVar("Result")
_AHEAD = 2  # pieces that wait for a process, for each process


def in_order(
    work: Callable[[Sent], Result], pieces: Iterable[tuple[Kept, Sent]], *, processes: int = 1
) -> Generator[tuple[Kept, Result], None, None]:
    """``work`` on the second half of every piece, beside the first half, in the order of the pieces.

    Args:
        work: a function or an object that can be pickled. It goes to each process once, through a file that only its
            owner reads, and must hold neither a secret nor random state.
        pieces: what stays here, and what goes to ``work``. Few pieces are ahead of the one that comes out, so memory
            does not grow with the input.
        processes: how many; 1 does the work in this one.

    Raises:
        StorageError: a process died (out of memory, most likely).
    """
    if whole("processes", processes, least=1) == 1:
        for kept, sent in pieces:
            yield kept, work(sent)
        return
    waiting: deque[tuple[Kept, Future[Any]]] = deque()
    with _pool(work, processes) as pool:
        try:
            for kept, sent in pieces:
                waiting.append((kept, pool.submit(_do, sent)))
                if len(waiting) > _AHEAD * processes:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        except BrokenProcessPool:
            raise StorageError(
                "a worker process died: use fewer processes if memory ran out; a script that asks for processes needs "
                "the line: if __name__ == '__main__':"
            ) from None


def _first(waiting: deque[tuple[Kept, Future[Any]]]) -> tuple[Kept, Any]:
    kept, future = waiting.popleft()
    return kept, future.result()


@contextmanager
def _pool(work: object, processes: int) -> Iterator[ProcessPoolExecutor]:
    share = max(1, available_cores() // processes)
    with scratch_folder() as folder:
        # by file, not by argument: to hand a lot to a process that dies as it starts blocks for ever
        path = folder / "work"
        with path.open("wb") as stream:
            pickle.dump(work, stream)
        pool = ProcessPoolExecutor(
            processes,
            # a forked process would share locks that threads of this one may hold, and its random state
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(str(path), share),
        )
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


# -- in the worker --------------------------------------------------------------------------------------------

_work: Callable[[Any], Any] | None = None


def _start(path: str, cores: int) -> None:
    global _work
    _work = start_worker(path, cores)


def _do(sent: Any) -> Any:
    assert _work is not None
    return _work(sent)


def start_worker(path: str, cores: int) -> Any:
    """What the parent left for a worker in a file. The worker takes its share of the cores, and ends with its parent.

    Where the file cannot be read it ends at once, and its parent says so: an error would be printed with its traceback.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends this one in order
    threading.Thread(target=leave_with_the_parent, daemon=True).start()
    use_cores(cores)
    try:
        with Path(path).open("rb") as stream:
            return pickle.load(stream)  # noqa: S301  our own file
    except OSError:
        os._exit(1)


def leave_with_the_parent() -> None:
    """For a thread of a worker: one whose parent was killed would wait for its next work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


Item = TypeVar("Item")


_most: int | None = None


def use_cores(count: int) -> None:
    """Use at most this many cores in this process from now on: a worker beside others takes its share."""
    global _most
    _most = count


def available_cores() -> int:
    """How many cores this process may use."""
    return _cores() if _most is None else min(_most, _cores())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def for_each_block(work: Callable[[Item], None], blocks: Iterable[Item]) -> None:
    """Call ``work`` on every block; the calls must not depend on each other. The first error is raised."""
    items = list(blocks)
    with one_blas_thread():
        if len(items) < 2 or available_cores() == 1:
            for item in items:
                work(item)
            return
        with ThreadPoolExecutor(max_workers=min(len(items), available_cores())) as pool:
            for _ in pool.map(work, items):
                pass


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@dataclass
class _Limit:
    """The limit on BLAS holds for the whole process: the first to need it sets it, the last to leave lifts it."""

    users: int = 0
    limiter: Any = None
    lock: Lock = field(default_factory=Lock)


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: on small products its threads wait for each other longer than they work."""
    with _limit.lock:
        if _limit.users == 0:
            _limit.limiter = _blas().limit(limits=1, user_api="blas")
        _limit.users += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.users -= 1
            if _limit.users == 0:
                _limit.limiter.restore_original_limits()


def _after_fork() -> None:
    """A child starts without its parent's threads, so without their claims on the limit."""
    _limit.users, _limit.limiter, _limit.lock = 0, None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
