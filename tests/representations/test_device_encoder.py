"""DeviceEncoder: its noise, its statement, its folder, and folders that are damaged or inconsistent."""

import dataclasses
import hashlib
import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.artifacts import read_tensors, tensor_bytes
from dptext.privacy.guarantee import Relation, Trust, Unit
from dptext.representations.bounds import Bound, fit_bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, MeanOfWords
from dptext.representations.layers import DeviceModel
from dptext.representations.privunit import PrivUnit

TEXTS = ["the doctor lied", "", "7, 8!", "qqqzzz wwwxxx", None, float("nan"), "\ud800", "\0"]
LENGTHS = CallableEncoder(lambda texts: [[len(text), text.count(" "), 1.0] for text in texts], name="lengths")


@pytest.fixture(scope="module")
def device(glove):
    encoder = MeanOfWords(glove, weighting=1e-3)
    public = [" ".join(glove.words[start::500][:12]) for start in range(400)]
    bound = fit_bound(encoder.encode(public), dimension=16, public_name="a word list")
    return DeviceEncoder(encoder, bound, PrivUnit(epsilon=6.0))


@pytest.fixture
def saved(device, tmp_path):
    device.save(tmp_path / "saved")
    return tmp_path / "saved"


# -- the release --------------------------------------------------------------------------------------------------


def test_every_text_has_a_private_vector(device):
    private = device.encode(TEXTS)
    assert (private.shape, private.dtype, device.width) == ((8, 16), np.float32, 16)
    np.testing.assert_allclose(np.linalg.norm(private, axis=1), np.linalg.norm(private[0]), rtol=1e-4)
    assert device.encode([]).shape == (0, 16)
    clean = device.clean(TEXTS)
    np.testing.assert_array_equal(clean, device.clean(TEXTS))
    np.testing.assert_allclose(np.linalg.norm(clean, axis=1), 1.0, rtol=1e-6)
    assert "Not private" in DeviceEncoder.clean.__doc__
    heard = []
    device.encode(["a b"] * 5000, progress=heard.append)
    assert heard == [4096, 5000]


def test_texts_without_words_get_the_same_noise(device):
    """Their angle to their own clean vector has the law of any other text's (Kolmogorov-Smirnov, 1e-6)."""

    def angles(text, noise=device):
        return noise.encode([text] * 20_000) @ noise.clean([text])[0]

    ordinary = angles("the doctor lied about the garden")
    for text in ("", "qqqzzz", None):
        assert stats.ks_2samp(ordinary, angles(text)).pvalue > 1e-6
    broken = replace(device, randomizer=PrivUnit(epsilon=9.0))  # less noise for them is detected
    assert stats.ks_2samp(ordinary, angles("", broken)).pvalue < 1e-6


def test_mean_of_private_vectors_is_the_clean_vector(device):
    text, count = "the doctor lied about the garden", 40_000
    mean, clean = device.encode([text] * count).mean(axis=0), device.clean([text])[0]
    expected = device.randomizer.expected_squared_error(16) / count
    # 16 nearly normal coordinates: 6 times their mean square has a probability below 1e-12
    assert np.sum((mean - clean) ** 2) < 6 * expected < np.sum((mean - 0.8 * clean) ** 2)


def test_noise_is_fresh_and_a_seed_repeats_equal_calls_only(device):
    texts = ["the doctor lied", "about the garden"]
    assert not np.array_equal(device.encode(texts), device.encode(texts))
    seeded = device.encode(texts, seed=3)
    np.testing.assert_array_equal(seeded, device.encode(texts, seed=3))
    other = replace(device, randomizer=PrivUnit(epsilon=7.0))
    for changed in (device.encode(texts, seed=4), other.encode(texts, seed=3), device.encode([texts[0], "x"], seed=3)):
        assert not np.any(seeded[0] == changed[0])  # equal noise under one seed could be subtracted
    stored = pickle.dumps(device)
    assert not any(name in stored for name in (b"RandomBits", b"NoiseKey", b"randomness"))
    one, two = (pickle.loads(stored) for _ in range(2))
    assert one.statement == device.statement
    assert not np.array_equal(one.encode(["a"]), two.encode(["a"]))


