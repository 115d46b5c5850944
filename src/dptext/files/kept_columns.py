"""Kept columns, rebuilt value by value, so that nothing but the values of the kept rows goes out with them.

A column of a table is seldom its values alone. A slice of an Arrow array shares the buffers of all rows, a dictionary
has entries that no row uses, values lie beneath null rows and outside of the offsets of lists, fields and extension
types have metadata. Writers and pickles copy much of it. So a column that is kept is made anew, down to the leaves of
its type: the result is a function of its values, in their order, and of the type of the values. A type whose parts are
not known is refused.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, extra

__all__ = ["rebuilt_column", "rebuilt_values", "unknown_type"]

Mask = npt.NDArray[np.bool_]


def unknown_type(name: object, kind: str) -> DataError:
    """The one error for a kept column that cannot be rebuilt; ``kind`` is its type, or that of a value in it."""
    return DataError(
        f"the kept column {name!r} holds values of the type {kind!r}, which may carry more along than the rows that "
        "are kept: convert it, or do not keep it"
    )


# -- Arrow ----------------------------------------------------------------------------------------------------


def rebuilt_column(column: Any, name: str, *, ordered: bool = True) -> Any:
    """A pyarrow column made anew: buffers of its own, no more entries in dictionaries than rows use, no metadata.

    Args:
        ordered: whether entries of an ordered dictionary keep their order. A column that is made block by block has
            none (each block has entries of its own), and its dictionary is then no longer an ordered one. Entries of
            dictionaries without an order are put in that of their first use.

    Returns:
        A chunked array, of one chunk unless the type cannot hold so many bytes in one. The type is that of the column,
        but without metadata, an extension type being that of its storage.

    Raises:
        DataError: a type that is not known here (unions, views of lists, dictionaries of nested values).
    """
    arrow = extra("pyarrow", "files", "a kept column")
    arrays = _Arrays(arrow, ordered)
    whole = arrow.table([column], names=[""]).combine_chunks().column(0)
    unknown = None
    try:
        chunks = [arrays.rebuilt(chunk) for chunk in whole.chunks or [arrow.nulls(0, whole.type)]]
    except _UnknownTypeError as error:
        unknown = error.kind
    except arrow.ArrowException:  # an operation that this version does not have for the type; its words may quote
        unknown = _kind_of(whole.type)
    if unknown is not None:
        raise unknown_type(name, unknown)
    return arrow.chunked_array(chunks)


class _UnknownTypeError(Exception):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


def _kind_of(kind: Any) -> str:
    """The name of an Arrow type, without what stands in it."""
    return str(kind).partition("<")[0].partition("[")[0]


class _Arrays:
    """Arrow arrays made anew; each method has the layout of one family of types (Arrow's columnar format)."""

    def __init__(self, arrow: Any, ordered: bool) -> None:
        self._arrow, self._ordered = arrow, ordered

    def rebuilt(self, array: Any) -> Any:
        kind, types = array.type, self._arrow.types
        if isinstance(kind, self._arrow.BaseExtensionType):
            return self.rebuilt(array.storage)
        if types.is_dictionary(kind):
            return self._dictionary(array)
        if types.is_null(kind):
            return self._arrow.nulls(len(array))
        if types.is_struct(kind):
            return self._struct(array)
        if types.is_map(kind):
            return self._map(array)
        if types.is_list(kind) or types.is_large_list(kind):
            return self._list(array)
        if types.is_fixed_size_list(kind):
            return self._fixed_size_list(array)
        if _is(types, "is_string_view", kind):
            return self._view(array, self._arrow.large_string())
        if _is(types, "is_binary_view", kind):
            return self._view(array, self._arrow.large_binary())
        if types.is_string(kind) or types.is_binary(kind):
            return self._bytes(array, np.int32)
        if types.is_large_string(kind) or types.is_large_binary(kind):
            return self._bytes(array, np.int64)
        if types.is_boolean(kind):
            return self._booleans(array)
        if types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind):
            return self._fixed_width(array)
        raise _UnknownTypeError(_kind_of(kind))

    # -- leaves -----------------------------------------------------------------------------------------------

    def _fixed_width(self, array: Any) -> Any:
        width = array.type.bit_width // 8
        start = array.offset * width
        values = _numbers(array.buffers()[1], np.uint8)[start : start + len(array) * width].copy()
        valid = self._valid(array)
        if valid is not None:
            values.reshape(len(array), width)[~valid] = 0
        return self._made(array.type, len(array), valid, [values])

    def _booleans(self, array: Any) -> Any:
        valid = self._valid(array)
        values = _bits(array.buffers()[1], array.offset, len(array))
        if valid is not None:
            values &= valid
        return self._made(array.type, len(array), valid, [np.packbits(values, bitorder="little")])

    def _bytes(self, array: Any, offset: type[np.signedinteger[Any]]) -> Any:
        valid = self._valid(array)
        ends, used, first, stop = self._laid_out(array, valid, offset)
        content = _numbers(array.buffers()[2], np.uint8)[first:stop]
        content = content.copy() if used is None else content[used]
        return self._made(array.type, len(array), valid, [ends, content])

    def _view(self, array: Any, plain: Any) -> Any:
        return self.rebuilt(array.cast(plain)).cast(array.type)  # which views the buffer that was made, and no other

    def _dictionary(self, array: Any) -> Any:
        kind, types = array.type, self._arrow.types
        if types.is_nested(kind.value_type) or types.is_dictionary(kind.value_type):
            raise _UnknownTypeError(f"dictionary of {_kind_of(kind.value_type)}")
        codes = self._fixed_width(array.indices)
        valid = self._valid(array)
        found = _numbers(codes.buffers()[1], kind.index_type.to_pandas_dtype())
        kept = np.flatnonzero(valid) if valid is not None else np.arange(len(array))
        used, first, code = np.unique(found[kept], return_index=True, return_inverse=True)
        if not kind.ordered or not self._ordered:
            by_use = np.argsort(first)
            used, code = used[by_use], np.argsort(by_use)[code]
        # entries may be equal, or null: encoded once more they are all different, in the same order
        entries = self.rebuilt(array.dictionary.take(self._indices(used))).dictionary_encode()
        again = _numbers(self._fixed_width(entries.indices).buffers()[1], np.int32)[: len(used)]
        present = self._valid(entries.indices)
        result = np.zeros(len(array), dtype=found.dtype)
        result[kept] = again[code]
        if present is not None:
            valid = np.ones(len(array), dtype=bool) if valid is None else valid.copy()
            valid[kept] &= present[code]
        return self._arrow.DictionaryArray.from_arrays(
            self._made(kind.index_type, len(array), valid, [result]),
            self.rebuilt(entries.dictionary),
            ordered=kind.ordered and self._ordered,
        )

    # -- nested -----------------------------------------------------------------------------------------------

    def _struct(self, array: Any) -> Any:
        # flattened: where the row is null, its fields are
        fields = list(array.type)
        children = [self._child(each, field) for each, field in zip(array.flatten(), fields, strict=True)]
        kind = self._arrow.struct([self._field(f.name, c, f) for c, f in zip(children, fields, strict=True)])
        return self._made(kind, len(array), self._valid(array), [], children)

    def _list(self, array: Any) -> Any:
        is_large = self._arrow.types.is_large_list(array.type)
        valid = self._valid(array)
        ends, used, first, stop = self._laid_out(array, valid, np.int64 if is_large else np.int32)
        child = self.rebuilt(self._taken(array.values.slice(first, stop - first), used))
        make = self._arrow.large_list if is_large else self._arrow.list_
        kind = make(self._field("item", child, array.type.value_field))
        return self._made(kind, len(array), valid, [ends], [child])

    def _map(self, array: Any) -> Any:
        kind = array.type
        valid = self._valid(array)
        ends, used, first, stop = self._laid_out(array, valid, np.int32)
        parts = [self.rebuilt(self._taken(each.slice(first, stop - first), used)) for each in (array.keys, array.items)]
        key, item = self._field("key", parts[0], kind.key_field), self._field("value", parts[1], kind.item_field)
        entries = self._made(self._arrow.struct([key, item]), len(parts[0]), None, [], parts)
        made = self._arrow.map_(key, item, keys_sorted=kind.keys_sorted)
        return self._made(made, len(array), valid, [ends], [entries])

    def _fixed_size_list(self, array: Any) -> Any:
        size = array.type.list_size
        valid = self._valid(array)
        child = array.values.slice(array.offset * size, len(array) * size)
        if valid is not None:  # where the row is null, its entries are
            child = self._taken(child, np.repeat(valid, size), null=True)
        field = array.type.value_field
        child = self._child(child, field)
        kind = self._arrow.list_(self._field("item", child, field), size)
        return self._made(kind, len(array), valid, [], [child])

    def _child(self, array: Any, field: Any) -> Any:
        """What lies in a nullable row: where that is null, a field that is never null has a value of zeros."""
        child = self.rebuilt(array)
        if field.nullable or not child.null_count:
            return child
        types = self._arrow.types
        if types.is_null(child.type):
            return child
        if types.is_dictionary(child.type):
            codes = self._made(
                child.type.index_type, len(child), None, [_numbers(child.indices.buffers()[1], np.uint8)]
            )
            entries = child.dictionary if len(child.dictionary) else self._arrow.nulls(1, child.type.value_type)
            return self._arrow.DictionaryArray.from_arrays(codes, entries, ordered=child.type.ordered)
        children = None
        if types.is_struct(child.type):
            children = [child.field(place) for place in range(child.type.num_fields)]
        elif types.is_map(child.type):
            entries = self._arrow.struct([child.type.key_field, child.type.item_field])
            children = [self._made(entries, len(child.keys), None, [], [child.keys, child.items])]
        elif types.is_nested(child.type):
            children = [child.values]
        buffers = [None, *child.buffers()[1 : child.type.num_buffers]]
        return self._arrow.Array.from_buffers(child.type, len(child), buffers, 0, 0, children)

    def _field(self, name: str, child: Any, source: Any) -> Any:
        return self._arrow.field(name, child.type, source.nullable)

    # -- layout -----------------------------------------------------------------------------------------------

    def _valid(self, array: Any) -> Mask | None:
        """Which rows are not null; None: all of them."""
        bitmap = array.buffers()[0]
        if bitmap is None or not array.null_count:
            return None
        return _bits(bitmap, array.offset, len(array))

    @staticmethod
    def _laid_out(
        array: Any, valid: Mask | None, offset: type[np.signedinteger[Any]]
    ) -> tuple[npt.NDArray[Any], Mask | None, int, int]:
        """Where parts of different length end when those of null rows are empty.

        Returns:
            the offsets, from 0; which of the elements are used (None: all) of those that lie between the two numbers
            that follow.
        """
        if not len(array):
            return np.zeros(1, dtype=offset), None, 0, 0
        found = _numbers(array.buffers()[1], offset)[array.offset : array.offset + len(array) + 1]
        first, stop = int(found[0]), int(found[-1])
        lengths = np.diff(found)
        if valid is None or not lengths[~valid].any():
            return found - found[0], None, first, stop
        used = np.repeat(valid, lengths)
        ends = np.zeros(len(array) + 1, dtype=offset)
        np.cumsum(np.where(valid, lengths, 0), out=ends[1:])
        return ends, used, first, stop

    def _taken(self, array: Any, used: Mask | None, *, null: bool = False) -> Any:
        """The elements that are used; where asked for, a null in place of each other one."""
        if used is None:
            return array
        places = self._indices(np.arange(len(array)), used) if null else self._indices(np.flatnonzero(used))
        with suppress(self._arrow.ArrowNotImplementedError):
            return array.take(places)
        edges = [0, *(np.flatnonzero(np.diff(used)) + 1).tolist(), len(array)]  # views of strings: run by run
        runs = [
            array.slice(start, stop - start) if used[start] else self._arrow.nulls(stop - start, array.type)
            for start, stop in pairwise(edges)
            if null or used[start]
        ]
        return self._arrow.concat_arrays(runs or [array.slice(0, 0)])

    def _indices(self, places: npt.NDArray[Any], valid: Mask | None = None) -> Any:
        return self._made(self._arrow.int64(), len(places), valid, [places.astype(np.int64)])

    def _made(
        self,
        kind: Any,
        length: int,
        valid: Mask | None,
        buffers: list[npt.NDArray[Any]],
        children: list[Any] | None = None,
    ) -> Any:
        nulls = 0 if valid is None else length - int(np.count_nonzero(valid))
        bitmap = None if valid is None or not nulls else np.packbits(valid, bitorder="little")
        found = (bitmap, *buffers)
        laid = [None if each is None else self._arrow.py_buffer(np.ascontiguousarray(each)) for each in found]
        return self._arrow.Array.from_buffers(kind, length, laid, nulls, 0, children)


