"""Pieces of work through several processes, in order: the number of processes changes the time and nothing else."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from dptext.checks import whole
from dptext.errors import StorageError
from dptext.io.atomic import scratch_folder
from dptext.shared_pickle import load_shared, save_shared
from dptext.threads import available_cores, use_cores

__all__ = ["begin_worker", "in_order"]

Kept = TypeVar("Kept")
Sent = TypeVar("Sent")
Result = TypeVar("Result")
_AHEAD = 2  # pieces that wait for a process, for each process


def in_order(
    work: Callable[[Sent], Result], pieces: Iterable[tuple[Kept, Sent]], *, processes: int = 1
) -> Generator[tuple[Kept, Result], None, None]:
    """``work`` on the second half of every piece, beside the first half, in the order of the pieces."""
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
        # by file, not by argument: to hand a lot to a process that dies as it starts blocks for ever; and the
        # processes share the memory of its arrays
        path = save_shared(work, folder)
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
    """Take over what the parent left in a file."""
    global _work
    begin_worker(cores)
    try:
        _work = load_shared(Path(path))
    except StorageError:
        os._exit(1)


def _do(sent: Any) -> Any:
    assert _work is not None
    return _work(sent)


def begin_worker(cores: int) -> None:
    """A worker process takes its share of the cores, leaves an interrupt to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends this one in order
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    use_cores(cores)


def _leave_with_the_parent() -> None:
    """One whose parent was killed would wait for its next work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
