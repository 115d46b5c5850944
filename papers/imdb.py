"""The 50,000 IMDb reviews (Maas et al. 2011) from the archive of their authors, or a repacked one.

Any tar whose members are called ``aclImdb/{train,test}/{pos,neg}/*.txt`` will do. The movies of the train part are
others than those of the test part.
"""

from __future__ import annotations

import html
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dptext.errors import DataError

ARCHIVES = ("imdb_acl/aclImdb_labelled_50k.tar.xz", "aclImdb_v1.tar.gz")
_MEMBER = re.compile(r"aclImdb/(train|test)/(pos|neg)/\w+\.txt")
_BREAK = re.compile(r"<br\s*/?>")


@dataclass(frozen=True)
class Review:
    """A review; its line breaks, which the archive writes as tags, are spaces."""

    text: str
    positive: bool
    train: bool


def reviews(data: Path) -> Iterator[Review]:
    """All labelled reviews below a folder, in the order of the archive.

    Raises:
        DataError: no archive there.
    """
    archive = next((data / name for name in ARCHIVES if (data / name).exists()), None)
    if archive is None:
        raise DataError(
            f"expected one of {', '.join(ARCHIVES)} in {str(data)!r}: get aclImdb_v1.tar.gz from "
            "https://ai.stanford.edu/~amaas/data/sentiment/ and name its folder with --data"
        )
    with tarfile.open(archive) as file:
        for member in file:
            match = _MEMBER.fullmatch(member.name)
            content = file.extractfile(member) if match else None
            if match and content is not None:
                text = html.unescape(_BREAK.sub(" ", content.read().decode("utf-8")))
                yield Review(text, match[2] == "pos", match[1] == "train")
