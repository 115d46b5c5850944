"""Tests of invalid inputs of a training: one clear error each, without a value of a row."""

import sys

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, MissingExtraError, ParameterError
from dptext.representations.encoders import CallableEncoder

pytest.importorskip("torch")

LENGTHS = CallableEncoder(
    lambda texts: [[len(text), text.count("a"), text.count(" ")] for text in texts], name="lengths"
)
WORDS = ["sea", "a long ship", "a wheat field and a plough", "plough", "she", "his own sea", "a", "her ship sails"] * 8
LABELS = {"task": [0, 0, 1, 1, 0, 0, 1, 0] * 8, "attributes": {"group": ["f", "m"] * 32}}


def hiding(**options):
    options = {"dimension": 6, "epochs": 6, "batch_size": 128, "learning_rate": 3e-3, "seed": 1} | options
    return dptext.HidingEncoder(options.pop("encoder", None), options.pop("randomizer", None), **options)


def small(**options):
    options = {"encoder": LENGTHS, "randomizer": dptext.PrivUnit(epsilon=6.0), "dimension": 2, "epochs": 2} | options
    return hiding(**options).fit(WORDS, **LABELS)


def test_arguments_that_cannot_be_are_named():
    for options, message in [
        ({"alpha": -1.0}, "alpha must be a finite number"),
        ({"game": "chess"}, "game must be one of"),
        ({"class_weight": "heavy"}, "class_weight must be one of"),
        ({"dimension": 1}, "dimension must be an integer from 2"),
        ({"randomizer": "PrivUnit"}, "PrivUnit needs epsilon="),
        ({"encoder": None}, "without an encoder, fit takes vectors"),
        ({"public": "yes"}, "public must be true or false"),
        ({"checkpoint": 7}, "checkpoint must be a path, got 7"),
    ]:
        with pytest.raises(ParameterError, match=message):
            small(**options)


def test_options_are_checked_where_they_are_given():
    with pytest.raises(ParameterError, match="patience must be an integer of at least 1, got 0"):
        hiding(patience=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'epoch'"):
        hiding(epoch=3)


def test_bad_rows_are_named_and_never_shown():
    bad = np.ones((64, 3))
    bad[4, 1] = np.nan
    with pytest.raises(DataError, match="row 5: vectors to train on must be finite"):
        hiding().fit(bad, **LABELS)
    for users, message in (
        ([1, 2], "user has 2 entries for 64 rows"),
        (iter([1, 2]), "user has 2 entries for 64 rows"),
        ("a" * 64, "one entry a row"),
        ({*range(64)}, "one entry a row"),
        ([1, None] * 32, "row 2: its user is missing"),
        (np.array([[1]] * 64), "row 1: its user is missing, or a list"),
    ):
        with pytest.raises((DataError, ParameterError), match=message):
            hiding(encoder=LENGTHS).fit(WORDS, user=users, **LABELS)
    with pytest.raises(DataError, match="one class only in the rows that are left"):
        rare = [0] * 63 + [1]
        hiding(encoder=LENGTHS, validation_fraction=0.5).fit(
            WORDS, task=rare, attributes=LABELS["attributes"], user=["a"] * 32 + ["b"] * 32
        )
    with pytest.raises(ParameterError, match="call fit"):
        hiding().transform(bad)


def test_a_training_that_goes_astray_says_what_to_do():
    with pytest.raises(ParameterError, match=r"diverged in epoch 1 .*: lower learning_rate"):
        small(learning_rate=1e30)


def test_vectors_that_are_nearly_nothing_are_trained_on_like_any_other():
    tiny = np.random.default_rng(0).normal(size=(64, 3)) * 1e-42
    assert np.isfinite(hiding(epochs=1).fit(tiny, **LABELS).clean(tiny)).all()


def test_where_held_out_rows_tell_nothing_the_last_epoch_is_kept_and_a_file_holds_it(tmp_path):
    """One person in ten is held out, and he has one label only."""
    people = [row // 6 for row in range(64)]
    labels = {"task": [person % 2 for person in people], "attributes": LABELS["attributes"]}
    result = hiding(encoder=LENGTHS, dimension=2, epochs=4, patience=1, checkpoint=tmp_path / "run")
    for _ in range(2):  # the second time from the file
        result.fit(WORDS, user=people, **labels)
        assert result.best_ == 4
        assert np.isnan(result.epochs_[-1].held_out.task)


def test_torch_is_asked_for_with_its_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"dptext\[train\]"):
        small()
