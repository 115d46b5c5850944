"""SUE, OUE and OME as *Towards Differentially Private Text Representations* prints them (Lyu, Li, He and Xiao 2020).

Derivation: docs/mechanisms/published-protocols.md#representations-published-protocols
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.checks import choice, number, whole
from dptext.errors import ParameterError
from dptext.noise.bits import asked_less_rounding, fine_threshold, losses_of_a_bit, stated, uneven_bits
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.domains import Domain, Floats, checked_vectors
from dptext.representations.published.claim import Finding, Published, PublishedChannel
from dptext.representations.published.codes import CODES, Bits, Code, most_telling_pair, z_scores
from dptext.representations.randomizer import BitChannel, BitRandomizer, Private, Sent, in_blocks

__all__ = ["OME", "OUE", "SUE", "FlippedBits", "oue_chances", "p1", "p2", "q", "sue_chances"]

Numbers: TypeAlias = float | npt.NDArray[np.float64]


def p1(lambda_: Numbers) -> Numbers:
    """OME's p for even bits, lambda / (1 + lambda): equation (2).

    >>> round(p1(100.0), 4)
    0.9901
    """
    return lambda_ / (1 + lambda_)


def p2(lambda_: Numbers) -> Numbers:
    """OME's p for odd bits, 1 / (1 + lambda^3): equation (2).

    >>> p2(1.0)
    0.5
    """
    return 1 / (1 + lambda_**3)


def q(epsilon: Numbers, lambda_: Numbers, bits: int) -> Numbers:
    """OME's q, 1 / (1 + lambda e^(epsilon / rl)), rl the number of bits that are sent: equation (3).

    >>> [round(float(q(epsilon, 100.0, 500)), 6) for epsilon in (0.5, 10.0)]
    [0.009891, 0.009707]
    """
    chance: Numbers = 1 / (1 + lambda_ * np.exp(epsilon / bits))
    return chance


def sue_chances(epsilon: Numbers, sensitivity: float) -> tuple[Numbers, Numbers]:
    """p and q of symmetric unary encoding: e^(epsilon / D) / (1 + e^(epsilon / D)), and 1 less that.

    >>> [round(float(each), 4) for each in sue_chances(1.0, 100.0)]
    [0.5025, 0.4975]
    """
    chance = 1 / (1 + np.exp(epsilon / sensitivity))
    return 1 - chance, chance


def oue_chances(epsilon: Numbers, sensitivity: float) -> tuple[Numbers, Numbers]:
    """p and q of optimised unary encoding: 1/2, and 1 / (1 + e^(epsilon / D)).

    >>> [round(float(each), 4) for each in oue_chances(1.0, 100.0)]
    [0.5, 0.4975]
    """
    chance = 1 / (1 + np.exp(epsilon / sensitivity))
    return chance * 0 + 0.5, chance


_BITS_AT_ONCE = 1 << 16
_BITS_A_TASK = 1 << 20
_MOST_LAMBDA = 1e4  # 1 / (1 + lambda^3) is 1e-12 there

Chances = tuple[tuple[float, float], tuple[float, float]]
"""(p, q) of the even bits and of the odd ones."""


class FlippedBits(BitChannel, PublishedChannel):
    """One of the protocols for vectors of r numbers."""

    expected_squared_error = math.inf  # bits estimate no vector

    def __init__(self, protocol: _Protocol, dimension: int, chances: Chances) -> None:
        self.name = protocol.name
        self.dimension, self.length = dimension, protocol.bits
        self.width = self.bits = dimension * protocol.bits
        self.per_vector = protocol.scores == "vector"
        self.domain = Domain.SPHERE if self.per_vector else Domain.CUBE
        self.code: Code = CODES[protocol.code]
        self._unit = float(1 << protocol.integer_bits)
        thresholds = [(fine_threshold(float(p)), fine_threshold(float(q))) for p, q in chances]
        losses = [losses_of_a_bit(one, zero) for one, zero in thresholds]
        parity = np.arange(self.bits) % 2
        self.one, self.zero = (
            np.array([each[which] for each in thresholds], dtype=np.uint64)[parity] for which in (0, 1)
        )
        self.up, self.down = (np.array([each[which] for each in losses])[parity] for which in (0, 1))
        self._chances = chances
        self.finding = self._find(protocol)
        self.guarantee = PureDP(self.finding.bound)

    # -- what is true ------------------------------------------------------------------------------------------

    def _find(self, protocol: _Protocol) -> Finding:
        shape = (self.dimension, self.length)
        codes = self.code.worst_pair(self.up.reshape(shape), self.down.reshape(shape))
        bound = stated(self._loss(codes))
        every = f"any two vectors of {self.dimension} numbers in {self.code.name} code of {self.length} bits"
        if self.per_vector:
            self.witness = most_telling_pair(
                self.code_of,
                self.up,
                self.down,
                dimension=self.dimension,
                length=self.length,
                integer_bits=protocol.integer_bits,
            )
            first, second = (self.code_of(each[None]).reshape(shape) for each in self.witness)
            codes = (first, second)
            attained = self._loss(codes)
            holds_for = f"{every}; z-scores of one vector reach only some of the codes, so it is an upper bound"
        else:
            self.witness = (self.code.numbers_of(codes[0]), self.code.numbers_of(codes[1]))
            attained = bound
            holds_for = f"{every}, attained: moments are public, so every code occurs"
        shown = [" ".join("".join(map(str, row.astype(int))) for row in each[:2]) for each in codes]
        more = " ..." if self.dimension > 2 else ""
        return Finding(
            claimed=protocol.epsilon,
            bound=bound,
            attained=attained,
            reason=protocol.flaw,
            holds_for=holds_for,
            witness=f"the codes {shown[0]}{more} and {shown[1]}{more} (channel({self.dimension}).witness)",
        )

    def _loss(self, codes: tuple[Bits, Bits]) -> float:
        """The largest log-ratio of the first against the second, over all outputs: bits are independent and add."""
        first, second = (each.reshape(-1) for each in codes)
        return math.fsum(np.where(first & ~second, self.up, np.where(second & ~first, self.down, 0.0)).tolist())

    def code_of(self, vectors: Floats) -> Bits:
        """(n, rl) bits of (n, r) vectors before the flips. *Not private.*"""
        return self._code(self.domain.bound(vectors))

    def _code(self, bounded: Floats) -> Bits:
        numbers = z_scores(bounded) / self._unit if self.per_vector else bounded
        return self.code.bits_of(numbers, self.length).reshape(len(bounded), self.bits)

    def noiseless(self, vectors: npt.ArrayLike) -> Floats:
        """(n, rl) bits before the flips, as numbers. *Not private.*"""
        return self.code_of(checked_vectors(vectors, self.dimension)).astype(np.float64)

    # -- what is sent ------------------------------------------------------------------------------------------

    def _send(self, vectors: Floats, bits: RandomBits) -> Sent:
        sent = np.empty((len(vectors), self.bytes), dtype=np.uint8)

        def fill(rows: slice, stream: RandomBits) -> None:
            sent[rows] = uneven_bits(stream, np.packbits(self._code(vectors[rows]), axis=1), self.one, self.zero)

        rows = max(1, _BITS_AT_ONCE // self.bits)
        in_blocks(fill, len(vectors), bits, rows=rows, blocks=max(1, _BITS_A_TASK // (rows * self.bits)))
        return sent

    def _decode(self, sent: Sent) -> Private:
        private = np.empty((len(sent), self.bits), dtype=np.float32)
        step = max(1, _BITS_A_TASK // self.bits)
        for start in range(0, len(sent), step):
            private[start : start + step] = np.unpackbits(sent[start : start + step], axis=1, count=self.bits)
        return private

    def parameters(self) -> dict[str, Parameter]:
        """The chances, and what is known of the printed epsilon."""
        even, odd = self._chances
        return {
            "p_even": float(even[0]),
            "p_odd": float(odd[0]),
            "q": float(even[1]),
            **self.finding.parameters(),
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class _Protocol(Published, BitRandomizer):
    """Numbers to bits, bits flipped."""

    domains: ClassVar[tuple[Domain, ...]] = (Domain.SPHERE, Domain.CUBE)
    instead: ClassVar[str] = "WeightedBits or OneBit, which send bits with a proof, or PrivUnit"

    bits: int = 10
    integer_bits: int = 4
    code: str = "sign-magnitude"
    scores: str = "vector"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("code", self.code, CODES)
        choice("scores", self.scores, ("vector", "public"))
        object.__setattr__(self, "bits", whole("bits", self.bits, least=2, most=CODES[self.code].most))
        most = self.bits - 1 if self.code == "sign-magnitude" else 15
        object.__setattr__(self, "integer_bits", whole("integer_bits", self.integer_bits, least=0, most=most))

    @property
    def natural_domain(self) -> Domain:
        """Any length where a vector is divided by its own deviation; the cube where moments are public."""
        return Domain.SPHERE if self.scores == "vector" else Domain.CUBE

    @abstractmethod
    def chances(self, dimension: int) -> Chances:
        """(p, q) of the even bits and of the odd ones."""

    def _calibrate(self, dimension: int) -> FlippedBits:
        if self.scores == "vector" and dimension < 2:
            raise ParameterError(
                "the z-scores of one number by itself are always 0: expected a dimension of at least 2"
            )
        return FlippedBits(self, dimension, self.chances(dimension))

    def channel(self, dimension: int) -> FlippedBits:
        """See `Published.channel`."""
        channel = super().channel(dimension)
        assert isinstance(channel, FlippedBits)
        return channel


@dataclass(frozen=True, kw_only=True, repr=False)
class SUE(_Protocol):
    """Symmetric unary encoding on the paper's code: every bit kept with p = e^(eps / 2r) / (1 + e^(eps / 2r)).

    **Guarantee** (unit: one vector; substitution; local): pure equation (true) of this module, from realised thresholds
    of 64 bits, as the statement says; exact. On one-hot code it is the printed epsilon; on the code of l bits, of which
    all may differ, it is epsilon l / 2.

    Input: (n, r) vectors. Output: (n, rl) float32 bits, 0 or 1, number by number (or the packed bits: `send`).

    Args:
        epsilon: as printed; it is divided by 2r.
        bits: l; with ``integer_bits`` m of them (and the rest but the sign) for the fraction.
        integer_bits: m; in one-hot code parts of [-2^m, 2^m] are distinguished.
        code: ``"sign-magnitude"``, the paper's, or ``"one-hot"``; see `codes`.
        scores: ``"vector"`` takes the z-scores of each vector by its own mean and deviation; ``"public"`` expects
            numbers of the cube, z-scores by public moments over 2^m (`public_z_scores`).
        others: see `Published`.

    Raises:
        ParameterError: from `channel`: chances that 64 bits do not hold.

    Sources: the paper, section 2.2; Wang, Blocki, Li and Jha 2017. For one-hot vectors: `SymmetricUnary`.

    >>> statement = SUE(epsilon=1.0, dimension=50, unsafe_as_published=True).statement()
    >>> round(statement.epsilon, 6), statement.claimed_epsilon
    (5.0, 1.0)
    """

    name: ClassVar[str] = "SUE"
    flaw: ClassVar[str] = (
        "epsilon is divided by 2r, the sensitivity of r one-hot codes, but two vectors in r codes of l bits may differ "
        "in all rl bits"
    )

    def chances(self, dimension: int) -> Chances:
        """The same for all bits."""
        p, q = sue_chances(asked_less_rounding(self.epsilon), 2 * dimension)
        return (float(p), float(q)), (float(p), float(q))


@dataclass(frozen=True, kw_only=True, repr=False)
class OUE(_Protocol):
    """Optimised unary encoding on the paper's code: p = 1/2 and q = 1 / (1 + e^(eps / 2r)).

    **Guarantee**, input, output, arguments, errors: as for `SUE`. On one-hot code half of the printed epsilon is true
    (the two bits in which two codes differ lose eps / 2r together); on that of l bits rl ln((1 + e^(eps / 2r)) / 2).

    Sources: as for `SUE`. For one-hot vectors: `OptimizedUnary`.

    >>> statement = OUE(epsilon=1.0, dimension=50, unsafe_as_published=True).statement()
    >>> round(statement.epsilon, 3), statement.parameters["claim_is"]
    (2.506, 'false')
    """

    name: ClassVar[str] = "OUE"
    flaw: ClassVar[str] = SUE.flaw

    def chances(self, dimension: int) -> Chances:
        """The same for all bits."""
        p, q = oue_chances(asked_less_rounding(self.epsilon), 2 * dimension)
        return (float(p), float(q)), (float(p), float(q))


@dataclass(frozen=True, kw_only=True, repr=False)
class OME(_Protocol):
    """Optimised multiple encoding: p alternates between lambda / (1 + lambda) and 1 / (1 + lambda^3).

    **Guarantee** (unit: one vector; substitution; local): pure equation (true) of this module, from realised thresholds
    of 64 bits, as the statement says; exact. With public moments it is attained, and (OME) is its closed form for even
    rl; with z-scores of each vector by itself some codes cannot occur, and it is an upper bound (what the witness of
    the statement loses is a lower one).

    Input, output, other arguments: as for `SUE`.

    Args:
        lambda_: the randomisation factor, from 1 to 10,000. (At 1 the printed epsilon does hold: half of it is true.)

    Source: the paper, section 3.1.

    >>> ome = OME(epsilon=1.0, lambda_=100, dimension=50, bits=10, unsafe_as_published=True)
    >>> round(ome.statement().epsilon, 1), ome.statement().claimed_epsilon
    (3451.4, 1.0)
    >>> ome.randomize([[0.1] * 25 + [-0.3] * 25]).shape
    (1, 500)
    """

    name: ClassVar[str] = "OME"
    flaw: ClassVar[str] = (
        "Theorem 1 multiplies the worst ratio of the even bits by the reciprocal of that of the odd bits, as if one "
        "would make up for the other; two vectors attain the worst of both"
    )

    lambda_: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lambda_", number("lambda_", self.lambda_, least=1, most=_MOST_LAMBDA))

    def chances(self, dimension: int) -> Chances:
        """(p1, q) and (p2, q)."""
        raised = float(q(asked_less_rounding(self.epsilon), self.lambda_, dimension * self.bits))
        return (float(p1(self.lambda_)), raised), (float(p2(self.lambda_)), raised)
