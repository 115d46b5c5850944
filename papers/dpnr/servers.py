"""What is compared: one server trained on public texts, and what users send it at every epsilon, in one cell."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.dpnr.corpus import NGRAMS, Corpus, masked, read, repeated

from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, L2Laplace
from dptext.representations.bounds import Domain, Floats
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPNR
from dptext.representations.randomizer import Randomizer
from dptext.representations.split import SplitClassifier
from dptext.representations.trained_encoders import Buckets, EmbeddingBag

DELTA = 1e-5
DROPOUT_AT = 4.0  # the epsilon at which the study varies mu
TOKEN = "token "  # before the names of numbers of n-grams that became a token


def geometric(first: float, last: float, epochs: int) -> tuple[float, ...]:
    """From ``first`` to ``last`` by a constant factor."""
    return tuple(np.geomspace(first, last, epochs).tolist())


SCHEDULES: dict[str, Any] = {
    "noise-rises-1/n": None,
    "noise-rises-10/n": None,
    "noise-falls-10/n": None,
    "noise-rises-10-to-1": lambda epochs: geometric(10.0, 1.0, epochs),
    "noise-falls-1-to-10": lambda epochs: geometric(1.0, 10.0, epochs),
    "in-turn-10-5-3-2": lambda epochs: [(10.0, 5.0, 3.0, 2.0)[epoch % 4] for epoch in range(epochs)],
}
"""The library's by their names, and smarter ones from the number of epochs."""


def randomizer(name: str, epsilon: float) -> Randomizer:
    """The noise of a name, at the epsilon that is asked for."""
    if name == "PrivUnit":
        return PrivUnit(epsilon=epsilon)
    if name == "L2Laplace":
        return L2Laplace(epsilon=epsilon, domain=Domain.SPHERE)
    if name == "Gaussian":
        return Gaussian(epsilon=epsilon, delta=DELTA, domain=Domain.SPHERE)
    noise = {"DPNR": "per coordinate", "DPNR, one scalar": "one scalar"}[name]
    return DPNR(epsilon=epsilon, noise=noise, unsafe_as_published=True)


def true_epsilon(name: str, epsilon: float, dimension: int) -> float:
    """What is proved for any two texts at the epsilon that is asked for, out of the statement."""
    return float(randomizer(name, epsilon).statement(dimension).epsilon)


def measure(
    settings: Mapping[str, Any], seed: int, *, file: Path, users: tuple[float, ...], mus: tuple[float, ...]
) -> dict[str, float]:
    """Accuracies of one server: on clean vectors, at every epsilon of users, and with their words masked.

    Args:
        settings: ``mechanism``, ``dimension``, ``training``, ``epsilon`` (the server's; None where it knows none),
            ``epochs``, ``schedule``.
        seed: of training, and of what users send.
        file: of the data set, see `papers.dpnr.corpus.prepare`.
        users: epsilons that users ask for.
        mus: shares of words that they mask, at `DROPOUT_AT`.
    """
    corpus = read(file)
    server = trained(corpus, settings, seed)
    result = {"clean": _accuracy(server, corpus, None, corpus.test, RandomBits(seed))}
    for epsilon in users:
        noise = randomizer(settings["mechanism"], epsilon)
        result[f"epsilon {epsilon:g}"] = _accuracy(server, corpus, noise, corpus.test, _bits(seed, "noise", epsilon))
    for mu in mus:
        texts = masked(corpus.test, mu, _bits(seed, "mask", mu))
        noise = randomizer(settings["mechanism"], DROPOUT_AT)
        result[f"mu {mu:g}"] = _accuracy(server, corpus, noise, texts, _bits(seed, "masked noise", mu))
    return result


