"""SUE, OUE and OME as printed (Lyu, Li, He and Xiao 2020), their codes and claims.

Derivation: docs/mechanisms/published-protocols.md#representations-published-codes
Derivation: docs/mechanisms/published-protocols.md#representations-published-protocols
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, RefusedError
from dptext.noise.discrete import asked_less_rounding, fine_threshold, losses_of_a_bit, round_up_epsilon, uneven_bits
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Finding, Parameter, PrivacyStatement
from dptext.representations.bounds import Domain, Floats, check_vectors
from dptext.representations.randomizer import BitChannel, BitRandomizer, Channel, Randomizer, Sent, in_blocks
from dptext.validation import check_choice, check_float, check_int

Bits = npt.NDArray[np.bool_]
Numbers: TypeAlias = float | Floats
Chances = tuple[tuple[float, float], tuple[float, float]]
"""(p, q) of the even bits and of the odd ones."""

_CODE = "sign-magnitude"
_ROUNDING = 1e-12  # differences between equal coordinates of vectors of length 1
_BITS_AT_ONCE = 1 << 16
_BITS_PER_TASK = 1 << 20
_MAX_LAMBDA = 1e4  # 1 / (1 + lambda^3) is 1e-12 there


class PublishedChannel(Channel):
    """A published mechanism for vectors of one dimension, with two vectors that refute its claim."""

    finding: Finding
    witness: tuple[Floats, Floats]


@dataclass(frozen=True, kw_only=True, repr=False)
class Published(Randomizer):
    """A mechanism exactly as published.

    ``epsilon`` is the printed one, the statement has the proved one; ``dimension`` is the vectors' dimension, or None;
    ``unsafe_as_published`` must be True. ``flaw`` says why the printed epsilon does not hold, ``instead`` names
    mechanisms with a proof.
    """

    flaw: ClassVar[str]
    instead: ClassVar[str]

    dimension: int | None = None
    unsafe_as_published: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unsafe_as_published is not True:
            raise RefusedError(
                f"{self.name} does not satisfy the epsilon of its paper: {self.flaw}. Use {self.instead}; or, to "
                "compare with the paper, unsafe_as_published=True: the statement then has the true epsilon"
            )
        if self.dimension is not None:
            object.__setattr__(self, "dimension", check_int("dimension", self.dimension, minimum=1))

    def channel(self, dimension: int) -> PublishedChannel:
        """See `Randomizer.channel`; `ParameterError` for another dimension than ``dimension``."""
        if self.dimension is not None and dimension != self.dimension:
            raise ParameterError(f"{self.name} was built for vectors of {self.dimension} numbers, got {dimension}")
        channel = super().channel(dimension)
        assert isinstance(channel, PublishedChannel)
        return channel

    def statement(self, dimension: int | None = None, *, seeded: bool = False) -> PrivacyStatement:
        """Return the statement for one vector, with the printed epsilon as ``claimed_epsilon``."""
        target = self.dimension if dimension is None else dimension
        if target is None:
            raise ParameterError(f"the loss of {self.name} depends on the dimension: pass it, as in statement(50)")
        return super().statement(target, seeded=seeded).replace(claimed_epsilon=self.epsilon)


def alternating(dimension: int) -> Floats:
    """Return 1, -1, 1, -1, ..."""
    return np.where(np.arange(dimension) % 2, -1.0, 1.0)


# -- codes ---------------------------------------------------------------------------------------------------------


MAX_BITS = 16


def bits_of(numbers: Floats, length: int) -> Bits:
    """Return (..., l) bits: sign and fixed-point magnitude of numbers between -1 and 1."""
    size = 1 << (length - 1)
    codes = np.minimum(np.floor(np.abs(numbers) * size), size - 1).astype(np.uint16)
    codes |= (numbers < 0).astype(np.uint16) << np.uint16(length - 1)
    ones = np.unpackbits(codes.astype(">u2").view(np.uint8).reshape(*numbers.shape, 2), axis=-1)
    return ones[..., 16 - length :].astype(bool)


def numbers_of(bits: Bits) -> Floats:
    """Return (r,) numbers with these (r, l) codes."""
    places = bits.shape[1] - 1
    magnitudes = (bits[:, 1:] @ 2.0 ** np.arange(places - 1, -1, -1) + 0.5) / (1 << places)
    numbers: Floats = np.where(bits[:, 0], -magnitudes, magnitudes)
    return numbers


def z_scores(vectors: Floats) -> Floats:
    """Return (n, d) z-scores of vectors of length 1 by their own mean and deviation; zeros for a constant vector."""
    scores: Floats = vectors - vectors.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("ij,ij->i", scores, scores) / scores.shape[1])
    scores /= np.where(spread > _ROUNDING, spread, np.inf)[:, None]
    scores += 0.0  # no minus zero where nothing is negative
    return scores


# -- two vectors with a large loss ---------------------------------------------------------------------------------

_PATTERNS = 6  # every pattern of this many bits is tried; lower bits repeat
_BESIDE_ONE = 1e-9
_FEW = 8  # up to this many numbers, directions all over the sphere are tried
_DIRECTIONS = 1 << 11
_MAX_BITS_SEARCHED = 1 << 21  # of all vectors together


def most_telling_pair(
    code_of: Callable[[Floats], Bits], up: Floats, down: Floats, *, dimension: int, length: int, integer_bits: int
) -> tuple[Floats, Floats]:
    """Return the two vectors of the search whose codes have the largest loss."""
    vectors = _candidates(dimension, _sizes(length, integer_bits), integer_bits)
    if dimension <= _FEW:
        vectors = np.concatenate([vectors, RandomBits(0).normal(_DIRECTIONS, dimension)])
    if vectors.size * length > _MAX_BITS_SEARCHED:
        vectors = vectors[:: -(-vectors.size * length // _MAX_BITS_SEARCHED)]
    codes, places = np.unique(code_of(vectors), axis=0, return_index=True)
    ones = codes.astype(np.float32)
    losses = (ones * up.astype(np.float32)) @ (1 - ones).T + ((1 - ones) * down.astype(np.float32)) @ ones.T
    first, second = np.unravel_index(int(losses.argmax()), losses.shape)
    return vectors[places[first]], vectors[places[second]]


def _sizes(length: int, integer_bits: int) -> Floats:
    """Return absolute values of z-scores that differ in their codes."""
    worth = float(1 << integer_bits) * 2.0 ** -np.arange(1, length)
    below, step = worth[worth < 1], worth[-1]
    tried = min(below.size, _PATTERNS)
    heads = np.arange(1 << tried)[:, None] >> np.arange(tried - 1, -1, -1) & 1
    tails = np.array([np.resize(entry, below.size - tried) for entry in ([1, 0], [0, 1], [0, 0], [1, 1])])
    ones = np.concatenate([np.repeat(heads, len(tails), axis=0), np.tile(tails, (len(heads), 1))], axis=1)
    # the midpoint of the numbers with these bits; a number without bits below 1 becomes 0
    sizes = ones @ below + min(step, 1.0) / 2
    return np.unique(np.append(sizes[sizes <= 1], [1 - _BESIDE_ONE, 1.0, 1 + _BESIDE_ONE]))


def _candidates(dimension: int, sizes: Floats, integer_bits: int) -> Floats:
    """Return vectors of numbers of one or two sizes, balanced in two ways; two numbers make the mean square 1."""
    paired = dimension - dimension % 2
    room = paired - 2
    results = [np.full(dimension, size) for size in sizes if size * size * room <= dimension]
    small = sizes[[0, len(sizes) // 3, 2 * len(sizes) // 3]]
    for size in (side * 2.0**bit for bit in range(1, integer_bits) for side in (1 - _BESIDE_ONE, 1 + _BESIDE_ONE)):
        for other in small[small < 1]:
            maximum = int((dimension - room * other**2) / (size**2 - other**2)) // 2 * 2
            counts = {min(maximum, room), min(maximum, room) // 4 * 2} - {0}
            results += [np.where(np.arange(dimension) < count, size, other) for count in sorted(counts)]
    vectors = np.array(results)
    vectors[:, room:paired] = np.sqrt(np.maximum(dimension - (vectors[:, :room] ** 2).sum(axis=1), 0.0) / 2)[:, None]
    signs = [_balanced(dimension, run) for run in (1, 2)]
    return np.concatenate([side * vectors for sign in signs for side in (sign, -sign)])


def _balanced(dimension: int, run: int) -> Floats:
    """Return signs that alternate in runs and add up to 0."""
    signs = 1.0 - 2.0 * (np.arange(dimension) // run % 2).astype(np.float64)
    paired = dimension - dimension % 2
    signs[paired - 2 :] = 0.0
    signs[paired - 2 : paired] = [1, -1]
    if signs.sum():  # an odd number of pairs before them
        signs[paired - 4 : paired - 2] = [1, -1]
    return signs


# -- probabilities as printed --------------------------------------------------------------------------------------


def p1(lambda_: Numbers) -> Numbers:
    """Return OME's p for even bits, lambda / (1 + lambda): equation (2).

    >>> round(p1(100.0), 4)
    0.9901
    """
    return lambda_ / (1 + lambda_)


def p2(lambda_: Numbers) -> Numbers:
    """Return OME's p for odd bits, 1 / (1 + lambda^3): equation (2).

    >>> p2(1.0)
    0.5
    """
    return 1 / (1 + lambda_**3)


def q(epsilon: Numbers, lambda_: Numbers, bits: int) -> Numbers:
    """Return OME's q, 1 / (1 + lambda e^(epsilon / rl)), rl the number of bits that are sent: equation (3).

    >>> [round(float(q(epsilon, 100.0, 500)), 6) for epsilon in (0.5, 10.0)]
    [0.009891, 0.009707]
    """
    return 1 / (1 + lambda_ * np.exp(epsilon / bits))


def sue_chances(epsilon: Numbers, sensitivity: float) -> tuple[Numbers, Numbers]:
    """Return p and q of symmetric unary encoding: e^(epsilon / D) / (1 + e^(epsilon / D)), and 1 - p.

    >>> [round(float(chance), 4) for chance in sue_chances(1.0, 100.0)]
    [0.5025, 0.4975]
    """
    chance = 1 / (1 + np.exp(epsilon / sensitivity))
    return 1 - chance, chance


def oue_chances(epsilon: Numbers, sensitivity: float) -> tuple[Numbers, Numbers]:
    """Return p and q of optimised unary encoding: 1/2, and 1 / (1 + e^(epsilon / D)).

    >>> [round(float(chance), 4) for chance in oue_chances(1.0, 100.0)]
    [0.5, 0.4975]
    """
    chance = 1 / (1 + np.exp(epsilon / sensitivity))
    return chance * 0 + 0.5, chance


# -- the protocols -------------------------------------------------------------------------------------------------


class FlippedBits(BitChannel, PublishedChannel):
    """One of the protocols for vectors of r numbers."""

    expected_squared_error = math.inf  # bits estimate no vector

    def __init__(self, protocol: _Protocol, dimension: int, chances: Chances) -> None:
        self.name = protocol.name
        self.dimension, self.length = dimension, protocol.bits
        self.width = self.bits = dimension * protocol.bits
        self.per_vector = protocol.scores == "vector"
        self.domain = Domain.SPHERE if self.per_vector else Domain.CUBE
        self._unit = float(1 << protocol.integer_bits)
        thresholds = [(fine_threshold(float(p)), fine_threshold(float(q))) for p, q in chances]
        losses = [losses_of_a_bit(one, zero) for one, zero in thresholds]
        parity = np.arange(self.bits) % 2
        self.one, self.zero = (np.array(column, dtype=np.uint64)[parity] for column in zip(*thresholds, strict=True))
        self.up, self.down = (np.array(column)[parity] for column in zip(*losses, strict=True))
        self._chances = chances
        self.finding = self._find(protocol)
        self.guarantee = PureDP(self.finding.bound)

    def _find(self, protocol: _Protocol) -> Finding:
        """Return the true epsilon and the two vectors that show it."""
        shape = (self.dimension, self.length)
        codes = ((self.up >= self.down).reshape(shape), (self.up < self.down).reshape(shape))  # every bit at its worst
        bound = attained = round_up_epsilon(self._loss(codes))
        holds_for = f"any two vectors of {self.dimension} numbers in {_CODE} code of {self.length} bits"
        if self.per_vector:
            sizes = {"dimension": self.dimension, "length": self.length, "integer_bits": protocol.integer_bits}
            self.witness = most_telling_pair(self.code_of, self.up, self.down, **sizes)
            first, second = (self.code_of(entry[None]).reshape(shape) for entry in self.witness)
            codes = (first, second)
            attained = self._loss(codes)
            holds_for += "; z-scores of one vector reach only some of the codes, so it is an upper bound"
        else:
            self.witness = (numbers_of(codes[0]), numbers_of(codes[1]))
            holds_for += ", attained: moments are public, so every code occurs"
        visible = [" ".join("".join(map(str, row.astype(int))) for row in code[:2]) for code in codes]
        more = " ..." if self.dimension > 2 else ""
        return Finding(
            claimed=protocol.epsilon,
            bound=bound,
            attained=attained,
            reason=protocol.flaw,
            holds_for=holds_for,
            witness=f"the codes {visible[0]}{more} and {visible[1]}{more} (channel({self.dimension}).witness)",
        )

    def _loss(self, codes: tuple[Bits, Bits]) -> float:
        """Return the largest log-ratio of the first to the second over all outputs: independent bits add up."""
        first, second = (code.reshape(-1) for code in codes)
        return math.fsum(np.where(first & ~second, self.up, np.where(second & ~first, self.down, 0.0)).tolist())

    def code_of(self, vectors: Floats) -> Bits:
        """Return (n, rl) bits of (n, r) vectors before the flips. *Not private.*"""
        return self._code(self.domain.bound(vectors))

    def _code(self, bounded: Floats) -> Bits:
        numbers = z_scores(bounded) / self._unit if self.per_vector else bounded
        return bits_of(numbers, self.length).reshape(len(bounded), self.bits)

    def noiseless(self, vectors: npt.ArrayLike) -> Floats:
        """Return (n, rl) bits before the flips, as numbers. *Not private.*"""
        return self.code_of(check_vectors(vectors, self.dimension)).astype(np.float64)

    def _send(self, vectors: Floats, bits: RandomBits) -> Sent:
        sent = np.empty((len(vectors), self.bytes), dtype=np.uint8)

        def fill(rows: slice, stream: RandomBits) -> None:
            sent[rows] = uneven_bits(stream, np.packbits(self._code(vectors[rows]), axis=1), self.one, self.zero)

        rows = max(1, _BITS_AT_ONCE // self.bits)
        in_blocks(fill, len(vectors), bits, rows=rows, blocks=max(1, _BITS_PER_TASK // (rows * self.bits)))
        return sent

    def _values(self, ones: Sent) -> Sent:
        return ones

    def parameters(self) -> dict[str, Parameter]:
        even, odd = self._chances
        chances = {"p_even": float(even[0]), "p_odd": float(odd[0]), "q": float(even[1])}
        return {"code": _CODE, **chances, **self.finding.parameters()}


@dataclass(frozen=True, kw_only=True, repr=False)
class _Protocol(Published, BitRandomizer):
    """Numbers to bits, bits flipped."""

    domains: ClassVar[tuple[Domain, ...]] = (Domain.SPHERE, Domain.CUBE)
    instead: ClassVar[str] = "WeightedBits or OneBit, which send bits with a proof, or PrivUnit"

    bits: int = 10
    integer_bits: int = 4
    scores: str = "vector"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scores", self.scores, ("vector", "public"))
        object.__setattr__(self, "bits", check_int("bits", self.bits, minimum=2, maximum=MAX_BITS))
        integer_bits = check_int("integer_bits", self.integer_bits, minimum=0, maximum=self.bits - 1)
        object.__setattr__(self, "integer_bits", integer_bits)

    @property
    def natural_domain(self) -> Domain:
        return Domain.SPHERE if self.scores == "vector" else Domain.CUBE

    @abstractmethod
    def chances(self, dimension: int) -> Chances:
        """Return (p, q) of the even bits and of the odd ones."""

    def _calibrate(self, dimension: int) -> FlippedBits:
        if self.scores == "vector" and dimension < 2:
            raise ParameterError("dimension must be at least 2: the z-score of a single number is always 0")
        return FlippedBits(self, dimension, self.chances(dimension))


@dataclass(frozen=True, kw_only=True, repr=False)
class SUE(_Protocol):
    """Symmetric unary encoding on the paper's code: every bit kept with p = e^(eps / 2r) / (1 + e^(eps / 2r)).

    **Guarantee** (unit: one vector; substitution; local): pure equation (true) of this module, from realised thresholds
    of 64 bits, as the statement says; exact. It is epsilon l / 2, because all l bits of a code may differ.

    Input: (n, r) vectors. Output: (n, rl) float32 bits, 0 or 1, number by number (or the packed bits: `send`).

    Args:
        epsilon: as printed; it is divided by 2r.
        bits: l, one of them for the sign.
        integer_bits: m of the others, for the integer part; the remaining ones are the fraction.
        scores: ``"vector"`` uses the z-scores of each vector by its own mean and deviation; ``"public"`` expects
            numbers of the cube: z-scores by the moments of public vectors, over 2^m.
        others: see `Published`.

    Raises:
        ParameterError: from `channel`: 64 bits cannot represent the probabilities.

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
        p, q = sue_chances(asked_less_rounding(self.epsilon), 2 * dimension)
        return ((float(p), float(q)),) * 2


