"""Private Evolution, for comparison: users vote for the texts nearest to theirs; texts with many votes are varied.

In a round, each document of a user votes for the nearest candidate of its class. The votes of a user over all classes,

    x = sum over documents of e_(class, nearest candidate),      f = x / ||x||,                              (votes)

are scaled to norm 1 and truncated to integers (`dptext.noise.gaussian_sums`), then Gaussian noise is added to the sum
over users. Noisy votes below a public threshold count as zero (Lin et al. 2024, Algorithm 2; Xie et al. 2024 for
texts).

Sensitivity: adding or removing a user changes the votes of a round by that user's integers, of norm at most 1. The
nearest candidate follows from integer products that doubles hold exactly (units of 2^-15), so neither the order of
summation nor the batch matters. Rounds: the candidates of a round depend only on earlier noisy outputs, so T rounds
with noise sigma sqrt(T) are together exactly as private as one with sigma
(`dptext.privacy.gaussian.compose_gaussians`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.display import ReprMixin
from dptext.errors import DataError, ParameterError
from dptext.features.features import PublicFeatures, Spec, encoded_pool, fit_features
from dptext.features.pool import Cache, Pool, encodable
from dptext.io.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import clipped_matrices, noisy_matrix
from dptext.privacy.budgets import warn_of_delta
from dptext.privacy.gaussian import GaussianRelease, compose_gaussians
from dptext.privacy.guarantee import as_approx
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.privacy.wording import warn_unprotected
from dptext.release.release import Release
from dptext.synthesis.density import quotas
from dptext.synthesis.moments import Labels
from dptext.synthesis.prompts import Request, Source, TextSample, check_is_apart
from dptext.synthesis.synthesizer import MOST_DOCUMENTS, Terms
from dptext.users.grouping import UserTexts, check_users_are_read, texts_of
from dptext.validation import check_float, check_int

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MOST_CELLS = 10_000_000
"""Candidates of all classes together."""
# Chosen on SNIPS, half of its utterances described and half the pool, one round, mean accuracy of two seeds on its real
# test rows (so these figures are of a pick, and no forecast): at epsilon 1 with 250 / 500 / 2,000 candidates .89, .89,
# .79, and with a threshold of 2 sigma .83 / .80 / .60; without one .32. At epsilon 4, with 3 sigma, .83 / .89 / .92.
CANDIDATES = 500
"""For each class, unless another number is given."""
_NOISES = 3.0
_TEXTS_AT_ONCE = 1024
_PRODUCTS_AT_ONCE = 1 << 22
_EXAMPLES = 20  # of its own texts, a source is shown so many of each class, at most
_NEIGHBOURS = 10  # a text of a pool is varied into one of so many nearest ones


def sigma_of_a_round(sigma: float, rounds: int) -> float:
    """The noise of each of so many rounds that are together as private as one with ``sigma``, or more."""
    if rounds == 1:
        return sigma
    return sigma * math.sqrt(rounds) * (1 + 2.0**-50)


@dataclass(eq=False)
class VoteSum:
    """The sum of all people's votes for the candidates of one round."""

    features: PublicFeatures
    candidates: Sequence[npt.NDArray[np.int32]]
    cells: Integers = field(init=False)

    def __post_init__(self) -> None:
        sizes = [len(candidate) for candidate in self.candidates]
        self._first = np.cumsum([0, *sizes])
        self.cells = np.zeros(int(self._first[-1]), dtype=np.int64)
        # classes may share their candidates: these are transposed once
        once = {id(candidate): _Nearest(candidate) for candidate in self.candidates}
        self._nearest = [once[id(candidate)] for candidate in self.candidates]

    def add(self, people: Iterable[UserTexts]) -> int:
        """Add the votes of people, each of whom must bring all their documents at once; how many there were."""
        texts: list[str] = []
        classes: list[npt.NDArray[np.int32]] = []
        owners: list[Integers] = []
        cast = np.empty(0, dtype=np.int64)
        count = 0
        for count, person in enumerate(people, 1):
            for text, codes in person.chunks():
                inside = np.flatnonzero(codes >= 0)
                texts += [text[place] for place in inside.tolist()]
                classes.append(codes[inside])
                owners.append(np.full(len(inside), count, dtype=np.int64))
                if len(texts) >= _TEXTS_AT_ONCE:
                    cast = self._settle(cast, texts, classes, owners, before=count)
                    texts, classes, owners = [], [], []
        self._settle(cast, texts, classes, owners, before=count + 1)
        return count

    def _settle(
        self,
        cast: Integers,
        texts: Sequence[str],
        classes: Sequence[npt.NDArray[np.int32]],
        owners: Sequence[Integers],
        *,
        before: int,
    ) -> Integers:
        """Vote, and count the votes of all people before this one; what is left: (n,) person * cells + cell."""
        cells = len(self.cells)
        if texts:
            votes = np.concatenate(owners) * cells + self.votes(texts, np.concatenate(classes))
            cast = np.concatenate([cast, votes])
        done = cast < before * cells
        if done.any():
            keys, counts = np.unique(cast[done], return_counts=True)
            person, cell = np.divmod(keys, cells)
            starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]])
            np.add.at(self.cells, cell, self._scaled(counts, cell, starts))
        return cast[~done]

    def _scaled(self, counts: Integers, cell: Integers, starts: Integers) -> Integers:  # noqa: ARG002  of all classes
        """(votes) of people who begin at these places, for those candidates that they voted for."""
        return clipped_matrices(counts[:, None].astype(np.float64), starts, np.ones(len(starts)))[:, 0]

    def votes(self, texts: Sequence[str], classes: npt.NDArray[np.int32]) -> Integers:
        """(n,) the cell of the nearest candidate of each text among those of its class."""
        units = self.features.units(texts)
        result = np.empty(len(texts), dtype=np.int64)
        for label in np.unique(classes).tolist():
            own = np.flatnonzero(classes == label)
            result[own] = self._first[label] + self._nearest[label].to(units[own])
        return result


