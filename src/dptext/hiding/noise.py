"""The noise of the release between encoder and heads while they are trained, with a gradient through it.

What heads see of a bounded vector x is z = sample(x), drawn with the channel that the release will use, anew for every
batch; the gradient is passed on as if z were x plus noise that does not depend on x:

    dL/dx = dL/dz                                                                                       (straight)

That is exact for additive noise, and right in expectation to first order for every unbiased randomizer (PrivUnit).
Training texts are public here (or not protected), so no privacy rests on this noise; it is drawn by the exact channel
all the same, because that costs little.

The noise of L2-Laplace is in proportion to 1 / epsilon, so that there a budget can be *learnt below a cap* c1:

    epsilon = c1 sigmoid(theta),   z = x + (sample(x; c1) - x) c1 / epsilon                              (learnt)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import L2Laplace
from dptext.representations.domains import Domain
from dptext.representations.federate import L1NormalisedLaplace
from dptext.representations.randomizer import Channel, Randomizer
from dptext.representations.split_training import L1_SPHERE, bounding

__all__ = ["KINDS", "NoiseInTheLoop", "domain_and_channel"]

KINDS = {Domain.SPHERE: "normalise", Domain.BALL: "clip", Domain.CUBE: "cube"}
"""The last step of a bound into each domain that a gradient is known into."""

_START = 2.0  # theta: the budget starts at 88% of the cap
_WITHIN = {
    Domain.SPHERE: (Domain.SPHERE,),
    Domain.BALL: (Domain.BALL, Domain.SPHERE),
    Domain.CUBE: (Domain.CUBE, Domain.BALL, Domain.SPHERE),
}
"""Domains whose vectors are all of a domain."""


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
        self._bounded = bounding(torch, L1_SPHERE if isinstance(channel, L1NormalisedLaplace) else domain)
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


def domain_and_channel(randomizer: Any, dimension: int, bound: Any, *, learn: bool) -> tuple[Domain, Channel | None]:
    """Where vectors are bounded to, and the noise that is added there.

    Args:
        randomizer: or None.
        dimension: d.
        bound: ``"auto"`` (where the randomizer takes its vectors from; the sphere without one), or one of `KINDS`.
        learn: whether the budget is to be learnt.

    Raises:
        ParameterError: no randomizer, or one through which no gradient is known; a bound that does not go with it; a
            budget that cannot be learnt.
    """
    if randomizer is not None and not isinstance(randomizer, Randomizer):
        raise ParameterError(
            f"expected a randomizer such as PrivUnit(epsilon=8.0), or None, got {type(randomizer).__name__}"
        )
    by_kind = {kind: domain for domain, kind in KINDS.items()}
    if not isinstance(bound, str) or bound not in ("auto", *by_kind):
        raise ParameterError(f"bound must be 'auto' or one of {', '.join(map(repr, by_kind))}, got {bound!r}")
    if learn and type(randomizer) is not L2Laplace:  # CappedLaplace has learnt already
        raise ParameterError(
            "a budget is learnt where the noise is in proportion to 1 / epsilon: give L2Laplace(epsilon=...), whose "
            "epsilon is the cap"
        )
    if randomizer is None:
        return by_kind.get(bound, Domain.SPHERE), None
    channel = randomizer.channel(dimension)
    changed = type(channel).noiseless is not Channel.noiseless and not isinstance(channel, L1NormalisedLaplace)
    if channel.width != channel.dimension or channel.domain not in KINDS or changed:
        raise ParameterError(
            f"an encoder learns through noise on vectors, {channel.name} sends something else: take PrivUnit, "
            "L2Laplace or Gaussian"
        )
    domain = by_kind.get(bound, channel.domain)
    if domain not in _WITHIN[channel.domain]:
        raise ParameterError(f"{channel.name} takes vectors of the {channel.domain}, bound={bound!r} gives others")
    return domain, channel
