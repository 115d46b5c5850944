"""Whatever comes in ends up in the domain, no further apart than its sensitivity; public texts alone decide where."""

import pickle

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.privacy.guarantee import Relation
from dptext.representations.bounds import BOUNDS, Bound, Domain, discriminant_directions, fit_bound, random_directions
from dptext.representations.encoders import MeanOfWords

PUBLIC = np.random.default_rng(3).normal(size=(200, 6)) * [9, 5, 3, 1, 1, 0.1] + 4.0
LABELS = (PUBLIC[:, 3] > 4).astype(int)
KINDS = list(BOUNDS)


def hostile(width):
    """Rows that arithmetic goes wrong on, and ordinary ones."""
    big = float(np.finfo(np.float64).max)
    rows = [
        np.full(width, value) for value in (0.0, np.nan, np.inf, -np.inf, big, -big, 5e-324, -5e-324, 1e200, 1e-200)
    ]
    rows += [np.where(np.arange(width) % 2, a, b) for a in (np.inf, big, 1.0) for b in (-np.inf, np.nan, -big)]
    rows += list(np.eye(width) * 1e30) + list(-np.eye(width) * 1e-30)
    return np.vstack([*rows, np.random.default_rng(0).normal(size=(300, width)) * 10, PUBLIC[:50], PUBLIC.mean(axis=0)])


def bounds():
    for kind in KINDS:
        for projection, dimension in ((None, None), ("pca", 3), ("random", 2), ("supervised", 4)):
            labels = LABELS if projection == "supervised" else None
            yield fit_bound(PUBLIC, bound=kind, projection=projection, dimension=dimension, labels=labels)


def test_no_two_vectors_are_further_apart_than_the_sensitivity():
    for bound in list(bounds()):
        result = bound.apply(hostile(6))
        assert result.shape == (len(hostile(6)), bound.dimension)
        assert np.isfinite(result).all()
        difference = result[:, None] - result[None]
        for relation, moved in ((Relation.SUBSTITUTION, difference), (Relation.ADD_REMOVE, result[:, None])):
            allowed = bound.sensitivity(relation)
            assert allowed.relation is relation
            assert np.abs(moved).sum(axis=2).max() <= allowed.l1 * (1 + 1e-12)
            assert np.sqrt((moved**2).sum(axis=2)).max() <= allowed.l2 * (1 + 1e-12)
            assert np.abs(moved).max() <= allowed.largest * (1 + 1e-12)
        # and it is no loose one: two of these vectors nearly attain it
        if bound.kind != "lift":
            assert np.sqrt((difference**2).sum(axis=2)).max() >= 0.9 * bound.sensitivity().l2


def test_a_bound_half_as_tight_would_be_found_out():
    """The broken twin of the test above: clipping to a radius of 1.5."""
    sound = fit_bound(PUBLIC, bound="clip", projection=None)
    loose = 1.5 * sound.apply(hostile(6))
    assert np.sqrt(((loose[:, None] - loose[None]) ** 2).sum(axis=2)).max() > sound.sensitivity().l2


def test_each_kind_is_what_it_says():
    for kind in KINDS:
        bound = Bound(mean=[1.0, 1.0], kind=kind, radius=5.0 if kind in ("lift", "clip", "cube") else None)
        near, far = bound.apply([[1.0, 4.0], [7.0, 9.0]])  # 3 up; 6 right and 8 up
        expected = {
            "normalise": ([0, 1], [0.6, 0.8]),
            "lift": ([0, 0.6, 0.8], [0.6, 0.8, 0]),
            "clip": ([0, 0.6], [0.6, 0.8]),
            "cube": ([0, 0.6], [1, 1]),
            "one-hot": ([0, 1], [0, 1]),
        }[kind]
        np.testing.assert_allclose(near, expected[0], atol=1e-8)
        np.testing.assert_allclose(far, expected[1], atol=5e-5)  # the ball is a hair smaller, and a lift takes its root
        assert bound.domain is {"lift": Domain.SPHERE, "normalise": Domain.SPHERE}.get(kind, bound.domain)


def test_a_vector_without_a_direction_gets_a_public_one():
    for kind in KINDS:
        bound = fit_bound(PUBLIC, bound=kind, dimension=3)
        centre = bound.apply(bound.mean[None])[0]
        expected = {
            "normalise": [1, 0, 0],
            "lift": [0, 0, 0, 1],
            "clip": [0, 0, 0],
            "cube": [0, 0, 0],
            "one-hot": [1, 0, 0],
        }
        np.testing.assert_allclose(centre, expected[kind], atol=1e-12)


