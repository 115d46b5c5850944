"""What many tests share: real public vectors, and small ones; and the markers of whole folders."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import dptext
from repeated import same_draws as repeated_draws

# a busy machine is no failure
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

os.environ["DPTEXT_CACHE"] = "off"  # tests leave nothing in the home of whoever runs them
ROOT = Path(__file__).parent.parent
MARKED = {
    "tests/papers": "papers",
    "tests/spark": "spark",
    "tests/browser": "browser",
    "tests/faults": "slow",
    "tests/audits/test_known_broken.py": "statistical",
    "docs/start/choose.md": "slow",
    "docs/understand/audits.md": "slow",
}
"""What every test below a folder, or of a file, is marked as."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of `MARKED`: one rule for a folder instead of a decorator for each of its tests."""
    markers = {
        path: [marker for place, marker in MARKED.items() if path.is_relative_to(ROOT / place)]
        for path in {item.path for item in items}
    }
    for item in items:
        for marker in markers[item.path]:
            item.add_marker(marker)


@pytest.fixture(scope="session")
def glove() -> dptext.WordVectors:
    """The 20,000 most frequent words of GloVe 6B, 50 dimensions, the unknown word among them."""
    return dptext.load_vectors("glove-6b-50d", limit=20_000)


@pytest.fixture(scope="session")
def small() -> dptext.WordVectors:
    """300 words at random points, two of them at one point."""
    points = np.random.default_rng(7).normal(size=(300, 5))
    points[17] = points[4]
    return dptext.load_vectors(([f"word{'abcdefghij'[n % 10]}{n}x" for n in range(300)], points))


@pytest.fixture
def same_draws():
    """See `repeated.same_draws`: for a test of a score; the release of a wider fixture takes it itself."""
    with repeated_draws():
        yield
