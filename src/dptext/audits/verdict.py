"""Verdicts of audits: a measured privacy loss compared with a claimed guarantee."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.audits.goodness import DrawTest, Sampler, compare_draws
from dptext.audits.losses import LossBound, exact_delta, exact_loss
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.privacy.gaussian import SampledGaussian, gaussian_delta, gaussian_epsilon
from dptext.privacy.guarantee import (
    ApproxDP,
    Guarantee,
    MetricDP,
    NoGuarantee,
    PureDP,
    approx_from_zcdp,
    guarantee_to_dict,
)
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import UNBOUNDED, UNCOMPARED
from dptext.validation import check_float

_WIDTH = 79
_LABEL = 14
_ZCDP_DELTA = 1e-6
_ROUNDING = 1e-6  # relative: versions of the accounting library round differently
_OTHER_FILE = "NOT ABOUT THIS FILE: a check of the file failed, so the following is about its mechanism only."


class Outcome(StrEnum):
    """Possible results of an audit."""

    REFUTED = "refuted"
    """The guarantee does not hold for the witness, or the mechanism does not draw from the distribution it reports."""
    CONSISTENT = "consistent"
    """Samples showed no violation. This is evidence, not a proof: see ``strongest``."""
    EXACT = "exact"
    """The exact losses of all audited pairs satisfy the guarantee. They were computed from the reported distribution;
    ``draws`` is set if draws were compared with it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(ReprMixin):
    """Result of an audit. All losses are in nats.

    ``loss`` is exact, or a lower bound that holds with probability 1 - ``error``; it is 0 (unknown) if the draws refute
    the reported distribution. ``strongest`` is the largest loss that this audit could have shown, or the loss that the
    stated noise shows with the same score.
    """

    outcome: Outcome
    claim: Guarantee
    method: str
    loss: float  # of the witness
    allowed: float  # for the witness, including slack
    delta: float = 0.0
    error: float = 0.0  # probability of refuting a true claim
    strongest: float = math.inf
    witness: str  # the pair of inputs and the output (or event) with this loss
    coverage: str  # the audited inputs
    draws: DrawTest | None = None  # compared with the reported distribution or the stated noise

    @property
    def refuted(self) -> bool:
        """True if the claim is false."""
        return self.outcome is Outcome.REFUTED

    @property
    def refutable(self) -> bool:
        """True if this audit could have refuted the claim."""
        return self.draws is not None or self.strongest > self.allowed

    def explain(self, *, other_file: bool = False) -> str:
        """Return the verdict in words; ``other_file``: a check of the file failed, so it is about the mechanism."""
        lines = [textwrap.fill(_OTHER_FILE if other_file else self._headline(), _WIDTH, subsequent_indent="  ")]
        for label, text in self._details():
            first = f"  {label + ':':<{_LABEL}}"
            lines.append(textwrap.fill(first + text, _WIDTH, subsequent_indent=" " * len(first)))
        return "\n".join(lines)

    def _headline(self) -> str:
        if self.refuted:
            failure = "the mechanism does not draw from the distribution that it reports"
            return f"REFUTED: {failure if self._draws_differ else 'the guarantee does not hold'}."
        if self.outcome is Outcome.EXACT:
            kept = "KEPT: the guarantee holds for all audited inputs, by exact computation."
            return f"CONSISTENT: {UNCOMPARED}" if self.draws is None else kept
        if self.refutable:
            return "NOT REFUTED: no violation was found. This is evidence, not a proof."
        return "NOT TESTED: the sample is too small to refute the guarantee, true or not."

    @property
    def _draws_differ(self) -> bool:
        return self.draws is not None and not self.draws.agree

    def _details(self) -> list[tuple[str, str]]:
        values = (self.loss, self.allowed, self.strongest)
        loss, allowed, strongest = ("infinite" if v == math.inf else f"{max(v, 0.0):.5g}" for v in values)
        limit = f"(allowed: {allowed})"
        if self._draws_differ:
            measured = f"unknown, because the draws differ {limit}."
        elif self.outcome is Outcome.EXACT or (self.refuted and self.error == 0.0):
            measured = f"{loss} {limit}."
        else:
            measured = f"at least {loss} {limit}."
            if self.draws is not None:
                measured += f" The stated noise shows {strongest} with this score and sample."
            elif not self.refuted:
                measured += f" This sample can show at most {strongest}."
        if self.refuted and self.error > 0.0:
            measured += f" Wrong with probability at most {self.error:.1g}."
        return [
            ("Guarantee", f"{self.claim}."),
            ("Audited", f"{self.coverage}."),
            ("Worst case", f"{self.witness}."),
            ("Loss (nats)", measured),
            ("Method", f"{self.method}."),
        ]

    def to_json(self) -> str:
        """Return the verdict as JSON; infinities are strings."""
        data = {**asdict(self), "claim": guarantee_to_dict(self.claim), "refutable": self.refutable}
        return json.dumps({key: _json_value(value) for key, value in data.items()}, indent=2)

    def _repr_fields(self) -> Fields:
        yield "outcome", str(self.outcome)
        yield "loss", self.loss
        yield "allowed", self.allowed
        yield "claim", str(self.claim)

    def _html_fields(self) -> Fields:
        yield "verdict", self._headline()
        yield from ((label.lower(), text) for label, text in self._details())


