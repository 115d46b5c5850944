"""Tables in memory through a word mechanism: pandas, polars, pyarrow and Hugging Face `datasets`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dptext.errors import DataError
from dptext.files.documents import check_kept_columns
from dptext.files.table_kinds import table_kind
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import with_columns
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import Rewriter

__all__ = ["PrivateTable", "privatize_table"]

Table = TypeVar("Table")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PrivateTable(Generic[Table]):
    """What `privatize_table` returns.

    Attributes:
        table: of the kind that came in: the private texts and the kept columns, row for row.
        statement: what was promised for a document.
    """

    table: Table
    statement: PrivacyStatement


def privatize_table(
    table: Table, mechanism: WordMechanism, *, text: str = "text", keep: Sequence[str] = (), seed: int | None = None
) -> PrivateTable[Table]:
    """Replace every word in a column of a table through a mechanism.

    Args:
        table: a pandas or polars DataFrame, a pyarrow Table or a datasets.Dataset; it is not changed.
        mechanism: a word mechanism.
        text: the column that holds the text. A missing one (None, NaN, null) stays missing.
        keep: columns to keep; their values are exposed as they are. All others are dropped, and so is all that a table
            carries besides the values of its rows (`dptext.strip_metadata` says what).
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).

    **Guarantee** (unit document, substitution among documents of equal layout, local): as the statement says.

    Raises:
        ParameterError: another kind of table; a column that it has not; the text among those to keep.
        DataError: an entry of the column is not a string (its row is named); a kept column is of a type whose parts
            are not known.
        MissingExtraError: pyarrow is not installed (kept columns of polars).

    >>> import dptext, pyarrow
    >>> vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> pets = pyarrow.table({"text": ["my cat", None], "stars": [5, 1], "name": ["A", "B"]})
    >>> result = privatize_table(pets, dptext.TEM(vectors, epsilon=200.0, threshold=0.2), keep=["stars"])
    >>> result.table.to_pydict()
    {'text': ['<unk> cat', None], 'stars': [5, 1]}
    """
    check_kept_columns(text, keep)
    kind = table_kind(table)
    for column in (text, *keep):
        kind.check_column(column)
    kept = {name: kind.rebuilt(name) for name in keep}
    rewriter = Rewriter(mechanism, seed=seed)
    private = list(rewriter.rewrite(_strings(kind.read(text))))
    warning = rewriter.tally.warning()
    if warning is not None:
        _logger.warning(warning)
    released: Table = kind.table({text: kind.texts(text, private), **kept})
    return PrivateTable(released, with_columns(rewriter.statement(), keep))


def _strings(values: Iterable[Any]) -> Iterable[str | None]:
    for row, value in enumerate(values, 1):
        if value is not None and not isinstance(value, str):
            raise DataError(f"row {row}: expected a string, the value is of type {type(value).__name__}")
        yield value