@dataclass(frozen=True, kw_only=True, repr=False)
class OUE(_Protocol):
    """Optimised unary encoding on the paper's code: p = 1/2 and q = 1 / (1 + e^(eps / 2r)).

    **Guarantee**, input, output, arguments, errors: as for `SUE`; it is rl ln((1 + e^(eps / 2r)) / 2).

    Sources: as for `SUE`. For one-hot vectors: `OptimizedUnary`.

    >>> statement = OUE(epsilon=1.0, dimension=50, unsafe_as_published=True).statement()
    >>> round(statement.epsilon, 3), statement.parameters["claim_is"]
    (2.506, 'false')
    """

    name: ClassVar[str] = "OUE"
    flaw: ClassVar[str] = SUE.flaw

    def chances(self, dimension: int) -> Chances:
        p, q = oue_chances(asked_less_rounding(self.epsilon), 2 * dimension)
        return ((float(p), float(q)),) * 2


@dataclass(frozen=True, kw_only=True, repr=False)
class OME(_Protocol):
    """Optimised multiple encoding: p alternates between lambda / (1 + lambda) and 1 / (1 + lambda^3).

    **Guarantee** (unit: one vector; substitution; local): pure equation (true) of this module, from realised thresholds
    of 64 bits, as the statement says; exact. With public moments it is attained, and (OME) is its closed form for even
    rl; with separate z-scores per vector some codes cannot occur, and it is an upper bound (the loss of the statement's
    witness is a lower one).

    Input, output, other arguments: as for `SUE`.

    Args:
        lambda_: the randomisation factor, from 1 to 10,000. (At 1 the printed epsilon holds: it is twice the true one.)

    Source: the paper, section 3.1.

    >>> ome = OME(epsilon=1.0, lambda_=100, dimension=50, bits=10, unsafe_as_published=True)
    >>> round(ome.statement().epsilon, 1), ome.statement().claimed_epsilon
    (3451.4, 1.0)
    >>> ome.randomize([[0.1] * 25 + [-0.3] * 25]).shape
    (1, 500)
    """

    name: ClassVar[str] = "OME"
    flaw: ClassVar[str] = (
        "Theorem 1 multiplies the largest ratio of the even bits by the reciprocal of that of the odd bits, as if one "
        "compensated for the other; two vectors attain both"
    )

    lambda_: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lambda_", check_float("lambda_", self.lambda_, minimum=1, maximum=_MAX_LAMBDA))

    def chances(self, dimension: int) -> Chances:
        raised = float(q(asked_less_rounding(self.epsilon), self.lambda_, dimension * self.bits))
        return (float(p1(self.lambda_)), raised), (float(p2(self.lambda_)), raised)
