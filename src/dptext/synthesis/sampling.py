"""Which candidates make the corpus: a label for each, and a draw without replacement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dptext.checks import number
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

__all__ = ["VARIETY", "choose"]

VARIETY = 0.5
"""Half way between the most typical candidates and all that are likely."""

Floats = npt.NDArray[np.float64]


def choose(
    scores: Floats,
    nearness: Floats,
    n: int,
    *,
    shares: Floats,
    variety: float = VARIETY,
    names: Sequence[str],  # noqa: ARG001
    bits: RandomBits,
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Choose n of the candidates, each once: their places and classes.

    Args:
        scores: (m, K) log-ratios.
        nearness: (m,) of all classes together.
        n: how many.
        shares: (K,) of the classes.
        variety: 0 takes the largest margins; 1 draws from all candidates of a class.
        names: of the classes, for messages.
        bits: of the draw.

    Raises:
        ParameterError: there are fewer candidates.
    """
    variety = number("variety", variety, least=0, most=1)
    if n > len(scores):
        raise ParameterError(
            f"n must be at most the number of candidates, {len(scores):,}, got {n:,}: ask for fewer texts, or give a "
            "larger pool"
        )
    classes = scores.shape[1]
    prior = np.log(np.maximum(shares, 1e-12))
    totals = scores + prior
    best = totals.argmax(axis=1)
    margins = nearness if classes == 1 else _margins(totals, best)
    wanted = _whole_shares(shares, n)
    free = np.ones(len(scores), dtype=bool)
    chosen: list[npt.NDArray[np.intp]] = []
    for label in np.argsort(-wanted, kind="stable").tolist():
        own = np.flatnonzero(free & (best == label))
        own = own[np.argsort(-margins[own], kind="stable")]
        if len(own) < wanted[label]:  # the next best of other classes
            others = np.flatnonzero(free & (best != label))
            gap = totals[others, label] - totals[others].max(axis=1)
            own = np.concatenate([own, others[np.argsort(-gap, kind="stable")][: wanted[label] - len(own)]])
        among = int(wanted[label] + variety * (len(own) - wanted[label]))
        keys = bits.integers(among)
        taken = own[:among][np.argsort(keys, kind="stable")[: wanted[label]]]
        free[taken] = False
        chosen.append(taken)
        best[taken] = label
    places = np.concatenate(chosen)
    order = np.argsort(bits.integers(len(places)), kind="stable")
    return places[order], best[places[order]]


def _margins(totals: Floats, best: npt.NDArray[np.intp]) -> Floats:
    rows = np.arange(len(totals))
    top = totals[rows, best]
    others = totals.copy()
    others[rows, best] = -np.inf
    margins: Floats = top - others.max(axis=1)
    return margins


def _whole_shares(shares: Floats, n: int) -> npt.NDArray[np.intp]:
    """Whole numbers that add up to n, by the largest remainders."""
    exact = shares / shares.sum() * n
    found: npt.NDArray[np.intp] = np.floor(exact).astype(np.intp)
    left = n - int(found.sum())
    found[np.argsort(-(exact - found), kind="stable")[:left]] += 1
    return found
