"""Every word mechanism by name: the one that commands and estimators take, and the one that its statement carries."""

from __future__ import annotations

from dptext.words.custext import CusText
from dptext.words.gumbel import TruncatedGumbel
from dptext.words.madlib import Madlib
from dptext.words.mahalanobis import Mahalanobis
from dptext.words.mechanism import WordMechanism
from dptext.words.ordered import OrderedList
from dptext.words.santext import SanText
from dptext.words.santext_plus import SanTextPlus
from dptext.words.tem import TEM
from dptext.words.vickrey import Vickrey

__all__ = ["MECHANISMS", "PUBLISHED_ONLY"]

MECHANISMS: dict[str, type[WordMechanism]] = {
    each.name.lower(): each for each in (TEM, Madlib, Mahalanobis, SanText, SanTextPlus, CusText, Vickrey, OrderedList)
}
"""Those with a proof."""

PUBLISHED_ONLY: dict[str, type[WordMechanism]] = {TruncatedGumbel.name.lower(): TruncatedGumbel}
"""Those of which nothing sound remains: for comparisons, with ``unsafe_as_published=True``."""
