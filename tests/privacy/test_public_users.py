"""Whether delta is small enough: answered from public numbers only."""

import inspect
import math
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext.privacy.budgets import ASSUMED_USERS, DeltaWarning, delta_too_large, warn_of_delta


@given(st.integers(1, 10**9), st.floats(-25, -0.01).map(math.exp))
def test_the_threshold_is_one_over_the_public_bound(users, delta):
    assert (delta_too_large(delta, public_users=users) is not None) == (delta * users >= 1)


def test_without_a_bound_a_convention_is_taken_and_said():
    assert delta_too_large(0.5 / ASSUMED_USERS) is None
    problem = delta_too_large(1e-3)
    assert "100,000" in problem and "public_users=" in problem
    assert "public bound" in delta_too_large(1e-3, public_users=10_000)


def test_it_warns_where_it_was_called():
    with pytest.warns(DeltaWarning, match="not below 1 / 10,000") as caught:
        warn_of_delta(1e-3, public_users=10_000)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_delta(1e-6, public_users=10_000)
        warn_of_delta(1e-6)


def test_no_data_is_taken():
    """Nothing that could be counted is an argument: a count of users would be a query on the data."""
    for ask in (delta_too_large, warn_of_delta):
        assert set(inspect.signature(ask).parameters) <= {"delta", "public_users", "stacklevel"}
