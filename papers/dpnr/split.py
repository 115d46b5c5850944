"""The study's model: n-gram vectors on the device, a linear head on the server, trained together through the noise.

Both parts are trained on **public** texts and labels, with fresh noise between them for every batch of every epoch. The
input of the head is z = sample(x) with x the bounded mean of a text's n-gram vectors, and the gradient treats z as x
plus noise that does not depend on x: dL/dx = dL/dz.

N-grams are hashed into buckets, so no word is unknown.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import Ragged, tokens_of
from papers.ome.perceptron import layers_of, seed_torch

from dptext.errors import ParameterError, extra
from dptext.hiding.training import bounding, noise_on
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.bounds import TRAINED_INTO, Bound, Floats, bound_into
from dptext.representations.encoders import finite
from dptext.representations.layers import DeviceModel
from dptext.representations.published import MinMaxLaplace
from dptext.representations.randomizer import Channel, Randomizer
from dptext.threads import one_blas_thread, torch_threads

Rows = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

_START = 0.5  # vectors and weights start uniform in [-.5, .5]
_TINY = 1e-12
_BATCH, _RATE, _DECAY = 64, 2.0, 0.9  # of stochastic gradient descent, section 5 of the study


@dataclass(frozen=True, kw_only=True)
class NGrams:
    """Hashed n-grams of up to ``max_words`` words."""

    max_words: int = 2
    buckets: int = 1 << 18

    def of(self, texts: Iterable[str]) -> Ragged:
        """Return the buckets of each text; a text without words has none."""
        return self.hash_words(map(tokens_of, texts))

    def hash_words(self, texts: Iterable[Sequence[str | None]]) -> Ragged:
        """Return the buckets of tokenised texts; None is a masked word, and no n-gram contains it."""
        return Ragged.of(map(self._row, texts))

    def _row(self, words: Sequence[str | None]) -> Rows:
        encoded = [None if word is None else word.encode("utf-8", "surrogatepass") for word in words]
        hashes: list[int] = []
        for count in range(1, self.max_words + 1):
            runs = zip(*(encoded[start:] for start in range(count)), strict=False)
            hashes += [zlib.crc32(b" ".join(run)) % self.buckets for run in runs if None not in run]
        return np.array(hashes, dtype=np.int64)

    def words_in(self, texts: Ragged) -> Rows:
        """(n,) word counts of hashed texts."""
        words = np.arange(int(texts.lengths.max(initial=0)) + 1)
        buckets = sum(np.maximum(words - count, 0) for count in range(self.max_words))  # by number of words
        counts: Rows = np.searchsorted(buckets, texts.lengths)
        return counts

    def masked(self, texts: Ragged, kept: npt.NDArray[np.bool_]) -> Ragged:
        """Hashed texts with masked words, as `hash_words` with None in their places; ``kept`` has all words."""
        words = self.words_in(texts)
        firsts = np.repeat(texts.starts[:-1], words)  # of each word: the start of its text
        place = np.arange(kept.size) - np.repeat(np.cumsum(words) - words, words)  # and its place there
        after = np.repeat(words, words) - place  # words of its text from it on
        visible = np.zeros(texts.values.size, dtype=bool)
        run = kept
        for count in range(1, self.max_words + 1):
            starting = after >= count
            visible[(firsts + place)[starting]] = run[starting]
            firsts = firsts + np.maximum(place + after - count + 1, 0)  # longer n-grams come after these
            run = run & np.concatenate([kept[count:], np.zeros(min(count, kept.size), dtype=bool)])
        return Ragged(texts.values[visible], np.concatenate([[0], np.cumsum(visible)])[texts.starts])


@dataclass(frozen=True, eq=False)
class SplitModel:
    """A trained model: vectors of n-grams, bound and noise of the device, and the head of the server."""

    matrix: Vectors
    bound: Bound
    channel: Channel
    head: DeviceModel

    def means(self, texts: Ragged) -> Vectors:
        """(n, d) float32 mean vectors of hashed texts. *Not private.*"""
        means = np.zeros((len(texts), self.matrix.shape[1]))
        for text in np.flatnonzero(texts.lengths):
            values = texts.values[texts.starts[text] : texts.starts[text + 1]]
            means[text] = self.matrix[values].sum(axis=0, dtype=np.float64)
        means /= np.maximum(texts.lengths, 1)[:, None]
        return finite(means)

    def predict(self, vectors: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the class of each of (n, d) noisy vectors: the server's part alone."""
        return self.head.predict(vectors)


