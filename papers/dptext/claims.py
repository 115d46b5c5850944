"""The paper's first claim, tested on received vectors: release membership, training membership and recovered words.

"Publishing text representation without proper anonymization will let the adversary learn the original text, infer if a
targeted user's latent textual representation is in the database or which record is associated with it." In each fold:

- **released**: is a post among those that were sent? The attacker has the post and the public encoder. The score is the
  mean over all received vectors of their likelihood given this post, relative to the likelihood given public posts;
  without noise, the similarity to the nearest one. Senders' posts are compared with tested ones.
- **trained**: is a post among those that trained the encoder? Members have a smaller loss in the task (Yeom et al.
  2018), by a model of the senders' received posts. Public posts are compared with tested ones.
- **recovered**: which words does a post have? (`dptext.attacks.bag_inversion`, trained on the senders' received posts),
  of words that occur in at most a tenth of the posts.

"Which record is associated with it" is measured by the authors in `papers.dptext.cells`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.dptext.cells import Fold, Setting, folds_of
from papers.membership import loss_membership
from papers.reports import estimate_numbers

from dptext.attacks import Membership, bag_inversion, score_membership
from dptext.attacks.base import Learner
from dptext.evaluation.utility import words_of
from dptext.intervals import mean_over_runs
from dptext.representations.additive import L2Laplace, Laplace
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPText
from dptext.representations.randomizer import Randomizer

Floats = npt.NDArray[np.float64]

_MAX_SHARE, _MIN_POSTS = 0.1, 2
_ROUNDING = 1e-5  # relative, of a float32
_IMPOSSIBLE = -1e9  # log-likelihood


def measure_claims(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    """Return the success of the three attacks, means over folds with Student's interval."""
    return over_folds(
        _attack_fold(fold, place, seed, setting) for place, fold in enumerate(folds_of(settings, seed, setting))
    )


def over_folds(rows: Any) -> dict[str, float]:
    """Return the mean of each number over folds, with its interval."""
    table = list(rows)
    numbers: dict[str, float] = {}
    for name in table[0]:
        numbers |= estimate_numbers(name, mean_over_runs([row[name] for row in table]))
    return numbers


def _attack_fold(fold: Fold, place: int, seed: int, setting: Setting) -> dict[str, float]:
    rows, sender, words = setting.rows(place), fold.sender, _informative_words(setting)
    public = sender.send(rows.take(fold.public), fold.seed + 2)
    clean, clean_public = (
        sender.clean(rows.take(part)) for part in (np.concatenate([fold.senders, fold.tested]), fold.public)
    )
    precision, recall = bag_inversion(
        fold.known,
        [words[row] for row in fold.senders],
        fold.unknown,
        [words[row] for row in fold.tested],
        top=10,
        people=rows.people[fold.tested].tolist(),
    )
    return {
        "released AUC": _release_membership(fold, clean, clean_public).auc.score.value,
        "trained AUC": _training_membership(fold, public, rows.task, seed).auc.score.value,
        "words precision": precision.score.value,
        "words precision blind": precision.baseline,
        "words recall": recall.score.value,
        "words recall blind": recall.baseline,
    }


def _release_membership(fold: Fold, clean: Floats, public: Floats) -> Membership:
    """Attack the clean vectors of senders, which are members, and of tested posts."""
    likelihood = likelihoods(fold.sender.noise, clean.shape[1])
    result = likelihood(clean, fold.known)
    if fold.sender.noise is None:
        score = result.max(axis=1)
    else:
        score = _log_mean(result - _log_mean(likelihood(public, fold.known).T))
    return score_membership(score, np.arange(len(clean)) < fold.senders.size, attack="released")


def likelihoods(noise: Randomizer | None, dimension: int) -> Callable[[Floats, Floats], Floats]:
    """Return a function of (n, d) clean and (m, d) sent vectors to (n, m) log-likelihoods, up to a common constant.

    Without noise, and for a class that was sent by randomised response, it is the negative distance.
    """
    parameters: Any = {} if noise is None else noise.channel(dimension).parameters()
    if isinstance(noise, DPText):
        return partial(_one_sided, scale=float(parameters["scale"]))
    if isinstance(noise, PrivUnit):
        return partial(_cap, height=float(parameters["cap_height"]), epsilon=noise.epsilon)
    if isinstance(noise, Laplace | L2Laplace):
        return partial(_distance, order=1 if isinstance(noise, Laplace) else 2, scale=float(parameters["scale"]))
    return partial(_distance, order=2, scale=1.0)


def _distance(clean: Floats, sent: Floats, *, order: int, scale: float) -> Floats:
    return -np.stack([np.linalg.norm(sent - vector, ord=order, axis=1) for vector in clean]) / scale


def _one_sided(clean: Floats, sent: Floats, *, scale: float) -> Floats:
    minimum = -_ROUNDING * np.abs(sent).max(initial=1.0)
    noises = (sent - vector for vector in clean)
    return np.stack(
        [np.where((noise >= minimum).all(axis=1), -noise.sum(axis=1) / scale, _IMPOSSIBLE) for noise in noises]
    )


def _cap(clean: Floats, sent: Floats, *, height: float, epsilon: float) -> Floats:
    """PrivUnit's density has two values: inside the cap around a vector, and outside."""
    directions = sent / np.linalg.norm(sent, axis=1, keepdims=True)
    return epsilon * (clean @ directions.T >= height)


def _log_mean(logs: Floats) -> Floats:
    """Return (n,) ln of the mean of exp(logs) over each row."""
    highest = logs.max(axis=1)
    return highest + np.log(np.exp(logs - highest[:, None]).mean(axis=1))


def _training_membership(fold: Fold, public: Floats, task: npt.NDArray[np.str_], seed: int) -> Membership:
    """Attack the received vectors of public posts, which are members, and of tested posts."""
    classes, codes = np.unique(task[fold.senders], return_inverse=True)
    rows = np.concatenate([fold.public, fold.tested])
    members = np.arange(len(rows)) < fold.public.size
    known = np.isin(task[rows], classes)
    model = Learner("linear", seed).fit(fold.known, codes.astype(np.int64))
    confidences = model.confidences(np.concatenate([public, fold.unknown])[known])
    return loss_membership(confidences, np.searchsorted(classes, task[rows][known]), members[known])


@lru_cache(maxsize=1)
def _informative_words(setting: Setting) -> list[list[str]]:
    """Return the words of each post that occur in at least two posts and at most a tenth of all."""
    bags = [words_of(text) for text in setting.posts.texts]
    counts = Counter(word for bag in bags for word in set(bag))
    maximum = _MAX_SHARE * len(bags)
    return [[word for word in bag if _MIN_POSTS <= counts[word] <= maximum] for bag in bags]
