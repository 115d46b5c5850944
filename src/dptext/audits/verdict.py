"""What an audit found, against what was claimed."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import asdict, dataclass
from enum import StrEnum

from dptext.audits.draws import DrawTest
from dptext.privacy.guarantee import Guarantee, guarantee_to_dict

__all__ = ["Outcome", "Verdict"]


_WIDTH = 96
_HANG = " " * 15


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


@dataclass(frozen=True, kw_only=True)
class Verdict:
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
        strongest: the largest loss that this audit could have shown; a claim above it cannot be refuted by it.
        witness: the pair of inputs and the output (or event) that attain the loss, in public terms.
        coverage: what was looked at, in words.
        draws: of an exact audit, how draws compare with the distribution that was shown; None: none were drawn.
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
        """Whether this audit could have refuted the claim for its witness at all."""
        return self.strongest > self.allowed

    def explain(self) -> str:
        """The verdict for a reader who does not know the method."""
        lines = (textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent=_HANG) for line in self._reasons())
        return "\n".join([self._headline(), *lines])

    def _headline(self) -> str:
        match self.outcome:
            case Outcome.REFUTED if self._draws_otherwise:
                return "REFUTED: the mechanism does not draw from the distribution that it shows."
            case Outcome.REFUTED:
                return "REFUTED: the promise is broken."
            case Outcome.EXACT if self.draws is None:
                return "KEPT BY WHAT IS SHOWN: the shown distribution keeps the promise; no draw was compared with it."
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
        shown, allowed = _nats(self.loss), _nats(self.allowed)
        if self.outcome is Outcome.EXACT:
            lines.append(f"There:       the output gives away {shown} nats; the promise allows {allowed}.")
        elif self._draws_otherwise:
            lines.append(
                "There:       draws are not from the distribution that is shown (wrong with probability at most "
                f"{self.error:.1g}), so nothing is known of what they give away; the promise allows {allowed}."
            )
        elif self.refuted and self.error == 0.0:
            lines.append(f"There:       the output gives away {shown} nats, and the promise allows only {allowed}.")
        elif self.refuted:
            lines.append(
                f"There:       the output gives away at least {shown} nats (wrong with probability at most "
                f"{self.error:.1g}), and the promise allows only {allowed}."
            )
        else:
            lines.append(
                f"There:       at least {shown} nats were shown to leak; the promise allows {allowed}. "
                f"This sample could have shown {_nats(self.strongest)} at most."
            )
        lines.append(f"Method:      {self.method}.")
        return lines

    def to_json(self) -> str:
        """The verdict as JSON; infinities as the string "infinity"."""
        data = {**asdict(self), "claim": guarantee_to_dict(self.claim), "refutable": self.refutable}
        return json.dumps({key: _plain(value) for key, value in data.items()}, indent=2)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return value


def _nats(value: float) -> str:
    return "infinitely many" if math.isinf(value) and value > 0 else f"{max(value, 0.0):.5g}"
