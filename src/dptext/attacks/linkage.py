"""Linkage of private rows to their originals and authors, and of names to secrets in word vectors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import (
    AttackScore,
    Floats,
    Ids,
    Learner,
    Rows,
    are_texts,
    as_codes,
    as_ids,
    as_people,
    as_rows,
    as_texts,
    optional,
    random_state,
    share_of_rows,
    unit_rows,
    words_to_numbers,
)
from dptext.errors import ParameterError
from dptext.intervals import mean_of_people, mean_over_runs, share
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.validation import check_choice, check_int

Pairs: TypeAlias = Callable[[int, int], npt.NDArray[Any]]
"""(start, stop) -> (stop - start, originals): scores of some private rows; a higher score means likelier."""

_ENTRIES = 1 << 21  # scores in memory per thread
_LEAST_ROWS = 8
_EPS = float(np.finfo(np.float64).eps)
_NEAR = 1e-12  # relative rounding error of a product of rows


def rank_scores(pairs: Pairs | npt.NDArray[Any], true: Ids, originals: int, bits: RandomBits) -> Ids:
    """Return (m,) ranks of the true candidates (0 is the highest score); ties are broken at random."""
    before, equal = np.empty_like(true), np.empty_like(true)
    step = max(_LEAST_ROWS, _ENTRIES // originals)

    def look(start: int) -> None:
        stop = min(start + step, true.size)
        block = np.asarray(pairs(start, stop) if callable(pairs) else pairs[start:stop])
        if block.shape != (stop - start, originals):
            raise ParameterError(f"scores must have shape {(stop - start, originals)}, got {block.shape}")
        true_scores = block[np.arange(stop - start), true[start:stop], None]
        ahead, similar = block > true_scores, block == true_scores
        # all three comparisons are false for NaN
        if not (ahead | similar | (block < true_scores)).all():
            raise ParameterError("scores must be numbers or minus infinity, got NaN")
        if isinstance(pairs, Similarity):
            pairs.settle(start, true[start:stop], block, ahead, similar)
        before[start:stop], equal[start:stop] = ahead.sum(axis=1), similar.sum(axis=1)

    for_each_block(look, range(0, true.size, step))
    return before + bits.below(equal.astype(np.uint64)).astype(np.int64)


def similarities(
    original: Rows, private: Rows, *, similarity: str = "cosine", names: tuple[str, str] = ("original", "private")
) -> tuple[Similarity, tuple[int, int]]:
    """Return the scores of all pairs as a function of blocks, and (private rows, originals); see `linkage`."""
    check_choice("similarity", similarity, ("cosine", "dot", "euclidean"))
    left, right = side_by_side(original, private, names=names)
    if similarity == "euclidean" and not isinstance(left, np.ndarray):
        raise ParameterError("similarity must be 'cosine' or 'dot' for texts, got 'euclidean'")
    return Similarity(left, right, similarity), (right.shape[0], left.shape[0])


def side_by_side(original: Rows, private: Rows, *, names: tuple[str, str] = ("original", "private")) -> tuple[Any, Any]:
    """Return two matrices with the same columns: numbers unchanged, words weighted by tf-idf over both sides."""
    if are_texts(original) != are_texts(private):
        raise ParameterError(f"{names[1]} and {names[0]} must both be texts or bags of words, or both rows of numbers")
    if are_texts(original):
        left, right = as_texts(names[0], original), as_texts(names[1], private)
        both = words_to_numbers(pairs=False).fit_transform(left + right)
        return both[: len(left)], both[len(left) :]
    first, second = as_rows(names[0], original), as_rows(names[1], private)
    if first.shape[1] != second.shape[1]:
        raise ParameterError(f"{names[1]} must have {first.shape[1]:,} columns as {names[0]}, got {second.shape[1]:,}")
    return first, second


class Similarity:
    """Scores of private rows (right) and candidates (left): (start, stop) -> (stop - start, candidates) float64."""

    def __init__(self, left: Any, right: Any, similarity: str) -> None:
        self._unit, self._by_distance = similarity == "cosine", similarity != "dot"
        self._weight = 0.0
        if self._unit:
            left, right = unit_rows(left), unit_rows(right)
        elif isinstance(left, np.ndarray):
            if self._by_distance:  # -|a - b|^2 / 2 without a term that is equal for all candidates of a row
                centre = np.median(left, axis=0)  # squares are smaller around the median, which is robust to huge rows
                left, right, self._weight = left - centre, right - centre, 0.5
            unit = 2.0 ** np.frexp(np.abs(left).max())[1]  # exact; no square overflows
            left, right = left / unit, right / unit
        self._left, self._right = left, right
        self._squares = _products(left, left)
        self._lengths = np.sqrt(_products(right, right))[:, None]

    def __call__(self, start: int, stop: int) -> Floats:
        product = self._right[start:stop] @ self._left.T
        scores: Floats = product if isinstance(product, np.ndarray) else product.toarray()
        scores -= self._weight * self._squares
        return scores

    def settle(
        self, start: int, true: Ids, scores: Floats, ahead: npt.NDArray[np.bool_], tied: npt.NDArray[np.bool_]
    ) -> None:
        """Compare the true candidate with nearly equal ones by differences of rows; update ``ahead`` and ``tied``."""
        index = np.arange(true.size)
        true_scores = scores[index, true, None]
        near = _NEAR * (self._lengths[start : start + true.size] * np.sqrt(self._squares) + self._squares)
        close = np.abs(scores - true_scores) <= near + near[index, true, None]
        if not isinstance(self._left, np.ndarray):
            close &= (scores != 0) | (true_scores != 0)  # texts without a common word are ties
        close[index, true] = False
        rows, columns = np.nonzero(close)
        step = max(1, _ENTRIES // self._left.shape[1])
        for first in range(0, rows.size, step):
            pair = rows[first : first + step], columns[first : first + step]
            lead, doubt = self._lead(start + pair[0], pair[1], true[pair[0]])
            ahead[pair], tied[pair] = lead > doubt, np.abs(lead) <= doubt

    def _lead(self, rows: Ids, ahead: Ids, behind: Ids) -> tuple[Floats, Floats]:
        """Return the (k,) leads of the first candidates' scores over the second, and bounds on the rounding errors."""
        private, one, other = self._right[rows], self._left[ahead], self._left[behind]
        plain = _products(one - other, private)
        if not self._by_distance:
            return plain, np.zeros(plain.size)
        # |b - a'|^2 - |b - a|^2 = (a - a') . ((b - a) + (b - a')), if all lengths are above 0
        seen = (private - one) + (private - other)
        lead = _products(one - other, seen)
        if not self._unit:
            return lead, np.zeros(lead.size)
        directed = (self._lengths[rows, 0] > 0) & (self._squares[ahead] > 0) & (self._squares[behind] > 0)
        # rows of length 1 have rounding errors: equal directions are ties
        return np.where(directed, lead, plain), 4 * _EPS * np.sqrt(_products(seen, seen))


