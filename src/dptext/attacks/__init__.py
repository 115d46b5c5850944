"""What an adversary gets: attacks on private texts and vectors, each with a baseline and an interval.

Attacks take arrays, callables and labels, never a concrete mechanism.
"""

from dptext.attacks.attack_score import AttackScore
from dptext.attacks.attribute import attribute_inference
from dptext.attacks.inversion import bag_inversion
from dptext.attacks.likelihoods import sequence_likelihoods
from dptext.attacks.linkage import author_reidentification, linkage, linkage_of_scores
from dptext.attacks.membership import (
    Membership,
    likelihood_ratio_membership,
    loss_membership,
    random_halves,
    score_membership,
    shadow_membership,
)
from dptext.attacks.neighbours import nearest_secrets, secret_ranks, with_secrets_told
from dptext.attacks.recovery import bayes_recovery, cross_corpus_recovery, expected_recovery, nearest_recovery
from dptext.attacks.sums import gaussian_ceiling, sum_membership

__all__ = [
    "AttackScore",
    "Membership",
    "attribute_inference",
    "author_reidentification",
    "bag_inversion",
    "bayes_recovery",
    "cross_corpus_recovery",
    "expected_recovery",
    "gaussian_ceiling",
    "likelihood_ratio_membership",
    "linkage",
    "linkage_of_scores",
    "loss_membership",
    "nearest_recovery",
    "nearest_secrets",
    "random_halves",
    "score_membership",
    "secret_ranks",
    "sequence_likelihoods",
    "shadow_membership",
    "sum_membership",
    "with_secrets_told",
]
