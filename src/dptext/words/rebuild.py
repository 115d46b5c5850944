"""A mechanism again, from the public parameters that its statement carries."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dptext.errors import DataError, DptextError, ParameterError
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.vectors.formats import load_vectors
from dptext.vectors.metrics import CALLERS
from dptext.words.mechanism import WordMechanism
from dptext.words.ordered import GIVEN
from dptext.words.registry import MECHANISMS, PUBLISHED_ONLY

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
        options = {name: given[name] for name in ("epsilon", "unknown")}
        options |= {option: given[name] for name, option in _options(statement.mechanism, given).items()}
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
    if vectors is None and _may_not_end(source):
        raise DataError(
            "the statement names a pipe or a device as its vectors, of which reading may not end: say where the "
            "vectors are"
        )
    try:
        words = load_vectors(source if vectors is None else vectors, limit=limit)
    except ParameterError as error:
        raise DataError(f"the vectors of the statement cannot be found ({error}); say where they are") from None
    if words.fingerprint != fingerprint:
        raise DataError(
            "the vectors are not those of the statement (their fingerprint differs): name the file that was used"
        )
    try:
        mechanism: WordMechanism = build(words, **options)
    except DptextError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:  # a value of another type than its parameter has
        raise DataError(
            f"{statement.mechanism} takes no such parameters as the statement's ({type(error).__name__}): it is not "
            "one that dptext wrote"
        ) from None
    return mechanism


def _may_not_end(name: str) -> bool:
    """Whether a name is that of a pipe or a device."""
    path = Path(name)
    with suppress(OSError, ValueError):  # what no path can be is refused where it is opened
        return path.exists() and not (path.is_file() or path.is_dir())
    return False


_KNOWN = {each.name: each for each in (*MECHANISMS.values(), *PUBLISHED_ONLY.values())}
_OPTIONS: dict[str, dict[str, str]] = {
    "TEM": {"metric": "metric", "threshold": "threshold"},
    "Mahalanobis": {"lambda": "lambda_"},
    "SanText+": {"sensitive": "sensitive", "p": "p", "reach": "reach"},
    "CusText": {"size": "size", "unsafe_as_published": "unsafe_as_published"},
    "Vickrey": {"t": "t"},
    "OrderedList": {"order": "order"},
    "TruncatedGumbel": {"scale": "scale", "unsafe_as_published": "unsafe_as_published"},
}
"""The parameters beside epsilon and the policy for unknown words that go back into a constructor, and as what."""


def _options(name: str, given: Mapping[str, Parameter]) -> dict[str, str]:
    if name == "TEM" and "document_epsilon" in given:
        return {each: each for each in ("metric", "document_epsilon", "max_words", *(["beyond"] * ("beyond" in given)))}
    flags = {"unsafe_as_published": "unsafe_as_published"} if "unsafe_as_published" in given else {}
    return {**_OPTIONS.get(name, {}), **flags}
