"""Phrases of many people: four rounds of set union, compared with one round, equal counts and the exact list.

Command: ``python -m papers.summary.phrases [--data FOLDER]``. Users are bloggers, or the texts of AG News. The whole
budget is for the phrases. Exact numbers of users are measured without noise; no phrase is printed or stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import bloggers, documents_of
from papers.data_sets import ag_news
from papers.reports import Rows, group_by_settings, mean_of, number_of, parse_options, run_command, table, write_between
from papers.sweeps import sweep

from dptext.features.latent_words import FUNCTION_WORDS
from dptext.noise.gaussian_sums import grid_step
from dptext.noise.set_union import SetUnion, sum_cells, weights
from dptext.privacy.gaussian import gaussian_sigma
from dptext.privacy.randomness import RandomBits
from dptext.summary.phrases import UserPhrases, _lookup, _number

HERE = Path(__file__).resolve().parent
Integers = npt.NDArray[np.int64]

START, END = "<!-- phrases: written by papers.summary.phrases -->", "<!-- end of the phrases -->"
EPSILON, DELTA, NAMES = 1.0, 1e-6, 0.5e-6
KEYS = 300
"""Candidates of a user in a round."""
USERS = (20, 50, 100)
"""A reference list has all phrases of at least that many users."""


class RandomUnion(SetUnion):
    """Chooses random candidates of a user, in place of the most frequent ones."""

    def contributions(self, users: Integers, counts: Integers, bits: RandomBits) -> Integers:
        return super().contributions(users, np.ones_like(counts), bits)


class EqualCounts(RandomUnion):
    """Adds the same weight to each candidate, however few a user has: the counts of earlier versions, rescaled."""

    def contributions(self, users: Integers, counts: Integers, bits: RandomBits) -> Integers:
        cells = super().contributions(users, counts, bits)
        return np.where(cells > 0, int(weights(self.keys)), 0)


@dataclass(frozen=True)
class Rule:
    """Shares of the budget of four rounds; a single share is one round of words, pairs and triples."""

    shares: tuple[int, ...] = (1,)
    union: type[SetUnion] = SetUnion
    keys: int = KEYS

    def unions(self) -> list[SetUnion]:
        """Return the noise and threshold of each round; a share of 0 releases nothing."""
        used = sum(map(bool, self.shares))
        left = EPSILON + used * math.log1p(-NAMES / used)
        sigma = gaussian_sigma(epsilon=left, delta=DELTA - NAMES, sensitivity=1.0)
        scales = [sigma * math.sqrt(sum(self.shares) / share) if share else sigma for share in self.shares]
        unions = [self.union.build(scale, NAMES / used, self.keys) for scale in scales]
        if self.union is EqualCounts:  # every key has the weight of the largest number of keys
            one, step = self.union.build(sigma, NAMES / self.keys, 1).threshold - 1, grid_step(sigma)
            unions = [replace(unions[0], threshold=math.ceil((one + self.keys**-0.5) / step) * step)]
        return [
            union if share else replace(union, threshold=math.inf)
            for union, share in zip(unions, self.shares, strict=True)
        ]


RULES = {
    "four rounds, 1:2:2:2": Rule((1, 2, 2, 2)),
    "four rounds, 1:3:2:1": Rule((1, 3, 2, 1)),
    "four rounds, 1:1:2:2": Rule((1, 1, 2, 2)),
    "three rounds, 3:2:2 (words once)": Rule((3, 0, 2, 2)),
    "four rounds, 1:2:2:2, random candidates": Rule((1, 2, 2, 2), RandomUnion),
    "four rounds, 1:2:2:2, 1,000 random candidates": Rule((1, 2, 2, 2), RandomUnion, 1000),
    "one round": Rule(),
    "one round, 1,000 random candidates": Rule(union=RandomUnion, keys=1000),
    "one round, equal counts, 100 candidates": Rule(union=EqualCounts, keys=100),
    "one round, equal counts, 1,000 candidates": Rule(union=EqualCounts, keys=1000),
}
DATA = {"blogs": "Blogs, 2,532 people", "ag-news": "AG News, each text its own user"}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options("Phrases of many people.", HERE, arguments)
    for name in DATA:
        cell = partial(measure, data=options.data, people=200 if options.quick else None)
        settings = [{"data": name, "rule": rule} for rule in RULES]
        path = options.out / f"phrases-{name}.jsonl"
        sweep(cell, settings, range(1, 2 if options.quick else 6), path=path, name="phrases of many people")
    write_report(options.out, readme=options.readme)


def measure(settings: Mapping[str, Any], seed: int, *, data: Path, people: int | None) -> dict[str, float]:
    """Return the number of phrases found and the recall by length, weighted by users."""
    users = Users.of(settings["data"], data, people)
    keys = users.found(RULES[settings["rule"]].unions(), RandomBits(seed))
    counts = np.zeros(len(users.keys), dtype=np.int64)
    counts[_lookup(users.keys, keys)] = 1
    result: dict[str, float] = {}
    for length in (1, 2, 3):
        is_found = (counts > 0) & (users.lengths == length)
        result[f"found, {length}"] = int(is_found.sum())
        result[f"fewest users, {length}"] = int(users.counts[is_found].min(initial=users.people))
        for minimum in USERS:
            listed = (users.counts >= minimum) & (users.lengths == length)
            result[f"listed, {minimum}, {length}"] = int(listed.sum())
            total = int(users.counts[listed].sum())
            result[f"recall, {minimum}, {length}"] = int(users.counts[listed & is_found].sum()) / max(1, total)
    return result


@dataclass(eq=False)
class Users:
    """Texts of users, and the exact number of users of every phrase."""

    phrases: UserPhrases
    people: int
    keys: Integers
    counts: Integers
    lengths: Integers

    @staticmethod
    @cache
    def of(name: str, data: Path, people: int | None) -> Users:
        phrases = UserPhrases(FUNCTION_WORDS)
        users = _texts(name, data)
        for texts in list(users)[:people]:
            phrases.add(texts)
        parts: list[tuple[Integers, Integers]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for _, keys, _ in _contributions(phrases):
            parts = [*parts, (keys, np.ones(len(keys), dtype=np.int64))]
            if sum(len(keys) for keys, _ in parts[1:]) > max(1 << 22, len(parts[0][0])):
                parts = [sum_cells(parts)]
        keys, counts = sum_cells(parts)
        base = len(phrases._numbers) + 1
        lengths = 1 + (keys >= base).astype(np.int64) + (keys >= base**2)
        return Users(phrases, len(phrases._ends) - 1, keys, counts, lengths)

    def found(self, unions: Sequence[SetUnion], bits: RandomBits) -> Integers:
        """Return the keys of the phrases that are released."""
        if len(unions) > 1:
            numbers, base = self.phrases._numbers, len(self.phrases._numbers) + 1
            digits = [[numbers[word] + 1 for word in entry.words] for entry in self.phrases.find(unions, bits)]
            keys = [sum(digit * base**place for place, digit in enumerate(reversed(row))) for row in digits]
            return np.array(keys, dtype=np.int64)
        parts = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
        for users, keys, counts in _contributions(self.phrases):
            cells = unions[0].contributions(users, counts, bits)
            parts.append((keys[cells > 0], cells[cells > 0]))
        return unions[0].release(*sum_cells(parts), bits)[0]


def _contributions(phrases: UserPhrases) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Yield the pairs of a user and a phrase of one to three words."""
    base = len(phrases._numbers) + 1

    def keys_of(rows: npt.NDArray[np.int32]) -> Integers:
        digits, is_end = np.where(rows >= 0, rows.astype(np.int64) + 1, -1), rows >= phrases._known
        keys = [_number(digits, length, base) for length in (1, 2, 3)]
        ends = [is_end & np.roll(is_end, length - 1) for length in (1, 2, 3)]
        return np.concatenate([np.where(end, key, -1) for key, end in zip(keys, ends, strict=True)])

    return phrases._contributions(keys_of, base**3)


