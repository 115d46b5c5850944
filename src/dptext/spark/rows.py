"""A DataFrame's rows in groups that are the same in every evaluation, so that the noise of each can have a name.

Derivation: docs/howto/spark.md#spark-rows
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dptext.checks import names, whole
from dptext.errors import ParameterError
from dptext.io.batches import describe_columns, unknown_type
from dptext.io.documents import check_kept_columns
from dptext.privacy.randomness import NoiseKey
from dptext.spark.tasks import GROUP, batch_of, bytes_column, named, number_column

__all__ = ["GROUPS", "LABEL", "bare_field", "by_id", "by_label", "checked_columns", "checked_partitions", "quoted"]

GROUPS = 1 << 8
"""So many tasks can work at once. A group is a block of noise at least, and a block has a price of its own (20 ms of a
core for a vocabulary of 50,000 words), so more groups would make small releases slow."""
LABEL = "dptext label"
_TWIN = "dptext twin"
_SALT = 0x6470746578740001  # groups by id are no other partitioning that somebody makes of the same ids
_ID_TYPES = ("string", "bigint", "int", "smallint", "tinyint", "binary", "date", "timestamp")
_OURS = "dptext "


def quoted(name: str) -> str:
    """The name of a column for Spark, which takes a dot for a field of a struct otherwise."""
    return "`" + name.replace("`", "``") + "`"


def checked_columns(frame: Any, text: str, keep: Sequence[str], ids: Sequence[str]) -> None:
    """Whether a DataFrame has these columns, and they fit."""
    types = dict(frame.dtypes)
    names("keep", keep)
    for name in (text, *keep, *ids):
        if not isinstance(name, str) or list(frame.columns).count(name) != 1:
            count = list(frame.columns).count(name)
            what = f"{count} of that name" if count else describe_columns(name, frame.columns)
            raise ParameterError(f"expected one column {name!r}, the DataFrame has {what}")
        if name.startswith(_OURS):
            raise ParameterError(f"columns whose names begin with {_OURS!r} are made on the way: rename {name!r}")
    if types[text] != "string":
        raise ParameterError(
            f"the column {text!r} must hold strings, it is of type {types[text]}: convert it "
            f'(df.withColumn({text!r}, df[{text!r}].cast("string"))) or name another one'
        )
    check_kept_columns(text, keep)
    if text in ids:
        raise ParameterError("id must say nothing about the text, so it cannot be the text: leave id out instead")
    for name in ids:
        if types[name] not in _ID_TYPES:
            raise ParameterError(
                f"the column {name!r} cannot tell rows apart, its type is {types[name]}: expected text or whole numbers"
            )


def bare_field(field: Any) -> Any:
    """A field of a schema without metadata: Spark writes it into parquet, and pyspark.ml lists all values there."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType, UserDefinedType

    def bare(kind: Any) -> Any:
        if isinstance(kind, ArrayType):
            return ArrayType(bare(kind.elementType), kind.containsNull)
        if isinstance(kind, MapType):
            return MapType(bare(kind.keyType), bare(kind.valueType), kind.valueContainsNull)
        if isinstance(kind, StructType):
            return StructType([StructField(each.name, bare(each.dataType), each.nullable) for each in kind.fields])
        if isinstance(kind, UserDefinedType):
            raise unknown_type(field.name, type(kind).__name__)
        return kind

    return StructField(field.name, bare(field.dataType), field.nullable)


def checked_partitions(spark: Any, partitions: int | None) -> int:
    if partitions is None:
        return min(GROUPS, max(8, 4 * int(spark.sparkContext.defaultParallelism)))
    return whole("partitions", partitions, least=1)


def by_id(frame: Any, text: str, keep: Sequence[str], ids: Sequence[str], partitions: int) -> Any:
    """The rows in groups by their id, sorted within their partitions."""
    from pyspark.sql import functions

    columns = [functions.col(quoted(each)) for each in dict.fromkeys((text, *keep, *ids))]
    keys = [functions.col(quoted(each)) for each in ids]
    group = functions.pmod(functions.xxhash64(functions.lit(_SALT), *keys), functions.lit(GROUPS)).cast("int")
    grouped = frame.select(*columns, group.alias(GROUP))
    return _together(grouped, ids, partitions)


def by_label(frame: Any, text: str, keep: Sequence[str], key: NoiseKey, partitions: int) -> Any:
    """The rows in groups by a label made from text and secret, sorted within their partitions."""
    from pyspark.sql import Window, functions
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    unordered = [name for name, kind in frame.dtypes if name in keep and ("map<" in kind or kind == "variant")]
    if unordered:
        raise ParameterError(f"the column {unordered[0]!r} has values without an order: give id, or do not keep it")
    columns = [functions.col(quoted(each)) for each in (text, *keep)]
    twins = Window.partitionBy(columns[0]).orderBy(*(columns[1:] or [functions.lit(0)]))
    twin = functions.row_number().over(twins)
    counted = frame.select(*columns).repartition(partitions, columns[0]).withColumn(_TWIN, twin)
    task = LabelTask(hmac.digest(key.secret(), b"dptext labels", hashlib.sha256), text, (text, *keep), GROUPS)

    fields = [each for each in counted.schema.fields if each.name != _TWIN]
    schema = StructType([*fields, StructField(LABEL, BinaryType()), StructField(GROUP, IntegerType())])
    return _together(counted.mapInArrow(named(task, "label_rows"), schema), [LABEL], partitions)


def _together(grouped: Any, ids: Sequence[str], partitions: int) -> Any:
    # by an explicit number: Spark then neither joins nor splits the partitions on its own account
    if hasattr(grouped, "repartitionById"):  # from 4.1 on: as many groups in each, where a hash would pile some up
        together = grouped.repartitionById(partitions, quoted(GROUP))
    else:
        together = grouped.repartition(partitions, quoted(GROUP))
    return together.sortWithinPartitions(quoted(GROUP), *map(quoted, ids))


@dataclass(frozen=True)
class LabelTask:
    """A label and a group for every row that was counted among the rows of its text; ``columns`` are carried along."""

    secret: bytes = field(repr=False)
    text: str
    columns: tuple[str, ...]
    groups: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            twins = batch.column(_TWIN).to_pylist()
            texts = batch.column(self.text).to_pylist()
            labels = [self._label(text, twin) for text, twin in zip(texts, twins, strict=True)]
            groups = np.frombuffer(b"".join(labels), dtype=">u2")[::8].astype(np.int32) % self.groups
            columns = {name: batch.column(name) for name in self.columns}
            columns[LABEL] = bytes_column(labels)
            columns[GROUP] = number_column(groups)
            yield batch_of(columns)

    def _label(self, text: str | None, twin: int) -> bytes:
        missing = b"\1" if text is None else b"\0"
        content = missing + twin.to_bytes(8, "big") + (text or "").encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16, key=self.secret).digest()
