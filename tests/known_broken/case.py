"""One audit with a known answer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dptext import ApproxDP, MetricDP, PrivacyStatement, PureDP
from dptext.audits.losses import sampled_loss, strongest_bound
from dptext.audits.verdict import Verdict, judge_exact, judge_sample
from dptext.privacy.guarantee import Guarantee, Relation, Trust, Unit

__all__ = ["ApproxDP", "Case", "MetricDP", "PureDP", "claim", "judge_pair", "judge_table"]

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
    assert strongest_bound(samples, error=error, delta=delta) > epsilon, "no sample of this size could refute the claim"
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


def judge_table(
    table, allowed, sampler=None, *, run=(None, 1e-6), claimed=None, names=None, coverage="all pairs", samples=SAMPLES
) -> Verdict:
    """Audit (inputs, outputs) probabilities, and the sampler that is to draw from them; ``run`` is (seed, error)."""
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    seed, error = run
    return judge_exact(
        claimed or claim(PureDP(allowed)),
        logs,
        allowed,
        names=names or [f"input {row}" for row in range(len(table))],
        coverage=coverage,
        sampler=sampler,
        samples=samples,
        error=error,
        seed=seed,
    )
