"""papers/summary: all rules that find phrases have the same guarantee, and the exact list is exact."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from dptext.noise.gaussian_sums import CELL, grid_step
from dptext.noise.set_union import SetUnion, weights
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.randomness import RandomBits

PAPERS = ("summary.phrases",)


def test_every_rule_has_the_stated_guarantee(papers):
    module = papers.phrases
    for rule in module.RULES.values():
        unions = [union for union in rule.unions() if union.threshold < math.inf]
        sigma = 1 / math.hypot(*(1 / union.scale for union in unions))
        names = 0.0
        for union in unions:
            sizes = np.arange(1, union.keys + 1)
            added = weights(np.full_like(sizes, union.keys) if rule.union is module.EqualCounts else sizes) * CELL
            gaps = (union.threshold - grid_step(union.scale) / 2 - added) / union.scale
            names += (sizes * norm.sf(gaps)).max()
            assert (sizes * added**2 <= 1).all()
        assert names <= module.NAMES
        left = module.EPSILON + len(unions) * math.log1p(-module.NAMES / len(unions))
        assert gaussian_delta(sigma, epsilon=left, sensitivity=1.0) + names <= module.DELTA * (1 + 1e-9)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_exact_numbers_of_users(papers, monkeypatch, length):
    texts = ["green tea and milk", "Milk! the green tea", "green tea", "tea and milk", "and the"]
    monkeypatch.setattr(papers.phrases, "_texts", lambda *_: iter([texts[:2], *([text] for text in texts[2:])]))
    users = papers.phrases.Users.of(f"test {length}", None, None)
    counts = Counter(users.counts[users.lengths == length].tolist())
    assert users.people == 4
    assert counts == {1: Counter({3: 1, 2: 2}), 2: Counter({2: 1}), 3: Counter({2: 1})}[length]
    unions = [SetUnion("gaussian", 1e-4, 0.1, 10, 0.0)] * 4
    for rule in (unions, unions[:1]):  # hardly any noise: everything is found
        assert set(users.found(rule, RandomBits(1))) == set(users.keys)
