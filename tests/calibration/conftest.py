"""A mechanism whose sampled numbers can be compared with exact ones."""

import pytest

from dptext import TEM


class SampledOnly(TEM):
    """TEM without its exact distributions."""

    distributions = None


@pytest.fixture
def sampled_only():
    return SampledOnly
