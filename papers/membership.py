"""Membership attacks on classifiers that the adversary queries: shadow models, losses and likelihood ratios (LiRA).

They see the (rows, classes) probabilities with which a model answers; ``members`` are the texts of its training data.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import Floats, Ids, optional, quiet_fit
from dptext.attacks.membership import Mask, Membership, measure_scores, score_membership
from dptext.intervals import share
from dptext.privacy.randomness import RandomBits

_TINY = float(np.finfo(np.float32).tiny)  # a confidence so near to 0 or 1 counts as this one: log-odds of 87
_FEW = 64  # shadows in and out from which on each text has a variance of its own (Carlini et al., section VI)


def shadow_membership(
    shadow_outputs: Floats,
    shadow_members: Mask,
    outputs: Floats,
    members: Mask,
    *,
    shadow_labels: Ids | None = None,
    labels: Ids | None = None,
    seed: int | None = None,
) -> Membership:
    """Learn from a shadow model to recognise the outputs for members, and apply it to the target's outputs.

    The attack model is a network with two hidden layers of 64 and ReLU, Adam, batches of 64, 20 epochs (paper
    2107.07928, appendix C). It sees the logarithms of the probabilities, and the labels if both are given.
    """
    known, requested = _logs(shadow_outputs), _logs(outputs)
    if shadow_labels is not None and labels is not None:
        classes = np.eye(known.shape[1])
        known, requested = np.hstack([known, classes[shadow_labels]]), np.hstack([requested, classes[labels]])
    network = optional("sklearn.neural_network").MLPClassifier(
        hidden_layer_sizes=(64, 64),
        batch_size=min(64, len(known)),
        max_iter=20,
        random_state=int(RandomBits(seed).integers(1)[0] >> np.uint64(32)),
    )
    scaler = optional("sklearn.preprocessing").StandardScaler()
    model = quiet_fit(optional("sklearn.pipeline").make_pipeline(scaler, network), known, shadow_members)
    result: Floats = model.predict_proba(requested)[:, 1]
    accuracy = share(int(((result >= 0.5) == members).sum()), members.size)
    return measure_scores("shadow model", result, members, accuracy, "its own threshold, learnt on the shadow")


def loss_membership(outputs: Floats, labels: Ids, members: Mask) -> Membership:
    """Take texts with a small loss for members (Yeom et al. 2018)."""
    return score_membership(_confidence(outputs, labels), members, attack="loss")


def likelihood_ratio_membership(
    shadow_outputs: Floats, shadow_members: Mask, outputs: Floats, labels: Ids, members: Mask, *, online: bool = True
) -> Membership:
    """LiRA: compare the likelihoods of the target's confidence with the text in and out of training (Carlini 2022).

    Confidences are scaled to log-odds, which are about normal. Online, both normals are fitted to shadows; offline only
    the one for texts that were out, and the score is how far above it the target's confidence lies. With fewer than 64
    shadows on a side one variance serves all texts.

    Shapes: (shadows, n, classes) and (shadows, n) of the shadows, (n, classes) of the target.
    """
    requested = _confidence(outputs, labels)
    of_shadows = np.stack([_confidence(shadow, labels) for shadow in shadow_outputs])
    middle_out, variance_out = _normal(of_shadows, ~shadow_members)
    off_out = (requested - middle_out) / np.sqrt(variance_out)
    if not online:
        return score_membership(off_out, members, attack="likelihood ratio (offline)")
    middle_in, variance_in = _normal(of_shadows, shadow_members)
    off_in = (requested - middle_in) / np.sqrt(variance_in)
    # ln of N(x; in) / N(x; out)
    ratio = (off_out**2 - off_in**2 + np.log(variance_out) - np.log(variance_in)) / 2
    return score_membership(ratio, members, attack="likelihood ratio (online)")


def random_halves(rows: int, shadows: int, *, seed: int | None = None) -> Mask:
    """(shadows, rows) which rows each shadow is trained on, so that each row is in exactly half of the shadows.

    >>> random_halves(10, 4, seed=1).sum(axis=0).tolist()
    [2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """
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


def _logs(outputs: npt.ArrayLike) -> Floats:
    return np.log(np.maximum(np.asarray(outputs, dtype=np.float64), _TINY))


def _confidence(outputs: Floats, labels: Ids) -> Floats:
    """(n,) ln(p / (1 - p)) of the true class; 1 - p is summed from the others, so it keeps its digits."""
    logs, rows = _logs(outputs), np.arange(len(outputs))
    others = np.exp(logs)
    others[rows, labels] = 0.0
    confidence: Floats = logs[rows, labels] - np.log(np.maximum(others.sum(axis=1), _TINY))
    return confidence
