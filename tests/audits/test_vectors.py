"""Sampled audits of vectors: sound noise stands, 1.5 times too little does not, and neither do the classics.

Every audit refutes a true claim with probability at most 1e-6 (its ``error``); seeds are fixed.
"""

import dataclasses
import json

import numpy as np
import pytest

import dptext
from dptext.audits.vectors import audit_vectors, extreme_pairs
from dptext.errors import ParameterError
from dptext.privacy.guarantee import Relation, Trust, Unit
from dptext.representations.privunit import PrivUnit

SAMPLES = 40_000
GRID = 2.0**20


def claim(guarantee, **changes):
    statement = dptext.PrivacyStatement(
        guarantee=guarantee,
        unit=Unit.DOCUMENT,
        relation=Relation.SUBSTITUTION,
        condition="any two vectors",
        trust=Trust.LOCAL,
        mechanism="under audit",
    )
    return dataclasses.replace(statement, **changes)


class Additive:
    """Noise of a scale on vectors of a domain, on a grid: in doubles as they come, low digits would tell the input."""

    def __init__(self, domain, dimension, noise, scale):
        self.domain, self.dimension = domain, dimension
        self._noise, self._scale = noise, scale

    def sample(self, vectors, bits):
        assert vectors.shape[1] == self.dimension
        exact = vectors + self._scale * self._noise(bits, *vectors.shape)
        return (np.rint(exact * GRID) / GRID).astype(np.float32)


def normal(bits, *shape):
    return bits.normal(*shape)


def laplace(bits, *shape):
    return bits.exponential(*shape) - bits.exponential(*shape)


def l2_laplace(bits, count, dimension):
    directions = bits.normal(count, dimension)
    directions /= np.sqrt((directions**2).sum(axis=1, keepdims=True))
    return directions * bits.exponential(count, dimension).sum(axis=1)[:, None]


# -- sound and broken -----------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("domain", "dimension", "noise", "sensitivity", "epsilon"),
    [
        ("unit cube", 1, laplace, 2.0, 1.0),
        ("unit cube", 3, laplace, 6.0, 3.0),
        ("unit ball", 3, l2_laplace, 2.0, 3.0),
        ("unit sphere", 2, l2_laplace, 2.0, 1.0),
        ("one-hot", 4, laplace, 2.0, 2.0),
    ],
)
def test_laplace_noise_of_the_right_scale_stands_and_less_does_not(domain, dimension, noise, sensitivity, epsilon):
    for share, refuted in ((1.0, False), (1 / 1.5, True)):
        channel = Additive(domain, dimension, noise, share * sensitivity / epsilon)
        verdict = audit_vectors(channel, claim(dptext.PureDP(epsilon)), samples=SAMPLES, seed=3)
        assert verdict.refuted == refuted, verdict.explain()
        assert verdict.refutable


@pytest.mark.slow
def test_normal_noise_is_judged_at_its_delta():
    """The least sigma for (4, .02) at sensitivity 2, by Balle and Wang 2018, Theorem 8."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    epsilon, delta = 4.0, 0.02

    def excess(sigma):
        gap = 2 / sigma
        return norm.cdf(gap / 2 - epsilon / gap) - np.exp(epsilon) * norm.cdf(-gap / 2 - epsilon / gap) - delta

    sigma = brentq(excess, 0.1, 10)
    for share, refuted in ((1.0, False), (1 / 1.5, True)):
        channel = Additive("unit ball", 5, normal, share * sigma)
        verdict = audit_vectors(channel, claim(dptext.ApproxDP(epsilon, delta)), samples=SAMPLES, seed=4)
        assert verdict.refuted == refuted, verdict.explain()
        assert verdict.delta == delta
    channel = Additive("unit ball", 5, normal, sigma)
    assert audit_vectors(channel, claim(dptext.PureDP(2.5)), samples=SAMPLES, seed=4).refuted
    assert not audit_vectors(channel, claim(dptext.ApproxDP(2.5, 0.1)), samples=SAMPLES, seed=4).refuted


def test_the_slack_of_a_statement_counts_in_its_favour():
    channel = Additive("unit ball", 2, l2_laplace, 2.0 / 1.5)
    assert audit_vectors(channel, claim(dptext.PureDP(1.0)), samples=SAMPLES, seed=1).refuted
    assert not audit_vectors(channel, claim(dptext.PureDP(1.0), slack=0.5), samples=SAMPLES, seed=1).refuted


def test_what_the_field_got_wrong_is_refuted():
    same = Additive("unit cube", 8, lambda bits, count, d: np.repeat(laplace(bits, count, 1), d, axis=1), 1.0)

    def differences(outputs):  # one scalar for all coordinates: differences show the input
        return outputs[:, 0] - outputs[:, 1]

    pair = (np.tile([1.0, -1.0], 4), np.tile([-1.0, 1.0], 4))
    verdict = audit_vectors(same, claim(dptext.PureDP(1.0)), pair=pair, score=differences, samples=SAMPLES, seed=1)
    assert verdict.refuted
    assert verdict.loss > 7
    per_coordinate = Additive("unit cube", 8, laplace, 2.0)  # as if one coordinate were all
    assert audit_vectors(per_coordinate, claim(dptext.PureDP(1.0)), samples=SAMPLES, seed=1).refuted


def test_doubles_as_they_come_are_refuted_though_the_density_is_right():
    """Mironov 2012: x + Laplace noise in float64 has values that x' + noise has not, and the scores find them."""

    def naive(vectors, bits):
        uniform = bits.uniform(*vectors.shape) - 0.5
        return vectors - np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) * 2.0

    verdict = audit_vectors(naive, claim(dptext.PureDP(1.0)), pair=([1.0], [-1.0]), samples=SAMPLES, seed=1)
    assert verdict.refuted
    assert verdict.loss > 3


