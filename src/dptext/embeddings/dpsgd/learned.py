"""What of trained context vectors is signal: post-processing, for nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.embeddings.signal import bands, filtered

__all__ = ["learned"]

Floats = npt.NDArray[np.float64]


def learned(rows: Floats, sigma: float) -> Floats:
    """(n, d) the best guess of what context vectors that began at 0 have learned.

    The direction that all of them share says how frequent a word is here, which is no meaning, and goes. What is left
    is filtered by bands of words of similar public frequency (`dptext.embeddings.signal.filtered`).

    Args:
        rows: (n, d) by public rank.
        sigma: of the noise in them.
    """
    common = rows.sum(axis=0)
    length = float(np.linalg.norm(common))
    rest = rows - np.outer(rows @ common, common) / length**2 if length > 0 else rows.copy()
    for band in bands(len(rest)):
        rest[band] = filtered(rest[band], sigma)[0]
    return rest
