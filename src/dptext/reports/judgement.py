"""`judge`: compare the output of any tool with its private texts and with held-out ones, and put the result on a page.

Derivation: docs/understand/attacks.md#attacks-copies
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dptext.attacks import AttackScore, author_reidentification, linkage
from dptext.attacks.base import as_codes, optional, share_of_rows
from dptext.attacks.copies import (
    Comparison,
    compare_copies,
    compare_scores,
    likelihood_ratios,
    nearest_similarity,
    shared_sequences,
    smallest_finding,
)
from dptext.attacks.membership import Mask
from dptext.audits.canaries import CanaryBound, canary_bound
from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, ParameterError, extras
from dptext.features.features import PublicFeatures, fit_features, quick_features
from dptext.features.latent_words import PublicWords
from dptext.intervals import Floats, Ids, mean_of_people, significant
from dptext.io.documents import Document, read_documents
from dptext.io.tables import is_table, table_documents
from dptext.methods.files import chosen_rows
from dptext.privacy.randomness import RandomBits
from dptext.privacy.wording import filled, paragraphs
from dptext.text.patterns import find

ERROR = 0.01
"""Probability of any false finding in a judgement."""
DELTA = 1e-6
"""Delta of the lower bound on epsilon from canaries."""
INSERTED = "inserted"
"""Column of the coins of a canary file: whether the canary was inserted into the private texts."""
_NEAR_SEQUENCES, _NEAR_COSINE = 0.5, 0.9
_PARTS = 1, 2, 4, 8  # of the canaries: numbers of guesses
_MAX_LINKED = 3000  # rows
Nearest: TypeAlias = Callable[[Sequence[str], Sequence[str]], Floats]
"""Cosine of each text with the nearest output text."""
_COINS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, kw_only=True, repr=False)
class Judgement(ReprMixin):
    """Comparison of an output with the private texts behind it and with held-out texts.

    Attributes:
        title: title of the page.
        unit: "user" if authors were named, else "text".
        sizes: numbers of private, held-out and output texts, and of private and held-out units.
        scores: success of each attack; the baseline of copies is the share among held-out texts.
        found: names of the attacks that showed disclosure; the probability of any false one is at most `ERROR`.
        smallest: the smallest number of copied units that these files could show.
        canaries: a lower bound on epsilon from inserted canaries; None: there were none.
        row_scores: attacks on the rows of an output with one row per private text.
    """

    title: str
    unit: str
    sizes: Mapping[str, int]
    scores: Sequence[AttackScore]
    found: Sequence[str]
    smallest: int
    canaries: CanaryBound | None = None
    row_scores: Sequence[AttackScore] = ()

    def sentences(self) -> list[str]:
        """Return the result in words, the verdict first."""
        return paragraphs("reports/templates/judgement.txt", judgement=self, **self._values)

    def html(self) -> str:
        """Return the page in HTML. It is computed from private texts without noise: it is for their owner."""
        return filled("reports/templates/judgement.html", judgement=self, sentences=self.sentences(), **self._values)

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers, for JSON."""
        return asdict(self)

    @property
    def _values(self) -> dict[str, Any]:
        kinds = {name.partition(" (")[0] for name in self.found}
        copies = [score for score in self.scores if score.attack.startswith("copies")]
        return {"kinds": kinds, "copies": copies, "error": ERROR, "delta": DELTA}

    def _repr_fields(self) -> Fields:
        yield "found", list(self.found)
        yield from self.sizes.items()


