"""Published protocols for private text representations as printed, with their true epsilon."""

from dptext.privacy.restating import amplified_by_dropout, apply_word_dropout
from dptext.representations.published.dpnr import DPNR, CappedDPText, DPText, MaskedTexts, mask_words, min_max
from dptext.representations.published.protocols import (
    OME,
    OUE,
    SUE,
    oue_chances,
    p1,
    p2,
    public_z_scores,
    q,
    sue_chances,
)

__all__ = [
    "DPNR",
    "OME",
    "OUE",
    "SUE",
    "CappedDPText",
    "DPText",
    "MaskedTexts",
    "amplified_by_dropout",
    "apply_word_dropout",
    "mask_words",
    "min_max",
    "oue_chances",
    "p1",
    "p2",
    "public_z_scores",
    "q",
    "sue_chances",
]
