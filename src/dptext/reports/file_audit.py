"""The audit of a private file: the file against its statement, its numbers made again, and the promise itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dptext.audits.mechanisms import audit
from dptext.audits.verdict import Verdict
from dptext.errors import DataError, ParameterError
from dptext.files.documents import read_documents
from dptext.files.folders import find_files
from dptext.privacy.agreement import disagreements
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import data_agrees
from dptext.representations.files import vectors_in
from dptext.representations.published.claim import PublishedChannel
from dptext.representations.registry import PUBLISHED_ONLY, RANDOMIZERS, randomizer_from_parameters
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import count_foreign_words, words_that_can_come_out

__all__ = ["Check", "audit_vector_file", "audit_word_file", "is_of_vectors"]

_MOST_NUMBERS = 1 << 20  # of a vector: what is audited has to fit into memory
_NO_CONSTANTS = ("exposed", "witness", "witness_loss")
"""What follows from the encoder, which a statement does not hold, and what a search found."""
_WORDED = {"condition", "assumptions", "exposed"}
_SEEN = {True: "its SHA-256 agrees", False: "its SHA-256 DIFFERS", None: "there is no data to compare"}


@dataclass(frozen=True)
class Check:
    """One thing that was checked of a file beside the promise itself.

    Attributes:
        name: what.
        held: whether it held; None: there was nothing to check.
        seen: what was seen.
    """

    name: str
    held: bool | None
    seen: str


def is_of_vectors(statement: PrivacyStatement) -> bool:
    """Whether the statement speaks of vectors that a randomizer of this library made."""
    return statement.mechanism in RANDOMIZERS or statement.mechanism in PUBLISHED_ONLY


def audit_word_file(
    statement: PrivacyStatement,
    data: Path,
    mechanism: WordMechanism,
    *,
    text: str = "text",
    words: Sequence[str] | None = None,
    samples: int,
    error: float,
    seed: int | None,
) -> tuple[list[Check], Verdict]:
    """Check a file of private texts against its statement, and try to refute the promise for a word.

    Raises:
        DataError: a row cannot be read.
    """
    checks = _check_digest(statement, data)
    if checks[0].held is not None:
        known = words_that_can_come_out(mechanism.vectors.vocabulary)
        documents = foreign = 0
        parts = [path for path, _ in find_files([data])]  # of a folder, as Spark writes it
        for document in read_documents(parts, text=text):
            documents += 1
            foreign += count_foreign_words(document.text or "", known)
        seen = f"{documents:,} documents, {foreign:,} words that the mechanism cannot have written"
        checks.append(Check("every word is one that the mechanism writes", foreign == 0, seen))
    longest = statement.parameters.get("words_counted")
    again = mechanism.document_statement(longest if isinstance(longest, int) else 0)
    checks.append(_check_promise(statement, again, apart_from=("vectors",)))  # they may have moved
    return checks, audit(mechanism, words=words, labels=mechanism.labels, samples=samples, error=error, seed=seed)


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
    checks = _check_digest(statement, data)
    if checks[0].held is not None:
        width = _number(statement, "width")
        count = wrong = 0
        for vectors in vectors_in(data):
            count += len(vectors)
            fits = vectors.shape[1] == width
            wrong += int((~np.isfinite(vectors).all(axis=1)).sum()) if fits else len(vectors)
        seen = f"{count:,} vectors, {wrong:,} of them otherwise"
        checks.append(Check(f"every vector has {width:,} finite numbers", wrong == 0, seen))
    checks.append(_check_promise(statement, again, apart_from=_NO_CONSTANTS))
    # the claim is that of the file: the parameters may say more than they keep
    channel = randomizer.channel(dimension)
    pair = channel.witness if isinstance(channel, PublishedChannel) else None  # two that are known to lose most
    return checks, audit(channel, statement, pair=pair, samples=samples, error=error, seed=seed)


def _number(statement: PrivacyStatement, name: str) -> int:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DataError(f"the statement lacks the {name} of its vectors: it is not one that dptext wrote")
    return value


def _check_digest(statement: PrivacyStatement, data: Path) -> list[Check]:
    agrees = data_agrees(statement, data)
    return [Check("the data is the data of the statement", agrees, _SEEN[agrees])]


def _check_promise(statement: PrivacyStatement, again: PrivacyStatement, *, apart_from: Sequence[str]) -> Check:
    """Whether a statement is the one that follows from its parameters.

    Another version of dptext may have put the same into other words, so words are held only against its own.
    """
    differ = disagreements(statement, again, of_a_release=True, apart_from=tuple(apart_from))
    same_version = statement.software == again.software
    counted = [name for name in differ if same_version or name not in _WORDED]
    seen = f"{again.guarantee}" + (f"; {', '.join(differ)} differ" if differ else "")
    if len(counted) < len(differ):
        seen += ", perhaps in their wording only: another version wrote the statement"
    return Check("the promise follows from the parameters", not counted, seen)
