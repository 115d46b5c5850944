"""One round of Private Evolution, for comparison: users vote for the public texts nearest to theirs.

Each document of a user votes for the nearest candidate of its class. The votes of a user over all classes,

    x = sum over documents of e_(class, nearest candidate),      f = x / ||x||,                              (votes)

are scaled to norm 1 and truncated to integers (`dptext.noise.gaussian_sums`), then Gaussian noise is added to the sum
over users. Noisy votes below a public threshold count as zero (Lin et al. 2024, Algorithm 2; Xie et al. 2024 for
texts).

**Guarantee** (user; add/remove; central): (epsilon, delta)-DP for a user with all documents and labels. Adding or
removing a user changes the sum by that user's integers, of norm at most 1. The nearest candidate follows from integer
products that doubles represent exactly (units of 2^-15), so the order of summation does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.features.features import PublicFeatures, Spec, encoded_pool, fit_features
from dptext.features.pool import Pool
from dptext.io.documents import Document
from dptext.noise.gaussian_sums import clipped_matrices, noisy_matrix
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.density import quotas
from dptext.synthesis.synthesizer import MOST_DOCUMENTS, Terms
from dptext.users.grouping import UserTexts, texts_of

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Units = npt.NDArray[np.int32]

_THRESHOLD = 3.0  # in noise scales; chosen on SNIPS
_BATCH = 1 << 22  # products that are computed together
_NEIGHBOURS = 10  # texts that replace a candidate with many votes


@dataclass(frozen=True, kw_only=True)
class VoteSynthesizer:
    """Synthetic corpus by votes for public texts.

    Args:
        epsilon, delta: budget of a user.
        labels, unit: as in `dptext.Synthesizer`.
        features: encoders, or fitted features.
        candidates: number of public texts that users vote for.
        seed: of candidates, noise and selection.
    """

    epsilon: float
    delta: float
    labels: Sequence[str]
    features: Spec | PublicFeatures
    unit: str = "user"
    candidates: int = 500
    seed: int | None = None

    @property
    def terms(self) -> Terms:
        fixed: dict[str, Any] = {"column": "label", "most_documents": MOST_DOCUMENTS}
        return Terms.of(epsilon=self.epsilon, delta=self.delta, labels=self.labels, unit=self.unit, **fixed)

    def make(self, documents: Iterable[Document], public: Sequence[str], n: int) -> tuple[list[str], list[str]]:
        """Return n distinct public texts and their labels: by votes, then the neighbours of texts with votes."""
        pool, terms, bits = Pool.of(list(public)), self.terms, RandomBits(self.seed)
        if n > len(pool):
            raise ParameterError(f"n must be at most the number of public texts, {len(pool):,}, got {n:,}")
        features = self.features
        order = np.argsort(bits.integers(len(pool)), kind="stable")[: min(self.candidates, len(pool))]
        texts = [pool.texts[place] for place in order.tolist()]
        if not isinstance(features, PublicFeatures):
            features = fit_features(features, pool.texts, cache=False)
        options: dict[str, Any] = {"unit": self.unit, "most_documents": MOST_DOCUMENTS}
        with texts_of(documents, columns=terms.labels.columns, code=terms.labels.code, **options) as users:
            cells = vote_sum(features, features.units(texts), len(terms.labels), users)
        noisy = noisy_matrix(cells[:, None], terms.budget.sigma, bits)[:, 0]  # from here on, post-processing
        votes = np.split(noisy, len(terms.labels))
        chosen = _choose(votes, texts, pool, features, terms.budget.sigma, n, bits)
        shuffled = np.argsort(bits.integers(len(chosen)), kind="stable").tolist()
        result = [list(chosen.items())[place] for place in shuffled]
        return [text for text, _ in result], [str(self.labels[code]) for _, code in result]


def vote_sum(features: PublicFeatures, candidates: Units, classes: int, users: Iterable[UserTexts]) -> Integers:
    """Return the (classes * candidates,) sum of all users' votes in integers; a user's votes have norm at most 1."""
    texts: list[str] = []
    codes: list[Units] = []
    owners: list[Integers] = []
    for number, user in enumerate(users):
        for chunk, chunk_codes in user.chunks():
            known = np.flatnonzero(chunk_codes >= 0)
            texts += [chunk[place] for place in known.tolist()]
            codes.append(chunk_codes[known])
            owners.append(np.full(len(known), number, dtype=np.int64))
    total = np.zeros(classes * len(candidates), dtype=np.int64)
    if texts:
        nearest = Nearest(candidates).places(features.units(texts), 1)[:, 0]
        cell = np.concatenate(codes).astype(np.int64) * len(candidates) + nearest
        keys, counts = np.unique(np.concatenate(owners) * len(total) + cell, return_counts=True)
        owner, cell = np.divmod(keys, len(total))
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        np.add.at(total, cell, scale_votes(counts, starts))
    return total


def scale_votes(counts: Integers, starts: Integers) -> Integers:
    """Scale the votes of each user, who begin at these places, to norm 1, in integers."""
    return clipped_matrices(counts[:, None].astype(np.float64), starts, np.ones(len(starts)))[:, 0]


class Nearest:
    """Search for the nearest public vectors, exactly, in integers that doubles represent; ties by place."""

    def __init__(self, units: Units) -> None:
        points = units.astype(np.float64)
        self._points = np.ascontiguousarray(points.T)
        self._squares = (points * points).sum(axis=1)

    def places(self, units: Units, count: int) -> Integers:
        """Return the (n, count) places of the nearest vectors, nearest first; fewer if there are fewer."""
        count = min(count, self._points.shape[1])
        result = np.empty((len(units), count), dtype=np.int64)
        step = max(1, _BATCH // self._points.shape[1])
        for start in range(0, len(units), step):
            rows = slice(start, start + step)
            # 2 p q - q^2: every part of every sum is below 2^32
            closeness = 2.0 * (units[rows].astype(np.float64) @ self._points) - self._squares
            if count == 1:
                result[rows, 0] = closeness.argmax(axis=1)
                continue
            nearest = np.argpartition(-closeness, count - 1, axis=1)[:, :count]
            order = np.argsort(-np.take_along_axis(closeness, nearest, axis=1), axis=1, kind="stable")
            result[rows] = np.take_along_axis(nearest, order, axis=1)
        return result


def _choose(
    votes: Sequence[Floats],
    texts: Sequence[str],
    pool: Pool,
    features: PublicFeatures,
    sigma: float,
    n: int,
    bits: RandomBits,
) -> dict[str, int]:
    """Return texts with their classes, in shares of the noisy votes."""
    shares = np.array([max(0.0, float(vote.sum())) for vote in votes])
    target = quotas(shares if shares.sum() > 0 else np.ones(len(shares)), n)
    chosen: dict[str, int] = {}
    for code in np.argsort(-target, kind="stable").tolist():
        count = int(target[code])
        by_votes = [texts[place] for place in _sample(votes[code], _THRESHOLD * sigma, count, bits)]
        selected = dict.fromkeys(text for text in by_votes if text not in chosen)
        for text in _neighbours(by_votes, pool, features) if len(selected) < count else ():
            if text not in chosen:
                selected[text] = None
            if len(selected) == count:
                break
        chosen |= dict.fromkeys(list(selected)[:count], code)
    return chosen


def _sample(votes: Floats, threshold: float, count: int, bits: RandomBits) -> list[int]:
    """Draw places without replacement, with probabilities in proportion to the votes above a threshold."""
    kept = np.where(votes >= threshold, np.maximum(votes, 0.0), 0.0)
    places = np.flatnonzero(kept > 0)
    if len(places) == 0:
        places, kept = np.arange(len(votes)), np.ones(len(votes))
    keys = bits.exponential(len(places)) / kept[places]  # Efraimidis and Spirakis 2006
    result: list[int] = places[np.argsort(keys, kind="stable")[:count]].tolist()
    return result


def _neighbours(parents: Sequence[str], pool: Pool, features: PublicFeatures) -> Iterator[str]:
    """Yield the pool's nearest text of each parent, then the second nearest of each, and so on."""
    nearest = Nearest(encoded_pool(features, pool.texts, cache=False))
    units, depth = features.units(list(parents)), 1 + _NEIGHBOURS
    while parents:
        for place in nearest.places(units, depth).T.ravel().tolist():
            yield pool.texts[place]
        if depth >= len(pool):
            return
        depth *= 10
