"""Linkage: which original does a private row belong to, and which known person wrote it?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import (
    AttackScore,
    Learner,
    Rows,
    are_texts,
    as_codes,
    as_ids,
    as_people,
    as_rows,
    as_texts,
    lengths_of,
    optional,
    random_state,
    share_of_rows,
    unit_rows,
    words_to_numbers,
)
from dptext.errors import ParameterError
from dptext.intervals import CONFIDENCE, mean_of_people
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.validation import check_choice, check_int

Ids: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Pairs: TypeAlias = Callable[[int, int], npt.NDArray[Any]]
"""(start, stop) -> (stop - start, originals): scores of some private rows; higher means likelier."""

_ENTRIES = 1 << 21  # scores in memory at a time, for each thread
_LEAST_ROWS = 8
_EPS = float(np.finfo(np.float64).eps)
_LEAST = 1e-290  # products below have lost digits, or are 0


def rank_scores(pairs: Pairs, true: Ids, originals: int, bits: RandomBits) -> Ids:
    """(m,) how many candidates stand before the true one (0: it is named first); ties in random order."""
    before, equal = np.empty_like(true), np.empty_like(true)
    step = max(_LEAST_ROWS, _ENTRIES // originals)

    def look(start: int) -> None:
        stop = min(start + step, true.size)
        block = np.asarray(pairs(start, stop))
        if block.shape != (stop - start, originals):
            raise ParameterError(f"scores must have shape {(stop - start, originals)} here, got {block.shape}")
        true_scores = block[np.arange(stop - start), true[start:stop], None]
        ahead, similar = block > true_scores, block == true_scores
        # a NaN is neither above nor below nor equal: where there is one, these do not add up
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
    """Scores of all pairs as a function of blocks, and (private rows, originals); see `dptext.attacks.linkage`."""
    check_choice("similarity", similarity, ("cosine", "dot", "euclidean"))
    left, right = side_by_side(original, private, names=names)
    sparse = hasattr(left, "tocsr") or hasattr(right, "tocsr")
    if sparse:
        if similarity == "euclidean":
            raise ParameterError("similarity must be 'cosine' or 'dot' for sparse rows, got 'euclidean'")
        left, right = (optional("scipy.sparse").csr_matrix(entry) for entry in (left, right))
    return (_Sparse if sparse else _Dense)(left, right, similarity), (right.shape[0], left.shape[0])


def side_by_side(original: Rows, private: Rows, *, names: tuple[str, str] = ("original", "private")) -> tuple[Any, Any]:
    """Two matrices of the same columns: numbers as they are, words weighted by tf-idf over both sides."""
    if are_texts(original) != are_texts(private):
        raise ParameterError(
            f"{names[1]} must be of the kind of {names[0]}: texts or bags of words, or rows of numbers"
        )
    if are_texts(original):
        left, right = as_texts(names[0], original), as_texts(names[1], private)
        both = words_to_numbers(pairs=False).fit_transform(left + right)
        return both[: len(left)], both[len(left) :]
    first, second = as_rows(names[0], original), as_rows(names[1], private)
    if first.shape[1] != second.shape[1]:
        raise ParameterError(
            f"{names[1]} must have as many numbers in a row as {names[0]}, {first.shape[1]:,}, got {second.shape[1]:,}"
        )
    return first, second


class Similarity(ABC):
    """Scores of private rows (right) and candidates (left): (start, stop) -> (stop - start, candidates) float64."""

    def __init__(self, left: Any, right: Any, similarity: str) -> None:
        self._by_distance = similarity != "dot"
        self._unit = similarity == "cosine"
        self._left, self._right = (unit_rows(left), unit_rows(right)) if self._unit else (left, right)

    @abstractmethod
    def __call__(self, start: int, stop: int) -> Floats:
        """Scores as a product of matrices gives them."""

    @abstractmethod
    def rounding(self, start: int, stop: int) -> tuple[Floats, Floats]:
        """(how far each of these scores may be off by rounding, the product of both lengths), both of their shape."""

    @property
    @abstractmethod
    def _kinds(self) -> Ids:
        """(candidates,) equal numbers for equal rows."""

    @abstractmethod
    def _leads(self, rows: Ids, ahead: Ids, behind: Ids) -> tuple[Floats, Floats]:
        """(k,) by how much the first candidate's score lies above the second's, and how far this may be off."""

    def settle(
        self, start: int, true: Ids, scores: Floats, ahead: npt.NDArray[np.bool_], tied: npt.NDArray[np.bool_]
    ) -> None:
        """Compare the true candidate with those within rounding of it by differences of rows; changes the last two."""
        places = np.arange(true.size)
        rounding, lengths = self.rounding(start, start + true.size)
        true_scores = places, true
        close = np.abs(scores - scores[true_scores][:, None]) <= rounding + rounding[true_scores][:, None]
        # rows that share no column have a product of exactly 0, unless it was too small to be another number
        disjoint = (scores == 0) & (lengths > _LEAST)
        close &= ~(disjoint & disjoint[true_scores][:, None])
        close[true_scores] = False
        rows, columns = np.nonzero(close)
        if not rows.size:
            return
        same = self._kinds[columns] == self._kinds[true[rows]]
        ahead[rows, columns], tied[rows, columns] = False, same
        rows, columns = rows[~same], columns[~same]
        step = max(1, _ENTRIES // self._left.shape[1])
        for first in range(0, rows.size, step):
            position = rows[first : first + step], columns[first : first + step]
            lead, doubt = self._leads(start + position[0], position[1], true[position[0]])
            ahead[position], tied[position] = lead > doubt, np.abs(lead) <= doubt


class _Dense(Similarity):
    """Rows of numbers, of any scale."""

    def __init__(self, left: Floats, right: Floats, similarity: str) -> None:
        super().__init__(left, right, similarity)
        first, second = self._left, self._right
        if similarity == "euclidean":
            centre = np.median(first, axis=0)  # distances stay, squares are smaller, and no huge row moves it
            first, second = first - centre, second - centre
        # candidates on one scale, and each private row on its own, which keeps its order: on one scale for
        # both, a single huge row would push all others below the least float
        scale = max(float(np.abs(first).max()), np.finfo(np.float64).tiny)
        second = second / scale
        true_scores = np.maximum(np.abs(second).max(axis=1, keepdims=True), 1.0)
        self._first, self._second = np.ascontiguousarray(first / scale), np.ascontiguousarray(second / true_scores)
        # -|a - b|^2 / 2 but for a term that every candidate of a row shares
        self._weight = 1.0 / true_scores if similarity == "euclidean" else np.zeros_like(true_scores)
        self._squares = (self._first**2).sum(axis=1)
        self._lengths = np.sqrt((self._second**2).sum(axis=1, keepdims=True)), np.sqrt(self._squares)

    def __call__(self, start: int, stop: int) -> Floats:
        product: Floats = self._second[start:stop] @ self._first.T
        product -= self._weight[start:stop] / 2 * self._squares
        return product

    def rounding(self, start: int, stop: int) -> tuple[Floats, Floats]:
        lengths = self._lengths[0][start:stop] * self._lengths[1]
        # n products and their sum are off by at most n eps |a| |b| (Higham 2002, section 3.1); the centre adds to both
        share = 2 * (self._first.shape[1] + 4) * _EPS
        return share * (lengths + self._weight[start:stop] * self._squares) + _LEAST, lengths

    @cached_property
    def _kinds(self) -> Ids:
        rows = np.ascontiguousarray(self._left + 0.0)  # minus zero is zero
        whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        return np.unique(whole, return_inverse=True)[1].astype(np.int64)

    def _leads(self, rows: Ids, ahead: Ids, behind: Ids) -> tuple[Floats, Floats]:
        # halves: the difference of two huge numbers is no infinity
        private, one, other = self._right[rows] / 2, self._left[ahead] / 2, self._left[behind] / 2
        distance = one - other
        # |b - a'|^2 - |b - a|^2 = (a - a') . ((b - a) + (b - a'))
        seen = (private - one) + (private - other) if self._by_distance else private
        if self._unit:  # a row without direction is at right angles to all
            without = ~(private.any(axis=1) & one.any(axis=1) & other.any(axis=1))
            seen[without] = private[without]
        distance, seen = _scaled(distance), _scaled(seen)
        lead: Floats = (distance * seen).sum(axis=1)
        if not self._unit:
            return lead, np.zeros(lead.size)
        # rows of length 1 are known to rounding only: of equal directions none is nearer
        largest = np.abs(one - other).max(axis=1)
        return lead, 4 * _EPS * np.sqrt((seen**2).sum(axis=1)) / np.where(largest > 0, largest, 1.0)


class _Sparse(Similarity):
    """Rows of counts or weights, most of them 0."""

    def __init__(self, left: Any, right: Any, similarity: str) -> None:
        super().__init__(left, right, similarity)
        self._across = self._left.T.tocsr()
        self._lengths = lengths_of(self._right)[:, None], lengths_of(self._left)
        self._most = int(np.diff(self._right.indptr).max())

    def __call__(self, start: int, stop: int) -> Floats:
        result: Floats = (self._right[start:stop] @ self._across).toarray()
        return result

    def rounding(self, start: int, stop: int) -> tuple[Floats, Floats]:
        lengths = self._lengths[0][start:stop] * self._lengths[1]
        return 2 * (self._most + 4) * _EPS * lengths + _LEAST, lengths

    @cached_property
    def _kinds(self) -> Ids:
        rows = self._left.sorted_indices()
        kinds: dict[tuple[bytes, bytes], int] = {}
        rows.eliminate_zeros()
        bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        keys = ((rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in bounds)
        return np.array([kinds.setdefault(key, len(kinds)) for key in keys], dtype=np.int64)

    def _leads(self, rows: Ids, ahead: Ids, behind: Ids) -> tuple[Floats, Floats]:
        private, one, other = self._right[rows], self._left[ahead], self._left[behind]
        distance = one - other
        seen = private
        if self._by_distance:
            whole = lengths_of(private) * lengths_of(one) * lengths_of(other) > 0
            seen = private + (private - one - other).multiply(whole[:, None]).tocsr()
        lead = np.asarray(distance.multiply(seen).sum(axis=1)).ravel()
        return lead, 4 * _EPS * lengths_of(seen) if self._unit else np.zeros(lead.size)


def _scaled(rows: Floats) -> Floats:
    """Each row divided by its largest number, so that products neither vanish nor overflow."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled: Floats = rows / np.where(largest > 0, largest, 1.0)
    return scaled


