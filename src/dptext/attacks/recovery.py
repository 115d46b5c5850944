"""Recovery of the words or texts behind a private text or vector.

Derivation: docs/understand/attacks.md#attacks-recovery
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import (
    AttackScore,
    Floats,
    Ids,
    Rows,
    are_texts,
    as_ids,
    as_people,
    as_rows,
    as_texts,
    optional,
    scaling_steps,
    share_of_rows,
    words_alone,
)
from dptext.attacks.linkage import rank_scores, similarities
from dptext.errors import ParameterError
from dptext.intervals import Estimate, mean_of_people
from dptext.privacy.guarantee import best_guesses
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_int

Channel: TypeAlias = npt.ArrayLike | Callable[[Ids], npt.ArrayLike]
"""(inputs, outputs) P(output | input), or a function from (k,) input ids to (k, outputs)."""

_ENTRIES, _LEAST_ROWS = 1 << 22, 32  # entries and rows of a channel per block
_OFF = 1e-6  # tolerance for the sum of a row of a channel
MEASURE = "share of words recovered"
_SUMS_TO_ONE = 1e-12  # within this tolerance, frequencies are not rescaled


def expected_recovery(channel: Channel, prior: npt.ArrayLike) -> AttackScore:
    """Return the exact success of the best attacker on words drawn from the prior.

    It is an average over words; some words are recovered far more often. It is not a bound: an attacker who knows more
    than word frequencies (the context) is more successful.

    Args:
        channel: (inputs, outputs) P(output | input), or a function from (k,) input ids to (k, outputs).
        prior: (inputs,) public frequencies; they are scaled to sum 1.

    Raises:
        ParameterError: rows that are not distributions, invalid frequencies; the message names the argument.

    >>> print(expected_recovery([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]))
    word recovery (Bayes-optimal): share of words recovered 0.850 [0.850, 0.850] against 0.500 (most frequent word)
    """
    frequencies = _prior(prior)
    result = best_guesses(_blocks(channel, frequencies.size), frequencies)
    # bound on the rounding error of a sum of n numbers below 1, the only uncertainty
    rounding = result.joint.size * float(np.finfo(np.float64).eps)
    rate = min(result.rate, 1.0)
    return AttackScore(
        attack="word recovery (Bayes-optimal)",
        measure=MEASURE,
        score=Estimate(rate, max(rate - rounding, 0.0), min(rate + rounding, 1.0), frequencies.size, "inputs"),
        baseline=result.blind,
        baseline_name="most frequent word",
        detail="exact, for words with the assumed frequencies",
    )


def bayes_recovery(
    channel: Channel,
    prior: npt.ArrayLike,
    true: npt.ArrayLike,
    observed: npt.ArrayLike,
    *,
    people: Iterable[Hashable] | None = None,
) -> AttackScore:
    """Return the proportion of sampled outputs whose input the best attacker names.

    Args:
        channel, prior: as in `expected_recovery`.
        true: (n,) ids of the inputs.
        observed: (n,) ids of the outputs, in the same order.
        people: (n,) the person of each word, because words of one author are similar; None: words are independent.

    Raises:
        ParameterError: as in `expected_recovery`; ids out of range, unequal numbers of ids.

    >>> score = bayes_recovery([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5], [0, 0, 1, 1], [0, 1, 1, 1])
    >>> score.score.value, score.baseline
    (0.75, 0.5)
    """
    frequencies = _prior(prior)
    ids = as_ids("true", true, frequencies.size)
    result = best_guesses(_blocks(channel, frequencies.size), frequencies)
    out = as_ids("observed", observed, result.named.size, ids.size)
    return AttackScore(
        attack="word recovery (Bayes-optimal)",
        measure=MEASURE,
        score=share_of_rows(result.named[out] == ids, people),
        **_blind(ids, frequencies, 1),
        detail=f"{ids.size:,} words; {result.rate:.3f} expected for words with the assumed frequencies",
    )


def _blocks(channel: Channel, inputs: int) -> Iterator[Floats]:
    """Yield the rows of a channel in blocks, in order; each block is validated."""
    if not callable(channel):
        table = np.asarray(channel, dtype=np.float64)
        if len(table) != inputs:
            raise ParameterError(f"channel must have one row for each of {inputs:,} inputs, got {len(table):,}")
        channel = table.__getitem__
    step = max(_LEAST_ROWS, _ENTRIES // inputs)
    for start in range(0, inputs, step):
        ids = np.arange(start, min(start + step, inputs))
        rows = np.asarray(channel(ids), dtype=np.float64)
        # NaN fails both comparisons
        if rows.ndim != 2 or not ((rows >= 0).all() and (np.abs(rows.sum(axis=1) - 1) <= _OFF).all()):
            raise ParameterError("each row of channel must be a distribution: numbers of at least 0 that sum to 1")
        yield rows


def nearest_recovery(
    points: npt.ArrayLike,
    candidates: npt.ArrayLike,
    true: npt.ArrayLike,
    *,
    k: int = 1,
    prior: npt.ArrayLike | None = None,
    people: Iterable[Hashable] | None = None,
    seed: int | None = None,
) -> AttackScore:
    """Name the k words whose public vectors are nearest (Euclidean) to each private point.

    For a mechanism that outputs words, the points are the vectors of the output words: the attacker guesses that no
    word was replaced.

    Args:
        points: (n, d) private vectors.
        candidates: (V, d) public vectors of the words.
        true: (n,) the original word of each point.
        k: number of words that the attacker may name.
        prior: (V,) public frequencies, for the baseline; None: all equal.
        people: as in `bayes_recovery`.
        seed: seed of ties.

    Raises:
        ParameterError: NaN, no row, unequal lengths, k out of range; the message names the argument.

    >>> nearest_recovery([[0.1, 0.2], [8.0, 7.0]], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]], [0, 2]).score.value
    1.0
    """
    pairs, (rows, words) = similarities(
        as_rows("candidates", candidates), points, similarity="euclidean", names=("candidates", "points")
    )
    k = check_int("k", k, minimum=1, maximum=words - 1)
    ids = as_ids("true", true, words, rows)
    frequencies = np.full(words, 1 / words) if prior is None else _prior(prior, words)
    result = rank_scores(pairs, ids, words, RandomBits(seed)) < k
    return AttackScore(
        attack="word recovery (nearest vector)",
        measure=MEASURE if k == 1 else f"share of words among the {k} nearest",
        score=share_of_rows(result, people),
        **_blind(ids, frequencies, k),
        detail=f"{ids.size:,} words, {words:,} to choose from",
    )


def _blind(true_rows: Ids, frequencies: Floats, k: int) -> dict[str, Any]:
    """Return the baseline: naming the k most frequent words, or k random words if that is better."""
    likeliest = np.argsort(-frequencies, kind="stable")[:k]
    reached, chance = float(np.isin(true_rows, likeliest).mean()), k / frequencies.size
    name = "most frequent word" if k == 1 else "most frequent words"
    if reached > chance and frequencies.max() > frequencies.min():
        return {"baseline": reached, "baseline_name": name}
    return {"baseline": chance, "baseline_name": "chance"}


def _prior(prior: npt.ArrayLike, size: int | None = None) -> Floats:
    values: Floats = np.asarray(prior, dtype=np.float64)
    if values.ndim != 1 or values.size < 2 or (size is not None and values.size != size):
        raise ParameterError(
            f"prior must have one frequency for each of {size or 'at least 2'} inputs, got shape {values.shape}"
        )
    if not np.isfinite(values).all() or (values < 0).any() or not 0 < values.sum() < np.inf:
        raise ParameterError("prior must be finite numbers of at least 0, and not all 0")
    scaled: Floats = values / values.sum()
    return scaled if abs(values.sum() - 1) > _SUMS_TO_ONE else values


_PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # per training pair
_NAMED_AT_ONCE = 4096


def bag_inversion(
    public_vectors: npt.ArrayLike,
    public_bags: Rows,
    vectors: npt.ArrayLike,
    bags: Rows,
    *,
    top: int = 10,
    people: Iterable[Hashable] | None = None,
) -> list[AttackScore]:
    """Train a decoder on public pairs to name the words behind a vector, and test it on private vectors.

    The decoder is a linear map to word probabilities; its penalty is chosen on a fifth of the public pairs.

    Args:
        public_vectors: (n, d) vectors of public texts, from the same encoder *and mechanism* as the private ones.
        public_bags: n texts or bags of words; or (n, words) counts.
        vectors: (m, d) the private vectors.
        bags: the bags of words behind the vectors; words in no public bag cannot be named. Empty bags are
            omitted.
        top: number of words that the attacker names per vector.
        people: (m,) the person of each vector, for the intervals; None: each vector has a different person.

    Returns:
        Precision (the fraction of the named words that are in the bag) and recall (the fraction of the bag's words that
        are named).

    Raises:
        ParameterError: fewer than 10 public pairs, no word, NaN, unequal lengths; the message names the argument.
        MissingExtraError: scikit-learn or scipy is not installed.
    """
    learnt, private = as_rows("public_vectors", public_vectors), as_rows("vectors", vectors)
    if learnt.shape[1] != private.shape[1]:
        raise ParameterError(f"vectors must have {learnt.shape[1]} columns like public_vectors")
    if len(learnt) < 10:
        raise ParameterError(f"public_vectors must have at least 10 rows, got {len(learnt)}")
    visible, hidden, sizes = _bags(public_bags, bags, (len(learnt), len(private)))
    top = check_int("top", top, minimum=1, maximum=visible.shape[1] - 1)
    owners = as_people(people, len(private))
    requested = np.flatnonzero(sizes > 0)
    private = private[requested]
    for step in scaling_steps():
        learnt, private = step.fit(learnt).transform(learnt), step.transform(private)
    hits = _hits(_ridge(learnt, visible, private, top), top, hidden[requested])
    frequent = np.argsort(-np.asarray(visible.sum(axis=0)).ravel(), kind="stable")[:top]
    blind = np.asarray(hidden[requested][:, frequent].sum(axis=1), dtype=np.float64).ravel()
    detail = f"{requested.size:,} vectors, {len(learnt):,} public pairs, {visible.shape[1]:,} words, {top} named"
    return [
        AttackScore(
            attack="text inversion (ridge)",
            measure=f"{name} of {top} words",
            score=mean_of_people(hits / of, owners[requested]),
            baseline=float((blind / of).mean()),
            baseline_name="most frequent words",
            detail=detail,
        )
        for name, of in (("precision", np.float64(top)), ("recall", sizes[requested]))
    ]


def _bags(public: Rows, private: Rows, rows: tuple[int, int]) -> tuple[Any, Any, Floats]:
    """Return sparse (n, words) and (m, words) of zeros and ones, and (m,) counts of distinct words per private bag."""
    sparse = optional("scipy.sparse")
    sizes: Floats
    if are_texts(public):
        counter = optional("sklearn.feature_extraction.text").CountVectorizer(analyzer=words_alone, binary=True)
        first, second = as_texts("public_bags", public), as_texts("bags", private)
        visible, hidden = counter.fit_transform(first), counter.transform(second)
        sizes = np.array([len(set(bag)) for bag in second], dtype=np.float64)
    else:
        visible, hidden = (
            sparse.csr_matrix(as_rows(name, entry)) for name, entry in (("public_bags", public), ("bags", private))
        )
        if visible.shape[1] != hidden.shape[1]:
            raise ParameterError(
                f"bags must have {visible.shape[1]:,} columns like public_bags, got {hidden.shape[1]:,}"
            )
        visible, hidden = (visible > 0).astype(np.float64), (hidden > 0).astype(np.float64)
        sizes = np.asarray(hidden.sum(axis=1), dtype=np.float64).ravel()
    for name, entry, expected in (("public_bags", visible, rows[0]), ("bags", hidden, rows[1])):
        if entry.shape[0] != expected:
            raise ParameterError(f"{name} must have one row for each of {expected:,} vectors, got {entry.shape[0]:,}")
        if entry.nnz == 0:
            raise ParameterError(f"{name} must contain at least one word that can be named")
    return visible, hidden, sizes


def _ridge(learnt: Floats, features: Any, private: Floats, top: int) -> Floats:
    """Return (m, words) scores, linear in the vector, with the penalty that is best on a held-out fifth."""
    validation = np.arange(len(learnt)) % 5 == 4  # every fifth pair, because the pairs may be sorted

    def mean_hits(penalty: float) -> float:
        chances = _linear(learnt[~validation], features[~validation], learnt[validation], penalty)
        return float(_hits(chances, top, features[validation]).mean())

    return _linear(learnt, features, private, max(_PENALTIES, key=mean_hits))


def _linear(learnt: Floats, features: Any, queries: Floats, penalty: float) -> Floats:
    """Return ridge predictions with an intercept, the frequencies of the words."""
    frequency = np.asarray(features.mean(axis=0)).ravel()
    gram = learnt.T @ learnt + penalty * len(learnt) * np.eye(learnt.shape[1])
    across = np.asarray((features.T @ learnt).T) - learnt.sum(axis=0)[:, None] * frequency
    chances: Floats = queries @ np.linalg.solve(gram, across) + frequency
    return chances


def _hits(chances: Floats, top: int, bags: Any) -> Floats:
    """Return the (n,) numbers of the ``top`` likeliest words that are in the bag."""
    named = np.argpartition(-chances, top - 1, axis=1)[:, :top]
    result = np.empty(len(named))
    for start in range(0, len(named), _NAMED_AT_ONCE):
        position = slice(start, start + _NAMED_AT_ONCE)
        result[position] = np.take_along_axis(bags[position].toarray(), named[position], axis=1).sum(axis=1)
    return result
