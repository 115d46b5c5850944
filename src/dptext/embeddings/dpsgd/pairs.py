"""Pairs of words that stand near each other, drawn from one user's text, and negative words beside them.

A pair is drawn so: a place of the text at random; a distance from 1 to w (the window), those near it more often, as if
a window of 1 to w words had been drawn first and a word from all of it (weights w, w - 1, ..., 1); a side. The words at
both ends stay with a chance of their own that is small for frequent words (as in Mikolov et al. 2013); where there is
no such pair, another one is drawn, `TRIES` times at most.

**What is public.** How often a word is used is taken from its place r in the public list (r from 1), never from the
texts: frequencies p_r after Zipf and Mandelbrot (`dptext.embeddings.user_matrices.public_frequencies`), and negative
words with a chance proportional to p_r^(3/4), drawn in constant time from an alias table (Walker 1977).

**Whose randomness.** Each user's draws come from a key of their own, and from nothing else, by SplitMix64 (Steele, Lea
and Flood 2014). The promise of DP-SGD holds for every value of these keys, known to all: they need not be secret, only
independent of who else takes part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.compiled import compiled

__all__ = ["NONE", "TRIES", "PairDrawing"]

NONE = -1
"""In place of a negative word that there is not: it was the word itself, or the unknown one."""
TRIES = 16
"""How often a pair is drawn anew, at most."""

Rows = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Chances = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]

_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BITS30, _BITS27, _BITS31, _BITS32 = (np.uint64(count) for count in (30, 27, 31, 32))
_LOW = np.uint64(2**32 - 1)
_ONE = np.uint64(1)
_SURE = 2**32 - 1


class PairDrawing(NamedTuple):
    """Public numbers of the drawing.

    Attributes:
        keep: (V,) uint32, the chance that a word stays, times 2^32 - 1.
        own, alias: (V,) uint32 and int32, the table of negative words: column r stands for itself with the chance
            own[r] / 2^32, otherwise for alias[r].
        distances: within the window, each as often as it has to come.
        unknown: the row of the unknown word.
    """

    keep: Chances
    own: Chances
    alias: Rows
    distances: Rows
    unknown: int
    window: int
    negatives: int

    @classmethod
    def of(cls, kept: Floats, negative: Floats, *, unknown: int, window: int, negatives: int) -> PairDrawing:
        """From (V,) the chance that a word stays, and how often it is a negative one, in proportion."""
        steps = np.arange(1, window + 1)
        distances = np.repeat(steps, steps[::-1]).astype(np.int32)
        return cls(
            np.rint(kept * _SURE).astype(np.uint32), *_alias_table(negative), distances, unknown, window, negatives
        )

    @property
    def columns(self) -> int:
        """Numbers in a row of pairs: the word, the word beside it, the negative ones."""
        return 2 + self.negatives

    def of_users(self, rows: Rows, starts: Offsets, stops: Offsets, keys: Keys, most: int) -> tuple[Rows, Offsets]:
        """Pairs of several users, at most so many of each.

        Args:
            rows: texts, with `dptext.users.store.DOCUMENT_END`; a user's are ``starts`` to ``stops``, (n,).
            keys: (n,) uint64, independent.

        Returns:
            (pairs, 2 + negatives) int32: row of the word, V + row of the word beside it, V + rows of negative words or
            `NONE`; (n,) int64, where in it the pairs of each user end.
        """
        pairs = np.empty((len(keys) * most, self.columns), dtype=np.int32)
        ends = np.empty(len(keys), dtype=np.int64)
        found = _draw_of_users(self, rows, starts, stops, keys, most, pairs, ends)
        return pairs[:found], ends

    def of_slots(self, rows: Rows, slots: Offsets, keys: Keys) -> Rows:
        """(pairs, 2 + negatives) of single pairs. Slot s is place s // 2w of the text, and the word beside it at
        distance 1 + (s % 2w) // 2, before it or after. There is a pair in it or none, and it is thinned out as those
        of users are, by chances that depend on the two words and their distance alone.
        """
        pairs = np.empty((len(slots), self.columns), dtype=np.int32)
        found = _draw_of_slots(self, rows, slots, keys, pairs)
        return pairs[:found]


def _alias_table(weights: Floats) -> tuple[Chances, Rows]:
    """Chances (times 2^32) and aliases, so that a uniform column and one comparison draw word r by its weight."""
    left = weights * (len(weights) / weights.sum())
    own, alias = np.full(len(weights), _SURE, dtype=np.uint32), np.arange(len(weights), dtype=np.int32)
    small, large = (np.flatnonzero(which) for which in (left < 1.0, left >= 1.0))  # stacks, without an object a word
    poorer, richer = len(small), len(large)
    small = np.concatenate([small, np.empty(len(left) - poorer, dtype=np.int64)])
    while poorer and richer:
        poorer -= 1
        poor, rich = small[poorer], large[richer - 1]
        own[poor], alias[poor] = min(int(left[poor] * 2.0**32), _SURE), rich
        left[rich] -= 1.0 - left[poor]
        if left[rich] < 1.0:
            small[poorer] = rich
            poorer, richer = poorer + 1, richer - 1
    return own, alias


@compiled
def _mixed(state: np.uint64) -> np.uint64:
    state = (state ^ (state >> _BITS30)) * _MIX1
    state = (state ^ (state >> _BITS27)) * _MIX2
    return state ^ (state >> _BITS31)


@compiled
def _below(bits: np.uint64, count: int) -> int:
    """From the upper 32 bits, 0 .. count - 1."""
    return int(((bits >> _BITS32) * np.uint64(count)) >> _BITS32)


@compiled
def _negatives(drawing: PairDrawing, state: np.uint64, beside: int, row: Rows) -> np.uint64:
    """Fill a row of pairs from its third place on."""
    own, alias, unknown = drawing.own, drawing.alias, drawing.unknown
    words = len(own)
    for place in range(2, len(row)):
        state += _GOLDEN
        bits = _mixed(state)
        drawn = _below(bits, words)
        if (bits & _LOW) >= np.uint64(own[drawn]):
            drawn = int(alias[drawn])
        row[place] = NONE if drawn in (beside, unknown) else words + drawn
    return state


@compiled
def _draw_of_users(
    drawing: PairDrawing,
    rows: Rows,
    starts: Offsets,
    stops: Offsets,
    keys: Keys,
    most: int,
    pairs: Rows,
    ends: Offsets,
) -> int:
    """How many pairs there are."""
    found = 0
    keep, distances = drawing.keep, drawing.distances
    words = len(keep)
    for user in range(len(keys)):
        state, start, stop = keys[user], starts[user], stops[user]
        for _ in range(most if stop > start else 0):
            for _ in range(TRIES):
                state += _GOLDEN
                bits = _mixed(state)
                place = start + _below(bits, stop - start)
                word = rows[place]
                if word < 0:
                    continue
                if (bits & _LOW) > np.uint64(keep[word]):
                    continue
                state += _GOLDEN
                bits = _mixed(state)
                other = _beside(
                    rows, place, distances[_below(bits, len(distances))], (bits & _ONE) == _ONE, start, stop
                )
                if other < 0:
                    continue
                state += _GOLDEN
                if (_mixed(state) & _LOW) > np.uint64(keep[other]):
                    continue
                row = pairs[found]
                row[0], row[1] = word, words + other
                state = _negatives(drawing, state, other, row)
                found += 1
                break
        ends[user] = found
    return found


@compiled
def _beside(rows: Rows, place: int, distance: int, after: bool, start: int, stop: int) -> int:
    """The word at this distance in the same document; below 0 if there is none."""
    at = place
    for _ in range(distance):
        at = at + 1 if after else at - 1
        if at < start or at >= stop or rows[at] == -2:
            return -1
    return int(rows[at])


@compiled
def _draw_of_slots(drawing: PairDrawing, rows: Rows, slots: Offsets, keys: Keys, pairs: Rows) -> int:
    """How many pairs there are."""
    found = 0
    keep, window = drawing.keep, drawing.window
    words = len(keep)
    for number in range(len(slots)):
        place, slot = divmod(slots[number], 2 * window)
        word = rows[place]
        if word < 0:
            continue
        distance = 1 + slot // 2
        other = _beside(rows, place, distance, slot % 2 == 1, 0, len(rows))
        if other < 0:
            continue
        state = keys[number] + _GOLDEN
        bits = _mixed(state)
        if (bits & _LOW) > np.uint64(keep[word]) or _below(bits, window) >= window - distance + 1:
            continue
        state += _GOLDEN
        if (_mixed(state) & _LOW) > np.uint64(keep[other]):
            continue
        row = pairs[found]
        row[0], row[1] = word, words + other
        state = _negatives(drawing, state, other, row)
        found += 1
    return found