def test_a_learnt_score_finds_what_no_projection_shows():
    """The second moment alone differs: noise of another size under the one vector."""
    pytest.importorskip("sklearn")

    def draw(vectors, bits):
        return bits.normal(len(vectors), 3) * np.where(vectors[:, :1] > 0, 1.0, 3.0)

    fields = {"pair": ([1.0, 0.0], [-1.0, 0.0]), "samples": 2_000, "seed": 1}
    verdict = audit_vectors(
        draw, claim(dptext.PureDP(1.0)), **fields
    )  # three numbers out, two in: nothing to project on
    assert verdict.refuted
    assert "a learnt score" in verdict.witness
    with_score = audit_vectors(
        draw, claim(dptext.PureDP(1.0)), score=lambda outputs: -np.abs(outputs).sum(axis=1), **fields
    )
    assert with_score.refuted


def _less_along(share):
    """Noise of the right law but for one oblique direction, of which only a share is left."""
    direction = np.random.default_rng(1).normal(size=8)
    direction /= np.linalg.norm(direction)

    def noise(bits, count, dimension):
        whole = l2_laplace(bits, count, dimension)
        return whole - (1 - share) * np.outer(whole @ direction, direction)

    return noise


@pytest.mark.parametrize(("share", "least_loss"), [(0.0, 5.0), (0.1, 1.2)])
def test_noise_that_leaves_a_direction_out_is_refuted(share, least_loss):
    verdict = audit_vectors(
        Additive("unit ball", 8, _less_along(share), 2.0), claim(dptext.PureDP(1.0)), samples=SAMPLES, seed=1
    )
    assert verdict.refuted
    assert verdict.loss > least_loss
    assert "Fisher's discriminant" in verdict.witness
    sound = Additive("unit ball", 8, _less_along(1.0), 2.0)
    assert not audit_vectors(sound, claim(dptext.PureDP(1.0)), samples=SAMPLES, seed=1).refuted


def test_noise_that_hangs_on_the_length_is_refuted():
    channel = Additive("unit ball", 8, l2_laplace, 2.0)
    exact = channel.sample

    def sample(vectors, bits):
        return vectors + np.linalg.norm(vectors, axis=1, keepdims=True) * (exact(vectors, bits) - vectors)

    channel.sample = sample
    verdict = audit_vectors(channel, claim(dptext.PureDP(1.0)), samples=SAMPLES, seed=1)
    assert verdict.refuted
    assert "the zero vector" in verdict.witness


@pytest.mark.parametrize("offset", [1, 2048])
def test_rows_that_share_their_noise_are_told(offset):
    """Every other row, or every other block, gets the noise of the one before: each single output is sound."""

    def shared(bits, count, dimension):
        whole = l2_laplace(bits, count, dimension)
        rows = np.arange(count)
        return whole[np.where(rows // offset % 2 == 1, rows - offset, rows)]

    with pytest.raises(ParameterError, match="share their noise"):
        audit_vectors(Additive("unit ball", 4, shared, 2.0), claim(dptext.PureDP(1.0)), samples=SAMPLES, seed=1)


# -- the audit itself -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["unit sphere", "unit ball", "unit cube", "one-hot"])
def test_the_pairs_are_as_far_apart_as_the_domain_allows(domain):
    from dptext.representations.bounds import Domain

    l1, l2 = Domain(domain).sensitivity(5)
    pairs = extreme_pairs(domain, 5).values()
    assert max(np.linalg.norm(one - other) for one, other in pairs) == pytest.approx(l2)
    assert max(np.abs(one - other).sum() for one, other in pairs) == pytest.approx(l1)
    for pair in pairs:
        assert np.allclose(Domain(domain).bound(np.stack(pair)), np.stack(pair))


def test_the_draws_that_test_the_bound_are_not_those_that_chose():
    seen = []

    def draw(vectors, bits):
        outputs = bits.normal(len(vectors), 2)
        seen.append(outputs[:, 0].copy())
        return outputs

    audit_vectors(draw, claim(dptext.PureDP(1.0)), pair=([1.0, 0.0], [-1.0, 0.0]), samples=2_000, seed=1)
    draws = np.concatenate(seen)
    assert len(np.unique(draws)) == len(draws)


def test_too_few_samples_say_that_nothing_was_tested():
    channel = PrivUnit(epsilon=30.0).channel(4)
    verdict = audit_vectors(channel, claim(dptext.PureDP(30.0)), samples=1_000, seed=1)  # a claim that names no noise
    assert not verdict.refuted
    assert not verdict.refutable
    assert "NOT TESTED" in " ".join(verdict.explain().split())
    assert max(map(len, verdict.explain().splitlines())) <= 100
    assert json.loads(verdict.to_json())["refutable"] is False


@pytest.mark.slow
def test_a_device_is_audited_through_its_channel():
    words = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    encoder = dptext.PrivateEncoder(words, dptext.PrivUnit(epsilon=2.0)).fit()
    device = encoder.release_
    assert dptext.audit(encoder, samples=1_000, seed=1) == dptext.audit(device, samples=1_000, seed=1)
    verdict = dptext.audit(device, samples=50_000, seed=1)
    assert not verdict.refuted
    assert verdict.refutable
    looser = dptext.PrivUnit(epsilon=4.0).channel(device.bound.dimension)
    assert dptext.audit(looser, device.statement, samples=50_000, seed=1).refuted
    with pytest.raises(ParameterError, match="a channel has a fixed dimension: omit"):
        dptext.audit(device, dimension=2)
