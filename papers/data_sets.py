"""The papers' data sets, read from a folder with the layout of their publishers. Nothing is downloaded.

The folder holds, for the experiments that need them,

* ``sentiment_labelled/imdb_labelled.txt`` and so on: Sentiment Labelled Sentences (Kotzias et al. 2015),
* ``snips/{train,valid,test}/{seq.in,label}`` (Coucke et al. 2018),
* ``mrpc/msr_paraphrase_{train,test}.txt`` (Dolan and Brockett 2005),
* ``yelp_sentences/style_sentiment.{dev,test}.{0,1}.gz`` (Li, Jia, He and Liang 2018),
* ``ag_news/test.csv`` and ``ag_news/train.csv`` (Zhang, Zhao and LeCun 2015). Instead of the latter, two public samples
  of it: ``alps_train_subset_10k_desc_only.tsv.gz`` (descriptions without their titles) and
  ``chimera_hf_train_sample_{train,validation}.parquet``,
* one of `IMDB_ARCHIVES`: the 50,000 IMDb reviews (Maas et al. 2011), or any tar with members
  ``aclImdb/{train,test}/{pos,neg}/*.txt``,
* one of `WIKITEXT` and of `TEXT8`.

`papers.blogs` reads the Blog Authorship Corpus, and `own_texts` any labelled file.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import heapq
import html
import lzma
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from papers.blogs import Names, Posts

from dptext import Document
from dptext.errors import DataError, StorageError, extra
from dptext.evaluation.utility import words_of
from dptext.io.documents import canonical_label, read_documents
from dptext.privacy.randomness import RandomBits
from dptext.text.tokens import Kind, fold, kind_of, pieces

SENTIMENT = {"IMDb": "imdb_labelled.txt", "Amazon": "amazon_cells_labelled.txt", "Yelp": "yelp_labelled.txt"}
AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")
IMDB_ARCHIVES = ("imdb_acl/aclImdb_labelled_50k.tar.xz", "aclImdb_v1.tar.gz")
WIKITEXT = ("wikitext2/wiki.train.tokens.variant.xz", "wikitext2/wiki.train.tokens", "wiki.train.tokens")
TEXT8 = ("text8", "text8.zip")
HUB_NAMES = {"AG News": "fancyzhx/ag_news", "Yelp": "fancyzhx/yelp_polarity", "IMDb": "stanfordnlp/imdb"}
_REVIEW = re.compile(r"aclImdb/(train|test)/(pos|neg)/\w+\.txt")
_BREAK = re.compile(r"<br\s*/?>")


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    texts: tuple[str, ...]
    labels: npt.NDArray[np.intp]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, int]]) -> LabelledTexts:
        texts, labels = zip(*rows, strict=True)
        return cls(tuple(texts), np.array(labels, dtype=np.intp))

    def take(self, rows: Iterable[int]) -> LabelledTexts:
        places = list(rows)
        return LabelledTexts(tuple(self.texts[row] for row in places), self.labels[places])


TrainAndTest = tuple[LabelledTexts, LabelledTexts]


def tokens_of(text: str) -> list[str]:
    """Return the folded words, numbers and addresses of a text, in order."""
    return [fold(token) for token in pieces(text) if kind_of(token) not in (Kind.SPACE, Kind.PUNCTUATION)]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths: (total,) concatenated numbers, and (n + 1,) start of each row and end of the last.

    >>> len(Ragged.of([[3, 1], [], [2]]))
    3
    """

    values: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Iterable[npt.ArrayLike]) -> Ragged:
        arrays = [np.asarray(row, dtype=np.int64) for row in rows]
        values = np.concatenate([np.empty(0, np.int64), *arrays])
        return cls(values, np.concatenate([[0], np.cumsum([row.size for row in arrays], dtype=np.int64)]))

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        lengths: npt.NDArray[np.int64] = np.diff(self.starts)
        return lengths

    def take(self, rows: npt.NDArray[np.int64]) -> Ragged:
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths)
        # place of each number in its row, moved to where the row starts here
        places = np.arange(lengths.sum()) + np.repeat(self.starts[:-1][rows] - (ends - lengths), lengths)
        return Ragged(self.values[places], np.concatenate([[0], ends]))


@dataclass(frozen=True, eq=False)
class Parts:
    """A set with its own training and test part; ``others`` are the second sentences of pairs, of both parts."""

    train: LabelledTexts
    test: LabelledTexts
    others: TrainAndTest | None = None


