"""Attacks on private texts and vectors, each with a baseline and a confidence interval.

Attacks accept arrays, callables and labels, never a concrete mechanism.
"""

from dptext.attacks.attribute import attribute_inference
from dptext.attacks.base import AttackScore
from dptext.attacks.linkage import (
    author_reidentification,
    linkage,
    linkage_of_scores,
    nearest_secrets,
    nearest_secrets_known,
    secret_ranks,
)
from dptext.attacks.membership import Membership, gaussian_ceiling, score_membership, sum_membership
from dptext.attacks.recovery import bag_inversion, bayes_recovery, expected_recovery, nearest_recovery

__all__ = [
    "AttackScore",
    "Membership",
    "attribute_inference",
    "author_reidentification",
    "bag_inversion",
    "bayes_recovery",
    "expected_recovery",
    "gaussian_ceiling",
    "linkage",
    "linkage_of_scores",
    "nearest_recovery",
    "nearest_secrets",
    "nearest_secrets_known",
    "score_membership",
    "secret_ranks",
    "sum_membership",
]
