"""Attribute inference: what private output still says about the person who wrote it.

The attacker holds private output of some people and knows their attribute (age, gender, trade); he trains on these and
names the attribute of others. He is trained afresh on *private* rows, so he has adapted to the noise.

    empirical privacy = 1 - accuracy                          (Coavoux et al. 2018; Lyu, He and Li 2020)

is the number that papers print. It flatters: where 80 per cent of the people are of one kind, an attacker who sees
nothing at all leaves an empirical privacy of 0.2. So every score stands beside its baseline.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.given import Rows, as_codes, as_people, learning, random_state
from dptext.attacks.learners import ATTACKERS, NAMES, Attacker, Learner, checked_attackers, prepared
from dptext.attacks.score import AttackScore
from dptext.errors import ParameterError
from dptext.estimates import CONFIDENCE, share_over_people
from dptext.privacy.randomness import RandomBits

__all__ = ["attribute_inference"]

Ids: TypeAlias = npt.NDArray[np.int64]


def attribute_inference(
    features: Rows,
    labels: Iterable[Hashable],
    *,
    people: Iterable[Hashable] | None = None,
    attackers: Sequence[Attacker] | Attacker = ATTACKERS,
    folds: int = 5,
    resamples: int = 1000,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> list[AttackScore]:
    """Train attackers on private rows whose attribute is known, and let them name that of other people's rows.

    Each row is judged once, by an attacker who saw no row of the same person. Intervals come from a bootstrap over
    people with the attackers as they are: they do not hold what another training set would have changed.

    Baselines. Accuracy: the majority class, of the training rows or of all, whichever is right more often (with few
    people a fold may lack what the others have most of, and the first alone would flatter the attacker). Macro-F1:
    guessing blindly with the frequencies of the k classes, which gives 1 / k, whatever these are: with q_c the share of
    guesses for class c and p_c its frequency, its F1 is 2 p_c q_c / (p_c + q_c) up to chance, and the sum is largest at
    q = p. (Naming the majority alone gives less, and would make an attacker who guesses look clever.)

    Args:
        features: (n, d) private vectors, dense or sparse; or n private texts, or n bags of words.
        labels: (n,) the attribute of each row, at least two kinds.
        people: (n,) whose row each is; None: everybody has one.
        attackers: ``"linear"``, ``"mlp"``, ``"boosting"``.
        folds: into how many parts the people are cut.
        resamples: of the bootstrap.
        confidence: of the intervals. On output that says nothing, `AttackScore.succeeded` is a false alarm with a
            probability of about (1 - confidence) / 2 for each score, 2.5 per cent unless another level is asked for.
        seed: for repeatable folds, training and intervals.

    Returns:
        For each attacker his accuracy and his macro-F1.

    Raises:
        ParameterError: one kind of label only, a kind that fewer people have than there are folds, rows without
            label or person, NaN; the argument is named.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> rows = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]]
    >>> print(attribute_inference(rows, list("aaaabbbb"), attackers="linear", folds=2, seed=1)[0])
    attribute inference (linear): accuracy 1.000 [0.631, 1.000] against 0.500 (majority class)
    """
    names = checked_attackers(attackers)
    rows = prepared("features", features)
    codes, kinds = as_codes("labels", labels, rows.shape[0])
    whose = as_people(people, rows.shape[0])
    bits = RandomBits(seed)
    parts = list(_parts(codes, kinds, whose, folds, random_state(bits)))
    majority = np.empty_like(codes)
    answers = {name: np.empty_like(codes) for name in names}
    for trained, held in parts:
        majority[held] = np.bincount(codes[trained]).argmax()
        for name in names:
            answers[name][held] = (
                Learner(name, random_state(bits)).fit(rows[trained], codes[trained]).predict(rows[held])
            )
    # the majority of the training rows may not be that of the people judged: a blind guess is at least as good as one
    # answer for everybody
    blind = max(float((majority == codes).mean()), float(np.bincount(codes).max() / codes.size))
    interval: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": random_state(bits)}
    scores = []
    for name in names:
        named = answers[name]
        accuracy = share_over_people(partial(_accuracy, codes, named), whose, **interval)
        f1 = share_over_people(partial(_macro_f1, codes, named, kinds), whose, **interval)
        said = f"empirical privacy, 1 - accuracy: {1 - accuracy.value:.3f}; without looking {1 - blind:.3f}"
        attack = f"attribute inference ({NAMES[name]})"
        scores += [
            AttackScore(
                attack=attack,
                measure="accuracy",
                score=accuracy,
                baseline=blind,
                baseline_name="majority class",
                detail=said,
            ),
            AttackScore(
                attack=attack,
                measure="macro-F1",
                score=f1,
                baseline=1 / kinds,
                baseline_name="guessing with the frequencies of the classes",
                detail=f"{kinds} classes, each counts alike",
            ),
        ]
    return scores


def _parts(codes: Ids, kinds: int, whose: Ids, folds: int, seed: int) -> Iterator[tuple[Ids, Ids]]:
    """(rows to train on, rows to judge), no person in both."""
    if kinds < 2:
        raise ParameterError(f"labels must be of at least two kinds, got {kinds}: there is nothing to tell apart")
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise ParameterError(f"folds must be an integer of at least 2, got {folds!r}")
    people = int(whose.max()) + 1
    rarest = int(np.bincount(np.unique(codes * people + whose) // people, minlength=kinds).min())
    if rarest < folds:
        raise ParameterError(
            f"labels: the rarest of {kinds} kinds comes from {rarest} people, fewer than {folds} folds: join it with "
            "another, leave it out, or use fewer folds"
        )
    selection = learning("sklearn.model_selection")
    if people == len(codes):
        yield from selection.StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes)
        return
    cut = selection.StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for trained, held in cut.split(codes, codes, whose):
        if len(np.unique(codes[trained])) < 2:
            raise ParameterError("people: too few of them have the other kinds of labels to train on: use fewer folds")
        yield trained, held


def _accuracy(codes: Ids, named: Ids, at: Ids) -> float:
    return float((codes[at] == named[at]).mean())


def _macro_f1(codes: Ids, named: Ids, kinds: int, at: Ids) -> float:
    """The mean of F1 over the classes that occur in these rows."""
    truth, answer = codes[at], named[at]
    occurs = np.bincount(truth, minlength=kinds)
    hits = np.bincount(truth[truth == answer], minlength=kinds)
    f1 = 2 * hits / np.maximum(occurs + np.bincount(answer, minlength=kinds), 1)
    return float(f1[occurs > 0].mean())
