"""Tables in memory through a word mechanism: pandas, polars, pyarrow and Hugging Face `datasets`, none of them imported
unless the caller brought it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dptext.errors import DataError, ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.text.documents import check_kept_columns
from dptext.text.parquet import as_table
from dptext.text.release import with_columns
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import Rewriter

__all__ = ["PrivateTable", "privatize_table"]

Table = TypeVar("Table")
Texts = list[str | None]

_logger = logging.getLogger(__name__)
_KNOWN = "a pandas or polars DataFrame, a pyarrow Table or a datasets.Dataset"


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
        keep: columns to keep as they are; they are exposed. All others are dropped, and so is an index.
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).

    **Guarantee** (unit document, substitution among documents of equal layout, local): as the statement says.

    Raises:
        ParameterError: another kind of table; a column that it has not; the text among those to keep.
        DataError: an entry of the column is not a string; its row is named.

    >>> import dptext, pyarrow
    >>> vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> pets = pyarrow.table({"text": ["my cat", None], "stars": [5, 1], "name": ["A", "B"]})
    >>> result = privatize_table(pets, dptext.TEM(vectors, epsilon=200.0, threshold=0.2), keep=["stars"])
    >>> result.table.to_pydict()
    {'text': ['<unk> cat', None], 'stars': [5, 1]}
    """
    check_kept_columns(text, keep)
    names, read, build = _form(table)
    for column in (text, *keep):
        if column not in names:
            raise ParameterError(f"expected a column {column!r}, the table has none among its {len(names)}")
    rewriter = Rewriter(mechanism, seed=seed)
    private = list(rewriter.rewrite(_strings(read(text))))
    warning = rewriter.tally.warning()
    if warning is not None:
        _logger.warning(warning)
    return PrivateTable(build(text, private, list(keep)), with_columns(rewriter.statement(), keep))


def _strings(values: Iterable[Any]) -> Iterable[str | None]:
    for row, value in enumerate(values, 1):
        if value is not None and not isinstance(value, str):
            raise DataError(f"row {row}: expected a string, the value is of type {type(value).__name__}")
        yield value


Form = tuple[list[str], Callable[[str], Iterable[Any]], Callable[[str, Texts, list[str]], Any]]


def _form(table: Any) -> Form:
    """The names of the columns, how to read one, and how to build a table of texts and kept columns."""
    kind = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
    forms: dict[str, Callable[[Any], Form]] = {
        "pandas.DataFrame": _pandas,
        "polars.DataFrame": _polars,
        "pyarrow.Table": _pyarrow,
        "datasets.Dataset": _datasets,
    }
    if kind in forms:
        return forms[kind](table)
    instead = {
        "polars.LazyFrame": ": collect() it first",
        "datasets.DatasetDict": ": privatize its splits one by one",
        "datasets.IterableDataset": ": give dptext.privatize its texts, (row['text'] for row in it)",
    }.get(kind, "")
    raise ParameterError(f"expected {_KNOWN}, got {kind}{instead}")


def _pandas(table: Any) -> Form:
    import pandas

    def read(name: str) -> Iterable[Any]:
        column = table[name]
        return (None if missing else value for value, missing in zip(column, column.isna(), strict=True))

    def build(text: str, private: Texts, keep: list[str]) -> Any:
        # neither the index nor the attributes of the frame come along, and no categories of old texts
        kept = {name: table[name].reset_index(drop=True) for name in keep}
        for name, column in kept.items():
            if isinstance(column.dtype, pandas.CategoricalDtype):
                kept[name] = column.cat.remove_unused_categories()
        dtype = table[text].dtype if isinstance(table[text].dtype, pandas.StringDtype) else object
        return pandas.DataFrame({text: pandas.Series(private, dtype=dtype), **kept})

    return list(table.columns), read, build


def _polars(table: Any) -> Form:
    import polars

    def build(text: str, private: Texts, keep: list[str]) -> Any:
        texts = polars.DataFrame({text: polars.Series(text, private, dtype=polars.String)})
        return texts.hstack(table.select(keep).get_columns())

    return list(table.columns), table.get_column, build


def _pyarrow(table: Any) -> Form:
    def read(name: str) -> Iterable[Any]:
        return (value for chunk in table.column(name).chunks for value in chunk.to_pylist())

    def build(text: str, private: Texts, keep: list[str]) -> Any:
        return as_table(text, private, table.replace_schema_metadata(None), keep, 1)

    return list(table.column_names), read, build


def _datasets(table: Any) -> Form:
    import datasets

    def read(name: str) -> Iterable[Any]:
        return (value for batch in table.select_columns([name]).iter(1000) for value in batch[name])

    def build(text: str, private: Texts, keep: list[str]) -> Any:
        if not keep:
            return datasets.Dataset.from_dict({text: private}, features=datasets.Features({text: _string(datasets)}))
        kept = table.with_format(None).select_columns(keep)
        # a dataset is named by a hash of where it came from, and save_to_disk writes the name out: it must not tell
        # whether a guess of the original texts is right
        name = RandomBits().take(8).hex()
        private_table = kept.add_column(text, private, new_fingerprint=name, feature=_string(datasets))
        for words in ("description", "citation", "homepage", "license"):  # they spoke of the original
            setattr(private_table.info, words, "")
        return private_table.select_columns([text, *keep])

    return list(table.column_names), read, build


def _string(datasets: Any) -> Any:
    return datasets.Value("string")
