"""What an adversary tried: signs of zeros, budgets of next to nothing, values that are hard to read as numbers."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dptext import (
    DeviceEncoder,
    Gaussian,
    Hybrid,
    L2Laplace,
    Laplace,
    MeanOfWords,
    OneBit,
    OptimizedUnary,
    Piecewise,
    PrivUnit,
    PrivUnitG,
    SymmetricUnary,
    WeightedBits,
    load_vectors,
)
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Bound

ON_A_GRID = [
    PrivUnit(epsilon=8.0),
    PrivUnitG(epsilon=8.0),
    Laplace(epsilon=8.0),
    L2Laplace(epsilon=8.0),
    Gaussian(epsilon=8.0, delta=1e-5),
]


def test_a_zero_has_no_sign():
    """-0.0 would tell on which side of a grid point the sum lay in doubles: rounding was to hide just that."""
    for randomizer in ON_A_GRID:
        # wide enough that some of a million coordinates round to 0
        private = randomizer.channel(64).sample(np.zeros((16_000, 64)), RandomBits(1))
        zeros = private[private == 0]
        assert zeros.size
        assert not np.signbit(zeros).any()


@pytest.mark.parametrize("randomizer", [PrivUnit, PrivUnitG])
@pytest.mark.parametrize("dimension", [2, 3, 64])
def test_no_cap_leans_away_from_what_it_hides(randomizer, dimension):
    """1e-9 nats are kept back for arithmetic: at epsilon 1e-10 the cap was avoided, which told nine times as much."""
    for epsilon in (1e-300, 1e-10, 1e-9, 9e-9):
        with pytest.raises(ParameterError, match="raise epsilon"):
            randomizer(epsilon=epsilon).channel(dimension)
    channel = randomizer(epsilon=1.1e-8).channel(dimension)
    mass = channel.parameters()["cap_mass"]
    loss = np.log(channel.chance) + np.log1p(-mass) - np.log(mass) - np.log1p(-channel.chance)
    assert 0 < loss <= 1.1e-8
    assert channel.shrinkage > 0


HARD = [
    [[5e-324, 0.0]],
    [[1e-310, -1e-320]],
    [[1e308, 1e-308]],
    [[float("inf"), float("-inf")]],
    [[float("nan"), -0.0]],
    [[10**400, -(10**400)]],
    [[10**400, None]],
    np.array([[np.longdouble("1e4000"), 1]]),
    np.array([[np.inf, 6e-8]], dtype=np.float16),
    np.array([[2**64 - 1, 0]], dtype=np.uint64),
    np.array([[True, False]]),
]
EVERY = [
    *ON_A_GRID,
    Piecewise(epsilon=8.0),
    Hybrid(epsilon=8.0),
    OneBit(epsilon=8.0),
    WeightedBits(epsilon=8.0),
    SymmetricUnary(epsilon=8.0),
    OptimizedUnary(epsilon=8.0),
]


def test_no_number_raises_or_warns_even_where_numpy_was_told_to_raise():
    for randomizer in EVERY:
        with np.errstate(all="raise"):
            for vectors in HARD:
                assert np.isfinite(randomizer.randomize(vectors)).all()
                if hasattr(randomizer, "send"):
                    assert len(randomizer.send(vectors)) == 1


def test_what_is_not_numbers_is_refused_by_its_type():
    for vectors in [
        [["1.5", "2"]],
        [[1j, 0.0]],
        np.array([["2020-01-01"]], dtype="M8[D]"),
        [[1.0], [1.0, 2.0]],
        [[{}]],
        7.0,
        np.array([["7", 1.0]], dtype=object),
    ]:
        with pytest.raises(ParameterError):
            PrivUnit(epsilon=8.0).randomize(vectors)


def test_no_word_vector_is_too_large_for_a_mean():
    words = load_vectors((["a", "b", "<unk>"], [[3e38, 0.0], [3e38, 1.0], [0.0, 0.0]]))
    for weighting in (None, 1e-3, 1e-30):
        means = MeanOfWords(words, weighting=weighting).encode(["a b", "b", "", "a " * 40_000])
        assert np.isfinite(means).all()
        assert np.isfinite(MeanOfWords(words, weighting=weighting).public_sample(8)).all()
    with pytest.raises(ParameterError, match="at least 1e-30"):  # all weights would be 0
        MeanOfWords(words, weighting=5e-324)
    assert MeanOfWords(words).encode(["a b"])[0] == pytest.approx([3e38, 0.5])


def test_no_direction_is_too_large_for_a_bound():
    """Sums of huge products of both signs have no value: they count as 0, like any NaN."""
    bound = Bound(mean=[1e308, 0.0], directions=[[1e300, 1.0], [1e300, -1e300]])
    with np.errstate(all="raise"):
        vectors = bound.apply([[1e38, -1e38], [-1e38, np.inf], [5e-324, 0.0]])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)


def test_a_channel_goes_to_another_process():
    """Estimators hold one; it has no random state, so a copy repeats nothing."""
    for randomizer in EVERY:
        vectors = np.eye(4)[:2].repeat(500, axis=0)
        channel = pickle.loads(pickle.dumps(randomizer.channel(4)))
        assert np.array_equal(
            channel.sample(vectors, RandomBits(1)), randomizer.channel(4).sample(vectors, RandomBits(1))
        )
        # of 4,000 bits that are flipped with chance .018 the same ones twice: never
        assert not np.array_equal(channel.sample(vectors, RandomBits()), channel.sample(vectors, RandomBits()))


@pytest.mark.parametrize("randomizer", EVERY, ids=lambda randomizer: randomizer.name)
def test_every_randomizer_comes_back_from_a_folder(randomizer, tmp_path):
    """An option that was left open stands in the statement as what came of it: no difference."""
    words = MeanOfWords(load_vectors((["cat", "dog", "<unk>"], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])))
    kind = {"unit sphere": "normalise", "unit ball": "clip", "unit cube": "cube", "one-hot": "one-hot"}[
        randomizer.domains[0]
    ]
    bound = Bound(mean=[0.4, 0.4], kind=kind, radius=1.0 if kind in ("clip", "cube") else None)
    device = DeviceEncoder(words, bound, randomizer)
    device.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device")
    assert loaded.randomizer == randomizer
    assert loaded.statement == device.statement
    assert np.array_equal(loaded.encode(["cat"], seed=1), device.encode(["cat"], seed=1))


def test_every_budget_is_taken_or_refused_by_name():
    for epsilon in [5e-324, 1e-300, 1e-12, 1e-9, 500]:
        for dimension in [1, 2, 64]:
            for example in EVERY:
                randomizer = replace(example, epsilon=epsilon)
                try:
                    private = randomizer.randomize(np.zeros((3, dimension)))
                except ParameterError:
                    continue
                assert np.isfinite(private).all()
