"""What is compared: each setting turns one split of one set into accuracies, without ever looking at a test label."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
from papers.ome.projections import Projection, Sign, centred, channel_for, principal, raw, supervised

from dptext.privacy.randomness import RandomBits
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.published import OME
from dptext.representations.randomizer import Channel

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
DIMENSIONS = (1, 2, 4, 8, 16, 32)
RUNS = 20
_CHOOSING_RUNS = 10
PUBLISHED = OME(epsilon=1.0, lambda_=100.0, dimension=50, unsafe_as_published=True)
TRUE_EPSILON = PUBLISHED.statement().epsilon


@dataclass(frozen=True)
class Row:
    """One accuracy. ``meets``: what the model is tested on: clean vectors, noisy ones, or one noisy bit from the device
    that got the model back."""

    encoder: str
    setting: str
    meets: str
    epsilon: float
    dimension: int
    accuracy: float


@dataclass(frozen=True, eq=False)
class Texts:
    """Vectors and labels."""

    vectors: Floats
    labels: Labels

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> Texts:
        return Texts(self.vectors[rows], self.labels[rows])

    def through(self, projection: Projection) -> Texts:
        return Texts(projection(self.vectors), self.labels)


@dataclass(eq=False)
class Task:
    """A private set in one encoding, and the public ones."""

    encoder: str
    name: str
    private: Texts
    public: tuple[Texts, ...]

    @cached_property
    def together(self) -> Texts:
        return Texts(
            np.concatenate([entry.vectors for entry in self.public]),
            np.concatenate([entry.labels for entry in self.public]),
        )


def split(rows: int, run: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """(training, test) 8:2, the same for every setting."""
    order = np.argsort(RandomBits(seed=run).uniform(rows))
    return order[: rows * 8 // 10], order[rows * 8 // 10 :]


def _random(*what: object) -> RandomBits:
    """Noise of its own for every setting, epsilon and run, the same each time the experiment runs."""
    return RandomBits(seed=zlib.crc32(repr(what).encode()))


# -- settings without noise, and the published one ---------------------------------------------------------------


def baselines(task: Task, run: int) -> Iterator[Row]:
    """Majority, not private, the public sets alone, and OME."""
    train, test = (task.private[rows] for rows in split(len(task.private.labels), run))
    majority = np.bincount(train.labels).argmax()
    dimension = train.vectors.shape[1]
    yield Row(task.encoder, "majority", "clean", 0.0, 0, float((test.labels == majority).mean()))
    clean = NoisyClassifier().fit(train.vectors, train.labels)
    yield Row(task.encoder, "not private", "clean", np.inf, dimension, clean.score(test.vectors, test.labels))
    public = task.together
    alone = NoisyClassifier().fit(public.vectors, public.labels)
    yield Row(task.encoder, "public alone", "clean", 0.0, dimension, alone.score(test.vectors, test.labels))
    adapted = NoisyClassifier(public=(public.vectors, public.labels)).fit(train.vectors, train.labels)
    yield Row(
        task.encoder, "not private + public", "clean", np.inf, dimension, adapted.score(test.vectors, test.labels)
    )
    if task.encoder == "glove":
        yield _ome(task, run)


def _ome(task: Task, run: int) -> Row:
    flipped = _flipped(task, run)
    train, test = (flipped[rows] for rows in split(len(flipped.labels), run))
    fitted = NoisyClassifier().fit(train.vectors, train.labels)
    accuracy = fitted.score(test.vectors, test.labels)
    return Row(task.encoder, "OME as published", "noisy", TRUE_EPSILON, train.vectors.shape[1], accuracy)


def _flipped(task: Task, run: int) -> Texts:
    return _sent(task.private, PUBLISHED.channel(50), "ome", task.name, run)


def perceptron(task: Task, run: int) -> Iterator[Row]:
    """The paper's own classifier, as it was trained there (no early stopping), on some of the same vectors."""
    if task.encoder != "glove":
        return
    rows = split(len(task.private.labels), run)
    mapped = task.private.through(centred(task.together.vectors))
    flipped = _flipped(task, run)
    values = [
        ("not private", np.inf, mapped),
        ("OME as published", TRUE_EPSILON, flipped),
    ]
    values += [
        ("centred", epsilon, _sent(mapped, channel_for(epsilon, 50), "plain", "centred", task, run, epsilon))
        for epsilon in (4.0, 16.0)
    ]
    for epsilon in (4.0, 16.0):
        dimension = chosen_dimension(task, "supervised", "noisy", epsilon)
        private, _ = _projected(task, "supervised", dimension)
        sent = _sent(private, channel_for(epsilon, dimension), "supervised", "noisy", task, run, epsilon)
        values.append(("supervised", epsilon, sent))
    for setting, epsilon, texts in values:
        train, test = (texts[part] for part in rows)
        fitted = NoisyClassifier("mlp", validation_fraction=0.0, seed=run).fit(train.vectors, train.labels)
        accuracy = fitted.score(test.vectors, test.labels)
        meets = "clean" if epsilon == np.inf else "noisy"
        yield Row(task.encoder, f"{setting}, perceptron", meets, epsilon, texts.vectors.shape[1], accuracy)


# -- settings with noise ------------------------------------------------------------------------------------------


