"""Independent blocks of array work on all cores, one BLAS thread each.

numpy releases the interpreter lock inside its loops, so threads suffice; many small matrix products run faster side
by side than one after the other on BLAS's own threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

__all__ = ["available_cores", "for_each_block"]

Item = TypeVar("Item")


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def for_each_block(work: Callable[[Item], None], blocks: Iterable[Item]) -> None:
    """Call ``work`` on every block; the calls must not depend on each other. The first error is raised."""
    items = list(blocks)
    with _blas().limit(limits=1, user_api="blas"):
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
