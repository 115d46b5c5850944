"""Vectors to share from users whose texts lie in a DataFrame: whole numbers summed on the nodes, noise at the driver.

Three steps, each of which may be done again without a trace. (1) Every row becomes a digest of its user (under a key
that is drawn for this call and forgotten) and the numbers of its words: names and texts end here. (2) The rows of a
user come together; their matrix is a function of their own words alone, bounded and rounded to whole numbers
(`dptext.embeddings.user_matrices`), and a task adds up those of its users. (3) The sums of the tasks are added up,
every slice of the vocabulary by one task, and go to the driver, which adds the noise.

A sum of whole numbers is the same in any order, so cluster, partitions and retries cannot change it: the driver holds,
to the last bit, what `Cooccurrence.fit` holds on one machine, and with a seed the release is the same too. (But for
users with more than ``most_words`` words: which of them count depends on the order of a user's texts, and rows of a
DataFrame have none unless a column says so.)

**What is trusted**: the cluster, as `Cooccurrence` trusts its curator. The sums without noise are private; they are on
its wires and in the driver's memory, nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.embeddings.cooccurrence import Cooccurrence, Plan
from dptext.errors import DataError, ParameterError
from dptext.privacy.public_users import warn_of_delta
from dptext.privacy.randomness import RandomBits
from dptext.spark.rows import checked_columns, checked_partitions, quoted
from dptext.spark.session import check_frame, plain_errors
from dptext.spark.tables import from_node, to_nodes
from dptext.spark.tasks import batch_of, bytes_column, named, number_column, text_column
from dptext.users.grouping import Level, Person, RowsOfTexts, user_name

__all__ = ["fit"]

_WHO, _WORDS, _LEVEL, _ORDER = "dptext who", "dptext words", "dptext level", "dptext order"
_SLICE, _CELLS = "dptext slice", "dptext cells"
_ROWS_A_SLICE = 256
_SEEN = -1  # the slice that says that there was a user, even one without words


def fit(
    model: Cooccurrence,
    df: Any,
    *,
    text: str = "text",
    user: str | None = "user",
    order: str | None = None,
    partitions: int | None = None,
) -> Cooccurrence:
    """`Cooccurrence.fit` on the rows of a DataFrame: a release of these users' texts.

    Args:
        model: what is to be learned, and under which promise.
        df: a DataFrame of pyspark.
        text: the column that holds the text, of strings; a missing one (null) counts as one without words.
        user: the column that says who wrote a row; not used where the unit of the model is the document.
        order: a column in the order of which a user's texts count, for users with more than ``most_words`` words; None:
            in an order of their own that no other user has to do with.
        partitions: how many tasks add up users; None: four for every core that the cluster has now. Each holds a sum of
            the size of the vocabulary times that of a vector, 8 bytes a number.

    **Guarantee** (unit user; add/remove; central): that of `Cooccurrence`, word for word.

    Returns:
        The model, fitted.

    Raises:
        ParameterError: no such column; partitions out of range; a level that is none of the model's.
        DataError: a row without a user; not one row.
        StorageError, MissingExtraError: what stopped Spark, and what to do.
    """
    plan, bits = model.plan(), RandomBits(model.seed)
    warn_of_delta(plan.total_delta, public_users=model.public_users, stacklevel=2)
    return model.released(plan, _total(plan, df, plan.levels.attribute, text, user, order, partitions), bits)


def _total(
    plan: Plan, df: Any, level: str | None, text: str, user: str | None, order: str | None, partitions: int | None
) -> npt.NDArray[np.int64]:
    """(V, k) the sum of all users' matrices."""
    from pyspark.sql import functions

    spark = check_frame(df)
    whose = user if plan.unit == "user" else None
    if plan.unit == "user" and whose is None:
        raise ParameterError("nobody knows who wrote these rows: name the column, fit(..., user=...)")
    beside = [each for each in (whose, level, order) if each is not None]
    checked_columns(df, text, list(dict.fromkeys(beside)), ())
    with plain_errors():
        count = checked_partitions(spark, partitions)
        tables = to_nodes(spark, plan)
        columns = [
            functions.col(quoted(column)).alias(name)
            for name, column in ((_WORDS, text), (_WHO, whose), (_LEVEL, level), (_ORDER, order))
            if column is not None
        ]
        cut = _CutTask(tables, RandomBits().take(32), by_user=whose is not None, ordered=order is not None)
        rows = df.select(*columns)
        kept = {each.name: each.dataType.simpleString() for each in rows.schema.fields}
        words = rows.mapInArrow(named(cut, "cut_words"), _schema(cut.columns, kept))
        if whose is not None:
            within = [quoted(_ORDER)] if order is not None else [quoted(_WORDS)]
            words = words.repartition(count, quoted(_WHO)).sortWithinPartitions(quoted(_WHO), *within)
        sums = words.mapInArrow(named(_SumTask(tables), "sum_users"), _schema((_SLICE, _CELLS), {}))
        sums = sums.repartition(count, quoted(_SLICE)).mapInArrow(
            named(_add_slices, "add_slices"), _schema((_SLICE, _CELLS), {})
        )
        found = {int(row[0]): row[1] for row in sums.collect()}
    if _SEEN not in found:
        raise DataError("there are no documents: expected at least one")
    shape = (len(plan.words), plan.features.dimension)
    total = np.zeros(shape, dtype=np.int64)
    for place, cells in found.items():
        if place != _SEEN:
            part = total[place * _ROWS_A_SLICE : (place + 1) * _ROWS_A_SLICE]
            part[:] = np.frombuffer(cells, dtype="<i8").reshape(part.shape)
    return total


