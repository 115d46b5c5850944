"""Accuracy and re-identification at epsilon 1 with a curator, two servers, a shuffler, or no trusted party (README.md).

Command: ``python -m papers.collector.experiment [--quick] [--data FOLDER] [--parts news snips blogs]``
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from papers.data_sets import snips
from papers.reports import Rows, group_by_settings, mean_of, number_of, parse_options, run_command, table, write_between
from papers.sentences.experiment import tfidf_accuracy
from papers.sweeps import Row, sweep
from papers.synthesis import corpus
from papers.synthesis.corpus import Split, shuffled

from dptext import BankRewriter, NoisyClassifier, PrivateEncoder, PrivUnit, Synthesizer, TextBank, TextDistribution
from dptext.attacks.linkage import linkage_of_scores
from dptext.noise.subset_selection import SubsetSelection
from dptext.privacy.guarantee import rate_at_most
from dptext.privacy.randomness import RandomBits
from dptext.privacy.shuffling import local_epsilon
from dptext.synthesis.servers import ShareSum
from dptext.synthesis.synthesizer import SynthesisPlan

HERE = Path(__file__).resolve().parent
START, END = "<!-- collector: written by papers.collector.experiment -->", "<!-- end of the collector -->"
EPSILON, DELTA = 1.0, 1e-6
CROWDS = (10_000, 100_000, 1_000_000)
SEEDS = 5
PRIVATE = 10_000
CANDIDATES = 300
FITTED_ON = 5000  # public texts, of the encoder of the devices
STATIC = "minilm-words-128d"  # the features "static"
TITLES = {"news": "AG News", "snips": "SNIPS", "blogs": "Blogs, age group of a person"}
SIZES = {"news": 4000, "snips": 1500, "blogs": 3000}  # of a synthetic corpus
NAMES = {
    "news": corpus.NAMES["news"],
    "snips": ("add a song to a playlist", "book a restaurant", "weather", "play music", "rate a book",
              "search for a song, film or book", "find a film at a cinema"),
    "blogs": ("school, homework, teenager", "college, student, exams", "job, children, husband, wife"),
}  # fmt: skip
"""Public names of the labels, in the order of the labels; chosen before any result."""
RESAMPLED = "encode, crowd of resampled texts"
USUAL: dict[str, Any] = {"crowd": 0, "label": ""}
Labels = npt.NDArray[np.intp]


def main(arguments: Sequence[str] | None = None) -> None:
    description = "Utility and re-identification without a trusted collector."
    options = parse_options(description, HERE, arguments, parts=list(TITLES))
    for part in () if options.report else options.parts:
        bench = Bench(options.data, 400 if options.quick else None)
        settings = [{"data": part, **setting} for setting in settings_of(quick=options.quick)]
        constants = {"epsilon": EPSILON, "delta": DELTA, "private": PRIVATE, "candidates": CANDIDATES}
        seeds = range(1, 2 if options.quick else SEEDS + 1)
        sweep(bench.cell, settings, seeds, path=options.out / f"{part}.jsonl", name="collector", constants=constants)
    write_report(options.out, readme=options.readme)


def settings_of(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the arms; a crowd of 0 is a local release, and the label is in the message or in the clear."""
    for arm in ("private texts", "public texts", "majority", "curator", "two servers"):
        yield USUAL | {"arm": arm}
    for label in ("noisy",) if quick else ("noisy", "clear"):
        for crowd in CROWDS[:1] if quick else (*CROWDS, 0) if label == "noisy" else (CROWDS[1], 0):
            yield from ({"arm": arm, "crowd": crowd, "label": label} for arm in ("bank", "encode"))
    yield from ({"arm": RESAMPLED, "crowd": crowd, "label": "noisy"} for crowd in CROWDS[: 1 if quick else 3])


@dataclass(frozen=True)
class Task:
    """One split: all documents of the users, one text and label per user, a public pool, and test texts."""

    split: Split
    texts: tuple[str, ...]
    labels: Labels

    @property
    def classes(self) -> int:
        return len(self.split.classes)

    @property
    def smallest(self) -> float:
        """Share of the smallest class."""
        return float(np.bincount(self.labels, minlength=self.classes).min() / len(self.labels))


