"""The data sets of the experiment: which there are, where each is read from, and whose printed numbers stand beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from papers.ag_news import ag_news
from papers.data_sets import LabelledTexts
from papers.hub import from_hub
from papers.imdb import reviews
from papers.yelp_polarity import yelp_polarity

from dptext.errors import DataError

AG_NEWS, AS_LARGE, IMDB, YELP = "AG News", "AG News 28,500", "IMDb", "Yelp"
SETS = (AS_LARGE, AG_NEWS, YELP, IMDB)
"""By name: AG News as large as the study's, the public samples of it that are at hand, Yelp polarity, and IMDb, for
which the study prints nothing."""
PRINTED_AS = {AG_NEWS: "AG News", AS_LARGE: "AG News", YELP: "Yelp"}

Texts = tuple[LabelledTexts, LabelledTexts]


class Sources:
    """Where sets are read from.

    Args:
        data: folder of ``ag_news/`` and of the IMDb reviews.
        ag_news: AG News' own ``train.csv``; None: that of the folder, if it has one.
        yelp: ``train.csv`` of Yelp polarity, with ``test.csv`` beside it.
        hub: whole sets from the Hugging Face hub in place of all of these.
    """

    def __init__(self, data: Path, *, ag_news: Path | None = None, yelp: Path | None = None, hub: bool = False) -> None:
        self.data, self.ag_news, self.yelp, self.hub = data, ag_news, yelp, hub
        if ag_news is None and (data / "ag_news" / "train.csv").exists():
            self.ag_news = data / "ag_news" / "train.csv"

    @property
    def there(self) -> tuple[str, ...]:
        """The sets that can be read."""
        if self.hub:
            return (AS_LARGE, YELP, IMDB)
        news = AG_NEWS if self.ag_news is None else AS_LARGE
        return (news, *([] if self.yelp is None else [YELP]), IMDB)

    def read(self, name: str, *, least: int) -> Texts:
        """(training, test) texts.

        Args:
            least: as many training texts must be there, of a set that is said to be as large as the study's.

        Raises:
            DataError: there are fewer.
        """
        if name == AS_LARGE:
            result = from_hub("AG News") if self.hub else ag_news(self.data, self.ag_news)
            if len(result[0].texts) < least:
                raise DataError(
                    f"expected {least:,} training texts of AG News that are not tested, got {len(result[0].texts):,}: "
                    "name the train.csv of its publishers, or leave --ag-news out for the samples"
                )
            return result
        if self.hub:
            return from_hub(name)
        if name == YELP:
            assert self.yelp is not None
            return yelp_polarity(self.yelp)
        return ag_news(self.data) if name == AG_NEWS else _imdb(self.data)

    def missing(self, names: Sequence[str]) -> list[str]:
        """Those of the names that cannot be read."""
        samples = [] if self.hub else [AG_NEWS]
        return [name for name in names if name not in (*self.there, *samples)]


def _imdb(data: Path) -> Texts:
    result = list(reviews(data))
    parts = [[entry for entry in result if entry.train is train] for train in (True, False)]
    train, test = (
        LabelledTexts(tuple(entry.text for entry in part), np.array([entry.positive for entry in part], dtype=np.intp))
        for part in parts
    )
    return train, test
