"""SUE, OUE and OME: true epsilons by enumeration and closed form, the law of sent bits, and statements."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext.audits.losses import exact_loss
from dptext.privacy.randomness import RandomBits
from dptext.representations.published import DPNR, DPText
from dptext.representations.published_protocols import OME, OUE, SUE
from known_broken.published import table_of

FALSE_ALARM = 1e-6
SAFE = {"unsafe_as_published": True}
ALL = [SUE, OUE, OME]


def epsilon_of(protocol, dimension, **options):
    return protocol(**{"epsilon": 1.0, **options}, **SAFE).statement(dimension).epsilon


def witness_loss(channel):
    one, other = channel.code_of(np.stack(channel.witness))
    return np.where(one & ~other, channel.up, np.where(other & ~one, channel.down, 0)).sum()


# -- the true epsilon ------------------------------------------------------------------------------------------------


def test_epsilons_are_those_of_closed_forms():
    for dimension, lambda_, epsilon in [(50, 10, 1703.4), (50, 100, 3451.4), (768, 100, 53_013.4)]:
        closed = 5 * dimension * math.log(lambda_**3 - lambda_**2 + lambda_)
        assert closed == pytest.approx(epsilon, abs=0.05)
        for claimed, scores in product((0.5, 10.0), ("vector", "public")):
            result = epsilon_of(OME, dimension, lambda_=lambda_, epsilon=claimed, scores=scores)
            assert result == pytest.approx(closed, rel=1e-9)  # independent of the claim
    assert epsilon_of(OME, 50, lambda_=1.0) == pytest.approx(500 * math.log((1 + math.exp(1 / 500)) / 2), rel=1e-9)
    assert epsilon_of(OUE, 50) == pytest.approx(2.506, abs=5e-4)
    for epsilon, bits in product((0.5, 1.0, 8.0), (5, 9, 10)):
        assert epsilon_of(SUE, 50, epsilon=epsilon, bits=bits) == pytest.approx(epsilon * bits / 2, rel=1e-9)
    for dimension, bits in [(1, 5), (3, 3), (5, 9), (51, 9)]:  # an odd number of bits: one even bit more
        lambda_, width = 20.0, dimension * bits
        raised = lambda_ * math.exp(1 / width)
        on_even, on_odd = (
            math.log(lambda_ * (1 + raised) / (1 + lambda_)),
            abs(math.log((1 + lambda_**3) / (1 + raised))),
        )
        result = epsilon_of(OME, dimension, lambda_=lambda_, bits=bits, integer_bits=1, scores="public")
        assert result == pytest.approx((width + 1) // 2 * on_even + width // 2 * on_odd, rel=1e-9)


@pytest.mark.parametrize(("build", "options"), [(SUE, {}), (OUE, {}), (OME, {"lambda_": 1.0}), (OME, {"lambda_": 3.0})])
def test_stated_epsilon_is_the_worst_of_all_pairs_of_codes(build, options):
    """Every output of every code that occurs, by the chances of the sampler; also where lambda^2 < e^(eps/rl)."""
    for (dimension, bits), epsilon in product(((1, 4), (3, 2)), (0.5, 6.0)):
        values = build(epsilon=epsilon, bits=bits, integer_bits=1, scores="public", **options, **SAFE)
        channel = values.channel(dimension)
        table, claim = table_of(channel), channel.guarantee.epsilon
        assert len(table) == 2 ** (dimension * bits)
        result = exact_loss(np.log(table), allowed=claim)
        assert result.excess <= 1e-12
        assert result.largest == pytest.approx(claim, rel=1e-9)
        assert exact_loss(np.log(table), allowed=claim / 1.5).excess > 0
        assert witness_loss(channel) == pytest.approx(claim, rel=1e-9)
        assert channel.finding.attained == claim


@pytest.mark.parametrize("build", ALL)
def test_witness_is_the_worst_pair_of_codes_that_z_scores_reach(build):
    """All codes of a fine grid of directions, in the plane of mean 0, which z-scores lie in."""
    angles = np.linspace(0, 2 * np.pi, 20_001)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for dimension, axes in ((2, np.eye(2)), (3, np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]]))):
        channel = build(epsilon=2.0, bits=4, integer_bits=1, **SAFE).channel(dimension)
        codes = np.unique(channel.code_of(np.vstack([circle @ axes, *channel.witness, np.ones(dimension)])), axis=0)
        assert len(codes) < 2**channel.bits
        ones, zeros = codes.astype(float), 1.0 - codes
        worst = ((ones * channel.up) @ zeros.T + (zeros * channel.down) @ ones.T).max()
        assert channel.finding.attained == pytest.approx(worst, rel=1e-12)
        assert worst <= channel.guarantee.epsilon


def test_witness_refutes_the_claim():
    for dimension, (bits, integer_bits) in product((2, 3, 768), ((10, 4), (4, 0), (16, 4))):
        channel = OME(epsilon=1.0, bits=bits, integer_bits=integer_bits, **SAFE).channel(dimension)
        assert channel.finding.attained == pytest.approx(witness_loss(channel), rel=1e-9)
        assert channel.finding.verdict == "false"
        assert 1 < channel.finding.attained <= channel.guarantee.epsilon
        if bits == 10 and dimension == 768:
            assert channel.finding.attained > 0.6 * channel.guarantee.epsilon
    small = [(2, 3, 1, 12.0), (2, 4, 1, 16.0), (4, 3, 1, 12.0), (50, 3, 1, 12.0), (50, 4, 3, 8.6), (50, 10, 4, 28.0)]
    for dimension, bits, integer_bits, attained in small:  # a difference in signs and fractions alone loses less
        channel = SUE(epsilon=8.0, bits=bits, integer_bits=integer_bits, **SAFE).channel(dimension)
        assert channel.finding.attained >= attained * (1 - 1e-9)
        assert channel.finding.verdict == "false"


# -- chances ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", ALL)
def test_sent_bits_follow_the_law_and_another_is_rejected(build):
    """All outputs of one vector of two numbers; the other law has one and a half times the epsilon."""
    draws = 200_000
    options = {"bits": 4, "integer_bits": 1, "scores": "public", **SAFE} | ({"lambda_": 2.0} if build is OME else {})
    x = np.array([0.3, -0.8])
    expected = {}
    for share in (1.0, 1.5):
        channel = build(epsilon=4.0 * share, **options).channel(2)
        row = int(channel.code_of(x[None])[0] @ (1 << np.arange(8)))
        expected[share] = draws * table_of(channel)[row]
    sent = build(epsilon=4.0, **options).channel(2).send(np.tile(x, (draws, 1)), RandomBits(5))
    codes = np.unpackbits(sent, axis=1)[:, :8] @ (1 << np.arange(8))
    counts = np.bincount(codes, minlength=256)
    assert stats.chisquare(counts, expected[1.0] * counts.sum() / expected[1.0].sum()).pvalue > FALSE_ALARM
    assert stats.chisquare(counts, expected[1.5] * counts.sum() / expected[1.5].sum()).pvalue < FALSE_ALARM


def test_sent_bits_are_decoded_and_every_row_has_its_own_noise():
    values = OME(epsilon=1.0, lambda_=2.0, **SAFE)
    vectors = np.random.default_rng(6).normal(size=(5, 7))
    sent = values.send(vectors, seed=3)
    bits = values.decode(sent, 7)
    assert (sent.shape, bits.shape, bits.dtype) == ((5, 9), (5, 70), np.float32)
    assert set(np.unique(bits)) == {0.0, 1.0}
    assert (bits == values.randomize(vectors, seed=3)).all()
    assert (np.unpackbits(sent, axis=1)[:, 70:] == 0).all()
    many = SUE(epsilon=1.0, bits=4, integer_bits=1, **SAFE).send(np.ones((150_000, 2)) * [1, 2], seed=1)[:, 0]
    for distance in (1, 8192, 131_072):  # 131,072 rows per task
        assert (many[distance:] == many[:-distance]).mean() < 0.05


# -- statements ------------------------------------------------------------------------------------------------------


def test_statement_has_both_epsilons_the_reason_and_a_witness():
    statement = OME(epsilon=1.0, lambda_=100, dimension=50, bits=10, **SAFE).statement()
    assert (statement.mechanism, statement.claimed_epsilon) == ("OME", 1.0)
    assert statement.guarantee.epsilon == pytest.approx(3451.39, abs=0.01)
    parameters = statement.parameters
    assert parameters["claim_is"] == "false"
    assert "Theorem 1" in parameters["reason"]
    assert "upper bound" in parameters["holds_for"]
    assert "codes 0000100000" in parameters["witness"]
    assert parameters["witness_loss"] == pytest.approx(2245.82, abs=0.01)
    for holds in (OME(epsilon=1.0, lambda_=1.0, **SAFE), SUE(epsilon=1.0, bits=2, integer_bits=1, **SAFE)):
        statement = holds.statement(50)
        assert statement.epsilon <= 1.0
        assert (statement.parameters["claim_is"], statement.parameters["reason"]) == ("true", None)


# -- in an encoder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("randomizer", "epsilon"),
    [
        (OME(epsilon=0.5, **SAFE), OME(epsilon=0.5, **SAFE).statement(12).epsilon),
        (SUE(epsilon=0.5, scores="public", **SAFE), 2.5),
        (DPNR(epsilon=0.5, **SAFE), 6.0),
        (DPNR(epsilon=0.5, noise="one scalar", **SAFE), math.inf),
        (DPText(epsilon=0.5, **SAFE), math.inf),
    ],
)
def test_published_mechanisms_work_in_a_private_encoder(randomizer, epsilon):
    points = np.random.default_rng(8).normal(size=(60, 12))
    words = dptext.load_vectors(([f"word{'abcdefghij'[n % 10]}{n}x" for n in range(60)], points))
    encoder = dptext.PrivateEncoder(words, randomizer, projection=None).fit()
    assert len(encoder.transform([f"{words.words[3]} {words.words[5]}", "", None])) == 3
    assert (encoder.statement_.claimed_epsilon, encoder.statement_.epsilon) == (0.5, pytest.approx(epsilon))
    assert encoder.release_.bound.domain == randomizer.natural_domain
