"""The audit of a file of private vectors: the randomizer again from its statement, and two vectors through it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dptext.audits.judge import audit
from dptext.audits.verdict import Verdict
from dptext.errors import DataError, ParameterError
from dptext.privacy.agreement import disagreements
from dptext.privacy.statement import PrivacyStatement
from dptext.report.checks import Check, check_digest, check_promise
from dptext.representations.files import vectors_in
from dptext.representations.published.claim import PublishedChannel
from dptext.representations.registry import PUBLISHED_ONLY, RANDOMIZERS, randomizer_from_parameters

__all__ = ["audit_vector_file", "is_of_vectors"]

_MOST_NUMBERS = 1 << 20  # of a vector: what is audited has to fit into memory
_NO_CONSTANTS = ("exposed", "witness", "witness_loss")
"""What follows from the encoder, which a statement does not hold, and what a search found."""


def is_of_vectors(statement: PrivacyStatement) -> bool:
    """Whether the statement speaks of vectors that a randomizer of this library made."""
    return statement.mechanism in RANDOMIZERS or statement.mechanism in PUBLISHED_ONLY


def audit_vector_file(
    statement: PrivacyStatement, data: Path, *, samples: int, error: float, seed: int | None
) -> tuple[list[Check], Verdict]:
    """Check a file of private vectors against its statement, and try to refute the promise for a vector.

    Raises:
        DataError: the parameters of the statement are none that its randomizer could have.
    """
    randomizer = randomizer_from_parameters(statement.mechanism, statement.parameters)
    dimension = _number(statement, "dimension")
    if dimension > _MOST_NUMBERS:
        raise DataError(f"expected a statement of vectors of at most {_MOST_NUMBERS:,} numbers, got {dimension:,}")
    try:
        again = randomizer.statement(dimension)
    except ParameterError as problem:
        raise DataError(f"the statement speaks of a randomizer that cannot be: {problem}") from None
    checks = [*_check_data(statement, data), _check_numbers(statement, again)]
    # the claim is that of the file: the parameters may say more than they keep
    channel = randomizer.channel(dimension)
    pair = channel.witness if isinstance(channel, PublishedChannel) else None  # two that are known to lose most
    verdict = audit(channel, statement, pair=pair, samples=samples, error=error, seed=seed)
    return checks, verdict


def _number(statement: PrivacyStatement, name: str) -> int:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DataError(f"the statement lacks the {name} of its vectors: it is not one that dptext wrote")
    return value


def _check_data(statement: PrivacyStatement, data: Path) -> list[Check]:
    digest = check_digest(statement, data)
    if digest.held is None:
        return [digest]
    width = _number(statement, "width")
    count = wrong = 0
    for vectors in vectors_in(data):
        count += len(vectors)
        fits = vectors.shape[1] == width
        wrong += int((~np.isfinite(vectors).all(axis=1)).sum()) if fits else len(vectors)
    seen = f"{count:,} vectors, {wrong:,} of them otherwise"
    return [digest, Check(f"every vector has {width:,} finite numbers", wrong == 0, seen)]


def _check_numbers(statement: PrivacyStatement, again: PrivacyStatement) -> Check:
    """Whether guarantee, slack, the constants of the noise and what it takes for granted follow from the parameters."""
    differ = disagreements(statement, again, of_a_release=True, apart_from=_NO_CONSTANTS)
    return check_promise(statement, again, differ)
