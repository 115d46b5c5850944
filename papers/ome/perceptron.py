"""The paper's perceptron on bits: the training of ``NoisyClassifier("mlp")``, step for step, but faster.

For pairs of sentences, 15,360 bits meet 768 units, and a step of 32 rows costs more in memory than in arithmetic. Three
savings change only rounding errors:

- A bit that is 0, or that dropout set to 0, takes part in no product: two in ten are left at lambda 100.
- The weights are read once per step: gradient, momentum, the step, and the product with the *next* batch are one pass.
  Batches and dropout do not depend on the weights, so the next batch is drawn before.
- Weights of a bit that is 0 in all rows of a batch only follow their momentum. Several such steps are one linear map of
  (weight, momentum), applied when the bit occurs again.

Initial weights and batches are those of `dptext.representations.networks.train_mlp` with the same seed; dropout has its
own random bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from papers.reports import torch_device

from dptext.embeddings.noise import compiled
from dptext.errors import extra
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.layers import DeviceModel
from dptext.representations.networks import TrainingOptions, one_torch_thread, perceptron, train_mlp
from dptext.threads import one_blas_thread

Bits = npt.NDArray[np.uint8]
Weights = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]


@dataclass
class BitPerceptron:
    """A perceptron with one hidden layer that learns from bits, without early stopping.

    Attributes:
        options: of the training; dropout is 0 or .5.
        seed: of initial weights, batches and dropout.
        rate_decay: the learning rate of step t = 0, 1, ... is divided by 1 + rate_decay t, as in Keras's SGD.
        device: on another device than "cpu" the library's own training is faster.
    """

    options: TrainingOptions
    seed: int
    rate_decay: float = 0.0
    device: str = field(default_factory=torch_device)

    def fit(self, bits: npt.NDArray[Any], labels: npt.NDArray[np.intp]) -> Self:
        """Learn from (n, k) bits and labels 0, 1, ..."""
        classes = int(labels.max()) + 1
        if self.device == "cpu" or self.rate_decay:
            layers = _train(bits.astype(np.uint8), labels, self.options, self.seed, self.rate_decay)
        else:
            values = bits.astype(np.float64)
            layers = train_mlp(values, labels, classes, self.options, seed=self.seed, device=self.device).layers
        self._model = DeviceModel(tuple(range(classes)), layers)
        return self

    @property
    def layers(self) -> Any:
        """Weights and bias of each layer."""
        return self._model.layers

    def score(self, bits: npt.NDArray[Any], labels: npt.NDArray[np.intp]) -> float:
        """Return the accuracy."""
        return self._model.score(bits.astype(np.float64), labels)


@dataclass
class _Batch:
    """Rows of a step, and for each bit the rows (by their place in the batch) where it is 1 and was kept."""

    rows: Places
    starts: Places
    items: Bits


@dataclass
class _Small:
    """A bias, or the weights of the upper layer, under stochastic gradient descent with momentum."""

    value: Weights
    moment: Weights

    def step(self, gradient: Weights, options: TrainingOptions, rate: np.float32) -> None:
        self.moment *= np.float32(options.momentum)
        self.moment += gradient + np.float32(options.weight_decay) * self.value
        self.value -= rate * self.moment


def _train(bits: Bits, labels: Places, options: TrainingOptions, seed: int, rate_decay: float) -> Any:
    torch = extra("torch", "train", "a perceptron")
    classes, width = int(labels.max()) + 1, bits.shape[1]
    divisor = float(np.sqrt(bits.mean(dtype=np.float64))) or 1.0  # root mean square: bits equal their squares
    one = np.float32(1 / divisor) * np.float32(1 / (1 - options.dropout))  # value of a kept bit
    with torch.random.fork_rng(devices=[]), one_torch_thread(torch), one_blas_thread():
        torch.manual_seed(int.from_bytes(RandomBits(seed).take(8), "little") >> 1)
        order = torch.randperm(len(bits)).numpy()
        network = perceptron(torch, width, classes, options)
        first, *others = (parameter.detach().numpy().copy() for parameter in network.parameters())
        weights = np.ascontiguousarray(first.T)
        bias, above, above_bias = (_Small(other, np.zeros_like(other)) for other in others)
        moments, seen = np.zeros_like(weights), np.zeros(width, dtype=np.int64)
        steps = options.epochs * -(-len(bits) // options.batch_size)
        rates = (options.learning_rate / (1 + rate_decay * np.arange(steps))).astype(np.float32)
        momentum, decay = np.float32(options.momentum), np.float32(options.weight_decay)
        batches = _batches(torch, bits[order], options, seed)
        batch = next(batches)
        sums = np.zeros((len(batch.rows), weights.shape[1]), dtype=np.float32)
        _product(weights, batch.starts, batch.items, sums)
        for step in range(steps):
            truth = labels[order[batch.rows]]
            inner = one * sums + bias.value
            hidden = np.maximum(inner, 0)
            wrong = _softmax(hidden @ above.value.T + above_bias.value)
            wrong[np.arange(len(truth)), truth] -= 1
            wrong /= np.float32(len(truth))
            below = (wrong @ above.value) * (inner > 0)
            after = next(batches, None) or _Batch(batch.rows[:0], np.zeros_like(batch.starts), batch.items)
            sums = np.zeros((len(after.rows), weights.shape[1]), dtype=np.float32)
            now, then = (batch.starts, batch.items), (after.starts, after.items)
            _pass(weights, moments, one * below, *now, *then, sums, seen, step, rates, momentum, decay)
            bias.step(below.sum(axis=0), options, rates[step])
            above.step(wrong.T @ hidden, options, rates[step])
            above_bias.step(wrong.sum(axis=0), options, rates[step])
            batch = after
        _catch_up(weights, moments, seen, steps, rates, momentum, decay)
    return ((weights / divisor).astype(np.float32), bias.value), (above.value.T.copy(), above_bias.value)


def _batches(torch: Any, bits: Bits, options: TrainingOptions, seed: int) -> Iterator[_Batch]:
    """Yield the batches of all epochs."""
    random = RandomBits.keyed(seed_bytes(b"dropout of bits", seed))
    for _ in range(options.epochs):
        for rows in torch.randperm(len(bits)).split(options.batch_size):
            kept = _dropout(random, len(rows), bits.shape[1], options.dropout)
            batch = _Batch(
                rows.numpy(), np.empty(bits.shape[1] + 1, dtype=np.int64), np.empty(kept.size + 1, dtype=np.uint8)
            )
            _columns(bits, batch.rows, kept, batch.starts, batch.items)
            yield batch


def _dropout(random: RandomBits, rows: int, width: int, dropout: float) -> Bits:
    """Return (rows, width) 1 where dropout keeps a bit, by one random bit each."""
    count = rows * width if dropout else 0
    coins = np.unpackbits(np.frombuffer(random.take(-(-count // 8)), dtype=np.uint8), count=count)
    return coins.reshape(rows, width) if dropout else np.ones((rows, width), dtype=np.uint8)


def _softmax(scores: Weights) -> Weights:
    powers: Weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


# -- loops ----------------------------------------------------------------------------------------------------------


@compiled
def _columns(bits: Bits, rows: Places, kept: Bits, starts: Places, items: Bits) -> None:
    """List the rows of the batch where each bit is 1 and kept, one bit after the other."""
    place = 0
    for column in range(bits.shape[1]):
        starts[column] = place
        for row in range(rows.shape[0]):
            items[place] = row  # overwritten by the next one unless it counts: without a branch
            place += bits[rows[row], column] & kept[row, column]
    starts[bits.shape[1]] = place


@compiled
def _product(weights: Weights, starts: Places, items: Bits, sums: Weights) -> None:
    """Add the weights of its bits to each row's sums."""
    for column in range(weights.shape[0]):
        for place in range(starts[column], starts[column + 1]):
            row = items[place]
            for unit in range(weights.shape[1]):
                sums[row, unit] += weights[column, unit]


