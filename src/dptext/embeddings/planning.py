"""Plan a release of co-occurrences from public texts and a public number of people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dptext.checks import number, whole
from dptext.embeddings.refinement import public_base, strengths
from dptext.embeddings.user_matrices import UserMatrixSum, UserText
from dptext.errors import DataError
from dptext.files.documents import Document, DocumentReader
from dptext.noise.gaussian_sums import CELL, MOST_USERS
from dptext.privacy.budgets import PersonalBudgets
from dptext.users.grouping import UserUnit, users_of

if TYPE_CHECKING:
    from dptext.embeddings.cooccurrence import Plan

__all__ = ["EPSILONS", "HALF", "ExpectedVectors", "expected_vectors"]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
HALF = 0.5
_SEED = 7  # which public people are in which half: the same in every run
_MOST = 10**9  # people; beyond it, nobody is asked


@dataclass(frozen=True, kw_only=True)
class ExpectedVectors:
    """What a budget buys."""

    epsilon: float
    sigma: float
    passed: float
    least: int | None
    half: int | None

    def as_dict(self) -> dict[str, float | int | None]:
        """By name."""
        return asdict(self)


def expected_vectors(
    plan: Plan,
    public: DocumentReader | Iterable[Document],
    *,
    people: int,
    epsilon: float | None = None,
    unit: str = "document",
) -> list[ExpectedVectors]:
    """What a release is worth for one epsilon or several, from public texts.

    **Nothing private is read.** It is a prediction for people who write as much as the public ones do, of things that
    public vectors know as much about.

    Args:
        plan: of the release (`dptext.Cooccurrence.plan`); its budget is not looked at.
        public: texts that play the people's.
        people: a *public* number of people who take part: never a count of the private texts.
        epsilon: None: `EPSILONS`.
        unit: "document": each public text is a person; "user": each author.

    Raises:
        ParameterError: a number out of range.
        DataError: fewer than two public people, or authors are not named.
    """
    people = whole("people", people, least=1, most=MOST_USERS)
    given = EPSILONS if epsilon is None else (number("epsilon", epsilon, above=0),)
    one, other = _halves(plan, public, unit)
    width = plan.features.dimension
    base = np.zeros((len(plan.words), 1))
    if plan.public is not None:
        base = np.zeros((len(plan.words), plan.public.dimension))
        base[: len(plan.public)] = public_base(plan.public.matrix, plan.public.vocabulary.unknown_row)
    found = strengths(one, other, base, plan.weights > 0)
    expected = []
    for each in given:
        sigma = PersonalBudgets(each, delta=plan.budgets.delta, floor=0.0).sigma
        least = found.least(sigma, width)
        half: float = math.inf
        if math.isfinite(least):
            low, high = least, float(_MOST)
            if found.passed(high, sigma, width) >= HALF:
                while high / low > 1.01:
                    middle = math.sqrt(low * high)
                    low, high = (low, middle) if found.passed(middle, sigma, width) >= HALF else (middle, high)
                half = high
        expected.append(
            ExpectedVectors(
                epsilon=float(each),
                sigma=sigma,
                passed=found.passed(people, sigma, width),
                least=_rounded(least),
                half=_rounded(half),
            )
        )
    return expected


def _halves(
    plan: Plan, public: DocumentReader | Iterable[Document], unit: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The mean matrices of every second person."""
    sums = [UserMatrixSum(plan.features, plan.weights, plan.window) for _ in range(2)]
    kind: UserUnit = "user" if unit == "user" else "document"
    with users_of(public, plan.words, unit=kind, most_words=plan.most_words, seed=_SEED) as users:
        counts = [
            half.add(UserText(person.chunks()) for person in islice(users, start, None, 2))
            for start, half in enumerate(sums)
        ]
    if min(counts) == 0:
        raise DataError(f"expected public texts of two people at least, got {sum(counts)}")
    return sums[0].cells * np.float64(CELL / counts[0]), sums[1].cells * np.float64(CELL / counts[1])


def _rounded(people: float) -> int | None:
    """To two digits, upwards: it is no more exact than that."""
    if not math.isfinite(people) or people > _MOST:
        return None
    step: int = 10 ** max(0, math.floor(math.log10(max(people, 1.0))) - 1)
    return max(1, math.ceil(people / step) * step)
