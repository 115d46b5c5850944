"""NoisyClassifier: it works where estimators work, takes the noise from whatever says it, and answers what is wrong."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from dptext.errors import DataError, MissingExtraError, ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.additive import Laplace
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.layers import DeviceModel
from dptext.representations.networks import epsilons_of
from dptext.representations.privunit import PrivUnit, PrivUnitG
from dptext.representations.published import DPNR, OME
from dptext.representations.randomizer import Channel


@parametrize_with_checks([NoisyClassifier()])  # no failure is expected; the perceptron draws fresh weights each time
def test_scikit_learns_own_checks(estimator, check):
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


def test_the_constructor_only_stores():
    fields = {
        **NoisyClassifier().get_params(),
        "model": "no such",
        "channel": 3,
        "public": "x",
        "hidden": -1,
        "progress": 7,
        "seed": "s",
    }
    classifier = NoisyClassifier(**fields)
    assert classifier.get_params() == fields == vars(classifier)


def test_clone_and_pickle():
    fitted = NoisyClassifier(channel=NOISE.channel(8), public=(CLEAN, LABELS)).fit(ARRIVED, LABELS)
    copy = clone(fitted)
    assert not any(name.endswith("_") for name in vars(copy))
    assert (copy.fit(ARRIVED, LABELS).predict(ARRIVED) == fitted.predict(ARRIVED)).all()
    repeated = pickle.loads(pickle.dumps(fitted))
    assert (repeated.predict(ARRIVED) == fitted.predict(ARRIVED)).all()
    assert (repeated.device_model().predict(CLEAN) == fitted.device_model().predict(CLEAN)).all()


@pytest.mark.usefixtures("same_draws")
def test_pipeline_and_cross_validation():
    pipeline = make_pipeline(FunctionTransformer(NOISE.randomize), NoisyClassifier(channel=NOISE))
    assert cross_val_score(pipeline, CLEAN, LABELS, cv=3).mean() > 0.7


def test_it_predicts_for_noisy_vectors_and_for_clean_ones():
    server = NoisyClassifier(channel=NOISE).fit(ARRIVED, LABELS)
    test, names = reviews(seed=3)
    assert server.score(NOISE.randomize(test, seed=4), names) > 0.7
    device = server.device_model()
    assert isinstance(device, DeviceModel)
    assert device.domain is Domain.SPHERE
    assert device.score(test, names) > 0.97
    assert device.score(1000 * test, names) == device.score(test, names)
    assert server.classes_.tolist() == ["bad", "good"]


def test_the_noise_comes_from_a_channel_a_randomizer_or_the_statement():
    statement = NOISE.statement(8)
    values = (NOISE, NOISE.channel(8), statement, PrivacyStatement.from_json(statement.to_json()))
    models = [NoisyClassifier(channel=entry).fit(ARRIVED, LABELS).device_model() for entry in values]
    for model in models[1:]:
        np.testing.assert_array_equal(model.layers[0][0], models[0].layers[0][0])
    unknown = NoisyClassifier().fit(ARRIVED, LABELS)
    assert unknown.channel_ is None
    assert unknown.device_model().domain is None
    normal = PrivUnitG(epsilon=2.0)
    rebuilt = NoisyClassifier(channel=normal.statement(8)).fit(normal.randomize(CLEAN, seed=5), LABELS).channel_
    assert (rebuilt.name, rebuilt.guarantee.epsilon) == ("PrivUnitG", 2.0)


def test_public_examples_help_where_few_vectors_arrived():
    strong = PrivUnit(epsilon=1.0)
    few = strong.randomize(CLEAN[:60], seed=6)
    test, names = reviews(seed=7)
    public = reviews(seed=8)
    alone = NoisyClassifier(channel=strong).fit(few, LABELS[:60]).device_model().score(test, names)
    helped = NoisyClassifier(channel=strong, public=public).fit(few, LABELS[:60])
    assert helped.device_model().score(test, names) > max(alone, 0.97)
    unscaled = NoisyClassifier(channel=strong, public=(50 * public[0], public[1])).fit(few, LABELS[:60])
    np.testing.assert_allclose(unscaled.device_model().layers[0][0], helped.device_model().layers[0][0], rtol=1e-5)


def test_arguments_are_checked_by_fit():
    for arguments, message in [
        ({"model": "forest"}, "model must be one of 'linear', 'mlp'"),
        ({"dropout": 2}, "dropout must be a number"),
        ({"channel": "PrivUnit"}, "channel must be a Channel, a Randomizer, a PrivacyStatement or None, got str"),
        ({"channel": PrivUnit(epsilon=1.0).channel(9)}, "vectors of 9 numbers into 9, and 8 arrived"),
        ({"channel": PrivUnit(epsilon=1.0).statement(9)}, "vectors of 9 numbers"),
        ({"public": CLEAN}, "public must be a pair"),
        ({"public": (CLEAN[:, :3], LABELS)}, "expected vectors of 8 numbers, got 3"),
        ({"public": (CLEAN, np.zeros(600))}, "public labels must be of the same classes"),
    ]:
        with pytest.raises(ParameterError, match=message):
            NoisyClassifier(**arguments).fit(ARRIVED, LABELS)


def test_a_statement_of_something_else_is_refused():
    import dataclasses

    other = dataclasses.replace(NOISE.statement(8), mechanism="TEM")
    with pytest.raises(ParameterError, match="statement of 'TEM' does not say which noise"):
        NoisyClassifier(channel=other).fit(ARRIVED, LABELS)


def test_one_class_and_no_fit_are_errors():
    with pytest.raises(DataError, match="at least two classes"):
        NoisyClassifier().fit(ARRIVED, ["same"] * len(ARRIVED))
    with pytest.raises(NotFittedError):
        NoisyClassifier().device_model()


@pytest.mark.slow
def test_the_perceptron_learns_and_says_how(request):
    pytest.importorskip("torch")
    seen = []
    server = NoisyClassifier("mlp", channel=NOISE, epochs=5, hidden=16, progress=seen.append, seed=1)
    server.fit(ARRIVED, LABELS)
    test, names = reviews(seed=9)
    assert tuple(seen) == server.epochs_
    assert server.score(NOISE.randomize(test, seed=10), names) > 0.7
    assert server.device_model().score(test, names) > 0.9
    public = clone(server).set_params(public=reviews(seed=11), progress=None).fit(ARRIVED, LABELS)
    assert public.device_model().score(test, names) > 0.9
    assert public.fit(ARRIVED, LABELS).epochs_ == clone(public).fit(ARRIVED, LABELS).epochs_


# -- plain, robust and adaptive training -------------------------------------------------------------------

SENT = Laplace(epsilon=12.0, domain=Domain.CUBE)
SGD = {"hidden": (), "epochs": 12, "learning_rate": 0.05, "dropout": 0.0, "validation_fraction": 0.0, "seed": 1}


def two_ways(count, seed):
    """Clean vectors of the cube with two ways to tell the classes: a number of no error and no size, which drowns in
    noise, and six large ones that are right nine times in ten, together."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    sign = 2.0 * labels - 1
    large = np.where(rng.uniform(size=count) < 0.9, sign, -sign)
    return np.column_stack([0.05 * sign, *[0.9 * large] * 6, rng.normal(scale=0.3, size=(count, 3))]), labels