def judge(
    private: Any,
    held_out: Any,
    output: Any,
    *,
    text: str = "text",
    user: str | None = None,
    canaries: Any = None,
    by_row: bool = False,
    seed: int | None = None,
    title: str = "",
) -> Judgement:
    """Look for private texts in the output of any tool, beyond what held-out texts show by chance.

    Private and held-out texts must be a random split of one collection, of which the tool saw the private texts only.
    Then similarity to held-out texts is due to chance, and only an excess for private texts is due to disclosure.
    A text counts as copied if one output text contains all or half of its sequences of five words, or has a cosine of
    at least .9 with it. Membership attacks use the nearest output text, and the likelihood under an n-gram model of the
    output (Meeus et al. 2025, arXiv:2502.14921, here with a leave-one-out reference model). All tests together have a
    family-wise error of 1% (Holm).

    **Guarantee**: none. Another attack may find more. Only canaries bound epsilon, and only from below.

    Args:
        private: texts that the tool saw: a file, a table, or texts.
        held_out: texts of the same kind that it did not see. With ``by_row`` it may be None.
        output: the texts that it made.
        text: column of the texts.
        user: column of the authors in the private and held-out texts: then people, not texts, are counted.
        canaries: file or table of invented texts with a column ``inserted`` (1 or 0): an independent fair coin decided
            whether the tool saw the text. They give a lower bound on epsilon (95%).
        by_row: the output has one row for each private row, in order: also measure which words and identifiers stay,
            and re-identification among the private texts.
        seed: seed of ties and of the choice of rows.
        title: title of the page.

    Raises:
        DataError: a row without text or author, too few texts, a user in both files, rows that do not correspond.
        ParameterError: a missing column, no held-out texts.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> things = ["tea", "bread", "milk", "salt", "wine", "oil"]
    >>> notes = [f"{name} bought {thing}" for name in ("Ann", "Bo", "Max") for thing in things]
    >>> judge(notes[::2], notes[1::2], notes[::2]).found[0]
    'copies (verbatim)'
    """
    extras([("scipy.stats", "report"), ("sklearn", "report")], "a judgement")
    if held_out is None and not by_row:
        raise ParameterError("held_out is required: texts of the same kind that the tool did not see")
    read = {"private": _read("private", private, text, user), "output": _read("output", output, text)}
    if held_out is not None:
        read["held_out"] = _read("held_out", held_out, text, user)
    texts = {name: [document.text or "" for document in rows] for name, rows in read.items()}
    sizes = {name: len(rows) for name, rows in texts.items()}
    rows = [*read["private"], *read.get("held_out", ())]
    people, units = as_codes("user", range(len(rows)) if user is None else [row.user for row in rows], len(rows))
    members = np.arange(units) <= people[: sizes["private"]].max()
    if held_out is not None and members[people[sizes["private"] :]].any():
        raise DataError("some users have texts in both private and held_out: held-out texts must be of other people")
    if len(set(texts["private"]).intersection(texts.get("held_out", ()))) > sizes["private"] / 2:
        raise DataError("most private texts are in held_out as well: held-out texts must be others of the same kind")
    together = [entry for rows in texts.values() for entry in rows]
    nearest = partial(_nearest, fit_features(quick_features(PublicWords(together)), together, cache=False))
    comparisons = [] if held_out is None else list(_compare(texts, people, nearest, members))
    tests = [(entry.scores[0].attack, value) for entry in comparisons for value in entry.p_values]
    flags = significant([value for _, value in tests], ERROR)
    found = list(
        dict.fromkeys(attack for (attack, _), is_significant in zip(tests, flags, strict=True) if is_significant)
    )
    sizes |= {"private_units": int(members.sum()), "held_out_units": int((~members).sum())}
    row_scores = []
    if by_row:
        if sizes["private"] != sizes["output"]:
            raise DataError(
                f"output must have one row per private text ({sizes['private']:,}), got {sizes['output']:,}"
            )
        row_scores = list(_attack_rows(texts["private"], texts["output"], people[: sizes["private"]], seed))
        found += dict.fromkeys(score.attack for score in row_scores if score.succeeded)
    bound = None
    if canaries is not None:
        bound = _bound(_read("canaries", canaries, text, column=INSERTED), texts["output"], nearest, seed)
        found += ["canaries"] * (bound.loss > 0)
    return Judgement(
        title=title or f"Judgement of {Path(output).name if isinstance(output, str | os.PathLike) else 'an output'}",
        unit="text" if user is None else "user",
        sizes=sizes,
        scores=[score for entry in comparisons for score in entry.scores],
        found=found,
        smallest=smallest_finding(int(members.sum()), int((~members).sum()), ERROR / len(tests)) if tests else 0,
        canaries=bound,
        row_scores=row_scores,
    )


def _read(name: str, source: Any, text: str, user: str | None = None, *, column: str | None = None) -> list[Document]:
    """Read at least two texts, each with its author if they have a column, from a file, a table, or an iterable."""
    kept = () if column is None else (column,)
    rows: Iterable[Any]
    if isinstance(source, str | os.PathLike):
        rows = read_documents(source, text=text, user=user, keep=kept)
    elif is_table(source):
        rows = table_documents(source, text=text, user=user, attributes={name: name for name in kept})
    else:
        rows = (row if isinstance(row, Document) else Document(row) for row in source)
    documents = list(rows)
    if len(documents) < 2:
        raise DataError(f"{name} must have at least two texts, got {len(documents)}")
    for number, document in enumerate(documents, 1):
        if (user is not None and document.user is None) or (column and column not in (document.attributes or {})):
            raise DataError(f"{name}, row {number}: {column or 'the author'} is missing. Fill it in, or drop the row")
    return documents


