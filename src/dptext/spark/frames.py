"""Private texts, private vectors and word vectors on Apache Spark (extra ``spark``, Java 17): docs/howto/spark.md."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.errors import DataError, ParameterError
from dptext.features.pool import PoolName
from dptext.io.batches import describe_columns
from dptext.io.documents import Document, PathLike, check_kept_columns, without_user
from dptext.io.formats import announced_by
from dptext.io.tables import unknown_type
from dptext.privacy.budgets import warn_of_delta
from dptext.privacy.guarantee import Unit, as_approx
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.release.mechanism import Rewriter, TextMechanism
from dptext.release.release import Tally, add_columns
from dptext.release.run import FIRST_ROWS, Charges
from dptext.representations.device import VECTOR, DeviceEncoder
from dptext.spark import tasks
from dptext.spark.release import FrameReader, SparkRelease, quoted
from dptext.spark.session import check_frame, plain_errors, run_job, session
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.moments import Labels
from dptext.synthesis.release import FolderRun, PrivateRows, check_columns, described_into
from dptext.synthesis.servers import ID_PLACE, ShareSum, TwoServerPlan
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.text.identifiers import LOOKED_AT, Column, look_at
from dptext.users.grouping import UserUnit
from dptext.validation import check_int, check_names, check_path

_logger = logging.getLogger(__name__)
GROUPS = 1 << 8
"""Maximum number of parallel tasks. A group is at least one block of noise, and each block has a fixed cost (20 ms of a
core for a vocabulary of 50,000 words), so more groups would slow down small releases."""
KINDS = (".parquet", ".jsonl", ".csv")
"""Formats of files that Spark reads here."""


# -- private rows ---------------------------------------------------------------------------------------------


def privatize(
    df: Any,
    mechanism: TextMechanism,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    partitions: int | None = None,
    scan: bool = False,
    seed: int | None = None,
) -> SparkRelease:
    """Replace every text in a column of a DataFrame through a mechanism: its words, or its sentences.

    Args:
        df: a DataFrame of pyspark, the same set of rows whenever it is computed (no sampling without a seed in it).
        mechanism: replaces texts, as in `dptext.privatize`; its tables go to every node once.
        text: the column that holds the text, of strings. A missing one (null) stays missing.
        keep: columns to publish unchanged. All others are dropped.
        partitions: number of partitions of the result; None: four per core of the cluster. Noise does not depend on it.
        scan: True for a plain scan of files (``spark.read``, columns selected at most) whose release is written once
            (`SparkRelease.write`): without a shuffle, in the order of the input. Otherwise the order is random.
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).

    **Guarantee** (unit document, substitution, local): as the statement of the release says, on one machine or many,
    between the documents that it names. No retry, speculation or second use of the DataFrame changes the noise of a
    row (docs/howto/spark.md), and Spark commits a row once. Further assumption: the input does
    not change while the release is used.

    Raises:
        ParameterError: a missing column; texts that are not strings; not a DataFrame of pyspark; not a plain scan.
        MissingExtraError: pyspark is not installed.
    """
    source = _Rows.of(df, text, keep, scan=scan)
    rewriter = Rewriter(mechanism, seed=seed)

    def statement_of(tally: Tally) -> PrivacyStatement:
        rewriter.tally = tally
        warning = rewriter.warning()
        if warning is not None:
            _logger.warning(warning)
        return source.state(rewriter.statement())

    with plain_errors():
        return SparkRelease(
            source=df,
            text=text,
            rows=source.compute(tasks.privatize_rows, mechanism, rewriter.key, partitions),
            statement_of=statement_of,
            statement_before=rewriter.statement_before,
            release_id=rewriter.release_id,
            once=scan,
        )


def encode(
    df: Any,
    encoder: DeviceEncoder,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    partitions: int | None = None,
    scan: bool = False,
    seed: int | None = None,
) -> SparkRelease:
    """Turn every text of a DataFrame into a private vector: the column ``vector``, of float lists.

    Args:
        df, keep, partitions, scan, seed: as in `privatize`.
        encoder: a frozen encoder (`dptext.representations.device.DeviceEncoder`); it goes to every node once.
        text: the column that holds the text, of strings. A missing one (null) counts as the empty text.

    **Guarantee** (unit: document, one text; substitution by any other text; local): as for the encoder, for each row,
    under the assumptions of `privatize`.

    Raises:
        ParameterError, MissingExtraError: as in `privatize`.
    """
    source = _Rows.of(df, text, keep, scan=scan)
    if VECTOR in source.keep:
        raise ParameterError(f"a kept column cannot be named {VECTOR!r}, as the private vectors are: rename it")
    key, release_id = NoiseKey(seed), new_release_id()
    statement = source.state(encoder.statement.replace(release_id=release_id, seeded=key.seeded))
    with plain_errors():
        return SparkRelease(
            source=df,
            text=text,
            rows=source.compute(tasks.encode_rows, encoder, key, partitions),
            statement_of=lambda _: statement,
            statement_before=lambda: statement,
            release_id=release_id,
            counts=(),
            once=scan,
            missing="",
        )


@dataclass(frozen=True)
class _Rows:
    """The rows of a call, their columns, and whether they are a plain scan."""

    df: Any
    text: str
    keep: tuple[str, ...]
    scan: bool

    @classmethod
    def of(cls, df: Any, text: str, keep: Sequence[str], *, scan: bool) -> _Rows:
        check_frame(df)
        keep = check_names("keep", keep)
        _check_columns(df, text, keep)
        check_kept_columns(text, keep)
        return cls(df, text, keep, scan)

    def compute(self, work: Any, thing: object, key: NoiseKey, partitions: int | None) -> Any:
        """Return the rows after a mechanism or an encoder, computed on demand."""
        from pyspark.sql.types import ArrayType, FloatType, LongType, StructField, StructType

        if self.scan:  # a scan gives every attempt of a task the same rows
            rows = self.df.select(*map(quoted, (self.text, *self.keep)))
            level = str(rows._jdf.queryExecution().toRdd().outputDeterministicLevel().toString())
            if level != "DETERMINATE":
                raise ParameterError(f"this DataFrame is not a plain scan: the order of its rows is {level}. Omit scan")
        else:
            rows = self._grouped(key, _partitions(self.df, partitions))
        tables = tasks.to_nodes(self.df.sparkSession, thing)
        task = tasks.BlockTask(work, tables, key.secret(), self.text, self.keep, is_grouped=not self.scan)
        fields = [StructField(VECTOR, ArrayType(FloatType(), containsNull=False), nullable=False)]
        if work is not tasks.encode_rows:
            counts = [StructField(name, LongType()) for name in tasks.COUNTS]
            fields = [_bare_field(rows.schema[self.text]), *counts]
        schema = StructType([*fields, *(_bare_field(rows.schema[name]) for name in self.keep)])
        return rows.mapInArrow(tasks.named(task, work.__name__), schema)

    def _grouped(self, key: NoiseKey, partitions: int) -> Any:
        """Return the rows in groups, by a keyed label of their text, sorted within their partitions."""
        from pyspark.sql import Window, functions
        from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

        unordered = [
            name for name, kind in self.df.dtypes if name in self.keep and ("map<" in kind or kind == "variant")
        ]
        if unordered:
            raise ParameterError(f"the values of the column {unordered[0]!r} have no order: do not keep it")
        text, *kept = (functions.col(quoted(name)) for name in (self.text, *self.keep))
        copy = functions.row_number().over(Window.partitionBy(text).orderBy(*(kept or [functions.lit(0)])))
        rows = self.df.select(text, *kept).repartition(partitions, text)
        schema = StructType(
            [*rows.schema.fields, StructField(tasks.LABEL, BinaryType()), StructField(tasks.GROUP, IntegerType())]
        )
        secret = hmac.digest(key.secret(), b"dptext labels", hashlib.sha256)
        task = tasks.named(tasks.LabelTask(secret, self.text, (self.text, *self.keep), GROUPS), "label_rows")
        rows = rows.withColumn(tasks.COPY, copy).mapInArrow(task, schema)
        # by an explicit number: Spark then neither merges nor splits the partitions
        if hasattr(rows, "repartitionById"):  # from 4.1 on: each gets as many groups, which a hash would not ensure
            rows = rows.repartitionById(partitions, quoted(tasks.GROUP))
        else:
            rows = rows.repartition(partitions, quoted(tasks.GROUP))
        return rows.sortWithinPartitions(quoted(tasks.GROUP), quoted(tasks.LABEL))

    def state(self, statement: PrivacyStatement) -> PrivacyStatement:
        """Return the statement as on one machine, with the name of the engine."""
        return add_columns(statement, self.keep).replace(parameters={**statement.parameters, "engine": "spark"})


def _check_columns(frame: Any, text: str, others: Sequence[str]) -> None:
    """Raise a ParameterError if a column is missing or the texts are not strings."""
    for name in (text, *others):
        count = list(frame.columns).count(name)
        if count != 1:
            present = f"{count} of that name" if count else describe_columns(name, frame.columns)
            raise ParameterError(f"expected one column {name!r}, the DataFrame has {present}")
    kind = dict(frame.dtypes)[text]
    if kind != "string":
        raise ParameterError(f"the column {text!r} must contain strings, its type is {kind}: cast it first")


def _partitions(frame: Any, partitions: int | None) -> int:
    if partitions is None:
        return min(GROUPS, max(8, 4 * int(frame.sparkSession.sparkContext.defaultParallelism)))
    return check_int("partitions", partitions, minimum=1)


def _bare_field(field: Any) -> Any:
    """Return a field of a schema without metadata, which parquet stores and in which pyspark.ml lists all values."""
    from pyspark.sql.types import StructField

    def bare(node: Any) -> Any:
        if isinstance(node, list):
            return [bare(part) for part in node]
        if not isinstance(node, dict):
            return node
        if node.get("type") == "udt":
            raise unknown_type(field.name, str(node.get("pyClass", node.get("class"))).rpartition(".")[2])
        return {name: {} if name == "metadata" else bare(part) for name, part in node.items()}

    return StructField.fromJson(bare(field.jsonValue()))


# -- sums over users ------------------------------------------------------------------------------------------


def fit(
    model: Cooccurrence, df: Any, *, text: str = "text", user: str | None = "user", partitions: int | None = None
) -> Cooccurrence:
    """Fit `Cooccurrence` on the rows of a DataFrame: one release of the texts of its users.

    Args:
        model: the model to fit, with its privacy budget.
        df: a DataFrame of pyspark.
        text: the column that holds the text, of strings; a missing one (null) counts as a text without words.
        user: the column that names the author; not used if the unit of the model is the document. For a user with more
            than ``most_words`` words, the texts with the smallest SHA-256 digests are used.
        partitions: number of tasks that add up users; None: four per core of the cluster. Each keeps one sum in memory:
            8 bytes times the size of the vocabulary times the dimension of the vectors.

    **Guarantee** (unit user; add/remove; central): as in `Cooccurrence`.

    Raises:
        ParameterError: a missing column; partitions out of range; a level that the model does not have.
        DataError: a row without a user; no rows.
        StorageError, MissingExtraError: Spark stopped; the message says why.
    """
    plan, bits = model.plan(), RandomBits(model.seed)
    warn_of_delta(plan.total_delta, public_users=model.public_users)
    rows = PrivateFrame(df, text=text, user=user, partitions=partitions)
    columns = () if plan.levels.attribute is None else (plan.levels.attribute,)
    sums = tasks.UserSums(columns, (len(plan.words), plan.features.dimension), plan.total_of, Labels())
    return model.released(plan, rows.total(sums, plan.unit), bits)


def fit_distribution(
    df: Any,
    synthesizer: Synthesizer,
    *,
    public: Any,
    text: str = "text",
    user: str | None = "user",
    partitions: int | None = None,
    out: PathLike | None = None,
    ledger: PathLike | None = None,
    force: bool = False,
) -> TextDistribution:
    """Release a description of the texts in a DataFrame: `Synthesizer.fit`, with the label columns that it names.

    Args:
        df: a DataFrame of pyspark, the same set of rows whenever it is computed.
        synthesizer: the synthesizer, with its budget, labels and features.
        public: public texts that features are fitted on, here on the driver, or a plan of the synthesizer.
        text, user, partitions: as in `fit`; the limit of a user is ``most_documents``.
        out: a new folder on the driver for the description, as `TextDistribution.save` writes it; None: not saved.
        ledger: the file of a ledger, on the driver: it charges every user (or document) before anything is added up,
            and is settled when the folder is in place.
        force: replace a description in ``out``; a new one costs its whole budget again.

    **Guarantee** (unit user or document; add/remove; central): exactly that of `dptext.Synthesizer`.

    Raises:
        ParameterError: a missing column; an argument out of range; a ledger without ``out``; ``out`` exists.
        RefusedError: the ledger refuses; the input changed after it was charged.
        DataError, StorageError, MissingExtraError: as in `fit`.
    """
    rows = PrivateFrame(df, text=text, user=user, partitions=partitions)
    named = rows.check(synthesizer.labels.columns, synthesizer.terms.unit)
    if out is None and ledger is not None:
        raise ParameterError("a ledger is settled when the description is in a folder: name one (out=...)")
    if named is not None:
        rows.check_users()
    plan = public if isinstance(public, SynthesisPlan) else synthesizer.plan(public)
    warn_of_delta(as_approx(plan.future_statement.guarantee).delta, public_users=synthesizer.public_users)
    if out is None:
        return rows.fit(synthesizer, plan)
    return rows.describe(check_path("out", out), synthesizer, plan, ledger=ledger, force=force)[0]


def sum_shares(df: Any, plan: TwoServerPlan, *, column: str = "message") -> ShareSum:
    """Add up the messages of one server (`dptext.synthesis.servers`), one per row of a column of bytes.

    Raises:
        DataError: a value is not a message to this server for this plan.
        StorageError, MissingExtraError: as in `fit`.
    """
    from pyspark.sql import functions

    check_frame(df)
    total = ShareSum(plan)
    with plain_errors():
        task = tasks.ShareTask(total)
        message = functions.col(quoted(column))
        rows = df.select(message.alias(tasks.TEXT)).repartition(
            _partitions(df, None), functions.substring(message, *ID_PLACE)
        )
        rows = rows.mapInArrow(tasks.named(task, "sum_shares"), "ids binary, sum binary, server string")
        for part in run_job(df.sparkSession, rows.collect):
            total.merge(*part)
    return total


@dataclass(frozen=True, eq=False)
class PrivateFrame(PrivateRows):
    """The users whose texts are in a DataFrame."""

    frame: Any
    text: str = "text"
    user: str | None = "user"
    partitions: int | None = None

    @property
    def sources(self) -> list[PathLike]:
        """The local input files, which no output may overwrite."""
        files = map(urlsplit, self.frame.inputFiles())
        return [Path(unquote(file.path)) for file in files if file.scheme == "file"]

    def check(self, columns: Sequence[str], unit: UserUnit) -> str | None:
        """Check all columns, and return the user column; None if the privacy unit is the document."""
        check_frame(self.frame)
        if unit == "user" and self.user is None:
            raise ParameterError("the user of a row is unknown: name the column (user=...), or use unit='document'")
        user = self.user if unit == "user" else None
        check_columns(self.text, user, columns)
        _check_columns(self.frame, self.text, [*columns] if user is None else [user, *columns])
        return user

    def first(self) -> list[str]:
        """Return the texts of the first rows, which are sent to the driver."""
        with plain_errors():
            rows = self.frame.select(quoted(self.text)).limit(FIRST_ROWS).collect()
        return [row[0] for row in rows if row[0]]

    def check_users(self, *, has_unit: bool = True) -> None:
        """Raise `DataError` before any work if rows have no user id: they are counted in one job."""
        from pyspark.sql import functions

        if self.user is None:
            return
        _check_columns(self.frame, self.text, [self.user])
        task = tasks.named(tasks.CountTask(RandomBits().take(16)), "digest_users")
        with plain_errors():
            users = self.frame.select(quoted(self.user)).mapInArrow(task, f"{quoted(tasks.USER)} string")
            total, known = users.agg(functions.count("*"), functions.count(quoted(tasks.USER))).collect()[0]
        if known < total:
            rows = f"{total - known:,} of {total:,} rows have"
            raise without_user(rows, self.user, can_skip=False, has_unit=has_unit)

    def label_counts(self, labels: Labels) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Yield the values of the label columns and the number of rows that have them. Both are private."""
        with plain_errors():
            for *values, rows in self.frame.groupBy(*map(quoted, labels.columns)).count().toLocalIterator():
                yield tuple(values), rows

    def total(self, sums: tasks.UserSums, unit: UserUnit) -> tasks.Integers:
        """Return the sum over all users: each task adds up some users, with all their rows."""
        from pyspark.sql import functions

        user = self.check(sums.columns, unit)
        spark, count = self.frame.sparkSession, _partitions(self.frame, self.partitions)
        columns = {tasks.TEXT: self.text, tasks.USER: user}
        columns |= dict(zip(tasks.value_names(len(sums.columns)), sums.columns, strict=True))
        with plain_errors():
            tables = tasks.to_nodes(spark, sums)
            rows = self.frame.select(
                *(functions.col(quoted(column)).alias(name) for name, column in columns.items() if column is not None)
            )
            if user is not None:
                schema = ", ".join(
                    f"{quoted(name)} {'string' if name == tasks.USER else kind}" for name, kind in rows.dtypes
                )
                task = tasks.UserTask(RandomBits().take(32), tables)
                rows = rows.mapInArrow(tasks.named(task, "digest_users"), f"{schema}, {quoted(tasks.KEY)} binary")
                rows = rows.repartition(count, quoted(tasks.USER))
                rows = rows.sortWithinPartitions(quoted(tasks.USER), quoted(tasks.KEY))
            schema = f"{quoted(tasks.SLICE)} int, {quoted(tasks.CELLS)} binary"
            slices = rows.mapInArrow(tasks.named(tasks.SumTask(tables), "sum_users"), schema).repartition(
                count, quoted(tasks.SLICE)
            )
            parts = run_job(spark, slices.mapInArrow(tasks.named(tasks.add_slices, "add_slices"), schema).collect)
        if not parts:
            raise DataError("there are no documents: at least one is needed")
        return tasks.whole_sum(((int(number), cells) for number, cells in parts), sums.shape)

    def fit(
        self, synthesizer: Synthesizer, plan: SynthesisPlan, _documents: Any = None, *, release_id: str | None = None
    ) -> TextDistribution:
        bits = RandomBits(synthesizer.seed)
        sent = replace(plan, pool=PoolName(plan.pool.name, plan.pool.sha256))  # without its texts
        shape = (len(plan.labels), 1 + plan.features.dimension)
        sums = tasks.UserSums(plan.columns, shape, sent.total_of, plan.labels)
        return synthesizer.released(plan, self.total(sums, plan.unit), bits, release_id=release_id)

    def release_into(
        self, folder: Path, run: FolderRun, *, ledger: PathLike | None = None, force: bool = False
    ) -> tuple[Any, None]:
        """Release into a folder, charged to a ledger (`dptext.synthesis.release.PrivateFiles.release_into`)."""
        user = self.check(run.columns, "user" if run.statement.unit is Unit.USER else "document")
        charges = Charges(ledger, None if ledger is None else user, missing="")
        reader = FrameReader(self.frame, self.text, charges.column)

        def fit(release_id: str) -> Any:
            result = run.fit(self.documents(run.columns), release_id)
            reader.check()
            return result

        with plain_errors():
            return described_into(folder, run, charges, lambda: reader, fit, force=force), None

    def documents(self, columns: Sequence[str] = ()) -> Iterator[Document]:
        """Yield all rows with these columns on the driver. They are private."""
        names = [self.text, *([] if self.user is None else [self.user]), *columns]
        with plain_errors():
            for row in self.frame.select(*map(quoted, names)).toLocalIterator():
                values = dict(zip(names, row, strict=True))
                attributes = {name: values[name] for name in columns}
                yield Document(values[self.text], user=values[self.user] if self.user else None, attributes=attributes)


