"""Noise in the training loop: the noise of the release, with a gradient; a learnt budget stays below its cap."""

import numpy as np
import pytest

import dptext
from dptext.hiding.training import NoiseInTheLoop, bounding, denial, pushed_apart, training_channel
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import CappedLaplace, onto_l1_sphere
from dptext.representations.bounds import Domain

torch = pytest.importorskip("torch")


def loop(randomizer, dimension=4, learn=False):
    return NoiseInTheLoop(torch, training_channel(randomizer, dimension, learn=learn), learn=learn)


def test_heads_see_the_noise_of_the_release():
    randomizer = dptext.PrivUnit(epsilon=6.0)
    noise = loop(randomizer)
    noise.bits = RandomBits(3)
    bounded = noise.bound(torch.ones(5, 4))
    seen = noise.add(bounded)
    sent = randomizer.channel(4).sample(bounded.numpy().astype(np.float64), RandomBits(3))
    np.testing.assert_allclose(seen.numpy(), sent, atol=1e-6)


@pytest.mark.parametrize("randomizer", [None, dptext.PrivUnit(epsilon=6.0), dptext.Gaussian(epsilon=2.0, delta=1e-5)])
def test_gradient_passes_through_the_noise(randomizer):
    noise = loop(randomizer)
    bounded = torch.full((3, 4), 0.5).requires_grad_()
    target = torch.arange(12.0).reshape(3, 4)
    (noise.add(bounded) * target).sum().backward()
    np.testing.assert_allclose(bounded.grad.numpy(), target.numpy())


def test_learnt_budget_scales_the_noise_of_the_cap_with_a_gradient():
    randomizer = dptext.L2Laplace(epsilon=4.0)
    noise = loop(randomizer, learn=True)
    bounded = torch.zeros(2, 4)
    noise.bits = RandomBits(1)
    wide = noise.add(bounded)
    at_cap = randomizer.channel(4).sample(np.zeros((2, 4)), RandomBits(1))
    np.testing.assert_allclose(wide.detach().numpy() * noise.share, at_cap, rtol=1e-5)
    (wide**2).sum().backward()
    assert noise.theta.grad < 0  # less noise with a larger budget
    with torch.no_grad():
        noise.theta.fill_(50.0)
    assert noise.share <= 1.0


def audited(randomizer, claim):
    """At most one false alarm in a million, by `dptext.audit`'s own level."""
    return dptext.audit(randomizer, claim.statement(2), dimension=2, samples=40_000, seed=1)


def test_capped_noise_has_the_guarantee_of_the_cap_and_is_larger():
    capped = CappedLaplace(epsilon=4.0, share=0.5)
    assert capped.statement(8).guarantee == PureDP(4.0)
    assert capped.expected_squared_error(8) == pytest.approx(dptext.L2Laplace(epsilon=2.0).expected_squared_error(8))
    assert CappedLaplace(epsilon=4.0).expected_squared_error(8) == dptext.L2Laplace(epsilon=4.0).expected_squared_error(
        8
    )
    assert capped.statement(8).parameters["share"] == 0.5
    assert not audited(capped, capped).refuted
    assert audited(dptext.L2Laplace(epsilon=8.0), capped).refuted  # a broken guarantee is detected


def test_bounds_with_gradient_are_those_of_the_domains():
    rows = np.random.default_rng(2).normal(size=(50, 6)) * np.geomspace(0.01, 10, 50)[:, None]
    rows[0] = 0.0
    values = torch.from_numpy(rows)
    for domain in (Domain.SPHERE, Domain.BALL, Domain.CUBE):
        np.testing.assert_allclose(bounding(torch, domain)(values).numpy(), domain.bound(rows), atol=1e-8)
    in_l1 = bounding(torch, Domain.SPHERE, in_l1=True)(values).numpy()
    np.testing.assert_allclose(in_l1, onto_l1_sphere(Domain.SPHERE.bound(rows)), atol=1e-8)


def test_denial_is_the_log_chance_of_the_other_classes():
    answers = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.5, 3.0], [9.0, 9.0, 9.0]], dtype=torch.float64)
    shares = torch.softmax(answers, dim=1)
    result = denial(torch, answers, torch.tensor([0, 2, 1]), torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64))
    target = -(torch.log(1 - shares[0, 0]) + 3 * torch.log(1 - shares[1, 2])) / 4
    assert float(result) == pytest.approx(float(target))
    sure = denial(torch, torch.tensor([[200.0, 0.0]]), torch.tensor([0]), torch.ones(1))
    assert float(sure) == pytest.approx(200.0)  # no overflow if the adversary is sure
    assert float(denial(torch, answers, torch.tensor([0, 0, 0]), torch.zeros(3, dtype=torch.float64))) == 0.0
    assert float(pushed_apart(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))) == -4.0
    assert float(pushed_apart(torch.ones(3, 2))) == 0.0
