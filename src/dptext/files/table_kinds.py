"""Tables in memory of other libraries, none of them imported unless the caller brought it: a column out, a table in.

A table that is built here holds values and nothing that came with them: no index, no attributes or metadata, no
information about a data set, no categories or names of classes that no row has, no buffers that it shares with the
table it came from (`dptext.files.kept_columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dptext.errors import ParameterError
from dptext.files.column import columns_there
from dptext.files.kept_columns import rebuilt_column, rebuilt_values, unknown_type
from dptext.files.parquet import as_table, pyarrow

__all__ = ["TableKind", "is_table", "strip_metadata", "table_kind"]

Table = TypeVar("Table")
Texts = list[str | None]

_KNOWN = "a pandas or polars DataFrame, a pyarrow Table or a datasets.Dataset"


@dataclass(frozen=True)
class TableKind:
    """A table, as its library has it.

    Attributes:
        names: of its columns, in order.
        read: the values of a column, row for row, None where one is missing.
        texts: a column of the library out of texts, like the column of this name.
        rebuilt: the column of this name with nothing but its values (DataError: a type that is not known).
        table: a table of such columns.
    """

    names: Sequence[Any]
    read: Callable[[Any], Iterable[Any]]
    texts: Callable[[Any, Texts], Any]
    rebuilt: Callable[[Any], Any]
    table: Callable[[Mapping[Any, Any]], Any]

    def check_column(self, name: object) -> None:
        """Whether there is one column of this name.

        Raises:
            ParameterError: there is none, or there are several.
        """
        count = list(self.names).count(name)
        if count != 1:
            what = f"{count} of this name" if count else columns_there(name, self.names)
            raise ParameterError(f"expected a column {name!r}, the table has {what}")


def strip_metadata(table: Table) -> Table:
    """A table made anew from the values of its columns, in their order: nothing else is left to be written or sent.

    What tables carry besides the values of their rows, and writers, pickles and ``save_to_disk`` pass on: an index,
    attributes and metadata of a table or of its fields, what a data set says of where it came from (sizes of its
    splits and files, builder, configuration, description), categories and names of classes that no row has, values
    beneath missing ones, and buffers shared with rows that were left out.

    ``datasets.Dataset.map`` passes most of it on. The sizes alone, in bytes of the *original* texts, tell one diagnosis
    from another, however much noise the texts got. So strip what `dptext.batch_privatizer` made before you hand it on.
    (`dptext.privatize` does it itself.)

    Args:
        table: a pandas or polars DataFrame, a pyarrow Table or a datasets.Dataset, without the columns that are to
            stay private; it is not changed. A data set that lies on disk is read into memory.

    Returns:
        the same kind of table: the same columns, types and values. Extension types of Arrow become those of their
        storage. An unordered category has the place of its first row. Classes that no row has are called
        ``"unused 0"`` (1, 2, ...), as classes are numbers; those behind the last one that a row has go.

    Raises:
        ParameterError: another kind of table; two columns of one name.
        DataError: a column of a type whose parts are not known; it is named.
        MissingExtraError: pyarrow is not installed (polars).

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
    """Whether a value has columns, so that to go over it is not to go over texts; `table_kind` says if it is known."""
    # asked of the class: a frame that is not computed yet would compute its columns
    has_columns = any(hasattr(type(value), name) for name in ("columns", "column_names"))
    return has_columns or isinstance(value, Mapping) or len(getattr(value, "shape", (0,))) != 1


def table_kind(table: Any) -> TableKind:
    """How to read this table, and how to build another one.

    Raises:
        ParameterError: another kind of table; what to do is said.
    """
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
        "polars.LazyFrame": ": collect() it first",
        "pyspark.DataFrame": ": use dptext.spark.frames.privatize",
        "datasets.DatasetDict": ": take its splits one by one",
        "datasets.IterableDataset": ": give its texts, (row['text'] for row in it)",
    }.get(name, "")
    raise ParameterError(f"expected {_KNOWN}, got {name}{instead}")


# -- pandas ---------------------------------------------------------------------------------------------------


def _pandas(table: Any) -> TableKind:
    import pandas

    def read(name: Any) -> Iterable[Any]:
        column = table[name]
        return (None if missing else value for value, missing in zip(column, column.isna(), strict=True))

    def texts(name: Any, private: Texts) -> Any:
        dtype = table[name].dtype
        return pandas.Series(private, dtype=dtype if isinstance(dtype, pandas.StringDtype) else object)

    def built(columns: Mapping[Any, Any]) -> Any:
        frame = pandas.DataFrame(dict(enumerate(columns.values())), index=pandas.RangeIndex(len(table)))
        frame.columns = pandas.Index(list(columns))
        return frame

    return TableKind(list(table.columns), read, texts, lambda name: _series(pandas, table[name], name), built)


