"""What an adversary gets: attacks on private texts and vectors, each with a baseline and an interval.

Attacks take arrays, callables and labels, never a concrete mechanism.
"""

from dptext.attacks.attribute import attribute_inference
from dptext.attacks.authors import author_reidentification
from dptext.attacks.likelihood import sequence_likelihoods
from dptext.attacks.linkage import linkage, linkage_of_scores
from dptext.attacks.score import AttackScore

__all__ = [
    "AttackScore",
    "attribute_inference",
    "author_reidentification",
    "linkage",
    "linkage_of_scores",
    "sequence_likelihoods",
]
