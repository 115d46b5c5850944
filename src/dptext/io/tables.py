"""Tables of pandas, polars, pyarrow and Hugging Face datasets: read documents, and rebuild tables from values only.

A library is imported only for its own tables.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, Final, TypeVar

import numpy as np

from dptext.errors import DataError, ParameterError
from dptext.io.batches import describe_columns
from dptext.io.documents import Document
from dptext.validation import is_missing

Table = TypeVar("Table")
Texts = list[str | None]

_KNOWN = "a pandas or polars DataFrame, a pyarrow Table or a datasets.Dataset"


@dataclass(frozen=True)
class TableKind:
    """Interface to a table of one library: read a column, rebuild columns, and build a table from columns."""

    names: Sequence[Any]
    read: Callable[[Any], Iterable[Any]]
    texts: Callable[[Texts], Any]
    rebuilt: Callable[[Any], Any]
    table: Callable[[Mapping[Any, Any]], Any]

    def check_column(self, name: object) -> None:
        """Raise `ParameterError` unless exactly one column has this name."""
        count = list(self.names).count(name)
        if count != 1:
            problem = f"{count} columns with this name" if count else describe_columns(name, self.names)
            raise ParameterError(f"expected a column {name!r}, the table has {problem}")


def strip_metadata(table: Table) -> Table:
    """Return a table rebuilt from the values of its columns, so that nothing else can be written or sent with it.

    Tables contain more than the values of their rows, and writers, pickles and ``save_to_disk`` include it: an index,
    attributes and metadata, the source of a dataset (sizes of its splits and files, builder, description), categories
    and class names without rows, values hidden by nulls, and buffers shared with removed rows.

    ``datasets.Dataset.map`` keeps most of it. The sizes alone, in bytes of the *original* texts, can distinguish two
    diagnoses despite the noise. So strip a dataset before you share it (`dptext.privatize` does so).

    Args:
        table: a pandas or polars DataFrame, a pyarrow Table or a datasets.Dataset, without the private columns. It is
            not modified. A dataset on disk is read into memory.

    Returns:
        A table of the same kind with the same columns and values. Types stay the same, except Arrow types that contain
        more than values: extension types become their storage types, dictionaries and views become plain values.
        Categories without rows are dropped. Class names without rows become ``"unused 0"`` (1, 2, ...), because classes
        are numbers; those after the last used one are dropped.

    Raises:
        ParameterError: the kind of table is unknown, or two columns have the same name.
        DataError: a column has an unknown type.

    Example:
        >>> import pyarrow
        >>> table = pyarrow.table({"stars": [5, 1]}, metadata={"source": "reviews of 2 patients of Dr. A"})
        >>> strip_metadata(table).schema.metadata is None
        True
    """
    kind = table_kind(table)
    for name in kind.names:
        kind.check_column(name)
    stripped: Table = kind.table({name: kind.rebuilt(name) for name in kind.names})
    return stripped


def is_table(value: Any) -> bool:
    """Return True if a value has columns, so that iterating would not give texts; `table_kind` may not know it."""
    # check the class, because a lazy frame would compute its columns
    has_columns = any(hasattr(type(value), name) for name in ("columns", "column_names"))
    return has_columns or isinstance(value, Mapping) or len(getattr(value, "shape", (0,))) != 1


def table_kind(table: Any) -> TableKind:
    """Return the interface to a table; raise `ParameterError` for an unknown kind."""
    name = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
    kinds: dict[str, Callable[[Any], TableKind]] = {
        "pandas.DataFrame": _pandas,
        "polars.DataFrame": _polars,
        "pyarrow.Table": _pyarrow,
        "datasets.Dataset": _datasets,
    }
    if name in kinds:
        return kinds[name](table)
    instead = {
        "polars.LazyFrame": ": call collect() first",
        "pyspark.DataFrame": ": use the functions of dptext.spark.frames",
        "datasets.DatasetDict": ": pass one split at a time",
        "datasets.IterableDataset": ": pass its texts, (row['text'] for row in dataset)",
    }.get(name, "")
    raise ParameterError(f"expected {_KNOWN}, got {name}{instead}")


def table_documents(
    table: Any,
    *,
    text: str = "text",
    user: str | None = None,
    label: str | None = None,
    attributes: Mapping[str, str] | None = None,
) -> Iterator[Document]:
    """Return the rows of a table as documents; raise `ParameterError` for a missing column before reading any."""
    kind, named = table_kind(table), attributes or {}
    columns = (text, user, label, *named.values())
    for column in filter(None, columns):
        kind.check_column(column)
    values = (repeat(None, len(table)) if column is None else kind.read(column) for column in columns)
    return (
        Document(entry, None if is_missing(author) else str(author), name, dict(zip(named, kept, strict=True)) or None)
        for entry, author, name, *kept in zip(*values, strict=True)
    )


# -- Arrow ----------------------------------------------------------------------------------------------------


def rebuilt_column(column: Any, name: str) -> Any:
    """Rebuild a column from its values, without metadata, dictionaries, hidden values, shared buffers or old chunks."""
    import pyarrow as pa

    with suppress(pa.ArrowException, ValueError, TypeError, OverflowError):  # errors may quote a value
        kind = _values_type(column.type)
        whole = pa.table([column], names=[""]).combine_chunks().column(0)
        return pa.chunked_array([_rebuilt_array(chunk, kind) for chunk in whole.chunks], type=kind)
    raise unknown_type(name, str(column.type).partition("<")[0].partition("[")[0])


def _rebuilt_array(array: Any, kind: Any) -> Any:
    import pyarrow as pa

    while isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_nested(kind):
        return pa.array(array.to_pylist(), type=kind)
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    valid = np.asarray(array.is_valid())  # take copies values only, not those hidden by nulls
    places = pa.array(np.cumsum(valid) - 1, mask=~valid)
    return array.cast(kind).drop_null().take(places)


def _values_type(kind: Any) -> Any:
    """Return the type of the values only, without metadata, extension types, dictionaries and views."""
    import pyarrow as pa

    def inner(name: str, field: Any) -> Any:
        return pa.field(name, _values_type(field.type))

    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _values_type(kind.storage_type)
    if types.is_dictionary(kind):
        return _values_type(kind.value_type)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return pa.large_string() if types.is_string_view(kind) else pa.large_binary()
    if types.is_struct(kind):
        return pa.struct([inner(field.name, field) for field in kind])
    if types.is_map(kind):
        return pa.map_(inner("key", kind.key_field).type, inner("value", kind.item_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(inner("item", kind.value_field), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        make = pa.large_list if types.is_large_list(kind) else pa.list_
        return make(inner("item", kind.value_field))
    if types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise TypeError
    return kind


def _pyarrow(table: Any) -> TableKind:
    import pyarrow as pa

    return TableKind(
        table.column_names,
        lambda name: (value for chunk in table.column(name).chunks for value in chunk.to_pylist()),
        pa.array,
        lambda name: rebuilt_column(table.column(name), name),
        lambda columns: pa.table(list(columns.values()), names=list(columns)),
    )


def _datasets(table: Any) -> TableKind:
    import datasets
    import pyarrow as pa

    def rebuilt(name: str) -> tuple[Any, Any]:
        # the Arrow format has the selected rows in order, without decoding
        column = rebuilt_column(table.with_format("arrow").select_columns([name])[:].column(name), name)
        feature = table.features[name]
        if type(feature) is not datasets.ClassLabel:
            return column, None
        used = {code for code in column.unique().to_pylist() if code is not None and 0 <= code < len(feature.names)}
        return column, datasets.ClassLabel(names=_class_names(feature.names, used))

    def built(columns: Mapping[str, tuple[Any, Any]]) -> Any:
        values = pa.table([column for column, _ in columns.values()], names=list(columns))
        labels = {name: feature for name, (_, feature) in columns.items() if feature is not None}
        features = datasets.Features({**datasets.Features.from_arrow_schema(values.schema), **labels})
        # the new fingerprint depends on this table only; save_to_disk writes it, and the old one could confirm guesses
        return datasets.Dataset(values.cast(features.arrow_schema), info=datasets.DatasetInfo(features=features))

    def read(name: str) -> Iterable[Any]:
        classes = table.features[name].names if type(table.features[name]) is datasets.ClassLabel else None
        for batch in table.select_columns([name]).iter(1000):
            codes = batch[name]
            yield from (
                codes if classes is None else (None if code is None or code < 0 else classes[code] for code in codes)
            )

    return TableKind(
        list(table.column_names), read, lambda private: (pa.array(private, type=pa.string()), None), rebuilt, built
    )


def _class_names(names: Sequence[str], used: set[int]) -> list[str]:
    taken = {names[code] for code in used}
    free = (name for name in map("unused {}".format, range(len(names) + len(taken))) if name not in taken)
    return [names[code] if code in used else next(free) for code in range(max(used, default=-1) + 1)]


# -- pandas ---------------------------------------------------------------------------------------------------


def _pandas(table: Any) -> TableKind:
    import pandas

    def read(name: Any) -> Iterable[Any]:
        column = table[name]
        return (None if missing else value for value, missing in zip(column, column.isna(), strict=True))

    def built(columns: Mapping[Any, Any]) -> Any:
        frame = pandas.DataFrame(dict(enumerate(columns.values())), index=pandas.RangeIndex(len(table)))
        frame.columns = pandas.Index(list(columns))
        return frame

    texts = partial(pandas.Series, dtype=object)
    return TableKind(list(table.columns), read, texts, lambda name: _series(pandas, table[name], name), built)


def _series(pandas: Any, column: Any, name: Any) -> Any:
    dtype = column.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        values = _series(pandas, column.astype(dtype.categories.dtype), name)
        used = set(values.dropna())
        categories = [entry for entry in dtype.categories if entry in used] if dtype.ordered else None
        return pandas.Series(pandas.Categorical(values, categories=categories, ordered=dtype.ordered))
    if isinstance(dtype, pandas.ArrowDtype):
        return pandas.Series(pandas.arrays.ArrowExtensionArray(rebuilt_column(column.array.__arrow_array__(), name)))
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return pandas.Series(np.array(column.to_numpy(), order="C"))
    if isinstance(dtype, np.dtype) or type(dtype).__module__.partition(".")[0] == "pandas":
        values = np.empty(len(column), dtype=object)
        values[:] = rebuilt_values(column.array, name)
        return pandas.Series(values, dtype=dtype)
    raise unknown_type(name, type(dtype).__name__)


_LEAVES: Final = frozenset({
    type(None), bool, int, float, complex, str, bytes, decimal.Decimal, fractions.Fraction, uuid.UUID,
    datetime.date, datetime.timedelta, datetime.datetime, datetime.time,
})  # fmt: skip
_PANDAS: Final = frozenset({"Timestamp", "Timedelta", "NaTType", "NAType", "Period", "Interval"})


def rebuilt_values(values: Iterable[Any], name: object) -> list[Any]:
    """Rebuild Python objects and containers, because subclasses and foreign objects may contain anything."""
    unknown = ""
    try:
        return [value if type(value) is str else _rebuilt(value) for value in values]
    except TypeError as error:
        unknown = str(error)
    except RecursionError:
        unknown = "endlessly nested containers"
    raise unknown_type(name, unknown)


def _rebuilt(value: Any) -> Any:
    kind = type(value)
    if kind in _LEAVES or (kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in _PANDAS):
        return value
    if kind in (list, tuple, set, frozenset):
        return kind(map(_rebuilt, value))
    if kind is dict:
        return {_rebuilt(key): _rebuilt(item) for key, item in value.items()}
    if kind.__module__ == "numpy" and value.dtype.kind in "biufcSUmM":
        return np.array(value, order="C") if kind is np.ndarray else value
    raise TypeError(kind.__name__)


# -- polars ---------------------------------------------------------------------------------------------------


def _polars(table: Any) -> TableKind:
    import polars

    return TableKind(
        table.columns,
        table.get_column,
        lambda private: polars.Series(private, dtype=polars.String),
        lambda name: _polars_series(polars, table.get_column(name), name),
        lambda columns: polars.DataFrame([column.alias(name) for name, column in columns.items()]),
    )


def _polars_series(polars: Any, column: Any, name: str) -> Any:
    import pyarrow as pa

    dtype = column.dtype
    # Arrow has no 128-bit integers
    with suppress(TypeError, pa.ArrowException, polars.exceptions.PolarsError, polars.exceptions.PanicException):
        if dtype == polars.Object:
            raise TypeError  # polars would return memory addresses
        result = polars.from_arrow(rebuilt_column(column.to_arrow(compat_level=polars.CompatLevel.oldest()), name))
        if isinstance(dtype, polars.Enum):
            used = set(result.to_list())
            return result.cast(polars.Enum([entry for entry in dtype.categories if entry in used]))
        if isinstance(dtype, polars.Categorical):
            return result.cast(polars.Categorical())  # drops the name of the categories
        if result.dtype == dtype:
            return result
    raise unknown_type(name, dtype.base_type().__name__)


def unknown_type(name: object, kind: str) -> DataError:
    """Return the error for a kept column that cannot be rebuilt from its values; ``kind`` is the type."""
    return DataError(
        f"the kept column {name!r} has values of type {kind!r}, which may contain more than the kept rows: convert "
        "it, or do not keep it"
    )