def _products(first: Any, second: Any) -> Floats:
    """Return the (n,) scalar products of corresponding rows."""
    product = first * second if isinstance(first, np.ndarray) else first.multiply(second)
    return np.asarray(product.sum(axis=1), dtype=np.float64).ravel()


def linkage(
    original: Rows,
    private: Rows,
    *,
    truth: npt.ArrayLike | None = None,
    similarity: str = "cosine",
    top: Sequence[int] = (1, 10),
    people: Iterable[Hashable] | None = None,
    seed: int | None = None,
) -> list[AttackScore]:
    """Link private rows to originals by their similarity.

    Args:
        original: (n, d) numbers; or n texts, or n bags of words (weighted by tf-idf over both sides).
        private: (m, d) of the same kind.
        truth: (m,) the index of each private row's original; None: row i comes from row i.
        similarity: ``"cosine"``, ``"dot"`` or ``"euclidean"`` (nearer means likelier).
        top: numbers of candidates that the attacker may name.
        people: (m,) the person of each private row, for the intervals; None: each row has a different person.
        seed: seed of ties, which are broken at random as an attacker must.

    Returns:
        The proportion of rows whose original is among the first k, for each k below n, and the mean reciprocal rank.
        On uninformative output, `AttackScore.succeeded` is a false alarm with a probability of about 2.5% per score.

    Raises:
        ParameterError: NaN, no row, unequal lengths, an unknown similarity; the message names the argument.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> found = linkage(["a cat sat", "taxes are due", "no dogs"], ["the cat sat", "taxes were due", "dogs"], seed=1)
    >>> print(found[0])
    linkage (cosine): share linked at first guess 1.000 [0.292, 1.000] against 0.333 (chance)
    """
    pairs, shape = similarities(original, private, similarity=similarity)
    options: dict[str, Any] = {"truth": truth, "top": top, "people": people, "seed": seed}
    return linkage_of_scores(pairs, shape=shape, attack=f"linkage ({similarity})", **options)


