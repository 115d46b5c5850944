"""What the tests of papers/ share: its modules, which are not installed, and what all settings of an experiment are."""

import json
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from dptext import TEM

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def papers(request):
    """The modules of papers/ that a file of tests names in PAPERS, by the last part of their names."""
    sys.path.insert(0, str(ROOT))
    modules = [import_module(f"papers.{name}") for name in request.module.PAPERS]
    yield SimpleNamespace(**{module.__name__.rpartition(".")[2]: module for module in modules})
    sys.path.remove(str(ROOT))


@pytest.fixture(scope="session")
def check_settings():
    """A check that settings of a part of an experiment are distinct, with the same names."""

    def check(settings):
        assert len({json.dumps(setting, sort_keys=True) for setting in settings}) == len(settings)
        assert len({frozenset(setting) for setting in settings}) == 1

    return check


class SampledOnly(TEM):
    """A mechanism with known distributions that does not offer them, so that samples can be compared with them."""

    distributions = None


@pytest.fixture
def sampled_only():
    return SampledOnly
