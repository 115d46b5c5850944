"""The perceptron: options are checked without torch; with it, it learns, stops, and repeats itself."""

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.representations.networks import TrainingOptions, train_mlp


def test_options_are_checked_at_birth():
    for options, message in [
        ({"hidden": 0}, "hidden must be an integer of at least 1, got 0"),
        ({"hidden": "64"}, "hidden must be an integer of at least 1, got another text"),
        ({"learning_rate_decay": 0.0}, "learning_rate_decay must be"),
        ({"epochs": 0}, "epochs must be an integer of at least 1, got 0"),
        ({"batch_size": 2.5}, "batch_size must be an integer"),
        ({"patience": -1}, "patience must be"),
        ({"dropout": 1.0}, "dropout must be a number of at least 0 and below 1"),
    ]:
        with pytest.raises(ParameterError, match=message):
            TrainingOptions(**options)


def exclusive_or(count, seed):
    rng = np.random.default_rng(seed)
    clean = rng.choice([-1.0, 1.0], size=(count, 2))
    labels = (clean[:, 0] * clean[:, 1] > 0).astype(np.intp)
    return clean + rng.normal(scale=0.5, size=clean.shape), clean, labels


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


OPTIONS = {"dropout": 0.0, "learning_rate": 0.1, "hidden": 32, "epochs": 12}


def outputs(layers, vectors):
    (first, bias), (second, other) = layers
    return np.maximum(vectors @ first + bias, 0) @ second + other


def test_it_learns_from_noisy_copies_what_no_line_can(torch):
    noisy, clean, labels = exclusive_or(1000, 1)
    result = train_mlp(noisy, labels, 2, TrainingOptions(**OPTIONS), seed=2)
    assert (outputs(result.layers, clean).argmax(axis=1) == labels).all()
    linear = np.linalg.lstsq(np.column_stack([noisy, np.ones(1000)]), 2.0 * labels - 1, rcond=None)[0]
    line = (np.column_stack([clean, np.ones(1000)]) @ linear > 0) == labels
    assert line.mean() < 0.8  # positive control: at best three corners of four


