"""Shared word vectors: what words mean in people's texts, by one noisy release."""

from __future__ import annotations

from collections.abc import Iterator

from dptext.advice.pasted import folded, inputs, out, text_option, unit_option
from dptext.advice.way import (
    PROTECTING,
    Case,
    Makeup,
    Objection,
    Preview,
    Way,
    built,
    of_users,
    rounded_people,
    without_parameters,
)
from dptext.embeddings.cooccurrence import Cooccurrence, Plan
from dptext.embeddings.plan import ExpectedVectors, expected_vectors
from dptext.io.documents import Document
from dptext.privacy.guarantee import Trust
from dptext.privacy.statement import PrivacyStatement
from dptext.vectors.word_vectors import WordVectors

_DELTA = 1e-6
_PEOPLE = 1_500  # public texts that play them
_LITTLE, _NOTHING = 0.1, 0.01  # of what people's texts add to public vectors


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


def _plan(case: Case, vectors: WordVectors) -> Plan:
    return Cooccurrence(vectors, epsilon=PROTECTING, delta=_DELTA, unit=case.data.unit).plan()


def _promise(plan: Plan) -> PrivacyStatement:
    return plan.statement(plan.levels.most, seeded=False)


def _bare(case: Case) -> Makeup:
    promise = _promise(_plan(case, case.public.stand_in))
    return Makeup(without_parameters(promise), _GOOD, tuple(_objections(case, None)))


def _makeup(case: Case) -> Makeup:
    plan, people = _plan(case, case.public.vectors), rounded_people(case.data.protected)
    public = (Document(text) for text in case.public.pool.texts[:_PEOPLE])
    [expected] = expected_vectors(plan, public, people=people, epsilon=PROTECTING)
    figure = (
        f"With {people:,} {case.data.whom}, if each wrote as much as one public text, {expected.passed:.0%} of what "
        f"they add to public vectors comes through the noise"
        f"{'' if expected.half is None else f', half with {expected.half:,}'}."
    )
    return Makeup(_promise(plan), f"{_GOOD} {figure}", tuple(_objections(case, expected)))


_GOOD = "Similar words and features for models of this domain."


def _objections(case: Case, expected: ExpectedVectors | None) -> Iterator[Objection]:
    yield from of_users(case)
    if expected is not None and expected.passed < _LITTLE:
        weight, nearly = (2, "") if expected.passed < _NOTHING else (1, "nearly ")
        yield Objection(weight, f"Too few {case.data.whom} for this budget: the vectors stay {nearly}the public ones.")


def _pasted(case: Case) -> tuple[str, ...]:
    data = case.data
    return (
        folded(
            f"dptext embed {inputs(data)}",
            f"-o {out(data, 'vectors', '')}",
            *text_option(data),
            unit_option(data),
            f"--epsilon {PROTECTING:g}",
        ),
    )
