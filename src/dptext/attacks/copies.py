"""Copies of private texts in an output, and membership scores without a model, compared with held-out texts.

Derivation: docs/understand/attacks.md#attacks-copies
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import AttackScore, Floats, Ids, Rows, as_rows, as_texts, optional, unit_rows
from dptext.attacks.membership import Mask, score_membership
from dptext.intervals import difference, share
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

SEQUENCE = 5
"""Number of words of the sequences that copies are recognised by; a shorter text is one sequence."""
TAILS = 0.01, 0.1, 0.5
"""Parts of all scores, the highest ones, among which members are counted."""
_ENTRIES = 1 << 21  # similarities in memory per thread
_ORDER, _WEIGHT = 3, 1.0  # longest sequence of the n-gram model; weight of the shorter ones, in words


def shared_sequences(texts: Rows, output: Rows) -> Floats:
    """Return (n,) the largest part of the word sequences of each text that a single output text contains.

    >>> shared_sequences(["he paid ten euros for it", "no"], ["today he paid ten euros for it at last", "yes"]).tolist()
    [1.0, 0.0]
    """
    sparse = optional("scipy.sparse")
    words, size, row, lengths, count = _as_numbers(texts, output)
    place = np.arange(words.size) - (np.cumsum(lengths) - lengths)[row]
    codes = np.zeros(words.size, dtype=np.int64)
    for ahead in range(SEQUENCE):
        following = np.where(place + ahead < lengths[row], np.roll(words, -ahead) + 1, 0)
        _, codes = np.unique(codes * (size + 1) + following, return_inverse=True)
    kept, width = place <= np.maximum(lengths - SEQUENCE, 0)[row], int(codes.max()) + 1
    rows, columns = np.divmod(np.unique(row[kept] * width + codes[kept]), width)
    table = sparse.csr_matrix((np.ones(rows.size, dtype=np.float32), (rows, columns)), (lengths.size, width))
    queries, others = table[:count], table[count:]
    # sequences in the same output texts become one column: a template in many texts would make the product slow
    digests = others.astype(np.uint64).T @ RandomBits(0).integers(others.shape[0])
    _, first, group = np.unique(digests, return_index=True, return_inverse=True)
    merged = queries @ sparse.csr_matrix((np.ones(group.size, dtype=np.float32), (np.arange(group.size), group)))
    candidates = others[:, first].T.tocsr()
    totals = np.maximum(np.asarray(queries.sum(axis=1), dtype=np.float64).ravel(), 1.0)
    return _maxima(lambda start, stop: (merged[start:stop] @ candidates).toarray(), count, others.shape[0]) / totals


def _as_numbers(texts: Rows, output: Rows) -> tuple[Ids, int, Ids, Ids, int]:
    """Return word numbers, their upper limit, the row of each word, the length of each row, and the number of texts."""
    bags, others = as_texts("texts", texts), as_texts("output", output)
    lengths = np.array([len(bag) for bag in (*bags, *others)])
    numbers: dict[str, int] = {}  # an array of strings would need the memory of the longest for each
    words = [numbers.setdefault(word, len(numbers)) for bag in (*bags, *others) for word in bag]
    row = np.repeat(np.arange(lengths.size), lengths)
    return np.array(words, dtype=np.int64), len(numbers), row, lengths, len(bags)


def _maxima(pairs: Callable[[int, int], npt.NDArray[Any]], count: int, others: int) -> Floats:
    """Return (count,) the maximum of each row of a matrix that is computed in blocks of rows."""
    result, step = np.empty(count), max(1, _ENTRIES // others)

    def compare(start: int) -> None:
        result[start : start + step] = pairs(start, min(start + step, count)).max(axis=1)

    for_each_block(compare, range(0, count, step))
    return result


def nearest_similarity(vectors: npt.ArrayLike, output: npt.ArrayLike) -> Floats:
    """Return (n,) the cosine of each vector with its nearest output vector, in single precision.

    >>> nearest_similarity([[1.0, 0.0], [3.0, 4.0]], [[2.0, 0.0], [0.0, 1.0]]).round(3).tolist()
    [1.0, 0.8]
    """
    rows, others = (
        unit_rows(as_rows(name, values)).astype(np.float32)
        for name, values in (("vectors", vectors), ("output", output))
    )
    return _maxima(lambda start, stop: rows[start:stop] @ others.T, len(rows), len(others))


def likelihood_ratios(texts: Rows, output: Rows) -> Floats:
    """Return (n,) log-likelihood ratios per word of an n-gram model of the output and one of the other texts.

    Both models interpolate sequences of one to three words (Dirichlet smoothing). The model of the other texts leaves
    out the text itself, so it treats private and held-out texts alike.

    >>> likelihood_ratios(["a cat sat", "the dogs ran"], ["a cat sat", "a cat sat here"]).round(1).tolist()
    [3.7, -1.0]
    """
    words, size, row, lengths, count = _as_numbers(texts, output)
    starts, context = np.diff(row, prepend=-1) > 0, np.zeros(words.size, dtype=np.int64)
    likelihoods = [np.full(words.size, 1.0 / size) for _ in range(2)]
    for _ in range(_ORDER):
        _, sequence = np.unique(context * size + words, return_inverse=True)
        for index, is_counted in enumerate((row >= count, row < count)):
            ahead, all_after = (_count(codes, row, is_counted, leaves_out=index == 1) for codes in (sequence, context))
            likelihoods[index] = (ahead + _WEIGHT * likelihoods[index]) / (all_after + _WEIGHT)
        context = np.where(starts, 0, 1 + np.roll(sequence, 1))
    ratio = np.log(likelihoods[0]) - np.log(likelihoods[1])
    return np.bincount(row, ratio, minlength=lengths.size)[:count] / np.maximum(lengths[:count], 1)


def _count(codes: Ids, row: Ids, is_counted: Mask, *, leaves_out: bool) -> Floats:
    """Return the number of counted positions with the code of each position, except in the same text."""
    counts: Floats = np.bincount(codes[is_counted], minlength=int(codes.max()) + 1)[codes].astype(np.float64)
    if leaves_out:
        _, places, times = np.unique(row * (int(codes.max()) + 1) + codes, return_inverse=True, return_counts=True)
        counts -= np.where(is_counted, times[places], 0)
    return counts


class Comparison(NamedTuple):
    """Scores of one attack, and a p-value: a bound on the probability of such a result without disclosure."""

    scores: tuple[AttackScore, ...]
    p_value: float


def compare_copies(attack: str, copied: Mask, members: Mask) -> Comparison:
    """Estimate the share c of members that were copied, if chance alone copies a share h of all.

    ``copied`` and ``members`` are (n,) masks of texts or people. The p-value is that of Fisher's exact test.

    >>> compare_copies("copies", np.arange(200) < 12, np.arange(200) < 100).p_value < 0.001
    True
    """
    inside, outside = int(members.sum()), int((~members).sum())
    of_members, of_others = int(copied[members].sum()), int(copied[~members].sum())
    beyond = difference(share(of_members, inside), share(of_others, outside))  # c (1 - h)
    rest = max(1 - of_others / outside, 1 / (outside + 1))
    value, low, high = (min(number / rest, 1.0) for number in (beyond.value, beyond.low, beyond.high))
    score = AttackScore(
        attack=attack,
        measure="share beyond chance",
        score=replace(beyond, value=value, low=low, high=high),
        baseline=0.0,
        baseline_name="as many as among held-out texts",
        detail=f"{of_members:,} of {inside:,} private, {of_others:,} of {outside:,} held-out",
    )
    return Comparison((score,), _exact_p_value(copied, members))


def compare_scores(attack: str, scores: Floats, members: Mask) -> Comparison:
    """Measure a membership score, and count the members among the highest 1%, 10% and 50% of the scores.

    The p-value is the smallest of Fisher's exact tests, times their number. It is valid for ties and few members.
    """
    measured, ordered = score_membership(scores, members, attack=attack), np.sort(scores)
    p_values = [_exact_p_value(scores >= ordered[-math.ceil(part * scores.size)], members) for part in TAILS]
    return Comparison((measured.auc, measured.at_1_percent), min(1.0, len(TAILS) * min(p_values)))


def _exact_p_value(chosen: Mask, members: Mask) -> float:
    """Return the probability of as many members among the chosen ones if these are chosen at random."""
    hypergeom = optional("scipy.stats").hypergeom
    return float(hypergeom.sf(chosen[members].sum() - 1, members.size, chosen.sum(), members.sum()))


def smallest_finding(inside: int, outside: int, error: float) -> int:
    """Return the smallest number of copies, with none among held-out texts, that a test at this error rate finds.

    >>> smallest_finding(5000, 5000, 0.001), smallest_finding(5000, 20_000, 0.001)
    (10, 5)
    """
    counts = np.arange(1, inside + 1)
    p_values = optional("scipy.stats").hypergeom.sf(counts - 1, inside + outside, counts, inside)
    return int((p_values > error).sum()) + 1