def _texts(name: str, data: Path) -> Iterator[list[str]]:
    if name == "blogs":
        return ([document.text or "" for document in documents_of([person])] for person in bloggers(data))
    return ([text] for text in chain.from_iterable(part.texts for part in ag_news(data)))


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the tables of all rows into the README."""
    kinds, sections = ("words", "pairs", "triples"), []
    for name, title in DATA.items():
        groups = list(group_by_settings(Rows(out / f"phrases-{name}.jsonl").rows))
        listed = [_listed(groups[0][1], length) for length in (1, 2, 3)]
        lines = [["the exact list of phrases of at least 20 / 50 / 100 users (no guarantee)", *listed, *("1.000",) * 3]]
        for settings, runs in groups:
            numbers = [f"{mean_of(runs, f'found, {length}'):,.1f}" for length in (1, 2, 3)]
            lines.append(
                [settings["rule"], *numbers, *(number_of(runs, f"recall, 50, {length}") for length in (1, 2, 3))]
            )
        head = [title, *kinds, *(f"recall of {kind}" for kind in kinds)]
        sections.append(table(head, lines))
        others = [
            [
                settings["rule"],
                *(f"{mean_of(runs, f'recall, {n}, {length}'):.3f}" for n in (20, 100) for length in (1, 2, 3)),
            ]
            for settings, runs in groups
        ]
        head = [f"{title}: recall", *(f"{kind}, {n} users" for n in (20, 100) for kind in kinds)]
        sections.append(table(head, others))
    write_between(readme, START, END, "\n\n".join(sections))


def _listed(runs: Sequence[Any], length: int) -> str:
    return " / ".join(f"{mean_of(runs, f'listed, {minimum}, {length}'):,.0f}" for minimum in USERS)


if __name__ == "__main__":
    run_command(main)
