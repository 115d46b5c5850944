"""Tests of the folder of a bank: complete or absent, memory-mapped, and validated as a whole."""

import hashlib
import io
import json
import mmap
import pickle
import shutil

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError, StorageError
from dptext.features.features import fit_features
from dptext.io.artifacts import read_tensors, tensor_bytes
from dptext.io.atomic import HashedFile
from dptext.representations.encoders import CallableEncoder
from dptext.sentences.bank import FOLDER
from secrecy import MARKER, assert_error

TEXTS = [
    "I like tea.",
    "She drinks tea.",
    f"He pays {MARKER}.",
    "Taxes are due.",
    "Dogs bark, \u05e9\u05dc\u05d5\u05dd.",
]
FILES = ["README.md", "config.json", "features.safetensors", "texts.txt", "vectors.npy"]


@pytest.fixture(scope="module")
def bank():
    return dptext.TextBank(TEXTS, encoder="words", cache=False, name="five sentences", licence="CC0-1.0")


@pytest.fixture
def saved(bank, tmp_path):
    bank.save(tmp_path / "saved")
    return tmp_path / "saved"


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def is_mapped(array):
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    return array is not None


def test_the_files_of_a_bank(bank, saved):
    assert list(content(saved)) == FILES
    assert (saved / "texts.txt").read_text(encoding="utf-8").splitlines() == TEXTS
    assert (np.load(saved / "vectors.npy") == bank.vectors).all()
    config = json.loads((saved / "config.json").read_text())
    assert config["format"] == "dptext-text-bank"
    assert (config["name"], config["licence"], config["texts"]) == ("five sentences", "CC0-1.0", 5)
    assert config["dimension"] == bank.features.dimension
    assert FOLDER.announces(saved)
    assert not FOLDER.announces(saved.parent)


def test_a_loaded_bank_is_the_same_bank(bank, saved, tmp_path):
    loaded = dptext.TextBank.load(saved)
    assert loaded.fingerprint == bank.fingerprint
    assert (loaded.name, loaded.licence, [*loaded.texts]) == (bank.name, bank.licence, TEXTS)
    assert loaded.features == bank.features
    assert loaded.profile.cumulative.tolist() == bank.profile.cumulative.tolist()
    rewriters = [dptext.BankRewriter(entry, epsilon=2.0) for entry in (bank, loaded)]
    assert rewriters[0].statement == rewriters[1].statement
    assert rewriters[0].sample(["tea"] * 20, seed=1) == rewriters[1].sample(["tea"] * 20, seed=1)
    loaded.save(tmp_path / "again")
    assert content(tmp_path / "again") == content(saved)
    assert dptext.TextBank(loaded.texts, encoder=loaded.features, cache=False).fingerprint == bank.fingerprint
    loaded.save(saved, replace=True)  # in place of its own folder
    assert dptext.TextBank.load(saved).fingerprint == bank.fingerprint
    assert [*loaded.texts] == TEXTS  # mapped arrays stay valid until they are released


def test_vectors_stay_mapped(saved):
    loaded = dptext.TextBank.load(saved)
    rewriter = dptext.BankRewriter(loaded, epsilon=2.0)
    rewriter.sample(["tea"])
    assert is_mapped(loaded.vectors) and not loaded.vectors.flags.writeable
    assert np.shares_memory(loaded._sets._matrix, loaded.vectors)
    distance = []
    pickle.dumps(loaded, protocol=5, buffer_callback=distance.append)
    assert any(np.shares_memory(np.asarray(entry), loaded.vectors) for entry in distance)  # processes share them


def test_only_a_bank_is_replaced(bank, saved, tmp_path):
    with pytest.raises(ParameterError, match="already"):
        bank.save(saved)
    other = tmp_path / "letters"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(ParameterError, match="contains data other than a bank"):
        bank.save(other, replace=True)
    assert (other / "mine.txt").read_text() == "mine"
    (saved / "mine.txt").write_text("mine")
    with pytest.raises(ParameterError, match="contains data other than a bank"):
        bank.save(saved, replace=True)
    with pytest.raises(ParameterError, match="contains data other than a bank"):
        bank.save(other / "mine.txt", replace=True)
    with pytest.raises(StorageError, match="its folder does not exist"):
        bank.save(tmp_path / "no" / "bank")
    with pytest.raises(ParameterError, match="the folder must be"):
        bank.save(None)


@pytest.mark.parametrize("replace", [False, True])
def test_an_interrupted_save_leaves_the_earlier_folder(bank, tmp_path, monkeypatch, replace):
    target = tmp_path / "bank"
    if replace:
        dptext.TextBank(TEXTS[:3], encoder="words", cache=False).save(target)
    before = content(target) if replace else {}
    for stopped_at in range(4):
        writes = iter(range(100))

        def write(self, data, really=HashedFile.write, writes=writes, stopped_at=stopped_at):
            if next(writes) == stopped_at:
                raise KeyboardInterrupt
            really(self, data)

        with monkeypatch.context() as patched:
            patched.setattr(HashedFile, "write", write)
            with pytest.raises(KeyboardInterrupt):
                bank.save(target, replace=replace)
        assert [path.name for path in tmp_path.iterdir()] == ["bank"] * replace
        assert not replace or content(target) == before
    bank.save(target, replace=replace)
    assert dptext.TextBank.load(target).fingerprint == bank.fingerprint


