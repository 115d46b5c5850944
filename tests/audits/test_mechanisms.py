"""`dptext.audit` and the verdict: what is refuted, what is kept, and how it reads."""

import json
import math

import numpy as np
import pytest

import dptext
from dptext import TEM, MetricDP, NoGuarantee, PureDP, Unit, audit
from dptext.audits import Outcome, judge_exact
from zoo.case import ApproxDP, claim


@pytest.fixture(scope="module")
def mechanism(small):
    return TEM(small, epsilon=3.0)


def test_tem_is_exact_over_all_pairs(mechanism):
    verdict = audit(mechanism)
    assert verdict.outcome is Outcome.EXACT
    assert verdict.loss <= verdict.allowed
    assert "all pairs of 301 words (45,150 pairs" in verdict.coverage
    assert verdict.explain().startswith("KEPT")


def test_a_claim_that_is_too_small_is_refuted_with_its_witness(mechanism, small):
    lie = mechanism.statement.replace(guarantee=MetricDP(1.0, "euclidean", mechanism.threshold))
    verdict = audit(mechanism, lie)
    assert verdict.refuted
    assert verdict.loss > verdict.allowed
    assert "REFUTED" in verdict.explain()
    named = [word for word in small.words if f"{word!r}" in verdict.witness]
    assert len(named) >= 2
    assert audit(mechanism, mechanism.statement.replace(guarantee=PureDP(0.5), slack=0.0)).refuted


def test_a_pure_claim_with_the_threshold_is_kept(mechanism):
    pure = mechanism.statement.replace(guarantee=PureDP(mechanism.word_guarantee().pure_epsilon))
    assert audit(mechanism, pure).outcome is Outcome.EXACT


def test_words_can_be_named(mechanism, small):
    verdict = audit(mechanism, words=["<unk>", small.words[0], small.words[5]])
    assert "the pairs of 3 words (3 pairs" in verdict.coverage


def test_a_mechanism_without_a_distribution_is_sampled(small):
    class Hidden:
        def __init__(self, inner, shown):
            self.vectors, self.statement, self.sample = inner.vectors, shown.statement, inner.sample

    gentle, harsh = TEM(small, epsilon=0.5), TEM(small, epsilon=8.0)
    words = [small.words[1], small.words[2]]
    honest = audit(Hidden(gentle, gentle), words=words, samples=20_000, seed=1)
    assert honest.outcome is Outcome.CONSISTENT
    assert honest.refutable
    assert honest.explain().startswith("NOT REFUTED")
    lying = audit(Hidden(harsh, gentle), words=words, samples=20_000, seed=1)
    assert lying.refuted
    assert "wrong with probability at most" in lying.explain()


def test_probabilities_alone_make_it_exact(mechanism):
    class Shown:
        vectors, statement, probabilities = mechanism.vectors, mechanism.statement, mechanism.probabilities

    assert audit(Shown(), words=list(mechanism.vectors.words[:40])).outcome is Outcome.EXACT


def test_a_sample_that_could_not_refute_says_so(small):
    words = [small.words[1], small.words[2]]
    verdict = audit(dptext.Madlib(small, epsilon=500.0), words=words, samples=1_000)
    assert not verdict.refutable
    assert verdict.explain().startswith("NOT TESTED")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda m: PureDP(1.0), "must be a PrivacyStatement, which names unit and relation, got PureDP"),
        (lambda m: 1.0, "got float"),
        (lambda m: m.document_statement(5), "one about a document"),
        (lambda m: m.statement.replace(guarantee=NoGuarantee("broken")), "nothing to refute"),
        (
            lambda m: m.statement.replace(guarantee=MetricDP(1.0, "hamming")),
            "got 'hamming', which is not known here: give",
        ),
    ],
)
def test_claims_that_cannot_be_audited_are_refused(mechanism, make, what):
    with pytest.raises(dptext.ParameterError, match=what):
        audit(mechanism, make(mechanism))


def test_two_different_words_are_needed(mechanism, small):
    with pytest.raises(dptext.ParameterError, match="at least two different words"):
        audit(mechanism, words=[small.words[0]] * 2)


def test_an_approximate_claim_is_judged_by_its_delta():
    shares = np.array([[0.6, 0.39, 0.01], [0.39, 0.6, 0.01], [0.4, 0.6, 0.0]])
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    names = ["a", "b", "c"]
    kept = judge_exact(claim(ApproxDP(0.5, 0.011)), logs, None, names=names, coverage="three inputs")
    broken = judge_exact(claim(ApproxDP(0.5, 0.009)), logs, None, names=names, coverage="three inputs")
    assert (kept.outcome, broken.outcome) == (Outcome.EXACT, Outcome.REFUTED)


def test_a_verdict_is_json_with_infinities_spelled():
    with np.errstate(divide="ignore"):
        logs = np.log([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]])
    verdict = judge_exact(claim(PureDP(2.0), Unit.WORD), logs, 2.0, names=["a", "b"], coverage="two words")
    data = json.loads(verdict.to_json())
    assert data["outcome"] == "refuted"
    assert data["loss"] == "infinity"
    assert data["claim"] == {"kind": "pure", "epsilon": 2.0}
    assert verdict.loss == math.inf
    assert "infinitely many nats" in verdict.explain()