class Review(NamedTuple):
    """A review; its line breaks, tags in the archive, are spaces."""

    text: str
    label: int  # 1: positive
    train: bool


def sentiment_labelled(folder: Path) -> dict[str, LabelledTexts]:
    """Return the three sets of Sentiment Labelled Sentences: 1,000 sentences each, half of them positive."""
    sets = {}
    for name, file in SENTIMENT.items():
        rows = [line.rpartition("\t") for line in _lines(folder / "sentiment_labelled" / file) if line.strip()]
        if any(label.strip() not in ("0", "1") for _, _, label in rows):
            raise DataError(f"{file}: expected a sentence, a tab and 0 or 1 on each line")
        sets[name] = LabelledTexts.of((text.strip(), int(label)) for text, _, label in rows)
    return sets


def snips(folder: Path) -> Parts:
    """Return seven intents of SNIPS: 13,784 training questions (train and valid) and 700 test questions."""
    parts = {}
    for name in ("train", "valid", "test"):
        texts, labels = (_lines(folder / "snips" / name / file) for file in ("seq.in", "label"))
        parts[name] = [text for text in texts if text.strip()], [label for label in labels if label.strip()]
        if len(parts[name][0]) != len(parts[name][1]):
            raise DataError(f"snips/{name}: expected as many lines in seq.in as in label")
    intents = sorted({label for _, labels in parts.values() for label in labels})
    train, test = (
        LabelledTexts.of(
            (text, intents.index(label)) for name in names for text, label in zip(*parts[name], strict=True)
        )
        for names in (("train", "valid"), ("test",))
    )
    return Parts(train, test)


def mrpc(folder: Path) -> Parts:
    """Return Microsoft's paraphrases: 4,076 training pairs of sentences and 1,725 test pairs."""
    sides: list[list[LabelledTexts]] = [[], []]
    for name in ("train", "test"):
        rows = [line.rstrip("\r").split("\t") for line in _lines(folder / "mrpc" / f"msr_paraphrase_{name}.txt")]
        rows = [row for row in rows if row[0] in ("0", "1")]  # neither a header nor an empty end
        if any(len(row) != 5 for row in rows):
            raise DataError(f"msr_paraphrase_{name}.txt: expected five columns separated by tabs on each line")
        for side, column in zip(sides, (3, 4), strict=True):
            side.append(LabelledTexts.of((row[column], int(row[0])) for row in rows))
    return Parts(*sides[0], (sides[1][0], sides[1][1]))


def yelp(folder: Path, parts: Sequence[str] = ("test", "dev")) -> LabelledTexts:
    """Return distinct sentences of restaurant reviews, negative (0) or positive (1)."""
    result: dict[str, int] = {}
    for part in parts:
        for label in (0, 1):
            for line in _lines(folder / "yelp_sentences" / f"style_sentiment.{part}.{label}.gz"):
                if text := " ".join(line.split()):
                    result.setdefault(text, label)
    return LabelledTexts.of(result.items())


def _lines(path: Path) -> list[str]:
    text = _text(path).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")  # not splitlines: a sentence may hold U+0085


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")


# -- the user's own file -----------------------------------------------------------------------------------------------

FEWEST_ROWS, FEWEST_AUTHORS = 40, 6  # of a file; of a class or group, which three folds and their halves need
MAX_GROUPS = 10  # numbers with more values become their thirds
_LONGEST = 200  # characters of a class, a group or an author
_SEED = 37


