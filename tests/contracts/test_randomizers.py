"""What every randomizer of the registry keeps: its guarantee, its error, its statement, total functions, fresh noise.

Audits refute a true claim, and tests of means reject a true one, at most once in a million.
"""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

import dptext
from contracts.forked import outputs_of_processes
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.randomness import RandomBits
from dptext.representations.registry import PUBLISHED_ONLY, RANDOMIZERS, randomizer_from_parameters

FALSE_ALARM = 1e-6
EVERY = RANDOMIZERS | PUBLISHED_ONLY
UNSAFE = {"unsafe_as_published": True}
OPTIONS = {"Gaussian": {"delta": 1e-3}, "OME": UNSAFE | {"lambda_": 100.0}}
STRANGE = np.array(
    [[0.0] * 4, [np.nan] * 4, [np.inf, 0, 0, -np.inf], [-0.0, 1e308, -1e308, np.nan], [5e-324, 0, 0, 0], [1e308] * 4]
)


def build(name, epsilon=4.0, **options):
    return EVERY[name](epsilon=epsilon, **OPTIONS.get(name, UNSAFE if name in PUBLISHED_ONLY else {}), **options)


def unit_vector(randomizer, dimension):
    """A vector of length 1 of its domain; along no axis, where the domain has such."""
    along = np.linspace(-0.8, 1.0, dimension)
    return randomizer.natural_domain.bound(along[None] / np.sqrt((along**2).sum()))[0]


# -- guarantee and error -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_the_promise_stands_and_that_of_a_twin_with_too_little_noise_is_refuted(name):
    randomizer, twin = build(name, 2.0), build(name, 6.0 if name == "Gaussian" else 4.0)
    known = {"samples": 40_000, "seed": 1}
    verdict = dptext.audit(randomizer, dimension=3, **known)
    assert not verdict.refuted and verdict.refutable
    assert dptext.audit(twin.channel(3), randomizer.statement(3), **known).refuted


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_no_more_is_promised_than_was_asked_for_at_any_budget(name):
    for dimension in [2, 768]:
        for epsilon in [0.01, 8.0, 500.0]:
            channel = build(name, epsilon).channel(dimension)
            assert 0 < channel.guarantee.epsilon <= epsilon
            assert channel.width >= 1 and channel.dimension == dimension
            assert 0 < channel.expected_squared_error < math.inf
            assert np.isfinite(channel.sample(np.ones((2, dimension)), RandomBits(1))).all()


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_outputs_are_unbiased_and_no_noisier_than_stated(name):
    randomizer, draws = build(name), 40_000
    channel, x = randomizer.channel(4), unit_vector(randomizer, 4)
    private = channel.sample(np.tile(x, (draws, 1)), RandomBits(2)).astype(np.float64)
    x = channel.noiseless(x[None])[0]
    limit = stats.norm.isf(FALSE_ALARM / 2 / 6) / math.sqrt(draws)
    deviations = np.abs(private.mean(axis=0) - x) / private.std(axis=0)
    assert deviations.max() < limit
    assert (np.abs(1.5 * private.mean(axis=0) - x) / private.std(axis=0)).max() > limit
    errors = ((private - x) ** 2).sum(axis=1)
    assert errors.mean() - limit * errors.std() < channel.expected_squared_error
    assert errors.mean() + limit * errors.std() > channel.expected_squared_error / 1.5


@pytest.mark.parametrize("name", PUBLISHED_ONLY)
def test_what_does_not_keep_what_is_printed_is_refused_unless_asked_for(name):
    options = {key: value for key, value in OPTIONS.get(name, {}).items() if key not in UNSAFE}
    with pytest.raises(RefusedError):
        EVERY[name](epsilon=4.0, **options)
    statement = build(name, 1.0).statement(8)
    assert statement.claimed_epsilon == 1.0
    assert statement.epsilon > 1.0


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_its_statement_its_pickle_and_its_channel_say_the_same(name):
    randomizer = build(name)
    statement = randomizer.statement(8)
    repeated = randomizer_from_parameters(statement.mechanism, statement.parameters)
    assert repeated.statement(8) == statement
    assert pickle.loads(pickle.dumps(randomizer)) == randomizer
    assert statement.guarantee == randomizer.channel(8).guarantee
    assert not statement.seeded and randomizer.statement(8, seeded=True).seeded
    assert randomizer.expected_squared_error(8) == randomizer.channel(8).expected_squared_error


@pytest.mark.parametrize("name", EVERY)
def test_neither_it_nor_its_channel_can_drift_away_from_the_statement(name):
    randomizer = build(name)
    with pytest.raises(AttributeError):
        randomizer.epsilon = 100.0
    for channel in (randomizer.channel(8), pickle.loads(pickle.dumps(randomizer.channel(8)))):
        for attribute in (*vars(channel), "new"):
            with pytest.raises(AttributeError, match=r"frozen|immutable"):
                setattr(channel, attribute, 1.0)


@pytest.mark.parametrize("name", EVERY)
def test_an_epsilon_or_a_dimension_out_of_range_is_refused(name):
    """Numbers that are none: `test_numbers`."""
    for epsilon in (0, math.inf, 501):
        with pytest.raises(ParameterError, match="epsilon must be"):
            build(name, epsilon)
    for dimension in (0, 2.5, True, 2**20 + 1):
        with pytest.raises(ParameterError, match="dimension"):
            build(name).channel(dimension)


# -- draws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_no_vector_is_an_error_and_none_is_changed(name):
    randomizer = build(name)
    with np.errstate(all="raise"):
        private = randomizer.randomize(np.tile(STRANGE, (100, 1)), seed=1)
        assert randomizer.randomize(np.empty((0, 4))).shape == (0, private.shape[1])
    assert private.dtype == np.float32
    assert np.isfinite(private).all()
    values = np.full((3, 4), 7.0)
    randomizer.randomize(values)
    assert (values == 7.0).all()
    with pytest.raises(ParameterError, match=r"shape \(n, d\)"):
        randomizer.randomize([1.0, 2.0])


@pytest.mark.parametrize("name", [name for name in EVERY if hasattr(EVERY[name], "send")])
@pytest.mark.parametrize("dimension", [5, 130])
def test_what_is_sent_decodes_to_what_is_sampled(name, dimension):
    channel = build(name).channel(dimension)
    vectors = np.random.default_rng(2).uniform(-1.2, 1.2, (300, dimension))
    sent = channel.send(vectors, RandomBits(5))
    assert sent.dtype == np.uint8
    np.testing.assert_array_equal(channel.decode(sent), channel.sample(vectors, RandomBits(5)))
    assert len(channel.send(np.empty((0, dimension)), RandomBits(5))) == 0


@pytest.mark.parametrize("name", EVERY)
def test_seeds_repeat_their_absence_does_not_and_cores_change_nothing(name, monkeypatch):
    randomizer, vectors = build(name), np.random.default_rng(1).normal(size=(5_000, 8))
    draws = randomizer.randomize(vectors, seed=1)
    assert not np.array_equal(randomizer.randomize(vectors), randomizer.randomize(vectors))
    assert not np.array_equal(draws, randomizer.randomize(vectors, seed=2))
    monkeypatch.setattr("dptext.threads.available_cores", lambda: 1)
    np.testing.assert_array_equal(draws, randomizer.randomize(vectors, seed=1))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
@pytest.mark.parametrize("name", EVERY)
def test_forked_processes_draw_afresh(name):
    randomizer, zeros = build(name, 1.0), np.zeros((64, 6))
    randomizer.randomize(zeros)
    outputs = outputs_of_processes(randomizer, lambda forked_value: forked_value.randomize(zeros))
    assert len({output.tobytes() for output in outputs}) == 3
