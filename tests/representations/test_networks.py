"""Training of networks: the perceptron, and the noise that is drawn on public vectors in each epoch."""

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Laplace
from dptext.representations.bounds import Domain
from dptext.representations.networks import TrainingOptions, fresh_noise, train_mlp


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def exclusive_or(count, seed):
    rng = np.random.default_rng(seed)
    clean = rng.choice([-1.0, 1.0], size=(count, 2))
    labels = (clean[:, 0] * clean[:, 1] > 0).astype(np.intp)
    return clean + rng.normal(scale=0.5, size=clean.shape), clean, labels


def train(vectors, labels, seed=2, *, seen=None, fresh=None, progress=None, **options):
    usual = {"dropout": 0.0, "learning_rate": 0.1, "hidden": 32, "epochs": 12}
    known = {name: value for name, value in {"seen": seen, "fresh": fresh}.items() if value is not None}
    settings = TrainingOptions(**usual | options)
    return train_mlp(vectors, labels, 2, settings, progress=progress, seed=seed, **known)


def test_perceptron_learns_an_exclusive_or_and_a_linear_layer_only_a_line(torch):
    noisy, clean, labels = exclusive_or(1000, 1)
    (first, bias), (second, other) = train(noisy, labels).layers
    assert ((np.maximum(clean @ first + bias, 0) @ second + other).argmax(axis=1) == labels).all()
    line = (clean[:, 0] > 0).astype(np.intp)
    on_line, on_xor = (clean @ train(noisy, label, hidden=()).layers[0][0] for label in (line, labels))
    assert (on_line.argmax(axis=1) == line).all()
    assert (on_xor.argmax(axis=1) == labels).mean() < 0.8
    for hidden, shapes in [((), [(2, 2)]), (5, [(2, 5), (5, 2)]), ([7, 3], [(2, 7), (7, 3), (3, 2)])]:
        layers = train(noisy, labels, hidden=hidden, epochs=1).layers
        assert [weights.shape for weights, _ in layers] == shapes


def test_training_repeats_under_a_seed_and_restores_the_generator(torch):
    noisy, _, labels = exclusive_or(200, 3)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, two, other, fresh = (train(noisy, labels, seed, epochs=3, dropout=0.5) for seed in (4, 4, 5, None))
    assert torch.equal(before, torch.get_rng_state())
    assert one.epochs == two.epochs
    np.testing.assert_array_equal(one.layers[0][0], two.layers[0][0])
    assert one.epochs != other.epochs != fresh.epochs != one.epochs
    small, large = (train(noisy * scale, labels, epochs=3) for scale in (1.0, 1024.0))  # the noise has any size
    assert small.epochs == large.epochs
    np.testing.assert_allclose(small.layers[0][0], 1024 * large.layers[0][0], rtol=1e-6)


def test_training_stops_early_and_keeps_the_best_epoch(torch):
    rng, seen = np.random.default_rng(6), []
    vectors, labels = rng.normal(size=(120, 30)), np.arange(120) % 2  # nothing to learn: the held-out loss must rise
    options = {"epochs": 200, "learning_rate": 0.3, "validation_fraction": 0.25, "patience": 4}
    result = train(vectors, labels, 7, progress=seen.append, **options)
    assert tuple(seen) == result.epochs
    assert len(seen) == result.best + 4 < 200
    assert min(seen, key=lambda epoch: epoch.held_out).number == result.best
    assert seen[-1].loss < seen[0].loss
    one_row = train(np.eye(5), np.array([0, 0, 0, 0, 1]), epochs=1, validation_fraction=0.9)
    assert np.isfinite(one_row.epochs[0].loss)  # a class of one row is not held out


def test_training_runs_all_epochs_without_held_out_rows(torch):
    noisy, _, labels = exclusive_or(200, 8)
    result = train(noisy, labels, validation_fraction=0.0, epochs=3)
    assert len(result.epochs) == result.best == 3
    assert all(epoch.held_out is None for epoch in result.epochs)


def test_inputs_and_further_rows_depend_on_the_epoch(torch):
    noisy, _, labels = exclusive_or(100, 21)
    requested = []

    def seen(number, vectors):
        requested.append((number, len(vectors)))
        return vectors + number

    def fresh(number):
        requested.append((number, "fresh"))
        return noisy + number, labels

    plain = train(noisy, labels, epochs=2, validation_fraction=0.2)
    changed = train(noisy, labels, seen=seen, fresh=fresh, epochs=2, validation_fraction=0.2)
    kept = 100 - sum(round(0.2 * count) for count in np.bincount(labels))
    assert requested == [(0, 100), (1, kept), (1, "fresh"), (2, kept), (2, "fresh")]
    assert changed.epochs != plain.epochs


# -- noise of a training -------------------------------------------------------------------------------------------

DIMENSION, EPOCHS = 6, 4
CLEAN = Domain.BALL.bound(np.random.default_rng(1).normal(scale=0.2, size=(3000, DIMENSION)))
USERS = Laplace(epsilon=12.0).channel(DIMENSION)


def noise_of(seed=3):
    return fresh_noise([USERS] * (EPOCHS + 1), seed)


def check_fresh(noise, deviation):
    """Noises of the epochs are independent of each other and of the vectors, and have this deviation.

    18,000 numbers per epoch: an estimated correlation has a standard deviation of .0075, an estimated deviation of
    Laplace noise (kurtosis 6) one of sqrt(5 / 72,000) = .0083 of it. Both may be off by 6 of these: two in 10^9.
    """
    draws = [noise(epoch, CLEAN) - CLEAN for epoch in range(1, EPOCHS + 1)]
    for place, one in enumerate(draws):
        assert abs(one.std() / deviation - 1) < 0.05
        assert abs(np.corrcoef(one.ravel(), CLEAN.ravel())[0, 1]) < 0.045
        for other in draws[:place]:
            assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.045


def test_training_noise_is_fresh_in_each_epoch():
    check_fresh(noise_of(), USERS.deviation)


def repeating(_, vectors):
    """A known-broken form that starts from the same bits in every epoch."""
    return USERS.sample(vectors, RandomBits(7)).astype(np.float64)


def weak(epoch, vectors):
    """A known-broken form with 1.5 times too little noise."""
    return vectors + (noise_of()(epoch, vectors) - vectors) / 1.5


@pytest.mark.parametrize("broken", [repeating, weak])
def test_broken_training_noise_is_detected(broken):
    with pytest.raises(AssertionError):
        check_fresh(broken, USERS.deviation)


def test_training_noise_follows_its_seed():
    one, two = (noise_of()(2, CLEAN) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    for seed in (4, None, None):
        assert (noise_of(seed)(2, CLEAN) != one).any()
    # the second epoch of one seed is not the first of the next
    assert (noise_of(1)(2, CLEAN) != noise_of(2)(1, CLEAN)).any()