def _is(types: Any, test: str, kind: Any) -> bool:
    """A test that old versions of pyarrow lack, for a type that they lack too."""
    return bool(getattr(types, test, lambda _: False)(kind))


def _numbers(buffer: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    width = np.dtype(dtype).itemsize
    return np.frombuffer(buffer or b"", dtype=dtype, count=len(buffer or b"") // width)


def _bits(buffer: Any, offset: int, length: int) -> Mask:
    first = offset // 8
    part = _numbers(buffer, np.uint8)[first : (offset + length + 7) // 8]
    return np.unpackbits(part, bitorder="little")[offset - 8 * first :][:length].astype(bool)


# -- Python objects -------------------------------------------------------------------------------------------

_LEAVES: Final = frozenset({
    type(None), bool, int, float, complex, str, bytes, decimal.Decimal, fractions.Fraction, uuid.UUID,
    datetime.date, datetime.timedelta,
})  # fmt: skip
_TIMES: Final = frozenset({datetime.datetime, datetime.time})
_PANDAS: Final = frozenset({"Timestamp", "Timedelta", "NaTType", "NAType", "Period"})
_ZONES: Final = frozenset({"datetime", "zoneinfo", "pytz", "dateutil"})


def rebuilt_values(values: Iterable[Any], name: object) -> list[Any]:
    """Python objects made anew, containers in them too: a subclass, or another object, may hold anything.

    Known are numbers, strings, bytes, times, None, those of numpy and pandas; lists, tuples, sets, dictionaries and
    numpy arrays of them. ``name`` is that of the column, for errors.

    Raises:
        DataError: an object of another type.
    """
    unknown = None
    try:
        return [each if type(each) is str else _rebuilt(each) for each in values]
    except _UnknownTypeError as error:
        unknown = error.kind
    except RecursionError:
        unknown = "containers nested without end"
    raise unknown_type(name, unknown)


def _rebuilt(value: Any) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind in (list, tuple, set, frozenset):
        return kind(_rebuilt(each) for each in value)
    if kind is dict:
        return {_rebuilt(key): _rebuilt(each) for key, each in value.items()}
    if kind is np.ndarray and value.dtype.kind in "biufcSUmM":
        return np.array(value, order="C", subok=False)
    if kind is np.ndarray and value.dtype == object:
        result = np.empty(value.shape, dtype=object)
        result.ravel()[:] = [_rebuilt(each) for each in value.ravel()]
        return result
    if isinstance(value, np.generic) and kind.__module__ == "numpy" and value.dtype.kind in "biufcSUmM":
        return value
    is_pandas = kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in _PANDAS
    if (kind in _TIMES or is_pandas) and _is_known_zone(getattr(value, "tzinfo", None)):
        return value
    raise _UnknownTypeError(kind.__name__)


def _is_known_zone(zone: Any) -> bool:
    return zone is None or type(zone).__module__.partition(".")[0] in _ZONES
