"""Training without clipping follows each user's gradient at once."""

import numpy as np
from papers.dpugc.unclipped import follow_unclipped

from dptext.embeddings.training import Scratch
from embeddings.dpsgd.test_clipping import DIMENSION, by_autograd, pairs_of, tables_of


def test_each_unit_is_followed_at_once():
    tables, pairs = tables_of(2), pairs_of(2, 30)
    expected = tables - 0.1 * by_autograd(tables, pairs[:10])
    expected -= 0.1 * by_autograd(expected, pairs[10:])
    scratch = Scratch.of(len(tables), pairs.size, DIMENSION)
    nothing = np.zeros(len(tables), dtype=np.float32)
    follow_unclipped(tables, nothing, pairs, np.array([10, 30]), 0.1, True, scratch)
    assert np.abs(tables - expected).max() < 1e-5
