"""The audit of a file of private texts: the words in it, the numbers of its statement, and pairs of words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dptext.audits.judge import audit
from dptext.audits.verdict import Verdict
from dptext.files.documents import read_documents
from dptext.files.folders import find_files
from dptext.privacy.agreement import disagreements
from dptext.privacy.statement import PrivacyStatement
from dptext.report.checks import Check, check_digest, check_promise
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import count_foreign_words, words_that_can_come_out

__all__ = ["audit_word_file"]


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
    checks = [*_check_data(statement, data, text, mechanism), _check_numbers(statement, mechanism)]
    verdict = audit(mechanism, words=words, labels=mechanism.labels, samples=samples, error=error, seed=seed)
    return checks, verdict


def _check_data(statement: PrivacyStatement, data: Path, text: str, mechanism: WordMechanism) -> list[Check]:
    digest = check_digest(statement, data)
    if digest.held is None:
        return [digest]
    known = words_that_can_come_out(mechanism.vectors.vocabulary)
    documents = foreign = 0
    parts = [path for path, _ in find_files([data])]  # of a folder, as Spark writes it
    for document in read_documents(parts, text=text):
        documents += 1
        foreign += count_foreign_words(document.text or "", known)
    seen = f"{documents:,} documents, {foreign:,} words that the mechanism cannot have written"
    return [digest, Check("every word is one that the mechanism writes", foreign == 0, seen)]


def _check_numbers(statement: PrivacyStatement, mechanism: WordMechanism) -> Check:
    """Whether the promise, what it takes for granted and what it exposes follow from the parameters."""
    longest = statement.parameters.get("words_counted")
    again = mechanism.document_statement(longest if isinstance(longest, int) else 0)
    differ = disagreements(statement, again, of_a_release=True, apart_from=("vectors",))  # they may have moved
    return check_promise(statement, again, differ)
