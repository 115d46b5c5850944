"""Yelp's reviews with a polarity (Zhang, Zhao and LeCun 2015), for those who have the files of their publishers.

``train.csv`` and ``test.csv`` of ``yelp_review_polarity_csv``: a class (1: negative, 2: positive) and a review in each
row, without a header.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from papers.data_sets import LabelledTexts

from dptext.errors import DataError, StorageError


def yelp_polarity(train: Path) -> tuple[LabelledTexts, LabelledTexts]:
    """(training, test) rows of the file named, and of the ``test.csv`` in its folder.

    Raises:
        DataError: a row that is none, or a part without rows.
        StorageError: one of the files is not there.
    """
    return _rows(train), _rows(train.with_name("test.csv"))


def _rows(path: Path) -> LabelledTexts:
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    rows = list(csv.reader(lines))
    if not rows or any(len(row) != 2 or row[0] not in ("1", "2") for row in rows):
        raise DataError(f"{path.name}: expected a class, 1 or 2, and a review in each row, and no header")
    texts = tuple(text.replace("\\n", " ") for _, text in rows)  # how its publishers write the end of a line
    return LabelledTexts(texts, np.array([int(label) - 1 for label, _ in rows], dtype=np.intp))
