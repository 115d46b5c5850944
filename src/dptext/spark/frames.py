"""Private texts, private vectors and vectors to share on Apache Spark (extra ``spark``; Java 17): see docs/scale.md.

What these functions return is lazy and may be computed many times; `dptext.spark.rows` and `dptext.spark.tasks` say why
it is one release all the same. Everything public of this room has its name here.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from dptext.errors import ParameterError
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.release.release import Tally, with_columns
from dptext.representations.device_encoder import DeviceEncoder
from dptext.representations.files import VECTOR
from dptext.spark.nodes import to_nodes
from dptext.spark.release import SparkRelease
from dptext.spark.rows import LABEL, bare_field, by_id, by_label, checked_columns, checked_partitions, quoted
from dptext.spark.session import check_frame, told_in_one_line
from dptext.spark.tasks import COUNTS, EncodeTask, RewriteTask, Rows
from dptext.spark.users import fit
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import Rewriter

__all__ = ["SparkRelease", "encode", "encode_scan", "fit", "privatize", "privatize_scan"]

_logger = logging.getLogger(__name__)
Ids: TypeAlias = str | Sequence[str] | None


def privatize(
    df: Any,
    mechanism: WordMechanism,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    id: Ids = None,  # noqa: A002  what Spark's people call it
    partitions: int | None = None,
    seed: int | None = None,
) -> SparkRelease:
    """Replace every word of a column of a DataFrame through a word mechanism.

    Args:
        df: a DataFrame of pyspark, the same set of rows whenever it is computed (no sampling without a seed in it).
        mechanism: a word mechanism; its tables go to every node once.
        text: the column that holds the text, of strings. A missing one (null) stays missing.
        keep: columns to keep as they are; they are exposed. All others are dropped.
        id: the column or columns that tell rows apart, if there are any: given without regard to the text (no hash of
            it), and never null. It saves a shuffle. It is dropped unless it is kept; the order of the rows depends
            on it alone.
        partitions: of the result; None: four for every core that the cluster has now. The noise does not depend on it.
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).

    **Guarantee** (unit document, substitution among documents of equal layout, local): as the statement of the release
    says, with one machine or many. The noise of a row has a name that no retry, speculation or second use of the
    DataFrame changes (`dptext.spark.rows`, `dptext.spark.tasks`); the engine commits each row once. Assumptions beside
    those of the mechanism: the input does not change while the release is used; ids are given without regard to texts.

    Raises:
        ParameterError: no such column, no strings, something that is no DataFrame of pyspark.
        MissingExtraError: pyspark is not installed.
    """
    key = NoiseKey(seed)
    rewriter = Rewriter(mechanism, key=key)
    spark, ids = _checked(df, text, keep, id)
    rows = Rows(text, tuple(keep), ids or (LABEL,))
    with told_in_one_line():
        grouped = _grouped(spark, df, rows, ids, key, partitions)
        return _privatized(spark, df, grouped, rewriter, rows, given=ids)


def privatize_scan(
    df: Any, mechanism: WordMechanism, *, text: str = "text", keep: Sequence[str] = (), seed: int | None = None
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
    key = NoiseKey(seed)
    rewriter = Rewriter(mechanism, key=key)
    spark, _ = _checked(df, text, keep, None)
    with told_in_one_line():
        scanned = _scanned(df, text, keep)
        return _privatized(spark, df, scanned, rewriter, Rows(text, tuple(keep)), given=(), once=True)


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
        encoder: a frozen encoder (`dptext.representations.device_encoder.DeviceEncoder`); it goes to every node once.
        text: the column that holds the text, of strings. A missing one (null) counts as the empty text.

    **Guarantee** (unit: document, one text; substitution by any other text; local): the encoder's own, for each row,
    under the assumptions of `privatize`.

    Raises:
        ParameterError: no such column, no strings, something that is no DataFrame of pyspark.
        MissingExtraError: pyspark is not installed.
    """
    key = NoiseKey(seed)
    spark, ids = _checked(df, text, keep, id, vector=True)
    rows = Rows(text, tuple(keep), ids or (LABEL,))
    with told_in_one_line():
        grouped = _grouped(spark, df, rows, ids, key, partitions)
        return _encoded(spark, df, grouped, encoder, key, rows, given=ids)


