"""Copies of private texts in an output, and membership scores without a model, compared with held-out texts.

Derivation: docs/understand/attacks.md#attacks-copies
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import AttackScore, Floats, Ids, Rows, as_texts, optional
from dptext.attacks.linkage import similarities
from dptext.attacks.membership import Mask, score_membership
from dptext.errors import ParameterError
from dptext.intervals import difference, share
from dptext.threads import for_each_block

SEQUENCE = 5
"""Number of words of the sequences that copies are recognised by; a shorter text is one sequence."""
_ENTRIES = 1 << 21  # similarities in memory per thread
_BLOCK = 512  # texts per product of matrices
_ORDER, _WEIGHT = 3, 1.0  # longest sequence of the n-gram model; weight of the shorter ones, in words
_TAIL = 0.01  # of all texts: those with the highest scores


def shared_sequences(texts: Rows, output: Rows) -> Floats:
    """Return (n,) the largest part of the word sequences of each text that a single output text contains.

    >>> shared_sequences(["he paid ten euros for it", "no"], ["today he paid ten euros for it at last", "yes"]).tolist()
    [1.0, 0.0]
    """
    counter = optional("sklearn.feature_extraction.text").CountVectorizer(analyzer=_sequences, binary=True)
    bags, others = as_texts("texts", texts), as_texts("output", output)
    queries = counter.fit_transform(bags).astype(np.float32)
    rows = counter.transform(others).astype(np.float32).T.tocsr()
    totals = np.maximum(np.asarray(queries.sum(axis=1), dtype=np.float64).ravel(), 1.0)
    result = np.zeros(len(bags))

    def compare(start: int) -> None:
        stop = min(start + _BLOCK, len(bags))
        largest = (queries[start:stop] @ rows).max(axis=1).toarray().ravel()
        result[start:stop] = largest / totals[start:stop]

    for_each_block(compare, range(0, len(bags), _BLOCK))
    return result


def _sequences(bag: Sequence[str]) -> Iterator[str]:
    for start in range(max(len(bag) - SEQUENCE + 1, 1) if bag else 0):
        yield " ".join(bag[start : start + SEQUENCE])


def nearest_similarity(vectors: npt.ArrayLike, output: npt.ArrayLike) -> Floats:
    """Return (n,) the cosine of each vector with its nearest output vector.

    >>> nearest_similarity([[1.0, 0.0], [3.0, 4.0]], [[2.0, 0.0], [0.0, 1.0]]).round(3).tolist()
    [1.0, 0.8]
    """
    pairs, (count, others) = similarities(output, vectors, names=("output", "vectors"))
    result, step = np.empty(count), max(1, _ENTRIES // others)

    def compare(start: int) -> None:
        stop = min(start + step, count)
        result[start:stop] = pairs(start, stop).max(axis=1)

    for_each_block(compare, range(0, count, step))
    return result


def likelihood_ratios(texts: Rows, output: Rows) -> Floats:
    """Return (n,) log-likelihood ratios per word of an n-gram model of the output and one of the other texts.

    Both models interpolate sequences of one to three words (Dirichlet smoothing). The model of the other texts leaves
    out the text itself, so it treats private and held-out texts alike.

    >>> likelihood_ratios(["a cat sat", "the dogs ran"], ["a cat sat", "a cat sat here"]).round(1).tolist()
    [3.7, -1.0]
    """
    bags, others = as_texts("texts", texts), as_texts("output", output)
    lengths = np.array([len(bag) for bag in (*bags, *others)])
    row = np.repeat(np.arange(lengths.size), lengths)
    of_output = row >= len(bags)
    _, words = np.unique([word for bag in (*bags, *others) for word in bag], return_inverse=True)
    size = int(words.max()) + 1
    starts = np.concatenate([[True], row[1:] != row[:-1]])
    context = np.zeros(words.size, dtype=np.int64)
    likelihoods = [np.full(words.size, 1.0 / size) for _ in range(2)]
    for _ in range(_ORDER):
        _, sequence = np.unique(context * size + words, return_inverse=True)
        for index, is_counted in enumerate((of_output, ~of_output)):
            ahead, all_after = (_count(codes, row, is_counted, leaves_out=index == 1) for codes in (sequence, context))
            likelihoods[index] = (ahead + _WEIGHT * likelihoods[index]) / (all_after + _WEIGHT)
        context = np.where(starts, 0, 1 + np.concatenate([[0], sequence[:-1]]))
    ratio = np.log(likelihoods[0]) - np.log(likelihoods[1])
    sums = np.bincount(row, ratio, minlength=lengths.size)
    means: Floats = sums[: len(bags)] / np.maximum(lengths[: len(bags)], 1)
    return means


def _count(codes: Ids, row: Ids, is_counted: Mask, *, leaves_out: bool) -> Floats:
    """Return the number of counted positions with the code of each position, except in the same text."""
    counts: Floats = np.bincount(codes[is_counted], minlength=int(codes.max()) + 1)[codes].astype(np.float64)
    if leaves_out:
        _, places, times = np.unique(row * (int(codes.max()) + 1) + codes, return_inverse=True, return_counts=True)
        counts -= np.where(is_counted, times[places], 0)
    return counts


@dataclass(frozen=True)
class Comparison:
    """Scores of one attack, and the p-values of its tests: the probability of such a result without disclosure."""

    scores: tuple[AttackScore, ...]
    p_values: tuple[float, ...]


def compare_copies(attack: str, copied: Mask, members: Mask) -> Comparison:
    """Compare the share of copied private texts with that of held-out texts.

    A held-out text looks like a copy by chance with probability h. If a tool copies a share c of the private texts, a
    private one looks like a copy with probability h + c (1 - h). The score is the estimate of c.

    The p-value is Fisher's exact test: without disclosure, every choice of the members is equally likely.

    Args:
        attack: name of the attack.
        copied: (n,) True for texts (or people) of which the output contains a copy.
        members: (n,) True for private texts, False for held-out texts.

    >>> compare_copies("copies", np.arange(200) < 12, np.arange(200) < 100).p_values[0] < 0.001
    True
    """
    inside, outside = int(members.sum()), int((~members).sum())
    if not inside or not outside:
        raise ParameterError(f"members must have private and held-out texts, got {inside} and {outside}")
    of_members, of_others = int(copied[members].sum()), int(copied[~members].sum())
    beyond = difference(share(of_members, inside), share(of_others, outside))
    by_chance = min(of_others / outside, 1 - 1 / (outside + 1))
    value, low, high = (min(number / (1 - by_chance), 1.0) for number in (beyond.value, beyond.low, beyond.high))
    score = AttackScore(
        attack=attack,
        measure="share beyond chance",
        score=replace(beyond, value=value, low=low, high=high),
        baseline=0.0,
        baseline_name="as many as among held-out texts",
        detail=f"{of_members:,} of {inside:,} private, {of_others:,} of {outside:,} held-out",
    )
    return Comparison((score,), (_exact_p_value(of_members, of_members + of_others, inside, outside),))


def compare_scores(attack: str, scores: Floats, members: Mask) -> Comparison:
    """Measure a membership score, and test its mean rank and the texts with the highest scores.

    Tests: Mann-Whitney for all ranks; Fisher's exact test for the number of members among the highest 1%, which finds
    a few disclosed texts among many.
    """
    measured = score_membership(scores, members, attack=attack)
    inside, outside = int(members.sum()), int((~members).sum())
    test = optional("scipy.stats").mannwhitneyu
    ranks = float(test(scores[members], scores[~members], alternative="greater").pvalue)
    threshold = np.sort(scores)[-max(1, math.ceil(_TAIL * scores.size))]
    highest = scores >= threshold
    tail = _exact_p_value(int(highest[members].sum()), int(highest.sum()), inside, outside)
    return Comparison((measured.auc, measured.at_1_percent), (1.0 if math.isnan(ranks) else ranks, tail))


def _exact_p_value(successes: int, total: int, inside: int, outside: int) -> float:
    return float(optional("scipy.stats").hypergeom.sf(successes - 1, inside + outside, total, inside))


def smallest_finding(inside: int, outside: int, error: float) -> int:
    """Return the smallest number of copies, with none among held-out texts, that a test at this error rate finds.

    >>> smallest_finding(5000, 5000, 0.001), smallest_finding(5000, 20_000, 0.001)
    (10, 5)
    """
    p_value = partial(_exact_p_value, inside=inside, outside=outside)
    return next((count for count in range(1, inside + 1) if p_value(count, count) <= error), inside + 1)
