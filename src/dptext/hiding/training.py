"""Adversarial training: an encoder and a task head against one adversary per attribute (torch).

Derivation: docs/mechanisms/hiding.md#hiding-training
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.hiding.inputs import Rows, Target, TradeOff, shuffled, stream_of, trade_off
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import L1NormalisedLaplace, L2Laplace
from dptext.representations.bounds import TRAINED_INTO, Domain, Floats
from dptext.representations.encoders import Provenance
from dptext.representations.layers import HidingLayers
from dptext.representations.published import DPText
from dptext.representations.randomizer import Channel, Randomizer
from dptext.threads import one_blas_thread
from dptext.validation import check_choice, check_float, check_int

GAMES = ("alternating", "reversal")
AIMS = ("oppose", "deny", "decluster")
_COUNTS = ("epochs", "batch_size", "adversary_steps", "patience")
_START = 2.0  # theta: the budget starts at 88% of the cap
_HEAD_UNITS = 200
_TINY, _SMALLEST = 1e-12, 1e-30
_EVALUATED, _EVALUATION_BATCH = 8192, 512  # rows that new classifiers are fitted on


@dataclass(frozen=True, kw_only=True)
class HidingOptions:
    """Options of a training that hides attributes.

    The defaults of game, steps and haste are the only ones tried that kept new attackers (logistic regression and a
    perceptron) from an attribute, with and without noise, at about the same task accuracy (``benchmarks/hiding.py``):
    adversaries have to learn faster than the encoder and take several steps per step of the encoder.

    Attributes:
        dimension: d, of the released vectors. At small budgets, choose few.
        hidden: units of a hidden layer between encoder and vector; None: a linear map.
        epochs, batch_size, learning_rate: of Adam (Kingma and Ba 2015).
        learn_epsilon: learn an epsilon below the cap c1, the epsilon of the randomizer (an `L2Laplace`). The
            statement has the cap (`dptext.representations.additive.CappedLaplace`). With `DPText` as published there
            is no guarantee.
        alpha: weight of the mean loss of the adversaries against the loss of the task; 0: no adversaries.
        lambda_: weight of the sum of the squared weights.
        game: ``"alternating"``: the adversaries take several steps, then the encoder takes one. ``"reversal"``: one
            step for all; the gradient of the adversaries is reversed where it enters the encoder.
        aim: ``"oppose"``: the encoder raises the loss of the adversaries. ``"deny"``, ``"decluster"``: the defences of
            Coavoux et al. 2018.
        adversary_steps: of the adversaries per step of the encoder (alternating).
        adversary_haste: learning rate of the adversaries, as a multiple of the encoder's.
        validation_fraction: share of the rows (or users) that is held out to choose the epoch; 0: none, and the last
            epoch is kept.
        patience: epochs without a better trade-off before training stops.
        public: True if ``fit`` declares its data public.
        public_name: name of the public data, for the statement.
        progress: called with a `HidingEpoch` after each epoch.
        seed: of the training. The noise of a release is always fresh.
    """

    dimension: int = 64
    hidden: int | None = None
    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 1e-3
    learn_epsilon: bool = False
    alpha: float = 1.0
    lambda_: float = 1e-5
    game: str = "alternating"
    aim: str = "oppose"
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
        check_choice("game", self.game, GAMES)
        check_choice("aim", self.aim, AIMS)
        Provenance(trained_on=self.public_name, public=self.public)


@dataclass(frozen=True)
class LearntBudget:
    """A learnt epsilon after an epoch: its share of the cap, and the slopes of both losses over ln epsilon."""

    share: float
    task: float
    attributes: float


@dataclass(frozen=True)
class HidingEpoch:
    """Losses and held-out trade-off of one epoch."""

    number: int
    of: int
    loss: float
    adversaries: float
    held_out: TradeOff | None
    budget: LearntBudget | None = None


class Trained(NamedTuple):
    """The layers of the best epoch, its number, all epochs, and the learnt budget as a share of the cap."""

    layers: HidingLayers
    best: int
    epochs: tuple[HidingEpoch, ...]
    share: float


def train_layers(
    torch: Any,
    vectors: npt.NDArray[np.float32],
    targets: Sequence[Target],
    channel: Channel | None,
    parts: tuple[Rows, Rows],
    options: HidingOptions,
    start: int,
) -> Trained:
    """Train layers on (n, D) vectors and their targets (the task first); ``parts`` are kept and held-out rows."""
    kept, held_out = parts
    fitted_on = shuffled(kept, stream_of(start, b"looked at"))[:_EVALUATED]

    def seed_torch(purpose: bytes) -> None:
        torch.manual_seed(int.from_bytes(stream_of(start, purpose).take(8), "little") >> 1)

    with torch.random.fork_rng(devices=[]), one_torch_thread(torch), one_blas_thread():
        seed_torch(b"first weights")
        body = _Layers(torch, vectors, kept, options)
        noise = NoiseInTheLoop(torch, channel, learn=options.learn_epsilon)
        game = Game(torch, body.module, noise, targets, options)

        def arrived(rows: Rows) -> tuple[Floats, Rows]:
            """(n, d) noisy vectors of rows, and the rows."""
            with torch.no_grad():
                batches = [rows[first : first + _EVALUATION_BATCH] for first in range(0, len(rows), _EVALUATION_BATCH)]
                sent = [noise.add(noise.bound(body.module(body.take(batch)))).numpy() for batch in batches]
            return np.concatenate(sent).astype(np.float64), rows

        history: list[HidingEpoch] = []
        best, highest, weights = 0, -math.inf, game.module.state_dict()
        for epoch in range(1, options.epochs + 1):
            if history and history[-1].held_out is not None and epoch - 1 - best >= options.patience:
                break
            seed_torch(b"sampling %d" % epoch)
            noise.bits, game.slopes = stream_of(start, b"noise %d" % epoch), []
            order = shuffled(kept, stream_of(start, b"order %d" % epoch))
            losses = np.zeros(2)
            for first in range(0, len(order), options.batch_size):
                rows = order[first : first + options.batch_size]
                losses += np.array(game.step(body.take(rows), torch.from_numpy(rows))) * len(rows)
            loss, adversary_loss = (losses / len(order)).tolist()
            if not (math.isfinite(loss) and math.isfinite(adversary_loss)):
                raise ParameterError(
                    f"training diverged in epoch {epoch} (the loss is not finite): lower learning_rate"
                )
            seen = None
            if held_out.size:
                seen = trade_off(arrived(fitted_on), arrived(held_out), targets, options.alpha)
            history.append(HidingEpoch(epoch, options.epochs, loss, adversary_loss, seen, game.budget()))
            score = -math.inf if seen is None or math.isnan(seen.score) else seen.score
            if score > highest or score == -math.inf:  # without a score, the last epoch is kept
                best, highest = epoch, score
                weights = {name: entry.clone() for name, entry in game.module.state_dict().items()}
            if options.progress is not None:
                options.progress(history[-1])
        game.module.load_state_dict(weights)
        return Trained(body.layers(), best, tuple(history), noise.share)


@contextmanager
def one_torch_thread(torch: Any) -> Iterator[None]:
    """Use one thread: small batches gain nothing from more, and sums come out the same everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Layers:
    """Layers from (n, D) vectors to d dimensions, on standardised inputs."""

    def __init__(self, torch: Any, vectors: npt.NDArray[np.float32], rows: Rows, options: HidingOptions) -> None:
        kept = vectors[rows].astype(np.float64)
        self._centre = kept.mean(axis=0)
        spread = kept.std(axis=0)
        # a coordinate that hardly varies is not blown up beyond float32
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
        """The layers for vectors that are not standardised."""
        linear = [module for module in self.module if hasattr(module, "weight")]
        arrays: Any = [
            (entry.weight.detach().numpy().T.astype(np.float64), entry.bias.detach().numpy().astype(np.float64))
            for entry in linear
        ]
        weights = arrays[0][0] / self._scale[:, None]
        return HidingLayers(((weights, arrays[0][1] - self._centre @ weights), *arrays[1:]))


