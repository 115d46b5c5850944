"""Networks in torch: plain, robust and adaptive training on noisy vectors.

Derivation: docs/mechanisms/private-vectors.md#representations-training
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.bounds import Domain, Floats
from dptext.representations.randomizer import Channel, Randomizer
from dptext.representations.trained_encoders import Buckets, Rows
from dptext.threads import one_blas_thread
from dptext.validation import check_choice, check_float, check_int

Labels = npt.NDArray[np.intp]
Layers = tuple[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]], ...]
Schedule = str | Sequence[float] | Callable[[int], float]

TRAININGS = ("plain", "robust", "adaptive")
SCHEDULES: dict[str, Callable[[int], tuple[float, ...]]] = {
    "noise-rises-1/n": lambda epochs: tuple(1.0 / n for n in range(1, epochs + 1)),
    "noise-rises-10/n": lambda epochs: tuple(10.0 / n for n in range(1, epochs + 1)),
    "noise-falls-10/n": lambda epochs: tuple(10.0 / n for n in range(epochs, 0, -1)),
}
"""By name: from the number of epochs to an epsilon per epoch. The first two: Zouhri and Abecidan 2021."""

MIN_MAX = "min-max"
L1_SPHERE = "L1 sphere"
_START = 0.5  # vectors and weights start uniform in [-.5, .5]
_TINY = 1e-12


@dataclass(frozen=True)
class Epoch:
    """Losses of one epoch; ``held_out`` is the loss on the held-out rows, None if there are none."""

    number: int
    of: int
    loss: float
    held_out: float | None


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Training options; the defaults follow Lyu et al. 2020, section 4, with early stopping added.

    Attributes:
        hidden: units of the hidden layer, or of each of several; ``()``: a linear layer and softmax.
        dropout: share of the input coordinates that is dropped at every step.
        learning_rate, momentum, weight_decay, batch_size, epochs: of stochastic gradient descent.
        learning_rate_decay: factor on the learning rate after each epoch.
        validation_fraction: share of the rows that is held out for early stopping; 0: none, and all epochs are run.
        patience: epochs without a smaller held-out loss before training stops; the best epoch's weights are kept.
    """

    hidden: int | Sequence[int] = 128
    dropout: float = 0.5
    learning_rate: float = 0.01
    learning_rate_decay: float = 1.0
    momentum: float = 0.9
    weight_decay: float = 1e-6
    batch_size: int = 32
    epochs: int = 50
    validation_fraction: float = 0.1
    patience: int = 10

    def __post_init__(self) -> None:
        is_sequence = isinstance(self.hidden, Sequence) and not isinstance(self.hidden, str)
        for units in self.hidden if is_sequence else (self.hidden,):  # type: ignore[union-attr]
            check_int("hidden", units, minimum=1)
        for name in ("batch_size", "epochs", "patience"):
            check_int(name, getattr(self, name), minimum=1)
        for name in ("dropout", "momentum", "validation_fraction"):
            check_float(name, getattr(self, name), minimum=0, below=1)
        check_float("weight_decay", self.weight_decay, minimum=0)
        for name in ("learning_rate", "learning_rate_decay"):
            check_float(name, getattr(self, name), above=0)

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        return tuple(self.hidden) if isinstance(self.hidden, Sequence) else (self.hidden,)

    def optimiser(self, torch: Any, network: Any, *, fused: bool) -> Any:
        """Stochastic gradient descent; ``fused`` is one pass over weights that may be larger than the cache."""
        settings = {"lr": self.learning_rate, "momentum": self.momentum, "weight_decay": self.weight_decay}
        return torch.optim.SGD(network.parameters(), **settings, fused=fused)

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch (1, 2, ...)."""
        return self.learning_rate * self.learning_rate_decay ** (epoch - 1)


class Training(NamedTuple):
    """The trained layers, all epochs, and the number of the epoch that was kept."""

    layers: Layers
    epochs: tuple[Epoch, ...]
    best: int


def train_mlp(
    vectors: Floats,
    labels: Labels,
    classes: int,
    options: TrainingOptions,
    *,
    seen: Callable[[int, Floats], Floats] = lambda _, vectors: vectors,
    fresh: Callable[[int], tuple[Floats, Labels]] | None = None,
    scale: float | None = None,
    progress: Callable[[Epoch], object] | None = None,
    seed: int | None = None,
    device: str = "cpu",
) -> Training:
    """Train on (n, k) vectors and labels (0 to classes - 1).

    ``seen`` maps an epoch's number and vectors to the network's inputs (0: the form that is held out); ``fresh``
    returns further rows for an epoch; ``scale`` divides the inputs (None: by the root mean square of a coordinate).
    """
    torch = extra("torch", "train", "NoisyClassifier(model='mlp')")
    begin = seen(0, vectors)
    divisor = scale or float(np.sqrt(np.mean(begin**2))) or 1.0

    def tensors(rows: Floats, codes: Labels) -> tuple[Any, Any]:
        inputs, targets = (rows / divisor).astype(np.float32), codes.astype(np.int64)
        return torch.from_numpy(inputs).to(device), torch.from_numpy(targets).to(device)

    others = [] if device == "cpu" else [torch.device(device).index or 0]
    with torch.random.fork_rng(devices=others), one_torch_thread(torch):  # the caller's generators stay as they were
        _seed(torch, seed)
        order = torch.randperm(len(vectors)).numpy()
        mask = hold_out(order, labels, options.validation_fraction)[order]
        held_rows, kept = order[mask], order[~mask]
        network = perceptron(torch, begin.shape[1], classes, options).to(device)
        optimiser = options.optimiser(torch, network, fused=True)
        held_out = tensors(begin[held_rows], labels[held_rows])
        history: list[Epoch] = []
        best, minimum, layers = 0, np.inf, layers_of(network, divisor)
        for number in range(1, options.epochs + 1):
            optimiser.param_groups[0]["lr"] = options.rate(number)
            rows = tensors(seen(number, vectors[kept]), labels[kept])
            if fresh is not None:
                rows = tuple(torch.cat(pair) for pair in zip(rows, tensors(*fresh(number)), strict=True))
            loss = _one_epoch(torch, network, optimiser, rows, options.batch_size)
            held_loss = None
            if len(held_rows):
                network.eval()
                with torch.no_grad():
                    held_loss = float(torch.nn.functional.cross_entropy(network(held_out[0]), held_out[1]))
            history.append(Epoch(number, options.epochs, loss, held_loss))
            if progress is not None:
                progress(history[-1])
            if held_loss is None or held_loss < minimum:
                best, minimum, layers = number, np.inf if held_loss is None else held_loss, layers_of(network, divisor)
            elif number - best >= options.patience:
                break
    return Training(layers, tuple(history), best)


def _seed(torch: Any, seed: int | None) -> None:
    torch.manual_seed(int.from_bytes(RandomBits(seed).take(8), "little") >> 1)


def perceptron(torch: Any, width: int, classes: int, options: TrainingOptions) -> Any:
    """Dropout, hidden layers with max(0, .) after each, and a linear layer."""
    modules = [torch.nn.Dropout(options.dropout)]
    for units in options.hidden_layers:
        modules += [torch.nn.Linear(width, units), torch.nn.ReLU()]
        width = units
    return torch.nn.Sequential(*modules, torch.nn.Linear(width, classes))


@contextmanager
def one_torch_thread(torch: Any) -> Iterator[None]:
    """Use one thread: small batches gain nothing from more, and sums come out the same everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def hold_out(order: Labels, labels: Labels, fraction: float) -> npt.NDArray[np.bool_]:
    """(n,) mask of the rows that are held out: the first of an order, with the same share of each class, never all."""
    mask = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = order[labels[order] == label]
        mask[rows[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    return mask


def _one_epoch(torch: Any, network: Any, optimiser: Any, rows: tuple[Any, Any], batch_size: int) -> float:
    network.train()
    total = 0.0
    for batch in torch.randperm(len(rows[1])).to(rows[1].device).split(batch_size):
        loss = torch.nn.functional.cross_entropy(network(rows[0][batch]), rows[1][batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total += float(loss.detach()) * len(batch)
    return total / len(rows[1])


def layers_of(network: Any, scale: float) -> Layers:
    """Copies of the arrays, with the scale of the inputs folded into the first."""
    linear = [module for module in network if hasattr(module, "weight")]
    arrays = [(module.weight.detach().cpu(), module.bias.detach().cpu()) for module in linear]
    arrays = [(weight.numpy().T.copy(), bias.numpy().copy()) for weight, bias in arrays]
    arrays[0] = ((arrays[0][0] / scale).astype(np.float32), arrays[0][1])
    return tuple(arrays)


# -- split models --------------------------------------------------------------------------------------------------


def train_split(
    texts: Buckets,
    labels: Labels,
    classes: int,
    options: TrainingOptions,
    *,
    buckets: int,
    dimension: int,
    bound: Domain | str,
    noise: TrainingNoise,
    masked: Callable[[Buckets], Buckets] | None = None,
    progress: Callable[[Epoch], object] | None = None,
    seed: int | None = None,
) -> tuple[npt.NDArray[np.float32], Training]:
    """Train n-gram vectors and a head on *public* texts and labels (0 to classes - 1), on the CPU.

    ``bound`` is the domain of the vectors before the noise, or `MIN_MAX`; ``masked`` masks words, anew in each epoch.
    There is no early stopping. Returns (buckets, d) float32 vectors of the n-grams (zeros where no text has one), and
    the head for noisy vectors.
    """
    torch = extra("torch", "train", "a split model")
    bound_vectors = bounding(torch, bound)
    with torch.random.fork_rng(devices=[]), one_torch_thread(torch), one_blas_thread():
        _seed(torch, seed)
        bag = Bag(torch, torch.empty(buckets, dimension).uniform_(-_START, _START))
        head = perceptron(torch, dimension, classes, options)
        if not options.hidden_layers:
            head[-1].weight.data.uniform_(-_START, _START)
            head[-1].bias.data.zero_()
        optimiser = options.optimiser(torch, head, fused=False)
        history: list[Epoch] = []
        for number in range(1, options.epochs + 1):
            rate = optimiser.param_groups[0]["lr"] = options.rate(number)
            order = torch.randperm(len(texts)).numpy()
            mixed, truth = texts.take(order), torch.from_numpy(labels[order].astype(np.int64))
            if masked is not None:
                mixed = masked(mixed)
            total = 0.0
            for start in range(0, len(order), options.batch_size):
                batch = slice(start, min(start + options.batch_size, len(order)))
                means = bag.means(mixed, batch)
                bounded = bound_vectors(means)
                arrived = bounded + noise_on(torch, bounded, lambda clean, epoch=number: noise.on_public(epoch, clean))  # type: ignore[misc]
                loss = torch.nn.functional.cross_entropy(head(arrived), truth[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                bag.step(mixed, batch, means.grad, rate)
                total += float(loss.detach()) * (batch.stop - batch.start)
            history.append(Epoch(number, options.epochs, total / len(order), None))
            if progress is not None:
                progress(history[-1])
        vectors = bag.matrix.numpy()
        occurs = np.zeros(buckets, dtype=bool)
        occurs[texts.values] = True
        vectors[~occurs] = 0.0
        return vectors, Training(layers_of(head, 1.0), tuple(history), len(history))


class Bag:
    """Vectors of n-grams under plain stochastic gradient descent: a step touches only those that occur."""

    def __init__(self, torch: Any, matrix: Any) -> None:
        self._torch, self.matrix = torch, matrix

    def means(self, texts: Buckets, batch: slice) -> Any:
        """(batch, d) mean vectors with a gradient; zeros for a text without any n-gram."""
        starts = texts.starts[batch.start : batch.stop + 1]
        values, offsets = texts.values[starts[0] : starts[-1]], starts[:-1] - starts[0]
        return self._sums(values, self.matrix, offsets, mode="mean").requires_grad_()

    def step(self, texts: Buckets, batch: slice, gradient: Any, rate: float) -> None:
        starts = texts.starts[batch.start : batch.stop + 1]
        values, lengths = texts.values[starts[0] : starts[-1]], np.diff(starts)
        if not values.size:
            return
        shift = len(lengths).bit_length()
        # bucket and text in one integer: sorting them groups the texts of each n-gram
        places = np.sort((values << shift) | np.repeat(np.arange(len(lengths)), lengths))
        occurring, texts_of = places >> shift, places & ((1 << shift) - 1)
        first = np.flatnonzero(np.concatenate([[True], occurring[1:] != occurring[:-1]]))
        shares = gradient / self._torch.from_numpy(np.maximum(lengths, 1).astype(np.float32))[:, None]
        rows = self._torch.from_numpy(occurring[first])
        moved = self.matrix.index_select(0, rows).add_(self._sums(texts_of, shares, first, mode="sum"), alpha=-rate)
        self.matrix.index_copy_(0, rows, moved)

    def _sums(self, rows: Rows, table: Any, starts: Rows, mode: str) -> Any:
        torch = self._torch
        return torch.nn.functional.embedding_bag(torch.from_numpy(rows), table, torch.from_numpy(starts), mode=mode)


def noise_on(torch: Any, bounded: Any, sample: Callable[[Floats], npt.NDArray[Any]]) -> Any:
    """The noise that ``sample`` adds to bounded vectors, without a gradient, equation (straight)."""
    before = bounded.detach().numpy().astype(np.float64)
    return torch.from_numpy((sample(before) - before).astype(np.float32))


def bounding(torch: Any, bound: Domain | str) -> Callable[[Any], Any]:
    """The map into a domain, `MIN_MAX` or `L1_SPHERE`, with a gradient."""

    def sphere(vectors: Any) -> Any:
        lengths = vectors.norm(dim=1, keepdim=True)
        first_axis = torch.zeros_like(vectors)
        first_axis[:, 0] = 1.0
        return torch.where(lengths > _TINY, vectors / lengths.clamp(min=_TINY), first_axis)

    def min_max(vectors: Any) -> Any:
        minimum = vectors.min(dim=1, keepdim=True).values
        return (vectors - minimum) / (vectors.max(dim=1, keepdim=True).values - minimum).clamp(min=_TINY)

    def l1_sphere(vectors: Any) -> Any:
        directions = sphere(vectors)
        return directions / directions.abs().sum(dim=1, keepdim=True)

    maps = {
        Domain.SPHERE: sphere,
        Domain.BALL: lambda vectors: vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1.0),
        Domain.CUBE: lambda vectors: vectors.clamp(-1.0, 1.0),
        MIN_MAX: min_max,
        L1_SPHERE: l1_sphere,
    }
    return maps[bound]


# -- noise of a training -------------------------------------------------------------------------------------------


def epsilons_of(schedule: Any, epochs: int) -> tuple[float, ...]:
    """The epsilon of each epoch."""
    if isinstance(schedule, str):
        return SCHEDULES[check_choice("schedule", schedule, SCHEDULES)](epochs)
    if callable(schedule):
        schedule = [schedule(epoch) for epoch in range(1, epochs + 1)]
    if not isinstance(schedule, Sequence | np.ndarray) or len(schedule) < epochs:
        raise ParameterError(
            f"schedule must be a name, a function of the epoch's number, or a list of {epochs} epsilons, got another "
            f"{type(schedule).__name__}"
        )
    return tuple(
        check_float(f"the schedule's epsilon of epoch {n}", epsilon, above=0)
        for n, epsilon in enumerate(schedule[:epochs], 1)
    )


class TrainingNoise:
    """The noise of one training, epoch by epoch."""

    def __init__(
        self,
        training: str,
        channel: Channel | None,
        randomizer: Randomizer | None,
        *,
        schedule: Any,
        epochs: int,
        seed: int | None,
    ) -> None:
        self.training = check_choice("training", training, TRAININGS)
        self.channel = channel
        self.epsilons: tuple[float, ...] = ()
        self._channels: tuple[Channel, ...] = ()
        if training == "adaptive":
            if channel is None or randomizer is None:
                raise ParameterError(
                    "adaptive training draws noise at other epsilons than the users': pass the randomizer, or the "
                    "statement of the vectors, as channel"
                )
            self.epsilons = epsilons_of(schedule, epochs)
            self._channels = tuple(
                replace(randomizer, epsilon=epsilon).channel(channel.dimension) for epsilon in self.epsilons
            )
        bits = RandomBits() if seed is None else RandomBits.keyed(seed_bytes(b"noise of a training", seed))
        self._streams = bits.spawn(epochs + 1)

    def on_public(self, epoch: int, vectors: Floats) -> Floats:
        """(n, d) **public** vectors of the channel's domain, as the network sees them in an epoch (1, 2, ...)."""
        if self.training == "plain":
            return vectors if self.channel is None else self.channel.noiseless(vectors)
        channel = self._channels[epoch - 1] if epoch and self._channels else self.channel
        if channel is None:
            raise ParameterError(
                "robust training draws the users' noise on public vectors: pass the channel, or training='plain'"
            )
        return channel.sample(vectors, self._streams[epoch]).astype(np.float64)

    def on_arrived(self, epoch: int, vectors: Floats) -> Floats:
        """(n, k) vectors that **arrived noisy**, as an epoch sees them: noise is added, never redrawn."""
        if not epoch or self.channel is None or not self._channels:
            return vectors
        error, target = self.channel.expected_squared_error, self._channels[epoch - 1].expected_squared_error
        if not (math.isfinite(error) and math.isfinite(target)):
            raise ParameterError(
                f"the outputs of {self.channel.name} estimate no vector, so the noise to add is unknown: train on "
                "public vectors (fit_public), or with training='robust'"
            )
        deviation = math.sqrt(max(target - error, 0.0) / self.channel.width)
        return vectors + deviation * self._streams[epoch].normal(*vectors.shape) if deviation else vectors

    def input_scale(self, seen: Callable[[int, Floats], Floats], vectors: Floats) -> float | None:
        """The root mean square of a coordinate over all epochs of adaptive training, none of which is typical."""
        if not self.epsilons:
            return None
        sample = vectors[:: max(1, len(vectors) // 512)]
        epochs = range(1, len(self.epsilons) + 1)
        return math.sqrt(float(np.mean([np.mean(seen(epoch, sample) ** 2) for epoch in epochs]))) or 1.0
