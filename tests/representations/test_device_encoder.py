"""What a device runs: its promise, its folder, and that it cannot promise one thing and do another."""

import dataclasses
import hashlib
import json
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.artifacts import read_tensors, tensor_bytes
from dptext.privacy.guarantee import Relation, Trust, Unit
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Bound, fit_bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, MeanOfWords
from dptext.representations.privunit import PrivUnit, PrivUnitG
from dptext.representations.registry import RANDOMIZERS, randomizer_from_parameters
from dptext.representations.sentence_encoder import SentenceEncoder

ODD = ["", "7, 8!", "qqqzzz wwwxxx", None, float("nan"), "\ud800", "\0"]
LENGTHS = CallableEncoder(lambda texts: [[len(text), text.count(" "), 1.0] for text in texts], name="lengths")


@pytest.fixture(scope="module")
def public(glove):
    """What stands for public texts: every 500th word, twelve to a text."""
    return [" ".join(glove.words[start::500][:12]) for start in range(400)]


@pytest.fixture(scope="module")
def device(glove, public):
    encoder = MeanOfWords(glove, weighting=1e-3)
    bound = fit_bound(encoder.encode(public), dimension=16, public_name="a word list")
    return DeviceEncoder(encoder, bound, PrivUnit(epsilon=6.0))


@pytest.fixture
def saved(device, tmp_path):
    device.save(tmp_path / "saved")
    return tmp_path / "saved"


# -- the release --------------------------------------------------------------------------------------------------


def test_every_text_has_its_vector_of_noise(device):
    private = device.encode(["the doctor lied", *ODD])
    assert private.shape == (8, 16)
    assert private.dtype == np.float32
    assert np.isfinite(private).all()
    assert device.width == 16
    assert device.encode([]).shape == (0, 16)
    np.testing.assert_allclose(np.linalg.norm(private, axis=1), np.linalg.norm(private[0]), rtol=1e-4)


def test_texts_without_a_word_go_through_the_same_noise(device):
    """Their angle to their own clean vector has the law of any other text's (Kolmogorov-Smirnov, 1e-6)."""

    def angles(text, noise=device):
        private = noise.encode([text] * 20_000)
        return private @ noise.clean([text])[0]

    ordinary = angles("the doctor lied about the garden")
    for text in ("", "qqqzzz", None):
        assert stats.ks_2samp(ordinary, angles(text)).pvalue > 1e-6
    # a broken twin with less noise for them is told apart
    twin = DeviceEncoder(device.encoder, device.bound, PrivUnit(epsilon=9.0))
    assert stats.ks_2samp(ordinary, angles("", twin)).pvalue < 1e-6


def test_the_mean_of_private_vectors_is_the_clean_one(device):
    text = "the doctor lied about the garden"
    count = 40_000
    private = device.encode([text] * count)
    error = np.sum((private.mean(axis=0) - device.clean([text])[0]) ** 2)
    expected = device.randomizer.expected_squared_error(16) / count
    # 16 nearly normal coordinates: 6 times their mean square has a probability below 1e-12
    assert error < 6 * expected
    # unit vectors whose centre is a tenth off would be found out
    assert np.sum((private.mean(axis=0) - 0.8 * device.clean([text])[0]) ** 2) > 6 * expected


def test_clean_vectors_are_bounded_and_without_noise(device):
    result = device.clean(["the doctor", "", None])
    np.testing.assert_array_equal(result, device.clean(["the doctor", "", None]))
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1.0, rtol=1e-6)
    assert "Not private" in DeviceEncoder.clean.__doc__


