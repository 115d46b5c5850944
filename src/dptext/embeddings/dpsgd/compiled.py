"""Loops over numbers, compiled to machine code by numba, and rows of tables brought to the cache before their turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy.typing as npt

from dptext.errors import extra

__all__ = ["compiled", "prefetch"]

Function = TypeVar("Function", bound=Callable[..., object])

_numba, _cgutils, _ir = (
    extra(name, "skipgram", "training of word vectors") for name in ("numba", "numba.core.cgutils", "llvmlite.ir")
)
_ORDER_IS_FREE = {"reassoc", "contract"}  # of a sum; NaN, infinities and the rounding of each operation are kept
_LINE = 64  # bytes that come together


def compiled(function: Function) -> Function:
    """The same function as machine code: compiled when it is first called, and kept on disk beside its source.

    It frees the interpreter lock. Sums may be added up in any order, and a product may be added without being rounded;
    everything else is as IEEE 754 has it.
    """
    # as arrays have it: a division by zero is infinite, and no check for it stands in the way
    how = {"nogil": True, "fastmath": _ORDER_IS_FREE, "error_model": "numpy"}
    try:
        made = _numba.njit(cache=True, **how)(function)
    except RuntimeError:  # no place to keep it in
        made = _numba.njit(**how)(function)
    return cast(Function, made)


@_numba.extending.intrinsic  # type: ignore[untyped-decorator]
def _line(_typing: Any, array: Any, _row: Any, _column: Any) -> Any:
    """The instruction llvm.prefetch (to read, to keep, data) at a place of a table of two dimensions."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        given = context.make_array(kind)(context, builder, arguments[0])
        shape, strides = (_cgutils.unpack_tuple(builder, each) for each in (given.shape, given.strides))
        at = _cgutils.get_item_pointer2(context, builder, given.data, shape, strides, kind.layout, list(arguments[1:]))
        pointer, whole = _ir.IntType(8).as_pointer(), _ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", (pointer,), _ir.FunctionType(_ir.VoidType(), [pointer, whole, whole, whole])
        )
        builder.call(function, [builder.bitcast(at, pointer), whole(0), whole(3), whole(1)])
        return context.get_dummy_value()

    types = _numba.types
    return types.void(array, types.intp, types.intp), code


@compiled
def prefetch(table: npt.NDArray[Any], row: int) -> None:
    """Ask for a row of a contiguous table; nothing else happens.

    Rows are met in random order, and waiting for them was half the time of a training.
    """
    for column in range(0, table.shape[1], _LINE // table.itemsize):
        _line(table, row, column)
