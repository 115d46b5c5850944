"""`dptext.audit` and the verdict: refuted and kept claims, their text, and independent formulas of distances."""

import json
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import dptext
from dptext import TEM, MetricDP, PureDP, audit
from dptext.audits.mechanisms import distance_named
from dptext.audits.verdict import Outcome, judge_exact
from dptext.errors import ParameterError
from dptext.privacy.guarantee import Unit
from known_broken.case import ApproxDP, claim
from sentences.banks import bank

POINTS = np.random.default_rng(1).normal(size=(40, 6)) / 10


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
    assert "REFUTED" in " ".join(verdict.explain().split())
    named = [word for word in small.words if f"{word!r}" in verdict.witness]
    assert len(named) >= 2
    assert audit(mechanism, mechanism.statement.replace(guarantee=PureDP(0.5), slack=0.0)).refuted


def test_a_pure_claim_with_the_threshold_is_kept(mechanism):
    pure = mechanism.statement.replace(guarantee=PureDP(mechanism.word_guarantee().pure_epsilon))
    assert audit(mechanism, pure).outcome is Outcome.EXACT


def test_a_mechanism_without_a_distribution_is_sampled(small):
    class Hidden:
        def __init__(self, inner, reported):
            self.vectors, self.statement, self.sample = inner.vectors, reported.statement, inner.sample

    gentle, harsh = TEM(small, epsilon=0.5), TEM(small, epsilon=8.0)
    words = [small.words[1], small.words[2]]
    honest = audit(Hidden(gentle, gentle), words=words, samples=20_000, seed=1)
    assert honest.outcome is Outcome.CONSISTENT
    assert honest.refutable
    assert honest.explain().startswith("NOT REFUTED")
    lying = audit(Hidden(harsh, gentle), words=words, samples=20_000, seed=1)
    assert lying.refuted
    assert "Wrong with probability at most" in " ".join(lying.explain().split())


def test_probabilities_alone_make_it_exact(mechanism):
    class Shown:
        vectors, statement, probabilities = mechanism.vectors, mechanism.statement, mechanism.probabilities

    assert audit(Shown(), words=list(mechanism.vectors.words[:40])).outcome is Outcome.EXACT


def test_a_sample_that_could_not_refute_says_so(small):
    words = [small.words[1], small.words[2]]
    verdict = audit(dptext.Madlib(small, epsilon=500.0), words=words, samples=1_000)
    assert not verdict.refutable
    assert verdict.explain().startswith("NOT TESTED")


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
    assert "infinite (allowed: 2)" in " ".join(verdict.explain().split())


def test_distances_are_those_of_scipy():
    result = distance_named("euclidean", None)(POINTS[:7], POINTS)
    np.testing.assert_allclose(result, cdist(POINTS[:7], POINTS), atol=1e-14)


def test_the_angle_is_the_arc_cosine_where_that_is_accurate():
    result = distance_named("angular", None)(POINTS[:7], POINTS)
    cosine = 1 - cdist(POINTS[:7], POINTS, "cosine")
    np.testing.assert_allclose(np.cos(result), cosine, atol=1e-14)
    points = np.array([[0.0, 0.0], [3.0, 0.0], [1.0, 1e-9], [-2.0, 1e-9], [0.0, 5.0]])
    np.testing.assert_allclose(
        distance_named("angular", None)(points[:1], points)[0], [0, 0, 1e-9, math.pi - 5e-10, math.pi / 2], rtol=1e-9
    )


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_a_claim_that_is_too_small_in_its_metric_is_refuted(small, metric):
    mechanism = TEM(small, epsilon=3.0, metric=metric)
    assert audit(mechanism).outcome == "exact"
    guarantee = mechanism.word_guarantee()
    lie = mechanism.statement.replace(guarantee=MetricDP(1.2, metric, guarantee.max_distance, guarantee.space))
    assert audit(mechanism, lie).refuted


