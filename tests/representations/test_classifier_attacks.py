"""What an adversary sends to the server that learns: all alike, all zero, huge; and statements of every randomizer."""

import pickle

import numpy as np
import pytest

from dptext import Gaussian, PrivUnit
from dptext.errors import DataError, ParameterError
from dptext.representations.registry import RANDOMIZERS

pytest.importorskip("sklearn")
from dptext.representations.classifiers import NoisyClassifier
from dptext.representations.layers import DeviceModel

GENERATOR = np.random.default_rng(1)
VECTORS = GENERATOR.normal(size=(120, 4))
LABELS = np.tile([0, 1], 60)


def _finite(model, vectors):
    result = model.decision_function(vectors), model.device_model().scores(vectors)
    return all(np.isfinite(entry).all() for entry in result)


def _randomizer(name, epsilon):
    return RANDOMIZERS[name](epsilon=epsilon, **({"delta": 1e-5} if name == "Gaussian" else {}))


@pytest.mark.parametrize("name", RANDOMIZERS)
@pytest.mark.parametrize("epsilon", [1e-8, 500.0])
def test_every_noise_at_every_budget_leaves_a_model(name, epsilon):
    randomizer = _randomizer(name, epsilon)
    try:
        private = randomizer.randomize(VECTORS, seed=1)
    except ParameterError:
        return  # too little budget for 32-bit chances
    server = NoisyClassifier(channel=randomizer).fit(private, LABELS)
    if name == "NormalisedLaplace":  # it changes vectors before the noise, as no linear layer does
        assert np.isfinite(server.decision_function(private)).all()
        with pytest.raises(ParameterError, match="makes something else of vectors"):
            server.device_model()
    else:
        assert _finite(server, private)


@pytest.mark.parametrize(
    "vectors",
    [np.zeros((120, 4)), np.ones((120, 4)), np.eye(4)[np.zeros(120, int)], VECTORS * 1e-200, VECTORS * 1e37],
    ids=["zeros", "ones", "one axis", "tiny", "large"],
)
@pytest.mark.parametrize("channel", [None, PrivUnit(epsilon=2.0), Gaussian(epsilon=2.0, delta=1e-5)])
def test_whatever_arrived_leaves_a_model(vectors, channel):
    assert _finite(NoisyClassifier(channel=channel).fit(vectors, LABELS), vectors)


def test_numbers_whose_squares_overflow_are_refused_with_a_place():
    vectors = VECTORS.copy()
    vectors[7, 2] = 1e39
    with pytest.raises(DataError, match="row 8"):
        NoisyClassifier(channel=PrivUnit(epsilon=2.0)).fit(vectors, LABELS)


def test_the_statement_of_every_randomizer_says_which_noise_it_was():
    for name in RANDOMIZERS:
        randomizer = _randomizer(name, 8.0)
        private = randomizer.randomize(VECTORS, seed=1)
        model = NoisyClassifier(channel=randomizer.statement(4)).fit(private, LABELS)
        assert model.channel_.name == name
        assert model.channel_.parameters() == randomizer.channel(4).parameters()
        repeated = pickle.loads(pickle.dumps(model))
        assert np.array_equal(repeated.decision_function(private), model.decision_function(private))


def test_a_statement_of_something_else_is_refused():
    statement = PrivUnit(epsilon=8.0).statement(4).replace(mechanism="TEM")
    with pytest.raises(ParameterError, match="which noise"):
        NoisyClassifier(channel=statement).fit(VECTORS, LABELS)


def test_a_broken_device_model_is_a_data_error():
    for classes, weight in [
        ("[0, [1]]", "1"),
        ("[0, 1]", "1e400"),
        ("[0, 1]", "NaN"),
        ("[0, 1]", "1e39"),
        ("7", "1"),
        ("[" * 100_000, "1"),
    ]:
        layers = f'[{{"weights": [[{weight}, 2]], "bias": [1, 2]}}]'
        with pytest.raises(DataError, match="not a device model"):
            DeviceModel.from_json(
                f'{{"format": "dptext device model 1", "classes": {classes}, "domain": null, "layers": {layers}}}'
            )
