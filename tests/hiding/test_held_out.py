"""Tests of fresh attackers: they find linear and other signals, and nothing in noise. All draws are seeded."""

import numpy as np
import pytest

from dptext.hiding.inputs import check_targets, measured


def looked_at(vectors, labels, task, alpha=1.0):
    kept, hidden = check_targets(len(vectors), task, {"t": labels}, None)
    half = np.arange(len(vectors)) < len(vectors) // 2
    rows = np.arange(len(vectors))
    return measured((vectors[half], rows[half]), (vectors[~half], rows[~half]), kept, hidden, alpha)


def test_readers_read_what_is_linear_and_what_is_not():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2000, 4))
    linear, exclusive = x[:, 0] > 0, x[:, 1] * x[:, 2] > 0
    seen = looked_at(x, exclusive, linear)
    assert seen.task > 0.85
    assert seen.attributes["t"] > 0.6
    assert seen.score == pytest.approx(seen.task - seen.attributes["t"])
    assert looked_at(x, exclusive, linear, alpha=0.0).score == seen.task


def test_readers_get_nothing_out_of_noise():
    draw = np.random.default_rng(1)
    seen = looked_at(draw.normal(size=(2000, 4)), draw.integers(0, 3, 2000), draw.random(2000) < 0.9)
    assert abs(seen.task) < 0.15
    assert abs(seen.attributes["t"]) < 0.15
    assert seen.score == seen.task - max(seen.attributes["t"], 0.0)


def test_rows_without_a_label_and_classes_that_are_not_held_out_do_not_count():
    x = np.random.default_rng(2).normal(size=(400, 3))
    read = looked_at(x, [None, "a", "b", "a"] * 100, x[:, 0] > 0)
    assert abs(read.attributes["t"]) < 0.3
    labels = ["a", "b", "c", "d"] * 50 + ["a", "b"] * 100  # a guess among four is half as good as one among two
    assert abs(looked_at(x, labels, x[:, 0] > 0).attributes["t"]) < 0.25


@pytest.mark.parametrize("labels", [[None] * 200 + ["a", "b"] * 100, ["a", "b"] * 100 + ["a"] * 200])
def test_where_nothing_can_be_said_no_number_looks_as_if_all_were_hidden(labels):
    x = np.random.default_rng(2).normal(size=(400, 3))
    seen = looked_at(x, labels, x[:, 0] > 0)
    assert np.isnan(seen.attributes["t"])
    assert np.isnan(seen.score)
    assert looked_at(x, labels, x[:, 0] > 0, alpha=0.0).score == seen.task
