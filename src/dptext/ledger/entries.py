"""The lines of a ledger: what is written down of a release, and how a refusal is said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from dptext.errors import ParameterError, RefusedError
from dptext.ledger.store import Overspent
from dptext.ledger.terms import Balance, Limits, Terms, in_digits, in_digits_at_least, remaining, terms_of
from dptext.privacy.guarantee import Guarantee, guarantee_from_dict, guarantee_to_dict
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.unit import Relation, Unit

__all__ = ["PENDING", "RELEASED", "Release", "Summary", "describe", "read_release", "refusal"]

PENDING, RELEASED = "pending", "released"

_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(frozen=True)
class Release:
    """One line of the ledger.

    Attributes:
        release_id: its name.
        at: when it was reserved, in UTC, ISO 8601.
        state: pending (counts as spent, may be voided) or released.
        mechanism: what made it, if that was said.
        guarantee: its price for a unit with one document.
        terms: currency, unit, relation, and by what rows are told apart.
        units: how many texts or values were charged.
        documents: how many documents it holds.
    """

    release_id: str
    at: str
    state: str
    mechanism: str | None
    guarantee: Guarantee
    terms: Terms
    units: int
    documents: int


@dataclass(frozen=True)
class Summary:
    """The ledger at a glance.

    Attributes:
        created: when it was made, in UTC, ISO 8601.
        limits: what a unit may lose.
        terms: what all releases share; None before the first.
        releases: how many there are.
        pending: how many of them are not settled.
        units: how many texts or values were ever charged.
        exhausted: how many of them have nothing left.
        median, most: the balance of the unit in the middle, and of the one that spent most; None before the first.
    """

    created: str
    limits: Limits
    terms: Terms | None
    releases: int
    pending: int
    units: int
    exhausted: int
    median: Balance | None
    most: Balance | None


def describe(
    promise: PrivacyStatement | Guarantee,
    *,
    by: str,
    unit: Unit | None,
    relation: Relation | None,
    mechanism: str | None,
) -> tuple[Guarantee, Terms, str]:
    """The guarantee and the terms of a release, and the JSON in which the ledger keeps them.

    Raises:
        ParameterError, RefusedError: see `Ledger.reserve`.
    """
    if isinstance(promise, PrivacyStatement):
        if unit is not None or relation is not None or mechanism is not None:
            raise ParameterError("unit, relation and mechanism stand in the statement: leave them out")
        if promise.seeded:
            raise RefusedError(
                "the ledger refuses a seeded release: equal noise in two releases does not add up, it cancels; "
                "leave the seed out; nothing was released"
            )
        if promise.condition.for_some_only is not None:
            raise RefusedError(
                f"the ledger refuses a promise {promise.condition.for_some_only}: beside promises to all it would "
                "count as more than it is; nothing was released"
            )
        guarantee, unit, relation, mechanism = promise.guarantee, promise.unit, promise.relation, promise.mechanism
    elif not isinstance(promise, Guarantee):
        raise ParameterError(f"promise must be a statement or a guarantee, got {type(promise).__name__}")
    elif unit is None or relation is None:
        raise ParameterError("a guarantee alone does not say whom it protects: give its unit and its relation too")
    else:
        guarantee, unit, relation = promise, _choice("unit", Unit, unit), _choice("relation", Relation, relation)
    terms = terms_of(guarantee, unit=unit, relation=relation, by=by)
    about = {
        "guarantee": guarantee_to_dict(guarantee),
        "unit": unit,
        "relation": relation,
        "by": by,
        "mechanism": mechanism,
    }
    return guarantee, terms, json.dumps(about)  # pure ASCII: SQLite takes no half surrogate pairs


def read_release(release_id: str, at: str, state: str, about: str, units: int, documents: int) -> Release:
    """A release as the ledger keeps it.

    Raises:
        ValueError, TypeError, KeyError: the JSON in ``about`` is not what `describe` writes.
    """
    data = json.loads(about)
    guarantee = guarantee_from_dict(data["guarantee"])
    terms = terms_of(guarantee, unit=Unit(data["unit"]), relation=Relation(data["relation"]), by=data["by"])
    return Release(release_id, at, state, data["mechanism"], guarantee, terms, units, documents)


def refusal(over: Overspent, units: int, limits: Limits, terms: Terms, *, pending: int) -> str:
    """Why, in numbers that name nobody: amounts and counts; and what to do where other releases are pending."""
    ceiling = limits.ceiling(terms.currency)
    if over.by_cost:
        what, limit, spent, cost = terms.cost, ceiling.cost, over.spent, over.cost
    elif over.by_delta:
        what, limit, spent, cost = "delta", ceiling.delta, over.delta_spent, over.delta
    else:
        what, limit, spent, cost = "releases", ceiling.releases, float(over.releases), 1.0
    left = in_digits_at_least(remaining(limit, spent) or 0.0)
    return (
        f"the ledger refuses: {over.units:,} of {units:,} {terms.units} would be overspent (limit: {what} "
        f"{in_digits_at_least(limit)}, already spent: at most {in_digits(spent)}, this release costs "
        f"{'at most ' if over.prices > 1 else ''}{in_digits(cost)}, so {left} is left for some); "
        "nothing was released"
        + (
            ""
            if not pending
            else f" ({pending:,} pending, which count: dptext ledger show says what to do of a dead run)"
        )
    )


def _choice(name: str, choices: type[_Choice], value: str) -> _Choice:
    try:
        return choices(value)
    except ValueError:
        raise ParameterError(f"{name} must be one of {', '.join(choices)}, got another value") from None
