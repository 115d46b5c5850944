"""The pictures of a page about one release."""

from __future__ import annotations

from collections.abc import Sequence

from dptext.attacks import AttackScore
from dptext.audits.verdict import Verdict
from dptext.report.parts import Measurement, main_scores
from dptext.report.score_figures import promise_figure, scores_figure

__all__ = ["picture_of_attacks", "picture_of_promise", "picture_of_use"]

_SHARES = (-0.02, 1.02)
Picture = tuple[str, bytes]
"""What it shows, and a PNG."""


def picture_of_promise(verdicts: Sequence[Verdict]) -> Picture | None:
    """What was promised beside what the audit showed."""
    drawn = [(f"worst pair found, {each.method.partition(',')[0]}", each) for each in verdicts if each.allowed < 1e6]
    if not drawn:
        return None
    return (
        "For the pair of words (or vectors) that comes closest: the most it may give away, and what the audit showed",
        promise_figure(drawn),
    )


def picture_of_attacks(scores: Sequence[AttackScore]) -> Picture | None:
    """The main number of each attack beside its baseline: all are shares of right answers."""
    drawn = [(each.attack.replace(" (", "\n("), each.score, each.baseline) for each in main_scores(scores)]
    if len(drawn) < 2:  # one number needs no picture
        return None
    return (
        "How often each attacker was right (dot), beside somebody who sees nothing (grey bar)",
        scores_figure(drawn, measure="share of right answers", limits=_SHARES),
    )


def picture_of_use(found: Sequence[Measurement]) -> Picture | None:
    """The accuracy of each model beside the best blind guess."""
    drawn = [(each.what.replace(", ", ",\n"), each.score, each.baseline) for each in found]
    if len(drawn) < 2:
        return None
    return (
        "How often each model was right (dot), beside the best blind guess (grey bar)",
        scores_figure(drawn, measure="accuracy", limits=_SHARES),
    )
