"""What of trained context vectors is signal: post-processing, for nothing.

**The constants were chosen on IMDb reviews** (in 2,500 made-up users, with noise as for 2,500 to 25,000 users at
epsilon 8) by MEN, WordSim-353, MTurk-771 and SimLex-999: `SHARE` here, the length of public vectors and how far tables
go (`dptext.embeddings.skipgram_plan`, `dptext.embeddings.skipgram`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.embeddings.signal import bands

__all__ = ["SHARE", "learned"]

Floats = npt.NDArray[np.float64]

SHARE = 2 / 3
"""Of what was learned comes to a public vector of length 1."""


def learned(rows: Floats, sigma: float) -> Floats:
    """(n, d) the best guess of what context vectors that began at 0 have learned.

    The direction that all of them share says how frequent a word is here, which is no meaning, and goes. What is left
    is shortened to the share of its variance that is no noise: by one factor for all words of similar public
    frequency.

    Args:
        rows: (n, d) by public rank.
        sigma: of the noise in them.
    """
    common = rows.sum(axis=0)
    length = float(np.linalg.norm(common))
    rest = rows - np.outer(rows @ common, common) / length**2 if length > 0 else rows.copy()
    for band in bands(len(rest)):
        variance = float((rest[band] ** 2).mean())
        rest[band] *= max(variance - sigma**2, 0.0) / variance if variance > 0 else 0.0
    return rest
