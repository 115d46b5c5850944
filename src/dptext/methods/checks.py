"""Checks of a release file against its statement, which several methods share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dptext.errors import DataError, ParameterError
from dptext.privacy.guarantee import ApproxDP
from dptext.privacy.statement import PrivacyStatement, disagreements
from dptext.release.mechanism import TextMechanism
from dptext.release.redaction import as_redacted, is_redacted
from dptext.release.release import data_agrees

_SEEN = {True: "its SHA-256 agrees", False: "its SHA-256 DIFFERS", None: "there is no data to compare"}
_WORDING = {"condition", "assumptions", "exposed"}


@dataclass(frozen=True)
class Check:
    """The result of one check of a file (None: it could not be made)."""

    name: str
    passed: bool | None
    detail: str
    owner_only: bool = False

    @property
    def is_shared(self) -> bool:
        return not self.owner_only or self.passed is False


FILES_AGREE = Check("all files are those that config.json announces", True, "their SHA-256 agree")


@contextmanager
def describes(thing: str) -> Iterator[None]:
    try:
        yield
    except ParameterError as problem:
        raise DataError(f"the statement describes {thing} that cannot exist: {problem}") from None


def restate(statement: PrivacyStatement, mechanism: TextMechanism, longest: int) -> PrivacyStatement:
    """Return the statement of a mechanism for its documents, with the redaction of another statement."""
    repeated = mechanism.document_statement(longest)
    if not is_redacted(statement):
        return repeated
    return as_redacted(repeated, statement.parameters, shows_placeholders=mechanism.keeps_marks)


def first_row(rows: Sequence[int]) -> str:
    return f", the first in row {rows[0]:,}" if rows else ""


def real_parameter(statement: PrivacyStatement, name: str) -> float:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"the statement lacks the {name} of its release: dptext did not write it")
    return float(value)


def whole_parameter(statement: PrivacyStatement, name: str) -> int:
    value = statement.parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise DataError(f"the statement lacks the {name} of its vectors: dptext did not write it")
    return value


def check_digest(statement: PrivacyStatement, data: Path) -> list[Check]:
    agrees = data_agrees(statement, data)
    return [Check("the data is the data of the statement", agrees, _SEEN[agrees])]


def check_guarantee(statement: PrivacyStatement, repeated: PrivacyStatement, *, apart_from: Sequence[str]) -> Check:
    """Check that a statement follows from its parameters."""
    differ = disagreements(statement, repeated, of_a_release=True, apart_from=tuple(apart_from))
    same_version = statement.software == repeated.software
    counted = [name for name in differ if same_version or name not in _WORDING]
    seen = f"{repeated.guarantee}" + (f"; {', '.join(differ)} differ" if differ else "")
    if len(counted) < len(differ):
        seen += ", perhaps in their wording only: another version wrote the statement"
    return Check("the guarantee follows from the parameters", not counted, seen)


# -- a guarantee that covers earlier releases -------------------------------------------------------------------------

DIGITS = (1 - 1e-3, 1 - 1e-2)
"""Relative precision of a guarantee in words: 4 digits of epsilon and 3 of delta, rounded up."""
_GUARANTEE = re.compile(
    r"\((?P<epsilon>[\d.e+-]+), (?P<delta>[\d.e+-]+)\)|(?P<pure>[\d.e+-]+)-differential privacy \(pure\)"
)


def earlier_guarantees(statement: PrivacyStatement) -> list[str]:
    """Return the guarantees of earlier releases that this one contains, as the statement prints them."""
    return [str(value) for name, value in statement.parameters.items() if name.startswith("promise_of_")]


def covers_earlier(statement: PrivacyStatement, epsilon: float = 0.0) -> tuple[bool, str]:
    """Return whether the guarantee is at least the sum of all parts (and a pure epsilon), and the parts in words."""
    release, earlier, guarantee = own_guarantee(statement), earlier_guarantees(statement), statement.guarantee
    parts = [(release.epsilon, release.delta), (epsilon, 0.0), *map(_at_least, earlier)]
    least_epsilon, least_delta = (math.fsum(values) * (1 - 1e-12) for values in zip(*parts, strict=True))
    covers = isinstance(guarantee, ApproxDP) and guarantee.epsilon >= least_epsilon and guarantee.delta >= least_delta
    return covers, f"{guarantee}" + (f", of which {', '.join(earlier)} for earlier releases" if earlier else "")


def _at_least(guarantee: str) -> tuple[float, float]:
    """Return the smallest epsilon and delta that a printed guarantee can stand for."""
    match = _GUARANTEE.match(guarantee)
    if match is None:
        return 0.0, 0.0
    return float(match["epsilon"] or match["pure"]) * DIGITS[0], float(match["delta"] or 0.0) * DIGITS[1]


def own_guarantee(statement: PrivacyStatement) -> ApproxDP:
    """Return the guarantee of this release alone, without earlier releases."""
    epsilon, delta = (real_parameter(statement, name) for name in ("epsilon", "delta"))
    with describes("a budget"):
        return ApproxDP(epsilon, delta)
