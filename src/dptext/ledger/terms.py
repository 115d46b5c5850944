"""What a ledger counts in: its currency, prices and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from dptext.checks import number, whole
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    NoGuarantee,
    Relation,
    Unit,
    approx_from_zcdp,
    as_approx,
    at_most,
    for_group,
)

__all__ = ["TEXT", "TOLERANCE", "Balance", "Ceiling", "Currency", "Limits", "Terms", "price", "terms_of"]

TEXT = "text"
"""What a ledger is keyed by when no column identifies the row: the text itself."""

TOLERANCE = 1e-9
"""A sum passes up to limit * (1 + TOLERANCE): floats add up with an error, of about 1e-16 an addition."""


_LARGEST = 1e300  # what is near the largest float would limit nothing


class Currency(StrEnum):
    """What adds up. Currencies do not convert without a choice (a delta, a diameter)."""

    EPSILON = "epsilon"
    RHO = "rho"
    DISTANCE = "epsilon per distance"


@dataclass(frozen=True)
class Terms:
    """What all releases in one ledger share; the first one fixes it."""

    currency: Currency
    metric: str | None
    space: str | None
    unit: Unit
    relation: Relation
    by: str

    @property
    def cost(self) -> str:
        """Name of the currency in messages."""
        return f"epsilon per unit of {self.metric} distance" if self.currency is Currency.DISTANCE else self.currency

    @property
    def units(self) -> str:
        """Name of the units in messages."""
        return "texts" if self.by == TEXT else f"values of {self.by!r}"

    def check(self, other: Terms) -> None:
        """Raise a RefusedError if a release does not add to the earlier ones."""
        for what, mine, theirs in (
            ("in", self.cost, other.cost),
            ("in the space", self.space, other.space),
            ("for the unit", self.unit, other.unit),
            ("under the relation", self.relation, other.relation),
            ("by", f"the {self.units}", f"the {other.units}"),
        ):
            if mine != theirs:
                raise RefusedError(
                    f"the ledger refuses: it counts {what} {mine}, this release {what} {theirs}, and the two do not "
                    "add; use another ledger (whoever is in both loses in both); nothing was released"
                )


def terms_of(guarantee: Guarantee, *, unit: Unit, relation: Relation, by: str) -> Terms:
    """Return the terms of a release."""
    if not isinstance(by, str) or not by:
        raise ParameterError(f"by must be {TEXT!r} or the name of a column, got another value")
    if isinstance(guarantee, NoGuarantee):
        raise RefusedError("the ledger refuses a release without a guarantee: it has no price; nothing was released")
    if unit not in (Unit.DOCUMENT, Unit.USER):
        raise RefusedError(
            f"the ledger refuses: it charges documents or users, this promise is for the unit {unit}; "
            "take the statement of the document or the user; nothing was released"
        )
    if unit is Unit.USER and by == TEXT:
        raise ParameterError("a promise to users cannot be charged to texts: name the column that tells users apart")
    if isinstance(guarantee, MetricDP):
        return Terms(Currency.DISTANCE, guarantee.metric, guarantee.space, unit, relation, by)
    currency = Currency.RHO if isinstance(guarantee, ZCDP) else Currency.EPSILON
    return Terms(currency, None, None, unit, relation, by)


def price(guarantee: Guarantee, documents: int) -> tuple[float, float]:
    """Return the cost of a release for a unit with this many of its documents: (in the currency, in delta)."""
    if isinstance(guarantee, MetricDP):
        cost, delta = guarantee.epsilon, 0.0  # the distances of the documents are summed; the factor stays the same
    else:
        group = for_group(guarantee, documents)
        if isinstance(group, ZCDP):
            cost, delta = group.rho, 0.0
        else:
            both = as_approx(group)
            cost, delta = both.epsilon, both.delta
    if not math.isfinite(cost):
        raise RefusedError(
            f"the ledger refuses a release that costs infinitely much for {documents:,} documents of one unit: "
            "nothing is promised there; nothing was released"
        )
    return float(cost), float(delta)


@dataclass(frozen=True)
class Ceiling:
    """Limits in the currency of a ledger; infinite if there is none."""

    cost: float
    delta: float
    releases: float


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits per unit over all releases; None: no limit."""

    epsilon: float | None = None
    delta: float | None = None
    releases: int | None = None

    def __post_init__(self) -> None:
        if self.epsilon is None and self.releases is None:
            raise ParameterError("a ledger needs a limit: give an epsilon, a number of releases, or both")
        if self.delta is not None and self.epsilon is None:
            raise ParameterError("a delta limits nothing without an epsilon: give both")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", number("epsilon", self.epsilon, above=0, most=_LARGEST))
        if self.delta is not None:
            object.__setattr__(self, "delta", number("delta", self.delta, above=0, below=1))
        if self.releases is not None:
            object.__setattr__(self, "releases", whole("releases", self.releases, least=1, most=2**31 - 1))

    def __str__(self) -> str:
        parts = [f"{name} {value:g}" for name in ("epsilon", "delta") if (value := getattr(self, name)) is not None]
        if self.releases is not None:
            parts.append(f"{self.releases:,} release{'s' if self.releases > 1 else ''}")
        return ", ".join(parts)

    def ceiling(self, currency: Currency) -> Ceiling:
        """Return the limits in a currency; raise a RefusedError for zCDP without a delta."""
        releases = math.inf if self.releases is None else self.releases
        if self.epsilon is None:
            return Ceiling(math.inf, math.inf, releases)
        if currency is Currency.RHO:
            if self.delta is None:
                raise RefusedError(
                    "the ledger refuses: zCDP has an epsilon only at a delta, and this ledger was made without one; "
                    "make one with --delta; nothing was released"
                )
            return Ceiling(_largest_rho(self.epsilon, self.delta), math.inf, releases)
        if currency is Currency.DISTANCE:
            return Ceiling(self.epsilon, math.inf, releases)
        return Ceiling(self.epsilon, self.delta or 0.0, releases)

    def check(self, guarantee: Guarantee) -> None:
        """Raise a RefusedError if the guarantee has a delta and the ledger none."""
        no_delta = self.epsilon is not None and self.delta is None
        if no_delta and isinstance(guarantee, ApproxDP) and guarantee.delta > 0:
            raise RefusedError(
                "the ledger refuses: this release has a delta, and the ledger was made without one; "
                "make one with --delta; nothing was released"
            )


