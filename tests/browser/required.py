"""Whether the tests of the browser are skipped or fail where something is missing."""

import os

import pytest


def missing(reason):
    """Skip, or fail where the tests of the browser were asked for (`make browser-test`)."""
    if os.environ.get("DPTEXT_BROWSER") == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
