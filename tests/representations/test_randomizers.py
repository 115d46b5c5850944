"""All randomizers: any input, any budget, pickles and folders; additive noise: law, errors, scale and grid."""

import math
import pickle
from contextlib import suppress
from dataclasses import replace
from itertools import product

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
from dptext.representations.published import DPNR
from dptext.representations.randomizer import REAL_ARITHMETIC

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
def test_randomizer_takes_any_numbers_and_any_budget_or_refuses_it(randomizer):
    with np.errstate(all="raise"):
        for vectors in HARD:
            assert np.isfinite(randomizer.randomize(vectors)).all()
    strange = np.array([[np.nan, np.inf, -np.inf, 1e300], [0.0] * 4, [-1e308, 1e308, 5e-324, 1.0]]).repeat(200, axis=0)
    plain = randomizer.channel(4).domain.bound(strange)
    np.testing.assert_array_equal(randomizer.randomize(strange, seed=1), randomizer.randomize(plain, seed=1))
    for epsilon, dimension in product((5e-324, 1e-12, 1e-9, 500), (1, 64)):
        with suppress(ParameterError):
            private = replace(randomizer, epsilon=epsilon).randomize(np.zeros((3, dimension)))
            assert np.isfinite(private).all()


@pytest.mark.parametrize("randomizer", ALL, ids=names)
def test_randomizer_returns_from_a_pickle_and_a_folder(randomizer, tmp_path):
    vectors = np.eye(4)[:2].repeat(500, axis=0)
    channel, repeated = randomizer.channel(4), pickle.loads(pickle.dumps(randomizer.channel(4)))
    assert np.array_equal(channel.sample(vectors, RandomBits(1)), repeated.sample(vectors, RandomBits(1)))
    assert not np.array_equal(repeated.sample(vectors, RandomBits()), repeated.sample(vectors, RandomBits()))
    words = MeanOfWords(load_vectors((["cat", "dog", "<unk>"], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])))
    kind = NATURAL[randomizer.natural_domain]
    bound = Bound(mean=[0.4, 0.4], kind=kind, radius=1.0 if kind in ("clip", "cube") else None)
    device = DeviceEncoder(words, bound, randomizer)
    device.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device")
    assert (loaded.randomizer, loaded.statement) == (randomizer, device.statement)
    assert np.array_equal(loaded.encode(["cat"], seed=1), device.encode(["cat"], seed=1))


# -- errors and moments -------------------------------------------------------------------------------------------

CASES = [
    *((randomizer, dimension) for randomizer in ON_A_GRID for dimension in (2, 64)),
    (Laplace(epsilon=4.0), 1),
    *((kind(epsilon=epsilon), d) for kind in (Piecewise, Hybrid) for epsilon, d in ((1.0, 1), (20.0, 64))),
    *((WeightedBits(epsilon=epsilon, bits=bits), 6) for epsilon, bits in ((20.0, 1), (40.0, 10), (99.0, None))),
    (OneBit(epsilon=12.0), 6),
    *((kind(epsilon=3.0), dimension) for kind in (SymmetricUnary, OptimizedUnary) for dimension in (2, 100)),
    (NormalisedLaplace(epsilon=4.0), 8),
    *((DPNR(epsilon=2.0, noise=noise, unsafe_as_published=True), 6) for noise in ("per coordinate", "one scalar")),
]


@pytest.mark.parametrize(("randomizer", "dimension"), CASES, ids=lambda value: str(value)[:40])
def test_outputs_are_unbiased_with_the_stated_error_and_two_thirds_or_three_halves_of_it_are_rejected(
    randomizer, dimension
):
    channel, draws = randomizer.channel(dimension), 600_000 // max(dimension, 6)
    along = np.linspace(-0.8, 1.0, dimension)
    x = channel.domain.bound(along[None] / np.sqrt((along**2).sum()))
    clean, private = channel.noiseless(x)[0], channel.sample(np.repeat(x, draws, axis=0), RandomBits(3)).astype(float)
    limit = stats.norm.isf(FALSE_ALARM / 2 / (dimension + 3))
    assert (np.abs(private.mean(axis=0) - clean) < limit * private.std(axis=0) / math.sqrt(draws)).all()
    errors = ((private - clean) ** 2).sum(axis=1)
    mean, spread, expected = errors.mean(), limit * errors.std() / math.sqrt(draws), channel.expected_squared_error
    rounding = dimension * getattr(channel, "_rounding", 0.0)  # the stated error of codes has rounding at its worst
    assert expected - rounding - spread < mean < expected + spread
    assert expected / 1.5 < mean - spread
    assert mean + spread < 1.5 * expected


MOMENTS = [
    *(PrivUnit(epsilon=6.0), PrivUnitG(epsilon=6.0), *ADDITIVE, Piecewise(epsilon=16.0), Hybrid(epsilon=30.0)),
    *(WeightedBits(epsilon=30.0, bits=3), SymmetricUnary(epsilon=3.0), OptimizedUnary(epsilon=3.0)),
    *(DPNR(epsilon=2.0, noise=noise, unsafe_as_published=True) for noise in ("per coordinate", "one scalar")),
]


@pytest.mark.parametrize("randomizer", MOMENTS, ids=lambda value: str(value)[:40])
def test_second_moments_are_debiased(randomizer):
    """Mean and spread of 40 blocks, by Student's t; the moments of the outputs themselves are rejected."""
    channel, generator = randomizer.channel(4), np.random.default_rng(3)
    x = generator.uniform(-1, 1, (200_000, 1)) * [1.0, 0.5, -0.8, 0.0] + generator.uniform(-0.2, 0.2, (200_000, 4))
    if isinstance(randomizer, WeightedBits):
        x = np.rint((np.clip(x, -1, 1) + 1) * 3.5) / 3.5 - 1  # codes, without rounding
    clean, private = channel.noiseless(x), channel.sample(x, RandomBits(7)).astype(float)
    naive = [z.T @ z / len(z) for z in np.split(private, 40)]
    change = np.stack([channel.debiased_second_moment(moment) for moment in naive])
    change -= np.stack([rows.T @ rows / len(rows) for rows in np.split(clean, 40)])
    limit = stats.t.isf(FALSE_ALARM / 32, 39) * change.std(axis=0, ddof=1) / math.sqrt(40)
    assert (np.abs(change.mean(axis=0)) <= limit + 1e-12).all()
    bias = np.abs(np.mean(naive, axis=0) - clean.T @ clean / len(clean))
    assert (bias > 2 * limit).any()


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
