"""The noise in the loop: the release's own, with a gradient through it; a budget that is learnt stays below its cap."""

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.hiding.game import NoiseInTheLoop, domain_and_channel
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import CappedLaplace
from dptext.representations.bounds import Domain

torch = pytest.importorskip("torch")


def loop(randomizer, dimension=4, learn=False):
    domain, channel = domain_and_channel(randomizer, dimension, "auto", learn=learn)
    return NoiseInTheLoop(torch, domain, channel, learn=learn)


def test_heads_see_what_the_release_sends():
    randomizer = dptext.PrivUnit(epsilon=6.0)
    noise = loop(randomizer)
    noise.begin(RandomBits(3))
    bounded = noise.bound(torch.ones(5, 4))
    seen = noise.add(bounded)
    sent = randomizer.channel(4).sample(bounded.numpy().astype(np.float64), RandomBits(3))
    np.testing.assert_allclose(seen.numpy(), sent, atol=1e-6)


@pytest.mark.parametrize("randomizer", [None, dptext.PrivUnit(epsilon=6.0), dptext.Gaussian(epsilon=2.0, delta=1e-5)])
def test_the_gradient_goes_through_the_noise_as_if_it_did_not_hang_on_the_vector(randomizer):
    noise = loop(randomizer)
    bounded = torch.full((3, 4), 0.5).requires_grad_()
    target = torch.arange(12.0).reshape(3, 4)
    (noise.add(bounded) * target).sum().backward()
    np.testing.assert_allclose(bounded.grad.numpy(), target.numpy())


def test_a_learnt_budget_scales_the_noise_of_the_cap_and_has_a_gradient():
    randomizer = dptext.L2Laplace(epsilon=4.0)
    noise = loop(randomizer, learn=True)
    bounded = torch.zeros(2, 4)
    noise.begin(RandomBits(1))
    wide = noise.add(bounded)
    at_cap = randomizer.channel(4).sample(np.zeros((2, 4)), RandomBits(1))
    np.testing.assert_allclose(wide.detach().numpy() * noise.share, at_cap, rtol=1e-5)
    (wide**2).sum().backward()
    assert noise.theta.grad < 0  # less noise with a larger budget
    with torch.no_grad():
        noise.theta.fill_(50.0)
    assert noise.share <= 1.0


def audited(randomizer, promised):
    """At most one false alarm in a million, by `dptext.audit`'s own level."""
    return dptext.audit(randomizer, promised.statement(2), dimension=2, samples=40_000, seed=1)


def test_what_was_learnt_promises_the_cap_and_is_noisier():
    capped = CappedLaplace(epsilon=4.0, share=0.5)
    assert capped.statement(8).guarantee == PureDP(4.0)
    assert capped.expected_squared_error(8) == pytest.approx(dptext.L2Laplace(epsilon=2.0).expected_squared_error(8))
    assert CappedLaplace(epsilon=4.0).expected_squared_error(8) == dptext.L2Laplace(epsilon=4.0).expected_squared_error(
        8
    )
    assert capped.statement(8).parameters["share"] == 0.5
    assert not audited(capped, capped).refuted
    assert audited(dptext.L2Laplace(epsilon=8.0), capped).refuted  # a broken guarantee is detected
    for share in (0.0, 1.5, True, "1", float("nan")):
        with pytest.raises(ParameterError, match="share must be"):
            CappedLaplace(epsilon=1.0, share=share)


def test_noise_that_no_gradient_is_known_through_is_refused():
    for randomizer, bound, learn, message in [
        (8.0, "auto", False, "expected a randomizer"),
        (dptext.OptimizedUnary(epsilon=8.0), "auto", False, "sends something else"),
        (dptext.PrivUnit(epsilon=8.0), "squash", False, "bound must be one of 'auto'"),
        (dptext.PrivUnit(epsilon=8.0), 7, False, "bound must be one of 'auto'"),
        (dptext.PrivUnit(epsilon=8.0), "clip", False, "takes vectors of the unit sphere"),
        (dptext.PrivUnit(epsilon=8.0), "auto", True, "give L2Laplace"),
        (None, "auto", True, "give L2Laplace"),
    ]:
        with pytest.raises(ParameterError, match=message):
            domain_and_channel(randomizer, 4, bound, learn=learn)


def test_the_bound_follows_the_randomizer_unless_it_is_named():
    assert domain_and_channel(None, 4, "auto", learn=False)[0] is Domain.SPHERE
    assert domain_and_channel(dptext.L2Laplace(epsilon=1.0), 4, "auto", learn=False)[0] is Domain.BALL
    assert domain_and_channel(dptext.L2Laplace(epsilon=1.0), 4, "normalise", learn=False)[0] is Domain.SPHERE
    assert domain_and_channel(None, 4, "cube", learn=False)[0] is Domain.CUBE
