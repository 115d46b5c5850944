"""Shared word vectors: what words mean in people's texts, by one noisy release."""

from __future__ import annotations

from collections.abc import Iterator

from dptext.advice.pasted import folded, inputs, option, out, text_option
from dptext.advice.way import (
    PROTECTING,
    Case,
    Makeup,
    Objection,
    Preview,
    Way,
    built,
    rounded_people,
    without_parameters,
)
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.unit import Trust
from dptext.users.grouping import UserUnit
from dptext.vectors.word_vectors import WordVectors

__all__ = ["shared_vectors"]

_DELTA = 1e-6
_SEEN = 4 * 2_532 / 0.653
"""People for each sigma of noise from which the vectors of bloggers gained something over public ones: four times the
2,532 there were, at epsilon 8 (papers/dpugc)."""


def shared_vectors(case: Case) -> Way:
    """The way of ``dptext embed``."""
    return built(
        case,
        name="shared word vectors",
        command="embed",
        trust=Trust.CENTRAL,
        serves={None: 1, "read": 0, "classify": 1, "vectors": 3, "devices": 0, "statistics": 1},
        mismatch={
            "read": "There is nothing to read: it is a vector for each word.",
            "devices": "Texts are collected first: no device sends a vector of its own.",
        },
        makeup=_makeup,
        bare=_bare,
        pasted=_pasted,
        preview=lambda _: Preview(missing="there are no texts: a vector for each public word"),
    )


def _promise(case: Case, vectors: WordVectors) -> PrivacyStatement:
    unit: UserUnit = "document" if case.data.roles.user is None else "user"
    plan = Cooccurrence(vectors, epsilon=PROTECTING, delta=_DELTA, unit=unit).plan()
    return plan.statement(plan.levels.most, seeded=False)


def _bare(case: Case) -> Makeup:
    return Makeup(without_parameters(_promise(case, case.public.stand_in)), _GOOD, tuple(_objections(case)))


def _makeup(case: Case) -> Makeup:
    return Makeup(_promise(case, case.public.vectors), _GOOD, tuple(_objections(case)))


_GOOD = (
    "Similar words, features for models of this domain. 2,532 bloggers added nothing to public vectors at epsilon 8, "
    "four times as many something (papers/dpugc)."
)


def _objections(case: Case) -> Iterator[Objection]:
    by_text = case.data.roles.user is None
    if by_text:
        yield Objection(0, "No column says who wrote a text: single texts are protected; name it: --user.")
    people, whom = rounded_people(case.data.protected), "texts" if by_text else "people"
    needed = _SEEN * PersonalBudgets(PROTECTING, delta=_DELTA).sigma
    if people < needed:
        much = f"{people:,} here, and with fewer than {_round_up(needed):,} the vectors stay the public ones."
        yield Objection(2, f"Too few {whom} for this budget: {much}")


def _round_up(count: float) -> int:
    unit = int(10 ** (len(str(int(count))) - 1))
    return -(-int(count) // unit) * unit


def _pasted(case: Case) -> tuple[str, ...]:
    data, user = case.data, case.data.roles.user
    return (
        folded(
            f"dptext embed {inputs(data)}",
            f"-o {out(data, 'vectors', '')}",
            *text_option(data),
            "--unit document" if user is None else option("user", user),
            f"--epsilon {PROTECTING:g}",
        ),
    )
