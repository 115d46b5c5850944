"""One audit with a known answer."""

from collections.abc import Callable
from dataclasses import dataclass

from dptext import ApproxDP, Guarantee, MetricDP, PrivacyStatement, PureDP, Relation, Trust, Unit, Verdict

__all__ = ["ApproxDP", "Case", "MetricDP", "PureDP", "claim"]

SAMPLES = 200_000


@dataclass(frozen=True)
class Case:
    """A mechanism under audit.

    Attributes:
        name: what it is.
        broken: whether its claim is false (and the audit has to say so).
        run: (seed, error) -> verdict.
        why: what is wrong, or what makes it sound.
    """

    name: str
    broken: bool
    run: Callable[[int, float], Verdict]
    why: str


def claim(guarantee: Guarantee, unit: Unit = Unit.DOCUMENT, slack: float = 0.0) -> PrivacyStatement:
    """A statement with this guarantee: substitution, local."""
    return PrivacyStatement(
        guarantee=guarantee,
        unit=unit,
        relation=Relation.SUBSTITUTION,
        neighbours="any two inputs",
        trust=Trust.LOCAL,
        mechanism="under audit",
        slack=slack,
    )
