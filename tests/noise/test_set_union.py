"""Weighted set union: exact privacy losses, the sampler, and versions that break the guarantee."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, kstest, laplace, norm

from dptext.noise.gaussian_sums import CELL, grid_step
from dptext.noise.set_union import SetUnion, threshold, weights
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-7  # of each statistical check
DRAWS = 20_000
GRID = [
    *((epsilon, delta, 7) for epsilon in (0.1, 1.0, 100.0) for delta in (1e-9, 1e-6, 0.3)),
    *((epsilon, 1e-6, keys) for epsilon in (0.1, 8.0) for keys in (1, 100)),
    (0.001, 0.99, 5),
    (100.0, 1e-100, 50),
]
NOISES = ("gaussian", "laplace")


def tail(noise, gap):
    return (norm if noise == "gaussian" else laplace).sf(gap)


def appears(union, size, minimum):
    """Probability that a key of one user with ``size`` keys reaches ``minimum``: the noisy sum is rounded to a grid."""
    weight = int(weights(size, union.noise)) * CELL
    return tail(union.noise, (minimum - grid_step(union.scale) / 2 - weight) / union.scale)


def profile(epsilon, sensitivity, scale, noise):
    """Exact delta of the noise at any epsilon (Balle and Wang 2018, Theorem 8); Laplace: one coordinate."""
    mu = sensitivity / scale
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    if noise == "laplace":
        return max(0.0, -math.expm1((epsilon - mu) / 2)) if epsilon > -mu else -math.expm1(epsilon)
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))


def exact_delta(union, epsilon, *, weight_of=weights):
    """Largest delta in both directions, over users with m keys of which n are new."""
    power = 0.5 if union.noise == "gaussian" else 1.0
    result = 0.0
    for size in range(1, union.keys + 1):
        weight = int(weight_of(size, union.noise)) * CELL
        alone = tail(union.noise, (union.threshold - grid_step(union.scale) / 2 - weight) / union.scale)
        for new in range(size + 1):
            stays = (1 - alone) ** new  # no new key is released
            moved = weight * (size - new) ** power
            forward = (1 - stays) + stays * profile(epsilon - math.log(stays), moved, union.scale, union.noise)
            backward = profile(epsilon + math.log(stays), moved, union.scale, union.noise)
            result = max(result, forward, backward)
    return result


# -- exact -----------------------------------------------------------------------------------------------------


def test_a_user_has_norm_1_and_no_weight_could_be_larger():
    sizes = np.r_[np.arange(1, 100_000), np.arange(2**20 - 100, 2**20 + 1)]
    cells = weights(sizes)
    assert (sizes * cells**2 <= 2**48).all() and (sizes * (cells + 1) ** 2 > 2**48).all()
    cells = weights(sizes, "laplace")
    assert (sizes * cells <= 2**24).all() and (sizes * (cells + 1) > 2**24).all()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 4.3, 47.3])
def test_the_threshold_is_the_smallest_that_hides_the_keys_of_every_user(noise, scale):
    """(1) for each number of keys; a step lower, it fails for some number (up to the rounding of a weight)."""
    for keys in (1, 2, 3, 5, 50, 3000):
        for delta in (0.9, 0.3, 1e-3, 1e-9, 1e-100):
            union = SetUnion.build(scale, delta, keys, noise)
            sizes = np.arange(1, keys + 1)
            weight = weights(sizes, noise) * CELL
            step = grid_step(scale)

            def names(minimum, union=union, sizes=sizes, weight=weight, step=step):
                return (sizes * tail(union.noise, (minimum - step / 2 - weight) / union.scale)).max()

            assert math.fmod(union.threshold, step) == 0
            assert names(union.threshold) <= delta
            lower = names(union.threshold - step - CELL)
            assert lower > delta * (1 - 1e-6) or union.threshold - step - weight[0] < step  # P <= 1 is used below w


@pytest.mark.parametrize(("epsilon", "delta", "keys"), GRID)
def test_the_guarantee_holds_exactly_for_every_number_of_keys(epsilon, delta, keys):
    union = SetUnion.calibrated(epsilon=epsilon, delta=delta, keys=keys)
    assert exact_delta(union, epsilon) <= delta * (1 + 1e-9)
    if union.noise == "gaussian" and delta > 1e-50:
        assert exact_delta(union, epsilon) > delta / 20  # hardly more noise than it has to be


def test_versions_that_break_the_guarantee_are_rejected():
    epsilon, delta = 4.0, 1e-3
    union = SetUnion.calibrated(epsilon=epsilon, delta=delta, keys=6)
    assert union.noise == "gaussian" and exact_delta(union, epsilon) <= delta

    def unnormalised(_size, noise):
        return weights(1, noise)

    noise_alone = union.scale * norm.isf(union.delta_names / 6)  # P(noise >= T), without the weight
    assert exact_delta(union, epsilon, weight_of=unnormalised) > 2 * delta
    assert exact_delta(replace(union, scale=0.8 * union.scale), epsilon) > 2 * delta
    assert exact_delta(replace(union, threshold=noise_alone), epsilon) > 2 * delta
    many = SetUnion.build(union.scale, union.delta_names, 3000)
    for_one_key = threshold(union.scale, union.delta_names, 1)  # P(w + noise >= T), without the number of keys
    assert 3000 * appears(many, 3000, for_one_key) > 2 * delta > 3000 * appears(many, 3000, many.threshold)


def test_the_noise_that_needs_fewer_users_is_chosen():
    unions = {keys: SetUnion.calibrated(epsilon=1.0, delta=1e-6, keys=keys) for keys in (1, 3, 100)}
    assert [union.noise for union in unions.values()] == ["laplace", "gaussian", "gaussian"]
    for keys, union in unions.items():
        users = union.threshold / (int(weights(keys, union.noise)) * CELL)
        assert users <= keys * SetUnion.build(1.0, 1e-6, keys, "laplace").threshold * (1 + 1e-4)


# -- the draws -------------------------------------------------------------------------------------------------

SAMPLED = {
    "laplace": SetUnion.build(1.0, 0.2, 1, "laplace"),
    "gaussian": SetUnion.build(1.3, 0.1, 4),
}


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES)
def test_names_of_one_user_come_out_as_seldom_as_stated_and_a_lower_threshold_is_caught(noise):
    union = SAMPLED[noise]

    def too_many(union):
        """Whether the names of single users come out more often than ``delta_names``."""
        size = union.keys
        users = np.repeat(np.arange(DRAWS), size)
        kept, _ = union.release(users, np.full(users.size, int(weights(size, noise))), RandomBits())
        return np.unique(kept).size > binom.isf(FALSE_ALARM, DRAWS, union.delta_names)

    assert not too_many(union)
    assert too_many(replace(union, threshold=union.threshold - 1.3))


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_has_the_stated_scale_and_a_smaller_one_is_caught(noise):
    union = replace(SAMPLED[noise], threshold=-1e9)
    count = 5 * DRAWS
    cells = np.arange(1, count + 1) << 20

    def is_noise(union, scale):
        kept, noisy = union.release(np.arange(count), cells, RandomBits())
        assert kept.tolist() == list(range(count))
        errors = (noisy - cells * CELL) / scale
        return kstest(errors, "norm" if noise == "gaussian" else "laplace").pvalue > FALSE_ALARM

    assert is_noise(union, union.scale)
    assert not is_noise(replace(union, scale=0.9 * union.scale), union.scale)


def test_large_sums_always_come_out_and_keys_of_nobody_never():
    for union in SAMPLED.values():
        for empty in ([], [0]):
            kept, noisy = union.release(np.arange(len(empty)), np.array(empty, dtype=np.int64), RandomBits())
            assert kept.size == noisy.size == 0
        kept, noisy = replace(union, threshold=0.5).release(
            np.array([7, 8, 9]), np.array([10**12, 0, 2**52]), RandomBits()
        )
        assert kept.tolist() == [7, 9]
        assert abs(noisy - np.array([10**12, 2**52]) * CELL).max() < 60 * union.scale
        assert not np.fmod(noisy, grid_step(union.scale)).any()
