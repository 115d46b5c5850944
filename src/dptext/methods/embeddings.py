"""Shared word vectors: what words mean in people's texts, by one noisy release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.plan import ExpectedVectors, expected_vectors
from dptext.io.documents import Document
from dptext.methods.base import NO_USER, PROTECTING, AdviceInput, Assessment, Caveat, Method, Preview, round_down
from dptext.privacy.guarantee import Trust

_DELTA = 1e-6
_PEOPLE = 1_500  # public texts that stand for people
_LITTLE, _NOTHING = 0.1, 0.01  # of what people's texts add to public vectors
_GOOD_FOR = "Similar words, and features for models of this domain."


class Embeddings(Method):
    """``dptext embed``."""

    name = "shared word vectors"
    command = "embed"
    trust = Trust.CENTRAL
    purposes: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 3, "devices": 0, "statistics": 1}
    mismatch: ClassVar = {
        "read": "There is nothing to read: the output is one vector per word.",
        "devices": "The texts must be collected first: no device sends a vector of its own.",
    }

    def assess(self, case: AdviceInput, *, figures: bool) -> Assessment:
        vectors = case.vectors if figures else None
        estimator = Cooccurrence(
            case.public.stand_in if vectors is None else vectors, epsilon=PROTECTING, delta=_DELTA, unit=case.data.unit
        )
        plan = estimator.plan()
        statement = plan.statement(plan.levels.most, seeded=False)
        expected, good_for = None, _GOOD_FOR
        if vectors is None:
            statement = statement.replace(parameters={})
        else:
            people = round_down(case.data.protected)
            documents = (Document(text) for text in case.public.pool.texts[:_PEOPLE])
            [expected] = expected_vectors(plan, documents, people=people, epsilon=PROTECTING)
            half = "" if expected.half is None else f", half with {expected.half:,}"
            good_for += (
                f" With {people:,} {case.data.whom}, each with one public text, {expected.passed:.0%} of what they add "
                f"to public vectors passes the noise{half}."
            )
        return Assessment(
            statement=statement,
            good_for=good_for,
            caveats=tuple(_caveats(case, expected)),
            commands=(case.command("embed", ".vectors", f"--epsilon {PROTECTING:g}", trust=Trust.CENTRAL),),
            preview=Preview(missing="there are no texts: one vector per public word"),
        )


def _caveats(case: AdviceInput, expected: ExpectedVectors | None) -> Iterator[Caveat]:
    if case.data.unit == "document":
        yield NO_USER
    if expected is not None and expected.passed < _LITTLE:
        weight, nearly = (2, "") if expected.passed < _NOTHING else (1, "nearly ")
        yield Caveat(weight, f"Too few {case.data.whom} for this budget: the vectors stay {nearly}the public ones.")
