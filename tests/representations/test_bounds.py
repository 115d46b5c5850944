"""Domains and bounds: any numbers end in the domain, no further apart than its sensitivity; bounds use public texts."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dptext.representations.bounds import (
    BOUNDS,
    Bound,
    Domain,
    fit_bound,
    random_directions,
)

ANY_VECTORS = arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=st.floats())
PUBLIC = np.random.default_rng(3).normal(size=(200, 6)) * [9, 5, 3, 1, 1, 0.1] + 4.0
LABELS = (PUBLIC[:, 3] > 4).astype(int)
SUPERVISED = {"projection": "supervised", "labels": LABELS}


# -- domains ------------------------------------------------------------------------------------------------------


def is_inside(domain, vectors):
    lengths = np.sqrt((vectors**2).sum(axis=1))
    match domain:
        case Domain.SPHERE:
            return np.allclose(lengths, 1.0, rtol=0, atol=1e-12)
        case Domain.BALL:
            return bool((lengths <= 1.0).all())
        case Domain.CUBE:
            return bool((np.abs(vectors) <= 1.0).all())
        case Domain.ONE_HOT:
            return bool((vectors.max(axis=1) == 1).all() and (np.abs(vectors).sum(axis=1) == 1).all())


@settings(max_examples=100, deadline=None)
@given(ANY_VECTORS, st.sampled_from(list(Domain)))
def test_domain_bounds_any_numbers_within_its_sensitivity(vectors, domain):
    before = vectors.copy()
    bounded = domain.bound(vectors)
    assert is_inside(domain, bounded)
    assert np.array_equal(vectors, before, equal_nan=True)
    assert np.allclose(domain.bound(bounded), bounded, rtol=0, atol=1e-8)
    l1, l2 = domain.sensitivity(bounded.shape[1])
    for other in bounded:
        change = np.abs(bounded - other)
        assert change.sum(axis=1).max() <= l1 * (1 + 1e-12)
        assert np.sqrt((change**2).sum(axis=1)).max() <= l2 * (1 + 1e-12)


@pytest.mark.parametrize("domain", list(Domain))
def test_domain_sensitivity_is_attained(domain):
    one, other = domain.bound([[9, 0, 0, 0], [0, 9, 0, 0]] if domain is Domain.ONE_HOT else [[9] * 4, [-9] * 4])
    l1, l2 = domain.sensitivity(4)
    assert np.abs(one - other).sum() == pytest.approx(l1, rel=1e-8)
    assert np.sqrt(((one - other) ** 2).sum()) == pytest.approx(l2, rel=1e-8)


def test_domain_gives_vectors_without_direction_a_public_one():
    assert Domain.SPHERE.bound([[0.0, 0.0], [np.nan, 0.0]]).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert Domain.BALL.bound([[np.inf, -np.inf]])[0] == pytest.approx([2**-0.5, -(2**-0.5)])
    huge_and_tiny = Domain.SPHERE.bound([[3e300, 4e300], [3e-320, 4e-320]])
    assert huge_and_tiny == pytest.approx(np.tile([0.6, 0.8], (2, 1)), rel=1e-3)


# -- bounds -------------------------------------------------------------------------------------------------------


def hostile(width):
    """Rows on which arithmetic goes wrong, and ordinary ones."""
    big = float(np.finfo(np.float64).max)
    values = (0.0, np.nan, np.inf, -np.inf, big, -big, 5e-324, -5e-324, 1e200, 1e-200)
    rows = [np.full(width, value) for value in values]
    rows += [np.where(np.arange(width) % 2, a, b) for a in (np.inf, big, 1.0) for b in (-np.inf, np.nan, -big)]
    rows += list(np.eye(width) * 1e30) + list(-np.eye(width) * 1e-30)
    return np.vstack([*rows, np.random.default_rng(0).normal(size=(300, width)) * 10, PUBLIC[:50], PUBLIC.mean(axis=0)])


def farthest(vectors):
    return np.sqrt(((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)).max()


@pytest.mark.parametrize("kind", BOUNDS)
def test_bound_keeps_all_vectors_within_the_sensitivity(kind):
    for options in ({"projection": None}, {"dimension": 3}, {"projection": "random", "dimension": 2}, SUPERVISED):
        bound = fit_bound(PUBLIC, bound=kind, **options)
        bounded = bound.apply(hostile(6))
        assert bounded.shape == (len(hostile(6)), bound.dimension)
        assert is_inside(bound.domain, bounded)
        l2 = bound.domain.sensitivity(bound.dimension)[1]
        assert 0.9 * l2 <= farthest(bounded) <= l2 * (1 + 1e-12)  # and the sensitivity is nearly attained
    if kind == "clip":  # a known-broken bound, clipping to a radius of 1.5, is detected
        assert farthest(1.5 * bounded) > l2


@pytest.mark.parametrize(
    ("kind", "near", "far", "centre"),
    [
        ("normalise", [0, 1], [0.6, 0.8], [1, 0]),
        ("clip", [0, 0.6], [0.6, 0.8], [0, 0]),
        ("cube", [0, 0.6], [1, 1], [0, 0]),
        ("one-hot", [0, 1], [0, 1], [1, 0]),
    ],
)
def test_bound_maps_known_vectors(kind, near, far, centre):
    bound = Bound(mean=[1.0, 1.0], kind=kind, radius=5.0 if kind in ("clip", "cube") else None)
    np.testing.assert_allclose(bound.apply([[1.0, 4.0], [7.0, 9.0], [1.0, 1.0]]), [near, far, centre], atol=1e-8)


def test_bound_counts_sums_of_huge_products_as_zero():
    bound = Bound(mean=[1e308, 0.0], directions=[[1e300, 1.0], [1e300, -1e300]])
    with np.errstate(all="raise"):
        vectors = bound.apply([[1e38, -1e38], [-1e38, np.inf], [5e-324, 0.0]])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)


def test_bound_is_frozen_and_depends_on_public_texts_alone():
    one, two = (fit_bound(PUBLIC, bound="clip", dimension=3) for _ in range(2))
    one.apply(hostile(6))  # private vectors in between
    copy = pickle.loads(pickle.dumps(one))
    assert one.sha256 == two.sha256 == copy.sha256
    assert fit_bound(PUBLIC[:-1], bound="clip", dimension=3).sha256 != one.sha256
    for array in (copy.mean, copy.directions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        copy.radius = 9.0
    mean = np.zeros(2)
    kept = Bound(mean=mean)
    mean[0] = 5.0
    assert kept.mean[0] == 0.0


def test_projections_are_orthonormal_and_pca_keeps_the_largest_variances():
    pca = fit_bound(PUBLIC, dimension=2).directions
    random = fit_bound(PUBLIC, dimension=4, projection="random").directions
    for directions in (pca, random):
        np.testing.assert_allclose(directions.T @ directions, np.eye(directions.shape[1]), atol=1e-12)
    centred = PUBLIC - PUBLIC.mean(axis=0)
    largest = np.sort(np.linalg.eigvalsh(np.cov(centred.T, bias=True)))[-2:]
    assert (centred @ pca).var(axis=0).sum() == pytest.approx(largest.sum())
    np.testing.assert_array_equal(random, random_directions(6, 4))


def test_bound_states_the_public_texts():
    bound = fit_bound(PUBLIC, bound="clip", dimension=3, public_name="film reviews")
    parameters = bound.parameters()
    assert (parameters["public_data"], parameters["public_texts"], parameters["centred"]) == ("film reviews", 200, True)
    assert (parameters["bound"], parameters["bound_sha256"]) == ("clip", bound.sha256)
    assert "fitted on 'film reviews' (200 texts), declared public" in bound.assumptions()[0]
    assert "public texts (200 texts and their labels)" in fit_bound(PUBLIC, **SUPERVISED).assumptions()[0]
    unfitted = fit_bound(PUBLIC, projection="random", dimension=2, centre=False)
    assert unfitted.public_texts == 0
    assert "not computed from protected texts" in unfitted.assumptions()[0]