def _series(pandas: Any, column: Any, name: Any) -> Any:
    """A pandas Series of the values of another."""
    dtype, array = column.dtype, column.array
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            values = np.empty(len(column), dtype=object)
            values[:] = rebuilt_values(column.to_numpy(), name)
            return pandas.Series(values, dtype=object)
        return pandas.Series(np.array(column.to_numpy(), order="C"))
    if isinstance(dtype, pandas.CategoricalDtype):
        return pandas.Series(_categorical(pandas, array, name))
    if isinstance(dtype, pandas.StringDtype):
        return pandas.Series(rebuilt_values(column.to_numpy(dtype=object), name), dtype=dtype)
    if isinstance(dtype, pandas.ArrowDtype):
        return pandas.Series(pandas.arrays.ArrowExtensionArray(rebuilt_column(array.__arrow_array__(), name)))
    if isinstance(array, pandas.arrays.IntegerArray | pandas.arrays.FloatingArray | pandas.arrays.BooleanArray):
        # beneath a missing value lies what it was before it went missing
        values = array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0), copy=True)
        return pandas.Series(type(array)(values, np.array(array.isna())))
    if isinstance(dtype, pandas.DatetimeTZDtype):
        plain = pandas.Series(np.array(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()))
        return plain.dt.tz_localize("UTC").dt.tz_convert(dtype.tz)
    if isinstance(dtype, pandas.PeriodDtype):
        return pandas.Series(pandas.arrays.PeriodArray(np.array(array.asi8), dtype=dtype))
    if isinstance(dtype, pandas.IntervalDtype):
        ends = [_series(pandas, pandas.Series(each), name) for each in (array.left, array.right)]
        return pandas.Series(pandas.arrays.IntervalArray.from_arrays(*ends, closed=dtype.closed))
    raise unknown_type(name, str(type(dtype).__name__))


def _categorical(pandas: Any, array: Any, name: Any) -> Any:
    present = array.codes >= 0
    used, first, code = np.unique(array.codes[present], return_index=True, return_inverse=True)
    if not array.ordered:
        by_use = np.argsort(first)
        used, code = used[by_use], np.argsort(by_use)[code]
    codes = np.full(len(array), -1)
    codes[present] = code
    categories = pandas.Index(_series(pandas, pandas.Series(array.categories[used]), name), name=None)
    return pandas.Categorical.from_codes(codes, categories=categories, ordered=array.ordered)


# -- polars ---------------------------------------------------------------------------------------------------


def _polars(table: Any) -> TableKind:
    import polars

    return TableKind(
        table.columns,
        table.get_column,
        lambda _, private: polars.Series(private, dtype=polars.String),
        lambda name: _polars_series(polars, table.get_column(name), name),
        lambda columns: polars.DataFrame([column.alias(name) for name, column in columns.items()]),
    )


def _polars_series(polars: Any, column: Any, name: str) -> Any:
    """A polars Series of the values of another."""
    arrow = pyarrow()
    dtype = column.dtype
    if _is_known(polars, dtype):
        # not in Arrow: 128-bit integers; not in polars: arrays of an enumeration out of Arrow's dictionaries
        with suppress(arrow.ArrowException, polars.exceptions.PolarsError, polars.exceptions.PanicException):
            array = rebuilt_column(column.to_arrow(compat_level=polars.CompatLevel.oldest()), name)
            made = polars.from_arrow(array)
            kind = _used_dtype(polars, dtype, array.chunks)
            return made if made.dtype == kind else made.cast(kind)
    raise unknown_type(name, dtype.base_type().__name__)


def _is_known(polars: Any, dtype: Any) -> bool:
    """Whether all of a type is known here; of an Object, polars would export the address."""
    if _is_extension(polars, dtype):
        return _is_known(polars, dtype.ext_storage())
    if isinstance(dtype, polars.List | polars.Array):
        return _is_known(polars, dtype.inner)
    if isinstance(dtype, polars.Struct):
        return all(_is_known(polars, field.dtype) for field in dtype.fields)
    plain = (polars.Boolean, polars.String, polars.Binary, polars.Null, polars.Enum, polars.Categorical)
    return bool(dtype.is_numeric() or dtype.is_temporal() or isinstance(dtype, plain))


