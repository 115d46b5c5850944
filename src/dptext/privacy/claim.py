"""What a paper prints of its mechanism, beside what is true of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dptext.privacy.statement import Parameter

__all__ = ["Finding"]

_SAME = 1e-9  # relatively: chances are rounded by less


@dataclass(frozen=True)
class Finding:
    """What is known of a printed epsilon."""

    claimed: float
    bound: float
    attained: float
    reason: str
    holds_for: str
    witness: str

    @property
    def verdict(self) -> str:
        """Whether the claim is ``"false"``, ``"true"``, or ``"open"``: not proved, and no two inputs are known."""
        if self.attained > self.claimed * (1 + _SAME):
            return "false"
        return "true" if self.bound <= self.claimed * (1 + _SAME) else "open"

    def parameters(self) -> dict[str, Parameter]:
        """For the statement, which `PrivacyStatement.explain` shows."""
        said = self.verdict
        return {
            "claim_is": said,
            "reason": None if said == "true" else self.reason,
            "holds_for": self.holds_for,
            "witness": self.witness,
            "witness_loss": self.attained if math.isfinite(self.attained) else "infinity",
        }
