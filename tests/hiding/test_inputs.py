"""Training inputs: labels, held-out rows, readers, and one clear error for each kind of bad input."""

import sys

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, MissingExtraError, ParameterError, RefusedError
from dptext.hiding.inputs import check_targets, split_rows, trade_off
from dptext.hiding.training import training_channel
from dptext.representations.published import DPText

pytest.importorskip("torch")

from hiding.conftest import LABELS, LENGTHS, WORDS, hiding, small

TASK, OTHER = ["a", "b", "a", "b", "b", "b"], [1, 1, 2, 2, 1, 2]


def test_missing_labels_are_masked():
    pandas = pytest.importorskip("pandas")
    labels = ["x", None, float("nan"), "", "y", pandas.NA, "y"]
    _, target = check_targets(7, [1, 2, 2, 1, 1, 2, 2], {"t": labels})
    assert target.classes == ("x", "y")
    assert target.codes.tolist() == [0, -1, -1, -1, 1, -1, 1]


def test_balanced_classes_have_equal_weight():
    task, other = check_targets(6, TASK, {"t": np.array(OTHER)})
    np.testing.assert_allclose(task.weights, [1.5, 0.75])
    assert other.classes == (1, 2)


def test_whole_users_are_held_out(made_vectors):
    rows = len(made_vectors.rows)
    task, *_ = check_targets(rows, made_vectors.task, made_vectors.attributes)
    people = [f"person {row % 30}" for row in range(rows)]
    kept, held_out = split_rows(rows, people, task, 0.2, 1)
    assert len({people[row] for row in held_out}) == 6
    assert not {people[row] for row in held_out} & {people[row] for row in kept}
    kept, held_out = split_rows(rows, None, task, 0.2, 1)
    assert sorted([*kept, *held_out]) == list(range(rows))
    assert np.ptp(np.bincount(task.codes[held_out]) / np.bincount(task.codes)) < 0.01


def read(vectors, labels, task, alpha=1.0):
    targets = check_targets(len(vectors), task, {"t": labels})
    half, rows = np.arange(len(vectors)) < len(vectors) // 2, np.arange(len(vectors))
    return trade_off((vectors[half], rows[half]), (vectors[~half], rows[~half]), targets, alpha)


def test_readers_find_linear_and_other_signals_and_nothing_in_noise():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2000, 4))
    linear, exclusive = x[:, 0] > 0, x[:, 1] * x[:, 2] > 0
    seen = read(x, exclusive, linear)
    assert seen.task > 0.85 and seen.attributes["t"] > 0.6
    assert seen.score == pytest.approx(seen.task - seen.attributes["t"])
    assert read(x, exclusive, linear, alpha=0.0).score == seen.task
    noise = read(draw.normal(size=(2000, 4)), draw.integers(0, 3, 2000), draw.random(2000) < 0.9)
    assert max(abs(noise.task), abs(noise.attributes["t"])) < 0.15
    assert noise.score == noise.task - max(noise.attributes["t"], 0.0)


def targets(task, attributes, rows=6):
    return lambda: check_targets(rows, task, attributes)


def channel(randomizer):
    return lambda: training_channel(randomizer, 4)


def users(values):
    return lambda: hiding(encoder=LENGTHS).fit(WORDS, user=values, **LABELS)


BAD_ROW = np.ones((64, 3))
BAD_ROW[4, 1] = np.nan
REFUSALS = [
    (lambda: small(randomizer="PrivUnit"), ParameterError, "PrivUnit needs epsilon="),
    (lambda: dptext.HidingEncoder(None, None, epsilon=1.0), ParameterError, "epsilon needs a randomizer"),
    (lambda: small(encoder=None), ParameterError, "without an encoder, fit takes vectors"),
    (lambda: hiding(randomizer=DPText(epsilon=0.1)), RefusedError, "unsafe_as_published"),
    (lambda: hiding().fit(BAD_ROW, **LABELS), DataError, "row 5: the vector must be finite"),
    (lambda: hiding(encoder=LENGTHS).fit(np.ones((64, 5)), **LABELS), ParameterError, "the vectors have 5 columns"),
    (lambda: hiding().transform(BAD_ROW), ParameterError, "call fit"),
    (lambda: small(randomizer=None).save("nowhere"), ParameterError, "a device requires an encoder of texts"),
    (lambda: hiding(epochs=1).fit(np.eye(64), **LABELS).clean(["a"]), ParameterError, "trained on vectors"),
    (lambda: small(learning_rate=1e30), ParameterError, r"diverged in epoch 1 .*: lower learning_rate"),
    (users([1, 2]), ParameterError, "user has 2 entries for 64 rows"),
    (users([1, None] * 32), DataError, "row 2: the user must be"),
    (targets(TASK[:5], {"t": OTHER}), ParameterError, "the task has 5 labels for 6 rows"),
    (targets(TASK, {}), ParameterError, "attributes must map names to labels, such"),
    (targets([None] * 6, {"t": OTHER}), DataError, "the task must have from 2 to 1000 classes, got 0"),
    (targets([0, 1, 0] * 333 + [0, 1], {"t": [*range(1001)]}, 1001), DataError, "from 2 to 1000 classes, got 1001"),
    (channel(dptext.OptimizedUnary(epsilon=8.0)), ParameterError, "does not add noise to a vector"),
]


def test_bad_inputs_are_refused(monkeypatch):
    for place, (call, error, message) in enumerate(REFUSALS):
        with pytest.raises(error, match=message):
            assert not call(), f"case {place} was accepted"
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"dptext\[train\]"):
        small()
