"""The DPNR paper on blogs: rows of its figures 4 and 5, the attribute attack and the fairness table. See README.md.

Command: ``python -m papers.dpnr.blogs [--data FOLDER] [--quick] [--report]``

A server that receives vectors with one scalar of noise subtracts the smallest coordinate and divides by the largest, as
the sender did before: that removes the noise. *As sent* is a server that does not. No post and no number of a blogger
is printed or stored.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import TASKS, TOPIC, Posts, bloggers, posts_for
from papers.dpnr.blogs_report import (
    AS_SENT,
    AXES,
    DPNR,
    NARROW,
    NONE,
    PROVED,
    PUBLISHED,
    SCALAR,
    noise_of,
    width_of,
    write_report,
)
from papers.dpnr.servers import randomizer
from papers.fairness import fairness
from papers.reports import estimate_numbers, group_numbers, parse_options, run_command
from papers.sweeps import sweep

from dptext import WordVectors, load_vectors
from dptext.attacks.attribute import attribute_inference
from dptext.evaluation.utility import predictions
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Bound, fit_bound
from dptext.representations.encoders import MeanOfWords
from dptext.representations.published import mask_words, min_max

HERE = Path(__file__).resolve().parent
VECTORS, WORDS = "glove-6b-50d", 50_000
DROPOUT_AT = 1.0  # the epsilon at which figure 5 varies mu
MASK = "#"  # in no vocabulary, so it does not change a mean

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    tasks: tuple[str, ...] = TASKS
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.5, 1.0, 5.0)  # claimed
    mus: tuple[float, ...] = (0.1, 0.3, 0.5, 0.8)
    true_epsilons: tuple[float, ...] = (1.0, 4.0, 16.0, 50.0)
    proved: tuple[str, ...] = PROVED
    every: int = 1  # every n-th blogger takes part
    max_posts: int = 6  # of one blogger
    min_bloggers: int = 100  # of a label
    min_bloggers_of_topic: int = 50
    smallest_group: int = 30  # bloggers
    passes: int = 10  # of the topic model
    folds: int = 5


QUICK = Plan(
    tasks=TASKS[:2],
    epsilons=(1.0,),
    mus=(0.5,),
    true_epsilons=(16.0,),
    proved=("PrivUnit",),
    every=8,
    max_posts=2,
    min_bloggers=10,
    min_bloggers_of_topic=5,
    smallest_group=5,
    passes=2,
    folds=2,
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options("Noisy representations of blogs: attacks and fairness.", HERE, arguments)
    if not options.report:
        plan = QUICK if options.quick else Plan()
        people = list(bloggers(options.data))[:: plan.every]
        device = Device(load_vectors(VECTORS, limit=WORDS), plan.smallest_group, plan.folds)
        for task in plan.tasks:
            smallest = plan.min_bloggers_of_topic if task == TOPIC else plan.min_bloggers
            posts = posts_for(task, people, max_posts=plan.max_posts, min_bloggers=smallest, passes=plan.passes)
            run_task(device, posts, settings_of(plan, task), options.out / f"blogs {task}.jsonl")
    write_report(options.out, readme=options.readme)


def run_task(device: Device, posts: Posts, settings: Sequence[Mapping[str, Any]], path: Path) -> None:
    vectors = device.vectors
    constants = {"vectors": vectors.fingerprint, "width": vectors.dimension, "folds": device.folds} | posts.facts
    cell = partial(measure, device=device, posts=posts)
    sweep(cell, settings, [1], path=path, name=f"dpnr {path.stem}", constants=constants)


def settings_of(plan: Plan, task: str) -> list[dict[str, Any]]:
    """Return the settings: without noise, figures 4 and 5 with both kinds of noise, and mechanisms with a proof.

    The undone noise does not depend on epsilon: a task without printed numbers has only the smallest and largest.
    """
    ends = plan.epsilons if task == TOPIC else tuple(dict.fromkeys((plan.epsilons[0], plan.epsilons[-1])))
    cells: list[tuple[str, float | None, float]] = [(NONE, None, 0.0), (NARROW, None, 0.0)]
    cells += [(DPNR, epsilon, 0.0) for epsilon in plan.epsilons]
    cells += [(name, epsilon, 0.0) for name in (SCALAR, AS_SENT) for epsilon in ends]
    cells += [(name, DROPOUT_AT, mu) for mu in plan.mus for name in (DPNR, SCALAR)]
    cells += [(name, epsilon, 0.0) for name in plan.proved for epsilon in plan.true_epsilons]
    return [dict(zip(("mechanism", "epsilon", "mu"), cell, strict=True)) for cell in cells]


@dataclass(frozen=True, eq=False)
class Device:
    """A blogger's device with public words, a public centre, and public principal axes.

    Groups smaller than ``smallest_group`` (bloggers) get no accuracy; measurements use ``folds``.
    """

    vectors: WordVectors = field(repr=False)
    smallest_group: int = 30
    folds: int = 5

    @cached_property
    def encoder(self) -> MeanOfWords:
        return MeanOfWords(self.vectors, weighting=1e-3)

    @cached_property
    def bounds(self) -> dict[int, Bound]:
        """Centre and axes by the output's dimension, fitted on random texts of public words."""
        public = self.encoder.public_sample()
        result = {AXES: fit_bound(public, dimension=AXES)} if self.encoder.dimension > AXES else {}
        return result | {self.encoder.dimension: fit_bound(public, projection=None)}

    @lru_cache(maxsize=4)  # noqa: B019  lives as long as the run
    def _encode(self, posts: Posts, mu: float, seed: int) -> npt.NDArray[np.float32]:
        """Return the (n, d) means of the words that are not masked."""
        return self.encoder.encode(mask_words(posts.texts, mu=mu, mask=MASK, seed=seed).texts if mu else posts.texts)

    def received(self, posts: Posts, settings: Mapping[str, Any], seed: int) -> Floats:
        mechanism, epsilon, mu = (settings[name] for name in ("mechanism", "epsilon", "mu"))
        encoded = self._encode(posts, mu, _seed(seed, "mask", mu))
        bounded = self.bounds[width_of(mechanism, self.encoder.dimension)].apply(encoded)
        if mechanism == NONE:
            return min_max(bounded)
        if mechanism == NARROW:
            return bounded
        channel = randomizer(noise_of(mechanism), epsilon).channel(bounded.shape[1])
        # the seed depends on epsilon: equal noise at two epsilons would cancel out
        sent = channel.sample(bounded, RandomBits(_seed(seed, mechanism, epsilon, mu)))
        return min_max(sent) if mechanism == SCALAR else sent.astype(np.float64)


