"""Audits of guarantees: exact losses, sampled lower bounds, canaries, and verdicts."""

from dptext.audits.losses import (
    CanaryBound,
    ExactLoss,
    LossBound,
    canary_loss,
    clopper_pearson,
    exact_delta,
    exact_loss,
    loss_bound,
    one_run_bound,
    sampled_loss,
    samples_needed,
    strongest_bound,
)
from dptext.audits.mechanisms import audit
from dptext.audits.vectors import audit_vectors
from dptext.audits.verdict import (
    Outcome,
    Verdict,
    judge_canaries,
    judge_exact,
    judge_gaussian,
    judge_sample,
    require_refutable,
)

__all__ = [
    "CanaryBound",
    "ExactLoss",
    "LossBound",
    "Outcome",
    "Verdict",
    "audit",
    "audit_vectors",
    "canary_loss",
    "clopper_pearson",
    "exact_delta",
    "exact_loss",
    "judge_canaries",
    "judge_exact",
    "judge_gaussian",
    "judge_sample",
    "loss_bound",
    "one_run_bound",
    "require_refutable",
    "sampled_loss",
    "samples_needed",
    "strongest_bound",
]
