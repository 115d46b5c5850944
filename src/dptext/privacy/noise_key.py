"""The secret of a job: noise for each part of it, named by what the part holds.

The stream of a part is keyed by PRF(secret, parameters and code version, place of the part, digest of its content),
with HMAC-SHA256 as the PRF. So a part that is done again (a resumed run, a retried task) repeats its own noise and is
no second release, and a part of which *anything* changed gets fresh noise: equal noise on two inputs, or at two
epsilons, would give the inputs away by subtraction.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NoReturn

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits, seed_bytes

__all__ = ["NoiseKey"]

_BYTES = 32


class NoiseKey:
    """A secret of 256 bits from which every part of a job takes its own stream of random bits.

    ``NoiseKey()`` takes it from the operating system; ``NoiseKey(seed=7)`` from the seed.

    **Guarantee.** Streams of different parts cannot be told from independent ones without breaking HMAC-SHA256 or
    AES-256. Whoever holds the secret can undo the release: it is kept for as long as the job takes, in a file that
    only its owner reads, and deleted with the job.

    >>> key = NoiseKey(seed=7)
    >>> key.stream(b"job", 0, b"content").take(4) == key.stream(b"job", 0, b"content").take(4)
    True
    >>> key.stream(b"job", 0, b"content").take(4) == key.stream(b"job", 1, b"content").take(4)
    False
    """

    def __init__(self, seed: int | None = None) -> None:
        self._secret = RandomBits().take(_BYTES) if seed is None else seed_bytes(b"dptext job", seed)
        self.seeded = seed is not None

    @classmethod
    def restored(cls, secret: bytes, *, seeded: bool) -> NoiseKey:
        """The key again, in a resumed run or a worker process."""
        if len(secret) != _BYTES:
            raise ParameterError(f"the secret of a job has {_BYTES} bytes, got {len(secret)}")
        key = cls(seed=0)
        key._secret, key.seeded = secret, seeded
        return key

    def secret(self) -> bytes:
        """The 32 bytes, for the file that keeps a job resumable and for its worker processes."""
        return self._secret

    def stream(self, parameters: bytes, place: int, content: bytes) -> RandomBits:
        """The random bits of one part.

        Args:
            parameters: digest of all that decides about the output besides the content, the code version included.
            place: which part of the job it is, from 0.
            content: digest of the private content of the part.
        """
        message = b"".join(
            len(part).to_bytes(8, "big") + part for part in (b"dptext noise", parameters, str(place).encode(), content)
        )
        bits = RandomBits.keyed(hmac.digest(self._secret, message, hashlib.sha256))
        bits.seeded = self.seeded
        return bits

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("the secret of a job is never copied or pickled: hand it on by secret(), on purpose")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse
