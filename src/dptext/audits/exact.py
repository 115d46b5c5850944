"""The exact loss of a mechanism with enumerable outputs; audits of one training run by canaries.

Derivation: docs/understand/audits.md#audits-canaries
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.checks import number
from dptext.errors import ParameterError, extra
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

Floats: TypeAlias = npt.NDArray[np.float64]
Allowed: TypeAlias = float | Callable[[int, slice], Floats]

_ROWS = 64
_OUTPUTS = 4096
_IMPOSSIBLE = -1e300  # stands for ln 0: the difference of two is 0, the difference to any other is beyond _INFINITE
_INFINITE = 1e299


@dataclass(frozen=True)
class ExactLoss:
    """The pair that exceeds its allowance most, or keeps it least.

    Attributes:
        loss: its exact loss in nats.
        allowed: what it may lose.
        first, second: the inputs (rows); the output is likelier under the first.
        output: the output that attains the loss.
        pairs: how many pairs were looked at.
        largest: the largest loss of any pair, allowed or not.
        ratio: the largest loss relative to its allowance (at most 1 where the claim holds).
    """

    loss: float
    allowed: float
    first: int
    second: int
    output: int
    pairs: int
    largest: float
    ratio: float

    @property
    def excess(self) -> float:
        """Loss less allowance: above 0, the claim is false."""
        return self.loss - self.allowed


def exact_loss(log_probabilities: npt.ArrayLike, *, allowed: Allowed) -> ExactLoss:
    """The pair of inputs with the largest loss beyond its allowance.

    Args:
        log_probabilities: (n, outputs) natural logs, each row a distribution; -inf where an output is impossible.
        allowed: nats, one number for all pairs, or a function (i, slice of j) -> (len(j),) for pairs (i, j).

    Raises:
        ParameterError: fewer than two inputs; a row that is no distribution.
    """
    return _worst_pair(_checked(log_probabilities), allowed)


def density_loss(log_densities: npt.ArrayLike, *, allowed: Allowed) -> ExactLoss:
    """`exact_loss` for a continuous mechanism, at outputs of your choice.

    Exact at these outputs, so a lower bound on the loss over all: choose them where the ratio is attained (at the
    inputs themselves, beyond them, far out in the tails).

    Args:
        log_densities: (n, outputs) natural logs of the density of each output under each input; -inf where it is 0.
        allowed: as in `exact_loss`.

    Raises:
        ParameterError: fewer than two inputs, or a density that is NaN or infinite.

    >>> import numpy as np
    >>> inputs, outputs = np.array([0.0, 1.0]), np.array([-3.0, 0.5, 4.0])
    >>> laplace = -np.abs(outputs - inputs[:, None])
    >>> density_loss(laplace, allowed=1.0).loss
    1.0
    """
    logs = _table(log_densities)
    if np.isnan(logs).any() or (logs > _INFINITE).any():
        raise ParameterError("expected the logs of densities, some are NaN or infinite")
    return _worst_pair(logs, allowed)


def _worst_pair(logs: Floats, allowed: Allowed) -> ExactLoss:
    size = len(logs)
    best: list[tuple[float, float, float, int, int]] = []
    extremes: list[tuple[float, float]] = []

    def row(i: int) -> None:
        found = []
        for start in range(i + 1, size, _ROWS):
            others = slice(start, min(start + _ROWS, size))
            loss = _losses(logs, i, others)
            bound = np.full(loss.size, allowed) if isinstance(allowed, int | float) else allowed(i, others)
            with np.errstate(divide="ignore", invalid="ignore"):
                extremes.append((float(loss.max()), float(np.nanmax(np.where(loss > 0, loss / bound, 0.0)))))
            place = int(np.argmax(loss - bound))
            found.append((float(loss[place] - bound[place]), float(loss[place]), float(bound[place]), i, start + place))
        if found:
            best.append(max(found))

    for_each_block(row, range(size - 1))
    _, loss, bound, i, j = max(best)
    difference = logs[i] - logs[j]
    output = int(np.argmax(np.abs(difference)))
    first, second = (i, j) if difference[output] >= 0 else (j, i)
    largest, ratio = (max(each) for each in zip(*extremes, strict=True))
    return ExactLoss(
        loss=_or_infinite(loss),
        allowed=bound,
        first=first,
        second=second,
        output=output,
        pairs=size * (size - 1) // 2,
        largest=_or_infinite(largest),
        ratio=_or_infinite(ratio),
    )


def exact_delta(log_probabilities: npt.ArrayLike, *, epsilon: float) -> tuple[float, int, int]:
    """The smallest delta at which (epsilon, delta)-DP holds for all ordered pairs, and the pair that needs it.

    delta(i, j) = sum over outputs of max(0, P(o | i) - e^epsilon P(o | j)), the hockey-stick divergence.

    Returns:
        (delta, i, j).
    """
    shares = np.exp(_checked(log_probabilities))
    # beyond 700 it is no float any more; a smaller epsilon needs more delta, so this errs to the safe side
    factor = math.exp(min(number("epsilon", epsilon, least=0, infinite=True), 700.0))
    best: list[tuple[float, int, int]] = []

    def row(i: int) -> None:
        for start in range(0, len(shares), _ROWS):
            deltas = np.maximum(shares[i] - factor * shares[start : start + _ROWS], 0.0).sum(axis=1)
            place = int(np.argmax(deltas))
            best.append((float(deltas[place]), i, start + place))

    for_each_block(row, range(len(shares)))
    return max(best)


def _or_infinite(loss: float) -> float:
    return math.inf if loss > _INFINITE / 1e9 else loss


def _losses(logs: Floats, i: int, others: slice) -> Floats:
    loss = np.zeros(others.stop - others.start)
    for start in range(0, logs.shape[1], _OUTPUTS):
        part = slice(start, start + _OUTPUTS)
        difference = logs[others, part] - logs[i, part]
        np.maximum(loss, difference.max(axis=1), out=loss)
        np.maximum(loss, -difference.min(axis=1), out=loss)
    return loss


def _table(values: npt.ArrayLike) -> Floats:
    logs = np.array(values, dtype=np.float64)
    if logs.ndim != 2 or logs.shape[0] < 2 or logs.shape[1] < 1:
        raise ParameterError(f"expected log-probabilities of at least two inputs, shape (n, outputs), got {logs.shape}")
    logs[logs < _IMPOSSIBLE] = _IMPOSSIBLE
    return logs


def _checked(log_probabilities: npt.ArrayLike) -> Floats:
    logs = _table(log_probabilities)
    with np.errstate(under="ignore"):
        totals = np.exp(logs).sum(axis=1)
    if not np.allclose(totals, 1.0, atol=1e-6):
        worst = int(np.argmax(np.where(np.isnan(totals), np.inf, np.abs(totals - 1))))
        raise ParameterError(f"row {worst} of the log-probabilities is no distribution: it sums to {totals[worst]:.6g}")
    return logs


@dataclass(frozen=True)
class CanaryBound:
    """What one training run gave away.

    Attributes:
        loss: a lower bound on epsilon that holds with probability at least 1 - error.
        strongest: what as many guesses could have shown at most (all correct).
        correct, guesses, canaries: the counts behind it.
    """

    loss: float
    strongest: float
    correct: int
    guesses: int
    canaries: int


def p_value(correct: int, *, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The largest probability, over all (epsilon, delta)-DP trainings, of at least this many correct guesses."""
    binom = extra("scipy.stats", "audit", "a canary audit").binom
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, chance))
    if delta == 0.0 or correct == 0:
        return min(1.0, beta)
    steps = np.arange(1, correct + 1)
    alpha = float(np.max(np.cumsum(binom.pmf(correct - steps, guesses, chance)) / steps))
    return min(1.0, beta + 2.0 * canaries * delta * alpha)