@dataclass(frozen=True)
class Balance:
    """What one unit has spent, and has left (None: no limit)."""

    spent: float
    delta: float
    releases: int
    left: float | None
    delta_left: float | None
    releases_left: int | None

    @classmethod
    def under(cls, ceiling: Ceiling, spent: float, delta: float, releases: int) -> Balance:
        """Return the balance of a unit that has spent these amounts."""
        left_releases = remaining(ceiling.releases, releases)
        return cls(
            spent,
            delta,
            releases,
            remaining(ceiling.cost, spent),
            remaining(ceiling.delta, delta),
            None if left_releases is None else int(left_releases),
        )

    @property
    def exhausted(self) -> bool:
        """True if no release passes any more (except one that costs nothing)."""
        return 0 in (self.left, self.releases_left)


def remaining(limit: float, spent: float) -> float | None:
    """What is left of a limit: 0 if it is used up within the tolerance, None if there is no limit."""
    if math.isinf(limit):
        return None
    left = limit - spent
    return left if left > limit * TOLERANCE else 0.0


def in_digits(value: float) -> str:
    """Format an amount to 4 digits, never rounded down; 0.1 + 0.2 is 0.3."""
    return at_most(value * (1 - TOLERANCE), 4)


def in_digits_at_least(value: float) -> str:
    """Format a remaining amount to 4 digits, never rounded up."""
    return at_most(-value * (1 + TOLERANCE), 4).removeprefix("-")


def _largest_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose epsilon at this delta is within the limit (the conversion grows with rho)."""
    low, high = 0.0, epsilon
    while (middle := (low + high) / 2) not in (low, high):
        if approx_from_zcdp(ZCDP(middle), delta=delta).epsilon <= epsilon:
            low = middle
        else:
            high = middle
    return low
