"""Sampled lower bounds on the loss of a pair of inputs: what an attacker provably learns from the output.

Derivation: docs/understand/audits.md#audits-sampled
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.errors import ParameterError, extra
from dptext.privacy.randomness import RandomBits

Draw: TypeAlias = Callable[[int, RandomBits], npt.NDArray[Any]]
Score: TypeAlias = Callable[[npt.NDArray[Any]], npt.NDArray[np.float64]]

_THRESHOLDS = 400
_TAIL = 50


@dataclass(frozen=True)
class LossBound:
    """A lower bound on the loss of a pair, in nats.

    Attributes:
        loss: the bound; it holds with probability at least 1 - error.
        strongest: what the same number of samples could have shown at most.
        event: the event that shows it, in words.
        p_low, q_high: the bounds on its probability under the one and the other input.
    """

    loss: float
    strongest: float
    event: str
    p_low: float
    q_high: float


def clopper_pearson(
    successes: npt.ArrayLike, trials: int, error: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(low, high) bounds on a probability; each is wrong with probability at most ``error`` (Clopper, Pearson 1934)."""
    special = extra("scipy.special", "audit", "a sampled audit")
    k = np.asarray(successes, dtype=np.float64)
    low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), trials - k + 1, error), 0.0)
    high = np.where(k < trials, special.betaincinv(k + 1, np.maximum(trials - k, 1), 1 - error), 1.0)
    return low, high


def strongest_bound(samples: int, *, error: float, delta: float = 0.0) -> float:
    """The largest loss that ``samples`` held-out samples an input can show: all of one side, none of the other."""
    low, high = clopper_pearson([samples, 0], samples, error / 2)
    return _log_ratio(float(low[0]), float(high[1]), delta)


def samples_needed(loss: float, *, error: float, delta: float = 0.0) -> int:
    """How many held-out samples an input can show a given loss at all."""
    count = 16
    while strongest_bound(count, error=error, delta=delta) <= loss:
        count *= 2
        if count > 2**60:
            raise ParameterError(f"no number of samples can show a loss of {loss:.4g} at this delta")
    return count


def loss_bound(
    first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], *, error: float, delta: float = 0.0
) -> LossBound:
    """A lower bound on the loss of a pair, from scores of independent outputs of its two inputs.

    Args:
        first: (n,) scores of outputs of the first input; higher means likelier under the first.
        second: (n,) scores of outputs of the second input.
        error: the probability with which the bound may be wrong.
        delta: of (epsilon, delta).

    The first half of each chooses the event, the second half tests it.
    """
    if len(first) != len(second) or len(first) < 8:
        raise ParameterError(
            f"expected equally many scores of both inputs, at least 8, got {len(first)}, {len(second)}"
        )
    half = len(first) // 2
    tested = len(first) - half
    candidates = [
        (*_best_threshold(one[:half], other[:half], error, delta), name, one, other)
        for name, one, other in (("first", first, second), ("second", -second, -first))
    ]
    _, threshold, name, one, other = max(candidates, key=lambda each: each[0])
    counts = [int((side[half:] >= threshold).sum()) for side in (one, other)]
    low, high = clopper_pearson(counts, tested, error / 2)
    sign, shown = (">=", threshold) if name == "first" else ("<=", -threshold)
    return LossBound(
        loss=max(0.0, _log_ratio(float(low[0]), float(high[1]), delta)),
        strongest=strongest_bound(tested, error=error, delta=delta),
        event=f"score {sign} {shown:.6g}: {counts[0]:,} times against {counts[1]:,} in {tested:,} samples each",
        p_low=float(low[0]),
        q_high=float(high[1]),
    )


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
    """Draw from a mechanism at two inputs and bound its loss from below.

    Args:
        draw_first, draw_second: (count, bits) -> (count, ...) array of independent outputs for the one and the
            other input.
        samples: outputs of each input that test the bound; as many more choose the event, and as many again
            train the classifier where no score is given.
        error, delta: as in `loss_bound`.
        score: outputs -> (count,) log-likelihood ratio (higher: likelier under the first). None: learnt.
        seed: None for fresh randomness.

    Raises:
        ParameterError: the mechanism raises, returns another shape, is not random; too few samples.
    """
    samples = whole("samples", samples, least=100)
    bits = RandomBits(seed)
    draws = [_CheckedDraw(draw_first, "first"), _CheckedDraw(draw_second, "second")]
    for draw in draws:
        draw.check_randomness(bits)
    if score is None:
        score = learn_score(*(draw(samples, bits) for draw in draws))
    scores = [np.concatenate([score(draw(samples, bits)) for _ in range(2)]) for draw in draws]
    return loss_bound(*scores, error=error, delta=delta)


