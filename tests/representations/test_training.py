"""Plain, robust and adaptive training: which noise is drawn on what; a twin that repeats its noise is found."""

import copy
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, L2Laplace, Laplace
from dptext.representations.bounds import Domain
from dptext.representations.networks import SCHEDULES, TRAININGS, TrainingNoise, epsilons_of
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import Channel

DIMENSION, EPOCHS = 6, 4
CLEAN = Domain.BALL.bound(np.random.default_rng(1).normal(scale=0.2, size=(3000, DIMENSION)))
USERS = Laplace(epsilon=12.0)


def noise_of(training, randomizer=USERS, **options):
    settings = {"schedule": "noise-rises-10/n", "epochs": EPOCHS, "seed": 3} | options
    return TrainingNoise(training, randomizer.channel(DIMENSION), randomizer, **settings)


def check_fresh(noise, deviations):
    """Epochs' noises on public vectors are independent of each other and of the vectors, and of these deviations.

    18,000 numbers an epoch: an estimated correlation has a standard deviation of .0075, an estimated deviation of
    Laplace noise (kurtosis 6) one of sqrt(5 / 72,000) = .0083 of it. Both may be off by 6 of these: two in 10^9.
    """
    draws = [noise.on_public(epoch, CLEAN) - CLEAN for epoch in range(1, len(deviations) + 1)]
    for place, (one, deviation) in enumerate(zip(draws, deviations, strict=True)):
        assert abs(one.std() / deviation - 1) < 0.05
        assert abs(np.corrcoef(one.ravel(), CLEAN.ravel())[0, 1]) < 0.045
        for other in draws[:place]:
            assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.045


def deviation_at(epsilon):
    return Laplace(epsilon=epsilon).channel(DIMENSION).deviation


def test_plain_never_draws():
    noise = noise_of("plain")
    for epoch in range(EPOCHS + 1):
        np.testing.assert_allclose(
            noise.on_public(epoch, CLEAN), CLEAN, rtol=1e-8
        )  # the ball leaves them where they are
        assert noise.on_arrived(epoch, CLEAN) is CLEAN
    assert noise.epsilons == ()


def test_robust_draws_the_users_noise_anew_in_each_epoch():
    check_fresh(noise_of("robust"), [deviation_at(12.0)] * EPOCHS)


def test_adaptive_draws_at_the_epsilon_of_the_epoch():
    for schedule in ("noise-rises-10/n", "noise-falls-10/n", [12.0, 3.0, 24.0, 1.0], lambda epoch: epoch):
        noise = noise_of("adaptive", schedule=schedule)
        check_fresh(noise, [deviation_at(epsilon) for epsilon in noise.epsilons])


class Repeating(TrainingNoise):
    """A twin that starts from the same bits in every epoch: what looks like fresh noise is one draw."""

    def on_public(self, epoch, vectors):
        self._streams[epoch] = RandomBits(7)
        return super().on_public(epoch, vectors)


class Weak(TrainingNoise):
    """A twin with 1.5 times too little noise."""

    def on_public(self, epoch, vectors):
        return vectors + (super().on_public(epoch, vectors) - vectors) / 1.5


@pytest.mark.parametrize("twin", [Repeating, Weak])
def test_broken_twins_are_found(twin):
    broken = twin("robust", USERS.channel(DIMENSION), USERS, schedule=None, epochs=EPOCHS, seed=3)
    with pytest.raises(AssertionError):
        check_fresh(broken, [deviation_at(12.0)] * EPOCHS)


def test_what_arrived_is_left_alone_or_gets_noise_on_top():
    arrived = USERS.randomize(CLEAN, seed=4).astype(np.float64)
    for epoch in range(EPOCHS + 1):
        assert noise_of("robust").on_arrived(epoch, arrived) is arrived
    schedule = [24.0, 12.0, 6.0, 3.0]
    noise = noise_of("adaptive", schedule=schedule)
    assert noise.on_arrived(0, arrived) is arrived  # as it is held out
    assert noise.on_arrived(1, arrived) is arrived  # it has more noise than that already
    assert noise.on_arrived(2, arrived) is arrived
    for epoch in (3, 4):
        lacking = np.sqrt(deviation_at(schedule[epoch - 1]) ** 2 - deviation_at(12.0) ** 2)
        top = noise.on_arrived(epoch, arrived) - arrived
        assert abs(top.std() / lacking - 1) < 0.04  # 18,000 normal numbers: 7 standard deviations of the estimate
        assert abs(np.corrcoef(top.ravel(), arrived.ravel())[0, 1]) < 0.045
        assert abs((top + arrived - CLEAN).std() / deviation_at(schedule[epoch - 1]) - 1) < 0.06


@pytest.mark.parametrize("training", TRAININGS)
def test_no_way_leads_from_arrived_vectors_to_a_channel(training, monkeypatch):
    noise = noise_of(training)

    def refuse(*_):
        raise AssertionError("a release of what arrived")

    monkeypatch.setattr(Channel, "sample", refuse)
    for epoch in range(EPOCHS + 1):
        noise.on_arrived(epoch, CLEAN)
    if training != "plain":  # positive control
        with pytest.raises(AssertionError, match="a release"):
            noise.on_public(1, CLEAN)


