"""Draws compared with the stated distribution: agreement, differences, and the rate of false alarms."""

import json
import math

import numpy as np
import pytest

import dptext
from dptext import TEM, PureDP
from dptext.audits.goodness import compare_draws
from dptext.audits.verdict import Outcome, judge_exact
from dptext.privacy.randomness import RandomBits
from known_broken.case import ApproxDP, claim

FALSE_ALARM = 1e-6


def shares_of(inputs, outputs, seed=1):
    shares = np.random.default_rng(seed).dirichlet(np.full(outputs, 0.3), size=inputs)
    shares = np.maximum(shares, 1e-12)
    return shares / shares.sum(axis=1, keepdims=True)


def sampler_of(shares):
    sums = np.cumsum(shares, axis=1) / shares.sum(axis=1)[:, None]

    def draw(inputs, bits):
        return (sums[inputs] <= bits.uniform(inputs.size)[:, None]).sum(axis=1)

    return draw


def compared(reported, sampled, *, samples=40_000, error=FALSE_ALARM, closely=(), seed=1):
    with np.errstate(divide="ignore"):
        logs = np.log(reported)
    sampler = sampled if callable(sampled) else sampler_of(sampled)
    names = [f"input {row}" for row in range(len(reported))]
    bits = RandomBits(seed)
    return compare_draws(logs, sampler, samples=samples, error=error, bits=bits, names=names, closely=closely)


# -- the test itself ----------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("inputs", "outputs", "samples"), [(2, 2, 100), (5, 3, 400), (20, 50, 2_000), (3, 1_000, 6_000)]
)
def test_draws_of_the_shown_distribution_disagree_no_more_often_than_is_said(inputs, outputs, samples):
    """At an error of a half, where alarms can be counted: 100 or more in 120 runs have a chance below 1e-13."""
    alarms = 0
    for seed in range(120):
        shares = shares_of(inputs, outputs, seed)
        alarms += not compared(shares, shares, samples=samples, error=0.5, closely=(0, 1), seed=seed).agree
    assert alarms < 100


def test_the_tail_is_an_upper_bound_for_few_draws_of_rare_outputs():
    """P(G >= x) of three draws among chances 1e-3, 1e-3 and the rest, enumerated: no chi-square would hold there."""
    from dptext.audits.goodness import _log_tail

    chances = np.array([1e-3, 1e-3, 0.998])
    result = []
    for first in range(4):
        for second in range(4 - first):
            counts = np.array([first, second, 3 - first - second])
            ways = math.factorial(3) / math.prod(map(math.factorial, counts.tolist()))
            with np.errstate(divide="ignore", invalid="ignore"):
                distance = np.where(counts > 0, counts * np.log(counts / 3 / chances), 0.0).sum()
            result.append((float(distance), float(ways * np.prod(chances**counts))))
    for distance, _ in result:
        probability = sum(entry for other, entry in result if other >= distance)
        assert math.log(probability) <= _log_tail(distance, 2) + 1e-12


def test_a_sampler_of_another_distribution_is_told_apart():
    visible = shares_of(30, 200)
    assert compared(visible, visible).agree
    sharper = visible**1.5
    assert not compared(visible, sharper / sharper.sum(axis=1, keepdims=True)).agree


def test_one_input_among_many_is_told_apart():
    visible = shares_of(300, 40)
    other = visible.copy()
    other[137] = np.eye(40)[int(visible[137].argmin())]
    result = compared(visible, other)
    assert not result.agree
    assert result.witness.startswith("under 'input 137' one of a group of")


def test_a_small_deviation_of_all_inputs_is_told_apart_by_their_sum():
    visible = np.full((400, 2), 0.5)
    leaning = np.tile([0.56, 0.44], (400, 1))
    samples = 40_000  # 100 an input: six more of 50 alone show nothing
    assert not compared(visible, leaning, samples=samples).agree
    assert compared(visible[:2], leaning[:2], samples=200).agree