def test_a_claim_in_another_metric_is_refuted_where_that_one_is_smaller(small):
    mechanism = TEM(small, epsilon=3.0)
    guarantee = mechanism.word_guarantee()
    lie = mechanism.statement.replace(guarantee=MetricDP(3.0, "angular", guarantee.max_distance, guarantee.space))
    assert audit(mechanism, lie).refuted


def test_a_distance_that_would_allow_everything_is_refused(small):
    def nothing(rows, matrix):
        return np.abs(rows[:, None] - matrix[None]).max(axis=2)

    mechanism = TEM(small, epsilon=3.0, metric=nothing)
    with pytest.raises(ParameterError, match="must be at least 0"):
        audit(mechanism, distance=lambda rows, matrix: np.full((len(rows), len(matrix)), np.nan))


def test_the_mahalanobis_distance_is_shaped_by_the_whole_vocabulary():
    axes = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])  # variances 4.5 and .5, so 1.8 and .2
    name = "regularized mahalanobis (lambda 0.5)"
    measure = distance_named(name, None, axes)
    far = measure(np.zeros((1, 2)), np.array([[7.0, 0.0], [0.0, 6.0]]))
    np.testing.assert_allclose(far, [[7 / math.sqrt(1.4), 6 / math.sqrt(0.6)]])
    with pytest.raises(ParameterError, match="which is unknown"):
        distance_named(name, None)
    equal = distance_named("regularized mahalanobis (lambda 1.0)", None, np.ones((3, 2)))
    np.testing.assert_allclose(equal(np.zeros((1, 2)), np.array([[3.0, 4.0]])), [[5.0]])


# -- texts of a bank ------------------------------------------------------------------------------------------------


def rewriter(**options):
    return dptext.BankRewriter(bank(), **{"epsilon": 4.0, "size": 3} | options)


class Bent:
    """A rewriter with the statement and distribution of the honest one that draws by another rule."""

    def __init__(self, honest, sample=None, shares=None):
        self.bank, self.part_statement = honest.bank, honest.part_statement
        self.sample = sample or honest.sample
        self.distributions = shares or honest.distributions


def test_texts_of_a_bank_are_exact_over_all_pairs_and_shown_by_draws():
    verdict = audit(rewriter(), samples=20_000, seed=1)
    assert verdict.outcome is Outcome.EXACT
    assert verdict.loss == pytest.approx(4.0, abs=1e-9)
    assert verdict.loss <= verdict.allowed
    assert verdict.draws.agree
    assert not any(text in verdict.explain() for text in bank().texts)


def test_a_sentence_of_a_document_is_held_to_its_share():
    verdict = audit(rewriter(unit="document", max_sentences=2), samples=2_000, seed=1)
    assert verdict.allowed == 2.0
    assert verdict.loss == pytest.approx(2.0, abs=1e-9)
    assert audit(rewriter(), dptext.BankRewriter(bank(), epsilon=3.9).statement, samples=2_000, seed=1).refuted


def _nearest(texts, **_options):
    honest = rewriter()
    return [bank().texts[place] for place in honest.distributions(texts).argmax(axis=1)]


def _others_share(texts, **_options):
    return rewriter(epsilon=6.0).sample(texts)


def _own_words(texts, **_options):
    return [
        text if number % 500 == 7 else draws
        for number, (text, draws) in enumerate(zip(texts, rewriter().sample(texts), strict=True))
    ]


@pytest.mark.parametrize("sample", [_nearest, _others_share, _own_words])
def test_a_sampler_that_does_not_follow_what_it_shows_is_refuted(sample):
    verdict = audit(Bent(rewriter(), sample), texts=["tea", "the law", "a dog", "nothing"], samples=20_000, seed=1)
    assert verdict.refuted
    assert not audit(Bent(rewriter()), texts=["tea", "the law", "a dog", "nothing"], samples=20_000, seed=1).refuted


def test_a_shown_distribution_that_loses_too_much_is_refuted():
    def shares(texts):
        return rewriter(epsilon=4.4).distributions(texts)

    assert audit(Bent(rewriter(), shares=shares), samples=2_000, seed=1).refuted
