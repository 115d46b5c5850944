"""The noise of the release between encoder and heads while they are trained, with a gradient through it.

What heads see of a bounded vector x is z = sample(x), drawn with the channel that the release will use, anew for every
batch; the gradient is passed on as if z were x plus noise that does not depend on x:

    dL/dx = dL/dz                                                                                       (straight)

That is exact for additive noise, and right in expectation to first order for every unbiased randomizer (PrivUnit).
Training texts are public here (or not protected), so no privacy rests on this noise; it is drawn by the exact channel
all the same, because that costs little.

The noise of Laplace channels is in proportion to 1 / epsilon, so that there a budget can be *learnt below a cap* c1:

    epsilon = c1 sigmoid(theta),   z = x + (sample(x; c1) - x) c1 / epsilon                              (learnt)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.domains import Domain
from dptext.representations.randomizer import Channel
from dptext.representations.split_training import bounding

__all__ = ["LEARNABLE", "NoiseInTheLoop", "checked_channel"]

LEARNABLE = ("L2Laplace", "Laplace")
_START = 2.0  # theta: the budget starts at 88% of the cap

_DOMAINS = (Domain.SPHERE, Domain.BALL, Domain.CUBE)


class NoiseInTheLoop:
    """Bound and noise of a training run.

    Args:
        torch: the module.
        domain: into which vectors are brought.
        channel: the noise; None: none (a defence without a promise).
        learn: whether the budget is learnt below the channel's.
    """

    def __init__(self, torch: Any, domain: Domain, channel: Channel | None, *, learn: bool) -> None:
        self._torch, self._channel = torch, channel
        self._bounded = bounding(torch, domain)
        self.theta = torch.nn.Parameter(torch.tensor(_START)) if learn else None
        self._bits = RandomBits()

    def begin(self, bits: RandomBits) -> None:
        """Draw from this stream from now on: one for each epoch, so that a run can go on after any of them."""
        self._bits = bits

    def bound(self, raw: Any) -> Any:
        """(n, d) vectors as the encoder has them to (n, d) of the domain, with a gradient."""
        return self._bounded(raw)

    def add(self, bounded: Any) -> Any:
        """What arrives of bounded vectors, with a gradient."""
        if self._channel is None:
            return bounded
        before = bounded.detach().numpy().astype(np.float64)
        drawn = self._torch.from_numpy((self._channel.sample(before, self._bits) - before).astype(np.float32))
        if self.theta is not None:
            drawn = drawn / self._torch.sigmoid(self.theta)  # eq. (learnt)
        return bounded + drawn  # eq. (straight)

    @property
    def share(self) -> float:
        """Of the cap, that the learnt budget is; 1 where none is learnt."""
        return 1.0 if self.theta is None else 1 / (1 + math.exp(-float(self.theta.detach())))


def checked_channel(channel: Channel | None, *, learn: bool) -> None:
    """Refuse a channel that no gradient is known through.

    Raises:
        ParameterError: its outputs are no vectors, or its budget cannot be learnt.
    """
    if channel is None:
        if learn:
            raise ParameterError("no budget can be learnt without a randomizer: give L2Laplace(epsilon=...)")
        return
    if (
        channel.width != channel.dimension
        or channel.domain not in _DOMAINS
        or type(channel).noiseless is not Channel.noiseless
    ):
        raise ParameterError(
            f"an encoder learns through noise on vectors, {channel.name} sends something else: take PrivUnit, "
            "L2Laplace or Gaussian"
        )
    if learn and channel.name not in LEARNABLE:
        raise ParameterError(
            f"a budget is learnt where the noise is in proportion to 1 / epsilon ({', '.join(LEARNABLE)}), not for "
            f"{channel.name}"
        )
