"""Shared word vectors: what words mean in people's texts, by one noisy release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from dptext.audits.verdict import Verdict, judge_gaussian, judge_sampled_gaussian
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.embeddings.plan import ExpectedVectors, expected_vectors
from dptext.embeddings.sharing import check_copies
from dptext.io.documents import Document
from dptext.methods.base import (
    NO_USER,
    PROTECTING,
    AdviceInput,
    Assessment,
    Audit,
    Caveat,
    Method,
    Preview,
    ReleaseFiles,
    round_down,
)
from dptext.methods.checks import (
    DIGITS,
    FILES_AGREE,
    Check,
    covers_earlier,
    own_guarantee,
    real_parameter,
    speaks_of,
    whole_parameter,
)
from dptext.methods.files import STATEMENT, FolderKind
from dptext.privacy.gaussian import SampledGaussian
from dptext.privacy.guarantee import Trust, Unit
from dptext.privacy.statement import PrivacyStatement
from dptext.vectors.formats import load_folder, statements_in

_DELTA = 1e-6
_PEOPLE = 1_500  # public texts that stand for people
_LITTLE, _NOTHING = 0.1, 0.01  # of what people's texts add to public vectors
_GOOD_FOR = "Similar words, and features for models of this domain."


_MECHANISMS = ("co-occurrences", "skip-gram")
_COVERAGE = (
    "whoever takes part beside them: each part is clipped to its length, as long as the software that the statement "
    "names did what it says"
)


class Embeddings(Method):
    """``dptext embed``."""

    name = "shared word vectors"
    command = "embed"
    trust = Trust.CENTRAL
    purposes: ClassVar = {None: 1, "read": 0, "classify": 1, "vectors": 3, "devices": 0, "statistics": 1}
    holds = "word vectors"
    audited = "learned"
    folder = FolderKind.VECTORS
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

    def recognizes(self, statement: PrivacyStatement) -> bool:
        return statement.mechanism.split(" + ")[0] in _MECHANISMS  # earlier releases that went into it follow

    def check(self, files: ReleaseFiles) -> Audit:
        vectors = load_folder(files.data, limit=None, source=files.data.name)
        statement = vectors.statement
        assert statement is not None  # the folder has one
        said = statement.parameters.get("words")
        count = f"{len(vectors):,} words, {vectors.dimension} numbers each"
        checks = [
            FILES_AGREE,
            Check("there are as many words as the statement says", len(vectors) == said, count),
            Check("all numbers are finite", bool(np.isfinite(vectors.matrix).all()), count),
        ]
        for name, agrees in check_copies(files.data, vectors):
            seen = "byte for byte" if agrees else "it holds others"
            checks.append(Check(f"{name} is a copy of these vectors", agrees, seen))
        for file, one in statements_in(files.data).items():
            verdict = _judge_learned(one)
            level = one.parameters.get("level")
            whose = "everybody" if level is None or file == STATEMENT else f"users of the level {str(level)!r}"
            checks.append(
                Check(f"the promise to {whose} follows from the parameters", not verdict.refuted, f"{one.guarantee}")
            )
        level = statement.parameters.get("epsilon_for_level", 0.0)
        sent = float(level) * DIGITS[0] if isinstance(level, int | float) else 0.0
        checks.append(Check("the promise covers the release and what went into it", *covers_earlier(statement, sent)))
        return Audit(statement, checks, _judge_learned(statement))


def _caveats(case: AdviceInput, expected: ExpectedVectors | None) -> Iterator[Caveat]:
    if case.data.unit == "document":
        yield NO_USER
    if expected is not None and expected.passed < _LITTLE:
        weight, nearly = (2, "") if expected.passed < _NOTHING else (1, "nearly ")
        yield Caveat(weight, f"Too few {case.data.whom} for this budget: the vectors stay {nearly}the public ones.")


def _judge_learned(statement: PrivacyStatement) -> Verdict:
    """Whether the noise that a statement of learned vectors names is enough for what this release promises itself."""
    people = {Unit.USER: "all people", Unit.DOCUMENT: "all documents"}.get(statement.unit, "all pairs of words")
    how: dict[str, Any] = {"own": own_guarantee(statement), "coverage": f"{people}, {_COVERAGE}"}
    with speaks_of("noise"):
        if "sigma" in statement.parameters:
            sigma, sensitivity = real_parameter(statement, "sigma"), real_parameter(statement, "sensitivity")
            return judge_gaussian(statement, sigma=sigma, sensitivity=sensitivity, **how)
        account = SampledGaussian(
            noise_multiplier=real_parameter(statement, "noise_multiplier"),
            sampling_rate=real_parameter(statement, "sampling_rate"),
            steps=whole_parameter(statement, "steps"),
        )
        return judge_sampled_gaussian(statement, account=account, **how)