def measure(settings: Mapping[str, Any], seed: int, *, device: Device, posts: Posts) -> dict[str, float]:
    """Return utility, attack success and fairness of one cell, with intervals over bloggers and blind guesses.

    Settings: ``mechanism``, ``epsilon`` (claimed; None without noise), ``mu`` (share of masked words).
    """
    received = device.received(posts, settings, seed)
    clean = NONE if settings["mechanism"] in (NONE, *PUBLISHED) else NARROW
    without = device.received(posts, {"mechanism": clean, "epsilon": None, "mu": 0.0}, seed)
    numbers = {"largest change": float(np.abs(received - without).max())}
    options: dict[str, Any] = {"folds": device.folds, "seed": seed}
    task = predictions(received, posts.labels, people=posts.people, **options)
    for name in ("accuracy", "macro-F1"):
        score = task.score(name)
        numbers |= estimate_numbers(f"task {name}", score.score, score.baseline)
    means = np.zeros((int(posts.people.max()) + 1, received.shape[1]))
    np.add.at(means, posts.people, received)
    means /= np.bincount(posts.people)[:, None]
    first = np.unique(posts.people, return_index=True)[1]
    for attribute, values in posts.attributes.items():
        attacks = {name: (received, values, {"people": posts.people, "attackers": name}) for name in ("mlp", "linear")}
        attacks["all posts"] = (means, values[first], {"attackers": "linear"})
        for name, (vectors, target, more) in attacks.items():
            attack = attribute_inference(vectors, target, **more, **options)[0]
            numbers |= estimate_numbers(f"{attribute} {name}", attack.score, attack.baseline)
        groups = fairness(
            task.true, task.predicted, values[task.rows], people=task.people, smallest=device.smallest_group
        )
        numbers |= group_numbers(attribute, groups)
    return numbers


def _seed(seed: int, *name: object) -> int:
    return zlib.crc32(repr((seed, *name)).encode())


if __name__ == "__main__":
    run_command(main)
