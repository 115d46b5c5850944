"""Additive randomizers: their errors, their promise, and every kind of input."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from dptext import PrivacyStatement, PureDP
from dptext.errors import ParameterError
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import ApproxDP
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, L2Laplace, Laplace
from dptext.representations.bounds import Domain
from dptext.representations.randomizer import REAL_ARITHMETIC

FALSE_ALARM = 1e-6
DELTA = 1e-5
ALL = [Laplace(epsilon=4.0), L2Laplace(epsilon=4.0), Gaussian(epsilon=4.0, delta=DELTA)]
KINDS = pytest.mark.parametrize("randomizer", ALL, ids=lambda randomizer: randomizer.name)


@pytest.mark.parametrize(
    ("dimension", "epsilon", "errors"),
    [(50, 4.0, (1250, 638, 234)), (64, 8.0, (512, 260, 92)), (768, 8.0, (73730, 36910, 1107))],
)
def test_the_table_of_errors(dimension, epsilon, errors):
    randomizers = Laplace(epsilon=epsilon), L2Laplace(epsilon=epsilon), Gaussian(epsilon=epsilon, delta=DELTA)
    for randomizer, error in zip(randomizers, errors, strict=True):
        # printed to three or four digits
        assert randomizer.expected_squared_error(dimension) == pytest.approx(error, rel=0.003)


def _vectors(count, dimension, seed=1):
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(("dimension", "count"), [(1, 60_000), (64, 6_000)])
@KINDS
def test_the_error_is_the_expected_one_and_two_thirds_or_three_halves_of_the_noise_are_not(
    randomizer, dimension, count
):
    """The mean of squared errors, over independent rows, is normal; and within 2% of what is expected, or sampling."""
    x = _vectors(count, dimension)
    squared = ((randomizer.randomize(x, seed=1).astype(np.float64) - x) ** 2).sum(axis=1)
    error, spread = squared.mean(), squared.std() / math.sqrt(count)
    expected = randomizer.expected_squared_error(dimension)
    threshold = stats.norm.isf(FALSE_ALARM / 2)
    assert abs(error - expected) < threshold * spread
    assert threshold * spread < 0.2 * expected
    for share in (2 / 3, 3 / 2):
        assert abs(error - share**2 * expected) > threshold * spread


@KINDS
def test_outputs_are_unbiased(randomizer):
    """Along x, and across it."""
    x = np.zeros((20_000, 4))
    x[:, 1] = 0.9
    mean = randomizer.randomize(x, seed=2).astype(np.float64).mean(axis=0)
    deviation = randomizer.channel(4).deviation / math.sqrt(20_000)
    assert (np.abs(mean - x[0]) < stats.norm.isf(FALSE_ALARM / 8) * deviation).all()
    assert abs(mean[1]) > stats.norm.isf(FALSE_ALARM / 8) * deviation


@KINDS
def test_second_moments_are_told_without_the_noise(randomizer):
    generator = np.random.default_rng(3)
    x = generator.normal(size=(200_000, 3)) * [0.5, 0.2, 0.05]
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
    z = randomizer.randomize(x, seed=3).astype(np.float64)
    debiased = randomizer.channel(3).debiased_second_moment(z.T @ z / len(z))
    products = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
    spread = (products.std(axis=0) / math.sqrt(len(z))).reshape(3, 3)
    threshold = stats.norm.isf(FALSE_ALARM / 12)
    assert (np.abs(debiased - x.T @ x / len(x)) < threshold * spread).all()
    assert (np.abs(np.diag(z.T @ z / len(z) - x.T @ x / len(x))) > threshold * np.diag(spread)).all()


# -- the promise -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 64])
@pytest.mark.parametrize("domain", list(Domain))
def test_the_scale_follows_from_the_diameter_of_the_domain(domain, dimension):
    distance = domain.sensitivity(dimension)
    laplace = Laplace(epsilon=2.0, domain=domain).channel(dimension)
    spherical = L2Laplace(epsilon=2.0, domain=domain).channel(dimension)
    normal = Gaussian(epsilon=2.0, delta=DELTA, domain=domain).channel(dimension)
    # epsilon = diameter / scale, never above what is claimed and not much below; half of the diameter does not do
    for spent in (distance.l1 / laplace.parameters()["scale"], distance.l2 / spherical.parameters()["scale"]):
        assert 2.0 * (1 - 1e-8) < spent < 2.0
    for share, holds in ((1.0, True), (1.001, False), (2.0, False)):
        sigma = normal.parameters()["sigma"]
        delta = gaussian_delta(sigma, epsilon=2.0, sensitivity=distance.l2 * share)
        assert (delta <= DELTA * (1 + 2e-6)) == holds
    assert laplace.guarantee == spherical.guarantee == PureDP(2.0)
    assert normal.guarantee == ApproxDP(2.0, DELTA)


def test_no_two_vectors_of_a_domain_are_farther_apart_than_its_diameter():
    """Also as doubles: what the scale allows for is more than what rounding adds."""
    values = np.random.default_rng(4).normal(size=(400, 33)) * 10.0 ** np.random.default_rng(5).uniform(-9, 9, (400, 1))
    for domain in Domain:
        inside = domain.bound(np.concatenate([values, -values]))
        distance = domain.sensitivity(33)
        difference = inside[:400] - inside[400:]
        assert np.abs(difference).sum(axis=1).max() <= distance.l1 * (1 + 2.0**-30)
        assert np.sqrt((difference**2).sum(axis=1)).max() <= distance.l2 * (1 + 2.0**-30)


@KINDS
def test_the_statement_says_what_rebuilds_the_randomizer(randomizer):
    statement = randomizer.statement(64)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    assert statement.slack == 0.0
    assert REAL_ARITHMETIC not in statement.assumptions
    repeated = type(randomizer)(**{name: statement.parameters[name] for name in randomizer.options()})
    assert repeated == randomizer
    assert type(randomizer.options()["domain"]) is str
    assert pickle.loads(pickle.dumps(randomizer)) == randomizer


# -- what comes in and goes out --------------------------------------------------------------------------------


@KINDS
def test_every_vector_has_an_output(randomizer):
    for domain in list(Domain):
        wild = np.zeros((8, 5))
        wild[1] = np.nan
        wild[2] = np.inf
        wild[3] = -np.inf
        wild[4] = 1e308
        wild[5] = 5e-324
        wild[6] = [1.0, np.nan, -np.inf, 0.0, 1e300]
        private = type(randomizer)(**{**randomizer.options(), "domain": domain}).randomize(wild)
        assert private.shape == (8, 5)
        assert private.dtype == np.float32
        assert np.isfinite(private).all()


@KINDS
def test_outputs_lie_on_the_public_grid(randomizer):
    channel = randomizer.channel(6)
    private = channel.sample(_vectors(500, 6), RandomBits(4))
    cells = private.astype(np.float64) / channel.step
    np.testing.assert_allclose(cells, np.rint(cells), rtol=2**-23, atol=1e-9)


@KINDS
def test_many_rows_go_in_blocks_and_come_out_once(randomizer):
    count = 20_000
    zeros = randomizer.randomize(np.zeros((count, 64)), seed=5)
    assert len(np.unique(zeros[:, :3], axis=0)) == count
    np.testing.assert_array_equal(zeros, randomizer.randomize(np.zeros((count, 64)), seed=5))
    assert randomizer.randomize(np.zeros((0, 64))).shape == (0, 64)
    assert randomizer.randomize(np.zeros((2, 70_000))).shape == (2, 70_000)
    values = np.full((3, 2), 7.0)
    randomizer.randomize(values)
    assert (values == 7.0).all()


def test_bad_arguments_are_named():
    for build, message in [
        (lambda: Gaussian(epsilon=1.0, delta=0.0), "delta must be a number above 0 and below 1, got 0"),
        (lambda: Gaussian(epsilon=1.0, delta=1.0), "below 1"),
        (lambda: Gaussian(epsilon=1.0, delta="1e-5"), "a number above 0 and below 1, got another text"),
        (lambda: Laplace(epsilon=1.0, domain="disc"), "'unit sphere', 'unit cube', 'one-hot', got 'disc'"),
        (lambda: Laplace(epsilon=1e-300).channel(4), "choose a larger epsilon"),
        (lambda: Gaussian(epsilon=1e-300, delta=1e-300).channel(4), "choose a larger epsilon"),
    ]:
        with pytest.raises(ParameterError, match=message):
            build()


def test_the_domain_goes_by_its_name_too():
    assert Laplace(epsilon=1.0, domain="one-hot") == Laplace(epsilon=1.0, domain=Domain.ONE_HOT)
    assert Laplace(epsilon=8.0, domain="one-hot").expected_squared_error(1000) == pytest.approx(2 * 1000 * (2 / 8) ** 2)
