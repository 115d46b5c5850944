"""The IMDb reviews, or other texts, as rows of word ids, the quarters of a trial, and what the experiments share."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.data_sets import Ragged, Review, own_texts
from papers.ome.perceptron import seed_torch
from papers.reports import parse_options
from papers.sweeps import sweep

from dptext import WordVectors, load_vectors
from dptext.errors import DataError, extra
from dptext.evaluation.measures import fold_of_rows
from dptext.privacy.randomness import RandomBits
from dptext.text.tokens import Kind, kind_of, pieces
from dptext.threads import torch_threads
from dptext.words.mechanism import WordMechanism

SEED = 2107_07928
EPOCHS, BATCH, RATE = 20, 64, 1e-3  # of Adam
GLOVE, GLOVE_WORDS = "glove-6b-50d", 20_000

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Word ids of the reviews, without other tokens, with (n,) classes and the part of the collection.

    Words without a vector have the id of ``"<unk>"``.
    """

    ids: Ragged
    labels: Ids
    train: npt.NDArray[np.bool_]

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def majority(self) -> float:
        return float(np.bincount(self.labels).max() / self.labels.size)

    def frequencies(self, words: int) -> npt.NDArray[np.float64]:
        return np.bincount(self.ids.values, minlength=words).astype(np.float64)


@dataclass(frozen=True)
class Quarters:
    """Indices of reviews: TR1 trains the target, TR2 does not; TE1 tests it; TE2 trains the shadow model."""

    tr1: Ids
    tr2: Ids
    te1: Ids
    te2: Ids


def seed_of(*names: object) -> int:
    """Return a separate seed for each random part of the experiments."""
    name = "/".join(map(str, (SEED, *names)))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "little")


def read_corpus(reviews: Iterable[Review], vectors: WordVectors) -> Corpus:
    row_of = cache(vectors.vocabulary.row)
    rows, labels, train = [], [], []
    for review in reviews:
        words = [token for token in pieces(review.text) if kind_of(token) is Kind.WORD]
        rows.append(np.array(list(map(row_of, words)), dtype=np.int64))
        labels.append(review.label)
        train.append(review.train)
    if not any(row.size for row in rows):
        raise DataError("no text has a word: name another column of texts")
    return Corpus(Ragged.of(rows), np.array(labels, dtype=np.int64), np.array(train))


def own_reviews(options: argparse.Namespace, *, rows: int) -> Iterator[Review]:
    """Yield the user's own texts, half of each class in the training part."""
    posts = own_texts(options, rows=rows)
    labels = np.unique(posts.labels, return_inverse=True)[1].astype(np.int64)
    halves = fold_of_rows(labels, 2, RandomBits(SEED))
    yield from map(Review, posts.texts, labels.tolist(), (halves == 0).tolist())


