"""Blocks through several processes, in order. A block's noise hangs on the block, so the number of processes changes
the time and nothing else.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeAlias

from dptext.errors import StorageError
from dptext.files.blocks import Block
from dptext.own_files import scratch_folder
from dptext.privacy.randomness import NoiseKey
from dptext.processes import checked_processes, start_worker
from dptext.threads import available_cores
from dptext.words.rewriter import Rewriter, Tally

__all__ = ["Rewritten", "rewrite_blocks"]

Rewritten: TypeAlias = tuple[list[str | None], Tally]
_AHEAD = 2  # blocks that wait for a process, for each process


def rewrite_blocks(
    rewriter: Rewriter, blocks: Iterable[tuple[int, Block]], *, processes: int = 1
) -> Iterator[tuple[int, Block, Rewritten]]:
    """Every block with its private texts, in order.

    Args:
        rewriter: what is to be done; with several processes each has one like it.
        blocks: places and blocks.
        processes: how many; 1 does the work in this one. Few blocks are ahead of the one that comes out, so memory
            does not grow with the input.

    Raises:
        StorageError: a process died (out of memory, most likely).
    """
    if checked_processes(processes) == 1:
        for place, block in blocks:
            yield place, block, rewriter.rewrite_block(place, block)
        return
    waiting: deque[tuple[int, Block, Future[Rewritten]]] = deque()
    with _pool(rewriter, processes) as pool:
        try:
            for place, block in blocks:
                waiting.append((place, block, pool.submit(_work, place, Block(block.texts, {}))))
                if len(waiting) > _AHEAD * processes:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        except BrokenProcessPool:
            raise StorageError(
                "a worker process died: use fewer processes or fewer words if memory ran out; a script that asks for "
                "processes needs the line: if __name__ == '__main__':"
            ) from None


@contextmanager
def _pool(rewriter: Rewriter, processes: int) -> Iterator[ProcessPoolExecutor]:
    share = max(1, available_cores() // processes)
    with scratch_folder() as folder:
        # by file, not by argument: to hand a lot to a process that dies as it starts blocks for ever
        path = folder / "mechanism"
        with path.open("wb") as stream:
            pickle.dump(rewriter.mechanism, stream)
        pool = ProcessPoolExecutor(
            processes,
            # a forked process would share locks that threads of this one may hold
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(str(path), rewriter.key.secret(), rewriter.key.seeded, share),
        )
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _first(waiting: deque[tuple[int, Block, Future[Rewritten]]]) -> tuple[int, Block, Rewritten]:
    place, block, future = waiting.popleft()
    return place, block, future.result()


# -- in the worker --------------------------------------------------------------------------------------------

_rewriter: Rewriter | None = None


def _start(mechanism: str, secret: bytes, seeded: bool, cores: int) -> None:
    global _rewriter
    _rewriter = Rewriter(start_worker(mechanism, cores), key=NoiseKey.restored(secret, seeded=seeded))


def _work(place: int, block: Block) -> Rewritten:
    assert _rewriter is not None
    return _rewriter.rewrite_block(place, block)
