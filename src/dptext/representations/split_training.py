"""The training of a split model: n-gram vectors and a head together, the noise in between (extra ``train``: torch).

Texts and labels are **public**: noise is drawn on their vectors anew for every batch of every epoch.

The device's part is bag, then bound; the server's is the head. What the head sees in training is z = sample(x) with x
the bounded mean of a text's n-gram vectors, and its gradient is passed on to x as if z were x plus noise that does not
depend on x:

    dL/dx = dL/dz                                                                                       (straight)

That is exact for additive noise, and right in expectation to first order for every unbiased randomizer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.files.formats import extra
from dptext.privacy.randomness import RandomBits
from dptext.representations.domains import Domain
from dptext.representations.mlp import (
    Epoch,
    Labels,
    Layers,
    TrainingOptions,
    layers_of,
    one_torch_thread,
    perceptron,
)
from dptext.representations.ngrams import Buckets, Rows
from dptext.representations.training import TrainingNoise
from dptext.threads import one_blas_thread

__all__ = ["L1_SPHERE", "MIN_MAX", "Bag", "SplitTraining", "bounding", "train_split"]

MIN_MAX = "min-max"
L1_SPHERE = "L1 sphere"
_START = 0.5  # vectors and weights start uniform in [-.5, .5]
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class SplitTraining:
    """What was trained.

    Attributes:
        matrix: (buckets, d) float32: the vectors of the n-grams; zeros where no text had one.
        layers: of the head, for vectors as they arrive.
        epochs: as they came.
    """

    matrix: npt.NDArray[np.float32]
    layers: Layers
    epochs: tuple[Epoch, ...]


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
    progress: Callable[[Epoch], object] | None = None,
    seed: int | None = None,
) -> SplitTraining:
    """Train on *public* texts and labels (0 to classes - 1), on the CPU.

    Args:
        texts: the buckets of their n-grams.
        buckets: how many there are.
        dimension: d, of the vectors between device and server.
        bound: into which domain they are brought before the noise; ``"min-max"``: each to [0, 1] by its own least and
            largest coordinate.
        noise: what is drawn on them in each epoch.
        options: ``weight_decay`` and ``momentum`` are the head's; n-gram vectors move by plain steps. ``hidden``,
            ``dropout`` and ``extra_noise`` are the head's too; there is no early stopping.
        progress: called after every epoch.
        seed: of first vectors, weights, batches and dropout. None: other ones each time.

    Raises:
        MissingExtraError: torch is not installed.
    """
    torch = extra("torch", "train", "a split model")
    shape = bounding(torch, bound)
    with torch.random.fork_rng(devices=[]), one_torch_thread(torch), one_blas_thread():
        torch.manual_seed(int.from_bytes(RandomBits(seed).take(8), "little") >> 1)
        bag = Bag(torch, torch.empty(buckets, dimension).uniform_(-_START, _START))
        head = perceptron(torch, dimension, classes, options)
        if not options.hidden_layers:
            head[-1].weight.data.uniform_(-_START, _START)
            head[-1].bias.data.zero_()
        optimiser = torch.optim.SGD(
            head.parameters(),
            lr=options.learning_rate,
            momentum=options.momentum,
            weight_decay=options.weight_decay,
        )
        history: list[Epoch] = []
        for number in range(1, options.epochs + 1):
            rate = options.learning_rate * options.learning_rate_decay ** (number - 1)
            optimiser.param_groups[0]["lr"] = rate
            order = torch.randperm(len(texts)).numpy()
            mixed, truth = texts.take(order), torch.from_numpy(labels[order].astype(np.int64))
            total = 0.0
            for start in range(0, len(order), options.batch_size):
                batch = slice(start, min(start + options.batch_size, len(order)))
                means = bag.means(mixed, batch)
                arrived = _arrived(torch, shape(means), noise, number)
                if options.extra_noise:
                    arrived = arrived + torch.empty_like(arrived).normal_(std=options.extra_noise)
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
        vectors[~occurs] = 0.0  # where they started says nothing
        return SplitTraining(vectors, layers_of(head, 1.0), tuple(history))


class Bag:
    """Vectors of n-grams under plain stochastic gradient descent: a step touches those that occur, and no others."""

    def __init__(self, torch: Any, matrix: Any) -> None:
        self._torch, self.matrix = torch, matrix

    def means(self, texts: Buckets, batch: slice) -> Any:
        """(batch, d) mean vectors, of which a gradient can be taken; zeros for a text without any n-gram."""
        starts = texts.starts[batch.start : batch.stop + 1]
        values, offsets = texts.values[starts[0] : starts[-1]], starts[:-1] - starts[0]
        return self._sums(values, self.matrix, offsets, mode="mean").requires_grad_()

    def step(self, texts: Buckets, batch: slice, gradient: Any, rate: float) -> None:
        """An n-gram's gradient is the sum, over where it occurs, of its text's, each over the text's length."""
        starts = texts.starts[batch.start : batch.stop + 1]
        values, lengths = texts.values[starts[0] : starts[-1]], np.diff(starts)
        if not values.size:
            return
        shift = len(lengths).bit_length()
        # bucket and text in one integer: sorting integers is all that it takes to bring an n-gram's texts together
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


def _arrived(torch: Any, bounded: Any, noise: TrainingNoise, epoch: int) -> Any:
    """What the head sees of bounded vectors."""
    before = bounded.detach().numpy().astype(np.float64)
    drawn = noise.on_public(epoch, before) - before  # 0 in plain training
    return bounded + torch.from_numpy(drawn.astype(np.float32))  # eq. (straight)


def bounding(torch: Any, bound: Domain | str) -> Callable[[Any], Any]:
    """The map into a domain, with a gradient; vectors that it does not know what to do with become a public one."""

    def first_axis(vectors: Any) -> Any:
        axis = torch.zeros_like(vectors)
        axis[:, 0] = 1.0
        return axis

    def sphere(vectors: Any) -> Any:
        lengths = vectors.norm(dim=1, keepdim=True)
        return torch.where(lengths > _TINY, vectors / lengths.clamp(min=_TINY), first_axis(vectors))

    def ball(vectors: Any) -> Any:
        return vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1.0)

    def cube(vectors: Any) -> Any:
        return vectors.clamp(-1.0, 1.0)

    def min_max(vectors: Any) -> Any:
        least = vectors.min(dim=1, keepdim=True).values
        return (vectors - least) / (vectors.max(dim=1, keepdim=True).values - least).clamp(min=_TINY)

    def l1_sphere(vectors: Any) -> Any:
        directed = sphere(vectors)
        return directed / directed.abs().sum(dim=1, keepdim=True)

    known = {Domain.SPHERE: sphere, Domain.BALL: ball, Domain.CUBE: cube, MIN_MAX: min_max, L1_SPHERE: l1_sphere}
    if bound not in known:
        raise ParameterError(f"a split model learns through one of {', '.join(known)}, got {bound!r}")
    return known[bound]
