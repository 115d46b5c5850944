"""Search for the epsilon that limits the re-identification of texts that a bank replaces.

Derivation: docs/understand/epsilon.md#calibration-relinking
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.privacy.guarantee import epsilon_at_most, rounded_down
from dptext.privacy.wording import paragraphs
from dptext.sentences.bank import TextBank
from dptext.sentences.rewriter import BankRewriter, UnitOfEpsilon
from dptext.validation import check_float, check_int

DIGITS = 4
"""Significant digits of an epsilon from a search, few enough to type."""
_DOUBLINGS = 24
_FLAT = 8  # doublings without any change, after which the search stops
_NARROW = 1e-4  # width of the final bracket, in ln epsilon
_STEPS = 40
_SMALLEST_SHARE = 1e-9


class UnreachableError(Exception):
    """Search without a crossing, with its last epsilon and its direction."""

    def __init__(self, epsilon: float, upwards: bool) -> None:
        super().__init__(f"no crossing {'up' if upwards else 'down'} to {epsilon:g}")
        self.epsilon, self.upwards = epsilon, upwards


def crossing(excess: Callable[[float], float], *, start: float, tolerance: float) -> float:
    """Return an epsilon with ``excess(epsilon) <= 0``, or within ``tolerance`` of 0, and a positive excess above it."""
    low = high = start
    at_low = at_high = excess(start)
    if abs(at_low) <= tolerance:
        return start
    upwards = at_low < 0
    flat = 0
    for _ in range(_DOUBLINGS):
        if at_low <= 0 < at_high:
            break
        epsilon = high * 2 if upwards else low / 2
        try:
            value = excess(epsilon)
        except ParameterError:
            raise UnreachableError(high if upwards else low, upwards) from None
        before = at_high if upwards else at_low
        flat = flat + 1 if abs(value - before) < 1e-9 else 0
        if upwards:
            low, at_low, high, at_high = high, at_high, epsilon, value
        else:
            low, at_low, high, at_high = epsilon, value, low, at_low
        if flat == _FLAT:
            break
    if not at_low <= 0 < at_high:
        raise UnreachableError(high if upwards else low, upwards)
    # false position (Illinois: the weight of an end that stays twice is halved), with bisection as a safeguard
    low, high = math.log(low), math.log(high)
    weight_low, weight_high = at_low, at_high
    side = 0
    for step in range(_STEPS):
        if abs(at_low) <= tolerance or high - low < _NARROW:
            break
        if at_high <= tolerance:
            return math.exp(high)
        middle = (low + high) / 2
        if step % 3 < 2:  # every third step is a bisection, for any shape of the curve
            share = weight_low / (weight_low - weight_high)
            middle = low + min(max(share, 0.02), 0.98) * (high - low)
        value = excess(math.exp(middle))
        if value <= 0:
            low, at_low, weight_low = middle, value, value
            weight_high = weight_high / 2 if side < 0 else at_high
            side = -1
        else:
            high, at_high, weight_high = middle, value, value
            weight_low = weight_low / 2 if side > 0 else at_low
            side = 1
    return math.exp(low)


def log_odds(share: float) -> float:
    """Return ln(p / (1 - p)), nearly linear in ln epsilon; 0 and 1 are replaced by the nearest finite values."""
    share = min(max(share, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE)
    return math.log(share / (1 - share))


PEOPLE = (10, 100, 1_000)
"""Numbers of people for which a table shows the re-identification rate."""
_STEP = 1 - 2e-4
_GRID_STEPS = 500
_TOLERANCE = 1e-6  # of log-odds


@dataclass(frozen=True, kw_only=True)
class BankEpsilon:
    """Similarity and re-identification rates of an epsilon, from public information."""

    epsilon: float
    size: int
    similarity: tuple[float, float]
    relinking: Mapping[int, float]


def bank_epsilon(bank: TextBank, epsilon: float, *, unit: UnitOfEpsilon = "sentence") -> BankEpsilon:
    """Return the similarity and re-identification rates of an epsilon, from public information."""
    rewriter, profile = BankRewriter(bank, epsilon=epsilon, unit=unit), bank.profile
    similarity = profile.expected(min(rewriter.size, profile.candidates - 1), rewriter.selection.epsilon)
    return BankEpsilon(
        epsilon=rewriter.epsilon,
        size=rewriter.size,
        similarity=(similarity, float(profile.cumulative[-1] / profile.candidates)),
        relinking={people: rewriter.relinking(people, parts=1) for people in PEOPLE},
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BankCalibration(ReprMixin):
    """Epsilon for a re-identification rate of at most ``goal``."""

    epsilon: float
    goal: float
    people: int
    parts: int
    reached: float
    is_any: bool
    pure: float
    rewriter: BankRewriter

    def _repr_fields(self) -> Fields:
        return [(name, getattr(self, name)) for name in ("epsilon", "goal", "people", "reached")]

    def _html_fields(self) -> Fields:
        yield from (("meaning", entry) for entry in paragraphs("privacy/templates/calibrated_bank.txt", found=self))


def calibrate_bank(
    bank: TextBank, *, relinking: float, people: int, unit: UnitOfEpsilon = "sentence", max_sentences: int | None = None
) -> BankCalibration:
    """Calibrate the epsilon of a bank; see `dptext.calibrate`."""
    people = check_int("people", people, minimum=2)
    goal = check_float("relinking", relinking, above=0, below=1)
    if goal <= 1 / people:
        raise ParameterError(f"relinking must be above 1 / people, {1 / people:.4g}, the chance level, got {goal:g}")
    parts = max_sentences or 1  # number of bank texts that the adversary sees

    def build(epsilon: float) -> BankRewriter:
        return BankRewriter(bank, epsilon=epsilon, unit=unit, max_sentences=max_sentences)

    def at_most(epsilon: float) -> float:
        return build(epsilon).relinking(people, parts=parts)

    pure = rounded_down(epsilon_at_most(goal, people) / (parts if unit == "sentence" else 1), DIGITS)
    epsilon, is_any = _largest(at_most, goal, start=pure)
    return BankCalibration(
        epsilon=epsilon,
        goal=goal,
        people=people,
        parts=parts,
        reached=at_most(epsilon),
        is_any=is_any,
        pure=pure,
        rewriter=build(epsilon),
    )


def _largest(chance: Callable[[float], float], goal: float, *, start: float) -> tuple[float, bool]:
    """Return the largest epsilon that meets a goal, and whether every epsilon does."""
    is_any = False
    try:
        epsilon = crossing(
            lambda candidate: log_odds(chance(candidate)) - log_odds(goal), start=start, tolerance=_TOLERANCE
        )
    except UnreachableError as end:
        epsilon, is_any = end.epsilon, end.upwards
    epsilon = rounded_down(epsilon, DIGITS)
    for _ in range(_GRID_STEPS):
        if chance(epsilon) <= goal:
            return epsilon, is_any
        epsilon = rounded_down(epsilon * _STEP, DIGITS)
    return start, is_any
