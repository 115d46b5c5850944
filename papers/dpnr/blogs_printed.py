"""Paper 004's own numbers for BLOG, TP-US and AG: its figures 4 and 5 (accuracy) and 6 (of groups), in per cent.

They are the paper's under study (BERT, four epochs, means of five runs); no intervals, and no numbers of the attack.
"""

from __future__ import annotations

BLOG, TP_US, AG = "topic", "TP-US", "AG News"  # the tasks that they stand beside
_EPSILONS, _MUS = (0.05, 0.1, 0.5, 1, 5), (0.1, 0.3, 0.5, 0.8)


def _rows(clean: float, epsilons: tuple[float, ...], mus: tuple[float, ...]) -> dict[str, float]:
    by_epsilon = {f"epsilon {entry}": value for entry, value in zip(_EPSILONS, epsilons, strict=True)}
    return {"no noise": clean} | by_epsilon | {f"mu {entry}": value for entry, value in zip(_MUS, mus, strict=True)}


ACCURACY = {
    BLOG: _rows(97.07, (96.69, 96.39, 96.84, 96.39, 96.66), (96.05, 93.76, 90.98, 82.94)),
    TP_US: _rows(85.53, (85.65, 85.52, 85.52, 85.36, 85.87), (85.53, 84.85, 83.51, 80.70)),
    AG: _rows(78.75, (80.87, 80.78, 79.71, 79.36, 79.59), (80.71, 79.18, 77.42, 69.57)),
}
RATIOS = {BLOG: {"gender": (52, 48), "age": (46, 54)}, TP_US: {"gender": (37, 63), "age": (64, 36)}}
"""Women and men, young and old."""
FAIRNESS = {
    BLOG: {
        "no noise": {"gender": (98.07, -2.18), "age": (97.05, -1.49)},
        "adversarial": {"gender": (93.84, -7.54), "age": (91.91, -3.57)},
        "DPNR": {"gender": (98.00, -2.34), "age": (97.09, -0.11)},
    },
    TP_US: {
        "no noise": {"gender": (83.69, 1.57), "age": (84.63, 0.02)},
        "adversarial": {"gender": (84.95, 0.19), "age": (85.38, -0.46)},
        "DPNR": {"gender": (85.90, 0.49), "age": (86.08, 0.31)},
    },
}
"""Accuracy among women, and of men less that; among the young, and of the old less that. DPNR's epsilon is not said."""


def printed_accuracy(epsilon: float | None, mu: float, task: str = BLOG) -> float | None:
    """A share, of the row without noise, at an epsilon, or with words masked."""
    name = "no noise" if epsilon is None else f"mu {mu:g}" if mu else f"epsilon {epsilon:g}"
    value = ACCURACY.get(task, {}).get(name)
    return None if value is None else value / 100
