"""NoisyClassifier: it works as an estimator, knows the noise, and learns only from noise that it may draw."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from dptext import Gaussian
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.additive import Laplace
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.privunit import PrivUnit
from dptext.representations.published import DPNR, OME
from dptext.representations.registry import RANDOMIZERS

SAFE = {"unsafe_as_published": True}


@parametrize_with_checks([NoisyClassifier()])
def test_classifier_passes_scikit_learns_checks(estimator, check):
    if "array_api" in str(check):
        pytest.skip("scikit-learn skips it unless SCIPY_ARRAY_API is set, with a warning that is an error here")
    check(estimator)


def reviews(count=600, dimension=8, seed=1):
    """Clean directions of two classes, and their names."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    vectors = rng.normal(scale=0.3, size=(count, dimension))
    vectors[:, 0] += 2 * labels - 1
    return Domain.SPHERE.bound(vectors), np.array(["bad", "good"])[labels]


CLEAN, LABELS = reviews()
NOISE = PrivUnit(epsilon=4.0)
ARRIVED = NOISE.randomize(CLEAN, seed=2)


def weights(server):
    return server.device_model().layers[0][0]


@pytest.mark.usefixtures("same_draws")
def test_classifier_predicts_noisy_and_clean_vectors():
    server = NoisyClassifier(channel=NOISE).fit(ARRIVED, LABELS)
    test, names = reviews(seed=3)
    assert server.score(NOISE.randomize(test, seed=4), names) > 0.7
    device = server.device_model()
    assert device.domain is Domain.SPHERE
    assert device.score(test, names) == device.score(1000 * test, names) > 0.97
    pipeline = make_pipeline(FunctionTransformer(NOISE.randomize), NoisyClassifier(channel=NOISE))
    assert cross_val_score(pipeline, CLEAN, LABELS, cv=3).mean() > 0.7


def test_classifier_takes_noise_from_channel_randomizer_or_statement():
    statement = NOISE.statement(8)
    sources = (NOISE, NOISE.channel(8), statement, PrivacyStatement.from_json(statement.to_json()))
    first, *others = (weights(NoisyClassifier(channel=source).fit(ARRIVED, LABELS)) for source in sources)
    for other in others:
        np.testing.assert_array_equal(other, first)
    unknown = NoisyClassifier().fit(ARRIVED, LABELS)
    assert unknown.channel_ is None and unknown.device_model().domain is None


def test_public_examples_help_with_few_vectors():
    strong, few = PrivUnit(epsilon=1.0), LABELS[:60]
    arrived = strong.randomize(CLEAN[:60], seed=6)
    test, public = reviews(seed=7), reviews(seed=8)
    alone = NoisyClassifier(channel=strong).fit(arrived, few).device_model().score(*test)
    helped = NoisyClassifier(channel=strong, public=public).fit(arrived, few)
    assert helped.device_model().score(*test) > max(alone, 0.97)
    unscaled = NoisyClassifier(channel=strong, public=(50 * public[0], public[1])).fit(arrived, few)
    np.testing.assert_allclose(weights(unscaled), weights(helped), rtol=1e-5)


@pytest.mark.usefixtures("same_draws")
def test_linear_model_learns_from_public_vectors():
    public, test = reviews(seed=12), reviews(seed=13)
    server = NoisyClassifier(channel=NOISE).fit_public(*public)
    assert server.device_model().score(*test) > 0.97
    assert server.score(NOISE.randomize(test[0], seed=14), test[1]) > 0.7
    scores = [
        entry.decision_function(test[0])
        for entry in (NoisyClassifier().fit_public(*public), NoisyClassifier().fit(*public))
    ]
    np.testing.assert_allclose(*scores)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_every_noise_leaves_a_finite_model_from_its_statement(name):
    vectors, labels = np.random.default_rng(1).normal(size=(120, 4)), np.tile([0, 1], 60)
    for epsilon in (1e-8, 8.0, 500.0):
        randomizer = RANDOMIZERS[name](epsilon=epsilon, **({"delta": 1e-5} if name == "Gaussian" else {}))
        try:
            private = randomizer.randomize(vectors, seed=1)
        except ParameterError:
            continue  # too little budget for 32-bit chances
        server = NoisyClassifier(channel=randomizer.statement(4)).fit(private, labels)
        assert server.channel_.parameters() == randomizer.channel(4).parameters()
        assert np.isfinite(server.decision_function(private)).all()
        if name == "NormalisedLaplace":
            with pytest.raises(ParameterError, match="transforms vectors before adding noise"):
                server.device_model()
        else:
            assert np.isfinite(server.device_model().scores(private)).all()


@pytest.mark.parametrize("channel", [None, PrivUnit(epsilon=2.0), Gaussian(epsilon=2.0, delta=1e-5)])
def test_hostile_vectors_leave_a_finite_model(channel):
    normal = np.random.default_rng(1).normal(size=(120, 4))
    for vectors in (np.zeros((120, 4)), np.ones((120, 4)), np.eye(4)[[0] * 120], normal * 1e-200, normal * 1e37):
        server = NoisyClassifier(channel=channel).fit(vectors, np.tile([0, 1], 60))
        assert np.isfinite(server.decision_function(vectors)).all()
        assert np.isfinite(server.device_model().scores(vectors)).all()