# -- files ----------------------------------------------------------------------------------------------------


def read_files(sources: Sequence[str], *, text: str = "text", keep: Sequence[str] = (), kind: str | None = None) -> Any:
    """Return a DataFrame of files of one format; a broken row is an error. Numbers among JSON texts become strings."""
    suffix = announced_by(Path(sources[0])).kind
    # .json is what Spark writes
    kind = f".{kind.removeprefix('.')}" if kind else {".json": ".jsonl"}.get(suffix, suffix)
    if kind not in KINDS:
        raise ParameterError(f"Spark reads {', '.join(KINDS)} here, got {kind!r}: name the format of the input")
    reader, paths = session().read.option("mode", "FAILFAST"), list(sources)
    with plain_errors():
        if kind == ".parquet":
            return reader.parquet(*paths)
        if kind == ".jsonl":
            return reader.json(paths)
        # every header is compared with the first one: by position alone, the texts could be another column of a file
        reader = reader.option("header", "true").option("enforceSchema", "false").option("columnPruning", "false")
        frame = reader.option("multiLine", "true").option("escape", '"').csv(paths)
        for name in (text, *keep):
            if name not in frame.columns:
                raise DataError(
                    f"expected a column {name!r}, the header has "
                    f"{describe_columns(name, frame.columns, required=(text, *keep))}; name the right column"
                )
        return frame.fillna("", subset=[quoted(name) for name in frame.columns])  # an empty cell is a text, not null


def look_at_columns(df: Any, names: Sequence[str], *, limit: int = LOOKED_AT) -> list[Column]:
    """Describe columns by their first rows, which are sent to the driver (`dptext.text.identifiers`)."""
    with plain_errors():
        rows = df.select(*map(quoted, names)).limit(limit).collect() if names else []
    return [look_at(name, (row[index] for row in rows)) for index, name in enumerate(names)]
