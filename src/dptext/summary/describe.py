"""`describe`: shares of topics, phrases and trends in the texts of users, in one noisy release.

Derivation: docs/mechanisms/summary.md#summary-release
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.features.features import UNIT
from dptext.features.latent_words import FUNCTION_WORDS
from dptext.features.pool import Pool
from dptext.io.atomic import file_lock
from dptext.io.documents import PathLike
from dptext.noise.gaussian_sums import CELL, Integers, noisy_matrix, sums_by_key
from dptext.noise.set_union import SetUnion
from dptext.privacy.budgets import PersonalBudgets, warn_of_delta
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, release_statement
from dptext.privacy.wording import warn_unprotected
from dptext.release.release import rejects_path, write_rejects
from dptext.summary.phrases import UserPhrases
from dptext.summary.text_summary import FOLDER, TextSummary
from dptext.summary.topics import TimeBins, Topics
from dptext.synthesis.density import LogRatio
from dptext.synthesis.moments import COUNT_WEIGHT, TEXTS_AT_ONCE
from dptext.synthesis.prompts import TextSample
from dptext.synthesis.release import FolderRun, PrivateRows, check_apart
from dptext.synthesis.servers import TwoServerPlan, two_server_statement
from dptext.synthesis.synthesizer import MOST_DOCUMENTS, always_assumed
from dptext.users.grouping import UserTexts, documents_of, texts_of
from dptext.validation import check_choice, check_float, check_int, check_path

Phrase = tuple[str, ...]

WEIGHTS: Mapping[str, float] = {
    "people": 1, "topics": 6, "bins": 1, "cells": 6, "phrases": 5, "counts": 4, "examples": 3,
}  # fmt: skip
"""Public shares of the budget (of 1 / sigma^2), among the parts that a release has."""
OF_ROUNDS = (3, 2, 2)  # shares of the budget for phrases: words, pairs and triples
COMMON = FUNCTION_WORDS | {"'s", "'m", "'re", "'ve", "'ll", "'d", "n't", "s", "t", "d", "m"}
"""Public words with which no phrase begins or ends."""
_KEYS = 300  # largest number of candidate phrases per user and round
_OF_NAMES = 0.5  # share of delta for the names of phrases
_MOST_CELLS = 20_000
_NUMBERS = ("epsilon", "delta", "unit", "most_documents")  # settings of a plan in a folder
_NAMED = ("static", "glove")  # features that every device rebuilds from their name


@dataclass(frozen=True, eq=False, kw_only=True)
class SummaryPlan(TwoServerPlan):
    """Validated public configuration of a summary, fixed before private texts are read; see `describe`."""

    epsilon: float
    delta: float = 1e-6
    topics: Any = None  # becomes Topics
    features: Any = "static"
    time: str | None = None
    bins: Any = None  # becomes TimeBins, or None
    public: Any = None  # becomes a Pool, or None
    phrases: int = 50
    examples: int = 3
    unit: str = "user"
    most_documents: int = MOST_DOCUMENTS
    release_id: str = field(default_factory=new_release_id)  # of a release by two servers

    kind: ClassVar[str] = "describe"

    def __post_init__(self) -> None:
        check_float("epsilon", self.epsilon, above=0)
        check_float("delta", self.delta, above=0, below=1)
        if self.delta >= self.epsilon:
            raise ParameterError(f"epsilon must be larger than delta ({self.delta:g}), got {self.epsilon:g}")
        check_choice("unit", self.unit, ("user", "document"))
        check_int("phrases", self.phrases, minimum=0, maximum=1000)
        check_int("examples", self.examples, minimum=0, maximum=20)
        check_int("most_documents", self.most_documents, minimum=1, maximum=1 << 20)
        topics = self.topics if isinstance(self.topics, Topics) else Topics.of(self.topics, features=self.features)
        bins = self.bins if isinstance(self.bins, TimeBins) else TimeBins.of(self.time, self.bins)
        public = None if self.public is None else Pool.of(self.public)
        for name, value in (("topics", topics), ("bins", bins), ("public", public)):
            object.__setattr__(self, name, value)
        if math.prod(self.shape) > _MOST_CELLS:
            raise ParameterError(f"topics times bins must be at most {_MOST_CELLS:,}: use longer bins or fewer topics")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read besides text and user."""
        return () if self.bins is None else (self.bins.column,)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of topics and of bins, each with a last one for all others."""
        return len(self.topics.names), 1 if self.bins is None else len(self.bins.names) + 1

    @cached_property
    def weights(self) -> dict[str, float]:
        """Share of the budget of each part that this release has; they sum to 1."""
        has = {"bins": self.bins, "cells": self.bins, "phrases": self.phrases, "counts": self.phrases}
        has["examples"] = self.public is not None and self.examples
        used = {name: weight for name, weight in WEIGHTS.items() if has.get(name, True)}
        return {name: weight / sum(used.values()) for name, weight in used.items()}

    @cached_property
    def units(self) -> dict[str, int]:
        """Largest norm of a user's part, in cells: the squares sum to at most 2^48.  (norms)"""
        return {name: math.floor(math.sqrt(weight) * (1 - 2.0**-40) / CELL) for name, weight in self.weights.items()}

    @cached_property
    def noise(self) -> ApproxDP:
        """Guarantee that the noise alone must give; the rest is for the names of phrases.  (budget)"""
        names = self.delta * _OF_NAMES if self.phrases else 0.0
        return ApproxDP(self.epsilon + math.log1p(-names), self.delta - names)

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of all noise, for a user of norm 1 over all parts together."""
        return PersonalBudgets(self.noise.epsilon, delta=self.noise.delta, floor=0.0).sigma

    @cached_property
    def rounds(self) -> list[SetUnion]:
        """Noise and threshold of each round of phrases, for weights of norm 1."""
        share, names = self.units["phrases"] * CELL, (self.delta - self.noise.delta) / len(OF_ROUNDS)
        sigmas = [self.sigma / (share * math.sqrt(part / sum(OF_ROUNDS))) for part in OF_ROUNDS]
        return [SetUnion.build(sigma, names, _KEYS) for sigma in sigmas]

    def statement(self, *, seeded: bool, release_id: str | None = None) -> PrivacyStatement:
        """Return the privacy statement."""
        parameters: dict[str, Parameter] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "sigma": self.sigma,
            "sensitivity": 1.0,
            "delta_of_names": self.delta - self.noise.delta,
            **{f"weight_of_{name}": round(self.weights.get(name, 0.0), 6) for name in WEIGHTS},
            "most_documents": self.most_documents,
            "phrases": self.phrases,
            **self.topics.parameters(),
        }
        first, *others = always_assumed(Unit(self.unit), counted_in=False)
        assumptions = [first, *self.topics.features.assumptions(), *others]
        exposed = ["the names and descriptions of the topics: they are public"]
        if self.bins is not None:
            parameters |= {"time_column": self.bins.column, "bins": len(self.bins.names)}
            exposed.append("the time bins: they are public")
        if "examples" in self.weights:
            parameters |= {"examples": self.examples, **self.public.parameters()}
            assumptions += self.public.assumptions()
            exposed += self.public.exposed()
        return release_statement(
            guarantee=ApproxDP(self.epsilon, self.delta),
            unit=Unit(self.unit),
            relation=Relation.ADD_REMOVE,
            trust=Trust.CENTRAL,
            mechanism=TextSummary.mechanism,
            parameters=parameters,
            assumptions=tuple(assumptions),
            exposed=exposed,
            seeded=seeded,
            release_id=release_id or new_release_id(),
        )

    def _sums(self) -> tuple[UserSums, dict[str, Integers]]:
        sums = UserSums(self)
        return sums, sums.cells

    def server_statement(self, *, seeded: bool = False) -> PrivacyStatement:
        if self.phrases or self.public is not None or self.features not in _NAMED:
            raise ParameterError(
                "two servers count topics and times only: pass phrases=0 (--phrases 0), no public texts, and "
                "features='static' or 'glove'"
            )
        return two_server_statement(self.statement(seeded=seeded, release_id=self.release_id))

    def _released(self, sums: Mapping[str, Any], statement: PrivacyStatement) -> TextSummary:
        scales = {name: self.units[name] * CELL for name in sums}
        fields: dict[str, Any] = {"labels": self.topics.labels, "bins": self.bins, "statement": statement}
        return TextSummary(sums=sums, scales=scales, phrases=(), **fields)

    def _parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        settings = {name: getattr(self, name) for name in _NUMBERS}
        topics = dict(zip(self.topics.labels.names, self.topics.labels.described or (), strict=True))
        bins = {} if self.bins is None else {"time": self.bins.column, "bins": list(self.bins.names)}
        return settings | {"topics": topics, "features": self.features} | bins, {}

    @classmethod
    def _from_parts(cls, settings: Any, tensors: Mapping[str, Any], release_id: str, source: str) -> SummaryPlan:  # noqa: ARG003
        return cls(phrases=0, release_id=release_id, **settings)

    def people(self, documents: Any, *, seed: int | None = None) -> Any:
        """Return a context with the texts of each user and the time bin of each text; a seed fixes their order."""
        reading: dict[str, Any] = {"unit": self.unit, "most_documents": self.most_documents, "seed": seed}
        if self.bins is not None:
            reading |= {"columns": self.columns, "code": self.bins.code, "required": True}
        return texts_of(documents, **reading)

    def release(self, documents: Any, bits: RandomBits, *, release_id: str | None = None) -> TextSummary:
        """Return the noisy summary of documents in any order; each call spends the whole budget."""
        sample, sums = TextSample(), UserSums(self)
        with closing(UserPhrases(COMMON)) as phrases:
            with self.people(documents, seed=0 if bits.seeded else None) as people:
                sums.add(sample.watch(people), phrases if self.phrases else None)
            if not sums.people:
                raise DataError("there are no documents: at least one is needed")
            sample.check_pool(self.public or ())
            return self.released(sums, phrases, bits, release_id=release_id)

    def released(
        self, sums: UserSums, phrases: UserPhrases, bits: RandomBits, *, release_id: str | None = None
    ) -> TextSummary:
        """Return the noisy summary of exact sums, which are **private**; each call spends the whole budget."""
        parts = {name: (cells, self.units[name]) for name, cells in sums.cells.items()}
        counted, others = self._found(phrases, bits) if self.phrases else ([], [])
        if counted:
            users, people = phrases.count(counted)
            step = math.isqrt(self.units["counts"] ** 2 // len(counted))
            parts["counts"] = ((2 * users - people)[None] * step, step)  # (counts)
        warn_unprotected(self.statement(seeded=False))
        summary = TextSummary(
            labels=self.topics.labels,
            bins=self.bins,
            sums={name: noisy_matrix(cells, self.sigma, bits) for name, (cells, _) in parts.items()},
            scales={name: unit * CELL for name, (_, unit) in parts.items()},
            phrases=tuple(map(" ".join, counted)),
            other_phrases=tuple(map(" ".join, others)),
            statement=self.statement(seeded=bits.seeded, release_id=release_id),
        )
        return replace(summary, examples=self._nearest(summary)) if "examples" in self.weights else summary

    def _found(self, phrases: UserPhrases, bits: RandomBits) -> tuple[list[Phrase], list[Phrase]]:
        """Return the phrases that many users write: those to count, the most interesting first, and all others."""
        released = phrases.find(self.rounds, bits)
        names, weights = [entry.words for entry in released], np.array([entry.weight for entry in released])
        if self.public is not None and names:  # by their part of the divergence from the public texts
            with closing(UserPhrases(COMMON)) as public:
                for text in self.public:
                    public.add([text])
                expected = public.count(names)[0] + 1.0
            shares = weights / weights.sum()
            weights = shares * np.log(shares / (expected / expected.sum()))
        ordered = [names[place] for place in np.argsort(-weights, kind="stable")]
        return ordered[: self.phrases], ordered[self.phrases :]

    def _nearest(self, summary: TextSummary) -> dict[str, tuple[str, ...]]:
        """Return the public texts nearest to the noisy mean of each topic that is distinguishable from 0."""
        features, labels, scale = self.topics.features, self.topics.labels, math.sqrt(1 - COUNT_WEIGHT**2)
        counts = summary.table.values.sum(axis=1)[: len(labels)]
        matrix = np.c_[COUNT_WEIGHT * counts, scale * summary.part("examples")[: len(labels)]]
        described, deviation = features.units(labels.described or ()) * UNIT, scale * summary.deviation("examples")
        ratio = LogRatio.fit(matrix, deviation, COUNT_WEIGHT, features.mean, features.covariance, described)
        units = features.units(self.public)
        scores, topics, shares = ratio.weigh(units, UNIT).scores, self.topics.codes(units), summary.shares()
        nearest: dict[str, tuple[str, ...]] = {}
        for code, name in enumerate(labels.names):
            rows = np.flatnonzero(topics == code)
            if shares[name].low > 0 and rows.size:
                best = rows[np.argsort(-scores[rows, code], kind="stable")]
                nearest[name] = tuple(dict.fromkeys(self.public.texts[row] for row in best.tolist()))[: self.examples]
        return nearest


@dataclass(eq=False)
class UserSums:
    """Exact integer sums of the parts of all users, in cells; *not private*.

    In each part, the documents of a user have a total weight of at most the unit of the part.
    """

    plan: SummaryPlan
    people: int = field(init=False, default=0)
    cells: dict[str, Integers] = field(init=False)

    def __post_init__(self) -> None:
        topics, bins = self.plan.shape
        self._features = self.plan.topics.features.remembering()
        shapes = {"people": (1, 1), "topics": (1, topics), "bins": (1, bins), "cells": (topics, bins)}
        shapes["examples"] = (topics, self.plan.topics.features.dimension)
        used = self.plan.weights
        self.cells = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items() if name in used}

    def add(self, people: Iterable[UserTexts], phrases: UserPhrases | None = None) -> None:
        """Add users, each with all their documents."""
        users: list[tuple[list[str], npt.NDArray[np.int32]]] = []
        waiting = 0
        for person in people:
            chunks = list(person.chunks())
            texts = [text for texts, _ in chunks for text in texts]
            users.append((texts, np.concatenate([codes for _, codes in chunks])))
            waiting += len(texts)
            if phrases is not None:
                phrases.add(texts)
            if waiting >= TEXTS_AT_ONCE:
                self._add(users)
                users, waiting = [], 0
        if users:
            self._add(users)

    def _add(self, users: Sequence[tuple[list[str], npt.NDArray[np.int32]]]) -> None:
        units = self._features.units([text for texts, _ in users for text in texts])
        topics, bins = self.plan.topics.codes(units), np.concatenate([codes for _, codes in users])
        sizes = np.array([len(texts) for texts, _ in users])
        owners = np.repeat(np.arange(len(sizes)), sizes)
        self.people += len(sizes)
        one, codes = np.ones((len(owners), 1), dtype=np.int64), {"topics": topics, "bins": bins, "examples": topics}
        codes |= {"people": np.zeros_like(topics), "cells": topics * self.plan.shape[1] + bins}
        for name, total in self.cells.items():
            values, largest = (units.astype(np.int64), round(1 / UNIT)) if name == "examples" else (one, 1)
            rows = total.reshape(-1, values.shape[1])
            keys, _, sums = sums_by_key(owners * len(rows) + codes[name], values)
            whole = sizes[keys // len(rows), None] * largest
            parts = np.sign(sums) * (self.plan.units[name] * np.abs(sums) // whole)  # (part), towards zero
            present, _, sums = sums_by_key(keys % len(rows), parts)
            rows[present] += sums


def describe(
    documents: Any,
    *,
    epsilon: float,
    delta: float = 1e-6,
    text: str = "text",
    user: str | None = None,
    topics: Any = None,
    features: Any = "static",
    time: str | None = None,
    bins: str | Sequence[str] | None = None,
    public: Any = None,
    phrases: int = 50,
    examples: int = 3,
    unit: str = "user",
    most_documents: int = MOST_DOCUMENTS,
    public_users: int | None = None,
    seed: int | None = None,
) -> TextSummary:
    """Count topics, phrases and trends in the texts of many people, with intervals.

    All parts are one release. In each part, the documents of a user have the total weight 1, so a share is the part of
    the texts of an average person.

    **Guarantee** (unit user, or document; add/remove; central): (epsilon, delta)-DP for a person with all their
    documents. *Proof* (docs/mechanisms/summary.md#summary-release): the parts of a user have Euclidean norm 1 together,
    checked in integers, so they are an adaptive composition of Gaussian mechanisms that costs as much as one; and a
    phrase of a single user is released with probability at most delta / 2. Assumptions: topics, bins, public texts and
    all arguments are public; each person has exactly one user id; there is at least one document.

    Args:
        documents: a table, as in `dptext.privatize`, or documents with users, in any order.
        epsilon, delta: privacy budget per user.
        text, user: columns of the table.
        topics: public taxonomy: a mapping of names to descriptions, a file with lines ``NAME: DESCRIPTION``, or a list
            of names; None: 61 general topics. A text has the topic with the nearest description.
        features: text features, as in `dptext.Synthesizer`.
        time, bins: a column of ISO dates, and public bins: a range of years, months or days (``"2004-01..2004-12"``),
            or a list. Other times count as "(other)".
        public: public texts, as in `dptext.Synthesizer`: the examples, and a measure of which phrases are unusual.
        phrases: number of phrases to count.
        examples: number of public texts to show per topic.
        unit: "user"; or "document", a much weaker guarantee.
        most_documents: maximum number of documents used per user.
        public_users: public upper bound on the number of users, used to check delta.
        seed: for tests and papers only; None: cryptographic randomness.

    Raises:
        ParameterError: an argument is out of range.
        DataError: a row has no user, or there are no documents.

    >>> import dptext
    >>> documents = [
    ...     dptext.Document(text, user=str(user), attributes={"date": date})
    ...     for user in range(4000)
    ...     for text, date in [("the team won the game", "2004-05-01"), ("stocks and oil prices fell", "2004-06-01")]
    ... ]
    >>> summary = dptext.describe(documents, epsilon=2.0, time="date", bins="2004-05..2004-06")
    >>> [name for name, share in summary.shares().items() if share.low > 0.2]
    ['markets and economy', 'sports']
    """
    inputs: dict[str, Any] = {"topics": topics, "features": features, "time": time, "bins": bins, "public": public}
    limits: dict[str, Any] = {"phrases": phrases, "examples": examples, "most_documents": most_documents}
    plan = SummaryPlan(epsilon=epsilon, delta=delta, unit=unit, **inputs, **limits)
    documents = documents_of(documents, unit, text=text, user=user, columns=plan.columns)
    warn_of_delta(delta, public_users=public_users)
    return plan.release(documents, RandomBits(seed))


def describe_files(
    source: PrivateRows,
    out: PathLike,
    plan: SummaryPlan,
    *,
    seed: int | None = None,
    ledger: PathLike | None = None,
    force: bool = False,
) -> tuple[TextSummary, int]:
    """Release a summary of files or a DataFrame into a folder, charged to a ledger; return it and the skipped rows."""
    folder, bits = check_path("out", out), RandomBits(seed)
    check_apart(source.sources, () if plan.public is None else plan.public.files)
    source.check_users()
    run = FolderRun(
        kind=FOLDER,
        statement=plan.statement(seeded=False),
        columns=plan.columns,
        pool=plan.public or (),
        seeded=bits.seeded,
        fit=lambda documents, release_id: plan.release(documents, bits, release_id=release_id),
        advice="the summary is released in {folder}",
    )
    with file_lock(folder):
        summary, reader = source.release_into(folder, run, ledger=ledger, force=force)
        write_rejects(rejects_path(folder), () if reader is None else reader.rejects)
    return summary, 0 if reader is None else reader.skipped
