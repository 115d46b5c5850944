"""Rows of a table brought to the cache while other work goes on.

Rows are met in random order, and waiting for them was half the time of a training.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from dptext.embeddings.dpsgd.compiled import compiled
from dptext.files.formats import extra

__all__ = ["prefetch"]

_numba = extra("numba", "skipgram", "training of word vectors")
_cgutils, _ir = (extra(name, "skipgram", "training of word vectors") for name in ("numba.core.cgutils", "llvmlite.ir"))

_LINE = 64  # bytes that come together


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
    """Ask for a row of a contiguous table of numbers of 4 bytes; nothing else happens."""
    for column in range(0, table.shape[1], _LINE // 4):
        _line(table, row, column)
