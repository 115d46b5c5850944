"""Sums of a step as integers, and Gaussian noise on whole tables of them, rounded exactly to a public grid.

Derivation: docs/mechanisms/skip-gram.md#embeddings-dpsgd-noise
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from dptext.embeddings.participation import MOST
from dptext.errors import extra
from dptext.noise.gaussian_sums import normal_pair, settle
from dptext.privacy.randomness import RandomBits

Function = TypeVar("Function", bound=Callable[..., object])

_numba = extra("numba", "skipgram", "training of word vectors")
_ORDER_IS_FREE = {"reassoc", "contract"}  # of a sum; NaN, infinities and the rounding of each operation are kept


def compiled(function: Function) -> Function:
    """Return the function as machine code, compiled at its first call and cached on disk."""
    # as for arrays, division by zero is infinite, without a check
    options = {"nogil": True, "fastmath": _ORDER_IS_FREE, "error_model": "numpy"}
    try:
        machine_code = _numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable cache folder
        machine_code = _numba.njit(**options)(function)
    return cast(Function, machine_code)


Rows = npt.NDArray[np.int32]
Cells = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

_MOST, _LEAST = np.int32(MOST), np.int32(-MOST)


@compiled
def add_cells(sums: Cells, rows: Rows, parts: Singles, factors: Floats) -> None:
    """Add ``parts * factors``, rounded towards zero, to distinct rows; clip sums to `MOST`."""
    for number in range(len(rows)):
        part, scale = parts[number], np.float32(factors[number])
        if scale == 0.0:
            continue
        into = sums[rows[number]]
        for axis in range(len(part)):
            total = np.int32(into[axis] + np.int32(part[axis] * scale))
            if total > _MOST:  # after the addition, so that the sum of the last unit is clipped too
                total = _MOST
            if total < _LEAST:
                total = _LEAST
            into[axis] = total


Words = npt.NDArray[np.uint64]

_PAIRS = 512  # pairs generated together: they stay in the nearest cache
_AT_ONCE = 1 << 16  # numbers whose random bits are drawn together: half a megabyte
_STEPS = 12  # the grid is 2^-12 of the noise, or finer
_DOUBT = 2.0**-36
_SHORTEST, _LEAST_LEAD = 2.0**-12, 2.0**38
_FARTHEST = 10.0  # no normal is larger, in standard deviations: the lead of 63 bits reaches 9.3
_DOUBTFUL = 4096  # capacity: a thousand times the expected number
_LN2, _QUARTER = math.log(2.0), math.pi / 4
_FRACTION, _ROOT_2 = 0x000FFFFFFFFFFFFF, 0x6A09E667F3BCD  # mantissa bits of a double; mantissa of sqrt 2
_1 = np.uint64(1)
# coefficients of the series, the highest power first: of the logarithm from m^23, of sine and cosine from t^15 and t^16
_LOGARITHM = tuple(2.0 / power for power in range(23, 0, -2))
_SINE, _COSINE = (
    tuple((-1.0) ** (power // 2) / math.factorial(power) for power in range(highest, 1, -2)) for highest in (15, 16)
)


@compiled
def normals(words: Words, out: Floats, marked: bool) -> None:
    size = _PAIRS
    values = np.empty(size, dtype=np.float64)
    patterns = values.view(np.int64)
    radius = np.empty(size, dtype=np.float64)
    lost = np.empty(size, dtype=np.float64)
    for i in range(size):
        values[i] = np.float64(np.int64(words[i] >> _1)) + 0.5
        lost[i] = math.nan if marked and values[i] < _LEAST_LEAD else 0.0
    for i in range(size):
        pattern = patterns[i]
        fraction = pattern & _FRACTION
        above = np.int64(fraction > _ROOT_2)
        patterns[i] = fraction | ((1023 - above) << 52)  # m in [sqrt(1/2), sqrt 2)
        radius[i] = np.float64((pattern >> 52) - 1023 - 63 + above)
    for i in range(size):
        m = values[i]
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        series = 0.0
        for coefficient in _LOGARITHM:
            series = series * z + coefficient
        r = math.sqrt(-2.0 * (radius[i] * _LN2 + s * series))
        radius[i] = r + (math.nan if marked and r < _SHORTEST else lost[i])
    for i in range(size):
        angle = np.int64(words[size + i] >> _1)
        quarter = (angle >> 61) & 3
        t = np.float64((angle << 3) >> 3) * (_QUARTER * 2.0**-60)
        z = t * t
        sine = cosine = 0.0
        for coefficient in _SINE:
            sine = sine * z + coefficient
        sine = t + t * z * sine
        for coefficient in _COSINE:
            cosine = cosine * z + coefficient
        cosine = 1.0 + z * cosine
        turned = (quarter & 1) != 0
        first = sine if turned else cosine  # cosine and sine of t + quarter pi / 2, but for the sign
        second = cosine if turned else sine
        out[i] = radius[i] * (first * np.float64(1 - 2 * (((quarter + 1) >> 1) & 1)))
        out[size + i] = radius[i] * (second * np.float64(1 - 2 * (quarter >> 1)))


def _angle_lead(word: int) -> int:
    """Return the leading 63 bits of a / 2 pi for a ``word`` of `normals`: a quarter, and a remainder of either sign."""
    quarter, rest = word >> 62, (word >> 1) & (2**61 - 1)
    rest -= 2**61 if rest >= 2**60 else 0
    return (quarter * 2**61 + rest) % 2**63


@dataclass(frozen=True)
class CellNoise:
    """Gaussian noise of a step, rounded to a public grid."""

    sigma: float

    @property
    def step(self) -> float:
        return 2.0 ** (math.floor(math.log2(self.sigma)) - _STEPS)

    def descend(self, tables: Singles, rows: Rows, sums: Cells, rate: float, bits: RandomBits) -> None:
        """Do tables[rows] -= rate * step * round((sums[rows] + sigma Z) / step) in place, without a table of noise."""
        step = self.step
        noise, inverse = self.sigma / step, 1.0 / step
        # error in units of the grid: the noise, and three roundings of numbers that are no larger
        doubt = noise * _DOUBT + 2.0**-51 * (MOST * inverse + _FARTHEST * noise)
        grid = (noise, inverse, doubt, rate * step)
        result = np.empty((_DOUBTFUL, 5), dtype=np.int64)
        kept = np.empty(_DOUBTFUL, dtype=np.float32)
        count, pair = len(rows) * tables.shape[1], 2 * _PAIRS
        words = np.empty(min(_AT_ONCE, -(-count // pair) * pair), dtype=np.uint64)
        for first in range(0, count, _AT_ONCE):
            last = min(first + _AT_ONCE, count)
            bits.fill(words[: -(-(last - first) // pair) * pair])
            missed = _descend(tables, rows, sums, first, last, words, grid, result, kept)
            self._settle(tables, rows, rate * step, words, result[:missed].tolist(), kept, bits)

    def _settle(
        self,
        tables: Singles,
        rows: Rows,
        factor: float,
        words: Words,
        doubtful: list[list[int]],
        kept: Singles,
        bits: RandomBits,
    ) -> None:
        pairs: dict[int, list[int]] = {}
        for number, (_, _, start, place, _) in enumerate(doubtful):
            pairs.setdefault(start + place % _PAIRS, []).append(number)
        for position, numbers in pairs.items():
            leads = np.array([int(words[position]) >> 1, _angle_lead(int(words[position + _PAIRS]))])
            x = np.zeros(2)
            for number in numbers:
                _, _, _, place, cell = doubtful[number]
                x[place // _PAIRS] = cell
            exact = settle(bits, leads, x, normal_pair, self.sigma, self.step)
            for number in numbers:
                slot, axis, _, place, _ = doubtful[number]
                tables[rows[slot], axis] = kept[number] - np.float32(exact[place // _PAIRS] * factor)


@compiled
def _descend(
    tables: Singles,
    rows: Rows,
    sums: Cells,
    first: int,
    last: int,
    words: Words,
    grid: tuple[float, float, float, float],
    doubtful: npt.NDArray[np.int64],
    kept: Singles,
) -> int:
    """Descend on numbers ``first`` to ``last`` of the rows, row by row; return how many are in doubt."""
    # sigma in grid units, 1 / step, margin of doubtful rounding, and weight of a grid point
    noise, inverse, doubt, factor = grid
    dimension = tables.shape[1]
    values = np.empty(2 * _PAIRS, dtype=np.float64)
    missed: int = 0
    for start in range(0, last - first, 2 * _PAIRS):
        normals(words[start : start + 2 * _PAIRS], values, True)
        size = min(2 * _PAIRS, last - first - start)
        done = 0
        while done < size:
            slot, axis = divmod(first + start + done, dimension)
            run = min(dimension - axis, size - done)
            into, cells = tables[rows[slot]], sums[rows[slot]]
            for i in range(run):
                values[done + i] = np.float64(cells[axis + i]) * inverse + values[done + i] * noise
            sure = 0
            for i in range(run):
                scaled = values[done + i]
                sure += int(abs(scaled - np.rint(scaled)) < 0.5 - doubt)
            for i in range(run if sure < run else 0):
                scaled = values[done + i]
                if not abs(scaled - np.rint(scaled)) < 0.5 - doubt and missed < len(kept):  # also where it is NaN
                    doubtful[missed, 0], doubtful[missed, 1], doubtful[missed, 2] = slot, axis + i, start
                    doubtful[missed, 3], doubtful[missed, 4], kept[missed] = done + i, cells[axis + i], into[axis + i]
                    missed += 1
            for i in range(run):
                into[axis + i] -= np.float32((np.rint(values[done + i]) + 0.0) * factor)  # -0.0 becomes 0
            done += run
    return missed