# -- plain and robust training -------------------------------------------------------------------------------------

SENT = Laplace(epsilon=12.0, domain=Domain.CUBE)
SGD = {"hidden": (), "epochs": 12, "learning_rate": 0.05, "dropout": 0.0, "validation_fraction": 0.0, "seed": 1}


def two_signals(count, seed):
    """Clean vectors of the cube with two signals of the class: a small exact number, which drowns in noise, and six
    large ones that are right nine times in ten, together."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    sign = 2.0 * labels - 1
    large = np.where(rng.uniform(size=count) < 0.9, sign, -sign)
    return np.column_stack([0.05 * sign, *[0.9 * large] * 6, rng.normal(scale=0.3, size=(count, 3))]), labels


@pytest.mark.slow
def test_perceptron_learns_and_reports_epochs():
    pytest.importorskip("torch")
    seen, test = [], reviews(seed=9)
    server = NoisyClassifier("mlp", channel=NOISE, epochs=5, hidden=16, progress=seen.append, seed=1)
    server.fit(ARRIVED, LABELS)
    assert tuple(seen) == server.epochs_
    assert server.score(NOISE.randomize(test[0], seed=10), test[1]) > 0.7
    assert server.device_model().score(*test) > 0.9
    public = clone(server).set_params(public=reviews(seed=11), progress=None).fit(ARRIVED, LABELS)
    assert public.device_model().score(*test) > 0.9


@pytest.mark.slow
def test_robust_training_beats_plain_training_if_clean_vectors_mislead():
    """The noise has a deviation of 2.4 per coordinate. Six standard errors of a share of 20,000 rows are .021."""
    pytest.importorskip("torch")
    vectors, labels = two_signals(20_000, 2)
    noisy = SENT.randomize(vectors, seed=3)
    options = {"plain": {"epochs": 300, "learning_rate": 0.5}, "robust": {}}
    trained = {
        training: NoisyClassifier("mlp", channel=SENT, training=training, **SGD | more).fit_public(
            *two_signals(1000, 1)
        )
        for training, more in options.items()
    }
    scores = {training: server.score(noisy, labels) for training, server in trained.items()}
    assert trained["plain"].score(vectors, labels) == 1.0  # it uses the signal that noise hides
    assert scores["robust"] > scores["plain"] + 0.05
    assert trained["robust"].score(vectors, labels) < 0.95


def test_training_that_draws_noise_once_is_found_by_its_accuracy():
    """A known-broken form of robust training: noise drawn once is memorised (40 public vectors)."""
    pytest.importorskip("torch")
    vectors, labels = two_signals(40, 4)
    settings = SGD | {"epochs": 200, "hidden": 64}
    fresh = NoisyClassifier("mlp", channel=SENT, **settings).fit_public(vectors, labels)
    once = NoisyClassifier("mlp", channel=SENT, **settings).fit(SENT.randomize(vectors, seed=5), labels)
    test, truth = two_signals(20_000, 6)
    noisy = SENT.randomize(test, seed=7)
    assert fresh.score(noisy, truth) > once.score(noisy, truth) + 0.05
    assert once.epochs_[-1].loss < 0.1 < fresh.epochs_[-1].loss


@pytest.mark.parametrize("training", ["plain", "robust"])
def test_training_repeats_under_a_seed(training):
    pytest.importorskip("torch")
    public = two_signals(60, 8)
    server = NoisyClassifier("mlp", channel=SENT, training=training, **SGD | {"epochs": 3})
    fitted, repeated, other, from_statement = (
        clone(server).set_params(**settings).fit_public(*public)
        for settings in ({}, {}, {"seed": 2}, {"channel": SENT.statement(10)})
    )
    for same in (repeated, from_statement, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(weights(fitted), weights(same))
    assert (weights(fitted) != weights(other)).any()
    noisy = SENT.randomize(public[0], seed=9)
    for settings in ({}, {"public": two_signals(60, 10)}):
        one, two = (clone(server).set_params(**settings).fit(noisy, public[1]).epochs_ for _ in range(2))
        assert one == two


@pytest.mark.parametrize("published", [DPNR(epsilon=8.0, **SAFE), OME(epsilon=1.0, **SAFE)], ids=["DPNR", "OME"])
def test_classifier_learns_from_published_mechanisms(published):
    """On min-max vectors and bits. Plain training on these is the control without noise."""
    pytest.importorskip("torch")
    (vectors, labels), (test, truth) = reviews(400, 10, seed=18), reviews(400, 10, seed=19)
    channel = published.channel(10)
    noisy = channel.sample(test, RandomBits(20))
    for training in ("plain", "robust"):
        server = NoisyClassifier("mlp", channel=published, training=training, **SGD)
        fitted = clone(server).fit_public(vectors, labels)
        assert fitted.n_features_in_ == channel.width
        assert fitted.score(noisy, truth) > 0.6
        if training == "plain":
            assert fitted.score(channel.noiseless(test), truth) > 0.97
    server = NoisyClassifier("mlp", channel=published.statement(10), public=(vectors, labels), **SGD)
    assert server.fit(published.randomize(vectors, seed=21), labels).score(noisy, truth) > 0.6
