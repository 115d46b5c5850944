"""Printed numbers, all means of five runs without intervals: of the study, and of the DPNR paper under study.

The study's figures 7 (d = 32) and 8 (d = 64) have rows for epsilons without masked words, then for shares mu of masked
words at epsilon 4, and columns for plain ("non robust"), robust and, for d = 64, adaptive training. The paper's figures
4 and 5 have accuracies in per cent, and figure 6 the accuracies of groups.
"""

from __future__ import annotations

AG_NEWS, AS_LARGE, IMDB, YELP = "AG News", "AG News 28,500", "IMDb", "Yelp"
"""Data sets of the study: AG News in its size, public samples of it, and IMDb, which the study does not use."""
SETS = (AS_LARGE, AG_NEWS, YELP, IMDB)
PRINTED_AS = {AG_NEWS: "AG News", AS_LARGE: "AG News", YELP: "Yelp"}

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
MUS = (0.1, 0.3, 0.5, 0.8)
TRAININGS = ("plain", "robust", "adaptive")
ROWS = (*(f"epsilon {epsilon:g}" for epsilon in EPSILONS), *(f"mu {mu:g}" for mu in MUS))
CLEAN = {("AG News", 32): 0.80, ("AG News", 64): 0.77, ("Yelp", 32): 0.88, ("Yelp", 64): 0.89}
"""Without noise."""
_TABLES = {
    ("AG News", 32): (
        (".26 .25", ".26 .25", ".31 .25", ".36 .25", ".48 .30", ".57 .51", ".63 .66", ".67 .73"),
        (".53 .58", ".37 .35", ".32 .33", ".27 .27"),
    ),
    ("AG News", 64): (
        (
            *(".26 .25 .26", ".26 .25 .26", ".30 .25 .34", ".36 .25 .42"),
            *(".46 .31 .50", ".54 .42 .57", ".59 .50 .64", ".66 .68 .63"),
        ),
        (".53 .47 .40", ".37 .29 .37", ".30 .28 .28", ".26 .25 .26"),
    ),
    ("Yelp", 32): (
        (".50 .50", ".51 .50", ".54 .54", ".58 .51", ".64 .60", ".70 .75", ".73 .84", ".75 .82"),
        (".69 .68",),
    ),
    ("Yelp", 64): (
        (
            *(".50 .50 .51", ".50 .50 .53", ".53 .61 .62", ".56 .64 .57"),
            *(".60 .62 .75", ".65 .75 .77", ".68 .84 .80", ".72 .81 .79"),
        ),
        (".65 .76 .57",),
    ),
}


def printed(data: str, dimension: int, training: str, row: str) -> float | None:
    """Return the study's number for a row of `ROWS`; None if there is none."""
    by_epsilon, by_mu = _TABLES.get((data, dimension), ((), ()))
    lines = dict(zip(ROWS, by_epsilon, strict=False)) | dict(zip(ROWS[len(EPSILONS) :], by_mu, strict=False))
    numbers = lines.get(row, "").split()
    column = TRAININGS.index(training)
    return float(numbers[column]) if column < len(numbers) else None


# -- the paper under study -----------------------------------------------------------------------------------------

BLOG, TP_US, AG = "topic", "TP-US", "AG News"
"""Our tasks for the paper's BLOG, TP-US and AG."""


def _accuracies(clean: float, by_epsilon: tuple[float, ...], by_mu: tuple[float, ...]) -> dict[str, float]:
    names = ("no noise", *(f"epsilon {epsilon:g}" for epsilon in (0.05, 0.1, 0.5, 1, 5)), *(f"mu {mu:g}" for mu in MUS))
    return dict(zip(names, (clean, *by_epsilon, *by_mu), strict=True))


ACCURACY = {
    BLOG: _accuracies(97.07, (96.69, 96.39, 96.84, 96.39, 96.66), (96.05, 93.76, 90.98, 82.94)),
    TP_US: _accuracies(85.53, (85.65, 85.52, 85.52, 85.36, 85.87), (85.53, 84.85, 83.51, 80.70)),
    AG: _accuracies(78.75, (80.87, 80.78, 79.71, 79.36, 79.59), (80.71, 79.18, 77.42, 69.57)),
}
RATIOS = {BLOG: {"gender": (52, 48), "age": (46, 54)}, TP_US: {"gender": (37, 63), "age": (64, 36)}}
"""Per cent of women and men, of the young and the old."""
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
"""Accuracy for women (the young) and the gap of men (the old) to it; the paper does not print the epsilon of DPNR."""


def printed_accuracy(epsilon: float | None, mu: float, task: str = BLOG) -> float | None:
    """Return the paper's accuracy (0 to 1) without noise, at an epsilon, or with masked words."""
    name = "no noise" if epsilon is None else f"mu {mu:g}" if mu else f"epsilon {epsilon:g}"
    value = ACCURACY.get(task, {}).get(name)
    return None if value is None else value / 100
