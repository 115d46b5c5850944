"""The papers' data sets, read from a folder that the caller names. Nothing is downloaded.

The folder is laid out as the data's publishers lay it out: ``sentiment_labelled/imdb_labelled.txt`` and so on
(https://archive.ics.uci.edu/dataset/331/sentiment+labelled+sentences).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, StorageError

SENTIMENT = {
    "IMDb": "imdb_labelled.txt",
    "Amazon": "amazon_cells_labelled.txt",
    "Yelp": "yelp_labelled.txt",
}


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts and a label each."""

    texts: tuple[str, ...]
    labels: npt.NDArray[np.intp]


def data_folder(given: str | None) -> Path:
    """The folder named by ``--data``, or ``../shared/data`` beside the repository when it is there."""
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        raise StorageError(f"no folder {str(folder)!r}: name the folder that holds sentiment_labelled/ with --data")
    return folder


def sentiment_labelled(folder: Path) -> dict[str, LabelledTexts]:
    """The three Sentiment Labelled Sentences sets (Kotzias et al. 2015): 1,000 sentences each, half positive."""
    return {name: _tab_separated(folder / "sentiment_labelled" / file) for name, file in SENTIMENT.items()}


def _tab_separated(path: Path) -> LabelledTexts:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not splitlines: a sentence may hold U+0085
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    rows = [line.rpartition("\t") for line in lines if line.strip()]
    if any(label.strip() not in ("0", "1") for _, _, label in rows):
        raise DataError(f"{path.name}: expected a sentence, a tab and 0 or 1 on each line")
    return LabelledTexts(tuple(text.strip() for text, _, _ in rows), np.array([int(label) for _, _, label in rows]))
