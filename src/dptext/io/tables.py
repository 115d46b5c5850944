"""Tables of pandas, polars, pyarrow and Hugging Face datasets: texts out, and a table of the values alone in.

No library is imported unless the caller brought it.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from dptext.errors import ParameterError
from dptext.io.batches import describe_columns, unknown_type

Table = TypeVar("Table")
Texts = list[str | None]

_KNOWN = "a pandas or polars DataFrame, a pyarrow Table or a datasets.Dataset"


@dataclass(frozen=True)
class TableKind:
    """A table, as its library has it."""

    names: Sequence[Any]
    read: Callable[[Any], Iterable[Any]]
    texts: Callable[[Any, Texts], Any]
    rebuilt: Callable[[Any], Any]
    table: Callable[[Mapping[Any, Any]], Any]

    def check_column(self, name: object) -> None:
        """Raise `ParameterError` unless exactly one column has this name."""
        count = list(self.names).count(name)
        if count != 1:
            problem = f"{count} of this name" if count else describe_columns(name, self.names)
            raise ParameterError(f"expected a column {name!r}, the table has {problem}")


def strip_metadata(table: Table) -> Table:
    """Return a table rebuilt from the values of its columns: nothing else can be written or sent with it.

    Tables carry more than the values of their rows, and writers, pickles and ``save_to_disk`` pass it on: an index,
    attributes and metadata, the source of a dataset (sizes of its splits and files, builder, description), categories
    and class names without rows, values beneath missing ones, buffers shared with rows that were left out.

    ``datasets.Dataset.map`` passes most of it on. The sizes alone, in bytes of the *original* texts, tell one diagnosis
    from another, whatever the noise. So strip the result of `dptext.batch_privatizer` before you hand it on
    (`dptext.privatize` does it itself).

    Args:
        table: a pandas or polars DataFrame, a pyarrow Table or a datasets.Dataset, without the private columns. It is
            not changed. A dataset on disk is read into memory.

    Returns:
        The same kind of table with the same columns, types and values. Extension types of Arrow become their storage
        types. Unordered categories are in the order of their first rows. Class names without rows become
        ``"unused 0"`` (1, 2, ...), because classes are numbers; those after the last used one are dropped.

    Raises:
        ParameterError: another kind of table; two columns with one name.
        DataError: a column of an unknown type.

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
    """True if a value has columns, known to `table_kind` or not, so that iterating would not give texts."""
    # ask the class: a lazy frame would compute its columns
    has_columns = any(hasattr(type(value), name) for name in ("columns", "column_names"))
    return has_columns or isinstance(value, Mapping) or len(getattr(value, "shape", (0,))) != 1


def table_kind(table: Any) -> TableKind:
    """How to read this table and build another one; `ParameterError` for an unknown kind."""
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


def _rebuilt_arrow(column: Any, name: str) -> Any:
    from dptext.io.parquet import rebuilt_column

    return rebuilt_column(column, name)


def _arrow_texts(texts: Texts) -> Any:
    from dptext.io.parquet import as_table

    return as_table("text", texts, {}, [], 1).column(0)


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
    dtype, array, arrays = column.dtype, column.array, pandas.arrays
    if isinstance(dtype, pandas.CategoricalDtype):
        return pandas.Series(_categorical(pandas, array, name))
    if isinstance(dtype, pandas.ArrowDtype):
        return pandas.Series(arrays.ArrowExtensionArray(_rebuilt_arrow(array.__arrow_array__(), name)))
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return pandas.Series(np.array(column.to_numpy(), order="C"))
    if isinstance(dtype, np.dtype | pandas.StringDtype):
        values = np.empty(len(column), dtype=object)
        values[:] = rebuilt_values(column.to_numpy(dtype=object), name)
        return pandas.Series(values, dtype=dtype)
    known = ("IntegerArray", "FloatingArray", "BooleanArray", "DatetimeArray", "PeriodArray", "IntervalArray")
    if isinstance(array, tuple(getattr(arrays, kind) for kind in known)) and _is_known_zone(getattr(dtype, "tz", None)):
        return pandas.Series(pandas.array(list(column.array), dtype=dtype))
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


_LEAVES: Final = frozenset({
    type(None), bool, int, float, complex, str, bytes, decimal.Decimal, fractions.Fraction, uuid.UUID,
    datetime.date, datetime.timedelta,
})  # fmt: skip
_TIMES: Final = frozenset({datetime.datetime, datetime.time})
_PANDAS: Final = frozenset({"Timestamp", "Timedelta", "NaTType", "NAType", "Period"})
_ZONES: Final = frozenset({"datetime", "zoneinfo", "pytz", "dateutil"})


def rebuilt_values(values: Iterable[Any], name: object) -> list[Any]:
    """Python objects made anew, since a subclass or a foreign object may carry anything; containers as well."""
    unknown = ""
    try:
        return [value if type(value) is str else _rebuilt(value) for value in values]
    except TypeError as error:
        unknown = str(error)
    except RecursionError:
        unknown = "containers nested without end"
    raise unknown_type(name, unknown)


