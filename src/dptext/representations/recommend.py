"""Which randomizer for vectors of a width and a budget, and why: all that can do it, by their error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from dptext.checks import number, whole
from dptext.drawing import checked_axes, grey, labelled, next_style
from dptext.errors import ParameterError
from dptext.privacy.guarantee import ApproxDP, Guarantee
from dptext.representations.bounds import Domain
from dptext.representations.randomizer import MOST_DIMENSIONS, REAL_ARITHMETIC, Randomizer, checked_epsilon
from dptext.representations.registry import RANDOMIZERS
from dptext.showing import Facts, Showing

__all__ = ["Candidate", "Recommendation", "recommend"]

_A_LENGTH = "as far as a vector is long"
_FLOAT_BYTES = 4


@dataclass(frozen=True, repr=False)
class Candidate(Showing):
    """One randomizer, calibrated."""

    randomizer: Randomizer
    domain: Domain
    error: float
    guarantee: Guarantee
    bytes: int
    proof: str

    def _in_brief(self) -> Facts:
        yield "randomizer", self.randomizer
        yield "error", self.error
        yield "bytes", self.bytes
        yield "proof", self.proof

    def _in_full(self) -> Facts:
        yield "promise", str(self.guarantee)
        yield "domain", str(self.domain)


@dataclass(frozen=True, repr=False)
class Recommendation(Showing):
    """What `recommend` found. Its text is the explanation.

    Attributes:
        dimension, epsilon, delta: what was asked.
        limit: where coordinates are cut, for randomizers of the cube.
        candidates: all that can do it, the least error first.
        narrower: (dimension, error) of the best one after a public projection to fewer dimensions.
    """

    dimension: int
    epsilon: float
    delta: float
    limit: float
    candidates: tuple[Candidate, ...]
    narrower: tuple[tuple[int, float], ...]

    @property
    def randomizer(self) -> Randomizer:
        """The one with the least error."""
        return self.candidates[0].randomizer

    def __str__(self) -> str:
        best = self.candidates[0]
        asked = f"{self.dimension} dimensions, epsilon {self.epsilon:g}" + (
            f", delta {self.delta:g}" * (self.delta > 0)
        )
        lines = [
            f"For {asked}: {best.randomizer.name}.",
            f"It is off by {math.sqrt(best.error):.3g} times the length of a vector ({_what_it_means(best.error)}).",
            "",
            f"  {'randomizer':<14}{'squared error':>14}{'x best':>9}{'bytes':>7}  promise and proof",
        ]
        for each in self.candidates:
            cut = f"; numbers cut at {self.limit:.3g}" if each.domain is Domain.CUBE else ""
            lines.append(
                f"  {each.randomizer.name:<14}{each.error:>14.4g}{each.error / best.error:>9.3g}{each.bytes:>7}  "
                f"{_promise(each.guarantee)}, {each.proof}{cut}"
            )
        if self.narrower:
            errors = ", ".join(f"{error:.3g} at {dimension}" for dimension, error in self.narrower)
            lines += ["", f"A public projection to fewer dimensions lowers the error of what is left: {errors}."]
        return "\n".join(lines)

    def _in_brief(self) -> Facts:
        yield "dimension", self.dimension
        yield "epsilon", self.epsilon
        yield "delta", self.delta or None
        yield "randomizer", self.randomizer
        yield "error", self.candidates[0].error

    def _in_full(self) -> Facts:
        for each in self.candidates:
            promise = f"{_promise(each.guarantee)}, {each.proof}"
            yield each.randomizer.name, f"squared error {each.error:.4g}, {each.bytes:,} bytes; {promise}"
        for dimension, error in self.narrower:
            yield f"projected to {dimension}", f"squared error {error:.4g} at best"

    def plot(self, axes: Any = None) -> Any:
        """Draw the expected squared error by dimension, of the best randomizer of each, for vectors of length 1.

        Returns the axes of matplotlib: those given, which may show other budgets, or new ones (extra ``report``).
        """
        axes = checked_axes(axes)
        points = sorted([*self.narrower, (self.dimension, self.candidates[0].error)])
        delta = f", delta {self.delta:g}" if self.delta else ""
        kinds = axes.get_legend_handles_labels()[1]
        style = next_style(axes, len(kinds) - (_A_LENGTH in kinds))
        axes.plot(*zip(*points, strict=True), label=f"epsilon {self.epsilon:g}{delta}", markersize=5, **style)
        for line in [each for each in axes.lines if each.get_label() == _A_LENGTH]:
            line.remove()  # it stands last in the legend
        axes.axhline(1.0, color=grey(axes, 0.5), linewidth=0.8, label=_A_LENGTH)
        axes.set(xscale="log", yscale="log")
        labelled(axes, "dimension", "expected squared error", "How far one private vector is off")
        return axes


def recommend(
    dimension: int, epsilon: float, *, delta: float = 0.0, limit: float | None = None, exact: bool = False
) -> Recommendation:
    """Rank the randomizers for vectors of length 1 by their expected squared error.

    Args:
        dimension: of the vectors.
        epsilon: what may be spent on one vector.
        delta: above 0, Gaussian noise is a candidate too: its promise is weaker by that probability.
        limit: where each coordinate is cut for randomizers of the cube; None: 3 / sqrt(d), which cuts off little
            of a vector that points nowhere in particular. Their errors leave out what is cut off.
        exact: only randomizers whose proof takes nothing for granted about floating-point numbers.

    Raises:
        ParameterError: a number out of range, or no randomizer can do it.

    >>> print(recommend(64, 8.0, delta=1e-5).randomizer)
    PrivUnit(epsilon=8.0)
    >>> [each.randomizer.name for each in recommend(64, 8.0, delta=1e-5).candidates][:3]
    ['PrivUnit', 'PrivUnitG', 'Piecewise']
    """
    dimension = whole("dimension", dimension, least=1, most=MOST_DIMENSIONS)
    epsilon = checked_epsilon(epsilon)
    limit = _usual_limit(dimension) if limit is None else limit
    limit = number("limit", limit, above=0, most=1)  # the length of a vector
    found = _ranked(dimension, epsilon, delta, limit, exact=exact)
    if not found:
        raise ParameterError(f"no randomizer takes {dimension} dimensions at epsilon {epsilon:g}: give more epsilon")
    narrower = [
        (fewer, ranked[0].error)
        for fewer in (2, 8, 32, 128)
        if fewer < dimension and (ranked := _ranked(fewer, epsilon, delta, _usual_limit(fewer), exact=exact))
    ]
    return Recommendation(dimension, epsilon, delta, limit, tuple(found), tuple(narrower))


def _usual_limit(dimension: int) -> float:
    return min(1.0, 3 / math.sqrt(dimension))


def _ranked(dimension: int, epsilon: float, delta: float, limit: float, *, exact: bool) -> list[Candidate]:
    found = list(_candidates(dimension, epsilon, delta, limit))
    kept = [each for each in found if each.proof == "exact" or not exact]
    return sorted(kept, key=lambda each: each.error)


def _candidates(dimension: int, epsilon: float, delta: float, limit: float) -> Iterator[Candidate]:
    builds: list[Any] = [each for each in RANDOMIZERS.values() if each.is_candidate]
    for build in builds:
        approximate = any(each.name == "delta" for each in fields(build))
        if approximate and not delta:
            continue
        each = build(epsilon=epsilon, **({"delta": delta} if approximate else {}))
        with suppress(ParameterError):  # not for this many dimensions, or not for so little budget
            channel = each.channel(dimension)
            scale = limit**2 if channel.domain is Domain.CUBE else 1.0
            yield Candidate(
                randomizer=each,
                domain=channel.domain,
                error=scale * channel.expected_squared_error,
                guarantee=channel.guarantee,
                bytes=getattr(channel, "bytes", _FLOAT_BYTES * channel.width),
                proof="real arithmetic" if REAL_ARITHMETIC in channel.assumptions() else "exact",
            )


def _promise(guarantee: Guarantee) -> str:
    return "(epsilon, delta)" if isinstance(guarantee, ApproxDP) else "pure epsilon"


def _what_it_means(error: float) -> str:
    if error < 1:
        return "one private vector alone says roughly where the true one was"
    return f"the mean of {math.ceil(error):,} private vectors is as far off as a vector is long"