def _best_threshold(
    one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], error: float, delta: float
) -> tuple[float, float]:
    """(bound, t) of the event "score >= t" that looks best on these samples."""
    ordered_one, ordered_other = np.sort(one), np.sort(other)
    # finely where few samples lie above or below: tails decide
    ranks = np.geomspace(1, len(one), _THRESHOLDS // 4).astype(int)
    ranks = np.unique(np.concatenate([ranks, len(one) + 1 - ranks]))
    thresholds = np.unique(np.concatenate([ordered_one[-ranks], ordered_other[-ranks]]))
    # the event just above a value of the other side leaves that value out
    thresholds = np.unique(np.concatenate([thresholds, np.nextafter(thresholds, np.inf)]))
    low, _ = clopper_pearson(_count_above(ordered_one, thresholds), len(one), error / 2)
    _, high = clopper_pearson(_expected_above(ordered_other, thresholds), len(other), error / 2)
    with np.errstate(divide="ignore"):
        bounds = np.where(low > delta, np.log(np.maximum(low - delta, 0.0)) - np.log(high), -np.inf)
    place = int(np.argmax(bounds))
    return float(bounds[place]), _middle_of_gap(float(thresholds[place]), ordered_one, ordered_other)


def _count_above(ordered: npt.NDArray[np.float64], thresholds: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    counts: npt.NDArray[Any] = len(ordered) - np.searchsorted(ordered, thresholds)
    return counts


def _expected_above(ordered: npt.NDArray[np.float64], thresholds: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """How many of as many fresh samples to expect at or above each threshold."""
    counts = _count_above(ordered, thresholds).astype(np.float64)
    start = ordered[-_TAIL] if len(ordered) >= 4 * _TAIL else math.inf
    spread = float(np.mean(ordered[-_TAIL:] - start)) if math.isfinite(start) else 0.0
    if spread > 0.0:
        tail = _TAIL * np.exp(-np.maximum(thresholds - start, 0.0) / spread)
        counts = np.where(counts < _TAIL, np.maximum(counts, tail), counts)
    return counts


def _middle_of_gap(threshold: float, *ordered: npt.NDArray[np.float64]) -> float:
    """The same event on these samples, its threshold as far from all of them as can be: new samples fall beside."""
    places = [int(np.searchsorted(each, threshold)) for each in ordered]
    below = max((float(each[at - 1]) for each, at in zip(ordered, places, strict=True) if at > 0), default=-math.inf)
    above = min((float(each[at]) for each, at in zip(ordered, places, strict=True) if at < len(each)), default=math.inf)
    middle = below + (above - below) / 2
    return middle if math.isfinite(middle) and below < middle <= above else threshold


def _log_ratio(p_low: float, q_high: float, delta: float) -> float:
    return math.log((p_low - delta) / q_high) if p_low > delta else -math.inf


class _CheckedDraw:
    """A drawing function that is held to its contract."""

    def __init__(self, draw: Draw, name: str) -> None:
        self._draw, self._name = draw, name

    def __call__(self, count: int, bits: RandomBits) -> npt.NDArray[Any]:
        try:
            outputs = np.asarray(self._draw(count, bits))
        except Exception as error:  # noqa: BLE001 - a mechanism may raise anything
            raise ParameterError(
                f"the mechanism raised {type(error).__name__} for the {self._name} input: a mechanism must return an "
                "output for every input (an error for some inputs only is itself an infinite loss)"
            ) from None
        if outputs.ndim < 1 or len(outputs) != count:
            raise ParameterError(
                f"the mechanism returned shape {outputs.shape} for {count} draws of the {self._name} input: expected "
                f"({count}, ...)"
            )
        return outputs

    def check_randomness(self, bits: RandomBits) -> None:
        once, again = self(64, bits), self(64, bits)
        if once.shape[1:] != again.shape[1:]:
            raise ParameterError(f"the mechanism returns outputs of changing shape for the {self._name} input")
        # 128 equal *words* may be chance at a large epsilon; equal numbers, or one sequence twice, are not
        constant = once.dtype.kind in "iub" and (once == once[0]).all()
        if np.array_equal(once, again) and not constant:
            raise ParameterError(
                f"the mechanism is not random for the {self._name} input: it returned the same 64 outputs twice (a "
                "constant, or a fixed seed)"
            )


def learn_score(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Score:
    """The log-odds that a trained classifier gives for "first": logistic or boosted, whichever separates better."""
    if first.ndim == 1 and first.dtype.kind in "iu":
        return _histogram_score(first, second)
    half = len(first) // 2
    features = np.concatenate([_flat(first), _flat(second)])
    labels = np.repeat([1, 0], [len(first), len(second)])
    trained = np.concatenate([np.arange(half), len(first) + np.arange(half)])
    held = np.setdiff1d(np.arange(len(labels)), trained)
    linear = _scikit_learn("linear_model").LogisticRegression(C=10.0, max_iter=200)
    models = [
        _scikit_learn("pipeline").make_pipeline(_scikit_learn("preprocessing").StandardScaler(), linear),
        _scikit_learn("ensemble").HistGradientBoostingClassifier(max_iter=60, random_state=0),
    ]
    fitted = [model.fit(features[trained], labels[trained]) for model in models]
    log_loss = _scikit_learn("metrics").log_loss
    best = min(fitted, key=lambda model: log_loss(labels[held], model.predict_proba(features[held])[:, 1]))
    return lambda outputs: np.asarray(best.decision_function(_flat(outputs)), dtype=np.float64)


def _histogram_score(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Score:
    """For categories 0 .. k - 1: the ratio of smoothed frequencies."""
    size = int(max(first.max(), second.max())) + 2  # one more for categories never seen
    counts = [np.bincount(each, minlength=size) + 0.5 for each in (first, second)]
    ratios = np.log(counts[0]) - np.log(counts[1])
    return lambda outputs: ratios[np.minimum(outputs, size - 1)]


def _flat(outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return outputs.reshape(len(outputs), -1).astype(np.float64)


def _scikit_learn(module: str) -> Any:
    return extra(f"sklearn.{module}", "audit", "a learnt score")
