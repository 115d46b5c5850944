"""One cell: posts sent in one way, a task learnt from what arrives, and fresh attackers who look at the same.

Bloggers are cut into folds. In each fold the bloggers of one part are tested; of the others one half is *public* (an
encoder is trained on their posts, labels and attributes), the other half has sent its posts as well, and the task model
and the attackers are trained on these. So nobody is tested by a model that saw posts of his, and no attacker learns
from vectors that the encoder was trained to make.
"""

from __future__ import annotations

import argparse
import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs_posts import Posts
from papers.dptext.attributed import Attributed
from papers.dptext.methods import ADV_ALL, NAMES, Labelled, Sender, sender
from papers.numbers_of import named as _named
from papers.numbers_of import of_groups
from papers.sweeps import sweep

from dptext.attacks import author_reidentification
from dptext.attacks.base import ATTACKERS, Attacker, Learner
from dptext.evaluation.measures import Fold, make_folds
from dptext.evaluation.measures import measure as measured
from dptext.evaluation.utility import fairness
from dptext.intervals import Estimate, over_people
from dptext.io.atomic import hashed_file

REFERENCE: dict[str, Any] = {"method": ADV_ALL, "epsilon": None, "alpha": 1.0}
"""What everything is compared with, on the same posts."""

SMALLEST_GROUP = 30

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """What a cell is measured on. Equal by name and numbers, so that a copy in another process is known again.

    Attributes:
        name: of posts and vectors.
        posts: with their labels.
        stored: for each fold (n, D), a vector each.
        folds, resamples: of the measurements.
        attackers: which.
        smallest_group: bloggers that a group must have for its accuracy to be shown.
        work: a folder in which answers to the reference are kept, for this user alone, so that an experiment that goes
            on does not train it again; None: none is.
    """

    name: str
    posts: Posts | Attributed = field(repr=False, compare=False)
    stored: tuple[npt.NDArray[np.float64], ...] = field(repr=False, compare=False)
    folds: int = 10
    resamples: int = 1000
    attackers: tuple[Attacker, ...] = ATTACKERS
    smallest_group: int = SMALLEST_GROUP
    work: Path | None = field(default=None, compare=False)


def run_cells(
    cell: Callable[..., dict[str, float]],
    cells: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    *,
    setting: Setting,
    name: str,
    encoder: str,
    options: argparse.Namespace,
) -> None:
    """Every cell without a row gets one, a line of ``<name>.jsonl`` in ``options.out``; of the first ones if some are
    asked for."""
    sweep(
        partial(cell, setting=setting),
        cells[: options.first],
        seeds,
        path=options.out / f"{name}.jsonl",
        name=f"dptext, {name}",
        constants={"encoder": encoder, "width": setting.stored[0].shape[1], "folds": setting.folds}
        | {"resamples": setting.resamples, "attackers": ", ".join(setting.attackers)}
        | setting.posts.facts,
        packages=("scikit-learn", "torch"),
        processes=options.processes,
    )


@dataclass(frozen=True, eq=False)
class Answers:
    """What models said of tested posts, all folds together.

    Attributes:
        rows: (m,) the tested posts.
        task: (m,) codes of what the task model said.
        told: attribute to attacker to (m,) codes of what the attacker said.
        found: how often authors of the first fold's posts were named, with the blind guess.
    """

    rows: Codes
    task: Codes
    told: Mapping[str, Mapping[str, Codes]]
    found: tuple[Estimate, float]


def split(posts: Posts | Attributed, folds: int, seed: int) -> list[tuple[Codes, Codes, Codes]]:
    """(public, senders who train readers, tested) posts of each fold; a blogger is in one of the three."""
    parts = []
    for fold in make_folds(posts.labels, count=folds, people=posts.people, seed=seed):
        halves = make_folds(posts.labels[fold.train], count=2, people=posts.people[fold.train], seed=seed + 1)
        public, senders = (fold.train[side] for side in _sides(halves[0]))
        parts.append((public, senders, fold.test))
    return parts