class _Nearest:
    """Public vectors, to be found by nearness: exactly, in whole numbers that doubles hold. Equal ones by place."""

    def __init__(self, units: npt.NDArray[np.int32]) -> None:
        points = units.astype(np.float64)
        # 2 p q - q^2: every part of every sum is below 2^32
        self._points = np.ascontiguousarray(points.T)
        self._squares = (points * points).sum(axis=1)

    def to(self, units: npt.NDArray[np.int32]) -> Integers:
        """(n,) the place of the nearest one."""
        result = np.empty(len(units), dtype=np.int64)
        for rows, closeness in self._closeness(units):
            result[rows] = closeness.argmax(axis=1)
        return result

    def several(self, units: npt.NDArray[np.int32], count: int) -> Integers:
        """(n, count) the places of the nearest ones, nearest first; fewer where there are fewer."""
        count = min(count, self._points.shape[1])
        result = np.empty((len(units), count), dtype=np.int64)
        for rows, closeness in self._closeness(units):
            nearest = np.argpartition(-closeness, count - 1, axis=1)[:, :count]
            order = np.argsort(-np.take_along_axis(closeness, nearest, axis=1), axis=1, kind="stable")
            result[rows] = np.take_along_axis(nearest, order, axis=1)
        return result

    def _closeness(self, units: npt.NDArray[np.int32]) -> Iterable[tuple[slice, Floats]]:
        step = max(1, _PRODUCTS_AT_ONCE // self._points.shape[1])
        for start in range(0, len(units), step):
            rows = slice(start, start + step)
            yield rows, 2.0 * (units[rows].astype(np.float64) @ self._points) - self._squares


class VoteSynthesizer(ReprMixin):
    """Synthetic corpus by Private Evolution: in each round, users vote for the candidates nearest to their texts.

    `dptext.Synthesizer` adds noise once and then scores any number of candidates; here every round spends budget.

    **Guarantee** (unit user; add/remove; central): (epsilon, delta)-DP for a user with all documents and labels, over
    all rounds together (proof: module docstring). Assumptions: those of `dptext.Synthesizer`.

    Args:
        epsilon, delta: the budget of a person for all rounds.
        labels, column, features, unit, most_documents, public_users, cache, seed: as in `dptext.Synthesizer`;
            ``features`` may be `PublicFeatures` too.
        rounds: T, how often people vote.
        candidates: for each class, this many texts are voted on.
        threshold: H, in votes: noisy votes below it count as none. None: three times the noise of a
            round.

    Raises:
        ParameterError: an argument out of range.
        RefusedError: labels learned under a promise about another unit.
    """

    mechanism = "votes for candidates"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 1e-6,
        labels: Any = None,
        column: str = "label",
        features: Spec | PublicFeatures = None,
        unit: str = "user",
        rounds: int = 1,
        candidates: int = CANDIDATES,
        threshold: float | None = None,
        most_documents: int = MOST_DOCUMENTS,
        public_users: int | None = None,
        cache: Cache = None,
        seed: int | None = None,
    ) -> None:
        self.terms = Terms.of(
            epsilon=epsilon, delta=delta, labels=labels, column=column, unit=unit, most_documents=most_documents
        )
        self.labels, self.features = self.terms.labels, features
        self.rounds = check_int("rounds", rounds, minimum=1, maximum=1000)
        self.candidates = check_int("candidates", candidates, minimum=1)
        if self.candidates * len(self.labels) > MOST_CELLS:
            raise ParameterError(
                f"candidates of all classes together must be at most {MOST_CELLS:,}, got "
                f"{self.candidates * len(self.labels):,}: take fewer candidates, or fewer labels"
            )
        self.sigma = sigma_of_a_round(self.terms.budget.sigma, self.rounds)
        self.threshold = _NOISES * self.sigma if threshold is None else check_float("threshold", threshold, minimum=0)
        self.public_users, self.cache, self.seed = public_users, cache, seed

    def release(self) -> GaussianRelease:
        """All rounds as accounting sees them."""
        return compose_gaussians(*[GaussianRelease(sigma=self.sigma)] * self.rounds)

    def fit(
        self,
        documents: DocumentReader | Iterable[Document],
        *,
        public: Any,
        n: int,
        release_id: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Release:
        """Make n texts: a release of the writers' texts.

        Args:
            documents: of `dptext.read_documents` (with ``user=``, and the columns of labels in ``keep=``), or
                `Document` objects (with ``label``, or ``attributes``). They are read once.
            public: a public pool, as `dptext.Pool` takes it; or a `Source` that writes texts. It is asked again after
                every round, and shown which of its texts were voted for: its budget has to be counted as spent from
                the first round on, also where a later one fails.
            n: how many texts. A public number.
            release_id: the name under which a ledger was asked before, for the statement. None: a new one.
            progress: called with the number of the round that is done.

        Returns:
            A `dptext.Release` with ``texts``, the ``columns`` of their labels, and the statement.

        Raises:
            ParameterError: more texts than the pool has; the documents are given as public texts, or more than half of
                their distinct texts are in the pool.
            RefusedError: features of an encoder that was trained on texts that are not public.
            DataError: a row without a user; no documents; the source gave too few different texts.
        """
        n = check_int("n", n, minimum=1)
        check_is_apart(public, documents)
        source = public if isinstance(public, Source) else Pool.of(public)
        if isinstance(source, Pool) and n > len(source):
            raise ParameterError(
                f"n must be at most the number of public texts, {len(source):,}, got {n:,}: ask for fewer texts, or "
                "give a larger pool"
            )
        check_users_are_read(documents, self.terms.unit)
        bits = RandomBits(self.seed)
        writers = _Writers(source, self.labels, self.candidates, bits, self.cache)
        features = self._features(writers)
        writers.begin(features)
        statement = self.statement(features, source, n, seeded=bits.seeded, release_id=release_id)
        warn_of_delta(as_approx(statement.guarantee).delta, public_users=self.public_users)
        warn_unprotected(statement)
        with texts_of(
            documents,
            columns=self.labels.columns,
            code=self.labels.code,
            unit=self.terms.unit,
            most_documents=self.terms.most_documents,
            reread=self.rounds > 1,
        ) as people:
            for turn in range(1, self.rounds + 1):
                votes = self._votes(people, features, writers, bits)
                if progress is not None:
                    progress(turn)
                if turn < self.rounds:
                    writers.evolve(votes, self.threshold)
        texts, classes = writers.chosen(votes, self.threshold, n)
        results = [self.labels.values_of(code) for code in classes]
        columns = {column: [values[column] for values in results] for column in self.labels.columns}
        return Release(statement=statement, documents=len(texts), made={"texts": texts, "columns": columns})

    def _features(self, writers: _Writers) -> PublicFeatures:
        if isinstance(self.features, PublicFeatures):
            return self.features
        texts = writers.source.texts if isinstance(writers.source, Pool) else writers.first()
        return fit_features(self.features, texts, cache=self.cache)

    def _votes(
        self, people: Iterable[UserTexts], features: PublicFeatures, writers: _Writers, bits: RandomBits
    ) -> list[Floats]:
        """For each class, (m,) the noisy votes: from here on everything is post-processing."""
        total, sample = VoteSum(features, writers.units()), TextSample()
        if total.add(sample.watch(people)) == 0:
            raise DataError("there are no documents: expected at least one")
        if isinstance(writers.source, Pool):
            sample.check_pool(writers.source)
        noisy = noisy_matrix(total.cells[:, None], self.sigma, bits)[:, 0]
        ends = np.cumsum([len(text) for text in writers.texts])
        return np.split(noisy, ends[:-1])

    def statement(
        self, features: PublicFeatures, source: Source, n: int, *, seeded: bool, release_id: str | None = None
    ) -> PrivacyStatement:
        """The statement, with what was promised before counted in: from public things alone."""
        parameters: dict[str, Parameter] = {
            "sigma": self.sigma,
            "rounds": self.rounds,
            "candidates": self.candidates,
            "threshold": self.threshold,
            "texts": n,
        }
        statement = self.terms.statement(self.mechanism, features, parameters, seeded=seeded, release_id=release_id)
        return statement.replace(
            parameters={**statement.parameters, **source.parameters(), **statement.parameters},
            assumptions=(*statement.assumptions, *source.assumptions()),
            exposed=(*statement.exposed, *source.exposed()),
        )


class _Writers:
    """The candidates of each class, and how a source makes others of them."""

    def __init__(self, source: Source, labels: Labels, candidates: int, bits: RandomBits, cache: Cache) -> None:
        self.source, self._labels, self._most, self._bits = source, labels, candidates, bits
        self._cache = cache
        self._codes = range(len(labels))
        if isinstance(source, Pool):
            # all classes vote on the same texts of a pool: which are whose is what the votes say
            order = np.argsort(bits.integers(len(source)), kind="stable").tolist()
            self._others = cycle(source.texts[place] for place in order)
            self.texts = [list(islice(self._others, min(candidates, len(source))))] * len(labels)
        else:
            self.texts = [self._read_request(code, candidates, (), seen=set()) for code in self._codes]
        short = next((code for code in self._codes if not self.texts[code]), None)
        if short is not None:
            raise DataError(f"the source gave no text for class {short + 1} of {len(labels)}: expected one at least")
        self._features: PublicFeatures | None = None
        self._known: dict[str, npt.NDArray[np.int32]] = {}
        self._pool: _Nearest | None = None

    def first(self) -> list[str]:
        """All first candidates, each once."""
        return list(dict.fromkeys(text for texts in self.texts for text in texts))

    def begin(self, features: PublicFeatures) -> None:
        """Encode candidates by these."""
        self._features = features

    def units(self) -> list[npt.NDArray[np.int32]]:
        """For each class, the vectors of its candidates; one array where classes share them."""
        once: dict[int, npt.NDArray[np.int32]] = {}
        for texts in self.texts:
            if id(texts) not in once:
                once[id(texts)] = self._encoded(texts)
        return [once[id(texts)] for texts in self.texts]

    def evolve(self, votes: Sequence[Floats], threshold: float) -> None:
        result = []
        for code in self._codes:
            half = -(-self._most // 2)
            order = self._drawn(votes[code], threshold, half)
            parents = [self.texts[code][place] for place in order]
            varied = self._varied(code, parents, self._most - len(parents), seen=set(parents))
            kept = [*parents, *varied]
            result.append(kept + self._read_request(code, self._most - len(kept), parents, seen=set(kept)))
        self.texts = result

    def chosen(self, votes: Sequence[Floats], threshold: float, n: int) -> tuple[list[str], list[int]]:
        """Texts, each once, and their classes: by votes, then what is made of those with votes, then the rest."""
        target = quotas(_shares(votes), n)
        taken: dict[str, int] = {}
        for code in np.argsort(-target, kind="stable").tolist():
            count = int(target[code])
            by_votes = [self.texts[code][place] for place in self._drawn(votes[code], threshold, count)]
            mine = [text for text in by_votes if text not in taken]
            mine += self._varied(code, by_votes, count - len(mine), seen={*taken, *mine}, far=True)
            if len(mine) < count and not isinstance(self.source, Pool):
                seen = {*taken, *mine}
                rest = [self.texts[code][place] for place in np.argsort(-votes[code], kind="stable").tolist()]
                mine += [text for text in rest if text not in seen][: count - len(mine)]
                mine += self._read_request(code, count - len(mine), by_votes, seen={*taken, *mine})
            if len(mine) < count:
                raise DataError(
                    f"the source gave too few different texts for {n:,}: ask for fewer texts, or for more candidates"
                )
            taken |= dict.fromkeys(mine[:count], code)
        texts = list(taken)
        order = np.argsort(self._bits.integers(len(texts)), kind="stable").tolist()
        return [texts[place] for place in order], [taken[texts[place]] for place in order]

    def _drawn(self, votes: Floats, threshold: float, most: int) -> list[int]:
        kept = np.where(votes >= threshold, np.maximum(votes, 0.0), 0.0)
        places = np.flatnonzero(kept > 0)
        if len(places) == 0:
            places, kept = np.arange(len(votes)), np.ones(len(votes))
        keys = self._bits.exponential(len(places)) / kept[places]  # Efraimidis and Spirakis 2006
        result: list[int] = places[np.argsort(keys, kind="stable")[:most]].tolist()
        return result

    def _varied(self, code: int, parents: Sequence[str], count: int, *, seen: set[str], far: bool = False) -> list[str]:
        """At most so many new texts like these; of a pool, where ``far``, as many as it has."""
        if count <= 0 or not parents:
            return []
        if isinstance(self.source, Pool):
            output: Iterable[str] = self._neighbours(parents, far)
        else:
            request = Request(self._labels.values_of(code), (), count, tuple(parents[:_EXAMPLES]))
            output = self.source.vary(list(parents), request)
        return list(islice(_new(output, seen), count))

    def _read_request(self, code: int, count: int, examples: Sequence[str], *, seen: set[str]) -> list[str]:
        """At most so many texts that are not made of others."""
        if count <= 0:
            return []
        if isinstance(self.source, Pool):
            proposed: Iterable[str] = islice(self._others, len(self.source))
        else:
            request = Request(self._labels.values_of(code), (), count, tuple(examples[:_EXAMPLES]))
            proposed = self.source.propose(request)
        return list(islice(_new(proposed, seen), count))

    def _neighbours(self, parents: Sequence[str], far: bool) -> Iterable[str]:
        """Texts of the pool: of each parent the nearest, then of each the second nearest, and so on."""
        assert isinstance(self.source, Pool)
        assert self._features is not None
        if self._pool is None:
            self._pool = _Nearest(encoded_pool(self._features, self.source.texts, cache=self._cache))
        units, depth = self._encoded(parents), 1 + _NEIGHBOURS
        while True:
            for place in self._pool.several(units, depth).T.ravel().tolist():
                yield self.source.texts[place]
            if not far or depth >= len(self.source):
                return
            depth *= 10

    def _encoded(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        assert self._features is not None
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(missing, self._features.units(missing), strict=True))
        result: npt.NDArray[np.int32] = np.stack([self._known[text] for text in texts])
        return result


def _new(texts: Iterable[str], seen: set[str]) -> Iterable[str]:
    """The texts that are not empty and were not seen, each once."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise ParameterError("a source must answer with a list of texts, it answered with something else")
    for text in texts:
        if not isinstance(text, str):
            raise ParameterError("a source must answer with a list of texts, it answered with something else")
        text = encodable(text.strip())
        if text and text not in seen:
            seen.add(text)
            yield text


def _shares(votes: Sequence[Floats]) -> Floats:
    """Of the classes, by their noisy votes; equal ones where nobody voted."""
    result = np.array([max(0.0, float(vote.sum())) for vote in votes])
    return result if result.sum() > 0 else np.ones(len(result))
