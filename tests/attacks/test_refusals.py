"""Arguments that attacks refuse, with the argument named."""

from functools import partial

import numpy as np
import pytest

from dptext.attacks import (
    attribute_inference,
    author_reidentification,
    bag_inversion,
    bayes_recovery,
    expected_recovery,
    linkage,
    linkage_of_scores,
    nearest_recovery,
    nearest_secrets,
    score_membership,
    sum_membership,
)
from dptext.errors import ParameterError

NAN = float("nan")
MEMBERS = np.array([1, 1, 1, 0, 0, 0])
VECTORS = np.random.default_rng(1).normal(size=(200, 8))
infer = partial(attribute_inference, np.arange(8.0)[:, None], folds=2, attackers="linear")
invert = partial(bag_inversion, [[1.0]] * 12, [["a", "b", "c"]] * 12, [[1.0]] * 3)

REFUSED = [
    (lambda: infer(["a"] * 8), "labels must have at least two classes, got 1"),
    (lambda: infer(list("aaaaaaab")), "labels: the rarest of 2 classes comes from 1 people, fewer than the 2 folds"),
    (lambda: infer([*"aaaabbb", None]), "labels must have a value for every row, row 7 has none"),
    (lambda: infer(list("aaaabbbb"), people=list("aaaabbbb")), "comes from 1 people, fewer than the 2 folds"),
    (lambda: infer(list("abababab"), attackers="forest"), "attackers must be a non-empty subset of"),
    (lambda: invert([["a"]] * 4), "bags must have one row for each of 3 vectors, got 4"),
    (lambda: invert([["z"], ["y"], []]), "bags must contain at least one word that can be named"),
    (lambda: invert([["a"]] * 3, top=3), "top must be an integer from 1 to 2"),
    (lambda: linkage([[1.0], [NAN]], [[1.0]]), "original must be finite, row 1"),
    (lambda: linkage(["a", "b"], [[1.0]]), "private and original must both be texts or bags of words"),
    (lambda: linkage(["a", "b"], ["a"], similarity="euclidean"), "similarity must be 'cosine' or 'dot' for texts"),
    (lambda: linkage([[1.0], [2.0]], [[1.0]] * 3), "truth is required, because there are"),
    (lambda: linkage([[1.0], [2.0]], [[1.0]], truth=[2]), "truth must be from 0 to 1"),
    (lambda: linkage_of_scores([[1.0, NAN]] * 2), "scores must be numbers or minus infinity, got NaN"),
    (lambda: author_reidentification(["a", "b"], "xy", ["a"], "z"), "the author of row 0 has no known row"),
    (lambda: score_membership([1.0, NAN, 1, 1, 1, 1], MEMBERS), "scores must be a one-dimensional array of"),
    (lambda: score_membership(np.arange(6.0), MEMBERS * 0), "members must have at least two members and"),
    (lambda: sum_membership([NAN] * 3, np.eye(3), MEMBERS[2:5]), "released must be finite"),
    (lambda: sum_membership([1.0] * 3, np.eye(2), MEMBERS[2:5]), "targets must be finite numbers of the shape"),
    (lambda: nearest_secrets(VECTORS, [0, 500], [5, 6]), "names must be from -1 to 199, entry 1 is not"),
    (lambda: nearest_secrets(VECTORS, [-1, -1], [5, 6]), "at least one pair of a name"),
    (lambda: nearest_secrets(VECTORS, [0, 1], [5, 5]), "each kind must have at least two"),
    (lambda: expected_recovery([[0.5, 0.4]] * 2, [1, 1]), "each row of channel must be a"),
    (lambda: expected_recovery([[1.0]] * 3, [1, 1]), "one row for each of 2 inputs, got 3"),
    (lambda: expected_recovery(np.eye(2), [1, NAN]), "prior must be finite"),
    (lambda: bayes_recovery(np.eye(2), [1, 1], [0, 2], [0, 0]), "true must be from 0 to 1, entry 1"),
    (lambda: bayes_recovery(np.eye(2), [1, 1], [0, 1], [0, 1], people=["a"]), "people must have one entry for each of"),
    (lambda: nearest_recovery([[1.0, 2.0]], [[1.0], [2.0]], [0]), "points must have 1 columns as candidates, got"),
]


def test_arguments_that_cannot_be_judged_are_refused():
    for call, message in REFUSED:
        with pytest.raises(ParameterError) as caught:
            call()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
