"""The bits of numbers, and z-scores."""

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.representations.published_protocols import CODES, public_z_scores, z_scores

SIGNED, ONE_HOT = CODES["sign-magnitude"], CODES["one-hot"]


def test_bits_are_fixed_point_numbers_sign_first():
    """Ten bits with four of the integer part: within 2^-5 of the number, cut off towards zero."""
    numbers = np.random.default_rng(1).normal(size=(5, 50)) * 3
    code = SIGNED.bits_of(numbers / 16, 10)
    assert code.shape == (5, 50, 10)
    value = code[:, :, 1:] @ 2.0 ** np.arange(3, -6, -1) * np.where(code[:, :, 0], -1, 1)
    off = numbers - value
    assert (np.abs(off) < 2**-5).all()
    assert (off * numbers >= 0).all()


def test_what_lies_beyond_has_the_largest_magnitude_and_minus_zero_is_a_code():
    code = SIGNED.bits_of(np.array([[1.0, -1.0, 0.0, -1e-9, 1e-9]]), 4)[0].astype(int).tolist()
    assert code == [[0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


def test_every_code_of_a_number_occurs():
    for length in [2, 3, 10, 16]:
        every = (np.arange(2**length)[:, None] >> np.arange(length)[::-1] & 1).astype(bool)
        numbers = SIGNED.numbers_of(every)
        assert (np.abs(numbers) < 1).all()
        assert (SIGNED.bits_of(numbers[None], length)[0] == every).all()


def test_one_hot_marks_the_part_that_a_number_lies_in():
    for length in [2, 3, 10, 64]:
        every = np.eye(length, dtype=bool)
        assert (ONE_HOT.bits_of(ONE_HOT.numbers_of(every)[None], length)[0] == every).all()
        ends = ONE_HOT.bits_of(np.array([[-1.0, 1.0]]), length)[0]
        assert ends.argmax(axis=1).tolist() == [0, length - 1]
        assert (ends.sum(axis=1) == 1).all()


def test_the_worst_pair_of_codes_is_that_of_all():
    rng = np.random.default_rng(2)
    for code, length in ((SIGNED, 4), (ONE_HOT, 6)):
        up, down = rng.exponential(size=(2, 3, length))
        first, second = code.worst_pair(up, down)
        every = (
            np.eye(length, dtype=bool)
            if code is ONE_HOT
            else (np.arange(2**length)[:, None] >> np.arange(length) & 1).astype(bool)
        )
        for number in range(3):
            losses = [
                np.where(one & ~other, up[number], np.where(other & ~one, down[number], 0)).sum()
                for one in every
                for other in every
            ]
            one, other = first[number], second[number]
            result = np.where(one & ~other, up[number], np.where(other & ~one, down[number], 0)).sum()
            assert result == pytest.approx(max(losses))


def test_z_scores_have_mean_0_and_variance_1_and_constants_none():
    vectors = np.random.default_rng(3).normal(size=(20, 7)) + 5
    scores = z_scores(vectors)
    assert np.abs(scores.mean(axis=1)).max() < 1e-12
    np.testing.assert_allclose(scores.std(axis=1), 1.0)
    for constant in (np.full((1, 7), 7**-0.5), np.full((1, 3), 0.1), np.zeros((1, 5))):
        assert (z_scores(constant) == 0).all()
        assert not np.signbit(z_scores(constant)).any()


def test_public_moments_become_a_bound():
    rng = np.random.default_rng(4)
    public = rng.normal(size=(500, 6)) * [1, 2, 3, 4, 5, 0] + 7
    bound = public_z_scores(public, public_name="made up")
    mapped = bound.apply(public) * 16
    assert np.abs(mapped.mean(axis=0)).max() < 1e-12
    np.testing.assert_allclose(mapped[:, :5].std(axis=0), 1.0)
    assert (mapped[:, 5] == 0).all()
    assert bound.domain == "unit cube"
    assert (np.abs(bound.apply(1e9 * public)) <= 1).all()
    assert "'made up' (500 texts)" in bound.assumptions()[0]


def test_bad_moments_are_refused():
    with pytest.raises(ParameterError, match="at least one, got 0"):
        public_z_scores(np.empty((0, 3)))
    with pytest.raises(ParameterError, match="finite"):
        public_z_scores([[1.0, np.nan]])
    for bits in (-1, 16, True, 2.0):
        with pytest.raises(ParameterError, match="integer_bits"):
            public_z_scores([[1.0, 2.0]], integer_bits=bits)
