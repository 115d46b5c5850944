"""Adversarial training: an encoder and a task head against one adversary per attribute (torch).

Derivation: docs/mechanisms/hiding.md#hiding-game
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dptext.errors import ParameterError
from dptext.hiding.inputs import Reader, Source, Target, TradeOff
from dptext.hiding.training import HidingOptions, LearntBudget
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import L1NormalisedLaplace, L2Laplace
from dptext.representations.bounds import TRAINED_INTO, Domain, Floats
from dptext.representations.networks import L1_SPHERE, TrainingOptions, bounding, noise_on, perceptron
from dptext.representations.published import DPText
from dptext.representations.randomizer import Channel, Randomizer
from dptext.validation import check_choice

_START = 2.0  # theta: the budget starts at 88% of the cap
_WITHIN = {
    Domain.SPHERE: (Domain.SPHERE,),
    Domain.BALL: (Domain.BALL, Domain.SPHERE),
    Domain.CUBE: (Domain.CUBE, Domain.BALL, Domain.SPHERE),
}
"""The domains that lie within a domain."""


class Body(Source, Protocol):
    """The network between inputs and vectors before the bound, with its inputs."""

    module: Any

    def rebuilt(self, batch: Any, z: Any) -> Any:
        """The loss of reconstructing a batch from z; 0 without a decoder."""


class Game:
    """Encoder, task head and adversaries with their optimisers (`dptext.hiding.training.Player`)."""

    phase = "hide"

    def __init__(
        self,
        torch: Any,
        body: Body,
        noise: NoiseInTheLoop,
        task: Target,
        attributes: Sequence[Target],
        options: HidingOptions,
        reader: Reader,
    ) -> None:
        self._torch, self._body, self._noise, self._options, self._reader = torch, body, noise, options, reader

        def head(target: Target, layers: int) -> Any:
            shape = TrainingOptions(hidden=(options.adversary_units,) * layers, dropout=0.0)
            return perceptron(torch, options.dimension, len(target.classes), shape)

        self._task = head(task, 1)
        self._adversaries = torch.nn.ModuleList(head(target, options.adversary_layers) for target in attributes)
        self._labels, self._weights = [], []
        for target in (task, *attributes):
            codes = torch.from_numpy(target.codes)
            self._labels.append(codes.clamp(min=0))  # a missing label: any class, with weight 0
            self._weights.append(torch.from_numpy(target.weights)[self._labels[-1]] * (codes >= 0))
        self._priors = [torch.from_numpy(target.priors) for target in attributes]
        self.module = torch.nn.ModuleDict({"body": body.module, "task": self._task, "adversaries": self._adversaries})
        encoder_parameters = [*body.module.parameters(), *self._task.parameters()]
        if noise.theta is not None:
            self.module.register_parameter("theta", noise.theta)
            encoder_parameters.append(noise.theta)
        settings = {"weight_decay": 2 * options.lambda_, "fused": True}
        adversary_rate = options.learning_rate * options.adversary_haste
        self._ours = torch.optim.Adam(encoder_parameters, lr=options.learning_rate, **settings)
        self._theirs = torch.optim.Adam(self._adversaries.parameters(), lr=adversary_rate, **settings)
        self.optimisers = {"ours": self._ours, "theirs": self._theirs}
        self._slopes: list[tuple[float, float]] = []

    def begin(self, bits: RandomBits) -> None:
        self._noise.bits = bits
        self._slopes = []

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        options = self._options
        bounded = self._noise.bound(self._body.module(batch))
        if options.game == "reversal":
            return self._reversed_step(batch, bounded, rows)
        adversary_loss = 0.0
        if options.alpha and options.aim != "decluster":
            for _ in range(options.adversary_steps):
                adversary_loss = self._adversary_step(self._noise.add(bounded.detach()).detach(), rows)
        z = self._noise.add(bounded)
        task = self._loss(0, self._task(z), rows)
        loss = task + self._rebuilt(batch, z)
        against = None
        if options.alpha:
            against = options.alpha * (
                pushed_apart(bounded) if options.aim == "decluster" else self._against_adversaries(z, rows)
            )
            loss = loss + against  # eq. (encoder)
        self._note_slopes(task, against)
        self._ours.zero_grad()
        loss.backward()
        self._ours.step()
        return float(task.detach()), adversary_loss

    def look(self) -> TradeOff | None:
        return self._reader.look(self._arrived)

    def budget(self) -> LearntBudget | None:
        if self._noise.theta is None or not self._slopes:
            return None
        task, attributes = np.mean(self._slopes, axis=0).tolist()
        return LearntBudget(self._noise.share, task, attributes)

    def _arrived(self, batch: Any) -> Floats:
        """(n, d) noisy vectors of a batch."""
        with self._torch.no_grad():
            z = self._noise.add(self._noise.bound(self._body.module(batch)))
        arrived: Floats = z.numpy().astype(np.float64)
        return arrived

    def _adversary_step(self, z: Any, rows: Any) -> float:
        loss = self._adversary_loss(z, rows)
        self._theirs.zero_grad()
        loss.backward()
        self._theirs.step()
        return float(loss.detach()) / len(self._adversaries)

    def _reversed_step(self, batch: Any, bounded: Any, rows: Any) -> tuple[float, float]:
        """Gradient reversal (Ganin and Lempitsky 2015): forwards z, backwards -alpha / T of the gradient."""
        z = self._noise.add(bounded)
        reversed_z = z.detach() - (z - z.detach()) * (self._options.alpha / len(self._adversaries))
        task, adversary_loss = self._loss(0, self._task(z), rows), self._adversary_loss(reversed_z, rows)
        loss = task + self._rebuilt(batch, z) + adversary_loss
        self._note_slopes(task, adversary_loss)
        self._ours.zero_grad()
        self._theirs.zero_grad()
        loss.backward()
        self._ours.step()
        self._theirs.step()
        return float(task.detach()), float(adversary_loss.detach()) / len(self._adversaries)

    def _adversary_loss(self, z: Any, rows: Any) -> Any:
        return sum(self._loss(place, head(z), rows) for place, head in enumerate(self._adversaries, 1))

    def _against_adversaries(self, z: Any, rows: Any) -> Any:
        losses = []
        for place, head in enumerate(self._adversaries, 1):
            answers = head(z)
            if self._options.aim == "confuse":
                logs = self._torch.nn.functional.log_softmax(answers, dim=1)
                losses.append(-(logs @ self._priors[place - 1]).mean())  # eq. (confuse)
            elif self._options.aim == "deny":
                losses.append(denial(self._torch, answers, self._labels[place][rows], self._weights[place][rows]))
            else:
                losses.append(-self._loss(place, answers, rows))  # eq. (oppose)
        return sum(losses) / len(losses)

    def _note_slopes(self, task: Any, against: Any) -> None:
        """Note the slopes of two terms of the loss over ln epsilon = ln c1 + ln sigmoid(theta)."""
        theta = self._noise.theta
        if theta is None:
            return
        slopes = []
        for term in (task, against):
            slope = None
            if term is not None:
                (slope,) = self._torch.autograd.grad(term, theta, retain_graph=True, allow_unused=True)
            slopes.append(0.0 if slope is None else float(slope) / (1 - self._noise.share))
        self._slopes.append((slopes[0], slopes[1]))

    def _rebuilt(self, batch: Any, z: Any) -> Any:
        return self._options.rebuild * self._body.rebuilt(batch, z) if self._options.rebuild else 0.0

    def _loss(self, place: int, answers: Any, rows: Any) -> Any:
        weights = self._weights[place][rows]
        losses = self._torch.nn.functional.cross_entropy(answers, self._labels[place][rows], reduction="none")
        return (losses * weights).sum() / weights.sum().clamp(min=1e-12)


def denial(torch: Any, answers: Any, labels: Any, weights: Any) -> Any:
    """The mean of -ln(1 - p(label)) over a batch, equation (deny)."""
    true = torch.nn.functional.one_hot(labels, answers.shape[1]).bool()
    others = answers.masked_fill(true, float("-inf")).logsumexp(dim=1)
    return ((answers.logsumexp(dim=1) - others) * weights).sum() / weights.sum().clamp(min=1e-12)


def pushed_apart(vectors: Any) -> Any:
    """Minus the mean squared distance of neighbours in a batch, whose order is random: equation (decluster)."""
    return -((vectors - vectors.roll(1, 0)) ** 2).sum(dim=1).mean()


class NoiseInTheLoop:
    """Bound and noise of a training, with gradients; ``theta`` is the learnt budget, or None."""

    def __init__(self, torch: Any, domain: Domain, channel: Channel | None, *, learn: bool) -> None:
        self._torch, self._channel = torch, channel
        self.bound = bounding(torch, L1_SPHERE if isinstance(channel, L1NormalisedLaplace) else domain)
        self.theta = torch.nn.Parameter(torch.tensor(_START)) if learn else None
        self.bits = RandomBits()

    def add(self, bounded: Any) -> Any:
        """Bounded vectors with noise."""
        channel = self._channel
        if channel is None:
            return bounded
        noise = noise_on(self._torch, bounded, lambda clean: channel.sample(clean, self.bits))
        if self.theta is not None:
            noise = noise / self._torch.sigmoid(self.theta)  # eq. (learnt)
        return bounded + noise  # eq. (straight)

    @property
    def share(self) -> float:
        """The learnt budget as a share of the cap."""
        return 1.0 if self.theta is None else 1 / (1 + math.exp(-float(self.theta.detach())))


def domain_and_channel(
    randomizer: Randomizer | None, dimension: int, bound: str, *, learn: bool
) -> tuple[Domain, Channel | None]:
    """The domain of the bounded vectors, and the noise."""
    by_kind = {kind: domain for domain, kind in TRAINED_INTO.items()}
    check_choice("bound", bound, ("auto", *by_kind))
    if learn and type(randomizer) not in (L2Laplace, DPText):
        raise ParameterError(
            "learn_epsilon needs noise proportional to 1 / epsilon: pass L2Laplace(epsilon=...), whose epsilon is the "
            "cap (or, to compare with the paper, published.DPText)"
        )
    if randomizer is None:
        return by_kind.get(bound, Domain.SPHERE), None
    channel = randomizer.channel(dimension)
    if not (channel.keeps_vectors or isinstance(channel, L1NormalisedLaplace)) or channel.domain not in TRAINED_INTO:
        raise ParameterError(
            f"{channel.name} does not add noise to a vector, so no encoder can be trained through it: choose PrivUnit, "
            "L2Laplace or Gaussian"
        )
    domain = by_kind.get(bound, channel.domain)
    if domain not in _WITHIN[channel.domain]:
        raise ParameterError(f"{channel.name} takes vectors of the {channel.domain}, not of bound={bound!r}")
    return domain, channel
