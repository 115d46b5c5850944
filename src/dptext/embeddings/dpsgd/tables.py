"""Both tables of a training, the sum of a step, and when the noise comes: to every row at once, or when it is due.

Each step takes  tables -= rate_t * (sum + N(0, sigma^2 I))  with noise on **all** rows, touched or not.

**Dense**: just that, the noise exact (`dptext.embeddings.dpsgd.noise`). It takes as much memory again as the tables.

**Lazy**: a step adds what the gradients say to the rows that they touch, and no noise. A row that is read in step t,
and was read in step s last, first gets the noise of steps s to t - 1, of variance sigma^2 (rate_s^2 + ... +
rate_(t-1)^2): one draw instead of many, and none for rows that nobody reads. *The law of all that is read, and of the
tables when they are `settled`, is that of the dense form*: in between nobody looks at the row, the steps' normals are
independent of everything else, and their sum is normal with the sum of their variances. That holds because (1) what a
step reads is caught up before it is read; (2) the step is plain gradient descent, in which a row's noise does nothing
but add up (no momentum, no decay); (3) nothing is released or written before all rows are settled; (4) each draw has
random bits of its own. | Here noise comes to numbers that were rounded to single precision, at times that hang on the
texts, which the law of real numbers does not know: the statement says so (`dptext.embeddings.dpsgd.assumptions.LAZY`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.noise import CellNoise, drift, move
from dptext.embeddings.dpsgd.ranks import ALONE, Ranks
from dptext.privacy.randomness import RandomBits

__all__ = ["Tables"]

Rows = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


class Tables:
    """The state of a training. **Private, but for what `settled` rows hold, once noise is on them.**

    Args:
        matrix: (2 V, d) float32, word vectors above context vectors; it is changed in place.
        rates: (T,) what a unit of the sum moves in each step.
        noise: None: none, for comparison.
        lazy: see the module.
        both: False: only context vectors are trained; word vectors stay as they are.
        done: steps behind it, whose noise is in the matrix.
        ranks: who else trains; the lazy form is for one process alone.

    Attributes:
        places: (2 V,) int32, where a row of the matrix stands in the sum.
        sums: (n, d) int32, the sum of a step.
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
        ranks: Ranks = ALONE,
    ) -> None:
        self.matrix, self.lazy, self.both, self._rates, self._noise = matrix, lazy, both, rates, noise
        self._ranks = ranks
        count, dimension = matrix.shape
        self._all = np.arange(0 if both else count // 2, count, dtype=np.int32)
        self._touched = self._all[:0] if lazy else self._all
        self.places = np.full(count, -1, dtype=np.int32)
        self.places[self._touched] = np.arange(len(self._touched), dtype=np.int32)
        self.sums = np.zeros((len(self._touched), dimension), dtype=np.int32)
        self._clock = np.full(count, done, dtype=np.int32)  # so many steps' noise a row has
        # of the steps that are left, added up from the last one: rates fall, and sums from the first one would lose
        # the last steps' noise to rounding
        self._left = np.concatenate([np.cumsum(rates[::-1] ** 2)[::-1], [0.0]])

    def read(self, step: int, rows: Rows, bits: RandomBits) -> None:
        """Make rows ready to be read in a step (counted from 0), once a step; only these may be touched.

        Args:
            step: which.
            rows: distinct; those that are not trained are left out.
            bits: of this call alone.
        """
        if not self.lazy:
            return
        rows = rows[rows >= self._all[0]]
        self._catch_up(step, rows, bits)
        self.places[rows] = np.arange(len(rows), dtype=np.int32)
        if len(rows) > len(self.sums):
            room = min(len(self._all), len(rows) + len(rows) // 8)
            self.sums = np.zeros((room, self.matrix.shape[1]), dtype=np.int32)
        self._touched = rows

    def descend(self, step: int, bits: RandomBits) -> None:
        """Take the step, and empty the sum; in the dense form with its noise."""
        rate = float(self._rates[step])
        self._ranks.add_up(self.sums)
        if self._noise is None or self.lazy:
            move(self.matrix, self._touched, self.sums, rate)
        else:
            here = self._ranks.rows(len(self._touched))
            self._noise.descend(self.matrix, self._touched[here], self.sums[here], rate, bits)
            self.sums[: here.start], self.sums[here.stop :] = 0, 0  # other ranks' rows
            self._ranks.exchange(self.matrix[self._all[0] :])
            self._clock[self._touched] = step + 1
        if self.lazy:
            self.places[self._touched] = -1
            self._touched = self._all[:0]

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