def test_statement_describes_encoder_bound_and_noise(device):
    statement = device.statement
    assert statement.guarantee == dptext.PureDP(6.0)
    assert (statement.unit, statement.relation, statement.trust) == (Unit.DOCUMENT, Relation.SUBSTITUTION, Trust.LOCAL)
    assert (statement.neighbours, statement.mechanism, statement.seeded) == ("any two texts", "PrivUnit", False)
    assert statement.exposed == ("the number of texts, and their order",)
    parameters = statement.parameters
    assert parameters["encoder_vectors_sha256"] == device.encoder.vectors.fingerprint
    assert (parameters["public_data"], parameters["public_texts"]) == ("a word list", 400)
    assert (parameters["epsilon"], parameters["dimension"], parameters["width"]) == (6.0, 16, 16)
    for part in ("'a word list' (400 texts)", "their vectors are public"):
        assert any(part in assumption for assumption in statement.assumptions)
    assert dptext.PrivacyStatement.from_json(statement.to_json()) == statement
    assert statement.compose(statement).guarantee.epsilon == 12.0


# -- the folder ---------------------------------------------------------------------------------------------------


def test_folder_restores_the_device(device, saved):
    loaded = DeviceEncoder.load(saved)
    stored = dptext.PrivacyStatement.from_json((saved / "privacy.json").read_text())
    assert loaded.statement == device.statement == stored
    assert loaded.encoder.vectors.words == device.encoder.vectors.words
    np.testing.assert_array_equal(loaded.clean(TEXTS), device.clean(TEXTS))
    np.testing.assert_array_equal(loaded.encode(TEXTS, seed=1), device.encode(TEXTS, seed=1))
    assert sorted(file.name for file in saved.iterdir()) == ["config.json", "encoder.safetensors", "privacy.json"]
    loaded.save(saved.parent / "again")
    for file in saved.iterdir():
        assert file.read_bytes() == (saved.parent / "again" / file.name).read_bytes()


def test_folder_asks_for_a_callers_encoder_and_compares_it(tmp_path, device, saved, small):
    lengths = DeviceEncoder(LENGTHS, Bound(mean=np.zeros(3)), PrivUnit(epsilon=1.0))
    lengths.save(tmp_path / "lengths")
    with pytest.raises(DataError, match="does not contain the encoder, a custom function"):
        DeviceEncoder.load(tmp_path / "lengths")
    assert DeviceEncoder.load(tmp_path / "lengths", LENGTHS).statement == lengths.statement
    assert DeviceEncoder.load(saved, device.encoder).encoder is device.encoder
    for folder, other in (
        ("lengths", CallableEncoder(LENGTHS.function, name="x")),
        ("lengths", CallableEncoder(lambda t: [[1.0]] * len(t), name="lengths")),
        ("saved", MeanOfWords(device.encoder.vectors)),
        ("saved", MeanOfWords(small)),
    ):
        with pytest.raises(DataError, match="pass the encoder that was saved"):
            DeviceEncoder.load(tmp_path / folder, other)


