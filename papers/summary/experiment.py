"""Shares, phrases and trends of `dptext.describe` beside the numbers without noise.

Command: ``python -m papers.summary.experiment [--data FOLDER]``. Each cell is one release of AG News (each text has its
own author) or of the blogs. Time bins are drawn at random for every text, so that no topic has a trend: every
significant one is a false alarm. The users of two further releases are random halves, so no share has changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import bloggers, documents_of
from papers.data_sets import ag_news
from papers.reports import (
    Rows,
    group_by_settings,
    interval,
    mean_of,
    parse_options,
    run_command,
    table,
    write_between,
)
from papers.sweeps import sweep

from dptext.intervals import share
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.randomness import RandomBits
from dptext.summary.describe import COMMON, SummaryPlan, UserSums
from dptext.summary.phrases import UserPhrases
from dptext.summary.text_summary import TextSummary
from dptext.summary.topics import Topics
from dptext.synthesis.synthesizer import MOST_DOCUMENTS
from dptext.users.grouping import UserTexts

HERE = Path(__file__).resolve().parent
START, END = "<!-- summary: written by papers.summary.experiment -->", "<!-- end of the summary -->"
DATA = ("AG News", "blogs")
EPSILONS = (0.5, 1.0, 4.0)
DELTA = 1e-6
SEEDS = 200
PHRASE_SEEDS = 50
PHRASES = 50
BINS = "2004-01..2004-06"
TIMES = 6
People = list[list[str]]


def main(arguments: Sequence[str] | None = None) -> None:
    only = {"choices": DATA, "help": "a single data set"}
    options = parse_options("Counts of what people write about.", HERE, arguments, only=only)
    for name in () if options.report else [options.only] if options.only else DATA:
        cell = partial(measure, data=options.data, people=60 if options.quick else None)
        settings = [{"data": name, "epsilon": epsilon} for epsilon in EPSILONS]
        seeds = range(1, 3 if options.quick else SEEDS + 1)
        path = options.out / f"{name.lower().replace(' ', '-')}.jsonl"
        sweep(cell, settings, seeds, path=path, name="summaries", constants={"phrases": PHRASES, "bins": BINS})
    write_report(options.out, readme=options.readme)


class StoredFeatures:
    """Features whose vectors of all texts were computed before."""

    def __init__(self, features: Any, texts: Sequence[str]) -> None:
        self._features = features
        distinct = list(dict.fromkeys(["", *texts]))
        self._rows = {text: row for row, text in enumerate(distinct)}
        self._units = features.units(distinct)

    def units(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        units: npt.NDArray[np.int32] = self._units[[self._rows[text] for text in texts]]
        return units

    def remembering(self) -> StoredFeatures:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._features, name)


@cache
def _people(name: str, data: Path, count: int | None) -> People:
    """Return the texts of each person."""
    if name == "AG News":
        return [[text] for text in ag_news(data)[1].texts[:count]]
    texts: dict[str, list[str]] = {}
    for document in documents_of(bloggers(data)):
        texts.setdefault(str(document.user), []).append(document.text or "")
    return [posts[:MOST_DOCUMENTS] for posts in texts.values()][:count]


@cache
def _topics(name: str, data: Path, count: int | None) -> Topics:
    topics = Topics.of()
    stored: Any = StoredFeatures(topics.features, [text for posts in _people(name, data, count) for text in posts])
    topics._directions  # noqa: B018  computed by the real features
    result = Topics(topics.labels, stored)
    result.__dict__["_directions"] = topics._directions
    return result


@cache
def _phrases(name: str, data: Path, count: int | None) -> UserPhrases:
    phrases = UserPhrases(COMMON)
    for posts in _people(name, data, count):
        phrases.add(posts)
    return phrases


def measure(settings: Mapping[str, Any], seed: int, *, data: Path, people: int | None) -> dict[str, float]:
    name = settings["data"]
    users, topics = _people(name, data, people), _topics(name, data, people)
    options: dict[str, Any] = {"epsilon": settings["epsilon"], "delta": DELTA, "topics": topics}
    plan = SummaryPlan(phrases=PHRASES, time="time", bins=BINS, **options)
    draw = np.random.default_rng(seed)  # noqa: TID251  of the experiment, not of a release
    with_phrases = seed <= PHRASE_SEEDS  # they take most of the time; other releases have room for them, too
    sums, phrases = UserSums(plan), _phrases(name, data, people) if with_phrases else UserPhrases()
    sums.add(UserTexts([(own, draw.integers(TIMES, size=len(own)).astype(np.int32))]) for own in users)
    summary = plan.released(sums, phrases, RandomBits(seed))
    result = _accuracy(plan, sums, summary)
    counted = [tuple(phrase.split(" ")) for phrase in summary.phrases]
    if with_phrases:
        result |= {"phrases": len(summary.phrases) + len(summary.other_phrases), "phrases counted": len(counted)}
    if counted:
        true, _ = phrases.count(counted)
        estimates = list(summary.counts().values())
        inside = [entry.low <= number <= entry.high for entry, number in zip(estimates, true.tolist(), strict=True)]
        result["phrases covered"] = float(all(inside))
        errors = [abs(entry.value - number) for entry, number in zip(estimates, true.tolist(), strict=True)]
        result["error of a count"] = float(np.mean(errors))
        result["users of a phrase"] = float(true.mean())
    result["false trends"] = float(any(trend.significant for trend in summary.trends().values()))
    halves, alone = draw.permutation(len(users)), SummaryPlan(phrases=0, **options)
    releases = []
    for half, bits in zip(np.array_split(halves, 2), RandomBits(seed).spawn(2), strict=True):
        part = UserSums(alone)
        part.add(UserTexts([(users[row], np.zeros(len(users[row]), dtype=np.int32))]) for row in half.tolist())
        releases.append(alone.released(part, phrases, bits))
    changes = releases[1].changes_since(releases[0])
    return result | {"false changes": float(any(change.significant for change in changes.values()))}


def _accuracy(plan: SummaryPlan, sums: UserSums, summary: TextSummary) -> dict[str, float]:
    """Return the coverage and the error of the shares, and the mean error that the noise alone would have."""
    true = sums.cells["topics"][0] / sums.cells["topics"].sum()
    shares = list(summary.shares().values())
    by_time = sums.cells["cells"][:, :TIMES] / sums.cells["cells"][:, :TIMES].sum(axis=0)
    in_bins = [
        entry.low <= number <= entry.high
        for shares_of_bin, exact in zip(summary.shares_by_time.values(), by_time.T.tolist(), strict=True)
        for entry, number in zip(shares_of_bin.values(), exact, strict=True)
    ]
    low, value, high = (np.array([getattr(entry, end) for entry in shares]) for end in ("low", "value", "high"))
    floor = math.sqrt(2 / math.pi) * plan.sigma / (plan.units["topics"] * CELL) / sums.people
    people = summary.people
    return {
        "covered": float(np.all((low <= true) & (true <= high))),
        "bins covered": float(all(in_bins)),
        "people covered": float(people.low <= sums.people <= people.high),
        "error": float(np.abs(value - true).mean()),
        "noise": floor,
        "half an interval": float(((high - low) / 2).mean()),
        "topics seen": float((low > 0).sum()),
        "topics seen that are there": float((true[low > 0] > 0).sum()),
        "largest share": float(true.max()),
    }


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the tables of all rows into the README."""
    rows = [row for path in sorted(out.glob("*.jsonl")) for row in Rows(path).rows if "epsilon" in row.settings]
    head = ["data", "epsilon", "shares", "shares in all bins", "people", "counts of phrases", "false trends"]
    coverage = table([*head, "false changes"], list(_coverage(rows)), text_columns=2)
    errors = table(
        ["data", "epsilon", "error of a share", "noise alone", "half an interval", "topics seen", "phrases found",
         "error of a count", "mean count"],
        list(_errors(rows)),
        text_columns=2,
    )  # fmt: skip
    texts = [
        "**Coverage of all intervals of a section, and false alarms** (share of releases; exact 95% intervals).",
        coverage,
        "**Errors** (mean absolute, over the 62 topics; counts in people).",
        errors,
    ]
    write_between(readme, START, END, "\n\n".join(texts))