def measure(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    """Numbers of one cell, each with its interval over bloggers, and what differs from `REFERENCE`.

    Args:
        settings: ``method``, ``epsilon``, ``alpha``.
        seed: of folds, training, noise and readers.
        setting: see `Setting`.
    """
    answers = answered(settings["method"], settings["epsilon"], settings["alpha"], seed, setting)
    base = answered(REFERENCE["method"], REFERENCE["epsilon"], REFERENCE["alpha"], seed, setting)
    posts, rows = setting.posts, answers.rows
    people, options = posts.people[rows], {"resamples": setting.resamples, "seed": seed}
    truth = {"task": _codes(posts.labels)[rows]}
    truth |= {name: _codes(values)[rows] for name, values in posts.attributes.items()}
    numbers: dict[str, float] = {}
    for which in ("accuracy", "macro-F1"):
        result = measured(which, truth["task"], answers.task, people=people)
        numbers |= _named(f"task {which}", result.score, result.baseline)
        for attribute, by in answers.told.items():
            for attacker, text in by.items():
                result = measured(which, truth[attribute], text, people=people)
                numbers |= _named(f"{attribute} {attacker} {which}", result.score, result.baseline)
    numbers |= _named(
        "task less ADV-ALL", over_people(_hits(truth["task"], [answers.task], [base.task]), people, **options)
    )
    for attribute, by in answers.told.items():
        best = _hits(truth[attribute], list(by.values()), [])
        baseline = float(np.bincount(truth[attribute]).max() / len(rows))
        numbers |= _named(f"{attribute} best", over_people(best, people, **options), baseline)
        less = _hits(truth[attribute], list(by.values()), list(base.told[attribute].values()))
        numbers |= _named(f"{attribute} less ADV-ALL", over_people(less, people, **options))
        numbers |= _served(truth["task"], answers.task, posts.attributes[attribute][rows], people, attribute, setting)
    numbers |= _named("authors", *answers.found)
    return numbers


@dataclass(frozen=True, eq=False)
class Arrived:
    """What was sent in one fold.

    Attributes:
        public, senders, tested: (p,), (s,) and (t,) posts.
        sender: how.
        seed: of the sender; its noise has the next one.
        known, asked: (s, d) and (t, d) what arrived of senders, and of those tested.
    """

    public: Codes
    senders: Codes
    tested: Codes
    sender: Sender
    seed: int
    known: npt.NDArray[np.float64]
    asked: npt.NDArray[np.float64]


@lru_cache(maxsize=24)  # all folds of the reference, and of one more
def arrived_in(
    place: int, method: str, epsilon: float | None, alpha: float | None, seed: int, setting: Setting
) -> Arrived:
    """What is sent in a fold."""
    public, senders, tested = split(setting.posts, setting.folds, seed)[place]
    everything = rows_of(place, setting)
    # every draw hangs on all that it is drawn for: the same noise at two budgets would be told by subtraction
    own = zlib.crc32(repr((seed, method, epsilon, alpha, place)).encode())
    output = sender(NAMES[method], epsilon, alpha, everything.at(public), own)
    arrived = output.send(everything.at(np.concatenate([senders, tested])), own + 1)
    return Arrived(public, senders, tested, output, own, arrived[: senders.size], arrived[senders.size :])


def rows_of(place: int, setting: Setting) -> Labelled:
    """All posts, as they are stored in a fold."""
    posts = setting.posts
    return Labelled(setting.stored[place], posts.labels, posts.attributes, posts.people)


@lru_cache(maxsize=2)  # that of the reference, and one more
def answered(method: str, epsilon: float | None, alpha: float | None, seed: int, setting: Setting) -> Answers:
    """Vectors sent, models trained on some of them, and what these say of the others."""
    is_reference = {"method": method, "epsilon": epsilon, "alpha": alpha} == REFERENCE
    if setting.work is None or not is_reference:
        return _answered(method, epsilon, alpha, seed, setting)
    key = f"{setting.name}, {setting.folds} folds, {' '.join(setting.attackers)}, {seed}"
    path = setting.work / f"reference {key}.pickle"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with hashed_file(path, owner_only=True) as stream:
            pickle.dump(_answered(method, epsilon, alpha, seed, setting), stream)
    result: Answers = pickle.loads(path.read_bytes())  # this user's own file
    return result


def _answered(method: str, epsilon: float | None, alpha: float | None, seed: int, setting: Setting) -> Answers:
    posts = setting.posts
    labels = _codes(posts.labels)
    attributes = {name: _codes(values) for name, values in posts.attributes.items()}
    rows, task, told, result = [], [], {name: {entry: [] for entry in setting.attackers} for name in attributes}, None
    for place in range(setting.folds):
        fold = arrived_in(place, method, epsilon, alpha, seed, setting)
        known, requested, senders = fold.known, fold.asked, fold.senders
        rows.append(fold.tested)
        task.append(Learner("linear", seed).fit(known, labels[senders]).predict(requested))
        for name, codes in attributes.items():
            for attacker in setting.attackers:
                told[name][attacker].append(Learner(attacker, seed).fit(known, codes[senders]).predict(requested))
        if result is None:
            result = _authors(requested, posts.people[fold.tested], seed)
    assert result is not None
    joined = {name: {entry: np.concatenate(text) for entry, text in by.items()} for name, by in told.items()}
    return Answers(np.concatenate(rows), np.concatenate(task), joined, result)


def _authors(arrived: npt.NDArray[np.float64], people: Codes, seed: int) -> tuple[Estimate, float]:
    """How often the last post of a blogger is named by an attacker who knows their other posts as they arrived."""
    last = np.zeros(len(people), dtype=bool)
    last[len(people) - 1 - np.unique(people[::-1], return_index=True)[1]] = True
    private = last & (np.bincount(people)[people] > 1)
    known = ~last
    if not private.any():  # everybody has one: nothing to know an author by
        return Estimate(0.0, 0.0, 1.0, 0, "people"), 0.0
    score = author_reidentification(
        arrived[known], people[known], arrived[private], people[private], attacker="centroid", top=(1,), seed=seed
    )[0]
    return score.score, score.baseline


def _hits(truth: Codes, ours: list[Codes], theirs: list[Codes]) -> Callable[[Codes], float]:
    """The share that the best of some models has right, less that of the best of others."""
    one, other = (np.array([text == truth for text in our], dtype=np.float64) for our in (ours, theirs))

    def difference(rows: Codes) -> float:
        best = float(one[:, rows].mean(axis=1).max())
        return best - float(other[:, rows].mean(axis=1).max()) if len(other) else best

    return difference


def _served(
    true: Codes,
    said: Codes,
    groups: npt.NDArray[np.str_],
    people: Codes,
    attribute: str,
    setting: Setting,
) -> dict[str, float]:
    """Accuracy of the task in each group, and the gap of each pair: the later group less the earlier one."""
    result = fairness(true, said, groups, people=people, smallest=setting.smallest_group)
    return of_groups(attribute, result)


def _codes(values: npt.NDArray[np.str_]) -> Codes:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _sides(fold: Fold) -> tuple[Codes, Codes]:
    return fold.train, fold.test
