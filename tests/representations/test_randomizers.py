"""All randomizers: any input, any budget, pickles and folders; additive noise: law, errors, scale and grid."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

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
    PrivacyStatement,
    PrivUnit,
    PrivUnitG,
    PureDP,
    SymmetricUnary,
    WeightedBits,
    load_vectors,
)
from dptext.errors import ParameterError
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import ApproxDP
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import NormalisedLaplace, onto_l1_sphere
from dptext.representations.bounds import NATURAL, Bound, Domain
from dptext.representations.randomizer import REAL_ARITHMETIC
from dptext.representations.registry import randomizer_from_parameters

FALSE_ALARM = 1e-6
DELTA = 1e-5
ADDITIVE = [Laplace(epsilon=4.0), L2Laplace(epsilon=4.0), Gaussian(epsilon=4.0, delta=DELTA)]
ON_A_GRID = [PrivUnit(epsilon=8.0), PrivUnitG(epsilon=8.0), *ADDITIVE]
ALL = [
    *ON_A_GRID,
    NormalisedLaplace(epsilon=4.0),
    *(kind(epsilon=8.0) for kind in (Piecewise, Hybrid, OneBit, WeightedBits, SymmetricUnary, OptimizedUnary)),
]
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


def names(randomizer):
    return randomizer.name


def directions(count, dimension, seed=1):
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# -- all randomizers -----------------------------------------------------------------------------------------------


def test_zero_outputs_have_no_sign():
    """-0.0 would tell on which side of a grid point the unrounded sum lay."""
    for randomizer in ON_A_GRID:
        private = randomizer.channel(64).sample(np.zeros((16_000, 64)), RandomBits(1))
        zeros = private[private == 0]
        assert zeros.size and not np.signbit(zeros).any(), randomizer


@pytest.mark.parametrize("randomizer", ALL, ids=names)
def test_randomizer_takes_any_numbers_without_warning(randomizer):
    with np.errstate(all="raise"):
        for vectors in HARD:
            assert np.isfinite(randomizer.randomize(vectors)).all()
            if hasattr(randomizer, "send"):
                assert len(randomizer.send(vectors)) == 1
    assert randomizer.randomize(np.zeros((0, 3))).shape[0] == 0
    values = np.full((3, 2), 7.0)
    randomizer.randomize(values)
    assert (values == 7.0).all()


@pytest.mark.parametrize("randomizer", ALL, ids=names)
def test_randomizer_takes_any_budget_or_refuses_it_by_name(randomizer):
    for epsilon in [5e-324, 1e-300, 1e-12, 1e-9, 500]:
        for dimension in [1, 2, 64]:
            try:
                private = replace(randomizer, epsilon=epsilon).randomize(np.zeros((3, dimension)))
            except ParameterError:
                continue
            assert np.isfinite(private).all()


@pytest.mark.parametrize("randomizer", ALL, ids=names)
def test_channel_is_pickled_without_random_state(randomizer):
    vectors = np.eye(4)[:2].repeat(500, axis=0)
    channel, repeated = randomizer.channel(4), pickle.loads(pickle.dumps(randomizer.channel(4)))
    assert np.array_equal(channel.sample(vectors, RandomBits(1)), repeated.sample(vectors, RandomBits(1)))
    assert not np.array_equal(repeated.sample(vectors, RandomBits()), repeated.sample(vectors, RandomBits()))
    with pytest.raises(AttributeError, match="frozen"):
        channel.guarantee = None


@pytest.mark.parametrize("randomizer", ALL, ids=names)
def test_randomizer_returns_from_a_folder_and_a_statement(randomizer, tmp_path):
    words = MeanOfWords(load_vectors((["cat", "dog", "<unk>"], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])))
    kind = NATURAL[randomizer.natural_domain]
    bound = Bound(mean=[0.4, 0.4], kind=kind, radius=1.0 if kind in ("clip", "cube") else None)
    device = DeviceEncoder(words, bound, randomizer)
    device.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device")
    assert (loaded.randomizer, loaded.statement) == (randomizer, device.statement)
    assert np.array_equal(loaded.encode(["cat"], seed=1), device.encode(["cat"], seed=1))
    statement = randomizer.statement(8)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    assert randomizer_from_parameters(statement.mechanism, statement.parameters).statement(8) == statement
    assert statement.slack == 0.0


# -- additive noise ------------------------------------------------------------------------------------------------

KINDS = pytest.mark.parametrize("randomizer", ADDITIVE, ids=names)


@pytest.mark.parametrize(
    ("dimension", "epsilon", "errors"),
    [(50, 4.0, (1250, 638, 234)), (64, 8.0, (512, 260, 92)), (768, 8.0, (73730, 36910, 1107))],
)
def test_additive_errors_are_those_of_the_table(dimension, epsilon, errors):
    for randomizer, error in zip(ADDITIVE, errors, strict=True):
        assert replace(randomizer, epsilon=epsilon).expected_squared_error(dimension) == pytest.approx(error, rel=0.003)
    one_hot = Laplace(epsilon=8.0, domain="one-hot")
    assert one_hot == Laplace(epsilon=8.0, domain=Domain.ONE_HOT)
    assert one_hot.expected_squared_error(1000) == pytest.approx(2 * 1000 * (2 / 8) ** 2)


@pytest.mark.parametrize(("dimension", "count"), [(1, 60_000), (64, 6_000)])
@KINDS
def test_additive_noise_has_the_expected_error_and_two_thirds_or_three_halves_of_it_are_rejected(
    randomizer, dimension, count
):
    x = directions(count, dimension)
    squared = ((randomizer.randomize(x, seed=1).astype(np.float64) - x) ** 2).sum(axis=1)
    error, spread = squared.mean(), squared.std() / math.sqrt(count)
    expected = randomizer.expected_squared_error(dimension)
    threshold = stats.norm.isf(FALSE_ALARM / 2)
    assert abs(error - expected) < threshold * spread < 0.2 * expected
    for share in (2 / 3, 3 / 2):
        assert abs(error - share**2 * expected) > threshold * spread


@KINDS
def test_additive_noise_is_unbiased_and_second_moments_are_debiased(randomizer):
    channel, threshold = randomizer.channel(4), stats.norm.isf(FALSE_ALARM / 16)
    generator = np.random.default_rng(3)
    x = generator.normal(size=(200_000, 4)) * [0.5, 0.2, 0.05, 0.0] + [0.0, 0.0, 0.0, 0.3]
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
    z = randomizer.randomize(x, seed=3).astype(np.float64)
    deviation = channel.deviation / math.sqrt(len(x))
    assert (np.abs((z - x).mean(axis=0)) < threshold * deviation).all()
    assert abs(z.mean(axis=0)[3]) > threshold * deviation
    products = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
    spread = (products.std(axis=0) / math.sqrt(len(z))).reshape(4, 4)
    naive, truth = z.T @ z / len(z), x.T @ x / len(x)
    assert (np.abs(channel.debiased_second_moment(naive) - truth) < threshold * spread).all()
    assert (np.abs(np.diag(naive - truth)) > threshold * np.diag(spread)).all()


@pytest.mark.parametrize("dimension", [1, 64])
@pytest.mark.parametrize("domain", list(Domain))
def test_additive_scale_follows_from_the_diameter_of_the_domain(domain, dimension):
    l1, l2 = domain.sensitivity(dimension)
    laplace = Laplace(epsilon=2.0, domain=domain).channel(dimension)
    spherical = L2Laplace(epsilon=2.0, domain=domain).channel(dimension)
    normal = Gaussian(epsilon=2.0, delta=DELTA, domain=domain).channel(dimension)
    for spent in (l1 / laplace.parameters()["scale"], l2 / spherical.parameters()["scale"]):
        assert 2.0 * (1 - 1e-8) < spent < 2.0  # never above the claim, and half of the diameter is not enough
    for share, holds in ((1.0, True), (1.001, False), (2.0, False)):
        delta = gaussian_delta(normal.parameters()["sigma"], epsilon=2.0, sensitivity=l2 * share)
        assert (delta <= DELTA * (1 + 2e-6)) == holds
    assert laplace.guarantee == spherical.guarantee == PureDP(2.0)
    assert normal.guarantee == ApproxDP(2.0, DELTA)


@KINDS
def test_additive_outputs_lie_on_the_public_grid_and_each_row_has_its_own_noise(randomizer):
    channel = randomizer.channel(6)
    cells = channel.sample(directions(500, 6), RandomBits(4)).astype(np.float64) / channel.step
    np.testing.assert_allclose(cells, np.rint(cells), rtol=2**-23, atol=1e-9)
    zeros = randomizer.randomize(np.zeros((20_000, 64)), seed=5)
    assert len(np.unique(zeros[:, :3], axis=0)) == 20_000
    np.testing.assert_array_equal(zeros, randomizer.randomize(np.zeros((20_000, 64)), seed=5))
    assert randomizer.randomize(np.zeros((2, 70_000))).shape == (2, 70_000)
    assert REAL_ARITHMETIC not in randomizer.statement(64).assumptions


# -- FEDERATE ------------------------------------------------------------------------------------------------------


def test_normalised_laplace_has_scale_two_over_epsilon_and_half_of_it_is_rejected():
    x = np.array([3.0, -5.0, 2.0])
    for epsilon in (0.5, 8.0):
        randomizer = NormalisedLaplace(epsilon=epsilon)
        noise = randomizer.randomize(np.tile(x, (30_000, 1)), seed=1).astype(float) - x / 10
        for column in noise.T:
            assert stats.kstest(column, "laplace", (0, 2 / epsilon)).pvalue > FALSE_ALARM
            for wrong in (0.5, 1 / 1.5, 1.5):
                assert stats.kstest(column, "laplace", (0, wrong * 2 / epsilon)).pvalue < FALSE_ALARM
        error = (noise**2).sum(axis=1)
        limit = stats.norm.isf(FALSE_ALARM / 2) * error.std() / math.sqrt(len(error))
        assert abs(error.mean() - randomizer.expected_squared_error(3)) < limit


def test_normalised_laplace_epsilon_is_attained_by_opposite_vectors_and_never_exceeded():
    channel = NormalisedLaplace(epsilon=3.0).channel(5)
    scale, axis = channel.parameters()["scale"], np.eye(5)[:1]
    assert np.abs(channel.noiseless(axis) - channel.noiseless(-axis)).sum() / scale == pytest.approx(3.0, rel=1e-8)
    points = channel.noiseless(np.random.default_rng(2).normal(size=(200, 5)) ** 3)
    distance = np.abs(points[:, None] - points[None]).sum(axis=2) / scale
    assert 0.8 * 3.0 < distance.max() <= 3.0 * (1 + 1e-9)
    rows = np.random.default_rng(3).normal(size=(10, 8))
    np.testing.assert_allclose(onto_l1_sphere(rows), onto_l1_sphere(1e5 * rows))
