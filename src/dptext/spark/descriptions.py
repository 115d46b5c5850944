"""A description of the texts of people whose rows lie in a DataFrame: matrices added up on the nodes, noise at the
driver."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt

from dptext.checks import path
from dptext.errors import ParameterError
from dptext.io.documents import PathLike
from dptext.privacy.budgets import warn_of_delta
from dptext.privacy.guarantee import as_approx
from dptext.privacy.randomness import RandomBits
from dptext.spark.release import FrameCharges
from dptext.spark.session import check_frame, plain_errors
from dptext.spark.tasks import bytes_column, checked_columns, from_node, number_column, quoted, text_column, to_nodes
from dptext.spark.users import ORDER, TEXT, WHO, sum_over_users, user_column
from dptext.synthesis.distribution import TextDistribution
from dptext.synthesis.moments import TEXTS_AT_ONCE, Labels, MomentSum
from dptext.synthesis.release import check_columns, described_into
from dptext.synthesis.synthesizer import SynthesisPlan, Synthesizer
from dptext.users.grouping import Chunk, UserTexts

_CODE, _DIGEST = "dptext code", "dptext digest"


def describe(
    df: Any,
    synthesizer: Synthesizer,
    *,
    public: Any,
    text: str = "text",
    user: str | None = "user",
    order: str | None = None,
    partitions: int | None = None,
    out: PathLike | None = None,
    ledger: PathLike | None = None,
    force: bool = False,
) -> TextDistribution:
    """`Synthesizer.fit` on the rows of a DataFrame: a release of these people's texts. The labels of a row stand in
    the columns that the synthesizer names.

    Args:
        df: a DataFrame of pyspark, the same set of rows whenever it is computed.
        synthesizer: with budget, labels and features.
        public: public texts that features are fitted on, here on the driver, or a plan of the synthesizer.
        text: the column that holds the text, of strings; a missing one (null) counts as empty.
        user: the column that says who wrote a row; not used where documents are protected.
        order: a column in the order of which a person's documents count, for people with more than
            ``most_documents``; None: by the SHA-256 of their texts, the smallest first.
        partitions: how many tasks add up people; None: four for every core that the cluster has now. Each holds a sum
            of the size of the description, 8 bytes a number.
        out: a new folder on the driver for the description, as `TextDistribution.save` writes it; None: nowhere.
        ledger: the file of a ledger, on the driver: it charges every person (or document) before anything is added up,
            and is settled when the folder stands.
        force: replace a description that stands in ``out``; a new one costs its whole budget again.

    **Guarantee** (unit user or document; add/remove; central): that of `dptext.Synthesizer`, word for word.

    Raises:
        ParameterError: no such column; an argument out of range; a ledger without ``out``; something stands there.
        DataError: a row without a user; not one row.
        RefusedError: the ledger refuses; the input changed after it was charged.
        StorageError, MissingExtraError: what stopped Spark, and what to do.
    """
    rows = PrivateFrame(df, text=text, user=user, order=order, partitions=partitions)
    rows.check(synthesizer)
    if out is None and ledger is not None:
        raise ParameterError("a ledger is settled when the description stands somewhere: name a folder (out=...)")
    plan = public if isinstance(public, SynthesisPlan) else synthesizer.plan(public)
    warn_of_delta(as_approx(plan.promise.guarantee).delta, public_users=synthesizer.public_users)
    if out is None:
        return rows.fit(synthesizer, plan)
    return rows.describe(path("out", out), synthesizer, plan, ledger=ledger, force=force)


@dataclass(frozen=True, eq=False)
class PrivateFrame:
    """Whose documents are described: those of a DataFrame."""

    frame: Any
    text: str = "text"
    user: str | None = "user"
    order: str | None = None
    partitions: int | None = None

    @property
    def sources(self) -> list[PathLike]:
        """The files of this machine that they are read from, which no output may be."""
        found = map(urlsplit, self.frame.inputFiles())
        return [Path(unquote(each.path)) for each in found if each.scheme == "file"]

    def check(self, synthesizer: Synthesizer) -> dict[str, str]:
        check_frame(self.frame)
        labels = synthesizer.labels.columns
        user = user_column(synthesizer.terms.unit, self.user)
        check_columns(self.text, user, labels)
        columns = {
            TEXT: self.text,
            WHO: user,
            ORDER: self.order,
            **dict(zip(_labels(len(labels)), labels, strict=True)),
        }
        given = {name: column for name, column in columns.items() if column is not None}
        checked_columns(self.frame, self.text, list(dict.fromkeys(given[name] for name in given if name != TEXT)), ())
        return given

    def label_counts(self, labels: Labels) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Yield the values of the label columns and the number of rows that have them. Both are private."""
        with plain_errors():
            for *values, rows in self.frame.groupBy(*map(quoted, labels.columns)).count().toLocalIterator():
                yield tuple(values), rows

    def fit(self, synthesizer: Synthesizer, plan: SynthesisPlan, *, release_id: str | None = None) -> TextDistribution:
        bits = RandomBits(synthesizer.seed)
        given = self.check(synthesizer)
        spark = check_frame(self.frame)
        shape = (len(plan.labels), 1 + plan.features.dimension)
        with plain_errors():
            tables = to_nodes(spark, (plan.features, plan.labels))
            work = _Documents(tables, len(plan.labels.columns), plan.terms.most_documents)
            total = sum_over_users(spark, self.frame, work, given, shape, partitions=self.partitions)
        return synthesizer.released(plan, total, bits, release_id=release_id)

    def describe(
        self,
        folder: Path,
        synthesizer: Synthesizer,
        plan: SynthesisPlan,
        *,
        ledger: PathLike | None = None,
        force: bool = False,
    ) -> TextDistribution:
        by = user_column(synthesizer.terms.unit, self.user) if ledger is not None else None
        charges = FrameCharges(None if ledger is None else str(ledger), by, self.frame, self.text, missing="")

        def fit(release_id: str) -> TextDistribution:
            return self.fit(synthesizer, plan, release_id=release_id)

        with plain_errors():
            return described_into(folder, synthesizer, plan, charges, lambda: charges, fit, force=force)


