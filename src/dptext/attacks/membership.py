"""Membership: was a text in the training data? Likelihood ratios where the mechanism is known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import AttackScore, Floats, Ids, optional, quiet_fit
from dptext.errors import ParameterError
from dptext.intervals import Estimate, area, share
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_float

Mask: TypeAlias = npt.NDArray[np.bool_]
_TINY = float(np.finfo(np.float32).tiny)  # a confidence so near to 0 or 1 counts as this one: log-odds of 87
_FEW = 64  # shadows in and out from which on each text has a variance of its own (Carlini et al., section VI)


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The success in expectation that no membership attack on a release with Gaussian noise exceeds."""

    auc: float
    accuracy: float
    at_1_percent: float
    at_01_percent: float


def gaussian_ceiling(sigma: float, *, sensitivity: float = 1.0) -> Ceiling:
    """Return the limit of all membership attacks on one sum with N(0, sigma^2) on every number.

    The sum moves by at most ``sensitivity`` (in Euclidean length) with a person.

    >>> found = gaussian_ceiling(1.0)
    >>> print(f"{found.auc:.3f} {found.accuracy:.3f} {found.at_1_percent:.3f} {found.at_01_percent:.4f}")
    0.760 0.691 0.092 0.0183
    """
    sensitivity = check_float("sensitivity", sensitivity, above=0)
    mu, normal = sensitivity / check_float("sigma", sigma, above=0), NormalDist()
    few, fewer = (normal.cdf(normal.inv_cdf(share) + mu) for share in (0.01, 0.001))
    return Ceiling(auc=normal.cdf(mu / 2**0.5), accuracy=normal.cdf(mu / 2), at_1_percent=few, at_01_percent=fewer)


def sum_membership(
    released: npt.ArrayLike,
    targets: Iterable[npt.ArrayLike],
    members: npt.ArrayLike,
    *,
    guess: npt.ArrayLike | None = None,
    attack: str = "membership in the sum",
) -> Membership:
    """Score people by the likelihood ratio of a noisy sum with and without them, and measure how members are found.

    Args:
        released: the noisy sum, of any shape.
        targets: one array of that shape per queried person: their contribution to the sum.
        members: (n,) True for people in the sum: the truth that the attack is measured against.
        guess: the attacker's guess of the rest of the sum, the same for all queried people; None: 0.
        attack: the name of the attack.

    Raises:
        ParameterError: arrays of another shape, or not finite; as `dptext.attacks.score_membership`.

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
        accuracy: the share of texts that are classified correctly.
        at_1_percent: the share of the members found at a false-positive rate of 1%.
        at_01_percent: the same for .1%.
    """

    auc: AttackScore
    accuracy: AttackScore
    at_1_percent: AttackScore
    at_01_percent: AttackScore

    @property
    def scores(self) -> tuple[AttackScore, ...]:
        """All four."""
        return (self.auc, self.accuracy, self.at_1_percent, self.at_01_percent)

    def __str__(self) -> str:
        return "\n".join(map(str, self.scores))


