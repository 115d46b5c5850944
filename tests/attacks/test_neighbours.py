"""The neighbours of a name: right ranks, success where secrets are told, none where vectors say nothing."""

import numpy as np
import pytest

from dptext.attacks import nearest_secrets, nearest_secrets_known, secret_ranks
from dptext.attacks.linkage import NO_ROW

POINTS = [[0.1, 0.1], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-1.0, -0.1], [0.1, 0.9], [0.2, 0.9]]
NAMES, SECRETS = [1, 3, NO_ROW], [2, 4, 6]


def noise(words=200, pairs=20, seed=1):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(words, 8)), np.arange(pairs), np.arange(pairs, 2 * pairs)


def test_ranks_are_those_one_can_see():
    result = secret_ranks(POINTS, NAMES, SECRETS, left_out=[0])
    assert result.known.tolist() == [True, True, False]
    assert result.among_words.tolist() == [1, 5, 0]
    assert result.among_secrets.tolist() == [1, 3, 0]
    assert result.choices.tolist() == [3, 3, 3]  # the secret of an unknown name can be named as well
    assert result.words == 5


def test_a_kind_is_chosen_among_alone_and_a_vector_without_direction_cannot_be_asked():
    result = secret_ranks(POINTS, [1, 3], [2, 4], kinds=["a", "b"], left_out=[0])
    assert (result.choices.tolist(), result.among_secrets.tolist()) == ([1, 1], [1, 1])
    points = np.array(POINTS)
    points[4] = 0.0
    assert secret_ranks(points, [1, 3], [2, 4]).known.tolist() == [True, False]


def test_it_succeeds_where_secrets_are_told_and_not_on_noise():
    vectors, names, secrets = noise()
    revealed = nearest_secrets_known(vectors, names, secrets)
    nearest, in_list = nearest_secrets(revealed, names, secrets)
    assert nearest.succeeded
    assert in_list.succeeded
    assert nearest.score.value >= 0.9
    assert (nearest.baseline, nearest.score.of) == (pytest.approx(1 / 20), "pairs")
    assert in_list.baseline == pytest.approx(10 / 199)
    assert "20 of 20 pairs have vectors" in nearest.detail
    alarms = sum(score.succeeded for seed in range(40) for score in nearest_secrets(*noise(seed=seed)))
    assert alarms <= 8  # 80 scores of 1 in 40 at most: more than 8 have a probability of 1e-4, and seeds are fixed


def test_what_public_vectors_knew_is_no_news():
    vectors, names, secrets = noise()
    revealed = nearest_secrets_known(vectors, names, secrets)
    bits = nearest_secrets(revealed, names, secrets, public=vectors)[2]
    assert bits.succeeded
    assert bits.score.value > 4
    same = nearest_secrets(revealed, names, secrets, public=revealed)[2]
    assert not same.succeeded
    assert same.score.value == 0.0