# -- fitting ------------------------------------------------------------------------------------------------------


def test_the_bound_hangs_on_the_public_texts_alone():
    one, two = (fit_bound(PUBLIC, bound="lift", dimension=3) for _ in range(2))
    one.apply(hostile(6))  # private vectors in between
    assert one.sha256 == two.sha256
    np.testing.assert_array_equal(one.apply(PUBLIC), two.apply(PUBLIC))
    assert fit_bound(PUBLIC[:-1], bound="lift", dimension=3).sha256 != one.sha256


def test_it_cannot_be_changed_even_after_a_pickle():
    bound = pickle.loads(pickle.dumps(fit_bound(PUBLIC, bound="clip", dimension=2)))
    assert bound.sha256 == fit_bound(PUBLIC, bound="clip", dimension=2).sha256
    for array in (bound.mean, bound.directions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        bound.radius = 9.0
    mean = np.zeros(2)
    kept = Bound(mean=mean)
    mean[0] = 5.0
    assert kept.mean[0] == 0.0


def test_pca_keeps_what_varies_most():
    kept = fit_bound(PUBLIC, dimension=2).directions
    np.testing.assert_allclose(kept.T @ kept, np.eye(2), atol=1e-12)
    assert np.abs(kept[:2]).sum() == pytest.approx(np.abs(kept).sum(), rel=0.2)
    centred = PUBLIC - PUBLIC.mean(axis=0)
    assert (centred @ kept).var(axis=0).sum() == pytest.approx(
        np.sort(np.linalg.eigvalsh(np.cov(centred.T, bias=True)))[-2:].sum()
    )


def test_random_directions_are_orthonormal_and_always_the_same():
    kept = fit_bound(PUBLIC, dimension=4, projection="random").directions
    np.testing.assert_allclose(kept.T @ kept, np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(kept, random_directions(6, 4))
    assert np.abs(kept - random_directions(6, 6)[:, :4]).max() > 0.01


def test_supervised_directions_carry_the_labels_in_few_dimensions():
    """The labels hang on the fourth coordinate, which has a hundredth of the variance: pca loses it."""
    share = {}
    for projection, labels in (("pca", None), ("supervised", LABELS)):
        result = fit_bound(PUBLIC, dimension=2, projection=projection, labels=labels).apply(PUBLIC)
        gap = np.abs(result[LABELS == 1].mean(axis=0) - result[LABELS == 0].mean(axis=0)) / result.std(axis=0)
        share[projection] = gap.max()
    assert share["pca"] < 0.5
    assert share["supervised"] > 1.0


def test_discriminants_of_several_labels_then_the_rest():
    labels = np.array(["a", "b", "c", "d"])[np.arange(200) % 4]
    moved = PUBLIC - PUBLIC.mean(axis=0)
    moved[:, :3] += np.eye(4)[np.arange(200) % 4][:, :3] * 50
    moved -= moved.mean(axis=0)
    for dimension in (1, 2, 3, 4, 6):
        kept = discriminant_directions(moved, labels, dimension)
        assert kept.shape == (6, dimension)
        assert np.linalg.matrix_rank(kept) == dimension
    scores = moved @ kept[:, :3]
    within = scores - np.stack([scores[labels == label].mean(axis=0) for label in "abcd"])[np.arange(200) % 4]
    np.testing.assert_allclose(within.T @ within / 200, np.diag(np.diag(within.T @ within / 200)), atol=0.2)
    # the rest has half the length of the discriminants
    lengths = [np.sqrt(((moved @ kept[:, part]) ** 2).sum(axis=1).mean()) for part in (slice(3, 6), slice(0, 3))]
    assert lengths[0] == pytest.approx(0.5 * lengths[1])


def test_fewer_texts_than_dimensions_still_give_directions():
    few = PUBLIC[:3]
    for projection, labels in (("pca", None), ("supervised", [0, 1, 1])):
        bound = fit_bound(few, dimension=5, projection=projection, labels=labels)
        assert np.linalg.matrix_rank(bound.directions) == 5
        assert np.isfinite(bound.apply(hostile(6))).all()
    assert fit_bound(PUBLIC[:1], projection=None).public_texts == 1


def test_the_radius_is_a_quantile_of_public_lengths():
    moved = PUBLIC - PUBLIC.mean(axis=0)
    lengths = np.linalg.norm(moved, axis=1)
    assert fit_bound(PUBLIC, bound="clip", projection=None).radius == pytest.approx(np.quantile(lengths, 0.9))
    assert fit_bound(PUBLIC, bound="lift", projection=None, quantile=1).radius == pytest.approx(lengths.max())
    assert fit_bound(PUBLIC, bound="cube", projection=None, quantile=0.5).radius == pytest.approx(
        np.median(np.abs(moved))
    )
    assert fit_bound(PUBLIC, bound="clip", radius=2.5).radius == 2.5


def test_centring_matters_for_means_of_word_vectors(glove):
    """Uncentred means share one direction, so that normalised vectors hardly differ."""
    texts = [" ".join(glove.words[start::1000][:12]) for start in range(500)]
    public = MeanOfWords(glove).encode(texts)
    spread = {}
    for centre in (True, False):
        result = fit_bound(public, projection=None, centre=centre).apply(public)
        spread[centre] = 1 - float(np.sum(result.mean(axis=0) ** 2))  # the variance of unit vectors
    assert spread[False] < 0.5 < 0.95 < spread[True]


def test_what_was_fitted_is_said():
    bound = fit_bound(PUBLIC, bound="clip", dimension=3, public_name="film reviews")
    assert bound.parameters() | {"bound_sha256": ""} == {
        "projection": "pca",
        "centred": True,
        "bound": "clip",
        "bound_radius": bound.radius,
        "bound_sha256": "",
        "public_data": "film reviews",
        "public_texts": 200,
    }
    assert "fitted on 'film reviews' (200 texts), declared public" in bound.assumptions()[0]
    labelled = fit_bound(PUBLIC, projection="supervised", labels=LABELS, dimension=2)
    assert "public texts (200 texts and their labels)" in labelled.assumptions()[0]
    unfitted = fit_bound(PUBLIC, projection="random", dimension=2, centre=False)
    assert unfitted.public_texts == 0
    assert "not computed from protected texts" in unfitted.assumptions()[0]


# -- arguments ----------------------------------------------------------------------------------------------------


def test_bad_arguments_are_named():
    for options, message in [
        ({"bound": "squash"}, "bound must be one of 'normalise'"),
        ({"dimension": 7}, "None: all of the encoder's.* must be an integer from 1 to 6, got 7"),
        ({"dimension": 3, "projection": None}, "need a projection"),
        ({"projection": "supervised"}, "belong together"),
        ({"projection": "supervised", "labels": LABELS[:-1]}, "one public label a text, 200 of them"),
        ({"projection": "supervised", "labels": np.zeros(200)}, "two labels at least"),
        ({"radius": 3.0}, "'normalise' has no radius"),
        ({"bound": "clip", "radius": float("nan")}, "radius of 'clip' must be a number from 1e-30 to"),
    ]:
        with pytest.raises(ParameterError, match=message):
            fit_bound(PUBLIC, **options)


def test_public_texts_that_tell_nothing_are_refused():
    similar = np.ones((5, 6))
    for options in ({}, {"projection": "supervised", "labels": [0, 1, 0, 1, 0]}):
        with pytest.raises(ParameterError, match="all have the same vector"):
            fit_bound(similar, **options)
    for kind in ("clip", "lift", "cube"):
        with pytest.raises(ParameterError, match="tell no radius"):
            fit_bound(similar, bound=kind, projection=None)
    assert fit_bound(similar, projection="random", dimension=2).apply(similar).shape == (5, 2)
    with pytest.raises(ParameterError, match="at least one public text"):
        fit_bound(np.zeros((0, 6)))
    with pytest.raises(ParameterError, match=r"shape \(n, d\)"):
        fit_bound(np.zeros(6))


def test_parts_that_do_not_fit_are_refused():
    for parts, message in (
        ({"mean": []}, "row of finite numbers"),
        ({"mean": [np.nan]}, "row of finite numbers"),
        ({"mean": [0.0, 0.0], "directions": np.zeros((3, 1))}, r"from \(2, 1\) to \(2, 2\)"),
        ({"mean": [0.0, 0.0], "directions": np.full((2, 1), np.inf)}, "directions must be finite"),
        ({"mean": [0.0], "kind": "x"}, "kind must be one of"),
        ({"mean": [0.0], "projection": "x"}, "projection must be one of"),
        ({"mean": [0.0], "public_texts": -1}, "public_texts must be an integer"),
    ):
        with pytest.raises(ParameterError, match=message):
            Bound(**parts)
    with pytest.raises(ParameterError, match="expected vectors of 2 numbers, got 3"):
        Bound(mean=[0.0, 0.0]).apply(np.zeros((1, 3)))
