"""Word vectors from the texts in a DataFrame: integers summed on the executors, noise added on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext.embeddings.cooccurrence import Cooccurrence, Plan
from dptext.privacy.budgets import warn_of_delta
from dptext.privacy.randomness import RandomBits
from dptext.spark.session import check_frame, plain_errors
from dptext.spark.tasks import bytes_column, checked_columns, from_node, text_column, to_nodes
from dptext.spark.users import ORDER, TEXT, WHO, sum_over_users, user_column
from dptext.users.grouping import Level, UserWords, WordIndexer

_WORDS, _LEVEL = "dptext words", "dptext level"


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
    warn_of_delta(plan.total_delta, public_users=model.public_users)
    return model.released(plan, _total(plan, df, plan.levels.attribute, text, user, order, partitions), bits)


def _total(
    plan: Plan, df: Any, level: str | None, text: str, user: str | None, order: str | None, partitions: int | None
) -> npt.NDArray[np.int64]:
    """(V, k) the sum of all users' matrices."""
    spark = check_frame(df)
    columns = {TEXT: text, WHO: user_column(plan.unit, user), _LEVEL: level, ORDER: order}
    given = {name: column for name, column in columns.items() if column is not None}
    checked_columns(df, text, list(dict.fromkeys(column for name, column in given.items() if name != TEXT)), ())
    with plain_errors():
        work = _Words(to_nodes(spark, plan))
        shape = (len(plan.words), plan.features.dimension)
        return sum_over_users(spark, df, work, given, shape, partitions=partitions)


@dataclass(frozen=True)
class _Words:
    """Texts as the numbers of their words, and users as matrices of what stands beside each word."""

    tables: str

    columns: ClassVar = {_WORDS: "binary", _LEVEL: "string"}
    within: ClassVar = (_WORDS,)

    def cut(self, batches: Iterable[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The numbers of the words, and the level as a text."""
        import pyarrow

        rows_of = WordIndexer(from_node(self.tables).words)
        for batch in batches:
            rows, lengths = rows_of(batch.column(TEXT).to_pylist())
            ends = np.concatenate([[0], np.cumsum(lengths)]) * rows.itemsize
            data = rows.astype("<i4").tobytes()
            words = [data[start:end] for start, end in pairwise(ends)]
            given = batch.column(_LEVEL).to_pylist() if _LEVEL in batch.schema.names else [None] * batch.num_rows
            levels = [None if each is None else str(each) for each in given]
            yield batch, {_WORDS: bytes_column(words), _LEVEL: text_column(levels, pyarrow.string())}

    def added(self, batches: Iterable[Any]) -> npt.NDArray[np.int64] | None:
        plan: Plan = from_node(self.tables)
        people = _people(batches, plan.most_words)
        first = next(people, None)
        return None if first is None else plan.total(chain([first], people))


def _people(batches: Iterable[Any], most: int) -> Iterator[UserWords]:
    """The users of sorted rows, each whole; where no user is named, every row is one."""
    who: Any = None
    texts: list[bytes] = []
    levels: dict[Level, None] = {}
    words = 0
    for batch in batches:
        by_user = WHO in batch.schema.names
        names = batch.column(WHO).to_pylist() if by_user else [None] * batch.num_rows
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


def _person(texts: list[bytes], levels: dict[Level, None], most: int) -> UserWords:
    rows = np.frombuffer(b"".join(texts), dtype="<i4").astype(np.int32)
    lengths = np.array([len(each) // 4 for each in texts], dtype=np.int64)
    return UserWords(rows, lengths, tuple(levels), most)
