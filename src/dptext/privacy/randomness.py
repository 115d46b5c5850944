"""The only source of random bits in dptext.

Derivation: docs/understand/randomness.md#privacy-randomness
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.validation import check_int

_KEY_BYTES = 32
_CHUNK_BYTES = 1 << 20
_BLOCK_BYTES = 16
_ZEROS = memoryview(bytes(_CHUNK_BYTES))


def seed_bytes(purpose: bytes, seed: object) -> bytes:
    """Return 32 bytes derived from a seed and a purpose."""
    return hashlib.sha256(purpose + b"\0" + str(check_int("seed", seed)).encode()).digest()


class RandomBits:
    """Stream of random bits, from the operating system or a seed; threads may share it or `spawn` their own.

    It cannot be copied, pickled or used in a forked process: two copies of one state would emit the same noise,
    and equal noise on two inputs reveals their difference.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._begin(os.urandom(_KEY_BYTES) if seed is None else seed_bytes(b"dptext seed", seed))
        self.seeded = seed is not None

    def _begin(self, key: bytes) -> None:
        self._key = key
        self._process = os.getpid()
        self._encryptor: Any = None
        self._lock = threading.Lock()
        self._left = memoryview(b"")

    @classmethod
    def keyed(cls, key: bytes) -> RandomBits:
        """Return the stream of a 32-byte key, which must not be used for anything else."""
        stream = object.__new__(cls)
        stream._begin(key)
        stream.seeded = False
        return stream

    def spawn(self, count: int) -> list[RandomBits]:
        """Return ``count`` independent streams, keyed by fresh bytes of this one, so that no stream repeats."""
        streams = [RandomBits.keyed(self.take(_KEY_BYTES)) for _ in range(count)]
        for stream in streams:
            stream.seeded = self.seeded
        return streams

    def take(self, count: int) -> bytes:
        """Return ``count`` random bytes."""
        self._check_process()
        parts: list[memoryview] = []
        with self._lock:  # two threads must never get the same bytes
            while count > 0:
                if not self._left:
                    self._left = memoryview(self._cipher().update(bytes(max(_CHUNK_BYTES, count))))
                part, self._left = self._left[:count], self._left[count:]
                parts.append(part)
                count -= len(part)
        return b"".join(parts)

    def fill(self, out: npt.NDArray[Any]) -> None:
        """Fill a contiguous array with random bits of the stream, without the bytes that `take` has buffered."""
        self._check_process()
        target = memoryview(out.data).cast("B") if out.size else memoryview(b"")
        with self._lock:
            for start in range(0, len(target), _CHUNK_BYTES):
                piece = target[start : start + _CHUNK_BYTES]
                # older ciphers need a buffer that is one block larger than the output, so the last block is copied
                whole = max(0, len(piece) - _BLOCK_BYTES)
                if whole:
                    self._cipher().update_into(_ZEROS[:whole], piece)
                piece[whole:] = self._cipher().update(bytes(len(piece) - whole))

    def integers(self, count: int) -> npt.NDArray[np.uint64]:
        """Return (count,) uint64, uniform over all 64-bit integers."""
        return np.frombuffer(self.take(8 * count), dtype="<u8").astype(np.uint64)

    def below(self, bounds: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return (n,) uint64, entry i uniform over 0 .. bounds[i] - 1, by rejection; bounds are at least 1."""
        bounds = np.asarray(bounds, dtype=np.uint64)
        if bounds.size and not bounds.all():
            raise ParameterError("below needs bounds of at least 1, got a 0")
        draws = np.empty(bounds.shape, dtype=np.uint64)
        todo = np.arange(bounds.size)
        top = np.uint64(2**64 - 1)
        while todo.size:
            bound = bounds[todo]
            candidate = self.integers(todo.size)
            # the largest multiple of bound up to 2^64, minus one; 2^64 mod n = (2^64 - 1 mod n) + 1 (mod n)
            last = top - (top % bound + np.uint64(1)) % bound
            accepted = candidate <= last
            draws[todo[accepted]] = candidate[accepted] % bound[accepted]
            todo = todo[~accepted]
        return draws

    def uniform(self, *shape: int) -> npt.NDArray[np.float64]:
        """Return float64 of the given shape, uniform over the 2^53 multiples of 2^-53 in (0, 1]."""
        bits = self.integers(int(np.prod(shape)))
        return ((bits >> np.uint64(11)) + np.uint64(1)).astype(np.float64).reshape(shape) * 2.0**-53

    def exponential(self, *shape: int) -> npt.NDArray[np.float64]:
        """Return float64 of the given shape, exponential with mean 1 (inverse CDF of `uniform`; at most 36.7)."""
        draws: npt.NDArray[np.float64] = -np.log(self.uniform(*shape))
        return draws

    def normal(self, *shape: int) -> npt.NDArray[np.float64]:
        """Return float64 of the given shape, standard normal (Box and Muller 1958 on 53-bit uniforms; at most 8.57)."""
        count = int(np.prod(shape))
        half = (count + 1) // 2
        radius = np.sqrt(2.0 * self.exponential(half))
        angle = 2.0 * np.pi * self.uniform(half)
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count].reshape(shape)

    def _cipher(self) -> Any:
        if self._encryptor is None:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

            # The key is used by this stream alone, so the counter may start at zero.
            self._encryptor = Cipher(algorithms.AES(self._key), modes.CTR(bytes(_BLOCK_BYTES))).encryptor()
        return self._encryptor

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "this stream of random bits was created in another process, and a fork would repeat its noise. "
                "Create a new RandomBits in the worker"
            )

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("random bits are never copied or pickled: a copy would emit the same noise. Use spawn()")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse


class NoiseKey:
    """Secret of 256 bits, from the operating system or a seed; the random bits of each part of a job derive from it.

    **Guarantee.** Streams of different parts are indistinguishable from independent ones unless HMAC-SHA256 or AES-256
    is broken. The secret can undo the release: it is stored only while the job runs, in a file that only its owner
    can read, and deleted with the job.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._secret = RandomBits().take(_KEY_BYTES) if seed is None else seed_bytes(b"dptext job", seed)
        self.seeded = seed is not None

    @classmethod
    def restored(cls, secret: bytes, *, seeded: bool) -> NoiseKey:
        """Restore a key in a resumed run or a worker process."""
        if len(secret) != _KEY_BYTES:
            raise ParameterError(f"the secret of a job has {_KEY_BYTES} bytes, got {len(secret)}")
        key = cls(seed=0)
        key._secret, key.seeded = secret, seeded
        return key

    def secret(self) -> bytes:
        """Return the 32 secret bytes, for the resume file of a job and for its worker processes."""
        return self._secret

    def stream(self, parameters: bytes, place: int, content: bytes) -> RandomBits:
        """Return the random bits of a part, from its index, its content digest and a digest of all public settings."""
        message = b"".join(
            len(part).to_bytes(8, "big") + part for part in (b"dptext noise", parameters, str(place).encode(), content)
        )
        bits = RandomBits.keyed(hmac.digest(self._secret, message, hashlib.sha256))
        bits.seeded = self.seeded
        return bits

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("the secret of a job is never copied or pickled. Pass it explicitly with secret()")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse
