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
from dptext.sentences.bank import announces_bank
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


def test_the_layout(bank, saved):
    assert list(content(saved)) == FILES
    assert (saved / "texts.txt").read_text(encoding="utf-8").splitlines() == TEXTS
    assert (np.load(saved / "vectors.npy") == bank.vectors).all()
    config = json.loads((saved / "config.json").read_text())
    assert {key: config[key] for key in ("format", "name", "licence", "texts", "dimension")} == {
        "format": "dptext-text-bank",
        "name": "five sentences",
        "licence": "CC0-1.0",
        "texts": 5,
        "dimension": bank.features.dimension,
    }
    assert announces_bank(saved)
    assert not announces_bank(saved.parent)


def test_what_is_loaded_is_the_same_bank_and_makes_the_same_folder(bank, saved, tmp_path):
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


def test_vectors_and_texts_are_mapped_and_a_draw_copies_neither(saved):
    loaded = dptext.TextBank.load(saved)
    rewriter = dptext.BankRewriter(loaded, epsilon=2.0)
    rewriter.sample(["tea"])
    assert is_mapped(loaded.vectors) and not loaded.vectors.flags.writeable
    assert is_mapped(loaded.texts._content)
    assert np.shares_memory(loaded._sets._matrix, loaded.vectors)
    distance = []
    assert b"She drinks tea." not in pickle.dumps(loaded, protocol=5, buffer_callback=distance.append)
    assert any(np.shares_memory(np.asarray(entry), loaded.vectors) for entry in distance)  # processes share them


def test_a_bank_may_take_the_place_of_its_own_folder(bank, saved):
    loaded = dptext.TextBank.load(saved)
    loaded.save(saved, replace=True)
    assert dptext.TextBank.load(saved).fingerprint == loaded.fingerprint == bank.fingerprint
    assert [*loaded.texts] == TEXTS  # mapped arrays stay valid until they are released


def test_only_a_bank_is_replaced_and_only_when_it_is_asked_for(bank, saved, tmp_path):
    with pytest.raises(ParameterError, match="is there already"):
        bank.save(saved)
    other = tmp_path / "letters"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(ParameterError, match="holds something besides a bank"):
        bank.save(other, replace=True)
    assert (other / "mine.txt").read_text() == "mine"
    (saved / "mine.txt").write_text("mine")
    with pytest.raises(ParameterError, match="holds something besides a bank"):
        bank.save(saved, replace=True)
    with pytest.raises(ParameterError, match="holds something besides a bank"):
        bank.save(other / "mine.txt", replace=True)
    with pytest.raises(StorageError, match="its folder does not exist"):
        bank.save(tmp_path / "no" / "bank")
    with pytest.raises(ParameterError, match="the folder must be"):
        bank.save(None)


@pytest.mark.parametrize("stopped_at", range(4))
@pytest.mark.parametrize("replace", [False, True])
def test_a_save_that_is_stopped_leaves_what_was_there(bank, tmp_path, monkeypatch, stopped_at, replace):
    target = tmp_path / "bank"
    before = {}
    if replace:
        dptext.TextBank(TEXTS[:3], encoder="words", cache=False).save(target)
        before = content(target)
    writes = iter(range(100))

    def write(self, data, really=HashedFile.write):
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


# -- features that the folder cannot hold -----------------------------------------------------------------------------


def lengths(texts):
    return [[len(text), text.count("e"), 1.0] for text in texts]


def test_a_callers_encoder_is_given_again(tmp_path):
    features = fit_features(CallableEncoder(lengths, name="lengths"), TEXTS, cache=False)
    bank = dptext.TextBank(TEXTS, encoder=features, cache=False)
    bank.save(tmp_path / "bank")
    with pytest.raises(DataError, match="encoder"):
        dptext.TextBank.load(tmp_path / "bank")
    loaded = dptext.TextBank.load(tmp_path / "bank", encoder=CallableEncoder(lengths, name="lengths"))
    assert loaded.fingerprint == bank.fingerprint
    assert (loaded.features.vectors(TEXTS) == bank.vectors).all()
    with pytest.raises(ParameterError, match="give that one"):
        dptext.TextBank.load(tmp_path / "bank", encoder=CallableEncoder(lengths, name="others"))


