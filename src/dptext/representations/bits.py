"""Vectors as noisy bits: one bit per number, weighted bits, and unary encodings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dptext.noise.discrete import (
    SCALE,
    asked_less_rounding,
    coins,
    flip_codes,
    flip_epsilon,
    flip_threshold,
    leaning_coins,
    packed_coins,
    round_at_random,
    round_up_epsilon,
)
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Domain, Floats
from dptext.representations.randomizer import BitChannel, BitRandomizer, Private, Sent, in_blocks
from dptext.validation import check_int

Codes = npt.NDArray[np.uint16]

MOST_BITS = 16
_NUMBERS = 1 << 14  # per block, so that a block fits into the cache
_NUMBERS_A_TASK = 1 << 18


class CodeChannel(BitChannel):
    """Numbers of the cube as noisy codes of l bits each."""

    domain = Domain.CUBE

    def __init__(self, name: str, dimension: int, thresholds: list[int]) -> None:
        self.name = name
        self.dimension = self.width = dimension
        self.thresholds, self.bits_a_number = thresholds, len(thresholds)
        self.bits = dimension * self.bits_a_number
        self.guarantee = PureDP(round_up_epsilon(dimension * math.fsum(map(flip_epsilon, thresholds))))
        chances = np.array(thresholds) / SCALE
        leaning = 1 - 2 * chances
        weights, step = _weights(self.bits_a_number), 2 / ((1 << self.bits_a_number) - 1)
        self._rounding = step * step / 4
        self._noise = float((weights**2 * 4 * chances * (1 - chances) / leaning**2).sum())  # eq. (variance)
        signs = 2.0 * (np.arange(2**self.bits_a_number)[:, None] >> np.arange(self.bits_a_number) & 1) - 1
        self._numbers = (signs @ (weights / leaning)).astype(np.float32)  # z of every code
        # one bit: 1 - x^2 exactly, so 1 less over a vector of length 1
        self.expected_squared_error = dimension * (self._noise + self._rounding) - (self.bits_a_number == 1)

    def _codes(self, numbers: Floats, bits: RandomBits) -> Codes:
        """Return (m,) noisy codes of (m,) numbers between -1 and 1: rounded at random, then bits are flipped."""
        if self.bits_a_number == 1:  # in one comparison
            return leaning_coins(bits, numbers, self.thresholds[0]).astype(np.uint16)
        last = 2**self.bits_a_number - 1
        codes = round_at_random(bits, (numbers + 1) * (last / 2)).astype(np.uint16)
        flip_codes(codes, self.thresholds, bits)
        return codes

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        private = np.empty(vectors.shape, dtype=np.float32)

        def look_up(rows: slice, codes: Codes) -> None:
            np.take(self._numbers, codes, out=private[rows].reshape(-1), mode="clip")  # no code is beyond the table

        self._for_each_block(vectors, bits, look_up)
        return private

    def _send(self, vectors: Floats, bits: RandomBits) -> Sent:
        sent = np.empty((len(vectors), self.bytes), dtype=np.uint8)

        def pack(rows: slice, codes: Codes) -> None:
            ones = np.empty((codes.size, self.bits_a_number), dtype=np.uint8)
            for place in range(self.bits_a_number):
                ones[:, self.bits_a_number - 1 - place] = codes >> np.uint16(place) & np.uint16(1)
            sent[rows] = np.packbits(ones.reshape(-1, self.bits), axis=1)

        self._for_each_block(vectors, bits, pack)
        return sent

    def _values(self, ones: Sent) -> Private:
        powers = 1 << np.arange(self.bits_a_number - 1, -1, -1, dtype=np.int64)
        return self._numbers[ones.reshape(len(ones), self.dimension, self.bits_a_number) @ powers]

    def _for_each_block(self, vectors: Floats, bits: RandomBits, use: Callable[[slice, Codes], None]) -> None:
        rows = max(1, _NUMBERS // self.dimension)

        def work(some: slice, stream: RandomBits) -> None:
            use(some, self._codes(vectors[some].reshape(-1), stream))

        blocks = max(1, _NUMBERS_A_TASK // (rows * self.dimension))
        in_blocks(work, len(vectors), bits, rows=rows, blocks=blocks)

    def debiased_second_moment(self, moment: Floats) -> Floats:
        """Subtract the variance of the noise from the diagonal of the mean of z z^T."""
        if self.bits_a_number == 1:
            return super().debiased_second_moment(moment)
        return moment - self._noise * np.eye(self.dimension)

    def parameters(self) -> dict[str, Parameter]:
        return {
            "bits": self.bits_a_number,
            "flip_thresholds": " ".join(map(str, reversed(self.thresholds))) + " of 2^32",
        }


def _weights(bits: int) -> Floats:
    """Return w_j of equation (code), lowest bit first."""
    return np.asarray(2.0 ** np.arange(bits) / (2**bits - 1))


def bit_budgets(epsilon: float, bits: int) -> Floats:
    """Return (l,) budgets eps_j, lowest bit first, with sum ``epsilon`` and the least variance (budgets)."""
    square: Floats = 2 * np.log(_weights(bits))
    low, high = -700.0, 200.0  # ln lambda, for epsilons from 1e-12 to 600
    for _ in range(64):
        middle = (low + high) / 2
        if _at_slope(middle - square).sum() > epsilon:
            low = middle
        else:
            high = middle
    return _at_slope(high - square)


def _at_slope(log_slope: Floats) -> Floats:
    """Solve cosh(e / 2) / sinh^3(e / 2) = kappa: with S = sinh^2(e / 2) = e^y, ln(1 + S) - 3 ln S = 2 ln kappa."""
    y = np.maximum(-2 / 3 * log_slope, -log_slope)
    for _ in range(8):
        value = np.logaddexp(0.0, y) - 3 * y - 2 * log_slope
        y += value / (3 - 1 / (1 + np.exp(-np.clip(y, -700, 700))))
    return 2 * np.arcsinh(np.exp(np.minimum(y, 1400.0) / 2))


@lru_cache(maxsize=256)
def _best_bits(epsilon: float) -> int:
    """Return the bits per number with the least noise and worst-case rounding, at ``epsilon`` per number."""

    def error(bits: int) -> float:
        noise = (_weights(bits) ** 2 / np.sinh(np.minimum(bit_budgets(epsilon, bits), 1000.0) / 2) ** 2).sum()
        return float(noise) + 1 / ((1 << bits) - 1) ** 2

    return min(range(1, MOST_BITS + 1), key=error)


@dataclass(frozen=True, kw_only=True)
class WeightedBits(BitRandomizer):
    """Numbers between -1 and 1 in offset binary; bits with more weight are flipped less often. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, the sum of equation (flip)
    of `dptext.noise.discrete` over all bits of all d numbers, from the realised thresholds of 32 bits: at most
    ``epsilon``. Exact: no assumption about real numbers.

    Input: (n, d); each number is clipped to [-1, 1]. Output: (n, d) float32, or the bits themselves (`send`, `decode`).
    E||z - x||^2 is d times the sum of equation (variance) of this module and the worst-case rounding, 1 / (2^l - 1)^2
    per number.

    Args:
        epsilon: budget of the whole vector.
        bits: l, from 1 to 16; None: the l with the least noise and worst-case rounding. 1 is `OneBit`.

    Raises:
        ParameterError: from `channel`: the budget is below 1e-9 nats per bit.

    >>> WeightedBits(epsilon=128.0).statement(16).parameters["bits"]
    3
    >>> WeightedBits(epsilon=128.0).send([[0.5] * 16], seed=1).shape
    (1, 6)
    """

    name: ClassVar[str] = "WeightedBits"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.CUBE,)

    bits: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits is not None:
            object.__setattr__(self, "bits", check_int("bits", self.bits, minimum=1, maximum=MOST_BITS))

    def _calibrate(self, dimension: int) -> CodeChannel:
        budget = asked_less_rounding(self.epsilon) / dimension
        bits = self.bits or _best_bits(budget)
        budgets = [budget] if bits == 1 else bit_budgets(budget, bits)
        return CodeChannel(self.name, dimension, [flip_threshold(entry) for entry in budgets])


@dataclass(frozen=True, kw_only=True)
class OneBit(BitRandomizer):
    """Numbers between -1 and 1 as one bit each, which is 1 more often for larger numbers. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, d times equation (flip) of
    `dptext.noise.discrete`, from the realised threshold of 32 bits: at most ``epsilon``. Exact.

    Input: (n, d); each number is clipped to [-1, 1]. Output: (n, d) float32, +-1 / (1 - 2q) each, or the bits
    themselves (`send`, `decode`). E||z - x||^2 = d / tanh^2(epsilon / 2d) - ||x||^2, less than that of codes of ten
    bits up to 4 nats per number. Errors: as for `WeightedBits`.

    Source: Duchi, Jordan and Wainwright 2018 (in one dimension it is their minimax mechanism).

    >>> round(OneBit(epsilon=8.0).expected_squared_error(4), 3)
    5.896
    """

    name: ClassVar[str] = "OneBit"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.CUBE,)

    def _calibrate(self, dimension: int) -> CodeChannel:
        return CodeChannel(self.name, dimension, [flip_threshold(asked_less_rounding(self.epsilon) / dimension)])


_BITS_AT_ONCE = 1 << 20


def unary_epsilon(one: int, zero: int) -> float:
    """Compute equation (unary) from the thresholds of p and q."""
    outside = (SCALE - one) * zero
    return math.log1p((one * (SCALE - zero) - outside) / outside)


class UnaryChannel(BitChannel):
    """A channel for one-hot vectors of k >= 2 coordinates."""

    domain = Domain.ONE_HOT

    def __init__(self, name: str, dimension: int, one: int, zero: int) -> None:
        self.name = name
        self.dimension = self.width = self.bits = check_int("dimension", dimension, minimum=2)
        self.one, self.zero = one, zero
        self.guarantee = PureDP(round_up_epsilon(unary_epsilon(one, zero)))
        p, q = one / SCALE, zero / SCALE
        self._q, self._leaning = q, p - q
        self._variance_of_one, self._variance_of_zero = (entry * (1 - entry) / (p - q) ** 2 for entry in (p, q))
        self.expected_squared_error = self._variance_of_one + (dimension - 1) * self._variance_of_zero

    def _send(self, vectors: Floats, bits: RandomBits) -> Sent:
        true = vectors.argmax(axis=1)
        sent = packed_coins(bits, true.size, np.full(self.dimension, self.zero, dtype=np.uint32))
        rows, byte, mask = np.arange(true.size), true >> 3, (128 >> (true & 7)).astype(np.uint8)
        draws = np.where(coins(bits, true.size, self.one), mask, 0).astype(np.uint8)
        sent[rows, byte] = sent[rows, byte] & ~mask | draws
        return sent

    def _values(self, ones: Sent) -> Private:
        values = np.array([-self._q / self._leaning, (1 - self._q) / self._leaning], dtype=np.float32)
        return np.take(values, ones, mode="clip")

    def frequencies(self, sent: npt.ArrayLike) -> Floats:
        """Return (k,) unbiased frequencies of k categories from (n, bytes) uint8 of `send`; some may be below 0."""
        array = self.check_sent(sent)
        counts = np.zeros(self.dimension, dtype=np.int64)
        step = max(1, _BITS_AT_ONCE // self.dimension)
        for start in range(0, len(array), step):
            ones = np.unpackbits(array[start : start + step], axis=1, count=self.dimension)
            counts += ones.sum(axis=0, dtype=np.int64)
        shares: Floats = (counts - len(array) * self._q).astype(np.float64)
        return shares / (self._leaning * max(len(array), 1))

    def debiased_second_moment(self, moment: Floats) -> Floats:
        """Solve E[z_i^2] = v_0 + (1 + v_1 - v_0) x_i for the diagonal, x of a one-hot x x^T, which is 0 elsewhere."""
        rate = (1 - 2 * self._q) / self._leaning  # 1 + v_1 - v_0, whose terms are huge at small budgets
        return np.diag((np.diag(moment) - self._variance_of_zero) / rate)

    def parameters(self) -> dict[str, Parameter]:
        return {"one_threshold": self.one, "zero_threshold": self.zero}


class UnaryRandomizer(BitRandomizer):
    """A unary encoding, with its estimate of frequencies."""

    domains: ClassVar[tuple[Domain, ...]] = (Domain.ONE_HOT,)

    def frequencies(self, sent: npt.ArrayLike, dimension: int) -> Floats:
        """See `UnaryChannel.frequencies`: from the bits of `send` for vectors of this dimension."""
        channel = self.channel(dimension)
        assert isinstance(channel, UnaryChannel)
        return channel.frequencies(sent)


@dataclass(frozen=True, kw_only=True)
class SymmetricUnary(UnaryRandomizer):
    """SUE, the basic RAPPOR: each bit of a one-hot vector is flipped with the same probability. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, equation (unary) of this
    module with p = 1 - q, from realised thresholds of 32 bits: at most ``epsilon``. Exact.

    Input: (n, k), k >= 2; the largest coordinate of a row counts, the first in a tie. Output: (n, k) float32, or the
    bits themselves (`send`, `decode`, `frequencies`). E||z - x||^2 = k q (1 - q) / (1 - 2q)^2, q = 1 / (1 + e^(eps/2)).

    Raises:
        ParameterError: from `channel`: k is below 2, or the budget below 1e-9 nats per bit.

    Source: Erlingsson, Pihur and Korolova 2014; Wang, Blocki, Li and Jha 2017, section 4.3.

    >>> round(SymmetricUnary(epsilon=4.0).expected_squared_error(10), 3)
    1.81
    """

    name: ClassVar[str] = "SymmetricUnary"

    def _calibrate(self, dimension: int) -> UnaryChannel:
        zero = flip_threshold(asked_less_rounding(self.epsilon) / 2)
        return UnaryChannel(self.name, dimension, SCALE - zero, zero)


@dataclass(frozen=True, kw_only=True)
class OptimizedUnary(UnaryRandomizer):
    """OUE: the true bit is 1 with probability 1/2, the others are 1 as rarely as the budget allows. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, equation (unary) of this
    module with p = 1/2, from the realised threshold of 32 bits: at most ``epsilon``. Exact. It holds for one-hot
    vectors only: for other bits the same probabilities have a far larger loss.

    Input, output, errors: as for `SymmetricUnary`. E||z - x||^2 = (1/4 + (k - 1) q (1 - q)) / (1/2 - q)^2 with
    q = 1 / (1 + e^eps): less than SUE's where k is large.

    Source: Wang, Blocki, Li and Jha 2017, section 4.3.

    >>> round(OptimizedUnary(epsilon=4.0).expected_squared_error(100), 3)
    8.602
    """

    name: ClassVar[str] = "OptimizedUnary"

    def _calibrate(self, dimension: int) -> UnaryChannel:
        return UnaryChannel(self.name, dimension, SCALE // 2, flip_threshold(asked_less_rounding(self.epsilon)))