def linkage_of_scores(
    scores: npt.ArrayLike | Pairs,
    *,
    shape: tuple[int, int] | None = None,
    truth: npt.ArrayLike | None = None,
    top: Sequence[int] = (1, 10),
    people: Iterable[Hashable] | None = None,
    seed: int | None = None,
    attack: str = "linkage",
) -> list[AttackScore]:
    """Link private rows to originals by any score, such as a log-likelihood.

    Args:
        scores: (m private, n originals), higher means likelier, minus infinity if impossible; or a function
            (start, stop) -> scores of these private rows.
        shape: (m, n), if the scores are a function.
        truth, top, people, seed: as in `linkage`.
        attack: the name of the attack.

    Raises:
        ParameterError: NaN among the scores, another shape; a true original out of range.
    """
    if not callable(scores):
        scores = np.asarray(scores)
        if scores.ndim != 2 or 0 in scores.shape or scores.dtype.kind not in "fiu":
            raise ParameterError(f"scores must be a matrix (private, originals) of numbers, got shape {scores.shape}")
        shape = (scores.shape[0], scores.shape[1])
    if shape is None or shape[0] < 1 or shape[1] < 2:
        raise ParameterError(f"shape must be (private rows, originals), at least (1, 2), got {shape}")
    rows, originals = shape
    if not top:
        raise ParameterError("top must contain at least one integer, got none")
    top = [check_int("each of top", k, minimum=1) for k in top]
    if truth is None and rows > originals:
        raise ParameterError(f"truth is required, because there are {rows:,} private rows and {originals:,} originals")
    true = np.arange(rows) if truth is None else as_ids("truth", truth, originals, rows)
    people = None if people is None else list(people)
    ranks = rank_scores(scores, true, originals, RandomBits(seed))
    scored = [
        AttackScore(
            attack=attack,
            measure="share linked at first guess" if k == 1 else f"share linked within {k} guesses",
            score=share_of_rows(ranks < k, people),
            baseline=k / originals,
            baseline_name="chance",
            detail=f"{rows:,} private rows, {originals:,} originals to choose from",
        )
        for k in sorted({k for k in top if k < originals} | {1})
    ]
    scored.append(
        AttackScore(
            attack=attack,
            measure="mean reciprocal rank",
            score=mean_of_people(1.0 / (ranks + 1), as_people(people, rows)),
            baseline=float((1.0 / np.arange(1, originals + 1)).sum() / originals),
            baseline_name="chance",
            detail=f"median rank of the true original: {int(np.median(ranks)) + 1:,} of {originals:,}",
        )
    )
    return scored


