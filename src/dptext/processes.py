"""An ordered map over several processes, and pickled objects with arrays in shared memory."""

from __future__ import annotations

import hashlib
import mmap
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from dptext.errors import ParameterError, StorageError
from dptext.io.atomic import hashed_file, scratch_folder
from dptext.threads import available_cores, use_cores
from dptext.validation import check_int

_ALIGNMENT = 64
_SMALL = 4096  # smaller arrays stay in the pickle
_LENGTH_BYTES = 8


def save_shared(thing: object, folder: Path) -> Path:
    """Write an object to a file that is named by its digest; an existing file is reused.

    The file contains the length of a pickle, the pickle (the object without arrays, and their offsets), and the arrays.
    """
    arrays: list[memoryview] = []

    def keep_in_pickle(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _SMALL:
            arrays.append(raw)
        return raw.nbytes < _SMALL

    try:
        pickled = pickle.dumps(thing, protocol=5, buffer_callback=keep_in_pickle)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ParameterError(
            f"a {type(thing).__name__} cannot be sent to other processes ({type(error).__name__}). Replace lambdas "
            "and nested functions in it by functions that can be imported"
        ) from None
    places, total = [], 0  # offsets from the first array
    for array in arrays:
        places.append((total, array.nbytes))
        total += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    head = pickle.dumps((pickled, places, total))
    head = len(head).to_bytes(_LENGTH_BYTES) + head
    head += bytes(-len(head) % _ALIGNMENT)
    digest = hashlib.sha256(head)
    for array in arrays:
        digest.update(array)
    path = folder / f"dptext-{digest.hexdigest()[:32]}.tables"
    if path.exists():
        return path
    with hashed_file(path) as out:
        out.write(head)
        for array in arrays:
            out.write(array)
            out.write(bytes(-array.nbytes % _ALIGNMENT))
    return path


def load_shared(path: Path) -> Any:
    """Load an object that `save_shared` wrote; the file stays mapped while its arrays are in use."""
    try:
        with path.open("rb") as stream:
            mapped = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        end = _LENGTH_BYTES + int.from_bytes(mapped[:_LENGTH_BYTES])
        pickled, places, total = pickle.loads(mapped[_LENGTH_BYTES:end])  # noqa: S301  written by save_shared
        first = end + -end % _ALIGNMENT
        if len(mapped) != first + total:
            raise EOFError
    except (OSError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise StorageError(f"cannot read {path.name!r} ({type(error).__name__}). Start the job again") from None
    arrays = [mapped[first + start : first + start + size] for start, size in places]
    return pickle.loads(pickled, buffers=arrays)  # noqa: S301


Kept = TypeVar("Kept")
Sent = TypeVar("Sent")
Result = TypeVar("Result")
_AHEAD = 2  # waiting pieces per process


def map_in_order(
    work: Callable[[Sent], Result], pieces: Iterable[tuple[Kept, Sent]], *, processes: int = 1
) -> Generator[tuple[Kept, Result], None, None]:
    """Yield (kept, work(sent)) for each pair (kept, sent), in order; ``work`` runs in several processes."""
    if check_int("processes", processes, minimum=1) == 1:
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
                "a worker process died. Use fewer processes if memory ran out. A script that starts processes must "
                "call dptext below the line: if __name__ == '__main__':"
            ) from None


def _first(waiting: deque[tuple[Kept, Future[Any]]]) -> tuple[Kept, Any]:
    kept, future = waiting.popleft()
    return kept, future.result()


@contextmanager
def _pool(work: object, processes: int) -> Iterator[ProcessPoolExecutor]:
    share = max(1, available_cores() // processes)
    with scratch_folder() as folder:
        # in a file, so that the processes share the memory of its arrays; a large argument would block forever if a
        # process died during start-up
        path = save_shared(work, folder)
        pool = ProcessPoolExecutor(
            processes,
            # a forked process would inherit the random state, and locks that other threads hold
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(str(path), share),
        )
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_work: Callable[[Any], Any] | None = None


def _start(path: str, cores: int) -> None:
    """Load the function that the parent stored in a file."""
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
    """Set up a worker process: limit its cores, ignore interrupts, and exit when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent receives the signal too and ends this process
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    use_cores(cores)


def _exit_with_parent() -> None:
    """Exit when the parent exits; after a killed parent this process would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
