"""The paper's first claim, tried on what arrives: who is in the data set, who trained the encoder, what a text said.

"Publishing text representation without proper anonymization will let the adversary learn the original text, infer if a
targeted user's latent textual representation is in the database or which record is associated with it." So, in each
fold of `papers.dptext.cells`:

- **released**: whether a post is among those that were sent. The attacker has the post and the (public) encoder, and
  scores it by the mean, over all that arrived, of how likely that is given this post, in units of how likely it is
  given a public one; without noise, by how near the nearest is. Those sent (by senders) against those tested, which
  were not.
- **trained**: whether a post was among those that the encoder was trained on. Members have a smaller loss in the task
  (Yeom et al. 2018), by a model that learnt from what senders sent. The public posts against those tested.
- **recovered**: which words a post had (`dptext.attacks.bag_inversion`, learnt from what senders sent); of words that
  at most a tenth of the posts have.

"Which record is associated with it" are the authors of `papers.dptext.cells`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.dptext.cells import Arrived, Setting, arrived_in, rows_of
from papers.numbers_of import named

from dptext.attacks import Membership, bag_inversion, loss_membership, score_membership
from dptext.attacks.base import Learner
from dptext.evaluation.utility import words_of
from dptext.intervals import mean_over_runs
from dptext.representations.additive import L2Laplace, Laplace
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPText
from dptext.representations.randomizer import Randomizer

Floats = npt.NDArray[np.float64]

TOP = 10
_MOST_COMMON, _LEAST = 0.1, 2
_ROUNDED = 1e-5  # of a float32, relatively
_NEVER = -1e9  # log-likelihood of what cannot be


def first_claim(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    """Numbers of one cell; a mean over folds each, with Student's interval."""
    result: dict[str, list[float]] = {}
    for place in range(setting.folds):
        fold = arrived_in(place, settings["method"], settings["epsilon"], settings["alpha"], seed, setting)
        for name, value in _of_fold(fold, place, seed, setting).items():
            result.setdefault(name, []).append(value)
    numbers: dict[str, float] = {}
    for name, values in result.items():
        numbers |= named(name, mean_over_runs(values))
    return numbers


def _of_fold(fold: Arrived, place: int, seed: int, setting: Setting) -> dict[str, float]:
    everything = rows_of(place, setting)
    public = fold.sender.send(everything.at(fold.public), fold.seed + 2)
    requested = np.concatenate([fold.senders, fold.tested])
    released = _released(fold, *(fold.sender.clean(everything.at(rows)) for rows in (requested, fold.public)))
    trained = _trained(fold, public, everything.task, seed)
    bags = _bags(setting)
    precision, recall = bag_inversion(
        fold.known,
        [bags[row] for row in fold.senders],
        fold.asked,
        [bags[row] for row in fold.tested],
        top=TOP,
        people=everything.people[fold.tested].tolist(),
    )
    return {
        "released AUC": released.auc.score.value,
        "trained AUC": trained.auc.score.value,
        "words precision": precision.score.value,
        "words precision blind": precision.baseline,
        "words recall": recall.score.value,
        "words recall blind": recall.baseline,
    }


def _released(fold: Arrived, clean: Floats, public: Floats) -> Membership:
    """Of posts of senders and, after them, of those tested: is it among what senders sent?"""
    likelihood = likelihoods(fold.sender.noise, clean.shape[1])
    result = likelihood(clean, fold.known)
    if fold.sender.noise is None:
        score = result.max(axis=1)
    else:
        score = _summed(result - _summed(likelihood(public, fold.known).T))
    return score_membership(score, np.arange(len(clean)) < fold.senders.size, attack="released")


def likelihoods(noise: Randomizer | None, dimension: int) -> Callable[[Floats, Floats], Floats]:
    """(n, d) clean and (m, d) sent vectors to (n, m) log-likelihoods, up to what is the same for all.

    Of noise that is not known here (and of a class, sent by randomised response), how near they are.
    """
    if isinstance(noise, DPText):
        return partial(_one_sided, scale=float(noise.channel(dimension).parameters()["scale"]))  # type: ignore[arg-type]
    if isinstance(noise, PrivUnit):
        text = noise.channel(dimension).parameters()
        return partial(_in_cap, height=float(text["cap_height"]), epsilon=noise.epsilon)  # type: ignore[arg-type]
    if isinstance(noise, Laplace | L2Laplace):
        scale = float(noise.channel(dimension).parameters()["scale"])  # type: ignore[arg-type]
        return partial(_far, order=1 if isinstance(noise, Laplace) else 2, scale=scale)
    return partial(_far, order=2, scale=1.0)


def _far(clean: Floats, sent: Floats, *, order: int, scale: float) -> Floats:
    return -np.stack([np.linalg.norm(sent - entry, ord=order, axis=1) for entry in clean]) / scale


def _one_sided(clean: Floats, sent: Floats, *, scale: float) -> Floats:
    minimum = _ROUNDED * np.abs(sent).max(initial=1.0)
    results = [
        np.where((sent - entry >= -minimum).all(axis=1), -(sent - entry).sum(axis=1) / scale, _NEVER) for entry in clean
    ]
    return np.stack(results)


def _in_cap(clean: Floats, sent: Floats, *, height: float, epsilon: float) -> Floats:
    """Two heights: within the cap of a vector, and outside of it."""
    directions = sent / np.linalg.norm(sent, axis=1, keepdims=True)
    return epsilon * (clean @ directions.T >= height)


def _summed(found: Floats) -> Floats:
    """(n,) ln of the mean of e^found over each row."""
    highest = found.max(axis=1)
    return highest + np.log(np.exp(found - highest[:, None]).mean(axis=1))


def _trained(fold: Arrived, public: Floats, task: npt.NDArray[np.str_], seed: int) -> Membership:
    """Of posts of the public and of those tested: was the encoder trained on it?"""
    classes, codes = np.unique(task[fold.senders], return_inverse=True)
    requested = np.concatenate([public, fold.asked])
    rows = np.concatenate([fold.public, fold.tested])
    members = np.arange(len(rows)) < fold.public.size
    known = np.isin(task[rows], classes)
    text = Learner("linear", seed).fit(fold.known, codes.astype(np.int64)).confidences(requested[known])
    return loss_membership(text, np.searchsorted(classes, task[rows][known]), members[known])


@lru_cache(maxsize=1)
def _bags(setting: Setting) -> list[list[str]]:
    """The words of each post that say something of it: of two posts or more, of a tenth of all at most."""
    bags = [words_of(text) for text in setting.posts.texts]
    counts = Counter(word for bag in bags for word in set(bag))
    maximum = _MOST_COMMON * len(bags)
    return [[word for word in bag if _LEAST <= counts[word] <= maximum] for bag in bags]
