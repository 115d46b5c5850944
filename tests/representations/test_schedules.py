"""Schedules: named by what becomes of the noise, any list or function, and nothing that is no epsilon."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.representations.training import SCHEDULES, epsilons_of, geometric


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_a_name_says_what_becomes_of_the_noise(name, epochs):
    found = epsilons_of(name, epochs)
    assert len(found) == epochs
    rises = all(one > two for one, two in pairwise(found))
    falls = all(one < two for one, two in pairwise(found))
    assert {"noise-rises": rises, "noise-falls": falls}[name[:11]]


def test_the_studys_sequences():
    assert epsilons_of("noise-rises-1/n", 3) == (1.0, 1 / 2, 1 / 3)
    assert epsilons_of("noise-rises-10/n", 5) == (10.0, 5.0, 10 / 3, 2.5, 2.0)
    assert epsilons_of("noise-falls-10/n", 5) == epsilons_of("noise-rises-10/n", 5)[::-1]


def test_lists_and_functions():
    assert epsilons_of([3, 2.5, 1], 2) == (3.0, 2.5)
    assert epsilons_of(np.array([3.0, 2.0]), 2) == (3.0, 2.0)
    assert epsilons_of(partial(pow, 2.0), 3) == (2.0, 4.0, 8.0)
    assert geometric(1.0, 1.0, 1) == (1.0,)
    np.testing.assert_allclose(geometric(0.5, 8.0, 5), [0.5, 1, 2, 4, 8])


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("10/n", "schedule must be one of 'noise-rises-1/n', .*, got another text"),
        ([1.0, 2.0], "an epsilon for each of 3 epochs, got 2"),
        ([1.0, 0.0, 2.0], "epsilon of epoch 2 must be a finite number above 0, got 0.0"),
        (lambda epoch: 2 - epoch, "epsilon of epoch 2 must be a finite number above 0, got 0"),
        (lambda epoch: -1.0, "epsilon of epoch 1 must be a finite number above 0, got -1.0"),
        (lambda epoch: float("nan"), "epsilon of epoch 1 must be a finite number above 0, got nan"),
        (lambda epoch: float("inf"), "epsilon of epoch 1 must be a finite number above 0, got inf"),
        (lambda epoch: None, "epsilon of epoch 1 must be a finite number above 0, got None"),
        (lambda epoch: True, "epsilon of epoch 1 must be a finite number above 0, got True"),
        (3.0, "a name, a list of epsilons or a function of the epoch's number, got float"),
        (None, "a name, a list of epsilons or a function of the epoch's number, got NoneType"),
    ],
)
def test_what_is_no_schedule_is_refused(schedule, message):
    with pytest.raises(ParameterError, match=message):
        epsilons_of(schedule, 3)


@pytest.mark.parametrize("arguments", [(0.0, 1.0, 3), (1.0, -2.0, 3), (1.0, 2.0, 0), (1.0, 2.0, 2.5)])
def test_geometric_is_checked(arguments):
    with pytest.raises(ParameterError):
        geometric(*arguments)
