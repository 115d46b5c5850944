"""Nearest-neighbour attack on shared word vectors: words that occurred next to a name."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import AttackScore, as_codes, as_ids, as_rows, unit_rows
from dptext.attacks.linkage import rank_scores
from dptext.errors import ParameterError
from dptext.intervals import CONFIDENCE, mean_over_runs, share
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_int

Ids: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

NO_ROW = -1
"""In place of the row of a word that has none."""


@dataclass(frozen=True, eq=False)
class SecretRanks:
    """Where each secret stands on the list of its name, by cosine; 1 is the nearest."""

    known: npt.NDArray[np.bool_]
    among_words: Ids
    among_secrets: Ids
    choices: Ids
    words: int


def secret_ranks(
    vectors: npt.ArrayLike,
    names: Sequence[int] | Ids,
    secrets: Sequence[int] | Ids,
    *,
    kinds: Iterable[Hashable] | None = None,
    left_out: Sequence[int] = (),
    seed: int | None = None,
) -> SecretRanks:
    """The ranks of secrets among the neighbours of their names.

    Args:
        vectors: (V, d) of words.
        names: (pairs,) the row of each name; `NO_ROW` where it has none.
        secrets: (pairs,) the row of the secret that belongs to it; `NO_ROW`.
        kinds: (pairs,) among the secrets of which kind an attacker chooses, such as "disease"; None: all are of one.
        left_out: rows that are no words, such as that of ``"<unk>"``.
        seed: of ties, which are broken at random as an attacker must.

    Raises:
        ParameterError: no pair, rows that are not there, NaN; the argument is named.
    """
    points = unit_rows(_dense(vectors))
    name, secret = (
        as_ids(label, ids, len(points), minimum=NO_ROW) for label, ids in (("names", names), ("secrets", secrets))
    )
    if name.size != secret.size:
        raise ParameterError(f"secrets must be one for each of {name.size:,} names, got {secret.size:,}")
    kind = np.zeros(name.size, dtype=np.int64) if kinds is None else as_codes("kinds", kinds, name.size)[0]
    directed = points.any(axis=1)
    present = (name != NO_ROW) & (secret != NO_ROW)
    known = present & directed[name] & directed[secret]
    bits = RandomBits(seed)
    among_words, among_secrets, choices = (np.zeros(name.size, dtype=np.int64) for _ in range(3))
    out = np.array(sorted({*left_out}), dtype=np.int64)

    def _known_neighbours(start: int, stop: int) -> Floats:
        rows = np.flatnonzero(known)[start:stop]
        result: Floats = points[name[rows]] @ points.T
        result[:, out] = -np.inf
        result[np.arange(rows.size), name[rows]] = -np.inf
        return result

    if known.any():
        among_words[known] = 1 + rank_scores(_known_neighbours, secret[known], len(points), bits)
    for entry in np.unique(kind).tolist():
        rows_of_kind = np.flatnonzero(known & (kind == entry))
        candidates = np.unique(secret[(kind == entry) & (secret != NO_ROW)])
        choices[kind == entry] = candidates.size
        if rows_of_kind.size:
            true = np.searchsorted(candidates, secret[rows_of_kind])
            of_secrets = partial(_cosines, points[name[rows_of_kind]], points[candidates])
            ranks = rank_scores(of_secrets, true, candidates.size, bits)
            among_secrets[rows_of_kind] = 1 + ranks
    words = len(points) - 1 - out.size
    return SecretRanks(known, among_words, among_secrets, choices, words)


def nearest_secrets(
    vectors: npt.ArrayLike,
    names: Sequence[int] | Ids,
    secrets: Sequence[int] | Ids,
    *,
    kinds: Iterable[Hashable] | None = None,
    left_out: Sequence[int] = (),
    public: npt.ArrayLike | None = None,
    top: int = 10,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    attack: str = "neighbours",
) -> list[AttackScore]:
    """Return how often the nearest secret is the name's, and how often it is among the name's nearest words.

    Pairs of which a word has no vector are left out; ``detail`` says how many there are. Of fewer than four pairs of
    four different secrets no attack can be seen to succeed: `nearest_secrets_known` is the control that shows it.

    Args:
        vectors, names, secrets, kinds, left_out, seed: as in `secret_ranks`.
        public: (V, d') vectors of the same words that were not learned from these texts (prior knowledge).
        top: how many of the nearest words the attacker may name.
        confidence: of the intervals, over pairs. On vectors that say nothing `AttackScore.succeeded` is a false alarm
            with a probability of at most about (1 - confidence) / 2 for each score.
        attack: what to call it.

    Returns:
        Two scores; with ``public`` a third: the bits by which secrets came nearer, the mean of log2(rank before / rank)
        over the pairs that both know.

    Raises:
        ParameterError: as `secret_ranks`; no pair that has vectors; a kind with one secret: nothing to choose from.

    >>> vectors = [[1, 0, 0], [0.9, 0.4, 0], [0, 1, 0], [0, 0.9, 0.4], [0, 0, 1], [0.4, 0, 0.9]]
    >>> for score in nearest_secrets(vectors, names=[0, 2, 4], secrets=[1, 3, 5], top=1):
    ...     print(score)
    neighbours: nearest secret is the right one 1.000 [0.292, 1.000] against 0.333 (chance)
    neighbours: secret among 1 nearest words 1.000 [0.292, 1.000] against 0.200 (chance)
    """
    kinds = None if kinds is None else list(kinds)
    result = secret_ranks(vectors, names, secrets, kinds=kinds, left_out=left_out, seed=seed)
    known = result.known
    if not known.any():
        raise ParameterError("names and secrets must have vectors, got no pair of which both words have one")
    choices = result.choices[known]
    if choices.min() < 2:
        raise ParameterError("secrets must be at least two of each kind: of one there is nothing to choose from")
    top = check_int("top", top, minimum=1, maximum=max(1, result.words - 1))
    text = f"{known.sum():,} of {known.size:,} pairs have vectors"
    median = f"in the median the secret is word {int(np.median(result.among_words[known])):,} of {result.words:,}"
    measures = (
        ("nearest secret is the right one", result.among_secrets <= 1, float((1 / choices).mean())),
        (f"secret among {top:,} nearest words", result.among_words <= top, top / result.words),
    )
    scores = [
        AttackScore(
            attack=attack,
            measure=measure,
            score=replace(share(int(hits[known].sum()), int(known.sum()), confidence=confidence), of="pairs"),
            baseline=baseline,
            baseline_name="chance",
            detail=f"{text}; {median}",
        )
        for measure, hits, baseline in measures
    ]
    if public is None:
        return scores
    before = secret_ranks(public, names, secrets, kinds=kinds, left_out=left_out, seed=seed)
    both = known & before.known
    if both.sum() >= 2:
        earlier = before.among_words[both]
        bits = np.log2(earlier / result.among_words[both])
        detail = f"{both.sum():,} pairs that public vectors know too, whose secret is word {int(np.median(earlier)):,} "
        nearer = AttackScore(
            attack=attack,
            measure="bits nearer than before",
            score=replace(mean_over_runs(bits, confidence=confidence), of="pairs"),
            baseline=0.0,
            baseline_name="public vectors",
            detail=f"{detail}there in the median",
        )
        scores.append(nearer)
    return scores


def nearest_secrets_known(vectors: npt.ArrayLike, names: Sequence[int] | Ids, secrets: Sequence[int] | Ids) -> Floats:
    """The same vectors, each secret moved to its name: the positive control of `nearest_secrets`, which must succeed
    there. Where it does not, there are too few pairs to see anything.

    >>> moved = nearest_secrets_known([[1, 0, 0], [0, 1, 0], [0, 0, 1]], names=[0], secrets=[2])
    >>> moved.round(2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.89, 0.0, 0.45]]
    """
    points: Floats = np.array(unit_rows(_dense(vectors)))
    name, secret = (
        as_ids(label, ids, len(points), minimum=NO_ROW) for label, ids in (("names", names), ("secrets", secrets))
    )
    present = (name != NO_ROW) & (secret != NO_ROW)
    moved = points[name[present]] + points[secret[present]] / 2
    points[secret[present]] = unit_rows(moved)
    return points


def _cosines(names: Floats, candidates: Floats, start: int, stop: int) -> Floats:
    cosines: Floats = names[start:stop] @ candidates.T
    return cosines


def _dense(vectors: npt.ArrayLike) -> Floats:
    rows = as_rows("vectors", vectors)
    if hasattr(rows, "tocsr"):
        raise ParameterError("vectors must be a dense matrix of words, got a sparse one")
    result: Floats = np.asarray(rows, dtype=np.float64)
    if len(result) < 3:
        raise ParameterError(f"vectors must hold at least three words, got {len(result)}")
    return result
