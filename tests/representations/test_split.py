"""SplitClassifier: both parts are trained through the noise; the device's part is an encoder with a statement."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dptext
from dptext.representations.additive import L2Laplace, Laplace
from dptext.representations.bits import WeightedBits
from dptext.representations.bounds import Domain
from dptext.representations.device import DeviceEncoder
from dptext.representations.layers import DeviceModel
from dptext.representations.networks import MIN_MAX, Bag, bounding, epsilons_of
from dptext.representations.private_encoder import PrivateEncoder
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPNR, min_max
from dptext.representations.randomizer import Channel
from dptext.representations.split import SplitClassifier
from dptext.representations.trained_encoders import EmbeddingBag, NGrams

torch = pytest.importorskip("torch")

GOOD = ["lovely", "excellent", "friendly", "great"]
BAD = ["awful", "terrible", "dirty", "horrible"]
NOUNS = ["room", "staff", "kitchen", "garden", "breakfast", "hotel", "street", "window", "city", "house"]
TEXTS = [f"the {noun} was {word}" for words in (GOOD, BAD) for word in words for noun in NOUNS] * 3
LABELS = np.repeat(["good", "bad"], 40).tolist() * 3
SMALL = {"buckets": 2048, "dimension": 4, "seed": 1, "epochs": 8, "learning_rate_decay": 1.0}
STRONG = PrivUnit(epsilon=30.0)


@pytest.fixture(scope="module")
def split():
    return SplitClassifier(STRONG, **SMALL, public_name="hotels").fit(TEXTS, LABELS)


@pytest.mark.usefixtures("same_draws")
def test_device_and_server_classify_together(split):
    sent = split.release_.encode(["a lovely garden", "the dirty street", "", None])
    assert sent.shape == (4, 4)
    assert split.predict_private(sent[:2]).tolist() == ["good", "bad"]
    assert split.score(TEXTS, LABELS) > 0.95
    assert split.head_.score(split.release_.encode(TEXTS), LABELS) > 0.95
    assert isinstance(split.head_, DeviceModel)
    assert split.classes_.tolist() == ["bad", "good"]
    statement = split.release_.statement
    assert statement.guarantee == dptext.PureDP(30.0)
    assert any("trained on 'hotels' (240 texts and their labels)" in assumption for assumption in statement.assumptions)
    hashed = clone(split).fit_hashed(NGrams(buckets=2048).of(TEXTS), LABELS)
    np.testing.assert_array_equal(hashed.head_.layers[0][0], split.head_.layers[0][0])


@pytest.mark.usefixtures("same_draws")
def test_word_dropout_changes_the_training_and_not_the_guarantee(split):
    masked, repeated = (SplitClassifier(STRONG, **SMALL, word_dropout=0.2).fit(TEXTS, LABELS) for _ in range(2))
    np.testing.assert_array_equal(repeated.release_.encoder.matrix, masked.release_.encoder.matrix)
    assert (split.release_.encoder.matrix != masked.release_.encoder.matrix).any()
    assert masked.score(TEXTS, LABELS) > 0.9
    assert masked.release_.statement.guarantee == split.release_.statement.guarantee


@pytest.mark.usefixtures("same_draws")
def test_device_part_is_an_encoder_for_other_noise(split, tmp_path):
    bag = split.release_.encoder
    assert isinstance(bag, EmbeddingBag)
    occurs = np.zeros(2048, dtype=bool)
    occurs[NGrams(buckets=2048).of(TEXTS).values] = True
    assert (bag.matrix[~occurs] == 0).all() and (bag.matrix[occurs] != 0).any(axis=1).all()
    other = PrivateEncoder(bag, PrivUnit(epsilon=60.0), dimension=2, public_texts=TEXTS)
    assert other.fit_transform(["a lovely garden"]).shape == (1, 2)
    louder = DeviceEncoder(bag, split.release_.bound, PrivUnit(epsilon=2.0))
    assert split.head_.score(louder.encode(TEXTS), LABELS) < split.head_.score(split.release_.encode(TEXTS), LABELS)
    split.release_.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device")
    np.testing.assert_array_equal(loaded.encode(TEXTS[:5], seed=1), split.release_.encode(TEXTS[:5], seed=1))


@pytest.mark.parametrize(
    "randomizer",
    [
        L2Laplace(epsilon=60.0),
        Laplace(epsilon=120.0, domain=Domain.CUBE),
        WeightedBits(epsilon=120.0),
        DPNR(epsilon=20.0, unsafe_as_published=True),
    ],
    ids=lambda randomizer: f"{randomizer.name}, {getattr(randomizer, 'domain', '')}",
)
@pytest.mark.usefixtures("same_draws")
def test_split_learns_through_every_noise_on_vectors(randomizer):
    fitted = SplitClassifier(randomizer, **SMALL | {"epochs": 20}).fit(TEXTS, LABELS)
    assert fitted.score(TEXTS, LABELS) > 0.9
    assert fitted.release_.statement.mechanism == randomizer.name


def test_training_draws_the_noise_of_its_kind_in_every_batch(monkeypatch):
    calls = []
    sample = Channel.sample

    def noted(self, vectors, bits):
        calls.append((len(vectors), self.guarantee.epsilon))
        return sample(self, vectors, bits)

    monkeypatch.setattr(Channel, "sample", noted)
    settings = SMALL | {"epochs": 2, "batch_size": 100}
    SplitClassifier(STRONG, training="plain", **settings).fit(TEXTS, LABELS)
    assert calls == []
    SplitClassifier(STRONG, training="robust", **settings).fit(TEXTS, LABELS)
    assert calls == [(100, 30.0), (100, 30.0), (40, 30.0)] * 2
    calls.clear()
    settings = SMALL | {"epochs": 3, "batch_size": 240}
    fitted = SplitClassifier(STRONG, training="adaptive", schedule="noise-falls-10/n", **settings).fit(TEXTS, LABELS)
    assert tuple(epsilon for _, epsilon in calls) == fitted.epsilons_ == epsilons_of("noise-falls-10/n", 3)
    assert fitted.release_.statement.guarantee == dptext.PureDP(30.0)  # of the users, independent of the training


@pytest.mark.parametrize("training", ["plain", "robust", "adaptive"])
def test_seed_repeats_training_and_not_the_noise(training):
    before = torch.get_rng_state()
    classifier = SplitClassifier(STRONG, training=training, **SMALL | {"epochs": 2})
    one, two = (clone(classifier).fit(TEXTS, LABELS) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(one.release_.encoder.matrix, two.release_.encoder.matrix)
    np.testing.assert_array_equal(one.head_.layers[0][0], two.head_.layers[0][0])
    assert one.epochs_ == two.epochs_
    other = clone(classifier).set_params(seed=2).fit(TEXTS, LABELS)
    assert (other.head_.layers[0][0] != one.head_.layers[0][0]).any()
    assert (one.release_.encode(TEXTS) != one.release_.encode(TEXTS)).any()


@pytest.mark.usefixtures("same_draws")
def test_split_works_as_an_estimator(split):
    copy = clone(split)
    assert not any(name.endswith("_") for name in vars(copy))
    repeated = pickle.loads(pickle.dumps(split))
    sent = split.release_.encode(TEXTS)
    assert (repeated.predict_private(sent) == split.predict_private(sent)).all()
    upper = FunctionTransformer(lambda texts: [text.upper() for text in texts])
    assert make_pipeline(upper, clone(split)).fit(TEXTS, LABELS).score(TEXTS, LABELS) > 0.95
    assert cross_val_score(clone(split), np.array(TEXTS), LABELS, cv=3).mean() > 0.9


def test_bounds_with_gradient_are_those_of_the_domains():
    rows = np.random.default_rng(2).normal(size=(50, 6)) * np.geomspace(0.01, 10, 50)[:, None]
    rows[0] = 0.0
    values = torch.from_numpy(rows)
    for domain in (Domain.SPHERE, Domain.BALL, Domain.CUBE):
        np.testing.assert_allclose(bounding(torch, domain)(values).numpy(), domain.bound(rows), atol=1e-8)
    np.testing.assert_allclose(bounding(torch, MIN_MAX)(values).numpy(), min_max(rows), atol=1e-8)


@pytest.mark.usefixtures("same_draws")
def test_training_sees_the_vectors_that_are_sent():
    """Almost without noise, the loss of the last epoch equals the loss on the vectors that devices send."""
    for randomizer in (
        PrivUnit(epsilon=500.0),
        L2Laplace(epsilon=500.0),
        DPNR(epsilon=500.0, unsafe_as_published=True),
    ):
        fitted = SplitClassifier(randomizer, **SMALL | {"epochs": 6, "learning_rate_decay": 0.05}).fit(TEXTS, LABELS)
        scores = fitted.head_.scores(fitted.release_.encode(TEXTS))
        right = np.array([fitted.classes_.tolist().index(label) for label in LABELS])
        loss = (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(right)), right]).mean()
        assert abs(loss - fitted.epochs_[-1].loss) < 0.02


def test_bag_step_is_that_of_autograd():
    """n-grams that occur twice, in two texts, in none; a text without any."""
    texts = NGrams(buckets=64).of(["a b a b", "", "b c", "a b c d e f g"])
    start = torch.from_numpy(np.random.default_rng(3).normal(size=(64, 5)).astype(np.float32))
    upstream = torch.from_numpy(np.random.default_rng(4).normal(size=(4, 5)).astype(np.float32))
    known = start.clone().requires_grad_()
    offsets = torch.from_numpy(texts.starts[:-1])
    means = torch.nn.functional.embedding_bag(torch.from_numpy(texts.values), known, offsets, mode="mean")
    (means * upstream).sum().backward()
    bag = Bag(torch, start.clone())
    np.testing.assert_allclose(bag.means(texts, slice(0, 4)).detach().numpy(), means.detach().numpy(), atol=1e-6)
    bag.step(texts, slice(0, 4), upstream, 0.7)
    np.testing.assert_allclose(bag.matrix.numpy(), (start - 0.7 * known.grad).numpy(), atol=1e-6)
    part = Bag(torch, start.clone())  # a batch in the middle
    part.step(texts, slice(1, 3), upstream[1:3], 0.7)
    moved = (part.matrix != start).any(dim=1).nonzero()[:, 0].tolist()
    assert sorted(moved) == sorted(set(NGrams(buckets=64).of(["b c"]).values.tolist()))
    part.step(texts, slice(1, 2), upstream[1:2], 0.7)  # nothing occurs, nothing moves
    assert sorted((part.matrix != start).any(dim=1).nonzero()[:, 0].tolist()) == sorted(moved)
