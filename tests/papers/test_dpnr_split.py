"""papers/dpnr/split.py: hashed n-grams, their masks, and a model whose two parts are trained through the noise."""

import zlib

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import L2Laplace, Laplace
from dptext.representations.bits import OptimizedUnary
from dptext.representations.bounds import Domain
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPNR, min_max
from dptext.representations.published_protocols import OME
from dptext.representations.randomizer import Channel

PAPERS = ("dpnr.split",)
torch = pytest.importorskip("torch")

GOOD = ["lovely", "excellent", "friendly", "great"]
BAD = ["awful", "terrible", "dirty", "horrible"]
NOUNS = ["room", "staff", "kitchen", "garden", "breakfast", "hotel", "street", "window", "city", "house"]
TEXTS = [f"the {noun} was {word}" for words in (GOOD, BAD) for word in words for noun in NOUNS] * 3
LABELS = np.repeat(["good", "bad"], 40).tolist() * 3
STRONG = PrivUnit(epsilon=30.0)
SAFE = {"unsafe_as_published": True}


@pytest.fixture(scope="module")
def split(papers):
    return papers.split


@pytest.fixture(scope="module")
def trained(split):
    def train(randomizer=STRONG, **options):
        ngrams = split.NGrams(buckets=2048)
        settings = {"dimension": 4, "epochs": 12, "seed": 1} | options
        return split.train_split(ngrams.of(TEXTS), LABELS, randomizer, ngrams=ngrams, **settings)

    return train


def accuracy(split, model, randomizer):
    means = model.means(split.NGrams(buckets=2048).of(TEXTS))
    sent = randomizer.channel(4).sample(model.bound.apply(means), RandomBits(2))
    return float(np.mean(model.predict(sent) == np.array(LABELS)))


def test_ngrams_are_words_then_pairs_hashed(split):
    def bucket(ngram):
        return zlib.crc32(ngram.encode()) % (1 << 20)

    hashed = split.NGrams(max_words=2, buckets=1 << 20)
    result = hashed.of(["The cat, the 7 DOGS!", "cat", " ...\n"])
    words = ["the", "cat", "the", "7", "dogs", "the cat", "cat the", "the 7", "7 dogs"]
    assert result.values.tolist() == [*map(bucket, words), bucket("cat")]
    assert result.starts.tolist() == [0, 9, 10, 10]
    mixed = result.take(np.array([2, 1, 0, 1]))
    assert mixed.lengths.tolist() == [0, 1, 9, 1]
    masked = hashed.hash_words([["one", None, "two", "three"], [None, None], []])
    assert masked.values.tolist() == [*map(bucket, ["one", "two", "three", "two three"])]
    assert split.tokens_of("CAFÉ don’t, cafe\u0301") == ["café", "do", "n't", "café"]


@pytest.mark.parametrize(
    "randomizer",
    [STRONG, L2Laplace(epsilon=60.0), Laplace(epsilon=120.0, domain=Domain.CUBE), DPNR(epsilon=20.0, **SAFE)],
    ids=lambda randomizer: randomizer.name,
)
@pytest.mark.usefixtures("same_draws")
def test_split_learns_through_noise_on_vectors(split, trained, randomizer):
    assert accuracy(split, trained(randomizer), randomizer) > 0.9
    for other in (OptimizedUnary(epsilon=1.0), OME(epsilon=1.0, **SAFE)):
        with pytest.raises(ParameterError, match="does not add noise to a vector"):
            trained(other)


def test_training_draws_the_noise_of_its_kind_in_every_batch(trained, monkeypatch):
    calls = []
    sample = Channel.sample

    def noted(self, vectors, bits):
        calls.append((len(vectors), self.guarantee.epsilon))
        return sample(self, vectors, bits)

    monkeypatch.setattr(Channel, "sample", noted)
    trained(training="plain", epochs=2)
    assert calls == []
    trained(training="robust", epochs=2)
    assert calls == [(64, 30.0), (64, 30.0), (64, 30.0), (48, 30.0)] * 2
    calls.clear()
    trained(training="adaptive", epochs=3, epsilons=(9.0, 6.0, 3.0))
    assert [epsilon for _, epsilon in calls[::4]] == [9.0, 6.0, 3.0]


def test_min_max_with_gradient_is_that_of_the_mechanism(split):
    rows = np.random.default_rng(2).normal(size=(50, 6)) * np.geomspace(0.01, 10, 50)[:, None]
    result = split.min_max_with_gradient(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(result, min_max(rows), atol=1e-8)


# -- noise of a training -------------------------------------------------------------------------------------------

DIMENSION, EPOCHS = 6, 4
CLEAN = Domain.BALL.bound(np.random.default_rng(1).normal(scale=0.2, size=(3000, DIMENSION)))
USERS = Laplace(epsilon=12.0).channel(DIMENSION)


def check_fresh(noise, deviation):
    """Noises of the epochs are independent of each other and of the vectors, and have this deviation.

    18,000 numbers per epoch: an estimated correlation has a standard deviation of .0075, an estimated deviation of
    Laplace noise (kurtosis 6) one of sqrt(5 / 72,000) = .0083 of it. Both may be off by 6 of these: two in 10^9.
    """
    draws = [noise(epoch, CLEAN) - CLEAN for epoch in range(1, EPOCHS + 1)]
    for place, one in enumerate(draws):
        assert abs(one.std() / deviation - 1) < 0.05
        assert abs(np.corrcoef(one.ravel(), CLEAN.ravel())[0, 1]) < 0.045
        for other in draws[:place]:
            assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.045


def test_training_noise_is_fresh_in_each_epoch_and_broken_noise_is_detected(split):
    def noise_of(seed=3):
        return split.fresh_noise([USERS] * (EPOCHS + 1), seed)

    check_fresh(noise_of(), USERS.deviation)
    for broken in (
        lambda _, vectors: USERS.sample(vectors, RandomBits(7)).astype(np.float64),  # the same bits in every epoch
        lambda epoch, vectors: vectors + (noise_of()(epoch, vectors) - vectors) / 1.5,  # too little noise
    ):
        with pytest.raises(AssertionError):
            check_fresh(broken, USERS.deviation)
    one, two = (noise_of()(2, CLEAN) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    for seed in (4, None):
        assert (noise_of(seed)(2, CLEAN) != one).any()
    # the second epoch of one seed is not the first of the next
    assert (noise_of(1)(2, CLEAN) != noise_of(2)(1, CLEAN)).any()
