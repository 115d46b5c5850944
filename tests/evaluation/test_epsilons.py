"""Several epsilons on public texts: encoded once; more budget, more accuracy; no text trains and tests a classifier."""

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.evaluation.utility import compare_epsilons
from dptext.representations.encoders import CallableEncoder

TOPICS = np.arange(600) % 3
TEXTS = [f"{n} {topic}" for n, topic in enumerate(TOPICS)]


class Topics:
    """Noisy encoder of three topics that counts its calls for each text."""

    def __init__(self, known=2.0):
        self.told, self.asked = known, []

    def __call__(self, texts):
        self.asked += texts
        numbers = np.array([int(text.split()[0]) if text else 0 for text in texts])
        noise = np.random.default_rng(0).normal(size=(len(TEXTS), 6))[numbers]
        return noise + self.told * np.eye(6)[TOPICS[numbers]]


def compared(known=2.0, **options):
    topics = Topics(known)
    result = compare_epsilons(
        CallableEncoder(topics, dimension=6), TEXTS, TOPICS.tolist(), [1.0, 12.0], seed=1, **options
    )
    return result, topics.asked


def test_texts_are_encoded_once_and_more_budget_is_more_accuracy():
    result, requested = compared()
    assert sorted(requested) == sorted(TEXTS)
    few, many = result.rows
    assert few.accuracy.high < many.accuracy.low
    assert many.accuracy.value < result.clean.value
    # what a server learned from many noisy vectors is worth more than one noisy vector says
    assert few.learned.low > few.accuracy.high
    assert few.learned.value < result.clean.value
    assert result.chance == pytest.approx(1 / 3)
    assert (result.texts, result.trained_on) == (600, 480)
    assert many.error == dptext.PrivUnit(epsilon=12.0).expected_squared_error(many.dimension)
    assert "no noise" in str(result)
    assert [row.epsilon for row in result.rows] == [1.0, 12.0]


def test_vectors_that_tell_nothing_give_no_more_than_chance():
    # what a classifier that had seen the texts that it is tested on would not
    result, _ = compared(known=0.0)
    assert result.clean.value < 0.45
    assert result.rows[1].accuracy.value < 0.45
    assert result.rows[1].learned.value < 0.45


def test_other_randomizers_are_compared():
    result, _ = compared(randomizer=lambda epsilon: dptext.L2Laplace(epsilon=epsilon))
    assert result.rows[0].error > compared()[0].rows[0].error


def test_what_is_refused():
    for epsilons, labels, expected in [
        ([], TOPICS, "epsilons must be different numbers"),
        ([2.0, 2.0], TOPICS, "epsilons must be different numbers"),
        ([2.0], [1] * 600, "class"),
        ([2.0], [1, 2], "public labels"),
        ([0.0], TOPICS, "epsilon must be a"),
    ]:
        with pytest.raises(ParameterError, match=expected):
            compare_epsilons(CallableEncoder(Topics(), dimension=6), TEXTS, labels, epsilons)