def _nearest(features: PublicFeatures, texts: Sequence[str], output: Sequence[str]) -> Floats:
    return nearest_similarity(features.vectors(texts), features.vectors(output))


def _compare(texts: Mapping[str, list[str]], people: Ids, nearest: Nearest, members: Mask) -> Iterator[Comparison]:
    """Compare private and held-out texts with the output, by the highest or the mean score of each person."""
    queries, output, last = [*texts["private"], *texts["held_out"]], texts["output"], np.argsort(people, kind="stable")
    starts = np.flatnonzero(np.diff(people[last], prepend=-1))
    shared, cosine = (
        np.maximum.reduceat(values[last], starts)
        for values in (shared_sequences(queries, output), nearest(queries, output))
    )
    ratios = np.bincount(people, likelihood_ratios(queries, output)) / np.bincount(people)
    yield compare_copies("copies (verbatim)", shared >= 1, members)
    yield compare_copies("copies (half of the word sequences)", shared >= _NEAR_SEQUENCES, members)
    yield compare_copies("copies (nearest neighbour)", cosine >= _NEAR_COSINE, members)
    yield compare_scores("membership (nearest neighbour)", cosine, members)
    yield compare_scores("membership (n-gram likelihood)", ratios, members)


def _attack_rows(before: list[str], after: list[str], people: Ids, seed: int | None) -> Iterator[AttackScore]:
    """Attack an output with one row per private text: words and identifiers that stay, linkage, authors."""
    words = [[set(text.lower().split()) for text in texts] for texts in (before, after)]
    stay, by_chance = (
        np.array([len(old & new) / max(len(old), 1) for old, new in zip(words[0], others, strict=True)])
        for others in (words[1], [*words[1][1:], words[1][0]])
    )
    scored = partial(AttackScore, attack="words that stay", measure="share of words", baseline_name="in another row")
    yield scored(score=mean_of_people(stay, people), baseline=float(by_chance.mean()))
    spans = [
        (row, old[span.start : span.end] in new)
        for row, (old, new) in enumerate(zip(before, after, strict=True))
        for span in find(old)
    ]
    owners = [int(people[row]) for row, _ in spans]
    if len(set(owners)) > 1:
        yield AttackScore(
            attack="identifiers that stay",
            measure="share of identifiers",
            score=share_of_rows(np.array([stays for _, stays in spans]), owners),
            baseline=0.0,
            baseline_name="none",
            detail=f"{len(spans):,} dates, numbers and addresses that patterns recognise; names are not recognised",
        )
    chosen = chosen_rows(len(before), _MAX_LINKED, RandomBits(seed))
    yield from linkage(*([texts[row] for row in chosen] for texts in (before, after)), people=people[chosen], seed=seed)
    order = np.argsort(people, kind="stable")
    place = np.arange(people.size) - np.searchsorted(people[order], people[order])
    several = np.bincount(people)[people[order]] > 1
    known, asked = (order[several & (place % 2 == half)] for half in (0, 1))
    if len(set(people[asked])) > 1:
        rows: Any = [before[row] for row in known], people[known], [after[row] for row in asked], people[asked]
        yield from author_reidentification(*rows, attacker="centroid", seed=seed)


def _bound(canaries: list[Document], output: list[str], nearest: Nearest, seed: int | None) -> CanaryBound:
    """Return the best lower bound on epsilon over several numbers of guesses, with a total error of 5%."""
    coins = [str((document.attributes or {})[INSERTED]).lower().removesuffix(".0") for document in canaries]
    for row, coin in enumerate(coins, 1):
        if coin not in _COINS:
            raise DataError(f"canaries, row {row}: {INSERTED!r} must be 1 or 0")
    if len(set(coins)) < 2:
        raise DataError(f"canaries: {INSERTED!r} must be 1 for some rows and 0 for others")
    rows = [document.text or "" for document in canaries]
    rank = optional("scipy.stats").rankdata  # ties stay ties: the order of the file may show the coins
    ranks = [rank(scores) for scores in (nearest(rows, output), likelihood_ratios(rows, output))]
    settings: Any = {"delta": DELTA, "error": 0.05 / len(_PARTS), "seed": seed}
    guesses = {max(2, len(rows) // part) for part in _PARTS}
    inserted = [_COINS[coin] for coin in coins]
    bounds = [canary_bound(np.sum(ranks, axis=0), inserted, guesses=count, **settings) for count in guesses]
    return max(bounds, key=lambda bound: bound.loss)