def measure_as_printed(
    settings: Mapping[str, Any],
    seed: int,
    *,
    file: Path,
    users: tuple[float, ...],
    mus: tuple[float, ...],
    texts: int,
) -> dict[str, float]:
    """`measure` with as many steps as the study had, and masks as its numbers suggest.

    Each text is trained on as often in an epoch as it takes for one of so many ``texts``. A masked n-gram counts as a
    token that was never trained: its vector is what a model may start with, as if masked ids became one id of the
    vocabulary that no text has.
    """
    corpus = read(file)
    server = trained(repeated(corpus, texts), settings, seed)
    result = {"clean": _accuracy(server, corpus, None, corpus.test, RandomBits(seed))}
    for epsilon in users:
        noise = randomizer(settings["mechanism"], epsilon)
        result[f"epsilon {epsilon:g}"] = _accuracy(server, corpus, noise, corpus.test, _bits(seed, "noise", epsilon))
    untrained = _bits(seed, "untrained").uniform(settings["dimension"]) - 0.5
    for mu in mus:
        means = _means_with_a_token(server, corpus.test, untrained, mu, _bits(seed, "mask", mu))
        noise = randomizer(settings["mechanism"], DROPOUT_AT)
        result[f"mu {mu:g}"] = _share_right(server, corpus, means, noise, _bits(seed, "masked noise", mu))
    return result


def measure_both(
    settings: Mapping[str, Any],
    seed: int,
    *,
    file: Path,
    users: tuple[float, ...],
    mus: tuple[float, ...],
    texts: int,
) -> dict[str, float]:
    """`measure`, and under `TOKEN` ``mu ...`` the same server with the masks of `measure_as_printed`.

    For a set with as many texts as the study had, of which none has to be repeated.
    """
    known: dict[str, Any] = {"file": file, "mus": mus}
    as_printed = measure_as_printed(settings, seed, users=(), texts=texts, **known)
    result = measure(settings, seed, users=users, **known)
    return result | {f"{TOKEN}{name}": value for name, value in as_printed.items() if name.startswith("mu ")}


def _means_with_a_token(server: SplitClassifier, texts: Buckets, token: Floats, mu: float, bits: RandomBits) -> Floats:
    """Mean vectors of which each n-gram's is, with chance mu, that of the token."""
    kept = np.concatenate([[0], np.cumsum(result := bits.uniform(texts.values.size) > mu)])
    left = np.diff(kept[texts.starts])
    buckets = Buckets(texts.values[result], np.concatenate([[0], np.cumsum(left)]))
    bag: Any = server.release_.encoder
    sums = bag.means(buckets) * left[:, None] + (texts.lengths - left)[:, None] * token
    means: Floats = sums / np.maximum(texts.lengths, 1)[:, None]
    return means


def trained(corpus: Corpus, settings: Mapping[str, Any], seed: int) -> SplitClassifier:
    """The server that the settings ask for, with the study's constants."""
    return _trained(corpus, tuple(settings.items()), seed)


@lru_cache(maxsize=1)  # for two measurements of one server
def _trained(corpus: Corpus, given: tuple[tuple[str, Any], ...], seed: int) -> SplitClassifier:
    settings = dict(given)
    schedule = settings["schedule"] or "noise-rises-10/n"
    output = SCHEDULES[schedule]
    server = SplitClassifier(
        randomizer(settings["mechanism"], settings["epsilon"] or 1.0),  # 1: where training does not look at it
        dimension=settings["dimension"],
        training=settings["training"],
        schedule=schedule if output is None else output(settings["epochs"]),
        ngrams=NGRAMS.max_words,
        buckets=NGRAMS.buckets,
        word_dropout=settings.get("word_dropout", 0.0),
        epochs=settings["epochs"],
        seed=seed,
    )
    return server.fit_hashed(corpus.train, corpus.train_labels)


def _accuracy(
    server: SplitClassifier, corpus: Corpus, noise: Randomizer | None, texts: Buckets, bits: RandomBits
) -> float:
    bag: Any = server.release_.encoder
    return _share_right(server, corpus, _means(bag, texts), noise, bits)


@lru_cache(maxsize=1)  # the same for all that users do but mask
def _means(bag: EmbeddingBag, texts: Buckets) -> npt.NDArray[np.float32]:
    return bag.means(texts)


def _share_right(
    server: SplitClassifier, corpus: Corpus, means: npt.ArrayLike, noise: Randomizer | None, bits: RandomBits
) -> float:
    device = server.release_
    bounded = device.bound.apply(means)
    if noise is None:
        sent = device.channel.noiseless(bounded)
    else:
        sent = noise.channel(device.bound.dimension).sample(bounded, bits)
    return float((server.predict_private(sent) == corpus.test_labels).mean())


def _bits(seed: int, *what: object) -> RandomBits:
    """The users' own noise, the same for every server."""
    return RandomBits(seed=zlib.crc32(repr((seed, *what)).encode()))
