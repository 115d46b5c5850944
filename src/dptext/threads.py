"""Parallel work on independent blocks of arrays, with one BLAS thread per block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar

Item = TypeVar("Item")


_max_cores: int | None = None


def use_cores(count: int) -> None:
    """Limit this process to ``count`` cores."""
    global _max_cores
    _max_cores = count


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return _cores() if _max_cores is None else min(_max_cores, _cores())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def for_each_block(work: Callable[[Item], None], blocks: Iterable[Item]) -> None:
    """Call ``work`` on every block, in parallel; the calls must be independent. The first error is raised."""
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
    """BLAS limit of the whole process, set by its first user and removed by the last."""

    users: int = 0
    limiter: Any = None
    lock: Lock = field(default_factory=Lock)


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: on small products, its threads spend more time waiting than working."""
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


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use this many threads. With one, its sums are the same on every machine."""
    torch: Any = import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _after_fork() -> None:
    """Reset the limit in a child process, which starts without the threads of its parent."""
    _limit.users, _limit.limiter, _limit.lock = 0, None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