def train_split(
    public_texts: Ragged,
    labels: npt.ArrayLike,
    randomizer: Randomizer,
    *,
    ngrams: NGrams,
    dimension: int,
    epochs: int,
    training: str = "robust",
    epsilons: Sequence[float] = (),
    word_dropout: float = 0.0,
    seed: int | None = None,
) -> SplitModel:
    """Train both parts on *public* texts, as ``ngrams`` hashes them, and their labels.

    ``training`` is ``"plain"``: without noise; ``"robust"`` (Lyu, He and Li 2020, algorithm 1): through the channel,
    anew in each epoch; or ``"adaptive"`` (the study's algorithm 3, for servers that do not know the users' epsilon):
    through a channel at another epsilon in each epoch. ``word_dropout`` masks each word, anew in each epoch.
    """
    torch = extra("torch", "train", "a split model")
    channel = randomizer.channel(dimension)
    is_min_max = isinstance(channel, MinMaxLaplace)
    if channel.domain not in TRAINED_INTO or not (channel.keeps_vectors or is_min_max):
        raise ParameterError(f"{channel.name} does not add noise to a vector: choose PrivUnit, L2Laplace or Gaussian")
    noisy = public_noise(training, randomizer, dimension, epochs=epochs, epsilons=epsilons, seed=seed)
    bits = RandomBits()
    if seed is not None:
        bits = RandomBits.keyed(seed_bytes(b"words masked in a training", seed))
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    bound_vectors = min_max_with_gradient if is_min_max else bounding(torch, channel.domain)
    with torch.random.fork_rng(devices=[]), torch_threads(1), one_blas_thread():
        seed_torch(torch, seed)
        start = torch.empty(ngrams.buckets, dimension).uniform_(-_START, _START)
        bag = torch.nn.EmbeddingBag.from_pretrained(start, freeze=False, mode="mean", sparse=True)
        head = torch.nn.Sequential(torch.nn.Linear(dimension, len(classes)))
        head[-1].weight.data.uniform_(-_START, _START)
        head[-1].bias.data.zero_()
        optimiser = torch.optim.SGD([*bag.parameters(), *head.parameters()], lr=_RATE)
        for number in range(1, epochs + 1):
            optimiser.param_groups[0]["lr"] = _RATE * _DECAY ** (number - 1)
            order = torch.randperm(len(public_texts)).numpy()
            mixed, truth = public_texts.take(order), torch.from_numpy(codes[order].astype(np.int64))
            if word_dropout:
                mixed = ngrams.masked(mixed, bits.uniform(int(ngrams.words_in(mixed).sum())) >= word_dropout)
            for batch in np.array_split(np.arange(len(order)), np.arange(_BATCH, len(order), _BATCH)):
                texts = mixed.take(batch)
                bounded = bound_vectors(bag(*map(torch.from_numpy, (texts.values, texts.starts[:-1]))))
                arrived = bounded + noise_on(torch, bounded, lambda clean, epoch=number: noisy(epoch, clean))  # type: ignore[misc]
                loss = torch.nn.functional.cross_entropy(head(arrived), truth[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        matrix = bag.weight.detach().numpy()
    occurs = np.zeros(ngrams.buckets, dtype=bool)
    occurs[public_texts.values] = True
    matrix[~occurs] = 0.0
    head_model = DeviceModel(tuple(classes.tolist()), layers_of(head, 1.0))
    return SplitModel(matrix, bound_into(channel.domain, dimension), channel, head_model)


def public_noise(
    training: str,
    randomizer: Randomizer,
    dimension: int,
    *,
    epochs: int,
    epsilons: Sequence[float] = (),
    seed: int | None = None,
) -> Callable[[int, Floats], Floats]:
    """Return a function of an epoch (1, 2, ...) and *public* vectors: these as the server sees them."""
    channel = randomizer.channel(dimension)
    if training == "plain":
        return lambda _, vectors: channel.noiseless(vectors)
    channels = [channel] * (epochs + 1)
    if training == "adaptive":
        channels[1:] = [replace(randomizer, epsilon=epsilon).channel(dimension) for epsilon in epsilons[:epochs]]
    return fresh_noise(channels, seed)


def fresh_noise(channels: Sequence[Channel], seed: int | None) -> Callable[[int, Floats], Floats]:
    """Return a function of an epoch (0, 1, ...) and *public* vectors: these through the channel of the epoch.

    Each epoch draws from a stream of its own. Private vectors never get here: to draw noise on them in each epoch would
    be one release per epoch.
    """
    bits = RandomBits() if seed is None else RandomBits.keyed(seed_bytes(b"noise of a training", seed))
    streams = bits.spawn(len(channels))

    def send(epoch: int, vectors: Floats) -> Floats:
        return channels[epoch].sample(vectors, streams[epoch]).astype(np.float64)

    return send


def min_max_with_gradient(vectors: Any) -> Any:
    """Scale torch vectors to [0, 1], each by its own smallest and largest number."""
    minimum = vectors.min(dim=1, keepdim=True).values
    return (vectors - minimum) / (vectors.max(dim=1, keepdim=True).values - minimum).clamp(min=_TINY)
