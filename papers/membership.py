"""Membership attacks on classifiers that the adversary queries: shadow models, losses and likelihood ratios (LiRA).

They see the probabilities that a model answers with, and measure how members of its training data are found.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.attacks.base import Floats, Ids, optional, quiet_fit
from dptext.attacks.membership import Mask, Membership, check_members, check_truths, measure_scores, score_membership
from dptext.errors import ParameterError
from dptext.intervals import share
from dptext.privacy.randomness import RandomBits

_TINY = float(np.finfo(np.float32).tiny)  # a confidence so near to 0 or 1 counts as this one: log-odds of 87
_FEW = 64  # shadows in and out from which on each text has a variance of its own (Carlini et al., section VI)


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
    inside = check_members("shadow_members", shadow_members, len(known))
    truth = check_members("members", members, len(requested))
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
    return measure_scores(
        "shadow model", result, truth, share(right, truth.size), "its own threshold, learnt on the shadow"
    )


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
    shadows, inside = np.asarray(shadow_outputs, dtype=np.float64), check_truths("shadow_members", shadow_members)
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
