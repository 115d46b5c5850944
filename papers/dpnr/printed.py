"""The study's own numbers: its figures 7 (d = 32) and 8 (d = 64); five epochs, means of five runs, without intervals.

Rows are epsilons with no word masked, then shares mu of masked words at epsilon 4; numbers stand for plain ("non
robust"), robust and, for d = 64, adaptive training.
"""

from __future__ import annotations

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
MUS = (0.1, 0.3, 0.5, 0.8)
TRAININGS = ("plain", "robust", "adaptive")
ROWS = (*(f"epsilon {entry:g}" for entry in EPSILONS), *(f"mu {entry:g}" for entry in MUS))
"""The names of rows, as `printed` takes them."""
CLEAN = {("AG News", 32): 0.80, ("AG News", 64): 0.77, ("Yelp", 32): 0.88, ("Yelp", 64): 0.89}
"""Not private."""

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
    """A number by the name of its row (``"epsilon 0.05"``, ``"mu 0.1"``); None where none is printed."""
    if (data, dimension) not in _TABLES:
        return None
    by_epsilon, by_mu = _TABLES[data, dimension]
    named = {f"epsilon {epsilon:g}": line for epsilon, line in zip(EPSILONS, by_epsilon, strict=True)}
    named |= {f"mu {mu:g}": line for mu, line in zip(MUS, by_mu, strict=False)}
    numbers = named.get(row, "").split()
    place = TRAININGS.index(training)
    return float(numbers[place]) if place < len(numbers) else None
