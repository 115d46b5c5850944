"""What an adversary tried: signs of zeros, budgets of next to nothing, values that are hard to read as numbers."""

import numpy as np
import pytest

from dptext import Gaussian, L2Laplace, Laplace, ParameterError, PrivUnit, PrivUnitG
from dptext.privacy.randomness import RandomBits

ON_A_GRID = [
    PrivUnit(epsilon=8.0),
    PrivUnitG(epsilon=8.0),
    Laplace(epsilon=8.0),
    L2Laplace(epsilon=8.0),
    Gaussian(epsilon=8.0, delta=1e-5),
]


@pytest.mark.parametrize("randomizer", ON_A_GRID, ids=lambda each: each.name)
def test_a_zero_has_no_sign(randomizer):
    """-0.0 would tell on which side of a grid point the sum lay in doubles: rounding was to hide just that."""
    # wide enough that some of a million coordinates round to 0
    private = randomizer.channel(64).sample(np.zeros((16_000, 64)), RandomBits(1))
    zeros = private[private == 0]
    assert zeros.size
    assert not np.signbit(zeros).any()


@pytest.mark.parametrize("randomizer", [PrivUnit, PrivUnitG])
@pytest.mark.parametrize("dimension", [2, 3, 64])
def test_no_cap_leans_away_from_what_it_hides(randomizer, dimension):
    """1e-9 nats are kept back for arithmetic: at an epsilon of 1e-10 the cap was avoided, which told nine times that."""
    for epsilon in (1e-300, 1e-10, 1e-9, 9e-9):
        with pytest.raises(ParameterError, match="raise epsilon"):
            randomizer(epsilon=epsilon).channel(dimension)
    channel = randomizer(epsilon=1.1e-8).channel(dimension)
    mass = channel.parameters()["cap_mass"]
    loss = np.log(channel.chance) + np.log1p(-mass) - np.log(mass) - np.log1p(-channel.chance)
    assert 0 < loss <= 1.1e-8
    assert channel.shrinkage > 0