def author_reidentification(
    known: Rows,
    known_authors: Iterable[Hashable],
    private: Rows,
    private_authors: Iterable[Hashable],
    *,
    attacker: Literal["centroid", "linear"] = "linear",
    top: Sequence[int] = (1, 5),
    seed: int | None = None,
) -> list[AttackScore]:
    """Identify the authors of private rows from their other rows.

    Args:
        known: (n, d) numbers, n texts or n bags of words that the attacker knows, private in the same way or not.
        known_authors: (n,) the author of each known row, at least two people.
        private: (m, d), m texts or m bags, different from the known ones.
        private_authors: (m,) the true authors; each has a known row.
        attacker: ``"linear"`` (logistic regression) or ``"centroid"`` (the author whose mean direction is nearest).
        top: numbers of people that the attacker may name.
        seed: seed of ties and training.

    Returns:
        The proportion of rows whose author is among the first k, for each k below the number of authors, with intervals
        over the authors. The baseline always names the authors with the most known rows.

    Raises:
        ParameterError: fewer than two authors, a private row of an unknown author, NaN; the message names the argument.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> known, authors = ["cats and cats", "a cat", "tax law", "the tax"], ["ann", "ann", "bob", "bob"]
    >>> print(author_reidentification(known, authors, ["my cats", "tax it"], ["ann", "bob"], seed=1)[0])
    author re-identification (linear): share named at first guess 1.000 [0.158, 1.000] against 0.500 (authors ...
    """
    check_choice("attacker", attacker, ("centroid", "linear"))
    left, right = side_by_side(known, private, names=("known", "private"))
    names = list(known_authors)
    codes, people = as_codes("known_authors", names, left.shape[0])
    code_of = dict(zip(names, codes.tolist(), strict=True))
    authors = private_authors.tolist() if isinstance(private_authors, np.ndarray) else list(private_authors)
    if len(authors) != right.shape[0]:
        raise ParameterError(f"private_authors must have one entry per row ({right.shape[0]:,}), got {len(authors):,}")
    unknown = [row for row, name in enumerate(authors) if not isinstance(name, Hashable) or name not in code_of]
    if unknown:
        raise ParameterError(
            f"private_authors: the author of row {unknown[0]} has no known row. Drop such rows (the attack "
            "assumes a closed world)"
        )
    true = np.array([code_of[name] for name in authors], dtype=np.int64)
    if len(np.unique(true)) < 2:
        raise ParameterError("private_authors must have at least two people, for an interval over people")
    bits = RandomBits(seed)
    pairs: Pairs | Floats
    if attacker == "centroid":
        entries = (np.ones(codes.size), (codes, np.arange(codes.size)))
        members = optional("scipy.sparse").csr_matrix(entries, shape=(people, codes.size))
        pairs = Similarity(members @ unit_rows(left), right, "cosine")
    else:
        learner = Learner("linear", random_state(bits)).fit(left, codes)
        pairs = learner.confidences(right)
    ranks = rank_scores(pairs, true, people, bits)
    counts = np.bincount(codes, minlength=people)
    ahead = np.less.outer(counts, counts).sum(axis=1)[true]
    equal = np.equal.outer(counts, counts).sum(axis=1)[true]
    return [
        AttackScore(
            attack=f"author re-identification ({attacker})",
            measure="share named at first guess" if k == 1 else f"share named within {k} guesses",
            score=mean_of_people(ranks < k, true),
            # among the k authors with the most known rows, ties broken at random
            baseline=float(np.clip((k - ahead) / equal, 0.0, 1.0).mean()),
            baseline_name="authors with the most known rows",
            detail=f"{people:,} authors, {left.shape[0]:,} known and {right.shape[0]:,} private rows",
        )
        for k in sorted({k for k in top if 1 <= k < people} | {1})
    ]


NO_ROW = -1
"""Row of a word without a vector."""


@dataclass(frozen=True, eq=False)
class SecretRanks:
    """Rank of each secret among the neighbours of its name, by cosine; 1 is the nearest."""

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
    """Return the ranks of secrets among the neighbours of their names; see `nearest_secrets` for the arguments."""
    points, name, secret = _points_and_pairs(vectors, names, secrets)
    if name.size != secret.size:
        raise ParameterError(f"secrets must have one entry for each of {name.size:,} names, got {secret.size:,}")
    kind = np.zeros(name.size, dtype=np.int64) if kinds is None else as_codes("kinds", kinds, name.size)[0]
    directed = np.asarray(points.any(axis=1))
    known = (name != NO_ROW) & (secret != NO_ROW) & directed[name] & directed[secret]
    bits = RandomBits(seed)
    among_words, among_secrets, choices = (np.zeros(name.size, dtype=np.int64) for _ in range(3))
    out = np.array(sorted({*left_out}), dtype=np.int64)

    def score_words(start: int, stop: int) -> Floats:
        rows = np.flatnonzero(known)[start:stop]
        result: Floats = points[name[rows]] @ points.T
        result[:, out] = -np.inf
        result[np.arange(rows.size), name[rows]] = -np.inf
        return result

    if known.any():
        among_words[known] = 1 + rank_scores(score_words, secret[known], len(points), bits)
    for entry in np.unique(kind).tolist():
        rows_of_kind = np.flatnonzero(known & (kind == entry))
        candidates = np.unique(secret[(kind == entry) & (secret != NO_ROW)])
        choices[kind == entry] = candidates.size
        if rows_of_kind.size:
            true = np.searchsorted(candidates, secret[rows_of_kind])
            cosines = points[name[rows_of_kind]] @ points[candidates].T
            among_secrets[rows_of_kind] = 1 + rank_scores(cosines, true, candidates.size, bits)
    return SecretRanks(known, among_words, among_secrets, choices, words=len(points) - 1 - out.size)


