"""Attribute inference: predict an attribute of the author from private output."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from dptext.attacks.base import (
    ATTACKERS,
    NAMES,
    Attacker,
    AttackScore,
    Floats,
    Ids,
    Learner,
    Rows,
    as_codes,
    as_features,
    as_people,
    optional,
    random_state,
)
from dptext.errors import ParameterError
from dptext.intervals import CONFIDENCE, area, area_of_classes, macro_f1, mean_of_people
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_int

_BOTH_WAYS = 2.0  # any two people of two folds: each is in the training data of the other


def attribute_inference(
    features: Rows,
    labels: Iterable[Hashable],
    *,
    people: Iterable[Hashable] | None = None,
    attackers: Sequence[Attacker] | Attacker = ATTACKERS,
    folds: int = 5,
    seed: int | None = None,
) -> list[AttackScore]:
    """Train attackers on private rows with a known attribute, and predict the attribute for rows of other people.

    Each row is tested once, by an attacker without training rows of the same person. Intervals are over people, with
    twice the variance of independent people, because everybody is in both training and test data (simulated: 1.9).

    Classes have equal weight in training. Accuracy predicts the likeliest class under the observed class frequencies,
    macro-F1 under equal frequencies. If nine of ten people have one class, no attack may beat a constant answer in
    accuracy and still separate the classes: the area under the curve (AUC) measures this, the probability that a
    person of a class scores higher for it than a person of another class.

    Baselines. Accuracy: the majority class, of the training rows or of all rows, the more accurate one. Macro-F1: the
    best blind guess, with the frequencies of the k classes, which gives 1 / k for any frequencies. AUC: one half.

    Args:
        features: (n, d) private vectors; or n private texts, or n bags of words.
        labels: (n,) the attribute of each row, at least two kinds.
        people: (n,) the person of each row; None: every row is of another person.
        attackers: ``"linear"``, ``"mlp"``, ``"boosting"``.
        folds: number of parts of the people, each tested with attackers trained on the other parts.
        seed: makes folds and training repeatable.

    Returns:
        Accuracy, macro-F1 and AUC per attacker. With more than two classes, AUC is one class against the rest: the
        mean, and the best class with an interval that allows for the choice. On uninformative output,
        `AttackScore.succeeded` is a false alarm with a probability of about 2.5% per score.

    Raises:
        ParameterError: only one class, a class with fewer people than folds, rows without label or person, NaN; the
            message names the argument.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> rows = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]]
    >>> print(attribute_inference(rows, list("aaaabbbb"), attackers="linear", folds=2, seed=1)[0])
    attribute inference (linear): accuracy 1.000 [0.631, 1.000] against 0.500 (majority class)
    """
    names: tuple[Attacker, ...] = (attackers,) if isinstance(attackers, str) else tuple(attackers)
    if not names or any(name not in ATTACKERS for name in names):
        raise ParameterError(f"attackers must be a non-empty subset of {', '.join(ATTACKERS)}")
    rows = as_features("features", features)
    codes, kinds = as_codes("labels", labels, rows.shape[0])
    owners = as_people(people, rows.shape[0])
    bits = RandomBits(seed)
    parts = list(_parts(codes, kinds, owners, folds, random_state(bits)))
    majority = np.empty_like(codes)
    likeliest, balanced = ({name: np.empty_like(codes) for name in names} for _ in range(2))
    chances = {name: np.zeros((codes.size, kinds)) for name in names}  # for equally frequent classes
    within = np.empty_like(codes)
    for place, (trained, held_out) in enumerate(parts):
        within[held_out] = place
        majority[held_out] = np.bincount(codes[trained]).argmax()
        for name in names:
            model = Learner(name, random_state(bits)).fit(rows[trained], codes[trained])
            seen, similar = np.unique(codes[trained]), model.confidences(rows[held_out], balanced=True)
            likeliest[name][held_out] = model.predict(rows[held_out])
            balanced[name][held_out] = seen[similar.argmax(axis=1)]
            chances[name][np.ix_(held_out, seen)] = similar
    # the majority of the training rows may differ from the majority of the test rows: the baseline is at least as good
    # as a constant answer
    blind = max(float((majority == codes).mean()), float(np.bincount(codes).max() / codes.size))
    scores = []
    for name in names:
        accuracy = mean_of_people(likeliest[name] == codes, owners, design_effect=_BOTH_WAYS)
        scored = partial(AttackScore, attack=f"attribute inference ({NAMES[name]})")
        scores += [
            scored(
                measure="accuracy",
                score=accuracy,
                baseline=blind,
                baseline_name="majority class",
                detail=f"empirical privacy, 1 - accuracy: {1 - accuracy.value:.3f}; baseline {1 - blind:.3f}",
            ),
            scored(
                measure="macro-F1",
                score=macro_f1(codes, balanced[name], owners, design_effect=_BOTH_WAYS),
                baseline=1 / kinds,
                baseline_name="guessing with the frequencies of the classes",
                detail=f"{kinds} classes with equal weight",
            ),
            *_areas(partial(scored, baseline=0.5, baseline_name="chance"), chances[name], codes, owners, within),
        ]
    return scores


def _areas(
    scored: Callable[..., AttackScore], chances: Floats, codes: Ids, owners: Ids, within: Ids
) -> list[AttackScore]:
    """Return the AUCs; rows are compared within a fold, because scores of different models have different scales."""
    kinds = chances.shape[1]
    result = [
        scored(
            measure="AUC" if kinds == 2 else "AUC, mean of the classes",
            score=area_of_classes(chances, codes, owners, parts=within, design_effect=_BOTH_WAYS),
            detail="how often a row of a class has a higher score for it than a row of another",
        )
    ]
    if kinds > 2:
        # the best of k intervals is shown: all are valid together (Bonferroni)
        together = {"design_effect": _BOTH_WAYS, "confidence": 1 - (1 - CONFIDENCE) / kinds}
        areas = [area(chances[:, kind], codes == kind, owners, parts=within, **together) for kind in range(kinds)]
        result.append(
            scored(
                measure="AUC, most distinguishable class",
                score=max(areas, key=lambda estimate: estimate.low),
                detail=f"of {kinds} classes, each against the rest; all intervals are valid together",
            )
        )
    return result


def _parts(codes: Ids, kinds: int, owners: Ids, folds: int, seed: int) -> Iterator[tuple[Ids, Ids]]:
    """Yield (training rows, test rows), without a person in both."""
    if kinds < 2:
        raise ParameterError(f"labels must have at least two classes, got {kinds}")
    folds = check_int("folds", folds, minimum=2)
    people = int(owners.max()) + 1
    rarest = int(np.bincount(np.unique(codes * people + owners) // people, minlength=kinds).min())
    if rarest < folds:
        raise ParameterError(
            f"labels: the rarest of {kinds} classes comes from {rarest} people, fewer than the {folds} folds. "
            "Merge it with another class, drop it, or use fewer folds"
        )
    selection = optional("sklearn.model_selection")
    if people == len(codes):
        yield from selection.StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes)
        return
    cut = selection.StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for trained, held_out in cut.split(codes, codes, owners):
        if len(np.unique(codes[trained])) < 2:
            raise ParameterError("people: a fold has only one class to train on. Use fewer folds")
        yield trained, held_out
