"""One round of Private Evolution, for comparison: users vote for the public texts nearest to theirs.

Each document of a user votes for the nearest candidate of its class. The votes of a user over all classes,

    x = sum over documents of e_(class, nearest candidate),      f = x / ||x||,                              (votes)

are scaled to norm 1 and truncated to integers (`dptext.noise.gaussian_sums`), then Gaussian noise is added to the sum
over users. Noisy votes below a public threshold count as zero (Lin et al. 2024, Algorithm 2; Xie et al. 2024 for
texts).

**Guarantee** (user; add/remove; central): (epsilon, delta)-DP for a user with all documents and labels. Adding or
removing a user changes the sum by that user's integers, of norm at most 1.
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
    """Synthetic corpus by votes for ``candidates`` public texts; the other fields are as in `dptext.Synthesizer`."""

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
        shares = np.array([max(0.0, float(vote.sum())) for vote in votes])
        target = quotas(shares if shares.sum() > 0 else np.ones(len(shares)), n)
        chosen: dict[str, int] = {}
        for code in np.argsort(-target, kind="stable").tolist():
            count = int(target[code])
            by_votes = [texts[place] for place in _sample(votes[code], _THRESHOLD * terms.budget.sigma, count, bits)]
            selected = dict.fromkeys(text for text in by_votes if text not in chosen)
            for text in _neighbours(by_votes, pool, features) if len(selected) < count else ():
                if text not in chosen:
                    selected[text] = None
                if len(selected) == count:
                    break
            chosen |= dict.fromkeys(list(selected)[:count], code)
        shuffled = np.argsort(bits.integers(len(chosen)), kind="stable").tolist()
        result = [list(chosen.items())[place] for place in shuffled]
        return [text for text, _ in result], [str(self.labels[code]) for _, code in result]


def vote_sum(features: PublicFeatures, candidates: Units, classes: int, users: Iterable[UserTexts]) -> Integers:
    """Return the (classes * candidates,) sum of all users' votes in integers; a user's votes have norm at most 1."""
    texts: list[str] = []
    cells: list[int] = []  # the first cell of a text's class
    owners: list[int] = []
    for number, user in enumerate(users):
        for chunk, codes in user.chunks():
            known = np.flatnonzero(codes >= 0).tolist()
            texts += [chunk[place] for place in known]
            cells += [int(codes[place]) * len(candidates) for place in known]
            owners += [number] * len(known)
    total = np.zeros(classes * len(candidates), dtype=np.int64)
    if texts:
        cell = np.array(cells) + nearest(candidates, features.units(texts), 1)[:, 0]
        keys, counts = np.unique(np.array(owners) * len(total) + cell, return_counts=True)
        owner, cell = np.divmod(keys, len(total))
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        np.add.at(total, cell, scale_votes(counts, starts))
    return total


def scale_votes(counts: Integers, starts: Integers) -> Integers:
    """Scale the votes of each user, who begin at these places, to norm 1, in integers."""
    return clipped_matrices(counts[:, None].astype(np.float64), starts, np.ones(len(starts)))[:, 0]


def nearest(points: Units, units: Units, count: int) -> Integers:
    """Return the (n, count) places of the nearest points, nearest first, ties by place; exact in doubles."""
    columns = points.astype(np.float64).T
    squares = (columns * columns).sum(axis=0)
    result = []
    for rows in np.array_split(units.astype(np.float64), 1 + len(units) * len(points) // _BATCH):
        closeness = 2.0 * (rows @ columns) - squares  # every part of every sum is below 2^32
        result.append(np.argsort(-closeness, axis=1, kind="stable")[:, :count])
    return np.concatenate(result)


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
    points, units, depth = encoded_pool(features, pool.texts, cache=False), features.units(list(parents)), 1
    while parents and depth < len(pool):
        depth = min(1 + _NEIGHBOURS * depth, len(pool))
        for place in nearest(points, units, depth).T.ravel().tolist():
            yield pool.texts[place]