def test_every_call_draws_afresh_and_a_seed_repeats_equal_calls_only(device):
    texts = ["the doctor lied", "about the garden"]
    assert not np.array_equal(device.encode(texts), device.encode(texts))
    np.testing.assert_array_equal(device.encode(texts, seed=3), device.encode(texts, seed=3))
    other = replace(device, randomizer=PrivUnit(epsilon=7.0))
    for changed in (device.encode(texts, seed=4), other.encode(texts, seed=3)):
        assert not np.any(device.encode(texts, seed=3) == changed)
    # other content, other noise: else two releases under one seed would give their difference away
    assert not np.any(device.encode(texts, seed=3)[0] == device.encode([texts[0], "x"], seed=3)[0])
    np.testing.assert_array_equal(
        device.encode_with(texts, RandomBits(seed=1)), device.encode_with(texts, RandomBits(seed=1))
    )


def test_progress_counts_the_texts(device):
    heard = []
    device.encode(["a b"] * 5000, progress=heard.append)
    assert heard == [4096, 5000]


def test_a_pickle_holds_no_random_state(device):
    device.encode(["a"])
    stored = pickle.dumps(device)
    for name in (b"RandomBits", b"NoiseKey", b"randomness"):
        assert name not in stored
    repeated = pickle.loads(stored)
    assert repeated.statement == device.statement
    assert not np.array_equal(repeated.encode(["a"]), pickle.loads(stored).encode(["a"]))


# -- what is promised ---------------------------------------------------------------------------------------------


def test_the_statement_says_who_is_promised_what(device):
    statement = device.statement
    assert statement.guarantee == dptext.PureDP(6.0)
    assert (statement.unit, statement.relation, statement.trust) == (Unit.DOCUMENT, Relation.SUBSTITUTION, Trust.LOCAL)
    assert statement.neighbours == "any two texts"
    assert statement.mechanism == "PrivUnit"
    assert not statement.seeded
    assert statement.exposed == ("the number of texts, and their order",)
    parameters = statement.parameters
    assert parameters["encoder"] == "mean of word vectors"
    assert parameters["encoder_vectors_sha256"] == device.encoder.vectors.fingerprint
    assert (parameters["public_data"], parameters["public_texts"]) == ("a word list", 400)
    assert (parameters["epsilon"], parameters["dimension"], parameters["width"]) == (6.0, 16, 16)
    assert any("'a word list' (400 texts)" in assumption for assumption in statement.assumptions)
    assert any("their vectors are public" in assumption for assumption in statement.assumptions)
    assert dptext.PrivacyStatement.from_json(statement.to_json()) == statement
    assert "6" in " ".join(statement.explain().split())
    both = statement.compose(statement)
    assert both.guarantee.epsilon == 12.0


def test_a_randomizer_is_rebuilt_from_what_its_statement_says(device):
    for randomizer in (PrivUnit(epsilon=3.0), PrivUnitG(epsilon=0.5)):
        statement = replace(device, randomizer=randomizer).statement
        assert randomizer_from_parameters(statement.mechanism, statement.parameters) == randomizer
    for name, parameters, message in (
        ("Privunit", {"epsilon": 1.0}, "expected the name of a randomizer"),
        ("PrivUnit", {"eps": 1.0}, "lack epsilon"),
        ("PrivUnit", {"epsilon": -1.0}, "takes no such parameters"),
        ("PrivUnit", {"epsilon": "8"}, "takes no such parameters"),
    ):
        with pytest.raises(DataError, match=message):
            randomizer_from_parameters(name, parameters)
    assert all(name == entry.name for name, entry in RANDOMIZERS.items())


def test_parts_that_do_not_fit_are_refused(device):
    with pytest.raises(ParameterError, match="expected an encoder such as MeanOfWords, got str"):
        DeviceEncoder("words", device.bound, device.randomizer)
    with pytest.raises(ParameterError, match="expected a Bound"):
        DeviceEncoder(device.encoder, None, device.randomizer)
    with pytest.raises(ParameterError, match="expected a randomizer such as PrivUnit"):
        DeviceEncoder(device.encoder, device.bound, 8.0)
    with pytest.raises(ParameterError, match="for vectors of 50 numbers, the encoder gives 3"):
        DeviceEncoder(LENGTHS, device.bound, device.randomizer)
    for bound in (Bound(mean=np.zeros(3), kind="clip", radius=1.0), Bound(mean=np.zeros(3), kind="cube", radius=1.0)):
        with pytest.raises(ParameterError, match="PrivUnit takes vectors of the unit sphere, the bound"):
            DeviceEncoder(LENGTHS, bound, device.randomizer)
    lifted = DeviceEncoder(LENGTHS, Bound(mean=np.zeros(3), kind="lift", radius=9.0), device.randomizer)
    assert lifted.encode(["a b"]).shape == (1, 4)


