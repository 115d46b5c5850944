"""What an adversary tried: signs of zeros, budgets of next to nothing, values that are hard to read as numbers."""

import numpy as np
import pytest

from dptext import (
    Gaussian,
    Hybrid,
    L2Laplace,
    Laplace,
    OneBit,
    OptimizedUnary,
    ParameterError,
    Piecewise,
    PrivUnit,
    PrivUnitG,
    SymmetricUnary,
    WeightedBits,
)
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
    """1e-9 nats are kept back for arithmetic: at epsilon 1e-10 the cap was avoided, which told nine times as much."""
    for epsilon in (1e-300, 1e-10, 1e-9, 9e-9):
        with pytest.raises(ParameterError, match="raise epsilon"):
            randomizer(epsilon=epsilon).channel(dimension)
    channel = randomizer(epsilon=1.1e-8).channel(dimension)
    mass = channel.parameters()["cap_mass"]
    loss = np.log(channel.chance) + np.log1p(-mass) - np.log(mass) - np.log1p(-channel.chance)
    assert 0 < loss <= 1.1e-8
    assert channel.shrinkage > 0


HARD = [
    [[5e-324, 0.0]],
    [[1e-310, -1e-320]],
    [[1e308, 1e-308]],
    [[float("inf"), float("-inf")]],
    [[float("nan"), -0.0]],
    [[10**400, -(10**400)]],
    [[10**400, None]],
    np.array([[np.longdouble("1e4000"), 1]]),
    np.array([[np.inf, 6e-8]], dtype=np.float16),
    np.array([[2**64 - 1, 0]], dtype=np.uint64),
    np.array([[True, False]]),
]
EVERY = [
    *ON_A_GRID,
    Piecewise(epsilon=8.0),
    Hybrid(epsilon=8.0),
    OneBit(epsilon=8.0),
    WeightedBits(epsilon=8.0),
    SymmetricUnary(epsilon=8.0),
    OptimizedUnary(epsilon=8.0),
]


@pytest.mark.parametrize("randomizer", EVERY, ids=lambda each: each.name)
def test_no_number_raises_or_warns_even_where_numpy_was_told_to_raise(randomizer):
    with np.errstate(all="raise"):
        for vectors in HARD:
            assert np.isfinite(randomizer.randomize(vectors)).all()
            if hasattr(randomizer, "send"):
                assert len(randomizer.send(vectors)) == 1


@pytest.mark.parametrize(
    "vectors",
    [
        [["1.5", "2"]],
        [[1j, 0.0]],
        np.array([["2020-01-01"]], dtype="M8[D]"),
        [[1.0], [1.0, 2.0]],
        [[{}]],
        7.0,
        np.array([["7", 1.0]], dtype=object),
    ],
    ids=["strings", "complex", "dates", "ragged", "dicts", "one number", "a string among numbers"],
)
def test_what_is_not_numbers_is_refused_by_its_type(vectors):
    with pytest.raises(ParameterError):
        PrivUnit(epsilon=8.0).randomize(vectors)
