"""Adversarial training: an encoder and a task head against one adversary per attribute (torch).

Derivation: docs/mechanisms/hiding.md#hiding-training
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.hiding.inputs import Rows, Target, TradeOff, shuffled, stream_of, trade_off
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import L1NormalisedLaplace
from dptext.representations.bounds import TRAINED_INTO, Domain, Floats
from dptext.representations.encoders import Provenance
from dptext.representations.layers import HidingLayers
from dptext.representations.randomizer import Channel, Randomizer
from dptext.threads import one_blas_thread, torch_threads
from dptext.validation import check_float, check_int

_COUNTS = ("epochs", "batch_size", "adversary_steps", "patience")
_HEAD_UNITS = 200
_TINY, _SMALLEST = 1e-12, 1e-30
_EVALUATED, _EVALUATION_BATCH = 8192, 512  # rows that new classifiers are fitted on


@dataclass(frozen=True, kw_only=True)
class HidingOptions:
    """Options of a training that hides attributes.

    The defaults of steps and haste are the only ones tried that hid an attribute from new attackers (logistic
    regression and a perceptron), with and without noise, at about the same task accuracy (``benchmarks/hiding.py``):
    adversaries have to learn faster than the encoder and take several steps per step of the encoder.

    Attributes:
        dimension: d, the length of the released vectors. Choose a small one for small budgets.
        hidden: units of a hidden layer between encoder and vector; None: a linear map.
        epochs, batch_size, learning_rate: settings of Adam (Kingma and Ba 2015).
        alpha: weight of the mean loss of the adversaries against the loss of the task; 0: no adversaries.
        lambda_: weight of the sum of the squared weights.
        adversary_steps: steps of the adversaries per step of the encoder.
        adversary_haste: learning rate of the adversaries, as a multiple of the encoder's.
        validation_fraction: fraction of the rows (or users) held out to choose the epoch; 0: none, and the last
            epoch is kept.
        patience: epochs without a better trade-off before training stops.
        public: True if ``fit`` declares its data public.
        public_name: name of the public data, for the statement.
        progress: called with a `HidingEpoch` after each epoch.
        seed: seed of the training. The noise of a release is always fresh.
    """

    dimension: int = 64
    hidden: int | None = None
    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 1e-3
    alpha: float = 1.0
    lambda_: float = 1e-5
    adversary_steps: int = 3
    adversary_haste: float = 5.0
    validation_fraction: float = 0.1
    patience: int = 10
    public: bool = False
    public_name: str | None = None
    progress: Callable[[HidingEpoch], object] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        check_int("dimension", self.dimension, minimum=2, maximum=2**20)
        for name in _COUNTS if self.hidden is None else ("hidden", *_COUNTS):
            check_int(name, getattr(self, name), minimum=1)
        for name in ("learning_rate", "adversary_haste"):
            check_float(name, getattr(self, name), above=0)
        for name in ("alpha", "lambda_"):
            check_float(name, getattr(self, name), minimum=0)
        check_float("validation_fraction", self.validation_fraction, minimum=0, below=0.9)
        Provenance(trained_on=self.public_name, public=self.public)


@dataclass(frozen=True)
class HidingEpoch:
    """Losses and held-out trade-off of one epoch."""

    number: int
    of: int
    loss: float
    adversaries: float
    held_out: TradeOff | None


def train_layers(
    torch: Any,
    vectors: npt.NDArray[np.float32],
    targets: Sequence[Target],
    channel: Channel | None,
    parts: tuple[Rows, Rows],
    options: HidingOptions,
    start: int,
    *,
    game_type: type[Game] | None = None,
) -> tuple[HidingLayers, int, tuple[HidingEpoch, ...]]:
    """Train layers on (n, D) vectors and their targets (the task first); ``parts`` are kept and held-out rows.

    Return the layers of the best epoch, its number, and all epochs.
    """
    kept, held_out = parts
    fitted_on = shuffled(kept, stream_of(start, b"looked at"))[:_EVALUATED]

    def seed_torch(purpose: bytes) -> None:
        torch.manual_seed(int.from_bytes(stream_of(start, purpose).take(8), "little") >> 1)

    with torch.random.fork_rng(devices=[]), torch_threads(1), one_blas_thread():
        seed_torch(b"first weights")
        body = _Layers(torch, vectors, kept, options)
        game = (game_type or Game)(torch, body.module, channel, targets, options)

        def arrived(rows: Rows) -> tuple[Floats, Rows]:
            """Return (n, d) noisy vectors of rows, and the rows."""
            with torch.no_grad():
                batches = [rows[first : first + _EVALUATION_BATCH] for first in range(0, len(rows), _EVALUATION_BATCH)]
                sent = [game.add(game.bound(body.module(body.take(batch)))).numpy() for batch in batches]
            return np.concatenate(sent).astype(np.float64), rows

        history: list[HidingEpoch] = []
        best, highest, weights = 0, -math.inf, game.module.state_dict()
        for epoch in range(1, options.epochs + 1):
            if history and history[-1].held_out is not None and epoch - 1 - best >= options.patience:
                break
            seed_torch(b"sampling %d" % epoch)
            game.bits = stream_of(start, b"noise %d" % epoch)
            order = shuffled(kept, stream_of(start, b"order %d" % epoch))
            losses = np.zeros(2)
            for first in range(0, len(order), options.batch_size):
                rows = order[first : first + options.batch_size]
                losses += np.array(game.step(body.take(rows), torch.from_numpy(rows))) * len(rows)
            loss, adversary_loss = (losses / len(order)).tolist()
            if not (math.isfinite(loss) and math.isfinite(adversary_loss)):
                raise ParameterError(f"training diverged in epoch {epoch} (no finite loss): lower learning_rate")
            seen = None
            if held_out.size:
                seen = trade_off(arrived(fitted_on), arrived(held_out), targets, options.alpha)
            history.append(HidingEpoch(epoch, options.epochs, loss, adversary_loss, seen))
            score = -math.inf if seen is None or math.isnan(seen.score) else seen.score
            if score > highest or score == -math.inf:  # without a score, the last epoch is kept
                best, highest = epoch, score
                weights = {name: entry.clone() for name, entry in game.module.state_dict().items()}
            if options.progress is not None:
                options.progress(history[-1])
        game.module.load_state_dict(weights)
        return body.layers(), best, tuple(history)


class _Layers:
    """Layers from (n, D) vectors to d dimensions, on standardised inputs."""

    def __init__(self, torch: Any, vectors: npt.NDArray[np.float32], rows: Rows, options: HidingOptions) -> None:
        kept = vectors[rows].astype(np.float64)
        self._centre = kept.mean(axis=0)
        spread = kept.std(axis=0)
        # scaling must not push an almost constant coordinate beyond float32
        self._scale = np.maximum(spread, max(1e-3 * (spread.max() or 1.0), _SMALLEST))
        self._inputs = torch.from_numpy(((vectors - self._centre) / self._scale).astype(np.float32))
        width = vectors.shape[1]
        modules: list[Any] = []
        if options.hidden is not None:
            modules += [torch.nn.Linear(width, options.hidden), torch.nn.ReLU()]
            width = options.hidden
        self.module = torch.nn.Sequential(*modules, torch.nn.Linear(width, options.dimension))
        self._torch = torch

    def take(self, rows: Rows) -> Any:
        return self._inputs[self._torch.from_numpy(rows)]

    def layers(self) -> HidingLayers:
        """Return the layers for vectors that are not standardised."""
        linear = [module for module in self.module if hasattr(module, "weight")]
        arrays: Any = [
            (entry.weight.detach().numpy().T.astype(np.float64), entry.bias.detach().numpy().astype(np.float64))
            for entry in linear
        ]
        weights = arrays[0][0] / self._scale[:, None]
        return HidingLayers(((weights, arrays[0][1] - self._centre @ weights), *arrays[1:]))


class Game:
    """Encoder, task head and adversaries with their optimisers; bound and noise of the training, with gradients."""

    def __init__(
        self, torch: Any, encoder: Any, channel: Channel | None, targets: Sequence[Target], options: HidingOptions
    ) -> None:
        self.torch, self.encoder, self.channel, self.options = torch, encoder, channel, options
        domain = Domain.SPHERE if channel is None else channel.domain
        self.bound = bounding(torch, domain, in_l1=isinstance(channel, L1NormalisedLaplace))
        self.bits = RandomBits()
        heads = [
            torch.nn.Sequential(
                torch.nn.Linear(options.dimension, _HEAD_UNITS),
                torch.nn.ReLU(),
                torch.nn.Linear(_HEAD_UNITS, len(target.classes)),
            )
            for target in targets
        ]
        self.task, self.adversaries = heads[0], torch.nn.ModuleList(heads[1:])
        self.labels, self.weights = [], []
        for target in targets:
            codes = torch.from_numpy(target.codes)
            self.labels.append(codes.clamp(min=0))  # a missing label: any class, with weight 0
            self.weights.append(torch.from_numpy(target.weights)[self.labels[-1]] * (codes >= 0))
        self.module = torch.nn.ModuleDict({"body": encoder, "task": self.task, "adversaries": self.adversaries})
        settings = {"weight_decay": 2 * options.lambda_, "fused": True}
        rate, encoder_parameters = options.learning_rate, [*encoder.parameters(), *self.task.parameters()]
        self.ours = torch.optim.Adam(encoder_parameters, lr=rate, **settings)
        self.theirs = torch.optim.Adam(self.adversaries.parameters(), lr=rate * options.adversary_haste, **settings)

    def add(self, bounded: Any) -> Any:
        """Add noise to bounded vectors, eq. (straight)."""
        channel = self.channel
        if channel is None:
            return bounded
        return bounded + noise_on(self.torch, bounded, lambda clean: channel.sample(clean, self.bits))

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        """Take one step on a batch; return the losses of the task and of the adversaries."""
        options = self.options
        bounded = self.bound(self.encoder(batch))
        adversary_loss = self.adversary_steps(bounded, rows) if options.alpha else 0.0
        z = self.add(bounded)
        loss = task = self.loss(0, self.task(z), rows)
        if options.alpha:
            loss = task - options.alpha * (self.adversary_loss(z, rows) / len(self.adversaries))  # eq. (encoder)
        self.ours.zero_grad()
        loss.backward()
        self.ours.step()
        return float(task.detach()), adversary_loss

    def adversary_steps(self, bounded: Any, rows: Any) -> float:
        """Let the adversaries take their steps; return the last mean loss."""
        loss = 0.0
        for _ in range(self.options.adversary_steps):
            losses = self.adversary_loss(self.add(bounded.detach()).detach(), rows)
            self.theirs.zero_grad()
            losses.backward()
            self.theirs.step()
            loss = float(losses.detach()) / len(self.adversaries)
        return loss

    def adversary_loss(self, z: Any, rows: Any) -> Any:
        return sum(self.loss(place, head(z), rows) for place, head in enumerate(self.adversaries, 1))

    def loss(self, place: int, answers: Any, rows: Any) -> Any:
        """Return the weighted cross-entropy of a head; place 0 is the task."""
        weights = self.weights[place][rows]
        losses = self.torch.nn.functional.cross_entropy(answers, self.labels[place][rows], reduction="none")
        return (losses * weights).sum() / weights.sum().clamp(min=_TINY)


def noise_on(torch: Any, bounded: Any, sample: Callable[[Floats], npt.NDArray[Any]]) -> Any:
    """Return the noise that ``sample`` adds to bounded vectors, without a gradient, equation (straight)."""
    before = bounded.detach().numpy().astype(np.float64)
    return torch.from_numpy((sample(before) - before).astype(np.float32))


def bounding(torch: Any, domain: Domain, *, in_l1: bool = False) -> Callable[[Any], Any]:
    """Return the map into a domain, with a gradient; ``in_l1``: onto the sphere, then scaled to L1 norm 1."""

    def sphere(vectors: Any) -> Any:
        lengths = vectors.norm(dim=1, keepdim=True)
        first_axis = torch.zeros_like(vectors)
        first_axis[:, 0] = 1.0
        directions = torch.where(lengths > _TINY, vectors / lengths.clamp(min=_TINY), first_axis)
        return directions / directions.abs().sum(dim=1, keepdim=True) if in_l1 else directions

    maps = {
        Domain.SPHERE: sphere,
        Domain.BALL: lambda vectors: vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1.0),
        Domain.CUBE: lambda vectors: vectors.clamp(-1.0, 1.0),
    }
    return maps[domain]


def training_channel(randomizer: Randomizer | None, dimension: int) -> Channel | None:
    """Return the noise of a training, or None; raise if no encoder can be trained through it."""
    if randomizer is None:
        return None
    channel = randomizer.channel(dimension)
    if not (channel.keeps_vectors or isinstance(channel, L1NormalisedLaplace)) or channel.domain not in TRAINED_INTO:
        raise ParameterError(
            f"{channel.name} does not add noise to a vector, so no encoder can be trained through it: choose PrivUnit, "
            "L2Laplace or Gaussian"
        )
    return channel
