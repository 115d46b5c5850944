"""Draws of the operating system that are the same in every run.

For a test of a score (how often an attacker is right, how well a model learns) whose bound one draw in ten thousand
would miss. Draws are still fresh within a test: no two streams are equal. Not for tests of freshness itself, and not
where processes are forked, which would draw alike.
"""

import hashlib
import itertools
import os
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from dptext.privacy import randomness


@contextmanager
def same_draws():
    """Within it, `RandomBits()` without a seed has the same keys in every run, one after the other."""
    count = itertools.count()

    def urandom(size):
        return hashlib.shake_256(b"draw %d of a test" % next(count)).digest(size)

    with patch.object(randomness, "os", SimpleNamespace(urandom=urandom, getpid=os.getpid)):
        yield