@pytest.fixture(scope="module")
def trained():
    """Servers that learnt from public vectors alone, by their training."""
    pytest.importorskip("torch")
    public = two_ways(1000, 1)
    settings = {
        "plain": {"epochs": 300, "learning_rate": 0.5},
        "robust": {},
        "adaptive": {"schedule": "noise-falls-10/n"},
    }
    return {
        training: NoisyClassifier("mlp", channel=SENT, training=training, **SGD | options).fit_public(*public)
        for training, options in settings.items()
    }


@pytest.mark.slow
def test_robust_training_beats_plain_training_where_clean_vectors_mislead(trained):
    """The noise has a deviation of 2.4 on a coordinate. Six standard errors of a share of 20,000 rows are .021."""
    vectors, labels = two_ways(20_000, 2)
    noisy = SENT.randomize(vectors, seed=3)
    scores = {training: server.score(noisy, labels) for training, server in trained.items()}
    assert trained["plain"].score(vectors, labels) == 1.0  # it has found the way that noise closes
    assert scores["robust"] > scores["plain"] + 0.05
    assert scores["adaptive"] > scores["plain"] + 0.05
    assert trained["robust"].score(vectors, labels) < 0.95


def test_a_training_that_draws_once_is_found_by_its_accuracy():
    """The broken twin of robust training: noise drawn once is learnt by heart (40 public vectors)."""
    pytest.importorskip("torch")
    vectors, labels = two_ways(40, 4)
    settings = SGD | {"epochs": 200, "hidden": 64}
    fresh = NoisyClassifier("mlp", channel=SENT, **settings).fit_public(vectors, labels)
    once = NoisyClassifier("mlp", channel=SENT, **settings).fit(SENT.randomize(vectors, seed=5), labels)
    test, truth = two_ways(20_000, 6)
    noisy = SENT.randomize(test, seed=7)
    assert fresh.score(noisy, truth) > once.score(noisy, truth) + 0.05
    assert once.epochs_[-1].loss < 0.1 < fresh.epochs_[-1].loss


