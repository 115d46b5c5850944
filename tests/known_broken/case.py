"""One audit with a known answer."""

from collections.abc import Callable
from dataclasses import dataclass

from dptext import ApproxDP, MetricDP, PrivacyStatement, PureDP
from dptext.audits import judge_sample, require_refutable, sampled_loss
from dptext.audits.verdict import Verdict
from dptext.privacy.guarantee import Guarantee, Relation, Trust, Unit

__all__ = ["ApproxDP", "Case", "MetricDP", "PureDP", "claim", "judge_pair"]

SAMPLES = 100_000


@dataclass(frozen=True)
class Case:
    """A mechanism under audit.

    Attributes:
        name: the mechanism.
        broken: True if its claim is false and the audit must refute it.
        run: (seed, error) -> verdict.
        why: the mistake, or the reason why the mechanism is sound.
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
        condition="any two inputs",
        trust=Trust.LOCAL,
        mechanism="under audit",
        slack=slack,
    )


def judge_pair(pair, draw, score, guarantee: PureDP | ApproxDP, seed, error, samples=SAMPLES) -> Verdict:
    """Audit one pair of inputs by samples: `draw` is (input, count, bits) -> outputs, `score` ranks outputs."""
    epsilon, delta = guarantee.epsilon, getattr(guarantee, "delta", 0.0)
    require_refutable(epsilon, samples, error=error, delta=delta)
    bound = sampled_loss(
        *(lambda count, bits, x=x: draw(x, count, bits) for x in pair),
        samples=samples,
        error=error,
        delta=delta,
        score=score,
        seed=seed,
    )
    return judge_sample(
        claim(guarantee),
        bound,
        allowed=epsilon,
        error=error,
        witness=f"the two given inputs, {bound.event}",
        coverage=f"one pair of inputs, {samples:,} samples each",
    )