def test_an_output_of_probability_zero_is_told_apart_from_one_draw_on():
    visible = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]])

    def sampler(inputs, bits):
        draws = np.minimum(sampler_of(visible)(inputs, bits), 1)
        draws[np.flatnonzero(inputs == 0)[0]] = 2
        return draws

    result = compared(visible, sampler, samples=100)
    assert result.witness.startswith("under 'input 0' output 2 was drawn, which has probability 0")
    beyond = compared(visible, lambda inputs, _bits: np.full(inputs.size, 3), samples=100)
    assert "an unknown output" in beyond.witness


def test_calls_that_repeat_themselves_are_told_apart():
    visible = shares_of(20, 100)
    result = compared(visible, lambda inputs, _bits: sampler_of(visible)(inputs, RandomBits(3)))
    assert "pairs of draws of two calls for the same inputs are equal" in result.witness


def test_draws_of_one_call_that_repeat_themselves_are_told_apart():
    visible = np.full((200, 100), 0.01)

    def paired_draws(inputs, bits):
        """The second and the first occurrence of an input share their draw, and the counts are right."""
        order = np.argsort(inputs, kind="stable")
        draws = np.empty_like(inputs)
        draws[order] = np.repeat(sampler_of(visible)(inputs[order][::2], bits), 2)
        return draws

    result = compared(visible, paired_draws, samples=3_200)  # 8 of each input in a call: the counts alone tell nothing
    assert "pairs of draws of one call for the same input are equal" in result.witness


# -- the verdict --------------------------------------------------------------------------------------------------


def test_a_mechanism_that_returns_its_input_is_refuted_whatever_it_shows(small):
    class Returned(TEM):
        def _draw(self, rows, bits):
            return rows

    assert dptext.audit(TEM(small, epsilon=3.0)).outcome is Outcome.EXACT
    for seed in (None, 1):
        verdict = dptext.audit(Returned(small, epsilon=3.0), seed=seed)
        assert verdict.refuted
        assert verdict.error == FALSE_ALARM
        text = verdict.explain()
        assert text.startswith("REFUTED: the mechanism does not draw from the distribution that it reports")
        assert "expected" in verdict.witness
        assert "unknown, because the draws differ" in " ".join(text.split())
        assert json.loads(verdict.to_json())["draws"]["agree"] is False


def test_a_mechanism_draws_in_the_audit_as_it_does_in_use(small):
    """Without a seed it is not given one: a sampler that is sound with a seed only is refuted."""

    class Seeded(TEM):
        def sample(self, words, *, seed=None):
            words = list(words)
            return words if seed is None else super().sample(words, seed=seed)

    assert dptext.audit(Seeded(small, epsilon=3.0)).refuted
    assert dptext.audit(Seeded(small, epsilon=3.0), seed=1).outcome is Outcome.EXACT


def test_an_exact_audit_without_draws_claims_less(small):
    mechanism = TEM(small, epsilon=3.0)

    class Shown:
        vectors, statement, distributions = mechanism.vectors, mechanism.statement, mechanism.distributions

    verdict = dptext.audit(Shown())
    assert verdict.outcome is Outcome.EXACT
    assert verdict.draws is None
    assert verdict.method.endswith("no draws were compared with it")
    assert verdict.explain().startswith("CONSISTENT: the stated noise is sufficient for the guarantee.")


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ApproxDP(0.9, 0.1)])
def test_every_exact_verdict_looks_at_draws(guarantee):
    truth = 1 / (1 + math.exp(-1.0))
    visible = np.array([[truth, 1 - truth], [1 - truth, truth]])
    fields = {"names": ["a", "b"], "coverage": "two inputs", "samples": 2_000}
    sound = judge_exact(claim(guarantee), np.log(visible), 1.0, sampler=sampler_of(visible), **fields)
    assert sound.outcome is Outcome.EXACT
    assert "2,000 draws" in sound.method
    twin = judge_exact(claim(guarantee), np.log(visible), 1.0, sampler=lambda inputs, _bits: inputs, **fields)
    assert twin.refuted
    assert not twin.draws.agree


def test_a_distribution_that_breaks_the_claim_needs_no_draws():
    visible = np.array([[0.9, 0.1], [0.1, 0.9]])
    fields = {"names": ["a", "b"], "coverage": "two inputs", "sampler": lambda *_: pytest.fail("drawn")}
    assert judge_exact(claim(PureDP(1.0)), np.log(visible), 1.0, **fields).refuted
