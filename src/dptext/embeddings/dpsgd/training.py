"""The steps of a training, one after the other: sample, draw pairs, clip, add up, add noise, descend.

**Guarantee** of the tables after all steps: that of `dptext.embeddings.dpsgd.participation.Participation`. *Proof.*
Given the tables before a step, the step is a function of  sum of cells + N(0, sigma^2 I),  sigma = z `CELLS`, and of
public numbers: each unit takes part by a coin of its own (`sampled_users`, `sampled_slots`), its cells follow from its
own texts, a key of its own and the tables, and have length `CELLS` at most (`dptext.embeddings.dpsgd.clipping`,
exact); the noise is on all rows, and exact (`dptext.embeddings.dpsgd.noise`); the sum is multiplied by a public rate,
in which no count of units occurs. So each step is a Gaussian mechanism on a Poisson sample, of noise multiplier z, and
they compose. |

**When the noise comes.** Each step takes  tables -= rate_t * (sum + N(0, sigma^2 I))  with noise on **all** rows,
touched or not.

**Dense**: just that, the noise exact (`dptext.embeddings.dpsgd.noise`). Noise is made and taken row by row and never
kept; what takes memory is the sum of all units (`dptext.embeddings.dpsgd.sums`), which read the tables as they were.

**Lazy**: a step adds what the gradients say to the rows that they touch, and no noise. A row that is read in step t,
and was read in step s last, first gets the noise of steps s to t - 1, of variance sigma^2 (rate_s^2 + ... +
rate_(t-1)^2): one draw instead of many, and none for rows that nobody reads. *The law of all that is read, and of the
tables when they are `settled`, is that of the dense form*: in between nobody looks at the row, the steps' normals are
independent of everything else, and their sum is normal with the sum of their variances. That holds because (1) what a
step reads is caught up before it is read; (2) the step is plain gradient descent, in which a row's noise does nothing
but add up (no momentum, no decay); (3) nothing is released or written before all rows are settled; (4) each draw has
random bits of its own. | Here noise comes to numbers that were rounded to single precision, at times that hang on the
texts, which the law of real numbers does not know: the statement says so (`dptext.embeddings.dpsgd.recipe.LAZY`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.clipping import Scratch, add_clipped, follow_unclipped
from dptext.embeddings.dpsgd.noise import CellNoise, drift, move
from dptext.embeddings.dpsgd.pairs import PairDrawing
from dptext.embeddings.dpsgd.participation import Participation, sampled_slots, sampled_users
from dptext.embeddings.dpsgd.recipe import Recipe
from dptext.embeddings.dpsgd.sums import Sums
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.users.store import UserStore

__all__ = ["Tables", "Training"]

Rows = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Pairs = tuple[Rows, npt.NDArray[np.int64]]
"""(pairs, columns) rows of tables; (units,) where the pairs of each end."""

_TOGETHER = 1 << 14  # pairs that are drawn at once
_KEPT = 4  # of these parts
_WORD2VEC = 0.025  # its first learning rate, for a pair
_COINS, _KEYS, _LATE, _NOISE, _SETTLED = range(5)  # each use of randomness in a step has a stream of its own
_USES = 5


class Tables:
    """The state of a training. **Private, but for what `settled` rows hold, once noise is on them.**

    Args:
        matrix: (2 V, d) float32, word vectors above context vectors; it is changed in place.
        rates: (T,) what a unit of the sum moves in each step.
        noise: None: none, for comparison. ``lazy``: when it comes, see the module.
        both: False: only context vectors are trained; word vectors stay as they are.
        done: steps behind it, whose noise is in the matrix.

    Attributes:
        sums: of a step.
    """

    def __init__(
        self,
        matrix: Singles,
        rates: Floats,
        noise: CellNoise | None,
        *,
        lazy: bool,
        both: bool = True,
        done: int = 0,
    ) -> None:
        self.matrix, self.lazy, self.both, self._rates, self._noise = matrix, lazy, both, rates, noise
        count, dimension = matrix.shape
        self._all = np.arange(0 if both else count // 2, count, dtype=np.int32)
        self.sums = Sums.of(count, len(self._all), dimension, few=lazy)
        self._read = self._all[:0]
        self._clock = np.full(count if lazy else 0, done, dtype=np.int32)  # so many steps' noise a row has
        # of the steps that are left, added up from the last one: rates fall, and sums from the first one would lose
        # the last steps' noise to rounding
        self._left = np.concatenate([np.cumsum(rates[::-1] ** 2)[::-1], [0.0]])

    def read(self, step: int, rows: Rows, bits: RandomBits) -> None:
        """Make distinct rows ready to be read in a step (counted from 0), once a step; only these may be touched. Rows
        that are not trained are left out. The ``bits`` are of this call alone."""
        if not self.lazy:
            return
        self._read = rows[rows >= self._all[0]]
        self._catch_up(step, self._read, bits)

    def descend(self, step: int, bits: RandomBits) -> None:
        """Take the step, and empty the sum; in the dense form with its noise."""
        rate = float(self._rates[step])
        if self._noise is None or self.lazy:
            move(self.matrix, self._read if self.lazy else self.sums.touched, self.sums, rate)
        else:
            self._noise.descend(self.matrix, self._all, self.sums, rate, bits)
        self.sums.clear(self._read if self.lazy else slice(None))

    def settled(self, steps: int, bits: RandomBits) -> Singles:
        """The matrix after so many steps, with the noise of all of them: what may be released."""
        if self.lazy:
            self._catch_up(steps, self._all, bits)
        return self.matrix

    def _catch_up(self, step: int, rows: Rows, bits: RandomBits) -> None:
        """The noise of the steps before this one."""
        if self._noise is None:
            return
        late = rows[self._clock[rows] < step]
        spreads = self._noise.sigma * np.sqrt(self._left[self._clock[late]] - self._left[step])
        drift(self.matrix, late, spreads, bits)
        self._clock[late] = step


@dataclass(eq=False)
class Training:
    """One training on stored users.

    Args:
        tables: where it has come to.
        unknown: the row of the unknown word.
        offsets: (2 V,) public, of contexts.
        clipped: False: for comparison, each unit's gradient is followed at once, as word2vec does.
        key: of its randomness.
        parameters: digest of all that is public.
        content: where the key comes from a seed, a digest of all else that the noise depends on, first of all of the
            texts: with other ones it must not be repeated.
    """

    store: UserStore
    recipe: Recipe
    participation: Participation
    tables: Tables
    unknown: int
    offsets: Singles
    clipped: bool
    key: NoiseKey
    parameters: bytes
    content: bytes = b""

    def __post_init__(self) -> None:
        recipe, (rows, dimension) = self.recipe, self.tables.matrix.shape
        words = rows // 2
        self._drawing = PairDrawing.of(
            recipe.kept(words),
            recipe.contexts(words)[1],
            unknown=self.unknown,
            window=recipe.window,
            negatives=recipe.negatives,
        )
        self._single_pairs = recipe.unit == "pair"
        self._scratch = Scratch.of(rows, recipe.pairs * self._drawing.columns, dimension)
        self._limits = recipe.clipping.limits
        self._thresholds = self.participation.thresholds

    def settled(self, steps: int) -> npt.NDArray[np.float32]:
        """The tables after so many steps, with all noise."""
        return self.tables.settled(steps, self._bits(steps, _SETTLED))

    def step(self, step: int) -> None:
        """One step, counted from 0."""
        sampled = self._sampled(step)
        keys = np.empty(len(sampled), dtype=np.uint64)
        self._bits(step, _KEYS).fill(keys)
        parts: Iterable[Pairs] = self._drawn(sampled, keys)
        if self.tables.lazy:
            touched = np.zeros(len(self.tables.matrix) + 1, dtype=np.bool_)  # the last one: no word
            kept: list[Pairs] = []
            for pairs, ends in parts:
                touched[pairs] = True
                if len(kept) < _KEPT:
                    kept.append((pairs, ends))
            # drawn again rather than kept, where they are many: a key gives the same pairs
            parts = kept if len(kept) < _KEPT else self._drawn(sampled, keys)
            self.tables.read(step, np.flatnonzero(touched[:-1]).astype(np.int32), self._bits(step, _LATE))
        for pairs, ends in parts:
            self._add(step, pairs, ends)
        self.tables.descend(step, self._bits(step, _NOISE))

    def _bits(self, step: int, use: int) -> RandomBits:
        return self.key.stream(self.parameters, _USES * step + use, self.content)

    def _sampled(self, step: int) -> npt.NDArray[np.int64]:
        """Users by number; or slots of pairs."""
        bits = self._bits(step, _COINS)
        if not self._single_pairs:
            return sampled_users(bits, self.store.levels, self._thresholds)
        [rate] = self.participation.rates.values()
        return sampled_slots(bits, len(self.store.rows) * 2 * self.recipe.window, rate)

    def _drawn(self, sampled: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> Iterator[Pairs]:
        """Pairs of some units after the other; another iteration draws the same ones."""
        together = max(1, _TOGETHER // self.recipe.pairs)
        for start in range(0, len(sampled), together):
            some, their_keys = sampled[start : start + together], keys[start : start + together]
            if self._single_pairs:
                pairs = self._drawing.of_slots(self.store.rows, some, their_keys)
                yield pairs, np.arange(1, len(pairs) + 1)
            else:
                starts, stops = self.store.offsets[some], self.store.offsets[some + 1]
                yield self._drawing.of_users(self.store.rows, starts, stops, their_keys, self.recipe.pairs)

    def _add(self, step: int, pairs: Rows, ends: npt.NDArray[np.int64]) -> None:
        tables, scratch = self.tables, self._scratch
        if self.clipped:
            limits, both = self._limits, tables.both
            add_clipped(tables.matrix, self.offsets, pairs, ends, limits, both, scratch, tables.sums)
        else:
            rate = _WORD2VEC * (1 - step / self.participation.steps)
            follow_unclipped(tables.matrix, self.offsets, pairs, ends, rate, tables.both, scratch)
