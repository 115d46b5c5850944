"""Whatever comes in lies in the domain afterwards, and no two vectors are farther apart than its sensitivity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dptext.errors import ParameterError
from dptext.privacy.guarantee import Relation
from dptext.representations.bounds import Domain, check_vectors

ANY_VECTORS = arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=st.floats())


def _inside(domain, vectors):
    lengths = np.sqrt((vectors**2).sum(axis=1))
    match domain:
        case Domain.SPHERE:
            return np.allclose(lengths, 1.0, rtol=0, atol=1e-12)
        case Domain.BALL:
            return bool((lengths <= 1.0).all())
        case Domain.CUBE:
            return bool((np.abs(vectors) <= 1.0).all())
        case Domain.ONE_HOT:
            return bool((np.sort(vectors, axis=1)[:, -1] == 1).all() and (vectors.sum(axis=1) == 1).all())


@settings(max_examples=300, deadline=None)
@given(ANY_VECTORS, st.sampled_from(list(Domain)))
def test_any_numbers_at_all_end_in_the_domain(vectors, domain):
    before = vectors.copy()
    bound = domain.bound(vectors)
    assert _inside(domain, bound)
    assert np.array_equal(vectors, before, equal_nan=True)
    repeated = domain.bound(bound)
    assert np.allclose(repeated, bound, rtol=0, atol=1e-8)


@settings(max_examples=200, deadline=None)
@given(ANY_VECTORS, st.sampled_from(list(Domain)))
def test_two_vectors_are_never_farther_apart_than_the_sensitivity(vectors, domain):
    bound = domain.bound(vectors)
    for relation, others in ((Relation.SUBSTITUTION, bound), (Relation.ADD_REMOVE, np.zeros_like(bound[:1]))):
        allowed = domain.sensitivity(bound.shape[1], relation)
        for other in others:
            change = np.abs(bound - other)
            assert change.sum(axis=1).max() <= allowed.l1 * (1 + 1e-12)
            assert np.sqrt((change**2).sum(axis=1)).max() <= allowed.l2 * (1 + 1e-12)
            assert change.max() <= allowed.largest * (1 + 1e-12)


def test_the_sensitivity_is_attained():
    for domain, pair in [
        (Domain.SPHERE, [[1, 1, 1, 1], [-1, -1, -1, -1]]),
        (Domain.BALL, [[9, 9, 9, 9], [-9, -9, -9, -9]]),
        (Domain.CUBE, [[1, 1, 1, 1], [-1, -1, -1, -1]]),
        (Domain.ONE_HOT, [[1, 0, 0, 0], [0, 1, 0, 0]]),
    ]:
        one, other = domain.bound(pair)
        allowed = domain.sensitivity(4)
        assert np.abs(one - other).sum() == pytest.approx(allowed.l1, rel=1e-8)
        assert np.sqrt(((one - other) ** 2).sum()) == pytest.approx(allowed.l2, rel=1e-8)


def test_vectors_without_a_direction_get_a_public_one():
    assert Domain.SPHERE.bound([[0.0, 0.0], [np.nan, 0.0]]).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert Domain.BALL.bound([[np.inf, -np.inf]])[0] == pytest.approx([2**-0.5, -(2**-0.5)])


def test_directions_survive_the_largest_and_the_smallest_numbers():
    assert Domain.SPHERE.bound([[3e300, 4e300], [3e-320, 4e-320]]) == pytest.approx(
        np.tile([0.6, 0.8], (2, 1)), rel=1e-3
    )


def test_what_is_no_table_of_numbers_is_refused():
    for wrong in [[1.0, 2.0], [[[1.0]]], "text", [["a"]], np.zeros((3, 0))]:
        with pytest.raises(ParameterError, match="vectors must"):
            check_vectors(wrong)


def test_another_width_is_refused():
    with pytest.raises(ParameterError, match="vectors of 3 numbers, got 2"):
        check_vectors([[1.0, 2.0]], 3)
