"""NoisyClassifier: it works as an estimator and knows the noise."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from dptext.errors import ParameterError
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.privunit import PrivUnit
from dptext.representations.registry import RANDOMIZERS


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
    one, two, other = (
        NoisyClassifier(channel=NOISE, seed=seed).fit_public(*public).decision_function(test[0]) for seed in (1, 1, 2)
    )
    assert (one == two).all() and (one != other).any()
    repeated = pickle.loads(pickle.dumps(server))
    np.testing.assert_array_equal(repeated.decision_function(test[0]), server.decision_function(test[0]))


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_every_noise_leaves_a_finite_model_from_its_statement(name):
    vectors, labels = np.random.default_rng(1).normal(size=(120, 4)), np.tile([0, 1], 60)
    for epsilon in (1e-8, 8.0):
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


def test_hostile_vectors_leave_a_finite_model():
    channel = PrivUnit(epsilon=2.0)
    normal = np.random.default_rng(1).normal(size=(120, 4))
    for vectors in (np.zeros((120, 4)), np.ones((120, 4)), np.eye(4)[[0] * 120], normal * 1e-200, normal * 1e37):
        server = NoisyClassifier(channel=channel).fit(vectors, np.tile([0, 1], 60))
        assert np.isfinite(server.decision_function(vectors)).all()
        assert np.isfinite(server.device_model().scores(vectors)).all()