# -- invalid folders --------------------------------------------------------------------------------------------------


def announced(folder, **entries):
    """The configuration as its own writer would have made it for what lies there now."""
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


def of_another(folder, name):
    other = dptext.TextBank([f"{text} Really." for text in TEXTS], encoder="words", cache=False)
    other.save(folder.parent / "other")
    shutil.copy(folder.parent / "other" / name, folder / name)


@pytest.mark.parametrize("name", [name for name in FILES if name != "config.json"])
@pytest.mark.parametrize("damage", [cut, flipped, of_another])
def test_a_file_that_was_cut_changed_or_mixed_up_is_named(saved, name, damage):
    if damage is of_another and name == "README.md":
        return  # it says the same of both
    damage(saved, name)
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "saved", name, "get the folder again")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing_is_named(saved, name):
    (saved / name).unlink()
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "saved", name, "missing")


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


def with_ranks(folder, ranks):
    tensors, _ = read_tensors(folder / "features.safetensors", source="test")
    return tensor_bytes(tensors | {"ranks": np.array(ranks), "cumulative": np.zeros(len(ranks))})


VECTORS = "vectors.npy"
CRAFTED = {
    "vectors of another shape": lambda f: rewritten(f, VECTORS, npy(np.load(f / VECTORS)[:4])),
    "vectors of another type": lambda f: rewritten(f, VECTORS, npy(np.load(f / VECTORS).astype(np.float64))),
    "vectors column by column": lambda f: rewritten(f, VECTORS, npy(np.asfortranarray(np.load(f / VECTORS)))),
    "vectors too long": lambda f: rewritten(f, VECTORS, npy(np.ones_like(np.load(f / VECTORS)))),
    "vectors that are no numbers": lambda f: rewritten(f, VECTORS, npy(np.full_like(np.load(f / VECTORS), np.nan))),
    "no vectors": lambda f: rewritten(f, VECTORS, b""),
    "pickled vectors": lambda f: rewritten(f, VECTORS, npy(np.array([print], dtype=object))),
    "one line less": lambda f: rewritten(f, "texts.txt", "\n".join([*TEXTS[:4], ""]).encode()),
    "an empty line": lambda f: rewritten(f, "texts.txt", "\n".join([*TEXTS[:4], "", ""]).encode()),
    "no end of the last line": lambda f: rewritten(f, "texts.txt", "\n".join([*TEXTS, "more"]).encode()),
    "no text": lambda f: rewritten(f, "texts.txt", b""),
    "no UTF-8": lambda f: rewritten(f, "texts.txt", "\n".join(TEXTS).encode() + b"\xff\n"),
    "no ranks": lambda f: rewritten(f, "features.safetensors", without(f, "ranks")),
    "no mean": lambda f: rewritten(f, "features.safetensors", without(f, "features.mean")),
    "ranks of more texts": lambda f: rewritten(f, "features.safetensors", with_ranks(f, [1, 2, 9])),
    "ranks out of order": lambda f: rewritten(f, "features.safetensors", with_ranks(f, [2, 1, 4])),
    "another number of texts": lambda f: announced(f, texts=6),
    "another dimension": lambda f: announced(f, dimension=3),
    "a name that is none": lambda f: announced(f, name=None),
    "a licence that is none": lambda f: announced(f, licence=7),
    "features that are none": lambda f: announced(f, features=[]),
}  # fmt: skip


@pytest.mark.parametrize("craft", CRAFTED)
def test_parts_that_do_not_make_one_bank_are_refused(saved, craft):
    CRAFTED[craft](saved)
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "saved", "get the folder again")


def test_another_format_and_what_no_version_knows_are_refused(saved):
    announced(saved, version=2)
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "upgrade dptext")
    announced(saved, version=1, more="of it")
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "more")
    announced(saved, format="dptext-vectors")
    assert_error(DataError, lambda: dptext.TextBank.load(saved), "dptext-text-bank")


def test_what_a_killed_save_left_is_no_bank(saved):
    part = saved.rename(saved.parent / ".saved.part")
    assert_error(DataError, lambda: dptext.TextBank.load(part), "unfinished output")
    with pytest.raises((DataError, StorageError)):
        dptext.TextBank.load(saved)
