"""One cell of the study: a server trained on public texts, and its accuracy for users at every epsilon."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import Ragged, TrainAndTest
from papers.dpnr.split import NGrams, SplitModel, train_split

from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, L2Laplace
from dptext.representations.bounds import Domain, Floats
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPNR
from dptext.representations.randomizer import Randomizer

NGRAMS = NGrams(max_words=2, buckets=1 << 18)
DELTA = 1e-5
DROPOUT_AT = 4.0  # the epsilon at which the study varies mu
TOKEN = "token "  # prefix of the numbers in which masked n-grams became a token
REMOVED, REPLACED, BOTH = "removed", "replaced", "both"
"""Treatment of masked n-grams: removed; replaced by an untrained token, as the study's numbers suggest; or both."""


SCHEDULES: dict[str, Callable[[int], Sequence[float]]] = {
    "noise-rises-1/n": lambda epochs: [1.0 / n for n in range(1, epochs + 1)],
    "noise-rises-10/n": lambda epochs: [10.0 / n for n in range(1, epochs + 1)],
    "noise-falls-10/n": lambda epochs: [10.0 / n for n in range(epochs, 0, -1)],
    "noise-rises-10-to-1": lambda epochs: np.geomspace(10.0, 1.0, epochs).tolist(),
    "noise-falls-1-to-10": lambda epochs: np.geomspace(1.0, 10.0, epochs).tolist(),
    "in-turn-10-5-3-2": lambda epochs: [(10.0, 5.0, 3.0, 2.0)[epoch % 4] for epoch in range(epochs)],
}
"""From the number of epochs to an epsilon per epoch of adaptive training; the first two are the study's.

The names describe the *noise*, which changes in the opposite direction of epsilon: the study writes that its noise
decreases, but its sequence 10 / n increases it.
"""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Training and test texts of one data set as buckets of n-grams."""

    train: Ragged
    train_labels: npt.NDArray[np.intp]
    test: Ragged
    test_labels: npt.NDArray[np.intp]

    @classmethod
    def of(cls, texts: TrainAndTest, *, train_rows: int, test_rows: int | None) -> Corpus:
        """Hash random texts, the same each time; ``test_rows`` None: all."""
        parts: list[Any] = []
        for part, count in zip(texts, (train_rows, test_rows), strict=True):
            order = np.argsort(RandomBits(seed=1).uniform(len(part.texts)), kind="stable")[:count]
            parts += [NGRAMS.of(part.texts[place] for place in order), part.labels[order]]
        return cls(*parts)

    def repetitions(self, texts: int) -> int:
        """Return how often each training text must be repeated to have about this many."""
        return max(1, round(texts / len(self.train)))

    def repeat(self, texts: int) -> Corpus:
        """Repeat the training texts, so that an epoch has about as many steps as one of this many texts."""
        times = self.repetitions(texts)
        if times == 1:
            return self
        rows = np.tile(np.arange(len(self.train)), times)
        return replace(self, train=self.train.take(rows), train_labels=self.train_labels[rows])

    @property
    def facts(self) -> dict[str, Any]:
        """Digest, sizes and the accuracy of the majority class, as constants of an experiment."""
        digest = hashlib.sha256()
        for value in (self.train.values, self.train.starts, self.train_labels, self.test.values, self.test_labels):
            digest.update(value.tobytes())
        return {
            "texts": digest.hexdigest()[:16],
            "trained": len(self.train),
            "tested": len(self.test),
            "classes": int(self.test_labels.max()) + 1,
            "majority": float(np.bincount(self.test_labels).max() / self.test_labels.size),
        }


def randomizer(name: str, epsilon: float) -> Randomizer:
    if name == "PrivUnit":
        return PrivUnit(epsilon=epsilon)
    if name == "L2Laplace":
        return L2Laplace(epsilon=epsilon, domain=Domain.SPHERE)
    if name == "Gaussian":
        return Gaussian(epsilon=epsilon, delta=DELTA, domain=Domain.SPHERE)
    noise = {"DPNR": "per coordinate", "DPNR, one scalar": "one scalar"}[name]
    return DPNR(epsilon=epsilon, noise=noise, unsafe_as_published=True)


def true_epsilon(name: str, epsilon: float, dimension: int) -> float:
    """Return the proved epsilon for any two texts at a claimed epsilon."""
    return float(randomizer(name, epsilon).statement(dimension).epsilon)


def measure(
    settings: Mapping[str, Any],
    seed: int,
    *,
    corpus: Corpus,
    users: tuple[float, ...],
    mus: tuple[float, ...],
    masks: str = REMOVED,
) -> dict[str, float]:
    """Return the accuracy of one server on clean vectors, for users at every epsilon, and with masked words.

    Settings: ``mechanism``, ``dimension``, ``training``, ``epsilon`` (of the server; None if it knows none),
    ``epochs``, ``schedule``, and perhaps ``word_dropout``. The users' noise is the same for every server; they mask
    words with probability mu at `DROPOUT_AT`.
    """
    server = train_split(
        corpus.train,
        corpus.train_labels,
        randomizer(settings["mechanism"], settings["epsilon"] or 1.0),  # 1: plain training ignores it
        ngrams=NGRAMS,
        dimension=settings["dimension"],
        epochs=settings["epochs"],
        training=settings["training"],
        epsilons=SCHEDULES[settings["schedule"] or "noise-rises-10/n"](settings["epochs"]),
        word_dropout=settings.get("word_dropout", 0.0),
        seed=seed,
    )

    def accuracy(means: npt.ArrayLike, epsilon: float | None, *name: object) -> float:
        bounded = server.bound.apply(means)
        if epsilon is None:
            sent = server.channel.noiseless(bounded)
        else:
            channel = randomizer(settings["mechanism"], epsilon).channel(server.bound.dimension)
            sent = channel.sample(bounded, _bits(seed, *name))
        return float((server.predict(sent) == corpus.test_labels).mean())

    means = server.means(corpus.test)
    result = {"clean": accuracy(means, None)}
    for epsilon in users:
        result[f"epsilon {epsilon:g}"] = accuracy(means, epsilon, "noise", epsilon)
    if masks in (REMOVED, BOTH):
        for mu in mus:
            means = server.means(mask_words(corpus.test, mu, _bits(seed, "mask", mu)))
            result[f"mu {mu:g}"] = accuracy(means, DROPOUT_AT, "masked noise", mu)
    if masks in (REPLACED, BOTH):
        token = _bits(seed, "untrained").uniform(settings["dimension"]) - 0.5
        for mu in mus:
            means = _means_with_token(server, corpus.test, token, mu, _bits(seed, "mask", mu))
            name = f"{TOKEN if masks == BOTH else ''}mu {mu:g}"
            result[name] = accuracy(means, DROPOUT_AT, "masked noise", mu)
    return result


def mask_words(texts: Ragged, mu: float, bits: RandomBits) -> Ragged:
    """Mask each word with probability mu and remove the n-grams that contain a masked word."""
    return NGRAMS.masked(texts, bits.uniform(int(NGRAMS.words_in(texts).sum())) > mu)


def _means_with_token(server: SplitModel, texts: Ragged, token: Floats, mu: float, bits: RandomBits) -> Floats:
    """Return mean vectors in which each n-gram is replaced by the token with probability mu."""
    kept = bits.uniform(texts.values.size) > mu
    left = np.diff(np.concatenate([[0], np.cumsum(kept)])[texts.starts])
    buckets = Ragged(texts.values[kept], np.concatenate([[0], np.cumsum(left)]))
    sums = server.means(buckets) * left[:, None] + (texts.lengths - left)[:, None] * token
    means: Floats = sums / np.maximum(texts.lengths, 1)[:, None]
    return means


def _bits(seed: int, *name: object) -> RandomBits:
    return RandomBits(seed=zlib.crc32(repr((seed, *name)).encode()))
