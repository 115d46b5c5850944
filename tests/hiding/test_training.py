"""Noise in the training loop: the noise of the release, with a gradient; bounds with a gradient."""

import numpy as np
import pytest

import dptext
from dptext.hiding.inputs import check_targets
from dptext.hiding.training import Game, HidingOptions, bounding, training_channel
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import onto_l1_sphere
from dptext.representations.bounds import Domain

torch = pytest.importorskip("torch")

TARGETS = check_targets(4, [0, 1, 0, 1], {"group": [0, 0, 1, 1]})


def game_of(randomizer, dimension=4):
    channel = training_channel(randomizer, dimension)
    return Game(torch, torch.nn.Identity(), channel, TARGETS, HidingOptions(dimension=dimension))


def test_heads_see_the_noise_of_the_release():
    randomizer = dptext.PrivUnit(epsilon=6.0)
    game = game_of(randomizer)
    game.bits = RandomBits(3)
    bounded = game.bound(torch.ones(5, 4))
    sent = randomizer.channel(4).sample(bounded.numpy().astype(np.float64), RandomBits(3))
    np.testing.assert_allclose(game.add(bounded).numpy(), sent, atol=1e-6)


@pytest.mark.parametrize("randomizer", [None, dptext.PrivUnit(epsilon=6.0), dptext.Gaussian(epsilon=2.0, delta=1e-5)])
def test_gradient_passes_through_the_noise(randomizer):
    game = game_of(randomizer)
    bounded = torch.full((3, 4), 0.5).requires_grad_()
    target = torch.arange(12.0).reshape(3, 4)
    (game.add(bounded) * target).sum().backward()
    np.testing.assert_allclose(bounded.grad.numpy(), target.numpy())


def test_bounds_with_gradient_are_those_of_the_domains():
    rows = np.random.default_rng(2).normal(size=(50, 6)) * np.geomspace(0.01, 10, 50)[:, None]
    rows[0] = 0.0
    values = torch.from_numpy(rows)
    for domain in (Domain.SPHERE, Domain.BALL, Domain.CUBE):
        np.testing.assert_allclose(bounding(torch, domain)(values).numpy(), domain.bound(rows), atol=1e-8)
    in_l1 = bounding(torch, Domain.SPHERE, in_l1=True)(values).numpy()
    np.testing.assert_allclose(in_l1, onto_l1_sphere(Domain.SPHERE.bound(rows)), atol=1e-8)