# -- the folder ---------------------------------------------------------------------------------------------------


def test_what_was_saved_is_loaded(device, saved):
    repeated = DeviceEncoder.load(saved)
    assert (
        repeated.statement
        == device.statement
        == dptext.PrivacyStatement.from_json((saved / "privacy.json").read_text())
    )
    assert repeated.encoder.vectors.words == device.encoder.vectors.words
    texts = ["the doctor lied", *ODD]
    np.testing.assert_array_equal(repeated.clean(texts), device.clean(texts))
    np.testing.assert_array_equal(repeated.encode(texts, seed=1), device.encode(texts, seed=1))
    assert sorted(file.name for file in saved.iterdir()) == ["config.json", "encoder.safetensors", "privacy.json"]
    repeated.save(saved.parent / "again")
    for file in saved.iterdir():
        assert file.read_bytes() == (saved.parent / "again" / file.name).read_bytes()


@pytest.mark.parametrize("kind", ["normalise", "lift"])
@pytest.mark.parametrize("projection", [None, "random", "pca", "supervised"])
@pytest.mark.parametrize("randomizer", [PrivUnit(epsilon=0.1), PrivUnitG(epsilon=100.0)])
def test_every_kind_of_bound_comes_back(small, tmp_path, kind, projection, randomizer):
    encoder = MeanOfWords(small)
    labels = [0, 1] * 50 if projection == "supervised" else None
    dimension = None if projection is None else 3
    vectors = encoder.encode(list(small.words[:100]))
    bound = fit_bound(vectors, bound=kind, projection=projection, dimension=dimension, labels=labels)
    output = DeviceEncoder(encoder, bound, randomizer)
    output.save(tmp_path / "saved")
    assert DeviceEncoder.load(tmp_path / "saved").statement == output.statement


def test_the_statement_of_the_vectors_goes_along(small, tmp_path):
    trained = dptext.PrivacyStatement(
        guarantee=dptext.PureDP(1.0),
        unit="user",
        relation="add/remove",
        condition="n",
        trust="central",
        mechanism="m",
        release_id="r",
    )
    encoder = MeanOfWords(small.attach_statement(trained))
    DeviceEncoder(encoder, Bound(mean=np.zeros(5)), PrivUnit(epsilon=1.0)).save(tmp_path / "saved")
    repeated = DeviceEncoder.load(tmp_path / "saved")
    assert repeated.encoder.vectors.statement == trained
    (tmp_path / "saved" / "vectors.privacy.json").unlink()
    with pytest.raises(DataError, match=r"vectors.privacy.json is not the file that config.json announces"):
        DeviceEncoder.load(tmp_path / "saved")


def test_an_encoder_that_no_folder_holds_is_asked_for(tmp_path):
    encoder = DeviceEncoder(LENGTHS, Bound(mean=np.zeros(3)), PrivUnit(epsilon=1.0))
    encoder.save(tmp_path / "saved")
    with pytest.raises(DataError, match=r"its encoder is a caller's, .* give the same one as encoder="):
        DeviceEncoder.load(tmp_path / "saved")
    assert DeviceEncoder.load(tmp_path / "saved", LENGTHS).statement == encoder.statement
    for other in (
        CallableEncoder(LENGTHS.function, name="x"),
        CallableEncoder(lambda t: [[1.0]] * len(t), name="lengths"),
    ):
        with pytest.raises(ParameterError, match="not the one that was saved: encoder"):
            DeviceEncoder.load(tmp_path / "saved", other)


