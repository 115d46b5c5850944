"""Membership inference: whether a person is in a noisy sum, or a text in the training data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import AttackScore, Floats, optional
from dptext.errors import ParameterError
from dptext.intervals import Estimate, area, share
from dptext.privacy.gaussian import gaussian_power
from dptext.validation import check_float

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Upper bounds on the expected success of membership attacks on a release with Gaussian noise."""

    auc: float
    accuracy: float
    at_1_percent: float
    at_01_percent: float


def gaussian_ceiling(sigma: float, *, sensitivity: float = 1.0) -> Ceiling:
    """Return upper bounds for all membership attacks on one sum with N(0, sigma^2) on every number.

    One person changes the sum by at most ``sensitivity`` (Euclidean norm).

    >>> found = gaussian_ceiling(1.0)
    >>> print(f"{found.auc:.3f} {found.accuracy:.3f} {found.at_1_percent:.3f} {found.at_01_percent:.4f}")
    0.760 0.691 0.092 0.0183
    """
    sensitivity = check_float("sensitivity", sensitivity, above=0)
    mu, normal = sensitivity / check_float("sigma", sigma, above=0), NormalDist()
    few, fewer = (gaussian_power(mu, share) for share in (0.01, 0.001))
    return Ceiling(auc=normal.cdf(mu / 2**0.5), accuracy=normal.cdf(mu / 2), at_1_percent=few, at_01_percent=fewer)


def sum_membership(
    released: npt.ArrayLike,
    targets: Iterable[npt.ArrayLike],
    members: npt.ArrayLike,
    *,
    guess: npt.ArrayLike | None = None,
    attack: str = "membership in the sum",
) -> Membership:
    """Score people by the likelihood ratio of a noisy sum with and without them, and measure the attack.

    Args:
        released: the noisy sum, of any shape.
        targets: one array of that shape per queried person: their contribution to the sum.
        members: (n,) True for people in the sum, the ground truth.
        guess: the attacker's guess of the sum without the queried person, the same for all of them; None: 0.
        attack: the name of the attack.

    Raises:
        ParameterError: arrays of another shape, or not finite; see also `dptext.attacks.score_membership`.

    >>> people, members = np.eye(40), np.arange(40) < 20
    >>> print(sum_membership(people[members].sum(axis=0), people, members).auc)
    membership in the sum: AUC 1.000 [0.832, 1.000] against 0.500 (chance)
    """
    noisy = _finite("released", released, np.shape(released))
    if guess is not None:
        noisy = noisy - _finite("guess", guess, noisy.shape)
    scores = []
    for target in targets:
        one = _finite("targets", target, noisy.shape)
        scores.append(float(np.vdot(noisy, one)) - float(np.vdot(one, one)) / 2)  # (ratio), times sigma^2
    return score_membership(scores, members, attack=attack)


def _finite(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    array: Floats = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ParameterError(f"{name} must be finite numbers of the shape {shape}, got shape {array.shape}")
    return array


@dataclass(frozen=True, kw_only=True)
class Membership:
    """Success of a membership attack.

    Attributes:
        auc: the probability that a member gets a higher score than another text.
        accuracy: the fraction of texts that are classified correctly.
        at_1_percent: the fraction of members found at a false-positive rate of 1%.
        at_01_percent: the fraction of members found at a false-positive rate of .1%.
    """

    auc: AttackScore
    accuracy: AttackScore
    at_1_percent: AttackScore
    at_01_percent: AttackScore

    @property
    def scores(self) -> tuple[AttackScore, ...]:
        """All four scores."""
        return (self.auc, self.accuracy, self.at_1_percent, self.at_01_percent)

    def __str__(self) -> str:
        return "\n".join(map(str, self.scores))


def score_membership(scores: npt.ArrayLike, members: npt.ArrayLike, *, attack: str = "score") -> Membership:
    """Return the measures of an attack that scores each text; a higher score means a more likely member.

    The accuracy uses the best threshold, chosen on one half of the texts and applied to the other, and vice versa.

    Raises:
        ParameterError: a score that is not a number; no members, or no non-members.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ParameterError("scores must be a one-dimensional array of finite numbers")
    truth = np.asarray(members)
    if truth.dtype.kind not in "biuf" or not np.isin(truth, (0, 1)).all():
        raise ParameterError("members must contain only true and false (or 1 and 0)")
    if truth.shape != values.shape:
        raise ParameterError(f"members must have one truth value per row ({values.size:,}), got shape {truth.shape}")
    truth = truth.astype(bool)
    inside = int(truth.sum())
    if min(inside, truth.size - inside) < 2:
        raise ParameterError(
            f"members must have at least two members and two non-members, got {inside} and {truth.size - inside}"
        )
    # members and others are split alternately, so the order of the rows does not matter
    half = np.zeros(truth.size, dtype=bool)
    for side in (truth, ~truth):
        half[np.flatnonzero(side)[::2]] = True
    right = sum(
        int(((values[tested] >= _best_threshold(values[fitted], truth[fitted])) == truth[tested]).sum())
        for fitted, tested in ((half, ~half), (~half, half))
    )
    return measure_scores(attack, values, truth, share(right, truth.size), "threshold chosen on the other half")


def measure_scores(attack: str, scores: Floats, members: Mask, accuracy: Estimate, method: str) -> Membership:
    """Return all measures of valid scores, with an accuracy that was measured before."""
    inside, outside = scores[members], scores[~members]
    detail = f"{inside.size:,} members, {outside.size:,} others"
    if np.ptp(scores) == 0:  # a broken attack looks like perfect privacy
        detail += "; all texts have the same score: this attack failed, but others may succeed"
    larger = max(inside.size, outside.size) / members.size
    scored = partial(AttackScore, attack=attack, detail=detail)
    few, fewer = (
        scored(
            measure=f"members found at {100 * rate:g}% false positives",
            score=_found_at(inside, outside, rate),
            baseline=rate,
            baseline_name="the same rate",
        )
        for rate in (0.01, 0.001)
    )
    blind = "majority class" if larger > 0.5 else "chance"
    auc = replace(area(scores, members), of="rows")
    return Membership(
        auc=scored(measure="AUC", score=auc, baseline=0.5, baseline_name="chance"),
        accuracy=scored(
            measure="accuracy", score=accuracy, baseline=larger, baseline_name=blind, detail=f"{detail}; {method}"
        ),
        at_1_percent=few,
        at_01_percent=fewer,
    )


def _found_at(inside: Floats, outside: Floats, rate: float) -> Estimate:
    others = np.sort(outside)[::-1]
    binom = optional("scipy.stats").binom
    few, many = (int(entry) for entry in binom.ppf([0.0125, 0.9875], others.size, rate))
    sure = int((inside > others[few - 1]).sum()) if few else 0
    possible = int((inside > others[many]).sum()) if many < others.size else inside.size
    result = int((inside > others[int(rate * others.size)]).sum())
    low, high = (share(count, inside.size, confidence=0.975) for count in (sure, possible))
    return Estimate(result / inside.size, low.low, high.high, inside.size + outside.size, "rows")


def _best_threshold(scores: Floats, members: Mask) -> float:
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    gained = np.concatenate([[0], np.cumsum(np.where(members[order], 1, -1))])
    # a threshold must lie between different scores
    possible = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    best = int(np.argmax(np.where(possible, gained, -scores.size - 1)))
    return math.inf if best == 0 else float(ordered[best - 1])