_TYPES = {_WHO: "binary", _WORDS: "binary", _LEVEL: "string", _SLICE: "int", _CELLS: "binary"}


def _schema(columns: Iterable[str], kept: dict[str, str]) -> str:
    return ", ".join(f"{quoted(name)} {_TYPES.get(name) or kept[name]}" for name in columns)


@dataclass(frozen=True)
class _CutTask:
    """Rows of texts and names as rows of numbers and digests."""

    tables: str
    key: bytes = field(repr=False)
    by_user: bool
    ordered: bool

    @property
    def columns(self) -> tuple[str, ...]:
        who = (_WHO,) if self.by_user else ()
        return (*who, _WORDS, _LEVEL, *((_ORDER,) if self.ordered else ()))

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        rows_of = RowsOfTexts(from_node(self.tables).words)
        for batch in batches:
            rows, lengths = rows_of(batch.column(_WORDS).to_pylist())
            ends = np.concatenate([[0], np.cumsum(lengths)]) * rows.itemsize
            data = rows.astype("<i4").tobytes()
            words = [data[start:end] for start, end in pairwise(ends)]
            found = {_WORDS: bytes_column(words)}
            if self.by_user:
                digests = [self._digest(each) for each in batch.column(_WHO).to_pylist()]
                found[_WHO] = bytes_column(digests)
            given = batch.column(_LEVEL).to_pylist() if _LEVEL in batch.schema.names else [None] * batch.num_rows
            levels = [None if each is None else str(each) for each in given]
            found[_LEVEL] = text_column(levels, pyarrow.string())
            if self.ordered:
                found[_ORDER] = batch.column(_ORDER)
            yield batch_of({name: found[name] for name in self.columns})

    def _digest(self, user: object) -> bytes:
        return hashlib.blake2b(user_name(user).encode("utf-8", "surrogatepass"), digest_size=16, key=self.key).digest()


@dataclass(frozen=True)
class _SumTask:
    """Rows of numbers, those of a user one after the other, as the sum of the users' matrices, in slices."""

    tables: str

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        plan: Plan = from_node(self.tables)
        people = _people(batches, plan.most_words)
        first = next(people, None)
        if first is None:
            return
        total = plan.total(chain([first], people))
        slices = [(_SEEN, b"")]
        for start in range(0, len(total), _ROWS_A_SLICE):
            part = total[start : start + _ROWS_A_SLICE]
            if part.any():
                slices.append((start // _ROWS_A_SLICE, part.astype("<i8").tobytes()))
        yield from _as_batches(slices)


def _people(batches: Iterable[Any], most: int) -> Iterator[Person]:
    """The users of sorted rows, each whole; where no user is named, every row is one."""
    who: Any = None
    texts: list[bytes] = []
    levels: dict[Level, None] = {}
    words = 0
    for batch in batches:
        by_user = _WHO in batch.schema.names
        names = batch.column(_WHO).to_pylist() if by_user else [None] * batch.num_rows
        given = batch.column(_LEVEL).to_pylist()
        for name, level, text in zip(names, given, batch.column(_WORDS).to_pylist(), strict=True):
            if levels and (name != who or not by_user):
                yield _person(texts, levels, most)
                texts, levels, words = [], {}, 0
            who = name
            levels[level] = None
            if words < most:  # of the rest nothing counts, so nothing need be remembered
                texts.append(text)
                words += len(text) // 4
    if levels:
        yield _person(texts, levels, most)


def _person(texts: list[bytes], levels: dict[Level, None], most: int) -> Person:
    rows = np.frombuffer(b"".join(texts), dtype="<i4").astype(np.int32)
    lengths = np.array([len(each) // 4 for each in texts], dtype=np.int64)
    return Person(((rows, lengths),), tuple(levels), most)


def _add_slices(batches: Iterable[Any]) -> Iterator[Any]:
    """Slices of sums of tasks, added up."""
    found: dict[int, npt.NDArray[np.int64]] = {}
    for batch in batches:
        for place, cells in zip(batch.column(_SLICE).to_pylist(), batch.column(_CELLS).to_pylist(), strict=True):
            part = np.frombuffer(cells, dtype="<i8")
            if place in found:
                found[place] += part
            else:
                found[place] = part.astype(np.int64)
    yield from _as_batches([(place, cells.astype("<i8").tobytes()) for place, cells in found.items()])


def _as_batches(slices: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    for place, cells in slices:  # one at a time: few and large
        yield batch_of({_SLICE: number_column(np.array([place], dtype=np.int32)), _CELLS: bytes_column([cells])})
