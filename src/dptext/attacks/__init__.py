"""What an adversary gets: attacks on private texts and vectors, each with a baseline and an interval.

Attacks take arrays, callables and labels, never a concrete mechanism.
"""

from dptext.attacks.attribute import attribute_inference
from dptext.attacks.authors import author_reidentification
from dptext.attacks.cross_corpus import cross_corpus_recovery
from dptext.attacks.inversion import bag_inversion
from dptext.attacks.likelihood import sequence_likelihoods
from dptext.attacks.linkage import linkage, linkage_of_scores
from dptext.attacks.recovery import bayes_recovery, expected_recovery, nearest_recovery
from dptext.attacks.score import AttackScore

__all__ = [
    "AttackScore",
    "attribute_inference",
    "author_reidentification",
    "bag_inversion",
    "bayes_recovery",
    "cross_corpus_recovery",
    "expected_recovery",
    "linkage",
    "linkage_of_scores",
    "nearest_recovery",
    "sequence_likelihoods",
]