def _json_value(value: object) -> object:
    if isinstance(value, dict):
        return {key: _json_value(entry) for key, entry in value.items()}
    if isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return value


def check_claim(claim: object) -> PrivacyStatement:
    """Return the claim; raise if it is not a statement with a guarantee."""
    if not isinstance(claim, PrivacyStatement):
        raise ParameterError(f"claim must be a PrivacyStatement, with unit and relation, got {type(claim).__name__}")
    if isinstance(claim.guarantee, NoGuarantee):
        raise ParameterError(
            f"the statement has no guarantee (NoGuarantee), so there is nothing to refute. {UNBOUNDED} Run dptext "
            "report to measure the success of attacks, or dptext explain to compare the statement with its data."
        )
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
    """Judge a claim by the exact losses (`exact_loss`) of a reported distribution, and compare draws with it.

    ``sampler`` draws outputs of inputs, given by their indices; half of the ``samples`` are of the two inputs that are
    closest to their allowance. ``error`` is the probability of refuting a sampler of exactly this distribution.
    """
    claimed = check_claim(claim).guarantee
    logs = np.asarray(log_probabilities, dtype=np.float64)
    reported = "the distribution that the mechanism reports"
    if isinstance(claimed, PureDP | MetricDP):
        result = exact_loss(logs, allowed=allowed)
        first, second, broken = result.first, result.second, result.excess > 0
        output = f"output {result.output}" if outputs is None else f"the output {outputs[result.output]!r}"
        values: dict[str, Any] = {
            "method": f"exact, from {reported}",
            "loss": result.loss,
            "allowed": result.allowed,
            "witness": f"{output} under {names[first]!r} against {names[second]!r}",
            "coverage": f"{coverage} ({result.pairs:,} pairs, every output); the largest loss of any pair is "
            f"{result.largest:.4g}, the largest fraction of an allowance {result.ratio:.1%}",
        }
    else:
        approx = as_approx(claim)
        delta, first, second = exact_delta(logs, epsilon=approx.epsilon + claim.slack)
        broken = delta > approx.delta
        stick = f"exact hockey-stick divergence (delta {delta:.3g}, claimed: {approx.delta:.3g})"
        values = {
            "method": f"{stick}, from {reported}",
            "loss": math.inf if broken else approx.epsilon,
            "allowed": approx.epsilon + claim.slack,
            "delta": delta,
            "witness": f"{names[first]!r} against {names[second]!r}",
            "coverage": coverage,
        }
    verdict = Verdict(outcome=Outcome.REFUTED if broken else Outcome.EXACT, claim=claimed, **values)
    if verdict.refuted:
        return verdict
    if sampler is None:
        return replace(verdict, method=f"{verdict.method}; no draws were compared with it")
    options: dict[str, Any] = {"samples": samples, "error": error, "bits": RandomBits(seed), "closely": (first, second)}
    draws = compare_draws(logs, sampler, names=names, outputs=outputs, **options)
    compared = (
        f"{draws.draws:,} draws of {draws.inputs:,} inputs (likelihood-ratio chi-square, repeats, outputs of "
        f"probability 0; false alarms at most {draws.error:.1g} in all)"
    )
    method = f"{verdict.method}; in agreement with {compared}" if draws.agree else f"{compared} against {reported}"
    return add_draws(verdict, draws, error=error, method=method)