def test_a_sentence_encoder_is_found_again_by_its_name_and_told_by_its_digest(stub, tmp_path):
    encoder = DeviceEncoder(SentenceEncoder(batch_size=4), Bound(mean=np.zeros(3)), PrivUnit(epsilon=1.0))
    encoder.save(tmp_path / "saved")
    repeated = DeviceEncoder.load(tmp_path / "saved")
    assert repeated.statement == encoder.statement
    np.testing.assert_array_equal(repeated.encode(["ab"], seed=1), encoder.encode(["ab"], seed=1))
    elsewhere = DeviceEncoder(SentenceEncoder(stub, batch_size=4), encoder.bound, encoder.randomizer)
    elsewhere.save(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"the model of the encoder is not here .* encoder=SentenceEncoder\(folder\)"):
        DeviceEncoder.load(tmp_path / "elsewhere")
    repeated = DeviceEncoder.load(tmp_path / "elsewhere", SentenceEncoder(stub, batch_size=4))
    assert repeated.statement == elsewhere.statement
    (stub / "model.safetensors").write_text("other weights")
    with pytest.raises(DataError, match="encoder_model_sha256 differ"):
        DeviceEncoder.load(tmp_path / "saved")


def test_the_encoder_may_be_given_and_is_compared(device, saved, small):
    assert DeviceEncoder.load(saved, device.encoder).encoder is device.encoder
    for other in (MeanOfWords(device.encoder.vectors), MeanOfWords(small)):
        with pytest.raises(ParameterError, match="not the one that was saved"):
            DeviceEncoder.load(saved, other)


def test_a_device_needs_nothing_but_the_core(saved, device):
    """The packages of every extra are out of reach there."""
    code = f"""
import sys
for name in ("torch", "sklearn", "pyarrow", "scipy", "pandas", "sentence_transformers", "zstandard"):
    sys.modules[name] = None
from dptext.representations.device import DeviceEncoder
device = DeviceEncoder.load({str(saved)!r})
private = device.encode(["the doctor lied", "", None], seed=1)
print(private.shape, device.statement.epsilon, float(private.sum()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    expected = float(device.encode(["the doctor lied", "", None], seed=1).sum())
    assert done.stdout.split() == ["(3,", "16)", "6.0", str(expected)]


# -- a folder that is not whole -----------------------------------------------------------------------------------


def edited(folder, change):
    """Change the configuration in a way that leaves it consistent with itself."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def resealed(folder, name, content):
    """Put another file in place, with its digest."""
    (folder / name).write_bytes(content)
    edited(folder, lambda config: config["sha256"].update({name: hashlib.sha256(content).hexdigest()}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["randomizer"]["options"].update(epsilon=60.0), r"privacy.json differ \(guarantee, epsilon"),
        (lambda c: c["randomizer"]["options"].update(epsilon=6.000001), r"privacy.json differ \(guarantee"),
        (lambda c: c["randomizer"].update(name="PrivUnitG"), r"privacy.json differ \(mechanism"),
        (lambda c: c["bound"].update(kind="lift", radius=1.0), "privacy.json differ"),
        (lambda c: c["bound"].update(public_name="another"), r"\(public_data, assumptions\)"),
        (lambda c: c["bound"].update(projection=None), r"\(projection\)"),
        (lambda c: c["bound"].update(kind="clip", radius=1.0), "its parts do not fit together"),
        (lambda c: c["encoder"].update(weighting=None), "encoder_weighting"),
        (lambda c: c["encoder"].update(source="another"), "encoder_vectors differ"),
        (lambda c: c["encoder"].update(kind="given"), "its encoder is a caller's"),
        (lambda c: c["randomizer"].update(name="Sum"), "expected the name of a randomizer"),
        (lambda c: c.update(version=2), "expected version 1 .* upgrade dptext"),
        (lambda c: c.update(sha256={}), "not the file that config.json announces"),
    ],
)
def test_a_configuration_that_says_something_else_is_refused(saved, change, message):
    edited(saved, change)
    with pytest.raises(DataError, match=message):
        DeviceEncoder.load(saved)