@pytest.mark.parametrize(
    "randomizer", [PrivUnit(epsilon=4.0), L2Laplace(epsilon=4.0), Gaussian(epsilon=4.0, delta=1e-5)]
)
def test_every_kind_of_channel_is_scheduled(randomizer):
    noise = noise_of("adaptive", randomizer)
    for epoch, epsilon in enumerate(noise.epsilons, 1):
        seen = noise.on_public(epoch, CLEAN)
        expected = type(randomizer)(**randomizer.options() | {"epsilon": epsilon}).channel(DIMENSION)
        error = np.mean(((seen - expected.domain.bound(CLEAN)) ** 2).sum(axis=1))
        assert abs(error / expected.expected_squared_error - 1) < 0.2


def test_a_seed_repeats_it_and_none_does_not():
    for training in ("robust", "adaptive"):
        one, two = (noise_of(training).on_public(2, CLEAN) for _ in range(2))
        np.testing.assert_array_equal(one, two)
        assert (noise_of(training, seed=4).on_public(2, CLEAN) != one).any()
        fresh = [noise_of(training, seed=None).on_public(2, CLEAN) for _ in range(2)]
        assert (fresh[0] != fresh[1]).any()
    # the second epoch of one seed is not the first of the next
    assert (noise_of("robust", seed=1).on_public(2, CLEAN) != noise_of("robust", seed=2).on_public(1, CLEAN)).any()


def test_the_pooled_size_is_that_of_all_epochs():
    noise = noise_of("adaptive")
    sizes = [np.mean(CLEAN**2) + deviation_at(epsilon) ** 2 for epsilon in noise.epsilons]
    assert abs(noise.pooled(noise.on_public, CLEAN) / np.sqrt(np.mean(sizes)) - 1) < 0.1
    assert noise_of("plain").pooled(lambda epoch, vectors: 0 * vectors, CLEAN) == 1.0


def test_what_is_missing_is_said():
    with pytest.raises(ParameterError, match="training must be one of 'plain', 'robust', 'adaptive', got 'none'"):
        TrainingNoise("none", None, None, schedule=None, epochs=1, seed=None)
    with pytest.raises(ParameterError, match="give the randomizer, or the statement"):
        TrainingNoise("adaptive", USERS.channel(3), None, schedule="noise-rises-10/n", epochs=1, seed=None)
    with pytest.raises(ParameterError, match="give the channel, or training='plain'"):
        TrainingNoise("robust", None, None, schedule=None, epochs=1, seed=None).on_public(1, CLEAN)
    with pytest.raises(ParameterError, match="above 0 and at most 500"):
        noise_of("adaptive", schedule=[1e4] * EPOCHS)


def test_outputs_that_estimate_no_vector_get_no_noise_on_top():
    channel = copy.copy(USERS.channel(DIMENSION))
    object.__setattr__(channel, "expected_squared_error", np.inf)
    noise = TrainingNoise("adaptive", channel, USERS, schedule="noise-rises-10/n", epochs=1, seed=1)
    with pytest.raises(ParameterError, match="Laplace puts out estimates no vector"):
        noise.on_arrived(1, CLEAN)
    assert noise.on_public(1, CLEAN).shape == CLEAN.shape


# -- schedules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_a_name_says_what_becomes_of_the_noise(name, epochs):
    result = epsilons_of(name, epochs)
    assert len(result) == epochs
    rises = all(one > two for one, two in pairwise(result))
    falls = all(one < two for one, two in pairwise(result))
    assert {"noise-rises": rises, "noise-falls": falls}[name[:11]]


def test_the_studys_sequences():
    assert epsilons_of("noise-rises-1/n", 3) == (1.0, 1 / 2, 1 / 3)
    assert epsilons_of("noise-rises-10/n", 5) == (10.0, 5.0, 10 / 3, 2.5, 2.0)
    assert epsilons_of("noise-falls-10/n", 5) == epsilons_of("noise-rises-10/n", 5)[::-1]


def test_lists_and_functions():
    assert epsilons_of([3, 2.5, 1], 2) == (3.0, 2.5)
    assert epsilons_of(np.array([3.0, 2.0]), 2) == (3.0, 2.0)
    assert epsilons_of(partial(pow, 2.0), 3) == (2.0, 4.0, 8.0)


def test_what_is_no_schedule_is_refused():
    for schedule, message in [
        ("10/n", "schedule must be one of 'noise-rises-1/n', .*, got another text"),
        ([1.0, 2.0], "an epsilon for each of 3 epochs, got 2"),
        ([1.0, 0.0, 2.0], "epsilon of epoch 2 must be a finite number above 0, got 0.0"),
        (lambda epoch: 2 - epoch, "epsilon of epoch 2 must be a finite number above 0, got 0"),
        (lambda epoch: float("nan"), "epsilon of epoch 1 must be a finite number above 0, got nan"),
        (lambda epoch: None, "epsilon of epoch 1 must be a finite number above 0, got None"),
        (3.0, "a name, a list of epsilons or a function of the epoch's number, got float"),
    ]:
        with pytest.raises(ParameterError, match=message):
            epsilons_of(schedule, 3)
