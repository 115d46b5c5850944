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
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.device_model import DeviceModel
from dptext.representations.domains import Domain
from dptext.representations.privunit import PrivUnit, PrivUnitG


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
    given = {
        **NoisyClassifier().get_params(),
        "model": "no such",
        "channel": 3,
        "public": "x",
        "hidden": -1,
        "progress": 7,
        "seed": "s",
    }
    made = NoisyClassifier(**given)
    assert made.get_params() == given == vars(made)


def test_clone_and_pickle():
    fitted = NoisyClassifier(channel=NOISE.channel(8), public=(CLEAN, LABELS)).fit(ARRIVED, LABELS)
    copy = clone(fitted)
    assert not any(name.endswith("_") for name in vars(copy))
    assert (copy.fit(ARRIVED, LABELS).predict(ARRIVED) == fitted.predict(ARRIVED)).all()
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(ARRIVED) == fitted.predict(ARRIVED)).all()
    assert (again.device_model().predict(CLEAN) == fitted.device_model().predict(CLEAN)).all()


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
    given = (NOISE, NOISE.channel(8), statement, PrivacyStatement.from_json(statement.to_json()))
    models = [NoisyClassifier(channel=each).fit(ARRIVED, LABELS).device_model() for each in given]
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "forest"}, "model must be one of 'linear', 'mlp'"),
        ({"dropout": 2}, "dropout must be a number"),
        ({"channel": "PrivUnit"}, "channel must be a Channel, a Randomizer, a PrivacyStatement or None, got str"),
        ({"channel": PrivUnit(epsilon=1.0).channel(9)}, "vectors of 9 numbers into 9, and 8 arrived"),
        ({"channel": PrivUnit(epsilon=1.0).statement(9)}, "vectors of 9 numbers"),
        ({"public": CLEAN}, "public must be a pair"),
        ({"public": (CLEAN[:, :3], LABELS)}, "expected vectors of 8 numbers, got 3"),
        ({"public": (CLEAN, np.zeros(600))}, "public labels must be of the same classes"),
    ],
)
def test_arguments_are_checked_by_fit(arguments, message):
    with pytest.raises(ParameterError, match=message):
        NoisyClassifier(**arguments).fit(ARRIVED, LABELS)


def test_a_statement_of_something_else_is_refused():
    import dataclasses

    other = dataclasses.replace(NOISE.statement(8), mechanism="TEM")
    with pytest.raises(ParameterError, match="statement of 'TEM' does not say which noise"):
        NoisyClassifier(channel=other).fit(ARRIVED, LABELS)


def test_one_class_and_no_fit_are_errors():
    with pytest.raises(DataError, match="two classes or more"):
        NoisyClassifier().fit(ARRIVED, ["same"] * len(ARRIVED))
    with pytest.raises(NotFittedError):
        NoisyClassifier().device_model()


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


def test_missing_torch_is_answered_with_its_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[train\]"'):
        NoisyClassifier("mlp").fit(ARRIVED, LABELS)
    assert NoisyClassifier("linear").fit(ARRIVED, LABELS).score(ARRIVED, LABELS) > 0.5


def test_missing_scikit_learn_is_answered_with_its_install_line():
    program = (
        "import sys\n"
        "sys.modules['sklearn'] = None\n"
        "import dptext.representations.device_model\n"
        "try:\n    import dptext.representations.classifiers\n"
        "except ImportError as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith('install it with: pip install "dptext[sklearn]"'), done.stderr
    assert done.stdout.startswith("MissingExtraError")
