"""Which candidates become the corpus, and with which label: each once, so many of each class as its share says.

Derivation: docs/mechanisms/synthesis.md#synthesis-sampling
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.checks import number, whole
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

__all__ = ["VARIETY", "choose", "near", "quotas"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

VARIETY = 0.5
"""Of the dial, unless the caller sets another (papers/synthesis/README.md has the measurements)."""

_ROOM = 1.5  # times n texts are near at least
_SPARE = 1.2  # times as many candidates as it needs are enough for a class
_STEPS = 8
_MOST_FITTED = 20_000  # texts that the offsets are fitted on
_TURNS = 200
_LEAST_SHARE = 1e-3


def choose(
    scores: npt.ArrayLike,
    nearness: npt.ArrayLike,
    n: int,
    *,
    shares: npt.ArrayLike,
    bits: RandomBits,
    variety: float = VARIETY,
) -> tuple[Indices, Indices]:
    """Rows of n different candidates and their classes, in random order."""
    table, close, asked = (np.asarray(each, dtype=np.float64) for each in (scores, nearness, shares))
    n, variety = whole("n", n, least=0), number("variety", variety, least=0, most=1)
    if table.ndim != 2 or close.shape != table.shape[:1] or asked.shape != table.shape[1:] or not asked.size:
        raise ParameterError(
            f"expected scores of candidates by classes, a nearness each and a share for each class, got the shapes "
            f"{table.shape}, {close.shape} and {asked.shape}"
        )
    if not (np.isfinite(table).all() and np.isfinite(close).all()):
        raise ParameterError("scores and nearness must be finite numbers")
    if not np.isfinite(asked).all() or asked.min() < 0 or asked.sum() <= 0:
        raise ParameterError("shares must be finite numbers of at least 0, and not all 0")
    if n > len(table):
        raise ParameterError(
            f"n must be at most the number of candidates, {len(table):,}, got {n:,}: ask for fewer texts, or give a "
            "larger pool"
        )
    wanted = quotas(asked, n)
    if n == 0:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    closest = near(close)
    eligible = np.zeros(len(table), dtype=bool)
    eligible[closest if len(closest) >= _ROOM * n else slice(None)] = True
    closest = near(close, least=_ROOM * n)
    table = table + _offsets(table[closest], asked / asked.sum(), wanted)
    classes = table.argmax(axis=1)
    margins = _margins(table)
    count = np.bincount(classes[closest], minlength=len(asked)).tolist()
    like_people = np.minimum(close, 0.0)
    picked = []
    for code, size in enumerate(wanted.tolist()):
        candidates = np.flatnonzero((classes == code) & eligible)
        rank = _ranks(margins[candidates]) * _ranks(like_people[candidates])
        order = candidates[np.argsort(-rank, kind="stable")]
        window = min(len(order), size + int(np.ceil(variety * max(0, count[code] - size))))
        picked.append(order[_shuffled(window, bits)[:size]])
    _make_up(picked, wanted, table)
    order = _shuffled(n, bits)
    return np.concatenate(picked)[order], np.repeat(np.arange(len(wanted)), wanted)[order]


def quotas(shares: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    """(K,) whole numbers with sum n in proportion to shares: the largest remainders get one more."""
    given = np.asarray(shares, dtype=np.float64)
    exact = given / given.sum() * n
    found: npt.NDArray[np.int64] = np.floor(exact).astype(np.int64)
    left = n - int(found.sum())
    found[np.lexsort((-given, found - exact))[:left]] += 1
    return found


def near(nearness: Floats, *, least: float = 1.0) -> Indices:
    order = np.argsort(-nearness, kind="stable")
    means = np.cumsum(nearness[order]) / np.arange(1, len(order) + 1)
    enough = int((means >= -1e-12).sum())  # means of ever less near texts only fall
    nearest: Indices = order[: min(len(order), max(enough, int(np.ceil(least))))]
    return nearest


def _offsets(table: Floats, shares: Floats, wanted: npt.NDArray[np.int64]) -> Floats:
    """(K,) to be added to scores so that each class has candidates enough, as small as that allows."""
    if table.shape[1] == 1:
        return np.zeros(1)
    enough = np.minimum(_SPARE * wanted, shares * len(table))
    goal: Floats | None = None
    for step in range(_STEPS + 1):
        offsets = np.zeros(len(shares)) if goal is None else goal * (step / _STEPS)
        counts = np.bincount((table + offsets).argmax(axis=1), minlength=len(shares))
        if (counts >= enough).all():
            break
        if goal is None:
            goal = _balancing(table, shares)
    return offsets


def _balancing(table: Floats, shares: Floats) -> Floats:
    """(K,) at which the mean probabilities are the shares."""
    rows = table[:: -(-len(table) // _MOST_FITTED)]
    rows = rows - rows.max(axis=1, keepdims=True)
    goal = np.maximum(shares, _LEAST_SHARE)
    goal = goal / goal.sum()
    offsets = np.zeros(len(goal))
    for _ in range(_TURNS):
        moved = rows + offsets
        odds = np.exp(moved - moved.max(axis=1, keepdims=True))
        means = (odds / odds.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(means - goal).max() < 1e-4:
            break
        offsets += np.log(goal) - np.log(np.maximum(means, 1e-12))
        offsets -= offsets.mean()
    return offsets


def _margins(table: Floats) -> Floats:
    """(N,) how far the largest score is above the second; 0 where there is one class."""
    if table.shape[1] == 1:
        return np.zeros(len(table))
    two = np.partition(table, -2, axis=1)[:, -2:]
    margins: Floats = two[:, 1] - two[:, 0]
    return margins


def _ranks(values: Floats) -> Floats:
    """Each value's rank from above 0 (the least) to 1 (the greatest); equal values share theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = np.cumsum(counts)[which] / max(len(values), 1)
    return ranks


def _shuffled(count: int, bits: RandomBits) -> Indices:
    order: Indices = np.argsort(bits.integers(count), kind="stable")
    return order


def _make_up(picked: list[Indices], wanted: npt.NDArray[np.int64], table: Floats) -> None:
    """Fill classes that lack texts with those that nobody took."""
    taken = np.zeros(len(table), dtype=bool)
    taken[np.concatenate(picked)] = True
    others = table - table.max(axis=1, keepdims=True)
    for code, size in enumerate(wanted.tolist()):
        lacking = size - len(picked[code])
        if lacking > 0:
            free = np.flatnonzero(~taken)
            more = free[np.argsort(-others[free, code], kind="stable")[:lacking]]
            taken[more] = True
            picked[code] = np.concatenate([picked[code], more])
