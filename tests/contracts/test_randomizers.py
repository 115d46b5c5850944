"""What every randomizer keeps: its guarantee, its statement, total functions and fresh noise.

Audits refute a true claim at most once in a million.
"""

import math
import pickle

import numpy as np
import pytest

import dptext
from contracts.forked import outputs_of_processes
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.randomness import RandomBits
from dptext.representations.registry import PUBLISHED_ONLY, RANDOMIZERS, randomizer_from_parameters

EVERY = RANDOMIZERS | PUBLISHED_ONLY
UNSAFE = {"unsafe_as_published": True}
OPTIONS = {"Gaussian": {"delta": 1e-3}, "OME": UNSAFE | {"lambda_": 100.0}}
STRANGE = np.array(
    [[0.0] * 4, [np.nan] * 4, [np.inf, 0, 0, -np.inf], [-0.0, 1e308, -1e308, np.nan], [5e-324, 0, 0, 0], [1e308] * 4]
)


def build(name, epsilon=4.0, **options):
    return EVERY[name](epsilon=epsilon, **OPTIONS.get(name, UNSAFE if name in PUBLISHED_ONLY else {}), **options)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_the_guarantee_stands_and_too_little_noise_is_refuted(name):
    randomizer, broken = build(name, 2.0), build(name, 6.0 if name == "Gaussian" else 4.0)
    known = {"samples": 20_000, "seed": 1}
    verdict = dptext.audit(randomizer, dimension=3, **known)
    assert not verdict.refuted and verdict.refutable
    assert dptext.audit(broken.channel(3), randomizer.statement(3), **known).refuted
    for dimension in (2, 768):
        for epsilon in (0.01, 8.0, 500.0):
            channel = build(name, epsilon).channel(dimension)
            assert 0 < channel.guarantee.epsilon <= epsilon
            assert channel.width >= 1 and channel.dimension == dimension
            assert 0 < channel.expected_squared_error < math.inf
            assert np.isfinite(channel.sample(np.ones((2, dimension)), RandomBits(1))).all()


@pytest.mark.parametrize("name", EVERY)
def test_a_randomizer_is_frozen_and_its_statement_builds_it_again(name):
    randomizer = build(name)
    statement, channel = randomizer.statement(8), randomizer.channel(8)
    assert randomizer_from_parameters(statement.mechanism, statement.parameters).statement(8) == statement
    assert pickle.loads(pickle.dumps(randomizer)) == randomizer
    assert statement.guarantee == channel.guarantee
    assert not statement.seeded and randomizer.statement(8, seeded=True).seeded
    assert randomizer.expected_squared_error(8) == channel.expected_squared_error
    with pytest.raises(AttributeError):
        randomizer.epsilon = 100.0
    for frozen in (channel, pickle.loads(pickle.dumps(channel))):
        for attribute in (*vars(frozen), "new"):
            with pytest.raises(AttributeError, match=r"frozen|immutable"):
                setattr(frozen, attribute, 1.0)
    for epsilon in (0, math.inf, 501):  # other values: `test_numbers`
        with pytest.raises(ParameterError, match="epsilon must be"):
            build(name, epsilon)
    for dimension in (0, 2.5, True, 2**20 + 1):
        with pytest.raises(ParameterError, match="dimension"):
            randomizer.channel(dimension)
    if name in PUBLISHED_ONLY:
        options = {key: value for key, value in OPTIONS.get(name, {}).items() if key not in UNSAFE}
        with pytest.raises(RefusedError):
            EVERY[name](epsilon=4.0, **options)
        published = build(name, 1.0).statement(8)
        assert published.claimed_epsilon == 1.0 < published.epsilon


@pytest.mark.parametrize("name", EVERY)
def test_any_vector_has_an_output_and_only_seeds_repeat(name, monkeypatch):
    randomizer, vectors = build(name), np.random.default_rng(1).normal(size=(5_000, 8))
    with np.errstate(all="raise"):
        private = randomizer.randomize(np.tile(STRANGE, (100, 1)), seed=1)
        assert randomizer.randomize(np.empty((0, 4))).shape == (0, private.shape[1])
    assert private.dtype == np.float32 and np.isfinite(private).all()
    with pytest.raises(ParameterError, match=r"shape \(n, d\)"):
        randomizer.randomize([1.0, 2.0])
    before, draws = vectors.copy(), randomizer.randomize(vectors, seed=1)
    assert (vectors == before).all()
    assert not np.array_equal(randomizer.randomize(vectors), randomizer.randomize(vectors))
    assert not np.array_equal(draws, randomizer.randomize(vectors, seed=2))
    monkeypatch.setattr("dptext.threads.available_cores", lambda: 1)
    np.testing.assert_array_equal(draws, randomizer.randomize(vectors, seed=1))


@pytest.mark.parametrize("name", [name for name in EVERY if hasattr(EVERY[name], "send")])
def test_sent_bytes_decode_to_the_sample(name):
    for dimension in (5, 130):
        channel = build(name).channel(dimension)
        vectors = np.random.default_rng(2).uniform(-1.2, 1.2, (300, dimension))
        sent = channel.send(vectors, RandomBits(5))
        assert sent.dtype == np.uint8
        np.testing.assert_array_equal(channel.decode(sent), channel.sample(vectors, RandomBits(5)))
        assert len(channel.send(np.empty((0, dimension)), RandomBits(5))) == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_forked_processes_draw_afresh():
    randomizers, zeros = {name: build(name, 1.0) for name in EVERY}, np.zeros((64, 6))

    def draw(inherited):
        return {name: randomizer.randomize(zeros).tobytes() for name, randomizer in inherited.items()}

    draw(randomizers)
    outputs = outputs_of_processes(randomizers, draw)
    for name in EVERY:
        assert len({output[name] for output in outputs}) == 3, name