def score_membership(scores: npt.ArrayLike, members: npt.ArrayLike, *, attack: str = "score") -> Membership:
    """The measures of any attack that gives each text a score: higher means rather a member.

    The accuracy uses the best threshold, chosen on one half of the texts and applied to the other, both ways.

    Raises:
        ParameterError: a score that is no number; no members, or no non-members.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ParameterError("scores must be a one-dimensional array of finite numbers")
    truth = _members("members", members, values.size)
    # members and others alternate between the halves, in any order of the rows
    half = np.zeros(truth.size, dtype=bool)
    for side in (truth, ~truth):
        half[np.flatnonzero(side)[::2]] = True
    right = sum(
        int(((values[tested] >= _best_threshold(values[fitted], truth[fitted])) == truth[tested]).sum())
        for fitted, tested in ((half, ~half), (~half, half))
    )
    return _measured(attack, values, truth, share(right, truth.size), "threshold chosen on the other half")


def _measured(attack: str, scores: Floats, members: Mask, accuracy: Estimate, method: str) -> Membership:
    """All measures of checked scores, beside an accuracy that was measured already."""
    inside, outside = scores[members], scores[~members]
    detail = f"{inside.size:,} members, {outside.size:,} others"
    if np.ptp(scores) == 0:  # a broken attack looks like perfect privacy
        detail += "; all texts have the same score: this attacker saw nothing, which says nothing about others"
    larger = max(inside.size, outside.size) / members.size
    scored = partial(AttackScore, attack=attack, detail=detail)
    few, fewer = (
        scored(
            measure=f"members found at {100 * rate:g}% false positives",
            score=_found_at(inside, outside, rate),
            baseline=rate,
            baseline_name="as many as of the others",
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
    sure = int((inside >= others[few - 1]).sum()) if few else 0
    possible = int((inside > others[many]).sum()) if many < others.size else inside.size
    result = int((inside > others[int(rate * others.size)]).sum())
    low, high = (share(count, inside.size, confidence=0.975) for count in (sure, possible))
    return Estimate(result / inside.size, low.low, high.high, inside.size + outside.size, "rows")


def _best_threshold(scores: Floats, members: Mask) -> float:
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    gained = np.concatenate([[0], np.cumsum(np.where(members[order], 1, -1))])
    # a threshold lies between different scores only
    possible = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    best = int(np.argmax(np.where(possible, gained, -scores.size - 1)))
    return math.inf if best == 0 else float(ordered[best - 1])


def _members(name: str, members: npt.ArrayLike, rows: int) -> Mask:
    values = _truths(name, members)
    if values.shape != (rows,):
        raise ParameterError(f"{name} must have one truth value for each of {rows:,} rows, got shape {values.shape}")
    inside = int(values.sum())
    if min(inside, rows - inside) < 2:
        raise ParameterError(
            f"{name} must have at least two members and two non-members, got {inside} and {rows - inside}"
        )
    return values


def _truths(name: str, values: npt.ArrayLike) -> Mask:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise ParameterError(f"{name} must contain only true and false (or 1 and 0)")
    return array.astype(bool)


def shadow_membership(
    shadow_outputs: npt.ArrayLike,
    shadow_members: npt.ArrayLike,
    outputs: npt.ArrayLike,
    members: npt.ArrayLike,
    *,
    shadow_labels: npt.ArrayLike | None = None,
    labels: npt.ArrayLike | None = None,
    seed: int | None = None,
) -> Membership:
    """Learn from a shadow model to recognise the outputs for members, and apply it to the target's outputs.

    The attack model is a network with two hidden layers of 64 and ReLU, Adam, batches of 64, 20 epochs (paper
    2107.07928, appendix C). It sees the logarithms of the probabilities, and the label where labels are given.

    Args:
        shadow_outputs: (m, classes) the shadow's probabilities for m texts.
        shadow_members: (m,) True if the shadow was trained on it.
        outputs: (n, classes) the target's probabilities for n texts.
        members: (n,) True if the target was trained on it: the truth that the attack is measured against.
        shadow_labels: (m,) the true classes 0 .. classes - 1, together with ``labels``; None: the attacker has none.
        labels: (n,) the true classes.
        seed: of the attack model.

    Raises:
        ParameterError: an argument of another shape, without numbers, without members or without non-members.
        MissingExtraError: scikit-learn is not installed.
    """
    known, requested = _log_probabilities("shadow_outputs", shadow_outputs), _log_probabilities("outputs", outputs)
    inside = _members("shadow_members", shadow_members, len(known))
    truth = _members("members", members, len(requested))
    if known.shape[1] != requested.shape[1]:
        raise ParameterError(
            f"shadow_outputs and outputs must have the same number of classes, got {known.shape[1]} and "
            f"{requested.shape[1]}"
        )
    if shadow_labels is not None and labels is not None:
        classes = np.eye(known.shape[1])
        known = np.hstack([known, classes[_labels("shadow_labels", shadow_labels, *known.shape)]])
        requested = np.hstack([requested, classes[_labels("labels", labels, *requested.shape)]])
    elif shadow_labels is not None or labels is not None:
        raise ParameterError("shadow_labels and labels must be passed together")
    network = optional("sklearn.neural_network").MLPClassifier(
        hidden_layer_sizes=(64, 64),
        batch_size=min(64, len(known)),
        max_iter=20,
        random_state=int(RandomBits(seed).integers(1)[0] >> np.uint64(32)),
    )
    scaler = optional("sklearn.preprocessing").StandardScaler()
    model = quiet_fit(optional("sklearn.pipeline").make_pipeline(scaler, network), known, inside)
    result: Floats = model.predict_proba(requested)[:, 1]
    right = int(((result >= 0.5) == truth).sum())
    return _measured("shadow model", result, truth, share(right, truth.size), "its own threshold, learnt on the shadow")


def loss_membership(outputs: npt.ArrayLike, labels: npt.ArrayLike, members: npt.ArrayLike) -> Membership:
    """Take texts with a small loss for members (Yeom et al. 2018).

    Args:
        outputs: (n, classes) the target's probabilities.
        labels: (n,) true classes 0 .. classes - 1.
        members: (n,) True if the target was trained on it.

    Raises:
        ParameterError: as in `shadow_membership`.

    >>> members = [True] * 50 + [False] * 50
    >>> sure, unsure = [[0.99, 0.01]] * 50, [[0.6, 0.4]] * 50
    >>> print(loss_membership(sure + unsure, [0] * 100, members).auc)
    loss: AUC 1.000 [0.929, 1.000] against 0.500 (chance)
    """
    return score_membership(_confidence("outputs", outputs, labels), members, attack="loss")


def likelihood_ratio_membership(
    shadow_outputs: npt.ArrayLike,
    shadow_members: npt.ArrayLike,
    outputs: npt.ArrayLike,
    labels: npt.ArrayLike,
    members: npt.ArrayLike,
    *,
    online: bool = True,
) -> Membership:
    """LiRA: compare the likelihoods of the target's confidence with the text in and out of training (Carlini 2022).

    Confidences are scaled to log-odds, which are about normal. Online, both normals are fitted to shadows; offline only
    the one for texts that were out, and the score is how far above it the target's confidence lies. With fewer than 64
    shadows on a side one variance serves all texts.

    Args:
        shadow_outputs: (shadows, n, classes) the probabilities of each shadow for the n texts.
        shadow_members: (shadows, n) True if the shadow was trained on the text (see `random_halves`).
        outputs: (n, classes) the target's probabilities.
        labels: (n,) true classes 0 .. classes - 1.
        members: (n,) True if the target was trained on it.
        online: use the shadows that were trained on a text, too.

    Raises:
        ParameterError: as in `shadow_membership`; a text that fewer than two shadows left out (online: or were
            trained on).
    """
    requested = _confidence("outputs", outputs, labels)
    shadows, inside = np.asarray(shadow_outputs, dtype=np.float64), _truths("shadow_members", shadow_members)
    if shadows.ndim != 3 or shadows.shape[1] != requested.size or inside.shape != shadows.shape[:2]:
        raise ParameterError(
            f"shadow_outputs must be (shadows, {requested.size:,}, classes) and shadow_members (shadows, "
            f"{requested.size:,}), got shapes {shadows.shape} and {inside.shape}"
        )
    for name, mask in (("left out", ~inside), ("were trained on", inside))[: 2 if online else 1]:
        fewest = int(mask.sum(axis=0).min())
        if fewest < 2:
            raise ParameterError(f"shadow_members: each text needs two shadow models that {name} it, got {fewest}")
    of_shadows = np.stack([_confidence("shadow_outputs", shadow, labels) for shadow in shadows])
    middle_out, variance_out = _normal(of_shadows, ~inside)
    off_out = (requested - middle_out) / np.sqrt(variance_out)
    if not online:
        return score_membership(off_out, members, attack="likelihood ratio (offline)")
    middle_in, variance_in = _normal(of_shadows, inside)
    off_in = (requested - middle_in) / np.sqrt(variance_in)
    # ln of N(x; in) / N(x; out)
    ratio = (off_out**2 - off_in**2 + np.log(variance_out) - np.log(variance_in)) / 2
    return score_membership(ratio, members, attack="likelihood ratio (online)")


def random_halves(rows: int, shadows: int, *, seed: int | None = None) -> Mask:
    """(shadows, rows) which rows each shadow is trained on, so that each row is in exactly half of the shadows.

    Raises:
        ParameterError: no rows, or an odd number of shadows.

    >>> random_halves(10, 4, seed=1).sum(axis=0).tolist()
    [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """
    if rows < 1 or shadows < 2 or shadows % 2:
        raise ParameterError(f"expected at least one row and an even number of shadows, got {rows} and {shadows}")
    ranks = np.argsort(RandomBits(seed).integers(rows * shadows).reshape(shadows, rows), axis=0)
    halves: Mask = np.empty((shadows, rows), dtype=bool)
    np.put_along_axis(halves, ranks, (np.arange(shadows) % 2 == 0)[:, None], axis=0)
    return halves


def _normal(values: Floats, mask: Mask) -> tuple[Floats, Floats]:
    """(n,) mean and variance over the shadows of the mask; one variance for all where shadows are few."""
    counts = mask.sum(axis=0)
    middle = np.where(mask, values, 0.0).sum(axis=0) / counts
    squares = np.where(mask, (values - middle) ** 2, 0.0).sum(axis=0)
    if counts.min() >= _FEW:
        variance = squares / (counts - 1)
    else:
        variance = np.full(counts.size, squares.sum() / (counts - 1).sum())
    return middle, np.maximum(variance, _TINY)


def _log_probabilities(name: str, outputs: npt.ArrayLike) -> Floats:
    values = np.asarray(outputs, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 2 or not len(values):
        raise ParameterError(f"{name} must be (rows, classes) with at least two classes, got shape {values.shape}")
    if not ((values >= 0).all() and (np.abs(values.sum(axis=1) - 1) <= 1e-3).all()):  # a NaN fails both
        raise ParameterError(f"each row of {name} must be probabilities that sum to 1")
    return np.asarray(np.log(np.maximum(values, _TINY)), dtype=np.float64)


def _confidence(name: str, outputs: npt.ArrayLike, labels: npt.ArrayLike) -> Floats:
    """(n,) ln(p / (1 - p)) of the true class; 1 - p is summed from the others, so it keeps its digits."""
    logs = _log_probabilities(name, outputs)
    of_label = _labels("labels", labels, *logs.shape)
    rows = np.arange(len(logs))
    true = logs[rows, of_label]
    others = np.exp(logs)
    others[rows, of_label] = 0.0
    return np.asarray(true - np.log(np.maximum(others.sum(axis=1), _TINY)), dtype=np.float64)


def _labels(name: str, labels: npt.ArrayLike, rows: int, classes: int) -> Ids:
    values = np.asarray(labels)
    if values.shape != (rows,) or values.dtype.kind not in "iub" or values.min() < 0 or values.max() >= classes:
        raise ParameterError(f"{name} must have a class from 0 to {classes - 1} for each of {rows:,} rows")
    return values.astype(np.int64)