def lengths(texts):
    return [[len(text), text.count("e"), 1.0] for text in texts]


def test_an_encoder_of_the_caller_is_needed_again(tmp_path):
    features = fit_features(CallableEncoder(lengths, name="lengths"), TEXTS, cache=False)
    bank = dptext.TextBank(TEXTS, encoder=features, cache=False)
    bank.save(tmp_path / "bank")
    with pytest.raises(DataError, match="encoder"):
        dptext.TextBank.load(tmp_path / "bank")
    loaded = dptext.TextBank.load(tmp_path / "bank", encoder=CallableEncoder(lengths, name="lengths"))
    assert loaded.fingerprint == bank.fingerprint
    assert (loaded.features.vectors(TEXTS) == bank.vectors).all()
    with pytest.raises(ParameterError, match="Pass that encoder"):
        dptext.TextBank.load(tmp_path / "bank", encoder=CallableEncoder(lengths, name="others"))


# -- invalid folders --------------------------------------------------------------------------------------------------


def announced(folder, **entries):
    """Rewrite the configuration with the digests of the present files."""
    config = json.loads((folder / "config.json").read_text())
    config["sha256"] = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES if name != "config.json"
    }
    (folder / "config.json").write_text(json.dumps(config | entries))


def cut(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:-1])


def flipped(folder, name):
    whole = bytearray((folder / name).read_bytes())
    whole[len(whole) // 2] ^= 1
    (folder / name).write_bytes(whole)


def swapped(folder, name):
    other = dptext.TextBank([f"{text} Really." for text in TEXTS], encoder="words", cache=False)
    other.save(folder.parent / "other", replace=(folder.parent / "other").exists())
    shutil.copy(folder.parent / "other" / name, folder / name)


def test_changed_and_missing_files_are_named(saved):
    for name in FILES:
        whole = (saved / name).read_bytes()
        (saved / name).unlink()
        assert_error(DataError, lambda: dptext.TextBank.load(saved), "saved", name, "missing")
        (saved / name).write_bytes(whole)
        for damage in (cut, flipped, swapped) if name != "config.json" else ():
            if damage is swapped and name == "README.md":
                continue  # equal for both banks
            damage(saved, name)
            assert_error(DataError, lambda: dptext.TextBank.load(saved), "saved", name, "et the folder again")
            (saved / name).write_bytes(whole)


def rewritten(folder, name, content_value):
    (folder / name).write_bytes(content_value)
    announced(folder)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def without(folder, tensor):
    tensors, _ = read_tensors(folder / "features.safetensors", source="test")
    return tensor_bytes({name: array for name, array in tensors.items() if name != tensor})


def changed_ranks(folder, ranks):
    tensors, _ = read_tensors(folder / "features.safetensors", source="test")
    return tensor_bytes(tensors | {"ranks": np.array(ranks), "cumulative": np.zeros(len(ranks))})


VECTORS = "vectors.npy"
CRAFTED = {
    "vectors of another shape": lambda f: rewritten(f, VECTORS, npy(np.load(f / VECTORS)[:4])),
    "vectors too long": lambda f: rewritten(f, VECTORS, npy(np.ones_like(np.load(f / VECTORS)))),
    "vectors that are no numbers": lambda f: rewritten(f, VECTORS, npy(np.full_like(np.load(f / VECTORS), np.nan))),
    "no vectors": lambda f: rewritten(f, VECTORS, b""),
    "pickled vectors": lambda f: rewritten(f, VECTORS, npy(np.array([print], dtype=object))),
    "one line less": lambda f: rewritten(f, "texts.txt", "\n".join([*TEXTS[:4], ""]).encode()),
    "no text": lambda f: rewritten(f, "texts.txt", b""),
    "no UTF-8": lambda f: rewritten(f, "texts.txt", "\n".join(TEXTS).encode() + b"\xff\n"),
    "no ranks": lambda f: rewritten(f, "features.safetensors", without(f, "ranks")),
    "no mean": lambda f: rewritten(f, "features.safetensors", without(f, "features.mean")),
    "ranks of more texts": lambda f: rewritten(f, "features.safetensors", changed_ranks(f, [1, 2, 9])),
    "ranks out of order": lambda f: rewritten(f, "features.safetensors", changed_ranks(f, [2, 1, 4])),
    "features that are none": lambda f: announced(f, features=[]),
}  # fmt: skip


def test_parts_of_different_banks_are_refused(saved):
    before = content(saved)
    for name, craft in CRAFTED.items():
        craft(saved)
        with pytest.raises(DataError, match="et the folder again") as caught:
            dptext.TextBank.load(saved)
        assert MARKER not in str(caught.value), name
        for file, data in before.items():
            (saved / file).write_bytes(data)


def test_other_formats_and_unfinished_folders_are_refused(saved):
    announced(saved, version=2)
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "pgrade dptext")
    announced(saved, version=1, more="of it")
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "more")
    announced(saved, format="dptext-vectors")
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "dptext-text-bank")
    part = saved.rename(saved.parent / ".saved.part")
    assert_error(DataError, lambda: dptext.TextBank.load(part), "unfinished output")
    with pytest.raises((DataError, StorageError)):
        dptext.TextBank.load(saved)
