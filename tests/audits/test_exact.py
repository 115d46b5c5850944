"""Exact losses against brute force, in blocks, with impossible outputs and per-pair allowances."""

import math

import numpy as np
import pytest

from dptext.audits.losses import exact_delta, exact_loss


def distributions(inputs, outputs, seed=1):
    shares = np.random.default_rng(seed).random((inputs, outputs)) ** 3 + 1e-9
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_the_worst_pair_is_that_of_brute_force_across_blocks():
    logs = np.log(distributions(70, 9_001))
    losses = np.abs(logs[:, None] - logs[None]).max(axis=2)
    result = exact_loss(logs, allowed=0.0)
    assert result.loss == result.largest == losses.max()
    assert losses[result.first, result.second] == result.loss
    assert logs[result.first, result.output] - logs[result.second, result.output] == pytest.approx(result.loss)
    assert result.pairs == 70 * 69 // 2


def test_the_pair_that_exceeds_its_own_allowance_most_is_the_witness():
    logs = np.log(distributions(80, 300))
    allowance = np.random.default_rng(2).random((80, 80)) * 40
    allowance = np.triu(allowance, 1) + np.triu(allowance, 1).T
    result = exact_loss(logs, allowed=lambda i, others: allowance[i, others])
    losses = np.abs(logs[:, None] - logs[None]).max(axis=2)
    excess = (losses - allowance)[np.triu_indices(80, 1)]
    assert result.excess == pytest.approx(excess.max())
    assert result.ratio == pytest.approx((losses / np.where(allowance > 0, allowance, np.inf)).max())


def test_an_output_that_only_one_input_has_is_an_infinite_loss():
    result = exact_loss(np.log([[0.5, 0.5, 1e-300], [1.0, 1e-300, 1e-300]]), allowed=1.0)
    assert math.isfinite(result.loss)
    with np.errstate(divide="ignore"):
        result = exact_loss(np.log([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]), allowed=1.0)
    assert result.loss == math.inf
    assert (result.second, result.output) == (1, 1)


def test_outputs_that_no_input_has_do_not_matter():
    with np.errstate(divide="ignore"):
        result = exact_loss(np.log([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]), allowed=1.0)
    assert result.loss == pytest.approx(math.log(2))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_randomised_response_has_exactly_its_epsilon_and_no_delta(epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    shares = np.array([[truth, 1 - truth], [1 - truth, truth]])
    assert exact_loss(np.log(shares), allowed=epsilon).loss == pytest.approx(epsilon)
    assert exact_delta(np.log(shares), epsilon=epsilon)[0] == pytest.approx(0, abs=1e-12)
    # below its epsilon a delta is needed: p - e^eps' (1 - p)
    delta, _, _ = exact_delta(np.log(shares), epsilon=epsilon / 2)
    assert delta == pytest.approx(truth - math.exp(epsilon / 2) * (1 - truth))
    assert exact_delta(np.log(shares), epsilon=1e4)[0] == 0  # beyond what e^epsilon can be as a float
