"""One of k things as k noisy bits (unary encoding), and how often each of them occurs.

Derivation: docs/mechanisms/bits.md#representations-unary
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.noise.bits import SCALE, asked_less_rounding, coins, flip_threshold, packed_coins, stated
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.domains import Domain, Floats, checked_vectors
from dptext.representations.randomizer import BitChannel, BitRandomizer, Private, Sent
from dptext.threads import for_each_block

__all__ = ["OptimizedUnary", "SymmetricUnary", "unary_epsilon"]

_NUMBERS = 1 << 14  # worked on at once, so that they stay in the cache
_STEPS_A_TASK = 64
_BITS_AT_ONCE = 1 << 20


def unary_epsilon(one: int, zero: int) -> float:
    """Equation (unary) from the thresholds of p and q."""
    outside = (SCALE - one) * zero
    return math.log1p((one * (SCALE - zero) - outside) / outside)


class UnaryChannel(BitChannel):
    """A channel for one-hot vectors of k >= 2 coordinates."""

    domain = Domain.ONE_HOT

    def __init__(self, name: str, dimension: int, one: int, zero: int) -> None:
        self.name = name
        self.dimension = self.width = self.bits = whole("dimension", dimension, least=2)
        self.one, self.zero = one, zero
        self.guarantee = PureDP(stated(unary_epsilon(one, zero)))
        p, q = one / SCALE, zero / SCALE
        self._q, self._leaning = q, p - q
        self._variance_of_one, self._variance_of_zero = (each * (1 - each) / (p - q) ** 2 for each in (p, q))
        self.expected_squared_error = self._variance_of_one + (dimension - 1) * self._variance_of_zero

    def send(self, vectors: npt.ArrayLike, bits: RandomBits) -> Sent:
        """See `BitChannel.send`; n one-hot copies of the vectors are never held."""
        given = checked_vectors(vectors, self.dimension)
        true = np.empty(len(given), dtype=np.int64)
        step = max(1, _NUMBERS // self.dimension)

        def find(first: int) -> None:
            for start in range(first, min(first + _STEPS_A_TASK * step, len(given)), step):
                rows = slice(start, start + step)
                true[rows] = self.domain.bound(given[rows]).argmax(axis=1)

        for_each_block(find, range(0, len(given), _STEPS_A_TASK * step))
        return self._send_true(true, bits)

    def _send(self, vectors: Floats, bits: RandomBits) -> Sent:
        return self._send_true(vectors.argmax(axis=1), bits)

    def _send_true(self, true: npt.NDArray[np.int64], bits: RandomBits) -> Sent:
        sent = packed_coins(bits, true.size, np.full(self.dimension, self.zero, dtype=np.uint32))
        rows, byte, mask = np.arange(true.size), true >> 3, (128 >> (true & 7)).astype(np.uint8)
        drawn = np.where(coins(bits, true.size, self.one), mask, 0).astype(np.uint8)
        sent[rows, byte] = sent[rows, byte] & ~mask | drawn
        return sent

    def _decode(self, sent: Sent) -> Private:
        values = np.array([-self._q / self._leaning, (1 - self._q) / self._leaning], dtype=np.float32)
        private = np.empty((len(sent), self.dimension), dtype=np.float32)
        step = max(1, _BITS_AT_ONCE // self.dimension)
        for start in range(0, len(sent), step):
            ones = np.unpackbits(sent[start : start + step], axis=1, count=self.dimension)
            np.take(values, ones, out=private[start : start + step], mode="clip")
        return private

    def frequencies(self, sent: npt.ArrayLike) -> Floats:
        """(k,) unbiased shares of the k things among those who sent these (n, bytes) uint8; some may be below 0."""
        array = self.checked_sent(sent)
        counts = np.zeros(self.dimension, dtype=np.int64)
        step = max(1, _BITS_AT_ONCE // self.dimension)
        for start in range(0, len(array), step):
            ones = np.unpackbits(array[start : start + step], axis=1, count=self.dimension)
            counts += ones.sum(axis=0, dtype=np.int64)
        shares: Floats = (counts - len(array) * self._q).astype(np.float64)
        return shares / (self._leaning * max(len(array), 1))

    def debiased_second_moment(self, moment: Floats) -> Floats:
        """x x^T of a one-hot x is x on the diagonal, where E[z_i^2] = v_0 + (1 + v_1 - v_0) x_i; elsewhere it is 0."""
        rate = (1 - 2 * self._q) / self._leaning  # 1 + v_1 - v_0, whose terms are huge at small budgets
        return np.diag((np.diag(moment) - self._variance_of_zero) / rate)

    def parameters(self) -> dict[str, Parameter]:
        """The thresholds of p and q, of 2^32."""
        return {"one_threshold": self.one, "zero_threshold": self.zero}


class UnaryRandomizer(BitRandomizer):
    """What both have in common: the estimate of frequencies."""

    domains: ClassVar[tuple[Domain, ...]] = (Domain.ONE_HOT,)
    is_candidate: ClassVar[bool] = False

    def frequencies(self, sent: npt.ArrayLike, dimension: int) -> Floats:
        """See `UnaryChannel.frequencies`: from the bits that `send` gave for vectors of this dimension."""
        channel = self.channel(dimension)
        assert isinstance(channel, UnaryChannel)
        return channel.frequencies(sent)


@dataclass(frozen=True, kw_only=True)
class SymmetricUnary(UnaryRandomizer):
    """SUE, the basic RAPPOR: each bit of a one-hot vector is flipped with one chance. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, equation (unary) of this
    module with p = 1 - q, from realised thresholds of 32 bits: at most what was asked for. Exact.

    Input: (n, k), k >= 2; the largest coordinate of a row counts, the first of equals. Output: (n, k) float32, or the
    bits themselves (`send`, `decode`, `frequencies`). E||z - x||^2 = k q (1 - q) / (1 - 2q)^2, q = 1 / (1 + e^(eps/2)).

    Raises:
        ParameterError: from `channel`: k below 2; less than 1e-9 nats for a bit.

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
    """OUE: the true bit is a fair coin, the others are as rarely 1 as the budget allows. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, equation (unary) of this
    module with p = 1/2, from the realised threshold of 32 bits: at most what was asked for. Exact. It holds for one-hot
    vectors only: on other bits the same chances cost far more.

    Input, output, errors: as for `SymmetricUnary`. E||z - x||^2 = (1/4 + (k - 1) q (1 - q)) / (1/2 - q)^2 with
    q = 1 / (1 + e^eps): less than SUE's where k is large.

    Source: Wang, Blocki, Li and Jha 2017, section 4.3.

    >>> round(OptimizedUnary(epsilon=4.0).expected_squared_error(100), 3)
    8.602
    """

    name: ClassVar[str] = "OptimizedUnary"

    def _calibrate(self, dimension: int) -> UnaryChannel:
        return UnaryChannel(self.name, dimension, SCALE // 2, flip_threshold(asked_less_rounding(self.epsilon)))
