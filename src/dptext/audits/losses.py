"""Privacy losses of pairs of inputs: sampled lower bounds and exact losses.

Derivation: docs/understand/audits.md#audits-sampled
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.validation import check_float, check_int

Floats: TypeAlias = npt.NDArray[np.float64]
Draw: TypeAlias = Callable[[int, RandomBits], npt.NDArray[Any]]
Score: TypeAlias = Callable[[npt.NDArray[Any]], Floats]

_THRESHOLDS = 400
_TAIL = 50


@dataclass(frozen=True)
class LossBound:
    """Lower bound on the loss of a pair, in nats; it holds with probability at least 1 - error."""

    loss: float
    strongest: float  # the largest loss that this number of samples could have shown
    event: str


def clopper_pearson(successes: npt.ArrayLike, trials: int, error: float) -> tuple[Floats, Floats]:
    """Return (low, high) bounds on a probability, each wrong with probability at most ``error`` (Clopper-Pearson)."""
    special = extra("scipy.special", "audit", "a sampled audit")
    k = np.asarray(successes, dtype=np.float64)
    low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), trials - k + 1, error), 0.0)
    high = np.where(k < trials, special.betaincinv(k + 1, np.maximum(trials - k, 1), 1 - error), 1.0)
    return low, high


def strongest_bound(samples: int, *, error: float, delta: float = 0.0) -> float:
    """Return the largest loss that this many held-out samples per input can show."""
    low, high = clopper_pearson([samples, 0], samples, error / 2)
    return _log_ratio(float(low[0]), float(high[1]), delta)


def samples_needed(loss: float, *, error: float, delta: float = 0.0) -> int:
    """Return a number of held-out samples per input that can show this loss."""
    count = 16
    while strongest_bound(count, error=error, delta=delta) <= loss:
        count *= 2
        if count > 2**60:
            raise ParameterError(
                f"no number of samples can show a loss of {loss:.4g} at this delta. Choose a smaller loss"
            )
    return count


def loss_bound(first: Floats, second: Floats, *, error: float, delta: float = 0.0) -> LossBound:
    """Return a lower bound from (n,) scores of independent outputs; higher means likelier under the first input."""
    if len(first) != len(second) or len(first) < 8:
        raise ParameterError(
            f"both inputs must have the same number of scores, at least 8, got {len(first)} and {len(second)}"
        )
    half = len(first) // 2  # the scores that choose the event; the others test it
    tested = len(first) - half
    candidates = [
        (*_best_threshold(one[:half], other[:half], error, delta), name, one, other)
        for name, one, other in (("first", first, second), ("second", -second, -first))
    ]
    _, threshold, name, one, other = max(candidates, key=lambda candidate: candidate[0])
    counts = [int((side[half:] >= threshold).sum()) for side in (one, other)]
    low, high = clopper_pearson(counts, tested, error / 2)
    sign, visible = (">=", threshold) if name == "first" else ("<=", -threshold)
    return LossBound(
        loss=max(0.0, _log_ratio(float(low[0]), float(high[1]), delta)),
        strongest=strongest_bound(tested, error=error, delta=delta),
        event=f"score {sign} {visible:.6g}: {counts[0]:,} times against {counts[1]:,} in {tested:,} samples each",
    )


def call_mechanism(draw: Callable[[], Any], count: int) -> npt.NDArray[Any]:
    """Return (count, ...) outputs; raise if the mechanism raises or returns another number of outputs."""
    try:
        outputs = np.asarray(draw())
    except Exception as error:  # noqa: BLE001 - a mechanism may raise anything
        raise ParameterError(
            f"the mechanism raised {type(error).__name__}. A mechanism must return an output for every input: an "
            "error for some inputs only is an infinite loss"
        ) from None
    if outputs.ndim < 1 or len(outputs) != count:
        raise ParameterError(
            f"the mechanism returned shape {outputs.shape} for {count} inputs: expected ({count}, ...)"
        )
    return outputs


def sampled_loss(
    draw_first: Draw,
    draw_second: Draw,
    *,
    samples: int,
    error: float,
    delta: float = 0.0,
    score: Score | None = None,
    seed: int | None = None,
) -> LossBound:
    """Draw independent outputs of a mechanism at two inputs and bound its loss from below.

    ``samples`` outputs per input test the bound, as many choose the event, and as many train the score if there is none
    (higher: likelier under the first). Raise `ParameterError` if the mechanism raises or is not random.
    """
    samples = check_int("samples", samples, minimum=100)
    bits = RandomBits(seed)
    draws = (draw_first, draw_second)
    for draw in draws:
        once, repeated = (call_mechanism(partial(draw, 64, bits), 64) for _ in range(2))
        # 128 equal *words* may be chance at a large epsilon; equal floats, or the same sequence twice, are not
        is_constant = once.dtype.kind in "iub" and (once == once[0]).all()
        if np.array_equal(once, repeated) and not is_constant:
            raise ParameterError(
                "the mechanism is not random: it returned the same 64 outputs twice (a constant, or a fixed seed)"
            )
    if score is None:
        score = learn_score(*(call_mechanism(partial(draw, samples, bits), samples) for draw in draws))
    scores = [
        np.concatenate([score(call_mechanism(partial(draw, samples, bits), samples)) for _ in range(2)])
        for draw in draws
    ]
    return loss_bound(*scores, error=error, delta=delta)


def _best_threshold(one: Floats, other: Floats, error: float, delta: float) -> tuple[float, float]:
    """Return (bound, t) of the event "score >= t" with the largest bound on these samples."""
    ordered_one, ordered_other = np.sort(one), np.sort(other)
    # dense in both tails, which decide the bound
    ranks = np.geomspace(1, len(one), _THRESHOLDS // 4).astype(int)
    ranks = np.unique(np.concatenate([ranks, len(one) + 1 - ranks]))
    thresholds = np.unique(np.concatenate([ordered_one[-ranks], ordered_other[-ranks]]))
    # an event that starts just above a value excludes that value
    thresholds = np.unique(np.concatenate([thresholds, np.nextafter(thresholds, np.inf)]))
    low, _ = clopper_pearson(len(one) - np.searchsorted(ordered_one, thresholds), len(one), error / 2)
    _, high = clopper_pearson(_expected_above(ordered_other, thresholds), len(other), error / 2)
    with np.errstate(divide="ignore"):
        bounds = np.where(low > delta, np.log(np.maximum(low - delta, 0.0)) - np.log(high), -np.inf)
    best = int(np.argmax(bounds))
    threshold = float(thresholds[best])
    # the same event on these samples, with a threshold halfway between two of them: new samples rarely equal it
    values = np.unique(np.concatenate([one, other]))
    place = int(np.searchsorted(values, threshold))
    if 0 < place < values.size:
        middle = float(values[place - 1] + (values[place] - values[place - 1]) / 2)
        threshold = middle if values[place - 1] < middle <= values[place] else threshold
    return float(bounds[best]), threshold


def _expected_above(ordered: Floats, thresholds: Floats) -> npt.NDArray[Any]:
    """Return the expected number of equally many fresh samples at or above each threshold."""
    counts = (len(ordered) - np.searchsorted(ordered, thresholds)).astype(np.float64)
    start = ordered[-_TAIL] if len(ordered) >= 4 * _TAIL else math.inf
    spread = float(np.mean(ordered[-_TAIL:] - start)) if math.isfinite(start) else 0.0
    if spread > 0.0:
        tail = _TAIL * np.exp(-np.maximum(thresholds - start, 0.0) / spread)
        counts = np.where(counts < _TAIL, np.maximum(counts, tail), counts)
    return counts


def _log_ratio(p_low: float, q_high: float, delta: float) -> float:
    return math.log((p_low - delta) / q_high) if p_low > delta else -math.inf


def learn_score(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Score:
    """Return the log-odds of "first" by a trained classifier: the better of a logistic and a boosted one."""
    if first.ndim == 1 and first.dtype.kind in "iu":
        size = int(max(first.max(), second.max())) + 2  # one more for unseen categories
        counts = [np.bincount(entry, minlength=size) + 0.5 for entry in (first, second)]
        ratios = np.log(counts[0]) - np.log(counts[1])
        return lambda outputs: ratios[np.minimum(outputs, size - 1)]
    scikit_learn = partial(extra, name="audit", purpose="a learnt score")
    half = len(first) // 2
    features = np.concatenate([_flat(first), _flat(second)])
    labels = np.repeat([1, 0], [len(first), len(second)])
    trained = np.concatenate([np.arange(half), len(first) + np.arange(half)])
    held_out = np.setdiff1d(np.arange(len(labels)), trained)
    linear = scikit_learn("sklearn.linear_model").LogisticRegression(C=10.0, max_iter=200)
    models = [
        scikit_learn("sklearn.pipeline").make_pipeline(scikit_learn("sklearn.preprocessing").StandardScaler(), linear),
        scikit_learn("sklearn.ensemble").HistGradientBoostingClassifier(max_iter=60, random_state=0),
    ]
    fitted = [model.fit(features[trained], labels[trained]) for model in models]
    log_loss = scikit_learn("sklearn.metrics").log_loss
    best = min(fitted, key=lambda model: log_loss(labels[held_out], model.predict_proba(features[held_out])[:, 1]))
    return lambda outputs: np.asarray(best.decision_function(_flat(outputs)), dtype=np.float64)


def _flat(outputs: npt.NDArray[Any]) -> Floats:
    return outputs.reshape(len(outputs), -1).astype(np.float64)


Allowed: TypeAlias = float | Callable[[int, slice], Floats]

_ROWS = 64
_OUTPUTS = 4096
_IMPOSSIBLE = -1e300  # stands for ln 0: the difference of two is 0, the difference to any other is beyond _INFINITE
_INFINITE = 1e290


@dataclass(frozen=True)
class ExactLoss:
    """The pair of inputs whose loss (in nats) exceeds its allowance most, or comes closest to it."""

    loss: float
    allowed: float
    first: int  # the input under which the output is likelier
    second: int
    output: int  # attains the loss
    pairs: int
    largest: float  # loss of any pair, allowed or not
    ratio: float  # of a loss to its allowance: at most 1 if the claim holds

    @property
    def excess(self) -> float:
        """Loss minus allowance; above 0, the claim is false."""
        return self.loss - self.allowed


def exact_loss(log_probabilities: npt.ArrayLike, *, allowed: Allowed) -> ExactLoss:
    """Return the pair of inputs with the largest loss beyond its allowance, from (n, outputs) log probabilities.

    ``allowed`` is one number of nats, or a function (i, slice of j) -> (len(j),) for the pairs (i, j).
    """
    logs = _checked(log_probabilities)
    size = len(logs)
    worst: list[tuple[float, float, float, int, int]] = []  # excess, loss, allowance and inputs
    extremes: list[tuple[float, float]] = []

    def row(i: int) -> None:
        for start in range(i + 1, size, _ROWS):
            others = slice(start, min(start + _ROWS, size))
            loss = _losses(logs, i, others)
            bound = np.full(loss.size, allowed) if isinstance(allowed, int | float) else allowed(i, others)
            with np.errstate(divide="ignore", invalid="ignore"):
                extremes.append((float(loss.max()), float(np.nanmax(np.where(loss > 0, loss / bound, 0.0)))))
            place = int(np.argmax(loss - bound))
            worst.append((float((loss - bound)[place]), float(loss[place]), float(bound[place]), i, start + place))

    for_each_block(row, range(size - 1))
    _, loss, bound, i, j = max(worst)
    difference = logs[i] - logs[j]
    output = int(np.argmax(np.abs(difference)))
    first, second = (i, j) if difference[output] >= 0 else (j, i)
    largest, ratio = (max(entry) for entry in zip(*extremes, strict=True))
    loss, largest, ratio = (math.inf if value > _INFINITE else value for value in (loss, largest, ratio))
    return ExactLoss(loss, bound, first, second, output, size * (size - 1) // 2, largest, ratio)


def exact_delta(log_probabilities: npt.ArrayLike, *, epsilon: float) -> tuple[float, int, int]:
    """Return the smallest delta at which (epsilon, delta)-DP holds for all ordered pairs, and the pair that needs it.

    delta(i, j) = sum over outputs of max(0, P(o | i) - e^epsilon P(o | j)), the hockey-stick divergence.
    """
    shares = np.exp(_checked(log_probabilities))
    # e^epsilon overflows above 700; a smaller epsilon needs more delta, so the result is conservative
    factor = math.exp(min(check_float("epsilon", epsilon, minimum=0, infinite=True), 700.0))
    best: list[tuple[float, int, int]] = []

    def row(i: int) -> None:
        for start in range(0, len(shares), _ROWS):
            deltas = np.maximum(shares[i] - factor * shares[start : start + _ROWS], 0.0).sum(axis=1)
            place = int(np.argmax(deltas))
            best.append((float(deltas[place]), i, start + place))

    for_each_block(row, range(len(shares)))
    return max(best)


def _losses(logs: Floats, i: int, others: slice) -> Floats:
    loss = np.zeros(others.stop - others.start)
    for start in range(0, logs.shape[1], _OUTPUTS):
        part = slice(start, start + _OUTPUTS)
        difference = logs[others, part] - logs[i, part]
        np.maximum(loss, difference.max(axis=1), out=loss)
        np.maximum(loss, -difference.min(axis=1), out=loss)
    return loss


def _checked(log_probabilities: npt.ArrayLike) -> Floats:
    logs = np.array(log_probabilities, dtype=np.float64)
    if logs.ndim != 2 or logs.shape[0] < 2 or logs.shape[1] < 1:
        raise ParameterError(f"expected log-probabilities of at least two inputs, shape (n, outputs), got {logs.shape}")
    logs[logs < _IMPOSSIBLE] = _IMPOSSIBLE
    with np.errstate(under="ignore"):
        totals = np.exp(logs).sum(axis=1)
    if not np.allclose(totals, 1.0, atol=1e-6):
        worst = int(np.argmax(np.where(np.isnan(totals), np.inf, np.abs(totals - 1))))
        raise ParameterError(
            f"row {worst} of the log-probabilities is not a distribution: it sums to {totals[worst]:.6g}"
        )
    return logs
