"""Whole data sets from the Hugging Face hub, for those who are online (``pip install datasets``)."""

from __future__ import annotations

import numpy as np
from papers.data_sets import LabelledTexts

from dptext.errors import extra

ON_THE_HUB = {
    "AG News": "fancyzhx/ag_news",
    "Yelp": "fancyzhx/yelp_polarity",
    "IMDb": "stanfordnlp/imdb",
}
"""Names of the papers' sets, and those of the hub: columns ``text`` and ``label``, splits ``train`` and ``test``."""


def from_hub(name: str) -> tuple[LabelledTexts, LabelledTexts]:
    """(training, test) rows, all of them."""
    dataset = extra("datasets", "dev", "a data set of the hub").load_dataset(ON_THE_HUB[name])
    train, test = (
        LabelledTexts(tuple(dataset[split]["text"]), np.array(dataset[split]["label"], dtype=np.intp))
        for split in ("train", "test")
    )
    return train, test
