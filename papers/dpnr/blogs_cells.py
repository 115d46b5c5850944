"""One cell: posts sent through one mechanism, a task learnt from what arrives, and attackers who look at the same.

Task model and attackers are trained on what arrives from some bloggers and answer about others, five folds. A server
that gets vectors with one scalar of noise takes the smallest coordinate away and divides by the largest, as the
sender did before: that leaves the vector without the noise. *As sent* is the server who does not.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs_posts import Posts
from papers.dpnr.servers import randomizer, true_epsilon
from papers.numbers_of import named as _named
from papers.numbers_of import of_groups

from dptext import WordVectors
from dptext.attacks.attribute import attribute_inference
from dptext.evaluation.utility import Predictions, fairness, predictions
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Bound, fit_bound
from dptext.representations.encoders import MeanOfWords
from dptext.representations.published import mask_words, min_max

NONE, NARROW = "no noise", "no noise, 16 axes"
DPNR, SCALAR, AS_SENT = "DPNR", "DPNR, one scalar", "DPNR, one scalar, as sent"
OURS = ("PrivUnit", "L2Laplace", "Gaussian")
PUBLISHED = (DPNR, SCALAR, AS_SENT)
AXES = 16
MASK = "#"  # a word that no vocabulary holds: it counts for nothing in a mean
SMALLEST_GROUP = 30

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Device:
    """What a blogger's device knows: public words, a public centre, and public principal axes.

    Attributes:
        vectors: public.
        smallest_group: bloggers that a group must have for its accuracy to be shown.
        folds: of the measurements.
    """

    vectors: WordVectors = field(repr=False)
    smallest_group: int = SMALLEST_GROUP
    folds: int = 5

    @cached_property
    def encoder(self) -> MeanOfWords:
        return MeanOfWords(self.vectors, weighting=1e-3)

    @cached_property
    def bounds(self) -> dict[int, Bound]:
        """Centre and axes by the width of what comes out: fitted on texts made up of public words by their rank."""
        public = self.encoder.public_sample()
        result = {AXES: fit_bound(public, dimension=AXES)} if self.encoder.dimension > AXES else {}
        return result | {self.encoder.dimension: fit_bound(public, projection=None)}

    def seen(self, posts: Posts, settings: Mapping[str, Any], seed: int) -> Floats:
        """(n, d) what the server learns from."""
        mechanism, epsilon, mu = (settings[name] for name in ("mechanism", "epsilon", "mu"))
        encoded = _encoded(self, posts, mu, _seed(seed, "mask", mu))
        bounded = self.bounds[width_of(mechanism, self.encoder.dimension)].apply(encoded)
        if mechanism == NONE:
            return min_max(bounded)
        if mechanism == NARROW:
            return bounded
        noise = randomizer(_noise_of(mechanism), epsilon).channel(bounded.shape[1])
        # whose draws hang on epsilon: the same noise at two of them would be told by subtraction
        sent = noise.sample(bounded, RandomBits(_seed(seed, mechanism, epsilon, mu)))
        return min_max(sent) if mechanism == SCALAR else sent.astype(np.float64)


def measure(settings: Mapping[str, Any], seed: int, *, device: Device, posts: Posts) -> dict[str, float]:
    """Numbers of one cell, each with its interval over bloggers and beside the best blind guess.

    Args:
        settings: ``mechanism``, ``epsilon`` (as asked for; None without noise), ``mu`` (share of words masked).
        seed: of masks, noise, folds and models.
        device: what is public.
        posts: of the task.
    """
    seen = device.seen(posts, settings, seed)
    clean = NONE if settings["mechanism"] in (NONE, *PUBLISHED) else NARROW
    without = device.seen(posts, {"mechanism": clean, "epsilon": None, "mu": 0.0}, seed)
    numbers = {"largest change": float(np.abs(seen - without).max())}
    common: dict[str, Any] = {"people": posts.people, "folds": device.folds, "seed": seed}
    task = predictions(seen, posts.labels, **common)
    for name in ("accuracy", "macro-F1"):
        result = task.score(name)
        numbers |= _named(f"task {name}", result.score, result.baseline)
    together = _mean_by(seen, posts.people)
    first = np.unique(posts.people, return_index=True)[1]
    for attribute, values in posts.attributes.items():
        attack: dict[str, Any] = {"folds": device.folds, "seed": seed}
        for attacker in ("mlp", "linear"):
            score = attribute_inference(seen, values, people=posts.people, attackers=attacker, **attack)[0]
            numbers |= _named(f"{attribute} {attacker}", score.score, score.baseline)
        score = attribute_inference(together, values[first], attackers="linear", **attack)[0]
        numbers |= _named(f"{attribute} all posts", score.score, score.baseline)
        numbers |= _served(task, values[task.rows], attribute, device)
    return numbers


def true_epsilon_of(mechanism: str, epsilon: float | None, width: int) -> float:
    """What is proved for any two posts; masks take nothing off it."""
    if epsilon is None:
        return float("inf")
    return true_epsilon(_noise_of(mechanism), epsilon, width_of(mechanism, width))


def width_of(mechanism: str, width: int) -> int:
    """How many numbers a mechanism gets of vectors of a width."""
    return width if mechanism in (NONE, *PUBLISHED) else min(AXES, width)


def _noise_of(mechanism: str) -> str:
    return SCALAR if mechanism == AS_SENT else mechanism


@lru_cache(maxsize=4)
def _encoded(device: Device, posts: Posts, mu: float, seed: int) -> npt.NDArray[np.float32]:
    """(n, D) means of the words that are not masked, remembered for the cells that follow."""
    masked = mask_words(posts.texts, mu=mu, mask=MASK, seed=seed).texts if mu else posts.texts
    return device.encoder.encode(masked)


def _served(task: Predictions, groups: npt.NDArray[np.str_], attribute: str, device: Device) -> dict[str, float]:
    """Accuracy of the task in each group, and the gap of each pair: the later group less the earlier one."""
    result = fairness(
        task.true,
        task.predicted,
        groups,
        people=task.people,
        smallest=device.smallest_group,
    )
    return of_groups(attribute, result)


def _mean_by(rows: Floats, people: npt.NDArray[np.int64]) -> Floats:
    """(bloggers, d) the mean of what arrived from each."""
    sums = np.zeros((int(people.max()) + 1, rows.shape[1]))
    np.add.at(sums, people, rows)
    return sums / np.bincount(people)[:, None]


def _seed(seed: int, *what: object) -> int:
    return zlib.crc32(repr((seed, *what)).encode())
