"""Private texts, private vectors and word vectors on Apache Spark (extra ``spark``, Java 17): docs/howto/spark.md."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from dptext.errors import DataError, ParameterError
from dptext.io.batches import describe_columns
from dptext.io.formats import FORMATS, announced_by
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.release.mechanism import Rewriter, TextMechanism
from dptext.release.release import Tally, with_columns
from dptext.representations.device import DeviceEncoder
from dptext.representations.files import VECTOR, parameters_digest
from dptext.spark.descriptions import describe as describe
from dptext.spark.release import SparkRelease
from dptext.spark.session import check_frame, plain_errors, session
from dptext.spark.shared_vectors import fit as fit
from dptext.spark.tasks import (
    COUNTS,
    LABEL,
    EncodeTask,
    RewriteTask,
    Rows,
    bare_field,
    by_id,
    by_label,
    checked_columns,
    checked_partitions,
    named,
    quoted,
    to_nodes,
)
from dptext.text.identifiers import LOOKED_AT, Column, look_at

_logger = logging.getLogger(__name__)
Ids: TypeAlias = str | Sequence[str] | None


def privatize(
    df: Any,
    mechanism: TextMechanism,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    id: Ids = None,  # noqa: A002  what Spark's people call it
    partitions: int | None = None,
    seed: int | None = None,
) -> SparkRelease:
    """Replace every text of a column of a DataFrame through a mechanism: its words, or its sentences.

    Args:
        df: a DataFrame of pyspark, the same set of rows whenever it is computed (no sampling without a seed in it).
        mechanism: what replaces texts, as in `dptext.privatize`; its tables go to every node once.
        text: the column that holds the text, of strings. A missing one (null) stays missing.
        keep: columns to keep as they are; they are exposed. All others are dropped.
        id: the column or columns that tell rows apart, if there are any: given without regard to the text (no hash of
            it), and never null. It saves a shuffle. It is dropped unless it is kept; the order of the rows depends
            on it alone.
        partitions: of the result; None: four for every core that the cluster has now. The noise does not depend on it.
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).

    **Guarantee** (unit document, substitution, local): as the statement of the release says, with one machine or many,
    between the documents that it names. The noise of a row has a name that no retry, speculation or second use of the
    DataFrame changes (`dptext.spark.tasks`, `dptext.spark.tasks`); the engine commits each row once. Assumptions beside
    those of the mechanism: the input does not change while the release is used; ids are given without regard to texts.

    Raises:
        ParameterError: no such column, no strings, something that is no DataFrame of pyspark.
        MissingExtraError: pyspark is not installed.
    """
    rewriter = Rewriter(mechanism, seed=seed)
    source = _Source.of(df, text, keep, id)
    with plain_errors():
        return _privatized(source, source.grouped(rewriter.key, partitions), rewriter)


def privatize_scan(
    df: Any, mechanism: TextMechanism, *, text: str = "text", keep: Sequence[str] = (), seed: int | None = None
) -> SparkRelease:
    """`privatize` for a plain scan of files that is **used once**: without a shuffle, the rows in their order.

    The noise of a row is named by its partition, its place in it and the content of its block. A scan reads the same
    rows into the same partition however often a task is tried, so one action is one release. A second action may cut
    the files elsewhere and would be a second release: `SparkRelease.write` the result once, and use nothing else of it.

    Args:
        df: what ``spark.read`` gave, columns selected at most.
        mechanism, text, keep, seed: as in `privatize`.

    Raises:
        ParameterError: the DataFrame is not a plain scan (Spark says that its rows may come in another order).
    """
    rewriter = Rewriter(mechanism, seed=seed)
    source = _Source.of(df, text, keep, once=True)
    with plain_errors():
        return _privatized(source, source.scanned(), rewriter)


def encode(
    df: Any,
    encoder: DeviceEncoder,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    id: Ids = None,  # noqa: A002
    partitions: int | None = None,
    seed: int | None = None,
) -> SparkRelease:
    """Turn every text of a DataFrame into a private vector: the column ``vector``, of float lists.

    Args:
        df, keep, id, partitions, seed: as in `privatize`.
        encoder: a frozen encoder (`dptext.representations.device.DeviceEncoder`); it goes to every node once.
        text: the column that holds the text, of strings. A missing one (null) counts as the empty text.

    **Guarantee** (unit: document, one text; substitution by any other text; local): the encoder's own, for each row,
    under the assumptions of `privatize`.

    Raises:
        ParameterError: no such column, no strings, something that is no DataFrame of pyspark.
        MissingExtraError: pyspark is not installed.
    """
    key = NoiseKey(seed)
    source = _Source.of(df, text, keep, id, vector=True)
    with plain_errors():
        return _encoded(source, source.grouped(key, partitions), encoder, key)


def encode_scan(
    df: Any, encoder: DeviceEncoder, *, text: str = "text", keep: Sequence[str] = (), seed: int | None = None
) -> SparkRelease:
    """`encode` for a plain scan of files that is used once; see `privatize_scan`."""
    key = NoiseKey(seed)
    source = _Source.of(df, text, keep, vector=True, once=True)
    with plain_errors():
        return _encoded(source, source.scanned(), encoder, key)


@dataclass(frozen=True)
class _Source:
    """The rows of a call: their frame and session, their columns, and whether they may be used once only."""

    spark: Any
    df: Any
    text: str
    keep: tuple[str, ...]
    ids: tuple[str, ...]
    once: bool

    @classmethod
    def of(
        cls, df: Any, text: str, keep: Sequence[str], row_id: Ids = None, *, vector: bool = False, once: bool = False
    ) -> _Source:
        spark = check_frame(df)
        ids = (row_id,) if isinstance(row_id, str) else tuple(row_id or ())
        checked_columns(df, text, keep, ids)
        if vector and VECTOR in keep:
            raise ParameterError(
                f"a kept column cannot be named {VECTOR!r}, which is that of the private vectors: rename it first"
            )
        return cls(spark, df, text, tuple(keep), ids, once)

    @property
    def rows(self) -> Rows:
        """What a task finds."""
        return Rows(self.text, self.keep, () if self.once else self.ids or (LABEL,))

    def grouped(self, key: NoiseKey, partitions: int | None) -> Any:
        """The rows by their names."""
        count = checked_partitions(self.spark, partitions)
        if self.ids:
            return by_id(self.df, self.text, self.keep, self.ids, count)
        return by_label(self.df, self.text, self.keep, key, count)

    def scanned(self) -> Any:
        """The rows as they lie."""
        scanned = self.df.select(*map(quoted, (self.text, *self.keep)))
        level = str(scanned._jdf.queryExecution().toRdd().outputDeterministicLevel().toString())
        if level != "DETERMINATE":
            raise ParameterError(
                f"the rows of this DataFrame may come in another order when a task is tried again (Spark calls them "
                f"{level}): use privatize or encode, which name rows by what does not change"
            )
        return scanned

    def stated(self, statement: PrivacyStatement) -> PrivacyStatement:
        """The statement of one machine, which engine it was, and what that takes for granted."""
        ids = ", ".join(self.ids)
        taken = (f"the ids of rows ({ids}) were given without regard to the texts",) if ids else ()
        made = with_columns(statement, self.keep)
        return made.replace(parameters={**made.parameters, "engine": "spark"}, assumptions=(*made.assumptions, *taken))


def _privatized(source: _Source, placed: Any, rewriter: Rewriter) -> SparkRelease:
    from pyspark.sql.types import LongType, StructField, StructType

    key, tables = rewriter.key, to_nodes(source.spark, rewriter.mechanism)
    task = RewriteTask(tables, key.secret(), key.seeded, source.rows)

    fields = [bare_field(placed.schema[name]) for name in (source.text, *source.keep)]
    schema = StructType([*fields, *(StructField(name, LongType()) for name in COUNTS)])

    def tally(found: Mapping[str, int]) -> Tally:
        return Tally(*(found.get(name, 0) for name in COUNTS))

    def statement(found: Mapping[str, int]) -> PrivacyStatement:
        rewriter.tally = tally(found)
        warning = rewriter.warning()
        if warning is not None:
            _logger.warning(warning)
        return source.stated(rewriter.statement())

    texts = placed.mapInArrow(named(task, "privatize_rows"), schema)
    promise = statement({})
    before = rewriter.statement_before
    once, df = source.once, source.df
    return SparkRelease(texts, COUNTS, promise, statement, df, source.text, once=once, before=before, tally_of=tally)


def _encoded(source: _Source, placed: Any, encoder: DeviceEncoder, key: NoiseKey) -> SparkRelease:
    from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

    task = EncodeTask(to_nodes(source.spark, encoder), key.secret(), parameters_digest(encoder), source.rows, VECTOR)

    vector = StructField(VECTOR, ArrayType(FloatType(), containsNull=False), nullable=False)
    schema = StructType([vector, *(bare_field(placed.schema[name]) for name in source.keep)])
    promise = source.stated(encoder.statement.replace(release_id=new_release_id(), seeded=key.seeded))
    vectors = placed.mapInArrow(named(task, "encode_rows"), schema)
    return SparkRelease(vectors, (), promise, lambda _: promise, source.df, source.text, once=source.once, missing="")


def read_files(sources: Sequence[str], *, text: str = "text", keep: Sequence[str] = (), kind: str | None = None) -> Any:
    """A DataFrame of files, read as `dptext.io.documents.read_documents` reads them; what cannot be is an error.

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
    named = announced_by(Path(sources[0])).kind
    found = kind or _OTHER_NAMES.get(named, named)
    if found not in KINDS:
        raise ParameterError(f"Spark reads {', '.join(KINDS)} here, got {found!r}: name the format of the input")
    reader = session().read.option("mode", "FAILFAST")
    with plain_errors():
        return _READERS[found](reader, list(sources), text, keep)


