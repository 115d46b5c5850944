"""Registry of word mechanisms, and reconstruction of a mechanism from the public parameters in its statement."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

from dptext.errors import DataError, DptextError, ParameterError
from dptext.io.batches import is_pipe
from dptext.privacy.statement import PrivacyStatement
from dptext.release.mechanism import refuse_beside
from dptext.release.redaction import inner_mechanism
from dptext.validation import did_you_mean, display_value, require_epsilon
from dptext.vectors.formats import GLOVE, VectorsLike, load_vectors
from dptext.vectors.metrics import CALLERS
from dptext.words.madlib import Madlib, Mahalanobis, TruncatedGumbel, Vickrey
from dptext.words.mechanism import WordMechanism
from dptext.words.santext import CusText, SanText, SanTextPlus
from dptext.words.subset import SubsetSelection
from dptext.words.tem import TEM

MECHANISMS: dict[str, type[WordMechanism]] = {
    entry.name.lower(): entry
    for entry in (TEM, SubsetSelection, Madlib, Mahalanobis, SanText, SanTextPlus, CusText, Vickrey)
}
"""Mechanisms with a proof."""

PUBLISHED_ONLY: dict[str, type[WordMechanism]] = {TruncatedGumbel.name.lower(): TruncatedGumbel}
"""Published mechanisms without a sound variant: for comparisons, with ``unsafe_as_published=True``."""

_BY_NAME = {entry.name: entry for entry in (*MECHANISMS.values(), *PUBLISHED_ONLY.values())}
_OF_ALL = ("vectors", "epsilon", "unsafe_as_published")


def options_of(mechanism: type[WordMechanism]) -> tuple[str, ...]:
    """Return the names of the options that only this mechanism has."""
    return tuple(name for name in signature(mechanism).parameters if name not in _OF_ALL)


def word_mechanism(
    mechanism: str | type[WordMechanism] | WordMechanism,
    *,
    epsilon: float | None = None,
    vectors: VectorsLike | None = None,
    **options: Any,
) -> WordMechanism:
    """Return the word mechanism for an argument: a name, a class or a mechanism."""
    if isinstance(mechanism, WordMechanism):
        refuse_beside(mechanism, epsilon=epsilon, vectors=vectors, **options)
        return mechanism
    known = MECHANISMS | PUBLISHED_ONLY
    build: Any = known.get(mechanism.lower()) if isinstance(mechanism, str) else mechanism
    if not (isinstance(build, type) and issubclass(build, WordMechanism)):
        names, hint = ", ".join(map(repr, MECHANISMS)), did_you_mean(mechanism, MECHANISMS)
        raise ParameterError(
            f"mechanism must be one of {names}, or a word mechanism such as TEM, got {display_value(mechanism)}{hint}"
        )
    epsilon = require_epsilon(epsilon, build.__name__)
    return build(GLOVE if vectors is None else vectors, epsilon=epsilon, **options)


def add_word_mechanism(mechanism: type[WordMechanism]) -> None:
    """Register a caller's mechanism, so that its statements are recognised; names must be unique."""
    if _BY_NAME.setdefault(mechanism.name, mechanism) is not mechanism:
        raise ParameterError(f"a word mechanism {mechanism.name!r} already exists: choose another name")


def is_word_mechanism(statement: PrivacyStatement) -> bool:
    """Return whether a statement belongs to a registered word mechanism, redacted or not."""
    return inner_mechanism(statement) in _BY_NAME


def mechanism_from_statement(statement: PrivacyStatement, *, vectors: str | None = None) -> WordMechanism:
    """Return the word mechanism of a statement; for redacted texts, the mechanism behind the redaction."""
    build: Any = _BY_NAME.get(inner_mechanism(statement))
    if build is None:
        raise DataError(f"the statement belongs to no word mechanism that can be audited ({', '.join(_BY_NAME)})")
    parameters = statement.parameters
    try:
        source, limit = str(parameters["vectors"]), int(parameters["words"] or 0)
        fingerprint, options = parameters["vectors_sha256"], build.arguments_in(parameters)
    except (KeyError, ValueError):
        raise DataError("the statement lacks parameters of a word mechanism: dptext did not write it") from None
    if str(options.get("metric")).startswith(CALLERS):
        raise DataError(
            "the statement's distance is a custom function, which no file contains: create the mechanism in "
            "Python, and audit it with dptext.audit(mechanism, distance=the function)"
        )
    if vectors is None and is_pipe(Path(source)):
        raise DataError("the vectors of the statement are a pipe or a device: name their file")
    try:
        words = load_vectors(source if vectors is None else vectors, limit=limit)
    except ParameterError as error:
        raise DataError(f"the vectors of the statement cannot be found ({error}): name their file") from None
    if words.fingerprint != fingerprint:
        raise DataError("the vectors have another fingerprint than the statement's: name the file that was used")
    try:
        return build(words, **options)  # type: ignore[no-any-return]
    except DptextError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:  # a value of another type than its parameter has
        raise DataError(
            f"{statement.mechanism} does not accept the parameters of the statement ({type(error).__name__}): "
            "dptext did not write it"
        ) from None