def test_every_file_that_is_cut_or_changed_is_refused(saved):
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


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("mean", lambda a: a + 1e-9, "bound_sha256"),
        ("directions", lambda a: a * 2, "bound_sha256"),
        ("directions", lambda a: a[:, :8], "privacy.json differ"),
        ("directions", lambda a: a[:8], r"directions must be finite numbers"),
        ("mean", lambda a: a[:8], "not of one encoder"),
        ("mean", lambda a: a * np.nan, "finite numbers"),
        ("vectors", lambda a: a + 1, "encoder_vectors_sha256 differ"),
        ("vectors", lambda a: a[:-1], "one vector a word"),
        ("vectors", lambda a: a * np.nan, "NaN or infinity"),
        ("words", lambda a: np.where(a == ord("e"), ord("q"), a).astype(np.uint8), "distinct"),
        ("words", lambda a: a | 128, "not of one encoder"),
    ],
)
def test_arrays_of_another_encoder_are_refused_even_with_a_right_digest(saved, name, change, message):
    arrays = dict(read_tensors(saved / "encoder.safetensors", source="f")[0])
    arrays[name] = change(arrays[name])
    resealed(saved, "encoder.safetensors", tensor_bytes(arrays))
    with pytest.raises(DataError, match=message):
        DeviceEncoder.load(saved)
    for missing in (name, "mean"):
        if missing != "directions":
            resealed(saved, "encoder.safetensors", tensor_bytes({k: v for k, v in arrays.items() if k != missing}))
            with pytest.raises(DataError):
                DeviceEncoder.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        {"guarantee": dptext.PureDP(1.0)},
        {"guarantee": dptext.ApproxDP(6.0, 0.0)},
        {"slack": 0.5},
        {"mechanism": "PrivUnitG"},
        {"unit": Unit.USER},
        {"relation": Relation.ADD_REMOVE},
        {"trust": Trust.CENTRAL},
        {"exposed": ()},
        {"exposed": ("nothing",)},
        {"assumptions": ()},
        {"condition": "any two people"},
        {"claimed_epsilon": 1.0},
        {"seeded": True},
        {"data_sha256": "0" * 64},
        {"release_id": "another"},
        {"supersedes": "another"},
    ],
)
def test_a_statement_that_says_something_else_is_refused(saved, device, change):
    text = dataclasses.replace(device.statement, **change)
    resealed(saved, "privacy.json", text.to_json().encode())
    with pytest.raises(DataError, match="json differ"):
        DeviceEncoder.load(saved)


def another_value(name, value):
    """Something else that the field of a statement may hold."""
    if isinstance(value, str):
        return {"document": "user", "local": "central", "substitution": "add/remove"}.get(value, f"{value}x")
    if isinstance(value, dict):
        return {**value, "further": 1}
    if isinstance(value, list):
        return value[1:]
    if isinstance(value, bool):
        return not value
    return 1.0 if name in ("claimed_epsilon", "slack") else "0" * 64


def test_every_field_of_a_statement_but_the_software_is_compared(saved, device):
    """Also those that statements will have one day."""
    data = json.loads(device.statement.to_json())
    for name in data.keys() - {"schema", "software", "guarantee", "condition"}:  # the last two: above
        changed = {**data, name: another_value(name, data[name])}
        assert changed != data
        resealed(saved, "privacy.json", json.dumps(changed).encode())
        with pytest.raises(DataError, match=r"privacy.json differ|another one in words"):
            DeviceEncoder.load(saved)
    resealed(saved, "privacy.json", json.dumps({**data, "software": "dptext 0"}).encode())
    assert DeviceEncoder.load(saved).statement == device.statement


