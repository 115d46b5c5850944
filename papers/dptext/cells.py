"""One cell: posts sent by one method, a task model, and fresh attackers that are trained on received vectors.

Bloggers are split into folds. In each fold the bloggers of one part are tested. Of the others, half are *public* (an
encoder is trained on their posts, labels and attributes) and half are senders, whose received posts train the task
model and the attackers. So no model is tested on people whose posts it has seen, and no attacker learns from vectors
that the encoder was trained on.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import Posts
from papers.bootstrap import over_people
from papers.dptext.methods import ADV_ALL, NAMES, Labelled, Sender, fit_sender
from papers.dptext.stored import stored_vectors
from papers.fairness import fairness
from papers.reports import estimate_numbers, group_numbers
from papers.sweeps import sweep

from dptext.attacks import author_reidentification
from dptext.attacks.base import ATTACKERS, Attacker, Learner
from dptext.evaluation.measures import make_folds
from dptext.evaluation.measures import measure as measure_score
from dptext.intervals import Estimate

REFERENCE: dict[str, Any] = {"method": ADV_ALL, "epsilon": None, "alpha": 1.0}
"""All methods are compared with this one, on the same posts."""

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Setting:
    """Posts, their stored vectors in each fold (n, D), and the options of the measurements."""

    posts: Posts
    stored: tuple[Floats, ...]
    folds: int = 10
    resamples: int = 1000
    attackers: tuple[Attacker, ...] = ATTACKERS
    smallest_group: int = 30

    def rows(self, fold: int) -> Labelled:
        return Labelled(self.stored[fold], self.posts.labels, self.posts.attributes, self.posts.people)


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions for tested posts, of all folds.

    Attributes:
        rows: (m,) the tested posts.
        task: (m,) codes predicted by the task model.
        attributes: (m,) codes by attribute and attacker.
        authors: how often authors were named in the first fold, and the score of a blind guess.
    """

    rows: Codes
    task: Codes
    attributes: Mapping[str, Mapping[str, Codes]]
    authors: tuple[Estimate, float]


@dataclass(frozen=True, eq=False)
class Fold:
    """The posts of one fold and the vectors that the server received.

    Attributes:
        public, senders, tested: (p,), (s,) and (t,) posts.
        sender: the fitted method.
        seed: of the sender; its noise has the next one.
        known, unknown: (s, d) and (t, d) received vectors of senders and of tested posts.
    """

    public: Codes
    senders: Codes
    tested: Codes
    sender: Sender
    seed: int
    known: Floats
    unknown: Floats


def run_cells(
    cell: Callable[..., dict[str, float]],
    cells: Sequence[Mapping[str, Any]],
    posts: Posts,
    *,
    seed: int,
    encoder: str,
    part: str = "",
    options: argparse.Namespace,
    **measurement: Any,
) -> None:
    """Measure all cells on one kind of stored vectors; each seed has its own folds."""
    public = [rows for rows, _, _ in split(posts, measurement["folds"], seed)]
    vectors = stored_vectors(encoder, posts, options.out / "work", public, seed=seed)
    setting = Setting(posts, vectors, **measurement)
    name = ", ".join(filter(None, (part, posts.task, encoder)))
    sweep(
        partial(cell, setting=setting),
        cells,
        [seed],
        path=options.out / f"{name}.jsonl",
        name=f"dptext, {name}",
        constants={"encoder": encoder, "width": setting.stored[0].shape[1], "folds": setting.folds}
        | {"resamples": setting.resamples, "attackers": ", ".join(setting.attackers)}
        | posts.facts,
    )


def split(posts: Posts, folds: int, seed: int) -> list[tuple[Codes, Codes, Codes]]:
    """Return (public, senders, tested) posts of each fold; each blogger is in one of the three."""
    parts = []
    for fold in make_folds(posts.labels, count=folds, people=posts.people, seed=seed):
        halves = make_folds(posts.labels[fold.train], count=2, people=posts.people[fold.train], seed=seed + 1)
        parts.append((fold.train[halves[0].train], fold.train[halves[0].test], fold.test))
    return parts


