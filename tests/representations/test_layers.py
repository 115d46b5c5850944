"""The model that goes back to the device: exact arrays, numpy only, total for whatever vector comes."""

import subprocess
import sys

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError, StorageError
from dptext.representations.bounds import Domain
from dptext.representations.layers import DeviceModel

LAYERS = (
    (np.array([[1.0, -1.0, 0.3], [0.0, 2.0, 1 / 3]]), np.array([0.1, 0.0, -0.2])),
    (np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]), np.array([0.0, 0.25])),
)


@pytest.mark.parametrize("classes", [("bad", "good"), (0, 1), (False, True)])
@pytest.mark.parametrize("domain", [None, Domain.SPHERE])
def test_it_comes_back_exactly(tmp_path, classes, domain):
    model = DeviceModel(classes, LAYERS, domain)
    model.save(tmp_path / "model.json")
    back = DeviceModel.load(tmp_path / "model.json")
    assert (back.classes, back.domain) == (model.classes, model.domain)
    for one, two in zip(model.layers, back.layers, strict=True):
        for saved, loaded in zip(one, two, strict=True):
            np.testing.assert_array_equal(saved, loaded)
            assert not loaded.flags.writeable
    vectors = np.random.default_rng(1).normal(size=(20, 2))
    np.testing.assert_array_equal(model.scores(vectors), back.scores(vectors))
    assert set(back.predict(vectors).tolist()) <= set(classes)


def test_hidden_layers_are_rectified():
    model = DeviceModel((0, 1), LAYERS)
    x = np.array([0.5, -0.25])
    hidden = np.maximum(x @ LAYERS[0][0] + LAYERS[0][1], 0)
    np.testing.assert_allclose(model.scores([x])[0], hidden @ LAYERS[1][0] + LAYERS[1][1], rtol=1e-6)


def test_any_vector_has_a_class():
    model = DeviceModel((0, 1), LAYERS, Domain.SPHERE)
    strange = [[0.0, 0.0], [np.nan, 1.0], [np.inf, -np.inf], [1e308, 1e308], [5e-324, 0.0]]
    assert np.isfinite(model.scores(strange)).all()
    assert model.predict(strange).shape == (5,)


def test_the_device_needs_the_core_only(tmp_path):
    DeviceModel((0, 1), LAYERS, Domain.SPHERE).save(tmp_path / "model.json")
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['sklearn', 'torch', 'scipy', 'pyarrow']))\n"
        "from dptext.representations.layers import DeviceModel\n"
        "print(DeviceModel.load(sys.argv[1]).predict([[1.0, 2.0]]).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "model.json")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("[0]", "[1]")


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="pairs of weights"):
        DeviceModel((0, 1), ())
    with pytest.raises(ParameterError, match="pairs of weights"):
        DeviceModel((0, 1), ((np.eye(2), np.zeros(3)),))
    with pytest.raises(ParameterError, match="do not lead to 3 classes"):
        DeviceModel((0, 1, 2), LAYERS)
    with pytest.raises(ParameterError, match="expected vectors of 2 numbers, got 3"):
        DeviceModel((0, 1), LAYERS).predict(np.zeros((1, 3)))
    for text in ("", "[]", "{}", '{"format": "other"}', '{"format": "dptext device model 1", "layers": 3}'):
        with pytest.raises(DataError):
            DeviceModel.from_json(text)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not text"):
        DeviceModel.load(tmp_path / "binary")
    with pytest.raises(StorageError, match="cannot read"):
        DeviceModel.load(tmp_path / "absent")
    with pytest.raises(StorageError, match="cannot write"):
        DeviceModel((0, 1), LAYERS).save(tmp_path / "absent" / "model.json")
