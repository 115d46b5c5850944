"""Base classes of randomizers: error, guarantee, and a channel for vectors of a given width."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.privacy.guarantee import Guarantee, Relation, Trust, Unit
from dptext.privacy.neighbours import Condition
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, release_statement
from dptext.privacy.wording import Strength
from dptext.representations.bounds import Domain, Floats, check_vectors
from dptext.threads import for_each_block
from dptext.validation import check_float, check_int

Private = npt.NDArray[np.float32]
Sent = npt.NDArray[np.uint8]

MOST_DIMENSIONS = 2**20
_BITS_AT_ONCE = 1 << 20

REAL_ARITHMETIC = (
    "noise in double precision, rounded to a public grid before it is sent, is treated as real-valued noise"
)
"""The assumption of channels whose noise has no exactly discrete form."""


class Channel(ReprMixin, ABC):
    """A randomizer for vectors of one dimension. Frozen, without random state.

    Attributes:
        name: name of the randomizer.
        domain: domain into which all vectors are mapped first.
        dimension: d, the length of an input vector.
        width: k, the length of an output vector.
        guarantee: proved guarantee for any two vectors (substitution, local).
        expected_squared_error: E||z - x||^2 of one output z for a vector x of length 1, the largest over all x.
    """

    name: str
    domain: Domain
    dimension: int
    width: int
    guarantee: Guarantee
    expected_squared_error: float

    def sample(self, vectors: npt.ArrayLike, bits: RandomBits) -> Private:
        """Map (n, d) vectors to (n, k) float32 private ones, each with fresh noise: a new release."""
        values = check_vectors(vectors, self.dimension)
        with np.errstate(all="ignore"):  # no value raises, regardless of the caller's numpy settings
            return self._sample(self.domain.bound(values), bits)

    def noiseless(self, vectors: npt.ArrayLike) -> Floats:
        """Map (n, d) *public* vectors to outputs without noise; `ParameterError` if impossible. *Not private.*"""
        if self.width != self.dimension:
            raise ParameterError(f"the outputs of {self.name} are not vectors and have no clean form")
        return self.domain.bound(check_vectors(vectors, self.dimension))

    @property
    def keeps_vectors(self) -> bool:
        """True if the outputs without noise are the vectors of the domain themselves."""
        return self.width == self.dimension and type(self).noiseless is Channel.noiseless

    def freeze(self) -> Self:
        """End the calibration: from now on the channel is immutable and agrees with its statement."""
        object.__setattr__(self, "_frozen", True)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a channel is immutable, {name!r} cannot be set: create a new randomizer")
        object.__setattr__(self, name, value)

    @abstractmethod
    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        """Sample from (n, d) float64 vectors of the domain, which may be overwritten."""

    def debiased_second_moment(self, moment: Floats) -> Floats:  # noqa: ARG002  for those that have one
        """Estimate the mean of x x^T, unbiased, from the mean of z z^T of outputs z; `ParameterError` if impossible."""
        raise ParameterError(f"the outputs of {self.name} do not determine the second moments of the inputs")

    def parameters(self) -> dict[str, Parameter]:
        return {}

    def assumptions(self) -> tuple[str, ...]:
        return ()

    def _repr_fields(self) -> Fields:
        yield "name", self.name
        yield "dimension", self.dimension
        yield "width", self.width
        yield "domain", str(self.domain)
        yield "guarantee", str(self.guarantee)

    def _html_fields(self) -> Fields:
        yield "expected squared error", self.expected_squared_error


@dataclass(frozen=True, kw_only=True, repr=False)
class Randomizer(ReprMixin, ABC):
    """Mechanism from vector to private vector, with a budget.

    Attributes:
        epsilon: proved epsilon for any two vectors; above 0 and at most 500.
        domains: possible domains of the input vectors, best one first.

    Raises:
        ParameterError: an argument is out of range; from `channel`, a dimension or a budget that is not supported.
    """

    name: ClassVar[str]
    domains: ClassVar[tuple[Domain, ...]]

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_float("epsilon", self.epsilon, above=0, maximum=500))

    @abstractmethod
    def _calibrate(self, dimension: int) -> Channel:
        """Return the channel for a dimension."""

    def channel(self, dimension: int) -> Channel:
        """Return the calibrated channel for a dimension (cached); `ParameterError` if there is none."""
        return _calibrated(self, check_int("dimension", dimension, minimum=1, maximum=MOST_DIMENSIONS))

    @property
    def natural_domain(self) -> Domain:
        """The best domain for its vectors."""
        return self.domains[0]

    def expected_squared_error(self, dimension: int) -> float:
        """Return E||z - x||^2 for a vector x of length 1 in this dimension, the largest over all x."""
        return self.channel(dimension).expected_squared_error

    def randomize(self, vectors: npt.ArrayLike, *, seed: int | None = None) -> Private:
        """Map (n, d) vectors to (n, k) float32 private ones: a release.

        Args:
            vectors: any numbers; each row is first mapped into the domain.
            seed: None for cryptographic randomness; an integer for tests and papers only: it voids the guarantee.

        Raises:
            ParameterError: not an array of shape (n, d).
        """
        values = check_vectors(vectors)
        return self.channel(values.shape[1]).sample(values, RandomBits(seed))

    def options(self) -> dict[str, Parameter]:
        """Return the arguments, for the statement and for rebuilding the randomizer."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def statement(self, dimension: int, *, seeded: bool = False) -> PrivacyStatement:
        """Return the statement for one vector: unit document, substitution, local."""
        channel = self.channel(dimension)
        return release_statement(
            guarantee=channel.guarantee,
            unit=Unit.DOCUMENT,
            relation=Relation.SUBSTITUTION,
            condition=Condition(about="vectors"),
            trust=Trust.LOCAL,
            mechanism=self.name,
            parameters={
                **self.options(),
                "domain": str(channel.domain),
                "dimension": channel.dimension,
                "width": channel.width,
                **channel.parameters(),
            },
            assumptions=channel.assumptions(),
            exposed=("the number of vectors, and their order",),
            seeded=seeded,
        )

    def _html_fields(self) -> Fields:
        yield "takes vectors of", " or ".join(map(str, self.domains))
        yield "strength", Strength.of(self.epsilon).value or None