def test_the_epsilons_of_a_training_are_told(trained):
    assert trained["adaptive"].epsilons_ == epsilons_of("noise-falls-10/n", 12)
    assert trained["robust"].epsilons_ == trained["plain"].epsilons_ == ()


@pytest.mark.parametrize("training", ["plain", "robust", "adaptive"])
def test_trainings_repeat_themselves_are_cloned_and_pickled(training):
    pytest.importorskip("torch")
    public = two_ways(60, 8)
    server = NoisyClassifier("mlp", channel=SENT, training=training, **SGD | {"epochs": 3})
    fitted = clone(server).fit_public(*public)
    repeated = clone(fitted).fit_public(*public)
    np.testing.assert_array_equal(fitted.device_model().layers[0][0], repeated.device_model().layers[0][0])
    other = clone(server).set_params(seed=2).fit_public(*public)
    assert (fitted.device_model().layers[0][0] != other.device_model().layers[0][0]).any()
    copy = pickle.loads(pickle.dumps(fitted))
    noisy = SENT.randomize(public[0], seed=9)
    assert (copy.predict(noisy) == fitted.predict(noisy)).all()
    for settings in ({}, {"public": two_ways(60, 10)}):
        arrived = [clone(server).set_params(**settings).fit(noisy, public[1]).epochs_ for _ in range(2)]
        assert arrived[0] == arrived[1]


def test_adaptive_training_works_from_a_statement_and_not_from_a_channel():
    pytest.importorskip("torch")
    public = two_ways(60, 11)
    server = NoisyClassifier("mlp", training="adaptive", **SGD | {"epochs": 2})
    servers = [clone(server).set_params(channel=entry).fit_public(*public) for entry in (SENT, SENT.statement(10))]
    np.testing.assert_array_equal(servers[0].device_model().layers[0][0], servers[1].device_model().layers[0][0])
    with pytest.raises(ParameterError, match="give the randomizer, or the statement"):
        clone(server).set_params(channel=SENT.channel(10)).fit_public(*public)


@pytest.mark.usefixtures("same_draws")
def test_the_linear_model_learns_from_public_vectors_too():
    public, test = reviews(seed=12), reviews(seed=13)
    server = NoisyClassifier(channel=NOISE).fit_public(*public)
    assert server.device_model().score(*test) > 0.97
    assert server.score(NOISE.randomize(test[0], seed=14), test[1]) > 0.7
    alone = NoisyClassifier().fit_public(*public)
    np.testing.assert_allclose(
        alone.decision_function(test[0]), NoisyClassifier().fit(*public).decision_function(test[0])
    )


class Doubled(Channel):
    """Each number twice, and Laplace noise on both: out goes another width than came in."""

    name, domain = "Doubled", Domain.CUBE

    def __init__(self, dimension):
        self._inner = Laplace(epsilon=90.0, domain=Domain.CUBE).channel(2 * dimension)
        self.dimension, self.width = dimension, 2 * dimension
        self.guarantee, self.expected_squared_error = self._inner.guarantee, 2 * self._inner.expected_squared_error

    def _sample(self, vectors, bits):
        return self._inner.sample(np.hstack([vectors, vectors]), bits)


class Telling(Doubled):
    """The same, which says what it adds its noise to."""

    def noiseless(self, vectors):
        bounded = self.domain.bound(vectors)
        return np.hstack([bounded, bounded])


@pytest.mark.parametrize("kind", [Doubled, Telling])
@pytest.mark.usefixtures("same_draws")
def test_noise_that_changes_the_width(kind):
    pytest.importorskip("torch")
    channel, (vectors, labels) = kind(10).freeze(), two_ways(600, 15)
    noisy = channel.sample(vectors, RandomBits(16))
    server = NoisyClassifier("mlp", channel=channel, **SGD)
    plain, linear = clone(server).set_params(training="plain"), NoisyClassifier(channel=channel)
    fits = [
        lambda: clone(server).fit_public(vectors, labels),
        lambda: clone(server).fit(noisy, labels),
        lambda: clone(server).set_params(public=(vectors, labels)).fit(noisy, labels),
        lambda: clone(linear).fit(noisy, labels),
    ]
    with_moments = [
        lambda: clone(plain).fit_public(vectors, labels),
        lambda: clone(plain).set_params(public=(vectors, labels)).fit(noisy, labels),
        lambda: clone(linear).fit_public(vectors, labels),
        lambda: clone(linear).set_params(public=(vectors, labels)).fit(noisy, labels),
    ]
    for fit in (*fits, *(with_moments if kind is Telling else ())):
        fitted = fit()
        assert fitted.n_features_in_ == 20
        assert fitted.score(noisy, labels) > 0.6
        with pytest.raises(ParameterError, match="Doubled makes something else of vectors"):
            fitted.device_model()
    for fit in with_moments if kind is Doubled else ():
        with pytest.raises(ParameterError, match="have no clean form"):
            fit()
    with pytest.raises(ParameterError, match="takes vectors of 10 numbers, got 9"):
        clone(server).fit_public(vectors[:, :9], labels)
    with pytest.raises(ParameterError, match="vectors of 10 numbers into 20, and 19 arrived"):
        clone(server).fit(noisy[:, :19], labels)


