"""Texts that say nothing of who wrote them, cut into made-up users: WikiText-2, text8, the IMDb reviews.

A made-up user is so much text and no person: what is measured on these corpora says what a promise to each piece of
such a size costs, and nothing about people, who repeat themselves.
"""

from __future__ import annotations

import gzip
import lzma
import zipfile
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from papers.imdb import reviews

from dptext import Document
from dptext.errors import DataError

WIKITEXT = ("wikitext2/wiki.train.tokens.variant.xz", "wikitext2/wiki.train.tokens", "wiki.train.tokens")
TEXT8 = ("text8", "text8.zip", "text8.gz")


def wikitext_users(data: Path) -> Iterator[Document]:
    """The paragraphs of WikiText-2 (Merity et al. 2017), each a user; headings and empty lines are left out.

    Raises:
        DataError: no file of `WIKITEXT` there.
    """
    path = _first(data, WIKITEXT, "WikiText-2 from the Hugging Face hub (Salesforce/wikitext)")
    read = partial(lzma.open, mode="rt") if path.suffix == ".xz" else open
    with read(path, encoding="utf-8") as lines:
        for place, line in enumerate(lines):
            text = line.strip().replace("<unk>", " ")
            if text and text[0] not in '="':
                yield Document(text, user=str(place))


def text8_users(data: Path, *, words: int = 1000) -> Iterator[Document]:
    """The first 10^8 characters of a cleaned Wikipedia (Mahoney 2011), so many words a user, in their order.

    The last user has what is left. The file is one line of lower-case words and single spaces, or a zip or gzip that
    holds it; its beginning will do.

    Args:
        data: the file, or the folder where it lies.
        words: of a user.

    Raises:
        DataError: no file of `TEXT8` there; fewer than one word a user.
    """
    if words < 1:
        raise DataError(f"expected at least 1 word a user, got {words}")
    path = data if data.is_file() else _first(data, TEXT8, "text8.zip from http://mattmahoney.net/dc/textdata.html")
    result = _words(path)
    user = 0
    while piece := list(islice(result, words)):
        yield Document(" ".join(piece), user=str(user))
        user += 1


def imdb_users(data: Path, *, reviews_each: int = 1) -> Iterator[Document]:
    """The IMDb reviews, so many a user, in the order of the archive (which names no writer).

    Raises:
        DataError: no archive there; fewer than one review a user.
    """
    if reviews_each < 1:
        raise DataError(f"expected at least 1 review a user, got {reviews_each}")
    for place, review in enumerate(reviews(data)):
        yield Document(review.text, user=str(place // reviews_each))


def _words(path: Path) -> Iterator[str]:
    """Word by word, without holding the file: a word may lie across two blocks."""
    rest = ""
    for block in _blocks(path):
        *whole, rest = (rest + block).split(" ")
        yield from filter(None, whole)
    yield from filter(None, rest.split())


def _blocks(path: Path, size: int = 1 << 20) -> Iterator[str]:
    if path.suffix != ".zip":
        with gzip.open(path, "rt", encoding="ascii") if path.suffix == ".gz" else path.open(encoding="ascii") as stream:
            yield from iter(lambda: stream.read(size), "")
        return
    with zipfile.ZipFile(path) as archive, archive.open("text8") as stream:
        yield from (block.decode("ascii") for block in iter(lambda: stream.read(size), b""))


def _first(data: Path, names: tuple[str, ...], source: str) -> Path:
    result = next((data / name for name in names if (data / name).exists()), None)
    if result is None:
        raise DataError(f"expected one of {', '.join(names)} in {str(data)!r}: get {source} and name its folder")
    return result
