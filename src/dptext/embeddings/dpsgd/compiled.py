"""Loops over numbers, compiled to machine code by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from dptext.files.formats import extra

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., object])

_ORDER_IS_FREE = {"reassoc", "contract"}  # of a sum; NaN, infinities and the rounding of each operation are kept


def compiled(function: Function) -> Function:
    """The same function as machine code: compiled when it is first called, and kept on disk beside its source.

    It frees the interpreter lock. Sums may be added up in any order, and a product may be added without being rounded;
    everything else is as IEEE 754 has it.

    Raises:
        MissingExtraError: the package numba is not installed.
    """
    numba = extra("numba", "skipgram", "training of word vectors")
    # as arrays have it: a division by zero is infinite, and no check for it stands in the way
    how = {"nogil": True, "fastmath": _ORDER_IS_FREE, "error_model": "numpy"}
    try:
        made = numba.njit(cache=True, **how)(function)
    except RuntimeError:  # no place to keep it in
        made = numba.njit(**how)(function)
    return cast(Function, made)