@pytest.mark.parametrize(
    "published",
    [DPNR(epsilon=8.0, unsafe_as_published=True), OME(epsilon=1.0, unsafe_as_published=True)],
    ids=["DPNR", "OME"],
)
def test_published_mechanisms_are_learnt_from(published):
    """On what they make of vectors: min-max vectors, bits. Plain training on these is the control without flips."""
    pytest.importorskip("torch")
    (vectors, labels), (test, truth) = reviews(400, 10, seed=18), reviews(400, 10, seed=19)
    channel = published.channel(10)
    noisy = channel.sample(test, RandomBits(20))
    for training in ("plain", "robust", "adaptive"):
        server = NoisyClassifier("mlp", channel=published, training=training, schedule=[8.0] * 12, **SGD)
        fitted = clone(server).fit_public(vectors, labels)
        assert fitted.n_features_in_ == channel.width
        assert fitted.score(noisy, truth) > 0.6
        if training == "plain":
            assert fitted.score(channel.noiseless(test), truth) > 0.97
    arrived = published.randomize(vectors, seed=21)
    server = NoisyClassifier("mlp", channel=published.statement(10), public=(vectors, labels), **SGD)
    assert server.fit(arrived, labels).score(noisy, truth) > 0.6
    with pytest.raises(ParameterError, match="makes something else of vectors"):
        server.device_model()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"training": "brave"}, "training must be one of 'plain', 'robust', 'adaptive', got 'brave'"),
        ({"training": "plain", "model": "linear"}, "is for model='mlp': the linear model knows the noise"),
        ({"training": "adaptive", "schedule": [1.0]}, "an epsilon for each of 12 epochs, got 1"),
        (
            {"training": "adaptive", "schedule": lambda epoch: 3 - epoch},
            "epsilon of epoch 3 must be a finite number above 0",
        ),
        ({"training": "adaptive", "channel": None}, "give the randomizer, or the statement"),
        ({"training": "robust", "channel": None}, "give the channel, or training='plain'"),
        ({"public": (CLEAN, LABELS)}, "public vectors were given twice"),
        ({"channel": 3}, "channel must be a Channel"),
    ],
)
def test_arguments_are_checked_by_fit_public(arguments, message):
    pytest.importorskip("torch")
    with pytest.raises(ParameterError, match=message):
        NoisyClassifier(**{"model": "mlp", "channel": SENT, **SGD} | arguments).fit_public(*two_ways(20, 17))


def test_public_vectors_of_one_class_or_no_shape_are_errors():
    with pytest.raises(DataError, match="at least two classes"):
        NoisyClassifier(channel=NOISE).fit_public(CLEAN, ["same"] * len(CLEAN))
    with pytest.raises(ParameterError, match="shape"):
        NoisyClassifier(channel=NOISE).fit_public(CLEAN[0], LABELS)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        NoisyClassifier(channel=NOISE).fit_public(CLEAN, LABELS[:5])


@pytest.mark.usefixtures("same_draws")
def test_missing_torch_is_answered_with_its_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[train\]"'):
        NoisyClassifier("mlp").fit(ARRIVED, LABELS)
    assert NoisyClassifier("linear").fit(ARRIVED, LABELS).score(ARRIVED, LABELS) > 0.5


def test_missing_scikit_learn_is_answered_with_its_install_line():
    program = (
        "import sys\n"
        "sys.modules['sklearn'] = None\n"
        "import dptext.representations.layers\n"
        "try:\n    import dptext.representations.classifiers\n"
        "except ImportError as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert 'install it with: pip install "dptext[sklearn]"' in done.stdout, done.stderr
    assert done.stdout.startswith("MissingExtraError")