def _is_extension(polars: Any, dtype: Any) -> bool:
    return isinstance(dtype, getattr(polars, "BaseExtension", ()))  # which old versions lack


def _used_dtype(polars: Any, dtype: Any, arrays: Sequence[Any]) -> Any:
    """The type without the categories that these arrays, rebuilt, have not."""
    if isinstance(dtype, polars.Enum):
        used = {each for array in arrays for each in array.dictionary.to_pylist()}
        return polars.Enum([each for each in dtype.categories if each in used])
    if isinstance(dtype, polars.Categorical):
        return polars.Categorical()  # one of its own would have the name that somebody gave to the categories
    if isinstance(dtype, polars.List):
        return polars.List(_used_dtype(polars, dtype.inner, [each.values for each in arrays]))
    if isinstance(dtype, polars.Array):
        levels = len(dtype.shape)
        for _ in range(levels):
            arrays = [each.values for each in arrays]
        inner = dtype
        for _ in range(levels):
            inner = inner.inner
        return polars.Array(_used_dtype(polars, inner, arrays), dtype.shape)
    if isinstance(dtype, polars.Struct):
        return polars.Struct([
            polars.Field(field.name, _used_dtype(polars, field.dtype, [each.field(place) for each in arrays]))
            for place, field in enumerate(dtype.fields)
        ])  # fmt: skip
    if _is_extension(polars, dtype):  # it has a name, and metadata
        return _used_dtype(polars, dtype.ext_storage(), arrays)
    return dtype


# -- pyarrow --------------------------------------------------------------------------------------------------


def _pyarrow(table: Any) -> TableKind:
    return TableKind(
        table.column_names,
        lambda name: (value for chunk in table.column(name).chunks for value in chunk.to_pylist()),
        lambda name, private: as_table(name, private, {}, [], 1).column(0),
        lambda name: rebuilt_column(table.column(name), name),
        lambda columns: pyarrow().table(list(columns.values()), names=list(columns)),
    )


# -- Hugging Face datasets ------------------------------------------------------------------------------------


def _datasets(table: Any) -> TableKind:
    import datasets

    def rebuilt(name: str) -> tuple[Any, Any]:
        # as Arrow: the rows that are selected, in their order, nothing decoded
        values = table.with_format("arrow").select_columns([name])[:].column(name)
        column = rebuilt_column(values, name)
        return column, _used_feature(datasets, table.features[name], column.chunks, name)

    def built(columns: Mapping[str, tuple[Any, Any]]) -> Any:
        values = pyarrow().table([column for column, _ in columns.values()], names=list(columns))
        features = datasets.Features({name: feature for name, (_, feature) in columns.items()})
        # its name is a hash of this table alone: save_to_disk writes it, and one of the original would test guesses
        return datasets.Dataset(values.cast(features.arrow_schema), info=datasets.DatasetInfo(features=features))

    return TableKind(
        list(table.column_names),
        lambda name: (value for batch in table.select_columns([name]).iter(1000) for value in batch[name]),
        lambda name, private: (as_table(name, private, {}, [], 1).column(0), datasets.Value("string")),
        rebuilt,
        built,
    )


def _used_feature(datasets: Any, feature: Any, arrays: Sequence[Any], name: str) -> Any:
    """The feature anew, without the names of classes that these arrays, rebuilt, have not."""
    kind = type(feature)
    if kind is datasets.Value:
        return datasets.Value(feature.dtype)
    if kind is datasets.ClassLabel:
        codes = {code for array in arrays for code in array.unique().to_pylist() if code is not None}
        return datasets.ClassLabel(names=_class_names(feature.names, codes & set(range(len(feature.names)))))
    if kind is dict:
        return {
            each: _used_feature(datasets, inner, [array.field(each) for array in arrays], name)
            for each, inner in feature.items()
        }
    lists = [getattr(datasets, each) for each in ("List", "LargeList") if hasattr(datasets, each)]
    if kind in lists:
        inner = _used_feature(datasets, feature.feature, [array.values for array in arrays], name)
        length = getattr(feature, "length", -1)
        return kind(inner) if length < 0 else kind(inner, length=length)
    raise unknown_type(name, kind.__name__)


def _class_names(names: Sequence[str], used: set[int]) -> list[str]:
    taken = {names[code] for code in used}
    free = (each for each in map("unused {}".format, range(len(names) + len(taken))) if each not in taken)
    return [names[code] if code in used else next(free) for code in range(max(used, default=-1) + 1)]
