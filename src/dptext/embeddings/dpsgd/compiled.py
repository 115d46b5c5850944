"""Loops over numbers, compiled to machine code by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from dptext.errors import extra

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., object])

_numba = extra("numba", "skipgram", "training of word vectors")
_ORDER_IS_FREE = {"reassoc", "contract"}  # of a sum; NaN, infinities and the rounding of each operation are kept


def compiled(function: Function) -> Function:
    """Return the function as machine code: compiled when it is first called, and cached on disk beside its source."""
    # as arrays have it: a division by zero is infinite, and no check for it stands in the way
    options = {"nogil": True, "fastmath": _ORDER_IS_FREE, "error_model": "numpy"}
    try:
        machine_code = _numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no place to keep it in
        machine_code = _numba.njit(**options)(function)
    return cast(Function, machine_code)
