"""The folder with safetensors, words and fingerprint: written whole or not at all, read only if all agrees."""

import json
import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

import dptext
from dptext.errors import StorageError
from dptext.io.artifacts import file_digest


@pytest.fixture
def saved(tmp_path):
    vectors = dptext.load_vectors((["the", "secret", "dog"], [[1.0, 7.25], [3.0, 4.0], [5.0, 6.0]]))
    dptext.save_vectors(vectors, tmp_path / "saved")
    return tmp_path / "saved"


def test_the_layout(saved):
    assert sorted(file.name for file in saved.iterdir()) == ["config.json", "vectors.safetensors", "words.txt"]
    assert (saved / "words.txt").read_bytes() == b"the\nsecret\ndog\n<unk>\n"
    config = json.loads((saved / "config.json").read_text())
    digests = {name: file_digest(saved / name) for name in ("vectors.safetensors", "words.txt")}
    assert config == {
        "format": "dptext-vectors",
        "version": 2,
        "software": None,
        "source": "given by the caller",
        "sha256": digests,
    }


def test_unk_stays_where_it_stood(tmp_path):
    """Words that were learned later come after it: the fingerprint depends on the order."""
    vectors = dptext.WordVectors(["cat", "<unk>", "dog", "tax"], np.arange(8.0).reshape(4, 2))
    dptext.save_vectors(vectors, tmp_path / "folder")
    back = dptext.load_vectors(tmp_path / "folder")
    assert back.words == vectors.words
    assert (back.matrix == vectors.matrix).all()
    assert back.fingerprint == vectors.fingerprint
    assert dptext.load_vectors(tmp_path / "folder", limit=3).words == ("cat", "dog", "<unk>")


def changed(folder, **entries):
    config = json.loads((folder / "config.json").read_text()) | entries
    (folder / "config.json").write_text(json.dumps(config))


MATRIX = np.array([[1.0, 7.25], [3.0, 4.0], [5.0, 6.0], [3.0, 5.75]], dtype=np.float32)
TENSORS, WORDS = "vectors.safetensors", "words.txt"
DAMAGE = [
    (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    (lambda f: (f / WORDS).unlink(), f"{WORDS} is missing"),
    (lambda f: (f / "config.json").write_text("{secret"), "config.json"),
    (lambda f: changed(f, format="secret"), "config.json"),
    (lambda f: changed(f, version=1), "another version"),
    (lambda f: (f / WORDS).write_text("the\nsecret\ncow\n<unk>\n"), f"{WORDS} does not match its digest"),
    (lambda f: changed(f, sha256={}), f"{TENSORS} does not match its digest"),
    (lambda f: save_file({"vectors": MATRIX[::-1].copy()}, f / TENSORS), f"{TENSORS} does not match its digest"),
    (lambda f: os.truncate(f / TENSORS, 100), f"{TENSORS} does not match its digest"),
    (lambda f: (f / "privacy.json").write_text("{}"), "privacy.json does not match its digest"),
]


def test_a_damaged_folder_is_refused(refused, saved, tmp_path):
    for number, (change, message) in enumerate(DAMAGE):
        folder = shutil.copytree(saved, tmp_path / f"copy{number}")
        change(folder)
        refused(folder, message)


def test_any_change_of_a_byte_is_refused_or_without_effect(saved):
    whole = dptext.load_vectors(saved)
    for file in sorted(saved.iterdir()):
        content = file.read_bytes()
        for place in range(len(content)):
            file.write_bytes(content[:place] + bytes([content[place] ^ 0x11]) + content[place + 1 :])
            try:
                assert dptext.load_vectors(saved).fingerprint == whole.fingerprint
                assert file.name == "config.json"  # the source, or white space
            except dptext.DptextError as error:
                assert "\n" not in str(error)
        file.write_bytes(content)


def test_a_broken_save_leaves_nothing(tmp_path, small, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dptext.io.artifacts.os.fsync", full)
    with pytest.raises(StorageError, match=r"cannot write '.*saved': No space left on device$"):
        dptext.save_vectors(small, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []
