"""AG's news topics (Zhang, Zhao and LeCun 2015): the official test set, and the training rows that are at hand.

The folder is laid out as its publishers lay it out: ``ag_news/test.csv`` and, where it is there, ``train.csv`` with all
120,000 rows; one that lies elsewhere is named to `ag_news`. In its place two public samples of it will do:
``alps_train_subset_10k_desc_only.tsv.gz`` (descriptions without their titles) and
``chimera_hf_train_sample_{train,validation}.parquet``.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from papers.data_sets import LabelledTexts

from dptext.errors import DataError, StorageError
from dptext.text.tokens import Kind, fold, kind_of, pieces

CLASSES = ("World", "Sports", "Business", "Sci/Tech")
_DESCRIPTIONS = "alps_train_subset_10k_desc_only.tsv.gz"
_SAMPLES = ("chimera_hf_train_sample_train.parquet", "chimera_hf_train_sample_validation.parquet")

Rows = Iterable[tuple[str, int]]


def ag_news(data: Path, train: Path | None = None) -> tuple[LabelledTexts, LabelledTexts]:
    """(training, test) rows; training rows that stand in the test set, with or without its titles, are left out.

    Args:
        data: holds ``ag_news``.
        train: a file of classes, titles and descriptions as ``train.csv`` has them; None: what is in the folder.

    Raises:
        DataError: a row that is none.
        StorageError: no test set, or no training rows.
    """
    folder = data / "ag_news"
    test = list(_official(folder / "test.csv"))
    tested = [f"{title} {description}" for _, title, description in test]
    if train is None and (folder / "train.csv").exists():
        train = folder / "train.csv"
    if train is not None:
        rows = [(f"{title} {text}", label) for label, title, text in _official(train)]
    else:
        rows = [*_described(folder / _DESCRIPTIONS), *(row for name in _SAMPLES for row in _sampled(folder / name))]
    kept = without_overlap(rows, [*tested, *(description for _, _, description in test)])
    return _labelled(kept), _labelled(zip(tested, (label for label, _, _ in test), strict=True))


def without_overlap(train: Rows, tested: Iterable[str]) -> list[tuple[str, int]]:
    """The rows whose words, in their order, are those of no tested text."""
    words = set(map(_words, tested))
    return [row for row in train if _words(row[0]) not in words]


def _words(text: str) -> str:
    return " ".join(fold(piece) for piece in pieces(text) if kind_of(piece) is Kind.WORD)


def _labelled(rows: Rows) -> LabelledTexts:
    texts, labels = zip(*rows, strict=True)
    return LabelledTexts(tuple(texts), np.array(labels, dtype=np.intp))


def _official(path: Path) -> Iterator[tuple[int, str, str]]:
    """(class from 0, title, description)."""
    for row in csv.reader(_text(path).splitlines(keepends=True)):
        if len(row) != 3 or row[0] not in ("1", "2", "3", "4"):
            raise DataError(f"{path.name}: expected a class from 1 to 4, a title and a description in each row")
        yield int(row[0]) - 1, row[1], row[2]


def _described(path: Path) -> Iterator[tuple[str, int]]:
    for line in _text(path).split("\n"):
        if line.strip():
            text, _, name = line.rpartition("\t")
            if name.strip() not in CLASSES:
                raise DataError(f"{path.name}: expected a description, a tab and the name of a class in each line")
            yield text, CLASSES.index(name.strip())


def _sampled(path: Path) -> Iterator[tuple[str, int]]:
    try:
        table = pq.read_table(path, columns=["text", "label"])
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    yield from zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True)


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
