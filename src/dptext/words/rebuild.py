"""A mechanism again, from the public parameters that its statement carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dptext.errors import DataError, ParameterError
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.vectors.formats import load_vectors
from dptext.vectors.metrics import CALLERS
from dptext.words.custext import CusText
from dptext.words.gumbel import TruncatedGumbel
from dptext.words.madlib import Madlib
from dptext.words.mechanism import WordMechanism
from dptext.words.ordered import GIVEN, OrderedList
from dptext.words.santext import SanText
from dptext.words.santext_plus import SanTextPlus
from dptext.words.tem import TEM

__all__ = ["mechanism_from_statement"]


def mechanism_from_statement(statement: PrivacyStatement, *, vectors: str | None = None) -> WordMechanism:
    """The word mechanism of which a statement speaks.

    Args:
        statement: of a word mechanism.
        vectors: name or path of the vectors, where the statement's own name for them is not to be found.

    Raises:
        DataError: the statement is not of a word mechanism, or the vectors are not those of its fingerprint.
    """
    build: Any = _KNOWN.get(statement.mechanism)
    if build is None:
        raise DataError(f"the statement is not of a word mechanism that can be audited ({', '.join(_KNOWN)})")
    given = statement.parameters
    try:
        source, limit, fingerprint = str(given["vectors"]), int(given["words"] or 0), given["vectors_sha256"]
        options = {name: given[name] for name in ("epsilon", "unknown", *_options(statement.mechanism, given))}
    except (KeyError, ValueError):
        raise DataError("the statement lacks parameters of a word mechanism: it is not one that dptext wrote") from None
    if str(options.get("metric")).startswith(CALLERS):
        raise DataError(
            "the statement measures distance with a function of its caller, which no file holds: build the mechanism "
            "in Python, and audit it with dptext.audit(mechanism, distance=the function)"
        )
    if options.get("order") == GIVEN:
        raise DataError(
            "the statement speaks of a list in an order of its caller's, which it does not hold: build the mechanism "
            "in Python, and audit it with dptext.audit(mechanism, labels=the place of each word)"
        )
    try:
        words = load_vectors(source if vectors is None else vectors, limit=limit)
    except ParameterError as error:
        raise DataError(f"the vectors of the statement cannot be found ({error}); say where they are") from None
    if words.fingerprint != fingerprint:
        raise DataError(
            "the vectors are not those of the statement (their fingerprint differs): name the file that was used"
        )
    mechanism: WordMechanism = build(words, **options)
    return mechanism


_KNOWN: dict[str, type[WordMechanism]] = {
    each.name: each for each in (TEM, Madlib, SanText, SanTextPlus, CusText, OrderedList, TruncatedGumbel)
}
_OPTIONS = {
    TEM.name: ("metric", "threshold"),
    SanTextPlus.name: ("sensitive", "p", "reach"),
    TruncatedGumbel.name: ("scale", "unsafe_as_published"),
    OrderedList.name: ("order",),
    CusText.name: ("size", "unsafe_as_published"),
}
"""The parameters beside epsilon and the policy for unknown words that go back into a constructor."""


def _options(name: str, given: Mapping[str, Parameter]) -> tuple[str, ...]:
    if name == TEM.name and "document_epsilon" in given:
        return ("metric", "document_epsilon", "max_words")
    return _OPTIONS.get(name, ())
