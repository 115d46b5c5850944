"""Files that a cluster sees, as a DataFrame: what `dptext.spark.frames.privatize_scan` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dptext.errors import DataError, ParameterError
from dptext.spark.rows import quoted
from dptext.spark.session import session, told_in_one_line

__all__ = ["KINDS", "read_files"]

KINDS = (".parquet", ".jsonl", ".csv", ".tsv", ".txt")
"""Formats that Spark reads here; text formats may be compressed (.gz, .zst), as Spark tells by the name."""
_OTHER_NAMES = {".ndjson": ".jsonl", ".json": ".jsonl"}


def read_files(sources: Sequence[str], *, text: str = "text", keep: Sequence[str] = (), kind: str | None = None) -> Any:
    """A DataFrame of files, read as `dptext.files.documents.read_documents` reads them; what cannot be is an error.

    Args:
        sources: files, folders or patterns, as Spark spells paths; all of one format.
        text: the column that holds the text.
        keep: further columns that are used.
        kind: the format, where the name of the first source does not end with it.

    Raises:
        ParameterError: a format that is not read here.
        DataError: no such column; texts that are no strings.
        StorageError: no such files where Spark looks.
        MissingExtraError: pyspark or Java is not installed.
    """
    found = kind or _kind(sources[0])
    if found not in KINDS:
        raise ParameterError(f"Spark reads {', '.join(KINDS)} here, got {found!r}: name the format of the input")
    reader = session().read.option("mode", "FAILFAST")
    paths = list(sources)
    with told_in_one_line():
        if found == ".parquet":
            return reader.parquet(*paths)
        if found == ".jsonl":
            return _json(reader, paths, text)
        if found == ".txt":
            return _lines(reader, paths, text)
        return _separated(reader, paths, (text, *keep), tabs=found == ".tsv")


def _json(reader: Any, paths: list[str], text: str) -> Any:
    """Spark makes strings of numbers and lists where some texts are strings: so the text is taken as it is written."""
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructField, StructType, VariantType

    schema = reader.json(paths).schema
    if text not in schema.names:
        return reader.schema(schema).json(paths)
    if schema[text].dataType != StringType():
        raise DataError(
            f"expected strings in {text!r}, the values are of type {schema[text].dataType.simpleString()}: name the "
            "column of the text, or repair the rows"
        )
    fields = [StructField(text, VariantType()) if each.name == text else each for each in schema.fields]
    frame = reader.schema(StructType(fields)).json(paths)
    column = functions.col(quoted(text))
    is_text = functions.schema_of_variant(column).isin("STRING", "VOID")
    checked = (
        functions.when(column.isNull(), _refusal(f"expected a column {text!r}, a row has none; repair the row"))
        .when(is_text, functions.variant_get(column, "$", "string"))
        .otherwise(_refusal(f"expected a string in {text!r}, a row has a value of another type; repair the row"))
    )
    return frame.withColumn(text, checked)


def _refusal(message: str) -> Any:
    """A value that cannot be computed, for this reason."""
    from pyspark.sql import functions

    return functions.raise_error(functions.lit(f"dptext.errors.DataError: {message}")).cast("string")


def _lines(reader: Any, paths: list[str], text: str) -> Any:
    from pyspark.sql import functions

    lines = reader.option("lineSep", "\n").text(paths)
    return lines.select(functions.rtrim(functions.col("value"), functions.lit("\r")).alias(text))


def _separated(reader: Any, paths: list[str], columns: Sequence[str], *, tabs: bool) -> Any:
    # every header is compared with the first one: by their place alone, columns of another file may be the texts
    reader = reader.option("header", "true").option("enforceSchema", "false").option("columnPruning", "false")
    if tabs:  # nothing quotes, and only a line feed ends a line
        frame = reader.option("sep", "\t").option("quote", "").option("lineSep", "\n").csv(paths)
    else:
        frame = reader.option("multiLine", "true").option("escape", '"').csv(paths)
    for name in columns:
        if name not in frame.columns:  # what stands in a header may be a text: none of it is shown
            raise DataError(
                f"expected a column {name!r}, the header has none among its {len(frame.columns)}; name the right column"
            )
    return frame.fillna("", subset=[quoted(each) for each in frame.columns])  # no cell is an empty one, not null


def _kind(source: str) -> str:
    name = source.rstrip("/").lower().removesuffix(".gz").removesuffix(".zst")
    ending = f".{name.rsplit('.', 1)[-1]}"
    return _OTHER_NAMES.get(ending, ending)