def test_a_seed_repeats_it_and_the_callers_generator_stays(torch):
    noisy, _, labels = exclusive_or(200, 3)
    options = TrainingOptions(**OPTIONS | {"epochs": 3, "dropout": 0.5})
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, two = (train_mlp(noisy, labels, 2, options, seed=4) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert one.epochs == two.epochs
    np.testing.assert_array_equal(one.layers[0][0], two.layers[0][0])
    other = train_mlp(noisy, labels, 2, options, seed=5)
    assert one.epochs != other.epochs
    assert train_mlp(noisy, labels, 2, options).epochs != train_mlp(noisy, labels, 2, options).epochs


def test_it_stops_early_and_keeps_the_best_epoch(torch):
    rng = np.random.default_rng(6)
    vectors, labels = rng.normal(size=(120, 30)), np.arange(120) % 2  # nothing to learn: the held-out loss must rise
    seen = []
    options = TrainingOptions(**OPTIONS | {"epochs": 200, "learning_rate": 0.3}, validation_fraction=0.25, patience=4)
    result = train_mlp(vectors, labels, 2, options, progress=seen.append, seed=7)
    assert tuple(seen) == result.epochs
    assert len(seen) == result.best + 4 < 200
    assert min(seen, key=lambda epoch: epoch.held_out).number == result.best
    assert [epoch.number for epoch in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].loss < seen[0].loss


def test_without_a_held_out_part_all_epochs_are_run(torch):
    noisy, _, labels = exclusive_or(100, 8)
    result = train_mlp(noisy, labels, 2, TrainingOptions(**OPTIONS | {"epochs": 4}, validation_fraction=0.0), seed=9)
    assert len(result.epochs) == result.best == 4
    assert all(epoch.held_out is None for epoch in result.epochs)


def test_fresh_rows_change_the_training(torch):
    noisy, _, labels = exclusive_or(100, 10)
    options = OPTIONS | {"epochs": 2}
    bare = train_mlp(noisy, labels, 2, TrainingOptions(**options), seed=11)
    requested = []

    def fresh(number):
        requested.append(number)
        return noisy + number, labels

    fed = train_mlp(noisy, labels, 2, TrainingOptions(**options), fresh=fresh, seed=11)
    assert bare.epochs != fed.epochs
    assert requested == [1, 2]


def test_the_size_of_the_noise_does_not_matter(torch):
    noisy, _, labels = exclusive_or(200, 12)
    options = TrainingOptions(**OPTIONS | {"epochs": 3})
    small, large = (train_mlp(noisy * scale, labels, 2, options, seed=13) for scale in (1.0, 1024.0))
    assert small.epochs == large.epochs
    np.testing.assert_allclose(small.layers[0][0], 1024 * large.layers[0][0], rtol=1e-6)


def test_a_class_of_one_row_is_not_held_out(torch):
    vectors, labels = np.eye(5), np.array([0, 0, 0, 0, 1])
    options = TrainingOptions(**OPTIONS | {"epochs": 1}, validation_fraction=0.9)
    assert np.isfinite(train_mlp(vectors, labels, 2, options, seed=14).epochs[0].loss)


@pytest.mark.parametrize(
    ("hidden", "shapes"), [((), [(2, 2)]), (5, [(2, 5), (5, 2)]), ([7, 3], [(2, 7), (7, 3), (3, 2)])]
)
def test_layers_are_as_many_as_asked_for(torch, hidden, shapes):
    noisy, _, labels = exclusive_or(100, 15)
    result = train_mlp(noisy, labels, 2, TrainingOptions(**OPTIONS | {"hidden": hidden, "epochs": 1}), seed=16)
    assert [weights.shape for weights, _ in result.layers] == shapes


def test_a_linear_layer_learns_a_line_and_nothing_else(torch):
    noisy, clean, labels = exclusive_or(1000, 17)
    line = (clean[:, 0] > 0).astype(np.intp)
    options = TrainingOptions(**OPTIONS | {"hidden": ()})
    scores = [
        clean @ result.layers[0][0]
        for result in (train_mlp(noisy, label, 2, options, seed=18) for label in (line, labels))
    ]
    assert (scores[0].argmax(axis=1) == line).all()
    assert (scores[1].argmax(axis=1) == labels).mean() < 0.8


def test_the_learning_rate_falls(torch):
    noisy, _, labels = exclusive_or(200, 19)
    one = TrainingOptions(**OPTIONS | {"epochs": 1}, validation_fraction=0.0)
    stopped = TrainingOptions(**OPTIONS | {"epochs": 3}, validation_fraction=0.0, learning_rate_decay=1e-12)
    ends = [train_mlp(noisy, labels, 2, options, seed=20).layers[0][0] for options in (one, stopped)]
    np.testing.assert_allclose(*ends, atol=1e-6)
    going = TrainingOptions(**OPTIONS | {"epochs": 3}, validation_fraction=0.0)
    assert np.abs(train_mlp(noisy, labels, 2, going, seed=20).layers[0][0] - ends[0]).max() > 0.01


def test_what_is_seen_hangs_on_the_epoch(torch):
    noisy, _, labels = exclusive_or(100, 21)
    requested = []

    def seen(number, vectors):
        requested.append((number, len(vectors)))
        return vectors + number

    options = TrainingOptions(**OPTIONS | {"epochs": 3}, validation_fraction=0.2)
    result = train_mlp(noisy, labels, 2, options, seen=seen, seed=22)
    kept = 100 - sum(round(0.2 * count) for count in np.bincount(labels))
    assert requested == [(0, 100), *((number, kept) for number in range(1, len(result.epochs) + 1))]
    still = train_mlp(noisy, labels, 2, options, seen=lambda _, vectors: vectors, seed=22)
    assert still.epochs == train_mlp(noisy, labels, 2, options, seed=22).epochs
    assert still.epochs != result.epochs
    rescaled = train_mlp(noisy, labels, 2, options, scale=100.0, seed=22)
    assert rescaled.epochs != still.epochs