@compiled
def _follow(
    weight: Weights, moment: Weights, begin: int, end: int, rates: Weights, momentum: float, decay: float
) -> None:
    """Take steps without a gradient: m' = momentum m + decay w, w' = w - rate m', as one linear map."""
    ww, wm, mw, mm = np.float32(1), np.float32(0), np.float32(0), np.float32(1)
    for step in range(begin, end):
        mw, mm = momentum * mw + decay * ww, momentum * mm + decay * wm
        ww, wm = ww - rates[step] * mw, wm - rates[step] * mm
    for unit in range(weight.shape[0]):
        w, m = weight[unit], moment[unit]
        weight[unit] = ww * w + wm * m
        moment[unit] = mw * w + mm * m


@compiled
def _pass(
    weights: Weights,
    moments: Weights,
    deltas: Weights,
    starts: Places,
    items: Bits,
    next_starts: Places,
    next_items: Bits,
    sums: Weights,
    seen: Places,
    step: int,
    rates: Weights,
    momentum: float,
    decay: float,
) -> None:
    """Take one step and compute the sums of the next batch, over the bits that occur in either."""
    rate, units = rates[step], weights.shape[1]
    for column in range(weights.shape[0]):
        begin, end = starts[column], starts[column + 1]
        first, last = next_starts[column], next_starts[column + 1]
        if begin == end and first == last:
            continue
        weight, moment = weights[column], moments[column]
        if seen[column] < step:
            _follow(weight, moment, seen[column], step, rates, momentum, decay)
        for unit in range(units):
            moment[unit] = momentum * moment[unit] + decay * weight[unit]
        for place in range(begin, end - 1, 2):  # in pairs: moment is read and written half as often
            row, other = items[place], items[place + 1]
            for unit in range(units):
                moment[unit] += deltas[row, unit] + deltas[other, unit]
        if (end - begin) % 2:
            row = items[end - 1]
            for unit in range(units):
                moment[unit] += deltas[row, unit]
        for unit in range(units):
            weight[unit] -= rate * moment[unit]
        for place in range(first, last):
            row = next_items[place]
            for unit in range(units):
                sums[row, unit] += weight[unit]
        seen[column] = step + 1


@compiled
def _catch_up(
    weights: Weights, moments: Weights, seen: Places, steps: int, rates: Weights, momentum: float, decay: float
) -> None:
    """Bring all weights to the last step."""
    for column in range(weights.shape[0]):
        if seen[column] < steps:
            _follow(weights[column], moments[column], seen[column], steps, rates, momentum, decay)