def add_draws(verdict: Verdict, draws: DrawTest, *, error: float, **changes: Any) -> Verdict:
    """Add a comparison of draws to a verdict; ``error`` is the total. If the draws differ, the loss is unknown."""
    if not draws.agree:
        changes |= {"outcome": Outcome.REFUTED, "loss": 0.0, "witness": draws.witness}
    return replace(verdict, draws=draws, error=error, **changes)


def judge_sample(
    claim: PrivacyStatement, bound: LossBound, *, allowed: float, error: float, witness: str, coverage: str
) -> Verdict:
    """Judge a claim by a sampled lower bound on the loss: it is refuted if the bound exceeds ``allowed``."""
    return Verdict(
        outcome=Outcome.REFUTED if bound.loss > allowed else Outcome.CONSISTENT,
        claim=check_claim(claim).guarantee,
        method="sampled outputs; the event chosen on one half, bounded on the other (Clopper-Pearson)",
        loss=bound.loss,
        allowed=allowed,
        delta=delta_of(claim),
        error=error,
        strongest=bound.strongest,
        witness=witness,
        coverage=coverage,
    )


def judge_gaussian(
    claim: PrivacyStatement, *, sigma: float, sensitivity: float, release_guarantee: ApproxDP, coverage: str
) -> Verdict:
    """Judge one Gaussian release by its exact delta at the claimed epsilon (Balle and Wang 2018, Theorem 8).

    ``release_guarantee`` is for this release alone; the statement may include earlier ones.
    """
    allowed = _release_budget(claim, release_guarantee)
    sigma, sensitivity = check_float("sigma", sigma, above=0), check_float("sensitivity", sensitivity, above=0)
    needed = gaussian_delta(sigma, epsilon=allowed.epsilon, sensitivity=sensitivity)
    return _judge_noise(
        claim,
        allowed,
        gaussian_epsilon(sigma, delta=allowed.delta, sensitivity=sensitivity),
        broken=needed > allowed.delta * (1 + 1e-9),
        method=f"exact trade-off of the stated Gaussian noise (delta {needed:.3g}, claimed: {allowed.delta:.3g})",
        witness=f"a {claim.unit} who moves the sum by the whole sensitivity of {sensitivity:g}: noise of standard "
        f"deviation {sigma:g} on each number",
        coverage=coverage,
    )


def judge_sampled_gaussian(
    claim: PrivacyStatement, *, account: SampledGaussian, release_guarantee: ApproxDP, coverage: str
) -> Verdict:
    """Judge steps of Gaussian noise on sampled sums by accounting for their epsilon again."""
    allowed = _release_budget(claim, release_guarantee)
    loss = account.epsilon(delta=allowed.delta)
    return _judge_noise(
        claim,
        allowed,
        loss,
        broken=loss > allowed.epsilon * (1 + _ROUNDING),
        method=f"accounting of {account.steps:,} sampled steps with the stated noise (epsilon {loss:.4g} at delta "
        f"{allowed.delta:.3g}, claimed: {allowed.epsilon:.4g})",
        witness=f"a {claim.unit} who is sampled in each step with probability {account.sampling_rate:g} and moves the "
        f"sum by the clipping norm: noise of {account.noise_multiplier:g} clipping norms",
        coverage=coverage,
    )


def _judge_noise(claim: PrivacyStatement, allowed: ApproxDP, loss: float, *, broken: bool, **texts: Any) -> Verdict:
    return Verdict(
        outcome=Outcome.REFUTED if broken else Outcome.EXACT,
        claim=claim.guarantee,
        loss=loss if broken else min(loss, allowed.epsilon),
        allowed=allowed.epsilon,
        delta=allowed.delta,
        **texts,
    )


def _release_budget(claim: PrivacyStatement, release_guarantee: ApproxDP) -> ApproxDP:
    total = as_approx(check_claim(claim))
    delta = check_float("delta", min(release_guarantee.delta, total.delta), above=0, below=1)
    return ApproxDP(min(release_guarantee.epsilon, total.epsilon), delta)


def as_approx(claim: PrivacyStatement) -> ApproxDP:
    """Return the guarantee as (epsilon, delta); zCDP at a delta of 1e-6."""
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
    """Return the delta at which the claim is tested."""
    return 0.0 if isinstance(claim.guarantee, MetricDP) else as_approx(claim).delta
