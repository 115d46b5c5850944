"""From a measured loss to a verdict against a statement. Nothing here knows a mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.audits.canaries import CanaryBound
from dptext.audits.draws import DrawTest, Sampler, compare_draws
from dptext.audits.exact import exact_delta, exact_loss
from dptext.audits.sampled import LossBound, strongest_bound
from dptext.audits.verdict import Outcome, Verdict
from dptext.errors import ParameterError
from dptext.privacy.guarantee import ApproxDP, MetricDP, NoGuarantee, PureDP, approx_from_zcdp
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement

__all__ = [
    "as_approx",
    "checked_claim",
    "delta_of",
    "judge_canaries",
    "judge_exact",
    "judge_sample",
    "require_refutable",
]

Floats: TypeAlias = npt.NDArray[np.float64]

_ZCDP_DELTA = 1e-6


def checked_claim(claim: object) -> PrivacyStatement:
    """A statement that promises something.

    Raises:
        ParameterError: a bare guarantee or number (who is protected against what would be unknown); no guarantee.
    """
    if not isinstance(claim, PrivacyStatement):
        raise ParameterError(
            f"a claim must be a PrivacyStatement, which names unit and relation, got {type(claim).__name__}"
        )
    if isinstance(claim.guarantee, NoGuarantee):
        raise ParameterError("the statement promises nothing (NoGuarantee), so there is nothing to refute")
    return claim


def judge_exact(
    claim: PrivacyStatement,
    log_probabilities: npt.ArrayLike,
    allowed: Any,
    *,
    names: Sequence[str],
    outputs: Sequence[str] | None = None,
    coverage: str,
    sampler: Sampler | None = None,
    samples: int = 200_000,
    error: float = 1e-6,
    seed: int | None = None,
) -> Verdict:
    """The verdict of an exact audit: the losses of the shown distribution, and whether draws are from it.

    Args:
        claim: the statement to put to the test.
        log_probabilities, allowed: see `dptext.audits.exact.exact_loss`.
        names, outputs: what the inputs and outputs are called.
        coverage: which inputs these are.
        sampler: draws outputs of inputs, by their numbers; where the losses keep the claim, its draws are compared with
            ``log_probabilities`` (`dptext.audits.draws`). None: the verdict says that none were.
        samples: how many draws; half of them for the two inputs that come nearest to their allowance.
        error: the probability with which a sampler of exactly this distribution is refuted.
        seed: for the draws; None for fresh randomness.
    """
    guarantee = checked_claim(claim).guarantee
    logs = np.asarray(log_probabilities, dtype=np.float64)
    if isinstance(guarantee, PureDP | MetricDP):
        verdict, pair = _judge_loss(claim, logs, allowed, names, outputs, coverage)
    else:
        verdict, pair = _judge_delta(claim, logs, names, coverage)
    if verdict.refuted:
        return verdict
    if sampler is None:
        return replace(verdict, method=f"{verdict.method}; no draws were compared with it")
    draws = compare_draws(
        logs,
        sampler,
        samples=samples,
        error=error,
        bits=RandomBits(seed),
        names=names,
        outputs=outputs,
        closely=pair,
    )
    return _with_draws(verdict, draws)


def _with_draws(verdict: Verdict, draws: DrawTest) -> Verdict:
    """The verdict on a distribution that keeps the claim, once draws were compared with it."""
    compared = (
        f"{draws.draws:,} draws of {draws.inputs:,} inputs (likelihood-ratio chi-square, repeats, outputs of "
        f"probability 0; false alarms at most {draws.error:.1g} in all)"
    )
    if draws.agree:
        return replace(verdict, draws=draws, error=draws.error, method=f"{verdict.method}, as are {compared}")
    return replace(
        verdict,
        outcome=Outcome.REFUTED,
        draws=draws,
        loss=0.0,
        error=draws.error,
        witness=draws.found,
        method=f"{compared} against the distribution that the mechanism shows",
    )


def _judge_loss(
    claim: PrivacyStatement,
    logs: Floats,
    allowed: Any,
    names: Sequence[str],
    outputs: Sequence[str] | None,
    coverage: str,
) -> tuple[Verdict, tuple[int, int]]:
    found = exact_loss(logs, allowed=allowed)
    output = f"output {found.output}" if outputs is None else f"the output {outputs[found.output]!r}"
    verdict = Verdict(
        outcome=Outcome.REFUTED if found.excess > 0 else Outcome.EXACT,
        claim=claim.guarantee,
        method="exact, from the distribution that the mechanism shows",
        loss=found.loss,
        allowed=found.allowed,
        witness=f"{output} under {names[found.first]!r} against {names[found.second]!r}",
        coverage=(
            f"{coverage} ({found.pairs:,} pairs, every output); the largest loss of any pair is {found.largest:.4g}, "
            f"the largest share of an allowance that is used {found.ratio:.1%}"
        ),
    )
    return verdict, (found.first, found.second)


def _judge_delta(
    claim: PrivacyStatement, logs: Floats, names: Sequence[str], coverage: str
) -> tuple[Verdict, tuple[int, int]]:
    guarantee = as_approx(claim)
    delta, first, second = exact_delta(logs, epsilon=guarantee.epsilon + claim.slack)
    verdict = Verdict(
        outcome=Outcome.REFUTED if delta > guarantee.delta else Outcome.EXACT,
        claim=claim.guarantee,
        method=(
            f"exact hockey-stick divergence (delta {delta:.3g} is needed where {guarantee.delta:.3g} was promised), "
            "from the distribution that the mechanism shows"
        ),
        loss=guarantee.epsilon if delta <= guarantee.delta else math.inf,
        allowed=guarantee.epsilon + claim.slack,
        delta=delta,
        witness=f"{names[first]!r} against {names[second]!r}",
        coverage=coverage,
    )
    return verdict, (first, second)


def judge_sample(
    claim: PrivacyStatement, bound: LossBound, *, allowed: float, error: float, witness: str, coverage: str
) -> Verdict:
    """The verdict of a sampled audit: refuted where the lower bound lies above what the claim allows."""
    return Verdict(
        outcome=Outcome.REFUTED if bound.loss > allowed else Outcome.CONSISTENT,
        claim=checked_claim(claim).guarantee,
        method="sampled outputs; the event chosen on one half, bounded on the other (Clopper-Pearson)",
        loss=bound.loss,
        allowed=allowed,
        delta=delta_of(claim),
        error=error,
        strongest=bound.strongest,
        witness=witness,
        coverage=coverage,
    )


def judge_canaries(claim: PrivacyStatement, bound: CanaryBound, *, error: float, coverage: str) -> Verdict:
    """The verdict of a one-run canary audit."""
    guarantee = as_approx(checked_claim(claim))
    allowed = guarantee.epsilon + claim.slack
    return Verdict(
        outcome=Outcome.REFUTED if bound.loss > allowed else Outcome.CONSISTENT,
        claim=claim.guarantee,
        method="canaries in one training run (Steinke, Nasr and Jagielski 2023)",
        loss=bound.loss,
        allowed=allowed,
        delta=guarantee.delta,
        error=error,
        strongest=bound.strongest,
        witness=f"{bound.correct:,} of {bound.guesses:,} guesses about {bound.canaries:,} canaries were right",
        coverage=coverage,
    )


def require_refutable(claim_loss: float, samples: int, *, error: float, delta: float = 0.0) -> None:
    """Refuse, before it runs, a sampled audit that could not refute the claim whatever it saw.

    Raises:
        ParameterError: with how much this many samples can show.
    """
    most = strongest_bound(samples, error=error, delta=delta)
    if most <= claim_loss:
        raise ParameterError(
            f"{samples:,} samples can show a loss of {most:.4g} at most, the claim allows {claim_loss:.4g}: no result "
            "could refute it; use more samples, a pair of inputs with a smaller allowance, or an exact audit"
        )


def as_approx(claim: PrivacyStatement) -> ApproxDP:
    """The guarantee as (epsilon, delta); zCDP at a delta of 1e-6."""
    match claim.guarantee:
        case ApproxDP():
            return claim.guarantee
        case PureDP(epsilon):
            return ApproxDP(epsilon, 0.0)
        case MetricDP():
            return ApproxDP(claim.guarantee.pure_epsilon, 0.0)
        case guarantee:
            assert not isinstance(guarantee, NoGuarantee)
            return approx_from_zcdp(guarantee, delta=_ZCDP_DELTA)


def delta_of(claim: PrivacyStatement) -> float:
    """The delta at which the claim is tested."""
    return 0.0 if isinstance(claim.guarantee, MetricDP) else as_approx(claim).delta
