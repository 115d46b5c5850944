"""What an adversary gets: attacks on private texts and vectors, each with a baseline and an interval.

Attacks take arrays, callables and labels, never a concrete mechanism.
"""

from dptext.attacks.attribute import attribute_inference
from dptext.attacks.authors import author_reidentification
from dptext.attacks.cross_corpus import cross_corpus_recovery
from dptext.attacks.inversion import bag_inversion
from dptext.attacks.likelihood import sequence_likelihoods
from dptext.attacks.linkage import linkage, linkage_of_scores
from dptext.attacks.membership import (
    likelihood_ratio_membership,
    loss_membership,
    random_halves,
    shadow_membership,
)
from dptext.attacks.recovery import bayes_recovery, expected_recovery, nearest_recovery
from dptext.attacks.score import AttackScore
from dptext.attacks.separation import Membership, score_membership

__all__ = [
    "AttackScore",
    "Membership",
    "attribute_inference",
    "author_reidentification",
    "bag_inversion",
    "bayes_recovery",
    "cross_corpus_recovery",
    "expected_recovery",
    "likelihood_ratio_membership",
    "linkage",
    "linkage_of_scores",
    "loss_membership",
    "nearest_recovery",
    "random_halves",
    "score_membership",
    "sequence_likelihoods",
    "shadow_membership",
]
