"""The DPText paper on blogs: the rows of table 1, other defences, and sound noise at a true epsilon. See README.md.

Command: ``python -m papers.dptext.experiment [--data FOLDER] [--quick] [--report]``, or ``--data FILE`` for table 1 on
own texts, with ``--attribute``. No post and no number of a blogger is printed or stored in a result.

Bloggers are split into folds. In each fold the bloggers of one part are tested. Of the others, half are *public* (an
encoder is trained on their posts, labels and attributes) and half are senders, whose received posts train the task
model and fresh attackers. So no model is tested on people whose posts it has seen.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import TASKS, TOPIC, Posts, bloggers, posts_for
from papers.bootstrap import over_people
from papers.data_sets import FEWEST_AUTHORS, own_texts
from papers.dptext import methods
from papers.dptext.autoencoder import train_autoencoder
from papers.dptext.methods import ADV_ALL, ENCODERS, GLOVE, GRU, NAMES, Labelled, Sender, fit_sender
from papers.dptext.report import Rows, write_report
from papers.fairness import fairness
from papers.printed import dptext_table, print_own
from papers.reports import estimate_numbers, group_numbers, parse_options, run_command, torch_device
from papers.sweeps import sweep

from dptext import load_vectors
from dptext.attacks import author_reidentification
from dptext.attacks.base import ATTACKERS, Attacker, Learner
from dptext.evaluation.measures import make_folds
from dptext.evaluation.measures import measure as measure_score
from dptext.intervals import Estimate
from dptext.io.atomic import hashed_file
from dptext.representations.encoders import MeanOfWords
from dptext.representations.sentence_encoder import SentenceEncoder

Vectors = npt.NDArray[np.float64]


def stored_vectors(
    encoder: str, posts: Posts, work: Path, public: Sequence[npt.NDArray[np.int64]], *, seed: int
) -> tuple[Vectors, ...]:
    """Return the (n, D) vectors of all posts for each fold; ``public`` are the rows that may train an encoder."""
    if encoder != GRU:
        vectors = _load_or_compute(work / f"{encoder}-{posts.digest}.npy", lambda: _fixed_encoder(encoder)(posts.texts))
        return (vectors,) * len(public)

    def encode(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        encoder, _ = train_autoencoder([posts.texts[row] for row in rows], epochs=10, seed=seed)
        return encoder.encode(posts.texts)

    name = f"{GRU}-{posts.digest}-{seed}"
    return tuple(
        _load_or_compute(work / f"{name}-{place + 1}-of-{len(public)}.npy", lambda rows=rows: encode(rows))
        for place, rows in enumerate(public)
    )


def _fixed_encoder(encoder: str) -> Callable[[Sequence[str]], npt.NDArray[np.float32]]:
    if encoder == GLOVE:
        return MeanOfWords(load_vectors("glove-6b-50d", limit=50_000), weighting=1e-3).encode
    return SentenceEncoder(device=torch_device(), threads=1).encode


def _load_or_compute(path: Path, compute: Callable[[], npt.NDArray[np.float32]]) -> Vectors:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        vectors = compute()
        with hashed_file(path, owner_only=True) as stream:  # they are the bloggers' own data
            np.save(stream, vectors)
    return np.load(path).astype(np.float64)


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
    rows: Codes  # (m,) the tested posts
    task: Codes  # (m,) codes predicted by the task model
    attributes: Mapping[str, Mapping[str, Codes]]  # (m,) codes by attribute and attacker
    authors: tuple[Estimate, float]  # how often authors were named in the first fold, and the score of a blind guess


@dataclass(frozen=True, eq=False)
class Fold:
    """The posts of one fold and the vectors that the server received.

    ``public, senders, tested``: (p,), (s,) and (t,) posts. ``known, unknown``: (s, d) and (t, d) received vectors
    of senders and of tested posts.
    """

    public: Codes
    senders: Codes
    tested: Codes
    sender: Sender  # the fitted method
    seed: int  # of the sender; its noise has the next one
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

    Without attributes there are no adversaries, and the reference is the method itself.
    """
    compared = REFERENCE if setting.posts.attributes else settings
    answers, reference = (predict_all(*_arguments(entry), seed, setting) for entry in (settings, compared))
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


HERE = Path(__file__).resolve().parent
SEED = 1
_OF_TABLE_1_ONLY = (methods.LEARNT_PRINTED, methods.LEARNT_L2, *methods.PRINTED_LAMBDA.values())


