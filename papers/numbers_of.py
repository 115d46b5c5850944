"""Estimates as the numbers of a row."""

from __future__ import annotations

from itertools import combinations

from dptext.evaluation.utility import Fairness
from dptext.intervals import Estimate


def named(name: str, estimate: Estimate, blind: float | None = None) -> dict[str, float]:
    """An estimate and its interval, and what a blind guess has."""
    result = {name: estimate.value, f"{name} low": estimate.low, f"{name} high": estimate.high}
    return result if blind is None else result | {f"{name} blind": blind}


def of_groups(attribute: str, found: Fairness) -> dict[str, float]:
    """Accuracy of the task in each group, and the gap of each pair: the later group less the earlier one."""
    numbers: dict[str, float] = {}
    for group in found.groups:
        numbers |= named(f"{attribute} {group.group}", group.score, group.baseline)
    gaps = {(entry.better, entry.worse): entry.gap for entry in found.gaps}
    for one, other in combinations([group.group for group in found.groups], 2):
        gap = gaps.get((other, one))
        if gap is None:
            turned = gaps[one, other]
            gap = Estimate(0.0 - turned.value, 0.0 - turned.high, 0.0 - turned.low, turned.count, turned.of)
        numbers |= named(f"{attribute} gap {other} less {one}", gap)
    return numbers