def measure(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    """Return utility, attack success and fairness with intervals over bloggers, and differences to `REFERENCE`.

    Args:
        settings: ``method``, ``epsilon``, ``alpha``.
        seed: of folds, training, noise and models.
        setting: posts and vectors.
    """
    answers, reference = (predict_all(*_arguments(entry), seed, setting) for entry in (settings, REFERENCE))
    posts, rows = setting.posts, answers.rows
    people, options = posts.people[rows], {"resamples": setting.resamples, "seed": seed}
    task = _codes(posts.labels)[rows]
    true = {name: _codes(values)[rows] for name, values in posts.attributes.items()}
    numbers: dict[str, float] = {}
    for name in ("accuracy", "macro-F1"):
        score = measure_score(name, task, answers.task, people=people)
        numbers |= estimate_numbers(f"task {name}", score.score, score.baseline)
        for attribute, attackers in answers.attributes.items():
            for attacker, predicted in attackers.items():
                score = measure_score(name, true[attribute], predicted, people=people)
                numbers |= estimate_numbers(f"{attribute} {attacker} {name}", score.score, score.baseline)
    difference = over_people(_accuracy(task, [answers.task], [reference.task]), people, **options)
    numbers |= estimate_numbers("task less ADV-ALL", difference)
    for attribute, attackers in answers.attributes.items():
        predicted, others = list(attackers.values()), list(reference.attributes[attribute].values())
        blind = float(np.bincount(true[attribute]).max() / len(rows))
        best = over_people(_accuracy(true[attribute], predicted, []), people, **options)
        numbers |= estimate_numbers(f"{attribute} best", best, blind)
        difference = over_people(_accuracy(true[attribute], predicted, others), people, **options)
        numbers |= estimate_numbers(f"{attribute} less ADV-ALL", difference)
        groups = posts.attributes[attribute][rows]
        fair = fairness(task, answers.task, groups, people=people, smallest=setting.smallest_group)
        numbers |= group_numbers(attribute, fair)
    return numbers | estimate_numbers("authors", *answers.authors)


def folds_of(settings: Mapping[str, Any], seed: int, setting: Setting) -> list[Fold]:
    """Return all folds of a cell."""
    return [send_fold(place, *_arguments(settings), seed, setting) for place in range(setting.folds)]


def _arguments(settings: Mapping[str, Any]) -> tuple[str, float | None, float | None]:
    return settings["method"], settings["epsilon"], settings["alpha"]


@lru_cache(maxsize=24)  # all folds of the reference, and of one more cell
def send_fold(place: int, method: str, epsilon: float | None, alpha: float | None, seed: int, setting: Setting) -> Fold:
    """Fit a method on the public posts of a fold and send all others."""
    public, senders, tested = split(setting.posts, setting.folds, seed)[place]
    rows = setting.rows(place)
    # the seed depends on all settings: equal noise at two budgets would cancel out
    own_seed = zlib.crc32(repr((seed, method, epsilon, alpha, place)).encode())
    sender = fit_sender(NAMES[method], epsilon, alpha, rows.take(public), own_seed)
    received = sender.send(rows.take(np.concatenate([senders, tested])), own_seed + 1)
    return Fold(public, senders, tested, sender, own_seed, received[: senders.size], received[senders.size :])


@lru_cache(maxsize=2)  # the reference, and one more cell
def predict_all(method: str, epsilon: float | None, alpha: float | None, seed: int, setting: Setting) -> Answers:
    """Train models on the senders of each fold and predict the tested posts."""
    posts = setting.posts
    labels = _codes(posts.labels)
    attributes = {name: _codes(values) for name, values in posts.attributes.items()}
    folds = [send_fold(place, method, epsilon, alpha, seed, setting) for place in range(setting.folds)]

    def predict(attacker: Attacker, codes: Codes) -> Codes:
        models = [Learner(attacker, seed).fit(fold.known, codes[fold.senders]) for fold in folds]
        return np.concatenate([model.predict(fold.unknown) for model, fold in zip(models, folds, strict=True)])

    return Answers(
        np.concatenate([fold.tested for fold in folds]),
        predict("linear", labels),
        {name: {entry: predict(entry, codes) for entry in setting.attackers} for name, codes in attributes.items()},
        _name_authors(folds[0].unknown, posts.people[folds[0].tested], seed),
    )


def _name_authors(received: Floats, people: Codes, seed: int) -> tuple[Estimate, float]:
    """Return how often an attacker who knows a blogger's other received posts names the author of the last one."""
    last = np.zeros(len(people), dtype=bool)
    last[len(people) - 1 - np.unique(people[::-1], return_index=True)[1]] = True
    private = last & (np.bincount(people)[people] > 1)
    if not private.any():  # all bloggers have one post
        return Estimate(0.0, 0.0, 1.0, 0, "people"), 0.0
    known = received[~last], people[~last]
    score = author_reidentification(
        *known, received[private], people[private], attacker="centroid", top=(1,), seed=seed
    )[0]
    return score.score, score.baseline


def _accuracy(true: Codes, predicted: list[Codes], others: list[Codes]) -> Callable[[Codes], float]:
    """Return the accuracy of the best of some models, minus that of the best of others, as a function of rows."""
    hits, other_hits = (
        np.array([codes == true for codes in models], dtype=np.float64) for models in (predicted, others)
    )

    def difference(rows: Codes) -> float:
        best = float(hits[:, rows].mean(axis=1).max())
        return best - float(other_hits[:, rows].mean(axis=1).max()) if len(other_hits) else best

    return difference


def _codes(values: npt.NDArray[np.str_]) -> Codes:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