def linkage(
    original: Rows,
    private: Rows,
    *,
    truth: npt.ArrayLike | None = None,
    similarity: str = "cosine",
    top: Sequence[int] = (1, 10),
    people: Iterable[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> list[AttackScore]:
    """Link private rows to originals by their similarity.

    Args:
        original: (n, d) numbers, dense or sparse; or n texts, or n bags of words (weighted by tf-idf, which both sides
            show).
        private: (m, d) of the same kind.
        truth: (m,) the row of the original that each private row was made from; None: row i from row i.
        similarity: ``"cosine"``, ``"dot"`` or ``"euclidean"`` (the nearer, the likelier).
        top: how many candidates the attacker may name.
        people: (m,) whose private row each is, for the intervals; None: everybody has one.
        confidence: of the intervals. On output that says nothing, `AttackScore.succeeded` is a false alarm with a
            probability of at most about (1 - confidence) / 2 for each score.
        seed: of ties, which are broken at random as an attacker must.

    Returns:
        How often the true one is among the first k, for each k below n, and the mean reciprocal rank.

    Raises:
        ParameterError: NaN, no row, rows of other lengths, another similarity; the argument is named.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> found = linkage(["a cat sat", "taxes are due", "no dogs"], ["the cat sat", "taxes were due", "dogs"], seed=1)
    >>> print(found[0])
    linkage (cosine): share linked at first guess 1.000 [0.292, 1.000] against 0.333 (chance)
    """
    pairs, shape = similarities(original, private, similarity=similarity)
    return linkage_of_scores(
        pairs,
        shape=shape,
        truth=truth,
        top=top,
        people=people,
        confidence=confidence,
        seed=seed,
        attack=f"linkage ({similarity})",
    )


def linkage_of_scores(
    scores: npt.ArrayLike | Pairs,
    *,
    shape: tuple[int, int] | None = None,
    truth: npt.ArrayLike | None = None,
    top: Sequence[int] = (1, 10),
    people: Iterable[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
    attack: str = "linkage",
) -> list[AttackScore]:
    """Link private rows to originals by any score, such as a log-likelihood (`dptext.attacks.sequence_likelihoods`).

    Args:
        scores: (m private, n originals), higher means likelier, minus infinity where impossible; or a function
            (start, stop) -> the scores of these private rows.
        shape: (m, n), where the scores are a function.
        truth, top, people, confidence, seed: as in `linkage`.
        attack: what to call it.

    Raises:
        ParameterError: NaN among the scores, another shape; a true original that is none.
    """
    pairs, (rows, originals) = _as_pairs(scores, shape)
    if originals < 2:
        raise ParameterError(f"original must hold at least two candidates, got {originals}: nothing to choose from")
    top = [check_int("each of top", k, minimum=1) for k in top]
    if not top:
        raise ParameterError("top must hold at least one integer, got none")
    if truth is None and rows > originals:
        raise ParameterError(f"truth must be given: there are {rows:,} private rows and {originals:,} originals")
    true = np.arange(rows) if truth is None else as_ids("truth", truth, originals, rows)
    people = None if people is None else list(people)
    bits = RandomBits(seed)
    ranks = rank_scores(pairs, true, originals, bits)
    scored = [
        AttackScore(
            attack=attack,
            measure="share linked at first guess" if k == 1 else f"share linked within {k} guesses",
            score=share_of_rows(ranks < k, people, confidence),
            baseline=k / originals,
            baseline_name="chance",
            detail=f"{rows:,} private rows, {originals:,} originals to choose from",
        )
        for k in sorted({k for k in top if k < originals} | {1})
    ]
    reciprocal = 1.0 / (ranks + 1)
    scored.append(
        AttackScore(
            attack=attack,
            measure="mean reciprocal rank",
            score=mean_of_people(reciprocal, as_people(people, rows), confidence=confidence),
            baseline=float((1.0 / np.arange(1, originals + 1)).sum() / originals),
            baseline_name="chance",
            detail=f"the true one stands at place {int(np.median(ranks)) + 1:,} of {originals:,} in the median",
        )
    )
    return scored


def _as_pairs(scores: npt.ArrayLike | Pairs, shape: tuple[int, int] | None) -> tuple[Pairs, tuple[int, int]]:
    if callable(scores):
        if shape is None or min(shape) < 1:
            raise ParameterError(f"shape must be (private rows, originals) where scores are a function, got {shape}")
        return scores, shape
    table = np.asarray(scores)
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiu":
        raise ParameterError(f"scores must be a matrix (private, originals) of numbers, got shape {table.shape}")
    return lambda start, stop: table[start:stop], (table.shape[0], table.shape[1])


def author_reidentification(
    known: Rows,
    known_authors: Iterable[Hashable],
    private: Rows,
    private_authors: Iterable[Hashable],
    *,
    attacker: Literal["centroid", "linear"] = "linear",
    top: Sequence[int] = (1, 5),
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> list[AttackScore]:
    """Name the authors of private rows from other rows of theirs.

    Args:
        known: (n, d) numbers, n texts or n bags of words that the attacker holds; made private in the same way or
            not, as a real attacker would have them.
        known_authors: (n,) whose each is, at least two people.
        private: (m, d), m texts or m bags, none of them among the known ones.
        private_authors: (m,) the truth; each of them has a known row.
        attacker: ``"linear"`` (logistic regression) or ``"centroid"`` (the author whose mean direction is nearest by
            cosine).
        top: how many people the attacker may name.
        confidence: of the intervals, over the people of the private rows. On output that says nothing,
            `AttackScore.succeeded` is a false alarm with a probability of about (1 - confidence) / 2.
        seed: of ties and training.

    Returns:
        The share of rows whose author is among the first k, for each k below the number of authors. The baseline always
        names the authors with the most known rows.

    Raises:
        ParameterError: fewer than two authors, a private row of somebody unknown, NaN; the argument is named.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> known, authors = ["cats and cats", "a cat", "tax law", "the tax"], ["ann", "ann", "bob", "bob"]
    >>> print(author_reidentification(known, authors, ["my cats", "tax it"], ["ann", "bob"], seed=1)[0])
    author re-identification (linear): share named at first guess 1.000 [0.158, 1.000] against 0.500 (authors ...
    """
    check_choice("attacker", attacker, ("centroid", "linear"))
    left, right = side_by_side(known, private, names=("known", "private"))
    names = list(known_authors)
    codes, people = as_codes("known_authors", names, left.shape[0])
    if people < 2:
        raise ParameterError(f"known_authors must be at least two people, got {people}")
    true = _codes_of(private_authors, dict(zip(names, codes.tolist(), strict=True)), right.shape[0])
    bits = RandomBits(seed)
    pairs = _centroids(left, codes, people, right) if attacker == "centroid" else _linear(left, codes, right, bits)
    ranks = rank_scores(pairs, true, people, bits)
    counts = np.bincount(codes, minlength=people)
    return [
        AttackScore(
            attack=f"author re-identification ({attacker})",
            measure="share named at first guess" if k == 1 else f"share named within {k} guesses",
            score=mean_of_people(ranks < k, true, confidence=confidence),
            baseline=_blind(counts, true, k),
            baseline_name="authors with the most known rows",
            detail=f"{people:,} authors, {left.shape[0]:,} known and {right.shape[0]:,} private rows",
        )
        for k in sorted({k for k in top if 1 <= k < people} | {1})
    ]


def _codes_of(authors: Iterable[Hashable], codes: dict[Hashable, int], rows: int) -> Ids:
    names = authors.tolist() if isinstance(authors, np.ndarray) else list(authors)
    if len(names) != rows:
        raise ParameterError(f"private_authors must be one for each of {rows:,} rows, got {len(names):,}")
    unknown = next((row for row, name in enumerate(names) if not isinstance(name, Hashable) or name not in codes), None)
    if unknown is not None:
        raise ParameterError(
            f"private_authors: row {unknown} has an author without a known row; leave such rows out (closed world)"
        )
    result = np.array([codes[name] for name in names], dtype=np.int64)
    if len(np.unique(result)) < 2:
        raise ParameterError("private_authors must be at least two people: an interval over people needs them")
    return result


def _centroids(left: Any, codes: Ids, people: int, right: Any) -> Pairs:
    sparse = optional("scipy.sparse")
    members = sparse.csr_matrix((np.ones(codes.size), (codes, np.arange(codes.size))), shape=(people, codes.size))
    return similarities(members @ unit_rows(left), right)[0]


def _linear(left: Any, codes: Ids, right: Any, bits: RandomBits) -> Pairs:
    result = Learner("linear", random_state(bits)).fit(left, codes).confidences(right)
    return lambda start, stop: result[start:stop]


def _blind(counts: Ids, true: Ids, k: int) -> float:
    """How often the author is among the k with the most known rows, ties broken at random."""
    ahead = (counts[None, :] > counts[:, None]).sum(axis=1)
    equal = (counts[None, :] == counts[:, None]).sum(axis=1)
    return float(np.clip((k - ahead[true]) / equal[true], 0.0, 1.0).mean())