@dataclass(frozen=True)
class Plan:
    tasks: tuple[str, ...] = TASKS
    names: tuple[str, ...] = tuple(name for name in methods.NAMES if name not in _OF_TABLE_1_ONLY)
    epsilons: tuple[float, ...] = (16.0, 8.0, 32.0, 4.0)  # of ours
    alphas: tuple[float, ...] = (0.0, 0.3, 3.0, 10.0)  # of ADV-ALL and ours, in addition to 1
    max_posts: int = 6  # of one blogger
    min_bloggers: int = 100  # of a label
    min_bloggers_of_topic: int = 50
    smallest_group: int = 30  # bloggers
    passes: int = 10  # of the topic model
    folds: int = 3
    resamples: int = 1000
    attackers: tuple[Attacker, ...] = ATTACKERS


QUICK = Plan(
    tasks=TASKS[:1],
    names=(methods.ORIGINAL, methods.ADV_ALL, methods.PRINTED, methods.OURS),
    epsilons=(methods.MAIN,),
    alphas=(),
    min_bloggers_of_topic=30,
    smallest_group=5,
    max_posts=3,
    passes=2,
    resamples=100,
    attackers=("linear",),
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(
        "Representations of blogs that keep a task and hide attributes.",
        HERE,
        arguments,
        takes_file=True,
        folds={"type": int, "default": Plan.folds},
        encoders={"nargs": "*", "choices": ENCODERS, "help": "kinds of stored vectors"},
    )
    if options.own:
        run_own(options)
        return
    if not options.report:
        plan = QUICK if options.quick else replace(Plan(), folds=options.folds)
        people = list(bloggers(options.data))
        for task in plan.tasks:
            smallest = plan.min_bloggers_of_topic if task == TOPIC else plan.min_bloggers
            posts = posts_for(task, people, max_posts=plan.max_posts, min_bloggers=smallest, passes=plan.passes)
            for encoder in options.encoders or (ENCODERS if not options.quick else (GLOVE,)):
                run_cells(
                    measure,
                    settings_of(plan),
                    posts,
                    seed=SEED,
                    encoder=encoder,
                    options=options,
                    folds=plan.folds,
                    resamples=plan.resamples,
                    attackers=plan.attackers,
                    smallest_group=plan.smallest_group,
                )
    write_report(options.out, readme=options.readme)


def run_own(options: argparse.Namespace) -> None:
    """Measure the rows of table 1 on the user's own texts, and print them."""
    if not options.report:
        posts = own_texts(options, rows=1_000 if options.quick else 20_000)
        cell = methods.settings_of_method
        cells = [cell(methods.ORIGINAL), cell(methods.DIFPRIV, methods.CAP)]
        if posts.attributes:
            cells += [REFERENCE, cell(methods.LEARNT_PRINTED, methods.CAP), cell(methods.OURS, methods.MAIN)]
        measurement: dict[str, Any] = {"folds": options.folds, "resamples": 100 if options.quick else 1000}
        measurement |= {"attackers": QUICK.attackers, "smallest_group": FEWEST_AUTHORS}
        run_cells(measure, cells, posts, seed=SEED, encoder=GLOVE, options=options, **measurement)
    rows = Rows(options.out / f"{options.own}, {GLOVE}.jsonl")
    adversarial = "Left out: ADV-ALL, DPTEXT and the attacks, which need private columns (--attribute)."
    print_own(
        options,
        [
            dptext_table(
                rows, options.own, {name: name for name in options.attribute}, "" if options.attribute else adversarial
            )
        ],
    )


def settings_of(plan: Plan) -> list[dict[str, Any]]:
    return list({repr(cell): cell for cell in _settings(plan)}.values())


def _settings(plan: Plan) -> Iterator[dict[str, Any]]:
    cell = methods.settings_of_method
    yield dict(REFERENCE)
    for name in plan.names:
        noise = methods.NAMES[name].noise
        if name in (methods.OURS, methods.DECISION):
            yield from (cell(name, epsilon) for epsilon in plan.epsilons)
        elif name == methods.PRINTED:
            yield cell(name, methods.CAP)
        elif name == methods.DIFPRIV:
            yield from (cell(name, epsilon) for epsilon in (methods.CAP, methods.MAIN))
        else:
            yield cell(name, None if noise is None else methods.MAIN)
    for alpha in plan.alphas:
        yield cell(methods.ADV_ALL, None, alpha)
        if methods.OURS in plan.names:
            yield cell(methods.OURS, methods.MAIN, alpha)


if __name__ == "__main__":
    run_command(main)
