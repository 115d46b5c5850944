"""Networks in torch: plain and robust training of a perceptron on noisy vectors.

Derivation: docs/mechanisms/private-vectors.md#representations-training
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.errors import extra
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.bounds import Floats
from dptext.representations.randomizer import Channel
from dptext.validation import check_float, check_int

Labels = npt.NDArray[np.intp]
Layers = tuple[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]], ...]


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
        validation_fraction: share of the rows that is held out for early stopping; 0: none, and all epochs are run.
        patience: epochs without a smaller held-out loss before training stops; the best epoch's weights are kept.
    """

    hidden: int | Sequence[int] = 128
    dropout: float = 0.5
    learning_rate: float = 0.01
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
        check_float("learning_rate", self.learning_rate, above=0)


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
    progress: Callable[[Epoch], object] | None = None,
    seed: int | None = None,
    device: str = "cpu",
) -> Training:
    """Train on (n, k) vectors and labels (0 to classes - 1).

    ``seen`` maps an epoch's number and vectors to the network's inputs (0: the form that is held out); ``fresh``
    returns further rows for an epoch.
    """
    torch = extra("torch", "train", "NoisyClassifier(model='mlp')")
    begin = seen(0, vectors)
    scale = float(np.sqrt(np.mean(begin**2))) or 1.0

    def tensors(rows: Floats, codes: Labels) -> tuple[Any, Any]:
        inputs, targets = (rows / scale).astype(np.float32), codes.astype(np.int64)
        return torch.from_numpy(inputs).to(device), torch.from_numpy(targets).to(device)

    others = [] if device == "cpu" else [torch.device(device).index or 0]
    with torch.random.fork_rng(devices=others), one_torch_thread(torch):  # the caller's generators stay as they were
        seed_torch(torch, seed)
        order = torch.randperm(len(vectors)).numpy()
        mask = hold_out(order, labels, options.validation_fraction)[order]
        held_rows, kept = order[mask], order[~mask]
        network = perceptron(torch, begin.shape[1], classes, options).to(device)
        settings = {"lr": options.learning_rate, "momentum": options.momentum, "weight_decay": options.weight_decay}
        optimiser = torch.optim.SGD(network.parameters(), **settings, fused=True)  # one pass over the weights
        held_out = tensors(begin[held_rows], labels[held_rows])
        history: list[Epoch] = []
        best, minimum, layers = 0, np.inf, layers_of(network, scale)
        for number in range(1, options.epochs + 1):
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
                best, minimum, layers = number, np.inf if held_loss is None else held_loss, layers_of(network, scale)
            elif number - best >= options.patience:
                break
    return Training(layers, tuple(history), best)


def seed_torch(torch: Any, seed: int | None) -> None:
    """Seed torch's generator; None: with cryptographic randomness."""
    torch.manual_seed(int.from_bytes(RandomBits(seed).take(8), "little") >> 1)


def perceptron(torch: Any, width: int, classes: int, options: TrainingOptions) -> Any:
    """Dropout, hidden layers with max(0, .) after each, and a linear layer."""
    modules = [torch.nn.Dropout(options.dropout)]
    for units in options.hidden if isinstance(options.hidden, Sequence) else (options.hidden,):
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


def fresh_noise(channels: Sequence[Channel], seed: int | None) -> Callable[[int, Floats], Floats]:
    """Return a function of an epoch (0, 1, ...) and *public* vectors: these through the channel of the epoch.

    Each epoch draws from a stream of its own. Vectors that *arrived* noisy never get here: to draw noise on the clean
    ones in each epoch would be one release per epoch.
    """
    bits = RandomBits() if seed is None else RandomBits.keyed(seed_bytes(b"noise of a training", seed))
    streams = bits.spawn(len(channels))

    def send(epoch: int, vectors: Floats) -> Floats:
        return channels[epoch].sample(vectors, streams[epoch]).astype(np.float64)

    return send