def plain(task: Task, run: int, epsilon: float) -> Iterator[Row]:
    """PrivUnit on all dimensions: not centred, centred; the noise not known, known, and known with public examples."""
    public = task.together
    shared = (("raw", raw(public.vectors)), ("centred", centred(public.vectors)))
    for name, projection in shared:
        mapped, told = task.private.through(projection), public.through(projection)
        channel = channel_for(epsilon, mapped.vectors.shape[1])
        noisy = _sent(mapped, channel, "plain", name, task, run, epsilon)
        for estimator, options in (
            ("noise unknown", {}),
            ("noise known", {"channel": channel}),
            ("noise known + public", {"channel": channel, "public": (told.vectors, told.labels)}),
        ):
            server = NoisyClassifier(**options)  # type: ignore[arg-type]
            yield from _both(task, f"{name}, {estimator}", server, mapped, noisy, run, epsilon)


def projected(task: Task, run: int, epsilon: float) -> Iterator[Row]:
    """A public projection to the dimension that is best on the public sets, with public examples as prior."""
    for kind in ("principal", "supervised"):
        for meets in ("noisy", "clean"):
            dimension = chosen_dimension(task, kind, meets, epsilon)
            private, public = _projected(task, kind, dimension)
            channel = channel_for(epsilon, dimension)
            noisy = _sent(private, channel, kind, meets, task, run, epsilon)
            server = NoisyClassifier(channel=channel, public=(public.vectors, public.labels))
            rows = list(_both(task, kind, server, private, noisy, run, epsilon))
            yield from (row for row in rows if row.meets == meets)
            if meets == "clean":
                yield _one_bit(task, kind, server, private, run, epsilon)


def public_alone(task: Task, run: int, epsilon: float) -> Iterator[Row]:
    """No private text is learned from; what is classified is noisy: one bit, the public model's own decision."""
    _, test = split(len(task.private.labels), run)
    private, public = _projected(task, "supervised", 1)
    server = NoisyClassifier().fit(public.vectors, public.labels)
    noisy = Sign(epsilon).sample(private.vectors[test], _random("alone", task.encoder, task.name, run, epsilon))
    yield Row(task.encoder, "public alone", "one bit", epsilon, 1, server.score(np.sign(noisy), private.labels[test]))


def _sent(texts: Texts, channel: Channel, *what: object) -> Texts:
    """Every text once through the channel."""
    named = [entry.name if isinstance(entry, Task) else entry for entry in what]
    encoders = [entry.encoder for entry in what if isinstance(entry, Task)]
    return Texts(channel.sample(texts.vectors, _random(*named, *encoders)).astype(np.float64), texts.labels)


def _both(
    task: Task, setting: str, server: NoisyClassifier, clean: Texts, noisy: Texts, run: int, epsilon: float
) -> Iterator[Row]:
    """Train on noisy vectors; test on noisy ones, and on clean ones with the model sent back."""
    train, test = split(len(clean.labels), run)
    server.fit(noisy.vectors[train], noisy.labels[train])
    dimension = clean.vectors.shape[1]
    at_server = server.score(noisy.vectors[test], noisy.labels[test])
    at_device = server.device_model().score(clean.vectors[test], clean.labels[test])
    yield Row(task.encoder, setting, "noisy", epsilon, dimension, at_server)
    yield Row(task.encoder, setting, "clean", epsilon, dimension, at_device)


def _one_bit(task: Task, setting: str, server: NoisyClassifier, clean: Texts, run: int, epsilon: float) -> Row:
    """The model sent back decides on the device; its decision leaves by randomised response of the same epsilon."""
    _, test = split(len(clean.labels), run)
    decided = server.device_model().predict(clean.vectors[test])
    random = _random("bit", task.encoder, task.name, run, epsilon)
    sent = Sign(epsilon).sample(2.0 * decided[:, None] - 1, random)[:, 0] > 0
    accuracy = float((sent == (clean.labels[test] == 1)).mean())
    return Row(task.encoder, setting, "one bit", epsilon, clean.vectors.shape[1], accuracy)


# -- the dimension, chosen on the public sets -----------------------------------------------------------------------


def chosen_dimension(task: Task, kind: str, meets: str, epsilon: float) -> int:
    """The dimension of best accuracy when each public set plays the private one and the others are public to it.

    The private set is not looked at. Of equals the smallest.
    """
    return _chosen_dimensions(task, kind, epsilon)[meets]


@cache
def _chosen_dimensions(task: Task, kind: str, epsilon: float) -> dict[str, int]:
    result = {"noisy": np.zeros(len(DIMENSIONS)), "clean": np.zeros(len(DIMENSIONS))}
    for stand_in in _stand_ins(task):
        for place, dimension in enumerate(DIMENSIONS):
            private, public = _projected(stand_in, kind, dimension)
            channel = channel_for(epsilon, dimension)
            for run in range(_CHOOSING_RUNS):
                noisy = _sent(private, channel, "choice", task.name, kind, dimension, stand_in, run, epsilon)
                server = NoisyClassifier(channel=channel, public=(public.vectors, public.labels))
                for row in _both(stand_in, kind, server, private, noisy, run, epsilon):
                    result[row.meets][place] += row.accuracy
    return {meets: DIMENSIONS[int(sums.argmax())] for meets, sums in result.items()}


@cache
def _stand_ins(task: Task) -> tuple[Task, ...]:
    return tuple(
        Task(task.encoder, f"stand-in {index}", entry, task.public[:index] + task.public[index + 1 :])
        for index, entry in enumerate(task.public)
    )


@cache
def _projected(task: Task, kind: str, dimension: int) -> tuple[Texts, Texts]:
    """(private, public) texts after the projection."""
    public = task.together
    projection = (
        principal(public.vectors, dimension)
        if kind == "principal"
        else supervised(public.vectors, public.labels, dimension)
    )
    return task.private.through(projection), public.through(projection)
