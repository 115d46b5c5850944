"""Arguments and mechanisms that audits refuse, without a private text in the message."""

from dataclasses import replace

import numpy as np
import pytest

import dptext
from canaries import canary_loss
from dptext import TEM, MetricDP, PureDP, audit
from dptext.audits.losses import exact_loss, loss_bound, sampled_loss
from dptext.audits.vectors import audit_vectors
from dptext.audits.verdict import judge_exact, judge_gaussian
from dptext.errors import ParameterError
from dptext.privacy.guarantee import ApproxDP, NoGuarantee, Relation
from dptext.privacy.randomness import RandomBits
from dptext.representations.privunit import PrivUnit
from known_broken.case import claim
from sentences.banks import bank

SECRET = "private text"
POINTS = np.arange(6.0).reshape(3, 2)
VECTORS = dptext.load_vectors((["cat", "dog", "tax"], POINTS))
WORDS, RANDOMIZER = TEM(VECTORS, epsilon=3.0), PrivUnit(epsilon=2.0)
REWRITER = dptext.BankRewriter(bank(), epsilon=4.0, size=3)
PAIR = ([1.0, 0.0], [-1.0, 0.0])


def raises(*_arguments):
    raise ValueError(SECRET)


def normal(count, bits):
    return bits.normal(count, 4)


def sampled(draw):
    return lambda: sampled_loss(draw, normal, samples=1000, error=0.05)


def vectors(draw=None, statement=claim(PureDP(1.0)), pair=PAIR):  # noqa: B008  frozen
    return lambda: audit_vectors(draw or (lambda rows, bits: rows + bits.normal(*rows.shape)), statement, pair=pair)


def draws(sampler):
    half = np.log(np.full((2, 2), 0.5))
    return lambda: judge_exact(claim(PureDP(1.0)), half, 1.0, names="ab", coverage="", sampler=sampler, samples=100)


def gaussian(guarantee, sigma=1.0):
    released = guarantee if isinstance(guarantee, ApproxDP) else ApproxDP(1.0, 1e-6)
    return lambda: judge_gaussian(
        claim(guarantee), sigma=sigma, sensitivity=1.0, release_guarantee=released, coverage="a pair"
    )


REFUSED = {
    "claims": [
        (lambda: audit(WORDS, PureDP(1.0)), "must be a PrivacyStatement, with unit and relation, got PureDP"),
        (lambda: audit(WORDS, WORDS.document_statement(5)), "one about a document"),
        (lambda: audit(WORDS, WORDS.statement.replace(guarantee=NoGuarantee("broken"))), "nothing to refute"),
        (lambda: audit(WORDS, WORDS.statement.replace(guarantee=MetricDP(1.0, "hamming"))), "which is unknown. Pass"),
        (vectors(statement=claim(NoGuarantee("none"))), "has no guarantee"),
        (vectors(statement=claim(MetricDP(1.0, "euclidean"))), "expected a claim for any two vectors"),
        (vectors(statement=replace(claim(PureDP(1.0)), relation=Relation.ADD_REMOVE)), "expected a claim for any two"),
        (gaussian(ApproxDP(1.0, 0.0)), "delta"),
        (gaussian(NoGuarantee("none")), "has no guarantee"),
        (gaussian(ApproxDP(1.0, 1e-6), sigma=0.0), "sigma"),
        (lambda: audit(RANDOMIZER.channel(4)), "a channel has no statement"),
    ],
    "options": [
        (lambda: audit(RANDOMIZER), "dimension=64"),
        (
            lambda: audit(RANDOMIZER.channel(4), RANDOMIZER.statement(4), dimension=4),
            "a channel has a fixed dimension: omit",
        ),
        (lambda: audit(RANDOMIZER, dimension=4, words=["cat"]), "words= does not apply to a mechanism of vectors"),
        (lambda: audit(WORDS, dimension=4, score="learnt"), "dimension=, score= does not apply"),
        (lambda: audit(REWRITER, words=["tea"]), "does not apply to a mechanism of texts"),
        (
            lambda: audit(WORDS, distance=lambda rows, matrix: matrix),
            "distance, which the audit computes. Omit distance=",
        ),
        (lambda: audit(WORDS, words=["cat", "cat"]), "at least two different words"),
        (lambda: audit(REWRITER, texts=["tea", "tea"]), "at least two different texts"),
        (vectors(pair=None), "the domain of a plain function is"),
        (vectors(pair=([1.0], [1.0])), "two different vectors"),
    ],
    "tables and scores": [
        (lambda: exact_loss([[0.0]], allowed=1.0), "at least two inputs"),
        (lambda: exact_loss(np.log([[0.5, 0.5], [0.5, 0.4]]), allowed=1.0), "is not a distribution: it sums to 0.9"),
        (lambda: exact_loss([[0.0, -np.inf], [np.nan, 0.0]], allowed=1.0), "row 1 of the log-probabilities"),
        (lambda: loss_bound(np.zeros(3), np.zeros(3), error=0.05), "at least 8"),
        (lambda: sampled_loss(normal, normal, samples=5, error=0.05), "at least 100, got 5"),
        (lambda: canary_loss(np.array, lambda kept: kept[:-1], canaries=50), "one for each entry of inserted"),
        (lambda: canary_loss(np.array, np.array, canaries=10, guesses=11), "guesses must be"),
    ],
    "mechanisms": [
        (sampled(raises), "raised ValueError"),
        (sampled(lambda count, bits: bits.normal(count + 1)), "returned shape"),
        (sampled(lambda count, bits: 3.0), "returned shape ()"),
        (sampled(lambda count, bits: np.zeros(count)), "not random"),
        (sampled(lambda count, bits: RandomBits(3).normal(count)), "not random"),
        (draws(lambda inputs, _bits: inputs[:-1]), "returned shape"),
        (draws(lambda inputs, _bits: inputs / 2), "the mechanism must return one output per"),
        (draws(raises), "raised ValueError"),
        (vectors(raises), "raised ValueError"),
        (vectors(lambda rows, bits: np.arange(128.0).reshape(64, 2)), "a fixed seed is not noise"),
        (vectors(lambda rows, bits: bits.normal(len(rows))), "returned shape (64,) for 64 vectors"),
        (
            vectors(lambda rows, bits: bits.normal(len(rows), 1 + (rows[0, 0] > 0))),
            "the outputs of the mechanism have different",
        ),
    ],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_arguments_and_mechanisms_are_refused(kind):
    for call, message in REFUSED[kind]:
        with pytest.raises(ParameterError) as caught:
            call()
        assert message in str(caught.value)
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is None or caught.value.__suppress_context__
