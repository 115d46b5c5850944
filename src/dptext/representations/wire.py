"""Randomizers whose output is bits: what a device sends, and the unbiased numbers that a server reads in it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.domains import Floats, checked_vectors
from dptext.representations.randomizer import Channel, Private, Randomizer

__all__ = ["BitChannel", "BitRandomizer", "Sent"]

Sent = npt.NDArray[np.uint8]


class BitChannel(Channel):
    """A channel that sends bits; `sample` is `send` and `decode` in one.

    Attributes:
        bits: how many a vector takes.
    """

    bits: int

    @property
    def bytes(self) -> int:
        """How many bytes a vector takes on the wire."""
        return -(-self.bits // 8)

    def send(self, vectors: npt.ArrayLike, bits: RandomBits) -> Sent:
        """(n, d) vectors to (n, bytes) uint8, each with fresh noise: a release.

        The first bit is the highest of the first byte; unused bits of the last byte are 0.
        """
        given = checked_vectors(vectors, self.dimension)
        with np.errstate(all="ignore"):  # as in `sample`
            return self._send(self.domain.bound(given), bits)

    def decode(self, sent: npt.ArrayLike) -> Private:
        """(n, bytes) uint8 to the (n, k) float32 that `sample` would have given: any bytes mean something.

        Raises:
            ParameterError: not bytes, or not so many a vector.
        """
        return self._decode(self.checked_sent(sent))

    def checked_sent(self, sent: npt.ArrayLike) -> Sent:
        """What came over the wire, as (n, bytes) uint8.

        Raises:
            ParameterError: it is of another type or shape.
        """
        array: npt.NDArray[Any] = np.asarray(sent)
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != self.bytes:
            raise ParameterError(
                f"expected uint8 of shape (n, {self.bytes}), as send() of {self.name} in {self.dimension} dimensions "
                f"gives, got {array.dtype} of shape {array.shape}"
            )
        return array

    @abstractmethod
    def _send(self, vectors: Floats, bits: RandomBits) -> Sent: ...

    @abstractmethod
    def _decode(self, sent: Sent) -> Private: ...

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        return self._decode(self._send(vectors, bits))


class BitRandomizer(Randomizer):
    """A randomizer that sends bits."""

    @abstractmethod
    def _calibrate(self, dimension: int) -> BitChannel: ...

    def send(self, vectors: npt.ArrayLike, *, seed: int | None = None) -> Sent:
        """(n, d) vectors to the (n, bytes) uint8 that a device sends: a release. See `BitChannel.send`.

        Args:
            vectors: any numbers; each row is brought into the domain first.
            seed: None for cryptographic randomness; an integer for tests and papers only: it voids the promise.

        Raises:
            ParameterError: not an array of shape (n, d).
        """
        given = checked_vectors(vectors)
        return self._bit_channel(given.shape[1]).send(given, RandomBits(seed))

    def decode(self, sent: npt.ArrayLike, dimension: int) -> Private:
        """(n, bytes) uint8 of `send` to (n, k) float32 private vectors: post-processing, no release.

        Raises:
            ParameterError: not bytes, or not as many as vectors of this dimension take.
        """
        return self._bit_channel(dimension).decode(sent)

    def _bit_channel(self, dimension: int) -> BitChannel:
        channel = self.channel(dimension)
        assert isinstance(channel, BitChannel)
        return channel