def nearest_secrets(
    vectors: npt.ArrayLike,
    names: Sequence[int] | Ids,
    secrets: Sequence[int] | Ids,
    *,
    kinds: Iterable[Hashable] | None = None,
    left_out: Sequence[int] = (),
    public: npt.ArrayLike | None = None,
    top: int = 10,
    seed: int | None = None,
    attack: str = "neighbours",
) -> list[AttackScore]:
    """Measure whether the secret that belongs to a name is its nearest secret, or among its nearest words.

    Pairs with a word without a vector are omitted; ``detail`` counts them. With fewer than four pairs of four
    different secrets, no attack can be significant: use the positive control `nearest_secrets_known`.

    Args:
        vectors: (V, d) vectors of words.
        names: (pairs,) the row of each name; `NO_ROW` if it has none.
        secrets: (pairs,) the row of the secret of each name; `NO_ROW` if it has none.
        kinds: (pairs,) the kind of each secret, such as "disease", among which an attacker chooses; None: one kind.
        left_out: rows that are not words, such as the row of ``"<unk>"``.
        public: (V, d') vectors of the same words that were not learned from these texts (prior knowledge).
        top: number of nearest words that the attacker may name.
        seed: seed of ties, which are broken at random as an attacker must.
        attack: the name of the attack.

    Returns:
        Two scores, with intervals over pairs; with ``public`` a third: the bits by which secrets are nearer, the mean
        of log2(rank before / rank) over the pairs with both vectors.

    Raises:
        ParameterError: no pair with two vectors, rows out of range, NaN; a kind with a single secret.

    >>> vectors = [[1, 0, 0], [0.9, 0.4, 0], [0, 1, 0], [0, 0.9, 0.4], [0, 0, 1], [0.4, 0, 0.9]]
    >>> print(nearest_secrets(vectors, names=[0, 2, 4], secrets=[1, 3, 5], top=1)[0])
    neighbours: nearest secret is the right one 1.000 [0.292, 1.000] against 0.333 (chance)
    """
    options: dict[str, Any] = {"kinds": None if kinds is None else list(kinds), "left_out": left_out, "seed": seed}
    result = secret_ranks(vectors, names, secrets, **options)
    known = result.known
    if not known.any():
        raise ParameterError("at least one pair of a name and a secret must have vectors for both words")
    choices = result.choices[known]
    if choices.min() < 2:
        raise ParameterError("each kind must have at least two secrets")
    top = check_int("top", top, minimum=1, maximum=max(1, result.words - 1))
    median = int(np.median(result.among_words[known]))
    measures = (
        ("nearest secret is the right one", result.among_secrets <= 1, float((1 / choices).mean())),
        (f"secret among {top:,} nearest words", result.among_words <= top, top / result.words),
    )
    scores = [
        AttackScore(
            attack=attack,
            measure=measure,
            score=replace(share(int(hits[known].sum()), int(known.sum())), of="pairs"),
            baseline=baseline,
            baseline_name="chance",
            detail=f"{known.sum():,} of {known.size:,} pairs have vectors; the median rank of the secret is {median:,} "
            f"of {result.words:,} words",
        )
        for measure, hits, baseline in measures
    ]
    before = result if public is None else secret_ranks(public, names, secrets, **options)
    both = known & before.known
    if public is None or both.sum() < 2:
        return scores
    earlier = before.among_words[both]
    nearer = AttackScore(
        attack=attack,
        measure="bits nearer than before",
        score=replace(mean_over_runs(np.log2(earlier / result.among_words[both])), of="pairs"),
        baseline=0.0,
        baseline_name="public vectors",
        detail=f"{both.sum():,} pairs also have public vectors, where the median rank of the secret is "
        f"{int(np.median(earlier)):,}",
    )
    return [*scores, nearer]


def nearest_secrets_known(vectors: npt.ArrayLike, names: Sequence[int] | Ids, secrets: Sequence[int] | Ids) -> Floats:
    """Return the vectors with each secret moved to its name: the positive control of `nearest_secrets`.

    If the attack does not succeed on these vectors, there are too few pairs for a result.

    >>> nearest_secrets_known([[1, 0, 0], [0, 1, 0], [0, 0, 1]], names=[0], secrets=[2]).round(2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.89, 0.0, 0.45]]
    """
    points, name, secret = _points_and_pairs(vectors, names, secrets)
    present = (name != NO_ROW) & (secret != NO_ROW)
    points[secret[present]] = unit_rows(points[name[present]] + points[secret[present]] / 2)
    return points


def _points_and_pairs(vectors: npt.ArrayLike, names: npt.ArrayLike, secrets: npt.ArrayLike) -> tuple[Floats, Ids, Ids]:
    rows = as_rows("vectors", vectors)
    if len(rows) < 3:
        raise ParameterError(f"vectors must have at least three words, got {len(rows)}")
    points = np.array(unit_rows(rows))
    name, secret = (
        as_ids(label, ids, len(points), minimum=NO_ROW) for label, ids in (("names", names), ("secrets", secrets))
    )
    return points, name, secret
