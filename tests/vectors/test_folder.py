"""The folder with safetensors, words and fingerprint: written whole or not at all, read only if all agrees."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import dptext
from dptext.errors import DataError, StorageError
from dptext.vectors.formats import announces_vectors, check_folder


@pytest.fixture
def saved(tmp_path):
    vectors = dptext.load_vectors((["the", "secret", "dog"], [[1.0, 7.25], [3.0, 4.0], [5.0, 6.0]]))
    dptext.save_vectors(vectors, tmp_path / "saved")
    return tmp_path / "saved"


def test_the_layout(saved):
    assert sorted(file.name for file in saved.iterdir()) == ["config.json", "vectors.safetensors", "words.txt"]
    assert (saved / "words.txt").read_bytes() == b"the\nsecret\ndog\n<unk>\n"
    assert json.loads((saved / "config.json").read_text()) == {
        "format": "dptext-vectors",
        "version": 1,
        "source": "given by the caller",
        "words": 4,
        "dimension": 2,
        "sha256": dptext.load_vectors(saved).fingerprint,
    }


def test_all_files_can_be_read_by_the_same_people(saved):
    assert len({file.stat().st_mode for file in saved.iterdir()}) == 1


def test_equal_vectors_give_equal_bytes(saved, tmp_path):
    vectors = dptext.load_vectors((["the", "secret", "dog"], [[1.0, 7.25], [3.0, 4.0], [5.0, 6.0]]))
    dptext.save_vectors(vectors, tmp_path / "again")
    for file in saved.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_a_limit_keeps_the_vector_of_unk(saved):
    whole = dptext.load_vectors(saved)
    part = dptext.load_vectors(saved, limit=2)
    assert part.words == ("the", "<unk>")
    np.testing.assert_array_equal(part["<unk>"], whole["<unk>"])


@pytest.mark.parametrize("place", [0, 1, 3])
def test_unk_stays_where_it_stood(tmp_path, place):
    """Words that were learned later come after it: the fingerprint is that of the order."""
    words = ["cat", "dog", "tax"]
    words.insert(place, "<unk>")
    vectors = dptext.WordVectors(words, np.arange(8.0).reshape(4, 2))
    dptext.save_vectors(vectors, tmp_path / "folder")
    back = dptext.load_vectors(tmp_path / "folder")
    assert back.words == vectors.words
    assert (back.matrix == vectors.matrix).all()
    assert back.fingerprint == vectors.fingerprint
    assert dptext.load_vectors(tmp_path / "folder", limit=3).words == ("cat", "dog", "<unk>")


def test_torch_is_not_imported(saved):
    code = f"import sys, dptext; dptext.load_vectors({str(saved)!r}); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=1200)


def test_a_folder_by_its_dot(saved, monkeypatch):
    monkeypatch.chdir(saved)
    assert dptext.load_vectors(".").source == "saved"


def changed(folder, **entries):
    config = json.loads((folder / "config.json").read_text()) | entries
    (folder / "config.json").write_text(json.dumps(config))


def tensors(folder, **named):
    save_file({name: np.ascontiguousarray(values) for name, values in named.items()}, folder / "vectors.safetensors")


MATRIX = np.array([[1.0, 7.25], [3.0, 4.0], [5.0, 6.0], [3.0, 5.75]], dtype=np.float32)
MISSING = (
    "saved: expected a folder that dptext.save_vectors wrote, {} is missing; give the path of a file, or a pair "
    "(words, matrix)"
)
BROKEN = "saved: vectors.safetensors is broken or cut; copy the folder again"
FORMAT = "saved: expected config.json of the format 'dptext-vectors', got something else; copy it again"
VERSION = "saved: expected version 1 of the format, got another; upgrade dptext"
ENTRIES = "saved: expected words, dimension and sha256 in config.json, got no such; copy it again"
LINES = "saved: words.txt must hold 4 lines of UTF-8, as config.json says, got {}; copy the folder again"
TENSOR = (
    "saved: vectors.safetensors must hold one float32 tensor 'vectors' of the shape (4, 2), as config.json says; save "
    "the vectors again"
)
CHANGED = (
    "saved: the words and vectors are not those of the fingerprint in config.json; they were changed or damaged: get "
    "the folder again"
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "config.json").unlink(), MISSING.format("config.json")),
        (
            lambda f: [file.unlink() for file in f.iterdir()],
            MISSING.format("config.json and words.txt and vectors.safetensors"),
        ),
        (lambda f: (f / "config.json").write_text("{secret"), FORMAT),
        (lambda f: changed(f, format="secret"), FORMAT),
        (lambda f: changed(f, version=2), VERSION),
        (lambda f: changed(f, words="secret"), ENTRIES),
        (lambda f: changed(f, dimension=0), ENTRIES),
        (lambda f: (f / "words.txt").write_text("the\nsecret\ndog\n"), LINES.format(3)),
        (
            lambda f: (f / "words.txt").write_bytes(b"the\nsecret\xff\ndog\n<unk>\n"),
            LINES.format(0),
        ),
        (lambda f: (f / "words.txt").write_text("the\nsecret\ncow\n<unk>\n"), CHANGED),
        (lambda f: changed(f, sha256="0" * 64), CHANGED),
        (lambda f: tensors(f, vectors=MATRIX[::-1]), CHANGED),
        (lambda f: tensors(f, vectors=MATRIX.astype(np.float64)), TENSOR),
        (lambda f: tensors(f, vectors=MATRIX[:3]), TENSOR),
        (lambda f: tensors(f, secret=MATRIX), TENSOR),
        (lambda f: (f / "vectors.safetensors").write_bytes(b""), BROKEN),
        (lambda f: os.truncate(f / "vectors.safetensors", 100), BROKEN),
    ],
)
@pytest.mark.parametrize("limit", [None])
def test_a_folder_that_does_not_agree_is_refused(refused, saved, change, message, limit):
    change(saved)
    refused(saved, message, limit=limit)


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


def test_a_file_in_place_of_which_a_folder_stands(refused, saved):
    (saved / "words.txt").unlink()
    (saved / "words.txt").mkdir()
    path = str(saved / "words.txt")
    refused(saved, f"cannot read {path!r}: Is a directory", StorageError)


def test_a_broken_save_leaves_nothing(tmp_path, small, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dptext.io.artifacts.os.fsync", full)
    with pytest.raises(StorageError, match=r"cannot write '.*saved': No space left on device$"):
        dptext.save_vectors(small, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


# -- further statements ---------------------------------------------------------------------------------------


def with_statements(saved, entries):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, "statements": entries}))


def test_further_statements_are_checked_by_their_digests(saved):
    assert check_folder(saved) == frozenset()
    (saved / "privacy-a.json").write_bytes(b"said")
    entry = {"file": "privacy-a.json", "sha256": hashlib.sha256(b"said").hexdigest()}
    with_statements(saved, {"a": entry})
    assert check_folder(saved) == {"privacy-a.json"}
    (saved / "privacy-a.json").write_bytes(b"something else")
    with pytest.raises(DataError, match="is not the statement that config"):
        check_folder(saved)
    (saved / "privacy-a.json").unlink()
    with pytest.raises(StorageError):
        check_folder(saved)


@pytest.mark.parametrize("entries", [[], 3, None, {"a": 3}, {"a": {}}, {"a": {"file": "../x", "sha256": "0"}}])
def test_statements_that_are_none_are_refused(saved, entries):
    with_statements(saved, entries)
    with pytest.raises(DataError, match="expected files of statements"):
        check_folder(saved)


def test_what_announces_vectors(saved, tmp_path):
    assert announces_vectors(saved)
    assert not announces_vectors(tmp_path)
    (saved / "config.json").write_text("{}")
    assert not announces_vectors(saved)
