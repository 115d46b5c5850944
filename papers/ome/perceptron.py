"""The paper's classifier: a perceptron on received vectors, trained with stochastic gradient descent (torch).

Section 4: one hidden layer, dropout .5 on the input, learning rate .01, momentum .9, decay 1e-6, batches of 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dptext.errors import extra
from dptext.privacy.randomness import RandomBits
from dptext.representations.layers import DeviceModel
from dptext.threads import torch_threads

Layers = tuple[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]], ...]

_DROPOUT, _BATCH = 0.5, 32
_DESCENT = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-6}


@dataclass(eq=False)
class Perceptron:
    """A perceptron with one hidden layer; ``seed`` is that of weights, batches and dropout."""

    hidden: int = 128
    epochs: int = 50
    seed: int | None = None

    def fit(self, vectors: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Self:
        """Train on (n, k) vectors and their (n,) labels."""
        torch = extra("torch", "train", "the perceptron")
        classes, codes = np.unique(labels, return_inverse=True)
        scale = float(np.sqrt(np.mean(np.asarray(vectors, dtype=np.float64) ** 2))) or 1.0
        with torch.random.fork_rng(devices=[]), torch_threads(1):
            seed_torch(torch, self.seed)
            order = torch.randperm(len(vectors)).numpy()
            network = torch.nn.Sequential(
                torch.nn.Dropout(_DROPOUT),
                torch.nn.Linear(vectors.shape[1], self.hidden),
                torch.nn.ReLU(),
                torch.nn.Linear(self.hidden, len(classes)),
            )
            optimiser = torch.optim.SGD(network.parameters(), **_DESCENT, fused=True)
            inputs = torch.from_numpy((vectors[order] / scale).astype(np.float32))
            targets = torch.from_numpy(codes[order].astype(np.int64))
            for _ in range(self.epochs):
                for batch in torch.randperm(len(targets)).split(_BATCH):
                    loss = torch.nn.functional.cross_entropy(network(inputs[batch]), targets[batch])
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
        self.model_ = DeviceModel(tuple(classes.tolist()), layers_of(network, scale))
        return self

    def score(self, vectors: npt.ArrayLike, labels: npt.ArrayLike) -> float:
        """Return the share of vectors whose class is predicted."""
        return self.model_.score(vectors, labels)


def seed_torch(torch: Any, seed: int | None) -> None:
    """Seed torch's generator; None: with cryptographic randomness."""
    torch.manual_seed(int.from_bytes(RandomBits(seed).take(8), "little") >> 1)


def layers_of(network: Any, scale: float) -> Layers:
    """Return copies of the arrays of a network, with the scale of the inputs folded into the first."""
    linear = [module for module in network if hasattr(module, "weight")]
    arrays = [(module.weight.detach().numpy().T.copy(), module.bias.detach().numpy().copy()) for module in linear]
    arrays[0] = ((arrays[0][0] / scale).astype(np.float32), arrays[0][1])
    return tuple(arrays)