def own_texts(options: argparse.Namespace, *, rows: int, classes: bool = True) -> Posts:
    """Return the complete rows of the user's file, or ``rows`` of them, drawn with a fixed seed.

    Rows of classes and groups with fewer than `FEWEST_AUTHORS` authors are left out. Without ``classes`` the label is
    optional, and no class is left out. An author has the attributes of the first text.
    """
    label = options.label or ("label" if classes else None)
    names = [name for name in (options.user, label, *options.attribute) if name is not None]
    documents = read_documents(options.data, text=options.text, user=options.user, label=label, keep=options.attribute)

    def row_of(place: int, document: Document) -> tuple[str | None, ...]:
        values = [document.user if options.user else str(place), *([] if label is None else [document.label])]
        values += (document.attributes or {}).values()
        return (document.text if (document.text or "").strip() else None, *map(canonical_label, values))

    complete = (row for place, document in enumerate(documents) if None not in (row := row_of(place, document)))
    bits, places = RandomBits(_SEED), count()
    keys = (key for block in iter(lambda: bits.integers(4096).tolist(), None) for key in block)
    chosen = heapq.nsmallest(rows, zip(complete, keys, places, strict=False), key=itemgetter(1, 2))
    complete_rows = next(places)
    if complete_rows < documents.count:
        _tell(
            options,
            f"{documents.count - complete_rows:,} rows without a text or a value of {', '.join(names)} are left out",
        )
    if len(chosen) < complete_rows:
        _tell(options, f"{len(chosen):,} of {complete_rows:,} rows are used, drawn at random (seed {_SEED})")
    _check_rows(options, len(chosen))
    texts, *columns = zip(*(row for row, _, _ in sorted(chosen, key=itemgetter(2))), strict=True)
    for name, values in zip(names, columns[not options.user :], strict=True):
        if max(map(len, values)) > _LONGEST:
            raise DataError(f"the column {name!r} has values of more than {_LONGEST} characters: name another column")
    people = np.unique(columns.pop(0), return_inverse=True)[1].astype(np.int64)
    labels = np.array(columns.pop(0)) if label else np.full(len(texts), "")
    first = np.unique(people, return_index=True)[1][people]
    attributes = {
        name: _groups(np.array(values)[first]) for name, values in zip(options.attribute, columns, strict=True)
    }
    posts = Posts(options.own, texts, people, labels, attributes)
    return _without_rare(options, posts) if classes else posts


def _groups(values: Names) -> Names:
    """Return the values, or the thirds of numbers with more than `MAX_GROUPS` values."""
    if np.unique(values).size <= MAX_GROUPS:
        return values
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        return values
    low, high = np.quantile(numbers, [1 / 3, 2 / 3])
    names = np.array([f"1: below {low:g}", f"2: below {high:g}", "3: above"])
    return names[(numbers >= low).astype(int) + (numbers >= high)]


def _without_rare(options: argparse.Namespace, posts: Posts) -> Posts:
    rows, unit = len(posts.texts), "authors" if options.user else "texts"
    is_common = np.zeros(rows, dtype=bool)
    while not is_common.all():
        is_common = np.ones(len(posts.texts), dtype=bool)
        for name, values in {options.label or "label": posts.labels, **posts.attributes}.items():
            codes = np.unique(values, return_inverse=True)[1]
            authors = np.bincount(np.unique(np.stack([codes, posts.people]), axis=1)[0])
            if (common := int((authors >= FEWEST_AUTHORS).sum())) < 2:
                raise DataError(
                    f"{options.data.name}: the column {name!r} needs two values of at least {FEWEST_AUTHORS} {unit} "
                    f"each, got {common}: name another column, or add rows"
                )
            is_common &= authors[codes] >= FEWEST_AUTHORS
        posts = posts.take(np.flatnonzero(is_common))
    if len(posts.texts) < rows:
        _tell(
            options,
            f"{rows - len(posts.texts):,} rows of rare values (fewer than {FEWEST_AUTHORS} {unit}) are left out",
        )
    _check_rows(options, len(posts.texts))
    return posts


def _check_rows(options: argparse.Namespace, rows: int) -> None:
    if rows < FEWEST_ROWS:
        raise DataError(f"{options.data.name}: {FEWEST_ROWS} complete rows are needed, got {rows}: add rows")


def _tell(options: argparse.Namespace, text: str) -> None:
    print(f"For you alone: {options.data.name}: {text}.", file=sys.stderr)


def from_hub(name: str) -> TrainAndTest:
    """Return the whole of a set of `HUB_NAMES` from the Hugging Face hub (``pip install datasets``)."""
    dataset = extra("datasets", "dev", "a data set of the hub").load_dataset(HUB_NAMES[name])
    train, test = (
        LabelledTexts(tuple(dataset[split]["text"]), np.array(dataset[split]["label"], dtype=np.intp))
        for split in ("train", "test")
    )
    return train, test


def yelp_polarity(train: Path) -> TrainAndTest:
    """Return Yelp's reviews with a polarity (Zhang, Zhao and LeCun 2015) from ``train.csv`` and ``test.csv`` beside it.

    Each row has a class (1: negative, 2: positive) and a review, without a header.
    """
    parts = []
    for path in (train, train.with_name("test.csv")):
        rows = list(csv.reader(_text(path).splitlines(keepends=True)))
        if not rows or any(len(row) != 2 or row[0] not in ("1", "2") for row in rows):
            raise DataError(f"{path.name}: expected a class, 1 or 2, and a review in each row, and no header")
        parts.append(LabelledTexts.of((text.replace("\\n", " "), int(label) - 1) for label, text in rows))
    return parts[0], parts[1]


