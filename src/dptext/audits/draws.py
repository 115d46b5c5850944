"""Whether a sampler draws from the distribution that its mechanism shows.

Derivation: docs/understand/audits.md#audits-draws
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

__all__ = ["DrawTest", "Release", "Sampler", "compare_draws", "compare_releases"]

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]
Sampler: TypeAlias = Callable[[Rows, RandomBits], npt.ArrayLike]
"""((n,) numbers of inputs, bits) -> (n,) numbers of outputs, drawn independently; another number is no output."""

Release: TypeAlias = Callable[[list[str], RandomBits], Sequence[str]]
"""Documents, bits -> one private text for each."""

_TESTS = 5
_DOCUMENTS = 2_000
_REFERENCE = 5  # reference documents for each document
_EXPECTED = 5.0  # draws of a group: fewer say little
_ALONE = 48  # outputs that are groups of their own
_TOGETHER = 16  # groups of all others, by their chances


@dataclass(frozen=True)
class DrawTest:
    """Draws beside the distribution that a mechanism shows."""

    agree: bool
    draws: int
    inputs: int
    error: float
    found: str


def compare_draws(
    log_probabilities: Floats,
    sampler: Sampler,
    *,
    samples: int,
    error: float,
    bits: RandomBits,
    names: Sequence[str],
    outputs: Sequence[str] | None = None,
    closely: Sequence[int] = (),
) -> DrawTest:
    """Draw for every input, and compare the draws with the shown distribution."""
    inputs = _inputs(len(log_probabilities), samples // 2, closely, bits)
    once, again = (_drawn(sampler, inputs, bits) for _ in range(2))
    every, drawn = np.concatenate([inputs, inputs]), np.concatenate([once, again])
    called = _Names(names, outputs)
    found = _impossible(log_probabilities, every, drawn, called)
    if not found:
        rows = _compared(log_probabilities, every, drawn)
        share = math.log(error / _TESTS)
        found = _off(rows, share, called) or _leaning(rows, share) or _repeated(rows, inputs, once, again, share)
    return DrawTest(agree=not found, draws=drawn.size, inputs=len(log_probabilities), error=error, found=found)


def compare_releases(
    released: Release, expected: Release, parts: Sequence[str], *, copies: int, error: float, bits: RandomBits
) -> DrawTest:
    chosen = bits.below(np.full(_DOCUMENTS // 2, len(parts), dtype=np.uint64)).tolist()
    documents = [" ".join([parts[place]] * copies) for place in chosen for _ in range(2)]
    observed = _repeats(released(documents, bits))
    reference = [_repeats(expected(documents, bits)) for _ in range(_REFERENCE)]
    log_share = math.log(error / 8)  # of two means, on two sides, of draws and reference
    witness = ""
    for name, values in observed.items():
        share, mean = float(values.mean()), float(np.mean([each[name] for each in reference]))
        by_chance = sum(math.sqrt(-log_share / (2 * n)) for n in (values.size, _REFERENCE * values.size))
        if abs(share - mean) > by_chance and not witness:
            witness = f"{name}: {share:.1%} in {values.size:,} cases, where {mean:.1%} are expected"
    return DrawTest(agree=not witness, draws=len(documents), inputs=len(parts), error=error, found=witness)


def _repeats(private: Sequence[str]) -> dict[str, Floats]:
    words = [text.split() for text in private]
    return {
        "different words in documents of equal parts": np.array([len({*each}) / max(1, len(each)) for each in words]),
        "equal documents that come out equal": np.array([one == other for one, other in pairwise(private)][::2], float),
    }


def _inputs(count: int, draws: int, closely: Sequence[int], bits: RandomBits) -> Rows:
    """The inputs of a call, in an order that nothing follows from: two of each at least."""
    each = max(2, draws // count // (2 if closely else 1))
    more = draws // 2 // len(closely) if closely else 0
    inputs = np.repeat(
        np.append(np.arange(count), np.asarray(closely, dtype=np.int64)), [each] * count + [more] * len(closely)
    )
    return inputs[np.argsort(bits.uniform(inputs.size))]


def _drawn(sampler: Sampler, inputs: Rows, bits: RandomBits) -> Rows:
    try:
        drawn = np.asarray(sampler(inputs.copy(), bits))
    except Exception as error:  # noqa: BLE001 - a mechanism may raise anything
        raise ParameterError(
            f"the mechanism raised {type(error).__name__}: a mechanism must return an output for every input (an error "
            "for some inputs only is itself an infinite loss)"
        ) from None
    if drawn.shape != inputs.shape or drawn.dtype.kind not in "iu":
        raise ParameterError(f"the mechanism returned shape {drawn.shape} for {inputs.size} inputs: expected one each")
    return drawn.astype(np.int64)


@dataclass(frozen=True)
class _Names:
    """What inputs and outputs are called."""

    inputs: Sequence[str]
    outputs: Sequence[str] | None

    def output(self, output: int) -> str:
        return f"output {output}" if self.outputs is None else f"the output {self.outputs[output]!r}"


# -- what cannot come out ---------------------------------------------------------------------------------------


def _impossible(logs: Floats, inputs: Rows, drawn: Rows, called: _Names) -> str:
    is_known = (drawn >= 0) & (drawn < logs.shape[1])
    chances = np.zeros(drawn.size)
    chances[is_known] = np.exp(logs[inputs[is_known], drawn[is_known]])
    places = np.flatnonzero(chances == 0.0)
    if not places.size:
        return ""
    first = places[0]
    what = called.output(drawn[first]) if is_known[first] else "an output that it does not have"
    return (
        f"under {called.inputs[inputs[first]]!r} {what} was drawn, whose probability is 0; so it was for "
        f"{places.size:,} of {drawn.size:,} draws"
    )


# -- counts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Compared:
    """The draws of one input beside its chances: G and K of the module's docstring, and what contributes most."""

    row: int
    draws: int
    distance: float
    freedom: int
    likeliest: int
    """How often the likeliest output came."""
    highest: float
    """Its chance."""
    equal: float
    """The chance that two draws are equal."""
    output: int
    """One of the group that is farthest off."""
    size: int
    """How many outputs are in this group."""
    count: int
    expected: float


