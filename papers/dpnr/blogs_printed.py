"""Paper 004's own numbers for BLOG: its figures 4 and 5 (accuracy of the topic) and 6 (of groups), in per cent.

They are the paper's under study (BERT, four epochs, means of five runs); no intervals, and no numbers of the attack.
"""

from __future__ import annotations

__all__ = ["ACCURACY", "FAIRNESS", "RATIOS", "printed_accuracy"]

ACCURACY = {
    "no noise": 97.07,
    **{
        f"epsilon {each}": value
        for each, value in zip((0.05, 0.1, 0.5, 1, 5), (96.69, 96.39, 96.84, 96.39, 96.66), strict=True)
    },
    **{f"mu {each}": value for each, value in zip((0.1, 0.3, 0.5, 0.8), (96.05, 93.76, 90.98, 82.94), strict=True)},
}
RATIOS = {"gender": (52, 48), "age": (46, 54)}
"""Women and men, young and old."""
FAIRNESS = {
    "no noise": {"gender": (98.07, -2.18), "age": (97.05, -1.49)},
    "adversarial": {"gender": (93.84, -7.54), "age": (91.91, -3.57)},
    "DPNR": {"gender": (98.00, -2.34), "age": (97.09, -0.11)},
}
"""Accuracy among women, and of men less that; among the young, and of the old less that. DPNR's epsilon is not said."""


def printed_accuracy(epsilon: float | None, mu: float) -> float | None:
    """A share, of the row without noise, at an epsilon, or with words masked."""
    name = "no noise" if epsilon is None else f"mu {mu:g}" if mu else f"epsilon {epsilon:g}"
    return None if name not in ACCURACY else ACCURACY[name] / 100