class Game:
    """Encoder, task head and adversaries with their optimisers."""

    def __init__(
        self, torch: Any, encoder: Any, noise: NoiseInTheLoop, targets: Sequence[Target], options: HidingOptions
    ) -> None:
        self._torch, self._encoder, self._noise, self._options = torch, encoder, noise, options
        heads = [
            torch.nn.Sequential(
                torch.nn.Linear(options.dimension, _HEAD_UNITS),
                torch.nn.ReLU(),
                torch.nn.Linear(_HEAD_UNITS, len(target.classes)),
            )
            for target in targets
        ]
        self._task, self._adversaries = heads[0], torch.nn.ModuleList(heads[1:])
        self._labels, self._weights = [], []
        for target in targets:
            codes = torch.from_numpy(target.codes)
            self._labels.append(codes.clamp(min=0))  # a missing label: any class, with weight 0
            self._weights.append(torch.from_numpy(target.weights)[self._labels[-1]] * (codes >= 0))
        self.module = torch.nn.ModuleDict({"body": encoder, "task": self._task, "adversaries": self._adversaries})
        encoder_parameters = [*encoder.parameters(), *self._task.parameters()]
        if noise.theta is not None:
            self.module.register_parameter("theta", noise.theta)
            encoder_parameters.append(noise.theta)
        settings = {"weight_decay": 2 * options.lambda_, "fused": True}
        adversary_rate = options.learning_rate * options.adversary_haste
        self._ours = torch.optim.Adam(encoder_parameters, lr=options.learning_rate, **settings)
        self._theirs = torch.optim.Adam(self._adversaries.parameters(), lr=adversary_rate, **settings)
        self.slopes: list[tuple[float, float]] = []

    def step(self, batch: Any, rows: Any) -> tuple[float, float]:
        """Take one step on a batch; return the losses of the task and of the adversaries."""
        options = self._options
        bounded = self._noise.bound(self._encoder(batch))
        if options.game == "reversal":
            return self._reversed_step(bounded, rows)
        adversary_loss = 0.0
        if options.alpha and options.aim != "decluster":
            for _ in range(options.adversary_steps):
                loss = self._adversary_loss(self._noise.add(bounded.detach()).detach(), rows)
                self._theirs.zero_grad()
                loss.backward()
                self._theirs.step()
                adversary_loss = float(loss.detach()) / len(self._adversaries)
        z = self._noise.add(bounded)
        loss = task = self._loss(0, self._task(z), rows)
        against = None
        if options.alpha:
            hiding = pushed_apart(bounded) if options.aim == "decluster" else self._against_adversaries(z, rows)
            against = options.alpha * hiding
            loss = task + against  # eq. (encoder)
        self._note_slopes(task, against)
        self._ours.zero_grad()
        loss.backward()
        self._ours.step()
        return float(task.detach()), adversary_loss

    def budget(self) -> LearntBudget | None:
        """The learnt budget after an epoch, if there is one."""
        if self._noise.theta is None or not self.slopes:
            return None
        task, attributes = np.mean(self.slopes, axis=0).tolist()
        return LearntBudget(self._noise.share, task, attributes)

    def _reversed_step(self, bounded: Any, rows: Any) -> tuple[float, float]:
        """Gradient reversal (Ganin and Lempitsky 2015): forwards z, backwards -alpha / T of the gradient."""
        z = self._noise.add(bounded)
        reversed_z = z.detach() - (z - z.detach()) * (self._options.alpha / len(self._adversaries))
        task, adversary_loss = self._loss(0, self._task(z), rows), self._adversary_loss(reversed_z, rows)
        self._note_slopes(task, adversary_loss)
        self._ours.zero_grad()
        self._theirs.zero_grad()
        (task + adversary_loss).backward()
        self._ours.step()
        self._theirs.step()
        return float(task.detach()), float(adversary_loss.detach()) / len(self._adversaries)

    def _adversary_loss(self, z: Any, rows: Any) -> Any:
        return sum(self._loss(place, head(z), rows) for place, head in enumerate(self._adversaries, 1))

    def _against_adversaries(self, z: Any, rows: Any) -> Any:
        losses = []
        for place, head in enumerate(self._adversaries, 1):
            answers = head(z)
            if self._options.aim == "deny":
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
        self.slopes.append((slopes[0], slopes[1]))

    def _loss(self, place: int, answers: Any, rows: Any) -> Any:
        weights = self._weights[place][rows]
        losses = self._torch.nn.functional.cross_entropy(answers, self._labels[place][rows], reduction="none")
        return (losses * weights).sum() / weights.sum().clamp(min=_TINY)


