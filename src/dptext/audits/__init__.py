"""Audits of guarantees: exact losses, sampled lower bounds, and verdicts."""