def test_a_parameter_that_follows_from_nothing_is_refused(saved, device):
    fields = {**device.statement.parameters, "certified_epsilon": 0.1}
    resealed(saved, "privacy.json", device.statement.replace(parameters=fields).to_json().encode())
    with pytest.raises(DataError, match=r"\(certified_epsilon\)"):
        DeviceEncoder.load(saved)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda c: c.update(promise="epsilon 0"), "promise"),
        (lambda c: c["encoder"].update(public=True), "encoder.public"),
        (lambda c: c["bound"].update(epsilon=1.0), None),
        (lambda c: c["randomizer"].update(epsilon=1.0), "randomizer.epsilon"),
        (lambda c: c["randomizer"]["options"].update(delta=0.0), "randomizer.options.delta"),
        (lambda c: c["sha256"].update({"card.md": "0"}), "sha256.card.md"),
    ],
)
def test_unknown_names_of_the_configuration_are_refused(saved, change, where):
    edited(saved, change)
    with pytest.raises(DataError, match="not of one encoder" if where is None else f"holds '{where}', which this"):
        DeviceEncoder.load(saved)


def test_a_name_that_stands_twice_in_the_configuration_is_refused(saved):
    text = (saved / "config.json").read_text()
    (saved / "config.json").write_text(text.replace('"epsilon": 6.0', '"epsilon": 0.1, "epsilon": 6.0'))
    assert '"epsilon": 0.1' in (saved / "config.json").read_text()
    with pytest.raises(DataError, match=r"expected config\.json of the format"):
        DeviceEncoder.load(saved)


@pytest.mark.parametrize("near", [1e-9, 1e-3])
def test_constants_may_differ_by_rounding_and_no_more(saved, device, near):
    values = dict(device.statement.parameters)
    values["cap_height"] *= 1 + near
    resealed(saved, "privacy.json", device.statement.replace(parameters=values).to_json().encode())
    if near < 1e-6:  # another machine's search ends elsewhere in a flat valley
        assert DeviceEncoder.load(saved).statement == device.statement
    else:
        with pytest.raises(DataError, match=r"\(cap_height\)"):
            DeviceEncoder.load(saved)


def test_arguments_may_not_differ_at_all(saved, device):
    fields = {**device.statement.parameters, "epsilon": 6.0 * (1 + 1e-9)}
    resealed(saved, "privacy.json", device.statement.replace(parameters=fields).to_json().encode())
    with pytest.raises(DataError, match=r"\(epsilon\)"):
        DeviceEncoder.load(saved)


def test_places_where_nothing_can_be_written_or_read(device, saved, tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="is there already"):
        device.save(saved)
    with pytest.raises(StorageError, match="cannot write"):
        device.save(tmp_path / "no" / "such")
    for bad in ("", 7, "a\0b"):
        with pytest.raises(ParameterError, match="the folder must be a path"):
            device.save(bad)
        with pytest.raises(ParameterError, match="the folder must be a path"):
            DeviceEncoder.load(bad)
    with pytest.raises(DataError, match=r"config.json is missing"):
        DeviceEncoder.load(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dptext.io.artifacts.os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        device.save(tmp_path / "other")
    assert [file.name for file in tmp_path.iterdir()] == ["saved"]


def test_words_and_randomizers_that_no_folder_can_hold_are_refused(tmp_path, device):
    for word, message in (("a\nb", "row 1: the word holds a line feed"), ("\ud800", "row 1: .* surrogate")):
        vectors = dptext.WordVectors(["<unk>", word], [[0.0, 1.0], [1.0, 0.0]])
        encoder = DeviceEncoder(MeanOfWords(vectors), Bound(mean=[0.0, 0.0]), PrivUnit(epsilon=1.0))
        with pytest.raises(DataError, match=message):
            encoder.save(tmp_path / "saved")

    @dataclass(frozen=True, kw_only=True)
    class Mine(PrivUnit):
        pass

    with pytest.raises(ParameterError, match="only dptext's own randomizers can be saved"):
        replace(device, randomizer=Mine(epsilon=1.0)).save(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []
