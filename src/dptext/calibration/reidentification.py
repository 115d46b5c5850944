"""The epsilon at which a text of a bank is re-identified rarely enough.

Derivation: docs/understand/epsilon.md#calibration-relinking
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.intervals import mean_of_people
from dptext.noise.subset_selection import Profile
from dptext.plotting import get_axes, grey, label_axes, next_style
from dptext.privacy.guarantee import epsilon_at_most, rate_at_most, rounded_down
from dptext.privacy.randomness import RandomBits
from dptext.privacy.wording import paragraphs
from dptext.release.privatize import privatize
from dptext.sentences.bank import TextBank
from dptext.sentences.origins import Likelihoods
from dptext.sentences.rewriter import BankRewriter, UnitOfEpsilon
from dptext.validation import check_float, check_int

DIGITS = 4
"""Of an epsilon that was searched for: one that a person can type."""
_DOUBLINGS = 24
_FLAT = 8  # doublings without any change: the curve has reached its end
_NARROW = 1e-4  # of ln epsilon
_STEPS = 40
_SMALLEST_SHARE = 1e-9


class UnreachableError(Exception):
    """No crossing was found: the last epsilon of the search, and its direction."""

    def __init__(self, epsilon: float, upwards: bool) -> None:
        super().__init__(f"no crossing {'up' if upwards else 'down'} to {epsilon:g}")
        self.epsilon, self.upwards = epsilon, upwards


def crossing(excess: Callable[[float], float], *, start: float, tolerance: float) -> float:
    """An epsilon with ``excess(epsilon) <= 0``, or within ``tolerance`` of 0, that has a positive excess above it."""
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
    # false position (Illinois: an end that stays twice counts half), bisection where that does not move
    low, high = math.log(low), math.log(high)
    weight_low, weight_high = at_low, at_high
    side = 0
    for step in range(_STEPS):
        if abs(at_low) <= tolerance or high - low < _NARROW:
            break
        if at_high <= tolerance:
            return math.exp(high)
        middle = (low + high) / 2
        if step % 3 < 2:  # every third step halves, however crooked the curve
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
    """ln(p / (1 - p)), which runs nearly straight in ln epsilon; 0 and 1 are taken for the nearest finite ones."""
    share = min(max(share, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE)
    return math.log(share / (1 - share))


def fresh_seed() -> int:
    """A seed of its own for draws that are to be repeated within one calculation."""
    return int.from_bytes(RandomBits().take(8), "little")


PEOPLE = (10, 100, 1_000)
"""Among how many people a table says how often a text is traced back."""
_GROUPS = 8  # of as many public texts as there are people
_DRAWN = 1_000  # texts, at least, where the chance is sampled
_DRAWN_EPSILONS = 30
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BankCalibration(ReprMixin):
    """An epsilon that keeps the re-identification rate at most at its goal."""

    epsilon: float
    goal: float
    people: int
    parts: int
    reached: float
    is_any: bool
    pure: float
    public: float | None = None
    public_reached: float | None = None
    rewriter: BankRewriter = field(repr=False)

    def _repr_fields(self) -> Fields:
        return [(name, getattr(self, name)) for name in ("epsilon", "goal", "people", "reached", "public")]

    def _html_fields(self) -> Fields:
        yield from (("meaning", entry) for entry in paragraphs("privacy/templates/calibrated_bank.txt", found=self))

    def plot(self, axes: Any = None) -> Any:
        """Draw how often a text is traced back, at most, over epsilon: for this bank, and under any mechanism."""
        axes, rewriter = get_axes(axes), self.rewriter
        family = _Family(rewriter.bank, rewriter.unit, rewriter.max_sentences)
        counted = family.parts if rewriter.unit == "sentence" else 1  # as many epsilons come together
        last = max(1.25 * self.epsilon, 1.05 * (self.public or 0.0))
        epsilons, chances = np.linspace(last / _DRAWN_EPSILONS, last, _DRAWN_EPSILONS).tolist(), []
        for epsilon in epsilons:
            with suppress(ParameterError):  # beyond what can be drawn from
                chances.append((epsilon, family.at_most(epsilon, self.people)))
        pure = [(epsilon, rate_at_most(counted * epsilon, self.people)) for epsilon in epsilons]
        for name, points in (("this bank, at most", chances), ("any mechanism, at most", pure)):
            axes.plot(*zip(*points, strict=True), label=name, markersize=4, **next_style(axes))
        point = {"color": grey(axes), "marker": "x", "markersize": 9, "linestyle": ""}
        axes.plot([self.epsilon], [self.reached], label=f"calibrated: epsilon {self.epsilon:.4g}", **point)
        if self.public is not None and self.public_reached is not None:
            point |= {"marker": "+", "markersize": 11}
            axes.plot([self.public], [self.public_reached], label="among the public texts given", **point)
        axes.axhline(self.goal, color=grey(axes, 0.5), linewidth=0.8, label=f"goal: {self.goal:.3g}")
        label_axes(
            axes, "epsilon", f"chance to name the right one of {self.people:,}", "How often a text is traced back"
        )
        return axes


def calibrate_bank(
    bank: TextBank,
    *,
    relinking: float,
    people: int,
    unit: UnitOfEpsilon = "sentence",
    max_sentences: int | None = None,
    texts: Sequence[str] | None = None,
    seed: int | None = None,
) -> BankCalibration:
    """See `dptext.calibrate`."""
    people = check_int("people", people, minimum=2)
    number = check_float("relinking", relinking, above=0, below=1)
    if number <= 1 / people:
        raise ParameterError(
            f"relinking must be above 1 / people, {1 / people:.4g}, the chance level, got {number:g}: name "
            "more people, or a larger chance"
        )
    family = _Family(bank, unit, max_sentences)
    pure = rounded_down(epsilon_at_most(number, people) / (family.parts if unit == "sentence" else 1), DIGITS)
    epsilon, is_any = _largest(lambda candidate: family.at_most(candidate, people), number, start=pure)
    public = reached = None
    if texts is not None:
        among = _Public(family, texts, people, fresh_seed() if seed is None else seed)
        public, _ = _largest(among.chance, number, start=pure)
        reached = among.chance(public)
    return BankCalibration(
        epsilon=epsilon,
        goal=number,
        people=people,
        parts=family.parts,
        reached=family.at_most(epsilon, people),
        is_any=is_any,
        pure=pure,
        public=public,
        public_reached=reached,
        rewriter=family(epsilon),
    )


def bank_epsilon(
    bank: TextBank,
    epsilon: float,
    *,
    unit: UnitOfEpsilon = "sentence",
    max_sentences: int | None = None,
    profile: Profile | None = None,
) -> BankEpsilon:
    """Return the similarity and re-identification rates of an epsilon, from public information."""
    family, profile = _Family(bank, unit, max_sentences), bank.profile if profile is None else profile
    rewriter = family(epsilon)
    size = min(rewriter.size, profile.candidates - 1)
    return BankEpsilon(
        epsilon=rewriter.epsilon,
        size=rewriter.size,
        similarity=(
            profile.expected(size, rewriter.selection.epsilon),
            float(profile.cumulative[-1] / profile.candidates),
        ),
        relinking={people: rewriter.relinking(people, parts=family.parts) for people in PEOPLE},
    )


@dataclass(frozen=True)
class _Family:
    """A rewriter, of which epsilon is open."""

    bank: TextBank
    unit: UnitOfEpsilon
    max_sentences: int | None

    def __call__(self, epsilon: float) -> BankRewriter:
        return BankRewriter(self.bank, epsilon=epsilon, unit=self.unit, max_sentences=self.max_sentences)

    @property
    def parts(self) -> int:
        """Number of bank texts that the adversary sees: one, or those of the longest document."""
        return self.max_sentences or 1

    def at_most(self, epsilon: float, people: int) -> float:
        return self(epsilon).relinking(people, parts=self.parts)


class _Public:
    """Public texts in groups of as many as there are people."""

    def __init__(self, family: _Family, texts: Sequence[str], people: int, seed: int) -> None:
        distinct = list(dict.fromkeys(texts))
        if len(distinct) < people:
            raise ParameterError(
                f"texts must be at least {people:,} distinct ones, as many as people, got {len(distinct):,}: give "
                "more, or name fewer people"
            )
        groups = min(_GROUPS, len(distinct) // people)
        self._family, self._people, self._seed = family, people, seed
        self._groups = [distinct[start * people : (start + 1) * people] for start in range(groups)]
        self._vectors = [family.bank.features.vectors(group) for group in self._groups] if family.parts == 1 else []

    def chance(self, epsilon: float) -> float:
        """Return the rate of the best attack among these texts: exact, or the upper end of an interval."""
        rewriter = self._family(epsilon)
        if self._vectors:
            sets = (rewriter.bank.nearest(vectors, rewriter.size) for vectors in self._vectors)
            unions = [int(np.unique(entry).size) for entry in sets]
            return float(np.mean([rewriter.selection.relinking(self._people, union) for union in unions]))
        sure = []
        for number_of, group in enumerate(self._groups):
            for draw in range(-(-_DRAWN // (self._people * len(self._groups)))):
                private = privatize(group, rewriter, seed=(self._seed + 1000 * number_of + draw) % 2**31).texts
                sure.append(Likelihoods(rewriter, group, private).posteriors())
        result = np.concatenate(sure)
        return mean_of_people(result, np.arange(result.size)).high


def _largest(chance: Callable[[float], float], goal: float, *, start: float) -> tuple[float, bool]:
    is_any = False

    def excess(epsilon: float) -> float:
        return log_odds(chance(epsilon)) - log_odds(goal)

    try:
        epsilon = crossing(excess, start=start, tolerance=_TOLERANCE)
    except UnreachableError as end:
        epsilon, is_any = end.epsilon, end.upwards
    epsilon = rounded_down(epsilon, DIGITS)
    for _ in range(_GRID_STEPS):
        if chance(epsilon) <= goal:
            return epsilon, is_any
        epsilon = rounded_down(epsilon * _STEP, DIGITS)
    return start, is_any