def look_at_columns(df: Any, names: Sequence[str], *, most: int = LOOKED_AT) -> list[Column]:
    """Some columns by their first rows: whether they look like identifiers (`dptext.text.identifiers`).

    Args:
        df: a DataFrame of pyspark.
        names: of the columns.
        most: how many rows come to the driver.
    """
    if not names:
        return []
    with plain_errors():
        rows = df.select(*map(quoted, names)).limit(most).collect()
    return [look_at(name, (row[at] for row in rows)) for at, name in enumerate(names)]


def _parquet(reader: Any, paths: list[str], _text: str, _keep: Sequence[str]) -> Any:
    return reader.parquet(*paths)


def _json(reader: Any, paths: list[str], text: str, _keep: Sequence[str]) -> Any:
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


def _lines(reader: Any, paths: list[str], text: str, _keep: Sequence[str]) -> Any:
    from pyspark.sql import functions

    lines = reader.option("lineSep", "\n").text(paths)
    return lines.select(functions.rtrim(functions.col("value"), functions.lit("\r")).alias(text))


def _csv(reader: Any, paths: list[str], text: str, keep: Sequence[str]) -> Any:
    return _separated(reader.option("multiLine", "true").option("escape", '"'), paths, (text, *keep))


def _tsv(reader: Any, paths: list[str], text: str, keep: Sequence[str]) -> Any:
    # nothing quotes, and only a line feed ends a line
    reader = reader.option("sep", "\t").option("quote", "").option("lineSep", "\n")
    return _separated(reader, paths, (text, *keep))


def _separated(reader: Any, paths: list[str], columns: Sequence[str]) -> Any:
    # every header is compared with the first one: by their place alone, columns of another file may be the texts
    reader = reader.option("header", "true").option("enforceSchema", "false").option("columnPruning", "false")
    frame = reader.csv(paths)
    for name in columns:
        if name not in frame.columns:
            raise DataError(
                f"expected a column {name!r}, the header has {describe_columns(name, frame.columns, wanted=columns)}; "
                "name the right column"
            )
    return frame.fillna("", subset=[quoted(each) for each in frame.columns])  # no cell is an empty one, not null


_READERS = {".parquet": _parquet, ".jsonl": _json, ".csv": _csv, ".tsv": _tsv, ".txt": _lines}
KINDS = tuple(each for each in _READERS if each in FORMATS)
"""Formats that Spark reads here; text formats may be compressed (.gz, .zst), as Spark tells by the name."""
_OTHER_NAMES = {".json": ".jsonl"}  # as Spark writes it