def _compared(logs: Floats, inputs: Rows, drawn: Rows) -> list[_Compared]:
    order = np.argsort(inputs, kind="stable")
    parts = np.split(drawn[order], np.searchsorted(inputs[order], np.arange(1, len(logs))))
    found: list[_Compared] = []

    def compare(row: int) -> None:
        found.append(_compared_row(row, logs[row], parts[row]))

    for_each_block(compare, range(len(logs)))
    return sorted(found, key=lambda each: each.row)


def _compared_row(row: int, logs: Floats, drawn: Rows) -> _Compared:
    chances = np.exp(logs)
    chances /= chances.sum()
    order = np.argsort(-chances, kind="stable")
    starts = _groups(chances[order], drawn.size)
    expected = drawn.size * np.add.reduceat(chances[order], starts)
    counts = np.add.reduceat(np.bincount(drawn, minlength=chances.size)[order], starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / expected), 0.0)
    worst = int(np.argmax(terms - counts + expected))
    return _Compared(
        row=row,
        draws=drawn.size,
        likeliest=int((drawn == order[0]).sum()),
        highest=float(chances[order[0]]),
        distance=max(0.0, float(terms.sum())),
        freedom=starts.size - 1,
        equal=float((chances**2).sum()),
        output=int(order[starts[worst]]),
        size=int(np.append(starts, chances.size)[worst + 1] - starts[worst]),
        count=int(counts[worst]),
        expected=float(expected[worst]),
    )


def _groups(falling: Floats, draws: int) -> Rows:
    """Where groups of outputs begin, the likeliest first: single ones, then several together of about equal chance."""
    alone = int(np.searchsorted(-falling[:_ALONE] * draws, -_EXPECTED, side="right"))
    rest = falling[alone:]
    if not rest.any():
        return np.arange(max(alone, 1))
    sums = np.cumsum(rest)
    together = int(np.clip(draws * sums[-1] // _EXPECTED, 1, _TOGETHER))
    borders = np.searchsorted(sums, sums[-1] * np.arange(together) / together, side="right")
    return np.append(np.arange(alone), alone + np.unique(borders))


def _log_tail(distance: float, freedom: int) -> float:
    """ln of equation (tail)."""
    if distance <= freedom:
        return 0.0
    return freedom - distance + (freedom * math.log(distance / freedom) if freedom else 0.0)


def _off(rows: Sequence[_Compared], log_error: float, called: _Names) -> str:
    worst = min(rows, key=lambda each: _log_tail(each.distance, each.freedom))
    alone = _log_tail(worst.distance, worst.freedom)
    together = _log_tail(sum(each.distance for each in rows), sum(each.freedom for each in rows))
    if alone > log_error - math.log(len(rows)) and together > log_error:
        return ""
    what = called.output(worst.output) if worst.size == 1 else f"one of a group of {worst.size:,} outputs"
    came = f"{what} came {worst.count:,} times, where {worst.expected:,.1f} are expected"
    return f"under {called.inputs[worst.row]!r} {came}"


def _leaning(rows: Sequence[_Compared], log_error: float) -> str:
    draws = sum(each.draws for each in rows)
    share = sum(each.likeliest for each in rows) / draws
    mean = sum(each.draws * each.highest for each in rows) / draws
    if -draws * _divergence(share, min(mean, 1.0)) > log_error - math.log(2):
        return ""
    return f"the likeliest output of its input was {share:.2%} of {draws:,} draws, where {mean:.2%} are expected"


# -- draws that come again ----------------------------------------------------------------------------------------


def _repeated(rows: Sequence[_Compared], inputs: Rows, once: Rows, again: Rows, log_error: float) -> str:
    chances = np.array([each.equal for each in rows])
    order = np.argsort(inputs, kind="stable")
    place = np.arange(inputs.size) - np.searchsorted(inputs[order], inputs[order])
    first = np.flatnonzero((place[:-1] % 2 == 0) & (np.diff(inputs[order]) == 0))
    pairs = {
        "of two calls for the same inputs": (inputs, once, again),
        "of one call for the same input": (inputs[order[first]], once[order[first]], once[order[first + 1]]),
    }
    for what, (which, one, other) in pairs.items():
        share, mean = float((one == other).mean()), float(chances[which].mean())
        if share > mean and -which.size * _divergence(share, min(mean, 1.0)) <= log_error:
            return f"{share:.2%} of {which.size:,} pairs of draws {what} are equal, where {mean:.2%} are expected"
    return ""


def _divergence(one: float, other: float) -> float:
    """KL of two coins."""
    terms = [(one, other), (1 - one, 1 - other)]
    return sum(a * math.log(a / b) if b > 0 else math.inf for a, b in terms if a > 0)