def one_run_bound(correct: int, *, guesses: int, canaries: int, delta: float = 0.0, error: float = 0.05) -> float:
    """The largest epsilon that this many correct guesses refute, 0 if none: p_value is below error up to there."""

    def refuted(epsilon: float) -> bool:
        return p_value(correct, guesses=guesses, canaries=canaries, epsilon=epsilon, delta=delta) < error

    low, high = 0.0, 1.0
    if not refuted(low):
        return 0.0
    while refuted(high) and high < 64:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def canary_loss(
    train: Callable[[npt.NDArray[np.bool_]], Any],
    score: Callable[[Any], npt.NDArray[np.float64]],
    *,
    canaries: int,
    guesses: int | None = None,
    delta: float = 0.0,
    error: float = 0.05,
    seed: int | None = None,
) -> CanaryBound:
    """Train once with a random half of the canaries and bound epsilon (add/remove of a canary) from below.

    Args:
        train: (m,) booleans, True where the canary is in the training data -> what was released.
        score: what was released -> (m,) scores; higher means likelier to have been in.
        canaries, guesses: m, and r, which is fixed before the run; default: all.
        delta: of the claim.
        error: the probability with which the bound may be wrong.
        seed: for the coins; None for fresh randomness.

    Raises:
        ParameterError: scores of another shape or not finite; counts out of range.
    """
    guesses = canaries if guesses is None else guesses
    if canaries < 2 or not 2 <= guesses <= canaries:
        raise ParameterError(f"expected 2 <= guesses <= canaries, got {guesses} guesses of {canaries} canaries")
    bits = RandomBits(seed)
    included = bits.below(np.full(canaries, 2, dtype=np.uint64)).astype(bool)
    scores = np.asarray(score(train(included.copy())), dtype=np.float64)
    if scores.shape != (canaries,) or not np.isfinite(scores).all():
        raise ParameterError(f"expected {canaries} finite scores, one a canary, got shape {scores.shape}")
    order = np.lexsort((bits.uniform(canaries), scores))  # ties fall at random
    lowest, highest = guesses // 2, guesses - guesses // 2
    correct = int((~included[order[:lowest]]).sum() + included[order[canaries - highest :]].sum())
    counts = {"guesses": guesses, "canaries": canaries}
    return CanaryBound(
        loss=one_run_bound(correct, **counts, delta=delta, error=error),
        strongest=one_run_bound(guesses, **counts, delta=delta, error=error),
        correct=correct,
        **counts,
    )