@dataclass(frozen=True)
class Bench:
    """The folder of the data sets, and the maximum number of texts of a part; None: all."""

    data: Path
    limit: int | None = None

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        task, arm = task_of(self, settings["data"], seed), settings["arm"]
        test, true = task.split.test, task.split.test_labels
        counts = {"users": float(len(task.texts)), "tested": float(len(test))}
        if arm == "majority":
            share = float((true == np.bincount(task.labels).argmax()).mean())
            return counts | {"texts": share, "vectors": share}
        if arm in ("curator", "two servers"):
            distribution = self._distribution(settings["data"], task, seed, by_servers=arm == "two servers")
            size = min(SIZES[settings["data"]], len(task.split.pool) // 2)
            release = distribution.sample(list(task.split.pool), size, cache=False, seed=seed).outputs
            labels = np.array([task.split.classes.index(label) for label in release["columns"]["label"]])
            itself = distribution.score(test, [task.split.classes[label] for label in true.tolist()])
            return counts | {"texts": tfidf_accuracy(release["texts"], labels, test, true, (1.0,)), "vectors": itself}
        if settings["label"]:
            return counts | self._messages(settings, task, seed)
        texts, labels = (task.texts, task.labels) if arm == "private texts" else self._named(settings["data"], seed)
        features = bank_of(self, settings["data"], seed).features
        right = _accuracy(features.vectors(texts), labels, features.vectors(test), true)
        return counts | {"texts": tfidf_accuracy(texts, labels, test, true, (1.0,)), "vectors": right}

    def _distribution(self, data: str, task: Task, seed: int, *, by_servers: bool) -> TextDistribution:
        plan, documents = plan_of(self, data, seed), task.split.documents()
        if not by_servers:
            return _synthesizer(task).released(plan, plan.total_of(documents), RandomBits(seed))
        servers = [ShareSum(plan) for _ in range(2)]
        shares = [contribution.shares() for contribution in plan.contributions(documents)]
        for server, messages in zip(servers, zip(*shares, strict=True), strict=True):
            server.add(b"".join(messages))
        first, second = (server.publish(seed=2 * seed + place) for place, server in enumerate(servers))
        result: TextDistribution = plan.combine(first, second)
        return result

    def _named(self, data: str, seed: int) -> tuple[tuple[str, ...], Labels]:
        """Return the public texts that are most similar to the names of the labels."""
        bank, size = bank_of(self, data, seed), SIZES[data] // len(NAMES[data])
        cosines = bank.vectors @ bank.features.vectors(NAMES[data]).T
        nearest = cosines.argmax(axis=1)
        rows = np.concatenate(
            [
                np.flatnonzero(nearest == label)[np.argsort(-cosines[nearest == label, label])[:size]]
                for label in range(cosines.shape[1])
            ]
        )
        return corpus.select(bank.texts, rows), nearest[rows]

    def _messages(self, settings: Mapping[str, Any], task: Task, seed: int) -> dict[str, float]:
        """Measure local messages of one text and its label per user."""
        crowd, bits = settings["crowd"], RandomBits(seed)
        labels, test, true = task.labels, task.split.test, task.split.test_labels
        if settings["label"] == "clear":  # only users with the same label hide each other
            whole = local_epsilon(EPSILON, int(crowd * task.smallest), DELTA) if crowd else EPSILON
            epsilon, matches = whole, (0.0, -math.inf)
        else:  # half of the budget is for the label
            whole = local_epsilon(EPSILON, crowd, DELTA) if crowd else EPSILON
            epsilon, response = whole / 2, SubsetSelection(task.classes, 1, whole / 2)
            labels = response.draw(bits, labels[:, None]).astype(np.intp)
            matches = (math.log(response.probabilities[0]), math.log(response.probabilities[1]))
        known = slice(0, min(CANDIDATES, len(task.texts)))  # candidates of the attacker
        same_label = labels[known, None] == task.labels[None, known]
        scores = np.where(same_label, *matches)
        bank = bank_of(self, settings["data"], seed)
        if settings["arm"] == "bank":
            rewriter = BankRewriter(bank, epsilon=epsilon, unit="document")
            output = rewriter.sample(task.texts, seed=seed)
            rows = {text: row for row, text in enumerate(bank.texts)}
            columns = [rows[text] for text in output[known]]
            scores = scores + np.log(rewriter.distributions(task.texts[known])[:, columns]).T
            right = _accuracy(bank.features.vectors(output), labels, bank.features.vectors(test), true)
            numbers = {"texts": tfidf_accuracy(output, labels, test, true, (1.0,)), "vectors": right}
        else:
            public = bank.texts[:: len(bank) // FITTED_ON + 1]
            device = PrivateEncoder(STATIC, PrivUnit(epsilon=epsilon), public_name=bank.name).fit(public).release_
            clean, channel = device.clean(task.texts), device.channel
            if settings["arm"] == RESAMPLED:
                chosen = bits.below(np.full(crowd, len(clean), dtype=np.uint64)).astype(np.intp)
                labels = response.draw(bits, task.labels[chosen, None])
                vectors = channel.sample(clean[chosen], bits)
                right = _accuracy(vectors, labels, device.clean(test), true, channel=channel)
                return {"vectors": right, "local epsilon": whole}
            vectors, cap = channel.sample(clean, bits), cast(dict[str, float], channel.parameters())
            numbers = {"vectors": _accuracy(vectors, labels, device.clean(test), true, channel=channel)}
            inside = (vectors[known] * channel.shrinkage) @ clean[known].T >= cap["cap_height"]  # type: ignore[attr-defined]
            odds = cap["cap_chance"] / cap["cap_mass"], (1 - cap["cap_chance"]) / (1 - cap["cap_mass"])
            scores = scores + np.where(inside, *np.log(odds))
        linked, *_ = linkage_of_scores(scores, seed=seed)
        # a label in the clear leaves the candidates with this label
        candidates = same_label.sum(axis=1) if settings["label"] == "clear" else [len(scores)]
        bound = float(np.mean([rate_at_most(whole, int(count)) for count in candidates]))
        return numbers | {"local epsilon": whole, "relinked": linked.score.value, "relinked at most": bound}


def _accuracy(vectors: Any, labels: Labels, tested: Any, true: Labels, *, channel: Any = None) -> float:
    """Return the accuracy of a linear model of noisy vectors on clean ones."""
    model = NoisyClassifier(channel=channel).fit(vectors, labels).device_model()
    return float((np.asarray(model.predict(tested)) == true).mean())


def _synthesizer(task: Task) -> Synthesizer:
    is_user = len(task.texts) < len(task.split.texts)
    unit = "user" if is_user else "document"
    options: dict[str, Any] = {"labels": list(task.split.classes), "features": "static", "cache": False}
    return Synthesizer(epsilon=EPSILON, delta=DELTA, unit=unit, **options)


@cache
def task_of(bench: Bench, data: str, seed: int) -> Task:
    """Return AG News or SNIPS with 10,000 users of one text, or half of the bloggers with up to 20 posts."""
    if data == "blogs":
        split, joined = (corpus.blogs(bench.data, seed, "age", joined=joined) for joined in (False, True))
        texts, labels = joined.texts[: bench.limit], joined.labels[: bench.limit]
        rows = np.flatnonzero(np.isin(split.people, joined.people[: bench.limit]))
        private = (corpus.select(split.texts, rows), split.labels[rows], split.people[rows])
        return Task(Split(*private, split.pool[: bench.limit], None, joined.test, joined.test_labels, split.classes),
                    texts, labels)  # fmt: skip
    if data == "news":
        split = corpus.news(bench.data, seed)
        texts, labels, pool, classes = split.texts, split.labels, split.pool, split.classes
        test, test_labels = split.test, split.test_labels
    else:
        parts = snips(bench.data)
        mixed = parts.train.take(shuffled(len(parts.train.texts), seed))
        texts, labels, pool = mixed.texts, mixed.labels, mixed.texts[PRIVATE:]
        test, test_labels, classes = parts.test.texts, parts.test.labels, tuple(map(str, range(labels.max() + 1)))
    count = bench.limit or PRIVATE
    texts, labels, pool = texts[:count], labels[:count], tuple(dict.fromkeys(pool[: bench.limit]))
    return Task(Split(texts, labels, np.arange(count), pool, None, test, test_labels, classes), texts, labels)


def bank_of(bench: Bench, data: str, seed: int) -> TextBank:
    return _bank(bench, data, 0 if data == "news" else seed)  # the pool of the news is the same for every seed


def plan_of(bench: Bench, data: str, seed: int) -> SynthesisPlan:
    return _plan(bench, data, 0 if data == "news" else seed)


@cache
def _bank(bench: Bench, data: str, seed: int) -> TextBank:
    return TextBank(task_of(bench, data, seed).split.pool, encoder="static", name="public texts", cache=False)


@cache
def _plan(bench: Bench, data: str, seed: int) -> SynthesisPlan:
    task = task_of(bench, data, seed)
    return _synthesizer(task).plan(list(task.split.pool))


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write a table for each data set into the README."""
    head = ["who is trusted", "method", "label", "crowd", "local epsilon", "classifier of texts", "of vectors",
            f"re-identified among {CANDIDATES}"]  # fmt: skip
    order, sections = list(settings_of(quick=False)), []
    for part, title in TITLES.items():
        rows = Rows(out / f"{part}.jsonl").rows
        groups = {
            order.index({name: settings[name] for name in order[0]}): runs for settings, runs in group_by_settings(rows)
        }
        counts = [f"{rows[0].numbers[name]:,.0f} {name}" for name in ("users", "tested")] if rows else ["not run"]
        lines = [_cells(order[place], runs) for place, runs in sorted(groups.items())]
        sections += [f"**{title}** ({', '.join(counts)}, {SEEDS} runs).", table(head, lines, text_columns=4)]
    write_between(readme, START, END, "\n\n".join(sections))


def _cells(settings: Mapping[str, Any], runs: Sequence[Row]) -> list[str]:
    """Return a line of a table."""
    arm, crowd = settings["arm"], settings["crowd"]
    texts, vectors, linked = (
        number_of(runs, name) if name in runs[0].numbers else "" for name in ("texts", "vectors", "relinked")
    )
    if linked:
        linked += f" (at most {mean_of(runs, 'relinked at most'):.3f})"
    if arm in ("curator", "two servers"):
        return [arm, "synthesizer", "protected", "", "", texts, vectors, "no row to link"]
    if not settings["label"]:
        trusted = "everybody" if arm == "private texts" else "no private text is used"
        return [trusted, arm, "", "", "", texts, vectors, ""]
    label = "protected" if settings["label"] == "noisy" else "in the clear"
    epsilon = f"{mean_of(runs, 'local epsilon'):.3f}"
    return [
        "a shuffler" if crowd else "no party",
        arm,
        label,
        f"{crowd:,}" if crowd else "",
        epsilon,
        texts,
        vectors,
        linked,
    ]


if __name__ == "__main__":
    run_command(main)