def quarters(corpus: Corpus, *, reviews: int | None, seed: int) -> Quarters:
    """Split the train and the test part into random halves, each with the same shares of the classes.

    ``reviews`` is the size of a quarter; None: all reviews.
    """
    bits = RandomBits(seed)

    def shuffle(ids: Ids) -> Ids:
        order: Ids = ids[np.argsort(bits.integers(ids.size), kind="stable")]
        return order

    result: list[Ids] = []
    for part in (corpus.train, ~corpus.train):
        classes = [np.flatnonzero(part & (corpus.labels == label)) for label in range(corpus.classes)]
        sizes = [side.size // 2 for side in classes]
        if reviews is not None and reviews < sum(sizes):
            sizes = [max(1, reviews * size // sum(sizes)) for size in sizes]
        mixed = [shuffle(side) for side in classes]
        for half in (0, 1):
            chosen = [side[half * size :][:size] for side, size in zip(mixed, sizes, strict=True)]
            result.append(shuffle(np.concatenate(chosen)))
    return Quarters(*result)


def privatize(mechanism: WordMechanism | None, ids: Ragged, bits: RandomBits) -> Ragged:
    if mechanism is None:
        return ids
    return Ragged(mechanism.sample_rows(ids.values, bits), ids.starts)


class FastText:
    """A text classifier: the mean of the words' vectors, then a linear softmax (Joulin et al. 2017).

    As in the TEM paper the word vectors are trained too, so it can memorise its training texts; that is what a
    membership attack looks for.
    """

    def __init__(self, ids: Ragged, labels: Ids, vectors: WordVectors, seed: int, *, classes: int = 2) -> None:
        self._torch = torch = extra("torch", "train", "the classifier")
        truth = torch.from_numpy(labels)
        with torch.random.fork_rng(devices=[]), torch_threads(1):
            seed_torch(torch, seed)
            start = torch.from_numpy(vectors.matrix.copy())
            self._words = torch.nn.EmbeddingBag.from_pretrained(start, freeze=False, mode="mean")
            self._layer = torch.nn.Linear(vectors.dimension, classes)
            for parameter in self._layer.parameters():
                parameter.data.zero_()
            parameters = [*self._words.parameters(), *self._layer.parameters()]
            optimiser = torch.optim.Adam(parameters, lr=RATE, fused=True)
            for _ in range(EPOCHS):
                order = torch.randperm(len(ids))
                for chosen in order.split(BATCH):
                    scores = self._layer(self._means(ids.take(chosen.numpy())))
                    optimiser.zero_grad()
                    torch.nn.functional.cross_entropy(scores, truth[chosen]).backward()
                    optimiser.step()

    def _means(self, rows: Ragged) -> Any:
        return self._words(*map(self._torch.from_numpy, (rows.values, rows.starts[:-1])))

    def predict_proba(self, rows: Ragged) -> npt.NDArray[np.float64]:
        with self._torch.no_grad(), torch_threads(1):
            scores = self._means(rows).double() @ self._layer.weight.double().T + self._layer.bias.double()
            shares: npt.NDArray[np.float64] = scores.softmax(dim=1).numpy()
        return shares

    def score(self, rows: Ragged, labels: Ids) -> float:
        return float((self.predict_proba(rows).argmax(axis=1) == labels).mean())


def recovery_rate(before: Ids, after: Ids, words: int) -> float:
    """Return how often an attacker names the input words of one half, with guesses learned on the other half.

    Its expectation is below that of the best attacker of single words, to which it converges for long texts.
    """
    half = before.size // 2
    pairs, counts = np.unique(after[:half] * words + before[:half], return_counts=True)
    order = np.argsort(counts, kind="stable")  # the likeliest input is last and stays
    guesses = np.arange(words)
    guesses[pairs[order] // words] = pairs[order] % words
    return float((guesses[after[half:]] == before[half:]).mean())


def measure_trial(
    corpus: Corpus,
    mechanism: WordMechanism | None,
    start: WordVectors,
    *,
    reviews: int,
    trial: int,
    names: Sequence[object],
) -> tuple[dict[str, float], Ragged, Ragged]:
    """Privatize TR1 of a trial, train on it from vectors ``start``, and test on TE1.

    Return the numbers, and the ids of TR1 before and after the mechanism.
    """
    parts = quarters(corpus, reviews=reviews, seed=seed_of("quarters", trial))
    text, labels = corpus.ids.take(parts.tr1), corpus.labels[parts.tr1]
    seed = seed_of(names[0], trial, *names[1:])
    noisy = privatize(mechanism, text, RandomBits(seed))
    target = FastText(noisy, labels, start, seed)
    numbers = {
        "stays": float((noisy.values == text.values).mean()),
        "guessed": recovery_rate(text.values, noisy.values, len(start)),
        "accuracy": target.score(corpus.ids.take(parts.te1), corpus.labels[parts.te1]),
    }
    return numbers, text, noisy


def run_trials(
    description: str,
    folder: Path,
    arguments: Sequence[str] | None,
    *,
    part: str,
    bench: Callable[[Path, WordVectors, int], Callable[[Mapping[str, Any], int], dict[str, float]]],
    settings_of: Callable[..., Iterable[dict[str, Any]]],
) -> argparse.Namespace:
    """Parse options and measure all settings with 3,000 reviews per quarter (``--quick``: 600) in five trials (two).

    ``bench`` maps the folder of the archive, public vectors and the size of a quarter to the measured function.
    """
    vectors_option = {"default": GLOVE, "help": "public vectors: a known name, or a path"}
    options = parse_options(description, folder, arguments, part=part, vectors=vectors_option)
    if not options.report:
        vectors = load_public(options.vectors)
        reviews = 600 if options.quick else 3_000
        sweep(
            bench(options.data, vectors, reviews),
            list(settings_of(quick=options.quick)),
            range(1, 3 if options.quick else 6),
            path=options.out / f"{part}.jsonl",
            name=f"tem {part}",
            constants={"vectors": vectors.fingerprint, "reviews": reviews},
        )
    return options


def load_public(name: str) -> WordVectors:
    return load_vectors(name, limit=GLOVE_WORDS if name == GLOVE else None)
