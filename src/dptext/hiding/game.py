"""The game that is trained: an encoder and a task head on one side, one adversary an attribute on the other (torch).

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
from dptext.representations.networks import L1_SPHERE, bounding, noise_on
from dptext.representations.published import DPText
from dptext.representations.randomizer import Channel, Randomizer
from dptext.validation import check_choice

_START = 2.0  # theta: the budget starts at 88% of the cap
_WITHIN = {
    Domain.SPHERE: (Domain.SPHERE,),
    Domain.BALL: (Domain.BALL, Domain.SPHERE),
    Domain.CUBE: (Domain.CUBE, Domain.BALL, Domain.SPHERE),
}
"""Domains whose vectors are all of a domain."""


class Body(Source, Protocol):
    """The network between inputs and raw vectors, with its inputs."""

    module: Any

    def rebuilt(self, batch: Any, z: Any) -> Any:
        """The loss of writing a batch again from z; 0 where there is no decoder."""


class Game:
    """Both sides and their optimisers; see `dptext.hiding.training.Player`."""

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
        units, layers = options.adversary_units, options.adversary_layers
        self._task = _head(torch, options.dimension, len(task.classes), units, 1)
        self._adversaries = torch.nn.ModuleList(
            _head(torch, options.dimension, len(attribute.classes), units, layers) for attribute in attributes
        )
        labels = [torch.from_numpy(attribute.codes) for attribute in (task, *attributes)]
        weights = [torch.from_numpy(attribute.weights) for attribute in (task, *attributes)]
        self._labels = [label.clamp(min=0) for label in labels]  # some class where there is none, of weight 0
        self._weights = [
            weight[known] * (entry >= 0) for weight, known, entry in zip(weights, self._labels, labels, strict=True)
        ]
        self._priors = [torch.from_numpy(attribute.priors) for attribute in attributes]
        self.module = torch.nn.ModuleDict({"body": body.module, "task": self._task, "adversaries": self._adversaries})
        encoder_parameters = [*body.module.parameters(), *self._task.parameters()]
        if noise.theta is not None:
            self.module.register_parameter("theta", noise.theta)
            encoder_parameters.append(noise.theta)
        fields = {"weight_decay": 2 * options.lambda_, "fused": True}
        self._ours = torch.optim.Adam(encoder_parameters, lr=options.learning_rate, **fields)
        adversary_loss = options.learning_rate * options.adversary_haste
        self._theirs = torch.optim.Adam(self._adversaries.parameters(), lr=adversary_loss, **fields)
        self.optimisers = {"ours": self._ours, "theirs": self._theirs}
        self._slopes: list[tuple[float, float]] = []

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        v = self._noise.bound(self._body.module(batch))
        if self._options.game == "reversal":
            return self._reversed(batch, v, rows)
        adversary_loss = 0.0
        if self._options.alpha and self._options.aim != "decluster":
            for _ in range(self._options.adversary_steps):
                adversary_loss = self._adversaries_move(self._noise.add(v.detach()).detach(), rows)
        z = self._noise.add(v)
        task = self._loss(0, self._task(z), rows)
        loss = task + self._rebuilt(batch, z)
        against = None
        if self._options.alpha:
            hidden = pushed_apart(v) if self._options.aim == "decluster" else self._hidden(z, rows)
            against = self._options.alpha * hidden
            loss = loss + against  # eq. (encoder)
        self._note_slopes(task, against)
        self._ours.zero_grad()
        loss.backward()
        self._ours.step()
        return float(task.detach()), adversary_loss

    def begin(self, bits: RandomBits) -> None:
        self._noise.begin(bits)
        self._slopes = []

    def budget(self) -> LearntBudget | None:
        if self._noise.theta is None or not self._slopes:
            return None
        task, attributes = np.mean(self._slopes, axis=0).tolist()
        return LearntBudget(self._noise.share, task, attributes)

    def _note_slopes(self, task: Any, against: Any) -> None:
        """Those of two terms of the loss over ln epsilon = ln c1 + ln sigmoid(theta), where epsilon is learnt."""
        theta = self._noise.theta
        if theta is None:
            return
        steps = 1 - self._noise.share  # d ln epsilon / d theta
        results = [
            0.0 if entry is None else self._torch.autograd.grad(entry, theta, retain_graph=True, allow_unused=True)[0]
            for entry in (task, against)
        ]
        self._slopes.append(tuple(0.0 if entry is None else float(entry) / steps for entry in results))  # type: ignore[arg-type]

    def look(self) -> TradeOff | None:
        return self._reader.look(self._arrived)

    def _arrived(self, batch: Any) -> Floats:
        """(n, d) vectors of a batch as they arrive, noise and all."""
        with self._torch.no_grad():
            z = self._noise.add(self._noise.bound(self._body.module(batch)))
        arrived: Floats = z.numpy().astype(np.float64)
        return arrived

    def _adversaries_move(self, z: Any, rows: Any) -> float:
        losses = [self._loss(place, head(z), rows) for place, head in enumerate(self._adversaries, 1)]
        loss = sum(losses)
        self._theirs.zero_grad()
        loss.backward()
        self._theirs.step()
        return float(loss.detach()) / len(losses)

    def _hidden(self, z: Any, rows: Any) -> Any:
        result = []
        for place, head in enumerate(self._adversaries, 1):
            answer = head(z)
            if self._options.aim == "confuse":
                logs = self._torch.nn.functional.log_softmax(answer, dim=1)
                result.append(-(logs @ self._priors[place - 1]).mean())  # eq. (confuse)
            elif self._options.aim == "deny":
                labels, weights = self._labelled(place, rows)
                result.append(denial(self._torch, answer, labels, weights))
            else:
                result.append(-self._loss(place, answer, rows))  # eq. (oppose)
        return sum(result) / len(result)

    def _reversed(self, batch: Any, v: Any, rows: Any) -> tuple[float, float]:
        """Gradient reversal (Ganin and Lempitsky 2015): forwards z, backwards -alpha / T of the gradient."""
        z = self._noise.add(v)
        turned = z.detach() - (z - z.detach()) * (self._options.alpha / len(self._adversaries))
        task = self._loss(0, self._task(z), rows)
        adversary_loss = sum(self._loss(place, head(turned), rows) for place, head in enumerate(self._adversaries, 1))
        loss = task + self._rebuilt(batch, z) + adversary_loss
        self._note_slopes(task, adversary_loss)
        self._ours.zero_grad()
        self._theirs.zero_grad()
        loss.backward()
        self._ours.step()
        self._theirs.step()
        return float(task.detach()), float(adversary_loss.detach()) / len(self._adversaries)

    def _rebuilt(self, batch: Any, z: Any) -> Any:
        return self._options.rebuild * self._body.rebuilt(batch, z) if self._options.rebuild else 0.0

    def _loss(self, place: int, answer: Any, rows: Any) -> Any:
        labels, weights = self._labelled(place, rows)
        entry = self._torch.nn.functional.cross_entropy(answer, labels, reduction="none")
        return (entry * weights).sum() / weights.sum().clamp(min=1e-12)

    def _labelled(self, place: int, rows: Any) -> tuple[Any, Any]:
        return self._labels[place][rows], self._weights[place][rows]


def _head(torch: Any, width: int, classes: int, units: int, layers: int) -> Any:
    modules: list[Any] = []
    for _ in range(layers):
        modules += [torch.nn.Linear(width, units), torch.nn.ReLU()]
        width = units
    return torch.nn.Sequential(*modules, torch.nn.Linear(width, classes))


def denial(torch: Any, answers: Any, labels: Any, weights: Any) -> Any:
    """The mean of -ln(1 - p(label)) over a batch, equation (deny)."""
    true = torch.nn.functional.one_hot(labels, answers.shape[1]).bool()
    others = answers.masked_fill(true, float("-inf")).logsumexp(dim=1)
    return ((answers.logsumexp(dim=1) - others) * weights).sum() / weights.sum().clamp(min=1e-12)


def pushed_apart(vectors: Any) -> Any:
    """Minus the mean squared distance of neighbours in a batch, whose order is random: equation (decluster)."""
    return -((vectors - vectors.roll(1, 0)) ** 2).sum(dim=1).mean()


class NoiseInTheLoop:
    """Bound and noise of a training run."""

    def __init__(self, torch: Any, domain: Domain, channel: Channel | None, *, learn: bool) -> None:
        self._torch, self._channel = torch, channel
        self._bounded = bounding(torch, L1_SPHERE if isinstance(channel, L1NormalisedLaplace) else domain)
        self.theta = torch.nn.Parameter(torch.tensor(_START)) if learn else None
        self._bits = RandomBits()

    def begin(self, bits: RandomBits) -> None:
        self._bits = bits

    def bound(self, raw: Any) -> Any:
        """(n, d) vectors as the encoder has them to (n, d) of the domain, with a gradient."""
        return self._bounded(raw)

    def add(self, bounded: Any) -> Any:
        """What arrives of bounded vectors, with a gradient."""
        channel = self._channel
        if channel is None:
            return bounded
        draws = noise_on(self._torch, bounded, lambda clean: channel.sample(clean, self._bits))
        if self.theta is not None:
            draws = draws / self._torch.sigmoid(self.theta)  # eq. (learnt)
        return bounded + draws  # eq. (straight)

    @property
    def share(self) -> float:
        """Of the cap, that the learnt budget is; 1 where none is learnt."""
        return 1.0 if self.theta is None else 1 / (1 + math.exp(-float(self.theta.detach())))


def domain_and_channel(randomizer: Any, dimension: int, bound: Any, *, learn: bool) -> tuple[Domain, Channel | None]:
    """Where vectors are bounded to, and the noise that is added there."""
    if randomizer is not None and not isinstance(randomizer, Randomizer):
        raise ParameterError(
            f"expected a randomizer such as PrivUnit(epsilon=8.0), or None, got {type(randomizer).__name__}"
        )
    by_kind = {kind: domain for domain, kind in TRAINED_INTO.items()}
    check_choice("bound", bound, ("auto", *by_kind))
    if learn and type(randomizer) not in (L2Laplace, DPText):  # what is capped has learnt already
        raise ParameterError(
            "a budget is learnt where the noise is in proportion to 1 / epsilon: give L2Laplace(epsilon=...), whose "
            "epsilon is the cap (or, to compare with its paper, published.DPText)"
        )
    if randomizer is None:
        return by_kind.get(bound, Domain.SPHERE), None
    channel = randomizer.channel(dimension)
    changed = type(channel).noiseless is not Channel.noiseless and not isinstance(channel, L1NormalisedLaplace)
    if channel.width != channel.dimension or channel.domain not in TRAINED_INTO or changed:
        raise ParameterError(
            f"an encoder learns through noise on vectors, {channel.name} sends something else: take PrivUnit, "
            "L2Laplace or Gaussian"
        )
    domain = by_kind.get(bound, channel.domain)
    if domain not in _WITHIN[channel.domain]:
        raise ParameterError(f"{channel.name} takes vectors of the {channel.domain}, bound={bound!r} gives others")
    return domain, channel
