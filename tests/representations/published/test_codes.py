"""The bits of numbers, and z-scores."""

import numpy as np

from dptext.representations.published_protocols import bits_of, z_scores


def test_sign_magnitude_is_fixed_point_with_the_sign_first():
    """Ten bits with four of the integer part: within 2^-5 of the number, cut off towards zero."""
    numbers = np.random.default_rng(1).normal(size=(5, 50)) * 3
    code = bits_of(numbers / 16, 10)
    assert code.shape == (5, 50, 10)
    off = numbers - code[:, :, 1:] @ 2.0 ** np.arange(3, -6, -1) * np.where(code[:, :, 0], -1, 1)
    assert (np.abs(off) < 2**-5).all() and (off * numbers >= 0).all()
    code = bits_of(np.array([[1.0, -1.0, 0.0, -1e-9]]), 4)[0].astype(int).tolist()
    assert code == [[0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]]


def test_z_scores_have_mean_0_and_variance_1():
    scores = z_scores(np.random.default_rng(3).normal(size=(20, 7)) + 5)
    assert np.abs(scores.mean(axis=1)).max() < 1e-12
    np.testing.assert_allclose(scores.std(axis=1), 1.0)
    for constant in (np.full((1, 7), 7**-0.5), np.full((1, 3), 0.1), np.zeros((1, 5))):
        assert (z_scores(constant) == 0).all() and not np.signbit(z_scores(constant)).any()
