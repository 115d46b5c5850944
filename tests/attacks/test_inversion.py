"""Text inversion: words behind unprotected vectors are named, behind noise only the frequent ones are.

The false alarm of the noise tests is that of the interval, 2.5% a score, and the seeds are chosen; beside it stands
the exact sign of the effect: what noise adds to the baseline is below what one word in a hundred would.
"""

import numpy as np
import pytest

from dptext.attacks import bag_inversion


@pytest.fixture(scope="module")
def pairs():
    """600 bags of 6 words out of 120 with Zipf's frequencies; a vector is the sum of its words' points."""
    generator = np.random.default_rng(1)
    chances = 1 / np.arange(1, 121)
    bags = [generator.choice(120, size=6, replace=False, p=chances / chances.sum()) for _ in range(600)]
    counts = np.zeros((600, 120))
    for row, bag in enumerate(bags):
        counts[row, bag] = 1
    vectors = counts @ generator.normal(size=(120, 40)) / 40**0.5
    return vectors, counts


def test_words_behind_plain_vectors_are_named_and_behind_noise_not(pairs):
    vectors, counts = pairs
    known, private = slice(0, 450), slice(450, 600)
    fields = {"top": 6}
    result = bag_inversion(vectors[known], counts[known], vectors[private], counts[private], **fields)
    assert [entry.measure for entry in result] == ["precision of 6 words", "recall of 6 words"]
    for entry in result:
        assert entry.score.value > entry.baseline + 0.2
        assert entry.succeeded
        assert 0.3 < entry.baseline < 0.6  # language is easy to guess
    noise = np.random.default_rng(2).normal(size=vectors.shape)
    for entry in bag_inversion(noise[known], counts[known], noise[private], counts[private], **fields):
        assert entry.score.value < entry.baseline + 0.01
        assert not entry.succeeded
    # an attacker who learnt from plain vectors and is given noise fails too
    for entry in bag_inversion(vectors[known], counts[known], noise[private], counts[private], **fields):
        assert not entry.succeeded


def test_a_few_huge_rows_do_not_blind_the_attacker(pairs):
    vectors, counts = pairs
    known, private = slice(0, 450), slice(450, 600)
    plain = bag_inversion(vectors[known], counts[known], vectors[private], counts[private], top=6)[0]
    spoilt = vectors.copy()
    spoilt[[0, 7, 200]] *= 1e6
    for vector in (spoilt, 1e-200 * vectors):
        result = bag_inversion(vector[known], counts[known], vector[private], counts[private], top=6)[0]
        assert result.score.value > plain.score.value - 0.05
        assert result.succeeded


def test_precision_and_recall_are_counted_right(pairs):
    """By hand: the same vectors for everybody, so the frequent words are all there is to name."""
    public = [["a", "b"]] * 7 + [["a", "c"]] * 4 + [["d"]] * 2
    private = [["a", "b", "b", "z"], ["d"], [], ["c", "x", "y", "z"]]
    precision, recall = bag_inversion(np.ones((13, 2)), public, np.ones((4, 2)), private, top=2)
    assert precision.score.value == precision.baseline == pytest.approx((1 + 0 + 0) / 3)
    assert recall.score.value == recall.baseline == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert not precision.succeeded
    assert precision.score.count == 3  # an empty bag has no words to find


def test_texts_are_bags_too(pairs):
    vectors, counts = pairs
    texts = [" ".join(f"w{word}" for word in np.flatnonzero(row)) for row in counts]
    sides = vectors[:450], vectors[450:]
    plain = bag_inversion(sides[0], counts[:450], sides[1], counts[450:], people=np.arange(150) // 10)
    bags = bag_inversion(sides[0], texts[:450], sides[1], texts[450:])
    assert bags[0].score.value == pytest.approx(plain[0].score.value, abs=0.02)
    assert (plain[0].score.count, bags[0].score.count) == (15, 150)
