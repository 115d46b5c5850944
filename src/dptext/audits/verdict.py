"""What an audit found, against what was claimed: from a measured loss to a verdict. Nothing here knows a mechanism."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.audits.goodness import DrawTest, Sampler, compare_draws
from dptext.audits.losses import CanaryBound, LossBound, exact_delta, exact_loss, strongest_bound
from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.plotting import add_guarantee_row, get_axes, legend_below
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
_HANG = " " * 15
Floats: TypeAlias = npt.NDArray[np.float64]
_ZCDP_DELTA = 1e-6
_OF_ANOTHER = "NOT ABOUT THIS FILE, of which a check failed: what follows is about its mechanism alone."


class Outcome(StrEnum):
    """The three ways an audit can end."""

    REFUTED = "refuted"
    """A pair of inputs loses more than was claimed, or the mechanism draws from another distribution than it shows;
    the witness says which."""
    CONSISTENT = "consistent"
    """No violation was found in samples. That is no proof: read how much this sample could have shown."""
    EXACT = "exact"
    """The loss of every pair that was looked at was computed from the distribution that the mechanism shows, and keeps
    the claim; ``draws`` says whether draws were compared with it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(ReprMixin):
    """The result of an audit. All losses are in nats.

    Attributes:
        outcome: refuted, consistent or exact.
        claim: the guarantee that was put to the test.
        method: how, in a few words.
        loss: the loss that was shown for the witness: exact, or a lower bound that holds with probability
            1 - error. Higher is worse for the claim. 0 where draws refute the distribution that was shown: nothing is
            known of the loss then.
        allowed: what the claim allows for that pair, slack included.
        delta: the delta at which the loss is meant.
        error: the probability with which this audit refutes a claim that is true (0 for a loss that was computed).
        strongest: the largest loss that this audit could have shown. Where draws were compared with the noise that
            the statement names, the loss that this noise shows with the same score.
        witness: the pair of inputs and the output (or event) that attain the loss, in public terms.
        coverage: what was looked at, in words.
        draws: how draws compare with the distribution that the mechanism shows or its statement names; None: none
            were compared.
    """

    outcome: Outcome
    claim: Guarantee
    method: str
    loss: float
    allowed: float
    delta: float = 0.0
    error: float = 0.0
    strongest: float = math.inf
    witness: str
    coverage: str
    draws: DrawTest | None = None

    @property
    def refuted(self) -> bool:
        """Whether the claim is false."""
        return self.outcome is Outcome.REFUTED

    @property
    def refutable(self) -> bool:
        """Whether this audit could have refuted the claim: by its draws, or by the loss that it could have shown."""
        return self.draws is not None or self.strongest > self.allowed

    def explain(self, *, of_another: bool = False) -> str:
        """The verdict for a reader who does not know the method.

        Args:
            of_another: whether a check of the file failed that it was meant for: it then says nothing of the file.
        """
        lines = (textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent=_HANG) for line in self._reasons())
        headline = textwrap.fill(_OF_ANOTHER if of_another else self._headline(), _WIDTH, subsequent_indent="  ")
        return "\n".join([headline, *lines])

    def _headline(self) -> str:
        match self.outcome:
            case Outcome.REFUTED if self._draws_otherwise:
                return "REFUTED: the mechanism does not draw from the distribution that it shows."
            case Outcome.REFUTED:
                return "REFUTED: the promise is broken."
            case Outcome.EXACT if self.draws is None:
                return f"CONSISTENT: {UNCOMPARED}"
            case Outcome.EXACT:
                return "KEPT: the promise holds for everything that was looked at, by exact computation."
            case Outcome.CONSISTENT if self.refutable:
                return "NOT REFUTED: no violation was found. This is evidence, not a proof."
            case _:
                return "NOT TESTED: this many samples could not have refuted the promise, true or not."

    @property
    def _draws_otherwise(self) -> bool:
        return self.draws is not None and not self.draws.agree

    def _reasons(self) -> list[str]:
        lines = [f"The promise: {self.claim}.", f"Looked at:   {self.coverage}.", f"Worst found: {self.witness}."]
        visible, allowed = _nats(self.loss), _nats(self.allowed)
        if self.outcome is Outcome.EXACT:
            lines.append(f"There:       the output gives away {visible} nats; the promise allows {allowed}.")
        elif self._draws_otherwise:
            lines.append(
                "There:       draws are not from the distribution that is shown (wrong with probability at most "
                f"{self.error:.1g}), so nothing is known of what they give away; the promise allows {allowed}."
            )
        elif self.refuted and self.error == 0.0:
            lines.append(f"There:       the output gives away {visible} nats, and the promise allows only {allowed}.")
        elif self.refuted:
            lines.append(
                f"There:       the output gives away at least {visible} nats (wrong with probability at most "
                f"{self.error:.1g}), and the promise allows only {allowed}."
            )
        else:
            text = f"This sample could have shown {_nats(self.strongest)} at most."
            if self.draws is not None:
                text = f"Exactly the stated noise shows {_nats(self.strongest)} with this score and sample."
            lines.append(
                f"There:       at least {visible} nats were shown to leak; the promise allows {allowed}. {text}"
            )
        lines.append(f"Method:      {self.method}.")
        return lines

    def to_json(self) -> str:
        """The verdict as JSON; infinities as the string "infinity"."""
        data = {**asdict(self), "claim": guarantee_to_dict(self.claim), "refutable": self.refutable}
        return json.dumps({key: _plain(value) for key, value in data.items()}, indent=2)

    def _repr_fields(self) -> Fields:
        yield "outcome", str(self.outcome)
        yield "loss", self.loss
        yield "allowed", self.allowed
        yield "claim", str(self.claim)

    def _html_fields(self) -> Fields:
        yield "verdict", self._headline()
        for entry in self._reasons():
            name, _, reason = entry.partition(":")
            yield name.lower(), reason.strip()

    def plot(self, axes: Any = None, *, name: str | None = None) -> Any:
        """Draw what the claim allows beside what was shown, as one more row of the axes.

        Args:
            axes: of matplotlib, maybe with other verdicts on them; None: of a new figure.
            name: of the row.

        Returns:
            The axes.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        axes = get_axes(axes, height=2.2)
        self.draw_row(axes, name or f"worst pair found,\n{self.method.partition(',')[0]}")
        legend_below(axes)
        return axes

    def draw_row(self, axes: Any, name: str) -> None:
        """The row alone, without a legend."""
        losses = {"allowed": self.allowed, "loss": self.loss, "strongest": self.strongest}
        add_guarantee_row(axes, name, refuted=self.refuted, **losses)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return value


def _nats(value: float) -> str:
    return "infinitely many" if math.isinf(value) and value > 0 else f"{max(value, 0.0):.5g}"


def check_claim(claim: object) -> PrivacyStatement:
    """A statement that promises something."""
    if not isinstance(claim, PrivacyStatement):
        raise ParameterError(
            f"a claim must be a PrivacyStatement, which names unit and relation, got {type(claim).__name__}"
        )
    if isinstance(claim.guarantee, NoGuarantee):
        raise ParameterError(
            f"the statement promises nothing (NoGuarantee), so there is nothing to refute. {UNBOUNDED} What attackers "
            "get out of it: dptext report; whether it speaks of this data: dptext explain"
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
    """The verdict of an exact audit: the losses of the shown distribution, and whether draws are from it.

    Args:
        claim: the statement to put to the test.
        log_probabilities, allowed: see `dptext.audits.losses.exact_loss`.
        names, outputs: what the inputs and outputs are called.
        coverage: which inputs these are.
        sampler: draws outputs of inputs, by their numbers; where the losses keep the claim, its draws are compared with
            ``log_probabilities`` (`dptext.audits.goodness`). None: the verdict says that none were.
        samples: how many draws; half of them for the two inputs that come nearest to their allowance.
        error: the probability with which a sampler of exactly this distribution is refuted.
        seed: for the draws; None for fresh randomness.
    """
    guarantee = check_claim(claim).guarantee
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
        logs, sampler, samples=samples, error=error, bits=RandomBits(seed), names=names, outputs=outputs, closely=pair
    )
    return _add_draws(verdict, draws)


def _add_draws(verdict: Verdict, draws: DrawTest) -> Verdict:
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
    result = exact_loss(logs, allowed=allowed)
    output = f"output {result.output}" if outputs is None else f"the output {outputs[result.output]!r}"
    verdict = Verdict(
        outcome=Outcome.REFUTED if result.excess > 0 else Outcome.EXACT,
        claim=claim.guarantee,
        method="exact, from the distribution that the mechanism shows",
        loss=result.loss,
        allowed=result.allowed,
        witness=f"{output} under {names[result.first]!r} against {names[result.second]!r}",
        coverage=(
            f"{coverage} ({result.pairs:,} pairs, every output); the largest loss of any pair is {result.largest:.4g}, "
            f"the largest share of an allowance that is used {result.ratio:.1%}"
        ),
    )
    return verdict, (result.first, result.second)


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


def add_release_draws(verdict: Verdict, draws: DrawTest, *, error: float) -> Verdict:
    """Add the comparison of released documents to the verdict of an exact audit; ``error`` is that of both together."""
    verdict = replace(
        verdict, error=error, method=f"{verdict.method}, and {draws.draws:,} documents of a release (equal parts)"
    )
    if draws.agree:
        return verdict
    return replace(verdict, outcome=Outcome.REFUTED, draws=draws, loss=0.0, witness=draws.found)


def add_stated_noise(verdict: Verdict, *, draws: DrawTest, loss: float, could_show: float, error: float) -> Verdict:
    """Add what follows from the stated noise to the verdict of a sampled audit; ``error`` is that of all together."""
    if loss > verdict.allowed * (1 + _ACCOUNTS_AGREE):
        method = "exact, from the noise that the statement names"
        return replace(verdict, outcome=Outcome.REFUTED, loss=loss, error=0.0, method=method)
    text = "length, projection, neighbouring rows"
    compared = f"{draws.draws:,} draws compared with the noise that the statement names ({text})"
    strongest = max(could_show, verdict.loss)
    verdict = replace(verdict, draws=draws, error=error, strongest=strongest, method=f"{verdict.method}; {compared}")
    return verdict if draws.agree else replace(verdict, outcome=Outcome.REFUTED, loss=0.0, witness=draws.found)


def judge_canaries(claim: PrivacyStatement, bound: CanaryBound, *, error: float, coverage: str) -> Verdict:
    """The verdict of a one-run canary audit."""
    guarantee = as_approx(check_claim(claim))
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


def judge_gaussian(
    claim: PrivacyStatement, *, sigma: float, sensitivity: float, stated: ApproxDP, coverage: str
) -> Verdict:
    """The verdict on one Gaussian release: its delta at the epsilon that it claims, exactly (Balle and Wang 2018,
    Theorem 8).

    Args:
        claim: the statement to put to the test.
        sigma: the standard deviation of the noise on each number.
        sensitivity: how far the sum moves between neighbours, at most, in Euclidean length.
        stated: what this release claims for itself, out of the statement's guarantee; the rest is for others that were
            counted in.
        coverage: what was looked at.

    Raises:
        ParameterError: a claim without a guarantee; a sigma or sensitivity that is not above 0; a delta of 0.
    """
    guarantee = as_approx(check_claim(claim))
    epsilon, delta = min(stated.epsilon, guarantee.epsilon), min(stated.delta, guarantee.delta)
    sigma, sensitivity = check_float("sigma", sigma, above=0), check_float("sensitivity", sensitivity, above=0)
    needed = gaussian_delta(sigma, epsilon=epsilon, sensitivity=sensitivity)
    broken = needed > delta * (1 + 1e-9)
    loss = gaussian_epsilon(sigma, delta=check_float("delta", delta, above=0, below=1), sensitivity=sensitivity)
    return Verdict(
        outcome=Outcome.REFUTED if broken else Outcome.EXACT,
        claim=claim.guarantee,
        method=(
            f"exact trade-off of Gaussian noise (delta {needed:.3g} is needed where {delta:.3g} was promised), from "
            "the noise that the statement names"
        ),
        loss=loss if broken else min(loss, epsilon),
        allowed=epsilon,
        delta=delta,
        witness=(
            f"a {claim.unit} who moves the sum by all of {sensitivity:g}: noise of standard deviation {sigma:g} on "
            "each number"
        ),
        coverage=coverage,
    )


def judge_sampled_gaussian(
    claim: PrivacyStatement, *, account: SampledGaussian, stated: ApproxDP, coverage: str
) -> Verdict:
    """The verdict on steps of Gaussian noise on sums over samples: the epsilon of their account, computed again."""
    guarantee = as_approx(check_claim(claim))
    epsilon, delta = min(stated.epsilon, guarantee.epsilon), min(stated.delta, guarantee.delta)
    loss = account.epsilon(delta=check_float("delta", delta, above=0, below=1))
    broken = loss > epsilon * (1 + _ACCOUNTS_AGREE)
    return Verdict(
        outcome=Outcome.REFUTED if broken else Outcome.EXACT,
        claim=claim.guarantee,
        method=(
            f"the account of {account.steps:,} sampled steps computed again (epsilon {loss:.4g} at delta {delta:.3g}, "
            f"where {epsilon:.4g} was promised), from the noise that the statement names"
        ),
        loss=loss if broken else min(loss, epsilon),
        allowed=epsilon,
        delta=delta,
        witness=(
            f"a {claim.unit} who is in each step with a chance of {account.sampling_rate:g} and moves its sum by a "
            f"norm, under noise of {account.noise_multiplier:g} norms"
        ),
        coverage=coverage,
    )


_ACCOUNTS_AGREE = 1e-6
"""Relatively: versions of the library that sums the losses round them differently."""


def require_refutable(claim_loss: float, samples: int, *, error: float, delta: float = 0.0) -> None:
    """Refuse, before it runs, a sampled audit that could not refute the claim with any sample.

    Raises:
        ParameterError: with how much this many samples can show.
    """
    maximum = strongest_bound(samples, error=error, delta=delta)
    if maximum <= claim_loss:
        raise ParameterError(
            f"{samples:,} samples show a loss of at most {maximum:.4g}, the claim allows {claim_loss:.4g}: no result "
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