def encode_scan(
    df: Any, encoder: DeviceEncoder, *, text: str = "text", keep: Sequence[str] = (), seed: int | None = None
) -> SparkRelease:
    """`encode` for a plain scan of files that is used once; see `privatize_scan`."""
    key = NoiseKey(seed)
    spark, _ = _checked(df, text, keep, None, vector=True)
    with told_in_one_line():
        scanned = _scanned(df, text, keep)
        return _encoded(spark, df, scanned, encoder, key, Rows(text, tuple(keep)), given=(), once=True)


def _checked(
    df: Any, text: str, keep: Sequence[str], given: Ids, *, vector: bool = False
) -> tuple[Any, tuple[str, ...]]:
    spark = check_frame(df)
    ids = (given,) if isinstance(given, str) else tuple(given or ())
    checked_columns(df, text, keep, ids)
    if vector and VECTOR in keep:
        raise ParameterError(
            f"a kept column cannot be named {VECTOR!r}, which is that of the private vectors: rename it first"
        )
    return spark, ids


def _grouped(spark: Any, df: Any, rows: Rows, ids: tuple[str, ...], key: NoiseKey, partitions: int | None) -> Any:
    count = checked_partitions(spark, partitions)
    if ids:
        return by_id(df, rows.text, rows.keep, ids, count)
    return by_label(df, rows.text, rows.keep, key, count)


def _scanned(df: Any, text: str, keep: Sequence[str]) -> Any:
    scanned = df.select(*map(quoted, (text, *keep)))
    level = str(scanned._jdf.queryExecution().toRdd().outputDeterministicLevel().toString())
    if level != "DETERMINATE":
        raise ParameterError(
            f"the rows of this DataFrame may come in another order when a task is tried again (Spark calls them "
            f"{level}): use privatize or encode, which name rows by what does not change"
        )
    return scanned


def _privatized(
    spark: Any, df: Any, placed: Any, rewriter: Rewriter, rows: Rows, *, given: tuple[str, ...], once: bool = False
) -> SparkRelease:
    from pyspark.sql.types import LongType, StructField, StructType

    key, tables = rewriter.key, to_nodes(spark, rewriter.mechanism)
    task = RewriteTask(tables, key.secret(), key.seeded, rows)

    def privatize_rows(batches: Iterable[Any]) -> Iterator[Any]:
        return task(batches)

    fields = [bare_field(placed.schema[name]) for name in (rows.text, *rows.keep)]
    schema = StructType([*fields, *(StructField(name, LongType()) for name in COUNTS)])

    def statement(found: Mapping[str, int]) -> PrivacyStatement:
        rewriter.tally = Tally(*(found.get(name, 0) for name in COUNTS))
        warning = rewriter.tally.warning()
        if warning is not None:
            _logger.warning(warning)
        return _on_spark(rewriter.statement(), rows.keep, given)

    return SparkRelease(
        placed.mapInArrow(privatize_rows, schema), COUNTS, statement({}), statement, df, rows.text, once=once
    )


def _encoded(
    spark: Any,
    df: Any,
    placed: Any,
    encoder: DeviceEncoder,
    key: NoiseKey,
    rows: Rows,
    *,
    given: tuple[str, ...],
    once: bool = False,
) -> SparkRelease:
    from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

    described = [encoder.statement.to_json(), dict(encoder.parameters())]
    parameters = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).digest()
    task = EncodeTask(to_nodes(spark, encoder), key.secret(), parameters, rows, VECTOR)

    def encode_rows(batches: Iterable[Any]) -> Iterator[Any]:
        return task(batches)

    vector = StructField(VECTOR, ArrayType(FloatType(), containsNull=False), nullable=False)
    schema = StructType([vector, *(bare_field(placed.schema[name]) for name in rows.keep)])
    promise = _on_spark(encoder.statement.replace(release_id=new_release_id(), seeded=key.seeded), rows.keep, given)
    always: Callable[[Mapping[str, int]], PrivacyStatement] = lambda _: promise  # noqa: E731
    vectors = placed.mapInArrow(encode_rows, schema)
    return SparkRelease(vectors, (), promise, always, df, rows.text, once=once, missing="")


def _on_spark(statement: PrivacyStatement, keep: Sequence[str], ids: tuple[str, ...]) -> PrivacyStatement:
    """The statement of one machine, which engine it was, and what that takes for granted."""
    taken = (f"the ids of rows ({', '.join(ids)}) were given without regard to the texts",) if ids else ()
    made = with_columns(statement, keep)
    return made.replace(parameters={**made.parameters, "engine": "spark"}, assumptions=(*made.assumptions, *taken))
