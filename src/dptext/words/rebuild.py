"""A mechanism again, from the public parameters that its statement carries."""

from __future__ import annotations

from typing import Any

from dptext.errors import DataError, ParameterError
from dptext.privacy.statement import PrivacyStatement
from dptext.vectors.formats import load_vectors
from dptext.vectors.metrics import CALLERS
from dptext.words.madlib import Madlib
from dptext.words.mahalanobis import Mahalanobis
from dptext.words.mechanism import WordMechanism
from dptext.words.tem import TEM
from dptext.words.vickrey import Vickrey

__all__ = ["mechanism_from_statement"]

_BUILD = {each.name: each for each in (TEM, Madlib, Mahalanobis, Vickrey)}


def mechanism_from_statement(statement: PrivacyStatement, *, vectors: str | None = None) -> WordMechanism:
    """The word mechanism of which a statement speaks.

    Args:
        statement: of a word mechanism.
        vectors: name or path of the vectors, where the statement's own name for them is not to be found.

    Raises:
        DataError: the statement is not of a word mechanism, or the vectors are not those of its fingerprint.
    """
    given = statement.parameters
    try:
        options = {"epsilon": given["epsilon"], "unknown": given["unknown"]}
        source, limit, fingerprint = str(given["vectors"]), int(given["words"] or 0), given["vectors_sha256"]
        if statement.mechanism == TEM.name and "document_epsilon" in given:
            options |= {name: given[name] for name in ("document_epsilon", "max_words")}
            options |= {"beyond": given.get("beyond", "unk")}
        elif statement.mechanism == TEM.name:
            options |= {"threshold": given["threshold"]}
        if statement.mechanism == TEM.name:
            options |= {"metric": given["metric"]}
        if statement.mechanism == Mahalanobis.name:
            options |= {"lambda_": given["lambda"]}
        if statement.mechanism == Vickrey.name:
            options |= {"t": given["t"], "unsafe_as_published": given.get("unsafe_as_published", False)}
    except (KeyError, ValueError):
        raise DataError("the statement lacks parameters of a word mechanism: it is not one that dptext wrote") from None
    if str(options.get("metric")).startswith(CALLERS):
        raise DataError(
            "the statement measures distance with a function of its caller, which no file holds: build the mechanism "
            "in Python, and audit it with dptext.audit(mechanism, distance=the function)"
        )
    build: Any = _BUILD.get(statement.mechanism)
    if build is None:
        known = ", ".join(_BUILD)
        raise DataError(f"the statement is not of a word mechanism that can be audited ({known})")
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
