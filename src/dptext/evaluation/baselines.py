"""Baselines that every result stands next to, and that need no private text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dptext.features.features import PublicFeatures
from dptext.synthesis.moments import Labels

_PART_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z_]+")


def nearest_labels(features: PublicFeatures, labels: Labels, texts: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return (n,) the class whose description lies nearest to each text: epsilon 0, because all of it is public.

    Vectors are compared by cosine, after the mean of the pool is subtracted. A label without a description is described
    by the words of its name (``AddToPlaylist``: "add to playlist").
    """
    values = [" ".join(labels.values_of(code).values()) for code in range(len(labels))]
    names = [" ".join(_PART_OF_NAME.findall(value)).lower() or value for value in values]
    vectors, described = (features.vectors(given) - features.mean for given in (texts, labels.described or names))
    lengths = np.linalg.norm(described, axis=1, keepdims=True)
    nearest: npt.NDArray[np.intp] = (vectors @ (described / np.where(lengths > 0, lengths, 1.0)).T).argmax(axis=1)
    return nearest