@lru_cache(maxsize=64)
def _calibrated(randomizer: Randomizer, dimension: int) -> Channel:
    return randomizer._calibrate(dimension).freeze()


def in_blocks(
    work: Callable[[slice, RandomBits], None], count: int, bits: RandomBits, *, rows: int, blocks: int
) -> None:
    """Call ``work`` on blocks of rows, on all cores; each task of several blocks has its own random bits."""
    starts = range(0, count, rows * blocks)

    def task(block: tuple[int, RandomBits]) -> None:
        first, stream = block
        last = min(first + rows * blocks, count)
        for start in range(first, last, rows):
            work(slice(start, min(start + rows, last)), stream)

    for_each_block(task, zip(starts, bits.spawn(len(starts)), strict=True))


class BitChannel(Channel):
    """A channel that sends bits; `sample` is `send` and `decode` in one."""

    bits: int

    @property
    def bytes(self) -> int:
        """Number of bytes per vector."""
        return -(-self.bits // 8)

    def send(self, vectors: npt.ArrayLike, bits: RandomBits) -> Sent:
        """Map (n, d) vectors to (n, bytes) uint8, each with fresh noise: a release."""
        values = check_vectors(vectors, self.dimension)
        with np.errstate(all="ignore"):  # as in `sample`
            return self._send(self.domain.bound(values), bits)

    def decode(self, sent: npt.ArrayLike) -> Private:
        """Decode (n, bytes) uint8 to the (n, k) float32 of `sample`; all bytes are valid."""
        return self._decode(self.check_sent(sent))

    def check_sent(self, sent: npt.ArrayLike) -> Sent:
        """Return received bytes as (n, bytes) uint8."""
        array: npt.NDArray[Any] = np.asarray(sent)
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != self.bytes:
            raise ParameterError(
                f"expected uint8 of shape (n, {self.bytes}), as send() of {self.name} in {self.dimension} dimensions "
                f"returns, got {array.dtype} of shape {array.shape}"
            )
        return array

    @abstractmethod
    def _send(self, vectors: Floats, bits: RandomBits) -> Sent: ...

    @abstractmethod
    def _values(self, ones: Sent) -> npt.NDArray[Any]:
        """Return (n, k) outputs of (n, bits) zeros and ones."""

    def _decode(self, sent: Sent) -> Private:
        private = np.empty((len(sent), self.width), dtype=np.float32)
        step = max(1, _BITS_AT_ONCE // self.bits)

        def decode_block(start: int) -> None:
            rows = slice(start, start + step)
            private[rows] = self._values(np.unpackbits(sent[rows], axis=1, count=self.bits))

        for_each_block(decode_block, range(0, len(sent), step))
        return private

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        return self._decode(self._send(vectors, bits))


class BitRandomizer(Randomizer):
    """A randomizer that sends bits."""

    @abstractmethod
    def _calibrate(self, dimension: int) -> BitChannel: ...

    def send(self, vectors: npt.ArrayLike, *, seed: int | None = None) -> Sent:
        """Map (n, d) vectors to the (n, bytes) uint8 that a device sends: a release. See `BitChannel.send`.

        Args:
            vectors: any numbers; each row is first mapped into the domain.
            seed: None for cryptographic randomness; an integer for tests and papers only: it voids the guarantee.

        Raises:
            ParameterError: not an array of shape (n, d).
        """
        values = check_vectors(vectors)
        return self._bit_channel(values.shape[1]).send(values, RandomBits(seed))

    def decode(self, sent: npt.ArrayLike, dimension: int) -> Private:
        """Decode (n, bytes) uint8 of `send` to (n, k) float32 private vectors: post-processing, not a release.

        Raises:
            ParameterError: not bytes, or not as many as vectors of this dimension have.
        """
        return self._bit_channel(dimension).decode(sent)

    def _bit_channel(self, dimension: int) -> BitChannel:
        channel = self.channel(dimension)
        assert isinstance(channel, BitChannel)
        return channel
