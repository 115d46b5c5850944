"""Subset selection: send one of N public candidates, with a higher probability for k that suit the input.

Derivation: docs/mechanisms/subset-selection.md#noise-subset-selection
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.guarantee import rate_at_most
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_float, check_int

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LARGEST_TOTAL = 2**63 - 1  # the largest normaliser, so that all drawn numbers are signed 64-bit integers
_LEAST_LOW = 2**10
_MOST_PARTS = 10_000  # above, `relinking` uses a simpler bound
_ROUNDING = 48  # the relative error of math.exp is far below 2^-48


@dataclass(frozen=True)
class SubsetSelection:
    """Subset selection with k of N candidates."""

    candidates: int
    size: int
    epsilon: float
    low: int = field(init=False, repr=False, compare=False)
    high: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", check_int("candidates", self.candidates, minimum=2))
        object.__setattr__(self, "size", check_int("size", self.size, minimum=1, maximum=self.candidates - 1))
        object.__setattr__(self, "epsilon", check_float("epsilon", self.epsilon, above=0))
        minimum, maximum = self.candidates - self.size, 0.0
        if minimum < _LARGEST_TOTAL // _LEAST_LOW:
            maximum = math.log((_LARGEST_TOTAL // _LEAST_LOW - minimum) / self.size)
        low = 0
        if self.epsilon <= maximum:
            ratio, unit = math.exp(self.epsilon).as_integer_ratio()
            low = _LARGEST_TOTAL * unit // (self.size * ratio + minimum * unit)
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", max(low, low * ratio * ((1 << _ROUNDING) - 1) // (unit << _ROUNDING)))
        if low < _LEAST_LOW:
            raise ParameterError(
                f"epsilon must be a number above 0 and at most {max(maximum, 0.0):.4g} for {self.size:,} of "
                f"{self.candidates:,} candidates, got {self.epsilon:g}: the sampler draws 63-bit integers. "
                "Use a smaller epsilon"
            )

    @property
    def total(self) -> int:
        """T, below 2^63, equation (normaliser)."""
        return self.size * self.high + (self.candidates - self.size) * self.low

    @property
    def probabilities(self) -> tuple[float, float]:
        """The probability of each candidate in the set, and of each candidate outside."""
        return self.high / self.total, self.low / self.total

    def distributions(self, sets: Rows) -> Floats:
        """Return the exact probabilities (n, N) of `draw` for (n, k) sets."""
        sets = self._checked(sets)
        inside, outside = self.probabilities
        shares = np.full((len(sets), self.candidates), outside)
        np.put_along_axis(shares, sets, inside, axis=1)
        return shares

    def draw(self, bits: RandomBits, sets: Rows) -> Rows:
        """Return (n,) candidates, one per input."""
        sets = self._checked(sets)
        rows, places = self.choose(bits, len(sets))
        inside = np.flatnonzero(places >= 0)
        rows[inside] = sets[inside, places[inside]]
        return rows

    def choose(self, bits: RandomBits, count: int) -> tuple[Rows, Rows]:
        """Draw ``count`` candidates (-1: in the set) and positions in a set (-1: any candidate), without the sets."""
        draws = bits.below(np.full(count, self.total, dtype=np.uint64)).astype(np.int64)
        blind = draws < self.candidates * self.low
        rows = np.where(blind, draws // self.low, -1)
        more = max(1, self.high - self.low)  # if they are equal, every draw is blind
        places = np.where(blind, -1, (draws - self.candidates * self.low) // more)
        return rows, places

    def relinking(self, people: int, union: int | None = None, *, parts: int = 1) -> float:
        """Return the probability that the best attacker names the author of an output of people with known inputs."""
        people = check_int("people", people, minimum=1)
        parts = check_int("parts", parts, minimum=1, maximum=None if union is None else 1)
        largest = min(self.candidates, people * self.size)
        if union is not None or parts == 1:
            union = largest if union is None else check_int("union", union, minimum=self.size, maximum=largest)
            return (self.high * union + self.low * (self.candidates - union)) / (people * self.total)
        gap = math.log(self.high / self.low)
        if parts > _MOST_PARTS:
            return rate_at_most(parts * gap, people)
        # B_c / N^m: c of m fall into k of N; in logarithms, because a^m overflows
        tails = _log_tails(parts, self.size / self.candidates)
        counted = np.minimum(math.log(people) + tails, 0.0)
        steps = gap * np.arange(parts) + counted + (math.log(math.expm1(gap)) if gap > 0 else -math.inf)
        blind = parts * math.log(self.candidates * self.low / self.total) - math.log(people)
        rate = math.exp(min(0.0, blind + float(np.logaddexp.reduce(np.append(0.0, steps)))))
        return min(rate, rate_at_most(parts * gap, people))

    def _checked(self, sets: Rows) -> Rows:
        sets = np.asarray(sets)
        if (
            sets.ndim != 2
            or sets.shape[1] != self.size
            or not np.issubdtype(sets.dtype, np.integer)
            or (sets.size and (sets[:, 0].min() < 0 or sets[:, -1].max() >= self.candidates))
            or (sets[:, 1:] <= sets[:, :-1]).any()
        ):
            raise ParameterError(
                f"each row of sets must have {self.size:,} distinct candidates of {self.candidates:,} in ascending "
                "order"
            )
        return sets.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class Profile:
    """Mean similarity of the candidates of each rank over public inputs, for `best_size`."""

    ranks: Rows = field(repr=False)
    cumulative: Floats = field(repr=False)
    candidates: int

    def __post_init__(self) -> None:
        ranks, cumulative = np.array(self.ranks), np.array(self.cumulative, dtype=np.float64)
        object.__setattr__(self, "candidates", check_int("candidates", self.candidates, minimum=2))
        if (
            ranks.ndim != 1
            or ranks.size < 2
            or not np.issubdtype(ranks.dtype, np.integer)
            or ranks[0] < 1
            or ranks[-1] != self.candidates
            or (np.diff(ranks) <= 0).any()
        ):
            raise ParameterError(
                f"ranks must be at least two ascending integers from 1 to the number of candidates, {self.candidates:,}"
            )
        if cumulative.shape != ranks.shape or not np.isfinite(cumulative).all():
            raise ParameterError(f"cumulative must have {ranks.size:,} finite numbers, one per rank")
        ranks = ranks.astype(np.int64)
        for name, array in (("ranks", ranks), ("cumulative", cumulative)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def expected(self, size: int, epsilon: float) -> float:
        """Return the expected similarity of a draw with k = size; between known ranks, a lower bound."""
        size = check_int("size", size, minimum=1, maximum=self.candidates - 1)
        most_similar = np.interp(size, np.append(0, self.ranks), np.append(0.0, self.cumulative))
        return float(
            self._expected(np.array([size]), np.array([most_similar]), check_float("epsilon", epsilon, above=0))[0]
        )

    def _expected(self, sizes: Rows, sums: Floats, epsilon: float) -> Floats:
        # (e^E C_k + C_N - C_k) / (k e^E + N - k), both divided by e^E
        rest = math.exp(-epsilon)
        expected: Floats = (sums + (self.cumulative[-1] - sums) * rest) / (sizes + (self.candidates - sizes) * rest)
        return expected


def best_size(epsilon: float, profile: Profile) -> int:
    """Return the smallest k with the highest expected similarity of a draw to its input, from public information."""
    epsilon = check_float("epsilon", epsilon, above=0)
    below = profile.ranks < profile.candidates
    sizes = profile.ranks[below]
    return int(sizes[profile._expected(sizes, profile.cumulative[below], epsilon).argmax()])


def _log_tails(draws: int, chance: float) -> Floats:
    """Return (draws,) log-probabilities that c or more of ``draws`` independent draws succeed, c from 1."""
    counts = np.arange(draws + 1)
    log_of = np.array([math.lgamma(1 + count) for count in counts.tolist()])
    terms = log_of[-1] - log_of - log_of[::-1] + counts * math.log(chance) + counts[::-1] * math.log1p(-chance)
    return np.minimum(np.logaddexp.accumulate(terms[::-1])[::-1][1:], 0.0)