def _labels(columns: int) -> list[str]:
    return [f"dptext label {place}" for place in range(columns)]


@dataclass(frozen=True)
class _Documents:
    """Documents as texts with the numbers of their classes, and people as matrices of where these lie."""

    tables: str
    label_columns: int
    most_documents: int

    columns: ClassVar = {TEXT: "string", _CODE: "int", _DIGEST: "binary"}
    within: ClassVar = (_DIGEST, _CODE)

    def cut(self, batches: Iterable[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The text, its digest, and the number of its class."""
        import pyarrow

        _, labels = from_node(self.tables)
        for batch in batches:
            texts = [text or "" for text in batch.column(TEXT).to_pylist()]
            values = [batch.column(name).to_pylist() for name in _labels(self.label_columns)]
            codes = map(labels.code, zip(*values, strict=True) if values else [()] * len(texts))
            digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
            yield (
                batch,
                {
                    TEXT: text_column(texts, pyarrow.string()),
                    _CODE: number_column(np.fromiter(codes, dtype=np.int32, count=len(texts))),
                    _DIGEST: bytes_column(digests),
                },
            )

    def added(self, batches: Iterable[Any]) -> npt.NDArray[np.int64] | None:
        features, labels = from_node(self.tables)
        total = MomentSum(features, len(labels))
        return total.cells if total.add(_people(batches, self.most_documents)) else None


def _people(batches: Iterable[Any], most: int) -> Iterator[UserTexts]:
    """The people of sorted rows, one after the other, each good until the next one; without users, every row is one."""
    for _, rows in groupby(_rows(batches), key=itemgetter(0)):
        yield UserTexts(_chunks(islice(rows, most)))


def _rows(batches: Iterable[Any]) -> Iterator[tuple[Any, str, int]]:
    number = count()
    for batch in batches:
        names: Iterable[Any] = batch.column(WHO).to_pylist() if WHO in batch.schema.names else number
        yield from zip(names, batch.column(TEXT).to_pylist(), batch.column(_CODE).to_pylist(), strict=False)


def _chunks(rows: Iterator[tuple[Any, str, int]]) -> Iterator[Chunk]:
    while part := list(islice(rows, TEXTS_AT_ONCE)):
        yield [text for _, text, _ in part], np.array([code for _, _, code in part], dtype=np.int32)
