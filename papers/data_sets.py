"""The papers' data sets, read from a folder that the caller names. Nothing is downloaded.

The folder is laid out as the data's publishers lay it out: ``sentiment_labelled/imdb_labelled.txt`` and so on
(https://archive.ics.uci.edu/dataset/331/sentiment+labelled+sentences), ``snips/{train,valid,test}/{seq.in,label}`` and
``mrpc/msr_paraphrase_{train,test}.txt``.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
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


@dataclass(frozen=True, eq=False)
class Parts:
    """A set with a training part and a test part of its own. Texts of two sentences are pairs."""

    train: LabelledTexts
    test: LabelledTexts
    others: tuple[LabelledTexts, LabelledTexts] | None = None  # the second sentences of train and test


def data_folder(given: str | None) -> Path:
    """The folder named by ``--data``, or ``../shared/data`` beside the repository when it is there."""
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        raise StorageError(f"no folder {str(folder)!r}: name the folder that holds sentiment_labelled/ with --data")
    return folder


def sentiment_labelled(folder: Path) -> dict[str, LabelledTexts]:
    """The three Sentiment Labelled Sentences sets (Kotzias et al. 2015): 1,000 sentences each, half positive."""
    return {name: _tab_separated(folder / "sentiment_labelled" / file) for name, file in SENTIMENT.items()}


def snips(folder: Path) -> Parts:
    """Seven intents of SNIPS (Coucke et al. 2018): 13,784 questions to train on (train and valid), 700 to test on."""
    parts = {}
    for name in ("train", "valid", "test"):
        texts, labels = (_lines(folder / "snips" / name / entry) for entry in ("seq.in", "label"))
        parts[name] = [text for text in texts if text.strip()], [label for label in labels if label.strip()]
        if len(parts[name][0]) != len(parts[name][1]):
            raise DataError(f"snips/{name}: expected as many lines in seq.in as in label")
    intents = sorted({label for _, labels in parts.values() for label in labels})
    train, test = [
        LabelledTexts(
            tuple(text for name in names for text in parts[name][0]),
            np.array([intents.index(label) for name in names for label in parts[name][1]]),
        )
        for names in (("train", "valid"), ("test",))
    ]
    return Parts(train, test)


def mrpc(folder: Path) -> Parts:
    """Microsoft's paraphrases (Dolan and Brockett 2005): 4,076 pairs of sentences to train on, 1,725 to test on."""
    result = []
    for name in ("train", "test"):
        rows = [line.rstrip("\r").split("\t") for line in _lines(folder / "mrpc" / f"msr_paraphrase_{name}.txt")]
        rows = [row for row in rows if row[0] in ("0", "1")]  # neither a header nor an empty end
        if any(len(row) != 5 for row in rows):
            raise DataError(f"msr_paraphrase_{name}.txt: expected five columns, tab between, on each line")
        labels = np.array([int(row[0]) for row in rows])
        result.append([LabelledTexts(tuple(row[place] for row in rows), labels) for place in (3, 4)])
    (train, train_others), (test, test_others) = result
    return Parts(train, test, (train_others, test_others))


def yelp(folder: Path, parts: Sequence[str] = ("test", "dev")) -> LabelledTexts:
    """Sentences of restaurant reviews (Li, Jia, He and Liang 2018), each once, negative (0) or positive (1)."""
    result: dict[str, int] = {}
    for part in parts:
        for label in (0, 1):
            path = folder / "yelp_sentences" / f"style_sentiment.{part}.{label}.gz"
            try:
                lines = gzip.decompress(path.read_bytes()).decode("utf-8").split("\n")
            except OSError as error:
                raise StorageError.of("read", path, error) from None
            for line in lines:
                if text := " ".join(line.split()):
                    result.setdefault(text, label)
    return LabelledTexts(tuple(result), np.array(list(result.values())))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")  # not splitlines: a sentence may hold U+0085
    except OSError as error:
        raise StorageError.of("read", path, error) from None


def _tab_separated(path: Path) -> LabelledTexts:
    lines = _lines(path)
    rows = [line.rpartition("\t") for line in lines if line.strip()]
    if any(label.strip() not in ("0", "1") for _, _, label in rows):
        raise DataError(f"{path.name}: expected a sentence, a tab and 0 or 1 on each line")
    return LabelledTexts(tuple(text.strip() for text, _, _ in rows), np.array([int(label) for _, _, label in rows]))
