"""Draws compared with a known distribution, and private vectors with the noise that their statement names.

Honest draws are refuted with the stated probability at most, at any number of draws; all that is missing noise is.
"""

import numpy as np
import pytest

import dptext
from dptext.audits.goodness import compare_releases, compare_vectors, stated_noise
from dptext.audits.vectors import audit_vectors
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import L2Laplace
from dptext.representations.registry import RANDOMIZERS
from known_broken.randomizers import Altered, bare_at_the_rim, correlated

DIMENSION = 64
RANDOMIZER = L2Laplace(epsilon=3.0)


def built(kind):
    return kind(epsilon=3.0, **({"delta": 1e-6} if kind.name == "Gaussian" else {}))


# -- the noise of a statement -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RANDOMIZERS.values(), ids=lambda kind: kind.name)
def test_every_randomizer_draws_the_noise_that_its_statement_names(kind):
    """And the constants of that noise give the epsilon that is stated."""
    for dimension in (2, 20):
        statement = built(kind).statement(dimension)
        noise = stated_noise(statement)
        assert noise is not None
        agreement = compare_vectors(built(kind).channel(dimension).sample, noise, error=1e-6, bits=RandomBits(1))
        assert agreement.agree, agreement.witness
        reach = np.full(dimension, 1.0 if noise.domain == "unit cube" else dimension**-0.5)
        pair = np.eye(dimension)[:2] if noise.domain == "one-hot" else (reach, -reach)
        assert noise.loss(*pair) == pytest.approx(3.0, rel=1e-6)


def test_the_stated_noise_is_refuted_no_more_often_than_stated():
    noise = stated_noise(RANDOMIZER.statement(4))
    draw = RANDOMIZER.channel(4).sample
    refuted = sum(not compare_vectors(draw, noise, error=0.2, bits=RandomBits(seed)).agree for seed in range(40))
    assert refuted <= 16  # of Binomial(40, .2) with probability 1 - .002


@pytest.mark.parametrize(
    "alter",
    [
        *(lambda _vectors, noise, share=share: share * noise for share in (0.0, 0.35, 0.5, 0.7, 0.9)),
        correlated,
        bare_at_the_rim,
        lambda vectors, noise: np.where((vectors == 0).all(axis=1, keepdims=True), 0.0, noise),
        lambda vectors, noise: noise + vectors,
    ],
    ids=["none", ".35", ".5", ".7", ".9", "correlated", "bare at the rim", "bare at zero", "leaning towards the input"],
)
def test_less_noise_than_stated_is_refuted_in_many_dimensions(alter):
    mechanism = Altered(RANDOMIZER.channel(DIMENSION), alter)
    for seed in range(2):
        verdict = audit_vectors(mechanism, RANDOMIZER.statement(DIMENSION), samples=10_000, seed=seed)
        assert verdict.refuted, verdict.explain()


def test_an_audit_says_what_the_stated_noise_itself_would_show():
    """200,000 samples of anything show 8.8 nats at most; a score of this noise, about a half."""
    verdict = dptext.audit(RANDOMIZER, dimension=DIMENSION, samples=2_000, seed=1)
    assert not verdict.refuted
    assert verdict.strongest < 1
    assert verdict.refutable
    assert "The stated noise shows" in " ".join(verdict.explain().split())


def test_noise_that_is_too_small_for_its_epsilon_is_refuted_by_its_statement():
    statement = RANDOMIZER.statement(DIMENSION)
    verdict = dptext.audit(
        RANDOMIZER, statement.replace(guarantee=dptext.PureDP(2.0)), dimension=DIMENSION, samples=500, seed=1
    )
    assert verdict.refuted
    assert verdict.loss == pytest.approx(3.0)


# -- whole documents ------------------------------------------------------------------------------------------------


def _documents(words):
    """Each word of a document independent, or one for all."""

    def release(documents, bits):
        private = []
        for document in documents:
            draws = [f"w{int(entry * 8)}" for entry in bits.uniform(words or len(document.split()))]
            private.append(" ".join((draws * 3)[:3]))
        return private

    return release


def _twice(documents, bits):
    """Equal documents that come one after the other get one draw."""
    return [text for text in _documents(None)(documents[::2], bits) for _ in range(2)]


def test_parts_that_share_their_coins_are_told_and_others_are_not():
    honest = _documents(None)
    for seed in range(5):
        fields = {"copies": 3, "bits": RandomBits(seed)}
        assert not compare_releases(_documents(1), honest, ["a", "b"], error=1e-6, **fields).agree
        same = compare_releases(_twice, honest, ["a", "b"], error=1e-6, **fields)
        assert "equal documents" in same.witness
    refuted = sum(
        not compare_releases(honest, honest, ["a", "b"], copies=3, error=0.2, bits=RandomBits(seed)).agree
        for seed in range(40)
    )
    assert refuted <= 16
