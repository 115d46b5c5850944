"""Tests of labels: missing ones, classes, and one clear error for each kind of bad label."""

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError
from dptext.hiding.inputs import check_targets

TASK = ["a", "b", "a", "b", "b", "b"]
OTHER = [1, 1, 2, 2, 1, 2]


def test_missing_labels_are_masked_whatever_they_look_like():
    pandas = pytest.importorskip("pandas")
    labels = ["x", None, float("nan"), "", "y", pandas.NA, "y"]
    _, (target,) = check_targets(7, [1, 2, 2, 1, 1, 2, 2], {"t": labels}, None)
    assert target.classes == ("x", "y")
    assert target.codes.tolist() == [0, -1, -1, -1, 1, -1, 1]


def test_balanced_classes_count_the_same_however_rare():
    task, (other,) = check_targets(6, TASK, {"t": np.array(OTHER)}, "balanced")
    np.testing.assert_allclose(task.weights, [1.5, 0.75])
    np.testing.assert_allclose(task.priors, [0.5, 0.5])
    np.testing.assert_allclose(np.mean(task.weights[task.codes]), 1.0)
    assert other.classes == (1, 2)
    plain, _ = check_targets(6, TASK, {"t": OTHER}, None)
    np.testing.assert_allclose(plain.weights, 1.0)
    np.testing.assert_allclose(plain.priors, [1 / 3, 2 / 3])


def test_bad_labels_have_one_error_each():
    for task, attributes, error, message in [
        (TASK[:5], {"t": OTHER}, ParameterError, "the task has 5 labels for 6 rows"),
        (TASK, {"t": OTHER[:2]}, ParameterError, "the attribute 't' has 2 labels for 6 rows"),
        (TASK, {}, ParameterError, "there is nothing to hide"),
        ([None] * 6, {"t": OTHER}, DataError, "all labels of the task are missing"),
        (["a"] * 6, {"t": OTHER}, DataError, "the task has one class only"),
        (TASK, {"t": [1, "a"] * 3}, DataError, "one type that has an order"),
        (TASK, {"t": [0, 1, 0, 1, 1, 1]}, DataError, "'t' says the same as the task"),
        (TASK, {"t": [0, 1, None, 1, 1, 1]}, DataError, "'t' says the same as the task"),
    ]:
        with pytest.raises(error, match=message):
            check_targets(6, task, attributes, None)


def test_more_classes_than_anybody_hides_are_refused():
    with pytest.raises(DataError, match="has 1001 classes"):
        check_targets(1001, [0, 1, 0] * 333 + [0, 1], {"t": list(range(1001))}, None)
