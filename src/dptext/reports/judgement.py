"""`judge`: compare the output of any tool with its private texts and with held-out ones, and write a page about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dptext.attacks import AttackScore, author_reidentification, copies, linkage
from dptext.attacks.base import as_codes, as_people, optional, share_of_rows
from dptext.attacks.membership import Mask
from dptext.audits.canaries import CanaryBound, canary_bound
from dptext.display import ReprMixin
from dptext.errors import DataError, ParameterError, extras
from dptext.features.features import fit_features, quick_features
from dptext.features.latent_words import PublicWords
from dptext.intervals import Floats, Ids, significant
from dptext.io.documents import Document, canonical_label, check_one_column, read_documents, text_of
from dptext.io.tables import is_table, table_documents
from dptext.methods.files import chosen_rows
from dptext.privacy.guarantee import canonical_id
from dptext.privacy.randomness import RandomBits
from dptext.privacy.wording import filled, paragraphs
from dptext.text.patterns import find
from dptext.text.tokens import pieces

ERROR = 0.01
"""Probability of any false finding about copies and membership."""
DELTA = 1e-6
"""Delta of the lower bound on epsilon from canaries."""
INSERTED = "inserted"
"""Column of the coins of a canary file: whether the canary was inserted into the private texts."""
_NEAR_SEQUENCES, _NEAR_COSINE = 0.5, 0.9
_PARTS = 1, 2, 4, 8  # of the canaries: numbers of guesses
_MAX_LINKED = 3000  # rows
_WORDS = "words that stay"  # in every anonymised text: for information, not a finding
_HEADS, _TAILS = ("1", "true"), ("0", "false")  # values of coins


@dataclass(frozen=True, kw_only=True, repr=False)
class Judgement(ReprMixin):
    """copies.Comparison of an output with the private texts behind it and with held-out texts.

    Attributes:
        findings: names of the attacks that showed disclosure. Without disclosure, copies or membership are named with
            probability at most `ERROR`, canaries at most 5%, and each of the row scores at most 2.5%.
        title: title of the page.
        unit: "user" if authors were named, else "text".
        sizes: numbers of private, held-out and output texts, and of private and held-out units without canaries.
        scores: success of each attack; the baseline of copies is the share among held-out texts.
        smallest: the number of copied units that these files always show, if no held-out text looks like a copy.
        canaries: a lower bound on epsilon from inserted canaries; None: there were none.
        row_scores: attacks on the rows of an output with one row per private text.
    """

    findings: Sequence[str]
    title: str
    unit: str
    sizes: Mapping[str, int]
    scores: Sequence[AttackScore]
    smallest: int
    canaries: CanaryBound | None = None
    row_scores: Sequence[AttackScore] = ()

    def sentences(self) -> list[str]:
        """Return the result in words, the verdict first."""
        kinds = {name.partition(" (")[0] for name in self.findings}
        return paragraphs("reports/templates/judgement.txt", judgement=self, kinds=kinds, delta=DELTA)

    def html(self) -> str:
        """Return the page in HTML. It is computed from private texts without noise: it is for their owner."""
        values = {"sentences": self.sentences(), "error": ERROR, "delta": DELTA}
        return filled("reports/templates/judgement.html", judgement=self, **values)


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
) -> Judgement:
    """Look for private texts in the output of any tool, beyond what held-out texts show by chance.

    Private and held-out texts must be a random split of one collection, of which the tool saw the private texts only.
    Then similarity to held-out texts is due to chance, and only an excess for private texts is due to disclosure.
    A text counts as copied if one output text contains all or half of its sequences of five words, or has a cosine of
    at least .9 with it. Membership attacks use the nearest output text, and the likelihood under an n-gram model of the
    output (Meeus et al. 2025, arXiv:2502.14921, here with a leave-one-out reference model). The tests of copies and
    membership together have a family-wise error of 1% (Holm).

    **Guarantee**: none. Another attack may find more. Only canaries bound epsilon, and only from below.

    Args:
        private: texts that the tool saw: a file, a table, or texts.
        held_out: texts of the same kind that it did not see. With ``by_row`` it may be None.
        output: the texts that it made.
        text: column of the texts.
        user: column of the authors in the private and held-out texts: then people, not texts, are counted.
        canaries: file or table of different invented texts with a column ``inserted`` (1 or 0): an independent fair
            coin decided whether the tool saw the text. They give a lower bound on epsilon (95%). The comparison leaves
            them out.
        by_row: the output has one row for each private row, in order: also measure which words and identifiers stay,
            and re-identification among the private texts.
        seed: seed of ties and of the choice of rows.

    Raises:
        DataError: a row without text or author, too few texts, a user in both files, rows that do not correspond.
        ParameterError: a missing column, no held-out texts.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> things = ["tea", "bread", "milk", "salt", "wine", "oil"]
    >>> notes = [f"{name} bought {thing}" for name in ("Ann", "Bo", "Max") for thing in things]
    >>> judge(notes[::2], notes[1::2], notes[::2]).findings[0]
    'copies (verbatim)'
    """
    extras([("scipy.stats", "report"), ("sklearn", "report")], "a judgement")
    if held_out is None and not by_row:
        raise ParameterError("held_out is required: texts of the same kind that the tool did not see")
    files = {"private": (private, user), "held_out": (held_out, user), "output": (output, None)}
    files["canaries"] = canaries, INSERTED
    read = {name: _read(name, file, text, column) for name, (file, column) in files.items() if file is not None}
    texts = {name: rows for name, (rows, _) in read.items()}
    sizes = {name: len(rows) for name, rows in texts.items() if name != "canaries"}
    if by_row and sizes["private"] != sizes["output"]:
        raise DataError(f"output must have one row per private text ({sizes['private']:,}), got {sizes['output']:,}")
    sides = [name for name in ("private", "held_out") if name in read]
    invented = set(texts.get("canaries", ()))
    rows = [(name, *row) for name in sides for row in zip(*read[name], strict=True) if row[0] not in invented]
    unit = "text" if user is None else "user"
    people, units = as_codes("user", range(len(rows)) if user is None else [row[2] for row in rows], len(rows))
    inside, members = np.array([row[0] == "private" for row in rows], dtype=np.bool_), np.zeros(units, dtype=np.bool_)
    members[people[inside]] = True
    sizes |= {"private_units": int(members.sum()), "held_out_units": int((~members).sum())}
    comparisons: list[copies.Comparison] = []
    if held_out is not None:
        if members[people[~inside]].any():
            raise DataError("some users have texts in both private and held_out: use held-out texts of other people")
        known, others = texts["private"], texts["held_out"]
        if len(set(known).intersection(others)) > len(known) / 2 or sorted(known) == sorted(others):
            raise DataError("most private texts are in held_out as well: use other held-out texts of the same kind")
        if min(sizes["private_units"], sizes["held_out_units"]) < 2:
            raise DataError(f"private and held_out must each have at least two {unit}s that are no canaries")
        comparisons += _compare([row[1] for row in rows], texts["output"], people, members)
    flags = significant([entry.p_value for entry in comparisons], ERROR)
    findings = [entry.scores[0].attack for entry, is_finding in zip(comparisons, flags, strict=True) if is_finding]
    row_scores: list[AttackScore] = []
    if by_row:
        owners = as_people(None if user is None else read["private"][1], sizes["private"])
        row_scores += _attack_rows(texts["private"], texts["output"], owners, seed)
    findings += [score.attack for score in row_scores if score.succeeded and score.attack != _WORDS]
    bound = None if canaries is None else _bound(*read["canaries"], texts["output"], seed)
    findings += ["canaries"] if bound is not None and bound.loss > 0 else []
    return Judgement(
        title=f"Judgement of {Path(output).name if isinstance(output, str | os.PathLike) else 'an output'}",
        unit=unit,
        sizes=sizes,
        scores=[score for entry in comparisons for score in entry.scores],
        findings=list(dict.fromkeys(findings)),
        smallest=copies.smallest_finding(int(members.sum()), int((~members).sum()), ERROR / max(len(flags), 1)),
        canaries=bound,
        row_scores=row_scores,
    )


def _read(name: str, source: Any, text: str, column: str | None) -> tuple[list[str], list[Any]]:
    """Return at least two texts of a file, a table, or an iterable, and the values of a column (or the users)."""
    documents: Iterable[Document]
    if isinstance(source, str | os.PathLike):
        documents = read_documents(source, text=text, label=column)
    elif is_table(source):
        documents = table_documents(source, text=text, label=column)
    else:
        entries: Iterable[Any] = check_one_column(source)
        documents = (Document(getattr(row, "text", row), label=getattr(row, "user", None)) for row in entries)
    texts, values = [], []
    for number, document in enumerate(documents, 1):
        values.append(canonical_id(document.label) if name != "canaries" else canonical_label(document.label))
        if column is not None and values[-1] is None:
            raise DataError(f"{name}, row {number}: {column!r} is missing. Fill it in, or drop the row")
        texts.append(text_of(document, number) or "")
    if sum(any(map(str.isalnum, entry)) for entry in texts) < 2:
        raise DataError(f"{name} must have at least two texts with words")
    return texts, values


def _words(texts: Sequence[str]) -> list[list[str]]:
    """Return words; in scripts without spaces, characters."""
    return [[piece for piece in pieces(text.lower()) if any(map(str.isalnum, piece))] for text in texts]


def _nearest(texts: Sequence[str], output: Sequence[str]) -> Floats:
    """Return (n,) the cosine of each text with the nearest output text, independent of the order of the texts."""
    # each distinct text is computed once: rounding would break ties by the position in a block
    (queries, place), (others, _) = (
        np.unique(np.array(entries, dtype=object), return_inverse=True) for entries in (texts, output)
    )
    together = sorted([*texts, *output])
    try:
        features = fit_features(quick_features(PublicWords(together)), together, cache=False).remembering()
    except DataError:
        raise DataError("the texts cannot be compared: all are equal, or no word of them is known") from None
    return copies.nearest_similarity(features.vectors(queries), features.vectors(others))[place]


def _compare(queries: list[str], output: list[str], people: Ids, members: Mask) -> Iterator[copies.Comparison]:
    """Compare private and held-out texts with the output, by the highest or the mean score of each person."""
    shared, cosine = np.full((2, members.size), -1.0)
    words, of_output = _words(queries), _words(output)
    np.maximum.at(shared, people, copies.shared_sequences(words, of_output))
    np.maximum.at(cosine, people, _nearest(queries, output))
    ratios = np.bincount(people, copies.likelihood_ratios(words, of_output)) / np.bincount(people)
    yield copies.compare_copies("copies (verbatim)", shared >= 1, members)
    yield copies.compare_copies("copies (half of the word sequences)", shared >= _NEAR_SEQUENCES, members)
    yield copies.compare_copies("copies (nearest neighbour)", cosine >= _NEAR_COSINE, members)
    yield copies.compare_scores("membership (nearest neighbour)", cosine, members)
    yield copies.compare_scores("membership (n-gram likelihood)", ratios, members)


def _attack_rows(before: list[str], after: list[str], people: Ids, seed: int | None) -> Iterator[AttackScore]:
    """Attack an output with one row per private text: words and identifiers that stay, linkage, authors."""
    identifiers = [[text[span.start : span.end] for span in find(text)] for text in before]
    kinds: Any = {"words": (_words(before), list(map(set, _words(after)))), "identifiers": (identifiers, after)}
    for name, (terms, kept) in kinds.items():
        items = [(row, term) for row, entries in enumerate(terms) for term in sorted(set(entries))]
        owners = people[np.array([row for row, _ in items], dtype=np.int64)]
        if len(set(owners)) > 1:
            score, by_chance = (
                share_of_rows(np.array([term in kept[(row + shift) % len(kept)] for row, term in items]), owners)
                for shift in (0, 1)
            )
            yield AttackScore(
                attack=f"{name} that stay",
                measure=f"share of {name}",
                score=score,
                baseline=by_chance.high,
                baseline_name="in the next row, at most",
                detail=f"{len(items):,} {name}",
            )
    chosen = chosen_rows(len(before), _MAX_LINKED, RandomBits(seed))
    original, private = (_words([texts[row] for row in chosen]) for texts in (before, after))
    yield from linkage(original, private, people=people[chosen], seed=seed)
    order = np.argsort(people, kind="stable")
    place = np.arange(people.size) - np.searchsorted(people[order], people[order])
    several = np.bincount(people)[people[order]] > 1
    known, attacked = (order[several & (place % 2 == half)] for half in (0, 1))
    if len(set(people[attacked])) > 1:
        of_known, of_attacked = _words([before[row] for row in known]), _words([after[row] for row in attacked])
        sides: Any = of_known, people[known], of_attacked, people[attacked]
        yield from author_reidentification(*sides, attacker="centroid", seed=seed)


def _bound(canaries: list[str], values: list[Any], output: list[str], seed: int | None) -> CanaryBound:
    """Return the best lower bound on epsilon over several numbers of guesses, with a total error of 5%."""
    wrong = next((row for row, value in enumerate(values, 1) if value not in (*_HEADS, *_TAILS)), None)
    if wrong is not None:
        raise DataError(f"canaries, row {wrong}: {INSERTED!r} must be 1 or 0")
    coins = [value in _HEADS for value in values]
    if len(set(coins)) < 2:
        raise DataError(f"canaries: {INSERTED!r} must be 1 for some rows and 0 for others")
    if len(set(canaries)) < len(canaries):
        raise DataError("canaries: the texts must be different, because each has a coin of its own")
    # scores without private texts, which may contain inserted canaries; ties stay, as the order may show the coins
    rank = optional("scipy.stats").rankdata
    scores = rank(_nearest(canaries, output)) + rank(copies.likelihood_ratios(_words(canaries), _words(output)))
    guesses = {max(2, len(canaries) // part) for part in _PARTS}
    settings: Any = {"delta": DELTA, "error": 0.05 / len(_PARTS), "seed": seed}
    bounds = [canary_bound(scores, coins, guesses=count, **settings) for count in guesses]
    best = max(bounds, key=lambda bound: (bound.loss, bound.guesses))
    return replace(best, strongest=max(bound.strongest for bound in bounds))
