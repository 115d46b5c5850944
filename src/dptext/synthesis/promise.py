"""What a corpus or a description of people's texts promises: one statement for every method of this room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

from dptext.checks import choice, number, whole
from dptext.features.features import PublicFeatures
from dptext.noise.gaussian_sums import ELEMENTARY, MOST_USERS
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.guarantee import ApproxDP, Relation, Trust, Unit, rounded_up
from dptext.privacy.restating import check_prior, counted_in, substituted
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, of_release
from dptext.showing import Facts
from dptext.synthesis.labels import Labels
from dptext.synthesis.sources import Source, with_source
from dptext.users.grouping import ONE_NAME, UserUnit

__all__ = ["MOST_DOCUMENTS", "Terms", "always_assumed", "noise_parameters"]

MOST_DOCUMENTS = 1000
"""Of a person, this many documents are looked at, unless another number is given."""
_UNITS = {"user": Unit.USER, "document": Unit.DOCUMENT}


@dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """Who is promised what, by Gaussian noise on sums that a person moves by at most 1: public, and checked."""

    unit: UserUnit
    labels: Labels
    budget: PersonalBudgets
    most_documents: int = MOST_DOCUMENTS

    def __post_init__(self) -> None:
        check_prior(self.prior, _UNITS[self.unit])

    @classmethod
    def of(cls, *, epsilon: float, delta: float, labels: Any, column: str, unit: str, most_documents: int) -> Terms:
        """From the arguments that every synthesizer has."""
        return cls(
            unit="user" if choice("unit", unit, get_args(UserUnit)) == "user" else "document",
            labels=Labels.of(labels, column=column),
            budget=PersonalBudgets(number("epsilon", epsilon, above=0), delta=delta, floor=0.0),
            most_documents=whole("most_documents", most_documents, least=1),
        )

    def _in_brief(self) -> Facts:
        """For whoever shows itself by its terms."""
        yield "epsilon", max(self.budget.levels.values())
        yield "delta", self.budget.delta
        yield "unit", self.unit
        yield "labels", self.labels.names if self.labels.columns else None

    @cached_property
    def prior(self) -> dict[str, PrivacyStatement]:
        """What was released before about the same people and is not public: learned labels. (Features may add more.)"""
        return dict(self.labels.learned)

    def under_substitution(self, features: PublicFeatures) -> ApproxDP:
        """What is promised when a person's texts are replaced by other ones, all before it counted in."""
        prior = {**self.prior, **features.prior}
        return substituted(self.budget.guarantee(relation=Relation.SUBSTITUTION), prior)

    def statement(
        self,
        mechanism: str,
        features: PublicFeatures,
        parameters: Mapping[str, Parameter],
        *,
        source: Source | None = None,
        seeded: bool,
        release_id: str | None = None,
    ) -> PrivacyStatement:
        """The statement of a release, with what was promised before counted in."""
        check_prior(features.prior, _UNITS[self.unit])
        prior = {**self.prior, **features.prior}
        swapped = self.under_substitution(features)
        first, *others = always_assumed(_UNITS[self.unit], counted_in=bool(prior))
        said: dict[str, Parameter] = {
            **noise_parameters(self.budget, swapped),
            **{f"promise_of_{name}": str(before.guarantee) for name, before in prior.items()},
            "classes": len(self.labels),
            "label_columns": ", ".join(self.labels.columns) or None,
            "labels_sha256": self.labels.sha256,
            "most_documents": self.most_documents,
            **parameters,
            **features.parameters(),
        }
        statement = of_release(
            guarantee=self.budget.guarantee(),
            unit=_UNITS[self.unit],
            relation=Relation.ADD_REMOVE,
            trust=Trust.CENTRAL,
            mechanism=mechanism,
            parameters=said if source is None else with_source(said, source),
            assumptions=(
                first,
                *features.assumptions(),
                *(() if source is None else source.assumptions()),
                *others,
            ),
            exposed=(
                *self._names_of_labels(),
                *(() if source is None else source.exposed()),
            ),
            seeded=seeded,
            release_id=release_id or new_release_id(),
        )
        return counted_in(statement, prior)

    def _names_of_labels(self) -> tuple[str, ...]:
        if not self.labels.columns:
            return ()
        known = "they were released under a promise of their own, counted in above" if self.prior else "they are public"
        described = ("the descriptions of the labels: they are public",) if self.labels.described else ()
        return (f"the names of the labels: {known}", *described)


def noise_parameters(budget: PersonalBudgets, swapped: ApproxDP) -> dict[str, Parameter]:
    """What a statement says of budget and noise."""
    return {
        "epsilon": budget.cap,
        "delta": budget.delta,
        "sigma": budget.sigma,
        "sensitivity": 1.0,
        "epsilon_under_substitution": rounded_up(swapped.epsilon, 4),
        "delta_under_substitution": rounded_up(swapped.delta, 4),
    }


def always_assumed(unit: Unit, *, counted_in: bool) -> tuple[str, ...]:
    """What every description of people's texts takes for granted, before what its features do."""
    return (
        "all parameters are public, or computed from what was released before under a promise counted in above"
        if counted_in
        else "all parameters are public; none was computed from the protected texts",
        *(ONE_NAME if unit is Unit.USER else ()),
        "that there is at least one document may be known",
        f"at most {MOST_USERS:,} {unit}s take part",
        ELEMENTARY,
    )