def _rebuilt(value: Any) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind in (list, tuple, set, frozenset):
        return kind(_rebuilt(item) for item in value)
    if kind is dict:
        return {_rebuilt(key): _rebuilt(item) for key, item in value.items()}
    if kind is np.ndarray and value.dtype.kind in "biufcSUmM":
        return np.array(value, order="C", subok=False)
    if kind is np.ndarray and value.dtype == object:
        result = np.empty(value.shape, dtype=object)
        result.ravel()[:] = [_rebuilt(item) for item in value.ravel()]
        return result
    if isinstance(value, np.generic) and kind.__module__ == "numpy" and value.dtype.kind in "biufcSUmM":
        return value
    is_pandas = kind.__module__.partition(".")[0] == "pandas" and kind.__name__ in _PANDAS
    if (kind in _TIMES or is_pandas) and _is_known_zone(getattr(value, "tzinfo", None)):
        return value
    raise TypeError(kind.__name__)


def _is_known_zone(zone: Any) -> bool:
    return zone is None or type(zone).__module__.partition(".")[0] in _ZONES


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
    import pyarrow

    dtype, extension = column.dtype, getattr(polars, "BaseExtension", ())
    storage = dtype.ext_storage() if isinstance(dtype, extension) else dtype  # an extension has a name, and metadata
    # not in Arrow: 128-bit integers
    with suppress(TypeError, pyarrow.ArrowException, polars.exceptions.PolarsError, polars.exceptions.PanicException):
        if dtype == polars.Object:
            raise TypeError  # polars would give the addresses of its values
        result = polars.from_arrow(_rebuilt_arrow(column.to_arrow(compat_level=polars.CompatLevel.oldest()), name))
        if isinstance(dtype, polars.Enum):
            used = set(result.to_list())
            return result.cast(polars.Enum([entry for entry in dtype.categories if entry in used]))
        if isinstance(dtype, polars.Categorical):
            return result.cast(polars.Categorical())  # without the name of the categories
        if result.dtype == storage:
            return result
    raise unknown_type(name, dtype.base_type().__name__)


# -- pyarrow and datasets -------------------------------------------------------------------------------------


def _pyarrow(table: Any) -> TableKind:
    import pyarrow

    return TableKind(
        table.column_names,
        lambda name: (value for chunk in table.column(name).chunks for value in chunk.to_pylist()),
        lambda _, private: _arrow_texts(private),
        lambda name: _rebuilt_arrow(table.column(name), name),
        lambda columns: pyarrow.table(list(columns.values()), names=list(columns)),
    )


def _datasets(table: Any) -> TableKind:
    import datasets
    import pyarrow

    def rebuilt(name: str) -> tuple[Any, Any]:
        # as Arrow: the selected rows in their order, nothing decoded
        values = table.with_format("arrow").select_columns([name])[:].column(name)
        column = _rebuilt_arrow(values, name)
        return column, _used_feature(datasets, table.features[name], column.chunks, name)

    def built(columns: Mapping[str, tuple[Any, Any]]) -> Any:
        values = pyarrow.table([column for column, _ in columns.values()], names=list(columns))
        features = datasets.Features({name: feature for name, (_, feature) in columns.items()})
        # its fingerprint is a hash of this table alone: save_to_disk writes it, and the old one would test guesses
        return datasets.Dataset(values.cast(features.arrow_schema), info=datasets.DatasetInfo(features=features))

    return TableKind(
        list(table.column_names),
        lambda name: (value for batch in table.select_columns([name]).iter(1000) for value in batch[name]),
        lambda _, private: (_arrow_texts(private), datasets.Value("string")),
        rebuilt,
        built,
    )


def _used_feature(datasets: Any, feature: Any, arrays: Sequence[Any], name: str) -> Any:
    """The feature without the class names that these rebuilt arrays do not use."""
    kind = type(feature)
    if kind is datasets.Value:
        return datasets.Value(feature.dtype)
    if kind is datasets.ClassLabel:
        codes = {code for array in arrays for code in array.unique().to_pylist() if code is not None}
        return datasets.ClassLabel(names=_class_names(feature.names, codes & set(range(len(feature.names)))))
    if kind is dict:
        return {
            key: _used_feature(datasets, inner, [array.field(key) for array in arrays], name)
            for key, inner in feature.items()
        }
    if kind in [getattr(datasets, name) for name in ("List", "LargeList") if hasattr(datasets, name)]:
        inner = _used_feature(datasets, feature.feature, [array.values for array in arrays], name)
        length = getattr(feature, "length", -1)
        return kind(inner) if length < 0 else kind(inner, length=length)
    raise unknown_type(name, kind.__name__)


def _class_names(names: Sequence[str], used: set[int]) -> list[str]:
    taken = {names[code] for code in used}
    free = (name for name in map("unused {}".format, range(len(names) + len(taken))) if name not in taken)
    return [names[code] if code in used else next(free) for code in range(max(used, default=-1) + 1)]
