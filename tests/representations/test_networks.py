"""Training of networks: the perceptron, and the noise that is drawn on public vectors in each epoch."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, L2Laplace, Laplace
from dptext.representations.bounds import Domain
from dptext.representations.networks import TRAININGS, TrainingNoise, TrainingOptions, epsilons_of, train_mlp
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import Channel


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def exclusive_or(count, seed):
    rng = np.random.default_rng(seed)
    clean = rng.choice([-1.0, 1.0], size=(count, 2))
    labels = (clean[:, 0] * clean[:, 1] > 0).astype(np.intp)
    return clean + rng.normal(scale=0.5, size=clean.shape), clean, labels


def train(vectors, labels, seed=2, *, seen=None, fresh=None, scale=None, progress=None, **options):
    usual = {"dropout": 0.0, "learning_rate": 0.1, "hidden": 32, "epochs": 12}
    known = {name: value for name, value in {"seen": seen, "fresh": fresh}.items() if value is not None}
    settings = TrainingOptions(**usual | options)
    return train_mlp(vectors, labels, 2, settings, scale=scale, progress=progress, seed=seed, **known)


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
    assert train(noisy, labels, epochs=3, scale=100.0).epochs != small.epochs


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


def test_training_runs_all_epochs_without_held_out_rows_and_its_rate_decays(torch):
    noisy, _, labels = exclusive_or(200, 8)
    one, stopped, going = (
        train(noisy, labels, validation_fraction=0.0, **more)
        for more in ({"epochs": 1}, {"epochs": 3, "learning_rate_decay": 1e-12}, {"epochs": 3})
    )
    assert len(going.epochs) == going.best == 3
    assert all(epoch.held_out is None for epoch in going.epochs)
    np.testing.assert_allclose(one.layers[0][0], stopped.layers[0][0], atol=1e-6)
    assert np.abs(going.layers[0][0] - one.layers[0][0]).max() > 0.01


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
USERS = Laplace(epsilon=12.0)


def noise_of(training, randomizer=USERS, **options):
    settings = {"schedule": "noise-rises-10/n", "epochs": EPOCHS, "seed": 3} | options
    return TrainingNoise(training, randomizer.channel(DIMENSION), randomizer, **settings)


def deviation_at(epsilon):
    return Laplace(epsilon=epsilon).channel(DIMENSION).deviation


def check_fresh(noise, deviations):
    """Noises of the epochs are independent of each other and of the vectors, and have these deviations.

    18,000 numbers per epoch: an estimated correlation has a standard deviation of .0075, an estimated deviation of
    Laplace noise (kurtosis 6) one of sqrt(5 / 72,000) = .0083 of it. Both may be off by 6 of these: two in 10^9.
    """
    draws = [noise.on_public(epoch, CLEAN) - CLEAN for epoch in range(1, len(deviations) + 1)]
    for place, (one, deviation) in enumerate(zip(draws, deviations, strict=True)):
        assert abs(one.std() / deviation - 1) < 0.05
        assert abs(np.corrcoef(one.ravel(), CLEAN.ravel())[0, 1]) < 0.045
        for other in draws[:place]:
            assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.045


def test_training_noise_is_fresh_in_each_epoch():
    check_fresh(noise_of("robust"), [deviation_at(12.0)] * EPOCHS)
    for schedule in ("noise-rises-10/n", "noise-falls-10/n", [12.0, 3.0, 24.0, 1.0], lambda epoch: epoch):
        noise = noise_of("adaptive", schedule=schedule)
        check_fresh(noise, [deviation_at(epsilon) for epsilon in noise.epsilons])
    plain = noise_of("plain")
    for epoch in range(EPOCHS + 1):
        np.testing.assert_allclose(plain.on_public(epoch, CLEAN), CLEAN, rtol=1e-8)
        assert plain.on_arrived(epoch, CLEAN) is CLEAN
    assert plain.epsilons == ()


class Repeating(TrainingNoise):
    """A known-broken form that starts from the same bits in every epoch."""

    def on_public(self, epoch, vectors):
        self._streams[epoch] = RandomBits(7)
        return super().on_public(epoch, vectors)


class Weak(TrainingNoise):
    """A known-broken form with 1.5 times too little noise."""

    def on_public(self, epoch, vectors):
        return vectors + (super().on_public(epoch, vectors) - vectors) / 1.5


@pytest.mark.parametrize("broken", [Repeating, Weak])
def test_broken_training_noise_is_detected(broken):
    noise = broken("robust", USERS.channel(DIMENSION), USERS, schedule=None, epochs=EPOCHS, seed=3)
    with pytest.raises(AssertionError):
        check_fresh(noise, [deviation_at(12.0)] * EPOCHS)


def test_arrived_vectors_get_noise_on_top_only():
    arrived = USERS.randomize(CLEAN, seed=4).astype(np.float64)
    for epoch in range(EPOCHS + 1):
        assert noise_of("robust").on_arrived(epoch, arrived) is arrived
    schedule = [24.0, 12.0, 6.0, 3.0]
    noise = noise_of("adaptive", schedule=schedule)
    for epoch in (0, 1, 2):  # held out, or with that much noise already
        assert noise.on_arrived(epoch, arrived) is arrived
    for epoch in (3, 4):
        lacking = np.sqrt(deviation_at(schedule[epoch - 1]) ** 2 - deviation_at(12.0) ** 2)
        top = noise.on_arrived(epoch, arrived) - arrived
        assert abs(top.std() / lacking - 1) < 0.04  # 18,000 normal numbers: 7 standard deviations of the estimate
        assert abs(np.corrcoef(top.ravel(), arrived.ravel())[0, 1]) < 0.045
        assert abs((top + arrived - CLEAN).std() / deviation_at(schedule[epoch - 1]) - 1) < 0.06


@pytest.mark.parametrize("training", TRAININGS)
def test_arrived_vectors_never_reach_a_channel(training, monkeypatch):
    noise = noise_of(training)

    def refuse(*_):
        raise AssertionError("a release of arrived vectors")

    monkeypatch.setattr(Channel, "sample", refuse)
    for epoch in range(EPOCHS + 1):
        noise.on_arrived(epoch, CLEAN)
    if training != "plain":  # positive control
        with pytest.raises(AssertionError, match="a release"):
            noise.on_public(1, CLEAN)


def test_adaptive_noise_follows_any_channel_and_seed():
    for randomizer in (PrivUnit(epsilon=4.0), L2Laplace(epsilon=4.0), Gaussian(epsilon=4.0, delta=1e-5)):
        noise = noise_of("adaptive", randomizer)
        for epoch, epsilon in enumerate(noise.epsilons, 1):
            expected = replace(randomizer, epsilon=epsilon).channel(DIMENSION)
            change = noise.on_public(epoch, CLEAN) - expected.domain.bound(CLEAN)
            assert abs(np.mean((change**2).sum(axis=1)) / expected.expected_squared_error - 1) < 0.2
    for training in ("robust", "adaptive"):
        one, two = (noise_of(training).on_public(2, CLEAN) for _ in range(2))
        np.testing.assert_array_equal(one, two)
        for options in ({"seed": 4}, {"seed": None}, {"seed": None}):
            assert (noise_of(training, **options).on_public(2, CLEAN) != one).any()
    # the second epoch of one seed is not the first of the next
    assert (noise_of("robust", seed=1).on_public(2, CLEAN) != noise_of("robust", seed=2).on_public(1, CLEAN)).any()


def test_input_scale_covers_all_epochs():
    noise = noise_of("adaptive")
    sizes = [np.mean(CLEAN**2) + deviation_at(epsilon) ** 2 for epsilon in noise.epsilons]
    assert abs(noise.input_scale(noise.on_public, CLEAN) / np.sqrt(np.mean(sizes)) - 1) < 0.1
    assert noise_of("plain").input_scale(noise.on_public, CLEAN) is None


def test_schedules_give_an_epsilon_per_epoch():
    assert epsilons_of("noise-rises-1/n", 3) == (1.0, 1 / 2, 1 / 3)
    assert epsilons_of("noise-rises-10/n", 5) == (10.0, 5.0, 10 / 3, 2.5, 2.0)
    assert epsilons_of("noise-falls-10/n", 5) == epsilons_of("noise-rises-10/n", 5)[::-1]
    assert epsilons_of([3, 2.5, 1], 2) == (3.0, 2.5)
    assert epsilons_of(np.array([3.0, 2.0]), 2) == (3.0, 2.0)
    assert epsilons_of(partial(pow, 2.0), 3) == (2.0, 4.0, 8.0)