def test_device_and_model_need_the_core_alone(saved, device, tmp_path):
    DeviceModel((0, 1), ((np.eye(16)[:, :2], np.zeros(2)),)).save(tmp_path / "model")
    code = f"""
import sys
for name in ("torch", "sklearn", "pyarrow", "scipy", "pandas", "sentence_transformers", "zstandard"):
    sys.modules[name] = None
from dptext.representations.device import DeviceEncoder
from dptext.representations.layers import DeviceModel
private = DeviceEncoder.load({str(saved)!r}).encode(["the doctor lied", "", None], seed=1)
print(float(private.sum()), DeviceModel.load({str(tmp_path / "model")!r}).predict(private).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    expected = float(device.encode(["the doctor lied", "", None], seed=1).sum())
    assert (done.stdout, done.stderr) == (f"{expected} (3,)\n", "")


# -- damaged or inconsistent folders ------------------------------------------------------------------------------


def edit_config(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def reseal(folder, name, content):
    """Replace a file together with its digest."""
    (folder / name).write_bytes(content)
    edit_config(folder, lambda config: config["sha256"].update({name: hashlib.sha256(content).hexdigest()}))


def test_inconsistent_configuration_is_refused(saved):
    original = (saved / "config.json").read_text()
    for change, message in [
        (lambda c: c["randomizer"]["options"].update(epsilon=6.000001), "epsilon"),
        (lambda c: c["randomizer"].update(name="PrivUnitG"), "mechanism"),
        (lambda c: c["bound"].update(public_name="another"), "public_data"),
        (lambda c: c["bound"].update(kind="clip", radius=1.0), "belong to different encoders"),
        (lambda c: c["encoder"].update(source="another"), "encoder_vectors"),
        (lambda c: c["randomizer"].update(options={}), "epsilon"),
        (lambda c: c.update(version=2), "version"),
        (lambda c: c.update(claim="epsilon 0"), "claim"),
    ]:
        edit_config(saved, change)
        with pytest.raises(DataError, match=message):
            DeviceEncoder.load(saved)
        (saved / "config.json").write_text(original)
    (saved / "config.json").write_text(original.replace('"epsilon": 6.0', '"epsilon": 0.1, "epsilon": 6.0'))
    with pytest.raises(DataError, match=r"config\.json is not of the format"):  # a name occurs twice
        DeviceEncoder.load(saved)


def test_cut_changed_or_missing_files_are_refused(saved):
    for file in saved.iterdir():
        content = file.read_bytes()
        middle = len(content) // 2
        for broken in (b"", content[:middle], content[:middle] + b"\xff\xff\xff\xff" + content[middle + 4 :]):
            file.write_bytes(broken)
            with pytest.raises(DataError, match="saved: "):
                DeviceEncoder.load(saved)
        file.unlink()
        with pytest.raises(DataError, match=f"{file.name} is missing"):
            DeviceEncoder.load(saved)
        file.write_bytes(content)
    assert DeviceEncoder.load(saved).width == 16


def test_arrays_of_another_encoder_are_refused_even_with_their_digest(saved):
    arrays = read_tensors(saved / "encoder.safetensors", source="f")[0]
    for name, change, message in [
        ("mean", lambda a: a + 1e-9, "bound_sha256"),
        ("directions", lambda a: a[:, :8], "dimension"),
        ("directions", lambda a: a[:8], "belong to different encoders"),
        ("vectors", lambda a: a + 1, "encoder_vectors_sha256"),
        ("vectors", lambda a: a * np.nan, "NaN or infinity"),
        ("words", lambda a: a | 128, "belong to different encoders"),
    ]:
        reseal(saved, "encoder.safetensors", tensor_bytes(arrays | {name: change(arrays[name])}))
        with pytest.raises(DataError, match=message):
            DeviceEncoder.load(saved)


def test_every_field_of_the_statement_is_compared_but_the_software(saved, device):
    changes = [
        {"guarantee": dptext.PureDP(1.0)},
        {"guarantee": dptext.ApproxDP(6.0, 0.0)},
        {"slack": 0.5},
        {"mechanism": "PrivUnitG"},
        {"unit": Unit.USER},
        {"relation": Relation.ADD_REMOVE},
        {"trust": Trust.CENTRAL},
        {"exposed": ()},
        {"assumptions": ()},
        {"condition": "any two people"},
        {"claimed_epsilon": 1.0},
        {"seeded": True},
        {"data_sha256": "0" * 64},
        {"release_id": "another"},
        {"supersedes": "another"},
        {"parameters": {**device.statement.parameters, "certified_epsilon": 0.1}},
        {"parameters": {**device.statement.parameters, "epsilon": 6.0 * (1 + 1e-9)}},  # arguments are exact
        {"parameters": {**device.statement.parameters, "cap_height": device.channel.height * 1.001}},
    ]
    for change in changes:
        changed = dataclasses.replace(device.statement, **change)
        reseal(saved, "privacy.json", changed.to_json().encode())
        with pytest.raises(DataError, match="differ; get the folder again"):
            DeviceEncoder.load(saved)
    fields = {field for change in changes for field in change}
    data = json.loads(device.statement.to_json())
    assert data.keys() - {"schema", "software", "words", "neighbours"} <= fields  # also fields of later versions
    near = {**device.statement.parameters, "cap_height": device.channel.height * (1 + 1e-9)}  # a search ends elsewhere
    reseal(saved, "privacy.json", device.statement.replace(parameters=near, software="dptext 0").to_json().encode())
    assert DeviceEncoder.load(saved).statement == device.statement


def test_a_failed_save_leaves_nothing(device, saved, tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="already"):
        device.save(saved)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dptext.io.artifacts.os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        device.save(tmp_path / "new")
    assert [file.name for file in tmp_path.iterdir()] == ["saved"]
