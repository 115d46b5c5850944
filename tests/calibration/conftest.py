"""What tests of measurements share."""

import pytest

from dptext import TEM


class SampledOnly(TEM):
    """A mechanism whose law is known, without the door to it: sampled numbers can be held against exact ones."""

    distributions = None


@pytest.fixture
def sampled_only():
    return SampledOnly
