"""What an adversary gets: attacks on private texts and vectors, each with a baseline and an interval.

Attacks take arrays, callables and labels, never a concrete mechanism.
"""

from dptext.attacks.attribute import attribute_inference
from dptext.attacks.score import AttackScore

__all__ = ["AttackScore", "attribute_inference"]