def _coverage(rows: Sequence[Any]) -> Iterator[list[str]]:
    names = ("covered", "bins covered", "people covered", "phrases covered", "false trends", "false changes")
    for settings, runs in group_by_settings(rows):
        cells = [f"{settings['data']} ({len(runs)} runs)", f"{settings['epsilon']:g}"]
        for name in names:
            values = [row.numbers[name] for row in runs if name in row.numbers]
            cells.append(interval(share(int(sum(values)), len(values))) if values else "")
        yield cells


def _errors(rows: Sequence[Any]) -> Iterator[list[str]]:
    for settings, runs in group_by_settings(rows):
        cells = [str(settings["data"]), f"{settings['epsilon']:g}"]
        cells += [f"{mean_of(runs, name):.4f}" for name in ("error", "noise", "half an interval")]
        with_phrases = [row for row in runs if "phrases" in row.numbers]
        cells += [f"{mean_of(runs, 'topics seen'):.1f}", f"{mean_of(with_phrases, 'phrases'):.1f}"]
        counted = [row for row in runs if "error of a count" in row.numbers]
        for name in ("error of a count", "users of a phrase"):
            cells.append(f"{mean_of(counted, name):.0f}" if counted else "")
        yield cells


if __name__ == "__main__":
    run_command(main)
