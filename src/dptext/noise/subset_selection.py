"""One of N public candidates, sent by subset selection: the k that suit the input more often than the others.

An input x has a public set S(x) of exactly k candidates (the most similar ones, say). A candidate comes out with
probability a / T if it is in S(x), else with b / T, where a and b are whole numbers and

    T = k a + (N - k) b                                                                           (normaliser)

is the same for every x (Wang et al. 2016, arXiv:1607.08025; Ye and Barg 2018, arXiv:1702.00610). So a candidate's
chance under two inputs has a ratio of a / b at most, and nothing is lost to a normaliser that depends on x: an
exponential mechanism over the same similarities would need half the epsilon in its exponent.

**Two levels are enough.** Let the weight of a candidate depend on its rank by similarity alone, w_1 .. w_N, each in
[1, e^E]: every such choice has one normaliser and the same promise. Let u_1 >= .. >= u_N be the expected use of the
candidate of each rank. The expected use of a draw, U(w) = (sum of w_r u_r) / (sum of w_r), is largest at weights that
are e^E for the first k ranks and 1 for the others. *Proof.* Let v be the largest value that U takes in the (compact)
box. Then the sum of w_r (u_r - v) is at most 0 in the box, and 0 where U = v. No weights make this sum larger than
those that are e^E where u_r > v and 1 elsewhere; so it is 0 there too, and U = v. As u falls with r, the former are the
first k of all ranks; 1 <= k < N, unless all u are equal and every k is as good. So only k is to be chosen: `best_size`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dptext.checks import number, whole
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.privacy.vulnerability import rate_at_most

__all__ = ["Profile", "SubsetSelection", "best_size"]

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ROOM = 2**63 - 1  # the largest normaliser: a signed 64-bit integer holds every number that is drawn
_LEAST_LOW = 2**10
_MOST_PARTS = 10_000  # of which the chance is computed part by part
_ROUNDING = 48  # math.exp errs by far less than a part in 2^48


@dataclass(frozen=True)
class SubsetSelection:
    """Subset selection with k of N candidates.

    **Guarantee** (unit: who has the input; substitution; local): epsilon-DP, pure, for *any* two inputs, and for any
    function S that gives each input exactly k candidates. *Proof*. The chance of a candidate is a / T or b / T, with
    one T for all inputs, so two inputs give it a ratio of at most a / b; and a / b <= e^epsilon, since a is
    b e^epsilon, as computed, less a part in 2^48, rounded down, while a float exponential errs by less than a part in
    2^51. There is no slack. The bound is attained wherever two inputs have different sets: these have equal sizes, so
    each holds a candidate that the other does not.

    S has to depend on the input alone (and on what is public): not on other inputs, and not on how many candidates
    are as similar, for then the size would vary, and the normaliser with it. It need not be right: the neighbours of
    an approximate search, or ties broken in any way, cost utility and never privacy, as long as they are k.
    A second draw for the same input costs epsilon again.

    Attributes:
        candidates: N, from 2.
        size: k, from 1 to N - 1.
        epsilon: above 0; at most what the integers below can hold, about 36.7 - ln k.
        low: b, the weight of a candidate outside the set: as large as the normaliser lets it be.
        high: a, the weight of a candidate in the set; a / b is at most e^epsilon.

    Raises:
        ParameterError: a number out of range.

    >>> selection = SubsetSelection(candidates=10, size=2, epsilon=2.0)
    >>> [round(each, 4) for each in selection.probabilities]
    [0.3244, 0.0439]
    >>> selection.draw(RandomBits(), np.array([[0, 4], [3, 7]])).shape
    (2,)
    """

    candidates: int
    size: int
    epsilon: float
    low: int = field(init=False, repr=False, compare=False)
    high: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", whole("candidates", self.candidates, least=2))
        object.__setattr__(self, "size", whole("size", self.size, least=1, most=self.candidates - 1))
        object.__setattr__(self, "epsilon", number("epsilon", self.epsilon, above=0))
        least, most = self.candidates - self.size, 0.0
        if least < _ROOM // _LEAST_LOW:
            most = math.log((_ROOM // _LEAST_LOW - least) / self.size)
        low = 0
        if self.epsilon <= most:
            ratio, unit = math.exp(self.epsilon).as_integer_ratio()
            low = _ROOM * unit // (self.size * ratio + least * unit)
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", max(low, low * ratio * ((1 << _ROUNDING) - 1) // (unit << _ROUNDING)))
        if low < _LEAST_LOW:
            raise ParameterError(
                f"epsilon must be a number above 0 and at most {max(most, 0.0):.4g} for {self.size:,} of "
                f"{self.candidates:,} candidates, got {self.epsilon:g}: more is beyond the 63-bit integers that are "
                "drawn; use a smaller epsilon"
            )

    @property
    def total(self) -> int:
        """T, below 2^63, equation (normaliser)."""
        return self.size * self.high + (self.candidates - self.size) * self.low

    @property
    def probabilities(self) -> tuple[float, float]:
        """The chance of each candidate in the set, and that of each outside."""
        return self.high / self.total, self.low / self.total

    def distributions(self, sets: Rows) -> Floats:
        """(n, N) what is really drawn for (n, k) sets (see `draw`)."""
        sets = self._checked(sets)
        inside, outside = self.probabilities
        shares = np.full((len(sets), self.candidates), outside)
        np.put_along_axis(shares, sets, inside, axis=1)
        return shares

    def draw(self, bits: RandomBits, sets: Rows) -> Rows:
        """(n,) one candidate for each of n inputs.

        Args:
            bits: the same number of them is taken, for any sets.
            sets: (n, k) int, S of each input: rows of candidates, each once, in ascending order.

        Raises:
            ParameterError: sets of another shape or order: what is not k candidates has no promise.
        """
        sets = self._checked(sets)
        rows, places = self.choose(bits, len(sets))
        inside = np.flatnonzero(places >= 0)
        rows[inside] = sets[inside, places[inside]]
        return rows

    def choose(self, bits: RandomBits, count: int) -> tuple[Rows, Rows]:
        """What ``count`` draws come to before any input is looked at: where a set is not needed, none need be found.

        T is N b + k (a - b): every candidate has b, the members of the set have a - b more. So one integer r below T
        is enough for a draw: below N b it is candidate r // b for every input, else member (r - N b) // (a - b) of S.

        Returns:
            (n,) candidates, -1 where it is a member of the set, and (n,) which member in the order of the set, -1
            where it is none.
        """
        drawn = bits.below(np.full(count, self.total, dtype=np.uint64)).astype(np.int64)
        blind = drawn < self.candidates * self.low
        rows = np.where(blind, drawn // self.low, -1)
        more = max(1, self.high - self.low)  # where they are equal, every draw is blind
        places = np.where(blind, -1, (drawn - self.candidates * self.low) // more)
        return rows, places

    def relinking(self, people: int, union: int | None = None, *, parts: int = 1) -> float:
        """The chance that the best attacker names whose output they see, among people whose inputs they know.

        Each of n people is as likely as the others before. For an output y the attacker names one of those whose set
        holds y; if there is none, anyone. So they are right with probability (1 / n) sum over y of max over i of
        P(y | x_i) (`dptext.privacy.vulnerability`), and with U, the union of the n sets, that is

            (a |U| + b (N - |U|)) / (n T).                                                        (relinking)

        It grows with |U|, which is at most n k and N: disjoint sets are the worst case.

        Of m parts of one person, each drawn by itself, the attacker counts in how many the output lies in the set of
        person i, h_i(y), and names the one with the most: P(y | x_i) = a^h_i b^(m - h_i) / T^m. With B_c, the number of
        outputs y (of N^m) that have h_i(y) >= c, the same for each i, they are right with a probability of at most

            (1 / (n T^m)) (N^m b^m + sum over c of (a^c b^(m - c) - a^(c - 1) b^(m - c + 1)) min(N^m, n B_c)),  (parts)

        c from 1 to m. *Proof.* a^h b^(m - h) is b^m and, for each c up to h, the difference in the sum. So the sum over
        all y of the largest is N^m b^m and each difference as often as the largest h_i(y) is c or more: for n B_c
        outputs at most. Of one part that is equation (relinking) at its worst.

        What any mechanism with a pure epsilon keeps, e^(m epsilon) / (e^(m epsilon) + n - 1), is returned where it is
        less (`dptext.privacy.vulnerability.rate_at_most`).

        Args:
            people: n, from 1.
            union: |U|, for the exact chance among certain people; None: at most, among any n.
            parts: m, from 1; the exact chance is known for one.

        Raises:
            ParameterError: no n sets of k have a union of that size.
        """
        people = whole("people", people, least=1)
        parts = whole("parts", parts, least=1, most=None if union is None else 1)
        largest = min(self.candidates, people * self.size)
        if union is not None or parts == 1:
            union = largest if union is None else whole("union", union, least=self.size, most=largest)
            return (self.high * union + self.low * (self.candidates - union)) / (people * self.total)
        gap = math.log(self.high / self.low)
        if parts > _MOST_PARTS:
            return rate_at_most(parts * gap, people)
        # B_c / N^m: c of m fall into k of N; in logarithms, since a^m is beyond a float
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
                f"sets must be rows of {self.size:,} of {self.candidates:,} candidates, each once and in ascending "
                "order, got something else: sort them"
            )
        return sets.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class Profile:
    """How similar the candidates of each rank are on average over public inputs: what `best_size` needs to know.

    Attributes:
        ranks: (m,) int64, ascending, from 1; the last one is ``candidates``. A part of all ranks is enough.
        cumulative: (m,) float64: the similarities of the first ``ranks[i]`` ranks, summed, in the mean over inputs.
        candidates: N.

    Raises:
        ParameterError: something else.

    >>> profile = Profile(np.array([1, 2, 4]), np.array([0.9, 1.6, 2.0]), candidates=4)
    >>> round(profile.expected(2, epsilon=1.0), 4)
    0.6386
    """

    ranks: Rows = field(repr=False)
    cumulative: Floats = field(repr=False)
    candidates: int

    def __post_init__(self) -> None:
        ranks, cumulative = np.array(self.ranks), np.array(self.cumulative, dtype=np.float64)
        object.__setattr__(self, "candidates", whole("candidates", self.candidates, least=2))
        if (
            ranks.ndim != 1
            or ranks.size < 2
            or not np.issubdtype(ranks.dtype, np.integer)
            or ranks[0] < 1
            or ranks[-1] != self.candidates
            or (np.diff(ranks) <= 0).any()
        ):
            raise ParameterError(
                f"ranks must be at least two whole numbers, ascending, from 1 to the number of candidates, "
                f"{self.candidates:,}, got something else"
            )
        if cumulative.shape != ranks.shape or not np.isfinite(cumulative).all():
            raise ParameterError(f"cumulative must be {ranks.size:,} finite numbers, one a rank, got something else")
        ranks = ranks.astype(np.int64)
        for name, array in (("ranks", ranks), ("cumulative", cumulative)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def expected(self, size: int, epsilon: float) -> float:
        """The expected similarity of a draw with k = size; between known ranks, at least this."""
        size = whole("size", size, least=1, most=self.candidates - 1)
        most_similar = np.interp(size, np.append(0, self.ranks), np.append(0.0, self.cumulative))
        return float(self._expected(np.array([size]), np.array([most_similar]), number("epsilon", epsilon, above=0))[0])

    def _expected(self, sizes: Rows, sums: Floats, epsilon: float) -> Floats:
        # (e^E C_k + C_N - C_k) / (k e^E + N - k), both divided by e^E
        rest = math.exp(-epsilon)
        expected: Floats = (sums + (self.cumulative[-1] - sums) * rest) / (sizes + (self.candidates - sizes) * rest)
        return expected


def best_size(epsilon: float, profile: Profile) -> int:
    """The k with which a draw is most similar to its input in expectation, from what is public; the smallest such.

    Only ranks of the profile are tried. Nothing is lost by that if similarities between known ranks are even: on a
    straight stretch of C_k the expected similarity is a ratio of linear functions of k, which is largest at an end.
    If they fall in between, k is near the best.

    Raises:
        ParameterError: epsilon is not above 0.

    >>> best_size(2.0, Profile(np.array([1, 2, 4]), np.array([0.9, 1.6, 2.0]), candidates=4))
    1
    """
    epsilon = number("epsilon", epsilon, above=0)
    below = profile.ranks < profile.candidates
    sizes = profile.ranks[below]
    return int(sizes[profile._expected(sizes, profile.cumulative[below], epsilon).argmax()])


def _log_tails(draws: int, chance: float) -> Floats:
    """(draws,) ln of the probability that c or more of so many independent draws succeed, c from 1."""
    counts = np.arange(draws + 1)
    log_of = np.array([math.lgamma(1 + count) for count in counts.tolist()])
    terms = log_of[-1] - log_of - log_of[::-1] + counts * math.log(chance) + counts[::-1] * math.log1p(-chance)
    tails: Floats = np.minimum(np.logaddexp.accumulate(terms[::-1])[::-1][1:], 0.0)
    return tails