def denial(torch: Any, answers: Any, labels: Any, weights: Any) -> Any:
    """The mean of -ln(1 - p(label)) over a batch, equation (deny)."""
    true = torch.nn.functional.one_hot(labels, answers.shape[1]).bool()
    others = answers.masked_fill(true, float("-inf")).logsumexp(dim=1)
    return ((answers.logsumexp(dim=1) - others) * weights).sum() / weights.sum().clamp(min=_TINY)


def pushed_apart(vectors: Any) -> Any:
    """Minus the mean squared distance of neighbours in a batch, whose order is random: equation (decluster)."""
    return -((vectors - vectors.roll(1, 0)) ** 2).sum(dim=1).mean()


class NoiseInTheLoop:
    """Bound and noise of a training, with gradients; ``theta`` is the learnt budget, or None."""

    def __init__(self, torch: Any, channel: Channel | None, *, learn: bool) -> None:
        self._torch, self._channel = torch, channel
        domain = Domain.SPHERE if channel is None else channel.domain
        self.bound = bounding(torch, domain, in_l1=isinstance(channel, L1NormalisedLaplace))
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


def noise_on(torch: Any, bounded: Any, sample: Callable[[Floats], npt.NDArray[Any]]) -> Any:
    """The noise that ``sample`` adds to bounded vectors, without a gradient, equation (straight)."""
    before = bounded.detach().numpy().astype(np.float64)
    return torch.from_numpy((sample(before) - before).astype(np.float32))


def bounding(torch: Any, domain: Domain, *, in_l1: bool = False) -> Callable[[Any], Any]:
    """The map into a domain, with a gradient; ``in_l1``: onto the sphere, then scaled to L1 norm 1."""

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


def training_channel(randomizer: Randomizer | None, dimension: int, *, learn: bool) -> Channel | None:
    """The noise of a training, or None; raise if no encoder can be trained through it."""
    if learn and type(randomizer) not in (L2Laplace, DPText):
        raise ParameterError(
            "learn_epsilon needs noise proportional to 1 / epsilon: pass L2Laplace(epsilon=...), whose epsilon is the "
            "cap (or, to compare with the paper, published.DPText)"
        )
    if randomizer is None:
        return None
    channel = randomizer.channel(dimension)
    if not (channel.keeps_vectors or isinstance(channel, L1NormalisedLaplace)) or channel.domain not in TRAINED_INTO:
        raise ParameterError(
            f"{channel.name} does not add noise to a vector, so no encoder can be trained through it: choose PrivUnit, "
            "L2Laplace or Gaussian"
        )
    return channel