def ag_news(data: Path, train: Path | None = None) -> TrainAndTest:
    """Return the training and test rows of AG's news topics, without training rows that are also test rows.

    ``train`` is a file with class, title and description; None: the files in ``data/ag_news``.
    """
    folder = data / "ag_news"
    test = list(_ag_news_rows(folder / "test.csv"))
    tested = [f"{title} {description}" for _, title, description in test]
    if train is None and (folder / "train.csv").exists():
        train = folder / "train.csv"
    if train is not None:
        rows = [(f"{title} {text}", label) for label, title, text in _ag_news_rows(train)]
    else:
        rows = list(_ag_news_samples(folder))
    kept = without_overlap(rows, [*tested, *(description for _, _, description in test)])
    return LabelledTexts.of(kept), LabelledTexts.of(zip(tested, (label for label, _, _ in test), strict=True))


def without_overlap(train: Iterable[tuple[str, int]], tested: Iterable[str]) -> list[tuple[str, int]]:
    """Return the rows whose sequence of words is not that in any test text."""
    known = {tuple(words_of(text)) for text in tested}
    return [row for row in train if tuple(words_of(row[0])) not in known]


def _ag_news_rows(path: Path) -> Iterator[tuple[int, str, str]]:
    for row in csv.reader(_text(path).splitlines(keepends=True)):
        if len(row) != 3 or row[0] not in ("1", "2", "3", "4"):
            raise DataError(f"{path.name}: expected a class from 1 to 4, a title and a description in each row")
        yield int(row[0]) - 1, row[1], row[2]


def _ag_news_samples(folder: Path) -> Iterator[tuple[str, int]]:
    import pyarrow.parquet as pq

    for line in _text(folder / "alps_train_subset_10k_desc_only.tsv.gz").split("\n"):
        if line.strip():
            text, _, name = line.rpartition("\t")
            yield text, AG_NEWS_CLASSES.index(name.strip())
    for part in ("train", "validation"):
        table = pq.read_table(folder / f"chimera_hf_train_sample_{part}.parquet", columns=["text", "label"])
        yield from zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True)


def imdb_reviews(data: Path) -> Iterator[Review]:
    """Yield all labelled reviews in the order of the archive; train and test part are about different films."""
    archive = _first(data, IMDB_ARCHIVES, "aclImdb_v1.tar.gz from https://ai.stanford.edu/~amaas/data/sentiment/")
    with tarfile.open(archive) as file:
        for member in file:
            match = _REVIEW.fullmatch(member.name)
            content = file.extractfile(member) if match else None
            if match and content is not None:
                text = html.unescape(_BREAK.sub(" ", content.read().decode("utf-8")))
                yield Review(text, int(match[2] == "pos"), match[1] == "train")


def imdb_users(data: Path) -> Iterator[Document]:
    """Yield the IMDb reviews as documents of made-up users, one review per user (the archive names no authors)."""
    for place, review in enumerate(imdb_reviews(data)):
        yield Document(review.text, user=str(place))


def wikitext_users(data: Path) -> Iterator[Document]:
    """Yield the paragraphs of WikiText-2 (Merity et al. 2017) without headings, as documents of made-up users."""
    path = _first(data, WIKITEXT, "WikiText-2 from the Hugging Face hub (Salesforce/wikitext)")
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as lines:
        for place, line in enumerate(lines):
            text = line.strip().replace("<unk>", " ")
            if text and text[0] not in '="':
                yield Document(text, user=str(place))


def text8_users(data: Path) -> Iterator[Document]:
    """Yield text8, the first 10^8 characters of a cleaned Wikipedia (Mahoney 2011), with 1,000 words per made-up user.

    ``data`` is the file, its zip, a beginning of it, or the folder that holds it.
    """
    path = data if data.is_file() else _first(data, TEXT8, "text8.zip from http://mattmahoney.net/dc/textdata.html")
    content = zipfile.ZipFile(path).read("text8") if path.suffix == ".zip" else path.read_bytes()
    words = re.finditer(r"\S+", content.decode("ascii"))
    for user in count():
        piece = [match.group() for match in islice(words, 1000)]
        if not piece:
            return
        yield Document(" ".join(piece), user=str(user))


def _first(data: Path, names: tuple[str, ...], source: str) -> Path:
    result = next((data / name for name in names if (data / name).exists()), None)
    if result is None:
        raise DataError(f"expected one of {', '.join(names)} in {str(data)!r}: get {source} and name its folder")
    return result
